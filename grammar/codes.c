/* codes.c - the texts of codes.def for `vwn explain`.
 *
 * In:  a code.   Out: its title and its explanation. The one idea: one table, searched in
 * order.
 */
#include "codes.h"

#include <string.h>

#include "compiler/base/base.h"

static const struct {
    const char *code, *title, *text;
} codes[] = {
#define X(code, title, text) {code, title, text},
#include "codes.def"
#undef X
};

const char *diag_explain(const char *code, const char **title)
{
    for (size_t i = 0; i < COUNT_OF(codes); i++)
        if (!strcmp(codes[i].code, code)) {
            if (title)
                *title = codes[i].title;
            return codes[i].text;
        }
    return NULL;
}

size_t diag_code_count(void) { return COUNT_OF(codes); }

const char *diag_code_at(size_t i) { return i < COUNT_OF(codes) ? codes[i].code : NULL; }
