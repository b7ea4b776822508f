/* cache.h - compiled kernels on disk.
 *
 * In:  a key (a hash of everything a kernel's machine code depends on), the bytes of an object: a
 * shared object of the CPU backend or a cubin.
 * Out: the bytes of a verified object, or a miss.
 * The one idea: an object is named by the hash of its bytes, and a small JSON file named by
 * the key says which object holds the kernel. Both are written under another name and
 * renamed, so a reader sees all or nothing; whatever does not verify is a miss and is written
 * again.
 *
 * What lies in the folder is executed. So it is a folder that vwn has made, with mode 0700, or found empty;
 * a tag in it says so. A folder with files of others is refused, and so is one that belongs to somebody else,
 * that others may write, or that others could replace (trusted.h); its mode is never changed. Everything
 * goes through the descriptor of the folder that was judged.
 */
#ifndef VWN_CACHE_H
#define VWN_CACHE_H

#include "compiler/base/base.h"

enum { CACHE_PATH = 1024, CACHE_NOTE = 1024 };
typedef enum CacheKind { CACHE_SHARED_OBJECTS, CACHE_CUBINS } CacheKind;
typedef struct Cache {
    CacheKind kind;       /* what it is opened for; the folder holds all kinds */
    char dir[CACHE_PATH]; /* "" when there is none */
    int fd;               /* of the folder, or -1 */
    bool readable, writable;
    unsigned serial;       /* of temporary names */
    uint64_t limit;        /* bytes kept at most; the oldest files go first */
    char note[CACHE_NOTE]; /* why it is not used, or not written; "" when all is well */
} Cache;

/* asked NULL: $XDG_CACHE_HOME/vwn, else ~/.cache/vwn; "": none. Never fails: an unusable cache
 * has readable false and a note. Close it in any case. */
void cache_open(Cache *c, CacheKind kind, const char *asked);
void cache_close(Cache *c);

/* The object that holds the kernel of `key`; false is a miss. Keys and objects are 64 hex
 * digits. */
bool cache_find(Cache *c, const char key[65], char object[65]);
/* The object's bytes, checked against its name, in a block of the context; NULL is a miss. What is run
 * is these bytes: the file may be another one by then. */
void *cache_read(Cache *c, Ctx *ctx, const char object[65], size_t *size);
/* Stores an object and says its name. On failure the cache is no longer written, and note says
 * why. */
bool cache_put_object(Cache *c, const void *bytes, size_t n, char object[65]);
/* `facts`: members of a JSON object, for people; "" or ending with a comma. */
bool cache_put_entry(Cache *c, const char key[65], const char object[65], const char *kernel, const char *compiler,
                     const char *options, const char *facts);
/* A small text beside the kernels, by its file's name; false as above. What is read is at most
 * size - 1 bytes and ends with NUL; 0: there is none, or it is longer. */
bool cache_put_text(Cache *c, const char *name, const char *text, size_t n);
size_t cache_get_text(const Cache *c, const char *name, char *text, size_t size);
/* Removes the oldest files beyond the limit, and old temporary files. */
void cache_prune(Cache *c);
/* Files and bytes in it, for people. */
void cache_size(const Cache *c, int64_t *files, int64_t *bytes);

#endif
