/* check_train.c - the `train` node: data, batch, length, optimizer, schedules, evaluation.
 *
 * In:  the node's items and a checked model.   Out: a Train without a quantity left unresolved.
 * The one idea: everything that has a unit is turned into sequences and steps here, where the context and
 * the batch are known; lengths that depend on the data stay expressions of the run's length.
 */
#include "check_items.h"
#include "check_train.h"

#include "compiler/pass/recompute.h"

#include <math.h>

/* ---- attributes of a node that C knows ---- */

/* `instead`: an override, of the command line, a growth step or a sweep, which takes the place of what the file writes. */
static void attrs_add(Attrs *a, Name name, Span name_span, const Ast *expr, Env *env, Span span, bool instead)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].name == name) {
            if (!instead)
                err(a->ev, "E0108", span, "given twice", "`%s` is given twice", name);
            a->v[i] = (TrainAttr){name, expr, env, span, name_span, false};
            return;
        }
    a->v[a->n++] = (TrainAttr){name, expr, env, span, name_span, false};
}

static const Ast *attrs_written(const Attrs *a, Name name)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].name == name)
            return a->v[i].expr;
    return NULL;
}

void attrs_open(Attrs *a, Eval *ev, File *f, const Ast *items, Name path, const char *what, Span at)
{
    Name *over;
    size_t n_over = override_attrs(ev, f, path, &over);
    *a = (Attrs){.ev = ev, .what = what, .at = at};
    a->v = NEW_ARRAY(ev->arena, TrainAttr, (items ? items->n : 0) + n_over + 1);
    items_fit(ev, items, what);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_SET && it->kid[0]->n == 0)
            attrs_add(a, it->kid[0]->name, it->kid[0]->span, it->kid[1], f->env, it->span, false);
    }
    for (size_t i = 0; i < n_over; i++) {
        OverridePlace place = {.ev = ev,
                               .file = f,
                               .node = path,
                               .env = f->env,
                               .known = attribute_find(what, over[i]),
                               .prim = strcmp(over[i], "lr") ? NULL : schedule_prim};
        const Ast *expr = attrs_written(a, over[i]);
        Override *o = override_attribute(&place, over[i], &expr);
        if (!o)
            continue;
        Span last = o->path->n ? o->path->kid[o->path->n - 1]->name_span : o->path->name_span;
        last.file = o->span.file; /* the path of `--set` was parsed from a copy of the argument */
        attrs_add(a, over[i], last, expr, f->env, o->span, true);
    }
}

/* Only what the table has can be asked for. */
static const AttributeRow *attrs_row(Attrs *a, const char *name)
{
    const AttributeRow *row = attribute_find(a->what, name);
    if (!row)
        vwn_bug(a->ev->ctx, "`%s` of `%s` is not in attributes.def", name, a->what);
    return row;
}

const TrainAttr *attrs_get(Attrs *a, const char *name)
{
    attrs_row(a, name);
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->v[i].name, name)) {
            a->v[i].used = true;
            return &a->v[i];
        }
    return NULL;
}

const TrainAttr *attrs_need(Attrs *a, const char *name)
{
    const TrainAttr *t = attrs_get(a, name);
    if (t)
        return t;
    for (size_t i = 0; i < a->n; i++) /* a misspelt one is reported by attrs_close() */
        if (!a->v[i].used && (nearest_name(a->v[i].name, &(Name){name}, 1) || attribute_means(a->v[i].name, name)))
            return NULL;
    Diag *d = err(a->ev, "E0104", a->at, "", "`%s` needs `%s`", a->what, name);
    if (d->labels.n)
        d->labels.v[0].text = arena_printf(a->ev->arena, "missing `%s`", name);
    diag_help(a->ev->ctx, d, "for example `%s`", attrs_row(a, name)->example);
    return NULL;
}

/* `train.lr`: an attribute of a node inside of this one. True when there is such a node and it was said. */
static bool inner_attribute(Attrs *a, const TrainAttr *t, Diag *d)
{
    const char *inner = NULL;
    for (size_t i = 0; !inner && i < node_doc_count(); i++)
        if (node_stands_in(node_doc_at(i), a->what) && attribute_find(node_doc_at(i)->name, t->name))
            inner = node_doc_at(i)->name;
    if (!inner && !strcmp(a->what, "train") && attribute_find("adamw", t->name))
        inner = "optimizer";
    size_t n;
    if (!inner)
        return false;
    const char *source = t->name_span.file ? source_path(a->ev->ctx, t->name_span.file) : "";
    const char *value = source_text(a->ev->ctx, t->expr->span.file, &n) ? expr_text(a->ev, t->expr) : "...";
    if (!strcmp(source, "<command line>"))
        diag_help(a->ev->ctx, d, "write `--set %s.%s.%s=%s`", a->what, inner, t->name, value);
    else
        diag_help(a->ev->ctx, d, "it belongs to `%s { ... }` inside of `%s`: write `%s = %s` there", inner, a->what,
                  t->name, value);
    return true;
}

