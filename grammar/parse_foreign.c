/* parse_foreign.c - sentences of other languages that end in a syntax error here.
 *
 * In:  the token at which the parser stopped, the tokens before it, the text.   Out: the error in the words of what was meant, with
 * the right text and, where it has one answer, a fix.
 * The one idea: the shape of the text around the token tells what it is; what nothing here knows gets the sentence of parse.c.
 */
#include "parse.h"
#include "foreign.h"
#include "vwn_parser.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the text around a token ---- */

static bool word_char(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

static uint32_t skip_blanks(const Lex *lx, uint32_t at)
{
    while (at < lx->n && (lx->text[at] == ' ' || lx->text[at] == '\t'))
        at++;
    return at;
}

static char next_char(const Lex *lx, uint32_t at)
{
    at = skip_blanks(lx, at);
    return at < lx->n ? lx->text[at] : 0;
}

static bool starts(const Lex *lx, uint32_t at, const char *word)
{
    size_t n = strlen(word);
    return at + n <= lx->n && !memcmp(lx->text + at, word, n) &&
           !(word_char(word[n - 1]) && word_char(lx->text[at + n]));
}

/* From `at` to before a word or a character of `stop` outside of brackets, without blanks at its ends. */
static Span piece(const Lex *lx, uint32_t at, const char *stop, const char *word)
{
    uint32_t lo = skip_blanks(lx, at), hi = lo;
    for (int depth = 0; hi < lx->n && !strchr("\n#\"", lx->text[hi]); hi++) {
        char c = lx->text[hi];
        depth += strchr("([{", c) != NULL;
        depth -= strchr(")]}", c) != NULL;
        if (depth < 0 || (!depth && strchr(stop, c)))
            break;
        if (!depth && word && hi > lo && !word_char(lx->text[hi - 1]) && starts(lx, hi, word))
            break;
    }
    uint32_t end = hi;
    while (end > lo && strchr(" \t\r", lx->text[end - 1]))
        end--;
    return (Span){lx->file, lo, end};
}

/* The expression that ends before `at`, back to `=`, a comma, an opening bracket, or a word that begins one. */
static Span piece_before(const Lex *lx, uint32_t at)
{
    static const char *const words[] = {"return", "else", "then", "in", "and", "or", "if"};
    uint32_t lo = at;
    for (int depth = 0; lo > 0 && lx->text[lo - 1] != '\n'; lo--) {
        char c = lx->text[lo - 1];
        depth += strchr(")]}", c) != NULL;
        depth -= strchr("([{", c) != NULL;
        bool compares = c == '=' && lo > 1 && (strchr("=<>!", lx->text[lo - 2]) || lx->text[lo] == '=');
        if (depth < 0 || (!depth && (strchr(",;", c) || (c == '=' && !compares))))
            break;
        bool word = false;
        for (size_t i = 0; !depth && c == ' ' && i < COUNT_OF(words); i++) {
            size_t n = strlen(words[i]);
            word |= lo > n && starts(lx, lo - 1 - (uint32_t)n, words[i]) &&
                    (lo - 1 == n || !word_char(lx->text[lo - 2 - n]));
        }
        if (word)
            break;
    }
    lo = skip_blanks(lx, lo);
    uint32_t hi = at;
    while (hi > lo && strchr(" \t", lx->text[hi - 1]))
        hi--;
    return (Span){lx->file, lo, hi};
}

static Name text_of(const Parser *p, Span s) { return name_of(p->ctx, p->lex.text + s.lo, s.hi - s.lo); }

static Diag *not_here(Parser *p, Span at, const char *label, const char *fmt, const char *a)
{
    return diag_error(p->ctx, "E0001", at, label, fmt, a);
}

/* ---- first words: from, def, class, assert, const ---- */

/* Whether the header that an item begins with ends in `:`, and its body is the lines that are indented more. */
static bool has_suite(const Lex *lx, uint32_t at)
{
    int depth = 0;
    char last = 0;
    for (; at < lx->n; at++) {
        char c = lx->text[at];
        if (c == '#' || (c == '\n' && depth <= 0))
            break;
        depth += strchr("([{", c) != NULL;
        depth -= strchr(")]}", c) != NULL;
        last = strchr(" \t\r\n", c) ? last : c;
    }
    return last == ':';
}

static void pass_over_suite(Parser *p)
{
    Lex *lx = &p->lex;
    uint32_t at = lx->item[0].span.lo;
    if (has_suite(lx, at))
        lx->suite = lex_indent(lx, at, NULL) + 1;
}

/* `from std.connections import residual`. */
static void help_from(Parser *p, Diag *d, Token word)
{
    Span module = piece(&p->lex, word.span.hi, "\n", "import");
    char path[80];
    int n = (int)(module.hi - module.lo);
    if (n < 5 || n > 60 || memcmp(p->lex.text + module.lo, "std", 3) != 0)
        return;
    snprintf(path, sizeof path, "%.*s", n, p->lex.text + module.lo);
    for (char *c = path; *c; c++)
        *c = *c == '.' ? '/' : *c;
    size_t found = 0;
    for (size_t i = 0; i < std_count(); i++)
        found += !strncmp(std_path(i), path, (size_t)n) && !strcmp(std_path(i) + n, ".vwn");
    if (!found)
        return;
    Span rest = piece(&p->lex, word.span.lo, "\n", NULL);
    diag_fix(p->ctx, d, rest, name_printf(p->ctx, "import \"%s\"", path), FIX_CERTAIN, "write `import \"%s\"`", path);
}

/* `assert D % 4 == 0, "text"`, on one line. */
static void help_assert(Parser *p, Diag *d, Token word)
{
    Lex *lx = &p->lex;
    Span condition = piece(lx, word.span.hi, ",;", NULL);
    uint32_t at = skip_blanks(lx, condition.hi), hi = condition.hi;
    const char *message = "";
    if (at < lx->n && lx->text[at] == ',') {
        at = skip_blanks(lx, at + 1);
        uint32_t end = at + 1;
        while (end < lx->n && !strchr("\"\\\n", lx->text[end]))
            end++;
        if (lx->text[at] != '"' || end >= lx->n || lx->text[end] != '"')
            return;
        hi = end + 1;
        message = name_printf(p->ctx, " %.*s", (int)(hi - at), lx->text + at);
    }
    if (condition.hi <= condition.lo || (next_char(lx, hi) && !strchr("\n\r#}", next_char(lx, hi))))
        return;
    Name with = name_printf(p->ctx, "check %s%s", text_of(p, condition), message);
    diag_fix(p->ctx, d, (Span){lx->file, word.span.lo, hi}, with, FIX_CERTAIN, "write `%s`", with);
}

static bool foreign_word(Parser *p)
{
    Lex *lx = &p->lex;
    Token word = lx->item[0];
    if (word.kind != T_IDENT)
        return false;
    const Foreign *row = foreign_next(FOREIGN_WORD, word.text, NULL);
    char next = next_char(lx, word.span.hi);
    if (!row || (next && strchr("=.[{", next)))
        return false;
    bool binds = row->ours != NULL; /* const D = 64 */
    if (binds) {
        Span name = piece(lx, word.span.hi, "=:(", NULL);
        for (uint32_t i = name.lo; i < name.hi; i++)
            binds = binds && word_char(lx->text[i]);
        next = next_char(lx, name.hi);
        binds = binds && name.hi > name.lo && (next == '=' || next == ':');
        if (!binds && strcmp(row->ours, "let") == 0)
            return false;
    }
    Diag *d = not_here(p, word.span, "a word of another language", "`%s` does not exist here", word.text);
    if (!strcmp(word.text, "from"))
        help_from(p, d, word);
    else if (!strcmp(word.text, "assert"))
        help_assert(p, d, word);
    if (row->ours)
        diag_fix(p->ctx, d, word.span, row->ours, FIX_CERTAIN, "write `%s`", row->ours);
    if (row->text)
        diag_help(p->ctx, d, "%s", row->text);
    pass_over_suite(p);
    return true;
}

/* `import torch`, `import std/connections`. */
static bool import_of_name(Parser *p)
{
    Lex *lx = &p->lex;
    if (lx->item[0].kind != T_IMPORT || lx->item_before != 1 || (p->token.kind != T_IDENT && p->token.kind != T_STAR))
        return false;
    Span module = piece(lx, p->token.span.lo, "\n;", "as");
    Name name = text_of(p, module);
    Diag *d = not_here(p, module, "a path stands in quotes", "`import` takes a file, as a string", NULL);
    for (size_t i = 0; i < std_count(); i++) {
        size_t n = strlen(std_path(i)) - strlen(".vwn");
        if ((strlen(name) != n && strcmp(name, std_path(i)) != 0) || strncmp(std_path(i), name, 3) != 0)
            continue;
        bool same = true;
        for (size_t k = 0; k < n; k++)
            same = same && (name[k] == std_path(i)[k] || (name[k] == '.' && std_path(i)[k] == '/'));
        if (same) {
            Name with = name_printf(p->ctx, "\"%.*s\"", (int)n, std_path(i));
            diag_fix(p->ctx, d, module, with, FIX_CERTAIN, "write `import %s`", with);
            return true;
        }
    }
    diag_help(p->ctx, d, "primitives such as `gelu` are always there; blocks come with `import \"std/transformer\"`");
    return true;
}

/* `lte L = 2`, `retrun y`, `imprt "std/connections"`. */
static bool misspelt_keyword(Parser *p)
{
    static const char *const words[] = {"import", "block", "param", "buffer", "return", "check"};
    Lex *lx = &p->lex;
    Token word = lx->item[0], second = lx->item[1];
    char next = next_char(lx, word.span.hi); /* a name in front of a value, or a letter more */
    if (word.kind != T_IDENT || lx->item_before < 1 || !next || strchr("=.[{(", next))
        return false;
    Name names[COUNT_OF(words)], best = NULL;
    bool sure = false;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        names[i] = name_str(p->ctx, words[i]);
    if (p->token.kind == T_ASSIGN && second.kind == T_IDENT && lx->item_before == 2)
        best = strlen(word.text) <= 5 ? nearest_name(word.text, &(Name){name_str(p->ctx, "let")}, 1) : NULL;
    sure = best != NULL;
    if (!best)
        best = meant_name(word.text, names, COUNT_OF(words), &sure);
    if (!best || !sure)
        return false;
    Diag *d = not_here(p, word.span, "no item begins so", "`%s` is not a word of the language", word.text);
    diag_fix(p->ctx, d, word.span, best, FIX_CERTAIN, "did you mean `%s`?", best);
    return true;
}

/* ---- headers and bodies ---- */

/* `for layer in range(L):`, `if D > 64:`: the header as it is written here. */
static Name header_of(Parser *p, Span header)
{
    Name text = text_of(p, header);
    const char *range = strstr(text, "range(");
    if (!range || strchr(range, ')') != text + strlen(text) - 1 || strchr(range + 6, '('))
        return text;
    const char *args = range + 6, *comma = strchr(args, ',');
    int before = (int)(range - text), n = (int)strlen(args) - 1;
    if (!n || (comma && strchr(comma + 1, ',')))
        return text;
    if (comma)
        return name_printf(p->ctx, "%.*s%.*s..%.*s - 1", before, text, (int)(comma - args), args,
                           n - (int)(comma - args) - 1 - (comma[1] == ' '), comma + 1 + (comma[1] == ' '));
    return name_printf(p->ctx, "%.*s1..%.*s", before, text, n, args);
}

static bool colon_body(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token first = lx->item[0];
    if (p->token.kind != T_COLON || !expects(e, "{"))
        return false;
    if (first.kind != T_FOR && first.kind != T_IF && lx->before_last.kind != T_ELSE)
        return false;
    Span header = {lx->file, first.span.lo, p->token.span.lo};
    if (lx->before_last.kind == T_ELSE)
        header.lo = lx->before_last.span.lo;
    while (header.hi > header.lo && lx->text[header.hi - 1] == ' ')
        header.hi--;
    Span end = {lx->file, skip_blanks(lx, p->token.span.hi), 0};
    end.hi = end.lo;
    while (word_char(lx->text[end.hi]))
        end.hi++;
    if (first.kind == T_FOR && lx->before_last.kind != T_ELSE && end.hi > end.lo && next_char(lx, end.hi) == '{') {
        diag_fix(p->ctx, not_here(p, p->token.span, "", "a range is written `..`, not `:`", NULL), p->token.span, "..",
                 FIX_CERTAIN, "write `%s..%s { ... }`, both ends included", text_of(p, header), text_of(p, end));
        return true;
    }
    Diag *d = not_here(p, p->token.span, "its items stand in braces", "a body begins with `{`, not with `:`", NULL);
    if (strstr(text_of(p, header), "range("))
        diag_note(p->ctx, d, "a range is `from..to`, both ends included; lists, layers and axes count from 1");
    diag_help(p->ctx, d, "write `%s { ... }`", header_of(p, header));
    pass_over_suite(p);
    return true;
}

/* `model my-gpt {`, `let n-head = 4`, `kv-heads = 2`: a `-` within a name. */
static bool hyphen(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token, name = lx->before_last, first = lx->item[0];
    uint32_t lo = name.span.lo, hi = t.span.hi;
    if (lx->text[t.span.lo] != '-' || name.kind != T_IDENT || name.span.hi != t.span.lo || !word_char(lx->text[hi]) ||
        expects(e, "-"))
        return false;
    while (hi < lx->n && (word_char(lx->text[hi]) || (lx->text[hi] == '-' && word_char(lx->text[hi + 1]))))
        hi++;
    char next = next_char(lx, hi);
    bool declared = lx->item_before == 2 && (first.kind == T_LET || first.kind == T_BLOCK || first.kind == T_PARAM ||
                                             first.kind == T_BUFFER || first.kind == T_IDENT);
    if (!declared && !(lx->item_before == 1 && next && strchr("={", next)))
        return false;
    Span whole = {lx->file, lo, hi};
    Name text = text_of(p, whole);
    Diag *d = not_here(p, whole, "a name is of letters, digits and `_`", "`%s` is no name", text);
    Buf with = buf_new(p->ctx->scratch);
    for (const char *c = text; *c; c++)
        buf_putc(&with, *c == '-' ? '_' : *c);
    diag_fix(p->ctx, d, whole, with.s, FIX_CERTAIN, "write `%s`", with.s);
    return true;
}

/* `head lm` and `embed tokens` at the end of a line. */
static bool no_braces(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token label = lx->item[1];
    bool ends = p->token.kind == T_SEP || !p->token.kind;
    if (!ends || lx->item_before != 2 || lx->item[0].kind != T_IDENT || label.kind != T_IDENT || !expects(e, "{"))
        return false;
    Span gap = {lx->file, label.span.hi, label.span.hi};
    Span whole = {lx->file, lx->item[0].span.lo, label.span.hi};
    Diag *d = not_here(p, whole, "a node with a label has braces", "`%s` has no braces", text_of(p, whole));
    diag_fix(p->ctx, d, gap, " { }", FIX_CERTAIN, "write `%s { ... }`, without attributes `{ }`", text_of(p, whole));
    return true;
}

/* A class, `torch.optim.AdamW`, has capital letters. */
static Name lower_case(Parser *p, const char *s, size_t n)
{
    Buf b = buf_new(p->ctx->scratch);
    for (size_t i = 0; i < n; i++)
        buf_putc(&b, (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] | 32 : s[i]));
    return name_of(p->ctx, b.n ? b.s : "", b.n);
}

