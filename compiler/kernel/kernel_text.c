/* kernel_text.c - kernel programs as lines; kernel_read.c reads them back.
 *
 * In:  scheduled kernels.     Out: for each its tables and its statements:
 *     vwn kernels 1 B=2 T=128
 *     kernel "rows: mul, sum"  # layer[1].norm gpt.vwn:7:5
 *     rows B*T
 *     buffer 0 read real 49152 "embed"
 *     buffer 1 write real 49152 "layer[1].norm"
 *     scalar 0 = 0.125 "layer[1].norm"
 *     var i2 loop 192
 *     root 0 store b1 over i2
 *     begin
 *       rows
 *         acc x1 real = sum over i2
 *         loop i2 simd x1
 *           x2 real = load b0[{192}*r + i2]
 *           add x1 x2
 *         end
 *         loop i2 simd
 *           x3 real = load b0[{192}*r + i2]
 *           x4 real = mul x3 x1
 *           store 0 b1[{192}*r + i2] = x4
 *         end
 *       end
 * Of threads it says behind each statement who does it, and of a step what that does with which registers: "new h3" makes room in
 * them, "fetch h3" loads into them, "value h3" takes the value from them or puts it there, "write h3" stores them. Several totals that
 * are one step stand in the order of the threads that have them, and "as l0" says where these compute of them alike.
 * A loop that says nothing of its unrolling is written once, one of "unroll any" as the compiler likes.
 * The one idea: expressions are numbered as they appear, index variables in their own order
 * without those that nothing uses; both are the same again for what was read. {192} is an
 * extent, which the emitted text takes as an argument; a plain factor is part of it.
 */
#include "kernel_text.h"

typedef struct KernelPrinter {
    Buf *out;
    const Kernel *k;
    uint32_t *ex, next; /* number of an expression, 0: none yet */
    bool *used;         /* variables */
    uint32_t *var;
} KernelPrinter;

static const char *const type_names[] = {[KT_REAL] = "real", [KT_INT] = "int", [KT_BOOL] = "bool"};
const char *const kernel_lying_words[LIES_COUNT] = {
    [LIES_STRIDED] = "strided", [LIES_ALONG_SUM] = "along the sum", [LIES_ALONG_OWN] = "along its own"};
const char *const kernel_cut_words[CUT_COUNT] = {
    [CUT_WIDE_PIECES] = "wide pieces",     [CUT_FEW_COLUMNS] = "few columns",   [CUT_FEW_ROWS] = "few rows",
    [CUT_LONG_ROWS] = "long rows",         [CUT_LONG_COLUMNS] = "long columns", [CUT_SHORT_ROWS] = "short rows",
    [CUT_SHORT_COLUMNS] = "short columns", [CUT_FEW_NUMBERS] = "few numbers",   [CUT_MORE_NUMBERS] = "more numbers",
    [CUT_FEW_EIGHTS] = "few eights",       [CUT_MORE_EIGHTS] = "more eights",   [CUT_ROWS_BY_PARTS] = "rows by parts"};

const char *const kernel_across_words[ACROSS_COUNT] = {[ACROSS_VALUE] = "of one value",
                                                       [ACROSS_SUM] = "to one sum",
                                                       [ACROSS_FIRST] = "of places at one",
                                                       [ACROSS_SECOND] = "of one at places"};

/* ---- which variables there are ---- */

static void use_ix(KernelPrinter *p, Ix ix);

static void use_var(KernelPrinter *p, IVar v)
{
    const IVarInfo *info = ix_info(p->k->ix, v);
    if (p->used[v])
        return;
    p->used[v] = true;
    if (info->kind == IV_DIV || info->kind == IV_MOD)
        use_ix(p, info->base);
}

static void use_ix(KernelPrinter *p, Ix ix)
{
    const IxForm *f = ix_form(p->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++)
        use_var(p, f->t[i].var);
}

static void use_nest(KernelPrinter *p, const KNest *n)
{
    for (uint32_t i = 0; i < n->n; i++)
        use_var(p, n->var[i]);
}

