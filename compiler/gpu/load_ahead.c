/* load_ahead.c - which loads come before what their loop stores.
 *
 * In:  a kernel that is mapped to threads.     Out: KStmt.ahead, of loops and of what they load.
 * Requires: widths, pieces and how often loops are written out are final.     Proved by: kernel_race().
 * The one idea: the compiler of the text does not know that arrays, tiles and tensors lie apart, so what is loaded behind
 * a store waits for it. The kernel program knows.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

/* May what stands in the loop at `loop` be in the text in another order: is it one element after the other, without a barrier? */
static bool is_plain(const Kernel *k, size_t loop)
{
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++)
        if (kernel_opens(&k->stmt.v[i]) || k->stmt.v[i].kind == KS_BARRIER)
            return false;
    return true;
}

/* Are these one buffer, or tiles that lie in one place? */
static bool is_one_place(const Kernel *k, uint32_t a, uint32_t b) { return a == b || kernel_in_one_place(k, a, b); }

/* Does a statement of the loop write this? */
static bool writes(const Kernel *k, size_t loop, KThing thing, uint32_t number)
{
    ArenaMark mark = arena_mark(k->arena);
    KTouches all = {0};
    bool found = false;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++)
        kernel_touches(k, &k->stmt.v[i], &all);
    for (size_t i = 0; i < all.n && !found; i++)
        found = all.v[i].how & WRITES && all.v[i].thing == thing &&
                (thing == OF_BUFFER ? is_one_place(k, all.v[i].number, number) : all.v[i].number == number);
    arena_reset(k->arena, mark);
    return found;
}

/* Does the loop store to an array that does not lie in registers, or into a tile? */
static bool stores_to_shared(const Kernel *k, size_t loop, bool tile)
{
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        bool array = s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD, root = s->kind == KS_STORE || s->kind == KS_SINK;
        if (tile ? root && k->buffer.v[k->root.v[s->root].buffer].tile : array && !k->array.v[s->array].sums)
            return true;
    }
    return false;
}

/* Is nothing that statement i loads, and nothing that says where it lies, written in the loop? */
static bool can_be_ahead(const Kernel *k, size_t loop, size_t i)
{
    ArenaMark mark = arena_mark(k->arena);
    KTouches own = {0};
    bool can = true;
    kernel_touches(k, &k->stmt.v[i], &own);
    for (size_t t = 0; t < own.n && can; t++)
        can = !(own.v[t].how & READS) || !writes(k, loop, (KThing)own.v[t].thing, own.v[t].number);
    arena_reset(k->arena, mark);
    return can;
}

/* Of a short loop that is written out elements are loaded for all rounds first. */
static bool is_load_of_round(const Kernel *k, size_t loop, size_t i)
{
    const KStmt *s = &k->stmt.v[i];
    const KEx *x = kx(k, s->ex);
    IVar round = k->stmt.v[loop].var;
    bool load = s->kind == KS_LET && x->kind == KX_LOAD
                    ? stores_to_shared(k, loop, true) && !x->in[0] && x->deps & ix_bit(k->ix, round)
                    : s->kind == KS_ARRAY_GET && nest_has(&k->array.v[s->array].nest, round);
    return load && can_be_ahead(k, loop, i);
}

static void load_rounds(Kernel *k, size_t loop)
{
    KStmt *s = &k->stmt.v[loop];
    if (s->unroll < 2 || s->unroll != ix_info(k->ix, s->var)->hi + 1 || !is_plain(k, loop) ||
        (!stores_to_shared(k, loop, false) && !stores_to_shared(k, loop, true)))
        return;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        k->stmt.v[i].ahead = is_load_of_round(k, loop, i);
        s->ahead = s->ahead || k->stmt.v[i].ahead;
    }
}

/* Does the loop load what statement i stores? Several statements store to one buffer, to other elements each. */
static bool is_loaded(const Kernel *k, size_t loop, size_t i)
{
    uint32_t buffer = k->root.v[k->stmt.v[i].root].buffer;
    for (size_t j = loop + 1, end = kernel_loop_end(k, loop); j < end; j++) {
        const KEx *x = kx(k, k->stmt.v[j].ex);
        if (k->stmt.v[j].kind == KS_LET && x->kind == KX_LOAD && is_one_place(k, x->slot, buffer))
            return true;
    }
    return false;
}

/* Where a warp or two add to sums over rows in memory, each of these waits for the one before: all of them are loaded first, and
 * stored when all is computed. */
static void load_sums(Kernel *k, size_t loop)
{
    bool some = false;
    if (!k->product.n || k->mapping.holds_sums || k->stmt.v[loop].piece)
        return;
    size_t end = kernel_loop_end(k, loop);
    for (size_t i = loop + 1; i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        switch (s->kind) {
        case KS_LET: case KS_VAR: case KS_ACC_ADD: case KS_ARRAY_GET: break;
        case KS_STORE: case KS_SINK:
            if (s->one || (s->kind == KS_SINK && k->root.v[s->root].op != OP_SUM) || is_loaded(k, loop, i))
                return;
            some = some || s->kind == KS_SINK;
            break;
        default: return;
        }
    }
    for (size_t i = loop; i < end && some; i++)
        k->stmt.v[i].ahead = i == loop || k->stmt.v[i].kind == KS_SINK;
}

void kernel_load_ahead(Kernel *k)
{
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].kind == KS_LOOP && k->stmt.v[i].mapped)
            load_sums(k, i);
        else if (k->stmt.v[i].kind == KS_LOOP)
            load_rounds(k, i);
}
