/* schedule.c - puts the expressions of a kernel into loops.
 *
 * In:  roots and reductions of a Kernel.     Out: Kernel.stmt, statements in order.
 * The one idea: a reduction over a loop ends a sweep; everything that waits for the same number
 * of sweeps and runs over the same loops shares one. An expression stands in the outermost
 * scope that knows all it changes with. What is costly and wanted by two sweeps is kept in a
 * scratch array. A product stands between two sweeps, as soon as its operands are there.
 */
#include "kernel.h"

#include <limits.h>

typedef struct ScheduleUnit {
    Ex reduce; /* or 0: the root */
    Ex kept;   /* or 0; else a value that is put into its array */
    uint32_t root;
} ScheduleUnit;

typedef struct Loop {
    int stage;
    KNest nest;
    uint32_t carry; /* scalar accumulators live inside this many of the loops */
    uint32_t tile;  /* 1 + the one that it fills, where each has a loop of its own; else 0 */
    bool keeps;     /* only fills arrays for others */
    VEC(ScheduleUnit) unit;
} Loop;

typedef struct Sched {
    Kernel *k;
    VEC(Loop) loop;
    bool *seen, *have, *have_var, *needed;
    int batches;
    VEC(Ex) call; /* costly functions of the row */
    uint32_t calls_of[OP_COUNT];
    bool *multiplied;   /* products that are put */
    VEC(uint32_t) open; /* as in the verifier: what to forget at the end of a scope */
    uint64_t base;      /* variables of the row itself */
    int now;            /* loop being emitted, -1 outside */
    int64_t array_bytes, matrix_bytes;
    uint32_t *tried, round; /* what a walk has seen: expressions are a DAG, not a tree */
    bool *waiting;          /* what waits() said of it in this round */
} Sched;
enum { VAR_MARK = 1 << 30, ARRAY_BYTES_MAX = 96 * 1024, COSTLY = 5 };
/* Matrices that a device keeps whatever room there is: their elements, and the bytes of all. */
enum { MATRIX_MAX = 64, MATRICES_BYTES = 8192 };

/* What a unit computes in its loops. */
static Ex value_of_unit(const Sched *s, const ScheduleUnit *u)
{
    return u->reduce ? s->k->ex.v[u->reduce].in[0] : u->kept ? u->kept : s->k->root.v[u->root].value;
}

static bool nest_equal(const KNest *a, const KNest *b)
{
    return a->n == b->n && memcmp(a->var, b->var, a->n * sizeof a->var[0]) == 0;
}

/* The loop variables an expression changes with, in the order of their numbers; a device's threads may want another (gpu/nests.c). */
static KNest free_nest(const Sched *s, uint64_t deps)
{
    KNest n = {0};
    const IxTable *t = s->k->ix;
    deps &= ~s->base;
    for (int bit = 0; bit < t->loops; bit++) {
        if (!(deps >> bit & 1))
            continue;
        if (n.n == NEST_MAX)
            vwn_bug(s->k->ctx, "a kernel nests too many loops");
        n.var[n.n++] = t->loop[bit];
    }
    return n;
}

/* ---- which loops there are ---- */

/* Is e, or a load from its tile, computed under `under`? */
static bool has_part(Sched *s, Ex under, Ex e)
{
    const KEx *x = kx(s->k, under), *y = kx(s->k, e);
    if (!under || s->tried[under] == s->round)
        return false;
    s->tried[under] = s->round;
    if (under == e || (x->kind == KX_LOAD && y->kind == KX_LOAD && x->slot == y->slot))
        return true;
    for (int i = 0; i < 3 && x->kind != KX_REDUCE; i++)
        if (has_part(s, x->in[i], e))
            return true;
    return false;
}

/* The first load from a tile under e, or 0. */
static Ex find_tile_load(Sched *s, Ex e)
{
    const KEx *x = kx(s->k, e);
    if (!e || s->tried[e] == s->round)
        return 0;
    s->tried[e] = s->round;
    if (x->kind == KX_LOAD && s->k->buffer.v[x->slot].tile)
        return e;
    Ex in = 0;
    for (int i = 0; i < 3 && !in && x->kind != KX_REDUCE; i++)
        in = find_tile_load(s, x->in[i]);
    return in;
}

/* A load from a tile under e, or e itself. */
static Ex tile_load(Sched *s, Ex e)
{
    s->round++;
    Ex found = find_tile_load(s, e);
    return found ? found : e;
}

