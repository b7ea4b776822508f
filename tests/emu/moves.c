/* moves.c - the graphs of tests/kernel/moves.c on a device, emulated.
 *
 * In:  a seed per graph (first argument: where to start, second: how many).
 * Out: the number of failures; 77 without a C++ compiler.
 * When: quick.
 */
#include "backend_emu.h"
#include "host_emu.h"

#include "kernel/moved.h"

int main(int argc, char **argv)
{
    if (emu_missing())
        return EMU_SKIPPED;
    return moved_run(argc, argv, &host_emu, 20) != 0;
}
