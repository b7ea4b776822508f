/* Where number i of a tile lies: pieces of 16 bytes change places within 128. */
FN uint32_t vwn_bank(int64_t i)
{
    const uint32_t u = (uint32_t)i;
    return u ^ (u >> 5 ^ u >> 8) % 8 * 4;
}
/* The same for tensor cores, of float32 and of bf16: rows an odd multiple of 2^BANK numbers apart lie in other pieces than their
 * seven neighbours, and sixteen rows further on all lies as it does here. BANK is 4 at least. */
template <int BANK> FN uint32_t vwn_bank_rows(uint32_t i) { return i ^ (i >> (BANK - 2) & 7 * 4); }
template <int BANK> FN uint32_t vwn_bank_bf16(uint32_t i) { return i ^ (i >> (BANK - 3) & 7 * 8); }
FN bf16 *vwn_bf16_tile(real *u) { return (bf16 *)u; }
/* The same of the upper part of a number that lies in two of bf16: of eight numbers the upper parts, then the lower ones. */
template <int BANK> FN uint32_t vwn_bank_parts(uint32_t i) { return vwn_bank_bf16<BANK>(i + (i & ~7u)); }
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
template <int BANK> struct vwn_held_rows {
    real *at;
    uint32_t first;
};
template <int BANK> struct vwn_held_bf16 {
    bf16 *at;
    uint32_t first;
};
template <int BANK> struct vwn_held_parts {
    bf16 *at;
    uint32_t first;
};
template <class T> struct vwn_there {
    T *at;
};
FN real &vwn_number(vwn_held x, uint32_t i) { return x.at[vwn_bank(x.first + i)]; }
template <int BANK> FN real vwn_number(vwn_held_rows<BANK> x, uint32_t i) { return x.at[vwn_bank_rows<BANK>(x.first + i)]; }
template <int BANK> FN real vwn_number(vwn_held_bf16<BANK> x, uint32_t i)
{
    return vwn_of_bf16(x.at[vwn_bank_bf16<BANK>(x.first + i)]);
}
template <int BANK> FN real vwn_number(vwn_held_parts<BANK> x, uint32_t i)
{
    const uint32_t upper = vwn_bank_parts<BANK>(x.first + i);
    return vwn_of_bf16(x.at[upper]) + vwn_of_bf16(x.at[upper ^ 8]);
}
template <class T> FN T &vwn_number(vwn_there<T> x, uint32_t i) { return x.at[i]; }
FN real vwn_number(vwn_there<const bf16> x, uint32_t i) { return vwn_of_bf16(x.at[i]); }
FN real vwn_number(vwn_there<const fp16> x, uint32_t i) { return vwn_of_fp16(x.at[i]); }
template <int N> FN vec<N> &vwn_few(vwn_held x, uint32_t i)
{
    return vwn_at<N>(x.at + vwn_bank(x.first + i));
}
/* Two words of two numbers each: the upper parts and the lower ones. */
FN void vwn_two_parts(uint32_t &upper, uint32_t &lower, real u, real v)
{
    upper = vwn_pair(u, v, bf16());
    lower = vwn_pair(u - vwn_real(upper << 16), v - vwn_real(upper & 0xffff0000u), bf16());
}
/* Number i of a tile of parts, or N from there on */
template <int BANK, int N> FN void vwn_put_parts(real *tile, uint32_t i, vec<N> x)
{
    const uint32_t at = vwn_bank_parts<BANK>(i);
    vec_pairs<N> upper, lower;
    VWN_EVERY(k, N / 2, vwn_two_parts(upper.v[k], lower.v[k], x.v[2 * k], x.v[2 * k + 1]))
    *(vec_pairs<N> *)VWN_WIDE(vwn_bf16_tile(tile) + at, 2 * N) = upper;
    *(vec_pairs<N> *)VWN_WIDE(vwn_bf16_tile(tile) + (at ^ 8), 2 * N) = lower;
}
template <int BANK> FN void vwn_put_parts(real *tile, uint32_t i, real x)
{
    const uint32_t at = vwn_bank_parts<BANK>(i);
    uint32_t upper, lower;
    vwn_two_parts(upper, lower, x, 0);
    vwn_bf16_tile(tile)[at] = (bf16)upper;
    vwn_bf16_tile(tile)[at ^ 8] = (bf16)lower;
}
template <int N, int BANK> FN vec<N> &vwn_few(vwn_held_rows<BANK> x, uint32_t i)
{
    return vwn_at<N>(x.at + vwn_bank_rows<BANK>(x.first + i));
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
/* How a product is cut: into wide pieces, or narrow ones because it has few columns or few rows, 16 at most; longer ones where there are
 * still enough, those of SHORT sums in a way of their own; or, of few numbers, its sum is cut into shares of warps; or the second factor
 * lies in two parts. The text says it, so it has one
 * way of a product and not all. */
enum { VWN_WIDE_PIECES, VWN_FEW_COLUMNS, VWN_FEW_ROWS, VWN_LONG_ROWS, VWN_LONG_COLUMNS, VWN_SHORT_ROWS, VWN_SHORT_COLUMNS, VWN_FEW_NUMBERS,
       VWN_MORE_NUMBERS, VWN_FEW_EIGHTS, VWN_MORE_EIGHTS, VWN_ROWS_BY_PARTS };
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
 * which small coefficients lose their lower bits and large ones are infinite. A fragment is 16 rows of a
 * factor and 16 terms of the sum: thread l has the terms 2 (l % 4), the next, and those 8 later of rows l / 4 and
 * l / 4 + 8. Tiles of 16 bits are loaded as they lie, all else is split by the thread that has it. ---- */
template <int BANK> struct vwn_rounded_fp16 : vwn_held_rows<BANK> {}; /* a tile whose numbers are all fp16's */
template <class F> struct vwn_parts {
    enum { N = 2, FP16 = 0, AS_IT_LIES = 0 };
};
template <> struct vwn_parts<vwn_there<const bf16>> {
    enum { N = 1, FP16 = 0, AS_IT_LIES = 0 };
};
template <int BANK> struct vwn_parts<vwn_held_bf16<BANK>> {
    enum { N = 1, FP16 = 0, AS_IT_LIES = 1 };
};
template <int BANK> struct vwn_parts<vwn_held_parts<BANK>> {
    enum { N = 2, FP16 = 0, AS_IT_LIES = 1 };
};
template <> struct vwn_parts<vwn_there<const fp16>> {
    enum { N = 2, FP16 = 1, AS_IT_LIES = 0 };
};
template <int BANK> struct vwn_parts<vwn_rounded_fp16<BANK>> {
    enum { N = 2, FP16 = 1, AS_IT_LIES = 0 };
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
/* Word r of each part of a fragment */
template <int PARTS> FN void vwn_split(uint32_t (*to)[4], int r, real u, real v, fp16) { to[0][r] = vwn_pair(u, v, fp16()); }
template <int PARTS> FN void vwn_split(uint32_t (*to)[4], int r, real u, real v, bf16)
{
    if constexpr (PARTS == 1) /* nothing to round */
        to[0][r] = vwn_bits(u) >> 16 | (vwn_bits(v) & 0xffff0000u);
    else
        vwn_two_parts(to[0][r], to[1][r], u, v);
}
/* The terms k and k + 1 of the row that begins at `at`; zeros where no more than `left` are left of the sum, which are sixteens
 * where they are WHOLE. */
template <class E, int PARTS, int HOW, bool WHOLE, class F>
FN void vwn_two_terms(uint32_t (*to)[4], int r, F f, uint32_t at, uint32_t k, uint32_t deep, uint32_t left)
{
    vec<2> x;
    if constexpr (HOW == VWN_ALONG_SUM) {
        x = WHOLE || k < left ? vwn_few<2>(f, at + k) : vwn_all<2>(0);
    } else {
        VWN_EVERY(i, 2, x.v[i] = WHOLE || k + i < left ? vwn_number(f, at + (k + i) * deep) : 0.0f)
    }
    vwn_split<PARTS>(to, r, x.v[0], x.v[1], E());
}
/* Of a tile of parts: what lies there, apart. */
template <class E, int PARTS, int HOW, bool WHOLE, int BANK>
FN void vwn_two_terms(uint32_t (*to)[4], int r, vwn_held_parts<BANK> f, uint32_t at, uint32_t k, uint32_t deep, uint32_t left)
{
    uint32_t x[2][PARTS];
    VWN_EVERY(i, 2, const uint32_t upper = vwn_bank_parts<BANK>(f.first + at + (k + i) * deep);
              VWN_EVERY(part, PARTS, x[i][part] = WHOLE || k + i < left ? f.at[upper ^ part * 8] : 0))
    VWN_EVERY(part, PARTS, to[part][r] = x[0][part] | x[1][part] << 16)
}
template <bool ALONG_SUM> FN void vwn_load_pieces_at(uint32_t *to, vwn_spot row)
{
    if constexpr (ALONG_SUM)
        vwn_load_at(to, row);
    else
        vwn_load_transposed_at(to, row);
}
/* Number i is the first of eight; those wanted are `rows` further on, of sixteens of rows. */
template <bool ALONG_SUM, int BANK> FN void vwn_load_fragment(uint32_t (*to)[4], vwn_held_bf16<BANK> f, uint32_t i, uint32_t rows)
{
    vwn_load_pieces_at<ALONG_SUM>(to[0], vwn_spot_of(f.at) + vwn_bank_bf16<BANK>(f.first + i) * 2 + rows * 2);
}
template <bool ALONG_SUM, int BANK> FN void vwn_load_fragment(uint32_t (*to)[4], vwn_held_parts<BANK> f, uint32_t i, uint32_t rows)
{
    const uint32_t upper = vwn_bank_bf16<BANK>((f.first + i) * 2);
    vwn_load_pieces_at<ALONG_SUM>(to[0], vwn_spot_of(f.at) + upper * 2 + rows * 4);
    vwn_load_pieces_at<ALONG_SUM>(to[1], vwn_spot_of(f.at) + (upper ^ 8) * 2 + rows * 4);
}
/* A factor from the next sixteen terms on, n numbers further. */
template <int HOW, class T> FN void vwn_go_on(vwn_there<T> &f, uint32_t n) { f.at += n; }
template <int HOW, int BANK> FN void vwn_go_on(vwn_held_rows<BANK> &f, uint32_t n)
{
    (HOW == VWN_ALONG_OWN) ? (void)(f.at += n) : (void)(f.first += n);
}
template <int HOW, int BANK> FN void vwn_go_on(vwn_held_bf16<BANK> &f, uint32_t n)
{
    (HOW == VWN_ALONG_OWN) ? (void)(f.at += n) : (void)(f.first += n);
}
template <int HOW, int BANK> FN void vwn_go_on(vwn_held_parts<BANK> &f, uint32_t n)
{
    (HOW == VWN_ALONG_OWN) ? (void)(f.at += 2 * n) : (void)(f.first += n);
}
/* What is not there is not part of the sum, whatever the tile has in its place. */
FN uint32_t vwn_terms_there(uint32_t x, uint32_t k, uint32_t left) { return k + 1 < left ? x : k < left ? x & 0xffffu : 0; }
/* Of rows i + 16 B to i + 16 B + 15 of n, the next sixteen terms. In the place of rows that are not there any other stands, and of terms
 * unless they are MASKED. Words 0 and 1 are the first factor's of neighbouring rows, the second factor's of neighbouring terms, as a product
 * takes them. */
template <class E, int B, int PARTS, int HOW, bool WHOLE, bool FIRST, bool MASKED = true, class F>
FN void vwn_fragment(uint32_t (*to)[4], F f, uint32_t i, uint32_t step, uint32_t n, uint32_t deep, uint32_t left)
{
    const uint32_t lane = threadIdx.x % 32, mine = lane % 4 * 2;
    if constexpr (vwn_parts<F>::AS_IT_LIES && HOW == VWN_ALONG_SUM) {
        const uint32_t row = lane % 8 + lane / (FIRST ? 8 : 16) % 2 * 8, term = lane / (FIRST ? 16 : 8) % 2 * 8;
        vwn_load_fragment<true>(to, f, (i + (i + row < n ? row : 0)) * step + (WHOLE || term < left ? term : 0), i + B * 16 + row < n ? B * 16 * step : 0);
    } else if constexpr (vwn_parts<F>::AS_IT_LIES && HOW == VWN_ALONG_OWN) {
        const uint32_t row = i + B * 16 + lane / (FIRST ? 8 : 16) % 2 * 8, term = lane % 8 + lane / (FIRST ? 16 : 8) % 2 * 8;
        vwn_load_fragment<false>(to, f, (row < n ? row : 0) + (WHOLE || term < left ? term : 0) * deep, 0);
    } else {
        VWN_EVERY(r, 4, const uint32_t row = i + B * 16 + lane / 4 + r / (FIRST ? 1 : 2) % 2 * 8;
                  vwn_two_terms<E, PARTS, HOW, WHOLE>(to, r, f, (row < n ? row : 0) * step, mine + r / (FIRST ? 2 : 1) % 2 * 8, deep, left))
    }
    if constexpr (vwn_parts<F>::AS_IT_LIES && HOW != VWN_APART && !WHOLE && MASKED) {
        VWN_EVERY(r, 4 * PARTS, to[r / 4][r % 4] = vwn_terms_there(to[r / 4][r % 4], mine + r / (FIRST ? 2 : 1) % 2 * 8, left))
    }
}
/* x += u v, part I of their products, of 16 rows and N eights of columns; then of all rows of a piece, from eight FIRST on. Those that are
 * too small are left out. */
template <class E, int I, int N, int PA, int PB>
FN void vwn_mma_row(real (*x)[4], const uint32_t (*u)[4], const uint32_t (*v)[PB][4])
{
    VWN_EVERY(j, N, vwn_mma(x[j], u[I / PB], v[j / 2][I % PB] + j % 2 * 2, E()))
}
template <class E, int I, int TM, int TN, int FIRST, int N, int PA, int PB>
FN void vwn_mma_part(real (*x)[TN][4], const uint32_t (*u)[PA][4], const uint32_t (*v)[PB][4])
{
    if constexpr (I / PB + I % PB < 2) {
        VWN_EVERY(i, TM, vwn_mma_row<E, I, N, PA, PB>(x[i] + FIRST, u[i], v))
    }
}
FN void vwn_put_one(vwn_there<bf16> c, uint32_t i, real x) { c.at[i] = (bf16)vwn_pair(x, 0, bf16()); }
FN void vwn_put_one(vwn_there<fp16> c, uint32_t i, real x) { c.at[i] = vwn_fp16(x); }
FN void vwn_put_one(vwn_there<real> c, uint32_t i, real x) { c.at[i] = x; }
template <int BANK> FN void vwn_put_one(vwn_held_rows<BANK> c, uint32_t i, real x) { c.at[vwn_bank_rows<BANK>(c.first + i)] = x; }
/* Row i of two that a thread has of 16 x 8 TN numbers: as it is before a sum is added to it, and then. To memory of 16 bits, to which
 * nothing is added, neighbouring threads exchange pairs, so that each stores four numbers. */
template <class H> struct vwn_is_narrow {
    enum { YES = 0 };
};
template <> struct vwn_is_narrow<vwn_there<bf16>> {
    enum { YES = 1 };
};
template <> struct vwn_is_narrow<vwn_there<fp16>> {
    enum { YES = 1 };
};
template <class H> struct vwn_is_memory {
    enum { YES = 0 };
};
template <> struct vwn_is_memory<vwn_there<real>> {
    enum { YES = 1 };
};
template <bool FOURS, class H> FN void vwn_get_two(real *x, H c, uint32_t at, uint32_t left)
{
    if constexpr (FOURS) {
        const vec<2> y = vwn_few<2>(c, at);
        x[0] = y.v[0];
        x[1] = y.v[1];
    } else {
        VWN_EVERY(k, 2, x[k] = k < left ? vwn_number(c, at + k) : 0.0f)
    }
}
template <bool FOURS, class H> FN void vwn_put_two(const real *x, H c, uint32_t at, uint32_t left)
{
    if constexpr (FOURS) {
        vwn_put_few<2>(c, at, vec<2>{{x[0], x[1]}}, 0);
    } else {
        VWN_EVERY(k, 2, if (k < left) vwn_put_one(c, at + k, x[k]))
    }
}
/* A row of a result from one of its columns on, which has at least so many more; of a tile from a multiple of 32 on, in which its pieces
 * change places. */
template <int BANK> struct vwn_held_line {
    real *at;
    uint32_t first;
};
template <class T> FN vwn_there<T> vwn_line_of(vwn_there<T> c, uint32_t i, uint32_t own) { return {c.at + i + own}; }
template <int BANK> FN auto vwn_line_of(vwn_held_rows<BANK> c, uint32_t i, uint32_t own)
{
    if constexpr (BANK < 5)
        return vwn_held_rows<BANK>{c.at, c.first + i + own};
    else
        return vwn_held_line<BANK>{c.at, vwn_bank_rows<BANK>(c.first + i) ^ own};
}
template <int N, int BANK> FN vec<N> &vwn_few(vwn_held_line<BANK> x, uint32_t i) { return vwn_at<N>(x.at + (x.first ^ i)); }
/* Eight rows further on all lies as it does here. */
template <class L> FN L vwn_line_below(L line, uint32_t n)
{
    line.at += n;
    return line;
}
template <int TN, int FOURS, bool ALL = false, class H>
FN void vwn_get_row(real (*x)[4], uint32_t m, uint32_t n, uint32_t M, uint32_t N, H c, uint32_t cm, int i)
{
    const uint32_t row = m + i * 8, own = threadIdx.x % 4 * 2;
    if constexpr (FOURS == 32) {
        if (ALL || row < M) {
            const auto line = vwn_line_below(vwn_line_of(c, m * cm + n - own, own), i * 8 * cm);
            VWN_EVERY(j, TN, if (TN == 4 || n + j * 8 < N) vwn_get_two<true>(x[j] + 2 * i, line, j * 8, 2))
        }
    } else {
        VWN_EVERY(j, TN, if (row < M && n + j * 8 < N) vwn_get_two<FOURS>(x[j] + 2 * i, c, row * cm + n + j * 8, N - n - j * 8))
    }
}
template <int TN, int FOURS, bool ALL = false, class H>
FN void vwn_put_row(const real (*x)[4], uint32_t m, uint32_t n, uint32_t M, uint32_t N, H c, uint32_t cm, int i)
{
    const uint32_t row = m + i * 8, own = threadIdx.x % 4 * 2;
    if constexpr (vwn_is_narrow<H>::YES && FOURS && TN > 1) {
        const int at = (int)(n - own);
        vwn_put_fours<4, TN / 2 * 16>(c.at + row * cm + at, (int)own, (int)N - at, x, i, ALL || row < M);
    } else if constexpr (FOURS == 32) {
        if (ALL || row < M) {
            const auto line = vwn_line_below(vwn_line_of(c, m * cm + n - own, own), i * 8 * cm);
            VWN_EVERY(j, TN, if (TN == 4 || n + j * 8 < N) vwn_put_two<true>(x[j] + 2 * i, line, j * 8, 2))
        }
    } else {
        VWN_EVERY(j, TN, if (row < M && n + j * 8 < N)
                  vwn_put_two<FOURS>(x[j] + 2 * i, c, row * cm + n + j * 8, N - n - j * 8))
    }
}
/* The next sixteen terms of EACH sixteens of columns, from number J of these on. */
template <class E, int J, int EACH, int TM, int TN, int PA, int PB, int B, bool WHOLE, bool MASKED = true, class G>
FN void vwn_tensor_columns(real (*x)[TN][4], const uint32_t (*u)[PA][4], G q, uint32_t n, uint32_t bn, uint32_t N, uint32_t bk, uint32_t left)
{
    uint32_t v[EACH][PB][4];
    VWN_EVERY(j, EACH, vwn_fragment<E, J + j, PB, B, WHOLE, false, MASKED>(v[j], q, n, bn, N, bk, left))
    VWN_EVERY(i, PA * PB, vwn_mma_part<E, PA * PB - 1 - i, TM, TN, 2 * J, (TN < 2 * EACH ? TN : 2 * EACH), PA, PB>(x, u, v))
}
/* The same of 16 TM x 8 TN numbers; of a long piece column after column, which takes fewer registers. */
template <int TM, int TN, bool LONG, int A, int B, bool WHOLE, class F, class G>
FN void vwn_tensor_step(real (*x)[TN][4], F p, G q, uint32_t m, uint32_t n, uint32_t M, uint32_t N, uint32_t left, uint32_t am, uint32_t ak,
                        uint32_t bk, uint32_t bn)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B, PAIRS = (TN + 1) / 2, EACH = LONG ? 1 : PAIRS };
    uint32_t u[TM][PA][4];
    VWN_EVERY(i, TM, vwn_fragment<E, i, PA, A, WHOLE, true>(u[i], p, m, am, M, ak, left))
    VWN_EVERY(j, PAIRS / EACH, vwn_tensor_columns<E, EACH * j, EACH, TM, TN, PA, PB, B, WHOLE>(x, u, q, n, bn, N, bk, left))
}
/* The number of the warp, as one that a compiler knows to be the same in all of it. */
FN uint32_t vwn_own_warp() { return vwn_from_lane(threadIdx.x / 32, 0); }
/* Each warp does 16 TM x 8 TN numbers at a time; of the rows there is ONE such piece, or any number. */
template <int TM, int TN, bool ONE, bool LONG, int WARPS, int A, int B, bool WHOLE, int FOURS, class F, class G, class H>
FN void vwn_tensor_pieces(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak,
                          G b, uint32_t bk, uint32_t bn, H c, uint32_t cm, int add)
{
    enum { ROWS = 16 * TM, COLUMNS = 8 * TN };
    const uint32_t lane = threadIdx.x % 32, across = (N + COLUMNS - 1) / COLUMNS;
    for (uint32_t t = vwn_own_warp(); t < (ONE ? 1 : (M + ROWS - 1) / ROWS) * across; t += WARPS) {
        const uint32_t m = ONE ? 0 : t / across * ROWS, n = (ONE ? t : t % across) * COLUMNS;
        F p = a;
        G q = b;
        real x[TM][TN][4] = {};
        if constexpr (!vwn_is_narrow<H>::YES) {
            VWN_EVERY(i, 2 * TM, if (add) vwn_get_row<TN, FOURS>(x[i / 2], m + i / 2 * 16 + lane / 4, n + lane % 4 * 2, M, N, c, cm, i % 2))
        }
        #pragma unroll 2
        for (uint32_t k = 0; k < K; k += 16) {
            vwn_tensor_step<TM, TN, LONG, A, B, WHOLE>(x, p, q, m, n, M, N, K - k, am, ak, bk, bn);
            vwn_go_on<A>(p, 16 * ak);
            vwn_go_on<B>(q, 16 * bk);
        }
        VWN_EVERY(i, 2 * TM, vwn_put_row<TN, FOURS>(x[i / 2], m + i / 2 * 16 + lane / 4, n + lane % 4 * 2, M, N, c, cm, i % 2))
    }
}
/* Eight terms of a sum that lie next to each other, from number i on: a word of each part for every two. */
template <class E, int PARTS, class F> FN void vwn_eight_terms(uint32_t (*to)[4], F f, uint32_t i)
{
    const vec<4> x = vwn_few<4>(f, i), y = vwn_few<4>(f, i + 4);
    VWN_EVERY(r, 2, vwn_split<PARTS>(to, r, x.v[2 * r], x.v[2 * r + 1], E()))
    VWN_EVERY(r, 2, vwn_split<PARTS>(to, 2 + r, y.v[2 * r], y.v[2 * r + 1], E()))
}
FN void vwn_four_words(uint32_t *to, const bf16 *at)
{
    const vec_pairs<8> x = vwn_many<8>(at);
    VWN_EVERY(r, 4, to[r] = x.v[r])
}
template <class E, int PARTS> FN void vwn_eight_terms(uint32_t (*to)[4], vwn_there<const bf16> f, uint32_t i) { vwn_four_words(to[0], f.at + i); }
template <class E, int PARTS, int BANK> FN void vwn_eight_terms(uint32_t (*to)[4], vwn_held_bf16<BANK> f, uint32_t i)
{
    vwn_four_words(to[0], f.at + vwn_bank_bf16<BANK>(f.first + i));
}
template <class E, int PARTS, int BANK> FN void vwn_eight_terms(uint32_t (*to)[4], vwn_held_parts<BANK> f, uint32_t i)
{
    const uint32_t upper = vwn_bank_parts<BANK>(f.first + i);
    vwn_four_words(to[0], f.at + upper);
    vwn_four_words(to[1], f.at + (upper ^ 8));
}
/* x += u v, part I of their products, of the terms 2 S, 2 S + 1, 2 S + 2 and 2 S + 3 of each thread's eight. */
template <class E, int I, int S, int TM, int PA, int PB>
FN void vwn_mma_eights(real (*x)[1][4], const uint32_t (*u)[PA][4], const uint32_t (*v)[4])
{
    if constexpr (I / PB + I % PB < 2) {
        VWN_EVERY(i, TM, const uint32_t a[4] = {u[2 * i][I / PB][S], u[2 * i + 1][I / PB][S], u[2 * i][I / PB][S + 1], u[2 * i + 1][I / PB][S + 1]};
                  vwn_mma(x[i][0], a, v[I % PB] + S, E()))
    }
}
/* Where eight rows at most are there the lower parts of a factor are stacked under the upper ones, as eight more: a product by both is one. */
template <class F, class G> FN bool vwn_is_stacked(uint32_t M) { return vwn_both<F, G>::A == 2 && M <= 8; }
FN void vwn_add_stacked(real *x) { VWN_EVERY(i, 2, x[i] += x[2 + i]) }
/* The terms from k on, 32 of them, of rows and columns of 16 TM x 8 numbers that are there or have any others in their place. A sum may have
 * its terms in any order: a thread loads eight that lie next to each other, and both factors have them in the same places. */
