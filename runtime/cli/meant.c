/* meant.c - what words of a command line mean: settings that were typed as something else, as `--set D 256`, `lr=1e-3` and `--lr 1e-3`
 * are; runs by their name.
 *
 * In:  a command line.   Out: the sentence with the flag that was meant; operands that are paths.
 * The one idea: a name and a value beside each other, and a file: the file says which path the name is nearest to.
 */
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+-/%";

static bool is_path(const char *word, size_t n)
{
    bool first = n && ((word[0] >= 'a' && word[0] <= 'z') || (word[0] >= 'A' && word[0] <= 'Z') || word[0] == '_');
    for (size_t i = 0; i < n && first; i++)
        first = strchr("[]*\"", word[i]) || (word[i] != '-' && strchr(plain, word[i]));
    return first;
}

static bool is_file(const char *word) { return ends_with(word, ".vwn") && access(word, R_OK) == 0; }

/* "--set train.seed=1", quoted where a shell would read more into it. */
static void put_flag(char *out, size_t size, bool vary, const char *path, const char *value)
{
    char text[256];
    snprintf(text, sizeof text, "%s=%s", path, value);
    const char *quote = text[strspn(text, plain)] ? strchr(text, '\'') ? "\"" : "'" : "";
    snprintf(out, size, "--%s %s%s%s", vary ? "vary" : "set", quote, text, quote);
}

/* False: the file has nothing of that name. */
static bool say(Call *call, const char *file, const char *name, const char *value, const char *typed, bool vary,
                char why[512])
{
    char flag[300] = "", first[300] = "";
    const char *inner = NULL, *path = NULL;
    vwn_options options = {.device = "cpu"};
    vwn_context *ctx = file ? vwn_open(&options) : NULL;
    if (ctx)
        path = vwn_setting_meant(ctx, &(vwn_file_options){.path = file}, name, &inner);
    if (path && strlen(name) == 1 && strcmp(path, name))
        path = NULL; /* a letter is near to any other */
    bool found = path || !file;
    vary |= !strcmp(call->verb->name, "sweep") && (strchr(value, ',') || !strncmp(value, "range(", 6));
    bool numbers = value[strspn(value, "0123456789.eE+-_,")] == '\0';
    if (inner && numbers) /* they take the place of an argument rather than that of the call */
        put_flag(first, sizeof first, vary, inner, value);
    put_flag(flag, sizeof flag, vary, path ? path : name, value);
    vwn_close(ctx);
    if (!found)
        return false;
    int n = snprintf(why, 512, "%.120s: did you mean `%.150s`", typed, *first ? first : flag);
    if (*first)
        snprintf(why + n, 512 - (size_t)n, ", or `%.150s`", flag);
    strcat(why, "?");
    return true;
}

/* What the words name: a file, or a run, whose settings stand in its resolved.vwn. False: neither. */
static bool file_named(char **argv, int argc, char path[4200])
{
    static const char *const around[][2] = {{"", ""}, {"", "/resolved.vwn"}, {"runs/", "/resolved.vwn"}};
    for (size_t f = 0; f < sizeof around / sizeof around[0]; f++)
        for (int k = 0; k < argc; k++) {
            snprintf(path, 4200, "%s%.4000s%s", around[f][0], argv[k], around[f][1]);
            if (argv[k][0] != '-' && is_file(path))
                return true;
        }
    return false;
}

/* The words behind argv[i], until one is a flag or a file. */
static const char *value_behind(int argc, char **argv, int i)
{
    bool sign = i + 1 < argc && !strcmp(argv[i + 1], "=");
    i += sign ? 2 : 1;
    bool flag = i < argc && argv[i][0] == '-' && (argv[i][1] < '0' || argv[i][1] > '9') && argv[i][1] != '.';
    return i < argc && !flag && !is_file(argv[i]) ? argv[i] : NULL;
}

