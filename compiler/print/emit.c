/* emit.c - see emit.h: the printer, for any dialect. */
#include "compiler/gpu/map_threads.h"
#include "emit_build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

static void by_one(Printer *p, const KStmt *s)
{
    if (s->one && s->threads == THREADS_OF_WARP)
        buf_printf(&p->body, "if (thread %% %u == 0) ", p->k->device.mapping.lanes);
    else if (s->one)
        buf_puts(&p->body, "if (thread == 0) ");
}

/* target (op)= value */
static void put_fold(Printer *p, const KStmt *s, Op op, const char *target, const char *value)
{
    begin_line(p);
    by_one(p, s);
    if (op == OP_SUM)
        buf_printf(&p->body, "%s += %s", target, value);
    else
        buf_printf(&p->body, "%s = %s > %s ? %s : %s", target, value, target, value, target);
    buf_puts(&p->body, ";\n");
}

/* ---- statements ---- */

/* name[z] = the neutral element, for all z below the extent */
static void put_fill(Printer *p, const char *name, const char *extent, Op op)
{
    begin_line(p);
    const char *type = p->k->device.mapping.index == INDEX_WIDE ? "int64_t" : "int32_t";
    if (p->d->threads) { /* of itself a compiler unrolls it, and takes long over that */
        buf_puts(&p->body, "#pragma unroll 1\n");
        begin_line(p);
    }
    put_for(p, type, "z", extent, p->d->threads, THREADS_OF_ROW, 1, 0);
    buf_putc(&p->body, '\n');
    p->depth++;
    begin_line(p);
    p->depth--;
    buf_printf(&p->body, "%s[z] = %s;\n", name, neutral(p, op));
}

static void stmt_array(Printer *p, const KStmt *s)
{
    const KArray *a = &p->k->array.v[s->array];
    Buf before = begin_piece(p);
    put_dim(p, kernel_array_size(p->k, a));
    char *size = end_piece(p, before), name[24];
    snprintf(name, sizeof name, "t%d", s->array);
    if (s->kind == KS_ARRAY_FILL && a->sums) {
        begin_line(p);
        buf_printf(&p->body, "%s e%d[%" PRId64 "] = {0};\n", p->d->real, s->array, a->elements);
        return;
    }
    if (s->kind == KS_ARRAY_FILL) {
        put_fill(p, name, size, (Op)kx(p->k, s->ex)->op);
        return;
    }
    begin_line(p);
    buf_printf(&p->body, p->d->array, a->dtype == DT_INT ? p->d->integer : p->d->real, name, size,
               a->spilled ? "spilled" : "shared");
    buf_puts(&p->body, "\n");
}

static void simd_line(Printer *p, const KStmt *s)
{
    begin_line(p);
    buf_puts(&p->body, p->d->simd);
    for (int max = 0; max < 2; max++) {
        bool first = true;
        for (uint32_t i = 0; i < s->n_acc; i++) {
            Ex e = p->k->acc.v[s->acc + i];
            if ((kx(p->k, e)->op == OP_AMAX) != max)
                continue;
            buf_puts(&p->body, first ? (max ? " reduction(max: " : " reduction(+: ") : ", ");
            put_ex(p, e);
            first = false;
        }
        buf_puts(&p->body, first ? "" : ")");
    }
    buf_putc(&p->body, '\n');
}

const char *emit_index_type(const Kernel *k, IVar v) { return kernel_var_is_wide(k, v) ? "int64_t" : "int32_t"; }

