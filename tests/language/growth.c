/* growth.c - plans of growth steps, against loops over heads and their sizes and the files' own counts.
 *
 * In:  a small model and random sizes before and after; the growth steps of the examples.   Out: 0 when every element
 * stands where the loops put it.
 * The one idea: an element of a grown axis has a place for a person, head 2 and column 5, that both models agree on.
 * When: quick.
 */
#include "compiler/file/check_unit.h"
#include "support.h"

#include "compiler/growth/growth.h"

static const char model[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
    "let heads = 2\nlet kv = 2\nlet h = 8\nlet F = 24\nlet H = 2\nlet K = 2\nlet w = 8\nlet G = 24\n"
    "model m {\n  context = 8\n  width = 16\n  mask = causal\n  init = normal(std = 0.02)\n"
    "  out_init = normal(std = 0.02)\n  pre_norm = rms_norm(eps = 1e-5)\n  connection = residual()\n"
    "  embed tokens { vocab = 32 }\n"
    "  for layer in 1..2 {\n    attention { heads = heads, kv_heads = kv, head_dim = h }\n"
    "    ffn { hidden = F, activation = gelu, gated = false }\n  }\n"
    "  head lm { norm = rms_norm(eps = 1e-5) }\n}\n"
    "grow wide {\n  when = step >= 10\n  let heads = H\n  let kv = K\n  let h = w\n  let F = G\n"
    "  fill { entry = zeros, exit = normal(std = 0.5), layer[*].ffn.up { entry = ones } }\n  check alive(none)\n}\n";

static const GrowthEntry *entry_at(const GrowthPlan *p, const char *path)
{
    for (size_t i = 0; i < p->n; i++)
        if (!strcmp(p->entry[i].path, path))
            return &p->entry[i];
    return NULL;
}

static int64_t was_at(const GrowthAxis *a, int64_t at)
{
    for (size_t i = 0; i < a->n; i++)
        if (at >= a->part[i].at && at < a->part[i].at + a->part[i].count)
            return a->part[i].fresh ? -1 : a->part[i].from + at - a->part[i].at;
    return -2;
}

/* Axis k of a weight has heads of h columns, then more of each. */
static void test_heads(Test *t, const GrowthPlan *p, const char *path, int k, int64_t n, int64_t h, int64_t n2,
                       int64_t h2)
{
    const GrowthEntry *e = entry_at(p, path);
    EXPECT(t, path, e && e->before && e->after);
    if (!e || !e->before || !e->after)
        return;
    EXPECT(t, path, !e->axis[k].recut && e->axis[k].reads == (k == 0));
    int64_t wrong = 0;
    for (int64_t head = 0; head < n2; head++)
        for (int64_t c = 0; c < h2; c++)
            wrong += was_at(&e->axis[k], head * h2 + c) != (head < n && c < h ? head * h + c : -1);
    EXPECT(t, path, wrong == 0);
}

static void test_sizes(Test *t)
{
    static const int64_t size[][7] = {/* heads, kv, h before; after; hidden after */
                                      {2, 2, 8, 3, 3, 8, 24}, {2, 2, 8, 2, 2, 12, 24}, {2, 2, 8, 3, 3, 12, 32},
                                      {4, 2, 4, 8, 4, 6, 25}, {2, 1, 8, 4, 2, 8, 24},  {2, 2, 8, 2, 2, 8, 48},
                                      {6, 3, 4, 8, 4, 8, 24}};
    for (size_t i = 0; i < COUNT_OF(size); i++) {
        const int64_t *s = size[i];
        char set[7][32];
        static const char *const name[] = {"heads", "kv", "h", "H", "K", "w", "G"};
        const char *sets[8] = {NULL};
        for (int k = 0; k < 7; k++) {
            snprintf(set[k], sizeof set[k], "%s=%lld", name[k], (long long)s[k]);
            sets[k] = set[k];
        }
        Checked c = check_text("growth.vwn", model, sets);
        bool good = c.unit && !diag_errors(c.ctx) && c.unit->grow.n == 1;
        EXPECT(t, "checks", good);
        if (!good) {
            print_diagnostics(&c);
            ctx_free(c.ctx);
            continue;
        }
        const GrowthPlan *p = growth_plan(&c.unit->grow.v[0], c.ctx->program);
        test_heads(t, p, "layer[2].attention.q_proj.W", 1, s[0], s[2], s[3], s[5]);
        test_heads(t, p, "layer[2].attention.k_proj.W", 1, s[1], s[2], s[4], s[5]);
        test_heads(t, p, "layer[2].attention.v_proj.W", 1, s[1], s[2], s[4], s[5]);
        test_heads(t, p, "layer[2].attention.o_proj.W", 0, s[0], s[2], s[3], s[5]);
        test_heads(t, p, "layer[1].ffn.up.W", 1, 1, 24, 1, s[6]);
        test_heads(t, p, "layer[1].ffn.down.W", 0, 1, 24, 1, s[6]);
        const GrowthEntry *q = entry_at(p, "layer[1].attention.q_proj.W"), *up = entry_at(p, "layer[1].ffn.up.W");
        const GrowthEntry *down = entry_at(p, "layer[1].ffn.down.W");
        if (q && up && down) {
            EXPECT(t, "zeros", q->init[ROLE_ENTRY].kind == INIT_FILL && q->init[ROLE_ENTRY].a == 0);
            EXPECT(t, "a selector", up->init[ROLE_ENTRY].kind == INIT_FILL && up->init[ROLE_ENTRY].a == 1);
            EXPECT(t, "normal", down->init[ROLE_EXIT].kind == INIT_NORMAL && down->init[ROLE_EXIT].a == 0.5);
            EXPECT(t, "as declared", !down->filled[ROLE_INNER] && down->init[ROLE_INNER].a == 0.02);
        }
        ctx_free(c.ctx);
    }
}

/* Every old number is taken once: parts cover the new axis, and their old ranges the old one. */
static void test_example(Test *t, const char *path)
{
    Checked c = check_text(path, NULL, NULL);
    EXPECT(t, path, c.unit && c.unit->grow.n);
    for (size_t i = 0; c.unit && i < c.unit->grow.n; i++) {
        const GrowStep *g = &c.unit->grow.v[i];
        const GrowthPlan *p = growth_plan(g, c.ctx->program);
        int64_t before = 0, after = 0, wrong = 0;
        for (size_t k = 0; k < g->before->param.n; k++)
            before += g->before->param.v[k].elements;
        for (size_t k = 0; k < g->after->param.n; k++)
            after += g->after->param.v[k].elements;
        EXPECT(t, path, p->taken == before && p->taken + p->added == after && p->added > 0);
        for (size_t k = 0; k < p->n; k++)
            for (int a = 0; p->entry[k].before && a < p->entry[k].after->shape.rank; a++) {
                const GrowthAxis *x = &p->entry[k].axis[a];
                int64_t at = 0, from = 0;
                for (size_t m = 0; m < x->n; m++) {
                    wrong += x->part[m].at != at || (x->part[m].from >= 0 && x->part[m].from != from);
                    at += x->part[m].count;
                    from += x->part[m].from < 0 ? 0 : x->part[m].count;
                }
                wrong += at != p->entry[k].after->shape.d[a].n || from != p->entry[k].before->shape.d[a].n;
            }
        EXPECT(t, path, wrong == 0);
    }
    ctx_free(c.ctx);
}

/* A model of V words and F hidden units. */
#define SMALL(V)                                                                                                       \
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet V = " V "\nlet F = 2\n"                  \
    "model m {\n  context = 8\n  width = 4\n  mask = causal\n  init = normal(std = 0.02)\n"                            \
    "  out_init = normal(std = 0.02)\n  pre_norm = none\n  connection = residual()\n"                                  \
    "  embed tokens { vocab = V }\n  ffn { hidden = F, activation = gelu }\n  head lm { norm = none }\n}\n"

/* What stays is one part of an axis however long it is, and copies are a part for each round of what they copy. */
static void test_large(Test *t)
{
    static const char text[] =
        SMALL("1_000_000_000_000") "grow g {\n  when = start\n  %s\n  check preserves(none)\n}\n";
    static const struct {
        const char *step;
        size_t table, up; /* parts of the table's rows, of hidden units */
        int64_t fresh;
    } step[] = {{"let F = 4", 1, 2, 0},
                {"let F = 4\n  fill { entry = replicate, exit = replicate }", 1, 4, 0},
                {"let V = 1_500_000_000_000", 2, 1, 500000000000},
                {"let V = 2_000_000_000_005\n  fill { entry = copy, exit = split }", 5, 1, 1000000000005}};
    for (size_t i = 0; i < COUNT_OF(step); i++) {
        char all[2048];
        snprintf(all, sizeof all, text, step[i].step);
        Checked c = check_text("large.vwn", all, NULL);
        if (expect_fine(t, step[i].step, &c)) {
            const GrowthPlan *p = growth_plan(&c.unit->grow.v[0], c.ctx->program);
            const GrowthAxis *rows = &entry_at(p, "embed.tokens.W")->axis[0];
            int64_t fresh = 0;
            for (size_t k = 0; k < rows->n; k++)
                fresh += rows->part[k].fresh ? rows->part[k].count : 0;
            EXPECT(t, step[i].step, rows->n == step[i].table);
            EXPECT(t, step[i].step, fresh == step[i].fresh);
            EXPECT(t, step[i].step, entry_at(p, "ffn.up.W")->axis[1].n == step[i].up);
        }
        ctx_free(c.ctx);
    }
}

/* A proof that takes more memory than there is is none, gives back what it took, and is an error at the claim. */
static void test_too_large(Test *t)
{
    static const char text[] = SMALL("8") "grow g { when = start, let F = %d, fill { entry = copy, exit = split }, "
                                          "check preserves(%s), check alive(%s) }\n";
    static const struct {
        int units;
        bool large;
    } steps[] = {{200, false}, {8000, true}};
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        char all[2048];
        snprintf(all, sizeof all, text, steps[i].units, "none", "none");
        Checked c = check_text("large.vwn", all, NULL);
        const GrowthPlan *p = growth_plan(&c.unit->grow.v[0], c.ctx->program);
        size_t before = c.ctx->bytes;
        c.ctx->byte_limit = before + (32 << 20);
        const GrowthProof *proof = growth_prove(p, c.ctx->program);
        EXPECT(t, "too large", proof->too_large == steps[i].large && proof->preserved == !steps[i].large);
        EXPECT(t, "too large", c.ctx->bytes - before < 1 << 20 && c.ctx->byte_limit == before + (32 << 20));
        ctx_free(c.ctx);
    }
}

