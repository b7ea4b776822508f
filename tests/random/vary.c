/* vary.c - see child.h: sweeps, and every verb of the program itself.
 *
 * The one idea: a file is elaborated once and in one way. A sweep that is accepted has points that are accepted one by one, with
 * the same settings; what `check` refuses every verb refuses; what it accepts none ends with a bug.
 */
#define _GNU_SOURCE
#include "child.h"
#include "generate.h"

#include "compiler/front/attribute.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static vwn_status check_path(Child *c, const char *path, const char *const *set, size_t n, vwn_unit **u,
                             const char **said)
{
    vwn_context *v = child_context(c, NULL);
    vwn_status st = vwn_check(v, &(vwn_file_options){.path = path, .set = set, .n_set = n}, u);
    *said = child_expect(c, v, st, path);
    return st; /* its context ends with the process */
}

static vwn_status sweep(Child *c, bool list, const char **said)
{
    Buf b = buf_new(c->text->program);
    vwn_writer w = child_writer(&b);
    vwn_context *v = child_context(c, "reference");
    size_t errors;
    vwn_sweep_options how = {.file = {.path = "sweep.vwn"},
                             .run = "sweep",
                             .list = list,
                             .overwrite = true,
                             .until = list ? NULL : "1 steps"};
    vwn_status st = vwn_sweep(v, &how, &w);
    const char *wrong = child_diagnostics(c, v, &errors);
    *said = arena_printf(c->text->program, "%s %s", vwn_message(v), wrong);
    if (st == VWN_BUG || (st == VWN_ENVIRONMENT && list))
        failed(c, "sweep: status %d: %.900s", (int)st, *said);
    vwn_close(v);
    return st;
}

/* The rows of the table of attributes that were varied, for the count of all files. */
static void seen(Child *c, const Axis *a)
{
    for (size_t i = 0; i < attribute_count(); i++)
        if (!strcmp(attribute_at(i)->node, a->node) && !strcmp(attribute_at(i)->name, a->name))
            c->r->varied[i / 64] |= (uint64_t)1 << i % 64;
}

void stage_vary(Child *c)
{
    Axis varied[AXES_MOST];
    size_t n;
    const char *text = generate_sweep(c->text->program, c->how->seed, c->how->text, "made.vwn", &n, varied), *why,
               *said;
    vwn_unit *u;
    if (!text)
        return;
    child_write(c, "made.vwn", c->how->text);
    child_write(c, "sweep.vwn", text);
    vwn_status st = check_path(c, "sweep.vwn", NULL, 0, &u, &why), listed = sweep(c, true, &said);
    for (size_t i = 0; i < n; i++)
        seen(c, &varied[i]);
    c->r->swept = 1 + (st == VWN_OK);
    if (st != VWN_OK) {
        if (st == VWN_INPUT && listed == VWN_OK && !strstr(said, "point"))
            failed(c, "a sweep that `check` refuses is listed: %.500s\n%s", why, text);
        return;
    }
    if (listed != VWN_OK)
        failed(c, "a sweep that `check` accepts is not listed: status %d: %.500s\n%s", (int)listed, said, text);
    const SweepPlan *p = &u->unit->sweep.v[0];
    for (size_t i = 0; i < p->n && i < 3; i++) {
        const SweepPoint *point = &p->point[(i * 5 + c->how->seed) % p->n];
        vwn_unit *one;
        if (check_path(c, "made.vwn", point->set, point->n_set, &one, &why) != VWN_OK)
            failed(c, "a point of an accepted sweep is refused by itself: %s: %.700s", point->name, why);
    }
    if (c->small && p->n <= 2 && c->unit->unit->train)
        sweep(c, false, &said);
}

/* ---- the program ---- */

