/* cli.h - a verb is a row of data (name, flags, examples) and one function.
 *
 * In:  the command line.   Out: an exit status.
 * The one idea: help, parsing and suggestions all come from the same tables, so what is not
 * there cannot be advertised, and what is there cannot be ignored.
 */
#ifndef VWN_CLI_H
#define VWN_CLI_H

#include <pthread.h>
#include <signal.h>
#include <stdint.h>

#include "ui.h"

typedef struct Flag {
    const char *name;  /* "--until" */
    const char *value; /* "'1000 steps'" in help; NULL: a switch */
    const char *help;
} Flag;

/* Common flags that not every verb has; and whether all behind the first operand is another command's. */
enum { TAKES_SET = 1, TAKES_JSON = 2, TAKES_THREADS = 4, TAKES_DEVICE = 8, TAKES_REST = 16 };

typedef struct Call Call;
typedef struct Verb {
    const char *name, *operands, *summary;
    const char *example[2][2]; /* command line, what it does */
    const char *text;          /* further lines of help, or NULL */
    const Flag *flag;
    int n_flags;
    int takes;       /* TAKES_... */
    int least, most; /* operands; most < 0: any number */
    int (*run)(Call *call);
} Verb;

struct Call {
    const Verb *verb;
    Ui ui;
    const char **operand;
    int n_operands;
    struct {
        const Flag *flag;
        const char *value;
    } * given;
    int n_given;
    bool json, verbose;
    const char *resume, *folder; /* for the files of this call: see vwn_file_options */
    vwn_context *ctx;
    char **owned; /* operands that are made of others: nano is runs/nano */
    char *input;  /* what was read from "-" */
    size_t input_size;
    bool input_read;
    sigset_t signals; /* those that `watcher` waits for */
    pthread_t watcher;
    bool watching;
    volatile sig_atomic_t stop_watching;
    _Atomic int64_t step_began, step_took; /* milliseconds, for `watcher`; 0: not known */
    int spoken;                            /* where messages went before call_join() made them silent; 0: it has not */
};

/* ---- launch.c ---- */
/* A variable that processes have which are started again: they go on with `--resume`, even if the first had made no run yet. */
#define LAUNCH_RESTARTED "VWN_RESTARTED"
/* Starts n processes of vwn with these words and waits for them: a status as that of the program. `silent`: their results go nowhere. */
int call_launch(Call *call, int64_t n, char **argv, bool silent);

/* ---- main.c: all verbs, in the order of the help ---- */
const Verb *const *all_verbs(int *n);
extern const Verb verb_new, verb_check, verb_fmt, verb_params, verb_cost, verb_ir, verb_emit, verb_grow, verb_train,
    verb_resume, verb_launch, verb_tokenize, verb_sweep, verb_runs, verb_watch, verb_eval, verb_sample, verb_serve,
    verb_inspect, verb_compare, verb_report, verb_diff, verb_plot, verb_graph, verb_export, verb_export_log, verb_bench,
    verb_resolve, verb_explain, verb_doc, verb_doctor, verb_lsp, verb_completions;

/* ---- args.c ---- */
/* Reads argv behind the verb. False: the sentence is in `why` and the use is wrong. */
bool call_parse(Call *call, int argc, char **argv, char why[512]);
const char *call_flag(const Call *call, const char *name); /* last value, "" for a switch, or NULL */
/* All values of a flag that may be repeated; the caller frees the array. */
const char **call_flags(const Call *call, const char *name, size_t *n);
/* A whole or real number in lo..hi; false after an error message. Unset: *out is left alone. */
bool call_whole(Call *call, const char *name, int64_t lo, int64_t hi, int64_t *out);
bool call_real(Call *call, const char *name, double lo, double hi, double *out);
/* "1000 steps", "8 seqs": a number with one of the unit's two forms. */
bool call_quantity(Call *call, const char *name, const char *unit, int64_t *out);
/* Index of the value in a NULL-terminated list of words; -1 after an error message. */
int call_choice(Call *call, const char *name, const char *const *words, int unset);
const char *nearest_word(const char *word, const char *const *words, int n); /* or NULL */
extern const Flag common_flags[];
bool verb_has(const Verb *verb, const Flag *flag);
extern const int n_common_flags;

/* ---- meant.c ---- */
/* Operands that name a run: `nano`, where no run is, is runs/nano, where one is. */
void runs_by_name(Call *call);
bool is_run_folder(const char *path); /* whether a run or a sweep is in it */
/* argv[i] cannot stand there, and is a setting that was typed as something else: the sentence is in `why`. */
bool setting_typed_otherwise(Call *call, int argc, char **argv, int i, char why[512]);

/* ---- main.c ---- */
int usage_error(Call *call, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Opens call->ctx as the flags and the environment say; false: the exit status is in *status.
 */
bool call_open(Call *call, int *status);
void call_close(Call *call);
/* Joins the processes that a launcher has started with this one. All but the first are silent from then on, unless it is that one
 * which fails. */
bool call_join(Call *call, int *status);
/* Fills the options of vwn_check for operand i, with --set; "-" is read from stdin. */
bool call_file(Call *call, int i, vwn_file_options *file, int *status);
void call_file_done(vwn_file_options *file);
/* Checks operand `i`, prints diagnostics; true when a report can be made of the unit. */
bool call_unit(Call *call, int i, vwn_unit **unit, int *status);
/* Diagnostics to stderr (to stdout as JSON when `to_stdout`). Returns errors. */
size_t call_diagnostics(Call *call, bool to_stdout, size_t *warnings);
/* Says why something failed, if a diagnostic has not; returns the status as exit code. */
int call_failed(Call *call, vwn_status status);
/* `--run NAME` is runs/NAME; with a slash it is a path. *out: NULL without the flag. False: the name is no name. */
bool run_folder(Call *call, char folder[4096], const char **out);
/* A JSON string with its quotes, to stdout. */
void put_json_string(Ui *ui, const char *s, size_t n);
/* "-": stdin. NULL, or why it cannot be read. */
const char *read_whole_file(const char *path, Text *out);

/* Writes a new content beside the file and renames it; keeps the mode of one that was there. False: errno says why.
 */
bool replace_file(const char *path, const char *text, size_t n);
/* So, says so, and gives the text back; false after an error message. */
bool save_text(Call *call, const char *path, Text *text);
bool ends_with(const char *s, const char *end);
/* Which of these endings, ".svg" ..., a name has behind other letters; -1: none. */
int file_ending(const char *name, const char *const *ends);
bool is_folder(const char *path);

/* ---- bug.c ---- */
/* From now on a crash ends with a report and exit status 70. To be called once the flags are known. */
void bug_watch(const Call *call);
/* Says that vwn broke an invariant of its own, and saves a report. */
void bug_report(Call *call, const char *message);

/* ---- interrupt.c ---- */
/* From now on SIGINT, SIGTERM and SIGHUP ask call->ctx to stop; the second one exits at once,
 * unless a terminal closed. To be called before the library starts threads. */
void interrupt_start(Call *call);
void interrupt_stop(Call *call);
/* Training is here now, `steps` behind the last time, which may be none: what the first signal says of how long a step takes. */
void interrupt_steps(Call *call, int64_t steps);

/* ---- manual.c ---- */
/* vwn(1) in the macros of man(7), made of the verbs and their flags. */
void write_manual(Ui *ui);

/* ---- diff.c ---- */
/* A unified diff of two texts, three lines of context. */
void write_diff(const vwn_writer *out, const char *name, const Text *before, const Text *after);

#endif