static bool computes(Sched *s, const Loop *l, Ex e)
{
    s->round++;
    for (size_t u = 0; u < l->unit.n; u++)
        if (has_part(s, value_of_unit(s, &l->unit.v[u]), e))
            return true;
    return false;
}

/* The loop that u can join. On a device each tile is filled in a loop of its own, so that few are needed at one time:
 * another root goes where its value is computed, or at least the tile loaded that it comes from; so it needs none any
 * longer. */
static Loop *find_loop(Sched *s, int stage, const KNest *nest, uint32_t carry, ScheduleUnit u)
{
    const KRoot *r = u.reduce || !s->k->target->threads ? NULL : &s->k->root.v[u.root];
    uint32_t tile = r && s->k->buffer.v[r->buffer].tile ? r->buffer + 1 : 0;
    Ex of[2] = {r ? r->value : 0, r ? tile_load(s, r->value) : 0};
    Loop *found = NULL;
    int likes = 0; /* 1: any; 2: the tile; 3: the value */
    for (size_t i = 0; i < s->loop.n; i++) {
        Loop *l = &s->loop.v[i];
        if (l->keeps || l->stage != stage || !nest_equal(&l->nest, nest) || l->carry != carry ||
            (tile && l->tile && l->tile != tile))
            continue;
        int like = !r || tile ? 1 : computes(s, l, of[0]) ? 3 : computes(s, l, of[1]) ? 2 : 1;
        if (like > likes)
            found = l, likes = like;
    }
    if (found && tile)
        found->tile = tile;
    return found;
}

static void add_unit(Sched *s, int stage, const KNest *nest, uint32_t carry, ScheduleUnit u)
{
    Loop *l = find_loop(s, stage, nest, carry, u);
    if (!l) {
        vec_push(s->k->arena, &s->loop, (Loop){.stage = stage, .nest = *nest, .carry = carry});
        l = find_loop(s, stage, nest, carry, u);
    }
    vec_push(s->k->arena, &l->unit, u);
}

/* Does some load under e walk through memory with v one element at a time? */
static bool unit_stride(Sched *s, Ex e, IVar v)
{
    const KEx *x = kx(s->k, e);
    int64_t slope;
    if (!e || s->tried[e] == s->round || !(x->deps & ix_bit(s->k->ix, v)))
        return false;
    s->tried[e] = s->round;
    if (x->kind == KX_LOAD && ix_slope(s->k->ix, x->ix, v, &slope) && slope == 1)
        return true;
    for (int i = 0; i < 3; i++)
        if (unit_stride(s, x->in[i], v))
            return true;
    return false;
}

/* How many loads under e are not contiguous along v? */
static int loads_apart(Sched *s, Ex e, IVar v)
{
    const KEx *x = kx(s->k, e);
    int64_t slope;
    if (!e || s->tried[e] == s->round || !(x->deps & ix_bit(s->k->ix, v)) || x->kind == KX_REDUCE)
        return 0;
    s->tried[e] = s->round;
    int n = x->kind == KX_LOAD && !(ix_slope(s->k->ix, x->ix, v, &slope) && slope == 1);
    for (int i = 0; i < 3; i++)
        n += loads_apart(s, x->in[i], v);
    return n;
}

/* Is the reduction better done along `inner`, its own innermost loop, than beside `lane`? */
static bool runs_along(Sched *s, Ex body, IVar inner, IVar lane)
{
    s->round++;
    bool along = unit_stride(s, body, inner);
    s->round++;
    bool beside = unit_stride(s, body, lane);
    if (!along || !beside)
        return along || !beside;
    s->round++;
    int apart = loads_apart(s, body, inner);
    s->round++;
    return apart <= loads_apart(s, body, lane);
}

static int64_t elements_of(const Sched *s, const KNest *nest)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < nest->n; i++)
        n *= ix_info(s->k->ix, nest->var[i])->hi + 1;
    return n;
}

static int new_array(Sched *s, const KNest *nest, DType dtype)
{
    int64_t n = elements_of(s, nest);
    vec_push(s->k->arena, &s->k->array, (KArray){.nest = *nest, .dtype = dtype, .elements = n});
    s->array_bytes += n * (dtype == DT_INT ? 8 : 4);
    return (int)s->k->array.n - 1;
}

/* A device's kernel whose threads share loops alone. */
static bool is_alone(const Sched *s) { return s->k->target->threads && !s->k->product.n; }

/* On a device a thread adds up a few elements by itself, and the sum stays in a register. */
static bool is_short_sum(const Sched *s, const KNest *over)
{
    enum { SHORT = 16 };
    return is_alone(s) && elements_of(s, over) <= SHORT;
}

