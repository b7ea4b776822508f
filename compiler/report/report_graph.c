/* report_graph.c - `vwn graph`: a model, or a layer of it, as boxes and what flows between them.
 *
 * In:  a Unit.   Out: DOT for Graphviz, or JSON.
 * The one idea: a box is a stretch of the graph that one module has made. Of a whole model modules are its nodes, and layers that
 * repeat are folded into one; of a layer they are all that it consists of. An edge is a value that leaves its box.
 */
#include <ctype.h>

#include "compiler/front/check.h"
#include "compiler/file/curve.h"
#include "report.h"

typedef enum BoxKind { BOX_MODULE, BOX_INPUT, BOX_OUTPUT } BoxKind;
static const char *const kind_words[] = {"module", "input", "output"};

typedef struct GraphBox {
    BoxKind kind;
    Name path;           /* of the module; of an input or output its name */
    size_t loop;         /* its iteration + 1; 0: in no loop */
    size_t same;         /* the box that stands for it: itself, or that of the first of equal layers */
    size_t nth;          /* among the boxes of its iteration */
    uint64_t hash;       /* of what it computes */
    bool outside;        /* of the layer that is shown */
    int64_t params, own; /* weights that it reads first; nodes */
    double flops;        /* forward, for a token */
    VEC(size_t) param;
    VEC(Name) op; /* what it is made of, each once; no views and constants */
} GraphBox;
typedef struct Loop { /* one iteration: "layer[3]" */
    Name path;
    size_t first, n; /* the first loop that is equal, and how many follow each other; n = 0: folded into another */
    VEC(size_t) box;
    Val begin;
} Loop;
typedef struct Edge {
    size_t from, to;
    Val value;         /* the first of its kind */
    bool weight, next; /* next: from a layer to the equal one behind it */
} Edge;
typedef struct GraphDrawing {
    Unit *u;
    Arena *a;
    const Model *m;
    const Graph *g;
    const char *layer; /* the path that is shown, or NULL: the model */
    VEC(GraphBox) box;
    VEC(Loop) loop;
    VEC(Edge) edge;
    size_t *of;                        /* node -> box + 1; 0: a constant, which belongs to whoever reads it */
    Map edges, params, loops, modules; /* modules: of a node's name */
    int64_t widest;
} GraphDrawing;

/* ---- modules ---- */

static Name up_to(GraphDrawing *d, const char *path, size_t n) { return name_of(d->u->ctx, path, n); }

/* The leading components that are iterations: "layer[3]"; 0: none. */
static size_t loop_part(const char *path)
{
    size_t end = 0;
    for (size_t at = 0;;) {
        size_t n = at + strcspn(path + at, ".[");
        if (path[n] != '[')
            return end;
        n += strcspn(path + n, "]") + 1;
        end = n;
        if (path[n] != '.')
            return end;
        at = n + 1;
    }
}

/* The node of the model that a module is part of; else what stands beside nodes, as what opens the state. */
static Name node_of(GraphDrawing *d, const char *path)
{
    const Builder *b = d->u->file->built;
    for (size_t n = strcspn(path, ".");; n += 1 + strcspn(path + n + 1, ".")) {
        Scope *s = map_get(&b->scopes, (uintptr_t)up_to(d, path, n));
        if (s && s->node)
            return up_to(d, path, n);
        if (!path[n])
            break;
    }
    size_t n = loop_part(path),
           rest = n ? n + (path[n] == '.') : strcspn(path, ".") + (path[strcspn(path, ".")] == '.');
    return up_to(d, path, rest + strcspn(path + rest, "."));
}

static Name module_name(GraphDrawing *d, const Node *n)
{
    Name path = n->name ? n->name : name_str(d->u->ctx, "");
    void **slot = map_at(&d->modules, (uintptr_t)path);
    if (!*slot)
        *slot = (void *)(uintptr_t)(d->layer && path_below(path, d->layer) ? path : node_of(d, path));
    return *slot;
}

static bool floats(const GraphDrawing *d, const Node *n)
{
    if (op_info((Op)n->op)->class != CLASS_LEAF)
        return false;
    return n->op != OP_EXT || d->g->ext.v[n->a.i].kind != EXT_INPUT;
}

