/* faults.c - broken graphs, damaged texts and failing allocations.
 *
 * In:  sound graphs, then each with one planted fault.
 * Out: checks that the verifier finds every one, that damaged text gives diagnostics or a sound
 *      graph, and that the n-th allocation may fail for every n without a leak.
 * The one idea: a fault is one changed field or byte; whatever accepts it must be able to say
 * why.
 * When: quick.
 */
#include "compiler/pass/simplify.h"
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void silent(Ctx *ctx, const char *text) { (void)ctx, (void)text; }

/* ---- planted faults ---- */

static Val find_op(const Graph *g, Op op)
{
    for (Val v = 1; v < g->node.n; v++)
        if (node_at(g, v)->op == op)
            return v;
    printf("the sound graph has no %s\n", op_info(op)->name);
    exit(1);
}

static Node *first(Graph *g, Op op) { return node_at(g, find_op(g, op)); }

static Node *last(Graph *g, Op op)
{
    Val v = (Val)g->node.n - 1;
    while (v > 1 && node_at(g, v)->op != op)
        v--;
    return node_at(g, v);
}

typedef void Fault(Graph *g);
#define FAULT(id, ...)                                                                                                 \
    static void id(Graph *g) { __VA_ARGS__; }
FAULT(no_such_op, first(g, OP_EXP)->op = OP_COUNT)
FAULT(op_none, first(g, OP_EXP)->op = OP_NONE)
FAULT(other_op, first(g, OP_SUM)->op = OP_MATMUL)
FAULT(input_zero, first(g, OP_EXP)->in[0] = 0)
FAULT(input_after, first(g, OP_EXP)->in[0] = find_op(g, OP_EXP))
FAULT(input_outside, first(g, OP_EXP)->in[0] = 1000000)
FAULT(inputs_missing, first(g, OP_MUL)->n_in = 1)
FAULT(shape_wrong, first(g, OP_EXP)->shape.d[0] = DIM(99))
FAULT(shape_negative, first(g, OP_RESHAPE)->shape.d[0] = DIM(-1))
FAULT(rank_wrong, first(g, OP_EXP)->shape.rank++)
FAULT(rank_huge, first(g, OP_EXP)->shape.rank = 200)
FAULT(dtype_wrong, first(g, OP_EXP)->dtype = DT_INT)
FAULT(input_dtype, first(g, OP_EXP)->in[0] = find_op(g, OP_IOTA))
FAULT(reshape_size, first(g, OP_RESHAPE)->shape.d[0].n++)
FAULT(reshape_powers, first(g, OP_RESHAPE)->shape.d[0].t++)
FAULT(broadcast_axis, first(g, OP_BROADCAST)->shape = bench_shape(2, DIM(3), DIM(3)))
FAULT(axes_outside, first(g, OP_SUM)->a.axes = 1u << 9)
FAULT(axes_none, first(g, OP_SUM)->a.axes = 0)
FAULT(slice_outside, first(g, OP_SLICE)->a.j = 100)
FAULT(slice_negative, first(g, OP_SLICE)->a.j = -1)
FAULT(slice_axis, first(g, OP_SLICE)->a.i = 7)
FAULT(pad_negative, first(g, OP_PAD)->a.j = -1)
FAULT(concat_axis, first(g, OP_CONCAT)->a.i = -1)
FAULT(shift_axis, first(g, OP_SHIFT)->a.i = 5)
FAULT(permute_length, first(g, OP_PERMUTE)->a.n = 1)
FAULT(permute_twice, ((double *)(uintptr_t)first(g, OP_PERMUTE)->a.data)[0] = 0)
FAULT(permute_nan, ((double *)(uintptr_t)first(g, OP_PERMUTE)->a.data)[0] = NAN)
FAULT(matmul_flags, first(g, OP_MATMUL)->a.i = 8)
FAULT(matmul_flag, first(g, OP_MATMUL)->a.i = 1)
FAULT(ext_outside, first(g, OP_EXT)->a.i = 99)
FAULT(ext_shape, g->ext.v[0].shape.d[0] = DIM(7))
FAULT(ext_dtype, g->ext.v[0].dtype = DT_INT)
FAULT(ext_twice, g->ext.v[1] = g->ext.v[0])
FAULT(host_outside, first(g, OP_HOST)->a.i = 1)
FAULT(host_missing, g->host.v[0] = NULL)
FAULT(const_length, first(g, OP_CONST)->a.n--)
FAULT(const_data, first(g, OP_CONST)->a.data = NULL)
FAULT(fill_integer, first(g, OP_FILL)->a.j = 2)
FAULT(iota_axis, first(g, OP_IOTA)->a.i = 3)
FAULT(site_missing, first(g, OP_RAND)->a.site = NULL)
FAULT(unused_x, first(g, OP_EXP)->a.x = 1)
FAULT(unused_i, first(g, OP_EXP)->a.i = 1)
FAULT(unused_axes, first(g, OP_EXP)->a.axes = 1)
FAULT(unused_dim, first(g, OP_EXP)->a.dim = DIM_B)
FAULT(heads, first(g, OP_SDPA)->in[0] = first(g, OP_SDPA)->in[1])
FAULT(rate, first(g, OP_SDPA)->a.z = 1)
FAULT(window, first(g, OP_SDPA)->a.j = -1)
FAULT(causal_word, first(g, OP_SDPA)->a.i = 2)
FAULT(causal_negative, first(g, OP_SDPA)->a.i = -1)
FAULT(rate_negative, first(g, OP_SDPA)->a.z = -0.1; first(g, OP_SDPA)->a.site = "drop")
FAULT(rate_nan, first(g, OP_SDPA)->a.z = NAN; first(g, OP_SDPA)->a.site = "drop")
FAULT(rate_site, first(g, OP_SDPA)->a.z = 0.1)
FAULT(softcap_negative, first(g, OP_SDPA)->a.y = -1)
FAULT(softcap_nan, first(g, OP_SDPA)->a.y = NAN)
FAULT(grad_rate, first(g, OP_SDPA_GRAD)->a.z = 1)
FAULT(grad_window, first(g, OP_SDPA_GRAD)->a.j = -1)
FAULT(grad_softcap, first(g, OP_SDPA_GRAD)->a.y = -1)
FAULT(grad_inputs, first(g, OP_SDPA_GRAD)->n_in = 5)
FAULT(grad_out, first(g, OP_SDPA_GRAD)->in[3] = first(g, OP_SDPA_GRAD)->in[4])
FAULT(grad_lse, first(g, OP_SDPA_GRAD)->in[4] = first(g, OP_SDPA_GRAD)->in[3])
FAULT(grad_dout, first(g, OP_SDPA_GRAD)->in[5] = first(g, OP_SDPA_GRAD)->in[4])
FAULT(put_start, first(g, OP_DYNAMIC_UPDATE_SLICE)->in[2] = find_op(g, OP_EXP))
FAULT(put_marks, first(g, OP_DYNAMIC_UPDATE_SLICE)->in[3] = first(g, OP_DYNAMIC_UPDATE_SLICE)->in[0])
FAULT(put_rows, first(g, OP_DYNAMIC_UPDATE_SLICE)->in[1] = find_op(g, OP_EXP))
FAULT(take_start, first(g, OP_DYNAMIC_SLICE)->in[1] = find_op(g, OP_DYNAMIC_UPDATE_SLICE))
FAULT(take_shape, first(g, OP_DYNAMIC_SLICE)->shape.d[2] = DIM(9))
FAULT(query_position, last(g, OP_SDPA)->in[3] = find_op(g, OP_EXP))
FAULT(query_dropout, last(g, OP_SDPA)->a.z = 0.5; last(g, OP_SDPA)->a.site = "drop")
FAULT(query_inputs, last(g, OP_SDPA)->n_in = 2)
FAULT(aux_outside, first(g, OP_AUX)->a.i = 1)
FAULT(aux_of_none, first(g, OP_AUX)->in[0] = find_op(g, OP_EXP))
FAULT(top_k_many, first(g, OP_TOP_K)->a.j = 50)
FAULT(pick_real, first(g, OP_PICK)->in[1] = first(g, OP_PICK)->in[0])
FAULT(round_type, first(g, OP_ROUND_TO)->a.i = 5)
FAULT(out_zero, g->out.v[0].value = 0)
FAULT(out_outside, g->out.v[0].value = 1000000)
FAULT(out_nameless, g->out.v[0].name = NULL)
FAULT(store_outside, g->out.v[1].ext = 99)
FAULT(store_shape, g->out.v[1].value = find_op(g, OP_SUM))

