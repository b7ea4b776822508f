/* read_json.c - tokenizer.json, and vocab.json with its merges.
 *
 * The one idea: every member is either a row here or an error that names it; what is known to change no id is said so in its row.
 */
#include "bpe.h"

#include "bulk.h"
#include "runtime/base/json.h"

#include <stdio.h>

typedef struct TokenizerReader {
    Session *s;
    const BpeFiles *files;
    Bpe *b;
    char *why;
} TokenizerReader;

static bool wrong(TokenizerReader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static bool wrong(TokenizerReader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(r->why, WHY, fmt, ap);
    va_end(ap);
    return false;
}

static const char *type_of(const Json *j)
{
    const char *type = json_string(j, "type");
    return type ? type : "?";
}

static bool is_null(const Json *j) { return !j || j->kind == JSON_NULL; }

static bool is_true(const Json *j, bool missing) { return j ? j->kind == JSON_TRUE : missing; }

/* No member but these, names with blanks between them. */
static bool only(TokenizerReader *r, const Json *j, const char *what, const char *names)
{
    for (const Json *k = j->first; k; k = k->next) {
        bool known = false;
        size_t n;
        for (const char *at = names; *at && !known; at += n + (at[n] == ' ')) {
            n = strcspn(at, " ");
            known = n == k->key_n && !memcmp(at, k->key, n);
        }
        if (!known)
            return wrong(r, "%s has the member `%.60s`, which is not read", what, k->key);
    }
    return true;
}

/* ---- the normal form ---- */

static bool read_normalizer(TokenizerReader *r, const Json *j)
{
    const Json *list = json_get(j, "normalizers");
    if (is_null(j))
        return true;
    if (!strcmp(type_of(j), "NFC")) {
        r->b->nfc = true;
        return true;
    }
    if (!strcmp(type_of(j), "Sequence") && list && list->kind == JSON_ARRAY) {
        for (const Json *k = list->first; k; k = k->next)
            if (strcmp(type_of(k), "NFC"))
                return wrong(r, "the normalizer `%.60s` is not read, only `NFC`", type_of(k));
        r->b->nfc |= list->n > 0;
        return true;
    }
    return wrong(r, "the normalizer `%.60s` is not read, only `NFC`", type_of(j));
}

/* ---- cutting ---- */

static bool read_split(TokenizerReader *r, const Json *j)
{
    const Json *pattern = json_get(j, "pattern"), *invert = json_get(j, "invert");
    const char *regex = json_string(pattern, "Regex"), *behavior = json_string(j, "behavior");
    if (!only(r, j, "`Split`", "type pattern behavior invert"))
        return false;
    if (!regex)
        return wrong(r, "the pattern of `Split` is not read, only {\"Regex\": \"...\"}");
    bool removed = behavior && !strcmp(behavior, "Removed");
    if (!removed && (!behavior || strcmp(behavior, "Isolated")))
        return wrong(r, "the behavior `%.60s` of `Split` is not read, only `Isolated` and `Removed`",
                     behavior ? behavior : "?");
    BpeStepKind kind = !removed ? STEP_ISOLATED : is_true(invert, false) ? STEP_MATCHES : STEP_BETWEEN;
    return bpe_add_split(r->s, r->b, DIALECT_ONIGURUMA, kind, regex, strlen(regex), r->why);
}

static bool read_byte_level(TokenizerReader *r, const Json *j)
{
    if (!only(r, j, "`ByteLevel`", "type add_prefix_space trim_offsets use_regex"))
        return false;
    if (is_true(json_get(j, "add_prefix_space"), true) &&
        !bpe_add_split(r->s, r->b, DIALECT_ONIGURUMA, STEP_BLANK, "", 0, r->why))
        return false;
    return !is_true(json_get(j, "use_regex"), true) ||
           bpe_add_split(r->s, r->b, DIALECT_ONIGURUMA, STEP_ISOLATED, bpe_gpt2_split, strlen(bpe_gpt2_split), r->why);
}

static bool read_digits(TokenizerReader *r, const Json *j)
{
    const char *by = is_true(json_get(j, "individual_digits"), false) ? "\\p{N}" : "\\p{N}+";
    return only(r, j, "`Digits`", "type individual_digits") &&
           bpe_add_split(r->s, r->b, DIALECT_ONIGURUMA, STEP_ISOLATED, by, strlen(by), r->why);
}

static bool read_cutting(TokenizerReader *r, const Json *j)
{
    const Json *list = !strcmp(type_of(j), "Sequence") ? json_get(j, "pretokenizers") : NULL;
    const Json *first = list && list->kind == JSON_ARRAY ? list->first : j;
    size_t n = list && list->kind == JSON_ARRAY ? list->n : 1;
    bool bytes = false;
    for (size_t i = 0; i < n && first && !is_null(j); i++, first = first->next) {
        const char *type = type_of(first);
        if (bytes)
            return wrong(r, "the pre_tokenizer `%.60s` stands behind `ByteLevel`, which must be the last one", type);
        bytes = !strcmp(type, "ByteLevel");
        bool digits = !strcmp(type, "Digits");
        if (strcmp(type, "Split") && !digits && !bytes)
            return wrong(r, "the pre_tokenizer `%.60s` is not read, only `Sequence`, `Split`, `Digits` and `ByteLevel`",
                         type);
        if (!(bytes ? read_byte_level : digits ? read_digits : read_split)(r, first))
            return false;
    }
    return bytes || wrong(r, "it has no pre_tokenizer `ByteLevel`: only byte-level tokenizers are read");
}

/* ---- what stands around ids, which are those of a text alone ---- */

static bool read_behind(TokenizerReader *r, const Json *j)
{
    static const char *const known[] = {"ByteLevel", "TemplateProcessing", "RobertaProcessing", "BertProcessing"};
    const Json *list = !strcmp(type_of(j), "Sequence") ? json_get(j, "processors") : NULL;
    if (list && list->kind == JSON_ARRAY) {
        for (const Json *k = list->first; k; k = k->next)
            if (!strcmp(type_of(k), "Sequence") || !read_behind(r, k))
                return r->why[0] ? false : wrong(r, "a post_processor `Sequence` within another one is not read");
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(known); i++)
        if (is_null(j) || !strcmp(type_of(j), known[i]))
            return true;
    return wrong(r, "the post_processor `%.60s` is not read", type_of(j));
}

static bool read_decoder(TokenizerReader *r, const Json *j)
{
    return is_null(j) || !strcmp(type_of(j), "ByteLevel") ||
           wrong(r, "the decoder `%.60s` is not read, only `ByteLevel`", type_of(j));
}

/* ---- added tokens ---- */

static bool read_added_token(TokenizerReader *r, const Json *j)
{
    Bpe *b = r->b;
    const Json *id = json_get(j, "id"), *content = json_get(j, "content");
    if (j->kind != JSON_OBJECT || !id || !id->whole || !content || content->kind != JSON_STRING || !content->n)
        return wrong(r, "byte %zu: an added token needs an `id` and a `content`", j->offset);
    if (!only(r, j, "an added token", "id content single_word lstrip rstrip normalized special"))
        return false;
    AddedToken t = {.text = content->s,
                    .n = content->n,
                    .id = id->integer,
                    .single_word = is_true(json_get(j, "single_word"), false),
                    .strips_left = is_true(json_get(j, "lstrip"), false),
                    .strips_right = is_true(json_get(j, "rstrip"), false),
                    .normalized = is_true(json_get(j, "normalized"), true)};
    const unsigned char *s = (const unsigned char *)t.text;
    const Vocabulary *v = b->vocabulary;
    const VocabularyToken *there = t.id >= 0 && t.id < v->size ? &v->token[t.id] : NULL;
    /* letters of the vocabulary stand for bytes, those of an added token for themselves: a word of both has one id */
    unsigned char *bytes = arena_take(r->s->arena, t.n);
    size_t letters = bulk_letters(t.text, t.n, bytes);
    int64_t spelled = letters ? vocabulary_find(v, bytes, letters) : TOKEN_NONE;
    if (spelled != TOKEN_NONE && spelled != t.id)
        return wrong(r, "byte %zu: the added token `%.60s` has the id %lld, and in the vocabulary %lld", j->offset,
                     t.text, (long long)t.id, (long long)spelled);
    if (there && there->length) {
        if (there->length != t.n || memcmp(v->bytes + there->at, s, t.n) != 0)
            return wrong(r, "byte %zu: the added token `%.60s` has the id %lld, which is another token's", j->offset,
                         t.text, (long long)t.id);
    } else if (vocabulary_add(b->vocabulary, t.id, s, t.n, true) != ADD_FINE) {
        return wrong(r, "byte %zu: the added token `%.60s` cannot have the id %lld", j->offset, t.text,
                     (long long)t.id);
    }
    for (size_t i = 0; i < b->tokens; i++)
        if (b->token[i].n == t.n && !memcmp(b->token[i].text, s, t.n))
            return wrong(r, "byte %zu: the added token `%.60s` stands here twice", j->offset, t.text);
    b->token[b->tokens++] = t;
    return true;
}

static bool read_added(TokenizerReader *r, const Json *list)
{
    if (is_null(list))
        return true;
    if (list->kind != JSON_ARRAY || list->n > 1 << 14)
        return wrong(r, "`added_tokens` is no list of at most 16,384 tokens");
    r->b->token = NEW_ARRAY(r->s->arena, AddedToken, list->n + 1);
    for (const Json *k = list->first; k; k = k->next)
        if (!read_added_token(r, k))
            return false;
    return true;
}

/* ---- the model ---- */

static bool empty_text(const Json *j) { return is_null(j) || (j->kind == JSON_STRING && !j->n); }

static bool read_model(TokenizerReader *r, const Json *model)
{
    const Json *dropout = json_get(model, "dropout");
    if (json_string(model, "type") && strcmp(type_of(model), "BPE"))
        return wrong(r, "the model `%.60s` is not read, only `BPE`", type_of(model));
    if (!only(r, model, "`model`",
              "type dropout unk_token continuing_subword_prefix end_of_word_suffix fuse_unk byte_fallback "
              "ignore_merges vocab merges"))
        return false;
    if (!is_null(dropout) && !(dropout->kind == JSON_NUMBER && dropout->number == 0))
        return wrong(r, "`dropout` of the model is not read: ids would be drawn");
    if (!empty_text(json_get(model, "continuing_subword_prefix")) || !empty_text(json_get(model, "end_of_word_suffix")))
        return wrong(r, "`continuing_subword_prefix` and `end_of_word_suffix` of the model are not read");
    if (is_true(json_get(model, "byte_fallback"), false))
        return wrong(r, "`byte_fallback` of the model is not read");
    r->b->direct = is_true(json_get(model, "ignore_merges"), false);
    return true;
}

/* The tree of a text in which two ranges are null. */
static const Json *rest_of(TokenizerReader *r, BulkRange first, BulkRange second)
{
    const BpeText *f = &r->files->file;
    Arena *a = r->s->arena;
    if (second.from < first.from) {
        BulkRange swap = first;
        first = second;
        second = swap;
    }
    Buf b = buf_new(a);
    size_t at = 0;
    for (int i = 0; i < 2; i++) {
        BulkRange x = i ? second : first;
        if (x.to <= x.from)
            continue;
        buf_put(&b, f->text + at, x.from - at);
        buf_puts(&b, "null");
        at = x.to;
    }
    buf_put(&b, f->text + at, f->n - at);
    JsonError e;
    const Json *tree = json_read(a, b.s, b.n, &e);
    size_t offset = e.offset;
    if (!tree && first.to > first.from && offset > first.from)
        offset += first.to - first.from - 4;
    if (!tree && second.to > second.from && offset > second.from)
        offset += second.to - second.from - 4;
    if (!tree)
        wrong(r, "byte %zu: %s", offset, e.what);
    return tree;
}

static bool read_vocab_json(TokenizerReader *r)
{
    const BpeFiles *f = r->files;
    if (!f->merges.path)
        return wrong(r,
                     "it has no `model`, as a tokenizer.json has; a vocabulary of its own needs its merges, `merges = "
                     "\"merges.txt\"`");
    if (!f->split)
        return wrong(r, "a vocabulary does not say how a text is cut: give `split`, a pattern of `std/tokenizers`");
    r->b->vocabulary = bulk_vocabulary(r->s->arena, f->file.text, (BulkRange){0, f->file.n}, r->why);
    if (!r->b->vocabulary)
        return false;
    char what[WHY] = "";
    if (!bulk_merge_lines(r->b->vocabulary, f->merges.text, f->merges.n, what))
        return wrong(r, "%.200s: %.250s", f->merges.path, what);
    return bpe_add_split(r->s, r->b, DIALECT_FANCY, STEP_ISOLATED, f->split, strlen(f->split), r->why) &&
           bpe_add_special(r->s, f, r->b, r->why);
}

bool bpe_read_json(Session *s, const BpeFiles *files, Bpe *b, char why[WHY])
{
    TokenizerReader r = {s, files, b, why};
    const BpeText *f = &files->file;
    static const char *const lists[] = {"vocab", "merges"}, *const of_file[] = {"model"};
    BulkRange all = {0, f->n}, model = {0, 0}, list[2] = {{0, 0}, {0, 0}};
    bool whole = bulk_members(f->text, all, 1, of_file, &model);
    /* a vocabulary may have a token of that name */
    if (whole && (model.from == model.to || f->text[model.from] != '{'))
        return read_vocab_json(&r);
    if (whole)
        bulk_members(f->text, model, 2, lists, list);
    const BulkRange vocab = list[0], merges = list[1];
    const Json *j = rest_of(&r, vocab, merges), *of = j ? json_get(j, "model") : NULL;
    if (!j)
        return false;
    if (files->merges.path || files->split || files->n_special)
        return wrong(&r, "it says itself how a text is cut and merged: leave `merges`, `split` and `special` out");
    if (!only(&r, j, "the file",
              "version truncation padding added_tokens normalizer pre_tokenizer post_processor decoder model"))
        return false;
    if (!is_null(json_get(j, "truncation")) || !is_null(json_get(j, "padding")))
        return wrong(&r, "`truncation` and `padding` are not read: ids are those of whole texts");
    if (!read_model(&r, of))
        return false;
    if (vocab.from == vocab.to || merges.from == merges.to)
        return wrong(&r, "its model has no `%s`", vocab.from == vocab.to ? "vocab" : "merges");
    b->vocabulary = bulk_vocabulary(s->arena, f->text, vocab, why);
    return b->vocabulary && bulk_merges(b->vocabulary, f->text, merges, why) &&
           read_normalizer(&r, json_get(j, "normalizer")) && read_cutting(&r, json_get(j, "pre_tokenizer")) &&
           read_behind(&r, json_get(j, "post_processor")) && read_decoder(&r, json_get(j, "decoder")) &&
           read_added(&r, json_get(j, "added_tokens"));
}