static void open_loop(Printer *p, const KStmt *s)
{
    const char *index = emit_index_type(p->k, p->k->row);
    bool singly = p->d->singly && s->singly;
    if (s->simd && p->d->simd && !singly)
        simd_line(p, s);
    bool once = s->kind == KS_ROWS && p->k->device.grid.whole;
    if (s->unroll && !once) {
        begin_line(p);
        buf_printf(&p->body, s->mapped && s->unroll > 1 ? "#pragma unroll vwn_rounds(%u)\n" : "#pragma unroll %u\n",
                   s->unroll);
    }
    begin_line(p);
    if (once) {
        buf_printf(&p->body, "if (const %s r = first_row; r < rows) {", index);
    } else if (s->kind == KS_ROWS && p->k->part == 0) {
        buf_printf(&p->body, p->d->row_loop, "r", index);
    } else if (s->kind == KS_ROWS && s->mapped) {
        buf_printf(&p->body, "for (%s r = first + thread; r < last; r += THREADS) {", index);
    } else if (s->kind == KS_ROWS) {
        buf_printf(&p->body, "for (%s r = first; r < last; r++) {", index);
    } else {
        Buf before = begin_piece(p);
        put_var(p, s->var);
        char *name = end_piece(p, before);
        before = begin_piece(p);
        put_dim(p, ix_info(p->k->ix, s->var)->extent);
        const char *type = emit_index_type(p->k, s->var);
        put_for(p, type, name, end_piece(p, before), s->mapped, s->threads, s->width, s->first);
        buf_puts(&p->body, " {");
    }
    buf_putc(&p->body, '\n');
    p->depth++;
    if (singly) {
        begin_line(p);
        buf_printf(&p->body, "%s\n", p->d->singly);
    }
}

static void open_parts(Printer *p)
{
    begin_line(p);
    const char *index = emit_index_type(p->k, p->k->row);
    buf_printf(&p->body, p->d->row_loop, "part", index);
    buf_putc(&p->body, '\n');
    p->depth++;
    begin_line(p);
    buf_printf(&p->body, "const %s first = part * ", index);
    put_chunk(p);
    buf_puts(&p->body, ";\n");
    begin_line(p);
    buf_printf(&p->body, "const %s last = first + ", index);
    put_chunk(p);
    buf_puts(&p->body, " < ");
    put_dim(p, p->k->rows);
    buf_puts(&p->body, " ? first + ");
    put_chunk(p);
    buf_puts(&p->body, " : ");
    put_dim(p, p->k->rows);
    buf_puts(&p->body, ";\n");
}

/* A partial sum of this partition: where it lies, what it begins with, and, from shared memory, that it is stored. */
static void stmt_part(Printer *p, const KStmt *s)
{
    const KBuffer *x = &p->k->buffer.v[s->root];
    const char *type = x->dtype == DT_INT ? p->d->integer : p->d->real;
    size_t slot = slot_of(p, s->root);
    Buf before = begin_piece(p);
    put_part_size(p, s->root);
    char *size = end_piece(p, before), name[24];
    snprintf(name, sizeof name, "q%zu", slot);
    if (s->kind == KS_PART_FILL && !x->device.swizzled) {
        put_fill(p, name, size, x->op);
        return;
    }
    begin_line(p);
    if (s->kind == KS_PART_ROOM) {
        buf_printf(&p->body, p->d->array, type, name, size, "shared");
        buf_putc(&p->body, '\n');
    } else if (s->kind == KS_PART_PLACE) {
        buf_printf(&p->body, "%s *const %s = p%zu + part * %s;\n", type, name, slot, size);
    } else if (s->kind == KS_PART_FILL) {
        buf_printf(&p->body, "vwn_fill_turned<THREADS>(%s, %s);\n", name, size);
    } else {
        emit_part_store(p, x, slot, size);
    }
}

static void stmt_var(Printer *p, IVar v)
{
    const IVarInfo *info = ix_info(p->k->ix, v);
    begin_line(p);
    buf_printf(&p->body, "const %s ", emit_index_type(p->k, v));
    put_var(p, v);
    buf_puts(&p->body, " = (");
    put_ix(p, info->base);
    buf_puts(&p->body, info->kind == IV_DIV ? ") / " : ") % ");
    put_dim(p, info->by);
    buf_puts(&p->body, ";\n");
}

