/* models.c - models: paths of parameters, sharing, scopes, overrides, imports, growth, sweeps, lints.
 *
 * In:  small files.   Out: their parameters by path and shape, their counts and messages.
 * When: quick.
 */
#include "support.h"

#define HEAD                                                                                                           \
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/growable\"\n"                   \
    "let D = 8\nlet conn = residual()\nlet n = rms_norm(eps = 1e-6)\n"
#define MODEL(body, head)                                                                                              \
    "model m {\n context = 16\n width = D\n mask = causal\n init = normal(std = 0.02)\n out_init = zeros\n"            \
    " pre_norm = n\n connection = conn\n embed tokens { vocab = 32 }\n" body "\n" head "\n}\n"
#define LM  "head lm { norm = n, tie = tokens }"
#define FFN "ffn { hidden = 16, activation = gelu }"

/* ---- parameters ---- */

static void expect_params(Test *t, const char *what, const char *text, const char *const *sets, const char *want)
{
    Checked c = check_text("-", text, sets);
    if (expect_fine(t, what, &c)) {
        Buf b = buf_new(c.ctx->program);
        for (size_t i = 0; i < c.unit->model->param.n; i++) {
            const Param *p = &c.unit->model->param.v[i];
            buf_printf(&b, "%s ", p->path);
            shape_print(&b, &p->shape);
            buf_printf(&b, " %s%s\n", p->group, p->buffer ? " buffer" : "");
        }
        bool same = !strcmp(b.s, want);
        EXPECT(t, what, same);
        if (!same)
            printf("---- %s: got\n%s---- wanted\n%s----\n", what, b.s, want);
    }
    ctx_free(c.ctx);
}

static void paths(Test *t)
{
    expect_params(t, "attention",
                  HEAD MODEL("for layer in 1..1 { attention { heads = 2, kv_heads = 1, qk_norm = n } }", LM), NULL,
                  "embed.tokens.W [32, 8] embedding\n"
                  "layer[1].attention.pre_norm.g [8] vector\n"
                  "layer[1].attention.q_proj.W [8, 8] matrix\n"
                  "layer[1].attention.k_proj.W [8, 4] matrix\n"
                  "layer[1].attention.v_proj.W [8, 4] matrix\n"
                  "layer[1].attention.q_norm.g [4] vector\n"
                  "layer[1].attention.k_norm.g [4] vector\n"
                  "layer[1].attention.o_proj.W [8, 8] matrix\n"
                  "head.lm.norm.g [8] vector\n");
    static const char *const hyper[] = {"conn=hyper(n = 2, dynamic = true)", NULL};
    expect_params(t, "a connection's step", HEAD MODEL(FFN, LM), hyper,
                  "embed.tokens.W [32, 8] embedding\n"
                  "ffn.connection.B [1, 2] static\n"
                  "ffn.connection.A_m [2, 1] static\n"
                  "ffn.connection.A_r [2, 2] static\n"
                  "ffn.connection.W_b [8, 1] matrix\n"
                  "ffn.connection.W_m [8, 1] matrix\n"
                  "ffn.connection.W_r [8, 2] matrix\n"
                  "ffn.connection.s_b [] static\n"
                  "ffn.connection.s_a [] static\n"
                  "ffn.pre_norm.g [8] vector\n"
                  "ffn.up.W [8, 16] matrix\n"
                  "ffn.down.W [16, 8] matrix\n"
                  "head.lm.norm.g [8] vector\n");
    static const char *const own[] = {"conn=c()", NULL};
    expect_params(t, "a connection's open and close",
                  HEAD
                  "block c() {\n"
                  " block open()(x: [.., D]) -> [.., D] { param a : [D] = ones, return x * a }\n"
                  " block step(k: int)(x: [.., D], f: block) -> [.., D] { param b : [] = ones, return x + b * f(x) }\n"
                  " block close()(x: [.., D]) -> [.., D] { let proj = linear(out = D), return proj(x) }\n}\n" MODEL(
                      FFN, LM "\nhead mtp { predict = 2, weight = 1, mix = linear(), norm = n\n"
                              "layer { linear { out = D } } }\n"),
                  own,
                  "embed.tokens.W [32, 8] embedding\n"
                  "connection.open.a [8] vector\n"
                  "ffn.connection.b [] vector\n"
                  "ffn.pre_norm.g [8] vector\n"
                  "ffn.up.W [8, 16] matrix\n"
                  "ffn.down.W [16, 8] matrix\n"
                  "head.lm.connection.close.proj.W [8, 8] matrix\n"
                  "head.lm.norm.g [8] vector\n"
                  "head.mtp.connection.open.a [8] vector\n"
                  "head.mtp.norm_state.g [8] vector\n"
                  "head.mtp.norm_embed.g [8] vector\n"
                  "head.mtp.mix.W [16, 8] matrix\n"
                  "head.mtp.layer.linear.connection.b [] vector\n"
                  "head.mtp.layer.linear.pre_norm.g [8] vector\n"
                  "head.mtp.layer.linear.W [8, 8] matrix\n"
                  "head.mtp.connection.close.proj.W [8, 8] matrix\n"
                  "head.mtp.norm_out.g [8] vector\n");
}

