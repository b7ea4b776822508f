/* cuemu.h - runs the text of CUDA kernels on the CPU.
 *
 * In:  included before a text that needs no other header; EMU_EXPORT(name) behind each kernel.
 * Out: functions emu_run(): a launch; what a device would have done in silence is a sentence.
 * The one idea: the threads of a block are fibers, which change places only where threads meet (a barrier,
 * a shuffle). Who runs first is a choice: a kernel that forgets a barrier gives other results in
 * another order. Copies in flight arrive at once or as late as they may; all shared memory of a block
 * begins as NaN and ends at a mark; threads that meet at different places stop the launch. What it does not
 * show: a shuffle orders memory here, a device promises that only of barriers.
 *
 * C++17, x86-64, one thread of the system at a time.
 */
#ifndef CUEMU_H
#define CUEMU_H

#define VWN_EMU 1 /* a prelude takes the twins of its assembly */

/* C's own <math.h>: what libstdc++ puts around it takes longer to compile than most kernels. */
#define _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <math.h>
#undef _GLIBCXX_INCLUDE_NEXT_C_HEADERS
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <utility>

#include "rules.h"

#if !defined(__x86_64__)
#error "the emulator switches fibers on x86-64"
#endif

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))
#define __restrict__ __restrict
#define __grid_constant__
#define __shared__     static __attribute__((section("emu_shared"), used))
#define DYN_SMEM(name) unsigned char *const name = emu::dynamic

/* The emulator's own functions and variables take longer to compile than most kernels. With EMU_MACHINE this is all that an
 * object has; with EMU_LINKED they come from there, and small ones are still inlined. With neither a text has its own. */
#if defined EMU_MACHINE
#define EMU_FN
#define EMU_VAR
#define EMU_ASM(name) ".globl " name "\n.hidden " name "\n"
#elif defined EMU_LINKED
#define EMU_FN  inline __attribute__((gnu_inline))
#define EMU_VAR extern
#else
#define EMU_FN  static
#define EMU_VAR static
#define EMU_ASM(name)
#endif
#pragma GCC visibility push(hidden)

struct emu_index {
    unsigned x, y, z;
};
EMU_VAR emu_index threadIdx, blockIdx, blockDim, gridDim;

/* Static shared memory of all kernels of this object: the linker marks where it begins and ends. */
extern "C" unsigned char __start_emu_shared[] __attribute__((weak, visibility("hidden")));
extern "C" unsigned char __stop_emu_shared[] __attribute__((weak, visibility("hidden")));

/* The emulator is compiled to be fast, texts, which are much longer, to be compiled fast. EMU_FAST ... EMU_FAST_END: each
 * function that is called keeps its frame, from which places are known. */
#define EMU_FAST                                                                                                       \
    _Pragma("GCC push_options") _Pragma(                                                                               \
        "GCC optimize(\"O2\", \"no-strict-aliasing\", \"no-omit-frame-pointer\", \"no-optimize-sibling-calls\")")
#define EMU_FAST_END _Pragma("GCC pop_options")
EMU_FAST

