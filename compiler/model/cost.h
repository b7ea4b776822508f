/* cost.h - counts over a model's graph beyond the totals of model.h.
 *
 * In:  a Model.   Out: what it computes and stores, as a whole and by module.
 * The one idea: a count is a sum over nodes that a loss or an output needs, so everything here
 * is exact for the graph as it stands, whatever the architecture. B is 1, T the context.
 */
#ifndef VWN_COST_H
#define VWN_COST_H

#include "model.h"

/* Work of a forward pass per token (that of the sequence divided by T). */
typedef struct Work {
    double products;      /* matrix products, 2 per multiply-add */
    double attention;     /* scores and values over the full square, 2 per multiply-add */
    double causal_saving; /* the part of `attention` that masks and windows make unnecessary */
    double elementwise;   /* one per element of elementwise results and of reductions' inputs */
} Work;
Work model_work(const Model *m);
/* The part of Work.products that weights which can never learn take part in. */
double model_dead_flops(const Model *m);

/* Keys and values that generation has to keep for one sequence. Attention that is not causal
 * keeps nothing. Keys and values used by several attentions are kept once. */
typedef struct KvCache {
    double per_token;  /* bytes that one more token adds while no window is full */
    double at_context; /* bytes at T = context; a windowed layer holds `window` tokens */
} KvCache;
KvCache model_kv_cache(const Model *m, double bytes_per_element);

/* ---- by module ----
 * A module path is cut after `depth` parts and its numbers become [*]: with depth 2
 * "layer[3].attention.q_proj.W" belongs to "layer[*].attention". Nodes without a module belong
 * to "". Groups stand in order of first appearance: parameters first, then nodes. */
typedef struct CostGroup {
    Name path;
    int64_t instances; /* different module paths that became this one: 24 layers */
    int64_t tensors;   /* learnable parameters */
    ModelCount count;
    Work work;
} CostGroup;
typedef struct CostGroups {
    CostGroup *v;
    size_t n;
} CostGroups;
CostGroups model_cost_groups(const Model *m, int depth, Arena *arena);
/* The at most `keep` groups that store most weights, in the order they had. */
CostGroups cost_largest(CostGroups groups, size_t keep, Arena *arena);
/* "36 x [768, 780], 12 x [768, 768]": the shapes of a group's parameters, those that store most
 * first, at most `keep` of them, then "2 more". Empty for a group without parameters. */
void cost_shapes(Buf *out, const Model *m, const CostGroup *group, int depth, size_t keep);
/* "layer[3].attention.q_proj.W" with depth 2 -> "layer[*].attention"; depth 0: all parts. */
Name cost_path(Ctx *ctx, const char *path, int depth);

/* ---- shared with dead.c ---- */
/* Fills Param.active: choices / experts for a parameter that is read by nothing but expert
 * products (views of it count as itself; products with different choices add up), else 1.
 * model_find_dead calls it, so check_file need not. */
void model_find_active(Model *m);
/* reached[v]: node v is needed by a root; roots that are 0 are skipped. */
bool *graph_reached(const Graph *g, const Val *roots, size_t n, Arena *arena);
typedef enum RootSet {
    ROOTS_ALL,      /* all losses, metrics and outputs */
    ROOTS_LEARNING, /* trained losses and outputs: what a weight can be learnt for */
    ROOTS_PREDICT   /* outputs, or all losses of a model without outputs */
} RootSet;
Val *model_roots(const Model *m, RootSet which, Arena *arena, size_t *n);

#endif
