/* calls.c - every call of the three libraries: counted, written down, and failing where it is asked to.
 *
 * Out: the file that FAKE_CUDA_LOG names, each "%p" in it the number of the process and "%q{NAME}" what the environment has of that
 *      name: a line for each call, `number name what -> result`; in the end
 *      `count name n` for each name, `made kind n`, `leaked kind n` for each kind of thing, and `end`.
 * The one idea: a call passes here before anything of it is done, so the same calls have the same numbers in
 * every run, and any of them can be the one that fails.
 */
#define _GNU_SOURCE
#include "fake.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAMES_MAX = 256, FAILURES_MAX = 16 };

typedef struct Failure {
    char name[64]; /* "" any */
    unsigned long number;
    int code;  /* 0: the typical one */
    bool late; /* the call is made, and what it has begun fails */
} Failure;
typedef struct Name {
    char text[64];
    unsigned long count;
} Name;
typedef struct Call {
    const char *name;
    unsigned rules;
    unsigned long number;
    int behind; /* the error of what it has begun */
    char said[512];
} Call;
typedef struct Objects {
    void **at;
    size_t n;
} Objects;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread Call call;
static FILE *file;
static pid_t owner; /* its children have other ends */
static Name name[NAMES_MAX];
static size_t n_name;
static unsigned long calls;
static Failure failure[FAILURES_MAX];
static size_t n_failure;
static Objects objects[KINDS];
static unsigned long made[KINDS], back[KINDS];
static const char *const kinds[KINDS] = {"contexts",    "allocations", "pinned", "modules",
                                         "functions",   "streams",     "events", "graphs",
                                         "executables", "programs",    "blas",   "descriptors"};

/* ---- the record ---- */

static void read_failures(const char *text)
{
    for (const char *p = text; *p; p += *p == ',') {
        Failure f = {.name = ""};
        size_t n = strcspn(p, ":,");
        char *end;
        if (p[n] == ':' && n < sizeof f.name) {
            memcpy(f.name, p, n);
            p += n + 1;
        }
        f.number = strtoul(p, &end, 10);
        f.late = *end == '>';
        if (*end == '=' || f.late)
            f.code = (int)strtol(end + 1, &end, 10);
        if (!f.number || (f.late && !f.code) || (*end && *end != ',') || n_failure == FAILURES_MAX) {
            fprintf(stderr, "fake CUDA: FAKE_CUDA_FAIL=%s cannot be read\n", text);
            exit(70);
        }
        failure[n_failure++] = f;
        p = end;
    }
}

/* A file's name with what it says of the process. */
static void expand(const char *text, char *path, size_t room)
{
    size_t n = 0;
    for (const char *p = text; *p && n + 1 < room; p++) {
        const size_t length = !strncmp(p, "%q{", 3) ? strcspn(p, "}") : 0;
        char wanted[64];
        const char *value = NULL;
        if (length && p[length]) {
            snprintf(wanted, sizeof wanted, "%.*s", (int)length - 3, p + 3);
            value = getenv(wanted);
            n += (size_t)snprintf(path + n, room - n, "%s", value ? value : "");
            p += length;
        } else if (!strncmp(p, "%p", 2)) {
            n += (size_t)snprintf(path + n, room - n, "%ld", (long)getpid());
            p++;
        } else {
            path[n++] = *p;
        }
    }
    path[n < room ? n : room - 1] = 0;
}

static void __attribute__((constructor)) begin(void)
{
    const char *log = getenv("FAKE_CUDA_LOG"), *fail = getenv("FAKE_CUDA_FAIL");
    char path[1024];
    if (fail)
        read_failures(fail);
    if (!log || !*log)
        return;
    expand(log, path, sizeof path);
    owner = getpid();
    file = fopen(path, "we");
    if (!file) {
        fprintf(stderr, "fake CUDA: FAKE_CUDA_LOG=%s cannot be written\n", path);
        exit(70);
    }
    setvbuf(file, NULL, _IOLBF, 0);
}

static void __attribute__((destructor)) end(void)
{
    if (!file || getpid() != owner)
        return;
    for (size_t i = 0; i < n_name; i++)
        fprintf(file, "count %s %lu\n", name[i].text, name[i].count);
    for (int i = 0; i < KINDS; i++)
        if (i != KIND_FUNCTION)
            fprintf(file, "made %s %lu\nleaked %s %lu\n", kinds[i], made[i], kinds[i], made[i] - back[i]);
    fprintf(file, "end\n");
    fclose(file);
    file = NULL;
}

/* "cuMemAlloc_v2" is cuMemAlloc to whoever reads. */
static size_t plain_length(const char *text)
{
    size_t n = strlen(text);
    return n > 3 && !strcmp(text + n - 3, "_v2") ? n - 3 : n;
}

static Name *name_of(const char *text)
{
    size_t n = plain_length(text);
    for (size_t i = 0; i < n_name; i++)
        if (strlen(name[i].text) == n && !strncmp(name[i].text, text, n))
            return &name[i];
    if (n_name == NAMES_MAX)
        abort();
    snprintf(name[n_name].text, sizeof name->text, "%.*s", (int)n, text);
    return &name[n_name++];
}

static const Failure *asked_to_fail(const Name *n)
{
    for (size_t i = 0; i < n_failure; i++) {
        const Failure *f = &failure[i];
        unsigned long at = f->name[0] ? n->count : calls;
        if (at == f->number && (!f->name[0] || !strcmp(f->name, n->text)))
            return f;
    }
    return NULL;
}

