/* tree_sitter.c - the grammar that editors use reads what vwn reads, token by token.
 *
 * In:  every .vwn file, the texts of this folder and of its mistakes; tree-sitter's library, version 0.20, where it is installed
 *      (neovim brings it).   Out: of a text that vwn parses each leaf of the tree beside the token that stands there, also with a kind
 *      of leaves left out, which must be seen; what the queries say: the names that they declare beside those of vwn's tree, folds
 *      beside brackets, depths beside what `vwn fmt` writes. Of a text that vwn does not parse, whether the tree says so, too. The same
 *      tree after edits of it as from nothing.
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
typedef struct TSQueryCapture {
    TSNode node;
    uint32_t index;
} TSQueryCapture;
typedef struct TSQueryMatch {
    uint32_t id;
    uint16_t pattern, n;
    const TSQueryCapture *captures;
} TSQueryMatch;
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
    F(void, query_delete, (void *))                                                                                    \
    F(const char *, query_capture_name_for_id, (const void *, uint32_t, uint32_t *))                                   \
    F(void *, query_cursor_new, (void))                                                                                \
    F(void, query_cursor_delete, (void *))                                                                             \
    F(void, query_cursor_exec, (void *, const void *, TSNode))                                                         \
    F(bool, query_cursor_next_match, (void *, TSQueryMatch *))
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

enum { HIGHLIGHTS, LOCALS, FOLDS, INDENTS, QUERIES };

typedef struct Look {
    Test t;
    Ctx *ctx;
    void *parser, *cursor, *query[QUERIES];
    const char *name;
    size_t fine, tokens, wrong, taken, declared, folds, lines;
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

static const struct {
    int kind;
    const char *type;
} named[] = {{T_IDENT, "identifier"}, {T_NUMBER, "number"}, {T_QUANTITY, "quantity"}, {T_STRING, "string"},
             {T_STAR, "any"},         {T_DOTDOT, "rest"},   {T_BLOCK, "block_type"}};

/* A token without a name in the tree is what is written. */
static bool is_of_kind(const Leaf *leaf, const Token *t, const char *text)
{
    bool always = false;
    for (size_t i = 0; i < COUNT_OF(named); i++) {
        if (t->kind == named[i].kind && !strcmp(leaf->type, named[i].type))
            return true;
        always |= t->kind == named[i].kind && i < 4;
    }
    size_t n = strlen(leaf->type);
    return !always && n == leaf->hi - leaf->lo && !strncmp(leaf->type, text + leaf->lo, n);
}

/* What is the matter with the leaves but those of the kind `without`; NULL: they are the tokens. */
static const char *differ(Look *l, uint32_t file, const char *text, const Leaves *leaves, const char *without)
{
    Lex *lx = NEW(l->ctx->scratch, Lex);
    size_t i = 0;
    lex_open(lx, l->ctx, l->ctx->scratch, file, NULL);
    for (Token t = lex_next(lx); t.kind; t = lex_next(lx)) {
        if (t.span.hi == t.span.lo)
            continue; /* the end of an item, where nothing is written */
        while (without && i < leaves->n && !strcmp(leaves->v[i].type, without))
            i++;
        const Leaf *leaf = i < leaves->n ? &leaves->v[i++] : NULL;
        if (!leaf || leaf->lo != t.span.lo || leaf->hi != t.span.hi || !is_of_kind(leaf, &t, text))
            return arena_printf(l->ctx->scratch, "`%.*s` at %u is `%s` of %u to %u", (int)(t.span.hi - t.span.lo),
                                text + t.span.lo, t.span.lo, leaf ? leaf->type : "nothing", leaf ? leaf->lo : 0,
                                leaf ? leaf->hi : 0);
        l->tokens += !without;
    }
    return i < leaves->n ? "a leaf behind all tokens" : NULL;
}

static void compare(Look *l, uint32_t file, const char *text, const Leaves *leaves)
{
    const char *wrong = differ(l, file, text, leaves, NULL);
    EXPECT(&l->t, !wrong);
    if (wrong)
        printf("%s: %s\n", l->name, wrong);
    for (size_t k = 0; k < COUNT_OF(named) && !wrong; k++) {
        bool there = false;
        for (size_t i = 0; i < leaves->n; i++)
            there |= !strcmp(leaves->v[i].type, named[k].type);
        EXPECT(&l->t, !there || differ(l, file, text, leaves, named[k].type));
    }
}

/* ---- queries ---- */