namespace emu
{

enum {
    STACK = 65 * 4096 + 5 * 64, /* odd, so that stacks do not meet in the same lines of a cache */
    MARK = 256,                 /* bytes behind dynamic shared memory */
    COPIES_MAX = 512            /* of a thread, in flight: heads of 255 numbers, copied one by one */
};

struct Copy {
    void *to;
    const void *from;
    int bytes, used, group;
};

struct Fiber {
    void *stack_top, *base; /* base: the frame of entry() */
    int stack;              /* -1: has not begun */
    int copies, group;
};

struct Warp {
    int arrived, lanes;
    bool ended;      /* one of its threads has */
    unsigned ready;  /* a bit for each thread that can go on */
    uintptr_t place; /* where those that have arrived wait */
    unsigned turn;   /* the slots of an exchange are used by turns */
    unsigned char slot[2][32][64];
};

EMU_VAR Fiber *fiber;
EMU_VAR Copy (*in_flight)[COPIES_MAX]; /* [EMU_THREADS]: copies of each thread */
EMU_VAR int free_stack[EMU_THREADS], free_stacks;
EMU_VAR Warp warp[EMU_THREADS / 32];
EMU_VAR char *stacks;
EMU_VAR unsigned char *dynamic;
EMU_VAR int current, threads, waiting, done;
EMU_VAR uintptr_t waiting_place;
EMU_VAR bool descending, lazy, copies_known;
EMU_VAR void *main_stack;
EMU_VAR void (*body)(void **arguments);
EMU_VAR void **arguments;
EMU_VAR char trouble[256];
EMU_VAR uint64_t shared_bytes; /* of the block */
EMU_VAR unsigned meetings;     /* of all of its threads */
/* warpgroup.h */
EMU_FN void group_copy_begins(const void *to);
EMU_FN void group_copy_comes(const void *to);
EMU_FN void start_groups(uint64_t shared);
EMU_FN void end_groups(int warp);
/* mbarrier.h */
EMU_FN void learn_all();
EMU_FN bool late_copy_comes();
EMU_FN const char *missing();
EMU_FN void start_barriers();
EMU_FN void end_barriers();
EMU_FN void barriers_seen();
EMU_FN void check_come(const int *pieces, int n);
EMU_FN void have_read(int w, const int *pieces, int n);

/* ---- changing places ---- */

extern "C" void emu_switch(void **from, void *to);
#ifndef EMU_LINKED
asm(".text\n" EMU_ASM(
    "emu_switch") ".type emu_switch, @function\n"
                  "emu_switch:\n"
                  "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
                  "    movq %rsp, (%rdi)\n"
                  "    movq %rsi, %rsp\n"
                  "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
                  "    ret\n"
                  ".size emu_switch, .-emu_switch\n");
#endif

EMU_FN void entry();

/* A stack that emu_switch() finds as if entry() had been left at its beginning. */
EMU_FN void begin(Fiber &f)
{
    f.stack = free_stack[--free_stacks];
    void **top = (void **)(stacks + (size_t)(f.stack + 1) * STACK) - 8;
    *--top = nullptr; /* entry() has no caller */
    *--top = (void *)entry;
    for (int k = 0; k < 6; k++)
        *--top = nullptr;
    f.stack_top = top;
}

EMU_FN void go_to(int next)
{
    int from = current;
    if (fiber[next].stack < 0)
        begin(fiber[next]);
    current = next;
    threadIdx = {(unsigned)next, 0, 0};
    emu_switch(&fiber[from].stack_top, fiber[next].stack_top);
}

[[noreturn]] EMU_FN void leave_block()
{
    emu_switch(&fiber[current].stack_top, main_stack);
    __builtin_unreachable();
}

/* The launch ends here; what it has written is of no use. */
[[noreturn]] EMU_FN void stop(const char *what)
{
    if (!trouble[0])
        snprintf(trouble, sizeof trouble, "%s (block %u, thread %u)", what, blockIdx.x, threadIdx.x);
    leave_block();
}

/* Of threads of a warp that can go on, the next one behind (before, where they descend) `lane`, else from the other end. */
EMU_FN int next_lane(unsigned ready, int lane)
{
    unsigned there = descending ? ready & ((1u << lane) - 1) : ready & -2u << lane;
    there = there ? there : ready;
    return descending ? 31 - __builtin_clz(there) : __builtin_ctz(there);
}

/* The next thread that can go on: first of the same warp. */
EMU_FN int next_ready()
{
    int warps = (threads + 31) / 32, here = current & ~31;
    if (warp[here / 32].ready)
        return here + next_lane(warp[here / 32].ready, current & 31);
    for (int k = 0; k < warps; k++) {
        int w = descending ? warps - 1 - k : k;
        if (warp[w].ready)
            return w * 32 + next_lane(warp[w].ready, descending ? 0 : 31);
    }
    return -1;
}

EMU_FN void not_ready() { warp[(unsigned)current / 32].ready &= ~(1u << current % 32); }

EMU_FN void all_ready(Warp &w) { w.ready = w.lanes == 32 ? ~0u : (1u << w.lanes) - 1; }

EMU_FN void yield()
{
    int next = next_ready();
    while (next < 0 && late_copy_comes())
        next = next_ready();
    if (next < 0 && missing())
        stop(missing());
    if (next < 0)
        stop("threads wait for each other: some are at a barrier, others at a shuffle or at the end");
    if (next != current)
        go_to(next);
}

EMU_FN void begin_again(int next)
{
    if (next != current)
        go_to(next);
}

/* ---- meeting ---- */

/* A number for the return addresses above a frame, up to the kernel's own frame, which is below that of entry(). */
EMU_FN uintptr_t place_of(void **frame)
{
    uintptr_t place = 0;
    for (void *base = fiber[current].base; *frame != base; frame = (void **)*frame)
        place = place * 31 + (uintptr_t)frame[1];
    return place;
}

EMU_FN void meet_warp(uintptr_t place, unsigned mask)
{
    Warp &w = warp[(unsigned)current / 32];
    int first = current & ~31;
    if (mask != 0xffffffffu)
        stop("a collective of part of a warp");
    if (w.lanes < 32)
        stop("a collective of a warp that is not whole");
    if (w.ended)
        stop("a collective of a warp with a thread that has ended");
    if (w.arrived && w.place != place)
        stop("threads of a warp are at different collectives");
    w.place = place;
    if (++w.arrived < w.lanes) {
        not_ready();
        if (w.ready)
            go_to(first + next_lane(w.ready, current & 31));
        else
            yield();
        return;
    }
    w.arrived = 0;
    w.turn++;
    all_ready(w);
    begin_again(descending ? first + w.lanes - 1 : first);
}

EMU_FN void meet_block(uintptr_t place)
{
    if (done)
        stop("a barrier that a thread which has ended does not reach");
    if (waiting && waiting_place != place)
        stop("threads of a block are at different barriers");
    waiting_place = place;
    if (++waiting < threads) {
        not_ready();
        yield();
        return;
    }
    waiting = 0;
    meetings++;
    learn_all();
    for (int w = 0; w * 32 < threads; w++)
        all_ready(warp[w]);
    begin_again(descending ? threads - 1 : 0);
}

/* The next thread goes on; one that has not begun does so on the stack of this one, which is in the cache. */
EMU_FN void finish()
{
    if (waiting)
        stop("a thread ends while others wait at a barrier");
    if (fiber[current].copies)
        stop("a thread ends with copies in flight");
    end_groups(current / 32);
    not_ready();
    warp[current / 32].ended = true;
    if (++done == threads) {
        end_barriers();
        leave_block();
    }
    int next = next_ready(), stack = fiber[current].stack;
    if (next < 0 || fiber[next].stack >= 0) {
        free_stack[free_stacks++] = stack;
        yield();
    }
    current = next;
    threadIdx = {(unsigned)next, 0, 0};
    fiber[next].stack = stack;
}

EMU_FN void entry()
{
    for (;;) {
        fiber[current].base = __builtin_frame_address(0);
        body(arguments);
        finish();
    }
}

/* What every thread of the warp gives, by lane. One meeting is enough: the next exchange uses the
 * other slots. */
template <class T> static inline const unsigned char (*exchange(const T &x, uintptr_t place, unsigned mask))[64]
{
    static_assert(sizeof(T) <= 64, "an exchange of at most 64 bytes");
    Warp &w = warp[(unsigned)current / 32];
    unsigned turn = w.turn & 1;
    memcpy(w.slot[turn][current & 31], &x, sizeof x);
    meet_warp(place, mask);
    return w.slot[turn];
}

template <class T> static inline T of_lane(const unsigned char (*slot)[64], int lane)
{
    T x;
    memcpy(&x, slot[lane & 31], sizeof x);
    return x;
}

/* ---- copies that go on while the thread does other things ---- */

EMU_FN void copy_now(const Copy &c)
{
    memcpy(c.to, c.from, c.used);
    memset((char *)c.to + c.used, 0, c.bytes - c.used);
    group_copy_comes(c.to);
}

/* bytes of shared memory, of which `used` come from memory and the others are 0 */
EMU_FN void copy_async(void *to, const void *from, int bytes, int used)
{
    Fiber &f = fiber[current];
    if (!copies_known)
        stop("an asynchronous copy in a kernel that is launched as one without");
    if ((uintptr_t)to % bytes || (used && (uintptr_t)from % bytes))
        stop("an asynchronous copy from or to a place that is no multiple of its size");
    Copy c = {to, from, bytes, used, f.group};
    group_copy_begins(to);
    if (!lazy) {
        copy_now(c);
        c.to = nullptr; /* it has come, and is waited for all the same */
    }
    if (f.copies == COPIES_MAX)
        stop("too many copies in flight");
    in_flight[current][f.copies++] = c;
}

EMU_FN void copy_commit() { fiber[current].group++; }

/* All but the `left` youngest groups have arrived. */
EMU_FN void copy_wait(int left)
{
    Fiber &f = fiber[current];
    Copy *copy = in_flight[current];
    int kept = 0;
    for (int i = 0; i < f.copies; i++)
        if (copy[i].group < f.group - left) {
            if (copy[i].to)
                copy_now(copy[i]);
        } else
            copy[kept++] = copy[i];
    f.copies = kept;
}

/* A place of `bytes` that is read or written at once. */
template <class T> static inline T *aligned(T *p, int bytes)
{
    if ((uintptr_t)p % bytes)
        stop("an access to a place that is no multiple of its size");
    return p;
}

/* ---- a launch ---- */

EMU_FN void start_fibers()
{
    waiting = done = 0;
    free_stacks = 0;
    for (int i = threads - 1; i >= 0; i--) {
        free_stack[free_stacks++] = i;
        fiber[i].stack = -1;
        fiber[i].copies = fiber[i].group = 0;
    }
    for (int w = 0; w * 32 < threads; w++) {
        warp[w].arrived = 0;
        warp[w].lanes = threads - w * 32 < 32 ? threads - w * 32 : 32;
        warp[w].ended = false;
        all_ready(warp[w]);
    }
}

EMU_FN bool mark_is_whole(uint64_t bytes)
{
    for (int i = 0; i < MARK; i++)
        if (dynamic[bytes + i] != 0xa5)
            return false;
    return true;
}

EMU_FN void run_block(uint64_t shared)
{
    static int at;
    memset(dynamic, 0xff, shared);
    memset(dynamic + shared, 0xa5, MARK);
    if (__start_emu_shared)
        memset(__start_emu_shared, 0xff, __stop_emu_shared - __start_emu_shared);
    shared_bytes = shared;
    start_fibers();
    start_groups(shared);
    start_barriers();
    at = descending ? threads - 1 : 0;
    current = at;
    threadIdx = {(unsigned)at, 0, 0};
    begin(fiber[at]);
    emu_switch(&main_stack, fiber[at].stack_top);
    if (!trouble[0] && !mark_is_whole(shared))
        snprintf(trouble, sizeof trouble, "something wrote behind dynamic shared memory (block %u)", blockIdx.x);
}

template <class... A, size_t... I> static inline void call(void (*kernel)(A...), void **p, std::index_sequence<I...>)
{
    kernel(*(A *)p[I]...);
}

template <class... A> static inline void call_with(void (*kernel)(A...), void **p)
{
    call(kernel, p, std::index_sequence_for<A...>{});
}

} // namespace emu

