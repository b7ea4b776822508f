/* Where number i of a tile lies: pieces of 16 bytes change places within 128. */
FN uint32_t vwn_bank(int64_t i)
{
    const uint32_t u = (uint32_t)i;
    return u ^ (u >> 5 ^ u >> 8) % 8 * 4;
}
/* The same of a tile of bf16's: rows four apart lie in other pieces than each other. */
FN uint32_t vwn_bank_bf16(int64_t i)
{
    const uint32_t u = (uint32_t)i;
    return u ^ (u >> 6 ^ u >> 9 << 1) % 8 * 8;
}
FN bf16 *vwn_bf16_tile(real *u) { return (bf16 *)u; }
/* n words for a tile, whole lines of 128 bytes */
FN real *vwn_tile(unsigned char *&shared, uint32_t n)
{
    real *const x = (real *)shared;
    shared += (n + 31) / 32 * 128;
    return x;
}
/* Numbers from `first` on of a tile, or numbers in memory. Four begin at a multiple of four. */
struct vwn_held {
    real *at;
    uint32_t first;
};
struct vwn_held_bf16 {
    bf16 *at;
    uint32_t first;
};
template <class T> struct vwn_there {
    T *at;
};
FN real &vwn_number(vwn_held x, uint32_t i) { return x.at[vwn_bank(x.first + i)]; }
FN real vwn_number(vwn_held_bf16 x, uint32_t i) { return vwn_of_bf16(x.at[vwn_bank_bf16(x.first + i)]); }
template <class T> FN T &vwn_number(vwn_there<T> x, uint32_t i) { return x.at[i]; }
FN real vwn_number(vwn_there<const bf16> x, uint32_t i) { return vwn_of_bf16(x.at[i]); }
FN real vwn_number(vwn_there<const fp16> x, uint32_t i) { return vwn_of_fp16(x.at[i]); }
template <int N> FN vec<N> &vwn_few(vwn_held x, uint32_t i)
{
    return vwn_at<N>(x.at + vwn_bank(x.first + i));
}
template <int N> FN vec<N> vwn_few(vwn_held_bf16 x, uint32_t i)
{
    return vwn_get_bf16<N>(x.at + vwn_bank_bf16(x.first + i));
}
template <int N, class T> FN auto &vwn_few(vwn_there<T> x, uint32_t i)
{
    return vwn_at<N>(x.at + i);
}
template <int N> FN vec<N> vwn_few(vwn_there<const bf16> x, uint32_t i)
{
    return vwn_get_bf16<N>(x.at + i);
}
template <int N> FN vec<N> vwn_few(vwn_there<const fp16> x, uint32_t i)
{
    return vwn_get_fp16<N>(x.at + i);
}
template <int N, class F> FN void vwn_put_few(F x, uint32_t i, vec<N> y, int add)
{
    vec<N> &to = vwn_few<N>(x, i);
    to = add ? to + y : y;
}
template <int N> FN void vwn_put_few(vwn_there<bf16> x, uint32_t i, vec<N> y, int)
{
    vwn_put_bf16(x.at + i, vwn_round_to(y, 16));
}
template <int N> FN void vwn_put_few(vwn_there<fp16> x, uint32_t i, vec<N> y, int)
{
    vwn_put_fp16(x.at + i, y);
}

/* Where a factor or a result has neighbours: along the sum, along its own loop, or nowhere that
 * fours could begin. */
enum { VWN_ALONG_SUM, VWN_ALONG_OWN, VWN_APART };
/* x[i][k]: the terms k0 + k of own loops at + i; `step` along these, `deep` along the sum; 0 behind
 * its end, which is the end of fours where they are WHOLE. Loops over a piece are written out: a compiler takes
 * long over each of them in each product. */
