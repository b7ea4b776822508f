/* check.c - `vwn check`: everything that can be known before a run.
 *
 * In:  files.   Out: the check report on stdout, diagnostics on stderr (with --json all on
 * stdout), and the worst status. Every file has a context of its own, so no file can starve the
 * next.
 */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int worse(int a, int b)
{
    static const int order[] = {VWN_BUG, VWN_ENVIRONMENT, VWN_USAGE, VWN_INPUT, VWN_CHECK};
    for (size_t i = 0; i < sizeof order / sizeof order[0]; i++)
        if (a == order[i] || b == order[i])
            return order[i];
    return VWN_OK;
}

/* Applies the certain fixes of the diagnostics filed for this unit; returns how many. */
static size_t apply_fixes(Call *call, vwn_unit *unit, const char *path, int *status)
{
    Text text = {0}, changes = {0};
    vwn_writer out = text_writer(&text), lines = text_writer(&changes);
    size_t fixes = vwn_fixed_text(unit, &out, &lines);
    if (fixes && (text.failed || !replace_file(path, text.s, text.n))) {
        ui_error(&call->ui, "cannot write %s: %s", path, strerror(errno));
        *status = VWN_ENVIRONMENT;
        fixes = 0;
    }
    text_free(&text);
    for (const char *line = changes.s; fixes && line && *line; line += strcspn(line, "\n") + 1)
        ui_say(&call->ui, "Fixed", "%.*s", (int)strcspn(line, "\n"), line);
    text_free(&changes);
    return fixes;
}

/* One pass over one file. */
static int check_once(Call *call, int i, bool fix, bool *again)
{
    vwn_file_options file;
    int status = VWN_OK;
    if (!call_open(call, &status))
        return status;
    if (!call_file(call, i, &file, &status)) {
        call_close(call);
        return status;
    }
    file.deny = call_flags(call, "--deny", &file.n_deny);
    vwn_unit *unit = NULL;
    vwn_status st = vwn_check(call->ctx, &file, &unit);
    *again = fix && unit && apply_fixes(call, unit, file.path, &status) > 0;
    if (!*again) {
        Text report = {0};
        vwn_writer out = text_writer(&report);
        vwn_report_options how = {.json = call->json};
        if (unit && !(call->ui.quiet && !call->json))
            vwn_write_report(unit, VWN_REPORT_CHECK, &how, &out);
        call_diagnostics(call, call->json, NULL);
        if (report.s)
            ui_put(&call->ui, report.s, report.n);
        ui_flush(&call->ui);
        text_free(&report);
        int failed = call_failed(call, st);
        status = worse(status, failed);
    }
    call_file_done(&file);
    call_close(call);
    return status;
}

static int run(Call *call)
{
    enum { MOST_ROUNDS = 100 };
    bool fix = call_flag(call, "--fix") != NULL;
    int status = VWN_OK;
    for (int i = 0; i < call->n_operands && !call->ui.write_error; i++) {
        bool again = false;
        if (fix && strcmp(call->operand[i], "-") == 0)
            return usage_error(call, "`--fix` writes files and cannot write the standard input");
        int one = check_once(call, i, fix, &again);
        /* a fix can uncover what stood behind it, and a round tells 20 errors: after so many whatever is left is shown */
        for (int round = 1; again && round <= MOST_ROUNDS; round++) {
            again = false;
            one = worse(one, check_once(call, i, round < MOST_ROUNDS, &again));
        }
        status = worse(status, one);
    }
    return status;
}

static const Flag flags[] = {
    {"--fix", NULL, "write what has one answer into the file, and say each change"},
    {"--deny", "LINT|warnings", "a warning of this lint (or any) is an error; repeatable"},
};
const Verb verb_check = {.name = "check",
                         .operands = "FILE...",
                         .summary = "Checks files: text, names, shapes, widths, training, and every `check` line",
                         .example = {{"vwn check model.vwn", "one file"},
                                     {"vwn check --deny warnings examples/*.vwn", "several; a warning fails"}},
                         .text = "Exit status: 0 fine, 1 errors, 3 a `check` is false.\n",
                         .flag = flags,
                         .n_flags = 2,
                         .takes = TAKES_SET | TAKES_JSON,
                         .least = 1,
                         .most = -1,
                         .run = run};
