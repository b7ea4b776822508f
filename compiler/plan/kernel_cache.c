/* kernel_cache.c - see kernel_cache.h: layers repeat, so most groups have been seen before.
 *
 * The one idea: a group is written down as a walk from what it stores to what it loads, values
 * numbered as they are visited. Two groups with the same walk have the same kernel; only whose
 * memory a buffer is, and which stream a random number comes from, is the group's own.
 *
 * On a device kernels of layers that differ in sizes alone are a variant class: with one thread mapping they have one
 * text. It is the mapping that suits those which move the most bytes, as far as the sizes of the others allow it. What
 * each would take for itself (more threads for a longer row, wider accesses where no thread is idle for it) gains less
 * than another text costs.
 */
#include "kernel_cache.h"
#include "pipeline.h"
#include "compiler/gpu/device.h"

/* A thread mapping that suits some of a class, and the bytes that these move. */
typedef struct VariantMapping {
    KMappingChoice how;
    double bytes;
} VariantMapping;

typedef struct Member {
    const Kernel *kernel; /* with its nests in order */
    KIndex index;         /* that suits it */
    ArgumentSlots own;    /* its arguments, with the mapping of the class */
} Member;

typedef struct VariantClass {
    const char *about; /* of the first */
    VEC(VariantMapping) mapping;
    VEC(Member) member;
    size_t settled; /* so many of them have `how` */
    KMappingChoice how;
    ArgumentSlots sizes; /* two uses are one argument where they are in all members */
} VariantClass;

typedef struct CacheEntry {
    uint64_t hash;
    size_t next; /* the next one whose hash ends alike, and 1; or 0 */
    const char *walk;
    size_t length;
    const Val *visited; /* values of the group that it was made from, as the walk visited them */
    const Name *site;   /* their random streams; the graph they are of may be gone */
    size_t n_visited;
    bool lowered, counted;
    bool is_long;           /* and has no kernel, while it may be split */
    CachedKernel made;      /* when lowered */
    Counted count;          /* when counted */
    const Kernel *arranged; /* of a device: with its tiles and nests in order, when that was asked for */
    VariantClass *class;    /* of a device's kernel that was visited; else NULL */
    KMappingChoice own;
} CacheEntry;

/* What is known of a group, from the first question about it on. */
typedef struct GroupEntry {
    size_t entry; /* in KernelCache.entry, and 1; 0: nobody has asked */
    Val *visited;
    size_t n_visited;
} GroupEntry;

struct KernelCache {
    Ctx *ctx;
    Arena *arena;     /* lives as long as what is known */
    Arena *tmp;       /* of the last question */
    PassWatch *watch; /* or NULL */
    VEC(CacheEntry) entry;
    Map first;        /* by hash: the first of `entry`, and 1 */
    const Fusion *of; /* whose groups these are */
    GroupEntry *group;
    Arena *groups; /* of them */
    Map class;     /* by kernel_structure() */
};

typedef struct GroupWalk {
    const Fusion *f;
    uint32_t group;
    const Val *same;
    Arena *arena;
    Buf text;
    VEC(Val) visited;
    Map number; /* of a value, plus one */
} GroupWalk;

KernelCache *kernel_cache_new(Ctx *ctx, Arena *arena)
{
    KernelCache *a = NEW(arena, KernelCache);
    *a = (KernelCache){.ctx = ctx, .arena = arena_new(ctx), .tmp = arena_new(ctx), .groups = arena_new(ctx)};
    map_init(&a->class, a->arena);
    map_init(&a->first, a->arena);
    return a;
}

void kernel_cache_free(KernelCache *a)
{
    arena_free(a->tmp);
    arena_free(a->groups);
    arena_free(a->arena);
}

void kernel_cache_begin(KernelCache *a, PassWatch *watch)
{
    a->watch = watch;
    a->of = NULL;
}

size_t kernel_cache_classes(const KernelCache *a) { return a->class.n; }

/* ---- the walk ---- */

static void put(GroupWalk *w, const void *p, size_t n) { buf_put(&w->text, p, n); }

