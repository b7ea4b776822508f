/* base.c - see base.h. */
#define _DEFAULT_SOURCE /* madvise */
#include "base.h"

#include "compiler/portable/utf8.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* ---- the context ---- */

typedef struct HeapBlock {
    struct HeapBlock *prev, *next;
    size_t size;
    size_t pad; /* keeps the payload 16-byte aligned */
} HeapBlock;

typedef struct Chunk {
    struct Chunk *prev;
    size_t size, used;
    size_t pad;
} Chunk;

struct Arena {
    Ctx *ctx;
    Chunk *chunk;
};

typedef struct NameTable {
    Name *slot;
    uint64_t *hash;
    size_t n, cap;
} NameTable;

enum { HUGE_PAGE = 2 << 20 };

/* Under AddressSanitizer blocks of an arena lie apart, and nobody may touch what is between or behind them: it sees a read
 * behind a block as it sees one behind what malloc() gave. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define WATCHED
#endif
#elif defined __SANITIZE_ADDRESS__
#define WATCHED
#endif
#ifdef WATCHED
#include <sanitizer/asan_interface.h>
enum { REDZONE = 16 };
static void forbid(void *p, size_t n) { ASAN_POISON_MEMORY_REGION(p, n); }
static void allow(void *p, size_t n) { ASAN_UNPOISON_MEMORY_REGION(p, n); }
#else
enum { REDZONE = 0 };
static void forbid(void *p, size_t n) { (void)p, (void)n; }
static void allow(void *p, size_t n) { (void)p, (void)n; }
#endif

static size_t whole_pages(size_t size) { return (size + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE; }

/* Large blocks lie in huge pages where the system has them: a graph is written once and soon freed,
 * so a page fault for each 4 KiB would be a fifth of the time. */
static void *plain_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    if (p || new_size < HUGE_PAGE)
        return realloc(p, new_size);
    size_t size = whole_pages(new_size);
    p = aligned_alloc(HUGE_PAGE, size);
    if (p)
        madvise(p, size, MADV_HUGEPAGE); /* a wish: nothing depends on it */
    return p;
}

void *pages_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    enum { MOST = 256 << 20 };
    Pages *w = user;
    size_t size = whole_pages(p ? old_size : new_size);
    if (p && !new_size && old_size >= HUGE_PAGE && w->n < COUNT_OF(w->kept) && w->bytes + size <= MOST) {
        w->kept[w->n].at = p;
        w->kept[w->n++].size = size;
        w->bytes += size;
        return NULL;
    }
    for (size_t i = w->n; !p && new_size >= HUGE_PAGE && i-- > 0;)
        if (w->kept[i].size == size) {
            p = w->kept[i].at;
            w->bytes -= size;
            w->kept[i] = w->kept[--w->n];
            return p;
        }
    return plain_resize(NULL, p, old_size, new_size);
}

void pages_free(Pages *w)
{
    while (w->n)
        free(w->kept[--w->n].at);
    w->bytes = 0;
}

Ctx *ctx_new(const Allocator *mem)
{
    Allocator m = mem ? *mem : (Allocator){plain_resize, NULL};
    Ctx *ctx = m.resize(m.user, NULL, 0, sizeof *ctx);
    if (!ctx)
        return NULL;
    memset(ctx, 0, sizeof *ctx);
    ctx->mem = m;
    ctx->bytes = ctx->peak_bytes = sizeof *ctx;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard)) {
        ctx_free(ctx);
        return NULL;
    }
    ctx->program = arena_new(ctx);
    ctx->scratch = arena_new(ctx);
    ctx->names = NEW(ctx->program, NameTable);
    ctx_leave(ctx, &guard);
    return ctx;
}

void ctx_free(Ctx *ctx)
{
    if (!ctx)
        return;
    ctx_keep_spare(ctx, 0);
    while (ctx->blocks) {
        HeapBlock *b = ctx->blocks;
        ctx->blocks = b->next;
        allow(b + 1, b->size);
        ctx->mem.resize(ctx->mem.user, b, sizeof *b + b->size, 0);
    }
    ctx->mem.resize(ctx->mem.user, ctx, sizeof *ctx, 0);
}

