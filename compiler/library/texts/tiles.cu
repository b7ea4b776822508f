/* ---- tiles: rows of numbers in shared memory, 16 bytes apart from each other's ends; and 16
 * rows of a result in the registers of a warp. Of each 8 columns thread l of the warp holds rows
 * l / 4 and l / 4 + 8 at the columns 2 (l % 4) and the next: x[0], x[1] and x[2], x[3]. ---- */
#ifndef VWN_EMU
/* A function with registers of its own: what it takes is no part of its caller's loops. */
#define APART [[maybe_unused]] static __device__ __noinline__
FN uint32_t vwn_shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }
/* Copies BYTES to shared memory, of which n are there, and zeros for the others; done after vwn_copies_wait. */
template <int BYTES> FN void vwn_copy_bytes(void *to, const void *from, int n)
{
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(vwn_shared_address(to)),
                     "l"(from), "r"(n) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(vwn_shared_address(to)),
                     "l"(from), "n"(BYTES), "r"(n) : "memory");
}
/* The same of 16 bytes that are there. */
FN void vwn_copy_whole(void *to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(vwn_shared_address(to)), "l"(from) : "memory");
}
FN void vwn_copies_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/* Until all but the last N groups of this thread's copies have come. */
template <int N> FN void vwn_copies_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}
/* A place in shared memory as an instruction takes it. */
typedef uint32_t vwn_spot;
FN vwn_spot vwn_spot_of(const void *p) { return vwn_shared_address(p); }
/* Four 8 x 8 pieces, thread l says where row l % 8 of piece l / 8 begins. */
FN void vwn_load_at(uint32_t *x, vwn_spot row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(row) : "memory");
}
FN void vwn_load_transposed_at(uint32_t *x, vwn_spot row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]) : "r"(row) : "memory");
}
/* The block and the thread, asked again wherever that stands: what is computed from them has no registers while a
 * loop runs. */
FN uint32_t vwn_block()
{
    uint32_t i;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(i));
    return i;
}
FN uint32_t vwn_thread()
{
    uint32_t i;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(i));
    return i;
}
/* x (16, 8) += a (16, 16) b (16, 8), of numbers of E, and of eight terms a (16, 8) b (8, 8); two numbers rounded to E, the first one in the
 * lower half. */
#define VWN_TENSOR(E, TYPE)                                                                        \
    FN void vwn_mma(real *x, const uint32_t *a, const uint32_t *b, E)                              \
    {                                                                                              \
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, " \
                     "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"                              \
                     : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3])                        \
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));     \
    }                                                                                              \
    FN void vwn_mma_eight(real *x, const uint32_t *a, uint32_t b, E)                               \
    {                                                                                              \
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, " \
                     "{%4, %5}, {%6}, {%0, %1, %2, %3};"                                          \
                     : "+f"(x[0]), "+f"(x[1]), "+f"(x[2]), "+f"(x[3]) : "r"(a[0]), "r"(a[1]), "r"(b)); \
    }
