/* 2^k for -126 <= k <= 127 */
FN real vwn_pow2(int32_t k) { return vwn_real((uint32_t)(k + 127) << 23); }
/* nearest whole number, ties to even; |x| < 2^22 */
FN real vwn_nearest(real x) { return (x + 12582912.0f) - 12582912.0f; }

FN real vwn_abs(real x) { return vwn_real(vwn_bits(x) & 0x7fffffffu); }
FN real vwn_with_sign(real x, real of)
{
    return vwn_real((vwn_bits(x) & 0x7fffffffu) | (vwn_bits(of) & 0x80000000u));
}
FN real vwn_sign(real x) { return (real)(x > 0) - (real)(x < 0); }
FN real vwn_min(real a, real b) { return a < b ? a : b; }
FN real vwn_max(real a, real b) { return a > b ? a : b; }
FN real vwn_lt(real a, real b) { return a < b ? 1.0f : 0.0f; }
FN real vwn_le(real a, real b) { return a <= b ? 1.0f : 0.0f; }
FN real vwn_eq(real a, real b) { return a == b ? 1.0f : 0.0f; }
FN real vwn_where(real mask, real a, real b) { return mask != 0 ? a : b; }
FN real vwn_relu(real x) { return x < 0 ? 0.0f : x; }
FN real vwn_sqrt(real x) { return __builtin_sqrtf(x); }
FN real vwn_floor(real x)
{
    real big = vwn_abs(x) < 8388608.0f ? x : 0.0f;
    real t = (real)(int32_t)big;
    t = t > big ? t - 1.0f : t;
    return vwn_abs(x) < 8388608.0f ? vwn_with_sign(t, x) : x;
}
FN real vwn_ceil(real x) { return -vwn_floor(-x); }
/* Above 2^23 all numbers are whole; the sum with 2^23 is rounded to a whole one. */
FN real vwn_round(real x)
{
    real a = vwn_abs(x);
    return a < 8388608.0f ? vwn_with_sign((a + 8388608.0f) - 8388608.0f, x) : x;
}
FN real vwn_mod(real a, real b) { return a - b * vwn_floor(a / b); }

/* integers wrap around; nothing stops the process */
FN integer vwn_iadd(integer a, integer b) { return (integer)((uint64_t)a + (uint64_t)b); }
FN integer vwn_isub(integer a, integer b) { return (integer)((uint64_t)a - (uint64_t)b); }
FN integer vwn_imul(integer a, integer b) { return (integer)((uint64_t)a * (uint64_t)b); }
FN integer vwn_ineg(integer a) { return (integer)(0 - (uint64_t)a); }
FN integer vwn_imin(integer a, integer b) { return a < b ? a : b; }
FN integer vwn_imax(integer a, integer b) { return a > b ? a : b; }
FN real vwn_ilt(integer a, integer b) { return a < b ? 1.0f : 0.0f; }
FN real vwn_ile(integer a, integer b) { return a <= b ? 1.0f : 0.0f; }
/* Not `a == b`: where one number is compared with several constants, GCC 12 -O2 turns that into
 * branches and then loses sums of vectors. The top bit of d | -d is 0 for d = 0 alone. */
FN real vwn_ieq(integer a, integer b)
{
    uint64_t d = (uint64_t)a ^ (uint64_t)b;
    return (real)(int)(1 ^ ((d | (0 - d)) >> 63));
}
FN integer vwn_iwhere(real mask, integer a, integer b) { return mask != 0 ? a : b; }
FN integer vwn_imod(integer a, integer b)
{
    integer by = b == 0 || b == -1 ? 1 : b;
    integer r = a % by;
    return r != 0 && (r < 0) != (by < 0) ? r + by : r;
}
FN integer vwn_to_int(real x)
{
    if (x >= 9223372036854775808.0f)
        return 0x7fffffffffffffff;
    if (x < -9223372036854775808.0f)
        return -0x7fffffffffffffff - 1;
    return x != x ? 0 : (integer)x;
}

