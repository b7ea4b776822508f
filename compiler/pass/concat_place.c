/* concat_place.c - rows into which older slices are copied behind the new one.
 *
 * In:  a graph, and which of its rows have slices of different age.
 * Out: rows whose new slice a kernel stores where it belongs, while the others are copied beside it, and functions
 *      of such rows, made in the same way.
 * The one idea: gradients of a state are slices of those of wider layers that came later, which no kernel has to
 * touch again. A kernel that stores the new slice alone, as a row of some pitch, is that of a row that has
 * no other slices. For this a function of the row that goes into a product, element by element, must be there
 * of the older slices as well: so a wider layer computes it of all its elements, not only of those that it reads.
 *
 * For devices alone, as in concat_same.c.
 */
#include "concat_buffers.h"
#include "compiler/graph/op.h"

enum { STEPS_MOST = 8 }; /* of such a function */

typedef struct Users {
    uint32_t *first; /* by value: its last edge, 0 = none */
    uint32_t *next;  /* by edge */
    Val *by;
} Users;

typedef struct PlaceFinding {
    ConcatLayout *a;
    Users users;
} PlaceFinding;

static Users find_users(const ConcatLayout *a)
{
    const Graph *g = a->g;
    size_t edges = 1;
    for (Val v = 1; v < g->node.n; v++)
        edges += node_at(g, v)->n_in;
    Users u = {NEW_ARRAY(a->arena, uint32_t, g->node.n), NEW_ARRAY(a->arena, uint32_t, edges),
               NEW_ARRAY(a->arena, Val, edges)};
    bool *live = NEW_ARRAY(a->arena, bool, g->node.n);
    uint32_t e = 1;
    for (size_t i = 0; i < g->out.n; i++)
        live[g->out.v[i].value] = true;
    for (Val v = (Val)g->node.n - 1; v > 0; v--)
        for (size_t k = 0; live[v] && k < node_at(g, v)->n_in; k++, e++) {
            live[node_at(g, v)->in[k]] = true;
            Val in = node_at(g, v)->in[k];
            u.by[e] = v;
            u.next[e] = u.first[in];
            u.first[in] = e;
        }
    return u;
}

/* One value for all rows and elements of v. */
static Val number_of(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    int last = n->shape.rank - 1;
    return n->op == OP_BROADCAST && dim_eq(shape_of(g, n->in[0])->d[last], DIM(1)) ? n->in[0] : 0;
}

/* Is v a function of x, element by element, and of constants? */
static bool is_step(const Graph *g, Val v, Val x)
{
    const Node *n = node_at(g, v);
    int of = 0;
    for (size_t k = 0; k < n->n_in; k++) {
        of += n->in[k] == x;
        if (n->in[k] != x && !number_of(g, n->in[k]))
            return false;
    }
    return op_is_map((Op)n->op) && of == 1 && shape_eq(&n->shape, shape_of(g, x));
}

/* Is v of x the same function as w of y? */
static bool same_step(const Graph *g, Val v, Val x, Val w, Val y)
{
    const Node *a = node_at(g, v), *b = node_at(g, w);
    if (!is_step(g, w, y) || !node_same_function(a, b))
        return false;
    for (size_t k = 0; k < a->n_in; k++)
        if ((a->in[k] == x) != (b->in[k] == y) || number_of(g, a->in[k]) != number_of(g, b->in[k]))
            return false;
    return true;
}

/* Is v read behind the next product alone? */
static bool read_later(const PlaceFinding *f, Val v)
{
    const ConcatLayout *a = f->a;
    for (uint32_t e = f->users.first[v]; e; e = f->users.next[e]) {
        Val by = f->users.by[e];
        bool view = op_is_view((Op)node_at(a->g, by)->op) || concat_moves(a->g, by);
        if (view ? !read_later(f, by) : a->level[by] == a->level[v])
            return false;
    }
    return true;
}

