/* host_emu.c - see host_emu.h. */
#include "host_emu.h"

#include "backend_emu.h"

#include <stdio.h>
#include <stdlib.h>

static const PlanKernel *const *kernels;
static EmuKernel *made;
static size_t n_made;

static bool compile(const Plan *first, const PlanKernel *const *kernel, size_t n, char why[512])
{
    EmuText *text = calloc(n + 1, sizeof *text);
    free(made);
    made = calloc(n + 1, sizeof *made);
    kernels = kernel;
    n_made = n;
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        text[i] = (EmuText){kernel[i]->name, kernel[i]->text, kernel[i]->length};
        if (!kernel[i]->grid.threads) {
            snprintf(why, 512, "%s has no text for a device", kernel[i]->name);
            good = false;
        }
    }
    good = good && emu_compile_watched(first->device_prelude, first->device_prelude_length, text, n, made, why);
    free(text);
    return good;
}

static const char *launch(const PlanKernel *kernel, void **argument, int64_t blocks, uint64_t shared, int64_t chunk)
{
    size_t at = 0;
    while (at < n_made && strcmp(kernels[at]->name, kernel->name) != 0)
        at++;
    EmuOptions how = {
        .descending = chunk > 0, .lazy = chunk > 0, .blocks_max = kernel->grid.whole ? 0 : (uint32_t)chunk};
    return emu_launch(&made[at], argument, &how, (uint32_t)blocks, kernel->grid.threads, shared);
}

const HostDevice host_emu = {compile, launch};
