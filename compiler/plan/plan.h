/* plan.h - what the runtime sees of the compiler: buffers, kernels as text, a list of launches.
 *
 * In:  a simplified graph, how many sequences (B) and positions (T).
 * Out: a static plan: every buffer has its place before the first launch, peak memory is known.
 * The one idea: the plan is complete. The runtime resolves external tensors to memory, compiles the
 * kernel texts, and then only walks the launch list.
 */
#ifndef VWN_PLAN_H
#define VWN_PLAN_H

#include "compiler/graph/target.h"
#include "compiler/kernel/launch.h"

enum { PLAN_ALIGN = 64 };
/* Buffers begin at multiples of 64 bytes. A kernel is one C function over a range of rows, whatever it computes:
 *     void NAME(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi)
 * p: buffers (float, int64_t, or 16 bits where PlanBuffer.half says so), n: sizes, strides and random-number keys,
 * s: run-time scalars; rows lo <= row < hi of [0, Launch.rows). Rows never write what another row reads or writes, so any
 * split gives the same bits. Sizes that vary between launches are in n, never in the text. */
typedef struct PlanKernel {
    Name name;        /* "k_<16 hex digits of the text's hash>": equal texts are one kernel */
    const char *text; /* the function; begins with a comment naming what it computes, from where */
    size_t length;
    uint32_t n_buffer, n_int,
        n_scalar;         /* how many buffers, integers and scalars a launch must bring; plan_verify() checks it */
    uint32_t n_map;       /* how many tensor maps a launch on a device must bring */
    const char *program;  /* PlanOptions.programs: what it was printed from (kernel_text.h) */
    const PlanSize *size; /* what each of n[] must be; NULL: each of them may be anything */
    PlanGrid grid;        /* of a kernel for a device */
    const char *threads;  /* of a kernel for a device, with PlanOptions.programs: the program as its threads share it */
    const char *shown;    /* PlanOptions.watch: what the pass that is looked at has made of it */
    const char *library;  /* its name in the library; NULL: it was made of the graph */
    const char *where;    /* of a kernel for a device: what it was first printed for, names and shapes */
} PlanKernel;

typedef struct PlanBuffer {
    int32_t ext;            /* index in Plan.ext, or -1: lies in the arena */
    uint64_t offset, bytes; /* offset in the arena (64-byte aligned); exact size in use */
    DType dtype;
    Half half;          /* of DT_REAL: in 16 bits */
    uint32_t behind;    /* it begins where this one ends, plus one; 0: anywhere */
    Name name;          /* of the value, for people */
    const Shape *shape; /* of the value, symbolic; NULL: scratch of the plan's own */
} PlanBuffer;

/* Bytes of an element. */
static inline uint64_t plan_item_bytes(const PlanBuffer *b)
{
    return b->dtype == DT_INT ? 8 : (uint64_t)half_bytes(b->half);
}

typedef enum LaunchKind {
#define LAUNCH(ID, ...) LAUNCH_##ID,
#include "launches.def"
#undef LAUNCH
    LAUNCH_KINDS
} LaunchKind;
typedef struct LaunchInfo {
    const char *name;  /* "matmul" */
    uint32_t n_buffer; /* 0: as many as the kernel takes */
    enum { LAUNCH_EITHER, LAUNCH_CPU_ALONE, LAUNCH_DEVICE_ALONE } where;
} LaunchInfo;
const LaunchInfo *launch_info(LaunchKind kind);

/* What random numbers of a run depend on, beside their site. */
typedef struct RandomKey {
    uint64_t seed, step, first; /* first: where in the batch or the evaluation its sequences begin */
} RandomKey;
typedef enum IntKind {
    INT_CONST,
    INT_SEED,
    INT_STEP,
    INT_FIRST,
    INT_PLACE
} IntKind; /* INT_PLACE: of a PlanNumber alone */
typedef struct LaunchInt {
    IntKind kind;  /* INT_SEED: philox_key(run seed, site); INT_STEP: the run's random step; INT_FIRST: its first
                      sequence times `value` */
    int64_t value; /* INT_CONST, INT_FIRST */
    Name site;     /* INT_SEED */
    bool past;     /* whether stores bypass the cache, of a kernel that can */
} LaunchInt;
typedef struct LaunchScalar {
    int32_t host; /* index in Plan.host, or -1: the constant */
    double value;
} LaunchScalar;

