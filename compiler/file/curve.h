/* curve.h - what varies in a file before anything is trained.
 *
 * In:  a checked file and a path: an attribute or a block's name over depth (`layer[*].ffn.hidden`), an expression of the
 * file that is a list (`width`), or a number of the run (`train.optimizer.lr`).   Out: points, or an expression of the step.
 * The one idea: the evaluator has kept what it built, so a path is looked up where the model itself has looked; what a
 * module reads and writes is counted in the graph.
 */
#ifndef VWN_CURVE_H
#define VWN_CURVE_H

#include "compiler/model/model.h"

typedef struct Curve {
    const char *over; /* "step", the variable of a loop, or "index" of a list, from 1 */
    double *x, *y;    /* of what is over no steps */
    size_t n;
    bool of_part; /* the rate of the weights that came with growth step `part`, 0: with the model */
    size_t part;
    const HostExpr **stage; /* of what is over steps: in the file as it is, and after each growth step of Unit.grow */
} Curve;
/* Raises ST_USAGE, with what there is, when nothing has this path or it does not vary. */
Curve curve_of(Unit *u, const char *path);
/* What the curve is over steps after the first `stage` growth steps, before each of which so many updates were done; NULL: nothing. */
const HostExpr *curve_in_stage(Unit *u, const Curve *c, size_t stage, const double *updates);
/* All paths that can be drawn: lets, attributes over depth that are not the same everywhere, numbers of the run. */
typedef VEC(Name) CurvePaths;
CurvePaths curve_paths(Unit *u);

/* At a place of the model, a module or a node: the number that a name is there, 0 or 1 where it is true or false, NaN where it is
 * none of these; the primitive, NULL where it is none. How many places a pattern has. The number that a let of the file is. */
double place_number(Unit *u, const char *path, const char *attr);
double let_number(Unit *u, const char *name);
const char *place_function(Unit *u, const char *path, const char *attr);
size_t place_count(Unit *u, const char *pattern);

Name path_starred(Ctx *ctx, const char *path); /* "layer[3].ffn" as "layer[*].ffn" */

#endif
