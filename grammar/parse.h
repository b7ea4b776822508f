/* parse.h - what the scanner, the token layer and the parser share. Internal to grammar/.
 *
 * In:  a registered source text.   Out: tokens (lex.c), then raw nodes (parse.c, called by
 * vwn.y). The one idea: everything that has a state is in Parser or Lex, and both live in an
 * arena.
 */
#ifndef VWN_PARSE_H
#define VWN_PARSE_H

#include "ast.h"

enum {
    NESTING_LIMIT = 256,  /* open brackets */
    DEPTH_LIMIT = 1024,   /* levels of the tree: what every recursive walk relies on */
    TEXT_LIMIT = 8 << 20, /* bytes */
    NODE_LIMIT = 1000 * 1000,
    NAME_LIMIT = 255, /* bytes of a name */
    NUMBER_LIMIT = 64 /* characters of a number */
};

typedef struct Token {
    int kind; /* from vwn_parser.h; 0 at the end */
    Span span;
    Name text; /* names, numbers, decoded strings, true and false */
} Token;

typedef struct Bracket {
    int kind;        /* T_LPAREN, T_LBRACKET or T_LBRACE */
    uint32_t at;     /* its offset */
    uint32_t indent; /* of the line it stands on */
} Bracket;

typedef VEC(Span) Comments;

typedef struct Lex {
    Ctx *ctx;
    Arena *arena; /* for the scanner's own memory */
    uint32_t file;
    const char *text;
    uint32_t n;
    void *scanner;   /* flex's state */
    uint32_t lo, hi; /* of the piece flex matched last */
    Name value;
    bool newline;       /* one was passed on the way to the token */
    Comments *comments; /* filled when not NULL */
    Token raw;          /* read, but not handed out */
    bool have_raw;
    bool split; /* `/-` was a division: the `-` comes next */
    Bracket open[NESTING_LIMIT];
    uint32_t depth, close_to, close_next; /* brackets above close_to are closed by themselves */
    uint32_t suspect;                     /* offset + 1 of a `{` closed by a `}` of another indentation */
    Token last, before_last;              /* handed out */
    Token item[2];                        /* the first two tokens of the current item */
    int item_tokens, item_before;         /* how many are known; before the last token was handed out */
    bool by_newline;                      /* the last SEP stands for the end of a line */
    bool muted;                           /* an error has been reported in this item */
    bool muted_next;                      /* or with the token that comes next */
    bool stopped;                         /* a limit was reached: only the end follows */
    uint32_t passed;                      /* tokens that begin before this offset are passed over */
    uint32_t suite; /* indentation + 1 of a header that ended with `:`: what is deeper is passed over */
} Lex;

void lex_open(Lex *lx, Ctx *ctx, Arena *arena, uint32_t file, Comments *comments);
Token lex_next(Lex *lx);
/* The scanner alone: every token as it stands in the text. */
int lex_raw(Lex *lx);
void lex_limit(Lex *lx, Span at, const char *name, unsigned most);

/* Called by the rules of vwn.l. */
int lex_number(Lex *lx, const char *s, size_t n);
int lex_bad_number(Lex *lx, const char *s, size_t n);
int lex_name(Lex *lx, const char *s, size_t n);
int lex_string(Lex *lx, const char *s, size_t n, bool closed);
/* What to do about bytes no token starts with: the token to use instead, or 0 to go on. `used`
 * says how many bytes are dealt with. */
int lex_odd(Lex *lx, const char *s, size_t n, size_t *used);
/* An operator of other languages; `ours` is what a fix writes, NULL where it may mean something else. */
int lex_foreign(Lex *lx, const char *what, const char *help, const char *ours, int token);
/* lex_foreign.c: the same for what is longer. */
bool lex_divides(const Lex *lx);                     /* `//` between operands, and no comment */
bool lex_remark(Lex *lx, size_t open, size_t close); /* a comment or a docstring; true: it is a value */
int lex_quoted(Lex *lx, size_t quote);               /* 'text' */
/* `1e` and digits with a dash or a minus sign of Unicode between them. */
int lex_dashed(Lex *lx, const char *s, size_t n);
/* No-break spaces at the beginning of `s`, at the place `at`: said, and counted in `used`. */
int lex_hard_blank(Lex *lx, Span at, const char *s, size_t n, size_t *used);
/* Whether the file is JSON, TOML or settings in Python, which is said. */
bool foreign_file(Ctx *ctx, uint32_t file);
int lex_bare_point(Lex *lx, const char *s, size_t n); /* `1.` */
int lex_hexadecimal(Lex *lx, const char *s, size_t n);
/* Something is wrong with the item of what has just been scanned. */
bool lex_quiet(const Lex *lx);
bool lex_ends_operand(int kind);
uint32_t lex_indent(const Lex *lx, uint32_t at, bool *first); /* of the line of `at`; is that its first character? */

/* The scanner's entry points (generated from vwn.l). */
int raw_init(Lex *lx, char *buffer, size_t size);
int raw_token(Lex *lx, void *scanner);

/* A node under construction. */
typedef struct ParseNode {
    Ast *ast;
    uint32_t depth;
} ParseNode;

typedef struct Parser {
    Ctx *ctx;
    Lex lex;
    Token token;
    int start; /* the token that chooses what is parsed: T_START_FILE, ... */
    Ast *root;
    bool failed;
    uint32_t nodes;
} Parser;

/* Builders, called by the actions of vwn.y. Absent children are (Node){0}. */
ParseNode parse_node(Parser *p, AstKind kind, Name name, Span span, Span name_span, size_t n, const ParseNode *kids);
ParseNode parse_add(Parser *p, ParseNode list, ParseNode kid);
ParseNode parse_item(Parser *p, ParseNode list, ParseNode item); /* parse_add with the item's `##` lines */
void parse_error(Parser *p, int token, const char *const *expected, size_t n);
/* `a // b`: files the error; as a value it is floor(a / b). */
ParseNode parse_floor(Parser *p, Span at, Span op, ParseNode a, ParseNode b);

/* What could have stood at the place of a syntax error. */
typedef struct Expected {
    const char *const *name;
    size_t n;
} Expected;
bool expects(Expected e, const char *name);
/* parse_foreign.c: files the error when it is a sentence of another language. */
bool parse_foreign(Parser *p, Expected e);

/* The canonical unit word, or NULL. */
const char *ast_unit(const char *s, size_t n);

#endif
