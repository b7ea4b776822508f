/* examples.c - the CUDA kernels of every example, at its own size, as machine code.
 *
 * In:  the examples that hold a model, and connections that examples import them with; an example without
 *      `train` is given one. With an argument, all programs for all architectures (skipped where there
 *      is no NVRTC).
 * Out: a line for each kind of kernel with the most that one of them uses, held to examples.txt; nothing of
 *      a row spills. `N passed, N failed`.
 * The one idea: texts depend on structure, so equal ones of all examples are compiled once, and nothing
 * is ever run. All are compiled for sm_90a; the longest, which spill first, for the others too.
 */
#include "budget.h"

#include "compiler/plan.h"
#include "compiler/report.h"
#include "examples.h"

#include <dirent.h>

enum { LONGEST = 24 };

static const Source variations[] = {
    {"02_olmo_1b.vwn", {"hyper", {"conn=hyper(n = 4, dynamic = true)", "L=2", NULL}}},
    {"02_olmo_1b.vwn", {"frac", {"conn=frac(m = 4, dynamic = true, norm = rms_norm(eps = 1e-6, gain = false))", "L=2", NULL}}},
    {"16_transformer_pp.vwn", {"altup", {"conn=altup(n = 3)", "L=2", NULL}}},
    {"16_transformer_pp.vwn", {"mhc", {"conn=mhc(n = 4)", "L=2", NULL}}},
};

/* Every text once. */
typedef struct Texts {
    Ctx *ctx;
    VEC(CudaText) text;
    VEC(const char *) kind; /* as examples.txt calls them */
    Map seen;
    const char *prelude;
    bool all;
} Texts;

typedef struct Example {
    Harness *h;
    Texts *texts;
    const Source *source;
} Example;

/* ---- files ---- */

/* Does a line of the file begin with this word? */
static bool has_line(Ctx *ctx, const char *file, const char *word, Buf *without_checks)
{
    char line[1024];
    FILE *f = fopen(arena_printf(ctx->program, "%s/examples/%s", VWN_SOURCE_DIR, file), "r");
    bool found = false;
    while (f && fgets(line, sizeof line, f)) {
        found = found || !strncmp(line, word, strlen(word));
        if (without_checks && strncmp(line, "check ", 6) != 0)
            buf_puts(without_checks, line);
    }
    if (f)
        fclose(f);
    return found;
}

/* What a file claims of its own size does not hold of its variations. */
static const char *full_text(Ctx *ctx, const char *file)
{
    Buf text = buf_new(ctx->program);
    if (!has_line(ctx, file, "train {", &text))
        buf_puts(&text, strstr(text.s, "embed patches") || strstr(text.s, "embed noised")
                            ? train_images
                            : train_text);
    return text.s;
}

/* ---- which kernels there are ---- */

static const char *kind_of(const char *text)
{
    static const char *const kinds[][2] = {
        {"A thread a row;", "rows.thread"},     {" in a block. */", "rows.warp"},
        {" threads a row. */", "rows.block"},   {" threads a partition. */", "rows.partition"},
        {"/* attention: ", "library.attention"}};
    const char *head = strstr(text, "KERNEL(");
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *found = strstr(text, kinds[i][0]);
        if (found && found < head)
            return kinds[i][1];
    }
    return "library.other";
}

static void add_plan(Texts *t, const Plan *p)
{
    for (size_t i = 0; i < p->n_kernel; i++) {
        const PlanKernel *k = &p->kernel[i];
        if (!k->grid.threads)
            continue;
        void **slot = map_at(&t->seen, hash_bytes(k->text, k->length, 0) | 1);
        if (*slot)
            continue;
        *slot = t;
        CudaText copy = {.place = "", .length = k->length};
        copy.text = arena_copy(t->ctx->program, k->text, k->length);
        copy.name = arena_copy(t->ctx->program, k->name, strlen(k->name));
        vec_push(t->ctx->program, &t->text, copy);
        vec_push(t->ctx->program, &t->kind, kind_of(copy.text));
    }
    if (!t->prelude && p->device_prelude)
        t->prelude = arena_copy(t->ctx->program, p->device_prelude, p->device_prelude_length);
}

