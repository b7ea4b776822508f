/* op_table.c - ops.def as data, shape inference, the verifier and FLOP counts.
 *
 * In:  a node, made or to be made.     Out: its shape and type, or what is wrong with it.
 * The one idea: inference is the only place that knows what a legal node is; the builder, the
 * verifier and the reader of dumps all ask it.
 */
#include "op.h"

#include <math.h>

#define OP(id, name, cls, n_in, zero, slope, real, integer, vector, cost, lang, doc, attrs)                            \
    [OP_##id] = {name, CLASS_##cls, n_in, ZERO_##zero, ZERO_##slope, real, integer, vector, cost, lang, doc, attrs},
static const OpInfo op_infos[OP_COUNT] = {
    [OP_NONE] = {"none", CLASS_LEAF, 0, ZERO_UNKNOWN, ZERO_UNKNOWN, NULL, NULL, NULL, 0, false, "", ""},
#include "ops.def"
};
#undef OP

#define OP(id, ...) [OP_##id] = {shape_##id, grad_##id, eval_##id},
const OpRules op_rules[OP_COUNT] = {
#include "ops.def"
};
#undef OP

const OpInfo *op_info(Op op) { return &op_infos[(unsigned)op < OP_COUNT ? op : OP_NONE]; }

Op op_named(const char *name)
{
    for (int op = OP_NONE + 1; op < OP_COUNT; op++)
        if (!strcmp(op_infos[op].name, name))
            return (Op)op;
    return OP_NONE;
}

/* ---- inference ---- */

static const char *attrs_unused(const Ask *q)
{
    const Attr *a = q->a;
    if ((a->x != 0 && !op_uses(q->op, 'x')) || (a->y != 0 && !op_uses(q->op, 'y')) ||
        (a->z != 0 && !op_uses(q->op, 'z')))
        return "it has a number x, y or z that the operator does not use";
    if ((a->i && !op_uses(q->op, 'i')) || (a->j && !op_uses(q->op, 'j')))
        return "it has a number i or j that the operator does not use";
    if ((a->axes && !op_uses(q->op, 'A')) || (a->site && !op_uses(q->op, 'K')) ||
        ((a->n || a->data) && !op_uses(q->op, 'T')) || ((a->dim.n || a->dim.b || a->dim.t) && !op_uses(q->op, 'D')))
        return "it has axes, a site, data or an extent that the operator does not use";
    if (a->made && q->op != (a->made <= PRODUCT_OF_PARTS ? OP_MATMUL : OP_CONCAT))
        return "it is made as another operator is";
    if (a->n && !a->data)
        return "its data is missing";
    return NULL;
}

static const char *shape_sane(const Shape *s)
{
    if (s->rank > MAX_RANK)
        return "the rank is above 8";
    Dim size;
    for (int k = 0; k < s->rank; k++) {
        if (s->d[k].n < 0)
            return "an extent is negative";
        if (s->d[k].n == 0 && (s->d[k].b || s->d[k].t))
            return "an empty extent has a power of B or T";
    }
    return shape_size(s, &size) ? NULL : "the number of elements overflows";
}

const char *op_infer(const Ask *q, Shape *out, DType *dtype)
{
    if (q->op <= OP_NONE || q->op >= OP_COUNT)
        return "there is no such operator";
    const OpInfo *info = op_info(q->op);
    if (info->n_in >= 0 ? q->n_in != (size_t)info->n_in : q->n_in == 0)
        return "the number of inputs is wrong";
    for (size_t k = 0; k < q->n_in; k++)
        if (q->in[k] == 0 || q->in[k] >= q->g->node.n)
            return "an input is not a node of the graph";
    const char *wrong = attrs_unused(q);
    if (wrong)
        return wrong;
    bool given = op_uses(q->op, 'S');
    if (given != (q->given != NULL))
        return given ? "its shape must be given" : "its shape must not be given";
    if (given && (wrong = shape_sane(q->given)) != NULL)
        return wrong;
    memset(out, 0, sizeof *out);
    *dtype = DT_REAL;
    if ((wrong = op_rules[q->op].shape(q, out, dtype)) != NULL)
        return wrong;
    return shape_sane(out);
}

int op_aux_count(Op op) { return op == OP_SDPA ? 1 : op == OP_SDPA_GRAD ? 2 : 0; }

/* ---- the verifier ---- */

static _Noreturn void verify_fail(const Graph *g, Val v, const char *wrong)
{
    const Node *n = node_at(g, v);
    Buf b = buf_new(g->ctx->scratch);
    buf_printf(&b, "node %%%u = %s", (unsigned)v, op_info((Op)n->op)->name);
    for (size_t k = 0; k < n->n_in; k++) {
        buf_printf(&b, " %%%u", (unsigned)n->in[k]);
        if (n->in[k] < g->node.n)
            shape_print(&b, shape_of(g, n->in[k]));
    }
    buf_puts(&b, " : ");
    shape_print(&b, &n->shape);
    vwn_bug(g->ctx, "%s (%s): %s", b.s, n->name ? n->name : "no name", wrong);
}

static void verify_node(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    if (n->shape.rank > MAX_RANK)
        vwn_bug(g->ctx, "node %%%u has rank %d", (unsigned)v, n->shape.rank);
    for (size_t k = 0; k < n->n_in; k++)
        if (n->in[k] >= v)
            verify_fail(g, v, "an input does not come before the node");
    Ask q = {g, (Op)n->op, n->in, n->n_in, &n->a, NULL};
    if (n->op < OP_COUNT && op_uses((Op)n->op, 'S'))
        q.given = &n->shape;
    Shape s;
    DType dtype;
    const char *wrong = op_infer(&q, &s, &dtype);
    if (wrong)
        verify_fail(g, v, wrong);
    if (!shape_eq(&s, &n->shape))
        verify_fail(g, v, "its shape is not what its inputs give");
    if (dtype != (DType)n->dtype)
        verify_fail(g, v, "its type is not what its inputs give");
}

static void verify_tables(const Graph *g)
{
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *e = &g->ext.v[i];
        const char *wrong = shape_sane(&e->shape);
        if (!e->name || e->kind >= EXT_KINDS || wrong)
            vwn_bug(g->ctx, "external tensor %zu (%s): %s", i, e->name ? e->name : "no name",
                    wrong ? wrong : "no name, or an unknown kind");
        for (size_t j = 0; j < i && g->ext.n < 256; j++)
            if (g->ext.v[j].kind == e->kind && g->ext.v[j].name == e->name)
                vwn_bug(g->ctx, "external tensor %zu (%s) is there twice", i, e->name);
    }
    for (size_t i = 0; i < g->host.n; i++)
        if (!g->host.v[i])
            vwn_bug(g->ctx, "host scalar %zu is missing", i);
}

