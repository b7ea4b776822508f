/* proof.c - growth steps made at random: what is proved of them against what is measured in float64.
 *
 * In:  FROM COUNT: seeds (1 120); `--show SEED`: its text.   Out: counts of verdicts; 0 when none is wrong.
 * The one idea: the proof says "the same function" and "a gradient after so many updates"; both models are evaluated
 * with weights in general position, and the new blocks are filled element by element from what the plan says of axes.
 * A verdict "preserved" that is not true is an error; one that is true and not given is counted.
 */
#include "support/models.h"
#include "support.h"

#include "compiler/growth/growth.h"

#include <float.h>

enum { PASSES = 3, FIRST_DRAW = 5, LAST_DRAW = 20, WHY_MOST = 300 };
typedef struct Counts {
    int steps, lossless, proved, dead, lossy, unsound, missed, wrong_life, refused;
} Counts;

/* ---- texts ---- */

/* Numbers are added in l2 norms, for without them what is read may be of any length, and weights of streams, which change
 * nothing else, have no gradient in any model, old or new. */

typedef struct Draw {
    uint64_t state;
} Draw;

static int pick(Draw *d, int n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (int)((d->state >> 33) % (uint64_t)n);
}

#define ONE_OF(d, ...) one_of(d, (const char *const[]){__VA_ARGS__}, COUNT_OF(((const char *const[]){__VA_ARGS__})))
static const char *one_of(Draw *d, const char *const *text, size_t n)
{
    return text[pick(d, (int)n)];
}

static const char *fill_of(Draw *d)
{
    return pick(d, 9) < 6 ? "zeros" : "normal(std = 0.3)";
}

