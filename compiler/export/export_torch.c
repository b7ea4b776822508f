/* export_torch.c - see export_torch.h. */
#include "export_torch.h"

#include <ctype.h>
#include <inttypes.h>

#include "compiler/model/function.h"
#include "export_build.h"

/* ---- functions ---- */

/* A function with its gradient as C; functions of one text are one. */
typedef struct TorchFunction {
    const ModelFunction *f; /* the first that computes this */
    const char *graph;      /* what it computes, with parameters by number */
    const char *text;       /* both, with "@" for the number */
    const char *reference;  /* the function in plain PyTorch, likewise */
    bool of_rows;           /* B and T matter through their product alone */
} TorchFunction;

/* A module of the package: what reads and writes around one sublayer, or opens, or closes; a block; the whole model. */
typedef struct TorchModule {
    Name path;
    const char *kind;
    VEC(ModelFunction *) function;
    VEC(size_t) number; /* of each: which TorchFunction */
} TorchModule;

typedef struct Torch {
    Ctx *ctx;
    Arena *arena, *tmp; /* tmp: of one function, while it is planned */
    const TorchOptions *how;
    const Model *m;
    VEC(TorchFunction) function;
    VEC(TorchModule) module;
    VEC(const PlanKernel *) kernel;
    Map kernel_seen;
    const char *prelude;
    size_t prelude_length;
} Torch;

/* What a call gets of a function, in this order: what is given, parameters, gradients of what is wanted; then what it writes. */
static void list_tensor(Export *x, ExtKind kind, Name name)
{
    vec_push(x->arena, &x->tensor, ((ExportTensor){.kind = kind, .name = name}));
    *map_at(&x->tensor_at[kind], (uintptr_t)name) = (void *)(uintptr_t)x->tensor.n;
}

static bool is_real(const ModelFunction *f, const FunctionPort *p)
{
    return node_at(f->m->graph, p->value)->dtype == DT_REAL;
}

static void list_tensors(Export *x, const ModelFunction *f, bool gradient)
{
    for (size_t k = 0; k < EXT_KINDS; k++)
        map_init(&x->tensor_at[k], x->arena);
    for (size_t i = 0; i < f->given.n; i++)
        list_tensor(x, EXT_INPUT, f->given.v[i].name);
    for (size_t i = 0; i < f->param.n; i++) {
        const Param *p = &f->m->param.v[f->param.v[i]];
        list_tensor(x, p->buffer ? EXT_BUFFER : EXT_PARAM, p->path);
    }
    for (size_t i = 0; gradient && i < f->wanted.n; i++)
        list_tensor(x, EXT_INPUT, function_gradient_name(x->ctx, f->wanted.v[i].name));
    if (!gradient) {
        for (size_t i = 0; i < f->wanted.n; i++)
            list_tensor(x, EXT_STEP, f->wanted.v[i].name);
        return;
    }
    for (size_t i = 0; i < f->given.n; i++)
        if (is_real(f, &f->given.v[i]))
            list_tensor(x, EXT_STEP, f->given.v[i].name);
    for (size_t i = 0; i < f->param.n; i++)
        if (!f->m->param.v[f->param.v[i]].buffer)
            list_tensor(x, EXT_GRAD, f->m->param.v[f->param.v[i]].path);
}

static void keep_kernels(Torch *t, const Plan *p)
{
    if (!t->prelude)
        t->prelude = arena_copy(t->arena, p->prelude, p->prelude_length);
    t->prelude_length = p->prelude_length;
    for (size_t i = 0; i < p->n_kernel; i++) {
        void **slot = map_at(&t->kernel_seen, (uintptr_t)p->kernel[i].name);
        if (*slot)
            continue;
        PlanKernel *kept = NEW(t->arena, PlanKernel);
        *kept = (PlanKernel){.name = p->kernel[i].name, .length = p->kernel[i].length};
        kept->text = arena_copy(t->arena, p->kernel[i].text, p->kernel[i].length);
        vec_push(t->arena, &t->kernel, kept);
        *slot = kept;
    }
}

