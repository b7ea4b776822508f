/* hold.c - a model is opened, described and closed; its parameters and gradients by name.
 *
 * In:  a run, or a checked file.   Out: a vwn_model.
 * The one idea: what stays open is a Session, of its own or of a Trainer, and everything else hangs on it.
 */
#include "hold.h"

#include <stdlib.h>

#include "compiler/model/optimizer.h"

/* ---- opening ---- */

static bool is_number(DType dtype) { return dtype == DT_REAL || dtype == DT_INT; }

/* Of two values with one name the first counts. */
static void add_node(vwn_model *v, Name name, Val value)
{
    Arena *a = v->session->arena;
    void **slot = map_at(&v->node_at, (uintptr_t)name);
    if (*slot || (value && !is_number((DType)node_at(v->m->graph, value)->dtype)))
        return;
    vec_push(a, &v->node, ((HeldNode){name, value}));
    *slot = (void *)(uintptr_t)v->node.n; /* and one more: 0 is none */
}

/* What a connection makes of a sublayer's result bears the name of the module that was the last. */
static void mark_connections(const Model *m, bool *connects)
{
    for (size_t i = 0; i < m->sublayer.n; i++)
        for (Val v = m->sublayer.v[i].wrote + 1; v <= m->sublayer.v[i].after; v++)
            connects[v] = true;
}

static void add_modules(vwn_model *v)
{
    const Graph *g = v->m->graph;
    bool *connects = NEW_ARRAY(v->session->arena, bool, g->node.n + 1);
    mark_connections(v->m, connects);
    Arena *a = v->session->arena;
    Map last;
    VEC(Name) module = {0};
    map_init(&last, a);
    for (Val i = 1; i < g->node.n; i++) {
        const Node *n = node_at(g, i);
        if (!n->name || !*n->name || connects[i] || n->op == OP_EXT || !is_number((DType)n->dtype))
            continue;
        void **slot = map_at(&last, (uintptr_t)n->name);
        if (!*slot)
            vec_push(a, &module, n->name);
        *slot = (void *)(uintptr_t)i;
    }
    for (size_t i = 0; i < module.n; i++)
        add_node(v, module.v[i], (Val)(uintptr_t)map_get(&last, (uintptr_t)module.v[i]));
}

static void find_nodes(vwn_model *v)
{
    const Model *m = v->m;
    Ctx *ctx = v->ctx;
    map_init(&v->node_at, v->session->arena);
    for (size_t i = 0; i < m->output.n; i++) {
        size_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += m->output.v[k].name == m->output.v[i].name;
        Name name = m->output.v[i].name;
        add_node(v, before ? name_printf(ctx, "%s#%zu", name, before + 1) : name, m->output.v[i].value);
    }
    if (m->embedded)
        add_node(v, name_str(ctx, "embedded"), m->embedded);
    if (m->opened)
        add_node(v, name_str(ctx, "opened"), m->opened);
    for (size_t i = 0; i < m->sublayer.n; i++) {
        const ModelSublayer *s = &m->sublayer.v[i];
        add_node(v, name_printf(ctx, "%s.read", s->path), s->read);
        add_node(v, name_printf(ctx, "%s.wrote", s->path), s->wrote);
        add_node(v, name_printf(ctx, "%s.state", s->path), s->after);
    }
    if (m->closed)
        add_node(v, name_str(ctx, "closed"), m->closed);
    bool trained = false;
    for (size_t i = 0; i < m->loss.n; i++) {
        const ModelLoss *l = &m->loss.v[i];
        trained |= l->trained;
        add_node(v, name_printf(ctx, "%s.%s", l->trained ? "loss" : "metric", l->name), 0);
    }
    if (trained)
        add_node(v, name_str(ctx, "loss"), 0);
    add_modules(v);
}

