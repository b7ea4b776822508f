/* answers.c - what the language server knows of a position: hover, completion, definitions, uses, new names.
 *
 * In:  texts with a mark, `|`, at the position.   Out: what each answer has to hold. A new name changes the text so that the checker
 *      says of it what it said before, and that each other name means what it meant; one that would not is refused.
 */
#include "client.h"

static const char uri[] = "file:///nowhere/model.vwn";

/* Opens the text without its mark; the position of the mark. */
static void open_marked(Client *c, const char *marked, int *line, int *character)
{
    char text[8000];
    size_t n = 0;
    *line = *character = 0;
    for (const char *s = marked; *s; s++) {
        if (*s == '|') {
            *line = *character = 0;
            for (size_t i = 0; i < n; i++)
                text[i] == '\n' ? (++*line, *character = 0) : ++*character;
        } else {
            text[n++] = *s;
        }
    }
    client_text(c, uri, text, n);
}

#define HEAD "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
#define MODEL                                                                                                          \
    "model small {\n  context = 16\n  width = D\n  mask = causal\n  init = normal(std = 0.02)\n  out_init = "          \
    "normal(std = 0.02)\n"                                                                                             \
    "  pre_norm = rms_norm(eps = 1e-6)\n  connection = residual()\n  embed tokens { vocab = 256 }\n"                   \
    "  for layer in 1..2 {\n    twice { by = 2 }\n    ffn { hidden = 4 * D, activation = gelu }\n  }\n  head lm { "    \
    "norm = rms_norm(eps = 1e-6) }\n}\n"
#define BLOCK                                                                                                          \
    "## x, so many times.\nblock twice(by: int = 1)(x: [.., C]) -> [.., C] {\n  let up = linear(out = C * by)\n  y = " \
    "up(x)\n  let down = linear(out = C)\n"                                                                            \
    "  y = down(y)\n  check C > 0 \"{C} is too few, {by}\"\n  return y\n}\n"

static void hovers(Harness *h)
{
    static const struct {
        const char *text, *has[3];
    } cases[] = {
        {HEAD "let D = 4 * 8\n" BLOCK "model small {\n  width = |D\n}\n", {"let D = 4 * 8"}},
        {"let |D = 4 * 8\n", {"D = 32", "let D = 4 * 8"}},
        {"let D = 4 * 8\nlet E = |D / 2\n", {"D = 32"}},
        {HEAD "let D = 8\n" BLOCK "let other = t|wice(by = 2)\n",
         {"block twice(by: int = 1)(x: [.., C]) -> [.., C]", "x, so many times."}},
        {HEAD "let D = 8\n" BLOCK "let other = twice(b|y = 2)\n", {"by: int = 1"}},
        {HEAD "let D = 8\n" BLOCK MODEL "let z = |linear(out = 3)\n", {"block linear(", "std/transformer"}},
        {HEAD "let D = 8\nlet z = linear(ou|t = 3)\n", {"out: dim"}},
        {HEAD "let D = 8\nlet z = so|ftmax\n", {"softmax(x: tensor", "for example"}},
        {"let a = size([1|, 2])\n", {NULL}},
        {"let a = # no|ne\n 1\n", {NULL}},
        {HEAD "tra|in {\n}\n", {"`train`: "}},
        {HEAD "train {\n  ba|tch = 8 seqs\n}\n", {"`batch` of `train`", "required"}},
        {HEAD "model m {\n  con|text = 16\n}\n", {"`context` of `model`"}},
        {HEAD "model m {\n  for l in 1..2 {\n    ffn { pre|_norm = none }\n  }\n}\n", {"`pre_norm` of `model`"}},
        {HEAD "model m {\n  for l in 1..2 {\n    ffn { hid|den = 8 }\n  }\n}\n", {"hidden: "}},
        {HEAD "model m {\n  embed tok|ens { vocab = 8 }\n}\n", {"block embed_tokens("}},
        {HEAD "let lr = if st|ep > 3 then 1 else 2\n", {"known while training"}},
    };
    Client c;
    int64_t error;
    client_open(&c, h, "{}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int line, character;
        open_marked(&c, cases[i].text, &line, &character);
        const Json *r = client_at(&c, "textDocument/hover", uri, line, character, "", &error);
        const char *text = r ? json_string(json_get(r, "contents"), "value") : NULL;
        CHECK_CASE(h, !error && (text != NULL) == (cases[i].has[0] != NULL), cases[i].text);
        for (size_t k = 0; text && k < 3 && cases[i].has[k]; k++)
            if (!CHECK_CASE(h, strstr(text, cases[i].has[k]), cases[i].has[k]))
                fprintf(stderr, "--- instead\n%s\n", text);
    }
    /* shapes and values of a model that is whole */
    static const char whole[] = HEAD "let D = 8\n" BLOCK MODEL;
    static const struct {
        int line, character;
        const char *has;
    } places[] = {{5, 25, "x: [B, T, 8]"},
                  {6, 7, "up = linear(out = C * by)"},
                  {7, 2, "y: [B, T, 16]"},
                  {7, 9, "x: [B, T, 8]"},
                  {9, 2, "y: [B, T, 8]"},
                  {9, 11, "y: [B, T, 16]"},
                  {11, 9, "y: [B, T, 8]"},
                  {21, 8, "embed tokens: [B, T, 8]"},
                  {22, 7, "layer = 1  # the first time; others differ"},
                  {23, 5, "twice: [B, T, 8]"},
                  {24, 23, "D = 8"}};
    client_text(&c, uri, whole, strlen(whole));
    CHECK(h, client_diagnostics(&c, uri) && client_diagnostics(&c, uri)->n == 0);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        const Json *r = client_at(&c, "textDocument/hover", uri, places[i].line, places[i].character, "", &error);
        const char *text = r ? json_string(json_get(r, "contents"), "value") : NULL;
        if (!CHECK_CASE(h, text && strstr(text, places[i].has), places[i].has))
            fprintf(stderr, "--- instead\n%s\n", text ? text : "nothing");
    }
    client_close(&c);
}