static void sharing(Test *t)
{
    expect_params(t, "one name applied twice is one module, also inside",
                  HEAD "block b()(x: [.., D]) -> [.., D] {\n let f = ffn(hidden = 4, activation = gelu)\n"
                       " return f(x) + f(2 * x)\n}\n" MODEL("b", LM),
                  NULL,
                  "embed.tokens.W [32, 8] embedding\nb.pre_norm.g [8] vector\nb.f.up.W [8, 4] matrix\n"
                  "b.f.down.W [4, 8] matrix\nhead.lm.norm.g [8] vector\n");
    expect_params(t, "a block without tensors is applied by an empty call: twice, and it is one module",
                  HEAD "block one(n: dim)() -> [n] {\n param s : [n] = ones\n return s\n}\n"
                       "block b()(x: [.., D]) -> [.., D] {\n let s = one(n = D)\n let f = one\n let g = f(n = 1)\n"
                       " return x * s() + s() * g()\n}\n" MODEL("b", LM),
                  NULL,
                  "embed.tokens.W [32, 8] embedding\nb.pre_norm.g [8] vector\nb.s.s [8] vector\nb.g.s [1] vector\n"
                  "head.lm.norm.g [8] vector\n");
    expect_params(
        t, "two lets are two modules; an iteration has its own",
        HEAD "block b()(x: [.., D]) -> [.., D] {\n let f = linear(out = D)\n let g = f\n x = f(x) + g(x)\n"
             " for i in 1..2 {\n  let h = linear(out = D)\n  x = h(f(x))\n }\n return x\n}\n" MODEL("b", LM),
        NULL,
        "embed.tokens.W [32, 8] embedding\nb.pre_norm.g [8] vector\nb.f.W [8, 8] matrix\nb.g.W [8, 8] matrix\n"
        "b.i[1].h.W [8, 8] matrix\nb.i[2].h.W [8, 8] matrix\nhead.lm.norm.g [8] vector\n");
    expect_params(t, "a step that applies its sublayer twice",
                  HEAD "block c() {\n block open()(x: [.., D]) -> [.., D] { return x }\n"
                       " block step(k: int)(x: [.., D], f: block) -> [.., D] { return f(f(x)) }\n"
                       " block close()(x: [.., D]) -> [.., D] { return x }\n}\nlet C = c()\n" MODEL(
                           "ffn { hidden = 4, activation = gelu, connection = C }", LM),
                  NULL,
                  "embed.tokens.W [32, 8] embedding\nffn.pre_norm.g [8] vector\nffn.up.W [8, 4] matrix\n"
                  "ffn.down.W [4, 8] matrix\nhead.lm.norm.g [8] vector\n");
    expect_params(
        t, "labels, loops over words, slashdash, if",
        HEAD MODEL(
            "for part in [\"a\", \"b\"] {\n if part == \"a\" { linear x { out = D } } else { linear y { out = D } }\n"
            " /- ffn { hidden = 3 }\n}\nlinear { out = D, bias = true, /- group = static\n }",
            LM),
        NULL,
        "embed.tokens.W [32, 8] embedding\npart[\"a\"].linear.x.pre_norm.g [8] vector\n"
        "part[\"a\"].linear.x.W [8, 8] matrix\npart[\"b\"].linear.y.pre_norm.g [8] vector\n"
        "part[\"b\"].linear.y.W [8, 8] matrix\nlinear.pre_norm.g [8] vector\nlinear.W [8, 8] matrix\n"
        "linear.b [8] vector\nhead.lm.norm.g [8] vector\n");
    expect_params(t, "tied: the last node of that name, also one of another iteration or of this one",
                  HEAD "block mark(n: dim)(x: [B, T, D]) -> [B, T, D] {\n param g : [n] = ones\n v = unsqueeze(mean(x, "
                       "over = -1)) * g\n"
                       " return x + sum(v, over = -1, keep = true)\n}\n"
                       "block probe()(x: [.., D]) -> [.., D] {\n let n = extent(tied(mark, a, v), 3)\n param w : [n] = "
                       "ones\n return x * sum(w)\n}\n" MODEL("for layer in 1..3 {\n if layer < 3 { mark a { n = layer, "
                                                             "pre_norm = none } }\n probe { pre_norm = none }\n}",
                                                             LM),
                  NULL,
                  "embed.tokens.W [32, 8] embedding\nlayer[1].mark.a.g [1] vector\nlayer[1].probe.w [1] vector\n"
                  "layer[2].mark.a.g [2] vector\nlayer[2].probe.w [2] vector\nlayer[3].probe.w [2] "
                  "vector\nhead.lm.norm.g [8] vector\n");
    expect_params(t, "buffers and groups", HEAD MODEL("pattention { slots = 4 }", LM), NULL,
                  "embed.tokens.W [32, 8] embedding\npattention.pre_norm.g [8] vector\npattention.K [4, 8] token\n"
                  "pattention.V [4, 8] token\npattention.tau [] vector buffer\nhead.lm.norm.g [8] vector\n");
}

