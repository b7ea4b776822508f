/* values.c - batches of the caller's, and the programs that compute values of a model for them.
 *
 * In:  tensors of the caller's, names.   Out: tensors.
 * The one idea: a program is made for the values, B and T that are asked for, and stays while it is among the last ones used.
 */
#include "hold.h"

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* ---- batches ---- */

static const HeldInput *input_named(vwn_model *v, const char *name)
{
    Buf all = buf_new(v->ctx->scratch);
    for (size_t i = 0; i < v->n_input; i++) {
        if (!strcmp(v->input[i].ext->name, name))
            return &v->input[i];
        buf_printf(&all, "%s%s", i ? ", " : "", v->input[i].ext->name);
    }
    ctx_raise(v->ctx, ST_USAGE, "the model reads no input `%.100s`; it reads %s", name, all.s);
}

static const vwn_tensor *given(const vwn_tensor *all, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(all[i].name, name))
            return &all[i];
    return NULL;
}

static _Noreturn void wrong_shape(vwn_model *v, const vwn_tensor *x, const Shape *s, int64_t B, int64_t T)
{
    Buf b = buf_new(v->ctx->scratch);
    hold_print_shape(&b, s);
    if (B)
        ctx_raise(v->ctx, ST_USAGE, "`%s` is %s with B = %lld and T = %lld, and %s was given", x->name, b.s,
                  (long long)B, (long long)T, hold_extents(v, x->rank, x->extent));
    ctx_raise(v->ctx, ST_USAGE, "`%s` is %s, and %s was given", x->name, b.s, hold_extents(v, x->rank, x->extent));
}

static void check_type(vwn_model *v, const vwn_tensor *x, DType dtype)
{
    bool integer = !strcmp(x->type, "int64"), real = !strcmp(x->type, "float32") || !strcmp(x->type, "float64");
    if (dtype == DT_INT ? !integer : !real)
        ctx_raise(v->ctx, ST_USAGE, "`%s` is of %s, and %.20s was given", x->name,
                  dtype == DT_INT ? "integers (int64)" : "real numbers (float32)", x->type);
}

static void check_shape(vwn_model *v, const vwn_tensor *x, const Shape *s, int64_t B, int64_t T)
{
    if (x->rank != s->rank)
        wrong_shape(v, x, s, 0, 0);
    for (int k = 0; k < s->rank; k++)
        if (dim_at(s->d[k], B, T) != x->extent[k])
            wrong_shape(v, x, s, B, T);
}

void hold_check_gradient(vwn_model *v, const vwn_tensor *x, const Shape *s, int64_t B, int64_t T)
{
    check_type(v, x, DT_REAL);
    check_shape(v, x, s, B, T);
}

static int64_t elements_of(const vwn_tensor *x)
{
    int64_t n = 1;
    for (int k = 0; k < x->rank; k++)
        n *= x->extent[k];
    return n;
}

static void check_ids(vwn_model *v, const vwn_tensor *x, const HeldInput *input, int64_t T)
{
    const int64_t *id = x->data;
    bool document = !strcmp(x->name, "document") && input_is_text(input->ext);
    for (int64_t i = 0; i < elements_of(x); i++) {
        int64_t most = document ? i % T : input->range.below - 1;
        bool spared = id[i] < 0 && input->range.spared && !document;
        if ((document || input->range.below) && !spared && (id[i] < 0 || id[i] > most))
            ctx_raise(v->ctx, ST_USAGE,
                      document
                          ? "`%s` has %lld as number %lld: a document begins at its position or before, at %lld at most"
                          : "`%s` has %lld as number %lld: ids are at least 0 and at most %lld",
                      x->name, (long long)id[i], (long long)i, (long long)most);
    }
}

