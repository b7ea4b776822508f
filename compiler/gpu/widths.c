/* widths.c - how many contiguous elements a thread of a device takes at one time.
 *
 * In:  a Kernel and a loop of it.     Out: elements of one access, a power of two; 1: none of its accesses can be wider.
 * The one idea: a statement means the same for one element and for a vector of them, if every access of it lies at a
 * multiple of its size; so does a loop whose statements all do.
 */
#include "device.h"

uint32_t kernel_widest(const Kernel *k)
{
    bool half = false;
    for (size_t b = 0; b < k->buffer.n; b++)
        half = half || k->buffer.v[b].half;
    return half ? 8 : 4;
}

/* The widest access, up to w, that a place allows where the loop's variable is a multiple of it. */
static uint32_t width_at(const Kernel *k, Ix at, IVar lane, uint32_t w)
{
    const IxForm *f = ix_form(k->ix, at);
    int64_t slope;
    if (!ix_slope(k->ix, at, lane, &slope) || slope != 1)
        return 1;
    for (uint32_t i = 0; i < f->n; i++)
        while (f->t[i].var != lane && f->t[i].mult * ix_dim_at(k->ix, f->t[i].coef) % w)
            w /= 2;
    return w;
}

/* The elements of a tile lie in pieces of 16 bytes. */
static uint32_t width_in(const KBuffer *b, uint32_t w) { return b->tile && !b->half && w > 4 ? 4 : w; }

/* The place of each element along the loop. */
static bool is_place(const Kernel *k, Ex e, IVar lane)
{
    int64_t slope;
    return kx(k, e)->kind == KX_INDEX && ix_slope(k->ix, kx(k, e)->ix, lane, &slope) && slope == 1;
}

/* Is one element of the loop, which an integer names, told from the others? */
static bool tells_places(const Kernel *k, const KEx *x, IVar lane)
{
    uint64_t bit = ix_bit(k->ix, lane);
    for (int i = 0; i < 2 && x->kind == KX_OP && x->op == OP_EQ; i++)
        if (is_place(k, x->in[i], lane) && kx(k, x->in[!i])->type == KT_INT && !(kx(k, x->in[!i])->deps & bit))
            return true;
    return false;
}

/* A load, a choice or a function of reals, guarded by what is the same for all elements. */
static bool is_value_of_reals(const Kernel *k, const KEx *x, uint64_t lane)
{
    bool guarded = x->kind == KX_LOAD || x->kind == KX_SELECT;
    if (x->type != KT_REAL || (!guarded && x->kind != KX_OP) || (guarded && x->in[0] && kx(k, x->in[0])->deps & lane))
        return false;
    for (int i = guarded; i < 3; i++)
        if (x->in[i] && kx(k, x->in[i])->type != KT_REAL)
            return false;
    return true;
}

static uint32_t width_of_value(const Kernel *k, Ex e, IVar lane, uint32_t w)
{
    const KEx *x = kx(k, e);
    uint64_t bit = ix_bit(k->ix, lane);
    if (!(x->deps & bit)) /* one value for all elements */
        return w;
    if (is_place(k, e, lane) || tells_places(k, x, lane))
        return w;
    if (!is_value_of_reals(k, x, bit))
        return 1;
    return x->kind == KX_LOAD ? width_at(k, x->ix, lane, width_in(&k->buffer.v[x->slot], w)) : w;
}

static uint32_t width_of_root(const Kernel *k, const KRoot *r, IVar lane, uint32_t w, bool shared)
{
    const KBuffer *b = &k->buffer.v[r->buffer];
    if (b->dtype != DT_REAL || kx(k, r->value)->type != KT_REAL || (r->kind == KR_SINK && r->op != OP_SUM))
        return 1;
    while (b->part >= 0 &&
           (b->elements % w || (w > 4 && !shared))) /* float32: halves of 32 bytes would be written alone */
        w /= 2;
    return width_at(k, r->at, lane, width_in(b, w));
}

/* Like vector.c, but for what a thread does with a few contiguous elements: any function of reals may stand
 * between, and every access must lie at a multiple of its size. */
