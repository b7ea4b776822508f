/* emit_lanes.c - what a row's totals are used for, by the threads that have them.
 *
 * In:  a step of totals, of which thread number l of each warp has number l, and the statements of the row behind it.
 *      Out: which of these statements are gone; the text in their place: thread l computes what is computed of total l, the first warp
 *      stores it, or adds it to sums over rows, and what all threads want they are given.
 * The one idea: a column is a number of statements that compute alike, each of a total of its own, and differ in places of memory; what a
 * warp would compute one by one, in all of its threads, is one statement of its lanes. A place of a lane is a form of its number. Such
 * places no other statement of the row touches, so that any thread may do it.
 */
#include "emit_build.h"
#include "compiler/kernel/touches.h"

#include <inttypes.h>
#include <stdio.h>

enum { LANES = 32, COLUMN_LEAST = 3, OPS_LEAST = 2, NODES_MAX = 48 };

/* How an expression of one total is computed. */
typedef struct Likeness {
    Buf text;  /* the same for all of a column */
    int lane;  /* number of the total, or -1: of none yet */
    int nodes, ops;
} Likeness;

/* Expressions that are computed alike, of totals `first` and those behind it. */
typedef struct Column {
    size_t n, first;
    Ex ex[LANES];
    Ix at[LANES]; /* of stores, and of sums over rows: where */
} Column;

/* Where element j of a column lies: base + along * (j % of) + across * (j / of). */
typedef struct Places {
    int64_t base, along, across;
    size_t of;
} Places;

typedef struct LaneValue {
    Column of;
    uint32_t number;
} LaneValue;

typedef struct LaneStatement {
    size_t at;
    Column of; /* of the values of all statements of its column; n is 0: it has none */
    bool root, gone, given; /* a store or a sum over rows; done by lanes, or nobody wants it; given to all threads */
    int ops;
} LaneStatement;

struct EmitLanes {
    Printer *p;
    const KStmt *total; /* the step, */
    size_t n;           /* of so many */
    bool *defined;      /* by expression: it has a value in front of the step */
    VEC(IVar) places;   /* quotients and remainders that have one there */
    bool *wanted;       /* by expression: by a statement that is printed */
    VEC(LaneStatement) statement; /* of the row, behind the step, outside of its loops */
    VEC(size_t) batched; /* statements of batches of which lanes do all */
    VEC(LaneValue) value;
    uint32_t number;    /* of what a lane has of the totals */
};

/* ---- what is alike ---- */

static int lane_of(const EmitLanes *l, Ex e)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->total[i].ex == e)
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
    return x->kind == KX_LOAD && x->type == KT_REAL && !x->in[0] && !b->tile && !b->half && !b->written && is_of_row(k, x->ix);
}

static bool put_likeness(const EmitLanes *l, Ex e, Likeness *s);

static bool put_likeness_of_op(const EmitLanes *l, const KEx *x, Likeness *s)
{
    if (x->kind != KX_OP || x->type != KT_REAL)
        return false;
    buf_printf(&s->text, "%u,%" PRId64 "(", x->op, x->i);
    s->ops++;
    for (int i = 0; i < 3; i++)
        if (x->in[i] && (kx(l->p->k, x->in[i])->type != KT_REAL || !put_likeness(l, x->in[i], s)))
            return false;
    buf_putc(&s->text, ')');
    return true;
}

static bool put_likeness(const EmitLanes *l, Ex e, Likeness *s)
{
    const Kernel *k = l->p->k;
    const KEx *x = kx(k, e);
    const Likeness before = *s;
    int lane = lane_of(l, e);
    if (++s->nodes > NODES_MAX || (lane >= 0 && s->lane >= 0 && lane != s->lane))
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
    if (put_likeness_of_op(l, x, s))
        return true;
    *s = before; /* the text only grew */
    buf_printf(&s->text, "x%u", e);
    return l->defined[e] || x->kind == KX_CONST || x->kind == KX_SCALAR;
}

/* ---- places ---- */

static bool find_places(const int64_t *c, size_t n, Places *x)
{
    for (size_t of = n; of > 1; of--) {
        *x = (Places){.base = c[0], .along = c[1] - c[0], .across = of < n ? c[of] - c[0] : 0, .of = of};
        size_t j = 0;
        while (j < n && c[j] == x->base + x->along * (int64_t)(j % of) + x->across * (int64_t)(j / of))
            j++;
        if (j == n)
            return true;
    }
    return false;
}

static bool places_of(const Kernel *k, const Ix *ix, size_t n, Places *x)
{
    int64_t c[LANES];
    for (size_t j = 0; j < n; j++)
        if (!constant_of(k, ix[j], &c[j]))
            return false;
    return find_places(c, n, x);
}