static void use_all(KernelPrinter *p)
{
    const Kernel *k = p->k;
    for (size_t i = 0; i < k->stmt.n; i++) {
        use_var(p, k->stmt.v[i].var);
        use_ix(p, kx(k, k->stmt.v[i].ex)->ix);
        use_nest(p, &kx(k, k->stmt.v[i].ex)->over);
    }
    for (size_t i = 0; i < k->array.n; i++)
        use_nest(p, &k->array.v[i].nest);
    for (size_t i = 0; i < k->root.n; i++) {
        use_ix(p, k->root.v[i].at);
        use_nest(p, &k->root.v[i].nest);
    }
    for (size_t i = 0; i < k->product.n; i++) {
        const KProduct *x = &k->product.v[i];
        use_nest(p, &(KNest){3, {x->m, x->n, x->k}});
        use_ix(p, x->a_at);
        use_ix(p, x->b_at);
        use_ix(p, x->c_at);
    }
    for (size_t i = 0; i < k->device.column.n; i++)
        for (uint32_t j = 0; j < k->device.column.v[i].n && !k->device.column.v[i].root; j++)
            use_ix(p, kx(k, k->device.column.v[i].ex[j])->ix);
    for (size_t i = 0; i < k->prefetch.n; i++)
        use_ix(p, k->prefetch.v[i].at);
    p->used[0] = false;
    p->used[k->row] = true;
    if (k->part)
        p->used[k->part] = true;
    for (size_t v = 1, n = 0; v < k->ix->var.n; v++)
        p->var[v] = p->used[v] ? (uint32_t)++n : 0;
}

/* ---- parts of lines ---- */

static void put_var(KernelPrinter *p, IVar v)
{
    if (v == p->k->row)
        buf_putc(p->out, 'r');
    else if (v == p->k->part)
        buf_puts(p->out, "part");
    else
        buf_printf(p->out, "i%u", p->var[v]);
}

static void put_dim(KernelPrinter *p, Dim d)
{
    buf_putc(p->out, '{');
    dim_print(p->out, d);
    buf_putc(p->out, '}');
}

static void put_term(KernelPrinter *p, const IxTerm *t, bool first)
{
    bool extent = !dim_eq(t->coef, DIM(1));
    uint64_t m = t->mult < 0 ? 0 - (uint64_t)t->mult : (uint64_t)t->mult;
    const char *times = "";
    buf_puts(p->out, t->mult < 0 ? (first ? "-" : " - ") : first ? "" : " + ");
    if (m != 1 || (t->var == 0 && !extent)) {
        buf_printf(p->out, "%llu", (unsigned long long)m);
        times = "*";
    }
    if (extent) {
        buf_puts(p->out, times);
        put_dim(p, t->coef);
        times = "*";
    }
    if (t->var) {
        buf_puts(p->out, times);
        put_var(p, t->var);
    }
}

static void put_ix(KernelPrinter *p, Ix ix)
{
    const IxForm *f = ix_form(p->k->ix, ix);
    buf_putc(p->out, '[');
    for (uint32_t i = 0; i < f->n; i++)
        put_term(p, &f->t[i], i == 0);
    buf_puts(p->out, f->n ? "]" : "0]");
}

static void put_ex(KernelPrinter *p, Ex e)
{
    const KEx *x = kx(p->k, e);
    if (x->kind == KX_CONST) {
        host_print_number(p->out, x->value);
        buf_puts(p->out, x->type == KT_INT ? "i" : x->type == KT_BOOL ? "b" : "");
        return;
    }
    if (!p->ex[e])
        p->ex[e] = ++p->next;
    buf_printf(p->out, "x%u", p->ex[e]);
}

static void put_over(KernelPrinter *p, const KNest *n)
{
    for (uint32_t i = 0; i < n->n; i++) {
        buf_puts(p->out, i ? ", " : " over ");
        put_var(p, n->var[i]);
    }
}

static void put_name(KernelPrinter *p, const char *name)
{
    if (!name || !*name)
        return;
    buf_putc(p->out, ' ');
    buf_json_string(p->out, name, strlen(name));
}

/* ---- tables ---- */