/* What grows, and how its blocks are filled. */
static const char *text_of(Arena *arena, uint64_t seed)
{
    Draw d = {seed * 0x9e3779b97f4a7c15u + 77};
    for (int i = 0; i < 8; i++)
        pick(&d, 2);
    int heads = 1 + pick(&d, 3), group = 1 + pick(&d, 2), h = 2 * (1 + pick(&d, 3)), D = 4 * (2 + pick(&d, 3));
    int F = 3 + pick(&d, 9), M = 3 + pick(&d, 5), A = 3 + pick(&d, 5), S = 3 + pick(&d, 4), n = 2 + pick(&d, 2);
    const char *map = ONE_OF(&d, "linear()", "linear()", "nexus_rank(M = M, A = A)", "nexus_rank(M = M, A = A, normalise = l2)",
                             "pattention(slots = S, eps = 0.01)", "pattention(slots = S, normalise = gelu_l2)", "linear(bias = true)");
    const char *norm = ONE_OF(&d, "rms_norm(eps = eps)", "rms_norm(eps = eps)", "layer_norm(eps = eps)", "rms_norm(eps = eps, gain = false)");
    const char *conn = ONE_OF(&d, "residual()", "residual()", "residual()", "hyper(n = n, dynamic = false)", "hyper(n = n, dynamic = true, collapse = mean)",
                              "ghc(m = 2, n = n + 1, dynamic = true)", "frac(m = 2, dynamic = true)", "residual(branch_scale = 0.5)");
    const char *act = ONE_OF(&d, "gelu", "silu", "relu", "tanh", "sigmoid");
    const char *gated = ONE_OF(&d, "true", "false");
    const char *sub = ONE_OF(&d, "ffn", "ffn", "ffn", "moe", "pattention");
    int layers = 1 + !pick(&d, 4);
    bool upcycle = !strcmp(sub, "ffn") && !strcmp(gated, "true") && !pick(&d, 4);
    Buf b = buf_new(arena), lets = buf_new(arena);
    const char *copies = pick(&d, 4) ? NULL : ONE_OF(&d, "entry = copy, exit = split", "entry = copy, exit = split", "entry = copy, exit = split(share = 0.3)", "entry = replicate, exit = replicate",
                                                     "entry = copy, exit = zeros", "entry = copy, exit = copy", "entry = zeros, exit = split", "entry = replicate, exit = split");
    buf_printf(&b, "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nimport \"std/growable\"\nlet eps = 1e-3\n"
               "let D = %d\nlet F = %d\nlet heads = %d\nlet kv = %d\nlet h = %d\nlet n = %d\nlet L = %d\nlet M = %d\nlet A = %d\n"
               "let S = %d\nlet V = 17\nlet dense = true\nlet conn = %s\nlet E = %s\n", D, F, heads * group, heads, h, n, layers, M, A, S, conn,
               !strncmp(conn, "ghc", 3) ? "D * (n + 1) / 2" : "D");
    buf_printf(&b, "model m {\n  context = 8, width = D, mask = %s, init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
               "  pre_norm = %s, connection = conn\n  embed tokens { vocab = V, width = E }\n  for layer in 1..L {\n"
               "    attention { heads = heads, kv_heads = kv, head_dim = h, scale = %s, q_proj = %s, k_proj = %s, v_proj = %s%s%s }\n",
               ONE_OF(&d, "causal", "causal", "full"), norm, pick(&d, 4) ? "0.4" : "1 / sqrt(h)", map, map, map,
               pick(&d, 2) ? ", position = rope(base = 100)" : "", pick(&d, 4) ? "" : ", qk_norm = rms_norm(eps = 1e-3)");
    if (!strcmp(sub, "moe"))
        buf_printf(&b, "    moe { experts = 3, active = 2, hidden = F, activation = %s, scores = softmax, normalize = true, balance = 0.01 }\n", act);
    else if (!strcmp(sub, "pattention"))
        buf_puts(&b, "    pattention { slots = S, out = D, eps = 0.01 }\n");
    else if (upcycle) /* not all experts: those that are copies of one another give the router no gradient then, and balance none */
        buf_printf(&b, "    if dense { ffn { hidden = F, activation = %s, gated = true } } else { moe { experts = 3, active = %s, hidden = F, "
                   "activation = %s, scores = %s, normalize = %s, order = %s, balance = 0.01 } }\n", act, ONE_OF(&d, "1", "2"), act,
                   ONE_OF(&d, "softmax", "softmax", "sigmoid"), ONE_OF(&d, "true", "true", "false"), ONE_OF(&d, "scores_first", "topk_first"));
    else
        buf_printf(&b, "    ffn { hidden = F, activation = %s, gated = %s, bias = %s }\n", act, gated, ONE_OF(&d, "true", "false", "false"));
    bool tied = !pick(&d, 4);
    buf_printf(&b, "  }\n  head lm { norm = %s%s }\n}\n", norm, tied ? ", tie = tokens" : "");
    static const int same[] = {0, 0, 0, 1, 2, 3, 3, 4, 4, 5, 6, 7, 8, 9}; /* what grows, by draw */
    bool plain = !strncmp(conn, "residual", 8);
    int times = 1 + pick(&d, 2), first = -1;
    bool rescale = false;
    for (int i = 0; i < times; i++) {
        int what = pick(&d, plain ? 14 : 12);
        if (first >= 0 && same[what] == same[first])
            continue;
        first = what;
        switch (what) {
        case 0: case 1: case 2: F += 1 + pick(&d, 4); buf_printf(&lets, "  let F = %d\n", F); break;
        case 3:
            if (group > 1 && pick(&d, 3) == 0) { /* each of the old groups becomes several */
                buf_printf(&lets, "  let kv = %d\n", heads * group);
                copies = ONE_OF(&d, "entry = replicate", "entry = replicate", "entry = copy");
                break;
            }
            heads += 1 + pick(&d, 2); buf_printf(&lets, "  let heads = %d\n  let kv = %d\n", heads * group, heads);
            break;
        case 4: h += 2; buf_printf(&lets, "  let h = %d\n", h); break;
        case 5: case 6: M += 1 + pick(&d, 3); A += 1 + pick(&d, 3); buf_printf(&lets, "  let M = %d\n  let A = %d\n", M, A); break;
        case 7: case 8: S += 1 + pick(&d, 3); buf_printf(&lets, "  let S = %d\n", S); break;
        case 9:
            if (pick(&d, 3) && !copies) {
                buf_printf(&lets, "  let eps = 1e-3 * %d / %d\n", D, D + 4);
                rescale = true;
            }
            D += copies && pick(&d, 2) ? D : 4;
            buf_printf(&lets, "  let D = %d\n", D);
            break;
        case 10: buf_printf(&lets, "  let L = %d\n", 2 * layers + i); break;
        case 12:
            if (!pick(&d, 4)) {
                buf_printf(&lets, "  let E = D * 3 / 2\n  let conn = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D, init = %s))\n",
                           ONE_OF(&d, "eye", "eye", "normal(std = 0.3)"));
                break;
            }
            buf_printf(&lets, "  let conn = %s\n", ONE_OF(&d, "hyper(n = 2, dynamic = true, collapse = mean)", "hyper(n = 3, dynamic = false, collapse = mean)",
                       "hyper(n = 2, dynamic = true)", "ghc(m = 1, n = 1, dynamic = true)", "ghc(m = 2, n = 2, dynamic = true)", "frac(m = 2, dynamic = true)", "frac(m = 2, dynamic = false)"));
            break;
        case 13: buf_puts(&lets, "  let V = 20\n"); break;
        case 11: n += 1; buf_printf(&lets, "  let n = %d\n", n); break;
        }
    }
    if (upcycle)
        buf_puts(&lets, "  let dense = false\n");
    buf_printf(&b, "grow g {\n  when = step >= 10\n%s  fill { ", lets.s);
    if (copies)
        buf_puts(&b, copies);
    else
        buf_printf(&b, "entry = %s, exit = %s, inner = %s", fill_of(&d), fill_of(&d), fill_of(&d));
    if (rescale)
        buf_puts(&b, ", norms = rescale");
    if (upcycle)
        buf_puts(&b, ", layer[*].moe.pre_norm { layers = copy(of = layer[*].ffn.pre_norm) }, layer[*].moe.up { layers = copy(of = layer[*].ffn.up.W) }, "
                   "layer[*].moe.gate { layers = copy(of = layer[*].ffn.gate.W) }, layer[*].moe.down { layers = copy(of = layer[*].ffn.down.W) }");
    if (pick(&d, 2))
        buf_printf(&b, ", layers = %s", ONE_OF(&d, "identity", "identity", "normal(std = 0.2)", "copy", "replicate",
                   "copy, layer[*].attention.o_proj { layers = zeros }, layer[*].ffn.down { layers = zeros }"));
    if (pick(&d, 3) == 0 && !strcmp(sub, "ffn") && !upcycle)
        buf_printf(&b, ", layer[*].ffn.%s { entry = %s }", !strcmp(gated, "true") ? ONE_OF(&d, "up", "gate") : "up", fill_of(&d));
    if (pick(&d, 3) == 0)
        buf_printf(&b, ", layer[*].attention.%s { entry = %s }", ONE_OF(&d, "q_proj", "k_proj", "v_proj"), fill_of(&d));
    buf_puts(&b, " }\n  check alive(none)\n}\n");
    return b.s;
}

