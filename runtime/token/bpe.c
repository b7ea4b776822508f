/* bpe.c - see bpe.h. */
#include "bpe.h"

#include "compiler/portable/utf8.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

const char bpe_gpt2_split[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
/* What Rust's \w is: letters, marks, digits, what joins, and signs that are letters. */
static const char word_character[] =
    "[\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{200c}\\x{200d}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}"
    "\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}]";

/* ---- opening ---- */

bool bpe_add_split(Session *s, Bpe *b, PatternDialect dialect, BpeStepKind kind, const char *pattern, size_t n,
                   char why[WHY])
{
    if (b->steps == BPE_STEPS) {
        snprintf(why, WHY, "there are more than %d steps that cut a text", BPE_STEPS);
        return false;
    }
    BpeStep *step = &b->step[b->steps++];
    step->kind = kind;
    return kind == STEP_BLANK || pattern_open(s, b->pcre2, dialect, pattern, n, &step->pattern, why);
}

static bool add_token(Bpe *b, const BpeSpecial *special, char why[WHY])
{
    Vocabulary *v = b->vocabulary;
    size_t n = strlen(special->text);
    const unsigned char *text = (const unsigned char *)special->text;
    int64_t id = special->id, known = n ? vocabulary_find(v, text, n) : TOKEN_NONE;
    const char *what = !utf8_valid(special->text, n) ? "is not UTF-8" : NULL;
    for (size_t i = 0; i < b->tokens && !what; i++)
        what = b->token[i].n == n && !memcmp(b->token[i].text, text, n) ? "stands there twice" : NULL;
    if (what) {
        snprintf(why, WHY, "the special token `%.60s` %s", special->text, what);
        return false;
    }
    if (known >= 0 && (id < 0 || id == known))
        id = known;
    else if (!n || vocabulary_add(v, id < 0 ? v->size : id, text, n, true) != ADD_FINE) {
        snprintf(why, WHY, "the special token `%.60s` cannot have the id %lld", special->text,
                 (long long)(id < 0 ? v->size : id));
        return false;
    } else if (id < 0)
        id = v->size - 1;
    b->token[b->tokens++] = (AddedToken){.text = special->text, .n = n, .id = id};
    return true;
}

bool bpe_add_special(Session *s, const BpeFiles *files, Bpe *b, char why[WHY])
{
    b->token = NEW_ARRAY(s->arena, AddedToken, files->n_special + 1);
    for (size_t i = 0; i < files->n_special; i++)
        if (!add_token(b, &files->special[i], why))
            return false;
    return true;
}

/* The normal form of n bytes into *out, which is for free(). */
static long normal_form(const Bpe *b, const char *text, size_t n, char **out)
{
    unsigned char *form = NULL;
    long length = b->utf8proc.map((const unsigned char *)text, (long)n, &form, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    *out = (char *)form;
    return length;
}

static bool open_added(Session *s, Bpe *b, char why[WHY])
{
    AddedForm *form = b->nfc ? NEW_ARRAY(s->arena, AddedForm, b->tokens + 1) : NULL;
    bool words = false;
    for (size_t i = 0; i < b->tokens; i++) {
        words |= b->token[i].single_word;
        char *normal = NULL;
        long n = form ? normal_form(b, b->token[i].text, b->token[i].n, &normal) : -1;
        if (n >= 0)
            form[i] = (AddedForm){arena_copy(s->arena, normal, (size_t)n), (size_t)n};
        free(normal);
    }
    if (words && !pattern_open(s, b->pcre2, DIALECT_FANCY, word_character, sizeof word_character - 1, &b->word, why))
        return false;
    added_open(s->arena, &b->raw, b->token, b->tokens, false, NULL);
    added_open(s->arena, &b->normal, b->token, b->tokens, true, form);
    b->raw.word = b->normal.word = &b->word;
    if (b->raw.lengths + b->normal.lengths <= ADDED_LENGTHS)
        return true;
    snprintf(why, WHY,
             "its added tokens have more than %d different lengths, each of which takes time at every place of a text",
             ADDED_LENGTHS);
    return false;
}

bool bpe_open(Session *s, const BpeFiles *files, Bpe *b, char why[WHY])
{
    char what[WHY] = "";
    *b = (Bpe){.pcre2 = NEW(s->arena, Pcre2)};
    size_t i = 0;
    while (i < files->file.n && strchr(" \t\r\n", files->file.text[i]) && files->file.text[i])
        i++;
    bool json = i < files->file.n && files->file.text[i] == '{';
    b->no_library = !library_pcre2(b->pcre2, what);
    bool fine = !b->no_library && (json ? bpe_read_json : bpe_read_ranks)(s, files, b, what);
    b->lacks = fine && vocabulary_bytes(b->vocabulary) >= 0;
    b->no_library |= fine && b->nfc && !library_utf8proc(&b->utf8proc, what);
    fine = fine && !b->no_library && open_added(s, b, what);
    if (!fine)
        snprintf(why, WHY, "%.200s: %.300s", files->file.path, what);
    return fine;
}

/* ---- making ids ---- */

bool bpe_work_open(BpeWork *w, const Bpe *b)
{
    *w = (BpeWork){.bpe = b, .data = b->pcre2->match_data_create(4, NULL)};
    return merging_open(&w->merging, b->vocabulary) && w->data;
}

void bpe_work_close(BpeWork *w)
{
    merging_close(&w->merging);
    if (w->data)
        w->bpe->pcre2->match_data_free(w->data);
    *w = (BpeWork){0};
}

static bool no_memory(BpeWork *w)
{
    snprintf(w->why, WHY, "there is no memory for the ids of a text");
    return false;
}

/* Some vocabularies lack bytes. What is said is where such a byte is in the text, unless only a step before brought it there. */
static bool has_bytes(BpeWork *w, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned byte = (unsigned char)s[i];
        if (w->bpe->vocabulary->byte[byte] >= 0)
            continue;
        size_t at = (size_t)((uintptr_t)(s + i) - (uintptr_t)w->text);
        if (at < w->n)
            snprintf(w->why, WHY, "byte %llu: the tokenizer has no token for the byte 0x%02x",
                     (unsigned long long)(w->before + at), byte);
        else
            snprintf(w->why, WHY,
                     "the tokenizer has no token for the byte 0x%02x, which `%.*s` has in the form that it cuts", byte,
                     (int)(n < 60 ? n : 60), s);
        return false;
    }
    return true;
}

/* The ids of a piece that nothing cuts any more. */
static bool merge(BpeWork *w, const char *s, size_t n)
{
    const Bpe *b = w->bpe;
    if (w->piece)
        return w->piece(w->piece_user, s, n) || no_memory(w);
    bool whole = b->lacks && b->direct && vocabulary_find(b->vocabulary, (const unsigned char *)s, n) >= 0;
    if (b->lacks && !whole && !has_bytes(w, s, n))
        return false;
    return merge_piece(&w->merging, b->vocabulary, b->direct, (const unsigned char *)s, n, w->out) || no_memory(w);
}

static bool cut(BpeWork *w, size_t step, const char *s, size_t n);

static bool with_blank(BpeWork *w, size_t step, const char *s, size_t n)
{
    if (s[0] == ' ')
        return cut(w, step + 1, s, n);
    char *copy = malloc(n + 1);
    if (!copy)
        return no_memory(w);
    copy[0] = ' ';
    memcpy(copy + 1, s, n);
    bool fine = cut(w, step + 1, copy, n + 1);
    free(copy);
    return fine;
}

/* The pieces of s by the steps from `step` on, and their ids. */
static bool cut(BpeWork *w, size_t step, const char *s, size_t n)
{
    const Bpe *b = w->bpe;
    if (!n)
        return true;
    if (step == b->steps)
        return merge(w, s, n);
    const BpeStep *t = &b->step[step];
    if (t->kind == STEP_BLANK)
        return with_blank(w, step, s, n);
    size_t done = 0, at = 0, from, to;
    while (at <= n) {
        int found = pattern_next(&t->pattern, w->data, s, n, at, &from, &to, w->why);
        if (found < 0)
            return false;
        if (!found)
            break;
        if (from == to) { /* nothing was matched: it is a place to cut, unless a match ends there */
            uint32_t c;
            size_t next = from < n ? utf8_read(s + from, n - from, &c) : 1;
            if (from > done && t->kind != STEP_MATCHES && !cut(w, step + 1, s + done, from - done))
                return false;
            done = from;
            at = from + next;
            continue;
        }
        if (from > done && t->kind != STEP_MATCHES && !cut(w, step + 1, s + done, from - done))
            return false;
        if (t->kind != STEP_BETWEEN && !cut(w, step + 1, s + from, to - from))
            return false;
        done = at = to;
    }
    return n == done || t->kind == STEP_MATCHES || cut(w, step + 1, s + done, n - done);
}

static bool put_id(BpeWork *w, int64_t id)
{
    if (!ids_room(w->out, 1))
        return no_memory(w);
    w->out->v[w->out->n++] = (uint32_t)id;
    return true;
}

static bool encode_normal(BpeWork *w, const char *s, size_t n)
{
    const Added *a = &w->bpe->normal;
    size_t at = 0, from, to;
    for (int64_t k; (k = added_next(a, w->data, s, n, at, &from, &to)) >= 0; at = to)
        if (!cut(w, 0, s + at, from - at) || !put_id(w, a->token[k].id))
            return false;
    return cut(w, 0, s + at, n - at);
}

static size_t ascii_run(const char *s, size_t n)
{
    size_t i = 0;
    for (uint64_t w; i + 8 <= n; i += 8) {
        memcpy(&w, s + i, 8);
        if (w & 0x8080808080808080u)
            break;
    }
    while (i < n && (unsigned char)s[i] < 128)
        i++;
    return i;
}

/* Appends to a text of malloc(). */
static bool append(char **text, size_t *n, size_t *room, const char *s, size_t more)
{
    if (*room - *n < more) {
        char *larger = realloc(*text, *room = 2 * (*n + more) + 64);
        if (!larger)
            return false;
        *text = larger;
    }
    if (more)
        memcpy(*text + *n, s, more);
    *n += more;
    return true;
}

/* In its normal form: ASCII is its own, but for the last character, with which what follows may be composed. */
static bool encode_form(BpeWork *w, const char *s, size_t n)
{
    size_t ascii = ascii_run(s, n), length = 0, room = 0;
    if (!w->bpe->nfc || ascii == n)
        return encode_normal(w, s, n);
    char *text = NULL;
    bool fine = true;
    for (size_t at = 0; fine && at < n;) {
        ascii = ascii_run(s + at, n - at);
        size_t keep = at + ascii < n && ascii ? ascii - 1 : ascii, end = at + ascii;
        fine = append(&text, &length, &room, s + at, keep);
        while (end < n && (unsigned char)s[end] >= 128)
            end++;
        char *form = NULL;
        long form_n = end > at + keep ? normal_form(w->bpe, s + at + keep, end - at - keep, &form) : 0;
        fine = fine && form_n >= 0 && append(&text, &length, &room, form ? form : "", (size_t)form_n);
        free(form);
        at = end;
    }
    fine = fine ? encode_normal(w, text, length) : no_memory(w);
    free(text);
    return fine;
}

static bool encode_valid(BpeWork *w, const char *s, size_t n)
{
    const Added *a = &w->bpe->raw;
    size_t at = 0, from, to;
    for (int64_t k; (k = added_next(a, w->data, s, n, at, &from, &to)) >= 0; at = to)
        if (!encode_form(w, s + at, from - at) || !put_id(w, a->token[k].id))
            return false;
    return encode_form(w, s + at, n - at);
}

bool bpe_encode(BpeWork *w, const char *text, size_t n, IdList *out, char why[WHY])
{
    uint32_t c;
    w->text = text;
    w->n = n;
    w->out = out;
    w->why = why;
    for (size_t at = 0; at < n;) {
        size_t end = at, bad;
        for (size_t step; end < n; end += step) {
            step = ascii_run(text + end, n - end);
            if (!step)
                step = utf8_read(text + end, n - end, &c);
            if (!step)
                break;
        }
        if (end > at && !encode_valid(w, text + at, end - at))
            return false;
        for (bad = end; bad < n && !utf8_read(text + bad, n - bad, &c);)
            bad++;
        if (bad > end && !merge(w, text + end, bad - end))
            return false;
        at = bad;
    }
    return true;
}

static bool keep_length(void *user, const char *s, size_t n)
{
    IdList *l = user;
    (void)s;
    if (!ids_room(l, 1))
        return false;
    l->v[l->n++] = (uint32_t)n;
    return true;
}

/* The lengths of pieces, and ids of added tokens, into `out`. */
static bool cut_only(BpeWork *w, const char *text, size_t n, IdList *out)
{
    char why[WHY];
    BpeWork with = *w;
    w->piece = keep_length;
    w->piece_user = out;
    bool fine = bpe_encode(w, text, n, out, why);
    w->piece = with.piece;
    w->piece_user = with.piece_user;
    return fine;
}

/* Whether the pieces of text[from, to) are those of its parts before and behind `at`. */
static bool cuts_at(BpeWork *w, const char *text, size_t from, size_t at, size_t to)
{
    IdList whole = {0}, parts = {0};
    bool same = cut_only(w, text + from, to - from, &whole) && cut_only(w, text + from, at - from, &parts) &&
                cut_only(w, text + at, to - at, &parts) && whole.n == parts.n &&
                (!whole.n || !memcmp(whole.v, parts.v, whole.n * sizeof *whole.v));
    free(whole.v);
    free(parts.v);
    return same;
}

bool bpe_cut(BpeWork *w, const char *text, size_t n, size_t *at)
{
    bool pattern = false;
    for (size_t i = 0; i < w->bpe->steps; i++)
        pattern |= w->bpe->step[i].kind != STEP_BLANK;
    size_t least = *at > PART_BACK ? *at - PART_BACK : 0;
    for (size_t i = *at; pattern && i > least + 1; i--) {
        /* a word ends, a line ends, a word begins: no pattern that is known joins these */
        unsigned char first = (unsigned char)text[i - 2], next = i < n ? (unsigned char)text[i] : 0;
        if (text[i - 1] != '\n' || first <= ' ' || (next < 128 ? !isalpha(next) : next < 0xc0))
            continue;
        size_t from = i > PART_AHEAD ? i - PART_AHEAD : 0, to = n - i > PART_AHEAD ? i + PART_AHEAD : n;
        while (from > 0 && from < i && ((unsigned char)text[from] & 0xc0) == 0x80)
            from++;
        while (to < n && to > i + 1 && ((unsigned char)text[to] & 0xc0) == 0x80)
            to--;
        if (!cuts_at(w, text, from, i, to))
            continue;
        *at = i;
        return true;
    }
    return false;
}

const char *bpe_decode(const Bpe *b, int64_t id, size_t *n)
{
    const Vocabulary *v = b->vocabulary;
    if (id < 0 || id >= v->size || !v->token[id].length)
        return NULL;
    *n = v->token[id].length;
    return (const char *)v->bytes + v->token[id].at;
}
