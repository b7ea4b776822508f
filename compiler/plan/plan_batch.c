/* plan_batch.c - products of one shape that stand together become one call of the library.
 *
 * In:  the launches of a plan for a device, before its buffers have places.     Out: fewer, that compute the same values.
 * The one idea: where matrices lie is the plan's to say. Queries, keys and values read one matrix and write three; when their
 * weights lie behind each other, and their results too, they are one batch: its steps are the sizes of the matrices. So are the
 * products that write their gradients (plan_layout.c: how what outlives the run lies). What lives
 * much longer than the others, such as values that the backward pass reads beside queries that it does not, stays apart.
 */
#include "plan_build.h"

enum { BATCH_MOST = 8 }; /* launches of a batch */

typedef struct Chains {
    Build *b;
    PlanLayout *layout;     /* or NULL */
    uint32_t *first, *last; /* by buffer: the launches between which it lives */
    uint32_t *next;         /* by buffer: the one behind it, plus one */
} Chains;

typedef struct Batch {
    uint32_t launch[BATCH_MOST];
    uint32_t n;
} Batch;

static bool same_shape(const PlanMatmul *x, const PlanMatmul *y)
{
    return x->transpose_a == y->transpose_a && x->transpose_b == y->transpose_b && x->accumulate == y->accumulate &&
           x->half == y->half && x->rounded == y->rounded && x->m == y->m && x->n == y->n && x->k == y->k &&
           x->batch == 1 && y->batch == 1 && x->lda == y->lda && x->ldb == y->ldb && x->ldc == y->ldc;
}

/* Does one of them write what the other touches? */
static bool conflict(const Launch *x, const Launch *y)
{
    for (uint32_t i = 0; i < x->n_touched; i++)
        for (uint32_t k = 0; k < y->n_touched; k++)
            if (x->buffer[i] == y->buffer[k] && (x->writes[i] || y->writes[k]))
                return true;
    return false;
}

static void find_lives(Chains *c)
{
    const Build *b = c->b;
    memset(c->first, 0xff, (b->buffer.n + 1) * sizeof *c->first);
    for (uint32_t i = 0; i < b->launch.n; i++)
        for (uint32_t k = 0; k < b->launch.v[i].n_touched; k++) {
            uint32_t x = b->launch.v[i].buffer[k];
            c->first[x] = c->first[x] < i ? c->first[x] : i;
            c->last[x] = i;
        }
}

static bool is_near(const Chains *c, uint32_t x, uint32_t y)
{
    return (x > y ? x - y : y - x) <= c->b->f->target->tuned->batch_near;
}

static bool live_alike(const Chains *c, const Launch *x, const Launch *y)
{
    bool alike = true;
    for (int k = 0; k < 3; k++)
        alike = alike && is_near(c, c->first[x->buffer[k]], c->first[y->buffer[k]]) &&
                is_near(c, c->last[x->buffer[k]], c->last[y->buffer[k]]);
    return alike;
}

/* Products like launch i that may run where it does. */
static Batch find(const Chains *c, uint32_t i, const bool *taken)
{
    const Build *b = c->b;
    const Launch *l = &b->launch.v[i];
    Batch found = {{i}, 1};
    const uint32_t end = i + (uint32_t)b->f->target->tuned->batch_ahead;
    for (uint32_t j = i + 1; j < b->launch.n && j < end && b->launch.v[j].kind == LAUNCH_MATMUL; j++) {
        const Launch *x = &b->launch.v[j];
        bool waits = taken[j] || !same_shape(&l->matmul, &x->matmul) || !live_alike(c, l, x);
        for (uint32_t k = i; k < j && !waits; k++)
            waits = !taken[k] && conflict(&b->launch.v[k], x);
        if (!waits && found.n < BATCH_MOST)
            found.launch[found.n++] = j;
    }
    return found;
}

/* The bytes of a matrix that fills a buffer; 0: it does not, or lies where the plan has no say. */
static uint64_t whole(const Chains *c, const Launch *l, int operand)
{
    const Build *b = c->b;
    const PlanMatmul *m = &l->matmul;
    const PlanBuffer *x = &b->buffer.v[l->buffer[operand]];
    const int64_t rows[3] = {m->transpose_a ? m->k : m->m, m->transpose_b ? m->n : m->k, m->m};
    const int64_t columns[3] = {m->transpose_a ? m->m : m->k, m->transpose_b ? m->k : m->n, m->n};
    const int64_t pitch[3] = {m->lda, m->ldb, m->ldc};
    uint64_t bytes = (uint64_t)(rows[operand] * columns[operand]) * plan_item_bytes(x);
    bool fits = plan_is_laid(b, c->layout, l->buffer[operand]) && !l->shift[operand] &&
                pitch[operand] == columns[operand] && x->bytes == bytes;
    return fits && bytes % PLAN_ALIGN == 0 ? bytes : 0;
}

static uint32_t buffer_of(const Build *b, const Batch *x, uint32_t i, int operand)
{
    return b->launch.v[x->launch[i]].buffer[operand];
}

static bool all_same(const Build *b, const Batch *x, int operand)
{
    bool same = operand < 2;
    for (uint32_t i = 1; i < x->n; i++)
        same = same && buffer_of(b, x, i, operand) == buffer_of(b, x, 0, operand) &&
               b->launch.v[x->launch[i]].shift[operand] == b->launch.v[x->launch[0]].shift[operand];
    return same;
}