template <int HOW, int N, bool WHOLE, class F>
FN void vwn_term(real (*x)[4], F f, uint32_t at, uint32_t step, uint32_t k0, uint32_t deep, uint32_t K, uint32_t i)
{
    if constexpr (HOW == VWN_ALONG_SUM) {
        const vec<4> y = vwn_few<4>(f, (at + i) * step + k0);
        VWN_EVERY(k, 4, x[i][k] = y.v[k])
    } else if constexpr (HOW == VWN_ALONG_OWN && N == 4) {
        const vec<4> y = WHOLE || k0 + i < K ? vwn_few<4>(f, at + (k0 + i) * deep) : vwn_all<4>(0);
        VWN_EVERY(k, 4, x[k][i] = y.v[k])
    } else {
        VWN_EVERY(k, N,
                  x[k][i] = WHOLE || k0 + i < K ? vwn_number(f, (at + k) * step + (k0 + i) * deep) : 0.0f)
    }
}
template <int HOW, int N, bool WHOLE, class F>
FN void vwn_terms(real (*x)[4], F f, uint32_t at, uint32_t step, uint32_t k0, uint32_t deep, uint32_t K)
{
    VWN_EVERY(i, (HOW == VWN_ALONG_SUM ? N : 4), vwn_term<HOW, N, WHOLE>(x, f, at, step, k0, deep, K, i))
}
/* R x 4 numbers of a result */
template <int R, int A, int B, int C, class F, class G, class H>
FN void vwn_product_piece(uint32_t m, uint32_t n, uint32_t K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk,
                          uint32_t bn, H c, uint32_t cm, uint32_t cn, int add)
{
    constexpr bool WHOLE = A == VWN_ALONG_SUM || B == VWN_ALONG_SUM;
    real x[R][4] = {};
    #pragma unroll 2
    for (uint32_t k0 = 0; k0 < K; k0 += 4) {
        real p[R][4], q[4][4];
        vwn_terms<A, R, WHOLE>(p, a, m, am, k0, ak, K);
        vwn_terms<B, 4, WHOLE>(q, b, n, bn, k0, bk, K);
        #pragma unroll
        for (int k = 0; k < 4; k++)
            #pragma unroll
            for (int i = 0; i < R; i++)
                #pragma unroll
                for (int j = 0; j < 4; j++)
                    x[i][j] += p[i][k] * q[j][k];
    }
    #pragma unroll
    for (int i = 0; i < (C == VWN_ALONG_OWN || R < 4 ? R : 4); i++) {
        if constexpr (C == VWN_ALONG_OWN) {
            vec<4> y;
            VWN_EVERY(j, 4, y.v[j] = x[i][j])
            vwn_put_few(c, (m + i) * cm + n, y, add);
        } else if constexpr (R == 4) {
            vec<4> y;
            VWN_EVERY(j, 4, y.v[j] = x[j][i])
            vwn_put_few(c, m + (n + i) * cn, y, add);
        } else {
            for (int j = 0; j < 4; j++) {
                real &to = vwn_number(c, (m + i) * cm + (n + j) * cn);
                to = add ? to + x[i][j] : x[i][j];
            }
        }
    }
}
template <int R, int WARPS, int A, int B, int C, class F, class G, class H>
FN void vwn_product_pieces(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk,
                           uint32_t bn, H c, uint32_t cm, uint32_t cn, int add)
{
    const uint32_t wide = N <= 8 ? 2 : N <= 16 ? 4 : 8, lane = threadIdx.x % 32;
    const uint32_t rows = 32 / wide * R, columns = wide * 4, across = (N + columns - 1) / columns;
    for (uint32_t i = threadIdx.x / 32; i < (M + rows - 1) / rows * across; i += WARPS) {
        const uint32_t m = i / across * rows + lane / wide * R, n = i % across * columns + lane % wide * 4;
        if (m < M && n < N)
            vwn_product_piece<R, A, B, C>(m, n, K, a, am, ak, b, bk, bn, c, cm, cn, add);
    }
}
/* How a product is cut: into wide pieces, or narrow ones because it has few columns or few rows. The text
 * says it, so it has one way of a product and not all; each of them is right for all sizes. */
enum { VWN_WIDE_PIECES, VWN_FEW_COLUMNS, VWN_FEW_ROWS };
/* c (M, N) = or += a (M, K) b (K, N), by all threads of a block; am: how far a steps with m. Where
 * there is little to do each thread does a row of four. */
template <int WARPS, int CUT, int A, int B, int C, class F, class G, class H>
FN void vwn_product(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk,
                    uint32_t bn, H c, uint32_t cm, uint32_t cn, int add)
{
    enum { R = CUT == VWN_WIDE_PIECES ? 4 : 1 };
    vwn_product_pieces<R, WARPS, A, B, C>(M, N, K, a, am, ak, b, bk, bn, c, cm, cn, add);
}

/* ---- the same on tensor cores. A number is the sum of two of bf16, of 16 bits together, and
 * terms that are smaller than that are left out; one that is of bf16 is one part, one of fp16 two. Two
 * factors of fp16 are multiplied as they are; but parts of fp16 would not have the range of float32, in
 * which small coefficients lose their lower bits and large ones are infinite. Which of 16
 * terms of a sum stands where in a piece is free as long as both factors agree, and so are the
 * places of rows: thread l takes the neighbours 4 (l % 4) to + 3 of rows 4 (l / 4) to + 3. ---- */