static void put_int(GroupWalk *w, int64_t x)
{
    Buf *b = &w->text;
    if (b->cap - b->n <= sizeof x) {
        put(w, &x, sizeof x);
        return;
    }
    memcpy(b->s + b->n, &x, sizeof x); /* bytes, and no text: none ends them */
    b->n += sizeof x;
}

static void put_dim(GroupWalk *w, Dim d)
{
    put_int(w, d.n);
    put_int(w, d.b * 256 + d.t);
}

static void put_attributes(GroupWalk *w, const Node *n)
{
    const Attr *a = &n->a;
    double number[3] = {a->x, a->y, a->z};
    put(w, number, sizeof number);
    put_int(w, n->op == OP_EXT ? 0 : a->i);
    put_int(w, a->j);
    put_int(w, a->made);
    put_int(w, a->axes);
    put_dim(w, a->dim);
    put_int(w, (int64_t)a->n);
    if (a->n)
        put(w, a->data, a->n * sizeof *a->data);
}

static void walk_value(GroupWalk *w, Val v)
{
    const Fusion *f = w->f;
    const Node *n = node_at(f->g, v);
    void **slot = map_at(&w->number, v);
    if (*slot) {
        put_int(w, -(int64_t)(uintptr_t)*slot);
        return;
    }
    vec_push(w->arena, &w->visited, v);
    *slot = (void *)(uintptr_t)w->visited.n;
    bool loaded = fuse_loads(f, w->group, v);
    put_int(w, n->op | n->dtype << 8 | loaded << 10 | (f->in_16bit && f->in_16bit[v]) << 11 |
                   (int)(f->home[v] == (int32_t)w->group) << 12 | f->stored[v] << 13 | (f->row_of[v] != 0) << 14 |
                   n->shape.rank << 16);
    for (int i = 0; i < n->shape.rank; i++)
        put_dim(w, n->shape.d[i]);
    put_attributes(w, n);
    if (w->same[v] != v)
        walk_value(w, w->same[v]);
    if (f->row_of[v])
        walk_value(w, f->row_of[v]);
    if (loaded)
        return;
    put_int(w, n->n_in);
    for (size_t k = 0; k < n->n_in; k++)
        walk_value(w, n->in[k]);
}

