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
#if TEXT_SPLIT
    /* half of the warps add up dk, the others dv: what these tell the warp that has the same keys */
    vwn_four *const told = (vwn_four *)(totals + 2 * COLUMNS) + warp % WARPS * (R * PARTS * 32) + lane;
    const bool of_k = warp >= WARPS;
#endif
#if TEXT_OLDEST
    integer *const oldest = (integer *)(totals + 2 * COLUMNS + TEXT_SPLIT * WARPS * R * PARTS * 128);
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
        const int64_t at0 = (b * T + t0) * H + h;
        const int n = (int)(T - t0);
        vwn_tile_copy<COLUMNS, D, WIDTH, THREADS>(
            Q, vwn_tile_at<D, WIDTH, THREADS>(q + b * qb + t0 * qt + h * qh, qt), qt, n, (int)d);
        vwn_tile_copy<COLUMNS, DV, WIDTH, THREADS>(
            Q + COLUMNS * PITCH, vwn_tile_at<DV, WIDTH, THREADS>(dout + at0 * dv, H * dv), H * dv, n, (int)dv);
        if (threadIdx.x < COLUMNS) {
            const int i = threadIdx.x, to = stage * COLUMNS + i;
            const int64_t at = i < n ? at0 + i * H : at0;
            vwn_copy_async<4>(norms + to, lse + at, i < n);
            vwn_copy_async<4>(totals + to, mean + at, i < n);
#if TEXT_OLDEST
            vwn_copy_async<8>(oldest + to, start + b * T + t0 + (i < n ? i : 0), i < n);
#endif
        }
        vwn_copies_commit();
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
    vwn_tile_copy<ROWS, D, WIDTH, THREADS>(
        X, vwn_tile_at<D, WIDTH, THREADS>(k + b * kb + u0 * kt + g * kh, kt), kt, (int)there, (int)d);
    vwn_tile_copy<ROWS, DV, WIDTH, THREADS>(
        V, vwn_tile_at<DV, WIDTH, THREADS>(v + b * vb + u0 * vt + g * vh, vt), vt, (int)there, (int)dv);
    vwn_copies_commit();
    if (h < h1)
        begin(h, t0, 0);
    const real per_score = scale * log2_e;
#if !TEXT_SPLIT
    real A[R * D / 8][4], E[R * DV / 8][4];
    vwn_clear<R * D>(A);
    vwn_clear<R * DV>(E);
#else
    real A[R * (D > DV ? D : DV) / 8][4];
    vwn_clear<R * (D > DV ? D : DV)>(A);
