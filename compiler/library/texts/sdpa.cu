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
#if TEXT_MAPS
    elem *const Q = (elem *)memory;
#else
#if TEXT_KEPT
    elem *const passing = (elem *)memory;
#else
    elem *const Q = (elem *)memory, *const passing = Q + ROWS * PITCH;
#endif
    real *const held = (real *)(passing + 2 * PASSING) + warp * HELD;
#endif
#include "attention_queries.cu"
#if !TEXT_MAPS
#if TEXT_KEPT
    uint32_t kept[R * D / 16][4];
    vwn_keep_rows<R, D>(kept, q + b * qb + (t0 + base) * qt + h * qh, qt, (int)there - base, (int)d);
#else
    vwn_tile_copy<ROWS, D, WIDTH, THREADS>(
        Q, vwn_tile_at<D, WIDTH, THREADS>(q + b * qb + t0 * qt + h * qh, qt), qt, (int)there, (int)d);
    vwn_copies_commit();
#endif
#endif
    /* the number that dropout draws for this thread's first query and key 0 */
    const int64_t draws = drawn + ((b * H + h) * T + t0 + row) * S;
    /* A power of 2 is taken of score * per_score less that of the greatest one. A score is a product of rows, turned where the scale is
     * negative; a soft cap has everything in it. */
    const real per_score = CAPPED ? 1.0f : fmaxf(scale < 0 ? -scale * log2_e : scale * log2_e, 1e-30f);
    const bool turned = !CAPPED && scale < 0;
    /* `top` may be less than the greatest score by LATE powers of 2, which costs no bit: then sums need not shrink */
    enum { LATE = 8 };
    real O[R * DV / 8][4], top[2 * R], sum[2 * R];
    vwn_clear<R * DV>(O);
    #pragma unroll
    for (int r = 0; r < 2 * R; r++) {
        top[r] = -INFINITE;
        sum[r] = 0;
    }
#if TEXT_MAPS
    /* Weights of a tile are multiplied with its values while those of the next one are made. */
    uint32_t weight[COLUMNS / 16][4];
    if (from < end)
        vwn_mbarrier_wait(queries_come, 0);
#endif
#include "attention_keys.cu"
            real x[R * PARTS][4];
#if TEXT_MAPS
            vwn_mbarrier_wait(my_turn, turn);
            turn ^= 1;
            vwn_mbarrier_wait(keys_come + at.place, at.round);
            vwn_group_mul<false, D, ROWS, COLUMNS, false, false>(x, Q, group_base, keys_at + at.place * OF_KEYS, 0);
            if (u0 > from) {
                vwn_mbarrier_wait(values_come + before.place, before.round);
                vwn_group_mul_held<true, COLUMNS, COLUMNS, true>(O, weight, values_at + before.place * OF_VALUES);
                leave(next_turn);
                vwn_group_wait<1>();
            } else {
                leave(next_turn);
                vwn_group_wait<0>();
            }
            vwn_group_registers(x);
            leave(keys_left + at.place);
#else
            vwn_clear<R * AT_ONCE>(x);
#if TEXT_KEPT
            vwn_mul_kept<R, AT_ONCE, D>(x, kept, X + j0 * PITCH);
#else
            vwn_mul_rows<R, AT_ONCE, D>(x, Q + base * PITCH, X + j0 * PITCH);
