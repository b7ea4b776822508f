/* products.c - products of matrices by the fake cuBLASLt: right in every type and layout, refused where they should be.
 *
 * When: quick, checked.
 */
#include "hand.h"

#include "support/half.h"

#include <math.h>

enum { M = 70, N = 9, K = 33, BATCH = 3, MOST = 8 };

typedef struct Form {
    int type, type_out, compute;
    bool transposed_a, transposed_b, row_major;
    int batch;
    float alpha, beta;
} Form;
typedef struct Matrix {
    int64_t rows, columns, ld, stride; /* as it is stored */
    int type;
    bool row_major;
    size_t count;
    double *value; /* [count], in 16 bits what these can hold */
    uint64_t at;
    Handle layout;
} Matrix;

static Handle library, description, preference, stream;
static Matrix a, b, d, wide; /* of a case: wide has the numbers of d in float32 */
static uint64_t workspace;
enum { WORKSPACE = 1 << 20 };

static void start(void)
{
    hand_start();
    GOOD(cu.cublasLtCreate(&library));
    GOOD(cu.cublasLtMatmulPreferenceCreate(&preference));
    uint32_t mask = REDUCE_COMPUTE;
    uint64_t bytes = WORKSPACE;
    GOOD(cu.cublasLtMatmulPreferenceSetAttribute(preference, PREF_REDUCTION, &mask, sizeof mask));
    GOOD(cu.cublasLtMatmulPreferenceSetAttribute(preference, PREF_WORKSPACE, &bytes, sizeof bytes));
    stream = hand_stream();
    workspace = hand_memory(WORKSPACE);
}

static size_t size_of(int type) { return type == R_32F ? 4 : 2; }

static double rounded(double x, int type)
{
    Half half = type == R_16F ? HALF_FP16 : HALF_BF16;
    return type == R_32F ? (double)(float)x : of_half(to_half(x, half), half);
}

static double number(unsigned seed, size_t i)
{
    return (double)((seed * 7919 + (unsigned)i * 104729) % 2003) / 1001 - 1;
}

static void upload(const Matrix *m)
{
    char *bytes = malloc(m->count * 4);
    for (size_t i = 0; i < m->count; i++)
        if (m->type == R_32F)
            ((float *)(void *)bytes)[i] = (float)m->value[i];
        else
            ((uint16_t *)(void *)bytes)[i] = to_half(m->value[i], m->type == R_16F ? HALF_FP16 : HALF_BF16);
    GOOD(cu.cuMemcpyHtoDAsync_v2(m->at, bytes, m->count * size_of(m->type), stream));
    free(bytes);
}

static Matrix matrix(int64_t rows, int64_t columns, int type, bool row_major, int batch, unsigned seed)
{
    int64_t ld = (row_major ? columns : rows) + 3, other = row_major ? rows : columns;
    int32_t order = row_major ? ORDER_ROW : ORDER_COL, many = batch;
    Matrix m = {
        .rows = rows, .columns = columns, .ld = ld, .stride = ld * other + 5, .type = type, .row_major = row_major};
    m.count = (size_t)(m.stride * batch);
    m.value = malloc(m.count * sizeof *m.value);
    for (size_t i = 0; i < m.count; i++)
        m.value[i] = rounded(number(seed, i), type);
    m.at = hand_memory(m.count * size_of(type));
    upload(&m);
    GOOD(cu.cublasLtMatrixLayoutCreate(&m.layout, type, (uint64_t)rows, (uint64_t)columns, ld));
    GOOD(cu.cublasLtMatrixLayoutSetAttribute(m.layout, LAYOUT_ORDER, &order, sizeof order));
    GOOD(cu.cublasLtMatrixLayoutSetAttribute(m.layout, LAYOUT_BATCH, &many, sizeof many));
    GOOD(cu.cublasLtMatrixLayoutSetAttribute(m.layout, LAYOUT_STRIDE, &m.stride, sizeof m.stride));
    return m;
}

static int64_t place(const Matrix *m, int64_t batch, int64_t r, int64_t c)
{
    return batch * m->stride + (m->row_major ? r * m->ld + c : c * m->ld + r);
}

static double element(const Matrix *m, bool transposed, int64_t batch, int64_t r, int64_t c)
{
    return m->value[transposed ? place(m, batch, c, r) : place(m, batch, r, c)];
}