static const struct {
    const char *name;
    Fault *plant;
} faults[] = {
#define F(id)                                                                                                          \
    {                                                                                                                  \
#id, id                                                                                                        \
    }
    F(no_such_op),       F(op_none),         F(other_op),       F(input_zero),     F(input_after),    F(input_outside),
    F(inputs_missing),   F(shape_wrong),     F(shape_negative), F(rank_wrong),     F(rank_huge),      F(dtype_wrong),
    F(input_dtype),      F(reshape_size),    F(reshape_powers), F(broadcast_axis), F(axes_outside),   F(axes_none),
    F(slice_outside),    F(slice_negative),  F(slice_axis),     F(pad_negative),   F(concat_axis),    F(shift_axis),
    F(permute_length),   F(permute_twice),   F(permute_nan),    F(matmul_flags),   F(matmul_flag),    F(ext_outside),
    F(ext_shape),        F(ext_dtype),       F(ext_twice),      F(host_outside),   F(host_missing),   F(const_length),
    F(const_data),       F(fill_integer),    F(iota_axis),      F(site_missing),   F(unused_x),       F(unused_i),
    F(unused_axes),      F(unused_dim),      F(heads),          F(rate),           F(window),         F(aux_outside),
    F(aux_of_none),      F(top_k_many),      F(pick_real),      F(round_type),     F(out_zero),       F(out_outside),
    F(out_nameless),     F(store_outside),   F(store_shape),    F(put_start),      F(put_marks),      F(put_rows),
    F(causal_word),      F(causal_negative), F(rate_negative),  F(rate_nan),       F(rate_site),      F(grad_rate),
    F(grad_window),      F(grad_softcap),    F(grad_inputs),    F(grad_out),       F(grad_lse),       F(grad_dout),
    F(softcap_negative), F(softcap_nan),     F(take_start),     F(take_shape),     F(query_position), F(query_dropout),
    F(query_inputs),
};

