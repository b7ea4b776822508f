/* primitives.c - every primitive with every kind of value: what is accepted is computed, the rest is refused.
 *
 * In:  the tables of primitives, a call for each that is known to be right.   Out: one error, or the right numbers.
 * The one idea: a number, a run-time number, a list, a truth value and a tensor of integers mean in the place of a
 * tensor what the tensor of the same reals means there; and leaving an argument out is the only meaning of `none`.
 * So one call whose numbers are written down here decides all the others. The tables are walked, so that a primitive
 * without a row fails.
 * When: quick, computes.
 */
#include "support.h"

#include "compiler/front/attribute.h"
#include "compiler/file/check_train.h"
#include "compiler/report/report.h"
#include "support/drawn.h"

#include <ctype.h>
#include <math.h>

/* Where a call stands, and what of it is compared. */
typedef enum Place { OUTPUT, WEIGHT, RATE, AVERAGE, START, DATA, TOKENIZER, PRECISION, WHEN, CLAIM, LET } Place;
enum { MOST_ARGS = 8, MOST_WANT = 12 };

typedef struct Row {
    const char *name;
    Place place;
    const char *arg[MOST_ARGS]; /* by position; NULL: left out */
    double (*each)(double);     /* the numbers are this function of those of argument 0, P; or: */
    double want[MOST_WANT];
    int n;                      /* -n: n times the first */
    const char *suffix;         /* what follows the call */
    const char *any[MOST_ARGS]; /* kinds that an argument without a type takes beside none */
} Row;

/* ---- kinds of values ---- */

typedef struct Kind {
    char letter;
    const char *text, *tensor; /* the tensor that it stands for; NULL: for none */
} Kind;
static const Kind kinds[] = {
    {'n', "2", "two"},
    {'r', "step", "two"},
    {'c', "(step > 1)", "one"},
    {'x', "X", "X"},
    {'i', "I", "cast(I, real)"},
    {'l', "[1, 2]", "pair"},
    {'b', "true", "one"},
    {'t', "T", "two"},
    {'m', "[\"a\"]", NULL},
    {'e', "[]", NULL},
    {'w', "causal", NULL},
    {'s', "\"s\"", NULL},
    {'o', "none", NULL},
    {'k', "linear", NULL},
    {'q', "3 steps", NULL},
    {'d', "0.5d", NULL},
    {'L', "0.5L", NULL},
    {'f', "gelu", NULL},
    {'z', "normal(std = 1)", NULL},
    {'p', "bytes()", NULL},
    {'v', "top_k([1, 2], 1)", NULL},
    {'-', "-2", "minus"},
    {'.', "0.5", "half"},
    {'*', "inf", NULL},
};

