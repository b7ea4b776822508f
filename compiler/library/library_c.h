/* library_c.h - the kernels that are written rather than derived, as C text.
 *
 * In:  which one, and for attention its class.     Out: its text, with @NAME@ for its name.
 */
#ifndef VWN_LIBRARY_C_H
#define VWN_LIBRARY_C_H

#include "compiler/kernel/library.h"

const char *library_c(Arena *arena, LibraryKernel which, const AttentionClass *a, size_t *length);

#endif
