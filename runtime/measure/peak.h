/* peak.h - what the machine, or a device, can do at most, measured. */
#ifndef VWN_PEAK_H
#define VWN_PEAK_H

#include "runtime/base/backend.h"

typedef struct Peak {
    double copy; /* bytes read plus bytes written, per second; on a CPU with non-temporal stores */
    /* float32 operations per second, 2 per multiply-add: of a CPU in registers, of a device in a product of two
     * square matrices of random numbers (zeros take less power, so that it multiplies them faster) */
    double fma;
    Half half;           /* of which one more rate is measured; HALF_NONE: none */
    double of_half;      /* the same with such operands, on a CPU in vectors; 0: not measured */
    uint64_t copy_bytes; /* of both arrays together */
    int64_t size;        /* rows of the device's matrices; 0: a CPU */
    bool cut;            /* less than four last-level caches, for want of memory */
} Peak;
/* With all threads of the backend; a Half other than HALF_NONE only where it is asked for. False with a sentence in
 * `why`. Raises when out of memory.
 */
bool peak_measure(Backend *b, Arena *arena, Half half, Peak *out, char why[512]);
bool peak_of_device(Backend *b, Half half, Peak *out, char why[512]); /* peak_device.c, for peak_measure() */

#endif
