/* parse.c - the grammar: every production, precedence, the newline rule, spans, numbers.
 *
 * In:  small texts.   Out: their trees as one-line expressions, compared with what they have to
 * be.
 * When: quick.
 */
#include "parse_files.h"
#include "test.h"

static void sexp(Buf *out, const Ast *a)
{
    if (!a) {
        buf_putc(out, '-');
        return;
    }
    bool leaf = a->n == 0 && a->name && !a->doc;
    if (leaf && (a->kind == AST_NUM || a->kind == AST_ID || a->kind == AST_BOOL)) {
        buf_puts(out, a->name);
        return;
    }
    buf_printf(out, "(%s", ast_kind_name(a->kind));
    if (a->name)
        buf_printf(out, a->kind == AST_STR || a->kind == AST_QTY ? " '%s'" : " %s", a->name);
    if (a->doc)
        buf_printf(out, " ##%s", a->doc);
    for (uint32_t i = 0; i < a->n; i++) {
        buf_putc(out, ' ');
        sexp(out, a->kid[i]);
    }
    buf_putc(out, ')');
}

static const Case exprs[] = {
    {"if a then b else if c then d else e", "(cond a b (cond c d e))"},
    {"if a then b else c + 1", "(cond a b (op + c 1))"},
    {"a or b and not c == d", "(op or a (op and b (not (op == c d))))"},
    {"a or b or c", "(op or (op or a b) c)"},
    {"not not a", "(not (not a))"},
    {"a == b .. c", "(op == a (range b c))"},
    {"0..n-1", "(range 0 (op - n 1))"},
    {"a + b * c ^ d ^ e", "(op + a (op * b (op ^ c (op ^ d e))))"},
    {"a - b - c", "(op - (op - a b) c)"},
    {"a / b * c @ d mod e", "(op mod (op @ (op * (op / a b) c) d) e)"},
    {"-a ^ 2", "(neg (op ^ a 2))"},
    {"-a * b", "(op * (neg a) b)"},
    {"2 ^ -a", "(op ^ 2 (neg a))"},
    {"- - a", "(neg (neg a))"},
    {"--a", "(neg (neg a))"},
    {"a.b(c)[1].d", "(field d (index (call (field b a) (args c)) (list 1)))"},
    {"f(a = 1)(x)", "(call (call f (args (named a 1))) (args x))"},
    {"f()", "(call f (args))"},
    {"f(x, a = 1,)", "(call f (args x (named a 1)))"},
    {"(a)", "(paren a)"},
    {"[]", "(list)"},
    {"[a, b,]", "(list a b)"},
    {"[.., D]", "(list (dots) D)"},
    {"x[*, 1]", "(index x (list (star) 1))"},
    {"[[0, 1], [1, 0]]", "(list (list 0 1) (list 1 0))"},
    {"[i for i in 1..n]", "(comp i (iters (iter i (range 1 n))) -)"},
    {"[i * j for i in a, j in b if i < j]", "(comp (op * i j) (iters (iter i a) (iter j b)) (op < i j))"},
    {"[if c then 1 else 0 for i in a]", "(comp (cond c 1 0) (iters (iter i a)) -)"},
    {"true and false", "(op and true false)"},
    {"64 seqs", "(qty '64 seqs')"},
    {"1Mi \t tokens", "(qty '1Mi tokens')"},
    {"0.5M tokens + 100B tokens", "(op + (qty '0.5M tokens') (qty '100B tokens'))"},
    {"[1 step, 2 h, 3 min, 4 s, 5 ms, 6 KiB, 7 MiB, 8 GiB, 1 tok, 1 image, 2 epochs, 1 seq]",
     "(list (qty '1 step') (qty '2 h') (qty '3 min') (qty '4 s') (qty '5 ms') (qty '6 KiB') "
     "(qty '7 MiB') (qty '8 GiB') (qty '1 tok') (qty '1 image') (qty '2 epochs') (qty '1 "
     "seq'))"},
    {"if a == 1 then 2 else 3", "(cond (op == a 1) 2 3)"},
    {"1 mod s", "(op mod 1 s)"},
    {"h + s", "(op + h s)"},
    {"1..8", "(range 1 8)"},
    {"1.5..2", "(range 1.5 2)"},
    {"0.75L * 0.3d", "(op * 0.75L 0.3d)"},
    {"a <= b", "(op <= a b)"},
    {"a >= b", "(op >= a b)"},
    {"a < b", "(op < a b)"},
    {"a > b", "(op > a b)"},
    {"a != b", "(op != a b)"},
    {"one_of(a, b)", "(call one_of (args a b))"},
    {"importx + lets + format", "(op + (op + importx lets) format)"},
    {"a # c", "a"},
};

