/* ---- tiles of 16-bit numbers without gaps: rows of D, a multiple of 64, in chunks of 16 bytes. Chunk c of row r lies where
 * chunk c ^ r % 8 would, so that the same chunk of eight rows is in all banks of shared memory. ---- */
/* Where numbers c to c + 7 of row r lie; c is a multiple of 8. */
template <int D> FN int vwn_chunk(int r, int c) { return r * D + (c ^ r % 8 * 8); }
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
            const bool ok = i < left;
            vwn_copy_async<WIDTH * sizeof(E)>(to + i, ok ? from + i : from, ok);
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
/* One store of 8 or 16 bytes, which the compiler takes apart where words were selected. */
#ifndef VWN_EMU
FN void vwn_store_words(void *to, vwn_words u)
{
    asm volatile("st.global.v2.b32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(to)), "r"(u.x), "r"(u.y) : "memory");
}
FN void vwn_store_words(void *to, vwn_words u, vwn_words v)
{
    asm volatile("st.global.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(to)), "r"(u.x), "r"(u.y), "r"(v.x),
                 "r"(v.y) : "memory");
}
#else
FN void vwn_store_words(void *to, vwn_words u) { *(vwn_words *)VWN_WIDE(to, 8) = u; }
FN void vwn_store_words(void *to, vwn_words u, vwn_words v)
{
    vwn_words *const at = (vwn_words *)VWN_WIDE(to, 16);
    at[0] = u;
    at[1] = v;
}
#endif
/* Of two pairs that each thread holds every second thread gives its neighbour the left one, for that one's right one: then each
 * has four in a row. */
FN vwn_words vwn_exchange(uint32_t left, uint32_t right, uint32_t odd)
{
    const uint32_t other = __shfl_xor_sync(0xffffffffu, (left & odd) | (right & ~odd), 1);
    return {(other & odd) | (left & ~odd), (right & odd) | (other & ~odd)};
}
FN void vwn_put_four(real *to, const real *left, const real *right, uint32_t odd, bool there, int room)
{
    const vwn_words u = vwn_exchange(vwn_bits(left[0]), vwn_bits(right[0]), odd);
    const vwn_words v = vwn_exchange(vwn_bits(left[1]), vwn_bits(right[1]), odd);
    if (there && room > 0)
        vwn_store_words(to, {u.x, v.x}, {u.y, v.y});
}
template <class E> FN void vwn_put_four(E *to, const real *left, const real *right, uint32_t odd, bool there, int room)
{
    const vwn_words u = vwn_exchange(vwn_pair(left[0], left[1], E()), vwn_pair(right[0], right[1], E()), odd);
    if (there && room > 0)
        vwn_store_words(to, u);
}
/* Columns j to j + 15 of a row, of which this thread holds two at j + `own` and two 8 behind these, to a row of memory that has
 * `columns` from there on. WIDTH: at once; else each by itself. All threads of a warp call it. */
template <int WIDTH, class E>
FN void vwn_put_columns(E *row, int j, int own, int columns, const real *left, const real *right, bool there)
{
    if constexpr (WIDTH == 1) {
        if (there) {
            vwn_put_two(row, j + own, columns, left[0], left[1]);
            vwn_put_two(row, j + 8 + own, columns, right[0], right[1]);
        }
    } else {
        const uint32_t odd = 0u - (own >> 1 & 1u); /* all bits in every second thread */
        const int at = j + own + (int)(odd & 6);
        vwn_put_four(row + at, left, right, odd, there, columns - at);
    }
}
