/* npy.h - the header of a .npy file, which anybody may have written.
 *
 * In:  the bytes of a file.   Out: type and shape of its array and where its numbers begin, or
 * a sentence with the byte that is wrong.
 */
#ifndef VWN_NPY_H
#define VWN_NPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NPY_RANK = 8, NPY_WHY = 400 };
typedef struct Npy {
    char type[16]; /* "<f4", "|u1" */
    bool fortran;  /* the first axis is contiguous */
    int rank;
    int64_t d[NPY_RANK];
    size_t header; /* bytes before the first number */
} Npy;
/* Versions 1 to 3 of the format. */
bool npy_read(const unsigned char *bytes, size_t n, Npy *out, char why[NPY_WHY]);

#endif
