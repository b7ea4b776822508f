/* measure.c - the time of every call of a training step on the GPU, and what the GPU can do at best.
 *
 *     measure [--runs N] [--copy MIB] [--matrix SIZE]
 *
 * In:  an emitted folder whose plan.c calls the functions of measured.h; weights and tokens at random.
 * Out: JSON: the device, bandwidth of a copy (read and written), rates of products of random numbers in
 *      float32, bf16 and fp16 (each the median of ten), the time of a step with nothing between its
 *      calls, and for each call of the programs train and update its median in milliseconds.
 * The one idea: real calls in their order on what those before them wrote, with an event before and
 * behind each.
 */
#include "blocks.h"
#include "measured.h"

#include <cuda_runtime_api.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        stop("%s: %s", what, cudaGetErrorString(error));
}

/* ---- calls with an event before and behind ---- */

typedef struct Call {
    const char *name;
    cudaEvent_t from, to;
    double *ms; /* by run */
} Call;
static Call *call;
static int64_t n_calls, room_calls, at_call; /* of both programs; the one that comes next */
static int64_t runs = 5, at_run;
static bool watched;

static Call *begin(const char *name)
{
    if (!watched)
        return NULL;
    if (at_call == room_calls) {
        Call *more = room((uint64_t)(room_calls * 2 + 256) * sizeof *more);
        if (n_calls)
            memcpy(more, call, (size_t)n_calls * sizeof *more);
        free(call);
        call = more;
        room_calls = room_calls * 2 + 256;
    }
    Call *c = &call[at_call++];
    if (at_call > n_calls) {
        n_calls = at_call;
        c->name = name;
        c->ms = room((uint64_t)runs * sizeof *c->ms);
        must(cudaEventCreate(&c->from), "an event");
        must(cudaEventCreate(&c->to), "an event");
    }
    must(cudaEventRecord(c->from, NULL), "an event");
    return c;
}

static void end(Call *c)
{
    if (c)
        must(cudaEventRecord(c->to, NULL), "an event");
}

void measured_blocks(Run *run, int which, int64_t rows, int64_t number, uint64_t shared,
                     void *const *p, const int64_t *n, const double *s)
{
    if (rows <= 0)
        return;
    Call *c = begin(kernel[which].name);
    blocks(run, which, rows, number, shared, p, n, s);
    end(c);
}

void measured_product(Run *run, const Product *how, const void *a, const void *b, void *c)
{
    Call *k = begin("product");
    product(run, how, a, b, c);
    end(k);
}

void measured_copy_parts(Run *run, int64_t rows, int64_t bytes, int64_t from, int64_t to, const void *x, void *out)
{
    Call *k = begin("parts");
    copy_parts(run, rows, bytes, from, to, x, out);
    end(k);
}

/* ---- what the GPU can do ---- */

static double elapsed(cudaEvent_t from, cudaEvent_t to)
{
    float ms;
    must(cudaDeviceSynchronize(), "waiting for the GPU");
    must(cudaEventElapsedTime(&ms, from, to), "an event");
    return (double)ms;
}

/* ---- what the GPU can do ---- */

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The middle one of repeated measurements, whose first is not counted: it loads code. */
enum { REPEATS = 11 };
static double middle(double ms[REPEATS])
{
    qsort(ms + 1, REPEATS - 1, sizeof *ms, by_size);
    return ms[REPEATS / 2];
}

static uint32_t random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* A number of [-1, 1), a multiple of 1/128, which all three types have. */
static void put_random(char *to, int64_t i, const Product *as, uint64_t *state)
{
    int m = (int)(random_bits(state) % 256) - 128, size = abs(m), e = 0;
    real value = (real)m / 128;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    while (size >> (e + 1))
        e++;
    uint16_t half = (uint16_t)(bits >> 16); /* bf16 has the upper half of a float32 */
    if (as->fp16)
        half = size ? (uint16_t)((m < 0) << 15 | (e + 8) << 10 | ((size << (10 - e)) & 0x3ff)) : 0;
    if (as->bf16 || as->fp16)
        memcpy(to + 2 * i, &half, sizeof half);
    else
        memcpy(to + 4 * i, &value, sizeof value);
}

