/* perf_memory.c - what the memory of a GPU holds while a plan's launches are walked.
 *
 * In:  a plan, the model it is of.   Out: the numbers that kernels load, what they store.
 * The one idea: what branches and addresses are made of is true: arguments that lie in memory are the plan's, integers that a
 * launch has stored are kept, tokens are in their range; numbers of float tensors are made up.
 */
#include "perf.h"

/* Integers of a page. Of a large launch a few blocks are walked, so most pages of what it writes are never made. */
enum { PAGE = 512 };

uint64_t perf_address(uint32_t buffer) { return (uint64_t)(buffer + 1) << PERF_BUFFER_BITS; }

static uint64_t mixed(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15ull;
    return x ^ x >> 29;
}

/* Numbers in (-2, -0.5] or [0.5, 2) that are such in bf16, twice a word, and in float32. */
static uint64_t some_reals(uint64_t address)
{
    uint64_t r = mixed(address), out = 0;
    for (int i = 0; i < 4; i++)
        out |= (0x3f00u | (r >> 16 * i & 0x807f) | (r >> (16 * i + 7) & 0x80)) << 16 * i;
    return out;
}

PerfMemory *perf_memory(Arena *arena, const Plan *plan, const Model *model)
{
    enum { SMALL = 8 };
    PerfMemory *m = NEW(arena, PerfMemory);
    *m = (PerfMemory){.arena =
                          arena_new(arena_ctx(arena)), /* of its own: a walk gives back all that it takes of another */
                      .plan = plan,
                      .host = NEW_ARRAY(arena, double, plan->n_host + 1),
                      .below = NEW_ARRAY(arena, uint64_t, plan->n_buffer + 1),
                      .page = NEW_ARRAY(arena, uint64_t **, plan->n_buffer + 1)};
    for (size_t i = 0; i < plan->n_host; i++)
        m->host[i] = 1;
    for (size_t i = 0; i < plan->n_buffer; i++) {
        const PlanBuffer *b = &plan->buffer[i];
        const Ext *ext = b->ext >= 0 ? &plan->ext[b->ext].ext : NULL;
        int64_t below = ext && ext->kind == EXT_INPUT && model && b->dtype == DT_INT
                            ? model_input_range(model, ext->name).below
                            : 0;
        m->below[i] = below > 0 ? (uint64_t)below : SMALL;
    }
    return m;
}

/* Where the integer at a buffer's byte `at` is kept; NULL: its buffer keeps none, or its page does not. */
static uint64_t *kept(const PerfMemory *m, uint64_t buffer, uint64_t at)
{
    if (buffer >= m->plan->n_buffer || !m->page[buffer] || at / 8 >= m->plan->buffer[buffer].bytes / 8)
        return NULL;
    uint64_t *page = m->page[buffer][at / 8 / PAGE];
    return page ? &page[at / 8 % PAGE] : NULL;
}

/* An element is kept as what it is and one more, so that 0 is one that nobody has stored. */
uint64_t perf_load(void *memory, uint64_t address)
{
    const PerfMemory *m = memory;
    const Plan *p = m->plan;
    uint64_t buffer = (address >> PERF_BUFFER_BITS) - 1, at = address & ((1ull << PERF_BUFFER_BITS) - 1);
    if (buffer == p->numbers && p->n_number && at / 8 < p->n_number) {
        const PlanNumber *x = &p->number[at / 8];
        return x->kind == INT_PLACE ? perf_address(x->buffer) + x->bits
                                    : plan_number(p, at / 8, &(RandomKey){1, 1, 0}, m->host);
    }
    if (buffer >= p->n_buffer || p->buffer[buffer].dtype != DT_INT)
        return some_reals(address);
    const uint64_t *x = kept(m, buffer, at);
    return x && *x ? *x - 1 : (mixed(address / 8 * 0x2545f4914f6cdd1dull) >> 20) % m->below[buffer];
}

void perf_store(void *memory, uint64_t address, unsigned bytes, uint64_t value)
{
    PerfMemory *m = memory;
    const Plan *p = m->plan;
    uint64_t buffer = (address >> PERF_BUFFER_BITS) - 1, at = address & ((1ull << PERF_BUFFER_BITS) - 1);
    if (buffer >= p->n_buffer || !m->page[buffer] || bytes != 8 || at / 8 >= p->buffer[buffer].bytes / 8)
        return;
    if (!m->page[buffer][at / 8 / PAGE])
        m->page[buffer][at / 8 / PAGE] = NEW_ARRAY(m->arena, uint64_t, PAGE);
    *kept(m, buffer, at) = value + 1;
}

bool perf_keeps(const Plan *p, const Launch *l)
{
    bool any = false;
    for (uint32_t i = 0; i < l->n_touched; i++)
        any = any || (l->writes[i] && p->buffer[l->buffer[i]].dtype == DT_INT);
    return any;
}

void perf_keep(PerfMemory *m, const Launch *l)
{
    for (uint32_t i = 0; i < l->n_touched; i++) {
        const PlanBuffer *b = &m->plan->buffer[l->buffer[i]];
        if (l->writes[i] && b->dtype == DT_INT && !m->page[l->buffer[i]])
            m->page[l->buffer[i]] = NEW_ARRAY(m->arena, uint64_t *, b->bytes / 8 / PAGE + 1);
    }
}

bool perf_keep_again(PerfMemory *m, const Launch *first, const Launch *l)
{
    bool same = first->n_touched == l->n_touched;
    for (uint32_t i = 0; same && i < l->n_touched; i++)
        same = m->plan->buffer[first->buffer[i]].bytes == m->plan->buffer[l->buffer[i]].bytes;
    for (uint32_t i = 0; same && i < l->n_touched; i++)
        if (l->writes[i] && m->page[first->buffer[i]])
            m->page[l->buffer[i]] = m->page[first->buffer[i]];
    return same;
}
