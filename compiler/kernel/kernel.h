/* kernel.h - one kernel: expressions over a row and its loops, then statements in order.
 *
 * In:  expressions built bottom up (equal ones are one), and roots: what is stored or summed
 *      where.
 * Out: after kernel_schedule(), a list of statements that a printer turns into text.
 * The one idea: an expression knows which loops it changes with, so where it stands (before the
 * rows, once per row, inside a sweep over the row) is derived, never written down.
 */
#ifndef VWN_KERNEL_H
#define VWN_KERNEL_H

#include "compiler/graph/index.h"
#include "compiler/graph/target.h"

typedef uint32_t Ex; /* an expression of a kernel; 0 = none */

typedef enum KType { KT_REAL, KT_INT, KT_BOOL } KType;

typedef enum KKind {
    KX_NONE,
    KX_CONST,  /* value, part of the text */
    KX_SCALAR, /* slot in Kernel.scalar: an argument */
    KX_INDEX,  /* ix as an integer */
    KX_LOAD,   /* buffer[ix], or 0 where the guard in[0] is false */
    KX_OP,     /* an elementwise operator */
    KX_INSIDE, /* 0 <= ix < extent */
    KX_AND,    /* of two guards */
    KX_SELECT, /* in[0] ? in[1] : in[2] */
    KX_RAND,   /* op RAND or RANDN, slot in Kernel.seed, element number ix of these sequences */
    KX_REDUCE, /* op SUM or AMAX of in[0] over var[0..n_var) */
    KX_COUNT
} KKind;

enum { NEST_MAX = 16, UNROLL_MAX = 160 };

typedef struct KNest {
    uint32_t n;
    IVar var[NEST_MAX]; /* from the outermost in */
} KNest;

static inline bool nest_has(const KNest *n, IVar v)
{
    for (uint32_t i = 0; i < n->n; i++)
        if (n->var[i] == v)
            return true;
    return false;
}

typedef struct KEx {
    uint8_t kind, type;
    uint16_t op;
    Ex in[3];
    Ix ix;
    Dim extent;
    uint32_t slot; /* buffer, scalar or seed */
    int64_t i;     /* attribute of the operator; SELECT: 1 where it is the load in[1], which leaves 0 (gpu/loaded.c) */
    double value;
    KNest over;    /* REDUCE */
    uint64_t deps; /* variables it changes with */
    int stage;     /* number of sweeps that must be over before it can be computed */
    int array;     /* schedule: scratch array that holds it, or -1 */
    int home;      /* schedule: the loop that computes it into the array */
} KEx;

/* Where a block of a device has a buffer of its own. Passes of `gpu/` fill it, and of a CPU it is empty. */
typedef struct KBufferDevice {
    bool shared;   /* partial sums: the block has them in shared memory, and stores them when its rows are over */
    IVar swizzled; /* of these: rows along this loop lie like those of KArray.swizzled; 0: in their own order */
    bool split;    /* TILE: each number is the sum of two of bf16, which products alone take */
    int bank; /* TILE, on tensor cores: rows lie an odd multiple of 2^bank numbers apart, of split ones 2^(bank - 1) */
    uint8_t rows; /* TILE: of so many rows, one after the other, for a product of all of them; 0: of one */
    int slot;     /* TILE: its place in Kernel.device.tile_slot, -1: none */
} KBufferDevice;
typedef struct KBuffer {
    Val value; /* whose elements; 0: scratch that the plan gives: the partial sums of root `part` */
    int part;  /* the root whose partial sums these are, one for each partition; or -1 */
    Op op;     /* of partial sums: SUM or AMAX, which all results that add to them have */
    DType dtype;
    bool read, written;
    bool partly;  /* one root stores some of it, the rest is not the kernel's */
    Half half;    /* 16 bits each: what is stored there has been rounded (of a tile: gpu/tile.c) */
    bool tile;    /* scratch of one row, `elements` for each; loaded when all of it is there */
    int stage;    /* TILE: sweeps that must be over before it can be loaded */
    Half rounded; /* TILE: every element of it is a value of this type */
    int64_t elements;
    KBufferDevice device;
    Name name; /* of the value, for people; may be NULL */
} KBuffer;