/* ---- measuring ---- */

/* The part of axis k in which index `at` lies. */
static const GrowthPart *part_of(const GrowthEntry *e, int k, int64_t at, size_t *part)
{
    const GrowthAxis *a = &e->axis[k];
    for (*part = 0; *part < a->n; ++*part)
        if (at >= a->part[*part].at && at < a->part[*part].at + a->part[*part].count)
            return &a->part[*part];
    abort();
}

/* The role of an element, said again: by which of its axes it is new on. *old: its place before, or that of what it is a
 * copy of; *weight: what that is multiplied by. */
static GrowthRole role_at(const GrowthEntry *e, int64_t flat, int64_t *old, double *weight)
{
    bool read = false, written = false, reads = false;
    int64_t index[MAX_RANK];
    *old = 0;
    *weight = 1;
    for (int k = e->after->shape.rank - 1; k >= 0; k--) {
        index[k] = flat % e->after->shape.d[k].n;
        flat /= e->after->shape.d[k].n;
    }
    int spread = e->after->shape.rank - e->before->shape.rank;
    for (int k = 0; k < e->after->shape.rank; k++) {
        size_t part = 0;
        const GrowthPart *p = part_of(e, k, index[k], &part);
        reads |= e->axis[k].reads;
        *(e->axis[k].reads ? &read : &written) |= p->fresh;
        if (k >= spread)
            *old = *old * e->before->shape.d[k - spread].n + p->from + index[k] - p->at;
        *weight *= p->weight;
    }
    return read && written ? ROLE_INNER : read ? ROLE_EXIT : !written ? ROLE_OLD : reads ? ROLE_ENTRY : ROLE_OWN;
}

