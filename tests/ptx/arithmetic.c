/* arithmetic.c - what each thread computes by itself, as the PTX ISA defines it. */
#include "code.h"
#include "number.h"

#include <math.h>
#include <string.h>

void nothing(Warp *w, const Inst *i)
{
    (void)w;
    (void)i;
}

/* d = an expression of a, b, c, of type T in registers of type R */
#define OP_1(name, R, T, ...)                                                                                          \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        R *d = AT(R, 0);                                                                                               \
        const T *a = AT(T, 1);                                                                                         \
        EACH_LANE(d[l] = (R)(__VA_ARGS__));                                                                            \
    }
#define OP_2(name, R, T, U, ...)                                                                                       \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        R *d = AT(R, 0);                                                                                               \
        const T *a = AT(T, 1);                                                                                         \
        const U *b = AT(U, 2);                                                                                         \
        EACH_LANE(d[l] = (R)(__VA_ARGS__));                                                                            \
    }
#define OP_3(name, R, T, U, V, ...)                                                                                    \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        R *d = AT(R, 0);                                                                                               \
        const T *a = AT(T, 1);                                                                                         \
        const U *b = AT(U, 2);                                                                                         \
        const V *c = AT(V, 3);                                                                                         \
        EACH_LANE(d[l] = (R)(__VA_ARGS__));                                                                            \
    }
typedef uint32_t u32;
typedef int32_t s32;
typedef uint64_t u64;
typedef int64_t s64;
typedef uint16_t u16;
typedef int16_t s16;
__extension__ typedef unsigned __int128 u128;
__extension__ typedef __int128 s128;

/* ---- from place to place ---- */
OP_1(move_32, u32, u32, a[l])
OP_1(move_64, u64, u64, a[l])
OP_1(to_shared, u64, u64, a[l] + SHARED_WINDOW)
OP_1(of_shared, u64, u64, a[l] - SHARED_WINDOW)
OP_1(to_local, u64, u64, a[l] + LOCAL_WINDOW)
OP_1(of_local, u64, u64, a[l] - LOCAL_WINDOW)
OP_1(to_param, u64, u64, a[l] + PARAM_WINDOW)

/* Halves become one, or one its halves. */
Run move_parts;
void move_parts(Warp *w, const Inst *i)
{
    const uint32_t bits = i->bytes * 8 / (i->n > i->to ? i->n : i->to);
    const bool wide = i->bytes == 8;
    uint64_t whole[LANES];
    memset(whole, 0, sizeof whole);
    for (uint32_t k = 0; k < i->to; k++)
        EACH_LANE(whole[l] |= (wide && i->to == 1 ? LIST(u64, 1, 0)[l] : LIST(u32, 1, k)[l]) << (k * bits));
    for (uint32_t k = 0; k < i->n; k++)
        if (wide && i->n == 1)
            EACH_LANE(LIST(u64, 0, 0)[l] = whole[l]);
        else
            EACH_LANE(LIST(u32, 0, k)[l] =
                          (u32)(bits == 16 && i->n > 1 ? (u16)(whole[l] >> k * 16) : whole[l] >> k * bits));
}

#define OP_PRED(name, ...)                                                                                             \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        u32 *d = AT(u32, 0);                                                                                           \
        const u32 a = *AT(u32, 1), b = *AT(u32, 2);                                                                    \
        (void)b;                                                                                                       \
        *d = (*d & ~w->mask) | ((__VA_ARGS__)&w->mask);                                                                \
    }
OP_PRED(move_pred, a)
OP_PRED(not_pred, ~a)
OP_PRED(and_pred, a &b)
OP_PRED(or_pred, a | b)
OP_PRED(xor_pred, a ^ b)

