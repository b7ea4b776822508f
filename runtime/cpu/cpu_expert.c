/* cpu_expert.c - products of rows grouped by expert.
 *
 * In:  rows x, an expert number per (token, choice), weights or output gradients.
 * Out: y[pair] = x[pair] W[expert of pair], or dW[e] = sum over the pairs of e of x[pair]^T
 * dy[pair].
 * The one idea: a stable counting sort lists the pairs of each expert in order; workers
 * gather a block of them into their own scratch, multiply, and put the rows back. Blocks are
 * cut by the counts alone, so the bits do not depend on threads. A pair whose index is no
 * expert gives zeros and adds nothing.
 */
#include "cpu.h"

typedef struct ExpertRun {
    const Blas *blas;
    const PlanExpert *how;
    const float *x, *w, *dy;
    float *out;
    int64_t *start; /* experts + 1: where the pairs of each begin in `order` */
    int64_t *first; /* experts + 1: number of row blocks before each */
    int64_t *order; /* pair numbers, by expert */
    float *work;    /* `room` floats for each worker */
    int64_t room, block, tile_in, tile_out;
} ExpertRun;

enum { BLOCK_MOST = 128, BLOCK_LEAST = 16, DEPTH = 256, TILE_MOST = 384, TILE_LEAST = 96 };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Rows of one block: enough of them for 16 blocks where there are many pairs. */
static int64_t rows_per_block(int64_t pairs)
{
    int64_t rows = ceil_div(pairs / 16, 16) * 16;
    return rows < BLOCK_LEAST ? BLOCK_LEAST : least(rows, BLOCK_MOST);
}

/* A tile of dW: few experts are cut finer, so that there is work for all threads. */
static int64_t weight_tile(int64_t extent, int64_t experts)
{
    int64_t most = experts >= 8 ? TILE_MOST : TILE_MOST / 2;
    if (extent <= TILE_LEAST)
        return extent;
    return least(ceil_div(ceil_div(extent, ceil_div(extent, most)), 16) * 16, extent);
}

/* Sets the sizes that depend on the shape; returns all scratch bytes or -1. */
static int64_t measure(ExpertRun *run, int threads)
{
    const PlanExpert *how = run->how;
    int64_t pairs, room, bytes, lists;
    if (!mul_i64(how->tokens, how->choices, &pairs))
        return -1;
    run->block = how->per_row ? 1 : rows_per_block(pairs);
    run->tile_in = weight_tile(how->in, how->experts);
    run->tile_out = weight_tile(how->out, how->experts);
    int64_t rows = how->what == EXPERT_Y ? run->block : DEPTH;
    int64_t wide = how->what == EXPERT_Y ? how->in : run->tile_in;
    int64_t far = how->what == EXPERT_Y ? how->out : run->tile_out;
    if (!add_i64(wide, far, &room) || !mul_i64(room, rows, &room) || !add_i64(room, 15, &room))
        return -1;
    run->room = room / 16 * 16;
    if (!mul_i64(run->room, (int64_t)sizeof(float), &bytes) ||
        !mul_i64(bytes, threads, &bytes) ||
        !add_i64(pairs, 2 * (how->experts + 1) + 8, &lists) ||
        !mul_i64(lists, (int64_t)sizeof(int64_t), &lists) || !add_i64(bytes, lists, &bytes))
        return -1;
    return bytes;
}

int64_t expert_scratch(const PlanExpert *how, int threads)
{
    ExpertRun run = {.how = how};
    return measure(&run, threads < 1 ? 1 : threads);
}

static void sort_pairs(ExpertRun *run, const int64_t *index)
{
    const PlanExpert *how = run->how;
    int64_t pairs = how->tokens * how->choices, experts = how->experts;
    memset(run->start, 0, (size_t)(experts + 1) * sizeof *run->start);
    for (int64_t i = 0; i < pairs; i++)
        if (index[i] >= 0 && index[i] < experts)
            run->start[index[i] + 1]++;
    run->first[0] = 0;
    for (int64_t e = 0; e < experts; e++) {
        run->first[e + 1] = run->first[e] + ceil_div(run->start[e + 1], run->block);
        run->start[e + 1] += run->start[e];
    }
    for (int64_t i = 0; i < pairs; i++)
        if (index[i] >= 0 && index[i] < experts)
            run->order[run->start[index[i]]++] = i;
    for (int64_t e = experts; e > 0; e--) /* the starts have become the ends */
        run->start[e] = run->start[e - 1];
    run->start[0] = 0;
}

