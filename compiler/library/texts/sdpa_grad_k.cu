#ifndef TEXT_NAME
#include "alone.cu"
#endif
/* attention: the gradients of k and v. q (B, T, H, d), k, dk (B, S, K, d), v, dv (B, S, K, dv),
 * dout (B, T, H, dv), lse, mean (B, T, H). A block adds up all heads of q that read its keys.
 * Heads of up to TEXT_D and TEXT_DV, TEXT_KIND. A block: TEXT_THREADS threads, TEXT_ROWS keys,
 * TEXT_COLUMNS queries at a time, TEXT_SHARED bytes of shared memory. */
KERNEL(TEXT_BOUNDS) TEXT_NAME(
    const TEXT_ELEMENT *__restrict__ q, const TEXT_ELEMENT *__restrict__ k, const TEXT_ELEMENT *__restrict__ v,
    const real *__restrict__ mean, const real *__restrict__ lse,
    const TEXT_ELEMENT *__restrict__ dout, TEXT_ELEMENT *__restrict__ dk, TEXT_ELEMENT *__restrict__ dvalue,
#include "attention_sizes.cu"
    elem *const X = (elem *)memory, *const V = X + ROWS * PITCH;
    elem *const passing = V + ROWS * PITCH_V;
    real *const held = (real *)(passing + 2 * PASSING) + warp * HELD;
    /* of the queries that pass, in two stages: log-sum-exp, sum of dout out, first key */
    real *const norms = (real *)(passing + 2 * PASSING) + THREADS / 32 * HELD;
    real *const totals = norms + 2 * COLUMNS;
#if TEXT_OLDEST
    int *const oldest = (int *)(totals + 2 * COLUMNS);
#endif
    /* the first keys of a head come first: most queries see them */
    const int64_t blocks = (S + ROWS - 1) / ROWS, u0 = blockIdx.x % blocks * ROWS;
    const int64_t g = blockIdx.x / blocks % K, b = blockIdx.x / blocks / K;
    const int64_t there = vwn_least(ROWS, S - u0);
    const int64_t from = (causal ? u0 : window ? vwn_most(0, u0 - window + 1) : 0) / COLUMNS * COLUMNS;
    const int64_t end = window ? vwn_least(T, u0 + there - 1 + window) : T;
    /* queries pass in tiles: those of one head, then those of the next */
    const auto begin = [&](int64_t h, int64_t t0, int stage) {
        elem *const Q = passing + stage * PASSING;
        const int64_t at0 = (b * T + t0) * H + h, n = T - t0;
        vwn_tile_copy<COLUMNS, D, WIDTH, THREADS>(Q, q + b * qb + t0 * qt + h * qh, qt, n, d);
        vwn_tile_copy<COLUMNS, DV, WIDTH, THREADS>(Q + COLUMNS * PITCH, dout + at0 * dv, H * dv, n, dv);
        if (threadIdx.x < COLUMNS) {
            const int i = threadIdx.x, to = stage * COLUMNS + i;
            norms[to] = i < n ? lse[at0 + i * H] * log2_e : INFINITE;
            totals[to] = i < n ? mean[at0 + i * H] : 0.0f;
#if TEXT_OLDEST
            oldest[to] = i < n ? (int)vwn_least(0x7fffffff, start[b * T + t0 + i]) : 0x7fffffff;
#endif
        }
    };
    /* steps to a tile with queries that see one of the keys; h1 is past the last head at the end */
    const int64_t h1 = g * share + share;
    const auto seek = [&](int64_t &h, int64_t &t0) {
        for (;;) {
            if (t0 >= end) {
                t0 = from;
                h++;
            }
            if (h >= h1 || from >= end) {
                h = h1;
                return;
            }
#if TEXT_OLDEST
            if (vwn_first_seen(start + b * T + t0, vwn_least(COLUMNS, T - t0)) >= u0 + there) {
                t0 += COLUMNS;
                continue;
            }
#endif
            return;
        }
    };
    int64_t h = g * share, t0 = from;
    seek(h, t0);
    vwn_tile_copy<ROWS, D, WIDTH, THREADS>(X, k + b * kb + u0 * kt + g * kh, kt, there, d);
    vwn_tile_copy<ROWS, DV, WIDTH, THREADS>(V, v + b * vb + u0 * vt + g * vh, vt, there, dv);
    if (h < h1)
        begin(h, t0, 0);
    vwn_copies_commit();
#if !TEXT_SPLIT
    real A[D / 8][4], E[DV / 8][4];
    vwn_clear<D>(A);
    vwn_clear<DV>(E);
#else
    /* half of the warps add up dk, the others dv */
    const bool of_k = warp >= WARPS;
    real A[(D > DV ? D : DV) / 8][4];
    vwn_clear<(D > DV ? D : DV)>(A);
#endif
    for (int stage = 0; h < h1; stage ^= 1) {
        const elem *const Q = passing + stage * PASSING, *const G = Q + COLUMNS * PITCH;
        int64_t h2 = h, t2 = t0 + COLUMNS;
        seek(h2, t2);
        if (h2 < h1)
            begin(h2, t2, stage ^ 1);
        vwn_copies_commit();
        vwn_copies_wait<1>();
        __syncthreads();
        real x[COLUMNS / 8][4], y[COLUMNS / 8][4];
        vwn_clear<COLUMNS>(x);
        vwn_clear<COLUMNS>(y);
        vwn_mul_rows<COLUMNS, D>(x, X + warp % WARPS * 16 * PITCH, Q);
#if !TEXT_SPLIT
        vwn_mul_rows<COLUMNS, DV>(y, V + warp * 16 * PITCH_V, G);
#else
        if (of_k)
            vwn_mul_rows<COLUMNS, DV>(y, V + warp % WARPS * 16 * PITCH_V, G);
#endif
        const int back = (int)(t0 - u0) - row, which = stage * COLUMNS;
        const int64_t draws = ((b * H + h) * T + t0) * S + u0 + row;
        #pragma unroll
        for (int i = 0; i < COLUMNS / 8; i++)
            #pragma unroll
            for (int e = 0; e < 4; e++) {
                const int j = i * 8 + column + e % 2, below = e / 2 * 8;
                real z = x[i][e] * scale, c = 0, r = 1;
                if (CAPPED) {
                    c = vwn_tanh(z * per_cap);
                    z = cap * c;
                }
                if (DROPPED)
                    r = vwn_uniform(seed, step, draws + j * S + below) < rate ? 0.0f : keep;
                bool hide = row + below >= there || vwn_hidden(back + j - below, causal, wide);
#if TEXT_OLDEST
                hide |= (int)u0 + row + below < oldest[which + j];
#endif
                z = hide ? 0.0f : vwn_exp2_fast(z * log2_e - norms[which + j]);
                const real dz = z * (r * y[i][e] - totals[which + j]) * (CAPPED ? 1.0f - c * c : 1.0f);
#if !TEXT_SPLIT
                x[i][e] = z * r;
                y[i][e] = dz;
#else
                x[i][e] = of_k ? dz : z * r;
#endif
            }
#if !TEXT_SPLIT
        vwn_mul_held<DV, COLUMNS>(E, x, held, G);
        vwn_mul_held<D, COLUMNS>(A, y, held, Q);
#else
        if (of_k)
            vwn_mul_held<D, COLUMNS>(A, x, held, Q);
        else
            vwn_mul_held<DV, COLUMNS>(A, x, held, G);
#endif
        __syncthreads();
        h = h2;
        t0 = t2;
    }
    vwn_copies_wait<0>();
    #pragma unroll
    for (int r = 0; r < 2; r++) {
        const int64_t at = (b * S + u0 + row + 8 * r) * K + g;
        if (row + 8 * r >= there)
            continue;
#if TEXT_SPLIT
        if (of_k) {
#endif
        #pragma unroll
        for (int i = 0; i < D / 8; i++)
            if (i * 8 + column < d)
                vwn_put_pair(dk + at * d + i * 8 + column, A[i][2 * r] * scale, A[i][2 * r + 1] * scale,
                             i * 8 + column + 1 < d);
#if TEXT_SPLIT
            continue;
        }
#endif
        #pragma unroll
        for (int i = 0; i < DV / 8; i++)
            if (i * 8 + column < dv)
#if !TEXT_SPLIT
                vwn_put_pair(dvalue + at * dv + i * 8 + column, E[i][2 * r], E[i][2 * r + 1],
#else
                vwn_put_pair(dvalue + at * dv + i * 8 + column, A[i][2 * r], A[i][2 * r + 1],
#endif
                             i * 8 + column + 1 < dv);
    }
}
