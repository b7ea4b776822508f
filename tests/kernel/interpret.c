/* interpret.c - see interpret.h: the statements of one kernel. interpret_plan.c runs the launches. */
#include "interpret.h"

#include "compiler/graph/op.h"

#include <math.h>

typedef struct Number {
    double real;
    int64_t integer; /* KT_INT and KT_BOOL */
} Number;

typedef struct Run {
    const KernelCall *call;
    const Kernel *k;
    Arena *arena;
    Number *value;           /* by expression and lane */
    Number **held;           /* by KStmt.held: by round and lane */
    IVar along;              /* the loop of which a thread takes contiguous elements; 0: none */
    uint64_t lanes;          /* its bit */
    bool vector;             /* they are one vector: what lies behind the place of the first one */
    int64_t base;            /* the first of them, and of a loop of vectors the first that is left, */
    uint32_t lane, from, to; /* the one that runs; those that a statement runs for */
    int64_t *var;            /* by index variable */
    const int64_t **coef;    /* by form: of each of its terms */
    size_t *end;             /* by statement that opens a scope: its end */
    Number **array;
    Number *batch[64];
    Number *slot;     /* by slot: the total that was put there */
    Number **column;  /* by column and element: what lanes have */
    Number *total;    /* by expression: a total that one lane alone has */
    Cells **tile;     /* by buffer: memory of the row, or partial sums that the block has */
    Number *sum;      /* by root: what a thread has of a sum over rows */
    Number *lane_sum; /* by expression: what the lanes of vectors have of a sum */
    int64_t part, lo, hi;
} Run;

enum { LANES = 8 }; /* the most elements that a thread takes at one time */

/* The place of a value: one for all lanes, or one for each. */
static Number *value_of(Run *r, Ex e)
{
    return &r->value[(size_t)e * LANES + (kx(r->k, e)->deps & r->lanes ? r->lane : 0)];
}

static Number get(Run *r, Ex e)
{
    const KEx *x = kx(r->k, e);
    if (x->kind != KX_CONST)
        return *value_of(r, e);
    return (Number){x->value, x->type == KT_REAL ? 0 : (int64_t)x->value};
}

static void set(Run *r, Ex e, Number x)
{
    if (r->call->single)
        x.real = (double)(float)x.real;
    *value_of(r, e) = x;
}

static int64_t at(Run *r, Ix ix)
{
    const IxForm *f = ix_form(r->k->ix, ix);
    int64_t sum = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(r->k->ix, f->t[i].var);
        int64_t n = v->kind == IV_VALUE ? value_of(r, v->value)->integer : r->var[f->t[i].var];
        sum += r->coef[ix][i] * n;
    }
    return sum;
}

/* The place of what is loaded or stored: of a vector as many elements behind that of its first. */
static int64_t place(Run *r, Ix ix)
{
    int64_t own = r->var[r->along], first;
    if (!r->vector)
        return at(r, ix);
    r->var[r->along] = r->base;
    first = at(r, ix);
    r->var[r->along] = own;
    return first + r->lane;
}

/* ---- expressions ---- */

static Number apply(Run *r, const KEx *x)
{
    double real[4] = {0};
    int64_t integer[4] = {0};
    Tensor t[4], *in[3] = {&t[0], &t[1], &t[2]};
    int n = op_info((Op)x->op)->n_in;
    for (int i = 0; i < 4; i++)
        t[i] = (Tensor){.size = 1, .real = &real[i], .integer = &integer[i]};
    for (int i = 0; i < n; i++) {
        Number y = get(r, x->in[i]);
        real[i] = y.real;
        integer[i] = y.integer;
        t[i].dtype = kx(r->k, x->in[i])->type == KT_INT ? DT_INT : DT_REAL;
    }
    t[3].dtype = x->type == KT_INT ? DT_INT : DT_REAL;
    Node node = {.op = (uint8_t)x->op, .dtype = (uint8_t)t[3].dtype, .n_in = (uint16_t)n, .a = {.i = x->i}};
    OpEval e = {.ctx = r->k->ctx, .n = &node, .in = in, .out = &t[3]};
    op_rules[x->op].eval(&e);
    return (Number){real[3], integer[3]};
}