static void put_var_line(KernelPrinter *p, IVar v)
{
    const IVarInfo *info = ix_info(p->k->ix, v);
    if (v == p->k->row)
        return;
    buf_puts(p->out, "var ");
    put_var(p, v);
    if (info->kind == IV_LOOP) {
        buf_puts(p->out, " loop ");
        dim_print(p->out, info->extent);
    } else if (info->kind == IV_VALUE) {
        buf_puts(p->out, " value ");
        put_ex(p, info->value);
        buf_puts(p->out, " below ");
        dim_print(p->out, info->extent);
    } else if (info->kind == IV_DIV || info->kind == IV_MOD) {
        buf_puts(p->out, " = ");
        put_ix(p, info->base);
        buf_puts(p->out, info->kind == IV_DIV ? " / " : " % ");
        dim_print(p->out, info->by);
    }
    buf_putc(p->out, '\n');
}

static void put_tables(KernelPrinter *p)
{
    const Kernel *k = p->k;
    buf_puts(p->out, "rows ");
    dim_print(p->out, k->rows);
    if (k->part)
        buf_printf(p->out, " parts %lld of %lld", (long long)k->partitions, (long long)k->chunk);
    for (int n = 0; n <= LITERAL_MAX; n++)
        if (k->ix->arguments >> n & 1)
            buf_printf(p->out, " argument %d", n);
    buf_puts(p->out, k->flat ? " flat" : "");
    buf_puts(p->out, k->target->threads ? " device" : "");
    if (k->target->threads && k->unrolled)
        buf_printf(p->out, " unrolled %lld", (long long)k->unrolled);
    buf_puts(p->out, k->device.tensor && k->product.n ? " tensor" : "");
    if (kernel_has_vectors(k))
        buf_printf(p->out, "%s%s", k->whole ? " whole" : "", k->lines ? " lines" : "");
    buf_putc(p->out, '\n');
    for (size_t i = 0; i < k->buffer.n; i++) {
        const KBuffer *b = &k->buffer.v[i];
        buf_printf(p->out, "buffer %zu%s%s%s%s %s %lld", i, b->read ? " read" : "", b->written ? " write" : "",
                   b->partly ? " partly" : "",
                   b->part >= 0 ? " part"
                   : b->tile    ? " tile"
                                : "",
                   b->dtype == DT_INT ? "int" : half_word(b->half), (long long)b->elements);
        if (b->tile && b->rounded)
            buf_printf(p->out, " of %s", half_word(b->rounded));
        put_name(p, b->name);
        buf_putc(p->out, '\n');
    }
    for (size_t i = 0; i < k->scalar.n; i++) {
        const KScalar *s = &k->scalar.v[i];
        buf_printf(p->out, "scalar %zu = ", i);
        if (s->host >= 0)
            buf_printf(p->out, "host %d", (int)s->host);
        else
            host_print_number(p->out, s->value);
        put_name(p, s->name);
        buf_putc(p->out, '\n');
    }
    for (size_t i = 0; i < k->seed.n; i++) {
        buf_printf(p->out, "seed %zu ", i);
        buf_json_string(p->out, k->seed.v[i].site, strlen(k->seed.v[i].site));
        buf_puts(p->out, " each ");
        dim_print(p->out, k->seed.v[i].each);
        buf_putc(p->out, '\n');
    }
    for (size_t v = 1; v < k->ix->var.n; v++)
        if (p->used[v])
            put_var_line(p, (IVar)v);
    for (size_t i = 0; i < k->root.n; i++) {
        const KRoot *r = &k->root.v[i];
        buf_printf(p->out, "root %zu %s b%u", i, r->kind == KR_STORE ? "store" : op_info(r->op)->name, r->buffer);
        put_over(p, &r->nest);
        buf_putc(p->out, '\n');
    }
}

/* ---- statements ---- */

static const char *kind_name(const KEx *x)
{
    switch ((KKind)x->kind) {
    case KX_SCALAR: return "scalar";
    case KX_INDEX: return "index";
    case KX_LOAD: return "load";
    case KX_INSIDE: return "inside";
    case KX_AND: return "and";
    case KX_SELECT: return "select";
    default: return op_info((Op)x->op)->name; /* OP, RAND, REDUCE */
    }
}

