/* A tile of a matrix product in registers, 8 or 4 rows of two vectors: c[i][..] = or += the sum
 * over k of a(i, k) b[k][..], where a(i, k) = a[i * ai + k * ak] and b, c have rows of bk,
 * ci elements. */
#ifdef __AVX512F__
enum { VWN_LANES = 16, VWN_TILE = 8 };
#define VWN_ROWS(each) each(0) each(1) each(2) each(3) each(4) each(5) each(6) each(7)
#else
enum { VWN_LANES = 8, VWN_TILE = 4 };
#define VWN_ROWS(each) each(0) each(1) each(2) each(3)
#endif
typedef real vec __attribute__((vector_size(4 * VWN_LANES)));
typedef int32_t vec_i __attribute__((vector_size(4 * VWN_LANES)));
typedef real vec_4 __attribute__((vector_size(16), may_alias));
typedef real vec_u __attribute__((vector_size(4 * VWN_LANES), aligned(4), may_alias));
#define VWN_AT(p) (*(vec_u *)(p))
/* VWN_PUT stores a vector, past the cache where `past` holds: then p is a multiple of its
 * size. */
#if defined __clang__
#define VWN_STREAM(p, x) __builtin_nontemporal_store((x), (vec *)(p))
#elif defined __AVX512F__
#define VWN_STREAM(p, x) __builtin_ia32_movntps512((p), (x))
#elif defined __AVX__
#define VWN_STREAM(p, x) __builtin_ia32_movntps256((p), (x))
#else
#define VWN_STREAM(p, x) (*(vec *)(p) = (x))
#endif
#define VWN_PUT(p, x, past) \
    do { \
        if (past) \
            VWN_STREAM(p, x); \
        else \
            VWN_AT(p) = (x); \
    } while (0)
/* The same to bf16, and its two bytes, of every lane. */
typedef uint32_t vec_bits __attribute__((vector_size(4 * VWN_LANES)));
typedef bf16 vec_bf16 __attribute__((vector_size(2 * VWN_LANES)));
typedef bf16 vec_bf16_u
    __attribute__((vector_size(2 * VWN_LANES), aligned(2), may_alias));