/* Or a column of them, where the other loop is as long and lies along memory. */
static bool is_column_sum(const Sched *s, const KNest *over, const KNest *rest)
{
    enum { COLUMN = 64 };
    return is_alone(s) && rest->n == 1 && over->n == 1 && elements_of(s, over) <= COLUMN &&
           elements_of(s, rest) >= COLUMN;
}

/* Sums along a long loop for each of a few elements: a thread has all of them in registers. */
static bool is_sum_of_few(const Sched *s, const KNest *over, const KNest *rest)
{
    enum { FEW = 32, LONG = 256 };
    for (uint32_t i = 0; i < rest->n; i++)
        if (!ix_literal(s->k->ix, ix_info(s->k->ix, rest->var[i])->extent))
            return false;
    return is_alone(s) && over->n == 1 && elements_of(s, over) >= LONG && elements_of(s, rest) <= FEW;
}

/* A reduction whose result changes with loops of the row (the sum over `over` for each `rest`)
 * is held in an array. The rest runs outside when memory is contiguous along the reduced axis,
 * more of it than along the rest. */
static void add_reduce(Sched *s, Ex e)
{
    KEx *x = &s->k->ex.v[e];
    KNest rest = free_nest(s, x->deps), nest = {0};
    uint32_t carry = 0;
    if (rest.n) {
        IVar inner = x->over.var[x->over.n - 1], lane = rest.var[rest.n - 1];
        if (is_short_sum(s, &x->over) || is_column_sum(s, &x->over, &rest) ||
            (!is_sum_of_few(s, &x->over, &rest) && runs_along(s, x->in[0], inner, lane)))
            carry = rest.n;
        x->array = new_array(s, &rest, x->type == KT_INT ? DT_INT : DT_REAL);
    }
    if (rest.n + x->over.n > NEST_MAX)
        vwn_bug(s->k->ctx, "a kernel nests too many loops");
    bool rest_first = carry || !rest.n;
    const KNest *order[2] = {rest_first ? &rest : &x->over, rest_first ? &x->over : &rest};
    for (int i = 0; i < 2; i++)
        for (uint32_t j = 0; j < order[i]->n; j++)
            nest.var[nest.n++] = order[i]->var[j];
    add_unit(s, x->stage - 1, &nest, carry, (ScheduleUnit){.reduce = e});
}

static void collect(Sched *s, Ex e);

static void collect_ix(Sched *s, Ix ix)
{
    const IxForm *f = ix_form(s->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(s->k->ix, f->t[i].var);
        if (v->kind == IV_VALUE)
            collect(s, v->value);
        else if (v->kind == IV_DIV || v->kind == IV_MOD)
            collect_ix(s, v->base);
    }
}

static void collect(Sched *s, Ex e)
{
    if (!e || s->seen[e])
        return;
    s->seen[e] = true;
    KEx x = *kx(s->k, e);
    for (int i = 0; i < 3; i++)
        collect(s, x.in[i]);
    collect_ix(s, x.ix);
    if (x.kind == KX_REDUCE)
        add_reduce(s, e);
}

static bool is_tile(const Kernel *k, const KRoot *r) { return k->buffer.v[r->buffer].tile; }

/* Roots join the first sweep over their loops that can hold them; where there is none, all
 * roots over the same loops share one of their own, after the last of them is ready. A tile is
 * filled as soon as it can be. */
static void place_roots(Sched *s)
{
    Kernel *k = s->k;
    for (size_t r = 0; r < k->root.n; r++) {
        KRoot *root = &k->root.v[r];
        root->stage = kx(k, root->value)->stage;
        if (is_tile(k, root))
            add_unit(s, root->stage, &root->nest, 0, (ScheduleUnit){.root = (uint32_t)r});
    }
    for (size_t r = 0; r < k->root.n; r++) {
        KRoot *root = &k->root.v[r];
        int best = -1;
        if (is_tile(k, root))
            continue;
        for (size_t i = 0; i < s->loop.n; i++)
            if (nest_equal(&s->loop.v[i].nest, &root->nest) && s->loop.v[i].carry == 0 &&
                s->loop.v[i].stage >= root->stage && (best < 0 || s->loop.v[i].stage < best))
                best = s->loop.v[i].stage;
        if (best < 0 || !root->nest.n) {
            best = root->stage;
            for (size_t q = 0; q < k->root.n; q++)
                if (root->nest.n && nest_equal(&k->root.v[q].nest, &root->nest) &&
                    kx(k, k->root.v[q].value)->stage > best)
                    best = kx(k, k->root.v[q].value)->stage;
        }
        root->stage = best;
    }
    for (size_t r = 0; r < k->root.n; r++)
        if (!is_tile(k, &k->root.v[r]))
            add_unit(s, k->root.v[r].stage, &k->root.v[r].nest, 0, (ScheduleUnit){.root = (uint32_t)r});
}

