/* registers.c - register pressure: how many of a thread's registers the values of a kernel take.
 *
 * In:  a scheduled kernel, mapped to threads or not.     Out: how many live at one time, about; whether
 *      its indices need one register each or two.
 * The one idea: a value lives from where it is computed to where it is last wanted, and through every
 * loop that begins in between. Compilers move statements about, so this is for choosing between texts,
 * not for counting.
 */
#include "device.h"
#include "compiler/kernel/touches.h"

#include <math.h>

typedef struct Life {
    uint32_t from, to; /* statements + 1; from 0: never computed */
} Life;

typedef struct Lives {
    const Kernel *k;
    Life *life;    /* by expression */
    uint32_t *in;  /* by statement: the innermost loop around it, + 1 */
    uint32_t *end; /* by loop: its last statement, + 1 */
} Lives;

/* ---- where values are wanted ---- */

static void want(Lives *l, Ex e, uint32_t at)
{
    if (l->life[e].from)
        l->life[e].to = at;
}

/* At statement number `at`, counted from 1. Of what moves between an array and a register its inputs count, too: compilers keep
 * some of them, and without these kernels spill that are given 128 registers. */
static void want_all(Lives *l, const KStmt *s, uint32_t at, KTouches *of)
{
    of->n = 0;
    kernel_touches(l->k, s, of);
    for (int i = 0; i < 3; i++)
        want(l, kx(l->k, s->ex)->in[i], at);
    for (size_t i = 0; i < of->n; i++) {
        const KTouch *t = &of->v[i];
        if (t->thing == OF_VALUE && t->how == WRITES)
            l->life[t->number] = (Life){at, at};
        else if (t->thing == OF_VALUE)
            want(l, t->number, at);
    }
}

static void walk(Lives *l)
{
    uint32_t loop = 0;
    KTouches of = {0};
    for (uint32_t i = 0; i < l->k->stmt.n; i++) {
        const KStmt *s = &l->k->stmt.v[i];
        if (s->kind == KS_END) {
            l->end[loop - 1] = i + 1;
            loop = l->in[loop - 1];
        }
        l->in[i] = loop;
        want_all(l, s, i + 1, &of);
        if (kernel_opens(s))
            loop = i + 1;
    }
}

/* What was computed before a loop is there until the loop ends. */
static uint32_t last_wanted(const Lives *l, Life x)
{
    uint32_t to = x.to;
    for (uint32_t loop = l->in [x.to - 1]; loop > x.from; loop = l->in[loop - 1])
        to = l->end[loop - 1];
    return to;
}

/* Registers of a value: contiguous elements that a thread holds together, or the two of a 64-bit integer. What is loaded for pieces
 * lies there as in memory, so that two numbers of 16 bits have one. */
static int32_t width_of(const Lives *l, Ex e)
{
    const KEx *x = kx(l->k, e);
    for (uint32_t loop = l->in [l->life[e].from - 1]; loop; loop = l->in[loop - 1]) {
        const KStmt *s = &l->k->stmt.v[loop - 1];
        if (s->width && x->deps & ix_bit(l->k->ix, s->var))
            return !s->piece                      ? s->width
                   : x->kind != KX_LOAD           ? s->piece
                   : l->k->buffer.v[x->slot].half ? s->width / 2
                                                  : s->width;
    }
    return x->type == KT_INT ? 2 : 1;
}

uint32_t kernel_register_pressure(const Kernel *k)
{
    size_t n = k->stmt.n;
    Lives l = {.k = k,
               .life = NEW_ARRAY(k->arena, Life, k->ex.n),
               .in = NEW_ARRAY(k->arena, uint32_t, n + 1),
               .end = NEW_ARRAY(k->arena, uint32_t, n + 1)};
    int32_t *change = NEW_ARRAY(k->arena, int32_t, n + 2), now = 0, most = 0;
    walk(&l);
    for (Ex e = 1; e < k->ex.n; e++)
        if (l.life[e].from) {
            change[l.life[e].from] += width_of(&l, e);
            change[last_wanted(&l, l.life[e])] -= width_of(&l, e);
        }
    for (size_t i = 0; i <= n; i++) {
        now += change[i];
        most = now > most ? now : most;
    }
    return (uint32_t)most;
}