#ifndef VWN_EXP /* a device has instructions for these */
/* 1 / x */
FN real vwn_inverse(real x) { return 1.0f / x; }
/* e^x, 1 ulp; results below 2^-126 keep fewer digits; 0 below -104, infinity above 88.73 */
FN real vwn_exp(real x)
{
    real c = x < -104.0f ? -104.0f : x;
    c = c > 89.0f ? 89.0f : c;
    real n = vwn_nearest(c * 1.44269504f);
    real r = c - n * 0.693359375f;
    r = r - n * -2.12194440e-4f;
    real p = 0.00139516696f;
    p = p * r + 0.00836960299f;
    p = p * r + 0.041666188f;
    p = p * r + 0.166665128f;
    p = p * r + 0.50000001f;
    p = p * (r * r) + r + 1.0f;
    int32_t k = (int32_t)n;
    int32_t half = k >> 1;
    return p * vwn_pow2(half) * vwn_pow2(k - half);
}
/* What suits a number that is added to another, or tells nothing below 2^-126: 1 / x for x >= 1, e^x, 2^x. */
FN real vwn_inverse_fast(real x) { return 1.0f / x; }
FN real vwn_exp_fast(real x) { return vwn_exp(x); }
FN real vwn_exp2_fast(real x) { return vwn_exp(x * 0.693147181f); }
#endif

/* natural logarithm, 1 ulp; -infinity at 0, not a number below */
FN real vwn_log(real x)
{
    real tiny = x < 1.17549435e-38f ? 1.0f : 0.0f;
    uint32_t u = vwn_bits(tiny != 0 ? x * 8388608.0f : x);
    int32_t e = (int32_t)(u - 0x3f3504f3u) >> 23;
    real t = vwn_real(u - ((uint32_t)e << 23)) - 1.0f;
    real n = (real)e - 23.0f * tiny;
    real p = 0.0691395047f;
    p = p * t + -0.117890843f;
    p = p * t + 0.118732302f;
    p = p * t + -0.123844891f;
    p = p * t + 0.142186415f;
    p = p * t + -0.166692421f;
    p = p * t + 0.200022272f;
    p = p * t + -0.249999868f;
    p = p * t + 0.333333104f;
    real q = t * t * t * p + n * -2.12194440e-4f;
    q = q - 0.5f * t * t;
    real y = n * 0.693359375f + (t + q);
    y = x == 0 ? -INFINITE : y;
    y = x < 0 ? NOT_A_NUMBER : y;
    return x < INFINITE ? y : x;
}

/* log(1 + u) for 0 <= u <= 1, 2 ulp */
FN real vwn_log1p_unit(real u)
{
    real s = u / (2.0f + u);
    real y = s * s;
    real p = 0.24301038f;
    p = p * y + 0.21427625f;
    p = p * y + 0.286168885f;
    p = p * y + 0.399988776f;
    p = p * y + 0.666666756f;
    return 2.0f * s + s * y * p;
}

/* 2 ulp; exact at 0 and at infinity. big: what it is for |x| from 0.64 on */
FN real vwn_tanh_from(real x, real big)
{
    real a = vwn_abs(x);
    real y = a * a;
    real p = -0.00560370319f;
    p = p * y + 0.0205515032f;
    p = p * y + -0.0537140301f;
    p = p * y + 0.133311517f;
    p = p * y + -0.33333272f;
    real small = a + a * y * p;
    return vwn_with_sign(a < 0.64f ? small : big, x);
}
FN real vwn_tanh(real x) { return vwn_tanh_from(x, 1.0f - 2.0f * vwn_inverse_fast(vwn_exp_fast(2.0f * vwn_abs(x)) + 1.0f)); }

/* 1 / (1 + e^-x), 3 ulp; on a device 5 */
FN real vwn_sigmoid(real x) { return vwn_inverse_fast(1.0f + vwn_exp(-x)); }
FN real vwn_silu(real x) { return (x < -120.0f ? -120.0f : x) * vwn_sigmoid(x); }
FN real vwn_softplus(real x) { return vwn_relu(x) + vwn_log1p_unit(vwn_exp(-vwn_abs(x))); }

