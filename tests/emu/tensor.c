/* tensor.c - products of one row on tensor cores, alone, in the emulator.
 *
 * In:  vwn_product_bf16 of the prelude, for factors and results in memory and in tiles, of
 * float32, of bf16 and of fp16, that lie along the sum, along their own loop, or neither; sizes that
 * fill pieces of a warp and parts of them. Out: `N passed, N failed`; 77 without a C++
 * compiler. Each number is the float64 sum, of factors of 16 bits to the last bits of float32, as near as vwn_product
 * comes, of others to 16 bits; it is the same from the first thread to the last and back; nothing else is written. Faults planted
 * in the text, of which a part is drawn, are seen. The one idea: the text is compiled once for each fault, in a namespace
 * of its own.
 */
#include "backend_emu.h"

#include "support/drawn.h"
#include "support/half.h"

#include "compiler/print/emit.h"
#include "support/harness.h"

#include <math.h>

/* ---- kernels ---- */

typedef enum Kind { THERE, THERE_BF16, THERE_FP16, HELD, PARTS, ROUNDED, ROUNDED_FP16 } Kind;
typedef enum Along { SUM, OWN, APART } Along;

typedef struct Place {
    Kind kind;
    Along along; /* of a result: OWN by rows, else by columns */
} Place;

typedef struct Variant {
    Place a, b, c;
    bool add;
} Variant;

/* Of these every second one is drawn: among them both kinds of eights, of one part and of two. */
static const Variant variants[] = {
    {{HELD, SUM}, {HELD, OWN}, {HELD, OWN}, false},
    {{HELD, SUM}, {HELD, OWN}, {HELD, APART}, true},
    {{ROUNDED, OWN}, {HELD, SUM}, {THERE, OWN}, false},
    {{THERE_BF16, SUM}, {ROUNDED, OWN}, {THERE_BF16, OWN}, false},
    {{THERE, OWN}, {THERE_BF16, SUM}, {THERE, APART}, true},
    {{THERE, APART}, {HELD, APART}, {HELD, OWN}, true},
    {{THERE_BF16, APART}, {THERE_BF16, OWN}, {THERE_BF16, APART}, false},
    {{THERE_FP16, SUM}, {HELD, OWN}, {THERE_FP16, OWN}, false},
    {{THERE, OWN}, {ROUNDED_FP16, SUM}, {THERE, APART}, true},
    {{THERE_FP16, APART}, {ROUNDED_FP16, OWN}, {HELD, OWN}, true},
    {{ROUNDED, SUM}, {ROUNDED, APART}, {HELD, OWN}, false},
    {{ROUNDED, APART}, {ROUNDED, SUM}, {THERE, APART}, true},
    {{PARTS, SUM}, {THERE, OWN}, {HELD, OWN}, false},
    {{PARTS, OWN}, {ROUNDED, OWN}, {THERE_BF16, OWN}, false},
    {{PARTS, APART}, {PARTS, SUM}, {THERE, APART}, true},
    {{PARTS, SUM}, {PARTS, OWN}, {HELD, OWN}, true},
    {{ROUNDED, SUM}, {THERE_BF16, SUM}, {HELD, OWN}, false},
    {{PARTS, SUM}, {THERE_BF16, SUM}, {HELD, APART}, true},
    {{THERE_FP16, SUM}, {ROUNDED_FP16, SUM}, {THERE, OWN}, true},
    {{THERE, SUM}, {HELD, SUM}, {THERE, APART}, false},
    {{PARTS, OWN}, {HELD, OWN}, {THERE, OWN}, true},
    {{THERE_BF16, OWN}, {HELD, OWN}, {THERE, OWN}, true},
    {{THERE, OWN}, {HELD, SUM}, {THERE, OWN}, false},
    {{PARTS, SUM}, {PARTS, OWN}, {THERE_BF16, OWN}, false},
    {{HELD, SUM}, {THERE_BF16, SUM}, {HELD, OWN}, true},
    {{HELD, SUM}, {THERE_BF16, SUM}, {THERE, OWN}, false},
};

typedef struct Size {
    int64_t m, n, k;
} Size;
/* Wide, of few columns, of few rows, of few numbers, long; without fours along the sum there is one term more. */
static const Size sizes[] = {{64, 40, 24},  {8, 72, 16},  {72, 8, 40},   {24, 16, 8},   {8, 8, 20},    {40, 104, 4},
                             {8, 8, 144},   {8, 104, 8},  {104, 16, 8},  {16, 8, 300},  {8, 16, 64},   {8, 104, 24},
                             {104, 16, 24}, {8, 328, 8},  {328, 8, 8},   {16, 328, 16}, {328, 16, 16}, {8, 104, 4},
                             {11, 7, 48},   {21, 35, 16}, {7, 13, 11},   {7, 5, 139},   {13, 101, 11}, {103, 3, 12},
                             {13, 101, 20}, {103, 3, 21}, {7, 13, 60}, /* and what is no multiple of eight */
                             {8, 32, 64},   {32, 8, 96},  {24, 8, 288},  {8, 8, 160},   {16, 8, 64},   {5, 27, 80},
                             {7, 29, 96},   {8, 320, 8},  {320, 16, 8},  {5, 320, 8},   {320, 8, 4},   {16, 320, 16},
                             {320, 16, 15}, {320, 12, 7}, {320, 4, 7},   /* more numbers, 32s */
                             {320, 16, 24}, {320, 8, 32}, {320, 16, 20}, /* terms of several rows */
                             {8, 320, 32},  {5, 320, 32},                /* of sixteen terms, by both parts; */
                             {8, 352, 32},  {5, 352, 32}}; /* added to what the first eight terms are by upper ones alone */
