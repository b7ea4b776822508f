/* drawing.c - initial values that helpers draw while the caller does something else are those
 * of param_init(), for every number of threads; averages begin with them; a session that closes
 * in between gives everything back.
 * When: quick, checked.
 */
#include "support.h"

#include <math.h>
#include <stdlib.h>

#include "compiler/model/optimizer.h"

enum { V = 40, W = 300, T = 6, SEED = 7 }; /* W x V: more than one piece of 8,192 numbers */

static const Model *tiny_model(Ctx *ctx)
{
    const TinyOptions how = {.vocab = V, .width = W, .context = T, .batch = 2, .steps = 1, .text = "none"};
    return tiny_unit(ctx, &how)->model;
}

/* Every second parameter has an average. */
static void add_averages(Session *s, const Model *m)
{
    StoreEntry *e;
    for (size_t i = 0; i < m->param.n; i += 2) {
        const Param *p = &m->param.v[i];
        session_store_ok(s, store_add(s->store, EXT_STATE, average_name(s->ctx, p), DT_REAL, 1, &p->elements, &e));
    }
}

static void compare(Tally *t, Session *s, const Param *p, bool averaged)
{
    size_t n = (size_t)p->elements;
    double *want = malloc(n * sizeof *want), *got = malloc(n * sizeof *got);
    StoreEntry *e[2] = {store_find(s->store, p->buffer ? EXT_BUFFER : EXT_PARAM, p->path),
                        store_find(s->store, EXT_STATE, average_name(s->ctx, p))};
    param_init(p, SEED, want);
    CHECKF(t, e[0] && (e[1] != NULL) == averaged, "%s", p->path);
    for (int k = 0; k < 2; k++) {
        size_t same = 0;
        if (!e[k])
            continue;
        CHECK(t, store_get_f64(s->store, e[k], 0, p->elements, got) == ST_OK);
        for (size_t i = 0; i < n; i++)
            same += got[i] == (s->backend ? (double)(float)want[i] : want[i]);
        CHECKF(t, same == n, "%s: %zu of %zu numbers", p->path, same, n);
    }
    free(want);
    free(got);
}

typedef struct Drawn {
    Tally *t;
    int threads; /* 0: the reference evaluator */
    bool leave;  /* while helpers draw */
} Drawn;

static void draw(const Drawn *how)
{
    vwn_context *v = tiny_context(how->threads == 0, how->threads);
    const Model *m = tiny_model(v->ctx);
    Session s = {0};
    size_t large = 0;
    session_open(&s, v);
    session_open_backend(&s);
    session_add_params(&s, m);
    Drawing *d = session_begin_params(&s, m, SEED);
    add_averages(&s, m);
    if (!how->leave) {
        session_end_params(&s, d);
        for (size_t i = 0; i < m->param.n; i++) {
            compare(how->t, &s, &m->param.v[i], i % 2 == 0);
            large += m->param.v[i].elements > 8192;
        }
        CHECK(how->t, large > 0);
    }
    session_close(&s);
    CHECK(how->t, s.backend == NULL && s.store == NULL);
    tiny_close(v);
}

int main(void)
{
    Tally t = {0};
    for (int threads = 0; threads <= 4; threads++)
        for (int leave = 0; leave < 2; leave++)
            draw(&(Drawn){&t, threads, leave});
    return tally_end(&t, "drawing");
}
