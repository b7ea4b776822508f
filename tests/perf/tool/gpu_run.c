/* gpu_run.c - see gpu_run.h: control flow, memory, counts. What is left in registers: gpu_op.c.
 *
 * Threads of a warp that are at one place are a group. The group that is furthest behind goes first; groups join where
 * the code says so (BSYNC, WARPSYNC, a barrier) or when they meet. Warps take turns between barriers.
 */
#include "gpu_build.h"

#include <math.h>
#include <stdio.h>

enum {
    ROOM = 2048 /* of shared memory in front of a kernel's own: 1 KiB that the system keeps, and what is rounded up */
};

static bool fail(Warp *w, const char *why)
{
    snprintf(w->block->why, 256, "%s", why);
    return false;
}

/* ---- memory ---- */

/* Of the memory operand of an instruction. */
static void addresses(const Warp *w, const SassOperand *o, bool global, uint64_t out[LANES])
{
    uint64_t base = (uint64_t)o->imm;
    if (o->uniform != NO_REGISTER && o->uniform < RZ)
        base += o->uniform_wide ? (uint64_t)w->u[o->uniform + 1] << 32 | w->u[o->uniform] : w->u[o->uniform];
    for (int i = 0; i < LANES; i++) {
        uint64_t a = base;
        if (o->reg != NO_REGISTER && o->reg < RZ)
            a += o->wide ? (uint64_t)w->r[o->reg + 1][i] << 32 | w->r[o->reg][i]
                         : (uint64_t)w->r[o->reg][i] * (o->bank ? o->bank : 1);
        out[i] = global ? a : a & 0xffffffffu;
    }
}

/* Cycles of shared memory: a cycle serves the threads of 128 bytes, each bank one of its words. */
static unsigned wavefronts(const uint64_t at[LANES], uint32_t mask, unsigned bytes, unsigned *least)
{
    unsigned together = bytes >= 16 ? 8 : bytes == 8 ? 16 : 32, cycles = 0, words = bytes < 4 ? 1 : bytes / 4;
    *least = 0;
    for (unsigned first = 0; first < LANES; first += together) {
        uint64_t seen[32][32];
        unsigned n[32] = {0}, most = 0;
        for (unsigned i = first; i < first + together; i++)
            for (unsigned k = 0; k < words && mask >> i & 1; k++) {
                uint64_t word = at[i] / 4 + k;
                unsigned bank = word % 32, j = 0;
                while (j < n[bank] && seen[bank][j] != word)
                    j++;
                if (j == n[bank] && n[bank] < 32)
                    seen[bank][n[bank]++] = word;
                most = n[bank] > most ? n[bank] : most;
            }
        cycles += most;
        *least += most > 0;
    }
    return cycles;
}

/* Different pieces of so many bytes that the threads' accesses touch; which they are, in `seen`. */
static unsigned pieces(const uint64_t at[LANES], uint32_t mask, unsigned bytes, unsigned size, uint64_t seen[SECTORS])
{
    unsigned n = 0;
    for (unsigned i = 0; i < LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        for (uint64_t p = at[i] / size; p <= (at[i] + bytes - 1) / size && n < SECTORS; p++) {
            unsigned j = n;
            while (j > 0 && seen[j - 1] != p)
                j--;
            if (!j)
                seen[n++] = p;
        }
    }
    return n;
}

/* Where a sector is noted as one that was read before: its line there, with a bit for it. */
static uint64_t *ever_read(WalkBlock *b, uint64_t sector, uint64_t *line, uint64_t *bit)
{
    *line = sector / 4 + 1;
    *bit = 1ull << sector % 4;
    return &b->seen[(*line * 0x9e3779b97f4a7c15ull >> 32) % GPU_SEEN];
}

static void note(uint64_t *at, uint64_t line, uint64_t bit) { *at = (*at >> 4 == line ? *at : line << 4) | bit; }

/* How far a sector that is read is away: 0 in the first-level cache, 1 read before, 2 never. A line has one place. */
static int look_up(WalkBlock *b, uint64_t sector)
{
    uint64_t line, bit, *ever = ever_read(b, sector, &line, &bit),
                        *first = &b->line[(line * 0x9e3779b97f4a7c15ull >> 32) % b->lines];
    bool near = *first >> 4 == line && *first & bit, before = *ever >> 4 == line && *ever & bit;
    note(first, line, bit);
    note(ever, line, bit);
    return near ? 0 : before ? 1 : 2;
}

