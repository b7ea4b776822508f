/* export_log.c - `vwn export-log`: the events of runs for other programs.
 *
 * In:  run directories.   Out: CSV, JSON lines, or the bytes of one TensorBoard event file.
 * The one idea: an event is its kind, its step and numbers by name; what comes before a resume goes on counting. TensorBoard's
 * file is records of protocol buffers, each with its length and masked checksums (CRC-32C), all written out here.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "runtime/base/crc32c.h"
#include "runtime/checkpoint/history.h"
#include "runtime/checkpoint/run_list.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

/* What every row has anyway, or is none of training. */
static bool is_common(const char *name)
{
    static const char *const common[] = {"v", "step", "steps", "tokens", "seconds"};
    for (size_t i = 0; i < COUNT_OF(common); i++)
        if (!strcmp(name, common[i]))
            return true;
    return false;
}

typedef struct LogExport {
    Session session;
    const vwn_export_options *how;
    const vwn_writer *out;
    RunPaths runs;
    NameVec names;   /* the columns */
    const char *run; /* that is read */
    RunClock clock;
    double at[HISTORY_AXES]; /* of the last event */
    Buf row;
    double begins;   /* TensorBoard: when the seconds of the run began, since 1970 */
} LogExport;

static void put(LogExport *e)
{
    write_text(e->out, e->row.s, e->row.n);
    e->row.n = 0;
}

/* ---- tables ---- */

static bool take_csv(void *user, const Json *event)
{
    LogExport *e = user;
    Buf *b = &e->row;
    const char *kind = json_string(event, "event"), *text = json_string(event, "text");
    if (!kind || !run_clock_take(&e->clock, event, e->at))
        return false;
    const double common[] = {event_number(event, "step"), event_number(event, "tokens"), e->at[BY_SECONDS]};
    buf_csv_string(b, e->run);
    buf_putc(b, ',');
    if (kind[strspn(kind, "abcdefghijklmnopqrstuvwxyz_")])
        buf_csv_string(b, kind);
    else
        buf_puts(b, kind);
    for (size_t i = 0; i < COUNT_OF(common) + e->names.n; i++) {
        double x = i < COUNT_OF(common) ? common[i] : event_number(event, e->names.v[i - COUNT_OF(common)]);
        buf_putc(b, ',');
        if (isfinite(x))
            buf_number(b, x);
    }
    buf_putc(b, ',');
    if (text)
        buf_csv_string(b, text);
    buf_putc(b, '\n');
    put(e);
    return true;
}

static bool take_json(void *user, const Json *event)
{
    LogExport *e = user;
    Buf *b = &e->row;
    const char *kind = json_string(event, "event"), *text = json_string(event, "text");
    if (!kind || !run_clock_take(&e->clock, event, e->at))
        return false;
    buf_puts(b, "{\"v\":1,\"run\":");
    buf_json_string(b, e->run, strlen(e->run));
    buf_puts(b, ",\"event\":");
    buf_json_string(b, kind, strlen(kind));
    buf_printf(b, ",\"step\":%.0f,\"tokens\":%.0f,\"seconds\":", event_number(event, "step"), event_number(event, "tokens"));
    buf_number(b, e->at[BY_SECONDS]);
    for (size_t i = 0; i < e->names.n; i++) {
        double x = event_number(event, e->names.v[i]);
        if (!isfinite(x))
            continue;
        buf_putc(b, ',');
        buf_json_string(b, e->names.v[i], strlen(e->names.v[i]));
        buf_putc(b, ':');
        buf_number(b, x);
    }
    if (text) {
        buf_puts(b, ",\"text\":");
        buf_json_string(b, text, strlen(text));
    }
    buf_puts(b, "}\n");
    put(e);
    return true;
}

/* ---- TensorBoard ---- */

static void varint(Buf *b, uint64_t x)
{
    for (; x >= 128; x >>= 7)
        buf_putc(b, (char)(x | 128));
    buf_putc(b, (char)x);
}

static void little(Buf *b, uint64_t x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        buf_putc(b, (char)(x >> (8 * i)));
}

/* Fields of a protocol buffer: a number and how it is stored; 0 varint, 1 eight bytes, 2 bytes behind their length, 5 four. */
static void field(Buf *b, int number, int wire)
{
    varint(b, (uint64_t)(number << 3 | wire));
}

static void field_double(Buf *b, int number, double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    field(b, number, 1);
    little(b, bits, 8);
}

static void field_float(Buf *b, int number, double x)
{
    float f = (float)x;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    field(b, number, 5);
    little(b, bits, 4);
}