static uint64_t mix(uint64_t h, uint64_t x) { return hash_bytes(&x, sizeof x, h); }

static size_t loop_of(GraphDrawing *d, const char *path, Val v)
{
    size_t n = loop_part(path);
    if (!n || d->layer)
        return 0;
    Name name = up_to(d, path, n);
    void **slot = map_at(&d->loops, (uintptr_t)name);
    if (!*slot) {
        Loop l = {.path = name, .first = d->loop.n, .n = 1, .begin = v};
        vec_push(d->a, &d->loop, l);
        *slot = (void *)(uintptr_t)d->loop.n;
    }
    return (size_t)(uintptr_t)*slot;
}

static size_t add_box(GraphDrawing *d, BoxKind kind, Name path, Val v)
{
    GraphBox b = {.kind = kind, .path = path, .same = d->box.n, .hash = hash_bytes("", 0, 1)};
    b.loop = kind == BOX_MODULE ? loop_of(d, path, v) : 0;
    b.outside = d->layer && !(kind == BOX_MODULE && path_below(path, d->layer));
    if (b.loop) {
        Loop *l = &d->loop.v[b.loop - 1];
        b.nth = l->box.n;
        vec_push(d->a, &l->box, d->box.n);
        size_t skip = strlen(l->path);
        b.hash = hash_bytes(path + skip, strlen(path + skip), b.hash);
    }
    vec_push(d->a, &d->box, b);
    return d->box.n - 1;
}

/* What a node computes, whichever of equal layers it is in: places of what it reads count from itself. */
static void hash_node(GraphDrawing *d, GraphBox *b, Val v)
{
    const Node *n = node_at(d->g, v);
    Val begin = b->loop ? d->loop.v[b->loop - 1].begin : 0;
    uint64_t h = mix(mix(b->hash, n->op), n->dtype);
    for (int k = 0; k < n->shape.rank; k++)
        h = mix(mix(mix(h, (uint64_t)n->shape.d[k].n), n->shape.d[k].b), n->shape.d[k].t);
    h = mix(mix(h, n->a.axes), n->op == OP_EXT || n->op == OP_HOST ? 0 : (uint64_t)n->a.i);
    h = hash_bytes(&n->a.x, sizeof n->a.x, mix(h, (uint64_t)n->a.j));
    for (size_t k = 0; k < n->n_in; k++) {
        const Shape *s = shape_of(d->g, n->in[k]);
        h = mix(h, n->in[k] >= begin ? v - n->in[k] : 0);
        for (int j = 0; j < s->rank; j++)
            h = mix(h, (uint64_t)s->d[j].n);
    }
    b->hash = h;
}

static void add_op(GraphDrawing *d, GraphBox *b, Val v)
{
    const Node *n = node_at(d->g, v);
    OpClass c = op_info((Op)n->op)->class;
    double T = (double)d->m->context;
    Dim work = op_flops(d->g, v);
    b->own++;
    b->flops += work.n ? (double)dim_at(work, 1, d->m->context) / T : 0;
    hash_node(d, b, v);
    if (c == CLASS_LEAF || c == CLASS_VIEW)
        return;
    Name name = name_str(d->u->ctx, op_info((Op)n->op)->name);
    for (size_t i = 0; i < b->op.n; i++)
        if (b->op.v[i] == name)
            return;
    vec_push(d->a, &b->op, name);
}

static void make_boxes(GraphDrawing *d)
{
    size_t now = 0, n = d->g->node.n; /* the box that is being filled + 1 */
    d->of = NEW_ARRAY(d->a, size_t, n + 1);
    for (Val v = 1; v < n; v++) {
        const Node *node = node_at(d->g, v);
        if (floats(d, node))
            continue;
        if (node->op == OP_EXT) {
            d->of[v] = add_box(d, BOX_INPUT, d->g->ext.v[node->a.i].name, v) + 1;
            continue;
        }
        Name path = module_name(d, node);
        if (!now || d->box.v[now - 1].path != path)
            now = add_box(d, BOX_MODULE, path, v) + 1;
        d->of[v] = now;
        add_op(d, &d->box.v[now - 1], v);
    }
}

