/* run_kernels.c - kernels launched by a GPU's driver with what they once read, compared with what they once wrote.
 *
 *     run_kernels FOLDER [--out FILE] [--wrong FOLDER] [--seconds N] [--each N]
 *     run_kernels --one FOLDER/NN NUMBER
 *
 * In:  a folder of make_cases.c; a device (case_device.h): of CUDA the driver alone, or an interpreter of PTX. --seconds: nothing is begun when so many are over; --each: that a
 *      case may take (5; a fifth of it when some have hung), where the device does not count its steps. --one: a single case, in this process, for a checker of memory.
 * Out: lines of JSON, appended to FILE (stdout) after each case: {case, number, kernel, where, good, numbers, worst, most}, of a
 *      wrong one the first places with what was got and wanted, of one that did not come to its end how it ended; at last
 *      {part: "kernels", cases, compared, wrong, ended,
 *      seconds, processes, launches, bytes that were copied}. In the folder WRONG each such case as a file of cases.h, behind what
 *      was wanted what was got, and `list`, a line `case number kernel` each. On stdout what is wrong and a sentence at the end.
 * Status 3: a kernel is wrong or ended, or cases were left out; 4: there is no GPU that they could run on.
 * The one idea: a process of its own launches; when it hangs or its device is lost, it is ended and the next one goes on behind
 * the case, which is told.
 */
#define _GNU_SOURCE
#include "case_device.h"

#include "compiler/base/base.h"
#include "support/half_bits.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ITEMS = 512, LINE = 4096, PLACES = 8, START_SECONDS = 60, LONG = 1000000, KEPT_BYTES = 4 << 20 };

static struct {
    const char *folder, *out, *wrong;
    double until, each;
    char *item[ITEMS];
    int cases[ITEMS]; /* of each item */
    int n_item;
    int compared, bad, ended, hung, processes;
    double bytes; /* up and down */
} all = {.each = 5};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

_Noreturn void stop(int status, const char *format, ...)
{
    va_list a;
    va_start(a, format);
    vfprintf(stderr, format, a);
    va_end(a);
    fputc('\n', stderr);
    exit(status);
}

void *room(uint64_t bytes)
{
    void *p = calloc(1, bytes + 1);
    if (!p)
        stop(1, "out of memory");
    return p;
}

static void *read_some(FILE *f, uint64_t bytes)
{
    void *p = room(bytes);
    if (bytes && fread(p, 1, bytes, f) != bytes)
        stop(1, "a file of cases is cut off");
    return p;
}

char *read_file(const char *path, uint64_t *bytes)
{
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f || fstat(fileno(f), &st))
        stop(1, "no file %s", path);
    *bytes = (uint64_t)st.st_size;
    char *text = read_some(f, *bytes);
    fclose(f);
    return text;
}

void put_places(const Case *c, const uint64_t *begin)
{
    for (uint32_t i = 0; i < c->head.n_place; i++) {
        const CasePlace *x = &c->place[i];
        const uint64_t address = begin[x->to.region] + x->to.shift;
        memcpy(c->before[x->in] + x->at, &address, sizeof address);
    }
}

/* ---- a file of cases ---- */

static char *read_at(FILE *f, uint64_t place, uint64_t bytes)
{
    if (fseek(f, (long)place, SEEK_SET) != 0)
        stop(1, "a file of cases is cut off");
    return read_some(f, bytes);
}

/* Goes to the next launch; false behind the last. */
static bool next_launch(FILE *f, CaseEntry *entry)
{
    while (fread(entry, sizeof *entry, 1, f) == 1) {
        if (entry->kind == CASE_LAUNCH)
            return true;
        if (entry->kind != CASE_BYTES || fseek(f, (long)entry->bytes, SEEK_CUR) != 0)
            stop(1, "a file of cases is cut off");
    }
    return false;
}