static void *download(const Matrix *m)
{
    void *bytes = malloc(m->count * 4);
    GOOD(cu.cuMemcpyDtoHAsync_v2(bytes, m->at, m->count * size_of(m->type), stream));
    return bytes;
}

static double got(const Matrix *m, const void *bytes, int64_t i)
{
    if (m->type == R_32F)
        return (double)((const float *)bytes)[i];
    return of_half(((const uint16_t *)bytes)[i], m->type == R_16F ? HALF_FP16 : HALF_BF16);
}

/* Every result against float64, with a bound that float32 sums and one rounding keep; gaps between rows stay. */
static void compare(const Form *f)
{
    void *bytes = download(&d);
    double unit = d.type == R_32F ? 0x1p-24 : d.type == R_16F ? 0x1p-11 : 0x1p-8;
    double slack = f->compute == COMPUTE_32F_FAST_TF32 ? 0x1p-10 : 0x1p-24;
    for (int64_t i = 0; i < f->batch; i++)
        for (int64_t r = 0; r < M; r++)
            for (int64_t c = 0; c < N; c++) {
                double sum = 0, size = 0;
                for (int64_t k = 0; k < K; k++) {
                    double x = element(&a, f->transposed_a, i, r, k) * element(&b, f->transposed_b, i, k, c);
                    sum += x;
                    size += fabs(x);
                }
                double before = element(&d, false, i, r, c);
                double z = (double)f->alpha * sum + (double)f->beta * before, y = got(&d, bytes, place(&d, i, r, c));
                EXPECT(fabs(y - z) <= fabs(z) * unit + K * slack * (fabs((double)f->alpha) * size + 2));
            }
    for (int64_t i = 0; i + 1 < f->batch; i++) /* behind the last element of a product */
        EXPECT(got(&d, bytes, (i + 1) * d.stride - 1) == d.value[(i + 1) * d.stride - 1]);
    free(bytes);
}

static void describe(const Form *f)
{
    int32_t t[2] = {f->transposed_a, f->transposed_b};
    GOOD(cu.cublasLtMatmulDescCreate(&description, f->compute, R_32F));
    GOOD(cu.cublasLtMatmulDescSetAttribute(description, DESC_TRANSA, &t[0], sizeof *t));
    GOOD(cu.cublasLtMatmulDescSetAttribute(description, DESC_TRANSB, &t[1], sizeof *t));
}

static int choose(FakeHeuristic found[MOST])
{
    int n = 0;
    GOOD(cu.cublasLtMatmulAlgoGetHeuristic(library, description, a.layout, b.layout, d.layout, d.layout, preference,
                                           MOST, found, &n));
    EXPECT(n == 3);
    return n;
}

static int multiply(const Form *f, const Matrix *x, const Matrix *y, const Matrix *z, const FakeAlgo *algo)
{
    return cu.cublasLtMatmul(library, description, &f->alpha, (void *)(uintptr_t)x->at, x->layout,
                             (void *)(uintptr_t)y->at, y->layout, &f->beta, (void *)(uintptr_t)z->at, z->layout,
                             (void *)(uintptr_t)z->at, z->layout, algo, (void *)(uintptr_t)workspace, WORKSPACE,
                             stream);
}

static void forms_of(const Form *f)
{
    FakeHeuristic found[MOST], again;
    a = matrix(f->transposed_a ? K : M, f->transposed_a ? M : K, f->type, f->row_major, f->batch, 1);
    b = matrix(f->transposed_b ? N : K, f->transposed_b ? K : N, f->type, f->row_major, f->batch, 2);
    d = matrix(M, N, f->type_out, f->row_major, f->batch, 3);
    describe(f);
    int n = choose(found);
    for (int i = 0; i < n; i++) {
        GOOD(cu.cublasLtMatmulAlgoCheck(library, description, a.layout, b.layout, d.layout, d.layout, &found[i].algo,
                                        &again));
        EXPECT(again.workspace == found[i].workspace);
        GOOD(multiply(f, &a, &b, &d, &found[i].algo));
        compare(f);
        upload(&d);
    }
}

