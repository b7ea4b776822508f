/* task.h - requests of a task: contexts, continuations, and which one is right.
 *
 * In:  a file of JSON lines, as it is or packed.   Out: requests, or a sentence with the file, the line and what is wrong.
 */
#ifndef VWN_TASK_H
#define VWN_TASK_H

#include "runtime/exec/session.h"

typedef struct TaskText {
    const char *s;
    size_t n;
} TaskText;

/* One context and one continuation are not alone: of one of the two there are several. */
typedef struct TaskChoice {
    size_t context; /* its place in TaskRequest.context */
    TaskText text;
} TaskChoice;

typedef struct TaskRequest {
    size_t line;    /* from 1 */
    const char *id; /* as JSON; NULL: it has none */
    TaskText *context;
    size_t contexts;
    TaskChoice *choice;
    size_t n, gold; /* the place of the right one */
} TaskRequest;

typedef struct Task {
    const char *path;
    TaskRequest *request;
    size_t n; /* at least 1 */
} Task;

/* A line is {"context": TEXT, "continuations": [TEXT, ...], "gold": N}, or, where contexts are compared, {"contexts": [TEXT, ...],
 * "continuation": TEXT, "gold": N}; "id" may be a text or a number, a single continuation needs no "gold". Raises ST_ENVIRONMENT when the
 * file cannot be read, ST_INPUT where it holds something else. */
void task_read(Session *s, const char *path, Task *out);

#endif
