/* diag.c - rendering of diagnostics.
 *
 * In:  the messages of the language reference as data, and hand-made hard cases.
 * Out: their texts, compared byte for byte. The one idea: the reference is the golden file.
 * When: quick.
 */
#include "test.h"

typedef struct Label {
    const char *fragment;
    int nth;
    const char *text;
} Label;

typedef struct Case {
    const char *code, *lint, *file, *message, *source;
    Label labels[4];
    const char *notes[4], *helps[4];
    const char *other, *other_text;
    int other_line;
    Label other_label;
} Case;

#include "diag_cases.h"

static Span find(uint32_t file, const char *source, Label l)
{
    const char *at = source - 1;
    for (int i = 0; i < l.nth && at; i++)
        at = strstr(at + 1, l.fragment);
    if (!at)
        return NO_SPAN;
    uint32_t lo = (uint32_t)(at - source);
    return (Span){file, lo, lo + (uint32_t)strlen(l.fragment)};
}

static Diag *file_case(Ctx *ctx, const Case *c)
{
    uint32_t file = source_add(ctx, c->file, c->source, strlen(c->source));
    Span at = find(file, c->source, c->labels[0]);
    Diag *d = c->lint ? diag_warning(ctx, c->code, c->lint, at, c->labels[0].text, "%s", c->message)
                      : diag_error(ctx, c->code, at, c->labels[0].text, "%s", c->message);
    for (int i = 1; i < 4 && c->labels[i].fragment; i++)
        diag_label(ctx, d, find(file, c->source, c->labels[i]), "%s", c->labels[i].text);
    for (int i = 0; i < 4 && c->notes[i]; i++)
        diag_note(ctx, d, "%s", c->notes[i]);
    for (int i = 0; i < 4 && c->helps[i]; i++)
        diag_help(ctx, d, "%s", c->helps[i]);
    if (c->other) {
        Buf b = buf_new(ctx->program);
        for (int i = 1; i < c->other_line; i++)
            buf_putc(&b, '\n');
        buf_printf(&b, "%s\n", c->other_text);
        uint32_t other = source_add(ctx, c->other, b.s, b.n);
        diag_related(ctx, d, find(other, b.s, c->other_label), "%s", c->other_label.text);
    }
    return d;
}

static void strip_colour(char *s)
{
    char *to = s;
    for (; *s; s++)
        if (*s == '\x1b')
            s += strcspn(s, "m");
        else
            *to++ = *s;
    *to = 0;
}

static void reference(Test *t)
{
    for (volatile size_t i = 0; i < COUNT_OF(cases); i++) {
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            Diag *d = file_case(ctx, &cases[i]);
            Buf plain = buf_new(ctx->program), coloured = buf_new(ctx->program);
            diag_render(ctx, &plain, d, false);
            diag_render(ctx, &coloured, d, true);
            char path[512];
            snprintf(path, sizeof path, VWN_SOURCE_DIR "/tests/front/diag/%02zu.txt", i + 1);
            char *want = test_read(path, NULL);
            test_same(t, path, plain.s, want ? want : "(no golden file)\n");
            EXPECT(t, strchr(coloured.s, '\x1b') != NULL);
            strip_colour(coloured.s);
            test_same(t, "colour adds nothing", coloured.s, plain.s);
            free(want);
            ctx_leave(ctx, &guard);
        } else {
            EXPECT(t, !"raised");
        }
        ctx_free(ctx);
    }
}

