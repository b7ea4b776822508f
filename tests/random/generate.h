/* generate.h - whole files of the language, made from a seed.
 *
 * In:  a seed.   Out: the text of a valid file, tiny; or of one that is one edit away from such
 * a file. The one idea: texts are made with the shapes in hand, so that what is written
 * together fits. Data that a file names says in its own name what it must hold (data.c), so a
 * text alone can be run again.
 */
#ifndef RANDOM_GENERATE_H
#define RANDOM_GENERATE_H

#include "compiler/base/base.h"

#include <stdio.h>

typedef struct Writer {
    Buf b;
    uint64_t state;
    int names; /* of everything that is made up */
} Writer;

static inline uint32_t roll(Writer *w, uint32_t n) /* below n */
{
    w->state = w->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->state >> 33) % n);
}
static inline int range(Writer *w, int lo, int hi) { return lo + (int)roll(w, (uint32_t)(hi - lo + 1)); }
static inline bool one_in(Writer *w, uint32_t n) { return roll(w, n) == 0; }
#define ANY(w, list) ((list)[roll((w), sizeof(list) / sizeof *(list))])

/* Every eighth file has few layers and operations: those whose kernels are compiled. */
static inline bool is_lean(uint64_t seed) { return seed % 8 == 1; }

/* The file of a seed. */
char *generate_file(Arena *arena, uint64_t seed);
/* The same file after one edit: a token, an attribute, a number or a kind of value is another.
 */
char *edit_file(Arena *arena, uint64_t seed, const char *text);
/* alike.c: after one to three edits that leave most files valid. */
char *edit_alike(Arena *arena, uint64_t seed, const char *text);

/* ---- text.c: pieces of a text ---- */
/* From after a bracket or separator to the next separator, or the bracket that closes: an item,
 * or an argument. */
typedef struct Piece {
    size_t from, to;
} Piece;
size_t text_pieces(Arena *arena, const char *text, Piece **out);
/* Words, numbers, strings, and other characters each by itself. */
size_t text_tokens(Arena *arena, const char *text, Piece **out);
/* The text with a piece replaced. */
char *text_replaced(Arena *arena, const char *text, Piece at, const char *by);

/* ---- axes.c ---- */
/* What `vary` can name: a let, an attribute of a node. */
typedef struct Axis {
    const char *path, *node, *name, *value; /* node: in the table of attributes, "let", or "" of a block */
    Piece at;                               /* of the value */
} Axis;
enum { AXES_MOST = 4 };
size_t text_axes(Arena *arena, const char *text, Axis **out);
/* A second value of the kind that it has, or NULL. */
const char *axis_other(Writer *w, Arena *arena, const Axis *a);
/* A file that varies, in the file `of` whose text this is, a few things, which are told; NULL: there is nothing. */
char *generate_sweep(Arena *arena, uint64_t seed, const char *text, const char *of, size_t *n, Axis varied[AXES_MOST]);

/* ---- tensors.c ---- */
/* `block NAME()(x: [B, T, W]) -> [B, T, W]` of up to `most` random operations; width 0: of any
 * width. */
void write_block(Writer *w, const char *name, int width, int vocab, int most);

#endif