/* What a place of a declared type may take, beside `none` where that is its default. */
static const char *accepted(const char *type, const char *any)
{
    static const struct {
        const char *type, *kinds;
    } rows[] = {{"tensor", "nrcxilbt-.*"}, {"int", "n-"},       {"float", "n-."}, {"dim", "nt"},
                {"number", "nr-."},        {"length", "nrq-."}, {"bool", "b"},    {"word", "wsfkzotrx*"},
                {"list", "lme"},           {"text", "s"},       {"shape", "le"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (!strcmp(type, rows[i].type))
            return rows[i].kinds;
    return any ? any : "nrxilt-.*";
}

/* ---- the calls ---- */

static double p_logit(double x) { return log(x / (1 - x)); }
static double p_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double p_sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : 0; }
static double p_relu(double x) { return x > 0 ? x : 0; }
static double p_silu(double x) { return x / (1 + exp(-x)); }
static double p_softplus(double x) { return log(1 + exp(x)); }
static double p_gelu(double x) { return x * 0.5 * erfc(-x / sqrt(2)); }
static double p_gelu_tanh(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }
static double p_same(double x) { return x; }

#define ALL_KINDS "nrcxilbtmeskqdLfzpvo-."
#define ALL_X                                                                                                          \
    {                                                                                                                  \
        -1.5, 0.5, 2.5, 3, -0.2, 1                                                                                     \
    }
static const Row rows[] = {
    {.name = "exp", .arg = {"X"}, .each = exp},
    {.name = "log", .arg = {"P"}, .each = log},
    {.name = "sqrt", .arg = {"P"}, .each = sqrt},
    {.name = "abs", .arg = {"X"}, .each = fabs},
    {.name = "sign", .arg = {"X"}, .each = p_sign},
    {.name = "floor", .arg = {"X"}, .each = floor},
    {.name = "ceil", .arg = {"X"}, .each = ceil},
    {.name = "round", .arg = {"X"}, .each = rint},
    {.name = "sin", .arg = {"X"}, .each = sin},
    {.name = "cos", .arg = {"X"}, .each = cos},
    {.name = "tanh", .arg = {"X"}, .each = tanh},
    {.name = "sigmoid", .arg = {"X"}, .each = p_sigmoid},
    {.name = "erf", .arg = {"X"}, .each = erf},
    {.name = "relu", .arg = {"X"}, .each = p_relu},
    {.name = "gelu", .arg = {"X"}, .each = p_gelu},
    {.name = "gelu_tanh", .arg = {"X"}, .each = p_gelu_tanh},
    {.name = "silu", .arg = {"X"}, .each = p_silu},
    {.name = "softplus", .arg = {"X"}, .each = p_softplus},
    {.name = "logit", .arg = {"P"}, .each = p_logit},
    {.name = "stop_gradient", .arg = {"X"}, .each = p_same},
    {.name = "sum", .arg = {"X", "2"}, .want = {1.5, 3.8}, .n = 2, .any = {"nrcxilbt-.e", "nle-"}},
    {.name = "mean", .arg = {"X", "2"}, .want = {0.5, 1.2666666666666666}, .n = 2, .any = {"nrcxilbt-.", "nle-"}},
    {.name = "max", .arg = {"X", NULL, "2"}, .want = {2.5, 3}, .n = 2, .any = {"nrcxilbt-.", NULL, "nle-"}},
    {.name = "min", .arg = {"X", NULL, "2"}, .want = {-1.5, -0.2}, .n = 2, .any = {"nrcxilbt-.", NULL, "nle-"}},
    {.name = "max", .arg = {"X", "0"}, .want = {0, 0.5, 2.5, 3, 0, 1}, .n = 6},
    {.name = "min", .arg = {"X", "0"}, .want = {-1.5, 0, 0, 0, -0.2, 0}, .n = 6},
    {.name = "max", .arg = {"0", "X"}, .want = {0, 0.5, 2.5, 3, 0, 1}, .n = 6},
    {.name = "min", .arg = {"0", "X"}, .want = {-1.5, 0, 0, 0, -0.2, 0}, .n = 6},
    {.name = "softmax",
     .arg = {"X"},
     .want = {0.015876239976466765, 0.11731042782619837, 0.8668133321973349, 0.8502696510031823, 0.034658864950805966,
              0.1150714840460115},
     .n = 6},
    {.name = "logsumexp", .arg = {"X"}, .want = {2.6429316284998997, 3.1622017433322935}, .n = 2},
    {.name = "cumsum", .arg = {"X"}, .want = {-1.5, -1, 1.5, 3, 2.8, 3.8}, .n = 6},
    {.name = "size", .arg = {"[1, 2]"}, .want = {2}, .n = 1, .any = {"lme"}},
    {.name = "near", .arg = {"1", "1.1", "0.1"}, .want = {1}, .n = 1},
    {.name = "mod_power", .arg = {"3", "5", "7"}, .want = {5}, .n = 1},
    {.name = "matrix", .arg = {"[[1, 2], [3, 4]]"}, .want = {1, 2, 3, 4}, .n = 4},
    {.name = "reshape", .arg = {"X", "[3, 2]"}, .want = ALL_X, .n = 6},
    {.name = "permute", .arg = {"X", "[2, 1]"}, .want = {-1.5, 3, 0.5, -0.2, 2.5, 1}, .n = 6},
    {.name = "concat", .arg = {"X, X", "1"}, .want = {-1.5, 0.5, 2.5, 3, -0.2, 1, -1.5, 0.5, 2.5, 3, -0.2, 1}, .n = 12},
    {.name = "concat", .arg = {"X", "2"}, .want = ALL_X, .n = 6},
    {.name = "concat", .arg = {"unsqueeze(X, 1)", "3"}, .want = ALL_X, .n = 6},
    {.name = "split", .arg = {"X", "3"}, .want = {0.5, -0.2}, .n = 2, .suffix = "[2]", .any = {NULL, "nl"}},
    {.name = "first", .arg = {"X", "2"}, .want = {-1.5, 0.5, 3, -0.2}, .n = 4},
    {.name = "rest", .arg = {"X", "2"}, .want = {2.5, 1}, .n = 2},
    {.name = "slice", .arg = {"X", "2", "2"}, .want = {0.5, 2.5, -0.2, 1}, .n = 4},
    {.name = "pad", .arg = {"X", "4"}, .want = {-1.5, 0.5, 2.5, 0, 3, -0.2, 1, 0}, .n = 8},
    {.name = "repeat", .arg = {"X", "2"}, .want = {-1.5, 0.5, 2.5, -1.5, 0.5, 2.5, 3, -0.2, 1, 3, -0.2, 1}, .n = 12},
    {.name = "unsqueeze", .arg = {"X", "1"}, .want = ALL_X, .n = 6},
    {.name = "squeeze", .arg = {"unsqueeze(X, 1)", "1"}, .want = ALL_X, .n = 6},
    {.name = "broadcast", .arg = {"pair", "[3, 2]"}, .want = {1, 2, 1, 2, 1, 2}, .n = 6},
    {.name = "shift", .arg = {"X", "1", "2", "9"}, .want = {9, -1.5, 0.5, 9, 3, -0.2}, .n = 6},
    {.name = "roll", .arg = {"X", "1", "2"}, .want = {2.5, -1.5, 0.5, 1, 3, -0.2}, .n = 6},
    {.name = "flatten", .arg = {"S"}, .want = {1, 0, 0, 1}, .n = 4},
    {.name = "extent", .arg = {"X", "2"}, .want = {3}, .n = 1},
    {.name = "gather", .arg = {"X", "J"}, .want = ALL_X, .n = 6},
    {.name = "pick", .arg = {"X", "I"}, .want = {-1.5, 2.5, 0.5, -0.2, 3, 1}, .n = 6},
    {.name = "one_hot", .arg = {"J", "3"}, .want = {1, 0, 0, 0, 1, 0}, .n = 6},
    {.name = "top_k", .arg = {"X", "2"}, .want = {2.5, 0.5, 3, 1}, .n = 4, .suffix = ".values"},
    {.name = "top_k", .arg = {"X", "2"}, .want = {2, 1, 0, 2}, .n = 4, .suffix = ".index"},
    {.name = "arange", .arg = {"3"}, .want = {0, 1, 2}, .n = 3},
    {.name = "expert_matmul", .arg = {"X", "E", "reshape(J, [2, 1])"}, .want = {7, -2}, .n = 2},
    {.name = "sdpa",
     .arg = {"S", "S", "S", "causal", "1"},
     .want = {1, 0, 0.2689414213699951, 0.7310585786300049},
     .n = 4},
    {.name = "rotary",
     .arg = {"S", "10_000"},
     .want = {1, 0, -0.8414709848078965, 0.5403023058681398},
     .n = 4,
     .any = {NULL, "n.", "n", "l"}},
    {.name = "cross_entropy", .arg = {"X", "J"}, .want = {4.1429316284999, 3.3622017433322937}, .n = 2},
    {.name = "drop", .arg = {"X", "0"}, .want = ALL_X, .n = 6},
    {.name = "randn", .arg = {"[2, 3]"}, .want = {1}, .n = -6, .suffix = " < 100"},
    {.name = "rand", .arg = {"[2, 3]"}, .want = {1}, .n = -6, .suffix = " < 1"},
    {.name = "bernoulli", .arg = {"[2, 3]", "1"}, .want = {1}, .n = -6},
    {.name = "cast", .arg = {"X", "int"}, .want = {-1, 0, 2, 3, 0, 1}, .n = 6},
    {.name = "where",
     .arg = {"X > 1", "X", "0"},
     .want = {0, 0, 2.5, 3, 0, 0},
     .n = 6,
     .any = {"nrcxilbt-.*", "nrcxilbt-.*", "nrcxilbt-.*"}},
    {.name = "clamp", .arg = {"X", "-1", "2"}, .want = {-1, 0.5, 2, 2, -0.2, 1}, .n = 6, .any = {"nrcxlbt-.*"}},
    {.name = "input", .arg = {"X", "[2, 3]"}, .want = ALL_X, .n = 6},
    {.name = "tied", .arg = {"embed", "tokens"}, .want = {0.5}, .n = -768},
    {.name = "embedding", .want = {0.5}, .n = -6},
    {.name = "open_state", .arg = {"embedding()"}, .want = {0.5}, .n = -6},
    {.name = "close_state", .arg = {"embedding()"}, .want = {0.5}, .n = -6},
    {.name = "geometric",
     .arg = {"3", "64", "16", "3", NULL, NULL, "64"},
     .want = {64, 32, 16},
     .n = 3,
     .any = {NULL, NULL, "n.d", "nL", NULL, NULL, "n.d"}},
    {.name = "arithmetic",
     .arg = {"3", "64", "32", "3", NULL, NULL, "64"},
     .want = {64, 48, 32},
     .n = 3,
     .any = {NULL, NULL, "n.d", "nL", NULL, NULL, "n.d"}},
    {.name = "constant", .arg = {"3", "8"}, .want = {8}, .n = -3},
    {.name = "normal", .place = WEIGHT, .arg = {"3"}, .want = {INIT_NORMAL, 3, 0}, .n = 3},
    {.name = "trunc_normal", .place = WEIGHT, .arg = {"3", "2"}, .want = {INIT_TRUNC_NORMAL, 3, 2}, .n = 3},
    {.name = "uniform", .place = WEIGHT, .arg = {"-1", "2"}, .want = {INIT_UNIFORM, -1, 2}, .n = 3},
    {.name = "fill", .place = WEIGHT, .arg = {"3"}, .want = {INIT_FILL, 3, 0}, .n = 3},
    {.name = "zeros", .place = WEIGHT, .want = {INIT_FILL, 0, 0}, .n = 3},
    {.name = "ones", .place = WEIGHT, .want = {INIT_FILL, 1, 0}, .n = 3},
    {.name = "eye", .place = WEIGHT, .arg = {"2"}, .want = {INIT_EYE, 2, 0}, .n = 3},
    /* step 10 of 100, a sequence of two tokens each */
    {.name = "cosine", .place = RATE, .arg = {"1", "0.5", "5 steps"}, .want = {0.9965903258506806}, .n = 1},
    {.name = "linear", .place = RATE, .arg = {"1", "0.5", "5 steps"}, .want = {0.9736842105263158}, .n = 1},
    {.name = "wsd", .place = RATE, .arg = {"1", "5 steps", "95 steps", "0.5"}, .want = {0.9736842105263158}, .n = 1},
    {.name = "power", .place = RATE, .arg = {"1", "-0.5", "0.5"}, .want = {0.10660035817780521}, .n = 1},
    {.name = "constant", .place = RATE, .arg = {"1", "20 steps"}, .want = {0.55}, .n = 1},
    {.name = "ema", .place = AVERAGE, .arg = {"0.25"}, .want = {0.25}, .n = 1},
    {.name = "text_file", .place = DATA, .arg = {"\"t.txt\"", "0.5"}, .any = {NULL, NULL, "s"}},
    {.name = "token_files",
     .place = DATA,
     .arg = {"\"t.bin\"", "u16", NULL, "0.5"},
     .any = {NULL, NULL, NULL, NULL, NULL, "n"}},
    {.name = "arrays", .place = LET, .arg = {"0.5"}},
    {.name = "bytes", .place = TOKENIZER},
    {.name = "chars", .place = TOKENIZER},
    {.name = "file", .place = TOKENIZER, .arg = {"\"t.json\""}},
    {.name = "mixed", .place = PRECISION, .arg = {"bf16", "fp32"}},
    {.name = "run", .place = START, .arg = {"\"runs/a\""}, .any = {NULL, NULL, NULL, NULL, NULL, NULL, "n."}},
    {.name = "weights", .place = START, .arg = {"\"a.safetensors\""}},
    {.name = "plateau", .place = WHEN, .arg = {"train.loss", "3 steps", "0.5"}},
    {.name = "preserves", .place = CLAIM, .arg = {"0.5"}, .any = {"no-."}},
    {.name = "alive", .place = CLAIM, .arg = {"3"}, .any = {"no"}},
    {.name = "dense", .place = LET, .arg = {"2", "4"}},
    {.name = "routed", .place = LET, .arg = {"2", "4"}},
    {.name = "range", .place = LET, .arg = {"1", "3", "3"}, .any = {NULL, "n-.", "n", NULL, "n."}},
    {.name = "between", .place = LET, .arg = {"1", "3"}, .any = {ALL_KINDS, ALL_KINDS, NULL, ALL_KINDS, ALL_KINDS}},
    {.name = "draws", .place = LET, .arg = {"3"}, .any = {ALL_KINDS, ALL_KINDS}},
    {.name = "halving", .place = LET, .arg = {"[1, 2]", "0.5"}, .any = {NULL, ALL_KINDS}},
    {.name = "table", .place = LET, .arg = {"1", "2", "3"}, .any = {ALL_KINDS, ALL_KINDS, ALL_KINDS, ALL_KINDS}},
    {.name = "copy", .place = LET, .any = {ALL_KINDS}},
};

/* ---- a file around a call ---- */

static const char text[] =
    "edition = 1\n%s\n" /* at the top */
    "block plain() {\n  block open()(e: [.., D]) -> [.., D] { return e }\n"
    "  block step()(x: [.., D], f: block) -> [.., D] { return x + f(x) }\n"
    "  block close()(x: [.., D]) -> [.., D] { return x }\n}\n"
    "block linear(out: dim)(x: [.., I]) -> [.., out] {\n  param W : [I, out] = ones\n  return x @ W\n}\n"
    "block embed_tokens()() -> [B, T, 3] {\n  param W : [256, 3] = ones\n  return gather(W, input.tokens)\n}\n"
    "block head_lm()(x: [.., D]) -> [.., D] {\n  loss.all = mean(x)\n  return x\n}\n"
    "block probe()(x: [.., D]) -> [.., D] {\n"
    "  %s\n" /* inputs */
    "  %s\n" /* in a block */
    "  return x\n}\n"
    "model m {\n  context = 2, width = 3, mask = causal, pre_norm = none\n"
    "  connection = plain()\n  embed tokens { }\n  probe { }\n  head lm { }\n}\n";
static const char given[] =
    "X = input(X, [2, 3])\n  P = input(P, [2, 3])\n  I = input(I, [2, 3], int)\n  J = input(J, [2], int)\n"
    "  S = input(S, [1, 2, 1, 2])\n  E = input(E, [2, 3, 1])\n  pair = input(pair, [2])\n  two = input(two, [])\n"
    "  one = input(one, [])\n  minus = input(minus, [])\n  half = input(half, [])\n";
static const char train[] =
    "train {\n  data = %s\n  %s\n  precision = %s\n  average = %s\n%s%s  batch = 1 seqs, length = 100 steps, seed = 1\n"
    "  optimizer adamw { lr = %s, betas = [0.9, 0.99], eps = 1e-8, weight_decay = 0 }\n}\n%s";
static const double inputs[][MOST_WANT + 1] = {{'X', -1.5, 0.5, 2.5, 3, -0.2, 1},
                                               {'P', 0.1, 0.25, 0.5, 0.75, 0.9, 0.3},
                                               {'I', 0, 2, 1, 1, 0, 2},
                                               {'J', 0, 1},
                                               {'S', 1, 0, 0, 1},
                                               {'E', 1, 2, 3, -1, 0, 1},
                                               {'p', 1, 2},
                                               {'t', 2},
                                               {'o', 1},
                                               {'m', -2},
                                               {'h', 0.5}};

/* The file in which `call` stands at the place. */
static const char *whole_file(Arena *a, Place place, const char *call)
{
    const char *of[LET + 1] = {[DATA] = "text_file(\"t.txt\")",
                               [TOKENIZER] = "bytes()",
                               [PRECISION] = "fp32",
                               [AVERAGE] = "none",
                               [RATE] = "1"};
    bool in_block = place == OUTPUT || place == WEIGHT, in_train = place != LET && place != CLAIM && !in_block;
    const char *body = place == OUTPUT   ? arena_printf(a, "v = %s\n  output.y = v", call)
                       : place == WEIGHT ? arena_printf(a, "param W : [2, 2] = %s\n  output.y = sum(W)", call)
                                         : "";
    const char *top = place == CLAIM
                          ? arena_printf(a, "let N = 1\ngrow g {\n when = step >= 1\n let N = 2\n check %s\n}", call)
                      : place == LET ? arena_printf(a, "let v = %s\ncheck size([v]) == 1", call)
                                     : "";
    const char *model = arena_printf(a, text, top, in_block ? given : "", body);
    if (!in_train)
        return model;
    of[place] = call;
    const char *grow = place == WHEN ? arena_printf(a, "let N = 1\ngrow g { when = %s, let N = 2 }\n", call) : "";
    const char *tokenizer =
        strncmp(of[DATA], "text_file", 9) && place == DATA ? "" : arena_printf(a, "tokenizer = %s", of[TOKENIZER]);
    return arena_printf(a, "%s%s", model,
                        arena_printf(a, train, of[DATA], tokenizer, of[PRECISION], of[AVERAGE],
                                     place == START ? "  start_from = " : "",
                                     place == START ? arena_printf(a, "%s\n", call) : "", of[RATE], grow));
}

typedef struct Outcome {
    Checked c;
    size_t errors;
    double v[1024];
    int n; /* -1: not accepted */
} Outcome;

static void keep(Outcome *o, double x)
{
    if (o->n < (int)COUNT_OF(o->v))
        o->v[o->n++] = x;
}

static Tensor *input_tensor(Arena *a, const Ext *x)
{
    enum { T = 2 };
    int64_t d[MAX_RANK];
    for (uint8_t k = 0; k < x->shape.rank; k++)
        d[k] = dim_static(x->shape.d[k]) ? x->shape.d[k].n : dim_eq(x->shape.d[k], DIM_T) ? T : 1;
    Tensor *t = tensor_new(a, x->dtype, x->shape.rank, d);
    for (int64_t k = 0; k < t->size; k++) {
        double number = x->kind == EXT_PARAM ? 0.5 : 0;
        for (size_t i = 0; x->kind == EXT_INPUT && strcmp(x->name, "tokens") && i < COUNT_OF(inputs); i++)
            if (inputs[i][0] == x->name[0])
                number = inputs[i][k + 1];
        if (x->dtype == DT_INT)
            t->integer[k] = (int64_t)number;
        else
            t->real[k] = number;
    }
    return t;
}

/* The numbers of `output.y`, by the reference evaluator in the third step. */
static void run_output(Outcome *o)
{
    const Model *m = o->c.unit->model;
    Graph *g = m->graph;
    Arena *a = o->c.ctx->program;
    RefBinding *bind = NEW_ARRAY(a, RefBinding, g->ext.n + 1);
    double vars[HV_COUNT] = {[HV_STEP] = 2};
    for (size_t i = 0; i < m->output.n; i++)
        if (!strcmp(m->output.v[i].name, "y"))
            ir_output(g, m->output.v[i].name, m->output.v[i].value);
    for (size_t i = 0; i < g->ext.n; i++)
        bind[i] = (RefBinding){g->ext.v[i].kind, g->ext.v[i].name, input_tensor(a, &g->ext.v[i])};
    RefRun run = {.B = 1, .T = 2, .seed = 1, .host_vars = vars, .bind = bind, .n_bind = g->ext.n};
    Tensor **r = NEW_ARRAY(a, Tensor *, g->out.n + 1);
    ref_evaluate(g, a, &run, r);
    for (size_t i = 0; i < g->out.n; i++)
        for (int64_t k = 0; !strcmp(g->out.v[i].name, "y") && k < r[i]->size; k++)
            keep(o, r[i]->dtype == DT_INT ? (double)r[i]->integer[k] : r[i]->real[k]);
}

static void evaluate(Outcome *o, Place place, const char *call)
{
    Arena *a;
    Ctx *texts = ctx_new(NULL);
    if (!texts)
        abort();
    a = texts->program;
    *o = (Outcome){.c = check_text("-", whole_file(a, place, call), NULL), .n = -1};
    ctx_free(texts);
    for (size_t i = 0; i < diag_count(o->c.ctx); i++)
        o->errors += diag_get(o->c.ctx, i)->level == LEVEL_ERROR;
    if (o->errors || !o->c.unit)
        return;
    o->n = 0;
    const double vars[HV_COUNT] = {[HV_STEP] = 10,           [HV_TOKENS] = 20,           [HV_PROGRESS] = 0.1,
                                   [HV_LENGTH] = 100,        [HV_TRAIN_LOSS] = INFINITY, [HV_EVAL_LOSS] = INFINITY,
                                   [HV_GRAD_NORM] = INFINITY};
    const Train *t = o->c.unit->train;
    const Model *m = o->c.unit->model;
    if (place == OUTPUT)
        run_output(o);
    else if (place == RATE)
        keep(o, host_eval(t->optimizer.lr, vars));
    else if (place == AVERAGE && t->average)
        keep(o, host_eval(t->average, vars));
    for (size_t i = 0; place == WEIGHT && i < m->param.n; i++)
        if (!strcmp(m->param.v[i].path, "probe.W")) {
            const Init *init = &m->param.v[i].init;
            keep(o, init->kind);
            keep(o, init->a);
            keep(o, init->b);
        }
}

static bool same_numbers(const Outcome *a, const Outcome *b)
{
    bool same = a->n == b->n;
    for (int k = 0; same && k < a->n; k++)
        same = a->v[k] == b->v[k] || (isfinite(b->v[k]) && fabs(a->v[k] - b->v[k]) <= 1e-12 * fmax(1, fabs(b->v[k]))) ||
               (isnan(a->v[k]) && isnan(b->v[k]));
    return same;
}

/* ---- walking the tables ---- */

typedef struct Argument {
    char name[24], type[12];
    bool variadic, none; /* `none` is its default */
} Argument;

/* The parameters of a signature, read as `vwn doc` prints it. */
static int signature(const char *s, Argument *out)
{
    int n = 0;
    while (*s && *s != '*' && n < MOST_ARGS) {
        Argument *p = &out[n++];
        size_t k = strcspn(s, ":.");
        *p = (Argument){.variadic = s[k] == '.'};
        snprintf(p->name, sizeof p->name, "%.*s", (int)k, s);
        s += k;
        s += strspn(s, ":. ");
        k = strcspn(s, " ,");
        snprintf(p->type, sizeof p->type, "%.*s", (int)k, s);
        s += k;
        p->none = !strncmp(s, " = none", 7);
        s += strcspn(s, ",");
        s += strspn(s, ", ");
    }
    return n;
}

/* The call of the row with argument i written as `in_place`; NULL there leaves it out. */
static const char *call_of(Arena *a, const Row *r, const Argument *arg, int n, int i, const char *in_place)
{
    Buf b = buf_new(a);
    buf_printf(&b, "%s(", r->name);
    bool first = true;
    for (int k = 0; k < n; k++) {
        const char *v = k == i ? in_place : r->arg[k];
        if (!v)
            continue;
        buf_printf(&b, first ? "" : ", ");
        if (!arg[k].variadic)
            buf_printf(&b, "%s = ", arg[k].name);
        buf_puts(&b, v);
        first = false;
    }
    buf_printf(&b, ")%s", r->suffix ? r->suffix : "");
    return b.s;
}

static void expect_row(Test *t, const Row *r, const char *call, const Outcome *o)
{
    Outcome want = {.n = r->each ? 6 : abs(r->n)};
    const double *from = inputs[!strcmp(r->arg[0] ? r->arg[0] : "", "P")];
    for (int k = 0; k < want.n; k++)
        want.v[k] = r->each ? r->each(from[k + 1]) : r->want[r->n < 0 ? 0 : k];
    bool right = o->n >= 0 && same_numbers(o, &want);
    EXPECT(t, call, right);
    for (int k = 0; !right && k < o->n; k++)
        printf("  %.17g, wanted %.17g\n", o->v[k], k < want.n ? want.v[k] : NAN);
    if (o->n < 0)
        print_diagnostics((Checked *)&o->c);
}

/* Refused with one error, or computed as what it stands for. */
static void expect_kind(Test *t, Arena *a, const Row *r, const Argument *arg, int n, int i, const Kind *k)
{
    const char *call = call_of(a, r, arg, n, i, k->text);
    Outcome o, other;
    evaluate(&o, r->place, call);
    bool none = k->letter == 'o' && arg[i].none;
    bool known = none || strchr(accepted(arg[i].type, r->any[i]), k->letter);
    bool any = !strcmp(arg[i].type, "any"),
         tensors = any && (!r->any[i] || (r->place == OUTPUT && strchr(r->any[i], 'b')));
    bool values = !strcmp(arg[i].type, "tensor") || tensors;
    EXPECT(t, call, o.c.status != ST_BUG && o.c.status != ST_ENVIRONMENT);
    if (o.n < 0) {
        EXPECT(t, call, o.errors == 1);
        if (o.errors != 1)
            print_diagnostics(&o.c);
    } else if (!known) {
        EXPECT(t, call, !"accepted");
    } else if (none || (values && k->tensor && k->letter != 'x')) {
        evaluate(&other, r->place, none ? call_of(a, r, arg, n, i, NULL) : call_of(a, r, arg, n, i, k->tensor));
        bool same = same_numbers(&o, &other) || (k->letter == 'i' && other.n < 0); /* an index has no real form */
        EXPECT(t, call, same);
        for (int j = 0; !same && j < o.n; j++)
            printf("  %.17g, as a tensor %.17g\n", o.v[j], j < other.n ? other.v[j] : NAN);
        ctx_free(other.c.ctx);
    }
    /* what maps numbers takes all of them */
    if (r->each && strchr("nrx", k->letter) && r->each != p_same)
        EXPECT(t, call, o.n > 0 || isnan(r->each(2)));
    ctx_free(o.c.ctx);
}

static void expect_prim(Test *t, const Prim *p, bool schedule)
{
    Argument arg[MOST_ARGS];
    int n = signature(p->params, arg);
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const Row *r = &rows[i];
        if (strcmp(r->name, p->name) || (r->place == RATE) != (schedule || !strcmp(r->name, "cosine") ||
                                                               !strcmp(r->name, "wsd") || !strcmp(r->name, "power")))
            continue;
        found = true;
        Ctx *ctx = ctx_new(NULL);
        Outcome plain;
        const char *call = call_of(ctx->program, r, arg, n, -1, NULL);
        evaluate(&plain, r->place, call);
        expect_row(t, r, call, &plain);
        for (int k = 0; k < n; k++)
            for (size_t j = 0; j < COUNT_OF(kinds); j++)
                expect_kind(t, ctx->program, r, arg, n, k, &kinds[j]);
        ctx_free(plain.c.ctx);
        ctx_free(ctx);
    }
    EXPECT(t, p->name, found);
}

