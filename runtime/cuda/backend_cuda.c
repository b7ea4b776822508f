/* backend_cuda.c - a GPU behind the table of backend.h: memory, copies, failures, opening and closing.
 *
 * In:  libraries that device.h found, modules of cuda_kernels.c, addresses, sizes.
 * Out: queued work, and numbers when it is waited for.
 * The one idea: everything that is computed follows in one stream, so its order is that of the calls. What the host
 * gives goes through memory that is its own and the device's in turn: it comes up in a second stream while programs
 * run, and the first stream takes it from there when it gets to it. The host waits only for numbers, and where these go
 * into a box, not for what is queued behind them.
 */
#define _GNU_SOURCE
#include "runtime/base/machine.h"
#include "cuda_backend.h"

#include <stdio.h>
#include <stdlib.h>

#include "compiler/base/diag.h"
#include "backend_cuda.h"

enum {
    SPARE_ROOM = 192 << 20, /* of the device: workspace, staging, and what the driver takes for itself */
    LISTED = 186            /* bytes of a message: the calls that were queued last */
};

/* ---- failures ---- */

Status cuda_fail(CudaBackend *c, Status status, const char *fmt, ...)
{
    if (c->base.why[0])
        return status; /* the first failure wins */
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->base.why, sizeof c->base.why, fmt, ap);
    va_end(ap);
    return status;
}

void cuda_place_text(CudaBackend *c, const CallPlace *at, char text[256])
{
    text[0] = 0;
    if (!at->program)
        return;
    const Launch *l = at->launch;
    char where[160] = "";
    if (l && l->span.file && c->base.user.files) {
        LineCol p = source_position(c->base.user.files, l->span.file, l->span.lo);
        snprintf(where, sizeof where, " at %.120s:%u:%u", source_path(c->base.user.files, l->span.file), p.line,
                 p.column);
    }
    snprintf(text, 256, " of %.60s%s (%.20s, run %llu)", l && l->name && *l->name ? l->name : "the model", where,
             at->program, (unsigned long long)at->step + 1);
}

/* The calls that the device may have failed in, the last one first, as many as there is room for. */
static void list_queued(CudaBackend *c, char text[LISTED])
{
    enum { SHOWN = 2 };
    size_t n = 0;
    text[0] = 0;
    uint64_t from = c->n_queued > CUDA_QUEUED ? c->n_queued - CUDA_QUEUED : 0;
    for (uint64_t i = c->n_queued; i > from && c->n_queued - i < SHOWN; i--) {
        const CudaQueued *q = &c->queued[(i - 1) % CUDA_QUEUED];
        char place[256];
        cuda_place_text(c, &q->place, place);
        if (n && strlen(q->what) + strlen(place) + 2 >= LISTED - n)
            break;
        n += (size_t)snprintf(text + n, LISTED - n, "%s%.24s%.155s", n ? ", " : "", q->what, place);
    }
}

/* What fails in a kernel is the process's from then on, whatever context it makes: "the process must be terminated and
 * relaunched" (cuda.h). */
static bool process_lost; /* by any thread */

static bool loses_process(int error)
{
    enum {
        ECC = 214,
        CONTAINED = 226,
        ADDRESS = 700,
        TIMEOUT = 702,
        STACK = 714,
        LAUNCH = 719,
        TENSOR_MEMORY = 721,
        CLIENT = 810
    };
    return error == ECC || error == CONTAINED || error == ADDRESS || error == TIMEOUT ||
           (error >= STACK && error <= LAUNCH) || error == TENSOR_MEMORY || error == CLIENT;
}

static bool is_lost(void) { return __atomic_load_n(&process_lost, __ATOMIC_ACQUIRE); }

