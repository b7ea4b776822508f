/* attributes.c - the table of attributes: what the checker takes is what is documented.
 *
 * When: quick, released.
 */
#include "compiler/front/attribute.h"
#include "compiler/front/check.h"
#include "compiler/report/report.h"
#include "support.h"
#include "support/drawn.h"

#include <math.h>

static const char model[] = "import \"std/transformer\"\nimport \"std/connections\"\n"
                            "model m {\n  context = 8\n  width = 8\n  mask = causal\n"
                            "  init = normal(std = 0.02)\n  out_init = normal(std = 0.02)\n  pre_norm = none\n"
                            "  connection = residual()\n  embed tokens { vocab = 12 }\n"
                            "  ffn { hidden = 8, activation = gelu }\n  head lm { norm = none }\n%s}\n%s";

static const char train[] =
    "train {\n  data = text_file(\"x.txt\", val = 5%%)\n  tokenizer = bytes()\n  batch = 2 seqs\n"
    "  length = 10 steps\n  seed = 1\n  precision = fp32\n%s\n"
    "  optimizer %s { lr = 0.1, %s, weight_decay = 0%s }\n%s}\n";

/* A file with one attribute more in `node`; "" when the node stands in no file of this kind. */
static void write_file(char *out, size_t cap, const char *node, const char *item)
{
    char rest[2000] = "", line[200];
    static const char *const kinds[][2] = {{"adamw", "betas = [0.9, 0.95], eps = 1e-8"},
                                           {"sgd", "momentum = 0"},
                                           {"lion", "betas = [0.9, 0.99]"},
                                           {"muon", "momentum = 0, adamw { betas = [0, 0], eps = 1 }"}};
    size_t k = COUNT_OF(kinds);
    while (--k > 0 && strcmp(node, kinds[k][0]) != 0)
        ;
    const char *kind = kinds[k][0], *constants = kinds[k][1];
    bool every = !strcmp(node, "eval") || !strcmp(node, "checkpoint") || !strcmp(node, "log");
    snprintf(line, sizeof line, ", %s", item);
    if (!strcmp(node, "train"))
        snprintf(rest, sizeof rest, train, item, kind, constants, "", "");
    else if (!strcmp(node, kind))
        snprintf(rest, sizeof rest, train, "", kind, constants, line, "");
    else if (!strcmp(node, "group")) {
        snprintf(line, sizeof line, "\n group matrix { %s }", item);
        snprintf(rest, sizeof rest, train, "", kind, constants, line, "");
    } else if (every) {
        snprintf(line, sizeof line, "  %s { every = 2 steps, %s }\n", node, item);
        snprintf(rest, sizeof rest, train, "", kind, constants, "", line);
    } else if (!strcmp(node, "grow"))
        snprintf(rest, sizeof rest, "grow g { when = step >= 5, %s }\n", item);
    else if (!strcmp(node, "old") || !strcmp(node, "new") || !strcmp(node, "fill"))
        snprintf(rest, sizeof rest, "grow g { when = step >= 5, %s { %s } }\n", node, item);
    else if (!strcmp(node, "param"))
        snprintf(rest, sizeof rest,
                 "block b(x: int)(y: [.., D]) -> [.., D] {\n param W : [D] = ones { %s }\n return y * W\n}\n", item);
    else if (!strcmp(node, "check"))
        snprintf(rest, sizeof rest,
                 "block b(x: int)(y: [.., D]) -> [.., D] {\n check x > 2 \"t\" { %s }\n return y\n}\n", item);
    bool block = !strcmp(node, "param") || !strcmp(node, "check");
    snprintf(out, cap, model, !strcmp(node, "model") ? item : block ? "  b { x = 1 }\n" : "", rest);
}

/* The message about an attribute that is not there lists those that are, in the order of the table. */
static void unknown_is_told(Test *t, const char *node)
{
    char text[4000];
    write_file(text, sizeof text, node, "zzz = \"1\"");
    Checked c = check_text("a.vwn", text, NULL);
    const char *known = "";
    size_t n;
    attribute_names(c.ctx, c.ctx->program, node, !strcmp(node, "grow"), &n, &known);
    bool told = false;
    for (size_t i = 0; i < diag_count(c.ctx); i++) {
        const Diag *d = diag_get(c.ctx, i);
        for (size_t k = 0; !strcmp(d->code, "E0101") && k < d->notes.n; k++)
            told |= strstr(d->notes.v[k], known) != NULL;
    }
    EXPECT(t, node, n > 0 && told);
    ctx_free(c.ctx);
}

