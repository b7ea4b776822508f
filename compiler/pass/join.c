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
 *
 * Where nobody else reads x = y / r * g, with a number r for each row and one of g for each column, nobody needs x: the
 * few coefficients are divided by r, and the matrices, once for all rows, are multiplied by g. So products read y as it
 * lies, and the sums that r and g want backward are over a few coefficients, and over a matrix, instead of over all
 * rows once more.
 */
#include "join.h"

#include "compiler/graph/op.h"
#include "decompose.h"
#include "rewrite.h"
#include "simplify.h"

enum {
    SET_MOST = 8, /* products of one set */
    COLUMNS_MOST =
        16 /* columns of all: a fragment of tensor cores. More fill several anyway, and their tiles take room */
};

/* Products of one left factor by matrices of weights, in the order of their columns. All values are of the old graph
 * but for those that are made. */
typedef struct Set {
    size_t n;
    Val x, product[SET_MOST], weight[SET_MOST];
    /* Gradients: what comes back to product i, d; d W^T, which is added to those of the others; x^T d. */
    Val d[SET_MOST], back[SET_MOST], of_weight[SET_MOST];
    Val last_back, last_of_weight; /* the last ones, where all that they are made of is known; 0: not joined */
    /* x = y / r * g, and r, g as they are before they are repeated; 0: x is wanted as it is */
    Val y, r, g, unit; /* unit: y / r */
    Val dy;            /* d W^T * g / r */
    Val sum_r,
        sum_g; /* the sums of its products with unit over a row, and of those of d W^T with unit over all rows; 0: none */
    /* Made: [W1 | W2], times g; [d1 | d2], over r; x [W1 | W2]; x^T [d1 | d2] */
    Val columns, scaled, gradients, whole, of_columns;
} Set;

typedef enum Role {
    ROLE_NONE,
    ROLE_NOTHING,
    ROLE_PRODUCT,
    ROLE_BACK,
    ROLE_OF_WEIGHT,
    ROLE_DY,
    ROLE_SUM_R,
    ROLE_SUM_G
} Role;

typedef struct Join {
    const Graph *g;
    Arena *arena;
    const PlanOptions *how;
    VEC(Set) set;
    uint32_t *users;   /* by value: how many nodes and results read it, */
    Val *first, *last; /* and the first node and the last; 0: none */
    uint8_t *role;     /* by value: what it is */
    uint32_t *of;      /* in which set */
} Join;

static const Node *at(const Join *j, Val v) { return node_at(j->g, v); }
static bool is(const Join *j, Val v, Op op) { return v && at(j, v)->op == op; }
static Val in_of(const Graph *g, Val v, int k) { return node_at(g, v)->in[k]; }
static bool is_product(const Join *j, Val v, int64_t turned) { return is(j, v, OP_MATMUL) && at(j, v)->a.i == turned; }
static Dim columns_of(const Graph *g, Val w) { return shape_of(g, w)->d[1]; }
static Dim last_extent(const Graph *g, Val v) { return shape_of(g, v)->d[shape_of(g, v)->rank - 1]; }

static Val behind_reshape(const Graph *g, Val v)
{
    while (node_at(g, v)->op == OP_RESHAPE)
        v = in_of(g, v, 0);
    return v;
}

static void find_users(Join *j)
{
    const Graph *g = j->g;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; k < at(j, v)->n_in; k++) {
            Val x = at(j, v)->in[k];
            j->first[x] = j->users[x]++ ? j->first[x] : v;
            j->last[x] = v;
        }
    for (size_t i = 0; i < g->out.n; i++)
        j->users[g->out.v[i].value]++;
}

/* ---- which products ---- */

/* x W of a row by a kernel, W of weights */
static bool is_of_weights(const Join *j, Val v)
{
    return is_product(j, v, 0) && at(j, v)->shape.rank > 2 && is(j, in_of(j->g, v, 1), OP_EXT) &&
           shape_of(j->g, in_of(j->g, v, 1))->rank == 2 &&
           product_is_kernels(j->g, v, columns_of(j->g, in_of(j->g, v, 1)), j->how);
}

static void find_sets(Join *j)
{
    const Graph *g = j->g;
    uint32_t *set_of = NEW_ARRAY(j->arena, uint32_t, g->node.n); /* by left factor: number and 1 */
    for (Val v = 1; v < g->node.n; v++) {
        if (!is_of_weights(j, v))
            continue;
        Val x = in_of(g, v, 0);
        if (!set_of[x]) {
            vec_push(j->arena, &j->set, (Set){.x = x});
            set_of[x] = (uint32_t)j->set.n;
        }
        Set *s = &j->set.v[set_of[x] - 1];
        if (s->n < SET_MOST) {
            s->product[s->n] = v;
            s->weight[s->n] = in_of(g, v, 1);
        }
        s->n++;
    }
}

