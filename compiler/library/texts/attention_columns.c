            /* columns: the queries that see one of these keys, to whole groups of 32 */
            int64_t c0 = causal ? vwn_most(0, u0 - t0) : 0, c1 = BQ;
            if (window) {
                c0 = vwn_most(c0, u0 - t0 - window + 1);
                c1 = vwn_least(c1, (u0 + keys - 1 - t0 + window + 31) / 32 * 32);
            }
            c0 = c0 / 32 * 32;
            const int64_t after = u0 + all - 1 - t0 - c0, before = t0 + c1 - 1 - u0;
#if !TEXT_OLDEST
            const int masked = (causal && after > 0) ||
                               (window && (before >= window || after >= window));
#else
            const int masked = 1;
            (void)after, (void)before;
#endif