static void count_global(Warp *w, const uint64_t at[LANES], uint32_t mask, unsigned bytes, bool reads, bool writes)
{
    GpuCounts *c = w->block->sum;
    const GpuLaunch *l = w->block->l;
    uint64_t seen[SECTORS];
    for (int i = 0; i < LANES && l->touch; i++)
        if (mask >> i & 1)
            l->touch(l->toucher, at[i], bytes, writes);
    double asked = (double)bytes * __builtin_popcount(mask);
    unsigned lines = pieces(at, mask, bytes, 128, seen), sectors = pieces(at, mask, bytes, 32, seen);
    int far = 0;
    for (unsigned i = 0; i < sectors && reads; i++) {
        int this = look_up(w->block, seen[i]);
        c->sectors_missed += this > 0;
        far = this > far ? this : far;
    }
    w->far = far;
    c->lines += lines ? lines : 1;
    c->sectors_read += reads ? sectors : 0;
    c->sectors_written += writes ? sectors : 0;
    c->bytes_read += reads ? asked : 0;
    c->bytes_written += writes ? asked : 0;
}

/* When what was just asked of global memory is there. */
static uint64_t arrival(const Warp *w)
{
    const GpuLatency *l = &w->block->l->latency;
    return w->clock + (w->far == 0 ? l->first : w->far == 1 ? l->second : l->global);
}

static void load_global(Warp *w, const Sass *s, uint32_t mask)
{
    const GpuLaunch *l = w->block->l;
    uint64_t at[LANES];
    addresses(w, &s->at[s->results], true, at);
    count_global(w, at, mask, s->bytes, true, false);
    for (unsigned word = 0; word < (s->bytes + 3u) / 4u; word++) {
        uint32_t value[LANES] = {0};
        for (int i = 0; i < LANES; i++)
            if (mask >> i & 1) {
                uint64_t from = at[i] + 4 * word;
                value[i] = gpu_cut((uint32_t)(l->load(l->user, from & ~7ull) >> 8 * (from & 7)), s);
            }
        gpu_put(w, &s->at[0], word, mask, value);
    }
    for (unsigned i = 0; i < s->n_written; i++)
        w->ready[s->written[i]] = arrival(w);
}

static void store_global(Warp *w, const Sass *s, uint32_t mask)
{
    const GpuLaunch *l = w->block->l;
    uint64_t at[LANES];
    addresses(w, &s->at[s->results], true, at);
    bool returns = s->op == SO_ATOM || s->op == SO_RED;
    count_global(w, at, mask, s->bytes, returns, true);
    for (unsigned word = 0; word < (s->bytes + 3u) / 4u && s->op == SO_ST && l->store; word += 2) {
        uint32_t low[LANES], high[LANES] = {0};
        unsigned left = s->bytes - 4 * word;
        gpu_fetch(w, &s->at[1], word, low);
        if (left > 4)
            gpu_fetch(w, &s->at[1], word + 1, high);
        for (int i = 0; i < LANES; i++)
            if (mask >> i & 1)
                l->store(l->user, at[i] + 4 * word, left < 8 ? left : 8, (uint64_t)high[i] << 32 | low[i]);
    }
}

static void count_shared(Warp *w, const uint64_t at[LANES], uint32_t mask, unsigned bytes)
{
    unsigned least, cycles = wavefronts(at, mask, bytes, &least);
    w->block->sum->wavefronts += cycles;
    w->block->sum->conflicts += cycles - least;
}

static bool inside(Warp *w, const uint64_t at[LANES], uint32_t mask, unsigned bytes)
{
    for (int i = 0; i < LANES; i++)
        if (mask >> i & 1 && at[i] + bytes > w->block->l->shared + ROOM)
            return fail(w, "an access lies outside of its block's shared memory");
    return true;
}

/* Between registers and what each thread has at from[i]. */
static void move_words(Warp *w, const Sass *s, uint32_t mask, bool stores, uint8_t *const from[LANES])
{
    for (unsigned word = 0; word < (s->bytes + 3u) / 4u; word++) {
        uint32_t value[LANES] = {0}, size = s->bytes < 4 ? s->bytes : 4;
        if (stores)
            gpu_fetch(w, &s->at[1], word, value);
        for (int i = 0; i < LANES; i++) {
            if (!(mask >> i & 1))
                continue;
            if (stores)
                memcpy(from[i] + 4 * word, &value[i], size);
            else
                memcpy(&value[i], from[i] + 4 * word, size);
        }
        for (int i = 0; i < LANES && !stores; i++)
            value[i] = gpu_cut(value[i], s);
        if (!stores)
            gpu_put(w, &s->at[0], word, mask, value);
    }
}

static bool touch_shared(Warp *w, const Sass *s, uint32_t mask, bool stores)
{
    uint64_t at[LANES];
    uint8_t *from[LANES] = {0};
    addresses(w, &s->at[s->results], false, at);
    if (!inside(w, at, mask, s->bytes))
        return false;
    count_shared(w, at, mask, s->bytes);
    for (int i = 0; i < LANES; i++)
        if (mask >> i & 1)
            from[i] = w->block->shared + at[i];
    move_words(w, s, mask, stores, from);
    return true;
}

