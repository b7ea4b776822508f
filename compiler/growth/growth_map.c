/* growth_map.c - rules of elementwise operators, and the walk over a graph.
 *
 * In:  the blocks of the inputs.   Out: the block of the result.
 * The one idea: numbers are computed by the operator's own rule, so f(0) and f'(0) are never written down twice;
 * factors move out of what is homogeneous; all else is a term as it stands.
 */
#include "growth_rules.h"
#include "compiler/graph/op.h"

#include <math.h>

static GrowthBlock any(const Values *x, Val why) { return (GrowthBlock){.kind = BLOCK_ANY, .why = why ? why : x->at}; }

/* All inputs are numbers. */
static GrowthBlock compute(Values *x, const Node *n, const GrowthBlock *in, int rank)
{
    double real[4] = {0};
    int64_t integer[4] = {0};
    Tensor t[4];
    Tensor *ins[3] = {&t[0], &t[1], &t[2]};
    for (size_t k = 0; k < n->n_in && k < 3; k++) {
        real[k] = block_number_of(&in[k]);
        integer[k] = (int64_t)real[k];
        t[k] = (Tensor){
            .dtype = (DType)node_at(x->g, n->in[k])->dtype, .size = 1, .real = &real[k], .integer = &integer[k]};
    }
    t[3] = (Tensor){.dtype = (DType)n->dtype, .size = 1, .real = &real[3], .integer = &integer[3]};
    op_rules[n->op].eval(&(OpEval){x->g->ctx, x->g, NULL, n, ins, &t[3], NULL, 0});
    if (n->dtype == DT_REAL && isnan(real[3]) && !x->undefined)
        x->undefined = x->at;
    return block_number(x, rank, n->dtype == DT_REAL ? real[3] : (double)integer[3]);
}

/* The operator as a term, with the factors inside but for `out`, which is moved out. */
static GrowthBlock as_term(Values *x, const Node *n, GrowthBlock *in, int rank, double out)
{
    for (size_t k = 0; k < n->n_in; k++)
        if (in[k].kind == BLOCK_ZERO)
            in[k] = (GrowthBlock){.kind = BLOCK_TERM, .c = 0, .term = term_one(x->terms, rank)};
    if (!blocks_align(x, in, n->n_in, rank))
        return any(x, 0);
    Shape s;
    GrowthBlock b = block_of_aligned(x, in, n->n_in, rank, &s);
    TermIn *ins = NEW_ARRAY(x->arena, TermIn, n->n_in + 1);
    for (size_t k = 0; k < n->n_in; k++)
        ins[k] = (TermIn){in[k].c, in[k].term};
    if (n->op == OP_MUL && ins[0].t > ins[1].t) {
        TermIn first = ins[0];
        ins[0] = ins[1];
        ins[1] = first;
    }
    Attr a = n->a;
    b.term = term_make(x->terms, (Op)n->op, (DType)n->dtype, ins, n->n_in, &a, &s);
    b.c = out;
    return b;
}

/* The factor that the operator lets through; 0: none. The factors of `in` become what is left. */
static double homogeneous(const Values *x, const Node *n, GrowthBlock *in)
{
    double c = in[0].c, d = n->n_in > 1 ? in[1].c : 1;
    switch ((Op)n->op) {
    case OP_MUL: in[0].c = in[1].c = 1; return c * d;
    case OP_DIV: in[0].c = in[1].c = 1; return c / d;
    case OP_SQRT: in[0].c = c > 0 ? 1 : c; return c > 0 ? sqrt(c) : 1;
    case OP_ABS: in[0].c = 1; return fabs(c);
    case OP_SIGN: in[0].c = 1; return c < 0 ? -1 : 1;
    case OP_RELU: in[0].c = c > 0 ? 1 : c; return c > 0 ? c : 1;
    case OP_POW:
        if (!block_is_number(x, &in[1]) || (c <= 0 && d != floor(d)))
            return 1;
        in[0].c = 1;
        return pow(c, d);
    case OP_MIN:
    case OP_MAX:
        if (in[0].kind != BLOCK_TERM || in[1].kind != BLOCK_TERM || c != d || c <= 0)
            return 1;
        in[0].c = in[1].c = 1;
        return c;
    default: return 1;
    }
}

static bool is_zero(const GrowthBlock *b) { return b->kind == BLOCK_ZERO; }

