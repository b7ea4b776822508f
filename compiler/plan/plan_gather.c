/* plan_gather.c - launches of one kernel that do not wait for each other become one launch.
 *
 * In:  the launches of a plan for a device.     Out: fewer, that compute the same bits; places for its buffers.
 * The one idea: a block does not care which launch it is of. The text of the kernel becomes a function of a block's number
 * and of the arguments; in the kernel made of it a block looks up in memory which launch it belongs to, and what the arguments
 * of that one are. Layers repeat, so the launches of an update are a few kernels' and so are the second stages of sums.
 *
 * A launch goes to a later one of its kernel, past whatever stands between and has nothing to do with it, and else to an
 * earlier one. Both make some value live longer, so how many bytes may is limited, more and more, until the arena is hardly
 * larger than it was.
 */
#include "compiler/portable/device_call.h"
#include "plan_build.h"

/* Launches that are one from now on, in the order of the plan. */
typedef struct GatherRun {
    VEC(uint32_t) launch;
    uint64_t blocks;
    double kept; /* bytes that live longer for it */
} GatherRun;
typedef VEC(GatherRun) Runs;

/* Where in a list of runs something was done last, plus one. */
typedef struct Last {
    size_t read, written;
} Last;

typedef struct Gather {
    Build *b;
    const Launch *launch; /* as they were planned */
    bool *gathers;        /* by kernel: its text can be made a function */
    bool *always;         /* by kernel: each of its launches is made as if there were several */
    size_t casts;         /* so many are first */
    double limit;         /* of bytes that live longer, for each run */
    uint32_t list;        /* the buffer of arguments that lie in memory */
} Gather;

/* ---- the text ---- */

/* The parts of a kernel's text: what stands above, its bounds, its name, parameters, its body in braces. */
typedef struct GatherParts {
    const char *head, *bounds, *name, *parameters, *body;
} GatherParts;

/* A text is taken apart at what all texts have in common; one with functions of its own above is left alone. */
static bool take_apart(const PlanKernel *k, GatherParts *p)
{
    const char *end = strstr(k->text, "*/\n");
    p->head = k->text;
    p->bounds = end ? end + 3 : "";
    p->name =
        strncmp(k->text, "/*", 2) == 0 && strncmp(p->bounds, "KERNEL(", 7) == 0 ? strstr(p->bounds, k->name) : NULL;
    if (!p->name || strstr(p->name + 1, k->name) || strstr(p->name, "KERNEL("))
        return false;
    p->parameters = p->name + strlen(k->name);
    const char *behind = strstr(p->parameters, " rows)\n{\n");
    p->body = behind ? behind + strlen(" rows)\n") : NULL;
    return p->body && *p->parameters == '(';
}

/* The body, about the block that it is told: functions of the prelude are told it, too, and never ask (kernel.texts). */
static void put_body(Buf *out, const char *from)
{
    static const char *const names[][2] = {
        {"blockIdx.x", "of_block"}, {"vwn_block()", "of_block"}, {"gridDim.x", "of_blocks"}};
    for (;;) {
        size_t i = 0, n = strcspn(from, "bvg"); /* the letters that they begin with */
        buf_put(out, from, n);
        from += n;
        if (!*from)
            return;
        while (i < COUNT_OF(names) && strncmp(from, names[i][0], strlen(names[i][0])) != 0)
            i++;
        if (i < COUNT_OF(names)) {
            buf_puts(out, names[i][1]);
            from += strlen(names[i][0]);
        } else {
            buf_putc(out, *from++);
        }
    }
}

/* How many entries of Plan.number the arguments of one launch take. */
static uint32_t width_of(const PlanKernel *k) { return k->n_buffer + k->n_int + k->n_scalar + 1; }

