/* record.c - see record.h. */
#include "record.h"

#include "compiler/plan/plan.h"
#include "support/half_bits.h"

#include <fenv.h>
#include <math.h>

static Recorder *recorder_of(Backend *b) { return (Recorder *)b; }

static Status passed_on(Backend *b, Status status)
{
    memcpy(b->why, recorder_of(b)->emu->why, sizeof b->why);
    return status;
}

/* ---- a case ---- */

typedef struct CallRegion {
    uint32_t buffer; /* of the plan */
    const char *at;
    char *to; /* the same memory */
    CaseRegion is;
} CallRegion;

static CaseType type_of(const PlanBuffer *x)
{
    if (x->dtype == DT_INT)
        return CASE_INTEGER;
    return x->half == HALF_BF16 ? CASE_BF16 : x->half == HALF_FP16 ? CASE_FP16 : CASE_REAL;
}

/* The region of buffer k of the launch, which begins at `at`. */
static size_t region_of(const Plan *plan, const Launch *l, uint32_t k, const void *at, CallRegion *region, size_t *n)
{
    const PlanBuffer *x = &plan->buffer[l->buffer[k]];
    size_t i = 0;
    while (i < *n && region[i].buffer != l->buffer[k])
        i++;
    if (i == *n)
        region[(*n)++] = (CallRegion){.buffer = l->buffer[k],
                                      .at = (const char *)at - l->shift[k],
                                      .to = (char *)(uintptr_t)at - l->shift[k],
                                      .is = {.bytes = x->bytes, .type = type_of(x)}};
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
                     .threads = k->grid.threads,
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
static const PlanKernel *keep_kernel(Recorder *r, const Plan *plan, const PlanKernel *k)
{
    Arena *a = r->ctx->program;
    PlanKernel *mine = NEW(a, PlanKernel);
    *mine = *k;
    mine->name = name_str(r->ctx, k->name);
    mine->text = arena_copy(a, k->text, k->length);
    mine->where = k->where ? arena_copy(a, k->where, strlen(k->where)) : NULL;
    if (!r->prelude) { /* the same of all plans */
        r->prelude = arena_copy(a, plan->device_prelude, plan->device_prelude_length);
        r->prelude_length = plan->device_prelude_length;
    }
    return mine;
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

/* ---- by how much numbers may differ ---- */

static double number_at(const char *p, uint32_t type, uint64_t i)
{
    float x;
    uint16_t two;
    if (type == CASE_REAL) {
        memcpy(&x, p + 4 * i, sizeof x);
        return (double)x;
    }
    memcpy(&two, p + 2 * i, sizeof two);
    return type == CASE_FP16 ? of_fp16(two) : of_bf16(two);
}

/* The largest distance of finite numbers of y from those of x; with y NULL, of x from zero. */
static double farthest(const CaseRegion *r, const char *x, const char *y)
{
    double most = 0;
    uint64_t n = r->type == CASE_INTEGER ? 0 : r->bytes / (r->type == CASE_REAL ? 4 : 2);
    for (uint64_t i = 0; i < n; i++) {
        double e = fabs(number_at(x, r->type, i) - (y ? number_at(y, r->type, i) : 0));
        most = isfinite(e) && e > most ? e : most;
    }
    return most;
}

/* Of the largest number of a region: one of 16 bits may be the next one or that behind it, since what it is made of may have been;
 * what is computed of such a number inside of a kernel may differ by half of that; of float32 a unit of the 16 digits that are
 * carried. */
static double share_of(const PlanKernel *k, uint32_t type)
{
    bool bf16 = type == CASE_BF16 || (type == CASE_REAL && strstr(k->text, "bf16"));
    bool fp16 = type == CASE_FP16 || (type == CASE_REAL && strstr(k->text, "fp16"));
    double next = bf16 ? 0x1p-7 : fp16 ? 0x1p-10 : 0x1p-16;
    return type == CASE_REAL ? next : 2 * next;
}

enum { NOISES = 8 }; /* of what last bits and roundings were seen to change */

/* True: a thirtieth of the largest number would not be seen, as where a last bit decides which of two rows is chosen. */
static bool bound_numbers(const PlanKernel *k, CallRegion *region, const char *after, double noise)
{
    double size = farthest(&region->is, after, NULL);
    if (region->is.type == CASE_FP16 && size < 0x1p-14) /* below its range it has a unit */
        size = 0x1p-14;
    const double share = share_of(k, region->is.type);
    if (region->is.type != CASE_REAL) /* one that is rounded to the next is no noise */
        noise = fmax(0, noise - share / 2 * size);
    region->is.most = NOISES * noise + share * size;
    return region->is.most > 0x1p-5 * size;
}

static char *copy_of(Arena *arena, const CallRegion *r)
{
    return memcpy(arena_alloc(arena, r->is.bytes + 1), r->at, r->is.bytes);
}

typedef struct Launching {
    Module *module;
    uint32_t kernel;
    void *const *p;
    const LaunchMap *map;
    int64_t grain;
} Launching;

static Status launch_emulated(Recorder *r, const Launching *w, const Launch *l, const Arguments *a)
{
    return r->emu->ops->launch(r->emu, w->module, w->kernel, w->p, a->n, a->s, w->map, l->rows, w->grain);
}

/* Numbers of float32 with 16 digits of their mantissa: what is carried is a quarter less, and a kernel must take any. */
static void make_coarse(const CaseRegion *r, char *bytes)
{
    for (uint64_t i = 0; r->type == CASE_REAL && i < r->bytes / 4; i++) {
        uint32_t bits;
        memcpy(&bits, bytes + 4 * i, sizeof bits);
        if ((bits & 0x7f800000u) < 0x7f000000u)
            bits = (bits + 0x80u) & 0xffffff00u;
        memcpy(bytes + 4 * i, &bits, sizeof bits);
    }
}

/* Numbers of float32 get another last bit or the one before it, by chance. */
static void shake(const CallRegion *r, const char *from, uint64_t *state)
{
    memcpy(r->to, from, r->is.bytes);
    for (uint64_t i = 0; r->is.type == CASE_REAL && i < r->is.bytes / 4; i++) {
        float x = (float)number_at(from, CASE_REAL, i);
        *state = *state * 6364136223846793005u + 1442695040888963407u;
        x *= *state >> 63 ? 1 + 0x1p-23f : 1 - 0x1p-23f;
        if (isfinite(x))
            memcpy(r->to + 4 * i, &x, sizeof x);
    }
}

/* How each further launch is rounded. With what was read as it was, sums that cancel show what roundings inside of the kernel
 * are worth, which a GPU does elsewhere, since it fuses products with sums. */
static const int rounding[] = {FE_TONEAREST, FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};

/* Functions of the prelude that round to a whole number by adding a large one: another rounding gives them another number. */
static bool adds_to_round(const PlanKernel *k)
{
    static const char *const names[] = {"vwn_sin", "vwn_cos", "vwn_nearest(", "vwn_round(", "vwn_pow(", "vwn_normal("};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strstr(k->text, names[i]))
            return true;
    return false;
}

/* Launches, and again otherwise; memory has what the first launch wrote in the end. */
static Status launch_bounded(Recorder *r, const Launching *w, const PlanKernel *k, const Launch *l, const Arguments *a)
{
    Arena *arena = arena_new(r->ctx);
    uint64_t state = 11;
    size_t n = a->n_region;
    char **before = NEW_ARRAY(arena, char *, n + 1), **after = NEW_ARRAY(arena, char *, n + 1);
    double *noise = NEW_ARRAY(arena, double, n + 1);
    for (size_t i = 0; i < n; i++)
        before[i] = copy_of(arena, &a->region[i]);
    Status status = launch_emulated(r, w, l, a);
    for (size_t i = 0; i < n; i++)
        after[i] = copy_of(arena, &a->region[i]);
    for (size_t j = 0; j < COUNT_OF(rounding) && status == ST_OK; j++) {
        const bool shaken = rounding[j] == FE_TONEAREST || adds_to_round(k);
        for (size_t i = 0; i < n; i++)
            if (shaken)
                shake(&a->region[i], before[i], &state);
            else
                memcpy(a->region[i].to, before[i], a->region[i].is.bytes);
        fesetround(shaken ? FE_TONEAREST : rounding[j]);
        status = launch_emulated(r, w, l, a);
        fesetround(FE_TONEAREST);
        for (size_t i = 0; i < n; i++)
            noise[i] = fmax(noise[i], farthest(&a->region[i].is, after[i], a->region[i].at));
    }
    for (size_t i = 0; i < n; i++) {
        memcpy(a->region[i].to, after[i], a->region[i].is.bytes);
        if (a->region[i].is.written)
            r->loose += bound_numbers(k, &a->region[i], after[i], noise[i]);
    }
    arena_free(arena);
    return status;
}

static Status record(Backend *b, const Launching *w, const Plan *plan, const Launch *l, const int64_t *n,
                     const double *s)
{
    Recorder *r = recorder_of(b);
    const PlanKernel *k = &plan->kernel[l->kernel];
    Arguments a = {.n = n, .s = s};
    if (!r->out)
        open_file(r);
    a.region = NEW_ARRAY(r->ctx->program, CallRegion, l->n_touched + 1);
    a.buffer = NEW_ARRAY(r->ctx->program, CaseBuffer, l->n_buffer + 1);
    for (uint32_t i = 0; i < l->n_buffer; i++)
        a.buffer[i] = (CaseBuffer){region_of(plan, l, i, w->p[i], a.region, &a.n_region), l->shift[i]};
    find_places(r, plan, l, &a);
    for (size_t i = 0; i < a.n_region; i++) {
        make_coarse(&a.region[i].is, a.region[i].to);
        a.region[i].is.before = put_bytes(r, a.region[i].at, a.region[i].is.bytes);
    }
    Status status = launch_bounded(r, w, k, l, &a);
    for (size_t i = 0; i < a.n_region; i++)
        if (a.region[i].is.written) {
            char *after = copy_of(r->ctx->program, &a.region[i]);
            make_coarse(&a.region[i].is, after);
            a.region[i].is.after = put_bytes(r, after, a.region[i].is.bytes);
        }
    put_launch(r, plan, l, &a);
    *map_at(&r->wanted, (uintptr_t)name_str(r->ctx, k->name)) = NULL;
    vec_push(r->ctx->program, &r->kernel, keep_kernel(r, plan, k));
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
    return passed_on(b, recorder_of(b)->emu->ops->download(recorder_of(b)->emu, to, from, bytes));
}

/* What a plan is: its launches and the texts of its kernels. */
static void look_at(Recorder *r, const Plan *plan)
{
    Buf b = buf_new(r->ctx->program);
    plan_dump(&b, plan);
    plan_dump_device(&b, plan);
    sha256_add_string(&r->hash, b.s, b.n);
    for (size_t i = 0; i < plan->n_launch; i++)
        if (plan->launch[i].kind == LAUNCH_KERNEL && plan->launch[i].rows > 0 &&
            plan->kernel[plan->launch[i].kernel].grid.threads)
            vec_push(r->ctx->program, &r->met, keep_kernel(r, plan, &plan->kernel[plan->launch[i].kernel]));
}

static Status rec_build(Backend *b, const Plan *plan, Module **module, BuildReport *report)
{
    Recorder *r = recorder_of(b);
    if (!r->emu) {
        *module = NULL;
        look_at(r, plan);
        return ST_OK;
    }
    Status status = r->emu->ops->build(r->emu, plan, module, report);
    if (r->n_known == RECORD_PLANS)
        vwn_bug(r->ctx, "more plans than there is room for");
    r->known[r->n_known].module = *module;
    r->known[r->n_known++].plan = plan;
    return passed_on(b, status);
}

static void rec_drop(Backend *b, Module *m)
{
    if (m)
        recorder_of(b)->emu->ops->drop(recorder_of(b)->emu, m);
}

static Status rec_launch(Backend *b, Module *m, uint32_t kernel, void *const *p, const int64_t *n, const double *s,
                         const LaunchMap *map, int64_t rows, int64_t grain)
{
    Recorder *r = recorder_of(b);
    size_t i = 0;
    while (i < r->n_known && r->known[i].module != m)
        i++;
    if (i == r->n_known)
        vwn_bug(r->ctx, "a launch of a plan that was not built");
    const Plan *plan = r->known[i].plan;
    size_t *at = &r->known[i].next;
    while (*at < plan->n_launch && (plan->launch[*at].kind != LAUNCH_KERNEL || plan->launch[*at].rows <= 0))
        ++*at;
    const Launch *l = *at < plan->n_launch ? &plan->launch[(*at)++] : NULL;
    if (!l || l->kernel != kernel || l->rows != rows)
        vwn_bug(r->ctx, "a launch that is not the next of its plan");
    const PlanKernel *k = &plan->kernel[kernel];
    const Launching w = {m, kernel, p, map, grain};
    if (k->grid.threads && map_get(&r->wanted, (uintptr_t)name_str(r->ctx, k->name)))
        return passed_on(b, record(b, &w, plan, l, n, s));
    return passed_on(b, r->emu->ops->launch(r->emu, m, kernel, p, n, s, map, rows, grain));
}

static Status rec_matmul(Backend *b, const PlanMatmul *how, const void *x, const void *y, void *z)
{
    return passed_on(b, recorder_of(b)->emu->ops->matmul(recorder_of(b)->emu, how, x, y, z));
}

static Status rec_expert(Backend *b, const PlanExpert *how, const void *x, const void *w_or_dy, const int64_t *index,
                         float *out)
{
    return passed_on(b, recorder_of(b)->emu->ops->expert(recorder_of(b)->emu, how, x, w_or_dy, index, out));
}

static Status rec_copy(Backend *b, const PlanCopy *how, int64_t rows, const void *x, void *out)
{
    return passed_on(b, recorder_of(b)->emu->ops->copy(recorder_of(b)->emu, how, rows, x, out));
}

static Status rec_sync(Backend *b) { return passed_on(b, recorder_of(b)->emu->ops->sync(recorder_of(b)->emu)); }

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
                                   .sync = rec_sync};

void record_start(Recorder *r, Ctx *ctx, Backend *emu, const char *folder)
{
    *r = (Recorder){.emu = emu, .ctx = ctx, .folder = folder};
    r->base = emu ? *emu : (Backend){.kind = &backend_kinds[BACKEND_cuda], .ctx = ctx, .threads = 1, .bf16 = true};
    r->base.ops = &rec_ops;
    map_init(&r->wanted, ctx->program);
    sha256_start(&r->hash);
}

void record_end(Recorder *r)
{
    if (r->out && fclose(r->out) != 0)
        vwn_bug(r->ctx, "a case could not be written");
    if (r->emu)
        r->emu->ops->close(r->emu);
}