/* What the table has, the checker takes: no E0101 for it, whatever else is wrong with the value. */
static void known_is_taken(Test *t, const AttributeRow *a)
{
    char text[4000], item[100];
    snprintf(item, sizeof item, "%s = \"1\"", a->name);
    write_file(text, sizeof text, a->node, item);
    Checked c = check_text("a.vwn", text, NULL);
    bool refused = false;
    for (size_t i = 0; i < diag_count(c.ctx); i++)
        refused |= !strcmp(diag_get(c.ctx, i)->code, "E0101") && strcmp(a->name, "at") != 0;
    EXPECT(t, a->name, !refused);
    ctx_free(c.ctx);
}

/* Whether a file with this value of an attribute gets an error that names the attribute. */
static bool refuses(const AttributeRow *a, const char *value)
{
    char text[4000], item[200], name[100];
    snprintf(item, sizeof item, "%s = %s", a->name, value);
    snprintf(name, sizeof name, "`%s`", a->name);
    write_file(text, sizeof text, a->node, item);
    Checked c = check_text("a.vwn", text, NULL);
    bool refused = false;
    for (size_t i = 0; i < diag_count(c.ctx); i++) {
        const Diag *d = diag_get(c.ctx, i);
        bool twice = !strcmp(d->code, "E0108"); /* the file had one already; the later one counts */
        bool initial = a->type == TAKES_FILL && !strcmp(d->code, "E0206"); /* says what an initialiser is */
        refused |= d->code[0] == 'E' && !twice && (initial || strstr(d->message, name));
    }
    ctx_free(c.ctx);
    return refused;
}

static void expect_value(Test *t, const AttributeRow *a, const char *value, bool good)
{
    char name[200];
    snprintf(name, sizeof name, "%s.%s = %s is %s", a->node, a->name, value, good ? "taken" : "refused");
    EXPECT(t, name, refuses(a, value) == !good);
}

static void expect_number(Test *t, const AttributeRow *a, double x, bool good)
{
    char value[60];
    snprintf(value, sizeof value, "%.16g", x);
    expect_value(t, a, value, good);
}

/* Both ends, and what is just outside; a number that float32 does not have is another one in training. */
static void numbers_are_kept(Test *t, const AttributeRow *a)
{
    bool whole = a->type == TAKES_WHOLE;
    expect_number(t, a, a->least, true);
    expect_number(t, a, a->least - (whole ? 1 : 0.25), false);
    expect_number(t, a, a->least + 0.5, !whole);
    if (isfinite(a->most)) {
        expect_number(t, a, a->below ? 0.875 : a->most, true);
        expect_number(t, a, a->below ? a->most : a->most + 1, false);
    }
    if (a->type == TAKES_NUMBER)
        expect_value(t, a, a->below ? "0.99999999999" : "1e39", false);
    if (a->type == TAKES_NUMBER)
        expect_value(t, a, "1e-46", false);
}

/* As many numbers as the row says, each in its range. */
static void lists_are_kept(Test *t, const AttributeRow *a)
{
    static const char *const right[] = {"[]", "[0]", "[0, 0.5]", "[0, 0.5, 0.875]", "[0, 0.5, 0.875, 0.25]"};
    char list[80];
    for (int n = a->count - 1; n <= a->count + 1; n++)
        expect_value(t, a, right[n], n == a->count);
    snprintf(list, sizeof list, "[%s-0.25]", a->count == 2 ? "0, " : "0, 0, ");
    expect_value(t, a, list, !isfinite(a->least));
    snprintf(list, sizeof list, "[%s1]", a->count == 2 ? "0, " : "0, 0, ");
    expect_value(t, a, list, !a->below);
    snprintf(list, sizeof list, "[%s1e-46]", a->count == 2 ? "0, " : "0, 0, ");
    expect_value(t, a, list, false);
    snprintf(list, sizeof list, "[%strue]", a->count == 2 ? "0, " : "0, 0, ");
    expect_value(t, a, list, false);
}