static bool offers(const Json *r, const char *name, const char **doc)
{
    const Json *list = json_get(r, "items");
    for (const Json *j = list ? list->first : NULL; j; j = j->next)
        if (!strcmp(json_string(j, "label"), name)) {
            *doc = json_string(j, "documentation");
            return true;
        }
    return false;
}

static void completions(Harness *h)
{
    static const struct {
        const char *text, *has[5], *lacks[3];
        bool documented; /* the first one */
    } cases[] = {
        {"|", {"model", "let", "train", "import"}, {"softmax", "context"}, false},
        {HEAD "mo|", {"model"}, {"train"}, true},
        {HEAD "import \"std/|", {"std/transformer", "std/connections"}, {"let"}, false},
        {HEAD "let width = 3\nlet b = wi|", {"width"}, {"context"}, false},
        {HEAD "let b = |", {"softmax", "linear", "true", "if"}, {"model", "batch"}, true},
        {HEAD "let b = linear(|", {"out", "bias", "init", "softmax"}, {"context"}, false},
        {HEAD "let b = linear(out = |", {"softmax"}, {"bias"}, false},
        {HEAD "let b = softmax(o|", {"over"}, {"out"}, true},
        {HEAD "let b = [1, linear(out = 3, |", {"bias"}, {"context"}, false},
        {HEAD "model m {\n  con|", {"context", "connection"}, {"constant"}, true},
        {HEAD "model m {\n  embed tokens { |", {"vocab"}, {"batch"}, false},
        {HEAD "model m {\n  for layer in 1..3 {\n    at|", {"attention"}, {"train"}, true},
        {HEAD "model m {\n  for layer in 1..3 {\n    attention { heads = 3, |",
         {"position", "pre_norm"},
         {"batch"},
         false},
        {HEAD "let mine = ffn(hidden = 3)\nmodel m {\n  mine { act|", {"activation"}, {"batch"}, false},
        {HEAD "train {\n  |", {"batch", "optimizer", "data"}, {"context"}, true},
        {HEAD "train {\n  optimizer adamw { lr = 1\n    we|", {"weight_decay"}, {"batch"}, true},
        {HEAD "train {\n  data = te|", {"text_file"}, {"batch"}, true},
        {BLOCK "let z = 1 # |", {NULL}, {"twice", "let"}, false},
        {HEAD BLOCK "block f(n: int)(x: [.., I]) -> [.., I] {\n  let inner = 3\n  y = |",
         {"n", "x", "I", "inner", "twice"},
         {"by"},
         false},
        {HEAD BLOCK "block f(n: int)(x: [.., I]) -> [.., I] {\n  re|", {"return"}, {"let"}, false},
        {HEAD "block f(init: init = scope.|", {"init", "width"}, {"softmax"}, true},
        {HEAD "import \"std/vision\" as v\nlet z = v.|", {"patchify", "params"}, {"softmax"}, false},
        {HEAD "let lr = train.|", {"loss"}, {"softmax"}, false},
        {"let s = \"|\n", {NULL}, {"softmax"}, false},
    };
    Client c;
    int64_t error;
    client_open(&c, h, "{}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int line, character;
        const char *doc = NULL;
        open_marked(&c, cases[i].text, &line, &character);
        const Json *r = client_at(&c, "textDocument/completion", uri, line, character, "", &error);
        CHECK_CASE(h, r && !error, cases[i].text);
        for (size_t k = 0; k < 5 && cases[i].has[k]; k++) {
            if (!CHECK_CASE(h, offers(r, cases[i].has[k], &doc), cases[i].has[k]))
                fprintf(stderr, "--- of\n%s\n", cases[i].text);
            if (k == 0 && cases[i].documented)
                CHECK_CASE(h, doc && *doc, cases[i].text);
        }
        for (size_t k = 0; k < 3 && cases[i].lacks[k]; k++)
            if (!CHECK_CASE(h, !offers(r, cases[i].lacks[k], &doc), cases[i].lacks[k]))
                fprintf(stderr, "--- too many of\n%s\n", cases[i].text);
    }
    client_close(&c);
}

