/* catalogue.c - the published ways to grow a model, proved.
 *
 * In:  growth steps and what papers and their algebra say of them (support/growth_rows.h).   Out: 0 when growth_prove
 * says the same. Runs through the same steps: tests/train/growth_rows.c, tests/cuda/growth_rows.c.
 * When: quick, released.
 */
#include "support.h"

#include "support/drawn.h"
#include "support/growth_rows.h"

static const GrowthProof *prove(Test *t, Checked *c, const char *name, const GrowthPlan **plan)
{
    bool good = c->unit && !diag_errors(c->ctx) && c->unit->grow.n == 1;
    EXPECT(t, name, good);
    if (!good) {
        print_diagnostics(c);
        return NULL;
    }
    *plan = growth_plan(&c->unit->grow.v[0], c->ctx->program);
    return growth_prove(*plan, c->ctx->program);
}

/* A step that claims nothing of life says that it need not be alive, so that dead ones can be looked at. */
static void put_row(char *text, size_t most, const GrowthRow *r, const char *claim)
{
    char claims[128];
    snprintf(claims, sizeof claims, "%s%s", claim, strstr(claim, "alive") ? "" : "  check alive(none)\n");
    put_growth_row(text, most, r, "", "step >= 1", claims);
}

/* The same step that claims it of itself: fine, or refused with one error of these codes. */
static void test_state(Test *t, const char *name, const char *text, CheckState state, const char *wanted,
                       size_t *refused)
{
    Checked c = check_text("catalogue.vwn", text, NULL);
    if (state != CHECK_FALSE) {
        bool so = expect_fine(t, name, &c) && c.unit->check.n > 0;
        for (size_t i = 0; so && i < c.unit->check.n; i++)
            so = c.unit->check.v[i].state == state;
        EXPECT(t, name, so);
    } else {
        expect_error(t, name, &c, wanted);
        ++*refused;
    }
    ctx_free(c.ctx);
}

static void test_claim(Test *t, const char *name, const char *text, bool holds, const char *wanted, size_t *refused)
{
    test_state(t, name, text, holds ? CHECK_TRUE : CHECK_FALSE, wanted, refused);
}

/* `alive` updates are enough for all new blocks, and one less is not. */
static void test_claims(Test *t, const GrowthRow *r, const GrowthProof *p, size_t *refused)
{
    char text[8192], claim[64];
    put_row(text, sizeof text, r, "  check preserves(1e-6)\n");
    test_claim(t, r->name, text, r->preserved, r->code ? r->code : "E0701", refused);
    put_row(text, sizeof text, r, "  check preserves(none)\n");
    test_claim(t, r->name, text, true, "", refused);
    if (p->undefined)
        return;
    snprintf(claim, sizeof claim, "  check alive(steps = %d)\n", p->alive_after == NEVER ? 1000 : p->alive_after);
    put_row(text, sizeof text, r, claim);
    bool dead = p->alive_after == NEVER || p->barred;
    test_state(t, r->name, text, dead ? CHECK_FALSE : p->open ? CHECK_NOT_DONE : CHECK_TRUE, "E0702", refused);
    if (p->alive_after <= 0)
        return;
    snprintf(claim, sizeof claim, "  check alive(steps = %d)\n", p->alive_after - 1);
    put_row(text, sizeof text, r, claim);
    test_claim(t, r->name, text, false, "E0702", refused);
}

static void test_row(Test *t, const GrowthRow *r, size_t *refused)
{
    char text[8192];
    put_row(text, sizeof text, r, "");
    Checked c = check_text("catalogue.vwn", text, NULL);
    const GrowthPlan *plan;
    const GrowthProof *p = prove(t, &c, r->name, &plan);
    if (p) {
        EXPECT(t, r->name, p->preserved == r->preserved);
        EXPECT(t, r->name, r->alive == HALF_STEPS || p->alive_after == r->alive);
        if (p->preserved != r->preserved || (r->alive != HALF_STEPS && p->alive_after != r->alive))
            printf("    preserved %d, alive after %d of %zu blocks (%zu dead)\n", p->preserved, p->alive_after,
                   p->blocks, p->dead);
    }
    if (p)
        test_claims(t, r, p, refused);
    ctx_free(c.ctx);
}

