/* plan_text.c - plans as text, for people and tests.
 *
 * In:  a plan.     Out: its launches and buffers, its kernel programs, its kernels as they are compiled.
 */
#include "compiler/kernel/kernel_text.h"
#include "plan.h"

#include <inttypes.h>

static void dump_matmul(Buf *out, const Plan *p, const Launch *l)
{
    const PlanMatmul *m = &l->matmul;
    (void)p;
    buf_printf(out, "matmul%s%s%s%s%s m %" PRId64 " n %" PRId64 " k %" PRId64 " batch %" PRId64,
               m->rounded ? " rounded" : "", m->half ? " " : "", m->half ? half_word(m->half) : "",
               m->transpose_a ? " ta" : "", m->transpose_b ? " tb" : "", m->m, m->n, m->k, m->batch);
    buf_printf(out, " ld %" PRId64 " %" PRId64 " %" PRId64 " step %" PRId64 " %" PRId64 " %" PRId64 "%s", m->lda,
               m->ldb, m->ldc, m->step_a, m->step_b, m->step_c, m->accumulate ? " accumulate" : "");
}

static void dump_expert(Buf *out, const Plan *p, const Launch *l)
{
    const PlanExpert *e = &l->expert;
    (void)p;
    buf_printf(out, "expert %s%s%s", e->what == EXPERT_DW ? "dw" : "y", e->half ? " " : "",
               e->half ? half_word(e->half) : "");
    buf_printf(out, " tokens %" PRId64 " choices %" PRId64 " experts %" PRId64 " in %" PRId64 " out %" PRId64,
               e->tokens, e->choices, e->experts, e->in, e->out);
}

static void dump_copy(Buf *out, const Plan *p, const Launch *l)
{
    (void)p;
    buf_printf(out, "copy rows %" PRId64 " of %" PRId64 " bytes from %" PRId64 " to %" PRId64, l->rows, l->copy.bytes,
               l->copy.from, l->copy.to);
}

static void dump_kernel(Buf *out, const Plan *p, const Launch *l)
{
    buf_printf(out, "%s rows %" PRId64 " grain %" PRId64, p->kernel[l->kernel].name, l->rows, l->grain);
    for (uint32_t k = 0; k < p->kernel[l->kernel].n_map; k++) {
        const LaunchMap *m = &l->map[k];
        buf_printf(out, " map %u", (unsigned)m->buffer);
        for (int i = MAP_RANK; i-- > 0;)
            buf_printf(out, "%s%" PRId64 " by %" PRId64 " of %u", i == MAP_RANK - 1 ? " (" : ", ", m->extent[i],
                       m->stride[i], (unsigned)m->box[i]);
        buf_puts(out, ")");
    }
}

static void dump_launch(Buf *out, const Plan *p, const Launch *l)
{
    static void (*const of_kind[LAUNCH_KINDS])(Buf *, const Plan *, const Launch *) = {
#define LAUNCH(ID, name, ...) [LAUNCH_##ID] = dump_##name,
#include "launches.def"
#undef LAUNCH
    };
    of_kind[l->kind](out, p, l);
    if (l->items)
        buf_printf(out, " items %u", (unsigned)l->items);
    for (uint32_t k = 0; k < l->n_touched; k++) {
        buf_printf(out, " %s%u", l->writes[k] ? ">" : "b", l->buffer[k]);
        if (l->shift[k])
            buf_printf(out, "+%" PRIu64, l->shift[k]);
    }
    for (uint32_t k = 0; k < l->n_int; k++)
        if (l->ints[k].kind == INT_SEED)
            buf_printf(out, " seed:%s", l->ints[k].site);
        else if (l->ints[k].kind == INT_STEP)
            buf_puts(out, " step");
        else if (l->ints[k].kind == INT_FIRST)
            buf_printf(out, " first*%" PRId64, l->ints[k].value);
        else
            buf_printf(out, " %" PRId64, l->ints[k].value);
    for (uint32_t k = 0; k < l->n_scalar; k++) {
        buf_putc(out, ' ');
        if (l->scalars[k].host >= 0)
            buf_printf(out, "host%d", l->scalars[k].host);
        else
            buf_number(out, l->scalars[k].value);
    }
    buf_printf(out, " bytes %.0f", l->bytes);
    if (l->flops > 0)
        buf_printf(out, " flops %.0f", l->flops);
    buf_printf(out, "  # %s\n", l->name ? l->name : "");
}