/* An accumulator of a vector loop: one sum per lane. */
static char *lanes_name(Printer *p, Ex e)
{
    Buf b = buf_new(p->k->arena);
    buf_printf(&b, "w%u", p->number[e]);
    return b.s;
}

/* sum += the value, or, of a vector, its lanes */
static void put_sum(Printer *p, const char *sum, const char *value)
{
    begin_line(p);
    buf_printf(&p->body, p->lanes ? "%s = " : "%s += ", sum);
    if (p->lanes)
        buf_printf(&p->body, p->d->lanes_add, sum, value);
    else
        buf_puts(&p->body, value);
    buf_puts(&p->body, ";\n");
}

/* A vector goes to an accumulator of vectors, or on a device, whose vectors are short, the sum
 * (or maximum) of its lanes goes to the one accumulator. */
static void stmt_add(Printer *p, const KStmt *s)
{
    Ex e = s->ex;
    const KEx *x = kx(p->k, e);
    char *value = ex_text(p, x->in[0]);
    bool short_vector = p->across == ACROSS_SUM; /* else each of its elements has a sum of its own */
    if (short_vector && x->op == OP_SUM) {
        put_sum(p, ex_text(p, e), value);
        return;
    }
    if (short_vector) {
        Buf b = buf_new(p->k->arena);
        buf_printf(&b, p->d->lanes_max, value);
        value = b.s;
    }
    put_fold(p, s, (Op)x->op, p->lanes && !p->d->threads ? lanes_name(p, e) : ex_text(p, e), value);
}

static void stmt_store(Printer *p, const KStmt *s)
{
    const KRoot *r = &p->k->root.v[s->root];
    char *to = element_text(p, r->buffer, r->at), *value = stored_text(p, r->value);
    const KBuffer *b = &p->k->buffer.v[r->buffer];
    Half half = b->half;
    begin_line(p);
    by_one(p, s);
    if (b->device.split) {
        buf_printf(&p->body, "vwn_put_parts<%d>(u%d, ", b->device.bank, b->device.slot);
        put_ix(p, r->at);
        buf_printf(&p->body, ", %s)", value);
    } else if (b->tile && !half)
        buf_printf(&p->body, "%s = %s", in_lanes(p, to), value);
    else if (p->lanes && half)
        buf_printf(&p->body, "vwn_put_%s(&%s, %s)", half_word(half), to, value);
    else if (p->lanes && p->d->threads)
        buf_printf(&p->body, "%s = %s", in_lanes(p, to), value);
    else if (p->lanes)
        buf_printf(&p->body, p->d->put, to, value, next_argument(p, (KArgument){.kind = KA_STREAM}));
    else if (half)
        buf_printf(&p->body, "%s = vwn_%s(%s)", to, half_word(half), value);
    else
        buf_printf(&p->body, "%s = %s", to, value);
    buf_puts(&p->body, ";\n");
}

/* The array is a multiple of a vector long, so that nothing is left over. Threads that share a row
 * take an element each: then a thread holds one value of the array for every 32 elements. */