static void json(Test *t, Ctx *ctx)
{
    Diag *d = file_case(ctx, &cases[2]);
    Span at = d->labels.v[0].span;
    d->helps.n = 0;
    diag_fix(ctx, d, at, "kv_heads", FIX_MAYBE, "did you mean `kv_heads`?");
    Buf b = buf_new(ctx->program);
    diag_render_json(ctx, &b, d);
    test_same(t, "json", b.s,
              "{\"v\":1,\"event\":\"diagnostic\",\"level\":\"error\",\"code\":\"E0101\",\"lint\":"
              "null,"
              "\"message\":\"`attention` has no attribute `kv_head`\",\"spans\":[{\"file\":"
              "\"gpt.vwn\",\"line\":3,\"column\":29,\"end_line\":3,\"end_column\":36,\"primary\":"
              "true,"
              "\"label\":\"unknown attribute\"}],\"notes\":[\"a misspelt attribute is never ignored: "
              "the run would silently use `kv_heads = heads`\"],\"help\":[{\"text\":\"did you mean "
              "`kv_heads`?\",\"replace\":{\"line\":3,\"column\":29,\"end_column\":36,\"with\":"
              "\"kv_heads\"},\"applicability\":\"maybe_incorrect\"}]}\n");
    diag_truncate(ctx, 0);
    b.n = 0; /* of no file, as an input that is missing */
    diag_render_json(ctx, &b, diag_error(ctx, "E0106", NO_SPAN, "", "no place"));
    test_same(t, "json", b.s,
              "{\"v\":1,\"event\":\"diagnostic\",\"level\":\"error\",\"code\":\"E0106\",\"lint\":null,\"message\":\"no "
              "place\",\"spans\":[],"
              "\"notes\":[],\"help\":[]}\n");
    diag_truncate(ctx, 0);
}

static void hard_lines(Test *t, Ctx *ctx)
{
    /* code points, not bytes, align carets; a tab is one space; the column counts bytes */
    const char *s = "\tx = \"\xc3\xb6\xc3\xa4\" bad # \xe2\x82\xac\r\n";
    uint32_t file = source_add(ctx, "u.vwn", s, strlen(s));
    uint32_t lo = (uint32_t)(strstr(s, "bad") - s);
    Buf b = buf_new(ctx->program);
    Diag *d = diag_error(ctx, "E0001", (Span){file, lo, lo + 3}, "here", "message");
    diag_render(ctx, &b, d, false);
    test_same(t, "code points", b.s,
              "error[E0001]: message\n --> u.vwn:1:13\n  |\n1 |  x = \"\xc3\xb6\xc3\xa4\" bad # "
              "\xe2\x82\xac\n  |           ^^^ here\n  |\n");

    char line[1200];
    memset(line, 'a', sizeof line);
    memcpy(line + 600, "bad", 3);
    file = source_add(ctx, "long.vwn", line, sizeof line);
    b = buf_new(ctx->program);
    d = diag_error(ctx, "E0001", (Span){file, 600, 603}, "here", "message");
    diag_label(ctx, d, (Span){file, 5, 9}, "far left");
    diag_label(ctx, d, (Span){file, 1100, 1190}, "far right");
    diag_render(ctx, &b, d, false);
    char *caret = strstr(b.s, "^^^"), *row = caret;
    EXPECT(t, caret && strstr(b.s, "...aaa") && strstr(b.s, "aaa...\n"));
    while (row && row > b.s && row[-1] != '\n')
        row--;
    char *source = strstr(b.s, "1 | ");
    EXPECT(t, source && row && !strncmp(source + (caret - row), "bad", 3));

    /* a span over several lines, an empty one, one at the end, one beyond it, no place at all
     */
    s = "one {\n  two\n}";
    file = source_add(ctx, "m.vwn", s, strlen(s));
    b = buf_new(ctx->program);
    diag_render(ctx, &b, diag_error(ctx, "E0001", (Span){file, 4, 13}, "body", "several"), false);
    diag_render(ctx, &b, diag_error(ctx, "E0001", (Span){file, 13, 13}, "", "end"), false);
    diag_render(ctx, &b, diag_error(ctx, "E0001", NO_SPAN, "", "nowhere"), false);
    test_same(t, "odd spans", b.s,
              "error[E0001]: several\n --> m.vwn:1:5\n  |\n1 | one {\n  |     ^ body\n  |\n"
              "error[E0001]: end\n --> m.vwn:3:2\n  |\n3 | }\n  |  ^\n  |\n"
              "error[E0001]: nowhere\n");
    for (uint32_t a = 0; a < 20; a++)
        for (uint32_t z = 0; z < 20; z += 3) {
            diag_truncate(ctx, 0);
            d = diag_error(ctx, "E0001", (Span){file, a * 7919u, z * 104729u}, "x", "any");
            diag_label(ctx, d, (Span){file, z, a}, "y");
            diag_related(ctx, d, (Span){a, z, UINT32_MAX}, "z");
            diag_render(ctx, &b, d, true);
            diag_render_json(ctx, &b, d);
        }
    diag_truncate(ctx, 0);
    b = buf_new(ctx->program);
    file = source_add(ctx, "esc\x1b[31m\xff.vwn", "a\x1b[2J\xff\x7f", 7);
    d = diag_error(ctx, "E0001", (Span){file, 0, 7}, "", "bytes \x1b of \xff the user");
    diag_render(ctx, &b, d, false);
    diag_render_json(ctx, &b, d);
    EXPECT(t, !strchr(b.s, '\x1b') && !strchr(b.s, '\x7f') && !strchr(b.s, '\xff'));
    diag_truncate(ctx, 0);
}