void ctx_leave(Ctx *ctx, CtxGuard *guard) { ctx->unwind = guard->outer; }

static _Noreturn void unwind(Ctx *ctx, Status status)
{
    jmp_buf *env = ctx->unwind;
    ctx->raised = status;
    if (!env) { /* a public function forgot its CTX_TRY */
        fprintf(stderr, "nobody waits for: %s\n", ctx->message);
        abort();
    }
    CtxGuard *guard = (CtxGuard *)((char *)env - offsetof(CtxGuard, env));
    ctx->unwind = guard->outer;
    longjmp(*env, 1);
}

void ctx_raise(Ctx *ctx, Status status, const char *fmt, ...)
{
    ctx->message[0] = 0;
    if (fmt) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(ctx->message, sizeof ctx->message, fmt, ap);
        va_end(ap);
    }
    unwind(ctx, status);
}

void ctx_raise_again(Ctx *ctx) { unwind(ctx, ctx->raised); }

void vwn_bug(Ctx *ctx, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(ctx->message, sizeof ctx->message, fmt, ap);
    va_end(ap);
    if (ctx->on_bug)
        ctx->on_bug(ctx, ctx->message);
    unwind(ctx, ST_BUG);
}

static void *raw_resize(Ctx *ctx, void *p, size_t old_size, size_t new_size)
{
    if (ctx->byte_limit && ctx->bytes - old_size + new_size > ctx->byte_limit) {
        ctx->at_limit = true;
        ctx_raise(ctx, ST_ENVIRONMENT,
                  "limit `memory` reached: the compiler's own data take more than %zu MiB; a model of fewer "
                  "layers, positions or rounds of loops takes less",
                  ctx->byte_limit >> 20);
    }
    void *q = ctx->mem.resize(ctx->mem.user, p, old_size, new_size);
    if (!q)
        ctx_raise(ctx, ST_ENVIRONMENT, "out of memory: %zu bytes more than the %zu in use", new_size, ctx->bytes);
    ctx->bytes += new_size - old_size;
    if (ctx->bytes > ctx->peak_bytes)
        ctx->peak_bytes = ctx->bytes;
    return q;
}

static void block_link(Ctx *ctx, HeapBlock *b)
{
    b->prev = NULL;
    b->next = ctx->blocks;
    if (b->next)
        b->next->prev = b;
    ctx->blocks = b;
}

static void block_unlink(Ctx *ctx, HeapBlock *b)
{
    if (b->next)
        b->next->prev = b->prev;
    if (b->prev)
        b->prev->next = b->next;
    else
        ctx->blocks = b->next;
}

/* ---- blocks that are kept ---- */

enum { SPARE_LEAST = 1 << 16 }; /* smaller blocks are cheap to get */

void ctx_keep_spare(Ctx *ctx, size_t most)
{
    ctx->spare_most = most;
    while (!most && ctx->spare) {
        HeapBlock *b = ctx->spare;
        ctx->spare = b->next;
        ctx->mem.resize(ctx->mem.user, b, sizeof *b + b->size, 0);
    }
    if (!most)
        ctx->spare_bytes = 0;
}

static bool keep(Ctx *ctx, HeapBlock *b)
{
    allow(b + 1, b->size); /* it may have been an arena's */
    if (b->size < SPARE_LEAST || ctx->spare_bytes + b->size > ctx->spare_most)
        return false;
    ctx->spare_bytes += b->size;
    b->next = ctx->spare;
    ctx->spare = b;
    return true;
}

void ctx_hand_spare(Ctx *from, Ctx *to)
{
    while (from->spare) {
        HeapBlock *b = from->spare;
        from->spare = b->next;
        if (!keep(to, b))
            from->mem.resize(from->mem.user, b, sizeof *b + b->size, 0);
    }
    from->spare_bytes = 0;
}

