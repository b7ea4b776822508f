/* emit_c.c - the C dialect: what a kernel looks like for the system's C compiler.
 *
 * In:  nothing.     Out: the table that emit.c prints with, and the prelude as one text.
 * The one idea: loops over rows are plain, loops inside a row carry an OpenMP simd line, so
 * that the compiler vectorises sums without being allowed to break other arithmetic.
 */
#include "emit.h"
#include "prelude_c.h"

static const char *const real_op[OP_COUNT] = {
    [OP_TO_INT] = "vwn_to_int($a)",
    [OP_TO_REAL] = "$a",
    [OP_STOP] = "$a",
};

static const char *const integer_op[OP_COUNT] = {
    [OP_NEG] = "vwn_ineg($a)",
    [OP_ABS] = "$a < 0 ? vwn_ineg($a) : $a",
    [OP_SIGN] = "($a > 0) - ($a < 0)",
    [OP_TO_REAL] = "(real)$a",
    [OP_TO_INT] = "$a",
    [OP_STOP] = "$a",
    [OP_ADD] = "vwn_iadd($a, $b)",
    [OP_SUB] = "vwn_isub($a, $b)",
    [OP_MUL] = "vwn_imul($a, $b)",
    [OP_MIN] = "vwn_imin($a, $b)",
    [OP_MAX] = "vwn_imax($a, $b)",
    [OP_MOD] = "vwn_imod($a, $b)",
    [OP_LT] = "vwn_ilt($a, $b)",
    [OP_LE] = "vwn_ile($a, $b)",
    [OP_EQ] = "vwn_ieq($a, $b)",
    [OP_WHERE] = "vwn_iwhere($a, $b, $c)",
};

static const char *const vector_op[OP_COUNT] = {
    [OP_STOP] = "$a",
    [OP_ROUND_TO] = "vwn_round_lanes($a)",
};

const Dialect dialect_c = {
    .name = "C",
    .real = "real",
    .integer = "integer",
    .bf16 = "bf16",
    .header = "KERNEL %s(void *const *p, const int64_t *n, const double *s, int64_t lo, "
              "int64_t hi)",
    .row_loop = "for (int64_t %1$s = lo; %1$s < hi; %1$s++) {",
    .simd = "#pragma omp simd",
    .vector = "vec",
    .at = "VWN_AT(&%s)",
    .put = "VWN_PUT(&%s, %s, n%zu)",
    .lanes_sum = "vwn_lanes_sum(%s)",
    .fetch = "__builtin_prefetch(&%s)",
    .all = "%s - (vec){0}",
    .zero = "0",
    .lowest = "-INFINITE",
    .array = "%s %s[%s];",
    .op = real_op,
    .int_op = integer_op,
    .vector_op = vector_op,
};

const char *prelude_c(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    for (size_t i = 0; i < COUNT_OF(PRELUDE_C); i++) {
        buf_puts(&b, PRELUDE_C[i]);
        buf_putc(&b, '\n');
    }
    *length = b.n;
    return b.s;
}