static void refuse_launches(const Torch *t, const Plan *p, const char *what)
{
    for (size_t i = 0; i < p->n_launch; i++)
        for (uint32_t k = 0; k < p->launch[i].n_int; k++)
            if (p->launch[i].ints[k].kind != INT_CONST)
                ctx_raise(t->ctx, ST_INPUT, "%s draws random numbers, which no package for PyTorch does", what);
}

static void put_half(Torch *t, Buf *b, const ModelFunction *f, bool gradient, TorchFunction *out)
{
    const char *what = arena_printf(t->tmp, "`%s` of %s%s", f->name, f->owner, gradient ? ", its gradient" : "");
    Graph *g = gradient ? function_gradient(f, t->tmp) : function_forward(f, t->tmp);
    PlanSizes *sizes = NEW(t->tmp, PlanSizes);
    PlanOptions how = {.target = &target_cpu};
    plan_build_sizes(sizes, t->ctx, t->tmp, g, &how, what);
    refuse_launches(t, sizes->plan[0], what);
    ExportOptions options = {.unit = t->how->unit};
    Export x = {.ctx = t->ctx, .arena = t->tmp, .how = &options};
    list_tensors(&x, f, gradient);
    ExportProgram p = {
        .name = gradient ? "gradient_@" : "function_@", .about = what, .plan = sizes->plan[0], .sizes = sizes};
    out->of_rows = export_function(b, &x, &p) && out->of_rows;
    keep_kernels(t, sizes->plan[0]);
}

/* Leading extents B, T and no other that is no number. */
static bool begins_with_rows(const ModelFunction *f, const FunctionPort *p)
{
    const Shape *s = shape_of(f->m->graph, p->value);
    if (s->rank < 2 || !dim_eq(s->d[0], DIM_B) || !dim_eq(s->d[1], DIM_T))
        return false;
    for (int i = 2; i < s->rank; i++)
        if (!dim_static(s->d[i]))
            return false;
    return true;
}

/* The graph as a text in which parameters have numbers, and places and modules no names: equal where the same is computed. */
static const char *text_of_graph(const ModelFunction *f, Arena *arena)
{
    Graph *g = function_forward(f, arena);
    for (size_t i = 0; i < g->ext.n; i++)
        for (size_t k = 0; k < f->param.n; k++) {
            const Param *p = &f->m->param.v[f->param.v[k]];
            Ext *e = &g->ext.v[i];
            if (e->name == p->path && e->kind == (p->buffer ? EXT_BUFFER : EXT_PARAM)) {
                e->name = name_printf(g->ctx, "%zu", k);
                break;
            }
        }
    for (Val v = 1; v < g->node.n; v++) {
        node_at(g, v)->name = NULL;
        node_at(g, v)->span = NO_SPAN;
    }
    Buf b = buf_new(arena);
    buf_printf(&b, "%s\n", f->name);
    graph_dump(&b, g);
    return b.s;
}

static void plan_function(Torch *t, TorchFunction *x)
{
    const ModelFunction *f = x->f;
    Buf b = buf_new(t->tmp);
    x->of_rows = true;
    for (size_t i = 0; i < f->given.n; i++)
        x->of_rows = x->of_rows && begins_with_rows(f, &f->given.v[i]);
    for (size_t i = 0; i < f->wanted.n; i++)
        x->of_rows = x->of_rows && begins_with_rows(f, &f->wanted.v[i]);
    put_half(t, &b, f, false, x);
    put_half(t, &b, f, true, x);
    x->text = arena_copy(t->arena, b.s, b.n + 1);
    Buf reference = buf_new(t->tmp);
    Export list = {.ctx = t->ctx, .arena = t->tmp};
    list_tensors(&list, f, false);
    export_reference(&reference, &list, "function_@", f->given.n + f->param.n, function_forward(f, t->tmp));
    x->reference = arena_copy(t->arena, reference.s, reference.n + 1);
}

