/* case_driver.c - see case_device.h: machine code, launched by a GPU's driver. */
#include "case_device.h"

#include "compiler/portable/device_call.h"
#include "runtime/cuda/cuda_api.h"
#include "runtime/cuda/nvrtc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    CudaDriver driver;
    CudaApi api;
    CudaStream stream;
    char arch[NVRTC_ARCH_NAME];
    char name[128];
    struct {
        char file[PATH];
        CudaModule module;
    } loaded[64];
    size_t n_loaded;
} gpu;

static void must(int error, const char *what)
{
    char text[160];
    if (!error)
        return;
    cuda_error_text(&gpu.driver, error, text);
    stop(1, "%s: %s", what, text);
}

const char *device_name(void) { return gpu.name; }
const char *device_arch(void) { return gpu.arch; }
bool device_counts_steps(void) { return false; }

void device_open(void)
{
    char why[512] = "";
    CudaDevice d;
    CudaContext context;
    int handle;
    if (!cuda_driver_open(&gpu.driver, why) || why[0])
        stop(NO_GPU, "%s", why);
    if (!gpu.driver.devices || gpu.driver.device(&handle, 0) || !cuda_device(&gpu.driver, 0, &d))
        stop(NO_GPU, "the driver has no GPU");
    if (!cuda_api_open(&gpu.api, why))
        stop(NO_GPU, "%s", why);
    /* Machine code runs where the first number of its architecture is the same; what is of sm_90a there alone. */
    snprintf(gpu.arch, sizeof gpu.arch, "%s", d.capability == 90 ? "sm_90a" : d.capability / 10 == 8 ? "sm_80" : "");
    snprintf(gpu.name, sizeof gpu.name, "%s", d.name);
    if (!gpu.arch[0])
        stop(NO_GPU, "%s (sm_%d) runs neither the code for sm_80 nor that for sm_90a", d.name, d.capability);
    must(gpu.api.retain(&context, handle), "a context");
    must(gpu.api.set_current(context), "a context");
    must(gpu.api.new_stream(&gpu.stream, CUDA_STREAM_NON_BLOCKING), "a stream");
}

/* The cubin that has the kernel, by the list of the item; false: it is not for this GPU. */
static bool find_cubin(const char *item, const char *kernel, char file[PATH])
{
    char path[PATH], line[256], name[80], cubin[100];
    snprintf(path, sizeof path, "%s/%s.list", item, gpu.arch);
    FILE *f = fopen(path, "r");
    bool found = false;
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "%79s %99s", name, cubin) == 2 && !strcmp(name, kernel);
    if (f)
        fclose(f);
    snprintf(file, PATH, "%.480s/%.99s", item, found ? cubin : "");
    return found;
}

static CudaModule load(const char *file)
{
    for (size_t i = 0; i < gpu.n_loaded; i++)
        if (!strcmp(gpu.loaded[i].file, file))
            return gpu.loaded[i].module;
    if (gpu.n_loaded == COUNT_OF(gpu.loaded)) { /* of items before this one */
        for (size_t i = 0; i < gpu.n_loaded; i++)
            must(gpu.api.unload(gpu.loaded[i].module), "unloading");
        gpu.n_loaded = 0;
    }
    uint64_t n;
    char *bytes = read_file(file, &n);
    CudaModule module;
    must(gpu.api.load(&module, bytes), "loading a cubin");
    free(bytes);
    snprintf(gpu.loaded[gpu.n_loaded].file, PATH, "%s", file);
    gpu.loaded[gpu.n_loaded++].module = module;
    return module;
}

static void make_map(const CaseMap *m, CudaAddress memory, CudaMap *out)
{
    uint64_t extent[4], stride[4];
    const uint32_t one[4] = {1, 1, 1, 1};
    call_map(4, sizeof(uint16_t), m->extent, m->stride, extent, stride);
    must(gpu.api.make_map(out, m->type == CASE_FP16 ? CUDA_MAP_FP16 : CUDA_MAP_BF16, 4, (void *)(uintptr_t)memory,
                          extent, stride + 1, m->box, one, CUDA_MAP_PLAIN, CUDA_MAP_TURNED_128, CUDA_MAP_L2_128,
                          CUDA_MAP_ZEROS),
         "a tensor map");
}

/* Memory of each region lies apart, so that a checker sees its bounds. */
static void put_up(const Case *c, CudaAddress *memory)
{
    const CaseHead *h = &c->head;
    for (uint32_t i = 0; i < h->n_region; i++)
        must(gpu.api.take(&memory[i], c->region[i].bytes ? c->region[i].bytes : 1), "memory");
    put_places(c, memory);
    for (uint32_t i = 0; i < h->n_region; i++)
        if (c->region[i].bytes)
            must(gpu.api.up(memory[i], c->before[i], c->region[i].bytes, gpu.stream), "copying to the GPU");
}

static void launch(const Case *c, CudaKernel function, const CudaAddress *memory)
{
    static CallArguments arguments;
    static CudaMap map[MAPS];
    const CaseHead *h = &c->head;
    void **p = room(h->n_buffer * sizeof *p);
    for (uint32_t i = 0; i < h->n_buffer; i++)
        p[i] = (void *)(uintptr_t)(memory[c->buffer[i].region] + c->buffer[i].shift);
    size_t count = call_arguments(&arguments, p, h->n_buffer, c->n, h->n_int, c->s, h->n_number, &h->rows);
    if (!count || count + h->n_map > CALL_ARGUMENTS || h->n_map > MAPS)
        stop(1, "too many arguments");
    for (uint32_t i = 0; i < h->n_map; i++) {
        make_map(&c->map[i], (CudaAddress)(uintptr_t)p[c->map[i].buffer], &map[i]);
        arguments.at[count + i] = &map[i];
    }
    if (h->shared > CALL_SHARED_UNASKED)
        must(gpu.api.set_attribute(function, CUDA_SHARED_DYNAMIC, (int)h->shared), "asking for shared memory");
    must(gpu.api.launch(function, call_blocks(h->blocks), 1, 1, h->threads, 1, 1, (unsigned)h->shared, gpu.stream,
                        arguments.at, NULL),
         "launching");
    must(gpu.api.wait_stream(gpu.stream), "computing");
    free(p);
}

bool device_run(const Case *c, const char *item, char *const *got)
{
    char file[PATH];
    const CaseHead *h = &c->head;
    CudaKernel function;
    if (!find_cubin(item, h->kernel, file))
        return false;
    must(gpu.api.function(&function, load(file), h->kernel), "finding the kernel");
    CudaAddress *memory = room(h->n_region * sizeof *memory);
    put_up(c, memory);
    launch(c, function, memory);
    for (uint32_t i = 0; i < h->n_region; i++)
        if (c->region[i].bytes)
            must(gpu.api.down(got[i], memory[i], c->region[i].bytes, gpu.stream), "copying from the GPU");
    must(gpu.api.wait_stream(gpu.stream), "copying from the GPU");
    for (uint32_t i = 0; i < h->n_region; i++)
        must(gpu.api.give(memory[i]), "giving memory back");
    free(memory);
    return true;
}
