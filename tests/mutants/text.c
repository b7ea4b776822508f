/* text.c - see text.h. */
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *grown(void *p, size_t n, size_t *room, size_t size)
{
    if (n < *room)
        return p;
    *room = *room ? *room * 2 : 256;
    p = realloc(p, *room * size);
    if (!p)
        abort();
    return p;
}

bool token_is(const Text *t, size_t i, const char *word)
{
    return i < t->n && t->tokens[i].size == strlen(word) &&
           strncmp(t->s + t->tokens[i].at, word, t->tokens[i].size) == 0;
}

static int add_scope(Text *t, const char *name, size_t size, int line, bool body)
{
    size_t room = (size_t)t->scope_room;
    t->scopes = grown(t->scopes, (size_t)t->n_scopes, &room, sizeof *t->scopes);
    t->scope_room = (int)room;
    Scope *s = &t->scopes[t->n_scopes];
    *s = (Scope){.line = line, .body = body};
    for (size_t i = 0; i < size && i + 1 < sizeof s->name;
         i++) /* names of places are words without blanks and colons */
        s->name[i] = isalnum((unsigned char)name[i]) || strchr("_.-/", name[i]) ? name[i] : '_';
    return t->n_scopes++;
}

static bool word_char(char c) { return isalnum((unsigned char)c) || c == '_' || (c & 0x80); }

/* ---- tokens ---- */

static const char *const long_signs[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=",
                                         "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", "##", ".."};

static size_t sign_size(const Text *t, size_t at)
{
    for (size_t i = 0; i < sizeof long_signs / sizeof *long_signs; i++) {
        size_t size = strlen(long_signs[i]);
        if (at + size <= t->size && strncmp(t->s + at, long_signs[i], size) == 0)
            return size;
    }
    return 1;
}

static size_t number_size(const Text *t, size_t at)
{
    size_t end = at;
    while (end < t->size &&
           (word_char(t->s[end]) || t->s[end] == '.' ||
            ((t->s[end] == '+' || t->s[end] == '-') && strchr("eEpP", t->s[end - 1]) && t->s[at + 1] != 'x'))) {
        if (t->s[end] == '.' && t->s[end + 1] == '.') /* a range of the language */
            break;
        end++;
    }
    return end - at;
}

static size_t quoted_size(const Text *t, size_t at)
{
    size_t end = at + 1;
    while (end < t->size && t->s[end] != t->s[at] && t->s[end] != '\n')
        end += t->s[end] == '\\' ? 2 : 1;
    return (end < t->size ? end + 1 : t->size) - at;
}

/* Behind blanks, comments and the ends of lines that go on. */
static size_t skip_blank(const Text *t, size_t at, size_t end, int *line)
{
    while (at < end) {
        const char *s = t->s + at;
        if (*s == '\\' && s[1] == '\n') {
            at++;
        } else if (t->form == FORM_VWN ? *s == '#' : s[0] == '/' && s[1] == '/') {
            while (at < end && t->s[at] != '\n')
                at++;
        } else if (t->form != FORM_VWN && s[0] == '/' && s[1] == '*') {
            for (at += 2; at < end && strncmp(t->s + at, "*/", 2) != 0; at++)
                *line += t->s[at] == '\n';
            at += 2;
        } else if (isspace((unsigned char)*s)) {
            *line += *s == '\n';
            at++;
        } else {
            break;
        }
    }
    return at < end ? at : end;
}

static void add_token(Text *t, TokenKind kind, size_t at, size_t size, int line)
{
    t->tokens = grown(t->tokens, t->n, &t->room, sizeof *t->tokens);
    t->tokens[t->n] = (Token){.kind = kind, .at = at, .size = size, .line = line, .scope = -1, .pair = t->n};
    t->n++;
}

/* The tokens from `at` to `end`. */
static void tokens_of(Text *t, size_t at, size_t end, int line)
{
    while ((at = skip_blank(t, at, end, &line)) < end) {
        char c = t->s[at];
        size_t size;
        TokenKind kind = T_SIGN;
        if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)t->s[at + 1])))
            size = number_size(t, at), kind = T_NUMBER;
        else if (word_char(c))
            for (size = 1, kind = T_WORD; at + size < end && word_char(t->s[at + size]);)
                size++;
        else if (c == '"' || c == '\'')
            size = quoted_size(t, at), kind = T_TEXT;
        else
            size = sign_size(t, at);
        add_token(t, kind, at, size, line);
        at += size;
    }
}

/* ---- scopes ---- */

static bool opens(char c) { return c == '(' || c == '[' || c == '{'; }
static bool closes(char c) { return c == ')' || c == ']' || c == '}'; }

