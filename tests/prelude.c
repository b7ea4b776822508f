/* prelude.c - writes what every text of CUDA begins with behind the emulator's header, to be compiled once.
 *
 * In:  prelude HEADER FILE.     Out: FILE. Status 1: it cannot be written.
 */
#include "compiler/base/base.h"
#include "compiler/print/emit.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    Ctx *ctx = argc == 3 ? ctx_new(NULL) : NULL;
    if (!ctx)
        return 1;
    size_t length;
    const char *text = prelude_cuda(ctx->scratch, &length);
    FILE *f = fopen(argv[2], "w");
    bool good = f && fprintf(f, "#include \"%s\"\n", argv[1]) > 0 && fwrite(text, 1, length, f) == length;
    good = f && fclose(f) == 0 && good;
    ctx_free(ctx);
    return good ? 0 : 1;
}