static void find_inputs(vwn_model *v)
{
    const Graph *g = v->m->graph;
    v->input = NEW_ARRAY(v->session->arena, HeldInput, g->ext.n + 1);
    for (size_t i = 0; i < g->ext.n; i++)
        if (g->ext.v[i].kind == EXT_INPUT)
            v->input[v->n_input++] = (HeldInput){&g->ext.v[i], model_input_range(v->m, g->ext.v[i].name)};
}

static void free_programs(void *model)
{
    vwn_model *v = model;
    for (int i = 0; i < HELD_PROGRAMS; i++) {
        if (v->program[i].program)
            program_free(v->program[i].program);
        arena_free(v->program[i].arena);
    }
}

/* Of a run, with the weights of its checkpoint. */
static void open_source(vwn_model *v, const vwn_model_options *how, const Hooks *hooks)
{
    Session *s = v->session;
    session_open(s, v->owner);
    v->source = source_open(s, how->source, false, hooks);
    v->m = v->source.unit->model;
    v->t = v->source.unit->train;
    v->tokenizer = v->source.checkpoint->meta.tokenizer;
    if (v->tokenizer)
        tokenizer_load(s, (Tokenizer *)v->tokenizer);
    session_open_backend(s);
    session_warn(s, s->note);
    session_add_params(s, v->m);
    source_load(s, &v->source, how->last);
}

static void need_model(vwn_model *v, const Unit *u, bool train)
{
    if (!u->model)
        ctx_raise(v->ctx, ST_INPUT, "the file has no `model`");
    if (train && !u->train)
        ctx_raise(v->ctx, ST_INPUT, "the file has no `train`: it says how a model is trained");
}

/* Of a file, with the weights that are drawn. */
static void open_drawn(vwn_model *v, const Unit *u)
{
    Session *s = v->session;
    need_model(v, u, false);
    v->m = u->model;
    v->t = u->train;
    session_open(s, v->owner);
    session_open_backend(s);
    session_warn(s, s->note);
    session_add_params(s, v->m);
    session_end_params(s, session_begin_params(s, v->m, v->t ? v->t->seed : 0));
}

/* A run keeps its file; without one there is none to keep. */
static char *no_text(Unit *unit, Arena *arena)
{
    (void)unit;
    return arena_copy(arena, "", 0);
}

/* The steps alone: without a run nothing of what stands between them, and the model before it grows. */
static void open_training(vwn_model *v, const vwn_model_options *how, const Hooks *hooks)
{
    Unit *u = how->unit->unit;
    Trainer *tr = &v->trainer;
    need_model(v, u, true);
    v->train = *u->train;
    v->alone = *u;
    v->alone.train = &v->train;
    v->hooks = *hooks;
    if (how->run && u->grow.n)
        ctx_raise(v->ctx, ST_USAGE, "the file grows by `%s`: steps of its first model are driven without a run alone",
                  u->grow.v[0].name);
    if (!how->run) {
        v->train.eval_every = 0;
        v->alone.grow.n = 0;
        v->hooks.resolved_text = no_text;
    }
    const char *run = how->run ? arena_copy(v->ctx->program, how->run, strlen(how->run)) : NULL;
    v->how = (vwn_train_options){.run = run, .resume = how->resume, .overwrite = how->overwrite, .dry_run = !run};
    *tr = (Trainer){.ctx = v->ctx,
                    .file = &v->alone,
                    .unit = &v->alone,
                    .how = &v->how,
                    .hooks = &v->hooks,
                    .driver.driven = true,
                    .growth.begins = true,
                    .now = progress_none,
                    .saved_at = -1,
                    .evaluated_at = -1,
                    .session = {.owner = v->owner}};
    session_open(&tr->session, v->owner);
    if (!how->run && !data_is_there(&tr->session, &v->train.data)) {
        const DataOptions drawn = {
            .spec = &v->train.data, .tokenizer = &v->train.tokenizer, .context = v->train.context, .model = u->model};
        tr->data = data_synthetic(&tr->session, &drawn);
    }
    train_open(tr);
    if (tr->over)
        ctx_raise(v->ctx, ST_USAGE, "`%s` has reached its end, and keeps no checkpoint", train_run_path(tr));
    session_warn(&tr->session, tr->session.note);
    train_begin(tr);
    v->m = tr->model;
    v->t = tr->train;
    v->tokenizer = tr->data->tokenizer;
}

