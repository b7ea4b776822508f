/* peak.c - copy bandwidth and multiply-add peak of the machine.
 *
 * In:  a backend.   Out: the best of some repetitions over a quarter of a second each.
 * The one idea: the yardsticks are two kernels like any other, compiled by the same compiler
 * with the same options and run by the same loop over rows, so that a kernel's share of them
 * tells of the kernel alone.
 */
#include "peak.h"

#include "runtime/base/machine.h"
#include "runtime/cpu/cpu.h"
#include "runtime/exec/exec.h"

#include <stdio.h>
#include <unistd.h>

/* Rows of n[0] vectors each. Stores go past the caches where the compiler has a way to say so.
 */
static const char copy_text[] = "/* copies, past the caches */\n"
                                "#if defined __AVX512F__ && !defined __clang__\n"
                                "#define LANES 16\n"
                                "#define STORE(p, v) __builtin_ia32_movntps512((float *)(p), (v))\n"
                                "#elif defined __AVX__ && !defined __clang__\n"
                                "#define LANES 8\n"
                                "#define STORE(p, v) __builtin_ia32_movntps256((float *)(p), (v))\n"
                                "#elif defined __SSE__ && !defined __clang__\n"
                                "#define LANES 4\n"
                                "#define STORE(p, v) __builtin_ia32_movntps((float *)(p), (v))\n"
                                "#elif defined __clang__\n"
                                "#define LANES 8\n"
                                "#define STORE(p, v) __builtin_nontemporal_store((v), (p))\n"
                                "#else\n"
                                "#define LANES 8\n"
                                "#define STORE(p, v) (*(p) = (v))\n"
                                "#endif\n"
                                "typedef float copy_vec __attribute__((vector_size(4 * LANES)));\n"
                                "void vwn_peak_copy(void *const *p, const __INT64_TYPE__ *n, const double *s,\n"
                                "                   __INT64_TYPE__ lo, __INT64_TYPE__ hi)\n"
                                "{\n"
                                "    const copy_vec *x = (const copy_vec *)p[0];\n"
                                "    copy_vec *y = (copy_vec *)p[1];\n"
                                "    __INT64_TYPE__ row = n[0] / LANES;\n"
                                "    for (__INT64_TYPE__ i = lo * row; i < hi * row; i++)\n"
                                "        STORE(y + i, x[i]);\n"
                                "}\n"
                                "#undef LANES\n"
                                "#undef STORE\n";

/* Twelve chains cover the latency of two units and leave room for the constants in 16
 * registers. `step` defines STEP(i): what is done to chain i. */
#define CHAINS_TEXT(name, step)                                                                                        \
    "#ifdef __AVX512F__\n"                                                                                             \
    "#define LANES 16\n"                                                                                               \
    "#elif defined __AVX__\n"                                                                                          \
    "#define LANES 8\n"                                                                                                \
    "#else\n"                                                                                                          \
    "#define LANES 4\n"                                                                                                \
    "#endif\n"                                                                                                         \
    "typedef float " name "_vec __attribute__((vector_size(4 * LANES)));\n"                                            \
    "#define EACH(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7) f(8) f(9) f(10) f(11)\n"                                  \
    "#define BEGIN(i) " name "_vec x##i = b + i;\n" step "#define ADD(i) sum += x##i;\n"                               \
    "void vwn_peak_" name "(void *const *p, const __INT64_TYPE__ *n, const double *s,\n"                               \
    "                   __INT64_TYPE__ lo, __INT64_TYPE__ hi)\n"                                                       \
    "{\n"                                                                                                              \
    "    " name "_vec a = (" name "_vec){} + (float)s[0], b = (" name "_vec){} + (float)s[1];\n"                       \
    "    for (__INT64_TYPE__ row = lo; row < hi; row++) {\n"                                                           \
    "        EACH(BEGIN)\n"                                                                                            \
    "        for (__INT64_TYPE__ i = 0; i < n[0] / LANES; i++) {\n"                                                    \
    "            EACH(STEP)\n"                                                                                         \
    "        }\n"                                                                                                      \
    "        " name "_vec sum = (" name "_vec){};\n"                                                                   \
    "        EACH(ADD)\n"                                                                                              \
    "        ((float *)p[0])[row] = sum[0] + sum[LANES - 1];\n"                                                        \
    "    }\n"                                                                                                          \
    "}\n"                                                                                                              \
    "#undef LANES\n"                                                                                                   \
    "#undef EACH\n"                                                                                                    \
    "#undef BEGIN\n"                                                                                                   \
    "#undef STEP\n"                                                                                                    \
    "#undef ADD\n"

