/* examples.c - compiled kernels of the examples against the float64 reference evaluator.
 *
 * In:  the examples, each made small, with randomised parameters, forward and backward.
 * Out: `N passed, N failed`. Every loss and every gradient tensor agrees to float32 bounds; 1, 2 and 4 threads
 *      give the same bits. What an example shares with the models of models.h is compared there at more sizes.
 */
#include "../examples.h"

#include "../gradients.h"

typedef struct Case {
    const Source *source;
    Agreement is;
} Case;

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    gradients_compare(ctx, load_text(ctx, example_text(ctx, c->source), c->source->v.set), &c->is);
}

static bool run_case(const Source *s)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {s, {.B = 2, .T = 7, .worst = INFINITY, .name = ""}};
    guarded(ctx, compare, &c);
    bool ok = c.is.worst < 5e-5 && /* gradients of a condition cancel */ c.is.compared > 10 && c.is.same_bits;
    printf("%-18s %zu gradients, worst %.1e at %s%s%s\n", s->v.name, c.is.compared, c.is.worst, c.is.name,
           c.is.same_bits ? "" : ", threads differ", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

int main(int argc, char **argv)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(sources); i++)
        if (argc < 2 || !strcmp(argv[1], sources[i].v.name)) /* an argument names the only one */
            run_case(&sources[i]) ? passed++ : failed++;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
