/* decode.h - predicting the next positions from what earlier positions left behind. */
#ifndef VWN_DECODE_H
#define VWN_DECODE_H

#include "model.h"

/* Inputs of a decoding graph beside those of the model, all integers. */
#define DECODE_AT "decode.at" /* [], or with `each` [B]: the position of the first new token */
#define DECODE_ON "decode.on" /* [B]: 0 leaves the kept tensors of that sequence as they are */

/* Why a graph cannot go on from a position: a sentence about the node, and the node's place. */
typedef struct DecodeRefusal {
    const char *why;
    Name name;
    Span span;
} DecodeRefusal;

/* The first node of `g` by which a position can read later ones, as an attention without a causal mask
 * does; false when there is none that is known to. */
bool decode_looks_ahead(const Graph *g, Arena *arena, DecodeRefusal *where);

/* The same of what a model predicts that has a vocabulary and reads `tokens`. Where it holds masks decide, which are computed. */
bool model_may_look_ahead(const Model *m, Arena *arena, DecodeRefusal *where);

/* "gpt.vwn:12:5 (layers.1.ffn)" */
const char *decode_place(Ctx *ctx, Arena *arena, const DecodeRefusal *no);

/* How a node reads later positions, as "runs over all positions"; NULL when it does not. Masks may hide them. */
const char *decode_looks(const Graph *g, const Node *n);

/* What was written for it: `mean` of `mean(x, over = 2)`; else the operator's name. */
const char *decode_written(const Graph *g, const Node *n, Arena *arena);

/* How a node other than attention gives a position what stands behind it, whatever masks are; NULL when it does not. */
const char *decode_moves_back(const Graph *g, const Node *n);

/* The outputs of `predict` for T positions that follow DECODE_AT earlier ones, which the same
 * graph has seen; DECODE_AT + T is at most `context`. What earlier positions left is kept in
 * EXT_STATE tensors "decode.0", "decode.1", ..; at position 0 they may hold anything. `each`: every
 * sequence has a DECODE_AT of its own. NULL, and *no is filled, when positions cannot be computed in this
 * order. The result does not depend on the other sequences of the batch. */
Graph *decode_graph(const Graph *predict, int64_t context, bool each, Arena *arena, DecodeRefusal *no);

/* Whether a decoding graph may be run again from an earlier position on, and over positions that are no text and are written again
 * before a later one is computed: it keeps tables, and no running sums. */
bool decode_goes_back(const Graph *g);

#endif