/* What stands in the place of a call: a learning rate is a number of the run, `when` a condition of it. */
static void expect_places(Test *t)
{
    static const struct {
        Place place;
        const char *kinds;
    } places[] = {{RATE, "nr."},    {AVERAGE, "o"},  {START, "so"}, {DATA, ""},
                  {TOKENIZER, "p"}, {PRECISION, ""}, {WHEN, "c"},   {CLAIM, "cb"}};
    for (size_t i = 0; i < COUNT_OF(places); i++)
        for (size_t j = 0; j < COUNT_OF(kinds); j++) {
            Outcome o;
            evaluate(&o, places[i].place, kinds[j].text);
            bool takes = strchr(places[i].kinds, kinds[j].letter) != NULL;
            bool right = takes ? o.n >= 0 : o.n < 0 && o.errors == 1;
            EXPECT(t, kinds[j].text, right);
            if (!right) {
                printf("  in place %d\n", (int)places[i].place);
                print_diagnostics(&o.c);
            }
            ctx_free(o.c.ctx);
        }
}

/* Between two values: refused with an error of each at most, or computed as between the tensors that they stand for. */
static void expect_operator(Test *t, Arena *a, const char *form, const Kind *x, const Kind *y)
{
    Buf call = buf_new(a), tensors = buf_new(a);
    buf_printf(&call, form, x->text, y->text);
    Outcome o, other;
    evaluate(&o, OUTPUT, call.s);
    bool right = o.n >= 0 ? o.errors == 0 : (o.errors == 1 || o.errors == 2) && o.c.status != ST_BUG;
    bool lists = (x->letter == 'l' && !strchr("xi", y->letter)) || (y->letter == 'l' && !strchr("xi", x->letter));
    bool whole = lists && strchr(form, '='); /* a list equals a list */
    bool zeros = strstr(form, "mod") && y->letter == 'i';
    if (o.n >= 0 && x->tensor && y->tensor && !whole && !zeros) {
        buf_printf(&tensors, form, x->tensor, y->tensor);
        evaluate(&other, OUTPUT, tensors.s);
        right = right && same_numbers(&o, &other);
        for (int k = 0; !right && k < o.n; k++)
            printf("  %.17g, as tensors %.17g\n", o.v[k], k < other.n ? other.v[k] : NAN);
        ctx_free(other.c.ctx);
    }
    EXPECT(t, call.s, right);
    if (!right && o.n < 0)
        print_diagnostics(&o.c);
    ctx_free(o.c.ctx);
}