static bool read_case(FILE *f, Case *c)
{
    CaseEntry entry;
    if (!next_launch(f, &entry))
        return false;
    if (fread(&c->head, sizeof c->head, 1, f) != 1)
        stop(1, "a file of cases is cut off");
    const CaseHead *h = &c->head;
    c->region = read_some(f, h->n_region * sizeof *c->region);
    c->buffer = read_some(f, h->n_buffer * sizeof *c->buffer);
    c->place = read_some(f, h->n_place * sizeof *c->place);
    c->n = read_some(f, h->n_int * sizeof *c->n);
    c->s = read_some(f, h->n_number * sizeof *c->s);
    c->map = read_some(f, h->n_map * sizeof *c->map);
    c->before = room(h->n_region * sizeof *c->before);
    c->after = room(h->n_region * sizeof *c->after);
    long next = ftell(f);
    for (uint32_t i = 0; i < h->n_region; i++) {
        const CaseRegion *r = &c->region[i];
        c->before[i] = read_at(f, r->before, r->bytes);
        c->after[i] = r->written ? read_at(f, r->after, r->bytes) : NULL;
    }
    return fseek(f, next, SEEK_SET) == 0;
}

static void forget(Case *c)
{
    for (uint32_t i = 0; i < c->head.n_region; i++) {
        free(c->before[i]);
        free(c->after[i]);
    }
    void *const parts[] = {c->region, c->buffer, c->place, c->n, c->s, c->map, c->before, c->after};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        free(parts[i]);
}

static FILE *open_cases(const char *item)
{
    char path[PATH], mark[sizeof CASES_MARK] = "";
    snprintf(path, sizeof path, "%.580s/cases.bin", item);
    FILE *f = fopen(path, "rb");
    if (!f || fread(mark, 1, sizeof mark - 1, f) != sizeof mark - 1 || strcmp(mark, CASES_MARK) != 0)
        stop(1, "%s is no file of cases", path);
    return f;
}

/* ---- a case as a file of its own ---- */

static uint64_t put_entry(FILE *f, CaseKind kind, const void *bytes, uint64_t n)
{
    const CaseEntry entry = {kind, n};
    fwrite(&entry, sizeof entry, 1, f);
    uint64_t at = (uint64_t)ftell(f);
    fwrite(bytes, 1, n, f);
    return at;
}

/* got: of each region what was there in the end; NULL: nobody knows. */
static void keep_case(const Case *c, const char *item, int number, char *const *got)
{
    char path[PATH];
    uint64_t bytes = 0;
    const CaseHead *h = &c->head;
    for (uint32_t i = 0; i < h->n_region; i++)
        bytes += (c->region[i].written ? 3 : 1) * c->region[i].bytes;
    snprintf(path, sizeof path, "%s/%s-%d.bin", all.wrong ? all.wrong : ".", item, number);
    FILE *f = all.wrong && bytes <= KEPT_BYTES ? fopen(path, "wb") : NULL;
    if (!f)
        return;
    fwrite(CASES_MARK, 1, strlen(CASES_MARK), f);
    for (uint32_t i = 0; i < h->n_region; i++) {
        CaseRegion *r = &c->region[i];
        r->before = put_entry(f, CASE_BYTES, c->before[i], r->bytes);
        r->after = r->written ? put_entry(f, CASE_BYTES, c->after[i], r->bytes) : 0;
        if (r->written && got)
            put_entry(f, CASE_BYTES, got[i], r->bytes);
    }
    const struct {
        const void *at;
        size_t n;
    } part[] = {{h, sizeof *h},
                {c->region, h->n_region * sizeof *c->region},
                {c->buffer, h->n_buffer * sizeof *c->buffer},
                {c->place, h->n_place * sizeof *c->place},
                {c->n, h->n_int * sizeof *c->n},
                {c->s, h->n_number * sizeof *c->s},
                {c->map, h->n_map * sizeof *c->map}};
    CaseEntry entry = {CASE_LAUNCH, 0};
    for (size_t i = 0; i < COUNT_OF(part); i++)
        entry.bytes += part[i].n;
    fwrite(&entry, sizeof entry, 1, f);
    for (size_t i = 0; i < COUNT_OF(part); i++)
        fwrite(part[i].at, 1, part[i].n, f);
    fclose(f);
}

/* ---- comparing ---- */

