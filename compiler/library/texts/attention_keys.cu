    int stage = 0;
    for (int64_t u0 = first; u0 < end; u0 += COLUMNS, stage ^= 1) {
        const elem *const X = passing + stage * PASSING, *const V = X + COLUMNS * PITCH;
        const int64_t u1 = u0 + COLUMNS;
        if (u1 < end)
            begin(u1, stage ^ 1);
        vwn_copies_commit();
        vwn_copies_wait<1>();
        __syncthreads();
        /* keys that are there, what lies between this thread's first query and the first key */
        const int left = (int)vwn_least(COLUMNS, S - u0), back = (int)(t0 - u0) + row;
#if TEXT_OLDEST
        int old[2];
        for (int i = 0; i < 2; i++)
            old[i] = vwn_within<COLUMNS>(oldest[i] - u0);
#endif
