/* mutate.c - faults of small kinds, anywhere in sources.
 *
 * In:  a root, and files below it on stdin, one a line: C (also CUDA), .def, .vwn, and the
 *      rules of flex and bison.
 *          mutate draw ROOT SEED N       N of all places, in order
 *          mutate write ROOT PLACE       the file of a place with the fault in it
 *          mutate count ROOT             how many places there are of each kind
 * Out: lines of `draw`: the place, its line, the line that its function begins in. A place is
 *      FILE:FUNCTION:KIND:NUMBER, the NUMBER-th place of its kind in that function.
 * The one idea: a place is drawn by a hash of the seed and its name. What is drawn stays when
 *      other functions change.
 *
 * Kinds: turn (a comparison turned), edge (off by one: < and <=), constant, sign, call and store (a
 * call, an assignment left out), args (two arguments exchanged), return (another value), leave
 * (return, break, continue left out), negate (a condition), logic (&& and ||), choice (of a ?: one
 * side always). Folders get places by their size, each at least one of many; within a folder the
 * kinds take turns.
 */
#include "text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TURN, EDGE, CONSTANT, SIGN, CALL, STORE, ARGS, RETURN, LEAVE, NEGATE, LOGIC, CHOICE, KINDS };
static const char *const kind_names[KINDS] = {"turn", "edge",   "constant", "sign",   "call",  "store",
                                              "args", "return", "leave",    "negate", "logic", "choice"};

typedef struct Place {
    int file, kind, number, line, begin;
    char function[64];
    uint64_t hash;
} Place;

/* One edit: what stands from `at` on is replaced. */
typedef struct Edit {
    size_t at, size;
    char *text;
} Edit;

typedef struct Found {
    Place *places;
    Edit *edits;
    size_t n, room;
} Found;

/* ---- what stands around a token ---- */

static const Token *tok(const Text *t, size_t i) { return &t->tokens[i]; }

static bool among(const Text *t, size_t i, const char *const *words)
{
    for (; *words; words++)
        if (token_is(t, i, *words))
            return true;
    return false;
}

static const char *const controls[] = {"if", "while", "for", "switch", NULL};
static const char *const keywords[] = {"if",     "while", "for",      "switch",  "return",  "sizeof", "case",   "else",
                                       "do",     "goto",  "const",    "enum",    "struct",  "union",  "static", "free",
                                       "assert", "break", "continue", "defined", "default", "and",    "or",     "not",
                                       "in",     "then",  "block",    "let",     "model",   "check",  NULL};
static const char *const assigns[] = {"=", "+=", "-=", "*=", "/=", "|=", "&=", "%=", "<<=", ">>=", "^=", NULL};

/* Does a statement begin with token i? */
static bool begins(const Text *t, size_t i)
{
    if (i == 0 || tok(t, i)->parens > 0 || tok(t, i)->kind == T_NUMBER)
        return false;
    if (token_is(t, i - 1, ";") || token_is(t, i - 1, "{") || token_is(t, i - 1, "}") || token_is(t, i - 1, "else") ||
        token_is(t, i - 1, "do"))
        return true;
    if (token_is(t, i - 1, ")")) {
        size_t open = tok(t, i - 1)->pair;
        return open > 0 && among(t, open - 1, controls);
    }
    return token_is(t, i - 1, ":") && i >= 3 && (token_is(t, i - 3, "case") || token_is(t, i - 2, "default"));
}

/* Behind the statement or declaration that token i stands in: its ';', or where its file ends. */
static size_t statement_end(const Text *t, size_t i)
{
    while (i < t->n && !(token_is(t, i, ";") && tok(t, i)->parens == 0)) {
        if (tok(t, i)->pair > i)
            i = tok(t, i)->pair;
        else if (token_is(t, i, "}"))
            return t->n;
        i++;
    }
    return i;
}