/* Rows of 16 bytes of 8 x 8 matrices of 16 bits; eight threads say where those of a matrix lie. */
static bool load_matrices(Warp *w, const Sass *s, uint32_t mask)
{
    uint64_t at[LANES];
    uint32_t rows = s->bytes / 16 * 8, of = rows >= LANES ? ~0u : (1u << rows) - 1;
    addresses(w, &s->at[1], false, at);
    if (!inside(w, at, mask & of, 16))
        return false;
    count_shared(w, at, mask & of, 16);
    gpu_compute(w, s, mask);
    return true;
}

/* An atomic addition to shared memory, one thread after another. */
static bool add_shared(Warp *w, const Sass *s, uint32_t mask)
{
    uint64_t at[LANES];
    uint32_t by[LANES], before[LANES] = {0};
    bool counts = strstr(s->name, "POPC.INC") != NULL;
    addresses(w, &s->at[1], false, at);
    if (!inside(w, at, mask, 4))
        return false;
    count_shared(w, at, mask, 4);
    if (!counts && !strstr(s->name, ".ADD")) {
        gpu_compute(w, s, mask);
        return true;
    }
    gpu_fetch(w, &s->at[2], 0, by);
    for (int i = 0; i < LANES; i++)
        if (mask >> i & 1) {
            memcpy(&before[i], w->block->shared + at[i], 4);
            uint32_t after = before[i] + (counts ? 1 : by[i]);
            memcpy(w->block->shared + at[i], &after, 4);
        }
    gpu_put(w, &s->at[0], 0, mask, before);
    return true;
}

/* From global to shared memory, past the registers; 0 where the predicate behind is false. */
static bool copy_shared(Warp *w, const Sass *s, uint32_t mask)
{
    uint64_t to[LANES], from[LANES];
    uint32_t reads = mask & (s->n > 2 ? gpu_predicate(w, &s->at[2]) : ~0u);
    addresses(w, &s->at[0], false, to);
    addresses(w, &s->at[1], true, from);
    for (int l = 0; l < LANES; l++) /* how many bytes are left out is said by where the address lies in its piece */
        from[l] -= from[l] % s->bytes;
    if (!inside(w, to, mask, s->bytes))
        return false;
    GpuCounts *c = w->block->sum;
    const double lines = c->lines, cycles = c->wavefronts;
    count_global(w, from, reads, s->bytes, true, false);
    count_shared(w, to, mask, s->bytes);
    /* Lines are looked up in one stage while data that have come pass another: the longer of both counts. */
    const double asked = c->lines - lines, moved = c->wavefronts - cycles;
    c->lines = lines + (asked > moved ? asked - moved : 0);
    w->copying = arrival(w) > w->copying ? arrival(w) : w->copying;
    return true;
}

/* ---- barriers that count bytes, and copies by maps ---- */

static WalkBarrier *barrier_at(WalkBlock *b, uint64_t at)
{
    for (uint32_t i = 0; i < b->n_barrier; i++)
        if (b->barrier[i].at == at)
            return &b->barrier[i];
    return NULL;
}

/* Those that wait for it go on when the last of a phase has come. */
static void end_phase(WalkBlock *b, WalkBarrier *x)
{
    if (x->left || x->bytes)
        return;
    x->over = x->last;
    x->last = 0;
    x->phase++;
    x->left = x->count;
    for (uint32_t k = 0; k < b->n_warp; k++) {
        Warp *w = &b->warp[k];
        for (uint32_t i = 0; i < w->n_group; i++) {
            WalkGroup *g = &w->group[i];
            if (g->state != WAITS_FOR_PHASE || g->barrier != (uint32_t)(x - b->barrier) || g->want == x->phase % 2)
                continue;
            g->state = RUNS;
            w->clock = x->over > w->clock ? x->over : w->clock;
        }
    }
}

/* Is this a question whether a phase is over that is not? Then the threads ask again when it is. */
static bool waits_for_phase(Warp *w, WalkGroup *g, const Sass *s)
{
    uint64_t at[LANES];
    uint32_t parity[LANES];
    const int lane = __builtin_ctz(g->mask);
    if (s->op != SO_SYNCS || !strstr(s->name, ".PHASECHK"))
        return false;
    addresses(w, &s->at[1], false, at);
    gpu_fetch(w, &s->at[2], 0, parity);
    const WalkBarrier *x = barrier_at(w->block, at[lane]);
    if (!x || x->phase % 2 != parity[lane] >> 31) {
        w->clock = x && x->over > w->clock && x->phase ? x->over : w->clock;
        return false;
    }
    g->state = WAITS_FOR_PHASE;
    g->barrier = (uint32_t)(x - w->block->barrier);
    g->want = parity[lane] >> 31;
    return true;
}

