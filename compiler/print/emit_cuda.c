/* emit_cuda.c - the CUDA dialect: what a kernel looks like for the threads of a GPU.
 *
 * In:  kernels of kernel_map_threads().     Out: the table that emit.c prints with, and the prelude as one
 *      text.
 * The one idea: the text says which thread does what in names of the prelude alone, so the same
 * text is compiled for a device and run by an emulator.
 */
#include "emit.h"
#include "compiler/library/library_text.h"

/* An argument has 8 bytes in any case. */
static const char *size_type(const Kernel *k, KIndex least)
{
    return k->device.mapping.index >= least ? "size32" : "int64_t";
}

size_t emit_changing(const Kernel *k, const Printed *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->ints.n; i++)
        n += kernel_argument_changes(&p->ints.v[i]);
    for (size_t i = 0; i < p->scalar.n; i++)
        n += k->scalar.v[p->scalar.v[i]].host >= 0;
    return n;
}

/* What changes from run to run, under the names that arguments have. */
static void put_changing(Buf *out, const Kernel *k, const Printed *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->ints.n; i++)
        if (kernel_argument_changes(&p->ints.v[i]))
            buf_printf(out, "    const int64_t n%zu = now[%zu].whole;\n", i, n++);
    for (size_t i = 0; i < p->scalar.n; i++)
        if (k->scalar.v[p->scalar.v[i]].host >= 0)
            buf_printf(out, "    const real s%zu = now[%zu].single;\n", i, n++);
}

/* An argument on a line that has others, or on one of its own. */
static void put_argument(Buf *out, size_t *n, const char *type, char name, size_t i)
{
    buf_printf(out, "%s%s %c%zu,", *n == 0 ? "    " : *n % 6 ? " " : "\n    ", type, name, i);
    ++*n;
}

static void put_parameters(Buf *out, const Kernel *k, const Printed *p)
{
    size_t n = 0;
    for (size_t i = 0; i < p->buffer.n; i++) {
        const KBuffer *b = &k->buffer.v[p->buffer.v[i]];
        buf_printf(out, "    %s%s *__restrict__ p%zu,\n", b->written ? "" : "const ",
                   b->dtype == DT_INT ? "integer" : half_word(b->half), i);
    }
    if (emit_changing(k, p))
        buf_puts(out, "    const number *__restrict__ now,\n");
    if (p->grid.blocks)
        buf_printf(out, "    real *__restrict__ p%zu,\n", p->buffer.n);
    for (size_t i = 0; i < p->ints.n; i++)
        if (!kernel_argument_changes(&p->ints.v[i]))
            put_argument(out, &n, size_type(k, INDEX_WIDE_ROWS), 'n', i);
    buf_puts(out, n ? "\n" : "");
    n = 0;
    for (size_t i = 0; i < p->scalar.n; i++)
        if (k->scalar.v[p->scalar.v[i]].host < 0)
            put_argument(out, &n, "number32", 's', i);
    buf_puts(out, n ? "\n" : "");
    buf_printf(out, "    %s rows)\n{\n", size_type(k, INDEX_NARROW));
}

static void put_header(Buf *out, const Kernel *k, const Printed *p, const char *about)
{
    const KMapping *s = &k->device.mapping;
    buf_printf(out, "/* %s\n * ", about);
    if (s->by_row)
        buf_printf(out, "A thread a row; a partition of rows in a block of %u. */\n", s->row_threads);
    else if (s->units == 1)
        buf_printf(out, "A block of %u threads a %s. */\n", s->row_threads, k->part ? "partition" : "row");
    else
        buf_printf(out, "%u threads a %s, %u in a block. */\n", s->row_threads, k->part ? "partition" : "row",
                   s->units);
    buf_printf(out, "KERNEL(%u, %u) @NAME@(\n", k->device.grid.threads, k->device.grid.at_once);
    put_parameters(out, k, p);
    buf_printf(out, "    enum { THREADS = %u, UNITS = %u, WARPS = %u };\n", s->row_threads, s->units,
               s->row_threads / 32);
    const char *index = emit_index_type(k, k->row);
    buf_puts(out, "    const vwn_thread_of_row<THREADS> thread = threadIdx.x % THREADS;\n"
                  "    const int unit = threadIdx.x / THREADS;\n");
    buf_printf(out, "    const %s first_row = (%s)blockIdx.x * UNITS + unit;\n", index, index);
    buf_printf(out, "    const %s next_row = (%s)gridDim.x * UNITS;\n", index, index);
    put_changing(out, k, p);
    if (p->grid.shared || p->grid.n_term)
        buf_puts(out, "    DYN_SMEM(memory);\n"
                      "    unsigned char *shared = memory;\n");
    if (s->slots)
        buf_printf(out, "    __shared__ __align__(16) integer warps[%u * WARPS];\n", s->slots);
}

const Dialect dialect_cuda = {
    .name = "CUDA C",
    .real = "real",
    .integer = "integer",
    .row_loop = "for (%2$s %1$s = first_row; %1$s < rows; %1$s += next_row) {",
    .scalar = "(%s)s%zu",
    .inverse = "vwn_inverse($b)",
    .at = "vwn_at<%2$u>(&%1$s)",
    .lanes_add = "vwn_add_lanes(%s, %s)",
    .lanes_max = "vwn_lanes_max(%s)",
    .all = "vwn_all<%2$u>(%1$s)",
    .zero = "0",
    .lowest = "-INFINITE",
    .array = "%1$s *const %2$s = vwn_array<%1$s>(%4$s, %3$s, UNITS, unit);",
    .threads = true,
    .put_header = put_header,
};

const char *prelude_cuda(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    static const char *const file[] = {"types.cu",  "math.c",        "vectors.cu", "threads.cu",         "tiles.cu",
                                       "chunks.cu", "warpgroups.cu", "maps.cu",    "attention_tiles.cu", "products.cu"};
    for (size_t i = 0; i < COUNT_OF(file); i++)
        library_text(&b, file[i], NULL, 0);
    *length = b.n;
    return b.s;
}
