/* inside.h - what a model does between its sublayers and inside them, as results of one graph.
 *
 * In:  a Model.   Out: a graph that evaluates it without dropout and measures on the way.
 * The one idea: what is measured is told by primitives: what a connection hands to a sublayer, the state behind it, what an
 * activation function makes for a product with weights, and the model from a state on, applied to earlier states.
 */
#ifndef VWN_INSIDE_H
#define VWN_INSIDE_H

#include "unfold.h"

/* An activation: what a product with weights inside a sublayer reads, when it is made, element by element, by an activation
 * function (ops.def: relu, gelu, gelu_tanh, silu, sigmoid, tanh, erf, softplus, or max and min) of something that depends on
 * what the sublayer reads. So it stands behind the gate of a gated layer, and before the product that writes. */
typedef struct InsideActivation {
    Val value;       /* [.., dims], of experts [.., chosen, dims] */
    Val index;       /* which expert has each row; 0: there are none */
    int64_t experts; /* 1 without */
    int64_t dims;    /* of one expert */
    size_t sublayer;
    Name path; /* of the module */
} InsideActivation;

enum { INSIDE_THRESHOLDS = 7 };
extern const double inside_threshold[INSIDE_THRESHOLDS]; /* 0, 0.01, .. 3 */
#define INSIDE_USED 0.1                                  /* a dimension is used by a token where |a| is above */

typedef struct Inside {
    const Model *m;
    Unfolding u;
    UnfoldFactor *factor;
    size_t n_factors;
    InsideActivation *activation;
    size_t n_activations;
    Val logits;          /* of the model's graph; 0: no lens */
    const char *no_lens; /* why not */
    const bool *state;   /* by state: whether it is a result; NULL: all are */
} Inside;
Inside inside_of(const Model *m, Arena *arena);

typedef enum InsideWhat {
    INSIDE_CONNECTIONS = 1,
    INSIDE_WEIGHTS = 2,
    INSIDE_INPUTS = 4,
    INSIDE_ACTIVATIONS = 8,
    INSIDE_STATES = 16,
    INSIDE_LENS = 32,
    INSIDE_ALL = 63
} InsideWhat;
/* Host results; means are over positions.
 *   left.I, size.I    unfold_explain()
 *   factor.I, fixed.I values of factor I [positions.., its own extents]; its fixed part
 *   cosine            [n, n]: mean cosine of what two sublayers read; of different widths the narrower one has zeros behind
 *   next              [positions.., n - 1]: that of each and the following one
 *   active.I          [thresholds]: share of the numbers of activation I whose size is above inside_threshold
 *   used.I, energy.I  [experts * dims]: share of all rows in which a dimension is above INSIDE_USED; mean square
 *   chosen.I          [experts], of experts: share of the rows that are theirs
 *   state.I           [positions.., coordinates]: the state behind sublayer I, 0: as it is opened
 *   lens.I            [3]: of the model from that state on: log probability of the target times whether there is one, whether
 *                     there is one, entropy
 *   moved.I           mean of both divergences (Kullback and Leibler) between the predictions from states I - 1 and I */
Graph *inside_graph(const Inside *in, unsigned what, Arena *arena);

#endif