/* What lies within a range whatever the weights are, compared with a number: 0 or 1, or -1 where that is open. */
static double mask_by_range(const Values *x, const Node *n, const GrowthBlock *in)
{
    ValueRange r[2];
    if (!x->data || (n->op != OP_LT && n->op != OP_LE && n->op != OP_EQ))
        return -1;
    for (int i = 0; i < 2; i++) {
        bool number = block_is_number(x, &in[i]);
        if (!number && n->in[i] >= x->data->n_range)
            return -1;
        r[i] = number ? (ValueRange){block_number_of(&in[i]), block_number_of(&in[i])} : x->data->range[n->in[i]];
    }
    if (n->op == OP_EQ)
        return r[0].hi < r[1].lo || r[1].hi < r[0].lo ? 0 : -1;
    bool yes = n->op == OP_LT ? r[0].hi < r[1].lo : r[0].hi <= r[1].lo;
    bool no = n->op == OP_LT ? r[0].lo >= r[1].hi : r[0].lo > r[1].hi;
    return yes ? 1 : no ? 0 : -1;
}

GrowthBlock block_map(Values *x, const Node *n, const GrowthBlock *given, int rank)
{
    GrowthBlock in[3] = {{0}};
    bool numbers = true, unknown = false;
    uint16_t open = 0;
    Val why = 0;
    bool either = n->op == OP_WHERE && !is_zero(&given[1]) && !is_zero(&given[2]); /* as is decided */
    for (size_t k = 0; k < n->n_in; k++) {
        in[k] = given[k];
        open |= in[k].kind == BLOCK_ANY && !(either && k == 0) ? in[k].open : 0;
        numbers &= block_is_number(x, &in[k]);
        if (in[k].kind == BLOCK_ANY) {
            why = unknown ? why : in[k].why;
            unknown = true;
        }
    }
    Op op = (Op)n->op;
    if (op == OP_STOP)
        return n->a.i == STOP_DROPOUT && !x->drops ? block_number(x, rank, 1) : in[0];
    if (numbers)
        return compute(x, n, in, rank);
    if (op == OP_DIV && is_zero(&in[1]) && !x->undefined)
        x->undefined = x->at;
    if ((op == OP_MUL && (is_zero(&in[0]) || is_zero(&in[1]))) || (op == OP_DIV && is_zero(&in[0])))
        return (GrowthBlock){.kind = BLOCK_ZERO};
    if (op == OP_WHERE) {
        if (block_is_number(x, &in[0]))
            return in[is_zero(&in[0]) ? 2 : 1];
        if (is_zero(&in[1]) && is_zero(&in[2]))
            return in[1];
    }
    if (op == OP_ADD)
        return block_add(x, in[0], in[1], rank);
    if (op == OP_SUB) {
        in[1].c = -in[1].c;
        return block_add(x, in[0], in[1], rank);
    }
    double mask = unknown ? mask_by_range(x, n, in) : -1;
    if (mask >= 0)
        return block_number(x, rank, mask);
    if (unknown || (op == OP_DIV && is_zero(&in[1]))) {
        GrowthBlock b = any(x, why);
        b.open = open;
        return b;
    }
    if (op == OP_NEG) {
        in[0].c = -in[0].c;
        return in[0];
    }
    if (op == OP_MUL || op == OP_DIV) { /* by a number */
        if (block_is_number(x, &in[1])) {
            in[0].c = op == OP_MUL ? in[0].c * in[1].c : in[0].c / in[1].c;
            return in[0];
        }
        if (op == OP_MUL && block_is_number(x, &in[0])) {
            in[1].c *= in[0].c;
            return in[1];
        }
    }
    if ((op == OP_WHERE || op == OP_MIN || op == OP_MAX) && in[n->n_in - 1].kind == BLOCK_TERM &&
        in[n->n_in - 2].kind == BLOCK_TERM && in[n->n_in - 1].term == in[n->n_in - 2].term &&
        in[n->n_in - 1].c == in[n->n_in - 2].c &&
        !memcmp(in[n->n_in - 1].from, in[n->n_in - 2].from, sizeof in[0].from))
        return in[n->n_in - 1];
    double c = homogeneous(x, n, in);
    return as_term(x, n, in, rank, c);
}

GrowthBlock block_updated(Values *x, GrowthBlock w, GrowthBlock d, int rank, Name site, int64_t which)
{
    Val in[2] = {0};
    const Node n = {.op = OP_MIN, .dtype = DT_REAL, .n_in = 2, .in = in, .a = {.i = which, .site = site}};
    GrowthBlock both[2] = {w, d};
    return w.kind == BLOCK_ANY || d.kind == BLOCK_ANY ? any(x, 0) : as_term(x, &n, both, rank, 1);
}

GrowthBlock block_times(Values *x, GrowthBlock a, GrowthBlock b, int rank)
{
    Val in[2] = {0};
    const Node n = {.op = OP_MUL, .dtype = DT_REAL, .n_in = 2, .in = in};
    if (block_is_number(x, &a) && block_is_number(x, &b))
        return block_number(x, rank, block_number_of(&a) * block_number_of(&b));
    return block_map(x, &n, (GrowthBlock[]){a, b}, rank);
}

