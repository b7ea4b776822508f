/* examples.c - the CUDA kernels of every example, at its own size, as machine code.
 *
 * In:  the examples that hold a model, and connections that examples import them with; an example without
 *      `train` is given one. `all [ARCH...]`: every text, for every architecture or those named.
 * Out: what launches ask for of shared memory, held to what a block can have, and how long texts are; then
 *      (skipped where there is no NVRTC) a line for each kind of kernel with the most that one of them uses, held to
 *      examples.txt; nothing of a row spills. `N passed, N failed`.
 * The one idea: texts depend on structure, so equal ones of all examples are compiled once, and nothing
 * is ever run. Without `all`, which takes long, some stand for the others: the longest of each example, since
 * long ones spill first; and of those that compute the same functions on equally many threads the
 * longest, one of 400 of these. The architectures take turns; the longest of all is compiled for each, and one for the
 * architecture that spills it as it is written.
 * When: first, slow, whole. It compiles for three architectures; nvrtc.budget compiles a part of the same kernels.
 */
#include "compiler/file/check_unit.h"
#include "budget.h"

#include "compiler/plan/plan.h"
#include "compiler/report/report.h"
#include "support/examples.h"

/* Bytes of a text: NVRTC takes half a minute over 600 KB. The longest, 217 KB, is of the evaluation of
 * 29_dit.vwn: 64 terms of two losses have their lines each, and are left out where their example does not count. */
enum { LONGEST = 1, EVERY = 400, LONGEST_OF = 7, AT_ONCE = 16, A100_SHARED = 163 * 1024, TEXT_MAX = 220000 };

static const Source variations[] = {
    {"02_olmo_1b.vwn", {"hyper", {"conn=hyper(n = 4, dynamic = true)", "L=2", NULL}}},
    {"02_olmo_1b.vwn",
     {"frac", {"conn=frac(m = 4, dynamic = true, norm = rms_norm(eps = 1e-6, gain = false))", "L=2", NULL}}},
    {"16_transformer_pp.vwn", {"altup", {"conn=altup(n = 3)", "L=2", NULL}}},
    {"16_transformer_pp.vwn", {"mhc", {"conn=mhc(n = 4)", "L=2", NULL}}},
};

/* The longest kernel of an example that is spilled for an architecture as it is written: always compiled for that. */
static const struct {
    const char *file, *arch;
} spilled[] = {{"35_convert.vwn", "sm_90a"}};

typedef struct Text {
    CudaText code;
    const char *kind; /* as examples.txt calls them */
    const char *file; /* an example that has it */
    uint64_t class;   /* of those that compute the same functions on equally many threads */
    bool chosen;
    const char *arch; /* always for this one, or NULL */
} Text;

/* Every text once. */
typedef struct Texts {
    Ctx *ctx;
    VEC(Text) text;
    Map seen; /* hash of a text -> its place, plus one */
    const char *prelude;
    bool all;
    int examples;       /* whose kernels are in it */
    uint64_t shared[2]; /* bytes that a launch asks for at most: of kernels over rows, of the library's */
} Texts;

typedef struct Example {
    Harness *h;
    Texts *texts;
    const Source *source;
} Example;

/* ---- which kernels there are ---- */

static const char *kind_of(const char *text)
{
    static const char *const kinds[][2] = {{"A thread a row;", "rows.thread"},
                                           {" in a block. */", "rows.warp"},
                                           {" threads a row. */", "rows.block"},
                                           {" threads a partition. */", "rows.partition"},
                                           {"/* attention: ", "library.attention"}};
    const char *head = strstr(text, "KERNEL(");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *found = strstr(text, kinds[i][0]);
        if (found && found < head)
            return kinds[i][1];
    }
    return "library.other";
}

/* What stands above a kernel, but for its numbers. */
static uint64_t class_of(const CudaText *code)
{
    const char *head = strstr(code->text, "KERNEL(");
    uint64_t hash = 1;
    for (const char *p = code->text; p < head; p++)
        if (*p < '0' || *p > '9')
            hash = hash_bytes(p, 1, hash);
    return hash | 1;
}

/* The place of a kernel's text, which is added where it is new. */
static size_t place_of(Texts *t, const PlanKernel *k, const char *file)
{
    Arena *arena = t->ctx->program;
    void **slot = map_at(&t->seen, hash_bytes(k->text, k->length, 0) | 1);
    if (!*slot) {
        Text x = {.code = {.place = "", .length = k->length}};
        x.code.text = arena_copy(arena, k->text, k->length);
        x.code.name = arena_copy(arena, k->name, strlen(k->name));
        x.kind = kind_of(x.code.text);
        x.file = file;
        x.class = class_of(&x.code);
        vec_push(arena, &t->text, x);
        *slot = (void *)(uintptr_t)t->text.n;
    }
    return (size_t)(uintptr_t)*slot - 1;
}