/* The definition is where the second mark, `@`, stands; none: the text has no such mark. */
static void definitions(Harness *h)
{
    static const char *const cases[] = {
        "let @a = 1\nlet b = |a\n",
        "let b = a|\nlet @a = 1\n",
        "let @a = 1\nblock f(n: int) {\n  return |a + n\n}\n",
        "let a = 1\nblock f(@a: int) {\n  return |a\n}\n",
        "let a = 1\nblock f(n: int) {\n  let @a = a\n  return |a\n}\n",
        "let @a = 1\nblock f(n: int) {\n  let a = |a\n  return a\n}\n",
        "block @f(n: int) {\n  return n\n}\nlet b = |f(n = 1)\n",
        "block f(@n: int) {\n  return n\n}\nlet b = f(|n = 1)\n",
        "let b = [x + |y for x in 1..3, @y in 1..3]\n",
        HEAD "block @twice(by: int)(x: [.., C]) -> [.., C] { return x }\nmodel m {\n  |twice { by = 2 }\n}\n",
        HEAD "block twice(@by: int)(x: [.., C]) -> [.., C] { return x }\nmodel m {\n  twice { |by = 2 }\n}\n",
        HEAD "block @head_mine(by: int)(x: [.., C]) -> [.., C] { return x }\nmodel m {\n  head |mine { by = 2 }\n}\n",
        "block f(n: int)(x: [.., @C]) -> [.., C] {\n  check C > 0 \"{|C}\"\n  return x\n}\n",
        HEAD "let z = |linear(out = 3)\n",
        "let z = |nothing\n",
    };
    Client c;
    int64_t error;
    client_open(&c, h, "{}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char text[2000];
        int line, character, at_line = 0, at = 0;
        const char *mark = strchr(cases[i], '@');
        size_t n = 0;
        for (const char *s = cases[i]; *s; s++)
            if (*s != '@')
                text[n++] = *s;
        text[n] = 0;
        for (const char *s = cases[i]; mark && s < mark; s++)
            if (*s != '|')
                *s == '\n' ? (at_line++, at = 0) : at++;
        open_marked(&c, text, &line, &character);
        const Json *r = client_at(&c, "textDocument/definition", uri, line, character, "", &error);
        CHECK_CASE(h, !error && r && (r->kind == JSON_OBJECT) == (mark != NULL), cases[i]);
        CHECK_CASE(
            h, !mark || (json_whole(r, "range.start.line") == at_line && json_whole(r, "range.start.character") == at),
            cases[i]);
    }
    /* in another file, which only the editor has */
    static const char a[] = "file:///nowhere/a.vwn";
    const char *text = "import \"model.vwn\" as m\nimport \"model.vwn\" as n (Q = 4)\nlet b = m.Q + n.Q\n",
               *other = "\nlet Q = 3\n";
    client_text(&c, uri, other, strlen(other));
    client_text(&c, a, text, strlen(text));
    const Json *r = client_at(&c, "textDocument/definition", a, 2, 10, "", &error);
    CHECK(h, r && !strcmp(json_string(r, "uri"), uri) && json_whole(r, "range.start.line") == 1 &&
                 json_whole(r, "range.start.character") == 4);
    r = client_at(&c, "textDocument/definition", a, 0, 12, "", &error);
    CHECK(h, r && !strcmp(json_string(r, "uri"), uri) && json_whole(r, "range.start.line") == 0);
    static const char v[] = "file:///nowhere/v.vwn";
    const char *variant = "variant \"model.vwn\" { Q = 5 }\ncheck Q == 5\n";
    client_text(&c, v, variant, strlen(variant));
    CHECK(h, client_diagnostics(&c, v) && client_diagnostics(&c, v)->n == 0);
    for (int i = 0; i < 3; i++) { /* the base, its let in the braces and behind them */
        r = client_at(&c, "textDocument/definition", v, i == 2, i == 0 ? 12 : i == 1 ? 22 : 6, "", &error);
        CHECK(h, r && r->kind == JSON_OBJECT && !strcmp(json_string(r, "uri"), uri) &&
                     json_whole(r, "range.start.line") == (i > 0));
    }
    static const char base[] = "file:///nowhere/base.vwn", less[] = "file:///nowhere/less.vwn";
    const char *steps = "let D = 3\ngrow a { when = start, let D = 4 }\ngrow b { when = start, let D = 5 }\n",
               *without = "variant \"base.vwn\" {\n  grow.b = none\n  gro\n}\n";
    client_text(&c, base, steps, strlen(steps));
    client_text(&c, less, without, strlen(without));
    r = client_at(&c, "textDocument/definition", less, 1, 7, "", &error); /* the node that is taken away */
    CHECK(h, r && r->kind == JSON_OBJECT && !strcmp(json_string(r, "uri"), base) &&
                 json_whole(r, "range.start.line") == 2 && json_whole(r, "range.start.character") == 5);
    r = client_at(&c, "textDocument/completion", less, 2, 5, "", &error);
    const char *doc;
    CHECK(h, r && offers(r, "grow", &doc));
    Change nope = {1, 8, 1, 9, "nope", 4};
    client_change(&c, uri, 2, &nope, 1);
    CHECK(h, client_diagnostics(&c, v) && client_diagnostics(&c, v)->n == 1 &&
                 json_whole(client_diagnostics(&c, v), "0.range.start.line") == 0);
    r = client_at(&c, "textDocument/references", a, 2, 8, ",\"context\":{\"includeDeclaration\":true}", &error);
    CHECK(h, r && r->n == 2);
    r = client_at(&c, "textDocument/references", a, 2, 8, ",\"context\":{\"includeDeclaration\":false}", &error);
    CHECK(h, r && r->n == 1 && json_whole(r, "0.range.start.line") == 2);
    client_close(&c);
}

