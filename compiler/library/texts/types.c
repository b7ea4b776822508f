/* Types and functions that the kernels below use. Plain C, no header, no library. Functions
 * of one number are branch-free, so that a loop over them becomes vector code. "ulp" is the
 * unit in the last place of a float result. */
#if defined __GNUC__ && !defined __clang__ /* it takes loops that do not run for ones that do */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
typedef float real;
typedef __INT64_TYPE__ integer;
typedef __INT64_TYPE__ int64_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __INT32_TYPE__ int32_t;
typedef __UINT16_TYPE__ bf16;
typedef struct { unsigned char code; } fp8_e4m3;
typedef struct { unsigned char code; } fp8_e5m2;
#define FN static inline __attribute__((always_inline))
#define KERNEL void
#define ALIGNED __attribute__((aligned(64)))
#define SINGLY __asm__ volatile("")
#define INFINITE __builtin_inff()
#define NOT_A_NUMBER __builtin_nanf("")

FN uint32_t vwn_bits(real x)
{
    uint32_t u;
    __builtin_memcpy(&u, &x, 4);
    return u;
}
FN real vwn_real(uint32_t u)
{
    real x;
    __builtin_memcpy(&x, &u, 4);
    return x;
}
