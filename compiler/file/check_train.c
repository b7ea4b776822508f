/* check_train.c - the `train` node: data, batch, length, optimizer, schedules, evaluation.
 *
 * In:  the node's items and a checked model.   Out: a Train without a quantity left unresolved.
 * The one idea: attributes are read by their rows (check_attribute.c); what they mean together is checked here.
 */
#include "check_items.h"
#include "check_train.h"

#include "compiler/pass/recompute.h"

#include <math.h>

/* ---- data ---- */

/* Where the argument is written, or `at`. */
static Span record_place(const Record *r, const char *name, Span at)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->field[i].name && !strcmp(r->field[i].name, name) && r->field[i].span.file)
            return r->field[i].span;
    return at;
}

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

/* The token that documents begin with: the text of one, which is a character unless a tokenizer has others, or an id of token files. */
static void separator_of(Eval *ev, const Record *r, bool text, DataSpec *out)
{
    const Value *v = record_field(r, "separator");
    Span at = r->span;
    for (size_t i = 0; i < r->n; i++)
        if (!strcmp(r->field[i].name, "separator"))
            at = r->field[i].span;
    if (!v || v->kind == V_NONE || v->kind == V_POISON)
        return;
    bool one = v->kind == V_STR && *v->word;
    bool id = v->kind == V_NUM && is_whole(v->num) && v->num >= 0 && v->num <= UINT32_MAX;
    if (text ? !one : !id) {
        Diag *d = err(ev, "E0206", at, "",
                      text ? "the `separator` of a text is the text of one token"
                           : "the `separator` of token files is a token id");
        diag_help(ev->ctx, d, text ? "for example `separator = \"\\n\"`" : "for example `separator = 50_256`");
        return;
    }
    out->separated = true;
    out->separator_text = text ? v->word : NULL;
    out->separator = text ? 0 : (int64_t)v->num;
    out->separator_span = at;
}

static void data_spec(Attrs *a, File *f, const TrainAttr *t, DataSpec *out)
{
    Eval *ev = a->ev;
    Diag *d;
    Value v = attr_one_of(a, t, &d);
    if (d)
        diag_help(ev->ctx, d, "for example `data = text_file(\"%s\", val = 5%%)`",
                  t->expr->kind == AST_STR ? t->expr->name : "corpus.txt");
    if (v.kind != V_SPEC)
        return;
    const Record *r = v.record;
    Span at = t->expr->span;
    bool text = !strcmp(r->name, "text_file"), arrays = !strcmp(r->name, "arrays");
    out->span = at;
    out->folder = f->folder;
    out->kind = text ? DATA_TEXT_FILE : arrays ? DATA_ARRAYS : DATA_TOKEN_FILES;
    const Value *val = record_field(r, "val");
    out->val = val ? val->num : 0;
    if (out->val < 0 || out->val >= 1) {
        Diag *wrong = err(ev, "E0208", record_place(r, "val", at), "",
                          "`val` is a share of the data: at least 0%% and below 100%%");
        if (out->val > 1 && out->val < 100)
            diag_help(ev->ctx, wrong, "%.6g of a hundred is `val = %.6g%%`", out->val, out->val);
        else
            diag_help(ev->ctx, wrong, "for example `val = 5%%`");
    }
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
    const char *type = dtype && dtype->kind == V_WORD ? dtype->word : "none";
    out->bits = !strcmp(type, "u16") ? 16 : !strcmp(type, "u32") ? 32 : 0;
    if (!out->bits && strcmp(type, "none"))
        err(ev, "E0205", at, "", "`dtype` must be `u16` or `u32`");
    const char *form = header && header->kind == V_WORD ? header->word : "none";
    static const char *const forms[] = {
        [HEADER_NONE] = "none", [HEADER_LLM_C] = "llm_c", [HEADER_NPY] = "npy", [HEADER_MEGATRON] = "megatron"};
    size_t known = 0;
    while (known < COUNT_OF(forms) && strcmp(form, forms[known]) != 0)
        known++;
    if (known == COUNT_OF(forms))
        err(ev, "E0205", at, "", "`header` must be `none`, `llm_c`, `npy` or `megatron`");
    else
        out->header = (TokenHeader)known;
    out->val_path = vp && vp->kind == V_STR ? vp->word : NULL;
}

#define WORD_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"

/* "text", or ["text", id]. */
static bool special_token(const Value *v, SpecialToken *out)
{
    const Value *text = v->kind == V_LIST && v->list->n == 2 ? &v->list->v[0] : v,
                *id = text == v ? NULL : &v->list->v[1];
    *out = (SpecialToken){text->word, id ? (int64_t)id->num : -1};
    return text->kind == V_STR && *text->word &&
           (!id || (id->kind == V_NUM && is_whole(id->num) && id->num >= 0 && id->num < 1 << 22));
}

