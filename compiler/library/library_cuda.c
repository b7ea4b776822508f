/* library_cuda.c - see library_cuda.h: which file a kernel's text is, what its names stand for, how it is launched. */
#include "library_cuda.h"

#include "library_text.h"

/* A launch brings the numbers of a table as arguments, of which a thread takes one. */
static const char *table_arguments(Arena *arena)
{
    Buf b = buf_new(arena);
    for (int i = 0; i < TABLE_PART; i++)
        buf_printf(&b, "%snumber32 s%d,", i == 0 ? "" : i % 8 ? " " : "\n    ", i);
    return b.s;
}

static const char *table_choices(Arena *arena)
{
    Buf b = buf_new(arena);
    for (int i = 1; i < TABLE_PART; i++)
        buf_printf(&b, "%sx = threadIdx.x == %d ? s%d : x;", i == 1 ? "" : "\n    ", i, i);
    return b.s;
}

const char *library_cuda(Arena *arena, LibraryKernel which, const AttentionClass *a, Half half, PlanGrid *grid,
                         size_t *length)
{
    static const struct {
        const char *file;
        uint16_t threads, units;
    } of[LIB_COUNT] = {
        [LIB_COPY] = {"copy.cu", 256, 1024},
        [LIB_TABLE] = {"table.cu", TABLE_PART, TABLE_PART},
        [LIB_SUM_PARTS] = {"parts.cu", 256, 32},
        [LIB_MAX_PARTS] = {"parts.cu", 256, 32},
        [LIB_SUM_PARTS_AT] = {"parts.cu", 256, 32},
        [LIB_MAX_PARTS_AT] = {"parts.cu", 256, 32},
        [LIB_CUMSUM] = {"cumsum.cu", CUMSUM_THREADS, 1},
        [LIB_TOP_K] = {"top_k.cu", 128, 4},
        [LIB_DYNAMIC_UPDATE_SLICE] = {"dynamic_update_slice.cu", 256, 16},
        [LIB_DYNAMIC_SLICE] = {"dynamic_slice.cu", 256, 16},
        [LIB_SDPA_AT] = {"sdpa_at.cu", 128, 4},
    };
    const AttentionClass none = {0};
    if (!a)
        a = &none;
    bool max = which == LIB_MAX_PARTS || which == LIB_MAX_PARTS_AT;
    bool at = which == LIB_SUM_PARTS_AT || which == LIB_MAX_PARTS_AT;
    const TextValue value[] = {
        {"MAX", text_number(arena, max)},
        {"AT", text_number(arena, at)},
        {"WHAT", max ? "maximum" : "sum"},
        {"SHORT", max ? "max" : "sum"},
        {"ORDER", at ? "\n * The elements of a part lie in another order: extents e, strides s." : ""},
        {"NUMBERS", which == LIB_TABLE ? table_arguments(arena) : ""},
        {"CHOICES", which == LIB_TABLE ? table_choices(arena) : ""},
        {"ELEMENT", half_word(half)},
        {"D", text_number(arena, a->d)},
        {"DV", text_number(arena, a->dv)},
        {"PARTS", text_number(arena, (a->dv + 31) / 32)},
        {"CAPPED", text_number(arena, a->capped)},
    };
    Buf b = buf_new(arena);
    library_text(&b, of[which].file, value, COUNT_OF(value));
    *grid = (PlanGrid){.threads = of[which].threads, .units = of[which].units};
    *length = b.n;
    return b.s;
}
