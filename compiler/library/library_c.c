/* library_c.c - see library.h: puts the lines of library_text_c.h together. */
#include "library_c.h"

#include "library_text_c.h"

static void put_lines(Buf *b, const char *const *line)
{
    for (; *line; line++) {
        buf_puts(b, *line);
        buf_putc(b, '\n');
    }
}

/* Some lines stand for lists of lines that two kernels share or that would nest too deeply. A line
 * after "@OLDEST " is for attention with first keys, one after "@PLAIN " for the other. */
static void put_attention_lines(Buf *b, const char *const *line, const AttentionClass *a)
{
    static const struct { const char *mark; const char *const *lines; } part[] = {
        {"@COLUMNS@", ATTENTION_COLUMNS}, {"@BLOCK@", ATTENTION_BACK_BLOCK}};
    static const char *const mark[] = {"@PLAIN ", "@OLDEST "};
    for (; *line; line++) {
        const char *const *inner = NULL, *text = *line;
        for (size_t i = 0; i < COUNT_OF(part); i++)
            if (strcmp(text, part[i].mark) == 0)
                inner = part[i].lines;
        if (inner) {
            put_attention_lines(b, inner, a);
            continue;
        }
        if (strncmp(text, mark[!a->oldest], strlen(mark[!a->oldest])) == 0)
            continue;
        if (strncmp(text, mark[a->oldest], strlen(mark[a->oldest])) == 0)
            text += strlen(mark[a->oldest]);
        buf_puts(b, text);
        buf_putc(b, '\n');
    }
}

static const char *attention_about(LibraryKernel which)
{
    switch (which) {
    case LIB_SDPA_AT: return "attention: a query at a time from a position on, running softmax";
    case LIB_SDPA: return "attention: blocks of queries over blocks of keys, running softmax";
    default: return "attention: gradients, blocks of queries over parts of the keys";
    }
}

/* The keys whose packed rows and gradients stay in the second cache: 128 kB to 256 kB. */
static int part_of(const AttentionClass *a)
{
    int64_t width = a->d + a->dv;
    return width <= 128 ? 256 : width <= 256 ? 128 : 64;
}

static void put_attention(Buf *b, LibraryKernel which, const AttentionClass *a)
{
    buf_printf(b, "/* %s */\n", attention_about(which));
    buf_puts(b, "KERNEL @NAME@(void *const *p, const int64_t *n, const double *s, int64_t lo, "
                "int64_t hi)\n{\n");
    buf_printf(b, "    enum { DQ = %d, DV = %d, ", (int)a->d, (int)a->dv);
    if (which == LIB_SDPA_GRAD)
        buf_printf(b, "BQ = %d, BK = %d, PART = %d, SLICE = %d, RANGE = %d };\n", BACK_BLOCK_Q,
                   BACK_BLOCK_K, part_of(a), ATTENTION_SLICE, ATTENTION_RANGE);
    else
        buf_printf(b, "BQ = %d, BK = %d };\n", ATTENTION_BLOCK_Q, ATTENTION_BLOCK_K);
    buf_printf(b, "    enum { CAPPED = %d, DROPPED = %d };\n", a->capped, a->dropped);
    put_attention_lines(b, ATTENTION_HEAD, a);
    const char *const *body = which == LIB_SDPA_AT ? ATTENTION_AT
                              : which == LIB_SDPA  ? ATTENTION_FORWARD
                                                   : ATTENTION_BACK;
    put_attention_lines(b, body, a);
    buf_puts(b, "}\n");
}

const char *library_c(Arena *arena, LibraryKernel which, const AttentionClass *a,
                      size_t *length)
{
    static const char *const *const text[LIB_COUNT] = {
        [LIB_COPY] = TEXT_COPY,
        [LIB_PART] = TEXT_PART,
        [LIB_TABLE] = TEXT_TABLE,
        [LIB_SUM_PARTS] = TEXT_SUM_PARTS,
        [LIB_MAX_PARTS] = TEXT_MAX_PARTS,
        [LIB_SUM_PARTS_AT] = TEXT_SUM_PARTS_AT,
        [LIB_MAX_PARTS_AT] = TEXT_MAX_PARTS_AT,
        [LIB_CUMSUM] = TEXT_CUMSUM,
        [LIB_TOP_K] = TEXT_TOP_K,
        [LIB_SCATTER_ADD] = TEXT_SCATTER_ADD,
        [LIB_PUT] = TEXT_PUT,
        [LIB_TAKE] = TEXT_TAKE,
    };
    Buf b = buf_new(arena);
    if (text[which])
        put_lines(&b, text[which]);
    else
        put_attention(&b, which, a);
    *length = b.n;
    return b.s;
}
