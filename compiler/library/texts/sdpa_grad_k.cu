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
    /* Both factors of the products with queries in registers would be too many: of v a half, or more, lies in shared memory */
    enum { PART_V = DV / (WIDTH && !TEXT_OLDEST ? 2 : 4) / 16 * 16, KEPT_V = D + DV <= 96 ? DV : PART_V < 16 ? 16 : PART_V, ROWS_V = !TEXT_SPLIT && KEPT_V < DV ? ROWS : 0 };
#if TEXT_KEPT
    elem *const V = (elem *)memory, *const passing = V + ROWS_V * PITCH_V;
#else
    elem *const X = (elem *)memory, *const V = X + ROWS * PITCH;
    elem *const passing = V + ROWS * PITCH_V;
#endif
#if !TEXT_WARPGROUPS
    real *const held = (real *)(passing + 2 * PASSING) + warp * HELD;
#endif
    /* of the queries that pass, in stages as they are: log-sum-exp, sum of dout out, first key */
    real *const norms = (real *)(passing + TEXT_STAGES * PASSING) + THREADS / 32 * HELD;
    real *const totals = norms + TEXT_STAGES * COLUMNS;
#if TEXT_SPLIT
    /* half of the warps add up dk, the others dv: what these tell the warp that has the same keys */
    vwn_four *const told = (vwn_four *)(totals + TEXT_STAGES * COLUMNS) + warp % WARPS * (R * COLUMNS / 8 * 32) + lane;
    const bool of_k = warp >= WARPS;
#endif
#if TEXT_OLDEST
    integer *const oldest = (integer *)(totals + TEXT_STAGES * COLUMNS + TEXT_SPLIT * ROWS * COLUMNS);
#endif
    /* the first keys of a head come first: most queries see them */
    const vwn_share mine = vwn_share_of<ROWS>(vwn_block(), S, K);
    const int u0 = mine.tile * ROWS;
    const int64_t g = mine.head, b = mine.batch;
    const int there = (int)vwn_least(ROWS, S - u0), heads = (int)share;
    const int from = (int)((causal ? u0 : window ? vwn_most(0, u0 - window + 1) : 0) / COLUMNS) * COLUMNS;
    const int end = (int)(window ? vwn_least(T, u0 + there - 1 + window) : T);
    /* Queries pass in tiles: those of one head, then those of the next. The one that is copied is of head `h` of those that read these keys,
     * of query `t` on. */
    int h = 0, t = from;
    /* Where these heads begin lies in shared memory: the loop asks there and has registers for other things. */
    struct vwn_heads {
        const elem *q, *dout;
        const real *lse, *mean;
    } *const start_of = (vwn_heads *)(memory + TEXT_SHARED - sizeof(vwn_heads));
    if (threadIdx.x == 0) {
        const int64_t at = b * T * H + g * share;
        *start_of = {q + b * qb + g * share * qh, dout + at * dv, lse + at, mean + at};
    }
    __syncthreads();
    const auto begin = [&](int stage) {
        elem *const Q = passing + stage * PASSING;
        const int n = (int)T - t, of_query = (int)H * (int)dv;
#if TEXT_WARPGROUPS
        vwn_panel_copy<COLUMNS, D, THREADS>(Q, start_of->q + t * qt + h * qh, qt, n, (int)d);
        vwn_panel_copy<COLUMNS, DV, THREADS>(
            Q + COLUMNS * PITCH, start_of->dout + (int64_t)t * of_query + h * dv, of_query, n, (int)dv);
#else
        vwn_tile_copy<COLUMNS, D, WIDTH, THREADS>(
            Q, vwn_tile_at<D, WIDTH, THREADS>(start_of->q + t * qt + h * qh, qt), qt, n, (int)d);
        vwn_tile_copy<COLUMNS, DV, WIDTH, THREADS>(
            Q + COLUMNS * PITCH,
            vwn_tile_at<DV, WIDTH, THREADS>(start_of->dout + (int64_t)t * of_query + h * dv, of_query), of_query, n, (int)dv);
#endif
        const int me = vwn_thread(), of = me % COLUMNS;
        if (me < 2 * COLUMNS)
            vwn_copy_async<4>(norms + (me - of) * TEXT_STAGES + stage * COLUMNS + of,
                              (me < COLUMNS ? start_of->lse : start_of->mean) + (t + of) * H + h, of < n);
#if TEXT_OLDEST
        if (me < COLUMNS)
            vwn_copy_async<8>(oldest + stage * COLUMNS + of, start + b * T + t + of, of < n);
#endif
        vwn_copies_commit();
    };
    /* on to a tile with queries that see one of the keys, `by` queries further or more; behind the last one h is `heads` */
    const auto seek = [&](int by) {
        t += by;
        while (h < heads) {
#if TEXT_OLDEST
            if (t < end && vwn_first_seen(start + b * T + t, vwn_least(COLUMNS, T - t)) >= u0 + there) {
                t += COLUMNS;
                continue;
            }
#endif
            if (t < end)
                return;
            t = from;
            h++;
        }
    };
