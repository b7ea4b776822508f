/* edits.c - a file that is edited at random is, for the language server, the file that was edited: the same text, and the same
 * messages at the same places as those of `vwn check --json`; every question about it has an answer.
 *
 * In:  examples and edits from a seed: characters of one to four bytes, both ends of lines, pieces of the text, brackets. Positions
 *      in UTF-16 or UTF-8, at times beyond the end.
 * Out: after each edit the text, made here by cutting bytes, and each message; the file was elaborated once for each.
 *      VWN_TEST_WHOLE=1: many times as many.
 */
#include "client.h"
#include "compiler/file/check_unit.h"
#include "support/drawn.h"

static size_t elaborated;
Unit *__wrap_check_file(Ctx *ctx, const CheckOptions *how);
Unit *__real_check_file(Ctx *ctx, const CheckOptions *how);
Unit *__wrap_check_file(Ctx *ctx, const CheckOptions *how)
{
    elaborated++;
    return __real_check_file(ctx, how);
}

typedef struct Typing {
    Harness *h;
    Client client;
    bool utf8;
    char text[1 << 16];
    size_t n;
    uint64_t seed;
    size_t said; /* messages compared */
} Typing;
static const char uri[] = "file:///nowhere/edited.vwn", path[] = "/nowhere/edited.vwn";

static size_t draw(Typing *t, size_t n) { return (size_t)((harness_random(&t->seed) + 1) / 2 * (double)n); }

/* Where a byte is, for the protocol. */
static void position(const Typing *t, size_t at, int64_t *line, int64_t *character)
{
    *line = *character = 0;
    for (size_t i = 0; i < at; i++) {
        unsigned char c = (unsigned char)t->text[i];
        if (c == '\n')
            ++*line, *character = 0;
        else if (t->utf8)
            ++*character;
        else
            *character += (c & 0xc0) != 0x80 ? 1 + (c >= 0xf0) : 0;
    }
}

static size_t whole_character(const Typing *t, size_t at)
{
    while (at < t->n && ((unsigned char)t->text[at] & 0xc0) == 0x80)
        at++;
    while (at && at < t->n && t->text[at - 1] == '\r' && t->text[at] == '\n') /* between them is no position */
        at++;
    return at;
}

static void edit(Typing *t, int64_t version)
{
    static const char *const pieces[] = {"",
                                         "",
                                         "",
                                         " ",
                                         "\n",
                                         "\r\n",
                                         "x",
                                         "D",
                                         "1",
                                         "0.5",
                                         "{",
                                         "}",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         ",",
                                         "=",
                                         "# \xc3\xa4\xf0\x9f\x98\x80\n",
                                         "\"\xe2\x82\xac\"",
                                         "let z = ",
                                         "D * 2",
                                         "/-",
                                         "$",
                                         "\xc3\xa4",
                                         "vocab",
                                         "none",
                                         " check false\n",
                                         "True",
                                         "**"};
    size_t lo = whole_character(t, draw(t, t->n + 1)), hi = whole_character(t, lo + draw(t, 6) * draw(t, 3));
    const char *piece = pieces[draw(t, COUNT_OF(pieces))];
    char copy[40];
    size_t n = strlen(piece);
    hi = hi > t->n ? t->n : hi;
    if (draw(t, 4) == 0) { /* a piece of the text itself */
        size_t from = whole_character(t, draw(t, t->n + 1)), to = whole_character(t, from + draw(t, 30));
        n = (to > t->n ? t->n : to) - from;
        piece = memcpy(copy, t->text + from, n);
    }
    Change c = {.text = piece, .n = n};
    if (draw(t, 20) == 0)
        hi = t->n;
    position(t, lo, &c.line, &c.character);
    position(t, hi, &c.end_line, &c.end_character);
    if (hi == t->n && draw(t, 2))
        c.end_character += 1000;
    memmove(t->text + lo + n, t->text + hi, t->n - hi);
    memcpy(t->text + lo, piece, n);
    t->n += n - (hi - lo);
    t->text[t->n] = 0;
    size_t before = elaborated;
    client_change(&t->client, uri, version, &c, 1);
    CHECK(t->h, elaborated == before + 1);
}