static bool synchronize(Warp *w, const Sass *s, uint32_t mask)
{
    WalkBlock *b = w->block;
    uint64_t at[LANES];
    uint32_t value[LANES];
    if (!mask)
        return true;
    addresses(w, &s->at[1], false, at);
    gpu_fetch(w, &s->at[2], 0, value);
    if (!inside(w, at, mask, 8))
        return false;
    WalkBarrier *x = barrier_at(b, at[__builtin_ctz(mask)]);
    if (strstr(s->name, ".EXCH")) { /* twice what is missing of 2^20 arrivals */
        if (!x && b->n_barrier == MBARRIERS)
            return fail(w, "a block has more barriers in shared memory than are known here");
        x = x ? x : &b->barrier[b->n_barrier++];
        *x = (WalkBarrier){.at = at[__builtin_ctz(mask)], .count = (1u << 20) - (value[__builtin_ctz(mask)] >> 1)};
        x->left = x->count;
        return true;
    }
    if (!x)
        return fail(w, "a barrier in shared memory that nobody has made");
    if (strstr(s->name, ".PHASECHK")) {
        gpu_put_predicate(w, &s->at[0], mask, ~0u);
        return true;
    }
    for (int i = 0; i < LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        if (!x->left)
            return fail(w, "more threads arrive at a barrier in shared memory than it counts");
        x->left--;
        x->bytes += strstr(s->name, ".A1T0") ? 0 : (int64_t)value[i];
        x->last = w->clock > x->last ? w->clock : x->last;
        end_phase(b, x);
    }
    return true;
}

/* Like look_up(), of what goes past the first-level cache. */
static int look_far(WalkBlock *b, uint64_t sector)
{
    uint64_t line = sector / 4 + 1, bit = 1ull << sector % 4, mixed = line * 0x9e3779b97f4a7c15ull >> 32;
    uint64_t *ever = &b->seen[mixed % GPU_SEEN];
    bool before = *ever >> 4 == line && *ever & bit;
    *ever = (*ever >> 4 == line ? *ever : line << 4) | bit;
    return before ? 1 : 2;
}

/* Bytes of one row of a box, of which some may not be there. */
static int copy_row(Warp *w, uint64_t from, uint64_t bytes)
{
    WalkBlock *b = w->block;
    GpuCounts *c = b->sum;
    int far = 0;
    if (!bytes)
        return far;
    if (b->l->touch)
        b->l->touch(b->l->toucher, from, (unsigned)bytes, false);
    for (uint64_t p = from / 32; p <= (from + bytes - 1) / 32; p++) {
        int this = look_far(b, p);
        c->sectors_read++;
        c->sectors_missed++;
        far = this > far ? this : far;
    }
    c->bytes_read += (double)bytes;
    return far;
}

/* UTMALDG [place, barrier, coordinates], [map]. Bytes go through the second-level cache and shared memory like those of other copies;
 * that nobody has to ask for each of them is what it saves. */
static bool copy_by_map(Warp *w, const Sass *s, uint32_t mask)
{
    WalkBlock *b = w->block;
    const GpuLaunch *l = b->l;
    const uint32_t *u = &w->u[s->at[0].uniform], *address = &w->u[s->at[1].uniform];
    const GpuMap *m = NULL;
    if (!mask)
        return true;
    for (size_t i = 0; i < l->n_map; i++)
        m = (((uint64_t)address[1] << 32 | address[0]) == l->map[i].at) ? &l->map[i] : m;
    WalkBarrier *x = barrier_at(b, u[1]);
    if (!m || !x)
        return fail(w, m ? "a copy for a barrier that nobody has made" : "a copy by a map that is no argument");
    uint64_t rows = 1, line = m->box[0] * m->item;
    for (unsigned k = 1; k < m->rank; k++)
        rows *= m->box[k];
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t at = r, from = m->address;
        bool there = true;
        for (unsigned k = 1; k < m->rank; k++, at /= m->box[k - 1]) {
            int64_t i = (int32_t)u[2 + k] + (int64_t)(at % m->box[k]);
            there = there && i >= 0 && i < m->dim[k];
            from += (uint64_t)(i * m->stride[k]);
        }
        int64_t first = (int32_t)u[2], end = first + (int64_t)m->box[0];
        first = first > 0 ? first : 0;
        end = end < m->dim[0] ? end : m->dim[0];
        int far =
            copy_row(w, from + (uint64_t)first * m->item, there && end > first ? (uint64_t)(end - first) * m->item : 0);
        w->far = far > w->far || !r ? far : w->far;
    }
    b->sum->wavefronts += (double)(rows * line) / 128;
    const uint64_t start = b->copier_free > w->clock ? b->copier_free : w->clock,
                   there = start + rows * line / GPU_COPIER + GPU_COPY_BEGINS;
    b->copier_free = start + rows * line / GPU_COPIER;
    x->bytes -= (int64_t)(rows * line);
    const uint64_t come = there + (w->far == 2 ? l->latency.global : l->latency.second);
    x->last = come > x->last ? come : x->last;
    end_phase(b, x);
    return true;
}