enum { M_MOST = 328, N_MOST = 352, K_MOST = 301, MARK = 64 };

/* The first one is none. */
static const struct Fault {
    const char *name, *from, *to;
    size_t variant;
} faults[] = {
    {"nothing", "", "", 0},
    {"pieces of a fragment in a wrong order", "lane / (FIRST ? 8 : 16) % 2 * 8", "lane / 16 % 2 * 8", 12},
    {"terms of a fragment in a wrong order", "lane / (FIRST ? 16 : 8) % 2 * 8", "lane / 8 % 2 * 8", 12},
    {"numbers of a fragment in a wrong order", "r / (FIRST ? 1 : 2) % 2 * 8", "r % 2 * 8", 0},
    {"fragments of other columns", "v[j / 2][I % PB] + j % 2 * 2", "v[j / 2][I % PB]", 0},
    {"fragments of other rows", "i + B * 16 + lane / 4", "i + lane / 4", 0},
    {"lower parts in the place of upper ones", "(upper ^ 8) * 2", "upper * 2", 12},
    {"pieces of other rows", "? B * 16 * step", "? 0", 12},
    {"pieces of other columns", "row = i + B * 16 + lane / (FIRST ? 8", "row = i + lane / (FIRST ? 8", 13},
    {"the same terms of a sum again", "(f.at += 2 * n)", "(f.at += n)", 13},
    {"a result in the wrong place", "{{x[0], x[1]}}", "{{x[1], x[0]}}", 0},
    {"a sum that something else is added to", "if (add)", "if (!add)", 1},
    {"a column in the wrong place", "lane % 4 * 2, M, N, c, cm, i % 2))\n    }",
     "lane % 4, M, N, c, cm, i % 2))\n    }", 1},
    {"terms behind the end of the sum", "WHOLE || k < left ?", "true ?", 4},
    {"one term behind the end of the sum", "WHOLE || k + i < left ?", "true ?", 6},
    {"terms of a tile behind the end of the sum", "k + 1 < left ? x : k < left ? x & 0xffffu : 0", "x", 13},
    {"the share of one warp alone", "sum += share[w][i][lane]", "sum = share[w][i][lane]", 0},
    {"shares before they are there", "__syncthreads();\n    #pragma unroll 1\n    for (uint32_t i = warp;",
     "for (uint32_t i = warp;", 0},
    {"shares of eight rows where there are more", "(M + 7) / 8 * 2;", "2;", 0},
    {"the same terms in every share", "vwn_go_on<A>(a, warp * 16 * ak)", "vwn_go_on<A>(a, 0 * ak)", 0},
    {"terms of a share twice", "vwn_go_on<B>(b, STEP * bk)", "vwn_go_on<B>(b, 0 * bk)", 0},
    {"shares of a result in the wrong place", "i / 2 * 8, column", "i % 2 * 8, column", 0},
    {"shares that something else is added to", "add ? vwn_number(c, at)", "!add ? vwn_number(c, at)", 1},
    {"shares behind the last row", "if (row < M && column < N) {", "if (column < N) {", 2},
    {"columns of a long piece in one place", "x[i] + FIRST", "x[i]", 0},
    {"columns of a long piece twice", "vwn_fragment<E, J + j", "vwn_fragment<E, j", 0},
    {"one piece of rows where there are more", "LONG = CUT == VWN_LONG_ROWS, ONE = LONG",
     "LONG = CUT == VWN_LONG_ROWS, ONE = true", 0},
    {"results behind the last column", "N)\n                  vwn_put_two", "N + 8)\n                  vwn_put_two", 2},
    {"a number behind the last column", "if (k < left) vwn_put_one", "vwn_put_one", 1},
    {"results behind the last row", "x, i, ALL || row < M);", "x, i, true);", 3},
    {"fours behind the last column", "own, (int)N - at, x", "own, (int)N - at + 8, x", 3},
    {"the smallest parts left out", "I / PB + I % PB < 2", "I / PB + I % PB < 1", 0},
    {"numbers cut to 8 bits", "enum { N = 2, FP16 = 0,", "enum { N = 1, FP16 = 0,", 0},
    {"terms of what is held that are not there", "vwn_fragment<E, 0, PA, A, false, true>(u[0]",
     "vwn_fragment<E, 0, PA, A, true, true>(u[0]", 13},
    {"terms of held columns that are not there", "vwn_fragment<E, 0, PB, B, false, false>(v[0]",
     "vwn_fragment<E, 0, PB, B, true, false>(v[0]", 13},
    {"eight terms of other rows", "row = i + lane / 8 * 8, term", "row = i + lane / 16 * 8, term", 15},
    {"more terms than there are", "(term < K ? term : 0) * deep, 0)", "term * deep, 0)", 15},
    {"eights of the same columns", "v[I % PB][j], E()", "v[I % PB][0], E()", 15},
    {"eights of the same rows", "u[I / PB] + j / N * 2", "u[I / PB]", 2},
    {"eights of the same held columns", "v[I % PB][j % N * 2]", "v[I % PB][0]", 2},
    {"held rows in one half", "if (i * 8 < M) vwn_put_row", "if (i == 0) vwn_put_row", 0},
    {"columns of a short sum twice", "n < N; n += WARPS * COLUMNS", "n < N; n += COLUMNS", 15},
    {"rows of a short sum left out", "m < M; m += WARPS * ROWS) {\n        real x[TM]",
     "m < M; m += 2 * WARPS * ROWS) {\n        real x[TM]", 13},
    {"few numbers by columns as if by rows", "column = lane % 4 * 2 + i % 2, at = row * cm + column * cn",
     "column = lane % 4 * 2 + i % 2, at = row * cm + column", 15},
    {"terms left out", "k < K; k += 16", "k < K; k += 32", 0},
    {"eight terms of one row in the place of another's", "u[2 * i + 1][I / PB][S],", "u[2 * i][I / PB][S],", 16},
    {"the first four of eight terms twice", "vwn_mma_eights<E, PA * PB - 1 - i, 2,",
     "vwn_mma_eights<E, PA * PB - 1 - i, 0,", 16},
    {"the first four of eight numbers twice", "vwn_few<4>(f, i + 4)", "vwn_few<4>(f, i)", 19},
    {"upper parts of eight terms twice", "vwn_four_words(to[1], f.at + (upper ^ 8))",
     "vwn_four_words(to[1], f.at + upper)", 17},
    {"the same eight terms for all", "own + i * 8 : 0) * am + term", "own + i * 8 : 0) * am", 16},
    {"eights of the first rows alone", "if (TM > 1 || i * 8 < M)", "if (i < 1)", 16},
    {"the same eights in every share", "k = vwn_own_warp() * 32", "k = 0", 16},
    {"a line whose pieces keep their places", "vwn_bank_rows<BANK>(c.first + i) ^ own", "(c.first + i) ^ own", 15},
    {"columns of a line in one place", "x.at + (x.first ^ i)", "x.at + x.first", 15},
    {"lines behind the last row",
     "if (ALL || row < M) {\n            const auto line = vwn_line_below(vwn_line_of(c, m * cm + n - own, own), i * 8 "
     "* cm);\n            VWN_EVERY(j, TN, if (TN == 4 || n + j * 8 < N) vwn_put_two",
     "if (true) {\n            const auto line = vwn_line_below(vwn_line_of(c, m * cm + n - own, own), i * 8 * cm);\n  "
     "          VWN_EVERY(j, TN, if (TN == 4 || n + j * 8 < N) vwn_put_two",
     20},
    {"lines of another row", "vwn_there<T> c, uint32_t i, uint32_t own) { return {c.at + i + own}; }",
     "vwn_there<T> c, uint32_t i, uint32_t own) { return {c.at + i}; }", 20},
    {"neighbours in fragments of other rows", "FIRST ? h * 2 + j % 2 : j % 2 * 2 + h", "j % 2 * 2 + h", 21},
    {"four rows in the place of the first", "lane / 4 * 4) * cm + column", "lane / 4) * cm + column", 21},
    {"held columns where they lie", "{ return q / 2 * 2 * TN + n * 2 + q % 2; }", "{ return n * 8 + q; }", 21},
    {"neighbours behind the last column", "if (column < N) vwn_at<OWN>(to + j * cm) = y[j]",
     "vwn_at<OWN>(to + j * cm) = y[j]", 21},
    {"four rows to which nothing is added", "if (add && column < N) y[j]", "if (false) y[j]", 21},
    {"four rows of one", "y[j].v[k] += x[j / 2][k / 2][j % 2 * 2 + k % 2]", "y[j].v[k] += x[j / 2][k / 2][k % 2]", 22},
    {"the same 32 rows by all warps", "m = vwn_own_warp() * ROWS; m < M; m += WARPS * ROWS) {\n        real x[2]",
     "m = 0; m < M; m += WARPS * ROWS) {\n        real x[2]", 22},
    {"upper rows of two products twice", "u[0][i / 2][i % 2 * 2 + 1] = lower[i / 2][i % 2 * 2]",
     "u[0][i / 2][i % 2 * 2 + 1] = u[0][i / 2][i % 2 * 2]", 23},
    {"results of two products in one place", "y[i / 2][i % 2] = x[0][i / 2][2 + i % 2]",
     "y[i / 2][i % 2] = x[0][i / 2][i % 2]", 12},
    {"lower rows of two products behind the last", "(y, row, n + own, M2,", "(y, row, n + own, M,", 0},
    {"both parts by the same terms", "threadIdx.x % 4 * 8 % VWN_PART_TERMS)", "0)", 24},
    {"parts of the first columns alone", "column * 2 * VWN_PART_TERMS", "column % 32 * 2 * VWN_PART_TERMS", 24},
    {"lower parts that are not added", "x[i] += x[2 + i]", "x[i] += 0 * x[2 + i]", 24},
    {"lower parts of a term of a sum left out", "u[0][0][2 * r + 1] = part[1][2 * r]", "u[0][0][2 * r + 1] = 0", 25},
    {"a term of a sum by the columns of another eight", "(x[0][j], v, q, n + j * 8 + row)", "(x[0][j], v, q, n + row)",
     25},
    {"upper parts stacked under themselves", "u[1][0][r] = u[0][PA - 1][r]", "u[1][0][r] = u[0][0][r]", 17},
    {"terms of the first rows again", "(u, a, m, from[h], K - h * 16)", "(u, a, m, from[0], K)", 21},
    {"terms of the first rows held again", "2, TN, 0, TN, PA, PB>(x, u, v + h)", "2, TN, 0, TN, PA, PB>(x, u, v)", 22},
    {"the first eight terms of sixteen alone", "if (h * 8 < left)", "if (h < 1)", 21},
    {"pairs of other numbers", "x.v[r] >> 16 | (y.v[r] & 0xffff0000u)", "x.v[r]", 21},
    {"numbers of a pair in the wrong order", "x[0][part] | x[1][part] << 16", "x[1][part] | x[0][part] << 16", 14},
    {"fp16 in one part of bf16", "enum { N = 2, FP16 = 1,", "enum { N = 1, FP16 = 1,", 7},
    {"two factors of fp16 as bf16", "typedef fp16 part;", "typedef bf16 part;", 9},
};

