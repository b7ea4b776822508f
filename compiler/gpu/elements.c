/* elements.c - for how many elements of a thread each statement stands.
 *
 * In:  a kernel that is mapped to threads.     Out: the same with KStmt.width and KStmt.across of what stands in a loop of which
 *      a thread takes several contiguous elements at one time.
 * Requires: statements are final.     Proved by: kernel_check().
 * The one idea: what changes with that loop is a vector, and all else is one value. Where the two meet the statement says how.
 */
#include "device.h"

/* The value that a statement stores, or adds to something; 0: it does neither. */
static Ex stored_value(const Kernel *k, const KStmt *s)
{
    switch (s->kind) {
    case KS_STORE:
    case KS_SINK: return k->root.v[s->root].value;
    case KS_ARRAY_PUT: return s->ex;
    case KS_ARRAY_ADD:
    case KS_ACC_ADD: return kx(k, s->ex)->in[0];
    default: return 0;
    }
}

static bool is_many(const Kernel *k, const KStmt *s, uint64_t lane)
{
    switch (s->kind) {
    case KS_STORE:
    case KS_SINK:
    case KS_ARRAY_ADD: return true;
    case KS_LET:
    case KS_ACC:
    case KS_ARRAY_GET: return s->piece || kx(k, s->ex)->deps & lane;
    case KS_ARRAY_PUT:
    case KS_ACC_ADD: return s->piece || kx(k, stored_value(k, s))->deps & lane;
    default: return false;
    }
}

static KAcross across(const Kernel *k, const KStmt *s, uint64_t lane)
{
    const KEx *x = kx(k, s->ex);
    if (s->kind == KS_ACC_ADD)
        return x->deps & lane ? ACROSS_NONE : ACROSS_SUM;
    if (s->kind == KS_LET && x->kind == KX_OP && kx(k, x->in[0])->type == KT_INT)
        return kx(k, x->in[0])->deps & lane ? ACROSS_FIRST : ACROSS_SECOND;
    Ex value = stored_value(k, s);
    return value && !(kx(k, value)->deps & lane) ? ACROSS_VALUE : ACROSS_NONE;
}

void kernel_find_elements(Kernel *k)
{
    const KStmt *loop = NULL;
    size_t end = 0, pieces = 0;
    uint8_t piece = 0;
    k->stmt.v = memcpy(NEW_ARRAY(k->arena, KStmt, k->stmt.n + 1), k->stmt.v, k->stmt.n * sizeof *k->stmt.v);
    k->stmt.cap = k->stmt.n;
    k->device.mapping.vectors = true;
    for (size_t i = 0; i < k->stmt.n; i++) {
        KStmt *s = &k->stmt.v[i];
        if (s->kind == KS_LOOP && s->width > 1) {
            loop = s;
            end = kernel_loop_end(k, i);
        } else if (s->kind == KS_PIECES) {
            piece = s->piece;
            pieces = kernel_loop_end(k, i);
        }
        if (!loop || kernel_opens(s))
            continue;
        const uint64_t lane = ix_bit(k->ix, loop->var);
        if (is_many(k, s, lane)) {
            s->width = piece ? piece : loop->width;
            s->across = (uint8_t)(s->step && !(s->step & STEP_VALUE) ? ACROSS_NONE : across(k, s, lane));
        }
        piece = piece && i == pieces ? 0 : piece;
        loop = i == end ? NULL : loop;
    }
}
