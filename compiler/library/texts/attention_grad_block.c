                const int64_t keys = vwn_least(BK, end - u0), all = (keys + 7) / 8 * 8;
                const real *const x = X + (u0 - w0) * DQ, *const y = V + (u0 - w0) * DV;
#include "attention_columns.c"
                vwn_block_mul(all, c1 - c0, DQ, x, DQ, 1, Q + c0, BQ, P + c0, BQ, 0);
                vwn_block_mul(all, c1 - c0, DV, y, DV, 1, D + c0, BQ, G + c0, BQ, 0);
                for (int64_t j = 0; CAPPED && j < all; j++) {
                    #pragma omp simd
                    for (int64_t i = c0; i < c1; i++)
                        P[j * BQ + i] = cap * vwn_tanh(P[j * BQ + i] * per_cap);
                }
                for (int64_t j = 0; DROPPED && j < all; j++) {
                    const int64_t at = n[19] + ((b * H + h) * T + t0) * S + u0 + j;
                    #pragma omp simd
                    for (int64_t i = c0; i < c1; i++)
                        kept[j * BQ + i] = vwn_uniform(n[17], n[18], at + i * S) < rate ? 0.0f : keep;
                }
                for (int64_t i = c0; i < c1; i += VWN_LANES) {
                    const vec_i back = vwn_lane_numbers() + (int32_t)(t0 + i - u0);
                    const vec total = VWN_AT(sum + i), part = VWN_AT(mean + i);
#if TEXT_OLDEST
                    const vec_i oldest = *(const vec_i *)(begin + i) - (int32_t)u0;
#endif
                    for (int32_t j = 0; j < all; j++) {
                        const vec z = VWN_AT(P + j * BQ + i), c = z * per_cap;
                        vec e = vwn_exp_v(z - total), r = vwn_all(1);
                        if (DROPPED)
                            r = VWN_AT(kept + j * BQ + i);
                        vec f = e * (r * VWN_AT(G + j * BQ + i) - part);
                        e = DROPPED ? e * r : e;
                        f = CAPPED ? f * (1.0f - c * c) : f;
                        if (masked) {
#if !TEXT_OLDEST
                            const vec_i hide = vwn_hidden(back - j, causal, wide);
#else
                            const vec_i hide = vwn_hidden(back - j, causal, wide) | (oldest > j);
#endif
                            e = vwn_choose(hide, vwn_all(0), e);
                            f = vwn_choose(hide, vwn_all(0), f);
                        }
                        VWN_AT(P + j * BQ + i) = e;
                        VWN_AT(G + j * BQ + i) = f;
                    }
                }
                if (of_k) {
                    vwn_block_mul(all, DV, c1 - c0, P + c0, BQ, 1, Z + c0 * DV, DV,
                                  E + (u0 - w0) * DV, DV, 1);
                    vwn_block_mul(all, DQ, c1 - c0, G + c0, BQ, 1, Y + c0 * DQ, DQ,
                                  A + (u0 - w0) * DQ, DQ, 1);
                }
                if (of_q)
                    vwn_block_mul(c1 - c0, DQ, keys, G + c0, 1, BQ, x, DQ, R + c0 * DQ, DQ, 1);