/* A graph with at least one node of every operator that a fault is planted in. */
static void sound_graph(Bench *b)
{
    Graph *g = b->g;
    Shape s = bench_shape(2, DIM(3), DIM(4)), square = bench_shape(2, DIM(4), DIM(4));
    Shape row = bench_shape(1, DIM(4)), flat = bench_shape(1, DIM(12));
    Val x = bench_param(b, &s, 0.5, 2), w = bench_param(b, &square, -1, 1);
    Val y = ir_matmul(g, ir_unary(g, OP_EXP, x), w);
    y = ir_binary(g, OP_MUL, y, ir_const(g, &row, (double[]){1, 2, 3, 5}));
    y = ir_binary(g, OP_MUL, y, ir_host(g, host_var(g->arena, HV_STEP)));
    y = ir_binary(g, OP_ADD, y, ir_random(g, OP_RAND, &s, bench_name(b, "noise")));
    y = ir_binary(g, OP_ADD, y, ir_fill(g, 0.5));
    y = ir_node(g, OP_ROUND_TO, &y, 1, &(Attr){.i = 16}, NULL);
    Val p = ir_pick(g, y, ir_top_k(g, y, 2));
    Val i = ir_cast(g, ir_iota(g, &s, 1), DT_REAL);
    Val z = ir_pad(g, ir_slice(g, ir_binary(g, OP_ADD, y, i), 1, 1, 2), 1, 1, 1);
    z = ir_shift(g, z, 0, 1, 0);
    Val joined = ir_concat(g, (Val[]){z, p}, 2, 1);
    Val turned = ir_permute(g, joined, (int[]){1, 0});
    Shape heads = bench_shape(4, DIM(1), DIM(3), DIM(2), DIM(2));
    Shape keys = bench_shape(4, DIM(1), DIM(6), DIM(1), DIM(2));
    Val q = ir_reshape(g, x, &heads), k = ir_reshape(g, y, &keys);
    Val a = ir_sdpa(g, q, k, k, &(Sdpa){.scale = 1});
    Val lse = ir_op(g, OP_AUX, a, 0, 0, (Attr){0}, NULL);
    Val loss = ir_sum(g, turned, 3, false);
    loss = ir_binary(g, OP_ADD, loss, ir_sum(g, ir_reshape(g, a, &flat), 1, false));
    loss = ir_binary(g, OP_ADD, loss, ir_sum(g, lse, 7, false));
    Val dq = ir_node(g, OP_SDPA_GRAD, (Val[]){q, k, k, a, lse, a}, 6, &node_at(g, a)->a, NULL);
    loss = ir_binary(g, OP_ADD, loss, ir_sum(g, ir_reshape(g, dq, &flat), 1, false));
    ir_output(g, bench_name(b, "loss"), loss);
    ir_store(g, ir_scale(g, x, 0.5), EXT_PARAM, g->ext.v[0].name);
    Shape table = bench_shape(3, DIM(1), DIM(3), DIM(4)), one = bench_shape(1, DIM(1));
    Val rows = ir_slice(g, ir_reshape(g, x, &table), 1, 0, 2), start = ir_broadcast(g, ir_int(g, 1), &one);
    Val all = ir_put(g, ir_reshape(g, y, &table), rows, start, ir_iota(g, &one, 0));
    ir_output(g, bench_name(b, "taken"), ir_take(g, all, start, DIM(2), 0));
    Sdpa how = {.scale = 1, .first = start};
    ir_output(g, bench_name(b, "later"), ir_sdpa(g, q, k, k, &how));
}

