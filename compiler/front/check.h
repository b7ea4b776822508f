/* check.h - inside the evaluator: values, environments, scopes, files. Only check_*.c include this.
 *
 * In:  syntax trees.   Out: a Model, a Train, checks (model.h).
 * The one idea: a file is a program over static values whose tensor expressions build the graph while
 * they are evaluated. Environments are persistent lists (with an index here and there), so a closure keeps
 * exactly the names that stood where it was written; scopes carry the attributes (`scope.X`) and the path of the place applied.
 */
#ifndef VWN_CHECK_H
#define VWN_CHECK_H

#include "compiler/model/model.h"
#include "attribute.h"

typedef struct Value Value;
typedef struct Env Env;
typedef struct Scope Scope;
typedef struct Binding Binding;
typedef struct File File;
typedef struct Eval Eval;
typedef struct BlockValue BlockValue;
typedef struct Instance Instance;
typedef struct Prim Prim;

typedef enum ValueKind {
    V_POISON, /* an error was already filed; everything made of it is poison too */
    V_NONE,
    V_NUM,
    V_QTY,  /* num, word = unit */
    V_REL,  /* num, rel = 'd' or 'L' */
    V_BOOL, /* num = 0 or 1 */
    V_STR,  /* word = text */
    V_WORD, /* a bare word where one is accepted: causal, bf16 */
    V_LIST,
    V_DOTS, /* `..` in a shape */
    V_DIM,  /* an extent with B or T in it */
    V_TENSOR,
    V_INIT,
    V_FN,     /* a primitive used as a value: gelu */
    V_BLOCK,  /* a (partly) configured block */
    V_SUB,    /* the sublayer given to `step`: a C closure */
    V_RECORD, /* fields: top_k(...).index */
    V_FILE,   /* import ... as NAME */
    V_HOST,   /* a run-time scalar; num = 1: it is true or false */
    V_SPEC    /* text_file(...), cosine(...), mixed(...): a name with evaluated arguments */
} ValueKind;

typedef struct ValueList {
    Value *v;
    size_t n, total; /* total: values at any depth, against a limit */
} ValueList;
typedef struct Field {
    Name name; /* NULL for positional arguments of a spec */
    Value *value;
    Span span;
} Field;
typedef struct Record {
    Name name;
    Field *field;
    size_t n;
    Span span;
} Record;
typedef Value (*SubFn)(Eval *ev, void *self, Value x, Span at);
typedef struct Sub {
    SubFn call;
    void *self;
} Sub;

struct Value {
    ValueKind kind;
    char rel;
    double num;
    Name word;
    const char *shape_text; /* V_TENSOR: as declared, for messages; may be NULL */
    union {
        Val val;                 /* V_TENSOR */
        Dim dim;                 /* V_DIM */
        const ValueList *list;   /* V_LIST */
        const Init *init;        /* V_INIT */
        const Prim *prim;        /* V_FN */
        const BlockValue *block; /* V_BLOCK */
        const Sub *sub;          /* V_SUB */
        const Record *record;    /* V_RECORD, V_SPEC */
        File *file;              /* V_FILE */
        const HostExpr *host;    /* V_HOST */
    };
};

/* A name and what it stands for: a value, or an expression evaluated at first use. */
typedef enum BindState { BIND_READY, BIND_LAZY, BIND_BUSY } BindState;
struct Binding {
    Name name;
    Value value;
    BindState state;
    bool by_name; /* never remembered: inits depend on the tensor they are for */
    bool used, is_let, is_param_of_block, is_dim;
    const Ast *expr; /* BIND_LAZY */
    Env *env;
    Scope *scope;
    const Ast *type; /* declared type, or NULL */
    Span span;       /* where it was defined */
    Span arg_span;   /* the argument that gave it a value, or NO_SPAN for a default */
    Name prefix;     /* path of the instance in which it was declared: names its modules */
    Name origin;     /* for resolve: how it got its value; NULL = as written */
    uint32_t serial; /* identifies the declaration for shared modules */
};
/* What the nodes behind a node bind, so that a chain of a million names is not walked: the nearest of each name. */
typedef struct EnvIndex {
    Map names;
    const ValueList *dots;
    Env *base; /* where they end: an older node with an index, the block's edge, or the file */
} EnvIndex;
struct Env {
    Env *up;
    Binding *binding;      /* one name, or */
    File *file;            /* all names of a file: the end of the chain */
    const ValueList *dots; /* or: what `..` stands for in this block */
    bool block_edge;       /* dimension names are not looked up past this */
    const EnvIndex *index; /* of the nodes behind this one; few nodes have it */
    int run;               /* nodes since the one before that has one, or since the block's edge */
};