typedef enum KRootKind { KR_STORE, KR_SINK } KRootKind;
typedef struct KRoot {
    KRootKind kind;
    uint32_t buffer;
    Ix at; /* SINK: inside the partial sum of the partition */
    Ex value;
    Op op; /* SINK: OP_SUM or OP_AMAX */
    KNest nest;
    int stage;
} KRoot;

/* Into which pieces the threads of a block split the result of a product of one row; of few numbers its sum. Both factors of a few
 * numbers may be loaded in eights; a factor in two parts has a way of its own. */
typedef enum ProductCut {
    CUT_NONE, /* no threads share it */
    CUT_WIDE_PIECES,
    CUT_FEW_COLUMNS,
    CUT_FEW_ROWS,
    CUT_LONG_ROWS,
    CUT_LONG_COLUMNS,
    CUT_SHORT_ROWS,
    CUT_SHORT_COLUMNS,
    CUT_FEW_NUMBERS,
    CUT_MORE_NUMBERS,
    CUT_FEW_EIGHTS,
    CUT_MORE_EIGHTS,
    CUT_ROWS_BY_PARTS,
    CUT_COUNT
} ProductCut;
static inline bool product_cut_shares(ProductCut cut) /* do warps have shares of the sum? */
{
    return cut >= CUT_FEW_NUMBERS && cut <= CUT_MORE_EIGHTS;
}

/* Along which loop elements of a factor lie next to each other, so that several are loaded at one time. */
typedef enum KLying { LIES_UNKNOWN, LIES_STRIDED, LIES_ALONG_SUM, LIES_ALONG_OWN, LIES_COUNT } KLying;

/* How a product is computed: by a pass of its target, vector.c or gpu/cut_products.c. */
typedef struct KProductWay {
    ProductCut cut;
    KLying a, b;
    bool by_rows;  /* else the transposed factors are multiplied in the other order */
    bool sixteens; /* the sum is of whole sixteens */
    uint8_t
        line; /* rows of the result begin at multiples of so many elements, and are of these: 4 or 32; 0: of any number */
    IVar along; /* the loop along which the result is contiguous */
} KProductWay;
/* So many neighbours of a factor are loaded at one time by threads. */
static inline uint8_t product_piece(bool tile, bool tensor) { return tile && tensor ? 8 : 4; }

/* c[m, n] = or, when it adds, += the sum over k of a[m, k] b[k, n], for one row. Places are forms
 * of the row and of the three loops, whose slopes are the strides; a, b: memory or tiles; c: a
 * tile, or the partial sum of a partition. So that every dialect has vectors to take, m and n are multiples of
 * PRODUCT_LANES, unless tensor cores multiply, and in c one of them steps by one element. */
typedef struct KProduct {
    IVar m, n, k;
    uint32_t a, b, c;
    Ix a_at, b_at, c_at;
    bool add;
    bool
        split; /* b is split into two numbers of bf16, the second as many terms behind the first as there are: the sum is by both */
    uint32_t
        also; /* on a device: the number, and 1, of a product whose terms are added up with its own; it is no statement; 0: none */
    uint32_t
        beside; /* on a device: the number, and 1, of a product that is computed at the same time; it is no statement; 0: none */
    uint8_t
        rows; /* on a device: of so many rows at one time, or of those that a partition ends with (gpu/tile.c); 0: of each */
    int stage; /* sweeps that must be over before it */
    KProductWay way;
} KProduct;
enum { PRODUCT_LANES = 8 };

/* How a statement touches something; what is added to is both. */
enum { READS = 1, WRITES = 2 };
/* A row of kstmts.def. */
typedef struct KStmtInfo {
    const char *text;
    uint8_t ex, inputs, element; /* READS, WRITES */
    bool opens;                  /* it repeats what follows, up to its KS_END */
    bool device;                 /* only where many threads share a row */
} KStmtInfo;