static size_t function_number(Torch *t, const ModelFunction *f)
{
    t->tmp = arena_new(t->ctx);
    TorchFunction x = {.f = f, .graph = text_of_graph(f, t->tmp)};
    size_t same = 0;
    while (same < t->function.n && strcmp(t->function.v[same].graph, x.graph) != 0)
        same++;
    if (same == t->function.n) {
        x.graph = arena_copy(t->arena, x.graph, strlen(x.graph) + 1);
        plan_function(t, &x);
        vec_push(t->arena, &t->function, x);
    }
    arena_free(t->tmp);
    return same;
}

static void add_function(Torch *t, TorchModule *module, const ModelFunction *f)
{
    ModelFunction *kept = NEW(t->arena, ModelFunction);
    *kept = *f;
    const char *why = function_close(kept, t->arena);
    if (why)
        ctx_raise(t->ctx, ST_INPUT, "`%s` of %s is no function of what it is given: %s", f->name,
                  *f->owner ? f->owner : "the model", why);
    vec_push(t->arena, &module->function, kept);
    vec_push(t->arena, &module->number, function_number(t, kept));
}

/* ---- connections ---- */

static bool is_meant(const Torch *t, Name sublayer)
{
    const char *node = t->how->node;
    return !strcmp(node, "*") || path_matches(node, sublayer) ||
           path_matches(node, arena_printf(t->arena, "%s.connection", sublayer));
}

static TorchModule *new_module(Torch *t, const char *kind, Name path)
{
    vec_push(t->arena, &t->module, ((TorchModule){.path = path, .kind = kind}));
    return &t->module.v[t->module.n - 1];
}

static void add_connections(Torch *t)
{
    const Model *m = t->m;
    ModelFunction f;
    for (size_t i = 0; i < m->sublayer.n; i++) {
        if (!is_meant(t, m->sublayer.v[i].path))
            continue;
        TorchModule *module = new_module(t, "connection", m->sublayer.v[i].path);
        function_of_read(&f, m, i, t->arena);
        add_function(t, module, &f);
        function_of_write(&f, m, i, t->arena);
        add_function(t, module, &f);
        Val gate[GATES_MOST], then[GATES_MOST];
        size_t n = function_gates(m, i, gate, t->arena);
        if (!n)
            continue;
        function_of_begin(&f, m, i, gate, n, t->arena);
        add_function(t, module, &f);
        function_of_end(&f, m, i, gate, n, t->arena);
        add_function(t, module, &f);
        bool more = i + 1 < m->sublayer.n && is_meant(t, m->sublayer.v[i + 1].path);
        size_t n_then = more ? function_gates(m, i + 1, then, t->arena) : 0;
        if (n_then) {
            function_of_next(&f, m, i, gate, n, then, n_then, t->arena);
            add_function(t, module, &f);
        }
    }
    if (!t->module.n)
        ctx_raise(t->ctx, ST_INPUT, "model `%s` has no sublayer `%s`; the first one is `%s`", m->name, t->how->node,
                  m->sublayer.n ? m->sublayer.v[0].path : "none");
    function_of_open(&f, m, t->arena);
    add_function(t, new_module(t, "open", name_str(t->ctx, "open")), &f);
    if (function_of_close(&f, m, t->arena))
        add_function(t, new_module(t, "close", name_str(t->ctx, "close")), &f);
}

/* ---- blocks, the model ---- */

static bool is_first_of_path(const Model *m, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (m->module.v[k].path == m->module.v[i].path)
            return false;
    return true;
}

