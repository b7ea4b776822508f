#if TEXT_OLDEST
    const integer *__restrict__ start,
#endif
#if TEXT_DROPPED
    const number *__restrict__ now,
#endif
    int64_t T, int64_t S, int64_t H, int64_t K, int64_t d, int64_t dv, int64_t causal, int64_t window,
    int64_t qb, int64_t qt, int64_t qh, int64_t kb, int64_t kt, int64_t kh,
#if !TEXT_DROPPED
    int64_t vb, int64_t vt, int64_t vh, int64_t seed, int64_t step,
#else
    int64_t vb, int64_t vt, int64_t vh,
#endif
#if TEXT_MAPS
    number32 scale_is, number32 cap_is, number32 rate_is, int64_t rows,
#if !TEXT_KEPT
    const __grid_constant__ vwn_map q_map,
#endif
    const __grid_constant__ vwn_map k_map, const __grid_constant__ vwn_map v_map)
#else
    number32 scale_is, number32 cap_is, number32 rate_is, int64_t rows)
#endif
{
    enum { D = TEXT_D, DV = TEXT_DV, ROWS = TEXT_ROWS, COLUMNS = TEXT_COLUMNS, WARPS = TEXT_WARPS, WIDTH = TEXT_WIDTH };
    enum { THREADS = TEXT_THREADS, CAPPED = TEXT_CAPPED, DROPPED = TEXT_DROPPED };
    /* a warp has 16 R rows of a result, AT_ONCE columns: of each 16 rows PARTS of 8 columns */
    enum { R = ROWS / WARPS / 16, AT_ONCE = TEXT_AT_ONCE, PARTS = AT_ONCE / 8 };
    typedef TEXT_ELEMENT elem;
#if TEXT_DROPPED
    const int64_t seed = now[0].whole, step = now[1].whole, drawn = now[2].whole;
#else
    const int64_t drawn = 0;
#endif
    enum { PITCH = vwn_laid<elem, D>::PITCH, PITCH_V = vwn_laid<elem, DV>::PITCH };
    enum { PASSING = COLUMNS * (PITCH + PITCH_V), HELD = sizeof(elem) == 4 ? 16 * (COLUMNS + 4) : 0 };
    const real scale = scale_is, cap = cap_is, rate = rate_is;
    const real per_cap = CAPPED ? 1.0f / cap : 0.0f, keep = DROPPED ? 1.0f / (1.0f - rate) : 1.0f;
    const real log2_e = 1.44269504f;
    const int wide = (int)(window && window < 0x3fffffff ? window : 0x3fffffff); /* a sequence has fewer */
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    /* this warp's rows begin at `base`; this thread's are `row` and every eighth behind it, its columns `column` and the next */
    const int base = warp % WARPS * 16 * R, row = base + lane / 4, column = lane % 4 * 2;
    const int64_t share = H / K;
#if TEXT_WARPGROUPS
    const int group_base = vwn_from_lane(warp / 4 * 64, 0); /* where the rows of this group of warps begin */
    DYN_SMEM_LINES(memory);
#else
    DYN_SMEM(memory);
#endif
