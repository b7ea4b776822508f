/* hostile.c - files that ask for too much: each ends with a named limit, in little time and memory.
 *
 * In:  small texts that unfold.   Out: one error E0008 (or none, when it is only large), never a bug.
 * When: quick.
 */
#include "support.h"

#define HEAD "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet n = rms_norm(eps = 1e-6)\n"
#define MODEL(width, body)                                                                                             \
    "model m {\n context = 16\n width = " width "\n mask = causal\n init = normal(std = 0.02)\n"                       \
    " out_init = zeros\n pre_norm = n\n connection = residual()\n embed tokens { vocab = 256 }\n" body                 \
    "\n head lm { norm = n }\n}\n"
#define TRAIN(rules)                                                                                                   \
    "train {\n data = text_file(\"t.txt\")\n tokenizer = bytes()\n batch = 1 seqs\n length = 1 steps\n seed = 1\n"     \
    " precision = fp32\n optimizer sgd {\n lr = 0.1\n momentum = 0\n weight_decay = 0\n" rules "\n }\n}\n"
#define GROW(let)                                                                                                      \
    "grow g {\n when = step >= 1\n let F = " let "\n fill { entry = copy, exit = split }\n check alive(none)\n}\n"
#define TEN(text)   text text text text text text text text text text
#define BLOCK(body) HEAD "block b()(x: [.., D]) -> [.., D] {\n" body "\n}\n" MODEL("64", "b")

typedef struct Case {
    const char *what, *text, *code; /* NULL: legal */
} Case;

static const Case cases[] = {
    {"a range of 10^9", HEAD MODEL("sum([i for i in 1..1e9])", "b"), "E0008"},
    {"600,000 numbers drawn three times",
     "let a = [1]\nsweep s {\n  vary { a = between(0.2, 2, n = 600_000) }\n  random = 3\n}\n", "E0008"},
    {"more axes than Halton's sequence has here",
     "let d = 1\nlet a = [1]\nsweep s {\n  vary { d = between(1, 2), a = between(0.2, 2, n = 32) }\n  random = "
     "draws(3, sequence = halton)\n}\n",
     "E0008"},
    {"10^9 repeats in a list", HEAD MODEL("size([i for i in 1..1000, j in 1..1000, k in 1..1000])", "b"), "E0008"},
    {"a list of lists of lists",
     HEAD "let a = [[i for i in 1..1000] for j in 1..1000]\nlet c = [a for i in 1..1000]\n" MODEL("size(c)", "b"),
     "E0008"},
    {"10^12 statements", BLOCK("for i in 1..10000 { for j in 1..10000 { for k in 1..10000 { let z = 1 } } }\nreturn x"),
     "E0008"},
    {"layers within layers",
     HEAD MODEL("64", "for a in 1..4096 { for c in 1..4096 { ffn { hidden = 4, activation = gelu } } }"), "E0008"},
    {"too many layers", HEAD MODEL("64", "for a in 1..5000 { ffn { hidden = 4, activation = gelu } }"), "E0008"},
    {"a block that applies itself", BLOCK("let f = b()\nreturn f(x)"), "E0008"},
    {"inline", BLOCK("return b()(x)"), "E0008"},
    {"a function that calls itself", HEAD "block f(k: int) { return f(k = k + 1) }\n" MODEL("f(k = 1)", "b"), "E0008"},
    {"twice, until it ends",
     HEAD "block f(k: int) { return if k < 2 then 1 else f(k = k - 1) + f(k = k - 2) }\n" MODEL("f(k = 60)", "b"),
     "E0008"},
    {"weights without end", BLOCK("param W : [1e9, 1e9] = zeros\nreturn x + sum(W)"), "E0008"},
    {"an extent without end", BLOCK("return x + sum(repeat(x, 1e15))"), "E0008"},
    {"classes without end", BLOCK("return x + sum(one_hot(arange(10), 1e15))"), "E0008"},
    {"more axes than there are",
     BLOCK("y = repeat(repeat(repeat(repeat(repeat(repeat(x, 2), 2), 2), 2), 2), 2)\nreturn x"), "E0008"},
    {"a head of 10^9 coordinates",
     HEAD MODEL("8", "attention { heads = 1, head_dim = 1e9, position = rope(base = 100) }"), "E0008"},
    {"a width of 10^15", HEAD MODEL("1e15", "ffn { hidden = 4, activation = gelu }"), "E0008"},
    {"a width of 10^300", HEAD MODEL("1e300", "ffn { hidden = 4, activation = gelu }"), "E0208"},
    {"a width of 10^8", HEAD MODEL("1e8", "ffn { hidden = 4, activation = gelu }"), NULL},
    {"parameters of 10^15 weights", BLOCK("param W : [1e8, 1e7] = zeros\nreturn x + sum(W)"), NULL},
    {"a let of itself", HEAD "let a = a + 1\n" MODEL("a", "linear { out = 4 }"), "E0109"},
    {"a circle of lets", HEAD "let a = c\nlet c = d\nlet d = a\n" MODEL("a", "linear { out = 4 }"), "E0109"},
    {"an empty file", "", NULL},
    {"10^12 rows of nothing", BLOCK("param W : [0, 1e12] = zeros\nreturn x + sum(W)"), NULL},
    {"nothing, 10^12 times", BLOCK("return x + sum(repeat(slice(x, from = 1, count = 0, axis = -1), 1e12))"), NULL},
    {"nothing, 10^18 times",
     BLOCK("y = slice(x, from = 1, count = 0, axis = -1)\nreturn x + sum(repeat(repeat(y, 1e9), 1e9))"), "E0008"},
    {"10^12 classes of nothing", BLOCK("return x + sum(one_hot(arange(0), 1e12))"), NULL},
    {"products over nothing",
     BLOCK("param W : [64, 0] = zeros\nparam V : [0, 64] = zeros\nfor i in 1..9000 { x = x + (x @ W) @ V }\nreturn x"),
     NULL},
    {"coordinates one by one", BLOCK("param W : [64, 1] = zeros\nfor i in 1..9000 { x = x + x @ W }\nreturn x"), NULL},
    {"experts that are alone",
     HEAD MODEL("8", "for a in 1..300 { moe { experts = 1, active = 1, hidden = 4, activation = gelu, scores = "
                     "softmax, normalize = true, balance = 0 } }"),
     NULL},
    {"stars that freeze, behind each other",
     HEAD MODEL("8", "for aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa in 1..9 { ffn { hidden = 4, "
                     "activation = gelu } }")
         TRAIN(" group \"*" TEN("a*") TEN("a*") TEN("a*") "down.W\" { frozen = true }\n group \"" TEN("*") TEN("*")
                   TEN("*") "f" TEN("*") "W\" { frozen = true }"),
     NULL},
    {"growth out of nothing, frozen",
     HEAD "let F = 0\n" MODEL("8", "for a in 1..100 { ffn { hidden = F, activation = gelu } }")
         TRAIN(" group \"*\" { frozen = true }") "grow g {\n when = step >= 1\n let F = 4\n fill { entry = normal(std "
                                                 "= 1), exit = zeros }\n check alive(none)\n}\n",
     NULL},
    {"copies of one coordinate, 10^5 of them",
     HEAD "let F = 1\n" MODEL("8", "ffn { hidden = F, activation = gelu }") TRAIN("") GROW("100_000"), "E0008"},
};