/* What a query captures under names that begin so, in the order of the text. */
static Leaves captured(Look *l, int query, const char *name, TSNode root)
{
    Leaves out = {0};
    TSQueryMatch match;
    ts_query_cursor_exec(l->cursor, l->query[query], root);
    while (ts_query_cursor_next_match(l->cursor, &match))
        for (uint16_t i = 0; i < match.n; i++) {
            const TSQueryCapture *c = &match.captures[i];
            uint32_t n;
            const char *its = ts_query_capture_name_for_id(l->query[query], c->index, &n);
            if (!strncmp(its, name, strlen(name)))
                vec_push(l->ctx->scratch, &out, ((Leaf){its, ts_node_start_byte(c->node), ts_node_end_byte(c->node)}));
        }
    return out;
}

static bool has(const Leaves *all, uint32_t lo, uint32_t hi)
{
    for (size_t i = 0; i < all->n; i++)
        if (all->v[i].lo == lo && all->v[i].hi == hi)
            return true;
    return false;
}

/* How many names an item declares; each is one of the captured ones. */
static size_t declared(Look *l, const Ast *e, const Leaves *all)
{
    size_t n = 0;
    Span at = e->kind == AST_IMPORT && e->kid[0] ? e->kid[0]->span : e->name_span;
    switch (e->kind) {
    case AST_IMPORT: n = e->kid[0] != NULL; break;
    case AST_LET:
    case AST_BLOCK:
    case AST_PARAM:
    case AST_BUFFER:
    case AST_FOR:
    case AST_PAR:
    case AST_ITER: n = 1; break;
    default: break;
    }
    EXPECT(&l->t, !n || has(all, at.lo, at.hi));
    for (uint32_t i = 0; i < e->n; i++)
        n += e->kid[i] ? declared(l, e->kid[i], all) : 0;
    return n;
}

/* Each fold is a pair of brackets, and each pair is one but those of an index. */
static void look_at_folds(Look *l, const char *text, const Leaves *leaves, TSNode root)
{
    Leaves folds = captured(l, FOLDS, "fold", root), open = {0}, pairs = {0};
    for (size_t i = 0; i < leaves->n; i++) {
        Leaf leaf = leaves->v[i], *opener;
        const char *before = i ? leaves->v[i - 1].type : "", c = leaf.hi == leaf.lo + 1 ? text[leaf.lo] : 0;
        if (c && strchr("([{", c)) {
            bool index = c == '[' && (!strcmp(before, "identifier") || !strcmp(before, "number") || *before == ')' ||
                                      *before == ']');
            leaf.type = index ? "index" : leaf.type;
            vec_push(l->ctx->scratch, &open, leaf);
        }
        if (!c || !strchr(")]}", c) || !open.n)
            continue;
        opener = &open.v[--open.n];
        leaf.lo = opener->lo;
        vec_push(l->ctx->scratch, &pairs, leaf);
        EXPECT(&l->t, !strcmp(opener->type, "index") || has(&folds, leaf.lo, leaf.hi));
    }
    for (size_t i = 0; i < folds.n; i++)
        EXPECT(&l->t, has(&pairs, folds.v[i].lo, folds.v[i].hi));
    l->folds += folds.n;
}

/* A line begins two blanks further right for each line on which something begins that is open where it begins. Rows of a list whose
 * first one stands beside the bracket are under it, which the query does not know. */
static void look_at_indents(Look *l, const char *text, size_t size, TSNode root)
{
    Leaves in = captured(l, INDENTS, "indent.begin", root), out = captured(l, INDENTS, "indent.branch", root);
    uint32_t *line = NEW_ARRAY(l->ctx->scratch, uint32_t, size + 1); /* of each byte */
    for (size_t i = 0; i < size; i++)
        line[i + 1] = line[i] + (text[i] == '\n');
    for (uint32_t at = 0; at < size; at += (uint32_t)strcspn(text + at, "\n") + 1) {
        uint32_t blanks = (uint32_t)strspn(text + at, " "), first = at + blanks, depth = 0, last = UINT32_MAX;
        if (text[first] == '\n')
            continue;
        const char *under = "";
        for (size_t i = 0; i < in.n; i++) { /* in the order of the text */
            bool around =
                in.v[i].lo < at && in.v[i].hi > first && !(has(&out, first, first + 1) && in.v[i].hi == first + 1);
            depth += around && line[in.v[i].lo] != last;
            last = around ? line[in.v[i].lo] : last;
            under = around ? text + in.v[i].lo : under;
        }
        l->lines++;
        if (under[0] == '[' && under[1] != '\n')
            continue;
        EXPECT(&l->t, blanks == 2 * depth);
        if (blanks != 2 * depth)
            printf("%s:%u: %u deep\n", l->name, line[at] + 1, depth);
    }
}

static void look_at_queries(Look *l, const Ast *ast, uint32_t file, const char *text, size_t n, const Leaves *leaves,
                            TSNode root)
{
    Leaves names = captured(l, LOCALS, "local.definition", root);
    size_t all = declared(l, ast, &names);
    EXPECT(&l->t, all == names.n);
    l->declared += all;
    look_at_folds(l, text, leaves, root);
    Buf same = buf_new(l->ctx->scratch);
    vwn_format(l->ctx, file, ast, &same);
    if (same.n == n && !memcmp(same.s, text, n))
        look_at_indents(l, text, n, root);
}