void hold_measure_batch(vwn_model *v, const vwn_batch *batch, int64_t *B, int64_t *T)
{
    bool any_T = false;
    *B = *T = 0;
    for (size_t i = 0; i < batch->n_inputs; i++) {
        const vwn_tensor *x = &batch->input[i];
        const Ext *e = input_named(v, x->name)->ext;
        if (x->rank < 0 || x->rank > VWN_RANK_MOST || x->rank != e->shape.rank)
            wrong_shape(v, x, &e->shape, 0, 0);
        for (int k = 0; k < x->rank; k++) {
            *B = !*B && dim_eq(e->shape.d[k], DIM_B) ? x->extent[k] : *B;
            any_T |= dim_eq(e->shape.d[k], DIM_T);
            *T = !*T && dim_eq(e->shape.d[k], DIM_T) ? x->extent[k] : *T;
        }
    }
    if (!batch->n_inputs)
        ctx_raise(v->ctx, ST_USAGE, "a batch of nothing: the model reads `%s`",
                  v->n_input ? v->input[0].ext->name : "");
    if (!any_T)
        *T = v->m->context;
    if (*B < 1 || *T < 1)
        ctx_raise(v->ctx, ST_USAGE, "a batch has at least one sequence of at least one position");
    int64_t most = v->t && v->t->context > v->m->context ? v->t->context : v->m->context;
    if (*T > most)
        ctx_raise(v->ctx, ST_USAGE, "sequences have %lld positions, and the model's context is %lld", (long long)*T,
                  (long long)most);
    for (size_t i = 0; i < batch->n_inputs; i++) {
        const vwn_tensor *x = &batch->input[i];
        const HeldInput *input = input_named(v, x->name);
        if (given(batch->input, i, x->name))
            ctx_raise(v->ctx, ST_USAGE, "`%s` is given twice", x->name);
        check_type(v, x, input->ext->dtype);
        check_shape(v, x, &input->ext->shape, *B, *T);
        if (input->ext->dtype == DT_INT)
            check_ids(v, x, input, *T);
    }
}

static void upload(vwn_model *v, StoreEntry *e, const vwn_tensor *x, int64_t from, int64_t n)
{
    Store *s = v->session->store;
    Status st;
    if (e->dtype == DT_INT)
        st = store_put_i64(s, e, 0, n, (const int64_t *)x->data + from);
    else if (!strcmp(x->type, "float64"))
        st = store_put_f64(s, e, 0, n, (const double *)x->data + from);
    else
        st = store_put_f32(s, e, 0, n, (const float *)x->data + from);
    session_store_ok(v->session, st);
}

/* What was not given of a text: it is one document. */
static void upload_zeros(vwn_model *v, StoreEntry *e, int64_t n)
{
    ArenaMark mark = arena_mark(v->ctx->scratch);
    const int64_t *zero = NEW_ARRAY(v->ctx->scratch, int64_t, n);
    session_store_ok(v->session, store_put_i64(v->session->store, e, 0, n, zero));
    arena_reset(v->ctx->scratch, mark);
}

void hold_feed(vwn_model *v, Program *p, const vwn_batch *batch, int64_t first, const vwn_tensor *extra, size_t n)
{
    int64_t B, T;
    program_extents(p, &B, &T);
    const Graph *g = program_graph(p);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        if (x->kind != EXT_INPUT)
            continue;
        const vwn_tensor *from = given(batch->input, batch->n_inputs, x->name);
        StoreEntry *e = store_find(v->session->store, EXT_INPUT, x->name);
        int64_t elements = 1;
        for (int k = 0; k < x->shape.rank; k++)
            elements *= dim_at(x->shape.d[k], B, T);
        if (!from && !(from = given(extra, n, x->name)) && strcmp(x->name, "document"))
            ctx_raise(v->ctx, ST_USAGE, "the model reads `%s`, which is not given", x->name);
        if (from)
            upload(v, e, from, first * (elements_of(from) / from->extent[0]), elements);
        else
            upload_zeros(v, e, elements);
    }
}

/* ---- programs ---- */

