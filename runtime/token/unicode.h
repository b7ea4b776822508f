/* unicode.h - general categories of characters that are newer than a library's tables.
 *
 * In:  "L", "Lu".   Out: ranges of a character class.
 */
#ifndef VWN_UNICODE_H
#define VWN_UNICODE_H

#include "compiler/base/base.h"

/* Whether a category, or a group of them, is known by its name, and is the same set of characters in every library from Unicode 14 on
 * once the newer ones are added. */
bool unicode_category(const char *name, size_t n);
/* Appends the newer characters of a category as ranges of a class in brackets, "\x{1c89}\x{a7cb}-\x{a7cc}". Whether there are any. */
bool unicode_newer(const char *name, size_t n, Buf *out);

#endif
