/* sizes.c - which sizes and offsets of a kernel are literals of its text, and which arguments it has for the others.
 *
 * In:  a kernel whose statements are final.     Out: Kernel.argument, .use and .pointer.
 * The one idea: what differs between kernels of one structure is an argument, so that they share a text; what a
 * compiler must know to unroll and to keep in registers is part of the text. The sizes that a program names have an order, that
 * of its statements and of the forms in them, and a text names them in this order. For extents ix_literal() of graph/index.h decides.
 */
#include "kernel.h"

/* ---- names and types of what a text has ---- */

Dim kernel_array_size(const Kernel *k, const KArray *a)
{
    Dim n = DIM(1);
    for (uint32_t i = 0; i < a->nest.n; i++)
        if (!dim_mul(n, ix_info(k->ix, a->nest.var[i])->extent, &n))
            vwn_bug(k->ctx, "the size of a scratch array overflows");
    return n;
}

bool kernel_var_is_wide(const Kernel *k, IVar v)
{
    const IVarInfo *x = ix_info(k->ix, v);
    bool derived = x->kind == IV_DIV || x->kind == IV_MOD;
    uint64_t rows = ix_bit(k->ix, k->row) | (k->part ? ix_bit(k->ix, k->part) : 0);
    if (v == 0 || k->device.mapping.index == INDEX_WIDE)
        return v != 0;
    if (x->kind == IV_VALUE || (derived && ix_reads_value(k->ix, x->base)))
        return true;
    return k->device.mapping.index == INDEX_WIDE_ROWS && x->deps & rows;
}

/* ---- literal or argument ---- */

bool kernel_has_row_offset(const Kernel *k, const IxForm *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const IxTerm *t = &f->t[i];
        if (t->var && t->mult == 1 && dim_eq(t->coef, DIM(1)) && ix_info(k->ix, t->var)->deps == ix_bit(k->ix, k->row))
            return true;
    }
    return false;
}

/* Places in what is written out are structure; a device has them in its instructions, as arguments they would take a
 * register each. */
bool kernel_is_argument(const Kernel *k, const IxTerm *t, bool away, bool device)
{
    int64_t m = t->mult < 0 ? -t->mult : t->mult;
    bool place = kernel_is_place(t);
    if (place && away && device)
        return true;
    if (device && m > LITERAL_MAX && m < k->unrolled)
        return false;
    return place ? !ix_literal(k->ix, DIM(m)) : m > LITERAL_MAX;
}

/* ---- the sizes of a program, one after the other ---- */

/* Somebody who is told of them. A size that may be a literal has `value`, which is what an argument in its place would be. */
typedef struct SizeWalk {
    const Kernel *k;
    bool device, vectors;       /* of a CPU: in a loop of whole vectors */
    const ArgumentSlots *slots; /* or NULL: equal sizes are one argument */
    VEC(KArgument) argument;    /* as they are found */
    VEC(uint32_t) use;
    VEC(uint32_t) pointer;
    VEC(uint32_t) tile; /* of a CPU: in the order in which they are named */
    bool *named;        /* by buffer: it is among these */
    bool wrong;         /* the slots do not fit */
    uint32_t last[64];  /* where arguments of a hash were found last */
} SizeWalk;

bool kernel_same_argument(const KArgument *x, const KArgument *y)
{
    return x->kind == y->kind && dim_eq(x->dim, y->dim) && x->value == y->value && x->site == y->site &&
           x->buffer == y->buffer;
}

/* Where it is among the arguments, or behind the last. Most are asked for again and again. */
static size_t find(SizeWalk *w, const KArgument *want)
{
    size_t hash =
        (size_t)want->kind + 5 * (size_t)want->dim.n + 3 * want->dim.b + 7 * want->dim.t + 11 * (size_t)want->value;
    uint32_t *last = &w->last[hash % COUNT_OF(w->last)];
    if (*last < w->argument.n && kernel_same_argument(&w->argument.v[*last], want))
        return *last;
    size_t slot = 0;
    while (slot < w->argument.n && !kernel_same_argument(&w->argument.v[slot], want))
        slot++;
    *last = (uint32_t)slot;
    return slot;
}