static void tokenizer_file(Eval *ev, const Record *r, Span at, TokenizerSpec *out)
{
    const Value *merges = record_field(r, "merges"), *split = record_field(r, "split"),
                *special = record_field(r, "special");
    out->path = record_field(r, "path")->word;
    out->merges = merges && merges->kind == V_STR ? merges->word : NULL;
    out->split = split && split->kind == V_STR ? split->word : NULL;
    if (out->split && !out->split[strspn(out->split, WORD_CHARACTERS)]) {
        Diag *d = err(ev, "E0206", at, "", "`split` is a pattern, and `%.60s` is a word", out->split);
        diag_help(ev->ctx, d,
                  "those of known tokenizers have names: `import \"std/tokenizers\"` and `split = cl100k_split`");
    }
    if (!special || special->kind != V_LIST)
        return;
    SpecialToken *token = NEW_ARRAY(ev->arena, SpecialToken, special->list->n + 1);
    for (size_t i = 0; i < special->list->n; i++)
        if (!special_token(&special->list->v[i], &token[i])) {
            Diag *d = err(ev, "E0206", at, "", "`special` is a list of texts, or of texts with their ids");
            diag_help(ev->ctx, d, "for example `special = [\"<|endoftext|>\", [\"<|endofprompt|>\", 100_276]]`");
            return;
        }
    out->special = token;
    out->n_special = special->list->n;
}