static void dump_number(Buf *out, const Plan *p, size_t i)
{
    const PlanNumber *x = &p->number[i];
    buf_printf(out, "number %zu b%u+%zu", i, p->numbers, 8 * i);
    if (x->host >= 0)
        buf_printf(out, " host%d\n", x->host);
    else if (x->kind == INT_PLACE)
        buf_printf(out, " place b%u+%" PRIu64 "\n", x->buffer, x->bits);
    else if (x->kind == INT_CONST)
        buf_printf(out, " %" PRIu64 "\n", x->bits);
    else if (x->kind == INT_FIRST)
        buf_printf(out, " first*%" PRIu64 "\n", x->bits);
    else
        buf_printf(out, x->kind == INT_SEED ? " seed:%s\n" : " step\n", x->site);
}

void plan_dump(Buf *out, const Plan *p)
{
    buf_printf(out,
               "plan B %" PRId64 " T %" PRId64 " arena %" PRIu64 " bytes, %zu kernels, "
               "%zu launches\n",
               p->B, p->T, p->arena_bytes, p->n_kernel, p->n_launch);
    for (size_t i = 0; i < p->n_buffer; i++) {
        const PlanBuffer *x = &p->buffer[i];
        const char *type = x->dtype == DT_INT ? "int" : half_word(x->half);
        buf_printf(out, "buffer %zu %s %" PRIu64, i, type, x->bytes);
        if (x->ext >= 0)
            buf_printf(out, " ext %s", p->ext[x->ext].ext.name);
        else
            buf_printf(out, " at %" PRIu64, x->offset);
        buf_printf(out, "  # %s\n", x->name ? x->name : "");
    }
    for (size_t i = 0; i < p->n_number; i++)
        dump_number(out, p, i);
    for (size_t i = 0; i < p->n_launch; i++) {
        buf_printf(out, "launch %zu ", i);
        dump_launch(out, p, &p->launch[i]);
    }
    for (size_t i = 0; i < p->n_result; i++)
        buf_printf(out, "result %s b%u\n", p->result[i].name, p->result[i].buffer);
}

void plan_dump_programs(Buf *out, const Plan *p)
{
    kernels_begin(out, p->B, p->T);
    for (size_t i = 0; i < p->n_kernel; i++)
        if (p->kernel[i].program) /* of a device's library there is none */
            buf_puts(out, p->kernel[i].program);
}

void plan_dump_threads(Buf *out, const Plan *p)
{
    kernels_begin(out, p->B, p->T);
    for (size_t i = 0; i < p->n_kernel; i++)
        if (p->kernel[i].threads || p->kernel[i].program)
            buf_puts(out, p->kernel[i].threads ? p->kernel[i].threads : p->kernel[i].program);
}

void plan_dump_shown(Buf *out, const Plan *p)
{
    kernels_begin(out, p->B, p->T);
    for (size_t i = 0; i < p->n_kernel; i++) {
        const PlanKernel *k = &p->kernel[i];
        if (k->shown)
            buf_puts(out, k->shown);
        else if (k->program && !strncmp(k->program, "\nlibrary", 8))
            buf_puts(out, k->program);
    }
}

void plan_dump_kernels(Buf *out, const Plan *p)
{
    buf_put(out, p->prelude, p->prelude_length);
    for (size_t i = 0; i < p->n_kernel; i++) {
        buf_putc(out, '\n');
        buf_put(out, p->kernel[i].text, p->kernel[i].length);
    }
}

void plan_dump_device(Buf *out, const Plan *p)
{
    buf_put(out, p->device_prelude, p->device_prelude_length);
    for (size_t i = 0; i < p->n_kernel; i++) {
        if (!p->kernel[i].grid.threads)
            continue;
        buf_printf(out, "\n%s", p->kernel[i].where);
        buf_put(out, p->kernel[i].text, p->kernel[i].length);
    }
}
