/* texts.c - the texts that are written as files: what is filled in is what a preprocessor makes of them.
 *
 * In:  the files of compiler/library/texts, a C and a C++ compiler.
 * Out: status 0 when, for every file and several values of its names, library_text() and the preprocessor agree on every
 *      token; and when each file is read without a warning by a compiler, as it lies there.
 * The oracle is the compiler's own preprocessor, which gets the values as macros.
 */
#include "compiler/library/library_text.h"
#include "compiler/print/emit.h"
#include "support/drawn.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLAGS = 9, MOST = 48 };

static bool ends(const char *s, const char *with)
{
    size_t n = strlen(s), m = strlen(with);
    return n >= m && strcmp(s + n - m, with) == 0;
}

static bool save(const char *path, const char *text, size_t n)
{
    FILE *f = fopen(path, "w");
    return f && fwrite(text, 1, n, f) == n && fclose(f) == 0;
}

/* The tokens of `in`, a line each, in `out`: defines as the preprocessor takes them. */
static bool tokens(const char *in, const char *out, const char *defines)
{
    static char command[8192];
    const char *cc = getenv("CC");
    snprintf(command, sizeof command,
             "%s -E -P -undef -nostdinc -x c %s '%s' 2> errors.txt | tr -s ' \\t\\n' '\\n\\n\\n' | sed '/^$/d' > %s && "
             "[ ! -s errors.txt ]",
             cc ? cc : "cc", defines, in, out);
    return system(command) == 0;
}

/* Some of these names stand for yes or no; bit i of `set` says which. */
static size_t values(Arena *a, TextValue *v, unsigned set)
{
    static const char *const flag[FLAGS] = {"MAX",     "AT",   "OLDEST",     "SPLIT", "GRADIENT",
                                            "DROPPED", "KEPT", "WARPGROUPS", "MAPS"};
    static const TextValue other[] = {
        {"NAME", "some_kernel"},
        {"ELEMENT", "bf16"},
        {"KIND", "bf16 on tensor cores"},
        {"BOUNDS", "128, 2"},
        {"BLOCKS", "2"},
        {"WHAT", "sum"},
        {"SHORT", "sum"},
        {"ORDER", "\n * in order"},
        {"NUMBERS", "number32 s0, number32 s1,"},
        {"CHOICES", "x = threadIdx.x == 1 ? s1 : x;"},
        {"D", "48"},
        {"DV", "64"},
        {"QUERIES", "32"},
        {"KEYS", "16"},
        {"PART", "256"},
        {"SLICE", "65"},
        {"RANGE", "66"},
        {"CAPPED", "1"},
        {"ROWS", "63"},
        {"COLUMNS", "31"},
        {"AT_ONCE", "15"},
        {"WARPS", "4"},
        {"THREADS", "128"},
        {"SHARED", "49152"},
        {"WIDTH", "8"},
        {"PARTS", "2"},
        {"X", "real"},
        {"W", "fp16"},
        {"Y", "bf16"},
        {"WIDTH_X", "4"},
        {"WIDTH_W", "2"},
        {"TRANSPOSED", "1"},
        {"STAGES", "3"},
        {"MORE", "240"},
        {"FEWER", "24"},
        {"ASIDE", "112"},
        {"DOWN", "2"},
    };
    size_t n = 0;
    for (size_t i = 0; i < COUNT_OF(other); i++)
        v[n++] = other[i];
    for (int i = 0; i < FLAGS; i++)
        v[n++] = (TextValue){flag[i], text_number(a, set >> i & 1)};
    return n;
}

static int filled(Ctx *ctx, const char *file)
{
    static const unsigned sets[] = {0x15, 0x1ea, 0, 511};
    int bad = 0;
    for (size_t i = 0; i < (test_whole() ? COUNT_OF(sets) : 2); i++) { /* each of them yes and no */
        TextValue v[MOST];
        size_t n = values(ctx->program, v, sets[i]);
        Buf text = buf_new(ctx->program), defines = buf_new(ctx->program);
        library_text(&text, file, v, n);
        for (size_t k = 0; k < n; k++)
            buf_printf(&defines, "'-DTEXT_%s=%s' ", v[k].name, strcmp(v[k].name, "ORDER") ? v[k].value : "");
        const char *path = arena_printf(ctx->program, "%s/compiler/library/texts/%s", VWN_SOURCE_DIR, file);
        if (!save("filled.txt", text.s, text.n) || !tokens("filled.txt", "filled_tokens.txt", "") ||
            !tokens(path, "tokens.txt", defines.s) || system("cmp -s filled_tokens.txt tokens.txt") != 0) {
            printf("FAIL %s, set %zu: not what the preprocessor makes of it\n", file, i);
            bad = 1;
        }
    }
    return bad;
}

/* Preludes and pieces are read as parts of the others. */
static int read_alone(Ctx *ctx, CaseDraw *draw, const char *file)
{
    size_t n;
    if (!strstr(library_files_text(file, &n), "#include \"alone.") ||
        (ends(file, ".cu") && !case_drawn(draw, draw->cases)))
        return 0;
    const char *cc = getenv("CC"), *cxx = getenv("CXX");
    const char *command = ends(file, ".c")
                              ? arena_printf(ctx->program,
                                             "%s -std=gnu17 -march=native -fopenmp-simd -fsyntax-only -Wall -Wextra "
                                             "-Wno-unused -Wno-unknown-pragmas -Werror %s/compiler/library/texts/%s",
                                             cc ? cc : "cc", VWN_SOURCE_DIR, file)
                              : arena_printf(ctx->program,
                                             "%s -std=c++17 -include %s/tests/emu/cuemu.h -x c++ -fsyntax-only "
                                             "-Wno-unknown-pragmas -Werror %s/compiler/library/texts/%s",
                                             cxx ? cxx : "g++", VWN_SOURCE_DIR, VWN_SOURCE_DIR, file);
    if (system(command) == 0)
        return 0;
    printf("FAIL a compiler does not read %s by itself\n", file);
    return 1;
}

static size_t count(const char *text, const char *of)
{
    size_t n = 0;
    while ((text = strstr(text, of)))
        n++, text += strlen(of);
    return n;
}

/* Where several launches run as one, a kernel is told which block it is (plan_gather.c), so that functions of the prelude
 * that asked for it would be told of another. Those that may: vwn_launch_of(), and vwn_block() itself and its twin. */
static int asks_for_blocks(Ctx *ctx)
{
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    size_t blocks = count(prelude, "blockIdx"), calls = count(prelude, "vwn_block()");
    if (blocks == 2 && calls == 2)
        return 0;
    printf("FAIL functions of the prelude ask for a block: %zu and %zu\n", blocks, calls);
    return 1;
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    int bad = 0;
    size_t read = 0;
    CaseDraw draw = {.one_in = 4, .sanitized = 4}; /* of those for a GPU, which tests/emu compiles, too */
    for (size_t i = 0; i < library_files_count(); i++) {
        const char *file = library_files_path(i);
        if (strncmp(file, "alone.", 6) == 0)
            continue;
        bad |= filled(ctx, file);
        bad |= read_alone(ctx, &draw, file);
        read++;
    }
    bad |= read < 40 || asks_for_blocks(ctx);
    cases_end(&draw);
    printf("%zu texts, %s\n", read, bad ? "FAIL" : "all as the preprocessor fills them in");
    ctx_free(ctx);
    return bad;
}
