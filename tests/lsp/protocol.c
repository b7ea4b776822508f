/* protocol.c - the conversation with the language server: who may say what when, and what no client should say.
 *
 * In:  messages, good and bad, whole and in pieces.   Out: the answers that LSP 3.17 and JSON-RPC 2.0 ask for; a server that
 *      goes on; memory that is all given back, and no more of it after a thousand edits.
 * When: quick, checked.
 */
#include "client.h"
#include "support/sanitized.h"

static const char uri[] = "file:///nowhere/a%20b.vwn";
#define GOOD "edition = 1\nlet width = 3\ncheck width == 3\n"

static int64_t error_of(Client *c)
{
    return c->got.n == 1 && json_get(c->got.v[0], "error") ? json_whole(c->got.v[0], "error.code") : 0;
}

static void life(Harness *h)
{
    Client c;
    int64_t error;
    client_open(&c, h, NULL);
    CHECK(h, !client_ask(&c, "textDocument/hover", "{}", &error) && error == -32002);
    client_tell(&c, "textDocument/didOpen", "{}");
    CHECK(h, c.got.n == 0);
    CHECK(h, client_ask(&c, "initialize", "{\"capabilities\":{}}", &error) && !error);
    CHECK(h, !client_ask(&c, "initialize", "{\"capabilities\":{}}", &error) && error == -32600);
    CHECK(h, !client_ask(&c, "no/such\\u0022method", "{}", &error) && error == -32601);
    client_tell(&c, "no/such", "{}");
    CHECK(h, c.got.n == 0);
    client_tell(&c, "$/cancelRequest", "{\"id\":1}");
    CHECK(h, c.got.n == 0);
    CHECK(h, !client_ask(&c, "textDocument/formatting", "{\"textDocument\":{\"uri\":\"file:///x.vwn\"}}", &error) &&
                 error == -32602);
    CHECK(h, !client_ask(&c, "textDocument/formatting", "[]", &error) && error == -32602);
    client_send(&c, "{\"jsonrpc\":\"2.0\",\"id\":\"seven\",\"method\":\"no/such\"}");
    CHECK(h, c.got.n == 1 && !strcmp(json_string(c.got.v[0], "id"), "seven") && error_of(&c) == -32601);
    const Json *result = client_ask(&c, "shutdown", "null", &error);
    CHECK(h, result && result->kind == JSON_NULL && !error);
    CHECK(h, !client_ask(&c, "textDocument/formatting", "{}", &error) && error == -32600);
    CHECK(h, !vwn_server_counted(c.server).well);
    client_tell(&c, "exit", "null");
    CHECK(h, vwn_server_counted(c.server).well);
    vwn_writer none = {0};
    CHECK(h, !vwn_server_take(c.server, "", 0, &none));
    client_close(&c);

    client_open(&c, h, "{}");
    client_tell(&c, "exit", "null");
    CHECK(h, !vwn_server_counted(c.server).well);
    client_close(&c);
}

