/* data.c - the order of windows, tokenizers, good and bad token files.
 *
 * When: quick, checked.
 */
#include <stdlib.h>
#include <unistd.h>

#include "runtime/data/feed.h"
#include "support.h"

typedef struct Opening {
    Session s;
    DataSpec spec;
    TokenizerSpec tokenizer;
    Tokenizer *known;
    Model model;
    int64_t context;
    Data *data;
    vwn_context *owner;
} Opening;

static Status open_body(void *user)
{
    Opening *o = user;
    session_open(&o->s, o->owner);
    DataOptions how = {&o->spec, &o->tokenizer, o->known, &o->model, o->context};
    o->data = data_open(&o->s, &how);
    split_need_window(&o->s, &o->data->train);
    return ST_OK;
}

static Status reopen(Opening *o)
{
    session_close(&o->s);
    o->data = NULL;
    diag_truncate(o->owner->ctx, 0);
    return guarded(o->owner->ctx, open_body, o);
}

static Opening opening(vwn_context *v, DataKind kind, const char *path, int64_t context)
{
    return (Opening){.s.owner = v,
                     .owner = v,
                     .context = context,
                     .tokenizer.kind = TOKENIZER_BYTES,
                     .spec = {.kind = kind, .path = path, .folder = "", .bits = 16}};
}

static void permutations(Tally *t)
{
    unsigned char seen[1100];
    for (uint64_t n = 1; n < 1100; n = n < 40 ? n + 1 : n * 3 / 2) {
        memset(seen, 0, sizeof seen);
        for (uint64_t i = 0; i < n; i++) {
            uint64_t p = permute_index(99, n, i);
            CHECKF(t, p < n && !seen[p], "permutation of %d at %d", (int)n, (int)i);
            seen[p < 1100 ? p : 0] = 1;
        }
    }
    int same = 0, ordered = 0;
    for (uint64_t i = 0; i < 1000; i++) {
        same += permute_index(1, 1000, i) == permute_index(2, 1000, i);
        ordered += permute_index(1, 1000, i + 1 < 1000 ? i + 1 : 0) == permute_index(1, 1000, i) + 1;
    }
    CHECKF(t, same < 10 && ordered < 10, "%d the same under another key, %d in order", same, ordered);
    CHECK(t, permute_index(5, (uint64_t)1 << 40, 12345) < (uint64_t)1 << 40);
}

/* Per epoch every window once, none overlapping; offsets differ; the same from any point. */
static void order(Tally *t, vwn_context *v, const char *folder)
{
    enum { N = 5000, C = 32 };
    char *text = malloc(N);
    for (int i = 0; i < N; i++)
        text[i] = (char)(i * 7 + i / 256);
    const char *path = arena_printf(v->ctx->program, "%s/order.txt", folder);
    write_file(path, text, N);
    Opening o = opening(v, DATA_TEXT_FILE, path, C);
    o.model.vocab = 256;
    o.spec.val = 0.1;
    CHECKF(t, reopen(&o) == ST_OK, "%s", v->ctx->message);
    const Split *s = &o.data->train;
    CHECK(t, s->order.tokens == 4500 && o.data->val.order.tokens == 500);
    CHECK(t, s->order.windows == 4500 / C - 1);
    int64_t token[C], label[C], offset[3];
    char why[WHY];
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        unsigned char used[N] = {0};
        int64_t least = N;
        for (int64_t i = 0; i < s->order.windows; i++) {
            Window w = split_window(s, 7, epoch * s->order.windows + i);
            CHECK(t, w.first >= 0 && w.first + C <= 4499 && !used[w.first]);
            for (int k = 0; k < C; k++)
                CHECK(t, !used[w.first + k]++);
            least = w.first < least ? w.first : least;
            if (i % 16)
                continue;
            CHECK(t, split_read(s, w, token, label, NULL, why));
            for (int k = 0; k < C; k++)
                CHECK(t,
                      token[k] == (unsigned char)text[w.first + k] && label[k] == (unsigned char)text[w.first + k + 1]);
        }
        offset[epoch] = least;
    }
    CHECK(t, offset[0] != offset[1] || offset[1] != offset[2]);
    Window a = split_window(s, 7, 200), b = split_window(s, 8, 200);
    CHECK(t, a.first != b.first || split_window(s, 7, 201).first != split_window(s, 8, 201).first);
    CHECK(t, a.first == split_window(s, 7, 200).first);
    /* evaluation windows: fixed, apart, within the last share */
    const Split *e = &o.data->val;
    int64_t all = split_fixed_windows(e), before = -1;
    CHECK(t, all == 500 / C);
    for (int64_t i = 0; i < all; i++) {
        Window w = split_fixed(e, i, all);
        CHECK(t, w.first == 4500 + i * C && split_read(e, w, token, label, NULL, why));
        CHECK(t, split_fixed(e, i / 3, all / 3).first >= 4500);
    }
    for (int64_t i = 0; i < 4; i++) {
        int64_t at = split_fixed(e, i, 4).first;
        CHECK(t, at >= before + C && at + C <= N);
        CHECK(t, at == 4500 + i * all / 4 * C); /* over all of the share */
        before = at;
    }
    session_close(&o.s);
    free(text);
}

