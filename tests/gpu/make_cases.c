/* make_cases.c - every kernel of the examples, launched by the emulator, as files for run_kernels.c.
 *
 *     make_cases FOLDER [NAME...]
 *
 * In:  sources of tests/support/examples.h, models of tests/support/models.h and wide ones, all or those named; parameters,
 *      gradients and moments at random.
 * Out: FOLDER/NN/cases.bin and FOLDER/NN/kernels.cu for each source that has a kernel which those
 *      before it have not; FOLDER/NN-sm_90a with those that only that architecture takes; a line for each.
 * The one idea: the emulator is a backend; one that stands before it writes down what it is given
 * and what comes of it.
 */
#include "support/examples.h"

#include <sys/stat.h>

#include "cases.h"
#include "compiler/export/export_build.h"
#include "emu/backend_emu.h"
#include "runtime/exec/exec.h"

enum { ROWS_B = 3, ROWS_T = 11, WIDE_T = 150, PLANS = 8, SEEN = 8192 };
enum { SCALE = 256 }; /* gradients of the few positions are numbers of fp16, none near its end */

typedef struct Recorder {
    Backend base;
    Backend *emu;
    Ctx *ctx;
    const char *program, *folder;
    FILE *out;   /* NULL: no case yet */
    uint64_t at; /* bytes written */
    Map blob;    /* hash of bytes -> where they lie */
    struct {
        const Module *module;
        const Plan *plan;
        size_t next; /* the launch that comes next */
    } known[PLANS];
    size_t n_known;
    VEC(const PlanKernel *) kernel; /* of this source */
    const char *prelude;
    size_t prelude_length;
} Recorder;

/* The names of all kernels that have a case. */
static char seen[SEEN][64];
static size_t n_seen;

static Recorder *recorder_of(Backend *b)
{
    return (Recorder *)b;
}

static Status passed_on(Backend *b, Status status)
{
    memcpy(b->why, recorder_of(b)->emu->why, sizeof b->why);
    return status;
}

/* ---- a case ---- */

typedef struct CallRegion {
    uint32_t buffer; /* of the plan */
    const char *at;
    CaseRegion is;
} CallRegion;

static bool is_new(const char *name)
{
    for (size_t i = 0; i < n_seen; i++)
        if (!strcmp(seen[i], name))
            return false;
    return true;
}

static CaseType type_of(const PlanBuffer *x)
{
    if (x->dtype == DT_INT)
        return CASE_INTEGER;
    return x->half == HALF_BF16 ? CASE_BF16 : x->half == HALF_FP16 ? CASE_FP16 : CASE_REAL;
}

/* The region of buffer k of the launch, which begins at `at`. */
static size_t region_of(const Plan *plan, const Launch *l, uint32_t k, const void *at,
                        CallRegion *region, size_t *n)
{
    const PlanBuffer *x = &plan->buffer[l->buffer[k]];
    size_t i = 0;
    while (i < *n && region[i].buffer != l->buffer[k])
        i++;
    if (i == *n)
        region[(*n)++] = (CallRegion){.buffer = l->buffer[k],
                                  .at = (const char *)at - l->shift[k],
                                  .is = {.bytes = x->bytes,
                                         .type = type_of(x)}};
    region[i].is.written |= l->writes[k];
    return i;
}

static void put(Recorder *r, const void *bytes, size_t n)
{
    if (n && fwrite(bytes, 1, n, r->out) != n)
        vwn_bug(r->ctx, "a case could not be written");
    r->at += n;
}

