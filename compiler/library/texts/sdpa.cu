#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* attention: running softmax. q (B, T, H, d), k (B, S, K, d), v (B, S, K, dv), out (B, T, H, dv),
 * lse (B, T, H): the logarithm of the sum of the exponentials of a query's scores.
 * Heads of up to TEXT_D and TEXT_DV, TEXT_KIND. A block: TEXT_THREADS threads, TEXT_ROWS queries,
 * TEXT_COLUMNS keys at a time, TEXT_SHARED bytes of shared memory. */
KERNEL(TEXT_BOUNDS) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ q, const TEXT_ELEMENT *__restrict__ k, const TEXT_ELEMENT *__restrict__ v,
    TEXT_ELEMENT *__restrict__ out, real *__restrict__ lse,
#include "attention_sizes.cu"
    elem *const Q = (elem *)memory, *const passing = Q + ROWS * PITCH;
    real *const held = (real *)(passing + 2 * PASSING) + warp * HELD;
#include "attention_queries.cu"
    vwn_tile_copy<ROWS, D, WIDTH, THREADS>(Q, q + b * qb + t0 * qt + h * qh, qt, there, d);
    if (first < end)
        begin(first, 0);
    vwn_copies_commit();
    /* the number that dropout draws for this thread's first query and key 0 */
    const int64_t draws = ((b * H + h) * T + t0 + row) * S;
    real O[DV / 8][4], top[2] = {-INFINITE, -INFINITE}, sum[2] = {0, 0};
    vwn_clear<DV>(O);
#include "attention_keys.cu"
        real x[COLUMNS / 8][4];
        vwn_clear<COLUMNS>(x);
        vwn_mul_rows<COLUMNS, D>(x, Q + warp * 16 * PITCH, X);
        const bool masked = left < COLUMNS || (causal && u1 - 1 > t0) ||
                            (window && (t0 + ROWS - 1 - u0 >= window || u1 - 1 - t0 >= window));
        #pragma unroll
        for (int i = 0; i < COLUMNS / 8; i++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const int j = i * 8 + column + e % 2;
                real y = x[i][e] * scale;
                y = CAPPED ? cap * vwn_tanh(y * per_cap) : y;
                bool hide = masked && (j >= left || vwn_hidden(back + e / 2 * 8 - j, causal, wide));
#if TEXT_OLDEST
                hide |= j < old[e / 2];
#endif
                x[i][e] = hide ? -INFINITE : y;
            }
        #pragma unroll
        for (int r = 0; r < 2; r++) {
            real most = top[r], more = 0;
            #pragma unroll
            for (int i = 0; i < COLUMNS / 8; i++)
                for (int e = 2 * r; e < 2 * r + 2; e++)
                    most = x[i][e] > most ? x[i][e] : most;
            most = vwn_row_max(most);
            const real base = most == -INFINITE ? 0.0f : most * log2_e;
            const real shrink = vwn_exp2_fast(top[r] * log2_e - base);
            #pragma unroll
            for (int i = 0; i < COLUMNS / 8; i++)
                for (int e = 2 * r; e < 2 * r + 2; e++)
                    more += x[i][e] = vwn_exp2_fast(x[i][e] * log2_e - base);
            top[r] = most;
            sum[r] = sum[r] * shrink + more;
            #pragma unroll
            for (int i = 0; i < DV / 8; i++)
                for (int e = 2 * r; e < 2 * r + 2; e++)
                    O[i][e] *= shrink;
        }
        #pragma unroll
        for (int i = 0; DROPPED && i < COLUMNS / 8; i++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const int64_t at = draws + e / 2 * 8 * S + u0 + i * 8 + column + e % 2;
                x[i][e] *= vwn_uniform(seed, step, at) < rate ? 0.0f : keep;
            }
        vwn_mul_held<DV, COLUMNS>(O, x, held, V);
        __syncthreads();
    }
    vwn_copies_wait<0>();
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const real total = vwn_row_sum(sum[r]);
        const real one = total > 0 ? 1.0f / total : total == 0 ? 0.0f : NOT_A_NUMBER;
        const int64_t at = at0 + (row + 8 * r) * H;
        if (row + 8 * r >= there)
            continue;
        #pragma unroll
        for (int i = 0; i < DV / 8; i++)
            if (i * 8 + column < dv)
                vwn_put_pair(out + at * dv + i * 8 + column, O[i][2 * r] * one, O[i][2 * r + 1] * one,
                             i * 8 + column + 1 < dv);
        if (column == 0)
            lse[at] = top[r] + vwn_log(total);
    }
}
