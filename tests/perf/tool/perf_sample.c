/* perf_sample.c - the counts of a launch, from some of its blocks.
 *
 * In:  a launch.     Out: counts of all of it.
 * The one idea: blocks are walked evenly and in pairs, each as far from the first block as its partner is from the last: what grows
 * with the number of a block, or with its place in a row of blocks, as the keys of causal attention do, has the right mean in
 * every pair. Where pairs differ, as where experts have more tokens than others, as many are walked as there is time for.
 */
#include "perf.h"

#include <math.h>

enum { LONG = 100 * 1000, ENOUGH = 2000 * 1000 /* instructions */ };

/* Counts of some blocks as those of all. */
static void scale(GpuCounts *c, double times)
{
    double *const each[] = {&c->slots,          &c->partial,    &c->wavefronts,    &c->operands,
                            &c->conflicts,      &c->lines,      &c->sectors_read,  &c->sectors_written,
                            &c->sectors_missed, &c->bytes_read, &c->bytes_written, &c->tensor,
                            &c->grouped,        &c->barriers,   &c->unknown,       &c->cut};
    for (size_t i = 0; i < COUNT_OF(each); i++)
        *each[i] *= times;
    for (size_t i = 0; i < SASS_CLASSES; i++)
        c->class[i] *= times;
    for (size_t i = 0; i < UNIT_COUNT; i++)
        c->unit[i] *= times;
}

/* Sample number s of n, in pairs from the middle of both halves on; the block in the middle is the last. */
static uint32_t block_of(int64_t blocks, int64_t n, int64_t s)
{
    int64_t half = n / 2, pair = s / 2;
    if (pair == half)
        return (uint32_t)(blocks / 2);
    int64_t i = pair % 2 ? half / 2 - (pair + 1) / 2 : half / 2 + pair / 2, block = (2 * i + 1) * blocks / (2 * n);
    return (uint32_t)(s % 2 ? blocks - 1 - block : block);
}

/* n samples, pair after pair until enough is counted. What the block in front of each has left in caches is there, as what blocks on
 * one multiprocessor read alike; a long block reads most of that more than once itself. differ: whether pairs do, by a few per cent. */
static bool walk(Arena *arena, GpuLaunch *g, int64_t n, double enough, GpuCounts *c, bool *differ, char why[256])
{
    GpuCounts before = {0};
    double pair = 0, least = INFINITY, most = 0;
    *c = (GpuCounts){0};
    for (int64_t s = 0; s < n && (s % 2 || c->slots < enough); s++) {
        uint32_t block = block_of(g->blocks, n, s);
        memset(g->seen, 0, GPU_SEEN * sizeof *g->seen);
        memset(g->near, 0, gpu_lines(g) * sizeof *g->near);
        if (block > 0 && c->slots < (double)(s + 1) * LONG && !gpu_run(arena, g, block - 1, &before, NULL, why))
            return false;
        double counted = c->slots;
        if (!gpu_run(arena, g, block, c, NULL, why))
            return false;
        pair = s % 2 ? pair + c->slots - counted : c->slots - counted;
        least = s % 2 && pair < least ? pair : least;
        most = s % 2 && pair > most ? pair : most;
    }
    *differ = most > 1.03 * least;
    return true;
}

bool perf_walk(Arena *arena, GpuLaunch *g, int64_t samples, GpuCounts *out, char why[256])
{
    bool all = samples > PERF_SAMPLES_MOST, differ = false;
    ArenaMark mark = arena_mark(arena);
    g->seen = NEW_ARRAY(arena, uint64_t, GPU_SEEN);
    g->near = NEW_ARRAY(arena, uint64_t, gpu_lines(g));
    int64_t n = g->blocks < samples ? g->blocks : samples;
    bool good = walk(arena, g, n, all ? 2 * (double)g->most : ENOUGH, out, &differ, why);
    if (good && differ && !all) {
        int64_t more = (int64_t)fmin(ENOUGH * out->blocks / out->slots, PERF_SAMPLES_MOST) / 2 * 2;
        more = more < g->blocks ? more : g->blocks;
        good = more <= n || walk(arena, g, more, INFINITY, out, &differ, why);
    }
    g->seen = g->near = NULL;
    arena_reset(arena, mark);
    if (good) {
        out->cycles /= out->blocks;
        scale(out, (double)g->blocks / out->blocks);
    }
    return good;
}