/* The last expert whose blocks begin at or before `block`. */
static int64_t expert_of(const ExpertRun *run, int64_t block)
{
    int64_t lo = 0, hi = run->how->experts;
    while (hi - lo > 1) {
        int64_t mid = lo + (hi - lo) / 2;
        if (run->first[mid] <= block)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

static const float *row_of_x(const ExpertRun *run, int64_t pair)
{
    return run->x + (run->how->x_per_pair ? pair : pair / run->how->choices) * run->how->in;
}

static void forward_blocks(void *user, int64_t lo, int64_t hi, int worker)
{
    const ExpertRun *run = user;
    const PlanExpert *how = run->how;
    float *xs = run->work + worker * run->room, *ys = xs + run->block * how->in;
    for (int64_t block = lo; block < hi; block++) {
        int64_t e = expert_of(run, block);
        int64_t at = run->start[e] + (block - run->first[e]) * run->block;
        int64_t rows = least(run->start[e + 1] - at, run->block);
        for (int64_t r = 0; r < rows; r++)
            memcpy(xs + r * how->in, row_of_x(run, run->order[at + r]),
                   (size_t)how->in * sizeof *xs);
        blas_tile(run->blas, false, how->transpose_w, rows, how->out, how->in, xs, how->in,
                  run->w + e * how->in * how->out, how->transpose_w ? how->in : how->out, false,
                  ys, how->out);
        for (int64_t r = 0; r < rows; r++)
            memcpy(run->out + run->order[at + r] * how->out, ys + r * how->out,
                   (size_t)how->out * sizeof *ys);
    }
}

static void weight_tiles(void *user, int64_t lo, int64_t hi, int worker)
{
    const ExpertRun *run = user;
    const PlanExpert *how = run->how;
    int64_t tiles_in = ceil_div(how->in, run->tile_in),
            tiles_out = ceil_div(how->out, run->tile_out);
    float *xs = run->work + worker * run->room, *dys = xs + DEPTH * run->tile_in;
    for (int64_t t = lo; t < hi; t++) {
        int64_t e = t / tiles_out / tiles_in;
        int64_t i = t / tiles_out % tiles_in * run->tile_in, j = t % tiles_out * run->tile_out;
        int64_t wide = least(how->in - i, run->tile_in),
                far = least(how->out - j, run->tile_out);
        float *dw = run->out + (e * how->in + i) * how->out + j;
        int64_t at = run->start[e], end = run->start[e + 1];
        bool add = false;
        do { /* once even without pairs: that writes the zeros */
            int64_t rows = least(end - at, DEPTH);
            for (int64_t r = 0; r < rows; r++) {
                int64_t pair = run->order[at + r];
                memcpy(xs + r * wide, row_of_x(run, pair) + i, (size_t)wide * sizeof *xs);
                memcpy(dys + r * far, run->dy + pair * how->out + j, (size_t)far * sizeof *dys);
            }
            blas_tile(run->blas, true, false, wide, far, rows, xs, wide, dys, far, add, dw,
                      how->out);
            add = true;
            at += rows;
        } while (at < end);
    }
}

/* Rows of y whose index is no expert. */
static void clear_strays(const ExpertRun *run, const int64_t *index)
{
    const PlanExpert *how = run->how;
    for (int64_t i = 0; i < how->tokens * how->choices; i++)
        if (index[i] < 0 || index[i] >= how->experts)
            memset(run->out + i * how->out, 0, (size_t)how->out * sizeof *run->out);
}

void expert_run(const Blas *blas, Pool *pool, const PlanExpert *how, const float *x,
                const float *w_or_dy, const int64_t *index, float *out, void *scratch)
{
    if (how->in <= 0 || how->out <= 0 || how->experts <= 0) {
        if (how->what == EXPERT_Y && how->out > 0) /* an empty sum */
            memset(out, 0, (size_t)(how->tokens * how->choices * how->out) * sizeof *out);
        return;
    }
    ExpertRun run = {.blas = blas, .how = how, .x = x, .w = w_or_dy, .dy = w_or_dy, .out = out};
    if (measure(&run, pool_threads(pool)) < 0)
        return; /* its scratch could not have been made either */
    run.work = scratch;
    run.start = (int64_t *)(run.work + run.room * pool_threads(pool));
    run.first = run.start + how->experts + 1;
    run.order = run.first + how->experts + 1;
    sort_pairs(&run, index);
    int outer = blas_begin(blas);
    if (how->what == EXPERT_DW) {
        int64_t tiles = ceil_div(how->in, run.tile_in) * ceil_div(how->out, run.tile_out);
        parallel_for(pool, tiles * how->experts, 1, weight_tiles, &run);
        blas_end(blas, outer);
        return;
    }
    if (run.start[how->experts] < how->tokens * how->choices)
        clear_strays(&run, index);
    parallel_for(pool, run.first[how->experts], 1, forward_blocks, &run);
    blas_end(blas, outer);
}
