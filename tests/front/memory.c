/* memory.c - the front end when memory runs out: the n-th allocation fails, for every n; what contexts leave each other.
 *
 * In:  a good text and a bad one.   Out: a status, never a crash, and every byte given back.
 * When: quick.
 */
#include "test.h"

typedef struct Heap {
    size_t calls, fail_at; /* this call fails, and with `forever` all after it */
    bool forever;
    size_t blocks, bytes;
    size_t large; /* blocks of LARGE bytes and more that were asked for */
} Heap;
enum { LARGE = 1 << 16 };

static void *heap_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    Heap *h = user;
    if (new_size == 0) {
        h->blocks -= p != NULL;
        h->bytes -= old_size;
        free(p);
        return NULL;
    }
    h->calls++;
    h->large += p == NULL && new_size >= LARGE;
    if (h->fail_at && (h->calls == h->fail_at || (h->forever && h->calls > h->fail_at)))
        return NULL;
    void *q = realloc(p, new_size);
    if (!q)
        abort();
    h->blocks += p == NULL;
    h->bytes += new_size - old_size;
    return q;
}

/* Everything the front end can do with a text. */
static void work(Ctx *ctx, const char *text, size_t n)
{
    uint32_t file = source_add(ctx, "t.vwn", text, n);
    Ast *ast = vwn_parse(ctx, file);
    Buf out = buf_new(ctx->program);
    ast_dump(&out, ast, true);
    if (diag_errors(ctx) == 0)
        vwn_format(ctx, file, ast, &out);
    diag_render_all(ctx, &out, true);
    for (size_t i = 0; i < diag_count(ctx); i++)
        diag_render_json(ctx, &out, diag_get(ctx, i));
}

/* True when the work was done in spite of the failure, or there was none. */
static bool attempt(Test *t, Heap *h, const char *text, size_t n)
{
    volatile bool done = false;
    Allocator mem = {heap_resize, h};
    Ctx *ctx = ctx_new(&mem);
    CtxGuard guard;
    if (ctx && CTX_TRY(ctx, &guard)) {
        work(ctx, text, n);
        ctx_leave(ctx, &guard);
        done = true;
    } else if (ctx) {
        EXPECT(t, ctx->raised == ST_ENVIRONMENT && ctx->message[0]);
    }
    ctx_free(ctx);
    EXPECT(t, h->blocks == 0 && h->bytes == 0);
    return done;
}

static void every_allocation(Test *t, const char *path)
{
    size_t n;
    char *text = test_read(path, &n);
    EXPECT(t, text != NULL);
    for (int forever = 0; text && forever < 2; forever++) {
        bool done = false;
        size_t k = 1;
        for (; !done && k < 10000; k++) {
            Heap h = {.fail_at = k, .forever = forever};
            done = attempt(t, &h, text, n) && h.calls < k;
        }
        EXPECT(t, done && k > 5);
    }
    free(text);
}

/* A limit on bytes is an allocation that fails, too: small steps find the places between
 * chunks. */
static void every_limit(Test *t)
{
    static const char text[] = "model m { x = f(a, [1, 2]) # c\n}\nlet y = 4D\nlet z = \"\n";
    volatile bool done = false;
    for (volatile size_t limit = 2000; !done && limit < 4000000; limit = limit + limit / 50) {
        Heap h = {0};
        Allocator mem = {heap_resize, &h};
        Ctx *ctx = ctx_new(&mem);
        CtxGuard guard;
        ctx->byte_limit = limit;
        if (CTX_TRY(ctx, &guard)) {
            work(ctx, text, sizeof text - 1);
            ctx_leave(ctx, &guard);
            done = true;
        } else {
            EXPECT(t, strstr(ctx->message, "limit `memory` reached"));
        }
        ctx_free(ctx);
        EXPECT(t, h.blocks == 0 && h.bytes == 0);
    }
    EXPECT(t, done);
}