#if TEXT_KEPT
    /* the rows that are a factor of this warp's products with queries */
#if !TEXT_SPLIT
    uint32_t kept[R * D / 16][4], kept_v[R * KEPT_V / 16][4];
    vwn_keep_rows<R, D>(kept, k + b * kb + (u0 + base) * kt + g * kh, kt, there - base, (int)d);
    vwn_keep_rows<R, KEPT_V>(kept_v, v + b * vb + (u0 + base) * vt + g * vh, vt, there - base, (int)dv);
#else
    uint32_t kept[R * (D > DV ? D : DV) / 16][4];
    if (of_k)
        vwn_keep_rows<R, DV>(kept, v + b * vb + (u0 + base) * vt + g * vh, vt, there - base, (int)dv);
    else
        vwn_keep_rows<R, D>(kept, k + b * kb + (u0 + base) * kt + g * kh, kt, there - base, (int)d);
#endif
#endif
#if TEXT_WARPGROUPS
    vwn_panel_copy<ROWS, D, THREADS>(X, k + b * kb + u0 * kt + g * kh, kt, there, (int)d);
    vwn_panel_copy<ROWS, DV, THREADS>(V, v + b * vb + u0 * vt + g * vh, vt, there, (int)dv);
#else
#if !TEXT_KEPT
    vwn_tile_copy<ROWS, D, WIDTH, THREADS>(
        X, vwn_tile_at<D, WIDTH, THREADS>(k + b * kb + u0 * kt + g * kh, kt), kt, there, (int)d);
#endif
    if (!TEXT_KEPT || ROWS_V)
        vwn_tile_copy<ROWS, DV, WIDTH, THREADS>(
            V, vwn_tile_at<DV, WIDTH, THREADS>(v + b * vb + u0 * vt + g * vh, vt), vt, there, (int)dv);
#endif
    vwn_copies_commit();
    seek(0);
    if (h < heads)
        begin(0);
    const real per_score = scale * log2_e;
#if !TEXT_SPLIT
    real A[R * D / 8][4], E[R * DV / 8][4];
    vwn_clear<R * D>(A);
    vwn_clear<R * DV>(E);
#else
    real A[R * (D > DV ? D : DV) / 8][4];
    vwn_clear<R * (D > DV ? D : DV)>(A);
#endif
    const auto arrive = [&]() {
        vwn_copies_wait<0>();
#if TEXT_WARPGROUPS
        vwn_proxy_fence();
#endif
        __syncthreads();
    };
#if TEXT_SPLIT
    real x[R * PARTS][4];
    arrive();
#endif
#if TEXT_WARPGROUPS
    uint32_t slope[COLUMNS / 16][4] = {}; /* of scores, which products take while the next tile is waited for */