/* A path leads to one, or with [*] to several; a word also stands for all modules of this block. */
static void add_blocks(Torch *t)
{
    const Model *m = t->m;
    const char *block = t->how->block;
    ModelFunction f;
    for (size_t i = 0; i < m->module.n; i++) {
        const ModelModule *x = &m->module.v[i];
        if ((strcmp(block, x->block) && !path_matches(block, x->path)) || !is_first_of_path(m, i))
            continue;
        function_of_module(&f, m, i, t->arena);
        function_give_inputs(&f, t->arena);
        add_function(t, new_module(t, "block", x->path), &f);
    }
    if (t->module.n)
        return;
    Buf names = buf_new(t->arena);
    for (size_t i = 0; i < m->sublayer.n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", m->sublayer.v[i].path);
    ctx_raise(t->ctx, ST_INPUT, "model `%s` applies no block `%s`; its sublayers are %s", m->name, block,
              names.n ? names.s : "none");
}

static void add_model(Torch *t)
{
    ModelFunction f;
    TorchModule *module = new_module(t, "model", name_str(t->ctx, ""));
    if (function_of_output(&f, t->m, t->arena)) {
        function_give_inputs(&f, t->arena);
        add_function(t, module, &f);
    }
    if (function_of_loss(&f, t->m, t->arena)) {
        function_give_inputs(&f, t->arena);
        add_function(t, module, &f);
    }
    if (!module->function.n)
        ctx_raise(t->ctx, ST_INPUT, "model `%s` has neither an output nor a loss", t->m->name);
}

/* ---- the table ---- */

static void put_text(Buf *b, const char *text) { buf_json_string(b, text, strlen(text)); }

/* Each extent as (n, b, t): n * B^b * T^t. */
static void put_ports(Buf *b, const ModelFunction *f, const char *name, const FunctionPort *port, size_t n)
{
    buf_printf(b, "        \"%s\": (", name);
    for (size_t i = 0; i < n; i++) {
        const Shape *s = shape_of(f->m->graph, port[i].value);
        buf_puts(b, "(");
        put_text(b, port[i].name);
        buf_printf(b, ", %s, (", is_real(f, &port[i]) ? "True" : "False");
        for (int k = 0; k < s->rank; k++)
            buf_printf(b, "(%" PRId64 ", %d, %d), ", s->d[k].n, s->d[k].b, s->d[k].t);
        buf_puts(b, ")), ");
    }
    buf_puts(b, "),\n");
}

/* Of integers that are given, where they are inputs of the model: what they are below, and whether negative ones are left out. */
static void put_ranges(Buf *b, const ModelFunction *f)
{
    const Graph *g = f->m->graph;
    buf_puts(b, "        \"ranges\": (");
    for (size_t i = 0; i < f->given.n; i++) {
        const Node *n = node_at(g, f->given.v[i].value);
        if (n->op != OP_EXT || n->dtype != DT_INT)
            continue;
        InputRange r = model_input_range(f->m, g->ext.v[n->a.i].name);
        if (r.below)
            buf_printf(b, "(%zu, %" PRId64 ", %s), ", i, r.below, r.spared ? "True" : "False");
    }
    buf_puts(b, "),\n");
}

static void put_function(Buf *b, const TorchFunction *x, size_t number)
{
    const ModelFunction *f = x->f;
    buf_puts(b, "    {\n        \"name\": ");
    put_text(b, name_printf(f->m->graph->ctx, "%s_%zu", f->name, number));
    buf_printf(b, ",\n        \"of_rows\": %s,\n", x->of_rows ? "True" : "False");
    put_ports(b, f, "given", f->given.v, f->given.n);
    put_ports(b, f, "wanted", f->wanted.v, f->wanted.n);
    put_ranges(b, f);
    buf_puts(b, "        \"parameters\": (");
    for (size_t i = 0; i < f->param.n; i++) {
        const Param *p = &f->m->param.v[f->param.v[i]];
        buf_puts(b, "((");
        for (int k = 0; k < p->shape.rank; k++)
            buf_printf(b, "%" PRId64 ", ", p->shape.d[k].n);
        buf_printf(b, "), %s), ", p->buffer ? "False" : "True");
    }
    buf_puts(b, "),\n    },\n");
}

static void put_init(Buf *b, const Init *init)
{
    static const char *const word[] = {
        [INIT_FILL] = "fill",       [INIT_EYE] = "eye",  [INIT_NORMAL] = "normal", [INIT_TRUNC_NORMAL] = "trunc_normal",
        [INIT_UNIFORM] = "uniform", [INIT_LIST] = "list"};
    buf_printf(b, "(\"%s\", ", word[init->kind]);
    if (init->kind != INIT_LIST) {
        buf_number(b, init->a);
        buf_puts(b, ", ");
        buf_number(b, init->b);
        buf_puts(b, ")");
        return;
    }
    buf_puts(b, "(");
    for (size_t i = 0; i < init->n; i++) {
        buf_number(b, init->list[i]);
        buf_puts(b, ", ");
    }
    buf_puts(b, "))");
}

/* The part of a path behind the module's own; paths of others stay whole, and those of the whole model. */
static const char *below(const char *path, const char *module)
{
    return *module && path_below(path, module) && path[strlen(module)] ? path + strlen(module) + 1 : path;
}

static bool is_next(const ModelFunction *f) { return !strcmp(f->name, "next"); }

static void put_parameters(Buf *b, const Torch *t, const TorchModule *m)
{
    bool *seen = NEW_ARRAY(t->arena, bool, t->m->param.n + 1);
    buf_puts(b, "        \"parameters\": (\n");
    for (size_t i = 0; i < m->function.n; i++)
        for (size_t k = 0; k < m->function.v[i]->param.n; k++) {
            size_t number = m->function.v[i]->param.v[k];
            const Param *p = &t->m->param.v[number];
            if (seen[number] || is_next(m->function.v[i])) /* it has those of two modules, which are theirs */
                continue;
            seen[number] = true;
            buf_puts(b, "            (");
            put_text(b, below(p->path, m->path));
            buf_puts(b, ", ");
            put_text(b, p->path);
            buf_puts(b, ", (");
            for (int d = 0; d < p->shape.rank; d++)
                buf_printf(b, "%" PRId64 ", ", p->shape.d[d].n);
            buf_puts(b, "), ");
            put_init(b, &p->init);
            buf_printf(b, ", \"%s\"),\n", p->buffer ? "buffer" : p->frozen ? "frozen" : "learned");
        }
    buf_puts(b, "        ),\n");
}

static void put_module(Buf *b, const Torch *t, const TorchModule *m)
{
    buf_puts(b, "    {\n        \"path\": ");
    put_text(b, m->path);
    buf_printf(b, ",\n        \"kind\": \"%s\",\n", m->kind);
    put_parameters(b, t, m);
    buf_puts(b, "        \"functions\": {\n");
    for (size_t i = 0; i < m->function.n; i++) {
        buf_puts(b, "            ");
        put_text(b, m->function.v[i]->name);
        buf_printf(b, ": (%zu, (", m->number.v[i]);
        for (size_t k = 0; k < m->function.v[i]->param.n; k++) {
            Name path = t->m->param.v[m->function.v[i]->param.v[k]].path;
            put_text(b, is_next(m->function.v[i]) ? path : below(path, m->path));
            buf_puts(b, ", ");
        }
        buf_puts(b, ")),\n");
    }
    buf_puts(b, "        },\n    },\n");
}

/* What the package has, before "the model". */
static const char *part_of(const Torch *t)
{
    return t->how->node ? "connections of" : t->how->block ? "blocks of" : "all of";
}

static void put_table(Buf *b, const Torch *t)
{
    buf_printf(b, "# _table.py - written by `vwn emit torch`: %s the model `%s` of %s.\n", part_of(t), t->m->name,
               source_base_name(t->how->unit->path));
    buf_printf(
        b,
        "#\n# An extent (n, b, t) is n * B**b * T**t. Function i of the library is FUNCTIONS[i / 2], or, odd, its "
        "gradient.\n\nPACKAGE = \"%s\"\nMODEL = ",
        t->how->package);
    put_text(b, t->m->name);
    buf_printf(b, "\nCONTEXT = %" PRId64 "\nFUNCTIONS = (\n", t->m->context);
    for (size_t i = 0; i < t->function.n; i++)
        put_function(b, &t->function.v[i], i);
    buf_puts(b, ")\nMODULES = (\n");
    for (size_t i = 0; i < t->module.n; i++)
        put_module(b, t, &t->module.v[i]);
    buf_puts(b, ")\n");
}

/* ---- C ---- */

/* The text with the function's number where it says "@". */
static void put_numbered(Buf *b, const char *text, size_t number)
{
    for (const char *c = text; *c; c++) {
        if (*c == '@')
            buf_printf(b, "%zu", number);
        else
            buf_putc(b, *c);
    }
}

static void put_calls(Buf *b, const Torch *t)
{
    buf_puts(b, "/* calls.c - written by `vwn emit torch`: functions as calls of kernels, for any B and T.\n"
                " *\n"
                " * T(i) is tensor i of the call, V(i) a value in the workspace; `to` marks what a call writes. */\n"
                "#include \"torch_call.h\"\n\n"
                "#define T(i) (tensor[i])\n#define V(i) (arena + place[i])\n\n");
    for (size_t i = 0; i < t->kernel.n; i++)
        buf_printf(b, "extern Kernel %s;\n", t->kernel.v[i]->name);
    buf_putc(b, '\n');
    for (size_t i = 0; i < t->function.n; i++)
        put_numbered(b, t->function.v[i].text, i);
    buf_puts(b, "const Function *const function[] = {\n");
    for (size_t i = 0; i < t->function.n; i++)
        buf_printf(b, "    &function_%zu,\n    &gradient_%zu,\n", i, i);
    buf_printf(b, "};\nconst unsigned functions = %zu;\n", 2 * t->function.n);
}

static void put_formulas(Buf *b, const Torch *t)
{
    buf_puts(b, "\"\"\"Written by `vwn emit torch`: the functions in plain PyTorch, in float64, which is computed with "
                "them.\"\"\"\n\n"
                "import torch\nimport torch.nn.functional as F\n\n"
                "from ._reference import cumsum, expert_matmul, gather, iota, mask, matmul, pad, pick, real, round_to, "
                "sdpa, shift, top_k\n\n\n");
    for (size_t i = 0; i < t->function.n; i++)
        put_numbered(b, t->function.v[i].reference, i);
    buf_puts(b, "FUNCTIONS = (");
    for (size_t i = 0; i < t->function.n; i++)
        buf_printf(b, "function_%zu, ", i);
    buf_puts(b, ")\n");
}

static void put_kernels(Buf *b, const Torch *t)
{
    buf_printf(b,
               "/* kernels.c - written by `vwn emit torch`: %zu kernels, each a function over rows.\n"
               " *\n"
               " * In:  buffers p, sizes n, numbers s, a range of rows lo <= row < hi.\n"
               " * Out: these rows computed. A kernel's name is a hash of its text. */\n\n",
               t->kernel.n);
    buf_put(b, t->prelude, t->prelude_length);
    for (size_t i = 0; i < t->kernel.n; i++) {
        buf_putc(b, '\n');
        buf_put(b, t->kernel.v[i]->text, t->kernel.v[i]->length);
    }
}

/* ---- the folder ---- */

bool torch_is_name(const char *word)
{
    if (!isalpha((unsigned char)word[0]))
        return false;
    for (const char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c) && *c != '_')
            return false;
    return strlen(word) <= 64;
}

