/* base.h - what every stage stands on: a context, arenas, interned names, text buffers, vectors.
 *
 * In:  an allocator (or none: malloc).     Out: memory that never has to be checked or freed.
 * The one idea: a Ctx owns everything. Arena memory is freed with the Ctx, so no path, not even the
 * one taken when memory runs out, can leak. Running out of memory, hitting a limit or finding a
 * broken invariant leaves through ctx_raise(), a longjmp to the CTX_TRY of the public function that
 * was entered. Nothing here is global: two contexts can live in one process and one thread each.
 */
#ifndef VWN_BASE_H
#define VWN_BASE_H

#include "compiler/base/list.h"
#include "compiler/portable/region.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef enum Status {
    ST_OK = 0,
    ST_INPUT = 1,       /* the input has errors; diagnostics say which */
    ST_USAGE = 2,       /* wrong use of the interface */
    ST_CHECK = 3,       /* a `check` of the file is false */
    ST_DIVERGED = 4,    /* NaN, infinity or a loss spike stopped the run */
    ST_ENVIRONMENT = 5, /* no memory, no compiler, unreadable or unwritable files */
    ST_CHANGES = 6,     /* a plan has changes */
    ST_BUG = 70,        /* a broken invariant of vwn itself */
    ST_INTERRUPTED = 130
} Status;

typedef struct Ctx Ctx;
typedef struct Arena Arena;
typedef struct Sources Sources; /* diag.h */
typedef struct Diags Diags;     /* diag.h */

/* An interned, NUL-terminated string. Two names are equal exactly when the pointers are. */
typedef const char *Name;

/* Memory comes from here; resize(user, NULL, 0, n) allocates, (.., p, old, 0) frees. */
typedef struct Allocator {
    void *(*resize)(void *user, void *p, size_t old_size, size_t new_size);
    void *user;
} Allocator;
/* An allocator for contexts that follow one another in one thread: {pages_resize, pages}, of zeroed Pages. Large blocks that are
 * given back keep their pages, and are handed out again where as many are asked for. */
typedef struct Pages {
    struct {
        void *at;
        size_t size;
    } kept[64];
    size_t n, bytes;
} Pages;
void *pages_resize(void *user, void *p, size_t old_size, size_t new_size);
void pages_free(Pages *pages); /* what is kept; when the last context has ended */

struct Ctx {
    Allocator mem;
    size_t bytes, peak_bytes; /* now and at most allocated through this context */
    size_t byte_limit;        /* 0 = none; going over it is an out-of-memory */
    uint64_t taken;           /* all that its arenas ever gave out: a count of work that no machine changes */
    Arena *program;           /* lives as long as the context: AST, names, models, graphs */
    Arena *scratch;           /* a stage may use it between arena_mark and arena_reset */
    struct NameTable *names;
    struct HeapBlock *blocks; /* list of everything ctx_alloc gave out */
    struct HeapBlock *spare;  /* released blocks that are kept, not counted in `bytes` */
    size_t spare_bytes, spare_most;
    Sources *sources;
    Diags *diags;
    jmp_buf *unwind; /* set by CTX_TRY */
    Status raised;
    bool at_limit;                           /* since byte_limit was reached; whoever asks clears it before */
    char message[512];                       /* why ctx_raise was called; empty if a diagnostic says it */
    void (*on_bug)(Ctx *, const char *text); /* may be NULL */
};

/* A new context, or NULL when not even that much memory is to be had. `mem` may be NULL. */
Ctx *ctx_new(const Allocator *mem);
void ctx_free(Ctx *ctx); /* NULL is fine */
/* While stages follow one another that use and release much: keep up to `most` bytes of large
 * released blocks for the next ones of their size, whose pages then need not be asked for again.
 * 0: keep none, and give back what was kept. */
void ctx_keep_spare(Ctx *ctx, size_t most);
/* What is kept in `from` is kept in `to` from now on; as ctx_free(), but large blocks go to `heir`, as far as it keeps
 * any. Both take their memory from one allocator, and no other thread uses them. */
void ctx_hand_spare(Ctx *from, Ctx *to);
void ctx_free_to(Ctx *ctx, Ctx *heir);

/* Run a body with a landing place for ctx_raise, nestable:
 *     CtxGuard guard;
 *     if (CTX_TRY(ctx, &guard)) { ...body...; ctx_leave(ctx, &guard); }
 *     else { status = ctx->raised; }            (the guard is already removed here)
 * Locals changed in the body and read after the else must be volatile. */
typedef struct CtxGuard {
    jmp_buf env;
    jmp_buf *outer;
} CtxGuard;
#define CTX_TRY(ctx, guard) ((guard)->outer = (ctx)->unwind, (ctx)->unwind = &(guard)->env, setjmp((guard)->env) == 0)
void ctx_leave(Ctx *ctx, CtxGuard *guard);

