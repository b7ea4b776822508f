/* sass.c - see sass.h. The text has a line `.text.KERNEL:`, then labels and instructions:
 *     (place) [@[!]P] NAME.MODIFIER... OPERAND, OPERAND... ;
 */
#include "sass.h"

#include <stdio.h>
#include <stdlib.h>

const char *const sass_class_name[SASS_CLASSES] = {"fp32",    "fp64",    "integer", "convert", "special",
                                                   "shuffle", "load",    "store",   "local",   "shared",
                                                   "tensor",  "barrier", "control", "unknown"};
const char *const sass_unit_name[UNIT_COUNT] = {"none", "fma", "imad", "alu", "xu", "fp64", "lsu", "tensor"};

/* ---- operations ---- */

typedef struct OpRow {
    const char *name;
    uint8_t op, class, unit, results; /* results: registers and predicates that its first operands name */
} OpRow;
/* A leading U is the same operation on the numbers that all threads of a warp have in common, which `find_op` knows. */
static const OpRow table[] = {
    {"MOV", SO_MOV, SASS_INTEGER, UNIT_ALU, 1},
    {"CS2R", SO_CS2R, SASS_INTEGER, UNIT_ALU, 1},
    {"S2R", SO_S2R, SASS_INTEGER, UNIT_XU, 1},
    {"S2UR", SO_S2R, SASS_INTEGER, UNIT_XU, 1},
    {"R2UR", SO_R2UR, SASS_INTEGER, UNIT_ALU, 1},
    {"IADD3", SO_IADD3, SASS_INTEGER, UNIT_ALU, 3},
    {"IADD", SO_IADD3, SASS_INTEGER, UNIT_ALU, 3},
    {"VIADD", SO_IADD3, SASS_INTEGER, UNIT_ALU, 1},
    {"IMAD", SO_IMAD, SASS_INTEGER, UNIT_IMAD, 2},
    {"LEA", SO_LEA, SASS_INTEGER, UNIT_ALU, 2},
    {"SHF", SO_SHF, SASS_INTEGER, UNIT_ALU, 1},
    {"LOP3", SO_LOP3, SASS_INTEGER, UNIT_ALU, 2},
    {"PLOP3", SO_PLOP3, SASS_INTEGER, UNIT_ALU, 2},
    {"ISETP", SO_ISETP, SASS_INTEGER, UNIT_ALU, 2},
    {"SEL", SO_SEL, SASS_INTEGER, UNIT_ALU, 1},
    {"IMNMX", SO_MNMX, SASS_INTEGER, UNIT_ALU, 3},
    {"VIMNMX", SO_MNMX, SASS_INTEGER, UNIT_ALU, 3},
    {"VIADDMNMX", SO_ADD_MNMX, SASS_INTEGER, UNIT_ALU, 3},
    {"VIMNMX3", SO_OTHER, SASS_INTEGER, UNIT_ALU, 3},
    {"IABS", SO_ABS, SASS_INTEGER, UNIT_ALU, 1},
    {"POPC", SO_POPC, SASS_INTEGER, UNIT_XU, 1},
    {"FLO", SO_FLO, SASS_INTEGER, UNIT_XU, 1},
    {"BREV", SO_BREV, SASS_INTEGER, UNIT_XU, 1},
    {"PRMT", SO_PRMT, SASS_INTEGER, UNIT_ALU, 1},
    {"SGXT", SO_SGXT, SASS_INTEGER, UNIT_ALU, 1},
    {"BMSK", SO_BMSK, SASS_INTEGER, UNIT_ALU, 1},
    {"P2R", SO_P2R, SASS_INTEGER, UNIT_ALU, 1},
    {"R2P", SO_R2P, SASS_INTEGER, UNIT_ALU, 0},
    {"P2UR", SO_P2R, SASS_INTEGER, UNIT_ALU, 1},
    {"VOTE", SO_VOTE, SASS_SHUFFLE, UNIT_ALU, 2},
    {"VOTEU", SO_VOTE, SASS_SHUFFLE, UNIT_ALU, 2},
    {"SHFL", SO_SHFL, SASS_SHUFFLE, UNIT_LSU, 2},
    {"REDUX", SO_OTHER, SASS_SHUFFLE, UNIT_XU, 1},
    {"MATCH", SO_OTHER, SASS_SHUFFLE, UNIT_XU, 2},
    {"ELECT", SO_ELECT, SASS_SHUFFLE, UNIT_ALU, 2},
    {"LDC", SO_LDC, SASS_INTEGER, UNIT_XU, 1},
    {"ULDC", SO_LDC, SASS_INTEGER, UNIT_NONE, 1},
    {"LDCU", SO_LDC, SASS_INTEGER, UNIT_NONE, 1},
    {"FADD", SO_FADD, SASS_FP32, UNIT_FMA, 1},
    {"FMUL", SO_FMUL, SASS_FP32, UNIT_FMA, 1},
    {"FFMA", SO_FFMA, SASS_FP32, UNIT_FMA, 1},
    {"FMNMX", SO_FMNMX, SASS_FP32, UNIT_ALU, 1},
    {"FMNMX3", SO_OTHER, SASS_FP32, UNIT_ALU, 1},
    {"FSETP", SO_FSETP, SASS_FP32, UNIT_ALU, 2},
    {"FSEL", SO_FSEL, SASS_FP32, UNIT_ALU, 1},
    {"FSET", SO_FSET, SASS_FP32, UNIT_ALU, 1},
    {"FCHK", SO_FCHK, SASS_FP32, UNIT_XU, 1},
    {"FSWZADD", SO_OTHER, SASS_FP32, UNIT_FMA, 1},
    {"FADD2", SO_OTHER, SASS_FP32, UNIT_FMA, 1},
    {"FMUL2", SO_OTHER, SASS_FP32, UNIT_FMA, 1},
    {"FFMA2", SO_OTHER, SASS_FP32, UNIT_FMA, 1},
    {"HFMA2", SO_HFMA2, SASS_FP32, UNIT_FMA, 1},
    {"HADD2", SO_OTHER, SASS_FP32, UNIT_FMA, 1},
    {"HMUL2", SO_OTHER, SASS_FP32, UNIT_FMA, 1},
    {"HMNMX2", SO_OTHER, SASS_FP32, UNIT_ALU, 1},
    {"HSETP2", SO_OTHER, SASS_FP32, UNIT_ALU, 2},
    {"MUFU", SO_MUFU, SASS_SPECIAL, UNIT_XU, 1},
    {"I2F", SO_I2F, SASS_CONVERT, UNIT_XU, 1},
    {"I2FP", SO_I2F, SASS_CONVERT, UNIT_ALU, 1},
    {"F2I", SO_F2I, SASS_CONVERT, UNIT_XU, 1},
    {"F2F", SO_F2F, SASS_CONVERT, UNIT_XU, 1},
    {"F2FP", SO_F2FP, SASS_CONVERT, UNIT_ALU, 1},
    {"FRND", SO_OTHER, SASS_CONVERT, UNIT_XU, 1},
    {"I2I", SO_OTHER, SASS_CONVERT, UNIT_XU, 1},
    {"DADD", SO_DADD, SASS_FP64, UNIT_FP64, 1},
    {"DMUL", SO_DMUL, SASS_FP64, UNIT_FP64, 1},
    {"DFMA", SO_DFMA, SASS_FP64, UNIT_FP64, 1},
    {"DSETP", SO_DSETP, SASS_FP64, UNIT_FP64, 2},
    {"HMMA", SO_MMA, SASS_TENSOR, UNIT_TENSOR, 1},
    {"IMMA", SO_MMA, SASS_TENSOR, UNIT_TENSOR, 1},
    {"HGMMA", SO_GROUP_MMA, SASS_TENSOR, UNIT_NONE, 1},
    {"WARPGROUP", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"FENCE", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"LDG", SO_LD, SASS_LOAD, UNIT_LSU, 1},
    {"LD", SO_LD, SASS_LOAD, UNIT_LSU, 1},
    {"STG", SO_ST, SASS_STORE, UNIT_LSU, 0},
    {"ST", SO_ST, SASS_STORE, UNIT_LSU, 0},
    {"LDS", SO_LDS, SASS_SHARED, UNIT_LSU, 1},
    {"STS", SO_STS, SASS_SHARED, UNIT_LSU, 0},
    {"LDSM", SO_LDSM, SASS_SHARED, UNIT_LSU, 1},
    {"LDGSTS", SO_LDGSTS, SASS_LOAD, UNIT_LSU, 0},
    {"LDL", SO_LDL, SASS_LOCAL, UNIT_LSU, 1},
    {"STL", SO_STL, SASS_LOCAL, UNIT_LSU, 0},
    {"ATOMG", SO_ATOM, SASS_STORE, UNIT_LSU, 2},
    {"ATOM", SO_ATOM, SASS_STORE, UNIT_LSU, 2},
    {"ATOMS", SO_ATOM, SASS_SHARED, UNIT_LSU, 1},
    {"RED", SO_RED, SASS_STORE, UNIT_LSU, 0},
    {"REDG", SO_RED, SASS_STORE, UNIT_LSU, 0},
    {"BRA", SO_BRA, SASS_CONTROL, UNIT_NONE, 0},
    {"BSSY", SO_BSSY, SASS_CONTROL, UNIT_NONE, 0},
    {"BSYNC", SO_BSYNC, SASS_CONTROL, UNIT_NONE, 0},
    {"BREAK", SO_BREAK, SASS_CONTROL, UNIT_NONE, 0},
    {"CALL", SO_CALL, SASS_CONTROL, UNIT_NONE, 0},
    {"RET", SO_RET, SASS_CONTROL, UNIT_NONE, 0},
    {"EXIT", SO_EXIT, SASS_CONTROL, UNIT_NONE, 0},
    {"WARPSYNC", SO_WARPSYNC, SASS_CONTROL, UNIT_NONE, 0},
    {"BAR", SO_BAR, SASS_BARRIER, UNIT_NONE, 0},
    {"SYNCS", SO_SYNCS, SASS_BARRIER, UNIT_LSU, 1},
    {"UTMALDG", SO_MAP_COPY, SASS_LOAD, UNIT_NONE, 0},
    {"USETMAXREG", SO_REGISTERS, SASS_CONTROL, UNIT_NONE, 1},
    {"NOP", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"YIELD", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"DEPBAR", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"LDGDEPBAR", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"ENDCOLLECTIVE", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"ERRBAR", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"MEMBAR", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"CCTL", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"BMOV", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"NANOSLEEP", SO_NOTHING, SASS_CONTROL, UNIT_NONE, 0},
    {"BRX", SO_LOST, SASS_CONTROL, UNIT_NONE, 0},
    {"JMX", SO_LOST, SASS_CONTROL, UNIT_NONE, 0},
};