/* A matrix of random numbers: zeros take less power, so that a GPU multiplies them faster. */
static char *random_matrix(Run *run, int64_t size, const Product *as, uint64_t seed)
{
    uint64_t bytes = (uint64_t)(size * size) * sizeof(real);
    char *host = room(bytes), *to = device_room(run, bytes);
    for (int64_t i = 0; i < size * size; i++)
        put_random(host, i, as, &seed);
    device_put(run, to, host, bytes);
    free(host);
    return to;
}

/* Bytes per second that a copy reads and writes. */
static double measure_copy(Run *run, int64_t mib)
{
    cudaEvent_t from, to;
    uint64_t bytes = (uint64_t)mib << 20;
    double ms[REPEATS];
    char *a = device_room(run, bytes), *b = device_room(run, bytes);
    must(cudaEventCreate(&from), "an event");
    must(cudaEventCreate(&to), "an event");
    for (int i = 0; i < REPEATS; i++) {
        must(cudaEventRecord(from, NULL), "an event");
        must(cudaMemcpy(b, a, (size_t)bytes, cudaMemcpyDeviceToDevice), "a copy");
        must(cudaEventRecord(to, NULL), "an event");
        ms[i] = elapsed(from, to);
    }
    must(cudaEventDestroy(from), "an event");
    must(cudaEventDestroy(to), "an event");
    device_free(run, a);
    device_free(run, b);
    return 2 * (double)bytes / (1e-3 * middle(ms));
}

/* Operations per second of the product of two square matrices, of the type of `as`. */
static double measure_product(Run *run, int64_t size, Product as)
{
    cudaEvent_t from, to;
    const Product how = {.bf16 = as.bf16,
                         .fp16 = as.fp16,
                         .m = size,
                         .n = size,
                         .k = size,
                         .lda = size,
                         .ldb = size,
                         .ldc = size,
                         .batch = 1};
    double ms[REPEATS];
    char *a = random_matrix(run, size, &as, 1), *b = random_matrix(run, size, &as, 2),
         *c = device_room(run, (uint64_t)(size * size) * sizeof(real));
    must(cudaEventCreate(&from), "an event");
    must(cudaEventCreate(&to), "an event");
    for (int i = 0; i < REPEATS; i++) {
        must(cudaEventRecord(from, NULL), "an event");
        product(run, &how, a, b, c);
        must(cudaEventRecord(to, NULL), "an event");
        ms[i] = elapsed(from, to);
    }
    must(cudaEventDestroy(from), "an event");
    must(cudaEventDestroy(to), "an event");
    device_free(run, a);
    device_free(run, b);
    device_free(run, c);
    return 2 * pow((double)size, 3) / (1e-3 * middle(ms));
}

/* ---- a step ---- */

/* Weights as if drawn with a small deviation; vectors, which are mostly gains, around 1. */
static void fill(Run *run)
{
    uint64_t state = 1;
    for (int i = 0; i < model.n_tensors; i++) {
        const Tensor *t = &model.tensor[i];
        if (t->kind == INPUT)
            for (int64_t k = 0; k < t->elements; k++) {
                uint32_t id =
                    random_bits(&state) % (uint32_t)(model.vocab > 0 ? model.vocab : 1);
                ((integer *)(run->inputs + t->offset))[k] =
                    strcmp(t->name, "document") ? id : 0;
            }
        if (t->kind != WEIGHT && t->kind != CONSTANT)
            continue;
        real *w = room((uint64_t)t->elements * sizeof *w);
        for (int64_t k = 0; k < t->elements; k++)
            w[k] = (real)((t->rank == 1) +
                          0.04 * ((double)random_bits(&state) / 2147483648.0 - 0.5));
        device_put(run, run->tensors + t->offset, w, (uint64_t)t->elements * sizeof *w);
        free(w);
    }
    device_put(run, run->tensors, run->inputs, model.input_bytes);
}