/* ---- scopes, closures, dimensions ---- */

typedef struct InitCase {
    const char *what, *text, *path;
    InitKind kind;
    double a;
} InitCase;

static void initialisers(Test *t)
{
    static const InitCase cases[] = {
        {"scope of the model", HEAD MODEL(FFN, LM), "ffn.up.W", INIT_NORMAL, 0.02},
        {"scope of a node", HEAD MODEL("ffn { hidden = 16, activation = gelu, init = fill(3) }", LM), "ffn.up.W",
         INIT_FILL, 3},
        {"out_init of a loop, with its variable",
         HEAD MODEL("for layer in 1..2 {\n out_init = normal(std = 1 / sqrt(fan_in * layer))\n" FFN "\n}", LM),
         "layer[2].ffn.down.W", INIT_NORMAL, 0.17677669529663687},
        {"a closure in a let keeps the place where it is applied",
         HEAD "let f = ffn(hidden = 16, activation = gelu)\n" MODEL("init = fill(7)\nf", LM), "f.up.W", INIT_FILL, 7},
        {"an argument for one projection",
         HEAD MODEL("ffn { hidden = 16, activation = gelu, up = linear(init = fill(5)) }", LM), "ffn.up.W", INIT_FILL,
         5},
        {"fan_out", HEAD MODEL("init = normal(std = 1 / fan_out)\n" FFN, LM), "ffn.up.W", INIT_NORMAL, 1.0 / 16},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const InitCase *k = &cases[i];
        char *text = malloc(strlen(k->text) + 1); /* an attribute of the body replaces the model's own */
        strcpy(text, k->text);
        char *own = strstr(text, " init = normal(std = 0.02)\n");
        if (strstr(text, "\ninit = "))
            memset(own, ' ', strlen(" init = normal(std = 0.02)"));
        Checked c = check_text("-", text, NULL);
        bool found = false;
        if (expect_fine(t, k->what, &c))
            for (size_t p = 0; p < c.unit->model->param.n; p++) {
                const Param *q = &c.unit->model->param.v[p];
                double d = q->init.a - k->a;
                found |= !strcmp(q->path, k->path) && q->init.kind == k->kind && d < 1e-15 && d > -1e-15;
            }
        EXPECT(t, k->what, found);
        ctx_free(c.ctx);
        free(text);
    }
}

typedef struct ErrorCase {
    const char *what, *code, *text;
} ErrorCase;

