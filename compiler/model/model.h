/* model.h - a checked file: the model as a graph, its parameters, and how to train it.
 *
 * In:  a path and overrides.   Out: a Unit in the context's program arena; diagnostics for every
 * mistake. The one idea: after this point nothing refers to the language any more; what remains are
 * numbers, paths, spans and a graph whose B (sequences) and T (positions) are still symbols.
 */
#ifndef VWN_MODEL_H
#define VWN_MODEL_H

#include "compiler/portable/loop.h"
#include "grammar/ast.h"
#include "compiler/graph/ir.h"

typedef enum InitKind {
    INIT_FILL,         /* a: value; zeros and ones are this */
    INIT_EYE,          /* 1 on the diagonal */
    INIT_NORMAL,       /* a: std */
    INIT_TRUNC_NORMAL, /* a: std before cutting, b: cutoff in units of std */
    INIT_UNIFORM,      /* a: low, b: high */
    INIT_LIST          /* list: n numbers, row-major */
} InitKind;
typedef struct Init {
    InitKind kind;
    double a, b; /* INIT_EYE: `a` is its size where that is said, else 0 */
    const double *list;
    size_t n;
} Init;

typedef struct Param {
    Name path;              /* "layer[3].attention.q_proj.W" */
    Shape shape;            /* all extents static */
    int64_t elements, dead; /* dead: weights that can never learn, by shape (see dead.c) */
    double active;          /* share read per token: active / experts for routed experts, else 1 */
    Init init;
    Name group;  /* matrix, vector, embedding, static, ... */
    bool buffer; /* stored, not learned */
    bool frozen;
    double lr_scale;            /* of the declaration, 1 when not written */
    double decay;               /* of the declaration, NaN when not written */
    Val value;                  /* the EXT leaf in Model.graph (kind EXT_PARAM or EXT_BUFFER, name = path) */
    Span declared, used;        /* the `param` item; the node that placed it */
    const char *dims[MAX_RANK]; /* the text each extent was written as: "heads * head_dim" */
} Param;

typedef struct ModelLoss {
    Name name;    /* "next", "balance"; instances of one name are averaged */
    Val value;    /* scalar, or [n] of a metric; the training loss is the sum of all */
    bool trained; /* false for `metric.NAME`: logged only */
    Span span;
} ModelLoss;
typedef struct ModelOutput {
    Name name; /* "logits" [B, T, vocab] */
    Val value;
} ModelOutput;

/* What a parameter, or a part of it, is called elsewhere, by a `names` table. */
typedef struct ModelAlias {
    Name other;
    size_t param;
    uint32_t table;  /* which of the file's, from 0 */
    bool transposed; /* that tensor has its last two axes swapped */
    bool joined;     /* it holds other parameters, too, along the last axis that they have here: */
    int64_t at, of;  /* this one from `at` on, of so many */
    int64_t entry;   /* it holds this index of the parameter's first axis, from 0; -1: all of the parameter */
    Span span;
} ModelAlias;
static inline bool alias_is_whole(const ModelAlias *a) { return !a->joined && a->entry < 0; }

/* What a connection hands a sublayer and gets back, and the state behind that step. A sublayer's norms are its own. */
typedef struct ModelSublayer {
    Name path; /* "layer[3].attention" */
    Val read, wrote, after;
} ModelSublayer;

/* A block that was applied: the tensors that it was given, by the names of its text, and the one that it returned. */
typedef struct ModelModule {
    Name path, block; /* "layer[3].attention.q_proj", "linear" */
    const Name *name; /* n of each */
    const Val *given;
    size_t n;
    Val result;
} ModelModule;

/* A step of the state through a sublayer. */
typedef struct ModelStep {
    Name path, connection; /* "layer[3].attention", the block that joins it to the state */
    int64_t reads, state;  /* coordinates of a position */
} ModelStep;

