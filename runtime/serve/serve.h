/* serve.h - a trained model that answers requests over HTTP; private to runtime/.
 *
 * In:  a run or a checkpoint.   Out: what vwn_serve() does, until it is interrupted.
 */
#ifndef VWN_SERVE_H
#define VWN_SERVE_H

#include "runtime/exec/session.h"

Status serve_source(vwn_context *owner, const vwn_serve_options *how, const vwn_writer *out, const Hooks *hooks);

#endif
