/* backends.h - backends by their rows in runtime/base/backends.def.
 *
 * In:  a row, options.   Out: an open backend, or why there is none.
 * The one idea: whoever opens one says which row, and knows none by name.
 */
#ifndef VWN_BACKENDS_H
#define VWN_BACKENDS_H

#include "runtime/base/backend.h"

/* ST_ENVIRONMENT with `why`, which says what to do about it, when it cannot be used. Raises when there is no memory. */
Status backend_open(BackendId id, Ctx *ctx, const BackendOptions *how, Backend **out, char why[512]);
BackendAbsence backend_absence(BackendId id); /* of one that could not be opened */
void backend_describe(Ctx *ctx, const BackendOptions *how,
                      Buf *out); /* what `vwn doctor` shows of all, "key: value" lines */

#endif
