/* Types and functions that the kernels below use. CUDA C that needs no header. "ulp" is the
 * unit in the last place of a float result. */
#ifdef __CUDACC_RTC__
typedef long long int64_t;
typedef unsigned long long uint64_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef unsigned short uint16_t;
#else
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT16_TYPE__ uint16_t;
#endif
typedef float real;
typedef int64_t integer;
typedef uint16_t bf16;
/* What changes from run to run, such as a learning rate, lies in memory, in eight bytes. */
union number {
    int64_t whole;
    real single;
};
struct fp16 {
    uint16_t bits;
};
struct fp8_e4m3 {
    unsigned char code;
};
struct fp8_e5m2 {
    unsigned char code;
};
/* A size as an argument, of which 32 bits are all that is needed. */
struct size32 {
    int64_t all;
    __device__ operator int32_t() const { return (int32_t)all; }
};
/* A number as an argument, in the first half of eight bytes. */
struct __align__(8) number32 {
    real single;
    __device__ operator real() const { return single; }
};
/* An argument that lies in memory. */
struct given {
    number x;
    template <class T> __device__ operator T *() const { return (T *)x.whole; }
    __device__ operator int64_t() const { return x.whole; }
    __device__ operator size32() const { return {x.whole}; }
    __device__ operator number32() const { return {x.single}; }
};
#define FN [[maybe_unused]] static __device__ __forceinline__
#define KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
#ifndef DYN_SMEM /* shared memory whose size the launch says */
extern __shared__ __align__(128) unsigned char vwn_shared[];
#define DYN_SMEM(name) unsigned char *const name = vwn_shared
#endif
#define INFINITE __uint_as_float(0x7f800000u)
#define NOT_A_NUMBER __uint_as_float(0x7fc00000u)
#define __builtin_sqrtf(x) sqrtf(x)

FN uint32_t vwn_bits(real x) { return __float_as_uint(x); }
FN real vwn_real(uint32_t u) { return __uint_as_float(u); }
/* The nearest numbers of bf16, ties to even, the first one in the lower half; a NaN as the device has it. */
#define VWN_TWO_BF16 1
#ifndef VWN_EMU
FN uint32_t vwn_two_bf16(real x, real y)
{
    uint32_t u;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(y), "f"(x));
    return u;
}
#else
FN uint32_t vwn_half(real x)
{
    const uint32_t u = vwn_bits(x);
    return (u & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : (u + 0x7fffu + (u >> 16 & 1)) >> 16;
}
FN uint32_t vwn_two_bf16(real x, real y) { return vwn_half(x) | vwn_half(y) << 16; }
#endif
/* 2^x within 2 ulp; 1 / x within 1; x within [least, most], a NaN as it is; the largest number that is not above x y. */
#ifndef VWN_EMU
FN real vwn_exp2(real x)
{
    real y;
    asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
FN real vwn_inverse(real x)
{
    real y;
    asm("rcp.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
/* The same without the smallest numbers: what is below 2^-126 is 0. */
FN real vwn_exp2_fast(real x)
{
    real y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
FN real vwn_inverse_fast(real x)
{
    real y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
FN real vwn_within(real x, real least, real most)
{
    real y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(least));
    asm("min.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(y), "f"(most));
    return y;
}
FN real vwn_times_down(real x, real y) { return __fmul_rd(x, y); }
#else
FN real vwn_exp2(real x) { return (real)exp2((double)x); }
FN real vwn_inverse(real x) { return 1.0f / x; }
FN real vwn_none_small(real x) { return x < 1.17549435e-38f ? 0.0f : x; }
FN real vwn_exp2_fast(real x) { return vwn_none_small(vwn_exp2(x)); }
FN real vwn_inverse_fast(real x) { return vwn_none_small(1.0f / x); }
FN real vwn_within(real x, real least, real most) { return x < least ? least : x > most ? most : x; }
FN real vwn_times_down(real x, real y)
{
    const real p = (real)((double)x * y);
    return (double)p > (double)x * y ? nextafterf(p, -INFINITE) : p;
}
#endif
/* e^x, 3 ulp: what rounding takes from x log2(e) is added again. It is never negative, so that infinity stays what it is:
 * 0 below -104, infinity above 88.73. */
#define VWN_EXP 1
FN real vwn_exp(real x)
{
    const real c = vwn_within(x, -104.0f, 89.0f), t = vwn_times_down(c, 1.44269504f), y = vwn_exp2(t);
    const real lost = fmaf(c, 1.92596299e-8f, fmaf(c, 1.44269504f, -t));
    return fmaf(y, lost * 0.693147181f, y);
}
/* e^x within a relative 1e-7 |x| and 2 ulp: 0 below -87.3 */
FN real vwn_exp_fast(real x) { return vwn_exp2_fast(x * 1.44269504f); }