/* ---- the table of Nexusformer's growth: P, Q1, Q2, Q3, S, each 0 or random ---- */

typedef struct NexusRow {
    const char *blocks; /* '0' or 'r' of P, Q1, Q2, Q3, S */
    bool paper, l2;     /* preserves: Eq. 3 as printed; with the l2 norm of the released code */
    const char *after;  /* updates until each has a gradient, of Eq. 3; '-' never, '?' not said */
} NexusRow;
static const NexusRow nexus[] = {
    {"00000", true, true, "-----"},   {"rr000", true, false, "11010"},  {"rr0r0", true, false, "11010"},
    {"00rrr", true, true, "00111"},   {"00r0r", true, true, "00111"},   {"r000r", true, false, "10001"},
    {"0rr00", true, false, "011?0"},  {"r0000", true, false, "1-0--"},  {"0000r", true, true, "-0--1"},
    {"r0r00", false, false, "?????"}, {"rrrrr", false, false, "00000"}, {"000r0", true, true, "-----"}};

static void test_nexus(Test *t, const NexusRow *r, bool l2, size_t *refused)
{
    static const char *const weight[] = {"W_M", "W_A", "W_A", "W_A", "W_D"}, *const role[] = {"entry", "entry", "exit",
                                                                                              "inner", "exit"};
    static const GrowthRole roles[] = {ROLE_ENTRY, ROLE_ENTRY, ROLE_EXIT, ROLE_INNER, ROLE_EXIT};
    char text[8192];
    size_t n = put_growth_model(
        text, sizeof text, l2 ? "map = nexus_rank(M = M, A = A, normalise = l2)" : "map = nexus_rank(M = M, A = A)");
    n += (size_t)snprintf(
        text + n, sizeof text - n,
        "let M = 20\nlet A = 24\ngrow g {\n  when = step >= 1\n  let M = 22\n  let A = 27\n  fill {\n");
    for (int i = 0; i < 5; i++)
        for (const char *qkv = "qkv"; *qkv; qkv++)
            n += (size_t)snprintf(text + n, sizeof text - n, "    layer[*].attention.%c_proj.%s { %s = %s }\n", *qkv,
                                  weight[i], role[i], r->blocks[i] == '0' ? "zeros" : RANDOM);
    snprintf(text + n, sizeof text - n, "  }\n  check preserves(1e-6)\n  check alive(none)\n}\n");
    test_claim(t, r->blocks, text, l2 ? r->l2 : r->paper, "E0701", refused);
    if (strchr(r->after, '?') == NULL) {
        snprintf(text + n, sizeof text - n, "  }\n  check alive(steps = 3)\n}\n");
        test_claim(t, r->blocks, text, strchr(r->after, '-') == NULL, "E0702", refused);
    }
    snprintf(text + n, sizeof text - n, "  }\n  check alive(none)\n}\n");
    Checked c = check_text("nexus.vwn", text, NULL);
    const GrowthPlan *plan;
    const GrowthProof *p = prove(t, &c, r->blocks, &plan);
    if (p)
        EXPECT(t, r->blocks, p->preserved == (l2 ? r->l2 : r->paper));
    for (size_t i = 0; p && !l2 && i < plan->n; i++)
        for (int k = 0; k < 5; k++) {
            char path[64];
            snprintf(path, sizeof path, "layer[1].attention.q_proj.%s", weight[k]);
            int after = p->life[i].after[roles[k]], want = r->after[k] == '-' ? NEVER : r->after[k] - '0';
            if (r->after[k] == '?' || strcmp(plan->entry[i].path, path) != 0)
                continue;
            EXPECT(t, r->blocks, after == want);
            if (after != want)
                printf("    block %d: %d, not %d\n", k, after, want);
        }
    ctx_free(c.ctx);
}

