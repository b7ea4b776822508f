/* arrays.h - .npy files that tests train on.
 *
 * In:  a path and numbers.   Out: a file as NumPy writes it.
 */
#ifndef VWN_TEST_ARRAYS_H
#define VWN_TEST_ARRAYS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `header` is the dictionary; version 1 or 2 of the format. */
static inline void npy_write(const char *path, int version, const char *header, const void *data, size_t n)
{
    size_t text = strlen(header), begin = version == 1 ? 10 : 12;
    size_t size = (begin + text + 1 + 63) / 64 * 64 - begin;
    unsigned char first[12] = {0x93, 'N', 'U', 'M', 'P', 'Y', (unsigned char)version, 0};
    for (size_t i = 8; i < begin; i++)
        first[i] = (unsigned char)(size >> 8 * (i - 8));
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(first, 1, begin, f) != begin || fprintf(f, "%s%*s\n", header, (int)(size - text - 1), "") < 0 ||
        fwrite(data, 1, n, f) != n || fclose(f)) {
        perror(path);
        exit(2);
    }
}

static inline unsigned draw(uint64_t *state, unsigned below)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(*state >> 33) % below;
}

enum { STRIPES_SIDE = 8, STRIPES_PIXELS = STRIPES_SIDE * STRIPES_SIDE };

/* `n` images of 8 by 8 bytes in folder/images.npy: stripes across or along, shifted, with
 * noise; which of the two is in folder/labels.npy. The labels are sorted, as of many data sets.
 */
static inline void stripes_write(const char *folder, int n)
{
    unsigned char *image = malloc((size_t)n * STRIPES_PIXELS), *label = malloc((size_t)n);
    uint64_t state = 3;
    for (int i = 0; i < n; i++) {
        unsigned phase = draw(&state, 4);
        label[i] = (unsigned char)(2 * i >= n);
        for (unsigned k = 0; k < STRIPES_PIXELS; k++) {
            unsigned along = label[i] ? k % STRIPES_SIDE : k / STRIPES_SIDE;
            unsigned bright = (along + phase) / 2 % 2 ? 180 : 40;
            image[i * STRIPES_PIXELS + (int)k] = (unsigned char)(bright + draw(&state, 40));
        }
    }
    char path[400], header[200];
    snprintf(path, sizeof path, "%s/images.npy", folder);
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d, 1, 8, 8), }", n);
    npy_write(path, 1, header, image, (size_t)n * STRIPES_PIXELS);
    snprintf(path, sizeof path, "%s/labels.npy", folder);
    snprintf(header, sizeof header, "{'descr': '|u1', 'fortran_order': False, 'shape': (%d,), }", n);
    npy_write(path, 1, header, label, (size_t)n);
    free(image);
    free(label);
}

#endif
