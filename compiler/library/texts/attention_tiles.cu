
/* ---- attention: tiles of rows in shared memory, and 16 R rows of a result in the registers of a warp, which
 * are R times what 16 rows are. ---- */

/* tanh where a thread has many scores: a division keeps a compiler from computing more of them at one time than there are registers for. */
FN real vwn_tanh_of_score(real x) { return vwn_tanh_from(x, 1.0f - 2.0f / (vwn_exp(2.0f * vwn_abs(x)) + 1.0f)); }
/* Rows of D numbers. Those that fill whole lines of shared memory, of 128 bytes, have no room behind them: what
 * keeps equal columns of eight rows in different banks is that row r has its i-th 16 bytes of a line at
 * i ^ r % 8. Other rows lie 16 bytes apart from each other's ends. */
template <class E, int D> struct vwn_laid {
    enum { LINES = sizeof(E) == 2 && D % 64 == 0, PITCH = LINES ? D : D + 16 / (int)sizeof(E) };
};
/* Where number c of row r lies. */
template <class E, int D> FN int vwn_place(int r, int c)
{
    return r * vwn_laid<E, D>::PITCH + (vwn_laid<E, D>::LINES ? c ^ r % 8 * 8 : c);
}
/* Of a tile, which begins at a line of shared memory, number c of row r, c < 16; and what is n rows below and k numbers behind
 * that, n a multiple of 8 and k of 16. */
template <int D, class E> FN vwn_spot vwn_spot_in(const E *tile, int r, int c)
{
    return vwn_spot_of(tile) + vwn_place<E, D>(r, c) * (int)sizeof(E);
}
template <class E, int D> FN vwn_spot vwn_along(vwn_spot at, int n, int k)
{
    enum { PITCH = vwn_laid<E, D>::PITCH, SIZE = (int)sizeof(E) };
    return (vwn_laid<E, D>::LINES ? (at ^ k % 64 * SIZE) + k / 64 * 128 : at + k * SIZE) + n * PITCH * SIZE;
}

/* Copies of tiles (ROWS, D) from rows `pitch` apart, of which `rows` are there with `d` numbers each; zeros for what is not.
 * WIDTH numbers at once; 0: 16 bytes where all rows lie at such, else 4.
 * Threads beside each other copy what lies in a line of 128 bytes, and each has one place in its lines and every DOWN-th row. Of 16
 * bytes it keeps that place for all tiles: vwn_tile_at() of the tile's first number. */
