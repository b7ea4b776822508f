/* begin_rows.c - what a row of a partition begins with.
 *
 * In:  a kernel that is mapped to threads.
 * Out: the same with KS_PREFETCH_ROW, of rows of tensors that the next row loads, and with
 *      KS_ROW_TILES, where tiles are of several rows.
 * Requires: places of tiles are final.     Proved by: kernel_check().
 * The one idea: rows of a partition with products come one after another, and each waits for
 * memory many times over. So the next one is on its way to the second-level cache. Each row of
 * a tensor has a warp.
 */
#include "device.h"

/* Where the row of a tensor begins that a place lies in: the terms of the row alone. 0: the place
 * does not move with the row. */
static Ix row_of(const Kernel *k, Ix at)
{
    const IxForm *f = ix_form(k->ix, at);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var == k->row)
            return ix_of_terms(k->ix, &f->t[i], 1);
    return 0;
}

/* The length of the row of a tensor that begins at `row`. */
static Ix length_of(const Kernel *k, Ix row)
{
    IxTerm one = ix_form(k->ix, row)->t[0];
    one.var = 0;
    return ix_of_terms(k->ix, &one, 1);
}

/* Notes the row of a tensor that a place lies in. A row that is too long is not noted: the threads of a block have many loads of it
 * under way at one time. */
static void find_row_of(const Kernel *k, Ix *row, uint32_t buffer, Ix at)
{
    const Tuned *tuned = k->target->tuned;
    const KBuffer *b = &k->buffer.v[buffer];
    Ix of = row_of(k, at);
    if (!b->tile && !b->written && of &&
        ix_form(k->ix, length_of(k, of))->hi * (b->half ? 2 : 4) <= tuned->begin_row_bytes)
        row[buffer] = of;
}

/* The rows of tensors that statements from..to load, by buffer; 0: none. */
static Ix *find_rows(const Kernel *k, size_t from, size_t to)
{
    Ix *row = NEW_ARRAY(k->arena, Ix, k->buffer.n + 1);
    for (size_t i = from; i < to; i++) {
        const KStmt *s = &k->stmt.v[i];
        const KEx *x = kx(k, s->ex);
        if (s->kind == KS_LET && x->kind == KX_LOAD)
            find_row_of(k, row, x->slot, x->ix);
        if (s->kind == KS_PRODUCT) {
            find_row_of(k, row, k->product.v[s->root].a, k->product.v[s->root].a_at);
            find_row_of(k, row, k->product.v[s->root].b, k->product.v[s->root].b_at);
        }
    }
    return row;
}

static void put_prefetches(Kernel *k, const Ix *row)
{
    const uint32_t warps = k->device.mapping.row_threads / 32;
    uint32_t all = 0;
    for (uint32_t b = 0; b < k->buffer.n; b++)
        all += row[b] != 0;
    for (uint32_t warp = 0; warp < warps; warp++) {
        uint32_t n = 0;
        for (uint32_t b = 0; b < k->buffer.n; b++) {
            if (!row[b] || n++ % warps != warp)
                continue;
            KPrefetch x = {.buffer = b,
                           .at = row[b],
                           .length = length_of(k, row[b]),
                           .warp = (uint8_t)warp,
                           .nth = (uint8_t)((n - 1) / warps + 1),
                           .of = (uint8_t)((all - 1 - warp) / warps + 1)};
            vec_push(k->arena, &k->stmt, (KStmt){.kind = KS_PREFETCH_ROW, .root = (uint32_t)k->prefetch.n});
            vec_push(k->arena, &k->prefetch, x);
        }
    }
}

static bool has_row_tiles(const Kernel *k)
{
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].device.rows && k->buffer.v[b].device.slot >= 0)
            return true;
    return false;
}

void kernel_begin_rows(Kernel *k)
{
    const Kernel from = *k;
    if (!k->part || !k->product.n)
        return;
    k->stmt.v = NULL;
    k->stmt.n = k->stmt.cap = 0;
    for (size_t i = 0; i < from.stmt.n; i++) {
        vec_push(k->arena, &k->stmt, from.stmt.v[i]);
        if (from.stmt.v[i].kind != KS_ROWS)
            continue;
        put_prefetches(k, find_rows(&from, i, kernel_loop_end(&from, i)));
        if (has_row_tiles(k))
            vec_push(k->arena, &k->stmt, (KStmt){.kind = KS_ROW_TILES});
    }
}
