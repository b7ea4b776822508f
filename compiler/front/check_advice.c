/* check_advice.c - what somebody wrote who thinks in another language or library, and how it is written here.
 *
 * In:  a diagnostic that was filed, and the text it is about.   Out: notes and helps whose text works when pasted.
 * The one idea: nothing here decides what is right; every function only adds words to a message.
 */
#include "attribute.h"
#include "check.h"
#include "grammar/foreign.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

/* ---- names ---- */

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

/* Where the text of a value begins in that of a file, and its end; empty when none follows: `= 4 * D` of `n_head = 4 * D, ...`. */
static Span value_behind(Eval *ev, Span name)
{
    size_t n;
    const char *text = source_text(ev->ctx, name.file, &n);
    uint32_t lo = name.hi;
    if (!text)
        return NO_SPAN;
    while (lo < n && text[lo] == ' ')
        lo++;
    if (lo >= n || text[lo] != '=')
        return NO_SPAN;
    lo++;
    while (lo < n && text[lo] == ' ')
        lo++;
    uint32_t hi = lo;
    for (int depth = 0; hi < n && !strchr("\n\r#\"", text[hi]); hi++) {
        depth += strchr("([{", text[hi]) != NULL;
        depth -= strchr(")]}", text[hi]) != NULL;
        if (depth < 0 || (!depth && strchr(",;", text[hi])))
            break;
    }
    while (hi > lo && text[hi - 1] == ' ')
        hi--;
    return (Span){name.file, lo, hi};
}

static bool is_letter(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

/* Whether the brackets around a name hold `word = ...` as well. */
bool given_beside(Eval *ev, Span name, const char *word)
{
    size_t n, m = strlen(word);
    const char *text = source_text(ev->ctx, name.file, &n);
    uint32_t lo = name.lo;
    for (int depth = 0; text && lo > 0 && depth >= 0; lo--) {
        depth += strchr(")]}", text[lo - 1]) != NULL;
        depth -= strchr("([{", text[lo - 1]) != NULL;
    }
    for (int depth = lo ? -1 : 0; text && lo < n; lo++) {
        depth += strchr("([{", text[lo]) != NULL;
        depth -= strchr(")]}", text[lo]) != NULL;
        if (depth < 0 && lo > name.hi)
            return false;
        if (depth > 0 || n - lo <= m || memcmp(text + lo, word, m) != 0 || (lo && is_letter(text[lo - 1])) ||
            is_letter(text[lo + m]))
            continue;
        uint32_t at = lo + (uint32_t)m;
        while (at < n && text[at] == ' ')
            at++;
        if (at < n && text[at] == '=' && text[at + 1] != '=')
            return true;
    }
    return false;
}

static bool among(const char *word, size_t length, const Name *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i]) == length && !memcmp(names[i], word, length))
            return true;
    return false;
}

/* `steps = 500` as `length = 500 steps`. */
static void propose_attribute(Eval *ev, Diag *d, const Foreign *f, Span at)
{
    Span value = value_behind(ev, at), whole = {at.file, at.lo, value.hi};
    const char *mark = strstr(f->ours, "%s"), *unit = mark + 2;
    if (value.hi <= value.lo) {
        diag_help(ev->ctx, d, "it is written `%.*s...%s` here", (int)(mark - f->ours), f->ours, unit);
        return;
    }
    size_t n;
    const char *text = source_text(ev->ctx, value.file, &n) + value.lo;
    int length = (int)(value.hi - value.lo);
    bool number = strspn(text, "0123456789_.") == (size_t)length, alone = *unit != ' ';
    bool name = strcspn(text, " +-*/^@<>=([") >= (size_t)length;
    const char *form = number || alone ? "%.*s%.*s%s" : name ? "%.*s%.*s * 1%s" : "%.*s(%.*s) * 1%s";
    const char *with = arena_printf(ev->arena, form, (int)(mark - f->ours), f->ours, length, text, unit);
    Name ours = name_printf(ev->ctx, "%.*s", (int)strcspn(f->ours, " "), f->ours);
    bool sure = f->same && (number || alone) && !given_beside(ev, at, ours);
    diag_fix(ev->ctx, d, whole, with, sure ? FIX_CERTAIN : FIX_MAYBE, "write `%s`", with);
}

