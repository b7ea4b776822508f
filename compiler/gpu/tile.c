/* tile.c - where the tiles of a row lie in the shared memory of a device.
 *
 * In:  a scheduled kernel with products of a row.     Out: the same with its statements of a row in an
 *      order in which few tiles are needed at one time; KBuffer.device.slot, Kernel.device.tile_slot.
 * The one idea: a tile has a place from the first statement that writes it to the last that reads
 * it, so what can be done later is, products that are only added up share a tile, one that is only
 * stored goes directly to memory, and tiles that are not needed at the same time share a place.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

/* A product; a loop with what is in it and the accumulators before it, which its end completes; or
 * what stands between such. */
typedef struct TileUnit {
    size_t from, end; /* statements from <= i < end */
} TileUnit;

typedef struct Tiling {
    Kernel *k;
    VEC(TileUnit) unit;
    size_t first, end;           /* the statements of the row */
    size_t things;               /* expressions, variables, arrays, batches, buffers: */
    size_t begin[OF_BUFFER + 1]; /* where these begin among them */
    unsigned char *touch;        /* by unit and thing */
    size_t *order;               /* of units */
    int *from, *to;              /* by buffer: first and last place in `order`; -1: never */
    bool *gone;                  /* by statement */
} Tiling;

static unsigned char *touch_of(const Tiling *t, size_t unit) { return t->touch + unit * t->things; }

/* ---- products that go directly to memory ---- */

static bool uses(const Kernel *k, const KStmt *s, Ex e)
{
    const KEx *x = kx(k, s->ex);
    switch (s->kind) {
    case KS_LET:
    case KS_ACC_ADD:
    case KS_ARRAY_ADD:
    case KS_BATCH_IN:
    case KS_ARRAY_PUT:
        return x->in[0] == e || x->in[1] == e || x->in[2] == e || (s->kind == KS_ARRAY_PUT && s->ex == e);
    case KS_STORE:
    case KS_SINK: return k->root.v[s->root].value == e;
    default: return false;
    }
}

/* The only statement of the row that wants e. */
static bool only_use(const Tiling *t, Ex e, size_t *want)
{
    size_t wants = 0;
    for (size_t i = t->first; i < t->end; i++)
        if (uses(t->k, &t->k->stmt.v[i], e))
            wants++, *want = i;
    return wants == 1;
}

/* The only statement of the row that loads from the tile, and the only one that wants this. */
static bool only_wanted(const Tiling *t, uint32_t tile, size_t *load, size_t *want)
{
    const Kernel *k = t->k;
    size_t loads = 0;
    for (size_t i = 0; i < k->product.n; i++)
        if (k->product.v[i].a == tile || k->product.v[i].b == tile)
            return false;
    for (size_t i = t->first; i < t->end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LET && kx(k, s->ex)->kind == KX_LOAD && kx(k, s->ex)->slot == tile)
            loads++, *load = i;
    }
    return loads == 1 && only_use(t, k->stmt.v[*load].ex, want);
}

/* Behind the load: the statement that stores it, or stores it rounded to what its memory holds. */
static bool find_store(const Tiling *t, size_t *round, size_t *store)
{
    const Kernel *k = t->k;
    const KStmt *s = &k->stmt.v[*round];
    if (s->kind == KS_STORE) {
        *store = *round;
        return true;
    }
    if (s->kind != KS_LET || kx(k, s->ex)->kind != KX_OP || kx(k, s->ex)->op != OP_ROUND_TO)
        return false;
    return only_use(t, s->ex, store) && k->stmt.v[*store].kind == KS_STORE;
}

/* Does the form change with the row alone? */
static bool of_row(const Kernel *k, Ix ix)
{
    const IxForm *f = ix_form(k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var && f->t[i].var != k->row)
            return false;
    return true;
}

