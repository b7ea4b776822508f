/* lanes.c - what a row's totals are used for, by the threads that have them.
 *
 * In:  a mapped kernel in which several totals are one step (KStmt.totals): thread number l of
 *      each warp has total number l.
 * Out: the same with columns (KColumn) behind such a step. Thread l computes what is computed of
 *      total l (KS_LANES), and stores it, or adds it to a sum over rows (KS_LANE_STORE). What all
 *      threads want they are given (KS_LANE_TAKE). The statements in whose place these stand are
 *      gone. A total that nothing else wants is its lane's alone (KTotal.alone).
 * Requires: kernel_join_totals().     Proved by: kernel_check(), kernel_race().
 * The one idea: a column is a number of statements that compute alike, each of a total of its
 * own, and differ in places of memory. A warp would compute them one by one in all of its
 * threads; its lanes compute them in one statement. A place of a lane is a form of its number.
 * No other statement of the row touches such places, so any thread may do it.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

#include <inttypes.h>

/* How an expression of one total is computed. */
typedef struct Pattern {
    Buf text; /* the same for all of a column */
    int lane; /* number of the total, or -1: of none yet */
    int nodes, ops;
} Pattern;

/* Expressions that are computed alike, of totals `first` and those behind it; of results their
 * values. */
typedef struct Column {
    uint32_t n, first;
    Ex ex[LANES_MOST];
    uint32_t root[LANES_MOST];
    Ix at[LANES_MOST]; /* of results: where */
} Column;

typedef struct LaneStatement {
    size_t at;
    Column of;  /* of the values of all statements of its column; n is 0: it has none */
    bool root;  /* a store or a sum over rows */
    bool gone;  /* lanes do it, or nobody wants it */
    bool given; /* lanes give it to all threads */
    int ops;
} LaneStatement;

typedef struct Lanes {
    Kernel *k;
    size_t step, end; /* the statement of the totals, and the end of the row */
    KTotals total;
    bool *gone;                   /* by statement: of this step and of those before */
    const bool *given;            /* by expression: all threads have it from lanes of a step before */
    bool *defined;                /* by expression: it has a value in front of the step */
    VEC(IVar) places;             /* quotients and remainders that have one there */
    bool *wanted;                 /* by expression: by a statement that stays */
    VEC(LaneStatement) statement; /* of the row, behind the step, outside of its loops */
    VEC(size_t) batched;          /* statements of batches of which lanes do all */
    uint32_t from;                /* columns of the steps before */
    VEC(KStmt) out;               /* what stands behind the step now */
} Lanes;

/* ---- what is alike ---- */

static int lane_of(const Lanes *l, Ex e)
{
    for (uint32_t i = 0; i < l->total.n; i++)
        if (l->total.of[i].ex == e)
            return (int)i;
    return -1;
}

/* The constant of a form, if that is a number of the text. */
static bool constant_of(const Kernel *k, Ix ix, int64_t *c)
{
    const IxForm *f = ix_form(k->ix, ix);
    *c = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const IxTerm *t = &f->t[i];
        if (t->var)
            continue;
        if (!dim_eq(t->coef, DIM(1)) || kernel_is_argument(k, t, kernel_has_row_offset(k, f), true))
            return false;
        *c = t->mult;
    }
    return true;
}

/* The form without it. */
static Ix without_constant(const Kernel *k, Ix ix)
{
    int64_t c;
    constant_of(k, ix, &c);
    return ix_add(k->ix, ix, ix_const(k->ix, -c));
}

static bool is_of_row(const Kernel *k, Ix ix)
{
    uint64_t row = ix_bit(k->ix, k->row) | (k->part ? ix_bit(k->ix, k->part) : 0);
    int64_t c;
    return !(ix_form(k->ix, ix)->deps & ~row) && !ix_reads_value(k->ix, ix) && constant_of(k, ix, &c);
}

/* A load that any thread may do at any time. */
static bool is_plain_load(const Kernel *k, const KEx *x)
{
    const KBuffer *b = &k->buffer.v[x->slot];
    return x->kind == KX_LOAD && x->type == KT_REAL && !x->in[0] && !b->tile && !b->half && !b->written &&
           is_of_row(k, x->ix);
}

static bool put_pattern(const Lanes *l, Ex e, Pattern *s);

static bool put_pattern_of_op(const Lanes *l, const KEx *x, Pattern *s)
{
    if (x->kind != KX_OP || x->type != KT_REAL)
        return false;
    buf_printf(&s->text, "%u,%" PRId64 "(", x->op, x->i);
    s->ops++;
    for (int i = 0; i < 3; i++)
        if (x->in[i] && (kx(l->k, x->in[i])->type != KT_REAL || !put_pattern(l, x->in[i], s)))
            return false;
    buf_putc(&s->text, ')');
    return true;
}