template <int D, int EACH, int THREADS, class E> struct vwn_copies {
    enum { PARTS = D / EACH, LINE = 128 / (EACH * (int)sizeof(E)) };
    enum { ACROSS = PARTS % LINE == 0 ? LINE : PARTS % (LINE / 2) == 0 ? LINE / 2 : PARTS % (LINE / 4) == 0 ? LINE / 4 : LINE / 8 };
    enum { DOWN = THREADS / ACROSS };
};
template <int D, int WIDTH, int THREADS, class E> FN const E *vwn_tile_at(const E *from, int64_t pitch)
{
    enum { EACH = 16 / (int)sizeof(E) };
    typedef vwn_copies<D, EACH, THREADS, E> by;
    if (WIDTH != 0 && WIDTH != EACH)
        return from;
    const int me = vwn_thread();
    return from + me / by::ACROSS * pitch + me % by::ACROSS * EACH;
}
template <int ROWS, int D, int EACH, int THREADS, class E>
FN void vwn_tile_copy_part(E *tile, const E *from, int64_t pitch, int rows, int d)
{
    typedef vwn_copies<D, EACH, THREADS, E> by;
    const int me = vwn_thread(), r0 = me / by::ACROSS, c0 = me % by::ACROSS * EACH;
    from += r0 * pitch + c0;
    #pragma unroll 4
    for (int r = r0; r < ROWS; r += by::DOWN, from += by::DOWN * pitch) {
        E *const to = tile + vwn_place<E, D>(r, c0);
        #pragma unroll
        for (int c = 0; c < D; c += by::ACROSS * EACH)
            vwn_copy_async<EACH * sizeof(E)>(to + c, from + c, r < rows && c0 + c < d);
    }
}
template <int ROWS, int D, int THREADS, class E>
APART void vwn_tile_copy_narrow(E *tile, const E *at, int64_t pitch, int rows, int d)
{
    const E *const from = at - (vwn_tile_at<D, 0, THREADS>(at, pitch) - at);
    vwn_tile_copy_part<ROWS, D, 4 / (int)sizeof(E), THREADS>(tile, from, pitch, rows, d);
}
/* Of a tile that is whole nothing is asked. */
template <int ROWS, int D, int THREADS, class E>
FN void vwn_tile_copy_wide(E *tile, const E *at, int64_t pitch, int rows, int d)
{
    enum { EACH = 16 / (int)sizeof(E) };
    typedef vwn_copies<D, EACH, THREADS, E> by;
    enum { PITCH = vwn_laid<E, D>::PITCH, DOWN = by::DOWN, ACROSS = by::ACROSS * EACH };
    const int r0 = threadIdx.x / by::ACROSS, c0 = threadIdx.x % by::ACROSS * EACH;
    E *const to = tile + vwn_place<E, D>(r0, c0);
    if (ROWS % DOWN == 0 && rows >= ROWS && d >= D) {
        #pragma unroll
        for (int r = 0; r < ROWS; r += DOWN) {
            #pragma unroll
            for (int c = 0; c < D; c += ACROSS)
                vwn_copy_whole(to + r * PITCH + c, at + c);
            at += DOWN * pitch;
        }
        return;
    }
    #pragma unroll 1
    for (int r = 0; r < ROWS - r0; r += DOWN, at += DOWN * pitch)
        #pragma unroll
        for (int c = 0; c < D; c += ACROSS)
            vwn_copy_async<16>(to + r * PITCH + c, at + c, r0 + r < rows && c0 + c < d);
}
template <int ROWS, int D, int WIDTH, int THREADS, class E>
FN void vwn_tile_copy(E *tile, const E *at, int64_t pitch, int rows, int d)
{
    const uint32_t place = (uint32_t)(uint64_t)at | (uint32_t)(pitch | d) * (uint32_t)sizeof(E);
    if constexpr (WIDTH * sizeof(E) == 16)
        vwn_tile_copy_wide<ROWS, D, THREADS>(tile, at, pitch, rows, d);
    else if constexpr (WIDTH != 0)
        vwn_tile_copy_part<ROWS, D, WIDTH, THREADS>(tile, at, pitch, rows, d);
    else if (place % 16 == 0)
        vwn_tile_copy_wide<ROWS, D, THREADS>(tile, at, pitch, rows, d);
    else
        vwn_tile_copy_narrow<ROWS, D, THREADS>(tile, at, pitch, rows, d);
}

/* x (16 R, N) += a (16 R, K) b^T, both tiles of rows of K, whose first F numbers are left out; two bytes on tensor cores, or
 * float32 */
template <int R, int N, int K, int F = 0, class E> FN void vwn_mul_rows(real (*x)[4], const E *a, const E *b)
{
    const int l = threadIdx.x % 32;
    enum { LINE = K % 64 == 0 && !F ? 64 : K };
    vwn_spot at = vwn_spot_in<K>(a, l % 16, l / 16 * 8), with = vwn_spot_in<K>(b, l % 8 + l / 16 * 8, l / 8 % 2 * 8);
    #pragma unroll 1
    for (int line = 0; line < K; line += LINE) {
        #pragma unroll
        for (int k = F; k < LINE; k += 16) {
            uint32_t p[R][4], q[4];
            #pragma unroll
            for (int m = 0; m < R; m++)
                vwn_load_at(p[m], vwn_along<E, K>(at, m * 16, k));
            #pragma unroll
            for (int n = 0; n < N; n += 16) {
                vwn_load_at(q, vwn_along<E, K>(with, n, k));
                #pragma unroll
                for (int m = 0; m < R; m++) {
                    vwn_mma(x[m * (N / 8) + n / 8], p[m], q, E());
                    vwn_mma(x[m * (N / 8) + n / 8 + 1], p[m], q + 2, E());
                }
            }
        }
        at += LINE * (int)sizeof(E);
        with += LINE * (int)sizeof(E);
    }
}
template <int R, int N, int K> FN void vwn_mul_rows(real (*x)[4], const real *a, const real *b)
{
    enum { PITCH = K + 4 };
    const int l = threadIdx.x % 32;
    a += l / 4 * PITCH;
    b += l % 4 * 2 * PITCH;
    #pragma unroll 4
    for (int k = 0; k < K; k += 4) {
        const vwn_four p = *(const vwn_four *)(a + k), q = *(const vwn_four *)(a + 8 * PITCH + k);
        #pragma unroll
        for (int n = 0; n < N / 8; n++) {
            const vwn_four u = *(const vwn_four *)(b + n * 8 * PITCH + k);
            const vwn_four v = *(const vwn_four *)(b + (n * 8 + 1) * PITCH + k);
            x[n][0] = vwn_dot(p, u, x[n][0]);
            x[n][1] = vwn_dot(p, v, x[n][1]);
            x[n][2] = vwn_dot(q, u, x[n][2]);
            x[n][3] = vwn_dot(q, v, x[n][3]);
        }
    }
}

