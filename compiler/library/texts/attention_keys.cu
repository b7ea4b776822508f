#if TEXT_MAPS
    for (int u0 = from; u0 < end; u0 += COLUMNS) {
#else
    for (int u0 = from; more; u0 += COLUMNS) {
        const int stage = (uint32_t)u0 / COLUMNS % 2;
        const elem *const X = passing + stage * PASSING, *const V = X + COLUMNS * PITCH;
        /* this stage has come, and everybody is done with the other one, which may be filled again */
        vwn_copies_wait<0>();
        __syncthreads();
        const int t0 = start_of->t0;
        more = u0 + COLUMNS < past(t0);
        if (more)
            begin(start_of->k, start_of->v, u0 + COLUMNS, stage ^ 1);
#endif
        #pragma unroll
        for (int j0 = 0; j0 < COLUMNS; j0 += AT_ONCE) {
            /* keys that are there; what lies between this warp's first query and the first key */
            const int left = keys - u0 - j0, ahead = t0 - u0 + base - j0;
#if !TEXT_MAPS
            if (causal && ahead <= -16 * R)
                continue;
#endif
            bool masked = left < AT_ONCE || !vwn_all_seen(ahead - (AT_ONCE - 1), ahead + 16 * R - 1, causal, wide);
#if TEXT_OLDEST
#if TEXT_MAPS
            masked |= latest > u0 + j0;
#else
            masked |= start_of->latest > u0 + j0;
#endif
#endif
            /* the keys that the thread's r-th row sees */
            const auto span = [&](int r) {
                const int line = vwn_thread() % 32 / 4 + 8 * r;
#if TEXT_OLDEST
                const int old = vwn_within<AT_ONCE>(oldest[base + line] - u0 - j0);
#else
                const int old = 0;
#endif
                return vwn_both_of(vwn_keys_seen(ahead + line, causal, wide), {old, left});
            };