static Cells *cells(Run *r, uint32_t buffer, int64_t *i)
{
    const KBuffer *b = &r->k->buffer.v[buffer];
    Cells *c = b->tile || b->device.shared ? r->tile[buffer] : r->call->buffer[buffer];
    if (*i < 0 || *i >= b->elements)
        vwn_bug(r->k->ctx, "element %lld of buffer %u with %lld", (long long)*i, buffer, (long long)b->elements);
    *i += b->part >= 0 && !b->device.shared ? r->part * b->elements : 0;
    if (*i >= c->n)
        vwn_bug(r->k->ctx, "buffer %u is smaller than its kernel says", buffer);
    return c;
}

static Number load(Run *r, const KEx *x)
{
    if (x->in[0] && !get(r, x->in[0]).integer)
        return (Number){0};
    int64_t i = place(r, x->ix);
    Cells *c = cells(r, x->slot, &i);
    if (c->stores && c->stores[i])
        vwn_bug(r->k->ctx, "a load of what the launch has stored");
    return c->dtype == DT_INT ? (Number){.integer = c->integer[i]} : (Number){.real = c->real[i]};
}

static Number random_number(Run *r, const KEx *x)
{
    const KSeed *seed = &r->k->seed.v[x->slot];
    uint64_t key = philox_key(r->call->seed, seed->site);
    uint64_t i = r->call->first * (uint64_t)ix_dim_at(r->k->ix, seed->each) + (uint64_t)at(r, x->ix);
    return (Number){.real = x->op == OP_RAND ? philox_uniform(key, r->call->step, i)
                                             : philox_normal(key, r->call->step, i)};
}

static Number compute(Run *r, const KEx *x)
{
    int64_t i;
    switch ((KKind)x->kind) {
    case KX_SCALAR: return (Number){.real = r->call->scalar[x->slot]};
    case KX_INDEX: return (Number){.integer = at(r, x->ix)};
    case KX_LOAD: return load(r, x);
    case KX_OP: return apply(r, x);
    case KX_INSIDE: i = at(r, x->ix); return (Number){.integer = i >= 0 && i < ix_dim_at(r->k->ix, x->extent)};
    case KX_AND: return (Number){.integer = get(r, x->in[0]).integer & get(r, x->in[1]).integer};
    case KX_SELECT: return get(r, x->in[get(r, x->in[0]).integer ? 1 : 2]);
    case KX_RAND: return random_number(r, x);
    default: vwn_bug(r->k->ctx, "an expression of kind %d cannot be run", x->kind);
    }
}

/* ---- sums ---- */

static Number neutral(Op op) { return op == OP_SUM ? (Number){0} : (Number){-INFINITY, INT64_MIN}; }

static void fold(Run *r, Op op, Number *to, Number x)
{
    if (op == OP_SUM) {
        to->real += x.real;
        to->integer += x.integer;
    } else {
        to->real = x.real > to->real ? x.real : to->real;
        to->integer = x.integer > to->integer ? x.integer : to->integer;
    }
    if (r->call->single)
        to->real = (double)(float)to->real;
}

static Number *array_element(Run *r, int array)
{
    const KArray *a = &r->k->array.v[array];
    int64_t i = 0;
    for (uint32_t j = 0; j < a->nest.n; j++)
        i = i * ix_dim_at(r->k->ix, ix_info(r->k->ix, a->nest.var[j])->extent) +
            (r->vector && a->nest.var[j] == r->along ? r->base : r->var[a->nest.var[j]]);
    i += r->vector ? r->lane : 0;
    if (i < 0 || i >= a->elements)
        vwn_bug(r->k->ctx, "element %lld of scratch array %d", (long long)i, array);
    return &r->array[array][i];
}

static void begin_part(Run *r, int64_t part)
{
    const Kernel *k = r->k;
    int64_t rows = ix_dim_at(k->ix, k->rows);
    r->part = part;
    r->lo = part * k->chunk;
    r->hi = r->lo + k->chunk < rows ? r->lo + k->chunk : rows;
}