static void all_forms(void)
{
    static const int types[][3] = {{R_32F, R_32F, COMPUTE_32F},
                                   {R_16BF, R_16BF, COMPUTE_32F},
                                   {R_16F, R_16F, COMPUTE_32F},
                                   {R_16BF, R_32F, COMPUTE_32F},
                                   {R_32F, R_32F, COMPUTE_32F_FAST_TF32}};
    start();
    for (size_t i = 0; i < COUNT_OF(types) * 8; i++) {
        const int *t = types[i / 8];
        Form f = {.type = t[0],
                  .type_out = t[1],
                  .compute = t[2],
                  .transposed_a = i & 1,
                  .transposed_b = i & 2,
                  .row_major = i & 4,
                  .batch = i & 1 ? BATCH : 1,
                  .alpha = i & 2 ? 1 : 0.5f,
                  .beta = i & 4 ? 1 : 0};
        forms_of(&f);
    }
}

/* ---- which algorithm ---- */

static const Form plain = {.type = R_32F, .type_out = R_32F, .compute = COMPUTE_32F, .batch = 1, .alpha = 1};

static float *result(const FakeAlgo *kept, FakeAlgo *first)
{
    FakeHeuristic found[MOST];
    a = matrix(M, K, R_32F, false, 1, 1);
    b = matrix(K, N, R_32F, false, 1, 2);
    d = matrix(M, N, R_32F, false, 1, 3);
    describe(&plain);
    choose(found);
    *first = found[0].algo;
    GOOD(multiply(&plain, &a, &b, &d, kept ? kept : first));
    float *out = download(&d);
    return out;
}

/* One run writes its algorithm and results; others, offered another first, get the same bits with it alone. */
static void remember(void)
{
    FakeAlgo first;
    start();
    float *out = result(NULL, &first);
    FILE *f = fopen("algorithm", "wb");
    fwrite(&first, sizeof first, 1, f);
    fwrite(out, 4, M * N, f);
    fclose(f);
}

static void repeat(bool kept)
{
    FakeAlgo algo, first;
    float before[M * N];
    start();
    FILE *f = fopen("algorithm", "rb");
    EXPECT(f && fread(&algo, sizeof algo, 1, f) == 1 && fread(before, 4, M * N, f) == M * N);
    fclose(f);
    float *out = result(kept ? &algo : NULL, &first);
    EXPECT(memcmp(&first, &algo, sizeof first) != 0);
    EXPECT((memcmp(before, out, sizeof before) == 0) == kept);
}

static void kept(void) { repeat(true); }
static void chosen_anew(void) { repeat(false); }

/* ---- what is refused ---- */

static int asked(const Matrix *x, const Matrix *y, const Matrix *z)
{
    FakeHeuristic found[MOST];
    int n;
    return cu.cublasLtMatmulAlgoGetHeuristic(library, description, x->layout, y->layout, z->layout, z->layout,
                                             preference, MOST, found, &n);
}

static Form start_refusing(void)
{
    start();
    a = matrix(M, K, R_16BF, false, 1, 1);
    b = matrix(K, N, R_16BF, false, 1, 2);
    d = matrix(M, N, R_16BF, false, 1, 3);
    wide = matrix(M, N, R_32F, false, 1, 3);
    describe(&plain);
    return plain;
}

static void set_wish(int which, const void *value, size_t bytes)
{
    GOOD(cu.cublasLtMatmulPreferenceSetAttribute(preference, which, value, bytes));
}

static int ways(FakeHeuristic found[MOST])
{
    int n;
    GOOD(cu.cublasLtMatmulAlgoGetHeuristic(library, description, a.layout, b.layout, d.layout, d.layout, preference,
                                           MOST, found, &n));
    return n;
}

static void sizes_refused(void)
{
    const int32_t many = 65536, none = 0, one = 1;
    const int64_t narrow = M - 1;
    start_refusing();
    Matrix small = matrix(M, N - 1, R_16BF, false, 1, 3);
    GOOD(asked(&a, &b, &d));
    GOOD(asked(&a, &b, &wide));
    GIVES(B_VALUE, asked(&a, &b, &small));
    GIVES(B_VALUE, asked(&b, &a, &d));
    GIVES(B_NOT_SUPPORTED, asked(&wide, &b, &d));
    GOOD(cu.cublasLtMatrixLayoutSetAttribute(a.layout, LAYOUT_BATCH, &many, sizeof many));
    GIVES(B_NOT_SUPPORTED, asked(&a, &b, &d));
    GOOD(cu.cublasLtMatrixLayoutSetAttribute(a.layout, LAYOUT_BATCH, &none, sizeof none));
    GIVES(B_NOT_SUPPORTED, asked(&a, &b, &d));
    GOOD(cu.cublasLtMatrixLayoutSetAttribute(a.layout, LAYOUT_BATCH, &one, sizeof one));
    GOOD(cu.cublasLtMatrixLayoutSetAttribute(a.layout, LAYOUT_LD, &narrow, sizeof narrow));
    GIVES(B_VALUE, asked(&a, &b, &d));
}