/* Errors after which nothing of the context can be used. */
static bool loses_context(int error)
{
    return error == E_ADDRESS || error == E_MISALIGNED || error == E_LAUNCH || error == E_ECC ||
           (error > 713 && error < 720);
}

static int (*driver_rules)(unsigned rules);

void fake_set_rules(int (*rules)(unsigned)) { driver_rules = rules; }

static int broken_rule(unsigned rules)
{
    int error = 0;
    if (rules & (NEEDS_INIT | NEEDS_CONTEXT))
        error = driver_rules ? driver_rules(rules) : E_NOT_INITIALIZED;
    if (!error && (rules & NEEDS_CONTEXT))
        error = fake_lost();
    if (!error && (rules & UNSAFE))
        error = fake_capture_forbids();
    if (error && (rules & OF_BLAS))
        return error == E_NOT_INITIALIZED || error == E_CONTEXT ? B_NOT_INITIALIZED : B_EXECUTION;
    return error;
}

int fake_enter(const char *text, unsigned rules, int typical)
{
    pthread_mutex_lock(&lock);
    Name *n = name_of(text);
    n->count++;
    call = (Call){.name = n->text, .rules = rules, .number = ++calls};
    const Failure *f = asked_to_fail(n);
    int error = !f || f->late ? 0 : f->code ? f->code : typical;
    call.behind = f && f->late ? f->code : 0;
    if (error) {
        fake_say("fails as asked");
        if (!(rules & (OF_BLAS | WITHOUT_LOCK)) && loses_context(error))
            fake_lose(error);
    } else {
        error = broken_rule(rules);
    }
    if (rules & WITHOUT_LOCK)
        pthread_mutex_unlock(&lock);
    return error;
}

int fake_leave(int result)
{
    if (call.rules & WITHOUT_LOCK)
        pthread_mutex_lock(&lock);
    if (call.behind)
        fake_lose(call.behind);
    if (file)
        fprintf(file, "%lu %s%s%s -> %d\n", call.number, call.name, call.said[0] ? " " : "", call.said, result);
    pthread_mutex_unlock(&lock);
    return result;
}

static void add(const char *format, va_list v)
{
    size_t n = strlen(call.said);
    if (n && n + 2 < sizeof call.said) {
        memcpy(call.said + n, " ", 2);
        n++;
    }
    vsnprintf(call.said + n, sizeof call.said - n, format, v);
}

void fake_say(const char *format, ...)
{
    va_list v;
    va_start(v, format);
    add(format, v);
    va_end(v);
}

int fake_refuse(int error, const char *format, ...)
{
    va_list v;
    va_start(v, format);
    add(format, v);
    va_end(v);
    return error;
}

static void line(const char *kind, bool aloud, const char *format, va_list v)
{
    char text[1024];
    vsnprintf(text, sizeof text, format, v);
    if (file)
        fprintf(file, "%s: %s\n", kind, text);
    if (aloud)
        fprintf(stderr, "fake CUDA: %s: %s\n", kind, text);
}

void fake_mistake(const char *format, ...)
{
    va_list v;
    va_start(v, format);
    line("mistake", true, format, v);
    va_end(v);
}

void fake_note(const char *format, ...)
{
    va_list v;
    va_start(v, format);
    line("note", false, format, v);
    va_end(v);
}

/* ---- what is made and given back ---- */

void fake_made(FakeKind kind) { made[kind]++; }

void fake_given_back(FakeKind kind) { back[kind]++; }

/* No address of x86-64: who looks into a handle is stopped. */
static uintptr_t tag(FakeKind kind) { return (uintptr_t)0xfa << 56 | (uintptr_t)(kind + 1) << 40; }

void *fake_handle(FakeKind kind, void *object)
{
    Objects *o = &objects[kind];
    o->at = realloc(o->at, (o->n + 1) * sizeof *o->at);
    o->at[o->n++] = object;
    return (void *)(tag(kind) | o->n);
}

static void **place_of(FakeKind kind, const void *handle)
{
    uintptr_t i = (uintptr_t)handle ^ tag(kind);
    return i >= 1 && i <= objects[kind].n ? &objects[kind].at[i - 1] : NULL;
}

void *fake_object(FakeKind kind, const void *handle)
{
    void **at = place_of(kind, handle);
    return at ? *at : NULL;
}

void *fake_object_locked(FakeKind kind, const void *handle)
{
    pthread_mutex_lock(&lock);
    void *object = fake_object(kind, handle);
    pthread_mutex_unlock(&lock);
    return object;
}

void fake_bury(void *object)
{
    static Objects graves;
    graves.at = realloc(graves.at, (graves.n + 1) * sizeof *graves.at);
    graves.at[graves.n++] = object;
}

void fake_forget(FakeKind kind, const void *handle)
{
    void **at = place_of(kind, handle);
    if (!at || !*at)
        return;
    fake_bury(*at);
    *at = NULL;
}

void fake_forget_all(FakeKind kind)
{
    for (size_t i = 0; i < objects[kind].n; i++) {
        fake_bury(objects[kind].at[i]);
        objects[kind].at[i] = NULL;
    }
}

const char *fake_error_name(int error)
{
#define NAME(ours, value, theirs) {#ours, value, #theirs},
    static const struct {
        const char *ours;
        int value;
        const char *theirs;
    } known[] = {FAKE_DRIVER_NUMBERS(NAME)};
#undef NAME
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].value == error && !strncmp(known[i].ours, "E_", 2))
            return known[i].theirs;
    return NULL;
}