static const char fma_text[] =
    "/* multiplies and adds in registers */\n" CHAINS_TEXT("fma", "#define STEP(i) x##i = x##i * a + b;\n");

/* Two multiply-adds a lane: of pairs in bf16 where the processor has them, else one after the
 * other in float32. Matrix units beside the vectors can be faster still. */
static const char bf16_text[] = "/* multiplies pairs in bf16 and adds them in float32 */\n" CHAINS_TEXT(
    "bf16", "#ifdef __AVX512BF16__\n"
            "#define STEP(i) __asm__(\"vdpbf16ps %2, %1, %0\" : \"+v\"(x##i) : \"v\"(a), \"v\"(b));\n"
            "#else\n"
            "#define STEP(i) x##i = x##i * a + b; x##i = x##i * a + b;\n"
            "#endif\n");

enum { COPY, FMA, BF16, YARDSTICKS };
enum { COPY_ROW = 1 << 16 };                             /* floats: 256 KiB */
enum { FMA_ROWS = 256, FMA_ROW = 1 << 14, CHAINS = 12 }; /* FMA_ROW floats a chain */
static const double LONG_ENOUGH = 0.25;                  /* seconds of each measurement */

/* ---- the machine ---- */

static bool read_line(const char *path, char *line, int size)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(line, size, f);
    if (f)
        fclose(f);
    return ok;
}

/* Processors in a mask such as "00000000,000000ff". */
static int count_mask(const char *mask)
{
    int n = 0;
    for (; *mask; mask++) {
        int digit = *mask >= '0' && *mask <= '9' ? *mask - '0' : *mask >= 'a' && *mask <= 'f' ? *mask - 'a' + 10 : 0;
        n += (digit & 1) + (digit >> 1 & 1) + (digit >> 2 & 1) + (digit >> 3 & 1);
    }
    return n;
}