static bool verifies(Bench *b, const Graph *g)
{
    CtxGuard guard;
    if (CTX_TRY(b->ctx, &guard)) {
        graph_verify(g);
        ctx_leave(b->ctx, &guard);
        return true;
    }
    return false;
}

static void planted_faults(Tally *t)
{
    for (size_t k = 0; k < COUNT_OF(faults); k++) {
        Bench *b = bench_new();
        b->ctx->on_bug = silent;
        sound_graph(b);
        check(t, verifies(b, b->g), "the sound graph is refused: %s", b->ctx->message);
        faults[k].plant(b->g);
        bool found = !verifies(b, b->g);
        check(t, found, "fault %s is not found", faults[k].name);
        check(t, !found || (b->ctx->raised == ST_BUG && b->ctx->message[0]), "%s: no message", faults[k].name);
        bench_free(b);
    }
}

static bool makes(Bench *b, bool pad, Val x, int axis)
{
    CtxGuard guard;
    if (!CTX_TRY(b->ctx, &guard))
        return false;
    (void)(pad ? ir_pad(b->g, x, axis, 1, 1) : ir_slice(b->g, x, axis, 1, 1));
    ctx_leave(b->ctx, &guard);
    return true;
}

/* Functions that make nodes along an axis refuse one that is not there, on both sides. */
static void axes_of_makers(Tally *t)
{
    for (int pad = 0; pad < 2; pad++)
        for (int axis = -1; axis <= 2; axis++) {
            Bench *b = bench_new();
            b->ctx->on_bug = silent;
            Shape s = bench_shape(2, DIM(3), DIM(4));
            bool made = makes(b, pad, bench_param(b, &s, 0.5, 2), axis), there = axis == 0 || axis == 1;
            bool said = there || (b->ctx->raised == ST_BUG && strstr(b->ctx->message, "along axis"));
            check(t, made == there && said, "%s along axis %d of two: %s", pad ? "pad" : "slice", axis,
                  b->ctx->message);
            bench_free(b);
        }
}

