/* store.c - external tensors: weights, moments, inputs, by kind and name.
 *
 * In:  shapes and host numbers.
 * Out: memory on the backend that programs read and write.
 * The one idea: an entry never moves once made, except that an input may grow; programs
 * notice by the store's generation. Small entries that never move lie side by side in large
 * pieces of memory, which is had in a few large pages. A device is asked for memory once, for all entries that are there when
 * the first of them is wanted: a number goes in or out, or a program runs. Host numbers travel through a small buffer
 * on the stack, so copies cost no memory.
 */
#include "store.h"

#include <stdio.h>

enum { PIECE = 1024 }; /* numbers converted at a time */

/* The room of an entry may exceed its present shape: an input that shrinks keeps its memory. */
typedef struct Room {
    StoreEntry entry; /* first: a StoreEntry pointer is a Room pointer */
    uint64_t bytes;
    bool in_slab;       /* given back with it, or with the first of its chain */
    bool leads;         /* others lie behind it */
    bool outside;       /* in memory that is not the store's */
    bool stale;         /* of a copy: the weight has changed since */
    struct Room *chain; /* the first of those that it lies behind; NULL: it is none, or the first itself, */
    uint64_t at;        /* and where it lies in the memory of all, which is the first one's */
} Room;

__attribute__((format(printf, 3, 4))) static Status fail(Store *s, Status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(s->why, sizeof s->why, fmt, ap);
    va_end(ap);
    return status;
}

static size_t item_size(const Store *s, ExtKind kind, DType dtype)
{
    return dtype == DT_INT || !s->backend ? 8 : (size_t)half_bytes(kind == EXT_COPY ? s->copies : HALF_NONE);
}

/* Zeroed memory where the tensors live. */
static Status take(Store *s, uint64_t bytes, void **memory)
{
    CtxGuard guard;
    *memory = NULL;
    if (s->backend) {
        s->backend->why[0] = 0;
        Status status = s->backend->ops->alloc(s->backend, bytes, memory);
        return status == ST_OK ? ST_OK : fail(s, status, "%s", s->backend->why);
    }
    if (!CTX_TRY(s->ctx, &guard))
        return fail(s, s->ctx->raised, "%s", s->ctx->message);
    *memory = ctx_alloc(s->ctx, bytes);
    ctx_leave(s->ctx, &guard);
    return ST_OK;
}

static void give(Store *s, void *memory, uint64_t bytes)
{
    if (s->backend)
        s->backend->ops->free(s->backend, memory, bytes);
    else
        ctx_release(s->ctx, memory);
}

enum {
    SLAB_LEAST = 2 << 20,
    SLAB_MOST = 16 << 20,
    SHARE_LEAST = 16 << 10, /* of a slab: smaller ones are cheap anywhere, */
    SHARE_MOST = 1 << 20,   /* larger ones would leave too much of it unused */
    SHARE_ALIGNED = 64
};

/* A slab is as large as all before it, so that a small store wastes little. It is entered before its
 * memory is there: then nothing can be lost. */
static Status new_slab(Store *s)
{
    CtxGuard guard;
    uint64_t bytes = s->slab_bytes < SLAB_LEAST ? SLAB_LEAST : s->slab_bytes > SLAB_MOST ? SLAB_MOST : s->slab_bytes;
    if (!CTX_TRY(s->ctx, &guard))
        return fail(s, s->ctx->raised, "%s", s->ctx->message);
    vec_push(s->arena, &s->slab, ((StoreSlab){NULL, 0, 0}));
    ctx_leave(s->ctx, &guard);
    void *memory;
    Status status = take(s, bytes, &memory);
    if (status != ST_OK) {
        s->slab.n--;
        return status;
    }
    s->slab.v[s->slab.n - 1] = (StoreSlab){memory, bytes, 0};
    s->slab_bytes += bytes;
    return ST_OK;
}

enum { DEVICE_ALIGNED = 256 };

static uint64_t on_device(uint64_t bytes) { return (bytes + DEVICE_ALIGNED - 1) / DEVICE_ALIGNED * DEVICE_ALIGNED; }

/* On a device that only uploads write to, memory can wait until it is used. */
static bool is_put_off(const Store *s) { return s->backend && s->backend->queues; }

