/* concat_buffers.c - rows that begin with what this layer left and go on with what older ones did.
 *
 * In:  a graph.     Out: the values of it that are put together by copies, from which slices of what.
 * The one idea: a state that is carried over depth leaves its slices in the memory of the layers that
 * made them, and how many there are depends on the widths of all layers. A kernel that reads each
 * slice in place would be another one for each layer. So the older slices are copied into
 * one buffer, a launch for each (a kernel of the library, or a device's driver), and the kernel
 * that computes the newest slice stores it, and the copy behind it, as one row. Then all layers read
 * the row by one kernel, and a boundary is one kernel, forward and backward: that of rows that
 * grow, whatever they grow by, or that of rows that shrink. For a device both are one
 * (concat_same.c, concat_place.c). Cost: a copy of each older slice. Test: tests/kernel/width_kernels.c.
 *
 * The rule: a concat along the last axis, or a slice of one, that something other than slices and
 * concats reads; its slices are more than LITERAL_MAX wide, at least one is a slice of what was there
 * before the last product, and another one is not. A row of this age behind which zeros are put for
 * readers behind the next product is stored with its zeros, for the same reason.
 */
#include "concat_buffers.h"

bool concat_moves(const Graph *g, Val v) { return node_at(g, v)->op == OP_SLICE || node_at(g, v)->op == OP_CONCAT; }

bool concat_is_library(const ConcatLayout *a, Val v)
{
    bool product = node_at(a->g, v)->op == OP_MATMUL;
    return product ? product_is_library(a->g, v, a->how) : node_is_library(a->g, v);
}

static void want_inputs(ConcatLayout *a, Val v)
{
    switch ((Making)a->making[v]) {
    case MAKE_OF_ROWS:
    case MAKE_OF_PIECE: concat_want_same(a, v); return;
    case MAKE_IN_PLACE:
    case MAKE_AS_ROW:
    case MAKE_OF_WHOLE: concat_want_place(a, v); return;
    case MAKE_AS_IT_IS: break;
    }
    for (size_t k = 0; k < node_at(a->g, v)->n_in; k++)
        a->wanted[node_at(a->g, v)->in[k]] = true;
}