/* What its numbers are rounded to, and what they lie in. */
static Half half_of(Place p)
{
    bool bf16 = p.kind == THERE_BF16 || p.kind == ROUNDED, fp16 = p.kind == THERE_FP16 || p.kind == ROUNDED_FP16;
    return bf16 ? HALF_BF16 : fp16 ? HALF_FP16 : HALF_NONE;
}

static bool is_narrow(Place p) { return p.kind == THERE_BF16 || p.kind == THERE_FP16; }

static bool as_it_lies(Place p) { return p.kind == ROUNDED || p.kind == PARTS; }

static const char *type_of(Place p) { return half_word(is_narrow(p) ? half_of(p) : HALF_NONE); }

/* Of a tile of float32: results lie in lines of 32. */
static int bank_of(int i) { return i == 2 ? 5 : 4; }

/* Operand number i, from number `first` on. In `space` numbers of a tile are what the tile holds. */
static void put_operand(Buf *b, Place p, int i, const char *first, const char *space, bool tensor)
{
    if (p.kind == HELD)
        tensor ? buf_printf(b, "vwn_held_rows<%d>{t%d, (uint32_t)(%s)}", bank_of(i), i, first)
               : buf_printf(b, "vwn_held{t%d, %s}", i, first);
    else if (p.kind == ROUNDED)
        buf_printf(b, "vwn_held_bf16<4>{vwn_bf16_tile(t%d), (uint32_t)(%s)}", i, first);
    else if (p.kind == PARTS)
        buf_printf(b, "vwn_held_parts<5>{vwn_bf16_tile(t%d), (uint32_t)(%s)}", i, first);
    else if (p.kind == ROUNDED_FP16)
        buf_printf(b, "%svwn_rounded_fp16<4>{vwn_held_rows<4>{t%d, %s}}", space, i, first);
    else
        buf_printf(b, "vwn_there<%s%s>{p%d + %s}", i < 2 ? "const " : "", type_of(p), i, first);
}