/* Each layer exchanges the halves of its rows: a wider row has new columns behind those of each half, however many layers
 * there are, before and after. */
static void test_halves(Test *t)
{
    static const char text[] =
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet L = %d\nlet D = 8\n"
        "block halves()(x: [B, T, n]) -> [B, T, n] {\n  param W : [n, n] = scope.init\n  y = x @ W\n"
        "  return concat(slice(y, D / 2 + 1, D / 2), slice(y, 1, D / 2))\n}\n"
        "model m {\n  context = 8\n  width = D\n  mask = causal\n  init = normal(std = 0.02)\n  out_init = normal(std "
        "= 0.02)\n"
        "  pre_norm = none\n  connection = residual()\n  embed tokens { vocab = 8 }\n  for layer in 1..L { halves }\n"
        "  head lm { norm = none }\n}\n"
        "grow g {\n  when = start\n  let D = 12\n  let L = %d\n  check alive(none)\n}\n";
    static const int layers[][2] = {{1, 1}, {3, 3}, {1, 2}, {2, 4}};
    for (size_t i = 0; i < COUNT_OF(layers); i++) {
        char all[2048];
        snprintf(all, sizeof all, text, layers[i][0], layers[i][1]);
        Checked c = check_text("halves.vwn", all, NULL);
        if (expect_fine(t, "halves", &c)) {
            const GrowthPlan *p = growth_plan(&c.unit->grow.v[0], c.ctx->program);
            test_heads(t, p, "layer[1].halves.W", 1, 2, 4, 2, 6);
            test_heads(t, p, "head.lm.W", 0, 2, 4, 2, 6);
        }
        ctx_free(c.ctx);
    }
}

