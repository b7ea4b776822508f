/* kernel_races.c - do the threads that share a row wait for each other where they must?
 *
 * In:  what kernel_map_threads() makes.
 * Out: the first statement that touches what another thread has touched since the last barrier, one of the two writing; or
 *      that threads do together at a place which not all of them reach.
 * The one idea: statements are walked as threads run them, every loop twice, and of each array, tile, total of a warp
 * and tensor that is read and written it is known who has touched it since the last barrier. Barriers alone order
 * threads: a shuffle exchanges registers and says nothing about memory. Products on tensor cores have a place for shares of their sums in common. Nothing is taken from map_threads.c but its
 * statements. What threads do together, a barrier, a total of a warp, a product on tensor cores, whose instructions all
 * threads of a warp must meet at, stands in no loop of which each of them has its own rounds. Functions of the prelude and
 * written kernels have conditions of their own, which are not walked here but in their text (tests/kernel/meet.h).
 * Steps of a statement (KStmt.step) touch memory where they stand; that they are one statement is kernel_held.c's.
 */
#include "device.h"

/* Who touches it, and what: the loops of which each thread, or each warp, has rounds of its own, and the place. */
typedef struct Touch {
    IVar lane, warp; /* 0: no such loop */
    uint8_t width;   /* contiguous elements of a round */
    uint8_t first;   /* the warp that has the first round */
    bool own;        /* a round touches no element of another's */
    bool one;        /* the first thread alone */
    bool write;
    uint32_t result; /* the number of the buffer whose elements are written here, each once; 0: none */
    Ix at;           /* of tensors; arrays are touched at the place of their loops */
    size_t stmt;     /* the statement */
} Touch;

typedef struct Touched {
    VEC(Touch) by; /* since the last barrier */
    bool of_row;   /* another row's are other elements */
    bool sums;     /* over rows: the partial sum of a partition, which every row adds to */
} Touched;

/* Two statements of which the second waits for the first. */
typedef struct Ordered {
    const Touched *what;
    size_t first, second;
} Ordered;

typedef struct Races {
    const Kernel *k;
    Touched *array, *buffer, *slot;
    Touched shares; /* of warps, of which some products on tensor cores are the sums: in one place for all of them */
    IVar lane, warp;
    uint8_t width, first;
    size_t *end; /* of the loop that begins at a statement */
    size_t fault;
    size_t without; /* this barrier: what it orders is collected, and is no fault. SIZE_MAX: none */
    VEC(Ordered) ordered;
} Races;

static bool same_thread(const Touch *a, const Touch *b)
{
    if (a->warp != b->warp)
        return false;
    return (a->one && b->one) ||
           (a->own && b->own && a->lane == b->lane && a->width == b->width && a->first == b->first && a->at == b->at);
}

/* Once each, so that what many rounds touch is as short as what one does. */
static bool same_touch(const Touch *a, const Touch *b)
{
    return a->lane == b->lane && a->warp == b->warp && a->width == b->width && a->first == b->first &&
           a->own == b->own && a->one == b->one && a->write == b->write && a->result == b->result && a->at == b->at;
}

static void touch(Races *r, size_t i, Touched *what, Touch t)
{
    bool known = false;
    t.stmt = i;
    for (size_t k = 0; k < what->by.n; k++) {
        const Touch *before = &what->by.v[k];
        bool others = before->result && before->result == t.result; /* elements of it */
        bool waits = (before->write || t.write) && !others && !same_thread(before, &t);
        if (waits && r->without != SIZE_MAX)
            vec_push(r->k->arena, &r->ordered, ((Ordered){what, before->stmt, i}));
        else if (waits && r->fault == SIZE_MAX)
            r->fault = i;
        known = known || same_touch(before, &t);
    }
    if (!known)
        vec_push(r->k->arena, &what->by, t);
}

static void forget(Races *r, bool rows)
{
    for (size_t i = 0; i < r->k->array.n && !rows; i++)
        r->array[i].by.n = 0;
    for (size_t i = 0; i < r->k->buffer.n; i++)
        if (!rows || r->buffer[i].of_row)
            r->buffer[i].by.n = 0;
    for (size_t i = 0; i < r->k->device.mapping.slots && !rows; i++)
        r->slot[i].by.n = 0;
    r->shares.by.n = rows ? r->shares.by.n : 0;
}

static Touch touch_here(const Races *r, bool write)
{
    return (Touch){.lane = r->lane, .warp = r->warp, .width = r->width, .first = r->first, .write = write};
}