/* Which of a column's elements is the lane's, from the first on. */
static char *put_place(Printer *p, const Ix *ix, const Column *c)
{
    Places x = {0};
    places_of(p->k, ix, c->n, &x);
    return x.of == c->n && x.along == 1 && !x.base
               ? arena_printf(p->k->arena, "vwn_column<%zu, %zu>()", c->first, c->n)
               : arena_printf(p->k->arena, "vwn_column_place<%zu, %zu, %zu, %" PRId64 ", %" PRId64 ", %" PRId64 ">()", c->first, c->n, x.of, x.base, x.along, x.across);
}

/* What its place changes with beside the lane. */
static char *put_rest(Printer *p, Ix ix)
{
    Buf before = begin_piece(p);
    put_ix(p, without_constant(p->k, ix));
    return end_piece(p, before);
}

/* The lane's element. */
static char *put_element_of(Printer *p, char letter, uint32_t buffer, const Ix *ix, const Column *c)
{
    bool alone = !ix_form(p->k->ix, without_constant(p->k, ix[0]))->n;
    return arena_printf(p->k->arena, "%c%zu[%s%s%s]", letter, slot_of(p, buffer, false), alone ? "" : put_rest(p, ix[0]), alone ? "" : " + ",
                        put_place(p, ix, c));
}

/* ---- values of lanes ---- */

static bool is_common(const EmitLanes *l, const Column *c)
{
    for (size_t j = 1; j < c->n; j++)
        if (c->ex[j] != c->ex[0])
            return false;
    return l->defined[c->ex[0]] || kx(l->p->k, c->ex[0])->kind == KX_CONST;
}

/* Numbers that all of a longer column are computed with are computed for that one. */
static const Column *longest_with(const EmitLanes *l, const Column *c)
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
    for (size_t j = 0; j < c->n; j++)
        in.ex[j] = kx(k, c->ex[j])->in[i];
    return in;
}

static void indices_of(const Kernel *k, const Column *c, Ix *ix)
{
    for (size_t j = 0; j < c->n; j++)
        ix[j] = kx(k, c->ex[j])->ix;
}