/* The first K numbers of rows of memory as a product takes them, in registers, of which a thread has R K / 4: 16 R rows `pitch` apart,
 * of which `rows` are there with `d` numbers each; zeros for what is not. */
template <int R, int K, class E>
FN void vwn_keep_rows(uint32_t (*p)[4], const E *from, int64_t pitch, int rows, int d)
{
    const int l = threadIdx.x % 32, r = l / 4, c = l % 4 * 2;
    from += r * pitch + c;
    #pragma unroll
    for (int m = 0; m < R; m++)
        #pragma unroll
        for (int k = 0; k < K; k += 16)
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const bool ok = r + m * 16 + i % 2 * 8 < rows && c + k + i / 2 * 8 < d;
                p[m * (K / 16) + k / 16][i] =
                    ok ? *(const uint32_t *)(from + (m * 16 + i % 2 * 8) * pitch + k + i / 2 * 8) : 0;
            }
}
/* x (16 R, N) += p (16 R, F) b^T, where p is kept in registers and b the first F numbers of a tile of rows of K. */
template <int R, int N, int K, int F = K, class E> FN void vwn_mul_kept(real (*x)[4], const uint32_t (*p)[4], const E *b)
{
    const int l = threadIdx.x % 32;
    const vwn_spot with = vwn_spot_in<K>(b, l % 8 + l / 16 * 8, l / 8 % 2 * 8);
    #pragma unroll
    for (int k = 0; k < F; k += 16) {
        #pragma unroll
        for (int n = 0; n < N; n += 16) {
            uint32_t q[4];
            vwn_load_at(q, vwn_along<E, K>(with, n, k));
            #pragma unroll
            for (int m = 0; m < R; m++) {
                vwn_mma(x[m * (N / 8) + n / 8], p[m * (F / 16) + k / 16], q, E());
                vwn_mma(x[m * (N / 8) + n / 8 + 1], p[m * (F / 16) + k / 16], q + 2, E());
            }
        }
    }
}

/* x (16 R, N) += y (16 R, K) b, where y is a result in registers and b a tile of K rows. For float32
 * y goes through `held`, 16 rows of shared memory that belong to the warp. */
template <int R, int N, int K, class E>
FN void vwn_mul_held(real (*x)[4], const real (*y)[4], real *held, const E *b)
{
    const int l = threadIdx.x % 32;
    const vwn_spot at = vwn_spot_in<N>(b, l % 16, l / 16 * 8);
    #pragma unroll
    for (int k = 0; k < K; k += 16) {
        uint32_t p[R][4], q[4];
        #pragma unroll
        for (int m = 0; m < R; m++)
            #pragma unroll
            for (int i = 0; i < 4; i++) {
                const real *const u = y[m * (K / 8) + k / 8 + i / 2];
                p[m][i] = vwn_pair(u[i % 2 * 2], u[i % 2 * 2 + 1], E());
            }
        #pragma unroll
        for (int n = 0; n < N; n += 16) {
            vwn_load_transposed_at(q, vwn_along<E, N>(at, k, n));
            #pragma unroll
            for (int m = 0; m < R; m++) {
                vwn_mma(x[m * (N / 8) + n / 8], p[m], q, E());
                vwn_mma(x[m * (N / 8) + n / 8 + 1], p[m], q + 2, E());
            }
        }
    }
}
template <int R, int N, int K> FN void vwn_mul_held(real (*x)[4], const real (*y)[4], real *held, const real *b)
{
    enum { PITCH = N + 4, HELD = K + 4 };
    const int l = threadIdx.x % 32;
    held += l / 4 * HELD;
    #pragma unroll
    for (int n = 0; n < K / 8; n++) {
        *(vwn_two *)(held + n * 8 + l % 4 * 2) = {y[n][0], y[n][1]};
        *(vwn_two *)(held + 8 * HELD + n * 8 + l % 4 * 2) = {y[n][2], y[n][3]};
    }
    __syncwarp();
    b += l % 4 * 2;
    #pragma unroll 4
    for (int k = 0; k < K; k++) {
        const real p = held[k], q = held[8 * HELD + k];
        #pragma unroll
        for (int n = 0; n < N / 8; n++) {
            const vwn_two u = *(const vwn_two *)(b + k * PITCH + n * 8);
            x[n][0] += p * u.x;
            x[n][1] += p * u.y;
            x[n][2] += q * u.x;
            x[n][3] += q * u.y;
        }
    }
    __syncwarp();
}