/* What is known of the sizes; nothing: of a function that does not ask. */
typedef struct Known {
    const char *when;
    int terms; /* K is a multiple of so many */
    int own;   /* M and N are */
} Known;
static const Known known[] = {{"true", 0, 8},
                              {"K % 32 == 0 && M % 8 + N % 8 == 0", 32, 8},
                              {"K % 32 == 16 && M % 8 + N % 8 == 0", 16, 8},
                              {"K % 16 == 8 && M % 8 + N % 8 == 0", 8, 8},
                              {"K % 8 == 4 && M % 8 + N % 8 == 0", 4, 8},
                              {"K % 4 != 0 && M % 8 + N % 8 == 0", 1, 8},
                              {"K % 16 == 8 && M % 8 + N % 8 == 4", 8, 4},
                              {"K % 32 == 0 && M % 8 + N % 8 != 0", 32, 1},
                              {"K % 32 == 16 && M % 8 + N % 8 != 0", 16, 1},
                              {"K % 16 != 0 && M % 8 + N % 8 != 0 && (K % 16 != 8 || M % 8 + N % 8 != 4)", 1, 1}};

/* How the compiler says that a factor lies. */
static Along said(Place p, const Known *is)
{
    bool fours = (p.along == OWN ? is->own : is->terms) >= (as_it_lies(p) ? 8 : 4);
    return is->terms && !fours ? APART : p.along;
}