/* `optimizer = adamw {`, `model = GPT {`. */
static bool node_with_equals(Parser *p)
{
    static const char *const nodes[] = {"optimizer", "embed", "head", "model"};
    Lex *lx = &p->lex;
    if (p->token.kind != T_LBRACE || lx->item[0].kind != T_IDENT || lx->item[1].kind != T_ASSIGN ||
        !lx->before_last.text)
        return false;
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        if (!strcmp(lx->item[0].text, nodes[i])) {
            Name label = lx->before_last.text;
            Diag *d = not_here(p, lx->item[1].span, "a node has no `=`", "`%s` is a node", nodes[i]);
            if (strcmp(nodes[i], "model") != 0)
                label = lower_case(p, label, strlen(label));
            Span gap = {lx->file, lx->item[0].span.hi, lx->before_last.span.hi};
            diag_fix(p->ctx, d, gap, name_printf(p->ctx, " %s", label), FIX_CERTAIN, "write `%s %s { ... }`", nodes[i],
                     label);
            return true;
        }
    return false;
}

/* `optimizer optax.adamw {`, `head nn.lm {`: a module in front of the word behind a node's. */
static bool label_of_module(Parser *p, Expected e)
{
    static const char *const nodes[] = {"optimizer", "embed", "head"};
    Lex *lx = &p->lex;
    Token node = lx->item[0], module = lx->item[1];
    bool labelled = false;
    for (size_t i = 0; node.kind == T_IDENT && i < COUNT_OF(nodes); i++)
        labelled |= !strcmp(node.text, nodes[i]);
    if (!labelled || p->token.kind != T_DOT || !expects(e, "{") || lx->item_before != 2 || module.kind != T_IDENT)
        return false;
    uint32_t hi = module.span.lo, last = hi;
    for (; hi < lx->n && (word_char(lx->text[hi]) || lx->text[hi] == '.'); hi++)
        last = lx->text[hi] == '.' ? hi + 1 : last;
    if (hi == last)
        return false;
    Span whole = {lx->file, module.span.lo, hi};
    Diag *d = not_here(p, whole, "a module in front", "`%s` takes one word", node.text);
    Name label = lower_case(p, lx->text + last, hi - last);
    diag_fix(p->ctx, d, whole, label, FIX_CERTAIN, "write `%s %s { ... }`", node.text, label);
    return true;
}

