/* tokenizer.c - ids of a small vocabulary beside those of other programs, and files that are refused.
 *
 * In:  tokenizer/.   Out: `N passed, N failed`.
 * tokenizers 0.23.3 trained 460 tokens (tokenizer.json, the same ones as ranks and as a vocabulary with merges), and made the ids of
 * texts.json that cases.json has for what that file can say of cutting and of added tokens; tiktoken 0.14.0 those of the patterns of
 * std/tokenizers. blocks.txt has the FNV-1a hash of the ids of 16,384 characters a line, "a%c b%c" of each: tiktoken's by o200k_split
 * and by gpt2_split, and tokenizers' by `three`. Of the 68 lines some are drawn; those with characters newer than a library's tables
 * are always among them. Merging is compared with a loop that looks at every pair each time.
 */
#include "runtime/token/bpe.h"

#include "compiler/portable/utf8.h"
#include "grammar/ast.h"
#include "runtime/base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/drawn.h"
#include "tests/support/harness.h"

typedef struct Test {
    Harness h;
    Session s;
    BpeText json, ranks, vocab, merges, cases, texts, blocks;
    Bpe bpe;
    BpeWork work;
    uint64_t rounds; /* of edited files; 0: a few */
    char why[WHY];
} Test;

static BpeText read_file(Test *t, const char *name)
{
    const char *path = arena_printf(t->s.arena, "%s/tests/runtime/tokenizer/%s", VWN_SOURCE_DIR, name);
    FILE *f = fopen(path, "rb");
    Buf b = buf_new(t->s.arena);
    for (int c; f && (c = getc(f)) != EOF;)
        buf_putc(&b, (char)c);
    if (f)
        fclose(f);
    return (BpeText){name, b.s, b.n};
}

/* ---- files ---- */

/* The text with `from` replaced once by `to`. */
static const char *replaced(Test *t, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!CHECK_CASE(&t->h, at != NULL, from))
        return text;
    return arena_printf(t->s.arena, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

static const char byte_level[] =
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": true}";

/* NULL: as a file that says nothing else than how bytes are cut. */
static const char *file_of(Test *t, const char *cut, const char *normalizer, const char *added, const char *direct)
{
    const char *text = replaced(t, t->json.text, "\"@cut\"", cut ? cut : byte_level);
    text = replaced(t, text, "\"@normalizer\"", normalizer ? normalizer : "null");
    text = replaced(t, text, "\"@added\"", added ? added : "[]");
    return replaced(t, text, "\"@direct\"", direct ? direct : "false");
}

/* A pattern of std/tokenizers. */
static const char *pattern_of(Test *t, const char *name)
{
    size_t n;
    const char *text = std_text("std/tokenizers", &n),
               *at = text ? strstr(text, arena_printf(t->s.arena, "\nlet %s = \"", name)) : NULL;
    Buf b = buf_new(t->s.arena);
    if (!CHECK_CASE(&t->h, at != NULL, name))
        return "";
    for (at = strchr(at, '"') + 1; *at != '"'; at++)
        buf_putc(&b, *at == '\\' ? *++at : *at);
    return b.s;
}

static bool open_files(Test *t, const BpeFiles *files)
{
    t->why[0] = 0;
    return bpe_open(&t->s, files, &t->bpe, t->why) && bpe_work_open(&t->work, &t->bpe);
}

static bool open_text(Test *t, const char *text)
{
    return open_files(t, &(BpeFiles){.file = {"tokenizer.json", text, strlen(text)}});
}

static const BpeSpecial special[] = {{"<|endoftext|>", -1}, {"<|endofprompt|>", 500}};

static bool open_ranks(Test *t, const char *split)
{
    return open_files(t,
                      &(BpeFiles){.file = t->ranks, .split = pattern_of(t, split), .special = special, .n_special = 2});
}

/* ---- ids of others ---- */

static void case_of(Test *t, const Json *c, const Json *texts)
{
    const char *name = json_string(c, "name"), *cut = json_string(c, "cut");
    bool fine = cut ? open_text(t, file_of(t, cut, json_string(c, "normalizer"), json_string(c, "added"),
                                           json_string(c, "direct")))
                    : open_ranks(t, name);
    if (!CHECK_CASE(&t->h, fine, arena_printf(t->s.arena, "%s: %s", name, t->why)))
        return;
    const Json *ids = json_get(c, "ids")->first;
    size_t number = 0;
    for (const Json *x = texts->first; x && ids; x = x->next, ids = ids->next, number++) {
        IdList l = {0};
        fine = bpe_encode(&t->work, x->s, x->n, &l, t->why) && l.n == ids->n;
        const Json *id = ids->first;
        for (size_t i = 0; fine && i < l.n; i++, id = id->next)
            fine = l.v[i] == (uint32_t)id->integer;
        CHECK_CASE(&t->h, fine, arena_printf(t->s.arena, "%s: text %zu has other ids %s", name, number, t->why));
        free(l.v);
    }
    CHECK(&t->h, number == texts->n && !ids);
    bpe_work_close(&t->work);
}

static const Json *cases(Test *t)
{
    JsonError e;
    const Json *all = json_read(t->s.arena, t->cases.text, t->cases.n, &e);
    const Json *texts = json_read(t->s.arena, t->texts.text, t->texts.n, &e);
    CHECK(&t->h, all && texts && all->n == 18);
    for (const Json *c = all ? all->first : NULL; c && texts; c = c->next)
        case_of(t, c, texts);
    return all;
}

static uint64_t hash_ids(const IdList *l)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < l->n; i++)
        for (int b = 0; b < 32; b += 8)
            h = (h ^ (l->v[i] >> b & 255)) * 0x100000001b3u;
    return h;
}