/* Slots that make two sizes one argument, or leave one out, are wrong. */
static size_t add(SizeWalk *w, size_t slot, KArgument want)
{
    bool fits = slot == w->argument.n || (slot < w->argument.n && kernel_same_argument(&w->argument.v[slot], &want));
    w->wrong = w->wrong || !fits;
    slot = fits ? slot : find(w, &want);
    if (slot == w->argument.n)
        vec_push(w->k->arena, &w->argument, want);
    return slot;
}

/* What the slots say of the next use; SIZE_MAX: nothing. */
static size_t next_slot(const SizeWalk *w)
{
    return w->slots && w->use.n < w->slots->n ? w->slots->slot[w->use.n] : SIZE_MAX;
}

static void literal(SizeWalk *w)
{
    size_t slot = next_slot(w);
    w->wrong = w->wrong || (slot != USE_LITERAL && slot != SIZE_MAX);
    vec_push(w->k->arena, &w->use, USE_LITERAL);
}

static void argument(SizeWalk *w, KArgument want)
{
    size_t slot = next_slot(w);
    slot = slot == SIZE_MAX ? find(w, &want) : slot - 1; /* of a literal it is none */
    vec_push(w->k->arena, &w->use, (uint32_t)add(w, slot, want) + 1);
}

static KArgument of_dim(Dim d) { return (KArgument){.kind = KA_DIM, .dim = d}; }

static void dim(SizeWalk *w, Dim d)
{
    if (ix_literal(w->k->ix, d))
        literal(w);
    else
        argument(w, of_dim(d));
}

/* The text relies on d being a multiple. It is one of the last that it names, unless it is still to come. */
static void rely(SizeWalk *w, Dim d, uint8_t multiple)
{
    const KArgument want = of_dim(d);
    size_t slot = SIZE_MAX;
    if (ix_literal(w->k->ix, d))
        return;
    for (size_t i = w->use.n; i-- > 0 && slot == SIZE_MAX;)
        if (w->use.v[i] && kernel_same_argument(&w->argument.v[w->use.v[i] - 1], &want))
            slot = w->use.v[i] - 1;
    slot = add(w, slot == SIZE_MAX ? find(w, &want) : slot, want);
    KArgument *x = &w->argument.v[slot];
    x->multiple = x->multiple > multiple ? x->multiple : multiple;
}

static void rely_on_extent(SizeWalk *w, IVar loop, uint8_t multiple)
{
    rely(w, ix_info(w->k->ix, loop)->extent, multiple);
}

/* ---- of forms and elements ---- */

static void term(SizeWalk *w, const IxTerm *t, bool away, uint32_t width)
{
    int64_t m = t->mult < 0 ? -t->mult : t->mult;
    bool number = kernel_is_place(t) || m != 1;
    if (number && kernel_is_argument(w->k, t, away, w->device))
        argument(w, (KArgument){.kind = KA_VALUE, .value = m});
    else if (number)
        literal(w);
    if (dim_eq(t->coef, DIM(1)))
        return;
    dim(w, t->coef);
    if (width && t->mult % width)
        rely(w, t->coef, (uint8_t)width);
}

/* Where rows are wide and the rest is not, these come first; in each of them constants come last. width: so many elements lie there. */
static void form(SizeWalk *w, Ix ix, uint32_t width)
{
    const IxForm *f = ix_form(w->k->ix, ix);
    const bool away = kernel_has_row_offset(w->k, f), split = w->k->device.mapping.index == INDEX_WIDE_ROWS;
    for (int narrow = 0; narrow < (split ? 2 : 1); narrow++)
        for (int constants = 0; constants < 2; constants++)
            for (uint32_t j = 0; j < f->n; j++)
                if ((f->t[j].var == 0) == constants &&
                    (!split || kernel_var_is_wide(w->k, f->t[j].var) == (narrow == 0)))
                    term(w, &f->t[j], away, width);
}