/* ---- scopes ---- */

static void put(Sched *s, KStmt st) { vec_push(s->k->arena, &s->k->stmt, st); }

static void open_scope(Sched *s, KStmt st, IVar v)
{
    put(s, st);
    vec_push(s->k->arena, &s->open, 0);
    if (v) {
        s->have_var[v] = true;
        vec_push(s->k->arena, &s->open, v | VAR_MARK);
    }
}

static void close_scope(Sched *s)
{
    put(s, (KStmt){.kind = KS_END});
    while (s->open.v[s->open.n - 1] != 0) {
        uint32_t x = s->open.v[--s->open.n];
        if (x & VAR_MARK)
            s->have_var[x & ~VAR_MARK] = false;
        else
            s->have[x] = false;
    }
    s->open.n--;
}

static void define(Sched *s, Ex e)
{
    s->have[e] = true;
    vec_push(s->k->arena, &s->open, e);
}

static void place(Sched *s, Ex e, uint64_t scope);

static void place_ix(Sched *s, Ix ix, uint64_t scope)
{
    uint32_t n = ix_form(s->k->ix, ix)->n;
    for (uint32_t i = 0; i < n; i++) {
        IVar v = ix_form(s->k->ix, ix)->t[i].var;
        const IVarInfo *info = ix_info(s->k->ix, v);
        if (info->kind == IV_VALUE) {
            place(s, info->value, scope);
        } else if ((info->kind == IV_DIV || info->kind == IV_MOD) && !s->have_var[v]) {
            place_ix(s, info->base, scope);
            if (info->deps & ~scope)
                continue;
            put(s, (KStmt){.kind = KS_VAR, .var = v});
            s->have_var[v] = true;
            vec_push(s->k->arena, &s->open, v | VAR_MARK);
        }
    }
}

/* Computes e if everything it changes with is in scope, else the parts of it that can be. */
static void place(Sched *s, Ex e, uint64_t scope)
{
    if (!e || s->have[e] || s->tried[e] == s->round || kx(s->k, e)->kind == KX_CONST)
        return;
    const KEx x = *kx(s->k, e);
    s->tried[e] = s->round;
    bool here = !(x.deps & ~scope);
    if (x.array >= 0 && (x.kind == KX_REDUCE || x.home != s->now)) {
        if (here) {
            put(s, (KStmt){.kind = KS_ARRAY_GET, .ex = e, .array = x.array});
            define(s, e);
        }
        return;
    }
    if (x.kind == KX_REDUCE) {
        if (here)
            vwn_bug(s->k->ctx, "a reduction is wanted before its sweep");
        return;
    }
    for (int i = 0; i < 3; i++)
        place(s, x.in[i], scope);
    place_ix(s, x.ix, scope);
    if (!here)
        return;
    put(s, (KStmt){.kind = KS_LET, .ex = e});
    define(s, e);
    if (x.array >= 0)
        put(s, (KStmt){.kind = KS_ARRAY_PUT, .ex = e, .array = x.array});
}

static void place_unit(Sched *s, const ScheduleUnit *u, uint64_t scope)
{
    s->round++;
    place(s, value_of_unit(s, u), scope);
    if (!u->reduce && !u->kept)
        place_ix(s, s->k->root.v[u->root].at, scope);
}

/* ---- scratch arrays for what two sweeps want ---- */

/* How much there is to do for e inside the loops: operations and loads, each counted once per
 * use. */
static int weight(const Sched *s, Ex e, int limit)
{
    const KEx *x = kx(s->k, e);
    if (!e || !(x->deps & ~s->base) || limit <= 0)
        return 0;
    int w = kx_cost(x);
    for (int i = 0; i < 3 && w < limit && x->kind != KX_REDUCE; i++)
        w += weight(s, x->in[i], limit - w);
    return w;
}

/* What there is no room for is computed again. A block of a device has its totals beside the arrays. */
static int64_t room(const Sched *s) { return s->k->target->threads ? s->k->device.shared / 8 * 7 : ARRAY_BYTES_MAX; }

/* A chain of small matrices, of which each is made of the one before it, would be computed from its beginning in
 * every sweep: a text as long as the square of the chain. So a device keeps them. */
