/* concat_same.c - a concatenation of results of one function becomes the function of concatenations.
 *
 * In:  a graph, and which of its rows have slices of different age.
 * Out: those that are made as that function of concatenated rows, and the values of which only a slice is made.
 * The one idea: f(x1, y1) beside f(x2, y2) is f(x1 beside x2, y1 beside y2). What a layer leaves to a wider
 * one that comes later is not computed when it is left, but when it is wanted: until then it stays in the
 * memory of what it is made of. So a boundary computes exactly what the next layer reads, and whether
 * that is less, more or as much as before are sizes of one kernel.
 *
 * For devices alone: texts are one, which on a CPU gains nothing.
 */
#include "concat_buffers.h"
#include "compiler/graph/op.h"

enum { FUNCTION_MOST = 24 }; /* nodes of such a function */

/* One walk through all slices: of[i] is the node of slice i at one place of the function. */
typedef struct Same {
    const ConcatLayout *a;
    const Parts *parts;
    Graph *g; /* NULL: it is only asked for */
    Val *map;
    bool *want; /* or NULL: where to note what it reads */
    int nodes;
} Same;

static Val same_at(Same *s, const Val *of, int crossed);

/* Is it as wide as the part's whole? */
static bool all_wide(const Same *s, const Val *of)
{
    const Graph *g = s->a->g;
    for (size_t i = 0; i < s->parts->n; i++) {
        const Shape *x = shape_of(g, of[i]), *whole = shape_of(g, s->parts->v[i].of);
        if (!shape_eq(x, whole) || node_at(g, of[i])->dtype != DT_REAL)
            return false;
    }
    return true;
}

/* Does it lie in memory whatever happens here: a result of the library, or what is read later as well? */
static bool is_kept(const Same *s, Val v, const Part *p)
{
    const ConcatLayout *a = s->a;
    const Node *n = node_at(a->g, v);
    return n->op == OP_EXT || concat_moves(a->g, v) || concat_is_library(a, v) ||
           (n->op == OP_ROUND_TO && concat_is_library(a, n->in[0])) || a->until[v] > a->level[p->of];
}

static bool any_kept(const Same *s, const Val *of)
{
    for (size_t i = 0; i < s->parts->n; i++)
        if (is_kept(s, of[i], &s->parts->v[i]))
            return true;
    return false;
}

/* Is it read behind another product? */
static bool any_crosses(const Same *s, const Val *of)
{
    for (size_t i = 0; i < s->parts->n; i++)
        if (s->a->until[of[i]] > s->a->level[of[i]])
            return true;
    return false;
}

static Val leaf(Same *s, const Val *of)
{
    if (!all_wide(s, of))
        return 0;
    for (size_t i = 0; s->want && i < s->parts->n; i++)
        s->want[of[i]] = true;
    if (!s->g)
        return of[0];
    Val *part = NEW_ARRAY(s->a->arena, Val, s->parts->n);
    int last = shape_of(s->a->g, of[0])->rank - 1;
    for (size_t i = 0; i < s->parts->n; i++)
        part[i] = ir_slice(s->g, s->map[of[i]], last, s->parts->v[i].from, s->parts->v[i].n);
    return concat_copies(s->g, part, s->parts->n);
}

/* One value for all elements of a row, and of all rows. */
static Val repeated(Same *s, const Val *of)
{
    const Graph *g = s->a->g;
    const Node *first = node_at(g, of[0]);
    Val from = first->in[0];
    int last = first->shape.rank - 1;
    if (!all_wide(s, of) || !dim_eq(shape_of(g, from)->d[last], DIM(1)))
        return 0;
    for (size_t i = 1; i < s->parts->n; i++)
        if (node_at(g, of[i])->in[0] != from)
            return 0;
    if (s->want)
        s->want[from] = true;
    if (!s->g)
        return from;
    Shape to = first->shape;
    to.d[last].n = 0;
    for (size_t i = 0; i < s->parts->n; i++)
        to.d[last].n += s->parts->v[i].n;
    return ir_broadcast(s->g, s->map[from], &to);
}

static bool same_operator(const Same *s, const Val *of)
{
    const Graph *g = s->a->g;
    for (size_t i = 1; i < s->parts->n; i++)
        if (!node_same_function(node_at(g, of[0]), node_at(g, of[i])))
            return false;
    return true;
}