static void rules(Test *t)
{
    static const ErrorCase cases[] = {
        {"a dimension of one method is not seen in another", "E0102",
         HEAD "block c() {\n block open()(x: [.., Q]) -> [.., Q] { return x }\n"
              " block step(k: int)(x: [.., D], f: block) -> [.., D] { return x + f(x) * Q }\n"
              " block close()(x: [.., D]) -> [.., D] { return x }\n}\nlet C = c()\n" MODEL(
                  "ffn { hidden = 4, activation = gelu, connection = C }", LM)},
        {"a let of the file is not captured by a dimension", NULL,
         HEAD "let E = 3\nblock b()(x: [.., E]) -> [.., E] { return x * E / E }\n" MODEL("b", LM)},
        {"a configured dimension must be equal", "E0312",
         HEAD "block b(E: dim)(x: [.., E]) -> [.., E] { return x }\n" MODEL("b { E = 9 }", LM)},
        {"`..` is the same everywhere in one call", "E0312",
         HEAD
         "block b()(x: [.., D], y: [.., D]) -> [.., D] { return x + y }\n"
         "block c()(x: [.., D]) -> [.., D] { let f = b(), return f(x, matrix([[1, 1, 1, 1, 1, 1, 1, 1]])) }\n" MODEL(
             "c", LM)},
        {"`_` matches anything", NULL, HEAD "block b()(x: [.., _]) -> [.., _] { return x }\n" MODEL("b", LM)},
        {"a name sees the binding before it", NULL,
         HEAD "block b()(x: [.., D]) -> [.., D] {\n let f = linear()\n let f = f(out = D)\n x = f(x)\n x = 2 * x\n "
              "return x\n}\n" MODEL("b", LM)},
        {"a body runs from top to bottom", "E0102",
         HEAD "block b()(x: [.., D]) -> [.., D] {\n y = x * later\n let later = 2\n return y\n}\n" MODEL("b", LM)},
        {"a block argument is a list that becomes a tensor", NULL,
         HEAD "block b(M: [8, 8])(x: [.., D]) -> [.., D] { return x @ M }\n" MODEL(
             "b { M = [[if i == j then 1 else 0 for j in 1..D] for i in 1..D] }", LM)},
        {"of a declared shape", "E0312",
         HEAD "block b(M: [8, 8])(x: [.., D]) -> [.., D] { return x @ M }\n" MODEL("b { M = [[1, 2], [3, 4]] }", LM)},
        {"a choice", "E0205",
         HEAD "block b(kind: one_of(up, down))(x: [.., D]) -> [.., D] { return x }\n" MODEL("b { kind = left }", LM)},
        {"a relative length goes to `rel` only", "E0207", HEAD MODEL("ffn { hidden = 2d, activation = gelu }", LM)},
        {"run-time scalars in losses", NULL,
         HEAD "block b()(x: [.., D]) -> [.., D] {\n loss.size = (if step < 100 then 0.1 else 0) * mean(x * x)\n return "
              "x\n}\n" MODEL("b", LM)},
        {"but not in configuration", "E0202",
         HEAD MODEL("ffn { hidden = 4, activation = gelu, dropout = progress }", LM)},
        {"zero extents are legal", NULL,
         HEAD "block b()(x: [.., D]) -> [.., D] { return concat(first(x, D), rest(x, D)) }\n" MODEL("b", LM)},
        {"parallel sublayers", NULL, HEAD MODEL("parallel { attention { heads = 2 }, " FFN " }", LM)},
        {"an embedding after a sublayer", "E0110", HEAD MODEL(FFN "\nembed position { size = 16 }", LM)},
        {"a second width in one scope", "E0108", HEAD MODEL("width = 9\n" FFN, LM)},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Checked c = check_text("-", cases[i].text, NULL);
        if (cases[i].code)
            expect_error(t, cases[i].what, &c, cases[i].code);
        else
            expect_fine(t, cases[i].what, &c);
        ctx_free(c.ctx);
    }
}

/* ---- decays ---- */

/* Whose decay a weight has: of a group, the last one; else its declaration's; else of the optimizer that updates it, which groups
 * choose. `embed.tokens.W` is adamw's, `linear.W` muon's, `others.g` adamw's with a decay of its own. */
