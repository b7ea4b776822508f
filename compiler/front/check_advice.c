/* check_advice.c - what somebody wrote who thinks in another language or library, and how it is written here.
 *
 * In:  a diagnostic that was filed, and the text it is about.   Out: notes and helps whose text works when pasted.
 * The one idea: nothing here decides what is right; every function only adds words to a message.
 */
#include "check.h"

#include <math.h>

/* ---- names ---- */

typedef struct Foreign {
    const char *name, *here; /* a name of ours in its place, or */
    const char *help;        /* a sentence */
} Foreign;
static const Foreign foreign[] = {
    {"True", "true", NULL},
    {"False", "false", NULL},
    {"None", "none", NULL},
    {"null", "none", NULL},
    {"nil", "none", NULL},
    {"swish", "silu", NULL},
    {"SiLU", "silu", NULL},
    {"GELU", "gelu", NULL},
    {"ReLU", "relu", NULL},
    {"gelu_new", "gelu_tanh", NULL},
    {"Linear", "linear", NULL},
    {"Dense", "linear", NULL},
    {"RMSNorm", "rms_norm", NULL},
    {"LayerNorm", "layer_norm", NULL},
    {"cat", "concat", NULL},
    {"concatenate", "concat", NULL},
    {"view", "reshape", NULL},
    {"transpose", "permute", NULL},
    {"dropout", "drop", NULL},
    {"len", "size", NULL},
    {"expand", "broadcast", NULL},
    {"detach", "stop_gradient", NULL},
    {"topk", "top_k", NULL},
    {"pi", "3.141592653589793", NULL},
    {"iteration", "step", NULL},
    {"epochs", "epoch", NULL},
    {"loss", "train.loss", NULL},
    {"train_loss", "train.loss", NULL},
    {"val_loss", "eval.loss", NULL},
    {"swiglu", NULL, "SwiGLU is `activation = silu, gated = true`"},
    {"geglu", NULL, "GeGLU is `activation = gelu, gated = true`"},
    {"reglu", NULL, "ReGLU is `activation = relu, gated = true`"},
    {"glu", NULL, "a gated layer is `activation = sigmoid, gated = true`"},
    {"matmul", NULL, "the matrix product is an operator: `a @ b`"},
    {"bmm", NULL, "the matrix product is an operator: `a @ b`"},
    {"pow", NULL, "a power is an operator: `a ^ b`"},
    {"rsqrt", NULL, "write `1 / sqrt(x)`"},
    {"square", NULL, "write `x ^ 2`"},
    {"argmax", NULL, "`top_k(x, 1).index` is the place of the largest entry of the last axis"},
    {"einsum", NULL, "products of axes are written with `@`, `permute` and `sum(a * b, over = ...)`"},
};

/* The arguments of the call that begins at `at`, in one line: `range(L)`; NULL when it is none. */
static const char *call_arguments(Eval *ev, Span at)
{
    enum { MOST = 80 };
    size_t n;
    const char *text = source_text(ev->ctx, at.file, &n);
    if (!text || at.hi >= n || text[at.hi] != '(')
        return NULL;
    const char *open = text + at.hi + 1;
    int depth = 1;
    for (size_t i = 0; i < MOST && open[i] && open[i] != '\n'; i++) {
        depth += (open[i] == '(') - (open[i] == ')');
        if (!depth)
            return arena_copy(ev->arena, open, i);
    }
    return NULL;
}

/* `range(L)`, `range(a, b)`: our ranges include both ends. */
void advise_range(Eval *ev, Diag *d, Span at)
{
    const char *args = call_arguments(ev, at), *comma = args ? strchr(args, ',') : NULL;
    diag_note(ev->ctx, d, "a range is `from..to`, both ends included; lists, layers and axes count from 1");
    if (!args || !*args || strchr(args, '(') || (comma && strchr(comma + 1, ',')))
        diag_help(ev->ctx, d, "for example `for layer in 1..8 { ... }`");
    else if (comma)
        diag_help(ev->ctx, d, "write `%.*s..%s - 1`", (int)(comma - args), args, comma + 1 + (comma[1] == ' '));
    else
        diag_help(ev->ctx, d, "write `1..%s`", args);
}

bool advise_name(Eval *ev, Diag *d, Name name, Span at)
{
    for (size_t i = 0; i < COUNT_OF(foreign); i++) {
        if (strcmp(foreign[i].name, name) != 0)
            continue;
        if (foreign[i].here)
            diag_fix(ev->ctx, d, at, foreign[i].here, FIX_MAYBE, "write `%s`", foreign[i].here);
        else
            diag_help(ev->ctx, d, "%s", foreign[i].help);
        return true;
    }
    return false;
}

