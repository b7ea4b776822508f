/* solve.h - width schedules over depth: from a shape and a parameter budget to one width per layer.
 *
 * In:  the numbers of a `geometric(...)`, `arithmetic(...)` or `constant(...)` call, lengths resolved.
 * Out: a list of widths, or a sentence why there is none. Source: Variable-Width Transformers, section
 * 3; the widths solve  K x^2 S2 - waste(x) = K L d^2  with symmetric ends.
 */
#ifndef VWN_SOLVE_H
#define VWN_SOLVE_H

#include "compiler/base/base.h"

typedef enum WidthShape { WIDTH_GEOMETRIC, WIDTH_ARITHMETIC, WIDTH_CONSTANT } WidthShape;
typedef enum WidthMatch { MATCH_NONE, MATCH_DENSE, MATCH_MOE } WidthMatch;

typedef struct WidthProblem {
    WidthShape shape;
    int64_t layers;                 /* L >= 1 */
    double base;                    /* d, the width of the constant model */
    double bottleneck;              /* d*, width of layer `at` */
    int64_t at;                     /* l*, 1..L */
    WidthMatch match;               /* NONE: `first` is given instead of a budget */
    double first;                   /* d_1 when match is NONE */
    double mlp_matrices, expansion; /* MATCH_DENSE: K = 4 + mlp_matrices * expansion */
    double experts, expert_ratio;   /* MATCH_MOE: K = 4 + 3 experts * ratio, and experts * d_l router weights */
    int64_t round;                  /* widths are multiples of this; >= 1 */
    bool round_early;               /* the released code's order: round d_1 to an integer, then multiply on */
} WidthProblem;

typedef struct WidthAnswer {
    double *continuous; /* layers numbers before rounding */
    double *width;      /* layers whole numbers */
    double ratio_down, ratio_up;
    const char *why;  /* NULL on success; else one sentence, lower case, no full stop */
    const char *what; /* then the argument that is wrong: "bottleneck", "at", "round", ... */
} WidthAnswer;
WidthAnswer solve_widths(Arena *arena, const WidthProblem *p);

#endif