typedef enum KStmtKind { /* kstmts.def says what each is */
#define KSTMT(kind, ...) KS_##kind,
#include "kstmts.def"
                         KS_COUNT
} KStmtKind;

/* What a step of a load, of a store or of an addition does: it makes room in registers, loads elements into them, takes its value
 * from them or puts it into them, or stores them. A load ends with its value, a store begins with it. */
enum { STEP_NEW = 1, STEP_LOAD = 2, STEP_VALUE = 4, STEP_STORE = 8 };

/* Who shares the rounds of a loop. Of two loops, one in the other, the warps of a row (KMapping.lanes threads each) can share the
 * outer one, and the threads of each warp the inner one. */
enum { WARP_THREADS = 32 }; /* threads of a warp, of every NVIDIA GPU */
typedef enum KThreads { THREADS_OF_ROW, THREADS_OF_WARP, WARPS_OF_ROW } KThreads;

/* How the elements that a statement stands for and a single value go together. */
typedef enum KAcross {
    ACROSS_NONE,   /* each element has its own */
    ACROSS_VALUE,  /* what is stored is the same for all of them */
    ACROSS_SUM,    /* all of them are added to one sum */
    ACROSS_FIRST,  /* two places are compared: the first is that of each element, the second the same for all, */
    ACROSS_SECOND, /* or the other way round */
    ACROSS_COUNT
} KAcross;

typedef struct KStmt {
    KStmtKind kind;
    Ex ex;
    IVar var;
    uint32_t root;
    int array;
    bool simd;
    bool vector; /* LOOP: its rounds are those of whole vectors */
    bool rest;   /* LOOP: and those that are left */
    bool singly; /* LOOP, ROWS, on a CPU: a compiler would make wrong vectors of it */
    bool mapped; /* LOOP, ROWS, KS_ARRAY_FILL, BATCH: the threads share its rounds, each does some */
    bool one;    /* STORE, SINK, KS_ARRAY_PUT: done by one of the threads there */
    uint8_t
        step; /* STEP_*, where a thread holds elements in registers before it computes, or before it stores; 0: all of it */
    uint32_t held;   /* of a step: the number of the registers; steps with one number are of one statement */
    uint8_t threads; /* KThreads: who shares the rounds of a LOOP, or of whom one does the statement */
    uint8_t width;   /* LOOP of many threads: its vector width: 2, 4 or 8 contiguous elements; of a statement in it:
                          * so many of these it stands for (gpu/elements.c); else 0 */
    uint8_t across;  /* of such a statement, or one of a loop of vectors: KAcross */
    uint8_t
        first; /* LOOP of threads of a row that are a warp's at most: the warp, so that others do other such loops */
    uint8_t
        piece; /* PIECES, and steps of what it has: so many of `width` elements are computed at one time. LOOP: the same,
                          * for gpu/hold.c; 0: all */
    uint8_t unroll; /* LOOP, ROWS of many threads: how often it is written out, so that loads are
                          * under way together; 0: as the compiler likes */
    uint32_t at;    /* BATCH: the element; what crosses warps: the slot */
    uint32_t
        totals;   /* WARP, WARP_PUT, WARP_TAKE: KDevice.totals that are one step, and 1; 0: one total, of ex or root */
    uint8_t lane; /* LANE_TAKE: of this thread of each warp */
    uint32_t
        column; /* LANES, LANE_TAKE, LANE_STORE: the column, and 1; of a step: in which its totals are, too; 0: none */
    uint32_t acc, n_acc; /* LOOP: accumulators in Kernel.acc that a simd loop carries */
} KStmt;
extern const KStmtInfo kstmt_info[KS_COUNT]; /* kernel.c */
static inline bool kernel_opens(const KStmt *s) { return kstmt_info[s->kind].opens; }
static inline bool kernel_of_array(const KStmt *s) /* does it touch elements of KStmt.array? */
{
    return s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD || s->kind == KS_ARRAY_GET || s->kind == KS_ARRAY_FILL;
}

