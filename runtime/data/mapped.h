/* mapped.h - a data file in memory, which may be replaced while it is read, but not unnoticed.
 *
 * In:  a path.   Out: its bytes until the session closes.
 */
#ifndef VWN_MAPPED_H
#define VWN_MAPPED_H

#include <sys/types.h>

#include "compiler/portable/safetensors.h"
#include "runtime/base/json.h"
#include "runtime/exec/session.h"

typedef struct Mapped {
    const char *path;
    const unsigned char *map; /* NULL: there is no file */
    size_t bytes;
    uint64_t content; /* hash of the first and the last block */
    dev_t device;
    ino_t inode;
} Mapped;

/* *m is the caller's, the map the session's: it is there until the session ends, whatever becomes of *m. Raises
 * ST_ENVIRONMENT when the file cannot be read, or is empty. */
void mapped_open(Session *s, Mapped *m, const char *path);
/* A map stays valid when a file is replaced, but not when it is cut: to be asked before every
 * read. */
bool mapped_unchanged(const Mapped *m, char why[WHY]);
/* Raises ST_ENVIRONMENT with "PATH: what". */
_Noreturn void mapped_wrong(Session *s, const char *path, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* A path as a file writes it: relative to the folder of that file. */
const char *mapped_path(Arena *a, const char *folder, const char *path);
/* "; it is named in gpt.vwn:21", or nothing; with a path that is not absolute also which folder it is relative to. */
const char *mapped_named(Session *s, Span at, const char *folder, const char *path);

#endif