/* "x3 real = mul x1 x2" */
static void put_definition(KernelPrinter *p, Ex e)
{
    const KEx *x = kx(p->k, e);
    put_ex(p, e);
    buf_printf(p->out, " %s = %s", type_names[x->type], kind_name(x));
    if (x->kind == KX_REDUCE) {
        put_over(p, &x->over);
        return;
    }
    if (x->kind == KX_SCALAR)
        buf_printf(p->out, " s%u", x->slot);
    if (x->kind == KX_LOAD)
        buf_printf(p->out, " b%u", x->slot);
    if (x->kind == KX_RAND)
        buf_printf(p->out, " n%u", x->slot);
    if (x->kind == KX_INDEX || x->kind == KX_INSIDE)
        buf_putc(p->out, ' ');
    if (x->kind == KX_INDEX || x->kind == KX_INSIDE || x->kind == KX_LOAD || x->kind == KX_RAND)
        put_ix(p, x->ix);
    if (x->kind == KX_INSIDE) {
        buf_puts(p->out, " below ");
        dim_print(p->out, x->extent);
    }
    if (x->kind == KX_LOAD && x->in[0])
        buf_puts(p->out, " if");
    for (int i = 0; i < 3; i++)
        if (x->in[i]) {
            buf_putc(p->out, ' ');
            put_ex(p, x->in[i]);
        }
    if (x->kind == KX_OP && x->i)
        buf_printf(p->out, " i=%lld", (long long)x->i);
    buf_puts(p->out, x->kind == KX_SELECT && x->i ? " as loaded" : "");
}

/* "t0 real over i2, i3" */
static void put_array(KernelPrinter *p, int array)
{
    const KArray *a = &p->k->array.v[array];
    buf_printf(p->out, "t%d %s", array, a->dtype == DT_INT ? "int" : "real");
    put_over(p, &a->nest);
    buf_printf(p->out, "%s%s", a->spilled ? " in memory" : "", a->sums ? " of sums" : "");
    if (a->swizzled) {
        buf_puts(p->out, " swizzled along ");
        put_var(p, a->swizzled);
    }
}

/* "0 b1[{64}*r + i2] = x4" */
static void put_root(KernelPrinter *p, uint32_t root)
{
    const KRoot *r = &p->k->root.v[root];
    buf_printf(p->out, "%u b%u", root, r->buffer);
    put_ix(p, r->at);
    buf_puts(p->out, " = ");
    put_ex(p, r->value);
}

/* " by rows along i3, a along its own, b along the sum, in wide pieces, lines of 4, of sixteens": what passes have found of it */
static void put_way(KernelPrinter *p, const KProductWay *way)
{
    if (!way->a)
        return;
    buf_printf(p->out, " by %s along ", way->by_rows ? "rows" : "columns");
    put_var(p, way->along);
    buf_printf(p->out, ", a %s, b %s", kernel_lying_words[way->a], kernel_lying_words[way->b]);
    if (way->cut)
        buf_printf(p->out, ", in %s", kernel_cut_words[way->cut]);
    if (way->line)
        buf_printf(p->out, ", lines of %u", way->line);
    buf_puts(p->out, way->sixteens ? ", of sixteens" : "");
}

/* "b7[{128}*i2 + i3] = b2[{64}*i2 + i4] * b5[{128}*i4 + i3] over i2, i3, i4" */
static void put_product(KernelPrinter *p, const KProduct *x)
{
    buf_printf(p->out, "b%u", x->c);
    put_ix(p, x->c_at);
    buf_printf(p->out, " %s b%u", x->add ? "+=" : "=", x->a);
    put_ix(p, x->a_at);
    buf_printf(p->out, " * b%u", x->b);
    put_ix(p, x->b_at);
    put_over(p, &(KNest){3, {x->m, x->n, x->k}});
    if (x->also) {
        const KProduct *also = &p->k->product.v[x->also - 1];
        buf_printf(p->out, " and b%u", also->a);
        put_ix(p, also->a_at);
        buf_printf(p->out, " * b%u", also->b);
        put_ix(p, also->b_at);
        put_over(p, &(KNest){3, {also->m, also->n, also->k}});
        put_way(p, &also->way);
    }
    buf_puts(p->out, x->split ? " in two parts" : "");
    buf_puts(p->out, x->rows == 2 ? " of two rows" : x->rows ? " of four rows" : "");
    put_way(p, &x->way);
    if (x->beside) {
        buf_puts(p->out, " beside ");
        put_product(p, &p->k->product.v[x->beside - 1]);
    }
}