typedef struct Difference {
    int64_t numbers, wrong; /* that were compared; that differ by more than they may */
    uint64_t bytes;         /* that were copied, up and down */
    double worst, most;     /* where a number is farthest from what was wanted, as a share of what it may be */
    char places[LINE / 2];
    int n_places;
} Difference;

static uint64_t size_of(uint32_t type) { return type == CASE_INTEGER ? 8 : type == CASE_REAL ? 4 : 2; }

static double number(const char *p, uint32_t type, uint64_t i)
{
    float x;
    uint16_t two;
    int64_t whole;
    if (type == CASE_INTEGER) {
        memcpy(&whole, p + 8 * i, sizeof whole);
        return (double)whole;
    }
    if (type == CASE_REAL) {
        memcpy(&x, p + 4 * i, sizeof x);
        return (double)x;
    }
    memcpy(&two, p + 2 * i, sizeof two);
    return type == CASE_FP16 ? of_fp16(two) : of_bf16(two);
}

/* JSON has no word for what is no number. */
static void put_number(char *to, size_t size, double x) { snprintf(to, size, isfinite(x) ? "%.9g" : "null", x); }

static void note_place(Difference *d, uint32_t region, uint64_t at, double got, double want)
{
    size_t n = strlen(d->places);
    char g[40], w[40];
    d->wrong++;
    if (d->n_places == PLACES)
        return;
    put_number(g, sizeof g, got);
    put_number(w, sizeof w, want);
    snprintf(d->places + n, sizeof d->places - n, "%s{\"region\":%u,\"at\":%llu,\"got\":%s,\"want\":%s}",
             d->n_places++ ? "," : "", region, (unsigned long long)at, g, w);
}

#define COARSE 0x1p-16 /* what is wanted in float32 was rounded to 16 digits, to be carried (record.c) */

static void compare(Difference *d, uint32_t region, const CaseRegion *r, const char *got, const char *want)
{
    uint64_t n = r->bytes / size_of(r->type);
    d->numbers += (int64_t)n;
    for (uint64_t i = 0; i < n; i++) {
        double x = number(got, r->type, i), y = number(want, r->type, i);
        bool same = r->type == CASE_INTEGER ? !memcmp(got + 8 * i, want + 8 * i, 8) : x == y || (isnan(x) && isnan(y));
        bool finite = isfinite(x) && isfinite(y);
        double e = same || !finite ? 0 : fabs(x - y);
        if (r->type == CASE_REAL && finite)
            e = fmax(0, e - COARSE * fabs(y));
        if (!same && (r->type == CASE_INTEGER || !finite || e > r->most))
            note_place(d, region, i, x, y);
        if (r->type != CASE_INTEGER && e > 0 && (d->worst <= 0 || e * d->most > d->worst * r->most)) {
            d->worst = e;
            d->most = r->most;
        }
    }
}

static bool run_case(Case *c, const char *item, int number, Difference *d)
{
    const CaseHead *h = &c->head;
    char **got = room(h->n_region * sizeof *got);
    for (uint32_t i = 0; i < h->n_region; i++)
        got[i] = room(c->region[i].bytes);
    bool ran = device_run(c, item, got);
    for (uint32_t i = 0; ran && i < h->n_region; i++) {
        d->bytes += 2 * c->region[i].bytes;
        /* What it only reads must stay as it is. */
        if (c->region[i].written || memcmp(got[i], c->before[i], c->region[i].bytes) != 0)
            compare(d, i, &c->region[i], got[i], c->region[i].written ? c->after[i] : c->before[i]);
    }
    if (d->wrong)
        keep_case(c, strrchr(item, '/') ? strrchr(item, '/') + 1 : item, number, got);
    for (uint32_t i = 0; i < h->n_region; i++)
        free(got[i]);
    free(got);
    return ran;
}

static void tell_case(FILE *to, const Case *c, const char *item, int number, const Difference *d)
{
    fprintf(
        to,
        "{\"case\":\"%s\",\"number\":%d,\"kernel\":\"%s\",\"where\":\"%s\",\"good\":%s,\"numbers\":%lld,\"bytes\":%llu,"
        "\"worst\":%.3g,\"most\":%.3g",
        item, number, c->head.kernel, c->head.where, d->wrong ? "false" : "true", (long long)d->numbers,
        (unsigned long long)d->bytes, d->worst, d->most);
    if (d->wrong)
        fprintf(to, ",\"wrong\":%lld,\"places\":[%s]", (long long)d->wrong, d->places);
    fprintf(to, "}\n");
    fflush(to);
}

