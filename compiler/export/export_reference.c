/* export_reference.c - a graph as a function of plain PyTorch, in float64.
 *
 * In:  the graph of a part of a model.   Out: a Python function of B, T, what it is given and its parameters.
 * The one idea: a node is a line, and what its operator is called there is a row of the table; PyTorch differentiates it. Operators of
 * gradients and of single tokens have no row: no part of a model is made of them.
 */
#include <inttypes.h>
#include <math.h>

#include "compiler/graph/op.h"
#include "export_build.h"

/* $a $b $c $d: the inputs; $i $j $x $y: attributes; $S: the shape; $A: the axes; $D: an extent; $P: a permutation; $T: a table; $n: the
 * extent of axis i; $L: all inputs. Words that PyTorch has not are functions of torch_reference.py. */
static const char *const text[OP_COUNT] = {
    [OP_CONST] = "real($T).reshape($S)",
    [OP_DIM] = "real($D)",
    [OP_IOTA] = "iota($S, $i)",
    [OP_NEG] = "-$a",
    [OP_EXP] = "torch.exp($a)",
    [OP_LOG] = "torch.log($a)",
    [OP_SQRT] = "torch.sqrt($a)",
    [OP_ABS] = "torch.abs($a)",
    [OP_SIGN] = "torch.sign($a)",
    [OP_FLOOR] = "torch.floor($a)",
    [OP_CEIL] = "torch.ceil($a)",
    [OP_ROUND] = "torch.round($a)",
    [OP_SIN] = "torch.sin($a)",
    [OP_COS] = "torch.cos($a)",
    [OP_TANH] = "torch.tanh($a)",
    [OP_SIGMOID] = "torch.sigmoid($a)",
    [OP_ERF] = "torch.erf($a)",
    [OP_RELU] = "F.relu($a)",
    [OP_GELU] = "F.gelu($a)",
    [OP_GELU_TANH] = "F.gelu($a, approximate=\"tanh\")",
    [OP_SILU] = "F.silu($a)",
    [OP_SOFTPLUS] = "torch.logaddexp($a, torch.zeros_like($a))",
    [OP_TO_REAL] = "$a.to(torch.float64)",
    [OP_TO_INT] = "$a.to(torch.int64)",
    [OP_ROUND_TO] = "round_to($a, $i)",
    [OP_STOP] = "$a.detach()",
    [OP_ADD] = "$a + $b",
    [OP_SUB] = "$a - $b",
    [OP_MUL] = "$a * $b",
    [OP_DIV] = "$a / $b",
    [OP_POW] = "torch.pow($a, $b)",
    [OP_MIN] = "torch.minimum($a, $b)",
    [OP_MAX] = "torch.maximum($a, $b)",
    [OP_MOD] = "torch.remainder($a, $b)",
    [OP_LT] = "mask($a < $b)",
    [OP_LE] = "mask($a <= $b)",
    [OP_EQ] = "mask($a == $b)",
    [OP_WHERE] = "torch.where($a != 0, $b, $c)",
    [OP_RESHAPE] = "$a.reshape($S)",
    [OP_PERMUTE] = "$a.permute($P)",
    [OP_BROADCAST] = "$a.expand($S)",
    [OP_SLICE] = "$a.narrow($i, $j, $n)",
    [OP_PAD] = "pad($a, $i, $j, $n)",
    [OP_CONCAT] = "torch.cat(($L), $i)",
    [OP_SHIFT] = "shift($a, $i, $j, $x)",
    [OP_ROLL] = "torch.roll($a, $j, $i)",
    [OP_SUM] = "torch.sum($a, $A, keepdim=True)",
    [OP_AMAX] = "torch.amax($a, $A, keepdim=True)",
    [OP_CUMSUM] = "cumsum($a, $i, $j)",
    [OP_MATMUL] = "matmul($a, $b, $i)",
    [OP_EXPERT_MATMUL] = "expert_matmul($a, $b, $c, $i)",
    [OP_GATHER] = "gather($a, $b)",
    [OP_PICK] = "pick($a, $b)",
    [OP_TOP_K] = "top_k($a, $j)",
    [OP_SDPA] = "sdpa(($L), $i, $j, $x, $y)",
};

