/* barriers.c - which parts of a row threads may not begin before all of them have done others.
 *
 * In:  a scheduled kernel whose tiles have places, and which of its arrays are the threads' own.
 * Out: for each part of a row what it touches of arrays, tiles and shares of products; whether two of these touch the same, one
 *      of them writing.
 * The one idea: a place in shared memory, and not shared memory, is what threads wait for. Each element of a tile is stored once in
 * a row, so those that only store one tile touch different elements. kernel_races.c proves what comes of it.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

/* How many things threads may wait for: the arrays, then the buffers, and last the shares of products, which all lie in one place. */
size_t kernel_row_things(const Kernel *k) { return k->array.n + k->buffer.n + 1; }

static bool is_in_registers(const Kernel *k, const KStmt *s)
{
    return k->array.v[s->array].sums && (s->kind == KS_ARRAY_FILL || s->kind == KS_ARRAY_ADD);
}

bool kernel_row_touches(const Kernel *k, size_t i, const Kernel *mapped, const bool *own, uint8_t *how)
{
    ArenaMark mark = arena_mark(k->arena);
    KTouches of = {0};
    bool overwrites = false;
    for (size_t end = kernel_opens(&k->stmt.v[i]) ? kernel_loop_end(k, i) : i; i <= end; i++) {
        const KStmt *s = &k->stmt.v[i];
        of.n = 0;
        kernel_touches(k, s, &of);
        if (s->kind == KS_PRODUCT && kernel_product_shares(k, &k->product.v[s->root]))
            how[k->array.n + k->buffer.n] |= READS | WRITES;
        for (size_t j = 0; j < of.n; j++) {
            const KTouch *t = &of.v[j];
            const KBuffer *b = t->thing == OF_BUFFER ? &k->buffer.v[t->number] : NULL;
            if (b && (b->tile || s->kind == KS_PRODUCT))
                how[k->array.n + t->number] |= t->how;
            else if (b)
                overwrites = overwrites || (s->kind == KS_STORE && t->how & WRITES && b->read);
            else if (t->thing == OF_ARRAY && !own[t->number] && !is_in_registers(mapped, s))
                how[t->number] |= t->how;
        }
    }
    arena_reset(k->arena, mark);
    return overwrites;
}

bool kernel_in_one_place(const Kernel *k, size_t x, size_t y)
{
    const KBuffer *a = &k->buffer.v[x], *b = &k->buffer.v[y];
    return a->tile && b->tile && a->device.slot >= 0 && a->device.slot == b->device.slot;
}

bool kernel_row_meets(const Kernel *k, const uint8_t *a, const uint8_t *b)
{
    const uint8_t *x = a + k->array.n, *y = b + k->array.n;
    for (size_t i = 0; i < k->array.n; i++)
        if (a[i] && b[i] && (a[i] | b[i]) & WRITES)
            return true;
    for (size_t i = 0; i < k->buffer.n; i++)
        for (size_t j = 0; x[i] && j < k->buffer.n; j++) {
            bool stored = i == j && x[i] == WRITES && y[j] == WRITES;
            if (y[j] && (x[i] | y[j]) & WRITES && !stored && (i == j || kernel_in_one_place(k, i, j)))
                return true;
        }
    return x[k->buffer.n] && y[k->buffer.n];
}
