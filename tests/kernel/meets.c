/* meets.c - at a barrier, a shuffle, a load of a matrix or a product on tensor cores all threads arrive: proved over the text of
 * every CUDA kernel of every second example (whole: of each), functions of the prelude and written kernels included.
 *
 * In:  the examples at their own size, all programs; the written kernels of every class (attention, experts, tables).
 * Out: `N passed, N failed`; 77 without a C preprocessor. A condition that not all threads share, planted around such a place
 *      in each kind of function, is found.
 * The one idea: meet.h reads what the compiler of a GPU gets, behind the preprocessor; nothing is asked of the lowering.
 * When: slow. kernel.ops, kernel.random and equal.models go the same ways.
 */
#include "compiler/file/check_unit.h"
#include "meet.h"

#include "support/drawn.h"
#include "support/examples.h"
#include "support/harness.h"

#include "compiler/library/cuda_attention.h"
#include "compiler/library/cuda_expert.h"
#include "compiler/library/cuda_scatter.h"
#include "compiler/print/emit.h"
#include "compiler/plan/plan.h"
#include "compiler/report/report.h"

#include <sys/wait.h>
#include <unistd.h>

enum { SKIPPED = 77, AT_ONCE = 48, LEAST_KERNELS = 300, LEAST_PLACES = 1000 };

typedef struct Texts {
    Harness h;
    Ctx *ctx;
    VEC(const char *) text;
    Map seen;
    const char *prelude;
    size_t kernels, places;
} Texts;

/* Once each, with a name. */
static void add_text(Texts *t, const char *text, size_t length)
{
    static const char mark[] = "@NAME@";
    Arena *a = t->ctx->program;
    void **slot = map_at(&t->seen, hash_bytes(text, length, 0) | 1);
    if (*slot)
        return;
    *slot = t;
    Buf b = buf_new(a);
    text = arena_copy(a, text, length);
    for (const char *at; (at = strstr(text, mark)); text = at + strlen(mark))
        buf_printf(&b, "%.*sk_%zu", (int)(at - text), text, t->text.n);
    buf_puts(&b, text);
    vec_push(a, &t->text, b.s);
}

/* ---- which kernels there are ---- */

typedef struct Example {
    Texts *t;
    const char *file;
} Example;

static void add_example(Ctx *ctx, void *arg)
{
    static const char *const programs[] = {"train", "accumulate", "update", "eval", "predict"};
    Example *e = arg;
    const char *text = trained_text(ctx, example_path(ctx, e->file), false);
    Unit *u = check_file(ctx, &(CheckOptions){.path = "-", .text = text, .text_length = strlen(text)});
    CHECK_CASE(&e->t->h, !diag_errors(ctx) && u->model, e->file);
    for (size_t i = 0; u->model && i < COUNT_OF(programs); i++) {
        const Plan *p = report_device_plan(u, programs[i], 0, &target_gpu, NULL);
        for (size_t k = 0; k < p->n_kernel; k++)
            if (p->kernel[k].grid.threads)
                add_text(e->t, p->kernel[k].text, p->kernel[k].length);
    }
}

static void add_examples(Texts *t)
{
    ExampleFiles file = example_files(t->ctx, "\nmodel ");
    CaseDraw draw = {.one_in = 8, .sanitized = 16};
    CHECK(&t->h, file.n > 10);
    for (size_t i = 0; i < file.n; i++) {
        if (!case_drawn(&draw, i))
            continue;
        Ctx *ctx = ctx_new(NULL);
        Example e = {t, file.v[i]};
        CHECK_CASE(&t->h, guarded(ctx, add_example, &e), file.v[i]);
        ctx_free(ctx);
    }
    cases_end(&draw);
}

