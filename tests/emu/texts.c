/* texts.c - the CUDA text of every example: the same bytes from two contexts; each kernel says its name and its place.
 *
 * In:  the examples, each made small: gradients, by turns in float32, bf16 and fp16, and the update.
 * Out: `N passed, N failed`. Nothing is compiled.
 * When: slow. It runs hundreds of kernels, of which emu.examples has a part.
 */
#include "compiler/file/check_unit.h"
#include "support/examples.h"

#include "compiler/plan/plan.h"
#include "support/drawn.h"
#include "support/harness.h"

typedef struct Printed {
    const Source *source;
    Harness *h;
    char *text;
    size_t kernels;
} Printed;

/* `where` begins "layer[1].ffn 01_nano.vwn:12:5"; the definition in the text has the name by which it is launched. */
static void check_kernel(Harness *h, Ctx *ctx, const PlanKernel *k)
{
    const char *line = strchr(k->where, '\n'), *place = strstr(k->where, ".vwn:");
    const char *name = strstr(k->text, arena_printf(ctx->program, " %s(", k->name));
    if (!CHECK_CASE(h, place && place < line && place[5] >= '1' && place[5] <= '9', "a kernel without a place"))
        fprintf(stderr, "    %.*s %.60s\n", (int)(line - k->where), k->where, k->text);
    const char *head = strstr(k->text, "KERNEL(");
    CHECK_CASE(h, head && name > head && name < strchr(head, '\n'), "a kernel without its name");
    CHECK_CASE(h, strncmp(k->text, "/* ", 3) == 0, "a kernel that does not say what it computes");
}

static void print(Ctx *ctx, void *arg)
{
    Printed *p = arg;
    const char *file = p->source->file ? p->source->file : "models.vwn";
    const char *text = example_text(ctx, p->source);
    CheckOptions how = {.path = file, .text = text, .text_length = strlen(text), .set = p->source->v.set};
    while (how.set[how.n_set])
        how.n_set++;
    Unit *u = check_file(ctx, &how);
    if (diag_errors(ctx)) {
        show_diagnostics(ctx);
        return;
    }
    Buf out = buf_new(ctx->program);
    static const Half of[] = {HALF_NONE, HALF_BF16, HALF_FP16};
    for (int i = 0; i < 2; i++) {
        Graph *g = i == 1 ? step_update(u->model, u->train, ctx->program)
                          : step_gradient(u->model, u->train, true, ctx->program);
        PlanOptions at = {.B = 2, .T = 7, .target = &target_gpu, .half = of[(p->source - sources) % 3]};
        Plan *plan = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &at), &at);
        plan_dump_device(&out, plan);
        for (size_t k = 0; k < plan->n_kernel && p->h; k++)
            check_kernel(p->h, ctx, &plan->kernel[k]);
        p->kernels += plan->n_kernel;
    }
    p->text = malloc(out.n + 1);
    memcpy(p->text, out.s, out.n);
    p->text[out.n] = 0;
}

int main(void)
{
    Harness h = {0};
    CaseDraw draw = {.one_in = 4, .sanitized = 4};
    for (size_t i = 0; i < COUNT_OF(sources); i++) {
        if (!case_drawn(&draw, i))
            continue;
        Printed p[2] = {{.source = &sources[i], .h = &h}, {.source = &sources[i]}};
        Ctx *ctx[2] = {ctx_new(NULL), ctx_new(NULL)};
        for (int k = 0; k < 2; k++)
            guarded(ctx[k], print, &p[k]);
        bool same = p[0].text && p[1].text && strcmp(p[0].text, p[1].text) == 0;
        if (!CHECK_CASE(&h, same && p[0].kernels > 10, sources[i].v.name))
            printf("%s: %zu kernels, %s\n", sources[i].v.name, p[0].kernels, same ? "the same bytes" : "other bytes");
        for (int k = 0; k < 2; k++) {
            free(p[k].text);
            ctx_free(ctx[k]);
        }
    }
    cases_end(&draw);
    return harness_end(&h);
}