Status cuda_must(CudaBackend *c, int error, const char *what)
{
    enum { OF_LAUNCHES = 700 }; /* errors from here on may be those of what was queued before */
    char reason[160], place[256], last[LISTED] = "";
    if (!error)
        return ST_OK;
    cuda_error_text(&c->found.driver, error, reason);
    cuda_place_text(c, &c->base.at, place);
    if (error >= OF_LAUNCHES)
        list_queued(c, last);
    if (!c->broken)
        snprintf(c->end, sizeof c->end, "cuda:%d failed in %.40s%.100s: %.90s%s%s%s", c->found.ordinal, what, place,
                 reason, last[0] ? "; queued last: " : "", last,
                 last[0] && !c->synchronous ? "; VWN_CUDA_SYNC=1 names the call" : "");
    c->broken = true;
    if (loses_process(error))
        __atomic_store_n(&process_lost, true, __ATOMIC_RELEASE);
    return cuda_fail(c, ST_ENVIRONMENT, "%s", c->end);
}

Status cuda_enter(CudaBackend *c)
{
    if (c->broken)
        return cuda_fail(c, ST_ENVIRONMENT, "%s", c->end);
    if (c->has_thread && pthread_equal(c->thread, pthread_self()))
        return ST_OK;
    Status st = cuda_must(c, c->api.set_current(c->context), "making its context current");
    c->thread = pthread_self();
    c->has_thread = st == ST_OK;
    return st;
}

Status cuda_wait(CudaBackend *c, const char *what)
{
    double began = clock_seconds();
    Status st = cuda_must(c, c->api.wait_stream(c->stream), what);
    c->base.waited += clock_seconds() - began;
    if (st == ST_OK)
        c->n_queued = 0;
    return st;
}

Status cuda_queued(CudaBackend *c, const char *what)
{
    if (c->recording)
        return ST_OK;
    c->queued[c->n_queued++ % CUDA_QUEUED] = (CudaQueued){what, c->base.at};
    return c->synchronous ? cuda_wait(c, what) : ST_OK;
}

/* ---- what the host gives ---- */

/* The slot is the host's to write when what was in it has arrived. */
static Status begin_slot(CudaBackend *c)
{
    CudaSlot *s = &c->slot[c->next];
    return s->used ? cuda_must(c, c->api.wait_event(s->arrived), "waiting for an upload") : ST_OK;
}

Status cuda_flush(CudaBackend *c)
{
    const CudaApi *a = &c->api;
    CudaSlot *s = &c->slot[c->next];
    uint64_t bytes = c->pending;
    Status st = ST_OK;
    if (!bytes)
        return ST_OK;
    c->pending = 0;
    if (s->used)
        st = cuda_must(c, a->wait_for(c->copies, s->taken, 0), "ordering an upload");
    if (st == ST_OK)
        st = cuda_must(c, a->up(s->device, s->host, bytes, c->copies), "an upload");
    if (st == ST_OK)
        st = cuda_must(c, a->record(s->arrived, c->copies), "recording an upload");
    if (st == ST_OK)
        st = cuda_must(c, a->wait_for(c->stream, s->arrived, 0), "ordering an upload");
    if (st == ST_OK)
        st = cuda_must(c, a->across((CudaAddress)(uintptr_t)c->pending_to, s->device, bytes, c->stream), "an upload");
    if (st == ST_OK)
        st = cuda_must(c, a->record(s->taken, c->stream), "recording an upload");
    s->used = true;
    c->next = (c->next + 1) % STAGING_SLOTS;
    return st == ST_OK && c->synchronous ? cuda_wait(c, "an upload") : st;
}

/* Uploads to neighbouring places are one copy. */
static Status cuda_upload(Backend *b, void *to, const void *from, uint64_t bytes)
{
    CudaBackend *c = cuda_of(b);
    Status st = cuda_enter(c);
    char *at = to;
    const char *numbers = from;
    while (st == ST_OK && bytes) {
        if (c->pending == STAGING_BYTES || (c->pending && c->pending_to + c->pending != at))
            st = cuda_flush(c);
        if (st == ST_OK && !c->pending) {
            st = begin_slot(c);
            c->pending_to = at;
        }
        uint64_t room = STAGING_BYTES - c->pending, part = bytes < room ? bytes : room;
        if (st != ST_OK)
            break;
        memcpy(c->slot[c->next].host + c->pending, numbers, part);
        c->pending += part;
        at += part;
        numbers += part;
        bytes -= part;
    }
    return st;
}