static void verify_output(const Graph *g, size_t i)
{
    const Output *o = &g->out.v[i];
    if (o->value == 0 || o->value >= g->node.n)
        vwn_bug(g->ctx, "output %zu (%s) is not a node of the graph", i, o->name ? o->name : "");
    if (o->ext < 0) {
        if (!o->name)
            vwn_bug(g->ctx, "output %zu has no name", i);
        return;
    }
    if ((size_t)o->ext >= g->ext.n)
        verify_fail(g, o->value, "it is stored into an external tensor that does not exist");
    const Ext *e = &g->ext.v[o->ext];
    const Node *n = node_at(g, o->value);
    if (!shape_eq(&e->shape, &n->shape) || e->dtype != (DType)n->dtype)
        verify_fail(g, o->value, "it does not fit the external tensor that it is stored into");
}

void graph_verify(const Graph *g)
{
    verify_tables(g);
    for (Val v = 1; v < g->node.n; v++)
        verify_node(g, v);
    for (size_t i = 0; i < g->out.n; i++)
        verify_output(g, i);
}

/* ---- FLOPs ---- */

static Dim product(const Shape *s, int from, int to)
{
    Dim p = DIM(1);
    for (int i = from; i < to; i++)
        if (!dim_mul(p, s->d[i], &p))
            return DIM(0);
    return p;
}

static Dim times(Dim x, Dim y)
{
    Dim p;
    return dim_mul(x, y, &p) ? p : DIM(0);
}

/* The full square; head sizes are numbers. The backward pass has the four products that the
 * gradients need; computing the scores again is not counted. */
static Dim attention_flops(const Graph *g, const Node *n, int64_t each)
{
    const Shape *q = shape_of(g, n->in[0]), *k = shape_of(g, n->in[1]), *v = shape_of(g, n->in[2]);
    Dim square = times(product(q, 0, 3), k->d[1]);
    return times(square, DIM(each * (q->d[3].n + v->d[3].n)));
}

Dim op_flops(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    const Shape *s = &n->shape;
    switch (n->op) {
    case OP_MATMUL: {
        const Shape *a = shape_of(g, n->in[0]);
        Dim k = a->d[a->rank - (n->a.i & 1 ? 2 : 1)];
        return times(times(product(s, 0, s->rank), k), DIM(2));
    }
    case OP_EXPERT_MATMUL: {
        Dim k = shape_of(g, n->in[1])->d[n->a.i ? 2 : 1];
        return times(times(product(s, 0, s->rank), k), DIM(2));
    }
    case OP_EXPERT_MATMUL_DW: {
        const Shape *dy = shape_of(g, n->in[1]);
        return times(times(product(dy, 0, dy->rank), s->d[1]), DIM(2));
    }
    case OP_SDPA: return attention_flops(g, n, 2);
    case OP_SDPA_GRAD: return attention_flops(g, n, 4);
    default: return DIM(0);
    }
}

double op_of_number(Ctx *ctx, Op op, double x)
{
    if (op_info(op)->class != CLASS_UNARY || op == OP_ROUND_TO)
        vwn_bug(ctx, "%s is no function of one number", op_info(op)->name);
    double y = NAN;
    Tensor in = {.dtype = DT_REAL, .size = 1, .real = &x}, out = {.dtype = DT_REAL, .size = 1, .real = &y};
    op_rules[op].eval(&(OpEval){.ctx = ctx, .in = (Tensor *const[]){&in}, .out = &out});
    return y;
}
