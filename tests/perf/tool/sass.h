/* sass.h - machine code of a kernel, read from the text of NVIDIA's disassembler.
 *
 * In:  what `nvdisasm -c` prints of a cubin, a kernel's name.
 * Out: its instructions, decoded: operation, operands, guard, which registers it reads and writes; places of branches.
 * The one idea: a text of one instruction a line is all that is asked of the toolkit. Whatever an
 * operation does to integers and branches follows from its name and modifiers (gpu_run.c); a name that nobody knows is
 * kept, counted, and said.
 */
#ifndef VWN_SASS_H
#define VWN_SASS_H

#include "compiler/base/base.h"

/* What people count. */
typedef enum SassClass {
    SASS_FP32, /* adds, multiplies, minima, comparisons of float32; two of 16 bits at once */
    SASS_FP64,
    SASS_INTEGER, /* integers, addresses, moves, predicates */
    SASS_CONVERT, /* from one type to another */
    SASS_SPECIAL, /* reciprocal, root, exponential: MUFU */
    SASS_SHUFFLE, /* among the threads of a warp, votes too */
    SASS_LOAD,    /* of global memory, to registers or to shared memory */
    SASS_STORE,   /* to global memory, atomics too */
    SASS_LOCAL,   /* spills and arrays of a thread */
    SASS_SHARED,  /* loads and stores of shared memory */
    SASS_TENSOR,
    SASS_BARRIER, /* of a block */
    SASS_CONTROL, /* branches, convergence, calls, what waits and does nothing */
    SASS_UNKNOWN,
    SASS_CLASSES
} SassClass;
extern const char *const sass_class_name[SASS_CLASSES];

/* Who executes it: parts of a multiprocessor that each take so many threads a cycle (gpu.h). */
typedef enum SassUnit {
    UNIT_NONE,
    UNIT_FMA,
    UNIT_IMAD,
    UNIT_ALU,
    UNIT_XU,
    UNIT_FP64,
    UNIT_LSU,
    UNIT_TENSOR,
    UNIT_COUNT
} SassUnit;
extern const char *const sass_unit_name[UNIT_COUNT];

typedef enum SassOp {
    SO_OTHER,   /* what it leaves is some number; it changes nothing else */
    SO_NOTHING, /* and this does not even that */
    SO_MOV,
    SO_CS2R,
    SO_S2R,
    SO_R2UR,
    SO_IADD3,
    SO_IADD64,
    SO_IMAD,
    SO_LEA,
    SO_SHF,
    SO_LOP3,
    SO_PLOP3,
    SO_ISETP,
    SO_SEL,
    SO_MNMX,
    SO_ADD_MNMX,
    SO_ABS,
    SO_POPC,
    SO_FLO,
    SO_BREV,
    SO_PRMT,
    SO_SGXT,
    SO_BMSK,
    SO_P2R,
    SO_R2P,
    SO_VOTE,
    SO_SHFL,
    SO_FADD,
    SO_FMUL,
    SO_FFMA,
    SO_FMNMX,
    SO_FSETP,
    SO_FSEL,
    SO_FSET,
    SO_FCHK,
    SO_MUFU,
    SO_HFMA2,
    SO_I2F,
    SO_F2I,
    SO_F2F,
    SO_F2FP,
    SO_DADD,
    SO_DMUL,
    SO_DFMA,
    SO_DSETP,
    SO_MMA,
    SO_GROUP_MMA, /* of a warpgroup, done later */
    SO_ELECT,
    SO_REGISTERS, /* which a group of warps takes and gives */
    SO_LDC,
    SO_LD,
    SO_ST,
    SO_LDS,
    SO_STS,
    SO_LDSM,
    SO_LDGSTS,
    SO_LDL,
    SO_STL,
    SO_ATOM,
    SO_RED,
    SO_PREFETCH, /* into the second-level cache */
    SO_SYNCS,    /* a barrier that counts arrivals and bytes */
    SO_MAP_COPY, /* by a tensor map */
    SO_BRA,
    SO_BSSY,
    SO_BSYNC,
    SO_BREAK,
    SO_CALL,
    SO_RET,
    SO_EXIT,
    SO_WARPSYNC,
    SO_BAR,
    SO_LOST /* a branch whose place nobody can tell */
} SassOp;