static bool has_none(const Room *r) { return !r->entry.memory && !r->chain && !r->entry.elsewhere; }

static Status settle(Store *s)
{
    CtxGuard guard;
    if (!CTX_TRY(s->ctx, &guard))
        return fail(s, s->ctx->raised, "%s", s->ctx->message);
    vec_push(s->arena, &s->slab, ((StoreSlab){NULL, 0, 0})); /* entered first: then nothing can be lost */
    ctx_leave(s->ctx, &guard);
    uint64_t bytes = 0, at = 0;
    void *memory;
    for (size_t i = s->settled; i < s->entry.n; i++)
        bytes += has_none((Room *)s->entry.v[i]) ? on_device(((Room *)s->entry.v[i])->bytes) : 0;
    Status status = take(s, bytes, &memory);
    if (status != ST_OK) {
        s->slab.n--;
        return status;
    }
    s->slab.v[s->slab.n - 1] = (StoreSlab){memory, bytes, bytes};
    for (size_t i = s->settled; i < s->entry.n; i++) {
        Room *r = (Room *)s->entry.v[i];
        if (has_none(r)) {
            r->entry.memory = (char *)memory + at;
            r->in_slab = true;
            at += on_device(r->bytes);
        }
    }
    for (size_t i = s->settled; i < s->entry.n; i++) {
        Room *r = (Room *)s->entry.v[i];
        if (r->chain)
            r->entry.memory = (char *)r->chain->entry.memory + r->at;
    }
    s->settled = s->entry.n;
    s->generation++;
    return ST_OK;
}

static Status take_common(Store *s)
{
    if (s->common)
        give(s, s->common, s->common_bytes); /* first: both at once would raise the peak */
    s->common = NULL;
    s->common_bytes = 0;
    s->generation++;
    Status status = take(s, s->common_wanted, &s->common);
    if (status == ST_OK)
        s->common_bytes = s->common_wanted;
    return status;
}

Status store_settle(Store *s)
{
    Status status = s->common_wanted > s->common_bytes ? take_common(s) : ST_OK;
    return status == ST_OK && is_put_off(s) && s->settled < s->entry.n ? settle(s) : status;
}

/* Zeroed memory of an entry that stays as long as the store. */
static Status take_lasting(Store *s, uint64_t bytes, void **memory, bool *in_slab)
{
    *in_slab = s->backend && bytes >= SHARE_LEAST && bytes <= SHARE_MOST;
    if (!*in_slab)
        return take(s, bytes, memory);
    uint64_t size = (bytes + SHARE_ALIGNED - 1) / SHARE_ALIGNED * SHARE_ALIGNED;
    StoreSlab *last = s->slab.n ? &s->slab.v[s->slab.n - 1] : NULL;
    if (!last || last->bytes - last->used < size) {
        Status status = new_slab(s);
        if (status != ST_OK)
            return status;
        last = &s->slab.v[s->slab.n - 1];
    }
    *memory = last->memory + last->used;
    last->used += size;
    return ST_OK;
}

Store *store_new(Ctx *ctx, Backend *backend)
{
    Store *s = ctx_alloc(ctx, sizeof *s);
    *s = (Store){.ctx = ctx, .backend = backend};
    s->arena = arena_new(ctx);
    map_init(&s->index, s->arena);
    plan_layout_init(&s->layout, s->arena);
    return s;
}

void store_free(Store *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->entry.n; i++)
        if (!((Room *)s->entry.v[i])->in_slab && !((Room *)s->entry.v[i])->outside &&
            (s->entry.v[i]->memory || !is_put_off(s)))
            give(s, s->entry.v[i]->memory, ((Room *)s->entry.v[i])->bytes);
    for (size_t i = 0; i < s->slab.n; i++)
        give(s, s->slab.v[i].memory, s->slab.v[i].bytes);
    if (s->common)
        give(s, s->common, s->common_bytes);
    arena_free(s->arena);
    ctx_release(s->ctx, s);
}

/* Names are at least 16 bytes apart, so the kind fits into the low bits. */
static uintptr_t key_of(ExtKind kind, Name name) { return ((uintptr_t)name << 3) + (uintptr_t)kind + 1; }

StoreEntry *store_find(Store *s, ExtKind kind, Name name) { return map_get(&s->index, key_of(kind, name)); }

