/* export_build.h - a folder in the making; private to export*.c. */
#ifndef VWN_EXPORT_BUILD_H
#define VWN_EXPORT_BUILD_H

#include "export.h"
#include "compiler/model/programs.h"
#include "compiler/plan/plan_forms.h"
#include "compiler/portable/loop.h"

typedef struct ExportTensor { /* an external tensor of any program, or a parameter */
    ExtKind kind;
    Name name;
    uint8_t rank;
    int64_t d[MAX_RANK];
    int64_t elements;
    int item;           /* bytes of one */
    const Shape *shape; /* symbolic */
    uint64_t offset;
} ExportTensor;

typedef struct ExportProgram {
    ProgramKind kind; /* of a folder that trains */
    const char *name, *about;
    const Plan *plan;
    const PlanSizes
        *sizes; /* it is for any sizes: numbers are printed as formulas of them; NULL: for those of the plan */
} ExportProgram;

enum { EXPORT_PROGRAMS = PROGRAM_KINDS + 2 * LOOP_LANES_LEVELS, EXPORT_RESULTS = 4096 };

typedef struct Export {
    Ctx *ctx;
    Arena *arena;
    const ExportOptions *how;
    VEC(ExportTensor) tensor;
    Map tensor_at[EXT_KINDS]; /* by kind: name -> number + 1 */
    uint64_t input_bytes, tensor_bytes, arena_bytes;
    PlanLayout layout; /* of tensors that programs share, in a folder for a GPU */
    ExportProgram program[EXPORT_PROGRAMS];
    size_t n_programs;
} Export;

typedef struct ExportKernels { /* every kernel once, in the order in which programs name them */
    const PlanKernel *const *kernel;
    size_t n;
} ExportKernels;

size_t export_tensor(const Export *x, ExtKind kind, Name name); /* its number */

/* ---- export_plan.c ---- */
/* The program as two static functions and a `const Program NAME_program`. */
void export_program(Buf *b, const Export *x, const ExportProgram *p);
/* A program for any sizes: functions NAME_bytes, of what its values take, and NAME_run, and a `const Function NAME`. Whether B and T
 * matter through their product alone. */
bool export_function(Buf *b, const Export *x, const ExportProgram *p);
/* The graph as a function of plain PyTorch: B, T and so many arguments, which are the tensors that x lists first. (export_reference.c) */
void export_reference(Buf *b, const Export *x, const char *name, size_t arguments, const Graph *g);
/* `static double NAME(const double *v)`: the value of a formula. */
void export_formula(Buf *b, const Export *x, const char *name, const HostExpr *e);

/* ---- export_c.c: what is of the CPU; export_cuda.c: of a GPU ---- */
typedef struct ExportTarget {
    const char *calls, *kernels; /* the header of the calls; the file of kernels */
    const char *const *without;  /* of the shared files those that are another target's */
    const char *title, *files;   /* of README.md */
    void (*put_call)(Buf *b, const PlanKernel *k, const Launch *l); /* up to the arguments */
    void (*put_kernels)(Buf *b, const Export *x, const ExportKernels *k);
    void (*put_names)(Buf *b, const ExportKernels *k); /* for plan.h */
    void (*put_use)(Buf *b, const Export *x);          /* how it is built, for README.md */
    void (*check)(const Export *x, const Plan *plan);
} ExportTarget;
extern const ExportTarget export_cpu, export_gpu;
/* The kernels behind a prelude and a table of them behind the kernels: what a kernels.cu is below
 * its first comment. */
void export_cuda_kernels(Buf *b, const char *prelude, size_t length, const ExportKernels *k);
const ExportTarget *export_target(const Export *x);

/* ---- text that is safe where it stands ---- */
void export_comment(Buf *b, const char *text); /* within a comment */
void export_string(Buf *b, const char *text);  /* a C string with its quotes */
void export_real(Buf *b, double v);            /* a C number that reads back */
/* "model.vwn:12:5", without the folder; false: no place. */
bool export_place(Buf *b, Ctx *ctx, Span at);

#endif
