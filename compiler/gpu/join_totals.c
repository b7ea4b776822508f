/* join_totals.c - which totals are one step.
 *
 * In:  a kernel that is mapped to threads.
 * Out: the same with one statement in the place of totals of sums of numbers that follow each other
 *      (KStmt.totals). Where other warps have a part of a sum, the total of a warp is its lane's alone.
 * Requires: barriers and slots are final.     Proved by: kernel_check(), kernel_race().
 * The one idea: a total over 32 threads takes five exchanges. The threads of a warp can add up
 * different sums at one time: 32 totals take 31 exchanges then, and 160 one by one.
 */
#include "device.h"

static bool is_real_sum(const Kernel *k, const KStmt *s)
{
    const KRoot *r = s->ex ? NULL : &k->root.v[s->root];
    return r ? r->op == OP_SUM && kx(k, r->value)->type == KT_REAL
             : kx(k, s->ex)->op == OP_SUM && kx(k, s->ex)->type == KT_REAL;
}

static bool is_total(const KStmt *s) { return s->kind == KS_WARP || s->kind == KS_WARP_PUT || s->kind == KS_WARP_TAKE; }

/* Statements from..to, all of them totals of one kind. What a warp takes lies in places that a total of another kind in the same step
 * would have, so beside one each is a statement of its own. */
static void put_totals(Kernel *k, const Kernel *from, size_t i, size_t to)
{
    const bool block = to < from->stmt.n && from->stmt.v[to].kind == KS_WARP_PUT;
    bool real = true;
    for (size_t j = i; j < to; j++)
        real = real && is_real_sum(from, &from->stmt.v[j]);
    for (size_t n; i < to; i += n) {
        n = real && (int64_t)(to - i) >= k->target->tuned->totals_least ? to - i : 1;
        n = n < LANES_MOST ? n : LANES_MOST;
        KStmt step = from->stmt.v[i];
        if (n > 1) {
            KTotals t = {.n = (uint32_t)n, .of = NEW_ARRAY(k->arena, KTotal, n)};
            for (size_t j = 0; j < n; j++) {
                const KStmt *s = &from->stmt.v[i + j];
                if (s->kind != KS_WARP && s->at != step.at + j)
                    vwn_bug(k->ctx, "totals of warps whose slots do not follow each other");
                t.of[j] = (KTotal){s->ex, s->root, block && s->kind == KS_WARP};
            }
            vec_push(k->arena, &k->device.totals, t);
            step.ex = step.root = 0;
            step.totals = (uint32_t)k->device.totals.n;
        }
        vec_push(k->arena, &k->stmt, step);
    }
}

void kernel_join_totals(Kernel *k)
{
    const Kernel from = *k;
    k->stmt.v = NULL;
    k->stmt.n = k->stmt.cap = 0;
    for (size_t i = 0, to; i < from.stmt.n; i = to) {
        for (to = i + 1; to < from.stmt.n && from.stmt.v[to].kind == from.stmt.v[i].kind;)
            to++;
        if (is_total(&from.stmt.v[i]))
            put_totals(k, &from, i, to);
        else
            for (size_t j = i; j < to; j++)
                vec_push(k->arena, &k->stmt, from.stmt.v[j]);
    }
}