static void collect(void *user, const char *text, size_t n) { buf_put(user, text, n); }

/* Where `vwn check` shows it: bytes from 1, to the same position. */
static bool same_place(const Typing *t, const Json *range, const char *end, const Json *span, const char *line,
                       const char *column)
{
    char name[64];
    int64_t want_line = json_whole(span, line) - 1, want = 0, at = json_whole(span, column) - 1;
    const char *s = t->text;
    for (int64_t i = 0; i < want_line; i++)
        s = strchr(s, '\n') + 1;
    for (int64_t i = 0; i < at; i++)
        want += t->utf8 ? 1 : ((unsigned char)s[i] & 0xc0) != 0x80 ? 1 + ((unsigned char)s[i] >= 0xf0) : 0;
    snprintf(name, sizeof name, "%s.line", end);
    bool same = json_whole(range, name) == want_line;
    snprintf(name, sizeof name, "%s.character", end);
    return same && json_whole(range, name) == want;
}

static bool same_message(Typing *t, const Json *lsp, const Json *line)
{
    const Json *span = NULL;
    for (int i = 0; i < 2; i++)
        for (const Json *s = json_in(line, i ? "related.0" : "spans.0"); s && !span; s = s->next)
            span = strcmp(json_string(s, "file"), path) ? NULL : s;
    const char *level = json_string(line, "level"), *message = json_string(line, "message");
    bool same = !strcmp(json_string(lsp, "code"), json_string(line, "code")) &&
                json_whole(lsp, "severity") == (!strcmp(level, "error") ? 1 : 2) &&
                !strncmp(json_string(lsp, "message"), message, strlen(message));
    if (same && span)
        same = same_place(t, json_get(lsp, "range"), "start", span, "line", "column") &&
               same_place(t, json_get(lsp, "range"), "end", span, "end_line", "end_column");
    t->said++;
    return same;
}

static void compare(Typing *t)
{
    vwn_context *context = vwn_open(NULL);
    Ctx *ctx = ctx_new(NULL);
    Buf lines = buf_new(ctx->program);
    vwn_writer out = {collect, &lines};
    vwn_file_options file = {.path = path, .text = t->text, .text_length = t->n};
    vwn_unit *unit;
    JsonError error;
    vwn_check(context, &file, &unit);
    vwn_diagnostics(context, &out, true, false, NULL);
    const Json *list = client_diagnostics(&t->client, uri), *got = list ? list->first : NULL;
    bool same = list != NULL;
    for (const char *s = lines.s; *s && same; s = strchr(s, '\n') + 1, got = got->next)
        same = got && same_message(t, got, json_read(ctx->program, s, strcspn(s, "\n"), &error));
    char what[400];
    snprintf(what, sizeof what, "%.300s", lines.s);
    if (!CHECK_CASE(t->h, same && !got, what)) {
        fprintf(stderr, "--- the text\n%s---\n", t->text);
        for (const Json *j = list ? list->first : NULL; j; j = j->next)
            fprintf(stderr, "%s: %s at %lld:%lld\n", json_string(j, "code"), json_string(j, "message"),
                    (long long)json_whole(j, "range.start.line"), (long long)json_whole(j, "range.start.character"));
    }
    ctx_free(ctx);
    vwn_close(context);
}

/* Every request, anywhere in the text. */
static void ask(Typing *t)
{
    static const char *const methods[] = {"hover",      "completion",        "definition",
                                          "references", "documentHighlight", "prepareRename",
                                          "rename",     "documentSymbol",    "formatting"};
    for (size_t i = 0; i < COUNT_OF(methods); i++) {
        char method[64];
        int64_t line, character, error;
        snprintf(method, sizeof method, "textDocument/%s", methods[i]);
        position(t, whole_character(t, draw(t, t->n + 1)), &line, &character);
        const Json *r = client_at(&t->client, method, uri, (int)line, (int)character, ",\"newName\":\"zz\"", &error);
        CHECK_CASE(t->h, r ? !error : error == -32803, methods[i]);
    }
}

