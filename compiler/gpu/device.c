/* device.c - shared memory, grid and partitions of a kernel for the threads of a device.
 *
 * In:  a Kernel, with its KMapping.     Out: KGrid; which arrays are spilled to memory; how many blocks there are at one time.
 * The one idea: everything that a launch must know is decided here, from the kernel alone; the printer writes it down.
 */
#include "device.h"

/* ---- memory ---- */

static int64_t item_bytes(const KArray *a) { return a->dtype == DT_INT ? 8 : 4; }

int64_t kernel_array_bytes(const Kernel *k)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < k->array.n; i++)
        bytes += k->array.v[i].elements * item_bytes(&k->array.v[i]);
    return bytes;
}

int64_t kernel_sum_bytes(const KBuffer *b) { return (4 * b->elements + 15) / 16 * 16; }

int64_t kernel_sums_bytes(const Kernel *k, const bool *shared)
{
    int64_t bytes = 0;
    for (size_t b = 0; b < k->buffer.n; b++)
        bytes += k->buffer.v[b].part >= 0 && (!shared || shared[b]) ? kernel_sum_bytes(&k->buffer.v[b]) : 0;
    return bytes;
}

enum { TILE_ROOM = 128 }; /* a tile is a whole number of lines of so many bytes */

/* What shared memory lacks for arrays; where tiles are too many by more than Tuned.tiles_over, products go to the library (plan.c). */
void kernel_spill_arrays(Kernel *k, uint32_t lanes, uint32_t units)
{
    const Tuned *tuned = k->target->tuned;
    KArray *array = NEW_ARRAY(k->arena, KArray, k->array.n + 1);
    int64_t tiles = 0, bytes = 8 * k->device.mapping.slots * (lanes / WARP_THREADS) + kernel_array_bytes(k) * units;
    for (size_t b = 0; b < k->buffer.n; b++)
        bytes += k->buffer.v[b].device.shared ? kernel_sum_bytes(&k->buffer.v[b]) : 0;
    for (size_t i = 0; i < k->device.tile_slot.n; i++)
        tiles += 4 * k->device.tile_slot.v[i].words + 2 * TILE_ROOM;
    bytes += bytes + tiles <= k->device.shared + tuned->tiles_over ? tiles : 0;
    for (size_t i = 0; i < k->array.n; i++)
        array[i] = k->array.v[i];
    k->array.v = array;
    while (bytes > k->device.shared) {
        KArray *most = NULL;
        for (size_t i = 0; i < k->array.n; i++)
            if (!array[i].spilled && (!most || array[i].elements > most->elements))
                most = &array[i];
        if (!most)
            return;
        most->spilled = true;
        bytes -= most->elements * item_bytes(most) * units;
    }
}

/* Each block has its own copy of the arrays that are spilled to memory. */
static void choose_spill(Kernel *k)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < k->array.n; i++) {
        const KArray *a = &k->array.v[i];
        if (a->spilled)
            bytes += (k->device.grid.units * a->elements * item_bytes(a) + 15) / 16 * 16;
    }
    k->device.grid.blocks = bytes ? k->target->spill_blocks : 0;
    k->device.grid.spilled = bytes / 4;
}

uint64_t kernel_shared_bytes(const Kernel *k)
{
    uint64_t bytes = k->device.grid.shared;
    for (size_t i = 0; i < k->device.grid.n_term; i++)
        bytes +=
            ((uint64_t)ix_dim_at(k->ix, k->device.grid.term[i].size) * k->device.grid.term[i].bytes + 15) / 16 * 16;
    return bytes;
}

bool kernel_has_small_tiles(const Kernel *k)
{
    const Tuned *tuned = k->target->tuned;
    int64_t bytes = kernel_array_bytes(k);
    for (size_t i = 0; i < k->device.tile_slot.n; i++)
        bytes += 4 * k->device.tile_slot.v[i].words;
    return k->product.n && !k->part && bytes <= tuned->small_tiles;
}

