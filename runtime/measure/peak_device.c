/* peak_device.c - how fast a device copies its memory and multiplies matrices.
 *
 * In:  a backend whose device notes times.   Out: the median of some repetitions.
 * The one idea: the yardsticks go through the functions that programs use, and the numbers are random: zeros take
 * less power, so that a GPU multiplies them faster than what a model multiplies.
 */
#include "peak.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPEATS = 11, ROW = 1 << 16, MOST_BYTES = 1 << 30, LEAST_SIZE = 256, MOST_SIZE = 8192 };

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

typedef struct Device {
    Backend *b;
    void *memory[3];
    uint64_t bytes; /* of each */
    PlanMatmul how; /* of a product; else a copy of `rows` */
    int64_t rows;
    Status status;
} Device;

static Status once(Device *d)
{
    Backend *b = d->b;
    const PlanCopy copy = {ROW, ROW, ROW};
    return d->rows ? b->ops->copy(b, &copy, d->rows, d->memory[0], d->memory[1])
                   : b->ops->matmul(b, &d->how, d->memory[0], d->memory[1], d->memory[2]);
}

/* Seconds of the middle one; the first, which loads code, does not count. */
static double middle(Device *d)
{
    Backend *b = d->b;
    double seconds[REPEATS] = {0};
    for (int i = 0; i < REPEATS && d->status == ST_OK; i++) {
        d->status = b->ops->mark(b, 0);
        if (d->status == ST_OK)
            d->status = once(d);
        if (d->status == ST_OK)
            d->status = b->ops->mark(b, 1);
        if (d->status == ST_OK)
            d->status = b->ops->sync(b);
        if (d->status == ST_OK)
            d->status = b->ops->between(b, 0, &seconds[i]);
    }
    qsort(seconds + 1, REPEATS - 1, sizeof *seconds, ascending);
    return seconds[REPEATS / 2];
}

static uint64_t random_bits(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* The number of a type that is not farther from 0 than x, which is in its range; none of the smallest, without a leading bit. */
static uint32_t code_of(float x, const HalfInfo *to)
{
    uint32_t bits, drop = 24 - (uint32_t)to->digits, shift = (uint32_t)(126 + to->least) << 23;
    memcpy(&bits, &x, sizeof bits);
    uint32_t size = bits & 0x7fffffff, code = size <= shift ? 0 : (size - shift) >> drop;
    return code | bits >> 31 << (8 * to->bytes - 1);
}

/* Multiples of 1/128 in [-1, 1), or what a type has beside them, as many bytes as a piece has; pieces are alike. */
static void put_random(Device *d, void *to, uint64_t seed, Half half)
{
    enum { PIECE = 1 << 18 };
    unsigned char number[PIECE];
    const HalfInfo *type = half_info(half);
    for (uint64_t i = 0; i < PIECE; i += (uint64_t)type->bytes) {
        uint32_t code = code_of((float)((int)(random_bits(&seed) % 256) - 128) / 128, type);
        memcpy(number + i, &code, (size_t)type->bytes); /* the low bytes */
    }
    for (uint64_t done = 0; done < d->bytes && d->status == ST_OK; done += PIECE)
        d->status =
            d->b->ops->upload(d->b, (char *)to + done, number, d->bytes - done < PIECE ? d->bytes - done : PIECE);
}

static bool take(Device *d, int n, uint64_t bytes)
{
    d->bytes = bytes;
    for (int i = 0; i < n && d->status == ST_OK; i++)
        d->status = d->b->ops->alloc(d->b, bytes, &d->memory[i]);
    return d->status == ST_OK;
}

static void give(Device *d)
{
    for (int i = 0; i < 3; i++) {
        d->b->ops->free(d->b, d->memory[i], d->bytes);
        d->memory[i] = NULL;
    }
}

static double copy_rate(Device *d, uint64_t bytes)
{
    double seconds = 0;
    d->rows = (int64_t)(bytes / ROW);
    if (take(d, 2, (uint64_t)d->rows * ROW)) {
        put_random(d, d->memory[0], 1, HALF_NONE);
        seconds = middle(d);
    }
    give(d);
    d->rows = 0;
    return seconds > 0 ? 2 * (double)bytes / seconds : 0;
}

static double product_rate(Device *d, int64_t size, Half half)
{
    double seconds = 0;
    d->how =
        (PlanMatmul){.m = size, .n = size, .k = size, .batch = 1, .lda = size, .ldb = size, .ldc = size, .half = half};
    if (take(d, 3, (uint64_t)(size * size) * sizeof(float))) {
        put_random(d, d->memory[0], 1, half);
        put_random(d, d->memory[1], 2, half);
        seconds = middle(d);
    }
    give(d);
    return seconds > 0 ? 2 * (double)size * (double)size * (double)size / seconds : 0;
}

/* Matrices that give every multiprocessor some tiles of 128 x 128. */
static int64_t size_for(const Backend *b)
{
    int64_t size = LEAST_SIZE;
    while (size < MOST_SIZE && size * size < 8 * 128 * 128 * (int64_t)b->multiprocessors)
        size *= 2;
    return size;
}

bool peak_of_device(Backend *b, Half half, Peak *out, char why[512])
{
    Device d = {.b = b};
    uint64_t left, all, bytes = (uint64_t)b->multiprocessors << 23;
    b->why[0] = 0;
    bool known = b->ops->room(b, &left, &all);
    bytes = bytes < MOST_BYTES ? bytes : MOST_BYTES;
    out->cut = known && bytes > left / 4;
    bytes = (out->cut ? left / 4 : bytes) / ROW * ROW;
    out->size = size_for(b);
    while (out->size > LEAST_SIZE && (uint64_t)(out->size * out->size) * sizeof(float) > left / 4)
        out->size /= 2;
    if (known && bytes) {
        out->copy_bytes = 2 * bytes;
        out->copy = copy_rate(&d, bytes);
        out->fma = d.status == ST_OK ? product_rate(&d, out->size, HALF_NONE) : 0;
        if (half && d.status == ST_OK)
            out->of_half = product_rate(&d, out->size, out->half = half);
    }
    if (out->copy > 0 && out->fma > 0 && (!half || out->of_half > 0))
        return true;
    snprintf(why, 512, "%s", b->why[0] ? b->why : "the GPU has no memory left for it");
    return false;
}