/* Are the quotients and remainders in it known in front of the step? */
static bool is_placed(const EmitLanes *l, Ix ix)
{
    const Kernel *k = l->p->k;
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
static bool has_places(const EmitLanes *l, const Column *c)
{
    const Kernel *k = l->p->k;
    const KEx *x = kx(k, c->ex[0]);
    Places at;
    Ix ix[LANES];
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

/* The number of what a lane has of a column; 0: it is the same for all, and has a name. */
static uint32_t put_value(EmitLanes *l, const Column *c)
{
    Printer *p = l->p;
    const Kernel *k = p->k;
    const KEx *x;
    if (is_common(l, c))
        return 0;
    if (lane_of(l, c->ex[0]) >= 0)
        return l->number;
    c = longest_with(l, c);
    x = kx(k, c->ex[0]);
    for (size_t i = 0; i < l->value.n; i++)
        if (l->value.v[i].of.n == c->n && l->value.v[i].of.first == c->first && !memcmp(l->value.v[i].of.ex, c->ex, c->n * sizeof c->ex[0]))
            return l->value.v[i].number;
    char *text;
    if (x->kind == KX_LOAD) {
        Ix ix[LANES];
        indices_of(k, c, ix);
        if (k->part) /* whose rows have registers for what a compiler loads early */
            text = put_element_of(p, 'p', x->slot, ix, c);
        else
            text = arena_printf(k->arena, "vwn_load_here(&p%zu[%s], %s)", slot_of(p, x->slot, false), put_rest(p, x->ix), put_place(p, ix, c));
    } else {
        uint32_t number[3], before[3];
        for (int i = 0; i < 3; i++) {
            Column in = inputs_of(k, c, i);
            number[i] = x->in[i] ? put_value(l, &in) : 0;
        }
        for (int i = 0; i < 3; i++) {
            before[i] = p->number[x->in[i]];
            p->number[x->in[i]] = number[i] ? number[i] : before[i];
        }
        text = computed_text(p, c->ex[0]);
        for (int i = 3; i-- > 0;)
            p->number[x->in[i]] = before[i];
    }
    LaneValue made = {*c, ++p->next};
    vec_push(k->arena, &l->value, made);
    begin_line(p);
    buf_printf(&p->body, "const %s x%u = %s;\n", p->d->real, made.number, text);
    return made.number;
}

/* ---- which statements ---- */

static bool is_root(const Kernel *k, const KStmt *s)
{
    if (!s->one || (s->kind != KS_STORE && s->kind != KS_SINK))
        return false;
    const KRoot *r = &k->root.v[s->root];
    const KBuffer *b = &k->buffer.v[r->buffer];
    return b->dtype == DT_REAL && !b->tile && !b->half && !b->read && (s->kind == KS_STORE || r->op == OP_SUM) && is_of_row(k, r->at);
}

static bool is_value(const Kernel *k, const KStmt *s)
{
    return (s->kind == KS_LET || s->kind == KS_BATCH_OUT) && kx(k, s->ex)->type == KT_REAL;
}

static Ex value_of(const Kernel *k, const KStmt *s) { return is_value(k, s) ? s->ex : k->root.v[s->root].value; }

/* What a statement computes, and how. */
static bool likeness_of(const EmitLanes *l, const LaneStatement *x, Likeness *s)
{
    const Kernel *k = l->p->k;
    const KStmt *st = &k->stmt.v[x->at];
    *s = (Likeness){.text = buf_new(k->arena), .lane = -1};
    if (x->root)
        buf_printf(&s->text, "%d:%u[%u]", st->kind, k->root.v[st->root].buffer, without_constant(k, k->root.v[st->root].at));
    else
        buf_puts(&s->text, "let ");
    if (!put_likeness(l, value_of(k, st), s) || s->lane < 0)
        return false;
    buf_putc(&s->text, 0);
    return true;
}

/* Statements that are alike, if they are of totals that follow each other. */
static void put_column(EmitLanes *l, const Likeness *like, const bool *good, size_t from)
{
    const Kernel *k = l->p->k;
    size_t of[LANES] = {0}, n = 0;
    Column c = {.first = LANES};
    Places places;
    for (size_t i = from; i < l->statement.n; i++) {
        if (!good[i] || strcmp(like[i].text.s, like[from].text.s) != 0)
            continue;
        size_t lane = (size_t)like[i].lane;
        if (of[lane])
            return;
        of[lane] = i + 1;
        c.first = lane < c.first ? lane : c.first;
        n++;
    }
    for (c.n = 0; c.n < n; c.n++) {
        if (c.first + c.n == LANES || !of[c.first + c.n])
            return;
        const KStmt *s = &k->stmt.v[l->statement.v[of[c.first + c.n] - 1].at];
        c.ex[c.n] = value_of(k, s);
        c.at[c.n] = is_value(k, s) ? 0 : k->root.v[s->root].at;
    }
    if (n < COLUMN_LEAST || !has_places(l, &c) ||
        (l->statement.v[from].root && !(is_placed(l, c.at[0]) && places_of(k, c.at, n, &places))))
        return;
    for (size_t j = 0; j < n; j++)
        l->statement.v[of[c.first + j] - 1].of = c;
}

static void find_columns(EmitLanes *l)
{
    const Kernel *k = l->p->k;
    Likeness *like = NEW_ARRAY(k->arena, Likeness, l->statement.n + 1);
    bool *good = NEW_ARRAY(k->arena, bool, l->statement.n + 1);
    for (size_t i = 0; i < l->statement.n; i++)
        good[i] = likeness_of(l, &l->statement.v[i], &like[i]);
    for (size_t i = 0; i < l->statement.n; i++) {
        l->statement.v[i].ops = like[i].ops;
        bool seen = !good[i];
        for (size_t j = 0; j < i && !seen; j++)
            seen = good[j] && strcmp(like[i].text.s, like[j].text.s) == 0;
        if (!seen)
            put_column(l, like, good, i);
    }
}

static void want_all(EmitLanes *l, const KStmt *s)
{
    const Kernel *k = l->p->k;
    KTouches of = {0};
    kernel_touches(k, s, &of);
    for (int i = 0; i < 3; i++)
        l->wanted[kx(k, s->ex)->in[i]] = true;
    for (size_t i = 0; i < of.n; i++)
        if (of.v[i].thing == OF_VALUE && of.v[i].how != WRITES)
            l->wanted[of.v[i].number] = true;
}

/* From the end of the row on: whoever is printed wants its inputs. Returns whether lanes have anything to do. */
static bool find_wanted(EmitLanes *l, size_t from, size_t end)
{
    const Kernel *k = l->p->k;
    size_t next = l->statement.n;
    bool some = false, *kept = NEW_ARRAY(k->arena, bool, k->stmt.n); /* batches: threads still want a number of it */
    for (size_t i = end; i-- > from;) {
        const KStmt *s = &k->stmt.v[i];
        LaneStatement *x = next && l->statement.v[next - 1].at == i ? &l->statement.v[--next] : NULL;
        if (l->p->gone[i])
            continue;
        if (x) {
            x->gone = x->root ? x->of.n > 0 : !l->wanted[s->ex];
            x->given = !x->root && !x->gone && x->of.n && x->ops >= OPS_LEAST;
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
    case KS_LET: case KS_ARRAY_GET: case KS_BATCH_OUT: case KS_WARP_TAKE: return true;
    case KS_WARP: return k->mapping.row_threads == LANES;
    default: return false;
    }
}

/* What has a value in front of the step, for all that follows in the row. */
static void find_defined(EmitLanes *l, size_t step)
{
    const Kernel *k = l->p->k;
    for (size_t i = 0; i < step; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP && kernel_loop_end(k, i) < step)
            i = kernel_loop_end(k, i);
        else if (s->kind == KS_VAR)
            vec_push(k->arena, &l->places, s->var);
        else if (completes(k, s) && !l->p->gone[i])
            l->defined[s->ex] = true;
    }
}

/* Does the step stand in the row itself? */
static bool is_in_row(const Kernel *k, size_t rows, size_t step)
{
    size_t i = rows + 1;
    while (i < step)
        i = k->stmt.v[i].kind == KS_LOOP ? kernel_loop_end(k, i) + 1 : i + 1;
    return i == step;
}

EmitLanes *emit_lanes_of(Printer *p, size_t step, size_t n)
{
    const Kernel *k = p->k;
    size_t rows = 0;
    while (rows < step && k->stmt.v[rows].kind != KS_ROWS)
        rows++;
    if (!p->gone)
        p->gone = NEW_ARRAY(k->arena, bool, k->stmt.n + 1);
    if (k->mapping.by_row || k->mapping.lanes != LANES || rows == step || !is_in_row(k, rows, step))
        return NULL;
    EmitLanes *l = NEW(k->arena, EmitLanes);
    *l = (EmitLanes){.p = p,
                     .total = &k->stmt.v[step],
                     .n = n,
                     .defined = NEW_ARRAY(k->arena, bool, k->ex.n),
                     .wanted = NEW_ARRAY(k->arena, bool, k->ex.n)};
    size_t end = kernel_loop_end(k, rows);
    find_defined(l, step);
    for (size_t i = step + n; i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        bool root = is_root(k, s);
        if (s->kind == KS_LOOP)
            i = kernel_loop_end(k, i);
        else if ((root || is_value(k, s)) && !p->gone[i])
            vec_push(k->arena, &l->statement, ((LaneStatement){.at = i, .root = root}));
    }
    find_columns(l);
    if (!find_wanted(l, step + n, end))
        return NULL;
    l->number = ++p->next;
    return l;
}

uint32_t emit_lanes_number(const EmitLanes *l) { return l->number; }

bool emit_lanes_leave(const EmitLanes *l, Ex total) { return !l || l->wanted[total]; }

static void put_root(EmitLanes *l, const LaneStatement *x)
{
    Printer *p = l->p;
    const Kernel *k = p->k;
    const Column *c = &x->of;
    const KStmt *s = &k->stmt.v[x->at];
    const KRoot *r = &k->root.v[s->root];
    uint32_t number = put_value(l, c);
    char *element = put_element_of(p, k->buffer.v[r->buffer].part >= 0 ? 'q' : 'p', r->buffer, c->at, c);
    begin_line(p);
    if (c->first)
        buf_printf(&p->body, "if (thread >= %zu && thread < %zu) ", c->first, c->first + c->n);
    else
        buf_printf(&p->body, "if (thread < %zu) ", c->n);
    buf_printf(&p->body, "%s %s x%u;\n", element, s->kind == KS_SINK ? "+=" : "=", number);
}

void emit_lanes(EmitLanes *l)
{
    Printer *p = l->p;
    p->lanes = false;
    for (size_t i = 0; i < l->batched.n; i++)
        p->gone[l->batched.v[i]] = true;
    for (size_t i = 0; i < l->statement.n; i++) {
        const LaneStatement *x = &l->statement.v[i];
        const KStmt *s = &p->k->stmt.v[x->at];
        p->gone[x->at] = p->gone[x->at] || x->gone || x->given;
        size_t lane = 0;
        while (x->of.n && lane < x->of.n && x->of.ex[lane] != value_of(p->k, s))
            lane++;
        if (x->root && x->gone && lane == 0) {
            put_root(l, x);
        } else if (x->given) {
            uint32_t number = put_value(l, &x->of);
            put_definition(p, s->ex);
            buf_printf(&p->body, "vwn_from_lane(x%u, %zu);\n", number, x->of.first + lane);
        }
    }
}
