/* wide.h - models as large as the kernels of sm_90a want them, for make_cases.c: a row each.
 *
 * In:  a variant of tests/support/models.h, sequences, positions.     Out: cases of both kinds of GPU; what is for any GPU has at most
 *      POSITIONS positions.
 * Where to add: a row. A case is carried to a GPU, so it is as small as it may be; what is made of it, its size and the seconds
 * that it took make_cases prints.
 */
#ifndef VWN_TEST_WIDE_H
#define VWN_TEST_WIDE_H

#include "support/models.h"

enum { POSITIONS = 300 };
typedef struct Wide {
    Variant v;
    int64_t B, T;
} Wide;
/* A kernel is carried once, with the first row that has it, so that says how many positions it is run with.
 * One layer, whose second sublayer is attention of one head, wider than the model, so that little else is carried. */
#define ATTENTION(positions, ...)                                                                                      \
    "D=64", "parts=1", "widths=[D]", "model.context=" #positions, "sub=attention(heads = 1, " __VA_ARGS__ ")"
static const Wide wide[] = {
    {{"heads of 64", {ATTENTION(1024, "head_dim = 64"), NULL}}, 1, 1024},
    {{"heads of 128", {ATTENTION(300, "head_dim = 128"), NULL}}, 1, 300},
    {{"heads of 96", {ATTENTION(300, "head_dim = 96"), NULL}}, 1, 300},
    {{"heads of 80", {ATTENTION(300, "head_dim = 80"), NULL}}, 1, 300},
    {{"heads of 256", {ATTENTION(300, "head_dim = 256"), NULL}}, 1, 300},
    {{"soft cap", {ATTENTION(300, "head_dim = 128, window = 100, softcap = 20"), NULL}}, 1, 300},
    {{"long documents",
      {ATTENTION(300, "head_dim = 64"), "model.mask=document", "train.data=text_file(\"none.txt\", separator = \"x\")",
       NULL}},
     1,
     300},
};

#endif
