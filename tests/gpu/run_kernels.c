/* run_kernels.c - kernels launched again with what they once read, compared with what they once wrote.
 *
 *     run_kernels CASES [--worst SHARE] [--from N]
 *
 * In:  a file of cases.h; linked with the kernels.cu beside it and the calls of emitted folders
 *      (compute_cuda.c), so on a GPU or emulated. --from: without the first N cases.
 * Out: a line of JSON for each case: kernel, where, the largest difference as a share of the largest
 *      number of the region, integers that differ. What is known before the launch is written before
 *      it, so that a launch that ends the program leaves a line without an end. Status 3 when a
 *      difference is beyond what is allowed or an integer differs, 1 when a launch failed.
 *      Allowed are SHARE or 1e-4 of float32; a sum in another order may round the other way, so 2e-2 of
 *      bf16, and 2e-3 of float32 that a kernel with bf16 computes; of fp16 an eighth of both.
 */
#include "blocks.h"
#include "cases.h"
#include "compute.h"
#include "device_call.h"
#include "half_bits.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const Program no_program = {.name = "none"};
const Model model = {.name = "kernels", .eval = &no_program}; /* memory is given by case */

typedef struct Case {
    CaseHead head;
    CaseRegion *region;
    CaseBuffer *buffer;
    CasePlace *place;
    int64_t *n;
    double *s;
    CaseMap *map;
    char **before, **after; /* by region */
} Case;

static void *read_some(FILE *f, uint64_t bytes)
{
    void *p = room(bytes);
    if (bytes && fread(p, 1, (size_t)bytes, f) != bytes)
        stop("the file of cases is cut off");
    return p;
}

static char *read_at(FILE *f, uint64_t place, uint64_t bytes)
{
    if (fseek(f, (long)place, SEEK_SET) != 0)
        stop("the file of cases is cut off");
    return read_some(f, bytes);
}

static bool at_end(FILE *f)
{
    long at = ftell(f);
    bool end = fseek(f, 0, SEEK_END) == 0 && at == ftell(f);
    return fseek(f, at, SEEK_SET) == 0 && end;
}

/* The next launch; false behind the last. */
static bool read_case(FILE *f, Case *c)
{
    CaseEntry entry;
    do {
        if (at_end(f))
            return false;
        if (fread(&entry, sizeof entry, 1, f) != 1)
            stop("the file of cases is cut off");
        if (entry.kind == CASE_BYTES && fseek(f, (long)entry.bytes, SEEK_CUR) != 0)
            stop("the file of cases is cut off");
    } while (entry.kind == CASE_BYTES);
    if (entry.kind != CASE_LAUNCH || fread(&c->head, sizeof c->head, 1, f) != 1)
        stop("the file of cases is cut off");
    const CaseHead *h = &c->head;
    c->region = read_some(f, h->n_region * sizeof *c->region);
    c->buffer = read_some(f, h->n_buffer * sizeof *c->buffer);
    c->place = read_some(f, h->n_place * sizeof *c->place);
    c->n = read_some(f, h->n_int * sizeof *c->n);
    c->s = read_some(f, h->n_number * sizeof *c->s);
    c->map = read_some(f, h->n_map * sizeof *c->map);
    c->before = room(h->n_region * sizeof *c->before);
    c->after = room(h->n_region * sizeof *c->after);
    long next = ftell(f);
    for (uint32_t i = 0; i < h->n_region; i++) {
        const CaseRegion *r = &c->region[i];
        c->before[i] = read_at(f, r->before, r->bytes);
        c->after[i] = r->written ? read_at(f, r->after, r->bytes) : NULL;
    }
    return fseek(f, next, SEEK_SET) == 0;
}

static void forget(Case *c)
{
    for (uint32_t i = 0; i < c->head.n_region; i++) {
        free(c->before[i]);
        free(c->after[i]);
    }
    free(c->region);
    free(c->buffer);
    free(c->place);
    free(c->n);
    free(c->s);
    free(c->map);
    free(c->before);
    free(c->after);
}