/* rows x columns as they lie: along the sum the own loop steps by K. lines: the long extent of a result comes in 32s. */
static void put_call(Buf *b, const Variant *v, const char *space, const char *function, const char *cut, Along result,
                     const Known *is, bool lines)
{
    static const char *const along[] = {"VWN_ALONG_SUM", "VWN_ALONG_OWN", "VWN_APART"};
    int terms = is->terms;
    buf_printf(b, "%s%s<8, %s, %s, %s, %s", space, function, cut, along[said(v->a, is)], along[said(v->b, is)],
               along[result]);
    if (terms)
        buf_printf(b, ", %s, %s", terms % 16 == 0 ? "true" : "false", lines ? "32" : is->own >= 8 ? "true" : "false");
    buf_puts(b, ">(M, N, K, ");
    put_operand(b, v->a, 0, "0", space, terms);
    buf_puts(b, v->a.along == OWN ? ", 1, M, " : ", K, 1, ");
    put_operand(b, v->b, 1, "0", space, terms);
    buf_puts(b, v->b.along == OWN ? ", N, 1, " : ", 1, K, ");
    put_operand(b, v->c, 2, "0", space, terms);
    buf_printf(b, ", %s, %d);\n", v->c.along == OWN ? "N, 1" : "1, M", v->add);
}

/* A factor of sixteen terms, which are there twice, by another in two parts? */
static bool is_by_parts(const Variant *v)
{
    return v->a.along == SUM && v->b.kind == THERE_BF16 && v->b.along == SUM && v->c.along == OWN;
}

/* And is something added to that? */
static bool is_sum(const Variant *v, const Size *s) { return is_by_parts(v) && !v->add && s->n == 352; }

/* Are terms of several rows added at one time? */
static bool is_of_rows(const Variant *v)
{
    return v->a.along == OWN && !as_it_lies(v->a) && v->a.kind != HELD && v->a.kind != ROUNDED_FP16 &&
           v->c.kind == THERE && v->c.along == OWN;
}

/* Can its first rows and its last ones be two products? */
static bool is_two(const Variant *v)
{
    return v->c.along == OWN && !v->add && v->a.kind != ROUNDED_FP16 && !is_narrow(v->a) && v->a.kind != THERE;
}

/* Its first (M + 1) / 2 rows and the others as two products by one second factor. */
static void put_two(Buf *b, const Variant *v, const char *space, const Known *is, bool lines)
{
    static const char *const along[] = {"VWN_ALONG_SUM", "VWN_ALONG_OWN", "VWN_APART"};
    const char *a = along[said(v->a, is)], *fours = lines ? "32" : is->own >= 8 ? "true" : "false";
    buf_printf(b, "%svwn_two_products_bf16<8, %s, %s, %s, %s, %s>((M + 1) / 2, M / 2, N, K, ", space, a, a,
               along[said(v->b, is)], fours, fours);
    for (int lower = 0; lower < 2; lower++) {
        put_operand(b, v->a, 0, lower ? v->a.along == OWN ? "(M + 1) / 2" : "(M + 1) / 2 * K" : "0", space, true);
        buf_puts(b, v->a.along == OWN ? ", 1, M, " : ", K, 1, ");
    }
    put_operand(b, v->b, 1, "0", space, true);
    buf_puts(b, v->b.along == OWN ? ", N, 1, " : ", 1, K, ");
    put_operand(b, v->c, 2, "0", space, true);
    buf_puts(b, ", N, ");
    put_operand(b, v->c, 2, "(M + 1) / 2 * N", space, true);
    buf_puts(b, ", N);\n");
}

static void put_sum(Buf *b, const Variant *v, const char *space)
{
    buf_printf(b, "%svwn_sum_of_products_bf16<8, VWN_ALONG_SUM, VWN_ALONG_SUM>(M, N, 8, ", space);
    put_operand(b, v->a, 0, "0", space, true);
    buf_puts(b, ", K, 1, ");
    put_operand(b, v->b, 1, "0", space, true);
    buf_puts(b, ", 1, K, ");
    put_operand(b, v->a, 0, "0", space, true);
    buf_puts(b, ", K, ");
    put_operand(b, v->b, 1, "0", space, true);
    buf_puts(b, ", ");
    put_operand(b, v->c, 2, "0", space, true);
    buf_puts(b, ", N);\n");
}