/* "l2[0 to 5]" */
static void put_lanes(KernelPrinter *p, uint32_t column, uint32_t first, uint32_t n)
{
    buf_printf(p->out, "l%u[%u to %u]", column - 1, first, first + n - 1);
}

/* "b1[{64}*r + 4] by 1 of 4 by 16" */
static void put_places(KernelPrinter *p, uint32_t buffer, Ix first, const KColumn *c)
{
    buf_printf(p->out, "b%u", buffer);
    put_ix(p, first);
    buf_printf(p->out, " by %lld", (long long)c->place.along);
    if (c->place.of != c->n || c->place.across)
        buf_printf(p->out, " of %u by %lld", c->place.of, (long long)c->place.across);
    if (c->place.base)
        buf_printf(p->out, " from %lld", (long long)c->place.base);
}

/* "l3[0 to 5] = mul l2 x8"; "l4[0 to 5] = load b4[{64}*r] by 1"; "b3[{6}*r] by 1 = l3[0 to 5]" */
static void put_column(KernelPrinter *p, uint32_t column)
{
    const KColumn *c = &p->k->device.column.v[column - 1];
    const KEx *x = kx(p->k, c->ex[0]);
    if (c->root) {
        for (uint32_t j = 0; j < c->n; j++)
            buf_printf(p->out, "%s%u", j ? ", " : "", c->root[j]);
        buf_putc(p->out, ' ');
        put_places(p, p->k->root.v[c->root[0]].buffer, p->k->root.v[c->root[0]].at, c);
        buf_puts(p->out, " = ");
        put_lanes(p, c->in[0], c->first, c->n);
        return;
    }
    put_lanes(p, column, c->first, c->n);
    buf_printf(p->out, " = %s ", kind_name(x));
    if (x->kind == KX_LOAD)
        put_places(p, x->slot, x->ix, c);
    buf_puts(p->out, c->here ? " here" : "");
    if (x->kind == KX_SCALAR)
        buf_printf(p->out, "s%u", x->slot);
    for (int i = 0; i < 3 && x->kind == KX_OP; i++) {
        if (!x->in[i])
            continue;
        buf_puts(p->out, i ? " " : "");
        if (c->in[i])
            buf_printf(p->out, "l%u", c->in[i] - 1);
        else
            put_ex(p, x->in[i]);
    }
    if (x->kind == KX_OP && x->i)
        buf_printf(p->out, " i=%lld", (long long)x->i);
}

/* "b0[{64}*r] of [{64}] by warp 2, 1 of 3" */
static void put_prefetch(KernelPrinter *p, const KStmt *s, const KPrefetch *x)
{
    buf_printf(p->out, "b%u", x->buffer);
    put_ix(p, x->at);
    if (s->kind == KS_PREFETCH)
        return;
    buf_puts(p->out, " of ");
    put_ix(p, x->length);
    buf_printf(p->out, " by warp %u, %u of %u", x->warp, x->nth, x->of);
}

/* ---- what threads of a device do ---- */

/* "tile b3 in place 0 bank 5 in parts of 2 rows" */
static void put_tile(KernelPrinter *p, size_t buffer)
{
    const KBuffer *b = &p->k->buffer.v[buffer];
    buf_printf(p->out, "tile b%zu in place %d bank %d%s", buffer, b->device.slot, b->device.bank,
               b->device.split ? " in parts" : "");
    if (b->device.rows)
        buf_printf(p->out, " of %u rows", b->device.rows);
    buf_putc(p->out, '\n');
}

