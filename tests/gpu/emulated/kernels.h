/* kernels.h - stands before a kernels.cu that is compiled as C++: its kernels are the emulator's.
 *
 * In:  tests/emu/cuemu.h in the path of includes.     Out: CODE(), what a launch takes for a kernel:
 *      a function of the addresses of its arguments.
 */
#include "cuemu.h"

#define CODE(name) reinterpret_cast<const void *>(+[](void **arguments) { emu::call_with(name, arguments); })
