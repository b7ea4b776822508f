/* own.c - a device's kernels of connections that the library does not have, and of widths that the others have.
 *
 * In:  hyper-connections whose carrying matrix Newton and Schulz's iteration makes orthogonal, a chain of products of small matrices;
 *      mHC of widths from 512 on; forward and backward, bf16.
 * Out: what kernels compute over all rows is at most a share of what a CPU's kernels and products do: matrices of a row are computed once,
 *      whatever else of the row is in a kernel. Coefficients of mHC are products of the library, both ways, as rows would
 *      load the whole matrix from the second-level cache. Sums over many rows of (2,3) have PARTITIONS, so that waves of blocks are even on
 *      any device, though their partial sums are long; those of few rows have fewer. Loops of (2,4) that would have more loads under
 *      way than a thread has registers for take four elements at a time. What mHC of 8 streams computes is at most four times what that of 4
 *      does, and no thread waits for others in each of its iterations. Loops of a fraction in eight that read and write tiles in one place
 *      are not one loop. A block of eight streams has no more shared memory than any device gives, and products of rows still where a little
 *      of something else lies in memory.
 */
#include "support/models.h"

#include "compiler/plan/plan.h"

/* Cases from 0 on: orthogonal(), then mhc(). */
static const char text[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
    "block orthogonal(n: int, iterations: int) {\n"
    "  let streams = open_streams(n = n)\n"
    "  let norm = rms_norm(eps = 1e-6, gain = false)\n"
    "  block open()(x: [.., D]) -> [.., n, D] { return streams(x) }\n"
    "  block step(k: int)(H: [.., n, D], f: block) -> [.., n, D] {\n"
    "    param read  : [n, 1] = fill(1 / n) { group = static }\n"
    "    param write : [1, n] = ones { group = static }\n"
    "    param carry : [n, n] = [[if i == j then 1 else 0 for j in 1..n] for i in 1..n] { group = static }\n"
    "    param W     : [n * D, n * n] = zeros\n"
    "    u = carry + 0.01 * reshape(norm(reshape(H, [.., n * D])) @ W, [.., n, n])\n"
    "    P = u / sqrt(sum(u * u, over = [-1, -2], keep = true) + 1e-6)\n"
    "    for i in 1..iterations {\n"
    "      P = 1.5 * P - 0.5 * (P @ P.T @ P)\n"
    "    }\n"
    "    h = reshape(read.T @ H, [.., D])\n"
    "    return write.T @ reshape(f(h), [.., 1, D]) + P.T @ H\n"
    "  }\n"
    "  block close()(H: [.., n, D]) -> [.., D] { return sum(H, over = -2) }\n"
    "}\n"
    "let D = 1024\nlet wide = D\nlet conn = orthogonal(n = 4, iterations = 5)\n"
    "model own {\n"
    "  context = 256\n  width = D\n  mask = causal\n  init = normal(std = 0.02)\n  out_init = normal(std = 0.02)\n"
    "  pre_norm = rms_norm(eps = 1e-6)\n  connection = conn\n"
    "  embed tokens { vocab = 256, width = wide }\n"
    "  for layer in 1..2 {\n    attention { heads = 8 }\n    ffn { hidden = D, activation = gelu }\n  }\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "}\n"
    "train {\n  data = text_file(\"none.txt\")\n  tokenizer = bytes()\n  batch = 4 seqs\n  length = 1 steps\n  seed = "
    "1\n"
    "  precision = mixed(compute = bf16, master = fp32)\n  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 "
    "}\n}\n";

static const struct {
    const char *name;
    const char *set[3];
    int64_t columns; /* of the matrix that coefficients are products of */
    double most;     /* of what a CPU computes */
} cases[] = {{"orthogonal", {NULL}, 16, 0.75},
             {"orthogonal-512", {"D=512", NULL}, 16, 0.75},
             {"mhc-512", {"D=512", "conn=mhc(n = 4)", NULL}, 24, 1},
             {"mhc-768", {"D=768", "conn=mhc(n = 4)", NULL}, 24, 1},
             {"mhc-1024", {"conn=mhc(n = 4)", NULL}, 24, 1}};