static void one_step(Run *run)
{
    at_call = 0;
    model.train->run(run);
    model.update->run(run);
}

static double loss_of(Run *run)
{
    double *out = room((uint64_t)model.train->n_results * sizeof *out), loss = NAN;
    model.train->results(run, out);
    for (int i = 0; i < model.train->n_results; i++)
        if (!strcmp(model.train->result[i], "loss"))
            loss = out[i];
    free(out);
    return loss;
}

static double measure_steps(Run *run)
{
    cudaEvent_t from, to;
    must(cudaEventCreate(&from), "an event");
    must(cudaEventCreate(&to), "an event");
    must(cudaEventRecord(from, NULL), "an event");
    for (int64_t i = 0; i < runs; i++)
        one_step(run);
    must(cudaEventRecord(to, NULL), "an event");
    double ms = elapsed(from, to) / (double)runs;
    must(cudaEventDestroy(from), "an event");
    must(cudaEventDestroy(to), "an event");
    watched = true;
    for (at_run = 0; at_run < runs; at_run++) {
        one_step(run);
        for (int64_t i = 0; i < n_calls; i++)
            call[i].ms[at_run] = elapsed(call[i].from, call[i].to);
    }
    watched = false;
    return ms;
}

static void print_device(void)
{
    struct cudaDeviceProp is;
    int driver, runtime;
    char date[32];
    time_t now = time(NULL);
    must(cudaGetDeviceProperties(&is, 0), "the GPU");
    must(cudaDriverGetVersion(&driver), "the driver");
    must(cudaRuntimeGetVersion(&runtime), "the runtime");
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
    printf("{\"device\":\"%s\",\"capability\":\"%d.%d\",\"driver\":%d,\"runtime\":%d,\"date\":"
           "\"%s\"",
           is.name, is.major, is.minor, driver, runtime, date);
}

static int64_t option(int argc, char **argv, const char *name, int64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i += 2)
        if (!strcmp(argv[i], name))
            return strtoll(argv[i + 1], NULL, 10);
    return otherwise;
}

int main(int argc, char **argv)
{
    Run run = {0};
    runs = option(argc, argv, "--runs", 5);
    int64_t mib = option(argc, argv, "--copy", 1024),
            size = option(argc, argv, "--matrix", 8192);
    if (argc % 2 == 0 || runs < 1 || mib < 1 || size < 1 || !model.train)
        stop("use: measure [--runs N] [--copy MIB] [--matrix SIZE], with a model that trains");
    device_open(&run, 0);
    run.vars[HV_LOSS_SCALE] = 1;
    double copy = measure_copy(&run, mib), f32 = measure_product(&run, size, (Product){0}),
           bf16 = measure_product(&run, size, (Product){.bf16 = true}),
           fp16 = measure_product(&run, size, (Product){.fp16 = true});
    fill(&run);
    one_step(&run); /* code is loaded, libraries choose */
    double loss = loss_of(&run), ms = measure_steps(&run);
    print_device();
    printf(",\"model\":\"%s\",\"copy\":%.4g,\"f32\":%.4g,\"bf16\":%.4g,\"fp16\":%.4g,\"loss\":%.6g,"
           "\"step_ms\":%.4g,"
           "\"calls\":[",
           model.name, copy, f32, bf16, fp16, isfinite(loss) ? loss : -1.0, ms);
    for (int64_t i = 0; i < n_calls; i++) {
        qsort(call[i].ms, (size_t)runs, sizeof *call[i].ms, by_size);
        printf("%s\n{\"name\":\"%s\",\"ms\":%.4g}", i ? "," : "", call[i].name,
               call[i].ms[runs / 2]);
    }
    printf("]}\n");
    device_close(&run);
    return 0;
}
