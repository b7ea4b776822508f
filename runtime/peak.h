/* peak.h - what the machine can do at most, measured. */
#ifndef VWN_PEAK_H
#define VWN_PEAK_H

#include "backend.h"

typedef struct Peak {
    double copy; /* bytes read plus bytes written, per second, with non-temporal stores */
    double fma;  /* float32 operations per second, 2 per multiply-add */
    double bf16; /* the same with bf16 operands, in vectors; 0: not measured */
    uint64_t copy_bytes; /* of both arrays together */
    bool cut;            /* less than four last-level caches, for want of memory */
} Peak;
/* With all threads of the backend; `bf16` only where it is asked for. False with a sentence in
 * `why`. Raises when out of memory.
 */
bool peak_measure(Backend *b, Arena *arena, bool bf16, Peak *out, char why[512]);

/* The processor's name for people, or "unknown". */
void peak_processor(Buf *out);

#endif