static void walk_group(GroupWalk *w, Arena *arena, const Fusion *f, uint32_t group, const Val *same)
{
    const Group *gr = &f->group.v[group];
    *w = (GroupWalk){.f = f, .group = group, .same = same, .arena = arena, .text = buf_new(arena)};
    map_init(&w->number, arena);
    put_int(w, f->B); /* lowering asks what extents are: of another length, sums have other parts */
    put_int(w, f->T);
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

static Val renamed(const Renaming *r, Val v) { return (Val)(uintptr_t)map_get(&r->to, v); }

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
static Name renamed_site(const Renaming *r, const CacheEntry *k, Name site)
{
    for (size_t i = 0; i < k->n_visited; i++)
        if (k->site[i] == site)
            return node_at(r->g, renamed(r, k->visited[i]))->a.site;
    vwn_bug(r->g->ctx, "a random number of no value of its kernel");
}

static KArgument *renamed_arguments(const Renaming *r, const CacheEntry *k)
{
    const Printed *from = &k->made.printed;
    KArgument *to = NEW_ARRAY(r->arena, KArgument, from->ints.n + 1);
    for (size_t i = 0; i < from->ints.n; i++) {
        to[i] = from->ints.v[i];
        to[i].site = to[i].site ? renamed_site(r, k, to[i].site) : NULL;
    }
    return to;
}

static void rename_made(const Renaming *r, const CacheEntry *k, CachedKernel *out)
{
    Kernel *kernel = NEW(r->arena, Kernel);
    *out = k->made;
    rename_kernel(r, k->made.low.kernel, kernel);
    kernel->argument.v = out->printed.ints.v = renamed_arguments(r, k);
    out->low.kernel = kernel;
    out->low.sink.v = NEW_ARRAY(r->arena, Sink, k->made.low.sink.n + 1);
    for (size_t i = 0; i < k->made.low.sink.n; i++) {
        out->low.sink.v[i] = k->made.low.sink.v[i];
        out->low.sink.v[i].v = renamed(r, k->made.low.sink.v[i].v);
    }
    kernel->seed.v = NEW_ARRAY(r->arena, KSeed, kernel->seed.n + 1);
    for (size_t i = 0; i < kernel->seed.n; i++) {
        const KSeed *seed = &k->made.low.kernel->seed.v[i];
        kernel->seed.v[i] = (KSeed){renamed_site(r, k, seed->site), seed->each};
    }
}

/* ---- variant classes ---- */

static void add_mapping(KernelCache *a, VariantClass *class, const KMappingChoice *own, double bytes)
{
    for (size_t i = 0; i < class->mapping.n; i++)
        if (kernel_mapping_same(&class->mapping.v[i].how, own)) {
            class->mapping.v[i].bytes += bytes;
            return;
        }
    vec_push(a->arena, &class->mapping, (VariantMapping){*own, bytes});
}

static bool one_argument(const VariantClass *class, size_t use, size_t other)
{
    for (size_t i = 0; i < class->member.n; i++)
        if (class->member.v[i].own.slot[use] != class->member.v[i].own.slot[other])
            return false;
    return true;
}

/* Sizes that are equal in one layer only, such as those of a state that has not become narrower, are two
 * arguments in all. */
size_t kernel_cache_find_sizes(KernelCache *a, VariantClass *class)
{
    size_t n = 0;
    if (class->member.n == 1) /* equal ones are one argument */
        return 0;
    for (size_t i = 0; i < class->member.n; i++) {
        Member *m = &class->member.v[i];
        Kernel mapped;
        pipeline_threads(&mapped, m->kernel, &class->how, NULL, a->watch, true);
        pipeline_arguments(&mapped);
        m->own = (ArgumentSlots){mapped.use.n, mapped.use.v};
        n = m->own.n;
        if (n != class->member.v[0].own.n)
            vwn_bug(a->ctx, "kernels of one text use sizes in two ways");
    }
    uint32_t *slot = NEW_ARRAY(a->arena, uint32_t, n + 1);
    VEC(size_t) first = {0};
    for (size_t use = 0; use < n; use++) {
        size_t i = 0;
        if (class->member.v[0].own.slot[use] == USE_LITERAL)
            continue;
        while (i < first.n && !one_argument(class, use, first.v[i]))
            i++;
        if (i == first.n)
            vec_push(a->arena, &first, use);
        slot[use] = (uint32_t)i + 1;
    }
    class->sizes = (ArgumentSlots){.n = n, .slot = slot};
    return first.n;
}

/* A choice of its own, which others may narrow. */
static KMappingChoice copy_of(Arena *arena, const KMappingChoice *from)
{
    KMappingChoice to = *from;
    uint8_t **of[] = {&to.width, &to.piece, &to.times, &to.share};
    for (size_t i = 0; i < COUNT_OF(of); i++)
        *of[i] = memcpy(NEW_ARRAY(arena, uint8_t, to.n + 1), *of[i], to.n);
    to.shared = NEW_ARRAY(arena, bool, to.n_buffer + 1);
    memcpy(to.shared, from->shared, to.n_buffer * sizeof *to.shared);
    return to;
}

/* The choice of those that move the most bytes, as far as the others allow it. Of a kernel that comes later: what it needs
 * besides is a text of its own. */
size_t kernel_cache_settle(KernelCache *a, VariantClass *class)
{
    size_t most = 0;
    for (size_t i = 1; i < class->mapping.n; i++)
        most = class->mapping.v[i].bytes > class->mapping.v[most].bytes ? i : most;
    if (!class->settled)
        class->how = copy_of(a->arena, &class->mapping.v[most].how);
    for (; class->settled < class->member.n; class->settled++)
        kernel_narrow_mapping(&class->how, class->member.v[class->settled].kernel,
                              class->member.v[class->settled].index);
    return class->member.n;
}

static const Kernel *arranged(KernelCache *a, CacheEntry *k)
{
    if (k->arranged)
        return k->arranged;
    Kernel *to = NEW(a->arena, Kernel);
    pipeline_arrange(to, k->made.low.kernel, a->watch);
    return k->arranged = to;
}

/* Products of a row share as their tiles want it. */
static void join_class(KernelCache *a, CacheEntry *k, const char *about)
{
    const Kernel *kernel = k->made.low.kernel;
    if (kernel->product.n)
        return;
    pipeline_choose(&k->own, arranged(a, k), a->watch);
    void **slot = map_at(&a->class, (uintptr_t)kernel_structure(kernel));
    if (!*slot) {
        *slot = NEW(a->arena, VariantClass);
        *(VariantClass *)*slot = (VariantClass){.about = about};
    }
    k->class = *slot;
    vec_push(a->arena, &k->class->member, ((Member){.kernel = k->arranged, .index = k->own.index}));
    if (k->class->settled) /* in an earlier plan */
        pipeline_class(a, k->class, kernel->target, a->watch);
}

/* ---- the whole ---- */

static CacheEntry *find_entry(const KernelCache *a, const GroupWalk *w, uint64_t hash)
{
    for (size_t i = (size_t)(uintptr_t)map_get(&a->first, (uintptr_t)hash | 1); i; i = a->entry.v[i - 1].next) {
        CacheEntry *k = &a->entry.v[i - 1];
        if (k->hash == hash && k->length == w->text.n && k->n_visited == w->visited.n &&
            memcmp(k->walk, w->text.s, w->text.n) == 0)
            return k;
    }
    return NULL;
}

static CacheEntry *add_entry(KernelCache *a, const GroupWalk *w, uint64_t hash)
{
    void **first = map_at(&a->first, (uintptr_t)hash | 1);
    CacheEntry k = {.hash = hash,
                    .walk = arena_copy(a->arena, w->text.s, w->text.n),
                    .length = w->text.n,
                    .n_visited = w->visited.n,
                    .next = (size_t)(uintptr_t)*first};
    vec_push(a->arena, &a->entry, k);
    *first = (void *)(uintptr_t)a->entry.n;
    return &a->entry.v[a->entry.n - 1];
}

static void lower_entry(KernelCache *a, CacheEntry *k, const GroupWalk *w)
{
    const Fusion *f = w->f;
    ArenaMark mark = arena_mark(a->arena);
    Val *visited = NEW_ARRAY(a->arena, Val, w->visited.n + 1);
    Name *site = NEW_ARRAY(a->arena, Name, w->visited.n + 1);
    for (size_t i = 0; i < w->visited.n; i++) {
        const Node *n = node_at(f->g, w->visited.v[i]);
        visited[i] = w->visited.v[i];
        site[i] = n->op == OP_RAND || n->op == OP_RANDN ? n->a.site : NULL;
    }
    k->visited = visited;
    k->site = site;
    pipeline_lower(&k->made.low, a->arena, f, w->group, w->same, a->watch);
    k->is_long = k->made.low.is_long;
    k->lowered = !k->is_long;
    if (k->is_long)
        arena_reset(a->arena, mark);
}

/* What the groups of this fusion are is asked once for each. */
static GroupEntry *group_entry(KernelCache *a, const Fusion *f, uint32_t group)
{
    if (a->of != f) {
        arena_reset(a->groups, (ArenaMark){0});
        a->group = NEW_ARRAY(a->groups, GroupEntry, f->group.n + 1);
        a->of = f;
    }
    return &a->group[group];
}

static CacheEntry *lookup(KernelCache *a, GroupWalk *w, const Fusion *f, uint32_t group, const Val *same)
{
    GroupEntry *of = group_entry(a, f, group);
    arena_reset(a->tmp, (ArenaMark){0});
    if (of->entry) {
        *w = (GroupWalk){.f = f, .group = group, .same = same, .arena = a->tmp};
        w->visited.v = of->visited;
        w->visited.n = of->n_visited;
        return &a->entry.v[of->entry - 1];
    }
    walk_group(w, a->tmp, f, group, same);
    uint64_t hash = hash_bytes(w->text.s, w->text.n, 3);
    CacheEntry *entry = find_entry(a, w, hash);
    entry = entry ? entry : add_entry(a, w, hash);
    *of = (GroupEntry){(size_t)(entry - a->entry.v) + 1, NEW_ARRAY(a->groups, Val, w->visited.n + 1), w->visited.n};
    memcpy(of->visited, w->visited.v, w->visited.n * sizeof *of->visited);
    return entry;
}

/* fresh: it is of this group; else of an earlier one. */
static CacheEntry *lookup_kernel(KernelCache *a, GroupWalk *w, const Fusion *f, uint32_t group, const Val *same,
                                 bool *fresh)
{
    CacheEntry *k = lookup(a, w, f, group, same);
    *fresh = !k->lowered;
    if (*fresh)
        lower_entry(a, k, w);
    return k;
}

bool kernel_cache_is_long(KernelCache *a, const Fusion *f, uint32_t group, const Val *same, bool counted)
{
    GroupWalk w;
    if (!fuse_may_split(f, group))
        return false;
    if (counted)
        return kernel_cache_count(a, f, group, same).is_long;
    CacheEntry *k = lookup(a, &w, f, group, same);
    if (!k->lowered && !k->is_long)
        lower_entry(a, k, &w);
    return k->is_long;
}

Counted kernel_cache_count(KernelCache *a, const Fusion *f, uint32_t group, const Val *same)
{
    GroupWalk w;
    CacheEntry *k = lookup(a, &w, f, group, same);
    if (!k->counted)
        pipeline_count(&k->count, a->tmp, f, group, same, a->watch);
    k->counted = true;
    return k->count;
}

void kernel_cache_visit(KernelCache *a, const Fusion *f, uint32_t group, const Val *same, About about)
{
    GroupWalk w;
    bool fresh;
    const Group *gr = &f->group.v[group];
    CacheEntry *k = lookup_kernel(a, &w, f, group, same, &fresh);
    if (!k->class && !k->made.printed.name)
        join_class(a, k, about(f, gr, k->made.low.kernel, a->arena));
    if (k->class)
        add_mapping(a, k->class, &k->own, gr->bytes);
}

/* The kernel for threads, as its settled class wants it. */
static const Kernel *mapped_once(KernelCache *a, CacheEntry *k)
{
    if (k->made.mapped)
        return k->made.mapped;
    Kernel *mapped = NEW(a->arena, Kernel);
    const VariantClass *class = k->class;
    pipeline_threads(mapped, arranged(a, k), class ? &class->how : NULL, class && class->sizes.n ? &class->sizes : NULL,
                     a->watch, false);
    return k->made.mapped = mapped;
}

uint64_t kernel_cache_shared(KernelCache *a, const Fusion *f, uint32_t group, const Val *same)
{
    GroupWalk w;
    bool fresh;
    CacheEntry *k = lookup_kernel(a, &w, f, group, same, &fresh);
    return k->made.low.kernel->product.n ? kernel_shared_bytes(mapped_once(a, k)) : 0;
}

static void print(KernelCache *a, CacheEntry *k, const Dialect *d, const char *about)
{
    VariantClass *class = k->class;
    k->made.about = d->threads && class ? class->about : about;
    if (!d->threads) {
        pipeline_print(&k->made.printed, k->made.low.kernel, d, k->made.about, a->watch);
        return;
    }
    if (class && !class->settled)
        pipeline_class(a, class, k->made.low.kernel->target, a->watch);
    pipeline_print(&k->made.printed, mapped_once(a, k), d, k->made.about, a->watch);
}

void kernel_cache_make(KernelCache *a, CachedKernel *out, const Fusion *f, uint32_t group, const Val *same,
                       const Dialect *d, About about)
{
    GroupWalk w;
    bool fresh;
    CacheEntry *k = lookup_kernel(a, &w, f, group, same, &fresh);
    if (!k->made.printed.name)
        print(a, k, d, about(f, &f->group.v[group], k->made.low.kernel, a->arena));
    if (fresh) {
        *out = k->made;
        return;
    }
    Renaming r = {.arena = a->tmp, .g = f->g};
    map_init(&r.to, a->tmp);
    for (size_t i = 0; i < w.visited.n; i++)
        *map_at(&r.to, k->visited[i]) = (void *)(uintptr_t)w.visited.v[i];
    rename_made(&r, k, out);
}