/* ---- whole numbers ---- */
OP_2(add_16, u32, u32, u32, (u16)(a[l] + b[l]))
OP_2(add_32, u32, u32, u32, a[l] + b[l])
OP_2(add_64, u64, u64, u64, a[l] + b[l])
OP_2(sub_16, u32, u32, u32, (u16)(a[l] - b[l]))
OP_2(sub_32, u32, u32, u32, a[l] - b[l])
OP_2(sub_64, u64, u64, u64, a[l] - b[l])
OP_2(mul_16, u32, u32, u32, (u16)(a[l] * b[l]))
OP_2(mul_32, u32, u32, u32, a[l] * b[l])
OP_2(mul_64, u64, u64, u64, a[l] * b[l])
OP_2(mul_hi_s32, u32, s32, s32, (s64)a[l] * b[l] >> 32)
OP_2(mul_hi_u32, u32, u32, u32, (u64)a[l] * b[l] >> 32)
OP_2(mul_hi_s64, u64, s64, s64, (s128)a[l] * b[l] >> 64)
OP_2(mul_hi_u64, u64, u64, u64, (u128)a[l] * b[l] >> 64)
OP_2(mul_wide_u16, u32, u32, u32, (u32)(u16)a[l] * (u16)b[l])
OP_2(mul_wide_s16, u32, u32, u32, (s32)(s16)a[l] * (s16)b[l])
OP_2(mul_wide_s32, u64, s32, s32, (s64)a[l] * b[l])
OP_2(mul_wide_u32, u64, u32, u32, (u64)a[l] * b[l])
OP_3(mad_32, u32, u32, u32, u32, a[l] * b[l] + c[l])
OP_3(mad_64, u64, u64, u64, u64, a[l] * b[l] + c[l])
OP_3(mad_wide_s32, u64, s32, s32, u64, (u64)((s64)a[l] * b[l]) + c[l])
OP_3(mad_wide_u32, u64, u32, u32, u64, (u64)a[l] * b[l] + c[l])
/* what a division by 0 gives is not said: all bits */
#define DIVIDES(x, y, least) ((y) == 0 || ((x) == (least) && (y) == -1))
OP_2(div_u32, u32, u32, u32, b[l] ? a[l] / b[l] : UINT32_MAX)
OP_2(div_u64, u64, u64, u64, b[l] ? a[l] / b[l] : UINT64_MAX)
OP_2(div_s32, u32, s32, s32, DIVIDES(a[l], b[l], INT32_MIN) ? b[l] ? a[l] : -1 : a[l] / b[l])
OP_2(div_s64, u64, s64, s64, DIVIDES(a[l], b[l], INT64_MIN) ? b[l] ? a[l] : -1 : a[l] / b[l])
OP_2(rem_u32, u32, u32, u32, b[l] ? a[l] % b[l] : a[l])
OP_2(rem_u64, u64, u64, u64, b[l] ? a[l] % b[l] : a[l])
OP_2(rem_s32, u32, s32, s32, DIVIDES(a[l], b[l], INT32_MIN) ? b[l] ? 0 : a[l] : a[l] % b[l])
OP_2(rem_s64, u64, s64, s64, DIVIDES(a[l], b[l], INT64_MIN) ? b[l] ? 0 : a[l] : a[l] % b[l])
#define LESS(x, y) ((x) < (y) ? (x) : (y))
#define MORE(x, y) ((x) > (y) ? (x) : (y))
OP_2(min_s32, u32, s32, s32, LESS(a[l], b[l]))
OP_2(min_u32, u32, u32, u32, LESS(a[l], b[l]))
OP_2(min_s64, u64, s64, s64, LESS(a[l], b[l]))
OP_2(min_u64, u64, u64, u64, LESS(a[l], b[l]))
OP_2(max_s32, u32, s32, s32, MORE(a[l], b[l]))
OP_2(max_u32, u32, u32, u32, MORE(a[l], b[l]))
OP_2(max_s64, u64, s64, s64, MORE(a[l], b[l]))
OP_2(max_u64, u64, u64, u64, MORE(a[l], b[l]))
OP_1(neg_32, u32, u32, 0 - a[l])
OP_1(neg_64, u64, u64, 0 - a[l])
OP_1(abs_s32, u32, s32, a[l] < 0 ? 0 - (u32)a[l] : (u32)a[l])
OP_1(abs_s64, u64, s64, a[l] < 0 ? 0 - (u64)a[l] : (u64)a[l])