static void add_shared(Texts *t, const Plan *p)
{
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        const PlanKernel *k = l->kind == LAUNCH_KERNEL ? &p->kernel[l->kernel] : NULL;
        if (!k || !k->grid.threads)
            continue;
        int64_t *n = NEW_ARRAY(t->ctx->program, int64_t, l->n_int + 1);
        for (uint32_t j = 0; j < l->n_int; j++)
            n[j] = l->ints[j].value;
        uint64_t bytes = plan_shared_bytes(&k->grid, n), *most = &t->shared[strncmp(kind_of(k->text), "rows.", 5) != 0];
        *most = bytes > *most ? bytes : *most;
    }
}

/* Returns the longest text, of `longest` and the plan's. */
static size_t add_plan(Texts *t, const char *file, const Plan *p, size_t longest)
{
    add_shared(t, p);
    for (size_t i = 0; i < p->n_kernel; i++) {
        if (!p->kernel[i].grid.threads)
            continue;
        size_t at = place_of(t, &p->kernel[i], file);
        if (longest == SIZE_MAX || t->text.v[at].code.length > t->text.v[longest].code.length)
            longest = at;
    }
    if (!t->prelude && p->device_prelude)
        t->prelude = arena_copy(t->ctx->program, p->device_prelude, p->device_prelude_length);
    return longest;
}

static void add_example(Ctx *ctx, void *arg)
{
    static const char *const programs[] = {"train", "accumulate", "update", "eval", "predict"};
    Example *e = arg;
    const char *text = trained_text(ctx, example_path(ctx, e->source->file), false);
    CheckOptions how = {.path = "-", .text = text, .text_length = strlen(text), .set = e->source->v.set};
    while (how.set[how.n_set])
        how.n_set++;
    Unit *u = check_file(ctx, &how);
    if (diag_errors(ctx))
        show_diagnostics(ctx);
    CHECK_CASE(e->h, !diag_errors(ctx) && u->model, e->source->file);
    size_t longest = SIZE_MAX;
    for (size_t i = 0; u->model && i < COUNT_OF(programs); i++)
        longest =
            add_plan(e->texts, e->source->file, report_device_plan(u, programs[i], 0, &target_gpu, NULL), longest);
    if (CHECK_CASE(e->h, longest != SIZE_MAX, e->source->file) && e->texts->examples++ % LONGEST_OF == 0)
        e->texts->text.v[longest].chosen = true;
    for (size_t i = 0; i < COUNT_OF(spilled) && longest != SIZE_MAX; i++)
        if (!strcmp(e->source->file, spilled[i].file))
            e->texts->text.v[longest].arch = spilled[i].arch;
}

static void add_source(Harness *h, Texts *t, const Source *s)
{
    Example e = {h, t, s};
    Ctx *ctx = ctx_new(NULL);
    size_t before = t->text.n;
    CHECK_CASE(h, guarded(ctx, add_example, &e), s->file);
    printf("%-28s %3zu further kernels\n", s->file, t->text.n - before);
    ctx_free(ctx);
}

static void add_all(Harness *h, Texts *t)
{
    ExampleFiles file = example_files(t->ctx, "\nmodel ");
    CHECK(h, file.n > 10);
    for (size_t i = 0; i < file.n; i++)
        add_source(h, t, &(Source){file.v[i], {file.v[i], {NULL}}});
    for (size_t i = 0; i < COUNT_OF(variations); i++)
        add_source(h, t, &variations[i]);
}

/* ---- what they use ---- */

typedef struct Build {
    Harness *h;
    const Nvrtc *n;
    Cache *cache;
    Budget *budget;
} Build;

/* At once, so that it is seen before the rest is compiled. */
static void tell_spills(const Text *x, const CubinKernel *f, const char *arch)
{
    if (f->frame || f->spill_stores || f->spill_loads)
        printf("    %s (%s, %s) has a frame of %lld bytes, %lld spilled\n", x->code.name, x->kind, arch,
               (long long)f->frame, (long long)(f->spill_stores + f->spill_loads));
    fflush(stdout);
}

