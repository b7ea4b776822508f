#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* attention: a query at a time from a position on, running softmax; a warp a query of a head.
 * Heads of up to TEXT_D and TEXT_DV, TEXT_ELEMENT. */
KERNEL(128) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ q,
    const TEXT_ELEMENT *__restrict__ k,
    const TEXT_ELEMENT *__restrict__ v,
    const integer *__restrict__ start, TEXT_ELEMENT *__restrict__ out, real *__restrict__ lse,
    int64_t T, int64_t S, int64_t H, int64_t K, int64_t d, int64_t dv, int64_t causal, int64_t window,
    int64_t qb, int64_t qt, int64_t qh, int64_t kb, int64_t kt, int64_t kh,
    int64_t vb, int64_t vt, int64_t vh, int64_t seed, int64_t step,
    number32 scale_is, number32 cap_is, number32 rate_is, int64_t rows)
{
    enum { PARTS = TEXT_PARTS, CAPPED = TEXT_CAPPED };
    typedef TEXT_ELEMENT elem;
    const real scale = scale_is, cap = cap_is, per_cap = CAPPED ? 1.0f / cap : 0.0f;
    const int lane = threadIdx.x % 32;
    for (int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32; row < rows; row += (int64_t)gridDim.x * 4) {
        const int64_t b = row / H / T, t = row / H % T, h = row % H, g = h / (H / K);
        const int64_t here = start[b] + t, first = window ? vwn_most(0, here - window + 1) : 0;
        int64_t end = causal ? vwn_least(S, here + 1) : S;
        end = window ? vwn_least(end, here + window) : end;
        const elem *const x = q + b * qb + t * qt + h * qh;
        const elem *const key = k + b * kb + g * kh, *const value = v + b * vb + g * vh;
        real O[PARTS], top = -INFINITE, sum = 0;
        #pragma unroll
        for (int i = 0; i < PARTS; i++)
            O[i] = 0;
        for (int64_t u0 = first; u0 < end; u0 += 32) { /* a key for each thread */
            const int64_t u = u0 + lane;
            real y = 0;
            for (int64_t j = u < end ? 0 : d; j < d; j++)
                y += vwn_number(x[j]) * vwn_number(key[u * kt + j]);
            y *= scale;
            y = CAPPED ? cap * vwn_tanh(y * per_cap) : y;
            y = u < end ? y : -INFINITE;
            const real highest = vwn_warp_max(y), most = highest > top ? highest : top;
            const real base = most == -INFINITE ? 0.0f : most, shrink = vwn_exp(top - base);
            const real p = vwn_exp(y - base);
            sum = sum * shrink + vwn_warp_sum(p);
            top = most;
            #pragma unroll
            for (int i = 0; i < PARTS; i++)
                O[i] *= shrink;
            for (int l = 0; l < 32 && u0 + l < end; l++) {
                const real weight = vwn_from_lane(p, l);
                #pragma unroll
                for (int i = 0; i < PARTS; i++)
                    if (i * 32 + lane < dv)
                        O[i] += weight * vwn_number(value[(u0 + l) * vt + i * 32 + lane]);
            }
        }
        const real one = sum > 0 ? 1.0f / sum : sum == 0 ? 0.0f : NOT_A_NUMBER;
        #pragma unroll
        for (int i = 0; i < PARTS; i++)
            if (i * 32 + lane < dv)
                vwn_put_number(out + row * dv + i * 32 + lane, O[i] * one);
        if (lane == 0)
            lse[row] = top + vwn_log(sum);
    }
}