typedef struct Model {
    Name name;
    Graph *graph;     /* forward only; reads EXT_INPUT "tokens", "labels" (DT_INT, [B, T]; label
                               < 0: position without a target), "document" (DT_INT, [B, T]: the position
                               at which the document of a position begins), or "image", "time", ... */
    VEC(Param) param; /* learnable ones and buffers, in order of declaration */
    VEC(ModelLoss) loss;
    VEC(ModelOutput) output;
    VEC(ModelAlias) alias;
    VEC(ModelSublayer)
    sublayer;                /* in order, those of heads left out; a step may apply its own several times, or never */
    VEC(ModelModule) module; /* in the order in which they returned; a path that is applied again stands there again */
    Val embedded, opened;    /* what the embed nodes made; the first state */
    Val closed;              /* what the first head that reads a closed state is given; 0: none does */
    int64_t context;         /* largest T */
    int64_t width;           /* of the outermost scope; 0 when it varies */
    int64_t state_width;     /* coordinates per position in the state that travels through the layers */
    int64_t steps_of_state;  /* how often the state travels through a sublayer, heads' own aside */
    VEC(ModelStep) step;     /* in the order of the file: those of heads, too */
    int64_t reads, widest_read; /* coordinates per position that those sublayers read: of all, at most */
    int64_t vocab;              /* last extent of output "logits"; 0 without one */
    int64_t table_rows;         /* of the smallest table that input "tokens" is looked up in; 0 without one */
    Span vocab_at, table_at;    /* where these two were written */
    Span span;
} Model;

/* ---- training ---- */
typedef enum DataKind { DATA_NONE, DATA_TEXT_FILE, DATA_TOKEN_FILES, DATA_ARRAYS } DataKind;
typedef struct ArraySpec {
    Name input;       /* of the model */
    const char *path; /* as written, of a .npy file */
    Span span;
} ArraySpec;
/* What a file of token ids says of itself: nothing, 1,024 bytes of llm.c, a .npy header, an .idx of Megatron-LM beside it. */
typedef enum TokenHeader { HEADER_NONE, HEADER_LLM_C, HEADER_NPY, HEADER_MEGATRON } TokenHeader;
typedef struct DataSpec {
    DataKind kind;
    const char *path;           /* as written; relative to the folder of the file */
    const char *folder;         /* that folder */
    double val;                 /* share of the text kept for evaluation, 0..1 */
    const char *val_path;       /* token_files: separate validation shards, or NULL */
    int bits;                   /* token_files: 16 or 32; 0: the files say it */
    TokenHeader header;         /* token_files */
    bool separated;             /* documents begin with a token: */
    int64_t separator;          /* token_files: its id */
    const char *separator_text; /* text_file: the text of one token, UTF-8 */
    Span separator_span;
    const ArraySpec *array; /* arrays: one for each input */
    size_t n_array;
    Span span;
} DataSpec;
typedef enum TokenizerKind { TOKENIZER_NONE, TOKENIZER_BYTES, TOKENIZER_CHARS, TOKENIZER_FILE } TokenizerKind;
/* A token that the files of a tokenizer do not name. */
typedef struct SpecialToken {
    const char *text;
    int64_t id; /* -1: the next one, or the one that the vocabulary has for it */
} SpecialToken;
typedef struct TokenizerSpec {
    TokenizerKind kind;
    const char *path; /* file: as written, relative to `folder`, that of the file */
    const char *folder;
    const char *merges, *split; /* NULL: none */
    const SpecialToken *special;
    size_t n_special;
    Span span;
} TokenizerSpec;

/* What a run begins with instead of weights that are drawn. */
typedef enum StartKind { START_DRAWN, START_RUN, START_FILE } StartKind;
typedef struct StartSpec {
    StartKind kind;
    const char *path; /* as written; relative to `folder`, that of the file */
    const char *folder;
    bool draw_new, draw_grown; /* weights, or parts of them, that are not there are drawn as declared, */
    bool drop_cut, drop_left;  /* numbers that have no place are dropped: else each is an error */
    bool last;                 /* of a run: the weights of the last step, also where it kept their average */
    double preserves;          /* of a run: how much outputs may differ from its own; infinite: any */
    Span span;
} StartSpec;

