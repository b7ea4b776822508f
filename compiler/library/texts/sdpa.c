#ifndef TEXT_NAME
#include "alone.c"
#endif
/* attention: blocks of queries over blocks of keys, running softmax */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    enum { DQ = TEXT_D, DV = TEXT_DV, BQ = TEXT_QUERIES, BK = TEXT_KEYS };
    enum { CAPPED = TEXT_CAPPED, DROPPED = TEXT_DROPPED };
#include "attention_sizes.c"
    const real *const q = p[0], *const k = p[1], *const v = p[2];
    real *const out = p[3], *const lse = p[4];
#if TEXT_OLDEST
    const integer *const start = p[5]; /* the first key of each query */
#endif
    const int64_t blocks = (T + BQ - 1) / BQ, share = H / K;
    for (int64_t row = lo; row < hi; row++) {
        const int64_t b = row / blocks / H, h = row / blocks % H, t0 = row % blocks * BQ;
        const int64_t g = h / share, rows = vwn_least(BQ, T - t0);
        const int64_t first = window ? vwn_most(0, t0 - window + 1) : 0;
        int64_t end = causal ? vwn_least(S, t0 + rows) : S;
        end = window ? vwn_least(end, t0 + rows - 1 + window) : end;
        real Q[DQ * BQ] ALIGNED, X[BK * DQ] ALIGNED, V[BK * DV] ALIGNED, P[BK * BQ] ALIGNED;
        real O[BQ * DV] ALIGNED, top[BQ] ALIGNED, sum[BQ] ALIGNED, shrink[BQ] ALIGNED;
        vwn_pack_transposed(Q, BQ, DQ, q + b * qb + t0 * qt + h * qh, qt, rows, d);
        vwn_zero(O, BQ * DV);
        vwn_zero(sum, BQ);
        for (int64_t i = 0; i < BQ; i++)
            top[i] = -INFINITE;
        /* what the next row reads, and this block's share of the next keys and values */
        const int64_t then = (row + 1) / blocks, t1 = (row + 1) % blocks * BQ;
        const int64_t b1 = (b * K + g + 1) / K, g1 = (g + 1) % K;
        vwn_prefetch(q + then / H * qb + t1 * qt + then % H * qh, qt, BQ, d);
        if ((h + 1) % share == 0) {
            vwn_prefetch(k + b1 * kb + t0 * kt + g1 * kh, kt, vwn_least(BQ, S - t0), d);
            vwn_prefetch(v + b1 * vb + t0 * vt + g1 * vh, vt, vwn_least(BQ, S - t0), dv);
        }
#if TEXT_OLDEST
        int32_t begin[BQ] ALIGNED;
        int64_t near = S;
        for (int64_t i = 0; i < BQ; i++) {
            const int64_t u = i < rows ? start[b * T + t0 + i] : S;
            begin[i] = (int32_t)u;
            near = vwn_least(near, u);
        }
        for (int64_t u0 = vwn_most(first, near) / BK * BK; u0 < end; u0 += BK) {
#else
        for (int64_t u0 = first / BK * BK; u0 < end; u0 += BK) {
#endif
            const int64_t keys = vwn_least(BK, end - u0), all = (keys + 7) / 8 * 8;
#include "attention_columns.c"
            vwn_pack(X, DQ, DQ, k + b * kb + u0 * kt + g * kh, kt, keys, d, scale);
            vwn_pack(V, DV, DV, v + b * vb + u0 * vt + g * vh, vt, keys, dv, 1);
            vwn_zero(X + keys * DQ, (all - keys) * DQ);
            vwn_block_mul(all, c1 - c0, DQ, X, DQ, 1, Q + c0, BQ, P + c0, BQ, 0);
            for (int64_t j = 0; CAPPED && j < keys; j++) {
                #pragma omp simd
                for (int64_t i = c0; i < c1; i++)
                    P[j * BQ + i] = cap * vwn_tanh(P[j * BQ + i] * per_cap);
            }
            for (int64_t i = c0; i < c1; i += VWN_LANES) {
                real *const x = P + i;
                const vec_i back = vwn_lane_numbers() + (int32_t)(t0 + i - u0);
                const vec none = vwn_all(-INFINITE), old = VWN_AT(top + i);
#if TEXT_OLDEST
                const vec_i oldest = *(const vec_i *)(begin + i) - (int32_t)u0;
                for (int32_t j = 0; j < keys; j++)
                    VWN_AT(x + j * BQ) = vwn_choose(oldest > j, none, VWN_AT(x + j * BQ));
#endif
                for (int32_t j = 0; masked && j < keys; j++)
                    VWN_AT(x + j * BQ) = vwn_choose(vwn_hidden(back - j, causal, wide), none,
                                                    VWN_AT(x + j * BQ));
                for (int64_t j = keys; j < all; j++)
                    VWN_AT(x + j * BQ) = none;
                vec m0 = old, m1 = old, m2 = old, m3 = old;
                for (int64_t j = 0; j < all; j += 4) {
                    m0 = vwn_larger(VWN_AT(x + j * BQ), m0);
                    m1 = vwn_larger(VWN_AT(x + j * BQ + BQ), m1);
                    m2 = vwn_larger(VWN_AT(x + j * BQ + 2 * BQ), m2);
                    m3 = vwn_larger(VWN_AT(x + j * BQ + 3 * BQ), m3);
                }
                const vec most = vwn_larger(vwn_larger(m0, m1), vwn_larger(m2, m3));
                const vec base = vwn_choose(most == none, vwn_all(0), most);
                const vec less = vwn_exp_v(old - base);
                vec total = VWN_AT(sum + i) * less;
                for (int64_t j = 0; j < keys; j++) {
                    const vec e = vwn_exp_v(VWN_AT(x + j * BQ) - base);
                    VWN_AT(x + j * BQ) = e;
                    total += e;
                }
                VWN_AT(top + i) = most;
                VWN_AT(sum + i) = total;
                VWN_AT(shrink + i) = less;
            }
            for (int64_t j = 0; DROPPED && j < keys; j++) {
                const int64_t at = n[19] + ((b * H + h) * T + t0) * S + u0 + j;
                #pragma omp simd
                for (int64_t i = c0; i < c1; i++)
                    P[j * BQ + i] *= vwn_uniform(n[17], n[18], at + i * S) < rate ? 0.0f : keep;
            }
            for (int64_t i = c0; i < c1; i++)
                for (int64_t j = 0; j < DV; j += VWN_LANES)
                    VWN_AT(O + i * DV + j) *= shrink[i];
            vwn_block_mul(c1 - c0, DV, keys, P + c0, 1, BQ, V, DV, O + c0 * DV, DV, 1);
        }
        #pragma omp simd
        for (int64_t i = 0; i < BQ; i++) {
            shrink[i] = sum[i] > 0 ? 1.0f / sum[i] : sum[i] == 0 ? 0.0f : NOT_A_NUMBER;
            top[i] += vwn_log(sum[i]);
        }
        for (int64_t i = 0; i < rows; i++) {
            const int64_t at = (b * T + t0 + i) * H + h;
            vwn_pack(out + at * dv, dv, dv, O + i * DV, DV, 1, dv, shrink[i]);
            lse[at] = top[i];
        }
    }
}
