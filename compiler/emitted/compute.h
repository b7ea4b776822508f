/* compute.h - what plan.c is written in: tensors, a run, memory, products of matrices.
 *
 * In:  nothing.     Out: the types of plan.c and the functions it calls; those that call kernels
 *      stand in a header of their own.
 * The one idea: a program is a list of calls with fixed places in memory. Everything that can
 * be known before the first run is a number in plan.c; what changes is in a Run.
 */
#ifndef COMPUTE_H
#define COMPUTE_H

#include "host_value.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef float real;
typedef int64_t integer;

/* ---- what a model is made of ---- */

typedef enum TensorKind {
    INPUT,    /* token ids and labels, given anew for every run */
    WEIGHT,   /* learned */
    CONSTANT, /* kept with the weights, but not learned */
    GRADIENT,
    STATE, /* of the optimizer */
    STEP,  /* gradients of some lanes, while others are computed */
    TOTAL, /* a sum over the whole batch, such as its number of targets, that parts of it read */
    COPY   /* of a weight, in 16 bits, as products of a GPU read it; in no file */
} TensorKind;

/* A tensor that outlives a run of a program. */
typedef struct Tensor {
    TensorKind kind;
    const char *name;
    int rank;
    int64_t shape[8];
    int64_t elements; /* float; int64_t for an INPUT, two bytes for a COPY */
    uint64_t offset;  /* bytes from Run.tensors */
} Tensor;

typedef struct Device Device; /* what computes: threads, or a GPU */

typedef struct Run {
    Device *device;
    char *inputs;          /* the program's own memory: what the next run is given */
    char *tensors;         /* the device's memory of all tensors, inputs first */
    char *arena;           /* the device's memory that programs use while they run */
    int64_t step;          /* of random numbers, */
    int64_t first;         /* and where in its batch, or in an evaluation, the sequences begin */
    unsigned rounded;      /* a bit for each program that has rounded the weights which were read from a file */
    double vars[HV_COUNT]; /* what formulas read, before this step */
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
    uint64_t input_bytes, tensor_bytes, arena_bytes;
    int64_t context;        /* positions of a sequence */
    int64_t micro;          /* sequences of one run of a program */
    int64_t vocab;          /* ids are below it; 0: unknown */
    int id_bits;            /* of a token in a data file: 8, 16 or 32 */
    int64_t id_header;      /* bytes before the first token of a data file */
    const uint32_t *symbol; /* the characters that ids stand for, ascending; NULL: ids as they are */
    int64_t n_symbols;
    int64_t separator; /* the token that documents begin with, where the model looks at them */
    const Program *eval;
    const Program *eval_count; /* adds to TOTAL tensors, for all parts of an evaluation before the first is
                                  computed; NULL: there are none */

    /* training; `train` is NULL in a folder without it */
    const Program *count;                     /* as eval_count, for a batch of several parts */
    const Program *train;                     /* forward and backward; gradients are written */
    const Program *accumulate;                /* the same; gradients are added; NULL: one part is a lane */
    const Program *const *keep, *const *join; /* see loop.h; as many as the lanes have levels */
    int64_t lanes;                            /* of a step; 0 is as 1 */
    const Program *update;                    /* clipping and optimizer */
    double (*rate)(const double *vars);
    double (*decay)(const double *vars); /* of the average of the weights; NULL: none */
    bool scaled;                         /* gradients are of HV_LOSS_SCALE times the loss */
    int64_t batch;                       /* sequences of one step */
    int64_t eval_batches;                /* batches of an evaluation; 0: all windows */
    int64_t eval_every;                  /* steps; 0: no evaluation during training */
    int64_t steps;                       /* length of training, from where its time began; -1: `epochs` instead */
    double epochs;
    double val;      /* share of the text that is kept for evaluation */
    double held_out; /* the share that `eval` measures; 0: all of the text */
    uint64_t seed;   /* of the order of the text */
} Model;
extern const Model model;

/* ---- a device and its memory ---- */

/* Opens the device and gives memory for inputs, tensors and the arena, all zero; `threads` only
 * where device_has_threads, 0: as many as there are. */
void device_open(Run *run, int64_t threads);
void device_close(Run *run);
extern const bool device_has_threads;
char *device_room(Run *run, uint64_t bytes); /* more of its memory, zero */
void device_free(Run *run, char *memory);
/* From the program's memory to the device's, and back when all calls so far are done. */
void device_put(Run *run, void *to, const void *from, uint64_t bytes);
void device_get(const Run *run, void *to, const void *from, uint64_t bytes);
/* A number of the device's memory. */
double real_at(const Run *run, const char *numbers, int64_t i);
double integer_at(const Run *run, const char *numbers, int64_t i);

/* ---- calls ---- */

/* C[i] = op(A[i]) op(B[i]) for each i of the batch, row-major; A is m x k, B is k x n. */
typedef struct Product {
    bool transpose_a, transpose_b; /* op: the matrix lies in memory the other way round */
    bool accumulate;               /* C is added to */
    int bytes, type; /* of an element of A and B, and its cudaDataType; bytes 0: they are real. Only on a GPU */
    bool rounded;    /* C is of that type, too */
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc;          /* elements from row to row */
    int64_t step_a, step_b, step_c; /* elements from one product of the batch to the next */
} Product;
void product(Run *run, const Product *how, const void *a, const void *b, void *c);

/* ---- small things ---- */
/* Zeroed memory for `bytes` bytes at a multiple of 64; ends the program when there is none. */
void *room(uint64_t bytes);
/* "error: ..." on stderr, then ends the program with status 1. */
_Noreturn void stop(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
