/* shards.c - shards of token ids beside ids of other programs, and where long texts are cut.
 *
 * In:  tokenizer/ (see tokenizer.c).   Out: `N passed, N failed`.
 * The documents of a file of JSON lines are those of texts.json, and what is between two separators in the shards is what tiktoken made
 * of them. A long text has the same ids in one piece, in parts, and in shards.
 */
#include "runtime/token/bpe.h"

#include "grammar/ast.h"
#include "runtime/base/json.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/support/harness.h"

typedef struct Test {
    Harness h;
    Session s;
    vwn_context *context;
    BpeText ranks, texts, cases;
    Bpe bpe;
    BpeWork work;
    char why[WHY];
} Test;

enum { SEPARATOR = 460, LONG = 1 << 20 };

static BpeText read_file(Test *t, const char *folder, const char *name)
{
    const char *path = arena_printf(t->s.arena, "%s%s", folder, name);
    FILE *f = fopen(path, "rb");
    Buf b = buf_new(t->s.arena);
    for (int c; f && (c = getc(f)) != EOF;)
        buf_putc(&b, (char)c);
    if (f)
        fclose(f);
    return (BpeText){name, b.s, b.n};
}

static void write_file(Test *t, const char *name, const char *text, size_t n)
{
    FILE *f = fopen(name, "wb");
    CHECK(&t->h, f && fwrite(text, 1, n, f) == n && !fclose(f));
}