typedef struct OptimizerConstant {
    Name
        name; /* "beta1", "beta2", "eps", "momentum", "nesterov"; "coupled" of sgd; "steps", "a", "b", "c", "rms" of muon */
    double value;
} OptimizerConstant;
typedef struct Optimizer {
    Name kind; /* "adamw", "sgd", "lion", "muon" */
    const HostExpr *lr;
    Span lr_span; /* of its expression; NO_SPAN when it has no text */
    VEC(OptimizerConstant) constant;
    /* per Model.param: */
    double weight_decay; /* of its node alone, NaN when not written; decay[] has what holds */
    double *lr_scale, *decay;
    bool *frozen;
    /* Some kinds are made for matrices alone; the rest of the weights has another: its kind, lr and
     * constants. Both NULL: one optimizer for all. */
    struct Optimizer *second;
    bool *by_second; /* per Model.param */
    Span span;
} Optimizer;
/* Newton-Schulz coefficients of muon unless a file has others (Jordan et al. 2024). */
#define MUON_A 3.4445
#define MUON_B -4.7750
#define MUON_C 2.0315

/* What a growth step says of the rates of weights: `old { }`, `new { }`. */
typedef struct PartRate {
    bool said;
    const HostExpr *scale;  /* a factor of the learning rate; the constant 0: they are frozen */
    const HostExpr *warmup; /* updates over which it rises; NULL: none */
    Span span, scale_span;
} PartRate;
/* Which parts of the weights came with growth steps, and when: steps give rates to parts, and Adam's bias correction counts
 * the updates that moments have seen. Part b came with step b, counted from 1, part 0 with the model. Moments of copies came
 * with what they copy, unless the step lets them begin with zeros. */
typedef struct GrownParts {
    const double *updates; /* that were done before each growth step, in their order */
    size_t n;
    const bool *some;            /* by parameter: parts of it came with a step */
    bool carried;                /* a step lets copies begin with moments of what they copy */
    const PartRate *old, *fresh; /* by step; both NULL: no step says anything */
} GrownParts;
/* The factor of the learning rate of part b: of the last step that says one of it, `new` of step b or `old` of a later one.
 * NULL: none does. */
const HostExpr *part_factor(Arena *arena, const GrownParts *g, size_t b);
/* Whether that is the constant 0 after the first `steps` steps. */
bool part_is_frozen(const GrownParts *g, size_t b, size_t steps);
typedef struct Train {
    DataSpec data;
    TokenizerSpec tokenizer;
    StartSpec start;
    int64_t batch_seqs;   /* sequences per optimizer step */
    int64_t lanes;        /* of a step: a power of two that divides batch_seqs; see loop.h */
    int64_t micro_seqs;   /* sequences per forward/backward; divides those of a lane; = all of a lane if unwritten */
    int64_t length_steps; /* `epochs` lengths are < 0 here and resolved against the data: */
    double length_epochs; /* 0 unless the length was written in epochs */
    int64_t context;      /* T of training; model.context unless overridden */
    uint64_t seed;
    const char *precision; /* "fp32", "mixed(compute = bf16, master = fp32)": as written */
    Half compute;          /* of matrix products; weights and all else are fp32 */
    double clip;           /* global gradient norm; 0 = none */
    Optimizer optimizer;
    const Name *recompute; /* names of modules that are computed again in the backward pass */
    size_t n_recompute;
    const HostExpr *average; /* decay of the average of the weights; NULL: no average */
    Span average_span;
    int64_t eval_every, eval_batches; /* 0 = no eval node */
    DataSpec eval_data;               /* kind DATA_NONE: the validation split of `data` */
    int64_t checkpoint_every, checkpoint_keep;
    int64_t log_every; /* 1 unless written */
    GrownParts births; /* of a run that has grown; the runtime's */
    bool decides;      /* the update looks at the loss itself, and holds from a bad one on; the runtime's */
    const int *
        owner; /* of several ranks, by parameter: which one updates it; see param_owners(). NULL: all do; the runtime's */
    int rank, ranks; /* which one this is, of how many */
    Span span;
} Train;
/* The state "path:born0" says of each index of axis 0 with which growth step it came, counted from 1; 0: with the
 * model. An element came with the last of its indices. A parameter without axes has axis 0 of extent 1. */