static const OpRow *row_named(const char *name, size_t n)
{
    for (size_t i = 0; i < COUNT_OF(table); i++)
        if (strlen(table[i].name) == n && !memcmp(table[i].name, name, n))
            return &table[i];
    return NULL;
}

/* Of "UIADD3.X" the row of IADD3, and that it is uniform. */
static const OpRow *find_op(const char *name, bool *uniform)
{
    size_t n = strcspn(name, ".");
    const OpRow *r = row_named(name, n);
    *uniform = !r && name[0] == 'U' && (r = row_named(name + 1, n - 1));
    return r;
}

/* Has the name this modifier? */
static bool has(const char *name, const char *modifier)
{
    size_t n = strlen(modifier);
    for (const char *p = strchr(name, '.'); p; p = strchr(p + 1, '.'))
        if (!strncmp(p + 1, modifier, n) && (p[1 + n] == '.' || !p[1 + n]))
            return true;
    return false;
}

static uint8_t compare_of(const char *name, bool *unordered)
{
    static const char *const names[] = {"F", "LT", "EQ", "LE", "GT", "NE", "GE", "NUM", "NAN", "T"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        char with[8];
        snprintf(with, sizeof with, "%sU", names[i]);
        *unordered = has(name, with);
        if (*unordered || has(name, names[i]))
            return (uint8_t)i;
    }
    return COMPARE_T;
}