FN vec vwn_round_lanes(vec x)
{
    vec_bits u = (vec_bits)x;
    vec_bits r = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
    vec_bits finite = (vec_bits)(x - x == 0);
    return (vec)((r & finite) | (u & ~finite));
}
FN void vwn_put_bf16(bf16 *to, vec x)
{
    *(vec_bf16_u *)to = __builtin_convertvector((vec_bits)x >> 16, vec_bf16);
}
FN real vwn_lanes_sum(vec x)
{
    real s[VWN_LANES];
    VWN_AT(s) = x;
#if defined __AVX512F__
    typedef real vec_h __attribute__((vector_size(2 * VWN_LANES), aligned(4), may_alias));
    *(vec_h *)s += *(vec_h *)(s + 8);
#endif
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}
FN void vwn_tile_two(int64_t depth, const real *a, int64_t ai, int64_t ak, const real *b,
                     int64_t bk, real *c, int64_t ci, int add)
{
#define VWN_ZERO(i) vec x##i = {0}, y##i = {0};
#define VWN_READ(i) x##i = VWN_AT(c + i * ci), y##i = VWN_AT(c + i * ci + VWN_LANES);
#define VWN_STEP(i) x##i += u * a[i * ai + k * ak], y##i += v * a[i * ai + k * ak];
#define VWN_WRITE(i) VWN_AT(c + i * ci) = x##i, VWN_AT(c + i * ci + VWN_LANES) = y##i;
    VWN_ROWS(VWN_ZERO)
    if (add) {
        VWN_ROWS(VWN_READ)
    }
    for (int64_t k = 0; k < depth; k++) {
        const vec u = VWN_AT(b + k * bk), v = VWN_AT(b + k * bk + VWN_LANES);
        VWN_ROWS(VWN_STEP)
    }
    VWN_ROWS(VWN_WRITE)
}
FN void vwn_tile_one(int64_t depth, const real *a, int64_t ai, int64_t ak, const real *b,
                     int64_t bk, real *c, int64_t ci, int add)
{
#define VWN_ZERO_1(i) vec x##i = {0};
#define VWN_READ_1(i) x##i = VWN_AT(c + i * ci);
#define VWN_STEP_1(i) x##i += u * a[i * ai + k * ak];
#define VWN_WRITE_1(i) VWN_AT(c + i * ci) = x##i;
    VWN_ROWS(VWN_ZERO_1)
    if (add) {
        VWN_ROWS(VWN_READ_1)
    }
    for (int64_t k = 0; k < depth; k++) {
        const vec u = VWN_AT(b + k * bk);
        VWN_ROWS(VWN_STEP_1)
    }
    VWN_ROWS(VWN_WRITE_1)
}
/* A compiler that does not optimise leaves out what nobody calls only where it is inline. */
#ifdef __OPTIMIZE__
#define CALLED_FN static __attribute__((noinline, unused))
#else
#define CALLED_FN static inline
#endif
/* rows: a multiple of 8, columns: of 16 */
CALLED_FN void vwn_block_mul(
    int64_t rows, int64_t columns, int64_t depth, const real *a, int64_t ai, int64_t ak,
    const real *b, int64_t bk, real *c, int64_t ci, int add)
{
    int64_t j = 0;
    for (; j + 2 * VWN_LANES <= columns; j += 2 * VWN_LANES)
        for (int64_t i = 0; i < rows; i += VWN_TILE)
            vwn_tile_two(depth, a + i * ai, ai, ak, b + j, bk, c + i * ci + j, ci, add);
    for (; j < columns; j += VWN_LANES)
        for (int64_t i = 0; i < rows; i += VWN_TILE)
            vwn_tile_one(depth, a + i * ai, ai, ak, b + j, bk, c + i * ci + j, ci, add);
}
/* The same for columns that are a multiple of 8 only. */
#ifdef __AVX512F__
typedef real vec_h __attribute__((vector_size(2 * VWN_LANES)));
typedef real vec_hu __attribute__((vector_size(2 * VWN_LANES), aligned(4), may_alias));
FN void vwn_tile_half(int64_t depth, const real *a, int64_t ai, int64_t ak, const real *b,
                      int64_t bk, real *c, int64_t ci, int add)
{
#define VWN_ZERO_H(i) vec_h x##i = {0};
#define VWN_READ_H(i) x##i = *(vec_hu *)(c + i * ci);
#define VWN_STEP_H(i) x##i += u * a[i * ai + k * ak];
#define VWN_WRITE_H(i) *(vec_hu *)(c + i * ci) = x##i;
    VWN_ROWS(VWN_ZERO_H)
    if (add) {
        VWN_ROWS(VWN_READ_H)
    }
    for (int64_t k = 0; k < depth; k++) {
        const vec_h u = *(vec_hu *)(b + k * bk);
        VWN_ROWS(VWN_STEP_H)
    }
    VWN_ROWS(VWN_WRITE_H)
}
#endif
CALLED_FN void vwn_product(
    int64_t rows, int64_t columns, int64_t depth, const real *a, int64_t ai, int64_t ak,
    const real *b, int64_t bk, real *c, int64_t ci, int add)
{
    const int64_t whole = columns / VWN_LANES * VWN_LANES;
    vwn_block_mul(rows, whole, depth, a, ai, ak, b, bk, c, ci, add);
#ifdef __AVX512F__
    for (int64_t i = 0; whole < columns && i < rows; i += VWN_TILE)
        vwn_tile_half(depth, a + i * ai, ai, ak, b + whole, bk, c + i * ci + whole, ci, add);
#endif
}
/* the first `rows` rows of to: `columns` of them, of which `have` are by * from, the rest 0 */
CALLED_FN void vwn_pack(
    real *to, int64_t columns, int64_t to_stride, const real *from, int64_t stride,
    int64_t rows, int64_t have, real by)
{
    for (int64_t i = 0; i < rows; i++) {
        int64_t j = 0;
        for (; j + VWN_LANES <= have; j += VWN_LANES)
            VWN_AT(to + i * to_stride + j) = VWN_AT(from + i * stride + j) * by;
        for (; j < have; j++)
            to[i * to_stride + j] = from[i * stride + j] * by;
        for (; j < columns; j++)
            to[i * to_stride + j] = 0;
    }
}
/* n: a multiple of VWN_LANES */
FN void vwn_zero(real *to, int64_t n)
{
    for (int64_t i = 0; i < n; i += VWN_LANES)
        VWN_AT(to + i) = (vec){0};
}
/* to[columns][rows] from rows of `stride` elements, zeros where there are no more */
CALLED_FN void vwn_pack_transposed(
    real *to, int64_t rows, int64_t columns, const real *from, int64_t stride,
    int64_t have_rows, int64_t have_columns)
{
    if (have_rows < rows || have_columns < columns)
        vwn_zero(to, rows * columns);
    int64_t i = 0;
    for (; i + 4 <= have_rows; i += 4) {
        const real *const a = from + i * stride, *const b = a + stride;
        const real *const c = b + stride, *const d = c + stride;
        for (int64_t j = 0; j < have_columns; j++)
            *(vec_4 *)(to + j * rows + i) = (vec_4){a[j], b[j], c[j], d[j]};
    }
    for (; i < have_rows; i++)
        for (int64_t j = 0; j < have_columns; j++)
            to[j * rows + i] = from[i * stride + j];
}
/* The same where b's columns lie one after the other, bn elements apart. */
CALLED_FN void vwn_product_transposed(
    int64_t rows, int64_t columns, int64_t depth, const real *a, int64_t ai, int64_t ak,
    const real *b, int64_t bn, real *c, int64_t ci, int add)
{
    real t[columns * depth] ALIGNED;
    vwn_pack_transposed(t, columns, depth, b, bn, columns, depth);
    vwn_product(rows, columns, depth, a, ai, ak, t, columns, c, ci, add);
}
/* asks memory for rows that are read soon; an address that is nobody's does no harm */
FN void vwn_prefetch(const real *from, int64_t stride, int64_t rows, int64_t columns)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j += 16)
            __builtin_prefetch(from + i * stride + j);
}

