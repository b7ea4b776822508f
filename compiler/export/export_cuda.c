/* export_cuda.c - see export.h: what a folder for a GPU has of its own.
 *
 * In:  plans made for a device.     Out: kernels.cu, calls with grids, words of the README.
 * The one idea: kernels.cu is the text that is compiled at run time elsewhere, and a table of what
 * a launch has to know of each kernel.
 */
#include <inttypes.h>

#include "compiler/plan/plan.h"
#include "export_build.h"

/* ---- what a GPU has no kernel for ---- */

static _Noreturn void refuse(const Export *x, const Launch *l, const char *what)
{
    Buf b = buf_new(x->arena);
    bool placed = export_place(&b, x->ctx, l->span);
    ctx_raise(x->ctx, ST_INPUT,
              "there is no CUDA kernel yet for %s, which %s%s%s computes: `vwn emit c` has all "
              "kernels",
              what, l->name && *l->name ? l->name : "the model", placed ? " at " : "", placed ? b.s : "");
}

/* The first comment of a text, which says what the kernel computes. */
static const char *about(const Export *x, const PlanKernel *k)
{
    const char *from = strstr(k->text, "/* "), *to = from ? strpbrk(from, "\n:") : NULL;
    if (!to)
        return k->name;
    return arena_printf(x->arena, "`%.*s`", (int)(to - from - 3), from + 3);
}

static void check_plan(const Export *x, const Plan *plan)
{
    for (size_t i = 0; i < plan->n_launch; i++) {
        const Launch *l = &plan->launch[i];
        if (l->kind == LAUNCH_EXPERT)
            refuse(x, l, "products by expert");
        const PlanKernel *k = l->kind == LAUNCH_KERNEL ? &plan->kernel[l->kernel] : NULL;
        if (k && !k->grid.threads)
            refuse(x, l, about(x, k));
        if (k && k->grid.whole && plan_blocks(&k->grid, l->rows) > INT32_MAX)
            ctx_raise(x->ctx, ST_INPUT,
                      "%s has %lld parts of a result for a block of threads each, and a GPU starts %d blocks at once: "
                      "fewer sequences "
                      "(`--batch`) have fewer",
                      about(x, k), (long long)plan_blocks(&k->grid, l->rows), (int)INT32_MAX);
    }
}

/* ---- kernels.cu ---- */

/* The programs' preludes begin alike. */
static const Plan *prelude_of(const Export *x)
{
    const Plan *most = x->program[0].plan;
    for (size_t i = 1; i < x->n_programs; i++)
        if (x->program[i].plan->device_prelude_length > most->device_prelude_length)
            most = x->program[i].plan;
    for (size_t i = 0; i < x->n_programs; i++) {
        const Plan *p = x->program[i].plan;
        if (memcmp(p->device_prelude, most->device_prelude, p->device_prelude_length) != 0)
            vwn_bug(x->ctx, "export: two programs have different preludes");
    }
    return most;
}

void export_cuda_kernels(Buf *b, const char *prelude, size_t length, const ExportKernels *k)
{
    buf_put(b, prelude, length);
    for (size_t i = 0; i < k->n; i++) {
        buf_printf(b, "\n%s", k->kernel[i]->where ? k->kernel[i]->where : "");
        buf_put(b, k->kernel[i]->text, k->kernel[i]->length);
    }
    buf_puts(b, "\n/* ---- what launches read ---- */\n\n#include \"blocks.h\"\n\n"
                "#ifndef CODE\n#define CODE(name) (const void *)name\n#endif\n\n"
                "/* name, code, threads of a block; arguments: buffers, integers, numbers */\n"
                "extern \"C\" const Kernel kernel[] = {\n");
    for (size_t i = 0; i < k->n; i++) {
        const PlanKernel *e = k->kernel[i];
        buf_printf(b, "    {\"%s\", CODE(%s), %u, %u, %u, %u},\n", e->name, e->name, (unsigned)e->grid.threads,
                   (unsigned)e->n_buffer, (unsigned)e->n_int, (unsigned)e->n_scalar);
    }
    buf_puts(b, "    {0, 0, 0, 0, 0, 0}};\n");
}

static void put_kernels(Buf *b, const Export *x, const ExportKernels *k)
{
    buf_printf(b,
               "/* kernels.cu - the %zu kernels of the model `%s`, each a function over rows.\n"
               " *\n"
               " * In:  buffers p0 ..., sizes n0 ..., numbers s0 ..., how many rows there are.\n"
               " * Out: these rows computed, by the blocks that plan.c says. A kernel's name is a "
               "hash of\n"
               " * its text. Kernels need no header; the table behind them is what launches "
               "read. */\n\n",
               k->n, x->how->unit->model->name);
    const Plan *most = prelude_of(x);
    export_cuda_kernels(b, most->device_prelude, most->device_prelude_length, k);
}

static void put_names(Buf *b, const ExportKernels *k)
{
    buf_puts(b, "/* Their places in the table `kernel`. */\nenum {\n");
    for (size_t i = 0; i < k->n; i++)
        buf_printf(b, "    %s,\n", k->kernel[i]->name);
    buf_puts(b, "};\n");
}

/* ---- calls ---- */

static void put_call(Buf *b, const PlanKernel *k, const Launch *l)
{
    int64_t *n = NEW_ARRAY(b->arena, int64_t, l->n_int + 1);
    for (uint32_t i = 0; i < l->n_int; i++)
        n[i] = l->ints[i].value; /* shared memory is of sizes, which are constants */
    buf_printf(b, "blocks(run, %s, %" PRId64 ", %" PRId64 ", %" PRIu64, k->name, l->rows,
               plan_blocks(&k->grid, l->rows), plan_shared_bytes(&k->grid, n));
}

/* ---- README.md ---- */

static void put_use(Buf *b, const Export *x)
{
    (void)x;
    buf_puts(b, "    cmake -S . -B build && cmake --build build && cp build/model .\n");
}

static const char *const cpu_files[] = {"Makefile", "compute.c", "device.c", "rows.h", "threads.c", "threads.h", NULL};
const ExportTarget export_gpu = {
    .calls = "blocks.h",
    .kernels = "kernels.cu",
    .without = cpu_files,
    .title = "CUDA C",
    .files = "| `compute_cuda.c`, `compute.h`, `blocks.h`, `device_call.h` | the calls: kernels by blocks of "
             "threads, products of matrices by cuBLAS |\n"
             "| `CMakeLists.txt` | how it is built: with CMake, a C compiler, and of the CUDA "
             "toolkit nvcc and cuBLAS |\n",
    .put_call = put_call,
    .put_kernels = put_kernels,
    .put_names = put_names,
    .put_use = put_use,
    .check = check_plan,
};
