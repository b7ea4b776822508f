/* loss_scale.h - by what the loss is multiplied before it is differentiated, so that small
 * gradients are numbers of fp16.
 *
 * In:  whether the gradient of a step was finite.     Out: the scale of the next one.
 * The one idea: a scale that is too large shows at once, one that is too small never does; so it
 * is halved when a gradient has left the range of fp16, whose step changes no weight, and doubled
 * after many good steps. Plain C on its own, because the folder that `vwn emit` writes scales by
 * this very text.
 */
#ifndef VWN_LOSS_SCALE_H
#define VWN_LOSS_SCALE_H

#include <stdbool.h>
#include <stdint.h>

/* Where it begins, after how many good steps it is doubled, and its bounds. */
enum { LOSS_SCALE_FIRST = 65536, LOSS_SCALE_STEPS = 2000, LOSS_SCALE_LEAST = 1 };
#define LOSS_SCALE_MOST 0x1p64

/* Norms of gradients above it are none: the program `update` has changed no weight. */
#define GRAD_NORM_MOST 3e38

/* May a step be skipped at this scale? Else the gradient itself is not finite. 0: nothing is
 * scaled. */
static inline bool loss_scale_may_halve(double scale) { return scale >= 2 * LOSS_SCALE_LEAST; }

/* After a step; good_steps: since the scale has changed. */
static inline void loss_scale_after(double *scale, int64_t *good_steps, bool good)
{
    *good_steps = good ? *good_steps + 1 : 0;
    if (!good) {
        *scale /= 2;
    } else if (*good_steps == LOSS_SCALE_STEPS) {
        *good_steps = 0;
        *scale = 2 * *scale < LOSS_SCALE_MOST ? 2 * *scale : LOSS_SCALE_MOST;
    }
}

#endif
