/* models.c - whole files made at random, through every verb and every way of computing them.
 *
 * In:  FROM COUNT: seeds (1 300; whole: 1 900, both after the files of found/, which failed once; `--found`: those alone);
 *      every fourth file is edited, so that most are valid. `--jobs N`; `--stages a,b`: those alone; `--all`: every stage for every model; `--show SEED`: its
 * text; `--file FILE`: that text;
 *      `--keep`: and what it left in its folder; `--shrink FILE` or `--shrink SEED`: the smallest text that fails in the same way.
 * Out: `N models, ..., N failed`, and the text of what failed as random_SEED.vwn. No file ends
 * a verb by a bug, a signal or after more than ten seconds; a valid one is accepted; what is
 * computed agrees with the reference. The one idea: each file is run in a process of its own,
 * so that whatever happens there is a finding with a seed.
 * When: quick, first, slow. What a random file compiles, other tests compile, too.
 */
#define _GNU_SOURCE /* anonymous memory */
#include "support/drawn.h"
#include "generate.h"
#include "stages.h"

#include "compiler/front/attribute.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOBS_MOST = 16, EDITED_EVERY = 4 };

typedef struct Options {
    uint64_t from, count;
    int jobs;
    bool all, chosen, keep, found;
    double patience;
    bool take[STAGES];
    char cache[4096];
} Options;

/* A file on its way: a process, and what it shares with this one. */
typedef struct Job {
    pid_t pid;
    uint64_t seed;
    bool found; /* a file that failed once, of the folder found/ */
    const char *text;
    Ctx *ctx;
    char folder[64];
    bool keep; /* the folder */
    Report *report;
} Job;

static bool is_edited(uint64_t seed) { return seed % EDITED_EVERY == EDITED_EVERY - 1; }

/* Of those that are edited a third is edited anyhow. */
static bool is_wild(uint64_t seed) { return seed / EDITED_EVERY % 3 == 0; }

static char *text_of(Arena *arena, uint64_t seed)
{
    char *text = generate_file(arena, seed);
    return !is_edited(seed) ? text : is_wild(seed) ? edit_file(arena, seed, text) : edit_alike(arena, seed, text);
}

/* ---- one file ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

static void limit(int what, rlim_t most)
{
    struct rlimit r;
    if (getrlimit(what, &r) == 0 && (r.rlim_max == RLIM_INFINITY || most < r.rlim_max)) {
        r.rlim_cur = most;
        setrlimit(what, &r);
    }
}

static bool start(Job *j, const Options *o)
{
    StageOptions how = {.text = j->text,
                        .cache = o->cache[0] ? o->cache : NULL,
                        .seed = j->seed,
                        .patience = o->patience * (SANITIZED ? 8 : 1)};
    Writer w = {.state = (j->seed + 5) * 0x9e3779b97f4a7c15u};
    for (int s = 0; s < STAGES; s++) {
        bool drawn =
            roll(&w, 1u << 20) % (uint32_t)stage_share[s] == 0 && (is_lean(j->seed) || !stage_compiles((Stage)s));
        bool here = o->all || drawn || j->found;
        how.take[s] = o->chosen ? o->take[s] && here : here && (!j->found || s < STAGE_PROGRAM);
    }
    memset(j->report, 0, sizeof *j->report);
    snprintf(j->folder, sizeof j->folder, "random_%d_%llu", (int)getpid(), (unsigned long long)j->seed);
    mkdir(j->folder, 0777);
    fflush(NULL);
    j->pid = fork();
    if (j->pid != 0)
        return j->pid > 0;
    setpgid(0, 0);
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    limit(RLIMIT_CORE, 0);
    signal(SIGXFSZ, SIG_IGN); /* a file that is too long is told as a full disk is */
    limit(RLIMIT_FSIZE, (rlim_t)1 << 28);
    if (!SANITIZED)
        limit(RLIMIT_AS, (rlim_t)6 << 30);
    if (chdir(j->folder) != 0)
        _exit(2);
    int out = open("output", O_CREAT | O_WRONLY | O_TRUNC, 0666);
    dup2(out, 1);
    dup2(out, 2);
    stages_run(&how, j->report);
    _exit(0);
}

