/* prefetch.c - in which sweeps a row prefetches what the next one will load.
 *
 * In:  a scheduled kernel of a CPU.
 * Out: the same with KS_PREFETCH, of loads, at the beginning of the sweep that prefetches each.
 * The one idea: memory answers so many requests at a time, so all sweeps of a row share in them.
 */
#include "kernel.h"

/* A load of the next row, prefetched in a sweep of this one. */
typedef struct Prefetch {
    Ex load;
    uint32_t sweep; /* number of its statement */
    IVar var;       /* what that sweep runs over; -1: the prefetch stays with its load */
} Prefetch;
typedef VEC(Prefetch) Prefetches;

/* Does an index hold a quotient or a remainder of the row? Most often the next row loads the same
 * then, and where it is prefetched the quotient may not be computed yet. */
static bool shared_by_rows(const Kernel *k, Ix ix)
{
    const IxForm *f = ix_form(k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(k->ix, f->t[i].var);
        if ((v->kind == IV_DIV || v->kind == IV_MOD) && v->deps & ix_bit(k->ix, k->row))
            return true;
    }
    return false;
}

/* What a row loads the next one will load a row further on: a sweep is too short for the
 * processor to find that out by itself. */
static void find_prefetches_of(const Kernel *k, Prefetches *out, uint32_t sweep, size_t end, bool *seen, bool direct)
{
    IVar var = k->stmt.v[sweep].var;
    uint64_t row = ix_bit(k->ix, k->row), plain = row | ix_bit(k->ix, var);
    for (size_t i = sweep + 1; i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        const KEx *x = kx(k, s->ex);
        if (s->kind != KS_LET || x->kind != KX_LOAD || seen[s->ex] || !(x->deps & row) || k->buffer.v[x->slot].tile ||
            shared_by_rows(k, x->ix))
            continue;
        seen[s->ex] = true;
        bool moves = direct && !(x->deps & ~plain);
        vec_push(k->arena, out, (Prefetch){s->ex, sweep, moves ? var : -1});
    }
}

static size_t sweep_size(const Kernel *k, uint32_t sweep) { return kernel_loop_end(k, sweep) - sweep; }

/* Memory answers so many requests at a time: all sweeps of a row over one extent share in
 * prefetching, each by its length. */
static void distribute_prefetches(const Kernel *k, Prefetches *out, const uint32_t *sweep, size_t n, IVar var)
{
    size_t all = 0, count = 0, j = 0, at = 0, passed = 0;
    for (size_t i = 0; i < n; i++)
        all += k->stmt.v[sweep[i]].var == var ? sweep_size(k, sweep[i]) : 0;
    for (size_t i = 0; i < out->n; i++)
        count += out->v[i].var == var;
    for (size_t i = 0; i < out->n; i++) {
        if (out->v[i].var != var)
            continue;
        size_t place = (2 * j++ + 1) * all / (2 * count);
        for (;; at++) {
            if (k->stmt.v[sweep[at]].var != var)
                continue;
            size_t size = sweep_size(k, sweep[at]);
            if (passed + size > place)
                break;
            passed += size;
        }
        out->v[i].sweep = sweep[at];
    }
}

static void find_prefetches(const Kernel *k, Prefetches *out)
{
    VEC(uint32_t) sweep = {0};
    bool *seen = NEW_ARRAY(k->arena, bool, k->ex.n);
    int inside = 0; /* loops within the row */
    for (uint32_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_ROWS)
            inside = 0;
        inside += s->kind == KS_LOOP && !s->vector ? 1 : s->kind == KS_END ? -1 : 0;
        if (s->kind != KS_LOOP || !s->vector)
            continue;
        size_t end = kernel_loop_end(k, i);
        if (inside == 0)
            vec_push(k->arena, &sweep, i);
        find_prefetches_of(k, out, i, end, seen, inside == 0);
        i = (uint32_t)end;
    }
    for (size_t i = 0; i < sweep.n; i++) {
        IVar var = k->stmt.v[sweep.v[i]].var;
        bool first = true;
        for (size_t b = 0; b < i; b++)
            first = first && k->stmt.v[sweep.v[b]].var != var;
        if (first)
            distribute_prefetches(k, out, sweep.v, sweep.n, var);
    }
}

void kernel_put_prefetches(Kernel *k)
{
    const Kernel from = *k;
    Prefetches all = {0};
    find_prefetches(&from, &all);
    if (all.n == 0)
        return;
    uint32_t *first = NEW_ARRAY(k->arena, uint32_t, from.stmt.n); /* of a sweep, counted from 1 */
    uint32_t *next = NEW_ARRAY(k->arena, uint32_t, all.n + 1);
    for (size_t j = all.n; j-- > 0;) {
        next[j] = first[all.v[j].sweep];
        first[all.v[j].sweep] = (uint32_t)j + 1;
    }
    k->stmt.v = NULL;
    k->stmt.n = k->stmt.cap = 0;
    for (uint32_t i = 0; i < from.stmt.n; i++) {
        vec_push(k->arena, &k->stmt, from.stmt.v[i]);
        for (uint32_t j = first[i]; j; j = next[j - 1]) {
            const KEx *x = kx(k, all.v[j - 1].load);
            vec_push(k->arena, &k->stmt, (KStmt){.kind = KS_PREFETCH, .root = (uint32_t)k->prefetch.n});
            vec_push(k->arena, &k->prefetch, (KPrefetch){.buffer = x->slot, .at = x->ix});
        }
    }
}