static void find_makings(ConcatLayout *a)
{
    const Graph *g = a->g;
    a->making = NEW_ARRAY(a->arena, uint8_t, g->node.n);
    bool same = concat_find_same(a), placed = concat_find_places(a);
    if (!same && !placed)
        return;
    a->wanted = NEW_ARRAY(a->arena, bool, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        a->wanted[g->out.v[i].value] = true;
    for (Val v = (Val)g->node.n - 1; v > 0; v--)
        if (a->wanted[v])
            want_inputs(a, v);
}

ConcatLayout *concat_layout_new(Arena *arena, const Graph *g, const struct PlanOptions *how)
{
    ConcatLayout *a = NEW(arena, ConcatLayout);
    *a = (ConcatLayout){.g = g, .arena = arena, .how = how};
    a->level = NEW_ARRAY(arena, uint32_t, g->node.n);
    a->read = NEW_ARRAY(arena, bool, g->node.n);
    a->until = NEW_ARRAY(arena, uint32_t, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        for (size_t k = 0; k < n->n_in; k++) {
            uint32_t above = a->level[n->in[k]];
            a->level[v] = a->level[v] > above ? a->level[v] : above;
            a->read[n->in[k]] = a->read[n->in[k]] || !concat_moves(g, v);
        }
        a->level[v] += concat_is_library(a, v);
    }
    for (size_t i = 0; i < g->out.n; i++)
        a->read[g->out.v[i].value] = true;
    for (Val v = (Val)g->node.n - 1; v > 0; v--) {
        const Node *n = node_at(g, v);
        uint32_t with = concat_moves(g, v) ? a->until[v] : 0;
        for (size_t k = 0; k < n->n_in && !concat_moves(g, v); k++)
            with = a->level[n->in[k]] > with ? a->level[n->in[k]] : with;
        for (size_t k = 0; k < n->n_in; k++)
            a->until[n->in[k]] = a->until[n->in[k]] > with ? a->until[n->in[k]] : with;
    }
    if (plan_target(how)->threads)
        find_makings(a);
    return a;
}

static Dim last_extent(const Graph *g, Val v)
{
    const Shape *s = shape_of(g, v);
    return s->d[s->rank - 1];
}

/* Columns [from, from + n) of v, from left to right. */
static void find_parts(const ConcatLayout *a, Val v, int64_t from, int64_t n, Parts *out)
{
    const Node *x = node_at(a->g, v);
    int last = x->shape.rank - 1;
    if (x->op == OP_SLICE && x->a.i == last) {
        find_parts(a, x->in[0], from + x->a.j, n, out);
        return;
    }
    if (x->op != OP_CONCAT || x->a.i != last) {
        Part *p = out->n ? &out->v[out->n - 1] : NULL;
        if (p && p->of == v && p->from + p->n == from)
            p->n += n;
        else
            vec_push(a->arena, out, (Part){v, from, n});
        return;
    }
    int64_t begin = 0;
    for (size_t k = 0; k < x->n_in; k++) {
        int64_t end = begin + last_extent(a->g, x->in[k]).n;
        int64_t lo = from > begin ? from : begin, hi = from + n < end ? from + n : end;
        if (lo < hi)
            find_parts(a, x->in[k], lo - begin, hi - lo, out);
        begin = end;
    }
}

void concat_find_parts(const ConcatLayout *a, Val v, Parts *parts)
{
    find_parts(a, v, 0, last_extent(a->g, v).n, parts);
}

static uint32_t newest_level(const ConcatLayout *a, const Parts *parts)
{
    uint32_t newest = 0;
    for (size_t i = 0; i < parts->n; i++)
        newest = a->level[parts->v[i].of] > newest ? a->level[parts->v[i].of] : newest;
    return newest;
}

bool concat_parts(const ConcatLayout *a, Val v, Parts *parts)
{
    const Node *n = node_at(a->g, v);
    int last = n->shape.rank - 1;
    if (!a->read[v] || !concat_moves(a->g, v) || n->a.i != last || last == 0 || n->dtype != DT_REAL ||
        !dim_static(n->shape.d[last]))
        return false;
    concat_find_parts(a, v, parts);
    uint32_t newest = newest_level(a, parts);
    bool old = false, wide = parts->n > 1;
    for (size_t i = 0; i < parts->n; i++) {
        const Part *p = &parts->v[i];
        old = old || (a->level[p->of] < newest && p->n < last_extent(a->g, p->of).n);
        wide = wide && p->n > LITERAL_MAX;
    }
    return old && wide;
}

bool padded_for_later(const ConcatLayout *a, Val v)
{
    const Node *n = node_at(a->g, v);
    int last = n->shape.rank - 1;
    return n->op == OP_PAD && n->a.i == last && last > 0 && n->dtype == DT_REAL && dim_static(n->shape.d[last]) &&
           last_extent(a->g, n->in[0]).n > LITERAL_MAX && a->until[v] > a->level[v];
}

static Val part_in(Graph *g, const Part *p, const Val *map)
{
    const Shape *s = shape_of(g, map[p->of]);
    int last = s->rank - 1;
    return s->d[last].n == p->n ? map[p->of] : ir_slice(g, map[p->of], last, p->from, p->n);
}

Val concat_copies(Graph *g, const Val *part, size_t n)
{
    Attr a = {.i = shape_of(g, part[0])->rank - 1, .made = CONCAT_OF_COPIES};
    return ir_node(g, OP_CONCAT, part, n, &a, NULL);
}

bool concat_wants(const ConcatLayout *a, Val v) { return !a->wanted || a->wanted[v]; }

Val assembled(const ConcatLayout *a, Graph *g, Val v, Val *map)
{
    Parts parts = {0};
    if (a->wanted && a->making[v])
        return a->making[v] >= MAKE_IN_PLACE ? concat_place(a, g, v, map) : concat_same(a, g, v, map);
    if (!concat_parts(a, v, &parts))
        return 0;
    Attr attr = {.i = node_at(a->g, v)->shape.rank - 1, .made = CONCAT_OF_KERNEL};
    uint32_t newest = newest_level(a, &parts);
    Val *in = NEW_ARRAY(a->arena, Val, parts.n), *copy = NEW_ARRAY(a->arena, Val, parts.n);
    size_t n = 0, copies = 0;
    for (size_t i = 0; i < parts.n; i++) {
        Val part = part_in(g, &parts.v[i], map);
        bool is_new = a->level[parts.v[i].of] == newest;
        if (is_new) {
            in[n++] = part;
            continue;
        }
        copy[copies++] = part;
        if (i + 1 < parts.n && a->level[parts.v[i + 1].of] != newest)
            continue;
        in[n++] = concat_copies(g, copy, copies);
        copies = 0;
    }
    return ir_node(g, OP_CONCAT, in, n, &attr, NULL);
}