static uint64_t hash_block(Test *t, uint32_t block)
{
    enum { BLOCK = 0x4000 };
    Buf b = buf_new(t->s.arena);
    for (uint32_t c = block * BLOCK; c < (block + 1) * BLOCK; c++) {
        char one[4];
        size_t n = utf8_write(c, one);
        if (c >= 0xd800 && c < 0xe000)
            continue;
        for (int i = 0; i < 2; i++) {
            buf_puts(&b, i ? " b" : "a");
            buf_put(&b, one, n);
        }
    }
    IdList l = {0};
    uint64_t h = bpe_encode(&t->work, b.s, b.n, &l, t->why) ? hash_ids(&l) : 0;
    free(l.v);
    return h;
}

/* Which blocks are looked at: those where scripts are, 0 to 7, and some of the others. */
static void characters(Test *t, const Json *all)
{
    static const char *const by[] = {"o200k_split", "gpt2_split", "three"};
    const Json *three = all ? all->first : NULL;
    while (three && strcmp(json_string(three, "name"), "three"))
        three = three->next;
    for (int k = 0; k < 3 && three; k++) {
        CaseDraw draw = {.one_in = 8, .sanitized = 60};
        bool fine = k == 2
                        ? open_text(t, file_of(t, json_string(three, "cut"), NULL, json_string(three, "added"), NULL))
                        : open_ranks(t, by[k]);
        CHECK_CASE(&t->h, fine, t->why);
        const char *line = t->blocks.text;
        for (uint32_t block = 0; fine && block < 68; block++, line = strchr(line, '\n') + 1) {
            unsigned long long want[3];
            CHECK(&t->h, sscanf(line, "%llx %llx %llx", &want[0], &want[1], &want[2]) == 3);
            if (case_drawn(&draw, block) | (!SANITIZED && (block < 4 || block == 4 + (uint32_t)k)))
                CHECK_CASE(&t->h, hash_block(t, block) == want[k],
                           arena_printf(t->s.arena, "%s: block %u", by[k], (unsigned)block));
        }
        bpe_work_close(&t->work);
    }
}

/* The same tokens in the form of GPT-2's files, whose special token is behind them. */
static void two_files(Test *t)
{
    const BpeFiles files = {.file = t->vocab,
                            .merges = t->merges,
                            .split = pattern_of(t, "gpt2_split"),
                            .special = special,
                            .n_special = 2};
    static const char text[] = "the earth<|endoftext|> brought forth 12 grasses\n\n  and<|endofprompt|>";
    IdList a = {0}, b = {0};
    CHECK_CASE(&t->h, open_files(t, &files) && bpe_encode(&t->work, text, strlen(text), &a, t->why), t->why);
    bpe_work_close(&t->work);
    CHECK(&t->h, open_ranks(t, "gpt2_split") && bpe_encode(&t->work, text, strlen(text), &b, t->why));
    bpe_work_close(&t->work);
    CHECK(&t->h, a.n == b.n && a.n && !memcmp(a.v, b.v, a.n * sizeof *a.v) && a.v[a.n - 1] == 500);
    free(a.v);
    free(b.v);
}

