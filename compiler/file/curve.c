/* curve.c - see curve.h. */
#include "curve.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "check_train.h"

static const char *const flows[] = {"reads", "writes", "params"};
enum { READS, WRITES, PARAMS };

typedef struct Place { /* of a module or a node that a pattern matches */
    Name path;
    double index[4]; /* what its first [*] stand for */
    double value;    /* NaN: no number */
} Place;
typedef VEC(Place) Places;

/* ---- over depth ---- */

static int by_index(const void *a, const void *b)
{
    const Place *x = a, *y = b;
    for (int k = 0; k < 4; k++)
        if (x->index[k] != y->index[k])
            return x->index[k] < y->index[k] ? -1 : 1;
    return strcmp(x->path, y->path);
}

Name path_starred(Ctx *ctx, const char *path)
{
    Buf b = buf_new(ctx->scratch);
    for (; *path; path++) {
        buf_putc(&b, *path);
        if (*path == '[') {
            buf_puts(&b, "*]");
            path = strchr(path, ']');
            if (!path)
                break;
        }
    }
    return name_str(ctx, b.s);
}

/* A key that is no number, `layer["a"]`, counts as the place among those found. */
static void add_place(Unit *u, Places *out, Map *seen, const char *pattern, Name path)
{
    if (!path_matches(pattern, path) || *map_at(seen, (uintptr_t)path))
        return;
    *map_at(seen, (uintptr_t)path) = out;
    Place p = {.path = path, .value = NAN};
    int n = 0;
    for (const char *s = path; (s = strchr(s, '[')) && n < 4; s++) {
        char *end;
        double x = strtod(s + 1, &end);
        p.index[n++] = *end == ']' ? x : (double)out->n + 1;
    }
    vec_push(u->ctx->scratch, out, p);
}

/* Modules and places of the model that the pattern matches, in the order of their indices. */
static Places places_of(Unit *u, const char *pattern)
{
    Places out = {0};
    Map seen;
    const Builder *b = u->file->built;
    map_init(&seen, u->ctx->scratch);
    const Map *in[] = {&b->scopes, &b->exports};
    for (size_t k = 0; k < COUNT_OF(in); k++)
        for (size_t i = 0; i < in[k]->cap; i++)
            if (in[k]->key[i])
                add_place(u, &out, &seen, pattern, (Name)in[k]->key[i]);
    if (out.n)
        qsort(out.v, out.n, sizeof *out.v, by_index);
    return out;
}

/* What a name is at a place: in the body of the block there, else in its scope; false: nothing. */
static bool value_at(Unit *u, Name path, Name attr, Value *out)
{
    Eval *ev = u->file->ev;
    Builder *b = u->file->built;
    Env *env = map_get(&b->exports, (uintptr_t)path);
    Scope *scope = map_get(&b->scopes, (uintptr_t)path);
    Binding *bd = env ? env_find_local(env, attr) : NULL;
    size_t before = diag_count(ev->ctx);
    bool found = bd != NULL;
    ev->build = b;
    *out = bd ? binding_get(ev, bd, scope) : scope ? scope_value(ev, scope, attr, &found) : v_none();
    ev->build = NULL;
    diag_truncate(ev->ctx, before);
    return found;
}

/* The number that it is; NaN: none. */
static double number_at(Unit *u, Name path, Name attr)
{
    Value v;
    bool found = value_at(u, path, attr, &v);
    if (found && v.kind == V_DIM && dim_static(v.dim))
        return (double)v.dim.n;
    return found && (v.kind == V_NUM || v.kind == V_QTY) ? v.num : NAN;
}

double place_number(Unit *u, const char *path, const char *attr)
{
    Value v;
    if (!u->file->built)
        return NAN;
    double x = number_at(u, name_str(u->ctx, path), name_str(u->ctx, attr));
    bool truth = isnan(x) && value_at(u, name_str(u->ctx, path), name_str(u->ctx, attr), &v) && v.kind == V_BOOL;
    return truth ? v.num : x;
}

double let_number(Unit *u, const char *name)
{
    Binding *b = map_get(&u->file->names, (uintptr_t)name_str(u->ctx, name));
    size_t before = diag_count(u->ctx);
    Value v = b && b->is_let ? binding_get(u->file->ev, b, NULL) : v_none();
    diag_truncate(u->ctx, before);
    return v.kind == V_NUM ? v.num : NAN;
}

