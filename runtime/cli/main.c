/* main.c - the program `vwn`: finds the verb, prints help, opens the library, maps statuses.
 *
 * In:  argv, a few environment variables that never change a model (VWN_COLOR, VWN_THREADS,
 *      VWN_CACHE, VWN_COMPILE_SECONDS).   Out: the exit status of the verb.
 * The one idea: everything that verbs share stands here or in args.c and ui.c; a verb's own
 * file holds only what is special about it.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const Verb *const verbs[] = {
    &verb_new,      &verb_check, &verb_fmt,    &verb_params, &verb_cost,       &verb_ir,      &verb_emit,
    &verb_tokenize, &verb_grow,  &verb_train,  &verb_resume, &verb_launch,     &verb_sweep,   &verb_runs,
    &verb_watch,    &verb_eval,  &verb_sample, &verb_serve,  &verb_inspect,    &verb_compare, &verb_report,
    &verb_diff,     &verb_plot,  &verb_graph,  &verb_export, &verb_export_log, &verb_bench,   &verb_resolve,
    &verb_explain,  &verb_doc,   &verb_doctor, &verb_lsp,    &verb_completions};
enum { N_VERBS = sizeof verbs / sizeof verbs[0], MOST_THREADS = 4096, MOST_SECONDS = 1000000 };

const Verb *const *all_verbs(int *n)
{
    *n = N_VERBS;
    return verbs;
}

/* ---- help ---- */
static void print_flag(Ui *ui, const Flag *flag)
{
    char left[128];
    snprintf(left, sizeof left, "%s%s%s", flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
    if (strlen(left) > 26)
        ui_print(ui, "  %s\n  %-26s  %s\n", left, "", flag->help);
    else
        ui_print(ui, "  %-26s  %s\n", left, flag->help);
}

static void print_verb_help(Ui *ui, const Verb *verb)
{
    for (int i = 0; i < 2; i++)
        ui_print(ui, "  %-52s  # %s\n", verb->example[i][0], verb->example[i][1]);
    ui_print(ui, "\nvwn %s%s%s [flags]\n%s.\n", verb->name, *verb->operands ? " " : "", verb->operands, verb->summary);
    if (verb->text)
        ui_print(ui, "%s", verb->text);
    ui_print(ui, "\nFlags:\n");
    for (int i = 0; i < verb->n_flags; i++)
        print_flag(ui, &verb->flag[i]);
    for (int i = 0; i < n_common_flags; i++)
        if (verb_has(verb, &common_flags[i]))
            print_flag(ui, &common_flags[i]);
}

static void print_help(Ui *ui)
{
    ui_print(ui, "vwn %s: compiles and trains transformers described in .vwn files\n\n", vwn_version());
    for (int i = 0; i < N_VERBS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", verbs[i]->name, verbs[i]->operands);
        ui_print(ui, "  vwn %-18s  %s\n", left, verbs[i]->summary);
    }
    ui_print(ui, "\n  vwn VERB --help        examples and flags of a verb, as vwn help VERB\n"
                 "  vwn --version          version and build id\n\n"
                 "Start with: vwn new first && vwn train first/model.vwn\n");
}

/* ---- what verbs share ---- */
int usage_error(Call *call, const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    ui_error(&call->ui, "%s", text);
    return VWN_USAGE;
}

/* The whole number of an environment variable; false after an error message. Unset or empty: *out is
 * left alone. */
static bool wanted_number(Call *call, const char *name, int64_t most, int64_t *out)
{
    const char *wanted = getenv(name);
    char *end;
    if (!wanted || !*wanted)
        return true;
    errno = 0;
    long n = strtol(wanted, &end, 10);
    if (*end || errno || n < 1 || n > most) {
        usage_error(call, "%s is `%s`; it must be a whole number from 1 to %lld", name, wanted, (long long)most);
        return false;
    }
    *out = n;
    return true;
}

/* On a terminal it goes when they are there; of a sweep it stays elsewhere, as its first point may be minutes away. */
static void on_compiling(void *user, size_t kernels)
{
    Call *call = user;
    const char *s = kernels == 1 ? "" : "s";
    if (!kernels)
        ui_wait_end(&call->ui);
    else if (call->ui.live || call->verb != &verb_sweep)
        ui_wait(&call->ui, "Compiling", "%zu kernel%s", kernels, s);
    else
        ui_say(&call->ui, "Compiling", "%zu kernel%s", kernels, s);
}

/* Training says where it is; what reads a run mentions the processor only where there is a GPU. */
static void on_chosen(void *user, const char *sentence, bool plain)
{
    Call *call = user;
    bool trains = call->verb == &verb_train || call->verb == &verb_resume;
    if (call->json && trains) {
        ui_print(&call->ui, "{\"v\":1,\"event\":\"device\",\"text\":");
        put_json_string(&call->ui, sentence, strlen(sentence));
        ui_print(&call->ui, "}\n");
    } else if (!plain || call->verbose || trains || call->verb == &verb_sweep)
        ui_say(&call->ui, "Device", "%s", sentence);
}

/* cuda:N is any of them; the library says what is there. */
static bool device_is_known(Call *call, const char *device)
{
    static const char *const words[] = {"auto", "cpu", "cuda", "cuda:0", "reference", NULL};
    size_t digits = strncmp(device, "cuda:", 5) == 0 ? strspn(device + 5, "0123456789") : 0;
    return (digits && digits <= 4 && !device[5 + digits]) || call_choice(call, "--device", words, 0) >= 0;
}

bool call_open(Call *call, int *status)
{
    int64_t threads = 0, seconds = 0;
    const char *cache = getenv("VWN_CACHE");
    *status = VWN_USAGE;
    if (!call_whole(call, "--threads", 1, MOST_THREADS, &threads) ||
        (!threads && !wanted_number(call, "VWN_THREADS", MOST_THREADS, &threads)) ||
        !wanted_number(call, "VWN_COMPILE_SECONDS", MOST_SECONDS, &seconds))
        return false;
    const char *device = call_flag(call, "--device");
    if (device && !device_is_known(call, device))
        return false;
    vwn_options options = {.threads = (int)threads,
                           .cache_dir = cache,
                           .compile_seconds = (int)seconds,
                           .device = device                             ? device
                                     : call->verb->takes & TAKES_DEVICE ? "auto"
                                                                        : "cpu",
                           .chosen = on_chosen,
                           .chosen_user = call,
                           .compiling = on_compiling,
                           .compiling_user = call};
    call->ctx = vwn_open(&options);
    *status = call->ctx ? VWN_OK : VWN_ENVIRONMENT;
    if (call->ctx)
        return true;
    ui_error(&call->ui, "out of memory");
    return false;
}

bool call_join(Call *call, int *status)
{
    int rank, size;
    vwn_status st = vwn_join(call->ctx, &rank, &size);
    *status = call_failed(call, st);
    int nowhere = st == VWN_OK && rank ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
    if (nowhere < 0)
        return st == VWN_OK;
    call->spoken = fcntl(2, F_DUPFD_CLOEXEC, 3);
    dup2(nowhere, 1);
    dup2(nowhere, 2);
    close(nowhere);
    return true;
}

void call_close(Call *call)
{
    call->ui.running = NULL;
    interrupt_stop(call);
    vwn_close(call->ctx);
    call->ctx = NULL;
}

/* A regular file, since a pipe without another end would wait for ever. */
static FILE *open_regular(const char *path, const char **why)
{
    struct stat st;
    int fd = -1;
    *why = NULL;
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
        *why = "it is not a regular file";
    else
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "rb");
    if (!f && !*why)
        *why = strerror(errno);
    if (!f && fd >= 0)
        close(fd);
    return f;
}