/* Each class, also of those that no example has. */
static void add_written(Texts *t)
{
    static const int heads[][2] = {{16, 16}, {64, 64}, {128, 64}, {128, 128}, {256, 256}};
    Arena *a = t->ctx->program;
    size_t n;
    for (int i = 0; i < (int)COUNT_OF(heads) * 3 * 8 * 3; i++) {
        int bits = i / 3 % 8, of = i / 24 % 3;
        CudaAttentionClass c = {.d = heads[i / 72][0],
                                .dv = heads[i / 72][1],
                                .capped = bits & 1,
                                .dropped = bits & 2,
                                .oldest = bits & 4,
                                .half = of == 0   ? HALF_NONE
                                        : of == 1 ? HALF_BF16
                                                  : HALF_FP16};
        c.width = c.half ? 8 : 4;
        const char *text = cuda_attention(a, (CudaAttentionKernel)(i % 3), &c, &n);
        add_text(t, text, n);
        c.warpgroups = true;
        text = cuda_attention(a, (CudaAttentionKernel)(i % 3), &c, &n);
        add_text(t, text, n);
        c.warpgroups = false;
        c.width = CUDA_ACCESS_ANY;
        if (cuda_attention_takes_any(&c)) {
            text = cuda_attention(a, (CudaAttentionKernel)(i % 3), &c, &n);
            add_text(t, text, n);
        }
    }
    for (int i = 0; i < 54; i++) {
        Half half = i % 3 == 0 ? HALF_NONE : i % 3 == 1 ? HALF_BF16 : HALF_FP16;
        CudaExpertClass c = {.dw = i / 3 % 3 == 2,
                             .transposed = i / 3 % 3 == 1,
                             .half = half,
                             .x_half = half,
                             .w_half = half,
                             .y_half = half,
                             .x_width = 4,
                             .w_width = 2,
                             .tile = (CudaExpertTile)(i / 9 % 3),
                             .warpgroups = i >= 27};
        const char *text = cuda_expert(a, &c, &n);
        add_text(t, text, n);
        text = cuda_scatter(a, (CudaScatterKernel)(i / 3 % 3), half, &n);
        add_text(t, text, n);
    }
    const char *text = cuda_expert_sort(a, &n);
    add_text(t, text, n);
}

/* ---- looking at them ---- */

/* What stands behind the preprocessor; NULL: there is none. */
static const char *preprocessed(Texts *t, Arena *arena, const char *text)
{
    char from[] = "/tmp/vwn_meets_XXXXXX", command[200];
    int fd = mkstemp(from);
    if (fd < 0)
        return NULL;
    FILE *f = fdopen(fd, "w"), *p;
    fputs(t->prelude, f);
    fputs(text, f);
    bool written = fclose(f) == 0;
    snprintf(command, sizeof command, "${CC:-cc} -E -P -x c -D__CUDACC_RTC__ %s 2>/dev/null", from);
    Buf out = buf_new(arena);
    char some[4096];
    p = written ? popen(command, "r") : NULL;
    for (size_t n; p && (n = fread(some, 1, sizeof some, p)) > 0;)
        buf_put(&out, some, n);
    bool ok = p && pclose(p) == 0 && out.n > strlen(text) / 4;
    unlink(from);
    return ok ? out.s : NULL;
}

static void check_all(Texts *t)
{
    for (size_t i = 0; i < t->text.n; i += AT_ONCE) {
        Arena *arena = arena_new(t->ctx);
        Buf all = buf_new(arena);
        char why[400];
        size_t places, kernels;
        size_t some = t->text.n - i < AT_ONCE ? t->text.n - i : AT_ONCE;
        for (size_t k = i; k < i + some; k++)
            buf_printf(&all, "%s\n", t->text.v[k]);
        const char *text = preprocessed(t, arena, all.s);
        CHECK(&t->h, text);
        bool meets = text && meet_check(arena, text, &places, &kernels, why);
        CHECK_CASE(&t->h, meets, why);
        if (text) {
            t->places += places;
            t->kernels += kernels;
            CHECK(&t->h, kernels == some);
        }
        arena_free(arena);
    }
}

/* ---- faults ---- */