/* 1 layer, then 2 * 1 + 1, then 2 * 3 + 1: each right side sees the file before its step, in a plan as where steps were
 * carried out before, and so do `fill` and a check. */
static void test_steps(Test *t)
{
    static const char text[] =
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet L = 1\n"
        "model m {\n  context = 8\n  width = 4\n  mask = causal\n  init = normal(std = 0.02)\n"
        "  out_init = normal(std = 0.02)\n  pre_norm = rms_norm(eps = 1e-5)\n  connection = residual()\n"
        "  embed tokens { vocab = 8 }\n  for layer in 1..L { linear { out = 4 } }\n"
        "  head lm { norm = rms_norm(eps = 1e-5) }\n}\n"
        "grow a { when = step >= 10, let L = 2 * L + 1, fill { layers = normal(std = L) }, check L == 1 }\n"
        "grow b { when = step >= 20, let L = 2 * L + 1, fill { layers = normal(std = L) }, check L == 3 }\n";
    static const size_t layers[] = {1, 3, 7};
    for (size_t grown = 0; grown < COUNT_OF(layers); grown++) {
        Ctx *ctx = ctx_new(NULL);
        Unit *u =
            check_file(ctx, &(CheckOptions){.path = "-", .text = text, .text_length = strlen(text), .grown = grown});
        bool fine = !diag_errors(ctx) && u->model && u->grown == grown && u->grow.n == 2 - grown;
        EXPECT(t, "steps", fine);
        EXPECT(t, "the grown file", fine && u->model->sublayer.n == layers[grown]);
        for (size_t i = 0; fine && i < u->grow.n; i++) {
            const GrowStep *g = &u->grow.v[i];
            EXPECT(t, g->name,
                   g->before->sublayer.n == layers[grown + i] && g->after->sublayer.n == layers[grown + i + 1]);
            EXPECT(t, g->name, g->fill.n == 1 && g->fill.v[0].init.a == (double)layers[grown + i]);
        }
        ctx_free(ctx);
    }
}