/* A number that an operator has no use for is refused, in every node of the sound graph, of every field by itself. */
static void unused_fields(Tally *t)
{
    static double one = 1;
    static const struct {
        char letter; /* of ops.def */
        Attr more;
    } fields[] = {{'x', {.x = 1}},       {'y', {.y = 1}},          {'z', {.z = 1}},          {'i', {.i = 1}},
                  {'j', {.j = 1}},       {'A', {.axes = 1}},       {'K', {.site = "s"}},     {'T', {.n = 1}},
                  {'T', {.data = &one}}, {'D', {.dim = {.n = 1}}}, {'D', {.dim = {.b = 1}}}, {'D', {.dim = {.t = 1}}}};
    size_t tried = 0;
    for (size_t k = 0; k < COUNT_OF(fields); k++) {
        Bench *b = bench_new();
        b->ctx->on_bug = silent;
        sound_graph(b);
        for (Val v = 1; v < b->g->node.n; v++) {
            Node *n = node_at(b->g, v);
            const Attr was = n->a, *more = &fields[k].more;
            if (op_uses((Op)n->op, fields[k].letter))
                continue;
            n->a.x += more->x, n->a.y += more->y, n->a.z += more->z;
            n->a.i += more->i, n->a.j += more->j, n->a.axes |= more->axes;
            n->a.site = more->site ? more->site : was.site;
            n->a.n += more->n, n->a.data = more->data ? more->data : was.data;
            n->a.dim.n += more->dim.n, n->a.dim.b += more->dim.b, n->a.dim.t += more->dim.t;
            tried++;
            check(t, !verifies(b, b->g), "%%%u: %s takes field %zu, a %c", (unsigned)v, op_info((Op)n->op)->name, k,
                  fields[k].letter);
            n->a = was;
        }
        check(t, verifies(b, b->g), "the sound graph is refused: %s", b->ctx->message);
        bench_free(b);
    }
    check(t, tried > 200, "only %zu fields are not used", tried);
}

/* ---- damaged text ---- */

/* true when the text read; whatever reads must be a sound graph that prints. */
static bool try_text(Tally *t, const char *text, size_t n)
{
    Bench *b = bench_new();
    b->ctx->on_bug = silent;
    volatile bool sound = true, there = false;
    CtxGuard guard;
    if (CTX_TRY(b->ctx, &guard)) {
        uint32_t file = source_add(b->ctx, "damaged.ir", text, n);
        Graph *g = graph_read(b->ctx, b->ctx->program, file);
        there = g != NULL;
        sound = g || diag_errors(b->ctx) > 0;
        if (g) {
            graph_verify(g);
            const char *dump = bench_dump(b, g);
            Graph *again = bench_read(b, dump);
            sound = again && !strcmp(dump, bench_dump(b, again));
        }
        ctx_leave(b->ctx, &guard);
    } else {
        sound = false;
    }
    check(t, sound, "damaged text: %s", b->ctx->message);
    bench_free(b);
    return there;
}

