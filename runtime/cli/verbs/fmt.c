/* fmt.c - `vwn fmt`: the canonical form of files.
 *
 * In:  files, or "-".   Out: the files rewritten; with --check or --diff only what would
 * change.
 */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is to be done with one file whose text and canonical text are known. */
static int show_or_write(Call *call, const char *path, const Text *before, const Text *after)
{
    bool check = call_flag(call, "--check") != NULL, diff = call_flag(call, "--diff") != NULL;
    bool standard = strcmp(path, "-") == 0;
    bool same = before->n == after->n && memcmp(before->s, after->s, after->n) == 0;
    const char *name = standard ? "<stdin>" : path;
    if (call->json) {
        ui_print(&call->ui, "{\"v\":1,\"event\":\"fmt\",\"file\":");
        put_json_string(&call->ui, name, strlen(name));
        ui_print(&call->ui, ",\"changed\":%s}\n", same ? "false" : "true");
    } else if (diff && !same) {
        vwn_writer out = ui_stdout(&call->ui);
        write_diff(&out, name, before, after);
    } else if (check && !same) {
        ui_print(&call->ui, "%s\n", name);
    }
    if (check || diff)
        return check && !same ? VWN_INPUT : VWN_OK;
    if (standard && !call->json)
        ui_put(&call->ui, after->s, after->n);
    if (standard || same)
        return VWN_OK;
    if (!replace_file(path, after->s, after->n)) {
        ui_error(&call->ui, "cannot write %s: %s", path, strerror(errno));
        return VWN_ENVIRONMENT;
    }
    ui_say(&call->ui, "Formatted", "%s", path);
    return VWN_OK;
}

static int format_one(Call *call, const char *path)
{
    int status;
    Text before = {0}, after = {0};
    const char *why = read_whole_file(path, &before);
    if (why) {
        ui_error(&call->ui, "cannot read %s: %s", path, why);
        text_free(&before);
        return VWN_INPUT;
    }
    if (!call_open(call, &status)) {
        text_free(&before);
        return status;
    }
    vwn_file_options file = {.path = path, .text = before.s, .text_length = before.n};
    vwn_writer out = text_writer(&after);
    vwn_status st = vwn_format_file(call->ctx, &file, &out);
    call_diagnostics(call, false, NULL);
    status = call_failed(call, st);
    if (st == VWN_OK && after.failed)
        status = VWN_ENVIRONMENT;
    if (status == VWN_OK) {
        text_put(&after, "", 0);
        status = show_or_write(call, path, &before, &after);
    }
    call_close(call);
    text_free(&before);
    text_free(&after);
    return status;
}

static int run(Call *call)
{
    int status = VWN_OK;
    for (int i = 0; i < call->n_operands; i++) {
        int one = format_one(call, call->operand[i]);
        if (one > status)
            status = one;
    }
    return status;
}

static const Flag flags[] = {
    {"--check", NULL, "write nothing; list the files that would change (exit status 1)"},
    {"--diff", NULL, "write nothing; show what would change"},
};
const Verb verb_fmt = {.name = "fmt",
                       .operands = "FILE...|-",
                       .summary = "Rewrites files in the canonical form; `-` goes from stdin to stdout",
                       .example = {{"vwn fmt model.vwn", "rewrite a file in place"},
                                   {"vwn fmt --check --diff examples/*.vwn", "show what would change"}},
                       .flag = flags,
                       .n_flags = 2,
                       .takes = TAKES_JSON,
                       .least = 1,
                       .most = -1,
                       .run = run};
