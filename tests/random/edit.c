/* edit.c - see generate.h: texts that are one edit away from a valid one. */
#include "generate.h"

#include <ctype.h>
#include <string.h>

/* Values of every kind there is. */
static const char *const kinds[] = {"0",
                                    "-1",
                                    "0.5",
                                    "2.5",
                                    "1e9",
                                    "1e300",
                                    "1e-300",
                                    "9_007_199_254_740_993",
                                    "4k",
                                    "65",
                                    "1_000_000",
                                    "50%",
                                    "0.3d",
                                    "2L",
                                    "true",
                                    "none",
                                    "\"x\"",
                                    "[]",
                                    "[1, 2]",
                                    "[[0, 1], [1]]",
                                    "3 steps",
                                    "2 seqs",
                                    "1 h",
                                    "80 GiB",
                                    "step",
                                    "train.loss",
                                    "input.tokens",
                                    "scope.cond",
                                    "gelu",
                                    "rms_norm(eps = 1e-6)",
                                    "normal(std = 0.1)",
                                    "zeros",
                                    "causal",
                                    "linear",
                                    "residual()",
                                    "ffn",
                                    "D",
                                    "L",
                                    "1..3",
                                    "1..0",
                                    "[i for i in 1..4]",
                                    "embedding()",
                                    "matrix([[1]])",
                                    "cosine(peak = 1, floor = 0)",
                                    "start",
                                    "fp32",
                                    "attention(heads = 1)",
                                    "(1 / 3)",
                                    "if step < 3 then 1 else 2",
                                    "tokens",
                                    "not true",
                                    "-D",
                                    "D / 7",
                                    "x"};

static bool is_word(const char *text, Piece p) { return isalpha((unsigned char)text[p.from]) || text[p.from] == '_'; }

static char *cut_text(Arena *arena, const char *text, Piece p)
{
    return arena_printf(arena, "%.*s", (int)(p.to - p.from), text + p.from);
}

/* The value behind `name =`, or the whole piece. */
static Piece value_of(const char *text, Piece p)
{
    for (size_t i = p.from; i + 2 < p.to && text[i] != '{' && text[i] != '('; i++)
        if (text[i] == '=' && text[i + 1] == ' ')
            return (Piece){i + 2, p.to};
    return p;
}

char *edit_file(Arena *arena, uint64_t seed, const char *text)
{
    Writer w = {.state = (seed + 77) * 0x9e3779b97f4a7c15u};
    roll(&w, 2);
    Piece *piece, *token;
    size_t n = text_pieces(arena, text, &piece), m = text_tokens(arena, text, &token);
    Piece p = piece[roll(&w, (uint32_t)n)], t = token[roll(&w, (uint32_t)m)], u = token[roll(&w, (uint32_t)m)];
    switch (roll(&w, 12)) {
    case 0: return text_replaced(arena, text, t, "");
    case 1: return text_replaced(arena, text, t, cut_text(arena, text, u));
    case 2:
        return text_replaced(arena, text, (Piece){t.to, t.to}, arena_printf(arena, " %s ", cut_text(arena, text, u)));
    case 3: return text_replaced(arena, text, p, "");
    case 4:
        return text_replaced(arena, text, (Piece){p.to, p.to}, arena_printf(arena, ", %s", cut_text(arena, text, p)));
    case 5: return text_replaced(arena, text, p, cut_text(arena, text, piece[roll(&w, (uint32_t)n)]));
    case 6: /* another name of the file */
        for (int i = 0; i < 40 && !(is_word(text, t) && is_word(text, u)); i++)
            is_word(text, t) ? (u = token[roll(&w, (uint32_t)m)]) : (t = token[roll(&w, (uint32_t)m)]);
        return text_replaced(arena, text, t, cut_text(arena, text, u));
    case 7:
    case 8: /* another number */
        for (int i = 0; i < 40 && !isdigit((unsigned char)text[t.from]); i++)
            t = token[roll(&w, (uint32_t)m)];
        return text_replaced(arena, text, t, kinds[roll(&w, 12)]);
    default: return text_replaced(arena, text, value_of(text, p), ANY(&w, kinds));
    }
}
