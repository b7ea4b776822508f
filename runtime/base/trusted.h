/* trusted.h - folders whose way from the root nobody else can change. */
#ifndef VWN_TRUSTED_H
#define VWN_TRUSTED_H

#include <stdbool.h>
#include <stddef.h>

enum { TRUSTED_WHY = 512 };

typedef enum TrustedHow {
    TRUSTED_PLACE,  /* the folder is there; its own owner and mode are for the caller to judge */
    TRUSTED_INSIDE, /* so, and nobody else can put something in the place of what we make in it */
    TRUSTED_MAKE    /* as TRUSTED_PLACE; folders that are missing are made with mode 0700 */
} TrustedHow;

/* Opens a folder. `resolved` gets its name without links. -1 with `why` when it cannot be opened or made, or
 * when another user could put something else in the place of a folder or a link on the way to it. Nothing
 * is made in a folder before it was judged. */
int trusted_folder(const char *path, TrustedHow how, char *resolved, size_t size, char why[TRUSTED_WHY]);
/* The folder for temporary files, $TMPDIR or /tmp, as TRUSTED_INSIDE; false with `why`. */
bool trusted_temporary(char *resolved, size_t size, char why[512]);

#endif
