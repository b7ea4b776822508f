/* format.c - the formatter.
 *
 * In:  small texts, the library, the examples, and the texts of this folder.
 * Out: canonical texts. What always has to hold: formatting twice is formatting once, the tree
 * is the same, no comment is lost, no line ends in a blank.
 * When: quick.
 */
#define _XOPEN_SOURCE 700
#include "test.h"

#include <dirent.h>

typedef struct Case {
    const char *source, *wanted; /* NULL: the source is canonical */
} Case;

static const Case cases[] = {
    {"", NULL},
    {"\n\n\n", ""},
    {"# only a comment\n", NULL},
    {"\n\n# first\n\n\n\n# second\n\n\n", "# first\n\n# second\n"},
    {"a=1", "a = 1\n"},
    {"a=1;bb=2\r\n", "a  = 1\nbb = 2\n"},
    {"a = 1\n\nbb = 2\n", NULL},
    {"a = 1\n# between\nbb = 2\n", NULL},
    {"a = 1\nlet bb = 2\nlet c = 3\n", "a = 1\nlet bb = 2\nlet c  = 3\n"},
    {"let x:float=3\n", "let x : float = 3\n"},
    {"import \"x\" as y(a=1,)\n", "import \"x\" as y (a = 1)\n"},

    /* bodies */
    {"names old{\"emb\"=a.W}\n", "names old { \"emb\" = a.W }\n"},
    {"n {}\n", NULL},
    {"n {\n}\n", "n {}\n"},
    {"n {\n  # why\n}\n", NULL},
    {"n{a=1,b=2}\n", "n { a = 1, b = 2 }\n"},
    {"n { a = 1, b = 2, c = 3, d = 4, e = 5, f = 6 }\n", NULL},
    {"n { a, b, c, d, e, f, g }\n", "n {\n  a\n  b\n  c\n  d\n  e\n  f\n  g\n}\n"},
    {"n { a = 1\n}\n", "n {\n  a = 1\n}\n"},
    {"embed tokens { vocab = 65 }\nembed position { size = 256 }\n",
     "embed tokens   { vocab = 65 }\nembed position { size = 256 }\n"},
    {"attention { attribute_number_one = 1, attribute_number_two = 2, attribute_number_three = "
     "3, "
     "a = 444 }\n",
     "attention {\n  attribute_number_one   = 1\n  attribute_number_two   = 2\n"
     "  attribute_number_three = 3\n  a                      = 444\n}\n"},
    {"attention { attribute_number_one = 1, attribute_number_two = 2, attribute_number_three = "
     "3, "
     "a = 44 }\n",
     NULL},
    {"n { m { a = 1 } }\n", NULL},
    {"if a{b}else if c{d}else{e}\n", "if a { b } else if c { d } else { e }\n"},
    {"if a {\n b } else { c }\n", "if a {\n  b\n} else {\n  c\n}\n"},
    {"n\n{\n  a\n}\n", "n {\n  a\n}\n"},
    {"for i in 1 .. n - 1 { a }\n", "for i in 1..n-1 { a }\n"},
    {"for i in 0..(n - 1) * 2 { a }\n", "for i in 0..(n - 1)*2 { a }\n"},
    {"block f(a:int,bb:block=g)(x:[..,D])->[..,D]{return x}\n",
     "block f(a: int, bb: block = g)(x: [.., D]) -> [.., D] { return x }\n"},
    {"block f(\n a:int,\n bb:block=g, c : float = 1)(x: [D]) { return x }\n",
     "block f(\n  a : int,\n  bb: block = g, c: float = 1,\n)(x: [D]) { return x }\n"},
    {"block f(\n  a  : int,\n  bb : block = g,\n  c  : fn    = h,\n) {}\n", NULL},
    {"check a \"m\" { code=\"E\" }\n", "check a \"m\" { code = \"E\" }\n"},
    {"/-  a { b = 1 }\n", "/- a { b = 1 }\n"},

    /* tensors */
    {"param W:[a,b]=init{group=g}\nbuffer tau:[]=f(1)\nparam b : [b] = zero { group = h }\n",
     "param  W   : [a, b] = init { group = g }\nbuffer tau : []     = f(1)\n"
     "param  b   : [b]    = zero { group = h }\n"},
    {"param W : [a] = init { g = 1 }\nparam V : [a] = i { g = 1 }\n",
     "param W : [a] = init { g = 1 }\nparam V : [a] = i    { g = 1 }\n"},

    /* expressions */
    {"a = -b^2*c@d mod e/-f\n", "a = -b ^ 2 * c @ d mod e / -f\n"},
    {"a = not b and(c)or d\n", "a = not b and (c) or d\n"},
    {"a = if b then c else d\n", NULL},
    {"a = f (1,b=2) [1,*].c\n", "a = f(1, b = 2)[1, *].c\n"},
    {"a = [i*j for i in 1..n,j in m if i<j]\n", "a = [i * j for i in 1..n, j in m if i < j]\n"},
    {"a = 64   seqs\n", "a = 64 seqs\n"},
    {"a = 1_000 + 50_304\n", NULL},
    {"a = \"x\\\"\\\\\\n\\t\xc3\xb6\"\n", NULL},
    {"a = b\n + c\n * d\n", "a = b\n  + c\n  * d\n"},
    {"a = b +\n c\n", "a = b\n  + c\n"},
    {"a = if b\nthen c\nelse d\n", "a = if b\n  then c\n  else d\n"},
    {"a = f(\nx,\n yy = 1,\n z=2)\n", "a = f(\n  x,\n  yy = 1,\n  z  = 2,\n)\n"},
    {"a = f(x,\n  y)\n", "a = f(\n  x,\n  y,\n)\n"},
    {"a = f([\n 1,2,\n 3])\n", "a = f([\n  1, 2,\n  3,\n])\n"},
    {"a = f(x\n)\n", "a = f(x)\n"},
    {"a = [\n]\n", "a = []\n"},
    {"a = [[0,1,0],\n[1,10,-1]]\n", "a = [[0,  1,  0],\n     [1, 10, -1]]\n"},
    {"a = [\n  [1, x],\n  [22, yy],\n]\n", "a = [\n  [ 1,  x],\n  [22, yy],\n]\n"},
    {"a = [1, 2,\n 3, 4]\n", "a = [1, 2,\n     3, 4]\n"},
    {"a = b[1,\n2]\n", "a = b[1,\n      2]\n"},
    {"a = b[\n1,\n2]\n", "a = b[\n  1,\n  2\n]\n"},
    {"a = [\n  x\n  for x in y\n  if x > 1\n]\n", NULL},
    {"a = [  # why\n  x           # one\n  for x in y  # each\n]\n", NULL},
    {"\"a.b\" = c.T\n\"long.name\" = d\n", "\"a.b\"       = c.T\n\"long.name\" = d\n"},

    /* comments */
    {"a = 1 # x\nbbb = 2   # y\n", "a   = 1   # x\nbbb = 2   # y\n"},
    {"a = 1        # x\n", NULL},
    {"n { # why\n  a\n} # end\n", "n {  # why\n  a\n}  # end\n"},
    {"n {\n  a\n\n  # last\n}\n", NULL},
    {"n {\n      ## doc\n   a\n}\n", "n {\n  ## doc\n  a\n}\n"},
    {"a = f( # one\n  x, # two\n  # three\n  y # four\n  # five\n)\n",
     "a = f(  # one\n  x,  # two\n  # three\n  y,  # four\n  # five\n)\n"},
    {"a = b # one\n  + c # two\n", "a = b  # one\n  + c  # two\n"},
    {"a = f(b = # odd\n 1)\n", "a = f(b   # odd\n  = 1)\n"},
    {"let x # odd\n = 1\n", "let x  # odd\n  = 1\n"},
    {"if a { # x\n b\n}\nelse { # y\n c\n}\n", "if a {  # x\n  b\n} else {  # y\n  c\n}\n"},
    {"a = 1 #no blank\n#   kept   \n", "a = 1  #no blank\n#   kept\n"},
    {"a = 1 # one\nb = [ # two\n]\n", "a = 1  # one\nb = [  # two\n]\n"},
};

