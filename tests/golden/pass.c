/* pass.c - each pass by itself: what it makes of a small input, line by line.
 *
 * In:  NAME.in, the text of a graph or of kernels, as `vwn ir` prints and reads it.
 * Out: compared with NAME.out. `pass NAME...` tries these passes, `pass` all; status 1 when one prints something else, with the
 *      lines that differ. `pass --write` writes the .out files.
 * The one idea: a pass gets its input from a file and not from the pass before, so a failure names the pass. What can be
 * checked without a golden dump is checked too: a graph computes the same numbers behind a pass, a mapped kernel has no race.
 * When: quick.
 */
#include "compiler/fuse/fuse.h"
#include "compiler/gpu/map_threads.h"
#include "compiler/kernel/kernel_text.h"
#include "compiler/pass/recompute.h"
#include "compiler/pass/simplify.h"
#include "compiler/plan/kernel_cache.h"
#include "compiler/plan/pipeline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { B = 2, T = 16 };

typedef struct Job {
    Ctx *ctx;
    const char *in; /* the file's name, without .in */
    Buf *out;
    const char *wrong; /* what needs no golden dump to be so */
} Job;

typedef struct Pass {
    const char *name; /* of a test golden.NAME, and of NAME.out */
    void (*run)(Job *j);
    const char *in[5]; /* and NULL */
} Pass;

/* ---- inputs ---- */

static char *read_file(Ctx *ctx, const char *name, const char *end, size_t *n)
{
    Buf path = buf_new(ctx->program), text = buf_new(ctx->program);
    buf_printf(&path, "%s/tests/golden/%s%s", VWN_SOURCE_DIR, name, end);
    FILE *f = fopen(path.s, "r");
    char part[4096];
    for (size_t k; f && (k = fread(part, 1, sizeof part, f)) > 0;)
        buf_put(&text, part, k);
    if (f)
        fclose(f);
    *n = text.n;
    return text.n ? text.s : NULL;
}

static uint32_t open_input(Job *j)
{
    size_t n;
    const char *text = read_file(j->ctx, j->in, ".in", &n);
    if (!text)
        ctx_raise(j->ctx, ST_INPUT, "there is no tests/golden/%s.in", j->in);
    return source_add(j->ctx, j->in, text, n);
}

static Graph *read_graph(Job *j)
{
    Graph *g = graph_read(j->ctx, j->ctx->program, open_input(j));
    if (!g)
        ctx_raise(j->ctx, ST_INPUT, "tests/golden/%s.in does not read", j->in);
    return g;
}

static const KernelTexts *read_kernels(Job *j)
{
    const KernelTexts *k = kernels_read(j->ctx, j->ctx->program, open_input(j));
    if (!k)
        ctx_raise(j->ctx, ST_INPUT, "tests/golden/%s.in does not read", j->in);
    return k;
}

/* ---- the same numbers ---- */

/* Outputs of g and what it stores, external tensors drawn by their names. */
static void evaluate(Job *j, const Graph *g, Tensor **out)
{
    Arena *a = j->ctx->program;
    RefBinding *bind = NEW_ARRAY(a, RefBinding, g->ext.n + 1);
    RefRun run = {.B = B, .T = T, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < x->shape.rank; k++)
            d[k] = dim_at(x->shape.d[k], B, T);
        bind[i] = (RefBinding){x->kind, x->name, tensor_new(a, x->dtype, x->shape.rank, d)};
        for (int64_t k = 0; k < bind[i].tensor->size && x->dtype == DT_REAL; k++)
            bind[i].tensor->real[k] = philox_normal(philox_key(1, x->name), 0, (uint64_t)k);
    }
    ref_evaluate(g, a, &run, out);
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext >= 0)
            out[i] = bind[g->out.v[i].ext].tensor;
}