static void add_text(Torch *t, ExportFolder *out, const char *name, const char *text, size_t n)
{
    vec_push(t->arena, out, ((ExportFile){name, text, n}));
}

/* What is the same in every package, and where it lies there; "%s": its name. */
static const struct {
    const char *from, *to;
} shared[] = {{"torch_init.py", "%s/__init__.py"},        {"torch_op.py", "%s/_op.py"},
              {"torch_reference.py", "%s/_reference.py"}, {"torch_setup.py", "setup.py"},
              {"torch_build.sh", "%s/csrc/build.sh"},     {"torch_call.c", "%s/csrc/torch_call.c"},
              {"torch_call.h", "%s/csrc/torch_call.h"},   {"torch_numbers.c", "%s/csrc/torch_numbers.c"},
              {"torch_cpu.c", "%s/csrc/torch_cpu.c"},     {"compute.c", "%s/csrc/compute.c"},
              {"compute.h", "%s/csrc/compute.h"},         {"rows.h", "%s/csrc/rows.h"},
              {"threads.c", "%s/csrc/threads.c"},         {"threads.h", "%s/csrc/threads.h"},
              {"host_value.h", "%s/csrc/host_value.h"},   {"host.def", "%s/csrc/host.def"}};

static void put_project(Buf *b, const Torch *t)
{
    buf_printf(b,
               TORCH_MARK "\n[build-system]\nrequires = [\"setuptools\"]\n"
                          "build-backend = \"setuptools.build_meta\"\n\n[project]\nname = \"%s\"\nversion = \"1\"\n"
                          "description = \"Operators of PyTorch: %s the model %s\"\n"
                          "requires-python = \">=3.9\"\ndependencies = [\"torch>=2.4\"]\n",
               t->how->package, part_of(t), t->m->name);
}

