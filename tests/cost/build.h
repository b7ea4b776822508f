/* build.h - small models built by hand from graph nodes, for the tests of counts.
 *
 * In:  extents.   Out: a Model with a graph, parameters, losses and outputs, as the evaluator
 *      of files would leave it. The one idea: a decoder is a few helpers over ir.h, so a test
 *      states the wiring it is about and nothing else.
 */
#ifndef VWN_TEST_COST_BUILD_H
#define VWN_TEST_COST_BUILD_H

#include "compiler/model/cost.h"

#include <stdio.h>

static inline Model *model_new(Ctx *ctx, int64_t context)
{
    Model *m = NEW(ctx->program, Model);
    m->name = name_str(ctx, "test");
    m->graph = graph_new(ctx, ctx->program);
    m->context = context;
    return m;
}

/* Later nodes and parameters belong to this module. */
__attribute__((format(printf, 2, 3))) static inline void module(Model *m, const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    m->graph->name = name_str(m->graph->ctx, text);
}

/* A parameter <module>.<name> of rank n. */
static inline Val param(Model *m, const char *name, int n, const int64_t *extent)
{
    Graph *g = m->graph;
    Param p = {.path = name_printf(g->ctx, "%s.%s", g->name, name), .elements = 1, .dead = -1};
    p.shape.rank = (uint8_t)n;
    for (int k = 0; k < n; k++) {
        p.shape.d[k] = DIM(extent[k]);
        p.elements *= extent[k];
    }
    p.value = ir_ext(g, EXT_PARAM, p.path, DT_REAL, &p.shape);
    vec_push(g->arena, &m->param, p);
    return p.value;
}
static inline Val matrix(Model *m, const char *name, int64_t in, int64_t out)
{
    return param(m, name, 2, (int64_t[]){in, out});
}
static inline Val vector(Model *m, const char *name, int64_t n) { return param(m, name, 1, &n); }

static inline const Param *find_param(const Model *m, const char *path)
{
    for (size_t i = 0; i < m->param.n; i++)
        if (!strcmp(m->param.v[i].path, path))
            return &m->param.v[i];
    printf("no parameter %s\n", path);
    static const Param none = {.path = "", .dead = -2, .elements = -2, .active = -2};
    return &none;
}

static inline void add_loss(Model *m, const char *name, Val v, bool trained)
{
    vec_push(m->graph->arena, &m->loss, (ModelLoss){name_str(m->graph->ctx, name), v, trained, NO_SPAN});
}
static inline void add_output(Model *m, const char *name, Val v)
{
    vec_push(m->graph->arena, &m->output, (ModelOutput){name_str(m->graph->ctx, name), v});
}

static inline Val input_ids(Model *m, const char *name)
{
    Shape s = {.rank = 2, .d = {DIM_B, DIM_T}};
    return ir_ext(m->graph, EXT_INPUT, name_str(m->graph->ctx, name), DT_INT, &s);
}

/* ---- layers ---- */

static inline int last_axis(const Model *m, Val x) { return shape_of(m->graph, x)->rank - 1; }
static inline int64_t width_of(const Model *m, Val x) { return shape_of(m->graph, x)->d[last_axis(m, x)].n; }
static inline Val first(Model *m, Val x, int64_t n) { return ir_slice(m->graph, x, last_axis(m, x), 0, n); }
static inline Val pad_to(Model *m, Val x, int64_t n)
{
    return ir_pad(m->graph, x, last_axis(m, x), 0, n - width_of(m, x));
}
/* x / sqrt(mean(x^2) + eps): one each for square, sum and division per element of x, three
 * more. */
