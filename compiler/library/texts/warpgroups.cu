/* ---- products of warpgroups, of sm_90a: four warps multiply matrices that lie in shared memory, while they do other things. Of 64
 * rows of sums each warp has 16, in registers as mma.sync has them. ---- */
#ifndef VWN_EMU
/* Shared memory whose size the launch says; it begins where a pattern of eight lines does. */
extern __shared__ __align__(1024) unsigned char vwn_shared_lines[];
#define DYN_SMEM_LINES(name) unsigned char *const name = vwn_shared_lines
/* What this thread has written to shared memory, its copies that have come among it, is there for products of warpgroups. */
FN void vwn_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/* What registers of a product hold, it holds from here on. */
template <int N> FN void vwn_group_registers(real (&x)[N][4])
{
    #pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+f"(x[i][0]), "+f"(x[i][1]), "+f"(x[i][2]), "+f"(x[i][3])::"memory");
}
template <int N> FN void vwn_group_registers(uint32_t (&x)[N][4])
{
    #pragma unroll
    for (int i = 0; i < N; i++)
        asm volatile("" : "+r"(x[i][0]), "+r"(x[i][1]), "+r"(x[i][2]), "+r"(x[i][3])::"memory");
}
/* Of sums these are named that products add to. */
template <bool MORE, int N> FN void vwn_group_sums(real (&x)[N][4])
{
    if constexpr (MORE)
        vwn_group_registers(x);
}
/* Products behind it may take registers that are named in front of it. */
FN void vwn_group_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
/* Products since the last group become one; until all but the last LEFT groups are done. */
FN void vwn_group_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int LEFT> FN void vwn_group_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory"); }
/* x (64, N) += a (64, 16) b (16, N), or =, of matrices of vwn_matrix(), or of a in registers; turned: lines lie along rows of a, along
 * columns of b. */
#define VWN_SUMS4(HOW, x) HOW((x)[0]), HOW((x)[1]), HOW((x)[2]), HOW((x)[3])
#define VWN_SUMS32(HOW, x) VWN_SUMS16(HOW, x), VWN_SUMS16(HOW, (x) + 4)
#define VWN_SUMS16(HOW, x) VWN_SUMS4(HOW, (x)[0]), VWN_SUMS4(HOW, (x)[1]), VWN_SUMS4(HOW, (x)[2]), VWN_SUMS4(HOW, (x)[3])
#define VWN_SUMS64(HOW, x) VWN_SUMS32(HOW, x), VWN_SUMS32(HOW, (x) + 8)
#define VWN_SUMS96(HOW, x) VWN_SUMS32(HOW, x), VWN_SUMS16(HOW, (x) + 8)
#define VWN_SUMS128(HOW, x) VWN_SUMS64(HOW, x), VWN_SUMS64(HOW, (x) + 16)
#define VWN_NAMES0 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
    "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define VWN_NAMES32 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define VWN_NAMES48 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define VWN_NAMES64 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, " \
    "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define VWN_NAMES96 "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define VWN_GROUP_AS(HOW, TEXT, SUMS, ...) asm volatile("wgmma.mma_async.sync.aligned." TEXT : SUMS(HOW, x) : __VA_ARGS__ : "memory")
/* Registers of sums are not read where nothing is added to. */
#define VWN_GROUP_ASM(...)                                                                                              \
    if constexpr (MORE)                                                                                                \
        VWN_GROUP_AS("+f", __VA_ARGS__);                                                                               \
    else                                                                                                               \
        VWN_GROUP_AS("=f", __VA_ARGS__)
#define VWN_GROUP(E, TYPE, N, NAMES, SUMS, A, B, ADD, TURNED_A, TURNED_B)                                               \
    template <bool MORE, bool TA, bool TB> FN void vwn_group_product(real (&x)[N / 8][4], uint64_t a, uint64_t b, E)    \
    {                                                                                                                  \
        VWN_GROUP_ASM("m64n" #N "k16.f32." TYPE "." TYPE " {" NAMES "}, " A ", " B ", " ADD ", 1, 1, " TURNED_A ", " TURNED_B ";", \
                      SUMS, "l"(a), "l"(b), "n"(MORE), "n"(TA), "n"(TB));                                               \
    }