static size_t statement_begin(const Text *t, size_t i)
{
    while (i > 0 && !token_is(t, i - 1, ";") && !token_is(t, i - 1, "{") && !token_is(t, i - 1, "}"))
        i--;
    return i;
}

/* Is token i a count of elements in a declaration? */
static bool declares_count(const Text *t, size_t i)
{
    if (i < 2 || !token_is(t, i - 1, "[") || t->form == FORM_VWN)
        return false;
    size_t b = statement_begin(t, i);
    while (token_is(t, b, "static") || token_is(t, b, "const") || token_is(t, b, "unsigned") ||
           token_is(t, b, "struct"))
        b++;
    if (b + 1 >= t->n || tok(t, b)->kind != T_WORD || among(t, b, keywords) ||
        !(tok(t, b + 1)->kind == T_WORD || token_is(t, b + 1, "*")))
        return false;
    for (size_t k = b; k < i; k++)
        if (token_is(t, k, "=") && !token_is(t, i + 2, "=") && tok(t, k)->parens == 0)
            return false;
    return true;
}

/* Does an operand end with token i? Else a sign behind it has one operand. */
static bool operand_ends(const Text *t, size_t i)
{
    const Token *k = tok(t, i);
    return (k->kind == T_WORD && !among(t, i, keywords)) || k->kind == T_NUMBER || token_is(t, i, ")") ||
           token_is(t, i, "]");
}

/* Is token i a type's name, as far as names tell? */
static bool typeish(const Text *t, size_t i)
{
    static const char *const types[] = {"char",  "int",      "void", "double",  "float", "bool",
                                        "const", "unsigned", "real", "integer", "FILE",  NULL};
    const Token *k = tok(t, i);
    const char *s = t->s + k->at;
    return k->kind == T_WORD && (among(t, i, types) || (k->size > 2 && strncmp(s + k->size - 2, "_t", 2) == 0) ||
                                 (isupper((unsigned char)s[0]) && k->size > 1 && islower((unsigned char)s[1])));
}

/* ---- edits ---- */

static char *slice(const Text *t, size_t from, size_t to) { return strndup(t->s + from, to - from); }
static size_t token_end(const Text *t, size_t i) { return tok(t, i)->at + tok(t, i)->size; }

static void found(Found *f, const Text *t, int kind, size_t i, size_t at, size_t end, char *text)
{
    if (f->n == f->room) {
        f->room = f->room ? f->room * 2 : 1024;
        f->places = realloc(f->places, f->room * sizeof *f->places);
        f->edits = realloc(f->edits, f->room * sizeof *f->edits);
    }
    if (!text || !f->places || !f->edits)
        abort();
    const Scope *s = &t->scopes[tok(t, i)->scope];
    Place *p = &f->places[f->n];
    *p = (Place){.kind = kind, .line = tok(t, i)->line, .begin = s->line};
    memcpy(p->function, s->name, sizeof p->function);
    f->edits[f->n++] = (Edit){at, end - at, text};
}

static void replace(Found *f, const Text *t, int kind, size_t i, const char *text)
{
    found(f, t, kind, i, tok(t, i)->at, token_end(t, i), strdup(text));
}

static void try_comparison(Found *f, const Text *t, size_t i)
{
    static const char *const signs[] = {"==", "!=", "<", "<=", ">", ">=", NULL};
    static const char *const turned[] = {"!=", "==", ">", ">=", "<", "<="};
    static const char *const edges[] = {NULL, NULL, "<=", "<", ">=", ">"};
    for (int k = 0; signs[k]; k++) {
        if (!token_is(t, i, signs[k]) || !operand_ends(t, i - 1))
            continue;
        replace(f, t, TURN, i, turned[k]);
        if (edges[k])
            replace(f, t, EDGE, i, edges[k]);
    }
}