static const Case paths[] = {
    {"width.bottleneck", "(path width (dot bottleneck))"},
    {"layer[3].attention.heads", "(path layer (at 3) (dot attention) (dot heads))"},
    {"layer[*]", "(path layer (at (star)))"},
    {"D", "(path D)"},
};

static void compare(Test *t, const Case *c, int what)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        uint32_t file = source_add(ctx, "t.vwn", c->source, strlen(c->source));
        Buf b = buf_new(ctx->program);
        const Ast *a = what == 0   ? vwn_parse(ctx, file)
                       : what == 1 ? vwn_parse_expr(ctx, file)
                                   : vwn_parse_path(ctx, file);
        for (uint32_t i = 0; what == 0 && i < a->n; i++) {
            buf_puts(&b, i ? " " : "");
            sexp(&b, a->kid[i]);
        }
        if (what != 0 && a)
            sexp(&b, a);
        diag_render_all(ctx, &b, false);
        if (!test_same(t, c->source, b.s, c->tree))
            putchar('\n');
        ctx_leave(ctx, &guard);
    } else {
        EXPECT(t, !"raised");
    }
    ctx_free(ctx);
}

/* Every node of the kind: its source text and that of its name. */
static void spans_of(Buf *b, const Ast *a, const char *s)
{
    if (!a)
        return;
    buf_printf(b, "%s <%.*s>", ast_kind_name(a->kind), (int)(a->span.hi - a->span.lo), s + a->span.lo);
    if (a->name_span.lo != a->span.lo || a->name_span.hi != a->span.hi)
        buf_printf(b, " <%.*s>", (int)(a->name_span.hi - a->name_span.lo), s + a->name_span.lo);
    buf_putc(b, '\n');
    for (uint32_t i = 0; i < a->n; i++)
        spans_of(b, a->kid[i], s);
}

static const Case spans[] = {
    {"let x = a + f(b = 2)[1].c # k\n",
     "let <let x = a + f(b = 2)[1].c> <x>\nop <a + f(b = 2)[1].c> <+>\nid <a>\n"
     "field <f(b = 2)[1].c> <c>\nindex <f(b = 2)[1]>\ncall <f(b = 2)>\nid <f>\nargs <(b = 2)>\n"
     "named <b = 2> <b>\nnum <2>\nlist <[1]>\nnum <1>\n"},
    {"a[1].b n { /- p = -q, r }  ",
     "node <a[1].b n { /- p = -q, r }>\npath <a[1].b> <a>\nat <[1]>\nnum <1>\ndot <.b> <b>\n"
     "label <n>\nitems <{ /- p = -q, r }>\noff </- p = -q>\nset <p = -q>\npath <p>\nneg "
     "<-q>\nid <q>\n"
     "node <r>\npath <r>\n"},
    {"param W : [D, 2] = (init) { g = 1 }\n",
     "param <param W : [D, 2] = (init) { g = 1 }> <W>\nlist <[D, 2]>\nid <D>\nnum <2>\n"
     "paren <(init)>\nid <init>\nitems <{ g = 1 }>\nset <g = 1>\npath <g>\nnum <1>\n"},
    {"import \"m.vwn\" as b (n = 1)\n",
     "import <import \"m.vwn\" as b (n = 1)> <\"m.vwn\">\nid <b>\nargs <(n = 1)>\nnamed <n = "
     "1> <n>\n"
     "num <1>\n"},
    {"block f(n: int = 2)(x: [..]) -> [*] { return [i for i in x if c] }",
     "block <block f(n: int = 2)(x: [..]) -> [*] { return [i for i in x if c] }> <f>\n"
     "params <(n: int = 2)>\npar <n: int = 2> <n>\nid <int>\nnum <2>\nparams <(x: [..])>\n"
     "par <x: [..]> <x>\nlist <[..]>\ndots <..>\nlist <[*]>\nstar <*>\n"
     "items <{ return [i for i in x if c] }>\nreturn <return [i for i in x if c]>\n"
     "comp <[i for i in x if c]>\nid <i>\niters <i in x>\niter <i in x> <i>\nid <x>\nid <c>\n"},
    {"if a { b } else if c { d }\n", "if <if a { b } else if c { d }>\nid <a>\nitems <{ b "
                                     "}>\nnode <b>\npath <b>\nif <if c { d }>\n"
                                     "id <c>\nitems <{ d }>\nnode <d>\npath <d>\n"},
    {"for i in 1..n { \"e\" = 64 seqs }",
     "for <for i in 1..n { \"e\" = 64 seqs }> <i>\nrange <1..n>\nnum <1>\nid <n>\n"
     "items <{ \"e\" = 64 seqs }>\nentry <\"e\" = 64 seqs> <\"e\">\nqty <64 seqs>\n"},
};