void ctx_free_to(Ctx *ctx, Ctx *heir)
{
    if (!ctx)
        return;
    ctx_hand_spare(ctx, heir);
    for (HeapBlock *b = ctx->blocks, *next; b; b = next) {
        next = b->next;
        if (!keep(heir, b))
            ctx->mem.resize(ctx->mem.user, b, sizeof *b + b->size, 0);
    }
    ctx->blocks = NULL;
    ctx_free(ctx);
}

/* The smallest kept block that is of this size or up to twice as large, or NULL. */
static HeapBlock *take_kept(Ctx *ctx, size_t size)
{
    HeapBlock **best = NULL;
    for (HeapBlock **at = &ctx->spare; *at && !(best && (*best)->size == size); at = &(*at)->next) {
        const HeapBlock *b = *at;
        bool fits = b->size >= size && b->size / 2 <= size &&
                    !(ctx->byte_limit && ctx->bytes + sizeof *b + b->size > ctx->byte_limit);
        if (fits && (!best || b->size < (*best)->size))
            best = at;
    }
    if (!best)
        return NULL;
    HeapBlock *b = *best;
    *best = b->next;
    ctx->spare_bytes -= b->size;
    ctx->bytes += sizeof *b + b->size;
    if (ctx->bytes > ctx->peak_bytes)
        ctx->peak_bytes = ctx->bytes;
    return b;
}

/* Bytes of any value. */
static void *ctx_take(Ctx *ctx, size_t size)
{
    if (size > SIZE_MAX / 2)
        ctx_raise(ctx, ST_ENVIRONMENT, "out of memory: %zu bytes asked for", size);
    HeapBlock *b = take_kept(ctx, size);
    if (!b) {
        b = raw_resize(ctx, NULL, 0, sizeof *b + size);
        b->size = size;
    }
    block_link(ctx, b);
    return b + 1;
}

void *ctx_alloc(Ctx *ctx, size_t size) { return memset(ctx_take(ctx, size), 0, size); }

void *ctx_resize(Ctx *ctx, void *p, size_t size)
{
    if (!p)
        return ctx_alloc(ctx, size);
    if (size > SIZE_MAX / 2)
        ctx_raise(ctx, ST_ENVIRONMENT, "out of memory: %zu bytes asked for", size);
    HeapBlock *old = (HeapBlock *)p - 1;
    size_t had = old->size;
    HeapBlock *b = raw_resize(ctx, NULL, 0, sizeof *b + size);
    memcpy(b + 1, p, had < size ? had : size);
    if (size > had)
        memset((char *)(b + 1) + had, 0, size - had);
    b->size = size;
    block_link(ctx, b);
    ctx_release(ctx, p);
    return b + 1;
}

void ctx_release(Ctx *ctx, void *p)
{
    if (!p)
        return;
    HeapBlock *b = (HeapBlock *)p - 1;
    block_unlink(ctx, b);
    ctx->bytes -= sizeof *b + b->size;
    if (!keep(ctx, b))
        ctx->mem.resize(ctx->mem.user, b, sizeof *b + b->size, 0);
}

/* ---- arenas ---- */

/* Of chunks with what stands before them, so that large ones are whole huge pages. */
enum { FIRST_CHUNK = 16 << 10, LARGEST_CHUNK = 2 * HUGE_PAGE };
static const size_t CHUNK_HEAD = sizeof(HeapBlock) + sizeof(Chunk);

Arena *arena_new(Ctx *ctx)
{
    Arena *a = ctx_alloc(ctx, sizeof *a);
    a->ctx = ctx;
    return a;
}

void arena_free(Arena *a)
{
    if (!a)
        return;
    arena_reset(a, (ArenaMark){NULL, 0});
    ctx_release(a->ctx, a);
}

void *arena_take(Arena *a, size_t size)
{
    if (size > SIZE_MAX / 4)
        ctx_raise(a->ctx, ST_ENVIRONMENT, "out of memory: %zu bytes asked for", size);
    const size_t asked = size;
    size = ((size + 15) & ~(size_t)15) + REDZONE;
    a->ctx->taken += size;
    Chunk *c = a->chunk;
    if (!c || c->size - c->used < size) {
        size_t want = c ? (c->size + CHUNK_HEAD) * 2 : FIRST_CHUNK;
        if (want > LARGEST_CHUNK)
            want = LARGEST_CHUNK;
        want -= CHUNK_HEAD;
        if (want < size)
            want = size;
        c = ctx_take(a->ctx, sizeof *c + want);
        *c = (Chunk){.prev = a->chunk, .size = want};
        a->chunk = c;
        forbid(c + 1, want);
    }
    void *p = (char *)(c + 1) + c->used;
    c->used += size;
    allow(p, asked);
    return p;
}

