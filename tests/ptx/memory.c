/* memory.c - what threads load and store: bounds, alignment, and what nobody wrote. */
#include "code.h"

#include <string.h>

char *global_at(Warp *w, const Inst *i, uint64_t at, uint32_t bytes, bool write)
{
    const Block *b = w->block;
    const PtxMemory *m = w->last;
    if (!m || at < (uintptr_t)m->at || at + bytes > (uintptr_t)m->at + m->bytes) {
        size_t low = 0, high = b->launch->n_memory; /* the last that begins at `at` or before */
        while (low < high) {
            const size_t half = (low + high) / 2;
            (uintptr_t) b->memory[half].at <= at ? (low = half + 1) : (high = half);
        }
        m = low ? &b->memory[low - 1] : NULL;
        if (!m || at + bytes > (uintptr_t)m->at + m->bytes)
            fault(w, i, "memory that the launch has not: %u bytes, %lld behind %s", bytes,
                  (long long)(m ? at - (uintptr_t)m->at - m->bytes : at), m ? "the end of a tensor" : "0");
        w->last = m;
    }
    if (write && !m->written)
        fault(w, i, "memory is written that the launch only reads");
    return (char *)(uintptr_t)at;
}

void shared_check(Warp *w, const Inst *i, uint32_t at, uint32_t bytes, uint32_t align)
{
    const Block *b = w->block;
    enum { OWN = EMU_SHARED_OWN };
    if (at < OWN || at + bytes > b->shared_bytes || at + bytes < at)
        fault(w, i, "shared memory that the block has not: byte %d of %d", (int)at - OWN, (int)b->shared_bytes - OWN);
    if (at % align)
        fault(w, i, "byte %u of shared memory is no multiple of %u", at, align);
}

static void shared_read(Warp *w, const Inst *i, int lane, uint32_t at, uint32_t bytes)
{
    const uint8_t *state = w->block->state + at;
    for (uint32_t k = 0; k < bytes; k++)
        if (state[k] != WRITTEN)
            fault(w, i, "byte %u of shared memory is read, %s", at + k,
                  state[k] == UNWRITTEN   ? "which nobody wrote"
                  : state[k] == IN_FLIGHT ? "to which a copy is under way"
                                          : "which is a barrier's");
    order_touch(w, i, lane, at, bytes, READS);
}

static void shared_written(Warp *w, const Inst *i, int lane, uint32_t at, uint32_t bytes)
{
    uint8_t *state = w->block->state + at;
    for (uint32_t k = 0; k < bytes; k++)
        if (state[k] == IN_FLIGHT || state[k] == OF_BARRIER)
            fault(w, i, "byte %u of shared memory is written, %s", at + k,
                  state[k] == IN_FLIGHT ? "to which a copy is under way" : "which is a barrier's");
    memset(state, WRITTEN, bytes);
    order_touch(w, i, lane, at, bytes, WRITES);
}

static uint64_t address_of(const Warp *w, const Inst *i, int k, int lane)
{
    const uint32_t at = i->at[k];
    const uint64_t base = i->mods >> 63 ? ((const uint32_t *)(const void *)(w->file + at))[lane]
                                        : ((const uint64_t *)(const void *)(w->file + at))[lane];
    return base + (uint64_t)i->shift;
}

/* Bytes of a lane, wherever they are. */
static char *bytes_at(Warp *w, const Inst *i, int lane, uint64_t at, uint32_t bytes, bool write)
{
    Block *b = w->block;
    uint64_t window = HAS(i, shared)  ? SHARED_WINDOW
                      : HAS(i, local) ? LOCAL_WINDOW
                      : HAS(i, param) ? PARAM_WINDOW
                                      : WINDOW_OF(at);
    if (HAS(i, global))
        window = 0;
    if (at % bytes)
        fault(w, i, "an address that is no multiple of %u", bytes);
    if (window == SHARED_WINDOW) {
        const uint64_t s = IN_WINDOW(at);
        shared_check(w, i, s > UINT32_MAX ? UINT32_MAX : (uint32_t)s, bytes, bytes);
        (write ? shared_written : shared_read)(w, i, lane, (uint32_t)s, bytes);
        return b->shared + s;
    }
    if (window == LOCAL_WINDOW || window == PARAM_WINDOW) {
        const uint64_t s = IN_WINDOW(at), most = window == LOCAL_WINDOW ? b->f->local : b->f->parameter_bytes;
        if (s + bytes > most || (write && window == PARAM_WINDOW))
            fault(w, i, "byte %llu of %llu of a thread's own memory or of parameters", (unsigned long long)s,
                  (unsigned long long)most);
        return window == LOCAL_WINDOW ? w->local + (uint64_t)lane * most + s : b->parameter + s;
    }
    return global_at(w, i, at, bytes, write);
}