static bool in_chain(const Chains *c, uint32_t buffer) { return c->next[buffer] || c->b->buffer.v[buffer].behind; }

/* Backward products meet the chains of forward ones in another order. */
static void follow_chain(const Chains *c, Batch *x, int operand)
{
    for (uint32_t i = 0; i < x->n; i++)
        for (uint32_t k = i + 1; k < x->n; k++)
            if (c->next[buffer_of(c->b, x, k, operand)] == buffer_of(c->b, x, i, operand) + 1) {
                uint32_t before = x->launch[k]; /* goes to where the one behind it stands */
                memmove(x->launch + i + 1, x->launch + i, (k - i) * sizeof *x->launch);
                x->launch[i] = before;
                k = i;
            }
}

/* Do the matrices of this operand lie behind each other, or can they? */
static bool can_lie(const Chains *c, const Batch *x, int operand)
{
    const Build *b = c->b;
    if (all_same(b, x, operand))
        return true;
    bool chained = in_chain(c, buffer_of(b, x, 0, operand));
    for (uint32_t i = 0; i < x->n; i++) {
        uint32_t buffer = buffer_of(b, x, i, operand);
        if (!whole(c, &b->launch.v[x->launch[i]], operand) || in_chain(c, buffer) != chained)
            return false;
        if (i && !plan_may_follow(b, c->layout, buffer_of(b, x, i - 1, operand), buffer))
            return false;
        if (chained && i && b->buffer.v[buffer].behind != buffer_of(b, x, i - 1, operand) + 1)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (buffer_of(b, x, k, operand) == buffer)
                return false;
    }
    return true;
}

static bool all_can_lie(const Chains *c, const Batch *x)
{
    return can_lie(c, x, 0) && can_lie(c, x, 1) && can_lie(c, x, 2);
}

static void lay(Chains *c, const Batch *x, int operand)
{
    Build *b = c->b;
    for (uint32_t i = 1; i < x->n && !all_same(b, x, operand); i++) {
        uint32_t before = buffer_of(b, x, i - 1, operand), buffer = buffer_of(b, x, i, operand);
        c->next[before] = buffer + 1;
        b->buffer.v[buffer].behind = before + 1;
    }
}

static Launch batch_of(const Build *b, const Batch *x)
{
    Launch l = b->launch.v[x->launch[0]];
    PlanMatmul *m = &l.matmul;
    int64_t step[3];
    uint32_t n = 3 * x->n;
    uint32_t *buffer = NEW_ARRAY(b->arena, uint32_t, n);
    uint64_t *shift = NEW_ARRAY(b->arena, uint64_t, n);
    bool *writes = NEW_ARRAY(b->arena, bool, n);
    l.bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const Launch *from = &b->launch.v[x->launch[i / 3]];
        buffer[i] = from->buffer[i % 3];
        shift[i] = from->shift[i % 3];
        writes[i] = from->writes[i % 3];
        l.bytes += i % 3 ? 0 : from->bytes;
    }
    for (int k = 0; k < 3; k++) {
        const PlanBuffer *of = &b->buffer.v[buffer[k]];
        step[k] = all_same(b, x, k) ? 0 : (int64_t)(of->bytes / plan_item_bytes(of));
        l.bytes -= all_same(b, x, k) ? (double)(x->n - 1) * (double)of->bytes : 0;
    }
    m->batch = x->n;
    m->step_a = step[0];
    m->step_b = step[1];
    m->step_c = step[2];
    l.rows *= x->n;
    l.flops *= x->n;
    l.buffer = buffer;
    l.shift = shift;
    l.writes = writes;
    l.n_touched = n;
    return l;
}

void plan_batch(Build *b, PlanLayout *layout, uint64_t most)
{
    ArenaMark mark = arena_mark(b->f->tmp);
    Launch *before = b->launch.v, *now = NEW_ARRAY(b->arena, Launch, b->launch.n + 1);
    size_t n_before = b->launch.n, n = 0;
    bool *taken = NEW_ARRAY(b->f->tmp, bool, b->launch.n + 1);
    Chains c = {b, layout, NEW_ARRAY(b->f->tmp, uint32_t, b->buffer.n + 1),
                NEW_ARRAY(b->f->tmp, uint32_t, b->buffer.n + 1), NEW_ARRAY(b->f->tmp, uint32_t, b->buffer.n + 1)};
    find_lives(&c);
    for (uint32_t i = 0; i < n_before; i++) {
        if (taken[i])
            continue;
        Batch x = {{i}, 1};
        if (before[i].kind == LAUNCH_MATMUL)
            x = find(&c, i, taken);
        for (int k = 0; k < 3 && x.n > 1; k++)
            follow_chain(&c, &x, k);
        while (x.n > 1 && !all_can_lie(&c, &x) && x.launch[x.n - 1] != i)
            x.n--;
        bool fits = x.n > 1 && all_can_lie(&c, &x);
        for (int k = 0; k < 3 && fits; k++)
            lay(&c, &x, k);
        for (uint32_t k = 0; k < x.n && fits; k++)
            taken[x.launch[k]] = true;
        now[n++] = fits ? batch_of(b, &x) : before[i];
    }
    b->launch.v = now;
    b->launch.n = n;
    plan_place(b);
    if (b->plan->arena_bytes > most) {
        b->launch.v = before;
        b->launch.n = n_before;
        for (size_t i = 0; i < b->buffer.n; i++)
            b->buffer.v[i].behind = 0;
        plan_place(b);
    }
    arena_reset(b->f->tmp, mark);
}