void *arena_alloc(Arena *a, size_t size)
{
    return memset(arena_take(a, size), 0, size); /* here: pages nobody uses are never touched */
}

static void *take_zeros(void *user, size_t size) { return arena_alloc(user, size); }

Region arena_region(Arena *a) { return (Region){take_zeros, a}; }

void *arena_alloc_array(Arena *a, size_t count, size_t size)
{
    if (size && count > SIZE_MAX / 4 / size)
        ctx_raise(a->ctx, ST_ENVIRONMENT, "out of memory: %zu items of %zu bytes", count, size);
    return arena_alloc(a, count * size);
}

ArenaMark arena_mark(const Arena *a) { return (ArenaMark){a->chunk, a->chunk ? a->chunk->used : 0}; }

size_t arena_size(const Arena *a)
{
    size_t bytes = 0;
    for (const Chunk *c = a->chunk; c; c = c->prev)
        bytes += sizeof *c + c->size;
    return bytes;
}

void arena_reset(Arena *a, ArenaMark m)
{
    while (a->chunk != m.chunk) {
        Chunk *c = a->chunk;
        a->chunk = c->prev;
        ctx_release(a->ctx, c);
    }
    if (!a->chunk)
        return;
    a->chunk->used = m.used;
    forbid((char *)(a->chunk + 1) + m.used, a->chunk->size - m.used);
}

Ctx *arena_ctx(const Arena *a) { return a->ctx; }

char *arena_copy(Arena *a, const char *s, size_t n)
{
    char *p = arena_alloc(a, n + 1);
    if (n)
        memcpy(p, s, n);
    return p;
}

static char *arena_vprintf(Arena *a, size_t *len, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    char small[256];
    int n = vsnprintf(small, sizeof small, fmt, ap);
    if (n < 0)
        n = 0;
    char *p = arena_alloc(a, (size_t)n + 1);
    if ((size_t)n < sizeof small)
        memcpy(p, small, (size_t)n + 1);
    else
        vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    *len = (size_t)n;
    return p;
}

char *arena_printf(Arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    size_t n;
    char *p = arena_vprintf(a, &n, fmt, ap);
    va_end(ap);
    return p;
}

/* ---- names ---- */

