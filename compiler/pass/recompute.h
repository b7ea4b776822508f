/* recompute.h - what is computed again in the backward pass: the inner values of modules, and operands of products
 * that are cheap to compute.
 *
 * In:  a differentiated graph, names of modules.     Out: a graph in which the backward pass reads copies.
 */
#ifndef VWN_RECOMPUTE_H
#define VWN_RECOMPUTE_H

#include "compiler/graph/ir.h"

/* Whether a node of the graph lies in a module of that name: whether a segment of its path is it. */
bool recompute_names(const Graph *g, Name word);
/* All such names, each once. */
const Name *recompute_words(const Graph *g, Arena *arena, size_t *n);
/* The outermost modules that a model has several of: `layer` of layer[1].ffn.up. */
const Name *recompute_repeated(const Graph *g, Arena *arena, size_t *n);

/* g after graph_gradient(); nodes up to `last` are the forward pass. The same graph, in which what
 * is behind `last` reads no inner value of a module that `word` names, but a copy that is computed
 * from what the module reads; nor for a large product alone what an activation function has made of results of
 * other products that are read there anyway. Copies begin at guards, so that graph_simplify() keeps them apart. */
Graph *graph_recompute(const Graph *g, Val last, const Name *word, size_t n_word, Arena *arena);
/* What is made from here on is one of those copies (Node.recomputed), of a value of that name. */
void recompute_begin_copy(Graph *g, Name of);
bool recompute_is_guard(Op op, const Attr *a);
/* A simplified graph without the guards; g itself when it has none. */
Graph *graph_release(const Graph *g, Arena *arena);

#endif
