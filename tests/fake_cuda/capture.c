/* capture.c - streams that are captured: their work becomes the nodes of a graph.
 *
 * The one idea: a stream that is captured has a tail, the nodes that its next one comes after. An event that is
 * recorded there carries the tail; a stream that waits for it joins the capture and comes after both.
 */
#define _GNU_SOURCE
#include "queue.h"

#include <stdlib.h>
#include <string.h>

static FakeCapture **captures;
static size_t n_captures;

void fake_graph_drop(FakeGraph *g)
{
    if (--g->users)
        return;
    for (unsigned i = 0; i < g->n; i++) {
        if (g->node[i].work.drop)
            g->node[i].work.drop(g->node[i].work.data);
        free(g->node[i].before);
    }
    free(g->node);
    free(g);
}

FakeNodes fake_nodes_copy(const FakeNodes *nodes)
{
    FakeNodes copy = {.n = nodes->n, .at = malloc((nodes->n + 1) * sizeof *copy.at)};
    if (nodes->n)
        memcpy(copy.at, nodes->at, nodes->n * sizeof *copy.at);
    return copy;
}

void fake_capture_add(FakeStream *s, FakeWork work)
{
    FakeGraph *g = s->capture->graph;
    FakeNodes before = s->tail;
    g->node = realloc(g->node, (g->n + 1) * sizeof *g->node);
    g->node[g->n] = (FakeNode){.work = work, .before = before.at, .n_before = before.n};
    s->tail = (FakeNodes){.at = malloc(sizeof *s->tail.at), .n = 1};
    s->tail.at[0] = g->n++;
}

void fake_capture_join(FakeStream *s, const FakeNodes *nodes)
{
    FakeNodes *t = &s->tail;
    t->at = realloc(t->at, (t->n + nodes->n + 1) * sizeof *t->at);
    for (unsigned i = 0; i < nodes->n; i++) {
        unsigned k = 0;
        while (k < t->n && t->at[k] != nodes->at[i])
            k++;
        if (k == t->n)
            t->at[t->n++] = nodes->at[i];
    }
}

void fake_capture_invalidate(FakeStream *s)
{
    if (s->capture)
        s->capture->invalid = true;
}

FakeCapture *fake_capture_begin(FakeStream *s, int mode)
{
    FakeCapture *c = calloc(1, sizeof *c);
    *c = (FakeCapture){.origin = s, .graph = calloc(1, sizeof *c->graph), .thread = pthread_self(), .mode = mode};
    c->graph->users = 1;
    captures = realloc(captures, (n_captures + 1) * sizeof *captures);
    captures[n_captures++] = c;
    s->capture = c;
    s->tail = (FakeNodes){NULL, 0};
    return c;
}

/* Marks what comes before the nodes. Nodes come after nodes that are older. */
static void mark(const FakeGraph *g, const FakeNodes *from, bool *seen)
{
    for (unsigned i = 0; i < from->n; i++)
        seen[from->at[i]] = true;
    for (unsigned i = g->n; i-- > 0;)
        for (unsigned k = 0; seen[i] && k < g->node[i].n_before; k++)
            seen[g->node[i].before[k]] = true;
}

bool fake_capture_end(FakeCapture *c)
{
    bool *seen = calloc(c->graph->n + 1, sizeof *seen), all = true;
    mark(c->graph, &c->origin->tail, seen);
    for (unsigned i = 0; i < c->graph->n; i++)
        all = all && seen[i];
    free(seen);
    for (FakeStream *s = fake_streams(); s; s = s->next)
        if (s->capture == c) {
            free(s->tail.at);
            s->tail = (FakeNodes){NULL, 0};
            s->capture = NULL;
        }
    for (size_t i = 0; i < n_captures; i++)
        if (captures[i] == c)
            captures[i] = captures[--n_captures];
    fake_bury(c); /* events were recorded in it */
    return all;
}

/* A call that cannot be part of a graph breaks the capture that it meets: any one in mode GLOBAL, else that of this
 * thread. */
int fake_capture_forbids(void)
{
    for (size_t i = 0; i < n_captures; i++) {
        FakeCapture *c = captures[i];
        if (c->mode == CAPTURE_GLOBAL || (c->mode == CAPTURE_THREAD && pthread_equal(c->thread, pthread_self()))) {
            c->invalid = true;
            return fake_refuse(E_CAPTURE_UNSUPPORTED, "while a stream is captured");
        }
    }
    return E_OK;
}