/* As the compiler cuts it on tensor cores. */
static void put_calls(Buf *b, const Variant *v, const char *space, const char *function, bool tensor)
{
    static const struct Cut {
        const char *name, *when;
        int turned; /* 1: whatever way its result lies, 0: neither; -1: as it lies */
        const char *eights,
            *lines; /* its name where both factors lie along the sum; when its long extent comes in 32s */
    } cuts[] = {{"VWN_FEW_NUMBERS", "few && !turned", 0, "VWN_FEW_EIGHTS", NULL},
                {"VWN_FEW_NUMBERS", "few && turned", 1, "VWN_FEW_EIGHTS", NULL},
                {"VWN_MORE_NUMBERS", "more && !turned", 0, "VWN_MORE_EIGHTS", NULL},
                {"VWN_MORE_NUMBERS", "more && turned", 1, "VWN_MORE_EIGHTS", NULL},
                {"VWN_FEW_COLUMNS", "!few && !more && N <= 16 && M < 100", -1, NULL, NULL},
                {"VWN_LONG_COLUMNS", "!few && N <= 16 && M >= 100 && K > 16 && !rows", -1, NULL, NULL},
                {"VWN_SHORT_COLUMNS", "!few && N <= 16 && M >= 100 && (K <= 16 || rows)", -1, NULL, "M % 32 == 0"},
                {"VWN_FEW_ROWS", "!few && !more && N > 16 && N < 100 && M <= 16", -1, NULL, NULL},
                {"VWN_LONG_ROWS", "!few && N >= 100 && M <= 16 && K > 16 && !parts && !sum", -1, NULL, NULL},
                {"VWN_ROWS_BY_PARTS", "parts", -1, NULL, "N % 32 == 0"},
                {"VWN_SHORT_ROWS", "!few && N >= 100 && M <= 16 && K <= 16 && !two", -1, NULL, "N % 32 == 0"},
                {NULL, "two", -1, NULL, "N % 32 == 0"},
                {"VWN_WIDE_PIECES", "N > 16 && M > 16", -1, NULL, NULL}};
    if (!tensor) {
        put_call(b, v, space, function, "VWN_WIDE_PIECES", v->c.along, &known[0], false);
        return;
    }
    buf_puts(b, "    const bool few = ((M <= 16 && N <= 8) || (M <= 8 && N <= 16)) && K >= 48;\n");
    buf_puts(b, "    const bool more = !few && ((M <= 32 && N <= 8) || (M <= 8 && N <= 32)) && K >= 48;\n");
    buf_printf(b, "    const bool turned = N > 8%s;\n", v->c.along == OWN ? "" : " || M <= 8");
    buf_printf(b, "    const bool rows = %d && M %% 32 == 0 && K <= 32;\n", is_of_rows(v));
    buf_printf(b, "    const bool sum = %d && N == 352, parts = %d && N >= 320 && K == 32 && !sum;\n",
               is_by_parts(v) && !v->add, is_by_parts(v));
    if (is_by_parts(v) && !v->add) {
        buf_puts(b, "    if (sum)\n        ");
        put_sum(b, v, space);
    }
    buf_printf(b, "    const bool two = %d && ((N == 320 && M != 8 && K <= 16 && M <= 16) || (N == 101 && K <= 12));\n",
               is_two(v));
    buf_printf(b, "    const bool whole = %s %% 4 == 0;\n", v->c.along == OWN ? "N" : "M");
    for (size_t i = 0; i < COUNT_OF(cuts); i++)
        for (size_t k = 1; k < COUNT_OF(known); k++)
            for (int lines = 0; lines < (cuts[i].lines ? 2 : 1); lines++) {
                const struct Cut *c = &cuts[i];
                bool short_rows = !c->name || strstr(c->name, "ROWS");
                bool in_lines = v->c.kind != HELD || (v->c.along == OWN) == short_rows; /* rows of a tile are 32s */
                bool eights = c->eights && known[k].terms == 32 && v->a.along == SUM && v->b.along == SUM;
                buf_printf(b, "    if (%s && %s && %s(whole && %s))\n        ", c->when, known[k].when,
                           lines ? "" : "!", c->lines && in_lines ? c->lines : "false");
                if (c->name)
                    put_call(b, v, space, function, eights ? c->eights : c->name,
                             c->turned < 0 ? v->c.along
                             : c->turned   ? APART
                                           : OWN,
                             &known[k], lines);
                else
                    put_two(b, v, space, &known[k], lines);
            }
}

/* An element of a tile. */
static void put_filling(Buf *b, Place p, int i, const char *bank)
{
    if (p.kind == ROUNDED)
        buf_printf(b, "        vwn_bf16_tile(t%d)[vwn_bank_bf16<4>(i)] = vwn_bf16(p%d[i]);\n", i, i);
    else if (p.kind == PARTS)
        buf_printf(b, "        vwn_put_parts<5>(t%d, i, vwn_number(p%d[i]));\n", i, i);
    else
        buf_printf(b, "        t%d[%s(i)] = vwn_number(p%d[i]);\n", i, bank, i);
}

static const char *kernel_text(Ctx *ctx, const Variant *v, const char *space, bool tensor)
{
    const char *bank = tensor ? "vwn_bank_rows<4>" : "vwn_bank",
               *bank_of_results = tensor ? "vwn_bank_rows<5>" : "vwn_bank";
    Buf b = buf_new(ctx->program);
    buf_printf(&b, "KERNEL(256) @NAME@(const %s *p0, const %s *p1, %s *p2,\n", type_of(v->a), type_of(v->b),
               type_of(v->c));
    buf_puts(&b, "    int64_t M, int64_t N, int64_t K)\n"
                 "{\n"
                 "    DYN_SMEM(memory);\n"
                 "    unsigned char *shared = memory;\n"
                 "    real *const t0 = vwn_tile(shared, M * K), *const t1 = vwn_tile(shared, N * K);\n"
                 "    real *const t2 = vwn_tile(shared, M * N);\n"
                 "    for (int i = threadIdx.x; i < M * K; i += 256)\n");
    put_filling(&b, v->a, 0, bank);
    buf_puts(&b, "    for (int i = threadIdx.x; i < N * K; i += 256)\n");
    put_filling(&b, v->b, 1, bank);
    buf_printf(&b,
               "    for (int i = threadIdx.x; i < M * N; i += 256)\n"
               "        t2[%s(i)] = vwn_number(p2[i]);\n"
               "    __syncthreads();\n",
               bank_of_results);
    put_calls(&b, v, space, tensor ? "vwn_product_bf16" : "vwn_product", tensor);
    buf_puts(&b, "    __syncthreads();\n");
    if (v->c.kind == HELD)
        buf_printf(&b,
                   "    for (int i = threadIdx.x; i < M * N; i += 256)\n"
                   "        p2[i] = t2[%s(i)];\n",
                   bank_of_results);
    buf_puts(&b, "}\n");
    return b.s;
}

