/* large.c - kernels for tensors of more than 2^31 elements, in the emulator: where rows begin far behind that.
 *
 * In:  graphs over tensors that nobody has memory for.     Out: `N passed, N failed`; 77 without a C++ compiler.
 * The one idea: of each tensor only the pages that are touched are there, and of each launch only the block of the last row
 * runs. An index of too few bits reads and writes somewhere else, so the last row has not the numbers that it should have.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>

#include "backend_emu.h"
#include "runtime/harness.h"

enum { ARGUMENTS = 64, TEXTS = 16, B = 40, T = 1000 };

typedef struct Large {
    Harness *h;
    Ctx *ctx;
    Graph *g;
    Plan *plan;
    char **ext, *arena; /* by ext */
    int launches;       /* whose rows or tensors are that large */
} Large;

static char *pages(Ctx *ctx, uint64_t bytes)
{
    void *m = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (m == MAP_FAILED)
        vwn_bug(ctx, "no room for %llu bytes that nobody uses", (unsigned long long)bytes);
    return m;
}

static char *buffer_of(const Large *x, uint32_t buffer)
{
    const PlanBuffer *b = &x->plan->buffer[buffer];
    return b->ext >= 0 ? x->ext[b->ext] : x->arena + b->offset;
}

static float *tensor(const Large *x, ExtKind kind, const char *name)
{
    for (size_t i = 0; i < x->plan->n_ext; i++)
        if (x->plan->ext[i].ext.kind == kind && !strcmp(x->plan->ext[i].ext.name, name))
            return (float *)(void *)x->ext[i];
    vwn_bug(x->ctx, "no tensor %s", name);
}

static void make(Large *x)
{
    const PlanOptions how = {.B = B, .T = T, .cuda = true, .single = true};
    x->plan = plan_build(x->ctx, x->ctx->program, plan_graph(x->g, x->ctx->program, &how), &how);
    plan_verify(x->ctx, x->plan);
    x->ext = NEW_ARRAY(x->ctx->program, char *, x->plan->n_ext + 1);
    for (size_t i = 0; i < x->plan->n_ext; i++)
        x->ext[i] = pages(x->ctx, 8 * (uint64_t)x->plan->ext[i].elements);
    x->arena = pages(x->ctx, x->plan->arena_bytes);
    uint64_t *number = x->plan->n_number ? (uint64_t *)(void *)buffer_of(x, x->plan->numbers) : NULL;
    for (size_t i = 0; i < x->plan->n_number; i++)
        number[i] = plan_number(x->plan, i, 1, 1, NULL);
}

/* The block of the last row, of each launch. */
static void run_last(Large *x)
{
    EmuKernel kernel[TEXTS];
    EmuText text[TEXTS];
    char why[512];
    const Plan *p = x->plan;
    if (p->n_kernel > TEXTS)
        vwn_bug(x->ctx, "%zu kernels", p->n_kernel);
    for (size_t i = 0; i < p->n_kernel; i++)
        text[i] = (EmuText){p->kernel[i].name, p->kernel[i].text, p->kernel[i].length};
    if (!emu_compile(p->device_prelude, p->device_prelude_length, text, p->n_kernel, kernel, why))
        vwn_bug(x->ctx, "%s", why);
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        void *argument[ARGUMENTS], *place[ARGUMENTS];
        int64_t ints[ARGUMENTS], rows = l->rows;
        double scalars[ARGUMENTS];
        size_t n = 0;
        bool large = false;
        if (l->kind != LAUNCH_KERNEL || l->n_buffer + l->n_int + l->n_scalar >= ARGUMENTS)
            vwn_bug(x->ctx, "a launch that this test does not know");
        const PlanKernel *k = &p->kernel[l->kernel];
        for (uint32_t a = 0; a < l->n_buffer; a++) {
            place[a] = buffer_of(x, l->buffer[a]) + l->shift[a];
            argument[n++] = &place[a];
            const PlanBuffer *b = &p->buffer[l->buffer[a]];
            large |= b->bytes / plan_item_bytes(b) > (uint64_t)1 << 31;
        }
        for (uint32_t a = 0; a < l->n_int; a++) {
            ints[a] = l->ints[a].value;
            argument[n++] = &ints[a];
        }
        for (uint32_t a = 0; a < l->n_scalar; a++) {
            scalars[a] = l->scalars[a].value;
            argument[n++] = &scalars[a];
        }
        argument[n] = &rows;
        uint32_t last = (uint32_t)(plan_blocks(&k->grid, rows) - 1);
        x->launches += large;
        const char *trouble = emu_launch(&kernel[l->kernel], argument, &(EmuOptions){.order = &last}, 1, k->grid.threads,
                                         plan_shared_bytes(&k->grid, ints));
        CHECK_CASE(x->h, !trouble, trouble ? trouble : "");
    }
}

static void begin(Large *x, Ctx *ctx, void *h)
{
    *x = (Large){.h = h, .ctx = ctx, .g = graph_new(ctx, ctx->program)};
}

static Val input(Large *x, const char *name, const Shape *s)
{
    return ir_ext(x->g, EXT_STATE, name_str(x->ctx, name), DT_REAL, s);
}

