/* join.c - see join.h.
 *
 * A connection multiplies one normalised row by several matrices of a few columns each: its coefficients of different
 * kinds. Tensor cores multiply by sixteens of terms and eights of columns, so each of these products, and each of
 * their gradients, would be mostly zeros, and read the row again.
 *
 * The one idea: x [W1 | W2] is x W1 beside x W2. Backward the same matrices side by side give the gradient of x in one
 * product of the gradients side by side, which is made where the last of them is known, and the gradients of all
 * matrices are one sum over rows. What kernels hand to each other then are the gradients of a few coefficients, and
 * not a row for each matrix.
 */
#include "join.h"

#include "compiler/graph/op.h"
#include "decompose.h"
#include "rewrite.h"

enum { SET_MOST = 8 }; /* products of one set */

/* Products of one left factor by matrices of weights, in the order of their columns. */
typedef struct Set {
    size_t n;
    Val product[SET_MOST], weight[SET_MOST];
    /* Gradients: what comes back to product i, d; d W^T, which is added to those of the others; x^T d. 0: not joined. */
    Val d[SET_MOST], back[SET_MOST], of_weight[SET_MOST];
    Val last_back, last_of_weight; /* the last ones, where all that they are made of is known */
    Val columns, gradients, whole; /* of the new graph: [W1 | W2], [d1 | d2]; the joined product */
} Set;

typedef enum Part { PART_NONE, PART_PRODUCT, PART_BACK, PART_OF_WEIGHT } Part;

typedef struct Join {
    const Graph *g;
    Arena *arena;
    VEC(Set) set;
    uint32_t *users; /* by value: how many nodes and results read it, */
    Val *user;       /* one of them, */
    Val *first;      /* and the first */
    /* by value: what it is in which set */
    uint8_t *part;
    uint32_t *of;
} Join;

static Val in_of(const Graph *g, Val v, int k) { return node_at(g, v)->in[k]; }

static Val behind_reshape(const Graph *g, Val v)
{
    while (node_at(g, v)->op == OP_RESHAPE)
        v = in_of(g, v, 0);
    return v;
}

static bool is_product(const Graph *g, Val v, int64_t turned) { return node_at(g, v)->op == OP_MATMUL && node_at(g, v)->a.i == turned; }

/* Columns of a matrix */
static Dim columns_of(const Graph *g, Val w) { return shape_of(g, w)->d[1]; }

static void find_users(Join *j)
{
    const Graph *g = j->g;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; k < node_at(g, v)->n_in; k++) {
            Val x = node_at(g, v)->in[k];
            j->first[x] = j->users[x]++ ? j->first[x] : v;
            j->user[x] = v;
        }
    for (size_t i = 0; i < g->out.n; i++)
        j->users[g->out.v[i].value]++;
}

/* ---- which ---- */

/* x W of a row by a kernel, W of weights */
static bool is_of_weights(const Graph *g, Val v, const PlanOptions *how)
{
    return is_product(g, v, 0) && shape_of(g, v)->rank > 2 && node_at(g, in_of(g, v, 1))->op == OP_EXT &&
           shape_of(g, in_of(g, v, 1))->rank == 2 && product_is_kernels(g, v, columns_of(g, in_of(g, v, 1)), how);
}

/* Is there room in the set for product v: are its matrices known before the first is wanted, and still a kernel's? */
static bool takes(const Join *j, const Set *s, Val v, const PlanOptions *how)
{
    Dim all = columns_of(j->g, in_of(j->g, v, 1));
    for (size_t i = 0; i < s->n; i++)
        all.n += columns_of(j->g, s->weight[i]).n;
    return s->n < SET_MOST && (s->n == 0 || in_of(j->g, v, 1) < s->product[0]) && product_is_kernels(j->g, v, all, how);
}

static void find_sets(Join *j, const PlanOptions *how)
{
    const Graph *g = j->g;
    uint32_t *set_of = NEW_ARRAY(j->arena, uint32_t, g->node.n); /* by left factor: number and 1 */
    for (Val v = 1; v < g->node.n; v++) {
        if (!is_of_weights(g, v, how))
            continue;
        Val x = in_of(g, v, 0);
        if (!set_of[x]) {
            vec_push(j->arena, &j->set, (Set){0});
            set_of[x] = (uint32_t)j->set.n;
        }
        Set *s = &j->set.v[set_of[x] - 1];
        if (takes(j, s, v, how)) {
            s->product[s->n] = v;
            s->weight[s->n++] = in_of(g, v, 1);
        }
    }
}

/* d W^T: the product of the gradients of what W has made; 0 where there is none or several. */
static Val back_of(const Graph *g, Val weight)
{
    Val found = 0;
    for (Val v = weight + 1; v < g->node.n; v++)
        if (is_product(g, v, 2) && in_of(g, v, 1) == weight) {
            if (found)
                return 0;
            found = v;
        }
    return found;
}

/* x^T d over all rows */
static Val of_weight(const Graph *g, Val d, Dim columns)
{
    for (Val v = d + 1; v < g->node.n; v++)
        if (is_product(g, v, 1) && shape_of(g, v)->rank == 2 && behind_reshape(g, in_of(g, v, 1)) == d && dim_eq(columns_of(g, v), columns))
            return v;
    return 0;
}

/* The sum that v is a term of, and of nothing else. */
static Val sum_of(const Join *j, Val v)
{
    while (j->users[v] == 1 && node_at(j->g, j->user[v])->op == OP_ADD)
        v = j->user[v];
    return v;
}

static Val largest(const Val *v, size_t n)
{
    Val most = 0;
    for (size_t i = 0; i < n; i++)
        most = v[i] > most ? v[i] : most;
    return most;
}

