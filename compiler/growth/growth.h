/* growth.h - what a growth step does to every tensor, as data.
 *
 * In:  a GrowStep: the model before and after it.   Out: a GrowthPlan that accounts for every tensor
 * of both sides; nothing is allocated in the size of the weights.
 * The one idea: an axis of a tensor has parts, ranges of the new tensor that are taken from a range of
 * the old one or are new; a block of a tensor is one part of each of its axes. Whoever applies the plan
 * (weights, moments, averages) and whoever proves something about it reads the same list.
 */
#ifndef VWN_GROWTH_H
#define VWN_GROWTH_H

#include "compiler/model/model.h"

typedef enum GrowthKind {
    GROWTH_TAKEN, /* both sides have it, with the same shape */
    GROWTH_GROWN, /* both sides have it; an axis has new parts, none is shorter */
    GROWTH_CUT,   /* both sides have it; an axis is shorter, or its rank differs (steps refuse this) */
    GROWTH_NEW,   /* after only */
    GROWTH_LEFT   /* before only: left behind (steps refuse this) */
} GrowthKind;

enum { PARTS_MOST = 1 << 16, PROOF_MIB = 640 };

/* A range of one axis of the new tensor. What is taken from the old one is multiplied by the product of `weight` over
 * the axes, and its gradient is the old one times the product of `gradient`, as far as the function stays the same. */
typedef struct GrowthPart {
    int64_t at, count; /* in the new tensor; the parts of an axis follow each other and cover it */
    int64_t from;      /* where the range begins in the old tensor; -1: it is new and a copy of nothing */
    bool fresh;        /* it is new; from >= 0: blocks that are copies are copied from there */
    double weight, gradient;
} GrowthPart;
typedef struct GrowthAxis {
    const GrowthPart *part;
    size_t n;
    bool reads;   /* a product sums over it, or a table is looked up along it; else it is written */
    bool recut;   /* what the graph splits the axis into before and after does not correspond (24 heads where
                     there were 16 of another size): old elements keep their places, new ones follow */
    bool spread;  /* the old tensor has no such axis: all along it is the same */
    bool crowded; /* it has more than PARTS_MOST parts, of which the rest is left out */
    bool carried; /* moments of new parts are those of what they copy */
} GrowthAxis;

/* What a block of a grown tensor connects, by which of its axes stand at new parts. */
typedef enum GrowthRole {
    ROLE_OLD,   /* no new part */
    ROLE_ENTRY, /* new on an axis that is written: feeds new units from old ones */
    ROLE_EXIT,  /* new on an axis that is read: new units feed old ones */
    ROLE_INNER, /* both */
    ROLE_OWN    /* new, of a tensor that no product reads: a gain, a bias */
} GrowthRole;

typedef struct GrowthEntry {
    GrowthKind kind;
    Name path;
    const Param *before, *after; /* NULL on the side that has it not */
    bool copied;                 /* `before` is another tensor than that of this path */
    bool moved;                  /* and no copy: the old tensor itself, under another number */
    GrowthAxis axis[MAX_RANK];   /* of TAKEN and GROWN: after->shape.rank of them */
    int64_t old_elements;        /* how many of `after` are taken from `before` and stand nowhere else */
    /* By role: the values of new blocks; ROLE_OLD: of a tensor that is new as a whole. They are drawn as those of
     * `after` are, at the same element of the new tensor, with this initialisation. A rule of `fill` or the declared one. */
    Init init[ROLE_OWN + 1];
    bool filled[ROLE_OWN + 1];  /* a rule of `fill` says so */
    double noise[ROLE_OWN + 1]; /* not 0: `init` is normal, with so much of the old tensor's standard deviation */
    bool means[ROLE_OWN + 1];   /* not drawn: the mean of old numbers along the axes that are new */
    bool copies[ROLE_OWN + 1];  /* not drawn: blocks of this role are taken from where their parts say */
} GrowthEntry;

typedef struct GrowthPlan {
    const GrowStep *step;
    GrowthEntry *entry; /* in the order of `after`, then what is left behind in that of `before` */
    size_t n;
    int64_t alike; /* new coordinates that are copies in all they are written and read by, with equal shares: they get
                             the gradients of what they copy, and stay copies */
    const GrowthEntry *crowded; /* one of its axes is; NULL: none is */
    const GrowthEntry
        *nothing; /* a tensor of whose new numbers `nothing_rule` says that they are made of old ones, of which
                                    there are none; NULL: there is none */
    const FillRule *nothing_rule;
    int64_t taken, added; /* numbers of `after` that are taken from `before`; that are new; buffers too */
} GrowthPlan;

