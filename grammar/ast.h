/* ast.h - the raw syntax tree: what was written, with the place of every piece, and nothing else.
 *
 * In:  a source text registered with source_add().   Out: an Ast of kind AST_ITEMS, or NULL with
 * diagnostics filed. The one idea: one node type whose children have fixed places (the table below),
 * so that the formatter, the dump and the evaluator walk the same simple thing.
 */
#ifndef VWN_AST_H
#define VWN_AST_H

#include "compiler/base/base.h"
#include "compiler/base/diag.h"

/* X(KIND, "name in dumps", what `name` holds, children in order; NULL child = absent) */
#define AST_KINDS(X)                                                                                                   \
    /* structure */                                                                                                    \
    X(ITEMS, "items", "-", "item...")                                                                                  \
    X(IMPORT, "import", "path without quotes", "as (ID) | NULL, ARGS | NULL")                                          \
    X(LET, "let", "name", "type | NULL, value")                                                                        \
    X(CHECK, "check", "-", "condition, message (STR) | NULL, ITEMS | NULL")                                            \
    X(BLOCK, "block", "name", "PARAMS, tensor PARAMS | NULL, result type | NULL, ITEMS")                               \
    X(PARAM, "param", "name", "shape, init, ITEMS | NULL")                                                             \
    X(BUFFER, "buffer", "name", "shape, init, ITEMS | NULL")                                                           \
    X(RETURN, "return", "-", "value")                                                                                  \
    X(FOR, "for", "variable", "range, ITEMS")                                                                          \
    X(IF, "if", "-", "condition, ITEMS, ITEMS | IF | NULL")                                                            \
    X(NODE, "node", "-", "PATH, LABEL | NULL, ITEMS | NULL (written without braces)")                                  \
    X(SET, "set", "-", "PATH, value")                                                                                  \
    X(ENTRY, "entry", "foreign name", "value (of a names table)")                                                      \
    X(OFF, "off", "-", "the item or argument switched off by /-")                                                      \
    X(PARAMS, "params", "-", "PAR...")                                                                                 \
    X(PAR, "par", "name", "type, default | NULL")                                                                      \
    X(LABEL, "label", "text", "-")                                                                                     \
    X(PATH, "path", "first name", "DOT | AT...")                                                                       \
    X(DOT, "dot", "name", "-")                                                                                         \
    X(AT, "at", "-", "expr | STAR")                                                                                    \
    /* expressions */                                                                                                  \
    X(NUM, "num", "text", "-")                                                                                         \
    X(QTY, "qty", "text", "-")                                                                                         \
    X(STR, "str", "decoded text", "-")                                                                                 \
    X(BOOL, "bool", "true or false", "-")                                                                              \
    X(ID, "id", "name", "-")                                                                                           \
    X(LIST, "list", "-", "expr | DOTS | STAR ...")                                                                     \
    X(DOTS, "dots", "-", "-")                                                                                          \
    X(STAR, "star", "-", "-")                                                                                          \
    X(COMP, "comp", "-", "value, ITERS, filter | NULL")                                                                \
    X(ITERS, "iters", "-", "ITER...")                                                                                  \
    X(ITER, "iter", "variable", "range")                                                                               \
    X(COND, "cond", "-", "condition, then, else")                                                                      \
    X(OP, "op", "the operator: or and == != < <= > >= + - * / @ mod ^", "left, right")                                 \
    X(RANGE, "range", "-", "low, high")                                                                                \
    X(NOT, "not", "-", "operand")                                                                                      \
    X(NEG, "neg", "-", "operand")                                                                                      \
    X(PAREN, "paren", "-", "expr (kept for the formatter)")                                                            \
    X(CALL, "call", "-", "callee, ARGS")                                                                               \
    X(INDEX, "index", "-", "operand, LIST")                                                                            \
    X(FIELD, "field", "field name", "operand")                                                                         \
    X(ARGS, "args", "-", "expr | NAMED | OFF ...")                                                                     \
    X(NAMED, "named", "name", "value")

typedef enum AstKind {
#define X(kind, text, name, kids) AST_##kind,
    AST_KINDS(X)
#undef X
        AST_KIND_COUNT
} AstKind;

typedef struct Ast Ast;
struct Ast {
    AstKind kind;
    Name name;      /* see the table; NULL where it says "-" */
    Name doc;       /* text of the `##` lines right above, without the marks; NULL when none */
    Span span;      /* the whole construct */
    Span name_span; /* the name's own letters; for OP the operator; else equal to span */
    uint32_t n;
    Ast **kid;
};

/* NUM, decoded. A suffix k M B T Ki Mi Gi % is multiplied in; d and L are kept in `rel`. */
typedef struct AstNumber {
    double value;
    char rel;      /* 0, 'd' or 'L' */
    bool fraction; /* written with a point, an exponent or % (a float even when whole) */
    Name unit;     /* QTY: canonical unit word: step token seq image epoch h min s ms KiB MiB GiB */
} AstNumber;
AstNumber ast_number(Ctx *ctx, const Ast *number);

/* Parses a whole file, or (vwn_parse_expr) one expression as in `--set PATH=EXPR`. Errors are filed;
 * the tree of what could be understood is returned even then (never NULL for a file). Limits (nesting
 * 256, 8 MiB of text, 1,000,000 nodes) are errors E0008 with the limit's name. */
Ast *vwn_parse(Ctx *ctx, uint32_t file);
Ast *vwn_parse_expr(Ctx *ctx, uint32_t file);
Ast *vwn_parse_path(Ctx *ctx, uint32_t file); /* "width.bottleneck", "layer[3].attention.heads" */

/* Dump: one node per line, indented, byte-stable. Structural equality ignores spans, docs and PAREN. */
void ast_dump(Buf *out, const Ast *ast, bool spans);
bool ast_equal(const Ast *a, const Ast *b);
const char *ast_kind_name(AstKind kind);

/* The formatter (format.c): canonical text of a source file, comments kept, idempotent. The file must
 * have parsed without errors. */
void vwn_format(Ctx *ctx, uint32_t file, const Ast *ast, Buf *out);
/* The canonical one-line text of an expression, for messages, `resolve` and `doc`. */
void ast_print_expr(Buf *out, const Ast *expr);

/* The standard library's text, compiled in. path is "std/transformer" (with or without .vwn);
 * NULL when there is none of that name. */
const char *std_text(const char *path, size_t *n);
size_t std_count(void);
const char *std_path(size_t i); /* "std/transformer.vwn" */

#endif
