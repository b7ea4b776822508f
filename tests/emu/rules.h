/* rules.h - what a GPU allows: threads, registers and shared memory of a launch, tensor maps.
 *
 * In:  a launch; what cuTensorMapEncodeTiled() is told.
 * Out: limits, the rule that is broken, 128 bytes of a map that mbarrier.h copies by.
 * The one idea: the emulator, the fake driver and its compiler and the interpreter of PTX refuse the same, so each rule stands here once, for
 * C and C++. Limits are those of the CUDA C++ Programming Guide, "Compute Capabilities" (7.5 and later have them in common but for shared
 * memory); maps are checked by CUDA's documentation of cuTensorMapEncodeTiled, with the numbers of cuda.h. Packed types of 4 and 6 bits are
 * not known.
 */
#ifndef EMU_RULES_H
#define EMU_RULES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- launches ---- */

enum {
    EMU_THREADS = 1024,    /* of a block */
    EMU_THREADS_Z = 64,    /* of its third dimension */
    EMU_BLOCKS_YZ = 65535, /* of a grid's second and third dimension; the first has 2^31 - 1 */
    EMU_REGISTERS = 65536, /* of a multiprocessor, and of a block */
    EMU_REGISTERS_MAX = 255,
    EMU_REGISTERS_UNIT = 8, /* they are dealt out to threads by so many */
    EMU_SHARED_OWN = 1024,  /* bytes that the system takes of each block's shared memory, at its beginning */
    EMU_SHARED_UNASKED = 48 << 10,
    EMU_SHARED = 227 << 10 /* of a block of the GPU that has most */
};

/* Bytes of shared memory of a multiprocessor, by its capability, 80 for 8.0; a block can have EMU_SHARED_OWN less. */
static inline int emu_shared_of_sm(long capability)
{
    switch (capability) {
    case 80:
    case 87: return 164 << 10;
    case 90:
    case 100:
    case 103:
    case 110: return EMU_SHARED + EMU_SHARED_OWN;
    default: return 100 << 10;
    }
}

/* Registers of a thread where so many threads share a multiprocessor. */
static inline int emu_registers(int threads)
{
    const int n = EMU_REGISTERS / threads / EMU_REGISTERS_UNIT * EMU_REGISTERS_UNIT;
    return n < EMU_REGISTERS_MAX ? n : EMU_REGISTERS_MAX;
}

/* NULL, or what is wrong with a launch whose blocks may have `most` bytes of dynamic shared memory. */
static inline const char *emu_launch_wrong(const unsigned grid[3], const unsigned block[3], uint64_t shared,
                                           uint64_t most)
{
    static const unsigned blocks[] = {INT32_MAX, EMU_BLOCKS_YZ, EMU_BLOCKS_YZ};
    static const unsigned threads[] = {EMU_THREADS, EMU_THREADS, EMU_THREADS_Z};
    uint64_t all = 1;
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || grid[i] > blocks[i])
            return "a grid of nothing, or larger than the device's limit";
        if (!block[i] || block[i] > threads[i])
            return "a block of nothing, or larger than the device's limit";
        all *= block[i];
    }
    if (all > EMU_THREADS)
        return "a block of more threads than the device's limit";
    if (shared > most)
        return "more shared memory than a block has, or was asked for";
    return NULL;
}

/* ---- tensor maps ---- */

enum { EMU_MAP_RANK = 5, EMU_MAP_TYPES = 13, EMU_MAP_ALIGN = 64, EMU_MAP_BYTES = 128, EMU_MAP_TURNED_128 = 3 };
#define EMU_MAP_MARK 0x70616d2d75646376ull

#ifdef __cplusplus
struct alignas(EMU_MAP_BYTES) emu_map {
#else
typedef struct emu_map {
    _Alignas(EMU_MAP_BYTES)
#endif
    uint64_t mark;
    uint64_t address, stride[EMU_MAP_RANK - 1]; /* bytes */
    uint32_t last[EMU_MAP_RANK];                /* an extent less 1 */
    uint16_t box[EMU_MAP_RANK];
    uint8_t rank, item, interleave, turned; /* item: bytes of an element */
#ifdef __cplusplus
};
#else
} emu_map;
#endif