static void check_spans(Test *t)
{
    for (volatile size_t i = 0; i < COUNT_OF(spans); i++) {
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            const char *s = spans[i].source;
            uint32_t file = source_add(ctx, "t.vwn", s, strlen(s));
            const Ast *a = vwn_parse(ctx, file);
            EXPECT(t, diag_count(ctx) == 0 && a->n == 1 && a->span.hi == strlen(s));
            Buf b = buf_new(ctx->program);
            spans_of(&b, a->kid[0], s);
            test_same(t, s, b.s, spans[i].tree);
            ctx_leave(ctx, &guard);
        }
        ctx_free(ctx);
    }
}

static const struct {
    const char *text;
    double value;
    char rel;
    bool fraction;
    const char *unit;
} numbers[] = {
    {"12", 12, 0, false, NULL},
    {"1_000", 1000, 0, false, NULL},
    {"0.02", 0.02, 0, true, NULL},
    {"1e-3", 1e-3, 0, true, NULL},
    {"1.5E+3", 1500, 0, true, NULL},
    {"10%", 0.1, 0, true, NULL},
    {"0.1%", 0.001, 0, true, NULL},
    {"400k", 400000, 0, false, NULL},
    {"10.75M", 10750000, 0, true, NULL},
    {"100B", 1e11, 0, false, NULL},
    {"2T", 2e12, 0, false, NULL},
    {"2Ki", 2048, 0, false, NULL},
    {"1Mi", 1048576, 0, false, NULL},
    {"3Gi", 3221225472.0, 0, false, NULL},
    {"0.3d", 0.3, 'd', true, NULL},
    {"0.75L", 0.75, 'L', true, NULL},
    {"1d", 1, 'd', false, NULL},
    {"64 seqs", 64, 0, false, "seq"},
    {"0.5M tokens", 500000, 0, true, "token"},
    {"1Mi tok", 1048576, 0, false, "token"},
    {"500 steps", 500, 0, false, "step"},
    {"8 GiB", 8, 0, false, "GiB"},
    {"2 h", 2, 0, false, "h"},
    {"1 epoch", 1, 0, false, "epoch"},
    {"9_007_199_254_740_992", 9007199254740992.0, 0, false, NULL},
    {"0", 0, 0, false, NULL},
    {"0.0", 0, 0, true, NULL},
};

static void check_numbers(Test *t)
{
    for (volatile size_t i = 0; i < COUNT_OF(numbers); i++) {
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            const char *s = numbers[i].text;
            const Ast *a = vwn_parse_expr(ctx, source_add(ctx, "t", s, strlen(s)));
            int before = t->failures;
            EXPECT(t, a != NULL);
            AstNumber n = a ? ast_number(ctx, a) : (AstNumber){0};
            EXPECT(t, n.value == numbers[i].value && n.rel == numbers[i].rel);
            EXPECT(t, n.fraction == numbers[i].fraction);
            EXPECT(t, numbers[i].unit ? n.unit && !strcmp(n.unit, numbers[i].unit) : !n.unit);
            if (t->failures > before)
                printf("  in %s: %g\n", s, n.value);
            ctx_leave(ctx, &guard);
        }
        ctx_free(ctx);
    }
}

/* Decimal numbers of up to 20 digits are the doubles that the system's library reads. */
static void check_decimals(Test *t)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    uint64_t draw = 1;
    if (CTX_TRY(ctx, &guard)) {
        for (int i = 0; i < 20000; i++) {
            char text[64], plain[80];
            size_t n = 0;
            draw = draw * 6364136223846793005u + 1442695040888963407u;
            int digits = 1 + (int)(draw >> 59) % 20, point = (int)(draw >> 54) % 24,
                exponent = (int)(draw >> 48) % 60 - 30;
            uint64_t figures = draw * 0x9e3779b97f4a7c15u;
            for (int k = 0; k < digits; k++, figures = figures / 10 + (figures << 59)) {
                if (k && k == point)
                    text[n++] = '.';
                text[n++] = (char)('0' + figures % 10);
            }
            text[n] = 0;
            if (draw >> 63)
                snprintf(text + n, sizeof text - n, "e%d", exponent);
            snprintf(plain, sizeof plain, "%s%s", text, i % 3 || draw >> 63 ? "" : "e3");
            if (!(i % 3) && !(draw >> 63))
                strcpy(text + n, "k");
            Ast number = {.kind = AST_NUM, .name = text};
            double want = strtod(plain, NULL);
            EXPECT(t, ast_number(ctx, &number).value == want);
        }
        ctx_leave(ctx, &guard);
    }
    ctx_free(ctx);
}

