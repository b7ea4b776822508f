/* library_c.c - see library_c.h: which file a kernel's text is, and what its names stand for. */
#include "library_c.h"

#include "library_text.h"

/* The keys whose packed rows and gradients stay in the second cache: 128 kB to 256 kB. */
static int part_of(const AttentionClass *a)
{
    int64_t width = a->d + a->dv;
    return width <= 128 ? 256 : width <= 256 ? 128 : 64;
}

static void put_attention(Buf *b, LibraryKernel which, const AttentionClass *a)
{
    Arena *t = b->arena;
    bool back = which == LIB_SDPA_GRAD;
    const TextValue value[] = {
        {"D", text_number(t, a->d)},
        {"DV", text_number(t, a->dv)},
        {"QUERIES", text_number(t, back ? BACK_BLOCK_Q : ATTENTION_BLOCK_Q)},
        {"KEYS", text_number(t, back ? BACK_BLOCK_K : ATTENTION_BLOCK_K)},
        {"PART", text_number(t, part_of(a))},
        {"SLICE", text_number(t, ATTENTION_SLICE)},
        {"RANGE", text_number(t, ATTENTION_RANGE)},
        {"CAPPED", text_number(t, a->capped)},
        {"DROPPED", text_number(t, a->dropped)},
        {"OLDEST", text_number(t, a->oldest)},
    };
    library_text(b, arena_printf(t, "%s.c", library_name(which)), value, COUNT_OF(value));
}

const char *library_c(Arena *arena, LibraryKernel which, const AttentionClass *a, size_t *length)
{
    Buf b = buf_new(arena);
    bool max = which == LIB_MAX_PARTS || which == LIB_MAX_PARTS_AT;
    const TextValue value[] = {{"MAX", text_number(arena, max)}};
    if (which == LIB_SUM_PARTS || which == LIB_MAX_PARTS)
        library_text(&b, "parts.c", value, COUNT_OF(value));
    else if (which == LIB_SUM_PARTS_AT || which == LIB_MAX_PARTS_AT)
        library_text(&b, "parts_at.c", value, COUNT_OF(value));
    else if (library_has_class(which))
        put_attention(&b, which, a);
    else
        library_text(&b, arena_printf(arena, "%s.c", library_name(which)), value, COUNT_OF(value));
    *length = b.n;
    return b.s;
}
