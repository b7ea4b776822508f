/* map_threads.c - how the threads of a device share the rows of a scheduled kernel.
 *
 * In:  a Kernel whose statements are for one thread.     Out: the same for the threads of a row: they
 *      share the rounds of its innermost loops, or its warps take a round each of the loop around; what
 *      stands outside is computed by all of them and stored by one; totals and barriers stand where
 *      threads need what others have.
 * The one idea: all decisions are functions of the kernel and its sizes, never of a device, so
 * that texts, results and sums over rows are the same on all of them.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

typedef struct Mapping {
    const Kernel *from;
    Kernel *k;
    int depth, row_depth;
    bool in_mapped;         /* the walk is inside a loop whose rounds threads share */
    IVar whole;             /* that loop, when a thread does a round with all loops in it; else 0 */
    bool warps;             /* the walk is inside a loop whose rounds warps share */
    VEC(KStmt) loops;       /* the loops that are open */
    uint8_t *nest;          /* by thing of a row (barriers.c): how the open loops of the row touch it */
    VEC(Ex) waiting;        /* accumulators that wait for the end of a loop */
    VEC(int) waiting_depth; /* how many loops were open where each of them was declared */
    VEC(int) sums;          /* arrays of sums that wait for the end of their loop */
    bool *own;              /* by array: every element is touched by one thread alone */
    const KMappingChoice *how;
    uint8_t *touched; /* by thing: how threads may have touched it since the last barrier */
    const uint8_t
        *before;        /* by thing: how the row before has touched it behind its last barrier; NULL: it is not known */
    uint8_t *left;      /* by thing: the same of this row, when it has been walked */
    uint32_t exchanges; /* exchanges between warps in a row, outside loops */
    bool taken;         /* totals of an exchange have been taken since the last barrier */
    bool flip;          /* which of two sets of slots the next exchange uses */
    uint32_t exchanged; /* totals of the largest exchange */
    uint8_t *first;     /* by variable: the warp that its loops begin with, and 1; 0: none has been chosen */
    uint8_t warp;       /* the warp that the next such variable gets */
} Mapping;

static int64_t pieces(int64_t n, int64_t each) { return (n + each - 1) / each; }

/* ---- which threads ---- */

static int64_t longest_loop(const Kernel *k)
{
    int64_t most = 0;
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP && (s->simd || kernel_puts_along(k, i)) && ix_info(k->ix, s->var)->hi + 1 > most)
            most = ix_info(k->ix, s->var)->hi + 1;
    }
    return most;
}

/* Has a block of twice as many threads something to do for all of them? */
static bool is_long(const Kernel *k) { return longest_loop(k) >= 8 * k->target->tuned->block_threads; }

/* Are all of its sweeps, but for those of a few elements, ones of pieces? */
static bool has_pieces(const Kernel *k)
{
    bool some = false;
    for (size_t i = 0; i < k->stmt.n && !k->product.n; i++)
        if (k->stmt.v[i].kind == KS_LOOP) {
            some = some || k->stmt.v[i].simd;
            if (!kernel_has_pieces(k, i))
                return false;
            i = kernel_loop_end(k, i);
        }
    return some;
}

/* By how many bytes a block has too little room for these partial sums of its partition. It would have too few threads if it took all
 * that there is for rows that are not long. */
static int64_t too_many_sums(const Kernel *k, const bool *shared)
{
    int64_t room = k->device.shared - KERNEL_SLOTS_ROOM;
    room = is_long(k) || room < k->target->tuned->large_arrays ? room : k->target->tuned->large_arrays;
    return kernel_sums_bytes(k, shared) + kernel_array_bytes(k) - room;
}

static bool can_hold_sums(const Kernel *k)
{
    bool real = k->part != 0;
    for (size_t b = 0; b < k->buffer.n; b++)
        real = real && (k->buffer.v[b].part < 0 || k->buffer.v[b].dtype == DT_REAL);
    return real && !k->product.n && !k->flat;
}

/* Partial sums are so many bytes too many. The result is the buffer that is left in memory: the smallest one without which the others
 * have room, or the largest one. */
static size_t left_in_memory(const Kernel *k, const bool *shared, int64_t bytes)
{
    size_t best = SIZE_MAX;
    for (size_t b = 0; b < k->buffer.n; b++) {
        int64_t of = kernel_sum_bytes(&k->buffer.v[b]),
                most = best == SIZE_MAX ? 0 : kernel_sum_bytes(&k->buffer.v[best]);
        if (shared[b] && (of > most ? most < bytes : of >= bytes))
            best = b;
    }
    return best;
}

/* Which partial sums a block has in shared memory: those for which there is room, where adding each row to sums in memory would take
 * long. */
static bool *shared_sums(const Kernel *k)
{
    const Tuned *tuned = k->target->tuned;
    bool *shared = NEW_ARRAY(k->arena, bool, k->buffer.n + 1);
    for (size_t b = 0; b < k->buffer.n; b++)
        shared[b] = k->buffer.v[b].part >= 0;
    for (int64_t over; can_hold_sums(k) && kernel_sums_bytes(k, shared) && (over = too_many_sums(k, shared)) > 0;)
        shared[left_in_memory(k, shared, over)] = false;
    if (!can_hold_sums(k) || kernel_sums_bytes(k, shared) < tuned->shared_sums_least)
        memset(shared, 0, k->buffer.n * sizeof *shared);
    return shared;
}

static bool has_loops(const Kernel *k)
{
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].kind == KS_LOOP)
            return true;
    return false;
}

