/* growth_experts.c - values of which each slot belongs to an expert that data chooses.
 *
 * In:  a node and what is known of its inputs.   Out: what its value is where the chosen expert is among these or those.
 * The one idea: experts that came together have weights of which the same is known, so a slot of a token is looked at once
 * for each such part of them. Whether a part is chosen at all is a matter of data; that all are, where as many are chosen
 * as there are, is none.
 */
#include "growth_rules.h"

bool value_chooses_all(const Values *x, Val index, Dim experts)
{
    const Node *n = node_at(x->g, index);
    if (dim_eq(experts, DIM(1)))
        return true;
    const Shape *of = n->op == OP_TOP_K ? shape_of(x->g, n->in[0]) : NULL;
    return of && dim_eq(of->d[of->rank - 1], DIM(n->a.j)) && dim_eq(experts, DIM(n->a.j));
}

static GrowthValue *in_part(const ByExpert *by, int64_t expert)
{
    size_t i = 0;
    while (i + 1 < by->parts.n && by->parts.at[i + 1] <= expert)
        i++;
    return by->of[i];
}

/* Of a table by expert along axis k what the expert has, as of all of them. */
static GrowthValue *of_expert(Values *x, const GrowthValue *w, int k, int64_t expert)
{
    Cuts cuts[MAX_RANK];
    memcpy(cuts, w->axis, sizeof cuts);
    cuts[k] = (Cuts){0};
    GrowthValue *out = value_cut(x, &w->shape, cuts);
    size_t part[MAX_RANK] = {0};
    do {
        size_t from[MAX_RANK];
        memcpy(from, part, sizeof from);
        for (from[k] = 0; from[k] + 1 < w->axis[k].n && w->axis[k].at[from[k] + 1] <= expert;)
            from[k]++;
        GrowthBlock b = *value_block(w, from);
        if (b.kind == BLOCK_TERM && block_varies(x, &b, k))
            b = (GrowthBlock){.kind = BLOCK_ANY, .why = x->at};
        b.open &= (uint16_t) ~(1u << k); /* it is chosen, and was before */
        *value_block(out, part) = b;
    } while (value_next(out, part));
    return out;
}

/* How experts are told apart in what a node reads; NULL: they are not. */
static const ByExpert *first_by(const Values *x, const Node *n)
{
    for (uint16_t i = 0; i < n->n_in; i++)
        if (x->by[n->in[i]])
            return x->by[n->in[i]];
    return NULL;
}

/* Whether a node leaves the slots where they are: it computes along them, or behind them. */
static bool keeps_slots(const Values *x, const Node *n, Val index)
{
    int slots = shape_of(x->g, index)->rank;
    const Shape *in = shape_of(x->g, n->in[0]);
    if (op_is_map((Op)n->op))
        return true;
    if (n->op != OP_BROADCAST && n->op != OP_RESHAPE && !(n->op == OP_SUM && n->a.axes >> slots << slots == n->a.axes))
        return false;
    for (int k = 0; k < slots; k++)
        if (k >= in->rank || k >= n->shape.rank || !dim_eq(in->d[k], n->shape.d[k]))
            return false;
    return true;
}

/* The node's rule, of one part of the experts. */
static GrowthValue *look(Values *x, const Node *n, ValueRule *rule, Val index, int table, int64_t expert)
{
    GrowthValue *had[4] = {NULL};
    Val in[4] = {0};
    const uint16_t n_in = n->n_in < 4 ? n->n_in : 4;
    for (uint16_t i = 0; i < n_in; i++) {
        in[i] = n->in[i];
        had[i] = x->of[in[i]];
    }
    for (uint16_t i = 0; i < n_in; i++) {
        const ByExpert *by = x->by[in[i]];
        if (i == table)
            x->of[in[i]] = of_expert(x, had[i], n->op == OP_EXPERT_MATMUL ? 0 : had[i]->shape.rank - 1, expert);
        else if (by && by->index == index)
            x->of[in[i]] = in_part(by, expert);
    }
    GrowthValue *v = rule(x, n);
    for (uint16_t i = 0; i < n_in; i++)
        x->of[in[i]] = had[i];
    return v;
}

/* Where parts of experts begin: of the table, and of all inputs. */
static Cuts parts_of(Values *x, const Node *n, Val index, int table)
{
    static int64_t zero[1];
    Cuts parts = {zero, 1};
    if (table >= 0)
        parts = x->of[n->in[table]]->axis[n->op == OP_EXPERT_MATMUL ? 0 : x->of[n->in[table]]->shape.rank - 1];
    for (uint16_t i = 0; i < n->n_in; i++)
        if (x->by[n->in[i]] && x->by[n->in[i]]->index == index)
            parts = cuts_union(x, parts, x->by[n->in[i]]->parts);
    return parts;
}