/* Whether a block is the same along axis 1. */
static bool is_still(const Values *x, Val v, const GrowthBlock *b) { return block_is_number(x, b) || x->of[v]->still; }

/* Whether the sums of the result over axis 1 are zero because those of an input are. */
static bool is_balanced(const Values *x, const Node *n, const GrowthBlock *in)
{
    bool a = in[0].balanced || in[0].kind == BLOCK_ZERO;
    if (n->shape.rank < 2 || dim_static(n->shape.d[1]))
        return false;
    switch ((Op)n->op) {
    case OP_NEG: return a;
    case OP_ADD:
    case OP_SUB: return a && (in[1].balanced || in[1].kind == BLOCK_ZERO);
    case OP_DIV: return a && is_still(x, n->in[1], &in[1]);
    case OP_MUL: return (a && is_still(x, n->in[1], &in[1])) || (in[1].balanced && is_still(x, n->in[0], &in[0]));
    default: return false;
    }
}

static const Node *behind_views(const Values *x, Val v)
{
    const Node *n = node_at(x->g, v);
    while (n->op == OP_BROADCAST || n->op == OP_RESHAPE)
        n = node_at(x->g, n->in[0]);
    return n;
}

/* Equal to a count along an axis: 1 at one of its places, which data decides. */
static uint16_t open_one_hot(const Values *x, const Node *n)
{
    for (int i = 0; n->op == OP_EQ && i < 2; i++) {
        const Node *of = behind_views(x, n->in[i]), *other = behind_views(x, n->in[1 - i]);
        int k = (int)of->a.i + n->shape.rank - of->shape.rank; /* views of a count put axes in front */
        bool data = op_info((Op)other->op)->class != CLASS_LEAF || other->op == OP_EXT;
        if (of->op == OP_IOTA && data && k >= 0)
            return (uint16_t)(1u << k);
    }
    return 0;
}

/* What is subtracted is the same value, without its gradient perhaps: the sum is zero, and its slope is not. */
static bool is_nothing(const Values *x, const Node *n)
{
    if (n->op != OP_ADD && n->op != OP_SUB)
        return false;
    Val a = n->in[0], b = n->in[1];
    for (int i = 0; i < 2 && n->op == OP_ADD; i++)
        if (node_at(x->g, n->in[i])->op == OP_NEG) {
            b = node_at(x->g, n->in[i])->in[0];
            a = n->in[1 - i];
        }
    if (n->op == OP_ADD && a == n->in[0] && b == n->in[1])
        return false;
    while (node_at(x->g, a)->op == OP_STOP)
        a = node_at(x->g, a)->in[0];
    while (node_at(x->g, b)->op == OP_STOP)
        b = node_at(x->g, b)->in[0];
    return a == b;
}

static bool is_mask(const Node *n) { return n->op == OP_LT || n->op == OP_LE || n->op == OP_EQ; }

static bool is_step(const Node *n)
{
    return n->op == OP_ROUND || n->op == OP_FLOOR || n->op == OP_CEIL || n->op == OP_TO_INT;
}

/* What is zero over a range of its input: over all that is near 0, or where a comparison with a number falls so. */
static uint16_t open_level(const Values *x, const Node *n, const GrowthBlock *in)
{
    bool ranged = x->data && n->n_in && n->in[0] < x->data->n_range;
    ValueRange r = ranged ? x->data->range[n->in[0]] : (ValueRange){-1, 1};
    switch ((Op)n->op) {
    case OP_ROUND:
    case OP_TO_INT: return 1u << OPEN_FOR_GOOD;
    case OP_FLOOR: return 1u << (r.lo >= 0 ? OPEN_FOR_GOOD : OPEN_CHANCE);
    case OP_CEIL: return 1u << (r.hi <= 0 ? OPEN_FOR_GOOD : OPEN_CHANCE);
    case OP_RELU:
    case OP_LT:
    case OP_LE: return 1u << OPEN_CHANCE;
    case OP_EQ: return node_at(x->g, n->in[0])->dtype == DT_REAL ? 1u << OPEN_CHANCE : 0;
    case OP_MIN:
    case OP_MAX: return is_zero(&in[0]) || is_zero(&in[1]) ? 1u << OPEN_CHANCE : 0;
    default: return 0;
    }
}

/* Where a comparison, or what has steps, was decided by numbers right after the step, small updates leave it so; whether they
 * do is a matter of data. NULL: it is none, or was decided by nothing else. */
static const GrowthValue *decided(const Values *x, const Node *n)
{
    bool itself = is_mask(n) || is_step(n);
    const Values *began = x->data ? x->data->began : NULL;
    return !began || (!itself && n->op != OP_WHERE) ? NULL : began->of[itself ? x->at : n->in[0]];
}