static void stmt_batch(Printer *p, const KStmt *s)
{
    const KEx *x = kx(p->k, s->ex);
    uint32_t lanes = s->mapped ? 32 : VECTOR_LANES, number = s->mapped ? s->at / 32 : s->at;
    uint32_t size = (s->n_acc + lanes - 1) / lanes * (s->mapped ? 1 : lanes);
    if (s->kind == KS_BATCH_IN && s->at == 0) {
        begin_line(p);
        buf_printf(&p->body, "%s v%d[%u] = {0};\n", p->d->real, s->array, size);
    }
    if (s->kind == KS_BATCH_OUT) {
        put_definition(p, s->ex);
        buf_printf(&p->body, s->mapped ? "vwn_from_lane(v%d[%u], %u);\n" : "v%d[%u];\n", s->array, number, s->at % 32);
        return;
    }
    begin_line(p);
    if (s->kind == KS_BATCH_IN) {
        if (s->mapped)
            buf_printf(&p->body, "if (thread %% 32 == %u) ", s->at % 32);
        buf_printf(&p->body, "v%d[%u] = %s;\n", s->array, number, ex_text(p, x->in[0]));
        return;
    }
    if (p->d->simd) {
        buf_printf(&p->body, "%s\n", p->d->simd);
        begin_line(p);
    }
    buf_printf(&p->body, "for (int64_t z = 0; z < %u; z++)\n", size);
    p->depth++;
    begin_line(p);
    p->depth--;
    buf_printf(&p->body, "v%d[z] = ", s->array);
    const char *pattern = op_info((Op)x->op)->c_real;
    for (; *pattern; pattern++) {
        if (pattern[0] == '$' && pattern[1] == 'a')
            buf_printf(&p->body, "v%d[z]", s->array), pattern++;
        else
            buf_putc(&p->body, *pattern);
    }
    buf_puts(&p->body, ";\n");
}

static void stmt_sink(Printer *p, const KStmt *s)
{
    const KRoot *r = &p->k->root.v[s->root];
    char *to = p->k->device.mapping.by_row ? share_name(p, s->ex, s->root) : root_text(p, r);
    put_fold(p, s, r->op, to, ex_text(p, r->value));
}

/* Prefetches the line of one vector. A dialect without a word for it prints nothing. */
static void put_prefetch(Printer *p, const KPrefetch *x)
{
    if (!p->d->prefetch)
        return;
    p->next_row = true;
    char *element = element_text(p, x->buffer, x->at);
    p->next_row = false;
    begin_line(p);
    buf_printf(&p->body, p->d->prefetch, element);
    buf_puts(&p->body, ";\n");
}

/* ---- loops of explicit vectors ---- */

static void stmt_vectors(Printer *p, const KStmt *s)
{
    begin_line(p);
    if (s->kind == KS_VECTOR_ACC) {
        buf_printf(&p->body, "%s %s = {0};\n", p->d->vector, lanes_name(p, s->ex));
    } else if (s->kind == KS_VECTOR_SUM) {
        buf_printf(&p->body, "%s += ", ex_text(p, s->ex));
        buf_printf(&p->body, p->d->lanes_sum, lanes_name(p, s->ex));
        buf_puts(&p->body, ";\n");
    } else {
        buf_puts(&p->body, "{\n");
        p->depth++;
        p->vectors = s->var;
        begin_line(p);
        buf_puts(&p->body, "int64_t ");
        put_var(p, s->var);
        buf_puts(&p->body, " = 0;\n");
    }
}

/* for (; i + lanes <= extent; i += lanes), and single steps from where that ended */
static void open_steps(Printer *p, const KStmt *s)
{
    Buf *b = &p->body;
    const char *lanes = s->vector ? "VWN_LANES" : "1";
    if (p->vectors != s->var)
        vwn_bug(p->k->ctx, "a loop of vectors of which nobody has said where its rounds begin");
    begin_line(p);
    buf_puts(b, "for (; ");
    put_var(p, s->var);
    buf_printf(b, s->vector ? " + %s <= " : " < ", lanes);
    put_dim(p, ix_info(p->k->ix, s->var)->extent);
    buf_puts(b, "; ");
    put_var(p, s->var);
    buf_printf(b, " += %s) {\n", lanes);
    p->depth++;
    p->lanes = s->vector;
}

