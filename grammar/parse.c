/* parse.c - building raw nodes, and the sentences about syntax errors.
 *
 * In:  calls from the actions of vwn.y.   Out: Ast nodes in the context's arena.
 * The one idea: a node under construction carries its depth, so that a tree too deep for
 * recursive walks is refused while it is built, whatever rule made it.
 */
#include "parse.h"
#include "vwn_parser.h"

#include "foreign.h"

#include <ctype.h>

/* ---- nodes ---- */

static ParseNode sized(Parser *p, Ast *ast, uint32_t depth)
{
    if (depth > DEPTH_LIMIT)
        lex_limit(&p->lex, ast->span, "depth of the syntax tree", DEPTH_LIMIT);
    return (ParseNode){ast, depth};
}

ParseNode parse_node(Parser *p, AstKind kind, Name name, Span span, Span name_span, size_t n, const ParseNode *kids)
{
    if (++p->nodes > NODE_LIMIT)
        lex_limit(&p->lex, span, "nodes", NODE_LIMIT);
    Ast *ast = NEW(p->ctx->program, Ast);
    ast->kind = kind;
    ast->name = name;
    ast->span = span;
    ast->name_span = name_span;
    ast->n = (uint32_t)n;
    if (n)
        ast->kid = NEW_ARRAY(p->ctx->program, Ast *, n);
    uint32_t depth = 0;
    for (size_t i = 0; i < n; i++) {
        ast->kid[i] = kids[i].ast;
        depth = kids[i].depth > depth ? kids[i].depth : depth;
    }
    return sized(p, ast, depth + 1);
}

/* The room of a list is the power of two at or above its length, at least 4. */
ParseNode parse_add(Parser *p, ParseNode list, ParseNode kid)
{
    Ast *ast = list.ast;
    uint32_t n = ast->n;
    if (n == 0 || (n >= 4 && (n & (n - 1)) == 0)) {
        Ast **room = NEW_ARRAY(p->ctx->program, Ast *, n ? (size_t)n * 2 : 4);
        if (n)
            memcpy(room, ast->kid, n * sizeof *room);
        ast->kid = room;
    }
    ast->kid[ast->n++] = kid.ast;
    return sized(p, ast, kid.depth + 1 > list.depth ? kid.depth + 1 : list.depth);
}

/* The start of the line that ends (exclusively) at `end`. */
static uint32_t line_start(const char *text, uint32_t end)
{
    while (end > 0 && text[end - 1] != '\n')
        end--;
    return end;
}

/* The bytes of a `##` line behind the marks, or NULL when it is another kind of line. */
static const char *doc_text(const char *text, uint32_t lo, uint32_t hi, size_t *n)
{
    while (lo < hi && (text[lo] == ' ' || text[lo] == '\t'))
        lo++;
    if (hi - lo < 2 || text[lo] != '#' || text[lo + 1] != '#')
        return NULL;
    lo += 2;
    if (lo < hi && text[lo] == ' ')
        lo++;
    while (hi > lo && (text[hi - 1] == ' ' || text[hi - 1] == '\t' || text[hi - 1] == '\r'))
        hi--;
    *n = hi - lo;
    return text + lo;
}

/* The `##` lines right above an item that is the first thing on its line. */
static Name doc_above(Parser *p, uint32_t at)
{
    const char *text = p->lex.text;
    while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t'))
        at--;
    if (at == 0 || text[at - 1] != '\n')
        return NULL;
    uint32_t first = at;
    size_t n;
    while (first > 0) {
        uint32_t above = line_start(text, first - 1);
        if (!doc_text(text, above, first - 1, &n))
            break;
        first = above;
    }
    if (first == at)
        return NULL;
    Buf b = buf_new(p->lex.arena);
    for (uint32_t lo = first; lo < at;) {
        uint32_t hi = lo;
        while (text[hi] != '\n')
            hi++;
        const char *line = doc_text(text, lo, hi, &n);
        if (b.n)
            buf_putc(&b, '\n');
        buf_put(&b, line, n);
        lo = hi + 1;
    }
    return name_of(p->ctx, b.s, b.n);
}