Name born_name(Ctx *ctx, const Param *p, int axis);
/* "path:since0": the same of the moments; where some are carried, else they came with the weights. */
Name since_name(Ctx *ctx, const Param *p, int axis);
/* What operands of its large products are rounded to. */
static inline Half train_half(const Train *t) { return t ? t->compute : HALF_NONE; }

/* ---- the rest of a file ---- */
typedef enum CheckState { CHECK_TRUE, CHECK_FALSE, CHECK_NOT_DONE } CheckState;
typedef struct CheckResult {
    CheckState state;
    const char *text;   /* "dhc.params - base.params == 394_048" */
    const char *values; /* "1,177,158,464 - 1,176,764,416"; or why it was not done */
    const char *where;  /* "" at file level, else the grow step's name */
    Span span;
} CheckResult;
/* What new numbers begin with, one rule of `fill`: `entry = zeros`, `layer[*].ffn.up { entry = copy }`. */
typedef enum FillKind {
    FILL_INIT,      /* drawn with `init` */
    FILL_COPY,      /* a new coordinate is a copy of an old one, behind them all; of layers: a copy of an old layer */
    FILL_SPLIT,     /* so, and what reads a coordinate and its copies is shared out among them */
    FILL_REPLICATE, /* so, but each copy stands beside what it copies; of layers: in turn */
    FILL_NOISE,     /* normal, with `share` of the standard deviation that the old tensor has when it grows */
    FILL_MEAN,      /* the mean of the old numbers along the axis that is new */
    FILL_IDENTITY,  /* of layers: they add nothing */
    FILL_RESCALE    /* of norms: a gain over an axis that grows from d to d' is multiplied by sqrt(d / d') */
} FillKind;
enum { EQUAL_SHARES = -1 };
typedef struct FillRule {
    const char *selector; /* of paths; "" is all */
    Name part;            /* entry, exit, inner, norms, layers */
    FillKind kind;
    Init init;
    double share; /* of split: of a coordinate's copies together; EQUAL_SHARES: each gets what it gets; of noise */
    const struct Ast *of; /* of copy: which layer, or what, is copied; NULL: those there are, in turn */
    const char *text;     /* as written */
    Span span;
} FillRule;
/* `plateau(value, window, less_than)`: the mean of the value over a window of training steps is not below that over the
 * window before by at least the share. */