/* What the next row will load. */
typedef struct KPrefetch {
    uint32_t buffer;
    Ix at;           /* where this row has it */
    Ix length;       /* PREFETCH_ROW: so many elements from there on */
    uint8_t warp;    /* and which warp of a block does it */
    uint8_t nth, of; /* PREFETCH_ROW: the how many-th, from 1 on, of how many that this warp does one after the other */
} KPrefetch;

/* Totals that are one step: thread number j of each warp adds up total j. */
typedef struct KTotal {
    Ex ex;         /* of this accumulator; 0: of the sum over rows `root` */
    uint32_t root; /* else 0 */
    bool alone;    /* thread j alone has it afterwards */
} KTotal;
typedef struct KTotals {
    uint32_t n;
    KTotal *of;
} KTotals;

/* What neighbouring threads of each warp have, one number each, and compute alike. Thread `first` has the first. */
enum { LANES_MOST = 32 };
typedef struct
    KPlaces { /* element j is `base` and j % of times `along` and j / of times `across` behind the same place */
    int64_t base, along, across;
    uint32_t of;
} KPlaces;
typedef struct KColumn {
    uint32_t first, n;
    Ex *ex;         /* by element: what it is */
    uint32_t *root; /* by element: the result that its thread stores; NULL: a column of values */
    uint32_t in
        [3]; /* of an operator: columns of its inputs, and 1; 0: all have the same input; of results: in[0], the values */
    KPlaces place; /* of loads and results: where they lie */
    bool here;     /* of loads: no compiler may load it earlier */
} KColumn;
static inline int64_t kernel_place_of(const KPlaces *p, uint32_t j)
{
    return p->base + p->along * (j % p->of) + p->across * (j / p->of);
}

typedef struct KArray {
    KNest nest; /* one element for each combination */
    DType dtype;
    int64_t elements;
    bool spilled; /* on a device: in memory, one for each row in flight; there is no room in a block */
    IVar
        swizzled; /* on a device: rows of it along this loop lie in the order in which threads that take eight elements each have no
                   * bank conflicts (vwn_turned() of the prelude); 0: in their own */
    bool sums; /* on a device: what is added to it each thread adds up in registers, until the loop ends */
} KArray;

typedef struct KScalar {
    int32_t host; /* index in Graph.host, or -1 */
    double value;
    Val origin; /* the node it comes from: two nodes with equal values are still two scalars */
    Name name;  /* of that node, for people; may be NULL */
} KScalar;

/* Which indices have 64 bits: all; rows and what is computed from them; what tensors hold. */
typedef enum KIndex { INDEX_WIDE, INDEX_WIDE_ROWS, INDEX_NARROW } KIndex;

/* Bytes of the totals that warps of a block exchange: three sets, of 40 among 8 warps, of 84 among 4. */
enum { KERNEL_SLOTS_ROOM = 8 * 1024 };

/* How the threads of a device share the work. */
typedef struct KMapping {
    uint32_t row_threads; /* threads of a row, or of a partition; 0: one thread does everything */
    uint32_t units;       /* rows or partitions that a block has in flight */
    uint32_t
        lanes; /* threads that share a loop when groups of them share the one around it: a warp, fewer of a row without sums */
    bool by_row; /* the threads of a partition do a row each */
    bool pieces; /* loops compute a few of a thread's contiguous elements at a time: few threads with many registers */
    bool sums_shared; /* a block has partial sums of its partition in shared memory (KBufferDevice.shared) */
    bool vectors;     /* statements say for how many elements they stand (gpu/elements.c) */
    uint32_t width;   /* elements of the widest access: 1, 2, 4 or 8 */
    uint32_t slots;   /* totals of warps that are kept at one time */
    KIndex index;
    uint32_t pressure;  /* registers that values take at one time, about */
    uint32_t in_flight; /* and that all loads and places of one loop take */
} KMapping;