static void put_grown(Arena *arena, const GrowthEntry *e, uint64_t draw, const double *had, double *now)
{
    double *drawn[ROLE_OWN + 1] = {0};
    for (int r = ROLE_ENTRY; r <= ROLE_OWN; r++) {
        Param p = *e->after;
        p.init = e->init[r];
        drawn[r] = NEW_ARRAY(arena, double, p.elements + 1);
        param_init(&p, draw, drawn[r]);
    }
    for (int64_t i = 0; i < e->after->elements; i++) {
        int64_t old;
        double weight;
        GrowthRole r = role_at(e, i, &old, &weight);
        now[i] = r == ROLE_OLD || e->copies[r] ? weight * had[old] : drawn[r][i];
    }
}

static RefBinding *bind_grown(Arena *arena, const Graph *g, const GrowthPlan *p, uint64_t draw, const Graph *old, RefBinding *had)
{
    const GrowStep *s = p->step;
    RefBinding *now = bind_all(arena, g, s->after, 2, 5, 0);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Tensor *t = bound(had, old, now[i].kind, now[i].name);
        if (now[i].kind == EXT_INPUT && t) {
            *now[i].tensor = *t;
            continue;
        }
        for (size_t k = 0; k < p->n; k++) {
            const GrowthEntry *e = &p->entry[k];
            if (!e->after || e->path != now[i].name)
                continue;
            const Tensor *source = e->before ? bound(had, old, now[i].kind, e->before->path) : NULL;
            if (source && (e->kind == GROWTH_GROWN || e->kind == GROWTH_TAKEN)) {
                put_grown(arena, e, draw, source->real, now[i].tensor->real);
            } else {
                Param fresh = *e->after;
                fresh.init = e->init[ROLE_OLD];
                param_init(&fresh, draw, now[i].tensor->real);
            }
        }
    }
    return now;
}

/* Other old weights. */
static void shake(const Graph *g, RefBinding *had, uint64_t draw)
{
    Draw d = {draw};
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; had[i].kind == EXT_PARAM && k < had[i].tensor->size; k++)
            had[i].tensor->real[k] = (pick(&d, 2001) - 1000) * 8e-4;
}