static bool touch_local(Warp *w, const Sass *s, uint32_t mask, bool stores)
{
    uint64_t at[LANES];
    uint8_t *from[LANES] = {0};
    const uint64_t frame = (uint64_t)w->block->l->frame;
    addresses(w, &s->at[s->results], false, at);
    for (uint64_t i = 0; i < LANES; i++) {
        if (!(mask >> i & 1))
            continue;
        if (at[i] + s->bytes > frame)
            return fail(w, "an access lies outside of its thread's stack");
        from[i] = w->local + i * frame + at[i];
    }
    move_words(w, s, mask, stores, from);
    w->block->sum->lines += (s->bytes + 3u) / 4u;
    return true;
}

/* Lines come to the second-level cache while nobody waits: they are there when they are read, long after. */
static void prefetch(Warp *w, const Sass *s, uint32_t mask)
{
    const GpuLaunch *l = w->block->l;
    uint64_t at[LANES], seen[SECTORS], line, bit;
    addresses(w, &s->at[0], true, at);
    for (int i = 0; i < LANES; i++)
        if (l->touch && mask >> i & 1)
            l->touch(l->toucher, at[i], 1, false);
    unsigned lines = pieces(at, mask, 1, 128, seen);
    w->block->sum->lines += lines;
    for (unsigned i = 0; i < 4 * lines; i++) {
        uint64_t *ever = ever_read(w->block, 4 * seen[i / 4] + i % 4, &line, &bit);
        note(ever, line, bit);
    }
}

static bool touch_memory(Warp *w, const Sass *s, uint32_t mask)
{
    if (!mask)
        return true;
    switch (s->op) {
    case SO_LD: load_global(w, s, mask); return true;
    case SO_ST:
    case SO_RED: store_global(w, s, mask); return true;
    case SO_PREFETCH: prefetch(w, s, mask); return true;
    case SO_LDS: return touch_shared(w, s, mask, false);
    case SO_STS: return touch_shared(w, s, mask, true);
    case SO_LDSM: return load_matrices(w, s, mask);
    case SO_LDGSTS: return copy_shared(w, s, mask);
    case SO_SYNCS: return synchronize(w, s, mask);
    case SO_MAP_COPY: return copy_by_map(w, s, mask);
    case SO_LDL: return touch_local(w, s, mask, false);
    case SO_STL: return touch_local(w, s, mask, true);
    default:
        if (s->class == SASS_SHARED)
            return add_shared(w, s, mask);
        store_global(w, s, mask);
        gpu_compute(w, s, mask);
        return true;
    }
}

/* ---- waiting ---- */

static uint32_t latency_of(const GpuLatency *l, const Sass *s)
{
    switch (s->op) {
    case SO_LD: return l->first; /* where memory is asked: what load_global() says */
    case SO_LDL: return l->first;
    case SO_ATOM: return l->second;
    case SO_LDS:
    case SO_LDSM:
    case SO_SYNCS: return l->shared;
    case SO_SHFL: return l->shuffle;
    case SO_MMA: return l->tensor;
    default: return s->unit == UNIT_XU ? l->special : l->plain;
    }
}

/* Cycles for which an instruction has its scheduler's part of a unit. */
static uint64_t busy(const GpuLaunch *l, const Sass *s)
{
    if (s->unit == UNIT_NONE || !l->lanes || !(l->lanes[s->unit] > 0))
        return 0;
    double work = s->unit == UNIT_TENSOR ? s->tensor : LANES;
    return (uint64_t)ceil(work * SCHEDULERS / l->lanes[s->unit]);
}

/* A warp issues in order, and an instruction waits for what it reads, for its scheduler and for its unit, which other warps want, too. */
static uint64_t when(const Warp *w, const Sass *s)
{
    const WalkBlock *b = w->block;
    const unsigned of = w->number % SCHEDULERS;
    uint64_t start = w->clock;
    for (unsigned i = 0; i < s->n_read; i++)
        start = w->ready[s->read[i]] > start ? w->ready[s->read[i]] : start;
    start = b->issue_free[of] > start ? b->issue_free[of] : start;
    return s->unit != UNIT_NONE && b->unit_free[of][s->unit] > start ? b->unit_free[of][s->unit] : start;
}

static void advance(Warp *w, const Sass *s)
{
    WalkBlock *b = w->block;
    const uint64_t start = when(w, s), there = start + latency_of(&b->l->latency, s);
    if (b->l->lanes) {
        b->issue_free[w->number % SCHEDULERS] = start + 1;
        if (s->unit != UNIT_NONE)
            b->unit_free[w->number % SCHEDULERS][s->unit] = start + busy(b->l, s);
    }
    w->clock = start + 1;
    for (unsigned i = 0; i < s->n_written; i++)
        w->ready[s->written[i]] = there;
}