struct vwn_rounded_fp16 : vwn_held {}; /* a tile whose numbers are all fp16's */
template <class F> struct vwn_parts {
    enum { N = 2, FP16 = 0 };
};
template <> struct vwn_parts<vwn_there<const bf16>> {
    enum { N = 1, FP16 = 0 };
};
template <> struct vwn_parts<vwn_held_bf16> {
    enum { N = 1, FP16 = 0 };
};
template <> struct vwn_parts<vwn_there<const fp16>> {
    enum { N = 2, FP16 = 1 };
};
template <> struct vwn_parts<vwn_rounded_fp16> {
    enum { N = 2, FP16 = 1 };
};
/* What parts are, and how many there are of each factor. */
template <class F, class G, bool FP16 = vwn_parts<F>::FP16 && vwn_parts<G>::FP16> struct vwn_both {
    typedef bf16 part;
    enum { A = vwn_parts<F>::N, B = vwn_parts<G>::N };
};
template <class F, class G> struct vwn_both<F, G, true> {
    typedef fp16 part;
    enum { A = 1, B = 1 };
};
template <int PARTS> FN void vwn_split(uint32_t (*to)[2], const real *x, fp16)
{
    to[0][0] = vwn_pair(x[0], x[1], fp16());
    to[0][1] = vwn_pair(x[2], x[3], fp16());
}
template <int PARTS> FN void vwn_split_pair(uint32_t (*to)[2], real u, real v, int k)
{
    const uint32_t large = to[0][k] = vwn_pair(u, v, bf16());
    if constexpr (PARTS > 1)
        vwn_split_pair<PARTS - 1>(to + 1, u - vwn_real(large << 16), v - vwn_real(large & 0xffff0000u), k);
}
template <int PARTS> FN void vwn_split(uint32_t (*to)[2], const real *x, bf16)
{
    if constexpr (PARTS == 1) { /* nothing to round */
        VWN_EVERY(k, 2, to[0][k] = vwn_bits(x[2 * k]) >> 16 | (vwn_bits(x[2 * k + 1]) & 0xffff0000u))
    } else {
        VWN_EVERY(k, 2, vwn_split_pair<PARTS>(to, x[2 * k], x[2 * k + 1], k))
    }
}
/* R rows of a factor, from `at` on, with the terms k0 to k0 + 3; zeros for what is not there */
template <int HOW, int R, bool WHOLE, class F>
FN void vwn_rows(real (*x)[4], F f, bool there, uint32_t at, uint32_t step, uint32_t k0,
                 uint32_t deep, uint32_t K)
{
    VWN_EVERY(i, R, x[i][0] = x[i][1] = x[i][2] = x[i][3] = 0)
    if (there && k0 < K)
        vwn_terms<HOW, R, WHOLE>(x, f, at, step, k0, deep, K);
}
/* x (16, 8) += u (16, 16) v (16, 8), part I of their products; those that are too small are left out. */
template <class E, int I, int PA, int PB>
FN void vwn_mma_part(real *x, const uint32_t (*u)[PA][2], const uint32_t (*v)[2])
{
    const uint32_t *const a = u[0][I / PB], *const b = u[1][I / PB];
    const uint32_t f[4] = {a[0], b[0], a[1], b[1]};
    if constexpr (I / PB + I % PB < 2)
        vwn_mma(x, f, v[I % PB], E());
}
/* The same with all of their parts; the small ones are added up first. */
template <class E, int PA, int PB>
FN void vwn_mma_parts(real *x, const uint32_t (*u)[PA][2], const uint32_t (*v)[2])
{
    enum { SMALL = PA * PB - 1 };
    real small[4] = {};
    VWN_EVERY(i, SMALL, vwn_mma_part<E, SMALL - i, PA, PB>(small, u, v))
    vwn_mma_part<E, 0, PA, PB>(x, u, v);
    if constexpr (SMALL > 0) {
        VWN_EVERY(i, 4, x[i] += small[i])
    }
}
/* What a thread has of 32 x 8 R numbers, of rows m to m + 3 the 2 R columns from n on: piece i of them. */
template <int R, int C, class H>
FN void vwn_put_part(const real (*x)[R][4], uint32_t m, uint32_t n, uint32_t N, H c,
                     uint32_t cm, uint32_t cn, int add, uint32_t i)
{
    if constexpr (C != VWN_ALONG_OWN) { /* a column of four rows */
        vec<4> y;
        VWN_EVERY(k, 4, y.v[k] = x[k / 2][i % R][i / R + k % 2 * 2])
        if (n + i < N)
            vwn_put_few(c, m + (n + i) * cn, y, add);
    } else if constexpr (R == 1) {
        const vec<2> y = {{x[i / 2][0][i % 2 * 2], x[i / 2][0][i % 2 * 2 + 1]}};
        if (n < N)
            vwn_put_few(c, (m + i) * cm + n, y, add);
    } else {
        const uint32_t row = i / 2, half = i % 2;
        vec<4> y;
        VWN_EVERY(k, 4, y.v[k] = x[row / 2][k][half + row % 2 * 2])
        if (n + half * 4 < N)
            vwn_put_few(c, (m + row) * cm + n + half * 4, y, add);
    }
}
template <int R, int C, class H>
FN void vwn_put_piece(const real (*x)[R][4], uint32_t m, uint32_t n, uint32_t N, H c,
                      uint32_t cm, uint32_t cn, int add)
{
    VWN_EVERY(i, (C == VWN_ALONG_OWN && R == 1 ? 4 : 2 * R),
              vwn_put_part<R, C>(x, m, n, N, c, cm, cn, add, i))
}
/* Each warp does 32 x 8 R numbers at a time, R is 4 or 1. */
template <int R, int WARPS, int A, int B, int C, class F, class G, class H>
FN void vwn_tensor_pieces(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak,
                          G b, uint32_t bk, uint32_t bn, H c, uint32_t cm, uint32_t cn, int add)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B };
    constexpr bool WHOLE = A == VWN_ALONG_SUM || B == VWN_ALONG_SUM;
    const uint32_t lane = threadIdx.x % 32, across = (N + 8 * R - 1) / (8 * R);
    for (uint32_t t = threadIdx.x / 32; t < (M + 31) / 32 * across; t += WARPS) {
        const uint32_t n0 = t % across * 8 * R;
        const uint32_t m = t / across * 32 + lane / 4 * 4, n = n0 + lane / 4 * R;
        real x[2][R][4] = {};
        #pragma unroll 1
        for (uint32_t k = 0; k < K; k += 16) {
            const uint32_t k0 = k + lane % 4 * 4;
            real q[R][4];
            uint32_t u[4][PA][2], v[PB][2];
            {
                real p[4][4];
                vwn_rows<A, 4, WHOLE>(p, a, m < M, m, am, k0, ak, K);
                VWN_EVERY(i, 4, vwn_split<PA>(u[i], p[i], E()))
            }
            vwn_rows<B, R, WHOLE>(q, b, n < N, n, bn, k0, bk, K);
            VWN_EVERY(j, R, vwn_split<PB>(v, q[j], E()); vwn_mma_parts<E, PA, PB>(x[0][j], u, v);
                      vwn_mma_parts<E, PA, PB>(x[1][j], u + 2, v))
        }
        if (m < M)
            vwn_put_piece<R, C>(x, m, n0 + lane % 4 * 2 * R, N, c, cm, cn, add);
    }
}
/* Of few columns pieces are narrow; of few rows the product is turned. */
template <int WARPS, int CUT, int A, int B, int C, class F, class G, class H>
FN void vwn_product_bf16(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak,
                         G b, uint32_t bk, uint32_t bn, H c, uint32_t cm, uint32_t cn, int add)
{
    enum { TURNED = C == VWN_ALONG_OWN ? VWN_APART : VWN_ALONG_OWN, R = CUT == VWN_WIDE_PIECES ? 4 : 1 };
    if constexpr (CUT == VWN_FEW_ROWS)
        vwn_tensor_pieces<1, WARPS, B, A, TURNED>(N, M, K, b, bn, bk, a, ak, am, c, cn, cm, add);
    else
        vwn_tensor_pieces<R, WARPS, A, B, C>(M, N, K, a, am, ak, b, bk, bn, c, cm, cn, add);
}
/* A size that is a literal, which is one in a function that is called, too. */
template <uint32_t N> struct vwn_is {
    __device__ constexpr operator uint32_t() const { return N; }
};
/* In a function that is called a compiler does not see by itself what memory an operand lies in. */
#ifndef VWN_EMU
#define CALLED_FN [[maybe_unused]] static __device__ __noinline__
FN void vwn_lies(vwn_held x) { __builtin_assume(__isShared(x.at)); }
FN void vwn_lies(vwn_held_bf16 x) { __builtin_assume(__isShared(x.at)); }
template <class T> FN void vwn_lies(vwn_there<T> x) { __builtin_assume(__isGlobal(x.at)); }
#else
#define CALLED_FN FN
template <class F> FN void vwn_lies(F) {}
#endif
/* The same as a function that is called, so that equal products of a kernel are one. */
template <int WARPS, int CUT, int A, int B, int C, class F, class G, class H, class TM, class TN, class TK, class T>
CALLED_FN void vwn_product_called(TM M, TN N, TK K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk,
                                  uint32_t bn, H c, uint32_t cm, uint32_t cn, T add)
{
    vwn_lies(a), vwn_lies(b), vwn_lies(c);
    vwn_product_bf16<WARPS, CUT, A, B, C>(M, N, K, a, am, ak, b, bk, bn, c, cm, cn, add);
}