/* Where these bytes lie in the file: once. */
static uint64_t put_bytes(Recorder *r, const char *bytes, uint64_t n)
{
    uint64_t h = 0xcbf29ce484222325u ^ n;
    for (uint64_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    void **slot = map_at(&r->blob, (uintptr_t)h);
    if (*slot)
        return (uint64_t)(uintptr_t)*slot;
    put(r, &(CaseEntry){CASE_BYTES, n}, sizeof(CaseEntry));
    *slot = (void *)(uintptr_t)r->at;
    put(r, bytes, n);
    return (uint64_t)(uintptr_t)*slot;
}

static void open_file(Recorder *r)
{
    const char *path = arena_printf(r->ctx->program, "%s/cases.bin", r->folder);
    mkdir(r->folder, 0777);
    r->out = fopen(path, "wb");
    if (!r->out)
        vwn_bug(r->ctx, "%s could not be written", path);
    map_init(&r->blob, r->ctx->program);
    put(r, CASES_MARK, strlen(CASES_MARK));
}

typedef struct Arguments {
    const int64_t *n;
    const double *s;
    CaseBuffer *buffer;
    CallRegion *region;
    CasePlace *place;
    size_t n_region, n_place;
} Arguments;

static void put_launch(Recorder *r, const Plan *plan, const Launch *l, const Arguments *a)
{
    const int64_t *n = a->n;
    const PlanKernel *k = &plan->kernel[l->kernel];
    CaseMap *map = NEW_ARRAY(r->ctx->program, CaseMap, k->n_map + 1u);
    for (uint32_t i = 0; i < k->n_map; i++) {
        map[i] = (CaseMap){.buffer = l->map[i].buffer, .type = type_of(&plan->buffer[l->buffer[l->map[i].buffer]])};
        memcpy(map[i].extent, l->map[i].extent, sizeof map[i].extent);
        memcpy(map[i].stride, l->map[i].stride, sizeof map[i].stride);
        memcpy(map[i].box, l->map[i].box, sizeof map[i].box);
    }
    CaseHead head = {.rows = l->rows,
                     .blocks = plan_blocks(&k->grid, l->rows),
                     .shared = plan_shared_bytes(&k->grid, n),
                     .n_region = (uint32_t)a->n_region,
                     .n_buffer = l->n_buffer,
                     .n_place = (uint32_t)a->n_place,
                     .n_int = l->n_int,
                     .n_number = l->n_scalar,
                     .n_map = k->n_map};
    CaseEntry entry = {CASE_LAUNCH, sizeof head + a->n_region * sizeof a->region->is + l->n_buffer * sizeof *a->buffer +
                                        a->n_place * sizeof *a->place + l->n_int * sizeof *n +
                                        l->n_scalar * sizeof *a->s + k->n_map * sizeof *map};
    snprintf(head.kernel, sizeof head.kernel, "%s", k->name);
    snprintf(head.where, sizeof head.where, "%s, %s", r->program, l->name ? l->name : "");
    put(r, &entry, sizeof entry);
    put(r, &head, sizeof head);
    for (size_t i = 0; i < a->n_region; i++)
        put(r, &a->region[i].is, sizeof a->region[i].is);
    put(r, a->buffer, l->n_buffer * sizeof *a->buffer);
    put(r, a->place, a->n_place * sizeof *a->place);
    put(r, n, l->n_int * sizeof *n);
    put(r, a->s, l->n_scalar * sizeof *a->s);
    put(r, map, k->n_map * sizeof *map);
}

/* The plan does not outlive its program. */
static void keep_kernel(Recorder *r, const Plan *plan, const PlanKernel *k)
{
    Arena *a = r->ctx->program;
    PlanKernel *mine = NEW(a, PlanKernel);
    *mine = *k;
    mine->text = arena_copy(a, k->text, k->length);
    mine->where = k->where ? arena_copy(a, k->where, strlen(k->where)) : NULL;
    vec_push(a, &r->kernel, mine);
    r->prelude = arena_copy(a, plan->device_prelude, plan->device_prelude_length);
    r->prelude_length = plan->device_prelude_length;
}

/* Addresses in memory: those of the launch's buffers, and, in a list that others read too, of what they touch. */
static void find_places(Recorder *r, const Plan *plan, const Launch *l, Arguments *a)
{
    Arena *arena = r->ctx->program;
    size_t list = 0;
    a->place = NEW_ARRAY(arena, CasePlace, plan->n_number + 1);
    while (list < a->n_region && a->region[list].buffer != plan->numbers)
        list++;
    if (!l->items || list == a->n_region)
        return;
    const uint64_t *address = (const uint64_t *)(const void *)a->region[list].at;
    for (uint32_t k = l->n_buffer; k < l->n_touched; k++)
        for (size_t i = 0; i < plan->n_number; i++) {
            const PlanNumber *x = &plan->number[i];
            if (x->kind == INT_PLACE && x->buffer == l->buffer[k] && x->bits == l->shift[k])
                region_of(plan, l, k, (const void *)(uintptr_t)address[i], a->region, &a->n_region);
        }
    for (size_t i = 0; i < plan->n_number; i++)
        for (size_t k = 0; plan->number[i].kind == INT_PLACE && k < a->n_region; k++)
            if (a->region[k].buffer == plan->number[i].buffer)
                a->place[a->n_place++] = (CasePlace){list, 8 * i, {k, plan->number[i].bits}};
}

static Status record(Backend *b, Module *m, const Plan *plan, const Launch *l, void *const *p,
                     const int64_t *n, const double *s)
{
    Recorder *r = recorder_of(b);
    const PlanKernel *k = &plan->kernel[l->kernel];
    Arguments a = {.n = n, .s = s};
    if (n_seen == SEEN)
        vwn_bug(r->ctx, "more kernels than there is room for");
    if (!r->out)
        open_file(r);
    a.region = NEW_ARRAY(r->ctx->program, CallRegion, l->n_touched + 1);
    a.buffer = NEW_ARRAY(r->ctx->program, CaseBuffer, l->n_buffer + 1);
    for (uint32_t i = 0; i < l->n_buffer; i++)
        a.buffer[i] = (CaseBuffer){region_of(plan, l, i, p[i], a.region, &a.n_region), l->shift[i]};
    find_places(r, plan, l, &a);
    for (size_t i = 0; i < a.n_region; i++)
        a.region[i].is.before = put_bytes(r, a.region[i].at, a.region[i].is.bytes);
    Status status = r->emu->ops->launch(r->emu, m, l->kernel, p, n, s, l->map, l->rows, l->grain);
    for (size_t i = 0; i < a.n_region; i++)
        if (a.region[i].is.written)
            a.region[i].is.after = put_bytes(r, a.region[i].at, a.region[i].is.bytes);
    put_launch(r, plan, l, &a);
    snprintf(seen[n_seen++], sizeof seen[0], "%s", k->name);
    keep_kernel(r, plan, k);
    return status;
}

/* ---- the backend before the emulator ---- */

static Status rec_alloc(Backend *b, uint64_t bytes, void **memory)
{
    return passed_on(b, recorder_of(b)->emu->ops->alloc(recorder_of(b)->emu, bytes, memory));
}

static void rec_free(Backend *b, void *memory, uint64_t bytes)
{
    recorder_of(b)->emu->ops->free(recorder_of(b)->emu, memory, bytes);
}

static Status rec_upload(Backend *b, void *to, const void *from, uint64_t bytes)
{
    return passed_on(b, recorder_of(b)->emu->ops->upload(recorder_of(b)->emu, to, from, bytes));
}

static Status rec_download(Backend *b, void *to, const void *from, uint64_t bytes)
{
    return passed_on(b,
                     recorder_of(b)->emu->ops->download(recorder_of(b)->emu, to, from, bytes));
}

static Status rec_build(Backend *b, const Plan *plan, Module **module, BuildReport *report)
{
    Recorder *r = recorder_of(b);
    Status status = r->emu->ops->build(r->emu, plan, module, report);
    if (r->n_known == PLANS)
        vwn_bug(r->ctx, "more plans than there is room for");
    r->known[r->n_known].module = *module;
    r->known[r->n_known++].plan = plan;
    return passed_on(b, status);
}

static void rec_drop(Backend *b, Module *m)
{
    recorder_of(b)->emu->ops->drop(recorder_of(b)->emu, m);
}

static Status rec_launch(Backend *b, Module *m, uint32_t kernel, void *const *p,
                         const int64_t *n, const double *s, const LaunchMap *map, int64_t rows, int64_t grain)
{
    Recorder *r = recorder_of(b);
    size_t i = 0;
    while (i < r->n_known && r->known[i].module != m)
        i++;
    if (i == r->n_known)
        vwn_bug(r->ctx, "a launch of a plan that was not built");
    const Plan *plan = r->known[i].plan;
    size_t *at = &r->known[i].next;
    while (*at < plan->n_launch &&
           (plan->launch[*at].kind != LAUNCH_KERNEL || plan->launch[*at].rows <= 0))
        ++*at;
    const Launch *l = *at < plan->n_launch ? &plan->launch[(*at)++] : NULL;
    if (!l || l->kernel != kernel || l->rows != rows)
        vwn_bug(r->ctx, "a launch that is not the next of its plan");
    const PlanKernel *k = &plan->kernel[kernel];
    if (k->grid.threads && is_new(k->name))
        return passed_on(b, record(b, m, plan, l, p, n, s));
    return passed_on(b, r->emu->ops->launch(r->emu, m, kernel, p, n, s, map, rows, grain));
}

static Status rec_matmul(Backend *b, const PlanMatmul *how, const void *x, const void *y,
                         void *z)
{
    return passed_on(b, recorder_of(b)->emu->ops->matmul(recorder_of(b)->emu, how, x, y, z));
}

static Status rec_expert(Backend *b, const PlanExpert *how, const void *x, const void *w_or_dy,
                         const int64_t *index, float *out)
{
    return passed_on(
        b, recorder_of(b)->emu->ops->expert(recorder_of(b)->emu, how, x, w_or_dy, index, out));
}

static Status rec_copy(Backend *b, const PlanCopy *how, int64_t rows, const void *x, void *out)
{
    return passed_on(b, recorder_of(b)->emu->ops->copy(recorder_of(b)->emu, how, rows, x, out));
}

static Status rec_sync(Backend *b)
{
    return passed_on(b, recorder_of(b)->emu->ops->sync(recorder_of(b)->emu));
}

static void rec_close(Backend *b)
{
    recorder_of(b)->emu->ops->close(recorder_of(b)->emu);
}

static const BackendOps rec_ops = {.name = "recorder",
                                   .alloc = rec_alloc,
                                   .free = rec_free,
                                   .upload = rec_upload,
                                   .download = rec_download,
                                   .build = rec_build,
                                   .drop = rec_drop,
                                   .launch = rec_launch,
                                   .matmul = rec_matmul,
                                   .expert = rec_expert,
                                   .copy = rec_copy,
                                   .sync = rec_sync,
                                   .close = rec_close};

/* ---- a source ---- */

/* As large as the warpgroups of sm_90a want it. */
static const Source wide[] = {{NULL, {"heads of 64", {"D=128", "model.context=150", NULL}}}};

typedef struct Case {
    const Source *source;
    const char *folder;
    const Target *target;
    int64_t T;
    size_t kernels;
} Case;

static void fill_random(RefBinding *bind, const Graph *g)
{
    uint64_t state = 5;
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; (bind[i].kind == EXT_GRAD || bind[i].kind == EXT_STATE) &&
                            k < bind[i].tensor->size;
             k++) {
            double x = noise(&state); /* moments: some must not be negative */
            if (bind[i].tensor->dtype == DT_REAL)
                bind[i].tensor->real[k] = bind[i].kind == EXT_STATE ? 0.1 + fabs(x) : x;
        }
}