static void store_at_once(Tiling *t, KProduct *p)
{
    Kernel *k = t->k;
    size_t load = 0, round = 0, store = 0;
    if (p->add || !k->buffer.v[p->c].tile || !only_wanted(t, p->c, &load, &round) || !find_store(t, &round, &store))
        return;
    const KRoot *r = &k->root.v[k->stmt.v[store].root];
    const KBuffer *b = &k->buffer.v[r->buffer];
    const KEx *x = kx(k, k->stmt.v[load].ex);
    Ix apart = ix_add(k->ix, r->at, ix_times(k->ix, x->ix, -1));
    bool rounded = round != store, fits = half_info(b->half)->store_rounds || (b->half != HALF_NONE) == rounded;
    if (b->dtype != DT_REAL || !fits || b->tile || b->read || x->in[0] || !of_row(k, apart))
        return;
    p->c = r->buffer;
    p->c_at = ix_add(k->ix, p->c_at, apart);
    t->gone[load] = t->gone[round] = t->gone[store] = true;
}

/* ---- sums of products in one tile ---- */

static bool loads_of(const Kernel *k, Ex e, uint32_t x, uint32_t y)
{
    const KEx *l = kx(k, e);
    return l->kind == KX_LOAD && (l->slot == x || l->slot == y);
}

/* Is e the sum of the same element of x and of y? */
static bool is_sum_of(const Kernel *k, Ex e, uint32_t x, uint32_t y)
{
    const KEx *s = kx(k, e), *a = kx(k, s->in[0]), *b = kx(k, s->in[1]);
    return s->kind == KX_OP && s->op == OP_ADD && a->kind == KX_LOAD && b->kind == KX_LOAD && a->ix == b->ix &&
           !a->in[0] && !b->in[0] && ((a->slot == x && b->slot == y) || (a->slot == y && b->slot == x));
}

/* Does the statement want one of them in another way than in such a sum? */
static bool wants_alone(const Kernel *k, const KStmt *s, uint32_t x, uint32_t y)
{
    const KEx *e = kx(k, s->ex);
    switch (s->kind) {
    case KS_LET:
    case KS_ACC_ADD:
    case KS_ARRAY_ADD:
    case KS_BATCH_IN:
        if (s->kind == KS_LET && is_sum_of(k, s->ex, x, y))
            return false;
        return loads_of(k, e->in[0], x, y) || loads_of(k, e->in[1], x, y) || loads_of(k, e->in[2], x, y);
    case KS_ARRAY_PUT: return loads_of(k, s->ex, x, y);
    case KS_STORE:
    case KS_SINK: return loads_of(k, k->root.v[s->root].value, x, y);
    case KS_PRODUCT: {
        const KProduct *p = &k->product.v[s->root];
        return p->a == x || p->a == y || p->b == x || p->b == y;
    }
    default: return false;
    }
}

/* Both are results of products, and nothing but their sum is wanted. */
static bool only_added(const Tiling *t, uint32_t x, uint32_t y)
{
    const Kernel *k = t->k;
    bool is_x = false, is_y = false;
    if (k->buffer.v[x].elements != k->buffer.v[y].elements)
        return false;
    for (size_t i = 0; i < k->product.n; i++) {
        is_x = is_x || k->product.v[i].c == x;
        is_y = is_y || k->product.v[i].c == y;
    }
    for (size_t i = t->first; is_x && is_y && i < t->end; i++)
        if (wants_alone(k, &k->stmt.v[i], x, y))
            return false;
    return is_x && is_y;
}

/* Products that made y add to x; the first one of all begins it. */
static void add_up(Tiling *t, uint32_t x, uint32_t y)
{
    Kernel *k = t->k;
    bool first = true;
    for (size_t i = t->first; i < t->end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_PRODUCT) {
            KProduct *p = &k->product.v[s->root];
            if (p->c != x && p->c != y)
                continue;
            p->c = x;
            p->add = !first;
            first = false;
        } else if (s->kind == KS_LET && loads_of(k, s->ex, x, y)) {
            t->gone[i] = true;
        }
    }
    for (size_t i = t->first; i < t->end; i++) {
        KEx *e = &k->ex.v[k->stmt.v[i].ex];
        if (k->stmt.v[i].kind == KS_LET && !t->gone[i] && is_sum_of(k, k->stmt.v[i].ex, x, y)) {
            e->ix = kx(k, e->in[0])->ix;
            e->kind = KX_LOAD;
            e->slot = x;
            memset(e->in, 0, sizeof e->in);
        }
    }
}