/* The prelude with what is proved here once for each fault that is planted, as it is for 0; each fault must fit. */
static const char *preludes(Ctx *ctx, const size_t *planted, size_t n, size_t *length)
{
    const char *all = prelude_cuda(ctx->program, length),
               *text = strstr(all, "template <int BANK> struct vwn_rounded_fp16");
    Buf b = buf_new(ctx->program);
    if (!text)
        vwn_bug(ctx, "the prelude has no products on tensor cores");
    buf_put(&b, all, (size_t)(text - all));
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        const char *place = strstr(text, faults[i].from);
        if (!place)
            vwn_bug(ctx, "%s: the prelude has no such text", faults[i].name);
        bool wanted = false;
        for (size_t k = 0; k < n; k++)
            wanted = wanted || planted[k] == i;
        if (!wanted)
            continue;
        buf_printf(&b, "namespace fault%zu {\n", i);
        buf_put(&b, text, (size_t)(place - text));
        buf_printf(&b, "%s%s}\n", faults[i].to, place + strlen(faults[i].from));
    }
    *length = b.n;
    return b.s;
}

/* ---- numbers ---- */

typedef struct Numbers {
    _Alignas(16) float a[M_MOST * K_MOST + MARK], b[N_MOST * K_MOST + MARK], c[M_MOST * N_MOST + 2 * MARK];
    _Alignas(16) uint16_t a16[M_MOST * K_MOST + MARK], b16[N_MOST * K_MOST + MARK], c16[M_MOST * N_MOST + 2 * MARK];
} Numbers;

static void fill(float *x, uint16_t *x16, int64_t n, Half type, uint64_t *state)
{
    for (int64_t i = 0; i < n; i++) {
        x[i] = (float)harness_random(state);
        x16[i] = to_half((double)x[i], type);
        x[i] = type ? (float)of_half(x16[i], type) : x[i];
    }
}

/* What stands behind an operand, and around a result, is no number. */
static void make_numbers(Numbers *x, const Variant *v, const Size *s)
{
    uint64_t state = 7;
    memset(x, 0xff, sizeof *x);
    fill(x->a, x->a16, s->m * s->k, half_of(v->a), &state);
    fill(x->b, x->b16, s->n * s->k, half_of(v->b), &state);
    for (int64_t i = 0; v->a.along == SUM && s->n >= 320 && s->k == 32 && i < s->m * s->k; i++)
        if (i % s->k >= 16) { /* by both parts */
            x->a[i] = x->a[i - 16];
            x->a16[i] = x->a16[i - 16];
        }
    fill(x->c + MARK, x->c16 + MARK, s->m * s->n, HALF_NONE, &state);
}

/* The largest error, of the sum of absolute values; of a result of 16 bits behind its rounding. */
static double error_of(const Numbers *x, const Numbers *before, const Variant *v, const Size *s)
{
    double worst = 0;
    for (int64_t i = 0; i < s->m * s->n; i++) {
        int64_t m = i / s->n, n = i % s->n, at = MARK + (v->c.along == OWN ? i : n * s->m + m);
        double want = v->add ? before->c[at] : 0, size = fabs(want);
        for (int64_t k = 0; k < s->k; k++) {
            double a = x->a[v->a.along == OWN ? k * s->m + m : m * s->k + k];
            double b = x->b[v->b.along == OWN ? k * s->n + n : n * s->k + k];
            want += a * b;
            size += fabs(a * b);
        }
        for (int64_t k = 0; is_sum(v, s) && k < 8; k++) {
            double a = x->a[m * s->k + k], b = x->b[n * s->k + k];
            want += a * b;
            size += fabs(a * b);
        }
        Half to = half_of(v->c);
        double got = to ? of_half(x->c16[at], to) : x->c[at];
        double unit = to == HALF_FP16 ? fmax(fabs(want) / 2048, 0x1p-25) : to ? fabs(want) / 256 : 0;
        double off = fabs(got - want) - unit;
        worst = isnan(off) ? INFINITY : fmax(worst, off / size);
    }
    return worst;
}

static bool marks_are_whole(const Numbers *x, const Size *s)
{
    int64_t n = s->m * s->n + MARK;
    for (int64_t i = 0; i < MARK; i++)
        if (!isnan(x->c[i]) || !isnan(x->c[n + i]) || x->c16[i] != 0xffff || x->c16[n + i] != 0xffff)
            return false;
    return true;
}