/* Leave to the innermost CTX_TRY; `fmt` may be NULL when a diagnostic has been filed. */
_Noreturn void ctx_raise(Ctx *ctx, Status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* What landed here goes on to the next one, with its message. */
_Noreturn void ctx_raise_again(Ctx *ctx);
/* A broken invariant: message, then ctx_raise(ST_BUG). */
_Noreturn void vwn_bug(Ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Heap blocks that must be freed early or resized (tables, files' contents). Zeroed when new, 16-byte
 * aligned, owned by the context, raise on failure. */
void *ctx_alloc(Ctx *ctx, size_t size);
void *ctx_resize(Ctx *ctx, void *p, size_t size);
void ctx_release(Ctx *ctx, void *p); /* NULL is fine */

/* ---- arenas: zeroed, 16-byte aligned memory that is freed all at once ---- */
typedef struct ArenaMark {
    struct Chunk *chunk;
    size_t used;
} ArenaMark;
Arena *arena_new(Ctx *ctx);
void arena_free(Arena *a);
void *arena_alloc(Arena *a, size_t size); /* zeros */
void *arena_take(Arena *a, size_t size);  /* bytes of any value */
Region arena_region(Arena *a);            /* for code that travels; raises */
ArenaMark arena_mark(const Arena *a);
size_t arena_size(const Arena *a);       /* of its chunks, used or not */
void arena_reset(Arena *a, ArenaMark m); /* frees what was allocated after the mark */
Ctx *arena_ctx(const Arena *a);
char *arena_copy(Arena *a, const char *s, size_t n); /* n bytes and a NUL */
char *arena_printf(Arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define NEW(arena, T)          ((T *)arena_alloc((arena), sizeof(T)))
#define NEW_ARRAY(arena, T, n) ((T *)arena_alloc_array((arena), (n), sizeof(T)))
void *arena_alloc_array(Arena *a, size_t count, size_t size); /* raises when count * size overflows */

/* ---- names ---- */
Name name_of(Ctx *ctx, const char *s, size_t n);
Name name_str(Ctx *ctx, const char *s);
Name name_printf(Ctx *ctx, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- growing arrays in an arena: VEC(T) v = {0}; vec_push(arena, &v, x); v.v[i], v.n ---- */
#define VEC(T)                                                                                                         \
    struct {                                                                                                           \
        T *v;                                                                                                          \
        size_t n, cap;                                                                                                 \
    }
#define vec_push(arena, vec, ...)                                                                                      \
    do {                                                                                                               \
        if ((vec)->n == (vec)->cap)                                                                                    \
            (vec)->v = vec_grow((arena), (vec)->v, (vec)->n, &(vec)->cap, sizeof *(vec)->v);                           \
        (vec)->v[(vec)->n++] = (__VA_ARGS__);                                                                          \
    } while (0)
void *vec_grow(Arena *a, void *v, size_t n, size_t *cap, size_t item);

/* ---- growing text in an arena; always NUL-terminated once something was put ---- */
typedef struct Buf {
    Arena *arena;
    char *s;
    size_t n, cap;
} Buf;
Buf buf_new(Arena *a); /* s is "" from the start */
void buf_put(Buf *b, const char *s, size_t n);
void buf_puts(Buf *b, const char *s);
void buf_putc(Buf *b, char c);
void buf_printf(Buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_json_string(Buf *b, const char *s, size_t n); /* quoted and escaped */
int number_digits(double x);                /* the fewest significant ones that read back as x, which is finite */
void buf_number(Buf *b, double x);          /* shortest text that reads back; integers without exponent */
void buf_json_number(Buf *b, double x);     /* the same; null when it is not finite */
void buf_csv_string(Buf *b, const char *s); /* quoted, quotes doubled; text for people (utf8_plain) */
void buf_count(Buf *b, int64_t n);          /* 1,176,764,416 */

/* ---- a map from pointer-sized keys (a Name, an index + 1) to pointers; 0 is not a key ---- */
typedef struct Map {
    Arena *arena;
    uintptr_t *key;
    void **value;
    size_t n, cap;
} Map;
void map_init(Map *m, Arena *a);
void **map_at(Map *m, uintptr_t key);       /* finds or makes the slot */
void *map_get(const Map *m, uintptr_t key); /* NULL when absent */

/* ---- small things ---- */
#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
uint64_t hash_bytes(const void *p, size_t n, uint64_t seed);
/* Damerau-Levenshtein distance, at most `limit` + 1. */
size_t edit_distance(const char *a, const char *b, size_t limit);
/* The candidate nearest to `word` within max(1, length / 3), or NULL. */
Name nearest_name(Name word, const Name *candidates, size_t n);
/* The same; `sure`: it is one slip away and no other is near, so that nothing else can be meant. */
Name meant_name(Name word, const Name *candidates, size_t n, bool *sure);
/* a * b and a + b, false on overflow of int64_t. */
static inline bool mul_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_mul_overflow(a, b, out); }
static inline bool add_i64(int64_t a, int64_t b, int64_t *out) { return !__builtin_add_overflow(a, b, out); }

#endif