static void check_same(Job *j, const Graph *before, const Graph *after)
{
    Tensor **x = NEW_ARRAY(j->ctx->program, Tensor *, before->out.n + 1);
    Tensor **y = NEW_ARRAY(j->ctx->program, Tensor *, after->out.n + 1);
    evaluate(j, before, x);
    evaluate(j, after, y);
    if (before->out.n != after->out.n)
        j->wrong = "other outputs";
    for (size_t i = 0; i < before->out.n && !j->wrong; i++)
        for (int64_t k = 0; k < x[i]->size && !j->wrong; k++)
            if (x[i]->real[k] != y[i]->real[k] &&
                !(isfinite(x[i]->real[k]) && fabs(x[i]->real[k] - y[i]->real[k]) <= 1e-9 * (1 + fabs(x[i]->real[k]))))
                j->wrong = "it computes other numbers";
}

/* ---- passes ---- */

static void run_simplify(Job *j)
{
    Graph *g = read_graph(j), *small = graph_simplify(g, j->ctx->program);
    graph_dump(j->out, small);
    check_same(j, g, small);
}

/* The forward pass ends with the last node that is called `loss`. */
static Val last_of_forward(const Graph *g)
{
    Val last = 0;
    for (Val v = 1; v < g->node.n; v++)
        if (node_at(g, v)->name && !strcmp(node_at(g, v)->name, "loss"))
            last = v;
    return last;
}

/* Without being asked, and for the module `layer`. */
static void run_recompute(Job *j)
{
    Graph *g = read_graph(j);
    Name word = name_str(j->ctx, "layer");
    for (size_t words = 0; words < 2; words++) {
        Graph *again = graph_recompute(g, last_of_forward(g), &word, words, j->ctx->program);
        buf_puts(j->out, words ? "recompute = [layer]\n" : "recompute = []\n");
        graph_dump(j->out, again);
        check_same(j, g, graph_release(again, j->ctx->program));
    }
}

static void run_concatenate(Job *j)
{
    Graph *g = read_graph(j);
    for (int cuda = 0; cuda < 2; cuda++) {
        PlanOptions how = {.B = B, .T = T, .target = cuda ? &target_gpu : NULL};
        Decomposed d = {0};
        Graph *made = decompose(j->ctx, j->ctx->program, g, &how, &d);
        buf_puts(j->out, cuda ? "for a device\n" : "for a CPU\n");
        graph_dump(j->out, made);
        buf_puts(j->out, "lie in memory:");
        for (Val v = 1; v < made->node.n; v++)
            if (d.copied[v])
                buf_printf(j->out, " %%%u", (unsigned)v);
        buf_putc(j->out, '\n');
        check_same(j, g, made);
    }
}

static Fusion *fuse(Job *j, const Graph *g, bool cuda)
{
    PlanOptions how = {.B = B, .T = T, .target = cuda ? &target_gpu : NULL};
    bool *copied = NEW_ARRAY(j->ctx->program, bool, g->node.n);
    return fuse_graph(j->ctx, j->ctx->program, g, &how, copied, MEMBERS_MAX, lower_is_flat);
}

/* No value lies in an external tensor. */
static Val *own_memory(Job *j, const Graph *g)
{
    Val *same = NEW_ARRAY(j->ctx->program, Val, g->node.n);
    for (Val v = 0; v < g->node.n; v++)
        same[v] = v;
    return same;
}

static void run_fuse(Job *j)
{
    Graph *g = read_graph(j);
    for (int cuda = 0; cuda < 2; cuda++) {
        buf_puts(j->out, cuda ? "for a device\n" : "for a CPU\n");
        fuse_dump(j->out, fuse(j, g, cuda));
    }
}