#endif
    for (int stage = 0; h < heads; stage = (stage + 1) % TEXT_STAGES) {
        const elem *const Q = passing + stage * PASSING, *const G = Q + COLUMNS * PITCH;
        const int head = h, t0 = t;
        seek(COLUMNS);
        const int64_t draws = drawn + ((b * H + g * share + head) * T + t0) * S + u0 + row;
        /* what lies between this warp's first key and query j0 of the tile, and what is seen there */
        const auto ahead = [&](int j0) { return t0 + j0 - u0 - base; };
        const auto drawn = [&](int r, int j) {
            return vwn_uniform(seed, step, draws + j * S + 8 * r) < rate ? 0.0f : keep;
        };
        /* x, scores, become weights; y gets the slope of a soft cap as a factor */
        const auto weigh = [&](real (*x)[4], real (*y)[4], int j0) {
            const int which = stage * COLUMNS + j0;
#if TEXT_OLDEST
            const bool masked = true;
#else
            const bool masked = !vwn_all_seen(ahead(j0) - (16 * R - 1), ahead(j0) + AT_ONCE - 1, causal, wide);
#endif
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                    const real norm = norms[which + i % PARTS * 8 + column + e % 2] * log2_e;
                    if (CAPPED) {
                        const real c = vwn_tanh_of_score(x[i][e] * scale * per_cap);
                        x[i][e] = vwn_exp2_fast(cap * log2_e * c - norm);
                        y[i][e] *= 1.0f - c * c;
                    } else {
                        x[i][e] = vwn_exp2_fast(x[i][e] * per_score - norm);
                    }
                }
            if (masked) {
                const int line = vwn_thread() % 32 / 4, column = vwn_thread() % 4 * 2;
                #pragma unroll
                for (int r = 0; r < 2 * R; r++) {
                    const vwn_span seen = vwn_queries_seeing(line + 8 * r - ahead(j0), causal, wide);
                    #pragma unroll
                    for (int i = 0; i < PARTS; i++)
                        #pragma unroll
                        for (int e = 0; e < 2; e++) {
                            const int j = i * 8 + column + e;
                            bool is = vwn_in(seen, j);
#if TEXT_OLDEST
                            is &= u0 + base + line + 8 * r >= (int)oldest[which + j];
#endif
                            real &z = x[r / 2 * PARTS + i][r % 2 * 2 + e];
                            z = is ? z : 0.0f;
                        }
                }
            }
        };
        /* y: gradients of weights, less their mean */
        const auto lessen = [&](real (*y)[4], int j0) {
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int j = j0 + i % PARTS * 8 + column + e % 2;
                    y[i][e] = (DROPPED ? y[i][e] * drawn(i / PARTS * 2 + e / 2, j) : y[i][e]) - totals[stage * COLUMNS + j];
                }
        };
#if TEXT_WARPGROUPS
        /* this stage has come; nobody multiplies the one before the last any more, and that one may be filled again */
        arrive();
        real x[PARTS][4], y[PARTS][4];
        vwn_group_mul<false, D, ROWS, COLUMNS, false, false>(x, X, group_base, Q, 0);
        vwn_group_mul<false, DV, ROWS, COLUMNS, false, false>(y, V, group_base, G, 0);
        if (h < heads)
            begin((stage + 1) % TEXT_STAGES);
        /* gradients of weights are waited for behind the weights, unless a soft cap wants both at once */
        vwn_group_wait<!CAPPED>();
        vwn_group_registers(slope);
        vwn_group_registers(x);
        if (CAPPED) {
            vwn_group_registers(y);
            lessen(y, 0);
        }
        weigh(x, y, 0);
        uint32_t weight[COLUMNS / 16][4];
        vwn_round_held<COLUMNS>(weight, x, elem());
        vwn_group_mul_held<true, COLUMNS, COLUMNS, true>(E, weight, G);
        if (!CAPPED) {
            vwn_group_wait<1>();
            vwn_group_registers(y);
            lessen(y, 0);
        }
        #pragma unroll
        for (int i = 0; i < PARTS; i++)
            #pragma unroll
            for (int e = 0; e < 4; e++)
                y[i][e] *= x[i][e];
        vwn_round_held<COLUMNS>(slope, y, elem());
        vwn_group_mul_held<true, COLUMNS, COLUMNS, true>(A, slope, Q);
        vwn_group_wait<1>();
        vwn_group_registers(weight);
#else
        const auto sees = [&](int j0) { return !causal || ahead(j0) + AT_ONCE > 0; };
        const auto drop = [&](real (*x)[4], int j0) {
            #pragma unroll
            for (int i = 0; DROPPED && i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++)
                    x[i][e] *= drawn(i / PARTS * 2 + e / 2, j0 + i % PARTS * 8 + column + e % 2);
        };
#if !TEXT_SPLIT
        /* this stage has come, and everybody is done with the other one, which may be filled again */
        arrive();
        if (h < heads)
            begin(stage ^ 1);
        #pragma unroll
        for (int j0 = 0; j0 < COLUMNS; j0 += AT_ONCE) {
            if (!sees(j0))
                continue;
            real x[R * PARTS][4], y[R * PARTS][4];
            vwn_clear<R * AT_ONCE>(x);
            vwn_clear<R * AT_ONCE>(y);
            const elem *const q0 = Q + j0 * PITCH, *const g0 = G + j0 * PITCH_V;
#if TEXT_KEPT
            vwn_mul_kept<R, AT_ONCE, DV, KEPT_V>(y, kept_v, g0);
            if (ROWS_V)
                vwn_mul_rows<R, AT_ONCE, DV, KEPT_V>(y, V + base * PITCH_V, g0);
            vwn_mul_kept<R, AT_ONCE, D>(x, kept, q0);
#else
            vwn_mul_rows<R, AT_ONCE, DV>(y, V + base * PITCH_V, g0);
            vwn_mul_rows<R, AT_ONCE, D>(x, X + base * PITCH, q0);
#endif
            lessen(y, j0);
            weigh(x, y, j0);
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++)
                    y[i][e] *= x[i][e];
            drop(x, j0);
            vwn_mul_held<R, D, AT_ONCE>(A, y, held, q0);
            vwn_mul_held<R, DV, AT_ONCE>(E, x, held, g0);
        }