/* What is no message is one error, and the next message is answered. */
static void broken(Harness *h)
{
    static const struct {
        const char *bytes;
        int64_t error; /* 0: nothing is said */
    } cases[] = {
        {"Content-Length: 2\r\n\r\n{]", -32700},
        {"Content-Length: 1\r\n\r\n{", -32700},
        {"Content-Length: 0\r\n\r\n", -32700},
        {"content-length:4\r\n\r\nnull", -32600},
        {"Content-Length: 2\n\n[]", -32600},
        {"Content-Length: 17\r\n\r\n[{\"method\":\"x\" }]", -32600},
        {"Content-Length: -5\r\n\r\n", -32700},
        {"Content-Length: five\r\n\r\n", -32700},
        {"Content-Length: 99999999999999999999999999\r\n\r\n", -32700},
        {"Content-Type: x\r\n\r\n", -32700},
        {"\r\n\r\n", -32700},
        {"Content-Length: 14\r\n\r\n{\"id\":\"\\ud800\"", -32700},
        {"Content-Length: 21\r\n\r\n{\"id\":1,\"method\":7  }", -32600},
        {"Content-Length: 23\r\n\r\n{\"id\":1,\"result\":null }", 0},
        {"Content-Length: 17\r\n\r\n{\"method\":\"\xff\xfe\" } ", -32700},
    };
    Client c;
    int64_t error;
    for (int pieces = 0; pieces < 2; pieces++) {
        client_open(&c, h, "{}");
        c.one_by_one = pieces;
        for (size_t i = 0; i < COUNT_OF(cases); i++) {
            client_bytes(&c, cases[i].bytes, strlen(cases[i].bytes));
            CHECK_CASE(h, error_of(&c) == cases[i].error && c.got.n == (cases[i].error != 0), cases[i].bytes);
            CHECK_CASE(h, !client_ask(&c, "no/such", "{}", &error) && error == -32601, cases[i].bytes);
        }
        client_close(&c);
    }
    client_open(&c, h, "{}");
    /* a body that is too long is passed over, also in pieces */
    static char zeros[1 << 20];
    const char *long_one = "Content-Length: 70000000\r\n\r\n";
    client_bytes(&c, long_one, strlen(long_one));
    CHECK(h, error_of(&c) == -32700);
    for (size_t left = 70000000; left;) {
        size_t n = left < sizeof zeros ? left : sizeof zeros;
        client_bytes(&c, zeros, n);
        left -= n;
        CHECK(h, c.got.n == 0);
    }
    CHECK(h, !client_ask(&c, "no/such", "{}", &error) && error == -32601);
    CHECK(h, c.heap.peak < 8 << 20);
    /* lengths that are wrong by a few bytes: at most the next message is lost */
    for (int wrong = -9; wrong <= 9; wrong++) {
        char bytes[200];
        const char *body = "{\"id\":1,\"method\":\"no/such\"}";
        snprintf(bytes, sizeof bytes, "Content-Length: %d\r\n\r\n%s", (int)strlen(body) + wrong, body);
        client_bytes(&c, bytes, strlen(bytes));
        client_tell(&c, "no/such", "{}");
        client_bytes(&c, bytes, 0);
        CHECK(h, !client_ask(&c, "no/such", "{}", &error) && error == -32601);
    }
    /* no header at all */
    memset(zeros, 'x', sizeof zeros);
    client_bytes(&c, zeros, sizeof zeros);
    CHECK(h, error_of(&c) == -32700);
    CHECK(h, !client_ask(&c, "no/such", "{}", &error) && error == -32601);
    /* values in each other, more than the reader takes, and more than a stack has */
    for (size_t depth = 10; depth < 1000000; depth *= 100) {
        char *s = malloc(2 * depth + 100);
        size_t n = (size_t)sprintf(s, "{\"id\":5,\"method\":\"no/such\",\"params\":");
        memset(s + n, '[', depth);
        memset(s + n + depth, ']', depth);
        strcpy(s + n + 2 * depth, "}");
        client_send(&c, s);
        CHECK(h, error_of(&c) == (depth < 60 ? -32601 : -32700));
        free(s);
    }
    client_close(&c);
}

static const Json *open_and_change(Client *c, const char *params)
{
    client_text(c, uri, GOOD, strlen(GOOD));
    client_tell(c, "textDocument/didChange", params);
    return client_diagnostics(c, uri);
}

/* Changes that are none leave the text as it is. */
static void changes(Harness *h)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "null",
        "7",
        "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"}}",
        "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"contentChanges\":[{}]}",
        "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"contentChanges\":[7,null,\"x\",[]]}",
        "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"contentChanges\":{\"text\":\"\"}}",
        "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"contentChanges\":[{\"text\":\"x\",\"range\":{}}]}",
        "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"contentChanges\":[{\"text\":\"x\",\"range\":"
        "{\"start\":{\"line\":0,\"character\":0.5},\"end\":{\"line\":0,\"character\":1}}}]}",
        "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"contentChanges\":[{\"text\":\"x\",\"range\":"
        "{\"start\":{\"line\":0},\"end\":{\"line\":0,\"character\":1}}}]}",
        "{\"textDocument\":{\"uri\":\"file:///another.vwn\"},\"contentChanges\":[{\"text\":\"x\"}]}"};
    static const struct {
        Change change;
        const char *text;
    } good[] = {
        {{0, 0, 0, 0, "#", 1}, "#" GOOD},
        {{99, 0, 99, 7, "# end", 5}, GOOD "# end"},
        {{0, 99, 0, 999, " ", 1}, "edition = 1 \nlet width = 3\ncheck width == 3\n"},
        {{0, 11, 1, 0, "\r\n", 2}, "edition = 1\r\nlet width = 3\ncheck width == 3\n"},
        {{2, 0, 1, 0, "", 0}, "edition = 1\ncheck width == 3\n"}, /* the end before the beginning */
        {{1, 12, 9000000000, 9000000000, "4", 1}, "edition = 1\nlet width = 4"},
        {{-1, 0, 0, 0, "", 0}, ""},
        {{-1, 0, 0, 0, "let a = \"\xc3\xa4\xf0\x9f\x98\x80\"\n", 17}, "let a = \"\xc3\xa4\xf0\x9f\x98\x80\"\n"},
    };
    Client c;
    client_open(&c, h, "{}");
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        open_and_change(&c, bad[i]);
        CHECK_CASE(h, !strcmp(c.server->document->text, GOOD), bad[i]);
    }
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        client_text(&c, uri, GOOD, strlen(GOOD));
        client_change(&c, uri, 5, &good[i].change, 1);
        CHECK_CASE(h, !strcmp(c.server->document->text, good[i].text), good[i].text);
        CHECK(h, client_diagnostics(&c, uri) && json_whole(c.got.v[c.got.n - 1], "params.version") == 5);
    }
    client_tell(&c, "textDocument/didClose", "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"}}");
    CHECK(h, client_diagnostics(&c, uri) && client_diagnostics(&c, uri)->n == 0 && !c.server->document);
    client_close(&c);
}

