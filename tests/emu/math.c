/* math.c - functions of the CUDA prelude, emulated, against the C library in double.
 *
 * In:  dense sweeps and special values.   Out: the largest error of each in units in the last place; `N passed, N failed`; 77 without a
 *      C++ compiler.
 * The one idea: 2^x and 1 / x, which a device computes within 2 and 1 units, are exact here, so this is what the formulas lose.
 */
#include "backend_emu.h"

#include "compiler/print/emit.h"
#include "support/harness.h"
#include "support/ulp.h"

#include <stdlib.h>
#include <string.h>

static const struct Function {
    const char *name, *text; /* of x */
    double (*want)(double);
    double lo, hi, ulps;
} functions[] = {
    {"exp", "vwn_exp(x)", exp, -87.3, 88.7, 1.5},
    {"exp, fast", "vwn_exp_fast(x)", exp, -8, 8, 12},
    {"tanh", "vwn_tanh(x)", tanh, -12, 12, 2},
    {"tanh, small", "(vwn_tanh(x))", tanh, -0.01, 0.01, 1},
    {"sigmoid", "vwn_sigmoid(x)", ulp_sigmoid, -80, 80, 3},
    {"silu", "vwn_silu(x)", ulp_silu, -80, 80, 3.5},
    {"erf", "vwn_erf(x)", erf, -5, 5, 3},
    {"gelu", "vwn_gelu(x)", ulp_gelu, -1, 20, 7},
    {"gelu_slope", "vwn_gelu_slope(x)", ulp_gelu_slope, -0.2, 20, 7},
    {"gelu_tanh", "vwn_gelu_tanh(x)", ulp_gelu_tanh, -1, 12, 6},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0], COUNT = 1 << 16 };

/* What must come out of a function at infinity, below it, at 0; and a NaN stays one. */
static const struct {
    const char *text;
    float above, below, zero;
} ends[] = {
    {"vwn_exp(x)", INFINITY, 0, 1},  {"vwn_exp_fast(x)", INFINITY, 0, 1}, {"vwn_tanh(x)", 1, -1, 0},
    {"vwn_sigmoid(x)", 1, 0, 0.5f},  {"vwn_silu(x)", INFINITY, 0, 0},     {"vwn_erf(x)", 1, -1, 0},
    {"vwn_gelu(x)", INFINITY, 0, 0}, {"vwn_gelu_slope(x)", 1, 0, 0.5f},   {"vwn_gelu_tanh(x)", INFINITY, 0, 0},
};
enum { ENDS = sizeof ends / sizeof ends[0] };

static EmuText text_of(Ctx *ctx, const char *function)
{
    EmuText t = {.text = arena_printf(
                     ctx->program,
                     "/* %s */\nKERNEL(128, 1) @NAME@(\n    const real *__restrict__ p0,\n    real *__restrict__ p1,\n"
                     "    int64_t rows)\n{\n    for (int64_t i = blockIdx.x; i < rows; i += gridDim.x)\n"
                     "        for (int64_t k = 128 * i + threadIdx.x; k < 128 * (i + 1); k += 128) {\n"
                     "            const real x = p0[k];\n            p1[k] = %s;\n        }\n}\n",
                     function, function)};
    t.length = strlen(t.text);
    t.name = emit_name(ctx, ctx->program, &t.text, &t.length);
    return t;
}

static void run(const EmuKernel *k, const float *x, float *y, int64_t n)
{
    int64_t rows = n / 128;
    void *arguments[] = {&x, &y, &rows};
    emu_launch(k, arguments, &(EmuOptions){0}, (uint32_t)rows, 128, 0);
}

int main(void)
{
    Harness h = {0};
    char why[512];
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    EmuText text[FUNCTIONS + ENDS];
    EmuKernel kernel[FUNCTIONS + ENDS];
    for (int i = 0; i < FUNCTIONS; i++)
        text[i] = text_of(ctx, functions[i].text);
    for (int i = 0; i < ENDS; i++)
        text[FUNCTIONS + i] = text_of(ctx, arena_printf(ctx->program, "0.0f + %s", ends[i].text));
    static float x[COUNT], y[COUNT];
    if (!CHECK(&h, emu_compile(prelude, length, text, FUNCTIONS + ENDS, kernel, why)))
        fprintf(stderr, "    %s\n", why);
    for (int i = 0; i < FUNCTIONS && !h.failed; i++) {
        const struct Function *f = &functions[i];
        double worst = 0;
        for (int64_t k = 0; k < COUNT; k++)
            x[k] = (float)(f->lo + (f->hi - f->lo) * (double)k / (COUNT - 1));
        run(&kernel[i], x, y, COUNT);
        for (int64_t k = 0; k < COUNT; k++) {
            double e = ulp_between(y[k], f->want((double)x[k]));
            worst = e > worst || isnan(e) ? e : worst;
        }
        printf("%-12s %5.2f ulp of %g\n", f->name, worst, f->ulps);
        CHECK_CASE(&h, worst <= f->ulps, f->name);
    }
    for (int i = 0; i < ENDS && kernel[0].call && !h.failed; i++) {
        const float at[] = {INFINITY, -INFINITY, 0, NAN}, want[] = {ends[i].above, ends[i].below, ends[i].zero};
        memcpy(x, at, sizeof at);
        run(&kernel[FUNCTIONS + i], x, y, 128);
        for (int k = 0; k < 3; k++)
            CHECK_CASE(&h, y[k] == want[k], ends[i].text);
        CHECK_CASE(&h, isnan(y[3]), ends[i].text);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