static void start(Typing *t, const char *text, size_t n)
{
    memcpy(t->text, text, n);
    t->n = n;
    t->text[n] = 0;
    client_text(&t->client, uri, text, n);
}

static void typing(Typing *t, const char *text, size_t n, size_t rounds)
{
    enum { EDITS = 6 };
    client_open(&t->client, t->h, t->utf8 ? "{\"general\":{\"positionEncodings\":[\"utf-8\"]}}" : "{}");
    for (size_t round = 0; round < rounds && t->h->failed < 5; round++) {
        start(t, text, n);
        compare(t);
        for (int i = 0; i < EDITS; i++) {
            edit(t, i + 2);
            CHECK(t->h,
                  t->client.server->document->n == t->n && !memcmp(t->client.server->document->text, t->text, t->n));
            compare(t);
            ask(t);
        }
    }
    client_close(&t->client);
}

/* Each let and block of a file gets another name, and its own again. */
static void rename_all(Typing *t, const char *text, size_t n)
{
    client_open(&t->client, t->h, "{}");
    client_text(&t->client, uri, text, n);
    size_t said = client_diagnostics(&t->client, uri)->n, renamed = 0;
    for (const char *s = text; s; s = strchr(s, '\n') ? strchr(s, '\n') + 1 : NULL) {
        if (strncmp(s, "let ", 4) != 0 && strncmp(s, "block ", 6) != 0)
            continue;
        char more[200];
        const char *names[2] = {"zz_1", more};
        int64_t error, line = 0, at = strchr(s, ' ') - s + 1;
        for (const char *c = text; c < s; c++)
            line += *c == '\n';
        char own[100];
        snprintf(own, sizeof own, "%.*s",
                 (int)strspn(s + at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"), s + at);
        names[1] = own;
        for (int back = 0; back < 2; back++) {
            snprintf(more, sizeof more, ",\"newName\":\"%s\"", names[back]);
            const Json *r = client_at(&t->client, "textDocument/rename", uri, (int)line, (int)at, more, &error);
            const Json *edits = r ? json_get(json_get(r, "changes"), uri) : NULL;
            if (!CHECK_CASE(t->h, edits && edits->n, own))
                break;
            size_t before = vwn_server_counted(t->client.server).checks;
            Change change[100];
            size_t k = 0;
            for (const Json *e = edits->first; e && k < 100; e = e->next)
                change[99 - k++] = (Change){json_whole(e, "range.start.line"),
                                            json_whole(e, "range.start.character"),
                                            json_whole(e, "range.end.line"),
                                            json_whole(e, "range.end.character"),
                                            names[back],
                                            strlen(names[back])};
            client_change(&t->client, uri, 3, change + 100 - k, k);
            CHECK_CASE(t->h, vwn_server_counted(t->client.server).checks == before + 1, own);
            CHECK_CASE(t->h, client_diagnostics(&t->client, uri)->n == said, own);
        }
        renamed++;
        CHECK_CASE(t->h, t->client.server->document->n == n && !memcmp(t->client.server->document->text, text, n), own);
    }
    CHECK(t->h, renamed > 0);
    client_close(&t->client);
}

int main(void)
{
    static const char *const files[] = {"examples/quickstart.vwn", "examples/01_nano.vwn", "tests/rooms/tiny.vwn",
                                        "examples/growth_nexus.vwn"};
    Harness h = {0};
    static Typing t;
    CaseDraw rounds = {.one_in = 20, .sanitized = 100};
    t = (Typing){.h = &h, .seed = 11};
    size_t each = drawn_count(&rounds, 100);
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char name[1000], text[1 << 14];
        snprintf(name, sizeof name, "%s/%s", VWN_SOURCE_DIR, files[i]);
        FILE *f = fopen(name, "r");
        if (!CHECK_CASE(&h, f != NULL, name))
            continue;
        size_t n = fread(text, 1, sizeof text - 1, f);
        fclose(f);
        t.utf8 = i % 2;
        text[n] = 0;
        typing(&t, text, n, each);
        if (strstr(text, "\nlet "))
            rename_all(&t, text, n);
    }
    CHECK(&h, t.said > 2 * each * COUNT_OF(files));
    return harness_end(&h);
}