void attrs_close(Attrs *a)
{
    const char *known;
    size_t n;
    Name *names = attribute_names(a->ev->ctx, a->ev->arena, a->what, false, &n, &known);
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].used)
            continue;
        Span at = a->v[i].name_span;
        Diag *d = err(a->ev, "E0101", at, "unknown attribute", "`%s` has no attribute `%s`", a->what, a->v[i].name);
        diag_note(a->ev->ctx, d, "its attributes are %s", known);
        if (!inner_attribute(a, &a->v[i], d))
            suggest_attribute(a->ev, d, a->v[i].name, names, n, at);
    }
}

Value attr_value(Attrs *a, const TrainAttr *t) { return t ? eval(a->ev, t->expr, t->env, NULL) : v_none(); }

static const AttributeRow *attrs_row_of(Attrs *a, const char *name, AttributeType type)
{
    const AttributeRow *row = attrs_row(a, name);
    if (row->type != type)
        vwn_bug(a->ev->ctx, "`%s` of `%s` is not read as attributes.def has it", name, a->what);
    return row;
}

/* A number of a row that has a range; *outside: it is not in that, which is said. */
static double number_in(Attrs *a, const AttributeRow *row, bool *outside)
{
    const TrainAttr *t = attrs_get(a, row->name);
    double x = attribute_number(row);
    *outside = t && !eval_number(a->ev, t->expr, t->env, NULL, row->name, &x);
    if (!t || *outside || (x >= row->least && x < row->below))
        return x;
    *outside = true;
    bool whole = row->type == TAKES_WHOLE, low = x < row->least;
    if (low && row->least == 0)
        err(a->ev, "E0208", t->expr->span, "", "`%s` must not be negative", row->name);
    else if (low || isnan(x))
        err(a->ev, whole ? "E0206" : "E0208", t->expr->span, "", "`%s` must be %s, got %.6g", row->name, row->values,
            x);
    else if (whole)
        err(a->ev, "E0208", t->expr->span, "", "`%s` must be at most %.16g", row->name, row->below - 1);
    else
        err(a->ev, "E0208", t->expr->span, "", "`%s` must be in [%g, %g)", row->name, row->least, row->below);
    return x;
}

double attr_number(Attrs *a, const char *name)
{
    bool outside;
    double x = number_in(a, attrs_row_of(a, name, TAKES_NUMBER), &outside);
    return outside ? 1 : x; /* the error is filed, nothing shall follow from it */
}

int64_t attr_whole(Attrs *a, const char *name)
{
    bool outside;
    const AttributeRow *row = attrs_row_of(a, name, TAKES_WHOLE);
    double x = number_in(a, row, &outside);
    if (!outside && is_whole(x))
        return (int64_t)rint(x);
    if (!outside)
        err(a->ev, "E0206", attrs_get(a, name)->expr->span, "", "`%s` must be %s, got %.6g", name, row->values, x);
    return (int64_t)fmax(row->least, 1);
}

Name attr_word(Attrs *a, const char *name)
{
    const AttributeRow *row = attrs_row_of(a, name, TAKES_WORD);
    const TrainAttr *t = attrs_get(a, name);
    Name word = t ? attribute_word(a->ev, row, t->expr, t->env) : NULL;
    return word ? word : row->fallback;
}

bool attr_bool(Attrs *a, const char *name, bool *given)
{
    static const Ast type = {.kind = AST_ID, .name = "bool"};
    const TrainAttr *t = attrs_get(a, name);
    const char *fallback = attrs_row_of(a, name, TAKES_BOOL)->fallback;
    if (given)
        *given = t != NULL;
    if (!t)
        return fallback && !strcmp(fallback, "true");
    Value v = eval_as(a->ev, t->expr, t->env, NULL, &type, t->name);
    return v.kind == V_BOOL && v.num != 0;
}

/* ---- quantities ---- */

static const double MOST_STEPS = 1e15, MOST_EPOCHS = 1e6, MOST_TOKENS = 9007199254740992; /* 2^53 */