/* Several, which fit beside each other, of matrices that are known before the first is wanted? */
static bool products_join(const Join *j, const Set *s)
{
    Dim all = DIM(0);
    for (size_t i = 0; i < s->n && s->n <= SET_MOST; i++) {
        all.n += columns_of(j->g, s->weight[i]).n;
        if (s->weight[i] > s->product[0])
            return false;
    }
    return s->n >= 2 && s->n <= SET_MOST && all.n <= COLUMNS_MOST &&
           product_is_kernels(j->g, s->product[0], all, j->how);
}

/* ---- their gradients ---- */

/* d W^T; 0 where there is none or several */
static Val back_of(const Join *j, Val weight)
{
    Val found = 0;
    for (Val v = j->first[weight]; v && v <= j->last[weight]; v++)
        if (is_product(j, v, 2) && in_of(j->g, v, 1) == weight) {
            if (found)
                return 0;
            found = v;
        }
    return found;
}

/* x^T d over all rows */
static Val of_weight(const Join *j, const Set *s, Val d, Val weight)
{
    for (Val r = j->first[d]; r && r <= j->last[d]; r++) {
        Val v = is(j, r, OP_RESHAPE) && in_of(j->g, r, 0) == d ? j->first[r] : 0;
        if (is_product(j, v, 1) && in_of(j->g, v, 1) == r && behind_reshape(j->g, in_of(j->g, v, 0)) == s->x &&
            at(j, v)->shape.rank == 2 && shape_eq(&at(j, v)->shape, shape_of(j->g, weight)))
            return v;
    }
    return 0;
}

/* The sum that v is a term of, and of nothing else. */
static Val sum_of(const Join *j, Val v)
{
    while (j->users[v] == 1 && is(j, j->last[v], OP_ADD))
        v = j->last[v];
    return v;
}