/* ---- equal layers ---- */

static bool equal_loops(const GraphDrawing *d, const Loop *x, const Loop *y)
{
    size_t n = (size_t)(strrchr(x->path, '[') - x->path);
    if (x->box.n != y->box.n || strncmp(x->path, y->path, n + 1))
        return false;
    for (size_t i = 0; i < x->box.n; i++)
        if (d->box.v[x->box.v[i]].hash != d->box.v[y->box.v[i]].hash)
            return false;
    return true;
}

static void fold(GraphDrawing *d)
{
    for (size_t i = 1; i < d->loop.n; i++) {
        Loop *l = &d->loop.v[i], *first = &d->loop.v[d->loop.v[i - 1].first];
        if (!equal_loops(d, first, l))
            continue;
        l->first = (size_t)(first - d->loop.v);
        l->n = 0;
        first->n++;
        for (size_t k = 0; k < l->box.n; k++)
            d->box.v[l->box.v[k]].same = first->box.v[k];
    }
}

/* ---- edges ---- */

static void add_edge(GraphDrawing *d, size_t from, size_t to, Val v, bool weight)
{
    const GraphBox *x = &d->box.v[from], *y = &d->box.v[to];
    Edge e = {x->same, y->same, v, weight,
              x->loop != y->loop && x->loop && y->loop && d->loop.v[x->loop - 1].first == d->loop.v[y->loop - 1].first};
    if ((x->outside && y->outside) || (e.from == e.to && !e.next))
        return;
    const Shape *s = shape_of(d->g, v);
    uint64_t key = mix(mix(mix(mix(1, e.from), e.to), (uint64_t)e.weight), (uint64_t)e.next);
    for (int k = 0; k < s->rank; k++)
        key = mix(mix(mix(key, (uint64_t)s->d[k].n), s->d[k].b), s->d[k].t);
    if (d->layer)
        key = mix(key, v);
    void **slot = map_at(&d->edges, (uintptr_t)key | 1);
    if (*slot)
        return;
    *slot = d;
    vec_push(d->a, &d->edge, e);
    if (!weight && y->kind != BOX_OUTPUT && coordinates(s) > d->widest) /* logits would make all else thin */
        d->widest = coordinates(s);
}

/* A weight belongs to the box that reads it first; what others read of it is an edge. */
static void read_weight(GraphDrawing *d, Val leaf, size_t box)
{
    const Ext *e = &d->g->ext.v[node_at(d->g, leaf)->a.i];
    void **slot = map_at(&d->params, (uintptr_t)leaf);
    size_t owner = (size_t)(uintptr_t)*slot;
    if (owner) {
        if (owner - 1 != box)
            add_edge(d, owner - 1, box, leaf, true);
        return;
    }
    *slot = (void *)(uintptr_t)(box + 1);
    Dim n;
    shape_size(&e->shape, &n);
    GraphBox *b = &d->box.v[box];
    b->params += e->kind == EXT_PARAM ? n.n : 0;
    vec_push(d->a, &b->param, (size_t)node_at(d->g, leaf)->a.i);
}

/* Losses of one name are one loss, and so are shown those of layers. */
static size_t output_box(GraphDrawing *d, Name name, Val v)
{
    for (size_t i = 0; i < d->box.n; i++)
        if (d->box.v[i].kind == BOX_OUTPUT && d->box.v[i].path == name)
            return i;
    return add_box(d, BOX_OUTPUT, name, v);
}