template <int TM, class F, class G> FN void vwn_tensor_eights(real (*x)[1][4], uint32_t M, const F *row, G column, uint32_t k)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B };
    uint32_t u[2 * TM][PA][4] = {}, v[PB][4];
    VWN_EVERY(i, 2 * TM, if (TM > 1 || i * 8 < M) (vwn_eight_terms<E, PA>(u[i], row[i], k)))
    vwn_eight_terms<E, PB>(v, column, k);
    if (TM == 1 && vwn_is_stacked<F, G>(M)) {
        VWN_EVERY(r, 4, u[1][0][r] = u[0][PA - 1][r])
        VWN_EVERY(i, PB, (vwn_mma_eights<E, PB - 1 - i, 0, TM, PA, PB>(x, u, v)))
        VWN_EVERY(i, PB, (vwn_mma_eights<E, PB - 1 - i, 2, TM, PA, PB>(x, u, v)))
        return;
    }
    VWN_EVERY(i, PA * PB, (vwn_mma_eights<E, PA * PB - 1 - i, 0, TM, PA, PB>(x, u, v)))
    VWN_EVERY(i, PA * PB, (vwn_mma_eights<E, PA * PB - 1 - i, 2, TM, PA, PB>(x, u, v)))
}
/* A warp's share of the sum. */
template <int TM, int WARPS, class F, class G>
FN void vwn_tensor_shares_of_eights(real (*x)[1][4], uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, G b, uint32_t bn)
{
    const uint32_t own = threadIdx.x % 32 / 4, term = threadIdx.x % 4 * 8;
    F row[2 * TM];
    VWN_EVERY(i, 2 * TM, row[i] = a; vwn_go_on<VWN_ALONG_SUM>(row[i], (own + i * 8 < M ? own + i * 8 : 0) * am + term))
    vwn_go_on<VWN_ALONG_SUM>(b, (own < N ? own : 0) * bn + term);
    #pragma unroll 2
    for (uint32_t k = vwn_own_warp() * 32; k < K; k += WARPS * 32)
        vwn_tensor_eights<TM>(x, M, row, b, k);
}
/* A result of 16 TM x 8 numbers at most: each warp adds up terms of its own, and when all have done so some of them the shares of all. Before
 * another product there is a barrier (kernel_races.c). EIGHTS: both factors lie along a sum of 32s. */
