/* inputs.c - what a model reads besides its weights.
 *
 * In:  the graph of a model.   Out: what an input is, and which values it may have.
 * The one idea: the range of an integer is found where it is an index, so no name of an input
 * stands for a range.
 */
#include "model.h"

#include "compiler/graph/op.h"

/* The input that a value is, but for its shape, and perhaps for negative numbers, which are 0; -1: another value. */
static int32_t input_of(const Graph *g, Val v, bool *from_0)
{
    const Node *n = node_at(g, v);
    double least;
    *from_0 = false;
    while (n->op == OP_RESHAPE || n->op == OP_BROADCAST || n->op == OP_PERMUTE || n->op == OP_SLICE ||
           n->op == OP_MAX) {
        *from_0 |= n->op == OP_MAX;
        if (n->op == OP_MAX && (!ir_is_uniform(g, n->in[1], &least) || least != 0))
            return -1;
        n = node_at(g, n->in[0]);
    }
    return n->op == OP_EXT && g->ext.v[n->a.i].kind == EXT_INPUT ? (int32_t)n->a.i : -1;
}

InputRange model_input_range(const Model *m, Name input)
{
    const Graph *g = m->graph;
    InputRange r = {0, true};
    for (size_t i = 1; i < g->node.n; i++) {
        const Node *n = &g->node.v[i];
        if (n->op != OP_GATHER && n->op != OP_PICK)
            continue;
        bool from_0;
        int32_t ext = input_of(g, n->in[1], &from_0);
        const Shape *s = shape_of(g, n->in[0]);
        Dim extent = s->d[n->op == OP_GATHER ? 0 : s->rank - 1];
        if (ext < 0 || g->ext.v[ext].name != input || !dim_static(extent))
            continue;
        r.below = r.below && r.below < extent.n ? r.below : extent.n;
        r.spared = r.spared && (n->op == OP_PICK || from_0);
    }
    return r;
}

bool input_is_text(const Ext *input)
{
    static const char *const names[] = {"tokens", "labels", "document"};
    const Shape *s = &input->shape;
    bool named = false;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        named = named || !strcmp(input->name, names[i]);
    return named && input->dtype == DT_INT && s->rank == 2 && dim_eq(s->d[0], DIM_B) && dim_eq(s->d[1], DIM_T);
}