static void expect_operators(Test *t)
{
    static const char *const forms[] = {"(%s) + (%s)",  "(%s) - (%s)",   "(%s) * (%s)",   "(%s) / (%s)",
                                        "(%s) ^ (%s)",  "(%s) mod (%s)", "(%s).T @ (%s)", "(%s) < (%s)",
                                        "(%s) >= (%s)", "(%s) == (%s)",  "(%s) != (%s)"};
    for (size_t f = 0; f < COUNT_OF(forms); f++)
        for (size_t i = 0; i < COUNT_OF(kinds); i++)
            for (size_t j = 0; j < COUNT_OF(kinds); j++) {
                Ctx *ctx = ctx_new(NULL);
                expect_operator(t, ctx->program, forms[f], &kinds[i], &kinds[j]);
                ctx_free(ctx);
            }
}

/* Section 12 of the reference has a row for each primitive that can be called by name, as it is in the table, and no other. */
static void expect_reference(Test *t)
{
    Ctx *ctx = ctx_new(NULL);
    FILE *f = fopen(VWN_SOURCE_DIR "/grammar/README.md", "r");
    Buf all = buf_new(ctx->program);
    char part[4096];
    for (size_t n; f && (n = fread(part, 1, sizeof part, f)) > 0;)
        buf_put(&all, part, n);
    if (f)
        fclose(f);
    const char *at = strstr(all.s, "\n## 12. "), *end = at ? strstr(at, "\n## 13. ") : NULL;
    EXPECT(t, "the reference", end != NULL);
    if (!end)
        exit(test_end(t));
    const char *section = arena_copy(ctx->program, at, (size_t)(end - at));
    size_t titles = 0, known = 0;
    for (const char *s = all.s; (s = strstr(s, "\n## ")); s++)
        titles += isdigit((unsigned char)s[4]) != 0;
    for (const char *title; (title = doc_section(known)); known++)
        EXPECT(t, title, strstr(all.s, arena_printf(ctx->program, "\n## %s\n", title)) != NULL);
    EXPECT(t, "sections that `vwn doc --search` names", titles == known);
    Buf rows_known = buf_new(ctx->program);
    for (size_t i = 0; i < prim_count(); i++) {
        const Prim *p = prim_at(i);
        if (p->hidden)
            continue;
        size_t from = rows_known.n;
        buf_printf(&rows_known, "\n| `%s(", p->name);
        for (const char *c = p->params; *c; c++) /* what takes any value is written without a type */
            if (strncmp(c, ": any", 5) != 0 || isalnum((unsigned char)c[5]))
                buf_putc(&rows_known, *c);
            else
                c += 4;
        buf_puts(&rows_known, ")` | ");
        for (const char *c = p->doc; *c; c++)
            buf_printf(&rows_known, "%s%c", *c == '|' ? "\\" : "", *c);
        buf_puts(&rows_known, " |\n");
        if (!strstr(section, rows_known.s + from))
            printf("grammar/README.md, section 12, has no row%s", rows_known.s + from);
        EXPECT(t, p->name, strstr(section, rows_known.s + from) != NULL);
    }
    for (const char *row = section; (row = strstr(row, "\n| `")) != NULL; row++) {
        const char *line = arena_copy(ctx->program, row, strcspn(row + 1, "\n") + 2);
        const char *cell = row + 4; /* others are no call, or more than one */
        bool call = cell[strspn(cell, "abcdefghijklmnopqrstuvwxyz0123456789_")] == '(' &&
                    !strncmp(cell + strcspn(cell, "`"), "` | ", 4);
        if (call && !strstr(rows_known.s, line))
            printf("grammar/README.md, section 12, has a row of no primitive:%s", line);
        EXPECT(t, "a row of section 12", !call || strstr(rows_known.s, line) != NULL);
    }
    ctx_free(ctx);
}