/* A sum is an expression of its own wherever it is wanted, so all of them are found by looking at
 * statements. */
static void add_up_all(Tiling *t)
{
    Kernel *k = t->k;
    for (size_t i = t->first; i < t->end; i++) {
        const KEx *e = kx(k, k->stmt.v[i].ex), *a = kx(k, e->in[0]), *b = kx(k, e->in[1]);
        if (k->stmt.v[i].kind != KS_LET || t->gone[i] || a->kind != KX_LOAD || b->kind != KX_LOAD ||
            !k->buffer.v[a->slot].tile || !k->buffer.v[b->slot].tile || a->slot == b->slot ||
            !is_sum_of(k, k->stmt.v[i].ex, a->slot, b->slot) || !only_added(t, a->slot, b->slot))
            continue;
        add_up(t, a->slot, b->slot);
        i = t->first;
    }
}

/* ---- terms of two products in one sum ---- */

/* Can these terms be added up with those of a product by both parts of a factor, whose eight rows at most have the same fragments? */
static bool goes_along(const Kernel *k, const KProduct *p, const KProduct *by_parts)
{
    ProductSteps s, u;
    return !p->split && k->buffer.v[p->a].tile && k->buffer.v[p->b].tile && kernel_product_is_half(k, p) &&
           product_steps(k, p, &s) && product_steps(k, by_parts, &u) && s.cm == u.cm && s.cn == u.cn &&
           ix_info(k->ix, p->m)->hi == ix_info(k->ix, by_parts->m)->hi;
}

/* Of two products in one tile, of which the second adds to it what is there, one by both parts of a factor: its sums have the terms of both,
 * and what there is of the other is gone. */
static void add_terms(Tiling *t)
{
    Kernel *k = t->k;
    for (size_t j = t->first; j < t->end; j++) {
        KProduct *q = &k->product.v[k->stmt.v[j].root], *p = NULL;
        size_t at = 0, n = 0;
        if (k->stmt.v[j].kind != KS_PRODUCT || !q->add || !k->buffer.v[q->c].tile)
            continue;
        for (size_t i = t->first; i < t->end; i++)
            if (k->stmt.v[i].kind == KS_PRODUCT && i != j && k->product.v[k->stmt.v[i].root].c == q->c) {
                p = &k->product.v[k->stmt.v[i].root];
                at = i;
                n++;
            }
        if (n != 1 || at > j || (p->split ? !goes_along(k, q, p) : !q->split || !goes_along(k, p, q)))
            continue;
        if (p->split) {
            KProduct parts = *p;
            *p = *q;
            *q = parts;
        }
        q->add = false;
        q->also = k->stmt.v[at].root + 1;
        t->gone[at] = true;
    }
}

/* Leaves out what is gone, and loops with nothing in them. */
static void leave_out(Tiling *t)
{
    Kernel *k = t->k;
    VEC(KStmt) kept = {0};
    size_t ends = 0;
    for (size_t i = 0; i < k->stmt.n; i++) {
        bool empty = k->stmt.v[i].kind == KS_END && kept.n > 0 && kept.v[kept.n - 1].kind == KS_LOOP;
        if (t->gone[i])
            continue;
        if (i == t->end)
            ends = kept.n;
        if (empty)
            kept.n--;
        else
            vec_push(k->arena, &kept, k->stmt.v[i]);
    }
    memcpy(&k->stmt, &kept, sizeof kept);
    t->end = ends;
}

/* ---- what depends on what ---- */

static bool begins_unit(const KStmt *s) { return s->kind == KS_PRODUCT || s->kind == KS_LOOP || s->kind == KS_ACC; }