/* How many statements every warp of a row repeats, outside its loops, and how many its warps share, in them. */
typedef struct RowWork {
    int64_t alike, shared;
} RowWork;
static RowWork work_of_row(const Kernel *k)
{
    RowWork w = {0};
    int64_t rounds[NEST_MAX + 3] = {1};
    int depth = 0, loops = 0;
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (kernel_opens(s)) {
            int64_t n = s->kind == KS_LOOP ? ix_info(k->ix, s->var)->hi + 1 : 1;
            rounds[depth + 1] = rounds[depth] * n;
            depth++;
            loops += loops || s->kind == KS_LOOP;
        } else if (s->kind == KS_END) {
            depth--;
            loops -= loops > 0;
        } else if (loops) {
            w.shared += (rounds[depth] + WARP_THREADS - 1) / WARP_THREADS;
        } else {
            w.alike++;
        }
    }
    return w;
}

/* Does a row take fewer instructions when half as many warps repeat what is outside its loops, and are there as many threads
 * of other rows then? */
static bool repeats_much(const Kernel *k)
{
    const Tuned *tuned = k->target->tuned;
    RowWork w = work_of_row(k);
    return tuned->repeats_much * (tuned->block_threads / WARP_THREADS) * w.alike >= w.shared;
}

/* Is every statement of a row one of a thread alone: nothing is added up, kept for others or stored over what they load? */
static bool is_of_elements(const Kernel *k)
{
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].read && k->buffer.v[b].written)
            return false;
    for (size_t i = 0; i < k->stmt.n; i++)
        switch (k->stmt.v[i].kind) {
        case KS_VAR:
        case KS_LET:
        case KS_ROWS:
        case KS_LOOP:
        case KS_END:
        case KS_STORE: break;
        default: return false;
        }
    return true;
}

/* Threads of a group for its innermost loops: as few as take the longest of them at one time. */
static uint32_t lanes_of(const Kernel *k)
{
    int64_t longest = longest_loop(k), each = longest % 4 ? 1 : 4;
    uint32_t lanes = WARP_THREADS;
    while (lanes > 1 && lanes / 2 * each >= longest)
        lanes /= 2;
    return lanes;
}

/* The longest enclosing loop of the nest at `loop`. SIZE_MAX: no loop of it encloses another one. */
static size_t longest_around(const Kernel *k, size_t loop)
{
    size_t best = SIZE_MAX;
    for (size_t i = loop, end = kernel_loop_end(k, loop); i < end; i++)
        if (k->stmt.v[i].kind == KS_LOOP && kernel_loops_inside(k, i) &&
            (best == SIZE_MAX || ix_info(k->ix, k->stmt.v[i].var)->hi > ix_info(k->ix, k->stmt.v[best].var)->hi))
            best = i;
    return best;
}

/* The threads of a row of elements with narrow loops: several rows share a warp. Groups of threads share a loop that encloses another
 * one. */
static KMapping choose_narrow(const Kernel *k)
{
    const Tuned *tuned = k->target->tuned;
    uint32_t lanes = lanes_of(k), threads = lanes;
    for (size_t i = 0; i < k->stmt.n; i++) {
        size_t around = k->stmt.v[i].kind == KS_LOOP ? longest_around(k, i) : SIZE_MAX;
        while (around != SIZE_MAX && threads < tuned->block_threads &&
               threads / lanes <= ix_info(k->ix, k->stmt.v[around].var)->hi)
            threads *= 2;
    }
    return (KMapping){.row_threads = threads, .units = tuned->block_threads / threads, .lanes = lanes};
}

static KMapping choose_wide(const Kernel *k)
{
    const Tuned *tuned = k->target->tuned;
    size_t sinks = 0;
    for (size_t r = 0; r < k->root.n; r++)
        sinks += k->root.v[r].kind == KR_SINK;
    if (k->product
            .n) /* of several products half as many threads compute fewer addresses, where other blocks fill a multiprocessor */
        return (KMapping){.row_threads = k->product.n > 1 && kernel_has_small_tiles(k) ? tuned->product_threads / 2
                                                                                       : tuned->product_threads,
                          .units = 1};
    if (k->part && !has_loops(k) && k->array.n == 0 && sinks <= ROW_SUMS_MAX)
        return (KMapping){
            .row_threads = k->flat ? tuned->flat_threads : tuned->block_threads, .units = 1, .by_row = true};
    bool short_rows = longest_loop(k) <= tuned->warp_row_max && kernel_array_bytes(k) <= tuned->warp_arrays_max;
    if (!has_loops(k) || (!k->part && short_rows))
        return (KMapping){.row_threads = WARP_THREADS, .units = tuned->warps_of_rows};
    int64_t sums = kernel_sums_bytes(k, shared_sums(k)), bytes = kernel_array_bytes(k) + sums;
    /* Of a row, or a partition, with large arrays a multiprocessor has few blocks. */
    bool large = k->part && bytes > tuned->large_arrays;
    bool pieces = bytes > (k->part ? tuned->largest_arrays : tuned->few_arrays) && is_long(k) && has_pieces(k);
    if (!k->part && (pieces || bytes <= tuned->few_arrays) && repeats_much(k))
        return (KMapping){.row_threads = tuned->block_threads / 2, .units = 1, .pieces = pieces};
    pieces = pieces && k->part;
    /* Rows that 128 threads would do in one step, some of them idle: half as many do, which repeat less of what is outside the loops. */
    if (k->part && longest_loop(k) >= tuned->block_threads && !is_long(k) && has_pieces(k))
        return (KMapping){.row_threads = tuned->block_threads / 2, .units = 1, .pieces = true, .sums_shared = sums > 0};
    return (KMapping){.row_threads = large && is_long(k) && !pieces ? 2 * tuned->block_threads : tuned->block_threads,
                      .units = 1,
                      .pieces = pieces,
                      .sums_shared = sums > 0};
}

