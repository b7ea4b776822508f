/* errors.c - the messages about text: every tests/errors/E00*.vwn gives exactly its .err file.
 *
 * In:  the files.   Out: their diagnostics, compared byte for byte. With VWN_BLESS set in the
 * environment the .err files are written instead, to be read before they are committed.
 */
#define _XOPEN_SOURCE 700
#include "test.h"

#include <dirent.h>

static const char folder[] = VWN_SOURCE_DIR "/tests/errors";

static void compare(Test *t, const char *name, const char *text, size_t n, const char *err,
                    char *seen)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        vwn_parse(ctx, source_add(ctx, name, text, n));
        ctx_leave(ctx, &guard);
    }
    Buf b = buf_new(ctx->program);
    diag_render_all(ctx, &b, false);
    EXPECT(t, diag_errors(ctx) > 0);
    for (size_t i = 0; i < diag_count(ctx); i++) {
        const char *code = diag_get(ctx, i)->code;
        EXPECT(t, !strncmp(code, "E00", 3));
        seen[code[4] - '0'] = 1;
    }
    FILE *f = getenv("VWN_BLESS") ? fopen(err, "wb") : NULL;
    if (f) {
        fwrite(b.s, 1, b.n, f);
        fclose(f);
    }
    char *want = test_read(err, NULL);
    test_same(t, name, b.s, want ? want : "(no .err file)\n");
    free(want);
    ctx_free(ctx);
}

static void one(Test *t, const char *name, char *seen)
{
    char path[600], err[600];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(err, sizeof err, "%s/%.*s.err", folder, (int)(strlen(name) - 4), name);
    size_t n;
    char *text = test_read(path, &n);
    EXPECT(t, text != NULL);
    if (text)
        compare(t, name, text, n, err, seen);
    free(text);
}

int main(void)
{
    Test t = {0};
    char seen[10] = {0};
    DIR *dir = opendir(folder);
    EXPECT(&t, dir != NULL);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t n = strlen(e->d_name);
        if (n > 7 && !strncmp(e->d_name, "E00", 3) && !strcmp(e->d_name + n - 4, ".vwn"))
            one(&t, e->d_name, seen);
    }
    if (dir)
        closedir(dir);
    for (int i = 1; i <= 8; i++)
        EXPECT(&t, seen[i]);
    return test_end(&t);
}
