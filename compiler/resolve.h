/* resolve.h - a checked file as one text that needs nothing else; see resolve.c. */
#ifndef VWN_RESOLVE_H
#define VWN_RESOLVE_H

#include "model.h"

/* The file with overrides applied, imports of other files taken in, and defaults written out,
 * in the canonical form. It has been checked to build the same model and training; raises when
 * no such text can be made. Lives in `arena`. */
char *unit_resolved_text(Unit *unit, Arena *arena);

/* Whether two checked files are the same to the runtime: parameters, graph, training. */
bool unit_same(const Unit *a, const Unit *b);

#endif
