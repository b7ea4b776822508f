/* scatter.c - the CUDA text of a table's gradient, emulated: the bits of sums in the order of
 * the indices, for tables and gradients of odd sizes, under both orders of threads; sums in any order.
 *
 * In:  nothing (skipped where there is no C++ compiler).     Out: `N passed, N failed`. Indices are sorted by the
 *      kernel that does it on a device, and that is compared with plain loops.
 * When: quick.
 */
#include "backend_emu.h"

#include "support/half.h"

#include "compiler/library/cuda_expert.h"
#include "compiler/library/cuda_scatter.h"
#include "compiler/print/emit.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>

static const struct {
    int64_t count, width, rows;
} cases[] = {{1, 1, 1},     {31, 33, 7}, {400, 5, 67},  {131, 300, 130},
             {67, 257, 64}, {0, 9, 3},   {90, 4, 8193}, {50, 3, 20000}};

/* Numbers of indices by group of rows, as the device sorts them: plain loops. */
static void sort_by_group(const int64_t *index, int64_t count, int64_t rows, int64_t *start, int64_t *order)
{
    int64_t at = 0, groups = cuda_scatter_groups(rows), size = (int64_t)1 << cuda_scatter_low(rows);
    for (int64_t g = 0; g <= groups; g++) {
        start[g] = at;
        for (int64_t i = 0; i < count; i++) {
            bool none = index[i] < 0 || index[i] / size >= groups;
            if (none ? g == groups : index[i] / size == g)
                order[at++] = i;
        }
    }
    start[groups + 1] = at;
}

/* Whether both orders of threads give the bits of plain loops, or with `zeros`, for sums in any order, nearly
 * so, and nothing is written behind. */
static bool is_right(const EmuKernel *kernel, const EmuKernel *zeros, const EmuKernel *sort, Half type, int64_t count,
                     int64_t width, int64_t rows)
{
    int64_t low = cuda_scatter_low(rows), groups = cuda_scatter_groups(rows), sorts = groups + 1;
    int64_t *start = malloc((size_t)(groups + 2) * 8), *order = malloc((size_t)(count + 1) * 8);
    int64_t *want_start = malloc((size_t)(groups + 2) * 8), *want_order = malloc((size_t)(count + 1) * 8);
    bool right = true;
    uint64_t random = 3;
    int64_t n = rows * width;
    float *dy = malloc((size_t)(count * width + 1) * sizeof *dy), *out = malloc((size_t)(n + 1) * 4);
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
        index[i] = i % 3 == 0 ? rows / 2 : (int64_t)(x * (double)(rows + 2)) - 1; /* some outside */
        for (int64_t c = 0; index[i] >= 0 && index[i] < rows && c < width; c++)
            want[index[i] * width + c] += dy[i * width + c];
    }
    sort_by_group(index, count, rows, want_start, want_order);
    for (int run = 0; run < 2; run++) {
        memset(out, 0xff, (size_t)(n + 1) * 4);
        int64_t blocks = cuda_scatter_blocks(rows, width);
        void *p[] = {type ? (void *)half : dy, index, out, start, order};
        void *in_order[] = {&p[0], &p[1], &p[3], &p[4], &p[2], &width, &rows, &low, &blocks};
        void *of_sort[] = {&p[1], &p[3], &p[4], &count, &groups, &low, &sorts};
        void *any[] = {&p[0], &p[1], &p[2], &width, &rows, &count}, *of_zeros[] = {&p[2], &n};
        EmuOptions how = {.descending = run == 1};
        const char *wrong = zeros ? emu_launch(zeros, of_zeros, &how, (uint32_t)(n + 1023) / 1024, 256, 0) : NULL;
        if (!wrong && zeros && count)
            wrong = emu_launch(kernel, any, &how, (uint32_t)(count + 7) / 8, 256, 0);
        if (!zeros)
            wrong = emu_launch(sort, of_sort, &how, (uint32_t)sorts, CUDA_EXPERT_SORT_THREADS, 0);
        right &=
            zeros || wrong ||
            (!memcmp(start, want_start, (size_t)(groups + 2) * 8) && !memcmp(order, want_order, (size_t)count * 8));
        if (!wrong && !zeros)
            wrong = emu_launch(kernel, in_order, &how, (uint32_t)blocks, CUDA_SCATTER_THREADS, CUDA_SCATTER_SHARED);
        right &= !wrong && out[n] != out[n];
        for (int64_t i = 0; i < n; i++)
            right &= zeros ? fabsf(out[i] - want[i]) <= 1e-5f * (float)(count + 1) : out[i] == want[i];
    }
    free(start);
    free(order);
    free(want_start);
    free(want_order);
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
    EmuText text[9];
    EmuKernel kernel[9];
    text[0].text = cuda_scatter(ctx->program, CUDA_SCATTER, HALF_NONE, &more);
    text[0].length = more;
    const char *at = strstr(text[0].text, barrier);
    text[1].text = arena_printf(ctx->program, "%.*s%s", (int)(at - text[0].text), text[0].text, at + strlen(barrier));
    text[1].length = strlen(text[1].text);
    text[2].text = cuda_scatter(ctx->program, CUDA_SCATTER, HALF_BF16, &text[2].length);
    text[3].text = cuda_scatter(ctx->program, CUDA_SCATTER_ZEROS, HALF_NONE, &text[3].length);
    text[4].text = cuda_scatter(ctx->program, CUDA_SCATTER_ANY, HALF_NONE, &text[4].length);
    text[5].text = cuda_scatter(ctx->program, CUDA_SCATTER_ANY, HALF_BF16, &text[5].length);
    text[6].text = cuda_scatter(ctx->program, CUDA_SCATTER, HALF_FP16, &text[6].length);
    text[7].text = cuda_scatter(ctx->program, CUDA_SCATTER_ANY, HALF_FP16, &text[7].length);
    text[8].text = cuda_expert_sort(ctx->program, &text[8].length);
    for (int i = 0; i < 9; i++)
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
    if (CHECK(&h, emu_compile(prelude, length, text, 9, kernel, why))) {
        for (size_t i = 0; i < COUNT_OF(cases); i++)
            for (int k = 0; k < 3; k++) {
                static const Half type[] = {HALF_NONE, HALF_BF16, HALF_FP16};
                static const int of[][2] = {{0, 4}, {2, 5}, {6, 7}}; /* in order, in any order */
                CHECK(&h, is_right(&kernel[of[k][0]], NULL, &kernel[8], type[k], cases[i].count, cases[i].width,
                                   cases[i].rows));
                CHECK(&h, is_right(&kernel[of[k][1]], &kernel[3], NULL, type[k], cases[i].count, cases[i].width,
                                   cases[i].rows));
            }
        CHECK(&h, !is_right(&kernel[1], NULL, &kernel[8], HALF_NONE, 400, 5, 67));
    } else {
        fprintf(stderr, "    %s\n", why);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