/* How it is used. */
static void put_use(Buf *b, const Torch *t)
{
    const char *package = t->how->package, *first = t->module.v[0].path;
    if (t->how->node)
        buf_printf(
            b,
            "connection = %s.Connection(\"%s\")   # an nn.Module\n"
            "x = connection.read(state)            # what a sublayer is given\n"
            "state = connection.write(state, y)    # the state behind it\n\n"
            "net = %s.Connections(layers)          # a list of layers, one for each connection, opened and closed\n",
            package, first, package);
    else if (t->how->block)
        buf_printf(b, "block = %s.Block(\"%s\")   # an nn.Module\ny = block(x)\n", package, first);
    else
        buf_printf(b,
                   "model = %s.Model()               # an nn.Module, whose parameters have their names in runs of vwn\n"
                   "logits = model(tokens)\n"
                   "loss = model(tokens, labels)     # the mean over labels that are not negative\n"
                   "%s.load(model, \"runs/NAME\")    # the weights of a run, and\n"
                   "%s.save(model, FILE)             # back: `start_from` of a .vwn file reads it\n",
                   package, package, package);
}

static void put_readme(Buf *b, const Torch *t)
{
    buf_printf(b,
               "# %s\n\nWritten by `vwn emit torch` from %s: %s the model `%s` as operators of PyTorch, forward and "
               "backward.\n\n"
               "    pip install ./DIR             # needs a C compiler unless %s/_kernels.so is there\n\n"
               "```python\nimport %s\n\n",
               t->how->package, source_base_name(t->how->unit->path), part_of(t), t->m->name, t->how->package,
               t->how->package);
    put_use(b, t);
    buf_printf(b,
               "```\n\n"
               "Any number of sequences and positions is computed by the same machine code. Results do not depend on "
               "threads: two runs have\nthe same bits. `%s.describe()` tells the shapes.\n",
               t->how->package);
}

