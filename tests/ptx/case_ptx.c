/* case_ptx.c - see tests/gpu/case_device.h: the texts of kernels as NVRTC makes PTX of them, run by the interpreter. Each launch has
 * another order of warps and copies. */
#include "gpu/case_device.h"

#include "compiler/portable/device_call.h"
#include "backend_ptx.h"
#include "ptx.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNED = 512 };

static struct {
    char item[PATH]; /* whose kernels these are */
    PtxModule *module;
    uint64_t launches;
} run;

const char *device_name(void) { return "PTX"; }
const char *device_arch(void) { return "sm_80, sm_90a where a case is for that"; }
bool device_counts_steps(void) { return true; }

void device_open(void)
{
    char why[512];
    if (!ptx_possible(why))
        stop(NO_GPU, "%s", why);
}

/* All kernels of an item, behind the prelude. */
static void load(const char *item)
{
    char path[PATH], why[PTX_WHY];
    glob_t found;
    uint64_t n;
    if (!strcmp(run.item, item))
        return;
    if (run.module)
        ptx_free(run.module);
    snprintf(path, sizeof path, "%.560s/../prelude.cu", item);
    char *text = read_file(path, &n);
    snprintf(path, sizeof path, "%.560s/k_*.cu", item);
    if (glob(path, 0, NULL, &found) != 0)
        stop(1, "no texts in %s", item);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        uint64_t more;
        char *kernel = read_file(found.gl_pathv[i], &more);
        text = realloc(text, n + more + 2);
        if (!text)
            stop(1, "out of memory");
        text[n++] = '\n';
        memcpy(text + n, kernel, more + 1);
        n += more;
        free(kernel);
    }
    globfree(&found);
    char *ptx = nvrtc_ptx(text, strstr(item, "-sm_90a") ? "sm_90a" : "sm_80", why);
    run.module = ptx ? ptx_module(ptx, why) : NULL;
    if (!run.module)
        stop(1, "%s: %s", item, why);
    snprintf(run.item, sizeof run.item, "%s", item);
    free(ptx);
    free(text);
}

bool device_run(const Case *c, const char *item, char *const *got)
{
    static CallArguments arguments;
    const CaseHead *h = &c->head;
    PtxMemory *memory = room(h->n_region * sizeof *memory);
    uint64_t *begin = room(h->n_region * sizeof *begin);
    void **p = room(h->n_buffer * sizeof *p);
    PtxMap map[MAPS];
    char why[PTX_WHY];
    load(item);
    for (uint32_t i = 0; i < h->n_region; i++) {
        memory[i] = (PtxMemory){aligned_alloc(ALIGNED, (c->region[i].bytes / ALIGNED + 1) * ALIGNED),
                                c->region[i].bytes, c->region[i].written};
        if (!memory[i].at)
            stop(1, "out of memory");
        begin[i] = (uint64_t)(uintptr_t)memory[i].at;
    }
    put_places(c, begin);
    for (uint32_t i = 0; i < h->n_region; i++)
        memcpy(memory[i].at, c->before[i], c->region[i].bytes);
    for (uint32_t i = 0; i < h->n_buffer; i++)
        p[i] = memory[c->buffer[i].region].at + c->buffer[i].shift;
    size_t count = call_arguments(&arguments, p, h->n_buffer, c->n, h->n_int, c->s, h->n_number, &h->rows);
    if (!count || h->n_map > MAPS)
        stop(1, "too many arguments");
    for (uint32_t i = 0; i < h->n_map; i++) {
        const CaseMap *m = &c->map[i];
        ptx_map(&map[i], p[m->buffer], m->extent, m->stride, m->box);
    }
    const PtxLaunch launch = {.kernel = h->kernel,
                              .blocks = call_blocks(h->blocks),
                              .shared = h->shared,
                              .seed = run.launches++,
                              .n_argument = count,
                              .n_map = h->n_map,
                              .n_memory = h->n_region,
                              .argument = (const void *const *)arguments.at,
                              .map = map,
                              .memory = memory};
    if (!ptx_launch(run.module, &launch, why))
        stop(1, "%s", why);
    for (uint32_t i = 0; i < h->n_region; i++) {
        memcpy(got[i], memory[i].at, c->region[i].bytes);
        free(memory[i].at);
    }
    free(memory);
    free(begin);
    free(p);
    return true;
}
