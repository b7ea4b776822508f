/* logits.c - how many bytes a logit of a large vocabulary moves on a GPU, from the product that makes it to those of its
 * gradient.
 *
 * In:  a small language model in bf16, with vocabularies on both sides of what is called many choices.
 * Out: 12 bytes a logit of many: written, read, read and its gradient written, and that read by two products, each time
 *      two bytes; 18 of few, whose scores keep 24 bits until they are exponents. No exponential is kept.
 */
#include "support/models.h"

#include "compiler/model/model.h"
#include "compiler/plan/plan.h"

static const char text[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
    "let V = 1024\n"
    "model small {\n"
    "  context = 16, width = 192, mask = causal, connection = residual()\n"
    "  pre_norm = rms_norm(eps = 1e-6), init = normal(std = 0.02), out_init = normal(std = 0.02)\n"
    "  embed tokens { vocab = V }\n"
    "  ffn { hidden = 384, activation = silu, gated = true }\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "}\n"
    "train {\n"
    "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = mixed(compute = bf16, master = fp32)\n"
    "  optimizer sgd { lr = 1e-2, momentum = 0, weight_decay = 0 }\n"
    "}\n";

enum { B = 4, T = 16 };

typedef struct Job {
    const char *vocabulary;
    int64_t choices;
    double expected;
    bool ok;
} Job;

static void count(Ctx *ctx, void *arg)
{
    Job *job = arg;
    const char *set[] = {job->vocabulary, NULL};
    Unit *u = load_text(ctx, text, set);
    PlanOptions how = {.B = B, .T = T, .target = &target_gpu, .half = train_half(u->train)};
    const Plan *p = plan_build(
        ctx, ctx->program, plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how), &how);
    double bytes = 0, logits = (double)(B * T * job->choices);
    for (size_t i = 0; i < p->n_launch; i++)
        for (uint32_t k = 0; k < p->launch[i].n_buffer; k++) {
            const PlanBuffer *b = &p->buffer[p->launch[i].buffer[k]];
            if ((double)b->bytes / (double)plan_item_bytes(b) == logits)
                bytes += (double)b->bytes;
        }
    printf("%lld words: %g bytes a logit\n", (long long)job->choices, bytes / logits);
    job->ok = bytes == job->expected * logits;
}

int main(void)
{
    Job job[] = {{"V=1024", 1024, 12, false}, {"V=1016", 1016, 18, false}};
    int bad = 0;
    for (size_t i = 0; i < COUNT_OF(job); i++) {
        Ctx *ctx = ctx_new(NULL);
        bad += !guarded(ctx, count, &job[i]) || !job[i].ok;
        ctx_free(ctx);
    }
    printf("%d failures\n", bad);
    return bad != 0;
}