/* Bytes of an element of a type, from CU_TENSOR_MAP_DATA_TYPE_UINT8 on. */
static inline unsigned emu_map_item(int type)
{
    static const uint8_t bytes[EMU_MAP_TYPES] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4};
    return type >= 0 && type < EMU_MAP_TYPES ? bytes[type] : 0;
}

static inline const char *emu_map_wrong(const void *out, int type, uint32_t rank, const void *memory,
                                        const uint64_t *extent, const uint64_t *stride, const uint32_t *box,
                                        const uint32_t *step, int interleave, int turned, int l2, int beyond)
{
    static const unsigned span[] = {0, 32, 64, 128, 128, 128, 128};
    const unsigned item = emu_map_item(type), piece = interleave == 2 ? 32 : 16;
    if (!out || (uintptr_t)out % EMU_MAP_ALIGN)
        return "a tensor map at no multiple of 64 bytes";
    if (!item)
        return "a tensor map of a type that is not known";
    if (interleave < 0 || interleave > 2 || turned < 0 || turned > 6 || l2 < 0 || l2 > 3 || beyond < 0 || beyond > 1)
        return "a tensor map with a number that is no choice";
    if (rank < (interleave ? 3u : 1u) || rank > EMU_MAP_RANK)
        return "a tensor map of too few or too many dimensions";
    if (!memory || (uintptr_t)memory % piece)
        return "a tensor map of memory that begins at no multiple of 16 bytes";
    for (uint32_t i = 0; i < rank; i++) {
        if (extent[i] == 0 || extent[i] > 1ull << 32)
            return "a tensor map with an extent of 0 or of more than 2^32";
        if (box[i] == 0 || box[i] > 256)
            return "a tensor map with a box of nothing or of more than 256";
        if (step[i] == 0 || step[i] > 8)
            return "a tensor map with a step that is not 1 to 8";
    }
    for (uint32_t i = 0; i + 1 < rank; i++) {
        if (stride[i] % piece || stride[i] >= 1ull << 40)
            return "a tensor map with a stride that is no multiple of 16 bytes, or of 2^40 and more";
        if (stride[i] < (i ? extent[i] : extent[0] * item))
            return "a tensor map with a stride less than an extent";
    }
    if (!interleave && box[0] * item % 16)
        return "a tensor map with a box whose rows are no multiple of 16 bytes";
    if (!interleave && turned && box[0] * item > span[turned])
        return "a tensor map with a box whose rows are longer than what is turned";
    if (interleave == 2 && turned != 1)
        return "a tensor map that is interleaved by 32 bytes and turned otherwise";
    if (beyond && !(type >= 6 && type <= 12))
        return "a tensor map of integers that is filled with NaN";
    return 0;
}

/* NULL, or what is wrong. */
static inline const char *emu_map_encode(void *out, int type, uint32_t rank, const void *memory, const uint64_t *extent,
                                         const uint64_t *stride, const uint32_t *box, const uint32_t *step,
                                         int interleave, int turned, int l2, int beyond)
{
    const char *wrong =
        emu_map_wrong(out, type, rank, memory, extent, stride, box, step, interleave, turned, l2, beyond);
    emu_map m;
    if (wrong)
        return wrong;
    memset(&m, 0, sizeof m);
    m.mark = EMU_MAP_MARK;
    m.address = (uint64_t)(uintptr_t)memory;
    m.rank = (uint8_t)rank;
    m.item = (uint8_t)emu_map_item(type);
    m.interleave = (uint8_t)interleave;
    m.turned = (uint8_t)turned;
    for (uint32_t i = 0; i < rank; i++) {
        if (i && (step[i] != 1 || beyond))
            return "a tensor map that the emulator does not know: with steps, or NaN beyond its end";
        m.last[i] = (uint32_t)(extent[i] - 1);
        m.box[i] = (uint16_t)box[i];
        if (i + 1 < rank)
            m.stride[i] = stride[i];
    }
    memset(out, 0, EMU_MAP_BYTES);
    memcpy(out, &m, sizeof m);
    return 0;
}

#endif