static void damaged_text(Tally *t, int count)
{
    Bench *b = bench_new();
    sound_graph(b);
    const char *text = bench_dump(b, b->g);
    size_t n = strlen(text), read = 0;
    check(t, try_text(t, text, n), "the sound text does not read");
    char *copy = malloc(n + 2);
    static const char swap[] = "%=:[]{},\"#*BT^ 0123456789-.einxyj\n\\\x01";
    for (int k = 0; k < count; k++) {
        memcpy(copy, text, n + 1);
        size_t at = bench_bits(b) % n, len = n;
        int kind = bench_choice(b, 4);
        if (kind == 0) {
            copy[at] = swap[bench_bits(b) % (sizeof swap - 1)];
        } else if (kind == 1) {
            memmove(copy + at, copy + at + 1, n - at);
            len--;
        } else if (kind == 2) {
            len = at;
        } else {
            memmove(copy + at + 1, copy + at, n - at);
            copy[at] = swap[bench_bits(b) % (sizeof swap - 1)];
            len++;
        }
        read += try_text(t, copy, len);
    }
    printf("damaged texts: %d, of which %zu still read\n", count, read);
    free(copy);
    bench_free(b);
}

static void wrong_lines(Tally *t)
{
    static const struct {
        const char *line, *code;
    } cases[] = {
        {"%1 = exp : real []\n", "E0904"},
        {"%1 = fill x=1 : real [3]\n", "E0904"},
        {"%1 = fill x=1 : int []\n", "E0904"},
        {"%2 = fill x=1 : real []\n", "E0905"},
        {"%1 = exp %1 : real []\n", "E0905"},
        {"%1 = exp %7 : real []\n", "E0905"},
        {"%1 = expo : real []\n", "E0903"},
        {"%1 = fill q=1 : real []\n", "E0903"},
        {"%1 = fill x=1 : float []\n", "E0903"},
        {"%1 = fill x= : real []\n", "E0902"},
        {"%1 = fill x=1 : real [\n", "E0902"},
        {"%1 = fill x=1 real []\n", "E0902"},
        {"%1 = rand site=\"a : real []\n", "E0902"},
        {"%1 = rand : real []\n", "E0904"},
        {"%1 = rand site=\"a\" : real [9007199254740992, 4]\n", "E0904"},
        {"%1 = rand site=\"a\" : real [1, 1, 1, 1, 1, 1, 1, 1, 1]\n", "E0902"},
        {"%1 = rand site=\"a\" : real [B^99]\n", "E0904"},
        {"%1 = iota i=99999999999999999999 : int [3]\n", "E0902"},
        {"%1 = ext i=0 : real []\n", "E0904"},
        {"ext 0 weight real [] \"a\"\n", "E0903"},
        {"ext 1 param real [] \"a\"\n", "E0905"},
        {"ext 0 param real [] \"a\"\next 1 param real [] \"a\"\n", "E0905"},
        {"host 0 (step + )\n", "E0902"},
        {"out \"loss\" %1\n", "E0905"},
        {"%1 = fill x=1 : real []\nstore \"a\" %1 ext=0\n", "E0904"},
        {"hello\n", "E0902"},
    };
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        Bench *b = bench_new();
        const char *text = arena_printf(b->ctx->program, "vwn graph 1\n%s", cases[k].line);
        Graph *g = bench_read(b, text);
        const char *code = diag_count(b->ctx) ? diag_get(b->ctx, 0)->code : "none";
        check(t, !g && !strcmp(code, cases[k].code), "%s gives %s", cases[k].line, code);
        bench_free(b);
    }
    Bench *b = bench_new();
    Graph *g = bench_read(b, "digraph {}\n");
    check(t, !g && !strcmp(diag_get(b->ctx, 0)->code, "E0901"), "another text is read");
    bench_free(b);
}

