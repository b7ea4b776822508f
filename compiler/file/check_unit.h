/* check_unit.h - a file, checked.
 *
 * In:  a path or a text, settings.   Out: the Unit; diagnostics in the context.
 */
#ifndef VWN_CHECK_UNIT_H
#define VWN_CHECK_UNIT_H

#include "compiler/model/model.h"

/* Which sweep, and what the command line adds to it. */
typedef struct SweepAsk {
    const char *name;        /* NULL: the only one, or one of the file itself when it has none */
    const char *const *vary; /* "PATH=V1,V2", "PATH=range(a, b, n)" */
    size_t n_vary;
    const char *seeds;  /* "1,2,3"; NULL: as the file says */
    const char *until;  /* "500 steps"; NULL: as the file says */
    const char *random; /* "20", "draws(20, seed = 7)"; NULL: as the file says */
} SweepAsk;
typedef struct CheckOptions {
    const char *path; /* "-" reads `text` */
    const char *text; /* with path "-", or to override the file's content; else NULL */
    size_t text_length;
    const char *folder;     /* of a copy that a run keeps: where the file lay, for the paths in it; else NULL */
    const char *const *set; /* "PATH=EXPR" */
    size_t n_set;
    size_t grown;                 /* growth steps that are carried out, of those that the file has: see Unit */
    const struct SweepAsk *sweep; /* a sweep of the file is elaborated and nothing else; its points are not checked */
    bool no_sweeps;               /* `sweep` nodes are passed over */
    bool model_only;              /* skip train, grow, sweep and checks (resume, sample) */
    bool remember;                /* fills Unit.seen */
    /* The text of an imported file in the place of what the disk has; NULL: what the disk has. NULL: of all. */
    const char *(*text_of)(void *user, const char *path, size_t *n);
    /* Is called once, with all that was said of the file, its model and its training, before what takes long: checks, which
     * may read other models, growth steps and sweeps. NULL, or where nothing of that follows: it is not called. */
    void (*so_far)(void *user, Unit *unit);
    void *user;
} CheckOptions;
/* Parses and evaluates a file and everything it imports. Diagnostics are in ctx; the Unit is never
 * NULL, but its parts may be missing when diag_errors(ctx) > 0. False checks file E0801. Raises on
 * limits, memory and bugs (see base.h). An unreadable file is E0106. */
Unit *check_file(Ctx *ctx, const CheckOptions *how);
Name unit_model_name(const Unit *u); /* also where something in the file is wrong; NULL: it has none */
bool unit_has_growth(const Unit *u,
                     const char *name); /* also a step that is not planned, as a check before it is false */
/* The path of a setting that is nearest to a word; NULL: none is near. *inner: that of the first argument of a call there, or NULL. */
const char *setting_meant(const Unit *u, const char *word, const char **inner);

#endif
