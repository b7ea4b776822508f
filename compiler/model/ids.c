/* ids.c - which whole numbers an index can be.
 *
 * In:  the graph of a model.   Out: for each integer of it the smallest and the largest, or that nothing is known.
 * The one idea: data that an input does not fit is refused, so what is made of inputs has bounds, too, as far as these go.
 */
#include "model.h"

#include <math.h>

static const IdRange unknown = {-INFINITY, INFINITY, false};

static double most(Dim d, int64_t context) { return d.b ? INFINITY : (double)d.n * (d.t ? (double)context : 1); }

/* Ids of texts have a row in the table and a column in the head; labels may be negative. */
static IdRange of_input(const Model *m, const Ext *x)
{
    InputRange in = model_input_range(m, x->name);
    bool labels = !strcmp(x->name, "labels"), text = input_is_text(x) && (labels || !strcmp(x->name, "tokens"));
    int64_t below = text && model_ids(m) ? model_ids(m) : in.below;
    return (IdRange){!labels && (text || (in.below && !in.spared)) ? 0 : -INFINITY,
                     below ? (double)below - 1 : INFINITY, true};
}

static IdRange both(IdRange a, IdRange b)
{
    return (IdRange){fmin(a.low, b.low), fmax(a.high, b.high), a.known && b.known};
}

/* 0 * infinity is 0: the factor is the number 0. */
static double times(double a, double b) { return a == 0 || b == 0 ? 0 : a * b; }

static IdRange product(IdRange a, IdRange b)
{
    double p[] = {times(a.low, b.low), times(a.low, b.high), times(a.high, b.low), times(a.high, b.high)};
    return (IdRange){fmin(fmin(p[0], p[1]), fmin(p[2], p[3])), fmax(fmax(p[0], p[1]), fmax(p[2], p[3])),
                     a.known && b.known};
}

/* The sign of the result is that of b. */
static IdRange rest(IdRange a, IdRange b)
{
    if (a.low >= 0 && a.high < b.low)
        return (IdRange){a.low, a.high, a.known && b.known};
    return (IdRange){b.low < 0 ? b.low + 1 : 0, b.high > 0 ? b.high - 1 : 0,
                     b.known && (a.known || (isfinite(b.low) && isfinite(b.high)))};
}

static IdRange of_numbers(const Node *n)
{
    IdRange r = {INFINITY, -INFINITY, true};
    for (size_t i = 0; i < n->a.n; i++)
        r = both(r, (IdRange){n->a.data[i], n->a.data[i], true});
    return r;
}

static IdRange range_of(const Model *m, const Node *n, const IdRange *of)
{
    const Graph *g = m->graph;
    IdRange a = n->n_in ? of[n->in[0]] : unknown, b = n->n_in > 1 ? of[n->in[1]] : unknown;
    const Dim *d = n->n_in ? shape_of(g, n->in[0])->d : n->shape.d;
    switch ((Op)n->op) {
    case OP_EXT: return g->ext.v[n->a.i].kind == EXT_INPUT ? of_input(m, &g->ext.v[n->a.i]) : unknown;
    case OP_CONST: return of_numbers(n);
    case OP_FILL: return (IdRange){n->a.x, n->a.x, true};
    case OP_IOTA: return (IdRange){0, most(d[n->a.i], m->context) - 1, true};
    case OP_TOP_K: return (IdRange){0, most(d[shape_of(g, n->in[0])->rank - 1], m->context) - 1, true};
    case OP_LT:
    case OP_LE:
    case OP_EQ: return (IdRange){0, 1, true};
    case OP_TO_INT: return (IdRange){trunc(a.low), trunc(a.high), a.known};
    case OP_TO_REAL:
    case OP_STOP:
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_BROADCAST:
    case OP_SLICE:
    case OP_ROLL:
    case OP_AMAX: return a;
    case OP_NEG: return (IdRange){-a.high, -a.low, a.known};
    case OP_FLOOR: return (IdRange){floor(a.low), floor(a.high), a.known};
    case OP_ADD: return (IdRange){a.low + b.low, a.high + b.high, a.known && b.known};
    case OP_SUB: return (IdRange){a.low - b.high, a.high - b.low, a.known && b.known};
    case OP_MUL: return product(a, b);
    case OP_MOD: return n->dtype == DT_INT ? rest(a, b) : unknown;
    case OP_MIN: return (IdRange){fmin(a.low, b.low), fmin(a.high, b.high), a.known && b.known};
    case OP_MAX: return (IdRange){fmax(a.low, b.low), fmax(a.high, b.high), a.known && b.known};
    case OP_WHERE: return both(b, of[n->in[2]]);
    case OP_SHIFT: return both(a, (IdRange){n->a.x, n->a.x, true});
    case OP_PAD: return both(a, (IdRange){0, 0, true});
    case OP_CONCAT:
        for (uint16_t i = 1; i < n->n_in; i++)
            a = both(a, of[n->in[i]]);
        return a;
    default: return unknown;
    }
}

IdRange *model_id_ranges(const Model *m, Arena *arena)
{
    const Graph *g = m->graph;
    IdRange *of = NEW_ARRAY(arena, IdRange, g->node.n + 1);
    for (Val v = 1; v < (Val)g->node.n; v++)
        of[v] = range_of(m, node_at(g, v), of);
    return of;
}

int64_t model_ids(const Model *m)
{
    return m->table_rows && (!m->vocab || m->table_rows < m->vocab) ? m->table_rows : m->vocab;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

bool same_tokenizer(const TokenizerSpec *a, const TokenizerSpec *b)
{
    bool same = a->kind == b->kind && same_text(a->path, b->path) && same_text(a->merges, b->merges) &&
                same_text(a->split, b->split) && a->n_special == b->n_special;
    for (size_t i = 0; same && i < a->n_special; i++)
        same = same_text(a->special[i].text, b->special[i].text) && a->special[i].id == b->special[i].id;
    return same;
}

bool model_check_vocabulary(Ctx *ctx, const Model *m, int64_t entries, Span tokenizer)
{
    long long last = (long long)entries - 1, rows = (long long)m->table_rows, columns = (long long)m->vocab;
    bool table = rows && rows < entries;
    if (!table && !(columns && columns < entries))
        return true;
    const char *label =
        arena_printf(ctx->program, table ? "ids %lld to %lld have no row" : "ids %lld to %lld are never predicted",
                     table ? rows : columns, last);
    Diag *d = table ? diag_error(ctx, "E0601", m->table_at, label,
                                 "the tokenizer produces ids up to %lld but the embedding has %lld rows", last, rows)
                    : diag_error(ctx, "E0601", m->vocab_at, label,
                                 "the tokenizer produces ids up to %lld but the head has %lld columns", last, columns);
    int64_t round = entries > 1024 ? (entries + 127) / 128 * 128 : entries;
    diag_label(ctx, d, tokenizer, "%lld entries", (long long)entries);
    diag_help(ctx, d, "write `vocab = %lld`", (long long)round);
    return false;
}
