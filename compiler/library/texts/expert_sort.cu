#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* Pairs by expert: order[start[e] .. start[e + 1] - 1] are those whose index is e, from the first to the
 * last; behind the last expert those whose index is none. A block an expert. */
KERNEL(256) TEXT_NAME(
    const integer *__restrict__ index, integer *__restrict__ start, integer *__restrict__ order,
    int64_t pairs, int64_t experts, int64_t rows)
{
    enum { THREADS = 256, WARPS = THREADS / 32 };
    __shared__ int64_t before[WARPS];
    __shared__ int found[2][WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    for (int64_t e = blockIdx.x; e < rows; e += gridDim.x) {
        int64_t less = 0, to = 0;
        for (int64_t i = threadIdx.x; i < pairs; i += THREADS) {
            const integer at = index[i];
            less += (at >= 0 && at < experts ? at : experts) < e;
        }
        less = vwn_warp_sum(less);
        if (lane == 0)
            before[warp] = less;
        __syncthreads();
        for (int w = 0; w < WARPS; w++)
            to += before[w];
        if (threadIdx.x == 0)
            start[e] = to;
        if (threadIdx.x == 0 && e == experts)
            start[e + 1] = pairs;
        int stage = 0;
        for (int64_t i0 = 0; i0 < pairs; i0 += THREADS, stage ^= 1) {
            const int64_t i = i0 + threadIdx.x, at = i < pairs ? index[i] : -1;
            const bool is = i < pairs && (at >= 0 && at < experts ? at : experts) == e;
            const uint32_t bits = __ballot_sync(0xffffffffu, is);
            if (lane == 0)
                found[stage][warp] = __popc(bits);
            __syncthreads(); /* the next turn writes the other stage */
            int64_t place = to + __popc(bits & ((1u << lane) - 1));
            for (int w = 0; w < WARPS; w++) {
                place += w < warp ? found[stage][w] : 0;
                to += found[stage][w];
            }
            if (is)
                order[place] = i;
        }
        __syncthreads();
    }
}