void export_torch(ExportFolder *out, Ctx *ctx, Arena *arena, const TorchOptions *how)
{
    Torch t = {.ctx = ctx, .arena = arena, .how = how, .m = how->unit->model};
    map_init(&t.kernel_seen, arena);
    if (how->node)
        add_connections(&t);
    else if (how->block)
        add_blocks(&t);
    else
        add_model(&t);
    Buf table = buf_new(arena), calls = buf_new(arena), kernels = buf_new(arena), formulas = buf_new(arena),
        project = buf_new(arena), readme = buf_new(arena);
    put_table(&table, &t);
    put_calls(&calls, &t);
    put_kernels(&kernels, &t);
    put_formulas(&formulas, &t);
    put_project(&project, &t);
    put_readme(&readme, &t);
    add_text(&t, out, arena_printf(arena, "%s/_table.py", how->package), table.s, table.n);
    add_text(&t, out, arena_printf(arena, "%s/_formulas.py", how->package), formulas.s, formulas.n);
    add_text(&t, out, arena_printf(arena, "%s/csrc/calls.c", how->package), calls.s, calls.n);
    add_text(&t, out, arena_printf(arena, "%s/csrc/kernels.c", how->package), kernels.s, kernels.n);
    add_text(&t, out, "pyproject.toml", project.s, project.n);
    add_text(&t, out, "README.md", readme.s, readme.n);
    for (size_t i = 0; i < COUNT_OF(shared); i++) {
        ExportFile f = {0};
        f.text = emitted_text(shared[i].from, &f.length);
        const char *in = strncmp(shared[i].to, "%s", 2) ? "" : how->package;
        f.name = arena_printf(arena, "%s%s", in, *in ? shared[i].to + 2 : shared[i].to);
        vec_push(arena, out, f);
    }
}
