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
#if !TEXT_MAPS
#if TEXT_KEPT
    elem *const passing = (elem *)memory;
#else
    elem *const Q = (elem *)memory, *const G = Q + ROWS * PITCH;
    elem *const passing = G + ROWS * PITCH_V;
#endif
    real *const held = (real *)(passing + 2 * PASSING) + warp * HELD;
#endif
#include "attention_queries.cu"
    const int64_t at0 = (b * T + t0) * H + h;
#if TEXT_KEPT
    uint32_t kept[R * D / 16][4];
    vwn_keep_rows<R, D>(kept, q + b * qb + (t0 + base) * qt + h * qh, qt, (int)there - base, (int)d);
    uint32_t kept_g[R * DV / 16][4];
    vwn_keep_rows<R, DV>(kept_g, dout + (at0 + base * H) * dv, H * dv, (int)there - base, (int)dv);
#else
    vwn_tile_copy<ROWS, D, WIDTH, THREADS>(
        Q, vwn_tile_at<D, WIDTH, THREADS>(q + b * qb + t0 * qt + h * qh, qt), qt, (int)there, (int)d);
    vwn_tile_copy<ROWS, DV, WIDTH, THREADS>(
        G, vwn_tile_at<DV, WIDTH, THREADS>(dout + at0 * dv, H * dv), H * dv, (int)there, (int)dv);
    vwn_copies_commit();
#endif
    /* the sum of dout out, and the log-sum-exp, of this thread's rows */
    real total[2 * R], norm[2 * R];
#if TEXT_KEPT
    uint32_t results[R * DV / 16][4]; /* all are asked for before the first is waited for */
    vwn_keep_rows<R, DV>(results, out + (at0 + base * H) * dv, H * dv, (int)there - base, (int)dv);
#endif
    #pragma unroll
    for (int r = 0; r < 2 * R; r++) {
        const int64_t at = at0 + (row + 8 * r) * H;
        const bool is = row + 8 * r < there;
        real part = 0;
#if TEXT_KEPT
        #pragma unroll
        for (int i = 0; i < DV / 8; i++) {
            const int k = r / 2 * (DV / 16) + i / 2, of = r % 2 + i % 2 * 2;
            const vwn_two x = vwn_get_pair((const elem *)&results[k][of], true), y = vwn_get_pair((const elem *)&kept_g[k][of], true);
            part += x.x * y.x + x.y * y.y;
        }
#else
        for (int c = column; is && c < dv; c += 8) {
            const vwn_two x = vwn_get_pair(out + at * dv + c, c + 1 < dv);
            const vwn_two y = vwn_get_pair(dout + at * dv + c, c + 1 < dv);
            part += x.x * y.x + x.y * y.y;
        }
#endif
        total[r] = vwn_row_sum(part);
        norm[r] = is ? lse[at] * log2_e : INFINITE;
        if (is && column == 0)
            mean[at] = total[r];
    }
    /* the number that dropout draws for this thread's first query and key 0 */
    const int64_t draws = drawn + ((b * H + h) * T + t0 + row) * S;
    const real per_score = scale * log2_e;
    real A[R * D / 8][4];
    vwn_clear<R * D>(A);
    /* gradients of weights are waited for behind the weights, unless a soft cap wants both at once */
    enum { LATER = TEXT_MAPS && !CAPPED };
#if TEXT_MAPS
    uint32_t slope[COLUMNS / 16][4] = {}; /* of scores, which products take while the next tile is waited for */
#endif
#include "attention_keys.cu"
            real x[R * PARTS][4], y[R * PARTS][4];
