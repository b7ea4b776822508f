/* large.c - kernels for tensors of more than 2^31 elements, in the emulator: where rows begin far behind that.
 *
 * In:  graphs over tensors that nobody has memory for; of them one by name, or all.
 * Out: `N passed, N failed`; 77 without a C++ compiler.
 * The one idea: of each tensor only the pages that are touched are there, and of each launch only the block of the last row
 * runs. An index of too few bits reads and writes somewhere else, so the last row has not the numbers that it should have.
 */
#define _GNU_SOURCE
#include <math.h>
#include <sys/mman.h>

#include "compiler/plan/plan.h"
#include "backend_emu.h"
#include "compiler/portable/device_call.h"
#include "support/harness.h"

enum { ARGUMENTS = 64, TEXTS = 16, B = 40, T = 1000 };

typedef struct Large {
    Harness *h;
    Ctx *ctx;
    Graph *g;
    Plan *plan;
    char **ext, *arena; /* by ext */
    int launches;       /* whose rows or tensors are that large */
    int written;        /* of them those of written kernels: attention, experts, tables */
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
    const PlanOptions how = {.B = B, .T = T, .target = &target_gpu, .single = true};
    x->plan = plan_build(x->ctx, x->ctx->program, plan_graph(x->g, x->ctx->program, &how), &how);
    plan_verify(x->ctx, x->plan);
    x->ext = NEW_ARRAY(x->ctx->program, char *, x->plan->n_ext + 1);
    for (size_t i = 0; i < x->plan->n_ext; i++)
        x->ext[i] = pages(x->ctx, 8 * (uint64_t)x->plan->ext[i].elements);
    x->arena = pages(x->ctx, x->plan->arena_bytes);
    uint64_t *number = x->plan->n_number ? (uint64_t *)(void *)buffer_of(x, x->plan->numbers) : NULL;
    for (size_t i = 0; i < x->plan->n_number; i++)
        number[i] = plan_number(x->plan, i, &(RandomKey){1, 1, 0}, NULL);
}

/* The block of the last row, of each launch. Of products by expert the last one that has pairs, which all lie in the last expert:
 * two tiles of them, behind these are blocks for other counts; of the sort that expert's and the one of pairs without one. */
static int last_blocks(const PlanKernel *k, const Launch *l, const int64_t *ints, uint32_t block[2])
{
    block[0] = (uint32_t)(plan_blocks(&k->grid, l->rows) - 1);
    if (k->library && !strcmp(k->library, "expert"))
        block[0] = 2 * (uint32_t)((ints[3] + 63) / 64) - 1;
    if (!k->library || strcmp(k->library, "expert_sort") != 0)
        return 1;
    block[1] = block[0];
    block[0]--;
    return 2;
}

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
        void *place[ARGUMENTS];
        CallArguments arguments;
        int64_t ints[ARGUMENTS], rows = l->rows;
        double scalars[ARGUMENTS];
        bool large = false;
        if (l->kind != LAUNCH_KERNEL || l->n_buffer + l->n_int + l->n_scalar >= ARGUMENTS)
            vwn_bug(x->ctx, "a launch that this test does not know");
        const PlanKernel *k = &p->kernel[l->kernel];
        for (uint32_t a = 0; a < l->n_buffer; a++) {
            place[a] = buffer_of(x, l->buffer[a]) + l->shift[a];
            const PlanBuffer *b = &p->buffer[l->buffer[a]];
            large |= b->bytes / plan_item_bytes(b) > (uint64_t)1 << 31;
        }
        for (uint32_t a = 0; a < l->n_int; a++)
            ints[a] = l->ints[a].value;
        for (uint32_t a = 0; a < l->n_scalar; a++)
            scalars[a] = l->scalars[a].value;
        call_arguments(&arguments, place, l->n_buffer, ints, l->n_int, scalars, l->n_scalar, &rows);
        uint32_t last[2], blocks = (uint32_t)last_blocks(k, l, ints, last);
        rows = last[0] + 1 < plan_blocks(&k->grid, rows) && blocks == 1
                   ? last[0] + 1
                   : rows; /* a block would go on to all further ones */
        x->launches += large;
        x->written += large && k->library;
        const char *trouble = emu_launch(&kernel[l->kernel], arguments.at, &(EmuOptions){.order = last}, blocks,
                                         k->grid.threads, plan_shared_bytes(&k->grid, ints));
        CHECK_CASE(x->h, !trouble, trouble ? trouble : "");
    }
}