size_t store_count(const Store *s) { return s->entry.n; }

StoreEntry *store_at(Store *s, size_t i) { return s->entry.v[i]; }

uint64_t store_bytes(const Store *s)
{
    uint64_t bytes = 0; /* of tensors; arenas are counted by their programs */
    for (size_t i = 0; i < s->entry.n; i++)
        bytes += ((const Room *)s->entry.v[i])->bytes;
    return bytes;
}

const char *store_why(const Store *s) { return s->why; }

static void set_shape(StoreEntry *e, uint8_t rank, const int64_t *d, int64_t elements)
{
    e->rank = rank;
    e->elements = elements;
    for (int i = 0; i < rank; i++)
        e->d[i] = d[i];
}

static bool same_shape(const StoreEntry *e, uint8_t rank, const int64_t *d)
{
    if (e->rank != rank)
        return false;
    for (int i = 0; i < rank; i++)
        if (e->d[i] != d[i])
            return false;
    return true;
}

/* "[2, 3]" */
static const char *shape_text(char text[160], uint8_t rank, const int64_t *d)
{
    int n = snprintf(text, 160, "[");
    for (int i = 0; i < rank && n < 130; i++)
        n += snprintf(text + n, 160 - (size_t)n, "%s%lld", i ? ", " : "", (long long)d[i]);
    snprintf(text + n, 160 - (size_t)n, "]");
    return text;
}

/* An entry that is there already: the same, or an input that becomes larger. */
static Status refit(Store *s, StoreEntry *e, DType dtype, uint8_t rank, const int64_t *d, int64_t elements)
{
    char had[160], wants[160];
    Room *room = (Room *)e;
    uint64_t bytes = (uint64_t)elements * item_size(s, e->kind, dtype);
    if (e->dtype != dtype)
        return fail(s, ST_USAGE, "the tensor %s is %s elsewhere", e->name, e->dtype == DT_INT ? "an integer" : "real");
    if (same_shape(e, rank, d))
        return ST_OK;
    if (e->kind != EXT_INPUT || e->rank != rank)
        return fail(s, ST_USAGE, "the tensor %s has the shape %s, not %s", e->name, shape_text(had, e->rank, e->d),
                    shape_text(wants, rank, d));
    if (elements <= e->elements)
        return ST_OK; /* smaller programs use its beginning */
    if (bytes > room->bytes && is_put_off(s) && !e->memory) {
        room->bytes = bytes; /* it has none yet */
    } else if (bytes > room->bytes) {
        void *memory;
        Status status = take(s, bytes, &memory);
        if (status != ST_OK)
            return status;
        if (!room->in_slab)
            give(s, e->memory, room->bytes);
        e->memory = memory;
        room->bytes = bytes;
        room->in_slab = false;
        s->generation++;
    }
    set_shape(e, rank, d, elements);
    return ST_OK;
}

/* The bookkeeping of a new entry; NULL: there is no memory, and *status says so. */
static Room *new_room(Store *s, ExtKind kind, Name name, Status *status, void ***slot)
{
    CtxGuard guard;
    *slot = NULL;
    *status = ST_OK;
    if (!CTX_TRY(s->ctx, &guard)) {
        *status = fail(s, s->ctx->raised, "%s", s->ctx->message);
        return NULL;
    }
    Room *room = NEW(s->arena, Room);
    if (s->entry.n == s->entry.cap)
        s->entry.v = vec_grow(s->arena, s->entry.v, s->entry.n, &s->entry.cap, sizeof *s->entry.v);
    *slot = map_at(&s->index, key_of(kind, name)); /* stays NULL until the entry is whole */
    ctx_leave(s->ctx, &guard);
    return room;
}