static GrowthBlock block_decided(Values *x, const Node *n, GrowthBlock b, const GrowthBlock *in, const GrowthBlock *was)
{
    if (b.kind != BLOCK_ANY || !block_is_number(x, was))
        return b;
    if (n->op != OP_WHERE) {
        if (n->op == OP_EQ || is_zero(was))
            b.open |= 1u << OPEN_FOR_GOOD;
        else if (n->op != OP_LE)
            b.open &= (uint16_t)~OPEN_STAYS;
    } else if (in[0].kind == BLOCK_ANY) {
        GrowthBlock sure = in[is_zero(was) ? 2 : 1];
        b.open = sure.kind == BLOCK_ZERO ? 1u << OPEN_FOR_GOOD : sure.kind == BLOCK_ANY ? sure.open : 0;
    }
    return b;
}

/* Whether a value has steps and no slope: then it is decided by others, and what it is compared with perhaps by the same. */
static bool is_flat(const Values *x, Val v, int depth)
{
    const Node *n = behind_views(x, v);
    if (n->op == OP_FLOOR || n->op == OP_CEIL || n->op == OP_ROUND || n->op == OP_SIGN || n->op == OP_LT ||
        n->op == OP_LE || n->op == OP_EQ)
        return true;
    bool flat = false, all = depth > 0 && op_is_map((Op)n->op);
    for (uint16_t i = n->op == OP_WHERE; all && i < n->n_in; i++) {
        bool here = is_flat(x, n->in[i], depth - 1);
        flat |= here;
        all = here || behind_views(x, n->in[i])->op == OP_FILL;
    }
    return all && (flat || n->op == OP_WHERE);
}

enum { DEEP = 6, MOST_ROOTS = 8 };
typedef struct Roots {
    Val of[MOST_ROOTS];
    size_t n;  /* MOST_ROOTS: and others */
    bool bent; /* it is more than their sum with factors */
} Roots;

/* The values of which one is computed element by element, without numbers. */
static void find_roots(const Values *x, Val v, int depth, Roots *r)
{
    const Node *n = behind_views(x, v);
    if (n->op == OP_FILL || r->n == MOST_ROOTS)
        return;
    bool map = depth > 0 && op_is_map((Op)n->op);
    int factors = 0;
    for (uint16_t i = 0; map && i < n->n_in; i++) {
        factors += behind_views(x, n->in[i])->op != OP_FILL;
        find_roots(x, n->in[i], depth - 1, r);
    }
    bool scales = (n->op == OP_MUL || n->op == OP_DIV) && factors == 1;
    r->bent |= map && !scales && n->op != OP_NEG && n->op != OP_ADD && n->op != OP_SUB;
    if (!map)
        r->of[r->n++] = (Val)(n - node_at(x->g, 0));
}

/* Whether both are functions of one and the same value and of nothing else: which of them is larger,
 * as of a value and its exponential, is perhaps always the same. */
static bool of_one_value(const Values *x, Val a, Val b)
{
    Roots r = {.n = 0};
    find_roots(x, a, DEEP, &r);
    find_roots(x, b, DEEP, &r);
    for (size_t i = 1; i < r.n; i++)
        if (r.of[i] != r.of[0])
            return false;
    return r.n > 1 && r.bent;
}

static uint16_t open_compared(const Values *x, const Node *n)
{
    bool compares = x->data && is_mask(n) && node_at(x->g, n->in[0])->dtype == DT_REAL;
    bool flat = compares && (is_flat(x, n->in[0], DEEP) || is_flat(x, n->in[1], DEEP));
    return flat || (compares && of_one_value(x, n->in[0], n->in[1])) ? 1u << OPEN_FOR_GOOD : 0;
}

/* Where one side of a comparison is never beyond the other, as 0 and a square, one answer is given where they are equal alone.
 * What is not zero for that answer alone is then a matter of data. */
static uint16_t open_tie(const Values *x, const Node *n, const GrowthBlock *in)
{
    if (!x->data || (n->op != OP_WHERE && n->op != OP_MUL))
        return 0;
    for (uint16_t i = 0; i < (n->op == OP_MUL ? 2 : 1); i++) {
        const Node *mask = behind_views(x, n->in[i]);
        bool where_false = n->op == OP_WHERE && is_zero(&in[1]), where_true = n->op == OP_MUL || is_zero(&in[2]);
        if ((mask->op != OP_LT && mask->op != OP_LE) || mask->in[0] >= x->data->n_range ||
            mask->in[1] >= x->data->n_range)
            continue;
        ValueRange a = x->data->range[mask->in[0]], b = x->data->range[mask->in[1]];
        if (mask->op == OP_LT ? where_false && a.hi <= b.lo : where_true && a.lo >= b.hi)
            return 1u << OPEN_FOR_GOOD;
    }
    return 0;
}