template <int TM, bool EIGHTS, int WARPS, int A, int B, bool WHOLE, class F, class G, class H>
FN void vwn_tensor_shares(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk, uint32_t bn, H c, uint32_t cm,
                          uint32_t cn, int add)
{
    enum { STEP = 16 * WARPS };
    __shared__ real share[WARPS][4 * TM][32];
    const uint32_t warp = vwn_own_warp(), lane = threadIdx.x % 32;
    real x[TM][1][4] = {};
    if constexpr (EIGHTS) {
        vwn_tensor_shares_of_eights<TM, WARPS>(x, M, N, K, a, am, b, bn);
        if (TM == 1 && vwn_is_stacked<F, G>(M))
            vwn_add_stacked(x[0][0]);
    } else {
        vwn_go_on<A>(a, warp * 16 * ak);
        vwn_go_on<B>(b, warp * 16 * bk);
        #pragma unroll 2
        for (uint32_t k = warp * 16; k < K; k += STEP) {
            vwn_tensor_step<TM, 1, false, A, B, WHOLE>(x, a, b, 0, 0, M, N, K - k, am, ak, bk, bn);
            vwn_go_on<A>(a, STEP * ak);
            vwn_go_on<B>(b, STEP * bk);
        }
    }
    const uint32_t there = (M + 7) / 8 * 2; /* words of rows that are there */
    VWN_EVERY(i, 4 * TM, if (i < there) share[warp][i][lane] = x[i / 4][0][i % 4])
    __syncthreads();
    #pragma unroll 1
    for (uint32_t i = warp; i < there; i += WARPS) {
        const uint32_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2, at = row * cm + column * cn;
        real sum = 0;
        VWN_EVERY(w, WARPS, sum += share[w][i][lane])
        if (row < M && column < N) {
            if constexpr (!vwn_is_narrow<H>::YES)
                sum += add ? vwn_number(c, at) : 0.0f;
            vwn_put_one(c, at, sum);
        }
    }
}
/* ---- sums of sixteen terms at most. The factor of few rows is loaded once for all pieces of a warp. Terms that are not there are zeros in
 * it, so in the other any stand in their place. ---- */