ParseNode parse_item(Parser *p, ParseNode list, ParseNode item)
{
    item.ast->doc = doc_above(p, item.ast->span.lo);
    return parse_add(p, list, item);
}

/* ---- syntax errors ---- */

bool expects(Expected e, const char *name)
{
    for (size_t i = 0; i < e.n; i++)
        if (!strcmp(e.name[i], name))
            return true;
    return false;
}

/* Says in one phrase what could have stood here. An operator is never what was forgotten. */
static void put_expected(Buf *b, Expected e)
{
    static const char *const minor[] = {
        "+",  "-",  "*", "/", "//", "@",          "mod",           "^",  "==", "!=", "<", "<=", ">", ">=", "and",
        "or", "..", "(", "[", ".",  "a quantity", "true or false", "/-", "for"};
    const char *pick[8];
    size_t n = 0;
    if (expects(e, "a number")) {
        pick[n++] = "an expression";
        for (size_t i = 0; i < e.n; i++)
            if (!strcmp(e.name[i], ")") || !strcmp(e.name[i], "]"))
                pick[n++] = e.name[i];
    } else if (expects(e, "let") && expects(e, "import")) {
        pick[n++] = "an item";
    } else {
        for (size_t i = 0; i < e.n && n < COUNT_OF(pick); i++) {
            size_t k = 0;
            while (k < COUNT_OF(minor) && strcmp(minor[k], e.name[i]))
                k++;
            if (k == COUNT_OF(minor) || e.n == 1)
                pick[n++] = e.name[i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        bool words = strchr(pick[i], ' ') != NULL;
        buf_puts(b, list_gap(i, n, " or "));
        buf_printf(b, words ? "%s" : "`%s`", pick[i]);
    }
    if (!n)
        buf_puts(b, "something else");
}

/* What was found: its name, its place and the words under the carets. */
static const char *put_found(Parser *p, Buf *b, Span *at)
{
    Lex *lx = &p->lex;
    int kind = p->token.kind;
    *at = p->token.span;
    if (kind == T_SEP && at->lo == at->hi) {
        if (lx->by_newline) {
            buf_puts(b, "the end of the line");
            return "the line ends here";
        }
        kind = lx->raw.kind;
        *at = lx->raw.span;
    }
    if (kind == 0) {
        buf_puts(b, "the end of the file");
        return "the file ends here";
    }
    uint32_t n = at->hi - at->lo;
    if (kind == T_STRING)
        buf_puts(b, "a string");
    else
        buf_printf(b, n > 40 ? "`%.*s...`" : "`%.*s`", (int)(n > 40 ? 40 : n), lx->text + at->lo);
    return "not expected here";
}

static bool is_keyword(int kind)
{
    switch (kind) {
    case T_IMPORT:
    case T_AS:
    case T_LET:
    case T_BLOCK:
    case T_PARAM:
    case T_BUFFER:
    case T_RETURN:
    case T_CHECK:
    case T_FOR:
    case T_IN:
    case T_IF:
    case T_THEN:
    case T_ELSE:
    case T_AND:
    case T_OR:
    case T_NOT:
    case T_MOD:
    case T_BOOL: return true;
    default: return false;
    }
}

static char char_after(const Lex *lx, uint32_t at)
{
    while (at < lx->n && (lx->text[at] == ' ' || lx->text[at] == '\t'))
        at++;
    return at < lx->n ? lx->text[at] : 0;
}

/* Whether `==` comes next. */
static bool followed_by_equals(const Lex *lx, uint32_t at)
{
    while (at < lx->n && (lx->text[at] == ' ' || lx->text[at] == '\t'))
        at++;
    return at + 1 < lx->n && lx->text[at] == '=' && lx->text[at + 1] == '=';
}

/* Whether what follows a reserved word is what follows a name in an expression or in a list of parameters:
 * `return in`, `(in: dim)`. Words that go on with an expression of their own, as in `x = let y`, are no names. */
static bool goes_on_as_name(const Lex *lx, Token word, Expected e)
{
    char next = char_after(lx, word.span.hi);
    bool separate = word.kind == T_IN || word.kind == T_AS || word.kind == T_BLOCK || word.kind == T_PARAM ||
                    word.kind == T_BUFFER || word.kind == T_CHECK;
    return separate && expects(e, "a name") && (!next || strchr("\n\r,)];}:.+-*/@^<>", next));
}

/* `let in = 3`, `f(for = 2)`, `check = 1`: a reserved word where a name was meant. */
static bool reserved_word(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token word = p->token, before = lx->before_last;
    char next = char_after(lx, word.span.hi);
    bool found = false;
    if (is_keyword(word.kind)) {
        switch (before.kind) {
        case T_LET:
        case T_BLOCK:
        case T_PARAM:
        case T_BUFFER:
        case T_FOR:
        case T_AS:
        case T_DOT: found = true; break;
        case T_IDENT: found = next == '{'; break;
        default: found = (next == '=' && !followed_by_equals(lx, word.span.hi)) || goes_on_as_name(lx, word, e); break;
        }
    } else if (is_keyword(before.kind) && before.kind != T_BOOL &&
               (word.kind == T_ASSIGN || word.kind == T_DOT || word.kind == T_COLON)) {
        word = before;
        found = true;
    }
    if (!found)
        return false;
    int n = (int)(word.span.hi - word.span.lo);
    const char *s = lx->text + word.span.lo;
    Diag *d = diag_error(p->ctx, "E0006", word.span, "not a name", "`%.*s` is a reserved word", n, s);
    diag_note(p->ctx, d,
              "reserved are import as let block param buffer return check for in if then "
              "else and or not mod true false");
    if (word.kind == T_CHECK && (next == '=' || p->token.kind == T_ASSIGN))
        diag_help(p->ctx, d, "a check has no `=`: `check preserves(1e-5)`, `check params <= 300M`");
    else if (word.kind == T_IN && next == '=' && lx->depth && lx->open[lx->depth - 1].kind == T_LPAREN)
        diag_help(p->ctx, d, "what a layer reads is seen from the tensor: leave `in` out");
    else
        diag_help(p->ctx, d, "choose another name, for example `%.*s_`", n, s);
    return true;
}

/* Well-known attributes, for the help of a value that was forgotten. */
static const char *const samples[][3] = {
    {"heads", "the number of heads", "12"},
    {"kv_heads", "the number of key and value heads", "4"},
    {"head_dim", "the size of one head", "64"},
    {"hidden", "the number of hidden columns", "3072"},
    {"width", "the width of the stream", "768"},
    {"context", "the number of positions", "1024"},
    {"vocab", "the number of rows of the table", "50_304"},
    {"batch", "the batch with its unit", "64 seqs"},
    {"length", "the length of the run with its unit", "10B tokens"},
    {"seed", "the seed", "1"},
    {"lr", "the learning rate", "3e-4"},
    {"eps", "the epsilon", "1e-6"},
};

/* The name in front of the `=` that ends at `end`: its place. */
static Span name_before(const Lex *lx, uint32_t end, Span *whole)
{
    uint32_t hi = end - 1;
    while (hi > 0 && (lx->text[hi - 1] == ' ' || lx->text[hi - 1] == '\t'))
        hi--;
    uint32_t lo = hi;
    if (lo > 0 && lx->text[lo - 1] == '"') {
        lo = lx->item[0].span.lo;
    } else {
        while (lo > 0 && (strchr("_.*[]", lx->text[lo - 1]) || (lx->text[lo - 1] >= '0' && lx->text[lo - 1] <= '9') ||
                          ((lx->text[lo - 1] | 32) >= 'a' && (lx->text[lo - 1] | 32) <= 'z')))
            lo--;
    }
    *whole = (Span){lx->file, lo, end};
    return (Span){lx->file, lo, hi};
}

/* `heads =` and nothing behind it. */
static bool missing_value(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    if (lx->before_last.kind != T_ASSIGN || !expects(e, "a number"))
        return false;
    if (p->token.kind != T_SEP && p->token.kind != T_RPAREN && p->token.kind != T_COMMA)
        return false;
    Span whole, name = name_before(lx, lx->before_last.span.hi, &whole);
    int first = lx->item[0].kind;
    if (p->token.kind == T_SEP && lx->item_before == 2 && (first == T_LET || first == T_PARAM || first == T_BUFFER)) {
        name = lx->item[1].span;
        whole.lo = name.lo;
    }
    if (name.lo >= name.hi) /* not the beginning of its item */
        return false;
    const char *text = name_of(p->ctx, lx->text + name.lo, name.hi - name.lo);
    Diag *d = diag_error(p->ctx, "E0001", whole, "expected an expression after `=`", "`%s` has no value", text);
    if (p->token.kind == T_SEP && lx->by_newline)
        diag_note(p->ctx, d, "the next line starts a new item, so the value cannot be there");
    for (size_t i = 0; i < COUNT_OF(samples); i++)
        if (!strcmp(text, samples[i][0])) {
            diag_help(p->ctx, d, "write %s, for example `%s = %s`", samples[i][1], text, samples[i][2]);
            return true;
        }
    diag_help(p->ctx, d, "write a value behind the `=`, or delete it");
    return true;
}

/* `param W : [a, b]`, `param W`, `param W = zeros`: no initial value, or no shape. */
static bool unborn_weight(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    int first = lx->item[0].kind;
    if ((first != T_PARAM && first != T_BUFFER) || lx->item_before < 2 || lx->item[1].kind != T_IDENT)
        return false;
    const char *kind = first == T_PARAM ? "param" : "buffer", *name = lx->item[1].text;
    bool ends = p->token.kind == T_SEP && lx->by_newline;
    bool shaped = lx->before_last.span.lo > lx->item[1].span.lo;
    if (ends && shaped && expects(e, "=")) {
        Span shape = {lx->file, lx->item[1].span.lo, lx->before_last.span.hi};
        Diag *d =
            diag_error(p->ctx, "E0001", shape, "expected `= ...` behind the shape", "`%s` has no initial value", name);
        diag_note(p->ctx, d, "there is no default initialiser: every %s says which numbers it begins with", kind);
        uint32_t lo = lx->item[0].span.lo;
        int n = (int)(shape.hi - lo);
        diag_help(p->ctx, d, "write `%.*s = %s`", n, lx->text + lo, first == T_PARAM ? "normal(std = 0.02)" : "zeros");
        return true;
    }
    if (!shaped && (ends || p->token.kind == T_ASSIGN)) {
        Diag *d = diag_error(p->ctx, "E0001", lx->item[1].span, "expected `: [...]` behind the name",
                             "`%s` has no shape", name);
        diag_note(p->ctx, d, "a %s gives its extents and its initial values; `[]` is the shape of a single number",
                  kind);
        diag_help(p->ctx, d, "for example `%s %s : [64] = zeros`", kind, name);
        return true;
    }
    return false;
}

/* The rest of a line from `at` on, without a comment and blanks at its end. */
static Span rest_of_line(const Lex *lx, uint32_t at)
{
    while (at < lx->n && lx->text[at] == ' ')
        at++;
    uint32_t hi = at;
    while (hi < lx->n && !strchr("\n\r#;}", lx->text[hi]))
        hi++;
    while (hi > at && (lx->text[hi - 1] == ' ' || lx->text[hi - 1] == '\t'))
        hi--;
    return (Span){lx->file, at, hi};
}

/* `x += 1`, `x++`. */
static bool update_in_place(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token, name = lx->item[0];
    bool operates = t.kind == T_PLUS || t.kind == T_MINUS || t.kind == T_STAR || t.kind == T_SLASH || t.kind == T_AT ||
                    t.kind == T_CARET;
    if (!operates || !expects(e, "=") || lx->item_before != 1 || name.kind != T_IDENT || t.span.hi >= lx->n)
        return false;
    char op = lx->text[t.span.lo], next = lx->text[t.span.hi];
    bool twice = next == op && (op == '+' || op == '-');
    if (next != '=' && !twice)
        return false;
    Span at = {lx->file, t.span.lo, t.span.hi + 1}, rest = rest_of_line(lx, at.hi);
    Diag *d = diag_error(p->ctx, "E0001", at, "not an operator", "`%c%c` does not exist", op, next);
    diag_note(p->ctx, d, "nothing is changed in place: `=` binds a name to a new value");
    int n = (int)(rest.hi - rest.lo);
    const char *text = lx->text + rest.lo;
    bool group = !twice && strcspn(text, "+-*/@^=<> ") < (size_t)n;
    if (twice)
        diag_help(p->ctx, d, "write `%s = %s %c 1`", name.text, name.text, op);
    else if (n)
        diag_help(p->ctx, d, group ? "write `%s = %s %c (%.*s)`" : "write `%s = %s %c %.*s`", name.text, name.text, op,
                  n, text);
    return true;
}

/* Where the bracket that opens at `at` closes; 0 when it does not in a text without strings and comments. */
static uint32_t closing(const Lex *lx, uint32_t at)
{
    int depth = 0;
    for (uint32_t i = at; i < lx->n && !strchr("\"#", lx->text[i]); i++) {
        depth += strchr("([{", lx->text[i]) != NULL;
        depth -= strchr(")]}", lx->text[i]) != NULL;
        if (!depth)
            return i;
    }
    return 0;
}

/* `pre_norm { rms_norm(eps = 1e-6) }`, `= init { normal(std = 0.02) }`: the value of an attribute in braces. */
static bool called_value(Parser *p, Diag *d, uint32_t lo, const char *name, int n, uint32_t close)
{
    static const char *const values[] = {"init", "out_init", "pre_norm", "out_norm",  "norm",    "connection",
                                         "cond", "lr",       "data",     "tokenizer", "position"};
    const char *text = p->lex.text;
    uint32_t at = lo;
    while (at && strchr(" \n", text[at - 1]))
        at--;
    if (!at || text[at - 1] != '{' || !close)
        return false;
    for (at--; at && text[at - 1] == ' ';)
        at--;
    uint32_t end = at;
    while (at && (text[at - 1] == '_' || isalnum((unsigned char)text[at - 1])))
        at--;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        if (strlen(values[i]) != end - at || memcmp(values[i], text + at, end - at))
            continue;
        uint32_t k = at;
        while (k && text[k - 1] == ' ')
            k--;
        int whole = (int)(close - lo) + 1;
        if (k && text[k - 1] == '=')
            diag_help(p->ctx, d, "write `= %.*s`", whole, name);
        else
            diag_help(p->ctx, d, "an attribute has one value: `%s = %.*s`", values[i], whole, name);
        (void)n;
        return true;
    }
    return false;
}

/* `F.scaled_dot_product_attention(q, k, v)`: of a module that is none here. */
static bool called_module(Parser *p, Diag *d, const char *name, int n)
{
    const char *dot = memchr(name, '.', (size_t)n), *last = name + n;
    if (!dot)
        return false;
    while (last[-1] != '.')
        last--;
    Name word = name_of(p->ctx, last, (size_t)(name + n - last));
    const Foreign *row = foreign_next(FOREIGN_NODE, word, NULL);
    row = row ? row : foreign_next(FOREIGN_VALUE, word, NULL);
    if (row && row->text)
        diag_help(p->ctx, d, "%s", row->text);
    else if (row && row->ours)
        diag_help(p->ctx, d, "here it is `%s`", row->ours);
    else
        diag_help(p->ctx, d,
                  "a node has one word for a name, that of a block: `ffn { hidden = 256, activation = gelu }`");
    return true;
}

/* `my_attn(n_head, n_embd)` in a model: a node names what it sets. */
static bool called_in_model(Parser *p, Diag *d, uint32_t lo, const char *name, int n, const char *args, int inside)
{
    const char *text = p->lex.text;
    uint32_t at = lo;
    do {
        while (at && text[at - 1] != '\n')
            at--;
        if (!strncmp(text + at, "model", 5) || !strncmp(text + at, "block", 5) || !at)
            break;
        at--;
    } while (at);
    if (strncmp(text + at, "model", 5) != 0)
        return false;
    Buf b = buf_new(p->ctx->program);
    for (const char *s = args; s < args + inside;) {
        size_t word = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        bool plain = word && isalpha((unsigned char)*s) && strchr(", )", s[word]);
        buf_printf(&b, "%s%.*s = %.*s", b.n ? ", " : "", plain ? (int)word : 4, plain ? s : "NAME",
                   (int)(word ? word : strcspn(s, ",)")), s);
        s += strcspn(s, ",)");
        s += strspn(s, ", ");
        if (*s == ')')
            break;
    }
    diag_help(p->ctx, d, "a node of a model has braces and names what it sets: `%.*s { %s }`", n, name, b.s);
    return true;
}

/* `attention(heads = 4)` as an item: a call that stands alone makes no node and binds nothing. */
static bool called_node(Parser *p, Expected e)
{
    enum { SHOWN = 120 };
    Lex *lx = &p->lex;
    if (p->token.kind != T_LPAREN || !expects(e, "{") || lx->item[0].kind != T_IDENT)
        return false;
    uint32_t lo = lx->item[0].span.lo, open = p->token.span.lo, close = closing(lx, open);
    int n = (int)(open - lo), inside = close ? (int)(close - open) - 1 : 0;
    while (n && lx->text[lo + (uint32_t)n - 1] == ' ')
        n--;
    const char *name = lx->text + lo, *args = lx->text + open + 1;
    bool configures = !inside || memchr(args, '=', (size_t)inside);
    if (!strcmp(lx->item[0].text, "model")) { /* its own name stands behind the word */
        Diag *m = diag_error(p->ctx, "E0001", p->token.span, "", "a model has no parameters");
        if (inside && inside < SHOWN && !memchr(args, ',', (size_t)inside) && configures)
            diag_help(p->ctx, m, "write `let %.*s` in front of it, and `%.*s {`", inside, args, n, name);
        else
            diag_help(p->ctx, m, "sizes are lets of the file, in front of it: `let D = 64`");
        return true;
    }
    const Foreign *row = configures ? NULL : foreign_next(FOREIGN_VALUE, name_of(p->ctx, name, (size_t)n), NULL);
    Diag *d = diag_error(
        p->ctx, "E0001", p->token.span, configures ? "parentheses make a value" : "a value that nothing takes",
        configures ? "`%.*s` is placed with braces, not with parentheses" : "the result of `%.*s` is not used", n,
        name);
    if (configures)
        diag_note(p->ctx, d,
                  "braces compose: `ffn { ... }` is a node of a model; parentheses configure: `ffn(...)` is a value");
    bool line = inside && inside < SHOWN && !memchr(args, '\n', (size_t)inside);
    if (row && !row->ours) {
        diag_help(p->ctx, d, "%s", row->text);
        return true;
    }
    if (called_value(p, d, lo, name, n, close) || called_module(p, d, name, n) ||
        (!configures && line && called_in_model(p, d, lo, name, n, args, inside)))
        return true;
    if (configures && line)
        diag_help(p->ctx, d, "write `%.*s { %.*s }`", n, name, inside, args);
    else if (configures)
        diag_help(p->ctx, d, inside ? "write `%.*s { ... }`" : "write `%.*s { }`", n, name);
    else if (line)
        diag_help(p->ctx, d, "bind it: `y = %.*s(%.*s)`", n, name, inside, args);
    return true;
}

static bool is_schedule(const char *word)
{
    static const char *const words[] = {"constant", "cosine", "linear", "wsd", "power"};
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        found |= !strcmp(words[i], word);
    return found;
}

static void add_hints(Parser *p, Diag *d, Expected e)
{
    const Lex *lx = &p->lex;
    Token t = p->token, before = lx->before_last;
    bool operand = expects(e, "+");
    if (expects(e, "the end of the item") && before.kind == T_RBRACE &&
        (t.kind == T_IDENT || t.kind == T_FOR || t.kind == T_IF || t.kind == T_LET))
        diag_help(p->ctx, d, "items on one line are parted by `;` or `,`: write `; %s`",
                  t.kind == T_FOR   ? "for"
                  : t.kind == T_IF  ? "if"
                  : t.kind == T_LET ? "let"
                                    : t.text);
    else if (before.kind == T_NUMBER && before.text[strlen(before.text) - 1] == '%')
        diag_help(p->ctx, d, "`%%` is percent; the remainder is written `a mod b`");
    else if (before.kind == T_NUMBER && t.kind == T_IDENT && is_schedule(t.text))
        diag_help(p->ctx, d, "a schedule is called with its highest rate: `%s(peak = %s, ...)`", t.text, before.text);
    else if (before.kind == T_NUMBER && t.kind == T_IDENT && lx->item[0].kind == T_IDENT &&
             !strcmp(lx->item[0].text, "batch"))
        diag_help(p->ctx, d, "write `%s seqs`; how many tokens each of them has `context` of the model says",
                  before.text);
    else if (before.kind == T_NUMBER && t.kind == T_IDENT && lx->text[t.span.hi] == '\n')
        diag_help(p->ctx, d, "a word behind a number is its unit: leave `%s` out, or to multiply write `%s * %s`",
                  t.text, before.text, t.text);
    else if (before.kind == T_NUMBER && t.kind == T_IDENT)
        diag_help(p->ctx, d, "to multiply, write `%s * %s`", before.text, t.text);
    else if (operand &&
             (t.kind == T_LT || t.kind == T_GT || t.kind == T_LE || t.kind == T_GE || t.kind == T_EQ || t.kind == T_NE))
        diag_help(p->ctx, d, "comparisons do not chain: write `a < b and b < c`");
    else if (operand && t.kind == T_ASSIGN && before.kind == T_RPAREN)
        diag_help(p->ctx, d,
                  "`=` binds one name; what has several results has fields: `top = top_k(x, 2)`, then `top.values` and "
                  "`top.index`");
    else if (operand && t.kind == T_ASSIGN)
        diag_help(p->ctx, d, "equality is written `==`");
    else if (operand && t.kind == T_LBRACE)
        diag_help(p->ctx, d,
                  "braces belong to nodes; as a value a block is configured with "
                  "parentheses: `ffn(hidden = 3072)`");
    else if (before.kind == T_IDENT && expects(e, "=") && expects(e, ",") && (t.kind == T_NUMBER || t.kind == T_STRING))
        diag_help(p->ctx, d, t.kind == T_STRING ? "write `%s = \"%s\"`" : "write `%s = %s`", before.text, t.text);
    else if (t.kind == T_COMMA && lx->item[0].kind == T_IDENT && !strcmp(lx->item[0].text, "group"))
        diag_help(
            p->ctx, d,
            "a group is named by one word or path, `group vector { ... }`, `group \"*.b\" { ... }`: one node for each");
    else if (t.kind == T_COLON && expects(e, "="))
        diag_help(p->ctx, d, "a value is set with `=`");
    else if (operand && expects(e, "else") && !expects(e, "the end of the item"))
        diag_note(p->ctx, d, "an `if` in an expression always has a `then` and an `else`");
    else if (lx->item_before == 0 && (t.kind == T_PLUS || t.kind == T_MINUS))
        diag_help(p->ctx, d,
                  "items have no sign: what is not there yet is added, and `PATH = none` leaves something out");
    else if (t.kind == T_ELSE && !operand)
        diag_note(p->ctx, d, "`else` follows the `}` of its `if`");
}

/* `for i, layer in enumerate(layers) {`: the comma has ended the item, and what follows is not another one. */
static bool two_names(Parser *p)
{
    Lex *lx = &p->lex;
    if (lx->item[0].kind != T_FOR || lx->item_before != 2 || p->token.kind != T_SEP || lx->by_newline ||
        p->token.span.hi == p->token.span.lo)
        return false;
    Diag *d = diag_error(p->ctx, "E0001", p->token.span, "", "a loop has one name");
    diag_help(p->ctx, d, "it runs over a list, and is its number where that is a range: `for %s in 1..12 { ... }`",
              lx->item[1].text);
    lx->muted_next = true;
    return true;
}

/* `f"text"` */
static bool text_with_letter(Parser *p)
{
    const Lex *lx = &p->lex;
    Token letter = lx->item[0], text = lx->before_last;
    if (letter.kind != T_IDENT || lx->item_before != 2 || text.kind != T_STRING || p->token.kind != T_SEP ||
        letter.span.hi != text.span.lo || strlen(letter.text) > 2)
        return false;
    Diag *d = diag_error(p->ctx, "E0001", letter.span, "", "a text has no letter in front");
    diag_help(
        p->ctx, d,
        "it is written `\"...\"`, behind the condition of a `check` without a comma; what is in `{}` is read in the "
        "checks of blocks");
    return true;
}

void parse_error(Parser *p, int token, const char *const *expected, size_t n)
{
    (void)token;
    Expected e = {expected, n};
    if (parse_foreign(p, e) || missing_value(p, e) || reserved_word(p, e) || unborn_weight(p, e) ||
        update_in_place(p, e) || called_node(p, e) || two_names(p) || text_with_letter(p))
        return;
    Buf want = buf_new(p->lex.arena), found = buf_new(p->lex.arena);
    Span at;
    const char *label = put_found(p, &found, &at);
    put_expected(&want, e);
    Diag *d = diag_error(p->ctx, "E0001", at, label, "expected %s, found %s", want.s, found.s);
    add_hints(p, d, e);
}

/* ---- a value of another language ---- */

ParseNode parse_floor(Parser *p, Span at, Span op, ParseNode a, ParseNode b)
{
    Span l = a.ast->span, r = b.ast->span;
    const char *text = p->lex.text;
    const char *with =
        name_printf(p->ctx, "floor(%.*s / %.*s)", (int)(l.hi - l.lo), text + l.lo, (int)(r.hi - r.lo), text + r.lo);
    if (!p->lex.muted) {
        Diag *d = diag_error(p->ctx, "E0004", op, "not an operator here", "unknown operator `//`");
        diag_note(p->ctx, d, "`/` is exact; a comment starts with `#`");
        diag_fix(p->ctx, d, at, with, FIX_CERTAIN, "a quotient that is rounded down is `%s`", with);
    }
    ParseNode quotient = parse_node(p, AST_OP, name_str(p->ctx, "/"), at, op, 2, (ParseNode[]){a, b});
    ParseNode args = parse_add(p, parse_node(p, AST_ARGS, NULL, at, at, 0, NULL), quotient);
    ParseNode floor = parse_node(p, AST_ID, name_str(p->ctx, "floor"), op, op, 0, NULL);
    return parse_node(p, AST_CALL, NULL, at, at, 2, (ParseNode[]){floor, args});
}

/* ---- entry points ---- */

/* The scratch arena holds the scanner's copy of the text and everything else that is only
 * needed while parsing. A raise on the way leaves it to the next user's mark. */
static Ast *parse(Ctx *ctx, uint32_t file, int start, bool *failed)
{
    ArenaMark mark = arena_mark(ctx->scratch);
    size_t before = diag_errors(ctx);
    Parser *p = NEW(ctx->scratch, Parser);
    p->ctx = ctx;
    p->start = start;
    lex_open(&p->lex, ctx, ctx->scratch, file, NULL);
    *failed = grammar_parse(p) != 0 || p->failed || diag_errors(ctx) > before;
    Ast *root = p->root;
    arena_reset(ctx->scratch, mark);
    return root;
}

Ast *vwn_parse(Ctx *ctx, uint32_t file)
{
    bool failed;
    size_t n;
    Ast *root = foreign_file(ctx, file) ? NULL : parse(ctx, file, T_START_FILE, &failed);
    source_text(ctx, file, &n);
    if (!root) {
        root = NEW(ctx->program, Ast);
        root->kind = AST_ITEMS;
    }
    root->span = root->name_span = (Span){file, 0, n < UINT32_MAX ? (uint32_t)n : UINT32_MAX};
    return root;
}

Ast *vwn_parse_expr(Ctx *ctx, uint32_t file)
{
    bool failed;
    Ast *root = parse(ctx, file, T_START_EXPR, &failed);
    return failed ? NULL : root;
}

Ast *vwn_parse_path(Ctx *ctx, uint32_t file)
{
    bool failed;
    Ast *root = parse(ctx, file, T_START_PATH, &failed);
    return failed ? NULL : root;
}
