/* pipeline.h - the passes in their order, and what is known of each.
 *
 * In:  a graph, a group of it, or a kernel.     Out: the same behind all passes of a level of
 * passes.def. The one idea: who wants something made says which level is to run on what; which
 * passes those are, and in which order, stands in passes.def alone.
 */
#ifndef VWN_PIPELINE_H
#define VWN_PIPELINE_H

#include "compiler/gpu/map_threads.h"
#include "compiler/print/emit.h"
#include "compiler/lower/lower_kernel.h"
#include "compiler/pass/decompose.h"

typedef enum PassId {
#define FACT(...)
#define PASS(ID, ...) PASS_##ID,
#include "passes.def"
#undef FACT
    PASSES
} PassId;

typedef enum PassLevel {
    LEVEL_GRAPH,
    LEVEL_GROUPS,
    LEVEL_FIT,
    LEVEL_KERNEL,
    LEVEL_BUILD,
    LEVEL_SCHEDULE,
    LEVEL_ARRANGE,
    LEVEL_CHOOSE,
    LEVEL_CLASS,
    LEVEL_THREADS,
    LEVEL_FINISH,
    LEVEL_TOGETHER,
    LEVEL_PROOF,
    LEVEL_TEXT,
    LEVEL_PLAN
} PassLevel;
typedef enum PassWhere { ON_ANY, ON_THREADS, ON_VECTORS, ON_HALF, ON_HALF_THREADS, ON_JOINS, ON_LAYOUT } PassWhere;

/* Facts as bits; IS_NOTHING is none of them. */
enum {
#define FACT(ID, ...) FACT_##ID,
#define PASS(...)
#include "passes.def"
    FACTS
};
enum {
    IS_NOTHING = 0,
#define FACT(ID, ...) IS_##ID = 1 << FACT_##ID,
#define PASS(...)
#include "passes.def"
};

/* What is known of a pass when it has run. */
typedef struct PassCount {
    size_t runs;    /* how often it has run */
    size_t trials;  /* how many of these runs a choice only looked at: nothing of them is kept */
    size_t changed; /* how many `things` of its row the other runs have changed */
    size_t last;    /* how many the last run has changed */
    double seconds; /* how long all runs took, without the passes that they ran */
} PassCount;

/* Somebody who looks at the passes while they run: who sees their counts, and the dump of one
 * of them. */
typedef struct PassWatch {
    PassCount count[PASSES];
    PassId show;      /* PASSES: none */
    const char *text; /* the dump of `show`, unless it is of kernels: those have it (Kernel.shown) */
    double inner;     /* seconds that passes took which others have run */
} PassWatch;

struct Build;
struct Lower;
struct KernelCache;
struct VariantClass;
/* What passes work on. A level has the fields below its name, and no others. */
typedef struct PassState {
    Ctx *ctx;
    Arena *arena;           /* what passes make lives there */
    const PlanOptions *how; /* of the graph; NULL: the kernel belongs to no graph */
    const Target *target;
    PassWatch *watch; /* or NULL */
    bool trial;       /* a choice looks at what is made, and nothing of it is kept */
    uint32_t facts;   /* what is true of it: bits IS_ */
    /* GRAPH, GROUPS, PLAN */
    const Graph *graph;
    Decomposed decomposed;
    size_t members; /* so many members a group has at most */
    Fusion *fusion;
    struct Build *build;
    bool again; /* groups are to be made once more */
    /* KERNEL, BUILD */
    uint32_t group;
    const Val *same;
    Lowered *lowered;
    struct Lower *lower;
    Dim rows;
    /* SCHEDULE to TEXT */
    Kernel *kernel;
    KMappingChoice *choice; /* NULL: CHOOSE makes one */
    const Kernel *
        looked; /* the kernel with that choice behind the level THREADS, which CHOOSE has looked at; NULL: it has not */
    struct KernelCache *cache;
    struct VariantClass *class;
    Printed *printed;
    const Dialect *dialect;
    const char *about;
    const ArgumentSlots *slots; /* what ARGUMENTS takes for one argument; NULL: equal sizes */
} PassState;

typedef struct PassRow {
    const char *name, *things, *says;
    PassLevel level;
    PassWhere where;
    uint32_t needs, gives;
    size_t (*run)(PassState *s);                /* how many of its things it changed */
    void (*dump)(Buf *out, const PassState *s); /* NULL: nothing to see */
    void (*verify)(const PassState *s);         /* NULL: others do */
} PassRow;
extern const PassRow pass_rows[PASSES];
extern const char *const fact_words[FACTS];
bool pass_applies(PassId id, const PassState *s); /* does it run for the graph, or for the target alone? */

/* All passes of a level, in their order. */
void pipeline_run(PassState *s, PassLevel level);
/* The levels GROUPS and FIT, again and again until all groups fit. */
void pipeline_groups(PassState *s);
/* The groups that a graph would have, for who decides before they are made. */
Fusion *pipeline_look_at_groups(const Graph *g, Arena *arena, const PlanOptions *how, Decomposed *d);

/* ---- what is asked of them ---- */
/* Makes a group a kernel, and says how much work its launch is. What `out` has lives in `arena`. watch may be NULL. */
void pipeline_lower(Lowered *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same, PassWatch *watch);
/* Says how much work the kernel of a group is. Nothing of the kernel stays. */
void pipeline_count(Counted *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same, PassWatch *watch);
/* `to` is the scheduled kernel `from` with its tiles and nests in order. */
void pipeline_arrange(Kernel *to, const Kernel *from, PassWatch *watch);
/* `to` is the choice that suits the sizes of such a kernel. */
void pipeline_choose(KMappingChoice *to, const Kernel *arranged, PassWatch *watch);
/* `to` is such a kernel for its threads. choice NULL: the one that suits it. slots: those of its class, or NULL. trial: the kernel is
 * looked at and never run, and has no arguments. */
void pipeline_threads(Kernel *to, const Kernel *arranged, const KMappingChoice *choice, const ArgumentSlots *slots,
                      PassWatch *watch, bool trial);
/* `to` is the scheduled kernel `from` for its threads: the three functions above, one after the other. */
void pipeline_map(Kernel *to, const Kernel *from, const KMappingChoice *choice);
/* Finds the choice and the arguments of a variant class (kernel_cache.c). */
void pipeline_class(struct KernelCache *cache, struct VariantClass *class, const Target *target, PassWatch *watch);
/* Finds the loops of a processor's kernel that are explicit vectors, unless its text has said it. */
void pipeline_vectors(Kernel *k);
/* Gives these loops the rounds that vectors leave, unless its text has them. */
void pipeline_rest(Kernel *k);
/* Finds the arguments of a kernel. Equal sizes are one argument, so that other kernels of its class can be compared with it. */
void pipeline_arguments(Kernel *k);
/* Prints a kernel that is checked, or mapped. A kernel without arguments gets them first. */
void pipeline_print(Printed *out, const Kernel *k, const Dialect *d, const char *about, PassWatch *watch);

/* ---- pass_text.c ---- */
/* The list, as `vwn ir --passes` prints it; seconds: with times, which differ from run to run.
 */
void passes_put(Buf *out, const PassWatch *watch, const Target *target, Half half, bool seconds);
/* PASSES: there is no pass of this name. */
PassId pass_of_name(const char *name);
/* `after`, and as comments the lines of `before` that are not in it, where they stood. Numbers
 * of values do not count. */
void put_with_removed(Buf *out, Arena *arena, const char *before, const char *after);
/* A kernel as kernel_print() prints it; behind each barrier stands what would race without it.
 */
void put_with_reasons(Buf *out, const Kernel *k);

#endif
