/* readback.c - see readback.h.
 *
 * In:  programs that have run.     Out: their results, later.
 * The one idea: a device copies what it has computed into memory of the host, behind the run and before what follows it,
 * and notes when that is done. Where nothing is queued, a number is copied at once.
 */
#include "readback.h"

typedef struct Piece { /* a result */
    size_t at, n;      /* numbers */
    DType dtype;
} Piece;

struct Readback {
    Session *session;
    Box *box;     /* NULL: `memory` is the host's own */
    char *memory; /* eight bytes for each number, where a result of n begins with its first */
    size_t room, n;
    VEC(Piece) piece;
};

static void ok(const Readback *m, Status st)
{
    if (st != ST_OK)
        ctx_raise(m->session->ctx, st, "%s", m->session->backend->why);
}

Readback *readback_new(Session *s, size_t numbers)
{
    Readback *m = NEW(s->arena, Readback);
    *m = (Readback){.session = s, .room = numbers};
    if (s->backend)
        s->backend->why[0] = 0;
    if (s->backend && s->backend->ops->box)
        ok(m, s->backend->ops->box(s->backend, 8 * (uint64_t)numbers, &m->box));
    else
        m->memory = (char *)NEW_ARRAY(s->arena, double, numbers + 1);
    return m;
}

void readback_empty(Readback *m) { m->n = m->piece.n = 0; }

static size_t bytes_of(const Readback *m, const Piece *x)
{
    return x->n * (x->dtype == DT_INT || !m->session->backend ? 8 : sizeof(float));
}

void readback_post(Readback *m, Program *p)
{
    Backend *b = m->session->backend;
    if (b)
        b->why[0] = 0;
    for (size_t i = 0; i < program_results(p); i++) {
        Piece x = {.at = m->n, .n = program_result_size(p, i)};
        const void *from = program_result_memory(p, i, &x.dtype);
        if (x.n > m->room - m->n)
            vwn_bug(m->session->ctx, "%zu numbers in a readback for %zu", m->n + x.n, m->room);
        size_t bytes = bytes_of(m, &x);
        if (b && m->box)
            ok(m, b->ops->post(b, m->box, 8 * (uint64_t)x.at, from, bytes));
        else if (b)
            ok(m, b->ops->download(b, m->memory + 8 * x.at, from, bytes));
        else
            memcpy(m->memory + 8 * x.at, from, bytes);
        vec_push(m->session->arena, &m->piece, x);
        m->n += x.n;
    }
}

static double number_of(const Readback *m, const char *memory, const Piece *x, size_t i)
{
    union {
        double exact;
        int64_t integer;
        float real;
    } v;
    bool wide = x->dtype == DT_INT || !m->session->backend;
    memcpy(&v, memory + 8 * x->at + i * (wide ? 8 : sizeof(float)), wide ? 8 : sizeof(float));
    return x->dtype == DT_INT ? (double)v.integer : wide ? v.exact : (double)v.real;
}

void readback_read(Readback *m, size_t from, size_t n, double *v)
{
    const char *memory = m->memory;
    if (n > m->n || from > m->n - n)
        vwn_bug(m->session->ctx, "%zu numbers of a readback that has %zu", from + n, m->n);
    if (m->box) {
        Backend *b = m->session->backend;
        b->why[0] = 0;
        ok(m, b->ops->receive(b, m->box, &memory));
    }
    for (size_t k = 0; k < m->piece.n; k++) {
        const Piece *x = &m->piece.v[k];
        for (size_t i = 0; i < x->n; i++)
            if (x->at + i >= from && x->at + i < from + n)
                v[x->at + i - from] = number_of(m, memory, x, i);
    }
}