/* ---- bits; a shift by more than there are is one by all of them ---- */
OP_2(and_32, u32, u32, u32, a[l] & b[l])
OP_2(and_64, u64, u64, u64, a[l] & b[l])
OP_2(or_32, u32, u32, u32, a[l] | b[l])
OP_2(or_64, u64, u64, u64, a[l] | b[l])
OP_2(xor_32, u32, u32, u32, a[l] ^ b[l])
OP_2(xor_64, u64, u64, u64, a[l] ^ b[l])
OP_1(not_32, u32, u32, ~a[l])
OP_1(not_64, u64, u64, ~a[l])
OP_2(shl_16, u32, u32, u32, b[l] > 15 ? 0 : (u16)(a[l] << b[l]))
OP_2(shl_32, u32, u32, u32, b[l] > 31 ? 0 : a[l] << (b[l] & 31))
OP_2(shl_64, u64, u64, u32, b[l] > 63 ? 0 : a[l] << (b[l] & 63))
OP_2(shr_u16, u32, u32, u32, b[l] > 15 ? 0 : (u16)a[l] >> (b[l] & 15))
OP_2(shr_s16, u32, u32, u32, (u16)((s16)a[l] >> LESS(b[l], 15)))
OP_2(shr_u32, u32, u32, u32, b[l] > 31 ? 0 : a[l] >> (b[l] & 31))
OP_2(shr_s32, u32, s32, u32, a[l] >> LESS(b[l], 31))
OP_2(shr_u64, u64, u64, u32, b[l] > 63 ? 0 : a[l] >> (b[l] & 63))
OP_2(shr_s64, u64, s64, u32, a[l] >> LESS(b[l], 63))
OP_3(funnel_left, u32, u32, u32, u32, ((u64)b[l] << 32 | a[l]) << (c[l] & 31) >> 32)
OP_3(funnel_right, u32, u32, u32, u32, ((u64)b[l] << 32 | a[l]) >> (c[l] & 31))
OP_1(popc_32, u32, u32, __builtin_popcount(a[l]))
OP_1(popc_64, u32, u64, __builtin_popcountll(a[l]))
OP_1(clz_32, u32, u32, a[l] ? __builtin_clz(a[l]) : 32)
OP_1(clz_64, u32, u64, a[l] ? __builtin_clzll(a[l]) : 64)
OP_1(bfind_u32, u32, u32, a[l] ? 31 - __builtin_clz(a[l]) : -1)

static u32 reversed(u32 x)
{
    u32 y = 0;
    for (int k = 0; k < 32; k++)
        y |= (x >> k & 1) << (31 - k);
    return y;
}
OP_1(brev_32, u32, u32, reversed(a[l]))

static u64 ones(u32 n) { return n > 63 ? UINT64_MAX : (1ull << n) - 1; }
OP_3(bfe_u32, u32, u32, u32, u32, (b[l] & 255) > 31 ? 0 : (a[l] >> (b[l] & 255)) & ones(c[l] & 255))

static u32 bits_of_signed(u32 a, u32 at, u32 n)
{
    const u32 last = LESS(at + n - 1, 31);
    const bool sign = n && a >> last & 1;
    u32 d = 0;
    for (u32 k = 0; k < 32; k++)
        d |= (u32)(k < n && at + k <= 31 ? a >> (at + k) & 1 : sign) << k;
    return d;
}
OP_3(bfe_s32, u32, u32, u32, u32, bits_of_signed(a[l], b[l] & 255, c[l] & 255))

static u64 insert(u64 a, u64 b, u32 at, u32 n)
{
    const u64 mask = at > 63 ? 0 : ones(n) << at;
    return (b & ~mask) | (at > 63 ? 0 : a << at & mask);
}
#define OP_INSERT(name, T)                                                                                             \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        T *d = AT(T, 0);                                                                                               \
        const T *a = AT(T, 1), *b = AT(T, 2);                                                                          \
        const u32 *at = AT(u32, 3), *n = AT(u32, 4);                                                                   \
        EACH_LANE(d[l] = (T)insert(a[l], b[l], at[l] & 255, n[l] & 255));                                              \
    }
OP_INSERT(bfi_32, u32)
OP_INSERT(bfi_64, u64)

