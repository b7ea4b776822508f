/* emit_c.c - the C dialect: what a kernel looks like for the system's C compiler.
 *
 * In:  nothing.     Out: the table that emit.c prints with, and the prelude as one text.
 * The one idea: loops over rows are plain, loops inside a row carry an OpenMP simd line, so
 * that the compiler vectorises sums without being allowed to break other arithmetic.
 */
#include "emit.h"
#include "compiler/library/library_text.h"

static void put_header(Buf *out, const Kernel *k, const Printed *p, const char *about)
{
    buf_printf(out, "/* %s */\n", about);
    buf_puts(out, "KERNEL @NAME@(void *const *p, const int64_t *n, const double *s, int64_t lo, "
                  "int64_t hi)\n{\n");
    for (size_t i = 0; i < p->buffer.n; i++) {
        const KBuffer *b = &k->buffer.v[p->buffer.v[i]];
        buf_printf(out, "    %s%s *const restrict p%zu = p[%zu];\n", b->written ? "" : "const ",
                   b->dtype == DT_INT ? "integer" : half_word(b->half), i, i);
    }
    for (size_t i = 0; i < p->ints.n; i++)
        buf_printf(out, "    const int64_t n%zu = n[%zu];\n", i, i);
    if (p->ints.n == 0)
        buf_puts(out, "    (void)n;\n");
    if (p->scalar.n == 0)
        buf_puts(out, "    (void)s;\n");
}

const Dialect dialect_c = {
    .name = "C",
    .real = "real",
    .integer = "integer",
    .row_loop = "for (int64_t %1$s = lo; %1$s < hi; %1$s++) {",
    .simd = "#pragma omp simd",
    .singly = "SINGLY;",
    .scalar = "(%s)s[%zu]",
    .vector = "vec",
    .at = "VWN_AT(&%s)",
    .put = "VWN_PUT(&%s, %s, n%zu)",
    .lanes_sum = "vwn_lanes_sum(%s)",
    .prefetch = /* a row does not fit in the first cache beside the next one */
    "__builtin_prefetch(&%s, 0, 2)",
    .all = "%s - (vec){0}",
    .zero = "0",
    .lowest = "-INFINITE",
    .array = "%s %s[%s];",
    .tile = "%s %s[%s] ALIGNED;",
    .product = "vwn_product",
    .transposed = "vwn_product_transposed",
    .put_header = put_header,
};

const char *prelude_c(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    library_text(&b, "types.c", NULL, 0);
    library_text(&b, "math.c", NULL, 0);
    library_text(&b, "vectors.c", NULL, 0);
    *length = b.n;
    return b.s;
}