Status hold_open(vwn_context *owner, const vwn_model_options *how, vwn_model **model, const Hooks *hooks)
{
    Ctx *ctx = owner->ctx;
    vwn_model *v = *model = ctx_alloc(ctx, sizeof *v);
    *v = (vwn_model){.owner = owner, .ctx = ctx, .trains = how->train, .own.owner = owner};
    v->session = v->trains ? &v->trainer.session : &v->own;
    if (how->source && (how->train || how->unit))
        ctx_raise(ctx, ST_USAGE, "a run is opened to be looked at: what is trained is a file");
    if (!how->source && (!how->unit || !how->unit->unit))
        ctx_raise(ctx, ST_USAGE, "neither a run nor a file that was checked is given");
    if (v->trains)
        open_training(v, how, hooks);
    else if (how->source)
        open_source(v, how, hooks);
    else
        open_drawn(v, how->unit->unit);
    Session *s = v->session;
    session_defer(s, free_programs, v);
    map_init(&v->memory, s->arena);
    v->half = v->t ? session_half(s, v->t) : HALF_NONE;
    find_nodes(v);
    find_inputs(v);
    return ST_OK;
}

void hold_close(vwn_model *v)
{
    const Trainer *tr = &v->trainer;
    Ctx *ctx = v->ctx;
    size_t n = v->all_memory.n;
    struct vwn_memory **memory = malloc(n * sizeof(struct vwn_memory *) + 1);
    for (size_t i = 0; memory && i < n; i++)
        memory[i] = v->all_memory.v[i]->memory;
    if (v->trains && tr->report.started && tr->run)
        train_end_event(&v->trainer, tr->now.step == tr->steps ? ST_OK : ST_INTERRUPTED);
    if (v->session->arena)
        session_close(v->session);
    for (size_t i = 0; memory && i < n; i++)
        memory_release(memory[i]);
    free(memory);
    ctx_release(ctx, v);
}

/* ---- names and shapes ---- */

Name hold_find(vwn_model *v, const char *name, Val *value)
{
    Ctx *ctx = v->ctx;
    const Graph *g = v->m->graph;
    Name is = name_str(ctx, name);
    size_t at = (size_t)(uintptr_t)map_get(&v->node_at, (uintptr_t)is);
    char *end = NULL;
    unsigned long number = *name == '%' && name[1] >= '0' && name[1] <= '9' ? strtoul(name + 1, &end, 10) : 0;
    if (at) {
        *value = v->node.v[at - 1].value;
        return is;
    }
    if (end && !*end && number > 0 && number < g->node.n) {
        if (!is_number((DType)node_at(g, (Val)number)->dtype))
            ctx_raise(ctx, ST_USAGE, "the node `%.40s` holds no numbers", name);
        *value = (Val)number;
        return is;
    }
    Name *all = NEW_ARRAY(ctx->scratch, Name, v->node.n + 1);
    for (size_t i = 0; i < v->node.n; i++)
        all[i] = v->node.v[i].name;
    Name near = nearest_name(is, all, v->node.n);
    ctx_raise(ctx, ST_USAGE, "the model has no node `%.100s`%s%s%s", name, near ? "; did you mean `" : "",
              near ? near : "", near ? "`?" : "");
}

void hold_print_shape(Buf *b, const Shape *s)
{
    buf_putc(b, '[');
    for (int i = 0; i < s->rank; i++) {
        buf_puts(b, i ? ", " : "");
        dim_print(b, s->d[i]);
    }
    buf_putc(b, ']');
}

const char *hold_extents(vwn_model *v, int rank, const int64_t *extent)
{
    Buf b = buf_new(v->ctx->scratch);
    buf_putc(&b, '[');
    for (int i = 0; i < rank; i++)
        buf_printf(&b, "%s%lld", i ? ", " : "", (long long)extent[i]);
    buf_putc(&b, ']');
    return b.s;
}

