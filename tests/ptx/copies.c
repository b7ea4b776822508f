/* copies.c - copies to shared memory that threads wait for: cp.async in groups, boxes of tensor maps that a barrier counts.
 *
 * The one idea: a copy that was begun is done when its wait says so and no earlier (LATE), at once, or by chance; until its
 *      wait what it writes is under way, and nobody may touch it.
 */
#include "code.h"

#include <stdlib.h>
#include <string.h>

static bool now(Block *b) { return b->late == AT_ONCE || (b->late == BY_CHANCE && chance(b, 2)); }

static uint64_t address(const Warp *w, const Inst *i, int k, int lane)
{
    return i->mods >> 63 && k == 0 ? AT(uint32_t, k)[lane] : AT(uint64_t, k)[lane];
}

/* ---- cp.async ---- */

static void move(Warp *w, const Copy *c)
{
    char *to = w->block->shared + c->to;
    memcpy(to, (const char *)(uintptr_t)c->from, c->from_bytes);
    memset(to + c->from_bytes, 0, c->bytes - c->from_bytes);
}

static void begin(Warp *w, const Inst *i, int lane, uint32_t bytes, uint32_t from_bytes)
{
    Block *b = w->block;
    const uint64_t to = address(w, i, 0, lane), from = AT(uint64_t, 1)[lane];
    Copy c = {.to = (uint32_t)to,
              .bytes = bytes,
              .from = from,
              .from_bytes = from_bytes < bytes ? from_bytes : bytes,
              .lane = (uint8_t)lane,
              .group = w->committed[lane]};
    shared_check(w, i, to > UINT32_MAX ? UINT32_MAX : (uint32_t)to, bytes, bytes);
    if (from % bytes)
        fault(w, i, "a copy from an address that is no multiple of %u", bytes);
    if (c.from_bytes)
        global_at(w, i, from, c.from_bytes, false);
    for (uint32_t k = 0; k < bytes; k++)
        if (b->state[to + k] == IN_FLIGHT || b->state[to + k] == OF_BARRIER)
            fault(w, i, "a copy to byte %u of shared memory, which is another's", (uint32_t)to + k);
    order_touch(w, i, lane, c.to, bytes, WRITES);
    memset(b->state + to, IN_FLIGHT, bytes);
    if (now(b))
        move(w, &c);
    else
        memset(b->shared + to, 0xff, bytes); /* not a number, until it comes */
    if (w->n_copy == w->copy_room) {
        w->copy_room = w->copy_room ? 2 * w->copy_room : 256;
        w->copy = realloc(w->copy, w->copy_room * sizeof *w->copy);
    }
    w->copy[w->n_copy++] = c;
}

Run copy_async, copy_async_part, copy_commit, copy_wait, copy_wait_all;
/* The second address has the shift that the parser left: none stands in these texts. */
void copy_async(Warp *w, const Inst *i)
{
    for (uint32_t m = w->mask; m; m &= m - 1)
        begin(w, i, __builtin_ctz(m), i->at[2], i->at[2]);
}
void copy_async_part(Warp *w, const Inst *i)
{
    for (uint32_t m = w->mask; m; m &= m - 1)
        begin(w, i, __builtin_ctz(m), i->at[2], AT(uint32_t, 3)[__builtin_ctz(m)]);
}
void copy_commit(Warp *w, const Inst *i)
{
    (void)i;
    for (uint32_t m = w->mask; m; m &= m - 1)
        w->committed[__builtin_ctz(m)]++;
}

static void finish(Warp *w, const Inst *i, uint32_t left, bool all)
{
    size_t kept = 0;
    for (size_t k = 0; k < w->n_copy; k++) {
        const Copy c = w->copy[k];
        if (!(w->mask >> c.lane & 1) || (!all && c.group + left >= w->committed[c.lane])) {
            w->copy[kept++] = c;
            continue;
        }
        move(w, &c);
        memset(w->block->state + c.to, WRITTEN, c.bytes);
        order_touch(w, i, c.lane, c.to, c.bytes, WRITES);
    }
    w->n_copy = kept;
}
void copy_wait(Warp *w, const Inst *i) { finish(w, i, i->at[0], false); }
void copy_wait_all(Warp *w, const Inst *i) { finish(w, i, 0, true); }

void copies_end(Warp *w)
{
    w->n_copy = 0;
    memset(w->committed, 0, sizeof w->committed);
}

/* ---- barriers that count arrivals and bytes ---- */