static const char *gathered_text(const Build *b, const PlanKernel *k, bool shared, size_t *length)
{
    GatherParts p;
    Buf out = buf_new(b->f->tmp);
    if (!take_apart(k, &p))
        vwn_bug(b->f->ctx, "launches of a kernel whose text cannot be taken apart are gathered");
    buf_put(&out, p.head, (size_t)(p.bounds - p.head));
    buf_puts(&out, "FN void @NAME@_one(const uint32_t of_block, const uint32_t of_blocks,\n    ");
    const char *first = p.parameters + 1 + strspn(p.parameters + 1, " \n");
    buf_put(&out, first, (size_t)(p.body - first));
    put_body(&out, p.body);
    buf_puts(&out,
             "/* Several launches of this as one: the first block of each, and behind the last; their arguments. */\n");
    buf_put(&out, p.bounds, (size_t)(p.name - p.bounds));
    buf_printf(&out,
               "@NAME@(\n    const given *__restrict__ list, int64_t launches, %s[[maybe_unused]] int64_t rows)\n{\n",
               shared ? "[[maybe_unused]] int64_t shared_bytes, " : "");
    buf_printf(&out,
               "    const int32_t n = (int32_t)launches, at = vwn_launch_of(list, n);\n"
               "    const given *const x = list + n + 1 + at * %u;\n"
               "    const uint32_t first = (uint32_t)list[at].x.whole;\n"
               "    @NAME@_one(blockIdx.x - first, (uint32_t)list[at + 1].x.whole - first",
               (unsigned)width_of(k));
    for (uint32_t i = 0; i < width_of(k); i++)
        buf_printf(&out, ",%sx[%u]", i % 16 ? " " : "\n        ", (unsigned)i);
    buf_puts(&out, ");\n}\n");
    *length = out.n;
    return out.s;
}

/* ---- who goes where ---- */

static double arena_bytes(const Gather *g, const Launch *l, bool written)
{
    double bytes = 0;
    for (uint32_t i = 0; i < l->n_touched; i++) {
        const PlanBuffer *x = &g->b->buffer.v[l->buffer[i]];
        bytes += x->ext < 0 && l->writes[i] == written ? (double)x->bytes : 0;
    }
    return bytes;
}

static uint64_t blocks_of(const Gather *g, const Launch *l)
{
    bool kernel = l->kind == LAUNCH_KERNEL && l->rows > 0;
    return kernel ? (uint64_t)plan_blocks(&g->b->kernel.v[l->kernel].grid, l->rows) : 0;
}

/* The run behind which this one must stay, plus one; 0: none. */
static size_t must_follow(const Gather *g, const GatherRun *r, const Last *last)
{
    size_t at = 0;
    for (size_t i = 0; i < r->launch.n; i++) {
        const Launch *l = &g->launch[r->launch.v[i]];
        for (uint32_t k = 0; k < l->n_touched; k++) {
            const Last *x = &last[l->buffer[k]];
            at = x->written > at ? x->written : at;
            at = l->writes[k] && x->read > at ? x->read : at;
        }
    }
    return at;
}

static void note(const Gather *g, const GatherRun *r, Last *last, size_t at)
{
    for (size_t i = 0; i < r->launch.n; i++) {
        const Launch *l = &g->launch[r->launch.v[i]];
        for (uint32_t k = 0; k < l->n_touched; k++) {
            Last *x = &last[l->buffer[k]];
            size_t *of = l->writes[k] ? &x->written : &x->read;
            *of = at + 1 > *of ? at + 1 : *of;
        }
    }
}

static bool may_gather(const Gather *g, const GatherRun *r)
{
    const Launch *l = &g->launch[r->launch.v[0]];
    return l->kind == LAUNCH_KERNEL && g->gathers[l->kernel] && l->rows > 0;
}

/* A written kernel that takes a compiler long, one of whose launches is several, has one text for all of them. */
static void mark_always(Gather *g, const Runs *runs)
{
    const size_t is_long = (size_t)g->b->f->target->tuned->gathered_text;
    memset(g->always, 0, g->b->kernel.n * sizeof *g->always);
    for (size_t i = 0; i < runs->n; i++) {
        const Launch *l = &g->launch[runs->v[i].launch.v[0]];
        if (runs->v[i].launch.n > 1) {
            const PlanKernel *k = &g->b->kernel.v[l->kernel];
            g->always[l->kernel] = k->library && k->length > is_long;
        }
    }
}

