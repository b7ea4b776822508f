/* bench.h - what was measured of a training step; private to bench.c, bench_report.c and
 * bench_compare.c.
 *
 * All of it lives in the session's arena. Times are seconds.
 */
#ifndef VWN_BENCH_H
#define VWN_BENCH_H

#include "peak.h"
#include "runtime/train/trainer.h"

enum { BENCH_VERSION = 1 };

/* Times of one thing in each timed step. */
typedef struct Samples {
    double *step;
    double best, median, mean;
    double spread; /* how far the lower quartile lies above the best, as a share */
} Samples;

/* All launches of one kernel, or of one shape of products, within a step. */
typedef struct BenchKernel {
    const char *kind;   /* "kernel", "product", "expert", "copy" */
    const char *name;   /* "k_...", or the shape */
    const char *what;   /* what it computes */
    const char *path;   /* the module of its first launch */
    const char *source; /* "gpt.vwn:25:5", or "" */
    Half half;          /* of its operands, where the peak of these is another */
    LaunchShape shape;  /* of the launch with the most blocks, on a device */
    int64_t launches;
    double bytes, flops, bound;
    double floor, estimate; /* of all launches at their best, and estimated */
    Samples time;
} BenchKernel;

typedef struct Bench {
    Trainer *tr;
    const vwn_bench_options *how;
    int64_t steps, warmup, weights;
    bool synthetic;
    const char *cpu;
    const char *device; /* NULL: the CPU */
    Samples waited;     /* on a device: of a step, what the host spent on waiting for it */
    Peak peak;
    Samples step, outside; /* of a step; of what no launch took */
    double bound;
    double launches; /* of a step that nothing disturbs: each launch at its best */
    bool estimated;
    double estimate;         /* of a step, at the rates of this machine */
    VEC(BenchKernel) kernel; /* the costliest first */
    uint64_t arena_bytes, resident_peak;
    double check, plan, kernels, open, first; /* start-up */
} Bench;

/* What the machine can do of a kernel's operations. */
static inline double bench_peak(const Bench *b, Half half)
{
    return half ? (half == b->peak.half ? b->peak.of_half : 0) : b->peak.fma;
}

/* ---- bench_compare.c: an earlier object ---- */
typedef struct Change {
    const char *name;
    double was, now;                       /* was < 0: there was none; now < 0: there is none */
    double ratio;                          /* now / was */
    double noise;                          /* the share that a change has to exceed: of these three, and a little */
    double spread_then, spread_now, drift; /* of the steps, and how much the machine itself has changed */
    const char *word;                      /* "slower", "faster", "same", "new", "gone" */
} Change;
typedef struct Comparison {
    Change step;
    Change *kernel; /* one for each of Bench.kernel, in its order */
    VEC(Change) gone;
    VEC(const char *) note; /* what else differs: threads, processor, precision */
} Comparison;
/* Reads how->against and holds it against the file and the batch. Raises ST_USAGE when it is
 * not a measurement of this model. To be called before anything is measured. */
const Json *bench_earlier(Bench *b);
Comparison *bench_compare(Bench *b, const Json *then);

/* bench.c: the work behind vwn_bench; it raises */
Status bench_unit(vwn_context *owner, Unit *unit, double check_seconds, const vwn_bench_options *how,
                  const vwn_writer *out, const Hooks *hooks);

/* ---- bench_report.c ---- */
void bench_text(Buf *out, const Bench *b, const Comparison *c);
void bench_json(Buf *out, const Bench *b, const Comparison *c);

#endif
