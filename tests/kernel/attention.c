/* attention.c - attention and its gradients over a grid of sizes and masks, against the reference.
 *
 * In:  widths of heads, numbers of queries and keys, shared heads, windows, softcaps, dropout.
 * Out: nothing; every case runs in one range of rows and in uneven ones, with canaries around
 *      every buffer (cases.h).
 * The one idea: sizes on both sides of every block of the kernels, and enough heads for one kernel
 * of all gradients as well as few of them, for one kernel per gradient.
 * When: slow, optimised. equal.models sees what writes these kernels.
 */
#include "cases.h"
#include "support/drawn.h"

#include <stdio.h>

typedef struct Way {
    int B, T, S, H, K, d, dv; /* S: 0 = T */
    bool causal;
    int window;
    double cap, drop;
} Way;

static const Way ways[] = {
    {1, 1, 0, 2, 2, 2, 2, true, 0, 0, 0},
    {3, 31, 0, 4, 1, 6, 6, true, 0, 0, 0},
    {2, 33, 0, 2, 2, 32, 32, true, 0, 0, 0},
    {1, 64, 0, 4, 2, 48, 48, true, 0, 0, 0},
    {2, 65, 0, 2, 1, 64, 64, true, 0, 0, 0},
    {1, 127, 0, 2, 2, 80, 80, true, 0, 0, 0},
    {1, 200, 0, 4, 2, 32, 32, true, 0, 0, 0},
    {1, 300, 0, 2, 1, 32, 32, true, 0, 0, 0},  /* two parts of the keys */
    {1, 300, 0, 1, 1, 80, 64, true, 40, 0, 0}, /* three parts, most never seen */
    {1, 290, 0, 2, 1, 64, 32, false, 0, 0, 0},
    {1, 200, 0, 2, 1, 32, 48, true, 17, 0, 0},
    {2, 127, 0, 2, 2, 64, 6, false, 33, 0, 0},
    {1, 200, 0, 2, 1, 6, 64, false, 1, 0, 0},
    {1, 65, 0, 2, 2, 32, 32, true, 1, 4, 0},
    {2, 64, 0, 2, 1, 32, 32, true, 64, 2, 0.3},
    {1, 127, 0, 4, 2, 48, 48, false, 0, 3, 0.1},
    {1, 33, 65, 2, 1, 32, 32, false, 0, 0, 0},     /* more keys than queries */
    {1, 200, 31, 2, 2, 32, 32, true, 0, 0, 0},     /* fewer */
    {1, 127, 33, 2, 1, 64, 64, true, 20, 0, 0},    /* queries that see none */
    {1, 31, 300, 2, 1, 32, 32, false, 50, 0, 0.2}, /* keys that nobody sees */
    /* 32 heads of keys and more: one kernel for all gradients */
    {16, 33, 0, 4, 2, 32, 32, true, 0, 0, 0},
    {32, 64, 0, 1, 1, 2, 6, true, 0, 0, 0},
    {8, 65, 0, 4, 4, 64, 64, true, 0, 0, 0},
    {4, 127, 0, 8, 8, 6, 6, true, 9, 0, 0},
    {16, 1, 0, 4, 2, 48, 80, true, 0, 0, 0},
    {8, 300, 0, 4, 4, 32, 32, true, 0, 0, 0},
    {8, 290, 0, 8, 4, 80, 64, true, 70, 0, 0.1},
    {16, 200, 0, 2, 2, 48, 48, false, 0, 3, 0},
    {16, 127, 33, 4, 2, 64, 64, true, 20, 0, 0},
    {16, 31, 300, 2, 2, 32, 32, false, 50, 2, 0.2},
    /* windows that reach one key into the block before, at the first query of a block */
    {1, 67, 0, 1, 1, 8, 8, true, 2, 0, 0},
    {1, 99, 0, 1, 1, 8, 8, true, 34, 0, 0},
    {1, 67, 0, 1, 1, 8, 8, false, 2, 0, 0},
    {1, 99, 0, 1, 1, 8, 8, false, 34, 0, 0},
    {32, 99, 0, 1, 1, 8, 8, true, 34, 0, 0},
};