/* Who reads x in the kernel that makes it: false when it is more than one, or no step. *step: 0: nobody. */
static bool next_step(const PlaceFinding *f, Val x, Val *step)
{
    const ConcatLayout *a = f->a;
    *step = 0;
    for (uint32_t e = f->users.first[x]; e; e = f->users.next[e]) {
        Val v = f->users.by[e];
        bool view = op_is_view((Op)node_at(a->g, v)->op);
        if (concat_moves(a->g, v) || a->level[v] != a->level[x] || (view && read_later(f, v)))
            continue;
        if (*step || !is_step(a->g, v, x))
            return false;
        *step = v;
    }
    return true;
}

/* The steps of a row; what only the next step reads, is not made of the whole row. */
static bool find_steps(const PlaceFinding *f, Val row, Val *step, size_t *n)
{
    Val x = row, next;
    for (*n = 0; next_step(f, x, &next); x = next) {
        if (!next)
            return true;
        uint32_t e = f->users.first[x];
        if (*n == STEPS_MOST || (x != row && f->users.next[e]))
            return false;
        step[(*n)++] = next;
    }
    return false;
}

/* Is v the same function of x as the step of y, made before it, and of no other row? `of`: what x is the beginning of,
 * or x itself. */
static bool may_widen(const PlaceFinding *f, Val step, Val y, Val v, Val x, Val of)
{
    const ConcatLayout *a = f->a;
    return v < step && a->level[v] == a->level[x] && same_step(a->g, step, y, v, x) &&
           (!a->making[v] || a->making[v] == MAKE_OF_WHOLE) && (!a->after[of] || a->after[of] == v);
}

/* The same steps from `x` on, the beginning of a wider row. */
static bool follow(const PlaceFinding *f, Val x, Val whole, const Val *step, size_t n, Val *found)
{
    const Graph *g = f->a->g;
    for (size_t i = 0; i < n; i++) {
        Val y = node_at(g, step[i])->in[0];
        for (size_t k = 0; k < node_at(g, step[i])->n_in; k++)
            y = number_of(g, node_at(g, step[i])->in[k]) ? y : node_at(g, step[i])->in[k];
        found[i] = 0;
        for (uint32_t e = f->users.first[x]; e && !found[i]; e = f->users.next[e])
            if (may_widen(f, step[i], y, f->users.by[e], x, i ? x : whole))
                found[i] = f->users.by[e];
        if (!found[i])
            return false;
        x = found[i];
    }
    return true;
}

/* Those that are to be made of all of `whole`. */
static bool find_wide(const PlaceFinding *f, Val whole, const Val *step, size_t n, Val *found)
{
    for (uint32_t e = f->users.first[whole]; e; e = f->users.next[e]) {
        const Node *s = node_at(f->a->g, f->users.by[e]);
        if (s->op == OP_SLICE && s->a.i == s->shape.rank - 1 && s->a.j == 0 &&
            follow(f, f->users.by[e], whole, step, n, found))
            return true;
    }
    return false;
}

static void make_steps(ConcatLayout *a, Val of, const Val *step, size_t n, Making how)
{
    for (size_t i = 0; i < n; i++) {
        a->making[step[i]] = (uint8_t)how;
        a->before[step[i]] = of;
        a->after[of] = step[i];
        of = step[i];
    }
}

static bool new_first(const ConcatLayout *a, const Parts *parts)
{
    const Part *p = parts->v;
    for (size_t i = 1; i < parts->n; i++)
        if (a->level[p[i].of] >= a->level[p[0].of] || p[i].of == p[0].of || a->making[p[i].of])
            return false;
    const Shape *s = shape_of(a->g, p[0].of);
    return p[0].from == 0 && p[0].n == s->d[s->rank - 1].n && !a->making[p[0].of];
}

static bool place(const PlaceFinding *f, Val row)
{
    ConcatLayout *a = f->a;
    Parts parts = {0};
    Val step[STEPS_MOST];
    size_t n;
    if (a->making[row] || !concat_parts(a, row, &parts) || !new_first(a, &parts) || !find_steps(f, row, step, &n))
        return false;
    for (size_t i = 0; i < n; i++)
        if (a->making[step[i]])
            return false;
    Val *wide = NEW_ARRAY(a->arena, Val, parts.n * STEPS_MOST);
    for (size_t i = 1; i < parts.n && n; i++)
        if (!find_wide(f, parts.v[i].of, step, n, wide + i * STEPS_MOST))
            return false;
    for (size_t i = 1; i < parts.n; i++)
        make_steps(a, parts.v[i].of, wide + i * STEPS_MOST, n, MAKE_OF_WHOLE);
    a->making[row] = MAKE_IN_PLACE;
    make_steps(a, row, step, n, MAKE_AS_ROW);
    return true;
}

