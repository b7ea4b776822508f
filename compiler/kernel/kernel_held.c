/* kernel_held.c - are the steps of a statement still that statement?
 *
 * In:  a kernel of which threads hold elements in registers (KStmt.step).
 * Out: the first step that is missing, out of order or in another loop than its others, or that passes a statement which
 *      touches what it touches.
 * The one idea: a program with steps means what it means where each load is at its value, and each store, too: so between
 * the two nothing may touch the same place. Nothing is taken from gpu/hold.c but its statements.
 */
#include "kernel.h"

typedef struct HeldSteps {
    const KStmt *of;                 /* any of its steps */
    uint8_t done;                    /* steps */
    size_t room, load, value, store; /* statements that have them, SIZE_MAX: none */
} HeldSteps;

typedef struct Holds {
    const Kernel *k;
    size_t *scope; /* by statement: what opens the scope that it stands in, SIZE_MAX: nothing */
    VEC(HeldSteps) held;
    const char *why;
    size_t at;
} Holds;

static void fault(Holds *h, size_t at, const char *why)
{
    h->at = h->why ? h->at : at;
    h->why = h->why ? h->why : why;
}

static bool is_load(const KStmt *s) { return s->kind == KS_ARRAY_GET || s->kind == KS_LET; }

static bool is_sum(const KStmt *s) { return s->kind == KS_ARRAY_ADD || s->kind == KS_SINK; }

static bool is_store(const KStmt *s) { return is_sum(s) || s->kind == KS_ARRAY_PUT || s->kind == KS_STORE; }

/* ---- the steps of one ---- */

static bool is_same(const KStmt *a, const KStmt *b)
{
    return a->kind == b->kind && a->ex == b->ex && a->root == b->root && a->array == b->array && a->piece == b->piece;
}

static HeldSteps *held_of(Holds *h, const KStmt *s)
{
    for (size_t i = 0; i < h->held.n; i++)
        if (h->held.v[i].of->held == s->held)
            return &h->held.v[i];
    vec_push(h->k->arena, &h->held, ((HeldSteps){s, 0, SIZE_MAX, SIZE_MAX, SIZE_MAX, SIZE_MAX}));
    return &h->held.v[h->held.n - 1];
}

static void add_step(Holds *h, size_t i)
{
    const KStmt *s = &h->k->stmt.v[i];
    HeldSteps *x = held_of(h, s);
    if ((!is_load(s) && !is_store(s)) || (s->kind == KS_LET && kx(h->k, s->ex)->kind != KX_LOAD))
        fault(h, i, "a step of what neither loads nor stores");
    else if (!is_same(x->of, s))
        fault(h, i, "registers hold one thing and are taken for another");
    else if (s->step <= x->done) /* STEP_NEW < STEP_LOAD < STEP_VALUE < STEP_STORE */
        fault(h, i, "a step that is done twice, or too late");
    x->done |= s->step;
    x->room = s->step & STEP_NEW ? i : x->room;
    x->load = s->step & STEP_LOAD ? i : x->load;
    x->value = s->step & STEP_VALUE ? i : x->value;
    x->store = s->step & STEP_STORE ? i : x->store;
}

static void check_done(Holds *h, const HeldSteps *x)
{
    const KStmt *s = x->of;
    int want = STEP_VALUE |
               (is_load(s) ? STEP_LOAD | (s->piece ? 0 : STEP_NEW) : STEP_STORE | (is_sum(s) ? STEP_LOAD : STEP_NEW));
    if (x->done != want)
        fault(h, (size_t)(s - h->k->stmt.v), "a statement of which a step is missing");
}

/* ---- where they stand ---- */

/* All elements of a thread are loaded, and stored, in one loop, and their values are in pieces of what it has. */
static void check_pieces(Holds *h, const HeldSteps *x)
{
    const Kernel *k = h->k;
    size_t first = x->load != SIZE_MAX ? x->load : x->room, loop = h->scope[first], pieces = h->scope[x->value];
    if (loop == SIZE_MAX || pieces == SIZE_MAX || k->stmt.v[loop].kind != KS_LOOP ||
        k->stmt.v[pieces].kind != KS_PIECES || h->scope[pieces] != loop ||
        (x->store != SIZE_MAX && h->scope[x->store] != loop)) {
        fault(h, x->value, "a piece that is not one of its loop");
        return;
    }
    const KStmt *l = &k->stmt.v[loop], *p = &k->stmt.v[pieces];
    if (!l->mapped || p->width != l->width || p->piece != x->of->piece || !p->piece || p->width % p->piece)
        fault(h, x->value, "pieces of another width than what is held");
}

static bool is_round_of(const Kernel *k, size_t loop, const KStmt *s)
{
    const KStmt *l = &k->stmt.v[loop];
    return l->kind == KS_LOOP && !l->mapped && l->var == s->var && s->unroll == ix_info(k->ix, s->var)->hi + 1;
}