static Val same_inputs(Same *s, const Val *of, int crossed)
{
    const Node *n = node_at(s->a->g, of[0]);
    Val in[3] = {0}, *next = NEW_ARRAY(s->a->arena, Val, s->parts->n);
    for (size_t k = 0; k < n->n_in; k++) {
        for (size_t i = 0; i < s->parts->n; i++)
            next[i] = node_at(s->a->g, of[i])->in[k];
        in[k] = same_at(s, next, crossed);
        if (!in[k])
            return 0;
    }
    return s->g ? ir_node(s->g, (Op)n->op, in, n->n_in, &n->a, NULL) : of[0];
}

/* The concatenation, for all slices, of the values at this place; 0: they are not one function. crossed: how many on
 * the way, the slices among them, are read behind another product: one more is computed again at most, since every other
 * one of a chain lies in memory. */
static Val same_at(Same *s, const Val *of, int crossed)
{
    Op op = (Op)node_at(s->a->g, of[0])->op;
    if (s->nodes++ == FUNCTION_MOST)
        return 0;
    if (crossed && op == OP_BROADCAST && same_operator(s, of))
        return repeated(s, of);
    bool crosses = crossed && any_crosses(s, of);
    if (crossed && (any_kept(s, of) || (crosses && crossed == 2)))
        return leaf(s, of);
    if (crosses && s->a->g->differentiated) /* recomputed for the backward pass, since there is little memory */
        return 0;
    if (!op_is_map(op) || !same_operator(s, of) || !all_wide(s, of))
        return 0;
    return same_inputs(s, of, crossed ? crossed + crosses : 1);
}

static Val same_of(Same *s)
{
    Val *of = NEW_ARRAY(s->a->arena, Val, s->parts->n);
    for (size_t i = 0; i < s->parts->n; i++)
        of[i] = s->parts->v[i].of;
    return same_at(s, of, 0);
}

/* ---- which ---- */

/* The rows; and which slices older layers leave to them. */
static bool find_rows(ConcatLayout *a, bool *left)
{
    bool any = false;
    for (Val v = 1; v < a->g->node.n; v++) {
        Parts parts = {0};
        Same s = {.a = a, .parts = &parts};
        if (!concat_parts(a, v, &parts) || !same_of(&s))
            continue;
        a->making[v] = MAKE_OF_ROWS;
        any = true;
        for (size_t i = 0; i < parts.n; i++)
            left[parts.v[i].of] = !a->read[parts.v[i].of];
    }
    return any;
}

/* Of what is left, that which is read before. */
static void find_pieces(ConcatLayout *a, const bool *left)
{
    for (Val v = 1; v < a->g->node.n; v++) {
        const Node *n = node_at(a->g, v);
        if (n->op == OP_SLICE && n->a.i == n->shape.rank - 1 && left[n->in[0]] && a->read[v])
            a->making[v] = MAKE_OF_PIECE;
    }
}

/* What v is made of. */
void concat_want_same(const ConcatLayout *a, Val v)
{
    Parts parts = {0};
    Same s = {.a = a, .parts = &parts, .want = a->wanted};
    concat_find_parts(a, v, &parts);
    if (a->making[v] == MAKE_OF_ROWS) {
        same_of(&s);
        return;
    }
    const Node *whole = node_at(a->g, node_at(a->g, v)->in[0]);
    for (size_t k = 0; k < whole->n_in; k++)
        a->wanted[whole->in[k]] = true;
}

bool concat_find_same(ConcatLayout *a)
{
    bool *left = NEW_ARRAY(a->arena, bool, a->g->node.n);
    if (!find_rows(a, left))
        return false;
    find_pieces(a, left);
    return true;
}

/* A piece of a function of elements is the function of pieces. */
static Val piece(const ConcatLayout *a, Graph *g, Val v, const Val *map)
{
    const Node *n = node_at(a->g, v), *whole = node_at(a->g, n->in[0]);
    Val in[3] = {0};
    for (size_t k = 0; k < whole->n_in; k++)
        in[k] = ir_slice(g, map[whole->in[k]], (int)n->a.i, n->a.j, n->shape.d[n->a.i].n);
    return ir_node(g, (Op)whole->op, in, whole->n_in, &whole->a, NULL);
}

/* What is left to later is in the memory of what is made of it, if that is asked. */
Val concat_same(const ConcatLayout *a, Graph *g, Val v, Val *map)
{
    Parts parts = {0};
    Same s = {.a = a, .parts = &parts, .g = g, .map = map};
    concat_find_parts(a, v, &parts);
    Val made = a->making[v] == MAKE_OF_PIECE ? piece(a, g, v, map) : same_of(&s);
    for (size_t i = 0; i < parts.n; i++)
        if (!map[parts.v[i].of])
            map[parts.v[i].of] = made;
    return made;
}