static void edges(Tally *t, vwn_context *v, const char *folder)
{
    int64_t token[8], label[8];
    char why[WHY];
    const char *path = arena_printf(v->ctx->program, "%s/short.txt", folder);
    for (size_t n = 1; n < 40; n++) {
        write_file(path, "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz", n);
        Opening o = opening(v, DATA_TEXT_FILE, path, 8);
        Status st = reopen(&o);
        if (n < 8) {
            CHECKF(t, st == ST_ENVIRONMENT && strstr(v->ctx->message, "fewer than the context"), "%s", v->ctx->message);
        } else {
            const Split *s = &o.data->train;
            CHECKF(t, st == ST_OK && s->order.windows >= 1, "%zu tokens have no window: %s", n, v->ctx->message);
            for (int64_t i = 0; i < 3 * s->order.windows; i++) {
                Window w = split_window(s, 3, i);
                CHECKF(t, w.first >= 0 && (size_t)w.first + 8 <= n, "window %d of %zu tokens begins at %d", (int)i, n,
                       (int)w.first);
                CHECKF(t, split_read(s, w, token, label, NULL, why), "window %d cannot be read: %s", (int)i, why);
                bool last = (size_t)w.first + 8 == n;
                CHECKF(t, (label[7] == -1) == last, "the last label of the window at %d of %zu tokens is %d",
                       (int)w.first, n, (int)label[7]);
                CHECKF(t, label[7] >= 0 || n == 8, "a window of %zu tokens lacks a label though a shorter way has none",
                       n);
            }
        }
        session_close(&o.s);
    }
    Opening o = opening(v, DATA_TEXT_FILE, path, 8);
    write_file(path, "", 0);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "empty"));
    o.spec.path = "absent.txt";
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "absent.txt: No such"));
    o.spec.path = folder;
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "not a file"));
    session_close(&o.s);
}

