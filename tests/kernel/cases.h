/* cases.h - graphs that are planned, compiled, run and compared with the reference evaluator. */
#ifndef VWN_CASES_H
#define VWN_CASES_H

#include "plan_host.h"

typedef struct Cases Cases;

/* A random number generator of the tests' own. */
typedef struct Dice {
    uint64_t state;
} Dice;
uint32_t dice(Dice *d, uint32_t n);              /* below n */
double dice_real(Dice *d, double lo, double hi); /* a float32 number */

/* device: plans are for it, and it runs them; NULL: the CPU, and the interpreter. */
Cases *cases_new(Ctx *ctx, const HostDevice *device);
/* Plans g, fused and not. Inputs that are not bound get random numbers: reals in [-1, 1], integers in
 * [0, int_limit). `tolerance` is relative to 1 + the largest magnitude of the tensor. */
void cases_add(Cases *c, const char *name, const Graph *g, int64_t B, int64_t T, int64_t int_limit, double tolerance);
/* Graphs of every operator (graphs.c). */
void graphs_add(Ctx *ctx, Cases *c, int64_t B, int64_t T, int64_t n);
/* Compiles and runs all; prints failures; returns their number. */
int cases_run(Cases *c);
const Plan *cases_plan(const Cases *c, size_t i, bool fused);
size_t cases_count(const Cases *c);

#endif