/* Pictures are large: one of them has rows enough. */
static bool reads_pictures(const Graph *g)
{
    for (size_t i = 0; i < g->ext.n; i++)
        if (g->ext.v[i].kind == EXT_INPUT && g->ext.v[i].dtype == DT_REAL)
            return true;
    return false;
}

static void run_program(Recorder *r, const Unit *u, Graph *g, int64_t T, Half half)
{
    Ctx *ctx = r->ctx;
    int64_t B = reads_pictures(g) ? 1 : ROWS_B;
    RefBinding *bind = bind_all(ctx->program, g, u->model, B, T, 0.3);
    double vars[HV_COUNT];
    for (int i = 0; i < HV_COUNT; i++)
        vars[i] = i + 1;
    vars[HV_LOSS_SCALE] = SCALE;
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = r->program, .B = B, .T = T, .half = half};
    Store *s = store_new(ctx, &r->base);
    fill_random(bind, g);
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build: %s", report.why);
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, bind[i].kind, bind[i].name);
        Status st = !e ? ST_BUG
                    : e->dtype == DT_INT
                        ? store_put_i64(s, e, 0, e->elements, bind[i].tensor->integer)
                        : store_put_f64(s, e, 0, e->elements, bind[i].tensor->real);
        if (st != ST_OK)
            vwn_bug(ctx, "store of %s: %s", bind[i].name, store_why(s));
    }
    if (program_run(p, &(RunArgs){.host_vars = vars, .seed = 7, .step = 3}) != ST_OK)
        vwn_bug(ctx, "run: %s", program_why(p));
    program_free(p);
    store_free(s);
}

