/* expert.c - the CUDA text of products by expert, emulated, against plain loops in float64.
 *
 * In:  nothing (skipped where there is no C++ compiler).     Out: `N passed, N failed`.
 * Odd widths, rows with NaN behind them or far apart, experts without pairs and pairs without an expert, rows of tokens and of pairs, bf16,
 * fp16 and float32, tiles of each size, both orders of threads, copies that come at once or late; results begin as NaN, and
 * memory behind them is watched.
 * When: slow. The sanitizers do not watch texts of the library; emu.ops sees what makes them.
 */
#define _GNU_SOURCE
#include "backend_emu.h"

#include "support/half.h"

#include "compiler/graph/target.h"
#include "compiler/library/cuda_expert.h"
#include "compiler/print/emit.h"
#include "support/drawn.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef struct Case {
    int64_t tokens, choices, experts, in, out;
    bool dw, transposed;
    Half x_half, w_half, y_half;
    bool per_pair;
    unsigned tile;        /* a CudaExpertTile, and BY_GROUPS: warpgroups multiply it */
    int64_t gap_x, gap_w; /* elements behind each row of x, and of w or dy */
} Case;

#define F32    HALF_NONE
#define BF     HALF_BF16
#define FP     HALF_FP16
#define FAR    ((int64_t)1 << 26) /* the last rows are behind 2^32 numbers */
#define SMALL  CUDA_EXPERT_SMALL
#define SQUARE CUDA_EXPERT_SQUARE
#define WIDE   CUDA_EXPERT_WIDE
enum { BY_GROUPS = 8 };
static const Case cases[] = {
    {33, 2, 5, 36, 7, false, false, F32, F32, F32, false, SMALL, 0, 0},
    {67, 3, 4, 40, 72, false, true, F32, F32, F32, true, SMALL, 0, 0},
    {131, 2, 3, 72, 68, true, false, F32, F32, F32, false, SMALL, 0, 0},
    {31, 1, 2, 37, 65, true, false, F32, F32, F32, true, SMALL, 0, 0},
    {97, 2, 5, 72, 80, false, false, BF, BF, BF, false, SMALL, 0, 0},
    {97, 2, 5, 72, 80, false, true, BF, BF, F32, true, SMALL, 0, 0},
    {131, 2, 3, 80, 72, true, false, BF, BF, F32, false, SMALL, 0, 0},
    {67, 2, 3, 37, 35, false, false, BF, BF, BF, false, SMALL, 0, 0},
    {67, 2, 3, 35, 37, true, false, BF, BF, BF, true, SMALL, 0, 0},
    {31, 2, 2, 36, 34, false, true, BF, F32, F32, false, SMALL, 0, 0},
    {1, 1, 1, 1, 1, false, false, F32, F32, F32, false, SMALL, 0, 0},
    {0, 2, 3, 9, 5, true, false, F32, F32, F32, false, SMALL, 0, 0},
    {97, 2, 5, 72, 80, false, true, FP, FP, FP, true, SMALL, 0, 0},
    {67, 2, 3, 35, 37, true, false, FP, FP, FP, true, SMALL, 0, 0},
    {41, 3, 4, 40, 72, false, false, F32, F32, F32, false, SMALL, 4, 8},
    {41, 3, 4, 40, 71, true, false, F32, F32, F32, false, SMALL, 4, 1},
    {67, 2, 3, 66, 70, false, false, BF, BF, BF, false, SMALL, 0, 0},
    {67, 2, 3, 68, 70, false, true, BF, BF, BF, false, SMALL, 4, 60},
    {67, 2, 3, 72, 35, false, false, BF, BF, F32, false, SMALL, 8, 5},
    {200, 2, 3, 136, 140, false, false, BF, BF, BF, false, SQUARE, 0, 0},
    {201, 2, 3, 200, 130, false, true, BF, BF, BF, true, SQUARE, 8, 0},
    {231, 2, 3, 135, 131, true, false, BF, BF, F32, false, SQUARE, 1, 5},
    {230, 2, 3, 136, 264, false, false, FP, FP, FP, false, WIDE, 0, 0},
    {200, 2, 2, 88, 257, false, true, BF, BF, F32, true, WIDE, 0, 8},
    {260, 2, 3, 130, 264, true, false, BF, BF, BF, true, WIDE, 6, 8},
    {3, 2, 70, 64, 64, false, false, BF, BF, BF, false, WIDE, 0, 0},
    {0, 2, 3, 64, 64, true, false, BF, BF, F32, false, WIDE, 0, 0},
    {70, 1, 3, 72, 64, false, false, BF, BF, BF, false, SMALL, FAR, FAR},
    {70, 1, 3, 72, 64, false, true, BF, BF, BF, false, SMALL, FAR, FAR},
    {70, 1, 3, 72, 64, true, false, BF, BF, F32, false, SMALL, FAR, FAR},
    {200, 2, 3, 136, 140, false, false, BF, BF, BF, false, SQUARE | BY_GROUPS, 0, 0},
    {201, 2, 3, 456, 130, false, true, BF, BF, BF, true, SQUARE | BY_GROUPS, 8, 0},
    {460, 2, 3, 135, 131, true, false, BF, BF, F32, false, SQUARE | BY_GROUPS, 1, 5},
    {230, 2, 3, 456, 264, false, false, FP, FP, FP, false, WIDE | BY_GROUPS, 0, 0},
    {200, 2, 2, 88, 257, false, true, BF, BF, F32, true, WIDE | BY_GROUPS, 0, 8},
    {760, 2, 3, 262, 264, true, false, BF, BF, BF, true, WIDE | BY_GROUPS, 2, 8},
    {3, 2, 70, 64, 64, false, false, BF, BF, BF, false, WIDE | BY_GROUPS, 0, 0},
    {0, 2, 3, 64, 64, true, false, BF, BF, F32, false, WIDE | BY_GROUPS, 0, 0},
};
enum {
    CASES = sizeof cases / sizeof cases[0],
    SQUARE_T = 20,
    SQUARE_DW,
    WIDE_Y,
    WIDE_DW = 24,
    MANY,
    FAR_Y = 27,
    FAR_T,
    FAR_DW
};
enum { GROUPS_SQUARE = FAR_DW + 1, GROUPS_T, GROUPS_DW, GROUPS_Y, GROUPS_WIDE_T, GROUPS_WIDE_DW };

