/* edits.c - a file that is edited at random is, for the language server, the file that was edited: the same text, and the same
 * messages at the same places as those of `vwn check --json`; every question about it has an answer.
 *
 * In:  examples and edits from a seed: characters of one to four bytes, both ends of lines, pieces of the text, brackets. Positions
 *      in UTF-16 or UTF-8, at times beyond the end.
 * Out: after each edit the text, made here by cutting bytes, and each message; the file was elaborated once for each. What is
 *      said first of a file that grows or sweeps, and how few models were built for it.
 *      VWN_TEST_WHOLE=1: many times as many.
 * When: checked.
 */
#include "client.h"
#include "compiler/file/check_unit.h"
#include "compiler/front/check.h"
#include "compiler/growth/growth.h"
#include "support/drawn.h"

static size_t elaborated;
Unit *__wrap_check_file(Ctx *ctx, const CheckOptions *how);
Unit *__real_check_file(Ctx *ctx, const CheckOptions *how);
Unit *__wrap_check_file(Ctx *ctx, const CheckOptions *how)
{
    elaborated++;
    return __real_check_file(ctx, how);
}

/* Models that were built and steps that were proved, before the first message came back and behind it. */
static const Client *watched;
static size_t built[2], proved[2];
Model *__wrap_build_model(struct Eval *ev, struct File *file);
Model *__real_build_model(struct Eval *ev, struct File *file);
Model *__wrap_build_model(struct Eval *ev, struct File *file)
{
    bool again = file->model_state || !file->model_ast;
    built[watched && watched->got.n] += !again;
    return __real_build_model(ev, file);
}
GrowthProof *__wrap_growth_prove(const GrowthPlan *plan, Arena *arena);
GrowthProof *__real_growth_prove(const GrowthPlan *plan, Arena *arena);
GrowthProof *__wrap_growth_prove(const GrowthPlan *plan, Arena *arena)
{
    proved[watched && watched->got.n]++;
    return __real_growth_prove(plan, arena);
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

/* ---- what takes long comes last ---- */

static size_t read_example(Harness *h, const char *file, char *text, size_t cap)
{
    char name[1000];
    snprintf(name, sizeof name, "%s/%s", VWN_SOURCE_DIR, file);
    FILE *f = fopen(name, "r");
    if (!CHECK_CASE(h, f != NULL, name))
        return 0;
    size_t n = fread(text, 1, cap - 1, f);
    fclose(f);
    text[n] = 0;
    return n;
}

/* The list of message i; how many lists there are is in *n. */
static const Json *list_at(const Client *c, size_t i, size_t *n)
{
    const Json *list = NULL;
    *n = 0;
    for (size_t k = 0; k < c->got.n; k++)
        if (json_string(c->got.v[k], "method") && (*n)++ == i)
            list = json_in(c->got.v[k], "params.diagnostics");
    return list;
}

static void type(Client *c, const char *where, int64_t line, int64_t from, int64_t to, const char *text)
{
    static int64_t version = 1;
    memset(built, 0, sizeof built);
    memset(proved, 0, sizeof proved);
    client_change(c, where, ++version, &(Change){line, from, line, to, text, strlen(text)}, 1);
}

static int64_t line_of(const char *text, const char *piece)
{
    int64_t line = 0;
    for (const char *s = text; s < strstr(text, piece); s++)
        line += *s == '\n';
    return line;
}

static bool only(const Json *list, const char *code, int64_t line)
{
    const Json *d = list && list->n == 1 ? list->first : NULL;
    return d && !strcmp(json_string(d, "code"), code) && json_whole(d, "range.start.line") == line;
}

/* A file that grows twice: a mistake in its model goes away before anything grows; what was wrong with growing stays until it was
 * looked at again. */
static void grows(Harness *h)
{
    static char text[1 << 14];
    Client c = {0};
    size_t n = read_example(h, "examples/09_nexus_growth.vwn", text, sizeof text), lists;
    int64_t L = line_of(text, "let L "), entry = line_of(text, "    entry = zeros"),
            claim = line_of(text, "check preserves"), loop = line_of(text, "for layer in");
    client_open(&c, h, "{}");
    client_text(&c, uri, text, n);
    watched = &c;
    CHECK(h, client_diagnostics(&c, uri) && client_diagnostics(&c, uri)->n == 0);
    type(&c, uri, L, 14, 16, "x");
    CHECK(h, only(list_at(&c, 0, &lists), "E0102", L) && lists == 1 && built[0] + built[1] == 1);
    type(&c, uri, L, 14, 15, "12");
    CHECK(h, list_at(&c, 0, &lists)->n == 0 && lists == 2 && built[0] == 1 && proved[0] == 0);
    CHECK(h, list_at(&c, 1, &lists)->n == 0 && built[1] == 2 && proved[1] == 2);
    type(&c, uri, entry, 12, 17, "normal(std = 1)"); /* the claim is false now */
    CHECK(h, list_at(&c, 0, &lists)->n == 0 && lists == 2 && proved[0] == 0);
    CHECK(h, only(list_at(&c, 1, &lists), "E0701", claim));
    type(&c, uri, 0, 0, 0, "# a comment\n");
    CHECK(h, only(list_at(&c, 0, &lists), "E0701", claim + 1) && lists == 2 && built[0] == 1);
    CHECK(h, only(list_at(&c, 1, &lists), "E0701", claim + 1));
    type(&c, uri, claim + 1, 2, 2, " "); /* before it, in its line */
    CHECK(h, json_whole(list_at(&c, 0, &lists)->first, "range.start.character") == 9 && lists == 2);
    type(&c, uri, claim + 1, 19, 23, "none"); /* in it */
    CHECK(h, list_at(&c, 0, &lists)->n == 0 && list_at(&c, 1, &lists)->n == 0 && lists == 2);

    /* the editor says something more between the two: what is known by then is known, and the rest comes later */
    vwn_server_counts was = vwn_server_counted(c.server), now = was;
    for (c.busy = 2; now.early == was.early || now.given_up == was.given_up; c.busy = c.asked + 1) {
        was = now;
        c.asked = 0;
        type(&c, uri, L + 1, 14, 16, now.checks % 2 ? "12" : "13");
        now = vwn_server_counted(c.server);
    }
    int64_t error;
    CHECK(h, list_at(&c, 0, &lists)->n == 0 && lists == 1);
    const Json *hover = client_at(&c, "textDocument/hover", uri, (int)loop + 1, 18, "", &error);
    CHECK(h, strstr(json_string(json_get(hover, "contents"), "value"),
                    now.checks % 2 ? "vwn\nL = 13" : "vwn\nL = 12") != NULL);
    watched = NULL;
    client_close(&c);
}

/* One that sweeps, and one that reads the models of others. */
static void sweeps(Harness *h)
{
    static const char *const files[] = {"examples/12_sweep.vwn", "examples/32_nexus_sizes.vwn"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        static char text[1 << 14];
        char name[1000];
        Client c = {0};
        size_t n = read_example(h, files[i], text, sizeof text), lists;
        snprintf(name, sizeof name, "file://%s/%s", VWN_SOURCE_DIR, files[i]);
        client_open(&c, h, "{}");
        client_text(&c, name, text, n);
        watched = &c;
        type(&c, name, 0, 0, 0, "# a comment\n");
        CHECK_CASE(h, list_at(&c, 0, &lists)->n == list_at(&c, 1, &lists)->n && lists == 2, files[i]);
        CHECK_CASE(h, built[0] <= 1 && built[1] >= 8, files[i]);
        watched = NULL;
        client_close(&c);
    }
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
        static char text[1 << 14];
        size_t n = read_example(&h, files[i], text, sizeof text);
        t.utf8 = i % 2;
        typing(&t, text, n, each);
        if (strstr(text, "\nlet "))
            rename_all(&t, text, n);
    }
    grows(&h);
    sweeps(&h);
    CHECK(&h, t.said > 2 * each * COUNT_OF(files));
    return harness_end(&h);
}