/* Work is what arenas gave out, which no machine changes: half a gigabyte is a second of it. */
static void run(Test *t, const Case *k)
{
    Checked c = check_text("-", k->text, NULL);
    if (k->code)
        expect_error(t, k->what, &c, k->code);
    else
        expect_fine(t, k->what, &c);
    EXPECT(t, k->what, c.ctx->peak_bytes < (size_t)1 << 30);
    EXPECT(t, k->what, c.ctx->taken < (uint64_t)1 << 29);
    ctx_free(c.ctx);
}

/* let a1 = [a0, a0], let a2 = [a1, a1], ...: 2^40 values, or 2^40 terms of a run-time expression. */
static void doubling(Test *t, const char *what, const char *first, const char *next, const char *last)
{
    static char text[8000];
    size_t n = (size_t)snprintf(text, sizeof text, "%slet a0 = %s\n", HEAD, first);
    for (int i = 1; i < 40; i++) {
        n += (size_t)snprintf(text + n, sizeof text - n, "let a%d = ", i);
        for (const char *p = next; *p; p++)
            n += (size_t)(*p == '$' ? snprintf(text + n, sizeof text - n, "a%d", i - 1)
                                    : snprintf(text + n, sizeof text - n, "%c", *p));
        n += (size_t)snprintf(text + n, sizeof text - n, "\n");
    }
    snprintf(text + n, sizeof text - n, "%s\n", last);
    run(t, &(Case){what, text, "E0008"});
}

/* Names without end, each told from all others: in a block, in a model, in the file. */
static void many_names(Test *t, const char *what, const char *head, const char *line, const char *tail)
{
    enum { NAMES = 60000, LONG = 64 };
    char *text = malloc((size_t)NAMES * LONG);
    if (!text)
        abort();
    size_t n = (size_t)sprintf(text, "%s", head);
    for (int i = 1; i < NAMES; i++)
        for (const char *p = line; *p; p++)
            n += (size_t)(*p == '$'   ? sprintf(text + n, "%d", i)
                          : *p == '@' ? sprintf(text + n, "%d", i - 1)
                                      : sprintf(text + n, "%c", *p));
    sprintf(text + n, "%s", tail);
    run(t, &(Case){what, text, NULL});
    free(text);
}

int main(void)
{
    Test t = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        run(&t, &cases[i]);
    many_names(&t, "names of a block", HEAD "block b()(x: [.., D]) -> [.., D] {\n", "y$ = x\n",
               "return x\n}\n" MODEL("8", "b"));
    many_names(&t, "lets of a block", HEAD "block b()(x: [.., D]) -> [.., D] {\nlet a0 = 1\n", "let a$ = a@ + 1\n",
               "return x * a59999\n}\n" MODEL("8", "b"));
    doubling(&t, "a list that doubles", "[1, 1]", "[$, $]", "check size(a39) == 2");
    doubling(&t, "printed", "[1, 1]", "[$, $]", "check a39 == 4");
    doubling(&t, "a run-time number that doubles", "step + 1", "$ + $", "check a39 > 3");
    return test_end(&t);
}
