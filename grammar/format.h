/* format.h - the formatter's own pieces. Internal to grammar/.
 *
 * In:  a tree and the text it came from.   Out: lines, then aligned lines.
 * The one idea: printing decides where lines break and leaves CELL marks where things may be
 * aligned; only when all lines are known does format_lines.c turn marks into spaces.
 */
#ifndef VWN_FORMAT_H
#define VWN_FORMAT_H

#include "parse.h"

#define CELL '\x01' /* no source text can hold it: the scanner refuses control characters */

/* What a line is aligned with: its direct neighbours of the same kind. */
typedef enum Run {
    RUN_NONE,
    RUN_LET,
    RUN_SET,
    RUN_TENSOR, /* param and buffer */
    RUN_ENTRY,
    RUN_NODE,
    RUN_ARGUMENT,
    RUN_PARAMETER
} Run;

typedef struct Line {
    size_t lo, hi; /* in Format.code */
    uint32_t indent;
    Run run;
    Span comment;    /* at its end, or alone when there is no code */
    uint32_t wanted; /* the comment's column in the source */
    bool blank;
} Line;

typedef struct Format {
    Arena *arena;
    const char *text; /* the source, or NULL: then nothing breaks and strings are escaped anew */
    uint32_t file;
    Buf code;
    VEC(Line) lines;
    Comments comments;
    size_t next;     /* the first comment not printed */
    size_t line_lo;  /* the current line */
    uint32_t indent; /* its indentation */
    uint32_t base;   /* of the item or element being printed: what continues it stands two further */
    Run run;         /* for the current line */
    bool one_line;   /* the body that comes is to stay on one line ... */
    int flat;        /* ... and this is inside of one */
    bool tight;      /* operators without blanks: the ends of a range */
} Format;

/* format_lines.c */
void fmt_put(Format *f, const char *s, size_t n);
/* A token that stands at `offset` in the source: comments before it come first. `space` puts a
 * blank in front unless it starts a line. */
void fmt_token(Format *f, uint32_t offset, bool space, const char *s);
void fmt_cell(Format *f);
void fmt_newline(Format *f, uint32_t indent);
void fmt_blank(Format *f);
void fmt_flush(Format *f, uint32_t offset);
/* The next comment, when it follows `after` on the same source line and stands before `before`.
 */
bool fmt_trailing(Format *f, uint32_t after, uint32_t before);
/* The comments before `offset` and a blank line where the source has one since `prev_end`. */
void fmt_own_lines(Format *f, uint32_t offset, uint32_t *prev_end, bool first);
bool fmt_broken(const Format *f, uint32_t lo, uint32_t hi);     /* a newline in between */
bool fmt_comment_in(const Format *f, uint32_t lo, uint32_t hi); /* an unprinted comment in between */
uint32_t fmt_column(const Format *f);                           /* where the current line ends */
uint32_t fmt_width(const char *s, size_t n);
void fmt_render(Format *f, Buf *out);

/* format_expr.c */
void fmt_expr(Format *f, const Ast *e);
void fmt_path(Format *f, const Ast *path);
/* Arguments, parameters or elements in "()" or "[]"; subscripts in "[|]". */
void fmt_group(Format *f, const Ast *group, const char *brackets);

#endif
