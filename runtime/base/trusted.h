/* trusted.h - folders whose way from the root nobody else can change. */
#ifndef VWN_TRUSTED_H
#define VWN_TRUSTED_H

#include <stdbool.h>
#include <stddef.h>

/* Opens a folder that is there. `resolved` gets its name without links. -1 with `why` when it cannot be
 * opened, or when another user could put something else in the place of a folder on the way to it, or,
 * with `inside`, in the place of what we make in it; without, its owner and mode are for the caller to
 * judge. */
int trusted_folder(const char *path, bool inside, char *resolved, size_t size, char why[256]);

#endif