GrowthValue *rule_map(Values *x, const Node *n)
{
    Cuts cuts[MAX_RANK] = {{0}};
    const int r = n->shape.rank;
    const size_t n_in = n->n_in;
    if (is_nothing(x, n))
        return value_uniform(x, &n->shape, (GrowthBlock){.kind = BLOCK_ZERO});
    const GrowthValue *was = decided(x, n);
    for (size_t i = 0; i < n_in; i++)
        for (int k = 0; k < r; k++)
            cuts[k] = i ? cuts_union(x, cuts[k], x->of[n->in[i]]->axis[k]) : x->of[n->in[i]]->axis[k];
    for (int k = 0; was && k < r; k++)
        cuts[k] = cuts_union(x, cuts[k], was->axis[k]);
    was = was ? value_refine(x, was, cuts) : NULL;
    const GrowthValue *in[3] = {0};
    for (size_t i = 0; i < n_in; i++) {
        const GrowthValue *v = x->of[n->in[i]];
        bool same = true;
        for (int k = 0; k < r; k++)
            same &= v->axis[k].n == cuts[k].n;
        in[i] = same ? v : value_refine(x, v, cuts);
    }
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    uint16_t open = open_one_hot(x, n) | open_compared(x, n);
    for (size_t i = 0; i < out->n; i++) {
        GrowthBlock b[3] = {{0}};
        for (size_t k = 0; k < n_in; k++)
            b[k] = in[k]->block[i];
        out->block[i] = block_map(x, n, b, r);
        if (out->block[i].kind == BLOCK_ANY && x->data)
            out->block[i].open |= open_level(x, n, b) | open_tie(x, n, b);
        if (was)
            out->block[i] = block_decided(x, n, out->block[i], b, &was->block[i]);
        out->block[i].open |= out->block[i].kind == BLOCK_ANY ? open : 0;
        out->block[i].balanced = out->block[i].kind == BLOCK_ANY && is_balanced(x, n, b);
    }
    return value_tidy(x, out);
}

/* ---- the walk ---- */

/* A leaf or an operator without a rule of its own, of whole inputs; else zero where a linear one has zero, or any. */
static GrowthValue *rule_whole(Values *x, const Node *n)
{
    bool whole = true, first_zero = false, unknown = false;
    TermIn *in = NEW_ARRAY(x->arena, TermIn, n->n_in + 1u);
    Val why = 0;
    for (size_t i = 0; i < n->n_in; i++) {
        const GrowthValue *v = x->of[n->in[i]];
        const GrowthBlock *b = &v->block[0];
        bool zero = true;
        for (size_t k = 0; k < v->n; k++) {
            zero &= v->block[k].kind == BLOCK_ZERO;
            if (v->block[k].kind == BLOCK_ANY && !unknown) {
                unknown = true;
                why = v->block[k].why;
            }
        }
        first_zero |= i == 0 && zero;
        whole &= v->n == 1 && b->kind != BLOCK_ANY;
        Term t = b->kind == BLOCK_TERM ? b->term : term_one(x->terms, v->shape.rank);
        for (int k = 0; k < v->shape.rank && whole; k++) {
            whole = !block_varies(x, b, k) || (b->from[k] == 0 && dim_eq(term_dim(x, t, k), v->shape.d[k]));
            if (whole)
                t = term_spread(x->terms, t, k, v->shape.d[k]);
        }
        in[i] = (TermIn){b->kind == BLOCK_TERM ? b->c : 0, t};
    }
    if (first_zero &&
        (n->op == OP_PICK || n->op == OP_PLACE || n->op == OP_SHIFT || n->op == OP_ROLL || n->op == OP_CUMSUM ||
         n->op == OP_DYNAMIC_SLICE) &&
        n->a.x == 0)
        return value_uniform(x, &n->shape, (GrowthBlock){.kind = BLOCK_ZERO});
    if (!whole)
        return value_uniform(x, &n->shape, any(x, why));
    Attr a = n->a;
    GrowthBlock b = {.kind = BLOCK_TERM, .c = 1};
    b.term = term_make(x->terms, (Op)n->op, (DType)n->dtype, in, n->n_in, &a, &n->shape);
    return value_uniform(x, &n->shape, b);
}

