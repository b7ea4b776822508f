    typedef TEXT_ELEMENT elem;
    enum { ROWS = TEXT_ROWS, COLUMNS = TEXT_COLUMNS, DEPTH = 64, STAGES = TEXT_STAGES, THREADS = TEXT_THREADS };
    /* a warp has M x N of the results: DOWN warps are below each other, and beside these others */
    enum { DOWN = TEXT_DOWN, ACROSS = THREADS / 32 / DOWN, M = ROWS / DOWN, N = COLUMNS / ACROSS };
    enum { X = ROWS * DEPTH, W = COLUMNS * DEPTH, STAGE = X + W };
    /* Eight threads copy 64 numbers of a row, a line. COPIERS, a power of two, copy what has a power of two of rows. */
    enum { COPIERS = THREADS > 256 ? 256 : THREADS, STEP = COPIERS / 8 };
    /* Tiles are copied AHEAD of those that are multiplied, over such whose products are done; products of warpgroups of the tile before
     * need not be. */
#if TEXT_WARPGROUPS
    enum { AHEAD = STAGES - 2 };
    DYN_SMEM_LINES(memory);
#else
    enum { AHEAD = STAGES - 1 };
    DYN_SMEM(memory);
#endif
    elem *const tiles = (elem *)memory;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int m0 = warp / ACROSS * M, n0 = warp % ACROSS * N;
    /* this thread's rows of a result are `row`, row + 8, 16 further .., its columns `column` and the next, 8 further .. */
    const int row = m0 + lane / 4, column = lane % 4 * 2;
#if TEXT_WARPGROUPS
    const int top = warp / 4 * 64; /* where the rows of this thread's group of warps begin */
#endif
    const uint32_t columns = vwn_tiles_of<COLUMNS>(out);