/* Texts at the limits: refused or read, but never a crash and never slow. */
static void check_limits(Test *t)
{
    static const struct {
        const char *head, *unit, *tail;
        int times;
        const char *limit; /* NULL when it has to pass */
    } texts[] = {
        {"x = ", "[", "", 200000, "nesting"},
        {"x = ", "(", "", 200000, "nesting"},
        {"", "a {", "", 200000, "nesting"},
        {"x = ", "- ", "1", 200000, "depth"},
        {"x = ", "not ", "a", 200000, "depth"},
        {"x = a", " + a", "", 200000, "depth"},
        {"x = ", "a ^ ", "a", 200000, "depth"},
        {"x = a", ".b", "", 200000, "depth"},
        {"x = a", "(b)", "", 200000, "depth"},
        {"x = ", "if a then b else ", "c", 100000, "depth"},
        {"if a { }", " else if b { }", "", 100000, "depth"},
        {"", "/- ", "a", 200000, "depth"},
        {"", "a\n", "", 1000000, "nodes"},
        {"x = [", "1, ", "1]", 1100000, "nodes"},
        {"", "x = 1234567\n", "", 700000, "bytes of text"},
        {"", "# comment\n", "", 800000, NULL},
        {"x = \"", "0123456789", "\"", 800000, NULL},
        {"", "a\n", "", 400000, NULL},
        {"x = ", "[", "]]]]]", 5, NULL},
    };
    for (volatile size_t i = 0; i < COUNT_OF(texts); i++) {
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            Buf b = buf_new(ctx->program);
            buf_puts(&b, texts[i].head);
            for (int k = 0; k < texts[i].times; k++)
                buf_puts(&b, texts[i].unit);
            buf_puts(&b, texts[i].tail);
            uint32_t file = source_add(ctx, "big.vwn", b.s, b.n);
            const Ast *a = vwn_parse(ctx, file);
            int before = t->failures;
            EXPECT(t, a != NULL);
            EXPECT(t, diag_count(ctx) == (texts[i].limit ? 1 : 0));
            if (texts[i].limit && diag_count(ctx) == 1) {
                const Diag *d = diag_get(ctx, 0);
                EXPECT(t, !strcmp(d->code, "E0008") && strstr(d->message, texts[i].limit));
            }
            if (t->failures > before)
                printf("  in text %zu, %s\n", i, texts[i].unit);
            ctx_leave(ctx, &guard);
        } else {
            EXPECT(t, !"raised");
        }
        ctx_free(ctx);
    }
}

/* The first place where two trees differ is found; parentheses and comments are no difference.
 */
static void check_equality(Test *t)
{
    static const struct {
        const char *a, *b;
        bool same;
    } pairs[] = {
        {"a + b", "a   + b # c", true}, {"(a + b)", "a + b", true},
        {"a + b", "a - b", false},      {"a + b", "a + c", false},
        {"f(a)", "f(a, a)", false},     {"[1]", "[1, 2]", false},
        {"1_0", "10", false},           {"64  seqs", "64 seqs", true},
        {"\"a\"", "a", false},          {"if a then b else c", "if a then b else d", false},
    };
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        for (size_t i = 0; i < COUNT_OF(pairs); i++) {
            const Ast *a = vwn_parse_expr(ctx, source_add(ctx, "a", pairs[i].a, strlen(pairs[i].a)));
            const Ast *b = vwn_parse_expr(ctx, source_add(ctx, "b", pairs[i].b, strlen(pairs[i].b)));
            EXPECT(t, a && b && ast_equal(a, b) == pairs[i].same);
        }
        EXPECT(t, !vwn_parse_expr(ctx, source_add(ctx, "a", "1 +", 3)));
        EXPECT(t, !vwn_parse_expr(ctx, source_add(ctx, "a", "a = 1", 5)));
        EXPECT(t, !vwn_parse_expr(ctx, source_add(ctx, "a", "", 0)));
        EXPECT(t, !vwn_parse_path(ctx, source_add(ctx, "a", "a.", 2)));
        EXPECT(t, !vwn_parse_path(ctx, source_add(ctx, "a", "4D", 2)));
        ctx_leave(ctx, &guard);
    }
    ctx_free(ctx);
}

int main(void)
{
    Test t = {0};
    for (size_t i = 0; i < COUNT_OF(files); i++)
        compare(&t, &files[i], 0);
    for (size_t i = 0; i < COUNT_OF(exprs); i++)
        compare(&t, &exprs[i], 1);
    for (size_t i = 0; i < COUNT_OF(paths); i++)
        compare(&t, &paths[i], 2);
    check_spans(&t);
    check_numbers(&t);
    check_decimals(&t);
    check_limits(&t);
    check_equality(&t);
    return test_end(&t);
}