/* `axis = -1`: ours count from 1, theirs from 0, and from the back both are the same. */
static bool from_the_back(Eval *ev, const Foreign *f, Span at)
{
    size_t n;
    Span value = value_behind(ev, at);
    bool axis = !strcmp(f->ours, "over") || !strcmp(f->ours, "axis");
    return axis && value.hi > value.lo && source_text(ev->ctx, value.file, &n)[value.lo] == '-';
}

bool advise_attribute(Eval *ev, Diag *d, Name given, const Name *names, size_t n, Span at)
{
    for (const Foreign *f = NULL; (f = foreign_next(FOREIGN_ATTRIBUTE, given, f));) {
        if (!f->ours || !among(f->ours, strcspn(f->ours, " "), names, n))
            continue;
        if (strchr(f->ours, '%'))
            propose_attribute(ev, d, f, at);
        else
            diag_fix(ev->ctx, d, at, f->ours,
                     (f->same || from_the_back(ev, f, at)) && !given_beside(ev, at, f->ours) ? FIX_CERTAIN : FIX_MAYBE,
                     "it is called `%s` here", f->ours);
        if (f->text)
            diag_help(ev->ctx, d, "%s", f->text);
        return true;
    }
    return false;
}

bool tell_attribute(Eval *ev, Diag *d, Name given)
{
    for (const Foreign *f = NULL; (f = foreign_next(FOREIGN_ATTRIBUTE, given, f));)
        if (f->text) {
            diag_help(ev->ctx, d, "%s", f->text);
            return true;
        }
    return false;
}

const Ast *meant_value(Eval *ev, Name given, const char *ours, const Ast *value)
{
    if (attribute_is(given, ours))
        return value;
    if (strcmp(ours, "mask") != 0 || !attribute_means(given, ours))
        return NULL;
    Ast *word = NEW(ev->arena, Ast); /* is_causal = True */
    *word = (Ast){.kind = AST_ID, .name = name_str(ev->ctx, "causal"), .span = value->span};
    return word;
}

bool attribute_is(Name given, const char *ours)
{
    for (const Foreign *f = NULL; (f = foreign_next(FOREIGN_ATTRIBUTE, given, f));)
        if (f->ours && !strcmp(f->ours, ours))
            return true;
    return false;
}

bool attribute_means(Name given, const char *ours)
{
    size_t n = strlen(ours);
    char quoted[64]; /* "write `data = ...`" */
    snprintf(quoted, sizeof quoted, "`%s = ", ours);
    for (const Foreign *f = NULL; (f = foreign_next(FOREIGN_ATTRIBUTE, given, f));)
        if ((f->ours && !strncmp(f->ours, ours, n) && (!f->ours[n] || f->ours[n] == ' ')) ||
            (f->text && strstr(f->text, quoted)))
            return true;
    return false;
}

/* Whether the names differ in `_` and the size of letters alone: `RMSNorm`, `rms_norm`. */
static bool same_letters(const char *a, const char *b)
{
    for (;; a++, b++) {
        a += *a == '_';
        b += *b == '_';
        if ((*a | 32) != (*b | 32))
            return false;
        if (!*a)
            return true;
    }
}

/* The length of the first of some arguments. */
static size_t argument_length(const char *args)
{
    size_t n = 0;
    for (int depth = 0; args[n] && (depth || args[n] != ','); n++)
        depth += (strchr("([", args[n]) != NULL) - (strchr(")]", args[n]) != NULL);
    return n;
}

/* `RMSNorm(D, eps = 1e-6)` as `rms_norm(eps = 1e-6)`: a norm takes its width from the tensor. NULL: another form is needed. */
static const char *named_call(Eval *ev, const char *args, const char *ours)
{
    const char *rest = args;
    size_t n;
    while (*rest && (n = argument_length(rest), !memchr(rest, '=', n))) {
        rest += n + (rest[n] == ',');
        rest += strspn(rest, " ");
    }
    return *rest && (rest == args || strstr(ours, "_norm")) ? arena_printf(ev->arena, "%s(%s)", ours, rest) : NULL;
}