static void pointer(SizeWalk *w, uint32_t buffer)
{
    if (!w->named[buffer])
        vec_push(w->k->arena, &w->pointer, buffer);
    w->named[buffer] = true;
}

static void element(SizeWalk *w, uint32_t buffer, Ix ix, uint32_t width)
{
    const KBuffer *b = &w->k->buffer.v[buffer];
    if (!b->tile)
        pointer(w, buffer);
    else if (!w->device && !w->named[buffer])
        vec_push(w->k->arena, &w->tile, buffer);
    w->named[buffer] = w->named[buffer] || b->tile;
    form(w, ix, width);
}

static void array_element(SizeWalk *w, int array) { form(w, kernel_array_at(w->k, array), 0); }

static void part_size(SizeWalk *w, size_t buffer)
{
    argument(w, (KArgument){.kind = KA_PART, .buffer = (uint32_t)buffer, .value = w->k->buffer.v[buffer].elements});
}

static void random_number(SizeWalk *w, const KEx *x)
{
    const KSeed *seed = &w->k->seed.v[x->slot];
    argument(w, (KArgument){.kind = KA_STEP});
    argument(w, (KArgument){.kind = KA_SEED, .site = seed->site});
    if (seed->each.n)
        argument(w, (KArgument){.kind = KA_FIRST, .dim = seed->each});
    form(w, x->ix, 0);
}

static void value(SizeWalk *w, Ex e, uint32_t width)
{
    const KEx *x = kx(w->k, e);
    switch ((KKind)x->kind) {
    case KX_INDEX: form(w, x->ix, 0); break;
    case KX_LOAD: element(w, x->slot, x->ix, width); break;
    case KX_INSIDE:
        form(w, x->ix, 0);
        dim(w, x->extent);
        break;
    case KX_RAND: random_number(w, x); break;
    default: break;
    }
}

/* ---- of products ---- */

/* Pieces of an operand begin at multiples of so many elements, along the sum or along its own loop. */
static void rely_on_pieces(SizeWalk *w, const KProduct *x, Ix at, bool along_sum, uint8_t piece)
{
    const IxForm *f = ix_form(w->k->ix, at);
    for (uint32_t i = 0; i < f->n; i++) {
        const IxTerm *t = &f->t[i];
        bool one = dim_eq(t->coef, DIM(1)) && t->mult == 1 && (t->var == x->m || t->var == x->n || t->var == x->k);
        if (!one && t->mult % piece)
            rely(w, t->coef, piece);
    }
    if (along_sum)
        rely_on_extent(w, x->k, piece);
}

static void rely_on_lying(SizeWalk *w, const KProduct *x, uint32_t buffer, Ix at, KLying how)
{
    if (how != LIES_STRIDED)
        rely_on_pieces(w, x, at, how == LIES_ALONG_SUM,
                       product_piece(w->k->buffer.v[buffer].tile, w->k->device.tensor));
}

static void rely_on_left(SizeWalk *w, const KProduct *x) { rely_on_lying(w, x, x->a, x->a_at, x->way.a); }
static void rely_on_right(SizeWalk *w, const KProduct *x) { rely_on_lying(w, x, x->b, x->b_at, x->way.b); }

/* A result whose long extent is of 32s, and lines of a tile that begin at multiples of these. */
static void rely_on_lines(SizeWalk *w, const KProduct *x, IVar along)
{
    enum { LINE = 32 };
    rely_on_extent(w, along, LINE);
    if (w->k->buffer.v[x->c].tile)
        rely_on_pieces(w, x, x->c_at, false, LINE);
}

static void rely_on_cut(SizeWalk *w, const KProduct *x)
{
    enum { EIGHT = 8, TERMS = 32 };
    ProductCut how = x->way.cut;
    if (how >= CUT_FEW_EIGHTS)
        rely_on_pieces(w, x, x->a_at, true, EIGHT);
    if (how == CUT_FEW_EIGHTS || how == CUT_MORE_EIGHTS) {
        rely_on_pieces(w, x, x->b_at, true, EIGHT);
        rely_on_extent(w, x->k, TERMS);
    }
    if (how == CUT_ROWS_BY_PARTS)
        rely_on_lines(w, x, x->n);
}