/* Words of 8 bytes, the last one filled with zeros; the length tells such words apart. */
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed)
{
    const unsigned char *s = p;
    uint64_t h = seed ^ 0xcbf29ce484222325u ^ (uint64_t)n << 56;
    for (; n >= 8; n -= 8, s += 8) {
        uint64_t word;
        memcpy(&word, s, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    if (n) {
        uint64_t word = 0;
        memcpy(&word, s, n);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    h *= 0xbf58476d1ce4e5b9u;
    return h ^ h >> 32;
}

static void names_rehash(Ctx *ctx, NameTable *t)
{
    size_t cap = t->cap ? t->cap * 2 : 256;
    Name *slot = ctx_alloc(ctx, cap * sizeof *slot);
    uint64_t *hash = ctx_alloc(ctx, cap * sizeof *hash);
    for (size_t i = 0; i < t->cap; i++) {
        if (!t->slot[i])
            continue;
        size_t j = t->hash[i] & (cap - 1);
        while (slot[j])
            j = (j + 1) & (cap - 1);
        slot[j] = t->slot[i];
        hash[j] = t->hash[i];
    }
    Name *old_slot = t->slot;
    uint64_t *old_hash = t->hash;
    t->slot = slot;
    t->hash = hash;
    t->cap = cap;
    ctx_release(ctx, (void *)old_slot);
    ctx_release(ctx, old_hash);
}

Name name_of(Ctx *ctx, const char *s, size_t n)
{
    NameTable *t = ctx->names;
    if (t->n * 2 >= t->cap)
        names_rehash(ctx, t);
    uint64_t h = hash_bytes(s, n, 0);
    size_t i = h & (t->cap - 1);
    for (; t->slot[i]; i = (i + 1) & (t->cap - 1))
        if (t->hash[i] == h && !strncmp(t->slot[i], s, n) && !t->slot[i][n])
            return t->slot[i];
    t->slot[i] = arena_copy(ctx->program, s, n);
    t->hash[i] = h;
    t->n++;
    return t->slot[i];
}

Name name_str(Ctx *ctx, const char *s) { return name_of(ctx, s, strlen(s)); }

Name name_printf(Ctx *ctx, const char *fmt, ...)
{
    ArenaMark mark = arena_mark(ctx->scratch);
    va_list ap;
    va_start(ap, fmt);
    size_t n;
    char *p = arena_vprintf(ctx->scratch, &n, fmt, ap);
    va_end(ap);
    Name name = name_of(ctx, p, n);
    arena_reset(ctx->scratch, mark);
    return name;
}

/* ---- vectors, text, maps ---- */

void *vec_grow(Arena *a, void *v, size_t n, size_t *cap, size_t item)
{
    size_t want = *cap ? *cap * 2 : 8;
    if (want > SIZE_MAX / 4 / item)
        ctx_raise(a->ctx, ST_ENVIRONMENT, "out of memory: %zu items of %zu bytes", want, item);
    void *p = arena_take(a, want * item);
    if (n)
        memcpy(p, v, n * item);
    *cap = want;
    return p;
}

Buf buf_new(Arena *a)
{
    Buf b = {.arena = a, .cap = 64};
    b.s = arena_alloc(a, b.cap);
    return b;
}

void buf_put(Buf *b, const char *s, size_t n)
{
    if (b->cap - b->n <= n) {
        size_t cap = b->cap ? b->cap : 64;
        while (cap - b->n <= n)
            cap *= 2;
        char *p = arena_take(b->arena, cap);
        if (b->n)
            memcpy(p, b->s, b->n);
        b->s = p;
        b->cap = cap;
    }
    if (n)
        memcpy(b->s + b->n, s, n);
    b->n += n;
    b->s[b->n] = 0;
}

void buf_puts(Buf *b, const char *s) { buf_put(b, s, strlen(s)); }

void buf_putc(Buf *b, char c)
{
    if (b->cap - b->n <= 1) {
        buf_put(b, &c, 1);
        return;
    }
    b->s[b->n++] = c;
    b->s[b->n] = 0;
}

/* A few characters. */
static void put_short(Buf *b, const char *s, size_t n)
{
    if (n >= 16 || b->cap - b->n <= n) {
        buf_put(b, s, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        b->s[b->n + i] = s[i];
    b->s[b->n += n] = 0;
}

static void put_whole(Buf *b, unsigned long long x, bool negative)
{
    char digits[24], *p = digits + sizeof digits;
    do
        *--p = (char)('0' + x % 10);
    while (x /= 10);
    if (negative)
        *--p = '-';
    put_short(b, p, (size_t)(digits + sizeof digits - p));
}

static void put_signed(Buf *b, long long x)
{
    put_whole(b, x < 0 ? 0 - (unsigned long long)x : (unsigned long long)x, x < 0);
}

static void put_padded(Buf *b, int width, const char *s)
{
    for (size_t n = strlen(s); width > 0 && n < (size_t)width; width--)
        buf_putc(b, ' ');
    buf_puts(b, s);
}

/* What texts of kernels are made of: words, whole numbers and margins. False where a format asks for something else. */
static bool put_plain(Buf *b, const char *fmt, va_list *ap)
{
    for (;;) {
        const char *p = fmt;
        while (*p && *p != '%')
            p++;
        put_short(b, fmt, (size_t)(p - fmt));
        if (!*p)
            return true;
        fmt = p + 2;
        switch (p[1]) {
        case 's': buf_puts(b, va_arg(*ap, const char *)); break;
        case 'c': buf_putc(b, (char)va_arg(*ap, int)); break;
        case 'd': put_signed(b, va_arg(*ap, int)); break;
        case 'u': put_whole(b, va_arg(*ap, unsigned), false); break;
        case '%': buf_putc(b, '%'); break;
        default:
            fmt++;
            if (p[1] == 'z' && p[2] == 'u') {
                put_whole(b, va_arg(*ap, size_t), false);
            } else if (p[1] == 'l' && p[2] == 'd') {
                put_signed(b, va_arg(*ap, long));
            } else if (p[1] == '*' && p[2] == 's') {
                int width = va_arg(*ap, int);
                put_padded(b, width, va_arg(*ap, const char *));
            } else {
                return false;
            }
        }
    }
}

void buf_printf(Buf *b, const char *fmt, ...)
{
    char small[512];
    size_t before = b->n;
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    if (put_plain(b, fmt, &ap)) {
        va_end(ap);
        va_end(again);
        return;
    }
    va_end(ap);
    b->s[b->n = before] = 0;
    va_copy(ap, again);
    int n = vsnprintf(small, sizeof small, fmt, again);
    va_end(again);
    if (n > 0 && (size_t)n < sizeof small) {
        buf_put(b, small, (size_t)n);
    } else if (n > 0) {
        size_t len;
        char *p = arena_vprintf(b->arena, &len, fmt, ap);
        buf_put(b, p, len);
    }
    va_end(ap);
}

void buf_json_string(Buf *b, const char *s, size_t n)
{
    buf_putc(b, '"');
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            buf_printf(b, "\\%c", c);
        else if (c == '\n')
            buf_puts(b, "\\n");
        else if (c == '\t')
            buf_puts(b, "\\t");
        else if (c < 0x20)
            buf_printf(b, "\\u%04x", c);
        else
            buf_putc(b, (char)c);
    }
    buf_putc(b, '"');
}

/* Numbers of at most 15 digits lie so far apart that at most one of them reads back as a normal double: the nearest, without
 * its last zeros. */
int number_digits(double x)
{
    char text[40];
    int digits = fabs(x) < DBL_MIN ? 1 : 15; /* below it doubles lie further apart */
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, x);
        if (strtod(text, NULL) == x)
            break;
    }
    const char *end = strchr(text, 'e');
    while (digits > 1 && digits <= 15 && *--end == '0')
        digits--;
    return digits;
}

void buf_number(Buf *b, double x)
{
    char few[40];
    if (x == floor(x) && fabs(x) < 1e15)
        buf_printf(b, "%.0f", x == 0 ? 0.0 : x);
    else if (snprintf(few, sizeof few, "%.6g", x) && strtod(few, NULL) == x && fabs(x) >= DBL_MIN)
        buf_puts(b, few); /* as most numbers that people write */
    else
        buf_printf(b, "%.*g", x - x == 0 ? number_digits(x) : 1, x);
}

void buf_json_number(Buf *b, double x)
{
    if (x - x == 0)
        buf_number(b, x);
    else
        buf_puts(b, "null");
}

void buf_csv_string(Buf *b, const char *s)
{
    const char *shown, *end = s + strlen(s);
    size_t shown_n;
    buf_putc(b, '"');
    while (s < end) {
        if (*s == '"')
            buf_putc(b, '"');
        s += utf8_plain(s, (size_t)(end - s), &shown, &shown_n);
        buf_put(b, shown, shown_n);
    }
    buf_putc(b, '"');
}

void buf_count(Buf *b, int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)n);
    for (int i = 0; i < len; i++) {
        buf_putc(b, digits[i]);
        int left = len - 1 - i;
        if (left && left % 3 == 0 && digits[i] != '-')
            buf_putc(b, ',');
    }
}