static void tokenizers(Tally *t, vwn_context *v, const char *folder)
{
    static const char text[] = "na\xc3\xafve caf\xc3\xa9 \xe2\x82\xac\xf0\x9f\x98\x80 abc abc abc";
    const char *path = arena_printf(v->ctx->program, "%s/utf8.txt", folder);
    write_file(path, text, sizeof text - 1);
    Opening o = opening(v, DATA_TEXT_FILE, path, 4);
    o.tokenizer.kind = TOKENIZER_CHARS;
    o.model.vocab = 32;
    CHECKF(t, reopen(&o) == ST_OK, "%s", v->ctx->message);
    Tokenizer *k = o.data->tokenizer;
    CHECK(t, k->size == 12 && o.data->train.order.tokens == 25);
    for (int64_t i = 1; i < k->size; i++)
        CHECK(t, k->code[i - 1] < k->code[i]);
    Buf b = buf_new(v->ctx->program);
    tokenizer_vocabulary(k, &b);
    Tokenizer *again = tokenizer_from(v->ctx->program, TOKENIZER_CHARS, b.s, b.n);
    CHECK(t, again && again->size == k->size && !memcmp(again->code, k->code, 12 * 4));
    CHECK(t, !tokenizer_from(v->ctx->program, TOKENIZER_CHARS, "ba", 2));
    CHECK(t, !tokenizer_from(v->ctx->program, TOKENIZER_CHARS, "\xff", 1));
    int64_t ids[64];
    char why[WHY], out[4];
    int64_t n = tokenizer_encode(k, "x", text, sizeof text - 1, ids, why);
    CHECK(t, n == 25);
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *one = tokenizer_decode(k, ids[i], out, &len);
        CHECK(t, one && !memcmp(one, text + at, len));
        at += len;
    }
    CHECK(t, at == sizeof text - 1);
    CHECK(t, tokenizer_encode(k, "x", "abz", 3, ids, why) == -1 && strstr(why, "byte 2"));
    size_t none;
    CHECK(t, !tokenizer_decode(k, 12, out, &none) && !tokenizer_decode(k, -1, out, &none));
    int64_t token[4], label[4];
    Window w = split_window(&o.data->train, 1, 0);
    CHECK(t, split_read(&o.data->train, w, token, label, NULL, why) && token[1] == label[0]);
    CHECK(t, token[0] == ids[w.first]);

    o.model.vocab = 11;
    CHECK(t, reopen(&o) == ST_INPUT && diag_errors(v->ctx) == 1);
    CHECK(t, !strcmp(diag_get(v->ctx, 0)->code, "E0601"));
    o.model.vocab = 32;
    o.known = again;
    write_file(path, "abc abc abz abc", 15);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "byte 10"));
    o.known = NULL;
    write_file(path,
               "abc abc\xff"
               "abc abc",
               15);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "byte 7"));
    o.tokenizer.kind = TOKENIZER_FILE;
    CHECK(t, reopen(&o) == ST_INPUT && strstr(v->ctx->message, "token_files"));
    session_close(&o.s);
}

static uint32_t big = 60000; /* the token that is too large */

static void put_shard(const char *path, int header, int bits, int n, int count, int big_at)
{
    unsigned char bytes[1024 + 4 * 600] = {0};
    int32_t head[3] = {20240520, 1, count};
    if (header)
        memcpy(bytes, head, sizeof head);
    for (int i = 0; i < n; i++) {
        uint32_t v = i == big_at ? big : (uint32_t)(i * 31 % 1000);
        memcpy(bytes + header + i * (bits / 8), &v, (size_t)bits / 8);
    }
    write_file(path, bytes, (size_t)(header + n * (bits / 8)));
}

/* Everything in the order of the run can be read, or the sentence of the first failure. */
static bool read_all(const Split *s, char why[WHY])
{
    int64_t token[16], label[16];
    for (int64_t i = 0; i < s->order.windows; i++)
        if (!split_read(s, split_window(s, 1, i), token, label, NULL, why))
            return false;
    return true;
}

