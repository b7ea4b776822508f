/* support.h - what the graph's tests share: counting checks, binding tensors, random graphs.
 *
 * In:  a graph.     Out: its values, with every external tensor bound to reproducible numbers.
 * The one idea: a test owns one Bench; every number in it follows from a seed.
 */
#ifndef IR_SUPPORT_H
#define IR_SUPPORT_H

#include "compiler/graph/op.h"

typedef struct Bench {
    Ctx *ctx;
    Graph *g;
    int64_t B, T;
    uint64_t seed; /* state of bench_random */
    VEC(RefBinding) bind;
    VEC(Val) params; /* leaves made by bench_param, in order */
} Bench;

Bench *bench_new(void);
void bench_free(Bench *b);

uint64_t bench_bits(Bench *b);
double bench_random(Bench *b, double lo, double hi);
int bench_choice(Bench *b, int n);

/* External tensors with values. Values of bench_param lie in [lo, hi], no two are nearer than
 * (hi - lo) / (4 size), and none is nearer to 0 than 0.01. */
Val bench_param(Bench *b, const Shape *s, double lo, double hi);
Val bench_input(Bench *b, const Shape *s, double lo, double hi);   /* real, no gradient asked */
Val bench_index(Bench *b, const Shape *s, int64_t lo, int64_t hi); /* integers in [lo, hi) */
Tensor *bench_tensor(Bench *b, Val leaf);
Shape bench_shape(int rank, ...); /* Dims */

/* Outputs of g, or NULL when it raised. */
Tensor **bench_run(Bench *b, const Graph *g);
/* The gradient of sum(y * weights), analytic against central differences; the largest error
 * relative to max(|gradient|, 1e-3), and how many numbers were compared. */
double bench_gradient_error(Bench *b, Val y, size_t *compared);

/* A graph over the primitives with outputs; `differentiate` adds gradients as outputs. */
void bench_random_graph(Bench *b, int nodes, bool differentiate);
/* Two decoder layers with rotary attention, a gated product and a cross-entropy; returns the
 * loss. */
Val bench_decoder(Bench *b, int layers, int64_t width, int64_t heads, int64_t vocabulary);
Name bench_name(Bench *b, const char *s);

const char *bench_dump(Bench *b, const Graph *g);
Graph *bench_read(Bench *b, const char *text);

/* ---- checks ---- */
typedef struct Tally {
    int passed, failed;
} Tally;
void check(Tally *t, bool good, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
int tally_end(const Tally *t, const char *what);

#endif