static void put_kernels(const Recorder *r)
{
    Buf b = buf_new(r->ctx->program);
    ExportKernels k = {r->kernel.v, r->kernel.n};
    FILE *f = fopen(arena_printf(r->ctx->program, "%s/kernels.cu", r->folder), "wb");
    export_cuda_kernels(&b, r->prelude, r->prelude_length, &k);
    if (!f || fwrite(b.s, 1, b.n, f) != b.n || fclose(f) != 0)
        vwn_bug(r->ctx, "%s/kernels.cu could not be written", r->folder);
}

/* The gradient, of a scaled loss where the step computes in fp16. */
static Graph *gradient_in(Ctx *ctx, const Unit *u, Half half)
{
    Train t = *u->train;
    t.compute = half;
    return step_gradient(u->model, &t, true, ctx->program);
}

static void run_source(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Recorder r = {.ctx = ctx, .folder = c->folder};
    Unit *u = load_text(ctx, example_text(ctx, c->source), c->source->v.set);
    char why[512];
    if (backend_emu_open(ctx, &(EmuOptions){.target = c->target}, &r.emu, why) != ST_OK)
        vwn_bug(ctx, "no emulator: %s", why);
    r.base = *r.emu;
    r.base.ops = &rec_ops;
    Graph *train = u->train ? gradient_in(ctx, u, HALF_NONE) : NULL;
    struct {
        const char *name;
        Graph *g;
        Half half;
    } program[] = {
        {"train", train, HALF_NONE},
        {"train in bf16", train, HALF_BF16},
        {"train in fp16", u->train ? gradient_in(ctx, u, HALF_FP16) : NULL, HALF_FP16},
        {"update", u->train ? step_update(u->model, u->train, ctx->program) : NULL, HALF_NONE},
        {"eval", step_evaluate(u->model, ctx->program), HALF_NONE}};
    for (size_t i = 0; i < COUNT_OF(program); i++) {
        r.program = program[i].name;
        if (program[i].g)
            run_program(&r, u, program[i].g, c->T, program[i].half);
    }
    r.base.ops->close(&r.base);
    if (!r.out)
        return;
    if (fclose(r.out) != 0)
        vwn_bug(ctx, "a case could not be written");
    put_kernels(&r);
    c->kernels = r.kernel.n;
}