typedef struct Attribute {
    Name name;
    const Ast *expr;
    Env *env;
    Span span; /* the whole item */
    bool used;
    bool making, made; /* `cond`: its tensor */
    Value tensor;      /* once it is made */
} Attribute;
struct Scope {
    Scope *up;
    Name path; /* of this place, "" at the top */
    Attribute *attr;
    size_t n_attr;
    Span span; /* the node */
    const Ast *node;
};

typedef struct Arg { /* a configuration argument: a closure */
    Name name;
    const Ast *expr; /* NULL: `value` is ready */
    Env *env;
    Value value;
    Span span;
} Arg;
typedef struct BlockDef {
    const Ast *ast; /* AST_BLOCK */
    Env *env;       /* where it was defined */
    File *file;
    bool has_methods, is_method;
    Span from;
} BlockDef;
struct BlockValue {
    const BlockDef *def;
    Arg *arg;
    size_t n_arg;
    Span span;       /* of the call or node that configured it last */
    bool configured; /* by a call: a further call without arguments applies it */
};

struct Instance { /* one module: a block applied under one name in one place */
    Name path;
    Instance *up;
    const BlockDef *def;
    uint32_t serial; /* of the binding it was applied through */
    Span site;       /* where that binding stands */
    bool inline_call;
    bool reused; /* applied again: params must exist already */
    Span at;
};

/* A frame of the call stack, for messages. */
typedef struct Frame {
    struct Frame *up;
    Span call;
    const BlockDef *def;
    Instance *inst;
    const Value *x; /* the tensors it was applied to */
    size_t n_x;
    Env *const *env; /* the names of its body so far; NULL before the first statement */
} Frame;

typedef struct Override { /* --set, import arguments, lets of a grow step */
    const Ast *path;      /* AST_PATH */
    const Ast *expr;
    Env *env;
    bool used;
    bool of_step;    /* of the `train` of a growth step: it is evaluated in the grown file */
    bool of_variant; /* what a file changes in its base */
    Name origin;
    Span span;
    Value value;        /* when expr is NULL */
    bool said;          /* a message about it was filed */
    uint32_t unwritten; /* parts of the path up to an attribute that the file does not write, behind which it goes on */
    const char **beginning; /* the path up to each part (override.c) */
    Span was;               /* what the file has where it was put last */
} Override;
typedef struct Import {
    Name as; /* NULL: unqualified */
    File *file;
    Span span;
    bool used;
    bool with; /* arguments */
} Import;

struct File {
    Eval *ev;
    const char *path, *folder, *text;
    uint32_t source;
    bool is_std;
    Ast *ast;                /* of a variant: the items of its base, then its own */
    const struct Base *base; /* of a variant (variant.c); NULL: of none */
    Env *env;
    Map names;           /* Name -> Binding */
    VEC(Binding *) lets; /* in order */
    VEC(Import) imports;
    VEC(Override) overrides;
    bool quiet; /* its lints were reported by the first evaluation already */
    const Ast *model_ast, *train_ast;
    VEC(const Ast *) checks, grows, sweeps;
    Model *model;
    int model_state;       /* 0 not yet, 1 building, 2 done */
    struct Builder *built; /* what its model was built with, for those who look at it afterwards */
    Train *train;
    Span from;        /* the import that read it */
    File *parent;     /* who imported it, for cycles */
    const Ast *allow; /* the list of lints that its model allows; NULL when none */
};