/* A column of the message about `nope`, behind characters of one to four bytes. */
static void encodings(Harness *h)
{
    static const char text[] = "# \xc3\xa4\nlet a = [\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\", nope]\n";
    static const struct {
        const char *capabilities, *name;
        int64_t column;
    } cases[] = {{"{}", "utf-16", 17},
                 {"{\"general\":{\"positionEncodings\":[\"utf-16\",\"utf-8\"]}}", "utf-8", 22},
                 {"{\"general\":{\"positionEncodings\":[\"utf-32\"]}}", "utf-32", 16},
                 {"{\"general\":{\"positionEncodings\":[\"utf-7\"]}}", "utf-16", 17}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Client c;
        char params[300];
        int64_t error;
        client_open(&c, h, NULL);
        snprintf(params, sizeof params, "{\"capabilities\":%s}", cases[i].capabilities);
        const Json *result = client_ask(&c, "initialize", params, &error);
        CHECK_CASE(h, !strcmp(json_string(json_get(result, "capabilities"), "positionEncoding"), cases[i].name),
                   cases[i].name);
        client_text(&c, uri, text, strlen(text));
        const Json *d = client_diagnostics(&c, uri);
        CHECK_CASE(h,
                   json_whole(d, "0.range.start.line") == 1 &&
                       json_whole(d, "0.range.start.character") == cases[i].column &&
                       json_whole(d, "0.range.end.character") == cases[i].column + 4,
                   cases[i].name);
        /* inside of a character is its beginning */
        Change change = {1, 13, 1, 13, "|", 1};
        client_change(&c, uri, 2, &change, 1);
        static const char *const after[] = {"\xe2\x82\xac|\xf0", "\"\xc3\xa4|\xe2", "\x80|\"", "\xe2\x82\xac|\xf0"};
        CHECK_CASE(h, strstr(c.server->document->text, after[i]), c.server->document->text);
        client_close(&c);
    }
}

/* What a check costs: memory that does not grow, one check for each change, none while the editor goes on sending, and none that
 * goes on when something comes. */
static void work(Harness *h)
{
    Client c;
    client_open(&c, h, "{}");
    client_text(&c, uri, GOOD, strlen(GOOD));
    size_t bytes = 0, blocks = 0;
    for (int i = 0; i < 1000; i++) {
        Change change = i % 2 ? (Change){1, 12, 1, 13, "3", 1} : (Change){1, 12, 1, 13, "4", 1};
        client_change(&c, uri, i + 2, &change, 1);
        CHECK(h, client_diagnostics(&c, uri) && client_diagnostics(&c, uri)->n == (i % 2 ? 0u : 1u));
        if (i == 9) {
            bytes = c.heap.bytes;
            blocks = c.heap.blocks;
            c.heap.peak = 0;
        }
    }
    CHECK(h, c.heap.bytes == bytes && c.heap.blocks == blocks);
    CHECK(h, c.heap.peak < bytes + (2 << 20));
    vwn_server_counts n = vwn_server_counted(c.server);
    CHECK(h, n.changes == 1001 && n.checks == 1001 && n.given_up == 0 && n.messages == 1003);

    /* two changes in one piece: the second is what is checked */
    Change two[] = {{1, 12, 1, 13, "4", 1}, {1, 12, 1, 13, "3", 1}};
    client_change(&c, uri, 2000, two, 2);
    CHECK(h, vwn_server_counted(c.server).checks == 1002 && vwn_server_counted(c.server).changes == 1003);
    /* the editor has more to say at once, then in the middle of a check */
    c.busy = 1;
    client_change(&c, uri, 2001, two, 1);
    CHECK(h, vwn_server_counted(c.server).checks == 1002 && !client_diagnostics(&c, uri));
    c.busy = 4;
    client_bytes(&c, "", 0);
    CHECK(h, vwn_server_counted(c.server).checks == 1003 && vwn_server_counted(c.server).given_up == 1 &&
                 !client_diagnostics(&c, uri));
    size_t calls = c.heap.calls;
    c.busy = 0;
    client_bytes(&c, "", 0);
    CHECK(h, vwn_server_counted(c.server).checks == 1004 && client_diagnostics(&c, uri) && c.heap.calls > calls);
    client_bytes(&c, "", 0);
    CHECK(h, vwn_server_counted(c.server).checks == 1004);
    client_close(&c);
}