bool no_run_quantity(Eval *ev, Name node, Name full, Span at)
{
    if (strcmp(node, "train") != 0 && strcmp(node, "eval") != 0)
        return false;
    Diag *d = err(ev, "E0102", at, "not known to an expression", "no quantity `%s` of the run", full);
    Buf all = buf_new(ev->arena);
    VEC(Name) names = {0};
    for (int i = 0; i < HV_NAMED; i++) {
        vec_push(ev->arena, &names, name_str(ev->ctx, host_var_name((HostVar)i)));
        buf_printf(&all, "%s%s", i ? ", " : "", host_var_name((HostVar)i));
    }
    diag_note(ev->ctx, d, "what an expression can ask of a run is %s", all.s);
    Name near = nearest_name(full, names.v, names.n);
    if (near)
        diag_help(ev->ctx, d, "did you mean `%s`?", near);
    else
        diag_help(ev->ctx, d, "a value that two places share is a let of the file: `let rate = 3e-4`, then `rate` in both");
    return true;
}

/* ---- arguments and attributes ---- */

/* `steps = 500` in `train`. True when it was known. */
bool advise_attribute(Eval *ev, Diag *d, Name given, const char *value)
{
    static const char *const same[][2] = {{"steps", "length = %s steps"}, {"max_steps", "length = %s steps"}, {"epochs", "length = %s epochs"},
                                          {"tokens", "length = %s tokens"}, {"batch_size", "batch = %s seqs"},
                                          {"gradient_clip", "clip = %s"}, {"grad_clip", "clip = %s"}, {"dtype", "precision = %s"}};
    for (size_t i = 0; i < COUNT_OF(same); i++)
        if (!strcmp(same[i][0], given)) {
            const char *mark = strstr(same[i][1], "%s");
            diag_help(ev->ctx, d, "write `%.*s%s%s`", (int)(mark - same[i][1]), same[i][1], value, mark + 2);
            return true;
        }
    return false;
}

void advise_argument(Eval *ev, Diag *d, Name given, const Name *names, size_t n, Span at)
{
    static const char *const same[][2] = {{"axis", "over"}, {"axes", "over"}, {"dim", "over"}, {"dims", "over"}, {"dim", "axis"},
                                          {"keepdim", "keep"}, {"keepdims", "keep"}, {"shape", "to"}, {"size", "to"},
                                          {"rate", "p"}, {"prob", "p"}, {"num", "n"}, {"theta", "base"}, {"mean", "std"}};
    for (size_t i = 0; i < COUNT_OF(same); i++)
        for (size_t k = 0; !strcmp(same[i][0], given) && k < n; k++)
            if (!strcmp(names[k], same[i][1])) {
                diag_fix(ev->ctx, d, at, names[k], FIX_MAYBE, "it is called `%s` here", names[k]);
                return;
            }
    suggest(ev, d, given, names, n, at);
}

/* `reshape(x, B, T, D)`: the extents of a shape are one argument. */
void advise_extents(Eval *ev, Diag *d, const Ast *call, size_t at)
{
    Buf b = buf_new(ev->arena);
    const Ast *args = call->kid[1];
    buf_printf(&b, "%s(", expr_text(ev, call->kid[0]));
    size_t n = 0;
    bool open = false;
    for (uint32_t i = 0; i < args->n; i++) {
        const Ast *a = args->kid[i];
        if (a->kind == AST_OFF)
            continue;
        if (a->kind == AST_NAMED && open) {
            buf_putc(&b, ']');
            open = false;
        }
        buf_puts(&b, n ? ", " : "");
        if (a->kind != AST_NAMED && n == at) {
            buf_putc(&b, '[');
            open = true;
        }
        if (a->kind == AST_NAMED)
            buf_printf(&b, "%s = %s", a->name, expr_text(ev, a->kid[0]));
        else
            buf_puts(&b, expr_text(ev, a));
        n++;
    }
    diag_help(ev->ctx, d, "write them as one list: `%s%s)`", b.s, open ? "]" : "");
}

/* ---- configuration by position: rope(10_000), linear(D, bias = true) ---- */

static bool given_by_name(const Ast *args, Name name)
{
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind == AST_NAMED && args->kid[i]->name == name)
            return true;
    return false;
}

/* The parameter that the next positional argument is likely for: those without a default come first. */
static const Ast *next_parameter(const BlockValue *b, const Ast *args, Name *taken, size_t n_taken)
{
    const Ast *params = b->def->ast->kid[0];
    for (int optional = 0; optional < 2; optional++)
        for (uint32_t i = 0; i < params->n; i++) {
            const Ast *par = params->kid[i];
            bool known = given_by_name(args, par->name) || (par->kid[1] != NULL) != (optional == 1);
            for (size_t k = 0; k < b->n_arg; k++)
                known |= b->arg[k].name == par->name;
            for (size_t k = 0; k < n_taken; k++)
                known |= taken[k] == par->name;
            if (!known)
                return par;
        }
    return NULL;
}

