/* kernel_read_threads.c - the part of a kernel's text that says what threads do, and which arguments a printed text has, as
 * kernel_text.c prints it.
 *
 * In:  untrusted text.     Out: KMapping, KGrid, places of tiles and arrays; who does a statement; columns of lanes.
 * The one idea: as in kernel_read.c, every number is bounded, and kernel_check() says whether the lines are a program.
 */
#include "kernel_read.h"

enum { COLUMNS_MAX = 4096, THREADS_MAX = 1024 };

static uint8_t read_byte(KernelReader *r, const char *what) { return (uint8_t)kernel_read_below(r, 256, what); }

static uint32_t read_count(KernelReader *r, const char *what) { return (uint32_t)kernel_read_below(r, 1 << 30, what); }

/* "b3" */
static uint32_t read_buffer_number(KernelReader *r)
{
    reader_expect(&r->t, "b");
    return (uint32_t)kernel_read_below(r, (int64_t)r->k->buffer.n, "buffer");
}

static KBuffer *read_buffer(KernelReader *r)
{
    uint32_t b = read_buffer_number(r);
    return r->t.failed ? NULL : &r->k->buffer.v[b];
}

/* ---- tables ---- */

/* "128 rows 1 width 4 slots 6 index narrow registers 22 loads 16 in vectors" */
static void read_threads(KernelReader *r)
{
    KMapping *m = &r->k->device.mapping;
    const char *at = r->t.p;
    m->row_threads = (uint32_t)kernel_read_below(r, THREADS_MAX + 1, "number of threads");
    if (!reader_accept(&r->t, "parts"))
        reader_expect(&r->t, "rows");
    m->units = (uint32_t)kernel_read_below(r, THREADS_MAX + 1, "number of rows");
    m->lanes = reader_accept(&r->t, "lanes") ? read_byte(r, "lane") : 32;
    reader_expect(&r->t, "width");
    m->width = read_byte(r, "width");
    reader_expect(&r->t, "slots");
    m->slots = (uint32_t)kernel_read_below(r, 1 << 16, "slot");
    reader_expect(&r->t, "index");
    m->index = reader_accept(&r->t, "wide of rows") ? INDEX_WIDE_ROWS
               : reader_accept(&r->t, "wide")       ? INDEX_WIDE
                                                    : INDEX_NARROW;
    if (m->index == INDEX_NARROW)
        reader_expect(&r->t, "narrow");
    reader_expect(&r->t, "registers");
    m->pressure = read_count(r, "register");
    reader_expect(&r->t, "loads");
    m->in_flight = read_count(r, "load");
    m->pieces = reader_accept(&r->t, "in pieces");
    m->by_row = reader_accept(&r->t, "a row each");
    m->sums_shared = reader_accept(&r->t, "sums in shared memory");
    m->vectors = reader_accept(&r->t, "in vectors");
    for (size_t b = 0; b < r->k->buffer.n; b++) {
        r->k->buffer.v[b].device.slot = -1;
        r->k->buffer.v[b].device.shared = m->sums_shared && r->k->buffer.v[b].part >= 0;
    }
    if (!r->t.failed && !r->k->target->threads)
        kernel_read_wrong(r, at, "threads of a kernel that is not said to be a device's");
    if (!r->t.failed && (!m->row_threads || !m->units || !m->lanes))
        kernel_read_wrong(r, at, "there are no threads");
}

/* "128 by 4 shared 5120 whole blocks 256 of 1024" */
static void read_grid(KernelReader *r)
{
    KGrid *g = &r->k->device.grid;
    g->threads = (uint32_t)kernel_read_below(r, THREADS_MAX + 1, "number of threads");
    reader_expect(&r->t, "by");
    g->units = (uint32_t)kernel_read_below(r, THREADS_MAX + 1, "number of rows");
    reader_expect(&r->t, "shared");
    g->shared = read_count(r, "byte");
    g->whole = reader_accept(&r->t, "whole");
    if (reader_accept(&r->t, "blocks")) {
        g->blocks = read_count(r, "block");
        reader_expect(&r->t, "of");
        g->spilled = kernel_read_size(r);
    }
    if (reader_accept(&r->t, "at once"))
        g->at_once = read_byte(r, "block");
}