static void find_units(Tiling *t)
{
    const Kernel *k = t->k;
    for (size_t i = t->first, end; i < t->end; i = end) {
        end = i;
        if (!begins_unit(&k->stmt.v[i])) {
            while (end < t->end && !begins_unit(&k->stmt.v[end]))
                end++;
        } else {
            while (k->stmt.v[end].kind == KS_ACC)
                end++;
            end = (k->stmt.v[end].kind == KS_LOOP ? kernel_loop_end(k, end) : end) + 1;
        }
        vec_push(k->arena, &t->unit, (TileUnit){i, end});
    }
}

/* What one statement of the row touches. In a loop, or with one before it, it names nothing that is known behind it. */
static void find_touches_of(Tiling *t, const TileUnit *u, unsigned char *what, KTouches *of)
{
    bool alone = !begins_unit(&t->k->stmt.v[u->from]);
    for (size_t i = u->from; i < u->end; i++) {
        const KStmt *s = &t->k->stmt.v[i];
        of->n = 0;
        kernel_touches(t->k, s, of);
        for (size_t j = 0; j < of->n; j++) {
            const KTouch *x = &of->v[j];
            bool inside = !alone && (s->kind == KS_LET || s->kind == KS_VAR || s->kind == KS_ARRAY_GET);
            what[t->begin[x->thing] + x->number] |=
                (x->thing == OF_VALUE || x->thing == OF_VAR) && inside ? READS : x->how;
        }
    }
}

static void find_touches(Tiling *t)
{
    const Kernel *k = t->k;
    size_t batches = 0;
    KTouches of = {0};
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].kind == KS_BATCH_RUN)
            batches++;
    t->begin[OF_VAR] = k->ex.n;
    t->begin[OF_ARRAY] = t->begin[OF_VAR] + k->ix->var.n;
    t->begin[OF_BATCH] = t->begin[OF_ARRAY] + k->array.n;
    t->begin[OF_BUFFER] = t->begin[OF_BATCH] + batches;
    t->things = (t->begin[OF_BUFFER] + k->buffer.n + 7) / 8 * 8;
    t->touch = NEW_ARRAY(k->arena, unsigned char, t->unit.n * t->things + 1);
    for (size_t u = 0; u < t->unit.n; u++)
        find_touches_of(t, &t->unit.v[u], touch_of(t, u), &of);
}

/* Must u stay before v? Eight things at a time. */
static bool before(const Tiling *t, size_t u, size_t v)
{
    const uint64_t ones = 0x0101010101010101u;
    uint64_t x, y;
    for (size_t i = 0; i < t->things; i += 8) {
        memcpy(&x, touch_of(t, u) + i, 8);
        memcpy(&y, touch_of(t, v) + i, 8);
        if (((x >> 1 & (y | y >> 1)) | (y >> 1 & x)) & ones)
            return true;
    }
    return false;
}

/* ---- the order ---- */

/* Words of 4 bytes; parts lie in eights. */
static int64_t size_of(const KBuffer *b)
{
    return b->half           ? (b->elements + 1) / 2
           : b->device.split ? (b->elements + 7) / 8 * 8
                             : (b->device.rows ? b->device.rows : 1) * b->elements;
}

/* By how many words the tiles that are needed grow, going backwards, when u is done next.
 * needed: of tiles, by what is placed behind; left: units that write a tile and are not placed. */
static int64_t growth(const Tiling *t, size_t u, const bool *needed, const int *left)
{
    const unsigned char *what = touch_of(t, u) + t->begin[OF_BUFFER];
    int64_t n = 0;
    for (size_t b = 0; b < t->k->buffer.n; b++) {
        const KBuffer *x = &t->k->buffer.v[b];
        if (!x->tile || !what[b])
            continue;
        if (what[b] & WRITES && left[b] == 1)
            n -= needed[b] ? size_of(x) : 0;
        else if (!needed[b])
            n += size_of(x);
    }
    return n;
}

/* From the last to the first: of the units that nothing left has to follow the one after which
 * the fewest words are needed, and of equals the one that was last. */
