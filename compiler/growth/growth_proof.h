/* growth_proof.h - private to the two halves of the proof of a growth step. */
#ifndef VWN_GROWTH_PROOF_H
#define VWN_GROWTH_PROOF_H

#include "growth.h"
#include "growth_rules.h"

typedef struct Proof {
    const GrowthPlan *plan;
    Arena *arena;
    Map entry;           /* path of a parameter -> its entry + 1 */
    bool old_known;      /* old numbers are terms; else they are anything */
    GrowthValue **now;   /* by entry: what is known of the weight while life is looked at; NULL: preservation is */
    GrowthValue **named; /* so, old numbers as terms */
    Arena *pass, *began; /* of the looks at what can learn: this one's and the first one's; NULL: there is none */
} Proof;

/* ---- growth_proof.c ---- */
const GrowthEntry *growth_entry(const Proof *p, Name path);
GrowthValue *growth_role_parts(Values *x, const GrowthEntry *e);            /* cut where parts of the plan begin */
GrowthValue *growth_fresh(Values *x, const Proof *p, const GrowthEntry *e); /* what a weight is right after the step */
KnownLeaf growth_leaf; /* of the grown graph; its user is the Proof */

/* ---- growth_life.c: whether what is new can learn ---- */
void growth_prove_life(Proof *p, GrowthProof *out, Arena *arena);

#endif