/* 3 ulp: a power series in x^2, and from 0.9 on 1 - 2^q(|x|) */
FN real vwn_erf(real x)
{
    real a = vwn_abs(x);
    real y = x * x;
    real p = -0.000609036072f;
    p = p * y + 0.00501196341f;
    p = p * y + -0.0267789097f;
    p = p * y + 0.112821409f;
    p = p * y + -0.376125233f;
    p = p * y + 1.12837915f;
    real b = vwn_min(a, 4.0f);
    real q = -0.00180563153f;
    q = q * b + 0.0224758846f;
    q = q * b + -0.131442955f;
    q = q * b + -0.938841124f;
    q = q * b + -1.61609397f;
    q = q * b + -0.00270880353f;
    return a >= 0.9f ? vwn_with_sign(1.0f - vwn_exp2_fast(q), x) : x * p;
}
/* e^(-x^2 / 2) */
FN real vwn_bell(real x) { return vwn_exp2_fast(x * x * -0.721347520f); }
/* The normal distribution function of -|x|, which is e^(-x^2 / 2) times a polynomial of 1 / (1 + 0.298 |x|): 7 ulp near 0, on a
 * device 9, relative 1e-7 x^2 far out. */
FN real vwn_normal_tail(real x)
{
    real u = vwn_inverse_fast(1.0f + 0.298f * vwn_abs(x));
    real p = 0.0389338955f;
    p = p * u + -0.175367865f;
    p = p * u + 0.246164414f;
    p = p * u + -0.0929628138f;
    p = p * u + 0.152038934f;
    p = p * u + 0.0907590455f;
    p = p * u + 0.121811628f;
    p = p * u + 0.118611915f;
    p = p * u + 1.0869075e-05f;
    return p * vwn_bell(x);
}
FN real vwn_gelu(real x) { return vwn_relu(x) - vwn_min(vwn_abs(x), 64.0f) * vwn_normal_tail(x); }
/* Its derivative, of which that of |x| and of -|x| are 1 together; within 3e-7 */
FN real vwn_gelu_slope(real x)
{
    real left = vwn_normal_tail(x) - vwn_min(vwn_abs(x), 64.0f) * (0.398942280f * vwn_bell(x));
    return x > 0 ? 1.0f - left : left;
}
FN real vwn_gelu_tanh(real x)
{
    real c = x < -16.0f ? -16.0f : x;
    real u = c > 16.0f ? 16.0f : c;
    return c * vwn_inverse_fast(1.0f + vwn_exp_fast(-1.59576912f * (u + 0.044715f * u * u * u)));
}

/* sine and cosine of r and of a number of quarter turns, |r| <= pi / 4, 1 ulp */
FN real vwn_sincos_quarter(real r, int32_t quarter)
{
    real c = r > 0.786f ? 0.786f : r;
    c = c < -0.786f ? -0.786f : c;
    real y = c * c;
    real s = 2.71823279e-06f;
    s = s * y + -0.000198393266f;
    s = s * y + 0.00833332936f;
    s = s * y + -0.166666666f;
    s = c + c * y * s;
    real k = 2.4437686e-05f;
    k = k * y + -0.0013887361f;
    k = k * y + 0.0416666467f;
    k = 1.0f - 0.5f * y + y * y * k;
    real v = quarter & 1 ? k : s;
    return quarter & 2 ? -v : v;
}
/* 2 ulp for |x| <= 2^30; between -1 and 1 beyond */
FN real vwn_sin_from(real x, int32_t quarters)
{
    double q = (double)x * 0.63661977236758134;
    double n = (q + 6755399441055744.0) - 6755399441055744.0;
    real r = (real)((double)x - n * 1.5707963267948966);
    double m = n < 2147483000.0 ? n : 0.0;
    m = m > -2147483000.0 ? m : 0.0;
    return vwn_sincos_quarter(r, (int32_t)m + quarters);
}
FN real vwn_sin(real x) { return vwn_sin_from(x, 0); }
FN real vwn_cos(real x) { return vwn_sin_from(x, 1); }
/* cosine of 2 pi x, 0 <= x <= 1 */
FN real vwn_cos_turn(real x)
{
    real n = vwn_nearest(4.0f * x);
    return vwn_sincos_quarter((4.0f * x - n) * 1.57079633f, (int32_t)n + 1);
}