/* Brackets and how deep they are, of the tokens from `first` on. */
static void pair_brackets(Text *t, size_t first)
{
    static size_t open[4096];
    size_t depth = 0;
    int parens = 0;
    for (size_t i = first; i < t->n; i++) {
        Token *token = &t->tokens[i];
        char c = t->s[token->at];
        bool sign = token->kind == T_SIGN && token->size == 1;
        if (sign && closes(c) && depth > 0) {
            token->pair = open[--depth];
            t->tokens[token->pair].pair = i;
            parens = t->tokens[token->pair].parens;
        }
        token->parens = parens;
        if (sign && opens(c) && depth < sizeof open / sizeof *open) {
            open[depth++] = i;
            parens = c == '{' ? 0 : parens + 1;
        }
    }
}

static void scope_all(Text *t, size_t from, size_t to, int scope)
{
    for (size_t i = from; i < to; i++)
        t->tokens[i].scope = scope;
}

/* The word that a brace at `i` gives a body to, or -1: the name of a function, or of what is
 * initialised. */
static int open_scope(Text *t, size_t begin, size_t i)
{
    bool function = i > begin && token_is(t, i - 1, ")");
    for (size_t k = begin; k < i; k++) {
        if (token_is(t, k, "__attribute__"))
            k = t->tokens[k + 1].pair + 1;
        bool named = t->tokens[k].kind == T_WORD && t->tokens[k].parens == t->tokens[i].parens &&
                     (function ? token_is(t, k + 1, "(") : token_is(t, k + 1, "[") || token_is(t, k + 1, "="));
        if (named)
            return add_scope(t, t->s + t->tokens[k].at, t->tokens[k].size, function ? t->tokens[k].line : 0, function);
        if (token_is(t, k, "enum"))
            return add_scope(t, "enum", 4, 0, false);
    }
    return -1;
}

/* Top-level declarations from token `first` on: what stands in their braces has the scope of their
 * name. */
static void scope_c(Text *t, size_t first)
{
    size_t begin = first;
    bool text = strstr(t->path, "/texts/") != NULL; /* pieces of functions, too */
    int loose = -1;
    for (size_t i = first; i < t->n; i++) {
        size_t end = t->tokens[i].pair;
        if (token_is(t, i, "{") && end > i) {
            int scope = open_scope(t, begin, i);
            if (scope < 0 && text)
                scope = loose = loose < 0 ? add_scope(t, "-", 1, t->tokens[i].line, true) : loose;
            if (scope >= 0)
                scope_all(t, i + 1, end, scope);
            bool function = i > begin && token_is(t, i - 1, ")");
            i = end;
            if (function)
                begin = i + 1;
        } else if (token_is(t, i, ";")) {
            if (text && i > begin) {
                loose = loose < 0 ? add_scope(t, "-", 1, t->tokens[begin].line, true) : loose;
                scope_all(t, begin, i + 1, loose);
            }
            begin = i + 1;
        }
    }
}

/* Rows of a table: NAME(first, ...). */
static void scope_table(Text *t)
{
    for (size_t i = 0; i + 2 < t->n; i++) {
        if (t->tokens[i].kind != T_WORD || !token_is(t, i + 1, "("))
            continue;
        const Token *id = &t->tokens[i + 2];
        bool quoted = id->kind == T_TEXT;
        int scope = add_scope(t, t->s + id->at + quoted, id->size - 2 * quoted, 0, false);
        size_t end = t->tokens[i + 1].pair;
        scope_all(t, i + 1, end, scope);
        i = end > i ? end : i;
    }
}

/* Blocks of the first column. */
static void scope_vwn(Text *t)
{
    int scope = add_scope(t, "-", 1, 0, false);
    for (size_t i = 0; i < t->n; i++) {
        if (token_is(t, i, "block") && (t->tokens[i].at == 0 || t->s[t->tokens[i].at - 1] == '\n') && i + 1 < t->n)
            scope = add_scope(t, t->s + t->tokens[i + 1].at, t->tokens[i + 1].size, 0, false);
        t->tokens[i].scope = scope;
    }
}

/* ---- the forms ---- */

/* Where the line ends that `at` stands in, with those that it goes on in. */
static size_t line_end(const Text *t, size_t at)
{
    while (at < t->size && t->s[at] != '\n')
        at += t->s[at] == '\\' && at + 1 < t->size ? 2 : 1;
    return at < t->size ? at : t->size;
}

static void macro(Text *t, size_t at, size_t end, int line)
{
    at += strspn(t->s + at, "# \t");
    if (strncmp(t->s + at, "define ", 7) != 0)
        return;
    at += 7 + strspn(t->s + at + 7, " ");
    size_t size = strcspn(t->s + at, "( \t\n"), first = t->n;
    tokens_of(t, at + size, end, line);
    bool parameters = t->s[at + size] == '(';
    int scope = add_scope(t, t->s + at, size, 0, true);
    pair_brackets(t, first);
    scope_all(t, parameters ? t->tokens[first].pair + 1 : first, t->n, scope);
}

