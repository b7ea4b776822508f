/* perf_product.c - how long a product of the library takes, by its shape.
 *
 * In:  a GPU, extents.   Out: seconds.
 * The one idea: the library takes the tile, and the number of parts of k, that are best. Tiles are
 * dealt out to multiprocessors in waves; a tile runs at a rate that falls with the numbers which
 * must be read for each multiply-add, and ends in a time of its own. The constants are fitted to 92
 * products of cuBLAS on an H100 as measured by XLA (tests/perf/published.c names them): all within
 * 13 %, 5 % in the mean. What memory allows joins by a norm with the exponent of perf.h; nothing
 * exceeds what the library is known to reach at best.
 */
#include "perf.h"

#include <math.h>

enum { TILES = 8, PARTS_MOST = 8, PART_LEAST = 256 };
static const int tiles[TILES][2] = {{128, 256}, {256, 128}, {128, 128}, {128, 64},
                                    {64, 128},  {64, 64},   {64, 256},  {256, 64}};
#define PRODUCT_PARTS 1e-6 /* seconds more where parts of k are added up */

double perf_product(const Gpu *gpu, double m, double n, double k, double batch, bool half)
{
    const double reached = half ? gpu->reached : gpu->reached_fp32, flops = 2 * m * n * k * batch;
    const double full = 128.0 * 256 / (128 + 256), item = half ? 2 : 4, h = gpu->product_half;
    double best = INFINITY;
    for (int i = 0; i < TILES; i++)
        for (int parts = 1; parts <= PARTS_MOST; parts *= 2) {
            const double a = tiles[i][0], b = tiles[i][1], shared = a * b / (a + b);
            if (parts > 1 && k / parts < PART_LEAST)
                continue;
            const double waves = ceil(batch * ceil(m / a) * ceil(n / b) * parts / gpu->multiprocessors);
            const double part = shared / (shared + h) * (full + h) / full,
                         rate = gpu->product_rate * reached / gpu->multiprocessors * part;
            const double bytes = batch * item * (m * k + n * k + m * n) + (parts > 1 ? 8 * batch * m * n * parts : 0);
            const double both[] = {waves * (2 * a * b * k / parts / rate + gpu->product_end), bytes / gpu->copy};
            best = fmin(best, perf_norm(both, 2, gpu->beyond) + (parts > 1 ? PRODUCT_PARTS : 0));
        }
    return fmax(best + gpu->ramp, flops / reached);
}