const char *place_function(Unit *u, const char *path, const char *attr)
{
    Value v;
    bool found = u->file->built && value_at(u, name_str(u->ctx, path), name_str(u->ctx, attr), &v);
    return found && v.kind == V_FN ? v.prim->name : NULL;
}

/* What lies at places: learnable weights below them, or coordinates per position of the values that come in from outside, each
 * once, or are read outside. One walk over the graph for all places: nodes find theirs by name. */
typedef struct Crossing {
    const Graph *g;
    Places *at;
    Map place; /* a node's name -> its place + 1; places do not overlap where a pattern is one of modules beside each other */
    Map seen;
} Crossing;

static size_t place_of(Crossing *c, Val v)
{
    Name name = node_at(c->g, v)->name;
    if (!name)
        return 0;
    void **slot = map_at(&c->place, (uintptr_t)name);
    if (!*slot) {
        size_t found = 1;
        for (size_t i = 0; i < c->at->n && found == 1; i++)
            found = path_below(name, c->at->v[i].path) ? i + 2 : 1;
        *slot = (void *)(uintptr_t)found;
    }
    return (size_t)(uintptr_t)*slot - 1;
}

static void cross(Crossing *c, size_t place, Val v)
{
    const Shape *s = shape_of(c->g, v);
    Place *p = &c->at->v[place - 1];
    bool positions = false;
    for (int k = 0; k < s->rank; k++)
        positions |= !dim_static(s->d[k]);
    void **slot = map_at(&c->seen, ((uintptr_t)place << 32 | v) + 1);
    if (positions && node_at(c->g, v)->dtype == DT_REAL && !*slot)
        p->value += (double)coordinates(s);
    *slot = c;
}

static void count_flow(Unit *u, Places *at, int what)
{
    const Model *m = u->model;
    Crossing c = {.g = m->graph, .at = at};
    map_init(&c.place, u->ctx->scratch);
    map_init(&c.seen, u->ctx->scratch);
    for (size_t i = 0; i < at->n; i++)
        at->v[i].value = 0;
    for (size_t i = 0; i < m->param.n && what == PARAMS; i++)
        for (size_t k = 0; k < at->n; k++)
            if (!m->param.v[i].buffer && path_below(m->param.v[i].path, at->v[k].path))
                at->v[k].value += (double)m->param.v[i].elements;
    for (Val v = 1; v < c.g->node.n && what != PARAMS; v++) {
        const Node *n = node_at(c.g, v);
        size_t own = place_of(&c, v);
        for (size_t k = 0; k < n->n_in; k++) {
            size_t from = place_of(&c, n->in[k]);
            if (from != own && (what == READS ? own : from))
                cross(&c, what == READS ? own : from, n->in[k]);
        }
    }
    for (size_t i = 0; i < m->output.n && what == WRITES; i++)
        if (place_of(&c, m->output.v[i].value))
            cross(&c, place_of(&c, m->output.v[i].value), m->output.v[i].value);
}

/* A sublayer reads what its connection gives it, which may be a part of the state that travels by. */
static void count_read(const Model *m, Places *at)
{
    for (size_t i = 0; i < at->n; i++)
        for (size_t k = 0; k < m->step.n; k++)
            if (!strcmp(m->step.v[k].path, at->v[i].path))
                at->v[i].value = (double)m->step.v[k].reads;
}

size_t place_count(Unit *u, const char *pattern) { return u->file->built ? places_of(u, pattern).n : 0; }

/* Fills the places' values. How many are numbers. */
static size_t value_places(Unit *u, Places *at, const char *attr)
{
    size_t n = 0;
    for (size_t i = 0; i < at->n; i++) {
        at->v[i].value = number_at(u, at->v[i].path, name_str(u->ctx, attr));
        n += !isnan(at->v[i].value);
    }
    for (size_t k = 0; k < COUNT_OF(flows) && !n; k++)
        if (!strcmp(attr, flows[k]) && u->model) {
            count_flow(u, at, (int)k);
            if (k == READS)
                count_read(u->model, at);
            n = at->n;
        }
    return n;
}

/* The word before the first [*]. */
static const char *loop_word(Arena *a, const char *pattern)
{
    const char *end = strstr(pattern, "[*]"), *from = end;
    while (from > pattern && from[-1] != '.')
        from--;
    return arena_copy(a, from, (size_t)(end - from));
}