struct EmuLaunch {
    void (*kernel)(void **arguments); /* emu_call_NAME */
    void **arguments;                 /* of each argument its address, as a driver takes them */
    unsigned blocks, threads;
    uint64_t shared;       /* bytes of dynamic shared memory */
    int descending;        /* blocks, warps and lanes come from the last to the first */
    int lazy;              /* 1: copies arrive only when they are waited for; 2: there are none */
    const unsigned *order; /* [blocks] which block runs when; NULL: as `descending` says */
};

/* NULL, or what is wrong with the kernel or the launch. */
extern "C" __attribute__((visibility("default"))) const char *emu_run(const EmuLaunch *l);
#ifndef EMU_LINKED
const char *emu_run(const EmuLaunch *l)
{
    using namespace emu;
    trouble[0] = 0;
    const unsigned grid[] = {l->blocks, 1, 1}, block[] = {l->threads, 1, 1};
    if (const char *wrong = emu_launch_wrong(grid, block, l->shared, EMU_SHARED))
        return wrong;
    if (!stacks) {
        void *m =
            mmap(nullptr,
                 (size_t)EMU_THREADS * STACK + (sizeof *fiber + sizeof *in_flight) * EMU_THREADS + EMU_SHARED + MARK,
                 PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (m == MAP_FAILED)
            return "no memory for the threads of a block";
        stacks = (char *)m;
        dynamic = (unsigned char *)m + (size_t)EMU_THREADS * STACK;
        fiber = (Fiber *)(dynamic + EMU_SHARED + MARK);
        in_flight = (Copy(*)[COPIES_MAX])(fiber + EMU_THREADS);
    }
    threads = (int)l->threads;
    descending = l->descending;
    lazy = l->lazy == 1;
    copies_known = l->lazy != 2;
    body = l->kernel;
    arguments = l->arguments;
    gridDim = {l->blocks, 1, 1};
    blockDim = {l->threads, 1, 1};
    for (unsigned k = 0; k < l->blocks && !trouble[0]; k++) {
        blockIdx = {l->order ? l->order[k] : descending ? l->blocks - 1 - k : k, 0, 0};
        run_block(l->shared);
    }
    return trouble[0] ? trouble : nullptr;
}
#endif

/* What a kernel takes, as a driver knows it. */
struct __attribute__((visibility("default"))) EmuParameter {
    unsigned bytes, align;
    int address; /* 1: it is a pointer */
};
namespace emu
{
template <class... A> static inline const EmuParameter *parameters(void (*)(A...), unsigned *n)
{
    static const EmuParameter all[] = {{sizeof(A), alignof(A), std::is_pointer<A>::value}..., {0, 0, 0}};
    *n = sizeof...(A);
    return all;
}
} // namespace emu

#define EMU_EXPORT(name)                                                                                               \
    extern "C" void emu_call_##name(void **arguments) { emu::call_with(name, arguments); }                             \
    extern "C" const EmuParameter *emu_parameters_##name(unsigned *n) { return emu::parameters(name, n); }

/* ---- what CUDA C has built in ---- */

/* Threads meet where the calls stand that led here: all of them, for a function may stand in several. */
#define EMU_MEETS EMU_FN __attribute__((noinline))
#define EMU_PLACE emu::place_of((void **)__builtin_frame_address(0))

EMU_MEETS void __syncthreads() { emu::meet_block(EMU_PLACE); }
EMU_MEETS void __syncwarp(unsigned mask = 0xffffffffu) { emu::meet_warp(EMU_PLACE, mask); }
template <class T> static inline __attribute__((noinline)) T __shfl_sync(unsigned mask, T x, int lane)
{
    return emu::of_lane<T>(emu::exchange(x, EMU_PLACE, mask), lane);
}
template <class T> static inline __attribute__((noinline)) T __shfl_xor_sync(unsigned mask, T x, int with)
{
    int me = emu::current & 31;
    return emu::of_lane<T>(emu::exchange(x, EMU_PLACE, mask), me ^ with);
}
template <class T> static inline __attribute__((noinline)) T __shfl_down_sync(unsigned mask, T x, int by)
{
    int me = emu::current & 31;
    return emu::of_lane<T>(emu::exchange(x, EMU_PLACE, mask), me + by < 32 ? me + by : me);
}
template <class T> static inline __attribute__((noinline)) T __shfl_up_sync(unsigned mask, T x, int by)
{
    int me = emu::current & 31;
    return emu::of_lane<T>(emu::exchange(x, EMU_PLACE, mask), me >= by ? me - by : me);
}
EMU_MEETS unsigned __ballot_sync(unsigned mask, int x)
{
    const unsigned char(*slot)[64] = emu::exchange(x, EMU_PLACE, mask);
    unsigned all = 0;
    for (int i = 0; i < 32; i++)
        all |= (unsigned)(emu::of_lane<int>(slot, i) != 0) << i;
    return all;
}
EMU_MEETS int __any_sync(unsigned mask, int x)
{
    const unsigned char(*slot)[64] = emu::exchange(x, EMU_PLACE, mask);
    for (int i = 0; i < 32; i++)
        if (emu::of_lane<int>(slot, i))
            return 1;
    return 0;
}

static inline float __uint_as_float(unsigned u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, 4);
    return u;
}
/* ---- twins of instructions that only assembly has: a prelude calls them where VWN_EMU is defined ---- */