/* What one context has had of large blocks is enough for the next one that wants the same, in any order. */
static void legacy(Test *t)
{
    static const size_t size[] = {6, 3, 5, 4, 3, 6, 5, 4}; /* times LARGE */
    Heap h = {0};
    Allocator mem = {heap_resize, &h};
    Ctx *home = ctx_new(&mem);
    ctx_keep_spare(home, SIZE_MAX);
    for (size_t run = 0; run < COUNT_OF(size); run++) {
        Ctx *ctx = ctx_new(&mem);
        CtxGuard guard;
        ctx_keep_spare(ctx, SIZE_MAX);
        ctx_hand_spare(home, ctx);
        if (CTX_TRY(ctx, &guard)) {
            for (size_t i = 0; i < COUNT_OF(size); i++) {
                char *block = ctx_alloc(ctx, size[(i * 3 + run) % COUNT_OF(size)] * LARGE);
                EXPECT(t, !block[0] && !block[LARGE]);
                memset(block, 1, 2 * LARGE);
            }
            ctx_leave(ctx, &guard);
        }
        ctx_free_to(ctx, home);
        EXPECT(t, h.large == COUNT_OF(size));
    }
    ctx_free(home);
    EXPECT(t, h.blocks == 0 && h.bytes == 0);
}

/* Contexts on kept pages: the second gets the first one's large blocks, zeroed where that was promised, and counts what a
 * context by itself counts. */
static void kept_pages(Test *t)
{
    static const size_t size[] = {3 << 20, 2 << 20, 5 << 20, 100};
    Pages pages = {.n = 0};
    const Allocator mem = {pages_resize, &pages};
    size_t bytes[3] = {0};
    void *first[COUNT_OF(size)] = {0};
    for (volatile int run = 0; run < 3; run++) { /* the last by itself */
        Ctx *ctx = ctx_new(run < 2 ? &mem : NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            for (size_t i = 0; i < COUNT_OF(size); i++) {
                char *block = ctx_alloc(ctx, size[i]);
                EXPECT(t, !block[0] && !block[size[i] - 1]);
                memset(block, 1, size[i]);
                EXPECT(t, run != 1 || i == 3 || block == first[i] || block == first[0] || block == first[1] ||
                              block == first[2]);
                first[i] = run ? first[i] : block;
            }
            bytes[run] = ctx->bytes;
            ctx_leave(ctx, &guard);
        }
        ctx_free(ctx);
        EXPECT(t, run == 2 || pages.n == 3);
    }
    EXPECT(t, bytes[0] == bytes[1] && bytes[0] == bytes[2]);
    pages_free(&pages);
    EXPECT(t, pages.n == 0 && pages.bytes == 0);
}

#if defined __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
/* The sanitizer sees what reads behind a block of an arena, and what reads one that was given back. */
static void blocks_apart(Test *t)
{
    Ctx *ctx = ctx_new(NULL);
    Arena *a = arena_new(ctx);
    ArenaMark mark = arena_mark(a);
    for (size_t size = 0; size < 40000; size += size / 2 + 7) {
        char *p = arena_alloc(a, size), *q = arena_alloc(a, 8);
        EXPECT(t, size == 0 || (!__asan_address_is_poisoned(p) && !__asan_address_is_poisoned(p + size - 1)));
        EXPECT(t, __asan_address_is_poisoned(p + size) && !__asan_address_is_poisoned(q + 7) &&
                      __asan_address_is_poisoned(q + 8));
    }
    char *first = arena_alloc(a, 100);
    arena_reset(a, mark);
    char *again = arena_alloc(a, 1);
    EXPECT(t, first && !__asan_address_is_poisoned(again) && __asan_address_is_poisoned(again + 1));
    arena_free(a);
    ctx_free(ctx);
}
#else
static void blocks_apart(Test *t) { (void)t; }
#endif

int main(void)
{
    Test t = {0};
    blocks_apart(&t);
    kept_pages(&t);
    legacy(&t);
    every_allocation(&t, VWN_SOURCE_DIR "/tests/front/corpus/odd_layout.vwn");
    every_allocation(&t, VWN_SOURCE_DIR "/tests/front/corpus/comments.vwn");
    every_allocation(&t, VWN_SOURCE_DIR "/tests/front/wrong/expected.vwn");
    every_allocation(&t, VWN_SOURCE_DIR "/tests/front/wrong/character.vwn");
    every_limit(&t);
    return test_end(&t);
}