static void touch_array(Races *r, size_t i, const KStmt *s)
{
    const KNest *nest = &r->k->array.v[s->array].nest;
    if (r->k->array.v[s->array].sums && (s->kind == KS_ARRAY_FILL || s->kind == KS_ARRAY_ADD))
        return; /* in registers */
    Touch t = touch_here(r, s->step ? s->step & STEP_STORE : s->kind != KS_ARRAY_GET);
    bool of_warp = !t.warp, of_lane = false;
    for (uint32_t d = 0; d < nest->n; d++) {
        of_warp = of_warp || nest->var[d] == t.warp;
        of_lane = of_lane || nest->var[d] == t.lane;
    }
    t.one = s->kind == KS_ARRAY_PUT && s->one;
    t.own = t.lane && of_lane && of_warp;
    if (s->kind == KS_ARRAY_FILL) { /* each thread its share of the array as it lies */
        t.lane = nest->n ? nest->var[nest->n - 1] : 0;
        t.width = 1;
        t.first = 0;
        t.own = nest->n == 1;
    }
    touch(r, i, &r->array[s->array], t);
}

/* Tiles may lie where others lay; a tensor is asked only when it is written and read, or added to. */
static void touch_buffer(Races *r, size_t i, uint32_t buffer, Touch t)
{
    const KBuffer *b = &r->k->buffer.v[buffer];
    if (!b->tile && !r->buffer[buffer].sums && !(b->read && b->written))
        return;
    t.own = t.lane != 0;     /* at the same place: a result's places are each one thread's */
    uint32_t first = buffer; /* of the tiles that lie in one place */
    for (uint32_t k = buffer; b->tile && b->device.slot >= 0 && k-- > 0;)
        if (r->k->buffer.v[k].tile && r->k->buffer.v[k].device.slot == b->device.slot)
            first = k;
    touch(r, i, &r->buffer[first], t);
}

static void touch_load(Races *r, size_t i, const KEx *x)
{
    Touch t = touch_here(r, false);
    t.at = x->ix;
    touch_buffer(r, i, x->slot, t);
}

static void touch_store(Races *r, size_t i, const KStmt *s)
{
    const KRoot *root = &r->k->root.v[s->root];
    Touch t = touch_here(r, !s->step || s->step & STEP_STORE);
    t.at = root->at;
    t.one = s->one;
    t.result = root->buffer + 1;
    touch_buffer(r, i, root->buffer, t);
}

/* Each element is another lane's. */
static void touch_column(Races *r, size_t i, const KColumn *c)
{
    for (uint32_t j = 0; j < c->n; j++) {
        const KEx *x = kx(r->k, c->ex[j]);
        const KRoot *root = c->root ? &r->k->root.v[c->root[j]] : NULL;
        if (root)
            touch_buffer(r, i, root->buffer, (Touch){.write = true, .at = root->at, .result = root->buffer + 1});
        else if (x->kind == KX_LOAD)
            touch_load(r, i, x);
    }
}

/* Before the first row of a partition all threads fill its partial sums, and they store them when it is over: each its elements in
 * the order in which they lie, where that is theirs. */
static void touch_part(Races *r, size_t i, const KStmt *s)
{
    const KBuffer *b = &r->k->buffer.v[s->root];
    Touch t = touch_here(r, s->kind == KS_PART_FILL);
    t.lane = b->device.swizzled ? 0 : r->k->part;
    t.width = 1;
    touch_buffer(r, i, s->root, t);
}

/* The partial sums of another partition lie elsewhere: in memory, or in the shared memory of another block, unless a block goes on
 * to a further partition. */
static void forget_parts(Races *r)
{
    for (uint32_t b = 0; b < r->k->buffer.n; b++)
        if (r->buffer[b].sums && !(r->k->buffer.v[b].device.shared && r->k->device.grid.blocks))
            r->buffer[b].by.n = 0;
}

static void touch_product(Races *r, size_t i, const KProduct *p)
{
    Touch t = touch_here(r, true);
    t.result = p->add ? 0 : p->c + 1;
    touch_buffer(r, i, p->a, touch_here(r, false));
    touch_buffer(r, i, p->b, touch_here(r, false));
    if (p->also) {
        touch_buffer(r, i, r->k->product.v[p->also - 1].a, touch_here(r, false));
        touch_buffer(r, i, r->k->product.v[p->also - 1].b, touch_here(r, false));
    }
    touch_buffer(r, i, p->c, t);
    if (product_cut_shares(p->way.cut))
        touch(r, i, &r->shares, (Touch){.write = true});
    if (p->beside)
        touch_product(r, i, &r->k->product.v[p->beside - 1]);
}

static void touch_place(Races *r, size_t i, uint32_t slot, bool write, Ix which)
{
    touch(r, i, &r->slot[slot], (Touch){.own = write, .write = write, .at = which});
}

/* Totals that are one step lie as numbers of 4 bytes in the first half of their slots. Each warp has a place behind these into which it
 * writes totals for its own threads. */