static bool is_matrix(const Sched *s, const KNest *own)
{
    int64_t n = 1;
    for (uint32_t i = 0; i < own->n && n <= MATRIX_MAX; i++)
        n *= ix_info(s->k->ix, own->var[i])->hi + 1;
    return s->k->target->threads && own->n > 0 && n <= MATRIX_MAX;
}

/* The same beside what is kept in arrays already. */
static int weight_beside(const Sched *s, Ex e, int limit)
{
    const KEx *x = kx(s->k, e);
    if (!e || !(x->deps & ~s->base) || limit <= 0 || x->array >= 0)
        return x->array >= 0;
    int w = kx_cost(x);
    for (int i = 0; i < 3 && w < limit && x->kind != KX_REDUCE; i++)
        w += weight_beside(s, x->in[i], limit - w);
    return w;
}

/* Of a device: is there so little to do, beside what is kept in arrays already, that another array would only take room? */
static bool is_beside(const Sched *s, Ex e, const KNest *own)
{
    enum { LITTLE = 3 };
    return is_alone(s) && !is_matrix(s, own) && weight_beside(s, e, LITTLE + 1) <= LITTLE;
}

/* Of a device: does every thread compute what two sweeps want so long that all of it is kept, for two loops? */
static bool is_heavy(const Sched *s, Ex e, const KNest *own)
{
    enum { HEAVY = 64 };
    return is_alone(s) && own->n == 2 && 8 * elements_of(s, own) <= room(s) && weight_beside(s, e, HEAVY) >= HEAVY;
}

/* Truth values have no arrays: a test of places is no work. */
static bool keep(Sched *s, KEx *x, const KNest *own)
{
    if (x->type == KT_BOOL)
        return false;
    int64_t bytes = elements_of(s, own) * 4;
    bool matrix = is_matrix(s, own) && s->matrix_bytes + bytes <= MATRICES_BYTES;
    if (x->array < 0 && (matrix || s->array_bytes + bytes <= room(s))) {
        x->array = new_array(s, own, x->type == KT_INT ? DT_INT : DT_REAL);
        s->matrix_bytes += matrix ? bytes : 0;
    }
    return x->array >= 0;
}

/* Of a device: would the loop compute a few values many times over, in a row with products as often as there are streams? */
static bool wants_before(const Sched *s, int loop, const KNest *own)
{
    enum { TIMES = 8, TIMES_ALONE = 16 };
    const Loop *l = &s->loop.v[loop];
    const int64_t times = is_alone(s) ? TIMES_ALONE : TIMES;
    return s->k->target->threads && !s->k->flat && !l->keeps && own->n == 1 && elements_of(s, own) >= times &&
           elements_of(s, &l->nest) >= times * elements_of(s, own);
}

/* What a loop in front of others needs of what changes with it, it computes: no later one does it. */
static void compute_there(Sched *s, Ex e, int loop)
{
    KEx *x = &s->k->ex.v[e];
    if (!e || x->home == loop || x->kind == KX_REDUCE || !(x->deps & ~s->base))
        return;
    const Loop *l = &s->loop.v[loop], *home = x->home < 0 ? NULL : &s->loop.v[x->home];
    if (home && (home->keeps ? home->stage <= l->stage : home->stage < l->stage))
        return;
    x->home = loop;
    for (int i = 0; i < 3; i++)
        compute_there(s, s->k->ex.v[e].in[i], loop);
}

/* A loop in front of others fills its array. */
static void compute_before(Sched *s, Ex e, const KNest *own)
{
    KEx *x = &s->k->ex.v[e];
    size_t i = 0;
    while (i < s->loop.n &&
           !(s->loop.v[i].keeps && s->loop.v[i].stage == x->stage && nest_equal(&s->loop.v[i].nest, own)))
        i++;
    if (i == s->loop.n)
        vec_push(s->k->arena, &s->loop, (Loop){.stage = x->stage, .nest = *own, .keeps = true});
    compute_there(s, e, (int)i);
    vec_push(s->k->arena, &s->loop.v[i].unit, (ScheduleUnit){.kept = e});
}

static void find_shared(Sched *s, int loop, uint64_t outside, Ex e);

static void find_shared_ix(Sched *s, int loop, uint64_t outside, Ix ix)
{
    const IxForm *f = ix_form(s->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(s->k->ix, f->t[i].var);
        if (v->kind == IV_VALUE)
            find_shared(s, loop, outside, v->value);
        else if (v->kind == IV_DIV || v->kind == IV_MOD)
            find_shared_ix(s, loop, outside, v->base);
    }
}