/* Are all terms of one sum? */
static bool backs_join(const Join *j, const Set *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (!s->back[i] || sum_of(j, s->back[i]) == s->back[i] || sum_of(j, s->back[i]) != sum_of(j, s->back[0]))
            return false;
    return true;
}

/* Have all one left factor, and does nobody read one before the last is there? */
static bool weights_join(const Join *j, const Set *s)
{
    Val last = largest(s->of_weight, s->n);
    for (size_t i = 0; i < s->n; i++) {
        Val v = s->of_weight[i];
        if (!v || in_of(j->g, v, 0) != in_of(j->g, s->of_weight[0], 0) || (j->first[v] && j->first[v] <= last))
            return false;
    }
    return true;
}

static void mark(Join *j, const Val *v, size_t n, Part part, size_t set)
{
    for (size_t i = 0; i < n; i++) {
        j->part[v[i]] = (uint8_t)part;
        j->of[v[i]] = (uint32_t)set;
    }
}

static void join_gradients(Join *j, Set *s, size_t number)
{
    for (size_t i = 0; i < s->n; i++) {
        s->back[i] = back_of(j->g, s->weight[i]);
        s->d[i] = s->back[i] ? in_of(j->g, s->back[i], 0) : 0;
        s->of_weight[i] = s->d[i] ? of_weight(j->g, s->d[i], columns_of(j->g, s->weight[i])) : 0;
    }
    if (!backs_join(j, s) || !weights_join(j, s) || j->part[s->back[0]])
        return;
    s->last_back = largest(s->back, s->n);
    s->last_of_weight = largest(s->of_weight, s->n);
    mark(j, s->back, s->n, PART_BACK, number);
    mark(j, s->of_weight, s->n, PART_OF_WEIGHT, number);
}

static bool find(Join *j, const PlanOptions *how)
{
    bool any = false;
    find_sets(j, how);
    for (size_t i = 0; i < j->set.n; i++) {
        Set *s = &j->set.v[i];
        if (s->n < 2)
            continue;
        any = true;
        mark(j, s->product, s->n, PART_PRODUCT, i);
        join_gradients(j, s, i);
    }
    return any;
}

/* ---- the new graph ---- */

static Val side_by_side(Rewrite *r, const Val *v, size_t n)
{
    Val in[SET_MOST];
    for (size_t i = 0; i < n; i++)
        in[i] = r->map[v[i]];
    return ir_concat(r->to, in, n, shape_of(r->to, in[0])->rank - 1);
}

/* The columns of the joined result that are those of member i */
static Val own_columns(Rewrite *r, const Set *s, size_t i)
{
    int64_t begin = 0;
    for (size_t k = 0; k < i; k++)
        begin += columns_of(r->from, s->weight[k]).n;
    return ir_slice(r->to, s->whole, shape_of(r->to, s->whole)->rank - 1, begin, columns_of(r->from, s->weight[i]).n);
}

static Val joined(Graph *g, Val a, Val b, int64_t turned)
{
    return ir_node(g, OP_MATMUL, (Val[]){a, b}, 2, &(Attr){.i = turned}, NULL);
}

static Val join_product(Rewrite *r, Set *s, Val v)
{
    if (!s->columns) {
        s->columns = side_by_side(r, s->weight, s->n);
        s->whole = joined(r->to, r->map[in_of(r->from, v, 0)], s->columns, 0);
    }
    size_t i = 0;
    while (s->product[i] != v)
        i++;
    return own_columns(r, s, i);
}

/* All terms at the place of the last; nothing at those of the others */
static Val join_back(Rewrite *r, Set *s, Val v)
{
    if (v != s->last_back)
        return 0;
    s->gradients = side_by_side(r, s->d, s->n);
    return joined(r->to, s->gradients, s->columns, 2);
}

static Val join_of_weight(Rewrite *r, Set *s, Val v)
{
    if (v != s->last_of_weight)
        return 0;
    Val x = r->map[in_of(r->from, v, 0)], d = side_by_side(r, s->d, s->n);
    Shape rows = {.rank = 2, .d = {shape_of(r->to, x)->d[0], shape_of(r->to, s->columns)->d[1]}};
    s->whole = joined(r->to, x, ir_reshape(r->to, d, &rows), 1);
    for (size_t i = 0; i < s->n; i++)
        r->map[s->of_weight[i]] = own_columns(r, s, i);
    return r->map[v];
}

static Val rule(Rewrite *r, Val v, void *user)
{
    const Join *j = user;
    const Node *n = node_at(r->from, v);
    Set *s = &j->set.v[j->of[v]];
    switch ((Part)j->part[v]) {
    case PART_PRODUCT:
        return join_product(r, s, v);
    case PART_BACK:
        return join_back(r, s, v);
    case PART_OF_WEIGHT:
        return join_of_weight(r, s, v);
    case PART_NONE:
        break;
    }
    Val x = n->op == OP_ADD ? r->map[n->in[0]] : 1, y = n->op == OP_ADD ? r->map[n->in[1]] : 1;
    return x && y ? rewrite_same(r, v, NULL) : x ? x : y;
}

Graph *graph_join(const Graph *g, Arena *arena, const PlanOptions *how)
{
    size_t n = g->node.n;
    Join j = {.g = g, .arena = arena};
    j.users = NEW_ARRAY(arena, uint32_t, n);
    j.user = NEW_ARRAY(arena, Val, n);
    j.first = NEW_ARRAY(arena, Val, n);
    j.part = NEW_ARRAY(arena, uint8_t, n);
    j.of = NEW_ARRAY(arena, uint32_t, n);
    find_users(&j);
    if (!find(&j, how))
        return (Graph *)g;
    Rewrite r = rewrite_begin(g, arena, arena, n);
    return graph_simplify(graph_rewrite(&r, NULL, rule, &j), arena);
}