/* Rows of a result that begin at multiples of four, or are of whole lines. */
static void rely_on_rows(SizeWalk *w, const KProduct *x)
{
    enum { FOUR = 4 };
    const KProductWay *way = &x->way;
    if (!way->line)
        return;
    rely_on_pieces(w, x, x->c_at, false, FOUR);
    if (w->k->device.tensor)
        rely_on_extent(w, way->along, FOUR);
    if (way->line != FOUR)
        rely_on_lines(w, x, way->cut == CUT_SHORT_COLUMNS ? x->m : x->n);
}

/* What the text relies on before it names anything, */
static void rely_on_product(SizeWalk *w, const KProduct *x)
{
    enum { SIXTEEN = 16 };
    rely_on_cut(w, x);
    if (x->also)
        return;
    rely_on_left(w, x);
    rely_on_right(w, x);
    rely_on_rows(w, x);
    if (w->k->device.tensor && x->way.sixteens)
        rely_on_extent(w, x->k, SIXTEEN);
}

static void rely_on_threads(SizeWalk *w, const KProduct *x)
{
    const Kernel *k = w->k;
    if (x->beside) {
        const KProduct *y = &k->product.v[x->beside - 1];
        rely_on_left(w, x);
        rely_on_left(w, y);
        rely_on_right(w, x);
        rely_on_rows(w, x);
        rely_on_rows(w, y);
        return;
    }
    rely_on_product(w, x);
    if (x->also) {
        rely_on_left(w, &k->product.v[x->also - 1]);
        rely_on_right(w, &k->product.v[x->also - 1]);
    }
}

/* and what of the sizes that it has named. Vectors run along one of two loops, and so many lanes are a multiple of all of them. */
static void rely_on_lanes(SizeWalk *w, const KProduct *x)
{
    const bool rows = w->device || x->way.by_rows;
    rely_on_extent(w, rows ? x->m : x->n, PRODUCT_LANES);
    rely_on_extent(w, rows ? x->n : x->m, PRODUCT_LANES);
}

static void product(SizeWalk *w, const KProduct *x)
{
    const KProductCall c = kernel_product_call(w->k, x);
    if (w->device)
        rely_on_threads(w, x);
    for (int i = 0; i < c.n_size; i++)
        dim(w, c.size[i]);
    for (int i = 0; i < c.n_operand; i++) {
        const KOperand *o = &c.operand[i];
        element(w, o->buffer, o->first, 0);
        if (o->rows)
            form(w, o->row, 0);
        for (int j = 0; j < o->n_step; j++)
            form(w, o->step[j], 0);
    }
    if (c.adds)
        dim(w, DIM(x->add));
    if (!w->device || (!w->k->device.tensor && !x->beside && !x->also))
        rely_on_lanes(w, x);
}

/* ---- of statements ---- */

static void begin_parts(SizeWalk *w)
{
    const Kernel *k = w->k;
    const KArgument chunk = {.kind = KA_CHUNK, .value = k->chunk};
    argument(w, chunk);
    argument(w, chunk);
    dim(w, k->rows);
    argument(w, chunk);
    dim(w, k->rows);
}

/* Partial sums of a buffer. */
static void part_sums(SizeWalk *w, const KStmt *s)
{
    const KBuffer *b = &w->k->buffer.v[s->root];
    pointer(w, s->root);
    part_size(w, s->root);
    if (s->kind == KS_PART_STORE && b->device.swizzled)
        dim(w, ix_info(w->k->ix, b->device.swizzled)->extent);
}

static void root_element(SizeWalk *w, const KStmt *s, uint32_t width)
{
    const KRoot *r = &w->k->root.v[s->root];
    element(w, r->buffer, r->at, width);
}

