/* tree_sitter.c - the grammar that editors use reads what vwn reads, token by token.
 *
 * In:  every example, the library, the texts of this folder and of its mistakes; tree-sitter's library, version 0.20, where it is installed
 *      (neovim brings it).   Out: of a text that vwn parses each leaf of the tree beside the token that stands there; of one that it
 *      does not, whether the tree says so, too. The same tree after edits of it as from nothing.
 */
#include <dirent.h>
#include <dlfcn.h>

#include "grammar/parse.h"
#include "parse_files.h"
#include "test.h"
#include "vwn_parser.h"

/* ---- the few things of tree_sitter/api.h that are used ---- */

typedef struct TSPoint {
    uint32_t row, column;
} TSPoint;
typedef struct TSNode {
    uint32_t context[4];
    const void *id, *tree;
} TSNode;
typedef struct TSInputEdit {
    uint32_t start, old_end, new_end;
    TSPoint start_point, old_end_point, new_end_point;
} TSInputEdit;
const void *tree_sitter_vwn(void);

#define FUNCTIONS(F)                                                                                                   \
    F(void *, parser_new, (void))                                                                                      \
    F(void, parser_delete, (void *))                                                                                   \
    F(bool, parser_set_language, (void *, const void *))                                                               \
    F(void *, parser_parse_string, (void *, const void *, const char *, uint32_t))                                     \
    F(void, tree_delete, (void *))                                                                                     \
    F(void, tree_edit, (void *, const TSInputEdit *))                                                                  \
    F(TSNode, tree_root_node, (const void *))                                                                          \
    F(const char *, node_type, (TSNode))                                                                               \
    F(char *, node_string, (TSNode))                                                                                   \
    F(uint32_t, node_start_byte, (TSNode))                                                                             \
    F(uint32_t, node_end_byte, (TSNode))                                                                               \
    F(uint32_t, node_child_count, (TSNode))                                                                            \
    F(TSNode, node_child, (TSNode, uint32_t))                                                                          \
    F(bool, node_has_error, (TSNode))                                                                                  \
    F(void *, query_new, (const void *, const char *, uint32_t, uint32_t *, int *))                                    \
    F(void, query_delete, (void *))
#define DECLARE(result, name, arguments) static result(*ts_##name) arguments;
FUNCTIONS(DECLARE)

static bool load(void)
{
    void *library = dlopen("libtree-sitter.so.0", RTLD_NOW);
    bool all = library != NULL;
#define LOOK(result, name, arguments) all = all && (*(void **)&ts_##name = dlsym(library, "ts_" #name)) != NULL;
    FUNCTIONS(LOOK)
    return all;
}

/* ---- leaves against tokens ---- */

typedef struct Leaf {
    const char *type;
    uint32_t lo, hi;
} Leaf;
typedef VEC(Leaf) Leaves;

typedef struct Look {
    Test t;
    Ctx *ctx;
    void *parser;
    const char *name;
    size_t fine, tokens, wrong, taken;
} Look;

static void take_leaves(Arena *a, Leaves *out, TSNode node)
{
    uint32_t n = ts_node_child_count(node);
    Leaf leaf = {ts_node_type(node), ts_node_start_byte(node), ts_node_end_byte(node)};
    if (!n && leaf.hi > leaf.lo && strcmp(leaf.type, "comment") && strcmp(leaf.type, "file"))
        vec_push(a, out, leaf);
    for (uint32_t i = 0; i < n; i++)
        take_leaves(a, out, ts_node_child(node, i));
}

/* A token without a name in the tree is what is written. */
static bool is_of_kind(const Leaf *leaf, const Token *t, const char *text)
{
    static const struct {
        int kind;
        const char *type;
    } named[] = {{T_IDENT, "identifier"}, {T_NUMBER, "number"}, {T_QUANTITY, "quantity"}, {T_STRING, "string"},
                 {T_STAR, "any"},         {T_DOTDOT, "rest"},   {T_BLOCK, "block_type"}};
    bool always = false;
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (t->kind == named[i].kind && !strcmp(leaf->type, named[i].type))
            return true;
        always |= t->kind == named[i].kind && i < 4;
    }
    size_t n = strlen(leaf->type);
    return !always && n == leaf->hi - leaf->lo && !strncmp(leaf->type, text + leaf->lo, n);
}