/* Whether the innermost brace holds the body of a block. */
static bool in_block(const Lex *lx)
{
    uint32_t k = lx->depth;
    while (k > 0 && lx->open[k - 1].kind != T_LBRACE)
        k--;
    if (!k)
        return false;
    uint32_t at = lx->open[k - 1].at;
    for (int depth = 0; at > 0 && (depth > 0 || lx->text[at - 1] != '\n'); at--) {
        depth += strchr(")]", lx->text[at - 1]) != NULL;
        depth -= strchr("([", lx->text[at - 1]) != NULL;
    }
    return starts(lx, skip_blanks(lx, at), "block");
}

/* `down(y)` as the last line of a block. */
static bool last_value(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token first = lx->item[0];
    if (!expects(e, "{") || first.kind != T_IDENT || !in_block(lx))
        return false;
    Span value = piece(lx, first.span.lo, ";,", NULL);
    uint32_t at = value.hi;
    while (at < lx->n && strchr(" \t\r\n;", lx->text[at]))
        at++;
    if (value.hi <= value.lo || at >= lx->n || lx->text[at] != '}' || (p->token.kind != T_LPAREN && !expects(e, "=")))
        return false;
    int kind = p->token.kind;
    if (kind != T_LPAREN && kind != T_PLUS && kind != T_MINUS && kind != T_STAR && kind != T_SLASH && kind != T_AT &&
        kind != T_CARET)
        return false;
    if (kind != T_LPAREN && lx->text[p->token.span.hi] == '=')
        return false; /* y += x */
    Name text = text_of(p, value);
    if (kind == T_LPAREN && memchr(text, '=', strlen(text)))
        return false; /* configures */
    Diag *d = not_here(p, value, "", "the last value of a block is given by `return`", NULL);
    Span front = {lx->file, value.lo, value.lo};
    diag_fix(p->ctx, d, front, "return ", FIX_CERTAIN, "write `return %s`", text);
    return true;
}

