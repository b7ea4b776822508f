/* processes.h - several processes of vwn that one of them starts (launch.c).
 *
 * In:  words of a command.   Out: a status.
 * The one idea: what `vwn launch` does, other verbs do for themselves.
 */
#ifndef VWN_PROCESSES_H
#define VWN_PROCESSES_H

#include "runtime/cli/cli.h"

/* A variable that processes have which are started again: they go on with `--resume`, even if the first had made no run yet. */
#define LAUNCH_RESTARTED "VWN_RESTARTED"
/* Starts n processes of vwn with these words and waits for them: a status as that of the program. `silent`: their results go nowhere. */
int call_launch(Call *call, int64_t n, char **argv, bool silent);

#endif
