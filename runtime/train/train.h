/* train.h - the work behind vwn_train, vwn_prepare, vwn_grow and vwn_eval.
 *
 * In:  a checked file, or a run.   Out: a trained, prepared or grown run; what it says of held-out data. Each raises.
 */
#ifndef VWN_TRAIN_H
#define VWN_TRAIN_H

#include "runtime/exec/session.h"

Status train_unit(vwn_context *owner, Unit *unit, const vwn_train_options *how, const Hooks *hooks);
Status prepare_files(vwn_context *owner, const vwn_prepare_options *how, const Hooks *hooks);
Status grow_unit(vwn_context *owner, Unit *unit, const vwn_grow_options *how, const vwn_writer *out,
                 const Hooks *hooks);
Status grow_apply(vwn_context *owner, Unit *unit, const vwn_grow_options *how, const Hooks *hooks); /* train.c */
Status eval_source(vwn_context *owner, const vwn_eval_options *how, const vwn_writer *out, const Hooks *hooks);

#endif