const char *hold_type(const vwn_model *v, DType dtype)
{
    return dtype == DT_INT ? "int64" : v->session->backend ? "float32" : "float64";
}

/* ---- what it is ---- */

static void put_name(Buf *b, const char *key, const char *text)
{
    buf_printf(b, "\"%s\":", key);
    buf_json_string(b, text, strlen(text));
}

/* Numbers as such, "B" and "2*T" as strings. */
static void put_shape(Buf *b, const Shape *s)
{
    buf_puts(b, ",\"shape\":[");
    for (int i = 0; i < s->rank; i++) {
        const char *quote = dim_static(s->d[i]) ? "" : "\"";
        buf_printf(b, "%s%s", i ? "," : "", quote);
        dim_print(b, s->d[i]);
        buf_puts(b, quote);
    }
    buf_putc(b, ']');
}

Status hold_describe(vwn_model *v, const vwn_writer *json)
{
    const Model *m = v->m;
    static const Shape scalar = {0};
    Buf b = buf_new(v->ctx->scratch);
    buf_putc(&b, '{');
    put_name(&b, "model", m->name ? m->name : "");
    int64_t step = v->trains ? v->trainer.now.step : v->source.checkpoint ? v->source.checkpoint->progress.step : 0;
    buf_printf(&b, ",\"context\":%lld,\"step\":%lld,\"trains\":%s,", (long long)m->context, (long long)step,
               v->trains ? "true" : "false");
    put_name(&b, "type", hold_type(v, DT_REAL));
    buf_printf(&b, ",\"text\":%s", v->tokenizer && tokenizer_has_text(v->tokenizer) ? "true" : "false");
    if (v->t)
        buf_printf(&b, ",\"batch\":%lld,\"positions\":%lld", (long long)v->t->batch_seqs, (long long)v->t->context);
    buf_puts(&b, ",\"inputs\":[");
    for (size_t i = 0; i < v->n_input; i++) {
        const HeldInput *x = &v->input[i];
        buf_puts(&b, i ? ",{" : "{");
        put_name(&b, "name", x->ext->name);
        put_shape(&b, &x->ext->shape);
        buf_putc(&b, ',');
        put_name(&b, "type", hold_type(v, x->ext->dtype));
        buf_printf(&b, ",\"below\":%lld}", (long long)x->range.below);
    }
    buf_puts(&b, "],\"nodes\":[");
    for (size_t i = 0; i < v->node.n; i++) {
        const HeldNode *x = &v->node.v[i];
        buf_puts(&b, i ? ",{" : "{");
        put_name(&b, "name", x->name);
        put_shape(&b, x->value ? shape_of(m->graph, x->value) : &scalar);
        buf_putc(&b, '}');
    }
    buf_puts(&b, "],\"parameters\":[");
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        bool learned = v->trains ? param_is_trained(m, v->t, i) : !p->buffer && !p->frozen;
        buf_puts(&b, i ? ",{" : "{");
        put_name(&b, "name", p->path);
        put_shape(&b, &p->shape);
        buf_printf(&b, ",\"learned\":%s}", learned ? "true" : "false");
    }
    buf_puts(&b, "]}\n");
    write_text(json, b.s, b.n);
    return ST_OK;
}

/* ---- parameters and gradients ---- */

