/* resolve.h - a checked file as one text that needs nothing else; see resolve.c. */
#ifndef VWN_RESOLVE_H
#define VWN_RESOLVE_H

#include "compiler/model/model.h"

/* The file with overrides applied, names of other files replaced by what they stand for, and
 * defaults written out, in the canonical form; comments stay. It has been checked to build the
 * same model, training, checks, growth steps and sweeps; raises when no such text can be made.
 * Resolved again it is the same text. Lives in `arena`.
 * unit_resolved_text() needs no other file, and its sweeps are switched off; unit_resolved_file() stands in the folder of the
 * file, and keeps the imports that a growth step or a sweep is `of`. */
char *unit_resolved_text(Unit *unit, Arena *arena);
char *unit_resolved_file(Unit *unit, Arena *arena);

/* Whether two checked files are the same: parameters, graph, training, the truth of their
 * checks, what growth steps build; whether the points of their sweeps are. */
bool unit_same(const Unit *a, const Unit *b);
bool unit_same_sweeps(const Unit *a, const Unit *b);

#endif