/* ---- the process that launches ---- */

/* From a case of an item on; to each a line "@item number kernel", then its JSON, or "-" where it is not for this GPU. */
static _Noreturn void launch_all(int first, int from, FILE *to)
{
    char path[PATH];
    Case c;
    device_open();
    fprintf(to, "{\"device\":\"%s\",\"arch\":\"%s\"}\n", device_name(), device_arch());
    fflush(to);
    for (int i = first; i < all.n_item; i++, from = 0) {
        snprintf(path, sizeof path, "%s/%s", all.folder, all.item[i]);
        FILE *f = open_cases(path);
        for (int n = 0; read_case(f, &c); n++, forget(&c)) {
            Difference d = {0};
            if (n < from)
                continue;
            fprintf(to, "@%d %d %s\n", i, n, c.head.kernel);
            fflush(to);
            if (run_case(&c, path, n, &d))
                tell_case(to, &c, all.item[i], n, &d);
            else
                fprintf(to, "-\n");
        }
        fclose(f);
    }
    fflush(to);
    _exit(0);
}

/* ---- the process that watches ---- */

typedef struct Watch {
    pid_t child;
    int from;   /* its lines come here */
    int errors; /* and its last words */
    char line[2 * LINE], said[300];
    size_t length;
    double since;     /* when it said something last */
    int item, number; /* of the case that it is at */
    char kernel[80];
    bool at_case, closed;
} Watch;

/* Written whole, or told on stdout. */
static void put_line(const char *text)
{
    FILE *f = all.out ? fopen(all.out, "a") : NULL;
    bool good = f && fputs(text, f) >= 0 && fputc('\n', f) != EOF;
    good = f && fclose(f) == 0 && good;
    if (!good)
        printf("%s\n", text);
    fflush(stdout);
}

static void note_wrong(const Watch *w)
{
    char path[PATH];
    if (!all.wrong)
        return;
    snprintf(path, sizeof path, "%s/list", all.wrong);
    FILE *f = fopen(path, "a");
    if (!f)
        return;
    fprintf(f, "%s %d %s\n", all.item[w->item], w->number, w->kernel);
    fclose(f);
}

static void begin(Watch *w, int item, int number)
{
    int lines[2], words[2];
    if (pipe(lines) || pipe(words))
        stop(1, "no pipe: %s", strerror(errno));
    fflush(stdout);
    *w = (Watch){.item = item, .number = number, .since = now(), .from = lines[0], .errors = words[0]};
    all.processes++;
    w->child = fork();
    if (w->child == 0) {
        close(lines[0]);
        dup2(words[1], 2);
        launch_all(item, number, fdopen(lines[1], "w"));
    }
    close(lines[1]);
    close(words[1]);
}

static void take_line(Watch *w)
{
    int item, number;
    char kernel[80];
    if (w->line[0] == '@' && sscanf(w->line, "@%d %d %79s", &item, &number, kernel) == 3) {
        w->item = item;
        w->number = number;
        snprintf(w->kernel, sizeof w->kernel, "%s", kernel);
        w->at_case = true;
        return;
    }
    bool counted = w->at_case && w->line[0] == '{';
    w->at_case = false;
    if (w->line[0] != '{')
        return;
    put_line(w->line);
    const char *bytes = strstr(w->line, "\"bytes\":");
    all.compared += counted;
    all.bytes += bytes ? strtod(bytes + 8, NULL) : 0;
    if (!strstr(w->line, "\"good\":false"))
        return;
    all.bad++;
    note_wrong(w);
    printf("WRONG %s %d %s: %.200s\n", all.item[w->item], w->number, w->kernel, strstr(w->line, "\"places\""));
}