/* The program of every group, as one of a CPU. */
static void run_lower(Job *j)
{
    Graph *g = read_graph(j);
    Val *same = own_memory(j, g);
    for (int cuda = 0; cuda < 2; cuda++) {
        const Fusion *f = fuse(j, g, cuda);
        buf_puts(j->out, cuda ? "for a device\n" : "for a CPU\n");
        for (size_t i = 0; i < f->order.n; i++) {
            const Group *gr = &f->group.v[f->order.v[i]];
            Lowered low;
            if (gr->kind != GROUP_ROWS)
                continue;
            pipeline_lower(&low, j->ctx->program, f, f->order.v[i], same, NULL);
            KernelText text = {.kernel = low.kernel, .about = node_at(g, gr->last)->name};
            kernels_put(j->out, &text);
            buf_printf(j->out, "launch of %lld rows: %.0f operations of neighbours, %.0f alone, %.0f calls\n",
                       (long long)low.rows, low.work.lane, low.work.single, low.work.call);
        }
    }
}

/* Products of a row on tensor cores: what lies in a tile, and who reads it there. */
static void run_products(Job *j)
{
    PlanOptions how = {.B = B, .T = T, .target = &target_gpu, .half = HALF_BF16};
    Decomposed d = {0};
    Graph *g = decompose(j->ctx, j->ctx->program, read_graph(j), &how, &d);
    Fusion *f = fuse_graph(j->ctx, j->ctx->program, g, &how, d.copied, MEMBERS_MAX, lower_is_flat);
    for (size_t i = 0; i < f->order.n; i++) {
        const Group *gr = &f->group.v[f->order.v[i]];
        Lowered low;
        if (gr->kind != GROUP_ROWS)
            continue;
        pipeline_lower(&low, j->ctx->program, f, f->order.v[i], own_memory(j, g), NULL);
        Kernel placed = {0};
        kernel_place_tiles(&placed, low.kernel);
        KernelText text = {.kernel = &placed, .about = node_at(g, gr->last)->name};
        kernels_put(j->out, &text);
        for (size_t b = 0; b < placed.buffer.n; b++)
            if (placed.buffer.v[b].tile)
                buf_printf(j->out, "tile b%zu: %s\n", b,
                           placed.buffer.v[b].device.split ? "each number in two parts" : "numbers");
    }
}

static const char *about(const Fusion *f, const Group *gr, const Kernel *k, Arena *arena)
{
    (void)f, (void)gr, (void)k, (void)arena;
    return "";
}

/* Which groups share a kernel, whose values its buffers are in each, and what is shared of a device's threads. */
static void put_shared(Job *j, const CachedKernel *made, const Fusion *f, uint32_t id, Map *number)
{
    const Kernel *k = made->low.kernel, *mapped = made->mapped;
    void **slot = map_at(number, (uintptr_t)made->printed.name);
    if (!*slot)
        *slot = (void *)(uintptr_t)(number->n ? number->n : 1);
    buf_printf(j->out, "%s: kernel %zu", node_at(f->g, f->group.v[id].last)->name, (size_t)(uintptr_t)*slot);
    for (size_t i = 0; i < made->printed.buffer.n; i++)
        buf_printf(j->out, " %%%u", (unsigned)k->buffer.v[made->printed.buffer.v[i]].value);
    buf_puts(j->out, " sizes");
    for (size_t i = 0; i < made->printed.ints.n; i++) {
        const KArgument *x = &made->printed.ints.v[i];
        buf_printf(j->out, " %lld", (long long)(x->kind == KA_DIM ? dim_at(x->dim, B, T) : x->value));
    }
    if (mapped)
        buf_printf(j->out, " threads %u rows %u width %u", mapped->device.mapping.row_threads,
                   mapped->device.mapping.units, mapped->device.mapping.width);
    buf_putc(j->out, '\n');
}

