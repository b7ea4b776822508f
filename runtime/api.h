/* api.h - what the files of the public functions share. */
#ifndef VWN_API_H
#define VWN_API_H

#include "runtime/vwn.h"
#include "compiler/base/base.h"

/* Runs a body with a landing place for ctx_raise; scratch memory that it took is free again afterwards. */
vwn_status api_run(vwn_context *context, Status (*body)(void *user), void *user);

#endif