/* Makes the plan in `arena`; the step needs both models. Costs time in the nodes of both graphs. */
GrowthPlan *growth_plan(const GrowStep *step, Arena *arena);
bool growth_rescales(const GrowStep *step); /* whether some of its `fill` is `rescale` */
/* The role of the block that consists of part[k] of each axis k. */
GrowthRole growth_role(const GrowthEntry *e, const size_t *part);
/* Whether a path, "layer[3].ffn.up.W", lies at or below a selector, "layer[*].ffn.up". */
bool growth_selects(const char *selector, const char *path);
/* What the block of part[k] of each axis k, if it is taken, is multiplied by, and its gradient. */
double growth_weight(const GrowthEntry *e, const size_t *part);
double growth_gradient(const GrowthEntry *e, const size_t *part);
/* Whether all of the tensor is what it was. */
bool growth_same(const GrowthEntry *e);
/* Whether the step makes copies; whether these begin with moments of what they copy. */
bool growth_copies(const GrowStep *step);
bool growth_carries(const GrowStep *step);
/* Whether all of the tensor is what the step adds: drawn, or a copy. */
bool growth_added(const GrowthEntry *e);
/* Whether the block is taken from the old tensor, and whether its moments are. */
bool growth_taken(const GrowthEntry *e, const size_t *part);
bool growth_moments(const GrowthEntry *e, const size_t *part);
/* ---- growth_proof.c: what is known of a step before anything runs ---- */
enum { NEVER = -1, NO_BLOCK = -2 };
/* A new block of a tensor, or what differs in one. */
typedef struct GrowthCell {
    GrowthRole role; /* ROLE_OLD: of a tensor that is new as a whole */
    int64_t at[MAX_RANK], count[MAX_RANK];
    int after; /* so many updates are done, and it has a gradient; NEVER: it has none, or that is a matter of data */
    int may;   /* before so many it has none; NEVER: it is zero and stays so */
    uint64_t
        sure; /* bit i: after i updates it has one, and no comparison of a number decides that; the passes looked at are `passes` */
} GrowthCell;
/* What keeps a block from moving, whatever it is filled with. */
typedef enum GrowthBar {
    BAR_NONE,
    BAR_FROZEN, /* the file freezes its group */
    BAR_RATE,   /* its learning rate is 0 */
    BAR_SHAPE   /* no weights give it a gradient: the loss does not depend on it */
} GrowthBar;
typedef struct GrowthLife {
    VEC(GrowthCell)
    cell; /* none for what is declared to stay, nor for parts of a block that no weights give a gradient */
    int after[ROLE_OWN + 1]; /* the latest of a role, or NEVER; NO_BLOCK: there is none */
    int may[ROLE_OWN + 1];   /* so; before it no cell of the latest has one */
    GrowthBar bar[ROLE_OWN + 1];
    int passes; /* after so many updates nothing changes any more but for what is the same as something else */
} GrowthLife;
typedef struct GrowthProof {
    bool too_large;     /* it takes more than PROOF_MIB, or than the context has: nothing is known */
    bool preserved;     /* every output is what it was, as real numbers */
    double factor;      /* every output is this times what it was; 0: not shown */
    const char *output; /* the first of which that is not shown */
    Shape had, has;     /* its shapes; of the new model's where `there` */
    bool there;
    const Param *leak; /* new numbers of this weight reach it; or NULL */
    const Node
        *departs;     /* the first value there that is made of old ones alone and that the old model has not; or NULL */
    bool constant;    /* the old model has it with another number in it */
    const Node *lost; /* where no rule says what becomes of old values; NULL: nowhere */
    bool in_norm;     /* that is a mean over a grown axis to which a constant is added */
    int64_t mean_of, mean_over; /* so many of its coordinates are not zero, of so many */
    const Param *recut;         /* a weight that is cut in another way than before; or NULL */
    bool trained;               /* there is a loss, so `life` says something */
    const char *undefined; /* where something is divided by 0 right after the step, "layer[1].attention"; or NULL */
    GrowthLife *life;      /* by entry of the plan */
    size_t blocks;         /* new ones, by entry and role */
    size_t barred;         /* of them those that do not move, whatever they are filled with; of the others */
    size_t dead, open;     /* those that never have a gradient; for which it is a matter of data */
    int alive_after;       /* updates until all that are not barred have a gradient, as far as data lets them; NEVER */
} GrowthProof;
/* Preservation and life of a step, in `arena`. Sound: `preserved` is true of all weights and inputs that both models
 * take (ids that the old tables have); a gradient that is zero by this is zero. `alive` holds for weights in general
 * position. The source of the facts: f(0) and f'(0), by the operators' own rules. */
GrowthProof *growth_prove(const GrowthPlan *plan, Arena *arena);

/* Whether measured norms of a block's gradient, after 0 and more updates, contradict the proof; after *at of them. `most`: the
 * largest norm of a gradient around the step, beside which rounding is nothing; `moved`: everything that is not barred has moved
 * with each update. */
typedef enum GrowthContradiction { FITS, HAS_NONE, HAS_ONE } GrowthContradiction;
GrowthContradiction growth_contradiction(const GrowthLife *life, GrowthRole role, const double *norm, int n,
                                         double most, bool moved, int *at);

/* ---- growth_axes.c: how the graph splits axes ---- */
/* An axis that a graph reshapes into several, [16 * 64] -> [16, 64], has factors, outermost first; one
 * of which it takes slices, or that is put together of others, has segments. Never both. */
typedef struct AxisShape {
    const int64_t *factor, *segment; /* products and sums of these are the extent */
    size_t n_factor, n_segment;      /* 0: none */
    bool reads;
    /* Axes of one model that operators make the same are of one class; `within` is that of the innermost axis it is
     * split into, or the same. */
    uint32_t class, within;
} AxisShape;
/* For each parameter of `m` an array of shape.rank. */
AxisShape **growth_axes(const Model *m, Arena *arena);

#endif