/* ---- expressions ---- */

/* `128 if D > 32 else 64`. */
static bool ternary(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    if (p->token.kind != T_IF || !expects(e, "+"))
        return false;
    Span a = piece_before(lx, p->token.span.lo), c = piece(lx, p->token.span.hi, ",;", "else");
    uint32_t at = skip_blanks(lx, c.hi);
    Diag *d = not_here(p, p->token.span, "a condition stands in front", "`if` does not follow a value", NULL);
    if (a.hi <= a.lo || c.hi <= c.lo || !starts(lx, at, "else")) {
        diag_help(p->ctx, d, "a choice is `if condition then a else b`");
        return true;
    }
    Span b = piece(lx, at + 4, ",;", "for");
    Name with = name_printf(p->ctx, "if %s then %s else %s", text_of(p, c), text_of(p, a), text_of(p, b));
    Span whole = {lx->file, a.lo, b.hi};
    if (b.hi > b.lo)
        diag_fix(p->ctx, d, whole, with, FIX_CERTAIN, "write `%s`", with);
    return true;
}

/* `x is None`, `x is not None`, `a in b`, `lambda x: x`. */
static bool python_operator(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token, before = lx->before_last;
    if (before.kind == T_IDENT && !strcmp(before.text, "lambda") && (t.kind == T_IDENT || t.kind == T_COLON)) {
        const Foreign *row = foreign_next(FOREIGN_VALUE, "lambda", NULL);
        Diag *d = not_here(p, before.span, "", "there are no functions without a name", NULL);
        if (row && row->text)
            diag_help(p->ctx, d, "%s", row->text);
        return true;
    }
    if (!expects(e, "+") || !lex_ends_operand(before.kind))
        return false;
    if (t.kind == T_IN) {
        Diag *d = not_here(p, t.span, "only `for` has an `in`", "`in` does not compare", NULL);
        diag_help(p->ctx, d, "compare with each: `x == 1 or x == 2`");
        return true;
    }
    if (t.kind != T_IDENT || strcmp(t.text, "is") != 0)
        return false;
    uint32_t at = skip_blanks(lx, t.span.hi);
    bool negated = starts(lx, at, "not");
    const char *with = negated ? "!=" : "==";
    Span whole = {lx->file, t.span.lo, negated ? at + 3 : t.span.hi};
    diag_fix(p->ctx, not_here(p, whole, "not an operator", "`%s` does not exist here", negated ? "is not" : "is"),
             whole, with, FIX_CERTAIN, "write `%s`", with);
    return true;
}

/* f"text", r"text". */
/* `if D > 3: 2 else: 4` as a value. */
static bool choice_with_colons(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    if (p->token.kind != T_COLON || !expects(e, "then"))
        return false;
    uint32_t lo = p->token.span.lo;
    while (lo > 0 && lx->text[lo] != '\n' && !(starts(lx, lo, "if") && !word_char(lx->text[lo - 1])))
        lo--;
    Span condition = {lx->file, skip_blanks(lx, lo + 2), p->token.span.lo};
    Span yes = piece(lx, p->token.span.hi, ":", "else");
    uint32_t at = skip_blanks(lx, yes.hi);
    Diag *d = not_here(p, p->token.span, "no `:`", "a choice of values is `if condition then a else b`", NULL);
    if (!starts(lx, lo, "if") || !starts(lx, at, "else"))
        return true;
    at = skip_blanks(lx, at + 4);
    at += lx->text[at] == ':';
    Span no = piece(lx, at, ",;", NULL);
    Name with = name_printf(p->ctx, "if %s then %s else %s", text_of(p, condition), text_of(p, yes), text_of(p, no));
    if (no.hi > no.lo)
        diag_fix(p->ctx, d, (Span){lx->file, lo, no.hi}, with, FIX_CERTAIN, "write `%s`", with);
    return true;
}

