/* host_emu.h - the emulator as the device of tests/kernel/plan_host.h.
 *
 * The one idea: without ranges of rows, blocks come from the first to the last, one for each group of rows, and
 * copies at once; with ranges, threads come from the last to the first, with a few blocks, and copies late.
 */
#ifndef VWN_HOST_EMU_H
#define VWN_HOST_EMU_H

#include "kernel/plan_host.h"

extern const HostDevice host_emu;

#endif