static void tokenizer_spec(Attrs *a, File *f, const TrainAttr *attr, const Model *m, Train *t)
{
    if (!attr)
        return;
    Eval *ev = a->ev;
    Span at = attr->expr->span;
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
    Diag *d;
    Value v = attr_one_of(a, attr, &d);
    if (d && attr->expr->kind == AST_STR)
        diag_help(ev->ctx, d,
                  "write `tokenizer = file(\"tokenizer.json\")` with the tokenizer's file, or `tokenizer = bytes()`");
    if (v.kind != V_SPEC)
        return;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (!strcmp(v.record->name, rows[i].name))
            t->tokenizer.kind = rows[i].kind;
    t->tokenizer.folder = f->folder;
    if (t->tokenizer.kind == TOKENIZER_FILE)
        tokenizer_file(ev, v.record, at, &t->tokenizer);
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
            data_spec(&a, f, attrs_get(&a, "data"), &t->eval_data);
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
    } else if (data->separated && data->separator_text && t->tokenizer.kind != TOKENIZER_FILE &&
               !one_character(data->separator_text)) {
        Diag *d = err(ev, "E0206", data->separator_span, "", "the `separator` of a text is one character");
        diag_help(ev->ctx, d, "for example `separator = \"\\n\"`");
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

static void train_precision(Attrs *a, const TrainAttr *attr, Train *t)
{
    Eval *ev = a->ev;
    Span at = attr->expr->span;
    Diag *d;
    Value v = attr_one_of(a, attr, &d);
    const char *narrow = NULL; /* a type that the language has for other uses */
    if (v.kind == V_SPEC) {
        const char *compute = record_field(v.record, "compute")->word, *master = record_field(v.record, "master")->word;
        Half half;
        bool known = !strcmp(master, "fp32") && (half_read(compute, true, &half) || !strcmp(compute, "fp32"));
        narrow = !known && half ? compute : NULL;
        t->compute = known ? half : HALF_NONE;
        d = known ? NULL : attribute_refuses(ev, attribute_find("train", "precision"), at);
    }
    if (v.kind != V_POISON)
        t->precision = value_text(ev, &v);
    if (!d)
        return;
    diag_note(ev->ctx, d, "compute may be %s or fp32", half_words(ev->arena, true, ", "));
    if (narrow)
        diag_note(ev->ctx, d,
                  "the range of %s is too small without a scale for each tensor, which no product here has; `cast(x, "
                  "%s)` rounds",
                  narrow, narrow);
    const char *word = attr->expr->kind == AST_STR || attr->expr->kind == AST_ID ? attr->expr->name : "";
    bool brain = strstr(word, "bf") || !strcmp(word, "mixed"), half = strstr(word, "16") || !strcmp(word, "half"),
         full = strstr(word, "32");
    const char *with = full              ? "fp32"
                       : !half && !brain ? NULL
                       : brain           ? "mixed(compute = bf16, master = fp32)"
                                         : "mixed(compute = fp16, master = fp32)";
    if (with)
        diag_fix(ev->ctx, d, at, with, full ? FIX_CERTAIN : FIX_MAYBE, "write `%s`", with);
}

/* `recompute = [ffn, connection]`: segments of paths in this model. */
static void train_recompute(Attrs *a, const Model *m, Train *t)
{
    Eval *ev = a->ev;
    VEC(Name) words = {0};
    const Ast *names = attr_names(a, "recompute");
    for (uint32_t i = 0; names && i < names->n; i++) {
        const Ast *word = names->kid[i];
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
static void train_average(Attrs *a, Train *t)
{
    Eval *ev = a->ev;
    double x;
    Diag *d;
    Value v = attr_one_of(a, attrs_get(a, "average"), &d);
    if (d)
        diag_help(ev->ctx, d, "for example `average = ema(decay = 0.999)`");
    if (v.kind != V_SPEC)
        return;
    const Field *f = &v.record->field[0];
    const HostExpr *e = f->value->kind == V_POISON ? NULL : to_host(ev, f->value);
    if (!e && f->value->kind != V_POISON)
        err(ev, "E0206", f->span, "", "`decay` must be a number");
    else if (e && host_is_const(e, &x) && !(x >= 0 && x < 1))
        err(ev, "E0208", f->span, "", "`decay` must be in [0, 1): the share of the average that stays");
    t->average = e;
    t->average_span = f->span;
}

/* A number of lanes that a batch has. */
static bool lanes_fit(int64_t batch, int64_t lanes) { return !(lanes & (lanes - 1)) && batch % lanes == 0; }

static void read_lanes(Attrs *a, Train *t, const TrainAttr *batch)
{
    const TrainAttr *at = attrs_get(a, "lanes");
    t->lanes = attr_whole(a, "lanes");
    if (!at || lanes_fit(t->batch_seqs, t->lanes))
        return;
    Diag *d =
        t->lanes & (t->lanes - 1)
            ? err(a->ev, "E0606", at->expr->span, "", "a number of lanes is a power of two, and %lld is none",
                  (long long)t->lanes)
            : err(a->ev, "E0606", at->expr->span, "", "a batch of %lld sequences cannot be divided among %lld lanes",
                  (long long)t->batch_seqs, (long long)t->lanes);
    if (batch)
        diag_label(a->ev->ctx, d, batch->expr->span, "the batch");
    Buf b = buf_new(a->ev->arena);
    size_t count = 0, i = 0; /* powers of two, from 1 to the first that does not fit */
    for (int64_t l = 1; l <= t->batch_seqs && l <= LOOP_LANES_MOST; l *= 2)
        count += lanes_fit(t->batch_seqs, l);
    for (int64_t l = 1; i < count; l *= 2)
        if (lanes_fit(t->batch_seqs, l))
            buf_printf(&b, "%s%lld", list_gap(i++, count, " or "), (long long)l);
    diag_help(a->ev->ctx, d, "a batch of %lld has %s lanes", (long long)t->batch_seqs, b.s);
    t->lanes = 1;
}

static void train_batch(Attrs *a, Train *t)
{
    const TrainAttr *batch = attrs_need(a, "batch");
    t->batch_seqs = 1;
    attr_seqs(a, batch, t, &t->batch_seqs);
    read_lanes(a, t, batch);
    int64_t lane = t->batch_seqs / t->lanes;
    t->micro_seqs = lane;
    const TrainAttr *micro = attrs_get(a, "micro_batch");
    if (attr_seqs(a, micro, t, &t->micro_seqs) && lane % t->micro_seqs) {
        const char *of = t->lanes == 1 ? "a batch" : "a lane";
        Diag *d = err(a->ev, "E0606", micro->expr->span, "",
                      "%s of %lld sequences is not a whole number of micro-batches of %lld", of, (long long)lane,
                      (long long)t->micro_seqs);
        diag_label(a->ev->ctx, d, batch ? batch->expr->span : micro->expr->span, "the batch");
        diag_help(a->ev->ctx, d, "choose a divisor of %lld", (long long)lane);
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
    data_spec(&a, f, attrs_need(&a, "data"), &t->data);
    bool text = t->data.kind == DATA_TEXT_FILE;
    tokenizer_spec(&a, f, text ? attrs_need(&a, "tokenizer") : attrs_get(&a, "tokenizer"), m, t);
    train_batch(&a, t);
    const TrainAttr *length = attrs_need(&a, "length");
    if (length)
        attr_length(&a, length, t);
    if (attrs_need(&a, "seed"))
        t->seed = (uint64_t)attr_whole(&a, "seed");
    const TrainAttr *precision = attrs_need(&a, "precision"), *start = attrs_get(&a, "start_from");
    if (precision)
        train_precision(&a, precision, t);
    if (start) {
        Value v = attr_value(&a, start);
        t->start = start_spec(ev, f, &v, start->expr->span, attribute_find("train", "start_from"));
    }
    t->clip = attr_number(&a, "clip");
    train_average(&a, t);
    train_recompute(&a, m, t);
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
