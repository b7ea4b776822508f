/* alike.c - see alike.h: layers repeat, so most groups have been seen before.
 *
 * The one idea: a group is written down as a walk from what it stores to what it loads, values
 * numbered as they are met. Two groups with the same walk have the same kernel; only whose
 * memory a buffer is, and which stream a random number comes from, is the group's own.
 */
#include "alike.h"

typedef struct Known {
    uint64_t hash;
    const char *walk;
    size_t length;
    const Val *met; /* values of the group that it was made from, as the walk met them */
    const Name *site; /* their random streams; the graph they are of may be gone */
    size_t n_met;
    Made made;
} Known;

struct Alike {
    Ctx *ctx;
    Arena *arena; /* lives as long as what is known */
    Arena *tmp;   /* of the last question */
    VEC(Known) known;
};

typedef struct Walk {
    const Fusion *f;
    uint32_t group;
    const Val *same;
    Arena *arena;
    Buf text;
    VEC(Val) met;
    Map number; /* of a value, plus one */
} Walk;

Alike *alike_new(Ctx *ctx, Arena *arena)
{
    Alike *a = NEW(arena, Alike);
    *a = (Alike){.ctx = ctx, .arena = arena_new(ctx), .tmp = arena_new(ctx)};
    return a;
}

void alike_free(Alike *a)
{
    arena_free(a->tmp);
    arena_free(a->arena);
}

/* ---- the walk ---- */

static void put(Walk *w, const void *p, size_t n) { buf_put(&w->text, p, n); }

static void put_int(Walk *w, int64_t x) { put(w, &x, sizeof x); }

static void put_dim(Walk *w, Dim d)
{
    put_int(w, d.n);
    put_int(w, d.b * 256 + d.t);
}

static void put_attributes(Walk *w, const Node *n)
{
    const Attr *a = &n->a;
    double number[3] = {a->x, a->y, a->z};
    put(w, number, sizeof number);
    put_int(w, n->op == OP_EXT ? 0 : a->i);
    put_int(w, a->j);
    put_int(w, a->axes);
    put_dim(w, a->dim);
    put_int(w, (int64_t)a->n);
    if (a->n)
        put(w, a->data, a->n * sizeof *a->data);
}

static void walk_value(Walk *w, Val v)
{
    const Fusion *f = w->f;
    const Node *n = node_at(f->g, v);
    void **slot = map_at(&w->number, v);
    if (*slot) {
        put_int(w, -(int64_t)(uintptr_t)*slot);
        return;
    }
    vec_push(w->arena, &w->met, v);
    *slot = (void *)(uintptr_t)w->met.n;
    bool loaded = lower_loads(f, w->group, v);
    put_int(w, n->op | n->dtype << 8 | loaded << 10 | (f->halved && f->halved[v]) << 11 |
                   (int)(f->home[v] == (int32_t)w->group) << 12 | f->stored[v] << 13 |
                   n->shape.rank << 16);
    for (int i = 0; i < n->shape.rank; i++)
        put_dim(w, n->shape.d[i]);
    put_attributes(w, n);
    if (w->same[v] != v)
        walk_value(w, w->same[v]);
    if (loaded)
        return;
    put_int(w, n->n_in);
    for (size_t k = 0; k < n->n_in; k++)
        walk_value(w, n->in[k]);
}

static void walk_group(Walk *w, Arena *arena, const Fusion *f, uint32_t group, const Val *same)
{
    const Group *gr = &f->group.v[group];
    *w = (Walk){.f = f, .group = group, .same = same, .arena = arena, .text = buf_new(arena)};
    map_init(&w->number, arena);
    put_dim(w, gr->rows);
    for (size_t i = 0; i < gr->member.n; i++) /* they are named above the text */
        put_int(w, node_at(f->g, gr->member.v[i])->op);
    put_int(w, (int64_t)gr->store.n);
    for (size_t i = 0; i < gr->store.n; i++)
        walk_value(w, gr->store.v[i]);
}

/* ---- another group's values in place of the first one's ---- */

typedef struct Renaming {
    Arena *arena;
    const Graph *g;
    Map to; /* value -> value */
} Renaming;

static Val renamed(const Renaming *r, Val v)
{
    return (Val)(uintptr_t)map_get(&r->to, v);
}

