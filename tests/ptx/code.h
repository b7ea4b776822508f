/* code.h - what is between the parser of PTX and those who run it: instructions, warps, blocks.
 *
 * In:  -     Out: the structures. Every register is a vector of the 32 lanes of a warp in the warp's
 *      file: 32 bits a lane, 64 of those types, and a predicate is one word of bits. Constants and
 *      special registers lie there, too, so each operand is an offset.
 */
#ifndef VWN_TEST_PTX_CODE_H
#define VWN_TEST_PTX_CODE_H

#include <setjmp.h>

#include "emu/rules.h"
#include "ptx.h"

/* Who touches shared memory: warps, and the boxes that each barrier counts. */
enum {
    LANES = 32,
    OPERANDS = 8,
    BARRIERS = 16,
    MAX_WARPS = EMU_THREADS / LANES,
    MBARRIERS = 64,
    AGENTS = MAX_WARPS + MBARRIERS
};
#define ALL_LANES 0xffffffffu

typedef struct Inst Inst;
typedef struct Warp Warp;
typedef struct Block Block;
typedef void Run(Warp *w, const Inst *i);

/* How an instruction is run. */
typedef enum Kind {
    PLAIN,    /* each thread by itself */
    TOGETHER, /* by all threads of a warp that its last operand names */
    ALIGNED,  /* by all threads of a warp that have not ended */
    GROUP,    /* the same, by each of four warps */
    BRANCH,
    EXIT,
    BARRIER,
    TRY,  /* may have to be tried again */
    TAKES /* waits for registers */
} Kind;

/* Modifiers, by name; each is a bit. */
/* clang-format off */
#define PTX_MODIFIERS(M)                                                                       \
    M(ftz) M(sat) M(rn) M(rz) M(rm) M(rp) M(rni) M(rzi) M(rmi) M(rpi) M(approx) M(full) M(eq) M(ne)   \
    M(lt) M(le) M(gt) M(ge) M(lo) M(ls) M(hi) M(hs) M(equ) M(neu) M(ltu) M(leu) M(gtu) M(geu)  \
    M(num) M(nan) M(NaN) M(param) M(global) M(shared) M(local) M(nc) M(v2) M(v4) M(uni) M(trans) \
    M(x1) M(x2) M(x4) M(volatile) M(relaxed) M(gpu)
/* clang-format on */
enum {
#define M(name) MOD_##name,
    PTX_MODIFIERS(M)
#undef M
        MODIFIERS
};
#define HAS(i, name) ((i)->mods >> MOD_##name & 1)

struct Inst {
    Run *run;
    uint64_t mods;
    int64_t shift;         /* of an address, or a whole number that stands in the text */
    uint32_t at[OPERANDS]; /* offsets in the file; of a list: where in the function's list */
    uint32_t n;            /* of the first list */
    uint32_t to;           /* of a branch */
    int32_t guard;         /* offset of a predicate; -1: none */
    uint32_t line;
    uint8_t kind, bytes; /* of the type */
    bool negated, leads; /* the guard; a branch goes there */
    bool held, bf16;     /* the first factor lies in registers; the factors are bf16 */
    bool wide, sign;     /* a list is of 64 bits; the type has a sign */
    const char *name;
};

typedef struct Constant {
    uint64_t bits;
    uint32_t at, bytes; /* of a lane; 0: a predicate */
} Constant;
typedef enum Special { TID_X, NTID_X, CTAID_X, NCTAID_X, LANEID, SPECIALS } Special;

typedef struct Parameter {
    const char *name;
    uint32_t at, bytes;
} Parameter;

typedef struct Function {
    char *name;
    Inst *code;
    uint32_t *list;
    Constant *constant;
    Parameter *parameter;
    size_t n_code, n_list, n_constant, n_parameter;
    uint32_t special[SPECIALS];                /* offsets; 0: not used */
    uint32_t file;                             /* bytes */
    uint32_t parameter_bytes, shared, dynamic; /* bytes of static shared memory; where the other begins */
    uint32_t local;
    int threads, blocks; /* .maxntid, .minnctapersm */
    uint32_t grain;      /* the smallest access of shared memory: 2 or 4 */
} Function;

struct PtxModule {
    Function *function;
    size_t n;
    char *text; /* names point into it */
};

/* ---- a launch ---- */

/* A copy that was begun: cp.async of a lane, or, of a map, a box. */
typedef struct Copy {
    uint32_t to, bytes, from_bytes;
    uint64_t from;
    uint8_t lane;
    uint32_t group;
} Copy;
typedef struct Box {
    const PtxMap *map;
    int32_t at[PTX_RANK];
    uint32_t to, barrier;
    const Inst *by;
    uint16_t warp, agent;
} Box;

/* A product of a warpgroup that was begun, this warp's part. */
typedef struct Product {
    const Inst *inst;
    uint64_t a, b;
    bool more;
    bool done;
    uint32_t group, since; /* the time when it was begun */
} Product;

typedef struct Piece { /* threads that are at one place */
    uint32_t lanes, at;
    bool waits; /* for others of the warp, or at a barrier */
    bool idle;  /* until something happens */
    bool arrived;
} Piece;