static void find_shared(Sched *s, int loop, uint64_t outside, Ex e)
{
    KEx *x = &s->k->ex.v[e];
    if (!e || s->seen[e] || !(x->deps & ~outside) || x->kind == KX_REDUCE || (x->array >= 0 && x->home != loop))
        return;
    s->seen[e] = true;
    KNest own = free_nest(s, x->deps);
    if (((own.n == 1 || is_matrix(s, &own)) && weight(s, e, COSTLY) >= COSTLY && !is_beside(s, e, &own)) ||
        is_heavy(s, e, &own)) {
        if (x->home < 0 && wants_before(s, loop, &own) && keep(s, x, &own)) {
            compute_before(s, e, &own);
            return;
        }
        if (x->home < 0)
            x->home = loop;
        else if (x->home != loop && keep(s, x, &own))
            return;
    }
    for (int i = 0; i < 3; i++)
        find_shared(s, loop, outside, s->k->ex.v[e].in[i]);
    find_shared_ix(s, loop, outside, s->k->ex.v[e].ix);
}

static void share_costly(Sched *s, const int *order)
{
    for (size_t i = 0, n = s->loop.n; i < n; i++) {
        memset(s->seen, 0, s->k->ex.n);
        for (size_t u = 0; u < s->loop.v[order[i]].unit.n; u++) {
            const ScheduleUnit *unit = &s->loop.v[order[i]].unit.v[u];
            find_shared(s, order[i], s->base, value_of_unit(s, unit));
            unit = &s->loop.v[order[i]].unit.v[u];
            if (!unit->reduce)
                find_shared_ix(s, order[i], s->base, s->k->root.v[unit->root].at);
        }
    }
}

/* ---- emission ---- */

static void start_accs(Sched *s, const Loop *l)
{
    for (size_t u = 0; u < l->unit.n; u++) {
        Ex e = l->unit.v[u].reduce;
        if (e && (kx(s->k, e)->array < 0 || l->carry))
            put(s, (KStmt){.kind = KS_ACC, .ex = e}), define(s, e);
    }
}

static void finish_accs(Sched *s, const Loop *l)
{
    for (size_t u = 0; u < l->unit.n; u++) {
        Ex e = l->unit.v[u].reduce;
        if (e && l->carry)
            put(s, (KStmt){.kind = KS_ARRAY_PUT, .ex = e, .array = kx(s->k, e)->array});
    }
}

static void emit_body(Sched *s, const Loop *l, uint64_t scope)
{
    for (size_t u = 0; u < l->unit.n; u++) {
        const ScheduleUnit *unit = &l->unit.v[u];
        place_unit(s, unit, scope);
        if (unit->kept)
            continue;
        if (!unit->reduce) {
            bool sink = s->k->root.v[unit->root].kind == KR_SINK;
            put(s, (KStmt){.kind = sink ? KS_SINK : KS_STORE, .root = unit->root});
            continue;
        }
        int array = kx(s->k, unit->reduce)->array;
        if (array >= 0 && !l->carry)
            put(s, (KStmt){.kind = KS_ARRAY_ADD, .ex = unit->reduce, .array = array});
        else
            put(s, (KStmt){.kind = KS_ACC_ADD, .ex = unit->reduce});
    }
}

static void emit_nest(Sched *s, const Loop *l, uint32_t depth, uint64_t scope)
{
    for (size_t u = 0; u < l->unit.n; u++)
        if (depth < l->nest.n)
            place_unit(s, &l->unit.v[u], scope);
    if (depth == l->carry)
        start_accs(s, l);
    if (depth == l->nest.n) {
        emit_body(s, l, scope);
        return;
    }
    KStmt st = {.kind = KS_LOOP, .var = l->nest.var[depth], .simd = depth + 1 == l->nest.n};
    st.acc = (uint32_t)s->k->acc.n;
    for (size_t u = 0; u < l->unit.n; u++) {
        Ex e = l->unit.v[u].reduce;
        if (st.simd && e && (kx(s->k, e)->array < 0 || l->carry))
            vec_push(s->k->arena, &s->k->acc, e);
    }
    st.n_acc = (uint32_t)s->k->acc.n - st.acc;
    open_scope(s, st, st.var);
    emit_nest(s, l, depth + 1, scope | ix_bit(s->k->ix, st.var));
    close_scope(s);
    if (depth == l->carry)
        finish_accs(s, l);
}

/* ---- costly functions of the row ---- */