/* Four matrices of 8 x 8 numbers of 16 bits; lane 8 j + i gives the address of row i of matrix j. r[j]: of matrix j
 * row lane / 4, columns 2 (lane % 4) and the next; transposed: the column and the rows of these numbers. */
EMU_MEETS void emu_load_matrix(unsigned r[4], const void *row, bool transposed)
{
    const uint16_t *mine = emu::aligned((const uint16_t *)row, 16);
    const unsigned char(*slot)[64] = emu::exchange(mine, EMU_PLACE, 0xffffffffu);
    int me = emu::current % 32, a = me / 4, b = me % 4 * 2;
    for (int j = 0; j < 4; j++) {
        const uint16_t *x = emu::of_lane<const uint16_t *>(slot, 8 * j + (transposed ? b : a));
        const uint16_t *y = emu::of_lane<const uint16_t *>(slot, 8 * j + b + 1);
        r[j] = transposed ? x[a] | (unsigned)y[a] << 16 : x[b] | (unsigned)x[b + 1] << 16;
    }
}

/* The two bytes of the nearest number of fp16, ties to even; a NaN as the device has it. And back. */
static inline unsigned short emu_fp16(float x)
{
    const unsigned sign = __float_as_uint(x) >> 16 & 0x8000u, u = __float_as_uint(x) & 0x7fffffffu;
    if (u > 0x7f800000u)
        return 0x7fff;
    if (u >= 0x477ff000u) /* 65520 */
        return sign | 0x7c00u;
    if (u < 0x38800000u) /* below 2^-14 they are multiples of 2^-24 */
        return sign | (unsigned)__builtin_rintf(__uint_as_float(u) * 0x1p24f);
    return sign | (((u + 0xfffu + (u >> 13 & 1)) >> 13) - (112u << 10));
}
static inline float emu_of_fp16(unsigned h)
{
    const unsigned sign = (h & 0x8000u) << 16, u = h & 0x7fffu;
    const float x = u >= 0x7c00u ? __uint_as_float(0x7f800000u | u << 13) : __uint_as_float(u << 13) * 0x1p112f;
    return __uint_as_float(__float_as_uint(x) | sign);
}