static void count(Warp *w, const Sass *s, uint32_t at, uint32_t mask, uint32_t exec)
{
    GpuCounts *c = w->block->sum;
    c->slots++;
    c->class[s->class]++;
    c->unit[s->unit]++;
    c->partial += exec != ~0u && mask != ~0u;
    c->tensor += s->tensor;
    c->grouped += s->op == SO_GROUP_MMA ? s->tensor : 0;
    if (s->class == SASS_UNKNOWN) {
        c->unknown++;
        c->guess = c->guess ? c->guess : s->name;
    }
    if (w->block->each)
        w->block->each[at] += (uint64_t)__builtin_popcount(exec);
}

/* A warp's part of m64nNk16 has 16 rows, and its tensor core does 512 multiply-adds a cycle. A group of warps reads 64 rows and N
 * columns of 32 bytes from shared memory, 128 bytes a cycle. */
static void begin_product(Warp *w, const Sass *s)
{
    double columns = s->tensor / (16 * 16);
    uint64_t *const free = &w->block->unit_free[w->number % SCHEDULERS][UNIT_TENSOR];
    *free = (w->clock > *free ? w->clock : *free) + (uint64_t)(s->tensor / 512);
    const double cycles = (s->mode & SG_REGISTERS ? 0 : 16 * 32 / 128.0) + columns * 32 / 128 / 4;
    w->block->sum->wavefronts += cycles;
    w->block->sum->operands += cycles;
    if (s->mode & SG_LAST)
        w->grouped[w->groups++ % COPY_GROUPS] = *free + w->block->l->latency.tensor;
}

/* WARPGROUP.DEPBAR.LE gsb0, N waits until all groups of products but the last N are done. */
static void wait_for_products(Warp *w, const Sass *s)
{
    uint64_t left = s->n > 1 ? (uint64_t)s->at[1].imm : 0;
    if (w->groups > left && left < COPY_GROUPS) {
        uint64_t there = w->grouped[(w->groups - 1 - left) % COPY_GROUPS];
        w->clock = there > w->clock ? there : w->clock;
    }
}

/* DEPBAR.LE SB0, N waits until all groups of copies but the last N are there. */
static void wait_for_copies(Warp *w, const Sass *s)
{
    if (!strncmp(s->name, "WARPGROUP.DEPBAR", 16)) {
        wait_for_products(w, s);
        return;
    }
    if (!strncmp(s->name, "LDGDEPBAR", 9)) {
        w->copied[w->copies++ % COPY_GROUPS] = w->copying;
        return;
    }
    if (strncmp(s->name, "DEPBAR", 6) != 0 || s->n < 2)
        return;
    uint64_t left = (uint64_t)s->at[1].imm;
    if (w->copies > left && left < COPY_GROUPS) {
        uint64_t there = w->copied[(w->copies - 1 - left) % COPY_GROUPS];
        w->clock = there > w->clock ? there : w->clock;
    }
}

/* ---- control ---- */

static bool add_group(Warp *w, uint32_t mask, uint32_t at)
{
    if (!mask)
        return true;
    if (w->n_group == GROUPS)
        return fail(w, "the threads of a warp are at more places than there are threads");
    w->group[w->n_group++] = (WalkGroup){.mask = mask, .at = at};
    return true;
}

static void drop_group(Warp *w, uint32_t i) { w->group[i] = w->group[--w->n_group]; }

/* Threads that wait for all of a set: that it is complete is seen where somebody arrives or leaves. */
static void release(Warp *w)
{
    for (uint32_t i = 0; i < w->n_group; i++) {
        const WalkGroup *g = &w->group[i];
        if (g->state != WAITS_FOR_GROUP && g->state != WAITS_FOR_WARP)
            continue;
        bool by_group = g->state == WAITS_FOR_GROUP;
        uint32_t want = (by_group ? w->converge[g->barrier] : g->want) & w->alive, there = 0;
        for (uint32_t j = 0; j < w->n_group; j++)
            if (w->group[j].state == g->state && (!by_group || w->group[j].barrier == g->barrier))
                there |= w->group[j].mask;
        if (want & ~there)
            continue;
        uint32_t barrier = g->barrier;
        int state = (int)g->state;
        for (uint32_t j = 0; j < w->n_group; j++)
            if ((int)w->group[j].state == state && (!by_group || w->group[j].barrier == barrier)) {
                w->group[j].state = RUNS;
                w->group[j].at++;
            }
    }
}

/* The group that goes on: the one furthest behind, with all that stand where it does; -1: all wait. */
static int next_group(Warp *w)
{
    int best = -1;
    for (uint32_t i = 0; i < w->n_group; i++)
        if (w->group[i].state == RUNS && (best < 0 || w->group[i].at < w->group[best].at))
            best = (int)i;
    for (uint32_t i = w->n_group; best >= 0 && i-- > (uint32_t)best + 1;) /* those that stand there come later */
        if (w->group[i].state == RUNS && w->group[i].at == w->group[best].at) {
            w->group[best].mask |= w->group[i].mask;
            drop_group(w, i);
        }
    return best;
}

