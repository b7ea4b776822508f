/* gpu_op.c - what operations of a GPU's machine code leave in registers.
 *
 * In:  an instruction, a warp.   Out: the registers and predicates of the threads of a mask.
 * The one idea: integers and predicates exactly, since loops and addresses are made of them; float32 and float64 as the
 * host computes them, since branches ask for no more than their size; of what is neither, 1.
 */
#include "gpu_build.h"

#include <math.h>

__extension__ typedef unsigned __int128 Wider;

static const uint32_t ONES = 0x3f803f80u; /* 1 in bf16, twice; as float32 it is near 1, too */

/* ---- registers ---- */

/* Where arguments begin in the constants of a launch, and what lies in front of them. */
uint32_t gpu_constant(const Warp *w, unsigned bank, int64_t at)
{
    const GpuLaunch *l = w->block->l;
    if (bank == 2 || bank == 3 || bank == 4)
        return l->constant && at >= 0 && (size_t)at / 4 < l->n_constant ? l->constant[at / 4] : 0;
    int64_t arguments = l->arch >= 100 ? 0x380 : l->arch >= 90 ? GPU_ARGUMENTS_90 : 0x160;
    int64_t block = l->arch >= 100 ? 0x360 : 0, grid = l->arch >= 100 ? 0x370 : 0xc,
            stack = l->arch >= 100 ? 0x37c : 0x28;
    if (at >= arguments) {
        size_t i = (size_t)(at - arguments) / 8;
        return i < l->n_argument ? (uint32_t)(l->argument[i] >> ((at - arguments) % 8 >= 4 ? 32 : 0)) : 0;
    }
    if (at == block)
        return l->threads;
    if (at == grid)
        return l->blocks;
    if (at == stack)
        return (uint32_t)l->frame;
    return (at > block && at < block + 12) || (at > grid && at < grid + 12) ? 1 : 0;
}

static void all(uint32_t out[LANES], uint32_t value)
{
    for (int i = 0; i < LANES; i++)
        out[i] = value;
}