/* ---- comparing ---- */

typedef struct Difference {
    double worst;
    int64_t integers, numbers; /* that differ; that were compared */
    bool good;
} Difference;

static uint64_t size_of(uint32_t type)
{
    return type == CASE_INTEGER ? 8 : type == CASE_REAL ? 4 : 2;
}

/* Has the kernel such numbers? */
static bool has(const Case *c, uint32_t type)
{
    for (uint32_t i = 0; i < c->head.n_region; i++)
        if (c->region[i].type == type)
            return true;
    return false;
}

static double allowed(const Case *c, uint32_t type)
{
    if (type == CASE_REAL)
        return has(c, CASE_BF16) ? 2e-3 : has(c, CASE_FP16) ? 2.5e-4 : 1e-4;
    return type == CASE_FP16 ? 2.5e-3 : 2e-2;
}

static double number(const char *p, uint32_t type, uint64_t i)
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

static void compare(Difference *d, const CaseRegion *r, const char *got, const char *want,
                    double most)
{
    double size = 0, worst = 0;
    uint64_t n = r->bytes / size_of(r->type);
    d->numbers += (int64_t)n;
    if (r->type == CASE_INTEGER) {
        for (uint64_t i = 0; i < n; i++)
            d->integers += memcmp(got + 8 * i, want + 8 * i, 8) != 0;
        d->good = d->good && d->integers == 0;
        return;
    }
    for (uint64_t i = 0; i < n; i++) {
        double x = number(got, r->type, i), y = number(want, r->type, i);
        double e = x == y || (isnan(x) && isnan(y)) ? 0 : fabs(x - y);
        size = isfinite(y) ? fmax(size, fabs(y)) : size;
        worst = e >= 0 ? fmax(worst, e) : INFINITY; /* one is a number and the other none */
    }
    if (worst > 0) /* what is below the range of fp16 has a unit, and no share */
        worst /= fmax(size, r->type == CASE_FP16 ? 0x1p-15 : 1e-30);
    d->worst = fmax(d->worst, worst);
    d->good = d->good && worst <= most;
}

/* ---- a launch ---- */

static int kernel_named(const char *name)
{
    for (int i = 0; kernel[i].name; i++)
        if (!strcmp(kernel[i].name, name))
            return i;
    stop("there is no kernel %s", name);
}

/* A launch with tensor maps behind its rows, which folders of `vwn emit cuda` have not. */
static void launch_by_maps(const Case *c, const Kernel *k, void *const *p)
{
    enum { MAPS = 4, RANK = 4 };
    const CaseHead *h = &c->head;
    static CUtensorMap map[MAPS];
    static CallArguments arguments;
    size_t count = call_arguments(&arguments, p, h->n_buffer, c->n, h->n_int, c->s, h->n_number, &h->rows);
    if (h->n_map > MAPS || !count || count + h->n_map > CALL_ARGUMENTS)
        stop("%s: too many arguments", h->kernel);
    for (uint32_t i = 0; i < h->n_map; i++) {
        const CaseMap *m = &c->map[i];
        const cuuint32_t one[RANK] = {1, 1, 1, 1};
        cuuint64_t extent[RANK], stride[RANK];
        for (int d = 0; d < RANK; d++) {
            extent[d] = (cuuint64_t)m->extent[d];
            stride[d] = d < RANK - 1 ? 2 * (cuuint64_t)m->stride[d + 1] : 0;
        }
        CUtensorMapDataType type = m->type == CASE_BF16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
        CUresult error = cuTensorMapEncodeTiled(&map[i], type, RANK, p[m->buffer], extent, stride, m->box, one, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                                CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                                                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
        if (error != CUDA_SUCCESS)
            stop("%s: a tensor map: error %d", h->kernel, (int)error);
        arguments.at[count + i] = &map[i];
    }
    struct dim3 grid = {(unsigned)h->blocks, 1, 1}, block = {k->threads, 1, 1};
    if (cudaFuncSetAttribute(k->code, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)h->shared) != cudaSuccess ||
        cudaLaunchKernel(k->code, grid, block, arguments.at, (size_t)h->shared, NULL) != cudaSuccess)
        stop("%s could not be launched", h->kernel);
}