static KMapping choose(const Kernel *k)
{
    if (is_of_elements(k) && has_loops(k) &&
        lanes_of(k) <= WARP_THREADS / 4) /* half a warp that is idle costs less than two rows that share it */
        return choose_narrow(k);
    KMapping s = choose_wide(k);
    s.lanes = WARP_THREADS;
    return s;
}

/* ---- loops in loops ---- */

uint32_t kernel_loops_inside(const Kernel *k, size_t loop)
{
    uint32_t n = 0;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++)
        n += k->stmt.v[i].kind == KS_LOOP;
    return n;
}

/* Does a warp that has rounds of this loop for itself touch what no other does, but where arrays have the same element for
 * all? */
static bool is_of_warps(const Kernel *k, size_t loop)
{
    return !(kernel_carried(k, loop) & (CARRIES_ELEMENT | CARRIES_SAME));
}

/* Does each warp of a block take a round of this loop, which encloses others, of a row with products? It must take no longer so. */
static bool for_warps(const Kernel *k, size_t loop)
{
    const Tuned *tuned = k->target->tuned;
    const int64_t at_once = tuned->elements_at_once, threads = tuned->product_threads;
    const KStmt *s = &k->stmt.v[loop];
    if (s->kind != KS_LOOP || s->simd || !kernel_loops_inside(k, loop))
        return false;
    int64_t rounds = ix_info(k->ix, s->var)->hi + 1, n = kernel_elements_inside(k, loop);
    return pieces(rounds, threads / WARP_THREADS) * pieces(n, WARP_THREADS * at_once) <=
               rounds * pieces(n, threads * at_once) &&
           is_of_warps(k, loop);
}

static bool is_whole(uint8_t share) { return share == SHARE_WHOLE || share == SHARE_SUMS; }

/* ---- loops whose rounds are one thread's ---- */

/* Can a thread do rounds of this loop, with all that is in it, by itself? Then none touches what another does, and no sum
 * goes on when the loop ends. What is the same in all rounds one thread puts. */
static bool is_separable(const Kernel *k, size_t loop) { return !(kernel_carried(k, loop) & ~CARRIES_SAME); }

/* Do threads that have neighbouring rounds of this loop touch neighbours in memory, and in arrays? */
static bool lies_along(const Kernel *k, size_t loop)
{
    IVar v = k->stmt.v[loop].var;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        const KEx *x = kx(k, s->ex);
        bool array = s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD || s->kind == KS_ARRAY_GET;
        bool root = s->kind == KS_STORE || s->kind == KS_SINK, load = s->kind == KS_LET && x->kind == KX_LOAD;
        int64_t slope = 0;
        if ((array || root || load) && (!ix_slope(k->ix,
                                                  array  ? kernel_array_at(k, s->array)
                                                  : root ? k->root.v[s->root].at
                                                         : x->ix,
                                                  v, &slope) ||
                                        slope < 0 || slope > 1))
            return false;
    }
    return true;
}

/* How long a nest takes when the innermost of its loops are shared by so many lanes, in rounds of such a loop. total: how many
 * rounds a sum over these lanes takes, as long as threads wait for each other. */
static int64_t rounds_shared_inside(const Kernel *k, size_t loop, uint32_t lanes, int64_t total)
{
    int64_t rounds = 0, here = 1, outer[NEST_MAX + 1] = {0};
    int depth = 0;
    for (size_t i = loop, end = kernel_loop_end(k, loop); i <= end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP) {
            outer[depth++] = here;
            if (s->simd)
                rounds += here * pieces(ix_info(k->ix, s->var)->hi + 1, lanes);
            else
                here *= ix_info(k->ix, s->var)->hi + 1;
        } else if (s->kind == KS_END) {
            here = outer[--depth];
        } else if (s->kind == KS_ACC) {
            rounds += here * total;
        }
    }
    return rounds;
}

/* Of a nest of loops: the one whose rounds are shared out, each with all that is in it; SIZE_MAX: none is. A loop of a few
 * rounds in a long one would leave most threads idle, and a block would wait for each of its sums. */
static size_t whole_loop(const Kernel *k, size_t loop, uint32_t threads)
{
    const Tuned *tuned = k->target->tuned;
    size_t best = SIZE_MAX;
    int64_t least =
                rounds_shared_inside(k, loop, threads, threads > WARP_THREADS ? tuned->block_total : tuned->warp_total),
            outer = 1;
    for (size_t i = loop, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind != KS_LOOP || s->simd)
            continue;
        int64_t rounds = ix_info(k->ix, s->var)->hi + 1, in = kernel_elements_inside(k, i),
                all = outer * pieces(rounds, threads) * in;
        if ((all < least || (all == least && best == SIZE_MAX)) &&
            ((k->product.n ? kernel_has_few_inside(k, i) : in <= tuned->whole_round_max) || lies_along(k, i)) &&
            is_separable(k, i)) {
            best = i;
            least = all;
        }
        outer *= rounds;
        if (kernel_loop_end(k, i) + 1 != end && i != loop)
            break; /* two loops side by side */
        end = kernel_loop_end(k, i);
    }
    return best;
}

/* Of a long loop with short ones in it: sums for each of their elements, few enough for a thread to have all of them in
 * registers, so that what the sums have in common is loaded and computed once. */
