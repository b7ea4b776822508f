/* half.c - numbers of fp16, bf16 and 8 bits as kernels load and store them, emulated, against arithmetic of half.h.
 *
 * In:  nothing (skipped where there is no C++ compiler).     Out: `N passed, N failed`.
 * All 65,536 and 256 patterns are loaded. What is stored lies on such a number, in the middle between two and beside
 * it, so ties, numbers without a leading bit and what leaves the range are met; rounded before, it is the same. Of bf16
 * numbers are rounded one by one and by eight.
 * When: quick.
 */
#include "backend_emu.h"

#include "support/f8.h"
#include "support/half.h"

#include "compiler/graph/op.h"
#include "compiler/print/emit.h"
#include "support/harness.h"

#include <stdlib.h>

enum { PATTERNS = 65536, THREADS = 256 };

static const char body[] =
    "KERNEL(256) @NAME@(const fp16 *p0, real *p1, const real *p2, fp16 *p3, fp16 *p4, int64_t rows)\n"
    "{\n"
    "    const int64_t i = blockIdx.x * 256 + threadIdx.x;\n"
    "    if (i < rows) {\n"
    "        p1[i] = vwn_of_fp16(p0[i]);\n"
    "        p3[i] = vwn_fp16(p2[i]);\n"
    "        p4[i] = vwn_fp16(vwn_round_to(p2[i], 17));\n"
    "    }\n"
    "}\n";

static const char body_bf16[] =
    "KERNEL(256) @NAME@(const bf16 *p0, real *p1, const real *p2, bf16 *p3, bf16 *p4, int64_t rows)\n"
    "{\n"
    "    const int64_t i = blockIdx.x * 256 + threadIdx.x;\n"
    "    if (i < rows) {\n"
    "        p1[i] = vwn_of_bf16(p0[i]);\n"
    "        p3[i] = vwn_bf16(vwn_round_to(p2[i], 16));\n"
    "        if (i % 8 == 0) {\n"
    "            const vec<8> y = vwn_round_to(vwn_at<8>(&p2[i]), 16);\n"
    "            vwn_put_bf16(&p4[i], y);\n"
    "            for (int k = 0; k < 8; k++) /* nothing is left behind the two bytes */\n"
    "                p4[i + k] ^= vwn_bits(y.v[k]) & 0xffffu ? 1 : 0;\n"
    "        }\n"
    "    }\n"
    "}\n";

/* Each number by itself, and by fours. */
static const char body_byte[] =
    "KERNEL(256) @NAME@(const %s *p0, real *p1, const real *p2, %s *p3, real *p4, int64_t rows)\n"
    "{\n"
    "    const int64_t i = blockIdx.x * 256 + threadIdx.x;\n"
    "    if (i < rows && i %% 8 < 4) {\n"
    "        p1[i] = vwn_of_%s(p0[i]);\n"
    "        p3[i] = vwn_%s(p4[i] = vwn_round_to(p2[i], %d));\n"
    "    } else if (i < rows && i %% 4 == 0) {\n"
    "        const vec<4> y = vwn_round_to(vwn_at<4>(&p2[i]), %d);\n"
    "        vwn_at<4>(&p1[i]) = vwn_get_%s<4>(&p0[i]);\n"
    "        vwn_at<4>(&p4[i]) = y;\n"
    "        vwn_put_%s(&p3[i], y);\n"
    "    }\n"
    "}\n";

typedef struct Numbers {
    _Alignas(64) uint16_t given[PATTERNS];
    _Alignas(64) uint16_t stored[PATTERNS];
    _Alignas(64) uint16_t rounded[PATTERNS];
    _Alignas(64) float loaded[PATTERNS];
    _Alignas(64) float x[PATTERNS];
} Numbers;

/* beside: -1, 0 or 1 float32 from the middle between a number and the next larger one; 2: the number. */
static void make_numbers(Numbers *n, Half type, int beside)
{
    for (int i = 0; i < PATTERNS; i++) {
        double x = of_half((uint16_t)i, type), next = of_half((uint16_t)(i + 1), type);
        next = isfinite(next) ? next : copysign(type == HALF_FP16 ? 0x1p16 : 0x1p128, x); /* as if the range went on */
        float middle = (float)((x + next) / 2);
        n->given[i] = (uint16_t)i;
        n->x[i] = beside == 2 || !isfinite(x) ? (float)x : beside ? nextafterf(middle, beside * INFINITY) : middle;
    }
}