static bool put_pattern(const Lanes *l, Ex e, Pattern *s)
{
    const Kernel *k = l->k;
    const KEx *x = kx(k, e);
    const Pattern before = *s;
    int lane = lane_of(l, e);
    if (++s->nodes > l->k->target->tuned->lane_nodes_max || (lane >= 0 && s->lane >= 0 && lane != s->lane))
        return false;
    if (lane >= 0) {
        s->lane = lane;
        buf_puts(&s->text, "total");
        return true;
    }
    if (is_plain_load(k, x)) {
        buf_printf(&s->text, "p%u[%u]", x->slot, without_constant(k, x->ix));
        return true;
    }
    if (put_pattern_of_op(l, x, s))
        return true;
    *s = before; /* the text only grew */
    buf_printf(&s->text, "x%u", e);
    return l->defined[e] || x->kind == KX_CONST || x->kind == KX_SCALAR;
}

/* ---- places ---- */

static bool find_places(const int64_t *c, uint32_t n, KPlaces *x)
{
    for (uint32_t of = n; of > 1; of--) {
        *x = (KPlaces){.base = c[0], .along = c[1] - c[0], .across = of < n ? c[of] - c[0] : 0, .of = of};
        uint32_t j = 0;
        while (j < n && c[j] == kernel_place_of(x, j))
            j++;
        if (j == n)
            return true;
    }
    return false;
}

static bool places_of(const Kernel *k, const Ix *ix, uint32_t n, KPlaces *x)
{
    int64_t c[LANES_MOST];
    for (size_t j = 0; j < n; j++)
        if (!constant_of(k, ix[j], &c[j]))
            return false;
    return find_places(c, n, x);
}

/* ---- values of lanes ---- */

static bool is_common(const Lanes *l, const Column *c)
{
    for (uint32_t j = 1; j < c->n; j++)
        if (c->ex[j] != c->ex[0])
            return false;
    return l->defined[c->ex[0]] || kx(l->k, c->ex[0])->kind == KX_CONST;
}

/* Numbers that all of a longer column are computed with are computed for that one. */
static const Column *longest_with(const Lanes *l, const Column *c)
{
    for (size_t i = 0; i < l->statement.n; i++) {
        const Column *of = &l->statement.v[i].of;
        if (!l->statement.v[i].root && of->n > c->n && of->first <= c->first && c->first + c->n <= of->first + of->n &&
            !memcmp(of->ex + (c->first - of->first), c->ex, c->n * sizeof c->ex[0]))
            return of;
    }
    return c;
}

static Column inputs_of(const Kernel *k, const Column *c, int i)
{
    Column in = *c;
    for (uint32_t j = 0; j < c->n; j++)
        in.ex[j] = kx(k, c->ex[j])->in[i];
    return in;
}

static void indices_of(const Kernel *k, const Column *c, Ix *ix)
{
    for (uint32_t j = 0; j < c->n; j++)
        ix[j] = kx(k, c->ex[j])->ix;
}

/* Are the quotients and remainders in it known in front of the step? */
static bool is_placed(const Lanes *l, Ix ix)
{
    const Kernel *k = l->k;
    const IxForm *f = ix_form(k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(k->ix, f->t[i].var);
        bool known = v->kind != IV_DIV && v->kind != IV_MOD;
        for (size_t j = 0; j < l->places.n && !known; j++)
            known = l->places.v[j] == f->t[i].var;
        if (!known)
            return false;
    }
    return true;
}

/* Are all places forms of the lane? */
static bool has_places(const Lanes *l, const Column *c)
{
    const Kernel *k = l->k;
    const KEx *x = kx(k, c->ex[0]);
    KPlaces at;
    Ix ix[LANES_MOST];
    if (is_common(l, c) || lane_of(l, c->ex[0]) >= 0)
        return true;
    indices_of(k, c, ix);
    if (x->kind == KX_LOAD)
        return is_placed(l, x->ix) && places_of(k, ix, c->n, &at);
    for (int i = 0; i < 3; i++) {
        Column in = inputs_of(k, c, i);
        if (x->in[i] && !has_places(l, &in))
            return false;
    }
    return true;
}

