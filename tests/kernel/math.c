/* math.c - the functions of the C prelude against the C library in double.
 *
 * In:  dense sweeps and special values.   Out: the largest error of each in units in the last place,
 * compared with the bound that the prelude states.
 * When: quick, optimised.
 */
#include "compiler/graph/op.h"
#include "compiler/print/emit.h"
#include "support/f8.h"
#include "support/ulp.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef void Sweep(const float *x, float *y, long n);

typedef struct Function {
    const char *name, *text; /* text: of one float x */
    double (*want)(double);
    double lo, hi, ulps;
} Function;

static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }
static double power(double x) { return pow(x, (double)0.7f); }
static double inverse_cube(double x) { return pow(x, -3); }
static double three_to(double x) { return pow(3, x); }

static const Function functions[] = {
    {"exp", "vwn_exp(x)", exp, -87.3, 88.7, 1.5},
    {"exp, small results", "vwn_exp(x)", exp, -103.9, -87.3, 1.5},
    {"exp of vectors", "vwn_exp_v(vwn_all(x))[0]", exp, -87, 88, 1.5},
    {"log", "vwn_log(x)", log, 1e-37, 10, 1},
    {"log, near 1", "vwn_log(x)", log, 0.5, 2, 1},
    {"log, large", "vwn_log(x)", log, 1, 3e38, 1},
    {"log, subnormal", "vwn_log(x)", log, 1e-44, 1e-38, 1},
    {"sqrt", "vwn_sqrt(x)", sqrt, 0, 1e6, 0.51},
    {"tanh", "vwn_tanh(x)", tanh, -12, 12, 2},
    {"tanh, small", "vwn_tanh(x)", tanh, -0.01, 0.01, 1},
    {"sigmoid", "vwn_sigmoid(x)", ulp_sigmoid, -80, 80, 3},
    {"silu", "vwn_silu(x)", ulp_silu, -80, 80, 3.5},
    {"softplus", "vwn_softplus(x)", softplus, -80, 80, 3.5},
    {"erf", "vwn_erf(x)", erf, -5, 5, 3},
    {"gelu", "vwn_gelu(x)", ulp_gelu, -1, 20, 7},
    {"gelu_slope", "vwn_gelu_slope(x)", ulp_gelu_slope, -0.2, 20, 7},
    {"gelu_tanh", "vwn_gelu_tanh(x)", ulp_gelu_tanh, -1, 12, 6},
    {"sin", "vwn_sin(x)", sin, -3, 3, 2},
    {"sin, far", "vwn_sin(x)", sin, 1000, 1100, 2},
    {"cos", "vwn_cos(x)", cos, -40, 40, 2},
    {"pow", "vwn_pow(x, 0.7f)", power, 1e-30, 1e3, 2},
    {"pow, negative base", "vwn_pow(x, -3.0f)", inverse_cube, -10, 10, 2},
    {"pow, exponent", "vwn_pow(3.0f, x)", three_to, -79, 79, 2},
    {"floor", "vwn_floor(x)", floor, -100, 100, 0},
    {"floor, large", "vwn_floor(x)", floor, -1e9, 1e9, 0},
    {"ceil", "vwn_ceil(x)", ceil, -100, 100, 0},
    {"ceil, large", "vwn_ceil(x)", ceil, -1e9, 1e9, 0},
    {"round", "vwn_round(x)", rint, -100, 100, 0},
    {"round, between 2^22 and 2^24", "vwn_round(x)", rint, 4e6, 2e7, 0},
    {"round, large", "vwn_round(x)", rint, -1e9, 1e9, 0},
};