static u32 permuted(u32 a, u32 b, u32 how)
{
    const u64 both = (u64)b << 32 | a;
    u32 d = 0;
    for (u32 k = 0; k < 4; k++) {
        const u32 pick = how >> 4 * k & 15;
        const u32 byte = (u32)(both >> 8 * (pick & 7)) & 255;
        d |= (pick & 8 ? byte & 128 ? 255u : 0 : byte) << 8 * k;
    }
    return d;
}
OP_3(prmt_32, u32, u32, u32, u32, permuted(a[l], b[l], c[l]))

/* ---- choices ---- */
#define OP_SELECT(name, T)                                                                                             \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        T *d = AT(T, 0);                                                                                               \
        const T *a = AT(T, 1), *b = AT(T, 2);                                                                          \
        const u32 p = *AT(u32, 3);                                                                                     \
        EACH_LANE(d[l] = p >> l & 1 ? a[l] : b[l]);                                                                    \
    }
OP_SELECT(select_32, u32)
OP_SELECT(select_64, u64)

#define COMPARED(...)                                                                                                  \
    do {                                                                                                               \
        for (int l = 0; l < LANES; l++)                                                                                \
            r |= (u32)(__VA_ARGS__) << l;                                                                              \
    } while (0)
#define OP_COMPARE(name, R, T)                                                                                         \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        u32 *d = AT(u32, 0), r = 0;                                                                                    \
        const R *a = AT(R, 1), *b = AT(R, 2);                                                                          \
        if (HAS(i, eq))                                                                                                \
            COMPARED((T)a[l] == (T)b[l]);                                                                              \
        else if (HAS(i, ne))                                                                                           \
            COMPARED((T)a[l] != (T)b[l]);                                                                              \
        else if (HAS(i, lt) || HAS(i, lo))                                                                             \
            COMPARED((T)a[l] < (T)b[l]);                                                                               \
        else if (HAS(i, le) || HAS(i, ls))                                                                             \
            COMPARED((T)a[l] <= (T)b[l]);                                                                              \
        else if (HAS(i, gt) || HAS(i, hi))                                                                             \
            COMPARED((T)a[l] > (T)b[l]);                                                                               \
        else                                                                                                           \
            COMPARED((T)a[l] >= (T)b[l]);                                                                              \
        *d = (*d & ~w->mask) | (r & w->mask);                                                                          \
    }
OP_COMPARE(compare_u16, u32, u16)
OP_COMPARE(compare_s16, u32, s16)
OP_COMPARE(compare_u32, u32, u32)
OP_COMPARE(compare_s32, s32, s32)
OP_COMPARE(compare_u64, u64, u64)
OP_COMPARE(compare_s64, s64, s64)

/* Of numbers: with u also where one of them is none. */
#define OP_COMPARE_REAL(name, T, F)                                                                                    \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        u32 *d = AT(u32, 0), r = 0;                                                                                    \
        T a[LANES], b[LANES];                                                                                          \
        for (int l = 0; l < LANES; l++) {                                                                              \
            a[l] = F(i, AT(T, 1)[l]);                                                                                  \
            b[l] = F(i, AT(T, 2)[l]);                                                                                  \
        }                                                                                                              \
        if (HAS(i, eq))                                                                                                \
            COMPARED(a[l] == b[l]);                                                                                    \
        else if (HAS(i, ne))                                                                                           \
            COMPARED(a[l]<b[l] || a[l]> b[l]);                                                                         \
        else if (HAS(i, lt))                                                                                           \
            COMPARED(a[l] < b[l]);                                                                                     \
        else if (HAS(i, le))                                                                                           \
            COMPARED(a[l] <= b[l]);                                                                                    \
        else if (HAS(i, gt))                                                                                           \
            COMPARED(a[l] > b[l]);                                                                                     \
        else if (HAS(i, ge))                                                                                           \
            COMPARED(a[l] >= b[l]);                                                                                    \
        else if (HAS(i, equ))                                                                                          \
            COMPARED(!(a[l] < b[l] || a[l] > b[l]));                                                                   \
        else if (HAS(i, neu))                                                                                          \
            COMPARED(a[l] != b[l]);                                                                                    \
        else if (HAS(i, ltu))                                                                                          \
            COMPARED(!(a[l] >= b[l]));                                                                                 \
        else if (HAS(i, leu))                                                                                          \
            COMPARED(!(a[l] > b[l]));                                                                                  \
        else if (HAS(i, gtu))                                                                                          \
            COMPARED(!(a[l] <= b[l]));                                                                                 \
        else if (HAS(i, geu))                                                                                          \
            COMPARED(!(a[l] < b[l]));                                                                                  \
        else if (HAS(i, num))                                                                                          \
            COMPARED(a[l] == a[l] && b[l] == b[l]);                                                                    \
        else                                                                                                           \
            COMPARED(a[l] != a[l] || b[l] != b[l]);                                                                    \
        *d = (*d & ~w->mask) | (r & w->mask);                                                                          \
    }