void no_unit(Eval *ev, Span at, const char *what, double x, const Train *t, const char *example)
{
    Diag *d = err(ev, "E0201", at, "", "`%s` needs a unit", what);
    if (d->labels.n)
        d->labels.v[0].text = arena_printf(ev->arena, "%.6g of what?", x);
    if (t->context > 1 && !strcmp(what, "batch"))
        diag_note(ev->ctx, d, "with context = %lld the two readings differ by a factor of %lld", (long long)t->context,
                  (long long)t->context);
    Buf n = buf_new(ev->arena);
    buf_count(&n, (int64_t)(x * (double)t->context));
    if (!strcmp(what, "batch"))
        diag_help(ev->ctx, d, "write `%.6g seqs` (%s tokens per step) or `0.5M tokens`", x, n.s);
    else
        diag_help(ev->ctx, d, "write %s", example);
}

/* An image is a sequence of the batch. */
static bool is_seq(const char *unit) { return !strcmp(unit, "seq") || !strcmp(unit, "image"); }

/* seqs, images or tokens as whole sequences. */
static bool to_seqs(Eval *ev, const Value *v, Span at, const char *what, const Train *t, int64_t *out)
{
    double seqs = 0;
    if (v->kind == V_NUM) {
        no_unit(ev, at, what, v->num, t, "`64 seqs`");
        return false;
    }
    if (v->kind != V_QTY) {
        if (v->kind != V_POISON)
            err(ev, "E0206", at, "", "`%s` must be a quantity such as `64 seqs`, got %s", what, value_kind_name(v));
        return false;
    }
    if (is_seq(v->word)) {
        seqs = v->num;
    } else if (!strcmp(v->word, "token")) {
        seqs = v->num / (double)t->context;
        if (!is_whole(seqs)) {
            Diag *d = err(ev, "E0605", at, "", "%.0f tokens are not a whole number of sequences of %lld", v->num,
                          (long long)t->context);
            double down = floor(seqs), up = ceil(seqs);
            diag_help(ev->ctx, d, "write %.0f or %.0f tokens, that is %.0f or %.0f seqs; `1Mi tokens` is 2^20",
                      down * (double)t->context, up * (double)t->context, down, up);
            return false;
        }
    } else {
        err(ev, "E0201", at, "", "`%s` is counted in seqs or tokens, not in %ss", what, v->word);
        return false;
    }
    if (seqs > 1e9) {
        err(ev, "E0206", at, "", "`%s` may be 1,000,000,000 sequences at most, got %.16g", what, seqs);
        return false;
    }
    if (!is_whole(seqs) || seqs < 1) {
        err(ev, "E0206", at, "", "`%s` must be at least one whole sequence, got %.6g", what, seqs);
        return false;
    }
    *out = (int64_t)rint(seqs);
    return true;
}

static bool written_share(Eval *ev, Span at)
{
    size_t n;
    const char *text = source_text(ev->ctx, at.file, &n);
    return at.hi > at.lo && text[at.hi - 1] == '%';
}

/* The attribute, where it is there and can be read. */
static bool attr_seqs(Attrs *a, const TrainAttr *at, const Train *t, int64_t *seqs)
{
    if (!at)
        return false;
    attrs_row_of(a, at->name, TAKES_SEQS);
    Value v = attr_value(a, at);
    return to_seqs(a->ev, &v, at->expr->span, at->name, t, seqs);
}

/* A length of time as steps: an expression, since epochs are known only with the data. */
const HostExpr *steps_of(Eval *ev, const Value *v, Span at, const char *what, const Train *t)
{
    Arena *a = ev->arena;
    double per_step = (double)t->batch_seqs * (double)t->context;
    if (v->kind == V_HOST)
        return v->host;
    if ((v->kind == V_NUM || v->kind == V_QTY) && v->num < 0) {
        err(ev, "E0208", at, "", "`%s` must not be negative", what);
        return NULL;
    }
    if (v->kind == V_NUM && v->num >= 0 && v->num <= 1)
        return v->num == 0 ? host_const(a, 0) : host_op(a, HO_MUL, host_const(a, v->num), host_var(a, HV_LENGTH), NULL);
    if (v->kind == V_NUM && written_share(ev, at)) {
        err(ev, "E0208", at, "", "`%s` cannot be more than the whole run", what);
        return NULL;
    }
    if (v->kind == V_NUM) {
        no_unit(ev, at, what, v->num, t, "`2000 steps`, `100M tokens` or a share such as `1%`");
        return NULL;
    }
    if (v->kind == V_QTY && !strcmp(v->word, "epoch") && t->length_epochs <= 0) {
        Diag *d = err(ev, "E0201", at, "", "`%s` can be counted in epochs only where `length` is", what);
        diag_help(ev->ctx, d, "write it in steps, tokens or seqs, or as a share of the run such as `1%%`");
        return NULL;
    }
    if (v->kind == V_QTY && !strcmp(v->word, "step"))
        return host_const(a, v->num);
    if (v->kind == V_QTY && !strcmp(v->word, "token"))
        return host_const(a, v->num / per_step);
    if (v->kind == V_QTY && is_seq(v->word))
        return host_const(a, v->num / (double)t->batch_seqs);
    if (v->kind == V_QTY && !strcmp(v->word, "epoch"))
        return host_op(a, HO_MUL, host_const(a, v->num / t->length_epochs), host_var(a, HV_LENGTH), NULL);
    if (v->kind != V_POISON)
        err(ev, "E0201", at, "", "`%s` is a length of training: steps, tokens, epochs or a share", what);
    return NULL;
}