static MBarrier *barrier_at(Warp *w, const Inst *i, uint64_t at)
{
    Block *b = w->block;
    for (size_t k = 0; k < b->n_mbarrier; k++)
        if (b->mbarrier[k].at == at)
            return &b->mbarrier[k];
    fault(w, i, "no barrier was made at byte %llu of shared memory", (unsigned long long)at);
}

/* Does this warp know that it was made? */
static void barrier_known(Warp *w, const Inst *i, const MBarrier *m)
{
    if (m->made_by != (uint32_t)w->index && m->made > w->known[m->made_by])
        fault(w, i, "a barrier that warp %u made, and nothing is between", m->made_by);
}

Run mbarrier_init, mbarrier_arrive, mbarrier_expect, mbarrier_try, proxy_fence, box_begin, registers_give;
void mbarrier_init(Warp *w, const Inst *i)
{
    Block *b = w->block;
    for (uint32_t l = w->mask; l; l &= l - 1) {
        const int lane = __builtin_ctz(l);
        const uint64_t at = address(w, i, 0, lane) + (uint64_t)i->shift;
        shared_check(w, i, (uint32_t)at, 8, 8);
        if (b->n_mbarrier == MBARRIERS || b->state[at] == OF_BARRIER)
            fault(w, i, "too many barriers, or one that is there is made again");
        order_touch(w, i, lane, (uint32_t)at, 8, WRITES);
        memset(b->state + at, OF_BARRIER, 8);
        const uint32_t n = AT(uint32_t, 1)[lane];
        if (!n || n > (1u << 20) - 1)
            fault(w, i, "a barrier of %u arrivals", n);
        b->mbarrier[b->n_mbarrier++] =
            (MBarrier){.at = (uint32_t)at, .count = n, .pending = n, .made_by = (uint32_t)w->index, .made = b->now};
    }
}

static void wake(Block *b)
{
    for (int v = 0; v < b->n_warp; v++)
        for (int k = 0; k < b->warp[v].n_piece; k++)
            b->warp[v].piece[k].idle = false;
}

static void complete(Block *b, MBarrier *m)
{
    if (m->pending || m->bytes)
        return;
    m->phase++;
    m->pending = m->count;
    wake(b);
}

static uint64_t address_1(const Warp *w, const Inst *i, int lane)
{
    return i->mods >> 63 ? AT(uint32_t, 1)[lane] : AT(uint64_t, 1)[lane];
}
void mbarrier_arrive(Warp *w, const Inst *i) { mbarrier_expect(w, i); }
void mbarrier_expect(Warp *w, const Inst *i)
{
    for (uint32_t l = w->mask; l; l &= l - 1) {
        const int lane = __builtin_ctz(l);
        MBarrier *m = barrier_at(w, i, address_1(w, i, lane) + (uint64_t)i->shift);
        barrier_known(w, i, m);
        if (!m->pending)
            fault(w, i, "more threads arrive at a barrier than it was made for");
        m->bytes += i->at[2] ? (int64_t)AT(uint32_t, 2)[lane] : 0;
        m->pending--;
        order_leave(w, m->known, m->known_fence);
        complete(w->block, m);
    }
}
/* True when the phase of that parity is over: it is not the one that is under way. */
void mbarrier_try(Warp *w, const Inst *i)
{
    uint32_t *p = AT(uint32_t, 0);
    w->missed = true;
    for (uint32_t l = w->mask; l; l &= l - 1) {
        const int lane = __builtin_ctz(l);
        const MBarrier *m = barrier_at(w, i, address_1(w, i, lane) + (uint64_t)i->shift);
        barrier_known(w, i, m);
        const bool over = (m->phase & 1) != (AT(uint32_t, 2)[lane] & 1);
        *p = (*p & ~(1u << lane)) | (uint32_t)over << lane;
        if (over)
            order_learn(w, m->known, m->known_fence);
        w->missed = w->missed && !over;
    }
}

void proxy_fence(Warp *w, const Inst *i)
{
    (void)i;
    order_fence(w);
}

/* ---- boxes ---- */

enum { LINE = 128, PIECE = 16, ELEMENT = 2 };

static uint32_t box_bytes(const PtxMap *m) { return m->box[0] * m->box[1] * m->box[2] * m->box[3] * ELEMENT; }

