/* plan_copies.c - weights in 16 bits that stay from one run to the next.
 *
 * In:  groups that only round a weight for products.     Out: they come first, and write tensors that outlive the run.
 * The one idea: a weight changes once a step, so it need not be rounded in every micro-batch. Where it lies rounded is
 * a tensor of its own beside the weight. An update writes both; the launches here are made only where somebody else wrote
 * the weight. Copies that are read as one batch lie behind each other, for all programs that read them.
 */
#include "compiler/graph/op.h"
#include "plan_build.h"

/* The weight that a group rounds and does nothing else with, or 0. */
static Val weight_of(const Build *b, uint32_t id)
{
    const Group *gr = &b->f->group.v[id];
    if (gr->dead || gr->kind != GROUP_ROWS || gr->member.n != 1)
        return 0;
    Val v = gr->member.v[0];
    const Node *n = node_at(b->g, v);
    if (n->op != OP_ROUND_TO || !b->f->in_16bit || !b->f->in_16bit[v] || b->direct[v] >= 0 || fuse_empty(b->f, v))
        return 0;
    Val w = plan_strip(b, n->in[0]);
    while (node_at(b->g, w)->op == OP_PAD && fuse_rematerializes(b->f, id, w))
        w = plan_strip(b, node_at(b->g, w)->in[0]);
    const PlanExt *x = node_at(b->g, w)->op == OP_EXT ? &b->plan->ext[node_at(b->g, w)->a.i] : NULL;
    return x && x->ext.kind == EXT_PARAM && !x->stored && b->leaf[node_at(b->g, w)->a.i] == w ? w : 0;
}

void plan_choose_copies(Build *b, const PlanLayout *layout)
{
    const Fusion *f = b->f;
    size_t n = b->plan->n_ext, most = n + f->order.n;
    if (b->launch.n || !f->half || (layout->half && layout->half != f->half))
        return;
    PlanExt *ext = NEW_ARRAY(b->arena, PlanExt, most + 1);
    int32_t *buffer = NEW_ARRAY(b->arena, int32_t, most + 1);
    bool *has = NEW_ARRAY(f->tmp, bool, n + 1);
    memcpy(ext, b->plan->ext, n * sizeof *ext);
    memset(buffer, 0xff, (most + 1) * sizeof *buffer);
    memcpy(buffer, b->ext_buffer, n * sizeof *buffer);
    b->cast = NEW_ARRAY(b->arena, bool, f->group.n + 1);
    for (size_t i = 0; i < f->order.n; i++) {
        Val w = weight_of(b, f->order.v[i]);
        size_t of = w ? (size_t)node_at(b->g, w)->a.i : 0;
        if (!w || has[of])
            continue;
        has[of] = b->cast[f->order.v[i]] = true;
        Val v = f->group.v[f->order.v[i]].member.v[0];
        b->direct[v] = (int32_t)b->plan->n_ext;
        ext[b->plan->n_ext] = ext[of];
        ext[b->plan->n_ext].ext.kind = EXT_COPY;
        ext[b->plan->n_ext].ext.shape = plan_half_shape(&ext[of].ext.shape, b->f->half);
        ext[b->plan->n_ext].half = b->f->half;
        ext[b->plan->n_ext].elements = plan_elements(b, v);
        ext[b->plan->n_ext++].stored = true;
    }
    b->plan->ext = ext;
    b->ext_buffer = buffer;
}

void plan_write_copies(Graph *g, const PlanLayout *layout)
{
    size_t n = g->out.n;
    for (size_t i = 0; i < n && layout->half; i++) {
        Output o = g->out.v[i];
        if (o.ext < 0 || g->ext.v[o.ext].kind != EXT_PARAM)
            continue;
        Name name = g->ext.v[o.ext].name;
        if (!map_get(&layout->before[EXT_COPY], (uintptr_t)name))
            continue;
        g->name = name;
        ir_store(g,
                 ir_op(g, OP_ROUND_TO, plan_half_pad(g, o.value, layout->half), 0, 0, (Attr){.i = layout->half}, NULL),
                 EXT_COPY, name);
    }
    g->name = NULL;
}