static void compare(Look *l, uint32_t file, const char *text, const Leaves *leaves)
{
    Lex *lx = NEW(l->ctx->scratch, Lex);
    size_t i = 0;
    lex_open(lx, l->ctx, l->ctx->scratch, file, NULL);
    for (Token t = lex_next(lx); t.kind; t = lex_next(lx)) {
        if (t.span.hi == t.span.lo)
            continue; /* the end of an item, where nothing is written */
        const Leaf *leaf = i < leaves->n ? &leaves->v[i++] : NULL;
        bool same = leaf && leaf->lo == t.span.lo && leaf->hi == t.span.hi && is_of_kind(leaf, &t, text);
        l->tokens++;
        EXPECT(&l->t, same);
        if (!same) {
            printf("%s: `%.*s` at %u is `%s` of %u to %u\n", l->name, (int)(t.span.hi - t.span.lo), text + t.span.lo,
                   t.span.lo, leaf ? leaf->type : "nothing", leaf ? leaf->lo : 0, leaf ? leaf->hi : 0);
            return;
        }
    }
    EXPECT(&l->t, i == leaves->n);
}

static TSPoint point(const char *text, uint32_t at)
{
    TSPoint p = {0, 0};
    for (uint32_t i = 0; i < at; i++)
        p = text[i] == '\n' ? (TSPoint){p.row + 1, 0} : (TSPoint){p.row, p.column + 1};
    return p;
}

/* A bracket is typed at some places, and taken back: the tree that was edited so is the one from nothing. */
static void edit(Look *l, const char *text, uint32_t n, const char *whole)
{
    char *now = malloc(n + 2);
    void *tree = ts_parser_parse_string(l->parser, NULL, text, n);
    for (uint32_t at = n / 3; at < n && now; at += n / 3 + 1)
        for (uint32_t typed = 1; typed < 2; typed--) {
            TSInputEdit e = {.start = at, .old_end = at + !typed, .new_end = at + typed};
            e.start_point = e.old_end_point = e.new_end_point = point(text, at);
            e.old_end_point.column += !typed;
            e.new_end_point.column += typed;
            memcpy(now, text, at);
            now[at] = '(';
            memcpy(now + at + typed, text + at, n - at);
            ts_tree_edit(tree, &e);
            void *next = ts_parser_parse_string(l->parser, tree, now, n + typed);
            ts_tree_delete(tree);
            tree = next;
        }
    char *after = ts_node_string(ts_tree_root_node(tree));
    EXPECT(&l->t, !strcmp(after, whole));
    free(after);
    free(now);
    ts_tree_delete(tree);
}

static void look(Look *l, const char *name, const char *text, size_t n)
{
    Ctx *ctx = l->ctx;
    ArenaMark mark = arena_mark(ctx->scratch);
    size_t before = diag_count(ctx);
    uint32_t file = source_add(ctx, name, text, n);
    l->name = name;
    vwn_parse(ctx, file);
    bool fine = diag_count(ctx) == before;
    void *tree = ts_parser_parse_string(l->parser, NULL, text, (uint32_t)n);
    TSNode root = ts_tree_root_node(tree);
    Leaves leaves = {0};
    if (fine) {
        l->fine++;
        char *said = ts_node_string(root);
        EXPECT(&l->t, !ts_node_has_error(root));
        if (ts_node_has_error(root))
            printf("%s: vwn parses it, and tree-sitter says %s\n", name, said);
        take_leaves(ctx->scratch, &leaves, root);
        compare(l, file, text, &leaves);
        edit(l, text, (uint32_t)n, said);
        free(said);
    } else {
        l->wrong++;
        l->taken += !ts_node_has_error(root);
    }
    ts_tree_delete(tree);
    diag_truncate(ctx, before);
    arena_reset(ctx->scratch, mark);
}