/* Its sentence in r->why, and whether something is wrong. */
static bool ended(Job *j, int status)
{
    Report *r = j->report;
    if (!r->failed && !r->done) {
        r->failed = true;
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGPROF)
            snprintf(r->why, sizeof r->why, "does not end");
        else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
            snprintf(r->why, sizeof r->why, "waits and does not end");
        else if (WIFSIGNALED(status))
            snprintf(r->why, sizeof r->why, "signal %d", WTERMSIG(status));
        else
            snprintf(r->why, sizeof r->why, "ended the process with %d", WEXITSTATUS(status));
        char said[700] = "", path[128];
        snprintf(path, sizeof path, "%s/output", j->folder);
        FILE *f = fopen(path, "r");
        size_t n = f ? fread(said, 1, sizeof said - 1, f) : 0, used = strlen(r->why);
        if (n)
            snprintf(r->why + used, sizeof r->why - used, ": %s", said);
        if (f)
            fclose(f);
    }
    if (r->failed && j->pid > 0)
        kill(-j->pid, SIGKILL); /* compilers that it left behind */
    if (!j->keep)
        nftw(j->folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return r->failed;
}

static bool wait_one(Job *j)
{
    int status = 0;
    while (waitpid(j->pid, &status, 0) < 0 && errno == EINTR)
        ;
    return ended(j, status);
}

static void keep_text(const char *text, const char *name)
{
    FILE *f = fopen(name, "w");
    if (f) {
        fputs(text, f);
        fclose(f);
    }
}

static Report *shared_report(void)
{
    Report *r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return r == MAP_FAILED ? NULL : r;
}

/* ---- many ---- */

typedef struct Tally {
    uint64_t models, edited, accepted, accepted_edited, failed;
    uint64_t sweeps, accepted_sweeps, growth_steps, varied[4];
    uint64_t ran[STAGES], unstable[STAGES];
    double seconds[STAGES], worst[STAGES], slowest[STAGES];
    uint64_t slowest_seed[STAGES];
} Tally;

static bool changed(const Job *j) { return !j->found && is_edited(j->seed); }

static void count(Tally *t, const Job *j, bool bad)
{
    const Report *r = j->report;
    t->models++;
    t->edited += changed(j);
    *(changed(j) ? &t->accepted_edited : &t->accepted) += r->accepted;
    t->sweeps += r->swept > 0;
    t->accepted_sweeps += r->swept == 2;
    t->growth_steps += (uint64_t)r->grown;
    for (size_t i = 0; i < sizeof t->varied / sizeof *t->varied; i++)
        t->varied[i] |= r->varied[i];
    for (int s = 0; s < STAGES; s++) {
        t->ran[s] += r->ran[s];
        t->unstable[s] += r->unstable[s];
        t->seconds[s] += r->seconds[s];
        t->worst[s] = r->worst[s] > t->worst[s] ? r->worst[s] : t->worst[s];
        if (r->seconds[s] > t->slowest[s]) {
            t->slowest[s] = r->seconds[s];
            t->slowest_seed[s] = j->seed;
        }
    }
    if (!bad)
        return;
    t->failed++;
    char name[64];
    snprintf(name, sizeof name, "random_%llu.vwn", (unsigned long long)j->seed);
    keep_text(j->text, name);
    printf("FAIL seed %llu%s, %s: %s\n", (unsigned long long)j->seed,
           changed(j) ? " (edited)"
           : j->found ? " (found)"
                      : "",
           stage_name[r->stage], r->why);
    fflush(stdout);
}

static bool is_bad(Job *j, bool bad)
{
    Report *r = j->report;
    if (bad || r->accepted || changed(j))
        return bad;
    r->stage = STAGE_CHECK;
    snprintf(r->why, sizeof r->why, "a valid file is refused: %.1000s", r->refused);
    return r->failed = true;
}

/* Ctrl-C begins no more files; those that are on their way end, and all are counted. */
static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* Attributes that `vary` can name, of nodes that every file has or may have; how many of them were varied. */
static size_t attributes_varied(const Tally *t, size_t *all, bool tell)
{
    static const char *const nodes[] = {"model", "train", "adamw", "sgd",        "lion",
                                        "muon",  "group", "eval",  "checkpoint", "log"};
    size_t n = 0;
    *all = 0;
    for (size_t i = 0; i < attribute_count(); i++)
        for (size_t k = 0; k < sizeof nodes / sizeof *nodes; k++)
            if (strcmp(attribute_at(i)->node, nodes[k]) == 0 && strcmp(attribute_at(i)->name, "allow")) {
                bool was = t->varied[i / 64] >> i % 64 & 1;
                n += was;
                ++*all;
                if (!was && tell)
                    printf("not varied: %s of %s\n", attribute_at(i)->name, nodes[k]);
            }
    return n;
}

