#ifndef TEXT_NAME
#include "alone.c"
#endif
/* attention: gradients, blocks of queries over parts of the keys */
KERNEL TEXT_NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
{
    enum { DQ = TEXT_D, DV = TEXT_DV, BQ = TEXT_QUERIES, BK = TEXT_KEYS, PART = TEXT_PART, SLICE = TEXT_SLICE, RANGE = TEXT_RANGE };
    enum { CAPPED = TEXT_CAPPED, DROPPED = TEXT_DROPPED };
#include "attention_sizes.c"
    const real *const q = p[0], *const k = p[1], *const v = p[2];
    const real *const out = p[3], *const lse = p[4], *const dout = p[5];
    real *const dq = p[6], *const dk = p[7], *const dvalue = p[8];
#if TEXT_OLDEST
    const integer *const start = p[9];
#endif
    const int of_q = n[20] & 1, of_k = n[20] >> 1 & 1;
    const int64_t part = of_q ? PART : SLICE, share = H / K;
    const int64_t parts = (S + part - 1) / part, ranges = (T + RANGE - 1) / RANGE;
    for (int64_t row = lo; row < hi; row++) {
        /* heads h0 to h1 of the queries from .. to, and the keys s0 to s1 of head g */
        const int64_t head = of_k ? of_q ? row : row / parts : row / ranges / share;
        const int64_t b = head / K, g = head % K;
        const int64_t h0 = of_k ? g * share : row / ranges % H, h1 = of_k ? h0 + share : h0 + 1;
        const int64_t from = of_k ? 0 : row % ranges * RANGE;
        const int64_t to = of_k ? T : vwn_least(T, from + RANGE);
        const int64_t s0 = of_q ? 0 : row % parts * SLICE;
        const int64_t s1 = of_q ? S : vwn_least(S, s0 + SLICE);
        for (int64_t w0 = s0; w0 < s1; w0 += part) {
        const int64_t w1 = vwn_least(s1, w0 + part);
        real X[PART * DQ] ALIGNED, V[PART * DV] ALIGNED;
        real A[PART * DQ] ALIGNED, E[PART * DV] ALIGNED;
        vwn_pack(X, DQ, DQ, k + b * kb + w0 * kt + g * kh, kt, w1 - w0, d, scale);
        vwn_pack(V, DV, DV, v + b * vb + w0 * vt + g * vh, vt, w1 - w0, dv, 1);
        vwn_zero(X + (w1 - w0) * DQ, (w0 + part - w1) * DQ);
        vwn_zero(V + (w1 - w0) * DV, (w0 + part - w1) * DV);
        vwn_zero(A, part * DQ);
        vwn_zero(E, part * DV);
        for (int64_t h = h0; h < h1; h++)
        for (int64_t t0 = from; t0 < to; t0 += BQ) {
            const int64_t rows = vwn_least(BQ, T - t0), at0 = (b * T + t0) * H + h;
            const int64_t first = window ? vwn_least(S - 1, vwn_most(0, t0 - window + 1)) : 0;
            int64_t end = causal ? vwn_least(w1, t0 + rows) : w1;
            end = window ? vwn_least(end, t0 + rows - 1 + window) : end;
            /* dq is a sum over the parts of the keys: this is the first one that counts */
            const int begins = w0 <= first && first < w1;
            if (end <= vwn_most(first, w0) && !(of_q && begins))
                continue;
            real Q[DQ * BQ] ALIGNED, D[DV * BQ] ALIGNED, P[BK * BQ] ALIGNED;
            real G[BK * BQ] ALIGNED, R[BQ * DQ] ALIGNED, kept[DROPPED ? BK * BQ : 1] ALIGNED;
            real Y[BQ * DQ] ALIGNED, Z[BQ * DV] ALIGNED, mean[BQ] ALIGNED, sum[BQ] ALIGNED;
            vwn_pack_transposed(Q, BQ, DQ, q + b * qb + t0 * qt + h * qh, qt, rows, d);
            vwn_pack_transposed(D, BQ, DV, dout + at0 * dv, H * dv, rows, dv);
            vwn_pack(Y, DQ, DQ, q + b * qb + t0 * qt + h * qh, qt, rows, d, scale);
            vwn_pack(Z, DV, DV, dout + at0 * dv, H * dv, rows, dv, 1);
            vwn_zero(Y + rows * DQ, (BQ - rows) * DQ);
            vwn_zero(Z + rows * DV, (BQ - rows) * DV);
#if TEXT_OLDEST
            int32_t begin[BQ] ALIGNED;
            for (int64_t i = 0; i < BQ; i++)
                begin[i] = i < rows ? (int32_t)start[b * T + t0 + i] : 0;
#endif
            if (of_q && !begins)
                vwn_pack(R, DQ, DQ, dq + at0 * d, H * d, rows, d, 1);
            else
                vwn_zero(R, BQ * DQ);
            for (int64_t i = 0; i < BQ; i++) {
                real m = 0;
                #pragma omp simd reduction(+: m)
                for (int64_t j = 0; j < (i < rows ? dv : 0); j++)
                    m += Z[i * DV + j] * out[(at0 + i * H) * dv + j];
                mean[i] = m;
                sum[i] = i < rows ? lse[at0 + i * H] : INFINITE;
            }
            /* what the next block of queries reads, and a share of the next keys and values */
            const int64_t last = t0 + BQ >= T, t1 = last ? 0 : t0 + BQ;
            const int64_t b1 = (b * H + h + last) / H, k1 = (b * K + g + 1) / K;
            const int64_t hq = (h + last) % H, hk = (g + 1) % K, at1 = (b1 * T + t1) * H + hq;
            vwn_prefetch(q + b1 * qb + t1 * qt + hq * qh, qt, BQ, d);
            vwn_prefetch(dout + at1 * dv, H * dv, BQ, dv);
            vwn_prefetch(out + at1 * dv, H * dv, BQ, dv);
            vwn_prefetch(lse + at1, H, BQ, 1);
            if (of_q && (h + 1) % share == 0) {
                vwn_prefetch(k + k1 * kb + t0 * kt + hk * kh, kt, vwn_least(BQ, S - t0), d);
                vwn_prefetch(v + k1 * vb + t0 * vt + hk * vh, vt, vwn_least(BQ, S - t0), dv);
            }
            for (int64_t u0 = vwn_most(w0, first / BK * BK); u0 < end; u0 += BK) {
#include "attention_grad_block.c"
            }
            if (of_q)
                vwn_pack(dq + at0 * d, d, H * d, R, DQ, rows, d, 1);
        }
        if (of_k) {
            const int64_t at = (b * S + w0) * K + g;
            vwn_pack(dk + at * d, d, K * d, A, DQ, w1 - w0, d, 1);
            vwn_pack(dvalue + at * dv, dv, K * dv, E, DV, w1 - w0, dv, 1);
        }
        }
    }
}
