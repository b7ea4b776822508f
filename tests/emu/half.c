/* half.c - numbers of fp16 and bf16 as kernels load and store them, emulated, against arithmetic of half.h.
 *
 * In:  nothing (skipped where there is no C++ compiler).     Out: `N passed, N failed`.
 * All 65,536 patterns are loaded. What is stored lies on such a number, in the middle between two and beside
 * it, so ties, numbers without a leading bit and what leaves the range are met; rounded before, it is the same. Of bf16
 * numbers are rounded one by one and by eight.
 */
#include "backend_emu.h"

#include "support/half.h"

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

int main(void)
{
    Harness h = {0};
    char why[512];
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    EmuText text[] = {{.text = body, .length = sizeof body - 1}, {.text = body_bf16, .length = sizeof body_bf16 - 1}};
    EmuKernel kernel[2];
    for (int i = 0; i < 2; i++)
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
    if (CHECK(&h, emu_compile(prelude, length, text, 2, kernel, why))) {
        test_type(&h, &kernel[0], HALF_FP16);
        test_type(&h, &kernel[1], HALF_BF16);
    } else {
        fprintf(stderr, "    %s\n", why);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
