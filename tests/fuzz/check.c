/* check.c - fuzz target: parse, format and check a file.
 *
 * In:  any bytes as the text of a `.vwn` file.   Out: a crash when something is broken:
 * a broken invariant (ST_BUG), memory above the limit, a formatter that changes the tree or is not
 * idempotent, a diagnostic that cannot be rendered.
 * The one idea: most files that a person writes are valid, and most faults lie behind the first error; so half of what is
 * made of a file is edited as a person edits (random/alike.c), the rest byte by byte.
 * When: quick.
 */
#include "compiler/file/check_unit.h"
#include "compiler/model/model.h"

#include "random/generate.h"
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

static void broken(const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s\n", what, detail);
    abort();
}

static void format_twice(Ctx *ctx, const char *text, size_t n)
{
    uint32_t file = source_add(ctx, "fuzz.vwn", text, n);
    Ast *ast = vwn_parse(ctx, file);
    if (diag_errors(ctx))
        return;
    Buf once = buf_new(ctx->program), twice = buf_new(ctx->program);
    vwn_format(ctx, file, ast, &once);
    uint32_t again = source_add(ctx, "fuzz.vwn", once.s, once.n);
    Ast *ast2 = vwn_parse(ctx, again);
    if (diag_errors(ctx) || !ast_equal(ast, ast2))
        broken("the formatter changed the tree", once.s);
    vwn_format(ctx, again, ast2, &twice);
    if (once.n != twice.n || memcmp(once.s, twice.s, once.n))
        broken("the formatter is not idempotent", once.s);
}

static void render_all(Ctx *ctx)
{
    for (size_t i = 0; i < diag_count(ctx); i++) {
        Buf b = buf_new(ctx->program);
        diag_render(ctx, &b, diag_get(ctx, i), i % 2);
        diag_render_json(ctx, &b, diag_get(ctx, i));
    }
}

static bool valid;

bool fuzz_valid(void) { return valid; }

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (seed % 4 == 0 && LLVMFuzzerMutate)
        return LLVMFuzzerMutate(data, size, most);
    Ctx *ctx = ctx_new(NULL);
    if (!ctx)
        return size;
    const char *text = edit_alike(ctx->program, seed, arena_copy(ctx->program, (const char *)data, size));
    size_t n = strlen(text) < most ? strlen(text) : most;
    memcpy(data, text, n);
    ctx_free(ctx);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Ctx *ctx = ctx_new(NULL);
    if (!ctx)
        return 0;
    ctx->byte_limit = (size_t)1 << 30;
    valid = false;
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        format_twice(ctx, (const char *)data, size);
        diag_truncate(ctx, 0);
        CheckOptions how = {.path = "-", .text = (const char *)data, .text_length = size};
        check_file(ctx, &how);
        valid = !diag_errors(ctx);
        ctx_leave(ctx, &guard);
    } else if (ctx->raised == ST_BUG || ctx->raised == ST_ENVIRONMENT) {
        broken("raised", ctx->message);
    }
    if (CTX_TRY(ctx, &guard)) {
        render_all(ctx);
        ctx_leave(ctx, &guard);
    } else {
        broken("rendering raised", ctx->message);
    }
    ctx_free(ctx);
    return 0;
}
