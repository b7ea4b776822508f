/* check_train.h - attributes of the nodes that C knows: train, grow, sweep. */
#ifndef VWN_CHECK_TRAIN_H
#define VWN_CHECK_TRAIN_H

#include "compiler/front/attribute.h"
#include "compiler/front/check_prim.h"
#include "compiler/front/override.h"
#include "check_unit.h"

typedef struct TrainAttr {
    Name name;
    const Ast *expr;
    Env *env;
    Span span, name_span; /* the item, the letters of its name */
    bool used;
} TrainAttr;
typedef struct Attrs {
    Eval *ev;
    const char *what; /* "train": the node in attributes.def, and in messages */
    Span at;
    TrainAttr *v;
    size_t n;
} Attrs;

/* Collects `name = expr` items and the overrides of `path`. */
void attrs_open(Attrs *a, Eval *ev, File *f, const Ast *items, Name path, const char *what, Span at);
const TrainAttr *attrs_get(Attrs *a, const char *name);
const TrainAttr *attrs_need(Attrs *a, const char *name); /* files E0104 */
Value attr_value(Attrs *a, const TrainAttr *t);          /* V_NONE for NULL */
void attrs_close(Attrs *a);                              /* files E0101 for what nothing asked for */
/* Each reads an attribute of its type in attributes.def: the value or the fallback. What is of another type or out of range is said, and
 * something that is in it comes back. */
double attr_number(Attrs *a, const char *name); /* NaN when there is neither */
int64_t attr_whole(Attrs *a, const char *name);
Name attr_word(Attrs *a, const char *name);
bool attr_bool(Attrs *a, const char *name, bool *given);    /* *given may be NULL */
bool attr_numbers(Attrs *a, const char *name, double *out); /* false when there is neither */
const HostExpr *attr_of_run(Attrs *a, const char *name);    /* NULL: not given, or no number */
const Ast *attr_names(Attrs *a, const char *name);          /* a list of names; NULL: not given, or none */
/* The value of one that is `t`, which may be NULL; poison with *d set, to add to it, where a message was filed. */
Value attr_one_of(Attrs *a, const TrainAttr *t, Diag **d);
/* Quantities of the run. False, NULL: a message was filed, or `at` is NULL. */
bool attr_seqs(Attrs *a, const TrainAttr *at, const Train *t, int64_t *seqs);
bool attr_steps(Attrs *a, const TrainAttr *at, const Train *t, int64_t *steps);
void attr_length(Attrs *a, const TrainAttr *at, Train *t);
const HostExpr *attr_part_of_run(Attrs *a, const TrainAttr *at, const Train *t);

/* The node `optimizer` (check_optimizer.c): fills Train.optimizer. */
void build_optimizer(Eval *ev, File *f, const Ast *it, Model *m, Train *t);
/* check_start.c: `start_from`, and `from` of a growth step. `row` is which of them. */
StartSpec start_spec(Eval *ev, File *f, const Value *v, Span at, const AttributeRow *row);

/* check_inputs.c: the arrays that `r` names, and whether data gives what the model reads. */
void array_specs(Eval *ev, const Record *r, DataSpec *out);
void check_inputs(Eval *ev, const Model *m, const DataSpec *data);
const char *arrays_example(Eval *ev, const Model *m); /* "arrays(image = \"image.npy\", ...)" */

/* check_step.c: what a growth step says about training. The `train { }` of the step as overrides of that of the file. */
typedef VEC(Override) OverrideList;
void step_train(Eval *ev, File *f, const Ast *items, OverrideList *out);
/* Fills old, fresh, restarts and train; `was`: the training before the step, NULL when it is not this file's. */
void step_training(Eval *ev, File *after, const Ast *items, const Train *was, GrowStep *g);
/* `plateau(...)` under `was`, which may be NULL. NULL when a message was filed. */
const Plateau *plateau_of(Eval *ev, const Value *spec, Span at, const Train *was);

/* check_grow.c: of a growth step and a sweep. The file that `of` names, or `f`; NULL when a message was filed. */
File *file_varied(Eval *ev, File *f, const Ast *items);
Override let_override(Eval *ev, File *f, const Ast *let, const char *what);
bool let_exists(Eval *ev, File *target, const Ast *let);               /* files E0115 */
bool let_again(Eval *ev, const Override *o, size_t n, const Ast *let); /* files E0108 for a let that is given twice */

/* E0201: a number where a quantity is needed. */
void no_unit(Eval *ev, Span at, const char *what, double x, const Train *t, const char *example);
/* A length of training in steps; NULL when a message was filed. */
const HostExpr *steps_of(Eval *ev, const Value *v, Span at, const char *what, const Train *t);
/* The attribute `lr`: a number, a run-time expression or a schedule (check_schedule.c). */
const HostExpr *schedule_of(Attrs *a, File *f, const TrainAttr *lr, const Train *t);
/* A value that can be one; NULL when a message was filed. */
const HostExpr *schedule_expr(Eval *ev, const Value *v, Span at, const Train *train);
/* ---- the nodes of a file (check_train.c, check_grow.c, check_sweep.c) and settings (check_unit.c) ---- */
Train *build_train(Eval *ev, File *file, Model *model);
/* The file with the lets of its first n growth steps, or of all when it has fewer. */
File *grown_file(Eval *ev, File *file, size_t n);
void build_grow(Eval *ev, File *file);   /* the steps behind Unit.grown */
void build_sweeps(Eval *ev, File *file); /* of the file, whose first points are checked */
/* One sweep with what the command line says; `set`: settings of all its points. Whether the file itself is varied, and no other. */
bool build_sweep(Eval *ev, File *file, const SweepAsk *ask, const char *const *set, size_t n_set);
/* "PATH=EXPR" of `flag`, into *o, without an environment. False: a message was filed. */
bool parse_setting(Eval *ev, const char *text, const char *flag, Override *o);
/* Files E0105 for those that nothing used. What nodes have is known only once they were built. */
void check_overrides_used(Eval *ev, File *f, bool built, bool trained);

#endif