static const char model[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/tokenizers\"\n"
    "model m { context = 8, width = 8, mask = causal, init = normal(std = 0.02), out_init = normal(std = 0.02), "
    "pre_norm = none, connection = "
    "residual()\n embed tokens { vocab = 512 }\n ffn { hidden = 8, activation = gelu }\n head lm { norm = none } }\n"
    "train { data = token_files(\"shards/*.bin\"), batch = 2 seqs, length = 2 steps, seed = 1, precision = fp32\n"
    " tokenizer = file(\"%s/tests/runtime/tokenizer/ranks.tiktoken\", split = gpt2_split, special = "
    "[\"<|endoftext|>\", "
    "[\"<|endofprompt|>\", 500]])\n"
    " optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 } }\n";

/* The ids of all shards in `folder`, in their order; how many shards there are. */
static size_t read_shards(Test *t, const char *folder, IdList *out)
{
    size_t shards = 0;
    for (;; shards++) {
        BpeText x = read_file(t, folder, arena_printf(t->s.arena, "/tokens_%06zu.bin", shards));
        if (!x.n)
            return shards;
        CHECK(&t->h, x.n % 2 == 0 && ids_room(out, x.n / 2));
        for (size_t i = 0; i + 1 < x.n; i += 2)
            out->v[out->n++] = (uint32_t)((unsigned char)x.text[i] | (unsigned char)x.text[i + 1] << 8);
    }
}

static void drop(void *user, const char *text, size_t n)
{
    (void)user;
    (void)text;
    (void)n;
}

static bool tokenize(Test *t, const vwn_tokenize_options *asked)
{
    vwn_tokenize_options how = *asked;
    vwn_writer out = {drop, NULL};
    vwn_file_options file = {.path = "m.vwn"};
    vwn_status st = vwn_check(t->context, &file, &how.unit);
    if (CHECK_CASE(&t->h, st == VWN_OK, "m.vwn has errors"))
        st = vwn_tokenize(t->context, &how, &out);
    return CHECK_CASE(&t->h, st == VWN_OK, vwn_message(t->context));
}

static void ids_of_others(Test *t)
{
    JsonError e;
    const Json *texts = json_read(t->s.arena, t->texts.text, t->texts.n, &e);
    const Json *c = json_read(t->s.arena, t->cases.text, t->cases.n, &e);
    for (c = c ? c->first : NULL; c && strcmp(json_string(c, "name"), "gpt2_split") != 0;)
        c = c->next;
    if (!CHECK(&t->h, texts && c))
        return;
    Buf lines = buf_new(t->s.arena);
    IdList want = {0}, got = {0};
    const Json *ids = json_get(c, "ids")->first;
    for (const Json *x = texts->first; x && ids; x = x->next, ids = ids->next) {
        buf_puts(&lines, " {\"id\": [1, {}], \"body\": ");
        buf_json_string(&lines, x->s, x->n);
        buf_puts(&lines, x->next ? "}\r\n\n" : "}");
        CHECK(&t->h, ids_room(&want, ids->n + 1));
        want.n -= !x->n; /* no text, no document */
        want.v[x->n ? want.n++ : 0] = x->n ? SEPARATOR : want.v[0];
        for (const Json *id = ids->first; id; id = id->next)
            want.v[want.n++] = (uint32_t)id->integer;
    }
    write_file(t, "texts.jsonl", lines.s, lines.n);
    const char *text = "texts.jsonl";
    if (tokenize(t, &(vwn_tokenize_options){.text = &text,
                                            .n_texts = 1,
                                            .folder = "shards",
                                            .field = "body",
                                            .shard_tokens = 50,
                                            .overwrite = true})) {
        size_t shards = read_shards(t, "shards", &got);
        CHECK(&t->h, shards == (want.n + 49) / 50 && shards > 5);
        CHECK(&t->h, got.n == want.n && !memcmp(got.v, want.v, want.n * sizeof *want.v));
    }
    free(want.v);
    free(got.v);
}

/* Texts of texts.json, one behind the other, with ends of lines of all sorts between them. */
static BpeText long_text(Test *t)
{
    static const char *const between[] = {"\n",     "\r\n", "\n\n", " \n", "\n ",
                                          "\n\t\n", " ",    "",     ".\n", "\xe3\x80\x82\n"};
    JsonError e;
    const Json *texts = json_read(t->s.arena, t->texts.text, t->texts.n, &e);
    Buf b = buf_new(t->s.arena);
    uint64_t state = 7;
    while (b.n < LONG)
        for (const Json *x = texts->first; x; x = x->next) {
            size_t k = (size_t)((harness_random(&state) + 1) / 2 * COUNT_OF(between));
            if (x->n < 400 && k < COUNT_OF(between)) {
                buf_put(&b, x->s, x->n);
                buf_puts(&b, between[k]);
            }
        }
    return (BpeText){"long.txt", b.s, b.n};
}

/* How many cuts a text has, of which each part has the ids of its own. */
static size_t in_parts(Test *t, const BpeText *x, size_t part)
{
    IdList whole = {0}, parts = {0};
    size_t cuts = 0, from = 0;
    bool fine = bpe_encode(&t->work, x->text, x->n, &whole, t->why);
    while (fine && x->n - from > part + PART_AHEAD) {
        size_t most = part, at = part;
        bool cut = bpe_cut(&t->work, x->text + from, x->n - from, &at);
        while (!cut && x->n - from > 2 * most + PART_AHEAD) {
            at = most *= 2;
            cut = bpe_cut(&t->work, x->text + from, x->n - from, &at);
        }
        if (cut)
            CHECK(&t->h, at > 0 && at <= most);
        else
            at = x->n - from;
        fine = bpe_encode(&t->work, x->text + from, at, &parts, t->why);
        from += at;
        cuts += cut;
    }
    fine = fine && bpe_encode(&t->work, x->text + from, x->n - from, &parts, t->why);
    CHECK_CASE(&t->h, fine && whole.n == parts.n && !memcmp(whole.v, parts.v, whole.n * sizeof *whole.v),
               "parts have other ids than the whole text");
    free(whole.v);
    free(parts.v);
    return cuts;
}

static bool open_pattern(Test *t, const char *split)
{
    static const BpeSpecial special[] = {{"<|endoftext|>", -1}, {"<|endofprompt|>", 500}, {"a\nb", 501}};
    BpeFiles files = {.file = t->ranks, .split = split, .special = special, .n_special = COUNT_OF(special)};
    return CHECK_CASE(&t->h, bpe_open(&t->s, &files, &t->bpe, t->why) && bpe_work_open(&t->work, &t->bpe), t->why);
}

static void long_texts(Test *t)
{
    BpeText x = long_text(t);
    static const char *const patterns[] = {
        NULL, "\\s+|\\S+",
        "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"};
    for (size_t i = 0; i < COUNT_OF(patterns); i++) {
        if (!open_pattern(t, patterns[i] ? patterns[i] : bpe_gpt2_split))
            continue;
        CHECK(&t->h, in_parts(t, &x, 1000) > 500);
        bpe_work_close(&t->work);
    }
    /* what joins a line and the next one, and a token that does: no cut there */
    static const char joined[] =
        "aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb aa\nbb";
    size_t at = 60;
    if (open_pattern(t, "\\p{L}+\\n\\p{L}+|\\s|\\S")) {
        CHECK(&t->h, !bpe_cut(&t->work, joined, sizeof joined - 1, &at) && at == 60);
        bpe_work_close(&t->work);
    }
    if (open_pattern(t, bpe_gpt2_split)) {
        CHECK(&t->h, !bpe_cut(&t->work, joined, sizeof joined - 1, &at) && at == 60);
        CHECK(&t->h, bpe_cut(&t->work, "aa\ncc aa\ncc", 11, &(size_t){10}));
        bpe_work_close(&t->work);
    }
    /* and in shards */
    IdList whole = {0}, got = {0};
    static const BpeSpecial special[] = {{"<|endoftext|>", -1}, {"<|endofprompt|>", 500}};
    BpeFiles files = {.file = t->ranks, .split = bpe_gpt2_split, .special = special, .n_special = 2};
    bool fine = bpe_open(&t->s, &files, &t->bpe, t->why) && bpe_work_open(&t->work, &t->bpe) && ids_room(&whole, 1);
    if (!CHECK_CASE(&t->h, fine, t->why))
        return;
    whole.v[whole.n++] = SEPARATOR;
    CHECK_CASE(&t->h, bpe_encode(&t->work, x.text, x.n, &whole, t->why), t->why);
    bpe_work_close(&t->work);
    write_file(t, "long.txt", x.text, x.n);
    const char *text = "long.txt";
    if (tokenize(t, &(vwn_tokenize_options){.text = &text, .n_texts = 1, .folder = "shards", .overwrite = true})) {
        CHECK(&t->h, read_shards(t, "shards", &got) == 1);
        CHECK(&t->h, got.n == whole.n && !memcmp(got.v, whole.v, whole.n * sizeof *whole.v));
    }
    free(whole.v);
    free(got.v);
}

static Status run(void *user)
{
    Test *t = user;
    session_open(&t->s, t->s.owner);
    const char *folder = VWN_SOURCE_DIR "/tests/runtime/tokenizer/";
    t->ranks = read_file(t, folder, "ranks.tiktoken");
    t->texts = read_file(t, folder, "texts.json");
    t->cases = read_file(t, folder, "cases.json");
    const char *file = arena_printf(t->s.arena, model, VWN_SOURCE_DIR);
    write_file(t, "m.vwn", file, strlen(file));
    CHECK(&t->h, !system("rm -rf shards")); /* of another build */
    ids_of_others(t);
    long_texts(t);
    return ST_OK;
}

int main(void)
{
    Test t = {.s.owner = vwn_open(NULL), .context = vwn_open(&(vwn_options){.threads = 3})};
    Pcre2 patterns;
    if (!library_pcre2(&patterns, t.why)) {
        printf("skipped: %s\n", t.why);
        return 77;
    }
    Status st = guarded(t.s.owner->ctx, run, &t);
    CHECK_CASE(&t.h, st == ST_OK, t.s.owner->ctx->message);
    session_close(&t.s);
    vwn_close(t.s.owner);
    vwn_close(t.context);
    return harness_end(&t.h);
}
