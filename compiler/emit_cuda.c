/* emit_cuda.c - the CUDA dialect: what a kernel looks like for the threads of a GPU.
 *
 * In:  kernels of kernel_spread().     Out: the table that emit.c prints with, and the prelude as one
 *      text.
 * The one idea: the text says which thread does what in names of the prelude alone, so the same
 * text is compiled for a device and run by an emulator.
 */
#include "emit.h"
#include "cuda_attention.h"
#include "prelude_cuda.h"
#include "prelude_math.h"
#include "prelude_product.h"

static void put_parameters(Buf *out, const Kernel *k, const Printed *p)
{
    for (size_t i = 0; i < p->buffer.n; i++) {
        const KBuffer *b = &k->buffer.v[p->buffer.v[i]];
        buf_printf(out, "    %s%s *__restrict__ p%zu,\n", b->written ? "" : "const ",
                   b->dtype == DT_INT ? "integer" : b->bf16 ? "bf16" : "real", i);
    }
    for (size_t i = 0; i < p->ints.n; i++)
        buf_printf(out, "%sint64_t n%zu,%s", i % 6 ? " " : "    ", i,
                   i % 6 == 5 || i + 1 == p->ints.n ? "\n" : "");
    for (size_t i = 0; i < p->scalar.n; i++)
        buf_printf(out, "%sdouble s%zu,%s", i % 6 ? " " : "    ", i,
                   i % 6 == 5 || i + 1 == p->scalar.n ? "\n" : "");
    buf_puts(out, "    int64_t rows)\n{\n");
}

static void put_header(Buf *out, const Kernel *k, const Printed *p, const char *about)
{
    const KSpread *s = &k->spread;
    buf_printf(out, "/* %s\n * ", about);
    if (s->by_row)
        buf_printf(out, "A thread a row; a partition of rows in a block of %u. */\n", s->lanes);
    else if (s->units == 1)
        buf_printf(out, "A block of %u threads a %s. */\n", s->lanes, k->part ? "partition" : "row");
    else
        buf_printf(out, "%u threads a %s, %u in a block. */\n", s->lanes,
                   k->part ? "partition" : "row", s->units);
    /* one block of a multiprocessor will do: fewer registers would spill */
    buf_printf(out, "KERNEL(%u, 1) @NAME@(\n", p->grid.threads);
    put_parameters(out, k, p);
    buf_printf(out, "    enum { LANES = %u, UNITS = %u, WARPS = %u };\n", s->lanes, s->units,
               s->lanes / 32);
    buf_puts(out, "    const int lane = threadIdx.x % LANES, unit = threadIdx.x / LANES;\n"
                  "    const int64_t first_row = (int64_t)blockIdx.x * UNITS + unit;\n"
                  "    const int64_t next_row = (int64_t)gridDim.x * UNITS;\n");
    if (k->array.n || k->tile_slot.n)
        buf_puts(out, "    DYN_SMEM(memory);\n"
                      "    unsigned char *shared = memory;\n");
    if (s->slots)
        buf_printf(out, "    __shared__ integer warps[%u * WARPS];\n", s->slots);
}

const Dialect dialect_cuda = {
    .name = "CUDA C",
    .real = "real",
    .integer = "integer",
    .row_loop = "for (int64_t %1$s = first_row; %1$s < rows; %1$s += next_row) {",
    .scalar = "(%s)s%zu",
    .at = "vwn_at<%2$u>(&%1$s)",
    .lanes_sum = "vwn_lanes_sum(%s)",
    .lanes_max = "vwn_lanes_max(%s)",
    .all = "vwn_all<%2$u>(%1$s)",
    .zero = "0",
    .lowest = "-INFINITE",
    .array = "%1$s *const %2$s = vwn_array<%1$s>(shared, %3$s, UNITS, unit);",
    .op = emit_real_op,
    .int_op = emit_integer_op,
    .vector_op = emit_real_op,
    .threads = true,
    .put_header = put_header,
};

const char *prelude_cuda(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    emit_lines(&b, PRELUDE_CUDA, COUNT_OF(PRELUDE_CUDA));
    emit_lines(&b, PRELUDE_MATH, COUNT_OF(PRELUDE_MATH));
    emit_lines(&b, PRELUDE_CUDA_VECTORS, COUNT_OF(PRELUDE_CUDA_VECTORS));
    emit_lines(&b, PRELUDE_CUDA_THREADS, COUNT_OF(PRELUDE_CUDA_THREADS));
    size_t tiles;
    buf_puts(&b, cuda_attention_prelude(arena, &tiles));
    emit_lines(&b, PRELUDE_CUDA_PRODUCTS, COUNT_OF(PRELUDE_CUDA_PRODUCTS));
    *length = b.n;
    return b.s;
}