static void run_share(Job *j)
{
    Graph *g = read_graph(j);
    Val *same = own_memory(j, g);
    for (int cuda = 0; cuda < 2; cuda++) {
        const Fusion *f = fuse(j, g, cuda);
        const Dialect *d = cuda ? &dialect_cuda : &dialect_c;
        KernelCache *a = kernel_cache_new(j->ctx, j->ctx->program);
        Map number;
        map_init(&number, j->ctx->program);
        buf_puts(j->out, cuda ? "for a device\n" : "for a CPU\n");
        for (int making = !cuda; making < 2; making++)
            for (size_t i = 0; i < f->order.n; i++) {
                CachedKernel made;
                if (f->group.v[f->order.v[i]].kind != GROUP_ROWS)
                    continue;
                if (!making) {
                    kernel_cache_visit(a, f, f->order.v[i], same, about);
                    continue;
                }
                kernel_cache_make(a, &made, f, f->order.v[i], same, d, about);
                put_shared(j, &made, f, f->order.v[i], &number);
            }
        kernel_cache_free(a);
    }
}

/* For the threads of a device, with so many bytes of shared memory. */
static const Kernel *mapped(Job *j, const KernelText *x, int64_t shared)
{
    Kernel k = *x->kernel, *to = NEW(j->ctx->program, Kernel);
    k.target = &target_gpu;
    k.device.shared = shared;
    pipeline_map(to, &k, NULL);
    if (kernel_race(to) != SIZE_MAX)
        j->wrong = "a race";
    return to;
}

/* Without what registers.c counts: that is a pass of its own. */
static void put_mapped(Job *j, const KernelText *x, int64_t shared)
{
    Kernel k = *mapped(j, x, shared);
    KernelText text = {.kernel = &k, .about = x->about};
    k.device.mapping.pressure = k.device.mapping.in_flight = 0;
    kernels_put(j->out, &text);
}

static void run_map(Job *j)
{
    const KernelTexts *all = read_kernels(j);
    for (size_t i = 0; i < all->kernel.n; i++)
        put_mapped(j, &all->kernel.v[i], target_gpu.shared);
}

/* Where there is room, and where there is not. */
static void run_shared(Job *j)
{
    const int64_t room[] = {target_gpu.shared, 20 * 1024};
    for (size_t n = 0; n < 2; n++) {
        const KernelTexts *all = read_kernels(j);
        buf_printf(j->out, "shared memory %lld\n", (long long)room[n]);
        for (size_t i = 0; i < all->kernel.n; i++)
            put_mapped(j, &all->kernel.v[i], room[n]);
    }
}

static void run_pressure(Job *j)
{
    static const char *const index[] = {"wide", "wide of rows", "narrow"};
    const KernelTexts *all = read_kernels(j);
    for (size_t i = 0; i < all->kernel.n; i++) {
        uint32_t before = kernel_register_pressure(all->kernel.v[i].kernel);
        const Kernel *k = mapped(j, &all->kernel.v[i], target_gpu.shared);
        buf_printf(j->out, "%s: registers %u before mapping, %u after, loads %u, index %s, loops written out",
                   all->kernel.v[i].about, before, k->device.mapping.pressure, k->device.mapping.in_flight,
                   index[k->device.mapping.index]);
        for (size_t s = 0; s < k->stmt.n; s++)
            if (k->stmt.v[s].kind == KS_LOOP)
                buf_printf(j->out, " %u", k->stmt.v[s].unroll);
        buf_putc(j->out, '\n');
    }
}

/* The texts of a program: for a CPU, and for the threads of a device. */
static void run_print(Job *j)
{
    for (int cuda = 0; cuda < 2; cuda++) {
        const KernelTexts *all = read_kernels(j);
        for (size_t i = 0; i < all->kernel.n; i++) {
            const KernelText *x = &all->kernel.v[i];
            Printed p;
            Kernel cpu = *x->kernel;
            if (!cuda) {
                pipeline_vectors(&cpu);
                kernel_put_prefetches(&cpu);
                pipeline_rest(&cpu);
            }
            pipeline_print(&p, cuda ? mapped(j, x, target_gpu.shared) : &cpu, cuda ? &dialect_cuda : &dialect_c,
                           x->about, NULL);
            buf_put(j->out, p.text, p.length);
            buf_putc(j->out, '\n');
        }
    }
}

