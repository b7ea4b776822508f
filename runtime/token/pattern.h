/* pattern.h - the pattern by which a tokenizer cuts a text into pieces.
 *
 * In:  a regular expression as Rust's fancy-regex or as Oniguruma has it.   Out: matches in valid UTF-8, or a sentence.
 */
#ifndef VWN_PATTERN_H
#define VWN_PATTERN_H

#include "system_library.h"
#include "runtime/exec/session.h"

typedef enum PatternDialect { DIALECT_FANCY, DIALECT_ONIGURUMA } PatternDialect;

typedef struct TextPattern {
    const Pcre2 *library;
    void *code;
    void *limits;
    bool jit;
} TextPattern;
/* It is given back with the session. False with `why`: a sentence that names what of it is not read. */
bool pattern_open(Session *s, const Pcre2 *library, PatternDialect dialect, const char *text, size_t n,
                  TextPattern *out, char why[WHY]);
/* The pattern in words of the library. */
bool pattern_translate(PatternDialect dialect, const char *text, size_t n, Buf *out, char why[WHY]);
/* The next match at or behind `at`: 1 with its ends, 0 without one, -1 with `why` when it takes too long. `data` is one thread's. */
int pattern_next(const TextPattern *p, void *data, const char *text, size_t n, size_t at, size_t *from, size_t *to,
                 char why[WHY]);

#endif