static void put_statement(Printer *p, const KStmt *s)
{
    const KEx *x = kx(p->k, s->ex);
    p->across = (KAcross)s->across;
    if (p->d->threads) {
        p->lanes = s->width > 1 && !kernel_opens(s);
        p->width = s->width;
    }
    if (s->step) {
        emit_step(p, s);
        return;
    }
    if (s->totals) {
        emit_totals(p, s);
        return;
    }
    switch (s->kind) {
    case KS_VAR: stmt_var(p, s->var); break;
    case KS_LET:
        put_definition(p, s->ex);
        put_value_of(p, s->ex);
        buf_puts(&p->body, ";\n");
        break;
    case KS_PART: open_parts(p); break;
    case KS_ROWS:
    case KS_LOOP:
        if (s->vector || s->rest)
            open_steps(p, s);
        else
            open_loop(p, s);
        break;
    case KS_VECTORS:
    case KS_VECTOR_ACC:
    case KS_VECTOR_SUM: stmt_vectors(p, s); break;
    case KS_PART_ROOM:
    case KS_PART_PLACE:
    case KS_PART_FILL:
    case KS_PART_STORE: stmt_part(p, s); break;
    case KS_END:
        p->lanes = false;
        close_brace(p);
        break;
    case KS_ACC:
        if (!p->number[s->ex])
            p->number[s->ex] = ++p->next;
        begin_line(p);
        buf_printf(&p->body, "%s %s = ", type_name(p, x), ex_text(p, s->ex));
        if (p->lanes)
            buf_printf(&p->body, p->d->all, "0.0f", p->width);
        else
            buf_puts(&p->body, neutral(p, (Op)x->op));
        buf_puts(&p->body, ";\n");
        break;
    case KS_ACC_ADD: stmt_add(p, s); break;
    case KS_ARRAY:
    case KS_ARRAY_FILL: stmt_array(p, s); break;
    case KS_ARRAY_PUT:
        begin_line(p);
        by_one(p, s);
        buf_printf(&p->body, "%s = %s;\n", array_element(p, s->array), stored_text(p, s->ex));
        break;
    case KS_ARRAY_ADD:
        if (p->k->array.v[s->array].sums)
            put_sum(p, array_place(p, 'e', s->array), ex_text(p, x->in[0]));
        else
            put_fold(p, s, (Op)x->op, array_element(p, s->array), ex_text(p, x->in[0]));
        break;
    case KS_ARRAY_GET:
        put_definition(p, s->ex);
        buf_printf(&p->body, "%s;\n", array_element(p, s->array));
        break;
    case KS_BATCH_IN:
    case KS_BATCH_RUN:
    case KS_BATCH_OUT: stmt_batch(p, s); break;
    case KS_STORE: stmt_store(p, s); break;
    case KS_SINK: stmt_sink(p, s); break;
    case KS_PIECES: emit_pieces(p, s); break;
    case KS_BARRIER:
    case KS_SUM_NEW:
    case KS_WARP:
    case KS_WARP_PUT:
    case KS_WARP_TAKE:
    case KS_SUM_PUT: emit_thread(p, s); break;
    case KS_ARRAY_GIVE:
    case KS_ARRAY_TAKE: emit_array_sums(p, s); break;
    case KS_PREFETCH: put_prefetch(p, &p->k->prefetch.v[s->root]); break;
    case KS_PREFETCH_ROW: emit_row_prefetch(p, s); break;
    case KS_ROW_TILES: emit_row_places(p); break;
    case KS_LANES:
    case KS_LANE_TAKE:
    case KS_LANE_STORE: emit_lanes(p, s); break;
    case KS_PRODUCT: emit_product(p, s); break;
    default: break;
    }
}

/* ---- the function ---- */

static void put_tile(Printer *p, Buf *out, size_t i)
{
    Buf before = begin_piece(p);
    put_dim(p, DIM(p->k->buffer.v[p->tile.v[i]].elements));
    char *size = end_piece(p, before), name[24];
    snprintf(name, sizeof name, "u%zu", i);
    buf_puts(out, "    ");
    buf_printf(out, p->d->tile, p->d->real, name, size);
    buf_putc(out, '\n');
}

