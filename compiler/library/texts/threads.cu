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
/* One of two. Two paths would be two places for threads to meet at. */
#ifdef VWN_EMU
__attribute__((noinline)) static inline real vwn_either(bool first, real x, real y)
#else
FN real vwn_either(bool first, real x, real y)
#endif
{
    return first ? x : y;
}
/* Many sums at once. In each of five steps two threads that are S apart take over the sums of every other number from
 * each other, so that N sums take about N shuffles and not 5 N. */
template <int S, int N> FN void vwn_sums_step(real *x)
{
    const bool upper = threadIdx.x & S;
    #pragma unroll
    for (int i = 0; i < N / 2; i++) {
        const real other = __shfl_xor_sync(0xffffffffu, vwn_either(upper, x[2 * i], x[2 * i + 1]), S);
        x[i] = other + vwn_either(upper, x[2 * i + 1], x[2 * i]);
    }
    if constexpr (N % 2)
        x[N / 2] = x[N - 1] + __shfl_xor_sync(0xffffffffu, x[N - 1], S);
}
/* The sums of N numbers over a warp, N <= 32: thread l of it gets that of number l; x is used up. */
template <int N> FN real vwn_warp_sums(real (&x)[N])
{
    vwn_sums_step<1, N>(x);
    vwn_sums_step<2, (N + 1) / 2>(x);
    vwn_sums_step<4, (N + 3) / 4>(x);
    vwn_sums_step<8, (N + 7) / 8>(x);
    vwn_sums_step<16, (N + 15) / 16>(x);
    return x[0];
}
/* These sums, of which thread l of a warp has number l, for all of the warp. */
template <int N> FN void vwn_share_sums(real sum, real (&x)[N])
{
    #pragma unroll
    for (int i = 0; i < N; i++)
        x[i] = vwn_from_lane(sum, i);
}
/* The same for the warps of a block: each puts its sums, after a barrier each adds all, thread l of it those of number l, and
 * has a place of its own behind them in which its threads find what the others have added. */
template <int N, int WARPS> FN void vwn_put_sums(integer *at, real sum)
{
    if (threadIdx.x % 32 < N)
        ((real *)at)[threadIdx.x % 32 * WARPS + threadIdx.x / 32] = sum;
}
template <int WARPS> FN real vwn_sum_of_warps(const integer *at, int number)
{
    enum { EACH = WARPS < 4 ? WARPS : 4 };
    real sum = 0;
    #pragma unroll
    for (int w = 0; w < WARPS; w += EACH) {
        const vec<EACH> y = vwn_at<EACH>((const real *)at + number * WARPS + w);
        VWN_EVERY(k, EACH, sum += y.v[k])
    }
    return sum;
}
template <int N, int WARPS> FN real vwn_take_sums(integer *at, real (&x)[N])
{
    enum { PLACES = (N + 3) / 4 * 4 };
    const int lane = threadIdx.x % 32;
    real *const own = (real *)at + PLACES * (WARPS + threadIdx.x / 32);
    real sum = 0;
    if (lane < PLACES)
        own[lane] = sum = vwn_sum_of_warps<WARPS>(at, lane < N ? lane : 0);
    __syncwarp();
    #pragma unroll
    for (int i = 0; i < N; i += 4) {
        const vec<4> y = vwn_at<4>(own + i);
        #pragma unroll
        for (int k = 0; k < 4 && i + k < N; k++)
            x[i + k] = y.v[k];
    }
    return sum;
}
/* Only that. */
template <int N, int WARPS> FN real vwn_take_own(const integer *at)
{
    const int lane = threadIdx.x % 32;
    return vwn_sum_of_warps<WARPS>(at, lane < N ? lane : 0);
}
/* Of a column of N numbers, of which lanes from FIRST on have one each: that of this thread; another lane has that of a neighbour. */
template <int FIRST, int N> FN int vwn_column()
{
    const int at = (int)(threadIdx.x % 32) - FIRST;
    return at < 0 ? 0 : at < N ? at : N - 1;
}
/* Where such a number lies that has OF neighbours, so far apart each, before the next row of them begins. */
template <int FIRST, int N, int OF, int BASE, int ALONG, int ACROSS> FN int vwn_column_place()
{
    const int at = vwn_column<FIRST, N>();
    return BASE + at % OF * ALONG + at / OF * ACROSS;
}
/* A number that is loaded where it stands: of itself a compiler loads it in front of loops in which registers are short. */
#ifndef VWN_EMU
FN real vwn_load_here(const real *row, int at)
{
    real x;
    asm volatile("" : "+r"(at));
    asm volatile("ld.global.f32 %0, [%1];" : "=f"(x) : "l"(row + at) : "memory");
    return x;
}
#else
FN real vwn_load_here(const real *row, int at) { return row[at]; }
#endif
/* What the warps of a block have put, added up in an array. */
template <int N, int WARPS> FN void vwn_store_sums(const integer *at, real *to)
{
    if (threadIdx.x < N)
        to[threadIdx.x] = vwn_sum_of_warps<WARPS>(at, threadIdx.x);
}
/* Partial sums of a block, in turned rows (vwn_turned()) of such a length: n numbers are set to 0, and stored in their order, by so many threads. */
template <int OF_ROW> FN void vwn_fill_turned(real *rows, int n)
{
    #pragma unroll 1
    for (int i = threadIdx.x % OF_ROW * 4; i < n; i += OF_ROW * 4)
        vwn_at<4>(rows + i) = vwn_all<4>(0.0f);
}
template <int OF_ROW> FN void vwn_store_turned(real *to, const real *rows, int n, int length)
{
    #pragma unroll 1
    for (int first = 0; first < n; first += length)
        #pragma unroll 2
        for (int i = threadIdx.x % OF_ROW * 4; i < length; i += OF_ROW * 4)
            vwn_at<4>(to + first + i) = vwn_at<4>(rows + first + vwn_turned(i));
}
#ifndef VWN_EMU
FN void vwn_prefetch(const void *from) { asm volatile("prefetch.global.L2 [%0];" ::"l"(from)); }
#else
FN void vwn_prefetch(const void *) {} /* no number depends on it */
#endif
/* By a warp: n numbers in memory are on their way to the second-level cache. Nobody waits for them. */
template <class T> FN void vwn_prefetch_row(const T *from, uint32_t n)
{
    enum { LINE = 128 / sizeof(T) };
    #pragma unroll 1
    for (uint32_t i = threadIdx.x % 32 * LINE; i < n; i += 32 * LINE)
        vwn_prefetch(from + i);
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