/* Where the elements of a thread lie that a step loads or stores; those that are swizzled are named by their row, too. */
static void elements_of_step(SizeWalk *w, const KStmt *s)
{
    const Kernel *k = w->k;
    const bool array = kernel_of_array(s), load = s->kind == KS_LET;
    if (array)
        array_element(w, s->array);
    else if (load)
        element(w, kx(k, s->ex)->slot, kx(k, s->ex)->ix, s->width);
    else
        root_element(w, s, s->width);
    Ix row;
    if (s->step & (STEP_LOAD | STEP_STORE) && kernel_swizzled(k, s, &row))
        form(w, row, 0);
}

static void step_of(SizeWalk *w, const KStmt *s)
{
    if (s->piece && s->step & STEP_VALUE)
        return;
    if (s->piece)
        elements_of_step(w, s);
    else if (s->kind == KS_LET && s->step == STEP_LOAD)
        value(w, s->ex, s->width);
    else if (s->kind == KS_ARRAY_GET && s->step == STEP_LOAD)
        array_element(w, s->array);
    else if (s->kind == KS_SINK)
        root_element(w, s, s->width);
}

static void lanes(SizeWalk *w, const KStmt *s)
{
    const Kernel *k = w->k;
    const KColumn *c = s->column ? &k->device.column.v[s->column - 1] : NULL;
    const KRoot *r = c && c->root ? &k->root.v[c->root[0]] : NULL;
    if (s->kind == KS_LANE_TAKE || !c)
        return;
    const KEx *x = kx(k, c->ex[0]); /* of what is no root */
    if (!r && x->kind != KX_LOAD) {
        value(w, c->ex[0], 0);
        return;
    }
    pointer(w, r ? r->buffer : x->slot);
    form(w, kernel_column_place(k, c), 0);
}

static void store(SizeWalk *w, const KStmt *s)
{
    const KBuffer *b = &w->k->buffer.v[w->k->root.v[s->root].buffer];
    root_element(w, s, s->width);
    if (b->device.split)
        form(w, w->k->root.v[s->root].at, 0);
    else if (w->vectors && !b->tile && !b->half)
        argument(w, (KArgument){.kind = KA_STREAM});
}

static void open_loop(SizeWalk *w, const KStmt *s)
{
    dim(w, ix_info(w->k->ix, s->var)->extent);
    w->vectors = s->vector;
    if (s->width)
        rely_on_extent(w, s->var, s->width);
    else if (s->vector && w->k->whole)
        rely_on_extent(w, s->var, VECTOR_LANES);
}

static void prefetch(SizeWalk *w, const KStmt *s)
{
    const KPrefetch *x = &w->k->prefetch.v[s->root];
    if (s->kind == KS_PREFETCH && w->device)
        return;
    element(w, x->buffer, x->at, 0);
    if (s->kind == KS_PREFETCH_ROW)
        form(w, x->length, 0);
}

static void statement(SizeWalk *w, const KStmt *s)
{
    const Kernel *k = w->k;
    if (s->step) {
        step_of(w, s);
        return;
    }
    switch (s->kind) {
    case KS_VAR:
        form(w, ix_info(k->ix, s->var)->base, 0);
        dim(w, ix_info(k->ix, s->var)->by);
        break;
    case KS_LET: value(w, s->ex, s->width); break;
    case KS_PART: begin_parts(w); break;
    case KS_PART_ROOM:
    case KS_PART_PLACE:
    case KS_PART_FILL:
    case KS_PART_STORE: part_sums(w, s); break;
    case KS_LOOP: open_loop(w, s); break;
    case KS_END: w->vectors = false; break;
    case KS_ARRAY:
    case KS_ARRAY_FILL: dim(w, kernel_array_size(k, &k->array.v[s->array])); break;
    case KS_ARRAY_PUT:
    case KS_ARRAY_ADD:
    case KS_ARRAY_GET: array_element(w, s->array); break;
    case KS_STORE: store(w, s); break;
    case KS_SINK:
        if (!k->device.mapping.by_row) /* else a thread has it in a register */
            root_element(w, s, s->width);
        break;
    case KS_SUM_PUT: root_element(w, s, 0); break;
    case KS_PREFETCH:
    case KS_PREFETCH_ROW: prefetch(w, s); break;
    case KS_ROW_TILES:
        for (size_t i = 0; i < k->device.tile_slot.n; i++)
            if (k->device.tile_slot.v[i].rows)
                dim(w, DIM(k->device.tile_slot.v[i].each));
        break;
    case KS_LANES:
    case KS_LANE_STORE: lanes(w, s); break;
    case KS_PRODUCT: product(w, &k->product.v[s->root]); break;
    default: break;
    }
}