static void try_constant(Found *f, const Text *t, size_t i)
{
    if (token_is(t, i, "true") || token_is(t, i, "false")) {
        replace(f, t, CONSTANT, i, token_is(t, i, "true") ? "false" : "true");
        return;
    }
    if (tok(t, i)->kind != T_NUMBER || declares_count(t, i))
        return;
    char text[128], *word = slice(t, tok(t, i)->at, token_end(t, i)), *rest = word;
    bool hex = word[0] == '0' && (word[1] == 'x' || word[1] == 'X'),
         real = !hex && strpbrk(word, ".eE") && !strchr(word, '_');
    if (strchr(word, '_')) { /* digits of the language in groups: the last one is changed */
        size_t last = strspn(word, "0123456789_") - 1;
        word[last] = word[last] == '9' ? '8' : (char)(word[last] + 1);
        snprintf(text, sizeof text, "%s", word);
    } else if (real) {
        double value = strtod(word, &rest);
        snprintf(text, sizeof text, "%.9g", value == 0 ? 1 : value * 1.5);
        if (!strpbrk(text, ".e"))
            strcat(text, ".0");
        strncat(text, rest, 16);
    } else {
        unsigned long long value = strtoull(word, &rest, 0);
        bool step = value == 1 && i > 0 && (token_is(t, i - 1, "+") || token_is(t, i - 1, "-"));
        snprintf(text, sizeof text, hex ? "0x%llx%.16s" : "%llu%.16s", step ? 0 : value + 1, rest);
    }
    replace(f, t, CONSTANT, i, text);
    free(word);
}

static void try_sign(Found *f, const Text *t, size_t i)
{
    static const char *const signs[] = {"+", "-", "*", "/", "+=", "-=", NULL};
    static const char *const others[] = {"-", "+", "/", "*", "-=", "+="};
    for (int k = 0; signs[k]; k++) {
        if (!token_is(t, i, signs[k]) || i + 1 >= t->n)
            continue;
        if (operand_ends(t, i - 1) && !typeish(t, i - 1) && (k != 2 || !token_is(t, i + 1, ")")))
            replace(f, t, SIGN, i, others[k]);
        else if (k == 1 && !operand_ends(t, i - 1))
            replace(f, t, SIGN, i, " ");
    }
}

/* Calls that change no result: they give back, or ask for, memory, or say that vwn itself is wrong.
 */
static bool changes_nothing(const Text *t, size_t i)
{
    static const char *const words[] = {"free", "reserve", "prefetch", "vwn_bug", NULL};
    char name[64] = "";
    strncat(name, t->s + tok(t, i)->at, tok(t, i)->size < 63 ? tok(t, i)->size : 63);
    for (int k = 0; words[k]; k++)
        if (strstr(name, words[k]))
            return true;
    return false;
}

/* A call or an assignment that is a statement. */
static void try_statement(Found *f, const Text *t, size_t i)
{
    if (!begins(t, i) || among(t, i, keywords) || typeish(t, i))
        return;
    size_t end = statement_end(t, i), k = i + token_is(t, i, "*");
    if (end >= t->n || k >= t->n || tok(t, k)->kind != T_WORD)
        return;
    for (k++; k < end && tok(t, k)->kind == T_SIGN; k++) { /* the value that is set: a.b[c]->d */
        if (among(t, k, assigns) || token_is(t, k, "++") || token_is(t, k, "--")) {
            found(f, t, STORE, i, tok(t, i)->at, token_end(t, end), strdup("(void)0;"));
            return;
        }
        if (token_is(t, k, "(") && tok(t, k)->pair + 1 == end && !changes_nothing(t, k - 1))
            found(f, t, CALL, i, tok(t, i)->at, token_end(t, end), strdup("(void)0;"));
        if (token_is(t, k, "["))
            k = tok(t, k)->pair;
        else if (token_is(t, k, ".") || token_is(t, k, "->"))
            k++;
        else
            return;
    }
}

