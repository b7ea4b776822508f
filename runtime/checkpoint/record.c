/* record.c - see record.h. */
#include "record.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/sha256.h"

struct StartRecord {
    GitAsk git;
};

static void end_record(void *what)
{
    StartRecord *r = what;
    git_answer(&r->git);
}

StartRecord *record_begin(Session *s)
{
    StartRecord *r = NEW(s->arena, StartRecord);
    r->git = git_ask();
    session_defer(s, end_record, r);
    return r;
}

/* ---- a line ---- */

static void put_string(Buf *b, const char *key, const char *text)
{
    buf_printf(b, ",\"%s\":", key);
    buf_json_string(b, text, strlen(text));
}

static void put_date(Buf *b)
{
    char text[32];
    time_t now = time(NULL);
    struct tm at;
    gmtime_r(&now, &at);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &at);
    put_string(b, "date", text);
}

/* Of a GPU its name; the reference evaluator runs on the processor, too. */
static void put_device(Session *s, Buf *b)
{
    char host[256] = "", name[256];
    Buf processor = buf_new(s->arena);
    gethostname(host, sizeof host - 1);
    machine_processor(&processor);
    put_string(b, "host", host);
    put_string(b, "processor", processor.s);
    if (s->backend && s->backend->ops->say) {
        s->backend->ops->say(s->backend, name);
        char *free_memory = strrchr(name, ',');
        if (free_memory) /* "cuda:0, NVIDIA H100, 78.2 of 79.6 GiB free" */
            *free_memory = 0;
        put_string(b, "device", name);
    } else {
        put_string(b, "device", s->backend ? s->backend->kind->word : "reference");
    }
    buf_printf(b, ",\"threads\":%d", s->backend ? s->backend->threads : 1);
}

static void put_words(Session *s, Buf *b)
{
    Words words = machine_command(s->arena);
    char folder[4096];
    for (size_t i = 0; i < words.n; i++) {
        buf_puts(b, i ? "," : ",\"command\":[");
        buf_json_string(b, words.v[i], strlen(words.v[i]));
    }
    buf_puts(b, words.n ? "]" : "");
    if (getcwd(folder, sizeof folder))
        put_string(b, "folder", folder);
}

static void put_git(Buf *b, StartRecord *record)
{
    GitAnswer git = git_answer(&record->git);
    if (!git.commit[0])
        return;
    put_string(b, "commit", git.commit);
    if (git.known)
        buf_printf(b, ",\"dirty\":%s", git.dirty ? "true" : "false");
}

/* Of a file's own text. False: it was not read. */
static bool file_hash(Session *s, const char *path, char hex[65])
{
    size_t n;
    Sha256 sha;
    uint32_t file = path ? source_named(s->ctx, path) : 0;
    const char *text = source_text(s->ctx, file, &n);
    if (!file)
        return false;
    sha256_start(&sha);
    sha256_add(&sha, text, n);
    sha256_hex(&sha, hex);
    return true;
}

/* Its texts are those of the build, which is recorded. */
static bool of_library(const char *path) { return !strncmp(path, "std/", 4); }

/* Of the newest start. NULL: none is recorded. */
static const Json *newest(Session *s, const char *run)
{
    Records all = records_read(s, run);
    return all.n ? all.v[all.n - 1].json : NULL;
}

static void put_read(Buf *b, const char *path, const char *hex, bool first)
{
    buf_puts(b, first ? "{\"file\":" : ",{\"file\":");
    buf_json_string(b, path, strlen(path));
    put_string(b, "sha256", hex);
    buf_putc(b, '}');
}

static void put_file(Session *s, Buf *b, const Unit *unit)
{
    char hex[65];
    put_string(b, "file", unit->path ? unit->path : "");
    if (file_hash(s, unit->path, hex))
        put_string(b, "sha256", hex);
    buf_puts(b, ",\"reads\":[");
    bool first = true;
    for (size_t i = 0; i < unit->files.n; i++) {
        const char *path = unit->files.v[i];
        if (of_library(path) || !file_hash(s, path, hex))
            continue;
        put_read(b, path, hex, first);
        first = false;
    }
    buf_putc(b, ']');
}

/* What a start of the run read, from the first on; NULL: nothing is recorded. */
static const Json *reads_of(const Json *start)
{
    const Json *reads = json_get(start, "reads");
    return reads && reads->kind == JSON_ARRAY ? reads->first : NULL;
}

/* Of a start with the text that the run keeps: the file of the start before, which the run is of, whatever became of it. */
static void put_kept(Session *s, Buf *b, const char *run)
{
    const Json *last = newest(s, run);
    const char *file = record_file(s, run), *hex = json_string(last, "sha256");
    put_string(b, "file", file ? file : "");
    if (hex)
        put_string(b, "sha256", hex);
    buf_puts(b, ",\"reads\":[");
    bool first = true;
    for (const Json *f = reads_of(last); f; f = f->next) {
        const char *path = json_string(f, "file"), *of = json_string(f, "sha256");
        if (!path || !of)
            continue;
        put_read(b, path, of, first);
        first = false;
    }
    buf_puts(b, "],\"kept\":true");
}