/* Shares that a long enough run must have; what is missing is told. */
static bool complete(const Tally *t)
{
    enum { ENOUGH = 80, MANY = 300 };
    size_t all, varied = attributes_varied(t, &all, t->models >= MANY && t->ran[STAGE_VARY]);
    bool good = true;
    printf("%zu of %zu attributes varied in %llu sweeps, of which %llu are accepted; %llu growth steps carried out\n",
           varied, all, (unsigned long long)t->sweeps, (unsigned long long)t->accepted_sweeps,
           (unsigned long long)t->growth_steps);
    if (t->models >= ENOUGH && t->ran[STAGE_FMT] && 2 * t->accepted_edited < t->edited) {
        printf("FAIL less than half of the edited files are valid\n");
        good = false;
    }
    if (t->models >= MANY && t->ran[STAGE_VARY] && (4 * varied < 3 * all || 3 * t->accepted_sweeps < t->sweeps)) {
        printf("FAIL a quarter of the attributes no sweep varies, or two thirds of the sweeps are refused\n");
        good = false;
    }
    return good;
}

static const char *file_or_seed(Arena *arena, const char *what, uint64_t *seed)
{
    FILE *f = fopen(what, "r");
    if (!f) {
        *seed = strtoull(what, NULL, 10);
        return text_of(arena, *seed);
    }
    const char *base = strrchr(what, '/') ? strrchr(what, '/') : what;
    *seed = strtoull(base + strcspn(base, "0123456789"), NULL, 10); /* what failed stands in random_SEED.vwn */
    static char text[1 << 20];
    size_t n = fread(text, 1, sizeof text, f);
    fclose(f);
    return arena_copy(arena, text, n);
}

#define FOUND VWN_SOURCE_DIR "/tests/random/found"

static int is_found(const struct dirent *e) { return e->d_name[0] != '.'; }

static int run_many(const Options *o)
{
    Job job[JOBS_MOST] = {0};
    Tally t = {0};
    uint64_t next = o->from, end = o->from + o->count;
    int running = 0, found = 0;
    struct dirent **file = NULL;
    const int files = o->found ? scandir(FOUND, &file, is_found, alphasort) : 0;
    signal(SIGINT, interrupt);
    signal(SIGTERM, interrupt);
    for (int i = 0; i < o->jobs; i++)
        if (!(job[i].report = shared_report()))
            return 1;
    while (next < end || found < files || running > 0) {
        if (interrupted)
            next = end, found = files;
        for (int i = 0; i < o->jobs && (next < end || found < files); i++) {
            Job *j = &job[i];
            if (j->pid)
                continue;
            j->ctx = ctx_new(NULL);
            j->found = found < files;
            j->seed = j->found ? 0 : next++;
            j->text = j->found
                          ? file_or_seed(j->ctx->program,
                                         arena_printf(j->ctx->program, FOUND "/%s", file[found++]->d_name), &j->seed)
                          : text_of(j->ctx->program, j->seed);
            if (!start(j, o))
                return 1;
            running++;
        }
        int status = 0;
        pid_t pid = waitpid(-1, &status, 0);
        for (int i = 0; i < o->jobs && pid > 0; i++)
            if (job[i].pid == pid) {
                count(&t, &job[i], is_bad(&job[i], ended(&job[i], status)));
                ctx_free(job[i].ctx);
                job[i].pid = 0;
                running--;
            }
    }
    for (int s = 0; s < STAGES; s++)
        printf("%-10s %6llu models, %7.1f s, slowest %.1f s (seed %llu), %llu not compared, "
               "worst %.1e of the bound\n",
               stage_name[s], (unsigned long long)t.ran[s], t.seconds[s], t.slowest[s],
               (unsigned long long)t.slowest_seed[s], (unsigned long long)t.unstable[s], t.worst[s]);
    printf("%llu models, %llu of them edited and %llu of these accepted, %llu failed\n", (unsigned long long)t.models,
           (unsigned long long)t.edited, (unsigned long long)t.accepted_edited, (unsigned long long)t.failed);
    return !complete(&t) || t.failed != 0;
}

/* ---- one, again and smaller ---- */

static bool fails(const Options *o, Job *j, const char *text)
{
    j->text = text;
    if (!start(j, o))
        exit(1);
    return wait_one(j);
}

/* Two failures are the same in the same stage with the same first words. */
static void signature(const Report *r, char to[64])
{
    size_t n = (size_t)snprintf(to, 8, "%d ", r->stage);
    for (const char *c = r->why; *c && n < 40; c++)
        if (*c < '0' || *c > '9')
            to[n++] = *c;
    to[n] = 0;
}

static bool fails_so(const Options *o, Job *j, const char *text, const char *as)
{
    char now[64];
    if (!fails(o, j, text))
        return false;
    signature(j->report, now);
    return strcmp(now, as) == 0;
}