/* ---- the examples of `vwn doc` ---- */

static bool is_value(const Outcome *o, const char *value)
{
    int n = 0;
    bool same = true;
    for (const char *s = value; *s;) {
        char *end;
        double x = !strncmp(s, "true", 4) ? 1 : strtod(s, &end);
        end = !strncmp(s, "true", 4) ? (char *)s + 4 : end;
        if (end == s) {
            s++;
            continue;
        }
        same = same && n < o->n && fabs(o->v[n] - x) <= 5e-5;
        n++;
        s = end;
    }
    return same && n == o->n;
}

/* Each is accepted in a place where its primitive stands, and gives what is said; every primitive has one. */
static void expect_examples(Test *t)
{
    static const char names[] = "q = reshape(concat(x, x), [B, T, 1, 6])\n  k = q\n  v = q\n  logits = x\n  v = ";
    Outcome o;
    const DocExample *e;
    for (size_t i = 0; (e = doc_example(i)); i++) {
        bool known = prim_find(e->name) || schedule_prim(e->name), right = false;
        for (size_t k = 0; k < COUNT_OF(rows) && !right; k++) {
            if (strcmp(rows[k].name, e->name) != 0)
                continue;
            Ctx *texts = ctx_new(NULL);
            bool heads = strstr(e->call, "(q") || strstr(e->call, "logits"), let = rows[k].place == LET;
            const char *call =
                heads             ? arena_printf(texts->program, "0\n  %s%s", names, e->call)
                : let && e->value ? arena_printf(texts->program, "0\ncheck %s == %s", e->call, e->value)
                : let ? arena_printf(texts->program, "0\nlet D = 1\nlet L = 1\nlet w = %s\ncheck size([w, D, L]) == 3",
                                     e->call)
                      : e->call;
            evaluate(&o, rows[k].place, call);
            right = o.n >= 0 && (!e->value || let || is_value(&o, e->value));
            ctx_free(o.c.ctx);
            ctx_free(texts);
        }
        EXPECT(t, e->call, known && right);
    }
    for (size_t i = 0; i < prim_count(); i++) {
        bool found = prim_at(i)->hidden;
        for (size_t k = 0; (e = doc_example(k)); k++)
            found |= !strcmp(e->name, prim_at(i)->name);
        EXPECT(t, prim_at(i)->name, found);
    }
}

int main(void)
{
    Test t = {0};
    expect_examples(&t);
    expect_reference(&t);
    expect_places(&t);
    expect_operators(&t);
    CaseDraw draw = {.one_in = 1, .sanitized = 8};
    for (size_t i = 0; i < prim_count(); i++)
        if (!prim_at(i)->hidden && case_drawn(&draw, i))
            expect_prim(&t, prim_at(i), false);
    cases_end(&draw);
    expect_prim(&t, schedule_prim("linear"), true);
    expect_prim(&t, schedule_prim("constant"), true);
    return test_end(&t);
}