typedef struct Plateau {
    const HostExpr *value, *window; /* window: in steps */
    double least;
    Span span;
} Plateau;
typedef struct GrowStep {
    Name name;
    const HostExpr *when; /* NULL: at the start, or `plateau` */
    const Plateau *plateau;
    PartRate old, fresh;         /* rates of what was there and of what comes, from the step on */
    bool restarts;               /* it has a `train { }`: the schedule's time begins again */
    const Train *train;          /* of the grown model; NULL when the file has none */
    const Model *before, *after; /* after: shape-checked and counted */
    struct File *file;           /* that `after` is of: the evaluator's (check.h) */
    const char **lets;           /* "M = 1088", as written */
    size_t n_lets;
    StartSpec from;      /* of a step at the start: what the model before it begins with */
    double tolerance;    /* of `check preserves(...)`: how much outputs may change; infinite: any */
    VEC(FillRule) fill;  /* in the order of the file: of those that fit a block the last one holds */
    const Name *source;  /* by parameter of `after`: the old one that it is a copy of as a whole; NULL: none */
    const bool *moved;   /* by parameter of `after`: it is that one itself, under another number; NULL: none is */
    bool fresh_moments;  /* optimizer states of copies begin with zeros */
    const char *refused; /* what it holds that no run carries out yet, as "`moments`"; NULL: nothing */
    Span refused_at, span;
} GrowStep;
/* An axis of a sweep: a path as `--set` takes it, and its values. */
typedef struct SweepAxis {
    const char *path;
    const char **text; /* each as the right side of `--set` */
    double *number;    /* NaN: it is no number */
    size_t n;
    bool drawn; /* from `between(...)` */
    int dim;    /* axes that move together have the same number */
} SweepAxis;
/* One run: the settings of its file. */
typedef struct SweepPoint {
    const char *name; /* and of its folder: "d-640_bottleneck-0.3d_seed-1" */
    const char **set; /* "PATH=EXPR": of all points, of the axes, of the lets that follow, of the seed */
    size_t n_set;
    size_t *at;    /* by axis: which of its values */
    size_t config; /* points that differ in the seed alone have the same number, from 0 */
    int64_t seed;  /* where SweepPlan.seeded */
} SweepPoint;
/* How far a run goes: a number of what. */
typedef enum SweepUnit { SWEEP_END, SWEEP_STEPS, SWEEP_TOKENS, SWEEP_SECONDS } SweepUnit;
typedef struct SweepBound {
    SweepUnit unit;
    double amount;
} SweepBound;
typedef struct SweepPlan {
    Name name;
    Name model;       /* of the file that is varied; NULL: it has no name */
    const char *file; /* what is varied; its path */
    uint64_t hash;    /* of the texts of that file and of all that it imports */
    SweepAxis *axis;  /* in order */
    size_t n_axis;
    SweepPoint *point; /* after `skip`, in the order in which they are run */
    size_t n, configs;
    size_t skipped, repeated; /* configurations that `skip` leaves out; that were drawn twice */
    bool seeded;
    SweepBound until;
    SweepBound *rung; /* of `prune`: where points are compared */
    size_t n_rungs;
    double keep;        /* the share that goes on */
    bool by_train_loss; /* what they are compared by, instead of eval.loss */
    int rows, columns;  /* of `report`: axes; -1: none */
    bool table_train_loss;
    Span span;
} SweepPlan;
enum { SWEEP_POINTS_MOST = 20000, SWEEP_AXES_MOST = 32 };
typedef struct LetInfo { /* for resolve, origins and run directories */
    Name name;
    const char *text;   /* value, printed */
    const char *origin; /* "gpt.vwn:3:5", "--set", "import argument at f.vwn:4:3" */
    Span span;
} LetInfo;

typedef struct SeenValue { /* what a name, a declaration or a node of the file's own text came to */
    Span span;
    const char *text; /* the first time */
    bool tensor;      /* `text` is its shape */
    bool others;      /* it was another thing at another time */
} SeenValue;

typedef struct Unit {
    Ctx *ctx;
    const char *path, *folder; /* folder: of CheckOptions */
    Ast *ast;
    Model *model; /* NULL when the file has none (or it could not be built) */
    Train *train; /* NULL when the file has none */
    VEC(CheckResult) check;
    size_t grown;       /* the first steps of the file that are carried out: the model is the one after them */
    VEC(GrowStep) grow; /* those behind them */
    VEC(SweepPlan) sweep;
    VEC(LetInfo) let;
    VEC(const char *) files;    /* every file imported, for "Checking a (+ b, c)" */
    VEC(const char *) disabled; /* items switched off by /- : "gpt.vwn:12:5 attention local" */
    const char **set;           /* the overrides it was checked with, "PATH=EXPR" */
    size_t n_set;
    bool remembers;
    VEC(SeenValue) seen; /* with CheckOptions.remember: once for each place */
    struct File *file;   /* the evaluator's own state (check.h) */
} Unit;

/* Draws the initial value in float64: element i of parameter `path` under `seed`. The same on every
 * backend (source of randomness: philox_key(seed, path)). */
void param_init(const Param *p, uint64_t seed, double *out); /* p->elements numbers */

/* How many ids the model can look up and predict; 0: any. */
int64_t model_ids(const Model *m);
bool same_tokenizer(const TokenizerSpec *a, const TokenizerSpec *b);
/* Files E0601, at the table or the head, when a tokenizer of so many entries has more; true: it has not. */
bool model_check_vocabulary(Ctx *ctx, const Model *m, int64_t entries, Span tokenizer);

/* By parameter: whether it begins at zero and no gradient can ever reach it (zero_init.c), or is kept there. */
bool *model_stays_zero(const Model *m, Arena *arena);