#if TEXT_MAPS
            const elem *const X = keys_at + at.place * OF_KEYS;
            vwn_mbarrier_wait(my_turn, turn);
            turn ^= 1;
            vwn_mbarrier_wait(keys_come + at.place, at.round);
            vwn_group_mul_held<false, D, COLUMNS, false>(x, kept, X);
            vwn_mbarrier_wait(values_come + at.place, at.round);
            vwn_group_mul_held<false, DV, COLUMNS, false>(y, kept_g, values_at + at.place * OF_VALUES);
            leave(next_turn);
            /* scores, and what keys before have added */
            vwn_group_wait<LATER>();
            vwn_group_registers(slope);
            vwn_group_registers(x);
            if (!LATER)
                vwn_group_registers(y);
            if (u0 > from)
                leave(keys_left + before.place);
#else
            vwn_clear<R * AT_ONCE>(x);
            vwn_clear<R * AT_ONCE>(y);
#if TEXT_KEPT
            vwn_mul_kept<R, AT_ONCE, D>(x, kept, X + j0 * PITCH);
            vwn_mul_kept<R, AT_ONCE, DV>(y, kept_g, V + j0 * PITCH_V);
#else
            vwn_mul_rows<R, AT_ONCE, D>(x, Q + base * PITCH, X + j0 * PITCH);
            vwn_mul_rows<R, AT_ONCE, DV>(y, G + base * PITCH_V, V + j0 * PITCH_V);
#endif
#endif
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int r = i / PARTS * 2 + e / 2, j = i % PARTS * 8 + column + e % 2;
                    if (DROPPED)
                        y[i][e] *= vwn_uniform(seed, step, draws + r * 8 * S + u0 + j0 + j) < rate ? 0.0f : keep;
                    if (!LATER)
                        y[i][e] -= total[r];
                    if (CAPPED) {
                        const real c = vwn_tanh_of_score(x[i][e] * scale * per_cap);
                        x[i][e] = vwn_exp2_fast(cap * log2_e * c - norm[r]);
                        y[i][e] *= 1.0f - c * c;
                    } else {
                        x[i][e] = vwn_exp2_fast(x[i][e] * per_score - norm[r]);
                    }
                }
            if (masked) {
                const int column = vwn_thread() % 4 * 2;
                #pragma unroll
                for (int r = 0; r < 2 * R; r++) {
                    const vwn_span seen = span(r);
                    #pragma unroll
                    for (int i = 0; i < PARTS; i++)
                        #pragma unroll
                        for (int e = 0; e < 2; e++) {
                            real &z = x[r / 2 * PARTS + i][r % 2 * 2 + e];
                            z = vwn_in(seen, i * 8 + column + e) ? z : 0.0f;
                        }
                }
            }
#if TEXT_MAPS
            if (LATER) {
                vwn_group_wait<0>();
                vwn_group_registers(y);
            }
            leave(values_left + at.place);
#endif
            #pragma unroll
            for (int i = 0; i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++)
                    x[i][e] *= LATER ? y[i][e] - total[i / PARTS * 2 + e / 2] : y[i][e];
#if TEXT_MAPS
            vwn_round_held<COLUMNS>(slope, x, elem());
            vwn_group_mul_held<true, COLUMNS, COLUMNS, true>(A, slope, X);
            before = at;
            at = vwn_next(at);
#else
            vwn_mul_held<R, D, AT_ONCE>(A, x, held, X + j0 * PITCH);
#endif
        }
    }
#if TEXT_MAPS
    vwn_group_wait<0>();
    vwn_group_registers(A);
#else
    vwn_copies_wait<0>();
#endif
    const vwn_share of = vwn_share_of<ROWS>(vwn_block(), T, H);
    const int me = vwn_thread(), line = me / 32 % WARPS * 16 * R + me % 32 / 4, c0 = me % 4 * 2;
    const int left = (int)(T - first_row(of)) - line;
    const int64_t begins = (of.batch * T + first_row(of) + line) * H + of.head;
    #pragma unroll
    for (int r = 0; r < 2 * R; r++)
        vwn_put_times<TEXT_MAPS, D>(dq + (begins + 8 * r * H) * d, A, r, scale, c0, (int)d, 8 * r < left);
}
