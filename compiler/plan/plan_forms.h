/* plan_forms.h - the numbers of a plan for any number of sequences and positions.
 *
 * In:  plans of one graph at several sizes.   Out: for a number that stands at one place of each, what it is at any size.
 * The one idea: an extent is a monomial of B and T, and a kernel's text holds for all of them; what a plan counts is such a
 * monomial, or how many parts of a fixed length one has. Plans are made at sizes that are large primes, so that a number tells
 * what it is made of, and at others, which have to agree.
 */
#ifndef VWN_PLAN_FORMS_H
#define VWN_PLAN_FORMS_H

#include "plan.h"

/* times * B^b * T^t * ceil(of / by); by == 0: without the last factor. */
typedef struct PlanForm {
    Dim times, of;
    int64_t by;
} PlanForm;

enum { PLAN_SIZES = 5 };
typedef struct PlanSizes {
    const Plan *plan[PLAN_SIZES];
} PlanSizes;

/* Plans g for every size. Raises ST_INPUT where other sizes have other launches; `what` names the graph. */
void plan_build_sizes(PlanSizes *out, Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how, const char *what);

/* What a number of launch i is, and where it stands there. */
typedef int64_t PlanNumberAt(const Plan *p, size_t i, size_t k);
bool plan_form(const PlanSizes *sizes, PlanNumberAt *at, size_t i, size_t k, PlanForm *out);
int64_t plan_form_at(const PlanForm *f, int64_t B, int64_t T);
/* In C, of variables B and T: "96 * B * T", "32 * ceil_of(B * T, 64)". */
void plan_form_print(Buf *out, const PlanForm *f);
/* Of B and T alone through their product? */
bool plan_form_of_rows(const PlanForm *f);

#endif
