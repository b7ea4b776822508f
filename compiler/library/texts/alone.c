/* alone.c - what stands before a text of C that is read by itself, by an editor or a compiler.
 *
 * The prelude, and a value of each name that library_text() fills in.
 */
#include "types.c"
#include "math.c"
#include "vectors.c"

#define TEXT_NAME kernel
#define TEXT_MAX 0
#define TEXT_OLDEST 1
#define TEXT_CAPPED 1
#define TEXT_DROPPED 1
#define TEXT_D 64
#define TEXT_DV 64
#define TEXT_QUERIES 64
#define TEXT_KEYS 32
#define TEXT_PART 256
#define TEXT_SLICE 64
#define TEXT_RANGE 64