static void make_edges(GraphDrawing *d)
{
    for (Val v = 1; v < d->g->node.n; v++) {
        const Node *n = node_at(d->g, v);
        for (size_t k = 0; k < n->n_in && d->of[v]; k++) {
            const Node *in = node_at(d->g, n->in[k]);
            if (d->of[n->in[k]] && d->of[n->in[k]] != d->of[v])
                add_edge(d, d->of[n->in[k]] - 1, d->of[v] - 1, n->in[k], false);
            else if (!d->of[n->in[k]] && in->op == OP_EXT)
                read_weight(d, n->in[k], d->of[v] - 1);
        }
    }
    for (size_t i = 0; i < d->m->output.n + d->m->loss.n; i++) {
        bool out = i < d->m->output.n;
        const ModelLoss *l = out ? NULL : &d->m->loss.v[i - d->m->output.n];
        Val v = out ? d->m->output.v[i].value : l->value;
        if (!d->of[v])
            continue;
        Name name =
            out ? d->m->output.v[i].name : name_printf(d->u->ctx, "%s.%s", l->trained ? "loss" : "metric", l->name);
        name = d->layer ? name : path_starred(d->u->ctx, name);
        if (!d->layer || !d->box.v[d->of[v] - 1].outside)
            add_edge(d, d->of[v] - 1, output_box(d, name, v), v, false);
    }
}

/* Of boxes outside of a layer only those that give it something or get something are shown. */
static bool is_shown(const GraphDrawing *d, size_t box)
{
    const GraphBox *b = &d->box.v[box];
    bool met = !b->outside;
    for (size_t i = 0; i < d->edge.n && !met; i++)
        met = d->edge.v[i].from == box || d->edge.v[i].to == box;
    return b->same == box && met;
}

/* ---- what is printed ---- */

/* "layer[1..6]" for what stands for six layers. */
static const char *folded(GraphDrawing *d, const GraphBox *b)
{
    const Loop *l = b->loop ? &d->loop.v[b->loop - 1] : NULL;
    if (!l || l->n < 2)
        return b->path;
    const Loop *last = l + l->n - 1;
    size_t n = strlen(l->path);
    const char *key = strrchr(last->path, '[') + 1;
    return arena_printf(d->a, "%.*s..%s%s", (int)(n - 1), l->path, key, b->path + n);
}

static size_t times(const GraphDrawing *d, const GraphBox *b) { return b->loop ? d->loop.v[b->loop - 1].n : 1; }

static void json_box(GraphDrawing *d, Buf *out, size_t i)
{
    const GraphBox *b = &d->box.v[i];
    const char *path = folded(d, b);
    buf_printf(out, "{\"id\":%zu,\"kind\":\"%s\",\"path\":", i, kind_words[b->kind]);
    buf_json_string(out, path, strlen(path));
    if (b->kind == BOX_MODULE) {
        buf_printf(out, ",\"times\":%zu,\"params\":%lld,\"flops\":", times(d, b), (long long)b->params);
        buf_number(out, b->flops);
        buf_printf(out, ",\"nodes\":%lld,\"outside\":%s,\"ops\":[", (long long)b->own, b->outside ? "true" : "false");
        for (size_t k = 0; k < b->op.n; k++)
            buf_printf(out, "%s\"%s\"", k ? "," : "", b->op.v[k]);
        buf_puts(out, "],\"weights\":[");
        for (size_t k = 0; k < b->param.n; k++) {
            const Ext *e = &d->g->ext.v[b->param.v[k]];
            buf_puts(out, k ? ",{\"path\":" : "{\"path\":");
            buf_json_string(out, e->name, strlen(e->name));
            buf_puts(out, ",\"shape\":\"");
            shape_print(out, &e->shape);
            buf_puts(out, "\"}");
        }
        buf_putc(out, ']');
    }
    buf_putc(out, '}');
}

static void print_json(GraphDrawing *d, Buf *out)
{
    buf_puts(out, "{\"v\":1,\"event\":\"graph\",\"model\":");
    buf_json_string(out, d->m->name, strlen(d->m->name));
    buf_puts(out, ",\"of\":");
    buf_json_string(out, d->layer ? d->layer : "", d->layer ? strlen(d->layer) : 0);
    buf_puts(out, ",\"boxes\":[");
    bool comma = false;
    for (size_t i = 0; i < d->box.n; i++)
        if (is_shown(d, i)) {
            buf_puts(out, comma ? "," : "");
            json_box(d, out, i);
            comma = true;
        }
    buf_puts(out, "],\"edges\":[");
    for (size_t i = 0; i < d->edge.n; i++) {
        const Edge *e = &d->edge.v[i];
        buf_printf(out, "%s{\"from\":%zu,\"to\":%zu,\"value\":%u,\"shape\":\"", i ? "," : "", e->from, e->to, e->value);
        shape_print(out, shape_of(d->g, e->value));
        buf_printf(out, "\",\"width\":%lld,\"weight\":%s,\"next\":%s}",
                   (long long)coordinates(shape_of(d->g, e->value)), e->weight ? "true" : "false",
                   e->next ? "true" : "false");
    }
    buf_puts(out, "]}\n");
}