static void look_at_folder(Look *l, const char *folder)
{
    char path[8192];
    DIR *d = opendir(folder);
    EXPECT(&l->t, d != NULL);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        if (n < 5 || strcmp(e->d_name + n - 4, ".vwn"))
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        char *text = test_read(path, &n);
        EXPECT(&l->t, text != NULL);
        if (text)
            look(l, path, text, n);
        free(text);
    }
    if (d)
        closedir(d);
}

/* A good file with each of the mistakes in it; see mistakes.txt. */
static void look_at_mistakes(Look *l, char *all)
{
    char name[256] = "", piece[4096] = "", *good = strstr(all, "<<<\n") + 4, *end = strstr(good, ">>>\n"),
         *text = malloc(65536);
    size_t n = (size_t)(end - good);
    for (char *line = strtok(end + 4, "\n"); line && text; line = strtok(NULL, "\n")) {
        char *out = piece;
        if (!strncmp(line, "@ ", 2))
            snprintf(name, sizeof name, "%s", line + 2);
        if (strncmp(line, "- ", 2) && strncmp(line, "+ ", 2))
            continue;
        char *at = *line == '+' ? strstr(good, piece) : NULL;
        size_t before = at ? (size_t)(at - good) : 0, was = strlen(piece);
        for (char *c = line + 2; *c; c++) {
            bool broken = c[0] == '\\' && c[1] == 'n';
            *out++ = broken ? '\n' : *c;
            c += broken;
        }
        *out = 0;
        if (!at || at >= end)
            continue;
        int size = snprintf(text, 65536, "%.*s%s%.*s", (int)before, good, piece, (int)(n - before - was), at + was);
        look(l, name, text, (size_t)size);
    }
    free(text);
}

/* The names that the colours are of are those of the grammar. */
static void look_at_colours(Look *l)
{
    size_t n = 0;
    uint32_t at = 0;
    int why = 0;
    char *text = test_read(VWN_SOURCE_DIR "/grammar/editors/tree-sitter/queries/highlights.scm", &n);
    void *query = text ? ts_query_new(tree_sitter_vwn(), text, (uint32_t)n, &at, &why) : NULL;
    EXPECT(&l->t, query != NULL);
    if (query)
        ts_query_delete(query);
    else
        printf("highlights.scm: error %d at byte %u\n", why, at);
    free(text);
}

int main(void)
{
    static const char *const folders[] = {"examples", "grammar/std", "tests/front/corpus", "tests/front/wrong"};
    char path[4096], *mistakes = test_read(VWN_SOURCE_DIR "/tests/front/mistakes.txt", NULL);
    Look l = {.ctx = ctx_new(NULL)};
    if (!load()) {
        printf("skipped: libtree-sitter.so.0 (Debian: libtree-sitter0) is not here\n");
        return 77;
    }
    l.parser = ts_parser_new();
    EXPECT(&l.t, ts_parser_set_language(l.parser, tree_sitter_vwn()));
    for (size_t i = 0; i < COUNT_OF(folders); i++) {
        snprintf(path, sizeof path, "%s/%s", VWN_SOURCE_DIR, folders[i]);
        look_at_folder(&l, path);
    }
    for (size_t i = 0; i < COUNT_OF(files); i++)
        look(&l, files[i].source, files[i].source, strlen(files[i].source));
    EXPECT(&l.t, mistakes != NULL);
    if (mistakes)
        look_at_mistakes(&l, mistakes);
    look_at_colours(&l);
    printf("%zu texts, %zu tokens; %zu texts with errors, of which tree-sitter takes %zu\n", l.fine, l.tokens, l.wrong,
           l.taken);
    EXPECT(&l.t, l.fine > 200 && l.tokens > 40000 && l.wrong > 80);
    EXPECT(&l.t,
           l.taken <= l.wrong / 50); /* what reserved words cannot be: tree-sitter knows them where they are expected */
    ts_parser_delete(l.parser);
    ctx_free(l.ctx);
    free(mistakes);
    return test_end(&l.t);
}
