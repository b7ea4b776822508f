/* serve.c - see serve.h. */
#include "serve.h"

#include "answer.h"

enum { BODY = 8 << 20, CONNECTIONS = 256, SILENT = 20 };

typedef struct Serving {
    Session session;
    const vwn_serve_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    Source source;
    Server server;
    Http *http;
    bool opened;
} Serving;

static void tell(const Serving *v)
{
    Arena *a = v->session.arena;
    const Predictor *p = &v->server.batch.predictor;
    const char *text =
        v->how->json
            ? arena_printf(
                  a,
                  "{\"v\":1,\"event\":\"serve\",\"url\":\"http://127.0.0.1:%d\",\"model\":\"%s\",\"rows\":%lld,"
                  "\"context\":%lld}\n",
                  http_port(v->http), v->server.model, (long long)p->texts, (long long)p->context)
            : arena_printf(a, "%s at http://127.0.0.1:%d/v1/completions, %lld texts at a time\n", v->server.model,
                           http_port(v->http), (long long)p->texts);
    write_text(v->out, text, strlen(text));
}

static Status serve_body(void *user)
{
    Serving *v = user;
    Session *s = &v->session;
    char why[WHY];
    session_open(s, s->owner);
    v->source = source_open(s, v->how->source, true, v->hooks);
    Tokenizer *tokenizer = (Tokenizer *)v->source.checkpoint->meta.tokenizer;
    tokenizer_load(s, tokenizer);
    v->server.batch.tokenizer = tokenizer;
    v->server.model = v->source.unit->model->name;
    v->server.seconds = (double)v->how->seconds;
    pthread_mutex_init(&v->server.encode, NULL);
    batch_open(&v->server.batch, s, &v->source, (size_t)v->how->queue, v->how->last);
    v->opened = true;
    v->http = http_open(&(HttpOptions){.port = v->how->port,
                                       .body = BODY,
                                       .seconds = SILENT,
                                       .most = CONNECTIONS,
                                       .answer = answer_request,
                                       .user = &v->server},
                        why);
    if (!v->http)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    tell(v);
    batch_run(&v->server.batch, &s->owner->interrupted);
    s->owner->interrupted = 0;
    return ST_OK;
}

Status serve_source(vwn_context *owner, const vwn_serve_options *how, const vwn_writer *out, const Hooks *hooks)
{
    Serving v = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, serve_body, &v);
    if (v.opened) {
        batch_stop(&v.server.batch);
        http_close(v.http);
        batch_close(&v.server.batch);
        pthread_mutex_destroy(&v.server.encode);
    }
    return session_end(&v.session, st);
}