/* A new column, and 1. */
static uint32_t add_column(Lanes *l, const Column *c)
{
    Kernel *k = l->k;
    KColumn x = {.first = c->first, .n = c->n, .ex = NEW_ARRAY(k->arena, Ex, c->n)};
    memcpy(x.ex, c->ex, c->n * sizeof *x.ex);
    vec_push(k->arena, &k->device.column, x);
    return (uint32_t)k->device.column.n;
}

static uint32_t known_column(const Lanes *l, const Column *c)
{
    for (size_t i = l->from; i < l->k->device.column.n; i++) {
        const KColumn *x = &l->k->device.column.v[i];
        if (!x->root && x->n == c->n && x->first == c->first && !memcmp(x->ex, c->ex, c->n * sizeof *x->ex))
            return (uint32_t)i + 1;
    }
    return 0;
}

/* The column, and 1, in which lanes have these; 0: they are the same for all, and have a name.
 */
static uint32_t put_value(Lanes *l, const Column *c)
{
    Kernel *k = l->k;
    uint32_t in[3] = {0}, made;
    if (is_common(l, c))
        return 0;
    if (lane_of(l, c->ex[0]) >= 0)
        return l->from + 1;
    c = longest_with(l, c);
    if ((made = known_column(l, c)))
        return made;
    const KEx *x = kx(k, c->ex[0]);
    for (int i = 0; i < 3 && x->kind != KX_LOAD; i++) {
        Column of = inputs_of(k, c, i);
        in[i] = x->in[i] ? put_value(l, &of) : 0;
    }
    made = add_column(l, c);
    KColumn *to = &k->device.column.v[made - 1];
    memcpy(to->in, in, sizeof in);
    if (x->kind == KX_LOAD) {
        Ix ix[LANES_MOST];
        indices_of(k, c, ix);
        places_of(k, ix, c->n, &to->place);
        to->here = !k->part; /* rows of a partition have registers for what a compiler loads early */
    }
    vec_push(k->arena, &l->out, ((KStmt){.kind = KS_LANES, .column = made}));
    return made;
}

/* ---- which statements ---- */

static bool is_root(const Kernel *k, const KStmt *s)
{
    if (!s->one || s->step || (s->kind != KS_STORE && s->kind != KS_SINK))
        return false;
    const KRoot *r = &k->root.v[s->root];
    const KBuffer *b = &k->buffer.v[r->buffer];
    return b->dtype == DT_REAL && !b->tile && !b->half && !b->read && (s->kind == KS_STORE || r->op == OP_SUM) &&
           is_of_row(k, r->at);
}

static bool is_value(const Kernel *k, const KStmt *s)
{
    return !s->step && (s->kind == KS_LET || s->kind == KS_BATCH_OUT) && kx(k, s->ex)->type == KT_REAL;
}

static Ex value_of(const Kernel *k, const KStmt *s) { return is_value(k, s) ? s->ex : k->root.v[s->root].value; }

/* What a statement computes, and how. */
static bool pattern_of(const Lanes *l, const LaneStatement *x, Pattern *s)
{
    const Kernel *k = l->k;
    const KStmt *st = &k->stmt.v[x->at];
    *s = (Pattern){.text = buf_new(k->arena), .lane = -1};
    if (x->root)
        buf_printf(&s->text, "%d:%u[%u]", st->kind, k->root.v[st->root].buffer,
                   without_constant(k, k->root.v[st->root].at));
    else
        buf_puts(&s->text, "let ");
    if (!put_pattern(l, value_of(k, st), s) || s->lane < 0)
        return false;
    buf_putc(&s->text, 0);
    return true;
}

/* Statements that are alike, if they are of totals that follow each other. */
static void put_column(Lanes *l, const Pattern *like, const bool *good, size_t from)
{
    const Kernel *k = l->k;
    size_t of[LANES_MOST] = {0};
    uint32_t n = 0;
    Column c = {.first = LANES_MOST};
    KPlaces places;
    for (size_t i = from; i < l->statement.n; i++) {
        if (!good[i] || strcmp(like[i].text.s, like[from].text.s) != 0)
            continue;
        uint32_t lane = (uint32_t)like[i].lane;
        if (of[lane])
            return;
        of[lane] = i + 1;
        c.first = lane < c.first ? lane : c.first;
        n++;
    }
    for (c.n = 0; c.n < n; c.n++) {
        if (c.first + c.n == LANES_MOST || !of[c.first + c.n])
            return;
        const KStmt *s = &k->stmt.v[l->statement.v[of[c.first + c.n] - 1].at];
        c.ex[c.n] = value_of(k, s);
        c.at[c.n] = is_value(k, s) ? 0 : k->root.v[s->root].at;
        c.root[c.n] = s->root;
    }
    if (n < l->k->target->tuned->column_least || !has_places(l, &c) ||
        (l->statement.v[from].root && !(is_placed(l, c.at[0]) && places_of(k, c.at, n, &places))))
        return;
    for (uint32_t j = 0; j < n; j++)
        l->statement.v[of[c.first + j] - 1].of = c;
}