FN vec vwn_all(real x) { return x - (vec){0}; }
FN vec vwn_choose(vec_i mask, vec a, vec b)
{
    return (vec)(((vec_i)a & mask) | ((vec_i)b & ~mask));
}
/* b where one of them is not a number */
FN vec vwn_larger(vec a, vec b) { return vwn_choose(a > b, a, b); }
FN vec_i vwn_lane_numbers(void)
{
    vec_i x;
    for (int32_t i = 0; i < VWN_LANES; i++)
        x[i] = i;
    return x;
}
/* e^x for x <= 88, 1 ulp; 0 below -87 */
FN vec vwn_exp_v(vec x)
{
    vec t = x * 1.44269504f + 12583039.0f; /* the last byte: n + 127 */
    vec n = t - 12583039.0f;
    vec r = x - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    vec p = r * 0.00139516696f + 0.00836960299f;
    p = p * r + 0.041666188f;
    p = p * r + 0.166665128f;
    p = p * r + 0.50000001f;
    p = p * (r * r) + r + 1.0f;
    return (vec)((vec_i)(p * (vec)((vec_i)t << 23)) & ~(x < -87.0f));
}
/* the queries that do not see a key; back: how many positions each is behind it */
FN vec_i vwn_hidden(vec_i back, int causal, int32_t wide)
{
    const vec_i ahead = back >> 31, far = (back ^ ahead) - ahead;
    return (causal ? ahead : (vec_i){0}) | (far >= wide);
}
FN int64_t vwn_least(int64_t a, int64_t b) { return a < b ? a : b; }
FN int64_t vwn_most(int64_t a, int64_t b) { return a > b ? a : b; }
