/* mbarrier.h - barriers in shared memory that count bytes, copies by tensor maps, and registers of groups, as an emulator has them.
 *
 * In:  a part of cuemu.h, behind its fibers.     Out: twins of mbarrier, cp.async.bulk.tensor and setmaxnreg.
 * The one idea: who knows what. A thread knows of a phase that it is over when it has waited for it, and of what others have done before
 * they arrived there; behind a barrier of the block all know what anybody knew. Rules of the PTX ISA that a device breaks in silence
 * stop the launch, whatever the order of threads:
 *   - A barrier is made once, by one thread. Others use it behind a barrier of the block; copies, when that thread has executed
 *     fence.proxy.async. Nobody writes over it.
 *   - No more threads arrive in a phase than it counts, and copies bring no more bytes than it expects (here these are expected first).
 *   - What a copy brings is read, by products, by threads that know its phase to be over. A place is copied to when whoever asks for that
 *     knows the products that read it, and the copy before, to be over.
 *   - When a block ends no copy is under way, no byte is expected any more, and of each phase with bytes somebody knows that it is over.
 *   - A box lies at a multiple of 128 bytes; a map is an argument, with all that its making demands (rules.h).
 *   - setmaxnreg: 24 to 256 in steps of 8, by all warps of a group alike, down to give and up to take; a block begins with what 65,536
 *     registers leave for each of its threads, and who takes waits until so many were given.
 * Copies come at once, or as late as they may: when all threads wait for something, the first or, where the last threads go first, the last.
 */
#ifndef MBARRIER_H
#define MBARRIER_H

#include "rules.h"