bool concat_find_places(ConcatLayout *a)
{
    size_t n = a->g->node.n;
    bool any = false;
    PlaceFinding f = {a, find_users(a)};
    a->before = NEW_ARRAY(a->arena, Val, n);
    a->after = NEW_ARRAY(a->arena, Val, n);
    a->made = NEW_ARRAY(a->arena, Val, n);
    for (Val v = 1; v < n; v++)
        any |= place(&f, v);
    return any;
}

/* ---- what they are made of ---- */

/* How far v is from the row or the whole that it is a function of. */
static Val origin(const ConcatLayout *a, Val v, size_t *steps)
{
    for (*steps = 0; a->before[v]; ++*steps)
        v = a->before[v];
    return v;
}

static Val step_of(const ConcatLayout *a, Val whole, size_t steps)
{
    for (; steps; steps--)
        whole = a->after[whole];
    return whole;
}

void concat_want_place(const ConcatLayout *a, Val v)
{
    const Node *n = node_at(a->g, v);
    Parts parts = {0};
    size_t steps;
    for (size_t k = 0; a->before[v] && k < n->n_in; k++)
        if (number_of(a->g, n->in[k]))
            a->wanted[number_of(a->g, n->in[k])] = true;
    if (a->before[v])
        a->wanted[a->before[v]] = true;
    if (a->making[v] == MAKE_OF_WHOLE)
        return;
    concat_find_parts(a, origin(a, v, &steps), &parts);
    for (size_t i = 0; i < parts.n; i++)
        a->wanted[i ? step_of(a, parts.v[i].of, steps) : parts.v[i].of] = true;
}

/* The step v of x, which is as wide as it is. */
static Val make_step(const ConcatLayout *a, Graph *g, Val v, Val x, const Val *map)
{
    const Node *n = node_at(a->g, v);
    Shape wide = *shape_of(g, x);
    Val in[3] = {0};
    for (size_t k = 0; k < n->n_in; k++) {
        Val number = number_of(a->g, n->in[k]);
        in[k] = number ? ir_broadcast(g, map[number], &wide) : x;
    }
    return ir_node(g, (Op)n->op, in, n->n_in, &n->a, NULL);
}

/* `new`, and behind it the older slices at this step of the function. */
static Val make_row(const ConcatLayout *a, Graph *g, const Parts *parts, Val new, size_t steps, const Val *map)
{
    Val *in = NEW_ARRAY(a->arena, Val, parts->n);
    int last = shape_of(g, new)->rank - 1;
    in[0] = new;
    for (size_t i = 1; i < parts->n; i++) {
        const Part *p = &parts->v[i];
        in[i] = ir_slice(g, steps ? a->made[step_of(a, p->of, steps)] : map[p->of], last, p->from, p->n);
    }
    return ir_node(g, OP_CONCAT, in, parts->n, &(Attr){.i = last, .made = CONCAT_IN_PLACE}, NULL);
}

Val concat_place(const ConcatLayout *a, Graph *g, Val v, const Val *map)
{
    Parts parts = {0};
    size_t steps;
    Val from = origin(a, v, &steps);
    if (a->making[v] == MAKE_OF_WHOLE) {
        const Shape *s = &node_at(a->g, v)->shape;
        a->made[v] = make_step(a, g, v, steps > 1 ? a->made[a->before[v]] : map[from], map);
        return ir_slice(g, a->made[v], s->rank - 1, 0, s->d[s->rank - 1].n);
    }
    concat_find_parts(a, from, &parts);
    Val new = map[parts.v[0].of];
    if (!steps)
        return make_row(a, g, &parts, new, 0, map);
    a->made[v] = make_step(a, g, v, steps > 1 ? a->made[a->before[v]] : new, map);
    return a->after[v] ? a->made[v] : make_row(a, g, &parts, a->made[v], steps, map);
}
