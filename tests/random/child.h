/* child.h - the process that a file is run in: what its stages share.
 *
 * In:  a Child.   Out: failed() ends the process with a sentence; all else is a call of vwn.h whose status and
 * diagnostics are looked at.
 */
#ifndef RANDOM_CHILD_H
#define RANDOM_CHILD_H

#include "stages.h"

#include "compiler/model/model.h"
#include "runtime/exec/session.h"

typedef struct Child {
    const StageOptions *how;
    Report *r;
    Ctx *text; /* owns texts of this process */
    vwn_context *v;
    vwn_unit *unit;
    bool small; /* enough to be computed */
} Child;

_Noreturn void failed(Child *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
vwn_writer child_writer(Buf *b);
vwn_context *child_context(Child *c, const char *device);
const char *child_diagnostics(Child *c, vwn_context *v, size_t *errors);
/* An edit has made hundreds of sublayers of a few: what a proof or a plan of them may take has a limit, which is told. */
bool child_is_full(const Child *c, vwn_context *v, vwn_status st);
/* A file says that it is wrong, with at least one error. */
const char *child_expect(Child *c, vwn_context *v, vwn_status st, const char *what);
vwn_status child_check(vwn_context *v, const char *text, vwn_unit **unit);
/* A file of the present folder. */
void child_write(Child *c, const char *name, const char *text);

/* ---- runs.c ---- */
void stage_run(Child *c);
void stage_parts(Child *c);
void stage_foreign(Child *c);
void stage_train(Child *c);
/* ---- vary.c ---- */
void stage_vary(Child *c);
void stage_program(Child *c);
/* ---- foreign.c: weights that a file begins with ---- */
/* weights_N.safetensors, where the text names it, in the present folder: what its words allow to be different is. */
void write_weights(const Model *m, const char *text);
/* A weight of the checkpoint that is none of the file's, or NULL. */
const char *weights_wrong(Ctx *ctx, const Model *m, const char *text, const char *checkpoint);

#endif
