    /* the last queries of a head come first: they see the most keys */
    const auto first_row = [&](vwn_share of) { return ((int)((T + ROWS - 1) / ROWS) - 1 - of.tile) * ROWS; };
    const vwn_share mine = vwn_share_of<ROWS>(vwn_block(), T, H);
    const int t0 = first_row(mine);
    const int64_t h = mine.head, b = mine.batch, g = h / share;
    const int64_t there = vwn_least(ROWS, T - t0);
    k += b * kb + g * kh;
    v += b * vb + g * vh;
    int64_t first = window ? vwn_most(0, t0 - window + 1) : 0;
    /* the first key that no query sees */
    const auto past = [&](int t0) {
        const int behind = (int)vwn_least(T, t0 + ROWS), end = (int)(causal ? vwn_least(S, behind) : S);
        return window ? (int)vwn_least(end, behind - 1 + window) : end;
    };
#if TEXT_OLDEST
    const int latest = (int)vwn_least(0x3fffffff, vwn_last_first(start + b * T + t0, there));
    first = vwn_most(first, vwn_first_seen(start + b * T + t0, there));
    int *const oldest = (int *)(memory + TEXT_SHARED - TEXT_ASIDE) - ROWS;
    if (threadIdx.x < ROWS)
        oldest[threadIdx.x] = threadIdx.x < there ? (int)vwn_least(0x3fffffff, start[b * T + t0 + threadIdx.x]) : 0;
#endif
    const int from = (int)(first / COLUMNS) * COLUMNS, keys = (int)S;
#if !TEXT_MAPS
    bool more = from < past(t0);
    /* Where keys and values and the queries of this block begin lies in shared memory, too: a loop asks there and has registers for
     * other things. */
    struct vwn_begins {
        const elem *k, *v;
        int t0, latest; /* the last of the first keys that queries see */
    } *const start_of = (vwn_begins *)(memory + TEXT_SHARED - TEXT_ASIDE);
    if (threadIdx.x == 0)
#if TEXT_OLDEST
        *start_of = {k, v, t0, latest};
#else
        *start_of = {k, v, t0, 0};
#endif
#if TEXT_WARPGROUPS
    const auto tile_of = [&](int u0) { return passing + (uint32_t)(u0 / COLUMNS + TEXT_STAGES) % TEXT_STAGES * PASSING; };
    const auto begin = [&](const elem *k, const elem *v, int u0, int end) {
        if (u0 < end) {
            vwn_panel_copy<COLUMNS, D, THREADS>(tile_of(u0), k + u0 * kt, kt, keys - u0, (int)d);
            vwn_panel_copy<COLUMNS, DV, THREADS>(tile_of(u0) + COLUMNS * PITCH, v + u0 * vt, vt, keys - u0, (int)dv);
        }
        vwn_copies_commit();
    };
#else
    const auto begin = [&](const elem *k, const elem *v, int u0, int stage) {
        elem *const X = passing + stage * PASSING;
        vwn_tile_copy<COLUMNS, D, WIDTH, THREADS>(X, vwn_tile_at<D, WIDTH, THREADS>(k + u0 * kt, kt), kt, keys - u0, (int)d);
        vwn_tile_copy<COLUMNS, DV, WIDTH, THREADS>(
            X + COLUMNS * PITCH, vwn_tile_at<DV, WIDTH, THREADS>(v + u0 * vt, vt), vt, keys - u0, (int)dv);
        vwn_copies_commit();
    };
#endif
    if (more)
#if TEXT_WARPGROUPS
        begin(k, v, from, past(t0));
#else
        begin(k, v, from, from / COLUMNS % 2);
#endif
#endif