/* Deletes pieces, the longest first, then makes numbers small, as long as the text fails so. */
static const char *shrunk(Arena *arena, const Options *o, Job *j, const char *text, const char *as)
{
    for (bool smaller = true; smaller;) {
        smaller = false;
        Piece *p;
        size_t n = text_pieces(arena, text, &p);
        for (size_t longest = n; longest > 0; longest--) {
            size_t at = 0;
            for (size_t i = 0; i < n; i++)
                if (p[i].to - p[i].from > p[at].to - p[at].from)
                    at = i;
            size_t to = p[at].to + (text[p[at].to] == ',');
            const char *less = text_replaced(arena, text, (Piece){p[at].from, to}, "");
            p[at].to = p[at].from; /* seen */
            if (!fails_so(o, j, less, as))
                continue;
            text = less;
            smaller = true;
            n = text_pieces(arena, text, &p);
            longest = n + 1;
        }
        n = text_tokens(arena, text, &p);
        for (size_t i = 0; i < n; i++) {
            static const char *const small[] = {"1", "2", "3"};
            for (size_t k = 0; k < 3 && text[p[i].from] >= '0' && text[p[i].from] <= '9'; k++) {
                if (p[i].to == p[i].from + 1 && text[p[i].from] <= *small[k])
                    break;
                const char *less = text_replaced(arena, text, p[i], small[k]);
                if (fails_so(o, j, less, as)) {
                    text = less;
                    smaller = true;
                    n = text_tokens(arena, text, &p);
                    break;
                }
            }
        }
    }
    return text;
}

static int run_one(Options *o, const char *what, bool shrink)
{
    Ctx *ctx = ctx_new(NULL);
    Job j = {.report = shared_report(), .keep = o->keep && !shrink};
    const char *text = file_or_seed(ctx->program, what, &j.seed);
    o->all = true;
    bool bad = is_bad(&j, fails(o, &j, text));
    printf("%s%s%s\n", bad ? stage_name[j.report->stage] : "ok", bad ? ": " : "", j.report->why);
    for (int s = 0; s < STAGES && !bad; s++)
        if (j.report->ran[s])
            printf("%-10s %.2f s, %.2f of the bound%s\n", stage_name[s], j.report->seconds[s], j.report->worst[s],
                   j.report->unstable[s] ? ", not compared" : "");
    if (bad && shrink) {
        char as[64];
        signature(j.report, as);
        o->patience = 0.2; /* what does not end is not waited for */
        o->chosen = true;
        memset(o->take, 0, sizeof o->take);
        o->take[j.report->stage] = true;
        const char *less = shrunk(ctx->program, o, &j, text, as);
        fails(o, &j, less);
        printf("%s\n\n%s: %s\n", less, stage_name[j.report->stage], j.report->why);
        keep_text(less, "random_small.vwn");
    }
    ctx_free(ctx);
    return bad;
}

static void choose(Options *o, const char *names)
{
    o->chosen = true;
    for (int s = 0; s < STAGES; s++) {
        const char *at = strstr(names, stage_name[s]);
        size_t n = strlen(stage_name[s]);
        for (; at; at = strstr(at + 1, stage_name[s]))
            o->take[s] = o->take[s] || ((at == names || at[-1] == ',') && (!at[n] || at[n] == ','));
    }
}

int main(int argc, char **argv)
{
    Options o = {.from = 1, .jobs = 1, .patience = 1};
    const char *one = NULL;
    bool shrink = false, show = false;
    int place = 0;
    for (int i = 1; i < argc; i++) {
        const char *next = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--all"))
            o.all = true;
        else if (!strcmp(argv[i], "--keep"))
            o.keep = true;
        else if (!strcmp(argv[i], "--found"))
            o.found = true, place = 2;
        else if (!strcmp(argv[i], "--jobs"))
            o.jobs = atoi(next), i++;
        else if (!strcmp(argv[i], "--stages"))
            choose(&o, next), i++;
        else if (!strcmp(argv[i], "--file") || !strcmp(argv[i], "--shrink") || !strcmp(argv[i], "--show"))
            shrink = argv[i][3] == 'h' && argv[i][4] == 'r', show = argv[i][4] == 'o', one = next, i++;
        else
            *(place++ ? &o.count : &o.from) = strtoull(argv[i], NULL, 10);
    }
    o.jobs = o.jobs < 1 ? 1 : o.jobs > JOBS_MOST ? JOBS_MOST : o.jobs;
    if (!getenv("XDG_CACHE_HOME") && getcwd(o.cache, sizeof o.cache - 16))
        strcat(o.cache, "/random_cache");
    if (show) {
        Ctx *ctx = ctx_new(NULL);
        uint64_t seed;
        fputs(file_or_seed(ctx->program, one, &seed), stdout);
        ctx_free(ctx);
        return 0;
    }
    o.found = o.found || !place;
    if (place < 2 && !one)
        o.count = drawn_count(&(CaseDraw){.one_in = 30, .sanitized = 45}, 900);
    return one ? run_one(&o, one, shrink) : run_many(&o);
}
