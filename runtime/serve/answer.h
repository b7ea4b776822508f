/* answer.h - what is answered to requests: completions, token ids, what there is.
 *
 * In:  a method, a path, a body.   Out: JSON, or events.
 */
#ifndef VWN_ANSWER_H
#define VWN_ANSWER_H

#include "batch.h"
#include "http.h"

typedef struct Server {
    LiveBatch batch;
    pthread_mutex_t encode; /* a tokenizer makes ids of one text after the other */
    const char *model;
    double seconds; /* that a request may take */
    _Atomic uint64_t requests;
} Server;

/* Addresses and members are those of OpenAI's completions and of vLLM's tokenizer. */
void answer_request(void *user, HttpRequest *r, const char *method, const char *path, const char *body, size_t n);

#endif