void kernel_choose_grid(Kernel *k)
{
    KGrid *g = &k->device.grid;
    KShared *term = NEW_ARRAY(k->arena, KShared, k->array.n + k->buffer.n + k->device.tile_slot.n + 1);
    *g = (KGrid){.threads = k->device.mapping.units * k->device.mapping.row_threads,
                 .units = k->device.mapping.units,
                 .term = term};
    for (size_t i = 0; i < k->array.n; i++) {
        const KArray *a = &k->array.v[i];
        Dim size = kernel_array_size(k, a);
        uint32_t bytes = g->units * (uint32_t)item_bytes(a);
        if (a->spilled)
            continue;
        if (ix_literal(k->ix, size))
            g->shared += ((uint32_t)size.n * bytes + 15) / 16 * 16;
        else
            term[g->n_term++] = (KShared){size, bytes, -1};
    }
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].device.shared)
            term[g->n_term++] = (KShared){DIM(k->buffer.v[b].elements), 4, (int32_t)b};
    g->n_fixed = g->n_term;
    choose_spill(k);
    for (size_t i = 0; i < k->device.tile_slot.n; i++) {
        Dim size = DIM(k->device.tile_slot.v[i].words);
        bool literal = ix_literal(k->ix, size);
        g->shared += literal ? 2 * TILE_ROOM : TILE_ROOM;
        if (!literal)
            term[g->n_term++] = (KShared){size, 4, -1};
    }
    /* In a loop over rows a compiler keeps in registers what is the same for all of them; where tiles leave room for several blocks
     * that takes the room of one. */
    g->whole = kernel_has_small_tiles(k);
}

/* The partitions of a sum over rows: enough for the waves of blocks of any device to be even, few enough that adding up
 * their partial sums costs little. Rows without loops, of no more sums than a thread has, have one for all threads of a block. */
int64_t kernel_partitions(const Kernel *k, int64_t rows)
{
    const Tuned *tuned = k->target->tuned;
    size_t sums = 0;
    bool loops = k->product.n > 0;
    int64_t bytes = kernel_sums_bytes(k, NULL);
    for (size_t e = 1; e < k->ex.n; e++)
        loops = loops || k->ex.v[e].kind == KX_REDUCE;
    for (size_t r = 0; r < k->root.n; r++) {
        loops = loops || k->root.v[r].nest.n;
        sums += k->root.v[r].kind == KR_SINK;
    }
    loops = loops || sums > ROW_SUMS_MAX;
    int64_t each = loops ? tuned->partition_rows : tuned->thread_partition_rows, parts = (rows + each - 1) / each,
            most = tuned->thread_partitions_max;
    for (most = loops ? tuned->partitions_max : most; loops && most > tuned->partitions_least; most /= 2) {
        int64_t good = rows >= tuned->rows_many * most ? tuned->sums_of_many
                       : most > tuned->partitions_good ? tuned->sums_good
                                                       : tuned->sums_bytes;
        if (most * bytes <= good)
            break;
    }
    while (loops && parts < tuned->partitions_least && 2 * parts <= rows && 2 * parts * bytes <= tuned->sums_good)
        parts *= 2;
    return parts < 1 ? 1 : parts < most ? parts : most;
}

int64_t kernel_flat_rows(const Kernel *k, int64_t most, int64_t rows)
{
    const Tuned *tuned = k->target->tuned;
    most = rows < tuned->flat_blocks * most ? most / 2 : most;
    while (most > tuned->flat_least && (int64_t)k->root.n * most > tuned->flat_results)
        most /= 2;
    return most;
}

/* With 512 threads there are enough loads under way, as there are where a loop has many of its own, and with 384 where a row has few
 * threads and many numbers, so that each of them has 168 registers. What needs more than the 128 that it has otherwise would spill. */
static uint32_t blocks_at_once(const Kernel *k)
{
    const Tuned *tuned = k->target->tuned;
    const KMapping *s = &k->device.mapping;
    const uint32_t n_int = (uint32_t)k->argument.n, n_buffer = (uint32_t)k->pointer.n;
    if (s->pieces) /* arrays leave room for two blocks */
        return 2;
    if ((s->by_row ? n_buffer : s->in_flight) > tuned->loads_max)
        return 1;
    uint32_t live = s->pressure + n_int * (s->index == INDEX_WIDE ? 2 : 1) +
                    (s->index == INDEX_WIDE_ROWS ? tuned->wide_row_registers : 0);
    live += s->by_row ? n_buffer : 0; /* whose rows are all under way at once */
    for (size_t b = 0; b < k->buffer.n; b++)
        live += k->buffer.v[b].device.shared ? 2 : 0; /* where they lie, and where they go to */
    for (size_t i = 0; i < k->array.n; i++)
        live += k->array.v[i].sums ? 2 * (uint32_t)k->array.v[i].elements : 0; /* and what is added to them */
    uint32_t threads = k->device.grid.threads < tuned->block_threads && live > tuned->live_of_few
                           ? tuned->threads_of_few
                           : tuned->threads_wanted;
    return live <= tuned->live_max && k->device.grid.threads < threads ? threads / k->device.grid.threads : 1;
}

void kernel_choose_resident(Kernel *k) { k->device.grid.at_once = blocks_at_once(k); }
