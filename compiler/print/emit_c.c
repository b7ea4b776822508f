/* emit_c.c - the C dialect: what a kernel looks like for the system's C compiler.
 *
 * In:  nothing.     Out: the table that emit.c prints with, and the prelude as one text.
 * The one idea: loops over rows are plain, loops inside a row carry an OpenMP simd line, so
 * that the compiler vectorises sums without being allowed to break other arithmetic.
 */
#include "emit_build.h"
#include "compiler/library/library_text.h"

/* The load of a statement that a guard of the loop over v leaves out in places, and that steps over elements; or
 * NULL. */
static const KEx *partial_load(const Kernel *k, const KStmt *s, IVar v)
{
    const KEx *x = s->kind == KS_LET ? kx(k, s->ex) : NULL;
    int64_t slope;
    if (!x || x->kind != KX_LOAD || !x->in[0] || !(kx(k, x->in[0])->deps & ix_bit(k->ix, v)))
        return NULL;
    return ix_slope(k->ix, x->ix, v, &slope) && slope > 1 ? x : NULL;
}

/* GCC 12 makes wrong vectors of two loads like p[2 * i] and p[2 * i + 1] under one guard that changes with i: some
 * elements are 0 that are not. Is there such a pair in the loop at s? */
bool emit_has_partial_pair(const Kernel *k, const KStmt *s)
{
    IVar v = s->kind == KS_ROWS ? k->row : s->var;
    const KStmt *all = k->stmt.v;
    size_t from = (size_t)(s - all) + 1, end = kernel_loop_end(k, from - 1);
    for (size_t i = from; i < end; i++) {
        const KEx *x = partial_load(k, &all[i], v);
        for (size_t j = i + 1; x && j < end; j++) {
            const KEx *y = partial_load(k, &all[j], v);
            if (y && y->slot == x->slot && y->in[0] == x->in[0])
                return true;
        }
    }
    return false;
}

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
