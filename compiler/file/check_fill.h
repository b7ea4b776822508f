/* check_fill.h - `fill` of a growth step, read. */
#ifndef VWN_CHECK_FILL_H
#define VWN_CHECK_FILL_H

#include "compiler/front/check.h"

/* Adds the rules of `items` to the step; `selector` is "" or that of the node they stand in. */
void fill_rules(Eval *ev, File *f, const Ast *items, const char *selector, GrowStep *g);
/* Once both models are there: a selector that selects nothing is an error; finds which weights are copies as a whole. */
void fill_models(Eval *ev, File *f, GrowStep *g);
/* The parameter of the grown model that takes the old one of this path; NULL: none does. */
const Param *fill_taker(const GrowStep *g, Name path);
/* `moments = ...` of a step. */
void fill_moments(Eval *ev, const Ast *items, GrowStep *g);

#endif