static void try_arguments(Found *f, const Text *t, size_t i)
{
    bool call = tok(t, i)->kind == T_WORD && token_is(t, i + 1, "(") && !among(t, i, keywords);
    bool row = t->form == FORM_TABLE && token_is(t, i, "(");
    if ((!call && !row) || (i > 0 && t->form == FORM_C && (typeish(t, i - 1) || token_is(t, i - 1, "static"))))
        return;
    size_t open = row ? i : i + 1, end = tok(t, open)->pair, last = open + 1, before = 0;
    for (size_t k = open + 1; k <= end && end < t->n; k++) {
        if (k < end && tok(t, k)->pair > k) {
            k = tok(t, k)->pair;
            continue;
        }
        if (k != end && !token_is(t, k, ","))
            continue;
        if (before && k > last) { /* [before, last - 1) and [last, k) */
            char *a = slice(t, tok(t, before)->at, token_end(t, last - 2)),
                 *b = slice(t, tok(t, last)->at, token_end(t, k - 1));
            char *text = malloc(strlen(a) + strlen(b) + 3);
            if (strcmp(a, b) != 0 && text) {
                sprintf(text, "%s, %s", b, a);
                found(f, t, ARGS, i, tok(t, before)->at, token_end(t, k - 1), strdup(text));
            }
            free(a);
            free(b);
            free(text);
        }
        before = last;
        last = k + 1;
    }
}

static void try_leave(Found *f, const Text *t, size_t i)
{
    static const char *const tests[] = {"==", "!=", "<", "<=", ">", ">=", "&&", "||", "!", NULL};
    bool returns = token_is(t, i, "return");
    if (!returns && !token_is(t, i, "break") && !token_is(t, i, "continue"))
        return;
    size_t end = statement_end(t, i);
    if (end >= t->n)
        return;
    if (end == i + 1) {
        found(f, t, LEAVE, i, tok(t, i)->at, token_end(t, end), strdup("(void)0;"));
        return;
    }
    bool plain = end == i + 2 && (tok(t, i + 1)->kind == T_NUMBER || token_is(t, i + 1, "true") ||
                                  token_is(t, i + 1, "false") || token_is(t, i + 1, "NULL"));
    if (!returns || plain) /* the constant itself is a place */
        return;
    bool truth = false;
    for (size_t k = i + 1; k < end; k++)
        truth |= tok(t, k)->parens == 0 && among(t, k, tests);
    for (size_t k = i + 1; k < end; k++)
        truth &= !token_is(t, k, "?");
    char *was = slice(t, tok(t, i + 1)->at, tok(t, end)->at), *text = malloc(strlen(was) + 16);
    if (text)
        sprintf(text, truth ? "!(%s)" : "0", was);
    found(f, t, RETURN, i, tok(t, i + 1)->at, tok(t, end)->at, text);
    free(was);
}

static void try_condition(Found *f, const Text *t, size_t i)
{
    if (token_is(t, i, "&&") || token_is(t, i, "||"))
        replace(f, t, LOGIC, i, token_is(t, i, "&&") ? "||" : "&&");
    if (t->form == FORM_VWN && (token_is(t, i, "and") || token_is(t, i, "or")))
        replace(f, t, LOGIC, i, token_is(t, i, "and") ? "or" : "and");
    if (token_is(t, i, "?") && t->form != FORM_VWN) { /* before it: || binds less than all else */
        found(f, t, CHOICE, i, tok(t, i)->at, tok(t, i)->at, strdup("|| 1 "));
        found(f, t, CHOICE, i, tok(t, i)->at, tok(t, i)->at, strdup("&& 0 "));
    }
    bool condition = token_is(t, i, "if") || token_is(t, i, "while");
    if (!condition || !token_is(t, i + 1, "(") || t->form == FORM_VWN)
        return;
    char *was = slice(t, tok(t, i + 1)->at, token_end(t, tok(t, i + 1)->pair)), *text = malloc(strlen(was) + 4);
    if (text)
        sprintf(text, "(!%s)", was);
    found(f, t, NEGATE, i, tok(t, i + 1)->at, token_end(t, tok(t, i + 1)->pair), text);
    free(was);
}

/* ---- places ---- */