static void run_part(Run *r, const KStmt *s)
{
    const KBuffer *b = &r->k->buffer.v[s->root];
    for (int64_t i = 0; i < b->elements && s->kind != KS_PART_PLACE; i++) {
        int64_t at = i;
        Cells *c = cells(r, s->root, &at);
        if (s->kind == KS_PART_STORE)
            r->call->buffer[s->root]->real[r->part * b->elements + i] = c->real[at];
        else
            c->real[at] = s->kind == KS_PART_ROOM ? NAN : neutral(b->op).real;
    }
}

static void store_number(Run *r, const KRoot *root, Number x)
{
    int64_t i = place(r, root->at);
    Cells *c = cells(r, root->buffer, &i);
    if (c->dtype == DT_INT)
        c->integer[i] = x.integer;
    else
        c->real[i] = x.real;
    if (c->stores && c->stores[i]++ && root->kind == KR_STORE)
        vwn_bug(r->k->ctx, "element %lld of buffer %u is stored twice", (long long)i, root->buffer);
}

static void store(Run *r, const KStmt *s)
{
    const KRoot *root = &r->k->root.v[s->root];
    int64_t i = place(r, root->at);
    Cells *c = cells(r, root->buffer, &i);
    Number x = get(r, root->value);
    if (s->kind == KS_SINK && r->k->device.mapping.by_row) {
        fold(r, root->op, &r->sum[s->root], x);
        return;
    }
    if (s->kind == KS_SINK) {
        Number sum = {.real = c->real[i]};
        fold(r, root->op, &sum, x);
        c->real[i] = sum.real;
        return;
    }
    store_number(r, root, x);
}

/* ---- steps ---- */

/* What a statement keeps between two of its steps: for each round of a loop that is written out, and each lane. */
static Number *held_of(Run *r, const KStmt *s)
{
    bool round = !s->piece && s->step != STEP_NEW && (s->kind == KS_LET || s->kind == KS_ARRAY_GET);
    return r->held[s->held] + (round ? (size_t)r->var[s->var] * LANES : 0) + r->lane;
}

static Number *cell_of(Run *r, const KStmt *s, Number *copy)
{
    if (kernel_of_array(s))
        return array_element(r, s->array);
    int64_t i = at(r, r->k->root.v[s->root].at);
    copy->real = cells(r, r->k->root.v[s->root].buffer, &i)->real[i];
    return copy;
}

/* A step of a store. What is there is loaded by sums; of others nothing is known. */
static void run_store_step(Run *r, const KStmt *s)
{
    Number *held = held_of(r, s), copy;
    bool array = kernel_of_array(s), sum = s->kind == KS_ARRAY_ADD || s->kind == KS_SINK;
    const KEx *x = kx(r->k, s->ex);
    Number value = s->step & STEP_VALUE ? get(r, s->kind == KS_ARRAY_PUT ? s->ex
                                                 : array                 ? x->in[0]
                                                                         : r->k->root.v[s->root].value)
                                        : (Number){0};
    if (s->step & (STEP_NEW | STEP_LOAD))
        *held = s->step & STEP_LOAD ? *cell_of(r, s, &copy) : (Number){.real = NAN};
    if (s->step & STEP_VALUE && sum)
        fold(r, OP_SUM, held, value);
    else if (s->step & STEP_VALUE)
        *held = value;
    if (s->step & STEP_STORE && array)
        *array_element(r, s->array) = *held;
    else if (s->step & STEP_STORE)
        store_number(r, &r->k->root.v[s->root], *held);
}

static void run_step(Run *r, const KStmt *s)
{
    if (s->kind != KS_LET && s->kind != KS_ARRAY_GET) {
        run_store_step(r, s);
        return;
    }
    Number *held = held_of(r, s);
    if (s->step == STEP_NEW)
        *held = (Number){.real = NAN};
    else if (s->step == STEP_LOAD)
        *held = s->kind == KS_LET ? compute(r, kx(r->k, s->ex)) : *array_element(r, s->array);
    else
        set(r, s->ex, *held);
}

/* ---- statements ---- */

static void run_block(Run *r, size_t from, size_t to);

