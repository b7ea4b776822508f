/* documents.c - a document in a row of several is computed as if it stood alone.
 *
 * In:  small models with `mask = document`, a row of four documents.   Out: `N passed, N failed`.
 * The loss of the whole row with the labels of one document alone is the loss of a row that is that document;
 * with a plain causal mask it is not.
 * When: quick.
 */
#include "support/models.h"

enum { T = 17, DOCUMENTS = 4 };
static const int64_t begin[DOCUMENTS + 1] = {0, 5, 6, 12, T};
static const char *const separated = "train.data=text_file(\"none.txt\", separator = \"x\")";

/* The loss on a row of `n` positions; labels outside [from, to) are left out. */
static double loss_of(Ctx *ctx, Unit *u, const int64_t *tokens, const int64_t *starts, int64_t n, int64_t from,
                      int64_t to)
{
    Graph *g = step_evaluate(u->model, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, 1, n, 0.3);
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t t = 0; bind[i].kind == EXT_INPUT && t < n; t++)
            bind[i].tensor->integer[t] = !strcmp(bind[i].name, "tokens")     ? tokens[t]
                                         : !strcmp(bind[i].name, "document") ? starts[t]
                                         : t >= from && t < to               ? tokens[t + 1]
                                                                             : -1;
    double vars[HV_COUNT] = {0};
    RefRun run = {.B = 1, .T = n, .seed = 1, .bind = bind, .n_bind = g->ext.n, .host_vars = vars};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    ref_evaluate(g, ctx->program, &run, r);
    return r[0]->real[0];
}

typedef struct Case {
    const char *set[4];
    double worst, least; /* difference from the document alone: with its mask, and with a causal one */
} Case;

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const char *plain[4] = {c->set[2], NULL};
    Unit *u = load_text(ctx, model_text, c->set), *causal = load_text(ctx, model_text, plain);
    int64_t tokens[T + 1], starts[T], zeros[T] = {0};
    uint64_t state = 5;
    for (int t = 0, k = 0; t <= T; t++) {
        tokens[t] = (int64_t)((noise(&state) + 1) / 2 * 17);
        k += k + 1 < DOCUMENTS && t == begin[k + 1];
        if (t < T)
            starts[t] = begin[k];
    }
    c->worst = 0;
    c->least = INFINITY;
    for (int k = 0; k < DOCUMENTS; k++) {
        int64_t n = begin[k + 1] - begin[k];
        double alone = loss_of(ctx, u, tokens + begin[k], zeros, n, 0, n);
        double whole = loss_of(ctx, u, tokens, starts, T, begin[k], begin[k + 1]);
        double mixed = loss_of(ctx, causal, tokens, starts, T, begin[k], begin[k + 1]);
        c->worst = fmax(c->worst, fabs(whole - alone) / alone);
        if (k)
            c->least = fmin(c->least, fabs(mixed - alone) / alone);
    }
}

int main(void)
{
    static const char *const connection[] = {"conn=residual()", "conn=hyper(n = 4, dynamic = true)",
                                             "map=pattention(slots = 7)"};
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(connection); i++) {
        Ctx *ctx = ctx_new(NULL);
        Case c = {.set = {"model.mask=document", separated, connection[i], NULL}, .worst = INFINITY};
        bool ok = guarded(ctx, compare, &c) && c.worst < 1e-12 && c.least > 1e-4;
        printf("%-32s alone and in a row %.1e, causal %.1e%s\n", connection[i], c.worst, c.least, ok ? "" : "  FAILED");
        ok ? passed++ : failed++;
        ctx_free(ctx);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
