/* hold.c - what a thread holds in registers between memory and what it computes.
 *
 * In:  a kernel that is mapped to threads.     Out: the same with statements in steps (KStmt.step): loops of pieces load all
 *      elements of a thread first, compute a few at a time (KS_PIECES) and store all; a short loop that is written out loads for
 *      all rounds first; a loop that adds to sums over rows in memory loads these first and stores last.
 * Requires: widths, pieces and how often loops are written out are final.     Proved by: kernel_check(), kernel_check_held().
 * The one idea: the compiler of the text does not know that arrays, tiles and tensors lie apart, so what is loaded behind
 * a store waits for it. The kernel program knows. What is held has numbers in the order of the program.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

typedef struct Hold {
    const Kernel *from;
    Kernel *to;
    uint32_t *number, numbers; /* of what is held, by statement that it is of; 0: none yet */
} Hold;

static void put(Hold *h, KStmt s) { vec_push(h->to->arena, &h->to->stmt, s); }

/* A step of statement i. */
static void put_step(Hold *h, size_t i, uint8_t step, uint8_t piece, const KStmt *round)
{
    KStmt s = h->from->stmt.v[i];
    s.step = step;
    s.held = h->number[i] ? h->number[i] : (h->number[i] = ++h->numbers);
    s.piece = piece;
    s.var = round ? round->var : s.var;
    s.unroll = round ? round->unroll : s.unroll;
    put(h, s);
}

static bool is_store(const KStmt *s)
{
    return s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD || s->kind == KS_STORE || s->kind == KS_SINK;
}

static bool is_sum(const KStmt *s) { return s->kind == KS_ARRAY_ADD || s->kind == KS_SINK; }

/* ---- pieces ---- */

/* Does a load give each element of the loop another one? */
static bool is_load(const Kernel *k, const KStmt *s, uint64_t lane)
{
    const KEx *x = kx(k, s->ex);
    return s->kind == KS_ARRAY_GET || (s->kind == KS_LET && x->kind == KX_LOAD && x->deps & lane);
}

static bool is_same_for_all(const Kernel *k, const KStmt *s, uint64_t lane)
{
    return s->kind == KS_LET && !(kx(k, s->ex)->deps & lane);
}

static void put_pieces(Hold *h, size_t loop)
{
    const Kernel *k = h->from;
    const size_t end = kernel_loop_end(k, loop);
    KStmt s = k->stmt.v[loop];
    const uint64_t lane = ix_bit(k->ix, s.var);
    const uint8_t piece = s.piece;
    s.piece = 0;
    put(h, s);
    for (size_t i = loop + 1; i < end; i++) {
        const KStmt *x = &k->stmt.v[i];
        if (is_load(k, x, lane) ||
            is_store(x)) /* a sum begins with what there is, so that it is under way with all else */
            put_step(h, i, is_store(x) && !is_sum(x) ? STEP_NEW : STEP_LOAD, piece, NULL);
        else if (is_same_for_all(k, x, lane))
            put(h, *x);
    }
    put(h, (KStmt){.kind = KS_PIECES, .width = s.width, .piece = piece});
    for (size_t i = loop + 1; i < end; i++) {
        const KStmt *x = &k->stmt.v[i];
        if (is_load(k, x, lane) || is_store(x))
            put_step(h, i, STEP_VALUE, piece, NULL);
        else if (!is_same_for_all(k, x, lane))
            put(h, *x);
    }
    put(h, (KStmt){.kind = KS_END});
    for (size_t i = loop + 1; i < end; i++)
        if (is_store(&k->stmt.v[i]))
            put_step(h, i, STEP_STORE, piece, NULL);
    put(h, k->stmt.v[end]);
}

/* ---- loads for all rounds ---- */

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
        bool array = s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD,
             root = s->kind == KS_STORE || s->kind == KS_SINK;
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

/* A short loop that is written out loads the elements of all its rounds first. */
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