/* Is a factor loaded of a tile by eights of terms, four eights of its rows at a time? */
template <class F, int HOW> struct vwn_by_eights {
    enum { YES = vwn_parts<F>::AS_IT_LIES && HOW == VWN_ALONG_OWN };
};
/* Eight terms of rows i to i + 31 of n, of which ALL are there: a word for each eight of these. */
template <bool ALL, class F> FN void vwn_fragment_eight(uint32_t (*to)[4], F f, uint32_t i, uint32_t n, uint32_t deep, uint32_t K)
{
    const uint32_t lane = threadIdx.x % 32, row = i + lane / 8 * 8, term = lane % 8;
    vwn_load_fragment<false>(to, f, (ALL || row < n ? row : 0) + (term < K ? term : 0) * deep, 0);
}
/* x += u v, part I of their products, of eight terms: of sixteen rows and four eights of columns; of two sixteens of rows and N eights of
 * columns. What is held is a fragment of sixteen. */
template <class E, int I, int PA, int PB> FN void vwn_mma_eight_rows(real (*x)[4], const uint32_t (*u)[4], const uint32_t (*v)[4])
{
    if constexpr (I / PB + I % PB < 2) {
        VWN_EVERY(j, 4, vwn_mma_eight(x[j], u[I / PB], v[I % PB][j], E()))
    }
}
template <class E, int I, int N, int PA, int PB> FN void vwn_mma_eight_columns(real (*x)[N][4], const uint32_t (*u)[4], const uint32_t (*v)[4])
{
    if constexpr (I / PB + I % PB < 2) {
        VWN_EVERY(j, 2 * N, vwn_mma_eight(x[j / N][j % N], u[I / PB] + j / N * 2, v[I % PB][j % N * 2], E()))
    }
}
/* Words of four numbers from i on, each with the one that lies there from j on. */
template <class E, int PARTS, class G> FN void vwn_four_pairs(uint32_t (*to)[4], G f, uint32_t i, uint32_t j)
{
    const vec<4> x = vwn_few<4>(f, i), y = vwn_few<4>(f, j);
    VWN_EVERY(r, 4, vwn_split<PARTS>(to, r, x.v[r], y.v[r], E()))
}
template <class E, int PARTS> FN void vwn_four_pairs(uint32_t (*to)[4], vwn_there<const bf16> f, uint32_t i, uint32_t j)
{
    const vec_pairs<4> x = vwn_many<4>(f.at + i), y = vwn_many<4>(f.at + j);
    VWN_EVERY(r, 2, to[0][2 * r] = (x.v[r] & 0xffffu) | y.v[r] << 16; to[0][2 * r + 1] = x.v[r] >> 16 | (y.v[r] & 0xffff0000u))
}
/* Where the terms of a thread begin, of sixteen from k on: any other in the place of those that are not there. */
FN void vwn_places_of_terms(uint32_t *to, uint32_t k, uint32_t deep, uint32_t K)
{
    VWN_EVERY(i, 4, const uint32_t own = k + threadIdx.x % 4 * 2 + i / 2 * 8 + i % 2; to[i] = (own < K ? own : 0) * deep)
}
/* Sixteen terms at most of 32 rows or columns, from i on, of a factor that lie next to each other: a thread loads four of them, of which each
 * goes to another eight of a fragment. So every fourth is one of an eight, and of a row of the result a thread has eight numbers, or four rows. */