/* Each statement for all of a thread's elements, or of a vector, then the next one. */
static void run_wide_loop(Run *r, size_t i, int64_t extent)
{
    const KStmt *s = &r->k->stmt.v[i];
    const uint32_t width = s->width ? s->width : LANES;
    if (r->along || (s->width && extent % s->width))
        vwn_bug(r->k->ctx, "a loop of %u elements at one time that cannot be", width);
    r->along = s->var;
    r->lanes = ix_bit(r->k->ix, s->var);
    r->vector = !s->width;
    r->to = width;
    for (r->base = 0; r->base + width <= extent; r->base += width)
        run_block(r, i + 1, r->end[i]);
    r->along = 0;
    r->vector = false;
    r->lanes = r->lane = r->from = 0;
    r->to = 1;
}

/* A few of these elements at a time. */
static void run_pieces(Run *r, size_t i)
{
    const KStmt *s = &r->k->stmt.v[i];
    for (uint32_t z = 0; z < s->width; z += s->piece) {
        r->from = z;
        r->to = z + s->piece;
        run_block(r, i + 1, r->end[i]);
    }
    r->from = 0;
    r->to = s->width;
}

static void run_loop(Run *r, size_t i)
{
    const KStmt *s = &r->k->stmt.v[i];
    IVar v = s->kind == KS_PART ? r->k->part : s->kind == KS_ROWS ? r->k->row : s->var;
    if (s->kind == KS_VECTORS) {
        run_block(r, i + 1, r->end[i]);
        return;
    }
    int64_t lo = 0, hi = 0;
    if (s->kind == KS_LOOP)
        hi = ix_dim_at(r->k->ix, ix_info(r->k->ix, v)->extent);
    else
        lo = r->lo, hi = r->hi;
    if (s->kind == KS_LOOP && (s->width || s->vector)) {
        run_wide_loop(r, i, hi);
        return;
    }
    lo = s->rest ? r->base : lo;
    for (int64_t n = lo; n < hi; n++) {
        r->var[v] = n;
        if (s->kind == KS_PART)
            begin_part(r, n);
        run_block(r, i + 1, r->end[i]);
    }
}

static void run_var(Run *r, IVar v)
{
    const IVarInfo *info = ix_info(r->k->ix, v);
    int64_t base = at(r, info->base), by = ix_dim_at(r->k->ix, info->by);
    if (base < 0)
        vwn_bug(r->k->ctx, "a quotient of a negative number");
    r->var[v] = info->kind == IV_DIV ? base / by : base % by;
}

/* The operator of one of the expressions, at the inputs of all. */
static void run_batch(Run *r, const KStmt *s)
{
    const KEx *x = kx(r->k, s->ex);
    Number own = *value_of(r, x->in[0]);
    for (uint32_t i = 0; i < s->n_acc; i++) {
        *value_of(r, x->in[0]) = r->batch[s->array][i];
        set(r, s->ex, apply(r, x));
        r->batch[s->array][i] = *value_of(r, s->ex);
    }
    *value_of(r, x->in[0]) = own;
}

/* ---- lanes ---- */

/* Here one thread has all of a sum: a total changes nothing, but that a value which one lane alone has is lost to all others. */
static void run_total(Run *r, const KStmt *s)
{
    const KTotals *t = kernel_totals(r->k, s);
    for (uint32_t j = 0; j < (t ? t->n : 1); j++) {
        const Ex e = t ? t->of[j].ex : s->ex;
        Number *x = value_of(r, e), *alone = &r->total[e];
        if (!e) /* of the sum over rows of each thread */
            continue;
        if (s->kind == KS_WARP_PUT) {
            r->slot[s->at + j] = t ? *alone : *x;
            continue;
        }
        if (s->kind == KS_WARP_TAKE)
            *x = r->slot[s->at + j];
        if (s->column)
            r->column[s->column - 1][j] = *x;
        if (t && t->of[j].alone) {
            *alone = *x;
            *x = (Number){.real = NAN};
        }
    }
}

/* Each lane has the inputs of its own column, and loads from the place that is a form of its number. */
static void run_column(Run *r, uint32_t column)
{
    const KColumn *c = &r->k->device.column.v[column - 1];
    const KEx *first = kx(r->k, c->ex[0]);
    for (uint32_t j = 0; j < c->n; j++) {
        Number before[3], *to = &r->column[column - 1][j];
        if (first->kind == KX_LOAD) {
            int64_t i = at(r, first->ix) - c->place.base + kernel_place_of(&c->place, j);
            to->real = cells(r, first->slot, &i)->real[i];
            continue;
        }
        for (int i = 0; i < 3; i++) {
            before[i] = *value_of(r, first->in[i]);
            if (c->in[i])
                *value_of(r, first->in[i]) =
                    r->column[c->in[i] - 1][c->first + j - r->k->device.column.v[c->in[i] - 1].first];
        }
        *to = compute(r, first);
        for (int i = 3; i-- > 0;)
            *value_of(r, first->in[i]) = before[i];
    }
}