static bool prefixed_string(Parser *p)
{
    Lex *lx = &p->lex;
    Token before = lx->before_last, t = p->token;
    if (before.kind != T_IDENT || t.kind != T_STRING || before.span.hi != t.span.lo)
        return false;
    if (strspn(before.text, "fFrRbBuU") != strlen(before.text) || strlen(before.text) > 2)
        return false;
    Span whole = {lx->file, before.span.lo, t.span.hi};
    Diag *d = not_here(p, whole, "", "strings have no prefix `%s`", before.text);
    if (strpbrk(before.text, "fF") && strpbrk(t.text, "{}")) {
        diag_note(p->ctx, d, "a string is what it says: no name is filled in");
        diag_help(p->ctx, d, "write the text out; to vary it, make it a let and use `--set`");
    } else {
        diag_fix(p->ctx, d, before.span, "", FIX_CERTAIN, "leave the `%s` out", before.text);
    }
    return true;
}

/* `betas = (0.9, 0.95)`. */
static bool tuple(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    if (p->token.kind != T_COMMA || !expects(e, ")") || !lx->depth || lx->open[lx->depth - 1].kind != T_LPAREN)
        return false;
    uint32_t open = lx->open[lx->depth - 1].at, close = open + 1;
    for (int depth = 1; close < lx->n && !strchr("\"#", lx->text[close]); close++) {
        depth += strchr("([{", lx->text[close]) != NULL;
        depth -= strchr(")]}", lx->text[close]) != NULL;
        if (!depth)
            break;
    }
    bool closed = close < lx->n && lx->text[close] == ')';
    Span whole = {lx->file, open, closed ? close + 1 : p->token.span.hi};
    Diag *d = not_here(p, whole, "", "a list stands in `[` and `]`, not in parentheses", NULL);
    int n = (int)(close - open) - 1;
    while (closed && n > 0 && strchr(" ,\n", lx->text[open + (uint32_t)n]))
        n--;
    if (closed) {
        Name with = name_printf(p->ctx, "[%.*s]", n, lx->text + open + 1);
        diag_fix(p->ctx, d, whole, with, FIX_CERTAIN, "write `%s`", with);
    }
    return true;
}

/* A coordinate that was counted from 0. */
static Name counted_from_one(Parser *p, Name s)
{
    if (*s && strlen(s) < 9 && s[strspn(s, "0123456789")] == 0)
        return name_printf(p->ctx, "%d", atoi(s) + 1);
    return name_printf(p->ctx, "%s + 1", s);
}

/* `x[..., :n]`, `x[:, 0]`: from `[` to `]`, with one subscript that is not whole. */
static bool subscripts(Parser *p)
{
    enum { SHOWN = 80 };
    Lex *lx = &p->lex;
    Token t = p->token;
    bool dots = t.kind == T_DOT && lx->before_last.kind == T_DOTDOT && lx->before_last.span.hi == t.span.lo;
    if (!lx->depth || lx->open[lx->depth - 1].kind != T_LBRACKET || !(dots || t.kind == T_COLON))
        return false;
    uint32_t open = lx->open[lx->depth - 1].at, at = open + 1;
    int axes = 0, axis = 0, from = 0, count = 0;
    bool tail = false;
    Span part = NO_SPAN;
    for (;; at++) {
        Span s = piece(lx, at, ",", NULL);
        Name text = text_of(p, s);
        axes++;
        if (!strcmp(text, "...")) {
            tail = true;
            from = axes;
        } else if (strcmp(text, ":") != 0) {
            count++;
            part = s;
            axis = axes;
        }
        at = skip_blanks(lx, s.hi);
        if (at >= lx->n || lx->text[at] != ',')
            break;
    }
    Span object = piece_before(lx, open), whole = {lx->file, open, at < lx->n ? at + 1 : lx->n};
    Diag *d = not_here(p, whole, "", "parts of a tensor are not taken with `[` and `]`", NULL);
    diag_note(p->ctx, d,
              "parts of an axis are taken by functions; axes and coordinates count from 1, both from the front");
    Name x = text_of(p, object), s = text_of(p, part);
    const char *colon = count == 1 ? strchr(s, ':') : NULL;
    if (count != 1 || strlen(s) > SHOWN || strlen(x) > SHOWN || (colon && strchr(colon + 1, ':')) ||
        strpbrk(x, "=<>+*/@")) {
        diag_help(
            p->ctx, d,
            "`first(x, n)`, `rest(x, n)` and `slice(x, from, count)`, with `axis = 2` for another axis than the last");
        return true;
    }
    const char *place = tail && axis == axes && from < axis
                            ? ""
                            : name_printf(p->ctx, ", axis = %d", tail && from < axis ? axis - axes - 1 : axis);
    int low = colon ? (int)(colon - s) : 0;
    const char *high = colon ? colon + 1 : "";
    if (colon && low && *high)
        diag_help(p->ctx, d, "write `slice(%s, %s, %s - %.*s%s)`", x,
                  counted_from_one(p, name_of(p->ctx, s, (size_t)low)), high, low, s, place);
    else if (colon && *high == '-')
        diag_help(p->ctx, d, "all but the last are `first(%s, n - %s%s)`, n being the extent of the axis", x, high + 1,
                  place);
    else if (colon && *s == '-')
        diag_help(p->ctx, d, "the last are `rest(%s, n - %.*s%s)`, n being the extent of the axis", x, low - 1, s + 1,
                  place);
    else if (colon)
        diag_help(p->ctx, d, "write `%s(%s, %.*s%s%s)`", *high ? "first" : "rest", x, low, s, high, place);
    else if (*s == '-')
        diag_help(p->ctx, d, "the last is `rest(%s, n - 1%s)`, n being the extent of the axis", x, place);
    else
        diag_help(p->ctx, d, "write `slice(%s, %s, 1%s)`, and `squeeze(...)` to drop the axis", x,
                  counted_from_one(p, s), place);
    return true;
}