/* What must come out exactly, as text on both sides. */
static const char *const exact[][2] = {
    {"vwn_exp(0.0f)", "1.0f"},
    {"vwn_exp(-INFINITE)", "0.0f"},
    {"vwn_exp(INFINITE)", "INFINITE"},
    {"vwn_exp_v(vwn_all(0))[1]", "1.0f"},
    {"vwn_exp_v(vwn_all(-INFINITE))[2]", "0.0f"},
    {"vwn_exp_v(vwn_all(-1e30f))[3]", "0.0f"},
    {"vwn_exp_v(vwn_all(-87.1f))[4]", "0.0f"},
    {"vwn_exp_v(vwn_all(NOT_A_NUMBER))[5]", "NOT_A_NUMBER"},
    {"vwn_larger(vwn_all(1), vwn_all(2))[0]", "2.0f"},
    {"vwn_larger(vwn_all(2), vwn_all(1))[7]", "2.0f"},
    {"vwn_exp(1e30f)", "INFINITE"},
    {"vwn_exp(-1e30f)", "0.0f"},
    {"vwn_exp(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_log(1.0f)", "0.0f"},
    {"vwn_log(0.0f)", "-INFINITE"},
    {"vwn_log(-1.0f)", "NOT_A_NUMBER"},
    {"vwn_log(INFINITE)", "INFINITE"},
    {"vwn_log(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_tanh(0.0f)", "0.0f"},
    {"vwn_tanh(INFINITE)", "1.0f"},
    {"vwn_tanh(-INFINITE)", "-1.0f"},
    {"vwn_tanh(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_sigmoid(0.0f)", "0.5f"},
    {"vwn_sigmoid(INFINITE)", "1.0f"},
    {"vwn_sigmoid(-INFINITE)", "0.0f"},
    {"vwn_erf(0.0f)", "0.0f"},
    {"vwn_erf(INFINITE)", "1.0f"},
    {"vwn_erf(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_gelu(0.0f)", "0.0f"},
    {"vwn_gelu(INFINITE)", "INFINITE"},
    {"vwn_gelu(-INFINITE)", "0.0f"},
    {"vwn_gelu(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_gelu_slope(0.0f)", "0.5f"},
    {"vwn_gelu_slope(INFINITE)", "1.0f"},
    {"vwn_gelu_slope(-INFINITE)", "0.0f"},
    {"vwn_gelu_slope(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_gelu_tanh(0.0f)", "0.0f"},
    {"vwn_gelu_tanh(INFINITE)", "INFINITE"},
    {"vwn_silu(0.0f)", "0.0f"},
    {"vwn_silu(INFINITE)", "INFINITE"},
    {"vwn_silu(-INFINITE)", "0.0f"},
    {"vwn_silu(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_relu(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_softplus(INFINITE)", "INFINITE"},
    {"vwn_softplus(-INFINITE)", "0.0f"},
    {"vwn_sin(0.0f)", "0.0f"},
    {"vwn_cos(0.0f)", "1.0f"},
    {"vwn_sin(INFINITE)", "NOT_A_NUMBER"},
    {"vwn_cos(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_pow(0.0f, 0.0f)", "1.0f"},
    {"vwn_pow(1e30f, 30.0f)", "INFINITE"},
    {"vwn_pow(1e-30f, 30.0f)", "0.0f"},
    {"vwn_pow(1e30f, -30.0f)", "0.0f"},
    {"vwn_pow(1e-30f, -30.0f)", "INFINITE"},
    {"vwn_pow(2.0f, 10.0f)", "1024.0f"},
    {"vwn_pow(-2.0f, 3.0f)", "-8.0f"},
    {"vwn_pow(-2.0f, 0.5f)", "NOT_A_NUMBER"},
    {"vwn_pow(0.0f, -1.0f)", "INFINITE"},
    {"vwn_pow(0.0f, 2.0f)", "0.0f"},
    {"vwn_pow(INFINITE, -1.0f)", "0.0f"},
    {"vwn_pow(0.5f, INFINITE)", "0.0f"},
    {"vwn_pow(NOT_A_NUMBER, 0.0f)", "1.0f"},
    {"vwn_floor(-0.5f)", "-1.0f"},
    {"vwn_floor(INFINITE)", "INFINITE"},
    {"vwn_ceil(-0.5f)", "-0.0f"},
    {"vwn_round(2.5f)", "2.0f"},
    {"vwn_round(3.5f)", "4.0f"},
    {"vwn_round(-0.5f)", "-0.0f"},
    {"vwn_round(-2.6f)", "-3.0f"},
    {"vwn_round(-INFINITE)", "-INFINITE"},
    {"vwn_round(NOT_A_NUMBER)", "NOT_A_NUMBER"},
    {"vwn_sign(-3.0f)", "-1.0f"},
    {"vwn_mod(-1.0f, 3.0f)", "2.0f"},
    {"(real)vwn_imod(-1, 3)", "2.0f"},
    {"(real)vwn_imod(5, 0)", "0.0f"},
    {"(real)vwn_to_int(NOT_A_NUMBER)", "0.0f"},
    {"(real)vwn_to_int(-2.7f)", "-2.0f"},
    {"vwn_round_to(1.00390625f, 16)", "1.0f"},
    {"vwn_round_to(3.4e38f, 16)", "INFINITE"},
    {"vwn_round_to(65520.0f, 17)", "INFINITE"},
    {"vwn_round_to(65519.0f, 17)", "65504.0f"},
    {"vwn_round_to(2e-8f, 17)", "0.0f"},
    {"vwn_round_to(4e-8f, 17)", "0x1p-24f"},
};