/* ---- merging ---- */

/* The lowest rank first, of equal ones the first: every pair is looked at before every merge. */
static size_t merge_slowly(const Vocabulary *v, const unsigned char *s, size_t n, uint32_t *id)
{
    size_t k = n;
    for (size_t i = 0; i < n; i++)
        id[i] = (uint32_t)v->byte[s[i]];
    for (;;) {
        const VocabularyMerge *best = NULL;
        size_t at = 0;
        for (size_t i = 0; i + 1 < k; i++) {
            const VocabularyMerge *m = vocabulary_pair(v, id[i], id[i + 1]);
            if (m && (!best || m->rank < best->rank)) {
                best = m;
                at = i;
            }
        }
        if (!best)
            return k;
        id[at] = best->id;
        memmove(id + at + 1, id + at + 2, (--k - at - 1) * sizeof *id);
    }
}

static uint32_t below(uint64_t *state, uint32_t n) { return (uint32_t)((harness_random(state) + 1) / 2 * n); }

static void merging(Test *t)
{
    enum { MOST = 400 };
    static const char letters[] = "the and of aeinor";
    uint64_t state = 7;
    uint32_t want[MOST];
    unsigned char s[MOST];
    size_t longest = 0;
    CHECK_CASE(&t->h, open_text(t, file_of(t, NULL, NULL, NULL, NULL)), t->why);
    for (int i = 0; i < 600; i++) {
        size_t n = 1 + below(&state, i % 3 ? 20 : MOST - 1);
        for (size_t k = 0; k < n; k++)
            s[k] =
                i % 5 ? (unsigned char)letters[below(&state, sizeof letters - 1)] : (unsigned char)below(&state, 256);
        size_t wanted = merge_slowly(t->bpe.vocabulary, s, n, want);
        IdList l = {0};
        bool fine = merge_piece(&t->work.merging, t->bpe.vocabulary, false, s, n, &l);
        CHECK(&t->h, fine && l.n == wanted && !memcmp(l.v, want, wanted * sizeof *want));
        longest = n > longest ? n : longest;
        free(l.v);
    }
    CHECK(&t->h, longest > 300);
    bpe_work_close(&t->work);
}

