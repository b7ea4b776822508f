/* series.h - numbers over positions: their means, spreads, and quantiles of a part of them. */
#ifndef VWN_SERIES_H
#define VWN_SERIES_H

#include "compiler/base/base.h"

/* Mean and spread over positions, and quantiles of a part of them that is spread evenly. */
typedef struct Spread {
    double mean, std, low, middle, high; /* 5 %, 50 %, 95 % */
} Spread;

/* Some series of numbers over positions, of which every `every`th is kept. */
typedef struct SeriesSet {
    size_t n;              /* series */
    double *sum, *squares; /* of each */
    double *kept;          /* [n, room] */
    size_t room, n_kept, seen, every;
} SeriesSet;

/* Room for n series over `positions`, of which about `numbers` numbers are kept. */
SeriesSet series_new(Arena *a, size_t n, size_t positions, double numbers);
/* v: [positions, n] */
void series_add(SeriesSet *s, const double *v, size_t positions);
/* Of series `first` to `first + count` as one; room [count * n_kept]. NaN where nothing was added. */
Spread series_spread(const SeriesSet *s, size_t first, size_t count, double *room);

#endif
