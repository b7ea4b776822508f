/* products.c - products by cuBLASLt, as the backend asks for them, against sums in float64.
 *
 * In:  products of every way round, with pitches, of many matrices, with nothing to add; calls that are recorded, moved and
 * recorded again.     Out: how many failed. All that is done for
 * a library that has algorithms for matrices by columns, or for none but those by rows; one without any is told.
 * The library is the fake one: it refuses what the real one refuses, and more than 65,535 products at once; while calls are
 * recorded it tells nothing and loads nothing.
 * When: quick, slow. The tests of fake_cuda go the same ways.
 */
#include "runtime/cuda/backend_cuda.h"
#include "support/half.h"
#include "runtime/base/backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Case {
    const char *name;
    PlanMatmul how;
} Case;

static const Case cases[] = {
    {"plain", {.m = 5, .n = 7, .k = 3, .batch = 1, .lda = 3, .ldb = 7, .ldc = 7}},
    {"left transposed", {.transpose_a = true, .m = 5, .n = 7, .k = 3, .batch = 1, .lda = 6, .ldb = 7, .ldc = 9}},
    {"right transposed", {.transpose_b = true, .m = 5, .n = 7, .k = 3, .batch = 1, .lda = 4, .ldb = 5, .ldc = 7}},
    {"both, added",
     {.transpose_a = true,
      .transpose_b = true,
      .accumulate = true,
      .m = 5,
      .n = 7,
      .k = 3,
      .batch = 2,
      .lda = 5,
      .ldb = 3,
      .ldc = 8,
      .step_a = 15,
      .step_b = 21,
      .step_c = 40}},
    {"a row", {.m = 1, .n = 7, .k = 3, .batch = 1, .lda = 1, .ldb = 7, .ldc = 1}},
    {"one matrix for all",
     {.m = 2, .n = 3, .k = 4, .batch = 3, .lda = 4, .ldb = 3, .ldc = 3, .step_a = 8, .step_c = 6}},
    {"one left matrix for all, rounded to bf16",
     {.half = HALF_BF16,
      .rounded = true,
      .m = 4,
      .n = 6,
      .k = 8,
      .batch = 3,
      .lda = 8,
      .ldb = 6,
      .ldc = 6,
      .step_b = 48,
      .step_c = 24}},
    {"70,000 products",
     {.m = 1, .n = 2, .k = 3, .batch = 70000, .lda = 3, .ldb = 2, .ldc = 2, .step_a = 3, .step_b = 6, .step_c = 2}},
    {"70,000 products, added, bf16",
     {.accumulate = true,
      .half = HALF_BF16,
      .m = 1,
      .n = 2,
      .k = 3,
      .batch = 70000,
      .lda = 3,
      .ldb = 2,
      .ldc = 2,
      .step_a = 3,
      .step_b = 6,
      .step_c = 2}},
    {"rounded to bf16",
     {.half = HALF_BF16, .rounded = true, .m = 4, .n = 6, .k = 8, .batch = 1, .lda = 8, .ldb = 6, .ldc = 6}},
    {"rounded to fp16",
     {.half = HALF_FP16, .rounded = true, .m = 4, .n = 6, .k = 8, .batch = 1, .lda = 8, .ldb = 6, .ldc = 6}},
    {"nothing to add", {.m = 4, .n = 6, .k = 0, .batch = 2, .lda = 1, .ldb = 6, .ldc = 7, .step_c = 28}},
};

static int64_t extent(int64_t rows, int64_t columns, int64_t ld, int64_t step, int64_t batch)
{
    return (batch - 1) * step + (rows - 1) * ld + columns;
}

static double next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 40) / (1 << 23) - 1;
}

/* A matrix of the host and of the device, with the same numbers. */
typedef struct Matrix {
    double *number;
    void *memory;
    int64_t n;
    Half half;
} Matrix;

static Matrix make(Backend *b, int64_t n, Half half, uint64_t *state)
{
    Matrix m = {calloc((size_t)n + 1, sizeof(double)), NULL, n, half};
    char *bytes = calloc((size_t)n + 1, 4);
    for (int64_t i = 0; i < n; i++) {
        m.number[i] = half ? of_half(to_half(next(state), half), half) : (double)(float)next(state);
        if (half)
            ((uint16_t *)(void *)bytes)[i] = to_half(m.number[i], half);
        else
            ((float *)(void *)bytes)[i] = (float)m.number[i];
    }
    uint64_t size = (uint64_t)(n + 1) * (half ? 2 : 4);
    if (b->ops->alloc(b, size, &m.memory) != ST_OK || b->ops->upload(b, m.memory, bytes, size) != ST_OK)
        printf("%s\n", b->why);
    free(bytes);
    return m;
}

static double at(const Matrix *m, int64_t from, int64_t ld, bool transposed, int64_t row, int64_t column)
{
    return m->number[from + (transposed ? column * ld + row : row * ld + column)];
}