static void dot_text(Buf *out, const char *s)
{
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            buf_printf(out, "\\%c", *s);
        else
            buf_putc(out, *s);
}

static bool has_parts(const GraphDrawing *d, Name path)
{
    for (size_t i = 0; i < d->box.n; i++)
        if (d->box.v[i].kind == BOX_MODULE && d->box.v[i].path != path && path_below(d->box.v[i].path, path))
            return true;
    return false;
}

/* Opens the clusters that a box lies in. Graphviz takes a cluster that is opened again as the same one. How many are open. */
static int open_clusters(GraphDrawing *d, Buf *out, const GraphBox *b)
{
    int open = 0;
    const char *path = folded(d, b);
    size_t loop = loop_part(path), skip = d->layer ? strlen(d->layer) : loop;
    if (b->kind != BOX_MODULE || b->outside || !skip)
        return 0;
    for (size_t n = skip;; n += 1 + strcspn(path + n + 1, ".")) {
        bool whole = !path[n];
        if (whole && !(d->layer && has_parts(d, b->path)))
            break;
        buf_puts(out, "subgraph \"cluster_");
        dot_text(out, arena_copy(d->a, path, n));
        buf_puts(out, "\" { label=\"");
        dot_text(out, arena_copy(d->a, path, n));
        if (n == loop && times(d, b) > 1)
            buf_printf(out, "  x %zu", times(d, b));
        buf_puts(out, "\"; ");
        open++;
        if (whole || !d->layer)
            break;
    }
    return open;
}

/* Of the widest value that a module reads. */
static double width_share(const GraphDrawing *d, int64_t wide)
{
    double share = (double)wide / (double)(d->widest ? d->widest : 1);
    return share < 1 ? share : 1;
}

static void dot_box(GraphDrawing *d, Buf *out, size_t i)
{
    enum { OPS = 5, WEIGHTS = 3 };
    const GraphBox *b = &d->box.v[i];
    const char *path = folded(d, b);
    size_t loop = d->layer && !b->outside ? strlen(d->layer) : d->layer ? 0 : loop_part(path);
    int open = open_clusters(d, out, b);
    int64_t wide = 0;
    for (size_t k = 0; k < d->edge.n; k++)
        if (d->edge.v[k].from == i && !d->edge.v[k].weight && coordinates(shape_of(d->g, d->edge.v[k].value)) > wide)
            wide = coordinates(shape_of(d->g, d->edge.v[k].value));
    buf_printf(out, "n%zu [shape=%s,width=%.2f,label=\"", i, b->kind == BOX_MODULE && !b->outside ? "box" : "ellipse",
               0.6 + 3.0 * width_share(d, wide));
    const char *name = path + loop + (path[loop] == '.');
    dot_text(out, *name ? name : path);
    if (b->params && !b->outside) {
        buf_puts(out, "\\n");
        buf_count(out, b->params);
        buf_puts(out, " weights");
    }
    for (size_t k = 0; d->layer && !b->outside && k < b->param.n && b->param.n <= WEIGHTS; k++) {
        const Ext *e = &d->g->ext.v[b->param.v[k]];
        buf_printf(out, "\\n%s ", strrchr(e->name, '.') ? strrchr(e->name, '.') + 1 : e->name);
        shape_print(out, &e->shape);
    }
    if (d->layer && !b->outside) {
        for (size_t k = 0; k < b->op.n && k < OPS; k++)
            buf_printf(out, "%s%s", k ? " " : "\\n", b->op.v[k]);
        buf_puts(out, b->op.n > OPS ? " ..." : "");
    }
    buf_puts(out, "\"];");
    while (open--)
        buf_puts(out, " }");
    buf_putc(out, '\n');
}