static void build(const Build *b, const Texts *t, const size_t *which, size_t n, const char *arch)
{
    static const char *const kinds[] = {"rows.thread",    "rows.warp",         "rows.block",
                                        "rows.partition", "library.attention", "library.other"};
    Arena *arena = t->ctx->program;
    CudaText *text = NEW_ARRAY(arena, CudaText, n + 1);
    CudaCode *code = NEW_ARRAY(arena, CudaCode, n + 1);
    size_t compiled = 0;
    double seconds = 0;
    for (size_t i = 0; i < n; i++)
        text[i] = t->text.v[which[i]].code;
    /* A few at a time, so that what is done is kept when the rest is not waited for. */
    for (size_t i = 0; i < n; i += AT_ONCE) {
        CudaBuild how = {.prelude = t->prelude, .cache = b->cache};
        size_t some = n - i < AT_ONCE ? n - i : AT_ONCE;
        if (!CHECK(b->h, build_texts(t->ctx, b->n, &how, arch, text + i, some, code + i) == ST_OK)) {
            fprintf(stderr, "    %s\n", how.why);
            return;
        }
        compiled += how.compiled;
        seconds += how.seconds;
        for (size_t k = i; k < i + some; k++)
            tell_spills(&t->text.v[which[k]], &code[k].facts, arch);
    }
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        Use use = {0};
        for (size_t i = 0; i < n; i++) {
            const CubinKernel *f = &code[i].facts;
            if (strcmp(t->text.v[which[i]].kind, kinds[k]) != 0)
                continue;
            add_use(&use, f);
        }
        if (use.kernels)
            budget_check(b->h, b->budget, kinds[k], arch, &use, 0);
    }
    printf("%s: %zu of %zu kernels, %zu compiled in %.1f s\n", arch, n, t->text.n, compiled, seconds);
}

static const Texts *sorted;
static int longest_first(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    size_t x = sorted->text.v[i].code.length, y = sorted->text.v[j].code.length;
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

/* Which texts are compiled for architecture a, the longest first: some of each kind. Returns how many. */
static size_t choose(Texts *t, int a, size_t *which)
{
    Map seen, kinds;
    size_t n = 0, chosen = 0, classes = 0, n_kinds = 0;
    size_t *order = NEW_ARRAY(t->ctx->program, size_t, t->text.n + 1);
    map_init(&seen, t->ctx->program);
    map_init(&kinds, t->ctx->program);
    for (size_t i = 0; i < t->text.n; i++)
        order[i] = i;
    sorted = t;
    qsort(order, t->text.n, sizeof *order, longest_first);
    for (size_t i = 0; i < t->text.n; i++) {
        Text *x = &t->text.v[order[i]];
        void **slot = map_at(&seen, x->class);
        if (!*slot && classes++ % EVERY == 0)
            x->chosen = true;
        *slot = x;
        void **kind = map_at(&kinds, hash_bytes(x->kind, strlen(x->kind), 0) | 1);
        bool longest = !*kind && (t->all || (int)(n_kinds++ % ARCH_COUNT) == a);
        *kind = x;
        bool turn = x->chosen && (int)(chosen++ % ARCH_COUNT) == a;
        bool always = i < LONGEST || (x->arch && !strcmp(x->arch, ARCHS[a]));
        if (t->all || turn || longest || always)
            which[n++] = order[i];
    }
    return n;
}

static bool wanted(int argc, char **argv, const char *arch)
{
    bool named = argc < 3;
    for (int i = 2; i < argc; i++)
        named = named || !strcmp(argv[i], arch);
    return named;
}

int main(int argc, char **argv)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    Cache cache;
    static Budget budget;
    Texts t = {.ctx = ctx, .all = argc > 1 && !strcmp(argv[1], "all")};
    map_init(&t.seen, ctx->program);
    add_all(&h, &t);
    printf("shared memory at most: %llu bytes over rows, %llu of the library\n", (unsigned long long)t.shared[0],
           (unsigned long long)t.shared[1]);
    for (size_t i = 0; i < t.text.n; i++)
        CHECK_CASE(&h, t.text.v[i].code.length <= TEXT_MAX,
                   arena_printf(ctx->program, "%s of %s has %zu bytes", t.text.v[i].code.name, t.text.v[i].file,
                                t.text.v[i].code.length));
    CHECK(&h, t.shared[0] > 0 && t.shared[0] <= (uint64_t)target_gpu.shared);
    CHECK(&h, t.shared[1] > 0 && t.shared[1] <= A100_SHARED);
    if (!open_or_skip(ctx, &n)) {
        ctx_free(ctx);
        return h.failed ? harness_end(&h) : SKIPPED;
    }
    cache_open(&cache, CACHE_CUBINS, NULL);
    budget_read(&budget, "examples.txt");
    size_t *which = NEW_ARRAY(ctx->program, size_t, t.text.n + 1);
    Build b = {&h, &n, &cache, &budget};
    for (int a = 0; a < ARCH_COUNT; a++)
        if (wanted(argc, argv, ARCHS[a]))
            build(&b, &t, which, choose(&t, a, which), ARCHS[a]);
    budget_end(&h, &budget);
    cache_close(&cache);
    ctx_free(ctx);
    return harness_end(&h);
}