static bool attr_steps(Attrs *a, const TrainAttr *at, const Train *t, int64_t *steps)
{
    attrs_row_of(a, at->name, TAKES_STEPS);
    Value v = attr_value(a, at);
    const HostExpr *e = v.kind == V_NUM ? NULL : steps_of(a->ev, &v, at->expr->span, at->name, t);
    double x = 0;
    if (v.kind == V_NUM && written_share(a->ev, at->expr->span)) {
        Diag *d =
            err(a->ev, "E0201", at->expr->span, "", "`%s` is a number of steps, not a share of the run", at->name);
        if (t->length_steps > 0)
            diag_help(a->ev->ctx, d, "of %lld steps that is `%.0f steps`", (long long)t->length_steps,
                      fmax(1, rint(v.num * (double)t->length_steps)));
    } else if (v.kind == V_NUM) {
        no_unit(a->ev, at->expr->span, at->name, v.num, t, "`250 steps`");
    }
    if (!e)
        return false;
    if (!host_is_const(e, &x)) {
        err(a->ev, "E0206", at->expr->span, "", "`%s` must be known before the run: steps, tokens or seqs", at->name);
        return false;
    }
    if (x < 1 || x > MOST_STEPS) {
        err(a->ev, "E0208", at->expr->span, "", "`%s` must be at least one step and at most %.0e, got %.6g", at->name,
            MOST_STEPS, x);
        return false;
    }
    *steps = (int64_t)fmax(1, rint(x));
    return true;
}

/* ---- data ---- */

static const Value *record_field(const Record *r, const char *name)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->field[i].name && !strcmp(r->field[i].name, name))
            return r->field[i].value;
    return NULL;
}

/* Files are UTF-8, so the bytes that go on with a character are known. */
static bool one_character(const char *s)
{
    size_t n = 0;
    for (; *s; s++)
        n += (*s & 0xc0) != 0x80;
    return n == 1;
}

/* The token that documents begin with: a character of a text, an id of token files. */
static void separator_of(Eval *ev, const Record *r, bool text, DataSpec *out)
{
    const Value *v = record_field(r, "separator");
    Span at = r->span;
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->field[i].name, "separator"))
            at = r->field[i].span;
    if (!v || v->kind == V_NONE || v->kind == V_POISON)
        return;
    bool one = v->kind == V_STR && one_character(v->word);
    bool id = v->kind == V_NUM && is_whole(v->num) && v->num >= 0 && v->num <= UINT32_MAX;
    if (text ? !one : !id) {
        Diag *d =
            err(ev, "E0206", at, "",
                text ? "the `separator` of a text is one character" : "the `separator` of token files is a token id");
        diag_help(ev->ctx, d, text ? "for example `separator = \"\\n\"`" : "for example `separator = 50_256`");
        return;
    }
    out->separated = true;
    out->separator_text = text ? v->word : NULL;
    out->separator = text ? 0 : (int64_t)v->num;
    out->separator_span = at;
}