/* Is its launch one whose arguments lie in memory? Second stages of sums are always such: hardly a program has but one of
 * them, and so one text serves all programs. */
static bool is_gathered(const Gather *g, const GatherRun *r)
{
    const Launch *l = &g->launch[r->launch.v[0]];
    return may_gather(g, r) && (r->launch.n > 1 || g->always[l->kernel] ||
                                g->b->kernel.v[l->kernel].library == library_name(LIB_SUM_PARTS));
}

/* It makes copies of weights, before all others, and not in each run. */
static bool is_cast(const Gather *g, const GatherRun *r) { return r->launch.v[0] < g->casts; }

static void join(const Gather *g, GatherRun *to, const GatherRun *r, double bytes)
{
    for (size_t i = 0; i < r->launch.n; i++)
        vec_push(g->b->f->tmp, &to->launch, r->launch.v[i]);
    to->kept += bytes;
    to->blocks += r->blocks;
}

/* Each run in turn joins the last one of its kernel, if nothing that it must follow stands behind that. */
static Runs gather_in_order(const Gather *g, const Runs *from, bool late)
{
    Arena *tmp = g->b->f->tmp;
    Runs to = {0};
    Last *last = NEW_ARRAY(tmp, Last, g->b->buffer.n + 1);
    size_t *open = NEW_ARRAY(tmp, size_t, g->b->kernel.n + 1); /* by kernel, plus one */
    for (size_t i = 0; i < from->n; i++) {
        const GatherRun *r = &from->v[i];
        const Launch *l = &g->launch[r->launch.v[0]];
        size_t after = must_follow(g, r, last), at = to.n;
        if (may_gather(g, r)) {
            GatherRun *with = open[l->kernel] ? &to.v[open[l->kernel] - 1] : NULL;
            double bytes = 0;
            for (size_t k = 0; k < r->launch.n; k++)
                bytes += arena_bytes(g, &g->launch[r->launch.v[k]], !late);
            if (with && is_cast(g, with) == is_cast(g, r) && open[l->kernel] > after &&
                with->kept + bytes <= g->limit && with->blocks + r->blocks <= INT32_MAX) {
                at = open[l->kernel] - 1;
                join(g, with, r, bytes);
            }
            open[l->kernel] = at + 1;
        }
        if (at == to.n)
            vec_push(tmp, &to, *r);
        note(g, r, last, at);
    }
    return to;
}

static void turn(Runs *r)
{
    for (size_t i = 0; i < r->n / 2; i++) {
        GatherRun x = r->v[i];
        r->v[i] = r->v[r->n - 1 - i];
        r->v[r->n - 1 - i] = x;
    }
}

static Runs gather(const Gather *g, size_t n)
{
    Runs r = {0};
    for (uint32_t i = 0; i < n; i++) {
        GatherRun one = {.blocks = blocks_of(g, &g->launch[i])};
        vec_push(g->b->f->tmp, &one.launch, i);
        vec_push(g->b->f->tmp, &r, one);
    }
    turn(&r);
    r = gather_in_order(g, &r, true);
    turn(&r);
    return gather_in_order(g, &r, false);
}

/* ---- one launch of several ---- */

static void sort_numbers(uint32_t *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t k = i; k > 0 && v[k - 1] > v[k]; k--) {
            uint32_t x = v[k];
            v[k] = v[k - 1];
            v[k - 1] = x;
        }
}

