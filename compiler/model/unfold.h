/* unfold.h - how much of what earlier sublayers wrote a connection hands to a later one.
 *
 * In:  a Model.   Out: a graph that sends impulses through its connections and measures what arrives.
 * The one idea: sources are the embedding and what each sublayer wrote. Between them a connection is linear in the state
 * once everything else is held at the value it has for a token: coefficients, divisors, masks. So the graph holds the model
 * itself and, beside it, for each value on the way the *tangent*: what an impulse in one source becomes there. What makes
 * it linear is a rule by primitive (way_of in unfold.c), and no name of a block.
 *
 * A state [.., n, w] has n streams of w coordinates; a source of m w coordinates has m segments. State and sources of any
 * other form are one segment. An impulse is +1 or -1 in every coordinate of one segment, drawn for each token, with the same
 * signs in every segment; the mean of sign times tangent over the coordinates of a segment is, in the mean over draws, the
 * trace of that part of the linear map by its width, and exactly that in every draw where coordinates are not mixed.
 */
#ifndef VWN_UNFOLD_H
#define VWN_UNFOLD_H

#include "model.h"

/* A value on the way as segments. */
typedef struct UnfoldPart {
    int64_t segments, width;
    size_t first; /* of a source: its first segment among those of all sources */
} UnfoldPart;
typedef struct Unfolding {
    const char *why_not; /* NULL, or a sentence: nothing can be unfolded */
    size_t n;            /* sublayers; sources are 0, the embedding, to n */
    UnfoldPart *source;  /* n + 1 */
    UnfoldPart *read;    /* n, and where `closed` another one: what the head is given */
    UnfoldPart *state;   /* n + 1: the first is that which the connection opens with */
    size_t rows;         /* n + closed */
    bool closed;
    size_t segments; /* of all sources */
} Unfolding;
Unfolding unfolding_of(const Model *m, Arena *arena);

/* Reads EXT_STATE UNFOLD_SELECT [impulses, segments]: row i is 1 at the segment that impulse i is in. Host results, for
 * each row i, [3, impulses, segments of it]: the mean over tokens of the contribution, of its square, and of the squares of
 * the tangent's coordinates: "read.0".., "state.0"... Values that no source reaches have none. */
#define UNFOLD_SELECT "unfold.select"
Graph *unfold_impulses(const Model *m, const Unfolding *u, int64_t impulses, Arena *arena);
/* Adds to a graph of step_values(), whose map it is, the results "left.I" and "size.I": means over tokens and coordinates of
 * the squares of what row I reads less what all sources together explain of it, and of what it reads. */
void unfold_explain(Graph *g, const Model *m, const Unfolding *u, const Val *map);

/* The factors that the connection's linear maps have: values of the model's graph that vary with the data, are held, and
 * multiply or divide something that is not. */
typedef struct UnfoldFactor {
    Val value; /* of the model's graph */
    Val fixed; /* the sum of those of its addends that do not vary; 0: there is none */
    Name name; /* of the weight that is its fixed part, "layer[1].ffn.connection.B", or of the module that makes it */
    size_t sublayer; /* that it belongs to: the first whose reading or state needs it; n: the closing */
    bool divides;
} UnfoldFactor;
UnfoldFactor *unfold_factors(const Model *m, const Unfolding *u, size_t *n, Arena *arena);

#endif