void map_init(Map *m, Arena *a) { *m = (Map){.arena = a}; }

static size_t map_slot(const Map *m, uintptr_t key)
{
    uint64_t h = (uint64_t)key * 0x9e3779b97f4a7c15u;
    size_t i = (h ^ h >> 32) & (m->cap - 1);
    while (m->key[i] && m->key[i] != key)
        i = (i + 1) & (m->cap - 1);
    return i;
}

void **map_at(Map *m, uintptr_t key)
{
    if (m->n * 2 >= m->cap) {
        Map old = *m;
        m->cap = old.cap ? old.cap * 2 : 16;
        m->key = NEW_ARRAY(m->arena, uintptr_t, m->cap);
        m->value = NEW_ARRAY(m->arena, void *, m->cap);
        for (size_t i = 0; i < old.cap; i++) {
            if (!old.key[i])
                continue;
            size_t j = map_slot(m, old.key[i]);
            m->key[j] = old.key[i];
            m->value[j] = old.value[i];
        }
    }
    size_t i = map_slot(m, key);
    if (!m->key[i]) {
        m->key[i] = key;
        m->n++;
    }
    return &m->value[i];
}

void *map_get(const Map *m, uintptr_t key) { return m->cap ? m->value[map_slot(m, key)] : NULL; }