enum { BATCH_MIN = 4 };

static bool is_call(const Sched *s, Ex e)
{
    const KEx *x = kx(s->k, e);
    return s->needed[e] && x->kind == KX_OP && kx_cost(x) >= 16 && !x->in[1] && x->type == KT_REAL && x->deps &&
           !(x->deps & ~s->base);
}

static void find_calls(Sched *s)
{
    for (Ex e = 1; e < s->k->ex.n; e++)
        if (is_call(s, e)) {
            vec_push(s->k->arena, &s->call, e);
            s->calls_of[kx(s->k, e)->op]++;
        }
}

static bool batchable(const Sched *s, Ex e, int stage)
{
    const KEx *x = kx(s->k, e);
    return !s->have[e] && is_call(s, e) && x->stage == stage;
}

/* Does the computation of e go through something else of this stage that is to be batched? */
static bool waits(Sched *s, Ex e, int stage)
{
    const KEx *x = kx(s->k, e);
    if (!e || s->have[e] || x->stage < stage)
        return false;
    if (s->tried[e] == s->round)
        return s->waiting[e];
    bool found = false;
    for (int i = 0; i < 3 && !found; i++)
        found = batchable(s, x->in[i], stage) || waits(s, x->in[i], stage);
    s->tried[e] = s->round;
    return s->waiting[e] = found;
}

/* One function of many elements of the row becomes one vector loop. */
static bool batch(Sched *s, Op op, int stage)
{
    uint32_t n = 0;
    VEC(Ex) found = {0};
    if (s->calls_of[op] < BATCH_MIN)
        return false;
    s->round++;
    for (size_t i = 0; i < s->call.n; i++) {
        Ex e = s->call.v[i];
        if (kx(s->k, e)->op == op && batchable(s, e, stage) && !waits(s, e, stage))
            vec_push(s->k->arena, &found, e);
    }
    if (found.n < BATCH_MIN)
        return false;
    int id = s->batches++;
    s->round++;
    for (size_t i = 0; i < found.n; i++)
        place(s, kx(s->k, found.v[i])->in[0], s->base);
    for (size_t i = 0; i < found.n; i++, n++)
        put(s, (KStmt){.kind = KS_BATCH_IN, .ex = found.v[i], .array = id, .at = n, .n_acc = (uint32_t)found.n});
    put(s, (KStmt){.kind = KS_BATCH_RUN, .ex = found.v[0], .array = id, .n_acc = n});
    for (size_t i = 0; i < found.n; i++) {
        put(s, (KStmt){.kind = KS_BATCH_OUT, .ex = found.v[i], .array = id, .at = (uint32_t)i});
        define(s, found.v[i]);
    }
    return true;
}

static void batch_stage(Sched *s, int stage)
{
    for (bool again = true; again;) {
        again = false;
        for (int op = 1; op < OP_COUNT; op++)
            again |= batch(s, (Op)op, stage);
    }
}

static void emit_loop(Sched *s, int index)
{
    const Loop *l = &s->loop.v[index];
    s->now = index;
    for (size_t u = 0; u < l->unit.n; u++) {
        Ex e = l->unit.v[u].reduce;
        if (e && kx(s->k, e)->array >= 0 && !l->carry)
            put(s, (KStmt){.kind = KS_ARRAY_FILL, .ex = e, .array = kx(s->k, e)->array});
    }
    emit_nest(s, l, 0, s->base);
    s->now = -1;
}

/* The products that need no more than the sweeps before this stage. */
static void put_products(Sched *s, int stage)
{
    for (uint32_t i = 0; i < s->k->product.n; i++)
        if (!s->multiplied[i] && s->k->product.v[i].stage <= stage) {
            s->multiplied[i] = true;
            put(s, (KStmt){.kind = KS_PRODUCT, .root = i});
        }
}

/* by stage, those that keep values for others first, then as they were found */
static bool is_later(const Loop *a, const Loop *b)
{
    return a->stage != b->stage ? a->stage > b->stage : b->keeps && !a->keeps;
}