static void decays(Test *t)
{
    static const struct {
        const char *optimizer;
        double embed, linear, g;
    } cases[] = {
        {"muon { lr = 1e-2, momentum = 0.9, weight_decay = 0.1, adamw { betas = [0.9, 0.95], eps = 1e-8, weight_decay "
         "= 100 } }",
         100, 0.1, 0.3},
        {"muon { lr = 1e-2, momentum = 0.9, weight_decay = 0.1, adamw { betas = [0.9, 0.95], eps = 1e-8 } }", 0.1, 0.1,
         0.3},
        {"muon { lr = 1e-2, momentum = 0.9, weight_decay = 0.1, adamw { betas = [0.9, 0.95], eps = 1e-8, weight_decay "
         "= 100 }\n"
         " group \"linear.W\" { update = adamw } }",
         100, 100, 0.3},
        {"muon { lr = 1e-2, momentum = 0.9, weight_decay = 0.1, group \"embed.tokens.W\" { update = muon }\n"
         " adamw { betas = [0.9, 0.95], eps = 1e-8, weight_decay = 100 } }",
         0.1, 0.1, 0.3},
        {"muon { lr = 1e-2, momentum = 0.9, weight_decay = 0.1, adamw { betas = [0.9, 0.95], eps = 1e-8, weight_decay "
         "= 100 }\n"
         " group \"linear.W\" { update = adamw, weight_decay = 7 }, group vector { weight_decay = 8 } }",
         100, 7, 8},
        {"adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.2, group vector { lr_scale = 2 } }", 0.2,
         0.2, 0.3},
        {"sgd { lr = 1e-2, momentum = 0, weight_decay = 0.2, group \"others.*\" { weight_decay = 0 } }", 0.2, 0.2, 0},
        {"lion { lr = 1e-2, betas = [0.9, 0.95], weight_decay = 0.2, group matrix { weight_decay = 5 } }", 0.2, 5, 0.3},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Ctx *own = ctx_new(NULL);
        Buf text = buf_new(own->program);
        buf_printf(
            &text,
            HEAD
            "block others()(x: [.., D]) -> [.., D] {\n param g : [D] = ones { decay = 0.3 }\n return x * g\n}\n" MODEL(
                "linear { out = 8 }\n others", LM) "train {\n data = token_files(\"x/*.bin\", dtype = u16)\n batch = 4 "
                                                   "seqs\n length = 100 steps\n seed = 1\n precision = fp32\n"
                                                   " optimizer %s\n}\n",
            cases[i].optimizer);
        Checked c = check_text("decays.vwn", text.s, NULL);
        EXPECT(t, cases[i].optimizer, c.unit && !diag_errors(c.ctx));
        if (diag_errors(c.ctx))
            print_diagnostics(&c);
        const struct {
            const char *path;
            double want;
        } weights[] = {{"embed.tokens.W", cases[i].embed}, {"linear.W", cases[i].linear}, {"others.g", cases[i].g}};
        for (size_t k = 0; c.unit && c.unit->train && k < COUNT_OF(weights); k++)
            for (size_t n = 0; n < c.unit->model->param.n; n++)
                if (!strcmp(c.unit->model->param.v[n].path, weights[k].path))
                    EXPECT(t, weights[k].path, c.unit->train->optimizer.decay[n] == weights[k].want);
        ctx_free(c.ctx);
        ctx_free(own);
    }
}

/* ---- overrides ---- */

static const char trained[] =
    HEAD "let w = geometric(layers = 2, base = 8, bottleneck = 0.5d, at = 2, first = 8, round = 1)\nlet hidden = 2 * "
         "w[1]\n" MODEL("for layer in 1..2 { attention { heads = 2 }, ffn { hidden = hidden, activation = gelu } }",
                        LM) "train {\n data = token_files(\"x/*.bin\", dtype = u16)\n batch = 4 seqs\n length = 100 "
                            "steps\n seed = 1\n precision = fp32\n"
                            " optimizer adamw {\n  lr = cosine(peak = 1e-3, floor = 0, warmup = 10%)\n  betas = [0.9, "
                            "0.95]\n  eps = 1e-8\n"
                            "  weight_decay = 0.1\n  group vector { weight_decay = 0 }\n  group \"layer[*].ffn.*\" { "
                            "lr_scale = 0.5 }\n }\n}\n";

static double number_of(const Unit *u, const char *what)
{
    const Train *t = u->train;
    if (!strcmp(what, "params"))
        return (double)model_count(u->model).live;
    if (!strcmp(what, "batch"))
        return (double)t->batch_seqs;
    if (!strcmp(what, "seed"))
        return (double)t->seed;
    double vars[HV_COUNT] = {[HV_STEP] = 50, [HV_LENGTH] = 100};
    if (!strcmp(what, "lr"))
        return host_eval(t->optimizer.lr, vars);
    for (size_t i = 0; i < u->model->param.n; i++)
        if (!strcmp(u->model->param.v[i].path, what))
            return t->optimizer.lr_scale[i] + 10 * t->optimizer.decay[i];
    return -1;
}