static uint16_t flags_of(const char *name)
{
    static const struct {
        const char *modifier;
        uint16_t flag;
    } of[] = {{"U32", SF_UNSIGNED}, {"U64", SF_UNSIGNED | SF_64},
              {"S64", SF_64},       {"64", SF_64},
              {"EX", SF_EX},        {"X", SF_X},
              {"HI", SF_HI},        {"WIDE", SF_WIDE},
              {"L", SF_LEFT},       {"SX32", SF_SX32},
              {"OR", SF_OR},        {"XOR", SF_XOR},
              {"W", SF_WRAP},       {"SH", SF_SHIFT_OF},
              {"F64", SF_64},       {"RP", SF_ROUNDED},
              {"RM", SF_ROUNDED},   {"RZ", SF_ROUNDED}};
    unsigned flags = 0;
    for (size_t i = 0; i < COUNT_OF(of); i++)
        flags |= has(name, of[i].modifier) ? of[i].flag : 0u;
    return (uint16_t)flags;
}

static uint8_t bytes_of(const char *name)
{
    static const struct {
        const char *modifier;
        uint8_t bytes;
    } of[] = {{"128", 16}, {"64", 8}, {"U16", 2}, {"S16", 2}, {"16", 2}, {"U8", 1}, {"S8", 1}, {"8", 1}};
    if (!strncmp(name, "LDSM", 4))
        return has(name, "4") ? 64 : has(name, "2") ? 32 : 16;
    for (size_t i = 0; i < COUNT_OF(of); i++)
        if (has(name, of[i].modifier))
            return of[i].bytes;
    return 4;
}

