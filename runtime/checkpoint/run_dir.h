/* run_dir.h - the directory of a run: resolved.vwn, grows.vwn, origins.json, record.jsonl, events.jsonl, ckpt/, lock.
 *
 * In:  a path.   Out: an exclusive place to write, and what a run left there before.
 * The one idea: everything in it is either appended line by line or put in place by a rename,
 * so that a process killed at any moment leaves a directory that resumes.
 */
#ifndef VWN_RUN_DIR_H
#define VWN_RUN_DIR_H

#include "compiler/portable/safetensors.h"
#include "runtime/base/json.h"
#include "runtime/exec/session.h"

typedef struct RunDir {
    const char *path, *ckpt; /* "runs/nano", "runs/nano/ckpt" */
    int lock_fd, events_fd;  /* -1 when closed */
    int64_t events_size;
    bool unsynced; /* a file was put in place that may not be on the disk yet */
} RunDir;

typedef struct StepList {
    int64_t *step; /* ascending */
    size_t n;
} StepList;

/* Whether a run has begun there (an event file or a checkpoint). */
bool run_exists(Session *s, const char *path);
/* Raises ST_USAGE where none has. */
void run_want(Session *s, const char *path);
/* What is known of each start of a run, and what somebody has said of it: see record.h. */
#define RECORD_FILE "record.jsonl"
#define LABELS_FILE "labels.json"
/* The text that a run goes on with, where its file is gone: its model as it is now. Where that grows, the file before any step. */
#define RESOLVED_FILE "resolved.vwn"
#define GROWS_FILE    "grows.vwn"
/* Whether a folder holds a sweep, whose runs are folders in it, and the file that says so. */
#define SWEEP_MANIFEST "sweep.json"
bool run_is_sweep(Session *s, const char *path);
/* Whether a process trains there. To ask is to share the lock for a moment; who wants it alone asks again. */
bool run_is_held(Session *s, const char *path);
/* Makes the directory, takes the lock (released with the session), removes half-written files.
 * Raises ST_USAGE when another process has the lock, ST_ENVIRONMENT when it cannot be made. */
RunDir *run_open(Session *s, const char *path);
/* The same for a folder that holds runs: no ckpt/ is made. */
RunDir *run_open_folder(Session *s, const char *path);
/* Removes the files of the run that was there. */
void run_clear(Session *s, RunDir *r);
/* For session_defer(): closes a FILE ** that may be NULL, once. */
void run_close_stream(void *what);
/* Whether its events tell of a checkpoint, which may be there no more. */
bool run_had_checkpoint(Session *s, const char *path);
/* Cuts events.jsonl behind the last line of a run of `step` steps, and opens it. */
void run_begin_events(Session *s, RunDir *r, int64_t step);
/* Appends a line and its newline. False with `why`; then no part of it is in the file. */
bool run_event(RunDir *r, const char *line, size_t n, char why[WHY]);
void run_sync_events(Session *s,
                     const RunDir *r); /* to the disk, for a run that leaves nothing else; raises ST_ENVIRONMENT */
/* Puts path/NAME in place; raises ST_ENVIRONMENT. The disk is waited for by run_sync_files(), which is
 * due before a checkpoint: without one nobody reads these files. */
void run_write_file(Session *s, RunDir *r, const char *name, const char *text, size_t n);
void run_sync_files(Session *s, RunDir *r);
void run_drop_file(Session *s, const RunDir *r, const char *name); /* none is fine; raises ST_ENVIRONMENT */
/* The path of the text that a run keeps of the file that it was trained from. NULL: it keeps none. */
const char *run_kept_file(Session *s, const char *run);

/* A whole file of at most 64 MiB, NUL-terminated, or NULL. */
char *run_read_file(Arena *a, const char *path, size_t *n);

/* Checkpoints by step. `folder` is a run directory; its ckpt/ may be missing. */
StepList run_checkpoints(Session *s, const char *folder);
/* The checkpoint of `step` under another name beside it, before_NAME.safetensors, which no run removes or goes on from. */
void run_keep_checkpoint(Session *s, const RunDir *r, int64_t step, const char *name);
/* The names of those that were kept so; their order is that of the folder. */
typedef struct KeptList {
    const char **name;
    size_t n;
} KeptList;
KeptList run_kept(Session *s, const char *folder);
const char *run_checkpoint_name(Arena *a, int64_t step); /* "step_00001000.safetensors" */
/* The overrides (`PATH=EXPR`, as given with --set) that the run in `path` was started with; none when
 * there is no run or its origins.json cannot be read. */
typedef struct Settings {
    const char **v;
    size_t n;
} Settings;
Settings run_settings(Ctx *ctx, Arena *a, const char *path);
/* The last of the n settings with the path of `like`, or NULL. */
const char *setting_for(const char *const *set, size_t n, const char *like);

/* Removes all but the newest `keep`, 0 or more. */
void run_prune(Session *s, const RunDir *r, int64_t keep);
/* run_remove.c: removes a run or a sweep: the work behind vwn_remove_run. Raises. */
Status run_remove(vwn_context *owner, const char *folder, bool json, const vwn_writer *out);

#endif