#else
        /* For AT_ONCE queries from j0 on: x, weights, which are told to the other half, or gradients of weights; then what is added.
         * Products of one size stand here once for both halves, which differ in what is multiplied. */
        const auto first = [&](int j0) {
            if (!sees(j0))
                return;
            const elem *const q0 = Q + j0 * PITCH, *const g0 = G + j0 * PITCH_V;
            vwn_clear<R * AT_ONCE>(x);
#if TEXT_KEPT
            if (D == DV || !of_k)
                vwn_mul_kept<R, AT_ONCE, D>(x, kept, of_k ? g0 : q0);
            else
                vwn_mul_kept<R, AT_ONCE, DV>(x, kept, g0);
#else
            if (D == DV || !of_k)
                vwn_mul_rows<R, AT_ONCE, D>(x, (of_k ? V : X) + base * PITCH, of_k ? g0 : q0);
            else
                vwn_mul_rows<R, AT_ONCE, DV>(x, V + base * PITCH_V, g0);
#endif
            if (of_k) {
                lessen(x, j0);
            } else {
                real y[R * PARTS][4];
                #pragma unroll
                for (int i = 0; i < R * PARTS; i++)
                    y[i][0] = y[i][1] = y[i][2] = y[i][3] = 1;
                weigh(x, y, j0);
                #pragma unroll
                for (int i = 0; i < R * PARTS; i++)
                    told[(j0 / AT_ONCE * R * PARTS + i) * 32] = {x[i][0] * y[i][0], x[i][1] * y[i][1], x[i][2] * y[i][2], x[i][3] * y[i][3]};
                drop(x, j0);
            }
        };
        const auto second = [&](int j0) {
            if (!sees(j0))
                return;
            #pragma unroll
            for (int i = 0; of_k && i < R * PARTS; i++) {
                const vwn_four z = told[(j0 / AT_ONCE * R * PARTS + i) * 32];
                x[i][0] *= z.x;
                x[i][1] *= z.y;
                x[i][2] *= z.z;
                x[i][3] *= z.w;
            }
            if (D == DV || of_k)
                vwn_mul_held<R, D, AT_ONCE>(A, x, held, (of_k ? Q : G) + j0 * PITCH);
            else
                vwn_mul_held<R, DV, AT_ONCE>(A, x, held, G + j0 * PITCH_V);
        };
        first(0);
        /* what is told has come; everybody is done with the other stage, which may be filled again */
        __syncthreads();
        if (h < heads)
            begin(stage ^ 1);
        second(0);
        if (COLUMNS > AT_ONCE)
            first(AT_ONCE);
        arrive();
        if (COLUMNS > AT_ONCE)
            second(AT_ONCE);
#endif
#endif
    }
#if TEXT_WARPGROUPS
    vwn_group_wait<0>();
    vwn_group_registers(A);
    vwn_group_registers(E);
#endif
    vwn_copies_wait<0>();
    const vwn_share of = vwn_share_of<ROWS>(vwn_block(), S, K);
    const int me = vwn_thread(), line = me / 32 % WARPS * 16 * R + me % 32 / 4, c0 = me % 4 * 2;
    const int left = (int)(S - (int64_t)of.tile * ROWS) - line;
    const int64_t begins = (of.batch * S + (int64_t)of.tile * ROWS + line) * K + of.head;
    #pragma unroll
    for (int r = 0; r < 2 * R; r++) {
        const int64_t at = begins + 8 * r * K;
        const bool is = 8 * r < left;
#if TEXT_SPLIT
        if (of_k)
            vwn_put_times<TEXT_WARPGROUPS, D>(dk + at * d, A, r, scale, c0, (int)d, is);
        else
            vwn_put_times<TEXT_WARPGROUPS, DV>(dvalue + at * dv, A, r, 1, c0, (int)dv, is);
#else
        vwn_put_times<TEXT_WARPGROUPS, D>(dk + at * d, A, r, scale, c0, (int)d, is);
        vwn_put_times<TEXT_WARPGROUPS, DV>(dvalue + at * dv, E, r, 1, c0, (int)dv, is);
#endif
    }
}
