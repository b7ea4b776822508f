/* inspect.c - `vwn inspect`: what a trained model does inside, and what weights have become.
 *
 * In:  a run, or checkpoints.   Out: a summary or JSON; with -o pictures, JSON and a page that shows them.
 */
#include "runtime/base/folder.h"
#include "runtime/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- numbers of every tensor ---- */
static int stats(Call *call)
{
    int status;
    bool csv = call_flag(call, "--csv");
    if (call->n_operands > 1)
        return usage_error(call, "`--stats` looks at one checkpoint; `vwn diff A B` compares two");
    if (csv && call->json)
        return usage_error(call, "`--csv` and `--json` exclude each other");
    vwn_stats_options how = {.source = call->operand[0],
                             .tensors = call_flag(call, "--tensors"),
                             .states = call_flag(call, "--states"),
                             .form = csv          ? VWN_STATS_CSV
                                     : call->json ? VWN_STATS_JSON
                                                  : VWN_STATS_TABLE};
    if (!call_open(call, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    return call_failed(call, vwn_tensor_stats(call->ctx, &how, &out));
}

/* ---- inside ---- */

/* Where pictures go: a folder with a page that shows them, or one file for the first of them. */
typedef struct Album {
    const char *folder, *file;
    int drawn, error; /* error: errno of the first failure */
    char *failed;     /* the path of it; owned */
} Album;

static void keep(Album *a, const char *name, const char *s, size_t n)
{
    if (a->error)
        return;
    size_t size = strlen(a->folder ? a->folder : "") + strlen(name) + 2;
    char *path = malloc(size);
    if (!path) {
        a->error = ENOMEM;
        return;
    }
    snprintf(path, size, "%s%s%s", a->folder ? a->folder : "", a->folder ? "/" : "", name);
    if ((!a->folder || mkdir(a->folder, 0777) == 0 || errno == EEXIST) && replace_file(path, s, n)) {
        free(path);
        return;
    }
    const int why = errno;
    a->error = why ? why : EIO;
    a->failed = path;
}

static void picture(void *user, const char *name, const char *title, const char *caption, const char *svg, size_t n)
{
    Album *a = user;
    (void)title, (void)caption;
    char file[128];
    if (a->file) {
        if (!a->drawn++)
            keep(a, a->file, svg, n);
        return;
    }
    a->drawn++;
    snprintf(file, sizeof file, "%s.svg", name);
    keep(a, file, svg, n);
}

static int inside(Call *call)
{
    static const char *const words[] = {"connections", "weights", "inputs", "activations", "states", "lens", NULL};
    int status, what = call_flag(call, "--what") ? call_choice(call, "--what", words, 0) : 6;
    const char *to = call_flag(call, "-o");
    vwn_inside_options how = {.source = call->operand[0],
                              .data = call_flag(call, "--data"),
                              .what = what < 0 ? NULL : words[what],
                              .last = call_flag(call, "--last") != NULL};
    if (what < 0 || !call_whole(call, "--tokens", 1, 1 << 30, &how.tokens))
        return VWN_USAGE;
    if (to && !ends_with(to, ".svg") && !is_folder(to) &&
        (!strcmp(to, "-") || strchr(strrchr(to, '/') ? strrchr(to, '/') : to, '.')))
        return usage_error(
            call, "`-o %s`: a picture ends in .svg; anything else is a folder, with a dot in its name written `%s/`",
            to, to);
    if (to && !ends_with(to, ".svg") && !call_flag(call, "--force") &&
        folder_is_foreign(to, "index.html", VWN_INSIDE_PAGE) > 0)
        return usage_error(call,
                           "the folder %s holds files that `vwn inspect` has not written; name another, or write among "
                           "them with --force",
                           to);
    if (call->n_operands > 1)
        return usage_error(call, "one run or checkpoint is looked into at a time; several belong to `--growth`");
    Album album = {0};
    if (to) {
        how.picture = picture;
        how.picture_user = &album;
        album.file = ends_with(to, ".svg") ? to : NULL;
        album.folder = album.file ? NULL : to;
        how.what = album.file && !how.what ? words[0] : how.what;
    }
    if (!call_open(call, &status))
        return status;
    Text text = {0}, json = {0}, page = {0};
    vwn_writer into_text = text_writer(&text), into_json = text_writer(&json), into_page = text_writer(&page),
               out = ui_stdout(&call->ui);
    how.page = album.folder ? &into_page : NULL; /* which has the numbers as JSON beside it */
    vwn_status st =
        vwn_inspect(call->ctx, &how, call->json ? NULL : &into_text, how.page || call->json ? &into_json : NULL);
    const char *warning = vwn_warning(call->ctx);
    if (st == VWN_OK && *warning)
        ui_warning(&call->ui, "%s", warning);
    if (st == VWN_OK && (text.failed || json.failed || page.failed) && !album.error)
        album.error = ENOMEM;
    if (st == VWN_OK && album.folder) {
        keep(&album, "index.html", page.s, page.n);
        keep(&album, "inspect.json", json.s, json.n);
    }
    if (st == VWN_OK && !album.error && to && !call->json && album.drawn)
        ui_say(&call->ui, "Written", "%s, %d picture%s", to, album.file ? 1 : album.drawn,
               album.file || album.drawn == 1 ? "" : "s");
    if (st == VWN_OK && !album.error)
        out.put(out.user, call->json ? json.s : text.s, call->json ? json.n : text.n);
    status = (int)st;
    if (st == VWN_OK && album.error) {
        ui_error(&call->ui, "cannot write %s: %s", album.failed ? album.failed : "the findings", strerror(album.error));
        status = VWN_ENVIRONMENT;
    }
    if (st == VWN_OK && album.file && !album.drawn)
        status = usage_error(call, "%s has nothing of %s that could be drawn: %s is not written", call->operand[0],
                             how.what, to);
    free(album.failed);
    text_free(&page);
    text_free(&text);
    text_free(&json);
    call_diagnostics(call, false, NULL);
    return st == VWN_OK ? status : call_failed(call, st);
}

/* ---- growth ---- */

static int growth(Call *call)
{
    static const char *const estimators[] = {"histogram", "kde", NULL}, *const by[] = {"tensor", NULL};
    int status;
    vwn_inspect_options how = {.source = call->operand,
                               .n_sources = (size_t)call->n_operands,
                               .step = call_flag(call, "--step"),
                               .tensors = call_flag(call, "--tensors"),
                               .bins = 100,
                               .json = call->json};
    int64_t seed = 1;
    int estimator = call_choice(call, "--noc", estimators, 0), each = call_choice(call, "--by", by, 1);
    if (estimator < 0 || each < 0 || !call_whole(call, "--bins", 1, 1 << 20, &how.bins) ||
        !call_whole(call, "--seed", 0, INT64_MAX, &seed))
        return VWN_USAGE;
    how.densities = estimator == 1;
    how.by_tensor = each == 0;
    how.samples = how.densities ? 3000 : 2000;
    if (!call_whole(call, "--samples", 1, 1 << 24, &how.samples))
        return VWN_USAGE;
    if (how.densities && call_flag(call, "--bins"))
        return usage_error(call, "`--bins` is of histograms: leave out `--noc kde`");
    how.seed = (uint64_t)seed;
    if (!call_open(call, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_inspect_growth(call->ctx, &how, &out);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

/* Which of the three a flag belongs to. */
enum { OF_INSIDE = 1, OF_STATS = 2, OF_GROWTH = 4 };
static const struct {
    const char *flag;
    int of;
} belongs[] = {{"--what", OF_INSIDE},
               {"--data", OF_INSIDE},
               {"--tokens", OF_INSIDE},
               {"--last", OF_INSIDE},
               {"-o", OF_INSIDE},
               {"--force", OF_INSIDE},
               {"--tensors", OF_STATS | OF_GROWTH},
               {"--states", OF_STATS},
               {"--csv", OF_STATS},
               {"--step", OF_GROWTH},
               {"--by", OF_GROWTH},
               {"--noc", OF_GROWTH},
               {"--bins", OF_GROWTH},
               {"--samples", OF_GROWTH},
               {"--seed", OF_GROWTH}};

static int run(Call *call)
{
    bool stats_of = call_flag(call, "--stats"), grown = call_flag(call, "--growth");
    if (stats_of && grown)
        return usage_error(call, "`--stats` and `--growth` exclude each other");
    static const char *const where[] = {
        [OF_STATS] = "--stats`", [OF_GROWTH] = "--growth`", [OF_STATS | OF_GROWTH] = "--stats` or `--growth`"};
    int of = stats_of ? OF_STATS : grown ? OF_GROWTH : OF_INSIDE;
    for (size_t i = 0; i < sizeof belongs / sizeof *belongs; i++)
        if (!(belongs[i].of & of) && call_flag(call, belongs[i].flag))
            return of == OF_INSIDE
                       ? usage_error(call, "`%s` belongs to `vwn inspect RUN %s", belongs[i].flag, where[belongs[i].of])
                       : usage_error(call, "`%s` does not belong to `%s`", belongs[i].flag,
                                     stats_of ? "--stats" : "--growth");
    return stats_of ? stats(call) : grown ? growth(call) : inside(call);
}

static const Flag flags[] = {
    {"--what", "NAME", "only connections, weights, inputs, activations, states or lens"},
    {"--data", "FILE", "a text to look at it with (else what the file holds out)"},
    {"--tokens", "N", "as many of it, in whole windows (else 1,024)"},
    {"--last", NULL, "the weights of the last step, also where the run kept their average"},
    {"-o", "DIR|FILE.svg", "pictures of all with a page and JSON, or one: of connections, or of --what"},
    {"--force", NULL, "with -o DIR: write into a folder that holds other files"},
    {"--stats", NULL, "mean, deviation, range, norm, zeros and what is not finite, for each tensor"},
    {"--states", NULL, "with --stats: also what the optimizer keeps"},
    {"--csv", NULL, "with --stats: a table for other programs"},
    {"--growth", NULL, "how far a grown model is from the weights before: NOC, U_P, R, distances"},
    {"--step", "NAME", "of a run that grew several times: which growth step (else the last)"},
    {"--tensors", "PATH", "weights below a path, `layer[*].attention` (else all; with --growth those that grew)"},
    {"--by", "tensor", "also a table for each weight"},
    {"--noc", "histogram|kde", "how densities are estimated (else histogram)"},
    {"--bins", "N", "of a histogram (else 100)"},
    {"--samples", "N", "weights of each side in ranks and kernel densities (else 2,000; 3,000 with kde)"},
    {"--seed", "N", "of the choice of these (else 1)"},
};
const Verb verb_inspect = {
    .name = "inspect",
    .operands = "RUN|CKPT...",
    .summary = "Shows what a trained model does inside; numbers of its tensors; how far growth has moved it",
    .example = {{"vwn inspect runs/small -o inside", "pictures, a page that shows them, every number as JSON"},
                {"vwn inspect runs/nexus --growth", "every checkpoint since the last growth step"}},
    .text = "connections  what each sublayer wrote, in what later ones read, and in the streams of the state:\n"
            "             everything but the state is held at its value for a token\n"
            "weights      factors of connections that depend on the data, and their fixed part\n"
            "inputs       cosines of what sublayers read, before their norms\n"
            "activations  what an activation function makes for a product with weights, behind its gate\n"
            "states       singular values of the state behind each sublayer, all streams, not centred\n"
            "lens         what the model from the last state on makes of earlier states\n"
            "All but --stats and --growth compute the model on the text, so they take as long as training on as many "
            "tokens:\n"
            "a fifth of a second for two million weights; more --tokens give steadier numbers, one --what takes less.\n"
            "With --growth and several operands the first is the checkpoint before a growth step. Of three and\n"
            "more the second is the grown model right after the step: R is measured from there.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof *flags,
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = -1,
    .run = run};