/* A result that has the experts along axis k, of what is known of each part. */
static GrowthValue *gather_parts(Values *x, const Node *n, ValueRule *rule, Val index, int k)
{
    Cuts parts = parts_of(x, n, index, -1), cuts[MAX_RANK] = {{0}};
    GrowthValue **of = NEW_ARRAY(x->arena, GrowthValue *, parts.n);
    for (size_t e = 0; e < parts.n; e++) {
        of[e] = look(x, n, rule, index, -1, parts.at[e]);
        for (int a = 0; a < n->shape.rank; a++)
            cuts[a] = e ? cuts_union(x, cuts[a], of[e]->axis[a]) : of[e]->axis[a];
    }
    cuts[k] = parts;
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    uint16_t open = value_chooses_all(x, index, n->shape.d[k]) ? 0 : (uint16_t)(1u << k);
    size_t part[MAX_RANK] = {0};
    do {
        int64_t at[MAX_RANK];
        for (int a = 0; a < n->shape.rank; a++)
            at[a] = out->axis[a].at[part[a]];
        GrowthBlock b = block_at(x, of[part[k]], at);
        if (b.kind == BLOCK_TERM)
            b = (GrowthBlock){.kind = BLOCK_ANY, .why = x->at};
        if (b.kind == BLOCK_ANY)
            b.open |= open;
        *value_block(out, part) = b;
    } while (value_next(out, part));
    return value_tidy(x, out);
}

/* Copies of one expert give all slots of a token the same, so what weighs them has no gradient where weights are divided by
 * their sum: there the same is subtracted that was added up over the slots. */
void value_find_same(Values *x)
{
    const Node *n = node_at(x->g, x->at);
    const Shape *in = shape_of(x->g, first_input(n));
    uint8_t same = 0, *of = x->same, had = of[first_input(n)];
    bool slots = in->rank > 2 && n->shape.rank > 2 && dim_eq(in->d[2], n->shape.d[2]);
    if (n->op == OP_EXPERT_MATMUL) {
        same = x->of[n->in[1]]->alike && (in->rank < n->shape.rank || had & SAME) ? SAME | SAME_COPIES : 0;
    } else if (n->op == OP_BROADCAST) {
        same = slots ? had : (uint8_t)((had & ~SAME) | (in->rank > 2 && dim_eq(in->d[2], DIM(1)) ? SAME : 0));
    } else if (n->op == OP_RESHAPE) {
        bool stay = slots && dim_eq(in->d[0], n->shape.d[0]) && dim_eq(in->d[1], n->shape.d[1]);
        same = stay ? had : (uint8_t)(had & ~SAME);
    } else if (n->op == OP_SUM) {
        same = n->a.axes & 4 ? (had & SAME_COPIES ? SAME_SUMMED : 0) : n->a.axes & 3 ? 0 : had;
    } else if (op_is_map((Op)n->op)) {
        same = had;
        for (uint16_t i = 1; i < n->n_in; i++)
            same = (uint8_t)(((same | of[n->in[i]]) & ~SAME) | (same & of[n->in[i]] & SAME));
    }
    of[x->at] = same;
    bool difference = (n->op == OP_ADD || n->op == OP_SUB) && (of[n->in[0]] & of[n->in[1]] & SAME) &&
                      (same & SAME_SUMMED) && (same & SAME_COPIES);
    for (size_t i = 0; difference && i < x->of[x->at]->n; i++)
        if (x->of[x->at]->block[i].kind == BLOCK_ANY)
            x->of[x->at]->block[i].open |= 1u << OPEN_FOR_GOOD;
}

GrowthValue *value_by_expert(Values *x, const Node *n, ValueRule *rule)
{
    Val v = x->at;
    if (n->op == OP_PLACE && n->n_in == 2)
        return gather_parts(x, n, rule, n->in[1], n->shape.rank - 1);
    if (n->op == OP_EXPERT_MATMUL_DW)
        return gather_parts(x, n, rule, n->in[2], 0);
    int table = n->op == OP_PICK ? 0 : n->op == OP_EXPERT_MATMUL ? 1 : -1;
    const ByExpert *by = first_by(x, n);
    Val index = n->op == OP_PICK ? n->in[1] : n->op == OP_EXPERT_MATMUL ? n->in[2] : by ? by->index : 0;
    if (!index || n->n_in > 4 || (table < 0 && !keeps_slots(x, n, index)))
        return NULL;
    Cuts parts = parts_of(x, n, index, table);
    if (parts.n < 2)
        return NULL;
    ByExpert *made = NEW(x->arena, ByExpert);
    *made = (ByExpert){index, parts, NEW_ARRAY(x->arena, GrowthValue *, parts.n)};
    for (size_t e = 0; e < parts.n; e++)
        made->of[e] = look(x, n, rule, index, table, parts.at[e]);
    x->by[v] = made;
    return NULL;
}
