/* examples_bf16.c - the CUDA kernels of the examples that ask for bf16, emulated in bf16, against the float64 evaluator
 * of the same rounding.
 *
 * In:  those examples, small, yet wide enough for products in bf16, with randomised parameters, forward and backward.
 * Out: `N passed, N failed`; 77 without a C++ compiler. Every loss and every gradient agrees to the bound of bf16.c,
 *      kernels do load and products do store two bytes, the four ways of backend_emu.h give the same bits. An
 *      example that asks for bf16 and is not listed is a failure.
 * When: slow. It runs hundreds of kernels, of which emu.examples has a part.
 */
#include "support/examples.h"

#include "emulated.h"

/* The evaluator does not have the rounded probabilities of attention. */
static const double WORST = 5e-2;
enum { LOADS_LEAST = 8, PRODUCTS_LEAST = 4 };

/* 64 positions of 64 numbers and more are rounded. Products of an image's few positions by matrices of up to 32,768 elements are kernels'. */
static const Source wide[] = {
    {"01_nano.vwn", {"nano", {"D=96", "L=1", NULL}}},
    {"02_olmo_1b.vwn", {"olmo", {"D=64", "L=1", NULL}}},
    {"02_olmo_1b.vwn", {"olmo hyper", {"D=64", "L=1", "conn=hyper(n = 4, dynamic = true)", NULL}}},
    {"02_olmo_1b.vwn",
     {"olmo frac",
      {"D=64", "L=1", "conn=frac(m = 4, dynamic = true, norm = rms_norm(eps = 1e-6, gain = false))", NULL}}},
    {"07_vwn_x8_moe.vwn", {"vwn x8, moe", {"D=64", "L=1", "V=23", NULL}}},
    {"08_xformer_500m.vwn", {"xformer", {"d=80", "L=2", "V=23", NULL}}},
    {"09_nexus_growth.vwn", {"nexus", {"D=64", "M=64", "A=64", "F=64", "L=1", "h=16", "heads=4", "V=23", NULL}}},
    {"10_tokenformer_growth.vwn", {"tokenformer", {"D=64", "slots=64", "ffn_slots=64", "V=23", "heads=4", NULL}}},
    {"15_olmoe_1b_7b.vwn", {"olmoe", {"D=64", "L=1", "V=23", "F=17", "E=9", "H=4", NULL}}},
    {"19_over_encoding.vwn", {"over-encoding", {"D=64", "L=1", "V=23", "rows=40", NULL}}},
    {"20_mtp_chain.vwn", {"mtp chain", {"D=64", "L=1", "V=23", "m=2", "n=4", "depths=2", NULL}}},
    {"21_deepseek_mtp.vwn", {"deepseek mtp", {"D=64", "L=1", "V=23", "F=64", NULL}}},
    {"24_xformer_moe.vwn", {"xformer moe", {"d=80", "L=2", "V=23", "experts=5", NULL}}},
    {"25_nexus_released.vwn", {"nexus, all maps", {"D=96", "M=64", "A=64", "F=64", "L=1", "V=23", NULL}}},
    {"27_vit.vwn", {"vit, patches", {"D=192", "L=1", "H=3", "S=48", NULL}}},
};

typedef struct Case {
    const Source *source;
    Agreement is;
    Narrow narrow;
} Case;

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Unit *u = load_text(ctx, example_text(ctx, c->source), c->source->v.set);
    c->narrow = count_narrow(ctx, u, HALF_BF16, c->is.B, c->is.T);
    gradients_emulated(ctx, u, &c->is);
}

static bool run_one(size_t i)
{
    Ctx *ctx = ctx_new(NULL);
    bool image = strcmp(wide[i].file, "27_vit.vwn") == 0; /* of ten positions */
    Case c = {&wide[i],
              {.B = image ? 8 : 2,
               .T = 32,
               .half = HALF_BF16,
               .half_wanted = HALF_BF16,
               .target = &target_gpu,
               .noise = 0.1,
               .worst = INFINITY,
               .name = ""},
              {0}};
    guarded(ctx, compare, &c);
    bool ok = c.is.worst < WORST && c.is.compared > 7 && c.is.same_bits && c.narrow.loads >= LOADS_LEAST &&
              c.narrow.products >= PRODUCTS_LEAST;
    printf("%-16s %3zu gradients, %d loads of 16 bits, %d products and %d inside, worst %.1e at %s%s%s\n",
           wide[i].v.name, c.is.compared, c.narrow.loads, c.narrow.products, c.narrow.inside, c.is.worst, c.is.name,
           c.is.same_bits ? "" : ", orders differ", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

static const char *case_name(size_t i) { return wide[i].v.name; }

int main(int argc, char **argv)
{
    int missing = examples_not_listed(wide, COUNT_OF(wide), "compute = bf16");
    int status =
        emulated_drawn(argc, argv, &(CaseDraw){.one_in = 5, .sanitized = 5}, COUNT_OF(wide), case_name, run_one);
    return missing ? 1 : status;
}
