/* growth_rules.h - private to the rules that tell what operators make of blocks. */
#ifndef VWN_GROWTH_RULES_H
#define VWN_GROWTH_RULES_H

#include "growth_value.h"

bool block_is_number(const Values *x, const Block *b);
double block_number_of(const Block *b); /* of a number */
Dim term_dim(const Values *x, Term t, int k);
bool block_varies(const Values *x, const Block *b, int k); /* along this axis */
Cuts cuts_union(Values *x, Cuts a, Cuts b);
Block block_at(const Values *x, const Value *v, const int64_t *at);
Value *value_refine(Values *x, const Value *v, const Cuts axis[MAX_RANK]);
bool blocks_align(Values *x, Block *b, size_t n, int rank); /* false: their extents are symbols and differ */
Block block_of_aligned(const Values *x, const Block *b, size_t n, int rank, Shape *s);

/* ---- growth_map.c: what one element of each input makes ---- */
Block block_map(Values *x, const Node *n, const Block *in, int rank);
Block block_times(Values *x, Block a, Block b, int rank);
Value *rule_map(Values *x, const Node *n);
/* ---- growth_sums.c: what sums over an axis ---- */
Value *rule_sum(Values *x, const Node *n);
Value *rule_amax(Values *x, const Node *n);
Value *rule_matmul(Values *x, const Node *n);
Value *rule_expert_matmul(Values *x, const Node *n);
Value *rule_sdpa(Values *x, const Node *n);
Value *rule_sdpa_grad(Values *x, const Node *n, int64_t which);
/* ---- growth_shares.c: of what is not known its sum over *axis; NULL: not known either ---- */
Value *value_shares(Values *x, const Node *n, int *axis);
/* ---- growth_views.c: what only moves elements ---- */
Value *rule_reshape(Values *x, const Node *n);
Value *rule_permute(Values *x, const Node *n);
Value *rule_broadcast(Values *x, const Node *n);
Value *rule_slice(Values *x, const Node *n);
Value *rule_pad(Values *x, const Node *n);
Value *rule_concat(Values *x, const Node *n);

#endif