/* Values that exist only while one tensor is being initialised. */
typedef struct Fan {
    double fan_in, fan_out;
    const Shape *shape;
} Fan;

typedef struct Claims Claims; /* file/check_claim.h: of the growth step that a check stands in, or NULL */
struct Eval {
    Ctx *ctx;
    bool (*decide_claim)(Eval *ev, Claims *c, const Ast *check, const Value *claim, CheckResult *r); /* the same */
    Arena *arena;
    Unit *unit;
    VEC(File *) files; /* std files are shared; others once per import */
    Map moved; /* texts that are paths written in other folders, by place: what they are from the file's (variant.c) */
    Frame *frame;
    int depth;
    Fan *fan;          /* inside an init expression */
    bool host_allowed; /* run-time quantities may be named */
    uint32_t serial;
    /* the model being built */
    struct Builder *build;
    int64_t steps;       /* work done, against limits */
    Span at;             /* where it was done last */
    size_t bytes_before; /* that the context had when it began: other files may have been checked in it */
    const char *(*text_of)(void *user, const char *path, size_t *n); /* CheckOptions */
    void *text_user;
    Map seen; /* offset + 1 of a place of the file -> number + 1 in Unit.seen */
};

/* The model under construction (check_model.c). */
typedef struct Builder {
    File *file;
    Model *model;
    Graph *g;
    Map params;           /* path -> Param index + 1 */
    Map instances;        /* path -> Instance* */
    Map exports;          /* instance path -> Env* after its body */
    Map latest;           /* "kind.label" of a node -> that of the last one so called: for tied() */
    Map scopes;           /* path of a node or of an iteration -> Scope* */
    Value embed, state;   /* V_TENSOR or V_NONE */
    Span embed_span;      /* the last `embed` node */
    Span no_norm;         /* the first sublayer in no scope with a norm */
    int64_t applied;      /* sublayers that a connection ran */
    Span unapplied;       /* the first one that it did not run */
    Span empty_loop;      /* the range of the first `for` that runs over nothing */
    VEC(Binding *) given; /* parameters of type block to which the user gave a block */
    Value head_state;     /* what the last head that travels on returned; V_NONE before */
    bool opened;
    int64_t sublayers;
    int64_t reads, widest_read; /* coordinates that sublayers of this step read: of all, at most */
    Scope *root;
    Map sites; /* scope path -> number of random streams so far */
} Builder;

/* ---- values (check_value.c) ---- */
Value v_poison(void);
Value v_none(void);
Value v_num(double x);
Value v_bool(bool b);
Value v_str(Name s);
Value v_word(Name s);
Value v_tensor(Val v);
Value v_dim(Dim d); /* V_NUM when static */
Value v_host(const HostExpr *e);
Value v_host_truth(const HostExpr *e); /* a condition of the run */
bool is_host_number(const Value *v);   /* a number, static or of the run, and no condition */
bool is_host_truth(const Value *v);    /* true or false, static or of the run */
Value v_list(Eval *ev, const Value *v, size_t n);
Value v_record(Eval *ev, Name name, const Field *f, size_t n);
const char *value_kind_name(const Value *v); /* "a number", "a tensor", ... */
void value_print(Buf *out, const Value *v);  /* as .vwn text where possible */
const char *value_text(Eval *ev, const Value *v);
/* For Unit.seen: what the text at `at` came to; one of other files, or poison, is nothing. */
void remember(Eval *ev, Span at, const Value *v);
/* The component of a path that an iteration gives: layer[3], group["a"]; its number for other values. */
Name iteration_path(Eval *ev, Name up, Name variable, const Value *v, size_t index);
bool value_equal(const Value *a, const Value *b);
bool is_whole(double x); /* within 1e-9 of an integer, relatively */