typedef enum OperandKind {
    SA_NONE,
    SA_R,
    SA_UR, /* reg */
    SA_P,
    SA_UP,     /* reg 7: always true */
    SA_B,      /* a barrier of convergence */
    SA_IMM,    /* imm: 32 bits */
    SA_FLOAT,  /* number: of the operation's type */
    SA_CONST,  /* bank, imm: the place; reg: added to it */
    SA_MEMORY, /* reg (wide: of 64 bits), uniform, imm: added up */
    SA_LABEL,  /* imm: number of an instruction */
    SA_SPECIAL /* imm: SassSpecial; GROUP: that it ends with this product */
} OperandKind;
typedef enum SassSpecial { SPECIAL_ZERO, SPECIAL_TID, SPECIAL_CTAID, SPECIAL_LANE, SPECIAL_GROUP } SassSpecial;
enum {
    RZ = 255,
    NO_REGISTER = 0xffff,
    SASS_OPERANDS = 8,
    SASS_READS = 16,
    UNIFORM = 256,
    PREDICATE = 512,
    SASS_NAMES = 528
};

typedef struct SassOperand {
    uint8_t kind, bank;
    bool negated, inverted, absolute, wide, uniform_wide;
    uint16_t reg, uniform; /* NO_REGISTER: none */
    int64_t imm;
    double number;
} SassOperand;

enum SassFlag {
    SF_UNSIGNED = 1,
    SF_EX = 2,
    SF_X = 4,
    SF_HI = 8,
    SF_WIDE = 16,
    SF_64 = 32,
    SF_LEFT = 64,
    SF_SX32 = 128,
    SF_OR = 256,
    SF_XOR = 512,
    SF_WRAP = 1024,
    SF_UNIFORM = 2048,
    SF_ROUNDED = 4096,
    SF_SHIFT_OF = 8192
};
enum SassGroup { SG_REGISTERS = 1 /* its first factor */, SG_LAST = 2 /* of its group */ };
typedef enum SassCompare {
    COMPARE_F,
    COMPARE_LT,
    COMPARE_EQ,
    COMPARE_LE,
    COMPARE_GT,
    COMPARE_NE,
    COMPARE_GE,
    COMPARE_NUM,
    COMPARE_NAN,
    COMPARE_T
} SassCompare;

typedef struct Sass {
    uint8_t op, class, unit;
    uint8_t bytes; /* of memory for each thread; LDSM: 16 for each row of 8 matrices */
    uint8_t compare;
    bool compare_unordered;
    uint8_t mode;   /* SHFL: 0 IDX, 1 UP, 2 DOWN, 3 BFLY; MUFU, MMA: which; GROUP_MMA: SassGroup */
    uint16_t flags; /* SassFlag */
    uint16_t guard; /* a predicate's name, PREDICATE + 0..15; NO_REGISTER: none */
    bool guard_not;
    uint8_t n, results; /* operands; so many of the first are what it leaves */
    SassOperand at[SASS_OPERANDS];
    uint8_t n_read, n_written; /* registers by name: R0.., UNIFORM + .., PREDICATE + .. (8 and more: uniform ones) */
    uint16_t read[SASS_READS], written[8];
    uint32_t line;    /* of the source, where the cubin says it; 0: not said */
    const char *name; /* as it is printed, with its modifiers */
    double tensor;    /* multiply-adds of a warp, which has a quarter of those of its group */
} Sass;

typedef struct SassKernel {
    const char *name;
    size_t n;
    Sass *at;
    const char *unknown; /* the first operation that nobody knows; NULL: all are known */
} SassKernel;

/* False with `why` where the kernel is not in the text or cannot be read. Everything lives in `arena`. */
bool sass_read(Arena *arena, const char *text, const char *kernel, SassKernel *out, char why[256]);

#endif
