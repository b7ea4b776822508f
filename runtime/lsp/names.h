/* names.h - what the names of a text mean, found without evaluating it.
 *
 * In:  a syntax tree, also of a text with errors.   Out: every declaration, and every place that means one.
 * The one idea: a body has one declaration for a name, however often it is bound again, so a name that is renamed is renamed
 * in all of the body. What the file does not declare has a use without a declaration.
 */
#ifndef VWN_LSP_NAMES_H
#define VWN_LSP_NAMES_H

#include "lsp.h"

typedef enum NameKind {
    NAME_LET,
    NAME_BLOCK,
    NAME_IMPORT,   /* the `t` of `import ... as t` */
    NAME_ARGUMENT, /* of a block's configuration */
    NAME_TENSOR,   /* what a block is applied to */
    NAME_EXTENT,   /* the D of `x: [.., D]` */
    NAME_VALUE,    /* bound by `=` in a body */
    NAME_WEIGHT,   /* param, buffer */
    NAME_LOOP,     /* the variable of a `for` */
    NAME_EACH      /* that of a list's `for` */
} NameKind;
typedef struct Declared {
    Name name;
    NameKind kind;
    Span at;
    const Ast *ast;  /* the item, parameter or loop */
    uint32_t lo, hi; /* where it can be named */
} Declared;
typedef struct Used {
    Name name;
    Span at;           /* letters of the name; of an embed or a head without `embed_` */
    size_t declared;   /* its number + 1; 0: not by this file */
    const char *front; /* "embed_", "head_", else "" */
} Used;
typedef struct FileNames {
    Arena *arena;
    Ctx *ctx;
    VEC(Declared) declared;
    VEC(Used) used; /* declarations are uses of themselves */
} FileNames;

FileNames *names_of(Ctx *ctx, const Ast *file);
/* The use at an offset, or right behind it; NULL: there is none. */
const Used *name_at(const FileNames *t, size_t offset);

/* ---- find.c: what a request is about ---- */
typedef struct NodeChain { /* the nodes around an offset, from the file to the innermost */
    const Ast *node[1024];
    size_t n;
} NodeChain;
typedef struct Cursor {
    Request *r;
    uint32_t source;
    const Ast *ast;
    FileNames *names;
    size_t offset;
    NodeChain chain;
} Cursor;
/* Parses the document, and finds what stands at the position of the request; false: it has none. */
bool cursor_open(Cursor *a, Request *r);
/* A text that the document imports; `uri`: NULL for the library. */
typedef struct Imported {
    const char *uri, *name; /* name: as it is imported */
    uint32_t source;
    const Ast *ast;
} Imported;
bool import_open(Cursor *a, const Ast *import, Imported *out); /* an import, or a variant's node */
bool is_variant(const Ast *item);
bool brings_names(const Ast *item);
/* A let or a block at the top of a file. */
const Ast *top_item(const Ast *file, Name name);
typedef struct Found {
    const Ast *item; /* a let, a block, or what else declares the name in the document */
    const char *uri; /* NULL: of the library */
    uint32_t source;
    const char *where; /* "std/transformer" ..., or NULL: the document */
} Found;
/* What the document, or a file that it imports, calls so; `as`: the import's name before the point, or NULL. */
bool find_name(Cursor *a, Name name, Name as, Found *out);
/* `grow.wider` in the braces of a variant: that node of its base. */
bool find_node(Cursor *a, const Ast *path, Found *out);
/* The block that a call or a node configures, through a let that is one; false: it is none, or nobody knows. */
bool find_block(Cursor *a, Name name, Name as, Found *out);
/* That of a node: `embed tokens` is embed_tokens. */
bool node_block(Cursor *a, const Ast *node, Found *out);
/* What is declared at the position, or named there (navigate.c). */
bool found_here(Cursor *a, Found *out);
const Ast *block_argument(const Ast *block, Name name); /* AST_PAR or NULL */

#endif