static Status cuda_download(Backend *b, void *to, const void *from, uint64_t bytes)
{
    CudaBackend *c = cuda_of(b);
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_flush(c);
    for (uint64_t done = 0; st == ST_OK && done < bytes;) {
        uint64_t part = bytes - done < STAGING_BYTES ? bytes - done : STAGING_BYTES;
        st = cuda_must(c, c->api.down(c->landing, (CudaAddress)(uintptr_t)from + done, part, c->stream), "a download");
        if (st == ST_OK)
            st = cuda_wait(c, "waiting for a download");
        if (st == ST_OK)
            memcpy((char *)to + done, c->landing, part);
        done += part;
    }
    if (st == ST_OK)
        cuda_products_keep(c);
    return st;
}

/* Entered before anything of it is there, so that nothing can be lost. */
static Status cuda_box(Backend *b, uint64_t bytes, Box **out)
{
    CudaBackend *c = cuda_of(b);
    CtxGuard guard;
    void *host = NULL;
    Status st = cuda_enter(c);
    if (st != ST_OK)
        return st;
    if (!CTX_TRY(b->ctx, &guard))
        return cuda_fail(c, b->ctx->raised, "%s", b->ctx->message);
    Box *box = *out = NEW(c->arena, Box);
    ctx_leave(b->ctx, &guard);
    box->bytes = bytes;
    box->next = c->box;
    c->box = box;
    st = cuda_must(c, c->api.take_host(&host, bytes ? bytes : 1, 0), "taking memory of the host for copies");
    box->host = host;
    return st == ST_OK ? cuda_must(c, c->api.new_event(&box->come, CUDA_EVENT_NO_TIME), "making an event") : st;
}

static Status cuda_post(Backend *b, Box *box, uint64_t at, const void *from, uint64_t bytes)
{
    CudaBackend *c = cuda_of(b);
    if (at > box->bytes || bytes > box->bytes - at)
        return cuda_fail(c, ST_BUG, "%llu bytes for a box of %llu", (unsigned long long)(at + bytes),
                         (unsigned long long)box->bytes);
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_flush(c);
    if (st == ST_OK)
        st = cuda_must(c, c->api.down(box->host + at, (CudaAddress)(uintptr_t)from, bytes, c->stream), "a download");
    if (st == ST_OK)
        st = cuda_must(c, c->api.record(box->come, c->stream), "recording a download");
    return st == ST_OK && c->synchronous ? cuda_wait(c, "a download") : st;
}

/* What is queued behind it goes on meanwhile. */
static Status cuda_receive(Backend *b, Box *box, const char **memory)
{
    CudaBackend *c = cuda_of(b);
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_flush(c);
    double began = clock_seconds();
    if (st == ST_OK)
        st = cuda_must(c, c->api.wait_event(box->come), "waiting for numbers of a step");
    b->waited += clock_seconds() - began;
    *memory = box->host;
    if (st == ST_OK)
        cuda_products_keep(c);
    return st;
}

static Status cuda_sync(Backend *b)
{
    CudaBackend *c = cuda_of(b);
    b->why[0] = 0;
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_flush(c);
    return st == ST_OK ? cuda_wait(c, "computing") : st;
}

/* ---- memory ---- */

static bool cuda_room(Backend *b, uint64_t *left, uint64_t *all)
{
    CudaBackend *c = cuda_of(b);
    size_t free, total;
    if (cuda_enter(c) != ST_OK || cuda_must(c, c->api.memory_info(&free, &total), "asking for its memory") != ST_OK)
        return false;
    *left = free;
    *all = total;
    return true;
}