static void shards(Tally *t, vwn_context *v, const char *folder)
{
    Arena *a = v->ctx->program;
    char why[WHY] = "";
    const char *odd = arena_printf(a, "%s/a[1]", folder); /* a folder whose name looks like a pattern */
    char command[200];
    snprintf(command, sizeof command, "mkdir -p '%s'", odd);
    CHECK(t, system(command) == 0);
    const char *p0 = arena_printf(a, "%s/s_0.bin", odd), *p1 = arena_printf(a, "%s/s_1.bin", odd);
    const char *p2 = arena_printf(a, "%s/s_2.bin", odd);
    for (int bits = 16; bits <= 32; bits += 16)
        for (int header = 0; header <= 1024; header += 1024) {
            put_shard(p0, header, bits, 500, 500, -1);
            put_shard(p1, header, bits, 300, 300, -1);
            put_shard(p2, header, bits, 9, 9, -1);
            Opening o = opening(v, DATA_TOKEN_FILES, "s_*.bin", 16);
            o.spec.folder = odd;
            o.spec.bits = bits;
            o.spec.header = header > 0 ? HEADER_LLM_C : HEADER_NONE;
            o.spec.val_path = "s_1.bin";
            o.model.vocab = 1000;
            CHECKF(t, reopen(&o) == ST_OK, "%s", v->ctx->message);
            const Split *s = &o.data->train;
            CHECK(t,
                  s->order.tokens == 809 && s->order.n == 2 && s->order.unused == 1 && o.data->val.order.tokens == 300);
            CHECKF(t, read_all(s, why), "%s", why);
            int64_t token[16], label[16];
            Window w = split_window(s, 1, 5);
            split_read(s, w, token, label, NULL, why);
            CHECK(t, token[3] == (w.first + 3) * 31 % 1000 && label[3] == (w.first + 4) * 31 % 1000);
            /* a token that is too large, found when its window is read */
            session_close(&o.s);
            put_shard(p1, header, bits, 300, 300, 150);
            CHECK(t, reopen(&o) == ST_OK && !read_all(&o.data->train, why));
            const char *place = arena_printf(a, "s_1.bin: byte %d: token 60000", header + 150 * bits / 8);
            CHECKF(t, strstr(why, place), "%s, not %s", why, place);
            session_close(&o.s);
            big = 1000;
            put_shard(p1, header, bits, 300, 300, 150);
            CHECK(t, reopen(&o) == ST_OK && !read_all(&o.data->train, why));
            CHECK(t, strstr(why, "token 1000 is not below the vocabulary of 1000"));
            big = 999;
            session_close(&o.s);
            put_shard(p1, header, bits, 300, 300, 150);
            CHECK(t, reopen(&o) == ST_OK && read_all(&o.data->train, why));
            big = 60000;
            /* cut while it is read */
            session_close(&o.s);
            put_shard(p1, header, bits, 300, 300, -1);
            CHECK(t, reopen(&o) == ST_OK && truncate(p1, 40) == 0);
            CHECKF(t, !read_all(&o.data->train, why) && strstr(why, "s_1.bin: byte 40") && strstr(why, "changed"), "%s",
                   why);
            session_close(&o.s);
            /* a share of all shards together: 40 % of 1,000 tokens are within the second */
            put_shard(p0, header, bits, 500, 500, -1);
            put_shard(p1, header, bits, 300, 300, -1);
            put_shard(p2, header, bits, 200, 200, -1);
            o.spec.val_path = NULL;
            o.spec.val = 0.4;
            CHECK(t, reopen(&o) == ST_OK);
            const Split *kept = &o.data->train, *cut = &o.data->val;
            CHECK(t, kept->order.tokens == 600 && cut->order.tokens == 400 && kept->order.n == 2 && cut->order.n == 2);
            CHECK(t, kept->order.range[1].count == 100 && cut->order.range[0].first == 100);
            CHECK(t, read_all(kept, why) && read_all(cut, why));
            w = split_fixed(cut, 0, 24);
            split_read(cut, w, token, label, NULL, why);
            CHECK(t, w.first == 100 && token[0] == 100 * 31 % 1000);
            session_close(&o.s);
            remove(p0), remove(p1), remove(p2);
        }
}

/* ---- headers of others, as their pages describe them ---- */

/* n bytes, the low one first. */
static void put_low(Buf *b, uint64_t x, int n)
{
    for (int i = 0; i < n; i++)
        buf_putc(b, (char)(unsigned char)(x >> 8 * i));
}