static void begin(Large *x, Ctx *ctx, void *h) { *x = (Large){.h = h, .ctx = ctx, .g = graph_new(ctx, ctx->program)}; }

static Val input(Large *x, const char *name, const Shape *s)
{
    return ir_ext(x->g, EXT_STATE, name_str(x->ctx, name), DT_REAL, s);
}

static void keep(Large *x, Val v) { ir_store(x->g, v, EXT_STATE, name_str(x->ctx, "y")); }

/* The larger of two; what is no number is worst. */
static double worse(double worst, double by) { return by <= worst ? worst : isnan(by) ? INFINITY : by; }

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
        worst = worse(worst, fabs((double)out[i] - exp((double)in[i] - most) / sum) * sum);
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
        worst = worse(worst, fabs((double)out[i] - (double)in[i] * (double)in[i] - (double)in[i]));
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
        worst = worse(worst, fabs((double)out[i] - (double)in[i] * (double)in[i]));
    CHECK(x.h, worst < 1e-5 && x.launches > 0);
}

/* d (sum of y dy) / d x, as tensors of these names. */
static void keep_gradients(Large *x, Val y, const Val *wrt, size_t n, const char *const *name)
{
    Val grad[3], dy = input(x, "dy", shape_of(x->g, y));
    const uint32_t all = (1u << shape_of(x->g, y)->rank) - 1u;
    graph_gradient(x->g, ir_sum(x->g, ir_binary(x->g, OP_MUL, y, dy), all, false), wrt, n, grad);
    for (size_t i = 0; i < n; i++)
        ir_store(x->g, grad[i], EXT_STATE, name_str(x->ctx, name[i]));
}

/* Row `at` of a table with rows of n numbers. */
static void fill_row(Large *x, const char *name, int64_t at, int64_t n)
{
    float *row = tensor(x, EXT_STATE, name) + at * n;
    for (int64_t i = 0; i < n; i++)
        row[i] = (float)(0.4 * sin((double)(i * 7 + at % 1009 * 13) + name[0]));
}

/* The gradient of a table with so many rows that its last ones begin behind 2^31. */
static void table(Ctx *ctx, void *h)
{
    enum { V = 60000, D = 65536, ROWS = 3 };
    Large x;
    begin(&x, ctx, h);
    const Shape shape = {.rank = 2, .d = {DIM(V), DIM(D)}}, tokens = {.rank = 2, .d = {DIM_B, DIM_T}};
    Val w = input(&x, "x", &shape), index = ir_ext(x.g, EXT_INPUT, name_str(ctx, "tokens"), DT_INT, &tokens);
    keep_gradients(&x, ir_gather(x.g, w, index), &w, 1, (const char *const[]){"dx"});
    make(&x);
    int64_t *id = (int64_t *)(void *)tensor(&x, EXT_INPUT, "tokens");
    for (int i = 1; i <= ROWS; i++) {
        id[B * T - i] = V - 1 - i % 2;
        fill_row(&x, "dy", B * T - i, D);
    }
    run_last(&x);
    const float *dy = tensor(&x, EXT_STATE, "dy") + (int64_t)B * T * D,
                *dx = tensor(&x, EXT_STATE, "dx") + (int64_t)(V - 2) * D;
    double worst = 0;
    for (int64_t i = D - 256; i < D; i++) {
        worst = worse(worst, fabs((double)dx[i] - (double)dy[i - 3 * (int64_t)D] - (double)dy[i - D]));
        worst = worse(worst, fabs((double)dx[i + D] - (double)dy[i - 2 * (int64_t)D]));
    }
    CHECK(x.h, worst < 1e-5 && x.written == 1);
}

/* Causal attention: the first queries and the last keys of the last head of the last sequence; of these the gradients of keys and
 * values with logarithms and sums that are 0, because other blocks compute them. */