/* Texts that are no file: long, deep, with bytes that no file has. */
static void hostile(Harness *h)
{
    Client c;
    int64_t error;
    client_open(&c, h, "{}");
    size_t n = 9 << 20; /* more than a file may have */
    char *s = malloc(n + 1);
    memset(s, ' ', n);
    s[n] = 0;
    client_text(&c, uri, s, n);
    CHECK(h, client_diagnostics(&c, uri) && client_diagnostics(&c, uri)->n == 1);
    CHECK(h, !strcmp(json_string(json_at(client_diagnostics(&c, uri), 0), "code"), "E0008"));
    const char *doc = "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"options\":{}}";
    CHECK(h, client_ask(&c, "textDocument/formatting", doc, &error)->kind == JSON_NULL && !error);
    memset(s, '(', 100000);
    client_text(&c, uri, s, 100000);
    CHECK(h, client_diagnostics(&c, uri) && client_diagnostics(&c, uri)->n >= 1);
    CHECK(h, client_ask(&c, "textDocument/documentSymbol", doc, &error) && !error);
    client_text(&c, uri, "let a = 1\0 let b = 2\n", 21);
    CHECK(h, client_diagnostics(&c, uri) && client_diagnostics(&c, uri)->n >= 1);
    client_text(&c, "untitled:Untitled-1", "let a = b\n", 10);
    CHECK(h, client_diagnostics(&c, "untitled:Untitled-1") && client_diagnostics(&c, "untitled:Untitled-1")->n == 1);
    client_text(&c, "file:///%zz%00/%", "let a = 1\n", 10);
    CHECK(h, client_diagnostics(&c, "file:///%zz%00/%"));
    free(s);
    client_close(&c);
}

/* A message in a file that is imported stands where it is imported; the text that counts is the one in the editor. */
static void imports(Harness *h)
{
    static const char a[] = "file:///nowhere/a.vwn", b[] = "file:///nowhere/b.vwn";
    Client c;
    client_open(&c, h, "{\"textDocument\":{\"publishDiagnostics\":{\"relatedInformation\":true}}}");
    const char *text = "import \"b.vwn\" as b\ncheck b.D == 3\n";
    client_text(&c, a, text, strlen(text));
    const Json *d = client_diagnostics(&c, a);
    CHECK(h, d && d->n >= 1 && !strcmp(json_string(d->first, "code"), "E0106"));
    client_text(&c, b, "let D = 3\n", 10);
    CHECK(h, client_diagnostics(&c, b) && client_diagnostics(&c, b)->n == 0);
    CHECK(h, client_diagnostics(&c, a) && client_diagnostics(&c, a)->n == 0);
    client_tell(&c, "workspace/didChangeWatchedFiles", "{\"changes\":[]}");
    CHECK(h, client_diagnostics(&c, a) && client_diagnostics(&c, a)->n == 0 && !client_diagnostics(&c, b));
    Change change = {0, 8, 0, 9, "nope", 4};
    size_t before = vwn_server_counted(c.server).checks;
    client_change(&c, b, 2, &change, 1);
    CHECK(h, vwn_server_counted(c.server).checks == before + 2);
    d = client_diagnostics(&c, a);
    CHECK(h,
          d && d->n == 1 && json_whole(d, "0.range.start.line") == 0 && json_whole(d, "0.range.start.character") == 7);
    const Json *place = json_in(d, "0.relatedInformation.0.location");
    CHECK(h, place && !strcmp(json_string(place, "uri"), b) && json_whole(place, "range.start.character") == 8);
    client_close(&c);
}