static void keep(Large *x, Val v)
{
    ir_store(x->g, v, EXT_STATE, name_str(x->ctx, "y"));
}

static double value_at(int64_t i) { return sin((double)i) * 2; }

/* y = exp(x - max x) / sum, by rows of an odd number of elements. */
static void softmax(Ctx *ctx, void *h)
{
    enum { V = 65543 };
    Large x;
    begin(&x, ctx, h);
    const Shape s = {.rank = 3, .d = {DIM_B, DIM_T, DIM(V)}};
    keep(&x, ir_softmax(x.g, input(&x, "x", &s), 2));
    make(&x);
    const int64_t at = (int64_t)(B * T - 1) * V;
    float *in = tensor(&x, EXT_STATE, "x") + at, *out = tensor(&x, EXT_STATE, "y") + at;
    double most = -INFINITY, sum = 0, worst = 0;
    for (int64_t i = 0; i < V; i++)
        most = fmax(most, in[i] = (float)value_at(i));
    for (int64_t i = 0; i < V; i++)
        sum += exp((double)in[i] - most);
    run_last(&x);
    for (int64_t i = 0; i < V; i++)
        worst = fmax(worst, fabs((double)out[i] - exp((double)in[i] - most) / sum) * sum);
    CHECK(x.h, worst < 1e-5 && x.launches > 0);
}

/* y = x x + x, whatever rows are. */
static void elements(Ctx *ctx, void *h)
{
    enum { LAST = 100 };
    Large x;
    begin(&x, ctx, h);
    const int64_t n = ((int64_t)1 << 31) + 12 * 1024 + 501;
    const Shape s = {.rank = 1, .d = {DIM(n)}};
    Val v = input(&x, "x", &s);
    keep(&x, ir_binary(x.g, OP_ADD, ir_binary(x.g, OP_MUL, v, v), v));
    make(&x);
    float *in = tensor(&x, EXT_STATE, "x") + n - LAST, *out = tensor(&x, EXT_STATE, "y") + n - LAST;
    double worst = 0;
    for (int i = 0; i < LAST; i++)
        in[i] = (float)value_at(i);
    run_last(&x);
    for (int i = 0; i < LAST; i++)
        worst = fmax(worst, fabs((double)out[i] - (double)in[i] * (double)in[i] - (double)in[i]));
    CHECK(x.h, worst < 1e-5 && x.launches == 1);
}

/* The sum over all rows, of which the last alone is not zero. */
static void columns(Ctx *ctx, void *h)
{
    enum { V = 65543 };
    Large x;
    begin(&x, ctx, h);
    const Shape s = {.rank = 3, .d = {DIM_B, DIM_T, DIM(V)}};
    Val v = input(&x, "x", &s);
    keep(&x, ir_sum(x.g, ir_binary(x.g, OP_MUL, v, v), 3, false));
    make(&x);
    float *in = tensor(&x, EXT_STATE, "x") + (int64_t)(B * T - 1) * V;
    for (int64_t i = 0; i < V; i++)
        in[i] = (float)value_at(i);
    run_last(&x);
    const float *out = tensor(&x, EXT_STATE, "y");
    /* of the second launch, too, the last block alone has run */
    double wrong = fabs((double)out[V - 1] - (double)in[V - 1] * (double)in[V - 1]);
    CHECK(x.h, wrong < 1e-5 && x.launches > 0);
}

/* Rows of a table by index. */
static void rows_of_table(Ctx *ctx, void *h)
{
    enum { V = 60000, D = 40000 };
    Large x;
    begin(&x, ctx, h);
    const Shape table = {.rank = 2, .d = {DIM(V), DIM(D)}}, tokens = {.rank = 2, .d = {DIM_B, DIM_T}};
    Val index = ir_ext(x.g, EXT_INPUT, name_str(ctx, "tokens"), DT_INT, &tokens);
    Val rows = ir_gather(x.g, input(&x, "x", &table), index);
    keep(&x, ir_binary(x.g, OP_MUL, rows, rows));
    make(&x);
    ((int64_t *)(void *)tensor(&x, EXT_INPUT, "tokens"))[B * T - 1] = V - 1;
    float *in = tensor(&x, EXT_STATE, "x") + (int64_t)(V - 1) * D;
    for (int64_t i = 0; i < D; i++)
        in[i] = (float)value_at(i);
    run_last(&x);
    const float *out = tensor(&x, EXT_STATE, "y") + (int64_t)(B * T - 1) * D;
    double worst = 0;
    for (int64_t i = 0; i < D; i++)
        worst = fmax(worst, fabs((double)out[i] - (double)in[i] * (double)in[i]));
    CHECK(x.h, worst < 1e-5 && x.launches > 0);
}

int main(void)
{
    static void (*const all[])(Ctx *, void *) = {softmax, elements, columns, rows_of_table};
    Harness h = {0};
    if (emu_missing())
        return EMU_SKIPPED;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            all[i](ctx, &h);
            ctx_leave(ctx, &guard);
        } else {
            CHECK_CASE(&h, false, ctx->message);
        }
        ctx_free(ctx);
    }
    return harness_end(&h);
}