template <class E, int PARTS, bool FIRST = false, class G>
FN void vwn_fragments_of_fours(uint32_t (*to)[PARTS][4], G f, uint32_t i, const uint32_t *from, uint32_t left)
{
    vwn_go_on<VWN_ALONG_SUM>(f, i + threadIdx.x % 32 / 4 * 4);
    VWN_EVERY(h, 2, uint32_t x[PARTS][4] = {}; if (h * 8 < left) vwn_four_pairs<E, PARTS>(x, f, from[2 * h], from[2 * h + 1]);
              VWN_EVERY(j, 4, VWN_EVERY(part, PARTS, to[j / 2][part][FIRST ? h * 2 + j % 2 : j % 2 * 2 + h] = x[part][j])))
}
template <int BEGIN, class L> FN void vwn_get_eight(real (*x)[4], L line)
{
    VWN_EVERY(h, 2, const vec<4> y = vwn_few<4>(line, h * 4); VWN_EVERY(j, 4, x[j][BEGIN + h] = y.v[j]))
}
template <int BEGIN, class L> FN void vwn_put_eight(const real (*x)[4], L line)
{
    VWN_EVERY(h, 2, vwn_few<4>(line, h * 4) = vec<4>{{x[0][BEGIN + h], x[1][BEGIN + h], x[2][BEGIN + h], x[3][BEGIN + h]}};)
}
/* 32 columns from n on of a row of at most sixteen, of fragments of fours. */
template <class E, int PA, int PB, class G, class H>
FN void vwn_tensor_fours(const uint32_t (*u)[PA][4], uint32_t M, uint32_t n, uint32_t K, G b, const uint32_t *from, H c, uint32_t cm, int add)
{
    const uint32_t row = threadIdx.x % 32 / 4, own = threadIdx.x % 4 * 8;
    real x[1][4][4] = {};
    uint32_t v[2][PB][4];
    const auto line = vwn_line_of(c, row * cm + n, own);
    VWN_EVERY(i, 2, if (add && row + i * 8 < M) vwn_get_eight<2 * i>(x[0], vwn_line_below(line, i * 8 * cm)))
    vwn_fragments_of_fours<E, PB>(v, b, n, from, K);
    VWN_EVERY(i, PA * PB, (vwn_mma_part<E, PA * PB - 1 - i, 1, 4, 0, 4, PA, PB>(x, u, v)))
    VWN_EVERY(i, 2, if (row + i * 8 < M) vwn_put_eight<2 * i>(x[0], vwn_line_below(line, i * 8 * cm)))
}
/* 32 columns from n on of a row of at most sixteen, whose factor is held. */
template <class E, int PA, int PB, int B, int FOURS, class G>
FN void vwn_tensor_columns_of_held(real (*x)[4][4], const uint32_t (*u)[PA][4], uint32_t n, uint32_t N, uint32_t K, G b, uint32_t bk, uint32_t bn)
{
    if (vwn_by_eights<G, B>::YES && K <= 8) {
        if constexpr (vwn_by_eights<G, B>::YES) {
            uint32_t v[PB][4];
            vwn_fragment_eight<FOURS == 32>(v, b, n, N, bk, K);
            VWN_EVERY(i, PA * PB, (vwn_mma_eight_rows<E, PA * PB - 1 - i, PA, PB>(x[0], u[0], v)))
        }
    } else {
        VWN_EVERY(j, 2, (vwn_tensor_columns<E, j, 1, 1, 4, PA, PB, B, false, false>(x, u, b, n, bn, N, bk, K)))
    }
}
/* Sixteen rows at most: the first factor is held. */
template <int WARPS, int A, int B, int FOURS, class F, class G, class H>
FN void vwn_tensor_short_rows(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk, uint32_t bn, H c,
                              uint32_t cm, int add)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B, TN = 4, COLUMNS = 8 * TN };
    const uint32_t lane = threadIdx.x % 32;
    uint32_t u[1][PA][4], from[4];
    vwn_fragment<E, 0, PA, A, false, true>(u[0], a, 0, am, M, ak, K);
    vwn_places_of_terms(from, 0, bk, K);
    for (uint32_t n = vwn_own_warp() * COLUMNS; n < N; n += WARPS * COLUMNS) {
        if constexpr (FOURS == 32 && B == VWN_ALONG_OWN && !vwn_parts<G>::AS_IT_LIES && !vwn_is_narrow<H>::YES) {
            vwn_tensor_fours<E, PA, PB>(u, M, n, K, b, from, c, cm, add);
            continue;
        }
        real x[1][TN][4] = {};
        if constexpr (!vwn_is_narrow<H>::YES) {
            VWN_EVERY(i, 2, if (add) vwn_get_row<TN, FOURS>(x[0], lane / 4, n + lane % 4 * 2, M, N, c, cm, i))
        }
        vwn_tensor_columns_of_held<E, PA, PB, B, FOURS>(x, u, n, N, K, b, bk, bn);
        VWN_EVERY(i, 2, if (i * 8 < M) vwn_put_row<TN, FOURS>(x[0], lane / 4, n + lane % 4 * 2, M, N, c, cm, i))
    }
}
/* Two products of eight rows at most by one second factor: they are the upper and the lower rows of sixteen. */
template <int WARPS, int A, int A2, int B, int FOURS, int FOURS2, class F, class G, class H, class H2>
FN void vwn_two_products_bf16(uint32_t M, uint32_t M2, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak, F a2, uint32_t am2, uint32_t ak2,
                              G b, uint32_t bk, uint32_t bn, H c, uint32_t cm, H2 c2, uint32_t cm2)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B, TN = 4, COLUMNS = 8 * TN };
    const uint32_t row = threadIdx.x % 32 / 4, own = threadIdx.x % 4 * 2;
    uint32_t u[1][PA][4], lower[PA][4];
    vwn_fragment<E, 0, PA, A, false, true>(u[0], a, 0, am, M, ak, K);
    vwn_fragment<E, 0, PA, A2, false, true>(lower, a2, 0, am2, M2, ak2, K);
    VWN_EVERY(i, 2 * PA, u[0][i / 2][i % 2 * 2 + 1] = lower[i / 2][i % 2 * 2])
    for (uint32_t n = vwn_own_warp() * COLUMNS; n < N; n += WARPS * COLUMNS) {
        real x[1][TN][4] = {}, y[TN][4];
        vwn_tensor_columns_of_held<E, PA, PB, B, FOURS>(x, u, n, N, K, b, bk, bn);
        VWN_EVERY(i, 2 * TN, y[i / 2][i % 2] = x[0][i / 2][2 + i % 2])
        vwn_put_row<TN, FOURS>(x[0], row, n + own, M, N, c, cm, 0);
        vwn_put_row<TN, FOURS2>(y, row, n + own, M2, N, c2, cm2, 0);
    }
}
/* Column q of eight n of a fragment, so that a thread has 2 TN columns of the result that lie next to each other. */
template <int TN> FN uint32_t vwn_column_of(uint32_t n, uint32_t q) { return q / 2 * 2 * TN + n * 2 + q % 2; }
/* Eight rows at most by both parts of a factor of bf16, of sixteen terms each, which lie one behind the other along the sum: that is then of 32
 * terms, eight of each thread. The first factor is held, its parts stacked. */
