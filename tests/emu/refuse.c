/* refuse.c - what a device's backend refuses: sizes that a text was not printed for, and memory that is not its.
 *
 * In:  two kernels written by hand: one right, one that looks at a number behind its buffer and computes the same.
 * Out: `N passed, N failed`; 77 without a C++ compiler. A launch of another size is refused before it runs, and what
 *      is seen behind a buffer ends the process in a build with the address sanitizer. No number shows it: only the
 *      guard does, so without the sanitizer the kernel must look right, else this would test something else.
 * When: quick.
 */
#include "backend_emu.h"

#include "support/sanitized.h"
#include "compiler/print/emit.h"
#include "support/harness.h"
#include "runtime/plans.h"

#include <sys/wait.h>

#define TRIPLE(name, also)                                                                                             \
    "KERNEL(32) " name "(const real *__restrict__ p0, real *__restrict__ p1, int64_t n0, int64_t rows)\n"              \
    "{\n    for (int64_t r = blockIdx.x * 32 + threadIdx.x; r < rows; r += gridDim.x * 32)\n"                          \
    "        p1[r] = (real)n0 * p0[r];\n" also "}\n"

enum { ROWS = 48, SIZE = 4, MOST = 8 };

typedef struct Device {
    Backend *b;
    Module *m;
    HandPlan plan;
    void *memory[2];
} Device;

static bool open_device(Ctx *ctx, Device *d, char why[512])
{
    static const PlanSize size[] = {{.multiple = SIZE, .most = MOST}};
    size_t length;
    BuildReport report;
    hand_plan(&d->plan, ctx,
              (const char *const[]){"k_triple", TRIPLE("k_triple", ""), "k_behind",
                                    TRIPLE("k_behind", "    if (p0[rows] == 12345.0f)\n        p1[0] = 0;\n"), NULL});
    d->plan.plan.device_prelude = prelude_cuda(ctx->program, &length);
    d->plan.plan.device_prelude_length = length;
    for (size_t i = 0; i < d->plan.plan.n_kernel; i++) {
        PlanKernel *k = &d->plan.kernel[i];
        k->n_buffer = 2;
        k->n_int = 1;
        k->size = size;
        k->grid = (PlanGrid){.threads = 32, .units = 32};
    }
    bool ok = backend_emu_open(ctx, &(EmuOptions){0}, &d->b, why) == ST_OK &&
              d->b->ops->build(d->b, &d->plan.plan, &d->m, &report) == ST_OK;
    for (int i = 0; ok && i < 2; i++)
        ok = d->b->ops->alloc(d->b, ROWS * 4, &d->memory[i]) == ST_OK;
    for (int i = 0; ok && i < ROWS; i++)
        ((float *)d->memory[0])[i] = (float)i;
    return ok;
}

static void close_device(Device *d)
{
    for (int i = 0; i < 2; i++)
        d->b->ops->free(d->b, d->memory[i], ROWS * 4);
    d->b->ops->close(d->b);
}

static Status launch(Device *d, uint32_t kernel, int64_t n)
{
    memset(d->memory[1], 0, ROWS * 4);
    return d->b->ops->launch(d->b, d->m, kernel, d->memory, &n, NULL, NULL, ROWS, 1);
}

static bool is(const Device *d, float times)
{
    for (int i = 0; i < ROWS; i++)
        if (((const float *)d->memory[1])[i] != times * (float)i)
            return false;
    return true;
}

static void test_sizes(Harness *h, Device *d)
{
    static const int64_t wrong[] = {3, 5, 12, -1};
    CHECK(h, launch(d, 0, 4) == ST_OK && is(d, 4));
    CHECK(h, launch(d, 0, 8) == ST_OK && is(d, 8));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CHECK(h, launch(d, 0, wrong[i]) == ST_BUG && strstr(d->b->why, "a size that a kernel was not printed for"));
        CHECK(h, is(d, 0)); /* nothing has run */
        d->b->why[0] = 0;
    }
    CHECK(h, launch(d, 0, 4) == ST_OK && is(d, 4));
}

/* In a process of its own, whose report goes nowhere. True when it has ended well with the right numbers. */
static bool runs(Device *d, uint32_t kernel)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(2);
        _exit(launch(d, kernel, 4) != ST_OK || !is(d, 4));
    }
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

int main(void)
{
    Harness h = {0};
    char why[512];
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    static Device d;
    if (CHECK(&h, open_device(ctx, &d, why))) {
        test_sizes(&h, &d);
        CHECK(&h, runs(&d, 0));
        CHECK(&h, runs(&d, 1) == !SANITIZED);
        close_device(&d);
    }
    ctx_free(ctx);
    return harness_end(&h);
}