Run load, store;
void load(Warp *w, const Inst *i)
{
    const uint32_t n = i->n, bytes = i->bytes;
    for (uint32_t m = w->mask; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        const char *from = bytes_at(w, i, l, address_of(w, i, 1, l), n * bytes, false);
        for (uint32_t k = 0; k < n; k++) {
            uint64_t x = 0;
            memcpy(&x, from + k * bytes, bytes);
            if (i->sign && bytes < 8 && x >> (8 * bytes - 1))
                x |= UINT64_MAX << 8 * bytes;
            if (i->wide)
                LIST(uint64_t, 0, k)[l] = x;
            else
                LIST(uint32_t, 0, k)[l] = (uint32_t)x;
        }
    }
}

void store(Warp *w, const Inst *i)
{
    const uint32_t n = i->n, bytes = i->bytes;
    for (uint32_t m = w->mask; m; m &= m - 1) {
        const int l = __builtin_ctz(m);
        char *to = bytes_at(w, i, l, address_of(w, i, 0, l), n * bytes, true);
        for (uint32_t k = 0; k < n; k++) {
            if (i->wide)
                memcpy(to + k * bytes, &LIST(uint64_t, 1, k)[l], bytes);
            else
                memcpy(to + k * bytes, &LIST(uint32_t, 1, k)[l], bytes);
        }
    }
}

/* ---- all lanes, one after another, in any order ---- */

#define OP_ATOM(name, reduction, T)                                                                                    \
    Run name, reduction;                                                                                               \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        for (uint32_t m = w->mask; m; m &= m - 1) {                                                                    \
            const int l = __builtin_ctz(m);                                                                            \
            T x, *to = (T *)(void *)bytes_at(w, i, l, address_of(w, i, 1, l), sizeof x, true);                         \
            AT(T, 0)[l] = *to;                                                                                         \
            *to += AT(T, 2)[l];                                                                                        \
        }                                                                                                              \
    }                                                                                                                  \
    void reduction(Warp *w, const Inst *i)                                                                             \
    {                                                                                                                  \
        for (uint32_t m = w->mask; m; m &= m - 1) {                                                                    \
            const int l = __builtin_ctz(m);                                                                            \
            T x, *to = (T *)(void *)bytes_at(w, i, l, address_of(w, i, 0, l), sizeof x, true);                         \
            *to += AT(T, 1)[l];                                                                                        \
        }                                                                                                              \
    }
OP_ATOM(atom_add_f32, red_add_f32, float)
OP_ATOM(atom_add_u32, red_add_u32, uint32_t)
OP_ATOM(atom_add_u64, red_add_u64, uint64_t)

/* ---- matrices of 8 rows of 16 bytes; each eight lanes have the rows of one ---- */

Run load_matrix;
void load_matrix(Warp *w, const Inst *i)
{
    uint16_t piece[LANES][8];
    for (uint32_t l = 0; l < 8 * i->n; l++) {
        const uint64_t at = address_of(w, i, 1, (int)l);
        shared_check(w, i, at > UINT32_MAX ? UINT32_MAX : (uint32_t)at, 16, 16);
        shared_read(w, i, (int)l, (uint32_t)at, 16);
        memcpy(piece[l], w->block->shared + at, 16);
    }
    for (uint32_t k = 0; k < i->n; k++)
        for (uint32_t l = 0; l < LANES; l++) {
            const uint32_t row = l / 4, column = l % 4 * 2;
            LIST(uint32_t, 0, k)
            [l] = HAS(i, trans) ? piece[8 * k + column][row] | (uint32_t)piece[8 * k + column + 1][row] << 16
                                : piece[8 * k + row][column] | (uint32_t)piece[8 * k + row][column + 1] << 16;
        }
}