static float in(const Inst *i, float x) { return HAS(i, ftz) ? flushed(x) : x; }
static double as_is(const Inst *i, double x)
{
    (void)i;
    return x;
}
OP_COMPARE_REAL(compare_f32, float, in)
OP_COMPARE_REAL(compare_f64, double, as_is)

/* ---- float32: denormal numbers are 0 before and behind what is .ftz ---- */
#define OP_F32(name, n, ...)                                                                                           \
    Run name;                                                                                                          \
    void name(Warp *w, const Inst *i)                                                                                  \
    {                                                                                                                  \
        float *d = AT(float, 0);                                                                                       \
        const float *x = AT(float, 1), *y = n > 1 ? AT(float, 2) : x, *z = n > 2 ? AT(float, 3) : x;                   \
        if (HAS(i, ftz)) {                                                                                             \
            EACH_LANE(const float a = flushed(x[l]); const float b = flushed(y[l]); const float c = flushed(z[l]);     \
                      (void)b; (void)c; d[l] = flushed(__VA_ARGS__));                                                  \
        } else {                                                                                                       \
            EACH_LANE(const float a = x[l]; const float b = y[l]; const float c = z[l]; (void)b; (void)c;              \
                      d[l] = (__VA_ARGS__));                                                                           \
        }                                                                                                              \
    }
OP_F32(add_f32, 2, a + b)
OP_F32(sub_f32, 2, a - b)
OP_F32(fma_f32, 3, __builtin_fmaf(a, b, c))
OP_F32(div_f32, 2, a / b)
OP_F32(neg_f32, 1, -a)
OP_F32(abs_f32, 1, fabsf(a))
OP_F32(sqrt_f32, 1, sqrtf(a))
OP_F32(rcp_f32, 1, 1 / a)
/* The approximations are better here than the ISA asks for. */
OP_F32(rsqrt_f32, 1, (float)(1 / sqrt((double)a)))
OP_F32(ex2_f32, 1, (float)exp2((double)a))
OP_F32(lg2_f32, 1, (float)log2((double)a))
OP_F32(sin_f32, 1, (float)sin((double)a))
OP_F32(cos_f32, 1, (float)cos((double)a))
OP_F32(tanh_f32, 1, (float)tanh((double)a))
OP_F32(multiplied, 2, a *b)
OP_F32(multiplied_down, 2, down((double)a *(double)b))

Run mul_f32, min_f32, max_f32;
void mul_f32(Warp *w, const Inst *i) { (HAS(i, rm) ? multiplied_down : multiplied)(w, i); }

/* What is no number is left out, but with .NaN; -0 is less than 0. */
static float least(float a, float b, bool nan)
{
    if (a != a || b != b)
        return nan || (a != a && b != b) ? number_of(0x7fffffff) : a != a ? b : a;
    return a < b || (a == b && signbit(a)) ? a : b;
}
void min_f32(Warp *w, const Inst *i)
{
    float *d = AT(float, 0);
    const float *a = AT(float, 1), *b = AT(float, 2);
    const bool nan = HAS(i, NaN);
    EACH_LANE(d[l] = least(in(i, a[l]), in(i, b[l]), nan));
}
void max_f32(Warp *w, const Inst *i)
{
    float *d = AT(float, 0);
    const float *a = AT(float, 1), *b = AT(float, 2);
    const bool nan = HAS(i, NaN);
    EACH_LANE(d[l] = -least(-in(i, a[l]), -in(i, b[l]), nan));
}