/* share: 0, or what may differ whatever the type. */
static Difference run_case(Run *run, const Case *c, double share)
{
    const CaseHead *h = &c->head;
    int which = kernel_named(h->kernel);
    const Kernel *k = &kernel[which];
    if (k->buffers != (int)h->n_buffer || k->integers != (int)h->n_int ||
        k->numbers != (int)h->n_number)
        stop("%s has other arguments than the case", h->kernel);
    void **p = room(h->n_buffer * sizeof *p);
    char **memory = room(h->n_region * sizeof *memory);
    for (uint32_t i = 0; i < h->n_region; i++) /* apart, so that a checker sees their bounds */
        memory[i] = device_room(run, c->region[i].bytes);
    for (uint32_t i = 0; i < h->n_place; i++) {
        const CasePlace *x = &c->place[i];
        const uint64_t address = (uint64_t)(uintptr_t)(memory[x->to.region] + x->to.shift);
        memcpy(c->before[x->in] + x->at, &address, sizeof address);
    }
    for (uint32_t i = 0; i < h->n_region; i++)
        device_put(run, memory[i], c->before[i], c->region[i].bytes);
    for (uint32_t i = 0; i < h->n_buffer; i++)
        p[i] = memory[c->buffer[i].region] + c->buffer[i].shift;
    if (h->n_map)
        launch_by_maps(c, k, p);
    else
        blocks(run, which, h->rows, h->blocks, h->shared, p, c->n, c->s);
    Difference d = {.good = true};
    for (uint32_t i = 0; i < h->n_region; i++) {
        double most = share > 0 ? share : allowed(c, c->region[i].type);
        char *got = room(c->region[i].bytes);
        device_get(run, got, memory[i], c->region[i].bytes);
        if (c->region[i].written)
            compare(&d, &c->region[i], got, c->after[i], most);
        else if (memcmp(got, c->before[i], (size_t)c->region[i].bytes) != 0)
            stop("%s wrote what it only reads", h->kernel);
        free(got);
        device_free(run, memory[i]);
    }
    free(memory);
    free(p);
    return d;
}

static FILE *open_cases(const char *path)
{
    char mark[sizeof CASES_MARK] = "";
    FILE *f = fopen(path, "rb");
    if (!f || fread(mark, 1, sizeof mark - 1, f) != sizeof mark - 1 ||
        strcmp(mark, CASES_MARK) != 0)
        stop("%s is no file of cases", path);
    return f;
}

static double option(int argc, char **argv, const char *name)
{
    for (int i = 2; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], name))
            return strtod(argv[i + 1], NULL);
    return 0;
}

int main(int argc, char **argv)
{
    int failed = 0, done = 0;
    Run run = {0};
    Case c;
    if (argc < 2 || argc % 2)
        stop("use: run_kernels CASES [--worst SHARE] [--from N]");
    double share = option(argc, argv, "--worst"), from = option(argc, argv, "--from");
    FILE *f = open_cases(argv[1]);
    device_open(&run, 0);
    for (; read_case(f, &c); forget(&c)) {
        if (done++ < from)
            continue;
        printf("{\"kernel\":\"%s\",\"where\":\"%s\",", c.head.kernel, c.head.where);
        fflush(stdout);
        Difference d = run_case(&run, &c, share);
        printf("\"numbers\":%lld,\"worst\":%.3g,\"integers\":%lld,\"good\":%s}\n",
               (long long)d.numbers, isfinite(d.worst) ? d.worst : 1e30, (long long)d.integers,
               d.good ? "true" : "false");
        failed += !d.good;
    }
    fclose(f);
    device_close(&run);
    if (!done)
        stop("%s has no case", argv[1]);
    return failed ? 3 : 0;
}