static size_t terms_of(const Join *j, Val v, Val sum)
{
    return is(j, v, OP_ADD) && sum_of(j, v) == sum
               ? terms_of(j, in_of(j->g, v, 0), sum) + terms_of(j, in_of(j->g, v, 1), sum)
               : 1;
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

/* Does nobody read one before the last is there? */
static bool weights_join(const Join *j, const Set *s)
{
    Val last = largest(s->of_weight, s->n);
    for (size_t i = 0; i < s->n; i++)
        if (!s->of_weight[i] || in_of(j->g, s->of_weight[i], 0) != in_of(j->g, s->of_weight[0], 0) ||
            (j->first[s->of_weight[i]] && j->first[s->of_weight[i]] <= last))
            return false;
    return true;
}

static void find_gradients(const Join *j, Set *s)
{
    for (size_t i = 0; i < s->n; i++) {
        s->back[i] = back_of(j, s->weight[i]);
        s->d[i] = s->back[i] ? in_of(j->g, s->back[i], 0) : 0;
        s->of_weight[i] = s->d[i] ? of_weight(j, s, s->d[i], s->weight[i]) : 0;
    }
    if (!backs_join(j, s) || !weights_join(j, s))
        return;
    s->last_back = largest(s->back, s->n);
    s->last_of_weight = largest(s->of_weight, s->n);
}

/* ---- what x is made of ---- */

/* What v repeats along all axes but the last, or along the last alone; 0: it does something else */
static Val repeated(const Join *j, Val v, bool along_last)
{
    if (!is(j, v, OP_BROADCAST))
        return 0;
    Val from = in_of(j->g, v, 0);
    const Shape *s = shape_of(j->g, from);
    for (int i = 0; i < s->rank; i++)
        if (dim_eq(s->d[i], DIM(1)) != ((i == s->rank - 1) == along_last) && !dim_eq(at(j, v)->shape.d[i], DIM(1)))
            return 0;
    return s->rank == at(j, v)->shape.rank ? from : 0;
}

/* The node `op` of v and `by`, in this order or, of a product, the other; 0: none of its two first users is it */
static Val user_with(const Join *j, Val v, Op op, Val by)
{
    const Val user[2] = {j->first[v], j->last[v]};
    for (int i = 0; i < 2; i++)
        if (is(j, user[i], op)) {
            Val a = in_of(j->g, user[i], 0), b = in_of(j->g, user[i], 1);
            if ((a == v && b == by) || (op == OP_MUL && a == by && b == v))
                return user[i];
        }
    return 0;
}

/* The sum over those axes that is the only one to read v; 0: none is */
static Val only_sum(const Join *j, Val v, bool last)
{
    Val sum = v && j->users[v] == 1 ? j->last[v] : 0;
    if (!is(j, sum, OP_SUM))
        return 0;
    uint32_t own = (uint32_t)1 << (at(j, v)->shape.rank - 1);
    return at(j, sum)->a.axes == (last ? own : own - 1) ? sum : 0;
}

/* Is the gradient of x read for y and g alone? */
static bool gradients_scale(const Join *j, Set *s, Val root, Val gain)
{
    Val dx = sum_of(j, s->back[0]), for_y = user_with(j, dx, OP_MUL, gain), for_g = user_with(j, dx, OP_MUL, s->unit);
    if (terms_of(j, dx, dx) != s->n || !for_y || j->users[for_y] != 1 || j->users[dx] != (for_g ? 2 : 1))
        return false;
    s->dy = user_with(j, for_y, OP_DIV, root);
    s->sum_g = only_sum(j, for_g, false);
    s->sum_r = s->dy ? only_sum(j, user_with(j, s->dy, OP_MUL, s->unit), true) : 0;
    return s->dy && (!for_g || s->sum_g);
}

static void find_scales(const Join *j, Set *s)
{
    if (!is(j, s->x, OP_MUL))
        return;
    Val gain = in_of(j->g, s->x, 1);
    s->unit = in_of(j->g, s->x, 0);
    Val g = repeated(j, gain, false), root = is(j, s->unit, OP_DIV) ? in_of(j->g, s->unit, 1) : 0,
        r = repeated(j, root, true);
    size_t readers = s->n;
    if (s->last_back) {
        Val rows = in_of(j->g, s->of_weight[0], 0);
        if (rows == s->x || j->users[rows] != s->n || !gradients_scale(j, s, root, gain))
            return;
        readers++;
    }
    if (!g || !r || j->users[s->x] != readers)
        return;
    s->y = in_of(j->g, s->unit, 0);
    s->g = g;
    s->r = r;
}

/* ---- all of them ---- */

static void mark(Join *j, const Val *v, size_t n, Role role, size_t set)
{
    for (size_t i = 0; i < n; i++) {
        j->role[v[i]] = (uint8_t)role;
        j->of[v[i]] = (uint32_t)set;
    }
}

static void mark_scaled(Join *j, Set *s, size_t set)
{
    Val dx = sum_of(j, s->back[0]),
        nothing[2] = {in_of(j->g, s->dy, 0), s->sum_g ? in_of(j->g, s->sum_g, 0) : in_of(j->g, s->dy, 0)};
    mark(j, &dx, 1, ROLE_NOTHING, set);
    mark(j, nothing, 2, ROLE_NOTHING, set);
    mark(j, &s->dy, 1, ROLE_DY, set);
    mark(j, &s->sum_r, s->sum_r != 0, ROLE_SUM_R, set);
    mark(j, &s->sum_g, s->sum_g != 0, ROLE_SUM_G, set);
}

static bool find(Join *j)
{
    bool any = false;
    find_sets(j);
    for (size_t i = 0; i < j->set.n; i++) {
        Set *s = &j->set.v[i];
        if (!products_join(j, s))
            continue;
        any = true;
        mark(j, s->product, s->n, ROLE_PRODUCT, i);
        find_gradients(j, s);
        find_scales(j, s);
        if (!s->last_back)
            continue;
        mark(j, s->back, s->n, ROLE_BACK, i);
        mark(j, s->of_weight, s->n, ROLE_OF_WEIGHT, i);
        if (s->y)
            mark_scaled(j, s, i);
    }
    return any;
}

/* ---- the new graph ---- */

static Val side_by_side(Rewrite *r, const Val *v, size_t n)
{
    Val in[SET_MOST] = {0};
    for (size_t i = 0; i < n; i++)
        in[i] = r->map[v[i]];
    return ir_concat(r->to, in, n, shape_of(r->to, in[0])->rank - 1);
}

/* The columns of a joined value that are those of member i */
static Val own_columns(Rewrite *r, const Set *s, Val whole, size_t i)
{
    int64_t begin = 0;
    for (size_t k = 0; k < i; k++)
        begin += columns_of(r->from, s->weight[k]).n;
    return ir_slice(r->to, whole, shape_of(r->to, whole)->rank - 1, begin, columns_of(r->from, s->weight[i]).n);
}

static Val multiplied(Graph *g, Val a, Val b, int64_t turned)
{
    return ir_node(g, OP_MATMUL, (Val[]){a, b}, 2, &(Attr){.i = turned}, NULL);
}

/* g of a matrix's rows: a column */
static Val gain_column(Rewrite *r, const Set *s)
{
    Shape column = {.rank = 2, .d = {last_extent(r->from, s->x), DIM(1)}};
    return ir_reshape(r->to, r->map[s->g], &column);
}

static Val over_root(Rewrite *r, const Set *s, Val v) { return s->y ? ir_binary(r->to, OP_DIV, v, r->map[s->r]) : v; }

static Val make_product(Rewrite *r, Set *s, Val v)
{
    if (!s->columns) {
        s->columns = side_by_side(r, s->weight, s->n);
        s->scaled = s->y ? ir_binary(r->to, OP_MUL, s->columns, gain_column(r, s)) : s->columns;
        s->whole = over_root(r, s, multiplied(r->to, r->map[s->y ? s->y : s->x], s->scaled, 0));
    }
    size_t i = 0;
    while (s->product[i] != v)
        i++;
    return own_columns(r, s, s->whole, i);
}

static Val gradients(Rewrite *r, Set *s)
{
    if (!s->gradients)
        s->gradients = over_root(r, s, side_by_side(r, s->d, s->n));
    return s->gradients;
}

static Val of_columns(Rewrite *r, Set *s)
{
    if (!s->of_columns) {
        Val d = gradients(r, s), x = r->map[s->y ? s->y : s->x];
        Shape rows = {.rank = 2,
                      .d = {shape_of(r->from, in_of(r->from, s->of_weight[0], 0))->d[0], last_extent(r->from, s->x)}};
        x = ir_reshape(r->to, x, &rows);
        rows.d[1] = last_extent(r->to, d);
        s->of_columns = multiplied(r->to, x, ir_reshape(r->to, d, &rows), 1);
    }
    return s->of_columns;
}

/* All are made where the last of them was. */
static Val make_of_weight(Rewrite *r, Set *s, Val v)
{
    if (v != s->last_of_weight)
        return 0;
    Val all = of_columns(r, s);
    all = s->y ? ir_binary(r->to, OP_MUL, all, gain_column(r, s)) : all;
    for (size_t i = 0; i < s->n; i++)
        r->map[s->of_weight[i]] = own_columns(r, s, all, i);
    return r->map[v];
}

static Val make_sum_r(Rewrite *r, Set *s, Val v)
{
    Val x = ir_binary(r->to, OP_MUL, gradients(r, s), s->whole);
    return ir_sum(r->to, x, node_at(r->from, v)->a.axes, true);
}

static Val make_sum_g(Rewrite *r, Set *s, Val v)
{
    Val x = ir_binary(r->to, OP_MUL, s->columns, of_columns(r, s));
    return ir_reshape(r->to, ir_sum(r->to, x, 2, true), &node_at(r->from, v)->shape);
}

static Val rule(Rewrite *r, Val v, void *user)
{
    const Join *j = user;
    const Node *n = node_at(r->from, v);
    if (!j->set.n)
        return 0;
    Set *s = &j->set.v[j->of[v]];
    switch ((Role)j->role[v]) {
    case ROLE_NOTHING: return 0;
    case ROLE_PRODUCT: return make_product(r, s, v);
    case ROLE_BACK: return v == s->last_back && !s->y ? multiplied(r->to, gradients(r, s), s->scaled, 2) : 0;
    case ROLE_OF_WEIGHT: return make_of_weight(r, s, v);
    case ROLE_DY: return multiplied(r->to, gradients(r, s), s->scaled, 2);
    case ROLE_SUM_R: return make_sum_r(r, s, v);
    case ROLE_SUM_G: return make_sum_g(r, s, v);
    case ROLE_NONE: break;
    }
    /* a sum that has lost a term */
    Val x = n->op == OP_ADD ? r->map[n->in[0]] : 1, y = n->op == OP_ADD ? r->map[n->in[1]] : 1;
    return x && y ? rewrite_same(r, v, NULL) : x ? x : y;
}

static bool is_concat_of(const Graph *g, Val v)
{
    while (node_at(g, v)->op == OP_MUL)
        v = in_of(g, v, 0);
    return node_at(g, v)->op == OP_CONCAT;
}

bool product_is_joined(const Graph *g, Val v, const PlanOptions *how)
{
    const Node *n = node_at(g, v);
    return n->op == OP_MATMUL && n->a.i == 0 && n->shape.rank > 2 && shape_of(g, n->in[1])->rank == 2 &&
           is_concat_of(g, n->in[1]) && product_is_kernels(g, v, columns_of(g, n->in[1]), how);
}

const Graph *graph_join(const Graph *g, Arena *arena, const PlanOptions *how)
{
    if (!plan_has_tensor_cores(how) || how->no_fusion)
        return g;
    size_t n = g->node.n;
    Join j = {.g = g, .arena = arena, .how = how};
    j.users = NEW_ARRAY(arena, uint32_t, n);
    j.first = NEW_ARRAY(arena, Val, n);
    j.last = NEW_ARRAY(arena, Val, n);
    j.role = NEW_ARRAY(arena, uint8_t, n);
    j.of = NEW_ARRAY(arena, uint32_t, n);
    find_users(&j);
    if (!find(&j))
        return g;
    Rewrite r = rewrite_begin(g, arena, arena, n);
    return graph_simplify(graph_rewrite(&r, NULL, rule, &j), arena);
}
