/* held_out.h - the data that a trained model is looked at with; private to runtime/. */
#ifndef VWN_HELD_OUT_H
#define VWN_HELD_OUT_H

#include "runtime/data/feed.h"
#include "source.h"

typedef struct HeldOut {
    const Split *split;
    bool text;     /* it has tokens, so perplexity means something */
    int64_t epoch; /* windows of an epoch of the training data; 0: that data is not open */
} HeldOut;
/* `path` (NULL: none), `eval { data }` of the file, or the part that it holds out. Raises ST_INPUT without a `train`,
 * ST_USAGE where there is no such data. */
HeldOut held_out_open(Session *s, const Source *source, const char *path);
/* HV_COUNT quantities of the run as they are at the checkpoint. */
void held_out_vars(const Source *source, const HeldOut *data, double *vars);

#endif