static void touch_step(Races *r, size_t i, const KStmt *s, const KTotals *t)
{
    const uint32_t n = t->n, room = (n + 3) / 4 * 4;
    bool own = false;
    for (uint32_t j = 0; j < n; j++)
        own = own || !t->of[j].alone;
    for (uint32_t j = 0; j < (n + 1) / 2; j++)
        touch_place(r, i, s->at + j, s->kind == KS_WARP_PUT, 2);
    for (uint32_t j = room / 2; j < room && own && s->kind == KS_WARP_TAKE; j++)
        touch_place(r, i, s->at + j, true, 1);
}

static void touch_slot(Races *r, size_t i, const KStmt *s)
{
    if (s->totals) {
        touch_step(r, i, s, kernel_totals(r->k, s));
        return;
    }
    Touch t = touch_here(r, s->kind == KS_WARP_PUT);
    t.own = t.write; /* a warp's place */
    t.lane = t.warp = 0;
    touch(r, i, &r->slot[s->at], t);
}

/* The totals of a warp are in slots of its own; of the array each element is stored by some thread. */
static void touch_sums(Races *r, size_t i, const KStmt *s)
{
    const KArray *a = &r->k->array.v[s->array];
    bool give = s->kind == KS_ARRAY_GIVE;
    for (int64_t n = 0; n < a->elements && s->at + n < r->k->device.mapping.slots; n++)
        touch(r, i, &r->slot[s->at + n], (Touch){.own = give, .write = give});
    if (!give)
        touch(r, i, &r->array[s->array], (Touch){.write = true});
}

static void walk(Races *r, size_t from, size_t to);

static void walk_loop(Races *r, size_t i, const KStmt *s)
{
    IVar lane = r->lane, warp = r->warp;
    uint8_t width = r->width, first = r->first;
    if (s->kind == KS_LOOP && s->mapped && s->threads == WARPS_OF_ROW) {
        r->warp = s->var;
    } else if (s->kind == KS_LOOP && s->mapped) {
        r->lane = s->var;
        r->width = s->width > 1 ? s->width : 1;
        r->first = s->first;
    }
    for (int round = 0; round < 2; round++) {
        walk(r, i + 1, r->end[i]);
        if (s->kind == KS_ROWS)
            forget(r, true);
        else if (s->kind == KS_PART)
            forget_parts(r);
    }
    r->lane = lane;
    r->warp = warp;
    r->width = width;
    r->first = first;
}

/* Do all threads that do this together come by as often? Rows are one to a warp or to a block. */
static bool all_meet(const Races *r, const KStmt *s)
{
    switch (s->kind) {
    case KS_BARRIER: return !r->lane && !r->warp && r->k->device.mapping.row_threads % 32 == 0;
    case KS_PRODUCT: return !r->lane && !r->warp && r->k->device.mapping.units == 1;
    case KS_LANES:
    case KS_LANE_TAKE:
    case KS_LANE_STORE: return !r->lane && !r->warp && r->k->device.mapping.row_threads % 32 == 0;
    case KS_WARP:
    case KS_ARRAY_GIVE:
    case KS_ARRAY_TAKE: return !r->lane && r->k->device.mapping.row_threads % 32 == 0;
    default: return true;
    }
}

static void walk(Races *r, size_t from, size_t to)
{
    const Kernel *k = r->k;
    for (size_t i = from; i < to && r->fault == SIZE_MAX; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (!all_meet(r, s)) {
            r->fault = i;
            return;
        }
        if (s->step && !(s->step & (STEP_LOAD | STEP_STORE))) /* in registers */
            continue;
        switch (s->kind) {
        case KS_PART:
        case KS_ROWS:
        case KS_LOOP:
            walk_loop(r, i, s);
            i = r->end[i];
            break;
        case KS_BARRIER:
            if (i != r->without)
                forget(r, false);
            break;
        case KS_PART_FILL:
        case KS_PART_STORE: touch_part(r, i, s); break;
        case KS_ARRAY_FILL:
        case KS_ARRAY_PUT:
        case KS_ARRAY_ADD:
        case KS_ARRAY_GET: touch_array(r, i, s); break;
        case KS_LET:
            if (kx(k, s->ex)->kind == KX_LOAD)
                touch_load(r, i, kx(k, s->ex));
            break;
        case KS_STORE:
        case KS_SINK: touch_store(r, i, s); break;
        case KS_LANES:
        case KS_LANE_STORE: touch_column(r, i, &k->device.column.v[s->column - 1]); break;
        case KS_PRODUCT: touch_product(r, i, &k->product.v[s->root]); break;
        case KS_WARP_PUT:
        case KS_WARP_TAKE: touch_slot(r, i, s); break;
        case KS_ARRAY_GIVE:
        case KS_ARRAY_TAKE: touch_sums(r, i, s); break;
        default: break;
        }
    }
}

