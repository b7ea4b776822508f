#ifndef TEXT_NAME
#include "alone.c"
#endif
/* attention: a query at a time from a position on, running softmax */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    enum { DQ = TEXT_D, DV = TEXT_DV, BQ = TEXT_QUERIES, BK = TEXT_KEYS };
    enum { CAPPED = TEXT_CAPPED, DROPPED = TEXT_DROPPED };
#include "attention_sizes.c"
    const real *const q = p[0], *const k = p[1], *const v = p[2];
    const integer *const at = p[3];
    real *const out = p[4], *const lse = p[5];
    (void)rate, (void)keep, (void)wide;
    for (int64_t row = lo; row < hi; row++) {
        const int64_t b = row / H / T, t = row / H % T, h = row % H, g = h / (H / K);
        const int64_t here = at[b] + t, first = window ? vwn_most(0, here - window + 1) : 0;
        int64_t end = causal ? vwn_least(S, here + 1) : S;
        end = window ? vwn_least(end, here + window) : end;
        real Q[DQ] ALIGNED, O[DV] ALIGNED, P[BK] ALIGNED, top = -INFINITE, sum = 0;
        for (int64_t j = 0; j < DQ; j++)
            Q[j] = j < d ? q[b * qb + t * qt + h * qh + j] * scale : 0;
        for (int64_t j = 0; j < DV; j++)
            O[j] = 0;
        for (int64_t u0 = first; u0 < end; u0 += BK) {
            const int64_t keys = vwn_least(BK, end - u0);
            real most = top;
            for (int64_t u = 0; u < keys; u++) {
                const real *const x = k + b * kb + (u0 + u) * kt + g * kh;
                real y = 0, part[VWN_LANES] ALIGNED;
                vec wide_y = {0};
                int64_t j = 0;
                for (; j + VWN_LANES <= d; j += VWN_LANES)
                    wide_y += *(const vec_u *)(x + j) * *(const vec *)(Q + j);
                for (; j < d; j++)
                    y += Q[j] * x[j];
                *(vec *)part = wide_y;
                for (int half = VWN_LANES / 2; half; half /= 2)
                    for (int l = 0; l < half; l++)
                        part[l] += part[l + half];
                y += part[0];
                y = CAPPED ? cap * vwn_tanh(y * per_cap) : y;
                P[u] = y;
                most = y > most ? y : most;
            }
            const real base = most == -INFINITE ? 0.0f : most, shrink = vwn_exp(top - base);
            real more = 0;
            for (int64_t u = keys; u < BK; u++)
                P[u] = -INFINITE;
            #pragma omp simd reduction(+: more)
            for (int64_t u = 0; u < BK; u++)
                more += P[u] = vwn_exp(P[u] - base);
            top = most;
            sum = sum * shrink + more;
            const real *const x = v + b * vb + u0 * vt + g * vh;
            int64_t j = 0;
            for (; j + VWN_LANES <= dv; j += VWN_LANES) {
                vec y = *(vec *)(O + j) * shrink;
                for (int64_t u = 0; u < keys; u++)
                    y += P[u] * *(const vec_u *)(x + u * vt + j);
                *(vec *)(O + j) = y;
            }
            for (; j < dv; j++) {
                O[j] *= shrink;
                for (int64_t u = 0; u < keys; u++)
                    O[j] += P[u] * x[u * vt + j];
            }
        }
        const real one = sum > 0 ? 1.0f / sum : sum == 0 ? 0.0f : NOT_A_NUMBER;
        for (int64_t j = 0; j < dv; j++)
            out[row * dv + j] = O[j] * one;
        lse[row] = top + vwn_log(sum);
    }
}
