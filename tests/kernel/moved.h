/* moved.h - random graphs in which elements move: along every axis, beside products and sums. */
#ifndef VWN_MOVED_H
#define VWN_MOVED_H

#include "cases.h"

/* A scalar loss of a few parameters, and its gradients; simplified or not. */
Graph *moved_graph(Ctx *ctx, Dice *d);
/* `count` of them from `from` on. */
int moved_run(int argc, char **argv, const HostDevice *device, int count);

#endif