void box_begin(Warp *w, const Inst *i)
{
    Block *b = w->block;
    for (uint32_t l = w->mask; l; l &= l - 1) {
        const int lane = __builtin_ctz(l);
        const uint64_t parameter = IN_WINDOW(AT(uint64_t, 1)[lane]);
        const uint32_t to = AT(uint32_t, 0)[lane], barrier = AT(uint32_t, 2)[lane];
        Box x = {.to = to, .barrier = barrier, .by = i, .warp = (uint16_t)w->index};
        for (size_t k = 0; k < b->launch->n_map; k++)
            if (b->f->parameter[b->f->n_parameter - b->launch->n_map + k].at == parameter)
                x.map = &b->launch->map[k];
        if (!x.map || WINDOW_OF(AT(uint64_t, 1)[lane]) != PARAM_WINDOW)
            fault(w, i, "a box of no tensor map");
        for (int d = 0; d < PTX_RANK; d++)
            x.at[d] = ((const int32_t *)(const void *)(w->file + b->f->list[i->at[OPERANDS - 1] + (uint32_t)d]))[lane];
        const uint32_t bytes = box_bytes(x.map);
        const MBarrier *m = barrier_at(w, i, barrier);
        x.agent = (uint16_t)(MAX_WARPS + (m - b->mbarrier));
        barrier_known(w, i, m);
        if (m->made >= w->known_fence[m->made_by])
            fault(w, i, "a copy is told of a barrier that was made without a fence behind it");
        shared_check(w, i, to, bytes, LINE);
        for (uint32_t k = 0; k < bytes; k++)
            if (b->state[to + k] == IN_FLIGHT || b->state[to + k] == OF_BARRIER)
                fault(w, i, "a box to byte %u of shared memory, which is another's", to + k);
        order_box(b, &x, to, bytes);
        memset(b->state + to, IN_FLIGHT, bytes);
        memset(b->shared + to, 0xff, bytes);
        if (b->n_box == BOXES)
            fault(w, i, "too many boxes under way");
        b->box[b->n_box++] = x;
        if (now(b))
            box_finish(b, b->n_box - 1);
    }
}

/* The bytes come: rows of the box one behind the other, the pieces of a line in the places that the bits of its address
 * say; zeros for what the tensor has not. */
void box_finish(Block *b, size_t which)
{
    const Box x = b->box[which];
    const PtxMap *m = x.map;
    Warp *w = &b->warp[x.warp];
    MBarrier *barrier = barrier_at(w, x.by, x.barrier);
    uint32_t line = 0;
    if (m->box[0] * ELEMENT != LINE)
        fault(w, x.by, "a box whose rows are no lines of %d bytes", LINE);
    b->box[which] = b->box[--b->n_box];
    for (uint32_t k3 = 0; k3 < m->box[3]; k3++)
        for (uint32_t k2 = 0; k2 < m->box[2]; k2++)
            for (uint32_t k1 = 0; k1 < m->box[1]; k1++, line++)
                for (uint32_t k0 = 0; k0 < m->box[0]; k0++) {
                    const int64_t at[] = {x.at[0] + (int64_t)k0, x.at[1] + (int64_t)k1, x.at[2] + (int64_t)k2,
                                          x.at[3] + (int64_t)k3};
                    uint64_t from = (uintptr_t)m->at;
                    uint32_t to = x.to + line * LINE + k0 * ELEMENT;
                    bool there = true;
                    for (int d = 0; d < PTX_RANK; d++) {
                        there = there && at[d] >= 0 && at[d] < (int64_t)m->extent[d];
                        from += (uint64_t)at[d] * m->stride[d];
                    }
                    to ^= (to / LINE % 8) * PIECE;
                    if (there)
                        memcpy(b->shared + to, global_at(w, x.by, from, ELEMENT, false), ELEMENT);
                    else
                        memset(b->shared + to, 0, ELEMENT);
                }
    memset(b->state + x.to, WRITTEN, box_bytes(m));
    barrier->bytes -= box_bytes(m);
    barrier->known[x.agent] = b->now++;
    complete(b, barrier);
}

/* ---- registers that groups give to each other ---- */

static uint32_t asked_registers(Warp *w, const Inst *i)
{
    const uint32_t n = i->at[0];
    if (n % 8 || n < 24 || n > 256)
        fault(w, i, "%u registers of a thread", n);
    return n;
}
void registers_give(Warp *w, const Inst *i)
{
    const uint32_t n = asked_registers(w, i);
    if (n > w->registers)
        fault(w, i, "%u registers are left of %u", n, w->registers);
    w->block->free_registers += (w->registers - n) * LANES;
    w->registers = n;
    wake(w->block);
}
/* false: not yet */
bool setmaxnreg_take(Warp *w, const Inst *i)
{
    const uint32_t n = asked_registers(w, i);
    if (n < w->registers)
        fault(w, i, "%u registers are taken by threads that have %u", n, w->registers);
    const uint32_t more = (n - w->registers) * LANES;
    if (more > w->block->free_registers)
        return false;
    w->block->free_registers -= more;
    w->registers = n;
    return true;
}