/* "needs 4 of {192}", "needs 4 of {192} sum b3", "needs 4 of {192} tile" */
static void read_need(KernelReader *r)
{
    KGrid *g = &r->k->device.grid;
    KShared *term = NEW_ARRAY(r->k->arena, KShared, g->n_term + 1), x = {.part = -1};
    x.bytes = read_count(r, "byte");
    reader_expect(&r->t, "of {");
    x.size = kernel_read_extent(r);
    reader_expect(&r->t, "}");
    const char *at = r->t.p;
    if (reader_accept(&r->t, "sum")) {
        const KBuffer *b = read_buffer(r);
        x.part = b ? (int32_t)(b - r->k->buffer.v) : -1;
    }
    bool tile = reader_accept(&r->t, "tile");
    if (!tile && g->n_fixed != g->n_term)
        kernel_read_wrong(r, at, "tiles come behind all else");
    for (size_t i = 0; i < g->n_term; i++)
        term[i] = g->term[i];
    term[g->n_term++] = x;
    g->n_fixed += !tile;
    g->term = term;
}

static void read_sum(KernelReader *r)
{
    KBuffer *b = read_buffer(r);
    if (!b)
        return;
    if (reader_accept(&r->t, "swizzled along")) {
        b->device.swizzled = kernel_read_var(r);
        return;
    }
    reader_expect(&r->t, "in memory");
    b->device.shared = false;
}

static void read_shared_place(KernelReader *r)
{
    reader_expect(&r->t, "place");
    reader_number(&r->t, r->k->device.tile_slot.n);
    reader_expect(&r->t, "of");
    KTilePlace x = {.words = kernel_read_size(r)};
    if (reader_accept(&r->t, "for")) {
        x.rows = read_byte(r, "number of rows");
        reader_expect(&r->t, "rows of");
        x.each = kernel_read_size(r);
    }
    vec_push(r->k->arena, &r->k->device.tile_slot, x);
}

/* "b3 in place 0 bank 5 in parts of 2 rows" */
static void read_tile(KernelReader *r)
{
    KBuffer *b = read_buffer(r);
    reader_expect(&r->t, "in place");
    int slot = (int)kernel_read_below(r, (int64_t)r->k->device.tile_slot.n, "shared place");
    reader_expect(&r->t, "bank");
    int bank = (int)kernel_read_below(r, 32, "bank");
    if (!b)
        return;
    b->device.slot = slot;
    b->device.bank = bank;
    b->device.split = reader_accept(&r->t, "in parts");
    if (!reader_accept(&r->t, "of"))
        return;
    b->device.rows = read_byte(r, "number of rows");
    reader_expect(&r->t, "rows");
}

bool kernel_read_mapping(KernelReader *r)
{
    static const struct {
        const char *word;
        void (*read)(KernelReader *r);
    } lines[] = {{"grid needs ", read_need},
                 {"grid ", read_grid},
                 {"sum ", read_sum},
                 {"shared ", read_shared_place},
                 {"tile ", read_tile}};
    if (reader_accept(&r->t, "threads ")) {
        read_threads(r);
        return true;
    }
    if (r->k->device.mapping.row_threads && reader_accept(&r->t, "products are called")) {
        r->k->calls = true;
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(lines) && r->k->device.mapping.row_threads; i++)
        if (reader_accept(&r->t, lines[i].word)) {
            lines[i].read(r);
            return true;
        }
    return false;
}

void kernel_read_array_place(KernelReader *r, KArray *a)
{
    a->spilled = reader_accept(&r->t, "in memory");
    a->sums = reader_accept(&r->t, "of sums");
    if (reader_accept(&r->t, "swizzled along"))
        a->swizzled = kernel_read_var(r);
}

