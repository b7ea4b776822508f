/* record.h - what a run remembers of its starts: record.jsonl, an object a line.
 *
 * In:  how a run is started, or its directory.   Out: a line more, or all of them.
 * The one idea: it lies beside the checkpoints and in none of them, so that they are the same wherever and whenever a run is
 * trained.
 */
#ifndef VWN_RECORD_H
#define VWN_RECORD_H

#include "run_dir.h"
#include "runtime/base/machine.h"

/* What is asked before the kernels are there, and known behind them; given back with the session. */
typedef struct StartRecord StartRecord;
StartRecord *record_begin(Session *s);
/* Adds the line of a start at `step`, on data with this fingerprint, to those that are there. Raises as run_write_file(). */
void record_write(Session *s, RunDir *r, StartRecord *record, const Hooks *hooks, const Unit *unit, const char *data,
                  int64_t step);

/* The lines of a run, in order; damaged ones are left out. */
typedef struct RecordLine {
    const Json *json; /* its strings are text for people */
    const char *line; /* as it was written */
} RecordLine;
typedef VEC(RecordLine) Records;
Records records_read(Session *s, const char *run);

/* The file of the newest start, from the folder where it began. NULL: no record names one. */
const char *record_file(Session *s, const char *run);

/* Which of the files that a unit was read from, those of the library aside, the newest start did not read as they are: "a.vwn and
 * b.vwn"; "": none, NULL: that is not recorded. */
const char *record_changed(Session *s, const char *run, const Unit *unit);

/* What somebody has said of a run or a sweep: tags, and a note. */
typedef struct Labels {
    Words tag;
    const char *note; /* "": none */
} Labels;
Labels labels_read(Session *s, const char *folder);
/* In place of what was said; nothing at all removes the file. Raises ST_ENVIRONMENT. */
void labels_write(Session *s, const char *folder, const Labels *labels);

#endif
