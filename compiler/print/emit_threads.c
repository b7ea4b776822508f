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

/* What a thread holds of a sum over rows, or of a sum over a row. */
char *share_name(Printer *p, const KStmt *s)
{
    if (s->ex)
        return ex_text(p, s->ex);
    Buf b = buf_new(p->k->arena);
    buf_printf(&b, "a%u", s->root);
    return b.s;
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
    const char *share = share_name(p, s), *what = max ? "max" : "sum";
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

/* ---- many sums at once ---- */

/* What they are called together: by the first of them. */
static void put_sums_name(Printer *p, const KStmt *s, bool total)
{
    if (s->ex)
        buf_printf(&p->body, "%c%u", total ? 'w' : 'y', p->number[s->ex]);
    else
        buf_printf(&p->body, "%ca%u", total ? 'w' : 'y', s->root);
}

/* Of what the threads of a warp have. */
static void put_sums_of_warp(Printer *p, const KStmt *s)
{
    const uint32_t n = s->together;
    begin_line(p);
    buf_printf(&p->body, "%s ", p->d->real);
    put_sums_name(p, s, false);
    buf_printf(&p->body, "[%u] = {", n);
    for (uint32_t j = 0; j < n; j++)
        buf_printf(&p->body, "%s%s", j ? ", " : "", share_name(p, &s[j]));
    buf_puts(&p->body, "};\n");
    begin_line(p);
    buf_printf(&p->body, "const %s ", p->d->real);
    put_sums_name(p, s, true);
    buf_printf(&p->body, " = vwn_warp_sums<%u>(", n);
    put_sums_name(p, s, false);
    buf_puts(&p->body, ");\n");
}

/* What each lane has, and, if others want them, all for each thread. */
static void put_taken(Printer *p, const KStmt *s, bool left)
{
    const uint32_t n = s->together;
    bool in_warp = s->kind == KS_WARP;
    begin_line(p);
    if (s->column) {
        buf_printf(&p->body, "const %s x%u = ", p->d->real, emit_column_number(p, s->column));
        if (in_warp) {
            put_sums_name(p, s, true);
            buf_puts(&p->body, ";\n");
        }
    }
    if (in_warp && !left)
        return;
    if (in_warp && s->column)
        begin_line(p);
    if (in_warp) {
        buf_printf(&p->body, "vwn_share_sums<%u>(", n);
        put_sums_name(p, s, true);
    } else {
        buf_printf(&p->body, "vwn_take_%s<%u, WARPS>(warps + %u * WARPS", left ? "sums" : "own", n, s->at);
    }
    if (left) {
        buf_puts(&p->body, ", ");
        put_sums_name(p, s, false);
    }
    buf_puts(&p->body, ");\n");
    for (uint32_t j = 0; j < n; j++) {
        if (s[j].alone)
            continue;
        begin_line(p);
        buf_printf(&p->body, "%s = ", share_name(p, &s[j]));
        put_sums_name(p, s, false);
        buf_printf(&p->body, "[%u];\n", j);
    }
}

void emit_step_of_totals(Printer *p, const KStmt *s)
{
    bool left = false;
    for (uint32_t j = 0; j < s->together; j++)
        left = left || !s[j].alone;
    if (s->kind == KS_WARP)
        put_sums_of_warp(p, s);
    if (s->kind != KS_WARP_PUT) {
        if (left || s->column)
            put_taken(p, s, left);
        return;
    }
    begin_line(p);
    buf_printf(&p->body, "vwn_put_sums<%u, WARPS>(warps + %u * WARPS, ", s->together, s->at);
    put_sums_name(p, s, true);
    buf_puts(&p->body, ");\n");
}

/* ---- sums over rows in shared memory ---- */

char *part_size_text(Printer *p, size_t buffer)
{
    Buf before = begin_piece(p);
    put_part_size(p, (uint32_t)buffer);
    return end_piece(p, before);
}

/* Partial sums that a block has in shared memory. */
void emit_held_sums(Printer *p)
{
    for (size_t b = 0; b < p->k->buffer.n; b++) {
        if (!p->k->buffer.v[b].device.held)
            continue;
        char name[24];
        snprintf(name, sizeof name, "q%zu", slot_of(p, (uint32_t)b));
        begin_line(p);
        buf_printf(&p->body, p->d->array, p->d->real, name, part_size_text(p, b), "shared");
        buf_putc(&p->body, '\n');
    }
}

bool emit_swizzled_fill(Printer *p, size_t buffer)
{
    if (!p->k->buffer.v[buffer].device.swizzled)
        return false;
    begin_line(p);
    buf_printf(&p->body, "vwn_fill_turned<THREADS>(q%zu, %s);\n", slot_of(p, (uint32_t)buffer),
               part_size_text(p, buffer));
    return true;
}

void emit_held_stores(Printer *p)
{
    for (size_t b = 0; b < p->k->buffer.n; b++) {
        const KBuffer *x = &p->k->buffer.v[b];
        if (!x->device.held)
            continue;
        size_t slot = slot_of(p, (uint32_t)b);
        char *size = part_size_text(p, b);
        begin_line(p);
        if (x->device.swizzled) {
            buf_printf(&p->body, "vwn_store_turned<THREADS>(&p%zu[part * %s], q%zu, %s, ", slot, size, slot, size);
            put_dim(p, ix_info(p->k->ix, x->device.swizzled)->extent);
            buf_puts(&p->body, ");\n");
            continue;
        }
        buf_puts(&p->body, "#pragma unroll 4\n");
        begin_line(p);
        put_for(p, p->k->device.mapping.index == INDEX_WIDE ? "int64_t" : "int32_t", "z", size, true, THREADS_OF_ROW, 1,
                0);
        buf_printf(&p->body, "\n%*sp%zu[part * %s + z] = q%zu[z];\n", (p->depth + 1) * 4, "", slot, size, slot);
    }
}