/* ---- arguments of its text ---- */

static Dim read_braced(KernelReader *r)
{
    Dim d = kernel_read_extent(r);
    reader_expect(&r->t, "}");
    return d;
}

static void read_argument(KernelReader *r)
{
    Kernel *k = r->k;
    KArgument x = {.kind = KA_DIM};
    reader_number(&r->t, k->argument.n);
    reader_expect(&r->t, "=");
    const char *at = r->t.p;
    if (reader_accept(&r->t, "{")) {
        x.dim = read_braced(r);
    } else if (reader_accept(&r->t, "value")) {
        x.kind = KA_VALUE;
        x.value = kernel_read_size(r);
    } else if (reader_accept(&r->t, "chunk")) {
        x.kind = KA_CHUNK;
        x.value = k->chunk;
    } else if (reader_accept(&r->t, "sum")) {
        x.kind = KA_PART;
        x.buffer = read_buffer_number(r);
        x.value = r->t.failed ? 0 : k->buffer.v[x.buffer].elements;
    } else if (reader_accept(&r->t, "seed")) {
        size_t seed = (size_t)kernel_read_below(r, (int64_t)k->seed.n, "seed");
        x.kind = KA_SEED;
        x.site = r->t.failed ? NULL : k->seed.v[seed].site;
    } else if (reader_accept(&r->t, "first {")) {
        x.kind = KA_FIRST;
        x.dim = read_braced(r);
    } else if (reader_accept(&r->t, "step")) {
        x.kind = KA_STEP;
    } else if (reader_accept(&r->t, "stream")) {
        x.kind = KA_STREAM;
    } else {
        kernel_read_wrong(r, at, "no argument");
    }
    if (reader_accept(&r->t, "multiple"))
        x.multiple = (uint8_t)kernel_read_below(r, 256, "multiple");
    vec_push(k->arena, &k->argument, x);
}

static void read_pointers(KernelReader *r)
{
    r->k->numbered = true;
    while (reader_spaces(&r->t), !r->t.failed && *r->t.p == 'b')
        vec_push(r->k->arena, &r->k->pointer, read_buffer_number(r));
}

static void read_uses(KernelReader *r)
{
    Kernel *k = r->k;
    while (reader_spaces(&r->t), !r->t.failed && *r->t.p != '\n' && r->t.p < r->t.end) {
        bool literal = reader_accept(&r->t, "-");
        vec_push(k->arena, &k->use,
                 literal ? USE_LITERAL : (uint32_t)kernel_read_below(r, (int64_t)k->argument.n, "argument") + 1);
    }
}

bool kernel_read_arguments(KernelReader *r)
{
    if (reader_accept(&r->t, "pointers"))
        read_pointers(r);
    else if (reader_accept(&r->t, "argument "))
        read_argument(r);
    else if (reader_accept(&r->t, "uses "))
        read_uses(r);
    else
        return false;
    return true;
}

/* ---- who does a statement ---- */

static uint32_t read_column_number(KernelReader *r)
{
    reader_expect(&r->t, "l");
    uint32_t n = (uint32_t)kernel_read_below(r, COLUMNS_MAX, "column") + 1;
    while (!r->t.failed && r->k->device.column.n < n)
        vec_push(r->k->arena, &r->k->device.column, (KColumn){0});
    return r->t.failed ? 0 : n;
}

/* Of a step of totals: each lane has one of them. */
static void read_step_column(KernelReader *r, KStmt *s)
{
    const char *at = r->t.p;
    const KTotals *t = kernel_totals(r->k, s);
    s->column = read_column_number(r);
    if (!s->column)
        return;
    KColumn *c = &r->k->device.column.v[s->column - 1];
    if (c->n || !t) {
        kernel_read_wrong(r, at, "this column is there already, or of one total");
        return;
    }
    c->n = t->n;
    c->ex = NEW_ARRAY(r->k->arena, Ex, LANES_MOST);
    for (uint32_t j = 0; j < t->n; j++)
        c->ex[j] = t->of[j].ex;
}