#endif
#endif
            #pragma unroll
            for (int i = 0; CAPPED && i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++)
                    x[i][e] = cap * log2_e * vwn_tanh_of_score(x[i][e] * scale * per_cap);
            if (turned) {
                #pragma unroll
                for (int i = 0; i < R * PARTS; i++)
                    #pragma unroll
                    for (int e = 0; e < 4; e++)
                        x[i][e] = -x[i][e];
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
                            real &y = x[r / 2 * PARTS + i][r % 2 * 2 + e];
                            y = vwn_in(seen, i * 8 + column + e) ? y : -INFINITE;
                        }
                }
            }
            real most[2 * R];
            bool grows = false;
            #pragma unroll
            for (int r = 0; r < 2 * R; r++) {
                most[r] = top[r];
                #pragma unroll
                for (int i = r / 2 * PARTS; i < (r / 2 + 1) * PARTS; i++)
                    most[r] = fmaxf(fmaxf(most[r], x[i][r % 2 * 2]), x[i][r % 2 * 2 + 1]);
                grows |= !((most[r] - top[r]) * per_score <= LATE);
            }
            if (__any_sync(0xffffffffu, grows)) {
#if TEXT_MAPS
                vwn_group_wait<0>();
                vwn_group_registers(O);
#endif
                #pragma unroll
                for (int r = 0; r < 2 * R; r++) {
                    most[r] = vwn_row_max(most[r]);
                    const real shrink = most[r] == -INFINITE ? 1.0f : vwn_exp2_fast((top[r] - most[r]) * per_score);
                    top[r] = most[r];
                    sum[r] *= shrink;
                    #pragma unroll
                    for (int i = r / 2 * (DV / 8); i < (r / 2 + 1) * (DV / 8); i++) {
                        O[i][r % 2 * 2] *= shrink;
                        O[i][r % 2 * 2 + 1] *= shrink;
                    }
                }
            }
            #pragma unroll
            for (int r = 0; r < 2 * R; r++) {
                const real zero = top[r] == -INFINITE ? 0.0f : top[r] * per_score;
                #pragma unroll
                for (int i = r / 2 * PARTS; i < (r / 2 + 1) * PARTS; i++)
                    #pragma unroll
                    for (int e = r % 2 * 2; e < r % 2 * 2 + 2; e++)
                        sum[r] += x[i][e] = vwn_exp2_fast(x[i][e] * per_score - zero);
            }
            #pragma unroll
            for (int i = 0; DROPPED && i < R * PARTS; i++)
                #pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int64_t at = draws + (i / PARTS * 2 + e / 2) * 8 * S + u0 + j0 + i % PARTS * 8 + column + e % 2;
                    x[i][e] *= vwn_uniform(seed, step, at) < rate ? 0.0f : keep;
                }
#if TEXT_MAPS
            vwn_group_wait<0>();
            vwn_group_registers(O);
            vwn_group_registers(weight);
            if (u0 > from)
                leave(values_left + before.place);
            vwn_round_held<COLUMNS>(weight, x, elem());
            before = at;
            at = vwn_next(at);
#else
            vwn_mul_held<R, DV, AT_ONCE>(O, x, held, V + j0 * PITCH_V);
#endif
        }
    }
#if TEXT_MAPS
    if (from < end) {
        vwn_mbarrier_wait(values_come + before.place, before.round);
        vwn_group_mul_held<true, COLUMNS, COLUMNS, true>(O, weight, values_at + before.place * OF_VALUES);
        vwn_group_wait<0>();
        vwn_group_registers(O);
    }
#else
    vwn_copies_wait<0>();
#endif
    const vwn_share of = vwn_share_of<ROWS>(vwn_block(), T, H);
    const int me = vwn_thread(), line = me / 32 % WARPS * 16 * R + me % 32 / 4, c0 = me % 4 * 2;
    const int left = (int)(T - first_row(of)) - line;
    const int64_t begins = (of.batch * T + first_row(of) + line) * H + of.head;
    #pragma unroll
    for (int r = 0; r < 2 * R; r++) {
        const real total = vwn_row_sum(sum[r]);
        const real one = total > 0 ? 1.0f / total : total == 0 ? 0.0f : NOT_A_NUMBER;
        const int64_t at = begins + 8 * r * H;
        const bool is = 8 * r < left;
        vwn_put_times<TEXT_MAPS, DV>(out + at * dv, O, r, one, c0, (int)dv, is);
        if (is && c0 == 0)
            lse[at] = top[r] * (per_score / log2_e) + vwn_log(total);
    }
}