enum { PRODUCTS = 64 };
struct Warp {
    Block *block;
    unsigned char *file;
    uint32_t mask; /* the threads of the instruction that is run */
    uint32_t alive;
    int index, n_piece;
    Piece piece[LANES];
    bool missed; /* a try has failed, of all threads */
    Copy *copy;
    size_t n_copy, copy_room;
    uint32_t committed[LANES]; /* groups of copies, by lane */
    Product product[PRODUCTS];
    size_t n_product;
    uint32_t groups; /* of products */
    uint32_t asked;  /* products, ever */
    bool fenced;     /* registers are ready for products */
    uint32_t registers;
    char *local;
    const PtxMemory *last; /* that was found */
    /* order (order.c): by warp, the last time of it that this one knows, and its last fence for copies */
    uint32_t known[AGENTS], known_fence[AGENTS];
    uint32_t synced; /* the last time when its threads met */
};

typedef struct MBarrier {
    uint32_t at, count, pending;
    int64_t bytes;
    uint32_t phase;
    uint32_t known[AGENTS], known_fence[AGENTS];
    uint32_t made_by, made; /* warp; its time */
} MBarrier;

typedef struct Barrier {
    uint32_t arrived; /* warps */
    int expected;     /* threads; 0: nobody is there */
    uint32_t known[AGENTS], known_fence[AGENTS];
} Barrier;

enum { BOXES = 256 };
struct Block {
    const Function *f;
    const PtxLaunch *launch;
    jmp_buf *out;
    char *why;
    char *shared, *parameter;
    uint8_t *state; /* of each byte of shared memory */
    uint32_t shared_bytes, index;
    int threads, n_warp;
    Warp *warp;
    Barrier barrier[BARRIERS];
    MBarrier mbarrier[MBARRIERS];
    size_t n_mbarrier;
    Box box[BOXES];
    size_t n_box;
    uint64_t random, steps;
    int late;  /* how copies and products are delayed */
    int apart; /* which of threads that went apart go on first */
    uint32_t free_registers;
    /* by product of a warpgroup, what the warp that came first asked for */
    struct Asked {
        uint64_t what;
        uint32_t n;
    } asked[MAX_WARPS / 4][PRODUCTS];
    uint32_t now;
    struct Cell *cell; /* of shared memory, by grain */
    uint32_t *reader;  /* by cell and warp */
    PtxMemory *memory; /* sorted */
};
enum { LATE, AT_ONCE, BY_CHANCE, LATENESSES };
enum { LOWEST_FIRST, HIGHEST_FIRST, ANY_FIRST, ORDERS };

/* The state of a byte of shared memory. */
enum { UNWRITTEN, WRITTEN, IN_FLIGHT, OF_BARRIER };

/* Windows of generic addresses. */
#define SHARED_WINDOW 0x5a00000000000000u
#define LOCAL_WINDOW  0x5b00000000000000u
#define PARAM_WINDOW  0x5c00000000000000u
#define WINDOW_OF(a)  ((a)&0xff00000000000000u)
#define IN_WINDOW(a)  ((a)&0x00ffffffffffffffu)

_Noreturn void fault(const Warp *w, const Inst *i, const char *what, ...) __attribute__((format(printf, 3, 4)));
uint32_t chance(Block *b, uint32_t n); /* 0 ... n - 1 */

/* memory.c: bytes of global memory that a lane wants, checked. */
char *global_at(Warp *w, const Inst *i, uint64_t at, uint32_t bytes, bool write);
/* Bytes of shared memory: they lie in the block's and are aligned. */
void shared_check(Warp *w, const Inst *i, uint32_t at, uint32_t bytes, uint32_t align);

/* order.c: who touched shared memory, and whether what was done before is known to who touches it now. */
typedef enum Touch { READS, WRITES } Touch;
void order_touch(Warp *w, const Inst *i, int lane, uint32_t at, uint32_t bytes, Touch how);
void order_product(Warp *w, const Inst *i, uint32_t at, uint32_t bytes, uint32_t since);
void order_box(Block *b, const Box *x, uint32_t at, uint32_t bytes);
void order_leave(Warp *w, uint32_t *known, uint32_t *known_fence);             /* what it did is told there, */
void order_learn(Warp *w, const uint32_t *known, const uint32_t *known_fence); /* and read here */
void order_met(Warp *w);
void order_fence(Warp *w);
bool order_open(Block *b);
void order_begin(Block *b);
void order_close(Block *b);

/* copies.c */
void box_finish(Block *b, size_t which);
bool setmaxnreg_take(Warp *w, const Inst *i);
void copies_end(Warp *w);

/* group.c */
void products_finish(Warp *w, uint32_t left);

#define AT(T, k)      ((T *)(void *)(w->file + i->at[k]))
#define LIST(T, k, n) ((T *)(void *)(w->file + w->block->f->list[i->at[k] + (n)]))
#define EACH_LANE(...)                                                                                                 \
    do {                                                                                                               \
        if (w->mask == ALL_LANES) {                                                                                    \
            _Pragma("GCC ivdep") for (int l = 0; l < LANES; l++) { __VA_ARGS__; }                                      \
        } else {                                                                                                       \
            for (uint32_t mask_ = w->mask; mask_; mask_ &= mask_ - 1) {                                                \
                const int l = __builtin_ctz(mask_);                                                                    \
                __VA_ARGS__;                                                                                           \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#endif