/* What all of them touch, behind the list that is the argument. */
static Launch launch_of(const Gather *g, const GatherRun *r)
{
    Build *b = g->b;
    Launch l = g->launch[r->launch.v[0]];
    uint32_t each = l.n_buffer, n = 1 + each * (uint32_t)r->launch.n;
    uint32_t *buffer = NEW_ARRAY(b->arena, uint32_t, n);
    uint64_t *shift = NEW_ARRAY(b->arena, uint64_t, n);
    bool *writes = NEW_ARRAY(b->arena, bool, n);
    l.items = (uint32_t)r->launch.n;
    l.n_buffer = 1;
    l.n_touched = n;
    l.rows = (int64_t)r->blocks;
    l.bytes = l.flops = 0;
    l.work = (PlanWork){0};
    for (size_t i = 0; i < r->launch.n; i++) {
        const Launch *x = &g->launch[r->launch.v[i]];
        memcpy(buffer + 1 + i * each, x->buffer, each * sizeof *buffer);
        memcpy(shift + 1 + i * each, x->shift, each * sizeof *shift);
        memcpy(writes + 1 + i * each, x->writes, each * sizeof *writes);
        l.bytes += x->bytes;
        l.flops += x->flops;
        l.work.lane += x->work.lane;
        l.work.single += x->work.single;
        l.work.call += x->work.call;
        l.work.random += x->work.random;
        l.work.product += x->work.product;
        l.work.expert += x->work.expert;
        l.work.expert_half += x->work.expert_half;
    }
    buffer[0] = g->list;
    l.buffer = buffer;
    l.shift = shift;
    l.writes = writes;
    return l;
}

static void put_number(Build *b, PlanNumber x) { vec_push(b->arena, &b->number, x); }

static void put_value(Build *b, uint64_t bits) { put_number(b, (PlanNumber){INT_CONST, NULL, -1, 0, bits}); }

/* The arguments of one launch as they lie in memory. */
static void put_arguments(Build *b, const Launch *l)
{
    const PlanKernel *k = &b->kernel.v[l->kernel];
    for (uint32_t i = 0; i < l->n_buffer; i++)
        put_number(b, (PlanNumber){INT_PLACE, NULL, -1, l->buffer[i], l->shift[i]});
    for (uint32_t i = 0; i < l->n_int; i++) {
        if (k->size && !plan_size_fits(k->size[i], l->ints[i].value))
            vwn_bug(b->ctx, "plan: a launch has a size that %s is not for", k->name);
        put_value(b, (uint64_t)l->ints[i].value);
    }
    for (uint32_t i = 0; i < l->n_scalar; i++)
        put_value(b, call_number(l->scalars[i].value));
    put_value(b, (uint64_t)l->rows);
}

/* Where the list of these launches begins, in bytes. */
static uint64_t put_list(const Gather *g, const GatherRun *r)
{
    Build *b = g->b;
    uint64_t at = 8 * (uint64_t)b->number.n, blocks = 0;
    for (size_t i = 0; i < r->launch.n; i++) {
        put_value(b, blocks);
        blocks += blocks_of(g, &g->launch[r->launch.v[i]]);
    }
    put_value(b, blocks);
    for (size_t i = 0; i < r->launch.n; i++)
        put_arguments(b, &g->launch[r->launch.v[i]]);
    return at;
}

/* The most shared memory that any of them wants. */
static uint64_t shared_of(const Gather *g, const GatherRun *r)
{
    uint64_t most = 0;
    for (size_t i = 0; i < r->launch.n; i++) {
        const Launch *l = &g->launch[r->launch.v[i]];
        int64_t *n = NEW_ARRAY(g->b->f->tmp, int64_t, l->n_int + 1);
        for (uint32_t k = 0; k < l->n_int; k++)
            n[k] = l->ints[k].value;
        uint64_t bytes = plan_shared_bytes(&g->b->kernel.v[l->kernel].grid, n);
        most = bytes > most ? bytes : most;
    }
    return (most + 15) / 16 * 16;
}