/* Eight bytes that a kernel of a device reads from memory, as a `number` of its prelude. What changes from run to run lies
 * there, so that a launch is the same in every run: its ints and scalars are constants. So do the arguments of launches
 * that are made as one. */
typedef struct PlanNumber {
    IntKind
        kind; /* as of a LaunchInt; INT_CONST: the value of `host`, or `bits`; INT_FIRST: `bits` times the run's first
                     sequence; INT_PLACE: the address of `buffer` and `bits` bytes more */
    Name site;
    int32_t host; /* index in Plan.host, or -1 */
    uint32_t buffer;
    uint64_t bits;
} PlanNumber;

/* C[b] = op(A[b]) op(B[b]) (+ C[b] when accumulate), row-major, extents and strides in elements.
 * buffers: A, B, C; further ones that are touched lie behind these (PlanBuffer.behind). */
typedef struct PlanMatmul {
    bool transpose_a, transpose_b, accumulate;
    Half half;    /* what A and B are; their products are added in float32 */
    bool rounded; /* C is that too, rounded when all is added; else float32 */
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc, step_a, step_b, step_c;
} PlanMatmul;
/* Rows grouped by expert. buffers: forward and dx: x, w, index, y; dw: x, dy, index, dw. */
typedef struct PlanExpert {
    enum { EXPERT_Y, EXPERT_DW } what;
    bool transpose_w;
    Half half;       /* what x and w, or dy, are; products are added in float32, and y and dw are that */
    bool per_row;    /* one row at a time: its bits do not depend on the others */
    bool x_per_pair; /* x has one row per (token, choice), else one per token */
    int64_t tokens, choices, experts, in, out; /* in, out: of this product, after transposing */
} PlanExpert;

/* Rows of so many bytes, and the bytes from one row to the next of x and of out; a device's alone, whose driver
 * copies. buffers: x, out. */
typedef struct PlanCopy {
    int64_t bytes, from, to;
} PlanCopy;

typedef struct Launch {
    LaunchKind kind;
    uint32_t kernel; /* LAUNCH_KERNEL */
    uint32_t n_buffer, n_int, n_scalar;
    uint32_t n_touched;     /* n_buffer, and behind these the buffers that arguments in memory lead to */
    uint32_t items;         /* so many launches of one kernel, made as one (plan_gather.c); 0: it is one */
    const uint32_t *buffer; /* indices in Plan.buffer */
    const uint64_t *shift;  /* bytes to add to each buffer's start */
    const bool *writes;     /* which of them the launch writes (it may read them too) */
    const LaunchInt *ints;
    const LaunchScalar *scalars;
    const LaunchMap *map; /* as many as the kernel takes */
    int64_t rows;         /* the parallel extent; 0 = nothing to do */
    int64_t grain;        /* rows per chunk worth handing to a thread; a function of the plan alone */
    PlanMatmul matmul;
    PlanExpert expert;
    PlanCopy copy;
    Name name; /* path of the module it computes for */
    Span span;
    double flops, bytes; /* of products and attention; compulsory traffic */
    PlanWork work;       /* of LAUNCH_KERNEL */
    const char *program; /* PlanOptions.programs: its own kernel program; NULL: a library's */
} Launch;

typedef struct PlanResult { /* host-read outputs, in graph order */
    Name name;
    uint32_t buffer;
    DType dtype;
    uint8_t rank;
    int64_t d[MAX_RANK];
} PlanResult;
typedef struct PlanExt {
    Ext ext;          /* with its symbolic shape */
    int64_t elements; /* at this B, T */
    Half half;        /* of a copy in 16 bits */
    bool stored;      /* the plan writes it */
} PlanExt;
static inline uint64_t plan_ext_bytes(const PlanExt *x)
{
    return (uint64_t)x->elements * (x->ext.dtype == DT_INT ? 8 : (uint64_t)half_bytes(x->half));
}