static bool wanted(const char *name, int n, char **names)
{
    for (int i = 0; i < n; i++)
        if (!strcmp(names[i], name))
            return true;
    return n == 0;
}

/* Source i; with what sm_90a has? */
static bool make(const char *folder, size_t i, const Source *own, int64_t T, bool sm_90a)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%02zu%s", folder, i, sm_90a ? "-sm_90a" : "");
    Case c = {.source = own, .folder = path, .target = sm_90a ? &target_sm_90a : &target_gpu, .T = T};
    Ctx *ctx = ctx_new(NULL);
    bool ok = guarded(ctx, run_source, &c);
    printf("%02zu %-24s %3zu kernels%s%s\n", i, own->v.name, c.kernels, sm_90a ? " of sm_90a" : "", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    const size_t models = COUNT_OF(sources), first_wide = models + MODELS;
    int failed = 0, made = 0;
    char why[512];
    if (argc < 2 || !emu_possible(why)) {
        printf("%s\n", argc < 2 ? "use: make_cases FOLDER [NAME...]" : why);
        return argc < 2 ? 2 : EMU_SKIPPED;
    }
    mkdir(argv[1], 0777);
    for (size_t i = 0; i < first_wide + COUNT_OF(wide); i++) {
        bool is_wide = i >= first_wide;
        Source own = is_wide ? wide[i - first_wide] : i < models ? sources[i] : (Source){NULL, *model_variant(i - models)};
        if (!wanted(own.v.name, argc - 2, argv + 2))
            continue;
        bool ok = make(argv[1], i, &own, is_wide ? WIDE_T : ROWS_T, false) && (!is_wide || make(argv[1], i, &own, WIDE_T, true));
        ok ? made++ : failed++;
    }
    printf("%d made, %d failed, %zu kernels\n", made, failed, n_seen);
    return failed != 0 || made == 0;
}
