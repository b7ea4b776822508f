/* arrays.h - .npy files as examples: row i of every array belongs to example i.
 *
 * In:  `data = arrays(...)` and the inputs of a model.   Out: rows, checked against these
 * inputs. The one idea: a file is read as it lies, whatever its numbers are stored as; nothing
 * is copied before it is asked for.
 */
#ifndef VWN_ARRAYS_H
#define VWN_ARRAYS_H

#include "mapped.h"

typedef struct Array {
    Name input; /* of the model */
    DType dtype;
    Mapped file;
    const float *drawn;      /* without a file: `rows` of them, the same for integers */
    const struct Stored *as; /* what its numbers are stored as */
    size_t header;           /* bytes before the first number */
    int64_t numbers;         /* of a row */
} Array;
typedef struct Arrays {
    Array *v; /* in the order of the model's inputs */
    size_t n;
    int64_t rows;
} Arrays;

/* Raises ST_ENVIRONMENT with the file and what is wrong with it: it is no .npy file, the shape
 * or the type is not the input's, an index is out of range, the arrays are not equally long. */
Arrays *arrays_open(Session *s, const DataSpec *spec, const Model *m, int64_t context);
/* Rows drawn at random instead of files. */
Arrays *arrays_drawn(Session *s, const DataSpec *spec, const Model *m, int64_t context);
/* The numbers of a row. False with `why` when the file changed, or one is not finite. */
bool array_integers(const Array *x, int64_t row, int64_t *out, char why[WHY]);
bool array_reals(const Array *x, int64_t row, float *out, char why[WHY]);

#endif