typedef struct Plan {
    int64_t B, T;
    PlanExt *ext;
    size_t n_ext;
    const HostExpr **host;
    size_t n_host;
    PlanBuffer *buffer;
    size_t n_buffer;
    PlanKernel *kernel;
    size_t n_kernel;
    Launch *launch;
    size_t n_launch;
    PlanResult *result;
    size_t n_result;
    PlanNumber *number;
    size_t n_number;  /* of a device, in the order of their memory */
    uint32_t numbers; /* the buffer that a run writes them to before its first launch; if there are any */
    size_t n_cast;    /* the first launches: they make copies of weights, where these are not there yet */
    uint64_t arena_bytes;
    uint64_t compiler_bytes; /* of the plan's arena: graphs and groups, without texts */
    const char *prelude;     /* C text before the kernels: types and the vwn_* functions; no #include */
    size_t prelude_length;
    const char *device_prelude; /* of the kernels that have a grid; NULL: there are none */
    size_t device_prelude_length;
} Plan;

/* The shape in which an operand of products lies in 16 bits on a device, when products alone read it: with zeros behind
 * each row, and behind the rows of a matrix, where these would begin anywhere. */
Shape plan_half_shape(const Shape *s, Half half);
Val plan_half_pad(Graph *g, Val v, Half half); /* v in that shape */

/* How weights, their gradients, and their copies in 16 bits that stay from run to run (EXT_COPY), lie in memory: by kind,
 * and by name that of the one which lies in front, without a gap, or its own: it lies behind none. Plans that share a layout
 * keep to it and add to it. Which weights have copies, and of what, stands in it, too. */
typedef struct PlanLayout {
    Map before[EXT_KINDS];
    Half half;
} PlanLayout;
void plan_layout_init(PlanLayout *layout, Arena *arena);
/* Unless it has a place already, a tensor lies behind that one, or, with its own name, behind none. */
void plan_layout_fix(PlanLayout *layout, ExtKind kind, Name name, Name before);
Name plan_layout_before(const PlanLayout *layout, ExtKind kind, Name name); /* its own: none */

/* The graph that is planned, and that the reference evaluator compares it with: behind the level GRAPH of passes.def. */
Graph *plan_graph(const Graph *g, Arena *arena, const PlanOptions *how);

/* Of a graph that plan_graph() gave. A product of 16 bits has at least so many rows, columns and terms. */
enum { PLAN_HALF_LEAST = 64 };
typedef struct HalfCount {
    size_t products; /* matrix products, those by expert among them */
    size_t rounded;  /* those of which both operands are */
    size_t values;   /* all values that are */
} HalfCount;
HalfCount plan_count_half(const Graph *g, Half half);

/* g: of plan_graph(). Everything lives in `arena`. Symbols that the graph does not use may be 1. */
Plan *plan_build(Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how);
void plan_verify(Ctx *ctx, const Plan *p);        /* bounds, overlaps of live buffers, kernel signatures */
void plan_dump(Buf *out, const Plan *p);          /* `vwn ir --stage plan` */
void plan_dump_programs(Buf *out, const Plan *p); /* `--stage kernel`; made with `programs` */
void plan_dump_threads(Buf *out, const Plan *p);  /* `--stage threads`: of a device, with `programs` */
void plan_dump_shown(Buf *out, const Plan *p);    /* PlanKernel.shown */
void plan_dump_kernels(Buf *out, const Plan *p);  /* `--stage c`: the text as it is compiled */
void plan_dump_device(Buf *out, const Plan *p);   /* `--stage cuda`: that of kernels for a device */
/* The bits of number i in a run; host: values of Plan.host. Of an INT_PLACE they are added to its buffer's address. */
uint64_t plan_number(const Plan *p, size_t i, const RandomKey *key, const double *host);
int64_t plan_int(const LaunchInt *x, const RandomKey *key);
/* An update writes the copies of the weights that it changes: adds that to its graph. */
void plan_write_copies(Graph *g, const PlanLayout *layout);
/* plan_launch.c: does the hardware take it? Strides have their multiples and lead past what they are strides of, as nothing does
 * that is repeated. */
bool launch_map_fits(const LaunchMap *m);
uint64_t plan_shared_bytes(const PlanGrid *g, const int64_t *n); /* of dynamic shared memory of a launch */

#endif