/* Loads of all rounds stand in a loop, their values in another one behind it. */
static void check_rounds(Holds *h, const HeldSteps *x)
{
    size_t load = h->scope[x->load], value = h->scope[x->value], around = h->scope[x->room];
    if (load == SIZE_MAX || value == SIZE_MAX || load == value || h->scope[load] != around ||
        h->scope[value] != around || !is_round_of(h->k, load, x->of) || !is_round_of(h->k, value, x->of))
        fault(h, x->value, "rounds that are not those which were loaded");
}

static void check_scopes(Holds *h, const HeldSteps *x)
{
    if (x->of->piece)
        check_pieces(h, x);
    else if (is_load(x->of))
        check_rounds(h, x);
    else if (h->scope[x->load] != h->scope[x->value] || x->value != x->store)
        fault(h, x->value, "a sum that is stored elsewhere than where it was loaded");
}

/* ---- what they pass ---- */

static bool in_one_place(const Kernel *k, uint32_t a, uint32_t b)
{
    const KBuffer *x = &k->buffer.v[a], *y = &k->buffer.v[b];
    return a == b || (x->tile && y->tile && x->device.slot >= 0 && x->device.slot == y->device.slot);
}

/* The array that a statement touches an element of, or -1; the buffer. */
static bool touches(const Kernel *k, const KStmt *s, int *array, uint32_t *buffer)
{
    *array = -1;
    *buffer = 0;
    if (kernel_of_array(s) || s->kind == KS_ARRAY_TAKE)
        *array = s->array;
    else if (s->kind == KS_STORE || s->kind == KS_SINK)
        *buffer = k->root.v[s->root].buffer;
    else if (s->kind == KS_LET && kx(k, s->ex)->kind == KX_LOAD)
        *buffer = kx(k, s->ex)->slot;
    else
        return false;
    return true;
}

/* Do two statements touch one place, one of them writing? Several results have other elements of one buffer each. */
static bool meet(const Kernel *k, const KStmt *a, const KStmt *b)
{
    int x, y;
    uint32_t p, q;
    if (!touches(k, a, &x, &p) || !touches(k, b, &y, &q) || (is_load(a) && is_load(b)) || (x < 0) != (y < 0))
        return false;
    bool results = x < 0 && p == q && !is_load(a) && !is_load(b);
    return x >= 0 ? x == y : !results && in_one_place(k, p, q);
}

/* Has a statement its place in the order of the program there? */
static bool has_place(const KStmt *s) { return !s->step || s->step & STEP_VALUE; }

static void check_order(Holds *h, const HeldSteps *x)
{
    const Kernel *k = h->k;
    size_t from = x->load != SIZE_MAX ? x->load : x->value, to = x->store != SIZE_MAX ? x->store : x->value;
    if (is_load(x->of) && !x->of->piece) { /* with all rounds */
        from = h->scope[x->load];
        to = kernel_loop_end(k, h->scope[x->value]);
    }
    for (size_t i = from; i <= to; i++) {
        const KStmt *s = &k->stmt.v[i];
        bool own = s->step && s->held == x->of->held;
        if (s->kind == KS_BARRIER || s->kind == KS_PRODUCT || s->kind == KS_LANES || s->kind == KS_LANE_STORE ||
            s->kind == KS_LANE_TAKE)
            fault(h, i, "threads wait for each other, or multiply, while one of them holds what it will store");
        else if (!own && has_place(s) && meet(k, x->of, s))
            fault(h, i, "a place is touched between two steps of a statement that touches it");
    }
}

/* ---- the whole ---- */

static void find_scopes(Holds *h)
{
    const Kernel *k = h->k;
    VEC(size_t) open = {0};
    h->scope = NEW_ARRAY(k->arena, size_t, k->stmt.n + 1);
    for (size_t i = 0; i < k->stmt.n; i++) {
        open.n -= k->stmt.v[i].kind == KS_END && open.n;
        h->scope[i] = open.n ? open.v[open.n - 1] : SIZE_MAX;
        if (kernel_opens(&k->stmt.v[i]))
            vec_push(k->arena, &open, i);
    }
}

const char *kernel_check_held(const Kernel *k, size_t *at)
{
    Holds h = {.k = k, .at = SIZE_MAX};
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].step)
            add_step(&h, i);
    if (h.held.n)
        find_scopes(&h);
    for (size_t i = 0; i < h.held.n && !h.why; i++)
        check_done(&h, &h.held.v[i]);
    for (size_t i = 0; i < h.held.n && !h.why; i++)
        check_scopes(&h, &h.held.v[i]);
    for (size_t i = 0; i < h.held.n && !h.why; i++)
        check_order(&h, &h.held.v[i]);
    *at = h.at;
    return h.why;
}
