/* read_ranks.c - lines of a token in base64 and its rank, which is its id. */
#include "bpe.h"

#include <stdio.h>

static int digit(int c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

/* Decodes up to what is no digit; how many bytes, 0 where they are none. */
static size_t decode(const char **s, const char *end, unsigned char *out)
{
    size_t n = 0, digits = 0, pads = 0;
    uint32_t word = 0;
    for (int d; *s < end && (d = digit((unsigned char)**s)) >= 0; ++*s, digits++) {
        if (n + 3 > TOKEN_MOST)
            return 0;
        word = word << 6 | (uint32_t)d;
        if (digits % 4)
            out[n++] = (unsigned char)(word >> (6 - 2 * (digits % 4)));
    }
    for (; *s < end && **s == '='; ++*s)
        pads++;
    return digits % 4 != 1 && (digits + pads) % 4 == 0 && pads < 3 ? n : 0;
}

static bool read_line(Vocabulary *v, unsigned char *room, const char *line, const char *end, char why[WHY])
{
    const char *at = line;
    int64_t rank = 0;
    size_t n = decode(&at, end, room);
    bool fine = n && at < end && *at++ == ' ' && at < end;
    for (; fine && at < end; at++) {
        fine = *at >= '0' && *at <= '9' && rank < IDS_MOST;
        rank = rank * 10 + (*at - '0');
    }
    Adding how = fine ? vocabulary_add(v, rank, room, n, false) : ADD_FINE;
    const char *what = !fine                    ? "this is no token in base64 and its rank"
                       : how == ADD_ID_TWICE    ? "two tokens have this rank"
                       : how == ADD_BYTES_TWICE ? "this token stands here twice"
                       : how == ADD_TOO_LARGE   ? "this token or its rank is too large"
                                                : NULL;
    if (what)
        snprintf(why, WHY, "%s", what);
    return !what;
}

bool bpe_read_ranks(Session *s, const BpeFiles *files, Bpe *b, char why[WHY])
{
    const BpeText *f = &files->file;
    if (files->merges.path) {
        snprintf(why, WHY, "ranks have no merges: leave `merges` out");
        return false;
    }
    unsigned char *room = arena_take(s->arena, TOKEN_MOST);
    Vocabulary *v = b->vocabulary = vocabulary_new(s->arena, (int64_t)(f->n / 14), f->n / 2);
    b->direct = true;
    size_t number = 1;
    for (size_t at = 0; at < f->n; number++) {
        const char *line = f->text + at, *stop = memchr(line, '\n', f->n - at);
        const char *end = stop ? stop : f->text + f->n;
        at = (size_t)(end - f->text) + (stop != NULL);
        if (end > line && end[-1] == '\r')
            end--;
        char what[WHY];
        if (end > line && !read_line(v, room, line, end, what)) {
            snprintf(why, WHY, "line %zu: %.300s%s", number, what,
                     v->tokens
                         ? ""
                         : ", and the file is no tokenizer.json; those of SentencePiece, as tokenizer.model often "
                           "is, are not read");
            return false;
        }
    }
    if (!files->split) {
        snprintf(why, WHY, "ranks do not say how a text is cut: give `split`, a pattern of `std/tokenizers`");
        return false;
    }
    return bpe_add_split(s, b, DIALECT_FANCY, STEP_ISOLATED, files->split, strlen(files->split), why) &&
           bpe_add_special(s, files, b, why);
}