/* ---- float64 ---- */
OP_2(add_f64, double, double, double, a[l] + b[l])
OP_2(sub_f64, double, double, double, a[l] - b[l])
OP_2(mul_f64, double, double, double, a[l] * b[l])
OP_2(div_f64, double, double, double, a[l] / b[l])
OP_3(fma_f64, double, double, double, double, __builtin_fma(a[l], b[l], c[l]))
OP_1(neg_f64, double, double, -a[l])
OP_1(abs_f64, double, double, fabs(a[l]))

/* ---- pairs of 16 bits ---- */
static u32 fma_pair(u32 a, u32 b, u32 c)
{
    u32 d = 0;
    for (int k = 0; k < 32; k += 16) /* the product has 22 bits, and the sum is rounded once */
        d |= (u32)to_half(of_half((u16)(a >> k)) * of_half((u16)(b >> k)) + of_half((u16)(c >> k))) << k;
    return d;
}
OP_3(fma_f16x2, u32, u32, u32, u32, fma_pair(a[l], b[l], c[l]))

/* ---- from one type to another ---- */
OP_1(to_u16, u32, u32, (u16)a[l])
OP_1(to_u16_of_64, u32, u64, (u16)a[l])
OP_1(to_s32_of_s16, u32, u32, (s32)(s16)a[l])
OP_1(to_u32_of_64, u32, u64, a[l])
OP_1(to_u64_of_u32, u64, u32, a[l])
OP_1(to_s64_of_s32, u64, s32, (s64)a[l])
OP_1(to_f32_of_s32, float, s32, a[l])
OP_1(to_f32_of_u32, float, u32, a[l])
OP_1(to_f32_of_s64, float, s64, a[l])
OP_1(to_f32_of_u64, float, u64, a[l])
OP_1(to_f64_of_f32, double, float, a[l])
OP_1(to_f64_of_s32, double, s32, a[l])
OP_1(to_f64_of_s64, double, s64, a[l])
static float narrowed(const Inst *i, double x)
{
    const float y = (float)x;
    return HAS(i, ftz) ? flushed(y) : y;
}
OP_1(to_f32_of_f64, float, double, narrowed(i, a[l]))

/* The rounding of an opcode is in its name: cvt.rzi, cvt.rmi, cvt.rni. */
static double rounded(const Inst *i, double x)
{
    return i->name[5] == 'z' ? trunc(x) : i->name[5] == 'm' ? floor(x) : rint(x);
}
/* What does not fit is the nearest that does, what is no number 0 (of 64 bits the least). */
static s64 clamped(double x, double low, double high, s64 most, s64 none)
{
    return x != x ? none : x <= low ? (s64)low : x >= high ? most : (s64)x;
}
OP_1(to_whole_f32, float, float, (float)rounded(i, (double)in(i, a[l])))
OP_1(to_s32_of_f32, u32, float, clamped(rounded(i, (double)a[l]), -0x1p31, 0x1p31, INT32_MAX, 0))
OP_1(to_u32_of_f32, u32, float, clamped(rounded(i, (double)a[l]), 0, 0x1p32, UINT32_MAX, 0))
OP_1(to_s64_of_f32, u64, float, clamped(rounded(i, (double)a[l]), -0x1p63, 0x1p63, INT64_MAX, INT64_MIN))
OP_1(to_s32_of_f64, u32, double, clamped(rounded(i, a[l]), -0x1p31, 0x1p31, INT32_MAX, 0))
OP_1(to_s64_of_f64, u64, double, clamped(rounded(i, a[l]), -0x1p63, 0x1p63, INT64_MAX, INT64_MIN))
OP_1(to_bf16, u32, float, to_brain(a[l]))
OP_1(to_f16, u32, float, to_half((double)a[l]))
OP_2(to_bf16x2, u32, float, float, (u32)to_brain(a[l]) << 16 | to_brain(b[l]))
OP_2(to_f16x2, u32, float, float, (u32)to_half((double)a[l]) << 16 | to_half((double)b[l]))
OP_1(of_f16, float, u32, of_half((u16)a[l]))
OP_1(of_bf16, float, u32, of_brain((u16)a[l]))
