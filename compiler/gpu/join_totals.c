/* join_totals.c - which totals are one step.
 *
 * In:  a kernel that is mapped to threads.
 * Out: the same with KStmt.together and KStmt.lane, of totals of sums of numbers that follow each
 *      other. Where other warps have a part of a sum, the total of a warp is its lane's alone.
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

/* Of statements from..to, all of them totals. What a warp takes lies in places that a total of
 * another kind in the same step would have, so beside one each is a step of its own. */
static void join(Kernel *k, size_t from, size_t to)
{
    bool block = to < k->stmt.n && k->stmt.v[to].kind == KS_WARP_PUT;
    for (size_t i = from; i < to; i++)
        if (!is_real_sum(k, &k->stmt.v[i]))
            return;
    for (size_t i = from, n; i < to; i += n) {
        n = to - i < LANES_MOST ? to - i : LANES_MOST;
        for (size_t j = 0; j < n && (int64_t)n >= k->target->tuned->totals_least; j++) {
            KStmt *s = &k->stmt.v[i + j];
            s->together = (uint8_t)n;
            s->lane = (uint8_t)j;
            s->alone = block && s->kind == KS_WARP;
        }
    }
}

void kernel_join_totals(Kernel *k)
{
    for (size_t i = 0, to; i < k->stmt.n; i = to) {
        for (to = i + 1; to < k->stmt.n && k->stmt.v[to].kind == k->stmt.v[i].kind;)
            to++;
        if (is_total(&k->stmt.v[i]))
            join(k, i, to);
    }
}