/* The text behind `check condition,`, and that of `assert condition, "text"`, of which something was said. */
static bool text_of_check(Parser *p)
{
    Lex *lx = &p->lex;
    uint32_t at = lx->item[0].span.lo;
    if (lx->item[0].kind != T_STRING || lx->item_before != 1 || p->token.kind != T_SEP)
        return false;
    while (at > 0 && lx->text[at - 1] != '\n')
        at--;
    if (starts(lx, skip_blanks(lx, at), "assert"))
        return true;
    uint32_t comma = lx->item[0].span.lo;
    while (comma > at && lx->text[comma - 1] != ',')
        comma--;
    if (!starts(lx, skip_blanks(lx, at), "check") || comma == at)
        return false;
    Span gap = {lx->file, comma - 1, lx->item[0].span.lo};
    Diag *d = not_here(p, gap, "not here", "the text of a check follows its condition without a comma", NULL);
    diag_fix(p->ctx, d, gap, " ", FIX_CERTAIN, "write `check condition \"text\"`");
    return true;
}

/* `betas = 0.9, 0.95`: a number that begins an item. */
static bool loose_number(Parser *p)
{
    Lex *lx = &p->lex;
    if (p->token.kind != T_NUMBER || lx->item_before != 0 || lx->before_last.kind != T_SEP)
        return false;
    uint32_t at = p->token.span.lo;
    while (at > 0 && lx->text[at - 1] == ' ')
        at--;
    if (!at || lx->text[at - 1] != ',')
        return false;
    Diag *d = not_here(p, p->token.span, "the comma ended the item before it", "a number is no item", NULL);
    diag_help(p->ctx, d, "a list is written `[0.9, 0.95]`; the decimal point is `.`");
    return true;
}

/* `D = {16, 32}`, `width = {{ D }}`, `x = {"a": 1}`; what stands in the braces is passed over. */
static void braces_of_value(Parser *p)
{
    Lex *lx = &p->lex;
    uint32_t lo = p->token.span.lo, hi = lo;
    int depth = 0;
    bool names = false;
    for (; hi < lx->n && lx->text[hi] != '\n'; hi++) {
        depth += lx->text[hi] == '{';
        names = names || strchr("=:\"#", lx->text[hi]);
        if (lx->text[hi] == '}' && !--depth)
            break;
    }
    Diag *d = not_here(p, p->token.span, "", "`{` begins no value", NULL);
    bool twice = lx->text[lo + 1] == '{', whole = hi < lx->n && lx->text[hi] == '}' && !names;
    uint32_t cut = twice ? 2 : 1;
    Span within = {lx->file, skip_blanks(lx, lo + cut), whole && hi > lo + cut ? hi - cut + 1 : lo};
    while (within.hi > within.lo && lx->text[within.hi - 1] == ' ')
        within.hi--;
    if (within.hi > within.lo) {
        Name with = twice ? text_of(p, within) : name_printf(p->ctx, "[%s]", text_of(p, within));
        diag_fix(p->ctx, d, (Span){lx->file, lo, hi + 1}, with, FIX_MAYBE, twice ? "write `%s`" : "a list is `%s`",
                 with);
        lx->passed = hi;
    } else {
        diag_help(p->ctx, d, "a list is `[1, 2]`; values with names are lets of the file");
    }
}

/* `block f(x) -> ...`, `block f(n: dim)(x: [.., I]): [.., I] {`, `for (i in 1..4) {`, `w = param([4])`, `(x) => x`. */
static bool odd_header(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token, first = lx->item[0];
    if (first.kind == T_BLOCK && t.kind == T_COLON && expects(e, "->")) {
        diag_fix(p->ctx, not_here(p, t.span, "", "the shape of a result follows `->`", NULL), t.span,
                 lx->text[t.span.lo - 1] == ' ' ? "->" : " ->", FIX_CERTAIN, "write `-> [.., D]`");
    } else if (first.kind == T_BLOCK && expects(e, ":") &&
               (t.kind == T_RPAREN || t.kind == T_COMMA || t.kind == T_ASSIGN)) {
        Diag *d = not_here(p, lx->before_last.span, "of which type?", "`%s` has no type",
                           lx->before_last.text ? lx->before_last.text : "it");
        diag_help(p->ctx, d, "a parameter has its type, `hidden: dim`, and a tensor its shape, `x: [.., I]`");
    } else if (first.kind == T_FOR && t.kind == T_LPAREN && lx->item_before == 1) {
        Diag *d = not_here(p, t.span, "no parentheses", "`for` takes a name and a list", NULL);
        diag_help(p->ctx, d, "write `for layer in 1..8 { ... }`");
    } else if ((t.kind == T_PARAM || t.kind == T_BUFFER) && expects(e, "a number")) {
        Diag *d = not_here(p, t.span, "declares a name", "weights are no value", NULL);
        diag_help(p->ctx, d, "write `%s w : [64] = zeros`, and then use `w`", t.kind == T_PARAM ? "param" : "buffer");
    } else if (first.kind == T_BLOCK && t.kind == T_ASSIGN && lx->text[t.span.hi] == '>') {
        Span arrow = {lx->file, t.span.lo, t.span.hi + 1};
        diag_fix(p->ctx, not_here(p, arrow, "", "the shape of a result follows `->`", NULL), arrow, "->", FIX_CERTAIN,
                 "write `->`");
    } else if (t.kind == T_ASSIGN && lx->text[t.span.hi] == '>') {
        Diag *d =
            not_here(p, (Span){lx->file, t.span.lo, t.span.hi + 1}, "", "there are no functions without a name", NULL);
        diag_help(p->ctx, d, "%s", foreign_next(FOREIGN_VALUE, "lambda", NULL)->text);
    } else if (t.kind == T_LBRACE && expects(e, "a number")) {
        braces_of_value(p);
    } else if (t.kind == T_LBRACE && expects(e, "then")) {
        Diag *d = not_here(p, t.span, "no braces", "a choice of values is `if condition then a else b`", NULL);
        diag_note(p->ctx, d, "braces hold the items of a statement");
    } else if (first.kind == T_LET && lx->before_last.span.lo == lx->item[1].span.lo && expects(e, "=") &&
               (t.kind == T_NUMBER || t.kind == T_QUANTITY || t.kind == T_STRING)) {
        Span gap = {lx->file, lx->item[1].span.hi, lx->item[1].span.hi};
        diag_fix(p->ctx, not_here(p, t.span, "", "`%s` has no `=`", lx->item[1].text), gap, " =", FIX_CERTAIN,
                 "write `let %s = ...`", lx->item[1].text);
    } else {
        return false;
    }
    return true;
}