/* Is it a loop of which loads can be for all rounds? */
static bool has_rounds(const Kernel *k, size_t loop)
{
    const KStmt *s = &k->stmt.v[loop];
    return !s->mapped && s->unroll >= 2 && s->unroll == ix_info(k->ix, s->var)->hi + 1 && is_plain(k, loop) &&
           (stores_to_shared(k, loop, false) || stores_to_shared(k, loop, true));
}

/* Two loops in the place of one: over the loads, and over all else. Without loads: the loop itself. */
static void put_rounds(Hold *h, size_t loop)
{
    const Kernel *k = h->from;
    const size_t end = kernel_loop_end(k, loop);
    const KStmt *s = &k->stmt.v[loop];
    VEC(size_t) load = {0}; /* statements that are loads of a round, in their order */
    for (size_t i = loop + 1; i < end; i++)
        if (is_load_of_round(k, loop, i))
            vec_push(k->arena, &load, i);
    for (size_t i = 0; i < load.n; i++)
        put_step(h, load.v[i], STEP_NEW, 0, s);
    if (load.n)
        put(h, *s);
    for (size_t i = 0; i < load.n; i++)
        put_step(h, load.v[i], STEP_LOAD, 0, s);
    if (load.n)
        put(h, k->stmt.v[end]);
    put(h, *s);
    for (size_t i = loop + 1, next = 0; i < end; i++)
        if (next < load.n && load.v[next] == i)
            put_step(h, load.v[next++], STEP_VALUE, 0, s);
        else
            put(h, k->stmt.v[i]);
    put(h, k->stmt.v[end]);
}

/* ---- sums over rows ---- */

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
static bool has_sums(const Kernel *k, size_t loop)
{
    bool some = false;
    if (!k->stmt.v[loop].mapped || !k->product.n || k->device.mapping.sums_shared)
        return false;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        switch (s->kind) {
        case KS_LET:
        case KS_VAR:
        case KS_ACC_ADD:
        case KS_ARRAY_GET: break;
        case KS_STORE:
        case KS_SINK:
            if (s->one || (s->kind == KS_SINK && k->root.v[s->root].op != OP_SUM) || is_loaded(k, loop, i))
                return false;
            some = some || s->kind == KS_SINK;
            break;
        default: return false;
        }
    }
    return some;
}

static void put_sums(Hold *h, size_t loop)
{
    const Kernel *k = h->from;
    const size_t end = kernel_loop_end(k, loop);
    put(h, k->stmt.v[loop]);
    for (size_t i = loop + 1; i < end; i++)
        if (k->stmt.v[i].kind == KS_SINK)
            put_step(h, i, STEP_LOAD, 0, NULL);
    for (size_t i = loop + 1; i < end; i++)
        if (!is_store(&k->stmt.v[i]))
            put(h, k->stmt.v[i]);
    for (size_t i = loop + 1; i < end; i++)
        if (k->stmt.v[i].kind == KS_SINK)
            put_step(h, i, STEP_VALUE | STEP_STORE, 0, NULL);
        else if (is_store(&k->stmt.v[i]))
            put(h, k->stmt.v[i]);
    put(h, k->stmt.v[end]);
}

/* ---- the whole ---- */

void kernel_hold(Kernel *k)
{
    const Kernel from = *k;
    Hold h = {.from = &from, .to = k, .number = NEW_ARRAY(k->arena, uint32_t, from.stmt.n + 1)};
    k->stmt.v = NULL;
    k->stmt.n = k->stmt.cap = 0;
    for (size_t i = 0; i < from.stmt.n; i++) {
        bool loop = from.stmt.v[i].kind == KS_LOOP;
        if (loop && from.stmt.v[i].piece)
            put_pieces(&h, i);
        else if (loop && has_rounds(&from, i))
            put_rounds(&h, i);
        else if (loop && has_sums(&from, i))
            put_sums(&h, i);
        else {
            put(&h, from.stmt.v[i]);
            continue;
        }
        i = kernel_loop_end(&from, i);
    }
}
