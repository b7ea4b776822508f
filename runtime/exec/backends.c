/* backends.c - see backends.h: the functions of each row. */
#include "backends.h"

#include "runtime/cpu/backend_cpu.h"
#include "runtime/cuda/backend_cuda.h"

static const struct {
    BackendOpen *open;
    BackendWhy *absence;
    BackendDescribe *describe;
} functions[BACKEND_COUNT] = {
#define BACKEND(id, ...) [BACKEND_##id] = {backend_##id##_open, backend_##id##_absence, backend_##id##_describe},
#include "runtime/base/backends.def"
#undef BACKEND
};

Status backend_open(BackendId id, Ctx *ctx, const BackendOptions *how, Backend **out, char why[512])
{
    return functions[id].open(ctx, how, out, why);
}

BackendAbsence backend_absence(BackendId id) { return functions[id].absence(); }

void backend_describe(Ctx *ctx, const BackendOptions *how, Buf *out)
{
    for (int id = 0; id < BACKEND_COUNT; id++)
        functions[id].describe(ctx, how, out);
}
