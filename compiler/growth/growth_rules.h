/* growth_rules.h - private to the rules that tell what operators make of blocks. */
#ifndef VWN_GROWTH_RULES_H
#define VWN_GROWTH_RULES_H

#include "growth_value.h"

bool block_is_number(const Values *x, const GrowthBlock *b);
double block_number_of(const GrowthBlock *b); /* of a number */
Dim term_dim(const Values *x, Term t, int k);
bool block_varies(const Values *x, const GrowthBlock *b, int k); /* along this axis */
Cuts cuts_union(Values *x, Cuts a, Cuts b);
GrowthBlock block_at(const Values *x, const GrowthValue *v, const int64_t *at);
GrowthValue *value_refine(Values *x, const GrowthValue *v, const Cuts axis[MAX_RANK]);
bool blocks_align(Values *x, GrowthBlock *b, size_t n, int rank); /* false: their extents are symbols and differ */
GrowthBlock block_of_aligned(const Values *x, const GrowthBlock *b, size_t n, int rank, Shape *s);

/* ---- growth_map.c: what one element of each input makes ---- */
GrowthBlock block_map(Values *x, const Node *n, const GrowthBlock *in, int rank);
/* A new value of old one `w` and its gradient `d`: what both are along an axis it is, too. `site`, `which`: what has its own rate. */
GrowthBlock block_updated(Values *x, GrowthBlock w, GrowthBlock d, int rank, Name site, int64_t which);
uint16_t open_wholly(uint32_t open); /* what is a matter of data along an axis is so as a whole */
GrowthBlock block_times(Values *x, GrowthBlock a, GrowthBlock b, int rank);
GrowthValue *rule_map(Values *x, const Node *n);
/* ---- growth_sums.c: what sums over an axis ---- */
GrowthValue *rule_sum(Values *x, const Node *n);
GrowthValue *rule_amax(Values *x, const Node *n);
GrowthValue *rule_matmul(Values *x, const Node *n);
GrowthValue *rule_expert_matmul(Values *x, const Node *n);
GrowthValue *rule_sdpa(Values *x, const Node *n);
GrowthValue *rule_sdpa_grad(Values *x, const Node *n, int64_t which);
/* ---- growth_shares.c: of what is not known its sum over *axis; NULL: not known either ---- */
GrowthValue *value_shares(Values *x, const Node *n, int *axis);
/* ---- growth_experts.c: what belongs to an expert that data chooses ---- */
typedef GrowthValue *ValueRule(Values *x, const Node *n);
/* Of the node x->at: notes what it is for each part of the experts; NULL, or what it is instead. */
GrowthValue *value_by_expert(Values *x, const Node *n, ValueRule *rule);
void value_find_same(Values *x);
bool value_chooses_all(const Values *x, Val index, Dim experts); /* each once */
/* ---- growth_exact.c ---- */
/* A block of *v that is not known gets a name: a leaf of its own, as large as the block. */
void value_name(Values *x, GrowthValue *v);
/* x: with what data decides; `e`: of the same graph, where every block has a name. What one knows of the node `at` the other gets. */
void values_meet(Values *x, Values *e, Val at);
/* ---- growth_views.c: what only moves elements ---- */
GrowthValue *rule_reshape(Values *x, const Node *n);
GrowthValue *rule_permute(Values *x, const Node *n);
GrowthValue *rule_broadcast(Values *x, const Node *n);
GrowthValue *rule_slice(Values *x, const Node *n);
GrowthValue *rule_pad(Values *x, const Node *n);
GrowthValue *rule_concat(Values *x, const Node *n);

#endif
