/* diag.h - source files, spans and diagnostics.
 *
 * In:  places in source text and sentences about them.   Out: text with carets, or JSON lines.
 * The one idea: a diagnostic is data until it is rendered; stages file as many as they find, and the
 * driver renders them between stages. Wording follows the language reference: one lower-case sentence
 * that stands alone, the smallest wrong span, notes that say why, helps that say what to do.
 */
#ifndef VWN_DIAG_H
#define VWN_DIAG_H

#include "base.h"

/* Bytes [lo, hi) of a source file. file 0 means "no place". */
typedef struct Span {
    uint32_t file, lo, hi;
} Span;
#define NO_SPAN ((Span){0, 0, 0})

/* Registers a source text (copied). `path` is what messages show: "gpt.vwn", "std/transformer.vwn",
 * "<command line>". Returns its number, from 1. */
uint32_t source_add(Ctx *ctx, const char *path, const char *text, size_t n);
const char *source_text(Ctx *ctx, uint32_t file, size_t *n); /* NUL-terminated */
/* What excerpts of it show in its place, byte for byte: what was typed, where the text is made of it. */
void source_show(Ctx *ctx, uint32_t file, const char *text);
const char *source_path(Ctx *ctx, uint32_t file);
uint32_t source_named(Ctx *ctx, const char *path); /* the newest text of this path; 0: there is none */
/* A path without folders, for texts that are the same wherever a file lies; std/ is kept. */
const char *source_base_name(const char *path);
typedef struct LineCol {
    uint32_t line, column; /* from 1; columns count bytes */
} LineCol;
LineCol source_position(Ctx *ctx, uint32_t file, uint32_t offset);
/* A place in a file whose text is not at hand, as a graph read from text has it. */
Span source_place(Ctx *ctx, const char *path, LineCol at);
Span span_join(Span a, Span b);
/* Bytes of the valid UTF-8 sequence at s, 0 when there is none. */
size_t utf8_step(const char *s, size_t n);

typedef enum Level { LEVEL_ERROR, LEVEL_WARNING, LEVEL_NOTE } Level;
typedef enum Applicability { FIX_MAYBE, FIX_CERTAIN } Applicability;

typedef struct DiagLabel {
    Span span;
    const char *text; /* may be "" */
    bool primary;
} DiagLabel;

typedef struct DiagHelp {
    const char *text;
    Span replace; /* NO_SPAN when it is not a replacement */
    const char *with;
    Applicability applicability;
} DiagHelp;

typedef struct Diag {
    Level level;
    const char *code; /* "E0101", "W0304"; "" only for plain notes */
    const char *lint; /* "dead_weights" for warnings, else NULL */
    const char *message;
    VEC(DiagLabel) labels; /* labels[0] is the primary one; those of other files become notes */
    VEC(const char *) notes;
    VEC(DiagHelp) helps;
    VEC(DiagLabel) related; /* "note: required here" with a snippet of its own */
    struct Diags *owner;
} Diag;

/* Files a diagnostic; the result takes labels, notes and helps. Never NULL. Duplicates (same code,
 * same primary span, same message) are filed once. After DIAG_LIMIT errors ctx_raise(ST_INPUT). */
enum { DIAG_LIMIT = 20 };
Diag *diag_error(Ctx *ctx, const char *code, Span at, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
Diag *diag_warning(Ctx *ctx, const char *code, const char *lint, Span at, const char *label, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void diag_label(Ctx *ctx, Diag *d, Span at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
void diag_note(Ctx *ctx, Diag *d, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void diag_help(Ctx *ctx, Diag *d, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A help that `check --fix` can apply. */
void diag_fix(Ctx *ctx, Diag *d, Span replace, const char *with, Applicability how, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
void diag_related(Ctx *ctx, Diag *d, Span at, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

size_t diag_errors(const Ctx *ctx);
size_t diag_mistakes(const Ctx *ctx); /* the same, each time one was found: duplicates count */
size_t diag_warnings(const Ctx *ctx);
/* Whether every error from the `from`-th diagnostic on is a false check. */
bool diag_only_checks(const Ctx *ctx, size_t from);
size_t diag_count(const Ctx *ctx);
const Diag *diag_get(const Ctx *ctx, size_t i);
/* Forget what was filed from index `from` on (used after rendering, and by speculative evaluation). */
void diag_truncate(Ctx *ctx, size_t from);

/* Rendering. Text as in the language reference; `color` adds ANSI sequences and nothing else. */
void diag_render(Ctx *ctx, Buf *out, const Diag *d, bool color);
/* Everything filed, with a blank line between two. */
void diag_render_all(Ctx *ctx, Buf *out, bool color);
void diag_render_json(Ctx *ctx, Buf *out, const Diag *d); /* one line with its newline */

#endif
