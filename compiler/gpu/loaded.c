/* loaded.c - which choices are what was loaded.
 *
 * In:  a kernel that is mapped to threads.     Out: the same with KEx.i of such a choice.
 * Requires: expressions are final.     Proved by: kernel_check().
 * The one idea: a load under a guard leaves 0 where the guard does not hold. A choice between that load and 0 by the same guard needs
 * no instruction of its own, which a device's compiler does not see.
 */
#include "device.h"

static bool is_loaded(const Kernel *k, const KEx *x)
{
    if (x->kind != KX_SELECT)
        return false;
    const KEx *load = kx(k, x->in[1]), *other = kx(k, x->in[2]);
    return load->kind == KX_LOAD && load->in[0] == x->in[0] && other->kind == KX_CONST && other->value == 0;
}

void kernel_find_loaded(Kernel *k)
{
    const KEx *from = k->ex.v;
    bool some = false;
    for (size_t e = 1; e < k->ex.n && !some; e++)
        some = is_loaded(k, &from[e]);
    if (!some)
        return;
    k->ex.v = memcpy(NEW_ARRAY(k->arena, KEx, k->ex.n), from, k->ex.n * sizeof *from);
    for (size_t e = 1; e < k->ex.n; e++)
        if (is_loaded(k, &from[e]))
            k->ex.v[e].i = 1;
}