namespace emu
{

enum { MBARRIERS = 32, MAP_COPIES = 128, WARPS_MAX = EMU_THREADS / 32 };

/* What is known: of each warp how many of its products are over, of each barrier how many of its phases. */
struct Known {
    uint32_t products[WARPS_MAX], phases[MBARRIERS];
};
struct Mbarrier {
    uint64_t at;     /* in shared memory */
    int count, left; /* arrivals of a phase, and those that are missing */
    int64_t expected, asked,
        come;             /* bytes in this phase: so many are expected, copies bring so many, and so many have come */
    uint32_t phase;       /* phases that are over */
    uint32_t bytes_until; /* phases of which the last one had bytes */
    int maker;
    unsigned made; /* which meeting of the block it was made behind */
    bool seen_by_copies;
    Known arriving, over; /* what those know who arrived in this phase; in phases that are over */
};
struct MapCopy {
    emu_map map; /* the argument goes with its thread */
    uint64_t to;
    int at[EMU_MAP_RANK], barrier;
};
/* A piece of 16 bytes: the last copy to it, as a phase of a barrier, and by warp the last product that has read it. */
struct Piece {
    uint32_t phase;
    int barrier; /* plus 1; 0: none */
};

EMU_VAR Mbarrier mbarrier[MBARRIERS];
EMU_VAR int mbarriers;
EMU_VAR MapCopy map_copy[MAP_COPIES];
EMU_VAR int map_copies;
EMU_VAR Known known[EMU_THREADS];
EMU_VAR Piece piece[EMU_SHARED / 16];
EMU_VAR uint32_t read_by[EMU_SHARED / 16][WARPS_MAX];
EMU_VAR uint32_t products_over[WARPS_MAX];
EMU_VAR int waits_for[EMU_THREADS]; /* a barrier, plus 1; -1: registers; 0: nothing of these */
EMU_VAR int registers_of[EMU_THREADS], registers_free;

EMU_FN void learn(Known &mine, const Known &other)
{
    for (int i = 0; i < WARPS_MAX; i++)
        mine.products[i] = other.products[i] > mine.products[i] ? other.products[i] : mine.products[i];
    for (int i = 0; i < MBARRIERS; i++)
        mine.phases[i] = other.phases[i] > mine.phases[i] ? other.phases[i] : mine.phases[i];
}

/* All threads of the block have met. */
EMU_FN void learn_all()
{
    if (!mbarriers)
        return;
    Known all = known[0];
    for (int i = 1; i < threads; i++)
        learn(all, known[i]);
    for (int i = 0; i < threads; i++)
        known[i] = all;
}

EMU_FN void wake(int what)
{
    for (int i = 0; i < threads; i++)
        if (waits_for[i] == what) {
            waits_for[i] = 0;
            warp[i / 32].ready |= 1u << i % 32;
        }
}

EMU_FN void wait_for(int what)
{
    waits_for[current] = what;
    not_ready();
    yield();
}

/* ---- barriers ---- */

EMU_FN Mbarrier &mbarrier_at(const uint64_t *p)
{
    uint64_t at;
    if (!is_shared(p, &at) || at % 8)
        stop("a barrier that does not lie in shared memory at a multiple of 8 bytes");
    for (int i = 0; i < mbarriers; i++) {
        Mbarrier &b = mbarrier[i];
        if (b.at != at)
            continue;
        if (*p != ~at)
            stop("something wrote over a barrier");
        if (b.maker != current && b.made == meetings)
            stop("a barrier is used by a thread that has not met the one which made it");
        return b;
    }
    stop("a barrier that nobody has made");
}

EMU_FN void mbarrier_make(uint64_t *p, int count)
{
    uint64_t at;
    if (!is_shared(p, &at) || at % 8 || at + 8 > shared_bytes)
        stop("a barrier that does not lie in shared memory at a multiple of 8 bytes");
    if (count < 1 || count >= 1 << 20)
        stop("a barrier that counts no threads, or 2^20 and more");
    for (int i = 0; i < mbarriers; i++)
        if (mbarrier[i].at == at)
            stop("a barrier is made twice");
    if (mbarriers == MBARRIERS)
        stop("too many barriers");
    Mbarrier &b = mbarrier[mbarriers++];
    b = {};
    b.at = at;
    b.count = b.left = count;
    b.maker = current;
    b.made = meetings;
    *p = ~at;
}

EMU_FN void end_phase(Mbarrier &b)
{
    if (b.left || b.come != b.expected)
        return;
    if (b.expected)
        b.bytes_until = b.phase + 1;
    b.phase++;
    b.left = b.count;
    b.expected = b.asked = b.come = 0;
    learn(b.over, b.arriving);
    b.over.phases[&b - mbarrier] = b.phase;
    wake((int)(&b - mbarrier) + 1);
}

EMU_FN void mbarrier_arrive(uint64_t *p, int bytes)
{
    Mbarrier &b = mbarrier_at(p);
    if (!b.left)
        stop("more threads arrive at a barrier than it counts");
    if (bytes < 0 || b.expected + bytes >= 1 << 20)
        stop("a barrier expects 2^20 bytes or more");
    b.left--;
    b.expected += bytes;
    learn(b.arriving, known[current]);
    end_phase(b);
}

EMU_FN void mbarrier_wait(uint64_t *p, uint32_t parity)
{
    if (parity > 1)
        stop("a phase whose parity is neither 0 nor 1");
    while (mbarrier_at(p).phase % 2 == parity)
        wait_for((int)(&mbarrier_at(p) - mbarrier) + 1);
    learn(known[current], mbarrier_at(p).over);
}

/* ---- copies ---- */

/* The thread that made them has executed fence.proxy.async. */
EMU_FN void barriers_seen()
{
    for (int i = 0; i < mbarriers; i++)
        mbarrier[i].seen_by_copies |= mbarrier[i].maker == current;
}

EMU_FN uint64_t box_rows(const emu_map &m)
{
    uint64_t rows = 1;
    for (int i = 1; i < m.rank; i++)
        rows *= m.box[i];
    return rows;
}

/* Where byte k of row r of a box lies in shared memory. */
EMU_FN uint64_t box_place(const emu_map &m, uint64_t to, uint64_t r, uint64_t k)
{
    const uint64_t at = to + WINDOW + r * m.box[0] * m.item + k;
    return (at ^ (at >> 3 & 0x70)) - WINDOW;
}

EMU_FN void copy_by_map(const MapCopy &c)
{
    const emu_map &m = c.map;
    const uint64_t rows = box_rows(m);
    for (uint64_t r = 0; r < rows; r++) {
        uint64_t left = r, from = m.address;
        bool there = true;
        for (int i = 1; i < m.rank; left /= m.box[i++]) {
            const int64_t at = c.at[i] + (int64_t)(left % m.box[i]);
            there = there && at >= 0 && at <= m.last[i];
            from += (uint64_t)at * m.stride[i - 1];
        }
        for (int64_t k = 0; k < m.box[0]; k++) {
            const int64_t at = c.at[0] + k;
            unsigned char *const to = dynamic + box_place(m, c.to, r, (uint64_t)k * m.item);
            if (there && at >= 0 && at <= m.last[0])
                memcpy(to, (const char *)from + at * m.item, m.item);
            else
                memset(to, 0, m.item);
        }
    }
    const uint64_t bytes = rows * m.box[0] * m.item;
    memcpy(view + c.to, dynamic + c.to, bytes);
    view_number++;
    mbarrier[c.barrier].come += (int64_t)bytes;
    end_phase(mbarrier[c.barrier]);
}

/* One that is under way comes; false: there is none. */
EMU_FN bool late_copy_comes()
{
    if (!map_copies)
        return false;
    const int which = descending ? map_copies - 1 : 0;
    const MapCopy c = map_copy[which];
    map_copies--;
    for (int i = which; i < map_copies; i++)
        map_copy[i] = map_copy[i + 1];
    copy_by_map(c);
    return true;
}

/* Nobody reads this piece any more, and what was copied there has come; as this thread knows. */
EMU_FN void check_left(int i)
{
    if (readers[i])
        stop("a copy overwrites what a product in flight reads");
    for (int w = 0; w * 32 < threads; w++)
        if (read_by[i][w] > known[current].products[w])
            stop("a copy to a place whose readers have not told this thread that they left it");
    if (piece[i].barrier && piece[i].phase >= known[current].phases[piece[i].barrier - 1])
        stop("a copy to a place to which another one is not known to have come");
}

EMU_FN void begin_map_copy(void *to, const emu_map &m, const int *at, int rank, uint64_t *p)
{
    MapCopy c = {m, 0, {}, 0};
    if ((uintptr_t)&m % EMU_MAP_ALIGN || m.mark != EMU_MAP_MARK)
        stop("a copy by what is no tensor map");
    if (m.rank != rank || m.interleave || m.turned != EMU_MAP_TURNED_128 || m.box[0] * m.item != 128)
        stop("a copy by a tensor map of another rank, or not of lines of 128 bytes");
    Mbarrier &b = mbarrier_at(p);
    if (!b.seen_by_copies)
        stop("a copy for a barrier that was made without fence.proxy.async");
    const uint64_t bytes = box_rows(m) * 128;
    if (!is_shared(to, &c.to) || c.to % 128 || c.to + bytes > shared_bytes)
        stop("a copy by a tensor map to a place that is no multiple of 128 bytes, or outside of shared memory");
    b.asked += (int64_t)bytes;
    if (b.asked > b.expected)
        stop("a copy brings bytes that its barrier does not expect");
    use_groups();
    c.barrier = (int)(&b - mbarrier);
    memcpy(c.at, at, (size_t)rank * sizeof *at);
    for (uint64_t i = c.to / 16; i < (c.to + bytes) / 16; i++) {
        check_left((int)i);
        piece[i] = {b.phase, c.barrier + 1};
        memset(dynamic + 16 * i, 0xff, 16);
        memset(view + 16 * i, 0xff, 16);
    }
    view_number++;
    if (map_copies == MAP_COPIES)
        stop("too many copies in flight");
    if (lazy)
        map_copy[map_copies++] = c;
    else
        copy_by_map(c);
}

/* ---- what products read (warpgroup.h) ---- */

/* Do all threads of this warp know that what is here has come? */
EMU_FN void check_come(const int *pieces, int n)
{
    if (!mbarriers)
        return;
    uint32_t least[MBARRIERS];
    for (int i = 0; i < mbarriers; i++) {
        least[i] = ~0u;
        for (int k = current / 32 * 32; k < current / 32 * 32 + 32; k++)
            least[i] = known[k].phases[i] < least[i] ? known[k].phases[i] : least[i];
    }
    for (int i = 0; i < n; i++) {
        const Piece &p = piece[pieces[i]];
        if (p.barrier && p.phase >= least[p.barrier - 1])
            stop("a product reads what is not known to have come");
    }
}

/* A product of warp w that has read them is over. */
EMU_FN void have_read(int w, const int *pieces, int n)
{
    if (!mbarriers)
        return;
    products_over[w]++;
    for (int i = 0; i < n; i++)
        read_by[pieces[i]][w] = products_over[w];
    for (int k = w * 32; k < w * 32 + 32; k++)
        known[k].products[w] = products_over[w];
}

/* ---- registers ---- */

EMU_FN void has_registers(int n, bool more)
{
    const int had = registers_of[current];
    if (n < 24 || n > 256 || n % 8)
        stop("a group with fewer than 24 registers, more than 256, or no multiple of 8");
    if (threads % 128)
        stop("registers of a group of warps that is not whole");
    if (more ? n < had : n > had)
        stop("a group gives registers that it has not, or takes fewer than it has");
    if (registers_free < 0)
        registers_free = 0;
    while (n - had > registers_free)
        wait_for(-1);
    registers_free -= n - had;
    registers_of[current] = n;
    if (n < had)
        wake(-1);
}

/* ---- a block ---- */

EMU_FN void start_barriers()
{
    const int each = emu_registers(threads) / EMU_REGISTERS_UNIT * EMU_REGISTERS_UNIT;
    if (mbarriers) {
        memset(piece, 0, sizeof piece);
        memset(read_by, 0, sizeof read_by);
        memset(products_over, 0, sizeof products_over);
        memset(known, 0, sizeof known);
    }
    for (int i = 0; i < threads; i++) {
        waits_for[i] = 0;
        registers_of[i] = each;
    }
    mbarriers = map_copies = 0;
    registers_free = -1;
}

EMU_FN void end_barriers()
{
    if (map_copies)
        stop("a block ends with copies in flight");
    for (int i = 0; i < mbarriers; i++) {
        const Mbarrier &b = mbarrier[i];
        bool seen = b.bytes_until == 0;
        for (int k = 0; k < threads; k++)
            seen = seen || known[k].phases[i] >= b.bytes_until;
        if (b.expected != b.come)
            stop("a block ends while a barrier expects bytes that nobody brings");
        if (!seen)
            stop("a block ends with copies that nobody has waited for");
    }
    for (int i = 0; i < threads && registers_free >= 0; i++)
        if (registers_of[i] != registers_of[i / 128 * 128])
            stop("threads of a group of warps have different numbers of registers");
}

/* What all threads wait for, where that is something of these. */
EMU_FN const char *missing()
{
    for (int i = 0; i < threads; i++) {
        if (waits_for[i] < 0)
            return "a group waits for registers that no other one gives";
        if (waits_for[i] > 0 && mbarrier[waits_for[i] - 1].expected != mbarrier[waits_for[i] - 1].come &&
            !mbarrier[waits_for[i] - 1].left)
            return "threads wait for bytes that nobody brings";
        if (waits_for[i] > 0)
            return "threads wait for a phase that never ends";
    }
    return nullptr;
}

} // namespace emu

EMU_FN void emu_mbarrier_make(uint64_t *b, int arrivals) { emu::mbarrier_make(b, arrivals); }
/* bytes: that are expected from now on, too. */
EMU_FN void emu_mbarrier_arrive(uint64_t *b, int bytes) { emu::mbarrier_arrive(b, bytes); }
EMU_FN void emu_mbarrier_wait(uint64_t *b, uint32_t parity) { emu::mbarrier_wait(b, parity); }
EMU_FN void emu_map_copy(void *to, const emu_map &m, const int *at, int rank, uint64_t *b)
{
    emu::begin_map_copy(to, m, at, rank, b);
}
/* setmaxnreg */
EMU_MEETS void emu_group_has_registers(int n, bool more)
{
    emu::meet_warp(EMU_PLACE, 0xffffffffu);
    emu::has_registers(n, more);
}

#endif