static bool is_of_sums(const Kernel *k, size_t loop, uint32_t threads)
{
    const Tuned *tuned = k->target->tuned;
    int64_t sums = kernel_sums_of(k, loop), rounds = ix_info(k->ix, k->stmt.v[loop].var)->hi + 1;
    bool several = kernel_puts_along(k, loop); /* nothing else would leave each of its rounds to one thread */
    return !k->stmt.v[loop].simd && rounds >= (several ? threads / 2 : 2 * threads) &&
           kernel_elements_inside(k, loop) <= tuned->thread_sums_max && sums > 0 && sums <= tuned->thread_sums_max;
}

/* Are the rounds of a nest's outermost loop for warps, as where that saves a block many waits? */
static bool warps_save(const Kernel *k, size_t loop, uint32_t threads)
{
    const Tuned *tuned = k->target->tuned;
    if (threads <= WARP_THREADS || k->stmt.v[loop].simd || !is_of_warps(k, loop))
        return false;
    int64_t rounds = ix_info(k->ix, k->stmt.v[loop].var)->hi + 1;
    int64_t each = rounds_shared_inside(k, loop, WARP_THREADS * tuned->elements_at_once, tuned->warp_wait) / rounds;
    return pieces(rounds, threads / WARP_THREADS) * each <
           rounds_shared_inside(k, loop, threads * tuned->elements_at_once, tuned->block_wait);
}

static void find_shares(KMappingChoice *s, const Kernel *k)
{
    s->share = NEW_ARRAY(k->arena, uint8_t, k->stmt.n + 1);
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].kind == KS_LOOP) { /* of a row: loops in it are passed over */
            bool sums = !k->product.n && is_of_sums(k, i, s->row_threads), narrow = s->lanes < WARP_THREADS;
            size_t whole = (k->product.n && !kernel_has_few_inside(k, i)) || sums || narrow
                               ? SIZE_MAX
                               : whole_loop(k, i, s->row_threads);
            size_t around = narrow ? longest_around(k, i) : SIZE_MAX;
            if (around != SIZE_MAX)
                s->share[around] = SHARE_WARPS;
            else if (sums)
                s->share[i] = SHARE_SUMS;
            else if (whole != SIZE_MAX)
                s->share[whole] = SHARE_WHOLE;
            else if (!narrow && (k->product.n ? for_warps(k, i) : warps_save(k, i, s->row_threads)))
                s->share[i] = SHARE_WARPS;
            i = kernel_loop_end(k, i);
        }
}

/* ---- widths ---- */

/* One width for all loops that have one but no pieces, so that there are few texts: the sizes of layers differ. */
static void make_even(KMappingChoice *s)
{
    uint8_t all = UINT8_MAX;
    for (size_t i = 0; i < s->n; i++)
        all = s->width[i] > 1 && !s->piece[i] && s->width[i] < all ? s->width[i] : all;
    for (size_t i = 0; i < s->n; i++)
        s->width[i] = s->piece[i] ? s->width[i] : s->width[i] > 1 ? all : 1;
}

/* The vector widths that its loops can have, for so many threads of a row; values, of_pieces: of the statements of a loop at most. */
static void find_widths(KMappingChoice *s, const Kernel *k, uint32_t threads, uint32_t values, uint32_t of_pieces)
{
    s->n = k->stmt.n;
    s->width = NEW_ARRAY(k->arena, uint8_t, k->stmt.n + 1);
    s->piece = NEW_ARRAY(k->arena, uint8_t, k->stmt.n + 1);
    /* Where no loop is long, all of them have one width. */
    const bool of_warp = s->row_threads > WARP_THREADS && s->lanes == WARP_THREADS && !k->product.n &&
                         longest_loop(k) < 4 * WARP_THREADS;
    size_t warps = 0; /* the end of the loop whose rounds are for warps, */
    size_t whole = 0; /* or for threads, each with what is in it */
    for (size_t i = 0; i < k->stmt.n; i++) {
        bool loop = k->stmt.v[i].kind == KS_LOOP && k->stmt.v[i].simd && !kernel_loops_inside(k, i) && i >= whole;
        loop = loop || is_whole(s->share[i]);
        whole = is_whole(s->share[i]) ? kernel_loop_end(k, i) : whole;
        warps = s->share[i] == SHARE_WARPS ? kernel_loop_end(k, i) : warps;
        s->piece[i] = loop && s->pieces && kernel_has_pieces(k, i) ? PIECE : 0;
        uint32_t most = s->piece[i] ? of_pieces : values;
        s->width[i] = loop ? (uint8_t)kernel_width_of_loop(k, i, i < warps ? s->lanes : threads, i < warps && of_warp,
                                                           most, s->shared)
                           : 1;
    }
    make_even(s);
}

/* How often a loop over elements is written out so that these are under way. */
static uint8_t in_flight(const KMappingChoice *s, const Kernel *k, size_t loop, uint32_t threads)
{
    const Tuned *tuned = k->target->tuned;
    bool leaf = !kernel_loops_inside(k, loop),
         simd = k->stmt.v[loop].simd; /* a leaf that is not: an interchanged loop */
    int64_t at_once = simd ? (int64_t)threads * s->width[loop] : 1;
    bool rows = k->stmt.v[loop].kind == KS_ROWS && k->flat; /* eight of each thread */
    if (!leaf ||
        (!rows && (k->stmt.v[loop].kind != KS_LOOP || ix_info(k->ix, k->stmt.v[loop].var)->hi + 1 < 2 * at_once)))
        return 1;
    if (s->piece[loop])
        return (uint8_t)(kernel_widest(k) / s->width[loop]);
    int64_t times = kernel_rounds_in_flight(k, loop, s->width[loop]);
    return times < 2 ? 1 : times < tuned->times_max ? (uint8_t)times : tuned->times_max;
}