static void field_bytes(Buf *b, int number, const char *s, size_t n)
{
    field(b, number, 2);
    varint(b, n);
    buf_put(b, s, n);
}

static void record(LogExport *e, const Buf *message)
{
    Buf *b = &e->row;
    little(b, message->n, 8);
    little(b, crc32c_masked(b->s, 8), 4);
    buf_put(b, message->s, message->n);
    little(b, crc32c_masked(message->s, message->n), 4);
    put(e);
}

/* Event: wall_time = 1, step = 2, file_version = 3, summary = 5. Summary: value = 1. Value: tag = 1, simple_value = 2. */
static bool take_event(void *user, const Json *event)
{
    LogExport *e = user;
    Arena *a = e->session.ctx->scratch;
    const char *kind = json_string(event, "event");
    Buf summary = buf_new(a), message = buf_new(a);
    if (!kind || !run_clock_take(&e->clock, event, e->at))
        return false;
    for (size_t i = 0; i < e->names.n && strcmp(kind, "end"); i++) { /* the end says losses again */
        double x = event_number(event, e->names.v[i]);
        Buf value = buf_new(a);
        if (!isfinite(x))
            continue;
        const char *tag = e->names.v[i]; /* evaluations and steps have losses of one name */
        if (strcmp(kind, "step") && strcmp(tag, "eval_loss"))
            tag = arena_printf(a, "%s/%s", kind, tag);
        field_bytes(&value, 1, tag, strlen(tag));
        field_float(&value, 2, x);
        field_bytes(&summary, 1, value.s, value.n);
    }
    if (!summary.n)
        return true;
    field_double(&message, 1, e->begins + e->at[BY_SECONDS]);
    field(&message, 2, 0);
    varint(&message, (uint64_t)(int64_t)event_number(event, "step"));
    field_bytes(&message, 5, summary.s, summary.n);
    record(e, &message);
    return true;
}

static bool take_clock(void *user, const Json *event)
{
    LogExport *e = user;
    return run_clock_take(&e->clock, event, e->at);
}

/* Events have the seconds of training, and no date: the last one was written when its file was. */
static void put_tensorboard(LogExport *e)
{
    Session *s = &e->session;
    struct stat st;
    if (e->runs.n != 1)
        ctx_raise(s->ctx, ST_USAGE, "a TensorBoard file is of one run");
    events_read(s, e->run, take_clock, e);
    if (stat(arena_printf(s->arena, "%s/events.jsonl", e->run), &st) == 0)
        e->begins = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec - e->at[BY_SECONDS];
    e->clock = run_clock();
    Buf first = buf_new(s->arena);
    field_double(&first, 1, e->begins);
    field_bytes(&first, 3, "brain.Event:2", 13);
    record(e, &first);
    events_read(s, e->run, take_event, e);
}

/* ---- the call ---- */

static void columns(LogExport *e)
{
    Map seen;
    map_init(&seen, e->session.arena);
    for (size_t i = 0; i < e->runs.n; i++) {
        NameVec names = {0};
        Events found = events_names(&e->session, e->runs.v[i], &names);
        events_warn(&e->session, e->runs.v[i], &found);
        for (size_t k = 0; k < names.n; k++) {
            void **slot = map_at(&seen, (uintptr_t)names.v[k]);
            if (!*slot && !is_common(names.v[k]))
                vec_push(e->session.arena, &e->names, names.v[k]);
            *slot = e;
        }
    }
}

static Status export_body(void *user)
{
    LogExport *e = user;
    session_open(&e->session, e->session.owner);
    e->row = buf_new(e->session.arena);
    e->runs = run_paths(&e->session, e->how->run, e->how->n_runs);
    columns(e);
    if (e->how->form == VWN_EXPORT_CSV) {
        buf_puts(&e->row, "run,event,step,tokens,seconds");
        for (size_t i = 0; i < e->names.n; i++) {
            buf_putc(&e->row, ',');
            buf_csv_string(&e->row, e->names.v[i]);
        }
        buf_puts(&e->row, ",text\n");
        put(e);
    }
    for (size_t i = 0; i < e->runs.n; i++) {
        e->run = e->runs.v[i];
        e->clock = run_clock();
        if (e->how->form == VWN_EXPORT_TENSORBOARD)
            put_tensorboard(e);
        else
            events_read(&e->session, e->run, e->how->form == VWN_EXPORT_CSV ? take_csv : take_json, e);
    }
    return ST_OK;
}

Status export_events(vwn_context *owner, const vwn_export_options *how, const vwn_writer *out)
{
    LogExport e = {.session.owner = owner, .how = how, .out = out};
    Status st = guarded(owner->ctx, export_body, &e);
    return session_end(&e.session, st);
}
