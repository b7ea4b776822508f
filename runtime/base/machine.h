/* machine.h - the machine that a run is on: its clock, its memory, and what people who come back to the run want to know. */
#ifndef VWN_MACHINE_H
#define VWN_MACHINE_H

#include "compiler/base/base.h"

/* The processor's name, or "unknown". */
void machine_processor(Buf *out);
/* The words of this process's command line; none where the system does not tell. */
typedef VEC(const char *) Words;
Words machine_command(Arena *a);

/* The commit of the working folder, as git tells it while something else goes on. */
typedef struct GitAsk {
    int pid, fd; /* 0, -1: nobody is asked */
    double began;
} GitAsk;
typedef struct GitAnswer {
    char commit[65];   /* "": there is no git, or no commit */
    bool known, dirty; /* whether files that git knows differ from it; not known: it took too long */
} GitAnswer;
GitAsk git_ask(void);
/* Waits for a moment at most. Called for every GitAsk, also when its answer is not wanted; twice does no harm. */
GitAnswer git_answer(GitAsk *ask);
double clock_seconds(void); /* monotonic */
/* Bytes that can still be had, by the system, the control group and `ulimit -v`, and all there are; -1
 * where that is not known. */
int64_t memory_available(int64_t *total);

#endif