static uint32_t float_bits(double x)
{
    float f = (float)x;
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static float as_float(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

void gpu_fetch(const Warp *w, const SassOperand *o, unsigned word, uint32_t out[LANES])
{
    switch (o->kind) {
    case SA_R:
        if (o->reg >= RZ || o->reg + word >= RZ)
            all(out, 0);
        else
            memcpy(out, w->r[o->reg + word], sizeof w->r[0]);
        break;
    case SA_UR: all(out, o->reg >= RZ || o->reg + word >= RZ ? 0 : w->u[o->reg + word]); break;
    case SA_IMM: all(out, word ? (o->imm < 0 ? ~0u : (uint32_t)((uint64_t)o->imm >> 32)) : (uint32_t)o->imm); break;
    case SA_FLOAT: all(out, float_bits(o->number)); break;
    case SA_CONST: {
        int64_t at = o->imm + 4 * (int64_t)word;
        at += o->uniform != NO_REGISTER && o->uniform < RZ ? (int64_t)w->u[o->uniform] : 0;
        if (o->reg != NO_REGISTER && o->reg < RZ)
            for (int i = 0; i < LANES; i++)
                out[i] = gpu_constant(w, o->bank, at + (int64_t)w->r[o->reg][i]);
        else
            all(out, gpu_constant(w, o->bank, at));
        break;
    }
    default: all(out, 0); break;
    }
}

/* The same with its signs, as an integer of 32 bits. */
static void integer(const Warp *w, const SassOperand *o, uint32_t out[LANES])
{
    gpu_fetch(w, o, 0, out);
    for (int i = 0; i < LANES && (o->inverted || o->negated || o->absolute); i++) {
        uint32_t x = o->absolute && (int32_t)out[i] < 0 ? 0 - out[i] : out[i];
        out[i] = o->inverted ? ~x : o->negated ? 0 - x : x;
    }
}

static void real(const Warp *w, const SassOperand *o, float out[LANES])
{
    uint32_t bits[LANES];
    gpu_fetch(w, o, 0, bits);
    for (int i = 0; i < LANES; i++) {
        float x = o->kind == SA_IMM ? as_float((uint32_t)o->imm) : as_float(bits[i]);
        x = o->absolute ? fabsf(x) : x;
        out[i] = o->negated ? -x : x;
    }
}

/* Two registers, the upper one in front. */
static void pairs(const Warp *w, const SassOperand *o, uint64_t out[LANES])
{
    uint32_t low[LANES], high[LANES];
    gpu_fetch(w, o, 0, low);
    gpu_fetch(w, o, 1, high);
    for (int i = 0; i < LANES; i++)
        out[i] = (uint64_t)high[i] << 32 | low[i];
}

static void exact(const Warp *w, const SassOperand *o, double out[LANES])
{
    uint64_t bits[LANES];
    pairs(w, o, bits);
    for (int i = 0; i < LANES; i++) {
        double x = o->number;
        if (o->kind != SA_FLOAT)
            memcpy(&x, &bits[i], sizeof x);
        x = o->absolute ? fabs(x) : x;
        out[i] = o->negated ? -x : x;
    }
}

static void wide(const Warp *w, const SassOperand *o, uint64_t out[LANES])
{
    pairs(w, o, out);
    for (int i = 0; i < LANES; i++)
        out[i] = o->inverted ? ~out[i] : o->negated ? 0 - out[i] : out[i];
}

uint32_t gpu_predicate(const Warp *w, const SassOperand *o)
{
    uint32_t p = o->kind == SA_P ? w->p[o->reg & 7] : o->kind == SA_UP ? w->p[8 + (o->reg & 7)] : ~0u;
    return o->inverted && (o->kind == SA_P || o->kind == SA_UP) ? ~p : p;
}

void gpu_put(Warp *w, const SassOperand *o, unsigned word, uint32_t mask, const uint32_t value[LANES])
{
    if (o->reg >= RZ || o->reg + word >= RZ)
        return;
    if (o->kind == SA_UR) {
        if (mask)
            w->u[o->reg + word] = value[__builtin_ctz(mask)];
        return;
    }
    if (o->kind != SA_R)
        return;
    uint32_t *to = w->r[o->reg + word];
    if (mask == ~0u)
        memcpy(to, value, sizeof w->r[0]);
    else
        for (int i = 0; i < LANES; i++)
            to[i] = mask >> i & 1 ? value[i] : to[i];
}

static void put_real(Warp *w, const SassOperand *o, uint32_t mask, const float value[LANES])
{
    uint32_t bits[LANES];
    memcpy(bits, value, sizeof bits);
    gpu_put(w, o, 0, mask, bits);
}

static void put_wide(Warp *w, const SassOperand *o, uint32_t mask, const uint64_t value[LANES])
{
    uint32_t low[LANES], high[LANES];
    for (int i = 0; i < LANES; i++) {
        low[i] = (uint32_t)value[i];
        high[i] = (uint32_t)(value[i] >> 32);
    }
    gpu_put(w, o, 0, mask, low);
    gpu_put(w, o, 1, mask, high);
}

static void put_exact(Warp *w, const SassOperand *o, uint32_t mask, const double value[LANES])
{
    uint64_t bits[LANES];
    memcpy(bits, value, sizeof bits);
    put_wide(w, o, mask, bits);
}

void gpu_put_predicate(Warp *w, const SassOperand *o, uint32_t mask, uint32_t bits)
{
    if (o->reg >= 7)
        return;
    if (o->kind == SA_P)
        w->p[o->reg] = (w->p[o->reg] & ~mask) | (bits & mask);
    else if (o->kind == SA_UP && mask)
        w->p[8 + o->reg] = bits >> __builtin_ctz(mask) & 1 ? ~0u : 0;
}

/* ---- sums and products of integers ---- */

static bool predicate_at(const Sass *s, unsigned i)
{
    return i < s->n && (s->at[i].kind == SA_P || s->at[i].kind == SA_UP);
}

/* a + b + c with the carries of 32 bits: of a negated number its complement and one more. */
static void add3(Warp *w, const Sass *s, uint32_t mask)
{
    uint64_t sum[LANES] = {0};
    unsigned at = s->results, terms = 0;
    for (; at < s->n && terms < 3 && !predicate_at(s, at); at++, terms++) {
        const SassOperand *o = &s->at[at];
        uint32_t x[LANES];
        gpu_fetch(w, o, 0, x);
        for (int i = 0; i < LANES; i++)
            sum[i] += o->negated || o->inverted ? (uint64_t)(uint32_t)~x[i] + o->negated : x[i];
    }
    for (; s->flags & SF_X && at < s->n && predicate_at(s, at); at++) {
        uint32_t carry = gpu_predicate(w, &s->at[at]);
        for (int i = 0; i < LANES; i++)
            sum[i] += carry >> i & 1;
    }
    uint32_t value[LANES], once = 0, twice = 0;
    for (int i = 0; i < LANES; i++) {
        value[i] = (uint32_t)sum[i];
        once |= (uint32_t)(sum[i] >> 32 >= 1) << i;
        twice |= (uint32_t)(sum[i] >> 32 >= 2) << i;
    }
    gpu_put(w, &s->at[0], 0, mask, value);
    if (s->results > 1)
        gpu_put_predicate(w, &s->at[1], mask, once);
    if (s->results > 2)
        gpu_put_predicate(w, &s->at[2], mask, twice);
}

static void add64(Warp *w, const Sass *s, uint32_t mask)
{
    uint64_t sum[LANES] = {0};
    for (unsigned at = s->results; at < s->n && !predicate_at(s, at); at++) {
        uint64_t x[LANES];
        wide(w, &s->at[at], x);
        for (int i = 0; i < LANES; i++)
            sum[i] += x[i];
    }
    put_wide(w, &s->at[0], mask, sum);
}

/* a b + c: 32 bits, the upper 32 of 64, or 64 with c of 64. */
static void multiply(Warp *w, const Sass *s, uint32_t mask)
{
    const SassOperand *in = &s->at[s->results];
    uint32_t a[LANES], b[LANES], low[LANES], high[LANES], carry = 0, out = 0;
    uint64_t c[LANES], result[LANES];
    bool is_wide = s->flags & (SF_WIDE | SF_HI);
    integer(w, &in[0], a);
    integer(w, &in[1], b);
    if (is_wide) {
        wide(w, &in[2], c);
    } else {
        integer(w, &in[2], low);
        for (int i = 0; i < LANES; i++)
            c[i] = low[i];
    }
    if (s->flags & SF_X && predicate_at(s, s->n - 1u))
        carry = gpu_predicate(w, &s->at[s->n - 1]);
    for (int i = 0; i < LANES; i++) {
        uint64_t product =
            s->flags & SF_UNSIGNED ? (uint64_t)a[i] * b[i] : (uint64_t)((int64_t)(int32_t)a[i] * (int32_t)b[i]);
        Wider sum = (Wider)product + c[i] + (carry >> i & 1);
        result[i] = (uint64_t)sum;
        out |= (uint32_t)(sum >> 64 & 1) << i;
        low[i] = (uint32_t)sum;
        high[i] = (uint32_t)(result[i] >> 32);
    }
    if (s->flags & SF_WIDE)
        put_wide(w, &s->at[0], mask, result);
    else
        gpu_put(w, &s->at[0], 0, mask, s->flags & SF_HI ? high : low);
    if (s->results > 1)
        gpu_put_predicate(w, &s->at[1], mask, out);
}

/* (a << n) + b, with .HI the upper half of (c:a << n) + b. Of a that is taken away b has the complement and one more added, as in
 * add3(): so that the carry of 0 is that of every number which borrows nothing. */
static void shift_add(Warp *w, const Sass *s, uint32_t mask)
{
    const SassOperand *in = &s->at[s->results];
    uint32_t a[LANES], b[LANES], c[LANES] = {0}, by[LANES], carry_in = 0, carry_out = 0, value[LANES];
    bool high = s->flags & SF_HI, extended = s->flags & SF_SX32;
    unsigned next = 2;
    bool away = in[0].negated && !high;
    if (away)
        gpu_fetch(w, &in[0], 0, a);
    else
        integer(w, &in[0], a);
    integer(w, &in[1], b);
    if (high && !extended)
        integer(w, &in[next++], c);
    gpu_fetch(w, &in[next], 0, by);
    if (s->flags & SF_X && predicate_at(s, s->n - 1u))
        carry_in = gpu_predicate(w, &s->at[s->n - 1]);
    for (int i = 0; i < LANES; i++) {
        uint64_t from = (uint64_t)(extended ? (uint32_t)((int32_t)a[i] >> 31) : c[i]) << 32 | a[i];
        uint64_t moved = from << (by[i] & 31);
        moved = high ? moved >> 32 : away ? (uint64_t)(uint32_t)~moved + 1 : moved & 0xffffffffu;
        uint64_t sum = moved + b[i] + (carry_in >> i & 1);
        value[i] = (uint32_t)sum;
        carry_out |= (uint32_t)(sum >> 32 & 1) << i;
    }
    gpu_put(w, &s->at[0], 0, mask, value);
    if (s->results > 1)
        gpu_put_predicate(w, &s->at[1], mask, carry_out);
}

/* A word of {c:a} that is moved. */
static void shift(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a[LANES], by[LANES], c[LANES], value[LANES];
    bool is_signed = !(s->flags & SF_UNSIGNED), is_64 = s->flags & SF_64, high = s->flags & SF_HI;
    integer(w, &s->at[1], a);
    integer(w, &s->at[2], by);
    integer(w, &s->at[3], c);
    for (int i = 0; i < LANES; i++) {
        uint64_t x = (uint64_t)c[i] << 32 | a[i];
        uint32_t most = is_64 ? 64 : 32, n = s->flags & SF_WRAP ? by[i] % most : by[i] < most ? by[i] : most;
        if (s->flags & SF_LEFT)
            x = n < 64 ? x << n : 0;
        else if (is_signed)
            x = (uint64_t)((int64_t)x >> (n < 63 ? n : 63));
        else
            x = n < 64 ? x >> n : 0;
        value[i] = (uint32_t)(high ? x >> 32 : x);
    }
    gpu_put(w, &s->at[0], 0, mask, value);
}

/* ---- logic ---- */

static uint32_t by_table(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t out = 0;
    for (int k = 0; k < 8; k++)
        if (table >> k & 1)
            out |= (k & 4 ? a : ~a) & (k & 2 ? b : ~b) & (k & 1 ? c : ~c);
    return out;
}

static void logic(Warp *w, const Sass *s, uint32_t mask)
{
    bool tested = predicate_at(s, 0);
    const SassOperand *in = &s->at[tested ? 2 : 1];
    uint32_t a[LANES], b[LANES], c[LANES], value[LANES], any = 0;
    integer(w, &in[0], a);
    integer(w, &in[1], b);
    integer(w, &in[2], c);
    uint32_t table = (uint32_t)in[3].imm;
    for (int i = 0; i < LANES; i++) {
        value[i] = by_table(a[i], b[i], c[i], table);
        any |= (uint32_t)(value[i] != 0) << i;
    }
    gpu_put(w, &s->at[tested], 0, mask, value);
    if (tested)
        gpu_put_predicate(w, &s->at[0], mask,
                          any | (predicate_at(s, s->n - 1u) ? gpu_predicate(w, &s->at[s->n - 1]) : 0));
}

static void logic_of_predicates(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a = gpu_predicate(w, &s->at[2]), b = gpu_predicate(w, &s->at[3]), c = gpu_predicate(w, &s->at[4]);
    gpu_put_predicate(w, &s->at[0], mask, by_table(a, b, c, (uint32_t)s->at[5].imm));
    if (s->n > 6)
        gpu_put_predicate(w, &s->at[1], mask, by_table(a, b, c, (uint32_t)s->at[6].imm));
}

static bool compares(unsigned how, bool unordered, double a, double b)
{
    if (a != a || b != b)
        return unordered || how == COMPARE_NAN || how == COMPARE_T;
    switch (how) {
    case COMPARE_LT: return a < b;
    case COMPARE_EQ: return a == b;
    case COMPARE_LE: return a <= b;
    case COMPARE_GT: return a > b;
    case COMPARE_NE: return a != b;
    case COMPARE_GE: return a >= b;
    case COMPARE_NUM:
    case COMPARE_T: return true;
    default: return false;
    }
}

/* What a comparison gives, joined with the predicate behind it, and the opposite joined with it. */
static void put_compared(Warp *w, const Sass *s, uint32_t mask, uint32_t bits, unsigned joined)
{
    uint32_t other = joined < s->n ? gpu_predicate(w, &s->at[joined]) : ~0u;
    uint32_t not_bits = ~bits;
    bits = s->flags & SF_OR ? bits | other : s->flags & SF_XOR ? bits ^ other : bits & other;
    not_bits = s->flags & SF_OR ? not_bits | other : s->flags & SF_XOR ? not_bits ^ other : not_bits & other;
    gpu_put_predicate(w, &s->at[0], mask, bits);
    gpu_put_predicate(w, &s->at[1], mask, not_bits);
}

/* With .EX the upper halves, of which equal ones leave it to what the lower gave. */
static void compare_integers(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a[LANES], b[LANES], bits = 0;
    integer(w, &s->at[2], a);
    integer(w, &s->at[3], b);
    uint32_t lower = s->flags & SF_EX && s->n > 5 ? gpu_predicate(w, &s->at[5]) : 0;
    for (int i = 0; i < LANES; i++) {
        double x = s->flags & SF_UNSIGNED ? (double)a[i] : (double)(int32_t)a[i];
        double y = s->flags & SF_UNSIGNED ? (double)b[i] : (double)(int32_t)b[i];
        bool is = compares(s->compare, false, x, y);
        if (s->flags & SF_EX)
            is = x == y ? lower >> i & 1 : is;
        bits |= (uint32_t)is << i;
    }
    put_compared(w, s, mask, bits, 4);
}

static void compare_reals(Warp *w, const Sass *s, uint32_t mask)
{
    float a[LANES] = {0}, b[LANES] = {0};
    double x[LANES] = {0}, y[LANES] = {0};
    uint32_t bits = 0;
    if (s->op == SO_DSETP) {
        exact(w, &s->at[2], x);
        exact(w, &s->at[3], y);
    } else {
        real(w, &s->at[2], a);
        real(w, &s->at[3], b);
    }
    for (int i = 0; i < LANES; i++)
        bits |= (uint32_t)compares(s->compare, s->compare_unordered, s->op == SO_DSETP ? x[i] : (double)a[i],
                                   s->op == SO_DSETP ? y[i] : (double)b[i])
                << i;
    put_compared(w, s, mask, bits, 4);
}

static void select_one(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a[LANES], b[LANES], which = gpu_predicate(w, &s->at[3]);
    float x[LANES], y[LANES];
    if (s->op == SO_FSEL) {
        real(w, &s->at[1], x);
        real(w, &s->at[2], y);
        memcpy(a, x, sizeof a);
        memcpy(b, y, sizeof b);
    } else {
        integer(w, &s->at[1], a);
        integer(w, &s->at[2], b);
    }
    for (int i = 0; i < LANES; i++)
        a[i] = which >> i & 1 ? a[i] : b[i];
    gpu_put(w, &s->at[0], 0, mask, a);
}

/* The smaller of two where the last predicate is true; with an addition first. */
static void smaller(Warp *w, const Sass *s, uint32_t mask)
{
    const SassOperand *in = &s->at[s->results];
    uint32_t a[LANES], b[LANES], c[LANES];
    bool adds = s->op == SO_ADD_MNMX;
    uint32_t least = gpu_predicate(w, &s->at[s->n - 1]);
    integer(w, &in[0], a);
    integer(w, &in[1], b);
    if (adds) {
        integer(w, &in[2], c);
        for (int i = 0; i < LANES; i++) {
            a[i] += b[i];
            b[i] = c[i];
        }
    }
    for (int i = 0; i < LANES; i++) {
        bool less = s->flags & SF_UNSIGNED ? a[i] < b[i] : (int32_t)a[i] < (int32_t)b[i];
        a[i] = less == (least >> i & 1) ? a[i] : b[i];
    }
    gpu_put(w, &s->at[0], 0, mask, a);
}

/* ---- bits ---- */

static void permute(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a[LANES], how[LANES], b[LANES], value[LANES];
    integer(w, &s->at[1], a);
    integer(w, &s->at[2], how);
    integer(w, &s->at[3], b);
    for (int i = 0; i < LANES; i++) {
        uint64_t bytes = (uint64_t)b[i] << 32 | a[i];
        value[i] = 0;
        for (int k = 0; k < 4; k++) {
            uint32_t pick = how[i] >> (4 * k) & 15, byte = (uint32_t)(bytes >> (8 * (pick & 7))) & 255;
            value[i] |= (pick & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * k);
        }
    }
    gpu_put(w, &s->at[0], 0, mask, value);
}

static uint32_t bits_of(const Sass *s, uint32_t a, uint32_t b)
{
    uint32_t n;
    switch (s->op) {
    case SO_ABS: return (int32_t)a < 0 ? 0 - a : a;
    case SO_POPC: return (uint32_t)__builtin_popcount(a);
    case SO_FLO:
        return !a ? ~0u : s->flags & SF_SHIFT_OF ? (uint32_t)__builtin_clz(a) : 31u - (uint32_t)__builtin_clz(a);
    case SO_BREV:
        for (n = 0, b = 0; n < 32; n++)
            b |= (a >> n & 1) << (31 - n);
        return b;
    case SO_SGXT:
        n = b & 31;
        a = n ? a & ((1u << n) - 1) : 0;
        return !(s->flags & SF_UNSIGNED) && n && a >> (n - 1) & 1 ? a | ~((1u << n) - 1) : a;
    case SO_BMSK: return b >= 32 ? ~0u << (a & 31) : ((1u << b) - 1) << (a & 31);
    default: return a;
    }
}

static void bitwise(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a[LANES], b[LANES] = {0};
    integer(w, &s->at[1], a);
    if (s->n > 2)
        integer(w, &s->at[2], b);
    for (int i = 0; i < LANES; i++)
        a[i] = bits_of(s, a[i], b[i]);
    gpu_put(w, &s->at[0], 0, mask, a);
}

/* P2R R, PR, R, MASK and R2P PR, R, MASK; UP2UR of the predicates of the warp */
static void pack_predicates(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a[LANES], which[LANES];
    bool unpacks = s->op == SO_R2P;
    uint32_t *const p = s->name[0] == 'U' ? &w->p[8] : w->p;
    integer(w, &s->at[unpacks ? 1 : 2], a);
    integer(w, &s->at[unpacks ? 2 : 3], which);
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < 7; k++) {
            if (!(which[i] >> k & 1) || !(mask >> i & 1))
                continue;
            if (unpacks)
                p[k] = (p[k] & ~(1u << i)) | (a[i] >> k & 1) << i;
            else
                a[i] = (a[i] & ~(1u << k)) | (p[k] >> i & 1) << k;
        }
    if (!unpacks)
        gpu_put(w, &s->at[0], 0, mask, a);
}

/* ---- threads of a warp ---- */

static void vote(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t bits = gpu_predicate(w, &s->at[s->n - 1]) & mask, value[LANES];
    bool yes = strstr(s->name, ".ALL") ? bits == mask : strstr(s->name, ".EQ") ? bits == mask || !bits : bits != 0;
    all(value, bits);
    if (predicate_at(s, 0))
        gpu_put_predicate(w, &s->at[0], mask, yes ? ~0u : 0);
    else
        gpu_put(w, &s->at[0], 0, mask, value);
    if (s->results > 1)
        gpu_put_predicate(w, &s->at[1], mask, yes ? ~0u : 0);
}

/* SHFL P, R, R, LANE, CLAMP and segments */
static void shuffle(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t a[LANES], b[LANES], c[LANES], value[LANES], there = 0;
    gpu_fetch(w, &s->at[2], 0, a);
    gpu_fetch(w, &s->at[3], 0, b);
    gpu_fetch(w, &s->at[4], 0, c);
    for (uint32_t i = 0; i < LANES; i++) {
        uint32_t segment = c[i] >> 8 & 31, clamp = c[i] & 31, low = i & segment, high = low | (clamp & ~segment);
        uint32_t from = s->mode == 1   ? i - b[i]
                        : s->mode == 2 ? i + b[i]
                        : s->mode == 3 ? i ^ b[i]
                                       : low | (b[i] & ~segment);
        bool good = s->mode == 1 ? (int32_t)from >= (int32_t)high : from <= high;
        from = good ? from & 31 : i;
        value[i] = a[from];
        there |= (uint32_t)good << i;
    }
    gpu_put(w, &s->at[1], 0, mask, value);
    gpu_put_predicate(w, &s->at[0], mask, there);
}

/* ---- floats ---- */

static float special(unsigned mode, float x)
{
    switch (mode) {
    case 1: return 1 / x;
    case 2: return 1 / sqrtf(x);
    case 3: return exp2f(x);
    case 4: return log2f(x);
    case 5: return sqrtf(x);
    default: return 1;
    }
}

static void compute_real(Warp *w, const Sass *s, uint32_t mask)
{
    float a[LANES], b[LANES] = {0}, c[LANES] = {0};
    uint32_t least = gpu_predicate(w, &s->at[s->n - 1]);
    real(w, &s->at[1], a);
    if (s->n > 2)
        real(w, &s->at[2], b);
    if (s->op == SO_FFMA)
        real(w, &s->at[3], c);
    for (int i = 0; i < LANES; i++)
        switch (s->op) {
        case SO_FADD: a[i] = a[i] + b[i]; break;
        case SO_FMUL: a[i] = a[i] * b[i]; break;
        case SO_FFMA: a[i] = a[i] * b[i] + c[i]; break;
        case SO_FMNMX: a[i] = (a[i] < b[i]) == (least >> i & 1) ? a[i] : b[i]; break;
        case SO_FSET: a[i] = compares(s->compare, s->compare_unordered, (double)a[i], (double)b[i]) ? 1 : 0; break;
        default: a[i] = special(s->mode, a[i]); break;
        }
    if (s->op == SO_MUFU && s->mode == 6) { /* the upper half of a float64 */
        for (int i = 0; i < LANES; i++)
            a[i] = as_float(0x3ff00000u);
    }
    put_real(w, &s->at[0], mask, a);
}

static void compute_exact(Warp *w, const Sass *s, uint32_t mask)
{
    double a[LANES], b[LANES], c[LANES] = {0};
    exact(w, &s->at[1], a);
    exact(w, &s->at[2], b);
    if (s->op == SO_DFMA)
        exact(w, &s->at[3], c);
    for (int i = 0; i < LANES; i++)
        a[i] = s->op == SO_DADD ? a[i] + b[i] : a[i] * b[i] + c[i];
    put_exact(w, &s->at[0], mask, a);
}

/* A number of binary16, or of bfloat16, from what is printed of it. */
static uint32_t half_bits(const Sass *s, double x)
{
    if (strstr(s->name, "BF16"))
        return float_bits(x) >> 16;
    if (x == 0)
        return signbit(x) ? 0x8000u : 0;
    int e;
    double f = frexp(fabs(x), &e);
    uint32_t sign = x < 0 ? 0x8000u : 0;
    if (isinf(x) || e > 16)
        return sign | 0x7c00u;
    if (e < -13)
        return sign | (uint32_t)ldexp(fabs(x), 24);
    return sign | (uint32_t)(e + 14) << 10 | ((uint32_t)ldexp(f, 11) & 0x3ffu);
}

/* HFMA2 R, -RZ, RZ, HIGH, LOW moves a constant. */
static void two_halves(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t value[LANES];
    bool moves = s->n >= 5 && s->at[1].reg == RZ && s->at[2].reg == RZ && s->at[3].kind == SA_FLOAT;
    all(value, moves ? half_bits(s, s->at[3].number) << 16 | half_bits(s, s->at[4].number) : ONES);
    gpu_put(w, &s->at[0], 0, mask, value);
}

static void from_integer(Warp *w, const Sass *s, uint32_t mask)
{
    uint64_t x[LANES];
    float value[LANES];
    uint32_t low[LANES];
    if (s->flags & SF_64)
        wide(w, &s->at[1], x);
    integer(w, &s->at[1], low);
    for (int i = 0; i < LANES; i++) {
        double exactly = s->flags & SF_64         ? (s->flags & SF_UNSIGNED ? (double)x[i] : (double)(int64_t)x[i])
                         : s->flags & SF_UNSIGNED ? (double)low[i]
                                                  : (double)(int32_t)low[i];
        value[i] = (float)exactly;
        if (strstr(s->name, ".RP") && (double)value[i] < exactly)
            value[i] = nextafterf(value[i], INFINITY);
    }
    if (!strstr(s->name, ".F64")) {
        put_real(w, &s->at[0], mask, value);
        return;
    }
    double x64[LANES];
    for (int i = 0; i < LANES; i++)
        x64[i] = (double)(int32_t)low[i];
    put_exact(w, &s->at[0], mask, x64);
}

static void to_integer(Warp *w, const Sass *s, uint32_t mask)
{
    float a[LANES];
    double x[LANES];
    uint64_t value[LANES];
    bool from_64 = strstr(s->name, "F64") != NULL, is_unsigned = s->flags & SF_UNSIGNED;
    bool to_64 = strstr(s->name, ".U64") || strstr(s->name, ".S64");
    if (from_64)
        exact(w, &s->at[1], x);
    else
        real(w, &s->at[1], a);
    for (int i = 0; i < LANES; i++) {
        double t = trunc(from_64 ? x[i] : (double)a[i]);
        double most = to_64 ? (is_unsigned ? 0x1p64 : 0x1p63) : is_unsigned ? 0x1p32 : 0x1p31;
        double least = is_unsigned ? 0 : -most;
        value[i] = t != t        ? 0
                   : t >= most   ? (to_64 ? (is_unsigned ? UINT64_MAX : INT64_MAX) : (uint64_t)most - 1)
                   : t <= least  ? (uint64_t)(int64_t)least
                   : is_unsigned ? (uint64_t)t
                                 : (uint64_t)(int64_t)t;
    }
    if (to_64) {
        put_wide(w, &s->at[0], mask, value);
    } else {
        uint32_t low[LANES];
        for (int i = 0; i < LANES; i++)
            low[i] = (uint32_t)value[i];
        gpu_put(w, &s->at[0], 0, mask, low);
    }
}

static void between_floats(Warp *w, const Sass *s, uint32_t mask)
{
    float a[LANES];
    double x[LANES];
    if (strstr(s->name, ".F32.F64")) {
        exact(w, &s->at[1], x);
        for (int i = 0; i < LANES; i++)
            a[i] = (float)x[i];
        put_real(w, &s->at[0], mask, a);
        return;
    }
    real(w, &s->at[1], a);
    for (int i = 0; i < LANES; i++)
        x[i] = (double)a[i];
    if (strstr(s->name, ".F64.F32"))
        put_exact(w, &s->at[0], mask, x);
    else
        put_real(w, &s->at[0], mask, a);
}

/* Two float32 in one register; of fp16 it is 1, twice. */
static void packed(Warp *w, const Sass *s, uint32_t mask)
{
    float a[LANES], b[LANES];
    uint32_t value[LANES], high, low;
    real(w, &s->at[1], a);
    real(w, &s->at[2], b);
    for (int i = 0; i < LANES; i++) {
        memcpy(&high, &a[i], 4);
        memcpy(&low, &b[i], 4);
        value[i] = strstr(s->name, "BF16") ? (high & 0xffff0000u) | low >> 16 : 0x3c003c00u;
    }
    gpu_put(w, &s->at[0], 0, mask, value);
}

/* ---- the table ---- */

static void move(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t value[LANES];
    for (unsigned word = 0; word < (s->flags & SF_64 ? 2u : 1u); word++) {
        gpu_fetch(w, &s->at[1], word, value);
        gpu_put(w, &s->at[0], word, mask, value);
    }
}

uint32_t gpu_cut(uint32_t word, const Sass *s)
{
    if (s->bytes >= 4)
        return word;
    uint32_t bits = 8u * s->bytes, value = word & ((1u << bits) - 1);
    bool is_signed = strstr(s->name, ".S16") || strstr(s->name, ".S8");
    return is_signed && value >> (bits - 1) ? value | ~((1u << bits) - 1) : value;
}

static void load_constant(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t value[LANES];
    for (unsigned word = 0; word < (s->bytes + 3u) / 4u; word++) {
        gpu_fetch(w, &s->at[1], word, value);
        for (int i = 0; i < LANES; i++)
            value[i] = gpu_cut(value[i], s);
        gpu_put(w, &s->at[0], word, mask, value);
    }
}

static void read_special(Warp *w, const Sass *s, uint32_t mask)
{
    uint32_t value[LANES];
    for (uint32_t i = 0; i < LANES; i++)
        value[i] = s->at[1].imm == SPECIAL_TID     ? w->number * LANES + i
                   : s->at[1].imm == SPECIAL_CTAID ? w->block->block
                   : s->at[1].imm == SPECIAL_LANE  ? i
                                                   : 0;
    gpu_put(w, &s->at[0], 0, mask, value);
    if (s->op == SO_CS2R && !strstr(s->name, ".32"))
        gpu_put(w, &s->at[0], 1, mask, value);
}

/* Results that nothing is known of: 1 in every word of a number, and true. */
static void make_up(Warp *w, const Sass *s, uint32_t mask)
{
    static const SassOperand yes = {.kind = SA_P};
    uint32_t value[LANES];
    all(value, ONES);
    for (unsigned i = 0; i < s->n_written; i++) {
        uint16_t name = s->written[i];
        SassOperand o = yes;
        o.reg = name >= PREDICATE ? name & 7 : name >= UNIFORM ? name - UNIFORM : name;
        o.kind = name >= PREDICATE + 8 ? SA_UP : name >= PREDICATE ? SA_P : name >= UNIFORM ? SA_UR : SA_R;
        if (name >= PREDICATE)
            gpu_put_predicate(w, &o, mask, ~0u);
        else
            gpu_put(w, &o, 0, mask, value);
    }
    if (s->class == SASS_INTEGER || s->class == SASS_SHUFFLE || s->class == SASS_UNKNOWN) {
        w->block->sum->unknown++;
        if (!w->block->sum->guess)
            w->block->sum->guess = s->name;
    }
}

void gpu_compute(Warp *w, const Sass *s, uint32_t mask)
{
    switch (s->op) {
    case SO_MOV:
    case SO_R2UR: move(w, s, mask); break;
    case SO_CS2R:
    case SO_S2R: read_special(w, s, mask); break;
    case SO_IADD3: add3(w, s, mask); break;
    case SO_IADD64: add64(w, s, mask); break;
    case SO_IMAD: multiply(w, s, mask); break;
    case SO_LEA: shift_add(w, s, mask); break;
    case SO_SHF: shift(w, s, mask); break;
    case SO_LOP3: logic(w, s, mask); break;
    case SO_PLOP3: logic_of_predicates(w, s, mask); break;
    case SO_ISETP: compare_integers(w, s, mask); break;
    case SO_FSETP:
    case SO_DSETP: compare_reals(w, s, mask); break;
    case SO_SEL:
    case SO_FSEL: select_one(w, s, mask); break;
    case SO_MNMX:
    case SO_ADD_MNMX: smaller(w, s, mask); break;
    case SO_ABS:
    case SO_POPC:
    case SO_FLO:
    case SO_BREV:
    case SO_SGXT:
    case SO_BMSK: bitwise(w, s, mask); break;
    case SO_PRMT: permute(w, s, mask); break;
    case SO_P2R:
    case SO_R2P: pack_predicates(w, s, mask); break;
    case SO_VOTE: vote(w, s, mask); break;
    case SO_ELECT: gpu_put_predicate(w, &s->at[0], mask, mask & (0 - mask)); break;
    case SO_REGISTERS:
        gpu_put_predicate(w, &s->at[0], mask, ~0u);
        break; /* there are enough: kernels are proved so (tests/emu) */
    case SO_SHFL: shuffle(w, s, mask); break;
    case SO_FADD:
    case SO_FMUL:
    case SO_FFMA:
    case SO_FMNMX:
    case SO_FSET:
    case SO_MUFU: compute_real(w, s, mask); break;
    case SO_FCHK:
        gpu_put_predicate(w, &s->at[0], mask, 0);
        break; /* no quotient here is near what a float cannot hold */
    case SO_HFMA2: two_halves(w, s, mask); break;
    case SO_DADD:
    case SO_DMUL:
    case SO_DFMA: compute_exact(w, s, mask); break;
    case SO_I2F: from_integer(w, s, mask); break;
    case SO_F2I: to_integer(w, s, mask); break;
    case SO_F2F: between_floats(w, s, mask); break;
    case SO_F2FP: packed(w, s, mask); break;
    case SO_LDC: load_constant(w, s, mask); break;
    default: make_up(w, s, mask); break;
    }
}