static inline Val unit(Model *m, Val x)
{
    Graph *g = m->graph;
    Val mean = ir_mean(g, ir_binary(g, OP_MUL, x, x), 1u << last_axis(m, x), true);
    Val root = ir_unary(g, OP_SQRT, ir_binary(g, OP_ADD, mean, ir_fill(g, 1e-5)));
    return ir_binary(g, OP_DIV, x, root);
}
static inline Val gained(Model *m, const char *name, Val x)
{
    Val y = unit(m, x);
    return ir_binary(m->graph, OP_MUL, y, vector(m, name, width_of(m, x)));
}
static inline Val product(Model *m, Val x, const char *name, int64_t out)
{
    return ir_matmul(m->graph, x, matrix(m, name, width_of(m, x), out));
}
/* [B, T, n * k] -> [B, T, n, k] */
static inline Val split(Model *m, Val x, int64_t n)
{
    Shape s = {.rank = 4, .d = {DIM_B, DIM_T, DIM(n), DIM(width_of(m, x) / n)}};
    return ir_reshape(m->graph, x, &s);
}
/* [B, T, n, k] -> [B, T, n * k] */
static inline Val merge(Model *m, Val x)
{
    const Shape *from = shape_of(m->graph, x);
    Shape s = {.rank = 3, .d = {DIM_B, DIM_T, DIM(from->d[2].n * from->d[3].n)}};
    return ir_reshape(m->graph, x, &s);
}

typedef struct Heads {
    int64_t n, keys, size, window;
} Heads;
static inline Val attend(Model *m, Val x, Heads h, int64_t out)
{
    Graph *g = m->graph;
    Val q = split(m, product(m, x, "q.W", h.n * h.size), h.n);
    Val k = split(m, product(m, x, "k.W", h.keys * h.size), h.keys);
    Val v = split(m, product(m, x, "v.W", h.keys * h.size), h.keys);
    static const double freq[] = {1};
    q = ir_rotary(g, q, freq, h.size > 1, false);
    k = ir_rotary(g, k, freq, h.size > 1, false);
    Sdpa how = {.causal = true, .scale = 1 / (double)h.size, .window = h.window};
    return product(m, merge(m, ir_sdpa(g, q, k, v, &how)), "o.W", out);
}
static inline Val feed(Model *m, Val x, int64_t hidden, int64_t out)
{
    Graph *g = m->graph;
    Val gate = ir_unary(g, OP_SILU, product(m, x, "gate.W", hidden));
    Val up = product(m, x, "up.W", hidden);
    return product(m, ir_binary(g, OP_MUL, gate, up), "down.W", out);
}
/* Mean over all positions. */
static inline void add_next_loss(Model *m, Val logits)
{
    Val each = ir_cross_entropy(m->graph, logits, input_ids(m, "labels"), -1, 0);
    add_loss(m, "next", ir_mean(m->graph, each, 3, false), true);
    add_output(m, "logits", logits);
}

/* ---- the carried stream of Variable-Width Transformers, equation 1 ---- */

typedef struct Carried {
    int64_t d, vocab, heads, expansion;
    const int64_t *width;
    int layers;
    bool before_slice;
} Carried;

static inline Model *carried_model(Ctx *ctx, const Carried *c, int64_t context)
{
    Model *m = model_new(ctx, context);
    Graph *g = m->graph;
    int64_t stream_width = c->d;
    for (int l = 0; l < c->layers; l++)
        stream_width = c->width[l] > stream_width ? c->width[l] : stream_width;
    module(m, "embed");
    Val x = ir_gather(g, matrix(m, "E", c->vocab, c->d), input_ids(m, "tokens"));
    Val stream = pad_to(m, x, stream_width);
    for (int l = 0; l < c->layers; l++) {
        int64_t w = c->width[l];
        module(m, "layer[%d].attention", l + 1);
        x = first(m, stream, w);
        x = ir_binary(g, OP_ADD, x, attend(m, gained(m, "norm.g", x), (Heads){c->heads, c->heads, w / c->heads, 0}, w));
        module(m, "layer[%d].ffn", l + 1);
        x = ir_binary(g, OP_ADD, x, feed(m, gained(m, "norm.g", x), c->expansion * w, w));
        Val part[2] = {x, ir_slice(g, stream, 2, w, stream_width - w)};
        stream = ir_concat(g, part, 2, 2);
    }
    module(m, "head");
    int64_t last = c->width[c->layers - 1];
    x = first(m, stream, c->before_slice ? last : c->d);
    x = first(m, gained(m, "norm.g", x), c->d);
    add_next_loss(m, product(m, x, "W", c->vocab));
    return m;
}

static const int64_t widths_500m[24] = {1760, 1600, 1440, 1280, 1152, 1024, 928, 832, 768, 672, 608,  544,
                                        480,  448,  384,  352,  320,  288,  384, 512, 704, 960, 1312, 1760};

#endif