/* Ids 0, 31, 62 ... below 1,000, `n` of them, the first one `first` unless that is 0. */
static void put_ids(Buf *b, int width, int n, uint64_t first)
{
    for (int i = 0; i < n; i++)
        put_low(b, !i && first ? first : (uint64_t)(i * 31 % 1000), width);
}

/* What numpy writes: 128 bytes, of which 118 are the text of a dictionary. */
static void put_npy(Arena *a, const char *path, const char *shape, const char *type, int width, int n, uint64_t first)
{
    Buf b = buf_new(a);
    buf_put(&b, "\x93NUMPY\1\0\x76\0", 10);
    buf_printf(&b, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    while (b.n < 127)
        buf_putc(&b, ' ');
    buf_putc(&b, '\n');
    put_ids(&b, width, n, first);
    write_file(path, b.s, b.n);
}

/* 60 ids as sequences of 10, 0, 30 and 20 of two documents; what differs is told by its place. */
typedef struct IdxFault {
    int at; /* byte of the .idx, -1: it ends early */
    unsigned char is;
    const char *says;
} IdxFault;
static void put_idx(Arena *a, const char *path, int code, int width, IdxFault fault)
{
    static const int length[] = {10, 0, 30, 20}, document[] = {0, 2, 4};
    Buf b = buf_new(a);
    buf_put(&b, "MMIDIDX\0\0", 9);
    put_low(&b, 1, 8);
    put_low(&b, (uint64_t)code, 1);
    put_low(&b, COUNT_OF(length), 8);
    put_low(&b, COUNT_OF(document), 8);
    for (size_t i = 0; i < COUNT_OF(length); i++)
        put_low(&b, (uint64_t)length[i], 4);
    for (size_t i = 0, at = 0; i < COUNT_OF(length); at += (size_t)(length[i++] * width))
        put_low(&b, at, 8);
    for (size_t i = 0; i < COUNT_OF(document); i++)
        put_low(&b, (uint64_t)document[i], 8);
    if (fault.says && fault.at >= 0)
        b.s[fault.at] = (char)fault.is;
    write_file(path, b.s, b.n - (fault.at < 0));
}

/* The training split has these 60 ids. */
static bool has_ids(const Split *s)
{
    int64_t token[16], label[16], seen = 0;
    char why[WHY];
    for (int64_t i = 0; i < s->order.windows; i++) {
        Window w = split_fixed(s, i, s->order.windows);
        if (!split_read(s, w, token, label, NULL, why))
            return false;
        for (int64_t k = 0; k < s->order.context; k++)
            seen += token[k] == (w.first + k) * 31 % 1000;
    }
    return seen == s->order.windows * s->order.context && s->order.tokens == 60 && seen > 40;
}

static void npy_shards(Tally *t, vwn_context *v, const char *folder)
{
    static const struct {
        const char *type, *shape;
        int width, n;
        uint64_t first;
        const char *says; /* NULL: it is read */
        int bits;
    } cases[] = {
        {"|u1", "60,", 1, 60, 0, NULL, 0},
        {"<u2", "60,", 2, 60, 0, NULL, 0},
        {"<u2", "60,", 2, 60, 0, NULL, 16},
        {"<u4", "60,", 4, 60, 0, NULL, 32},
        {"<i4", "60,", 4, 60, 0, NULL, 0},
        {"<u8", "60,", 8, 60, 0, NULL, 0},
        {"<i8", "60,", 8, 60, 0, NULL, 0},
        {"<i8", "60,", 8, 60, (uint64_t)-1, "byte 128: token 9223372036854775807 is not below", 0},
        {"<i4", "60,", 4, 60, (uint32_t)-1, "byte 128: token 4294967295 is not below", 0},
        {"<u2", "60,", 2, 60, 0, "its ids have 2 bytes each, and `dtype` is u32", 32},
        {">u2", "60,", 2, 60, 0, "numbers of type >u2", 0},
        {"<i2", "60,", 2, 60, 0, "numbers of type <i2", 0},
        {"<f4", "60,", 4, 60, 0, "numbers of type <f4", 0},
        {"<u2", "6, 10", 2, 60, 0, "its array has 2 axes", 0},
        {"<u2", "60,", 2, 59, 0, "byte 246: the header says 60 tokens, which are 120 bytes; the file has 118", 0},
        {"<u2", "60,", 2, 61, 0, "byte 248: the header says 60 tokens, which are 120 bytes; the file has 122", 0}};
    const char *p = arena_printf(v->ctx->program, "%s/ids.npy", folder);
    Opening o = opening(v, DATA_TOKEN_FILES, p, 8);
    char why[WHY] = "";
    int64_t token[16], label[16];
    o.spec.header = HEADER_NPY;
    o.model.vocab = 1000;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        o.spec.bits = cases[i].bits;
        put_npy(v->ctx->program, p, cases[i].shape, cases[i].type, cases[i].width, cases[i].n, cases[i].first);
        Status st = reopen(&o);
        bool fine = st == ST_OK;
        for (int64_t k = 0; fine && k < o.data->train.order.windows; k++)
            fine = split_read(&o.data->train, split_fixed(&o.data->train, k, o.data->train.order.windows), token, label,
                              NULL, why);
        const char *said = st == ST_OK ? why : v->ctx->message;
        if (cases[i].says)
            CHECKF(t, !fine && strstr(said, cases[i].says), "%s: %s", cases[i].type, said);
        else
            CHECKF(t, fine && (cases[i].width == 1 || has_ids(&o.data->train)), "%s: %s", cases[i].type, said);
        why[0] = 0;
    }
    write_file(p, "ids", 3);
    CHECKF(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "not a .npy file"), "%s", v->ctx->message);
    session_close(&o.s);
    remove(p);
}

