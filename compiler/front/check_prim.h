/* check_prim.h - shared by the two files of primitives. */
#ifndef VWN_CHECK_PRIM_H
#define VWN_CHECK_PRIM_H

#include "check.h"

extern const Prim tensor_prims[]; /* check_tensor.c */
extern const size_t tensor_prim_count;
extern const Prim width_prims[]; /* check_width.c */
extern const size_t width_prim_count;

Graph *prim_graph(PrimArgs *a);
const Shape *prim_shape(PrimArgs *a, size_t i);
const char *prim_shape_text(PrimArgs *a, size_t i);
/* Files the error at argument i and returns poison. */
Value prim_fail(PrimArgs *a, const char *code, size_t i, const char *fmt, ...) __attribute__((format(printf, 4, 5)));
/* Argument i as an axis of a tensor of that rank; 1 is the first, negative counts from the end. */
bool prim_axis(PrimArgs *a, size_t i, uint8_t rank, int *axis);
bool prim_real(PrimArgs *a, size_t i);
bool prim_integer(PrimArgs *a, size_t i);
/* Keeps the arguments as a V_SPEC record. */
Value prim_spec(PrimArgs *a);

/* The schedules that are blocks or width solvers elsewhere: `lr = linear(...)`; NULL for other names. */
const Prim *schedule_prim(const char *name);

bool prim_has_argument(const Prim *p, Name name);
void prim_unknown_argument(Eval *ev, const Prim *p, const Ast *named); /* files E0101 */
/* Whether an argument, by name or else by position, takes a bare word. */
bool prim_takes_word(const Prim *p, Name name, size_t position);

#endif