/* What a comment says of a node is its module and its place, as they were printed; what is no place stays a name. */
static void comments(Tally *t)
{
    static const struct {
        const char *text;
        uint32_t line, column; /* 0: no place */
    } cases[] = {
        {"layer[1].mlp dir/gpt.vwn:1207:35", 1207, 35},
        {"gpt.vwn:7:5", 7, 5},
        {"a gpt.vwn:999999999:123456789", 999999999, 123456789},
        {"a gpt.vwn:9999999999:5", 0, 0},
        {"a gpt.vwn:7:5x", 0, 0},
        {"a gpt.vwn:07:5", 0, 0},
        {"a gpt.vwn:0:5", 0, 0},
        {"a gpt.vwn:7", 0, 0},
        {"a gpt.vwn:7:", 0, 0},
        {"only.a.name", 0, 0},
    };
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        Bench *b = bench_new();
        const char *line = arena_printf(b->ctx->program, "%%1 = fill x=1 : real []  # %s\n", cases[k].text);
        Graph *g = bench_read(b, arena_printf(b->ctx->program, "vwn graph 1\n%s", line));
        const char *dump = g ? bench_dump(b, g) : "nothing";
        check(t, g && strstr(dump, line), "%s is printed as %s", line, dump);
        Span span = g ? node_at(g, 1)->span : NO_SPAN;
        LineCol at = span.file ? source_position(b->ctx, span.file, span.lo) : (LineCol){0};
        check(t, at.line == cases[k].line && at.column == cases[k].column, "%s is at %u:%u", line, at.line, at.column);
        bench_free(b);
    }
}

/* ---- failing allocations ---- */

typedef struct Failing {
    size_t left, live;
} Failing;

static void *failing_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    Failing *f = user;
    (void)old_size;
    if (new_size == 0) {
        f->live -= p != NULL;
        free(p);
        return NULL;
    }
    if (f->left == 0)
        return NULL;
    f->left--;
    f->live += p == NULL;
    return realloc(p, new_size);
}

static void whole_way(Ctx *ctx)
{
    Bench b = {.ctx = ctx, .g = graph_new(ctx, arena_new(ctx)), .B = 2, .T = 3, .seed = 5};
    Val loss = bench_decoder(&b, 1, 4, 2, 5);
    Val *d = NEW_ARRAY(ctx->program, Val, b.params.n);
    graph_gradient(b.g, loss, b.params.v, b.params.n, d);
    for (size_t p = 0; p < b.params.n; p++)
        ir_output(b.g, name_printf(ctx, "d%zu", p), d[p]);
    Graph *g = graph_simplify(b.g, arena_new(ctx));
    Graph *again = bench_read(&b, bench_dump(&b, g));
    Tensor **results = NEW_ARRAY(ctx->program, Tensor *, again->out.n);
    RefRun run = {b.B, b.T, 1, 1, NULL, b.bind.v, b.bind.n, 0};
    ref_evaluate(again, arena_new(ctx), &run, results);
}

/* false once nothing fails any more */
static bool fail_at(Tally *t, size_t n)
{
    Failing f = {.left = n};
    Ctx *ctx = ctx_new(&(Allocator){failing_resize, &f});
    volatile bool failed = !ctx;
    if (ctx) {
        CtxGuard guard;
        if (CTX_TRY(ctx, &guard)) {
            whole_way(ctx);
            ctx_leave(ctx, &guard);
        } else {
            failed = true;
            check(t, ctx->raised == ST_ENVIRONMENT, "allocation %zu: status %d (%s)", n, (int)ctx->raised,
                  ctx->message);
        }
        ctx_free(ctx);
    }
    check(t, f.live == 0, "allocation %zu: %zu blocks are left", n, f.live);
    return failed;
}

static void failing_allocations(Tally *t)
{
    size_t n = 0;
    while (fail_at(t, n))
        n++;
    printf("failing allocations: %zu places\n", n);
    check(t, n > 100, "only %zu allocations", n);
}

int main(int argc, char **argv)
{
    Tally t = {0};
    planted_faults(&t);
    unused_fields(&t);
    axes_of_makers(&t);
    wrong_lines(&t);
    comments(&t);
    damaged_text(&t, argc > 1 ? atoi(argv[1]) : 5000);
    failing_allocations(&t);
    return tally_end(&t, "faults");
}