enum { VWN_PART_TERMS = 16 };
template <class E, class F, class G> FN void vwn_hold_stacked(uint32_t (*u)[4], uint32_t M, F a, uint32_t am)
{
    enum { PA = vwn_both<F, G>::A };
    const uint32_t row = threadIdx.x % 32 / 4;
    uint32_t part[2][4] = {};
    vwn_eight_terms<E, PA>(part, a, (row < M ? row : 0) * am + threadIdx.x % 4 * 8 % VWN_PART_TERMS);
    VWN_EVERY(r, 4, u[r / 2][r % 2 * 2] = part[0][r]; u[r / 2][r % 2 * 2 + 1] = part[1][r])
}
/* x += what is held by column number `column` */
template <class E, class G> FN void vwn_mma_by_parts(real *x, const uint32_t (*u)[4], G b, uint32_t column)
{
    uint32_t v[1][4];
    vwn_eight_terms<E, 1>(v, b, column * 2 * VWN_PART_TERMS + threadIdx.x % 4 * 8);
    vwn_mma(x, u[0], v[0], E());
    vwn_mma(x, u[1], v[0] + 2, E());
}
/* A thread has eight neighbours of a row of the result. */
template <int WARPS, class F, class G, class H>
FN void vwn_tensor_rows_by_parts(uint32_t M, uint32_t N, F a, uint32_t am, G b, H c, uint32_t cm, int add)
{
    typedef typename vwn_both<F, G>::part E;
    enum { TN = 4, COLUMNS = 8 * TN };
    const uint32_t row = threadIdx.x % 32 / 4;
    uint32_t u[2][4];
    vwn_hold_stacked<E, F, G>(u, M, a, am);
    for (uint32_t n = vwn_own_warp() * COLUMNS; n < N; n += WARPS * COLUMNS) {
        real x[TN][4] = {};
        VWN_EVERY(j, TN, (vwn_mma_by_parts<E>(x[j], u, b, n + vwn_column_of<TN>(j, row))))
        VWN_EVERY(j, TN, vwn_add_stacked(x[j]))
        const auto line = vwn_line_of(c, row * cm + n, threadIdx.x % 4 * 8);
        VWN_EVERY(i, 2, if (row < M) vwn_put_few<4>(line, i * 4, vec<4>{{x[2 * i][0], x[2 * i][1], x[2 * i + 1][0], x[2 * i + 1][1]}}, add))
    }
}
/* c = a b + p q, of eight rows at most and lines of 32: a is of few terms, and q in two parts. */
template <int WARPS, int A, int B, class F, class G, class P, class Q, class H>
FN void vwn_sum_of_products_bf16(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk, uint32_t bn, P p, uint32_t pm,
                                 Q q, H c, uint32_t cm)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B, TN = 4, COLUMNS = 8 * TN };
    const uint32_t row = threadIdx.x % 32 / 4;
    uint32_t part[2][4] = {}, u[1][1][4], v[2][4];
    vwn_fragment<E, 0, PA, A, false, true>(part, a, 0, am, M, ak, K);
    VWN_EVERY(r, 2, u[0][0][2 * r] = part[0][2 * r]; u[0][0][2 * r + 1] = part[1][2 * r])
    vwn_hold_stacked<E, P, Q>(v, M, p, pm);
    for (uint32_t n = vwn_own_warp() * COLUMNS; n < N; n += WARPS * COLUMNS) {
        real x[1][TN][4] = {};
        VWN_EVERY(j, TN, (vwn_mma_by_parts<E>(x[0][j], v, q, n + j * 8 + row)))
        vwn_tensor_columns_of_held<E, 1, PB, B, 32>(x, u, n, N, K, b, bk, bn);
        VWN_EVERY(j, TN, vwn_add_stacked(x[0][j]))
        vwn_put_row<TN, 32>(x[0], row, n + threadIdx.x % 4 * 2, M, N, c, cm, 0);
    }
}
/* 32 rows at a time of a factor of which fours lie next to each other, 32 terms at most: a thread adds to 2 TN neighbours of four rows in
 * memory. */
