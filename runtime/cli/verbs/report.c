/* report.c - `vwn report`: runs as one HTML file.   In: run directories.   Out: the file. */
#include "runtime/cli/cli.h"

#include <string.h>

static void print_written(Call *call, const char *path, size_t bytes, size_t runs)
{
    ui_print(&call->ui, "{\"v\":1,\"event\":\"report\",\"file\":");
    put_json_string(&call->ui, path, strlen(path));
    ui_print(&call->ui, ",\"bytes\":%zu,\"runs\":%zu}\n", bytes, runs);
}

static int run(Call *call)
{
    int status;
    static const char *const words[] = {"small", "all", "none", NULL};
    const char *path = call_flag(call, "-o");
    int connections = call_choice(call, "--connections", words, 0);
    size_t runs = 0;
    vwn_page_options how = {.run = call->operand,
                            .n_runs = (size_t)call->n_operands,
                            .connections = (vwn_page_connections)connections,
                            .shown = &runs};
    if (connections < 0)
        return VWN_USAGE;
    if (!path)
        return usage_error(call, "`vwn report` needs `-o FILE.html`, or `-o -` for stdout");
    if (call->json && !strcmp(path, "-"))
        return usage_error(call, "`--json` and `-o -` exclude each other: both write to stdout");
    if (!call_open(call, &status))
        return status;
    Text page = {0};
    bool to_stdout = strcmp(path, "-") == 0;
    vwn_writer out = to_stdout ? ui_stdout(&call->ui) : text_writer(&page);
    vwn_status st = vwn_page(call->ctx, &how, &out);
    status = call_failed(call, st);
    if (st == VWN_OK && !to_stdout) {
        size_t n = page.n;
        status = save_text(call, path, &page) ? VWN_OK : VWN_ENVIRONMENT;
        if (status == VWN_OK && call->json)
            print_written(call, path, n, runs);
    }
    text_free(&page);
    return status;
}

static const Flag flags[] = {
    {"-o", "FILE.html|-", "the file that is written, in place of what it held; - is stdout"},
    {"--connections", "small|all|none",
     "measure connection matrices: where it takes about a second (else), of all models, of none"},
};
const Verb verb_report = {
    .name = "report",
    .operands = "RUN|SWEEP|FOLDER...",
    .summary = "Writes runs as one HTML page: table, curves, widths, connections, costs, growth",
    .example = {{"vwn report runs/nano -o nano.html", "one run"},
                {"vwn report runs/sizes -o sizes.html", "all runs of a sweep, or below a folder"}},
    .text = "The page needs no network and no other file; charts are drawn by a script in it. Curves are zoomed,\n"
            "smoothed and read by mouse or keys, runs sorted and chosen by their settings. A hundred runs are less\n"
            "than 3 MB: long curves are handed over in bins that keep every extreme. Runs may be going on.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = -1,
    .run = run};