/* The same along every axis but one, along which it is whole. */
static GrowthValue *rule_along(Values *x, const Node *n)
{
    const GrowthValue *v = x->of[n->in[0]];
    int k = (int)n->a.i;
    if (v->axis[k].n > 1)
        return rule_whole(x, n);
    GrowthValue *out = value_cut(x, &n->shape, v->axis);
    for (size_t i = 0; i < v->n; i++) {
        GrowthBlock b = v->block[i];
        if (b.kind == BLOCK_TERM) {
            Term t = term_spread(x->terms, b.term, k, v->shape.d[k]);
            if (b.from[k] || !dim_eq(term_dim(x, t, k), v->shape.d[k])) {
                b = any(x, 0);
            } else {
                Attr a = n->a;
                double c = a.x == 0 ? b.c : 1;
                b.term = term_make(x->terms, (Op)n->op, (DType)n->dtype, &(TermIn){b.c / c, t}, 1, &a,
                                   &term_at(x->terms, t)->shape);
                b.c = c;
            }
        } else if (b.kind == BLOCK_ZERO && n->a.x != 0) {
            b = any(x, 0);
        }
        out->block[i] = b;
    }
    return value_tidy(x, out);
}

/* Rows of a table: those with an index that both models have stand where they stood. */
static GrowthValue *rule_gather(Values *x, const Node *n)
{
    const GrowthValue *t = x->of[n->in[0]], *idx = x->of[n->in[1]];
    const GrowthBlock *at = &idx->block[0];
    int ri = idx->shape.rank, r = n->shape.rank;
    if (idx->n > 1 || at->kind != BLOCK_TERM || at->c != 1)
        return rule_whole(x, n);
    Cuts cuts[MAX_RANK] = {{0}};
    for (int k = ri; k < r; k++)
        cuts[k] = t->axis[k - ri + 1];
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    size_t part[MAX_RANK] = {0};
    do {
        size_t from[MAX_RANK] = {0};
        for (int k = ri; k < r; k++)
            from[k - ri + 1] = part[k];
        GrowthBlock *made = value_block(out, part), first = *value_block(t, from);
        bool zero = true, good = first.kind == BLOCK_TERM && block_varies(x, &first, 0);
        int64_t rows = good ? term_dim(x, first.term, 0).n : 0;
        Val why = 0;
        for (from[0] = 0; from[0] < t->axis[0].n; from[0]++) {
            const GrowthBlock *b = value_block(t, from);
            zero &= b->kind == BLOCK_ZERO;
            why = b->kind == BLOCK_ANY && !why ? b->why : why;
            if (t->axis[0].at[from[0]] < rows)
                good &= b->kind == BLOCK_TERM && b->term == first.term && b->c == first.c &&
                        b->from[0] == t->axis[0].at[from[0]];
        }
        *made = zero ? (GrowthBlock){.kind = BLOCK_ZERO} : any(x, why);
        if (!good)
            continue;
        Shape s = n->shape;
        made->kind = BLOCK_TERM;
        made->c = first.c;
        for (int k = ri; k < r; k++) {
            s.d[k] = term_dim(x, first.term, k - ri + 1);
            made->from[k] = first.from[k - ri + 1];
        }
        made->term =
            term_make(x->terms, OP_GATHER, (DType)n->dtype, (TermIn[]){{1, first.term}, {1, at->term}}, 2, NULL, &s);
    } while (value_next(out, part));
    return value_tidy(x, out);
}

/* Whether the index of a table counts its rows, so that each is read. */
static bool counts_rows(const Values *x, const Node *n)
{
    const Node *of = behind_views(x, n->in[1]);
    Dim d = of->op == OP_IOTA ? of->shape.d[of->a.i] : DIM(0);
    return dim_eq(d, n->shape.d[0]) || (dim_eq(d, DIM_T) && x->data && n->shape.d[0].n <= x->data->positions);
}

uint16_t open_wholly(uint32_t open)
{
    uint32_t chance = open & 1u << OPEN_CHANCE;
    return (uint16_t)(chance | (open != chance ? 1u << OPEN_FOR_GOOD : 0));
}

/* The rows of a table get what is said of the columns: zero where all of a column is. */
static GrowthValue *rule_scatter(Values *x, const Node *n)
{
    const GrowthValue *d = x->of[n->in[0]];
    int r = n->shape.rank, skip = d->shape.rank - r; /* axes of the index but one */
    Cuts cuts[MAX_RANK] = {{0}};
    for (int k = 1; k < r; k++)
        cuts[k] = d->axis[k + skip];
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    for (size_t i = 0; i < out->n; i++)
        out->block[i].kind = BLOCK_ZERO;
    for (size_t i = 0; i < d->n; i++)
        if (d->block[i].kind != BLOCK_ZERO) {
            GrowthBlock row = {.kind = BLOCK_ANY, .why = x->at, .open = open_wholly(d->block[i].open)};
            out->block[i % out->n] = block_add(x, out->block[i % out->n], row, r);
        }
    for (size_t i = 0; i < out->n && !counts_rows(x, n); i++)
        out->block[i].open |= out->block[i].kind == BLOCK_ANY; /* along axis 0 */
    return out;
}