static void find_order(Tiling *t)
{
    const Kernel *k = t->k;
    size_t n = t->unit.n;
    bool *placed = NEW_ARRAY(k->arena, bool, n + 1), *needed = NEW_ARRAY(k->arena, bool, k->buffer.n + 1);
    int *left = NEW_ARRAY(k->arena, int, k->buffer.n + 1), *behind = NEW_ARRAY(k->arena, int, n + 1);
    t->order = NEW_ARRAY(k->arena, size_t, n + 1);
    for (size_t u = 0; u < n; u++) {
        for (size_t b = 0; b < k->buffer.n; b++)
            left[b] += (touch_of(t, u)[t->begin[OF_BUFFER] + b] & WRITES) != 0;
        for (size_t v = u + 1; v < n; v++)
            behind[u] += before(t, u, v);
    }
    for (size_t at = n; at-- > 0;) {
        size_t best = n;
        int64_t least = 0;
        for (size_t u = n; u-- > 0;) {
            if (placed[u] || behind[u])
                continue;
            int64_t more = growth(t, u, needed, left);
            if (best == n || more < least)
                best = u, least = more;
        }
        t->order[at] = best;
        placed[best] = true;
        for (size_t u = 0; u < best; u++)
            behind[u] -= before(t, u, best);
        for (size_t b = 0; b < k->buffer.n; b++) {
            unsigned char what = touch_of(t, best)[t->begin[OF_BUFFER] + b];
            left[b] -= (what & WRITES) != 0;
            needed[b] = what & WRITES && left[b] == 0 ? false : needed[b] || what;
        }
    }
}

/* Is it a loop of fewer elements than a block has threads, none of which waits for others? */
static bool is_little(const Tiling *t, size_t u)
{
    const Kernel *k = t->k;
    size_t from = t->unit.v[u].from;
    if (k->stmt.v[from].kind != KS_LOOP)
        return false;
    for (size_t i = from; i < t->unit.v[u].end; i++)
        if (k->stmt.v[i].kind == KS_ACC)
            return false;
    return (ix_info(k->ix, k->stmt.v[from].var)->hi + 1) * kernel_elements_inside(k, from) <=
           t->k->target->tuned->product_threads;
}

/* Is nothing left that unit u has to follow? */
static bool is_ready(const Tiling *t, size_t u, const bool *placed)
{
    for (size_t v = 0; v < u; v++)
        if (!placed[v] && before(t, v, u))
            return false;
    return true;
}

/* Loops of few elements, each of which a warp or a part of one does, wait for memory as long as others do: they stand together in front of
 * the first unit that wants one of them, with those that could be done there, too. Other warps do others of them at one time. */
static void gather_little(Tiling *t)
{
    size_t n = t->unit.n, done = 0;
    size_t *to = NEW_ARRAY(t->k->arena, size_t, n + 1);
    bool *placed = NEW_ARRAY(t->k->arena, bool, n + 1);
    for (size_t at = 0; at <= n; at++) {
        size_t u = at < n ? t->order[at] : n;
        if (at < n && (placed[u] || is_little(t, u)))
            continue;
        bool wanted = at == n;
        for (size_t i = 0; i < at; i++)
            wanted = wanted || (!placed[t->order[i]] && before(t, t->order[i], u));
        for (size_t i = 0; wanted && i < n; i++) {
            size_t v = t->order[i];
            if (placed[v] || !is_little(t, v) || !is_ready(t, v, placed))
                continue;
            to[done++] = v;
            placed[v] = true;
        }
        if (at < n) {
            to[done++] = u;
            placed[u] = true;
        }
    }
    t->order = to;
}

static void put_in_order(Tiling *t)
{
    Kernel *k = t->k;
    VEC(KStmt) all = {0};
    for (size_t i = 0; i < t->first; i++)
        vec_push(k->arena, &all, k->stmt.v[i]);
    for (size_t u = 0; u < t->unit.n; u++)
        for (size_t i = t->unit.v[t->order[u]].from; i < t->unit.v[t->order[u]].end; i++)
            vec_push(k->arena, &all, k->stmt.v[i]);
    for (size_t i = t->end; i < k->stmt.n; i++)
        vec_push(k->arena, &all, k->stmt.v[i]);
    memcpy(&k->stmt, &all, sizeof all);
}

