    typedef TEXT_ELEMENT elem;
    enum { ROWS = TEXT_ROWS, COLUMNS = TEXT_COLUMNS, DEPTH = 64, STAGES = TEXT_STAGES, THREADS = TEXT_THREADS };
    /* a warp has M x N of the results: DOWN warps are below each other, and beside these others */
    enum { DOWN = TEXT_DOWN, ACROSS = THREADS / 32 / DOWN, M = ROWS / DOWN, N = COLUMNS / ACROSS };
    enum { X = ROWS * DEPTH, W = COLUMNS * DEPTH, STAGE = X + W };
#if TEXT_WARPGROUPS
    DYN_SMEM_LINES(memory);
#else
    DYN_SMEM(memory);
#endif
    elem *const tiles = (elem *)memory;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int m0 = warp / ACROSS * M, n0 = warp % ACROSS * N;
    /* this thread's rows of a result are `row`, row + 8, 16 further .., its columns `column` and the next, 8 further .. */
    const int row = m0 + lane / 4, column = lane % 4 * 2;
#if TEXT_WARPGROUPS
    /* The rows of this thread's group of warps begin at `top`. Tiles are copied AHEAD of those that are multiplied, over such whose
     * products are done: those of the tile before need not be. */
    enum { AHEAD = STAGES - 2 };
    const int top = warp / 4 * 64;
#endif
    const int64_t columns = (out + COLUMNS - 1) / COLUMNS;
