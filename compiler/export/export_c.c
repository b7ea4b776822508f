/* export_c.c - see export.h: the tensors, the model's facts, README, the folder; the CPU's kernels.
 *
 * The one idea: programs are planned as the runtime plans them, then everything they share
 * (kernels of one name, tensors of one kind and name) is written once.
 */
#include <inttypes.h>

#include "export_build.h"

const ExportTarget *export_target(const Export *x) { return x->how->cuda ? &export_gpu : &export_cpu; }

/* ---- programs and tensors ---- */

size_t export_tensor(const Export *x, ExtKind kind, Name name)
{
    void *at = map_get(&x->tensor_at[kind], (uintptr_t)name);
    if (!at)
        vwn_bug(x->ctx, "export: the tensor %s is not in the list", name);
    return (size_t)(uintptr_t)at - 1;
}

enum { ALIGN = 64 };

static uint64_t aligned(uint64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

static void add_tensor(Export *x, ExtKind kind, Name name, const Shape *shape, int item)
{
    ExportTensor t = {.kind = kind, .name = name, .rank = shape->rank, .shape = shape, .elements = 1, .item = item};
    if (map_get(&x->tensor_at[kind], (uintptr_t)name))
        return;
    for (int i = 0; i < t.rank; i++) {
        t.d[i] = dim_at(shape->d[i], x->how->batch, x->how->context);
        if (t.d[i] < 0 || !mul_i64(t.elements, t.d[i], &t.elements))
            ctx_raise(x->ctx, ST_INPUT, "the tensor %s is too large", name);
    }
    vec_push(x->arena, &x->tensor, t);
    *map_at(&x->tensor_at[kind], (uintptr_t)name) = (void *)(uintptr_t)x->tensor.n;
}

static Half half_of(const Export *x) { return x->how->cuda ? train_half(x->how->unit->train) : HALF_NONE; }

static void add_tensors_of_kind(Export *x, ExtKind kind)
{
    for (size_t i = 0; i < x->n_programs; i++)
        for (size_t k = 0; k < x->program[i].plan->n_ext; k++) {
            const PlanExt *of = &x->program[i].plan->ext[k];
            const Ext *e = &of->ext;
            if (e->kind == kind)
                add_tensor(x, kind, e->name, &e->shape, e->dtype == DT_INT ? 8 : half_bytes(of->half));
        }
}

/* In the order of the list, but what the plans want behind another one without a gap. */
static void place_tensors(Export *x)
{
    size_t n = x->tensor.n, *next = NEW_ARRAY(x->arena, size_t, n + 1);
    bool *follows = NEW_ARRAY(x->arena, bool, n + 1);
    for (size_t i = 0; i < n; i++) {
        const ExportTensor *t = &x->tensor.v[i];
        Name before = plan_layout_before(&x->layout, t->kind, t->name);
        if (before != t->name) {
            next[export_tensor(x, t->kind, before)] = i + 1;
            follows[i] = true;
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = follows[i] ? 0 : i + 1; k; k = next[k - 1]) {
            ExportTensor *t = &x->tensor.v[k - 1];
            t->offset = x->tensor_bytes;
            x->tensor_bytes += (uint64_t)t->elements * (uint64_t)t->item;
        }
        x->tensor_bytes = aligned(x->tensor_bytes);
        if (x->tensor.v[i].kind == EXT_INPUT) /* the first of all */
            x->input_bytes = x->tensor_bytes;
    }
}

/* Inputs, weights in the order of the file, then what training adds. */
static void list_tensors(Export *x)
{
    const Model *m = x->how->unit->model;
    for (size_t k = 0; k < COUNT_OF(x->tensor_at); k++)
        map_init(&x->tensor_at[k], x->arena);
    for (size_t i = 0; i < m->graph->ext.n; i++)
        if (m->graph->ext.v[i].kind == EXT_INPUT && !input_is_text(&m->graph->ext.v[i]))
            ctx_raise(x->ctx, ST_INPUT,
                      "the program that `vwn emit` writes reads text, and the model reads the "
                      "input `%s`, which a text does not give",
                      m->graph->ext.v[i].name);
    add_tensors_of_kind(x, EXT_INPUT);
    for (size_t i = 0; i < m->param.n; i++)
        add_tensor(x, m->param.v[i].buffer ? EXT_BUFFER : EXT_PARAM, m->param.v[i].path, &m->param.v[i].shape, 4);
    for (int k = EXT_PARAM; k < EXT_KINDS; k++)
        add_tensors_of_kind(x, (ExtKind)k);
    place_tensors(x);
}

/* Operands of large products are rounded as training asks for, where the products can take them. */
static void add_graph(Export *x, ProgramKind kind, const char *name, const Graph *g)
{
    PlanOptions how = {.B = x->how->batch,
                       .T = x->how->context,
                       .target = x->how->cuda ? &target_gpu : &target_cpu,
                       .half = half_of(x),
                       .any_order = x->how->fast,
                       .layout = x->how->cuda ? &x->layout : NULL};
    Plan *plan = plan_build(x->ctx, x->arena, plan_graph(g, x->arena, &how), &how);
    plan_verify(x->ctx, plan);
    export_target(x)->check(x, plan);
    x->program[x->n_programs++] = (ExportProgram){kind, .name = name, .about = program_row(kind)->about, .plan = plan};
    if (plan->arena_bytes > x->arena_bytes)
        x->arena_bytes = plan->arena_bytes;
}

static void add_program(Export *x, ProgramKind kind, int level)
{
    const Train *t = program_row(kind)->trains ? x->how->train : x->how->unit->train;
    Graph *g = program_make(kind, x->how->unit->model, t, level, x->arena);
    const char *name = program_row(kind)->name;
    if (!g)
        return;
    if (kind == PROGRAM_UPDATE)
        plan_write_copies(g, &x->layout); /* of those that the programs before read */
    if (program_row(kind)->levels)
        name = arena_printf(x->arena, "%s%d", name, level);
    add_graph(x, kind, name, g);
}

/* Those that read copies of weights stand before the update, which writes these. */
static void add_programs(Export *x)
{
    const Train *t = x->how->train;
    add_program(x, PROGRAM_EVAL, 0);
    add_program(x, PROGRAM_EVAL_COUNT, 0);
    if (!t)
        return;
    static const ProgramKind before[] = {PROGRAM_COUNT, PROGRAM_TRAIN, PROGRAM_ACCUMULATE};
    for (size_t i = 0; i < COUNT_OF(before); i++)
        if (program_runs(before[i], t, x->how->batch))
            add_program(x, before[i], 0);
    const StepLanes lanes = lanes_of(t->lanes);
    for (int i = 0; i < lanes_levels(&lanes); i++) {
        add_program(x, PROGRAM_KEEP, i);
        add_program(x, PROGRAM_JOIN, i);
    }
    add_program(x, PROGRAM_UPDATE, 0);
}

static bool is_exported(const Export *x, ProgramKind kind)
{
    for (size_t i = 0; i < x->n_programs; i++)
        if (x->program[i].kind == kind)
            return true;
    return false;
}

/* ---- kernels.c and plan.h ---- */

static ExportKernels list_kernels(const Export *x)
{
    VEC(const PlanKernel *) list = {0};
    Map seen;
    map_init(&seen, x->arena);
    for (size_t i = 0; i < x->n_programs; i++)
        for (size_t k = 0; k < x->program[i].plan->n_kernel; k++) {
            const PlanKernel *kernel = &x->program[i].plan->kernel[k];
            void **slot = map_at(&seen, (uintptr_t)kernel->name);
            if (!*slot)
                vec_push(x->arena, &list, kernel);
            *slot = (void *)kernel;
        }
    return (ExportKernels){list.v, list.n};
}

static void write_plan_header(Buf *b, const Export *x, const ExportKernels *k)
{
    const ExportTarget *target = export_target(x);
    buf_printf(b,
               "/* plan.h - the kernels that plan.c calls; see %s. */\n"
               "#ifndef PLAN_H\n#define PLAN_H\n\n#include \"compute.h\"\n#include \"%s\"\n\n",
               target->kernels, target->calls);
    target->put_names(b, k);
    buf_puts(b, "\n#endif\n");
}

/* ---- what is of the CPU ---- */

static void put_kernels(Buf *b, const Export *x, const ExportKernels *k)
{
    const Plan *any = x->program[0].plan;
    buf_printf(b,
               "/* kernels.c - the %zu kernels of the model `%s`, each a function over rows.\n"
               " *\n"
               " * In:  buffers p, sizes n, numbers s, a range of rows lo <= row < hi.\n"
               " * Out: these rows computed. A kernel's name is a hash of its text. No header is\n"
               " * needed; plan.c calls them. */\n\n",
               k->n, x->how->unit->model->name);
    buf_put(b, any->prelude, any->prelude_length);
    for (size_t i = 0; i < k->n; i++) {
        buf_putc(b, '\n');
        buf_put(b, k->kernel[i]->text, k->kernel[i]->length);
    }
}

static void put_names(Buf *b, const ExportKernels *k)
{
    for (size_t i = 0; i < k->n; i++)
        buf_printf(b, "extern Kernel %s;\n", k->kernel[i]->name);
}

static void put_call(Buf *b, const PlanKernel *k, const Launch *l)
{
    buf_printf(b, "rows(run, %s, %" PRId64 ", %" PRId64, k->name, l->rows, l->grain);
}

static void put_use(Buf *b, const Export *x)
{
    (void)x;
    buf_puts(b, "    make                                   # a C compiler, libm and threads\n"
                "    make clean && make BLAS=openblas       # products by OpenBLAS\n");
}

static void check_plan(const Export *x, const Plan *plan)
{
    if (plan->device_prelude)
        vwn_bug(x->ctx, "export: a plan for a GPU in a folder for the CPU");
}

static const char *const gpu_files[] = {"CMakeLists.txt", "blocks.h", "compute_cuda.c", "device_call.h", NULL};
const ExportTarget export_cpu = {
    .calls = "rows.h",
    .kernels = "kernels.c",
    .without = gpu_files,
    .title = "C",
    .files = "| `compute.c`, `compute.h`, `rows.h` | the calls: kernels over all rows, products of "
             "matrices, products by expert |\n"
             "| `device.c` | memory and threads of a run |\n"
             "| `threads.c`, `threads.h` | the parallel loop |\n"
             "| `Makefile` | how it is built |\n",
    .put_call = put_call,
    .put_kernels = put_kernels,
    .put_names = put_names,
    .put_use = put_use,
    .check = check_plan,
};

/* ---- plan.c ---- */

static void write_tensors(Buf *b, const Export *x)
{
    static const char *const kinds[] = {
        [EXT_INPUT] = "INPUT", [EXT_PARAM] = "WEIGHT", [EXT_BUFFER] = "CONSTANT", [EXT_GRAD] = "GRADIENT",
        [EXT_STATE] = "STATE", [EXT_TOTAL] = "TOTAL",  [EXT_STEP] = "STEP",       [EXT_COPY] = "COPY"};
    buf_puts(b, "/* ---- what outlives a run of a program ----\n * ");
    buf_count(b, (int64_t)x->tensor_bytes);
    buf_puts(b, " bytes. kind, name, rank, shape, elements, offset in bytes */\n"
                "static const Tensor tensor[] = {\n");
    for (size_t i = 0; i < x->tensor.n; i++) {
        const ExportTensor *t = &x->tensor.v[i];
        buf_printf(b, "    {%s, ", kinds[t->kind]);
        export_string(b, t->name);
        buf_printf(b, ", %d, {", t->rank);
        for (int k = 0; k < (t->rank ? t->rank : 1); k++)
            buf_printf(b, "%s%" PRId64, k ? ", " : "", t->rank ? t->d[k] : 0);
        buf_printf(b, "}, %" PRId64 ", %" PRIu64 "}, /* %zu */\n", t->elements, t->offset, i);
    }
    buf_puts(b, "};\n\n");
}

static void write_symbols(Buf *b, const ExportOptions *how)
{
    if (!how->symbol)
        return;
    buf_puts(b, "/* The characters that token ids stand for, by code point. */\n"
                "static const uint32_t symbol[] = {");
    for (int64_t i = 0; i < how->n_symbols; i++)
        buf_printf(b, "%s0x%02x,", i % 12 ? " " : "\n    ", (unsigned)how->symbol[i]);
    buf_puts(b, "\n};\n\n");
}

/* The programs keep0, keep1, ... of a model. */
static void write_lanes(Buf *b, const char *name, int levels)
{
    if (levels)
        buf_printf(b, "    .%s = (const Program *const[]){", name);
    for (int i = 0; i < levels; i++)
        buf_printf(b, "%s&%s%d_program", i ? ", " : "", name, i);
    if (levels)
        buf_puts(b, "},\n");
}

static void write_training(Buf *b, const Export *x)
{
    const Train *t = x->how->train;
    bool own = t->eval_data.kind != DATA_NONE || t->data.val_path;
    buf_puts(b, "    .train = &train_program,\n");
    if (is_exported(x, PROGRAM_ACCUMULATE))
        buf_puts(b, "    .accumulate = &accumulate_program,\n");
    const StepLanes lanes = lanes_of(t->lanes);
    write_lanes(b, "keep", lanes_levels(&lanes));
    write_lanes(b, "join", lanes_levels(&lanes));
    buf_puts(b, "    .update = &update_program,\n    .rate = learning_rate,\n");
    if (t->average)
        buf_puts(b, "    .decay = decay_of_average,\n");
    if (half_info(t->compute)->scaled)
        buf_puts(b, "    .scaled = true,\n");
    buf_printf(b, "    .eval_every = %" PRId64 ",\n    .steps = %" PRId64 ",\n", own ? 0 : t->eval_every,
               t->length_steps < 0 ? -1 : t->length_steps);
    buf_puts(b, "    .epochs = ");
    export_real(b, t->length_steps < 0 ? t->length_epochs : 0);
    buf_puts(b, ",\n    .val = ");
    export_real(b, t->data.val_path ? 0 : t->data.val);
    buf_puts(b, ",\n");
}

static void write_model(Buf *b, const Export *x)
{
    const ExportOptions *how = x->how;
    const Model *m = how->unit->model;
    const DataSpec *data = how->data;
    const Train *t = how->unit->train;
    buf_puts(b, "const Model model = {\n    .name = ");
    export_string(b, m->name);
    buf_printf(b,
               ",\n    .tensor = tensor,\n    .n_tensors = %zu,\n    .input_bytes = %" PRIu64
               ",\n    .tensor_bytes = %" PRIu64 ",\n    .arena_bytes = %" PRIu64 ",\n",
               x->tensor.n, x->input_bytes, x->tensor_bytes, x->arena_bytes);
    buf_printf(b,
               "    .context = %" PRId64 ",\n    .micro = %" PRId64 ",\n    .batch = %" PRId64
               ",\n    .vocab = %" PRId64 ",\n",
               how->context, how->batch, t ? t->batch_seqs : how->batch, m->vocab);
    bool ids = data && data->kind == DATA_TOKEN_FILES;
    buf_printf(b, "    .id_bits = %d,\n    .id_header = %d,\n", ids ? data->bits : 8,
               ids && data->header == HEADER_LLM_C ? 1024 : 0);
    if (model_reads(m, "document"))
        buf_printf(b, "    .separator = %" PRId64 ",\n", how->separator);
    if (how->symbol)
        buf_printf(b, "    .symbol = symbol,\n    .n_symbols = %" PRId64 ",\n", how->n_symbols);
    buf_printf(b, "    .seed = %" PRIu64 "u,\n    .eval = &eval_program,\n    .eval_batches = %" PRId64 ",\n",
               how->seed, t ? t->eval_batches : 0);
    if (is_exported(x, PROGRAM_EVAL_COUNT))
        buf_puts(b, "    .eval_count = &eval_count_program,\n");
    if (is_exported(x, PROGRAM_COUNT))
        buf_puts(b, "    .count = &count_program,\n");
    if (t && lanes_of(t->lanes).all > 1)
        buf_printf(b, "    .lanes = %" PRId64 ",\n", lanes_of(t->lanes).all);
    bool own = t && (t->eval_data.kind != DATA_NONE || t->data.val_path);
    buf_puts(b, "    .held_out = ");
    export_real(b, t && !own ? t->data.val : 0);
    buf_puts(b, ",\n");
    if (how->train)
        write_training(b, x);
    buf_puts(b, "};\n");
}

static void write_plan(Buf *b, const Export *x)
{
    buf_puts(b, EXPORT_MARK " the model `");
    export_comment(b, x->how->unit->model->name);
    buf_puts(b, "` of ");
    export_comment(b, source_base_name(x->how->unit->path));
    buf_puts(b, " as calls.\n *\n"
                " * In:  a Run: memory for tensors and for what lives between two calls.\n"
                " * Out: programs, and `model`, which names them with the sizes they were made for.\n"
                " * Every call says where in the file it comes from and what each argument is:\n"
                " * T(i) is tensor i, V(i) a value in the arena; `to` marks what a call writes. */\n"
                "#include <math.h>\n\n#include \"plan.h\"\n\n"
                "#define T(i) (run->tensors + tensor[i].offset)\n"
                "#define V(i) (run->arena + place[i])\n\n");
    write_tensors(b, x);
    write_symbols(b, x->how);
    for (size_t i = 0; i < x->n_programs; i++)
        export_program(b, x, &x->program[i]);
    buf_puts(b, "/* ---- the model ---- */\n\n");
    if (x->how->train) {
        export_formula(b, x, "learning_rate", x->how->train->optimizer.lr);
        buf_putc(b, '\n');
    }
    if (x->how->train && x->how->train->average) {
        export_formula(b, x, "decay_of_average", x->how->train->average);
        buf_putc(b, '\n');
    }
    write_model(b, x);
}

/* ---- README.md ---- */

static void write_data_words(Buf *b, const ExportOptions *how)
{
    if (how->symbol)
        buf_puts(b, "UTF-8 text of the characters that the training text had");
    else if (how->data && how->data->kind == DATA_TOKEN_FILES)
        buf_printf(b, "token ids of %d bits%s", how->data->bits,
                   how->data->header == HEADER_LLM_C ? " behind a header of 1,024 bytes" : "");
    else
        buf_puts(b, "any text; a token is a byte");
}

static void write_use(Buf *b, const Export *x)
{
    const Train *t = x->how->train;
    buf_puts(b, "## Use\n\n");
    export_target(x)->put_use(b, x);
    buf_puts(b, "    ./model eval TEXT                      # losses on its held-out part; --all: on all of it\n");
    if (t)
        buf_puts(b, "    ./model train TEXT --steps 100 --out trained.safetensors\n"
                    "    ./model eval TEXT --weights trained.safetensors\n");
    buf_puts(b, "\nTEXT is ");
    write_data_words(b, x->how);
    buf_puts(b, ". `--weights` takes any safetensors file\nwith these names and shapes, so also a "
                "checkpoint of `vwn train`.\n");
    if (!t)
        return;
    buf_puts(b, "Training takes the windows of the text in the order in which `vwn train` does");
    if (t->data.val > 0 && !t->data.val_path) {
        buf_puts(b, ";\nthe last ");
        buf_number(b, 100 * t->data.val);
        buf_puts(b, " % of the text are kept for evaluation");
    }
    buf_puts(b, ". From a checkpoint it goes\non at its step.");
    buf_puts(b, x->how->cuda ? "\n"
                             : " Set OPENBLAS_NUM_THREADS=1 with OpenBLAS: the threads are the "
                               "program's.\n");
}

static void write_readme(Buf *b, const Export *x, size_t n_kernels)
{
    const ExportTarget *target = export_target(x);
    const Model *m = x->how->unit->model;
    ModelCount count = model_count(m);
    buf_printf(b, "# The model `%s` as %s\n\n", m->name, target->title);
    buf_printf(b, "Written by `vwn emit` from %s: ", source_base_name(x->how->unit->path));
    buf_count(b, count.stored);
    buf_puts(b, " weights, for ");
    buf_count(b, x->how->batch);
    buf_puts(b, " sequences of ");
    buf_count(b, x->how->context);
    buf_puts(b, " tokens at a\ntime. It needs ");
    buf_count(b, (int64_t)(x->tensor_bytes + x->arena_bytes));
    buf_printf(b, " bytes of memory%s, and nothing of vwn. Numbers are float32%s.\n\n",
               x->how->cuda ? " on the GPU" : "",
               half_of(x) ? arena_printf(x->arena, ", but operands of large products %s", half_word(half_of(x))) : "");
    const HalfInfo *asked = half_info(train_half(x->how->unit->train));
    if (half_info(half_of(x))->scaled && x->how->train)
        buf_printf(b,
                   "The loss is scaled before it is differentiated. A step whose gradient leaves the range of %s "
                   "changes no\nweight, and the scale is halved; after many good steps it is doubled.\n\n",
                   asked->word);
    else if (!x->how->cuda && asked->scaled)
        buf_printf(b,
                   "The file asks for products in %s, with a scale of the loss; this program has neither "
                   "and computes in\nfloat32.\n\n",
                   asked->word);
    if (x->how->fast)
        buf_puts(b, "Gradients of embedding tables are added up in any order (`--fast`): the last bits of "
                    "their sums, and\nof what is learned from them, may be others in each run.\n\n");
    write_use(b, x);
    buf_printf(b,
               "\n## Files\n\n"
               "| file | what |\n| --- | --- |\n"
               "| `plan.c` | the model: tensors, where values lie in memory, one commented call "
               "per computation, in order |\n"
               "| `plan.h` | the names of the kernels |\n"
               "| `%s` | %zu kernels, generated: functions over rows |\n%s"
               "| `main.c` | reads texts and weights, evaluates%s |\n"
               "| `common.c` | memory, the end of the program, small functions |\n"
               "| `files.c`, `files.h` | texts and weights |\n"
               "| `loop.c`, `loop.h`, `progress.c`, `progress.h` | the order of work in a step and an evaluation; what "
               "is carried from step "
               "to step |\n"
               "| `safetensors.c`, `safetensors.h`, `json.c`, `json.h`, `utf8.h`, `file.c`, `file.h`, `region.h` | the "
               "format of "
               "weights |\n"
               "| `host_value.h`, `host.def` | what formulas read and are computed with |\n"
               "| `tokens.c`, `tokens.h`, `order.c`, `order.h` | tokens of a text, and which part of it comes when |\n"
               "| `loss_scale.h` | the scale of the loss, of programs in fp16 |\n"
               "| `" EXPORT_WEIGHTS "` | the initial weights, drawn under seed %" PRIu64 " |\n"
               "\nPrograms in `plan.c`:\n\n",
               target->kernels, n_kernels, target->files, x->how->train ? ", trains" : "", x->how->seed);
    for (size_t i = 0; i < x->n_programs; i++)
        buf_printf(b, "- `%s`: %s (%zu calls)\n", x->program[i].name, x->program[i].about,
                   x->program[i].plan->n_launch);
}

/* ---- the folder ---- */

static void add_file(Export *x, ExportFolder *out, const char *name, const Buf *b)
{
    vec_push(x->arena, out, (ExportFile){name, b->s, b->n});
}

static bool belongs(const ExportTarget *target, const char *file)
{
    if (!strncmp(file, "torch_", strlen("torch_")))
        return false;
    for (const char *const *other = target->without; *other; other++)
        if (!strcmp(*other, file))
            return false;
    return true;
}

void export_folder(ExportFolder *out, Ctx *ctx, Arena *arena, const ExportOptions *how)
{
    Export x = {.ctx = ctx, .arena = arena, .how = how};
    const ExportTarget *target = export_target(&x);
    plan_layout_init(&x.layout, arena);
    add_programs(&x);
    list_tensors(&x);
    ExportKernels k = list_kernels(&x);
    Buf plan = buf_new(arena), header = buf_new(arena), kernels = buf_new(arena), readme = buf_new(arena);
    write_plan(&plan, &x);
    write_plan_header(&header, &x, &k);
    target->put_kernels(&kernels, &x, &k);
    write_readme(&readme, &x, k.n);
    add_file(&x, out, "plan.c", &plan);
    add_file(&x, out, "plan.h", &header);
    add_file(&x, out, target->kernels, &kernels);
    add_file(&x, out, "README.md", &readme);
    for (size_t i = 0; i < emitted_count(); i++) {
        ExportFile f = {.name = emitted_path(i)};
        f.text = emitted_text(f.name, &f.length);
        if (belongs(target, f.name))
            vec_push(arena, out, f);
    }
}