VWN_TENSOR(bf16, "bf16")
VWN_TENSOR(fp16, "f16")
FN uint32_t vwn_pair(real x, real y, fp16)
{
    uint32_t u;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(y), "f"(x));
    return u;
}
#else /* twins of the emulator */
#define APART [[maybe_unused]] static
template <int BYTES> FN void vwn_copy_bytes(void *to, const void *from, int n) { emu_copy_async(to, from, BYTES, n); }
FN void vwn_copy_whole(void *to, const void *from) { emu_copy_async(to, from, 16, 16); }
FN void vwn_copies_commit() { emu_copy_commit(); }
template <int N> FN void vwn_copies_wait() { emu_copy_wait(N); }
typedef uintptr_t vwn_spot;
FN vwn_spot vwn_spot_of(const void *p) { return (vwn_spot)p; }
FN void vwn_load_at(uint32_t *x, vwn_spot row) { emu_load_matrix(x, (const void *)row, false); }
FN void vwn_load_transposed_at(uint32_t *x, vwn_spot row) { emu_load_matrix(x, (const void *)row, true); }
FN uint32_t vwn_block() { return blockIdx.x; }
FN uint32_t vwn_thread() { return threadIdx.x; }
FN void vwn_mma(real *x, const uint32_t *a, const uint32_t *b, bf16) { emu_mma(x, a, b, false); }
FN void vwn_mma(real *x, const uint32_t *a, const uint32_t *b, fp16) { emu_mma(x, a, b, true); }
template <class E> FN void vwn_mma_eight(real *x, const uint32_t *a, uint32_t b, E is)
{
    const uint32_t all_a[4] = {a[0], a[1], 0, 0}, all_b[2] = {b, 0};
    vwn_mma(x, all_a, all_b, is);
}
FN uint32_t vwn_pair(real x, real y, fp16) { return emu_fp16(x) | (uint32_t)emu_fp16(y) << 16; }
#endif
/* How many rounds of a loop are written out. */
#ifdef VWN_ONE_ROUND
__device__ constexpr int vwn_rounds(int) { return 1; }
#else
__device__ constexpr int vwn_rounds(int n) { return n; }
#endif
/* The number of a thread among those of a row. Where a compiler is short of registers each use asks again, so that nothing that is
 * computed from it has one for longer than it is wanted. */
#ifdef VWN_FEW_REGISTERS
template <int THREADS> struct vwn_thread_of_row {
    __device__ __forceinline__ vwn_thread_of_row(uint32_t) {}
    __device__ __forceinline__ operator int() const { return (int)(vwn_thread() % THREADS); }
};
#else
template <int THREADS> using vwn_thread_of_row = int;
#endif
/* All of BYTES, or zeros where not `ok`. */
template <int BYTES> FN void vwn_copy_async(void *to, const void *from, bool ok) { vwn_copy_bytes<BYTES>(to, from, ok ? BYTES : 0); }
FN void vwn_load_pieces(uint32_t *x, const void *row) { vwn_load_at(x, vwn_spot_of(row)); }
FN void vwn_load_pieces_transposed(uint32_t *x, const void *row) { vwn_load_transposed_at(x, vwn_spot_of(row)); }
FN uint32_t vwn_pair(real x, real y, bf16) { return vwn_two_bf16(x, y); }
struct __align__(16) vwn_four { real x, y, z, w; };
struct __align__(8) vwn_two { real x, y; };
FN real vwn_dot(vwn_four a, vwn_four b, real sum)
{
    return sum + a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
}
/* A number of memory, and back; rounded. */
FN real vwn_number(real x) { return x; }
FN real vwn_number(bf16 x) { return vwn_of_bf16(x); }
FN real vwn_number(fp16 x) { return vwn_of_fp16(x); }
FN void vwn_put_number(real *to, real x) { *to = x; }
FN void vwn_put_number(bf16 *to, real x) { *to = (bf16)vwn_pair(x, 0, bf16()); }
FN void vwn_put_number(fp16 *to, real x) { *to = vwn_fp16(x); }
FN int64_t vwn_least(int64_t a, int64_t b) { return a < b ? a : b; }
FN int64_t vwn_most(int64_t a, int64_t b) { return a > b ? a : b; }
/* A pair of neighbours in memory; the second one is there where `both`. */
template <class E> FN void vwn_put_pair(E *to, real x, real y, bool both)
{
    *(uint32_t *)to = vwn_pair(x, y, E());
}
FN void vwn_put_pair(real *to, real x, real y, bool both)
{
    to[0] = x;
    if (both)
        to[1] = y;
}
FN vwn_two vwn_get_pair(const bf16 *from, bool both)
{
    const uint32_t u = *(const uint32_t *)from;
    return {vwn_real(u << 16), vwn_real(u & 0xffff0000u)};
}
FN vwn_two vwn_get_pair(const fp16 *from, bool both)
{
    const uint32_t u = *(const uint32_t *)from;
    return {vwn_of_fp16({(uint16_t)u}), vwn_of_fp16({(uint16_t)(u >> 16)})};
}
FN vwn_two vwn_get_pair(const real *from, bool both) { return {from[0], both ? from[1] : 0.0f}; }
/* The sum or the maximum over the four threads that hold a row. */
FN real vwn_row_sum(real x)
{
    x += __shfl_xor_sync(0xffffffffu, x, 1);
    return x + __shfl_xor_sync(0xffffffffu, x, 2);
}
FN real vwn_row_max(real x)
{
    for (int k = 1; k <= 2; k *= 2) {
        const real y = __shfl_xor_sync(0xffffffffu, x, k);
        x = y > x ? y : x;
    }
    return x;
}
template <int N> FN void vwn_clear(real (*x)[4])
{
    #pragma unroll
    for (int i = 0; i < N / 8; i++)
        x[i][0] = x[i][1] = x[i][2] = x[i][3] = 0;
}