/* Edits by which one word becomes another; what is longer than 64 letters is not compared. */
static void distances(Test *t, Ctx *ctx)
{
    enum { LONG = 70 };
    char word[2][LONG + 1];
    (void)ctx;
    EXPECT(t, edit_distance("hidden", "hiden", 2) == 1 && edit_distance("abcd", "abdc", 2) == 1);
    EXPECT(t, edit_distance("kitten", "sitting", 3) == 3 && edit_distance("kitten", "sitting", 2) == 3);
    for (int n = 64; n <= LONG; n++)
        for (int k = 0; k < 2; k++) {
            for (int i = 0; i < 2; i++) {
                size_t length = i == k ? (size_t)n : 60;
                memset(word[i], 'a', length);
                word[i][length] = 0;
            }
            EXPECT(t, edit_distance(word[0], word[1], 20) == (n == 64 ? 4 : 21));
        }
}

static void filing(Test *t, Ctx *ctx)
{
    uint32_t file = source_add(ctx, "f.vwn", "a b c\n", 6);
    uint32_t other = source_add(ctx, "o.vwn", "d\n", 2);
    Diag *d = diag_error(ctx, "E0101", (Span){file, 0, 1}, "l", "same");
    diag_label(ctx, d, (Span){other, 0, 1}, "elsewhere");
    EXPECT(t, d->related.n == 1 && d->labels.n == 1);
    EXPECT(t, diag_error(ctx, "E0101", (Span){file, 0, 1}, "l", "same") != NULL);
    EXPECT(t, diag_errors(ctx) == 1);
    diag_error(ctx, "E0101", (Span){file, 0, 2}, "l", "same");
    diag_warning(ctx, "W0304", "dead_weights", (Span){file, 0, 1}, "l", "same");
    EXPECT(t, diag_errors(ctx) == 2 && diag_warnings(ctx) == 1 && diag_count(ctx) == 3);
    Buf b = buf_new(ctx->program);
    diag_render_all(ctx, &b, false);
    EXPECT(t, strstr(b.s, "  |\n\nwarning[W0304]: same\n") || strstr(b.s, "\n\nwarning[W0304]: same\n"));
    diag_truncate(ctx, 1);
    EXPECT(t, diag_errors(ctx) == 1 && diag_warnings(ctx) == 0 && diag_get(ctx, 1) == NULL);
    diag_truncate(ctx, 0);
    volatile int filed = 0;
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        for (;;) {
            diag_error(ctx, "E0101", (Span){file, 0, 1}, "", "number %d", filed);
            filed = filed + 1;
        }
    }
    EXPECT(t, filed == DIAG_LIMIT && ctx->raised == ST_INPUT && diag_errors(ctx) == DIAG_LIMIT);
    LineCol p = source_position(ctx, file, 99);
    EXPECT(t, p.line == 2 && p.column == 1);
    EXPECT(t, source_position(ctx, 77, 3).line == 1 && !*source_path(ctx, 77));
    Span j = span_join((Span){file, 4, 5}, (Span){file, 1, 2});
    EXPECT(t, j.lo == 1 && j.hi == 5 && span_join(NO_SPAN, j).lo == 1);
}

int main(void)
{
    Test t = {0};
    reference(&t);
    void (*const tests[])(Test *, Ctx *) = {json, hard_lines, distances, filing};
    for (size_t i = 0; i < COUNT_OF(tests); i++) {
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            tests[i](&t, ctx);
            ctx_leave(ctx, &guard);
        } else {
            EXPECT(&t, !"raised");
        }
        ctx_free(ctx);
    }
    return test_end(&t);
}
