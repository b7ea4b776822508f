/* figures.c - what the plans of every example take, beside what they took.
 *
 * In:  the examples, made small, and all of models/; for a CPU in fp32, for a GPU in bf16.   Out: a line for each plan that takes
 *      something else than figures.txt says; `N passed, N failed`. `figures --write` writes figures.txt, `figures --show` prints what it
 *      would hold.
 *      Each model is planned for one of both, in turns, and one of varying widths, or of (4,8), for both: what is done with its rows
 *      is done for devices alone. VWN_TEST_WHOLE=1 and the options plan every one for both.
 * The one idea: a plan that is as right, but not as good, gives the same numbers, so no other test sees it. What it takes are
 * counts, the same on every machine. A change that makes them others on purpose writes them anew, and its diff says what it costs.
 * When: slow. It counts what plans take; all tests of kernels see what makes plans.
 */
#include "support/drawn.h"
#include "support/examples.h"

#include "compiler/plan/plan.h"

/* Of a training step, an update and an evaluation together: bytes, bytes, operations, those of products, characters. What these
 * do not tell, the mark does: it is made of the names of kernels, which their texts make, and of what launches hand to them. */
typedef struct Figures {
    double launches, kernels, arena, traffic, operations, products, text, mark;
} Figures;
static const char *const words[] = {"launches",   "kernels",  "arena", "traffic",
                                    "operations", "products", "text",  "mark"};
enum { WORDS = COUNT_OF(words) };

typedef struct Case {
    const Source *source;
    const Target *target;
    Figures found;
} Case;

static void mark(Figures *f, const void *bytes, size_t n)
{
    uint64_t h = (uint64_t)f->mark;
    for (size_t i = 0; i < n; i++)
        h = (h * 31 + ((const unsigned char *)bytes)[i]) % 4294967291u;
    f->mark = (double)h;
}

static void mark_launch(Figures *f, const Plan *p, const Launch *l)
{
    if (l->kind == LAUNCH_KERNEL)
        mark(f, p->kernel[l->kernel].name, strlen(p->kernel[l->kernel].name));
    mark(f, &l->rows, sizeof l->rows);
    mark(f, &l->grain, sizeof l->grain);
    for (uint32_t i = 0; i < l->n_touched; i++) {
        uint64_t at = p->buffer[l->buffer[i]].offset + l->shift[i];
        mark(f, &at, sizeof at);
        mark(f, &l->writes[i], sizeof l->writes[i]);
    }
    const PlanMatmul *x = &l->matmul;
    int64_t product[] = {x->transpose_a, x->transpose_b, x->accumulate, x->half,       x->rounded,   x->m,
                         x->n,           x->k,           x->batch,      x->lda,        x->ldb,       x->ldc,
                         x->step_a,      x->step_b,      x->step_c,     l->copy.bytes, l->copy.from, l->copy.to};
    mark(f, product, sizeof product);
    for (uint32_t i = 0; i < l->n_int; i++)
        mark(f, &l->ints[i].value, sizeof l->ints[i].value);
    for (uint32_t i = 0; i < l->n_scalar; i++)
        mark(f, &l->scalars[i].value, sizeof l->scalars[i].value);
}

static void add_plan(Case *c, Ctx *ctx, Unit *u, const Graph *g)
{
    PlanOptions how = {.B = u->train->micro_seqs,
                       .T = u->train->context,
                       .target = c->target,
                       .half = c->target == &target_gpu ? HALF_BF16 : HALF_NONE};
    const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    Figures *f = &c->found;
    f->launches += (double)p->n_launch;
    f->kernels += (double)p->n_kernel;
    f->arena += (double)p->arena_bytes;
    for (size_t i = 0; i < p->n_launch; i++) {
        const PlanWork *w = &p->launch[i].work;
        f->traffic += p->launch[i].bytes;
        f->operations += w->lane + w->single + w->call;
        f->products += p->launch[i].flops + w->product + w->expert + w->expert_half;
        mark_launch(f, p, &p->launch[i]);
    }
    for (size_t i = 0; i < p->n_number; i++)
        mark(f, &p->number[i].bits, sizeof p->number[i].bits);
    for (size_t i = 0; i < p->n_kernel; i++)
        f->text += (double)p->kernel[i].length;
}

static void plan_case(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, example_text(ctx, c->source), c->source->v.set);
    add_plan(c, ctx, u, step_gradient(u->model, u->train, true, ctx->program));
    add_plan(c, ctx, u, step_update(u->model, u->train, ctx->program));
    add_plan(c, ctx, u, step_held_out(u->model, u->train, ctx->program));
}

/* A line of figures.txt. */
static bool line_of(Case *c, char *line, size_t room)
{
    Ctx *ctx = ctx_new(NULL);
    bool ok = guarded(ctx, plan_case, c);
    const double *x = (const double *)&c->found;
    int n = snprintf(line, room, "%s, %s:", c->source->v.name, c->target->name);
    for (int k = 0; k < (int)WORDS; k++)
        n += snprintf(line + n, room - (size_t)n, " %s %.0f", words[k], x[k]);
    ctx_free(ctx);
    return ok;
}

/* Says which figures of a line are others: their words and numbers are read off both. */
static void tell(const char *wanted, const char *found)
{
    printf("FAILED: %.*s\n", (int)strcspn(found, ":"), found);
    for (int k = 0; k < (int)WORDS; k++) {
        char word[32];
        snprintf(word, sizeof word, " %s ", words[k]);
        const char *x = strstr(wanted, word), *y = strstr(found, word);
        double was = x ? atof(x + strlen(word)) : NAN, is = y ? atof(y + strlen(word)) : NAN;
        if (was != is && k == WORDS - 1)
            printf("    kernels of other texts, or other arguments of launches\n");
        else if (was != is)
            printf("    %-10s %.0f, figures.txt has %.0f (%+.2f %%)\n", words[k], is, was, 100 * (is - was) / was);
    }
}

int main(int argc, char **argv)
{
    static const Target *const targets[] = {&target_cpu, &target_gpu};
    static char path[] = VWN_SOURCE_DIR "/tests/kernel/figures.txt";
    bool write = argc > 1 && strcmp(argv[1], "--write") == 0, show = argc > 1 && strcmp(argv[1], "--show") == 0;
    bool all = write || show || test_whole();
    FILE *f = show ? NULL : fopen(path, write ? "w" : "r");
    int passed = 0, failed = !show && !f;
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        for (size_t t = 0; t < COUNT_OF(targets); t++) {
            Case c = {.source = &sources[i], .target = targets[t]};
            char line[512], wanted[512] = "";
            if (f && !write && fgets(wanted, sizeof wanted, f))
                wanted[strcspn(wanted, "\n")] = '\0';
            bool both = strstr(sources[i].v.name, "width") || strstr(sources[i].v.name, "(4,8)");
            if (!all && !both && i % COUNT_OF(targets) != t)
                continue;
            bool ok = line_of(&c, line, sizeof line);
            if (show || (write && f))
                fprintf(show ? stdout : f, "%s\n", line);
            ok = ok && (show || write || strcmp(line, wanted) == 0);
            ok ? passed++ : failed++;
            if (!ok)
                tell(wanted, line);
        }
    bool more = f && !write && fgetc(f) != EOF;
    failed += more;
    if (more)
        printf("figures.txt has more lines than there are plans\n");
    if (f)
        fclose(f);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