static void overrides(Test *t)
{
    static const struct {
        const char *set, *code, *what;
        double value;
    } cases[] = {
        {"D=16", NULL, "params", 2 * (16 + 4 * 256 + 16 + 2 * 16 * 16) + 32 * 16 + 16},
        {"hidden=4", NULL, "params", 2 * (8 + 4 * 64 + 8 + 2 * 8 * 4) + 32 * 8 + 8},
        {"w.first=4", NULL, "params", 2 * (8 + 4 * 64 + 8 + 2 * 8 * 8) + 32 * 8 + 8},
        {"layer[1].ffn.hidden=4", NULL, "params", 2 * (8 + 4 * 64 + 8) + 2 * 8 * 4 + 2 * 8 * 16 + 32 * 8 + 8},
        {"layer[*].ffn.hidden=4", NULL, "params", 2 * (8 + 4 * 64 + 8 + 2 * 8 * 4) + 32 * 8 + 8},
        {"layer[*].attention.q_proj=linear(bias = true)", NULL, "params",
         2 * (8 + 4 * 64 + 8 + 8 + 2 * 8 * 16) + 32 * 8 + 8},
        {"embed.tokens.vocab=64", NULL, "params", 2 * (8 + 4 * 64 + 8 + 2 * 8 * 16) + 64 * 8 + 8},
        {"model.pre_norm=none", NULL, "params", 2 * (4 * 64 + 2 * 8 * 16) + 32 * 8 + 8},
        {"train.batch=8 seqs", NULL, "batch", 8},
        {"train.seed=9", NULL, "seed", 9},
        {"train.optimizer.lr=0.5", NULL, "lr", 0.5},
        {"train.optimizer.lr=linear(peak = 1, floor = 0)", NULL, "lr", 0.5},
        {"train.optimizer.lr=wsd(peak = 1, decay = 20%)", NULL, "lr", 1},
        {"train.optimizer.group.vector.weight_decay=0.2", NULL, "head.lm.norm.g", 1 + 10 * 0.2},
        {"train.seed=1", NULL, "layer[1].ffn.up.W", 0.5 + 10 * 0.1},
        /* cosine from 0.5 to 0 after a tenth: at half of the run 4 of 9 parts are over */
        {"train.optimizer.lr.peak=0.5", NULL, "lr", 0.25 * (1 + 0.17364817766693034885)},
        {"train.optimizer.group[\"layer[*].ffn.*\"].lr_scale=0.25", NULL, "layer[1].ffn.up.W", 0.25 + 10 * 0.1},
        {"model.layer[2].ffn.hidden=2 * layer", NULL, "params",
         2 * (8 + 4 * 64 + 8) + 2 * 8 * 16 + 2 * 8 * 4 + 32 * 8 + 8},
        {"model.context=D", NULL, "params", 2 * (8 + 4 * 64 + 8 + 2 * 8 * 16) + 32 * 8 + 8},
        {"train.seed=1", NULL, "layer[1].ffn.pre_norm.g", 0.5},
        {"w.frist=4", "E0105", NULL, 0},
        {"hiden=4", "E0105", NULL, 0},
        {"layer[7].ffn.hidden=4", "E0105", NULL, 0},
        {"train.optimizer.lrr=4", "E0101", NULL, 0},
        {"train.sede=4", "E0101", NULL, 0},
        {"D=step", "E0202", NULL, 0},
        {"D=", "E0105", NULL, 0},
        {"D=1 +", "E0001", NULL, 0},
        {"D=D", "E0109", NULL, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *sets[] = {cases[i].set, NULL};
        Checked c = check_text("-", trained, sets);
        if (cases[i].code) {
            expect_error(t, cases[i].set, &c, cases[i].code);
        } else if (expect_fine(t, cases[i].set, &c)) {
            double got = number_of(c.unit, cases[i].what), off = got - cases[i].value;
            EXPECT(t, cases[i].set, off < 1e-9 && off > -1e-9);
            if (off > 1e-9 || off < -1e-9)
                printf("  %s is %g, wanted %g\n", cases[i].what, got, cases[i].value);
        }
        ctx_free(c.ctx);
    }
}

/* Of two settings of one place the later one wins, and one that leads inside finds what an earlier one left. */
static void later_overrides(Test *t)
{
    static const struct {
        const char *set[2], *what;
        double value;
    } cases[] = {
        {{"train.seed=1", "train.seed=2"}, "seed", 2},
        {{"D=4", "D=16"}, "params", 2 * (16 + 4 * 256 + 16 + 2 * 16 * 16) + 32 * 16 + 16},
        {{"train.optimizer.lr.peak=1", "train.optimizer.lr=0.25"}, "lr", 0.25},
        {{"train.optimizer.lr=linear(peak = 1, floor = 0)", "train.optimizer.lr.peak=0.5"}, "lr", 0.25},
        {{"train.optimizer.lr=if D > 4 then wsd(peak = 1, decay = 20%) else cosine(peak = 9, floor = 0)",
          "train.optimizer.lr.peak=0.5"},
         "lr",
         0.5},
        {{"layer[*].ffn.hidden=9", "layer[2].ffn.hidden=4"},
         "params",
         2 * (8 + 4 * 64 + 8) + 2 * 8 * (9 + 4) + 32 * 8 + 8},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *sets[] = {cases[i].set[0], cases[i].set[1], NULL};
        Checked c = check_text("-", trained, sets);
        if (expect_fine(t, cases[i].set[1], &c)) {
            double off = number_of(c.unit, cases[i].what) - cases[i].value;
            EXPECT(t, cases[i].set[1], off < 1e-9 && off > -1e-9);
        }
        ctx_free(c.ctx);
    }
}

/* ---- growth, sweeps, lints ---- */

static void growth_and_sweeps(Test *t)
{
    static const char grow[] = HEAD "let hidden = 16\n" MODEL(
        "ffn { hidden = hidden, activation = gelu }",
        LM) "grow wider {\n when = step >= 10\n let hidden = 2 * hidden\n check params == 32 * 8 + 8 + 8 + 2 * 8 * 32\n"
            " check preserves(1e-5)\n}\ngrow deeper {\n when = tokens >= 1M\n let hidden = 64\n}\n";
    Checked c = check_text("-", grow, NULL);
    if (expect_fine(t, "growth", &c)) {
        Unit *u = c.unit;
        EXPECT(t, "growth", u->grow.n == 2 && u->grow.v[0].when && u->grow.v[1].before == u->grow.v[0].after);
        EXPECT(t, "growth", model_count(u->grow.v[1].after).live == 32 * 8 + 8 + 8 + 2 * 8 * 64);
        EXPECT(t, "growth", u->check.n == 2 && u->check.v[0].state == CHECK_TRUE && u->check.v[1].state == CHECK_TRUE);
    }
    ctx_free(c.ctx);
    static const char *const sets[] = {"conn=hyper(n = 2, dynamic = false)", NULL};
    c = check_text("-", HEAD MODEL(FFN, LM) "check state_width == 16\n", sets);
    expect_fine(t, "the state of hyper-connections", &c);
    ctx_free(c.ctx);
}

static void lints(Test *t)
{
    static const struct {
        const char *lint, *pre, *body, *head;
    } rows[] = {
        {"unused_let", "let spare = 3\n", FFN, LM},
        {"unused_parameter", "block b(by: float)(x: [.., W]) -> [.., W] { return x }\n", "b { by = 1 }", LM},
        {"head_dim_unaligned", "", "attention { heads = 2, head_dim = 5 }", LM},
        {"vocab_not_padded", "", FFN, "head lm { norm = n, vocab = 5000 }"},
        {"dead_weights", "", "ffn { hidden = 0, activation = gelu }", LM},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        for (int allowed = 0; allowed < 2; allowed++) {
            char text[2000], allow[80] = "";
            if (allowed)
                snprintf(allow, sizeof allow, "allow = [%s]\n", rows[i].lint);
            snprintf(
                text, sizeof text, "%s%s%s%s%s\n%s\n}\n", HEAD, rows[i].pre,
                "model m {\n context = 16\n width = D\n mask = causal\n init = normal(std = 0.02)\n out_init = zeros\n"
                " pre_norm = n\n connection = conn\n embed tokens { vocab = 32 }\n",
                allow, rows[i].body, rows[i].head);
            Checked c = check_text("-", text, NULL);
            expect_fine(t, rows[i].lint, &c);
            EXPECT(t, rows[i].lint, count_lint(&c, rows[i].lint) == (allowed ? 0u : 1u));
            ctx_free(c.ctx);
        }
}

int main(void)
{
    Test t = {0};
    paths(&t);
    sharing(&t);
    initialisers(&t);
    rules(&t);
    decays(&t);
    overrides(&t);
    later_overrides(&t);
    growth_and_sweeps(&t);
    lints(&t);
    return test_end(&t);
}