static void data_spec(Eval *ev, File *f, const Value *v, Span at, DataSpec *out)
{
    const Record *r = v->kind == V_SPEC ? v->record : NULL;
    bool text = r && !strcmp(r->name, "text_file"), tokens = r && !strcmp(r->name, "token_files");
    bool arrays = r && !strcmp(r->name, "arrays");
    out->span = at;
    out->folder = f->folder;
    if (!text && !tokens && !arrays) {
        if (v->kind != V_POISON) {
            Diag *d = err(ev, "E0206", at, "", "`data` must be text_file(...), token_files(...) or arrays(...)");
            const char *path = v->kind == V_STR ? v->word : "corpus.txt";
            diag_help(ev->ctx, d, "for example `data = text_file(\"%s\", val = 5%%)`", path);
        }
        return;
    }
    out->kind = text ? DATA_TEXT_FILE : arrays ? DATA_ARRAYS : DATA_TOKEN_FILES;
    const Value *val = record_field(r, "val");
    out->val = val ? val->num : 0;
    if (out->val < 0 || out->val >= 1)
        diag_help(ev->ctx, err(ev, "E0208", at, "", "`val` is a share of the data: at least 0%% and below 100%%"),
                  "for example `val = 5%%`");
    if (arrays) {
        array_specs(ev, r, out);
        return;
    }
    out->path = record_field(r, "path")->word;
    separator_of(ev, r, text, out);
    if (text)
        return;
    const Value *dtype = record_field(r, "dtype"), *header = record_field(r, "header"),
                *vp = record_field(r, "val_path");
    out->bits = !strcmp(dtype->word, "u16") ? 16 : !strcmp(dtype->word, "u32") ? 32 : 0;
    if (!out->bits)
        err(ev, "E0205", at, "", "`dtype` must be `u16` or `u32`");
    out->llmc_header = header && header->kind == V_WORD && !strcmp(header->word, "llm_c");
    if (header && header->kind == V_WORD && !out->llmc_header && strcmp(header->word, "none"))
        err(ev, "E0205", at, "", "`header` must be `none` or `llm_c`");
    out->val_path = vp && vp->kind == V_STR ? vp->word : NULL;
}

static void tokenizer_spec(Eval *ev, const Value *v, Span at, const Model *m, Train *t)
{
    static const struct {
        const char *name;
        TokenizerKind kind;
    } rows[] = {{"bytes", TOKENIZER_BYTES}, {"chars", TOKENIZER_CHARS}, {"file", TOKENIZER_FILE}};
    t->tokenizer.span = at;
    if (t->data.kind == DATA_ARRAYS) {
        Diag *d = err(ev, "E0612", at, "nothing to do", "arrays hold numbers, which no tokenizer makes");
        diag_help(ev->ctx, d, "leave `tokenizer` out");
        return;
    }
    for (size_t i = 0; v->kind == V_SPEC && i < COUNT_OF(rows); i++)
        if (!strcmp(v->record->name, rows[i].name))
            t->tokenizer.kind = rows[i].kind;
    if (t->tokenizer.kind == TOKENIZER_NONE) {
        Diag *d = v->kind != V_POISON
                      ? err(ev, "E0206", at, "", "`tokenizer` must be bytes(), chars() or file(\"...\")")
                      : NULL;
        if (v->kind == V_STR)
            diag_help(ev->ctx, d,
                      "write `tokenizer = bytes()`; ids of other tokenizers are read by `data = token_files(\"...\", "
                      "dtype = u16)`");
        return;
    }
    if (t->tokenizer.kind == TOKENIZER_FILE)
        t->tokenizer.path = record_field(v->record, "path")->word;
    if (t->tokenizer.kind == TOKENIZER_BYTES && model_reads(m, "tokens"))
        model_check_vocabulary(ev->ctx, m, 256, at);
}

static void check_dtype(Eval *ev, const Model *m, const Train *t)
{
    if (t->data.kind != DATA_TOKEN_FILES || t->data.bits != 16 || m->vocab <= 65536)
        return;
    Diag *d = err(ev, "E0608", t->data.span, "", "u16 shards cannot hold the ids of %lld tokens", (long long)m->vocab);
    diag_help(ev->ctx, d, "write the shards with `dtype = u32`");
}

/* ---- the node ---- */