#endif
    for (int stage = 0; h < h1; stage ^= 1) {
        const elem *const Q = passing + stage * PASSING, *const G = Q + COLUMNS * PITCH;
        const int which = stage * COLUMNS;
        int64_t h2 = h, t2 = t0 + COLUMNS;
        seek(h2, t2);
        /* this stage has come, and everybody is done with the other one, which may be filled again */
        vwn_copies_wait<0>();
        __syncthreads();
        if (h2 < h1)
            begin(h2, t2, stage ^ 1);
        /* what lies between this warp's first key and the first query */
        const int ahead = (int)(t0 - u0) - base;
        const int64_t draws = ((b * H + h) * T + t0) * S + u0 + row;
        const bool seen = !causal || ahead + COLUMNS > 0;
#if TEXT_OLDEST
        const bool masked = true;
#else
        const bool masked = !vwn_all_seen(ahead - (16 * R - 1), ahead + COLUMNS - 1, causal, wide);
#endif
        const auto drawn = [&](int r, int j) {
            return vwn_uniform(seed, step, draws + j * S + 8 * r) < rate ? 0.0f : keep;
        };
        real x[R * PARTS][4], y[R * PARTS][4];
        /* x: weights; y, times the slope of a soft cap */
        const auto weigh = [&]() {
            vwn_clear<R * COLUMNS>(x);
            vwn_mul_rows<R, COLUMNS, D>(x, X + base * PITCH, Q);
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                    const real norm = norms[which + i % PARTS * 8 + column + e % 2] * log2_e;
                    if (CAPPED) {
                        const real c = vwn_tanh(x[i][e] * scale * per_cap);
                        x[i][e] = vwn_exp2_fast(cap * log2_e * c - norm);
                        y[i][e] *= 1.0f - c * c;
                    } else {
                        x[i][e] = vwn_exp2_fast(x[i][e] * per_score - norm);
                    }
                }
            if (masked) {
                #pragma unroll
                for (int r = 0; r < 2 * R; r++) {
                    const vwn_span seen = vwn_queries_seeing(lane / 4 + 8 * r - ahead, causal, wide);
                    #pragma unroll
                    for (int i = 0; i < PARTS; i++)
                        #pragma unroll
                        for (int e = 0; e < 2; e++) {
                            const int j = i * 8 + column + e;
                            bool is = vwn_in(seen, j);
#if TEXT_OLDEST
                            is &= u0 + row + 8 * r >= oldest[which + j];
#endif
                            real &z = x[r / 2 * PARTS + i][r % 2 * 2 + e];
                            z = is ? z : 0.0f;
                        }
                }
            }
        };
        /* y: gradients of weights, less their mean */
        const auto lessen = [&]() {
            vwn_clear<R * COLUMNS>(y);
            vwn_mul_rows<R, COLUMNS, DV>(y, V + base * PITCH_V, G);
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int j = i % PARTS * 8 + column + e % 2;
                    y[i][e] = (DROPPED ? y[i][e] * drawn(i / PARTS * 2 + e / 2, j) : y[i][e]) - totals[which + j];
                }
        };
        const auto drop = [&]() {
            #pragma unroll
            for (int i = 0; DROPPED && i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++)
                    x[i][e] *= drawn(i / PARTS * 2 + e / 2, i % PARTS * 8 + column + e % 2);
        };
#if !TEXT_SPLIT
        if (seen) {
            lessen();
            weigh();
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++)
                    y[i][e] *= x[i][e];
            drop();
            vwn_mul_held<R, DV, COLUMNS>(E, x, held, G);
            vwn_mul_held<R, D, COLUMNS>(A, y, held, Q);
        }
#else
        if (seen && of_k)
            lessen();
        if (seen && !of_k) {
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                y[i][0] = y[i][1] = y[i][2] = y[i][3] = 1;
            weigh();
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                told[i * 32] = {x[i][0] * y[i][0], x[i][1] * y[i][1], x[i][2] * y[i][2], x[i][3] * y[i][3]};
            drop();
        }
        __syncthreads();
        if (seen && of_k) {
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++) {
                const vwn_four z = told[i * 32];
                y[i][0] *= z.x;
                y[i][1] *= z.y;
                y[i][2] *= z.z;
                y[i][3] *= z.w;
            }
            vwn_mul_held<R, D, COLUMNS>(A, y, held, Q);
        }
        if (seen && !of_k)
            vwn_mul_held<R, DV, COLUMNS>(A, x, held, G);
#endif
        h = h2;
        t0 = t2;
    }
    vwn_copies_wait<0>();
    #pragma unroll
    for (int r = 0; r < 2 * R; r++) {
        const int64_t at = (b * S + u0 + row + 8 * r) * K + g;
        if (row + 8 * r >= there)
            continue;
#if TEXT_SPLIT
        if (of_k) {
#endif
        #pragma unroll
        for (int i = 0; i < D / 8; i++) {
            const real *const z = A[r / 2 * (D / 8) + i] + r % 2 * 2;
            if (i * 8 + column < d)
                vwn_put_pair(dk + at * d + i * 8 + column, z[0] * scale, z[1] * scale, i * 8 + column + 1 < d);
        }
#if TEXT_SPLIT
            continue;
        }
#endif
        #pragma unroll
        for (int i = 0; i < DV / 8; i++) {
#if !TEXT_SPLIT
            const real *const z = E[r / 2 * (DV / 8) + i] + r % 2 * 2;
#else
            const real *const z = A[r / 2 * (DV / 8) + i] + r % 2 * 2;
#endif
            if (i * 8 + column < dv)
                vwn_put_pair(dvalue + at * dv + i * 8 + column, z[0], z[1], i * 8 + column + 1 < dv);
        }
    }
}