/* ---- operands ---- */

static bool starts(const char *s, const char *with) { return !strncmp(s, with, strlen(with)); }

/* "R12", "RZ", "UR5", "URZ", "P0", "PT", "UP1", "UPT", "B3"; *end: behind it. */
static bool read_register(const char *s, const char **end, uint8_t *kind, uint16_t *reg)
{
    static const struct {
        const char *prefix, *none;
        uint8_t kind;
        uint16_t last;
    } of[] = {{"UR", "URZ", SA_UR, RZ},
              {"R", "RZ", SA_R, RZ},
              {"UP", "UPT", SA_UP, 7},
              {"P", "PT", SA_P, 7},
              {"B", NULL, SA_B, 0}};
    for (size_t i = 0; i < COUNT_OF(of); i++) {
        const char *p = s + strlen(of[i].prefix);
        char *behind;
        if (of[i].none && starts(s, of[i].none)) {
            *kind = of[i].kind;
            *reg = of[i].last;
            *end = s + strlen(of[i].none);
            return true;
        }
        if (!starts(s, of[i].prefix) || *p < '0' || *p > '9')
            continue;
        unsigned long n = strtoul(p, &behind, 10);
        *kind = of[i].kind;
        *reg = (uint16_t)(n < RZ ? n : RZ);
        *end = behind;
        return true;
    }
    return false;
}

/* "[R2.64+UR4+0x10]", "[UR4]", "[0x20]", "[R1+-0x8]" */
static void read_memory(const char *s, const char *end, SassOperand *o)
{
    o->kind = SA_MEMORY;
    o->reg = o->uniform = NO_REGISTER;
    while (s < end) {
        uint8_t kind;
        uint16_t reg;
        const char *behind;
        if (*s == '+') {
            s++;
            continue;
        }
        if (read_register(s, &behind, &kind, &reg)) {
            bool wide = starts(behind, ".64");
            int scale = starts(behind, ".X4") ? 4 : starts(behind, ".X8") ? 8 : starts(behind, ".X16") ? 16 : 1;
            if (kind == SA_R) {
                o->reg = reg;
                o->wide = wide || o->wide;
                o->bank = (uint8_t)scale; /* what the register is times */
            } else {
                o->uniform = reg;
                o->uniform_wide = wide;
            }
            s = behind;
            while (s < end && *s != '+')
                s++;
            continue;
        }
        o->imm += strtoll(s, NULL, 0);
        while (s < end && *s != '+')
            s++;
    }
}