/* Counts along a static axis go as far as the old model has some; where there is none, they are new. */
static GrowthValue *rule_iota(Values *x, const Node *n)
{
    int k = (int)n->a.i;
    int64_t old = 0;
    for (Val v = 1; x->like && v < (Val)x->like->g->node.n; v++) {
        const Node *o = node_at(x->like->g, v);
        if (o->op != OP_IOTA || o->a.i != k || o->shape.rank != n->shape.rank || !dim_static(o->shape.d[k]))
            continue;
        if (o->shape.d[k].n > old && o->shape.d[k].n <= n->shape.d[k].n)
            old = o->shape.d[k].n;
    }
    if (!dim_static(n->shape.d[k]) || !old || old == n->shape.d[k].n)
        return value_uniform(x, &n->shape, block_whole(x, OP_IOTA, &n->a, &n->shape, (DType)n->dtype));
    Cuts cuts[MAX_RANK] = {{0}};
    cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, 2), 2};
    cuts[k].at[1] = old;
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    Shape s = n->shape;
    s.d[k] = DIM(old);
    out->block[0] = block_whole(x, OP_IOTA, &n->a, &s, (DType)n->dtype);
    return out;
}

static GrowthValue *rule_leaf(Values *x, const Node *n)
{
    switch ((Op)n->op) {
    case OP_FILL: return value_uniform(x, &n->shape, block_number(x, 0, n->a.x));
    case OP_DIM:
        if (dim_static(n->a.dim))
            return value_uniform(x, &n->shape, block_number(x, 0, (double)n->a.dim.n));
        return rule_whole(x, n);
    case OP_RAND:
    case OP_RANDN: return x->data ? value_uniform(x, &n->shape, any(x, 0)) : rule_whole(x, n);
    case OP_CONST: return value_table(x, &n->shape, n->a.data, n->a.n);
    case OP_IOTA: return rule_iota(x, n);
    case OP_HOST: {
        Buf b = buf_new(x->arena);
        host_print(&b, x->g->host.v[n->a.i]);
        return value_uniform(x, &n->shape,
                             block_whole(x, OP_HOST, &(Attr){.site = name_str(x->g->ctx, b.s)}, &n->shape, DT_REAL));
    }
    case OP_EXT: {
        const Ext *e = &x->g->ext.v[n->a.i];
        if (e->kind == EXT_PARAM || e->kind == EXT_BUFFER)
            return x->leaf(x->user, x, x->at);
        return value_uniform(x, &n->shape,
                             block_whole(x, OP_EXT, &(Attr){.i = e->kind, .site = e->name}, &n->shape, e->dtype));
    }
    default: return rule_whole(x, n);
    }
}

static GrowthValue *rule(Values *x, const Node *n)
{
    if (op_is_map((Op)n->op))
        return rule_map(x, n);
    switch ((Op)n->op) {
    case OP_RESHAPE: return rule_reshape(x, n);
    case OP_PERMUTE: return rule_permute(x, n);
    case OP_BROADCAST: return rule_broadcast(x, n);
    case OP_SLICE: return rule_slice(x, n);
    case OP_PAD: return rule_pad(x, n);
    case OP_CONCAT: return rule_concat(x, n);
    case OP_SHIFT:
    case OP_ROLL:
    case OP_CUMSUM: return rule_along(x, n);
    case OP_SUM: return rule_sum(x, n);
    case OP_AMAX: return rule_amax(x, n);
    case OP_MATMUL: return rule_matmul(x, n);
    case OP_EXPERT_MATMUL:
    case OP_EXPERT_MATMUL_DW: return rule_expert_matmul(x, n);
    case OP_GATHER: return rule_gather(x, n);
    case OP_SCATTER_ADD: return rule_scatter(x, n);
    case OP_SDPA: return rule_sdpa(x, n);
    case OP_SDPA_GRAD: return rule_sdpa_grad(x, n, 0);
    case OP_AUX: {
        const Node *of = node_at(x->g, n->in[0]);
        return of->op == OP_SDPA_GRAD ? rule_sdpa_grad(x, of, n->a.i + 1) : value_uniform(x, &n->shape, any(x, 0));
    }
    default: return op_info((Op)n->op)->class == CLASS_LEAF ? rule_leaf(x, n) : rule_whole(x, n);
    }
}

/* Whether attention drops some of its shares, or this is a gradient of such. */
static bool drops_shares(const Values *x, const Node *n)
{
    const Node *of = n->op == OP_AUX ? node_at(x->g, n->in[0]) : n;
    return (of->op == OP_SDPA || of->op == OP_SDPA_GRAD) && of->a.z > 0;
}