static StoreEntry *entry_of(vwn_model *v, vwn_tensor_kind kind, const char *name)
{
    Ctx *ctx = v->ctx;
    Name is = name_str(ctx, name);
    Store *s = v->session->store;
    StoreEntry *e = kind == VWN_GRADIENT ? store_find(s, EXT_GRAD, is) : store_find(s, EXT_PARAM, is);
    if (!e && kind == VWN_PARAMETER)
        e = store_find(s, EXT_BUFFER, is);
    if (e)
        return e;
    if (kind == VWN_GRADIENT && !v->trains)
        ctx_raise(ctx, ST_USAGE, "the model was not opened to be trained: it has no gradients");
    Name *all = NEW_ARRAY(ctx->scratch, Name, v->m->param.n + 1);
    for (size_t i = 0; i < v->m->param.n; i++)
        all[i] = v->m->param.v[i].path;
    Name near = nearest_name(is, all, v->m->param.n);
    ctx_raise(ctx, ST_USAGE, "the model has no %s `%.100s`%s%s%s", kind == VWN_GRADIENT ? "gradient of" : "parameter",
              name, near && near != is ? "; did you mean `" : "", near && near != is ? near : "",
              near && near != is ? "`?" : "");
}

static struct vwn_memory *new_memory(vwn_model *v, uint64_t bytes)
{
    struct vwn_memory *memory = memory_new(bytes);
    if (!memory)
        ctx_raise(v->ctx, ST_ENVIRONMENT, "out of memory: %.2f GiB", (double)bytes / (1024.0 * 1024.0 * 1024.0));
    return memory;
}

static uint64_t bytes_of(const vwn_model *v, DType dtype, int64_t elements)
{
    return (uint64_t)elements * (dtype == DT_INT || !v->session->backend ? 8 : sizeof(float));
}

/* It computes in memory of the host's, which can be handed out. */
static bool is_here(const vwn_model *v) { return !v->session->backend || v->session->backend->kind->host; }

static void describe(const vwn_model *v, const StoreEntry *e, const char *name, vwn_tensor *out)
{
    *out = (vwn_tensor){.name = name, .type = hold_type(v, e->dtype), .rank = e->rank};
    memcpy(out->extent, e->d, (size_t)e->rank * sizeof *e->d);
}

void hold_new(vwn_model *v, const char *name, DType dtype, int rank, const int64_t *extent, vwn_tensor *out)
{
    StoreEntry e = {.dtype = dtype, .rank = (uint8_t)rank, .elements = 1};
    for (int i = 0; i < rank; i++)
        e.elements *= e.d[i] = extent[i];
    describe(v, &e, name, out);
    out->memory = new_memory(v, bytes_of(v, dtype, e.elements));
    out->data = memory_at(out->memory);
}

static void bring(vwn_model *v, const StoreEntry *e, void *to)
{
    Backend *b = v->session->backend;
    b->why[0] = 0;
    Status st = b->ops->download(b, to, e->memory, bytes_of(v, e->dtype, e->elements));
    if (st != ST_OK)
        ctx_raise(v->ctx, st, "%s", b->why);
}

/* `key`: the entry of a parameter or a gradient, the name of a result. */
static HeldMemory *memory_of(vwn_model *v, const void *key)
{
    void **slot = map_at(&v->memory, (uintptr_t)key);
    if (!*slot) {
        HeldMemory *h = *slot = NEW(v->session->arena, HeldMemory);
        vec_push(v->session->arena, &v->all_memory, h);
    }
    return *slot;
}

Status hold_tensor(vwn_model *v, vwn_tensor_kind kind, const char *name, vwn_tensor *out)
{
    Store *s = v->session->store;
    StoreEntry *e = entry_of(v, kind, name);
    if (!is_here(v)) {
        session_store_ok(v->session, store_settle(s));
        hold_new(v, e->name, e->dtype, e->rank, e->d, out);
        bring(v, e, out->data);
        return ST_OK;
    }
    HeldMemory *h = memory_of(v, e);
    if (!h->memory) {
        h->memory = new_memory(v, bytes_of(v, e->dtype, e->elements));
        Status st = store_place(s, e->kind, e->name, e->dtype, e->rank, e->d, memory_at(h->memory), &e);
        if (st != ST_OK) {
            memory_release(h->memory);
            h->memory = NULL;
            session_store_ok(v->session, st);
        }
    }
    describe(v, e, e->name, out);
    out->memory = memory_keep(h->memory);
    out->data = memory_at(h->memory);
    return ST_OK;
}