Env *env_new(Eval *ev, Env *up, Binding *b);
Env *env_edge(Eval *ev, Env *up);
Binding *binding_new(Eval *ev, Name name, Span span);
Binding *binding_value(Eval *ev, Name name, Value v, Span span);
Env *env_bind(Eval *ev, Env *up, Name name, Value v, Span span);
Binding *env_find(Env *env, Name name);       /* NULL when unbound */
Binding *env_find_local(Env *env, Name name); /* stops at the block's edge */
const ValueList *env_dots(Env *env);
size_t env_names(Eval *ev, Env *env, Name **out); /* for suggestions */
Value binding_get(Eval *ev, Binding *b, Scope *placement);

Scope *scope_new(Eval *ev, Scope *up, Name path, Span span);
void scope_set(Eval *ev, Scope *s, Name name, const Ast *expr, Env *env, Span span);
/* The nearest scope that sets `name`; NULL if none does. */
Attribute *scope_find(Scope *s, Name name, Scope **where);
/* Its value; V_NONE with *found = false when unset. */
Value scope_value(Eval *ev, Scope *s, Name name, bool *found);

/* ---- errors that point at the user's text (check_value.c) ---- */
/* When `at` lies in the standard library the primary place becomes the innermost call in a user's
 * file and `at` a related one. */