/* "shared place 0 of 4096 for 4 rows of 1024" */
static void put_place(KernelPrinter *p, size_t place)
{
    const KTilePlace *x = &p->k->device.tile_slot.v[place];
    buf_printf(p->out, "shared place %zu of %lld", place, (long long)x->words);
    if (x->rows)
        buf_printf(p->out, " for %u rows of %lld", x->rows, (long long)x->each);
    buf_putc(p->out, '\n');
}

/* "grid 128 by 1 shared 0 whole" and what shared memory is needed for sizes that are arguments */
static void put_grid(KernelPrinter *p)
{
    const KGrid *g = &p->k->device.grid;
    buf_printf(p->out, "grid %u by %u shared %u%s", g->threads, g->units, g->shared, g->whole ? " whole" : "");
    if (g->blocks)
        buf_printf(p->out, " blocks %u of %lld", g->blocks, (long long)g->spilled);
    if (g->at_once)
        buf_printf(p->out, " at once %u", g->at_once);
    buf_putc(p->out, '\n');
    for (size_t i = 0; i < g->n_term; i++) {
        buf_printf(p->out, "grid needs %u of ", g->term[i].bytes);
        put_dim(p, g->term[i].size);
        if (g->term[i].part >= 0)
            buf_printf(p->out, " sum b%d", (int)g->term[i].part);
        buf_puts(p->out, i >= g->n_fixed ? " tile\n" : "\n");
    }
}

/* "threads 128 rows 1 width 4 slots 6 index narrow registers 22 loads 16 in vectors" and places of tiles, one line each */
static void put_mapping(KernelPrinter *p)
{
    static const char *const index[] = {"wide", "wide of rows", "narrow"};
    const Kernel *k = p->k;
    buf_printf(p->out, "threads %u %s %u", k->device.mapping.row_threads, k->part ? "parts" : "rows",
               k->device.mapping.units);
    if (k->device.mapping.lanes < 32)
        buf_printf(p->out, " lanes %u", k->device.mapping.lanes);
    buf_printf(p->out, " width %u slots %u index %s registers %u loads %u%s%s%s%s", k->device.mapping.width,
               k->device.mapping.slots, index[k->device.mapping.index], k->device.mapping.pressure,
               k->device.mapping.in_flight, k->device.mapping.pieces ? " in pieces" : "",
               k->device.mapping.by_row ? " a row each" : "",
               k->device.mapping.sums_shared ? " sums in shared memory" : "",
               k->device.mapping.vectors ? " in vectors" : "");
    buf_putc(p->out, '\n');
    if (k->calls)
        buf_puts(p->out, "products are called\n");
    for (size_t i = 0; i < k->buffer.n && k->device.mapping.sums_shared; i++)
        if (k->buffer.v[i].part >= 0 && !k->buffer.v[i].device.shared)
            buf_printf(p->out, "sum b%zu in memory\n", i);
    for (size_t i = 0; i < k->buffer.n; i++)
        if (k->buffer.v[i].device.swizzled) {
            buf_printf(p->out, "sum b%zu swizzled along ", i);
            put_var(p, k->buffer.v[i].device.swizzled);
            buf_putc(p->out, '\n');
        }
    for (size_t i = 0; i < k->device.tile_slot.n; i++)
        put_place(p, i);
    for (size_t i = 0; i < k->buffer.n && k->device.tile_slot.n; i++)
        if (k->buffer.v[i].tile && k->buffer.v[i].device.slot >= 0)
            put_tile(p, i);
    if (k->device.grid.threads)
        put_grid(p);
}

/* ---- arguments of its text ---- */