static const struct {
    const char *name, *from, *to, *needs; /* needs: stands in the kernel that is looked at; NULL: nothing */
} faults[] = {
    {"the sum of a warp", "VWN_EVERY(i, 5, x += __shfl_xor_sync(",
     "if (threadIdx.x % 2) VWN_EVERY(i, 5, x += __shfl_xor_sync(", NULL},
    {"the maximum of a warp", "return vwn_from_lane(x, 0);", "return y > x ? vwn_from_lane(x, 0) : x;",
     "vwn_warp_max("},
    {"the lane that is asked", "return __shfl_sync(0xffffffffu, x, lane);",
     "return x > 0 ? __shfl_sync(0xffffffffu, x, lane) : x;", "vwn_warp_max("},
    {"pieces of a product on tensor cores", "for (uint32_t k = 0; k < K; k += 16) {",
     "for (uint32_t k = lane; k < K; k += 16) {", NULL},
    {"its pieces by warps", "for (uint32_t t = vwn_own_warp(); t < (ONE",
     "for (uint32_t t = threadIdx.x / 16; t < (ONE", NULL},
    {"shares of its sum", "for (uint32_t k = warp * 16; k < K; k += STEP) {",
     "for (uint32_t k = lane * 16; k < K; k += STEP) {", NULL},
    {"shares that are there", "    __syncthreads();\n    #pragma unroll 1\n    for (uint32_t i = warp; i < there;",
     "    if (warp < M) __syncthreads();\n    for (uint32_t i = warp; i < there;", NULL},
    {"a part of it", "VWN_EVERY(i, TM, vwn_mma_row<", "VWN_EVERY(i, TM, if (x[i][0][0] > 0) vwn_mma_row<", NULL},
    {"what neighbours of a product exchange", "vwn_put_fours<4, TN", "if (row < M) vwn_put_fours<4, TN", NULL},
    {"rows of attention", "for (int line = 0; line < K; line += LINE) {",
     "for (int line = l; line < K; line += LINE) {", NULL},
    {"rows that are kept", "for (int k = 0; k < F; k += 16) {", "for (int k = l; k < F; k += 16) {", NULL},
    {"a product of what registers hold", "vwn_load_transposed_at(q, vwn_along<E, N>(at, k, n));",
     "if (n < l) vwn_load_transposed_at(q, vwn_along<E, N>(at, k, n));", NULL},
    {"the same in float32", "__syncwarp();\n    b += l % 4 * 2;", "if (l) __syncwarp();\n    b += l % 4 * 2;", NULL},
    {"the first key", "for (int k = 16; k; k /= 2)\n        least",
     "for (int k = least & 16; k; k /= 2)\n        least", NULL},
    {"the sum of a row", "return x + __shfl_xor_sync(0xffffffffu, x, 2);",
     "return x > 0 ? x + __shfl_xor_sync(0xffffffffu, x, 2) : x;", NULL},
    {"keys of attention", "for (int u0 = from; more; u0 += COLUMNS) {",
     "for (int u0 = from; more && u0 > row - 999; u0 += COLUMNS) {", NULL},
    {"sums that grow", "if (__any_sync(0xffffffffu, grows)) {", "if (grows) {", NULL},
    {"queries that are not there",
     "    vwn_copies_wait<0>();\n    const vwn_share of = vwn_share_of<ROWS>(vwn_block(), T, H);",
     "    if (row >= there) return;\n    vwn_copies_wait<0>();\n    const vwn_share of = "
     "vwn_share_of<ROWS>(vwn_block(), T, H);",
     NULL},
    {"the tile that comes next", "        seek(COLUMNS);\n", "        seek(COLUMNS + lane / 32);\n", NULL},
    {"half of the warps", "if (D == DV || !of_k)\n                vwn_mul",
     "if (D == DV || !of_k || lane)\n                vwn_mul", NULL},
    {"a thread that is asked again", "        if (me < 2 * COLUMNS)\n",
     "        if (me < 9)\n            __syncthreads();\n        if (me < 2 * COLUMNS)\n", NULL},
    {"pairs by expert", "for (int64_t i0 = from; i0 < to; i0 += 32) {",
     "for (int64_t i0 = from; i0 + lane < to; i0 += 32) {", NULL},
    {"rows of a tile in 16 bits", "                vwn_load_pieces(p[i], a",
     "                if (down) vwn_load_pieces(p[i], a", NULL},
    {"what neighbours exchange", "            vwn_put_four(to + j,", "            if (there) vwn_put_four(to + j,",
     "vwn_put_fours"},
    {"whose tile it is", "for (int k = 1; k < 32; k *= 2) {", "for (int k = 1; k + lane < 32; k *= 2) {", NULL},
    {"the depth of experts in 16 bits", "step < steps; step++) {", "step < steps - row; step++) {", "found[0] = e;"},
    {"pairs of experts in 16 bits", "step < steps; step++) {", "step < steps - column; step++) {", "*const at_token"},
    {"an expert that has no pair", "if (e > experts) /*", "if (e > experts || row >= out) /*", NULL},
    {"the last products of experts", "        __syncthreads();\n    }\n}\n",
     "        if (row < 4)\n            __syncthreads();\n    }\n}\n", NULL},
    {"a table's rows", "for (int64_t i0 = first; i0 < end; i0 += THREADS, stage ^= 1) {",
     "for (int64_t i0 = first + me; i0 < end; i0 += THREADS, stage ^= 1) {", NULL},
    {"the second stage of sums", "        total[warp][lane] = y;\n        __syncthreads();",
     "        total[warp][lane] = y;\n        if (r < rows)\n            __syncthreads();", NULL},
    {"a kernel over rows, a warp to each", "= vwn_warp_sum(", "= thread < 16 ? 0.0f : vwn_warp_sum(",
     "enum { THREADS = 32, UNITS"},
    {"a kernel over rows, a block to each", "\n        __syncthreads();\n",
     "\n        if (thread < 64) __syncthreads();\n", "enum { THREADS = 256, UNITS"},
    {"a row that ends early", "\n        __syncthreads();\n",
     "\n        if (p0[thread] > 0) return;\n        __syncthreads();\n", "enum { THREADS = 256, UNITS"},
};

