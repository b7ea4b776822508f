/* cuda_attention.c - see cuda_attention.h: puts the lines of cuda_attention_text.h together. */
#include "cuda_attention.h"

#include "cuda_attention_text.h"

int cuda_attention_width(Half half, const int64_t *sizes, size_t n)
{
    int width = half ? 8 : 4;
    for (size_t i = 0; i < n; i++)
        while (width > 1 && sizes[i] % width != 0)
            width /= half ? 4 : 2; /* 4 bytes are the least that is copied */
    return width;
}

int cuda_attention_pad(int64_t d)
{
    int64_t step = d > 64 ? 32 : 16;
    return (int)((d + step - 1) / step * step);
}

static bool is_large(const CudaAttentionClass *c)
{
    return c->d > 128 || c->dv > 128;
}

bool cuda_attention_takes_any(const CudaAttentionClass *c)
{
    return c->half && !c->capped && !c->dropped && !c->oldest;
}

/* Large heads have more sums than a thread has registers: then half of the warps add up dk, the
 * others dv. */
static bool is_split(CudaAttentionKernel which, const CudaAttentionClass *c)
{
    return which == CUDA_SDPA_GRAD_K && is_large(c);
}

CudaAttentionLaunch cuda_attention_launch(CudaAttentionKernel which,
                                          const CudaAttentionClass *c)
{
    CudaAttentionLaunch l = {.rows = 64, .columns = 32};
    bool small = c->d <= 64 && c->dv <= 64;
    if (which == CUDA_SDPA && c->half && small)
        l.columns = 64;
    if (!c->half && is_large(c)) { /* 163 KiB are all that an A100 has */
        l.rows = 32;
        l.columns = 16;
    }
    int warps = l.rows / 16 * (is_split(which, c) ? 2 : 1);
    int64_t size = c->half ? 2 : 4, q = c->d + 16 / size, v = c->dv + 16 / size;
    int64_t kept = l.rows * (which == CUDA_SDPA ? q : q + v), passing = l.columns * (q + v);
    l.threads = 32 * warps;
    l.shared = (kept + 2 * passing) * size;
    if (!c->half)
        l.shared += 4ll * warps * 16 * (l.columns + 4);
    if (which == CUDA_SDPA_GRAD_K)
        l.shared += 4ll * 2 * l.columns * (2 + c->oldest);
    return l;
}

int64_t cuda_attention_blocks(const CudaAttentionLaunch *l, int64_t B, int64_t rows,
                              int64_t heads)
{
    return B * heads * ((rows + l->rows - 1) / l->rows);
}

/* A line after "@MARK " stands in the texts of classes that the mark names. */
static bool wanted(const char **line, CudaAttentionKernel which, const CudaAttentionClass *c)
{
    const struct {
        const char *mark;
        bool is;
    } marks[] = {{"@OLDEST ", c->oldest},
                 {"@DROPPED ", c->dropped},
                 {"@KEPT ", !c->dropped},
                 {"@SPLIT ", is_split(which, c)},
                 {"@WHOLE ", !is_split(which, c)}};
    for (size_t i = 0; i < COUNT_OF(marks); i++) {
        size_t n = strlen(marks[i].mark);
        if (strncmp(*line, marks[i].mark, n) != 0)
            continue;
        *line += n;
        return marks[i].is;
    }
    return true;
}

/* Some lines stand for lists of lines that two kernels share. */
static void put_lines(Buf *b, const char *const *line, CudaAttentionKernel which,
                      const CudaAttentionClass *c)
{
    for (; *line; line++) {
        const char *text = *line;
        if (strcmp(text, "@QUERIES@") == 0)
            put_lines(b, ATTENTION_CUDA_QUERIES, which, c);
        else if (strcmp(text, "@KEYS@") == 0)
            put_lines(b, ATTENTION_CUDA_KEYS, which, c);
        else if (wanted(&text, which, c))
            buf_printf(b, "%s\n", text);
    }
}

const char *cuda_attention(Arena *arena, CudaAttentionKernel which, const CudaAttentionClass *c,
                           size_t *length)
{
    static const char *const *const about[] = {ATTENTION_CUDA_ABOUT, ATTENTION_CUDA_ABOUT_Q,
                                               ATTENTION_CUDA_ABOUT_K};
    static const char *const *const body[] = {ATTENTION_CUDA_FORWARD, ATTENTION_CUDA_GRAD_Q,
                                              ATTENTION_CUDA_GRAD_K};
    CudaAttentionLaunch l = cuda_attention_launch(which, c);
    Buf b = buf_new(arena);
    put_lines(&b, about[which], which, c);
    buf_printf(
        &b,
        " * Heads of up to %d and %d, %s. A block: %d threads, %d %s,\n * %d %s at a time, "
        "%lld bytes of shared memory. */\n",
        c->d, c->dv, c->half ? arena_printf(arena, "%s on tensor cores", half_word(c->half)) : "float32", l.threads, l.rows,
        which == CUDA_SDPA_GRAD_K ? "keys" : "queries", l.columns,
        which == CUDA_SDPA_GRAD_K ? "queries" : "keys", (long long)l.shared);
    /* Numbers of float32, or random numbers beside all sums, or a call between them: the compiler
     * would spill so that more blocks fit. */
    bool two = !c->half || (which == CUDA_SDPA_GRAD_K && c->dropped);
    bool three = c->width == CUDA_ACCESS_ANY && l.columns == 64 && (c->d > 48 || c->dv > 48);
    buf_printf(&b, "KERNEL(%d%s) @NAME@(\n", l.threads, two ? ", 2" : three ? ", 3" : "");
    const char *type = half_word(c->half);
    static const char *const pointers[] = {
        "    const %1$s *__restrict__ q, const %1$s *__restrict__ k, const %1$s *__restrict__ "
        "v,\n"
        "    %1$s *__restrict__ out, real *__restrict__ lse,\n",
        "    const %1$s *__restrict__ q, const %1$s *__restrict__ k, const %1$s *__restrict__ "
        "v,\n"
        "    const %1$s *__restrict__ out, const real *__restrict__ lse,\n"
        "    const %1$s *__restrict__ dout, %1$s *__restrict__ dq, real *__restrict__ mean,\n",
        "    const %1$s *__restrict__ q, const %1$s *__restrict__ k, const %1$s *__restrict__ "
        "v,\n"
        "    const real *__restrict__ mean, const real *__restrict__ lse,\n"
        "    const %1$s *__restrict__ dout, %1$s *__restrict__ dk, %1$s *__restrict__ "
        "dvalue,\n"};
    buf_printf(&b, pointers[which], type);
    put_lines(&b, ATTENTION_CUDA_ARGUMENTS, which, c);
    buf_printf(
        &b, "    enum { D = %d, DV = %d, ROWS = %d, COLUMNS = %d, WARPS = %d, WIDTH = %d };\n",
        c->d, c->dv, l.rows, l.columns, l.rows / 16, c->width);
    buf_printf(&b, "    enum { THREADS = %d, CAPPED = %d, DROPPED = %d };\n", l.threads,
               c->capped, c->dropped);
    buf_printf(&b, "    typedef %s elem;\n", type);
    put_lines(&b, ATTENTION_CUDA_HEAD, which, c);
    put_lines(&b, body[which], which, c);
    *length = b.n;
    return b.s;
}

const char *cuda_attention_prelude(Arena *arena, size_t *length)
{
    Buf b = buf_new(arena);
    for (const char *const *line = ATTENTION_CUDA_PRELUDE; *line; line++) {
        buf_puts(&b, *line);
        buf_putc(&b, '\n');
    }
    *length = b.n;
    return b.s;
}