static void open_queries(Look *l)
{
    static const char *const names[] = {"highlights", "locals", "folds", "indents"};
    for (size_t i = 0; i < QUERIES; i++) {
        size_t n = 0;
        uint32_t at = 0;
        int why = 0;
        char path[4096];
        snprintf(path, sizeof path, "%s/grammar/editors/tree-sitter/queries/%s.scm", VWN_SOURCE_DIR, names[i]);
        char *text = test_read(path, &n);
        l->query[i] = text ? ts_query_new(tree_sitter_vwn(), text, (uint32_t)n, &at, &why) : NULL;
        if (!l->query[i])
            printf("%s: error %d at byte %u\n", path, why, at);
        free(text);
    }
}

/* ---- edits ---- */

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

/* Mistakes that the tree does not show: tree-sitter knows a reserved word where it is expected, and takes it for a name elsewhere. */
static const char *const unseen[] = {"w = param([64])", "PyTorch: in of a linear layer"};

/* A text that vwn does not parse has an error in the tree. */
static void refused(Look *l, TSNode root)
{
    bool known = false;
    for (size_t i = 0; i < COUNT_OF(unseen); i++)
        known |= !strcmp(l->name, unseen[i]);
    l->wrong++;
    l->taken += known;
    EXPECT(&l->t, known == !ts_node_has_error(root));
    if (known == ts_node_has_error(root))
        printf("%s: tree-sitter takes it%s\n", l->name, known ? " no more" : "");
}

static void look(Look *l, const char *name, const char *text, size_t n)
{
    Ctx *ctx = l->ctx;
    ArenaMark mark = arena_mark(ctx->scratch);
    size_t before = diag_count(ctx);
    uint32_t file = source_add(ctx, name, text, n);
    l->name = name;
    const Ast *ast = vwn_parse(ctx, file);
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
        look_at_queries(l, ast, file, text, n, &leaves, root);
        edit(l, text, (uint32_t)n, said);
        free(said);
    } else {
        refused(l, root);
    }
    ts_tree_delete(tree);
    diag_truncate(ctx, before);
    arena_reset(ctx->scratch, mark);
}

/* All files in it and in its folders. */
static void look_at_folder(Look *l, const char *folder)
{
    char path[8192];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        size_t n = strlen(e->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (*e->d_name != '.' && !strchr(e->d_name, '.'))
            look_at_folder(l, path);
        if (n < 5 || strcmp(e->d_name + n - 4, ".vwn"))
            continue;
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

int main(void)
{
    static const char *const folders[] = {"examples", "grammar", "runtime", "tests"};
    char path[4096], *mistakes = test_read(VWN_SOURCE_DIR "/tests/front/mistakes.txt", NULL);
    Look l = {.ctx = ctx_new(NULL)};
    if (!load()) {
        printf("skipped: libtree-sitter.so.0 (Debian: libtree-sitter0) is not here\n");
        return 77;
    }
    l.parser = ts_parser_new();
    l.cursor = ts_query_cursor_new();
    open_queries(&l);
    bool open = ts_parser_set_language(l.parser, tree_sitter_vwn());
    for (size_t i = 0; i < QUERIES; i++)
        open = open && l.query[i];
    EXPECT(&l.t, open && mistakes);
    for (size_t i = 0; i < COUNT_OF(folders) && open; i++) {
        snprintf(path, sizeof path, "%s/%s", VWN_SOURCE_DIR, folders[i]);
        look_at_folder(&l, path);
    }
    for (size_t i = 0; i < COUNT_OF(files) && open; i++)
        look(&l, files[i].source, files[i].source, strlen(files[i].source));
    if (mistakes && open)
        look_at_mistakes(&l, mistakes);
    printf("%zu texts, %zu tokens, %zu names declared, %zu folds, %zu lines; %zu texts with errors, of which "
           "tree-sitter takes %zu\n",
           l.fine, l.tokens, l.declared, l.folds, l.lines, l.wrong, l.taken);
    EXPECT(&l.t, l.taken == COUNT_OF(unseen));
    EXPECT(&l.t,
           l.fine > 200 && l.tokens > 40000 && l.wrong > 80 && l.declared > 1000 && l.folds > 1000 && l.lines > 2000);
    for (size_t i = 0; i < QUERIES; i++)
        if (l.query[i])
            ts_query_delete(l.query[i]);
    ts_query_cursor_delete(l.cursor);
    ts_parser_delete(l.parser);
    ctx_free(l.ctx);
    free(mistakes);
    return test_end(&l.t);
}