static void read_one(KernelReader *r, KStmt *s)
{
    static const char *const of[] = {"by one of row", "by one of warps", "by one of warp"};
    static const KThreads threads[] = {THREADS_OF_ROW, WARPS_OF_ROW, THREADS_OF_WARP};
    for (size_t i = 0; i < COUNT_OF(of) && !s->one; i++)
        if (reader_accept(&r->t, of[i])) {
            s->one = true;
            s->threads = (uint8_t)threads[i];
        }
}

static void read_shared_rounds(KernelReader *r, KStmt *s)
{
    static const char *const by[] = {"by threads", "by lanes", "by warps"};
    for (uint8_t i = 0; i < COUNT_OF(by) && !s->mapped; i++)
        if (reader_accept(&r->t, by[i])) {
            s->mapped = true;
            s->threads = i;
        }
}

/* "new h3 of 4" */
static void read_steps(KernelReader *r, KStmt *s)
{
    static const char *const step[] = {"new", "fetch", "value", "write"};
    for (int i = 0; i < 4; i++)
        if (reader_accept(&r->t, step[i]))
            s->step |= (uint8_t)(1 << i);
    if (!s->step)
        return;
    reader_expect(&r->t, "h");
    s->held = (uint32_t)kernel_read_below(r, 1 << 16, "number of registers");
    if (reader_accept(&r->t, "of"))
        s->unroll = read_byte(r, "number of rounds");
    if (reader_accept(&r->t, "round"))
        s->var = kernel_read_var(r);
}

void kernel_read_across(KernelReader *r, KStmt *s)
{
    for (uint8_t i = 1; i < ACROSS_COUNT && !s->across; i++)
        if (reader_accept(&r->t, kernel_across_words[i]))
            s->across = i;
}

void kernel_read_sharing(KernelReader *r, KStmt *s)
{
    read_shared_rounds(r, s);
    if (reader_accept(&r->t, "from warp"))
        s->first = read_byte(r, "warp");
    read_one(r, s);
    if (s->kind == KS_PIECES) {
        reader_expect(&r->t, "of");
        s->piece = read_byte(r, "piece");
    }
    if (reader_accept(&r->t, "width"))
        s->width = read_byte(r, "width");
    kernel_read_across(r, s);
    if (s->kind != KS_PIECES && reader_accept(&r->t, "piece"))
        s->piece = read_byte(r, "piece");
    if (s->kind == KS_LOOP || s->kind == KS_ROWS)
        s->unroll = 1;
    if (reader_accept(&r->t, "unroll any"))
        s->unroll = 0;
    else if (reader_accept(&r->t, "unroll"))
        s->unroll = read_byte(r, "number of rounds");
    if (reader_accept(&r->t, "as "))
        read_step_column(r, s);
    read_steps(r, s);
}

/* ---- the next row ---- */

void kernel_read_prefetched(KernelReader *r, KPrefetch *x)
{
    reader_expect(&r->t, "of");
    x->length = kernel_read_ix(r);
    reader_expect(&r->t, "by warp");
    x->warp = read_byte(r, "warp");
    reader_expect(&r->t, ",");
    x->nth = read_byte(r, "prefetch");
    reader_expect(&r->t, "of");
    x->of = read_byte(r, "prefetch");
}

/* ---- lanes ---- */

/* "[0 to 5]" */
static void read_lanes(KernelReader *r, KColumn *c)
{
    reader_expect(&r->t, "[");
    c->first = (uint32_t)kernel_read_below(r, LANES_MOST, "lane");
    reader_expect(&r->t, "to");
    const char *at = r->t.p;
    int64_t last = kernel_read_below(r, LANES_MOST, "lane");
    reader_expect(&r->t, "]");
    if (!r->t.failed && last < c->first)
        kernel_read_wrong(r, at, "no lane");
    c->n = r->t.failed ? 0 : (uint32_t)last + 1 - c->first;
}