/* A loop that one thread does, of so many elements in each round, is written out when it is short, else a few times, so that
 * its loads are under way together. */
static uint8_t written_out(const Kernel *k, size_t loop, uint8_t width)
{
    const Tuned *tuned = k->target->tuned;
    int64_t rounds = ix_info(k->ix, k->stmt.v[loop].var)->hi + 1;
    if (kernel_loops_inside(k, loop))
        return rounds * kernel_elements_inside(k, loop) <= tuned->own_elements_max ? (uint8_t)rounds : 1;
    int64_t times = kernel_rounds_in_flight(k, loop, width);
    return rounds <= tuned->short_loop      ? (uint8_t)rounds
           : times < tuned->own_times_least ? tuned->own_times_least
           : times < tuned->short_loop      ? (uint8_t)times
                                            : tuned->short_loop;
}

/* ---- what sizes decide ---- */

/* A loop that adds to sums in registers is written out whole. */
static uint8_t all_rounds(const Kernel *k, size_t loop)
{
    return (uint8_t)(ix_info(k->ix, k->stmt.v[loop].var)->hi + 1);
}

static void find_times(KMappingChoice *s, const Kernel *k)
{
    size_t whole = 0, sums = 0, warps = 0;
    uint8_t width = 1; /* of the loop whose rounds are a thread's each */
    s->times = NEW_ARRAY(k->arena, uint8_t, k->stmt.n + 1);
    for (size_t i = 0; i < k->stmt.n; i++) {
        bool loop = k->stmt.v[i].kind == KS_LOOP || k->stmt.v[i].kind == KS_ROWS;
        s->times[i] = !loop       ? 1
                      : i < sums  ? all_rounds(k, i)
                      : i < whole ? written_out(k, i, width)
                                  : in_flight(s, k, i, i < warps && k->product.n ? WARP_THREADS : s->row_threads);
        warps = s->share[i] == SHARE_WARPS ? kernel_loop_end(k, i) : warps;
        if (is_whole(s->share[i])) {
            whole = kernel_loop_end(k, i);
            width = s->width[i];
        }
        sums = s->share[i] == SHARE_SUMS ? kernel_loop_end(k, i) : sums;
    }
}

/* Accesses are as wide as there are registers for. */
bool kernel_choose_threads(KMappingChoice *s, const Kernel *k, const KTrial *trial)
{
    const Tuned *tuned = k->target->tuned;
    uint32_t of_pieces = UINT32_MAX;
    KMapping own = choose(k);
    *s = (KMappingChoice){.row_threads = own.row_threads,
                          .units = own.units,
                          .lanes = own.lanes,
                          .index = INDEX_NARROW,
                          .pieces = own.pieces,
                          .sums_shared = own.sums_shared,
                          .n_buffer = k->buffer.n,
                          .shared = own.sums_shared ? shared_sums(k) : NEW_ARRAY(k->arena, bool, k->buffer.n + 1)};
    find_shares(s, k);
    for (uint32_t values = k->product.n ? tuned->values_least : tuned->values_most; values >= tuned->values_least;
         values /= 2) {
        Kernel mapped;
        find_widths(s, k, own.row_threads, values, of_pieces);
        find_times(s, k);
        if (values == tuned->values_least)
            return false;
        trial->run(trial->user, &mapped, k, s);
        bool too_many = mapped.device.mapping.pressure > tuned->live_of_tiles ||
                        (s->pieces && mapped.device.mapping.in_flight > tuned->tile_loads_max);
        if (mapped.device.mapping.pressure <= tuned->live_wide && !too_many)
            return true;
        of_pieces = too_many ? values : of_pieces;
    }
    return false;
}

/* The vector width of its loops, or, where none has one, the widest that its memory allows. */
static uint32_t widest_of(const KMappingChoice *s, const Kernel *k)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->width[i] > 1)
            return s->width[i];
    return kernel_widest(k);
}

bool kernel_mapping_same(const KMappingChoice *a, const KMappingChoice *b)
{
    return a->row_threads == b->row_threads && a->units == b->units && a->lanes == b->lanes && a->pieces == b->pieces &&
           a->index == b->index && a->n_buffer == b->n_buffer &&
           !memcmp(a->shared, b->shared, a->n_buffer * sizeof *a->shared) && a->n == b->n &&
           !memcmp(a->width, b->width, a->n) && !memcmp(a->piece, b->piece, a->n) &&
           !memcmp(a->times, b->times, a->n) && !memcmp(a->share, b->share, a->n);
}

void kernel_narrow_mapping(KMappingChoice *s, const Kernel *k, KIndex index)
{
    const Tuned *tuned = k->target->tuned;
    KMappingChoice most = {.share = s->share, .pieces = s->pieces, .shared = s->shared};
    find_widths(&most, k, 0, UINT32_MAX, UINT32_MAX);
    for (size_t i = 0; i < s->n; i++)
        s->width[i] = s->width[i] < most.width[i] ? s->width[i] : most.width[i];
    make_even(s);
    s->index = s->index < index ? s->index : index;
    if (s->sums_shared && too_many_sums(k, s->shared) > 0) {
        s->sums_shared = false;
        memset(s->shared, 0, s->n_buffer * sizeof *s->shared);
    }
    if (s->row_threads == WARP_THREADS && kernel_array_bytes(k) > tuned->warp_arrays_max) {
        s->row_threads = tuned->block_threads;
        s->units = 1;
    }
}

/* ---- statements ---- */

static void put(Mapping *s, KStmt st) { vec_push(s->k->arena, &s->k->stmt, st); }