Status store_add(Store *s, ExtKind kind, Name name, DType dtype, uint8_t rank, const int64_t *d, StoreEntry **out)
{
    int64_t elements = 1, bytes;
    char text[160];
    *out = NULL;
    if (rank > MAX_RANK)
        return fail(s, ST_USAGE, "the tensor %s has %d axes", name, rank);
    for (int i = 0; i < rank; i++)
        if (d[i] < 0 || !mul_i64(elements, d[i], &elements))
            return fail(s, ST_USAGE, "the tensor %s cannot have the shape %s", name, shape_text(text, rank, d));
    if (!mul_i64(elements, (int64_t)item_size(s, kind, dtype), &bytes))
        return fail(s, ST_ENVIRONMENT, "out of memory: the tensor %s of shape %s", name, shape_text(text, rank, d));
    StoreEntry *e = store_find(s, kind, name);
    if (e && e->elsewhere)
        vwn_bug(s->ctx, "another rank has the tensor %s", name);
    if (e) {
        Status status = refit(s, e, dtype, rank, d, elements);
        *out = status == ST_OK ? e : NULL;
        return status;
    }
    void **slot;
    Status status;
    Room *room = new_room(s, kind, name, &status, &slot);
    if (!room)
        return status;
    void *memory = NULL;
    bool in_slab = false;
    status = is_put_off(s)       ? ST_OK
             : kind == EXT_INPUT ? take(s, (uint64_t)bytes, &memory)
                                 : take_lasting(s, (uint64_t)bytes, &memory, &in_slab);
    if (status != ST_OK)
        return status;
    e = &room->entry;
    *e = (StoreEntry){.kind = kind, .name = name, .dtype = dtype, .memory = memory};
    set_shape(e, rank, d, elements);
    room->bytes = (uint64_t)bytes;
    room->in_slab = in_slab;
    s->entry.v[s->entry.n++] = e;
    *slot = e;
    *out = e;
    return ST_OK;
}

/* An entry without memory. */
static Status add_elsewhere(Store *s, ExtKind kind, Name name, uint8_t rank, const int64_t *d, StoreEntry **out)
{
    void **slot;
    Status status;
    Room *room = new_room(s, kind, name, &status, &slot);
    int64_t elements = 1;
    *out = NULL;
    if (!room)
        return status;
    for (int i = 0; i < rank; i++)
        elements *= d[i];
    room->in_slab = true; /* there is nothing to give back */
    room->entry = (StoreEntry){.kind = kind, .name = name, .dtype = DT_REAL, .elsewhere = true};
    set_shape(&room->entry, rank, d, elements);
    *slot = *out = s->entry.v[s->entry.n++] = &room->entry;
    return ST_OK;
}

Status store_add_held(Store *s, ExtKind kind, Name name, uint8_t rank, const int64_t *d, int holder, bool here,
                      StoreEntry **out)
{
    Status status = here ? store_add(s, kind, name, DT_REAL, rank, d, out) : add_elsewhere(s, kind, name, rank, d, out);
    if (status == ST_OK)
        (*out)->holder = holder + 1;
    return status;
}

/* A new entry, or one that is there, whose numbers come along unless they are outside already. */
Status store_place(Store *s, ExtKind kind, Name name, DType dtype, uint8_t rank, const int64_t *d, void *memory,
                   StoreEntry **out)
{
    int64_t elements = 1;
    for (int i = 0; i < rank; i++)
        elements *= d[i];
    StoreEntry *e = store_find(s, kind, name);
    Status status = ST_OK;
    *out = NULL;
    if (is_put_off(s))
        vwn_bug(s->ctx, "the tensor %s of a device cannot lie outside of it", name);
    if (!e) {
        void **slot;
        Room *room = new_room(s, kind, name, &status, &slot);
        if (!room)
            return status;
        e = &room->entry;
        *e = (StoreEntry){.kind = kind, .name = name, .dtype = dtype};
        s->entry.v[s->entry.n++] = e;
        *slot = e;
    } else if (!((Room *)e)->outside) {
        if (!same_shape(e, rank, d) || store_is_laid(e) || ((Room *)e)->leads || e->elsewhere)
            return fail(s, ST_USAGE, "the tensor %s has a place that it keeps", name);
        memcpy(memory, e->memory, ((Room *)e)->bytes);
        if (!((Room *)e)->in_slab)
            give(s, e->memory, ((Room *)e)->bytes);
    }
    Room *room = (Room *)e;
    room->outside = true;
    room->in_slab = false;
    room->bytes = (uint64_t)elements * item_size(s, kind, dtype);
    e->dtype = dtype;
    e->memory = memory;
    set_shape(e, rank, d, elements);
    s->generation++;
    *out = e;
    return ST_OK;
}

/* ---- tensors behind each other ---- */