static void take_bytes(Watch *w)
{
    ssize_t n = read(w->from, w->line + w->length, sizeof w->line - 1 - w->length);
    w->closed = n <= 0;
    w->length += n > 0 ? (size_t)n : 0;
    w->line[w->length] = 0;
    for (char *end; (end = strchr(w->line, '\n'));) {
        *end = 0;
        take_line(w);
        w->length -= (size_t)(end + 1 - w->line);
        memmove(w->line, end + 1, w->length + 1);
        w->since = now();
    }
    if (w->length == sizeof w->line - 1)
        w->length = 0; /* no line of ours */
}

/* A device that hangs may keep its process for long: nobody waits for it. Returns its status; -1: it is still there. */
static int end_child(Watch *w, bool kill_it)
{
    int status = -1;
    if (kill_it)
        kill(w->child, SIGKILL);
    for (double until = now() + 5; waitpid(w->child, &status, WNOHANG) == 0 && now() < until;)
        usleep(10000);
    struct pollfd words = {w->errors, POLLIN, 0};
    ssize_t n = poll(&words, 1, 0) == 1 ? read(w->errors, w->said, sizeof w->said - 1) : 0;
    w->said[n > 0 ? n : 0] = 0;
    for (char *p = w->said; *p; p++)
        *p = *p == '"' || *p == '\\' || (unsigned char)*p < ' ' ? ' ' : *p;
    close(w->from);
    close(w->errors);
    return status;
}

static void tell_ended(const Watch *w, const char *how)
{
    char text[LINE], path[PATH];
    Case c;
    snprintf(text, sizeof text, "{\"case\":\"%s\",\"number\":%d,\"kernel\":\"%s\",\"good\":false,\"ended\":\"%s\"}",
             all.item[w->item], w->number, w->kernel, how);
    put_line(text);
    printf("ENDED %s %d %s: %s\n", all.item[w->item], w->number, w->kernel, how);
    all.ended++;
    note_wrong(w);
    snprintf(path, sizeof path, "%s/%s", all.folder, all.item[w->item]);
    FILE *f = open_cases(path);
    for (int n = 0; read_case(f, &c); n++) {
        if (n == w->number)
            keep_case(&c, all.item[w->item], n, NULL);
        forget(&c);
        if (n == w->number)
            break;
    }
    fclose(f);
}

/* Seconds that a process may say nothing. */
static double patience(const Watch *w)
{
    enum { FEW = 3 }; /* as many may wait for something else than themselves */
    if (device_counts_steps())
        return LONG;
    return !w->at_case ? START_SECONDS : all.hung < FEW ? all.each : all.each / 5;
}

/* Watches one process until it ends or has to be ended. True: all is done. */
static bool watch(Watch *w, double until)
{
    bool hangs = false, late = false;
    char how[400];
    while (!w->closed && !hangs && !late) {
        double most = patience(w), left = w->since + most - now();
        struct pollfd lines = {w->from, POLLIN, 0};
        if (until && until - now() < left)
            left = until - now();
        if (poll(&lines, 1, left > 0 ? (int)(1000 * left) + 1 : 0) == 1)
            take_bytes(w);
        hangs = now() - w->since > most;
        late = until && now() > until;
    }
    int status = end_child(w, hangs || late);
    if (w->closed && !hangs && status == 0)
        return true;
    if (late && !hangs)
        return true;
    if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == NO_GPU)
        stop(NO_GPU, "no kernel was launched: %s", w->said);
    if (!w->at_case)
        stop(NO_GPU, "no kernel was launched: %s", hangs ? "the driver does not answer" : w->said);
    if (hangs)
        snprintf(how, sizeof how, "it hangs: more than %.0f s%s", patience(w),
                 status < 0 ? ", and its process does not end" : "");
    else if (status >= 0 && WIFSIGNALED(status))
        snprintf(how, sizeof how, "signal %d", WTERMSIG(status));
    else
        snprintf(how, sizeof how, "%s", w->said[0] ? w->said : "it ended");
    all.hung += hangs;
    tell_ended(w, how);
    return false;
}

/* ---- what there is ---- */

static int in_order(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    bool of_x = strstr(x, "-sm_90a"), of_y = strstr(y, "-sm_90a");
    return of_x != of_y ? of_x - of_y : strcmp(x, y);
}