static void sub_nodes(Eval *ev, File *f, const Ast *items, Model *m, Train *t)
{
    const Ast *optimizer = NULL;
    bool strange = false;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_SET || it->kind == AST_OFF)
            continue;
        Name kind = it->kind == AST_NODE ? it->kid[0]->name : "";
        Attrs a;
        Span at = it->kind == AST_NODE ? it->kid[0]->span : it->span;
        if (!strcmp(kind, "optimizer")) {
            if (!optimizer)
                build_optimizer(ev, f, it, m, t);
            optimizer = it;
            continue;
        }
        if (strcmp(kind, "eval") && strcmp(kind, "checkpoint") && strcmp(kind, "log")) {
            strange = true; /* items_fit() has said so */
            continue;
        }
        attrs_open(&a, ev, f, it->kid[2], name_printf(ev->ctx, "train.%s", kind), kind, at);
        const TrainAttr *every = kind[0] == 'c' ? attrs_get(&a, "every") : attrs_need(&a, "every");
        int64_t *slot = kind[0] == 'e' ? &t->eval_every : kind[0] == 'c' ? &t->checkpoint_every : &t->log_every;
        if (every)
            attr_steps(&a, every, t, slot);
        bool never = every && t->length_steps > 0 && *slot > t->length_steps;
        if (never && kind[0] == 'e' && !lint_allowed(f, "eval_never")) {
            Diag *d = diag_warning(ev->ctx, "W0604", "eval_never", every->expr->span, "",
                                   "the run ends before its first evaluation");
            diag_note(ev->ctx, d, "it has %lld steps, `every` is %lld", (long long)t->length_steps, (long long)*slot);
        }
        if (kind[0] == 'e') {
            t->eval_batches = attr_whole(&a, "batches");
            const TrainAttr *d = attrs_get(&a, "data");
            Value v = attr_value(&a, d);
            if (v.kind != V_NONE)
                data_spec(ev, f, &v, d->expr->span, &t->eval_data);
        } else if (kind[0] == 'c') {
            t->checkpoint_keep = attr_whole(&a, "keep");
        }
        attrs_close(&a);
    }
    if (!optimizer && !strange) {
        Diag *d = err(ev, "E0104", t->span, "missing `optimizer`", "`train` needs an `optimizer`");
        diag_help(ev->ctx, d,
                  "for example `optimizer adamw { lr = 3e-4, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }`");
    }
}

/* `eval` reads the held-out part of the data, or data of its own. */
static void check_eval_data(Eval *ev, const Ast *items, const Model *m, const Train *t)
{
    if (t->eval_every <= 0 || t->eval_data.kind != DATA_NONE || t->data.kind == DATA_NONE || t->data.val > 0 ||
        t->data.val_path)
        return;
    Span at = t->span;
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_NODE && !strcmp(items->kid[i]->kid[0]->name, "eval"))
            at = items->kid[i]->kid[0]->span;
    Diag *d = err(ev, "E0604", at, "", "`eval` has nothing to evaluate on");
    diag_label(ev->ctx, d, t->data.span, "all of it is trained on");
    diag_help(ev->ctx, d, "hold a part of the data out: `val = 5%%`");
    diag_help(ev->ctx, d, "or give `eval` its own: `data = %s`",
              t->data.kind == DATA_ARRAYS ? arrays_example(ev, m) : "text_file(\"other.txt\")");
}

/* Documents are separated where the model looks at them, and only there. */
static void check_documents(Eval *ev, const Model *m, const Train *t, const DataSpec *data)
{
    bool reads = model_reads(m, "document");
    bool letters = t->tokenizer.kind == TOKENIZER_BYTES && data->kind == DATA_TEXT_FILE;
    if (data->kind == DATA_NONE || data->kind == DATA_ARRAYS)
        return;
    if (reads && !data->separated) {
        Diag *d = err(ev, "E0610", data->span, "no `separator`",
                      "the model looks at documents, which the data does not separate");
        diag_note(ev->ctx, d, "attention with `mask = document` sees its own document only");
        diag_help(ev->ctx, d,
                  data->kind == DATA_TEXT_FILE ? "name the character that documents begin with: `separator = \"\\n\"`"
                                               : "name the token that documents begin with: `separator = 50_256`");
    } else if (!reads && data->separated) {
        Diag *d = err(ev, "E0610", data->separator_span, "nothing reads it",
                      "the data separates documents, which the model does not look at");
        diag_help(ev->ctx, d, "keep attention within a document: `mask = document`");
    } else if (data->separated && letters && strlen(data->separator_text) != 1) {
        err(ev, "E0206", data->separator_span, "", "with `tokenizer = bytes()` the separator is one byte, `%s` has %zu",
            data->separator_text, strlen(data->separator_text));
    } else if (data->separated && m->table_rows && data->kind == DATA_TOKEN_FILES && data->separator >= m->table_rows) {
        Diag *d =
            err(ev, "E0601", data->separator_span, "", "the separator %lld is not a token: the embedding has %lld rows",
                (long long)data->separator, (long long)m->table_rows);
        diag_label(ev->ctx, d, m->table_at, "ids from 0 to %lld", (long long)m->table_rows - 1);
    }
}