/* Numbers that are not as half.h has them; of those that are none only that they are none. */
static int wrong_numbers(const Numbers *n, Half type)
{
    int wrong = 0;
    for (int i = 0; i < PATTERNS; i++) {
        double x = of_half((uint16_t)i, type);
        bool none = isnan(n->x[i]), loaded = isnan(x) ? isnan(n->loaded[i]) : (double)n->loaded[i] == x;
        uint16_t want = to_half((double)n->x[i], type);
        bool stored = none ? isnan(of_half(n->stored[i], type)) : n->stored[i] == want;
        bool rounded = none ? isnan(of_half(n->rounded[i], type)) : n->rounded[i] == want;
        wrong += !loaded || !stored || !rounded;
    }
    return wrong;
}

static void test_type(Harness *h, const EmuKernel *kernel, Half type)
{
    static Numbers n;
    for (int beside = -1; beside <= 2 && !h->failed; beside++) {
        make_numbers(&n, type, beside);
        void *p[] = {n.given, n.loaded, n.x, n.stored, n.rounded};
        int64_t rows = PATTERNS;
        void *arguments[] = {&p[0], &p[1], &p[2], &p[3], &p[4], &rows};
        const char *trouble = emu_launch(kernel, arguments, &(EmuOptions){0}, PATTERNS / THREADS, THREADS, 0);
        int wrong = wrong_numbers(&n, type);
        if (!CHECK(h, !trouble && !wrong))
            fprintf(stderr, "    %s, beside %d: %d numbers, %s\n", half_word(type), beside, wrong,
                    trouble ? trouble : "");
    }
}

static bool same(double x, double y) { return isnan(x) ? isnan(y) : x == y && !signbit(x) == !signbit(y); }

/* The numbers of a type of a byte and, around the middle between two, three numbers of float32. */
static void test_bytes(Harness *h, const EmuKernel *kernel, Half type, double (*of)(uint16_t))
{
    enum { N = 4 * 256 };
    static _Alignas(64) unsigned char given[N], stored[N];
    static _Alignas(64) float loaded[N], x[N], rounded[N];
    double in[N], want[N];
    for (int i = 0; i < N; i++) {
        given[i] = (unsigned char)i;
        double low = of(given[i]), high = of((uint16_t)(given[i] ^ 1));
        float middle = isfinite(high) ? (float)((low + high) / 2) : (float)low * 1.0625f;
        x[i] = i >> 8 == 3 ? (float)low : i >> 8 == 0 ? middle : nextafterf(middle, i >> 8 == 1 ? -INFINITY : INFINITY);
        in[i] = (double)x[i];
    }
    Node node = {.op = OP_ROUND_TO, .n_in = 1, .a = {.i = type}};
    Tensor from = {.size = N, .real = in}, to = {.size = N, .real = want}, *ins[1] = {&from};
    op_rules[OP_ROUND_TO].eval(&(OpEval){.n = &node, .in = ins, .out = &to});
    void *p[] = {given, loaded, x, stored, rounded};
    int64_t rows = N;
    void *arguments[] = {&p[0], &p[1], &p[2], &p[3], &p[4], &rows};
    const char *trouble = emu_launch(kernel, arguments, &(EmuOptions){0}, N / THREADS, THREADS, 0);
    int wrong = 0;
    for (int i = 0; i < N; i++)
        wrong += !same((double)loaded[i], of(given[i])) || !same((double)rounded[i], want[i]) ||
                 !same(of(stored[i]), want[i]);
    if (!CHECK(h, !trouble && !wrong))
        fprintf(stderr, "    %s: %d numbers, %s\n", half_word(type), wrong, trouble ? trouble : "");
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
    EmuText text[4] = {{.text = body, .length = sizeof body - 1}, {.text = body_bf16, .length = sizeof body_bf16 - 1}};
    EmuKernel kernel[4];
    static const Half byte[] = {HALF_FP8_E4M3, HALF_FP8_E5M2};
    for (int i = 0; i < 2; i++) {
        const char *t = half_word(byte[i]);
        text[2 + i].text = arena_printf(ctx->program, body_byte, t, t, t, t, byte[i], byte[i], t, t);
        text[2 + i].length = strlen(text[2 + i].text);
    }
    for (int i = 0; i < 4; i++)
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
    if (CHECK(&h, emu_compile(prelude, length, text, 4, kernel, why))) {
        test_type(&h, &kernel[0], HALF_FP16);
        test_type(&h, &kernel[1], HALF_BF16);
        test_bytes(&h, &kernel[2], byte[0], of_e4m3);
        test_bytes(&h, &kernel[3], byte[1], of_e5m2);
    } else {
        fprintf(stderr, "    %s\n", why);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