#define VWN_GROUP_HELD(E, TYPE, N, NAMES, SUMS, A0, A1, A2, A3, B, ADD, TURNED_B)                                        \
    template <bool MORE, bool TB> FN void vwn_group_product_held(real (&x)[N / 8][4], const uint32_t (&a)[4], uint64_t b, E) \
    {                                                                                                                  \
        VWN_GROUP_ASM("m64n" #N "k16.f32." TYPE "." TYPE " {" NAMES "}, {" A0 ", " A1 ", " A2 ", " A3 "}, " B ", " ADD ", 1, 1, " \
                      TURNED_B ";", SUMS, "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(MORE), "n"(TB));      \
    }
#define VWN_NAMES_64 VWN_NAMES0
#define VWN_NAMES_96 VWN_NAMES0 ", " VWN_NAMES32
#define VWN_NAMES_128 VWN_NAMES_96 ", " VWN_NAMES48
#define VWN_NAMES_256 VWN_NAMES_128 ", " VWN_NAMES64 ", " VWN_NAMES96
#define VWN_GROUPS(E, TYPE)                                                                                              \
    VWN_GROUP(E, TYPE, 64, VWN_NAMES_64, VWN_SUMS32, "%32", "%33", "%34", "%35", "%36")                                \
    VWN_GROUP(E, TYPE, 96, VWN_NAMES_96, VWN_SUMS96, "%48", "%49", "%50", "%51", "%52")                                \
    VWN_GROUP(E, TYPE, 128, VWN_NAMES_128, VWN_SUMS64, "%64", "%65", "%66", "%67", "%68")                              \
    VWN_GROUP(E, TYPE, 256, VWN_NAMES_256, VWN_SUMS128, "%128", "%129", "%130", "%131", "%132")                        \
    VWN_GROUP_HELD(E, TYPE, 64, VWN_NAMES_64, VWN_SUMS32, "%32", "%33", "%34", "%35", "%36", "%37", "%38")             \
    VWN_GROUP_HELD(E, TYPE, 96, VWN_NAMES_96, VWN_SUMS96, "%48", "%49", "%50", "%51", "%52", "%53", "%54")             \
    VWN_GROUP_HELD(E, TYPE, 128, VWN_NAMES_128, VWN_SUMS64, "%64", "%65", "%66", "%67", "%68", "%69", "%70")
VWN_GROUPS(bf16, "bf16")
VWN_GROUPS(fp16, "f16")
#else /* twins of the emulator */
#define DYN_SMEM_LINES(name) DYN_SMEM(name)
FN uint32_t vwn_shared_address(const void *p) { return emu_shared_address(p); }
FN void vwn_proxy_fence() { emu_proxy_fence(); }
template <class T, int N> FN void vwn_group_registers(T (&x)[N][4]) { emu_group_registers(x, 4 * N); }
template <bool MORE, int N> FN void vwn_group_sums(real (&x)[N][4]) { vwn_group_registers(x); }
FN void vwn_group_fence() { emu_group_fence(); }
FN void vwn_group_commit() { emu_group_commit(); }
template <int LEFT> FN void vwn_group_wait() { emu_group_wait(LEFT); }
FN bool vwn_is_fp16(bf16) { return false; }
FN bool vwn_is_fp16(fp16) { return true; }
template <bool MORE, bool TA, bool TB, int N, class E> FN void vwn_group_product(real (&x)[N][4], uint64_t a, uint64_t b, E e)
{
    emu_group_product(x[0], 0, a, b, 8 * N, MORE, TA, TB, vwn_is_fp16(e));
}
template <bool MORE, bool TB, int N, class E> FN void vwn_group_product_held(real (&x)[N][4], const uint32_t (&a)[4], uint64_t b, E e)
{
    emu_group_product(x[0], a, 0, b, 8 * N, MORE, false, TB, vwn_is_fp16(e));
}
#endif
/* Tiles of 16-bit numbers in lines of 64 of them: panels of HIGH rows and 64 columns, in each of which rows lie as chunks say (chunks.cu).
 * Where numbers c to c + 7 of row r lie; c is a multiple of 8. */
template <int HIGH> FN int vwn_in_panel(int r, int c) { return c / 64 * HIGH * 64 + vwn_chunk<64>(r, c % 64); }
/* The same of a tile of HIGH rows and WIDE columns in panels, or in whole rows. */
template <bool PANELS, int WIDE, int HIGH> FN int vwn_in_tile(int r, int c)
{
    return PANELS ? vwn_in_panel<HIGH>(r, c) : vwn_chunk<WIDE>(r, c);
}
/* A matrix as wgmma takes it, of which a product has 16 terms along the sum: in lines of 128 bytes with their 16-byte pieces in turned
 * order; eight of them are a pattern of 1,024 bytes, where the tile begins. The sum is along the lines, or, turned, along the rows; then
 * there may be several panels. Where it begins at row r, a multiple of 8, or turned at column c, of 64; then, k terms on. */
template <int HIGH, bool TURNED, class E> FN uint32_t vwn_matrix(const E *tile, int at)
{
    enum { NEXT_PANEL = TURNED ? HIGH * 128 : 16 }; /* of one panel: not used */
    return (vwn_shared_address(tile) + (TURNED ? at * HIGH : at * 64) * 2) >> 4 | NEXT_PANEL >> 4 << 16;
}
template <int HIGH, bool TURNED> FN uint64_t vwn_matrix_on(uint32_t matrix, int k)
{
    enum { NEXT_ROWS = 8 * 128, LINES = 1 << 30 };
    return (uint64_t)(LINES | NEXT_ROWS >> 4) << 32 | (matrix + (TURNED ? k * 64 : k / 64 * HIGH * 64 + k % 64) * 2 / 16);
}
/* A group of products: x (64, N) += a b over K terms, or = where not MORE; a begins at row m of its tile of HIGH_A rows, or turned at
 * column m of one of K rows, and so does b at column n. */
template <bool MORE, int K, int HIGH_A, int HIGH_B, bool TURNED_A, bool TURNED_B, int N, class E>
FN void vwn_group_mul(real (&x)[N][4], const E *a, int m, const E *b, int n)
{
    const uint32_t of_a = vwn_matrix<HIGH_A, TURNED_A>(a, m), of_b = vwn_matrix<HIGH_B, TURNED_B>(b, n);
    vwn_group_sums<MORE>(x);
    vwn_group_fence();
    #pragma unroll
    for (int k = 0; k < K; k += 16) {
        const uint64_t from = vwn_matrix_on<HIGH_A, TURNED_A>(of_a, k), with = vwn_matrix_on<HIGH_B, TURNED_B>(of_b, k);
        if (k == 0)
            vwn_group_product<MORE, TURNED_A, TURNED_B>(x, from, with, E());
        else
            vwn_group_product<true, TURNED_A, TURNED_B>(x, from, with, E());
    }
    vwn_group_commit();
}
/* x (64, N) += y (64, K) b, or = where not MORE, where y lies in registers; b is a tile of HIGH rows, turned: a row for each term. */
template <bool MORE, int K, int HIGH, bool TURNED, int N, class E>
FN void vwn_group_mul_held(real (&x)[N][4], uint32_t (&y)[K / 16][4], const E *b)
{
    const uint32_t of_b = vwn_matrix<HIGH, TURNED>(b, 0);
    vwn_group_sums<MORE>(x);
    vwn_group_registers(y);
    vwn_group_fence();
    #pragma unroll
    for (int k = 0; k < K; k += 16) {
        const uint64_t with = vwn_matrix_on<HIGH, TURNED>(of_b, k);
        if (k == 0)
            vwn_group_product_held<MORE, TURNED>(x, y[k / 16], with, E());
        else
            vwn_group_product_held<true, TURNED>(x, y[k / 16], with, E());
    }
    vwn_group_commit();
}
template <int K, class E> FN void vwn_round_held(uint32_t (&y)[K / 16][4], const real (&x)[K / 8][4], E)
{
    #pragma unroll
    for (int k = 0; k < K / 16; k++)
        #pragma unroll
        for (int i = 0; i < 4; i++)
            y[k][i] = vwn_pair(x[2 * k + i / 2][i % 2 * 2], x[2 * k + i / 2][i % 2 * 2 + 1], E());
}
/* Copies of a tile (ROWS, D) into panels: 16 bytes at once, of rows `pitch` apart, of which `rows` are there with `d` numbers each; zeros
 * for what is not. */
template <int ROWS, int D, int THREADS, class E> FN void vwn_panel_copy(E *tile, const E *from, int64_t pitch, int rows, int d)
{
    enum { DOWN = THREADS / 8 }; /* eight threads copy a line */
    const int r0 = vwn_thread() / 8, c0 = vwn_thread() % 8 * 8;
    E *const to = tile + vwn_in_panel<ROWS>(r0, c0);
    from += r0 * pitch + c0;
    if (rows >= ROWS && d >= D) {
        #pragma unroll
        for (int r = 0; r < ROWS; r += DOWN, from += DOWN * pitch)
            #pragma unroll
            for (int c = 0; c < D; c += 64)
                vwn_copy_whole(to + r * 64 + c * ROWS, from + c);
        return;
    }
    #pragma unroll 1
    for (int r = 0; r < ROWS; r += DOWN, from += DOWN * pitch)
        #pragma unroll
        for (int c = 0; c < D; c += 64) {
            const bool ok = r0 + r < rows && c0 + c < d;
            vwn_copy_async<16>(to + r * 64 + c * ROWS, from + c, ok);
        }
}