/* ---- products of several rows ---- */

/* A tile that several products read is of as many rows for all of them. */
static void find_together(Kernel *k)
{
    uint8_t least = UINT8_MAX;
    for (size_t i = 0; i < k->product.n; i++) {
        uint8_t rows = k->product.v[i].rows = kernel_product_rows(k, &k->product.v[i]);
        least = rows && rows < least ? rows : least;
    }
    for (size_t i = 0; i < k->product.n; i++) {
        KProduct *p = &k->product.v[i];
        p->rows = p->rows ? least : 0;
        if (p->rows)
            k->buffer.v[k->buffer.v[p->a].tile ? p->a : p->b].device.rows = least;
    }
}

/* ---- places ---- */

static void find_lives(Tiling *t)
{
    size_t n = t->k->buffer.n;
    t->from = NEW_ARRAY(t->k->arena, int, n + 1);
    t->to = NEW_ARRAY(t->k->arena, int, n + 1);
    for (size_t b = 0; b < n; b++) {
        t->from[b] = t->to[b] = -1;
        for (size_t at = 0; at < t->unit.n; at++)
            if (touch_of(t, t->order[at])[t->begin[OF_BUFFER] + b]) {
                t->from[b] = t->from[b] < 0 ? (int)at : t->from[b];
                t->to[b] = (int)at;
            }
    }
}

/* Does the unit that reads x last, element by element, write y in the same places, each after all that
 * is read there? */
static bool in_place(const Tiling *t, uint32_t x, uint32_t y)
{
    const Kernel *k = t->k;
    const TileUnit *u = &t->unit.v[t->order[t->to[x]]];
    Ix at = 0;
    bool stored = false;
    if (k->buffer.v[x].elements != k->buffer.v[y].elements || k->buffer.v[x].half != k->buffer.v[y].half ||
        k->buffer.v[y].device.split)
        return false;
    for (size_t i = u->from; i < u->end; i++) {
        const KStmt *s = &k->stmt.v[i];
        const KEx *e = kx(k, s->ex);
        if (s->kind == KS_PRODUCT)
            return false;
        if (s->kind == KS_STORE && k->root.v[s->root].buffer == y) {
            if (stored || (at && at != k->root.v[s->root].at))
                return false;
            at = k->root.v[s->root].at;
            stored = true;
        } else if (s->kind == KS_LET && e->kind == KX_LOAD && e->slot == x) {
            if (stored || e->in[0] || (at && at != e->ix))
                return false;
            at = e->ix;
        }
    }
    return stored;
}

static bool share(const Tiling *t, uint32_t x, uint32_t y)
{
    if (t->k->buffer.v[x].device.rows || t->k->buffer.v[y].device.rows)
        return false;
    if (t->to[x] == t->from[y])
        return in_place(t, x, y);
    if (t->to[y] == t->from[x])
        return in_place(t, y, x);
    return t->to[x] < t->from[y] || t->to[y] < t->from[x];
}

/* The largest first; each goes where it can be with all that are there already. */
static void find_slots(Tiling *t)
{
    Kernel *k = t->k;
    size_t n = k->buffer.n;
    for (size_t b = 0; b < n; b++)
        k->buffer.v[b].device.slot = -1;
    for (;;) {
        size_t most = n;
        for (size_t b = 0; b < n; b++)
            if (k->buffer.v[b].tile && k->buffer.v[b].device.slot < 0 && t->from[b] >= 0 &&
                (most == n || size_of(&k->buffer.v[b]) > size_of(&k->buffer.v[most])))
                most = b;
        if (most == n)
            return;
        int slot = 0;
        for (bool fits = false; !fits && slot < (int)k->device.tile_slot.n; slot += !fits) {
            fits = true;
            for (size_t b = 0; fits && b < n; b++)
                fits = k->buffer.v[b].device.slot != slot || share(t, (uint32_t)b, (uint32_t)most);
        }
        const KBuffer *x = &k->buffer.v[most];
        if (slot == (int)k->device.tile_slot.n)
            vec_push(k->arena, &k->device.tile_slot,
                     ((KTilePlace){size_of(x), x->device.rows, x->device.rows ? x->elements : 0}));
        k->buffer.v[most].device.slot = slot;
    }
}