/* Dynamic shared memory of a block, and how many blocks there may be (gpu/device.c). */
typedef struct KShared {
    Dim size;       /* so many elements */
    uint32_t bytes; /* of each */
    int32_t part;   /* the buffer whose partial sum lies there, or -1 */
} KShared;
typedef struct KGrid {
    uint32_t threads, units; /* of a block: threads, and rows or partitions in flight */
    uint32_t shared;         /* bytes whatever the sizes */
    const KShared *term;     /* of what has a size that is an argument: arrays, partial sums, tiles, */
    size_t n_term, n_fixed;  /* of these so many are no tiles */
    bool whole;              /* a block has one row and does not go on to further ones */
    uint32_t blocks;         /* at most so many, each with `spilled` elements of memory; 0: any number */
    int64_t spilled;
    uint32_t at_once; /* blocks that a multiprocessor is to have at least; 0: nobody has said it yet */
} KGrid;

/* A stream of random numbers, and how many of them belong to each sequence: those of the first of a launch are counted on. */
typedef struct KSeed {
    Name site;
    Dim each;
} KSeed;

/* A place in shared memory that tiles of a row take turns in; tiles of several rows have one of their own. */
typedef struct KTilePlace {
    int64_t words; /* of 4 bytes */
    uint8_t rows;  /* of a tile of so many rows; 0: of one */
    int64_t each;  /* elements of each of them */
} KTilePlace;

/* An argument of a kernel's text: an integer, and where a launch gets it from. */
typedef struct KArgument {
    enum { KA_DIM, KA_VALUE, KA_CHUNK, KA_PART, KA_SEED, KA_STEP, KA_FIRST, KA_STREAM } kind;
    Dim dim; /* DIM; FIRST: random numbers of a sequence */
    int64_t value;
    uint32_t buffer;  /* PART: whose partial sum has this size; another buffer of equal size is another argument */
    Name site;        /* SEED */
    uint8_t multiple; /* the text holds only for multiples of it; 0: for all */
} KArgument;
static inline bool kernel_argument_changes(const KArgument *x) /* from run to run */
{
    return x->kind == KA_SEED || x->kind == KA_STEP || x->kind == KA_FIRST;
}
/* By use of a size in the program: USE_LITERAL, or its argument and 1. */
enum { USE_LITERAL = 0 };
typedef struct ArgumentSlots {
    size_t n;
    const uint32_t *slot;
} ArgumentSlots;

/* What a device adds to a kernel. Passes of `gpu/` fill it; of a CPU it is empty. */
typedef struct KDevice {
    bool tensor;                /* products on tensor cores: those of a plan in bf16 or fp16 */
    int64_t shared;             /* bytes that a block may have */
    KMapping mapping;           /* which thread does which round */
    KGrid grid;                 /* how it is launched, when it is mapped to threads */
    VEC(KTilePlace) tile_slot;  /* tile.c */
    VEC(KTotals) totals;        /* of steps (gpu/join_totals.c) */
    VEC(KColumn) column;        /* of lanes (gpu/lanes.c) */
    const struct KTried *tried; /* of a scheduled kernel: what has been made of it already, to look at; or NULL */
} KDevice;