/* "c[0x0][0x160]", "c[0x3][R4+0x10]" */
static void read_constant(const char *s, SassOperand *o)
{
    o->kind = SA_CONST;
    o->reg = o->uniform = NO_REGISTER;
    o->bank = (uint8_t)strtoul(s + 2, NULL, 0);
    const char *p = strchr(s + 2, '['), *end = p ? strchr(p, ']') : NULL;
    if (!end)
        return;
    SassOperand place = {0};
    read_memory(p + 1, end, &place);
    o->reg = place.reg;
    o->uniform = place.uniform;
    o->imm = place.imm;
}

static void read_special(const char *s, SassOperand *o)
{
    o->kind = SA_SPECIAL;
    o->imm = starts(s, "SR_TID.X")     ? SPECIAL_TID
             : starts(s, "SR_CTAID.X") ? SPECIAL_CTAID
             : starts(s, "SR_LANEID")  ? SPECIAL_LANE
             : starts(s, "gsb")        ? SPECIAL_GROUP
                                       : SPECIAL_ZERO;
}

/* One operand; labels are left as the place of their name in the text, to be found later. */
static void read_operand(const char *s, SassOperand *o)
{
    *o = (SassOperand){.reg = NO_REGISTER, .uniform = NO_REGISTER};
    for (;; s++) {
        if (*s == '-' && s[1] != '0' && (s[1] < '0' || s[1] > '9') && !starts(s, "-QNAN") && !starts(s, "-INF") &&
            !starts(s, "-SNAN"))
            o->negated = true;
        else if (*s == '!')
            o->inverted = true;
        else if (*s == '~')
            o->inverted = true;
        else if (*s == '|')
            o->absolute = true;
        else
            break;
    }
    const char *end;
    const char *bracket = strchr(s, '[');
    uint8_t kind;
    if (starts(s, "desc[") && (bracket = strchr(bracket + 1, '[')))
        read_memory(bracket + 1, s + strlen(s) - 1, o);
    else if (starts(s, "c["))
        read_constant(s, o);
    else if (*s == '[')
        read_memory(s + 1, s + strlen(s) - 1, o);
    else if (*s == '`')
        o->kind = SA_LABEL;
    else if (starts(s, "SR") || starts(s, "gsb"))
        read_special(s, o);
    else if ((starts(s, "PR") && (s[2] == 0 || s[2] == '.')) || !strcmp(s, "UPR"))
        o->kind = SA_NONE;
    else if (read_register(s, &end, &kind, &o->reg)) {
        o->kind = kind;
        o->wide = starts(end, ".64");
    } else if (strchr(s, 'x')) {
        o->kind = SA_IMM;
        o->imm = strtoll(s, NULL, 0);
    } else {
        o->kind = SA_FLOAT;
        o->number = starts(s, "+INF")   ? 1e300 * 1e300
                    : starts(s, "-INF") ? -1e300 * 1e300
                    : strstr(s, "NAN")  ? 0.0
                                        : strtod(s, NULL);
        o->imm = (int64_t)o->number; /* a small integer is printed so, too */
    }
}

/* ---- what an instruction reads and writes ---- */

static uint16_t register_name(const SassOperand *o)
{
    if ((o->kind == SA_R || o->kind == SA_UR) && o->reg >= RZ)
        return NO_REGISTER;
    if ((o->kind == SA_P || o->kind == SA_UP) && o->reg >= 7)
        return NO_REGISTER;
    switch (o->kind) {
    case SA_R: return o->reg;
    case SA_UR: return (uint16_t)(UNIFORM + o->reg);
    case SA_P: return (uint16_t)(PREDICATE + o->reg);
    case SA_UP: return (uint16_t)(PREDICATE + 8 + o->reg);
    default: return NO_REGISTER;
    }
}