/* What lies outside of registers. */
static void grid(SizeWalk *w)
{
    const Kernel *k = w->k;
    const KGrid *g = &k->device.grid;
    for (size_t i = 0; i < g->n_fixed; i++)
        if (g->term[i].part >= 0)
            part_size(w, (size_t)g->term[i].part);
        else
            argument(w, of_dim(g->term[i].size));
    if (g->blocks)
        argument(w, of_dim(DIM(g->spilled)));
    for (size_t i = 0; i < k->device.tile_slot.n; i++) {
        Dim size = DIM(k->device.tile_slot.v[i].words);
        dim(w, size);
        if (!ix_literal(k->ix, size))
            argument(w, of_dim(size));
    }
}

static void walk(SizeWalk *w)
{
    const Kernel *k = w->k;
    w->named = NEW_ARRAY(k->arena, bool, k->buffer.n + 1);
    for (size_t i = 0; i < k->stmt.n; i++)
        statement(w, &k->stmt.v[i]);
    for (size_t i = 0; i < w->tile.n; i++)
        dim(w, DIM(k->buffer.v[w->tile.v[i]].elements));
    grid(w);
}

static SizeWalk walk_of(const Kernel *k, const ArgumentSlots *slots)
{
    SizeWalk w = {.k = k, .device = k->target->threads, .slots = slots};
    walk(&w);
    return w;
}

void kernel_find_arguments(Kernel *k, const ArgumentSlots *slots)
{
    SizeWalk w = walk_of(k, slots);
    if (w.wrong)
        vwn_bug(k->ctx, "two sizes in the place of one argument");
    k->numbered = true;
    k->argument.v = w.argument.v, k->argument.n = w.argument.n;
    k->use.v = w.use.v, k->use.n = w.use.n;
    k->pointer.v = w.pointer.v, k->pointer.n = w.pointer.n;
    k->argument.cap = k->use.cap = k->pointer.cap = 0;
}

/* ---- are they right? ---- */

static int64_t value_at(const Kernel *k, const KArgument *x)
{
    return x->kind == KA_DIM || x->kind == KA_FIRST ? ix_dim_at(k->ix, x->dim) : x->value;
}

/* Has the program the sizes that its statements name, in their order? */
const char *kernel_check_arguments(const Kernel *k)
{
    if (!k->numbered)
        return NULL;
    const SizeWalk w = walk_of(k, &(ArgumentSlots){k->use.n, k->use.v});
    if (w.use.n != k->use.n)
        return "more or fewer sizes than its statements name";
    if (w.pointer.n != k->pointer.n ||
        (w.pointer.n && memcmp(w.pointer.v, k->pointer.v, w.pointer.n * sizeof *w.pointer.v) != 0))
        return "other tensors than its statements name";
    bool same = !w.wrong && w.argument.n == k->argument.n;
    for (size_t i = 0; i < k->argument.n && same; i++)
        same = kernel_same_argument(&k->argument.v[i], &w.argument.v[i]);
    if (!same)
        return "an argument in the place of another size";
    for (size_t i = 0; i < k->argument.n; i++)
        if (k->argument.v[i].multiple != w.argument.v[i].multiple)
            return "an argument that is not said to be the multiple which the text takes it for";
    for (size_t i = 0; i < k->argument.n; i++)
        if (k->argument.v[i].multiple && value_at(k, &k->argument.v[i]) % k->argument.v[i].multiple)
            return "an argument that is no multiple of what it is said to be";
    return NULL;
}
