/* swizzle.c - arrays in shared memory whose elements lie as threads take them.
 *
 * In:  a kernel that is mapped to threads.     Out: KArray.swizzled, KBuffer.device.swizzled.
 * The one idea: a bank of shared memory serves one thread at a time.
 */
#include "device.h"

/* Arrays, and partial sums in shared memory, of which threads take eight numbers whenever they
 * touch them: 32 threads that take four each, eight apart, would wait for each other. */
void kernel_swizzle(Kernel *k)
{
    IVar along = 0, *of = NEW_ARRAY(k->arena, IVar, k->array.n + k->buffer.n + 1);
    bool *no = NEW_ARRAY(k->arena, bool, k->array.n + k->buffer.n + 1);
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP || s->kind == KS_END)
            along = s->kind == KS_LOOP && s->piece && s->width == 8 ? s->var : 0;
        if (!kernel_of_array(s) && s->kind != KS_SINK)
            continue;
        size_t x = kernel_of_array(s) ? (size_t)s->array : k->array.n + k->root.v[s->root].buffer;
        no[x] = no[x] || !along || s->kind == KS_ARRAY_FILL || (of[x] && of[x] != along);
        of[x] = along;
    }
    for (size_t i = 0; i < k->array.n; i++)
        k->array.v[i].swizzled = !no[i] && !k->array.v[i].spilled && k->array.v[i].dtype == DT_REAL ? of[i] : 0;
    for (size_t b = 0; b < k->buffer.n; b++)
        k->buffer.v[b].device.swizzled = k->buffer.v[b].device.shared && !no[k->array.n + b] ? of[k->array.n + b] : 0;
}