/* ---- numbers ---- */

typedef struct Array {
    Half half;
    int64_t n, row, gap; /* rows of so many elements, and how many there are behind each; row 0: all are one */
    char *at;
} Array;

static int64_t place_of(const Array *a, int64_t i) { return a->row ? i / a->row * (a->row + a->gap) + i % a->row : i; }

static size_t bytes_of(const Array *a)
{
    return (size_t)(a->row ? a->n / a->row * (a->row + a->gap) : a->n) * (a->half ? 2 : 4);
}

static double array_get(const Array *a, int64_t i)
{
    float x;
    i = place_of(a, i);
    if (a->half)
        return of_half(((uint16_t *)a->at)[i], a->half);
    memcpy(&x, a->at + 4 * i, 4);
    return (double)x;
}

static void array_put(Array *a, int64_t i, double value)
{
    float x = (float)value;
    i = place_of(a, i);
    if (a->half)
        ((uint16_t *)a->at)[i] = to_half(value, a->half);
    else
        memcpy(a->at + 4 * i, &x, 4);
}

/* With 64 bytes behind it that nobody writes. */
static void forget(Array *a)
{
    if (a->gap < FAR)
        memset(a->at, 0xff, bytes_of(a) + 64);
}

static bool is_whole(const Array *a)
{
    bool whole = true;
    for (size_t i = 0, bytes = bytes_of(a); i < 64 && a->gap < FAR; i++)
        whole &= (unsigned char)a->at[bytes + i] == 0xff;
    return whole;
}