static bool format(Ctx *ctx, const char *name, const char *s, size_t n, Ast **ast, Buf *out)
{
    uint32_t file = source_add(ctx, name, s, n);
    *ast = vwn_parse(ctx, file);
    if (diag_errors(ctx)) {
        diag_render_all(ctx, out, false);
        diag_truncate(ctx, 0);
        return false;
    }
    vwn_format(ctx, file, *ast, out);
    return true;
}

static size_t count_comments(const char *s)
{
    size_t n = 0;
    for (bool string = false; *s; s++) {
        if (string && *s == '\\' && s[1])
            s++;
        else if (*s == '"')
            string = !string;
        if (*s == '\n')
            string = false;
        if (*s == '#' && !string) {
            n++;
            s += strcspn(s, "\n");
            if (!*s)
                break;
        }
    }
    return n;
}

/* Formats, and checks what always has to hold. Returns the text, or the messages. */
static const char *check(Test *t, Ctx *ctx, const char *name, const char *s, size_t n)
{
    Buf once = buf_new(ctx->program), twice = buf_new(ctx->program);
    Ast *a, *b;
    if (!format(ctx, name, s, n, &a, &once)) {
        EXPECT(t, !"parses");
        return once.s;
    }
    EXPECT(t, format(ctx, name, once.s, once.n, &b, &twice));
    test_same(t, name, twice.s, once.s);
    EXPECT(t, ast_equal(a, b));
    EXPECT(t, count_comments(s) == count_comments(once.s));
    EXPECT(t, !strstr(once.s, " \n") && !strchr(once.s, '\t') && !strchr(once.s, '\r'));
    EXPECT(t, !strstr(once.s, "\n\n\n") && once.s[0] != '\n');
    EXPECT(t, once.n == 0 || once.s[once.n - 1] == '\n');
    return once.s;
}