static void barrier(Mapping *s)
{
    put(s, (KStmt){.kind = KS_BARRIER});
    memset(s->touched, 0, kernel_row_things(s->from));
    s->taken = false;
}

/* Through three sets of slots: exchanges of a row take the first two by turns, so that the barrier of one ends the reading of
 * the one before; those inside loops take the third and wait again. */
static void exchange(Mapping *s, const KStmt *share, uint32_t n)
{
    bool inside = s->depth > s->row_depth;
    uint32_t set = inside ? 2 : s->flip;
    for (int take = 0; take < 2; take++) {
        for (uint32_t i = 0; i < n; i++) {
            KStmt st = share[i];
            st.kind = take ? KS_WARP_TAKE : KS_WARP_PUT;
            st.at = 3 * i + set; /* how many there will be is not known yet */
            put(s, st);
        }
        if (!take || inside)
            barrier(s);
    }
    s->exchanged = s->exchanged > n ? s->exchanged : n;
    if (!inside) {
        s->flip = !s->flip;
        s->exchanges++;
        s->taken = true;
    }
}

/* Totals of n accumulators: of a warp, then of all warps of a block, as many at one time as there are slots for. */
static void put_totals(Mapping *s, const KStmt *share, uint32_t n)
{
    uint32_t threads = s->k->device.mapping.row_threads;
    bool block = threads > WARP_THREADS && !s->warps;
    uint32_t most = block ? KERNEL_SLOTS_ROOM / (3 * sizeof(int64_t) * (threads / WARP_THREADS)) / 4 * 4
                          : n; /* sets are of fours */
    for (uint32_t i = 0; i < n; i += most) {
        uint32_t some = n - i < most ? n - i : most;
        for (uint32_t k = 0; k < some; k++) {
            KStmt st = share[i + k];
            st.kind = KS_WARP;
            put(s, st);
        }
        if (block)
            exchange(s, share + i, some);
    }
}

/* The loop that has just ended completes the sums of arrays that each thread has. */
static void finish_sums(Mapping *s)
{
    for (size_t i = 0; i < s->sums.n; i++) {
        int array = s->sums.v[i];
        KStmt st = {.kind = KS_ARRAY_GIVE, .array = array, .at = s->flip};
        uint32_t n = (uint32_t)s->k->array.v[array].elements;
        put(s, st);
        if (s->k->device.mapping.row_threads > WARP_THREADS) {
            barrier(s);
            s->exchanged = s->exchanged > n ? s->exchanged : n;
            s->flip = !s->flip;
            s->exchanges++;
            s->taken = true;
        } else if (s->touched[array]) { /* by the row before: a shuffle orders no memory */
            barrier(s);
        }
        st.kind = KS_ARRAY_TAKE;
        put(s, st);
        s->touched[array] |= WRITES;
    }
    s->sums.n = 0;
}

/* The loop that has just ended completes the accumulators declared before it. */
static void finish_accs(Mapping *s)
{
    size_t n = s->waiting.n;
    VEC(KStmt) share = {0};
    while (n > 0 && s->waiting_depth.v[n - 1] == s->depth)
        n--;
    for (size_t i = n; i < s->waiting.n && !s->in_mapped; i++) /* else the thread has all of it */
        vec_push(s->k->arena, &share, (KStmt){.ex = s->waiting.v[i]});
    s->waiting.n = s->waiting_depth.n = n;
    put_totals(s, share.v, (uint32_t)share.n);
}

/* ---- who touches which element of an array ---- */

/* An array is the threads' own when every element is touched inside loops that threads share, over one of its axes
 * alone, of one width: then the same thread comes by each time. */
static void find_own(Mapping *s)
{
    const Kernel *k = s->from;
    typedef struct Lane {
        IVar var;
        uint8_t width;
    } Lane;
    VEC(Lane) lane = {0};
    size_t warps = 0; /* the end of a loop over warps: other threads come by there */
    size_t whole = 0; /* of a loop whose rounds are a thread's each */
    Lane *first = NEW_ARRAY(k->arena, Lane, k->array.n + 1);
    vec_push(k->arena, &lane, ((Lane){0, 1}));
    s->own = NEW_ARRAY(k->arena, bool, k->array.n + 1);
    memset(s->own, 1, k->array.n);
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *st = &k->stmt.v[i];
        Lane now = lane.v[lane.n - 1];
        bool shares = st->kind == KS_LOOP && (is_whole(s->how->share[i]) || (st->simd && i >= whole));
        whole = is_whole(s->how->share[i]) ? kernel_loop_end(k, i) : whole;
        if (kernel_opens(st))
            vec_push(k->arena, &lane, shares ? ((Lane){st->var, s->how->width[i]}) : now);
        else if (st->kind == KS_END)
            lane.n--;
        warps = s->how->share[i] == SHARE_WARPS ? kernel_loop_end(k, i) : warps;
        if (!kernel_of_array(st))
            continue;
        const KNest *nest = &k->array.v[st->array].nest;
        Lane *as = &first[st->array];
        bool fill = st->kind == KS_ARRAY_FILL, own = fill ? nest->n == 1 : now.var && nest_has(nest, now.var);
        now.var = fill ? nest->var[0] : now.var;
        if (!as->width)
            *as = now;
        s->own[st->array] = s->own[st->array] && own && i >= warps && now.width == as->width && now.var == as->var;
    }
}

/* What the open loops of the row touch has been touched since the last barrier. */
static void add_touches(Mapping *s)
{
    for (size_t i = 0, n = kernel_row_things(s->from); i < n; i++)
        s->touched[i] |= s->nest[i];
}

/* ---- the walk ---- */