enum { SUBLAYERS = 4 };

typedef struct Case {
    size_t i;
    double device, cpu; /* operations of one row, of all kernels and products of coefficients */
    int products;       /* of the library with so few columns, or rows */
} Case;

static double operations(const Plan *p, int64_t columns, int *products)
{
    double all = 0;
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        const PlanMatmul *m = &l->matmul;
        all += l->work.lane + l->work.single + 16 * l->work.call + l->work.product;
        if (l->kind == LAUNCH_MATMUL && (m->m == columns || m->n == columns || m->k == columns)) {
            all += l->flops;
            ++*products;
        }
    }
    return all;
}

static void count(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Unit *u = load_text(ctx, text, cases[c->i].set);
    const Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    int none = 0;
    for (int device = 0; device < 2; device++) {
        PlanOptions how = {
            .B = 4, .T = u->train->context, .half = train_half(u->train), .target = device ? &target_gpu : NULL};
        const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
        *(device ? &c->device : &c->cpu) =
            operations(p, cases[c->i].columns, device ? &c->products : &none) / (double)(how.B * how.T);
    }
}

enum { PARTITIONS = 2048, FEW_PARTITIONS = 512 };

static const Plan *plan_for(Ctx *ctx, const Target *target, int64_t sequences, const char *const *set)
{
    const Unit *u = load_text(ctx, text, set);
    PlanOptions how = {.B = sequences, .T = u->train->context, .half = train_half(u->train), .target = target};
    return plan_build(ctx, ctx->program,
                      plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how), &how);
}

static const Plan *plan_of(Ctx *ctx, int64_t sequences, const char *const *set)
{
    return plan_for(ctx, &target_gpu, sequences, set);
}

static int times_in(const char *all, const char *what)
{
    int n = 0;
    for (const char *at = all; (at = strstr(at, what)); at++)
        n++;
    return n;
}