const char *read_whole_file(const char *path, Text *out)
{
    enum { MOST = 64 << 20 };
    bool standard = strcmp(path, "-") == 0;
    const char *why = NULL;
    FILE *f = standard ? stdin : open_regular(path, &why);
    if (!f)
        return why;
    char part[16384];
    size_t n;
    text_put(out, "", 0);
    while (!out->failed && out->n < MOST && (n = fread(part, 1, sizeof part, f)) > 0)
        text_put(out, part, n);
    why = out->failed      ? strerror(ENOMEM)
          : ferror(f)      ? strerror(errno)
          : out->n >= MOST ? "it has more than 64 MiB"
                           : NULL;
    if (!standard)
        fclose(f);
    return why;
}

bool call_file(Call *call, int i, vwn_file_options *file, int *status)
{
    *file = (vwn_file_options){.path = call->operand[i]};
    file->set = call_flags(call, "--set", &file->n_set);
    file->resume = call->resume;
    file->folder = call->folder;
    if (strcmp(file->path, "-") != 0)
        return true;
    if (!call->input_read) {
        Text text = {0};
        const char *why = read_whole_file("-", &text);
        if (why) {
            ui_error(&call->ui, "cannot read the standard input: %s", why);
            *status = VWN_ENVIRONMENT;
            text_free(&text);
            call_file_done(file);
            return false;
        }
        call->input = text.s;
        call->input_size = text.n;
        call->input_read = true;
    }
    file->text = call->input;
    file->text_length = call->input_size;
    return true;
}

