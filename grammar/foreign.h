/* foreign.h - names and words of other programs and languages.
 *
 * In:  a word, and the kind of place it stands in.   Out: the rows of foreign.def about it.
 * The one idea: one table for the parser and the checker, so that a name is explained alike wherever it stands.
 */
#ifndef VWN_FOREIGN_H
#define VWN_FOREIGN_H

#include "compiler/base/base.h"

typedef enum ForeignKind {
    FOREIGN_VALUE,
    FOREIGN_ATTRIBUTE,
    FOREIGN_NODE,
    FOREIGN_METHOD,
    FOREIGN_TYPE,
    FOREIGN_MODULE,
    FOREIGN_UNIT,
    FOREIGN_WORD,
    FOREIGN_FLAG,
    FOREIGN_VERB
} ForeignKind;

typedef struct Foreign {
    ForeignKind kind;
    const char *name;
    const char *ours; /* NULL: the sentence alone */
    const char *text; /* NULL: `ours` alone */
    bool same;        /* the same thing: `vwn check --fix` writes it */
} Foreign;

/* The next row of that kind about `name` behind `after`, from the first one when that is NULL; NULL: none. */
const Foreign *foreign_next(ForeignKind kind, const char *name, const Foreign *after);
size_t foreign_count(void);
const Foreign *foreign_at(size_t i);

#endif