static void attention(Ctx *ctx, void *h)
{
    enum { H = 512, D = 112, ROWS = 64 };
    static const char *const in[] = {"q", "k", "v"}, *const grad[] = {"dq", "dk", "dv"};
    Large x;
    begin(&x, ctx, h);
    const Shape s = {.rank = 4, .d = {DIM_B, DIM_T, DIM(H), DIM(D)}};
    const double scale = 1 / sqrt(D);
    Val of[3];
    for (int i = 0; i < 3; i++)
        of[i] = input(&x, in[i], &s);
    Val y = ir_sdpa(x.g, of[0], of[1], of[2], &(Sdpa){.causal = true, .scale = scale});
    keep(&x, y);
    keep_gradients(&x, y, of, 3, grad);
    make(&x);
    const int64_t first = (int64_t)(B - 1) * T * H + H - 1, last = T / ROWS * ROWS;
    for (int64_t t = 0; t < T; t = t == ROWS - 1 ? last : t + 1)
        for (int i = 0; i < 4; i++)
            fill_row(&x, i < 3 ? in[i] : "dy", first + t * H, D);
    run_last(&x);
    const float *m[8];
    for (int i = 0; i < 8; i++)
        m[i] = tensor(&x, EXT_STATE, i < 3 ? in[i] : i == 3 ? "dy" : i == 4 ? "y" : grad[i - 5]) + first * D;
#define AT(i, t, c) ((double)m[i][(int64_t)(t)*H * D + (c)])
    double worst = 0;
    for (int t = 0; t < ROWS; t++) { /* y and dq of the first queries */
        double p[ROWS], dp[ROWS], sum = 0, mean = 0;
        for (int u = 0; u <= t; u++) {
            p[u] = dp[u] = 0;
            for (int c = 0; c < D; c++)
                p[u] += AT(0, t, c) * AT(1, u, c) * scale, dp[u] += AT(3, t, c) * AT(2, u, c);
            sum += p[u] = exp(p[u]);
        }
        for (int u = 0; u <= t; u++)
            mean += p[u] / sum * dp[u];
        for (int c = 0; c < D; c++) {
            double out = 0, dq = 0;
            for (int u = 0; u <= t; u++)
                out += p[u] / sum * AT(2, u, c), dq += p[u] / sum * (dp[u] - mean) * AT(1, u, c) * scale;
            worst = worse(worse(worst, fabs(out - AT(4, t, c))), fabs(dq - AT(5, t, c)));
        }
    }
    CHECK(x.h, worst < 1e-5);
    for (int64_t u = last; u < T; u++) { /* dk and dv of the last keys */
        double dk[D] = {0}, dv[D] = {0};
        for (int64_t t = u; t < T; t++) {
            double p = 0, dp = 0;
            for (int c = 0; c < D; c++)
                p += AT(0, t, c) * AT(1, u, c) * scale, dp += AT(3, t, c) * AT(2, u, c);
            for (int c = 0; c < D; c++)
                dk[c] += exp(p) * dp * AT(0, t, c) * scale, dv[c] += exp(p) * AT(3, t, c);
        }
        for (int c = 0; c < D; c++)
            worst = worse(worse(worst, fabs(dk[c] - AT(6, u, c)) / 10), fabs(dv[c] - AT(7, u, c)) / 10);
    }
#undef AT
    CHECK(x.h, worst < 1e-5 && x.written == 3);
}

