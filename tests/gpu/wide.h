/* wide.h - models as large as the kernels of sm_90a want them, for make_cases.c: a row each.
 *
 * In:  a variant of tests/support/models.h, sequences, positions.     Out: cases of both kinds of GPU.
 * Where to add: a row. A case is carried to a GPU, so it is as small as it may be; what is made of it, its size and the seconds
 * that it took make_cases prints.
 */
#ifndef VWN_TEST_WIDE_H
#define VWN_TEST_WIDE_H

#include "support/models.h"

typedef struct Wide {
    Variant v;
    int64_t B, T;
} Wide;
static const Wide wide[] = {
    {{"heads of 64", {"D=128", "model.context=150", NULL}}, 1, 150},
};

#endif