/* In the order of the data. */
static const Pass passes[] = {
    {"simplify", run_simplify, {"simplify"}},
    {"recompute", run_recompute, {"recompute"}},
    {"concatenate", run_concatenate, {"concatenate", "parts"}},
    {"fuse", run_fuse, {"fuse", "sums"}},
    {"rematerialize", run_fuse, {"rematerialize"}},
    {"lower", run_lower, {"fuse", "rematerialize", "once", "terms"}},
    {"products", run_products, {"table", "tablesum"}},
    {"map", run_map, {"map", "row"}},
    {"shared", run_shared, {"tile", "row"}},
    {"pressure", run_pressure, {"pressure", "map", "row"}},
    {"print", run_print, {"map"}},
    {"share", run_share, {"share"}},
};
enum { TRIED = sizeof passes / sizeof passes[0] };

/* ---- comparing ---- */

typedef struct Run {
    const Pass *pass;
    Job *job;
} Run;

static void run_pass(Ctx *ctx, Run *r)
{
    for (size_t i = 0; r->pass->in[i]; i++) {
        r->job->in = r->pass->in[i];
        buf_printf(r->job->out, "== %s.in\n", r->job->in);
        r->pass->run(r->job);
        if (r->job->wrong)
            ctx_raise(ctx, ST_INPUT, "%s of %s.in: %s", r->pass->name, r->job->in, r->job->wrong);
    }
}

static size_t line_length(const char *s) { return strcspn(s, "\n"); }

/* The first line that differs, and those beside it. */
static void show(const Pass *p, const char *want, const char *got)
{
    size_t line = 1;
    while (*want && *got && line_length(want) == line_length(got) && !memcmp(want, got, line_length(want))) {
        want += line_length(want) + (want[line_length(want)] == '\n');
        got += line_length(got) + (got[line_length(got)] == '\n');
        line++;
    }
    printf("FAILED: the pass %s prints something else, from line %zu of tests/golden/%s.out on\n- %.*s\n+ %.*s\n",
           p->name, line, p->name, (int)line_length(want), want, (int)line_length(got), got);
}

static bool write_out(const Pass *p, const Buf *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/golden/%s.out", VWN_SOURCE_DIR, p->name);
    FILE *f = fopen(path, "w");
    bool ok = f && fwrite(text->s, 1, text->n, f) == text->n;
    return f && fclose(f) == 0 && ok;
}

static void on_bug(Ctx *ctx, const char *text)
{
    (void)ctx;
    printf("bug: %s\n", text);
}

/* Is what the pass prints what stands in its file? */
static bool try_pass(const Pass *p, bool writing)
{
    CtxGuard guard;
    Ctx *ctx = ctx_new(NULL);
    if (!ctx)
        abort();
    ctx->on_bug = on_bug;
    Buf out = buf_new(ctx->program);
    Job job = {.ctx = ctx, .out = &out};
    bool same = false;
    if (CTX_TRY(ctx, &guard)) {
        size_t n;
        run_pass(ctx, &(Run){p, &job});
        const char *want = writing ? NULL : read_file(ctx, p->name, ".out", &n);
        same = writing ? write_out(p, &out) : want && !strcmp(want, out.s);
        if (!same)
            show(p, want ? want : "", out.s);
        ctx_leave(ctx, &guard);
    } else {
        printf("FAILED: %s\n", ctx->message);
    }
    ctx_free(ctx);
    return same;
}

int main(int argc, char **argv)
{
    bool writing = argc == 2 && !strcmp(argv[1], "--write");
    int tried = 0, failed = 0;
    for (size_t i = 0; i < TRIED; i++) {
        bool wanted = argc == 1 || writing;
        for (int a = 1; a < argc && !wanted; a++)
            wanted = !strcmp(argv[a], passes[i].name);
        if (!wanted)
            continue;
        tried++;
        failed += !try_pass(&passes[i], writing);
    }
    printf("%d passes, %d failed\n", tried, failed);
    return failed != 0 || tried == 0;
}
