/* emit_threads.c - what the threads of a row do together: totals, sums over rows, barriers.
 *
 * In:  statements that passes of gpu/ have put into a kernel.     Out: calls of the prelude's functions in the printer's body.
 * The one idea: a total of one value is a statement; several that are one step are a call, of which each thread of a
 * warp does a part. What crosses threads does so by the names of threads.cu alone.
 */
#include "emit_build.h"

#include <inttypes.h>
#include <stdio.h>

void put_for(Printer *p, const char *type, const char *name, const char *extent, bool mapped, KThreads threads,
             uint32_t width, uint32_t warp)
{
    static const char *const first[] = {"thread", "thread %% %u", "thread / %u"};
    static const char *const step[] = {" += THREADS", " += %u", " += THREADS / %u"};
    const uint32_t lanes = p->k->device.mapping.lanes;
    buf_printf(&p->body, "for (%s %s = ", type, name);
    if (warp)
        buf_printf(&p->body, "(thread ^ %u)", 32 * warp);
    else
        buf_printf(&p->body, mapped ? first[threads] : "0", lanes);
    if (width > 1)
        buf_printf(&p->body, " * %u", width);
    buf_printf(&p->body, "; %s < %s; %s", name, extent, name);
    buf_printf(&p->body, !mapped ? "++" : threads == WARPS_OF_ROW && lanes == 32 ? " += WARPS" : step[threads], lanes);
    if (width > 1)
        buf_printf(&p->body, " * %u", width);
    buf_putc(&p->body, ')');
}

/* ---- the next row ---- */

/* Each row of a tensor has a warp; those of one warp stand together. */
void emit_row_prefetch(Printer *p, const KStmt *s)
{
    const KPrefetch *x = &p->k->prefetch.v[s->root];
    begin_line(p);
    if (x->nth == 1) {
        buf_printf(&p->body, "if (thread / 32 == %u && r + 1 < last) {\n", x->warp);
        p->depth++;
        begin_line(p);
    }
    p->next_row = true;
    buf_printf(&p->body, "vwn_prefetch_row(&%s, ", element_text(p, x->buffer, x->at));
    p->next_row = false;
    put_ix(p, x->length);
    buf_puts(&p->body, ");\n");
    if (x->nth == x->of)
        close_brace(p);
}

char *share_name(Printer *p, Ex ex, uint32_t root)
{
    return ex ? ex_text(p, ex) : arena_printf(p->k->arena, "a%u", root);
}

void emit_thread(Printer *p, const KStmt *s)
{
    const KRoot *r = s->ex ? NULL : &p->k->root.v[s->root];
    bool max = (r ? r->op : (Op)kx(p->k, s->ex)->op) == OP_AMAX;
    begin_line(p);
    if (s->kind == KS_BARRIER) {
        buf_printf(&p->body, "%s;\n", p->k->device.mapping.row_threads > 32 ? "__syncthreads()" : "__syncwarp()");
        return;
    }
    const char *share = share_name(p, s->ex, s->root), *what = max ? "max" : "sum";
    if (s->kind == KS_SUM_NEW)
        buf_printf(&p->body, "%s %s = %s", type_name(p, kx(p->k, r->value)), share, neutral(p, r->op));
    else if (s->kind == KS_WARP)
        buf_printf(&p->body, "%s = vwn_warp_%s(%s)", share, what, share);
    else if (s->kind == KS_WARP_PUT)
        buf_printf(&p->body, "vwn_warp_put(warps + %u * WARPS, %s)", s->at, share);
    else if (s->kind == KS_WARP_TAKE)
        buf_printf(&p->body, "%s = vwn_warps_%s<WARPS>(warps + %u * WARPS, %s)", share, what, s->at, share);
    else
        buf_printf(&p->body, "if (thread == 0) %s = %s", element_text(p, r->buffer, r->at), share);
    buf_puts(&p->body, ";\n");
}

/* The sums that each thread has for the elements of an array; a row that one warp has needs no slots. */
void emit_array_sums(Printer *p, const KStmt *s)
{
    const KArray *a = &p->k->array.v[s->array];
    bool block = p->k->device.mapping.row_threads > 32;
    int n = (int)a->elements, t = s->array;
    begin_line(p);
    if (s->kind == KS_ARRAY_TAKE) {
        if (block)
            buf_printf(&p->body, "vwn_store_sums<%d, WARPS>(warps + %u * WARPS, t%d);\n", n, s->at, t);
        else
            buf_printf(&p->body, "if (thread < %d) t%d[thread] = z%d;\n", n, t, t);
        return;
    }
    buf_printf(&p->body, "const %s z%d = vwn_warp_sums<%d>(e%d);\n", p->d->real, t, n, t);
    if (block) {
        begin_line(p);
        buf_printf(&p->body, "vwn_put_sums<%d, WARPS>(warps + %u * WARPS, z%d);\n", n, s->at, t);
    }
}