/* A size of the grid as the argument that brings it. */
static void add_shared(Printer *p, PlanShared *to, const KShared *s)
{
    KArgument size = {.kind = KA_DIM, .dim = s->size};
    if (s->part >= 0)
        size = (KArgument){.kind = KA_PART, .buffer = (uint32_t)s->part, .value = s->size.n};
    to[p->out->grid.n_term++] = (PlanShared){(uint32_t)next_argument(p, size), s->bytes};
}

/* The grid of a device's kernel, and where its block finds what lies outside of registers. */
static void put_grid(Printer *p, Buf *out)
{
    const Kernel *k = p->k;
    const KGrid *of = &k->device.grid;
    PlanGrid *g = &p->out->grid;
    PlanShared *term = NEW_ARRAY(k->arena, PlanShared, of->n_term + 1);
    *g = (PlanGrid){.threads = of->threads,
                    .units = of->units,
                    .shared = of->shared,
                    .whole = of->whole,
                    .blocks = of->blocks,
                    .term = term};
    while (g->n_term < of->n_fixed)
        add_shared(p, term, &of->term[g->n_term]);
    if (of->blocks) {
        g->spilled = (uint32_t)next_argument(p, (KArgument){.kind = KA_DIM, .dim = DIM(of->spilled)});
        buf_printf(out, "    unsigned char *spilled = (unsigned char *)(p%zu + (int64_t)blockIdx.x * n%u);\n",
                   p->out->buffer.n, (unsigned)g->spilled);
    }
    for (size_t i = 0; i < k->device.tile_slot.n; i++) {
        Dim size = DIM(k->device.tile_slot.v[i].words);
        const char *name = k->device.tile_slot.v[i].rows ? "rows" : "u";
        if (next_literal(p, size)) {
            buf_printf(out, "    real *const %s%zu = vwn_tile(shared, %" PRId64 ");\n", name, i, size.n);
            continue;
        }
        buf_printf(out, "    real *const %s%zu = vwn_tile(shared, n%zu);\n", name, i,
                   next_argument(p, (KArgument){.kind = KA_DIM, .dim = size}));
        add_shared(p, term, &of->term[g->n_term]);
    }
}

void emit_kernel(Printed *out, const Kernel *k, const Dialect *d, const char *about)
{
    *out = (Printed){0};
    if (!k->numbered)
        vwn_bug(k->ctx, "a kernel of which nobody has found the arguments");
    out->ints.v = k->argument.v, out->ints.n = k->argument.n;
    out->buffer.v = k->pointer.v, out->buffer.n = k->pointer.n;
    if (d->threads && !k->device.mapping.vectors)
        vwn_bug(k->ctx, "a kernel of which nobody has said what its vectors are");
    Printer p = {.k = k, .d = d, .out = out, .body = buf_new(k->arena), .depth = 1};
    p.number = NEW_ARRAY(k->arena, uint32_t, k->ex.n);
    p.var_number = NEW_ARRAY(k->arena, uint32_t, k->ix->var.n + 1);
    p.column = NEW_ARRAY(k->arena, uint32_t, k->device.column.n + 1);
    for (size_t i = 0; i < k->stmt.n; i++)
        put_statement(&p, &k->stmt.v[i]);
    Buf text = buf_new(k->arena), tiles = buf_new(k->arena);
    for (size_t i = 0; i < p.tile.n; i++)
        put_tile(&p, &tiles, i);
    if (d->threads)
        put_grid(&p, &tiles);
    if (p.use != k->use.n)
        vwn_bug(k->ctx, "a text that names fewer sizes than its program");
    d->put_header(&text, k, out, about);
    buf_put(&text, tiles.s, tiles.n);
    buf_put(&text, p.body.s, p.body.n);
    buf_puts(&text, "}\n");
    out->text = text.s;
    out->length = text.n;
    out->name = emit_name(k->ctx, k->arena, &out->text, &out->length);
}