bool setting_typed_otherwise(Call *call, int argc, char **argv, int i, char why[512])
{
    const char *word = argv[i], *value = NULL;
    char name[128], typed[128], path[4200];
    const char *file = file_named(argv, argc, path) ? path : NULL;
    bool vary = !strcmp(word, "--vary"), set = vary || !strcmp(word, "--set"), dashes = word[0] == '-' && !set;
    if (!(call->verb->takes & TAKES_SET) || (set && ++i >= argc))
        return false;
    word = argv[i] + (dashes ? strspn(word, "-") : set ? 0 : strspn(argv[i], "+"));
    const char *equals = strchr(word, '=');
    size_t n = equals ? (size_t)(equals - word) : strlen(word);
    while (equals && n && word[n - 1] == ' ')
        n--;
    if (n >= sizeof name || !is_path(word, n) || (set && equals && equals[1]) ||
        (!dashes && !set && (!equals || access(word, F_OK) == 0)))
        return false;
    value = equals && equals[1] ? equals + 1 + strspn(equals + 1, " ") : value_behind(argc, argv, i);
    snprintf(name, sizeof name, "%.*s", (int)n, word);
    if (!value || !*value || (!dashes && !set && !file))
        return false;
    if (set)
        snprintf(typed, sizeof typed, "`%s %.60s` lacks %s", vary ? "--vary" : "--set", word,
                 equals ? "a value" : "`=` and a value");
    else
        snprintf(typed, sizeof typed, dashes ? "`vwn %s` has no flag `%.60s`" : "`vwn %s` has no use for `%.60s`",
                 call->verb->name, dashes ? argv[i] : word);
    return say(call, file, name, value, typed, vary, why);
}

/* ---- runs ---- */

static bool holds_run(const char *folder, size_t n, const char *before)
{
    static const char *const files[] = {"events.jsonl", "ckpt", "sweep.json"};
    char path[4400];
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(path, sizeof path, "%s%.*s/%s", before, (int)n, folder, files[i]);
        if (access(path, F_OK) == 0)
            return true;
    }
    return false;
}

bool is_run_folder(const char *path) { return holds_run(path, strlen(path), ""); }

/* Whether a word of n letters is the name of a run, or of a point of a sweep, below runs/ and no path that is there. */
static bool names_run(const char *word, size_t n, bool waits)
{
    char path[4096];
    if (!n || n >= sizeof path || word[0] == '/' || word[0] == '.' || strcspn(word, "=,") < n)
        return false;
    snprintf(path, sizeof path, "%.*s", (int)n, word);
    bool there = access(path, F_OK) == 0, here = holds_run(word, n, "") || (there && !is_folder(path));
    return !here && (holds_run(word, n, "runs/") || (waits && !there && !strchr(path, '/')));
}

/* The operand with runs/ in front of each name of a run in it: it is RUN, RUN@STEP or, behind a label, NAME=RUN,RUN. NULL: there is
 * none. The caller frees it. */
static char *with_folders(const char *operand, bool labels, bool waits)
{
    const char *equals = labels ? strchr(operand, '=') : NULL, *word = equals ? equals + 1 : operand;
    size_t parts = 1, n = (size_t)(word - operand);
    for (const char *c = word; *c && equals; c++) /* a path alone may have commas */
        parts += *c == ',';
    char *out = malloc(strlen(operand) + parts * strlen("runs/") + 1);
    bool found = false;
    if (!out)
        return NULL;
    memcpy(out, operand, n);
    while (parts--) {
        size_t length = equals ? strcspn(word, ",") : strlen(word), name = length;
        for (size_t i = 1; i < length; i++)
            name = word[i] == '@' ? i : name;
        bool named = names_run(word, name, waits);
        found |= named;
        n += (size_t)sprintf(out + n, "%s%.*s%s", named ? "runs/" : "", (int)length, word, parts ? "," : "");
        word += length + (parts > 0);
    }
    if (found)
        return out;
    free(out);
    return NULL;
}

void runs_by_name(Call *call)
{
    bool waits = !strcmp(call->verb->name, "watch"), files = !strcmp(call->verb->name, "diff"),
         lists = !strcmp(call->verb->name, "runs");
    if (!files && !strstr(call->verb->operands, "RUN"))
        return;
    bool all = files || ends_with(call->verb->operands, "..."); /* else the first alone: what follows is no run */
    call->owned = calloc((size_t)call->n_operands + 1, sizeof *call->owned);
    bool changes = lists && call->n_operands > 1; /* `runs rm`, `tag` and `note`: the first word is the change */
    for (int i = changes; call->owned && i < call->n_operands && (all || i < 1); i++) {
        call->owned[i] = with_folders(call->operand[i], strstr(call->verb->operands, "=RUN") != NULL, waits);
        if (call->owned[i])
            call->operand[i] = call->owned[i];
    }
}