/* Threads of a group that jump: all of them, some, or none. */
static bool jump(Warp *w, WalkGroup *g, uint32_t taken, uint32_t to)
{
    if (taken == g->mask) {
        g->at = to;
        return true;
    }
    g->at++;
    g->mask &= ~taken;
    return add_group(w, taken, to);
}

static bool branch(Warp *w, WalkGroup *g, const Sass *s, uint32_t exec)
{
    for (unsigned i = 0; i < s->n; i++) {
        const SassOperand *o = &s->at[i];
        if (o->kind == SA_P || o->kind == SA_UP)
            exec &= gpu_predicate(w, o);
        if (o->kind == SA_UR && (strstr(s->name, ".DIV") || strstr(s->name, ".CONV"))) {
            bool together = g->mask == (w->u[o->reg < RZ ? o->reg : 0] & w->alive);
            exec = together == (strstr(s->name, ".CONV") != NULL) ? exec : 0;
        }
        if (o->kind == SA_LABEL)
            return jump(w, g, exec && strstr(s->name, ".ANY") ? g->mask : exec, (uint32_t)o->imm);
    }
    return exec ? fail(w, "a branch leads to a place that is computed") : jump(w, g, 0, 0);
}

static bool give_back(Warp *w, uint32_t i, const Sass *s, uint32_t exec)
{
    uint32_t left = exec;
    uint32_t from = w->group[i].at + 1, rest = w->group[i].mask & ~exec;
    drop_group(w, i);
    if (!add_group(w, rest, from))
        return false;
    while (left) {
        uint32_t to[LANES], same = 0;
        gpu_fetch(w, &s->at[0], 0, to);
        uint32_t first = to[__builtin_ctz(left)];
        for (int k = 0; k < LANES; k++)
            same |= (uint32_t)(left >> k & 1 && to[k] == first) << k;
        if (first / 16 >= w->block->l->code->n)
            return fail(w, "a function returns to a place outside of its kernel");
        left &= ~same;
        if (!add_group(w, same, first / 16))
            return false;
    }
    return true;
}

static bool wait(Warp *w, uint32_t i, const Sass *s, uint32_t exec)
{
    uint32_t rest = w->group[i].mask & ~exec, at = w->group[i].at;
    if (!exec) {
        w->group[i].at++;
        return true;
    }
    w->group[i].mask = exec;
    WalkGroup *g = &w->group[i];
    if (s->op == SO_BSYNC) {
        g->state = WAITS_FOR_GROUP;
        g->barrier = s->at[0].reg & 15;
    } else if (s->op == SO_WARPSYNC) {
        uint32_t of[LANES];
        gpu_fetch(w, &s->at[0], 0, of);
        g->state = WAITS_FOR_WARP;
        g->want = strstr(s->name, ".ALL") || !s->n ? ~0u : of[__builtin_ctz(exec)];
    } else {
        g->state = WAITS_FOR_BLOCK;
    }
    bool good = add_group(w, rest, at + 1);
    release(w);
    return good;
}

static bool control(Warp *w, uint32_t i, const Sass *s, uint32_t exec)
{
    WalkGroup *g = &w->group[i];
    switch (s->op) {
    case SO_BRA: return branch(w, g, s, exec);
    case SO_BSSY:
        w->converge[s->at[0].reg & 15] = g->mask;
        g->at++;
        return true;
    case SO_BREAK:
        w->converge[s->at[s->n - 1].reg & 15] &= ~exec;
        g->at++;
        release(w);
        return true;
    case SO_CALL:
        if (s->at[0].kind != SA_LABEL)
            return fail(w, "a function is called whose place is computed");
        return jump(w, g, exec, (uint32_t)s->at[0].imm);
    case SO_RET: return give_back(w, i, s, exec);
    case SO_EXIT:
        w->alive &= ~exec;
        g->mask &= ~exec;
        g->at++;
        if (!g->mask)
            drop_group(w, i);
        release(w);
        return true;
    case SO_BSYNC:
    case SO_WARPSYNC: return wait(w, i, s, exec);
    case SO_BAR:
        if (strstr(s->name, ".ARV")) {
            g->at++;
            return true;
        }
        return wait(w, i, s, exec);
    default: return fail(w, "a branch leads to a place that is computed");
    }
}

/* ---- a block ---- */

static bool step(Warp *w, uint32_t i)
{
    WalkGroup *g = &w->group[i];
    const SassKernel *code = w->block->l->code;
    if (g->at >= code->n)
        return fail(w, "the code runs on behind its end");
    const Sass *s = &code->at[g->at];
    uint32_t exec = g->mask;
    if (waits_for_phase(w, g, s))
        return true;
    if (s->guard != NO_REGISTER) {
        uint32_t p = w->p[s->guard - PREDICATE];
        exec &= s->guard_not ? ~p : p;
    }
    count(w, s, g->at, g->mask, exec);
    advance(w, s);
    if (s->op >= SO_BRA)
        return control(w, i, s, exec);
    g->at++;
    if (s->op == SO_NOTHING) {
        wait_for_copies(w, s);
        return true;
    }
    if (s->op >= SO_LD && s->op <= SO_MAP_COPY)
        return touch_memory(w, s, exec);
    if (s->op == SO_GROUP_MMA)
        begin_product(w, s);
    if (exec)
        gpu_compute(w, s, exec);
    return true;
}

