/* ids.c - which whole numbers an index can be: no value lies outside of what is said of it.
 *
 * In:  arithmetic of token ids, labels, positions and choices, made at random.   Out: every number of every value, in its range; and how
 * often ends of ranges are met, since a range of everything would never be wrong.
 */
#include "compiler/graph/op.h"
#include "compiler/model/model.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { B = 3, T = 6, ROWS = 7, MOST = 40, MADE = 24 };

static uint64_t state = 11;
static int draw(int n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (int)((uint32_t)(state >> 33) % (uint32_t)n);
}

/* A value [B, T] of two before it. */
static Val made(Graph *g, Val a, Val b)
{
    const Shape ids = {.rank = 2, .d = {DIM_B, DIM_T}}, column = {.rank = 3, .d = {DIM_B, DIM_T, DIM(1)}};
    static const Op binary[] = {OP_ADD, OP_SUB, OP_MUL, OP_MIN, OP_MAX};
    switch (draw(9)) {
    case 0: return ir_unary(g, OP_NEG, a);
    case 1: return ir_binary(g, OP_MOD, a, ir_int(g, draw(2) ? 1 + draw(9) : -1 - draw(9)));
    case 2: return ir_binary(g, OP_ADD, a, ir_int(g, draw(9) - 4));
    case 3: return ir_where(g, ir_binary(g, OP_LT, a, b), a, b);
    case 4: return ir_shift(g, a, 1, draw(5) - 2, draw(5) - 2);
    case 5: return ir_cast(g, ir_cast(g, a, DT_REAL), DT_INT);
    case 6:
        return ir_reshape(g,
                          ir_slice(g, ir_concat(g, (Val[]){ir_reshape(g, a, &column), ir_reshape(g, b, &column)}, 2, 2),
                                   2, draw(2), 1),
                          &ids);
    default: return ir_binary(g, binary[draw(5)], a, b);
    }
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    size_t values = 0, ends = 0, bounded = 0;
    for (int seed = 0; seed < 60; seed++) {
        Arena *arena = arena_new(ctx); /* names lie elsewhere, and stay */
        Graph *g = graph_new(ctx, arena);
        const Shape ids = {.rank = 2, .d = {DIM_B, DIM_T}}, rows = {.rank = 2, .d = {DIM(ROWS), DIM(2)}},
                    positions = {.rank = 2, .d = {DIM(1), DIM_T}};
        Val tokens = ir_ext(g, EXT_INPUT, name_str(ctx, "tokens"), DT_INT, &ids);
        Val labels = ir_ext(g, EXT_INPUT, name_str(ctx, "labels"), DT_INT, &ids);
        Val table = ir_ext(g, EXT_PARAM, name_str(ctx, "w"), DT_REAL, &rows);
        Val all[MOST];
        int n = 0;
        all[n++] = tokens;
        all[n++] = labels;
        all[n++] = ir_broadcast(g, ir_iota(g, &positions, 1), &ids);
        ir_gather(g, table, tokens);
        Val scores = ir_gather(g, table, tokens);
        all[n++] = ir_reshape(g, ir_slice(g, ir_top_k(g, scores, 2), 2, draw(2), 1), &ids);
        while (n < MADE)
            all[n] = made(g, all[draw(n)], all[draw(n)]), n++;
        for (int i = 0; i < n; i++)
            ir_output(g, name_printf(ctx, "%d", i), all[i]);
        Model m = {.graph = g, .context = T, .table_rows = ROWS, .vocab = ROWS};
        const IdRange *of = model_id_ranges(&m, arena);
        RefBinding bind[3];
        for (int i = 0; i < 3; i++) {
            const Ext *e = &g->ext.v[i];
            int64_t d[2] = {e->kind == EXT_PARAM ? ROWS : B, e->kind == EXT_PARAM ? 2 : T};
            Tensor *x = tensor_new(arena, e->dtype, 2, d);
            for (int64_t k = 0; k < x->size; k++)
                if (e->dtype == DT_INT)
                    x->integer[k] =
                        draw(ROWS + (e->name[0] == 'l')) - (e->name[0] == 'l'); /* a negative label is none */
                else
                    x->real[k] = draw(100);
            bind[i] = (RefBinding){e->kind, e->name, x};
        }
        RefRun run = {.B = B, .T = T, .seed = 1, .bind = bind, .n_bind = 3};
        Tensor *out[MOST];
        ref_evaluate(g, arena, &run, out);
        for (int i = 0; i < n; i++) {
            const IdRange r = of[all[i]];
            double low = INFINITY, high = -INFINITY;
            for (int64_t k = 0; k < out[i]->size; k++) {
                low = fmin(low, (double)out[i]->integer[k]);
                high = fmax(high, (double)out[i]->integer[k]);
            }
            check(&t, r.known && low >= r.low && high <= r.high,
                  "seed %d, value %d (%s): %g to %g, said to be %g to %g", seed, i,
                  op_info((Op)node_at(g, all[i])->op)->name, low, high, r.low, r.high);
            values++;
            bounded += isfinite(r.high);
            ends += isfinite(r.high) && high >= r.high - 1;
        }
        arena_free(arena);
    }
    check(&t, bounded > values / 2, "only %zu of %zu values have a largest number", bounded, values);
    check(&t, ends > bounded / 4, "only %zu of %zu come near it", ends, bounded);
    ctx_free(ctx);
    return tally_end(&t, "ids");
}
