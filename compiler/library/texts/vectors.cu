/* A few neighbours that one thread takes at once, at a multiple of their size or of 16 bytes. Functions
 * of numbers are functions of them. */
#ifdef VWN_EMU
#define VWN_WIDE(p, bytes) emu::aligned(p, bytes)
#else
#define VWN_WIDE(p, bytes) (p)
#endif
template <int N> struct __align__(N < 4 ? 4 * N : 16) vec {
    real v[N];
};
template <int N> FN vec<N> &vwn_at(real *p) { return *(vec<N> *)VWN_WIDE(p, alignof(vec<N>)); }
template <int N> FN const vec<N> &vwn_at(const real *p)
{
    return *(const vec<N> *)VWN_WIDE(p, alignof(vec<N>));
}
/* A statement for each lane i of N, at most 8, written out: a compiler takes long over thousands of small
 * loops, one for each operation on neighbours. */
#define VWN_LANE(i, number, N, ...)     \
    if constexpr (number < N) {         \
        constexpr int i = number;       \
        __VA_ARGS__;                    \
    }
#define VWN_EVERY(i, N, ...)                                                  \
    VWN_LANE(i, 0, N, __VA_ARGS__) VWN_LANE(i, 1, N, __VA_ARGS__)              \
    VWN_LANE(i, 2, N, __VA_ARGS__) VWN_LANE(i, 3, N, __VA_ARGS__)              \
    VWN_LANE(i, 4, N, __VA_ARGS__) VWN_LANE(i, 5, N, __VA_ARGS__)              \
    VWN_LANE(i, 6, N, __VA_ARGS__) VWN_LANE(i, 7, N, __VA_ARGS__)
#define VWN_LANES(N, expression)                  \
    {                                             \
        vec<N> y;                                 \
        VWN_EVERY(i, N, y.v[i] = expression)      \
        return y;                                 \
    }
template <int N> FN vec<N> vwn_all(real x) VWN_LANES(N, x)
/* One after the other, so that each product among them is added by the instruction that makes it. */
template <int N> FN real vwn_add_lanes(real sum, vec<N> x)
{
    VWN_EVERY(i, N, sum += x.v[i])
    return sum;
}
template <int N> FN real vwn_lanes_max(vec<N> x)
{
    real y = x.v[0];
    VWN_EVERY(i, N, y = x.v[i] > y ? x.v[i] : y)
    return y;
}
template <int N> FN vec<N> operator-(vec<N> a) VWN_LANES(N, -a.v[i])
#define VWN_BOTH(name, of)                                                      \
    template <int N> FN vec<N> name(vec<N> a, vec<N> b) VWN_LANES(N, of(a.v[i], b.v[i])) \
    template <int N> FN vec<N> name(vec<N> a, real b) VWN_LANES(N, of(a.v[i], b)) \
    template <int N> FN vec<N> name(real a, vec<N> b) VWN_LANES(N, of(a, b.v[i]))
#define VWN_PLUS(a, b) ((a) + (b))
#define VWN_MINUS(a, b) ((a) - (b))
#define VWN_TIMES(a, b) ((a) * (b))
#define VWN_OVER(a, b) ((a) / (b))
VWN_BOTH(operator+, VWN_PLUS)
VWN_BOTH(operator-, VWN_MINUS)
VWN_BOTH(operator*, VWN_TIMES)
VWN_BOTH(operator/, VWN_OVER)
VWN_BOTH(vwn_pow, vwn_pow)
VWN_BOTH(vwn_min, vwn_min)
VWN_BOTH(vwn_max, vwn_max)
VWN_BOTH(vwn_mod, vwn_mod)
VWN_BOTH(vwn_lt, vwn_lt)
VWN_BOTH(vwn_le, vwn_le)
VWN_BOTH(vwn_eq, vwn_eq)
template <int N, class T> FN void operator+=(vec<N> &a, T b) { a = a + b; }
#define VWN_EACH(name) template <int N> FN vec<N> name(vec<N> a) VWN_LANES(N, name(a.v[i]))
VWN_EACH(vwn_inverse) VWN_EACH(vwn_exp) VWN_EACH(vwn_log) VWN_EACH(vwn_sqrt) VWN_EACH(vwn_abs) VWN_EACH(vwn_sign)
VWN_EACH(vwn_floor) VWN_EACH(vwn_ceil) VWN_EACH(vwn_round)
VWN_EACH(vwn_sin) VWN_EACH(vwn_cos) VWN_EACH(vwn_tanh) VWN_EACH(vwn_sigmoid)
VWN_EACH(vwn_erf) VWN_EACH(vwn_relu) VWN_EACH(vwn_gelu) VWN_EACH(vwn_gelu_slope) VWN_EACH(vwn_gelu_tanh)
VWN_EACH(vwn_silu) VWN_EACH(vwn_softplus)
/* of bf16 two at once */
template <int N> FN vec<N> vwn_round_to(vec<N> a, int type)
{
    if constexpr (N > 1) {
        if (type == 16) {
            uint32_t u[N / 2];
            VWN_EVERY(i, N / 2, u[i] = vwn_two_bf16(a.v[2 * i], a.v[2 * i + 1]))
            VWN_LANES(N, vwn_real(i % 2 ? u[i / 2] & 0xffff0000u : u[i / 2] << 16))
        }
    }
    VWN_LANES(N, vwn_round_to(a.v[i], type))
}
/* where any of the three is a vector */
FN real vwn_lane(real x, int) { return x; }
template <int N> FN real vwn_lane(vec<N> x, int i) { return x.v[i]; }
#define VWN_WHERE(A, B, C)                                                     \
    template <int N> FN vec<N> vwn_where(A a, B b, C c)                        \
        VWN_LANES(N, vwn_where(vwn_lane(a, i), vwn_lane(b, i), vwn_lane(c, i)))
