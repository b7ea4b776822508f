/* ---- tiles of 16-bit numbers without gaps: rows of D, a multiple of 64, in chunks of 16 bytes. Chunk c of row r lies where
 * chunk c ^ r % 8 would, so that the same chunk of eight rows is in all banks of shared memory. ---- */
/* Where numbers c to c + 7 of row r lie; c is a multiple of 8. */
template <int D> FN int vwn_chunk(int r, int c) { return r * D + (c ^ r % 8 * 8); }
/* Eight threads copy a line, 64 numbers of a row: the line and the piece of it that this thread copies first. Asked again wherever that
 * stands, so nothing of it has registers while products are added up. */
FN int vwn_line() { return (int)vwn_thread() / 8; }
FN int vwn_piece() { return (int)vwn_thread() % 8 * 8; }
/* Begins to copy a chunk, WIDTH numbers at once, of which `left` are there; zeros for the others. */
template <int WIDTH, class E> FN void vwn_copy_chunk(E *to, const E *from, int left)
{
    if constexpr (WIDTH == 1) {
        #pragma unroll 2 /* more would want registers of the sums */
        for (int i = 0; i < 8; i++)
            to[i] = i < left ? from[i] : E();
    } else {
        #pragma unroll
        for (int i = 0; i < 8; i += WIDTH) {
            const int there = left < i ? 0 : left < i + WIDTH ? left - i : WIDTH;
            vwn_copy_bytes<WIDTH * sizeof(E)>(to + i, there ? from + i : from, there * (int)sizeof(E));
        }
    }
}
/* x (M, N) += a b over K terms, where a begins at row m of its tile and b at column n. Rows of a have DA numbers, those of b
 * DB. Turned: a has a row for each term; b has. */
template <int M, int N, int K, int DA, int DB, bool TURNED_A, bool TURNED_B, class E>
FN void vwn_mul_chunks(real (*x)[N / 8][4], const E *a, int m, const E *b, int n)
{
    const int l = threadIdx.x % 32, down = l % 16, right = l / 16 * 8, across = l % 8 + l / 16 * 8, along = l / 8 % 2 * 8;
    #pragma unroll
    for (int k = 0; k < K; k += 16) {
        uint32_t p[M / 16][4], q[4];
        #pragma unroll
        for (int i = 0; i < M / 16; i++)
            if constexpr (TURNED_A)
                vwn_load_pieces_transposed(p[i], a + vwn_chunk<DA>(k + across, m + i * 16 + along));
            else
                vwn_load_pieces(p[i], a + vwn_chunk<DA>(m + i * 16 + down, k + right));
        #pragma unroll
        for (int j = 0; j < N; j += 16) {
            if constexpr (TURNED_B)
                vwn_load_pieces_transposed(q, b + vwn_chunk<DB>(k + down, n + j + right));
            else
                vwn_load_pieces(q, b + vwn_chunk<DB>(n + j + across, k + along));
            #pragma unroll
            for (int i = 0; i < M / 16; i++) {
                vwn_mma(x[i][j / 8], p[i], q, E());
                vwn_mma(x[i][j / 8 + 1], p[i], q + 2, E());
            }
        }
    }
}
struct vwn_words { uint32_t x, y; };
/* One store of 8 or 16 bytes, where `there`. The compiler would take it apart where words were selected, and jump around it. */
#ifndef VWN_EMU
/* A pointer that is not computed again wherever it is used. */
template <class E> FN E *vwn_kept(E *p)
{
    asm("" : "+l"(p));
    return p;
}
FN void vwn_store_words(void *to, vwn_words u, bool there)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %3, 0; @p st.global.v2.b32 [%0], {%1, %2};}" ::"l"(__cvta_generic_to_global(to)),
                 "r"(u.x), "r"(u.y), "r"((int)there) : "memory");
}
FN void vwn_store_words(void *to, vwn_words u, vwn_words v, bool there)
{
    asm volatile("{.reg .pred p; setp.ne.b32 p, %5, 0; @p st.global.v4.b32 [%0], {%1, %2, %3, %4};}" ::"l"(__cvta_generic_to_global(to)),
                 "r"(u.x), "r"(u.y), "r"(v.x), "r"(v.y), "r"((int)there) : "memory");
}
#else
template <class E> FN E *vwn_kept(E *p) { return p; }
FN void vwn_store_words(void *to, vwn_words u, bool there)
{
    if (there)
        *(vwn_words *)VWN_WIDE(to, 8) = u;
}
FN void vwn_store_words(void *to, vwn_words u, vwn_words v, bool there)
{
    if (!there)
        return;
    vwn_words *const at = (vwn_words *)VWN_WIDE(to, 16);
    at[0] = u;
    at[1] = v;
}
#endif
/* Bits of x where the mask has ones, of y where it has none; so written it is one instruction. */
FN uint32_t vwn_blend(uint32_t mask, uint32_t x, uint32_t y) { return y ^ ((x ^ y) & mask); }
/* Of two pairs that each thread holds every second thread gives its neighbour the left one, for that one's right one: then each
 * has four in a row. */
FN vwn_words vwn_exchange(uint32_t left, uint32_t right, uint32_t odd)
{
    const uint32_t other = __shfl_xor_sync(0xffffffffu, vwn_blend(odd, left, right), 1);
    return {vwn_blend(odd, other, left), vwn_blend(odd, right, other)};
}
FN void vwn_put_four(real *to, const real *left, const real *right, uint32_t odd, bool there)
{
    const vwn_words u = vwn_exchange(vwn_bits(left[0]), vwn_bits(right[0]), odd);
    const vwn_words v = vwn_exchange(vwn_bits(left[1]), vwn_bits(right[1]), odd);
    vwn_store_words(to, {u.x, v.x}, {u.y, v.y}, there);
}
template <class E> FN void vwn_put_four(E *to, const real *left, const real *right, uint32_t odd, bool there)
{
    vwn_store_words(to, vwn_exchange(vwn_pair(left[0], left[1], E()), vwn_pair(right[0], right[1], E()), odd), there);
}
/* N columns of a row, of which this thread holds in sums of 16 rows two of each 8, at `own`, to a row of memory that has `columns`; r: of
 * row l / 4 or, 1, of the one 8 below. WIDTH: at once; else each by itself. All threads of a warp call it. */
template <int WIDTH, int N, class E> FN void vwn_put_fours(E *row, int own, int columns, const real (*x)[4], int r, bool there)
{
    if constexpr (WIDTH == 1) {
        #pragma unroll
        for (int j = 0; j < N && there; j += 8)
            vwn_put_two(row, j + own, columns, x[j / 8][2 * r], x[j / 8][2 * r + 1]);
    } else {
        const uint32_t odd = 0u - (own >> 1 & 1u); /* all bits in every second thread */
        const int at = own + (int)(odd & 6), room = (columns - at) & -(int)there; /* no branch: threads stay together */
        E *const to = vwn_kept(row + at);
        #pragma unroll
        for (int j = 0; j < N; j += 16)
            vwn_put_four(to + j, x[j / 8] + 2 * r, x[j / 8 + 1] + 2 * r, odd, j < room);
    }
}
/* The same; whether each four lie at a multiple of their size is found at run time. */
template <int N, class E> FN void vwn_put_any(E *row, int own, int columns, const real (*x)[4], int r, bool there, bool fours)
{
    if (fours)
        vwn_put_fours<4, N>(row, own, columns, x, r, there);
    else
        vwn_put_fours<1, N>(row, own, columns, x, r, there);
}