/* Copies whose gradients are those of what they copy are counted, by the coordinates of one layer and all. */
static void test_alike(Test *t)
{
    static const struct {
        const char *set, *lets, *fill;
        int64_t alike;
    } steps[] = {
        {NULL, "let F = 40", "entry = copy, exit = split", 2 * 16},
        {"act = silu|gated = true", "let F = 72", "entry = replicate, exit = replicate", 2 * 48},
        {NULL, "let F = 40", "entry = copy, exit = split(share = 0.4)", 0},
        {"act = silu|gated = true", "let F = 40", "entry = copy, exit = split, layer[*].sub.gate { entry = zeros }", 0},
        {NULL, "let F = 40", "entry = copy, exit = zeros", 0},
        {"heads = 4|kv = 2", "let kv = 4", "entry = replicate", 0}, /* each serves other queries */
        {"norm = layer_norm(eps = 1e-5)", "let D = 32", "entry = copy, exit = split", 16},
    };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        char text[8192];
        put_row(text, sizeof text, &(GrowthRow){.set = steps[i].set, .lets = steps[i].lets, .fill = steps[i].fill}, "");
        Checked c = check_text("alike.vwn", text, NULL);
        const GrowthPlan *plan = NULL;
        if (prove(t, &c, steps[i].fill, &plan))
            EXPECT(t, steps[i].fill, plan->alike == steps[i].alike);
        ctx_free(c.ctx);
    }
}

/* Noise in all new blocks, as the paper's ablation has it: lossy, and alive at once. */
static void test_nexus_noise(Test *t, const char *share, size_t *refused)
{
    char text[8192];
    size_t n = put_growth_model(text, sizeof text, "map = nexus_rank(M = M, A = A)");
    n += (size_t)snprintf(text + n, sizeof text - n,
                          "let M = 20\nlet A = 24\ngrow g {\n  when = step >= 1\n  let M = 22\n  let A = 27\n"
                          "  fill { entry = noise(share = %s), exit = noise(share = %s), inner = noise(share = %s) }\n",
                          share, share, share);
    snprintf(text + n, sizeof text - n, "  check preserves(none)\n  check alive(steps = 0)\n}\n");
    test_claim(t, share, text, true, "", refused);
    snprintf(text + n, sizeof text - n, "  check preserves(1e-2)\n}\n");
    test_claim(t, share, text, false, "E0701", refused);
}

/* A layer of a variable-width model that becomes wider reads coordinates that others wrote, so its norm is another one. */
static void test_one_layer(Test *t, size_t *refused)
{
    static const char wide[] =
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet w = 12\nlet widths = [16, w, 16]\n"
        "model m {\n  context = 8\n  mask = causal\n  pre_norm = rms_norm(eps = 1e-5)\n"
        "  connection = carried(head = 16, widths = widths, branch_scale = 0.22, final = after_slice)\n  init = "
        "normal(std = 0.02)\n  out_init = normal(std = 0.02)\n"
        "  embed tokens { vocab = 32, width = 16 }\n  for layer in 1..3 {\n    width = widths[layer]\n"
        "    attention { heads = 2, head_dim = 6, scale = 0.4 }\n    ffn { hidden = 24, activation = gelu }\n  }\n  "
        "head lm { norm = rms_norm(eps = 1e-5) }\n}\n"
        "grow g {\n  when = step >= 1\n  let w = 14\n  fill { entry = %s, exit = %s }\n  check preserves(%s)\n%s}\n";
    static const char *const fill[][3] = {
        {RANDOM, "zeros", "E0701"}, {"zeros", RANDOM, "E0701"}, {"zeros", "zeros", "E0711"}};
    char text[8192];
    for (size_t i = 0; i < COUNT_OF(fill); i++) {
        snprintf(text, sizeof text, wide, fill[i][0], fill[i][1], "1e-6", "  check alive(none)\n");
        test_claim(t, "one layer wider", text, false, fill[i][2], refused);
    }
    snprintf(text, sizeof text, wide, RANDOM, "zeros", "none", "");
    test_claim(t, "one layer wider, intended", text, true, "", refused);
}

/* ---- what a step adds and that does not learn, or learns as data is ---- */

typedef struct LifeRow {
    const char *name, *set, *lets, *rest; /* of put_growth_row(); `rest`: what else the step says */
    const char *of;                       /* of the optimizer: groups, or its rate */
    int within;                           /* updates that are claimed */
    CheckState state;
    const char *says; /* part of the verdict or of what is said of it */
} LifeRow;