/* The largest distance of C from its sums; what lies between its rows has stayed. */
static double worst(Backend *b, const PlanMatmul *p, const Matrix *x, const Matrix *y, const Matrix *z)
{
    char *bytes = calloc((size_t)z->n + 1, 4);
    double most = b->ops->download(b, bytes, z->memory, (uint64_t)z->n * (z->half ? 2 : 4)) == ST_OK ? 0 : INFINITY;
    for (int64_t i = 0; i < p->batch; i++)
        for (int64_t r = 0; r < p->m; r++)
            for (int64_t c = 0; c < p->n; c++) {
                double sum = p->accumulate ? z->number[i * p->step_c + r * p->ldc + c] : 0;
                for (int64_t k = 0; k < p->k; k++)
                    sum += at(x, i * p->step_a, p->lda, p->transpose_a, r, k) *
                           at(y, i * p->step_b, p->ldb, p->transpose_b, k, c);
                z->number[i * p->step_c + r * p->ldc + c] = sum;
            }
    for (int64_t i = 0; i < z->n; i++) {
        double got = z->half ? of_half(((uint16_t *)(void *)bytes)[i], z->half) : (double)((float *)(void *)bytes)[i];
        double off = fabs(got - z->number[i]);
        most = off > most || isnan(got) ? (isnan(got) ? INFINITY : off) : most;
    }
    free(bytes);
    return most;
}

static unsigned aligned_to(const void *memory)
{
    const uintptr_t at = (uintptr_t)memory;
    return (unsigned)(at & (~at + 1));
}

/* What was asked for: C = A B, or C += A B, and how the matrices lie. */
static void told(const PlanMatmul *p, double bound, const Matrix *x, const Matrix *y, const Matrix *z)
{
    printf("    %lld of C[%lld, %lld] %s A%s B%s over %lld in %s%s, within %.1e\n    rows of A %lld apart, of B %lld, "
           "of C %lld; matrices %lld, %lld, "
           "%lld; memory of A aligned to %u bytes, of B to %u, of C to %u\n",
           (long long)p->batch, (long long)p->m, (long long)p->n, p->accumulate ? "+=" : "=",
           p->transpose_a ? "^T" : "", p->transpose_b ? "^T" : "", (long long)p->k,
           p->half == HALF_BF16   ? "bf16"
           : p->half == HALF_FP16 ? "fp16"
                                  : "float32",
           p->rounded ? ", rounded" : "", bound, (long long)p->lda, (long long)p->ldb, (long long)p->ldc,
           (long long)p->step_a, (long long)p->step_b, (long long)p->step_c, aligned_to(x->memory),
           aligned_to(y->memory), aligned_to(z->memory));
}

static bool run(Backend *b, const Case *c)
{
    const PlanMatmul *p = &c->how;
    uint64_t state = 3;
    int64_t k = p->k ? p->k : 1, x_rows = p->transpose_a ? k : p->m, y_rows = p->transpose_b ? p->n : k;
    Matrix x = make(b, extent(x_rows, p->transpose_a ? p->m : k, p->lda, p->step_a, p->batch), p->half, &state);
    Matrix y = make(b, extent(y_rows, p->transpose_b ? k : p->n, p->ldb, p->step_b, p->batch), p->half, &state);
    Matrix z = make(b, extent(p->m, p->n, p->ldc, p->step_c, p->batch), p->rounded ? p->half : HALF_NONE, &state);
    Status st = b->ops->matmul(b, p, x.memory, y.memory, z.memory);
    double bound = !p->rounded            ? 2e-6
                   : p->half == HALF_BF16 ? 2e-2
                                          : 3e-3,
           off = st == ST_OK ? worst(b, p, &x, &y, &z) : 1;
    bool ok = st == ST_OK && off < bound && (!p->rounded || off > 1e-5);
    printf("%-30s off by %.1e%s %s\n", c->name, off, ok ? "" : "  FAILED", b->why);
    if (!ok)
        told(p, bound, &x, &y, &z);
    Matrix all[] = {x, y, z};
    for (int i = 0; i < 3; i++) {
        b->ops->free(b, all[i].memory, 0);
        free(all[i].number);
    }
    return ok;
}

/* ---- calls that are recorded ---- */

static const PlanMatmul recorded = {.m = 5, .n = 7, .k = 3, .batch = 1, .lda = 3, .ldb = 7, .ldc = 7};

/* One run of the only call of a program, `by` numbers behind where its matrices begin. False: it failed, or was not `as`. */
static bool run_moved(Backend *b, Module *m, uint64_t generation, bool marked, const Matrix of[3], int64_t by, bool as)
{
    enum { BYTES = sizeof(float) };
    bool replayed = false;
    Status st = b->ops->begin(b, m, generation, marked, &replayed);
    if (st == ST_OK && !replayed) {
        st = marked ? b->ops->mark(b, 0) : ST_OK;
        st = st == ST_OK ? b->ops->matmul(b, &recorded, (char *)of[0].memory + by * BYTES,
                                          (char *)of[1].memory + by * BYTES, (char *)of[2].memory + by * BYTES)
                         : st;
        st = b->ops->end(b, m, st);
    }
    st = st == ST_OK ? b->ops->sync(b) : st;
    if (st == ST_OK && replayed == as)
        return true;
    printf("generation %d, memory %d numbers behind where it was: the calls were %s, and should be %s %s\n",
           (int)generation, (int)by, replayed ? "replayed" : "made again", as ? "replayed" : "made again", b->why);
    return false;
}