void call_file_done(vwn_file_options *file)
{
    free((void *)file->set);
    free((void *)file->deny);
}

size_t call_diagnostics(Call *call, bool to_stdout, size_t *warnings)
{
    vwn_writer out = to_stdout ? ui_stdout(&call->ui) : ui_stderr(&call->ui);
    size_t unused;
    return vwn_diagnostics(call->ctx, &out, call->json, call->ui.color_err, warnings ? warnings : &unused);
}

int call_failed(Call *call, vwn_status status)
{
    const char *message = call->ctx ? vwn_message(call->ctx) : "";
    if (call->spoken > 0 && status != VWN_OK && *message)
        dup2(call->spoken, 2);
    if (status == VWN_BUG)
        bug_report(call, message);
    else if (status == VWN_INTERRUPTED && *message)
        ui_say(&call->ui, "Stopped", "%s", message);
    else if (status != VWN_OK && *message)
        ui_error(&call->ui, "%s", message);
    if (call->ctx && *vwn_warning(call->ctx))
        ui_warning(&call->ui, "%s", vwn_warning(call->ctx));
    return (int)status;
}

/* A run where a file is wanted: said, with the file that it keeps. */
static bool file_is_run(Call *call, const char *path)
{
    char run[4096];
    snprintf(run, sizeof run, "%s%.4000s", is_run_folder(path) ? "" : "runs/", path);
    if (ends_with(path, ".vwn") || !is_run_folder(run))
        return false;
    usage_error(call, "`%s` is a run and no file: what it was trained from is in it, `vwn %s %s/resolved.vwn`", path,
                call->verb->name, run);
    return true;
}

bool call_unit(Call *call, int i, vwn_unit **unit, int *status)
{
    vwn_file_options file;
    if (!call_file(call, i, &file, status))
        return false;
    if (!call->folder && file_is_run(call, file.path)) {
        call_file_done(&file);
        *status = VWN_USAGE;
        return false;
    }
    vwn_status st = vwn_check(call->ctx, &file, unit);
    call_file_done(&file);
    call_diagnostics(call, false, NULL);
    *status = call_failed(call, st);
    return st == VWN_OK || st == VWN_CHECK;
}

bool run_folder(Call *call, char folder[4096], const char **out)
{
    const char *name = call_flag(call, "--run");
    *out = NULL;
    if (!name)
        return true;
    if (!*name || strlen(name) > 4000) {
        usage_error(call, "`--run` needs a name or a path");
        return false;
    }
    snprintf(folder, 4096, "%s%s", strchr(name, '/') ? "" : "runs/", name);
    *out = folder;
    return true;
}

void put_json_string(Ui *ui, const char *s, size_t n)
{
    ui_put(ui, "\"", 1);
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if (c == '"' || c == '\\')
            ui_print(ui, "\\%c", c);
        else if (c == '\n')
            ui_put(ui, "\\n", 2);
        else if (c < 0x20 || c == 0x7f)
            ui_print(ui, "\\u%04x", c);
        else
            ui_put(ui, s + i, 1);
    }
    ui_put(ui, "\"", 1);
}