/* More merges than tokens, as where every way to make a token is one; most bytes have no token. */
static void many_merges(Test *t)
{
    enum { MOST = 60 };
    Buf vocab = buf_new(t->s.arena), merges = buf_new(t->s.arena);
    for (int n = 1; n <= MOST; n++) {
        buf_printf(&vocab, "%s\"%.*s\": %d", n > 1 ? ", " : "", n,
                   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", n - 1);
        for (int k = 1; k < n; k++)
            buf_printf(&merges, "%s\"%.*s %.*s\"", n > 2 || k > 1 ? ", " : "", k,
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", n - k,
                       "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    }
    const char *text = arena_printf(
        t->s.arena, "{\"model\": {\"type\": \"BPE\", \"vocab\": {%s}, \"merges\": [%s]}, \"pre_tokenizer\": %s}",
        vocab.s, merges.s, byte_level);
    unsigned char s[300];
    uint32_t want[300];
    memset(s, 'a', sizeof s);
    if (!CHECK_CASE(&t->h, open_text(t, text), t->why))
        return;
    CHECK(&t->h, t->bpe.vocabulary->merges == MOST * (MOST - 1) / 2);
    for (size_t n = 1; n <= sizeof s; n += 13) {
        IdList l = {0};
        size_t wanted = merge_slowly(t->bpe.vocabulary, s, n, want);
        bool fine = bpe_encode(&t->work, (const char *)s, n, &l, t->why);
        CHECK(&t->h, fine && l.n == wanted && !memcmp(l.v, want, wanted * sizeof *want));
        free(l.v);
    }
    IdList l = {0};
    CHECK(&t->h, !bpe_encode(&t->work, "ab", 2, &l, t->why) &&
                     strstr(t->why, "byte 1: the tokenizer has no token for the byte 0x62"));
    free(l.v);
    bpe_work_close(&t->work);
}

/* Few bytes have tokens. Added tokens need none, and what matters is the form that is cut. */
static void few_bytes(Test *t)
{
    static const struct {
        const char *text;
        size_t n;
        const char *why; /* NULL: `ids` */
        size_t n_ids;
        uint32_t ids[4];
    } row[] = {{"ab<|x|>", 7, NULL, 2, {3, 7}},
               {"a<|x|", 5, "byte 1: the tokenizer has no token for the byte 0x3c", 0, {0}},
               {"ab\xff", 3, "byte 2: the tokenizer has no token for the byte 0xff", 0, {0}},
               {"a\xe2\x84\xa6", 4, NULL, 3, {0, 5, 6}}, /* U+2126, whose form is U+03A9 */
               {"ba\xcc\x81", 4, "the tokenizer has no token for the byte 0xc3", 0, {0}},
               {"\x01\x02", 2, "no token for the byte 0x01", 0, {0}},
               {"\x02\0\xc3\xa9", 4, NULL, 1, {8}}, /* by the form of what is written as \u0002 \u0000 e U+0301 */
               {"\x02", 1, "no token for the byte 0x02", 0, {0}}};
    static const char file[] =
        "{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \"\u00cc\": 2, \"ab\": 3, \"\u0123\": 4, "
        "\"\u00ce\": 5, \"\u00a9\": "
        "6}, \"merges\": [\"a b\"]}, \"normalizer\": {\"type\": \"NFC\"}, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
        "\"add_prefix_space\": false}, \"added_tokens\": [{\"id\": 7, \"content\": \"<|x|>\", \"normalized\": false}, "
        "{\"id\": 8, "
        "\"content\": \"\\u0002\\u0000e\\u0301\"}]}";
    CHECK_CASE(&t->h, open_text(t, file), t->why);
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        IdList l = {0};
        bool fine = bpe_encode(&t->work, row[i].text, row[i].n, &l, t->why);
        CHECK_CASE(&t->h,
                   row[i].why ? !fine && strstr(t->why, row[i].why)
                              : fine && l.n == row[i].n_ids && !memcmp(l.v, row[i].ids, l.n * sizeof *l.v),
                   arena_printf(t->s.arena, "text %zu: %s", i, t->why));
        free(l.v);
    }
    bpe_work_close(&t->work);
    /* the blank that stands before a text is a byte, too */
    IdList l = {0};
    CHECK(&t->h, open_text(t, replaced(t, file, "\"add_prefix_space\": false", "\"add_prefix_space\": true")) &&
                     !bpe_encode(&t->work, "ab", 2, &l, t->why) && strstr(t->why, "no token for the byte 0x20"));
    free(l.v);
    bpe_work_close(&t->work);
}

/* A piece that is a token of ranks needs no token for its bytes. */
static void whole_piece(Test *t)
{
    const BpeFiles files = {.file = {"ranks", "YWI= 3\n", 7}, .split = "a.|."};
    IdList l = {0};
    CHECK(&t->h, open_files(t, &files) && bpe_encode(&t->work, "abab", 4, &l, t->why) && l.n == 2 && l.v[1] == 3);
    CHECK(&t->h, !bpe_encode(&t->work, "abb", 3, &l, t->why) && strstr(t->why, "byte 2: the tokenizer has no token"));
    free(l.v);
    bpe_work_close(&t->work);
}

/* Added tokens of many lengths: each of them is looked for wherever one may begin. */
static void many_lengths(Test *t, int n)
{
    Buf added = buf_new(t->s.arena);
    char x[600];
    memset(x, 'x', sizeof x);
    for (int i = 1; i <= n; i++)
        buf_printf(&added, "%s{\"id\": %d, \"content\": \"<%.*s\"}", i > 1 ? ", " : "[", 460 + i, i, x);
    buf_putc(&added, ']');
    const char *text = file_of(t, NULL, NULL, added.s, NULL);
    IdList l = {0};
    if (n > 512) {
        CHECK_CASE(&t->h, !open_text(t, text) && strstr(t->why, "more than 512 different lengths"), t->why);
        return;
    }
    CHECK_CASE(&t->h, open_text(t, text) && bpe_encode(&t->work, "<<xxx<xx>", 9, &l, t->why), t->why);
    CHECK(&t->h, l.n == 4 && l.v[1] == 463 && l.v[2] == 462);
    free(l.v);
    bpe_work_close(&t->work);
}

static void refused_special(Test *t)
{
    static const BpeSpecial twice[] = {{"<x>", -1}, {"<x>", 600}}, half[] = {{"\xa9", -1}};
    const char *split = pattern_of(t, "gpt2_split");
    CHECK(&t->h, !open_files(t, &(BpeFiles){.file = t->ranks, .split = split, .special = twice, .n_special = 2}) &&
                     strstr(t->why, "`<x>` stands there twice"));
    CHECK(&t->h, !open_files(t, &(BpeFiles){.file = t->ranks, .split = split, .special = half, .n_special = 1}) &&
                     strstr(t->why, "is not UTF-8"));
}

/* Any bytes come back. */
static void any_bytes(Test *t)
{
    static const char *const by[] = {"gpt2_split", "cl100k_split", "o200k_split"};
    uint64_t state = 11;
    for (int i = 0; i < 3; i++) {
        CHECK(&t->h, open_ranks(t, by[i]));
        for (int round = 0; round < 200; round++) {
            char s[200];
            size_t n = below(&state, sizeof s), at = 0;
            for (size_t k = 0; k < n; k++)
                s[k] = round % 2 ? (char)below(&state, 256) : "\xe2\x82\xac\xf0 <|endoftext|>\n"[below(&state, 19)];
            IdList l = {0};
            bool fine = bpe_encode(&t->work, s, n, &l, t->why);
            for (size_t k = 0; fine && k < l.n; k++) {
                size_t length = 0;
                const char *token = bpe_decode(&t->bpe, l.v[k], &length);
                fine = token && length <= n - at && !memcmp(s + at, token, length);
                at += length;
            }
            CHECK(&t->h, fine && at == n);
            free(l.v);
        }
        bpe_work_close(&t->work);
    }
}

/* ---- what is refused ---- */

static void refuse(Test *t, const char *text, const char *what)
{
    bool fine = !open_text(t, text) && strstr(t->why, what);
    CHECK_CASE(&t->h, fine, arena_printf(t->s.arena, "wanted: %s\n  got: %s", what, t->why));
}

static const char *split_by(Test *t, const char *regex)
{
    return file_of(
        t,
        arena_printf(
            t->s.arena,
            "{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": \"%s\"}, "
            "\"behavior\": \"Isolated\", \"invert\": false}, %s]}",
            regex, byte_level),
        NULL, NULL, NULL);
}

static void refused_files(Test *t)
{
    static const struct {
        const char *from, *to, *what;
    } edit[] = {
        {"\"BPE\"", "\"Unigram\"", "the model `Unigram` is not read"},
        {"\"dropout\": null", "\"dropout\": 0.1", "`dropout` of the model"},
        {"\"byte_fallback\": false", "\"byte_fallback\": true", "`byte_fallback`"},
        {"\"end_of_word_suffix\": null", "\"end_of_word_suffix\": \"</w>\"", "`end_of_word_suffix`"},
        {"\"truncation\": null", "\"truncation\": {}", "`truncation`"},
        {"\"padding\": null", "\"extra\": null", "the member `extra`"},
        {"\"post_processor\": null", "\"post_processor\": {\"type\": \"Odd\"}", "the post_processor `Odd`"},
        {"\"decoder\": {\"type\": \"ByteLevel\"", "\"decoder\": {\"type\": \"WordPiece\"", "the decoder `WordPiece`"},
        {"\"normalizer\": null", "\"normalizer\": {\"type\": \"NFKC\"}", "the normalizer `NFKC`"},
        {"\"normalizer\": null",
         "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Lowercase\"}]}", "`Lowercase`"},
        {"\"pre_tokenizer\": {\"type\": \"ByteLevel\"", "\"pre_tokenizer\": {\"type\": \"Metaspace\"",
         "the pre_tokenizer `Metaspace`"},
        {"\"merges\":", "\"merge\":", "the member `merge`"},
        {"\"!\": 0,", "\"!\": 0, \"!\": 460,", "this token stands here twice"},
        {"\"!\": 0,", "\"!\": 0, \"new\": 7,", "two tokens have this id"},
        {"\"!\": 0,", "\"!\": 4194304,", "this is no id"},
        {"\"!\": 0,", "\"\": 0,", "this token is empty"},
        {"\"!\": 0,", "\"!\": 0 \"x\": 460,", "`,` or `}` is expected"},
        {"\"merges\": [", "\"merges\": [\"q qq\", ", "this merge is of a token that is not in the vocabulary"},
        {"\"merges\": [", "\"merges\": [\"q q\", ", "what this merge makes is not in the vocabulary"},
        {"\"merges\": [", "\"merges\": [\"q\", ", "a merge has two tokens"},
        {"\"merges\": [", "\"merges\": [7, ", "a merge is expected here"},
        {"\"added_tokens\": []", "\"added_tokens\": [{\"id\": 0, \"content\": \"x y\"}]", "which is another token's"},
        {"\"added_tokens\": []", "\"added_tokens\": [{\"id\": 460, \"content\": \"x\", \"odd\": 1}]",
         "the member `odd`"},
        {"\"added_tokens\": []", "\"added_tokens\": [{\"id\": 460, \"content\": \"\u00e9\"}]",
         "and in the vocabulary 165"},
        {"\"added_tokens\": []", "\"added_tokens\": 3", "`added_tokens` is no list"},
    };
    const char *fine = file_of(t, NULL, NULL, NULL, NULL);
    CHECK_CASE(&t->h, open_text(t, fine), t->why);
    bpe_work_close(&t->work);
    for (size_t i = 0; i < COUNT_OF(edit); i++)
        refuse(t, replaced(t, fine, edit[i].from, edit[i].to), edit[i].what);
    Buf deep = buf_new(t->s.arena);
    for (int i = 0; i < 100000; i++)
        buf_putc(&deep, '[');
    refuse(t, replaced(t, fine, "\"post_processor\": null", arena_printf(t->s.arena, "\"post_processor\": %s", deep.s)),
           "byte ");
    refuse(t, "{\"a\": 1}", "needs its merges");
    refuse(t, "no tokens\n", "line 1: this is no token in base64 and its rank");
    CHECK(&t->h, !open_files(t, &(BpeFiles){.file = t->ranks}) && strstr(t->why, "give `split`"));
    for (size_t n = 1; n < t->json.n; n += SANITIZED ? 997 : 97) /* cut anywhere: refused, never read in part */
        CHECK(&t->h, !open_text(t, arena_copy(t->s.arena, fine, n)));
}

/* Files with bytes changed, taken out and repeated: refused with a sentence, or a tokenizer that makes ids. */
static void edited_files(Test *t, uint64_t rounds)
{
    static const char text[] = "the earth 12 caf\xc3\xa9  \xff\n<|endoftext|> word";
    const char *whole[] = {
        file_of(t, NULL, "{\"type\": \"NFC\"}", "[{\"id\": 460, \"content\": \"word\", \"lstrip\": true}]", NULL),
        t->ranks.text};
    const char *split = pattern_of(t, "o200k_split");
    size_t opened = 0;
    for (uint64_t seed = 1; seed <= rounds; seed++) {
        uint64_t state = seed * 7919;
        const Session outer = t->s;
        t->s = (Session){.owner = outer.owner};
        session_open(&t->s, outer.owner);
        bool ranks = seed % 4 == 0;
        size_t n = strlen(whole[ranks]);
        char *edited = arena_alloc(t->s.arena, n + 64);
        memcpy(edited, whole[ranks], n + 1);
        for (uint32_t k = below(&state, 4); k < 4; k++) {
            size_t at = below(&state, seed % 3   ? (uint32_t)n
                                      : n < 1200 ? (uint32_t)n
                                                 : 1200),
                   length = 1 + below(&state, 12);
            length = at + length > n ? n - at : length;
            if (seed % 5 == 0)
                memmove(edited + at, edited + at + length, n - at - length + 1);
            else if (seed % 5 == 1)
                memcpy(edited + at, whole[ranks] + below(&state, (uint32_t)(n - length)), length);
            else
                edited[at] = "\"[]{}:,0\\ \xc3z"[below(&state, 12)];
            n = strlen(edited);
        }
        IdList l = {0};
        bool fine =
            ranks ? open_files(t, &(BpeFiles){.file = {"ranks", edited, n}, .split = split}) : open_text(t, edited);
        opened += fine;
        CHECK_CASE(&t->h, fine || t->why[0], "a file is refused without a word");
        if (fine)
            CHECK_CASE(&t->h,
                       bpe_encode(&t->work, text, sizeof text - 1, &l, t->why) ||
                           strstr(t->why, "no token for the byte"),
                       t->why);
        if (fine)
            bpe_work_close(&t->work);
        free(l.v);
        session_close(&t->s);
        t->s = outer;
    }
    printf("%zu of %zu edited files are tokenizers\n", opened, (size_t)rounds);
    CHECK(&t->h, opened > rounds / 200);
}

static void refused_patterns(Test *t)
{
    static const struct {
        const char *regex, *what;
    } row[] = {{"[a-z", "`]` is missing"},
               {"(a", "`)` is missing"},
               {"a)", "`(` is missing"},
               {"\\\\w+", "this escape"},
               {"\\\\p{Han}", "this class of"},
               {"[[:alpha:]]", "brackets within brackets"},
               {"a{2000}", "number of repeats"},
               {"[a&&b]", "sets of classes"},
               {"(?P<x>a)", "a group of this kind"},
               {"\\\\p{N}{1,3}+", "repeats"},
               {"*a", "nothing to repeat"},
               {"\\\\1", "this escape"},
               {"(((a{1000}){1000}){1000})", "compiled"},
               {"(?<=a*)b", "compiled"},
               {"$", "ends of lines"}};
    for (size_t i = 0; i < COUNT_OF(row); i++)
        refuse(t, split_by(t, row[i].regex), row[i].what);
    /* one whose steps take memory with each character */
    enum { MANY = 200000 };
    char *many = arena_alloc(t->s.arena, MANY);
    IdList long_one = {0}, same = {0};
    for (int i = 0; i < MANY; i++)
        many[i] = "abcd"[i / 7 % 2 * 2 + i % 2];
    CHECK_CASE(&t->h,
               open_text(t, split_by(t, "(?:[ac]|[bd])+")) && bpe_encode(&t->work, many, MANY, &long_one, t->why),
               t->why);
    bpe_work_close(&t->work);
    CHECK_CASE(&t->h, open_text(t, split_by(t, "[a-d]+")) && bpe_encode(&t->work, many, MANY, &same, t->why), t->why);
    bpe_work_close(&t->work);
    CHECK(&t->h, long_one.n == same.n && same.n && !memcmp(long_one.v, same.v, same.n * sizeof *same.v));
    free(long_one.v);
    free(same.v);
    /* one that would take for ever on a text */
    char text[60];
    IdList l = {0};
    memset(text, 'a', sizeof text);
    CHECK_CASE(&t->h, open_text(t, split_by(t, "(?:a|a|a)*[bc]")), t->why);
    CHECK_CASE(&t->h, !bpe_encode(&t->work, text, sizeof text, &l, t->why) && strstr(t->why, "gives up"), t->why);
    bpe_work_close(&t->work);
    free(l.v);
}

static Status run(void *user)
{
    Test *t = user;
    session_open(&t->s, t->s.owner);
    t->json = read_file(t, "tokenizer.json");
    t->ranks = read_file(t, "ranks.tiktoken");
    t->vocab = read_file(t, "vocab.json");
    t->merges = read_file(t, "merges.txt");
    t->cases = read_file(t, "cases.json");
    t->texts = read_file(t, "texts.json");
    t->blocks = read_file(t, "blocks.txt");
    characters(t, cases(t));
    two_files(t);
    merging(t);
    many_merges(t);
    few_bytes(t);
    whole_piece(t);
    many_lengths(t, 512);
    many_lengths(t, 513);
    any_bytes(t);
    refused_files(t);
    refused_special(t);
    refused_patterns(t);
    edited_files(t, t->rounds ? t->rounds : test_whole() ? 20000 : SANITIZED ? 100 : 400);
    return ST_OK;
}

/* `test_runtime_tokenizer 100000`: as many edited files. */
int main(int n, char **argument)
{
    Test t = {.s.owner = vwn_open(NULL), .rounds = n > 1 ? strtoull(argument[1], NULL, 10) : 0};
    Utf8proc forms;
    Pcre2 patterns;
    if (!library_pcre2(&patterns, t.why) || !library_utf8proc(&forms, t.why)) {
        printf("skipped: %s\n", t.why);
        return 77;
    }
    Status st = guarded(t.s.owner->ctx, run, &t);
    CHECK_CASE(&t.h, st == ST_OK, t.s.owner->ctx->message);
    session_close(&t.s);
    vwn_close(t.s.owner);
    return harness_end(&t.h);
}
