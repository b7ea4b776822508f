/* file.h - a file on its way: its text so far, and the shapes that what is written next must fit.
 *
 * In:  a seed's draws.   Out: text. generate.c writes models, training.c how they are trained, grown
 * and varied.
 */
#ifndef RANDOM_FILE_H
#define RANDOM_FILE_H

#include "generate.h"

enum { BLOCKS_MOST = 3, LAYERS_MOST = 4 };

typedef struct Shape {
    int D, embed, closed;    /* widths: of the backbone, of the embedding, of what heads read */
    int hidden;              /* of the sublayer that every layer ends with: what grows */
    int layers, sublayers;   /* of a layer */
    int widths[LAYERS_MOST]; /* of each layer, where they differ */
    bool varies;             /* the width does */
    bool carried;            /* and so does what sublayers read */
    bool own_norm;           /* the connection has the last norm */
    bool by_layer;           /* the connection counts layers */
    bool in_layer;           /* what is written stands in the loop over layers */
    bool shares;             /* sublayers of a layer share the connection's weights */
    bool documents, tied;    /* tied: the head has no matrix of its own */
    int vocab, context, streams;
    const char *mask;
    const char *block[BLOCKS_MOST]; /* own sublayers */
    int blocks;
} Shape;

typedef struct File {
    Writer w;
    bool lean;
    Shape s;
    const char *connection;
} File;

#define PUT(f, ...) buf_printf(&(f)->w.b, __VA_ARGS__)
/* One of a few texts, printed into an arena. */
#define TEXT(f, ...) arena_printf((f)->w.b.arena, __VA_ARGS__)

/* `train { }` with this data, and, of what fits the model, tables of names and growth steps. */
void write_training(File *f, const char *data);
void write_growth(File *f);

#endif