/* Of a result N columns of row r of a thread whose first column is `own`, times `by`, to a row of memory that has `columns`; where WIDE
 * these are a multiple of 8, and four are stored at once. All threads of a warp call it, also for rows that are not `there`. */
template <bool WIDE, int N, class E> FN void vwn_put_times(E *row, const real (*x)[4], int r, real by, int own, int columns, bool there)
{
    x += r / 2 * (N / 8);
    if constexpr (WIDE) {
        real y[N / 8][4];
        #pragma unroll
        for (int i = 0; i < N / 8; i++) {
            y[i][r % 2 * 2] = x[i][r % 2 * 2] * by;
            y[i][r % 2 * 2 + 1] = x[i][r % 2 * 2 + 1] * by;
        }
        vwn_put_fours<8, N>(row, own, columns, y, r % 2, there);
    } else if (there) {
        #pragma unroll
        for (int i = 0; i < N / 8; i++) {
            const real *const y = x[i] + r % 2 * 2;
            if (i * 8 + own < columns)
                vwn_put_pair(row + i * 8 + own, y[0] * by, y[1] * by, i * 8 + own + 1 < columns);
        }
    }
}

/* Of columns `from` to `to`: is j one, j at least 0? */
struct vwn_span {
    int from, to;
};
FN bool vwn_in(vwn_span s, int j) { return (uint32_t)(j - s.from) < (uint32_t)(s.to - s.from); }
FN vwn_span vwn_both_of(vwn_span a, vwn_span b)
{
    const int from = a.from > b.from ? a.from : b.from, to = a.to < b.to ? a.to : b.to;
    return {from, to > from ? to : from};
}
/* The keys j, from a first one, that a query sees which lies `back` behind that one; and the queries j, from a first one, that see
 * a key which lies `back` behind that one. */
FN vwn_span vwn_keys_seen(int back, bool causal, int wide)
{
    return {back - wide + 1, causal ? back + 1 : back + wide};
}
FN vwn_span vwn_queries_seeing(int back, bool causal, int wide)
{
    return {causal ? back : back - wide + 1, back + wide};
}
/* Whether each of some queries sees each of some keys: least, most: the least and the greatest t - u. */
FN bool vwn_all_seen(int least, int most, bool causal, int wide)
{
    return !(causal && least < 0) && most < wide && -least < wide;
}
/* The first key that any of `rows` queries sees, the same in all threads; and the last such first key. */
FN int64_t vwn_first_seen(const integer *start, int64_t rows)
{
    int64_t least = 0x7fffffffffffffff;
    for (int64_t i = threadIdx.x % 32; i < rows; i += 32)
        least = vwn_least(least, start[i]);
    for (int k = 16; k; k /= 2)
        least = vwn_least(least, __shfl_xor_sync(0xffffffffu, least, k));
    return least;
}
FN int64_t vwn_last_first(const integer *start, int64_t rows)
{
    int64_t most = 0;
    for (int64_t i = threadIdx.x % 32; i < rows; i += 32)
        most = vwn_most(most, start[i]);
    for (int k = 16; k; k /= 2)
        most = vwn_most(most, __shfl_xor_sync(0xffffffffu, most, k));
    return most;
}
/* Which tile of ROWS rows of a sequence block i computes, of which head of which sequence. A block asks again behind its loop, so that
 * the answers have no registers while that runs. */
struct vwn_share {
    int tile, head, batch;
};
template <int ROWS> FN vwn_share vwn_share_of(uint32_t i, int64_t rows, int64_t heads)
{
    const uint32_t tiles = (uint32_t)((rows + ROWS - 1) / ROWS), j = i / tiles;
    return {(int)(i - j * tiles), (int)(j % (uint32_t)heads), (int)(j / (uint32_t)heads)};
}