/* The next row begins with the set of slots that the last exchange of this one has taken totals from. */
static void end_row(Mapping *s)
{
    if (s->exchanges % 2 && s->taken)
        barrier(s);
    memcpy(s->left, s->touched, kernel_row_things(s->from));
}

/* Does a loop touch an array? Then the same threads come by there in all loops over its variable. */
static bool has_array(const Kernel *k, size_t loop)
{
    for (size_t i = loop, end = kernel_loop_end(k, loop); i < end; i++)
        if (kernel_of_array(&k->stmt.v[i]))
            return true;
    return false;
}

/* Of a row with products: the warp that does a loop for which one is enough. All those that stand between two barriers are done at the same
 * time, but for those over one variable that share arrays. */
static uint8_t first_warp(Mapping *s, size_t i, const KStmt *st)
{
    int64_t threads = (ix_info(s->k->ix, st->var)->hi + (st->width ? st->width : 1)) / (st->width ? st->width : 1);
    if (!s->k->product.n || threads > WARP_THREADS || kernel_fills_along(s->from, st->var))
        return 0;
    uint8_t alone = 0, *first = has_array(s->from, i) ? &s->first[st->var] : &alone;
    if (!*first) {
        *first = s->warp + 1;
        s->warp = (uint8_t)((s->warp + 1u) % (s->k->device.mapping.row_threads / WARP_THREADS));
    }
    return *first - 1;
}

/* Who does a loop: all threads, or the warps and then the threads of each. */
static void share_loop(Mapping *s, size_t i, KStmt *st)
{
    bool whole = is_whole(s->how->share[i]), warps = s->how->share[i] == SHARE_WARPS,
         lanes = whole || (st->simd && !s->in_mapped);
    st->mapped = lanes || warps;
    st->threads = warps ? WARPS_OF_ROW : s->warps ? THREADS_OF_WARP : THREADS_OF_ROW;
    s->warps = s->warps || warps;
    s->in_mapped = s->in_mapped || lanes;
    s->whole = whole ? st->var : s->whole;
    st->simd = st->vector = false;
    st->width = s->how->width[i] > 1 ? s->how->width[i] : 0;
    st->piece = st->width > s->how->piece[i] ? s->how->piece[i] : 0;
    st->unroll = s->how->times[i];
    st->first = lanes && st->threads == THREADS_OF_ROW ? first_warp(s, i, st) : 0;
}

static void end_loop(Mapping *s)
{
    KStmt loop = s->loops.v[--s->loops.n];
    s->depth--;
    if (loop.mapped && loop.threads == WARPS_OF_ROW)
        s->warps = false;
    else if (loop.mapped)
        s->in_mapped = false, s->whole = 0;
    if (s->depth == s->row_depth)
        add_touches(s);
    if (s->depth >= s->row_depth)
        finish_accs(s);
    if (s->depth == s->row_depth)
        finish_sums(s);
}

/* Partial sums that lie in shared memory have room before the partitions, and are stored when the rows of one are over. */
static void put_parts(Mapping *s, KStmtKind kind)
{
    for (uint32_t b = 0; b < s->k->buffer.n; b++)
        if (s->k->buffer.v[b].device.shared)
            put(s, (KStmt){.kind = kind, .root = b});
}

static void share_statement(Mapping *s, size_t i)
{
    KStmt st = s->from->stmt.v[i];
    if (st.kind == KS_PART_PLACE && s->k->buffer.v[st.root].device.shared)
        return;
    if (s->row_depth && s->depth == s->row_depth) {
        memset(s->nest, 0, kernel_row_things(s->from));
        bool overwrites = kernel_row_touches(s->from, i, s->k, s->own, s->nest);
        if (st.kind == KS_END)
            end_row(s);
        else if (overwrites || kernel_row_meets(s->from, s->touched, s->nest))
            barrier(s);
        add_touches(s);
    }
    switch (st.kind) {
    case KS_ARRAY_PUT:
        st.one = !s->in_mapped || (s->whole && !nest_has(&s->from->array.v[st.array].nest, s->whole));
        st.threads = s->warps ? THREADS_OF_WARP : THREADS_OF_ROW;
        break;
    case KS_STORE:
    case KS_SINK:
        st.one = !s->in_mapped;
        st.threads = s->warps ? THREADS_OF_WARP : THREADS_OF_ROW;
        break;
    case KS_BATCH_IN:
    case KS_BATCH_RUN:
    case KS_BATCH_OUT: st.mapped = true; break;
    case KS_PART: put_parts(s, KS_PART_ROOM); break;
    case KS_ROWS:
        st.unroll = 1;
        if (s->k->part)
            barrier(s); /* others have filled what this thread adds to */
        break;
    case KS_LOOP: share_loop(s, i, &st); break;
    case KS_ARRAY_FILL:
        if (s->k->array.v[st.array].sums)
            vec_push(s->k->arena, &s->sums, st.array);
        break;
    case KS_ACC:
        vec_push(s->k->arena, &s->waiting, st.ex);
        vec_push(s->k->arena, &s->waiting_depth, s->depth);
        break;
    default: break;
    }
    if (st.kind == KS_END && s->depth == 1 && s->k->device.mapping.sums_shared) {
        barrier(s); /* others have added what this thread stores */
        put_parts(s, KS_PART_STORE);
    }
    put(s, st);
    if (kernel_opens(&st)) {
        s->depth++;
        vec_push(s->k->arena, &s->loops, st);
    }
    if (st.kind == KS_ROWS) {
        s->row_depth = s->depth;
        if (s->before)
            memcpy(s->touched, s->before, kernel_row_things(s->from));
        else
            kernel_row_touches(s->from, i, s->k, s->own, s->touched);
    } else if (st.kind == KS_END) {
        end_loop(s);
    }
}