typedef struct Kernel {
    Ctx *ctx;
    Arena *arena;
    IxTable *ix;    /* of the indices; copies of the kernel share it, and it only grows */
    IVar row, part; /* part: the loop over partitions; 0 when there are no sums over rows */
    Dim rows;
    int64_t partitions, chunk; /* rows per partition */
    int64_t unrolled;          /* elements of the largest nest that is written out: places in it are in the text */
    bool flat;                 /* a loop over rows is vector code; partitions are blocks of rows */
    bool whole;                /* every vector loop runs over whole vectors */
    bool lines;                /* and every vector that is stored begins at one: at a cache line */
    bool calls;                /* on a device: products are functions that are called; else they stand in place */
    const Target *target;      /* where it runs */
    KDevice device;
    VEC(KEx) ex;
    VEC(KBuffer) buffer;
    VEC(KScalar) scalar;
    VEC(KSeed) seed;
    VEC(KRoot) root;
    VEC(KProduct) product; /* in an order in which they can run */
    VEC(KStmt) stmt;
    VEC(KArray) array;
    VEC(KPrefetch) prefetch; /* of PREFETCH and PREFETCH_ROW */
    VEC(Ex) acc;
    bool numbered;           /* what follows is known (sizes.c) */
    VEC(KArgument) argument; /* of the text, in the order in which the program names them */
    VEC(uint32_t) use;       /* by use of a size: USE_LITERAL, or its argument and 1 */
    VEC(uint32_t) pointer;   /* buffers that are arguments, in that order */
    uint32_t *slot;
    size_t slots;
    const char *shown; /* the dump of the pass that somebody looks at (plan/pipeline.h), or NULL */
} Kernel;

/* The totals of a step; NULL: the statement is one total. */
static inline const KTotals *kernel_totals(const Kernel *k, const KStmt *s)
{
    return s->totals ? &k->device.totals.v[s->totals - 1] : NULL;
}

void kernel_init(Kernel *k, Ctx *ctx, Arena *arena, int64_t B, int64_t T, Dim rows);
static inline const KEx *kx(const Kernel *k, Ex e) { return &k->ex.v[e]; }

/* ---- expressions; they fold constants ---- */
Ex kx_number(Kernel *k, KType type, double value, Val origin); /* in the text if structural */
Ex kx_scalar(Kernel *k, int32_t host, double value, Val origin);
Ex kx_index(Kernel *k, Ix ix);
Ex kx_load(Kernel *k, uint32_t buffer, Ix ix, Ex guard);
Ex kx_op(Kernel *k, Op op, KType type, const Ex *in, int n, int64_t i);
Ex kx_inside(Kernel *k, Ix ix, Dim extent); /* 0 when always true */
Ex kx_and(Kernel *k, Ex a, Ex b);           /* 0 = true */
Ex kx_select(Kernel *k, Ex guard, Ex a, Ex b);
Ex kx_rand(Kernel *k, Op op, Name site, Dim each, Ix ix); /* each: draws_of_sequence() */
Ex kx_reduce(Kernel *k, Op op, Ex body, const KNest *over);
Ex kx_fold(Kernel *k, Op op, Ex a, Ex b);    /* a + b or max(a, b) by SUM or AMAX; 0 = nothing */
void kx_find_needs(const Kernel *k, KEx *e); /* deps and stage, from what it is made of */
bool kx_is_number(const Kernel *k, Ex e, double *value);
int kx_cost(const KEx *e); /* of this operation alone */
uint32_t kernel_buffer(Kernel *k, Val value, int part, DType dtype, int64_t elements);
uint32_t kernel_tile(Kernel *k, Val value, int64_t elements); /* a new one */

/* ---- statements ---- */
void kernel_share_reciprocals(Kernel *k); /* schedule.c; of a device, before it is scheduled, */
void kernel_order_sums(Kernel *k);        /* sums.c; and this, too */
void kernel_schedule(Kernel *k);          /* schedule.c */
/* What is wrong with a scheduled kernel, or NULL; *at: the statement, or SIZE_MAX. Order, types,
 * loops, bounds at the kernel's B and T, stores (kernel_verify.c). */
const char *kernel_check(const Kernel *k, size_t *at);
const char *kernel_check_held(const Kernel *k,
                              size_t *at); /* of steps alone (kernel_held.c); kernel_check() asks it, too */
void kernel_verify(const Kernel *k);       /* vwn_bug() when broken, with the dump to on_bug first */
_Noreturn void kernel_broken(const Kernel *k, size_t at,
                             const char *why); /* so: statement `at`, or SIZE_MAX, is wrong */
/* Is 0 <= ix < elements wherever `guard` (0 = always) holds? False when that cannot be proved
 * (kernel_bounds.c). */