/* The fewest partitions of the boundaries between sublayers, backward. */
static int64_t partitions(Ctx *ctx, int64_t sequences)
{
    const Plan *p = plan_of(
        ctx, sequences,
        (const char *const[]){"wide=1536", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", NULL});
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < p->n_launch; i++)
        if (p->launch[i].kind == LAUNCH_KERNEL && strcmp(p->launch[i].name, "layer[1].ffn.connection.grad") == 0 &&
            p->launch[i].rows < least)
            least = p->launch[i].rows;
    return least;
}

static void check_partitions(Ctx *ctx, void *arg)
{
    int64_t many = partitions(ctx, PARTITIONS / 4 * 2), few = partitions(ctx, 16);
    printf("%-16s %lld partitions of many rows, %lld of few\n", "(2,3)", (long long)many, (long long)few);
    *(bool *)arg = many == PARTITIONS && few == FEW_PARTITIONS;
}

/* A kernel with a race is no plan. */
static void check_places(Ctx *ctx, void *arg)
{
    const Plan *p = plan_of(ctx, 16, (const char *const[]){"conn=frac(m = 8, dynamic = true)", NULL});
    printf("%-16s %zu kernels\n", "frac of 8", p->n_kernel);
    *(bool *)arg = p->n_kernel > 0;
}

static void check_loads(Ctx *ctx, void *arg)
{
    const Plan *p = plan_of(
        ctx, 16,
        (const char *const[]){"wide=2048", "conn=ghc(m = 2, n = 4, dynamic = true, reduce = linear(out = D))", NULL});
    int fours = 0; /* one has such loops in any case */
    for (size_t i = 0; i < p->n_kernel; i++)
        fours += strstr(p->kernel[i].text, "vwn_many<4>(") != NULL;
    printf("%-16s %d kernels with loops of four elements\n", "(2,4)", fours);
    *(bool *)arg = fours > 1;
}

/* Operations of a row of mHC, and barriers of the kernel that has most. */
static double mhc_operations(Ctx *ctx, const Target *target, int streams, int *barriers)
{
    enum { SEQUENCES = 4, CONTEXT = 256 }; /* of the text */
    const char *set[] = {arena_printf(ctx->program, "conn=mhc(n = %d)", streams), NULL};
    const Plan *p = plan_for(ctx, target, SEQUENCES, set);
    int none = 0;
    *barriers = 0;
    for (size_t i = 0; i < p->n_kernel; i++) {
        int n = times_in(p->kernel[i].text, "__syncthreads()");
        *barriers = n > *barriers ? n : *barriers;
    }
    return operations(p, streams * (streams + 2), &none) / (SEQUENCES * CONTEXT);
}

/* Twice as many streams, whose matrices have four times as many elements: no more than that is computed, on a CPU either, and
 * threads do not wait for each of 20 iterations. */
static void check_streams(Ctx *ctx, void *arg)
{
    enum { BARRIERS = 24 };
    static const double more = 4;
    bool ok = true;
    for (int device = 0; device < 2; device++) {
        const Target *target = device ? &target_gpu : NULL;
        int none, barriers;
        double four = mhc_operations(ctx, target, 4, &none), eight = mhc_operations(ctx, target, 8, &barriers);
        printf("%-16s %.0f operations of a row of 4 streams, %.0f of 8, %d barriers\n", device ? "mhc" : "mhc, CPU",
               four, eight, barriers);
        ok = ok && eight <= more * four && barriers <= BARRIERS;
    }
    *(bool *)arg = ok;
}

/* The most shared memory that a block of rows has, of eight streams of D numbers; products on tensor cores. */
static uint64_t most_shared(Ctx *ctx, const char *D, int *products)
{
    const Plan *p = plan_of(ctx, 16, (const char *const[]){D, "conn=hyper(n = 8, dynamic = true)", NULL});
    uint64_t most = 0;
    *products = 0;
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        int64_t n[256];
        for (uint32_t j = 0; j < l->n_int && j < COUNT_OF(n); j++)
            n[j] = l->ints[j].value;
        if (l->kind != LAUNCH_KERNEL || strncmp(p->kernel[l->kernel].text, "/* rows", 7) != 0)
            continue;
        uint64_t bytes = plan_shared_bytes(&p->kernel[l->kernel].grid, n);
        most = bytes > most ? bytes : most;
        *products += times_in(p->kernel[l->kernel].text, "vwn_product_bf16<");
    }
    return most;
}

/* Products whose tiles are too many are none of a row; arrays that lack little room lie in memory instead. At 2,048 a row has two steps of
 * 32 totals. A kernel in which lanes of the second take a thread's part of a sum of the first for the total is no plan. */
static void check_room(Ctx *ctx, void *arg)
{
    int wide, narrow;
    uint64_t of_wide = most_shared(ctx, "D=2048", &wide), of_narrow = most_shared(ctx, "D=1280", &narrow);
    printf("%-16s %llu bytes of a block at 2,048, %llu at 1,280, with %d products of rows\n", "hyper of 8",
           (unsigned long long)of_wide, (unsigned long long)of_narrow, narrow);
    *(bool *)arg = of_wide <= (uint64_t)target_gpu.shared && of_narrow <= (uint64_t)target_gpu.shared && narrow >= 16;
}

static const char *case_name(size_t i) { return cases[i].name; }

static bool run_one(size_t i)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.i = i};
    bool ok = guarded(ctx, count, &c) && c.device <= cases[i].most * c.cpu && c.products == 3 * SUBLAYERS;
    printf("%-16s %.0f operations of a row, %.0f of a CPU; %d products of coefficients%s\n", cases[i].name, c.device,
           c.cpu, c.products, ok ? "" : "  FAILED");
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    static void (*const checks[])(Ctx *, void *) = {check_partitions, check_loads, check_streams, check_places,
                                                    check_room};
    for (size_t i = 0; argc < 2 && i < COUNT_OF(checks); i++) {
        Ctx *ctx = ctx_new(NULL);
        bool ok = false;
        if (!guarded(ctx, checks[i], &ok) || !ok)
            return 1;
        ctx_free(ctx);
    }
    return run_drawn(argc, argv, &(CaseDraw){.one_in = 4, .sanitized = 5}, COUNT_OF(cases), case_name, run_one);
}