/* ---- totals of a step ---- */

/* What they are called together, by the first of them: "y5" all of them, "w5" that of a lane. */
static char *step_name(Printer *p, char letter, const KTotal *first)
{
    return first->ex ? arena_printf(p->k->arena, "%c%u", letter, p->number[first->ex])
                     : arena_printf(p->k->arena, "%ca%u", letter, first->root);
}

/* Each thread of a warp adds up one of the totals, of what all threads of the warp have. */
static void put_sums_of_warp(Printer *p, const KTotals *t, const char *all, const char *own)
{
    begin_line(p);
    buf_printf(&p->body, "%s %s[%u] = {", p->d->real, all, t->n);
    for (uint32_t j = 0; j < t->n; j++)
        buf_printf(&p->body, "%s%s", j ? ", " : "", share_name(p, t->of[j].ex, t->of[j].root));
    buf_puts(&p->body, "};\n");
    begin_line(p);
    buf_printf(&p->body, "const %s %s = vwn_warp_sums<%u>(%s);\n", p->d->real, own, t->n, all);
}

/* Totals that are not a lane's alone are each thread's. */
static void put_shared(Printer *p, const KTotals *t, const char *all)
{
    for (uint32_t j = 0; j < t->n; j++)
        if (!t->of[j].alone) {
            begin_line(p);
            buf_printf(&p->body, "%s = %s[%u];\n", share_name(p, t->of[j].ex, t->of[j].root), all, j);
        }
}

static void put_column(Printer *p, uint32_t column)
{
    buf_printf(&p->body, "const %s x%u = ", p->d->real, emit_column_number(p, column));
}

/* In a warp each thread adds up one of them, and of several warps each takes one; what others want all threads are given. */
void emit_totals(Printer *p, const KStmt *s)
{
    const KTotals *t = kernel_totals(p->k, s);
    const char *all = step_name(p, 'y', t->of), *own = step_name(p, 'w', t->of);
    bool shared = false;
    for (uint32_t j = 0; j < t->n; j++)
        shared = shared || !t->of[j].alone;
    if (s->kind == KS_WARP) {
        put_sums_of_warp(p, t, all, own);
        if (s->column) {
            begin_line(p);
            put_column(p, s->column);
            buf_printf(&p->body, "%s;\n", own);
        }
        if (shared) {
            begin_line(p);
            buf_printf(&p->body, "vwn_share_sums<%u>(%s, %s);\n", t->n, own, all);
        }
    } else if (s->kind == KS_WARP_PUT) {
        begin_line(p);
        buf_printf(&p->body, "vwn_put_sums<%u, WARPS>(warps + %u * WARPS, %s);\n", t->n, s->at, own);
        return;
    } else if (s->column || shared) {
        begin_line(p);
        if (s->column)
            put_column(p, s->column);
        buf_printf(&p->body, "vwn_take_%s<%u, WARPS>(warps + %u * WARPS%s%s);\n", shared ? "sums" : "own", t->n, s->at,
                   shared ? ", " : "", shared ? all : "");
    }
    put_shared(p, t, all);
}

/* ---- sums over rows in shared memory ---- */

void emit_part_store(Printer *p, const KBuffer *x, size_t slot, const char *size)
{
    if (x->device.swizzled) {
        buf_printf(&p->body, "vwn_store_turned<THREADS>(&p%zu[part * %s], q%zu, %s, ", slot, size, slot, size);
        put_dim(p, ix_info(p->k->ix, x->device.swizzled)->extent);
        buf_puts(&p->body, ");\n");
        return;
    }
    buf_puts(&p->body, "#pragma unroll 4\n");
    begin_line(p);
    put_for(p, p->k->device.mapping.index == INDEX_WIDE ? "int64_t" : "int32_t", "z", size, true, THREADS_OF_ROW, 1, 0);
    buf_printf(&p->body, "\n%*sp%zu[part * %s + z] = q%zu[z];\n", (p->depth + 1) * 4, "", slot, size, slot);
}
