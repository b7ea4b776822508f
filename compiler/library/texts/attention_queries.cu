    /* the last queries of a head come first: they see the most keys */
    const auto first_row = [&](vwn_share of) { return (int64_t)((int)((T + ROWS - 1) / ROWS) - 1 - of.tile) * ROWS; };
    const vwn_share mine = vwn_share_of<ROWS>(T, H);
    const int64_t h = mine.head, b = mine.batch, t0 = first_row(mine), g = h / share;
    const int64_t there = vwn_least(ROWS, T - t0), at0 = (b * T + t0) * H + h;
    k += b * kb + g * kh;
    v += b * vb + g * vh;
    int64_t first = window ? vwn_most(0, t0 - window + 1) : 0;
    int64_t end = causal ? vwn_least(S, t0 + there) : S;
    end = window ? vwn_least(end, t0 + there - 1 + window) : end;
#if TEXT_OLDEST
    const int64_t latest = vwn_last_first(start + b * T + t0, there);
    first = vwn_most(first, vwn_first_seen(start + b * T + t0, there));
    int64_t oldest[2 * R];
    #pragma unroll
    for (int r = 0; r < 2 * R; r++)
        oldest[r] = row + 8 * r < there ? start[b * T + t0 + row + 8 * r] : 0;
#endif
    const int from = (int)(first / COLUMNS) * COLUMNS, past = (int)end, keys = (int)S;
    /* what this thread copies of the next tile of keys and of values */
    const elem *key = vwn_tile_at<D, WIDTH, THREADS>(k + from * kt, kt);
    const elem *value = vwn_tile_at<DV, WIDTH, THREADS>(v + from * vt, vt);
    const auto begin = [&](int u0, int stage) {
        elem *const X = passing + stage * PASSING;
        vwn_tile_copy<COLUMNS, D, WIDTH, THREADS>(X, key, kt, keys - u0, (int)d);
        vwn_tile_copy<COLUMNS, DV, WIDTH, THREADS>(X + COLUMNS * PITCH, value, vt, keys - u0, (int)dv);
        key += COLUMNS * kt;
        value += COLUMNS * vt;
        vwn_copies_commit();
    };