static void add_name(uint16_t *list, uint8_t *n, unsigned most, uint16_t name, unsigned words)
{
    for (unsigned i = 0; i < words && name != NO_REGISTER && *n < most; i++)
        list[(*n)++] = (uint16_t)(name + i);
}

/* Registers of a result or an operand, by what the operation is. */
static unsigned words_of(const Sass *s, unsigned operand, bool result)
{
    unsigned memory = (s->bytes + 3u) / 4u;
    switch (s->op) {
    case SO_GROUP_MMA: return result ? 8 : 4; /* and more, which nobody asks for */
    case SO_MMA: return result || operand == 1 || operand == 3 ? 4 : 2;
    case SO_LDSM: return s->bytes / 16;
    case SO_LDC:
    case SO_LD:
    case SO_LDS:
    case SO_LDL: return result ? memory : 1;
    case SO_ST:
    case SO_STS:
    case SO_STL: return operand == 1 ? memory : 1;
    case SO_CS2R: return strstr(s->name, ".32") ? 1 : 2;
    case SO_DADD:
    case SO_DMUL:
    case SO_DFMA: return 2;
    case SO_DSETP: return result ? 1 : 2;
    case SO_IMAD: return (s->flags & SF_WIDE) && (result || operand == 3) ? 2 : 1;
    case SO_MOV:
    case SO_IADD64: return s->flags & SF_64 ? 2 : 1;
    case SO_I2F: return !result && (s->flags & SF_64) ? 2 : 1;
    case SO_F2I: return result && strstr(s->name, "64.TRUNC") && !strstr(s->name, "F64.TRUNC") ? 2 : 1;
    case SO_F2F: return strstr(s->name, result ? ".F64." : ".F32.F64") ? 2 : 1;
    case SO_RET: return 2;
    default:
        return s->name[1] && strstr(s->name, "2") && s->class == SASS_FP32 && s->name[0] == 'F' ? 2 : 1; /* FFMA2 */
    }
}

static bool is_predicate(const SassOperand *o) { return o->kind == SA_P || o->kind == SA_UP; }

/* How many of the first operands are results. A carry or a second answer may stand beside a number, before it where
 * the operation is one of logic, of memory or among threads. */
static unsigned results_of(const Sass *s, unsigned most)
{
    if (!most || !s->n)
        return 0;
    if (is_predicate(&s->at[0]))
        return s->op == SO_VOTE ? 1 : most < s->n ? most : s->n;
    unsigned n = 1;
    while (n < most && n < s->n && is_predicate(&s->at[n]))
        n++;
    return n;
}

static void find_names(Sass *s, unsigned most)
{
    s->results = (uint8_t)results_of(s, most);
    for (unsigned i = 0; i < s->n; i++) {
        const SassOperand *o = &s->at[i];
        bool predicate = is_predicate(o);
        if (i < s->results) {
            add_name(s->written, &s->n_written, COUNT_OF(s->written), register_name(o),
                     predicate ? 1 : words_of(s, i, true));
            continue;
        }
        if (o->kind == SA_MEMORY || o->kind == SA_CONST) {
            SassOperand part = {.kind = SA_R, .reg = o->reg};
            if (o->reg != NO_REGISTER)
                add_name(s->read, &s->n_read, SASS_READS, register_name(&part), o->wide ? 2 : 1);
            part = (SassOperand){.kind = SA_UR, .reg = o->uniform};
            if (o->uniform != NO_REGISTER)
                add_name(s->read, &s->n_read, SASS_READS, register_name(&part), 1);
        } else {
            add_name(s->read, &s->n_read, SASS_READS, register_name(o), predicate ? 1 : words_of(s, i, false));
        }
    }
    if (s->guard != NO_REGISTER)
        add_name(s->read, &s->n_read, SASS_READS, s->guard, 1);
}

