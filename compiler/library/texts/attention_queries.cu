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
#if TEXT_MAPS
    /* Keys and values pass through STAGES places each. A thread of a group of its own copies: a tile has come when its barrier has all bytes
     * of it, and its place may be filled again when all warps that compute have left it. */
    enum { STAGES = TEXT_STAGES, OF_KEYS = COLUMNS * D, OF_VALUES = COLUMNS * DV };
#if TEXT_KEPT
    elem *const keys_at = (elem *)memory;
#else
    elem *const keys_at = Q + ROWS * D;
#endif
    elem *const values_at = keys_at + STAGES * OF_KEYS;
    uint64_t *const queries_come = (uint64_t *)(memory + TEXT_SHARED - TEXT_ASIDE), *const keys_come = queries_come + 1;
    uint64_t *const values_come = keys_come + STAGES, *const keys_left = values_come + STAGES, *const values_left = keys_left + STAGES;
    uint64_t *const turns = values_left + STAGES; /* of a group: the one before has begun its products */
    const int end = past(t0);
    if (threadIdx.x == 0) {
#if !TEXT_KEPT
        vwn_mbarrier_make(queries_come, 1);
#endif
        #pragma unroll
        for (int i = 0; i < STAGES; i++) {
            vwn_mbarrier_make(keys_come + i, 1);
            vwn_mbarrier_make(values_come + i, 1);
            vwn_mbarrier_make(keys_left + i, WARPS);
            vwn_mbarrier_make(values_left + i, WARPS);
        }
        #pragma unroll
        for (int i = 0; i < WARPS / 4; i++)
            vwn_mbarrier_make(turns + i, 4);
        vwn_proxy_fence();
    }
    __syncthreads();
    vwn_turn<STAGES> at = {0, 0}, before = at;
    if (group_base == ROWS) {
        vwn_group_gives_registers<TEXT_FEWER>();
        if (threadIdx.x == 32 * WARPS && from < end) {
#if !TEXT_KEPT
            vwn_map_tile<ROWS, D>(Q, q_map, h, t0, b, queries_come);
#endif
            #pragma unroll 1
            for (int u0 = from; u0 < end; u0 += COLUMNS, at = vwn_next(at)) {
                vwn_mbarrier_wait(keys_left + at.place, at.round ^ 1);
                vwn_map_tile<COLUMNS, D>(keys_at + at.place * OF_KEYS, k_map, g, u0, b, keys_come + at.place);
                vwn_mbarrier_wait(values_left + at.place, at.round ^ 1);
                vwn_map_tile<COLUMNS, DV>(values_at + at.place * OF_VALUES, v_map, g, u0, b, values_come + at.place);
            }
        }
        return;
    }
    vwn_group_takes_registers<TEXT_MORE>();
    const auto leave = [&](uint64_t *place) {
        if (vwn_thread() % 32 == 0)
            vwn_mbarrier_arrive(place);
    };
    /* Groups take turns, so that one multiplies while others make weights: the first one begins. */
    uint64_t *const my_turn = turns + group_base / 64, *const next_turn = turns + (group_base + 64) % ROWS / 64;
    uint32_t turn = group_base == 0;
#else
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
    const auto begin = [&](const elem *k, const elem *v, int u0, int stage) {
        elem *const X = passing + stage * PASSING;
        vwn_tile_copy<COLUMNS, D, WIDTH, THREADS>(X, vwn_tile_at<D, WIDTH, THREADS>(k + u0 * kt, kt), kt, keys - u0, (int)d);
        vwn_tile_copy<COLUMNS, DV, WIDTH, THREADS>(
            X + COLUMNS * PITCH, vwn_tile_at<DV, WIDTH, THREADS>(v + u0 * vt, vt), vt, keys - u0, (int)dv);
        vwn_copies_commit();
    };
    if (more)
        begin(k, v, from, from / COLUMNS % 2);
#endif