static Shape shape(Dim a, Dim b, Dim c, Dim d) { return (Shape){.rank = 4, .d = {a, b, c, d}}; }

static Val input(Ctx *ctx, Graph *g, const char *name, Shape s)
{
    return ir_ext(g, EXT_INPUT, name_str(ctx, name), DT_REAL, &s);
}

static void add(Ctx *ctx, Cases *cases, const Way *w)
{
    char name[160];
    snprintf(name, sizeof name, "B=%d T=%d S=%d H=%d K=%d d=%d dv=%d %s window %d cap %g drop %g", w->B, w->T, w->S,
             w->H, w->K, w->d, w->dv, w->causal ? "causal" : "full", w->window, w->cap, w->drop);
    Graph *g = graph_new(ctx, ctx->program);
    Dim keys = w->S ? DIM(w->S) : DIM_T;
    Val q = input(ctx, g, "q", shape(DIM_B, DIM_T, DIM(w->H), DIM(w->d)));
    Val k = input(ctx, g, "k", shape(DIM_B, keys, DIM(w->K), DIM(w->d)));
    Val v = input(ctx, g, "v", shape(DIM_B, keys, DIM(w->K), DIM(w->dv)));
    Val dy = input(ctx, g, "dy", shape(DIM_B, DIM_T, DIM(w->H), DIM(w->dv)));
    Sdpa how = {.causal = w->causal,
                .scale = 0.7,
                .softcap = w->cap,
                .dropout = w->drop,
                .window = w->window,
                .site = name_str(ctx, "drop")};
    Val y = ir_sdpa(g, q, k, v, &how), lse = ir_node(g, OP_AUX, &y, 1, &(Attr){0}, NULL);
    Attr a = node_at(g, y)->a;
    Val in[6] = {q, k, v, y, lse, dy}, dq = ir_node(g, OP_SDPA_GRAD, in, 6, &a, NULL);
    Val out[5] = {y, lse, dq, ir_node(g, OP_AUX, &dq, 1, &(Attr){.i = 0}, NULL),
                  ir_node(g, OP_AUX, &dq, 1, &(Attr){.i = 1}, NULL)};
    for (size_t i = 0; i < COUNT_OF(out); i++)
        ir_output(g, name_printf(ctx, "y%zu", i), out[i]);
    cases_add(cases, name, g, w->B, w->T, 1, 2e-5);
}

/* Launches of the backward kernel: one with many heads of keys, two with few. */
static int count_launches(const Cases *cases)
{
    int bad = 0;
    for (size_t i = 0; i < cases_count(cases); i++) {
        const Plan *p = cases_plan(cases, i, true);
        int n = 0, want = ways[i].B * ways[i].K < 32 ? 2 : 1;
        for (size_t k = 0; k < p->n_launch; k++)
            n += p->launch[k].kind == LAUNCH_KERNEL && p->launch[k].n_buffer == 9;
        if (n != want) {
            printf("FAIL case %zu has %d backward launches, not %d\n", i, n, want);
            bad++;
        }
    }
    return bad;
}

/* Where a window begins in a block of keys, and where its last query stands in one of queries: every place. */
static void add_windows(Ctx *ctx, Cases *cases)
{
    enum { BLOCK = 32 };
    CaseDraw draw = {.one_in = 7, .sanitized = 8};
    for (int window = 1; window <= BLOCK; window++)
        if (case_drawn(&draw, (size_t)window))
            add(ctx, cases, &(Way){1, 2 * BLOCK + window % 3, 0, 1, 1, 4, 4, true, BLOCK + window, 0, 0});
    cases_end(&draw);
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    int bad = 1;
    if (CTX_TRY(ctx, &guard)) {
        Cases *cases = cases_new(ctx, NULL);
        for (size_t i = 0; i < COUNT_OF(ways); i++)
            add(ctx, cases, &ways[i]);
        bad = count_launches(cases);
        add_windows(ctx, cases);
        bad += cases_run(cases);
        ctx_leave(ctx, &guard);
    } else {
        printf("FAIL %s\n", ctx->message);
    }
    ctx_free(ctx);
    return bad != 0;
}