/* `cat([a, b], dim=1)` as `concat(a, b, axis = 2)`; NULL: another form is needed. */
static const char *joined_call(Eval *ev, const char *args, const char *ours)
{
    size_t n = argument_length(args);
    const char *axis = args + n + strspn(args + n, ", ");
    if (n < 3 || !strchr("([", *args) || !strchr(")]", args[n - 1]))
        return NULL;
    axis += strncmp(axis, "dim", 3) ? strncmp(axis, "axis", 4) ? 0 : 4 : 3;
    axis += strspn(axis, " =");
    char *end;
    long k = strtol(axis, &end, 10); /* theirs are counted from 0 */
    return end > axis && !*end
               ? arena_printf(ev->arena, "%s(%.*s, axis = %ld)", ours, (int)n - 2, args + 1, k + (k >= 0))
               : NULL;
}

/* What a row says about a name that stands at `at`; `with` is NULL where only the sentence is told. */
static void tell(Eval *ev, Diag *d, const Foreign *f, Span at, const char *with)
{
    const char *args = with && f->name ? call_arguments(ev, at) : NULL;
    const char *call = !args                         ? NULL
                       : !strcmp(with, "concat")     ? joined_call(ev, args, with)
                       : same_letters(f->name, with) ? named_call(ev, args, with)
                                                     : NULL;
    if (call) {
        at.hi += (uint32_t)strlen(args) + 2;
        diag_fix(ev->ctx, d, at, call, FIX_CERTAIN, "write `%s`", call);
        return;
    }
    if (with)
        diag_fix(ev->ctx, d, at, with, f->same ? FIX_CERTAIN : FIX_MAYBE, "write `%s`", with);
    if (f->text)
        diag_help(ev->ctx, d, "%s", f->text);
}

bool advise_name(Eval *ev, Diag *d, Name name, Span at)
{
    const Foreign *f = foreign_next(FOREIGN_VALUE, name, NULL);
    size_t n = strlen(name);
    if (!f && n > 1 && name[n - 1] == '_') /* kaiming_normal_() */
        f = foreign_next(FOREIGN_VALUE, name_of(ev->ctx, name, n - 1), NULL);
    if (f)
        tell(ev, d, f, at, f->ours);
    return f != NULL;
}

bool advise_node(Eval *ev, Diag *d, const Ast *node, Env *env, Span at)
{
    const Foreign *f = foreign_next(FOREIGN_NODE, node->kid[0]->name, NULL);
    size_t label = f && f->ours ? strcspn(f->ours, " ") : 0;
    if (!f)
        return false;
    if (f->ours && node->kid[1]) {
        if (label && f->ours[label])
            diag_help(ev->ctx, d, "write `%s { ... }`", f->ours);
        return label && f->ours[label];
    }
    Name block =
        label && f->ours[label] ? name_printf(ev->ctx, "%.*s_%s", (int)label, f->ours, f->ours + label + 1) : NULL;
    if (f->ours && !env_find(env, block ? block : name_str(ev->ctx, f->ours)))
        return false; /* its file is not imported: that is said */
    tell(ev, d, f, at, f->ours);
    return true;
}

/* `check width == 32` at the top of a file: what its model gives the attribute. */
bool advise_outside(Eval *ev, Diag *d, const File *f, Name name, Span at)
{
    const Ast *items = f && f->model_ast ? f->model_ast->kid[2] : NULL;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind != AST_SET || it->kid[0]->n || it->kid[0]->name != name)
            continue;
        const char *value = expr_text(ev, it->kid[1]);
        diag_note(ev->ctx, d, "attributes of the model have no names outside of it; it has `%s = %s`", name, value);
        if (it->kid[1]->kind == AST_ID)
            diag_fix(ev->ctx, d, at, value, FIX_CERTAIN, "write `%s`", value);
        else
            diag_help(ev->ctx, d, "a let has one: `let my_%s = %s`, then `%s = my_%s` in the model", name, value, name,
                      name);
        return true;
    }
    return false;
}