/* The thickness of an edge is to scale: coordinates per position, at most 12 points. No edge covers a word: boxes are drawn
 * over edges, labels of clusters stand at the left, and those of edges behind half the thickness of blanks. */
static void print_dot(GraphDrawing *d, Buf *out)
{
    buf_puts(out, "digraph \"");
    dot_text(out, d->m->name);
    buf_puts(
        out,
        "\" {\nrankdir=TB; node "
        "[fontname=\"sans-serif\",fontsize=11,style=\"filled\",fillcolor=\"#eef3fa\",height=0.3];\n"
        "edge [fontname=\"sans-serif\",fontsize=9,color=\"#4a6fa5\",arrowsize=0.5]; graph [fontname=\"sans-serif\","
        "fontsize=11,style=rounded,color=\"#999999\",labeljust=l,outputorder=edgesfirst];\n");
    for (size_t i = 0; i < d->box.n; i++)
        if (is_shown(d, i))
            dot_box(d, out, i);
    for (size_t i = 0; i < d->edge.n; i++) {
        const Edge *e = &d->edge.v[i];
        const Shape *s = shape_of(d->g, e->value);
        double share = e->weight ? 0 : width_share(d, coordinates(s));
        buf_printf(out, "n%zu -> n%zu [label=\"%*s", e->from, e->to, (int)(3 * share), "");
        shape_print(out, s);
        buf_printf(out, "\",penwidth=%.2f%s%s];\n", 0.3 + 11.7 * share, e->weight ? ",style=dotted" : "",
                   e->next ? ",style=dashed,constraint=false" : "");
    }
    buf_puts(out, "}\n");
}

/* `3` is the layer of this number, whatever its loop is called; else a path of the model. */
static const char *layer_path(Unit *u, const char *wanted)
{
    const Builder *b = u->file->built;
    Name found = NULL;
    bool number = wanted[0] && strspn(wanted, "0123456789") == strlen(wanted);
    for (size_t i = 0; i < b->scopes.cap && number; i++) {
        Name path = (Name)b->scopes.key[i];
        const char *at = path ? strchr(path, '[') : NULL;
        if (!at || strncmp(at + 1, wanted, strlen(wanted)) || strcmp(at + 1 + strlen(wanted), "]"))
            continue;
        if (found)
            ctx_raise(u->ctx, ST_USAGE, "there are `%.150s` and `%.150s`: write which", found < path ? found : path,
                      found < path ? path : found);
        found = path;
    }
    const Graph *g = u->model->graph;
    for (Val v = 1; v < g->node.n && !number && !found; v++)
        if (g->node.v[v].name && path_below(g->node.v[v].name, wanted))
            found = name_str(u->ctx, wanted);
    if (found)
        return found;
    VEC(Name) names = {0};
    for (size_t i = 0; i < b->scopes.cap; i++)
        if (b->scopes.key[i])
            vec_push(u->ctx->scratch, &names, (Name)b->scopes.key[i]);
    Name near = number ? NULL : nearest_name(name_str(u->ctx, wanted), names.v, names.n);
    if (near)
        ctx_raise(u->ctx, ST_USAGE, "%.200s has no module `%.100s`; did you mean `%.100s`?", u->path, wanted, near);
    ctx_raise(u->ctx, ST_USAGE, "%.200s has no %s `%.100s`; `vwn params FILE --by node` prints its nodes", u->path,
              number ? "layer" : "module", wanted);
}

void report_graph(Buf *out, Unit *u, const char *layer, bool json)
{
    const Model *m = report_model(u);
    GraphDrawing d = {.u = u, .a = u->ctx->scratch, .m = m, .g = m->graph};
    map_init(&d.edges, d.a);
    map_init(&d.params, d.a);
    map_init(&d.loops, d.a);
    map_init(&d.modules, d.a);
    d.layer = layer ? layer_path(u, layer) : NULL;
    make_boxes(&d);
    if (!layer)
        fold(&d);
    make_edges(&d);
    if (json)
        print_json(&d, out);
    else
        print_dot(&d, out);
}