static Tensor *evaluate(Arena *arena, const Graph *g, RefBinding *bind, const char *name)
{
    Tensor **out = NEW_ARRAY(arena, Tensor *, g->out.n + 1);
    RefRun run = {.B = 2, .T = 5, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    ref_evaluate(g, arena, &run, out);
    for (size_t i = 0; i < g->out.n; i++)
        if (!strcmp(g->out.v[i].name, name))
            return out[i];
    return NULL;
}

static double change_of(Arena *arena, const GrowthPlan *p, RefBinding **had_out, const Graph **old_out)
{
    const Graph *a = step_predict(p->step->before, arena), *b = step_predict(p->step->after, arena);
    RefBinding *had = bind_all(arena, a, p->step->before, 2, 5, 0.5), *now = bind_grown(arena, b, p, FIRST_DRAW, a, had);
    const Tensor *u = evaluate(arena, a, had, "logits"), *v = evaluate(arena, b, now, "logits");
    double worst = 0, most = 0;
    *had_out = had;
    *old_out = a;
    if (!u || !v || u->size != v->size)
        return INFINITY;
    for (int64_t i = 0; i < u->size; i++) {
        worst = fmax(worst, fabs(u->real[i] - v->real[i]));
        most = fmax(most, fabs(u->real[i]));
        if (isnan(v->real[i]) != isnan(u->real[i]))
            return INFINITY;
    }
    return worst / (most + DBL_MIN);
}

static int64_t flat_at(const GrowthCell *c, const Shape *s, int64_t i)
{
    int64_t index[MAX_RANK] = {0}, flat = 0;
    for (int k = s->rank - 1; k >= 0; k--) {
        index[k] = c->at[k] + i % c->count[k];
        i /= c->count[k];
    }
    for (int k = 0; k < s->rank; k++)
        flat = flat * s->d[k].n + index[k];
    return flat;
}

/* Whether a cell of a gradient is not zero; one that is no number (an l2 norm of zeros has none) is not. */
static bool learns(const GrowthEntry *e, const GrowthCell *c, const Tensor *d)
{
    int64_t n = 1;
    for (int k = 0; k < e->after->shape.rank; k++)
        n *= c->count[k];
    for (int64_t i = 0; i < n && d; i++)
        if (!(fabs(d->real[flat_at(c, &e->after->shape, i)]) <= 1e-13))
            return true;
    return false;
}

/* A few updates; each cell must have its gradient when the proof says, and none before. False: one has not. *none: by
 * chance perhaps, as units of relu that no position reaches. */
static bool measure_life(Arena *arena, const GrowthPlan *p, const GrowthProof *proof, uint64_t draw, bool *none, char *why, const Graph *old, RefBinding *had)
{
    static const char *const role[] = {"new", "entry", "exit", "inner", "own"};
    Graph *g = step_evaluate(p->step->after, arena);
    Val loss = 0, *wrt = NEW_ARRAY(arena, Val, g->node.n), *grad = NEW_ARRAY(arena, Val, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        loss = strcmp(g->out.v[i].name, "loss") ? loss : g->out.v[i].value;
    size_t n = 0, results = g->out.n;
    for (Val v = 1; v < (Val)g->node.n; v++)
        if (node_at(g, v)->op == OP_EXT && g->ext.v[node_at(g, v)->a.i].kind == EXT_PARAM)
            wrt[n++] = v;
    graph_gradient(g, loss, wrt, n, grad);
    for (size_t i = 0; i < n; i++)
        if (grad[i])
            ir_output(g, g->ext.v[node_at(g, wrt[i])->a.i].name, grad[i]);
    RefBinding *bind = bind_grown(arena, g, p, draw, old, had);
    Tensor *tokens = bound(bind, g, EXT_INPUT, name_str(g->ctx, "tokens"));
    for (int64_t id = 17; id < p->step->after->vocab; id++) /* those that only the grown model has occur, too */
        tokens->integer[id - 17] = id;
    bool **met = NEW_ARRAY(arena, bool *, p->n + 1), good = true;
    for (size_t k = 0; k < p->n; k++)
        met[k] = NEW_ARRAY(arena, bool, proof->life[k].cell.n + 1);
    bool numbers = true;
    for (int pass = 0; pass < PASSES && numbers; pass++) {
        Tensor **out = NEW_ARRAY(arena, Tensor *, g->out.n + 1);
        RefRun run = {.B = 2, .T = 5, .seed = 1, .bind = bind, .n_bind = g->ext.n};
        ref_evaluate(g, arena, &run, out);
        for (size_t k = 0; k < p->n; k++) {
            const GrowthEntry *e = &p->entry[k];
            const Tensor *d = NULL;
            for (size_t i = results; i < g->out.n && e->after; i++)
                d = strcmp(g->out.v[i].name, e->path) ? d : out[i];
            Tensor *w = e->after ? bound(bind, g, EXT_PARAM, e->path) : NULL;
            double largest = 0;
            for (int64_t i = 0; d && i < d->size; i++)
                largest = fmax(largest, fabs(d->real[i]));
            for (size_t i = 0; i < proof->life[k].cell.n; i++) {
                const GrowthCell *c = &proof->life[k].cell.v[i];
                met[k][i] |= learns(e, c, d);
                bool may = c->may != NEVER && c->may <= pass, must = c->after != NEVER && c->after <= pass;
                if (met[k][i] ? may : !must)
                    continue;
                *none = !met[k][i];
                if (good)
                    snprintf(why, WHY_MOST, "%s of %s: said %d to %d, has %s at %d", role[c->role], e->path, c->may, c->after,
                             *none ? "none" : "one", pass);
                good = false;
            }
            for (int64_t i = 0; d && w && largest > 0 && i < d->size; i++) {
                numbers &= isfinite(d->real[i]);
                w->real[i] -= 0.05 * d->real[i] / largest;
            }
        }
    }
    return good;
}

static void try_one(uint64_t seed, Counts *n)
{
    Ctx *volatile ctx = NULL;
    Arena *arena;
    Ctx *own = ctx_new(NULL);
    arena = arena_new(own);
    const char *text = text_of(arena, seed);
    Checked c = check_text("growth.vwn", text, NULL);
    ctx = c.ctx;
    if (!c.unit || diag_errors(c.ctx) || c.unit->grow.n != 1) {
        n->refused++;
        ctx_free(ctx);
        ctx_free(own);
        return;
    }
    Arena *work = c.ctx->program;
    const GrowthPlan *p = growth_plan(&c.unit->grow.v[0], work);
    const GrowthProof *proof = growth_prove(p, work);
    RefBinding *had;
    const Graph *old;
    double change = change_of(work, p, &had, &old);
    bool same = change < 1e-11;
    n->steps++;
    n->lossless += same;
    n->lossy += !same;
    n->dead += proof->dead > 0;
    n->proved += proof->preserved && same;
    if (proof->preserved != same) {
        n->unsound += proof->preserved;
        n->missed += same;
        Val at = proof->departs ? proof->departs : proof->lost;
        const Node *d = at ? node_at(p->step->after->graph, at) : NULL;
        printf("%sseed %llu: said %s, changes by %.3g; %s%s %s at %%%u = %s of %s\n", text, (unsigned long long)seed,
               proof->preserved ? "preserved" : "not shown", change, proof->leak ? "new numbers of " : "",
               proof->leak ? proof->leak->path : "", proof->departs ? "departs" : "lost", (unsigned)at, d ? op_info((Op)d->op)->name : "-",
               d && d->name ? d->name : "-");
    }
    bool lives = false, none = true; /* with other numbers, old ones too, if there is none by chance */
    char why[WHY_MOST];
    for (uint64_t draw = FIRST_DRAW; draw <= LAST_DRAW && !lives && none; draw++) {
        if (draw > FIRST_DRAW)
            shake(old, had, draw);
        lives = measure_life(work, p, proof, draw, &none, why, old, had);
    }
    /* Where there are new ids, an l2 norm of a row of zeros has no gradient. */
    if (!lives && !proof->undefined && p->step->after->vocab == p->step->before->vocab) {
        printf("%sseed %llu: %s\n", text, (unsigned long long)seed, why);
        n->wrong_life++;
    }
    ctx_free(ctx);
    ctx_free(own);
}

int main(int argc, char **argv)
{
    Counts n = {0};
    if (argc == 3 && !strcmp(argv[1], "--show")) {
        Ctx *ctx = ctx_new(NULL);
        printf("%s", text_of(arena_new(ctx), strtoull(argv[2], NULL, 10)));
        ctx_free(ctx);
        return 0;
    }
    uint64_t from = argc > 2 ? strtoull(argv[1], NULL, 10) : 1, count = argc > 2 ? strtoull(argv[2], NULL, 10) : 120;
    for (uint64_t s = from; s < from + count; s++)
        try_one(s, &n);
    printf("%d steps (%d texts refused): %d lossless, of them %d proved; %d lossy; %d with dead blocks; %d unsound, %d with "
           "another life than measured\n", n.steps, n.refused, n.lossless, n.proved, n.lossy, n.dead, n.unsound, n.wrong_life);
    bool mixed = n.lossless * 10 >= n.steps * 3 && n.lossy * 10 >= n.steps * 3 && n.dead * 10 >= n.steps * 2;
    if (!mixed)
        printf("too few of a kind\n");
    return n.steps == 0 || n.unsound || n.wrong_life || n.missed * 20 > n.lossless || !mixed;
}