static double worst(Sweep *run, const Function *f, double *where)
{
    enum { COUNT = 1 << 20 };
    float *x = malloc(COUNT * sizeof *x), *y = malloc(COUNT * sizeof *y);
    double most = 0;
    for (long i = 0; i < COUNT; i++)
        x[i] = (float)(f->lo + (f->hi - f->lo) * (double)i / (COUNT - 1));
    run(x, y, COUNT);
    for (long i = 0; i < COUNT; i++) {
        double e = ulp_between(y[i], f->want((double)x[i]));
        if (!(e <= most)) {
            most = e;
            *where = (double)x[i];
        }
    }
    free(x);
    free(y);
    return most;
}

static void *compile(Ctx *ctx)
{
    char path[64], command[256];
    size_t n;
    const char *prelude = prelude_c(ctx->program, &n), *cc = getenv("CC");
    snprintf(path, sizeof path, "/tmp/vwn_math_%ld", (long)getpid());
    snprintf(command, sizeof command, "%s.c", path);
    FILE *f = fopen(command, "w");
    if (!f)
        return NULL;
    fwrite(prelude, 1, n, f);
    for (size_t i = 0; i < COUNT_OF(functions); i++)
        fprintf(f,
                "void sweep%zu(const float *a, float *y, long n)\n{\n#pragma omp simd\n"
                "for (long i = 0; i < n; i++) { real x = a[i]; y[i] = %s; }\n}\n",
                i, functions[i].text);
    for (size_t i = 1; half_at(i); i++)
        if (half_at(i)->bytes == 1)
            fprintf(f,
                    "void bytes%zu(const unsigned char *code, const float *x, float *loaded, float *rounded, unsigned "
                    "char *stored, long n)\n"
                    "{\nfor (long i = 0; i < n; i++) { loaded[i] = vwn_of_%s((%s){code[i]}); rounded[i] = "
                    "vwn_round_to(x[i], %d); "
                    "stored[i] = vwn_%s(rounded[i]).code; }\n}\n",
                    i, half_at(i)->word, half_at(i)->word, half_at(i)->half, half_at(i)->word);
    fprintf(f, "int exact(int i)\n{\nvolatile real x, y;\nswitch (i) {\n");
    for (size_t i = 0; i < COUNT_OF(exact); i++)
        fprintf(f, "case %zu: x = %s; y = %s; break;\n", i, exact[i][0], exact[i][1]);
    fprintf(f, "default: return 0;\n}\nreturn x == y || (x != x && y != y);\n}\n");
    fclose(f);
    snprintf(command, sizeof command,
             "%s -O2 -march=native -w -fno-math-errno -fno-trapping-math "
             "-fopenmp-simd -fPIC -shared -nostdlib -o %s.so %s.c",
             cc ? cc : "cc", path, path);
    void *so = NULL;
    if (system(command) == 0) {
        snprintf(command, sizeof command, "%s.so", path);
        so = dlopen(command, RTLD_NOW);
        unlink(command);
    }
    snprintf(command, sizeof command, "%s.c", path);
    unlink(command);
    return so;
}