static void store_column(Run *r, const KColumn *c)
{
    const KRoot *root = &r->k->root.v[c->root[0]];
    const KColumn *of = &r->k->device.column.v[c->in[0] - 1];
    for (uint32_t j = 0; j < c->n; j++) {
        int64_t i = at(r, root->at) - c->place.base + kernel_place_of(&c->place, j);
        Number x = r->column[c->in[0] - 1][c->first + j - of->first];
        Cells *to = cells(r, root->buffer, &i);
        if (root->kind == KR_SINK) {
            to->real[i] += x.real;
            continue;
        }
        to->real[i] = x.real;
        if (to->stores && to->stores[i]++)
            vwn_bug(r->k->ctx, "element %lld of buffer %u is stored twice", (long long)i, root->buffer);
    }
}

static void run_lanes(Run *r, const KStmt *s)
{
    if (s->kind == KS_LANES)
        run_column(r, s->column);
    else if (s->kind == KS_LANE_STORE)
        store_column(r, &r->k->device.column.v[s->column - 1]);
    else
        set(r, s->ex, r->column[s->column - 1][s->lane - r->k->device.column.v[s->column - 1].first]);
}

static void run_stmt(Run *r, const KStmt *s)
{
    const KEx *x = kx(r->k, s->ex);
    Op op = (Op)x->op;
    switch (s->kind) {
    case KS_VAR: run_var(r, s->var); break;
    case KS_LET: set(r, s->ex, compute(r, x)); break;
    case KS_ACC: *value_of(r, s->ex) = neutral(op); break;
    case KS_ACC_ADD: fold(r, op, r->vector ? &r->lane_sum[s->ex] : value_of(r, s->ex), get(r, x->in[0])); break;
    case KS_VECTOR_ACC: r->lane_sum[s->ex] = (Number){0}; break;
    case KS_VECTOR_SUM: fold(r, OP_SUM, value_of(r, s->ex), r->lane_sum[s->ex]); break;
    case KS_ARRAY: break;
    case KS_ARRAY_FILL:
        for (int64_t i = 0; i < r->k->array.v[s->array].elements; i++)
            r->array[s->array][i] = neutral(op);
        break;
    case KS_ARRAY_PUT: *array_element(r, s->array) = get(r, s->ex); break;
    case KS_ARRAY_ADD: fold(r, op, array_element(r, s->array), get(r, x->in[0])); break;
    case KS_ARRAY_GET: *value_of(r, s->ex) = *array_element(r, s->array); break;
    case KS_BATCH_IN:
        if (s->array >= 64)
            vwn_bug(r->k->ctx, "too many batches");
        if (s->at == 0)
            r->batch[s->array] = NEW_ARRAY(r->arena, Number, s->n_acc);
        r->batch[s->array][s->at] = get(r, x->in[0]);
        break;
    case KS_BATCH_RUN: run_batch(r, s); break;
    case KS_BATCH_OUT: *value_of(r, s->ex) = r->batch[s->array][s->at]; break;
    case KS_PART_ROOM:
    case KS_PART_PLACE:
    case KS_PART_FILL:
    case KS_PART_STORE: run_part(r, s); break;
    case KS_SUM_NEW: r->sum[s->root] = neutral(r->k->root.v[s->root].op); break;
    case KS_SUM_PUT: store_number(r, &r->k->root.v[s->root], r->sum[s->root]); break;
    case KS_STORE:
    case KS_SINK: store(r, s); break;
    case KS_WARP:
    case KS_WARP_PUT:
    case KS_WARP_TAKE: run_total(r, s); break;
    case KS_LANES:
    case KS_LANE_TAKE:
    case KS_LANE_STORE: run_lanes(r, s); break;
    case KS_PREFETCH:
    case KS_PREFETCH_ROW:
    case KS_ROW_TILES:
    case KS_BARRIER:
    case KS_ARRAY_GIVE:
    case KS_ARRAY_TAKE: break; /* here one thread does what all of them do */
    default: vwn_bug(r->k->ctx, "a statement of kind %d cannot be run", (int)s->kind);
    }
}

