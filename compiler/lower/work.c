/* work.c - how much a scheduled kernel computes.
 *
 * In:  statements of a Kernel, its rows.     Out: operations of one launch, by how fast a
 *      processor does them.
 * The one idea: the statements are what is printed, each of them one
 * operation, so walking them with the lengths of the open loops counts what will run; nothing
 * is guessed from the graph.
 */
#include "lower_kernel.h"

#include <math.h>

enum { CALL = 16 }; /* kx_cost() from which on an operation is a function */

typedef struct Count {
    const Kernel *k;
    PlanWork work;
    double times[NEST_MAX + 3]; /* how often the body of each open loop runs */
    IVar lane[NEST_MAX + 3];    /* 0, or the vector loop: along which several elements are computed together */
    int depth;
    bool thread; /* counted is what a thread does of one row */
} Count;

static double length(const Kernel *k, IVar v) { return (double)ix_dim_at(k->ix, ix_info(k->ix, v)->extent); }

/* Rounds of a loop that fall to a thread. */
static double rounds(const Kernel *k, const KStmt *s)
{
    double n = length(k, s->var), width = s->width ? s->width : 1, lanes = k->device.mapping.lanes;
    if (!s->mapped)
        return n;
    double threads = s->threads == THREADS_OF_ROW    ? k->device.mapping.row_threads
                     : s->threads == THREADS_OF_WARP ? lanes
                                                     : k->device.mapping.row_threads / lanes;
    return ceil(n / (threads * width)) * width;
}

static void open_loop(Count *c, const KStmt *s, double rows)
{
    const Kernel *k = c->k;
    double n = c->thread               ? (s->kind == KS_LOOP ? rounds(k, s) : 1)
               : s->kind == KS_LOOP    ? length(k, s->var)
               : s->kind == KS_VECTORS ? 1
               : s->kind == KS_PART    ? (double)k->partitions
               : k->part               ? rows / (double)k->partitions
                                       : rows;
    c->times[c->depth + 1] = c->times[c->depth] * n;
    c->lane[c->depth + 1] = !s->simd ? 0 : s->kind == KS_ROWS ? k->row : s->var;
    c->depth++;
}

/* Are the elements of the loop contiguous, or one and the same? */
static bool together(const Kernel *k, Ix at, IVar lane)
{
    int64_t slope;
    return ix_slope(k->ix, at, lane, &slope) && (slope == 0 || slope == 1);
}

static void add(Count *c, double operations, bool together)
{
    double n = c->times[c->depth] * operations;
    *(c->lane[c->depth] && together ? &c->work.lane : &c->work.single) += n;
}

static void add_ex(Count *c, const KEx *x)
{
    int cost = kx_cost(x);
    IVar lane = c->lane[c->depth];
    if (x->kind == KX_RAND)
        c->work.random += c->times[c->depth];
    else if (cost >= CALL && lane)
        c->work.call += c->times[c->depth] * cost / CALL;
    else
        add(c, cost, x->kind != KX_LOAD || !lane || together(c->k, x->ix, lane));
}

static void add_product(Count *c, const KProduct *p)
{
    c->work.product += 2 * c->times[c->depth] * length(c->k, p->m) * length(c->k, p->n) * length(c->k, p->k);
}

static void add_statement(Count *c, const KStmt *s)
{
    const Kernel *k = c->k;
    IVar lane = c->lane[c->depth];
    if (s->step &&
        !(s->step & STEP_VALUE)) /* the steps of a statement are one operation, which counts where its value is */
        return;
    switch (s->kind) {
    case KS_VAR: add(c, 8, false); break;
    case KS_LET: add_ex(c, kx(k, s->ex)); break;
    case KS_ACC:
    case KS_ACC_ADD:
    case KS_ARRAY_PUT:
    case KS_ARRAY_GET:
    case KS_BATCH_IN:
    case KS_BATCH_OUT: add(c, 1, true); break;
    case KS_ARRAY_FILL: c->work.lane += c->times[c->depth] * (double)k->array.v[s->array].elements; break;
    case KS_ARRAY_ADD: add(c, 2, true); break;
    case KS_BATCH_RUN: c->work.call += c->times[c->depth] * s->n_acc; break;
    case KS_STORE: add(c, 1, !lane || together(k, k->root.v[s->root].at, lane)); break;
    case KS_SINK: add(c, 3, !lane || together(k, k->root.v[s->root].at, lane)); break;
    case KS_PRODUCT: add_product(c, &k->product.v[s->root]); break;
    default: break;
    }
}

static PlanWork count(Count c)
{
    const Kernel *k = c.k;
    double rows = (double)ix_dim_at(k->ix, k->rows);
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->rest) /* rounds that are counted with those of the vectors */
            i = kernel_loop_end(k, i);
        else if (kernel_opens(s))
            open_loop(&c, s, rows);
        else if (s->kind == KS_END)
            c.depth--;
        else
            add_statement(&c, s);
    }
    return c.work;
}

PlanWork kernel_work(const Kernel *k) { return count((Count){.k = k, .times = {1}}); }

double kernel_thread_operations(const Kernel *mapped)
{
    PlanWork w = count((Count){.k = mapped, .times = {1}, .thread = true});
    return w.lane + w.single + w.call * CALL + w.product / mapped->device.mapping.row_threads;
}

/* ---- too much for one kernel ---- */

/* Every element once, sums by what they read. */
static double least_work(const Fusion *f, const Group *gr)
{
    double n = 0;
    for (size_t m = 0; m < gr->member.n; m++) {
        Val v = gr->member.v[m];
        const Node *x = node_at(f->g, v);
        n += (double)f->elements[op_info((Op)x->op)->class == CLASS_REDUCE ? x->in[0] : v];
    }
    return n;
}

/* Of a device's kernel: do the other threads of a row wait for one that has much to do? Mostly small loops that hang on each other, which a
 * thread for each row does in less time. */
static bool waits(Kernel *k, PlanWork w, const LowerPasses *passes)
{
    const Tuned *tuned = k->target->tuned;
    const Kernel *mapped = passes->map(passes->user, k);
    double each = kernel_thread_operations(mapped), rows = (double)ix_dim_at(k->ix, k->rows);
    double all = (w.lane + w.single + w.call * CALL + w.product) / rows;
    return !mapped->device.mapping.by_row && each > (double)tuned->waiting_operations &&
           each * mapped->device.mapping.row_threads > (double)tuned->waiting_times * all;
}

bool lower_has_low_utilisation(Kernel *k, const Fusion *f, uint32_t group, const LowerPasses *passes)
{
    /* boundaries of examples have up to 4 operations for an element, those of many exponentials 11 */
    const double repeats = (double)f->target->tuned->repeated_work;
    PlanWork w = kernel_work(k);
    return w.lane + w.single + w.call * CALL > repeats * least_work(f, &f->group.v[group]) ||
           (f->target->threads && waits(k, w, passes));
}