/* "{192}", "value 64", "chunk", "sum b3", "seed 0", "step", "first {20*T}", "stream" */
static void put_argument(KernelPrinter *p, const KArgument *x)
{
    size_t seed = 0;
    switch (x->kind) {
    case KA_DIM: put_dim(p, x->dim); break;
    case KA_VALUE: buf_printf(p->out, "value %lld", (long long)x->value); break;
    case KA_CHUNK: buf_puts(p->out, "chunk"); break;
    case KA_PART: buf_printf(p->out, "sum b%u", x->buffer); break;
    case KA_SEED:
        while (seed + 1 < p->k->seed.n && p->k->seed.v[seed].site != x->site)
            seed++;
        buf_printf(p->out, "seed %zu", seed);
        break;
    case KA_STEP: buf_puts(p->out, "step"); break;
    case KA_FIRST:
        buf_puts(p->out, "first ");
        put_dim(p, x->dim);
        break;
    case KA_STREAM: buf_puts(p->out, "stream"); break;
    }
    if (x->multiple)
        buf_printf(p->out, " multiple %u", x->multiple);
    buf_putc(p->out, '\n');
}

/* Buffers and integers that the text has as arguments, and which of these each use of a size is: "-", a literal. */
static void put_arguments(KernelPrinter *p)
{
    enum { LINE = 40 };
    const Kernel *k = p->k;
    buf_puts(p->out, "pointers");
    for (size_t i = 0; i < k->pointer.n; i++)
        buf_printf(p->out, " b%u", k->pointer.v[i]);
    buf_putc(p->out, '\n');
    for (size_t i = 0; i < k->argument.n; i++) {
        buf_printf(p->out, "argument %zu = ", i);
        put_argument(p, &k->argument.v[i]);
    }
    for (size_t i = 0; i < k->use.n; i++) {
        buf_puts(p->out, i % LINE ? " " : "uses ");
        if (k->use.v[i] == USE_LITERAL)
            buf_putc(p->out, '-');
        else
            buf_printf(p->out, "%u", k->use.v[i] - 1);
        if (i % LINE == LINE - 1 || i + 1 == k->use.n)
            buf_putc(p->out, '\n');
    }
}

/* How a statement is shared: behind it. */
static void put_sharing(KernelPrinter *p, const KStmt *s)
{
    static const char *const of[] = {"row", "warp", "warps"}, *const step[] = {" new", " fetch", " value", " write"};
    if (s->mapped)
        buf_puts(p->out, s->threads == THREADS_OF_ROW    ? " by threads"
                         : s->threads == THREADS_OF_WARP ? " by lanes"
                                                         : " by warps");
    if (s->first)
        buf_printf(p->out, " from warp %u", s->first);
    if (s->one)
        buf_printf(p->out, " by one of %s", of[s->threads]);
    if (s->kind == KS_PIECES)
        buf_printf(p->out, " of %u", s->piece);
    if (s->width > 1)
        buf_printf(p->out, " width %u", s->width);
    if (s->across)
        buf_printf(p->out, " %s", kernel_across_words[s->across]);
    if (s->piece && s->kind != KS_PIECES)
        buf_printf(p->out, " piece %u", s->piece);
    if (p->k->device.mapping.row_threads && (s->kind == KS_LOOP || s->kind == KS_ROWS) && !s->unroll)
        buf_puts(p->out, " unroll any");
    else if (s->unroll > 1 && !s->step)
        buf_printf(p->out, " unroll %u", s->unroll);
    if (s->totals && s->column)
        buf_printf(p->out, " as l%u", s->column - 1);
    for (int i = 0; i < 4; i++)
        buf_puts(p->out, s->step >> i & 1 ? step[i] : "");
    if (s->step)
        buf_printf(p->out, " h%u", s->held);
    if (s->step && s->unroll)
        buf_printf(p->out, " of %u", s->unroll);
    if (s->step && s->var) {
        buf_puts(p->out, " round ");
        put_var(p, s->var);
    }
}

static void put_total(KernelPrinter *p, Ex ex, uint32_t root)
{
    if (ex)
        put_ex(p, ex);
    else
        buf_printf(p->out, "root %u", root);
}

/* "x5", "root 3", or of a step "x5 alone, x6 alone, x7" */
static void put_totals(KernelPrinter *p, const KStmt *s)
{
    const KTotals *t = kernel_totals(p->k, s);
    if (!t)
        put_total(p, s->ex, s->root);
    for (uint32_t j = 0; t && j < t->n; j++) {
        buf_puts(p->out, j ? ", " : "");
        put_total(p, t->of[j].ex, t->of[j].root);
        buf_puts(p->out, t->of[j].alone ? " alone" : "");
    }
}

