#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* Pairs by expert: order[start[e] .. start[e + 1] - 1] are those whose index is e, from the first to the
 * last; behind the last expert those whose index is none. Of a table e is a group of rows: an index without its last `low` bits.
 * A block an expert, whose warps each look through a part of the pairs: once to count, so that each knows where it begins, and
 * once to write. */
KERNEL(1024, 1) TEXT_NAME(
    const integer *__restrict__ index, integer *__restrict__ start, integer *__restrict__ order,
    int64_t pairs, int64_t experts, int64_t low, int64_t rows)
{
    enum { THREADS = 1024, WARPS = THREADS / 32 }; /* as many as a warp has threads */
    __shared__ int64_t before[WARPS]; /* pairs of experts before this one, and of this one, by warp */
    __shared__ int64_t own[WARPS];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int64_t part = (pairs + THREADS - 1) / THREADS * 32;
    const int64_t from = vwn_least(warp * part, pairs), to = vwn_least(from + part, pairs);
    for (int64_t e = blockIdx.x; e < rows; e += gridDim.x) {
        int64_t less = 0, equal = 0;
        #pragma unroll 4
        for (int64_t i = from + lane; i < to; i += 32) {
            const uint64_t of = (uint64_t)index[i] >> low;
            const integer at = of < (uint64_t)experts ? (integer)of : experts;
            less += at < e;
            equal += at == e;
        }
        less = vwn_warp_sum(less);
        equal = vwn_warp_sum(equal);
        if (lane == 0)
            before[warp] = less;
        if (lane == 0)
            own[warp] = equal;
        __syncthreads();
        int64_t place = vwn_warp_sum(before[lane]);
        if (threadIdx.x == 0)
            start[e] = place;
        if (threadIdx.x == 0 && e == experts)
            start[e + 1] = pairs;
        place += vwn_warp_sum(lane < warp ? own[lane] : 0);
        #pragma unroll 4
        for (int64_t i0 = from; i0 < to; i0 += 32) {
            const int64_t i = i0 + lane;
            const bool there = i < to;
            const uint64_t of = there ? (uint64_t)index[i] >> low : 0;
            const bool is = there && (of < (uint64_t)experts ? (integer)of : experts) == e;
            const uint32_t bits = __ballot_sync(0xffffffffu, is);
            if (is)
                order[place + __popc(bits & ((1u << lane) - 1))] = i;
            place += __popc(bits);
        }
        __syncthreads();
    }
}