/* Sums in 16 bits. */
static void sums_refused(void)
{
    static const int computes[] = {COMPUTE_16F, COMPUTE_16F_PEDANTIC, COMPUTE_32F_FAST_16F, COMPUTE_32F_FAST_16BF};
    const uint32_t loose = REDUCE_ALL, in_place = REDUCE_INPLACE, strict = REDUCE_NONE;
    FakeHeuristic found[MOST];
    Form f = start_refusing();
    set_wish(PREF_REDUCTION, &loose, sizeof loose);
    GIVES(B_NOT_SUPPORTED, asked(&a, &b, &d));
    GOOD(asked(&a, &b, &wide));
    set_wish(PREF_REDUCTION, &in_place, sizeof in_place);
    GIVES(B_NOT_SUPPORTED, asked(&a, &b, &d));
    set_wish(PREF_REDUCTION, &strict, sizeof strict);
    EXPECT(ways(found) == 2);
    for (size_t i = 0; i < COUNT_OF(computes); i++) {
        f.compute = computes[i];
        describe(&f);
        GIVES(B_NOT_SUPPORTED, asked(&a, &b, &d));
    }
}

static void calls_refused(void)
{
    FakeHeuristic found[MOST];
    Form f = start_refusing();
    EXPECT(ways(found) == 3);
    GOOD(multiply(&f, &a, &b, &d, &found[0].algo));
    GIVES(B_NOT_SUPPORTED, multiply(&f, &a, &b, &d, NULL));
    GIVES(B_VALUE, multiply(&f, &a, &b, &wide, &found[0].algo));
    GIVES(B_VALUE, multiply(&f, &a, &b, &d, &(FakeAlgo){{1, 2, 3}}));
    Matrix odd = a;
    odd.at += 2;
    GIVES(B_NOT_SUPPORTED, multiply(&f, &odd, &b, &d, &found[0].algo));
    odd.at += 1;
    GIVES(B_VALUE, multiply(&f, &odd, &b, &d, &found[0].algo));
    odd.at = a.at + 32; /* it ends behind its allocation */
    GIVES(B_VALUE, multiply(&f, &odd, &b, &d, &found[0].algo));
    GIVES(B_VALUE, cu.cublasLtMatmul(library, description, &f.alpha, (void *)(uintptr_t)a.at, a.layout,
                                     (void *)(uintptr_t)b.at, b.layout, &f.beta, NULL, d.layout,
                                     (void *)(uintptr_t)d.at, d.layout, &found[0].algo, NULL, 0, NULL));
}

static void wishes_refused(void)
{
    const uint32_t strict = REDUCE_NONE, no_power = 12, two = 2;
    const uint64_t no_workspace = 0;
    FakeHeuristic found[MOST];
    Form f = start_refusing();
    GIVES(B_VALUE, cu.cublasLtMatmulPreferenceSetAttribute(preference, PREF_REDUCTION, &strict, 8));
    GIVES(B_VALUE, cu.cublasLtMatmulPreferenceSetAttribute(library, PREF_REDUCTION, &strict, 4));
    set_wish(PREF_WORKSPACE, &no_workspace, sizeof no_workspace);
    EXPECT(ways(found) == 2);
    set_wish(PREF_ALIGN_A, &no_power, sizeof no_power);
    GIVES(B_VALUE, asked(&a, &b, &d));
    set_wish(PREF_ALIGN_A, &two, sizeof two);
    EXPECT(ways(found) == 2);
    Matrix odd = a;
    odd.at += 2;
    GOOD(multiply(&f, &odd, &b, &d, &found[0].algo));
}