static void find_ends(Races *r)
{
    const Kernel *k = r->k;
    VEC(size_t) open = {0};
    for (size_t i = 0; i < k->stmt.n; i++)
        if (kernel_opens(&k->stmt.v[i]))
            vec_push(k->arena, &open, i);
        else if (k->stmt.v[i].kind == KS_END && open.n)
            r->end[open.v[--open.n]] = i;
}

static Races races_of(const Kernel *k)
{
    Races r = {.k = k, .fault = SIZE_MAX, .without = SIZE_MAX};
    r.array = NEW_ARRAY(k->arena, Touched, k->array.n + 1);
    r.buffer = NEW_ARRAY(k->arena, Touched, k->buffer.n + 1);
    r.slot = NEW_ARRAY(k->arena, Touched, k->device.mapping.slots + 1);
    r.end = NEW_ARRAY(k->arena, size_t, k->stmt.n + 1);
    for (size_t i = 0; i < k->root.n; i++)
        r.buffer[k->root.v[i].buffer].sums = k->root.v[i].kind == KR_SINK;
    for (size_t i = 0; i < k->product.n; i++)
        r.buffer[k->product.v[i].c].sums = !k->buffer.v[k->product.v[i].c].tile;
    for (size_t i = 0; i < k->buffer.n; i++)
        r.buffer[i].of_row = !k->buffer.v[i].tile && !r.buffer[i].sums;
    find_ends(&r);
    return r;
}

/* Does one thread have all of a row? */
static bool is_alone(const Kernel *k) { return !k->device.mapping.row_threads || k->device.mapping.by_row; }

size_t kernel_race(const Kernel *k)
{
    if (is_alone(k))
        return SIZE_MAX;
    ArenaMark mark = arena_mark(k->arena);
    Races r = races_of(k);
    walk(&r, 0, k->stmt.n);
    arena_reset(k->arena, mark);
    return r.fault;
}

/* ---- what a barrier is for ---- */

/* "put", "load": the first word of a statement. */
static const char *word_of(const Kernel *k, size_t i, char word[16])
{
    const KStmt *s = &k->stmt.v[i];
    const char *text = s->kind == KS_LET ? "load" : kstmt_info[s->kind].text;
    size_t n = strcspn(text, " ");
    n = n < 15 ? n : 15;
    memcpy(word, text, n);
    word[n] = 0;
    return word;
}

static void put_name(Buf *out, const Races *r, const Touched *what)
{
    if (what >= r->array && what < r->array + r->k->array.n)
        buf_printf(out, "t%zu", (size_t)(what - r->array));
    else if (what >= r->buffer && what < r->buffer + r->k->buffer.n)
        buf_printf(out, "b%zu", (size_t)(what - r->buffer));
    else
        buf_puts(out, what == &r->shares ? "shares of products" : "totals of warps");
}

/* What one pair says; the same is said once. */
static const char *text_of(const Races *r, const Ordered *o)
{
    Buf out = buf_new(r->k->arena);
    char first[16], second[16];
    put_name(&out, r, o->what);
    buf_printf(&out, ": %s, then %s", word_of(r->k, o->first, first), word_of(r->k, o->second, second));
    return out.s;
}

void kernel_put_reasons(Buf *out, const Kernel *k, size_t barrier)
{
    VEC(const char *) said = {0};
    if (is_alone(k))
        return;
    Races r = races_of(k);
    r.without = barrier;
    walk(&r, 0, k->stmt.n);
    for (size_t i = 0; i < r.ordered.n; i++) {
        const char *text = text_of(&r, &r.ordered.v[i]);
        size_t known = 0;
        while (known < said.n && strcmp(said.v[known], text) != 0)
            known++;
        if (known < said.n)
            continue;
        buf_printf(out, "%s%s", said.n ? "; " : "  # orders ", text);
        vec_push(k->arena, &said, text);
    }
    if (!said.n)
        buf_puts(out, "  # orders nothing that the proof of races knows");
}

void kernel_verify_mapping(const Kernel *k)
{
    kernel_verify(k);
    size_t at = kernel_race(k);
    if (at != SIZE_MAX)
        kernel_broken(k, at, "a thread touches what another may still be at, or waits where not all of them come by");
    uint64_t warps = k->device.mapping.row_threads / 32;
    if (k->device.mapping.slots * warps * sizeof(int64_t) > KERNEL_SLOTS_ROOM)
        kernel_broken(k, SIZE_MAX, "totals of warps have more shared memory than is kept for them");
}