/* A compiler may move all loads of a loop ahead of what needs them, and the addresses of all that it touches. */
uint32_t kernel_loads_in_flight(const Kernel *k)
{
    uint32_t most = 0;
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *loop = &k->stmt.v[i];
        uint32_t n = 0;
        if (loop->kind != KS_LOOP || !loop->mapped || loop->threads == WARPS_OF_ROW)
            continue;
        for (size_t j = i + 1, end = kernel_loop_end(k, i); j < end; j++) {
            const KStmt *s = &k->stmt.v[j];
            if (s->kind == KS_LET && kx(k, s->ex)->kind == KX_LOAD)
                n += loop->width ? loop->width + 1 : 2;
            n += s->kind == KS_STORE;
        }
        most = n > most ? n : most;
    }
    return most;
}

/* ---- indices ---- */

/* The most that the terms of 32 bits can add up to, whatever their signs. */
static double reach(const Kernel *k, Ix ix)
{
    const IxForm *f = ix_form(k->ix, ix);
    double sum = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(k->ix, f->t[i].var);
        double most = f->t[i].var == 0 ? 1 : fmax(fabs((double)v->lo), fabs((double)v->hi));
        double coef = (double)ix_dim_at(k->ix, f->t[i].coef);
        bool wide = kernel_var_is_wide(k, f->t[i].var);
        sum += wide ? coef : fabs((double)f->t[i].mult) * coef * most;
    }
    return sum;
}

static bool fits(const Kernel *k)
{
    const double most = 1 << 30; /* as much again is for steps that go past the end */
    double parts = (double)k->partitions;
    bool good, all = k->device.mapping.index == INDEX_NARROW;
    good = (double)ix_dim_at(k->ix, k->rows) + (double)k->chunk < (all ? most : 2 * most); /* a size, too */
    for (Ix i = 1; i < k->ix->form.n && good; i++)
        good = reach(k, i) < 2 * most - 65536;
    for (size_t i = 0; i < k->buffer.n && good; i++)
        good = k->buffer.v[i].part < 0 || (all ? parts : 1) * (double)k->buffer.v[i].elements < most;
    return good;
}

KIndex kernel_index(const Kernel *k)
{
    Kernel x = *k;
    for (x.device.mapping.index = INDEX_NARROW; x.device.mapping.index > INDEX_WIDE; x.device.mapping.index--)
        if (fits(&x))
            break;
    return x.device.mapping.index;
}

/* In how many rounds a thread that takes `width` elements loads 64 bytes; 1 of long ones and of those that compute for longer
 * than they wait for memory. */
int64_t kernel_rounds_in_flight(const Kernel *k, size_t loop, uint8_t width)
{
    const Tuned *tuned = k->target->tuned;
    int64_t bytes = 0, cost = 0;
    size_t end = kernel_loop_end(k, loop);
    for (size_t i = loop; i < end; i++) {
        const KEx *x = kx(k, k->stmt.v[i].ex);
        if (k->stmt.v[i].kind != KS_LET)
            continue;
        cost += kx_cost(x) * width;
        bytes += x->kind == KX_LOAD && !k->buffer.v[x->slot].tile ? (k->buffer.v[x->slot].half ? 2 : 4) * width : 0;
    }
    if (cost >= tuned->cost_of_byte * bytes)
        return 1;
    int64_t times = bytes ? tuned->bytes_in_flight / bytes : 1, most = tuned->statements_max / (int64_t)(end - loop);
    return times < most ? times : most;
}

void kernel_count_registers(Kernel *k, KIndex most)
{
    KIndex index = kernel_index(k);
    k->device.mapping.index = index < most ? index : most;
    k->device.mapping.pressure = kernel_register_pressure(k);
    k->device.mapping.in_flight = kernel_loads_in_flight(k);
}