/* Products by expert, forward and backward: the last pairs are the last expert's, all others have none. */
static void experts(Ctx *ctx, void *h)
{
    enum { E = 64, IN = 4096, OUT = 32768, PAIRS = 128, TILE = 64, KNOWN = 8 };
    Large x;
    begin(&x, ctx, h);
    const Shape xs = {.rank = 3, .d = {DIM_B, DIM_T, DIM(IN)}}, ws = {.rank = 3, .d = {DIM(E), DIM(IN), DIM(OUT)}};
    const Shape is = {.rank = 3, .d = {DIM_B, DIM_T, DIM(2)}};
    Val of[2] = {input(&x, "x", &xs), input(&x, "w", &ws)};
    Val index = ir_ext(x.g, EXT_INPUT, name_str(ctx, "index"), DT_INT, &is);
    Val y = ir_expert_matmul(x.g, of[0], of[1], index);
    keep(&x, y);
    keep_gradients(&x, y, of, 2, (const char *const[]){"dx", "dw"});
    make(&x);
    const int64_t pairs = (int64_t)B * T * 2, tokens = (int64_t)B * T;
    int64_t *id = (int64_t *)(void *)tensor(&x, EXT_INPUT, "index");
    for (int64_t i = 0; i < pairs; i++)
        id[i] = i < pairs - PAIRS ? -1 : E - 1;
    float *in = tensor(&x, EXT_STATE, "x") + (tokens - PAIRS / 2) * IN,
          *dy = tensor(&x, EXT_STATE, "dy") + (pairs - PAIRS) * OUT;
    float *w = tensor(&x, EXT_STATE, "w") + (int64_t)(E - 1) * IN * OUT;
    for (int t = 0; t < PAIRS / 2; t++) /* of each row a few numbers, its last */
        for (int i = IN - KNOWN; i < IN; i++)
            in[(int64_t)t * IN + i] = (float)sin(t * 3 + i);
    for (int p = 0; p < PAIRS; p++)
        for (int o = OUT - KNOWN; o < OUT; o++)
            dy[(int64_t)p * OUT + o] = (float)cos(p * 5 + o);
    for (int i = IN - KNOWN; i < IN; i++)
        for (int o = OUT - KNOWN; o < OUT; o++)
            w[(int64_t)i * OUT + o] = (float)sin(i * 11 + o * 2);
    run_last(&x);
    const float *out = tensor(&x, EXT_STATE, "y") + (pairs - PAIRS) * OUT,
                *dw = tensor(&x, EXT_STATE, "dw") + (int64_t)(E - 1) * IN * OUT;
    const float *dx = tensor(&x, EXT_STATE, "dx") + (tokens - 1) * IN;
    double worst = 0;
    for (int o = OUT - KNOWN; o < OUT; o++) {
        for (int p = PAIRS - TILE; p < PAIRS; p++) {
            double sum = 0;
            for (int i = IN - KNOWN; i < IN; i++)
                sum += (double)in[(int64_t)(p / 2) * IN + i] * (double)w[(int64_t)i * OUT + o];
            worst = worse(worst, fabs(sum - (double)out[(int64_t)p * OUT + o]));
        }
        for (int i = IN - KNOWN; i < IN; i++) {
            double sum = 0;
            for (int p = 0; p < PAIRS; p++)
                sum += (double)in[(int64_t)(p / 2) * IN + i] * (double)dy[(int64_t)p * OUT + o];
            worst = worse(worst, fabs(sum - (double)dw[(int64_t)i * OUT + o]) / 10);
        }
    }
    CHECK(x.h, worst < 1e-5);
    for (int i = IN - KNOWN; i < IN; i++) {
        double sum = 0;
        for (int o = OUT - KNOWN; o < OUT; o++)
            sum += ((double)dy[(int64_t)(PAIRS - 2) * OUT + o] + (double)dy[(int64_t)(PAIRS - 1) * OUT + o]) *
                   (double)w[(int64_t)i * OUT + o];
        worst = worse(worst, fabs(sum - (double)dx[i]));
    }
    CHECK(x.h, worst < 1e-5 && x.written >= 3);
}

/* Whether a product by expert of so many rows, four experts a row, can be planned. */
static bool plans_pairs(Ctx *ctx, int64_t rows)
{
    CtxGuard guard;
    Graph *g = graph_new(ctx, ctx->program);
    const Shape xs = {.rank = 2, .d = {DIM_T, DIM(2)}}, ws = {.rank = 3, .d = {DIM(3), DIM(2), DIM(2)}};
    const Shape is = {.rank = 2, .d = {DIM_T, DIM(4)}};
    const PlanOptions how = {.B = 1, .T = rows, .target = &target_gpu};
    Val x = ir_ext(g, EXT_STATE, name_str(ctx, "x"), DT_REAL, &xs),
        w = ir_ext(g, EXT_STATE, name_str(ctx, "w"), DT_REAL, &ws);
    ir_store(g, ir_expert_matmul(g, x, w, ir_ext(g, EXT_INPUT, name_str(ctx, "index"), DT_INT, &is)), EXT_STATE,
             name_str(ctx, "y"));
    volatile bool planned = false;
    if (CTX_TRY(ctx, &guard)) {
        planned = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how)->n_launch >= 2;
        ctx_leave(ctx, &guard);
    }
    return planned;
}

/* Numbers of pairs, and how many there are, have 32 bits: a plan of more is refused, in a sentence. */
static void pairs(Ctx *ctx, void *h)
{
    const int64_t most = ((int64_t)1 << 30) - 1;
    CHECK(h, plans_pairs(ctx, most));
    CHECK(h, !plans_pairs(ctx, most + 1));
    CHECK(h, ctx->raised == ST_ENVIRONMENT && strstr(ctx->message, "4294967296 pairs of a token and an expert"));
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(Ctx *, void *);
    } all[] = {{"softmax", softmax}, {"elements", elements},   {"columns", columns}, {"rows", rows_of_table},
               {"table", table},     {"attention", attention}, {"experts", experts}, {"pairs", pairs}};
    Harness h = {0};
    if (emu_missing())
        return EMU_SKIPPED;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        if (argc > 1 && strcmp(argv[1], all[i].name) != 0)
            continue;
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            all[i].run(ctx, &h);
            ctx_leave(ctx, &guard);
        } else {
            CHECK_CASE(&h, false, ctx->message);
        }
        ctx_free(ctx);
    }
    return harness_end(&h);
}