/* ---- numbers, units, marks ---- */

/* `20 iters`. */
static bool foreign_unit(Parser *p)
{
    Lex *lx = &p->lex;
    Token number = lx->before_last, t = p->token;
    if (number.kind != T_NUMBER || t.kind != T_IDENT)
        return false;
    const Foreign *row = foreign_next(FOREIGN_UNIT, t.text, NULL);
    if (!row || next_char(lx, t.span.hi) == '=')
        return false;
    Diag *d = not_here(p, t.span, "not a unit", "there is no unit `%s`", t.text);
    bool time = !strcmp(row->ours, "min") || !strcmp(row->ours, "h") || !strcmp(row->ours, "s");
    if (time && lx->item[0].kind == T_IDENT && !strcmp(lx->item[0].text, "length")) {
        diag_help(p->ctx, d, "a run is as long as it has steps, tokens or epochs: `length = 1000 steps`");
        return true;
    }
    diag_fix(p->ctx, d, t.span, row->ours, FIX_CERTAIN, "write `%s %s`", number.text, row->ours);
    return true;
}

/* `.5`, `1,024`. */
static bool bad_number(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token;
    if (t.kind == T_DOT && expects(e, "a number") && t.span.hi < lx->n && lx->text[t.span.hi] >= '0' &&
        lx->text[t.span.hi] <= '9') {
        uint32_t hi = t.span.hi;
        while (hi < lx->n && (word_char(lx->text[hi]) || lx->text[hi] == '%'))
            hi++;
        Name with = name_printf(p->ctx, "0%s", text_of(p, (Span){lx->file, t.span.lo, hi}));
        diag_fix(p->ctx, not_here(p, t.span, "no digit before the point", "a number starts with a digit", NULL), t.span,
                 "0.", FIX_CERTAIN, "write `%s`", with);
        return true;
    }
    uint32_t at = t.span.lo;
    if (t.kind != T_NUMBER || strlen(t.text) != 3 || at < 2 || lx->text[at - 1] != ',' || lx->before_last.kind != T_SEP)
        return false;
    uint32_t lo = at - 1;
    while (lo > 0 && lx->text[lo - 1] >= '0' && lx->text[lo - 1] <= '9')
        lo--;
    if (lo == at - 1 || at - 1 - lo > 3 || (lo > 0 && (word_char(lx->text[lo - 1]) || lx->text[lo - 1] == '.')))
        return false;
    Span whole = {lx->file, lo, t.span.hi};
    Name with = name_printf(p->ctx, "%.*s_%s", (int)(at - 1 - lo), lx->text + lo, t.text);
    diag_fix(p->ctx, not_here(p, whole, "a comma ends an item", "digits are grouped with `_`", NULL), whole, with,
             FIX_CERTAIN, "write `%s`", with);
    return true;
}

/* `heads: 4`, `"heads": 4`, `D := 4`. */
static bool colon_for_equals(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token, first = lx->item[0];
    if (t.kind != T_COLON || lx->item_before != 1 || !expects(e, "=") ||
        (first.kind != T_IDENT && first.kind != T_STRING))
        return false;
    bool word = first.kind == T_IDENT, assigns = lx->text[t.span.hi] == '=';
    for (const char *s = first.text; !word && *s;
         s++) /* "heads" of JSON; "layer.1" of a table of names stays in quotes */
        if (!word_char(*s))
            return false;
    uint32_t behind = t.span.hi;
    while (lx->text[behind] == ' ')
        behind++;
    if (word && lx->text[behind] == '\n') { /* YAML */
        Diag *d = not_here(p, t.span, "its items stand in braces", "a body begins with `{`, not with `:`", NULL);
        diag_help(p->ctx, d, "write `%s { ... }`, and attributes in it as `NAME = VALUE`", first.text);
        pass_over_suite(p);
        return true;
    }
    Span value = piece(lx, t.span.hi, ",;", NULL), more = piece(lx, t.span.hi, ",;=", NULL);
    bool typed = !assigns && more.hi < value.hi && more.hi > more.lo && next_char(lx, more.hi) == '=';
    Span whole = {lx->file, first.span.lo, typed ? skip_blanks(lx, more.hi) + 1 : t.span.hi + assigns};
    Diag *d = not_here(p, t.span, "not expected here", "a value is set with `=`", NULL);
    if (typed)
        value = piece(lx, whole.hi, ",;", NULL);
    bool let = !lx->depth && word && (typed || assigns); /* at the top of a file */
    Name with = name_printf(p->ctx, "%s%s =", let ? "let " : "", first.text);
    uint32_t brace = lx->depth ? lx->open[lx->depth - 1].at : 0; /* that of a dictionary belongs to no node */
    while (brace > 0 && lx->text[brace - 1] == ' ')
        brace--;
    bool value_of = brace > 0 && strchr("=(,[", lx->text[brace - 1]);
    diag_fix(p->ctx, d, whole, with, value_of ? FIX_MAYBE : FIX_CERTAIN, "write `%s %s`", with, text_of(p, value));
    return true;
}