static bool over_depth(Unit *u, const char *path, Curve *out)
{
    Arena *a = u->ctx->scratch;
    const char *dot = strrchr(path, '.');
    const char *open = strrchr(path, '[');
    if (!dot || (open && open > dot) || !u->file->built || !u->model)
        return false;
    const char *pattern = arena_copy(a, path, (size_t)(dot - path));
    Places at = places_of(u, pattern);
    if (!value_places(u, &at, dot + 1))
        return false;
    if (!strstr(pattern, "[*]"))
        ctx_raise(u->ctx, ST_USAGE, "`%.200s` is one number, %.6g; a curve goes over a loop: `%.200s.%.100s`", path,
                  at.v[0].value, path_starred(u->ctx, pattern), dot + 1);
    bool nested = strstr(strstr(pattern, "[*]") + 1, "[*]") != NULL;
    *out = (Curve){.over = nested ? "place" : loop_word(a, pattern),
                   .x = NEW_ARRAY(a, double, at.n + 1),
                   .y = NEW_ARRAY(a, double, at.n + 1)};
    for (size_t i = 0; i < at.n; i++)
        if (!isnan(at.v[i].value)) {
            int which = 0; /* the index that varies */
            for (const char *s = pattern; (s = strchr(s, '[')) && s[1] != '*'; s++)
                which++;
            out->x[out->n] = nested || which > 3 ? (double)out->n + 1 : at.v[i].index[which];
            out->y[out->n++] = at.v[i].value;
        }
    return true;
}

/* ---- over the steps of the run ---- */

static const HostExpr *constant(Unit *u, double x) { return isnan(x) ? NULL : host_const(u->ctx->scratch, x); }

static double constant_of(const Optimizer *o, const char *name)
{
    for (size_t i = 0; i < o->constant.n; i++)
        if (!strcmp(o->constant.v[i].name, name))
            return o->constant.v[i].value;
    return NAN;
}

/* Of the weights of a group, NULL: of all, where it is the same for them: their decay, or how the rate is scaled; NaN: it is not. */
static double of_weights(const Model *m, const Optimizer *o, const char *group, bool decay)
{
    double x = NAN;
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        double own = decay ? o->decay[i] : o->lr_scale[i];
        if (o->frozen[i] || (group && strcmp(p->group, group)))
            continue;
        if (!isnan(x) && x != own)
            return NAN;
        x = own;
    }
    return x;
}

/* Of a group whose weights one optimizer updates. */
static const HostExpr *group_rate(Unit *u, const Model *m, const Optimizer *o, const char *group)
{
    Arena *a = u->ctx->scratch;
    const Optimizer *by = NULL;
    double scale = of_weights(m, o, group, false);
    for (size_t i = 0; i < m->param.n; i++) {
        const Optimizer *own = o->second && o->by_second[i] ? o->second : o;
        if (o->frozen[i] || strcmp(m->param.v[i].group, group))
            continue;
        if (by && by != own)
            return NULL;
        by = own;
    }
    return by && !isnan(scale) ? host_op(a, HO_MUL, by->lr, host_const(a, scale), NULL) : NULL;
}

static const HostExpr *of_optimizer(Unit *u, const Model *m, const Optimizer *o, const char *name)
{
    size_t n = o->second ? strlen(o->second->kind) : 0;
    if (o->second && !strncmp(name, o->second->kind, n) && name[n] == '.')
        return strcmp(name + n + 1, "lr") ? constant(u, constant_of(o->second, name + n + 1)) : o->second->lr;
    const char *dot = strrchr(name, '.');
    if (!strncmp(name, "group.", 6) && dot > name + 6) {
        const char *group = arena_copy(u->ctx->scratch, name + 6, (size_t)(dot - name - 6));
        return !strcmp(dot, ".lr")             ? group_rate(u, m, o, group)
               : !strcmp(dot, ".weight_decay") ? constant(u, of_weights(m, o, group, true))
                                               : NULL;
    }
    if (!strcmp(name, "weight_decay"))
        return constant(u, of_weights(m, o, NULL, true));
    return strcmp(name, "lr") ? constant(u, constant_of(o, name)) : o->lr;
}

