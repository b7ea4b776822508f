/* check_sweep.h - the sweep that is being elaborated; shared by check_sweep.c and check_points.c. */
#ifndef VWN_CHECK_SWEEP_H
#define VWN_CHECK_SWEEP_H

#include "check_train.h"

enum { HALTON_MOST = 32, SWEEP_NUMBERS_MOST = 1 << 20 }; /* axes and entries of a point; numbers of an axis */

typedef struct Axis {
    const Ast *path, *expr;
    const char *name;   /* the path, as written */
    const Ast **value;  /* each, to be read in the file of the point; NULL: its text was not parsed yet */
    const char **label; /* of each, in names of points, where that is not its text; NULL: it is everywhere */
    int dim;            /* which dimension it moves with; -1: not decided */
    SweepAxis out;
} Axis;
/* Axes that move together. */
typedef struct Dimension {
    size_t n;
    bool drawn;
} Dimension;
/* `random`: how axes of `between(...)` are drawn. */
typedef struct Draws {
    size_t n;
    uint64_t seed;
    bool seeded, halton;
    Span span;
} Draws;
typedef struct Sweep {
    Eval *ev;
    File *file, *target;
    bool checks; /* the first points are built */
    Name vary;   /* the origin of the settings of axes */
    Axis *axis;
    size_t n_axis, n_given; /* n_given: those of the command line, which come first */
    Dimension dim[SWEEP_AXES_MOST];
    size_t n_dim;
    Override *set, *lets,
        *fixed; /* of all points: of the command line, then of the sweep; lets that follow; as written */
    size_t n_set, n_cli, n_lets, n_fixed; /* n_cli: those of n_set that the command line gives */
    const char **all;                     /* settings of all points */
    size_t n_all;
    const Ast *skip;
    Draws draws;
    size_t drawn; /* axes, and entries of lists */
    bool looked;  /* the first point was */
    Map names;    /* of points */
    VEC(SweepPoint) configs;
    SweepPlan plan;
} Sweep;

/* check_sweep.c: does the command line give this axis, or fix it? */
bool is_given(const Sweep *s, const char *path);

/* ---- check_points.c; those that are false have filed a message ---- */
bool sweep_draws(Sweep *s, const Ast *random);
bool draw_axis(Sweep *s, const Ast *path, const Ast *expr, const Value *between);
bool draws_fit(Sweep *s, const Ast *random,
               bool asked); /* `random` and axes that are drawn need each other; asked: on the command line */
bool sweep_bounds(Sweep *s, const Ast *until, const Ast *prune);
void prune_fits(Sweep *s, const Train *t);
const char *sweep_point_name(Sweep *s, const size_t *at);
/* The runs: configurations in the order that is asked for, times the seeds. */
void sweep_points(Sweep *s, const Ast *order, const Ast *seeds, const char *given);
void sweep_report(Sweep *s, const Ast *report);
uint64_t sweep_hash(const File *target);
Axis *sweep_axis_named(Sweep *s, const Ast *e); /* files E0105 */

#endif