static int *loop_order(Sched *s)
{
    int *order = NEW_ARRAY(s->k->arena, int, s->loop.n + 1);
    for (int i = 0; i < (int)s->loop.n; i++) {
        int at = i;
        for (; at > 0 && is_later(&s->loop.v[order[at - 1]], &s->loop.v[i]); at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    return order;
}

/* ---- divisions ---- */

/* Of a device, where a division takes ten times as long as a product: what divides several numbers is divided by once; so is
 * a number that no row changes, and one whose reciprocal is there. */
void kernel_share_reciprocals(Kernel *k)
{
    enum { SEVERAL = 3 };
    Ex n = (Ex)k->ex.n;
    uint32_t *divides = NEW_ARRAY(k->arena, uint32_t, n);
    for (Ex e = 1; e < n; e++) {
        const KEx *x = kx(k, e);
        double one;
        if (x->kind == KX_OP && x->op == OP_DIV && x->type == KT_REAL && x->deps)
            divides[x->in[1]] += !kx(k, x->in[1])->deps                        ? SEVERAL
                                 : kx_is_number(k, x->in[0], &one) && one == 1 ? SEVERAL - 1
                                                                               : 1;
    }
    for (Ex e = 1; e < n; e++) {
        const KEx x = *kx(k, e);
        if (x.kind != KX_OP || x.op != OP_DIV || x.type != KT_REAL || divides[x.in[1]] < SEVERAL ||
            kx(k, x.in[0])->kind == KX_CONST)
            continue;
        Ex one[2] = {kx_number(k, KT_REAL, 1, 0), x.in[1]}, once = kx_op(k, OP_DIV, KT_REAL, one, 2, 0);
        k->ex.v[e].op = OP_MUL;
        k->ex.v[e].in[1] = once;
    }
}

/* Has a row of a device's kernel arrays, but so little shared memory that registers say how many blocks there are? Then what no row
 * changes is loaded where it is wanted, and has none before: a block has one such row. */
static bool is_once(const Sched *s)
{
    enum { LITTLE = 36 * 1024 };
    return s->k->target->threads && !s->k->part && !s->k->flat && s->array_bytes > 0 && s->array_bytes <= LITTLE;
}

/* Every sum over rows has one partial sum in its buffer for each partition. */
static void open_partition(Sched *s)
{
    open_scope(s, (KStmt){.kind = KS_PART}, s->k->part);
    for (uint32_t b = 0; b < s->k->buffer.n; b++)
        if (s->k->buffer.v[b].part >= 0) {
            put(s, (KStmt){.kind = KS_PART_PLACE, .root = b});
            put(s, (KStmt){.kind = KS_PART_FILL, .root = b});
        }
}

void kernel_schedule(Kernel *k)
{
    Sched s = {.k = k, .now = -1};
    s.seen = NEW_ARRAY(k->arena, bool, k->ex.n);
    s.have = NEW_ARRAY(k->arena, bool, k->ex.n);
    s.tried = NEW_ARRAY(k->arena, uint32_t, k->ex.n);
    s.waiting = NEW_ARRAY(k->arena, bool, k->ex.n);
    s.multiplied = NEW_ARRAY(k->arena, bool, k->product.n + 1);
    s.have_var = NEW_ARRAY(k->arena, bool, k->ix->var.n);
    s.base = ix_bit(k->ix, k->row) | (k->part ? ix_bit(k->ix, k->part) : 0);
    for (size_t r = 0; r < k->root.n; r++) {
        collect(&s, k->root.v[r].value);
        collect_ix(&s, k->root.v[r].at);
    }
    s.needed = NEW_ARRAY(k->arena, bool, k->ex.n);
    memcpy(s.needed, s.seen, k->ex.n);
    find_calls(&s);
    place_roots(&s);
    int *order = loop_order(&s);
    share_costly(&s, order);
    order = loop_order(&s);
    for (size_t i = 0; i < s.loop.n && !is_once(&s); i++) { /* what no row changes */
        s.now = (int)i;
        for (size_t u = 0; u < s.loop.v[i].unit.n; u++)
            place_unit(&s, &s.loop.v[i].unit.v[u], 0);
    }
    s.now = -1;
    for (size_t a = 0; a < k->array.n; a++)
        put(&s, (KStmt){.kind = KS_ARRAY, .array = (int)a});
    if (k->part)
        open_partition(&s);
    open_scope(&s, (KStmt){.kind = KS_ROWS, .simd = k->flat}, k->row);
    for (size_t i = 0; i < s.loop.n; i++) {
        int stage = s.loop.v[order[i]].stage;
        put_products(&s, stage);
        if (!k->flat && (i == 0 || s.loop.v[order[i - 1]].stage != stage))
            for (int past = i ? s.loop.v[order[i - 1]].stage + 1 : 0; past <= stage; past++)
                batch_stage(&s, past);
        emit_loop(&s, order[i]);
    }
    put_products(&s, INT_MAX);
    close_scope(&s);
    if (k->part)
        close_scope(&s);
}