/* Its status, or 128 and the signal. */
static int program(Child *c, const char *const *words)
{
    const char *vwn = getenv("VWN");
    char *argv[16] = {(char *)vwn};
    for (int i = 0; words[i]; i++)
        argv[i + 1] = (char *)words[i];
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        int out = open("program", O_CREAT | O_WRONLY | O_TRUNC, 0666), in = open("/dev/null", O_RDONLY);
        dup2(in, 0);
        dup2(out, 1);
        dup2(out, 2);
        if (c->how->cache)
            setenv("VWN_CACHE", c->how->cache, 1);
        execv(vwn, argv);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* A verb; of how many files one takes it, since some compile; and what it may end with where `check` ends with 0, besides 1
 * for what it cannot do with such a file. */
typedef struct Verb {
    unsigned share;
    const char *ends;
    const char *words[14];
} Verb;

/* Of a file, in this order; what reads a run comes behind `train`. */
static const Verb verbs[] = {
    {1, "06", {"params", "made.vwn"}},
    {1, "0", {"cost", "made.vwn"}},
    {1, "0", {"graph", "made.vwn"}},
    {1, "0", {"plot", "made.vwn"}},
    {1, "0", {"resolve", "made.vwn"}},
    {1, "0", {"ir", "made.vwn", "--stage", "plan"}},
    {1, "0", {"ir", "made.vwn", "--stage", "cuda"}},
    {5, "05", {"ir", "made.vwn", "--stage", "cubin", "--arch", "sm_80", "--program", "eval"}}, /* 5: no NVRTC */
    {1, "0", {"emit", "c", "made.vwn", "-o", "emitted_c"}},
    {1, "0", {"emit", "cuda", "made.vwn", "-o", "emitted_cuda"}},
    {9, "0", {"bench", "made.vwn", "--steps", "1", "--device", "cpu", "--threads", "1"}},
    {1, "0", {"sweep", "made.vwn", "--vary", "train.seed=1,2", "--list"}},
    {1, "06", {"grow", "made.vwn", "larger0", "--plan"}},
    {1, "06", {"diff", "made.vwn", "made.vwn"}},
    {1,
     "045",
     {"train", "made.vwn", "--device", "reference", "--until", "1 steps", "--run", "./trained", "--overwrite"}},
    {1, "0", {"eval", "trained", "--device", "reference", "--batches", "1"}},
    {1,
     "02",
     {"sample", "trained", "--device", "reference", "--prompt", "ab", "--tokens", "3", "--top-k", "2", "-n", "2"}},
    {1, "0", {"inspect", "trained", "--device", "reference", "--tokens", "8", "-o", "inside"}},
    {1, "0", {"inspect", "trained", "--stats", "--states", "--csv"}},
    {1, "0", {"watch", "trained", "--once"}},
    {1, "0", {"compare", "trained", "trained"}},
    {1, "0", {"report", "trained", "-o", "trained.html"}},
    {1, "0", {"diff", "trained", "trained"}},
    {1, "0", {"plot", "trained"}},
    {1, "0", {"export-log", "trained"}},
};

void stage_program(Child *c)
{
    if (!getenv("VWN"))
        return;
    child_write(c, "made.vwn", c->how->text);
    int checked = program(c, (const char *const[]){"check", "made.vwn", NULL}), trained = -1;
    if ((checked == 0) != c->r->accepted)
        failed(c, "the program's `check` ends with %d", checked);
    for (size_t i = 0; i < COUNT_OF(verbs); i++) {
        const Verb *v = &verbs[i];
        if (checked == 0 && (c->how->seed / 3 + i) % v->share)
            continue;
        int st = program(c, v->words);
        bool run = strcmp(v->words[1], "trained") == 0, good;
        if (run && trained != 0) /* 4: there is a run, which diverged */
            good = st == 1 || st == 2 || st == 5 || (st == 0 && trained == 4);
        else if (checked)
            good = st == checked || (st == 1 && checked == 3);
        else
            good = st == 1 || (st < 10 && strchr(v->ends, '0' + st));
        if (strcmp(v->words[0], "train") == 0)
            trained = st;
        if (!good)
            failed(c, "`vwn %s %s %s` ends with %d where `check` does with %d", v->words[0], v->words[1],
                   v->words[2] ? v->words[2] : "", st, checked);
    }
}