static void train_length(Eval *ev, const Value *v, Span at, Train *t)
{
    double per_step = (double)t->batch_seqs * (double)t->context;
    if (v->kind == V_NUM) {
        no_unit(ev, at, "length", v->num, t, "`5000 steps`, `100B tokens` or `3 epochs`");
        return;
    }
    if (v->kind != V_QTY) {
        if (v->kind != V_POISON)
            err(ev, "E0206", at, "", "`length` must be a quantity such as `5000 steps`");
        return;
    }
    if (!strcmp(v->word, "epoch")) {
        if (v->num > MOST_EPOCHS) {
            err(ev, "E0208", at, "", "`length` is too large: at most %.0e epochs", MOST_EPOCHS);
            return;
        }
        t->length_epochs = v->num;
        t->length_steps = -1;
    } else if (!strcmp(v->word, "step") || !strcmp(v->word, "token") || is_seq(v->word)) {
        if (v->num > MOST_STEPS) {
            err(ev, "E0208", at, "", "`length` is too large");
            return;
        }
        double steps = v->word[0] == 't' ? v->num / per_step
                       : is_seq(v->word) ? v->num / (double)t->batch_seqs
                                         : v->num;
        t->length_steps = (int64_t)ceil(steps - 1e-9);
    } else {
        err(ev, "E0201", at, "", "`length` is counted in steps, tokens, seqs or epochs, not in %s", v->word);
        return;
    }
    if (t->length_steps == 0 || v->num <= 0)
        err(ev, "E0206", at, "", "`length` must be at least one step");
    else if ((double)t->length_steps * per_step > MOST_TOKENS)
        err(ev, "E0208", at, "", "`length` is too large: a run has at most 2^53 tokens, this one %.6g",
            (double)t->length_steps * per_step);
}

static void train_precision(Eval *ev, const Value *v, Span at, Train *t)
{
    if (v->kind == V_POISON)
        return;
    t->precision = value_text(ev, v);
    if (v->kind == V_WORD && !strcmp(v->word, "fp32"))
        return;
    const Value *c = v->kind == V_SPEC && !strcmp(v->record->name, "mixed") ? record_field(v->record, "compute") : NULL;
    const Value *master = c ? record_field(v->record, "master") : NULL;
    if (!c || !master || strcmp(master->word, "fp32") ||
        (!half_read(c->word, &t->compute) && strcmp(c->word, "fp32"))) {
        Diag *d = err(ev, "E0205", at, "", "`precision` must be `fp32` or `mixed(compute = bf16, master = fp32)`");
        diag_note(ev->ctx, d, "compute may be %s or fp32", half_words(ev->arena, ", "));
        const char *word = v->kind == V_STR || v->kind == V_WORD ? v->word : "";
        bool brain = strstr(word, "bf"), half = strstr(word, "16") || !strcmp(word, "half"), full = strstr(word, "32");
        const char *with = full              ? "fp32"
                           : !half && !brain ? NULL
                           : brain           ? "mixed(compute = bf16, master = fp32)"
                                             : "mixed(compute = fp16, master = fp32)";
        if (with)
            diag_fix(ev->ctx, d, at, with, full ? FIX_CERTAIN : FIX_MAYBE, "write `%s`", with);
    }
}

/* `recompute = [ffn, connection]`: segments of paths in this model. */
static void train_recompute(Eval *ev, const TrainAttr *at, const Model *m, Train *t)
{
    VEC(Name) words = {0};
    if (!at)
        return;
    if (at->expr->kind != AST_LIST) {
        Diag *d = err(ev, "E0206", at->expr->span, "", "`recompute` must be a list of names of modules");
        diag_help(ev->ctx, d, "for example `recompute = [ffn]`");
        return;
    }
    for (uint32_t i = 0; i < at->expr->n; i++) {
        const Ast *word = at->expr->kid[i];
        bool is_name = word->kind == AST_ID || word->kind == AST_STR;
        /* places that every model has, with or without values of their own */
        bool place = is_name && (!strcmp(word->name, "connection") || !strcmp(word->name, "pre_norm") ||
                                 !strcmp(word->name, "out_norm"));
        if (place || (is_name && recompute_names(m->graph, word->name))) {
            vec_push(ev->arena, &words, word->name);
            continue;
        }
        size_t n;
        const Name *known = recompute_words(m->graph, ev->arena, &n);
        Diag *d = err(ev, "E0611", word->span, "", "`recompute` names `%s`, and no module of the model is called so",
                      expr_text(ev, word));
        diag_note(ev->ctx, d, "names are segments of paths: `layer[1].ffn.up` is in layer, in ffn and in up");
        if (is_name)
            suggest(ev, d, word->name, known, n, word->span);
    }
    t->recompute = words.v;
    t->n_recompute = words.n;
}

