/* reader.h - words and numbers of the compiler's own texts, read back line by line.
 *
 * In:  a source text, untrusted.
 * Out: tokens; at the first that does not fit a diagnostic, after which nothing more is read.
 * The one idea: every function may be called after a failure and then does nothing, so callers
 * check once per line.
 */
#ifndef VWN_READER_H
#define VWN_READER_H

#include "ir.h"

typedef struct Reader {
    Ctx *ctx;
    Arena *arena; /* of what is being read */
    uint32_t file;
    const char *text, *end, *p;
    bool failed; /* a diagnostic has been filed */
    Graph *g;    /* graph_text.c: the graph that is being read */
} Reader;

Reader reader_start(Ctx *ctx, Arena *arena, uint32_t source_file);
/* The diagnostic spans from `at` to where the reader stands. */
void reader_fail(Reader *r, const char *code, const char *at, const char *label, const char *what);
void reader_expected(Reader *r, const char *what); /* E0902 here */
void reader_spaces(Reader *r);
bool reader_accept(Reader *r, const char *s);
void reader_expect(Reader *r, const char *s);
int64_t reader_int(Reader *r);
double reader_real(Reader *r);
bool reader_word_char(char c);
const char *reader_word(Reader *r); /* lower case, digits, _; may be empty */
/* One of a list of words; the index. */
int reader_choice(Reader *r, const char *const *names, size_t n, const char *what);
Name reader_string(Reader *r); /* in quotes, as buf_json_string() writes it */
Dim reader_dim(Reader *r);
void reader_number(Reader *r, size_t want); /* the next of lines numbered without gaps */
void reader_end_of_line(Reader *r);

#endif