static const HostExpr *of_train(Unit *u, const Model *m, const Train *t, const char *path)
{
    if (!strncmp(path, "train.optimizer.", 16))
        return of_optimizer(u, m, &t->optimizer, path + 16);
    if (!strcmp(path, "train.average.decay"))
        return t->average;
    if (!strcmp(path, "train.batch"))
        return constant(u, (double)t->batch_seqs);
    return !strcmp(path, "train.clip") && t->clip > 0 ? constant(u, t->clip) : NULL;
}

/* An expression of the file, `f` being what it is after a growth step; V_POISON when it has none. */
static Value evaluated(File *f, const char *text)
{
    Eval *ev = f->ev;
    size_t before = diag_count(ev->ctx);
    const Ast *e = vwn_parse_expr(ev->ctx, source_add(ev->ctx, "<path>", text, strlen(text)));
    ev->host_allowed = true;
    Value v = e && diag_count(ev->ctx) == before ? eval(ev, e, f->env, NULL) : v_poison();
    ev->host_allowed = false;
    if (diag_count(ev->ctx) > before)
        v = v_poison();
    diag_truncate(ev->ctx, before);
    return v;
}

/* A number or a condition of the run, or a schedule as `cosine(...)`; NULL: it is none. */
static const HostExpr *host_of(Eval *ev, const Value *v, const Train *t)
{
    size_t before = diag_count(ev->ctx);
    const HostExpr *e = v->kind == V_HOST   ? v->host
                        : v->kind == V_NUM  ? to_host(ev, v)
                        : v->kind == V_SPEC ? schedule_expr(ev, v, NO_SPAN, t)
                                            : NULL;
    diag_truncate(ev->ctx, before);
    return e;
}

static bool over_steps(Unit *u, const char *path, Curve *out)
{
    bool any = false;
    const HostExpr **stage = NEW_ARRAY(u->ctx->scratch, const HostExpr *, u->grow.n + 1);
    for (size_t i = 0; u->train && i <= u->grow.n; i++) {
        const Train *t = i ? u->grow.v[i - 1].train : u->train;
        File *f = i ? u->grow.v[i - 1].file : u->file;
        if (!t)
            break;
        stage[i] = of_train(u, i ? u->grow.v[i - 1].after : u->model, t, path);
        any |= stage[i] != NULL;
        Value v = stage[i] ? v_none() : evaluated(f, path);
        if (!stage[i])
            stage[i] = host_of(f->ev, &v, t);
        any |= v.kind == V_HOST || (v.kind == V_SPEC && stage[i]);
    }
    *out = (Curve){.over = "step", .stage = stage};
    return any;
}

/* `grow.NAME.new`: the rate of what came with a growth step; `old`: of what was there right before. */
static bool over_part(Unit *u, const char *path, Curve *out)
{
    const char *dot = strrchr(path, '.');
    if (strncmp(path, "grow.", 5) || dot < path + 5 || (strcmp(dot, ".new") && strcmp(dot, ".old")))
        return false;
    for (size_t i = 0; i < u->grow.n && u->train; i++) {
        size_t n = strlen(u->grow.v[i].name);
        if ((size_t)(dot - path) != n + 5 || memcmp(path + 5, u->grow.v[i].name, n) ||
            !over_steps(u, "train.optimizer.lr", out))
            continue;
        out->of_part = true;
        out->part = dot[1] == 'n' ? i + 1 : i;
        return true;
    }
    return false;
}

const HostExpr *curve_in_stage(Unit *u, const Curve *c, size_t stage, const double *updates)
{
    Arena *a = u->ctx->scratch;
    PartRate *old = NEW_ARRAY(a, PartRate, stage + 1), *fresh = NEW_ARRAY(a, PartRate, stage + 1);
    if (!c->of_part || !c->stage[stage])
        return c->stage[stage];
    if (c->part > stage)
        return NULL; /* it has not come */
    for (size_t i = 0; i < stage; i++) {
        old[i] = u->grow.v[i].old;
        fresh[i] = u->grow.v[i].fresh;
    }
    GrownParts parts = {.updates = updates, .n = stage, .old = old, .fresh = fresh};
    const HostExpr *factor = part_factor(a, &parts, c->part);
    return factor ? host_op(a, HO_MUL, c->stage[stage], factor, NULL) : c->stage[stage];
}

/* ---- lists ---- */