/* Workspace that is too small for the algorithm, or nowhere. */
static void small_workspace(void)
{
    start();
    a = matrix(M, K, R_32F, false, 1, 1);
    b = matrix(K, N, R_32F, false, 1, 2);
    d = matrix(M, N, R_32F, false, 1, 3);
    FakeHeuristic found[MOST];
    describe(&plain);
    int n = choose(found), needing = 0;
    for (int i = 0; i < n; i++) {
        if (!found[i].workspace)
            continue;
        needing++;
        GIVES(B_VALUE, cu.cublasLtMatmul(library, description, &plain.alpha, (void *)(uintptr_t)a.at, a.layout,
                                         (void *)(uintptr_t)b.at, b.layout, &plain.beta, NULL, d.layout,
                                         (void *)(uintptr_t)d.at, d.layout, &found[i].algo,
                                         (void *)(uintptr_t)workspace, found[i].workspace - 1, stream));
    }
    EXPECT(needing == 1);
}

/* A product is queued like everything else, and captured. */
static void queued(void)
{
    float before, after;
    Handle graph, exec;
    start();
    a = matrix(M, K, R_32F, false, 1, 1);
    b = matrix(K, N, R_32F, false, 1, 2);
    d = matrix(M, N, R_32F, false, 1, 3);
    FakeHeuristic found[MOST];
    Form f = plain;
    f.beta = 1;
    describe(&f);
    choose(found);
    GOOD(multiply(&f, &a, &b, &d, &found[0].algo)); /* the code comes */
    upload(&d);
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    GOOD(multiply(&f, &a, &b, &d, &found[0].algo));
    f.alpha = 100; /* it was taken at the call */
    GOOD(cu.cuStreamEndCapture(stream, &graph));
    GOOD(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    hand_read(d.at, &before, 1, stream);
    EXPECT(before == (float)d.value[0]);
    GOOD(cu.cuGraphLaunch(exec, stream));
    GOOD(cu.cuGraphLaunch(exec, stream));
    hand_read(d.at, &after, 1, stream);
    double sum = 0;
    for (int64_t k = 0; k < K; k++)
        sum += element(&a, false, 0, 0, k) * element(&b, false, 0, k, 0);
    EXPECT(fabs((double)after - (double)before - 2 * sum) < 1e-5);
}

/* What a library loads or asks when it is used for the first time breaks a capture; another way to multiply is another first time. */
static void first_use(void)
{
    Handle graph;
    FakeHeuristic found[MOST];
    start();
    a = matrix(M, K, R_32F, false, 1, 1);
    b = matrix(K, N, R_32F, false, 1, 2);
    d = matrix(M, N, R_32F, false, 1, 3);
    describe(&plain);
    choose(found);
    for (int i = 0; i < 2; i++) {
        GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
        GIVES(B_EXECUTION, multiply(&plain, &a, &b, &d, &found[i].algo));
        GIVES(E_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
        GOOD(multiply(&plain, &a, &b, &d, &found[i].algo));
        GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
        GOOD(multiply(&plain, &a, &b, &d, &found[i].algo));
        GOOD(cu.cuStreamEndCapture(stream, &graph));
    }
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    GIVES(B_EXECUTION, asked(&a, &b, &d));
    GIVES(E_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    GIVES(B_EXECUTION, cu.cublasLtMatmulAlgoCheck(library, description, a.layout, b.layout, d.layout, d.layout,
                                                  &found[0].algo, found));
    GIVES(E_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
}

static const Case cases[] = {
    {"forms", "A=", all_forms, 0},
    {"remember", "A=", remember, 0},
    {"kept", "FAKE_CUDA_HEURISTIC=1", kept, 0},
    {"chosen_anew", "FAKE_CUDA_HEURISTIC=1", chosen_anew, 0},
    {"sizes_refused", "A=", sizes_refused, 0},
    {"sums_refused", "A=", sums_refused, 0},
    {"calls_refused", "A=", calls_refused, 0},
    {"wishes_refused", "A=", wishes_refused, 0},
    {"small_workspace", "A=", small_workspace, 0},
    {"queued", "A=", queued, 0},
    {"first_use", "A=", first_use, 0},
};

int main(int argc, char **argv) { return hand_run(argc, argv, cases, COUNT_OF(cases)); }