static Graph *graph_of(vwn_model *v, HeldProgram *p, const Val *value)
{
    const Model *m = v->m;
    const bool more = p->what == HELD_MORE_GRADIENT;
    Ctx *ctx = v->ctx;
    if (p->what == HELD_GRADIENT || more) {
        Name *factor = NEW_ARRAY(p->arena, Name, p->n);
        for (size_t i = 0; i < p->n; i++)
            factor[i] = name_printf(ctx, "%s.grad", p->name[i]);
        return step_outer_gradient(m, v->t, value, factor, p->n, !more, p->arena);
    }
    Val *root = NEW_ARRAY(p->arena, Val, p->n + m->loss.n + 1), *stored = NEW_ARRAY(p->arena, Val, p->n + 1), *map;
    size_t n = 0;
    bool losses = false;
    for (size_t i = 0; i < p->n; i++) {
        losses |= !value[i];
        if (value[i])
            root[n++] = value[i];
    }
    for (size_t i = 0; losses && i < m->loss.n; i++)
        root[n++] = m->loss.v[i].value;
    Graph *g = (p->what == HELD_TRAINING_VALUES ? step_training_values : step_values)(m, root, n, &map, p->arena);
    if (losses)
        step_add_losses(g, m, map);
    for (size_t i = 0; i < p->n; i++) {
        stored[i] = value[i] ? map[value[i]] : 0;
        for (size_t k = 0; k < g->out.n && !stored[i]; k++)
            stored[i] = g->out.v[k].name == p->name[i] ? g->out.v[k].value : 0;
    }
    g->out.n = 0; /* losses that nobody asked for */
    hold_store_results(v, g, p, stored);
    return g;
}

/* What does not fit is refused before it takes anything. */
static void check_room(vwn_model *v, const Graph *g, const ProgramOptions *how)
{
    uint64_t left, need;
    Train bound = {.context = how->T, .micro_seqs = how->B};
    if (!session_room(v->session, &left) || session_memory_most(v->m, &bound) <= left ||
        (need = session_program_need(v->session, g, how)) <= left)
        return;
    ctx_raise(v->ctx, ST_ENVIRONMENT, "%lld sequences of %lld positions need %.2f GiB and %.2f are available%s",
              (long long)how->B, (long long)how->T, (double)need / GIB, (double)left / GIB,
              v->session->backend->kind->where);
}

static void drop(HeldProgram *p)
{
    if (p->program)
        program_free(p->program);
    arena_free(p->arena);
    *p = (HeldProgram){0};
}

static bool is_it(const HeldProgram *p, HeldWhat what, int64_t B, int64_t T, const Name *name, size_t n)
{
    return p->program && p->what == what && p->B == B && p->T == T && p->n == n &&
           !memcmp(p->name, name, n * sizeof *name);
}

HeldProgram *hold_program(vwn_model *v, HeldWhat what, int64_t B, int64_t T, const Name *name, const Val *value,
                          size_t n)
{
    static const char *const words[] = {"values", "values", "gradient", "gradient"};
    HeldProgram *p = &v->program[0];
    for (int i = 0; i < HELD_PROGRAMS; i++) {
        HeldProgram *x = &v->program[i];
        if (is_it(x, what, B, T, name, n)) {
            x->used = ++v->uses;
            return x;
        }
        p = x->used < p->used ? x : p;
    }
    drop(p);
    *p = (HeldProgram){.arena = arena_new(v->ctx), .what = what, .B = B, .T = T, .n = n, .used = ++v->uses};
    Name *names = NEW_ARRAY(p->arena, Name, n + 1);
    memcpy(names, name, n * sizeof *name);
    p->name = names;
    Graph *g = graph_of(v, p, value);
    const ProgramOptions how = {.name = words[what], .B = B, .T = T, .share_arena = true, .half = v->half};
    check_room(v, g, &how);
    if (what == HELD_VALUES || what == HELD_TRAINING_VALUES)
        hold_place_results(v, g, p);
    BuildReport built = {0};
    Status st = program_build(v->session->store, g, &how, &p->program, &built);
    if (st != ST_OK)
        ctx_raise(v->ctx, st, "the program of %s could not be built: %s", words[what], built.why);
    session_warn(v->session, built.note);
    return p;
}

