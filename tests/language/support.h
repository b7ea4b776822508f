/* support.h - checking texts of the language inside a test program.
 *
 * In:  a text, overrides.   Out: a Unit and its diagnostics, or a line for every expectation that failed.
 * The one idea: a test is a small file and what it must become; it goes on after a failure.
 */
#ifndef LANGUAGE_SUPPORT_H
#define LANGUAGE_SUPPORT_H

#include "compiler/file/check_unit.h"
#include "compiler/model/model.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Test {
    int checks, failures;
} Test;

#define EXPECT(t, what, ...)                                                                                           \
    ((t)->checks++,                                                                                                    \
     (__VA_ARGS__) ? (void)0                                                                                           \
                   : ((t)->failures++, (void)printf("%s:%d: %s: %s\n", __FILE__, __LINE__, (what), #__VA_ARGS__)))

static inline int test_end(const Test *t)
{
    printf("%d checks, %d failures\n", t->checks, t->failures);
    return t->failures > 0 || t->checks == 0;
}

typedef struct Checked {
    Ctx *ctx;
    Unit *unit;    /* NULL when a limit stopped it */
    Status status; /* ST_OK unless something was raised */
} Checked;

/* `path` names a file; with a `text` it is only what messages show. `sets` ends with NULL. */
static inline Checked check_text(const char *path, const char *text, const char *const *sets)
{
    Checked c = {.ctx = ctx_new(NULL)};
    if (!c.ctx)
        abort();
    c.ctx->byte_limit = (size_t)1 << 30;
    CheckOptions how = {.path = path, .text = text, .text_length = text ? strlen(text) : 0, .set = sets};
    while (sets && sets[how.n_set])
        how.n_set++;
    CtxGuard guard;
    if (CTX_TRY(c.ctx, &guard)) {
        Unit *unit = check_file(c.ctx, &how);
        ctx_leave(c.ctx, &guard);
        c.unit = unit;
    } else {
        c.status = c.ctx->raised;
    }
    return c;
}

static inline void print_diagnostics(Checked *c)
{
    Buf b = buf_new(c->ctx->program);
    diag_render_all(c->ctx, &b, false);
    printf("%s", b.s);
}

/* Without an error, or the diagnostics are printed. */
static inline bool expect_fine(Test *t, const char *what, Checked *c)
{
    bool fine = c->unit && diag_errors(c->ctx) == 0;
    EXPECT(t, what, fine);
    if (!fine)
        print_diagnostics(c);
    return fine;
}

/* Exactly one error, with this code. */
static inline void expect_error(Test *t, const char *what, Checked *c, const char *code)
{
    size_t errors = 0;
    bool found = false;
    for (size_t i = 0; i < diag_count(c->ctx); i++) {
        const Diag *d = diag_get(c->ctx, i);
        errors += d->level == LEVEL_ERROR;
        found |= d->level == LEVEL_ERROR && !strcmp(d->code, code);
    }
    bool right = errors == 1 && found && c->status != ST_BUG && c->status != ST_ENVIRONMENT;
    EXPECT(t, what, right);
    if (!right) {
        printf("wanted one %s, got\n", code);
        print_diagnostics(c);
    }
}

static inline size_t count_lint(const Checked *c, const char *lint)
{
    size_t n = 0;
    for (size_t i = 0; i < diag_count(c->ctx); i++) {
        const Diag *d = diag_get(c->ctx, i);
        n += d->lint && !strcmp(d->lint, lint);
    }
    return n;
}

#endif