/* ---- inputs.c: what a model reads besides its weights ---- */
/* What an integer input is an index of: values from 0 to below - 1 (0: it is none); `spared`: negative
 * ones are left out, as labels of a loss are. */
typedef struct InputRange {
    int64_t below;
    bool spared;
} InputRange;
InputRange model_input_range(const Model *m, Name input);
/* Does a text give this input: an integer for each position? */
bool input_is_text(const Ext *input);

/* ---- cost.c, dead.c: exact counts over Model.graph ---- */
typedef struct ModelCount {
    int64_t stored, live, dead, active; /* learnable weights; live = stored - dead = `params` */
    int64_t buffers;
} ModelCount;
ModelCount model_count(const Model *m);
/* Forward matrix products and attention (full square), 2 per multiply-add, per token at T = context. */
double model_flops_per_token(const Model *m);
/* ---- summed.c: of each parameter, a bit for every axis that products sum over ---- */
uint8_t *model_summed(const Model *m, Arena *arena);

/* ---- ids.c: of each value of a model the numbers between which it lies. `known`: it is made of whole numbers by arithmetic; else
 * nothing is known of it. ---- */
typedef struct IdRange {
    double low, high;
    bool known;
} IdRange;
IdRange *model_id_ranges(const Model *m, Arena *arena);

/* Fills Param.dead for every parameter (called by check_file). */
void model_find_dead(Model *m);

/* ---- step.c: graphs made of a model ---- */
/* Forward and backward of one micro-batch. Host results: "loss" (sum of trained losses) and
 * "loss.NAME" each, and gradients, which are added into EXT_GRAD tensors (one per learnable, unfrozen
 * parameter, name = path). `fresh`: overwrite instead of add (first micro-batch). With several
 * micro-batches to a batch all of these are what one of them adds to those of the batch, and the
 * EXT_TOTAL tensors of step_count() are read. Where t->decides, the loss goes to EXT_STEP "loss", too. */
Graph *step_gradient(const Model *m, const Train *t, bool fresh, Arena *arena);
/* The forward half of it: the same losses, the scalar that is differentiated as the output
 * STEP_OBJECTIVE, and an EXT_GRAD tensor that nothing stores yet for every gradient that is wanted. */
#define STEP_OBJECTIVE "objective"
Graph *step_forward(const Model *m, const Train *t, Arena *arena);
/* What is summed over lanes, gradients and, where t->decides, the loss: becomes the EXT_STEP tensors of a level, or is added to
 * by them; see loop.h. */
Graph *step_keep(const Model *m, const Train *t, int level, Arena *arena);
Graph *step_join(const Model *m, const Train *t, int level, Arena *arena);
/* Stores d loss / d parameter into each EXT_GRAD tensor of `want`, which have the names of parameters:
 * zeros where the loss does not depend on it. `fresh` as above. */
void step_store_gradients(Graph *g, Val loss, const Ext *want, size_t n, bool fresh);
/* Clipping and optimizer: reads EXT_GRAD, EXT_PARAM and EXT_STATE, stores EXT_PARAM and EXT_STATE.
 * Host results: "grad_norm" (before clipping). The learning rate is a host scalar. State tensors are
 * "<path>:m", "<path>:v" (adamw, zeros at first) and a bias correction by HV_UPDATES; with
 * Train.average also "<path>:average", at first the initial weights. Where t->decides, also "halt", a StepHalt: from the
 * first step on in which it is not HALT_NOT nothing changes any more. That reads EXT_STEP tensors: "loss"; "last", that of
 * the step before; "known", 3 numbers: of all losses of the window of a median but the last, sorted, those before, in and
 * behind the middle, infinite: there is no window yet; "halt", zero at first. In fp16 both graphs read "skipped": whether the
 * gradient of the step before was not finite; it is nothing where each HV_SKIPPED_... is the variable itself. */
typedef enum StepHalt {
    HALT_NOT,
    HALT_LOSS,
    HALT_JUMP,
    HALT_NORM
} StepHalt; /* not finite; above 4 medians, and by 2; not finite */
Graph *step_update(const Model *m, const Train *t, Arena *arena);
/* What the update of several ranks, which has no gradients but those of its own parameters, reads as the EXT_STEP tensor "squares",
 * added up over all parameters in their order: of each trained parameter of t->rank the sum of squares of its gradient, a host result
 * with the name of its path. NULL: it has none. */