static Status no_memory(CudaBackend *c, uint64_t bytes)
{
    uint64_t left, all;
    if (!cuda_room(&c->base, &left, &all))
        return ST_ENVIRONMENT;
    return cuda_fail(
        c, ST_ENVIRONMENT,
        "out of memory of cuda:%d: %.1f MiB asked for, %.1f of %.1f MiB free; `nvidia-smi` shows who has the "
        "rest; a smaller micro_batch needs less",
        c->found.ordinal, (double)bytes / 1048576, (double)left / 1048576, (double)all / 1048576);
}

static Status cuda_alloc(Backend *b, uint64_t bytes, void **memory)
{
    CudaBackend *c = cuda_of(b);
    CudaAddress at = 0;
    *memory = NULL;
    Status st = cuda_enter(c);
    if (st != ST_OK)
        return st;
    int error = bytes > (uint64_t)1 << 56 ? CUDA_OUT_OF_MEMORY : c->api.take(&at, bytes ? bytes : 1);
    if (error == CUDA_OUT_OF_MEMORY)
        return no_memory(c, bytes);
    st = cuda_must(c, error, "taking memory");
    if (st == ST_OK && bytes)
        st = cuda_must(c, c->api.fill(at, 0, bytes, c->stream), "zeroing memory");
    if (st == ST_OK)
        *memory = (void *)(uintptr_t)at;
    else if (at)
        c->api.give(at);
    return st;
}

void cuda_drain(CudaBackend *c)
{
    if (!c->drained && c->stream)
        c->api.wait_stream(c->stream);
    if (!c->drained && c->copies)
        c->api.wait_stream(c->copies);
    c->drained = true;
}

/* Nothing that is queued uses it any more. A device that was given up gives back what it can. */
static void cuda_free(Backend *b, void *memory, uint64_t bytes)
{
    CudaBackend *c = cuda_of(b);
    (void)bytes;
    if (!memory)
        return;
    if (cuda_enter(c) == ST_OK && cuda_flush(c) == ST_OK)
        cuda_wait(c, "waiting before memory is given back");
    if (c->broken)
        cuda_drain(c);
    cuda_must(c, c->api.give((CudaAddress)(uintptr_t)memory), "giving memory back");
}

/* ---- rows and products by expert ---- */

static Status cuda_copy_parts(Backend *b, const PlanCopy *how, int64_t rows, const void *x, void *out)
{
    CudaBackend *c = cuda_of(b);
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_flush(c);
    if (st != ST_OK || rows <= 0 || how->bytes <= 0)
        return st;
    if (how->from == how->bytes && how->to == how->bytes) { /* one behind the other */
        st = cuda_must(c,
                       c->api.across((CudaAddress)(uintptr_t)out, (CudaAddress)(uintptr_t)x,
                                     (uint64_t)(rows * how->bytes), c->stream),
                       "copying rows");
        return st == ST_OK ? cuda_queued(c, "a copy of rows") : st;
    }
    CudaCopy2D copy = {.from_kind = CUDA_DEVICE_MEMORY,
                       .from = (CudaAddress)(uintptr_t)x,
                       .from_pitch = (size_t)how->from,
                       .to_kind = CUDA_DEVICE_MEMORY,
                       .to = (CudaAddress)(uintptr_t)out,
                       .to_pitch = (size_t)how->to,
                       .width = (size_t)how->bytes,
                       .height = (size_t)rows};
    st = cuda_must(c, c->api.copy_2d(&copy, c->stream), "copying rows");
    return st == ST_OK ? cuda_queued(c, "a copy of rows") : st;
}

static Status cuda_expert(Backend *b, const PlanExpert *how, const void *x, const void *w_or_dy, const int64_t *index,
                          float *out)
{
    (void)how, (void)x, (void)w_or_dy, (void)index, (void)out;
    return cuda_fail(cuda_of(b), ST_BUG, "a plan for a device has kernels for products by expert");
}

/* ---- opening and closing ---- */

