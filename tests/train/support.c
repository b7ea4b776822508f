/* support.c - see support.h. */
#include "support.h"
#include "compiler/file/check_unit.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

void check_at(Tally *t, bool good, const char *file, int line, const char *fmt, ...)
{
    if (good) {
        t->passed++;
        return;
    }
    if (++t->failed > 40)
        return;
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "%s:%d: failed: ", file, line);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
}

int tally_end(const Tally *t, const char *what)
{
    printf("%s: %d passed, %d failed\n", what, t->passed, t->failed);
    return t->failed != 0;
}

/* ---- files ---- */

const char *scratch_folder(Ctx *ctx)
{
    char path[] = "scratch_XXXXXX";
    if (!mkdtemp(path)) {
        perror("mkdtemp");
        exit(2);
    }
    return arena_copy(ctx->program, path, strlen(path));
}

void scratch_remove(const char *folder)
{
    char command[300];
    if (strncmp(folder, "scratch_", 8) == 0 && !strchr(folder, '/')) {
        snprintf(command, sizeof command, "rm -rf ./%s", folder);
        if (system(command))
            fprintf(stderr, "%s stays\n", folder);
    }
}

void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n || fclose(f)) {
        perror(path);
        exit(2);
    }
}

char *read_file(Ctx *ctx, const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    fseek(f, 0, SEEK_END);
    long size = ftell(f);
    rewind(f);
    char *text = ctx_alloc(ctx, (size_t)size + 1);
    *n = fread(text, 1, (size_t)size, f);
    fclose(f);
    return text;
}

bool file_exists(const char *path)
{
    struct stat st;
    return !stat(path, &st);
}

void write_text_file(const char *path, size_t n)
{
    char *s = malloc(n);
    uint64_t state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        s[i] = i && (state >> 60) < 11 ? (char)('a' + (s[i - 1] - 'a' + 3) % 7) : (char)('a' + (state >> 33) % 7);
    }
    write_file(path, s, n);
    free(s);
}

/* ---- the model ---- */

static Val add_param(Model *m, const char *path, int rank, int64_t a, int64_t b, double std, bool buffer)
{
    Graph *g = m->graph;
    Arena *arena = g->arena;
    Param p = {.path = name_str(g->ctx, path),
               .active = 1,
               .lr_scale = 1,
               .decay = NAN,
               .group = name_str(g->ctx, rank > 1 ? "matrix" : "vector"),
               .buffer = buffer};
    p.shape.rank = (uint8_t)rank;
    p.shape.d[0] = DIM(a);
    p.shape.d[1] = DIM(b);
    p.elements = rank > 1 ? a * b : rank ? a : 1;
    p.init = std > 0 ? (Init){.kind = INIT_NORMAL, .a = std} : (Init){.kind = INIT_FILL, .a = -std};
    p.value = ir_ext(g, buffer ? EXT_BUFFER : EXT_PARAM, p.path, DT_REAL, &p.shape);
    vec_push(arena, &m->param, p);
    return p.value;
}

static void add_loss(Model *m, const char *name, Val v, bool trained)
{
    ModelLoss l = {.name = name_str(m->graph->ctx, name), .value = v, .trained = trained};
    vec_push(m->graph->arena, &m->loss, l);
}

static Val all_mean(Graph *g, Val x) { return ir_mean(g, x, (1u << shape_of(g, x)->rank) - 1, false); }

/* x times a dropout mask, as the language writes it: a STOP node of that kind. */
static Val dropout(Graph *g, Val x, double p)
{
    Shape s = *shape_of(g, x);
    Val keep = ir_binary(g, OP_LE, ir_fill(g, p), ir_random(g, OP_RAND, &s, name_str(g->ctx, "h")));
    Val scaled = ir_scale(g, keep, 1 / (1 - p));
    Val mask = ir_stop(g, scaled, STOP_DROPOUT);
    return ir_binary(g, OP_MUL, x, mask);
}