/* ---- small things ---- */

size_t edit_distance(const char *a, const char *b, size_t limit)
{
    enum { MOST = 64 };
    size_t na = strlen(a), nb = strlen(b);
    if (na > MOST || nb > MOST || (na > nb ? na - nb : nb - na) > limit)
        return limit + 1;
    size_t row[3][MOST + 1];
    for (size_t j = 0; j <= nb; j++)
        row[0][j] = j;
    for (size_t i = 1; i <= na; i++) {
        size_t *now = row[i % 3], *up = row[(i + 2) % 3], *up2 = row[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            size_t best = up[j - 1] + (a[i - 1] != b[j - 1]);
            if (up[j] + 1 < best)
                best = up[j] + 1;
            if (now[j - 1] + 1 < best)
                best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && up2[j - 2] + 1 < best)
                best = up2[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[na % 3][nb];
}

Name nearest_name(Name word, const Name *candidates, size_t n)
{
    size_t limit = strlen(word) / 3;
    if (limit < 1)
        limit = 1;
    Name best = NULL;
    for (size_t i = 0; i < n; i++) {
        size_t d = edit_distance(word, candidates[i], limit);
        if (d <= limit) {
            best = candidates[i];
            if (d == 0)
                break;
            limit = d - 1;
        }
    }
    return best;
}

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool same_but_case(const char *a, const char *b)
{
    for (; *a && (*a == *b || (is_letter(*a) && (*a ^ *b) == 32)); a++)
        b++;
    return *a == *b;
}

/* Whether the two differ by one slip of the fingers inside a word of some length: a letter too many, one too few, another one or
 * two exchanged, and not the first. A digit or a short part, as the q of q_proj, says which of several things is meant. */
static bool is_slip(const char *word, const char *name)
{
    enum { LEAST = 4, LEAST_CHANGED = 5 };
    size_t n = strlen(word), m = strlen(name), at = 0, lo, hi;
    while (word[at] && word[at] == name[at])
        at++;
    for (lo = at; lo > 0 && name[lo - 1] != '_';)
        lo--;
    for (hi = at; hi < m && name[hi] != '_';)
        hi++;
    bool letters = (!word[at] || is_letter(word[at])) && (!name[at] || is_letter(name[at]));
    bool changed = n == m && strcmp(word + at + 1, name + at + 1) == 0;
    return letters && at > lo && hi - lo >= (changed ? LEAST_CHANGED : LEAST);
}

Name meant_name(Name word, const Name *candidates, size_t n, bool *sure)
{
    size_t alike = 0;
    Name best = NULL;
    for (size_t i = 0; i < n; i++)
        if (same_but_case(word, candidates[i]) && candidates[i] != best) {
            best = candidates[i];
            alike++;
        }
    *sure = alike == 1;
    if (best)
        return best;
    best = nearest_name(word, candidates, n);
    *sure = best && edit_distance(word, best, 1) == 1 && is_slip(word, best);
    for (size_t i = 0; *sure && i < n; i++)
        *sure = !strcmp(candidates[i], best) || edit_distance(word, candidates[i], 2) > 2;
    return best;
}