static double element(Run *r, uint32_t buffer, Ix ix, int64_t behind)
{
    int64_t i = at(r, ix) + behind;
    return cells(r, buffer, &i)->real[i];
}

/* A factor of which threads load several neighbours at one time: they lie behind the first, which begins at a multiple of so many. */
static double factor(Run *r, uint32_t buffer, Ix ix, KLying how, IVar own, IVar sum, int64_t behind)
{
    int64_t piece = product_piece(r->k->buffer.v[buffer].tile, r->k->device.tensor);
    IVar along = how == LIES_ALONG_SUM ? sum : own;
    if (!r->k->device.mapping.row_threads || how == LIES_STRIDED)
        return element(r, buffer, ix, behind);
    int64_t lane = r->var[along] % piece;
    r->var[along] -= lane;
    int64_t i = at(r, ix) + behind;
    r->var[along] += lane;
    i = i / piece * piece + lane;
    return cells(r, buffer, &i)->real[i];
}

/* So many rows and columns at most have the pieces of a cut, and so many terms the sums. */
static void cut_short(const Run *r, const KProduct *x, int64_t *end)
{
    enum { FEW = 16 };
    ProductCut cut = x->way.cut;
    bool rows = cut == CUT_FEW_ROWS || cut == CUT_LONG_ROWS || cut == CUT_SHORT_ROWS,
         columns = cut == CUT_FEW_COLUMNS || cut == CUT_LONG_COLUMNS || cut == CUT_SHORT_COLUMNS;
    if (r->k->device.tensor && rows && end[0] > FEW)
        end[0] = FEW;
    if (r->k->device.tensor && columns && end[1] > FEW)
        end[1] = FEW;
    if ((cut == CUT_SHORT_ROWS || cut == CUT_SHORT_COLUMNS) && end[2] > FEW)
        end[2] = FEW;
    if (x->way.sixteens)
        end[2] -= end[2] % FEW;
}

/* Memory of 16 bits rounds what a product stores there; of all else rounding is a statement. */
static double stored_in(Run *r, uint32_t buffer, double sum)
{
    const KBuffer *b = &r->k->buffer.v[buffer];
    double result = 0;
    Tensor in = {.size = 1, .real = &sum}, out = {.size = 1, .real = &result}, *from[1] = {&in};
    Node node = {.op = OP_ROUND_TO, .n_in = 1, .a = {.i = b->half}};
    if (b->tile || !b->half)
        return sum;
    op_rules[OP_ROUND_TO].eval(&(OpEval){.ctx = r->k->ctx, .n = &node, .in = from, .out = &out});
    return result;
}

/* One that is done with another one adds to what that has stored. */
static void run_product(Run *r, const KProduct *x, bool add)
{
    int64_t end[3], *v[3] = {&r->var[x->m], &r->var[x->n], &r->var[x->k]};
    IVar var[3] = {x->m, x->n, x->k};
    for (int i = 0; i < 3; i++)
        end[i] = ix_dim_at(r->k->ix, ix_info(r->k->ix, var[i])->extent);
    const int64_t terms = end[2];
    cut_short(r, x, end);
    for (*v[0] = 0; *v[0] < end[0]; ++*v[0])
        for (*v[1] = 0; *v[1] < end[1]; ++*v[1]) {
            *v[2] = 0;
            int64_t to = at(r, x->c_at);
            Cells *c = cells(r, x->c, &to);
            Number sum = {.real = add ? c->real[to] : 0};
            for (; *v[2] < end[2]; ++*v[2])
                for (int64_t part = 0; part < (x->split ? 2 : 1); part++)
                    fold(r, OP_SUM, &sum,
                         (Number){.real = factor(r, x->a, x->a_at, x->way.a, x->m, x->k, 0) *
                                          factor(r, x->b, x->b_at, x->way.b, x->n, x->k, part * terms)});
            c->real[to] = stored_in(r, x->c, sum.real);
        }
    if (x->also)
        run_product(r, &r->k->product.v[x->also - 1], true);
    if (x->beside)
        run_product(r, &r->k->product.v[x->beside - 1], r->k->product.v[x->beside - 1].add);
}

