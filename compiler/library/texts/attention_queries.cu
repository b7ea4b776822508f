    /* the last queries of a head come first: they see the most keys */
    const int64_t blocks = (T + ROWS - 1) / ROWS, t0 = (blocks - 1 - blockIdx.x % blocks) * ROWS;
    const int64_t h = blockIdx.x / blocks % H, b = blockIdx.x / blocks / H, g = h / share;
    const int64_t there = vwn_least(ROWS, T - t0), at0 = (b * T + t0) * H + h;
    k += b * kb + g * kh;
    v += b * vb + g * vh;
    int64_t first = window ? vwn_most(0, t0 - window + 1) : 0;
    int64_t end = causal ? vwn_least(S, t0 + there) : S;
    end = window ? vwn_least(end, t0 + there - 1 + window) : end;
#if TEXT_OLDEST
    first = vwn_most(first, vwn_first_seen(start + b * T + t0, there));
    int64_t oldest[2];
    for (int i = 0; i < 2; i++)
        oldest[i] = row + 8 * i < there ? start[b * T + t0 + row + 8 * i] : 0;
#endif
    first = first / COLUMNS * COLUMNS;
    const auto begin = [&](int64_t u0, int stage) {
        elem *const X = passing + stage * PASSING;
        vwn_tile_copy<COLUMNS, D, WIDTH, THREADS>(X, k + u0 * kt, kt, S - u0, d);
        vwn_tile_copy<COLUMNS, DV, WIDTH, THREADS>(X + COLUMNS * PITCH, v + u0 * vt, vt, S - u0, dv);
    };