VWN_WHERE(vec<N>, vec<N>, vec<N>) VWN_WHERE(vec<N>, vec<N>, real) VWN_WHERE(vec<N>, real, vec<N>)
VWN_WHERE(vec<N>, real, real) VWN_WHERE(real, vec<N>, vec<N>) VWN_WHERE(real, vec<N>, real)
VWN_WHERE(real, real, vec<N>)
template <int N> FN vec<N> vwn_choose(bool first, vec<N> a, vec<N> b) VWN_LANES(N, first ? a.v[i] : b.v[i])
template <int N> FN vec<N> vwn_choose(bool first, vec<N> a, real b) VWN_LANES(N, first ? a.v[i] : b)
template <int N> FN vec<N> vwn_choose(bool first, real a, vec<N> b) VWN_LANES(N, first ? a : b.v[i])
/* 1 in the place `at`, 0 in the others; `at` may be none of them */
template <int N> FN vec<N> vwn_one_at(int at) VWN_LANES(N, at == i ? 1.0f : 0.0f)
template <int N> FN vec<N> vwn_is_place(integer at) { return vwn_one_at<N>((uint64_t)at < N ? (int)at : -1); }
/* The two bytes of a number that is rounded to binary16, and back. */
#ifndef VWN_EMU
FN fp16 vwn_fp16(real x)
{
    fp16 y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
    return y;
}
FN real vwn_of_fp16(fp16 x)
{
    real y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}