static void run_plain(Run *r, const KStmt *s)
{
    if (s->kind == KS_PRODUCT) {
        run_product(r, &r->k->product.v[s->root], r->k->product.v[s->root].add);
        return;
    }
    for (r->lane = r->from; r->lane < r->to; r->lane++) {
        r->var[r->along] = r->along ? r->base + r->lane : 1; /* the constant's is 1 */
        if (s->step)
            run_step(r, s);
        else
            run_stmt(r, s);
    }
    r->lane = r->from;
}

static void run_block(Run *r, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (!kernel_opens(&r->k->stmt.v[i])) {
            run_plain(r, &r->k->stmt.v[i]);
            continue;
        }
        ArenaMark mark = arena_mark(r->arena);
        if (r->k->stmt.v[i].kind == KS_PIECES)
            run_pieces(r, i);
        else
            run_loop(r, i);
        arena_reset(r->arena, mark);
        i = r->end[i];
    }
}

static void find_ends(Run *r)
{
    size_t open[NEST_MAX + 4], n = 0;
    r->end = NEW_ARRAY(r->arena, size_t, r->k->stmt.n + 1);
    for (size_t i = 0; i < r->k->stmt.n; i++) {
        if (kernel_opens(&r->k->stmt.v[i]))
            open[n++] = i;
        else if (r->k->stmt.v[i].kind == KS_END)
            r->end[open[--n]] = i;
    }
}

void interpret_kernel(const KernelCall *call, int64_t lo, int64_t hi)
{
    const Kernel *k = call->k;
    Arena *arena = k->ctx->scratch;
    ArenaMark mark = arena_mark(arena);
    Run r = {.call = call, .k = k, .arena = arena, .lo = lo, .hi = hi, .to = 1};
    r.value = NEW_ARRAY(arena, Number, (size_t)LANES * k->ex.n);
    r.held = NEW_ARRAY(arena, Number *, k->stmt.n + 1);
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].step)
            r.held[k->stmt.v[i].held] = NEW_ARRAY(arena, Number, LANES * (k->stmt.v[i].unroll + 1u));
    r.slot = NEW_ARRAY(arena, Number, k->device.mapping.slots + 1);
    r.sum = NEW_ARRAY(arena, Number, k->root.n + 1);
    r.lane_sum = NEW_ARRAY(arena, Number, k->ex.n);
    r.total = NEW_ARRAY(arena, Number, k->ex.n);
    r.column = NEW_ARRAY(arena, Number *, k->device.column.n + 1);
    for (size_t i = 0; i < k->device.column.n; i++)
        r.column[i] = NEW_ARRAY(arena, Number, k->device.column.v[i].n);
    r.var = NEW_ARRAY(arena, int64_t, k->ix->var.n);
    r.var[0] = 1;
    r.coef = NEW_ARRAY(arena, const int64_t *, k->ix->form.n);
    for (Ix i = 0; i < k->ix->form.n; i++) {
        const IxForm *f = ix_form(k->ix, i);
        int64_t *coef = NEW_ARRAY(arena, int64_t, f->n + 1);
        for (uint32_t j = 0; j < f->n; j++)
            coef[j] = f->t[j].mult * ix_dim_at(k->ix, f->t[j].coef);
        r.coef[i] = coef;
    }
    r.array = NEW_ARRAY(arena, Number *, k->array.n + 1);
    for (size_t a = 0; a < k->array.n; a++)
        r.array[a] = NEW_ARRAY(arena, Number, (size_t)k->array.v[a].elements);
    r.tile = NEW_ARRAY(r.arena, Cells *, k->buffer.n + 1);
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].tile || k->buffer.v[b].device.shared) {
            r.tile[b] = NEW(r.arena, Cells);
            *r.tile[b] = (Cells){.n = k->buffer.v[b].elements};
            r.tile[b]->real = NEW_ARRAY(r.arena, double, (size_t)r.tile[b]->n + 1);
        }
    find_ends(&r);
    run_block(&r, 0, k->stmt.n);
    arena_reset(arena, mark);
}