/* Two nodes of one path: what else the second one can be called. An `embed` or a `head` is a block of its own. */
void advise_label(Eval *ev, Diag *d, const Ast *it, Env *env)
{
    Ctx *ctx = ev->ctx;
    Name kind = it->kid[0]->name, *names;
    size_t n = env_names(ev, env, &names), length = strlen(kind);
    Buf all = buf_new(ev->arena);
    if (strcmp(kind, "embed") && strcmp(kind, "head")) {
        diag_help(ctx, d, "give one of them a label: `%s second { ... }`", kind);
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (!strncmp(names[i], kind, length) && names[i][length] == '_' &&
            strcmp(names[i] + length + 1, it->kid[1]->name))
            buf_printf(&all, "%s`%s %s`", all.n ? ", " : "", kind, names[i] + length + 1);
    diag_help(ctx, d, "the label says which block it is: one `%s %s` is all, and others are %s", kind, it->kid[1]->name,
              all.n ? all.s : "blocks of your own");
}

/* `q_proj.bias = true`, `let x = 3` in a node that has a block. */
void odd_item(Eval *ev, Name node, const BlockValue *block, const Ast *it)
{
    if (said_at(ev, it->span))
        return;
    Diag *d = err(ev, "E0110", it->span, "", "`%s` cannot hold this item", node);
    if (it->kind != AST_SET)
        return;
    const Ast *path = it->kid[0], *par = block ? block_param(block->def, path->name) : NULL;
    const char *last = path->kid[path->n - 1]->name, *value = expr_text(ev, it->kid[1]);
    const Ast *given = par ? par->kid[1] : NULL;
    if (par && given && given->kind == AST_CALL)
        diag_help(ev->ctx, d, "a block is configured where it is given: `%s = %s(%s = %s)`", path->name,
                  expr_text(ev, given->kid[0]), last, value);
    else if (par)
        diag_help(ev->ctx, d, "a block is configured where it is given: `%s = BLOCK(%s = %s)`", path->name, last,
                  value);
    else if (!strcmp(path->name, "loss") || !strcmp(path->name, "metric"))
        diag_help(ev->ctx, d, "`%s.%s` is given in the body of a block", path->name, last);
    else
        diag_help(ev->ctx, d,
                  "an initial value is `init = %s` for all weights of the node; what else weights have stands at their "
                  "`param`",
                  !strcmp(last, "init") ? value : "normal(std = 0.02)");
}

/* `train.seed = 8`, `attention.heads = 8`, `loss.z = 3` in a model. */
void advise_path(Eval *ev, Diag *d, const Ast *path, const Ast *value)
{
    const Ast *last = path->kid[path->n - 1];
    const char *text = expr_text(ev, value);
    if (!strcmp(path->name, "loss") || !strcmp(path->name, "metric") || !strcmp(path->name, "output"))
        diag_help(ev->ctx, d, "`%s` is given in the body of a block: `%s = ...`", path->name,
                  span_text(ev, path->span));
    else if (!strcmp(path->name, "train"))
        diag_help(ev->ctx, d, "it stands in `train { ... }`, at the top of the file");
    else if (!strcmp(path->name, "model") && last->kind == AST_DOT)
        diag_help(ev->ctx, d, "write `%s = %s`", last->name, text);
    else if (last->kind == AST_DOT)
        diag_help(ev->ctx, d, "a node has its attributes in its braces: `%s = %s` inside of `%s { ... }`", last->name,
                  text,
                  path->n > 1 && path->kid[path->n - 2]->kind == AST_DOT ? path->kid[path->n - 2]->name : path->name);
}

/* `tokens = embed(256)`, `a = attention(heads = 4)`: a node is placed, and nothing holds its result. */
bool advise_placed(Eval *ev, Diag *d, Env *env, Name key, const Ast *call)
{
    Name name = call->kid[0]->name;
    bool embed = !strcasecmp(name, "embed") || !strcasecmp(name, "embedding"), head = !strcmp(name, "head");
    if (embed)
        diag_help(ev->ctx, d, "an embedding is a node: `embed tokens { vocab = 256 }`");
    else if (head)
        diag_help(ev->ctx, d, "a head is a node: `head lm { norm = rms_norm(eps = 1e-6) }`");
    else if (env_find(env, name) && !foreign_next(FOREIGN_ATTRIBUTE, key, NULL))
        diag_help(ev->ctx, d, "a sublayer is a node, with braces: `%s { ... }`", name);
    else
        return false;
    if (embed && ev->build->embed.kind == V_NONE)
        ev->build->embed = v_poison(); /* it is said already */
    return true;
}

bool advise_words(Eval *ev, Diag *d, Span at)
{
    size_t n = 0, length = 0;
    const char *text = source_text(ev->ctx, at.file, &n), *p = text ? text + (at.lo < n ? at.lo : 0) : NULL;
    while (p > text && p[-1] == ' ')
        p--;
    if (!p || p == text || *--p != '=')
        return false;
    while (p > text && p[-1] == ' ')
        p--;
    for (; p > text && (isalnum((unsigned char)p[-1]) || p[-1] == '_'); p--)
        length++;
    const AttributeRow *row = attribute_find("model", name_of(ev->ctx, p, length));
    if (row)
        diag_help(ev->ctx, d, "`%s` is one of: %s", row->name, row->values);
    return row != NULL;
}

void advise_method(Eval *ev, Diag *d, const Ast *e)
{
    const Foreign *f = foreign_next(FOREIGN_METHOD, e->name, NULL);
    if (f)
        tell(ev, d, f, e->span, NULL);
    else if (prim_find(e->name))
        diag_help(ev->ctx, d, "functions are not methods: write `%s(%s)`", e->name, expr_text(ev, e->kid[0]));
}

bool no_module(Eval *ev, const Ast *field)
{
    const Ast *root = field->kid[0];
    while (root->kind == AST_FIELD)
        root = root->kid[0];
    const Foreign *module = root->kind == AST_ID ? foreign_next(FOREIGN_MODULE, root->name, NULL) : NULL;
    if (!module)
        return false;
    Diag *d = err(ev, "E0102", field->span, "not found in this file or its imports", "no name `%s` here", root->name);
    char last[64];
    snprintf(last, sizeof last, "%s", field->name);
    size_t n = strlen(last);
    if (n && last[n - 1] == '_') /* normal_() */
        last[n - 1] = 0;
    const Foreign *f = foreign_next(FOREIGN_VALUE, last, NULL);
    if (!f && !prim_find(name_str(ev->ctx, last))) {
        diag_help(ev->ctx, d, "%s", module->text);
        return true;
    }
    const char *ours = f ? f->ours : last;
    Span at = field->span;
    size_t size;
    const char *text = source_text(ev->ctx, at.file, &size);
    const Prim *prim = ours ? prim_find(name_str(ev->ctx, ours)) : NULL;
    if (prim && !strcmp(prim->params, "x: any") && at.hi + 2 <= size && !memcmp(text + at.hi, "()", 2))
        at.hi += 2; /* nn.GELU() is the function */
    Foreign row = f ? *f : (Foreign){.same = true};
    tell(ev, d, &row, at, ours);
    return true;
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
        diag_help(ev->ctx, d,
                  "a value that two places share is a let of the file: `let rate = 3e-4`, then `rate` in both");
    return true;
}

/* ---- arguments and attributes ---- */

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

/* ---- configuration that is missing ---- */

/* What stands at `at` if it is a node, as in `moe { ... }`, and no value, as in `x = moe(...)`; else NULL. */
static const char *node_text(Eval *ev, Span at)
{
    size_t n;
    const char *text = at.file ? source_text(ev->ctx, at.file, &n) : NULL;
    uint32_t lo = at.lo;
    while (text && lo && (text[lo - 1] == ' ' || text[lo - 1] == '\t'))
        lo--;
    bool node = text && at.hi < n && lo && strchr("\n{};", text[lo - 1]);
    return node ? arena_copy(ev->arena, text + at.lo, at.hi - at.lo) : NULL;
}

/* The doc comment of a parameter is the note; a last line "for example 1e-6" is what the help writes, and one that ends in
 * braces is a node of its own. */
static const char *parameter_example(Eval *ev, const Ast *par, const char **note)
{
    static const char lead[] = "for example ";
    const char *doc = par->doc ? par->doc : "", *line = strrchr(doc, '\n');
    line = line ? line + 1 : doc;
    bool example = !strncmp(line, lead, sizeof lead - 1);
    size_t n = example ? (size_t)(line - doc) : strlen(doc);
    while (n && doc[n - 1] == '\n')
        n--;
    *note = n ? arena_copy(ev->arena, doc, n) : NULL;
    const char *value = example ? line + sizeof lead - 1 : "...";
    bool node = *value && value[strlen(value) - 1] == '}';
    return node ? value : arena_printf(ev->arena, "%s = %s", par->name, value);
}

/* Whether a call at `at` gives arguments, `ghc(m = 3)`. */
static bool configured(Eval *ev, Span at)
{
    size_t n;
    const char *text = at.file ? source_text(ev->ctx, at.file, &n) : NULL;
    const char *open = text ? memchr(text + at.lo, '(', at.hi - at.lo) : NULL;
    return open && open[1 + strspn(open + 1, " ")] != ')';
}

void missing_parameters(Eval *ev, const BlockDef *def, const Ast *const *par, size_t n, Span where)
{
    Buf names = buf_new(ev->arena), all = buf_new(ev->arena);
    const char *note = NULL;
    for (size_t i = 0; i < n; i++) {
        buf_printf(&names, "%s`%s`", list_gap(i, n, " and "), par[i]->name);
        buf_printf(&all, "%s%s", i ? ", " : "", parameter_example(ev, par[i], &note));
    }
    Diag *d = err(ev, "E0104", where, "", "`%s` needs %s", def->ast->name, names.s);
    if (d->labels.n)
        d->labels.v[0].text = arena_printf(ev->arena, "missing %s", names.s);
    if (n > 1)
        diag_note(ev->ctx, d, "they have no defaults, so every use says what they are");
    else if (note)
        diag_note(ev->ctx, d, "%s", note);
    else
        diag_note(ev->ctx, d, "`%s` has no default, so every use says what it is", par[0]->name);
    const char *node = node_text(ev, where);
    if (n > 1)
        diag_help(ev->ctx, d, "add `%s`", all.s);
    else if (node)
        diag_help(ev->ctx, d, "write `%s { %s }`", node, all.s);
    else if (configured(ev, where))
        diag_help(ev->ctx, d, "add `%s`", all.s);
    else
        diag_help(ev->ctx, d, "write `%s(%s)`", def->ast->name, all.s);
    diag_related(ev->ctx, d, par[0]->span, "`%s` is declared here", def->ast->name);
}

/* What people write who have no other wish, for the help of an argument that is missing; else what the examples of attributes have. */
static const char *usual(Eval *ev, const Prim *prim, const char *argument)
{
    static const char *const usual[][2] = {{"cutoff", "0.06"}, {"decay", "10%"}, {"exponent", "-0.5"},
                                           {"floor", "0"},     {"high", "0.1"},  {"low", "-0.1"},
                                           {"p", "0.1"},       {"std", "0.02"},  {"tol", "1%"}};
    for (size_t i = 0; i < COUNT_OF(usual); i++)
        if (!strcmp(usual[i][0], argument))
            return usual[i][1];
    const char *call = arena_printf(ev->arena, "%s(", prim->name), *given = arena_printf(ev->arena, "%s = ", argument);
    for (size_t i = 0; i < attribute_count(); i++)
        for (int k = 0; k < 2; k++) {
            const char *text = k ? attribute_at(i)->example : attribute_at(i)->values;
            const char *at = text ? strstr(text, call) : NULL, *value = at ? strstr(at, given) : NULL;
            if (value && value[-1] != '_' && !memchr(at, ')', (size_t)(value - at)))
                return arena_copy(ev->arena, value + strlen(given), strcspn(value + strlen(given), ",)"));
        }
    return NULL;
}

void argument_missing(Eval *ev, const Prim *prim, const Ast *call, const char *name)
{
    Ctx *ctx = ev->ctx;
    Diag *d = err(ev, "E0104", call->span, arena_printf(ev->arena, "missing `%s`", name), "`%s` needs `%s`", prim->name,
                  name);
    diag_note(ctx, d, "it is %s(%s)", prim->name, prim->params);
    const char *text = expr_text(ev, call), *value = usual(ev, prim, name);
    bool drawn = ev->fan && !strncmp(prim->name, "rand", 4), function = !strcmp(prim->params, "x: any");
    if (drawn)
        diag_help(ctx, d,
                  "an initialiser is drawn once, in the shape of its tensor: `normal(std = 0.02)`, "
                  "`uniform(low = -0.1, high = 0.1)`");
    else if (!call->kid[1]->n && function)
        diag_fix(ctx, d, call->span, prim->name, FIX_CERTAIN, "as a function it has no parentheses: `%s`", prim->name);
    else if (value) {
        text = arena_printf(ev->arena, "%.*s%s%s = %s)", (int)strlen(text) - 1, text, call->kid[1]->n ? ", " : "", name,
                            value);
        diag_fix(ctx, d, call->span, text, strcmp(name, "master") ? FIX_MAYBE : FIX_CERTAIN, "write `%s`", text);
    }
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

/* How many of n positional arguments are more than the parameters without a default: linear(in, out) of other libraries. */
static size_t superfluous(const BlockValue *b, const Ast *args, size_t n)
{
    Name taken[16];
    size_t needed = 0;
    for (const Ast *par; needed < COUNT_OF(taken) && (par = next_parameter(b, args, taken, needed)) && !par->kid[1];)
        taken[needed++] = par->name;
    return needed && n > needed ? n - needed : 0;
}

/* What our table says about a block that others configure by width: `rms_norm(D)`. */
static const char *sentence_about(const char *ours)
{
    for (size_t i = 0; i < foreign_count(); i++)
        if (foreign_at(i)->kind == FOREIGN_VALUE && foreign_at(i)->ours && foreign_at(i)->text &&
            !strcmp(foreign_at(i)->ours, ours))
            return foreign_at(i)->text;
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
    size_t k = 0, shown = 0, extra = superfluous(b, args, n), passed = 0;
    const Ast *first = NULL, *first_arg = NULL;
    for (uint32_t i = 0; i < args->n; i++) {
        const Ast *a = args->kid[i];
        if (a->kind == AST_OFF || (a->kind != AST_NAMED && passed++ < extra))
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
    Diag *d = err(ev, "E0209", first_arg->span, "a value without a name", "`%s` is configured by name: `%s = %s`",
                  b->def->ast->name, first->name, expr_text(ev, first_arg));
    diag_note(ev->ctx, d, "positional arguments are the tensors that a block is applied to%s",
              extra ? "; how wide these are is seen from them" : "");
    const Ast *type = first->kid[0];
    bool wide = type->kind == AST_ID && !strcmp(type->name, "float") && x[extra].kind == V_NUM && x[extra].num >= 1;
    const char *sentence = wide ? sentence_about(b->def->ast->name) : NULL; /* a width where a small number is meant */
    if (sentence)
        diag_help(ev->ctx, d, "%s", sentence);
    else
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
        peak |= args->kid[i]->kind == AST_NAMED &&
                (!strcmp(args->kid[i]->name, "peak") || !strcmp(args->kid[i]->name, "floor"));
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
        diag_note(ev->ctx, d,
                  "B (sequences) and T (positions) get their values when training; here a number must be known"
                  " when compiling, such as `scope.context`");
    else if (v->kind == V_HOST)
        diag_note(ev->ctx, d, "run-time quantities may stand in a learning rate, the weight of a loss and `when`");
    else if (v->kind == V_REL)
        diag_note(ev->ctx, d,
                  "`%.6g%c` is %.6g times the %s of a width solver: only `bottleneck`, `at` and `first` take it",
                  v->num, v->rel, v->num, v->rel == 'L' ? "number of layers" : "base width");
    else if (v->kind == V_QTY)
        diag_help(ev->ctx, d, "it has no unit here: `%.6g`", v->num);
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
    diag_note(ev->ctx, d,
              "B (sequences) and T (positions) get their values when training; until then an extent is a number,"
              " B, T, or a product of these%s",
              strcmp(op, "/") ? "" : ": whether another number divides T is not known");
    diag_help(ev->ctx, d, "the positions of a training sequence as a number are `scope.context`");
}

/* ---- showing what an expression is made of ---- */

/* Thousands are grouped; 17 digits are enough for any number. */
static void number_text(Buf *out, double x, int digits)
{
    if (x == rint(x) && fabs(x) < 9e15)
        buf_count(out, (int64_t)x);
    else if (digits < 17)
        buf_printf(out, "%.*g", digits, x);
    else
        buf_number(out, x);
}

static void values_text(Eval *ev, Buf *out, const Ast *e, Env *env, Scope *scope)
{
    switch (e->kind) {
    case AST_OP:
        values_text(ev, out, e->kid[0], env, scope);
        buf_printf(out, " %s ", e->name);
        values_text(ev, out, e->kid[1], env, scope);
        return;
    case AST_PAREN:
        buf_putc(out, '(');
        values_text(ev, out, e->kid[0], env, scope);
        buf_putc(out, ')');
        return;
    case AST_NUM: buf_puts(out, e->name); return;
    default: break;
    }
    size_t before = diag_count(ev->ctx);
    Value v = eval(ev, e, env, scope);
    diag_truncate(ev->ctx, before);
    if (v.kind == V_POISON && e->kind == AST_ID)
        v = v_word(e->name); /* compared with a word */
    if (v.kind == V_NUM)
        number_text(out, v.num, 6);
    else
        value_print(out, &v);
}

/* One side of a comparison: its parts, and what they make. */
static const char *side_text(Eval *ev, const Ast *e, Env *env, Scope *scope, int digits)
{
    Buf b = buf_new(ev->arena), value = buf_new(ev->arena);
    values_text(ev, &b, e, env, scope);
    size_t before = diag_count(ev->ctx);
    Value v = eval(ev, e, env, scope);
    diag_truncate(ev->ctx, before);
    if (v.kind == V_NUM)
        number_text(&value, v.num, digits);
    else
        value_print(&value, &v);
    bool literal = e->kind == AST_NUM || e->kind == AST_QTY || v.kind == V_POISON;
    bool parts = e->kind == AST_OP || e->kind == AST_PAREN;
    return literal ? b.s : parts && strcmp(b.s, value.s) ? arena_printf(ev->arena, "%s = %s", b.s, value.s) : value.s;
}

/* "0.1 + 0.2 = 0.30000000000000004, not 0.3": both sides, with as many digits as they need to differ. */
const char *expr_sides(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    while (e->kind == AST_PAREN)
        e = e->kid[0];
    if (e->kind != AST_OP || (strcmp(e->name, "==") && strcmp(e->name, "!=")))
        return expr_values(ev, e, env, scope);
    enum { FEW = 6, ALL = 17 };
    Buf a = buf_new(ev->arena), b = buf_new(ev->arena);
    double x = 0, y = 0;
    size_t before = diag_count(ev->ctx);
    bool numbers = eval_number(ev, e->kid[0], env, scope, "", &x) && eval_number(ev, e->kid[1], env, scope, "", &y);
    diag_truncate(ev->ctx, before);
    number_text(&a, x, FEW);
    number_text(&b, y, FEW);
    int digits = numbers && x != y && !strcmp(a.s, b.s) ? ALL : FEW;
    const char *left = side_text(ev, e->kid[0], env, scope, digits),
               *right = side_text(ev, e->kid[1], env, scope, digits);
    return arena_printf(ev->arena, e->name[0] == '!' ? "%s on both sides" : "%s, not %s", left, right);
}

const char *expr_values(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    Buf b = buf_new(ev->arena);
    if (is_comparison(e)) {
        values_text(ev, &b, e->kid[0], env, scope);
        if (strcmp(e->name, "==")) {
            buf_printf(&b, " %s ", e->name);
            values_text(ev, &b, e->kid[1], env, scope);
        }
    } else if (e->kind == AST_CALL && e->kid[1]->n) {
        const Ast *first = e->kid[1]->kid[0];
        if (first->kind != AST_NUM)
            buf_printf(&b, "%s = ", expr_text(ev, first));
        values_text(ev, &b, first, env, scope);
    } else {
        values_text(ev, &b, e, env, scope);
    }
    return b.s;
}

const char *interpolate(Eval *ev, const char *text, Env *env, Scope *scope, Span at)
{
    Buf out = buf_new(ev->arena);
    for (const char *p = text; *p;) {
        const char *close = *p == '{' ? strchr(p, '}') : NULL;
        if (!close) {
            buf_putc(&out, *p++);
            continue;
        }
        uint32_t file = source_add(ev->ctx, source_path(ev->ctx, at.file), p + 1, (size_t)(close - p - 1));
        const Ast *e = vwn_parse_expr(ev->ctx, file);
        Value v = e ? eval(ev, e, env, scope) : v_poison();
        if (v.kind == V_NUM && !is_whole(v.num))
            buf_printf(&out, "%.6g", v.num);
        else if (v.kind == V_STR)
            buf_puts(&out, v.word);
        else
            value_print(&out, &v);
        p = close + 1;
    }
    return out.s;
}