static bool over_list(Unit *u, const char *path, Curve *out)
{
    Arena *a = u->ctx->scratch;
    Value v = evaluated(u->file, path);
    if (v.kind == V_NUM)
        ctx_raise(u->ctx, ST_USAGE, "`%.200s` is one number, %.6g: there is nothing to draw", path, v.num);
    if (v.kind != V_LIST || !v.list->n)
        return false;
    *out = (Curve){.over = "index", .x = NEW_ARRAY(a, double, v.list->n + 1), .y = NEW_ARRAY(a, double, v.list->n + 1)};
    for (size_t i = 0; i < v.list->n; i++)
        if (v.list->v[i].kind == V_NUM || v.list->v[i].kind == V_QTY) {
            out->x[out->n] = (double)i + 1;
            out->y[out->n++] = v.list->v[i].num;
        }
    return out->n > 0;
}

/* ---- what there is ---- */

static void add_path(Unit *u, CurvePaths *out, Map *seen, Name path)
{
    void **slot = map_at(seen, (uintptr_t)path);
    if (!*slot)
        vec_push(u->ctx->scratch, out, path);
    *slot = out;
}

static bool varies(Unit *u, Name path)
{
    const char *dot = strrchr(path, '.');
    Places at = places_of(u, arena_copy(u->ctx->scratch, path, (size_t)(dot - path)));
    value_places(u, &at, dot + 1);
    double first = NAN;
    for (size_t i = 0; i < at.n; i++) {
        if (isnan(first))
            first = at.v[i].value;
        if (!isnan(at.v[i].value) && at.v[i].value != first)
            return true;
    }
    return false;
}

/* All numbers that a name has somewhere in a loop. `all`: also those that are the same everywhere. */
static void depth_paths(Unit *u, CurvePaths *out, Map *seen, bool all)
{
    Places at = {0};
    Map tried, had;
    const Builder *b = u->file->built;
    map_init(&tried, u->ctx->scratch);
    map_init(&had, u->ctx->scratch);
    for (size_t i = 0; b && i < b->exports.cap; i++)
        if (b->exports.key[i] && strchr((Name)b->exports.key[i], '['))
            add_place(u, &at, &had, (Name)b->exports.key[i], (Name)b->exports.key[i]);
    if (at.n)
        qsort(at.v, at.n, sizeof *at.v, by_index);
    for (size_t i = 0; i < at.n; i++) {
        Name *names, pattern = path_starred(u->ctx, at.v[i].path);
        size_t n = 0;
        if (*map_at(&tried, (uintptr_t)pattern))
            continue;
        *map_at(&tried, (uintptr_t)pattern) = out;
        Env *env = map_get(&b->exports, (uintptr_t)at.v[i].path);
        names = NEW_ARRAY(u->ctx->scratch, Name, 512);
        for (Env *e = env; e && !e->block_edge && !e->file && n < 512; e = e->up)
            if (e->binding)
                names[n++] = e->binding->name;
        for (size_t k = n; k-- > 0;) {
            Name path = name_printf(u->ctx, "%s.%s", pattern, names[k]);
            if (!isnan(number_at(u, at.v[i].path, names[k])) && (all || varies(u, path)))
                add_path(u, out, seen, path);
        }
        for (size_t k = 0; k < COUNT_OF(flows); k++) {
            Name path = name_printf(u->ctx, "%s.%s", pattern, flows[k]);
            if (all || (map_get(&b->scopes, (uintptr_t)at.v[i].path) &&
                        varies(u, path))) /* of nodes; their parts have them, too */
                add_path(u, out, seen, path);
        }
    }
}

/* What is known before the run: no loss decides it. */
static void add_steps(Unit *u, CurvePaths *out, Map *seen, Name path)
{
    Curve c;
    bool known = u->train && (over_part(u, path, &c) || over_steps(u, path, &c));
    for (size_t i = 0; known && i <= u->grow.n; i++) {
        const GrowStep *g = i ? &u->grow.v[i - 1] : NULL;
        known = !reads_losses(c.stage[i]) &&
                !(c.of_part && g && (reads_losses(g->old.scale) || reads_losses(g->fresh.scale)));
    }
    if (known)
        add_path(u, out, seen, path);
}