/* ---- lines ---- */

typedef struct Label {
    const char *name;
    size_t length;
    uint32_t at;
} Label;
typedef struct Wanted {
    const char *name;
    size_t length;
    uint32_t instruction, operand;
} Wanted;
typedef struct SassReader {
    Arena *arena;
    SassKernel *out;
    VEC(Sass) code;
    VEC(Label) label;
    VEC(Wanted) wanted;
    uint32_t line;
} SassReader;

/* Multiply-adds of a warp: m16n8k16 and the like, m64nNk16 of four. */
static double tensor_work(const char *name)
{
    const char *groups = strstr(name, "GMMA.64x");
    if (groups)
        return 16 * 16 * strtod(groups + 8, NULL);
    return has(name, "16816")   ? 16 * 8 * 16
           : has(name, "1688")  ? 16 * 8 * 8
           : has(name, "16832") ? 16 * 8 * 32
                                : 16 * 8 * 16;
}

static void finish(Sass *s, const OpRow *row, bool uniform)
{
    const char *name = s->name;
    s->op = row ? row->op : SO_OTHER;
    s->class = row ? row->class : SASS_UNKNOWN;
    s->unit = row ? row->unit : UNIT_ALU;
    s->flags = (uint16_t)(flags_of(name) | (uniform || starts(name, "ULDC") || starts(name, "LDCU") ? SF_UNIFORM : 0u));
    if (uniform)
        s->unit = UNIT_NONE;
    s->bytes = bytes_of(name);
    s->compare = compare_of(name, &s->compare_unordered);
    if (s->op == SO_SHFL)
        s->mode = has(name, "UP") ? 1 : has(name, "DOWN") ? 2 : has(name, "BFLY") ? 3 : 0;
    if (s->op == SO_MUFU)
        s->mode = has(name, "RCP")    ? 1
                  : has(name, "RSQ")  ? 2
                  : has(name, "EX2")  ? 3
                  : has(name, "LG2")  ? 4
                  : has(name, "SQRT") ? 5
                                      : 0;
    if (s->op == SO_MUFU && (has(name, "RCP64H") || has(name, "RSQ64H")))
        s->mode = 6;
    if (s->op == SO_IADD3 && (s->flags & SF_64))
        s->op = SO_IADD64;
    if (s->op == SO_IMAD && (has(name, "MOV") || has(name, "IADD") || has(name, "SHL")))
        s->unit = UNIT_IMAD;
    if (s->op == SO_HFMA2 && s->n >= 5 && s->at[1].reg == RZ && s->at[2].reg == RZ)
        s->class = SASS_INTEGER; /* a move of a constant */
    if (s->op == SO_GROUP_MMA && s->n > 1)
        s->mode = (s->at[1].kind == SA_R ? SG_REGISTERS : 0) | (s->at[s->n - 1].kind == SA_SPECIAL ? SG_LAST : 0);
    if (s->op == SO_MMA || s->op == SO_GROUP_MMA)
        s->tensor = tensor_work(name);
    if (s->op == SO_NOTHING && starts(name, "CCTL") && has(name, "PF2") && s->n) { /* a prefetch */
        s->op = SO_PREFETCH;
        s->class = SASS_LOAD;
        s->unit = UNIT_LSU;
        s->at[0].wide = has(name, "E");
    }
    find_names(s, row ? row->results : 1);
}