/* Planted in the first text that has the place, and in the prelude if that has it. */
static void plant(Texts *t, size_t which)
{
    const char *from = faults[which].from, *at = strstr(t->prelude, from), *text = "", *was = t->prelude;
    Arena *arena = t->ctx->program;
    for (size_t i = 0; i < t->text.n; i++)
        if ((at || strstr(t->text.v[i], from)) && (!faults[which].needs || strstr(t->text.v[i], faults[which].needs))) {
            text = t->text.v[i];
            break;
        }
    const char *in = at ? t->prelude : text;
    at = strstr(in, from);
    if (!CHECK_CASE(&t->h, at, faults[which].name))
        return;
    const char *changed = arena_printf(arena, "%.*s%s%s", (int)(at - in), in, faults[which].to, at + strlen(from));
    char why[400] = "";
    size_t places, kernels;
    bool in_prelude = in == t->prelude;
    t->prelude = in_prelude ? changed : was;
    const char *all = preprocessed(t, arena, in_prelude ? text : changed);
    t->prelude = was;
    bool missed = !all || meet_check(arena, all, &places, &kernels, why);
    CHECK_CASE(&t->h, !missed, faults[which].name);
    printf("%-40s %s\n", faults[which].name, missed ? "NOT SEEN" : why);
}

int main(void)
{
    Texts t = {.ctx = ctx_new(NULL)};
    size_t length;
    map_init(&t.seen, t.ctx->program);
    t.prelude = prelude_cuda(t.ctx->program, &length);
    if (!preprocessed(&t, t.ctx->program, "")) {
        printf("skipped: no C preprocessor\n");
        return SKIPPED;
    }
    add_written(&t);
    add_examples(&t);
    check_all(&t);
    printf("%zu kernels, %zu places where threads meet\n", t.kernels, t.places);
    CHECK(&t.h, t.kernels >= LEAST_KERNELS && t.places >= LEAST_PLACES);
    for (size_t i = 0; i < COUNT_OF(faults); i++)
        plant(&t, i);
    ctx_free(t.ctx);
    return harness_end(&t.h);
}
