/* export_torch.c - see export_torch.h. */
#include "export_torch.h"

#include <ctype.h>
#include <inttypes.h>

#include "compiler/model/function.h"
#include "export_build.h"

/* ---- functions ---- */

/* A function with its gradient as C; functions of one text are one. */
typedef struct TorchFunction {
    const ModelFunction *f; /* the first that has this text */
    const char *text;       /* both, with "@" for the number */
    bool of_rows;           /* B and T matter through their product alone */
} TorchFunction;

/* A module of the package: what reads and writes around one sublayer, or opens, or closes. */
typedef struct TorchModule {
    Name path;
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

static size_t function_number(Torch *t, const ModelFunction *f)
{
    t->tmp = arena_new(t->ctx);
    Buf b = buf_new(t->tmp);
    TorchFunction x = {.f = f, .of_rows = true};
    for (size_t i = 0; i < f->given.n; i++)
        x.of_rows = x.of_rows && begins_with_rows(f, &f->given.v[i]);
    for (size_t i = 0; i < f->wanted.n; i++)
        x.of_rows = x.of_rows && begins_with_rows(f, &f->wanted.v[i]);
    put_half(t, &b, f, false, &x);
    put_half(t, &b, f, true, &x);
    size_t same = 0;
    while (same < t->function.n && strcmp(t->function.v[same].text, b.s) != 0)
        same++;
    if (same == t->function.n) {
        x.text = arena_copy(t->arena, b.s, b.n + 1);
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
        ctx_raise(t->ctx, ST_INPUT, "`%s` of %s is no function of a state: %s", f->name, f->owner, why);
    vec_push(t->arena, &module->function, kept);
    vec_push(t->arena, &module->number, function_number(t, kept));
}

/* ---- which ones ---- */

static bool is_meant(const Torch *t, Name sublayer)
{
    const char *node = t->how->node;
    return !node || path_matches(node, sublayer) ||
           path_matches(node, arena_printf(t->arena, "%s.connection", sublayer));
}

static void add_modules(Torch *t)
{
    const Model *m = t->m;
    ModelFunction f;
    for (size_t i = 0; i < m->sublayer.n; i++) {
        if (!is_meant(t, m->sublayer.v[i].path))
            continue;
        TorchModule module = {.path = m->sublayer.v[i].path};
        function_of_read(&f, m, i, t->arena);
        add_function(t, &module, &f);
        function_of_write(&f, m, i, t->arena);
        add_function(t, &module, &f);
        Val gate[GATES_MOST];
        size_t n = function_gates(m, i, gate, t->arena);
        if (n) {
            function_of_begin(&f, m, i, gate, n, t->arena);
            add_function(t, &module, &f);
            function_of_end(&f, m, i, gate, n, t->arena);
            add_function(t, &module, &f);
        }
        vec_push(t->arena, &t->module, module);
    }
    if (!t->module.n)
        ctx_raise(t->ctx, ST_INPUT, "model `%s` has no sublayer `%s`; the first one is `%s`", m->name,
                  t->how->node ? t->how->node : "", m->sublayer.n ? m->sublayer.v[0].path : "none");
    TorchModule open = {.path = name_str(t->ctx, "open")}, close = {.path = name_str(t->ctx, "close")};
    function_of_open(&f, m, t->arena);
    add_function(t, &open, &f);
    vec_push(t->arena, &t->module, open);
    if (function_of_close(&f, m, t->arena)) {
        add_function(t, &close, &f);
        vec_push(t->arena, &t->module, close);
    }
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

static void put_function(Buf *b, const TorchFunction *x, size_t number)
{
    const ModelFunction *f = x->f;
    buf_puts(b, "    {\n        \"name\": ");
    put_text(b, name_printf(f->m->graph->ctx, "%s_%zu", f->name, number));
    buf_printf(b, ",\n        \"of_rows\": %s,\n", x->of_rows ? "True" : "False");
    put_ports(b, f, "given", f->given.v, f->given.n);
    put_ports(b, f, "wanted", f->wanted.v, f->wanted.n);
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

/* The part of a path behind the module's own; paths of others stay whole. */
static const char *below(const char *path, const char *module)
{
    return path_below(path, module) && path[strlen(module)] ? path + strlen(module) + 1 : path;
}

static void put_parameters(Buf *b, const Torch *t, const TorchModule *m)
{
    bool *seen = NEW_ARRAY(t->arena, bool, t->m->param.n + 1);
    buf_puts(b, "        \"parameters\": (\n");
    for (size_t i = 0; i < m->function.n; i++)
        for (size_t k = 0; k < m->function.v[i]->param.n; k++) {
            size_t number = m->function.v[i]->param.v[k];
            const Param *p = &t->m->param.v[number];
            if (seen[number])
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
    buf_puts(b, ",\n");
    put_parameters(b, t, m);
    buf_puts(b, "        \"functions\": {\n");
    for (size_t i = 0; i < m->function.n; i++) {
        buf_puts(b, "            ");
        put_text(b, m->function.v[i]->name);
        buf_printf(b, ": (%zu, (", m->number.v[i]);
        for (size_t k = 0; k < m->function.v[i]->param.n; k++) {
            put_text(b, below(t->m->param.v[m->function.v[i]->param.v[k]].path, m->path));
            buf_puts(b, ", ");
        }
        buf_puts(b, ")),\n");
    }
    buf_puts(b, "        },\n    },\n");
}

static void put_table(Buf *b, const Torch *t)
{
    buf_printf(b, "# _table.py - written by `vwn emit torch`: the connections of the model `%s` of %s.\n", t->m->name,
               source_base_name(t->how->unit->path));
    buf_printf(
        b,
        "#\n# An extent (n, b, t) is n * B**b * T**t. Function i of the library is FUNCTIONS[i / 2], or, odd, its "
        "gradient.\n\nPACKAGE = \"%s\"\nMODEL = ",
        t->how->package);
    put_text(b, t->m->name);
    buf_puts(b, "\nFUNCTIONS = (\n");
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
} shared[] = {{"torch_init.py", "%s/__init__.py"},      {"torch_op.py", "%s/_op.py"},
              {"torch_setup.py", "setup.py"},           {"torch_build.sh", "%s/csrc/build.sh"},
              {"torch_call.c", "%s/csrc/torch_call.c"}, {"torch_call.h", "%s/csrc/torch_call.h"},
              {"torch_cpu.c", "%s/csrc/torch_cpu.c"},   {"compute.c", "%s/csrc/compute.c"},
              {"compute.h", "%s/csrc/compute.h"},       {"rows.h", "%s/csrc/rows.h"},
              {"threads.c", "%s/csrc/threads.c"},       {"threads.h", "%s/csrc/threads.h"},
              {"host_value.h", "%s/csrc/host_value.h"}, {"host.def", "%s/csrc/host.def"}};

static void put_project(Buf *b, const Torch *t)
{
    buf_printf(b,
               TORCH_MARK "\n[build-system]\nrequires = [\"setuptools\"]\n"
                          "build-backend = \"setuptools.build_meta\"\n\n[project]\nname = \"%s\"\nversion = \"1\"\n"
                          "description = \"Connections of the model %s as operators of PyTorch\"\n"
                          "requires-python = \">=3.9\"\ndependencies = [\"torch>=2.4\"]\n",
               t->how->package, t->m->name);
}

static void put_readme(Buf *b, const Torch *t)
{
    const char *first = t->module.v[0].path;
    buf_printf(
        b,
        "# %s\n\nWritten by `vwn emit torch` from %s: the connections of the model `%s` as operators of PyTorch, "
        "forward and backward.\n\n"
        "    pip install ./DIR             # needs a C compiler unless %s/_kernels.so is there\n\n"
        "```python\nimport %s\n\nconnection = %s.Connection(\"%s\")   # an nn.Module\n"
        "x = connection.read(state)            # what a sublayer is given\n"
        "state = connection.write(state, y)    # the state behind it\n\n"
        "net = %s.Connections(layers)          # a list of layers, one for each connection, opened and closed\n```\n\n"
        "Any number of sequences and positions is computed by the same machine code. Results do not depend on threads: "
        "two runs have\nthe same bits. `help(%s)` tells the shapes.\n",
        t->how->package, source_base_name(t->how->unit->path), t->m->name, t->how->package, t->how->package,
        t->how->package, first, t->how->package, t->how->package);
}

void export_torch(ExportFolder *out, Ctx *ctx, Arena *arena, const TorchOptions *how)
{
    Torch t = {.ctx = ctx, .arena = arena, .how = how, .m = how->unit->model};
    map_init(&t.kernel_seen, arena);
    add_modules(&t);
    Buf table = buf_new(arena), calls = buf_new(arena), kernels = buf_new(arena), project = buf_new(arena),
        readme = buf_new(arena);
    put_table(&table, &t);
    put_calls(&calls, &t);
    put_kernels(&kernels, &t);
    put_project(&project, &t);
    put_readme(&readme, &t);
    add_text(&t, out, arena_printf(arena, "%s/_table.py", how->package), table.s, table.n);
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