/* NAME OPERAND, OPERAND ; with a guard before it. `text` is a copy that may be cut up. */
static void read_instruction(SassReader *r, char *text)
{
    Sass s = {.guard = NO_REGISTER, .line = r->line};
    while (*text == ' ' || *text == '{')
        text++;
    if (*text == '@') {
        uint8_t kind = 0;
        uint16_t reg = 7;
        const char *end = text + 1;
        s.guard_not = text[1] == '!';
        if (read_register(text + 1 + s.guard_not, &end, &kind, &reg) && reg < 7)
            s.guard = (uint16_t)(PREDICATE + (kind == SA_UP ? 8 : 0) + reg);
        else if (s.guard_not)
            s.guard = PREDICATE + 7; /* never */
        text = (char *)end + strspn(end, " ");
    }
    size_t n = strcspn(text, " ;");
    s.name = arena_copy(r->arena, text, n);
    char *p = text + n;
    while (*p && *p != ';' && s.n < SASS_OPERANDS) {
        p += strspn(p, " ");
        size_t length = strcspn(p, ",;");
        char *operand = p;
        p += length + (p[length] == ',');
        bool last = operand[length] != ',';
        while (length && operand[length - 1] == ' ')
            length--;
        if (!length)
            break;
        char *copy = arena_copy(r->arena, operand, length);
        read_operand(copy, &s.at[s.n]);
        if (s.at[s.n].kind == SA_LABEL)
            vec_push(r->arena, &r->wanted, (Wanted){copy + 2, strcspn(copy + 2, ")"), (uint32_t)r->code.n, s.n});
        s.n++;
        if (last)
            break;
    }
    bool uniform;
    const OpRow *row = find_op(s.name, &uniform);
    finish(&s, row, uniform);
    if (!row && !r->out->unknown)
        r->out->unknown = s.name;
    vec_push(r->arena, &r->code, s);
}

static bool find_labels(SassReader *r, char why[256])
{
    for (size_t i = 0; i < r->wanted.n; i++) {
        const Wanted *w = &r->wanted.v[i];
        size_t j = 0;
        while (j < r->label.n && (r->label.v[j].length != w->length || memcmp(r->label.v[j].name, w->name, w->length)))
            j++;
        if (j == r->label.n) {
            snprintf(why, 256, "a branch leads to %.*s, which is nowhere", (int)(w->length < 80 ? w->length : 80),
                     w->name);
            return false;
        }
        r->code.v[w->instruction].at[w->operand].imm = r->label.v[j].at;
    }
    return true;
}

/* "//## File "x", line 12 inlined at ..." */
static uint32_t line_number(const char *s, const char *end)
{
    for (const char *p = s; p + 6 < end; p++)
        if (!strncmp(p, ", line ", 7))
            return (uint32_t)strtoul(p + 7, NULL, 10);
    return 0;
}

bool sass_read(Arena *arena, const char *text, const char *kernel, SassKernel *out, char why[256])
{
    SassReader r = {.arena = arena, .out = out};
    char head[256];
    *out = (SassKernel){.name = kernel};
    why[0] = 0;
    snprintf(head, sizeof head, "\n.text.%.200s:\n", kernel);
    const char *p = strstr(text, head);
    if (!p) {
        snprintf(why, 256, "the disassembler printed nothing of the kernel %.80s", kernel);
        return false;
    }
    p += strlen(head);
    vec_push(arena, &r.label, (Label){kernel, strlen(kernel), 0});
    for (const char *end; *p; p = *end ? end + 1 : end) {
        end = p + strcspn(p, "\n");
        const char *s = p + strspn(p, " \t");
        size_t n = (size_t)(end - s);
        if (!strncmp(s, "//----", 6) || !strncmp(s, ".section", 8))
            break;
        if (!strncmp(s, "//##", 4)) {
            r.line = line_number(s, end);
        } else if (!strncmp(s, "/*", 2) && strstr(s, "*/") && strstr(s, "*/") < end) {
            s = strstr(s, "*/") + 2;
            read_instruction(&r, arena_copy(arena, s, (size_t)(end - s)));
        } else if (n > 1 && end[-1] == ':') {
            vec_push(arena, &r.label, (Label){s, n - 1, (uint32_t)r.code.n});
        }
    }
    out->n = r.code.n;
    out->at = r.code.v;
    if (!out->n) {
        snprintf(why, 256, "the kernel %.80s has no instruction that can be read", kernel);
        return false;
    }
    return find_labels(&r, why);
}
