/* cpu.h - what the parts of the CPU backend know of each other. Nothing outside runtime/
 * includes it.
 *
 * cpu_blas.c products, cpu_bf16.c their tiles of bf16 operands, cpu_expert.c products by expert, cpu_compile.c the C compiler, cache.c
 * compiled kernels on disk, cpu_kernels.c and backend_cpu.c the vtable over them.
 */
#ifndef VWN_CPU_H
#define VWN_CPU_H

#include "runtime/base/ahead.h"
#include "runtime/base/backend.h"
#include "compiler/portable/threads.h"

/* ---- tiles of bf16 operands (cpu_bf16.c) ---- */
typedef struct Bf16 Bf16;
typedef struct Bf16Tile Bf16Tile;
/* C[m, n] = op(A) op(B), row-major with leading extents. */
typedef struct TileShape {
    bool ta, tb;
    int64_t m, n, k, lda, ldb, ldc;
} TileShape;
struct Blas;
/* Sets blas->bf16, to be closed before the library; false with `why` when there are none here:
 * no such processor, no such library. */
bool bf16_open(struct Blas *blas, Ctx *ctx, int workers, char why[512]);
void bf16_close(Bf16 *x);
/* Makes the code for a shape, unless it is there; false when it cannot be made. */
bool bf16_make(Bf16 *x, const TileShape *shape);
const Bf16Tile *bf16_find(const Bf16 *x, const TileShape *shape); /* NULL: was not made */
/* One tile on the calling thread, which alone is `worker`. false: the library has failed. */
bool bf16_run(const Bf16Tile *t, int worker, const uint16_t *a, const uint16_t *b, float *c);
const char *bf16_implementation(const Bf16 *x); /* as the library calls it */

/* ---- products (cpu_blas.c) ---- */
typedef enum BlasKind { BLAS_PLAIN, BLAS_ONEDNN, BLAS_OPENBLAS } BlasKind;
typedef struct Blas {
    BlasKind kind;
    void *library;            /* of dlopen, NULL for BLAS_PLAIN */
    void (*sgemm)(void);      /* cast to the library's type where it is called */
    void (*set_threads)(int); /* of the OpenMP that it uses, or NULL */
    int (*get_threads)(void);
    Bf16 *bf16;     /* NULL: no products of bf16 operands */
    bool warm;      /* blas_warm() was called */
    float *scratch; /* BLAS_SCRATCH floats for products with a long k and a small result */
    char name[160]; /* "oneDNN 2.6.0 (libdnnl.so.2)", for people */
} Blas;
enum { BLAS_SCRATCH_PARTS = 16, BLAS_SCRATCH_RESULT = 16384, BLAS_SCRATCH = BLAS_SCRATCH_PARTS * BLAS_SCRATCH_RESULT };

/* Finds the best library: oneDNN, OpenBLAS, else plain loops. `only` is NULL, "onednn",
 * "openblas" or "plain"; false with `why` when that one is not to be had. `scratch` is not set.
 */
bool blas_open(Blas *blas, const char *only, char why[512]);
void blas_close(Blas *blas);
/* Around a loop over tiles: keeps the number of OpenMP threads that the caller had chosen. */
int blas_begin(const Blas *blas);
void blas_end(const Blas *blas, int outer);
/* One product on the calling thread, between blas_begin and blas_end. k = 0 gives zeros.
 * C[m, n] (+)= op(A) op(B), row-major with leading extents. */
void blas_tile(const Blas *blas, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
               const float *b, int64_t ldb, bool accumulate, float *c, int64_t ldc);
/* oneDNN makes its float32 code at its first product, for 20 to 30 ms, in which other threads wait:
 * has the helpers begin it, once, if this product is one for the library. */
void blas_warm(Blas *blas, Ahead *ahead, const PlanMatmul *how);
/* Makes the tiles that a product of bf16 operands is cut into; true for any other. */
bool blas_prepare(const Blas *blas, const PlanMatmul *how);
/* The whole product of backend.h, in parallel. The bits of the result depend on the shape only.
 * a, b: float, or uint16_t when how->half. false for a product of these that was not prepared or
 * that the library failed at. */
bool blas_matmul(const Blas *blas, Pool *pool, const PlanMatmul *how, const void *a, const void *b, float *c);
/* dlsym for functions; false when it is not there. `function`: where the pointer goes. */
bool blas_symbol(void *library, const char *name, void *function);

/* ---- products by expert (cpu_expert.c) ---- */
/* Scratch bytes that expert_run needs for this product with so many threads; -1 on overflow. */
int64_t expert_scratch(const PlanExpert *how, int threads);
/* Makes the tiles of a product of bf16 operands; true for any other. */
bool expert_prepare(const Blas *blas, const PlanExpert *how);
/* x, w_or_dy: float, or uint16_t when how->half. false for a product of these that was not prepared or that the library
 * failed at. */
bool expert_run(const Blas *blas, Pool *pool, const PlanExpert *how, const void *x, const void *w_or_dy,
                const int64_t *index, float *out, void *scratch);

/* ---- the C compiler (cpu_compile.c) ---- */
enum { COMPILER_WORDS = 16, COMPILER_OPTIONS = 32, COMPILE_SECONDS = 600 };
typedef struct Compiler {              /* points into itself: not to be copied */
    char command[512];                 /* words separated by NUL */
    char *word[COMPILER_WORDS];        /* into command; NULL-terminated */
    char version[256];                 /* the first line of --version */
    int seconds;                       /* that one file may take */
    const volatile sig_atomic_t *stop; /* once not 0 the compiler is ended; NULL: nobody asks */
} Compiler;
/* One C file to compile: prelude, then kernels. */
typedef struct CompileUnit {
    const char *source; /* path of the .c file, to be written by the caller */
    const char *object; /* path of the shared object to be made */
    const char *log;    /* path of the compiler's messages */
    int pid;            /* set while the compiler runs, else 0 */
    int status;         /* of waitpid; -1 when it could not be known */
    int error;          /* errno of the start, or 0; ETIMEDOUT: it was given up; ECANCELED: it was asked to stop */
    double deadline;    /* on the monotonic clock */
    int less;           /* how much less is optimised than of others, up to COMPILE_LEAST */
} CompileUnit;
enum { COMPILE_LEAST = 2 };
/* `asked` NULL: $CC, cc, gcc, clang, whichever runs first. false with `why` when none does. A file may
 * take so many seconds; 0: COMPILE_SECONDS. */
bool compiler_find(Compiler *out, const char *asked, int seconds, char why[512]);
/* The options of every kernel, one string with spaces: part of the cache's key. */
const char *compiler_options(void);
/* Compiles all units, at most `jobs` at a time; true when all objects were made. Behind one that failed no other is
 * begun, unless the compiler crashed over it. */
bool compiler_run(const Compiler *cc, CompileUnit *unit, int n, int jobs);
bool compiler_made(const CompileUnit *unit);
bool compiler_crashed(const CompileUnit *unit); /* a fault of its own, and not of the text */
const char *compiler_level(int less);           /* "-O2" */
/* The first line of a unit's messages that tells of an error, or the way the compiler ended. */
void compiler_first_error(const CompileUnit *unit, char *text, size_t size);

/* A new folder of mode 0700 for one build in $TMPDIR or /tmp; also removes those that builds of
 * processes which are no more have left there. false with `why`. */
bool build_folder_make(char *path, size_t size, char why[512]);
void build_folder_remove(const char *path); /* with the files in it */

/* Short facts about the processor for the cache's key and for people. */
void cpu_identity(Buf *out);
const char *cpu_simd_level(void);

#endif
