/* stream.h - the bytes of a text that may be packed.
 *
 * In:  a file or the standard input, as it is, or packed by gzip or zstd.   Out: the bytes of the text.
 * The one idea: how a text is packed is told by its first bytes, not by its name.
 */
#ifndef VWN_STREAM_H
#define VWN_STREAM_H

#include "runtime/token/system_library.h"

typedef struct TextStream TextStream;
/* "-": the standard input. While *stop is set a read of it ends as if it were over. NULL with `why`, which names the file. */
TextStream *stream_open(const char *path, const volatile int *stop, char why[WHY]);
/* Reads until `out` has n bytes or the text is over. Less than n: it is; -1 with `why`. */
long long stream_read(TextStream *s, char *out, size_t n, char why[WHY]);
/* Bytes of the file that were read. */
uint64_t stream_taken(const TextStream *s);
void stream_close(TextStream *s); /* NULL is fine */

#endif