void record_write(Session *s, RunDir *r, StartRecord *record, const Hooks *hooks, const Unit *unit, const char *data,
                  int64_t step)
{
    Buf b = buf_new(s->arena);
    size_t n;
    const char *before = run_read_file(s->arena, arena_printf(s->arena, "%s/" RECORD_FILE, r->path), &n);
    if (before && n) {
        buf_put(&b, before, n);
        if (before[n - 1] != '\n')
            buf_putc(&b, '\n');
    }
    buf_puts(&b, "{\"v\":1,\"event\":\"record\"");
    put_date(&b);
    buf_printf(&b, ",\"step\":%lld", (long long)step);
    put_device(s, &b);
    put_words(s, &b);
    put_string(&b, "vwn", hooks->version);
    put_string(&b, "build", hooks->build);
    put_git(&b, record);
    if (unit->folder)
        put_kept(s, &b, r->path);
    else
        put_file(s, &b, unit);
    put_string(&b, "data", data);
    buf_puts(&b, "}\n");
    run_write_file(s, r, RECORD_FILE, b.s, b.n);
}

Records records_read(Session *s, const char *run)
{
    Records all = {0};
    size_t n;
    const char *text = run_read_file(s->arena, arena_printf(s->arena, "%s/" RECORD_FILE, run), &n);
    for (const char *at = text; at && *at;) {
        JsonError e;
        size_t line = strcspn(at, "\n");
        Json *j = json_read(s->arena, at, line, &e);
        if (j && j->kind == JSON_OBJECT) {
            json_make_plain(s->arena, j);
            vec_push(s->arena, &all, ((RecordLine){j, arena_copy(s->arena, at, line)}));
        }
        at += line + (at[line] == '\n');
    }
    return all;
}

/* Whether a start read a file with this text, wherever the file lay. */
static bool was_read(const Json *start, const char *hex)
{
    const char *own = json_string(start, "sha256");
    bool is = own && !strcmp(own, hex);
    for (const Json *f = reads_of(start); f && !is; f = f->next)
        is = json_string(f, "sha256") && !strcmp(json_string(f, "sha256"), hex);
    return is;
}

const char *record_changed(Session *s, const char *run, const Unit *unit)
{
    char hex[65];
    const Json *last = newest(s, run);
    Words changed = {0};
    if (!last || !json_string(last, "sha256"))
        return NULL;
    if (file_hash(s, unit->path, hex) && !was_read(last, hex))
        vec_push(s->arena, &changed, strcmp(unit->path, "-") ? unit->path : "the file");
    for (size_t i = 0; i < unit->files.n && json_get(last, "reads"); i++)
        if (!of_library(unit->files.v[i]) && file_hash(s, unit->files.v[i], hex) && !was_read(last, hex))
            vec_push(s->arena, &changed, unit->files.v[i]);
    Buf b = buf_new(s->arena);
    for (size_t i = 0; i < changed.n; i++)
        buf_printf(&b, "%s%s", list_gap(i, changed.n, " and "), changed.v[i]);
    return b.s;
}

const char *record_file(Session *s, const char *run)
{
    const Json *last = newest(s, run);
    const char *file = last ? json_string(last, "file") : NULL, *folder = last ? json_string(last, "folder") : NULL;
    char here[4096];
    if (!file || !*file || !strcmp(file, "-"))
        return NULL;
    bool same = !folder || (getcwd(here, sizeof here) && !strcmp(here, folder));
    return *file == '/' || same ? file : arena_printf(s->arena, "%s/%s", folder, file);
}

/* ---- labels ---- */

Labels labels_read(Session *s, const char *folder)
{
    Labels l = {.note = ""};
    JsonError e;
    size_t n;
    const char *text = run_read_file(s->arena, arena_printf(s->arena, "%s/" LABELS_FILE, folder), &n);
    Json *j = text ? json_read(s->arena, text, n, &e) : NULL;
    if (!j || j->kind != JSON_OBJECT)
        return l;
    json_make_plain(s->arena, j);
    const Json *tags = json_get(j, "tags");
    const char *note = json_string(j, "note");
    for (const Json *t = tags && tags->kind == JSON_ARRAY ? tags->first : NULL; t; t = t->next)
        if (t->kind == JSON_STRING)
            vec_push(s->arena, &l.tag, t->s);
    l.note = note ? note : "";
    return l;
}

void labels_write(Session *s, const char *folder, const Labels *labels)
{
    RunDir r = {.path = folder, .lock_fd = -1, .events_fd = -1};
    const char *path = arena_printf(s->arena, "%s/" LABELS_FILE, folder);
    Buf b = buf_new(s->arena);
    if (!labels->tag.n && !*labels->note) {
        if (unlink(path) && errno != ENOENT)
            ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s could not be removed: %s", path, strerror(errno));
        return;
    }
    buf_puts(&b, "{\"v\":1,\"event\":\"labels\",\"tags\":[");
    for (size_t i = 0; i < labels->tag.n; i++) {
        buf_puts(&b, i ? "," : "");
        buf_json_string(&b, labels->tag.v[i], strlen(labels->tag.v[i]));
    }
    buf_putc(&b, ']');
    put_string(&b, "note", labels->note);
    buf_puts(&b, "}\n");
    run_write_file(s, &r, LABELS_FILE, b.s, b.n);
}