/* What a file asserts while it compiles cannot be wrong unseen. */
static bool asserted(const Text *t, size_t i)
{
    size_t b = statement_begin(t, i);
    return token_is(t, b, "_Static_assert") || token_is(t, b, "static_assert");
}

static void places_of(Found *f, const Text *t, int file)
{
    size_t first = f->n;
    for (size_t i = 1; i < t->n; i++) {
        int scope = tok(t, i)->scope;
        if (scope < 0 || asserted(t, i))
            continue;
        if (tok(t, i)->kind == T_NUMBER || tok(t, i)->kind == T_WORD)
            try_constant(f, t, i);
        try_arguments(f, t, i);
        if (t->form != FORM_TABLE && tok(t, i)->kind == T_SIGN) {
            try_comparison(f, t, i);
            try_sign(f, t, i);
        }
        if (t->form != FORM_TABLE)
            try_condition(f, t, i);
        if (t->form != FORM_VWN && t->scopes[scope].body) {
            try_statement(f, t, i);
            try_leave(f, t, i);
        }
    }
    for (size_t i = first; i < f->n; i++) { /* numbers: places of equal names, in the order of the text */
        Place *p = &f->places[i];
        p->file = file;
        for (size_t k = i; k-- > first && p->number == 0;)
            if (f->places[k].kind == p->kind && strcmp(f->places[k].function, p->function) == 0)
                p->number = f->places[k].number + 1;
        p->number += p->number == 0;
    }
}