void store_lay(Store *s, StoreEntry *const *e, size_t n)
{
    Room *first = (Room *)e[0];
    for (size_t i = 0; i < n; i++)
        if (e[i]->memory || ((Room *)e[i])->chain || ((Room *)e[i])->leads)
            vwn_bug(s->ctx, "the tensor %s has a place already", e[i]->name);
    for (size_t i = 1; i < n; i++) {
        Room *r = (Room *)e[i];
        r->chain = first;
        r->at = first->bytes;
        r->in_slab = true;
        first->bytes += r->bytes; /* the first has the memory of all */
        r->bytes = 0;
    }
    first->leads = n > 1;
}

bool store_is_laid(const StoreEntry *e) { return ((const Room *)e)->chain != NULL; }

bool store_follows(const Store *s, const StoreEntry *e, const StoreEntry *before)
{
    const Room *x = (const Room *)before, *y = (const Room *)e;
    return y->chain == (x->chain ? x->chain : x) &&
           y->at == x->at + (uint64_t)before->elements * item_size(s, before->kind, before->dtype);
}

/* ---- copies of weights ---- */

static void drop_copies(Store *s, size_t left)
{
    for (; s->entry.n > left; s->entry.n--)
        *map_at(&s->index, key_of(EXT_COPY, s->entry.v[s->entry.n - 1]->name)) = NULL; /* the slot is there */
}

/* New entries without memory. */
static Status new_copies(Store *s, const StoreEntry *const *of, size_t n)
{
    Status status = ST_OK;
    for (size_t i = 0; i < n && status == ST_OK; i++) {
        void **slot;
        Room *room = new_room(s, EXT_COPY, of[i]->name, &status, &slot);
        if (!room)
            return status;
        *room = (Room){.entry = *of[i], .stale = true};
        room->entry.kind = EXT_COPY;
        room->entry.memory = NULL;
        room->bytes = (uint64_t)of[i]->elements * item_size(s, EXT_COPY, DT_REAL);
        s->entry.v[s->entry.n++] = &room->entry;
        *slot = &room->entry;
    }
    return status;
}

Status store_add_copies(Store *s, const StoreEntry *const *of, size_t n, Half half)
{
    s->copies = half;
    size_t first = s->entry.n;
    void *memory = NULL;
    Status status = new_copies(s, of, n);
    if (status == ST_OK)
        store_lay(s, s->entry.v + first, n);
    if (status == ST_OK && !is_put_off(s))
        status = take(s, ((Room *)s->entry.v[first])->bytes, &memory);
    if (status != ST_OK)
        drop_copies(s, first);
    for (size_t i = first; memory && i < s->entry.n; i++)
        s->entry.v[i]->memory = (char *)memory + ((Room *)s->entry.v[i])->at;
    return status;
}

bool store_copy_stale(const StoreEntry *copy) { return ((const Room *)copy)->stale; }

void store_copy_done(StoreEntry *copy) { ((Room *)copy)->stale = false; }

void store_weight_changes(Store *s, const StoreEntry *weight)
{
    Room *copy = weight->kind == EXT_PARAM ? (Room *)store_find(s, EXT_COPY, weight->name) : NULL;
    if (copy)
        copy->stale = true;
}

Status store_reserve_common(Store *s, uint64_t bytes)
{
    s->common_wanted = bytes > s->common_wanted ? bytes : s->common_wanted;
    return is_put_off(s) || s->common_wanted <= s->common_bytes ? ST_OK : take_common(s);
}

/* ---- numbers in and out ---- */

/* And it has memory. */
static Status check_range(Store *s, const StoreEntry *e, int64_t at, int64_t n, bool integer)
{
    if (at < 0 || n < 0 || at > e->elements || n > e->elements - at)
        return fail(s, ST_USAGE, "%lld numbers from %lld do not lie in the tensor %s of %lld", (long long)n,
                    (long long)at, e->name, (long long)e->elements);
    if (e->elsewhere)
        vwn_bug(s->ctx, "the numbers of %s are another rank's", e->name);
    if (e->kind == EXT_COPY)
        return fail(s, ST_USAGE, "the numbers of %s are those of the weight", e->name);
    if (integer != (e->dtype == DT_INT))
        return fail(s, ST_USAGE, "the tensor %s is %s", e->name, e->dtype == DT_INT ? "an integer" : "real");
    return store_settle(s);
}