/* a to the b, 3 ulp, as C has it at zeros, infinities and negative a */
FN real vwn_pow(real a, real b)
{
    real x = vwn_abs(a);
    real tiny = x < 1.17549435e-38f ? 1.0f : 0.0f;
    uint32_t u = vwn_bits(tiny != 0 ? x * 8388608.0f : x);
    int32_t e = (int32_t)(u - 0x3f3504f3u) >> 23;
    double m = (double)vwn_real(u - ((uint32_t)e << 23));
    double s = (m - 1.0) / (m + 1.0);
    double y = s * s;
    double p = 0.2831202517757258;
    p = p * y + 0.3198910451280144;
    p = p * y + 0.41220958969636484;
    p = p * y + 0.5770779392412536;
    p = p * y + 0.9617966941232936;
    p = p * y + 2.885390081777845;
    double l = (double)b * ((double)e - 23.0 * (double)tiny + s * p);
    l = l < -160.0 ? -160.0 : l;
    l = l > 160.0 ? 160.0 : l;
    double n = (l + 6755399441055744.0) - 6755399441055744.0;
    real f = (real)(l - n);
    real r = 0.00015474826f;
    r = r * f + 0.00134017057f;
    r = r * f + 0.00961801008f;
    r = r * f + 0.0555032407f;
    r = r * f + 0.240226513f;
    r = r * f + 0.693147208f;
    r = r * f + 1.0f;
    int32_t k = (int32_t)n;
    int32_t half = k >> 1;
    r = r * vwn_pow2(half) * vwn_pow2(k - half);
    real zero = b < 0 ? INFINITE : 0.0f;
    real infinite = b < 0 ? 0.0f : INFINITE;
    r = x == 0 ? zero : r;
    r = x == INFINITE ? infinite : r;
    real ab = vwn_abs(b);
    r = ab == INFINITE ? ((x > 1.0f) == (b > 0) ? INFINITE : 0.0f) : r;
    r = x == 1.0f && ab == INFINITE ? 1.0f : r;
    real whole = vwn_floor(b);
    real half_b = 0.5f * b;
    real odd = whole == b && vwn_floor(half_b) != half_b ? 1.0f : 0.0f;
    r = a < 0 && whole != b && ab != INFINITE && x != INFINITE ? NOT_A_NUMBER : r;
    r = (vwn_bits(a) >> 31) != 0 && odd != 0 ? -r : r;
    r = a != a || b != b ? NOT_A_NUMBER : r;
    r = a == 1.0f ? 1.0f : r;
    return b == 0 ? 1.0f : r;
}

/* Without the last `drop` bits, ties to even; what is below `least` to a multiple of `unit`; what rounds above `most` is `over`. */
FN real vwn_round_digits(real x, int drop, real least, real unit, real most, real over)
{
    uint32_t u = vwn_bits(x);
    uint32_t r = (u + (((uint32_t)1 << (drop - 1)) - 1) + (u >> drop & 1u)) & ~(((uint32_t)1 << drop) - 1);
    real a = vwn_abs(vwn_real(r));
    real large = unit * 12582912.0f;
    real small = (vwn_abs(x) + large) - large;
    a = vwn_abs(x) < least ? small : a;
    a = a > most ? over : a;
    return x == x ? vwn_with_sign(a, x) : x;
}
/* to bfloat16 (16), binary16 (17), E4M3 (8) or E5M2 (9) and back, ties to even */
FN real vwn_round_to(real x, int type)
{
#ifdef VWN_TWO_BF16 /* a device has an instruction for it */
    if (type == 16)
        return vwn_real(vwn_two_bf16(x, 0) << 16);
#endif
    if (type == 16) {
        uint32_t u = vwn_bits(x);
        uint32_t r = (u + 0x7fffu + (u >> 16 & 1u)) & 0xffff0000u;
        return x - x == 0 ? vwn_real(r) : x;
    }
    if (type == 17)
        return vwn_round_digits(x, 13, 6.103515625e-05f, 5.9604644775390625e-08f, 65504.0f, INFINITE);
    if (type == 9)
        return vwn_round_digits(x, 21, 6.103515625e-05f, 1.52587890625e-05f, 57344.0f, INFINITE);
    return vwn_round_digits(x, 20, 0.015625f, 0.001953125f, 448.0f, 448.0f);
}