/* What products multiply as it lies: of a tile that loops fill numbers of bf16 have 16 bits each, and others that nothing
 * but products take are split into two of bf16, once and not by each warp that multiplies them. */
static void find_halves(Kernel *k)
{
    for (size_t b = 0; b < k->buffer.n; b++)
        k->buffer.v[b].device.split = k->buffer.v[b].tile && k->device.tensor && !k->buffer.v[b].rounded;
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KEx *x = kx(k, k->stmt.v[i].ex);
        if (k->stmt.v[i].kind == KS_LET && x->kind == KX_LOAD)
            k->buffer.v[x->slot].device.split = false;
    }
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].tile && k->device.tensor && half_info(k->buffer.v[b].rounded)->in_tiles)
            k->buffer.v[b].half = k->buffer.v[b].rounded;
    for (size_t i = 0; i < k->product.n; i++) {
        KBuffer *c = &k->buffer.v[k->product.v[i].c];
        c->device.split = false;
        if (c->tile)
            c->half = HALF_NONE;
    }
}

/* Rows of a tile are as long as products on tensor cores step from one to the next: 2^bank numbers or an odd multiple of it, where
 * parts are two. Of several products the shortest row counts. */
static void find_bank(Kernel *k, uint32_t buffer, int64_t step, int64_t deep)
{
    enum { LEAST = 4, MOST = 12 };
    KBuffer *b = &k->buffer.v[buffer];
    int64_t row = (step > deep ? step : deep) * (b->device.split ? 2 : 1);
    int bank = LEAST;
    while (bank < MOST && row % ((int64_t)2 << bank) == 0)
        bank++;
    b->device.bank = b->device.bank && b->device.bank < bank ? b->device.bank : bank;
}

static void find_banks(Kernel *k)
{
    for (size_t i = 0; i < k->product.n; i++) {
        const KProduct *p = &k->product.v[i];
        ProductSteps s;
        if (!product_steps(k, p, &s))
            vwn_bug(k->ctx, "a product without steps");
        find_bank(k, p->a, s.am, s.ak);
        find_bank(k, p->b, s.bn, s.bk);
        find_bank(k, p->c, s.cm, s.cn);
    }
}

void kernel_place_tiles(Kernel *to, const Kernel *from)
{
    Tiling t = {.k = to};
    *to = *from;
    memset(&to->device.tile_slot, 0, sizeof to->device.tile_slot);
    if (!from->product.n)
        return;
    to->buffer.v = NEW_ARRAY(to->arena, KBuffer, from->buffer.n + 1);
    memcpy(to->buffer.v, from->buffer.v, from->buffer.n * sizeof *from->buffer.v);
    to->product.v = NEW_ARRAY(to->arena, KProduct, from->product.n + 1);
    to->ex.v = NEW_ARRAY(to->arena, KEx, from->ex.n + 1);
    memcpy(to->ex.v, from->ex.v, from->ex.n * sizeof *from->ex.v);
    memcpy(to->product.v, from->product.v, from->product.n * sizeof *from->product.v);
    for (size_t i = 0; i < to->stmt.n; i++)
        if (to->stmt.v[i].kind == KS_ROWS)
            t.first = i + 1;
    t.end = kernel_loop_end(to, t.first - 1);
    t.gone = NEW_ARRAY(to->arena, bool, to->stmt.n + 1);
    add_up_all(&t);
    for (size_t i = 0; i < to->product.n; i++)
        store_at_once(&t, &to->product.v[i]);
    add_terms(&t);
    leave_out(&t);
    find_halves(to);
    find_banks(to);
    find_together(to);
    find_units(&t);
    find_touches(&t);
    find_order(&t);
    gather_little(&t);
    find_lives(&t);
    find_slots(&t);
    put_in_order(&t);
}