/* What may be zero as data is, behind operators that do not say it themselves. */
static void open_others(const Values *x, const Node *n, GrowthValue *v)
{
    uint32_t open = 0;
    if (op_is_map((Op)n->op) || n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_BROADCAST ||
        n->op == OP_SUM || n->op == OP_MATMUL || n->op == OP_SCATTER_ADD || op_is_expert((Op)n->op))
        return;
    bool moves = n->op == OP_SLICE || n->op == OP_PAD || n->op == OP_CONCAT || n->op == OP_SHIFT || n->op == OP_ROLL;
    for (uint16_t i = 0; i < n->n_in; i++)
        for (size_t k = 0; k < x->of[n->in[i]]->n; k++)
            open |= x->of[n->in[i]]->block[k].open;
    open |= drops_shares(x, n) ? 1u << OPEN_CHANCE : 0;
    if (!open || v == x->of[n->in[0]])
        return;
    for (size_t k = 0; k < v->n; k++)
        if (v->block[k].kind == BLOCK_ANY && (!moves || v->block[k].open >> n->a.i & 1))
            v->block[k].open |= open_wholly(open);
}

static void find_open(Values *x, const Node *n)
{
    GrowthValue *by = value_by_expert(x, n, rule);
    x->of[x->at] = by ? by : x->of[x->at];
    open_others(x, n, x->of[x->at]);
    value_find_same(x);
}

static Values *values_new(Arena *arena, Terms *terms, const Graph *g, KnownLeaf *leaf, void *user)
{
    Values *x = NEW(arena, Values);
    *x = (Values){.arena = arena, .terms = terms, .g = g, .leaf = leaf, .user = user};
    x->of = NEW_ARRAY(arena, GrowthValue *, g->node.n + 1);
    x->sums = NEW_ARRAY(arena, GrowthValue *, g->node.n + 1);
    x->along = NEW_ARRAY(arena, int8_t, g->node.n + 1);
    x->by = NEW_ARRAY(arena, const ByExpert *, g->node.n + 1);
    x->same = NEW_ARRAY(arena, uint8_t, g->node.n + 1);
    map_init(&x->doubt, arena);
    return x;
}

/* A factor that numbers can hardly hold says nothing: what is added to it would be lost. */
static void drop_extreme(Values *x, GrowthValue *v)
{
    for (size_t i = 0; i < v->n; i++) {
        double size = fabs(v->block[i].c);
        if (v->block[i].kind == BLOCK_TERM && !(size > 1e-100 && size < 1e100))
            v->block[i] = any(x, 0);
    }
}

static void find_value(Values *x, Val v)
{
    x->at = v;
    const Node *n = node_at(x->g, v);
    x->of[v] = rule(x, n);
    drop_extreme(x, x->of[v]);
    if (x->data)
        find_open(x, n);
}

/* What is kept beside a value's blocks. */
static void find_beside(Values *x, Val v)
{
    const Node *n = node_at(x->g, v);
    int axis = 0;
    x->sums[v] = value_shares(x, n, &axis);
    x->along[v] = (int8_t)axis;
    if (!op_is_map((Op)n->op) && n->op != OP_RESHAPE && !(n->op == OP_SLICE && n->a.i != 1) && n->op != OP_SDPA_GRAD &&
        n->op != OP_AUX)
        for (size_t i = 0; i < x->of[v]->n; i++)
            x->of[v]->block[i].balanced = false;
    bool still =
        n->op == OP_FILL || n->op == OP_CONST || (n->op == OP_EXT && x->g->ext.v[n->a.i].kind != EXT_INPUT) ||
        (n->n_in > 0 && (op_is_map((Op)n->op) || n->op == OP_RESHAPE || n->op == OP_BROADCAST || n->op == OP_PERMUTE));
    for (uint16_t i = 0; i < n->n_in; i++)
        still &= x->of[n->in[i]]->still;
    x->of[v]->still = still;
}

Values *values_find(Arena *arena, Terms *terms, const Graph *g, KnownLeaf *leaf, void *user, const Values *like,
                    const DataFacts *data)
{
    Values *x = values_new(arena, terms, g, leaf, user), *exact = data ? values_new(arena, terms, g, leaf, user) : NULL;
    x->like = like;
    x->data = data;
    x->exact = exact;
    x->drops = data != NULL;
    if (exact)
        exact->drops = true;
    for (Val v = 1; v < (Val)g->node.n; v++) {
        find_value(x, v);
        if (exact) {
            find_value(exact, v);
            values_meet(x, exact, v);
            find_beside(exact, v);
        }
        find_beside(x, v);
    }
    return x;
}