/* A layer that multiplies by two matrices, with `made` between them: of h = x @ U, y = x @ G. */
#define BETWEEN(made) "sub = between(f = F)|made = " made
#define ROUTED(how)   "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = softmax, " how ")"
#define RANDOM3       "  fill { entry = " RANDOM ", exit = " RANDOM ", inner = " RANDOM " }\n"
#define ZEROS         "  fill { entry = zeros, exit = " RANDOM ", inner = " RANDOM " }\n"
#define ONE_KEY       "context = 1|learned = false"
static const LifeRow life[] = {
    /* rates and what is frozen */
    {"a rate of 0 of what is new", NULL, "let F = 40", "  new { lr_scale = 0 }\n", NULL, 1, CHECK_FALSE,
     "the learning rate is 0 of"},
    {"a rate of 0 of what was there", NULL, "let F = 40", "  old { lr_scale = 0 }\n  new { lr_scale = 1 }\n", NULL, 1,
     CHECK_TRUE, "at once"},
    {"a rate of 0 of all", NULL, "let F = 40", "", "lr = 0", 1, CHECK_FALSE, "the learning rate is 0 of"},
    {"a schedule that stays 0", NULL, "let F = 40", "", "lr = cosine(peak = 0, floor = 0)", 1, CHECK_FALSE,
     "the learning rate is 0 of"},
    {"a group with a rate of 0", NULL, "let F = 40", "", "group \"*.sub.*\" { lr_scale = 0 }", 1, CHECK_FALSE,
     "the learning rate is 0 of"},
    {"a group that the file freezes", NULL, "let F = 40", "", "group \"*.sub.*\" { frozen = true }", 1, CHECK_FALSE,
     "the file freezes layer[1].sub.up.W"},
    {"a group that the file freezes elsewhere", NULL, "let F = 40", "", "group \"*.attention.*\" { frozen = true }", 1,
     CHECK_TRUE, "at once"},
    {"copies of layers where the old ones are frozen", NULL, "let L = 4",
     "  fill { layers = copy, layer[*].attention.o_proj { layers = zeros }, layer[*].sub.down { layers = zeros } }\n"
     "  old { lr_scale = 0 }\n  new { lr_scale = 1 }\n",
     NULL, 1, CHECK_TRUE, "after one update"},
    {"copies of layers with a rate of 0", NULL, "let L = 4", "  fill { layers = copy }\n  new { lr_scale = 0 }\n", NULL,
     1, CHECK_FALSE, "the learning rate is 0 of"},
    /* zeros by shape and by algebra */
    {"one position", ONE_KEY, "let heads = 3\n  let kv = 3", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].attention.q_proj.W"},
    {"a window of one", "window = 1", "let heads = 3\n  let kv = 3", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].attention.q_proj.W"},
    {"a window of two", "window = 2", "let heads = 3\n  let kv = 3", "", NULL, 1, CHECK_TRUE, "at once"},
    {"h - h", BETWEEN("h - h"), "let F = 40", "", NULL, 1, CHECK_FALSE, "no weights give a gradient to layer[1].sub.U"},
    {"h - h in three", BETWEEN("(h + y) - y - h"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"h y / y", BETWEEN("h * y / y"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.G (entry), layer[2].sub.G"},
    {"h / h", BETWEEN("h / h"), "let F = 40", RANDOM3, NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"a sign", BETWEEN("h / sqrt(h * h)"), "let F = 40", RANDOM3, NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"h to the 0", BETWEEN("h ^ 0"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"softmax over one entry", BETWEEN("softmax(unsqueeze(h), over = -1)") "|squeeze = true", "let F = 40", "", NULL, 1,
     CHECK_FALSE, "no weights give a gradient to layer[1].sub.U"},
    {"softmax over all", BETWEEN("softmax(h, over = -1)"), "let F = 40", RANDOM3, NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.G"},
    {"all shares behind an axis of one", BETWEEN("y * sum(reshape(softmax(h, over = -1), [B, T, 1, f]), over = -1)"),
     "let F = 40", RANDOM3, NULL, 1, CHECK_FALSE, "no weights give a gradient to layer[1].sub.U"},
    {"shares in other rows",
     BETWEEN("y * sum(sum(reshape(softmax(reshape(h, [B, T, f / 8, 8])), [B, T, 8, f / 8]), over = -1) ^ 2, over = -1, "
             "keep = true)"),
     "let F = 40", RANDOM3, NULL, 1, CHECK_TRUE, "at once"},
    {"divided by a sum of one", BETWEEN("unsqueeze(h) / sum(unsqueeze(h), over = -1, keep = true)") "|squeeze = true",
     "let F = 40", RANDOM3, NULL, 1, CHECK_FALSE, "no weights give a gradient to layer[1].sub.U"},
    {"a clamp that always holds", BETWEEN("y * clamp(sigmoid(h), 2, 3)"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U (entry), layer[2].sub.U (entry)"},
    {"a clamp that never holds", BETWEEN("y * clamp(sigmoid(h), -1, 2)"), "let F = 40", RANDOM3, NULL, 0, CHECK_TRUE,
     "at once"},
    {"relu of what is below 0", BETWEEN("y * relu(-exp(h))"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U (entry), layer[1].sub.G"},
    {"where of what is decided", BETWEEN("where(exp(h) > 0, y, h)"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"the smaller of a value and what is not below it", BETWEEN("min(max(h, y), y)"), "let F = 40", "", NULL, 1,
     CHECK_FALSE, "no weights give a gradient to layer[1].sub.U"},
    {"the smaller of what has steps and what decides them", BETWEEN("min(where(min(h, y) < 0, -0.2, 0.1), exp(y))"),
     "let F = 40", RANDOM3, NULL, 1, CHECK_FALSE, "no weights give a gradient to layer[1].sub.U"},
    /* no slope */
    {"floor", BETWEEN("floor(h) + y"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"sign", BETWEEN("sign(h) * y"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"round", BETWEEN("round(h) * y"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"stop_gradient", BETWEEN("stop_gradient(h) * y"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"a comparison", BETWEEN("where(h < 0, 1, 2) * y"), "let F = 40", "", NULL, 1, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U"},
    {"a straight-through round", BETWEEN("h + stop_gradient(round(h) - h)"), "let F = 40", RANDOM3, NULL, 0,
     CHECK_FALSE, "no weights give a gradient to layer[1].sub.G"},
    {"h less itself, with a slope", BETWEEN("h - stop_gradient(h) + 0 * y"), "let F = 40", RANDOM3, NULL, 4,
     CHECK_FALSE, "never"},
    /* no slope at 0, where what is new begins */
    {"a slope of 0 at 0", BETWEEN("h - h / (1 + abs(h)) + y - y"), "let F = 40", ZEROS, NULL, 4, CHECK_FALSE,
     "note: layer[1].sub.U (entry), layer[1].sub.W (exit), layer[2]"},
    {"a slope of 1 - 1", BETWEEN("y - max(exp(y), -abs(h))"), "let F = 40", ZEROS, NULL, 4, CHECK_FALSE,
     "note: layer[1].sub.G (entry), layer[2].sub.G (entry)\n"},
    {"round near 0", BETWEEN("h + y + stop_gradient(round(y) - h - y)"), "let F = 40", ZEROS, NULL, 4, CHECK_NOT_DONE,
     "of layer[1].sub.W (exit)"},
    {"round of shares", BETWEEN("h + y + stop_gradient(round(2 * softmax(h, over = -1) ^ 2) - h - y)"), "let F = 40",
     ZEROS, NULL, 4, CHECK_NOT_DONE, "of layer[1].sub.W (exit)"},
    {"softmax over what is the same", BETWEEN("softmax(0 * h + mean(y, over = -1, keep = true), over = -1)"),
     "let F = 40", RANDOM3, NULL, 4, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.U (entry), layer[1].sub.G (entry)"},
    /* which of two functions of one value is larger is perhaps always the same */
    {"an exponential and what it is of", BETWEEN("where(exp(exp(y)) < y, h, y)"), "let F = 40", RANDOM3, NULL, 0,
     CHECK_NOT_DONE, "of layer[1].sub.U (entry), layer[1].sub.G (entry), layer[2].sub.U"},
    /* sums of which a part cancels: what is left says what ties alone choose, and what nothing does */
    {"chosen at ties alone", BETWEEN("where(h < h + y ^ 2, h, y)"), "let F = 40", RANDOM3, NULL, 0, CHECK_NOT_DONE,
     "of layer[1].sub.G (entry), layer[2].sub.G (entry)"},
    {"chosen where not above", BETWEEN("where(h + y ^ 2 <= h, y, h)"), "let F = 40", RANDOM3, NULL, 0, CHECK_NOT_DONE,
     "of layer[1].sub.G (entry), layer[2].sub.G (entry)"},
    {"chosen never", BETWEEN("where(h + exp(y) < h, y, h)"), "let F = 40", RANDOM3, NULL, 0, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.G (entry), layer[2].sub.G (entry)"},
    {"chosen by what is left of sums", BETWEEN("where(h + y < h + y + y, h, y)"), "let F = 40", RANDOM3, NULL, 0,
     CHECK_TRUE, "at once"},
    {"the larger of a value and a part of it", BETWEEN("y + max(0.1 * h, h)"), "let F = 40", RANDOM3, NULL, 0,
     CHECK_TRUE, "at once"},
    {"the larger of two values", BETWEEN("max(y * y, h)"), "let F = 40", RANDOM3, NULL, 0, CHECK_TRUE, "at once"},
    {"factors that no number holds", BETWEEN("h + (1e99 * y) ^ 4"), "let F = 40", RANDOM3, NULL, 0, CHECK_TRUE,
     "at once"},
    /* draws: what is dropped in training is alive there, whatever an evaluation makes of it */
    {"what is dropped less itself", BETWEEN("y - y + drop(h, p = 0.5) - h"), "let F = 40", RANDOM3, NULL, 0,
     CHECK_FALSE, "no weights give a gradient to layer[1].sub.G (entry), layer[2].sub.G (entry): the loss"},
    {"what is dropped, by itself", BETWEEN("y - y + drop(h, p = 0.5)"), "let F = 40", RANDOM3, NULL, 0, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.G (entry), layer[2].sub.G (entry): the loss"},
    {"a draw that is always below 1", BETWEEN("y + h * (1 - bernoulli([B, T, f], p = 1))"), "let F = 40", RANDOM3, NULL,
     0, CHECK_FALSE, "no weights give a gradient to layer[1].sub.U (entry), layer[2].sub.U (entry): the loss"},
    {"a draw that is never below 0", BETWEEN("y + h * bernoulli([B, T, f], p = 0)"), "let F = 40", RANDOM3, NULL, 0,
     CHECK_FALSE, "no weights give a gradient to layer[1].sub.U (entry), layer[2].sub.U (entry): the loss"},
    {"a draw that may be below", BETWEEN("y + h * bernoulli([B, T, f], p = 0.5)"), "let F = 40", RANDOM3, NULL, 0,
     CHECK_TRUE, "at once"},
    /* one class: its share is 1, and the loss is 0 where there is a target */
    {"one class", "V = 1", "let F = 40", RANDOM3, NULL, 4, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.up.W"},
    {"two classes", "V = 2", "let F = 40", RANDOM3, NULL, 0, CHECK_TRUE, "at once"},
    /* routers and experts */
    {"a router of one that is chosen",
     "sub = moe(experts = experts, active = 1, hidden = F, activation = silu, scores = softmax, normalize = true, "
     "balance = 0)",
     "let experts = 5", RANDOM3, NULL, 2, CHECK_FALSE,
     "no weights give a gradient to layer[1].sub.router (entry), layer[2].sub.router (entry)"},
    {"of one that is chosen, and balanced",
     "sub = moe(experts = experts, active = 1, hidden = F, activation = silu, scores = softmax, normalize = true, "
     "balance = 0.01)",
     "let experts = 5", RANDOM3, NULL, 2, CHECK_NOT_DONE, "of layer[1].sub.gate (entry)"},
    {"of the first logit",
     "sub = moe(experts = experts, active = 1, hidden = F, activation = silu, scores = softmax, normalize = false, "
     "balance = 0, order = topk_first)",
     "let experts = 5", RANDOM3, NULL, 2, CHECK_FALSE, "no weights give a gradient to layer[1].sub.router"},
    {"more experts that add nothing, at once", ROUTED("normalize = true, balance = 0.05"), "let experts = 6",
     "  fill { layer[*].sub.down { entry = zeros, exit = zeros, inner = zeros } }\n", NULL, 0, CHECK_FALSE,
     "layer[1].sub.gate (entry) after 1"},
    {"more experts that add nothing", ROUTED("normalize = true, balance = 0.05"), "let experts = 6",
     "  fill { layer[*].sub.down { entry = zeros, exit = zeros, inner = zeros } }\n", NULL, 1, CHECK_NOT_DONE,
     "not shown for 6 of 8 new blocks"},
    {"sigmoid scores",
     "sub = moe(experts = experts, active = 2, hidden = F, activation = silu, scores = sigmoid, normalize = false, "
     "balance = 0)",
     "let experts = 6", RANDOM3, NULL, 1, CHECK_NOT_DONE, "not shown for 8 of 8 new blocks"},
    {"all experts are chosen",
     "sub = moe(experts = experts, active = experts, hidden = F, activation = silu, scores = sigmoid, normalize = "
     "false, balance = 0)",
     "let experts = 6", RANDOM3, NULL, 0, CHECK_TRUE, "at once"},
    {"wider experts", ROUTED("normalize = true, balance = 0"), "let F = 40", RANDOM3, NULL, 0, CHECK_TRUE, "at once"},
    {"ids that may not occur", NULL, "let V = 40", RANDOM3, NULL, 0, CHECK_NOT_DONE, "of embed.tokens.W"},
    {"positions that all occur", "learned = true", "let context = 16", RANDOM3, NULL, 0, CHECK_TRUE, "at once"},
};

static const char between[] = "block between(f: int)(x: [B, T, D]) -> [B, T, D] {\n  param U : [D, f] = scope.init\n  "
                              "param G : [D, f] = scope.init\n  param W : [f, D] = scope.init\n"
                              "  h = x @ U\n  y = x @ G\n  return %s @ W\n}\n";

/* `made` and `squeeze` of a row's lets are the text of the block. */
static void put_life(char *text, size_t most, const LifeRow *r)
{
    char set[512] = "", made[256] = "h", body[1024], train[2048], claims[512];
    const char *at = r->set ? strstr(r->set, "|made = ") : NULL;
    snprintf(set, sizeof set, "%.*s", at ? (int)(at - r->set) : (int)strlen(r->set ? r->set : ""),
             r->set ? r->set : "");
    if (at) {
        const char *end = strstr(at, "|squeeze");
        char plain[200];
        snprintf(plain, sizeof plain, "%.*s", end ? (int)(end - at - 8) : (int)strlen(at + 8), at + 8);
        snprintf(made, sizeof made, end ? "reshape(%s, [B, T, f])" : "(%s)", plain);
    }
    snprintf(body, sizeof body, between, made);
    bool rate = r->of && !strncmp(r->of, "lr", 2);
    snprintf(train, sizeof train,
             "%strain {\n  data = token_files(\"none.bin\", dtype = u16), tokenizer = file(\"none.json\"), batch = 2 "
             "seqs, length = 20 steps, seed = 1\n"
             "  precision = fp32\n  optimizer sgd { %s, momentum = 0, weight_decay = 0\n    %s\n  }\n}\n",
             body, rate ? r->of : "lr = 0.1", rate || !r->of ? "" : r->of);
    snprintf(claims, sizeof claims, "%s  check alive(steps = %d)\n", r->rest, r->within);
    put_growth_row(text, most, &(GrowthRow){.set = *set ? set : NULL, .lets = r->lets, .fill = ""}, train, "step >= 10",
                   claims);
}

static void test_life(Test *t, const LifeRow *r)
{
    char text[8192];
    put_life(text, sizeof text, r);
    Checked c = check_text("life.vwn", text, NULL);
    Buf said = buf_new(c.ctx->program);
    bool fine = c.unit && !diag_errors(c.ctx) && c.unit->check.n == 1;
    if (fine)
        buf_printf(&said, "%s\n", c.unit->check.v[0].values);
    diag_render_all(c.ctx, &said, false);
    bool so = r->state == CHECK_FALSE ? !fine && strstr(said.s, "error[E0702]")
                                      : fine && c.unit->check.v[0].state == r->state;
    EXPECT(t, r->name, so && strstr(said.s, r->says));
    if (!so || !strstr(said.s, r->says))
        printf("    wanted \"%s\", got %s", r->says, said.s);
    ctx_free(c.ctx);
}

/* Copies of what does not move, which nothing but their decay tells from it: it is that of the optimizer which updates them. */
static void test_decays(Test *t)
{
    static const struct {
        const char *group;
        double of_muon, of_adamw;
        bool dead;
    } rows[] = {{"", 0.1, 0, false},
                {"", 0, 0.1, true},
                {"group \"apart.U\" { update = adamw }", 0.1, 0, true},
                {"group \"apart.U\" { update = adamw }", 0, 0.1, false}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[4096];
        snprintf(
            text, sizeof text,
            "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet n = 4\n"
            "block apart(n: int)(x: [.., D]) -> [.., D] {\n  param U : [n, D, D] = scope.init\n  param W : [D, D] = "
            "scope.init\n"
            "  d = first(U, n - 4, axis = 1) - rest(U, 4, axis = 1)\n  return sum(d * d) * (x @ W)\n}\n"
            "model m {\n  context = 8, width = 6, mask = none, connection = residual(), init = normal(std = 0.02), "
            "pre_norm = none\n"
            "  allow = [dead_weights]\n  embed tokens { vocab = 32 }\n  apart { n = n }\n  head lm { norm = none }\n}\n"
            "train {\n  data = token_files(\"none.bin\", dtype = u16), tokenizer = file(\"none.json\"), batch = 2 "
            "seqs, length = 20 steps\n"
            "  seed = 1, precision = fp32\n  optimizer muon { lr = 0.1, momentum = 0, weight_decay = %g\n"
            "    adamw { betas = [0.9, 0.95], eps = 1e-8, weight_decay = %g }\n    %s\n  }\n}\n"
            "grow g {\n  when = step >= 10\n  let n = 8\n  fill { entry = copy, exit = copy }\n  old { lr_scale = 0 "
            "}\n  new { lr_scale = 1 }\n"
            "  check preserves(none)\n  check alive(steps = 1)\n}\n",
            rows[i].of_muon, rows[i].of_adamw, rows[i].group);
        Checked c = check_text("decays.vwn", text, NULL);
        Buf said = buf_new(c.ctx->program);
        diag_render_all(c.ctx, &said, false);
        /* muon makes steps of whole matrices: that a part stays is refused there, besides what is said of life */
        EXPECT(t, text,
               c.unit && (strstr(said.s, "1 of 1 new blocks can never learn") != NULL) == rows[i].dead &&
                   diag_errors(c.ctx) == (size_t)rows[i].dead + !*rows[i].group);
        ctx_free(c.ctx);
    }
}

int main(void)
{
    Test t = {0};
    size_t refused = 0;
    CaseDraw draw = {.one_in = 1, .sanitized = 8};
    test_alike(&t);
    test_decays(&t);
    for (size_t i = 0; i < COUNT_OF(growth_rows); i++)
        if (case_drawn(&draw, i))
            test_row(&t, &growth_rows[i], &refused);
    for (size_t i = 0; i < COUNT_OF(nexus); i++)
        if (case_drawn(&draw, i)) {
            test_nexus(&t, &nexus[i], false, &refused);
            test_nexus(&t, &nexus[i], true, &refused);
        }
    for (size_t i = 0; i < COUNT_OF(life); i++)
        test_life(&t, &life[i]);
    test_nexus_noise(&t, "10%", &refused);
    test_nexus_noise(&t, "20%", &refused);
    test_one_layer(&t, &refused);
    printf("%zu claims refused\n", refused);
    EXPECT(&t, "claims refused", refused >= 100 / drawn_share(&draw));
    cases_end(&draw);
    return test_end(&t);
}