/* Is the line of a directive inside the second way of a choice of the preprocessor, or behind that?
 */
static void choose(const char *s, int *other, int *nested)
{
    const char *word = s + 1 + strspn(s + 1, " \t");
    if (strncmp(word, "if", 2) == 0)
        *nested += *other;
    else if (strncmp(word, "el", 2) == 0 && !*nested)
        *other = 1;
    else if (strncmp(word, "endif", 5) == 0 && *nested)
        --*nested;
    else if (strncmp(word, "endif", 5) == 0)
        *other = 0;
}

/* A copy of the text in which directives are blanks. Of two ways of the preprocessor the second
 * begins with as many open braces as the first: only those of the first are kept. */
static char *without_directives(const Text *t, size_t at, size_t end)
{
    char *s = strdup(t->s);
    int other = 0, nested = 0;
    if (!s)
        abort();
    while (at < end) {
        size_t stop = line_end(t, at);
        const char *word = t->s + at + strspn(t->s + at, " \t");
        if (*word == '#')
            choose(word, &other, &nested);
        for (; at < stop; at++)
            if (*word == '#' ? s[at] != '\n' : other && (s[at] == '{' || s[at] == '}'))
                s[at] = ' ';
        at++;
    }
    return s;
}

/* C from `at` on, and behind it the bodies of its macros. */
static void read_c(Text *t, size_t at, int line)
{
    size_t first = t->n;
    char *whole = t->s;
    t->s = without_directives(t, at, t->size);
    tokens_of(t, at, t->size, line);
    pair_brackets(t, first);
    scope_c(t, first);
    free(t->s);
    t->s = whole;
    while (at < t->size) {
        size_t stop = line_end(t, at);
        if (t->s[at + strspn(t->s + at, " \t")] == '#')
            macro(t, at, stop, line);
        for (; at <= stop && at < t->size; at++)
            line += t->s[at] == '\n';
    }
}

/* Actions of rules: from a brace behind a blank, before a blank, to its pair; then the C behind the
 * rules. */
static void read_rules(Text *t)
{
    const char *from = strstr(t->s, "\n%%\n");
    const char *to = from ? strstr(from + 3, "\n%%\n") : NULL;
    if (!to)
        return;
    int line = 1;
    for (const char *c = t->s; c < from + 4; c++)
        line += *c == '\n';
    for (const char *c = from + 4; c < to; c++) {
        line += *c == '\n';
        if (*c != '{' || !isspace((unsigned char)c[-1]) || !isspace((unsigned char)c[1]))
            continue;
        size_t at = (size_t)(c - t->s), first = t->n, depth = 0, end = at;
        tokens_of(t, at, (size_t)(to - t->s), line);
        for (size_t i = first; i < t->n; i++) {
            depth += token_is(t, i, "{");
            depth -= token_is(t, i, "}");
            if (depth == 0) {
                end = t->tokens[i].at;
                t->n = i + 1;
            }
        }
        pair_brackets(t, first);
        scope_all(t, first + 1, t->n - 1, t->n_scopes ? 0 : add_scope(t, "rules", 5, line, true));
        for (; c < t->s + end; c++)
            line += c[1] == '\n';
    }
    read_c(t, (size_t)(to + 4 - t->s), line + 2);
}

Text text_read(const char *root, const char *path)
{
    Text t = {.path = path};
    char name[4096];
    snprintf(name, sizeof name, "%s/%s", root, path);
    FILE *f = fopen(name, "rb");
    if (!f) {
        perror(name);
        exit(2);
    }
    size_t room = 0;
    do {
        t.s = grown(t.s, t.size + 1, &room, 1);
        t.size += fread(t.s + t.size, 1, room - t.size - 1, f);
    } while (t.size + 1 == room);
    fclose(f);
    t.s[t.size] = 0;
    const char *end = strrchr(path, '.');
    t.form = strcmp(end, ".def") == 0                           ? FORM_TABLE
             : strcmp(end, ".vwn") == 0                         ? FORM_VWN
             : strcmp(end, ".y") == 0 || strcmp(end, ".l") == 0 ? FORM_RULES
                                                                : FORM_C;
    if (t.form == FORM_RULES) {
        read_rules(&t);
    } else if (t.form == FORM_C) {
        read_c(&t, 0, 1);
    } else {
        tokens_of(&t, 0, t.size, 1);
        pair_brackets(&t, 0);
        if (t.form == FORM_VWN)
            scope_vwn(&t);
        else
            scope_table(&t);
    }
    return t;
}

void text_free(Text *t)
{
    free(t->s);
    free(t->tokens);
    free(t->scopes);
}
