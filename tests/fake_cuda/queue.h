/* queue.h - streams, events and graphs, between queue.c, capture.c and the calls of libcuda. */
#ifndef FAKE_CUDA_QUEUE_H
#define FAKE_CUDA_QUEUE_H

#include "fake.h"

#include <pthread.h>

typedef struct FakeNode {
    FakeWork work;
    unsigned *before, n_before; /* nodes that have to have run */
} FakeNode;
struct FakeGraph {
    FakeNode *node;
    unsigned n;
    int users; /* graphs, executables and launches */
};

typedef struct FakeCapture {
    FakeStream *origin;
    FakeGraph *graph;
    pthread_t thread;
    int mode;
    bool invalid;
} FakeCapture;

/* A set of nodes of a graph. */
typedef struct FakeNodes {
    unsigned *at, n;
} FakeNodes;

/* An executable graph; one launch of it runs at a time. */
typedef struct FakeExec {
    FakeGraph *graph;
    FakeStream *last_on;
    uint64_t last;
} FakeExec;

typedef enum FakeOpKind { OP_WORK, OP_MARK, OP_WAIT, OP_GRAPH } FakeOpKind;
typedef struct FakeOp {
    FakeOpKind kind;
    FakeWork work;
    FakeEvent *event; /* OP_MARK */
    FakeStream *on;   /* OP_WAIT, OP_GRAPH: first this stream has to be so far; NULL: nothing */
    uint64_t until;
    FakeGraph *graph;
    bool *ran; /* of each node */
    unsigned left;
    uint64_t place, number; /* in its stream; in all */
    struct FakeOp *next;
} FakeOp;

struct FakeStream {
    const void *handle;
    unsigned flags;
    int priority;
    bool live;
    uint64_t issued, done;
    FakeOp *first, *last;
    FakeCapture *capture;
    FakeNodes tail; /* of the capture: what the next node comes after */
    FakeStream *next;
};

struct FakeEvent {
    unsigned flags;
    FakeStream *on; /* NULL: never recorded */
    uint64_t place;
    double time;          /* microseconds; of what was recorded last */
    FakeCapture *capture; /* recorded while a stream was captured */
    FakeNodes nodes;
};

FakeStream *fake_stream_new(unsigned flags, int priority);
FakeStream *fake_streams(void); /* the first of all that ever were */
void fake_streams_drop(void);   /* all, as a context that ends does */
void fake_push(FakeStream *s, FakeOp op);
void fake_progress(void); /* the device goes on by itself, if it likes to */
bool fake_reached(const FakeStream *s, uint64_t place);
int fake_wait(FakeStream *s, uint64_t place);
void fake_poll(FakeStream *s, uint64_t place); /* a little of it */

/* capture.c */
void fake_graph_drop(FakeGraph *g);
void fake_capture_add(FakeStream *s, FakeWork work);
void fake_capture_join(FakeStream *s, const FakeNodes *nodes);
FakeCapture *fake_capture_begin(FakeStream *s, int mode);
/* Frees its streams; false: work of one of them was not waited for by the first. It forbids nothing any more. */
bool fake_capture_end(FakeCapture *c);
void fake_capture_invalidate(FakeStream *s);
FakeNodes fake_nodes_copy(const FakeNodes *nodes);

#endif