static void answers(Harness *h)
{
    static const char text[] = "edition = 1\nlet  a = 1\n\nlet b = True\nblock f(n: int) {\n  return n\n}\n";
    const char *doc = "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"options\":{}}";
    Client c;
    int64_t error;
    client_open(&c, h, "{}");
    client_text(&c, uri, text, strlen(text));
    const Json *d = client_diagnostics(&c, uri);
    CHECK(h, d && d->n == 1 && json_whole(d, "0.range.start.line") == 3 && json_whole(d, "0.severity") == 1);
    const Json *r = client_ask(&c, "textDocument/codeAction",
                               "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"range\":"
                               "{\"start\":{\"line\":3,\"character\":9},\"end\":{\"line\":3,\"character\":9}},"
                               "\"context\":{\"diagnostics\":[]}}",
                               &error);
    CHECK(h, r && r->n == 1 && json_in(r, "0.isPreferred")->kind == JSON_TRUE);
    const Json *changed = json_get(json_in(r, "0.edit.changes"), uri);
    CHECK(h, changed && !strcmp(json_string(changed->first, "newText"), "true") &&
                 json_whole(changed, "0.range.start.character") == 8 &&
                 json_whole(changed, "0.range.end.character") == 12);
    r = client_ask(&c, "textDocument/codeAction",
                   "{\"textDocument\":{\"uri\":\"file:///nowhere/a%20b.vwn\"},\"range\":"
                   "{\"start\":{\"line\":0,\"character\":0},\"end\":{\"line\":0,\"character\":9}},\"context\":{"
                   "\"diagnostics\":[]}}",
                   &error);
    CHECK(h, r && r->n == 0);
    r = client_ask(&c, "textDocument/documentSymbol", doc, &error);
    CHECK(h, r && r->n == 3 && !strcmp(json_string(json_at(r, 2), "name"), "f") && json_whole(r, "2.kind") == 12 &&
                 json_whole(r, "2.range.end.line") == 6);
    Change change = {3, 8, 3, 12, "true", 4};
    client_change(&c, uri, 2, &change, 1);
    CHECK(h, client_diagnostics(&c, uri)->n == 0);
    r = client_ask(&c, "textDocument/formatting", doc, &error);
    CHECK(h, r && r->n == 1 && json_whole(r, "0.range.start.line") == 1 && json_whole(r, "0.range.end.line") == 2 &&
                 !strcmp(json_string(r->first, "newText"), "let a = 1\n"));
    client_text(&c, uri, "let  a = (\n", 11);
    CHECK(h, client_ask(&c, "textDocument/formatting", doc, &error)->kind == JSON_NULL && !error);
    client_close(&c);
}

/* A key in the largest example: one check, which is given up when the next key comes, and answers that cost a small part of it. */
static void keystroke(Harness *h)
{
    static const char largest[] = "file://" VWN_SOURCE_DIR "/examples/31_xformer_tables.vwn";
    char text[16384];
    FILE *f = fopen(largest + 7, "rb");
    size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f)
        fclose(f);
    text[n] = 0;
    const char *at = strstr(text, "\n  let first");
    CHECK(h, at);
    if (!at)
        return;
    int line = 1;
    for (const char *p = text; p < at; p++)
        line += *p == '\n';
    Client c;
    client_open(&c, h, "{}");
    client_text(&c, largest, text, n);
    vwn_server_counts before = vwn_server_counted(c.server);
    Change key = {line, 2, line, 2, "x", 1};
    client_change(&c, largest, 2, &key, 1);
    vwn_server_counts now = vwn_server_counted(c.server);
    CHECK(h, now.checks == before.checks + 1 && client_diagnostics(&c, largest) &&
                 client_diagnostics(&c, largest)->n >= 1);
    key = (Change){line, 2, line, 3, "", 0};
    size_t taken = c.heap.taken;
    client_change(&c, largest, 3, &key, 1);
    size_t check = c.heap.taken - taken;
    int64_t error;
    taken = c.heap.taken;
    CHECK(h, client_at(&c, "textDocument/completion", largest, line, 4, "", &error));
    size_t completion = c.heap.taken - taken;
    taken = c.heap.taken;
    CHECK(h, client_at(&c, "textDocument/hover", largest, line, 4, "", &error));
    size_t hover = c.heap.taken - taken;
    printf("largest example: a check takes %zu bytes, completion %zu, hover %zu\n", check, completion, hover);
    CHECK(h, vwn_server_counted(c.server).checks == now.checks + 1 && vwn_server_counted(c.server).given_up == 0);
    CHECK(h, completion < check / 100 && hover < check / 100); /* 292 kB and 144 kB of 219 MB on 2026-11-28 */
    client_close(&c);
}

int main(void)
{
    Harness h = {0};
    keystroke(&h);
    life(&h);
    broken(&h);
    changes(&h);
    encodings(&h);
    work(&h);
    hostile(&h);
    imports(&h);
    answers(&h);
    return harness_end(&h);
}
