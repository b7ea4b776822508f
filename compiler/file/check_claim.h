/* check_claim.h - what a growth step claims of itself. */
#ifndef VWN_CHECK_CLAIM_H
#define VWN_CHECK_CLAIM_H

#include "compiler/front/check.h"
#include "compiler/growth/growth.h"

struct Claims {
    GrowStep *step; /* gets the tolerance that is claimed */
    const GrowthPlan *plan;
    const GrowthProof *proof; /* made when the first claim asks for it */
    bool life;                /* `alive(...)` is among them */
};
/* Makes the plan. False: a diagnostic says why there is none. */
bool plan_step(Eval *ev, Claims *c);
/* Fills *r. False: a diagnostic says why the claim does not hold, or that none can be made here (`c` NULL). */
bool decide_claim(Eval *ev, Claims *c, const Ast *check, const Value *claim, CheckResult *r);

/* Of a step that says nothing of it: new blocks that can never learn are an error. */
void refuse_dead(Eval *ev, Claims *c, Span at);

#endif
