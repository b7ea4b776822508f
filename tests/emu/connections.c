/* connections.c - the random connections of tests/kernel/connections.c: one kernel of a device between sublayers,
 * emulated.
 *
 * In:  a seed per connection (first argument: where to start, second: how many).
 * Out: the number of failures; 77 without a C++ compiler. Results and all gradients equal the reference's, with the
 * same bits in both orders of host_emu.h.
 * When: slow. It runs hundreds of kernels, of which emu.examples has a part.
 */
#include "support/drawn.h"
#include "backend_emu.h"
#include "host_emu.h"

#include "kernel/connections.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    Connections of = {.from = argc > 1 ? atoi(argv[1]) : 0,
                      .count =
                          argc > 2 ? atoi(argv[2]) : (int)drawn_count(&(CaseDraw){.one_in = 10, .sanitized = 10}, 50),
                      .B = 1,
                      .T = 3,
                      .device = &host_emu};
    if (emu_missing())
        return EMU_SKIPPED;
    return connections_run(&of) != 0;
}
