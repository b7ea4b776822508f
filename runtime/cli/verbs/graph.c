/* graph.c - `vwn graph`: the model as boxes and what flows between them.   In: a file.   Out: DOT, JSON, or SVG made by
 * Graphviz's `dot`.
 */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* What `dot -Tsvg` makes of a text; false after an error message. */
static bool draw(Call *call, const Text *dot, Text *svg)
{
    FILE *in = tmpfile(), *made = tmpfile();
    char part[16384];
    char *const args[] = {"dot", "-Tsvg", NULL};
    posix_spawn_file_actions_t act;
    pid_t child;
    int status = 0, why = 0;
    size_t n;
    if (!in || !made || fwrite(dot->s, 1, dot->n, in) != dot->n || fflush(in) != 0 || fseek(in, 0, SEEK_SET) != 0) {
        ui_error(&call->ui, "no temporary file can be written: %s", strerror(errno));
        why = -1;
    }
    posix_spawn_file_actions_init(&act);
    if (!why) {
        posix_spawn_file_actions_adddup2(&act, fileno(in), STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&act, fileno(made), STDOUT_FILENO);
        why = posix_spawnp(&child, "dot", &act, NULL, args, environ);
        if (why)
            ui_error(&call->ui,
                     "an SVG is made by the program `dot` of Graphviz, which cannot be run: %s; install the package"
                     " graphviz, or write `-o g.dot`",
                     strerror(why));
    }
    posix_spawn_file_actions_destroy(&act);
    while (!why && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (!why && status) {
        ui_error(&call->ui, "`dot -Tsvg` failed with status %d", WIFEXITED(status) ? WEXITSTATUS(status) : status);
        why = -1;
    }
    if (!why && fseek(made, 0, SEEK_SET) == 0)
        while ((n = fread(part, 1, sizeof part, made)) > 0)
            text_put(svg, part, n);
    if (in)
        fclose(in);
    if (made)
        fclose(made);
    return !why;
}

static int run(Call *call)
{
    static const char *const ends[] = {".svg", ".dot", ".json", NULL};
    int status, end = -1;
    const char *to = call_flag(call, "-o");
    if (to)
        end = file_ending(to, ends);
    if (to && call->json)
        return usage_error(call, "the ending of `-o %s` says the form: leave out `--json`", to);
    vwn_report_options how = {.json = to ? end == 2 : call->json, .program = call_flag(call, "--layer")};
    vwn_unit *unit;
    if (!call_open(call, &status) || !call_unit(call, 0, &unit, &status))
        return status;
    Text text = {0}, svg = {0};
    vwn_writer into = text_writer(&text), out = ui_stdout(&call->ui);
    vwn_status st = vwn_write_report(unit, VWN_REPORT_GRAPH, &how, to ? &into : &out);
    if (st != VWN_OK || !to) {
        text_free(&text);
        return st == VWN_OK ? status : call_failed(call, st);
    }
    if (end != 0)
        return save_text(call, to, &text) ? status : VWN_ENVIRONMENT;
    bool drawn = draw(call, &text, &svg);
    text_free(&text);
    return drawn && save_text(call, to, &svg) ? status : VWN_ENVIRONMENT;
}

static const Flag flags[] = {
    {"--layer", "N|PATH", "what one layer, or the module of this path, consists of"},
    {"-o", "FILE.svg|FILE.dot|FILE.json", "g.svg (drawn by Graphviz), g.dot or g.json instead of DOT on stdout"},
};
const Verb verb_graph = {
    .name = "graph",
    .operands = "FILE",
    .summary = "Shows the model, or a layer, as boxes and what flows between them",
    .example = {{"vwn graph model.vwn -o model.svg", "equal layers are one, widths to scale"},
                {"vwn graph model.vwn --layer 3 -o layer.svg", "the third layer, module by module"}},
    .flag = flags,
    .n_flags = 2,
    .takes = TAKES_SET | TAKES_JSON,
    .least = 1,
    .most = 1,
    .run = run};