static void add_example(Ctx *ctx, void *arg)
{
    static const char *const programs[] = {"train", "update", "eval", "predict"};
    Example *e = arg;
    const char *text = full_text(ctx, e->source->file);
    CheckOptions how = {.path = "-", .text = text, .text_length = strlen(text),
                        .set = e->source->v.set};
    while (how.set[how.n_set])
        how.n_set++;
    Unit *u = check_file(ctx, &how);
    if (diag_errors(ctx))
        show_diagnostics(ctx);
    CHECK_CASE(e->h, !diag_errors(ctx), e->source->file);
    for (size_t i = 0; u->model && i < (e->texts->all ? COUNT_OF(programs) : 2); i++)
        add_plan(e->texts, report_device_plan(u, programs[i], 0));
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

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void add_all(Harness *h, Texts *t)
{
    DIR *dir = opendir(VWN_SOURCE_DIR "/examples");
    VEC(const char *) file = {0};
    for (struct dirent *d; dir && (d = readdir(dir));) {
        const char *ending = strrchr(d->d_name, '.');
        if (ending && !strcmp(ending, ".vwn") && has_line(t->ctx, d->d_name, "model ", NULL))
            vec_push(t->ctx->program, &file,
                     arena_copy(t->ctx->program, d->d_name, strlen(d->d_name)));
    }
    if (dir)
        closedir(dir);
    CHECK(h, file.n > 10);
    qsort(file.v, file.n, sizeof *file.v, by_name);
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

static void build(const Build *b, const Texts *t, const size_t *which, size_t n, const char *arch)
{
    static const char *const kinds[] = {"rows.thread", "rows.warp", "rows.block", "rows.partition",
                                        "library.attention", "library.other"};
    Arena *arena = t->ctx->program;
    CudaText *text = NEW_ARRAY(arena, CudaText, n + 1);
    CudaCode *code = NEW_ARRAY(arena, CudaCode, n + 1);
    CudaBuild how = {.prelude = t->prelude, .cache = b->cache};
    for (size_t i = 0; i < n; i++)
        text[i] = t->text.v[which[i]];
    if (!CHECK(b->h, build_texts(t->ctx, b->n, &how, arch, text, n, code) == ST_OK)) {
        fprintf(stderr, "    %s\n", how.why);
        return;
    }
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        Use use = {0};
        for (size_t i = 0; i < n; i++)
            if (!strcmp(t->kind.v[which[i]], kinds[k])) {
                add_use(&use, &code[i].facts);
                if (code[i].facts.frame)
                    printf("    %s has a frame of %lld bytes\n", text[i].name,
                           (long long)code[i].facts.frame);
            }
        if (use.kernels)
            budget_check(b->h, b->budget, kinds[k], arch, &use, 0);
    }
    printf("%s: %zu kernels, %zu compiled in %.1f s\n", arch, n, how.compiled, how.seconds);
}

static const Texts *sorted;
static int longest_first(const void *a, const void *b)
{
    size_t i = *(const size_t *)a, j = *(const size_t *)b;
    size_t x = sorted->text.v[i].length, y = sorted->text.v[j].length;
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

int main(int argc, char **argv)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    Cache cache;
    static Budget budget;
    Texts t = {.ctx = ctx, .all = argc > 1 && !strcmp(argv[1], "all")};
    if (!open_or_skip(ctx, &n)) {
        ctx_free(ctx);
        return SKIPPED;
    }
    map_init(&t.seen, ctx->program);
    cache_open(&cache, CACHE_CUBINS, NULL);
    budget_read(&budget, "examples.txt");
    add_all(&h, &t);
    size_t *order = NEW_ARRAY(ctx->program, size_t, t.text.n + 1);
    for (size_t i = 0; i < t.text.n; i++)
        order[i] = i;
    sorted = &t;
    qsort(order, t.text.n, sizeof *order, longest_first);
    Build b = {&h, &n, &cache, &budget};
    for (int a = 0; a < ARCH_COUNT; a++) {
        bool some = a != 1 && !t.all && t.text.n > LONGEST;
        build(&b, &t, order, some ? LONGEST : t.text.n, ARCHS[a]);
    }
    budget_end(&h, &budget);
    cache_close(&cache);
    ctx_free(ctx);
    return harness_end(&h);
}
