/* boundaries.c - kernels between sublayers, for the connections of the library.
 *
 * In:  a transformer with each connection, 2 or 6 layers, two widths of one alignment class.
 * Out: one forward kernel between a product that ends a sublayer and those that begin the next,
 *      in the training and in the prediction program; one backward kernel beside second stages; the
 *      same distinct kernels for more layers and for the other width. mHC has one more kernel forward, that of its
 *      iterations, and backward that and two that add up over rows the gradients of what they start from. In a plan for a device in
 *      bf16 too, where the products of these kernels are done on tensor cores.
 * When: computes.
 */
#include "compiler/pass/simplify.h"
#include "support/models.h"

#include "boundary.h"

static const char text[] = "edition = 1\n"
                           "import \"std/transformer\"\n"
                           "import \"std/connections\"\n"
                           "let D    = 192\n"
                           "let L    = 2\n"
                           "let wide = 1\n"
                           "let conn = residual()\n"
                           "let gated = true\n"
                           "model small {\n"
                           "  context = 16, width = D, mask = causal, connection = conn\n"
                           "  pre_norm = rms_norm(eps = 1e-6), init = normal(std = 0.02), out_init = normal(std = "
                           "0.02)\n"
                           "  embed tokens { vocab = 64, width = wide * D }\n"
                           "  for layer in 1..L {\n"
                           "    attention { heads = 4, head_dim = 48, position = rope(base = 100) }\n"
                           "    ffn { hidden = 2 * D, activation = silu, gated = gated }\n"
                           "  }\n"
                           "  head lm { norm = rms_norm(eps = 1e-6) }\n"
                           "}\n"
                           "train {\n"
                           "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, "
                           "seed = 1\n"
                           "  precision = fp32, clip = 1\n"
                           "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
                           "}\n";

typedef struct Connection {
    const char *name, *conn, *wide;
    bool gated; /* or the ffn begins with one product, which alone has the norm's gradient */
} Connection;
static const Connection connections[] = {
    {"residual", "conn=residual()", "wide=1", true},
    {"ghc (2,3)", "conn=ghc(m=2,n=3,dynamic=true,reduce=linear(out=D))", "wide=3/2", true},
    {"ghc (2,3) static", "conn=ghc(m=2,n=3,dynamic=false,reduce=linear(out=D))", "wide=3/2", true},
    {"ghc (4,8)", "conn=ghc(m=4,n=8,dynamic=true,reduce=linear(out=D))", "wide=2", true},
    {"ghc (8,16)", "conn=ghc(m=8,n=16,dynamic=true,reduce=linear(out=D))", "wide=2", true},
    {"ghc (8,32)", "conn=ghc(m=8,n=32,dynamic=true,reduce=linear(out=D))", "wide=4", true},
    {"ghc (8,64)", "conn=ghc(m=8,n=64,dynamic=true,reduce=linear(out=D))", "wide=8", true},
    {"ghc (1,4)", "conn=ghc(m=1,n=4,dynamic=true,reduce=linear(out=D))", "wide=4", true},
    {"hyper 2 static", "conn=hyper(n=2,dynamic=false)", "wide=1", true},
    {"hyper 2 dynamic", "conn=hyper(n=2,dynamic=true)", "wide=1", true},
    {"hyper 4 static", "conn=hyper(n=4,dynamic=false)", "wide=1", true},
    {"hyper 4 dynamic", "conn=hyper(n=4,dynamic=true)", "wide=1", true},
    {"frac 2", "conn=frac(m=2,dynamic=true)", "wide=1", true},
    {"frac 4", "conn=frac(m=4,dynamic=true)", "wide=1", true},
    {"mhc 2", "conn=mhc(n=2)", "wide=1", true},
    {"mhc 3", "conn=mhc(n=3)", "wide=1", true},
    {"mhc 4", "conn=mhc(n=4)", "wide=1", true},
    {"mhc 2 otherwise", "conn=mhc(n=2,start=softmax,eps=1e-6,transposed=true,collapse=predicted)", "wide=1", true},
    {"hyper 2 otherwise", "conn=hyper(n=2,dynamic=true,norm=none,squash=none,read=[1],collapse=learned)", "wide=1",
     true},
    {"given matrices", "conn=hyper_fixed(n=2,matrices=wiring(kind=parallel))", "wide=1", true},
    {"altup 2", "conn=altup(n=2)", "wide=1", true},
    {"residual, plain ffn", "conn=residual()", "wide=1", false},
    {"ghc (2,3), plain ffn", "conn=ghc(m=2,n=3,dynamic=true,reduce=linear(out=D))", "wide=3/2", false},
};