Diag *err(Eval *ev, const char *code, Span at, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
bool in_library(Eval *ev, Span s); /* in a file of the standard library */
void suggest(Eval *ev, Diag *d, Name word, const Name *names, size_t n, Span at);
/* The same for attributes and arguments; those of other programs are known. */
void suggest_attribute(Eval *ev, Diag *d, Name word, const Name *names, size_t n, Span at);
bool said_at(Eval *ev, Span at);                         /* whether an error about exactly this text is filed */
void set_before(Eval *ev, const Ast *items, uint32_t i); /* files E0108 where items[i] sets an attribute again */
void limit(Eval *ev, Span at, const char *name, long long value); /* raises */
void spend(Eval *ev, Span at, int64_t work);

/* ---- expressions (check_expr.c) ---- */
Value eval(Eval *ev, const Ast *e, Env *env, Scope *scope);
/* ---- values of attributes, by their rows (attribute.c): each files a message for what a row does not take ---- */
Name attribute_word(Eval *ev, const AttributeRow *row, const Ast *e, Env *env); /* NULL: a message was filed */
bool attribute_in_range(Eval *ev, const AttributeRow *row, double x, Span at);
bool attribute_number_of(Eval *ev, const AttributeRow *row, const Ast *e, Env *env, Scope *scope, double *out);
bool attribute_numbers_of(Eval *ev, const AttributeRow *row, const Value *v, const Ast *e,
                          double *out); /* row->count numbers */
/* A call, a word or a text; *d: the message, to add to it, or NULL. */
bool attribute_one_of(Eval *ev, const AttributeRow *row, const Value *v, Span at, Diag **d);
Diag *attribute_refuses(Eval *ev, const AttributeRow *row, Span at); /* that a value is none of attribute_one_of() */
bool attribute_has_bare(const AttributeRow *row);                    /* words that are neither calls nor `none` */
/* ---- declared types (check_type.c) ---- */
/* As `eval`, for a place of the declared type: words for name, closures for init, lists for list ... */
Value eval_as(Eval *ev, const Ast *e, Env *env, Scope *scope, const Ast *type, const char *what);
Value eval_word(Eval *ev, const Ast *e, Env *env, Scope *scope); /* a bare name or string */
/* False when the value is none of these words, which is said: *d, or NULL where it was said before. */
bool is_word_of(Eval *ev, const Value *v, const Name *names, size_t n, Span at, const char *what, Diag **d);
Value check_type(Eval *ev, Value v, const Ast *type, Span at, const char *what, Env *env);
/* Where a value was given that stands at `at`: an expression that is the name of a let to which a setting gave one; else `at`. */
Span setting_place(Eval *ev, Span at, Env *env);
void say_setting(Eval *ev, Diag *d, const Value *v, Span at,
                 Span wanted); /* of what setting_place() moved from `wanted` */
bool eval_number(Eval *ev, const Ast *e, Env *env, Scope *scope, const char *what, double *out);
/* A dimension list; expands `..`. False when poisoned. what: its name, for messages. */
bool eval_shape(Eval *ev, const Ast *e, Env *env, Scope *scope, Shape *out, const char *what);
bool value_dim(Eval *ev, const Value *v, Span at, const char *what, Dim *out);
Value to_tensor(Eval *ev, Value v, Span at);         /* numbers, lists, host scalars become tensors */
Value whole_tensor(Eval *ev, Value v, Value beside); /* beside integers a whole number or an extent is one; else v */
/* A tensor given with every batch; E0312 when the model declared it otherwise before. */
Value graph_input(Eval *ev, Name name, DType dtype, const Shape *s, Span at);
Value unknown_name(Eval *ev, Name name, Env *env, Span at); /* files E0102 with a suggestion */
bool host_name(Name name, HostVar *var);                    /* `step`, `train.loss`, ... */
const char *shape_words(Eval *ev, const Value *v);          /* "[B, T, 64] ([.., D])" */
Value binary(Eval *ev, const Ast *e, Value a, Value b);
/* An operator of two tensors (or what becomes one) that has no sign: `e` has its name and its operands. */
Value tensor_binary(Eval *ev, const Ast *e, Op op, Value a, Value b);
const HostExpr *to_host(Eval *ev, const Value *v);       /* NULL unless is_host_number() */
const HostExpr *to_host_truth(Eval *ev, const Value *v); /* NULL unless is_host_truth() */
const char *expr_text(Eval *ev, const Ast *e);
bool is_comparison(const Ast *e);
/* The expression with names replaced by what they are: "1,177,158,464 - 1,176,764,416". */
const char *expr_values(Eval *ev, const Ast *e, Env *env, Scope *scope);
/* The same for a comparison that is false: what both sides are. */
const char *expr_sides(Eval *ev, const Ast *e, Env *env, Scope *scope);
const char *interpolate(Eval *ev, const char *text, Env *env, Scope *scope, Span at);

/* ---- primitives (check_prim.c) ---- */
typedef struct PrimArgs {
    Eval *ev;
    const Prim *prim;
    const Ast *call;
    Env *env;
    Scope *scope;
    Value v[12]; /* by position of the signature; V_NONE when left out */
    Span span[12];
    const Ast *ast[12]; /* NULL when left out */
    size_t n;           /* parameters of the signature */
    Value *rest;        /* further positional arguments */
    size_t n_rest;
    VEC(Field) open; /* those of any name, where the signature has "*" */
} PrimArgs;
struct Prim {
    const char *name;
    const char *params; /* "x: tensor, to: shape, over: int = -1"; "*: text" at the end: any name */
    Value (*run)(PrimArgs *a);
    const char *doc;
    int op;      /* elementwise Op, else 0 */
    bool hidden; /* in the table of operators but not callable by name */
};
const Prim *prim_find(const char *name);
size_t prim_count(void);
const Prim *prim_at(size_t i);
Value prim_call(Eval *ev, const Prim *p, const Ast *call, Env *env, Scope *scope);

/* ---- blocks (check_block.c) ---- */
Value block_configure(Eval *ev, const BlockValue *b, const Ast *args, Env *env, Span at);
Value block_with(Eval *ev, const BlockValue *b, const Arg *extra, size_t n, Span at);
/* Applies to tensors. `name`: the name applied (NULL: inline call); `via`: its binding. */
Value block_apply(Eval *ev, const BlockValue *b, const Value *x, size_t n, Name name, Binding *via, Scope *scope,
                  Span at);
/* The same at an explicit path below `scope`. */
Value block_apply_path(Eval *ev, const BlockValue *b, const Value *x, size_t n, Name path, Scope *scope, Span at);
/* Calls method `open`, `step` or `close` of a connection with a fresh instance at `path`. */
Value block_method(Eval *ev, const BlockValue *b, Name method, const Value *x, size_t n, Name path, Scope *scope,
                   Span at);
const Ast *block_param(const BlockDef *d, Name name);                    /* AST_PAR or NULL */
void unknown_parameter(Eval *ev, const BlockDef *d, Name name, Span at); /* files E0101 */
/* check_shapes.c: tensors x, and a result, against the declaration; false with a diagnostic at `at`. */
bool block_bind_tensors(Eval *ev, const BlockDef *d, const Value *x, size_t n, Env **env, Scope *scope, Span at);
bool block_check_result(Eval *ev, const BlockDef *d, Value *r, Env *env, Scope *scope, Span at);
/* Of operands e with the values v: file E0311, of an operator or function `what`, and E0301, with what would fit. */
void shapes_differ(Eval *ev, Span at, const char *what, const Ast *const e[2], const Value v[2]);
Diag *product_differs(Eval *ev, const Ast *e, const Value v[2]);
const char *odd_extents(Eval *ev, const Shape *s,
                        const Shape *t); /* "the last extents, 8 and 64, differ"; "": none do */
BlockValue *block_value(Eval *ev, const Ast *ast, Env *env, File *file);
/* Files what is wrong with the signatures of a block and of the blocks in its body. */
void block_check_signature(Eval *ev, const Ast *block);
Value call(Eval *ev, const Ast *e, Env *env, Scope *scope);

/* ---- preconditions of blocks (check_require.c) ---- */
typedef struct Site { /* where a `check` of a block's body is evaluated */
    Env *env;
    Scope *scope;
    const BlockDef *def;
    Span at;         /* where the block is applied */
    Span configured; /* where its configuration was written last */
} Site;
/* False when it does not hold (a message is filed) or cannot be decided. */
bool block_require(Eval *ev, const Site *s, const Ast *check);

/* ---- models (check_model.c) ---- */
Model *build_model(Eval *ev, File *file); /* NULL when it could not be built */
bool is_scope_name(Name name);            /* width, init, ... */
/* The tensor that the block of `cond = ...` in the scope `where` makes; the block is applied once. */
Value scope_tensor(Eval *ev, Attribute *a, Scope *where);

/* ---- warnings (check_lint.c) ---- */
void lint_model(Eval *ev, Builder *b);
void lint_unused(Eval *ev, File *f);
void lint_check_allow(Eval *ev, const Ast *list);   /* files E0205 for what is no lint */
bool lint_allowed(const File *f, const char *lint); /* or reported by the file's first evaluation */

/* ---- names of what was not evaluated (check_names.c) ---- */
void check_names(Eval *ev, File *f);

/* ---- words for what is written in other languages (check_advice.c) ---- */
bool advise_name(Eval *ev, Diag *d, Name name, Span at);            /* true when it knew the name */
void advise_extents(Eval *ev, Diag *d, const Ast *call, size_t at); /* `reshape(x, B, T)`: from the argument `at` on */
bool advise_node(Eval *ev, Diag *d, const Ast *node, Env *env, Span at);
void advise_label(Eval *ev, Diag *d, const Ast *node, Env *env);            /* two nodes of one path */
void advise_path(Eval *ev, Diag *d, const Ast *path, const Ast *value);     /* `train.seed = 8` in a model */
bool advise_placed(Eval *ev, Diag *d, Env *env, Name key, const Ast *call); /* `tokens = embed(256)` in a model */
void odd_item(Eval *ev, Name node, const BlockValue *block,
              const Ast *it); /* files what such a node cannot hold, once */
/* An attribute of a model where only names of the file are known; true when the file's model has it. */
bool advise_outside(Eval *ev, Diag *d, const File *f, Name name, Span at);
bool advise_words(Eval *ev, Diag *d, Span at); /* what an attribute of a model can be, whose value stands at `at` */
void advise_method(Eval *ev, Diag *d, const Ast *field); /* `x.view` */
/* Another program's name of an attribute, at `at`, where those of `names` can stand. */
bool advise_attribute(Eval *ev, Diag *d, Name given, const Name *names, size_t n, Span at);
bool given_beside(Eval *ev, Span name, const char *word); /* the brackets around a name hold `word = ...` */
bool tell_attribute(Eval *ev, Diag *d, Name given);       /* a sentence about one that has no name here */
/* What `given = value` stands for as a value of `ours`, after an error about `given`; NULL: something else. */
const Ast *meant_value(Eval *ev, Name given, const char *ours, const Ast *value);
bool attribute_is(Name given, const char *ours);    /* `n_embd` is `width` */
bool attribute_means(Name given, const char *ours); /* `max_iters` means `length` */
void advise_range(Eval *ev, Diag *d, Span at);      /* `range(8)`, called at `at` */
/* Of a text where `want` was wanted. */
void advise_quotes(Eval *ev, Diag *d, const Value *v, const char *want, Span at, Env *env);
void advise_kind(Eval *ev, Diag *d, const Value *v);    /* of a value where a number was wanted */
void advise_symbols(Eval *ev, Diag *d, const char *op); /* arithmetic of B and T that has no result */
/* These file the message: `train.lr` in an expression; `for i in 8`; `rope(10_000)`; `weight_decay = cosine(...)`. False when it is something else. */
bool no_run_quantity(Eval *ev, Name node, Name full, Span at);
bool no_module(Eval *ev, const Ast *field); /* `nn.GELU`, `self.up` */
void no_list(Eval *ev, const Ast *list, const Value *v);
void missing_parameters(Eval *ev, const BlockDef *d, const Ast *const *par, size_t n, Span where); /* files one E0104 */
void argument_missing(Eval *ev, const Prim *prim, const Ast *call, const char *name); /* the same of a primitive */
bool configured_by_position(Eval *ev, const BlockValue *b, const Ast *call, const Value *x, size_t n);
bool schedule_for_number(Eval *ev, const Ast *e, Env *env, const char *what);

/* ---- files (check_file.c) ---- */
const char *file_field_at(size_t i); /* "params", ...; NULL behind the last */
/* Of a file that one in the folder imports: "a/b/../c" -> "a/c", so that one file has one path. */
char *import_path(Arena *a, const char *folder, const char *path);
bool help_import(Eval *ev, Diag *d, Name name); /* says which file of the library has it, if one does */
File *file_load(Eval *ev, const char *path, const char *text, size_t n, Span from, File *parent);
/* The tree of a text, or of the file at `path` where it is NULL; `from`: what asks for it. NULL: E0106 was filed. */
Ast *file_parse(Eval *ev, const char *path, const char *name, const char *text, size_t n, Span from);
const char *folder_of(Eval *ev, const char *path);
const char *folder_at(Eval *ev, const File *f, Span at); /* of the file that is written at the place */
/* A second evaluation of the same file with more overrides (imports with arguments, growth). */
File *file_again(Eval *ev, const File *of, const Override *extra, size_t n);
Value file_field(Eval *ev, File *f, Name field, Span at);
bool is_file_field(Name name); /* params, flops_per_token, ... */
Value params_of(Eval *ev, File *f, const Ast *label_call, Env *env);
const char *span_text(Eval *ev, Span s);
void run_check(Eval *ev, File *f, const Ast *check, Env *env, const char *where, Claims *claims);

/* ---- files that are others with changes (variant.c) ---- */
typedef struct Base { /* the nearest first */
    const struct Base *next;
    Ast *ast;        /* its own items */
    const Ast *node; /* the `variant` among them; NULL: it is none */
    Ast **gone;      /* of the nearest: items of bases that are not the variant's */
    Ast **instead;   /* of each what takes its place in the file, or NULL */
    size_t n_gone;
} Base;
/* Where the file is a variant its tree becomes that of base and file, its settings overrides. False: a message was filed. */
bool variant_merge(Eval *ev, File *f);
/* `--set grow.wider=none`: settings that take nodes away are made so, in the tree. */
void variant_take_away(Eval *ev, File *f);
void file_list_gone(Eval *ev, const File *f,
                    size_t from); /* those of `base` from there on, as what is off; check_file.c */
/* `path`, written at the place, from the folder of the file that everything is about. */
const char *variant_path(Eval *ev, Span at, const char *path);

void build_aliases(Eval *ev, File *file, Model *model); /* fills Model.alias from the `names` tables */

#endif