static void put_real(Buf *b, double v)
{
    if (isnan(v) || isinf(v))
        buf_printf(b, "float(\"%s\")", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
    else
        buf_number(b, v);
}

static void put_dim(Buf *b, Dim d)
{
    buf_printf(b, "%" PRId64, d.n);
    for (int i = 0; i < d.b + d.t; i++)
        buf_puts(b, i < d.b ? " * B" : " * T");
}

static void put_shape(Buf *b, const Shape *s)
{
    buf_putc(b, '(');
    for (int i = 0; i < s->rank; i++) {
        put_dim(b, s->d[i]);
        buf_puts(b, ", ");
    }
    buf_putc(b, ')');
}

static void put_axes(Buf *b, uint32_t axes)
{
    buf_putc(b, '(');
    for (int i = 0; i < MAX_RANK; i++)
        if (axes >> i & 1)
            buf_printf(b, "%d, ", i);
    buf_putc(b, ')');
}

/* Numbers of the node's table. */
static void put_table(Buf *b, const Node *n, bool whole)
{
    buf_puts(b, "(");
    for (size_t i = 0; i < n->a.n; i++) {
        if (whole)
            buf_printf(b, "%" PRId64, (int64_t)n->a.data[i]);
        else
            put_real(b, n->a.data[i]);
        buf_puts(b, ", ");
    }
    buf_puts(b, ")");
}

static void put_word(Buf *b, const Node *n, char word)
{
    switch (word) {
    case 'a':
    case 'b':
    case 'c': buf_printf(b, "v%u", (unsigned)n->in[word - 'a']); break;
    case 'i': buf_printf(b, "%" PRId64, n->a.i); break;
    case 'j': buf_printf(b, "%" PRId64, n->a.j); break;
    case 'x': put_real(b, n->a.x); break;
    case 'y': put_real(b, n->a.y); break;
    case 'n': put_dim(b, n->shape.d[n->a.i]); break;
    case 'S': put_shape(b, &n->shape); break;
    case 'A': put_axes(b, n->a.axes); break;
    case 'D': put_dim(b, n->a.dim); break;
    case 'P': put_table(b, n, true); break;
    case 'T': put_table(b, n, false); break;
    case 'L':
        for (size_t i = 0; i < n->n_in; i++)
            buf_printf(b, "v%u, ", (unsigned)n->in[i]);
        break;
    default: buf_putc(b, word); break;
    }
}

/* A leaf is an argument: `a` and its number among those that are given, then the parameters. */
static void put_leaf(Buf *b, const Export *x, const Graph *g, const Node *n)
{
    const Ext *e = &g->ext.v[n->a.i];
    buf_printf(b, "a%zu", export_tensor(x, e->kind, e->name));
}

void export_reference(Buf *b, const Export *x, const char *name, size_t arguments, const Graph *g)
{
    buf_printf(b, "def %s(B, T", name);
    for (size_t i = 0; i < arguments; i++)
        buf_printf(b, ", a%zu", i);
    buf_puts(b, "):\n");
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        buf_printf(b, "    v%u = ", (unsigned)v);
        if (n->op == OP_EXT)
            put_leaf(b, x, g, n);
        else if (n->op == OP_FILL && n->a.j)
            buf_printf(b, "torch.tensor(%" PRId64 ")", (int64_t)n->a.x);
        else if (n->op == OP_FILL) {
            buf_puts(b, "real(");
            put_real(b, n->a.x);
            buf_putc(b, ')');
        } else if (!text[n->op])
            vwn_bug(g->ctx, "export: `%s` in a part of a model", op_info((Op)n->op)->name);
        else
            for (const char *c = text[n->op]; *c; c++) {
                if (*c == '$')
                    put_word(b, n, *++c);
                else
                    buf_putc(b, *c);
            }
        buf_putc(b, '\n');
    }
    buf_puts(b, "    return (");
    for (size_t i = 0; i < g->out.n; i++)
        buf_printf(b, "v%u, ", (unsigned)g->out.v[i].value);
    buf_puts(b, ")\n\n\n");
}