/* Are those of small matrices, which kernels of their own do? */
static bool has_iterations(const Connection *c) { return strstr(c->conn, "mhc(") != NULL; }

typedef struct Job {
    const Connection *c;
    int bad;
} Job;

static Plan *plan_of(Ctx *ctx, const Connection *c, const char *L, const char *D, bool train)
{
    const char *set[] = {c->conn, c->wide, L, D, c->gated ? "gated=true" : "gated=false", NULL};
    Unit *u = load_text(ctx, text, set);
    Graph *g = train ? step_gradient(u->model, u->train, true, ctx->program) : step_predict(u->model, ctx->program);
    PlanOptions how = {.B = 4, .T = 16};
    Plan *p = plan_build(ctx, ctx->program, graph_simplify(g, ctx->program), &how);
    plan_verify(ctx, p);
    return p;
}

static Plan *device_plan_of(Ctx *ctx, const Connection *c)
{
    const char *set[] = {c->conn, c->wide, "L=2", NULL};
    Unit *u = load_text(ctx, text, set);
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    PlanOptions how = {.B = 4, .T = 16, .target = &target_gpu, .single = true, .half = HALF_BF16};
    Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    plan_verify(ctx, p);
    return p;
}

static void expect(Job *job, bool ok, const Plan *p, const Boundary *b, const char *what, const char *end)
{
    if (ok)
        return;
    job->bad++;
    printf("FAIL %s, %s, %s: %zu kernels, %zu of a library\n", job->c->name, what, end, b->rows, b->library);
    boundary_print(p, b);
}

#define ATTENTION(layer)                                                                                               \
    {                                                                                                                  \
        layer ".q_proj.W", layer ".k_proj.W", layer ".v_proj.W"                                                        \
    }
#define FFN(layer)                                                                                                     \
    {                                                                                                                  \
        layer ".up.W", layer ".gate.W"                                                                                 \
    }
#define PLAIN(layer)                                                                                                   \
    {                                                                                                                  \
        layer ".up.W"                                                                                                  \
    }
static const BoundaryWeights between[] = {
    {"layer[1].attention.o_proj.W", FFN("layer[1].ffn")},
    {"layer[1].ffn.down.W", ATTENTION("layer[2].attention")},
    {"layer[2].attention.o_proj.W", FFN("layer[2].ffn")},
};
static const BoundaryWeights between_plain[] = {
    {"layer[1].attention.o_proj.W", PLAIN("layer[1].ffn")},
    {"layer[1].ffn.down.W", ATTENTION("layer[2].attention")},
    {"layer[2].attention.o_proj.W", PLAIN("layer[2].ffn")},
};
static const BoundaryWeights to_head = {"layer[2].ffn.down.W", {"head.lm.W"}};
static const BoundaryWeights to_reduce = {"layer[2].ffn.down.W", {"head.lm.connection.close.reduce.W"}};