Graph *step_squares(const Model *m, const Train *t, Arena *arena);
/* Losses without gradients, of a batch in one part: "loss", "loss.NAME". */
Graph *step_trained(const Model *m, Arena *arena);
/* Dropout masks stand in Model.graph as OP_STOP nodes of the kind STOP_DROPOUT (value 0 or 1 / (1 - p));
 * the two graphs below replace them by ones, and set Attr.z of OP_SDPA to 0. */
/* The sum of the losses that are trained as a value of the model's own graph, behind whose nodes those of the sum are put. 0: it
 * has none. */
Val step_loss(const Model *m);
/* Losses without gradients and without dropout: "loss", "loss.NAME". */
Graph *step_evaluate(const Model *m, Arena *arena);
/* What evaluations of a run measure: what a part adds to step_evaluate of all windows, by HV_SHARE and
 * the EXT_TOTAL tensors of step_count(); HV_FILLED of the part's sequences count. Of the averages of
 * the weights where `t` keeps them; with t->owner they lie in the place of the weights meanwhile. NULL: of the weights. */
Graph *step_held_out(const Model *m, const Train *t, Arena *arena);
/* Adds what a part has of the sums over a batch that follow from its data, as numbers of targets, to
 * EXT_TOTAL tensors, for all parts before the first is computed. NULL: there are none. See parts.h.
 * held_out: of an evaluation, which has no dropout and reads HV_FILLED; else of training. */
Graph *step_count(const Model *m, bool held_out, Arena *arena);
/* Whether the model reads an input: "tokens", "labels", "document", .. */
bool model_reads(const Model *m, const char *input);
/* Every output of the model, without dropout, under its name; of several of one name the second is "name#2". */
Graph *step_outputs(const Model *m, Arena *arena);
/* The model without dropout, as far as these values of its graph need it; map[v]: the copy of value v, 0 for others. */
Graph *step_values(const Model *m, const Val *value, size_t n, Val **map, Arena *arena);
/* The same with dropout, as a step of training has it. */
Graph *step_training_values(const Model *m, const Val *value, size_t n, Val **map, Arena *arena);
/* To a graph that has the losses of the model, whose map it is: the outputs "loss", "loss.NAME" and "metric.NAME". Returns the sum
 * of the trained ones, 0 without any. */
Val step_add_losses(Graph *g, const Model *m, const Val *map);
/* Gradients as those of step_gradient(), of an objective from outside: EXT_INPUT tensors `factor` have its gradient with respect to
 * real values of the model's graph, in their shapes. The model is computed with dropout, as step_training_values() has it. */
Graph *step_outer_gradient(const Model *m, const Train *t, const Val *value, const Name *factor, size_t n, bool fresh,
                           Arena *arena);
/* The same of a part of the model: values that have a leaf, by Val, are this external tensor instead. */
Graph *step_part(const Model *m, const Val *value, size_t n, const Ext *const *leaf, Val **map, Arena *arena);
/* By Val: is it needed for these values? Nothing is for a leaf. */
bool *step_needs(const Model *m, const Val *value, size_t n, const Ext *const *leaf, Arena *arena);
/* In such a graph: value `to` of the model once more, with `instead` in the place of value `from`. 0: `to` does not
 * depend on `from`. */
Val step_again(Graph *g, const Model *m, const Val *map, Val from, Val to, Val instead);
/* Output "logits", or the first where there is none of this name; NULL: there is none. */
const ModelOutput *model_output(const Model *m);
/* It alone, without dropout; all positions are of one document. */
Graph *step_predict(const Model *m, Arena *arena);

/* ---- path.c ---- */
/* Compares "layer[3].attention" with a written path, where [*] matches any index. */
bool path_matches(const char *pattern, const char *text);
bool path_below(const char *path, const char *module); /* the module itself, or a part of it */

#endif