static void close_slot(CudaBackend *c, CudaSlot *s)
{
    if (s->arrived)
        cuda_must(c, c->api.end_event(s->arrived), "ending an event");
    if (s->taken)
        cuda_must(c, c->api.end_event(s->taken), "ending an event");
    if (s->device)
        cuda_must(c, c->api.give(s->device), "giving memory back");
    if (s->host)
        cuda_must(c, c->api.give_host(s->host), "giving memory of the host back");
}

static void close_box(CudaBackend *c, Box *box)
{
    if (box->come)
        cuda_must(c, c->api.end_event(box->come), "ending an event");
    if (box->host)
        cuda_must(c, c->api.give_host(box->host), "giving memory of the host back");
}

static void close_context(CudaBackend *c)
{
    cuda_must(c, c->api.set_current(c->context), "closing it");
    cuda_drain(c);
    cuda_forget_marks(c);
    cuda_products_close(c);
    cuda_unload(c);
    for (int i = 0; i < STAGING_SLOTS; i++)
        close_slot(c, &c->slot[i]);
    for (Box *box = c->box; box; box = box->next)
        close_box(c, box);
    if (c->landing)
        cuda_must(c, c->api.give_host(c->landing), "giving memory of the host back");
    if (c->copies)
        cuda_must(c, c->api.end_stream(c->copies), "ending a stream");
    if (c->stream)
        cuda_must(c, c->api.end_stream(c->stream), "ending a stream");
    cuda_must(c, c->api.set_current(NULL), "closing it");
    cuda_must(c, c->api.release(c->found.handle), "closing it");
}

/* What is there goes, whatever a device that failed says to that. */
static void cuda_close(Backend *b)
{
    if (!b)
        return;
    CudaBackend *c = cuda_of(b);
    c->base.at = (CallPlace){0};
    if (c->context)
        close_context(c);
    if (c->broken && b->last_words)
        snprintf(b->last_words, 512, "%s", c->end);
    cache_close(&c->cache);
    arena_free(c->arena);
    ctx_release(b->ctx, c);
}

static Status open_slot(CudaBackend *c, CudaSlot *s)
{
    const CudaApi *a = &c->api;
    void *host = NULL;
    Status st = cuda_must(c, a->take_host(&host, STAGING_BYTES, 0), "taking memory of the host for copies");
    s->host = host;
    if (st == ST_OK)
        st = cuda_must(c, a->take(&s->device, STAGING_BYTES), "taking memory for copies");
    if (st == ST_OK)
        st = cuda_must(c, a->new_event(&s->arrived, CUDA_EVENT_NO_TIME), "making an event");
    if (st == ST_OK)
        st = cuda_must(c, a->new_event(&s->taken, CUDA_EVENT_NO_TIME), "making an event");
    return st;
}

/* Before anything is taken: what others have left. */
static Status check_room(CudaBackend *c)
{
    uint64_t left, all;
    if (!cuda_room(&c->base, &left, &all))
        return ST_ENVIRONMENT;
    if (left >= SPARE_ROOM)
        return ST_OK;
    return cuda_fail(
        c, ST_ENVIRONMENT,
        "cuda:%d (%s) has %.1f of %.1f MiB free: other processes, which `nvidia-smi` shows, have its memory; "
        "end them or name another GPU",
        c->found.ordinal, c->found.device.name, (double)left / 1048576, (double)all / 1048576);
}

static Status open_device(CudaBackend *c)
{
    const CudaApi *a = &c->api;
    void *landing = NULL;
    Status st = cuda_must(c, a->retain(&c->context, c->found.handle), "opening it");
    if (st == ST_OK)
        st = cuda_enter(c);
    if (st == ST_OK)
        st = check_room(c);
    if (st == ST_OK)
        st = cuda_must(c, a->new_stream(&c->stream, CUDA_STREAM_NON_BLOCKING), "making a stream");
    if (st == ST_OK)
        st = cuda_must(c, a->new_stream(&c->copies, CUDA_STREAM_NON_BLOCKING), "making a stream");
    for (int i = 0; st == ST_OK && i < STAGING_SLOTS; i++)
        st = open_slot(c, &c->slot[i]);
    if (st == ST_OK)
        st = cuda_must(c, a->take_host(&landing, STAGING_BYTES, 0), "taking memory of the host for copies");
    c->landing = landing;
    return st == ST_OK ? cuda_products_open(c) : st;
}