#include "warpgroup.h"
#include "mbarrier.h"

/* c (16 x 8) += a (16 x 16) b (16 x 8), operands bf16 or fp16, sums float32 in the order of k: fragments of
 * mma.m16n8k16. */
static inline float emu_operand(unsigned pair, int which, bool fp16)
{
    const unsigned h = pair >> which * 16 & 0xffffu;
    return fp16 ? emu_of_fp16(h) : __uint_as_float(h << 16);
}
EMU_MEETS void emu_mma(float c[4], const unsigned a[4], const unsigned b[2], bool fp16)
{
    struct Given {
        unsigned a[4], b[2];
    } given = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
    const unsigned char(*slot)[64] = emu::exchange(given, EMU_PLACE, 0xffffffffu);
    float x[2][16], y[2][16]; /* rows lane / 4 and 8 more; columns 2 (lane % 4) and the next */
    int me = emu::current & 31;
    for (int k = 0; k < 16; k++)
        for (int i = 0; i < 2; i++) {
            Given row = emu::of_lane<Given>(slot, me / 4 * 4 + k % 8 / 2);
            Given column = emu::of_lane<Given>(slot, (me % 4 * 2 + i) * 4 + k % 8 / 2);
            x[i][k] = emu_operand(row.a[i + k / 8 * 2], k % 2, fp16);
            y[i][k] = emu_operand(column.b[k / 8], k % 2, fp16);
        }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 16; k++)
            c[i] += x[i / 2][k] * y[i % 2][k];
}

/* Asynchronous copies of 4, 8 or 16 bytes to shared memory, of which `used` come from memory and the others are 0;
 * what has been copied since the last group becomes one; all but the `left` youngest groups have arrived. */
static inline void emu_copy_async(void *to, const void *from, int bytes, int used)
{
    emu::copy_async(to, from, bytes, used);
}
static inline void emu_copy_commit() { emu::copy_commit(); }
static inline void emu_copy_wait(int left) { emu::copy_wait(left); }

static inline float atomicAdd(float *at, float x)
{
    const float before = *at;
    *at += x;
    return before;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(unsigned x) { return __builtin_ffs((int)x); }
static inline int __ffsll(long long x) { return __builtin_ffsll(x); }

EMU_FAST_END
#pragma GCC visibility pop

#endif