static int64_t read_step(KernelReader *r)
{
    bool minus = reader_accept(&r->t, "-");
    int64_t n = kernel_read_size(r);
    return minus ? -n : n;
}

/* "b1[{64}*r + 4] by 1 of 4 by 16 from 2": the place of the first, and how the others lie behind it */
static uint32_t read_places(KernelReader *r, Ix *first, KColumn *c)
{
    const char *at;
    uint32_t buffer = kernel_read_place(r, &at, first);
    reader_expect(&r->t, "by");
    c->place = (KPlaces){.along = read_step(r)};
    if (reader_accept(&r->t, "of")) {
        at = r->t.p;
        c->place.of = (uint32_t)kernel_read_below(r, LANES_MOST + 1, "lane");
        reader_expect(&r->t, "by");
        c->place.across = read_step(r);
        if (!r->t.failed && !c->place.of)
            kernel_read_wrong(r, at, "no lane");
    }
    if (reader_accept(&r->t, "from"))
        c->place.base = read_step(r);
    return r->t.failed ? 0 : buffer;
}

/* Where element j lies. */
static Ix place_of(KernelReader *r, const KColumn *c, Ix first, uint32_t j)
{
    int64_t behind = kernel_place_of(&c->place, j) - kernel_place_of(&c->place, 0);
    return ix_add(r->k->ix, first, ix_const(r->k->ix, behind));
}

static void finish_places(KColumn *c) { c->place.of = c->place.of ? c->place.of : c->n; } /* one behind the other */

/* "0, 1, 2 b1[{64}*r] by 1 = l3[0 to 2]" */
static void read_results(KernelReader *r, KColumn *c)
{
    uint32_t n = 0;
    Ix first;
    c->root = NEW_ARRAY(r->k->arena, uint32_t, LANES_MOST);
    do {
        uint32_t root = (uint32_t)kernel_read_below(r, (int64_t)r->k->root.n, "result");
        if (n < LANES_MOST)
            c->root[n] = root;
        n++;
    } while (!r->t.failed && reader_accept(&r->t, ","));
    const char *at = r->t.p;
    uint32_t buffer = read_places(r, &first, c);
    reader_expect(&r->t, "=");
    c->in[0] = read_column_number(r);
    read_lanes(r, c);
    finish_places(c);
    const KColumn *from = r->t.failed ? NULL : &r->k->device.column.v[c->in[0] - 1];
    if (!from)
        return;
    if (c->n != n || !from->ex || c->first < from->first || c->first + c->n > from->first + from->n) {
        kernel_read_wrong(r, at, "lanes that do not have these results");
        return;
    }
    c->ex = &from->ex[c->first - from->first];
    for (uint32_t j = 0; j < n; j++) {
        KRoot *root = &r->k->root.v[c->root[j]];
        if (root->buffer != buffer || root->value)
            kernel_read_wrong(r, at, "this result belongs into another buffer, or is stored above");
        root->at = place_of(r, c, first, j);
        root->value = c->ex[j];
    }
}

static Ex new_expression(KernelReader *r, KEx x)
{
    kx_find_needs(r->k, &x);
    vec_push(r->k->arena, &r->k->ex, x);
    return (Ex)(r->k->ex.n - 1);
}

/* Inputs of an operator: "l2 x8"; in[i]: the column, or 0, and what all have. */
static void read_lane_inputs(KernelReader *r, KColumn *c, KEx *x)
{
    for (int i = 0; i < 3 && !r->t.failed; i++) {
        reader_spaces(&r->t);
        if (*r->t.p == '\n' || r->t.p == r->t.end || strncmp(r->t.p, "i=", 2) == 0)
            break;
        if (*r->t.p != 'l') {
            x->in[i] = kernel_read_ex(r);
            continue;
        }
        const char *at = r->t.p;
        c->in[i] = read_column_number(r);
        const KColumn *of = c->in[i] ? &r->k->device.column.v[c->in[i] - 1] : NULL;
        if (of && (of->root || !of->ex || of->first > c->first || of->first + of->n < c->first + c->n))
            kernel_read_wrong(r, at, "lanes that do not have this");
    }
    if (reader_accept(&r->t, "i="))
        x->i = reader_int(&r->t);
}