Status hold_put(vwn_model *v, vwn_tensor_kind kind, const vwn_tensor *numbers)
{
    StoreEntry *e = entry_of(v, kind, numbers->name);
    Store *s = v->session->store;
    bool same = numbers->rank == e->rank;
    for (int i = 0; same && i < e->rank; i++)
        same = numbers->extent[i] == e->d[i];
    if (!same)
        ctx_raise(v->ctx, ST_USAGE, "`%s` is %s, and %s was given", e->name, hold_extents(v, e->rank, e->d),
                  hold_extents(v, numbers->rank, numbers->extent));
    bool wide = !strcmp(numbers->type, "float64");
    if (!wide && strcmp(numbers->type, "float32"))
        ctx_raise(v->ctx, ST_USAGE, "`%s` is of real numbers, and %.20s was given", e->name, numbers->type);
    session_store_ok(v->session, wide ? store_put_f64(s, e, 0, e->elements, numbers->data)
                                      : store_put_f32(s, e, 0, e->elements, numbers->data));
    v->has_gradient |= kind == VWN_GRADIENT;
    return ST_OK;
}

/* ---- results ---- */

static Name result_name(vwn_model *v, const HeldProgram *p, size_t i)
{
    return is_here(v) ? name_printf(v->ctx, "held:%s", p->name[i])
                      : name_printf(v->ctx, "held:%lldx%lld:%s", (long long)p->B, (long long)p->T, p->name[i]);
}

/* The tensor of a graph that result i is stored in. */
static const Ext *result_ext(vwn_model *v, const Graph *g, const HeldProgram *p, size_t i)
{
    Name name = result_name(v, p, i);
    for (size_t k = 0; k < g->ext.n; k++)
        if (g->ext.v[k].kind == EXT_STEP && g->ext.v[k].name == name)
            return &g->ext.v[k];
    vwn_bug(v->ctx, "the graph does not store `%s`", name);
}

static int64_t extents_at(const Ext *x, const HeldProgram *p, int64_t d[MAX_RANK])
{
    int64_t elements = 1;
    for (int k = 0; k < x->shape.rank; k++)
        elements *= d[k] = dim_at(x->shape.d[k], p->B, p->T);
    return elements;
}

void hold_store_results(vwn_model *v, Graph *g, const HeldProgram *p, const Val *value)
{
    for (size_t i = 0; i < p->n; i++)
        ir_store(g, value[i], EXT_STEP, result_name(v, p, i));
}

void hold_place_results(vwn_model *v, const Graph *g, const HeldProgram *p)
{
    Store *s = v->session->store;
    int64_t d[MAX_RANK];
    for (size_t i = 0; i < p->n && is_here(v); i++) {
        const Ext *x = result_ext(v, g, p, i);
        uint64_t bytes = bytes_of(v, x->dtype, extents_at(x, p, d));
        HeldMemory *h = memory_of(v, x->name);
        if (!h->memory || !memory_is_alone(h->memory, bytes)) {
            struct vwn_memory *fresh = new_memory(v, bytes);
            memory_release(h->memory);
            h->memory = fresh;
        }
        StoreEntry *e;
        session_store_ok(v->session,
                         store_place(s, EXT_STEP, x->name, x->dtype, x->shape.rank, d, memory_at(h->memory), &e));
    }
}

void hold_give_results(vwn_model *v, const HeldProgram *p, vwn_tensor *out)
{
    const Graph *g = program_graph(p->program);
    for (size_t i = 0; i < p->n; i++) {
        const Ext *x = result_ext(v, g, p, i);
        StoreEntry *e = store_find(v->session->store, EXT_STEP, x->name);
        if (!is_here(v)) {
            hold_new(v, p->name[i], e->dtype, e->rank, e->d, &out[i]);
            bring(v, e, out[i].data);
            continue;
        }
        describe(v, e, p->name[i], &out[i]);
        out[i].memory = memory_keep(memory_of(v, x->name)->memory);
        out[i].data = memory_at(out[i].memory);
    }
}
