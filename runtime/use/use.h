/* use.h - the work behind vwn_emit, vwn_cubins, vwn_sample and vwn_eval_task.
 *
 * In:  a checked file, or a trained run.   Out: a folder, machine code, a text, numbers. Each raises.
 */
#ifndef VWN_USE_H
#define VWN_USE_H

#include "runtime/exec/session.h"

Status emit_unit(vwn_context *owner, Unit *unit, const vwn_emit_options *how, const vwn_writer *out);
Status cubins_unit(vwn_context *owner, Unit *unit, const vwn_cubin_options *how, const vwn_writer *out);
Status sample_source(vwn_context *owner, const vwn_sample_options *how, const vwn_writer *out, const Hooks *hooks);
Status score_task(vwn_context *owner, const vwn_task_options *how, const vwn_writer *out, const Hooks *hooks);

#endif
