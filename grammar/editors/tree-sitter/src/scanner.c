/* scanner.c - what tree-sitter's tables cannot scan: numbers with their units, and the newline that ends an item.
 *
 * In:  the characters of a text, and which tokens may follow.   Out: one token, or none.
 * The one idea: it looks as far ahead as the language does and keeps nothing between two tokens. lex.c of vwn has the same two rules.
 */
#include <string.h>
#include <tree_sitter/parser.h>

enum Token { NEWLINE, NUMBER, QUANTITY, IN_ERROR };

static bool is_digit(int32_t c) { return c >= '0' && c <= '9'; }

static bool starts_word(int32_t c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool in_word(int32_t c) { return starts_word(c) || is_digit(c); }

/* A word, of which `size` - 1 letters are kept. */
static void take_word(TSLexer *lx, char *word, size_t size)
{
    size_t n = 0;
    for (; in_word(lx->lookahead); lx->advance(lx, false))
        if (n + 1 < size)
            word[n++] = (char)lx->lookahead;
        else
            n = size - 1, word[0] = '\0'; /* longer than any that is known */
    word[n] = '\0';
}

static bool is_one_of(const char *word, const char *const *list)
{
    for (; *list; list++)
        if (strcmp(word, *list) == 0)
            return true;
    return false;
}

/* ---- numbers ---- */

/* Digits with `_` between them; what is behind the last digit is not in the token. */
static bool take_digits(TSLexer *lx)
{
    if (!is_digit(lx->lookahead))
        return false;
    while (is_digit(lx->lookahead) || lx->lookahead == '_') {
        bool digit = is_digit(lx->lookahead);
        lx->advance(lx, false);
        if (digit)
            lx->mark_end(lx);
    }
    return true;
}

static bool take_number(TSLexer *lx)
{
    static const char *const suffixes[] = {"", "k", "M", "B", "T", "Ki", "Mi", "Gi", "d", "L", NULL};
    char word[4];
    if (!take_digits(lx))
        return false;
    if (lx->lookahead == '.') {
        lx->advance(lx, false);
        if (!take_digits(lx))
            return lx->lookahead == '.'; /* 1..4 */
    }
    if (lx->lookahead == 'e' || lx->lookahead == 'E') {
        lx->advance(lx, false);
        if (lx->lookahead == '+' || lx->lookahead == '-')
            lx->advance(lx, false);
        if (!take_digits(lx))
            return false;
    }
    if (lx->lookahead == '%') {
        lx->advance(lx, false);
        lx->mark_end(lx);
        return true;
    }
    take_word(lx, word, sizeof word);
    lx->mark_end(lx);
    return is_one_of(word, suffixes);
}

/* Behind a number: blanks and the name of a unit. */
static bool take_unit(TSLexer *lx)
{
    static const char *const units[] = {"steps",  "step",  "tokens", "token", "tok", "seqs", "seq",
                                        "images", "image", "epochs", "epoch", "h",   "min",  "s",
                                        "ms",     "KiB",   "MiB",    "GiB",   NULL};
    char word[16];
    if (lx->lookahead != ' ' && lx->lookahead != '\t')
        return false;
    while (lx->lookahead == ' ' || lx->lookahead == '\t')
        lx->advance(lx, false);
    if (!starts_word(lx->lookahead))
        return false;
    take_word(lx, word, sizeof word);
    return is_one_of(word, units);
}

/* ---- newlines ---- */

static bool is_blank(int32_t c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

/* Whether what stands here continues the line before. */
static bool continues(TSLexer *lx)
{
    static const char *const words[] = {"and", "or", "mod", "then", "else", "as", NULL};
    char word[8];
    int32_t c = lx->lookahead;
    if (starts_word(c)) {
        take_word(lx, word, sizeof word);
        return is_one_of(word, words);
    }
    if (c && strchr("+-*^@.,:=<>([{)]", (int)c))
        return true;
    if (c != '/' && c != '!')
        return false;
    lx->advance(lx, false);
    return c == '/' ? lx->lookahead != '-' && lx->lookahead != '/' : lx->lookahead == '=';
}

/* The first newline behind an item is the token. */
static bool take_newline(TSLexer *lx)
{
    while (is_blank(lx->lookahead) && lx->lookahead != '\n')
        lx->advance(lx, true);
    if (lx->lookahead != '\n')
        return false;
    lx->advance(lx, false);
    lx->mark_end(lx);
    for (;;) {
        while (is_blank(lx->lookahead))
            lx->advance(lx, false);
        if (lx->lookahead != '#')
            return !continues(lx);
        while (lx->lookahead != '\n' && !lx->eof(lx))
            lx->advance(lx, false);
    }
}

/* ---- for the parser ---- */

void *tree_sitter_vwn_external_scanner_create(void) { return NULL; }

void tree_sitter_vwn_external_scanner_destroy(void *nothing) { (void)nothing; }

unsigned tree_sitter_vwn_external_scanner_serialize(void *nothing, char *buffer)
{
    (void)nothing, (void)buffer;
    return 0;
}

void tree_sitter_vwn_external_scanner_deserialize(void *nothing, const char *buffer, unsigned n)
{
    (void)nothing, (void)buffer, (void)n;
}

bool tree_sitter_vwn_external_scanner_scan(void *nothing, TSLexer *lx, const bool *valid)
{
    (void)nothing;
    if (valid[NEWLINE] && !valid[IN_ERROR]) { /* no number may follow, where an item may end */
        lx->result_symbol = NEWLINE;
        return take_newline(lx);
    }
    if (!valid[NUMBER] && !valid[QUANTITY])
        return false;
    while (is_blank(lx->lookahead))
        lx->advance(lx, true);
    if (!take_number(lx))
        return false;
    lx->result_symbol = NUMBER;
    if (take_unit(lx)) {
        lx->mark_end(lx);
        lx->result_symbol = QUANTITY;
    }
    return true;
}
