/* logits.c - what a run says behind each beginning of a text: a line of numbers for each.
 *
 * In:  a device, a run, token ids.   Out: logits behind the first id, behind the first two, ...
 */
#include <stdio.h>
#include <stdlib.h>

#include "runtime/use/predict.h"

extern const Hooks logits_hooks;

typedef struct Asked {
    Session session;
    const char *run;
    char **id;
    int64_t n;
    double *logits; /* [n, vocab] */
    int64_t vocab;
} Asked;

static void keep(void *user, GrowingText *text, const double *logits)
{
    Asked *a = user;
    memcpy(a->logits + (text->n - 1) * a->vocab, logits, (size_t)a->vocab * sizeof *logits);
    text->open = false;
}

static Status body(void *user)
{
    Asked *a = user;
    Session *s = &a->session;
    session_open(s, s->owner);
    Source from = source_open(s, a->run, true, &logits_hooks);
    Predictor p;
    predictor_open(
        &p, s, &from,
        &(PredictorOptions){.use = "logits are of texts", .texts = PREDICT_TEXTS, .recompute = true, .last = true});
    a->vocab = p.vocab;
    a->logits = NEW_ARRAY(s->arena, double, a->n * a->vocab);
    for (int64_t first = 0; first < a->n; first += PREDICT_TEXTS) {
        GrowingText text[PREDICT_TEXTS];
        size_t n = 0;
        for (int64_t k = first; k < a->n && n < PREDICT_TEXTS; k++, n++) {
            text[n] = (GrowingText){NEW_ARRAY(s->arena, int64_t, a->n + 1), k + 1, k + 1, true};
            for (int64_t i = 0; i <= k; i++)
                text[n].id[i] = strtoll(a->id[i], NULL, 10);
        }
        if (predictor_run(&p, text, n, 1, keep, a) != ST_OK)
            return ST_ENVIRONMENT;
    }
    for (int64_t i = 0; i < a->n * a->vocab; i++)
        printf("%.9g%c", a->logits[i], (i + 1) % a->vocab ? ' ' : '\n');
    return ST_OK;
}

static const char *no_changes(Session *s, const FileText *then, const FileText *now)
{
    (void)s, (void)then, (void)now;
    return "";
}
const Hooks logits_hooks = {.check = check_file, .changes = no_changes, .version = "test", .build = "test"};

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    vwn_context *v = vwn_open(&(vwn_options){.device = argv[1]});
    Asked a = {.session.owner = v, .run = argv[2], .id = argv + 3, .n = argc - 3};
    Status st = guarded(v->ctx, body, &a);
    if (st != ST_OK)
        fprintf(stderr, "%s\n", vwn_message(v));
    session_close(&a.session);
    vwn_close(v);
    return st;
}