/* the two bytes of a number that vwn_round_to() made; arithmetic's NaN stays one */
FN bf16 vwn_bf16(real x) { return (bf16)(vwn_bits(x) >> 16); }
FN real vwn_of_bf16(bf16 x) { return vwn_real((uint32_t)x << 16); }
/* the byte of such a number, of `digits` bits behind the point, and the number of a byte; the exponent of 1 is `one`. Without a
 * leading bit it is a multiple of `unit` */
FN unsigned char vwn_byte(real x, int digits, int one, real unit)
{
    uint32_t u = vwn_bits(x) & 0x7fffffffu;
    uint32_t code = u < (uint32_t)(128 - one) << 23 ? (uint32_t)(int32_t)(vwn_abs(x) / unit) : (u >> (23 - digits)) - ((uint32_t)(127 - one) << digits);
    code = u >= 0x7f800000u ? (u == 0x7f800000u ? 0x7cu : 0x7fu) : code;
    return (unsigned char)(code | (vwn_bits(x) >> 24 & 0x80u));
}
FN real vwn_of_byte(unsigned char byte, int digits, int one, real unit)
{
    uint32_t code = byte & 0x7fu;
    real normal = vwn_real((code << (23 - digits)) + ((uint32_t)(127 - one) << 23));
    real x = code >> digits ? normal : (real)(int32_t)code * unit;
    return byte & 0x80u ? -x : x;
}
FN fp8_e4m3 vwn_fp8_e4m3(real x)
{
    fp8_e4m3 y = {vwn_byte(x, 3, 7, 0.001953125f)};
    return y;
}
FN real vwn_of_fp8_e4m3(fp8_e4m3 x)
{
    return (x.code & 0x7f) == 0x7f ? NOT_A_NUMBER : vwn_of_byte(x.code, 3, 7, 0.001953125f);
}
FN fp8_e5m2 vwn_fp8_e5m2(real x)
{
    fp8_e5m2 y = {vwn_byte(x, 2, 15, 1.52587890625e-05f)};
    return y;
}
FN real vwn_of_fp8_e5m2(fp8_e5m2 x)
{
    real infinite = x.code & 0x80 ? -INFINITE : INFINITE;
    real large = (x.code & 0x7f) == 0x7c ? infinite : NOT_A_NUMBER;
    return (x.code & 0x7f) >= 0x7c ? large : vwn_of_byte(x.code, 2, 15, 1.52587890625e-05f);
}

/* Philox4x32-10: words 0 and 1 of the block (index, step) under key */
FN void vwn_philox(uint64_t key, uint64_t step, uint64_t index, uint32_t *w0, uint32_t *w1)
{
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32);
    uint32_t c2 = (uint32_t)step, c3 = (uint32_t)(step >> 32);
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
#define VWN_ROUND                                            \
    {                                                        \
        uint64_t a = (uint64_t)0xd2511f53u * c0;             \
        uint64_t b = (uint64_t)0xcd9e8d57u * c2;             \
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0;                  \
        c1 = (uint32_t)b;                                    \
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1;                  \
        c3 = (uint32_t)a;                                    \
        k0 += 0x9e3779b9u;                                   \
        k1 += 0xbb67ae85u;                                   \
    }
    VWN_ROUND VWN_ROUND VWN_ROUND VWN_ROUND VWN_ROUND
    VWN_ROUND VWN_ROUND VWN_ROUND VWN_ROUND VWN_ROUND
    *w0 = c0;
    *w1 = c1;
}
FN real vwn_uniform(integer key, integer step, integer index)
{
    uint32_t a, b;
    vwn_philox((uint64_t)key, (uint64_t)step, (uint64_t)index, &a, &b);
    return (real)(int32_t)(a >> 8) * 0x1p-24f;
}
FN real vwn_normal(integer key, integer step, integer index)
{
    uint32_t a, b;
    vwn_philox((uint64_t)key, (uint64_t)step, (uint64_t)index, &a, &b);
    real u = (real)((int32_t)(a >> 8) + 1) * 0x1p-24f;
    return vwn_sqrt(-2.0f * vwn_log(u)) * vwn_cos_turn((real)(int32_t)(b >> 8) * 0x1p-24f);
}