template <int TN, int WARPS, int B, class F, class G>
FN void vwn_tensor_four_rows(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t ak, G b, uint32_t bk, uint32_t bn, vwn_there<real> c, uint32_t cm, int add)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B, ROWS = 32, OWN = 2 * TN };
    const uint32_t lane = threadIdx.x % 32, column = lane % 4 * OWN;
    uint32_t v[2][PB][4] = {}, from[2][4];
    VWN_EVERY(h, 2, vwn_places_of_terms(from[h], h * 16, ak, K);
              if (h * 16 < K) VWN_EVERY(r, 2 * TN, const uint32_t q = vwn_column_of<TN>(r / 2, lane / 4);
              vwn_two_terms<E, PB, B, false>(v[h], r, b, (q < N ? q : 0) * bn, h * 16 + lane % 4 * 2 + r % 2 * 8, bk, K)))
    for (uint32_t m = vwn_own_warp() * ROWS; m < M; m += WARPS * ROWS) {
        real x[2][TN][4] = {};
        real *const to = c.at + (m + lane / 4 * 4) * cm + column;
        vec<OWN> y[4] = {};
        VWN_EVERY(j, 4, if (add && column < N) y[j] = vwn_at<OWN>(to + j * cm))
        VWN_EVERY(h, 2, if (h * 16 < K) {
            uint32_t u[2][PA][4];
            vwn_fragments_of_fours<E, PA, true>(u, a, m, from[h], K - h * 16);
            VWN_EVERY(i, PA * PB, (vwn_mma_part<E, PA * PB - 1 - i, 2, TN, 0, TN, PA, PB>(x, u, v + h)))
        })
        VWN_EVERY(j, 4, VWN_EVERY(k, OWN, y[j].v[k] += x[j / 2][k / 2][j % 2 * 2 + k % 2]) if (column < N) vwn_at<OWN>(to + j * cm) = y[j])
    }
}
/* Eight TN columns at most: the second factor is held. */
template <int TN, int WARPS, int A, int B, int FOURS, class F, class G, class H>
FN void vwn_tensor_short_columns(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk, uint32_t bn, H c,
                                 uint32_t cm, int add)
{
    typedef typename vwn_both<F, G>::part E;
    enum { PA = vwn_both<F, G>::A, PB = vwn_both<F, G>::B, TM = 2, ROWS = 16 * TM };
    if constexpr (FOURS == 32 && A == VWN_ALONG_OWN && !vwn_parts<F>::AS_IT_LIES && vwn_is_memory<H>::YES) {
        vwn_tensor_four_rows<TN, WARPS, B>(M, N, K, a, ak, b, bk, bn, c, cm, add);
        return;
    }
    const uint32_t lane = threadIdx.x % 32;
    uint32_t v[1][PB][4];
    vwn_fragment<E, 0, PB, B, false, false>(v[0], b, 0, bn, N, bk, K);
    for (uint32_t m = vwn_own_warp() * ROWS; m < M; m += WARPS * ROWS) {
        real x[TM][TN][4] = {};
        if constexpr (!vwn_is_narrow<H>::YES) {
            VWN_EVERY(i, 2 * TM, if (add) vwn_get_row<TN, FOURS, FOURS == 32>(x[i / 2], m + i / 2 * 16 + lane / 4, lane % 4 * 2, M, N, c, cm, i % 2))
        }
        if (vwn_by_eights<F, A>::YES && K <= 8) {
            if constexpr (vwn_by_eights<F, A>::YES) {
                uint32_t u[PA][4];
                vwn_fragment_eight<FOURS == 32>(u, a, m, M, ak, K);
                VWN_EVERY(i, PA * PB, (vwn_mma_eight_columns<E, PA * PB - 1 - i, TN, PA, PB>(x, u, v[0])))
            }
        } else {
            uint32_t u[TM][PA][4];
            VWN_EVERY(i, TM, (vwn_fragment<E, i, PA, A, false, true, false>(u[i], a, m, am, M, ak, K)))
            VWN_EVERY(i, PA * PB, (vwn_mma_part<E, PA * PB - 1 - i, TM, TN, 0, TN, PA, PB>(x, u, v)))
        }
        VWN_EVERY(i, 2 * TM, vwn_put_row<TN, FOURS, FOURS == 32>(x[i / 2], m + i / 2 * 16 + lane / 4, lane % 4 * 2, M, N, c, cm, i % 2))
    }
}
/* A factor that has to be split is split once: then its pieces are as long as the other factor is. */
template <int WARPS, int CUT, int A, int B, bool WHOLE, int FOURS, class F, class G, class H>
FN void vwn_product_along(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak,
                          G b, uint32_t bk, uint32_t bn, H c, uint32_t cm, uint32_t cn, int add)
{
    constexpr bool SPLIT_A = !vwn_parts<F>::AS_IT_LIES, SPLIT_B = !vwn_parts<G>::AS_IT_LIES, WIDE = CUT == VWN_WIDE_PIECES;
    constexpr bool LONG = CUT == VWN_LONG_ROWS, ONE = LONG || CUT == VWN_FEW_ROWS;
    constexpr int TM = CUT == VWN_LONG_COLUMNS ? 2 : !WIDE ? 1 : SPLIT_B && !SPLIT_A ? 4 : SPLIT_A && !SPLIT_B ? 1 : 2;
    constexpr int TN = CUT == VWN_FEW_COLUMNS || CUT == VWN_LONG_COLUMNS ? 1 : CUT == VWN_FEW_ROWS ? 2 : TM == 4 ? 1 : 4;
    constexpr bool EIGHTS = CUT == VWN_FEW_EIGHTS || CUT == VWN_MORE_EIGHTS, TURNS = CUT == VWN_FEW_EIGHTS && vwn_both<F, G>::A < vwn_both<F, G>::B;
    if (TURNS && M <= 8 && N <= 8) { /* what is stacked comes first */
        if constexpr (TURNS)
            vwn_tensor_shares<1, true, WARPS, B, A, WHOLE>(N, M, K, b, bn, bk, a, ak, am, c, cn, cm, add);
    } else if constexpr (CUT == VWN_FEW_NUMBERS || CUT == VWN_FEW_EIGHTS)
        vwn_tensor_shares<1, EIGHTS, WARPS, A, B, WHOLE>(M, N, K, a, am, ak, b, bk, bn, c, cm, cn, add);
    else if constexpr (CUT == VWN_MORE_NUMBERS || CUT == VWN_MORE_EIGHTS)
        vwn_tensor_shares<2, EIGHTS, WARPS, A, B, WHOLE>(M, N, K, a, am, ak, b, bk, bn, c, cm, cn, add);
    else if constexpr (CUT == VWN_ROWS_BY_PARTS)
        vwn_tensor_rows_by_parts<WARPS>(M, N, a, am, b, c, cm, add);
    else if constexpr (CUT == VWN_SHORT_ROWS)
        vwn_tensor_short_rows<WARPS, A, B, FOURS>(M, N, K, a, am, ak, b, bk, bn, c, cm, add);
    else if constexpr (CUT == VWN_SHORT_COLUMNS)
        (N <= 8) ? vwn_tensor_short_columns<1, WARPS, A, B, FOURS>(M, N, K, a, am, ak, b, bk, bn, c, cm, add)
                 : vwn_tensor_short_columns<2, WARPS, A, B, FOURS>(M, N, K, a, am, ak, b, bk, bn, c, cm, add);
    else
        vwn_tensor_pieces<TM, TN, ONE, LONG, WARPS, A, B, WHOLE, FOURS>(M, N, K, a, am, ak, b, bk, bn, c, cm, add);
}
/* A result that lies by columns, or one of few numbers that has more columns than rows, is the product of the turned factors in the other
 * order. */