#else /* on the CPU of the emulator */
FN fp16 vwn_fp16(real x) { return {emu_fp16(x)}; }
FN real vwn_of_fp16(fp16 x) { return emu_of_fp16(x.bits); }
#endif
template <class E, int N> struct __align__(sizeof(E) * N) vec_half {
    E v[N];
};
/* Several numbers of a type that is stored one by one: read and written, and pieces of what memory has. */
#define VWN_STORED(E)                                                                                               \
    template <int N> FN vec<N> vwn_get_##E(const E *from)                                                           \
    {                                                                                                               \
        const vec_half<E, N> x = *(const vec_half<E, N> *)VWN_WIDE(from, sizeof(E) * N);                            \
        VWN_LANES(N, vwn_of_##E(x.v[i]))                                                                            \
    }                                                                                                               \
    template <int N> FN void vwn_put_##E(E *to, vec<N> x)                                                           \
    {                                                                                                               \
        vec_half<E, N> y;                                                                                           \
        VWN_EVERY(i, N, y.v[i] = vwn_##E(x.v[i]))                                                                   \
        *(vec_half<E, N> *)VWN_WIDE(to, sizeof(E) * N) = y;                                                         \
    }                                                                                                               \
    template <int N> FN vec_half<E, N> vwn_many(const E *from) { return *(const vec_half<E, N> *)VWN_WIDE(from, sizeof(E) * N); } \
    template <int N> FN void vwn_put_many(E *to, vec_half<E, N> x) { *(vec_half<E, N> *)VWN_WIDE(to, sizeof(E) * N) = x; } \
    template <int P, int N> FN vec<P> vwn_piece(const vec_half<E, N> &x, int z) VWN_LANES(P, vwn_of_##E(x.v[z * P + i])) \
    template <int P, int N> FN void vwn_put_piece(vec_half<E, N> &x, int z, vec<P> y)                               \
    {                                                                                                               \
        VWN_EVERY(i, P, x.v[z * P + i] = vwn_##E(y.v[i]))                                                           \
    }
VWN_STORED(fp16)
VWN_STORED(fp8_e4m3)
VWN_STORED(fp8_e5m2)
/* Numbers of bf16 in pairs: the second is the upper half of a word. */
template <int N> struct __align__(2 * N) vec_pairs {
    uint32_t v[N / 2];
};
template <int N> FN vec<N> vwn_get_bf16(const bf16 *from)
{
    if constexpr (N == 1) {
        return {vwn_of_bf16(*from)};
    } else {
        const vec_pairs<N> x = *(const vec_pairs<N> *)VWN_WIDE(from, 2 * N);
        VWN_LANES(N, vwn_real(i % 2 ? x.v[i / 2] & 0xffff0000u : x.v[i / 2] << 16))
    }
}
template <int N> FN void vwn_put_bf16(bf16 *to, vec<N> x)
{
    if constexpr (N == 1) {
        *to = vwn_bf16(x.v[0]);
    } else {
        vec_pairs<N> y;
        VWN_EVERY(i, N / 2, y.v[i] = vwn_bits(x.v[2 * i]) >> 16 | (vwn_bits(x.v[2 * i + 1]) & 0xffff0000u))
        *(vec_pairs<N> *)VWN_WIDE(to, 2 * N) = y;
    }
}
/* All contiguous elements of a thread as memory has them, and of these piece number z, of P elements. */
template <int N> FN vec<N> vwn_many(const real *from) { return vwn_at<N>(from); }
template <int N> FN vec_pairs<N> vwn_many(const bf16 *from) { return *(const vec_pairs<N> *)VWN_WIDE(from, 2 * N); }
template <int N, class T> FN auto vwn_many_if(bool there, const T *from)
{
    decltype(vwn_many<N>(from)) none = {};
    return there ? vwn_many<N>(from) : none;
}
template <int N> FN void vwn_put_many(real *to, vec<N> x) { vwn_at<N>(to) = x; }
template <int N> FN void vwn_put_many(bf16 *to, vec_pairs<N> x) { *(vec_pairs<N> *)VWN_WIDE(to, 2 * N) = x; }
/* Sixteen bytes of shared memory by one instruction, whatever a compiler knows about the place. */
#ifndef VWN_EMU
FN void vwn_put_at_once(real *to, vec<4> x)
{
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"((uint32_t)__cvta_generic_to_shared(to)), "f"(x.v[0]), "f"(x.v[1]), "f"(x.v[2]),
                 "f"(x.v[3]) : "memory");
}
#else
FN void vwn_put_at_once(real *to, vec<4> x) { vwn_at<4>(to) = x; }
#endif
/* Where number `at` of a turned row lies. Of eight numbers two fours change places in every second 128 bytes: threads that take eight each
 * ask for four first, 32 bytes apart, and so meet in no bank. */
FN int vwn_turned(int at) { return at ^ (at >> 3 & 4); }
FN vec<8> vwn_many_turned(const real *row, int at)
{
    const vec<4> x[2] = {vwn_at<4>(row + vwn_turned(at)), vwn_at<4>(row + (vwn_turned(at) ^ 4))};
    VWN_LANES(8, x[i / 4].v[i % 4])
}
FN void vwn_put_turned(real *row, int at, vec<8> y)
{
    vec<4> x[2];
    VWN_EVERY(i, 4, x[0].v[i] = y.v[i], x[1].v[i] = y.v[4 + i])
    vwn_put_at_once(row + vwn_turned(at), x[0]);
    vwn_put_at_once(row + (vwn_turned(at) ^ 4), x[1]);
}
template <int P, int N> FN vec<P> vwn_piece(const vec<N> &x, int z) VWN_LANES(P, x.v[z * P + i])
template <int P, int N> FN vec<P> vwn_piece(const vec_pairs<N> &x, int z)
    VWN_LANES(P, vwn_real(i % 2 ? x.v[(z * P + i) / 2] & 0xffff0000u : x.v[(z * P + i) / 2] << 16))
template <int P, int N> FN void vwn_put_piece(vec<N> &x, int z, vec<P> y) { VWN_EVERY(i, P, x.v[z * P + i] = y.v[i]) }
template <int P, int N> FN void vwn_add_piece(vec<N> &x, int z, vec<P> y) { VWN_EVERY(i, P, x.v[z * P + i] += y.v[i]) }
template <int P, int N> FN void vwn_put_piece(vec_pairs<N> &x, int z, vec<P> y)
{
    VWN_EVERY(i, P / 2, x.v[z * P / 2 + i] = vwn_bits(y.v[2 * i]) >> 16 | (vwn_bits(y.v[2 * i + 1]) & 0xffff0000u))
}