static void optimizer_paths(Unit *u, CurvePaths *out, Map *seen, const Optimizer *o, const char *path)
{
    add_steps(u, out, seen, name_printf(u->ctx, "%s.lr", path));
    for (size_t i = 0; i < o->constant.n; i++)
        add_steps(u, out, seen, name_printf(u->ctx, "%s.%s", path, o->constant.v[i].name));
    if (o->second)
        optimizer_paths(u, out, seen, o->second, arena_printf(u->ctx->scratch, "%s.%s", path, o->second->kind));
}

static void other_paths(Unit *u, CurvePaths *out, Map *seen)
{
    static const char *const attributes[] = {"train.average.decay", "train.batch", "train.clip"};
    Ctx *ctx = u->ctx;
    const File *f = u->file;
    Map groups;
    map_init(&groups, ctx->scratch);
    for (size_t i = 0; i < f->lets.n; i++) {
        Name let = f->lets.v[i]->name;
        Value v = f->lets.v[i]->is_let ? evaluated(u->file, let) : v_none();
        if (v.kind == V_LIST && v.list->n && v.list->v[0].kind == V_NUM)
            add_path(u, out, seen, let);
        else if (v.kind == V_HOST || v.kind == V_SPEC)
            add_steps(u, out, seen, let);
    }
    if (!u->train || !u->model)
        return;
    optimizer_paths(u, out, seen, &u->train->optimizer, "train.optimizer");
    for (size_t i = 0; i < u->model->param.n; i++) {
        Name group = u->model->param.v[i].group;
        void **slot = map_at(&groups, (uintptr_t)group);
        if (*slot)
            continue;
        *slot = out;
        add_steps(u, out, seen, name_printf(ctx, "train.optimizer.group.%s.lr", group));
        add_steps(u, out, seen, name_printf(ctx, "train.optimizer.group.%s.weight_decay", group));
    }
    for (size_t i = 0; i < u->grow.n; i++) {
        add_steps(u, out, seen, name_printf(ctx, "grow.%s.old", u->grow.v[i].name));
        add_steps(u, out, seen, name_printf(ctx, "grow.%s.new", u->grow.v[i].name));
    }
    for (size_t i = 0; i < COUNT_OF(attributes); i++)
        add_steps(u, out, seen, name_str(ctx, attributes[i]));
}

static CurvePaths all_paths(Unit *u, bool all)
{
    CurvePaths out = {0};
    Map seen;
    map_init(&seen, u->ctx->scratch);
    depth_paths(u, &out, &seen, all);
    other_paths(u, &out, &seen);
    return out;
}

CurvePaths curve_paths(Unit *u) { return all_paths(u, false); }

Curve curve_of(Unit *u, const char *path)
{
    enum { SHOWN = 8 };
    Curve c;
    Ctx *ctx = u->ctx;
    if (over_depth(u, path, &c) || over_part(u, path, &c) || over_steps(u, path, &c) || over_list(u, path, &c))
        return c;
    if (!strncmp(path, "train.", 6) && !u->train)
        ctx_raise(ctx, ST_USAGE, "%.200s has no `train`, so nothing is over steps", u->path);
    CurvePaths all = all_paths(u, true);
    Name near = nearest_name(name_str(ctx, path), all.v, all.n);
    const char *last = strrchr(path, '.') ? strrchr(path, '.') + 1 : path;
    for (size_t i = 0; !near && i < all.n; i++) {
        const char *dot = strrchr(all.v[i], '.');
        near = dot && !strcmp(dot + 1, last) ? all.v[i] : NULL;
    }
    if (near)
        ctx_raise(ctx, ST_USAGE, "%.150s has nothing to draw called `%.100s`; did you mean `%.150s`?", u->path, path,
                  near);
    CurvePaths some = all_paths(u, false);
    Buf b = buf_new(ctx->scratch);
    for (size_t i = 0; i < some.n && i < SHOWN; i++)
        buf_printf(&b, "%s`%.60s`", i ? ", " : "", some.v[i]);
    if (!some.n)
        ctx_raise(ctx, ST_USAGE, "%.120s has nothing to draw called `%.60s`: nothing in it varies over depth or steps",
                  u->path, path);
    ctx_raise(ctx, ST_USAGE, "%.120s has nothing to draw called `%.60s`; it has %.250s%s", u->path, path, b.s,
              some.n > SHOWN ? ", ..." : "");
}