static void megatron_shards(Tally *t, vwn_context *v, const char *folder)
{
    static const IdxFault faults[] = {
        {0, 'm', "byte 0: not an index of Megatron-LM"},
        {8, 1, "byte 0: not an index of Megatron-LM"},
        {9, 2, "byte 9: version 2 is not known"},
        {17, 3, "byte 17: its ids are of type 3"},
        {17, 6, "byte 17: its ids are of type 6"},
        {17, 4, "byte 58: sequence 1 does not begin where the one before it ends"},
        {18, 3, "3 sequences and 3 ends of documents take another number of bytes"},
        {33, 0x80, "take another number of bytes"},
        {-1, 0, "take another number of bytes"},
        {34, 11, "byte 58: sequence 1 does not begin where the one before it ends"},
        {37, 0x80, "byte 34: sequence 0 has a negative length"},
        {46, 21, "byte 120: its .idx says 61 tokens, which are 122 bytes; the file has 120"},
        {46, 19, "byte 118: its .idx says 59 tokens"},
        {82, 1, "byte 82: document 0 begins with sequence 1"},
        {90, 5, "byte 90: document 1 begins with sequence 5 of 4"},
        {98, 3, "byte 98: document 2 begins with sequence 3 of 4"}};
    static const int types[][2] = {{4, 4}, {5, 8}, {8, 2}};
    Arena *a = v->ctx->program;
    const char *bin = arena_printf(a, "%s/mega.bin", folder), *idx = arena_printf(a, "%s/mega.idx", folder);
    Opening o = opening(v, DATA_TOKEN_FILES, bin, 8);
    o.spec.header = HEADER_MEGATRON;
    o.spec.bits = 0;
    o.model.vocab = 1000;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        Buf b = buf_new(a);
        put_ids(&b, types[i][1], 60, 0);
        write_file(bin, b.s, b.n);
        put_idx(a, idx, types[i][0], types[i][1], (IdxFault){0});
        CHECKF(t, reopen(&o) == ST_OK && has_ids(&o.data->train), "type %d: %s", types[i][0], v->ctx->message);
    }
    for (size_t i = 0; i < COUNT_OF(faults); i++) { /* of the last type, u16 */
        put_idx(a, idx, 8, 2, faults[i]);
        CHECKF(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, faults[i].says), "%zu: %s", i,
               v->ctx->message);
    }
    put_idx(a, idx, 8, 2, (IdxFault){0});
    o.spec.bits = 32;
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "its ids have 2 bytes each, and `dtype` is u32"));
    o.spec.bits = 16;
    CHECK(t, reopen(&o) == ST_OK);
    remove(idx);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "mega.idx: No such file"));
    o.spec.path = arena_printf(a, "%s/mega.*", folder);
    write_file(arena_printf(a, "%s/mega.ids", folder), "12", 2);
    remove(bin);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "name those that end in .bin"));
    session_close(&o.s);
    remove(arena_printf(a, "%s/mega.ids", folder));
}