/* Bytes of all last-level caches: the largest of the first processor, as often as there are. */
static uint64_t last_level_caches(void)
{
    enum { UNKNOWN = 32 << 20 };
    uint64_t most = 0;
    int sharing = 1;
    char path[96], line[512];
    for (int i = 0; i < 8; i++) {
        long long kib;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/size", i);
        if (!read_line(path, line, sizeof line) || sscanf(line, "%lldK", &kib) != 1 || (uint64_t)kib << 10 <= most)
            continue;
        most = (uint64_t)kib << 10;
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/shared_cpu_map", i);
        if (read_line(path, line, sizeof line))
            sharing = count_mask(line);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    if (!most)
        return UNKNOWN;
    return most * (uint64_t)(online > sharing && sharing > 0 ? (online + sharing - 1) / sharing : 1);
}

/* ---- measuring ---- */

typedef struct Yardstick {
    Backend *b;
    Module *module;
    uint32_t kernel;
    void *p[2];
    int64_t n[1];
    double s[2];
    int64_t rows;
} Yardstick;

/* Seconds of the fastest of several runs, less than 0 when one failed. */
static double fastest(const Yardstick *y)
{
    double best = -1, until = 0;
    for (int run = 0; run < 4 || clock_seconds() < until; run++) {
        double t = clock_seconds();
        if (y->b->ops->launch(y->b, y->module, y->kernel, y->p, y->n, y->s, NULL, y->rows, 1) != ST_OK ||
            y->b->ops->sync(y->b) != ST_OK)
            return -1;
        double took = clock_seconds() - t;
        if (run == 0) /* that one pays for pages and clocks */
            until = t + took + LONG_ENOUGH;
        else if (best < 0 || took < best)
            best = took;
    }
    return best;
}

static bool measure_copy(Yardstick y, Peak *out)
{
    int64_t total, left = memory_available(&total);
    uint64_t each = 2 * last_level_caches(), row = COPY_ROW * sizeof(float);
    if (left >= 0 && each > (uint64_t)left / 8) {
        each = (uint64_t)left / 8;
        out->cut = true;
    }
    y.kernel = COPY;
    y.rows = (int64_t)(each / row) + 1;
    y.n[0] = COPY_ROW;
    uint64_t bytes = (uint64_t)y.rows * row;
    bool ok = y.b->ops->alloc(y.b, bytes, &y.p[0]) == ST_OK;
    if (ok) {
        ok = y.b->ops->alloc(y.b, bytes, &y.p[1]) == ST_OK;
        double t = ok ? fastest(&y) : -1;
        ok = t > 0;
        out->copy = 2 * (double)bytes / t;
        out->copy_bytes = 2 * bytes;
        y.b->ops->free(y.b, y.p[1], bytes);
    }
    y.b->ops->free(y.b, y.p[0], bytes);
    return ok;
}

/* Operations per second of a kernel that does `each` of them for every float of n[0] in a
 * chain. */
static bool measure_chains(Yardstick y, uint32_t kernel, double each, double *out)
{
    y.kernel = kernel;
    y.rows = FMA_ROWS;
    y.n[0] = FMA_ROW;
    y.s[0] = 0.5;
    y.s[1] = 1;
    uint64_t bytes = FMA_ROWS * sizeof(float);
    bool ok = y.b->ops->alloc(y.b, bytes, &y.p[0]) == ST_OK;
    double t = ok ? fastest(&y) : -1;
    *out = each * CHAINS * FMA_ROW * FMA_ROWS / t;
    y.b->ops->free(y.b, y.p[0], bytes);
    return ok && t > 0;
}

bool peak_measure(Backend *b, Arena *arena, Half half, Peak *out, char why[512])
{
    const bool bf16 = target_multiplies(b->target, half); /* that is the type of which a CPU has products */
    static const struct {
        const char *name, *text;
        size_t length;
    } kernels[YARDSTICKS] = {
        [COPY] = {"vwn_peak_copy", copy_text, sizeof copy_text - 1},
        [FMA] = {"vwn_peak_fma", fma_text, sizeof fma_text - 1},
        [BF16] = {"vwn_peak_bf16", bf16_text, sizeof bf16_text - 1},
    };
    *out = (Peak){0};
    if (b->ops->mark)
        return peak_of_device(b, half, out, why);
    Plan *plan = NEW(arena, Plan);
    plan->prelude = "";
    plan->n_kernel = bf16 ? YARDSTICKS : BF16;
    plan->kernel = NEW_ARRAY(arena, PlanKernel, YARDSTICKS);
    for (size_t i = 0; i < plan->n_kernel; i++)
        plan->kernel[i] = (PlanKernel){
            .name = name_str(b->ctx, kernels[i].name), .text = kernels[i].text, .length = kernels[i].length};
    BuildReport report = {0};
    Yardstick y = {.b = b};
    b->why[0] = 0;
    if (b->ops->build(b, plan, &y.module, &report) != ST_OK) {
        snprintf(why, 512, "%s", report.why);
        return false;
    }
    bool ok = measure_copy(y, out) && measure_chains(y, FMA, 2, &out->fma) &&
              (!bf16 || measure_chains(y, BF16, 4, &out->of_half));
    out->half = bf16 ? half : HALF_NONE;
    b->ops->drop(b, y.module);
    if (!ok)
        snprintf(why, 512, "%s", b->why);
    return ok;
}