static const GrowthProof *proof_of(Test *t, const char *what, const char *text, Checked *c)
{
    *c = check_text("small.vwn", text, NULL);
    return expect_fine(t, what, c) ? growth_prove(growth_plan(&c->unit->grow.v[0], c->ctx->program), c->ctx->program)
                                   : NULL;
}

/* What is shifted by all positions that there are is a number, an integer where ids are shifted: of one position, and of two,
 * where a block reads that alone and its weights have no gradient. No hidden coordinates: what they would read and
 * write is 0, so the norm in front of them has no gradient. */
static void test_little(Test *t)
{
    static const char text[] =
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet F = %d\nlet L = 1\n"
        "model m {\n  context = 1\n  width = 4\n  mask = causal\n  init = normal(std = 0.02)\n"
        "  out_init = normal(std = 0.02)\n  pre_norm = rms_norm(eps = 1e-5)\n  connection = residual()\n"
        "  embed tokens { vocab = 8 }\n  embed ngrams { vocab = 8, order = 2, rows = 5, width = 2 }\n"
        "  for layer in 1..L { ffn { hidden = F, activation = gelu } }\n  head lm { norm = none }\n}\n"
        "grow g { when = start, let %s, check preserves(none), check alive(none) }\n";
    static const struct {
        int F;
        const char *let;
        size_t blocks, barred;
    } step[] = {{2, "F = 5", 2, 0}, {2, "L = 2", 3, 0}, {0, "L = 2", 1, 1}};
    for (size_t i = 0; i < COUNT_OF(step); i++) {
        char all[2048];
        Checked c;
        snprintf(all, sizeof all, text, step[i].F, step[i].let);
        const GrowthProof *p = proof_of(t, step[i].let, all, &c);
        EXPECT(t, step[i].let, p && p->blocks == step[i].blocks && !p->dead && p->barred == step[i].barred);
        ctx_free(c.ctx);
    }
}

/* Of two positions, what is later by two reads nothing: the weights behind it, and the gain in front of it, have no gradient. */
static void test_late(Test *t)
{
    static const char text[] =
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet L = 1\n"
        "block late(by: int)(x: [B, T, D]) -> [B, T, D] {\n  let o = linear(out = D)\n"
        "  return o(shift(x, by, axis = -2))\n}\n"
        "model m {\n  context = 2\n  width = 4\n  init = normal(std = 0.02)\n  mask = causal\n"
        "  pre_norm = rms_norm(eps = 1e-5)\n  connection = residual()\n  embed tokens { vocab = 8 }\n"
        "  for layer in 1..L { late { by = %d } }\n  head lm { norm = none }\n}\n"
        "grow g { when = start, let L = 2, check preserves(none), check alive(none) }\n";
    for (int by = -3; by <= 3; by++) {
        char all[2048], what[32];
        Checked c;
        snprintf(all, sizeof all, text, by);
        snprintf(what, sizeof what, "later by %d", by);
        const GrowthProof *p = proof_of(t, what, all, &c);
        EXPECT(t, what, p && p->blocks == 2 && p->barred == (abs(by) < 2 ? 0 : 2));
        ctx_free(c.ctx);
    }
}

int main(void)
{
    Test t = {0};
    test_little(&t);
    test_late(&t);
    test_sizes(&t);
    test_large(&t);
    test_too_large(&t);
    test_halves(&t);
    test_steps(&t);
    test_example(&t, VWN_SOURCE_DIR "/examples/09_nexus_growth.vwn");
    test_example(&t, VWN_SOURCE_DIR "/examples/10_tokenformer_growth.vwn");
    test_example(&t, VWN_SOURCE_DIR "/examples/11_residual_to_hyper.vwn");
    EXPECT(&t, "selector", growth_selects("layer[*].ffn.up", "layer[12].ffn.up.W"));
    EXPECT(&t, "selector", !growth_selects("layer[*].ffn.up", "layer[12].ffn.upper.W"));
    EXPECT(&t, "selector", !growth_selects("layer[2]", "layer[12].ffn.up.W"));
    return test_end(&t);
}