static void small(Test *t, const Case *c)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        const char *got = check(t, ctx, c->source, c->source, strlen(c->source));
        test_same(t, c->source, got, c->wanted ? c->wanted : c->source);
        ctx_leave(ctx, &guard);
    } else {
        EXPECT(t, !"raised");
    }
    ctx_free(ctx);
}

static void whole_file(Test *t, const char *path, const char *text, size_t n)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        int before = t->failures;
        check(t, ctx, path, text, n);
        if (t->failures > before)
            printf("  in %s\n", path);
        ctx_leave(ctx, &guard);
    } else {
        EXPECT(t, !"raised");
    }
    ctx_free(ctx);
}

static int corpus(Test *t, const char *folder)
{
    char path[700];
    int files = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        size_t len = strlen(e->d_name), n;
        if (len < 5 || strcmp(e->d_name + len - 4, ".vwn"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        char *text = test_read(path, &n);
        if (text)
            whole_file(t, path, text, n);
        free(text);
        files++;
    }
    if (dir)
        closedir(dir);
    return files;
}

static void printing(Test *t)
{
    static const char *const texts[] = {
        "a + b * -c ^ 2",
        "f(x, a = 1)(y)[1, *].z",
        "\"q\\\"\\\\\\n\\t\"",
        "[.., n-1..m]",
        "if a then b else c",
        "[i for i in 0..n-1 if i != 2]",
        "not (a or b)",
        "64 seqs",
        "f(/- a, b)",
        "[[0, 1], [1, 0]]",
        "true",
    };
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        for (size_t i = 0; i < COUNT_OF(texts); i++) {
            Buf b = buf_new(ctx->program);
            const Ast *a = vwn_parse_expr(ctx, source_add(ctx, "e", texts[i], strlen(texts[i])));
            buf_puts(&b, ">");
            if (a)
                ast_print_expr(&b, a);
            test_same(t, "printed", b.s + 1, texts[i]);
        }
        const char *broken = "f(\n  a, # c\n  b,\n)";
        Buf b = buf_new(ctx->program);
        ast_print_expr(&b, vwn_parse_expr(ctx, source_add(ctx, "e", broken, strlen(broken))));
        test_same(t, "printed", b.s, "f(a, b)");
        ctx_leave(ctx, &guard);
    }
    ctx_free(ctx);
}

int main(void)
{
    Test t = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        small(&t, &cases[i]);
    printing(&t);
    EXPECT(&t, corpus(&t, VWN_SOURCE_DIR "/tests/front/corpus") >= 2);
    corpus(&t, VWN_SOURCE_DIR "/grammar/std");
    corpus(&t, VWN_SOURCE_DIR "/examples");
    return test_end(&t);
}