static void find_columns(Lanes *l)
{
    const Kernel *k = l->k;
    Pattern *like = NEW_ARRAY(k->arena, Pattern, l->statement.n + 1);
    bool *good = NEW_ARRAY(k->arena, bool, l->statement.n + 1);
    for (size_t i = 0; i < l->statement.n; i++)
        good[i] = pattern_of(l, &l->statement.v[i], &like[i]);
    for (size_t i = 0; i < l->statement.n; i++) {
        l->statement.v[i].ops = like[i].ops;
        bool seen = !good[i];
        for (size_t j = 0; j < i && !seen; j++)
            seen = good[j] && strcmp(like[i].text.s, like[j].text.s) == 0;
        if (!seen)
            put_column(l, like, good, i);
    }
}

static void want_all(Lanes *l, const KStmt *s)
{
    const Kernel *k = l->k;
    KTouches of = {0};
    kernel_touches(k, s, &of);
    for (int i = 0; i < 3; i++)
        l->wanted[kx(k, s->ex)->in[i]] = true;
    for (size_t i = 0; i < of.n; i++)
        if (of.v[i].thing == OF_VALUE && of.v[i].how != WRITES)
            l->wanted[of.v[i].number] = true;
}

/* From the end of the row on: whoever stays wants its inputs. Returns whether lanes have
 * anything to do. */
static bool find_wanted(Lanes *l, size_t from, size_t end)
{
    const Kernel *k = l->k;
    size_t next = l->statement.n;
    bool some = false, *kept = NEW_ARRAY(k->arena, bool, k->stmt.n); /* batches: threads still want a number of it */
    for (size_t i = end; i-- > from;) {
        const KStmt *s = &k->stmt.v[i];
        LaneStatement *x = next && l->statement.v[next - 1].at == i ? &l->statement.v[--next] : NULL;
        if (l->gone[i])
            continue;
        if (x) {
            x->gone = x->root ? x->of.n > 0 : !l->wanted[s->ex];
            x->given = !x->root && !x->gone && x->of.n && x->ops >= l->k->target->tuned->lane_ops_least;
            some = some || x->given || (x->root && x->gone);
            if (x->gone || x->given)
                continue;
        }
        if (s->kind == KS_BATCH_OUT)
            kept[s->array] = true;
        if ((s->kind == KS_BATCH_IN || s->kind == KS_BATCH_RUN) && !kept[s->array]) {
            vec_push(k->arena, &l->batched, i);
            continue;
        }
        want_all(l, s);
    }
    return some;
}

/* Does the statement complete a value? Totals of a block do not have it before they are taken. */
static bool completes(const Kernel *k, const KStmt *s)
{
    switch (s->kind) {
    case KS_LET:
    case KS_ARRAY_GET:
    case KS_BATCH_OUT:
    case KS_WARP_TAKE: return true;
    case KS_WARP: return k->device.mapping.row_threads == LANES_MOST;
    default: return false;
    }
}

/* For all threads: what an earlier step has left to its lanes is theirs alone. */
static void define(Lanes *l, const KStmt *s)
{
    const KTotals *t = kernel_totals(l->k, s);
    for (uint32_t j = 0; t && j < t->n; j++)
        l->defined[t->of[j].ex] = l->defined[t->of[j].ex] || !t->of[j].alone;
    if (!t)
        l->defined[s->ex] = true;
}

/* What has a value in front of the step, for all that follows in the row. */
static void find_defined(Lanes *l, size_t step)
{
    const Kernel *k = l->k;
    for (size_t i = 0; i < step; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP && kernel_loop_end(k, i) < step)
            i = kernel_loop_end(k, i);
        else if (s->kind == KS_VAR)
            vec_push(k->arena, &l->places, s->var);
        else if (completes(k, s) && !l->gone[i])
            define(l, s);
    }
    for (Ex e = 0; e < k->ex.n; e++)
        l->defined[e] = l->defined[e] || l->given[e];
}

/* ---- the program ---- */