/* The type that the magic of llm.c says, where `dtype` says none. */
static void llmc_widths(Tally *t, vwn_context *v, const char *folder)
{
    const char *p = arena_printf(v->ctx->program, "%s/wide.bin", folder);
    Opening o = opening(v, DATA_TOKEN_FILES, p, 8);
    o.spec.header = HEADER_LLM_C;
    o.spec.bits = 0;
    o.model.vocab = 1000;
    for (int bits = 16; bits <= 32; bits += 16) {
        Buf b = buf_new(v->ctx->program);
        put_low(&b, bits == 16 ? 20240520 : 20240801, 4);
        put_low(&b, bits == 16 ? 1 : 7, 4);
        put_low(&b, 60, 4);
        while (b.n < 1024)
            buf_putc(&b, 0);
        put_ids(&b, bits / 8, 60, 0);
        write_file(p, b.s, b.n);
        CHECKF(t, reopen(&o) == ST_OK && has_ids(&o.data->train), "%d bits: %s", bits, v->ctx->message);
    }
    session_close(&o.s);
    remove(p);
}

static void bad_shards(Tally *t, vwn_context *v, const char *folder)
{
    const char *p = arena_printf(v->ctx->program, "%s/one.bin", folder);
    Opening o = opening(v, DATA_TOKEN_FILES, p, 16);
    o.model.vocab = 1000;
    o.spec.header = HEADER_LLM_C;
    put_shard(p, 1024, 16, 100, 101, -1);
    CHECKF(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "byte 1224: the header says 101"), "%s",
           v->ctx->message);
    put_shard(p, 1024, 16, 100, 99, -1);
    CHECKF(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "byte 1222"), "%s", v->ctx->message);
    put_shard(p, 1024, 16, 100, -1, -1);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "byte"));
    put_shard(p, 0, 16, 600, 0, -1);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "not a token file of llm.c"));
    put_shard(p, 0, 16, 100, 0, -1);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "within its 1,024-byte header"));
    put_shard(p, 1024, 16, 0, 0, -1);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "no tokens"));
    o.spec.header = HEADER_NONE;
    write_file(p, "12345", 5);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "byte 4: the last token is cut"));
    write_file(p, "", 0);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "empty"));
    put_shard(p, 0, 16, 10, 0, -1);
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "fewer than the context"));
    o.spec.path = "absent_*.bin";
    CHECK(t, reopen(&o) == ST_ENVIRONMENT && strstr(v->ctx->message, "no file matches"));
    session_close(&o.s);
}

