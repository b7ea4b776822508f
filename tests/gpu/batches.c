/* batches.c - products of a folder for a GPU (compiler/emitted/compute_cuda.c), many at once, against sums in float64.
 *
 * In:  batches of up to 131,075 products: float32, bf16, with one matrix for all, added, with nothing to add.
 * Out: `N passed, N failed`. cuBLAS is the one of tests/gpu/emulated, which refuses more than 65,535 products in a call, as a
 *      GPU's grid does.
 * When: quick, checked.
 */
#include "compiler/emitted/blocks.h"
#include "compiler/emitted/compute.h"
#include "tests/support/half_bits.h"

#include <stdio.h>
#include <stdlib.h>

static const Program no_program = {.name = "none"};
const Model model = {.name = "products", .eval = &no_program};
const Kernel kernel[] = {{.name = NULL}};

/* What the emulated launch of a kernel goes to: there are none here. */
struct EmuLaunch;
const char *emu_run(const struct EmuLaunch *l);
const char *emu_run(const struct EmuLaunch *l)
{
    (void)l;
    return "there is no kernel here";
}

typedef struct Case {
    const char *name;
    Product how;
} Case;

enum { BF16 = 14 }; /* CUDA_R_16BF */
static const Case cases[] = {
    {"as many as one call takes",
     {.m = 2, .n = 1, .k = 3, .batch = 65535, .lda = 3, .ldb = 1, .ldc = 1, .step_a = 6, .step_b = 3, .step_c = 2}},
    {"one more, left transposed",
     {.transpose_a = true,
      .m = 2,
      .n = 2,
      .k = 3,
      .batch = 65536,
      .lda = 2,
      .ldb = 2,
      .ldc = 2,
      .step_a = 6,
      .step_b = 6,
      .step_c = 4}},
    {"two calls and five products, added, bf16, gaps between them",
     {.accumulate = true,
      .bytes = 2,
      .type = BF16,
      .m = 1,
      .n = 2,
      .k = 3,
      .batch = 131075,
      .lda = 3,
      .ldb = 2,
      .ldc = 2,
      .step_a = 4,
      .step_b = 7,
      .step_c = 3}},
    {"70,000, one right matrix for all, rounded to bf16",
     {.bytes = 2,
      .type = BF16,
      .rounded = true,
      .transpose_b = true,
      .m = 1,
      .n = 2,
      .k = 3,
      .batch = 70000,
      .lda = 3,
      .ldb = 3,
      .ldc = 2,
      .step_a = 3,
      .step_c = 2}},
    {"70,000 of nothing", {.m = 1, .n = 2, .k = 0, .batch = 70000, .lda = 1, .ldb = 2, .ldc = 2, .step_c = 2}},
};

/* Numbers of a matrix, on the host and on the device: multiples of 1/8 below 4, which bf16 has exactly. */
typedef struct Matrix {
    double *number;
    char *memory;
    int64_t n, item;
} Matrix;

static Matrix make(Run *run, int64_t n, bool bf16, unsigned *state)
{
    Matrix m = {room((uint64_t)n * 8), NULL, n, bf16 ? 2 : 4};
    char *bytes = room((uint64_t)(n * m.item));
    for (int64_t i = 0; i < n; i++) {
        *state = *state * 1664525 + 1013904223;
        float x = (float)((int)(*state >> 26) - 32) / 8;
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        if (bf16)
            ((uint16_t *)(void *)bytes)[i] = (uint16_t)(bits >> 16);
        else
            ((float *)(void *)bytes)[i] = x;
        m.number[i] = (double)x;
    }
    m.memory = device_room(run, (uint64_t)(n * m.item));
    device_put(run, m.memory, bytes, (uint64_t)(n * m.item));
    free(bytes);
    return m;
}

static int64_t place(bool transposed, int64_t ld, int64_t row, int64_t column)
{
    return transposed ? column * ld + row : row * ld + column;
}

/* The sums that z should have; what lies between matrices stays. */
static void multiply(const Product *p, const double *x, const double *y, double *z)
{
    for (int64_t i = 0; i < p->batch; i++)
        for (int64_t r = 0; r < p->m; r++)
            for (int64_t c = 0; c < p->n; c++) {
                double *to = &z[i * p->step_c + r * p->ldc + c], sum = p->accumulate ? *to : 0;
                for (int64_t k = 0; k < p->k; k++)
                    sum += x[i * p->step_a + place(p->transpose_a, p->lda, r, k)] *
                           y[i * p->step_b + place(p->transpose_b, p->ldb, k, c)];
                *to = sum;
            }
}

static bool passes(Run *run, const Case *c)
{
    const Product *p = &c->how;
    unsigned state = 5;
    const int64_t spare = 64, last = p->batch - 1; /* no matrix is larger */
    Matrix x = make(run, last * p->step_a + spare, p->bytes, &state),
           y = make(run, last * p->step_b + spare, p->bytes, &state),
           z = make(run, last * p->step_c + spare, p->rounded, &state), *all[] = {&x, &y, &z};
    product(run, p, x.memory, y.memory, z.memory);
    multiply(p, x.number, y.number, z.number);
    char *bytes = room((uint64_t)(z.n * z.item));
    double worst = 0;
    device_get(run, bytes, z.memory, (uint64_t)(z.n * z.item));
    for (int64_t i = 0; i < z.n; i++) {
        double got = p->rounded ? of_bf16(((uint16_t *)(void *)bytes)[i]) : (double)((float *)(void *)bytes)[i];
        worst = fmax(worst, fabs(got - z.number[i]));
    }
    free(bytes);
    for (int i = 0; i < 3; i++) {
        device_free(run, all[i]->memory);
        free(all[i]->number);
    }
    bool ok =
        worst <= (p->rounded ? 0.125 : 0); /* sums of eighths are exact; of bf16's up to 48 the last bit is a quarter */
    printf("%s: off by %g%s\n", c->name, worst, ok ? "" : "  FAILED");
    return ok;
}

int main(void)
{
    const int n = (int)(sizeof cases / sizeof *cases);
    int failed = 0;
    Run run = {.step = 0};
    device_open(&run, 0);
    for (int i = 0; i < n; i++)
        failed += !passes(&run, &cases[i]);
    device_close(&run);
    printf("%d passed, %d failed\n", n - failed, failed);
    return failed != 0;
}