static void check_forward(Job *job, Ctx *ctx, const Plan *p, const char *what)
{
    Arena *arena = ctx->program;
    const BoundaryWeights *w = job->c->gated ? between : between_plain;
    size_t forward = has_iterations(job->c) ? 2 : 1;
    for (size_t i = 0; i < COUNT_OF(between); i++) {
        Boundary b = boundary_forward(arena, p, &w[i]);
        expect(job, b.rows == forward && b.n == forward, p, &b, what, w[i].end);
    }
    const BoundaryWeights *last = strstr(job->c->conn, "reduce") ? &to_reduce : &to_head;
    Boundary b = boundary_forward(arena, p, last);
    expect(job, b.rows == 1 && b.n == 1, p, &b, what, last->end);
}

static void check_backward(Job *job, Ctx *ctx, const Plan *p)
{
    const BoundaryWeights *w = job->c->gated ? between : between_plain;
    for (size_t i = 0; i < COUNT_OF(between); i++) {
        Boundary b = boundary_backward(ctx->program, p, &w[i]);
        expect(job, b.rows == (has_iterations(job->c) ? 4 : 1) && b.library == 0, p, &b, "backward", w[i].end);
    }
}

/* Does the one kernel of rows multiply on tensor cores? */
static bool is_on_tensor_cores(const Plan *p, const Boundary *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const Launch *l = &p->launch[b->launch[i]];
        if (!boundary_is_rows(p, l))
            continue;
        const char *kernel = p->kernel[l->kernel].text; /* in place, or a function that is called */
        return strstr(kernel, "vwn_product_bf16<") || strstr(kernel, "vwn_product_called<");
    }
    return false;
}

static void check_device(Job *job, Ctx *ctx)
{
    const Plan *p = device_plan_of(ctx, job->c);
    for (size_t i = 0; i < COUNT_OF(between); i++) {
        Boundary b = boundary_forward(ctx->program, p, &between[i]);
        expect(job, b.rows == 1 && b.n == 1 && is_on_tensor_cores(p, &b), p, &b, "forward on a device", between[i].end);
        b = boundary_backward(ctx->program, p, &between[i]);
        expect(job, b.rows == 1 && b.library == 0 && is_on_tensor_cores(p, &b), p, &b, "backward on a device",
               between[i].end);
    }
    job->bad += !strstr(p->device_prelude, "mma.sync");
}

static void check_one(Ctx *ctx, void *arg)
{
    Job *job = arg;
    Plan *two = plan_of(ctx, job->c, "L=2", "D=192", true);
    check_forward(job, ctx, two, "training");
    check_backward(job, ctx, two);
    check_forward(job, ctx, plan_of(ctx, job->c, "L=2", "D=192", false), "prediction");
    Plan *three = plan_of(ctx, job->c, "L=3", "D=192", true);
    Plan *six = plan_of(ctx, job->c, "L=6", "D=192", true);
    Plan *wide = plan_of(ctx, job->c, "L=2", "D=320", true);
    /* The boundaries next to the embedding and to the head are kernels of their own, and where it is
     * cheap they compute again what the one before them did, so those next to them can be too. What two
     * layers have none of is in the middle: a boundary behind attention and one behind an ffn. From three
     * layers on there is no other. */
    size_t more = plan_missing(two, six), late = plan_missing(three, six), other = plan_missing(two, wide);
    printf("%-20s kernels %zu, with 6 layers %zu more, 320 wide %zu\n", job->c->name, two->n_kernel, more, other);
    job->bad += more > 2 || late != 0 || other != 0;
    if (strstr(job->c->conn, "n=64"))
        check_device(job, ctx);
}

int main(void)
{
    int bad = 0;
    CaseDraw draw = {.one_in = 1, .sanitized = 16};
    for (size_t i = 0; i < COUNT_OF(connections); i++) {
        if (!case_drawn(&draw, i))
            continue;
        Ctx *ctx = ctx_new(NULL);
        Job job = {.c = &connections[i]};
        bad += !guarded(ctx, check_one, &job) || job.bad;
        ctx_free(ctx);
        fflush(stdout);
    }
    cases_end(&draw);
    printf("%zu connections, %d failures\n", draw.taken, bad);
    return bad != 0;
}