/* The warp that is furthest behind, of those that do not wait; NULL: all do. `until`: where another one is. Where nothing waits for a
 * unit warps need no order. */
static Warp *next_warp(WalkBlock *b, uint64_t *until)
{
    Warp *first = NULL;
    *until = UINT64_MAX;
    for (uint32_t k = 0; k < b->n_warp; k++) {
        Warp *w = &b->warp[k];
        bool runs = false;
        for (uint32_t i = 0; i < w->n_group && !runs; i++)
            runs = w->group[i].state == RUNS;
        if (runs && !b->l->lanes)
            return w;
        if (!runs)
            continue;
        if (!first || w->clock < first->clock) {
            *until = first ? first->clock : *until;
            first = w;
        } else if (w->clock < *until) {
            *until = w->clock;
        }
    }
    return first;
}

/* One instruction after another, until another warp is further behind. */
static bool run_warp(Warp *w, uint64_t until)
{
    WalkBlock *b = w->block;
    for (int i; (i = next_group(w)) >= 0;) {
        const SassKernel *code = b->l->code;
        if (w->group[i].at < code->n)
            w->clock = when(w, &code->at[w->group[i].at]);
        if (w->clock > until || ++b->steps > b->l->most)
            return true;
        if (!step(w, (uint32_t)i))
            return false;
    }
    return true;
}

/* All warps wait at a barrier of the block, or have ended: they go on. False where somebody waits for something else. */
static bool meet(WalkBlock *b, bool *any)
{
    uint64_t last = 0;
    *any = false;
    for (uint32_t k = 0; k < b->n_warp; k++) {
        Warp *w = &b->warp[k];
        for (uint32_t i = 0; i < w->n_group; i++)
            if (w->group[i].state != WAITS_FOR_BLOCK)
                return fail(w, "threads of a warp wait for each other for ever");
        if (w->n_group) {
            *any = true;
            last = w->clock > last ? w->clock : last;
        }
    }
    for (uint32_t k = 0; k < b->n_warp && *any; k++) {
        Warp *w = &b->warp[k];
        if (!w->n_group)
            continue;
        w->clock = last + b->l->latency.barrier;
        for (uint32_t i = 0; i < w->n_group; i++) {
            w->group[i].state = RUNS;
            w->group[i].at++;
        }
    }
    b->sum->barriers += *any;
    return true;
}

static void begin(WalkBlock *b, Arena *arena)
{
    const GpuLaunch *l = b->l;
    for (uint32_t k = 0; k < b->n_warp; k++) {
        Warp *w = &b->warp[k];
        uint32_t threads = l->threads - k * LANES;
        w->block = b;
        w->number = k;
        w->alive = threads >= LANES ? ~0u : (1u << threads) - 1;
        w->p[7] = w->p[15] = ~0u;
        w->n_group = 1;
        w->group[0] = (WalkGroup){.mask = w->alive};
        w->local = l->frame > 0 ? NEW_ARRAY(arena, uint8_t, (size_t)l->frame * LANES) : NULL;
    }
}

bool gpu_run(Arena *arena, const GpuLaunch *l, uint32_t block, GpuCounts *sum, uint64_t *each, char why[256])
{
    WalkBlock b = {.l = l, .sum = sum, .block = block, .each = each, .why = why};
    ArenaMark mark = arena_mark(arena);
    b.n_warp = (l->threads + LANES - 1) / LANES;
    b.warp = NEW_ARRAY(arena, Warp, b.n_warp);
    b.shared = NEW_ARRAY(arena, uint8_t, (size_t)l->shared + ROOM + 16);
    b.lines = gpu_lines(l);
    b.line = l->near ? l->near : NEW_ARRAY(arena, uint64_t, b.lines);
    b.seen = l->seen ? l->seen : NEW_ARRAY(arena, uint64_t, GPU_SEEN);
    why[0] = 0;
    begin(&b, arena);
    bool good = true, any = true;
    while (good && any) {
        uint64_t until;
        for (Warp *w; good && b.steps <= l->most && (w = next_warp(&b, &until));)
            good = run_warp(w, until);
        if (b.steps > l->most) {
            sum->cut++;
            break;
        }
        good = good && meet(&b, &any);
    }
    uint64_t last = 0;
    for (uint32_t k = 0; k < b.n_warp; k++)
        last = b.warp[k].clock > last ? b.warp[k].clock : last;
    sum->cycles += (double)last;
    sum->blocks++;
    arena_reset(arena, mark);
    return good;
}
