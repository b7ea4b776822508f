#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* attention: the gradient of q, and the sums of dout out that the gradient of k and v wants.
 * q, dq (B, T, H, d), k (B, S, K, d), v (B, S, K, dv), out, dout (B, T, H, dv), lse, mean (B, T, H).
 * Heads of up to TEXT_D and TEXT_DV, TEXT_KIND. A block: TEXT_THREADS threads, TEXT_ROWS queries,
 * TEXT_COLUMNS keys at a time, TEXT_SHARED bytes of shared memory. */
KERNEL(TEXT_BOUNDS) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ q, const TEXT_ELEMENT *__restrict__ k, const TEXT_ELEMENT *__restrict__ v,
    const TEXT_ELEMENT *__restrict__ out, const real *__restrict__ lse,
    const TEXT_ELEMENT *__restrict__ dout, TEXT_ELEMENT *__restrict__ dq, real *__restrict__ mean,
#include "attention_sizes.cu"
    elem *const Q = (elem *)memory, *const G = Q + ROWS * PITCH;
    elem *const passing = G + ROWS * PITCH_V;
    real *const held = (real *)(passing + 2 * PASSING) + warp * HELD;
#include "attention_queries.cu"
    vwn_tile_copy<ROWS, D, WIDTH, THREADS>(Q, q + b * qb + t0 * qt + h * qh, qt, there, d);
    vwn_tile_copy<ROWS, DV, WIDTH, THREADS>(G, dout + at0 * dv, H * dv, there, dv);
    if (first < end)
        begin(first, 0);
    vwn_copies_commit();
    /* the sum of dout out, and the log-sum-exp, of this thread's rows */
    real total[2], norm[2];
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t at = at0 + (row + 8 * r) * H;
        const bool is = row + 8 * r < there;
        real part = 0;
        for (int c = column; is && c < dv; c += 8) {
            const vwn_two x = vwn_get_pair(out + at * dv + c, c + 1 < dv);
            const vwn_two y = vwn_get_pair(dout + at * dv + c, c + 1 < dv);
            part += x.x * y.x + x.y * y.y;
        }
        total[r] = vwn_row_sum(part);
        norm[r] = is ? lse[at] * log2_e : INFINITE;
        if (is && column == 0)
            mean[at] = total[r];
    }
    /* the number that dropout draws for this thread's first query and key 0 */
    const int64_t draws = ((b * H + h) * T + t0 + row) * S;
    real A[D / 8][4];
    vwn_clear<D>(A);
#include "attention_keys.cu"
        real x[COLUMNS / 8][4], y[COLUMNS / 8][4];
        vwn_clear<COLUMNS>(x);
        vwn_clear<COLUMNS>(y);
        vwn_mul_rows<COLUMNS, D>(x, Q + warp * 16 * PITCH, X);
        vwn_mul_rows<COLUMNS, DV>(y, G + warp * 16 * PITCH_V, V);
        #pragma unroll
        for (int i = 0; i < COLUMNS / 8; i++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const int j = i * 8 + column + e % 2;
                real z = x[i][e] * scale, c = 0, r = 1;
                if (CAPPED) {
                    c = vwn_tanh(z * per_cap);
                    z = cap * c;
                }
                if (DROPPED)
                    r = vwn_uniform(seed, step, draws + e / 2 * 8 * S + u0 + j) < rate ? 0.0f : keep;
                bool hide = j >= left || vwn_hidden(back + e / 2 * 8 - j, causal, wide);
#if TEXT_OLDEST
                hide |= j < old[e / 2];
#endif
                z = vwn_exp2_fast(z * log2_e - norm[e / 2]) * (r * y[i][e] - total[e / 2]);
                z = CAPPED ? z * (1.0f - c * c) : z;
                x[i][e] = hide ? 0.0f : z;
            }
        vwn_mul_held<D, COLUMNS>(A, x, held, X);
        __syncthreads();
    }
    vwn_copies_wait<0>();
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        elem *const to = dq + (at0 + (row + 8 * r) * H) * d;
        #pragma unroll
        for (int i = 0; i < D / 8; i++)
            if (row + 8 * r < there && i * 8 + column < d)
                vwn_put_pair(to + i * 8 + column, A[i][2 * r] * scale, A[i][2 * r + 1] * scale,
                             i * 8 + column + 1 < d);
    }
}
