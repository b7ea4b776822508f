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
#include "runtime/checkpoint/settings.h"
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
    double begins; /* TensorBoard: when the seconds of the run began, since 1970 */
    int ended;     /* the same: how it has ended, 0: it has not */
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
    buf_printf(b, ",\"step\":%.0f,\"tokens\":%.0f,\"seconds\":", event_number(event, "step"),
               event_number(event, "tokens"));
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
static void field(Buf *b, int number, int wire) { varint(b, (uint64_t)(number << 3 | wire)); }

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

/* What a curve is of: numbers of steps, evaluations and rows of their kind, but none that only counts time. */
static bool is_curve(const char *kind, const char *name)
{
    return strcmp(kind, "end") && strcmp(kind, "start") && strcmp(name, "eta"); /* the end says losses again */
}

/* Event: wall_time = 1, step = 2, file_version = 3, summary = 5. Summary: value = 1. */
static void put_event(LogExport *e, double wall, double step, const Buf *summary)
{
    Buf message = buf_new(e->session.ctx->scratch);
    field_double(&message, 1, wall);
    field(&message, 2, 0);
    varint(&message, (uint64_t)(int64_t)step);
    field_bytes(&message, 5, summary->s, summary->n);
    record(e, &message);
}

/* Value: tag = 1, simple_value = 2. */
static bool take_event(void *user, const Json *event)
{
    LogExport *e = user;
    Arena *a = e->session.ctx->scratch;
    const char *kind = json_string(event, "event");
    Buf summary = buf_new(a);
    if (!kind || !run_clock_take(&e->clock, event, e->at))
        return false;
    for (size_t i = 0; i < e->names.n; i++) {
        double x = event_number(event, e->names.v[i]);
        Buf value = buf_new(a);
        if (!isfinite(x) || !is_curve(kind, e->names.v[i]))
            continue;
        const char *tag = e->names.v[i]; /* evaluations and steps have losses of one name */
        if (strcmp(kind, "step") && strcmp(tag, "eval_loss"))
            tag = arena_printf(a, "%s/%s", kind, tag);
        field_bytes(&value, 1, tag, strlen(tag));
        field_float(&value, 2, x);
        field_bytes(&summary, 1, value.s, value.n);
    }
    if (summary.n)
        put_event(e, e->begins + e->at[BY_SECONDS], event_number(event, "step"), &summary);
    return true;
}

/* What the plugin for settings reads. Value: tag = 1, metadata = 9. SummaryMetadata: plugin_data = 1. PluginData: plugin_name = 1,
 * content = 2. HParamsPluginData: session_start_info = 3, session_end_info = 4. */
static void put_session(LogExport *e, double wall, const char *tag, int number, const Buf *info)
{
    Arena *a = e->session.ctx->scratch;
    Buf data = buf_new(a), plugin = buf_new(a), metadata = buf_new(a), value = buf_new(a), summary = buf_new(a);
    field_bytes(&data, number, info->s, info->n);
    field_bytes(&plugin, 1, "hparams", 7);
    field_bytes(&plugin, 2, data.s, data.n);
    field_bytes(&metadata, 1, plugin.s, plugin.n);
    field_bytes(&value, 1, tag, strlen(tag));
    field_bytes(&value, 9, metadata.s, metadata.n);
    field_bytes(&summary, 1, value.s, value.n);
    put_event(e, wall, 0, &summary);
}

/* SessionStartInfo: hparams = 1, of which each has key = 1, value = 2: number_value = 2 or string_value = 3; start_time_secs = 5. */
static void put_settings(LogExport *e)
{
    Arena *a = e->session.ctx->scratch;
    SettingList all = settings_read(&e->session, e->session.arena, e->run);
    Buf info = buf_new(a);
    for (size_t i = 0; i < all.n; i++) {
        const char *text = all.v[i].value;
        char *end;
        double x = strtod(text, &end);
        Buf value = buf_new(a), entry = buf_new(a);
        if (*text && !*end && isfinite(x))
            field_double(&value, 2, x);
        else
            field_bytes(&value, 3, text, strlen(text));
        field_bytes(&entry, 1, all.v[i].name, strlen(all.v[i].name));
        field_bytes(&entry, 2, value.s, value.n);
        field_bytes(&info, 1, entry.s, entry.n);
    }
    field_double(&info, 5, e->begins);
    if (all.n)
        put_session(e, e->begins, "_hparams_/session_start_info", 3, &info);
}

/* SessionEndInfo: status = 1 (0 unknown, 1 success, 2 failure), end_time_secs = 2. */
static void put_ending(LogExport *e)
{
    Buf info = buf_new(e->session.ctx->scratch);
    double wall = e->begins + e->at[BY_SECONDS];
    field(&info, 1, 0);
    varint(&info, (uint64_t)e->ended);
    field_double(&info, 2, wall);
    put_session(e, wall, "_hparams_/session_end_info", 4, &info);
}

static bool take_clock(void *user, const Json *event)
{
    LogExport *e = user;
    const char *status = json_string(event, "status");
    e->ended = !status ? 0 : !strcmp(status, "ok") ? 1 : 2;
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
    put_settings(e);
    events_read(s, e->run, take_event, e);
    if (e->ended)
        put_ending(e);
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