/* A program's memory moves, to where addresses are aligned in another way, which asks the library for another algorithm: no
 * run is recorded before one has made the calls there. Moments between them change nothing of that. */
static bool moves(Backend *b)
{
    const struct {
        uint64_t generation;
        int64_t by;
        bool marked, replayed;
    } runs[] = {{1, 0, false, false}, {1, 0, false, false}, {1, 0, false, true}, {2, 1, false, false},
                {2, 1, false, false}, {2, 1, false, true},  {2, 1, true, false}, {2, 1, true, true},
                {3, 2, true, false},  {3, 2, true, false},  {4, 3, true, false}, {5, 4, false, false},
                {5, 4, false, false}, {5, 4, false, true}};
    enum { ROOM = 8 };
    static const Plan none;
    BuildReport report = {0};
    Module *m;
    uint64_t state = 5;
    Matrix of[3] = {make(b, 15 + ROOM, HALF_NONE, &state), make(b, 21 + ROOM, HALF_NONE, &state),
                    make(b, 35 + ROOM, HALF_NONE, &state)};
    bool ok = b->ops->build(b, &none, &m, &report) == ST_OK;
    for (size_t i = 0; i < COUNT_OF(runs) && ok; i++)
        ok = run_moved(b, m, runs[i].generation, runs[i].marked, of, runs[i].by, runs[i].replayed);
    const int64_t by = runs[COUNT_OF(runs) - 1].by;
    float got[35] = {0};
    ok = ok && b->ops->download(b, got, (float *)of[2].memory + by, sizeof got) == ST_OK;
    for (int64_t r = 0; r < 5; r++)
        for (int64_t c = 0; c < 7; c++) {
            double sum = 0;
            for (int64_t k = 0; k < 3; k++)
                sum += at(&of[0], by, 3, false, r, k) * at(&of[1], by, 7, false, k, c);
            if (ok && !(fabs((double)got[r * 7 + c] - sum) < 1e-6)) {
                printf("row %d, column %d of the product is %.9g where its memory moved last, and should be %.9g\n",
                       (int)r, (int)c, (double)got[r * 7 + c], sum);
                ok = false;
            }
        }
    printf("%-30s %s\n", "memory that moves", ok ? "" : "FAILED");
    if (m)
        b->ops->drop(b, m);
    for (int i = 0; i < 3; i++) {
        b->ops->free(b, of[i].memory, 0);
        free(of[i].number);
    }
    return ok;
}

/* There is no algorithm: a sentence says so, and nothing of it is left. */
static bool refuses(Backend *b)
{
    uint64_t state = 5;
    Matrix of[3] = {make(b, 15, HALF_NONE, &state), make(b, 21, HALF_NONE, &state), make(b, 35, HALF_NONE, &state)};
    Status st = b->ops->matmul(b, &recorded, of[0].memory, of[1].memory, of[2].memory);
    bool ok =
        st == ST_ENVIRONMENT &&
        strstr(b->why, "cuBLASLt has no algorithm for 1 products of 5 x 7 x 3, summed in float32: none that it") &&
        strstr(b->why, "`vwn doctor`");
    printf("%-30s %s %s\n", "no algorithm", ok ? "" : "FAILED", b->why);
    for (int i = 0; i < 3; i++) {
        b->ops->free(b, of[i].memory, 0);
        free(of[i].number);
    }
    return ok;
}

/* All of them, on a device whose library has algorithms for matrices told in this way. */
static int run_all(const char *algorithms)
{
    Ctx *ctx = ctx_new(NULL);
    Backend *b;
    char why[512], last_words[512] = "";
    int failed = 0;
    setenv("FAKE_CUDA_ALGORITHMS", algorithms, 1); /* read when the library is opened, in each child once */
    if (backend_cuda_open(ctx, &(BackendOptions){.ordinal = -1, .cache_dir = ""}, &b, why) != ST_OK) {
        printf("no device: %s\n", why);
        return 1;
    }
    bool none = !strcmp(algorithms, "none");
    for (size_t i = 0; i < COUNT_OF(cases) && !none; i++)
        failed += !run(b, &cases[i]);
    failed += none ? !refuses(b) : !moves(b);
    b->last_words = last_words;
    b->ops->close(b);
    failed += last_words[0] != 0;
    ctx_free(ctx);
    printf("%s: %d failed\n", algorithms, failed);
    return failed != 0;
}

/* The library reads what it is asked for when it is opened: each way has a process. */
int main(void)
{
    static const char *const algorithms[] = {"all", "rows", "none"};
    int failed = 0;
    for (size_t i = 0; i < COUNT_OF(algorithms); i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            exit(run_all(algorithms[i]));
        failed += child < 0 || waitpid(child, &status, 0) < 0 || status != 0;
    }
    return failed != 0;
}