bool configured_by_position(Eval *ev, const BlockValue *b, const Ast *call, const Value *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (x[i].kind == V_TENSOR || x[i].kind == V_POISON || x[i].kind == V_RECORD || x[i].kind == V_SUB)
            return false;
    const Ast *args = call->kid[1];
    Name *taken = NEW_ARRAY(ev->arena, Name, n + 1);
    Buf out = buf_new(ev->arena);
    buf_printf(&out, "%s(", expr_text(ev, call->kid[0]));
    size_t k = 0, shown = 0;
    const Ast *first = NULL, *first_arg = NULL;
    for (uint32_t i = 0; i < args->n; i++) {
        const Ast *a = args->kid[i];
        if (a->kind == AST_OFF)
            continue;
        buf_puts(&out, shown++ ? ", " : "");
        if (a->kind == AST_NAMED) {
            buf_printf(&out, "%s = %s", a->name, expr_text(ev, a->kid[0]));
            continue;
        }
        const Ast *par = next_parameter(b, args, taken, k);
        if (!par)
            return false;
        taken[k++] = par->name;
        first = first ? first : par;
        first_arg = first_arg ? first_arg : a;
        buf_printf(&out, "%s = %s", par->name, expr_text(ev, a));
    }
    if (!first || (first->kid[1] && b->def->ast->kid[1])) /* it has all it needs: a number can be a tensor, too */
        return false;
    Diag *d = err(ev, "E0209", first_arg->span, "a value without a name", "`%s` is configured by name: `%s = %s`", b->def->ast->name,
                  first->name, expr_text(ev, first_arg));
    diag_note(ev->ctx, d, "positional arguments are the tensors that a block is applied to");
    diag_help(ev->ctx, d, "write `%s)`", out.s);
    return true;
}

/* ---- values where a number is wanted ---- */

static bool names_schedule(const Ast *e, Env *env)
{
    static const char *const words[] = {"linear", "constant", "cosine", "power", "wsd"};
    if (e->kind != AST_CALL || e->kid[0]->kind != AST_ID)
        return false;
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        known |= !strcmp(words[i], e->kid[0]->name);
    const Ast *args = e->kid[1];
    bool peak = false;
    for (uint32_t i = 0; i < args->n; i++)
        peak |= args->kid[i]->kind == AST_NAMED && (!strcmp(args->kid[i]->name, "peak") || !strcmp(args->kid[i]->name, "floor"));
    return known && (peak || !env_find(env, e->kid[0]->name));
}

bool schedule_for_number(Eval *ev, const Ast *e, Env *env, const char *what)
{
    if (!names_schedule(e, env))
        return false;
    Diag *d = err(ev, "E0206", e->span, "a schedule", "`%s` must be a number, got a schedule", what);
    diag_note(ev->ctx, d, "only `lr` changes while training; everything else is one number for the whole run");
    const Ast *args = e->kid[1];
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind == AST_NAMED && !strcmp(args->kid[i]->name, "peak"))
            diag_help(ev->ctx, d, "write `%s = %s`", what, expr_text(ev, args->kid[i]->kid[0]));
    return true;
}

void advise_kind(Eval *ev, Diag *d, const Value *v)
{
    if (v->kind == V_DIM)
        diag_note(ev->ctx, d, "B (sequences) and T (positions) get their values when training; here a number must be known"
                              " when compiling, such as `scope.context`");
    else if (v->kind == V_HOST)
        diag_note(ev->ctx, d, "run-time quantities may stand in a learning rate, the weight of a loss and `when`");
    else if (v->kind == V_REL)
        diag_note(ev->ctx, d, "`%.6g%c` is %.6g times the %s of a width solver: only `bottleneck`, `at` and `first` take it",
                  v->num, v->rel, v->num, v->rel == 'L' ? "number of layers" : "base width");
    else if (v->kind == V_STR && prim_find(v->word))
        diag_help(ev->ctx, d, "names are written without quotes: `%s`", v->word);
    else if (v->kind == V_RECORD && !strcmp(v->record->name, "top_k"))
        diag_help(ev->ctx, d, "its tensors are `.values` and `.index`");
    if (v->kind == V_REL)
        diag_help(ev->ctx, d, "to multiply by a name, write `%.6g * %c`", v->num, v->rel);
}

void no_list(Eval *ev, const Ast *list, const Value *v)
{
    Diag *d = err(ev, "E0206", list->span, "", "`for` runs over a list or a range, got %s", value_kind_name(v));
    if (v->kind == V_NUM)
        diag_help(ev->ctx, d, "a range is `1..%s`", expr_text(ev, list));
}

/* `T / 16`, `8 + T`. */
void advise_symbols(Eval *ev, Diag *d, const char *op)
{
    diag_note(ev->ctx, d, "B (sequences) and T (positions) get their values when training; until then an extent is a number,"
                          " B, T, or a product of these%s", strcmp(op, "/") ? "" : ": whether another number divides T is not known");
    diag_help(ev->ctx, d, "the positions of a training sequence as a number are `scope.context`");
}
