/* stages.h - what a file goes through, in a process of its own.
 *
 * In:  the text of a file, the stages to take.   Out: a Report in memory that is shared with
 * the parent. The one idea: a stage ends with nothing wrong, or with a sentence; a signal, a
 * limit or a bug is seen by the parent, which knows from the report in which stage that was.
 */
#ifndef RANDOM_STAGES_H
#define RANDOM_STAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A row: name, of how many files one takes it (of a lean one where compilers run, see
 * generate.h), the seconds of a processor that it may take, and what it does. */
#define STAGE_ROWS(X)                                                                                                  \
    X(CHECK, "check", 1, 10, "checks, renders every diagnostic")                                                       \
    X(FMT, "fmt", 1, 10, "formats twice; the formatted text is the same model")                                        \
    X(RESOLVE, "resolve", 1, 10, "the resolved text is the same model and resolves to itself")                         \
    X(REPORTS, "reports", 1, 10, "params in every form, losses, cost, growth, what is drawn")                          \
    X(VARY, "vary", 4, 10, "a sweep over attributes, whose points are checked by themselves")                          \
    X(IR, "ir", 3, 10, "two stages of the compiler as text; graphs and kernels read back")                             \
    X(EMIT_C, "emit_c", 8, 10, "writes a folder of C")                                                                 \
    X(EMIT_CUDA, "emit_cuda", 16, 10, "writes a folder of CUDA C")                                                     \
    X(GRADIENT, "gradient", 1, 10, "the gradient in the reference against differences of the loss")                    \
    X(RUN, "run", 2, 10, "a run of three steps in the reference, through growth")                                      \
    X(PARTS, "parts", 3, 10, "a batch in parts is the batch")                                                          \
    X(FOREIGN, "foreign", 1, 10, "weights of another file are where its names say")                                    \
    X(INTERPRET, "interpret", 5, 10, "kernels interpreted in float64 are the reference to 1e-9")                       \
    X(PROGRAM, "program", 70, 60, "every verb, of the file and of a run of it, refuses what `check` refuses")          \
    X(COMPILED, "compiled", 9, 60, "three training steps with compiled kernels against the reference")                 \
    X(EMULATED, "emulated", 24, 60,                                                                                    \
      "three training steps with emulated CUDA kernels, in two orders, against the reference")                         \
    X(TRAIN, "train", 10, 60, "a run of three steps from files against one in the reference")

typedef enum Stage {
#define X(id, name, share, seconds, text) STAGE_##id,
    STAGE_ROWS(X)
#undef X
        STAGES
} Stage;
extern const char *const stage_name[STAGES];
extern const int stage_share[STAGES], stage_seconds[STAGES];
static inline bool stage_compiles(Stage s) { return s >= STAGE_COMPILED; }

typedef struct Report {
    volatile int stage; /* begun */
    bool ran[STAGES], unstable[STAGES];
    bool accepted, failed, done;
    int swept, grown;              /* a sweep: 1 refused, 2 accepted; growth steps of the run */
    uint64_t varied[4];            /* rows of the table of attributes */
    double seconds[STAGES];        /* of processor time, compilers too */
    double worst[STAGES];          /* the largest difference, of what is allowed */
    char why[1200], refused[1200]; /* what is wrong; what `check` says against it */
} Report;

typedef struct StageOptions {
    const char *text, *cache; /* cache: of kernels, shared by all models */
    bool take[STAGES];
    uint64_t seed;   /* chooses within stages */
    double patience; /* with how many times its seconds a stage gets along */
} StageOptions;

/* Takes the stages, in the present folder. What is wrong ends the process. */
void stages_run(const StageOptions *how, Report *report);

/* Data that the text names, into the present folder. */
void write_data(const char *text);

/* ---- numbers.c: programs against the reference; what is wrong raises a bug ---- */
struct Ctx;
struct Unit;
struct Backend;
typedef struct Compared {
    double worst;  /* of what is allowed */
    bool unstable; /* rounding the weights alone moves results far */
    const char *name;
} Compared;
void compare_interpreted(struct Ctx *ctx, const struct Unit *u, uint64_t seed, Compared *c);
/* The gradient against differences of the loss, whose slope has nothing that is a constant in
 * the backward pass alone. */
void compare_gradient(struct Ctx *ctx, const struct Unit *u, uint64_t seed, Compared *c);
/* Three steps by a backend of which `again` (may be NULL) changes the order of threads. */
void compare_steps(struct Ctx *ctx, const struct Unit *u, struct Backend *b, void (*again)(struct Backend *b, int run),
                   Compared *c);

#endif