static int count_cases(const char *item)
{
    char path[PATH];
    CaseEntry entry;
    int n = 0;
    snprintf(path, sizeof path, "%s/%s", all.folder, item);
    FILE *f = open_cases(path);
    for (; next_launch(f, &entry); n++)
        if (fseek(f, (long)entry.bytes, SEEK_CUR) != 0)
            stop(1, "a file of cases is cut off");
    fclose(f);
    return n;
}

static void find_items(void)
{
    char path[PATH];
    struct dirent *e;
    DIR *d = opendir(all.folder);
    while (d && (e = readdir(d)) && all.n_item < ITEMS) {
        snprintf(path, sizeof path, "%s/%.200s/cases.bin", all.folder, e->d_name);
        if (access(path, R_OK) == 0)
            all.item[all.n_item++] = strdup(e->d_name);
    }
    if (d)
        closedir(d);
    if (!all.n_item)
        stop(1, "no cases in %s", all.folder);
    qsort(all.item, (size_t)all.n_item, sizeof *all.item, in_order);
    for (int i = 0; i < all.n_item; i++)
        all.cases[i] = count_cases(all.item[i]);
}

static int run_all(double seconds)
{
    double start = now(), until = seconds > 0 ? start + seconds : 0;
    char text[300];
    int item = 0, number = 0, cases = 0;
    find_items();
    for (int i = 0; i < all.n_item; i++)
        cases += all.cases[i];
    for (bool done = false; !done && item < all.n_item;) {
        Watch w;
        begin(&w, item, number);
        done = watch(&w, until);
        item = w.item;
        number = w.number + 1;
        if (number == all.cases[item])
            item++, number = 0;
    }
    int seen = all.compared + all.ended;
    snprintf(text, sizeof text,
             "{\"part\":\"kernels\",\"cases\":%d,\"compared\":%d,\"wrong\":%d,\"ended\":%d,\"seconds\":%.1f,"
             "\"processes\":%d,"
             "\"launches\":%d,\"bytes\":%.0f}",
             cases, all.compared, all.bad, all.ended, now() - start, all.processes, seen, all.bytes);
    put_line(text);
    printf("%d kernels of %d compared, %d wrong, %d ended, in %.0f s: %d processes, %d launches, %.1f MiB copied\n",
           all.compared, cases, all.bad, all.ended, now() - start, all.processes, seen, all.bytes / (1 << 20));
    return all.bad || all.ended || seen == 0 || (until && now() > until) ? 3 : 0;
}

static int run_one(const char *item, int number)
{
    Case c;
    FILE *f = open_cases(item);
    device_open();
    for (int n = 0; read_case(f, &c); n++, forget(&c)) {
        Difference d = {0};
        if (n != number)
            continue;
        if (!run_case(&c, item, n, &d))
            stop(NO_GPU, "%s is not for this GPU", c.head.kernel);
        tell_case(stdout, &c, item, n, &d);
        return d.wrong ? 3 : 0;
    }
    stop(1, "%s has no case %d", item, number);
}

int main(int argc, char **argv)
{
    double seconds = 0;
    if (argc == 4 && !strcmp(argv[1], "--one"))
        return run_one(argv[2], atoi(argv[3]));
    if (argc < 2 || argc % 2)
        stop(2, "use: run_kernels FOLDER [--out FILE] [--wrong FOLDER] [--seconds N] [--each N], or --one FOLDER/NN "
                "NUMBER");
    all.folder = argv[1];
    for (int i = 2; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--out"))
            all.out = argv[i + 1];
        else if (!strcmp(argv[i], "--wrong"))
            all.wrong = argv[i + 1];
        else if (!strcmp(argv[i], "--seconds"))
            seconds = strtod(argv[i + 1], NULL);
        else if (!strcmp(argv[i], "--each"))
            all.each = strtod(argv[i + 1], NULL);
        else
            stop(2, "no option %s", argv[i]);
    }
    if (all.wrong)
        mkdir(all.wrong, 0777);
    signal(SIGPIPE, SIG_IGN);
    return run_all(seconds);
}