/* ---- running ---- */

static uint64_t tile_bytes(int64_t n) { return (uint64_t)(n + 31) / 32 * 128; }

/* The largest error of all sizes, or the first that is more than `most`, whichever thread comes first; infinite when something else is
 * wrong. No product copies past registers, so copies cannot come late. */
static double run(const EmuKernel *kernel, const Variant *v, bool tensor, double most, const char **said)
{
    static Numbers x, before, first;
    double worst = 0;
    for (size_t i = 0; i < COUNT_OF(sizes) && worst <= most; i++)
        for (int way = 0; way < 2; way++) {
            EmuOptions how = {.descending = way, .no_copies = true};
            Size s = sizes[i];
            if (!tensor && (s.m % 8 || s.n % 8 || s.k % 4))
                continue;
            s.k += v->a.along != SUM && v->b.along != SUM;
            make_numbers(&x, v, &s);
            before = x;
            bool a16 = is_narrow(v->a), b16 = is_narrow(v->b);
            const void *a = a16 ? (void *)x.a16 : x.a, *b = b16 ? (void *)x.b16 : x.b;
            void *c = is_narrow(v->c) ? (void *)(x.c16 + MARK) : x.c + MARK;
            void *arguments[] = {&a, &b, &c, &s.m, &s.n, &s.k};
            uint64_t shared = tile_bytes(s.m * s.k) + tile_bytes(s.n * s.k) + tile_bytes(s.m * s.n);
            *said = emu_launch(kernel, arguments, &how, 1, 256, shared);
            if (!way)
                first = x;
            if (!*said && !marks_are_whole(&x, &s))
                *said = "something is written beside the result";
            if (!*said && memcmp(&x, &first, sizeof x) != 0)
                *said = "orders differ";
            if (*said)
                return INFINITY;
            worst = fmax(worst, error_of(&x, &before, v, &s));
        }
    return worst;
}

/* A float32 sum of 41 products has lost less than the first; a factor of two parts has lost 2^-17 of each number at most, and the
 * product of two small parts is as small. */
static const double BOUND = 4e-7, PARTS_BOUND = 2.5 * 0x1p-17;

static bool is_one_part(const Variant *v)
{
    Half a = half_of(v->a), b = half_of(v->b);
    return a && b && (a == b || a == HALF_BF16 || b == HALF_BF16);
}

int main(void)
{
    enum { MOST = COUNT_OF(variants) + COUNT_OF(faults) };
    EmuText text[MOST];
    EmuKernel kernel[MOST];
    size_t variant[MOST] = {0}, planted[MOST] = {0}, plain, n = 0; /* the fault that is in each text: 0 is none */
    CaseDraw some = {.one_in = 6, .sanitized = 6}, few = {.one_in = 18, .sanitized = 18};
    char why[512];
    const char *said;
    Harness h = {0};
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    for (size_t i = 0; i < COUNT_OF(variants); i++) /* each kind of a factor is in one that is drawn */
        if (case_drawn(&some, i))
            variant[n++] = i;
    plain = n++;
    for (size_t i = 1; i < COUNT_OF(faults); i++) /* each fits the text; those that are not drawn are not compiled */
        if (case_drawn(&few, i)) {
            variant[n] = faults[i].variant;
            planted[n++] = i;
        }
    for (size_t i = 0; i < n; i++) {
        const char *space = i == plain ? "" : arena_printf(ctx->program, "fault%zu::", planted[i]);
        text[i].text = kernel_text(ctx, &variants[variant[i]], space, i != plain);
        text[i].length = strlen(text[i].text);
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
    }
    size_t length;
    const char *prelude = preludes(ctx, planted, n, &length);
    if (!CHECK(&h, emu_compile(prelude, length, text, n, kernel, why))) {
        printf("%s", why);
        return harness_end(&h);
    }
    double as_float = run(&kernel[plain], &variants[0], false, INFINITY, &said);
    printf("float32: %.1e of the sum of absolute terms%s\n", as_float, said ? said : "");
    CHECK(&h, as_float < BOUND);
    for (size_t i = 0; i < plain; i++) {
        const Variant *v = &variants[variant[i]];
        double worst = run(&kernel[i], v, true, INFINITY, &said);
        printf("variant %zu: %.1e %s\n", variant[i], worst, said ? said : "");
        CHECK_CASE(&h, is_one_part(v) ? worst < BOUND && worst < 2 * as_float : worst < PARTS_BOUND,
                   "a product on tensor cores is wrong");
    }
    for (size_t i = plain + 1; i < n; i++) {
        const char *name = faults[planted[i]].name;
        double worst = run(&kernel[i], &variants[variant[i]], true, PARTS_BOUND, &said);
        printf("%-34s %.1e %s\n", name, worst, said ? said : "");
        CHECK_CASE(&h, !(worst < PARTS_BOUND), name);
    }
    cases_end(&some);
    cases_end(&few);
    ctx_free(ctx);
    return harness_end(&h);
}