/* Behind rows there is NaN, too. */
static Array array_new(Half half, int64_t n, int64_t row, int64_t gap, uint64_t *random)
{
    Array a = {half, n, row, gap, NULL};
    if (gap < FAR)
        a.at = aligned_alloc(64, (bytes_of(&a) + 64 + 63) / 64 * 64);
    else /* pages that nobody touches are none */
        a.at = mmap(NULL, bytes_of(&a), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    forget(&a);
    for (int64_t i = 0; random && i < n; i++)
        array_put(&a, i, harness_random(random));
    return a;
}

/* ---- one case ---- */

typedef struct Work {
    const Case *c;
    Array x, w, y; /* w: w or dy; y: y or dw */
    int64_t pairs, *index, *start, *order;
    double *want;
} Work;

static Work work_new(const Case *c)
{
    uint64_t random = 5;
    Work w = {.c = c, .pairs = c->tokens * c->choices};
    int64_t matrices = c->experts * c->in * c->out, rows = w.pairs * c->out;
    w.x = array_new(c->x_half, (c->per_pair ? w.pairs : c->tokens) * c->in, c->in, c->gap_x, &random);
    w.w = array_new(c->w_half, c->dw ? rows : matrices, c->transposed ? c->in : c->out, c->gap_w, &random);
    w.y = array_new(c->y_half, c->dw ? matrices : rows, 0, 0, NULL);
    w.index = malloc((size_t)(w.pairs + 1) * sizeof *w.index);
    w.start = malloc((size_t)(c->experts + 2) * sizeof *w.start);
    w.order = malloc((size_t)(2 * w.pairs + 1) * sizeof *w.order); /* a planted fault writes beyond its end */
    w.want = calloc((size_t)w.y.n + 1, sizeof *w.want);
    for (int64_t i = 0; i < w.pairs; i++) /* the second expert has none, some pairs have none */
        w.index[i] = i % 7 == 3 ? (i % 2 ? -1 : c->experts) : i % 3 && c->experts > 2 ? 2 : 0;
    for (int64_t p = 0; p < w.pairs; p++) {
        int64_t e = w.index[p], row = c->per_pair ? p : p / c->choices;
        for (int64_t j = 0; e >= 0 && e < c->experts && j < c->out; j++)
            for (int64_t i = 0; i < c->in; i++) {
                int64_t at = c->transposed ? (e * c->out + j) * c->in + i : (e * c->in + i) * c->out + j;
                double x = array_get(&w.x, row * c->in + i);
                if (c->dw)
                    w.want[at] += x * array_get(&w.w, p * c->out + j);
                else
                    w.want[p * c->out + j] += x * array_get(&w.w, at);
            }
    }
    return w;
}

static void work_end(Work *w)
{
    Array *const arrays[] = {&w->x, &w->w, &w->y};
    void *all[] = {w->index, w->start, w->order, w->want};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        free(all[i]);
    for (size_t i = 0; i < COUNT_OF(arrays); i++)
        arrays[i]->gap < FAR ? free(arrays[i]->at) : (void)munmap(arrays[i]->at, bytes_of(arrays[i]));
}

static CudaExpertSizes sizes_of(const Case *c)
{
    return (CudaExpertSizes){.pairs = c->tokens * c->choices,
                             .experts = c->experts,
                             .in = c->in,
                             .out = c->out,
                             .pitch_x = c->in + c->gap_x,
                             .pitch_w = (c->transposed ? c->in : c->out) + c->gap_w};
}

static CudaExpertClass class_of(const Case *c)
{
    CudaExpertSizes s = sizes_of(c);
    CudaExpertClass class = {
        .dw = c->dw, .transposed = c->transposed, .x_half = c->x_half, .w_half = c->w_half, .y_half = c->y_half};
    cuda_expert_choose(&class, &s, 0, 0);
    class.tile = (CudaExpertTile)(c->tile % BY_GROUPS);
    class.warpgroups = c->tile >= BY_GROUPS;
    return class;
}

static const char *launch_sort(Work *w, const EmuKernel *k, const EmuOptions *how)
{
    int64_t experts = w->c->experts, low = 0, rows = experts + 1;
    void *p[] = {w->index, w->start, w->order};
    void *arguments[] = {&p[0], &p[1], &p[2], &w->pairs, &experts, &low, &rows};
    memset(w->order, 0xff, (size_t)(w->pairs + 1) * sizeof *w->order);
    return emu_launch(k, arguments, how, (uint32_t)rows, CUDA_EXPERT_SORT_THREADS, 0);
}

static const char *launch_product(Work *w, const EmuKernel *k, const EmuOptions *how)
{
    const Case *c = w->c;
    CudaExpertClass class = class_of(c);
    CudaExpertSizes s = sizes_of(c);
    CudaExpertLaunch l = cuda_expert_launch(&class);
    int64_t n[] = {c->per_pair ? 1 : c->choices, c->experts, c->in, c->out, s.pitch_x, s.pitch_w};
    int64_t rows = cuda_expert_blocks(&class, &s);
    void *p[] = {w->x.at, w->w.at, w->start, w->order, w->y.at};
    void *arguments[] = {&p[0], &p[1], &p[2], &p[3], &p[4], &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &rows};
    forget(&w->y);
    return rows ? emu_launch(k, arguments, how, (uint32_t)rows, (uint32_t)l.threads, (uint64_t)l.shared) : NULL;
}

/* Each expert's pairs, from the first to the last; behind them those of none. */
static bool is_sorted(const Work *w)
{
    int64_t at = 0, experts = w->c->experts;
    bool right = w->start[experts + 1] == w->pairs;
    for (int64_t e = 0; e <= experts; e++) {
        right &= w->start[e] == at;
        for (int64_t i = 0; i < w->pairs; i++) {
            bool none = w->index[i] < 0 || w->index[i] >= experts;
            if (none ? e == experts : w->index[i] == e)
                right &= w->order[at++] == i;
        }
    }
    return right;
}

static bool is_product(const Work *w)
{
    double worst = 0, size = 1e-3;
    for (int64_t i = 0; i < w->y.n; i++) {
        double is = array_get(&w->y, i);
        worst = fmax(worst, isnan(is) ? INFINITY : fabs(is - w->want[i]));
        size = fmax(size, fabs(w->want[i]));
    }
    return worst <= size * (w->c->y_half == BF ? 4e-3 : w->c->y_half ? 5e-4 : 2e-6) && is_whole(&w->y);
}

/* kernel: the sort, then the product. Which of the two it is not, if any. */
static const char *trouble_of(const Case *c, const EmuKernel *sort, const EmuKernel *product)
{
    const char *wrong = NULL;
    Work w = work_new(c);
    for (int run = 0; run < 4 && !wrong; run++) {
        EmuOptions how = {.descending = run & 1, .lazy = run == 1 || run == 2, .blocks_max = run > 1 ? 3 : 0};
        wrong = launch_sort(&w, sort, &how);
        if (!wrong && !is_sorted(&w))
            wrong = "pairs are not sorted";
        if (!wrong)
            wrong = launch_product(&w, product, &how);
        if (!wrong && !is_product(&w))
            wrong = "a product is another";
    }
    work_end(&w);
    return wrong;
}

/* ---- all of them ---- */

/* Faults to plant: in the sort, or in the product of a case. */
static const struct Fault {
    int of; /* -1: the sort */
    const char *text, *instead;
} faults[] = {
    {-1, "        }\n        __syncthreads();\n    }\n}", "        }\n    }\n}"},
    {-1, "lane < warp ? own", "lane <= warp ? own"},
    {0, "            __syncthreads();\n            vwn_mul", "            vwn_mul"},
    {0, "            __syncthreads();\n        }\n        for (int r", "        }\n        for (int r"},
    {1, "            tile -= (count + ROWS - 1) / ROWS;", "            ;"},
    {2, "            __syncthreads();\n            vwn_mul", "            vwn_mul"},
    {WIDE_Y, "            __syncthreads(); /* the tiles", "            /* the tiles"},
    {WIDE_Y, "vwn_copies_wait<AHEAD - 1>", "vwn_copies_wait<AHEAD>"},
    {WIDE_Y, "line + r < left ?", "line + r <= left ?"},
    {MANY, "vwn_least(me * each,", "vwn_least(me,"},
    {MANY, "if (me == 31 && tile >= upto)", "if (me == 0 && tile >= upto)"},
    {MANY, "mine -= vwn_tiles_of<ROWS>(count);", ";"},
    {WIDE_Y, "at_row < there, out", "at_row <= there, out"},
    {SQUARE_T, "? left - piece", "? DEPTH - piece"},
    {SQUARE_T, "from_x[i], left - piece", "from_x[i], DEPTH - piece"},
    {SQUARE_T, "(TRANSPOSED ? line + r :", "(TRANSPOSED ? line + r + 1 :"},
    {SQUARE_DW, "< left ? wide_x", "< left - 1 ? wide_x"},
    {SQUARE_DW, ", out % 4 == 0);", ", true);"},
    {SQUARE_DW, "k < count ?", "k < count - 1 ?"},
    {SQUARE_DW, "vwn_copies_wait<AHEAD - 1>", "vwn_copies_wait<AHEAD>"},
    {SQUARE_DW, "            __syncthreads(); /* the tiles", "            /* the tiles"},
    {SQUARE_DW, "of = of + 1 < LISTS ? of + 1 : 0;", ";"},
    {FAR_Y, "(uint32_t)share * pitch_x + piece", "(uint32_t)share * (int)pitch_x + piece"},
    {FAR_Y, "w + e * (TRANSPOSED ? out : in) * pitch", "w + (int)(e * (TRANSPOSED ? out : in) * pitch)"},
    {FAR_T, "w + e * (TRANSPOSED ? out : in) * pitch", "w + (int)(e * (TRANSPOSED ? out : in) * pitch)"},
    {FAR_DW, "= pair * pitch_w", "= pair * (int)pitch_w"},
    {FAR_DW, "(uint32_t)share * pitch_x", "(uint32_t)share * (int)pitch_x"},
    {SQUARE_DW, "start[e + 1] - first", "vwn_most(1, start[e + 1] - first) - 1"},
    {SQUARE_DW, "LISTS = AHEAD + 1", "LISTS = AHEAD"},
    {WIDE_Y, "if (whole && left == DEPTH)", "if (whole)"},
    {WIDE_DW, "if (whole && left == DEPTH)", "if (whole)"},
    /* products of warpgroups: what must be waited for, fenced and told */
    {GROUPS_Y, "            vwn_proxy_fence();", ""},
    {GROUPS_DW, "            vwn_proxy_fence();", ""},
    {GROUPS_Y, "vwn_copies_wait<AHEAD - 1>();\n            vwn_proxy_fence();",
     "vwn_proxy_fence();\n            vwn_copies_wait<AHEAD - 1>();"},
    {GROUPS_Y, "vwn_copies_wait<AHEAD - 1>", "vwn_copies_wait<AHEAD>"},
    {GROUPS_Y, "            __syncthreads(); /* the tiles", "            /* the tiles"},
    {GROUPS_DW, "            __syncthreads(); /* the tiles", "            /* the tiles"},
    {GROUPS_Y, "            vwn_group_wait<1>();", ""},
    {GROUPS_DW, "            vwn_group_wait<1>();", ""},
    {GROUPS_Y, "vwn_group_wait<1>", "vwn_group_wait<2>"},
    {GROUPS_Y, "        vwn_group_wait<0>();", ""},
    {GROUPS_Y, "        vwn_group_wait<0>();", "        vwn_group_wait<1>();"},
    {GROUPS_Y, "AHEAD = STAGES - 2", "AHEAD = STAGES - 1"},
    {GROUPS_DW, "AHEAD = STAGES - 2", "AHEAD = STAGES - 1"},
    {GROUPS_Y, "top < there", "warp * 16 < there"},
    {GROUPS_Y, "top = warp / 4 * 64", "top = warp * 16"},
    {GROUPS_T, "DEPTH, ROWS, HIGH, false, !TRANSPOSED>", "DEPTH, ROWS, HIGH, false, TRANSPOSED>"},
    {GROUPS_Y, "DEPTH, ROWS, HIGH, false,", "DEPTH, ROWS, HIGH, true,"},
    {GROUPS_Y, "HIGH>(line, piece)", "HIGH>(line, 0) + piece"},
    {GROUPS_DW, "ROWS, DEPTH>(line, piece)", "ROWS, DEPTH>(line, 0) + piece"},
    {GROUPS_Y, "NEXT_W = 1 ? HIGH * 64", "NEXT_W = 1 ? 64"},
    {GROUPS_WIDE_DW, "NEXT = 1 ? DEPTH * 64", "NEXT = 1 ? 64"},
    {GROUPS_WIDE_DW, "STEP = COPIERS / 8", "STEP = COPIERS / 4"},
    {GROUPS_Y, "if (whole && left == DEPTH)", "if (whole)"},
    {GROUPS_WIDE_DW, "if (whole && left == DEPTH)", "if (whole)"},
    {GROUPS_WIDE_DW, "LISTS = AHEAD + 1", "LISTS = AHEAD"},
};
enum { FAULTS = sizeof faults / sizeof faults[0], TEXTS = 1 + CASES + FAULTS };

static const char *plant(Ctx *ctx, const char *text, const struct Fault *f)
{
    const char *at = strstr(text, f->text);
    if (!at)
        vwn_bug(ctx, "there is no place for the fault: %s", f->instead);
    return arena_printf(ctx->program, "%.*s%s%s", (int)(at - text), text, f->instead, at + strlen(f->text));
}

int main(void)
{
    Harness h = {0};
    char why[512];
    if (emu_missing())
        return EMU_SKIPPED;
    /* Only one architecture has warpgroups. */
    CHECK(&h, target_of_arch("sm_90a")->warpgroups && !target_of_arch("sm_90")->warpgroups &&
                  !target_of_arch("sm_80")->warpgroups && !target_of_arch("sm_100")->warpgroups);
    Ctx *ctx = ctx_new(NULL);
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    EmuText text[TEXTS], compiled[TEXTS];
    EmuKernel made[TEXTS], kernel[TEXTS] = {{0}};
    size_t at[TEXTS], n = 0;
    text[0].text = cuda_expert_sort(ctx->program, &text[0].length);
    for (size_t i = 0; i < CASES; i++) {
        CudaExpertClass class = class_of(&cases[i]);
        text[1 + i].text = cuda_expert(ctx->program, &class, &text[1 + i].length);
    }
    bool planted[FAULTS];
    CaseDraw draw = {.one_in = 37, .sanitized = 37};
    for (size_t i = 0; i < FAULTS; i++) { /* every fault fits its text; those that are not drawn are not compiled */
        const char *whole = text[1 + faults[i].of].text, *bad = plant(ctx, whole, &faults[i]);
        planted[i] = case_drawn(&draw, i);
        text[1 + CASES + i].text = planted[i] ? bad : whole;
    }
    cases_end(&draw);
    for (size_t i = 0; i < TEXTS; i++) { /* equal texts stand once */
        text[i].length = strlen(text[i].text);
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
        for (at[i] = 0; at[i] < n && compiled[at[i]].name != text[i].name; at[i]++)
            ;
        if (at[i] == n)
            compiled[n++] = text[i];
    }
    if (!CHECK(&h, emu_compile(prelude, length, compiled, n, made, why)))
        fprintf(stderr, "    %s\n", why);
    for (size_t i = 0; i < TEXTS && !h.failed; i++)
        kernel[i] = made[at[i]];
    for (size_t i = 0; i < CASES && kernel[0].call; i++) {
        const char *wrong = trouble_of(&cases[i], &kernel[0], &kernel[1 + i]);
        if (!CHECK(&h, !wrong))
            fprintf(stderr, "    case %d: %s\n", (int)i, wrong);
    }
    for (size_t i = 0; i < FAULTS && !h.failed; i++) {
        if (!planted[i])
            continue;
        int of = faults[i].of < 0 ? 0 : faults[i].of;
        const EmuKernel *bad = &kernel[1 + CASES + i];
        CHECK_CASE(
            &h, trouble_of(&cases[of], faults[i].of < 0 ? bad : &kernel[0], faults[i].of < 0 ? &kernel[1 + of] : bad),
            faults[i].instead);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