static void put_root(Lanes *l, const LaneStatement *x)
{
    Kernel *k = l->k;
    const Column *c = &x->of;
    uint32_t values = put_value(l, c), made = add_column(l, c);
    KColumn *to = &k->device.column.v[made - 1];
    to->root = memcpy(NEW_ARRAY(k->arena, uint32_t, c->n), c->root, c->n * sizeof *c->root);
    to->in[0] = values;
    places_of(k, c->at, c->n, &to->place);
    vec_push(k->arena, &l->out, ((KStmt){.kind = KS_LANE_STORE, .column = made}));
}

/* What stands behind the step, and what is gone for that. */
static void put_lanes(Lanes *l)
{
    Column totals = {.n = l->total.n};
    for (uint32_t j = 0; j < l->total.n; j++)
        totals.ex[j] = l->total.of[j].ex;
    add_column(l, &totals);
    for (size_t i = 0; i < l->batched.n; i++)
        l->gone[l->batched.v[i]] = true;
    for (size_t i = 0; i < l->statement.n; i++) {
        const LaneStatement *x = &l->statement.v[i];
        const KStmt *s = &l->k->stmt.v[x->at];
        l->gone[x->at] = l->gone[x->at] || x->gone || x->given;
        uint32_t j = 0;
        while (x->of.n && j < x->of.n && x->of.ex[j] != value_of(l->k, s))
            j++;
        if (x->root && x->gone && j == 0) {
            put_root(l, x);
        } else if (x->given) {
            KStmt take = {
                .kind = KS_LANE_TAKE, .ex = s->ex, .column = put_value(l, &x->of), .lane = (uint8_t)(x->of.first + j)};
            vec_push(l->k->arena, &l->out, take);
        }
    }
}

/* Are there lanes at this step of a row that have anything to do? */
static bool find_lanes(Lanes *l, size_t rows)
{
    const Kernel *k = l->k;
    l->defined = NEW_ARRAY(k->arena, bool, k->ex.n);
    l->wanted = NEW_ARRAY(k->arena, bool, k->ex.n);
    l->from = (uint32_t)k->device.column.n;
    l->end = kernel_loop_end(k, rows);
    find_defined(l, l->step);
    for (size_t i = l->step + 1; i < l->end; i++) {
        const KStmt *s = &k->stmt.v[i];
        bool root = is_root(k, s);
        if (s->kind == KS_LOOP)
            i = kernel_loop_end(k, i);
        else if ((root || is_value(k, s)) && !l->gone[i])
            vec_push(k->arena, &l->statement, ((LaneStatement){.at = i, .root = root}));
    }
    find_columns(l);
    return find_wanted(l, l->step + 1, l->end);
}

/* What stands behind the last statement of a step is put there when all steps are known: their
 * statements have numbers till then. */
typedef struct Insertion {
    size_t behind;
    const KStmt *s;
    size_t n;
} Insertion;

void kernel_use_lanes(Kernel *k)
{
    VEC(Insertion) all = {0};
    VEC(KStmt) out = {0};
    size_t rows = 0, next = 0;
    bool *gone = NEW_ARRAY(k->arena, bool, k->stmt.n + 1);
    bool *given = NEW_ARRAY(k->arena, bool, k->ex.n);
    while (rows < k->stmt.n && k->stmt.v[rows].kind != KS_ROWS)
        rows++;
    if (k->device.mapping.by_row || k->device.mapping.lanes != LANES_MOST || rows == k->stmt.n)
        return;
    for (size_t i = rows + 1, end = kernel_loop_end(k, rows); i < end; i++) {
        KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP)
            i = kernel_loop_end(k, i);
        if (!s->totals || !completes(k, s))
            continue;
        Lanes l = {.k = k, .step = i, .total = *kernel_totals(k, s), .gone = gone, .given = given};
        if (!find_lanes(&l, rows))
            continue;
        put_lanes(&l);
        s->column = l.from + 1;
        for (uint32_t j = 0; j < l.total.n; j++)
            l.total.of[j].alone = !l.wanted[l.total.of[j].ex];
        for (size_t j = 0; j < l.out.n; j++)
            given[l.out.v[j].ex] |= l.out.v[j].kind == KS_LANE_TAKE;
        vec_push(k->arena, &all, ((Insertion){i, l.out.v, l.out.n}));
    }
    for (size_t i = 0; i < k->stmt.n && all.n; i++) {
        if (!gone[i])
            vec_push(k->arena, &out, k->stmt.v[i]);
        for (size_t j = 0; next < all.n && all.v[next].behind == i && j < all.v[next].n; j++)
            vec_push(k->arena, &out, all.v[next].s[j]);
        next += next < all.n && all.v[next].behind == i;
    }
    if (all.n)
        k->stmt.v = out.v, k->stmt.n = out.n, k->stmt.cap = out.cap;
}