/* `heads = 4 kv_heads = 2`, within brackets. */
static bool missing_comma(Parser *p)
{
    Lex *lx = &p->lex;
    Token before = lx->before_last, t = p->token;
    uint32_t at = skip_blanks(lx, t.span.hi);
    if (!lx->depth || !lex_ends_operand(before.kind) || t.kind != T_IDENT || lx->text[at] != '=' ||
        lx->text[at + 1] == '=')
        return false;
    if (lx->item_before < 2 && lx->open[lx->depth - 1].kind == T_LBRACE)
        return false; /* `int heads = 4` */
    if (memchr(lx->text + before.span.hi, '\n', t.span.lo - before.span.hi))
        return false;
    Span gap = {lx->file, before.span.hi, before.span.hi};
    Diag *d = not_here(p, t.span, "the next one begins here", "a comma is missing in front of `%s`", t.text);
    diag_fix(p->ctx, d, gap, ",", FIX_CERTAIN, "write `%s, %s = ...`",
             before.kind == T_RPAREN || before.kind == T_RBRACKET ? "..." : before.text, t.text);
    return true;
}

/* `if D = 64 {`, `let mut D = 64`. */
static bool single_slip(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token;
    bool compares = lx->item[0].kind == T_IF || lx->item[0].kind == T_CHECK;
    if (t.kind == T_ASSIGN && compares && expects(e, "{") && expects(e, "+") && lx->text[t.span.hi] != '>') {
        diag_fix(p->ctx, not_here(p, t.span, "sets a value", "equality is written `==`", NULL), t.span,
                 "==", FIX_CERTAIN, "write `==`");
        return true;
    }
    if (t.kind != T_IDENT || lx->item[0].kind != T_LET || lx->item_before != 2 || strcmp(lx->item[1].text, "mut") != 0)
        return false;
    Span word = {lx->file, lx->item[1].span.lo, t.span.lo};
    diag_fix(p->ctx, not_here(p, lx->item[1].span, "", "`mut` does not exist here", NULL), word, "", FIX_CERTAIN,
             "write `let %s = ...`", t.text);
    return true;
}

/* `text_file(../corpus.txt, val = 5%)` */
static bool bare_path(Parser *p, Expected e)
{
    Lex *lx = &p->lex;
    Token t = p->token;
    bool begins = t.kind == T_SLASH || t.kind == T_DOT || t.kind == T_DOTDOT;
    if (!begins || !expects(e, "a number") || (t.kind != T_SLASH && lx->text[t.span.hi] != '/'))
        return false;
    Span path = piece(lx, t.span.lo, " ,;", NULL);
    Name with = name_printf(p->ctx, "\"%s\"", text_of(p, path));
    diag_fix(p->ctx, not_here(p, path, "", "a path stands in quotes", NULL), path, with, FIX_CERTAIN, "write `%s`",
             with);
    lx->passed = path.hi;
    return true;
}

/* `width = D -- hidden size` */
static bool dashed_remark(Parser *p)
{
    Lex *lx = &p->lex;
    uint32_t at = p->token.span.lo;
    if (p->token.kind != T_IDENT || lx->before_last.kind != T_IDENT)
        return false;
    while (at > 1 && lx->text[at - 1] != '\n' && !(lx->text[at - 1] == '-' && lx->text[at - 2] == '-'))
        at--;
    if (at < 3 || lx->text[at - 1] != '-' || lx->text[at] != ' ' || lx->text[at - 3] != ' ')
        return false;
    Span mark = {lx->file, at - 2, at};
    diag_fix(p->ctx, not_here(p, mark, "two signs", "`--` begins no comment", NULL), mark, "#", FIX_CERTAIN,
             "a comment starts with `#`");
    return true;
}

/* `eval every 25 steps` */
static bool words_in_a_row(Parser *p, Expected e)
{
    static const char *const nodes[] = {"eval", "checkpoint", "log"};
    Lex *lx = &p->lex;
    Token t = p->token, node = lx->item[0], key = lx->item[1];
    bool found = false;
    for (size_t i = 0; node.kind == T_IDENT && i < COUNT_OF(nodes); i++)
        found = found || !strcmp(nodes[i], node.text);
    if (!found || lx->item_before != 2 || key.kind != T_IDENT || !expects(e, "{") ||
        (t.kind != T_NUMBER && t.kind != T_QUANTITY))
        return false;
    Span value = piece(lx, t.span.lo, ",;", NULL), whole = {lx->file, node.span.lo, value.hi};
    Name with = name_printf(p->ctx, "%s { %s = %s }", node.text, key.text, text_of(p, value));
    diag_fix(p->ctx, not_here(p, whole, "", "`%s` is a node, with braces", node.text), whole, with, FIX_CERTAIN,
             "write `%s`", with);
    return true;
}

bool parse_foreign(Parser *p, Expected e)
{
    return foreign_word(p) || import_of_name(p) || misspelt_keyword(p) || colon_body(p, e) || ternary(p, e) ||
           python_operator(p, e) || prefixed_string(p) || tuple(p, e) || subscripts(p) || foreign_unit(p) ||
           bad_number(p, e) || hyphen(p, e) || no_braces(p, e) || choice_with_colons(p, e) || node_with_equals(p) ||
           label_of_module(p, e) || single_slip(p, e) || missing_comma(p) || last_value(p, e) || text_of_check(p) ||
           loose_number(p) || bare_path(p, e) || dashed_remark(p) || words_in_a_row(p, e) || odd_header(p, e) ||
           colon_for_equals(p, e);
}