static void rename_kernel(const Renaming *r, const Kernel *from, Kernel *to)
{
    *to = *from;
    to->buffer.v = NEW_ARRAY(r->arena, KBuffer, from->buffer.n + 1);
    for (size_t i = 0; i < from->buffer.n; i++) {
        KBuffer b = from->buffer.v[i];
        b.value = renamed(r, b.value);
        b.name = node_at(r->g, b.value)->name;
        to->buffer.v[i] = b;
    }
    to->scalar.v = NEW_ARRAY(r->arena, KScalar, from->scalar.n + 1);
    for (size_t i = 0; i < from->scalar.n; i++) {
        KScalar s = from->scalar.v[i];
        s.origin = s.origin ? renamed(r, s.origin) : 0;
        s.name = s.origin ? node_at(r->g, s.origin)->name : s.name;
        to->scalar.v[i] = s;
    }
}

/* The site of the value that takes the place of the one whose site it was. */
static Name renamed_site(const Renaming *r, const Known *k, Name site)
{
    for (size_t i = 0; i < k->n_met; i++)
        if (k->site[i] == site)
            return node_at(r->g, renamed(r, k->met[i]))->a.site;
    vwn_bug(r->g->ctx, "a random number of no value of its kernel");
}

static void rename_made(const Renaming *r, const Known *k, Made *out)
{
    Kernel *kernel = NEW(r->arena, Kernel);
    *out = k->made;
    rename_kernel(r, k->made.low.kernel, kernel);
    out->low.kernel = kernel;
    out->low.sink.v = NEW_ARRAY(r->arena, Sink, k->made.low.sink.n + 1);
    for (size_t i = 0; i < k->made.low.sink.n; i++) {
        out->low.sink.v[i] = k->made.low.sink.v[i];
        out->low.sink.v[i].v = renamed(r, k->made.low.sink.v[i].v);
    }
    kernel->seed.v = NEW_ARRAY(r->arena, Name, kernel->seed.n + 1);
    for (size_t i = 0; i < kernel->seed.n; i++)
        kernel->seed.v[i] = renamed_site(r, k, k->made.low.kernel->seed.v[i]);
    out->printed.ints.v = NEW_ARRAY(r->arena, PrintedInt, k->made.printed.ints.n + 1);
    for (size_t i = 0; i < k->made.printed.ints.n; i++) {
        PrintedInt x = k->made.printed.ints.v[i];
        x.site = x.site ? renamed_site(r, k, x.site) : NULL;
        out->printed.ints.v[i] = x;
    }
}

/* ---- the whole ---- */

static const Known *find_known(const Alike *a, const Walk *w, uint64_t hash)
{
    for (size_t i = 0; i < a->known.n; i++) {
        const Known *k = &a->known.v[i];
        if (k->hash == hash && k->length == w->text.n && k->n_met == w->met.n &&
            memcmp(k->walk, w->text.s, w->text.n) == 0)
            return k;
    }
    return NULL;
}

void alike_make(Alike *a, Made *out, const Fusion *f, uint32_t group, const Val *same,
                const Dialect *d, const char *(*about)(const Fusion *f, const Group *gr,
                                                       const Kernel *k, Arena *arena))
{
    Walk w;
    arena_reset(a->tmp, (ArenaMark){0});
    walk_group(&w, a->tmp, f, group, same);
    uint64_t hash = hash_bytes(w.text.s, w.text.n, 3);
    const Known *known = find_known(a, &w, hash);
    if (known) {
        Renaming r = {.arena = a->tmp, .g = f->g};
        map_init(&r.to, a->tmp);
        for (size_t i = 0; i < w.met.n; i++)
            *map_at(&r.to, known->met[i]) = (void *)(uintptr_t)w.met.v[i];
        rename_made(&r, known, out);
        return;
    }
    *out = (Made){0};
    lower_group(&out->low, a->arena, f, group, same);
    emit_kernel(&out->printed, out->low.kernel, d,
                about(f, &f->group.v[group], out->low.kernel, a->arena));
    Known k = {.hash = hash, .walk = arena_copy(a->arena, w.text.s, w.text.n),
               .length = w.text.n, .n_met = w.met.n, .made = *out};
    Val *met = NEW_ARRAY(a->arena, Val, w.met.n + 1);
    Name *site = NEW_ARRAY(a->arena, Name, w.met.n + 1);
    for (size_t i = 0; i < w.met.n; i++) {
        const Node *n = node_at(f->g, w.met.v[i]);
        met[i] = w.met.v[i];
        site[i] = n->op == OP_RAND || n->op == OP_RANDN ? n->a.site : NULL;
    }
    k.met = met;
    k.site = site;
    vec_push(a->arena, &a->known, k);
}