/* ---- values ---- */

RunArgs hold_args(vwn_model *v, double *vars, bool training)
{
    if (!v->trains) {
        static const Progress none = {0};
        const Progress *p = v->source.checkpoint ? &v->source.checkpoint->progress : &none;
        progress_vars(p, (double)(p->step - p->from_step), 0, vars);
        return run_untrained(vars, 0);
    }
    train_set_vars(&v->trainer, 0);
    memcpy(vars, v->trainer.vars, HV_COUNT * sizeof *vars);
    if (!training)
        return run_untrained(vars, 0);
    return (RunArgs){vars, v->t->seed, (uint64_t)v->trainer.now.step, 0};
}

Status hold_run(vwn_model *v, const vwn_batch *batch, const char *const *node, size_t n, vwn_tensor *out)
{
    int64_t B, T;
    double vars[HV_COUNT];
    memset(out, 0, n * sizeof *out);
    Name *name = NEW_ARRAY(v->ctx->scratch, Name, n + 1);
    Val *value = NEW_ARRAY(v->ctx->scratch, Val, n + 1);
    for (size_t i = 0; i < n; i++) {
        name[i] = hold_find(v, node[i], &value[i]);
        for (size_t k = 0; k < i; k++)
            if (name[k] == name[i])
                ctx_raise(v->ctx, ST_USAGE, "`%s` is asked for twice", name[i]);
    }
    if (!n)
        ctx_raise(v->ctx, ST_USAGE, "no node is asked for");
    hold_measure_batch(v, batch, &B, &T);
    const RunArgs args = hold_args(v, vars, batch->training);
    HeldProgram *p =
        hold_program(v, batch->training && v->trains ? HELD_TRAINING_VALUES : HELD_VALUES, B, T, name, value, n);
    hold_feed(v, p->program, batch, 0, NULL, 0);
    v->trainer.feed.of = NULL; /* what it has brought is no longer there */
    hold_place_results(v, program_graph(p->program), p);
    session_run(v->session, p->program, &args);
    hold_give_results(v, p, out);
    return ST_OK;
}

/* ---- texts ---- */

static const Tokenizer *tokenizer(vwn_model *v)
{
    if (!v->tokenizer || !tokenizer_has_text(v->tokenizer))
        ctx_raise(v->ctx, ST_USAGE, "the tokenizer of the model is not known: it takes ids alone");
    return v->tokenizer;
}

Status hold_encode(vwn_model *v, const char *text, size_t n, vwn_tensor *ids)
{
    char why[WHY];
    const Tokenizer *t = tokenizer(v);
    int64_t room = (int64_t)tokenizer_room(t, n);
    hold_new(v, "tokens", DT_INT, 1, &room, ids);
    int64_t count = tokenizer_encode(t, "the text", text, n, ids->data, why);
    if (count < 0) {
        memory_release(ids->memory);
        *ids = (vwn_tensor){0};
        ctx_raise(v->ctx, ST_INPUT, "%s", why);
    }
    ids->extent[0] = count;
    return ST_OK;
}

Status hold_decode(vwn_model *v, const int64_t *id, size_t n, const vwn_writer *out)
{
    const Tokenizer *t = tokenizer(v);
    Buf b = buf_new(v->ctx->scratch);
    for (size_t i = 0; i < n; i++) {
        char few[4];
        size_t length;
        const char *bytes = id[i] >= 0 ? tokenizer_decode(t, id[i], few, &length) : NULL;
        if (!bytes)
            ctx_raise(v->ctx, ST_USAGE, "the id %lld stands for no text", (long long)id[i]);
        buf_put(&b, bytes, length);
    }
    write_text(out, b.s, b.n);
    return ST_OK;
}