/* `after` NULL: it is refused. */
static void renames(Harness *h)
{
    static const struct {
        const char *text, *name, *after;
    } cases[] = {
        {"let |a = 1\nlet b = a + a\ncheck a == 1\n", "c", "let c = 1\nlet b = c + c\ncheck c == 1\n"},
        {"let a = 1\nlet b = a + |a\n", "a_long_name", "let a_long_name = 1\nlet b = a_long_name + a_long_name\n"},
        {"let |a = 1\nlet b = a\n", "b", NULL},                            /* defined twice */
        {"let |a = 1\nblock f(n: int) {\n  return a + n\n}\n", "n", NULL}, /* the argument would be meant */
        {"let a = 1\nblock f(n: int) {\n  let |b = n\n  return b + a\n}\n", "a", NULL},
        {"let |a = 1\nlet b = size([1]) + a\n", "size", NULL}, /* the primitive would be hidden */
        {"let |a = 1\n", "let", NULL},
        {"let |a = 1\n", "", NULL},
        {"let |a = 1\n", "a b", NULL},
        {"let |a = 1\n", "4x", NULL},
        {"let |a = 1\n", "a = 2 #", NULL},
        {"let |a = 1\nlet b = (\n", "c", NULL}, /* not a whole file */
        {"let a = [|x for x in 1..3]\n", "y", "let a = [y for y in 1..3]\n"},
        {"let x = 3\nlet a = [|y + x for y in 1..3]\n", "x", NULL},
        {"block |f(n: int) {\n  return n\n}\nlet b = f(n = 1)\n", "g",
         "block g(n: int) {\n  return n\n}\nlet b = g(n = 1)\n"},
        {"block f(|n: int) {\n  return n\n}\nlet b = f(n = 1)\n", "m", NULL},
        {"block f(n: int) {\n  let |k = n\n  check k > 0 \"{k} of {n}\"\n  return k\n}\n", "j",
         "block f(n: int) {\n  let j = n\n  check j > 0 \"{j} of {n}\"\n  return j\n}\n"},
        {"let |D = 3\ngrow wide {\n  let D = 4\n}\nlet z = D\n", "E",
         "let E = 3\ngrow wide {\n  let E = 4\n}\nlet z = E\n"},
        {"let |D = 3\nsweep s {\n  vary { D = [1, 2] }\n}\n", "E", "let E = 3\nsweep s {\n  vary { E = [1, 2] }\n}\n"},
        {"import \"m.vwn\" as |m\nlet z = m.D\n", "other", "import \"m.vwn\" as other\nlet z = other.D\n"},
        {HEAD "let |D = 8\n" BLOCK MODEL, "linear", NULL}, /* two imports would have it */
        {HEAD "let |D = 8\n" BLOCK MODEL, "width",
         HEAD "let width = 8\n" BLOCK "model small {\n  context = 16\n  width = width\n  mask = causal\n  init = "
              "normal(std = 0.02)\n  out_init = normal(std = 0.02)\n"
              "  pre_norm = rms_norm(eps = 1e-6)\n  connection = residual()\n  embed tokens { vocab = 256 }\n"
              "  for layer in 1..2 {\n    twice { by = 2 }\n    ffn { hidden = 4 * width, activation = gelu }\n  }\n  "
              "head lm { norm = rms_norm(eps = 1e-6) }\n}\n"},
        {HEAD "block |head_mine(by: int)(x: [.., C]) -> [.., C] { return x }\nmodel m {\n  head mine { by = 2 }\n}\n",
         "head_other",
         HEAD "block head_other(by: int)(x: [.., C]) -> [.., C] { return x }\nmodel m {\n  head other { by = 2 }\n}\n"},
        {HEAD "block |head_mine(by: int)(x: [.., C]) -> [.., C] { return x }\nmodel m {\n  head mine { by = 2 }\n}\n",
         "other", NULL},
        {HEAD "let z = |linear(out = 3)\n", "other", NULL},
    };
    Client c;
    int64_t error;
    client_open(&c, h, "{}");
    client_text(&c, "file:///nowhere/m.vwn", "let D = 3\n", 10);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int line, character;
        char more[200];
        open_marked(&c, cases[i].text, &line, &character);
        size_t had = client_diagnostics(&c, uri)->n;
        const Json *able = client_at(&c, "textDocument/prepareRename", uri, line, character, "", &error);
        CHECK_CASE(h, !error && (able->kind == JSON_OBJECT || !cases[i].after), cases[i].text);
        snprintf(more, sizeof more, ",\"newName\":\"%s\"", cases[i].name);
        const Json *r = client_at(&c, "textDocument/rename", uri, line, character, more, &error);
        CHECK_CASE(h, cases[i].after ? r && !error : error == -32803 || error == -32602, cases[i].text);
        const Json *edits = r ? json_get(json_get(r, "changes"), uri) : NULL;
        Change change[20];
        size_t n = 0;
        for (const Json *e = edits ? edits->first : NULL; e && n < 20; e = e->next) {
            change[n++] = (Change){json_whole(e, "range.start.line"), json_whole(e, "range.start.character"),
                                   json_whole(e, "range.end.line"),   json_whole(e, "range.end.character"),
                                   json_string(e, "newText"),         strlen(json_string(e, "newText"))};
        }
        Change backwards[20]; /* so that no edit moves another */
        for (size_t k = 0; k < n; k++)
            backwards[k] = change[n - 1 - k];
        if (!cases[i].after)
            continue;
        Ctx *kept = c.ctx; /* the edits' texts live in what came last */
        c.ctx = NULL;
        client_change(&c, uri, 2, backwards, n);
        if (!CHECK_CASE(h,
                        !strcmp(c.server->document->text, cases[i].after) ||
                            !strcmp(document_find(c.server, uri)->text, cases[i].after),
                        cases[i].after))
            fprintf(stderr, "--- instead\n%s\n", document_find(c.server, uri)->text);
        CHECK_CASE(h, client_diagnostics(&c, uri)->n == had, cases[i].after);
        ctx_free(kept);
    }
    client_close(&c);
}

int main(void)
{
    Harness h = {0};
    hovers(&h);
    completions(&h);
    definitions(&h);
    renames(&h);
    return harness_end(&h);
}
