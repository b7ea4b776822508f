/* scatter.c - the CUDA text of a table's gradient, emulated: the bits of sums in the order of
 * the indices, for tables and gradients of odd sizes, under both orders of threads; sums in any order.
 *
 * In:  nothing (skipped where there is no C++ compiler).     Out: `N passed, N failed`.
 */
#include "backend_emu.h"

#include "support/half.h"

#include "compiler/library/cuda_scatter.h"
#include "compiler/print/emit.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>

static const struct {
    int64_t count, width, rows;
} cases[] = {{1, 1, 1}, {31, 33, 7}, {400, 5, 67}, {131, 300, 130}, {67, 257, 64}, {0, 9, 3}};

/* Whether both orders of threads give the bits of plain loops, or with `zeros`, for sums in any order, nearly
 * so, and nothing is written behind. */
static bool is_right(const EmuKernel *kernel, const EmuKernel *zeros, Half type, int64_t count,
                     int64_t width, int64_t rows)
{
    bool right = true;
    uint64_t random = 3;
    int64_t n = rows * width;
    float *dy = malloc((size_t)(count * width + 1) * sizeof *dy),
          *out = malloc((size_t)(n + 1) * 4);
    float *want = calloc((size_t)n, sizeof *want);
    int64_t *index = malloc((size_t)(count + 1) * sizeof *index);
    uint16_t *half = malloc((size_t)(count * width + 1) * sizeof *half);
    for (int64_t i = 0; i < count * width; i++) {
        dy[i] = (float)harness_random(&random);
        half[i] = to_half((double)dy[i], type);
        dy[i] = type ? (float)of_half(half[i], type) : dy[i];
    }
    for (int64_t i = 0; i < count; i++) {
        double x = (harness_random(&random) + 1) / 2;
        index[i] =
            i % 3 == 0 ? rows / 2 : (int64_t)(x * (double)(rows + 2)) - 1; /* some outside */
        for (int64_t c = 0; index[i] >= 0 && index[i] < rows && c < width; c++)
            want[index[i] * width + c] += dy[i * width + c];
    }
    for (int run = 0; run < 2; run++) {
        memset(out, 0xff, (size_t)(n + 1) * 4);
        int64_t blocks = cuda_scatter_blocks(rows, width);
        void *p[] = {type ? (void *)half : dy, index, out};
        void *in_order[] = {&p[0], &p[1], &p[2], &count, &width, &rows, &blocks};
        void *any[] = {&p[0], &p[1], &p[2], &width, &rows, &count}, *of_zeros[] = {&p[2], &n};
        EmuOptions how = {.descending = run == 1};
        const char *wrong =
            zeros ? emu_launch(zeros, of_zeros, &how, (uint32_t)(n + 1023) / 1024, 256, 0) : NULL;
        if (!wrong && zeros && count)
            wrong = emu_launch(kernel, any, &how, (uint32_t)(count + 7) / 8, 256, 0);
        if (!zeros)
            wrong = emu_launch(kernel, in_order, &how, (uint32_t)blocks, CUDA_SCATTER_THREADS,
                               CUDA_SCATTER_SHARED);
        right &= !wrong && out[n] != out[n];
        for (int64_t i = 0; i < n; i++)
            right &= zeros ? fabsf(out[i] - want[i]) <= 1e-5f * (float)(count + 1) : out[i] == want[i];
    }
    free(dy);
    free(half);
    free(out);
    free(want);
    free(index);
    return right;
}

int main(void)
{
    Harness h = {0};
    char why[512];
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    /* the kernel, and one without the barrier: it must differ in an order */
    static const char barrier[] = "        __syncthreads();";
    size_t length, more;
    const char *prelude = prelude_cuda(ctx->program, &length);
    EmuText text[8];
    EmuKernel kernel[8];
    text[0].text = cuda_scatter(ctx->program, CUDA_SCATTER, HALF_NONE, &more);
    text[0].length = more;
    const char *at = strstr(text[0].text, barrier);
    text[1].text = arena_printf(ctx->program, "%.*s%s", (int)(at - text[0].text), text[0].text,
                                at + strlen(barrier));
    text[1].length = strlen(text[1].text);
    text[2].text = cuda_scatter(ctx->program, CUDA_SCATTER, HALF_BF16, &text[2].length);
    text[3].text = cuda_scatter(ctx->program, CUDA_SCATTER_ZEROS, HALF_NONE, &text[3].length);
    text[4].text = cuda_scatter(ctx->program, CUDA_SCATTER_ANY, HALF_NONE, &text[4].length);
    text[5].text = cuda_scatter(ctx->program, CUDA_SCATTER_ANY, HALF_BF16, &text[5].length);
    text[6].text = cuda_scatter(ctx->program, CUDA_SCATTER, HALF_FP16, &text[6].length);
    text[7].text = cuda_scatter(ctx->program, CUDA_SCATTER_ANY, HALF_FP16, &text[7].length);
    for (int i = 0; i < 8; i++)
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
    if (CHECK(&h, emu_compile(prelude, length, text, 8, kernel, why))) {
        for (size_t i = 0; i < COUNT_OF(cases); i++)
            for (int k = 0; k < 3; k++) {
                static const Half type[] = {HALF_NONE, HALF_BF16, HALF_FP16};
                static const int of[][2] = {{0, 4}, {2, 5}, {6, 7}}; /* in order, in any order */
                CHECK(&h, is_right(&kernel[of[k][0]], NULL, type[k], cases[i].count, cases[i].width,
                                   cases[i].rows));
                CHECK(&h, is_right(&kernel[of[k][1]], &kernel[3], type[k], cases[i].count, cases[i].width,
                                   cases[i].rows));
            }
        CHECK(&h, !is_right(&kernel[1], NULL, HALF_NONE, 400, 5, 67));
    } else {
        fprintf(stderr, "    %s\n", why);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