/* "l3[0 to 5] = mul l2 x8", "l4[0 to 5] = load b4[{64}*r] by 1", "l5[0 to 5] = scalar s0" */
static void read_values(KernelReader *r, KStmt *s)
{
    KColumn c = {0};
    KEx x = {.type = KT_REAL, .array = -1, .home = -1};
    Ix first = 0;
    const char *at = r->t.p;
    s->column = read_column_number(r);
    read_lanes(r, &c);
    reader_expect(&r->t, "=");
    reader_spaces(&r->t);
    const char *word_at = r->t.p, *word = reader_word(&r->t);
    if (r->t.failed)
        return;
    if (r->k->device.column.v[s->column - 1].n) {
        kernel_read_wrong(r, at, "this column is there already");
        return;
    }
    if (!kernel_read_kind(word, &x) || (x.kind != KX_OP && x.kind != KX_LOAD && x.kind != KX_SCALAR)) {
        kernel_read_wrong(r, word_at, "lanes cannot compute this");
        return;
    }
    if (x.kind == KX_LOAD) {
        x.slot = read_places(r, &first, &c);
        finish_places(&c);
        c.here = reader_accept(&r->t, "here");
    } else if (x.kind == KX_SCALAR) {
        reader_expect(&r->t, "s");
        x.slot = (uint32_t)kernel_read_below(r, (int64_t)r->k->scalar.n, "scalar");
    } else {
        read_lane_inputs(r, &c, &x);
    }
    c.ex = NEW_ARRAY(r->k->arena, Ex, LANES_MOST);
    for (uint32_t j = 0; j < c.n && !r->t.failed; j++) {
        KEx own = x;
        own.ix = x.kind == KX_LOAD ? place_of(r, &c, first, j) : 0;
        for (int i = 0; i < 3; i++) {
            const KColumn *of = c.in[i] ? &r->k->device.column.v[c.in[i] - 1] : NULL;
            own.in[i] = of ? of->ex[c.first + j - of->first] : x.in[i];
        }
        c.ex[j] = new_expression(r, own);
    }
    r->k->device.column.v[s->column - 1] = c;
}

void kernel_read_column(KernelReader *r, KStmt *s)
{
    KColumn c = {0};
    if (s->kind != KS_LANE_STORE) {
        read_values(r, s);
        return;
    }
    read_results(r, &c);
    vec_push(r->t.arena, &r->result, c);
    s->column = (uint32_t)r->result.n;
}

void kernel_read_finish_columns(KernelReader *r)
{
    uint32_t values = (uint32_t)r->k->device.column.n;
    for (size_t i = 0; i < r->k->stmt.n; i++)
        if (r->k->stmt.v[i].kind == KS_LANE_STORE)
            r->k->stmt.v[i].column += values;
    for (size_t i = 0; i < r->result.n; i++)
        vec_push(r->k->arena, &r->k->device.column, r->result.v[i]);
}

void kernel_read_element(KernelReader *r, KStmt *s)
{
    const char *at = r->t.p;
    s->column = read_column_number(r);
    reader_expect(&r->t, "[");
    s->lane = read_byte(r, "lane");
    reader_expect(&r->t, "]");
    const KColumn *c = r->t.failed ? NULL : &r->k->device.column.v[s->column - 1];
    if (!c)
        return;
    if (c->root || s->lane < c->first || s->lane >= c->first + c->n) {
        kernel_read_wrong(r, at, "what a lane has not computed is taken from it");
        return;
    }
    s->ex = c->ex[s->lane - c->first];
}
