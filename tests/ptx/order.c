/* order.c - who touched shared memory, and whether who touches it now can know of that.
 *
 * In:  accesses, barriers.   Out: a fault where two accesses, one of which writes, have nothing between them that orders them.
 * The one idea: time goes on whenever somebody tells others what he did (a barrier, an arrival). Each cell of shared memory
 *      remembers the time of its last write and, by warp, of the last read; a warp knows of another what was before the
 *      last time that it learnt of. Copies by maps are others, one for each barrier, by which warps learn of
 *      them; copies and products read only what was fenced for them.
 */
#include "code.h"

#include <stdlib.h>
#include <string.h>

typedef struct Cell {
    uint32_t written; /* the time; 0: never */
    uint8_t warp, lane;
    bool readers;
} Cell;
enum { MANY = 63, TIME = 6 }; /* a read: its time, and in the lowest bits its lane, or that there were several */

bool order_open(Block *b)
{
    const uint32_t cells = b->shared_bytes / b->f->grain + 1;
    b->cell = calloc(cells, sizeof *b->cell);
    b->reader = calloc((size_t)cells * (uint32_t)b->n_warp, sizeof *b->reader);
    return b->cell && b->reader;
}

void order_close(Block *b)
{
    free(b->cell);
    free(b->reader);
}

/* A block begins: what those before it did is over. */
void order_begin(Block *b)
{
    b->now++;
    for (int v = 0; v < b->n_warp; v++) {
        Warp *w = &b->warp[v];
        for (int k = 0; k < AGENTS; k++)
            w->known[k] = b->now;
        memset(w->known_fence, 0, sizeof w->known_fence);
        w->synced = b->now;
    }
    b->now++;
    memset(b->cell, 0, (b->shared_bytes / b->f->grain + 1) * sizeof *b->cell);
}

static void conflict(Warp *w, const Inst *i, uint32_t cell, const char *what, uint32_t warp, uint32_t lane)
{
    const uint32_t grain = w->block->f->grain;
    if (warp >= MAX_WARPS)
        fault(w, i, "byte %u of shared memory %s by a map, and nothing is between", cell * grain, what);
    if (lane == MANY)
        fault(w, i, "byte %u of shared memory %s by warp %u, and nothing is between", cell * grain, what, warp);
    fault(w, i, "byte %u of shared memory %s by thread %u, and nothing is between", cell * grain, what,
          warp * LANES + lane);
}

/* Was something at that time, of that warp and lane, before what this lane does now? */
static inline bool before(const Warp *w, int lane, uint32_t time, uint32_t warp, uint32_t by)
{
    if (warp == (uint32_t)w->index)
        return by == (uint32_t)lane || time <= w->synced;
    return time <= w->known[warp];
}

void order_touch(Warp *w, const Inst *i, int lane, uint32_t at, uint32_t bytes, Touch how)
{
    Block *b = w->block;
    const uint32_t grain = b->f->grain, warps = (uint32_t)b->n_warp;
    for (uint32_t c = at / grain; c <= (at + bytes - 1) / grain; c++) {
        Cell *x = &b->cell[c];
        uint32_t *reader = b->reader + (size_t)c * warps;
        if (x->written && !before(w, lane, x->written, x->warp, x->lane))
            conflict(w, i, c, "was written", x->warp, x->lane);
        if (how == READS) {
            uint32_t *mine = &reader[w->index];
            if (!x->readers)
                memset(reader, 0, warps * sizeof *reader);
            x->readers = true;
            *mine = b->now << TIME |
                    (*mine >> TIME > w->synced && (*mine & MANY) != (uint32_t)lane ? MANY : (uint32_t)lane);
            continue;
        }
        for (uint32_t v = 0; x->readers && v < warps; v++)
            if (reader[v] && !before(w, lane, reader[v] >> TIME, v, reader[v] & MANY))
                conflict(w, i, c, "was read", v, reader[v] & MANY);
        *x = (Cell){b->now, (uint8_t)w->index, (uint8_t)lane, false};
    }
}

/* Somebody other than a thread reads for the warp: what was written is known to it, and fenced by who wrote it. */
static void read_for(Warp *w, const Inst *i, uint32_t c)
{
    const Cell *x = &w->block->cell[c];
    if (!x->written || x->warp >= MAX_WARPS) {
        if (x->written > w->known[x->warp])
            conflict(w, i, c, "was written", x->warp, MANY);
        return;
    }
    if (!before(w, -1, x->written, x->warp, x->lane) && x->warp != w->index)
        conflict(w, i, c, "was written", x->warp, x->lane);
    if (x->written >= w->known_fence[x->warp])
        fault(w, i, "byte %u of shared memory was written by thread %u without a fence for what reads it now",
              c * w->block->f->grain, x->warp * LANES + x->lane);
}

/* Asked for (since 0), or done: then nobody wrote it since. */
void order_product(Warp *w, const Inst *i, uint32_t at, uint32_t bytes, uint32_t since)
{
    Block *b = w->block;
    const uint32_t grain = b->f->grain, warps = (uint32_t)b->n_warp;
    for (uint32_t c = at / grain; c <= (at + bytes - 1) / grain; c++) {
        Cell *x = &b->cell[c];
        uint32_t *reader = b->reader + (size_t)c * warps;
        if (since && x->written > since)
            fault(w, i, "byte %u of shared memory was written while a product may read it", c * grain);
        if (!since)
            read_for(w, i, c);
        if (!x->readers)
            memset(reader, 0, warps * sizeof *reader);
        x->readers = true;
        reader[w->index] = b->now << TIME | MANY;
    }
}

/* A box comes: nobody may still read what lay there, or have written it, whom its asker does not know of. */
void order_box(Block *b, const Box *x, uint32_t at, uint32_t bytes)
{
    Warp *w = &b->warp[x->warp];
    const uint32_t grain = b->f->grain, warps = (uint32_t)b->n_warp;
    for (uint32_t c = at / grain; c <= (at + bytes - 1) / grain; c++) {
        Cell *cell = &b->cell[c];
        const uint32_t *reader = b->reader + (size_t)c * warps;
        if (cell->written)
            read_for(w, x->by, c);
        for (uint32_t v = 0; cell->readers && v < warps; v++)
            if (reader[v] && v != x->warp && reader[v] >> TIME > w->known[v])
                conflict(w, x->by, c, "was read", v, reader[v] & MANY);
        *cell = (Cell){b->now, (uint8_t)x->agent, MANY, false};
    }
}

void order_leave(Warp *w, uint32_t *known, uint32_t *known_fence)
{
    Block *b = w->block;
    w->known[w->index] = b->now++;
    for (int k = 0; k < AGENTS; k++) {
        known[k] = w->known[k] > known[k] ? w->known[k] : known[k];
        known_fence[k] = w->known_fence[k] > known_fence[k] ? w->known_fence[k] : known_fence[k];
    }
}

void order_learn(Warp *w, const uint32_t *known, const uint32_t *known_fence)
{
    for (int k = 0; k < AGENTS; k++) {
        w->known[k] = w->known[k] > known[k] ? w->known[k] : known[k];
        w->known_fence[k] = w->known_fence[k] > known_fence[k] ? w->known_fence[k] : known_fence[k];
    }
}

void order_met(Warp *w) { w->synced = w->block->now++; }

void order_fence(Warp *w) { w->known_fence[w->index] = ++w->block->now; }