static void fingerprints(Tally *t, vwn_context *v, const char *folder)
{
    Arena *a = v->ctx->program;
    const char *p = arena_printf(a, "%s/print.txt", folder);
    Buf first = buf_new(a);
    static char text[300000];
    memset(text, 'a', sizeof text);
    write_file(p, text, sizeof text);
    Opening o = opening(v, DATA_TEXT_FILE, p, 16);
    CHECK(t, reopen(&o) == ST_OK);
    data_fingerprint(o.data, &first);
    CHECK(t, !data_difference(a, first.s, first.s));
    const struct {
        size_t size, at;
        const char *says;
    } changes[] = {
        {sizeof text, 10, "content"}, {sizeof text, sizeof text - 5, "content"}, {sizeof text - 1, 0, "bytes"}};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        Buf now = buf_new(a);
        text[changes[i].at] = i < 2 ? 'b' : 'a';
        write_file(p, text, changes[i].size);
        text[changes[i].at] = 'a';
        CHECK(t, reopen(&o) == ST_OK);
        data_fingerprint(o.data, &now);
        const char *d = data_difference(a, first.s, now.s);
        CHECKF(t, d && strstr(d, changes[i].says) && strstr(d, "print.txt"), "%s", d ? d : "none");
    }
    CHECK(t, data_difference(a, first.s, "[]") && data_difference(a, "nonsense", first.s));
    session_close(&o.s);
}

/* Where documents begin, as the model is told: at the last separator, and at the window's start. */
static void documents(Tally *t, vwn_context *v, const char *folder)
{
    static const char text[] = "ab\ncd\n\nefghi\njklmnop";
    enum { T = 8 };
    const char *path = arena_printf(v->ctx->program, "%s/documents.txt", folder);
    write_file(path, text, sizeof text - 1);
    for (int chars = 0; chars < 2; chars++) {
        Opening o = opening(v, DATA_TEXT_FILE, path, T);
        o.tokenizer.kind = chars ? TOKENIZER_CHARS : TOKENIZER_BYTES;
        o.spec.separated = true;
        o.spec.separator_text = "\n";
        CHECKF(t, reopen(&o) == ST_OK, "%s", v->ctx->message);
        CHECK(t, o.data->train.separator == (chars ? 0 : '\n'));
        o.s.store = store_new(v->ctx, NULL);
        StoreEntry *e;
        CHECK(t,
              store_add(o.s.store, EXT_INPUT, name_str(v->ctx, "document"), DT_INT, 2, (int64_t[]){2, T}, &e) == ST_OK);
        Feed f = feed_open(&o.s, &o.data->train, 2, T);
        CHECK(t, feed_fixed(&f, &o.data->train, 0, 2) == 2); /* windows at 0 and at 8 */
        static const int64_t want[2 * T] = {0, 0, 2, 2, 2, 5, 6, 6, 0, 0, 0, 0, 4, 4, 4, 4};
        int64_t second = split_fixed(&o.data->train, 1, 2).first;
        CHECKF(t, second == 8, "the second window begins at %lld", (long long)second);
        for (int i = 0; i < 2 * T; i++) {
            double got;
            CHECK(t, store_get_f64(o.s.store, e, i, 1, &got) == ST_OK);
            CHECKF(t, got == (double)want[i], "position %d: %g", i, got);
        }
        o.spec.separator_text = "?"; /* no token of the characters */
        CHECK(t, reopen(&o) == (chars ? ST_INPUT : ST_OK));
        session_close(&o.s);
    }
    diag_truncate(v->ctx, 0);
}

int main(void)
{
    Tally t = {0};
    vwn_context *v = tiny_context(true, 1);
    const char *folder = scratch_folder(v->ctx);
    permutations(&t);
    order(&t, v, folder);
    edges(&t, v, folder);
    tokenizers(&t, v, folder);
    shards(&t, v, folder);
    npy_shards(&t, v, folder);
    megatron_shards(&t, v, folder);
    llmc_widths(&t, v, folder);
    bad_shards(&t, v, folder);
    fingerprints(&t, v, folder);
    documents(&t, v, folder);
    scratch_remove(folder);
    tiny_close(v);
    return tally_end(&t, "data");
}