/* What memory has as what a tile has. */
FN void vwn_convert(real &to, real x) { to = x; }
template <class F> FN void vwn_convert(real &to, F x) { to = vwn_number(x); }
template <class E, int N> struct __align__(N * sizeof(E)) vwn_some {
    E v[N];
};
/* Some neighbours, zeros where there are none. */
template <int N, class E, class F> FN void vwn_load_some(E *to, const F *from)
{
    vwn_some<F, N> x = {};
    if (from)
        x = *(const vwn_some<F, N> *)VWN_WIDE(from, N * sizeof(F));
    for (int i = 0; i < N; i++)
        vwn_convert(to[i], x.v[i]);
}
/* A tile (ROWS, D) of rows that begin at place(r), or are zeros where that is null; d numbers of a row
 * are there. */
template <int ROWS, int D, int WIDTH, int THREADS, class E, class P>
FN void vwn_tile_load(E *tile, int64_t d, P place)
{
    enum { PITCH = D + 16 / (int)sizeof(E), EACH = D / WIDTH };
    #pragma unroll 4
    for (int i = threadIdx.x; i < ROWS * EACH; i += THREADS) {
        const int r = i / EACH, c = i % EACH * WIDTH;
        const auto *const from = place(r);
        vwn_load_some<WIDTH>(tile + r * PITCH + c, c < d && from ? from + c : 0);
    }
}
/* x (16, N) += a (16, K) b (K, N): rows of numbers PA and PB apart, turned: a has K rows, b has. A tile of b
 * that is not turned has N rows. */
template <int N, int K, int PA, int PB, bool TURNED_A, bool TURNED_B>
FN void vwn_mul_tiles(real (*x)[4], const real *a, const real *b)
{
    const int l = threadIdx.x % 32;
    a += TURNED_A ? l / 4 : l / 4 * PA;
    b += TURNED_B ? l % 4 * 2 : l % 4 * 2 * PB;
    #pragma unroll 4
    for (int k = 0; k < K; k++) {
        const real p = a[TURNED_A ? k * PA : k], q = a[TURNED_A ? k * PA + 8 : 8 * PA + k];
        #pragma unroll
        for (int n = 0; n < N / 8; n++) {
            const real u = b[TURNED_B ? k * PB + n * 8 : n * 8 * PB + k];
            const real v = b[TURNED_B ? k * PB + n * 8 + 1 : (n * 8 + 1) * PB + k];
            x[n][0] += p * u;
            x[n][1] += p * v;
            x[n][2] += q * u;
            x[n][3] += q * v;
        }
    }
}
/* Two neighbours at column c of a row with `columns`. */
template <class E> FN void vwn_put_two(E *row, int c, int64_t columns, real x, real y)
{
    if (c < columns)
        vwn_put_number(row + c, x);
    if (c + 1 < columns)
        vwn_put_number(row + c + 1, y);
}

/* A place relative to a tile: 0 before it, N behind it. */
template <int N> FN int vwn_within(int64_t at) { return (int)vwn_least(N, vwn_most(0, at)); }
/* How many tiles of N hold n rows or columns: fewer than 2^31. */
template <int N> FN uint32_t vwn_tiles_of(int64_t n) { return (uint32_t)((uint64_t)(n + N - 1) / N); }