/* ---- the verb ---- */
static int run_verb(Call *call, int argc, char **argv)
{
    char why[512];
    static const char *const colors[] = {"auto", "always", "never", NULL};
    call->operand = calloc((size_t)argc + 1, sizeof *call->operand);
    call->given = calloc((size_t)argc + 1, sizeof *call->given);
    ui_init(&call->ui, COLOR_AUTO, false);
    if (!call->operand || !call->given) {
        ui_error(&call->ui, "out of memory");
        return VWN_ENVIRONMENT;
    }
    bool fine = call_parse(call, argc, argv, why);
    int color = call_choice(call, "--color", colors, -2);
    if (color == -1)
        return VWN_USAGE;
    const char *habit = getenv("VWN_COLOR");
    for (int i = 0; color == -2 && habit && colors[i]; i++)
        if (strcmp(habit, colors[i]) == 0)
            color = i;
    if (color == -2 && habit && *habit)
        return usage_error(call, "VWN_COLOR is `%s`; it must be auto, always or never", habit);
    ui_init(&call->ui, color < 0 ? COLOR_AUTO : (ColorChoice)color, call_flag(call, "-q") != NULL);
    if (!fine)
        return usage_error(call, "%s%s%s%s", why, strchr(why, '?') ? "" : "; see `vwn ",
                           strchr(why, '?') ? "" : call->verb->name, strchr(why, '?') ? "" : " --help`");
    if (call_flag(call, "--help")) {
        print_verb_help(&call->ui, call->verb);
        return VWN_OK;
    }
    const char *folder = call_flag(call, "-C");
    if (folder && chdir(folder) != 0)
        return usage_error(call, "`-C %s`: %s", folder, strerror(errno));
    bug_watch(call);
    double began = ui_seconds();
    int status = call->verb->run(call);
    if (call->verbose)
        ui_say(&call->ui, "Elapsed", "%.3f s, %.3f s of processor time", ui_seconds() - began,
               (double)clock() / CLOCKS_PER_SEC);
    return status;
}

static const Verb *find_verb(const char *name)
{
    for (int i = 0; i < N_VERBS; i++)
        if (strcmp(name, verbs[i]->name) == 0)
            return verbs[i];
    return NULL;
}

/* Whether some verb has a flag of this name. */
static bool flag_of_verbs(const char *word)
{
    for (int i = 0; i < n_common_flags; i++)
        if (!strcmp(common_flags[i].name, word))
            return true;
    for (int v = 0; v < N_VERBS; v++)
        for (int i = 0; i < verbs[v]->n_flags; i++)
            if (!strcmp(verbs[v]->flag[i].name, word))
                return true;
    return false;
}

static int unknown_verb(Ui *ui, const char *word)
{
    const char *names[N_VERBS + 1];
    for (int i = 0; i < N_VERBS; i++)
        names[i] = verbs[i]->name;
    const char *near = NULL, *text;
    bool known = word[0] != '-' && vwn_other_name(word, 0, &near, &text);
    if (!known && word[0] != '-')
        near = nearest_word(word, names, N_VERBS);
    if (ends_with(word, ".vwn"))
        ui_error(ui, "no verb in front of `%s`: `vwn check %s` checks it, `vwn train %s` trains it", word, word, word);
    else if (near)
        ui_error(ui, "no verb `%s`; did you mean `%s`?", word, near);
    else if (word[0] == '-' && flag_of_verbs(word))
        ui_error(ui, "flags stand behind the verb: `vwn VERB ... %s`", word);
    else
        ui_error(ui, "no %s `%s`; see `vwn --help`", word[0] == '-' ? "flag" : "verb", word);
    return VWN_USAGE;
}

/* The standard streams must exist: a file opened later would otherwise take their numbers. */
static void open_missing_streams(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", O_RDWR) < 0)
            _exit(VWN_ENVIRONMENT);
}

int main(int argc, char **argv)
{
    open_missing_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a failed write, see ui_put and ui_finish */
    signal(SIGXFSZ, SIG_IGN); /* so is a file that `ulimit -f` cuts */
    Call call = {0};
    ui_init(&call.ui, COLOR_AUTO, false);
    int status = VWN_OK;
    const char *word = argc < 2 ? "help" : argv[1];
    bool help = !strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h");
    const Verb *about = help && argc > 2 ? find_verb(argv[2]) : NULL;
    if (help && argc > 2 && !about) {
        status = unknown_verb(&call.ui, argv[2]);
    } else if (about) {
        print_verb_help(&call.ui, about);
    } else if (help) {
        print_help(&call.ui);
    } else if (!strcmp(word, "--version")) {
        ui_print(&call.ui, "vwn %s (%s)\n", vwn_version(), vwn_build_id());
    } else {
        call.verb = find_verb(word);
        status = call.verb ? run_verb(&call, argc - 2, argv + 2) : unknown_verb(&call.ui, word);
    }
    interrupt_stop(&call);
    status = ui_finish(&call.ui, status);
    vwn_close(call.ctx);
    for (int i = 0; call.owned && i < call.n_operands; i++)
        free(call.owned[i]);
    free(call.owned);
    free(call.operand);
    free(call.given);
    free(call.input);
    return status;
}