/* The kernel and the arguments of what launch_of() has made. */
static void finish(const Gather *g, const GatherRun *r, Launch *l)
{
    static const PlanShared by_argument = {1, 1};
    Build *b = g->b;
    uint32_t of = l->kernel;
    bool shared = b->kernel.v[of].grid.shared || b->kernel.v[of].grid.n_term;
    PlanGrid grid = {.threads = b->kernel.v[of].grid.threads, .units = 1, .whole = true};
    if (shared) {
        grid.n_term = 1;
        grid.term = &by_argument;
    }
    ((uint64_t *)l->shift)[0] = put_list(g, r); /* allocated by launch_of() */
    plan_ints(b, l, (int64_t[]){l->items, (int64_t)shared_of(g, r)}, shared ? 2 : 1);
    l->scalars = NULL;
    size_t length;
    const char *text = gathered_text(b, &b->kernel.v[of], shared, &length);
    const char *library = b->kernel.v[of].library, *program = b->kernel.v[of].program,
               *threads = b->kernel.v[of].threads, *shown = b->kernel.v[of].shown;
    plan_device_kernel(b, l, library, text, length, &grid, 0);
    b->kernel.v[l->kernel].program = program;
    b->kernel.v[l->kernel].threads = threads;
    b->kernel.v[l->kernel].shown = shown;
}

/* ---- the whole ---- */

static uint64_t try_limit(Gather *g, size_t n, double limit, Runs *runs)
{
    Build *b = g->b;
    g->limit = limit;
    *runs = gather(g, n);
    mark_always(g, runs);
    b->launch.v = NEW_ARRAY(b->arena, Launch, runs->n + 1);
    b->launch.n = b->plan->n_cast = 0;
    for (size_t i = 0; i < runs->n; i++) {
        GatherRun *r = &runs->v[i];
        b->plan->n_cast += is_cast(g, r);
        sort_numbers(r->launch.v, r->launch.n);
        b->launch.v[b->launch.n++] = is_gathered(g, r) ? launch_of(g, r) : g->launch[r->launch.v[0]];
    }
    plan_place(b);
    return b->plan->arena_bytes;
}

/* Kernels that no launch has any more. */
static void drop_unused(Build *b)
{
    uint32_t *now = NEW_ARRAY(b->f->tmp, uint32_t, b->kernel.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < b->launch.n; i++)
        if (b->launch.v[i].kind == LAUNCH_KERNEL)
            now[b->launch.v[i].kernel] = 1;
    for (size_t i = 0; i < b->kernel.n; i++)
        if (now[i]) {
            now[i] = (uint32_t)n;
            b->kernel.v[n++] = b->kernel.v[i];
        }
    b->kernel.n = n;
    for (size_t i = 0; i < b->launch.n; i++)
        if (b->launch.v[i].kind == LAUNCH_KERNEL)
            b->launch.v[i].kernel = now[b->launch.v[i].kernel];
}

void plan_gather(Build *b, PlanLayout *layout)
{
    static const double limits[] = {1e18, 256 << 20, 32 << 20, 4 << 20, 0};
    const Tuned *tuned = b->f->target->tuned;
    ArenaMark mark = arena_mark(b->f->tmp);
    Gather g = {.b = b, .launch = b->launch.v, .casts = b->plan->n_cast};
    size_t n = b->launch.n;
    Runs runs = {0};
    GatherParts p;
    g.list = plan_numbers_buffer(b);
    g.gathers = NEW_ARRAY(b->f->tmp, bool, b->kernel.n + 1);
    g.always = NEW_ARRAY(b->f->tmp, bool, b->kernel.n + 1);
    for (size_t i = 0; i < b->kernel.n; i++)
        g.gathers[i] = take_apart(&b->kernel.v[i], &p);
    plan_place(b);
    uint64_t plain = b->plan->arena_bytes,
             most = plain + plain / (uint64_t)tuned->gathered_share + (uint64_t)tuned->gathered_bytes;
    for (size_t i = 0; i < COUNT_OF(limits); i++)
        if (try_limit(&g, n, limits[i], &runs) <= most)
            break;
    for (size_t i = 0; i < runs.n; i++)
        if (is_gathered(&g, &runs.v[i]))
            finish(&g, &runs.v[i], &b->launch.v[i]);
    b->buffer.v[g.list].bytes = 8 * (uint64_t)b->number.n;
    drop_unused(b);
    plan_batch(b, layout, most + 8 * (uint64_t)b->number.n);
    arena_reset(b->f->tmp, mark);
}