static uint64_t hashed(uint64_t h, const char *s)
{
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 0x100000001b3u;
    h ^= h >> 32;
    h *= 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

static uint64_t seeded(const char *seed, const char *a, int kind, const char *b, int n)
{
    char number[16];
    snprintf(number, sizeof number, "%d", n);
    return hashed(hashed(hashed(hashed(hashed(0xcbf29ce484222325u, seed), a), kind_names[kind]), b), number);
}

/* ---- drawing ---- */

typedef struct Folder {
    char name[256];
    size_t *of[KINDS], n[KINDS], next[KINDS]; /* its places of each kind, by their hashes */
    size_t all, taken;
    int order[KINDS], turn;
} Folder;

static char **files;
static int n_files;
static Found all;
static Folder *folders;
static size_t n_folders;

static int by_hash(const void *a, const void *b)
{
    uint64_t x = all.places[*(const size_t *)a].hash, y = all.places[*(const size_t *)b].hash;
    return (x > y) - (x < y);
}

static Folder *folder_of(const char *file)
{
    size_t size = (size_t)(strrchr(file, '/') - file);
    for (size_t i = 0; i < n_folders; i++)
        if (strlen(folders[i].name) == size && strncmp(folders[i].name, file, size) == 0)
            return &folders[i];
    folders = realloc(folders, (n_folders + 1) * sizeof *folders);
    if (!folders)
        abort();
    folders[n_folders] = (Folder){0};
    snprintf(folders[n_folders].name, sizeof folders->name, "%.*s", (int)size, file);
    return &folders[n_folders++];
}

static void sort_into_folders(const char *seed)
{
    for (size_t i = 0; i < all.n; i++) {
        Place *p = &all.places[i];
        Folder *folder = folder_of(files[p->file]);
        char name[512];
        snprintf(name, sizeof name, "%s:%s", files[p->file], p->function);
        p->hash = seeded(seed, name, p->kind, "", p->number);
        folder->of[p->kind] = realloc(folder->of[p->kind], (folder->n[p->kind] + 1) * sizeof(size_t));
        if (!folder->of[p->kind])
            abort();
        folder->of[p->kind][folder->n[p->kind]++] = i;
        folder->all++;
    }
    for (size_t i = 0; i < n_folders; i++) {
        Folder *f = &folders[i];
        for (int k = 0; k < KINDS; k++) {
            if (f->n[k])
                qsort(f->of[k], f->n[k], sizeof(size_t), by_hash);
            int at = k; /* the order of kinds, by their hashes */
            for (; at > 0 && seeded(seed, f->name, k, "order", 0) < seeded(seed, f->name, f->order[at - 1], "order", 0);
                 at--)
                f->order[at] = f->order[at - 1];
            f->order[at] = k;
        }
    }
}

/* The folder that has the most places for each one taken; one of which none was taken comes first.
 */
static Folder *next_folder(void)
{
    Folder *best = NULL;
    for (size_t i = 0; i < n_folders; i++) {
        Folder *f = &folders[i];
        if (f->taken == f->all)
            continue;
        bool first = best && !f->taken == !best->taken;
        if (!best || (first ? (double)f->all * (double)(best->taken ? best->taken : 1) >
                                  (double)best->all * (double)(f->taken ? f->taken : 1)
                            : !f->taken))
            best = f;
    }
    return best;
}

static void draw(const char *seed, size_t n)
{
    sort_into_folders(seed);
    for (size_t i = 0; i < n; i++) {
        Folder *f = next_folder();
        if (!f)
            return;
        while (f->next[f->order[f->turn % KINDS]] == f->n[f->order[f->turn % KINDS]])
            f->turn++;
        int kind = f->order[f->turn++ % KINDS];
        const Place *p = &all.places[f->of[kind][f->next[kind]++]];
        f->taken++;
        printf("%s:%s:%s:%d %d %d\n", files[p->file], p->function, kind_names[p->kind], p->number, p->line, p->begin);
    }
}

static int write_place(const char *root, const char *wanted)
{
    char name[512];
    for (size_t i = 0; i < all.n; i++) {
        const Place *p = &all.places[i];
        snprintf(name, sizeof name, "%s:%s:%s:%d", files[p->file], p->function, kind_names[p->kind], p->number);
        if (strcmp(name, wanted) != 0)
            continue;
        Text t = text_read(root, files[p->file]);
        const Edit *e = &all.edits[i];
        fwrite(t.s, 1, e->at, stdout);
        fputs(e->text, stdout);
        fwrite(t.s + e->at + e->size, 1, t.size - e->at - e->size, stdout);
        text_free(&t);
        return 0;
    }
    fprintf(stderr, "there is no place %s\n", wanted);
    return 1;
}

static void count(void)
{
    size_t n[KINDS] = {0};
    for (size_t i = 0; i < all.n; i++)
        n[all.places[i].kind]++;
    for (int k = 0; k < KINDS; k++)
        printf("%-9s %6zu\n", kind_names[k], n[k]);
    printf("%-9s %6zu in %d files\n", "all", all.n, n_files);
}

static void read_files(const char *root, const char *wanted)
{
    char line[1024];
    while (fgets(line, sizeof line, stdin)) {
        line[strcspn(line, "\n")] = 0;
        size_t size = strlen(line);
        if (wanted && (strncmp(line, wanted, size) != 0 || wanted[size] != ':'))
            continue;
        files = realloc(files, (size_t)(n_files + 1) * sizeof *files);
        if (!files || !(files[n_files] = strdup(line)))
            abort();
        Text t = text_read(root, files[n_files]);
        places_of(&all, &t, n_files++);
        text_free(&t);
    }
}

int main(int argc, char **argv)
{
    const char *verb = argc > 2 ? argv[1] : "";
    bool draws = strcmp(verb, "draw") == 0 && argc == 5, writes = strcmp(verb, "write") == 0 && argc == 4;
    if (!draws && !writes && !(strcmp(verb, "count") == 0 && argc == 3)) {
        fputs("mutate draw ROOT SEED N | write ROOT PLACE | count ROOT, with files on stdin\n", stderr);
        return 2;
    }
    read_files(argv[2], writes ? argv[3] : NULL);
    if (writes)
        return write_place(argv[2], argv[3]);
    if (draws)
        draw(argv[3], strtoul(argv[4], NULL, 10));
    else
        count();
    return 0;
}