template <int WARPS, int CUT, int A, int B, int C, bool WHOLE, int FOURS, class F, class G, class H>
FN void vwn_product_bf16(uint32_t M, uint32_t N, uint32_t K, F a, uint32_t am, uint32_t ak,
                         G b, uint32_t bk, uint32_t bn, H c, uint32_t cm, uint32_t cn, int add)
{
    enum {
        TURNED = CUT == VWN_FEW_ROWS        ? VWN_FEW_COLUMNS
                 : CUT == VWN_FEW_COLUMNS   ? VWN_FEW_ROWS
                 : CUT == VWN_LONG_ROWS     ? VWN_LONG_COLUMNS
                 : CUT == VWN_LONG_COLUMNS  ? VWN_LONG_ROWS
                 : CUT == VWN_SHORT_ROWS    ? VWN_SHORT_COLUMNS
                 : CUT == VWN_SHORT_COLUMNS ? VWN_SHORT_ROWS
                                            : CUT
    };
    if constexpr (C == VWN_ALONG_OWN)
        vwn_product_along<WARPS, CUT, A, B, WHOLE, FOURS>(M, N, K, a, am, ak, b, bk, bn, c, cm, cn, add);
    else
        vwn_product_along<WARPS, TURNED, B, A, WHOLE, FOURS>(N, M, K, b, bn, bk, a, ak, am, c, cn, cm, add);
}
/* A size that is a literal, which is one in a function that is called, too. */
template <uint32_t N> struct vwn_is {
    __device__ constexpr operator uint32_t() const { return N; }
};
/* In a function that is called a compiler does not see by itself what memory an operand lies in. */
#ifndef VWN_EMU
#define CALLED_FN [[maybe_unused]] static __device__ __noinline__
template <int BANK> FN void vwn_lies(vwn_held_rows<BANK> x) { __builtin_assume(__isShared(x.at)); }
template <int BANK> FN void vwn_lies(vwn_held_parts<BANK> x) { __builtin_assume(__isShared(x.at)); }
template <int BANK> FN void vwn_lies(vwn_held_bf16<BANK> x) { __builtin_assume(__isShared(x.at)); }
template <class T> FN void vwn_lies(vwn_there<T> x) { __builtin_assume(__isGlobal(x.at)); }
#else
#define CALLED_FN FN
template <class F> FN void vwn_lies(F) {}
#endif
/* The same as functions that are called, so that equal products of a kernel are one. */
template <int WARPS, int CUT, int A, int B, int C, bool WHOLE, int FOURS, class F, class G, class H, class TM, class TN, class TK, class T>
CALLED_FN void vwn_product_called(TM M, TN N, TK K, F a, uint32_t am, uint32_t ak, G b, uint32_t bk,
                                  uint32_t bn, H c, uint32_t cm, uint32_t cn, T add)
{
    vwn_lies(a), vwn_lies(b), vwn_lies(c);
    vwn_product_bf16<WARPS, CUT, A, B, C, WHOLE, FOURS>(M, N, K, a, am, ak, b, bk, bn, c, cm, cn, add);
}
template <int WARPS, int A, int A2, int B, int FOURS, int FOURS2, class F, class G, class H, class H2, class TM, class TM2, class TN, class TK>
CALLED_FN void vwn_two_products_called(TM M, TM2 M2, TN N, TK K, F a, uint32_t am, uint32_t ak, F a2, uint32_t am2, uint32_t ak2, G b,
                                       uint32_t bk, uint32_t bn, H c, uint32_t cm, H2 c2, uint32_t cm2)
{
    vwn_lies(a), vwn_lies(a2), vwn_lies(b), vwn_lies(c), vwn_lies(c2);
    vwn_two_products_bf16<WARPS, A, A2, B, FOURS, FOURS2>(M, M2, N, K, a, am, ak, a2, am2, ak2, b, bk, bn, c, cm, c2, cm2);
}