static Model *tiny_model(Ctx *ctx, const TinyOptions *how)
{
    Arena *a = ctx->program;
    Model *m = NEW(a, Model);
    Graph *g = m->graph = graph_new(ctx, a);
    m->name = name_str(ctx, "tiny");
    m->context = how->context;
    m->vocab = how->vocab;
    m->width = m->state_width = how->width;
    Shape bt = {.rank = 2, .d = {DIM_B, DIM_T}};
    Val tokens = ir_ext(g, EXT_INPUT, name_str(ctx, "tokens"), DT_INT, &bt);
    Val labels = ir_ext(g, EXT_INPUT, name_str(ctx, "labels"), DT_INT, &bt);
    g->name = name_str(ctx, "embed");
    Val table = add_param(m, "embed.W", 2, how->vocab, how->width, 0.3, false);
    Val x = ir_gather(g, table, tokens);
    g->name = name_str(ctx, "hidden");
    Val w1 = add_param(m, "hidden.W", 2, how->width, how->width, 0.3, false);
    Val b1 = add_param(m, "hidden.b", 1, how->width, 0, 0, false);
    Val gain = add_param(m, "hidden.gain", 0, 0, 0, -1, true);
    Val h = ir_binary(g, OP_ADD, ir_matmul(g, x, w1), b1);
    h = ir_binary(g, OP_MUL, ir_unary(g, OP_TANH, h), gain);
    if (how->dropout > 0)
        h = dropout(g, h, how->dropout);
    if (how->bad_log) { /* the logarithm of what reaches zero at step 8 */
        g->name = name_str(ctx, "broken");
        Val sink = add_param(m, "broken.b", 1, how->width, 0, -0.5, false);
        const HostExpr *part = host_op(a, HO_DIV, host_var(a, HV_STEP), host_const(a, 8), NULL);
        const HostExpr *left = host_op(a, HO_SUB, host_const(a, 1), part, NULL);
        Val low = ir_binary(g, OP_MUL, ir_binary(g, OP_MUL, sink, sink), ir_host(g, left));
        h = ir_binary(g, OP_ADD, h, ir_scale(g, ir_unary(g, OP_LOG, low), 0.01));
    }
    g->name = name_str(ctx, "head");
    Val w2 = add_param(m, "head.W", 2, how->width, how->vocab, 0.3, false);
    Val logits = ir_matmul(g, h, w2);
    Val each = ir_cross_entropy(g, logits, labels, -1, 0);
    Val valid = ir_cast(g, ir_binary(g, OP_LE, ir_int(g, 0), labels), DT_REAL);
    uint32_t both = 3;
    Val count = ir_binary(g, OP_MAX, ir_sum(g, valid, both, false), ir_fill(g, 1));
    Val next = ir_binary(g, OP_DIV, ir_sum(g, each, both, false), count);
    if (how->spike_at > 0) {
        const HostExpr *step = host_var(a, HV_STEP), *at = host_const(a, how->spike_at);
        const HostExpr *late = host_op(a, HO_LE, at, step, NULL);
        const HostExpr *factor = host_op(a, HO_IF, late, host_const(a, 1000), host_const(a, 1));
        next = ir_binary(g, OP_MUL, next, ir_host(g, factor));
    }
    add_loss(m, "next", next, true);
    add_loss(m, "size", ir_scale(g, all_mean(g, ir_binary(g, OP_MUL, h, h)), 1e-3), true);
    add_loss(m, "size", ir_scale(g, all_mean(g, ir_binary(g, OP_MUL, x, x)), 3e-3), true);
    add_loss(m, "hidden", all_mean(g, h), false);
    ModelOutput out = {name_str(ctx, "logits"), logits};
    vec_push(a, &m->output, out);
    g->name = NULL;
    return m;
}

static void constant(Arena *a, Optimizer *o, const char *name, double value)
{
    OptimizerConstant c = {name_str(arena_ctx(a), name), value};
    vec_push(a, &o->constant, c);
}

/* 1 + 0.03 times what the variable says, within bounds; 1 while it is not a number. */
static const HostExpr *near_one(Arena *a, HostVar var)
{
    const HostExpr *v = host_var(a, var), *most = host_const(a, 5);
    const HostExpr *known = host_op(a, HO_LT, v, most, NULL);
    const HostExpr *part = host_op(a, HO_IF, known, v, host_const(a, 0));
    return host_op(a, HO_ADD, host_const(a, 1), host_op(a, HO_MUL, part, host_const(a, 0.03), NULL), NULL);
}