static uint32_t width_of_statement(const Kernel *k, const KStmt *s, IVar lane, uint32_t w, const bool *shared)
{
    const KEx *x = kx(k, s->ex);
    switch (s->kind) {
    case KS_LET: return width_of_value(k, s->ex, lane, w);
    case KS_LOOP:
    case KS_END:
    case KS_ACC: return w;
    case KS_ACC_ADD:
        if (x->deps & ix_bit(k->ix, lane)) /* each element has a sum of its own */
            return x->type == KT_REAL && x->op == OP_SUM ? w : 1;
        if (!nest_has(&x->over, lane))
            return w;
        return x->type == KT_REAL && kx(k, x->in[0])->deps & ix_bit(k->ix, lane) ? w : 1;
    case KS_ARRAY_ADD:
    case KS_ARRAY_PUT:
    case KS_ARRAY_GET:
        if (s->kind == KS_ARRAY_ADD &&
            !nest_has(&k->array.v[s->array].nest, lane)) /* sums that a thread has (SHARE_SUMS) */
            return x->op == OP_SUM && kx(k, x->in[0])->deps & ix_bit(k->ix, lane) ? w : 1;
        if (s->kind != KS_ARRAY_ADD && !(x->deps & ix_bit(k->ix, lane)))
            return w;
        if (k->array.v[s->array].dtype != DT_REAL || (s->kind == KS_ARRAY_ADD && x->op != OP_SUM))
            return 1;
        return width_at(k, kernel_array_at(k, s->array), lane, w);
    case KS_STORE:
    case KS_SINK: return width_of_root(k, &k->root.v[s->root], lane, w, shared[k->root.v[s->root].buffer]);
    default: return 1;
    }
}

uint32_t kernel_width_of_loop(const Kernel *k, size_t loop, uint32_t threads, bool of_warp, uint32_t values,
                              const bool *shared)
{
    IVar lane = k->stmt.v[loop].var;
    /* A loop that is long for a thread keeps all of them busy; threads of a warp that are idle issue with the others. */
    uint32_t w = kernel_widest(k), busy = kernel_loops_inside(k, loop) ? 1 : of_warp ? 2 : 4;
    while (w > busy && ix_info(k->ix, lane)->hi + 1 < (int64_t)(w * threads))
        w /= 2;
    while (w > 2 && (kernel_loop_end(k, loop) - loop) * w > values)
        w /= 2;
    while (w > 2 && (int64_t)(kernel_loop_end(k, loop) - loop) * w > k->target->tuned->values_least &&
           ix_info(k->ix, lane)->hi + 1 < (int64_t)(w * threads))
        w /= 2; /* all threads take less long */
    while ((ix_info(k->ix, lane)->hi + 1) % w)
        w /= 2;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); w > 1 && i < end; i++)
        w = width_of_statement(k, &k->stmt.v[i], lane, w, shared);
    return w;
}

/* ---- pieces ---- */

/* `stored`, by array and then by buffer: what is stored before in this loop. Loads come first
 * where elements are taken in pieces. */
static bool takes_pieces(const Kernel *k, size_t loop, bool *stored)
{
    IVar lane = k->stmt.v[loop].var;
    uint64_t bit = ix_bit(k->ix, lane);
    bool *buffer = stored + k->array.n;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        const KEx *x = kx(k, s->ex);
        bool along = x->deps & bit;
        switch (s->kind) {
        case KS_LET:
            if (along && (!is_value_of_reals(k, x, bit) || (x->kind == KX_LOAD && buffer[x->slot])))
                return false;
            break;
        case KS_ACC_ADD:
            if (along || !nest_has(&x->over, lane))
                return false;
            break;
        case KS_ARRAY_GET:
            if (!along || stored[s->array])
                return false;
            break;
        case KS_ARRAY_PUT:
        case KS_ARRAY_ADD:
            if (!nest_has(&k->array.v[s->array].nest, lane))
                return false;
            stored[s->array] = true;
            break;
        case KS_STORE:
        case KS_SINK: buffer[k->root.v[s->root].buffer] = true; break;
        default: return false;
        }
    }
    return true;
}

bool kernel_has_pieces(const Kernel *k, size_t loop)
{
    if (kernel_loops_inside(k, loop))
        return false;
    ArenaMark mark = arena_mark(k->arena);
    bool takes = takes_pieces(k, loop, NEW_ARRAY(k->arena, bool, k->array.n + k->buffer.n + 1));
    arena_reset(k->arena, mark);
    return takes;
}