static void cuda_say(Backend *b, char text[256])
{
    CudaBackend *c = cuda_of(b);
    uint64_t left = 0, all = 0;
    cuda_room(b, &left, &all);
    snprintf(text, 256, "cuda:%d, %.120s, %.1f of %.1f GiB free", c->found.ordinal, c->found.device.name,
             (double)left / (1 << 30), (double)all / (1 << 30));
}

static const char *cuda_cache_trouble(const Backend *b)
{
    const Cache *c = &((const CudaBackend *)b)->cache;
    return c->readable ? NULL : c->note;
}

/* Another one that is closed leaves this thread without a context. */
static void cuda_rest(Backend *b) { cuda_of(b)->has_thread = false; }

static const BackendOps cuda_ops = {
    .name = "cuda",
    .alloc = cuda_alloc,
    .free = cuda_free,
    .upload = cuda_upload,
    .download = cuda_download,
    .box = cuda_box,
    .post = cuda_post,
    .receive = cuda_receive,
    .build = cuda_build,
    .begin = cuda_begin,
    .end = cuda_end,
    .drop = cuda_drop,
    .launch = cuda_launch,
    .matmul = cuda_matmul,
    .expert = cuda_expert,
    .copy = cuda_copy_parts,
    .sync = cuda_sync,
    .room = cuda_room,
    .mark = cuda_mark,
    .between = cuda_between,
    .shape = cuda_shape,
    .say = cuda_say,
    .cache_trouble = cuda_cache_trouble,
    .rest = cuda_rest,
    .close = cuda_close,
};

BackendAbsence backend_cuda_absence(void)
{
    CudaDriver d;
    char why[512];
    if (is_lost())
        return ABSENT_LOST;
    if (!cuda_driver_open(&d, why))
        return ABSENT_DEVICE;
    return d.state == CUDA_IS_STUB ? ABSENT_STUB : d.state || d.devices < 1 ? ABSENT_DEVICE : ABSENT_UNUSABLE;
}

Status backend_cuda_open(Ctx *ctx, const BackendOptions *how, Backend **out, char why[512])
{
    const char *wait_always = getenv("VWN_CUDA_SYNC");
    *out = NULL;
    CudaFound found;
    if (is_lost()) {
        snprintf(why, 512, "a GPU failed before in this process, which gets none again: start vwn once more");
        return ST_ENVIRONMENT;
    }
    if (!cuda_find(ctx, how->ordinal, how->local, &found, why))
        return ST_ENVIRONMENT;
    CudaBackend *c = ctx_alloc(ctx, sizeof *c);
    c->base = (Backend){.ops = &cuda_ops,
                        .kind = &backend_kinds[BACKEND_cuda],
                        .ctx = ctx,
                        .threads = 1,
                        .queues = true,
                        .target = target_of_arch(found.arch),
                        .bf16 = true};
    c->base.multiprocessors = found.multiprocessors;
    c->found = found;
    c->api = found.api;
    c->threads = how->threads;
    c->base.user = how->user;
    c->synchronous = wait_always && !strcmp(wait_always, "1");
    c->arena = arena_new(ctx);
    map_init(&c->by_name, c->arena);
    cache_open(&c->cache, CACHE_CUBINS, how->cache_dir);
    Status st = open_device(c);
    if (st != ST_OK) {
        snprintf(why, 512, "%s", c->base.why);
        cuda_close(&c->base);
        return st;
    }
    *out = &c->base;
    return ST_OK;
}