static Train *tiny_train(Ctx *ctx, const TinyOptions *how, const Model *m)
{
    Arena *a = ctx->program;
    Train *t = NEW(a, Train);
    t->data = (DataSpec){.kind = DATA_TEXT_FILE, .path = how->text, .folder = "", .val = 0.1};
    t->tokenizer.kind = TOKENIZER_CHARS;
    t->batch_seqs = how->batch;
    t->lanes = how->lanes;
    t->micro_seqs = how->micro ? how->micro : how->batch;
    t->length_steps = how->steps;
    t->context = how->context;
    t->seed = 1337;
    t->precision = "fp32";
    t->clip = 1;
    t->eval_every = 10;
    t->eval_batches = 2;
    t->checkpoint_every = 10;
    t->checkpoint_keep = 2;
    t->log_every = 1;
    Optimizer *o = &t->optimizer;
    o->kind = name_str(ctx, how->optimizer ? how->optimizer : "adamw");
    const HostExpr *progress = host_var(a, HV_PROGRESS);
    const HostExpr *left = host_op(a, HO_SUB, host_const(a, 1.1), progress, NULL);
    o->lr = host_op(a, HO_MUL, host_const(a, how->lr > 0 ? how->lr : 0.02), left, NULL);
    /* a resumed run must know the latest losses, or its rate differs */
    o->lr = host_op(a, HO_MUL, o->lr, near_one(a, HV_TRAIN_LOSS), NULL);
    o->lr = host_op(a, HO_MUL, o->lr, near_one(a, HV_EVAL_LOSS), NULL);
    o->lr = host_op(a, HO_MUL, o->lr, near_one(a, HV_GRAD_NORM), NULL);
    constant(a, o, "beta1", 0.9);
    constant(a, o, "beta2", 0.99);
    constant(a, o, "eps", 1e-8);
    o->lr_scale = NEW_ARRAY(a, double, m->param.n);
    o->decay = NEW_ARRAY(a, double, m->param.n);
    o->frozen = NEW_ARRAY(a, bool, m->param.n);
    for (size_t i = 0; i < m->param.n; i++) {
        o->lr_scale[i] = 1;
        o->decay[i] = m->param.v[i].shape.rank > 1 ? 0.1 : 0;
    }
    return t;
}

Unit *tiny_unit(Ctx *ctx, const TinyOptions *how)
{
    Unit *u = NEW(ctx->program, Unit);
    u->ctx = ctx;
    u->path = "tiny.vwn";
    u->model = tiny_model(ctx, how);
    u->train = tiny_train(ctx, how, u->model);
    LetInfo let = {.name = name_str(ctx, "width"), .text = "8", .origin = "tiny.vwn:1:1"};
    vec_push(ctx->program, &u->let, let);
    return u;
}

int64_t tiny_batch;

static char *tiny_text(Unit *u, Arena *arena)
{
    const Train *t = u->train;
    return arena_printf(arena, "tiny %lld %lld %lld %lld %lld %s", (long long)u->model->vocab,
                        (long long)u->model->width, (long long)u->model->context, (long long)t->batch_seqs,
                        (long long)t->length_steps, t->data.path);
}

static Unit *tiny_check(Ctx *ctx, const CheckOptions *how)
{
    long long v[5];
    char path[256];
    if (sscanf(how->text, "tiny %lld %lld %lld %lld %lld %255s", &v[0], &v[1], &v[2], &v[3], &v[4], path) != 6) {
        diag_error(ctx, "E0001", NO_SPAN, "", "not a tiny model");
        return NEW(ctx->program, Unit);
    }
    TinyOptions o = {.vocab = v[0],
                     .width = v[1],
                     .context = v[2],
                     .batch = tiny_batch ? tiny_batch : v[3],
                     .steps = v[4],
                     .text = arena_copy(ctx->program, path, strlen(path))};
    return tiny_unit(ctx, &o);
}

/* What has changed cannot be told in names. */
static const char *tiny_changes(struct Session *s, const FileText *then, const FileText *now)
{
    (void)s, (void)then, (void)now;
    return NULL;
}

const Hooks tiny_hooks = {tiny_text, tiny_check, tiny_changes, "test", "test"};

vwn_context *tiny_context(bool reference, int threads)
{
    Ctx *ctx = ctx_new(NULL);
    vwn_context *v = NEW(ctx->program, vwn_context);
    v->ctx = ctx;
    v->options = (vwn_options){.reference = reference, .threads = threads};
    return v;
}

void tiny_close(vwn_context *v) { ctx_free(v->ctx); }

void text_take(void *text, const char *s, size_t n)
{
    Text *t = text;
    n = n < sizeof t->s - 1 - t->n ? n : sizeof t->s - 1 - t->n;
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
    t->pieces++;
}
