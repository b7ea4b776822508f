/* library_cuda.c - see library_cuda.h: puts the lines of library_text_cuda.h together. */
#include "library_cuda.h"

#include "library_text_cuda.h"

/* A line after "@MARK " stands in the texts that the mark names. */
static void put_lines(Buf *b, const char *const *line, LibraryKernel which)
{
    bool at = which == LIB_SUM_PARTS_AT || which == LIB_MAX_PARTS_AT;
    bool max = which == LIB_MAX_PARTS || which == LIB_MAX_PARTS_AT;
    const struct {
        const char *mark;
        bool is;
    } marks[] = {{"@SUM ", !max}, {"@MAX ", max}, {"@AT ", at}, {"@PLAIN ", !at}};
    for (; *line; line++) {
        const char *text = *line;
        bool wanted = true;
        for (size_t i = 0; i < COUNT_OF(marks); i++)
            if (strncmp(text, marks[i].mark, strlen(marks[i].mark)) == 0) {
                text += strlen(marks[i].mark);
                wanted = marks[i].is;
            }
        if (wanted)
            buf_printf(b, "%s\n", text);
    }
}

/* A launch brings the numbers as arguments, of which a thread takes one. */
static void put_table(Buf *b)
{
    buf_printf(b, "/* a table of numbers, %d at a time: out[r] = s[r] */\n", TABLE_PART);
    buf_printf(b, "KERNEL(%d) @NAME@(\n    real *__restrict__ out,\n", TABLE_PART);
    for (int i = 0; i < TABLE_PART; i++)
        buf_printf(b, "%sdouble s%d,%s", i % 8 ? " " : "    ", i, i % 8 == 7 ? "\n" : "");
    buf_puts(b, "    int64_t rows)\n{\n    double x = s0;\n");
    for (int i = 1; i < TABLE_PART; i++)
        buf_printf(b, "    x = threadIdx.x == %d ? s%d : x;\n", i, i);
    buf_puts(b, "    if (blockIdx.x == 0 && threadIdx.x < rows)\n"
                "        out[threadIdx.x] = (real)x;\n}\n");
}

static void put_attention_at(Buf *b, const AttentionClass *a, Half half)
{
    const char *type = half_word(half);
    buf_puts(b, "/* attention: a query at a time from a position on, running softmax; a warp a "
                "query of a head.\n");
    buf_printf(b, " * Heads of up to %d and %d, %s. */\n", (int)a->d, (int)a->dv, type);
    buf_puts(b, "KERNEL(128) @NAME@(\n");
    for (int i = 0; i < 3; i++)
        buf_printf(b, "    const %s *__restrict__ %c,\n", type, "qkv"[i]);
    buf_printf(b, "    const integer *__restrict__ start, %s *__restrict__ out, real *__restrict__ "
                  "lse,\n", type);
    put_lines(b, CUDA_SDPA_AT, LIB_SDPA_AT);
    buf_printf(b, "    enum { PARTS = %d, CAPPED = %d };\n    typedef %s elem;\n",
               (int)(a->dv + 31) / 32, a->capped, type);
    put_lines(b, CUDA_SDPA_AT_BODY, LIB_SDPA_AT);
}

const char *library_cuda(Arena *arena, LibraryKernel which, const AttentionClass *a, Half half,
                         PlanGrid *grid, size_t *length)
{
    static const struct {
        const char *const *text;
        uint16_t threads, units;
    } of[LIB_COUNT] = {
        [LIB_COPY] = {CUDA_COPY, 256, 1024},
        [LIB_TABLE] = {NULL, TABLE_PART, TABLE_PART},
        [LIB_SUM_PARTS] = {CUDA_PARTS, 256, 32},
        [LIB_MAX_PARTS] = {CUDA_PARTS, 256, 32},
        [LIB_SUM_PARTS_AT] = {CUDA_PARTS, 256, 32},
        [LIB_MAX_PARTS_AT] = {CUDA_PARTS, 256, 32},
        [LIB_CUMSUM] = {CUDA_CUMSUM, 128, 128},
        [LIB_TOP_K] = {CUDA_TOP_K, 128, 4},
        [LIB_PUT] = {CUDA_PUT, 256, 16},
        [LIB_TAKE] = {CUDA_TAKE, 256, 16},
        [LIB_SDPA_AT] = {NULL, 128, 4},
    };
    Buf b = buf_new(arena);
    if (which == LIB_TABLE)
        put_table(&b);
    else if (which == LIB_SDPA_AT)
        put_attention_at(&b, a, half);
    else
        put_lines(&b, of[which].text, which);
    *grid = (PlanGrid){.threads = of[which].threads, .units = of[which].units};
    *length = b.n;
    return b.s;
}
