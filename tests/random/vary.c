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

static vwn_status check_path(Child *c, const char *path, const char *const *set, size_t n, vwn_unit **u, const char **said)
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
    vwn_sweep_options how = {
        .file = {.path = "sweep.vwn"}, .run = "sweep", .list = list, .overwrite = true, .until = list ? NULL : "1 steps"};
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
    const char *text = generate_sweep(c->text->program, c->how->seed, c->how->text, "made.vwn", &n, varied), *why, *said;
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
        execv(vwn, argv);
        _exit(127);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    (void)c;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void stage_program(Child *c)
{
    static const char *const verbs[][10] = {
        {"check", "made.vwn"},
        {"params", "made.vwn"},
        {"cost", "made.vwn"},
        {"graph", "made.vwn"},
        {"plot", "made.vwn"},
        {"resolve", "made.vwn"},
        {"ir", "made.vwn", "--stage", "plan"},
        {"ir", "made.vwn", "--stage", "cuda"},
        {"emit", "c", "made.vwn", "-o", "emitted_c"},
        {"emit", "cuda", "made.vwn", "-o", "emitted_cuda"},
        {"train", "made.vwn", "--device", "reference", "--until", "1 steps", "--run", "trained", "--overwrite"},
        {"sweep", "made.vwn", "--vary", "train.seed=1,2", "--list"},
        {"grow", "made.vwn", "larger0", "--plan"},
        {"diff", "made.vwn", "made.vwn"},
    };
    if (!getenv("VWN"))
        return;
    child_write(c, "made.vwn", c->how->text);
    int checked = program(c, verbs[0]);
    if ((checked == 0) != c->r->accepted)
        failed(c, "the program's `check` ends with %d", checked);
    for (size_t i = 1; i < COUNT_OF(verbs); i++) {
        int st = program(c, verbs[i]);
        bool good = checked == 1 || checked == 3 ? st == checked || (st == 1 && checked == 3)
                                                 : st == 0 || st == 6 || st == 1 || st == 2 || st == 4 || st == 5;
        if (!good)
            failed(c, "`vwn %s %s %s` ends with %d where `check` does with %d", verbs[i][0], verbs[i][1],
                   verbs[i][2] ? verbs[i][2] : "", st, checked);
    }
}
