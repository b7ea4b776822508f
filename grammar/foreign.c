/* foreign.c - see foreign.h.
 *
 * In:  a word.   Out: rows. The one idea: the table is short, so it is read from its beginning.
 */
#include "foreign.h"

#include <string.h>

static const Foreign rows[] = {
#define SAME(kind, name, ours)       {FOREIGN_##kind, name, ours, NULL, true},
#define LIKE(kind, name, ours, text) {FOREIGN_##kind, name, ours, text, false},
#define SAY(kind, name, text)        {FOREIGN_##kind, name, NULL, text, false},
#include "foreign.def"
#undef SAME
#undef LIKE
#undef SAY
};

const Foreign *foreign_next(ForeignKind kind, const char *name, const Foreign *after)
{
    for (const Foreign *f = after ? after + 1 : rows; f < rows + COUNT_OF(rows); f++)
        if (f->kind == kind && !strcmp(f->name, name))
            return f;
    return NULL;
}

size_t foreign_count(void) { return COUNT_OF(rows); }

const Foreign *foreign_at(size_t i) { return &rows[i]; }
