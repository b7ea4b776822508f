#if TEXT_MAPS
    for (int u0 = from; u0 < end; u0 += COLUMNS) {
#else
#if TEXT_WARPGROUPS
    /* Groups take turns: while one makes weights of scores the products of the other one are computed, which is half a tile behind. They meet
     * once a tile, each where it wants the next one to have come; then nobody multiplies the oldest any more, and its place is filled again. */
    const bool behind = group_base > 0, any = more;
    const auto arrive = [&](int u0) {
        vwn_copies_wait<0>();
        vwn_proxy_fence();
        vwn_groups_meet();
        begin(start_of->k, start_of->v, u0 + COLUMNS, past(start_of->t0));
    };
    if (behind && any)
        arrive(from);
#endif
    for (int u0 = from; more; u0 += COLUMNS) {
#if TEXT_WARPGROUPS
        const elem *const X = tile_of(u0);
        if (!behind)
            arrive(u0);
        const int t0 = start_of->t0;
        more = u0 + COLUMNS < past(t0);
#else
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
#endif
        #pragma unroll
        for (int j0 = 0; j0 < COLUMNS; j0 += AT_ONCE) {
            /* keys that are there; what lies between this warp's first query and the first key */
            const int left = keys - u0 - j0, ahead = t0 - u0 + base - j0;
#if !TEXT_WARPGROUPS
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