/* What the row of an attribute says of its values is what is taken: both ends of a range, what is just outside, other types. */
static void range_is_kept(Test *t, const AttributeRow *a)
{
    static const char *const other[] = {
        [TAKES_BOOL] = "1",      [TAKES_WORD] = "zzz",      [TAKES_NUMBER] = "true", [TAKES_WHOLE] = "true",
        [TAKES_NUMBERS] = "0.5", [TAKES_OF_RUN] = "true",   [TAKES_STEPS] = "7",     [TAKES_SEQS] = "7",
        [TAKES_LENGTH] = "7",    [TAKES_PART_OF_RUN] = "7", [TAKES_NAMES] = "7",     [TAKES_ONE_OF] = "7",
        [TAKES_FILL] = "true"};
    /* of types with a unit: what is taken, then what is not */
    static const char *const taken[][5] = {[TAKES_BOOL] = {"true", "false"},
                                           [TAKES_OF_RUN] = {"if step < 3 then 1 else 0"},
                                           [TAKES_STEPS] = {"7 steps"},
                                           [TAKES_SEQS] = {"2 seqs", "16 tokens"},
                                           [TAKES_LENGTH] = {"7 steps", "16 tokens", "2 seqs", "2 epochs"},
                                           [TAKES_PART_OF_RUN] = {"3 steps", "32 tokens", "2 seqs", "10%"},
                                           [TAKES_NAMES] = {"[]", "[ffn]"},
                                           [TAKES_FILL] = {"zeros", "normal(std = 0.02)"}},
                             *const refused[][5] = {[TAKES_STEPS] = {"0 steps", "10%", "2 epochs"},
                                                    [TAKES_SEQS] = {"1.5 seqs", "0 seqs", "2 steps"},
                                                    [TAKES_LENGTH] = {"0 steps", "10%", "1e16 steps"},
                                                    [TAKES_PART_OF_RUN] = {"-1 steps", "200%", "true"},
                                                    [TAKES_NAMES] = {"[zzz]", "[7]"},
                                                    [TAKES_ONE_OF] = {"true", "linear(out = 4)"},
                                                    [TAKES_FILL] = {"2 steps"}};
    size_t n;
    if (a->type == TAKES_OWN)
        return;
    expect_value(t, a, other[a->type], false);
    for (size_t i = 0; (size_t)a->type < COUNT_OF(taken) && i < 5 && taken[a->type][i]; i++)
        expect_value(t, a, taken[a->type][i], true);
    for (size_t i = 0; (size_t)a->type < COUNT_OF(refused) && i < 5 && refused[a->type][i]; i++)
        expect_value(t, a, refused[a->type][i], false);
    bool words = a->type == TAKES_WORD || a->type == TAKES_ONE_OF || a->type == TAKES_FILL;
    for (const char *at = NULL, *p; words && (p = attribute_next_value(a, &at, &n));) {
        char word[60];
        snprintf(word, sizeof word, "%.*s", (int)n, p);
        if (!strchr(word, ' ') && !strstr(word, "..."))
            expect_value(t, a, word, true);
    }
    if (a->type == TAKES_NUMBERS)
        lists_are_kept(t, a);
    if (a->type == TAKES_NUMBER || a->type == TAKES_WHOLE || a->type == TAKES_OF_RUN)
        numbers_are_kept(t, a);
}

static bool documented(Ctx *ctx, const char *name, const char *sentence)
{
    Buf b = buf_new(ctx->program);
    Name near;
    return doc_write(ctx, name, &b, &near) && strstr(b.s, sentence);
}

