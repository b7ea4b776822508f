/* What the threads of a warp do together: all 32 of them, at one place. Every thread has the
 * same bits of a result: the sums are trees of commutative steps, a maximum comes from lane 0. */
template <class T> FN T vwn_from_lane(T x, int lane)
{
    return __shfl_sync(0xffffffffu, x, lane);
}
template <class T> FN T vwn_warp_sum(T x)
{
    VWN_EVERY(i, 5, x += __shfl_xor_sync(0xffffffffu, x, 16 >> i))
    return x;
}
template <class T> FN T vwn_warp_max(T x)
{
    T y;
    VWN_EVERY(i, 5, y = __shfl_xor_sync(0xffffffffu, x, 16 >> i), x = y > x ? y : x)
    return vwn_from_lane(x, 0);
}
/* The totals of the warps of a block: each puts its own, after a barrier each adds all. */
template <class T> FN void vwn_warp_put(integer *at, T x)
{
    if (threadIdx.x % 32 == 0)
        ((T *)at)[threadIdx.x / 32] = x;
}
template <int N, class T> FN T vwn_warps_sum(const integer *at, T)
{
    if constexpr (N > 1)
        return vwn_warps_sum<N - 1>(at, T()) + ((const T *)at)[N - 1];
    else
        return *(const T *)at;
}
template <int N, class T> FN T vwn_warps_max(const integer *at, T)
{
    if constexpr (N > 1) {
        const T x = vwn_warps_max<N - 1>(at, T()), y = ((const T *)at)[N - 1];
        return y > x ? y : x;
    } else {
        return *(const T *)at;
    }
}
/* Which of n launches this block is of: the last one whose first block does not come later. */
FN int32_t vwn_launch_of(const given *first, int32_t n)
{
    int32_t at = 0;
    while (n - at > 1) {
        const int32_t half = (at + n) / 2;
        if (first[half].x.whole <= blockIdx.x)
            at = half;
        else
            n = half;
    }
    return at;
}
/* An array of n numbers for each of the rows that a block has in flight: that of row `unit`. */
template <class T, class I> FN T *vwn_array(unsigned char *&shared, I n, int units, int unit)
{
    T *const x = (T *)shared + unit * n;
    shared += (units * n * (int)sizeof(T) + 15) & -16;
    return x;
}