static void start(Mapping *s, const uint8_t *before)
{
    const size_t things = kernel_row_things(s->from);
    const Mapping fresh = {.from = s->from, .k = s->k, .how = s->how, .own = s->own};
    *s = fresh;
    s->before = before;
    s->nest = NEW_ARRAY(s->from->arena, uint8_t, things);
    s->touched = NEW_ARRAY(s->from->arena, uint8_t, things);
    s->left = NEW_ARRAY(s->from->arena, uint8_t, things);
    s->first = NEW_ARRAY(s->from->arena, uint8_t, s->from->ix->var.n + 1);
    s->k->stmt.n = 0;
}

static void share_all(Mapping *s, const uint8_t *before)
{
    start(s, before);
    for (size_t i = 0; i < s->from->stmt.n; i++)
        share_statement(s, i);
}

/* What a row leaves touched is known when it has been walked; it must be the same with the barriers that are wanted then. */
static void share_statements(Mapping *s)
{
    share_all(s, NULL);
    const uint8_t *left = s->left;
    share_all(s, left);
    if (memcmp(left, s->left, kernel_row_things(s->from)) != 0)
        share_all(s, NULL);
}

/* ---- a row for each thread ---- */

static uint32_t sink_shares(const Kernel *k, KStmt *share)
{
    uint32_t n = 0;
    for (size_t r = 0; r < k->root.n; r++)
        if (k->root.v[r].kind == KR_SINK)
            share[n++] = (KStmt){.root = (uint32_t)r};
    return n;
}

static void put_sums(Mapping *s, KStmtKind kind)
{
    KStmt share[ROW_SUMS_MAX];
    uint32_t n = sink_shares(s->from, share);
    for (uint32_t i = 0; i < n; i++) {
        share[i].kind = kind;
        put(s, share[i]);
    }
}

static void share_rows(Mapping *s)
{
    KStmt share[ROW_SUMS_MAX];
    start(s, NULL);
    s->row_depth = 1; /* what a partition does when its rows are over */
    for (size_t i = 0; i < s->from->stmt.n; i++) {
        KStmt st = s->from->stmt.v[i];
        if (st.kind == KS_PART_FILL) /* a thread has a register for each sum */
            continue;
        st.simd = false;
        st.mapped = st.kind == KS_ROWS;
        if (st.kind == KS_ROWS) {
            st.unroll = s->how->times[i];
            put_sums(s, KS_SUM_NEW);
        }
        s->depth += kernel_opens(&st);
        s->depth -= st.kind == KS_END;
        put(s, st);
        if (st.kind == KS_END && s->depth == 1) {
            put_totals(s, share, sink_shares(s->from, share));
            put_sums(s, KS_SUM_PUT);
            end_row(s);
        }
    }
}

/* The three sets of slots, one behind the other; several sums are taken in fours. */
static void place_slots(Mapping *s)
{
    Kernel *k = s->k;
    uint32_t set = s->exchanged < 3 ? s->exchanged : (s->exchanged + 3) / 4 * 4;
    for (size_t i = 0; i < k->stmt.n; i++) {
        KStmt *st = &k->stmt.v[i];
        if (st->kind == KS_WARP_PUT || st->kind == KS_WARP_TAKE || st->kind == KS_ARRAY_GIVE ||
            st->kind == KS_ARRAY_TAKE)
            st->at = st->at % 3 * set + st->at / 3;
    }
    k->device.mapping.slots = 3 * set;
}

/* Finds the arrays of sums that threads have in registers. */
static void find_sums(Kernel *to, const Kernel *k, const KMappingChoice *how)
{
    KArray *array = NEW_ARRAY(k->arena, KArray, k->array.n + 1);
    if (k->array.n)
        memcpy(array, k->array.v, k->array.n * sizeof *array);
    to->array.v = array;
    for (size_t i = 0; i < how->n; i++)
        for (size_t j = i + 1; how->share[i] == SHARE_SUMS && j < kernel_loop_end(k, i); j++)
            if (k->stmt.v[j].kind == KS_ARRAY_ADD && !nest_has(&array[k->stmt.v[j].array].nest, k->stmt.v[i].var))
                array[k->stmt.v[j].array].sums = true;
}

/* Which partial sums lie in shared memory. */
static void hold_sums(Kernel *to, const Kernel *from, const KMappingChoice *how)
{
    KBuffer *buffer = NEW_ARRAY(from->arena, KBuffer, from->buffer.n + 1);
    for (size_t b = 0; b < from->buffer.n; b++) {
        buffer[b] = from->buffer.v[b];
        buffer[b].device.shared = how->shared[b];
    }
    to->buffer.v = buffer;
}

void kernel_map_threads(Kernel *to, const Kernel *from, const KMappingChoice *how)
{
    *to = *from;
    to->stmt.v = NULL;
    to->stmt.n = to->stmt.cap = 0;
    to->device.mapping = choose(from);
    if (!to->device.mapping.by_row) {
        to->device.mapping.row_threads = how->row_threads;
        to->device.mapping.units = how->units;
        to->device.mapping.lanes = how->lanes;
        to->device.mapping.pieces = how->pieces;
        to->device.mapping.sums_shared = how->sums_shared;
        hold_sums(to, from, how);
    }
    to->device.mapping.width = widest_of(how, from);
    Mapping s = {.from = from, .k = to, .how = how};
    find_sums(to, from, how);
    find_own(&s);
    if (to->device.mapping.by_row)
        share_rows(&s);
    else
        share_statements(&s);
    place_slots(&s);
}