static bool same(double x, double y) { return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y); }

/* Each number of a type of 8 bits, the middle between it and the next, and what lies on both sides of that, as the reference rounds it. */
static int wrong_bytes(void *so, size_t row, double (*of)(uint16_t))
{
    enum { BESIDE = 4, N = 256 * BESIDE };
    const HalfInfo *type = half_at(row);
    unsigned char code[N], stored[N];
    float x[N], loaded[N], rounded[N];
    double in[N], out[N];
    char name[32];
    int wrong = 0;
    void (*run)(const unsigned char *, const float *, float *, float *, unsigned char *, long);
    for (int i = 0; i < N; i++) {
        code[i] = (unsigned char)(i / BESIDE);
        double low = of(code[i]), high = of((uint16_t)(code[i] ^ 1) & 255);
        float middle = isfinite(high) ? (float)((low + high) / 2) : (float)low * 1.0625f;
        x[i] = i % BESIDE == 3   ? (float)low
               : i % BESIDE == 0 ? middle
                                 : nextafterf(middle, i % BESIDE == 1 ? -INFINITY : INFINITY);
        in[i] = (double)x[i];
    }
    Node node = {.op = OP_ROUND_TO, .n_in = 1, .a = {.i = type->half}};
    Tensor from = {.size = N, .real = in}, to = {.size = N, .real = out}, *ins[1] = {&from};
    op_rules[OP_ROUND_TO].eval(&(OpEval){.n = &node, .in = ins, .out = &to});
    snprintf(name, sizeof name, "bytes%zu", row);
    *(void **)&run = dlsym(so, name);
    run(code, x, loaded, rounded, stored, N);
    for (int i = 0; i < N; i++)
        wrong +=
            !same((double)loaded[i], of(code[i])) || !same((double)rounded[i], out[i]) || !same(of(stored[i]), out[i]);
    printf("%s%-20s %d of %d\n", wrong ? "FAIL " : "", type->word, wrong, N);
    return wrong;
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    int bad = 0, (*check)(int);
    void *so = compile(ctx);
    if (!so) {
        printf("FAIL the prelude does not compile without a library\n");
        return 1;
    }
    for (size_t i = 0; i < COUNT_OF(functions); i++) {
        char name[32];
        Sweep *run;
        double where = 0;
        snprintf(name, sizeof name, "sweep%zu", i);
        *(void **)&run = dlsym(so, name);
        double e = worst(run, &functions[i], &where);
        bool ok = e <= functions[i].ulps;
        printf("%s%-20s %5.2f ulp of %g at %.9g\n", ok ? "" : "FAIL ", functions[i].name, e, functions[i].ulps, where);
        bad += !ok;
    }
    static const struct {
        Half type;
        double (*of)(uint16_t code);
    } bytes[] = {{HALF_FP8_E4M3, of_e4m3}, {HALF_FP8_E5M2, of_e5m2}};
    for (size_t i = 1; half_at(i); i++)
        for (size_t k = 0; k < COUNT_OF(bytes); k++)
            if (half_at(i)->half == bytes[k].type)
                bad += wrong_bytes(so, i, bytes[k].of) != 0;
    *(void **)&check = dlsym(so, "exact");
    for (size_t i = 0; i < COUNT_OF(exact); i++)
        if (!check((int)i)) {
            printf("FAIL %s is not %s\n", exact[i][0], exact[i][1]);
            bad++;
        }
    dlclose(so);
    ctx_free(ctx);
    return bad != 0;
}
