/* compute.h - what plan.c is written in: tensors, a run, and the three kinds of calls.
 *
 * In:  nothing.     Out: the types of plan.c and the functions it calls.
 * The one idea: a program is a list of calls with fixed places in memory. Everything that can
 * be known before the first run is a number in plan.c; what changes is in a Run.
 */
#ifndef COMPUTE_H
#define COMPUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "threads.h"

typedef float real;
typedef int64_t integer;

/* ---- what a model is made of ---- */

typedef enum TensorKind {
    INPUT,    /* token ids and labels, given anew for every run */
    WEIGHT,   /* learned */
    CONSTANT, /* kept with the weights, but not learned */
    GRADIENT,
    STATE /* of the optimizer */
} TensorKind;

/* A tensor that outlives a run of a program. */
typedef struct Tensor {
    TensorKind kind;
    const char *name;
    int rank;
    int64_t shape[8];
    int64_t elements; /* float, or int64_t for an INPUT */
    uint64_t offset;  /* bytes from Run.tensors */
} Tensor;

/* What the formulas of the file can read, in Run.vars. */
enum { STEP, TOKENS, EPOCH, PROGRESS, LENGTH, TRAIN_LOSS, EVAL_LOSS, GRAD_NORM, VARS };

typedef struct Run {
    Pool *pool;        /* threads */
    char *tensors;     /* memory of all tensors */
    char *arena;       /* memory that programs use while they run */
    int64_t step;      /* of random numbers */
    double vars[VARS]; /* before this step */
} Run;

typedef struct Program {
    const char *name;
    void (*run)(Run *run);
    void (*results)(const Run *run, double *out); /* of the last run */
    const char *const *result;                    /* their names */
    int n_results;
} Program;

/* Everything main.c knows of the model; plan.c has the one there is. */
typedef struct Model {
    const char *name;
    const Tensor *tensor;
    int n_tensors;
    uint64_t tensor_bytes, arena_bytes;
    int64_t context;   /* positions of a sequence */
    int64_t micro;     /* sequences of one run of a program */
    int64_t vocab;     /* ids are below it; 0: unknown */
    int id_bits;       /* of a token in a data file: 8, 16 or 32 */
    int64_t id_header; /* bytes before the first token of a data file */
    const uint32_t
        *symbol; /* the characters that ids stand for, ascending; NULL: ids as they are */
    int64_t n_symbols;
    int64_t separator; /* the token that documents begin with, where the model looks at them */
    const Program *eval;

    /* training; `train` is NULL in a folder without it */
    const Program *train;      /* forward and backward; gradients are written */
    const Program *accumulate; /* the same; gradients are added; NULL: one part is a step */
    const Program *update;     /* clipping and optimizer */
    double (*rate)(const double *vars);
    double (*decay)(const double *vars); /* of the average of the weights; NULL: none */
    int64_t batch;        /* sequences of one step */
    int64_t eval_batches; /* batches of an evaluation; 0: all windows */
    int64_t eval_every;   /* steps; 0: no evaluation during training */
    int64_t steps;        /* length of training; -1: `epochs` instead */
    double epochs;
    double val;    /* share of the text that is kept for evaluation */
    uint64_t seed; /* of the order of the text */
} Model;
extern const Model model;

/* ---- calls ---- */

/* One function of kernels.c: rows lo <= row < hi; p: buffers, n: sizes and keys, s: numbers. */
typedef void Kernel(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi);

/* The kernel on rows 0 .. rows - 1, `grain` of them at a time, by all threads. */
void rows(Run *run, Kernel *kernel, int64_t rows, int64_t grain, void *const *p,
          const int64_t *n, const double *s);

/* C[i] = op(A[i]) op(B[i]) for each i of the batch, row-major; A is m x k, B is k x n. */
typedef struct Product {
    bool transpose_a, transpose_b; /* op: the matrix lies in memory the other way round */
    bool accumulate;               /* C is added to */
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;          /* elements from row to row */
    int64_t step_a, step_b, step_c; /* elements from one product of the batch to the next */
} Product;
void product(Run *run, const Product *how, const void *a, const void *b, void *c);

/* Rows of x are multiplied by the matrix of their expert. A pair is a token and one of its
 * choices, index[pair] its expert; an index that is no expert gives zeros.
 *     weights = false: y[pair] = x[pair] W[index[pair]]         (W transposed if asked for)
 *     weights = true:  y[e] = sum over the pairs of expert e of x[pair]^T w[pair] */
typedef struct ExpertProduct {
    bool weights, transpose_w;
    bool x_per_pair; /* x has a row for each pair, else for each token */
    int64_t tokens, choices, experts, in, out;
} ExpertProduct;
void expert_product(Run *run, const ExpertProduct *how, const void *x, const void *w,
                    const void *index, void *y);

/* ---- small things ---- */
double modulo(double a, double b);  /* with the sign of b */
double smaller(double a, double b); /* the other one when one is not a number */
double larger(double a, double b);

/* Zeroed memory for `bytes` bytes at a multiple of 64; ends the program when there is none. */
void *room(uint64_t bytes);
/* "error: ..." on stderr, then ends the program with status 1. */
_Noreturn void stop(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