/* The field of a statement that has this letter in kstmts.def. */
static void put_field(KernelPrinter *p, const KStmt *s, char field)
{
    switch (field) {
    case 'v': put_var(p, s->var); break;
    case 's':
        buf_puts(p->out, s->simd ? " simd" : "");
        buf_puts(p->out, s->vector ? " vector" : "");
        buf_puts(p->out, s->rest ? " rest" : "");
        buf_puts(p->out, s->singly ? " singly" : "");
        break;
    case 'd': put_definition(p, s->ex); break;
    case 'x': put_ex(p, s->ex); break;
    case 'b': put_ex(p, kx(p->k, s->ex)->in[0]); break;
    case 't': buf_printf(p->out, "t%d", s->array); break;
    case 'n': put_array(p, s->array); break;
    case 'q': buf_printf(p->out, "v%d", s->array); break;
    case 'a': buf_printf(p->out, "%u", s->at); break;
    case 'c': buf_printf(p->out, "%u", s->n_acc); break;
    case 'r': put_root(p, s->root); break;
    case 'p': put_product(p, &p->k->product.v[s->root]); break;
    case 'f': put_prefetch(p, s, &p->k->prefetch.v[s->root]); break;
    case 'u': buf_printf(p->out, "b%u", s->root); break;
    case 'l': put_column(p, s->column); break;
    case 'e': buf_printf(p->out, "l%u[%u]", s->column - 1, s->lane); break;
    case 'A':
        for (uint32_t i = 0; i < s->n_acc; i++) {
            buf_putc(p->out, ' ');
            put_ex(p, p->k->acc.v[s->acc + i]);
        }
        break;
    case 'g': put_totals(p, s); break;
    default: vwn_bug(p->k->ctx, "kstmts.def names a field `%c` that no text is known for", field);
    }
}

static void put_stmt(KernelPrinter *p, const KStmt *s)
{
    for (const char *t = kstmt_info[s->kind].text; *t; t++)
        if (*t == '%')
            put_field(p, s, *++t);
        else
            buf_putc(p->out, *t);
    put_sharing(p, s);
}

void kernel_print(Buf *out, const Kernel *k)
{
    KernelPrinter p = {.out = out, .k = k};
    int depth = 1;
    p.ex = NEW_ARRAY(k->arena, uint32_t, k->ex.n);
    p.used = NEW_ARRAY(k->arena, bool, k->ix->var.n);
    p.var = NEW_ARRAY(k->arena, uint32_t, k->ix->var.n);
    use_all(&p);
    put_tables(&p);
    if (k->device.mapping.row_threads)
        put_mapping(&p);
    if (k->numbered)
        put_arguments(&p);
    buf_puts(out, "begin\n");
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        depth -= s->kind == KS_END;
        buf_printf(out, "%*s", depth > 0 ? depth * 2 : 0, "");
        put_stmt(&p, s);
        buf_putc(out, '\n');
        depth += kernel_opens(s);
    }
}

/* ---- lists of kernels ---- */

void kernels_begin(Buf *out, int64_t B, int64_t T)
{
    buf_printf(out, "vwn kernels 1 B=%lld T=%lld\n", (long long)B, (long long)T);
}

void kernels_put(Buf *out, const KernelText *x)
{
    buf_putc(out, '\n');
    if (x->kernel) {
        buf_puts(out, "kernel ");
        buf_json_string(out, x->about, strlen(x->about));
        if (x->comment && *x->comment)
            buf_printf(out, "  # %s", x->comment);
        buf_putc(out, '\n');
        kernel_print(out, x->kernel);
        return;
    }
    buf_printf(out, "library %s", library_name(x->library));
    if (library_has_class(x->library))
        buf_printf(out, " d=%lld dv=%lld%s%s%s", (long long)x->attention.d, (long long)x->attention.dv,
                   x->attention.capped ? " capped" : "", x->attention.dropped ? " dropped" : "",
                   x->attention.oldest ? " oldest" : "");
    buf_putc(out, '\n');
}