static void everything_is_documented(Test *t, CaseDraw *draw)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        abort();
    for (size_t i = 0; i < attribute_count(); i++) {
        const AttributeRow *a = attribute_at(i);
        if (!case_drawn(draw, i))
            continue;
        EXPECT(t, a->name, documented(ctx, a->name, a->text) && documented(ctx, a->node, a->text));
        EXPECT(t, a->name, node_doc_find(a->node) != NULL);
    }
    for (size_t i = 0; i < node_doc_count(); i++)
        EXPECT(t, node_doc_at(i)->name, documented(ctx, node_doc_at(i)->name, node_doc_at(i)->text));
    for (size_t i = 0; i < prim_count(); i++)
        if (prim_find(prim_at(i)->name) && case_drawn(draw, i))
            EXPECT(t, prim_at(i)->name, documented(ctx, prim_at(i)->name, prim_at(i)->doc));
    static const char *const more[] = {"linear", "cosine",    "power",  "wsd", "constant",
                                       "step",   "grad_norm", "params", "ema"};
    for (size_t i = 0; i < COUNT_OF(more); i++)
        EXPECT(t, more[i], documented(ctx, more[i], more[i]));
    EXPECT(t, "a schedule", documented(ctx, "linear", "straight line") && documented(ctx, "linear", "block linear"));
    Buf b = buf_new(ctx->program);
    Name near;
    EXPECT(t, "near", !doc_write(ctx, "optimiser", &b, &near) && near && !strcmp(near, "optimizer"));
    EXPECT(t, "near", !doc_write(ctx, "tokeniser", &b, &near) && near && !strcmp(near, "tokenizer"));
    ctx_leave(ctx, &guard);
    ctx_free(ctx);
}

/* ---- parameters of the library's blocks ---- */

/* In a node an attribute that is a parameter and a scope attribute sets both, so a parameter may have such a name only where it is that
 * attribute (`init : init = scope.init`), or where what is applied inside should have it, too. */
static const struct {
    const char *block, *parameter, *why;
} both[] = {
    {"embed_ngrams", "width",
     "of a row of its tables, of which it makes the embedding; nothing inside reads scope.width"},
    {"head_noise", "init", "of all that it applies: zeros, as in the paper"},
};

static void means_the_scope(Test *t, const Ast *block)
{
    for (uint32_t i = 0; i < block->kid[0]->n; i++) {
        const Ast *par = block->kid[0]->kid[i], *value = par->kid[1];
        bool scope = value && value->kind == AST_FIELD && value->name == par->name && value->kid[0]->kind == AST_ID &&
                     !strcmp(value->kid[0]->name, "scope"),
             listed = false;
        for (size_t k = 0; k < COUNT_OF(both); k++)
            listed |= !strcmp(both[k].block, block->name) && !strcmp(both[k].parameter, par->name);
        if (attribute_find("model", par->name) && scope == listed)
            printf("the parameter `%s` of the library's block `%s` has the name of a scope attribute%s\n", par->name,
                   block->name, listed ? ", and is it: leave it out of the list" : " and another meaning");
        EXPECT(t, block->name, !attribute_find("model", par->name) || scope != listed);
    }
}

static void blocks_of(Test *t, const Ast *e)
{
    if (e->kind == AST_BLOCK)
        means_the_scope(t, e);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i])
            blocks_of(t, e->kid[i]);
}

/* The files of the library, as a user's: no parameter has two meanings, none is without a use. */
static void library_is_clean(Test *t)
{
    for (size_t i = 0; i < std_count(); i++) {
        size_t n;
        char path[80];
        const char *text = std_text(std_path(i), &n);
        snprintf(path, sizeof path, "library/%s", std_path(i));
        Checked c = check_text(path, text, NULL);
        if (expect_fine(t, path, &c))
            blocks_of(t, c.unit->ast);
        EXPECT(t, path, count_lint(&c, "unused_parameter") == 0);
        ctx_free(c.ctx);
    }
}

int main(void)
{
    Test t = {0};
    static const char *const nodes[] = {"model",      "train", "adamw", "sgd", "lion", "muon", "group", "eval",
                                        "checkpoint", "log",   "grow",  "old", "new",  "fill", "param", "check"};
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        unknown_is_told(&t, nodes[i]);
    CaseDraw draw = {.one_in = 1, .sanitized = 8};
    for (size_t i = 0; i < attribute_count(); i++)
        for (size_t k = 0; k < COUNT_OF(nodes); k++)
            if (!strcmp(attribute_at(i)->node, nodes[k]) && case_drawn(&draw, i)) {
                known_is_taken(&t, attribute_at(i));
                range_is_kept(&t, attribute_at(i));
            }
    everything_is_documented(&t, &draw);
    library_is_clean(&t);
    cases_end(&draw);
    return test_end(&t);
}
