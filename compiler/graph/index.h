/* index.h - affine index forms over the loop variables of one kernel.
 *
 * In:  variables (the row, loops, quotients, remainders, values read from tensors) and extents.
 * Out: interned forms  sum of mult * coef * var + constants;  two forms are equal exactly when
 *      their values are.
 * The one idea: coefficients stay the monomials of ir.h, so that whether two views of one
 * tensor are the same is decided by structure, and the printed text holds for every size of
 * that structure.
 */
#ifndef VWN_INDEX_H
#define VWN_INDEX_H

#include "ir.h"

typedef uint32_t Ix;   /* an interned form; 0 is the constant 0 */
typedef uint16_t IVar; /* 0: the constant 1 */

typedef enum IVarKind {
    IV_ONE,
    IV_ROW,  /* lo <= row < hi of the kernel */
    IV_PART, /* the partition of a sum over rows */
    IV_LOOP, /* from 0 to the extent */
    IV_DIV,  /* base / by */
    IV_MOD,  /* base % by */
    IV_VALUE /* what an integer expression of the kernel holds */
} IVarKind;

typedef struct IVarInfo {
    IVarKind kind;
    Dim extent;     /* LOOP, ROW: it runs below this */
    int64_t lo, hi; /* inclusive, at this B and T */
    int ordinal;    /* LOOP: distinguishes nested loops of one extent */
    Ix base;        /* DIV, MOD */
    Dim by;
    IVar next;      /* DIV, MOD: another of the same base, or 0 */
    uint32_t value; /* VALUE: the expression */
    uint8_t bit;    /* ROW, PART, LOOP: its place in `deps` */
    bool reads;     /* VALUE, or made of one */
    uint64_t deps;  /* changes with the ROW, PART or LOOP of this bit */
} IVarInfo;

typedef struct IxTerm {
    IVar var;
    int64_t mult; /* known to the text */
    Dim coef;     /* {1} or something that the text takes as an argument */
} IxTerm;

typedef struct IxForm {
    uint32_t n;
    bool reads; /* what an expression holds */
    const IxTerm *t;
    uint64_t deps;
    int64_t lo, hi; /* inclusive */
    uint64_t hash;
    IVar derived; /* the last variable that is a quotient or a remainder of it, or 0 */
} IxForm;

/* A sum that was asked for. */
typedef struct IxSum {
    Ix a, b, sum;
} IxSum;
enum { IX_SUMS = 64 };

typedef struct IxTable {
    Ctx *ctx;
    Arena *arena;
    int64_t B, T;
    bool loose;         /* more than 64 loops may exist; only the row's part in deps counts */
    bool overfull;      /* more than 64 loops exist, and deps cannot tell them apart: no kernel may be made of it */
    uint32_t arguments; /* bit n: an extent of n is an argument, though small */
    IVar loop[64];      /* by bit */
    int loops;
    VEC(IVarInfo) var;
    VEC(IxForm) form;
    uint32_t *slot; /* hash -> form */
    size_t slots;
    IxSum *sum; /* IX_SUMS of the last, by a and b */
} IxTable;

enum { TERMS_MAX = 64 };   /* of a form */
enum { LITERAL_MAX = 16 }; /* static extents up to this are part of the text */
static inline bool dim_literal(Dim d) { return dim_static(d) && d.n <= LITERAL_MAX; }

static inline bool ix_literal(const IxTable *t, Dim d)
{
    return dim_literal(d) && (d.n < 0 || !(t->arguments >> d.n & 1));
}

void ix_init(IxTable *t, Ctx *ctx, Arena *arena, int64_t B, int64_t T);
enum { ROW_VAR = 1 }; /* the row is the first variable of every table that has one */
IVar ix_row(IxTable *t, Dim extent);
IVar ix_part(IxTable *t, Dim extent); /* variable 2 */
IVar ix_loop(IxTable *t, Dim extent, int ordinal);
IVar ix_value(IxTable *t, uint32_t value, Dim extent, uint64_t deps); /* 0 <= it < extent */
/* Of readers of dumps, where a variable stands before its value: that depends on these loops. */
void ix_value_depends(IxTable *t, uint32_t value, uint64_t deps);

/* The bit of a ROW, PART or LOOP in `deps`. */
static inline uint64_t ix_bit(const IxTable *t, IVar v) { return (uint64_t)1 << t->var.v[v].bit; }

Ix ix_const(IxTable *t, int64_t c);
Ix ix_var(IxTable *t, IVar v);
Ix ix_dim(IxTable *t, Dim d, int64_t mult); /* the constant mult * d, d an argument */
Ix ix_add(IxTable *t, Ix a, Ix b);
Ix ix_scale(IxTable *t, Ix a, Dim d);
Ix ix_times(IxTable *t, Ix a, int64_t k);
Ix ix_div(IxTable *t, Ix a, Dim d); /* floor; d > 0 */
Ix ix_mod(IxTable *t, Ix a, Dim d);
static inline const IxForm *ix_form(const IxTable *t, Ix a) { return &t->form.v[a]; }
static inline const IVarInfo *ix_info(const IxTable *t, IVar v) { return &t->var.v[v]; }
/* Private to readers of dumps: the next variable as it was printed, a form of these terms. The
 * numbers of both must be in range. */
IVar ix_append(IxTable *t, const IVarInfo *v);
Ix ix_of_terms(IxTable *t, const IxTerm *term, uint32_t n);
int64_t ix_dim_at(const IxTable *t, Dim d);
/* Does it hold what a tensor holds, itself or in a quotient? Then it may be anything. */
/* Does it depend on what an expression holds? */
static inline bool ix_reads_value(const IxTable *t, Ix a) { return ix_form(t, a)->reads; }
/* The form as one variable and a constant: a = var + c. */
bool ix_is_var(const IxTable *t, Ix a, IVar *v, int64_t *c);
/* What a grows by when v grows by 1, as a number; false when v stands inside a quotient. */
bool ix_slope(const IxTable *t, Ix a, IVar v, int64_t *slope);

/* Row-major position of coordinates in a shape, and back; both see through splits and
 * merges. */
Ix ix_linear(IxTable *t, const Shape *s, const Ix *c);
void ix_unlinear(IxTable *t, const Shape *s, Ix linear, Ix *c);

#endif