static Status upload(Store *s, void *to, const void *from, uint64_t bytes)
{
    s->backend->why[0] = 0;
    Status status = s->backend->ops->upload(s->backend, to, from, bytes);
    return status == ST_OK ? ST_OK : fail(s, status, "%s", s->backend->why);
}

static Status download(Store *s, void *to, const void *from, uint64_t bytes)
{
    s->backend->why[0] = 0;
    Status status = s->backend->ops->download(s->backend, to, from, bytes);
    return status == ST_OK ? ST_OK : fail(s, status, "%s", s->backend->why);
}

Status store_put_f64(Store *s, StoreEntry *e, int64_t at, int64_t n, const double *v)
{
    if (e->elsewhere)
        return ST_OK;
    Status status = check_range(s, e, at, n, false);
    store_weight_changes(s, e);
    if (status == ST_OK && !s->backend && n)
        memcpy((double *)e->memory + at, v, (size_t)n * sizeof *v);
    for (int64_t i = 0; status == ST_OK && s->backend && i < n; i += PIECE) {
        float piece[PIECE];
        int64_t k = n - i < PIECE ? n - i : PIECE;
        for (int64_t j = 0; j < k; j++)
            piece[j] = (float)v[i + j];
        status = upload(s, (float *)e->memory + at + i, piece, (uint64_t)k * sizeof *piece);
    }
    return status;
}

Status store_put_f32(Store *s, StoreEntry *e, int64_t at, int64_t n, const float *v)
{
    Status status = check_range(s, e, at, n, false);
    store_weight_changes(s, e);
    if (status != ST_OK)
        return status;
    if (s->backend)
        return upload(s, (float *)e->memory + at, v, (uint64_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        ((double *)e->memory)[at + i] = v[i];
    return ST_OK;
}

Status store_put_i64(Store *s, StoreEntry *e, int64_t at, int64_t n, const int64_t *v)
{
    Status status = check_range(s, e, at, n, true);
    if (status != ST_OK)
        return status;
    if (s->backend)
        return upload(s, (int64_t *)e->memory + at, v, (uint64_t)n * sizeof *v);
    if (n)
        memcpy((int64_t *)e->memory + at, v, (size_t)n * sizeof *v);
    return ST_OK;
}

Status store_get_f64(Store *s, const StoreEntry *e, int64_t at, int64_t n, double *v)
{
    Status status = check_range(s, e, at, n, e->dtype == DT_INT);
    for (int64_t i = 0; status == ST_OK && e->dtype == DT_INT && i < n; i += PIECE) {
        int64_t piece[PIECE], k = n - i < PIECE ? n - i : PIECE;
        const int64_t *from = (const int64_t *)e->memory + at + i;
        if (s->backend)
            status = download(s, piece, from, (uint64_t)k * sizeof *piece);
        else
            memcpy(piece, from, (size_t)k * sizeof *piece);
        for (int64_t j = 0; j < k; j++)
            v[i + j] = (double)piece[j];
    }
    if (status != ST_OK || e->dtype == DT_INT)
        return status;
    if (!s->backend && n)
        memcpy(v, (const double *)e->memory + at, (size_t)n * sizeof *v);
    for (int64_t i = 0; status == ST_OK && s->backend && i < n; i += PIECE) {
        float piece[PIECE];
        int64_t k = n - i < PIECE ? n - i : PIECE;
        status = download(s, piece, (const float *)e->memory + at + i, (uint64_t)k * sizeof *piece);
        for (int64_t j = 0; j < k; j++)
            v[i + j] = piece[j];
    }
    return status;
}

Status store_get_f32(Store *s, const StoreEntry *e, int64_t at, int64_t n, float *v)
{
    Status status = check_range(s, e, at, n, false);
    if (status != ST_OK)
        return status;
    if (s->backend)
        return download(s, v, (const float *)e->memory + at, (uint64_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)((const double *)e->memory)[at + i];
    return ST_OK;
}

const float *store_floats(const Store *s, const StoreEntry *e)
{
    return s->backend && s->backend->kind->host && e->dtype == DT_REAL && e->kind != EXT_COPY ? e->memory : NULL;
}