/* `average = ema(decay = 0.999)`: the decay may be an expression of the run. */
static void train_average(Eval *ev, const Value *v, Span at, Train *t)
{
    double x;
    if (v->kind == V_NONE || v->kind == V_POISON)
        return;
    if (v->kind != V_SPEC || strcmp(v->record->name, "ema")) {
        Diag *d = err(ev, "E0206", at, "", "`average` must be ema(...) or none");
        diag_help(ev->ctx, d, "for example `average = ema(decay = 0.999)`");
        return;
    }
    const Field *f = &v->record->field[0];
    const HostExpr *e = f->value->kind == V_POISON ? NULL : to_host(ev, f->value);
    if (!e && f->value->kind != V_POISON)
        err(ev, "E0206", f->span, "", "`decay` must be a number");
    else if (e && host_is_const(e, &x) && !(x >= 0 && x < 1))
        err(ev, "E0208", f->span, "", "`decay` must be in [0, 1): the share of the average that stays");
    t->average = e;
    t->average_span = f->span;
}

static void train_batch(Attrs *a, Train *t)
{
    const TrainAttr *batch = attrs_need(a, "batch");
    t->batch_seqs = 1;
    attr_seqs(a, batch, t, &t->batch_seqs);
    t->micro_seqs = t->batch_seqs;
    const TrainAttr *micro = attrs_get(a, "micro_batch");
    if (attr_seqs(a, micro, t, &t->micro_seqs) && t->batch_seqs % t->micro_seqs) {
        Diag *d = err(a->ev, "E0606", micro->expr->span, "",
                      "a batch of %lld sequences is not a whole number of micro-batches of %lld",
                      (long long)t->batch_seqs, (long long)t->micro_seqs);
        diag_label(a->ev->ctx, d, batch ? batch->expr->span : micro->expr->span, "the batch");
        diag_help(a->ev->ctx, d, "choose a divisor of %lld", (long long)t->batch_seqs);
    }
}

Train *build_train(Eval *ev, File *f, Model *m)
{
    const Ast *it = f->train_ast;
    Train *t = NEW(ev->arena, Train);
    size_t errors = diag_errors(ev->ctx);
    t->span = it->kid[0]->span;
    t->log_every = (int64_t)attribute_number(attribute_find("log", "every"));
    t->checkpoint_keep = (int64_t)attribute_number(attribute_find("checkpoint", "keep"));
    if (!m) {
        err(ev, "E0111", t->span, "", "`train` without a `model`");
        return NULL;
    }
    t->context = m->context;
    Attrs a;
    attrs_open(&a, ev, f, it->kid[2], name_str(ev->ctx, "train"), "train", t->span);
    const TrainAttr *data = attrs_need(&a, "data");
    Value v = attr_value(&a, data);
    if (data)
        data_spec(ev, f, &v, data->expr->span, &t->data);
    const TrainAttr *tok = t->data.kind == DATA_TEXT_FILE ? attrs_need(&a, "tokenizer") : attrs_get(&a, "tokenizer");
    v = attr_value(&a, tok);
    if (tok)
        tokenizer_spec(ev, &v, tok->expr->span, m, t);
    train_batch(&a, t);
    const TrainAttr *length = attrs_need(&a, "length");
    v = attr_value(&a, length);
    if (length)
        train_length(ev, &v, length->expr->span, t);
    if (attrs_need(&a, "seed"))
        t->seed = (uint64_t)attr_whole(&a, "seed");
    const TrainAttr *precision = attrs_need(&a, "precision");
    if (precision) {
        bool word = precision->expr->kind == AST_ID;
        v = word ? eval_word(ev, precision->expr, precision->env, NULL) : attr_value(&a, precision);
        train_precision(ev, &v, precision->expr->span, t);
    }
    const TrainAttr *start = attrs_get(&a, "start_from");
    v = attr_value(&a, start);
    if (start)
        t->start = start_spec(ev, f, &v, start->expr->span, "start_from");
    t->clip = attr_number(&a, "clip");
    const TrainAttr *average = attrs_get(&a, "average");
    v = attr_value(&a, average);
    if (average)
        train_average(ev, &v, average->expr->span, t);
    train_recompute(ev, attrs_get(&a, "recompute"), m, t);
    attrs_close(&a);
    check_dtype(ev, m, t);
    sub_nodes(ev, f, it->kid[2], m, t);
    check_eval_data(ev, it->kid[2], m, t);
    if (diag_errors(ev->ctx) == errors) {
        check_inputs(ev, m, &t->data);
        check_inputs(ev, m, &t->eval_data);
    }
    if (diag_errors(ev->ctx) == errors) {
        check_documents(ev, m, t, &t->data);
        check_documents(ev, m, t, &t->eval_data);
    }
    return diag_errors(ev->ctx) == errors ? t : NULL;
}