bool kernel_in_bounds(const Kernel *k, Ix ix, Ex guard, int64_t elements);
bool kernel_injective(const Kernel *k, Ix at, const IVar *v,
                      uint32_t n); /* do n variables never give one place twice? The same file */
/* By how many elements each operand steps with each loop. */
typedef struct ProductSteps {
    int64_t am, ak, bk, bn, cm, cn;
} ProductSteps;
/* False when one of them is no fixed number. */
bool product_steps(const Kernel *k, const KProduct *p, ProductSteps *s);
/* Of a place of a product: the terms with v alone, as if v were 1; or, v = 0, those with none of its three loops. */
Ix kernel_product_place(const Kernel *k, const KProduct *x, Ix ix, IVar v);
/* An operand of the call of a product: where it begins in this row, and how far apart its elements lie along a loop or two. */
typedef struct KOperand {
    const KProduct *of;
    uint32_t buffer;
    Ix first, step[2];
    uint8_t n_step;
    bool rows; /* in memory, of several rows: that of the row before lies a sum of `row` in front of it */
    Ix row;
} KOperand;
/* What a text names of a product, and of those that it computes with it: sizes, operands, and, if `adds`, whether it adds. */
typedef struct KProductCall {
    Dim size[4];
    KOperand operand[5];
    uint8_t n_size, n_operand;
    bool adds;
    bool transposed; /* of a CPU: the second operand is */
} KProductCall;
KProductCall kernel_product_call(const Kernel *k, const KProduct *x);
/* Which loop the vectors of a product run over: n, or m where c lies transposed. */
static inline bool product_along_n(const ProductSteps *s) { return s->cn == 1; }
enum { VECTOR_LANES = 16 };                           /* the most elements that a vector holds */
void kernel_split_vectors(Kernel *k);                 /* vector.c; when statements of loops are final */
void kernel_find_vectors(Kernel *k);                  /* vector.c; after kernel_schedule() */
bool kernel_has_vectors(const Kernel *k);             /* loops of them */
void kernel_put_prefetches(Kernel *k);                /* prefetch.c; of a CPU, after kernel_find_vectors() */
size_t kernel_loop_end(const Kernel *k, size_t loop); /* the statement that ends it */
Ix kernel_array_at(const Kernel *k, int array);       /* the element of a scratch array (touches.c) */
/* Of a statement that touches swizzled elements: along which loop their rows lie, and where this row begins. 0: they are none. */
IVar kernel_swizzled(const Kernel *k, const KStmt *s, Ix *row);
Ix kernel_column_place(const Kernel *k,
                       const KColumn *c); /* of loads or results: KPlaces says what lies how far behind it */
Dim kernel_array_size(const Kernel *k, const KArray *a); /* elements */

/* ---- what is part of a text, and what an argument of it (sizes.c) ---- */
static inline bool kernel_is_place(const IxTerm *t) /* a constant of a form */
{
    return t->var == 0 && dim_eq(t->coef, DIM(1));
}
/* Does a form read another row than its own, a fixed number of positions away? On a device that offset is an
 * argument, so that all heads of a chain have one text. */
bool kernel_has_row_offset(const Kernel *k, const IxForm *f);
/* Is the factor of a term an argument, not a literal? away: what kernel_has_row_offset() says of its form. */
bool kernel_is_argument(const Kernel *k, const IxTerm *t, bool away, bool device);
bool kernel_var_is_wide(const Kernel *k, IVar v); /* has the variable 64 bits? of a CPU's kernel all have */
/* Of a kernel whose statements are final: Kernel.argument, .use and .pointer. slots: which uses are one argument, where those of
 * equal sizes are not (plan/kernel_cache.c); or NULL. */
void kernel_find_arguments(Kernel *k, const ArgumentSlots *slots);
const char *kernel_check_arguments(const Kernel *k); /* what is wrong with them, or NULL */
bool kernel_same_argument(const KArgument *x,
                          const KArgument *y); /* but for what the text takes it for a multiple of */

#endif
