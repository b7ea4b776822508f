/* faults.c - faults planted in kernels: the emulator, or what the kernel computes, must show each of them.
 *
 * In:  three kernels with the prelude of printed ones: a block that shares a row, a warp that shares a row, tiles of a
 *      product on tensor cores with copies in flight; the texts that are changed in them.
 * Out: `N passed, N failed`. Unchanged, a kernel is right with threads in both orders and with copies that arrive at
 * once and late; changed, it is wrong or stopped in one of the four.
 * When: quick.
 */
#include "backend_emu.h"

#include "support/half_bits.h"

#include "compiler/print/emit.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>

/* ---- the kernels ---- */

/* out[r] = e^(x - max) / sum, a block a row; the reversed row goes through shared memory. */
static const char block_text[] =
    "KERNEL(128) @NAME@(const real *__restrict__ p0, real *__restrict__ p1, int64_t n0, int64_t rows)\n"
    "{\n"
    "    enum { LANES = 128, UNITS = 1, WARPS = 4 };\n"
    "    const int lane = threadIdx.x % LANES, unit = threadIdx.x / LANES;\n"
    "    DYN_SMEM(memory);\n"
    "    unsigned char *shared = memory;\n"
    "    __shared__ integer warps[2 * WARPS];\n"
    "    real *const t0 = vwn_array<real>(shared, n0, UNITS, unit);\n"
    "    for (int64_t r = blockIdx.x; r < rows; r += gridDim.x) {\n"
    "        real x1 = -INFINITE;\n"
    "        for (int64_t i = lane; i < n0; i += LANES) {\n"
    "            x1 = p0[r * n0 + i] > x1 ? p0[r * n0 + i] : x1;\n"
    "            t0[n0 - 1 - i] = p0[r * n0 + i];\n"
    "        }\n"
    "        x1 = vwn_warp_max(x1);\n"
    "        vwn_warp_put(warps, x1);\n"
    "        __syncthreads(); /* 1 */\n"
    "        x1 = vwn_warps_max<WARPS>(warps, x1);\n"
    "        real x2 = 0;\n"
    "        for (int64_t i = lane; i < n0; i += LANES)\n"
    "            x2 += vwn_exp(p0[r * n0 + i] - x1);\n"
    "        x2 = vwn_warp_sum(x2);\n"
    "        vwn_warp_put(warps + WARPS, x2);\n"
    "        __syncthreads(); /* 2 */\n"
    "        x2 = vwn_warps_sum<WARPS>(warps + WARPS, x2);\n"
    "        for (int64_t i = lane; i < n0; i += LANES)\n"
    "            p1[r * n0 + i] = vwn_exp(t0[i] - x1) / x2;\n"
    "        __syncthreads(); /* 3 */\n"
    "    }\n"
    "}\n";

/* The same with a warp a row. */
static const char warp_text[] =
    "KERNEL(64) @NAME@(const real *__restrict__ p0, real *__restrict__ p1, int64_t n0, int64_t rows)\n"
    "{\n"
    "    enum { LANES = 32, UNITS = 2 };\n"
    "    const int lane = threadIdx.x % LANES, unit = threadIdx.x / LANES;\n"
    "    DYN_SMEM(memory);\n"
    "    unsigned char *shared = memory;\n"
    "    real *const t0 = vwn_array<real>(shared, n0, UNITS, unit);\n"
    "    for (int64_t r = blockIdx.x * UNITS + unit; r < rows; r += gridDim.x * UNITS) {\n"
    "        real x1 = -INFINITE;\n"
    "        for (int64_t i = lane; i < n0; i += LANES)\n"
    "            x1 = p0[r * n0 + i] > x1 ? p0[r * n0 + i] : x1;\n"
    "        x1 = vwn_warp_max(x1);\n"
    "        real x2 = 0;\n"
    "        for (int64_t i = lane; i < n0; i += LANES)\n"
    "            x2 += vwn_exp(p0[r * n0 + i] - x1);\n"
    "        x2 = vwn_warp_sum(x2);\n"
    "        for (int64_t i = lane; i < n0; i += LANES)\n"
    "            t0[n0 - 1 - i] = vwn_exp(p0[r * n0 + i] - x1) / x2;\n"
    "        __syncwarp();\n"
    "        for (int64_t i = lane; i < n0; i += LANES)\n"
    "            p1[r * n0 + i] = t0[i];\n"
    "        __syncwarp();\n"
    "    }\n"
    "}\n";

/* out (32 x 16) = a (32 x n0) b (16 x n0)^T in steps of 16 numbers of bf16, two warps, two buffers. The twins of the
 * assembly are the emulator's. */
static const char tile_text[] =
    "KERNEL(64) @NAME@(const bf16 *__restrict__ p0, const bf16 *__restrict__ p1, real *__restrict__ p2,\n"
    "    int64_t n0, int64_t rows)\n"
    "{\n"
    "    enum { PITCH = 24 };\n"
    "    __shared__ __align__(16) bf16 a[2][32 * PITCH], b[2][16 * PITCH];\n"
    "    const int t = threadIdx.x, lane = t % 32, warp = t / 32;\n"
    "    const int64_t steps = n0 / 16;\n"
    "    real c[2][4] = {};\n"
    "    for (int64_t i = 0; i <= steps; i++) {\n"
    "        if (i < steps) {\n"
    "            bf16 *const x = a[i % 2], *const y = b[i % 2];\n"
    "            emu_copy_async(x + t / 2 * PITCH + t % 2 * 8, p0 + t / 2 * n0 + i * 16 + t % 2 * 8, 16, 16);\n"
    "            if (t < 32)\n"
    "                emu_copy_async(y + t / 2 * PITCH + t % 2 * 8, p1 + t / 2 * n0 + i * 16 + t % 2 * 8, 16, 16);\n"
    "        }\n"
    "        emu_copy_commit();\n"
    "        if (i == 0)\n"
    "            continue;\n"
    "        emu_copy_wait(1);\n"
    "        __syncthreads(); /* arrived */\n"
    "        const bf16 *const x = a[(i - 1) % 2] + warp * 16 * PITCH, *const y = b[(i - 1) % 2];\n"
    "        unsigned u[4], v[4];\n"
    "        emu_load_matrix(u, x + lane % 16 * PITCH + lane / 16 * 8, false);\n"
    "        emu_load_matrix(v, y + (lane % 8 + lane / 16 * 8) * PITCH + lane / 8 % 2 * 8, false);\n"
    "        emu_mma(c[0], u, v, false);\n"
    "        emu_mma(c[1], u, v + 2, false);\n"
    "        __syncthreads(); /* read */\n"
    "    }\n"
    "    emu_copy_wait(0);\n"
    "    for (int j = 0; j < 2; j++)\n"
    "        for (int i = 0; i < 4; i++)\n"
    "            p2[(warp * 16 + lane / 4 + i / 2 * 8) * 16 + j * 8 + lane % 4 * 2 + i % 2] = c[j][i];\n"
    "}\n";

typedef enum Which { BLOCK, WARP, TILE } Which;
static const char *const texts[] = {block_text, warp_text, tile_text};
enum { ROWS = 5, WIDTH = 150, DEPTH = 64, MARK = 16 };

/* ---- what is changed ---- */

typedef struct Fault {
    const char *name;
    Which which;
    const char *from, *to;
} Fault;
static const Fault faults[] = {
    {"a missing barrier of a block", BLOCK, "__syncthreads(); /* 2 */", ""},
    {"a missing barrier between rows", BLOCK, "__syncthreads(); /* 3 */", ""},
    {"a missing barrier of a warp", WARP, "        __syncwarp();\n        for", "        for"},
    {"a barrier that half of the threads pass", BLOCK, "__syncthreads(); /* 3 */", "if (lane < 64) __syncthreads();"},
    {"threads at two barriers", BLOCK, "__syncthreads(); /* 3 */",
     "if (lane < 64)\n            __syncthreads();\n        else\n            __syncthreads();"},
    {"a store behind the buffer", WARP, "p1[r * n0 + i] =", "p1[r * n0 + i + 1] ="},
    {"a load behind the buffer", BLOCK, "vwn_exp(p0[r * n0 + i] - x1)", "vwn_exp(p0[r * n0 + i + 1] - x1)"},
    {"a store behind shared memory", BLOCK, "t0[n0 - 1 - i] = p0", "t0[n0 + 3 - i] = p0"},
    {"a wrong index of a fragment", TILE, "lane / 4 + i / 2 * 8) * 16", "lane / 4 + i % 2 * 8) * 16"},
    {"fragments of the wrong rows", TILE, "lane % 16 * PITCH + lane / 16 * 8", "lane % 8 * PITCH + lane / 8 % 2 * 8"},
    {"a missing wait", TILE, "emu_copy_wait(1);", ""},
    {"a wait for one group too few", TILE, "emu_copy_wait(1);", "emu_copy_wait(2);"},
    {"copies into a buffer that others read", TILE, "__syncthreads(); /* read */", ""},
    {"copies that others have not seen arrive", TILE, "__syncthreads(); /* arrived */", ""},
    {"a copy to a crooked place", TILE, "PITCH = 24", "PITCH = 20"},
    {"a shuffle of half a warp", WARP, "x2 = vwn_warp_sum(x2);", "x2 += __shfl_xor_sync(0xffffu, x2, 16);"},
    {"a shuffle that half of a warp reaches", WARP, "x2 = vwn_warp_sum(x2);",
     "if (lane < 16)\n            x2 = vwn_warp_sum(x2);"},
    {"elements that nothing writes", WARP, "i += LANES)\n            p1", "i += 2 * LANES)\n            p1"},
    {"a sum over half of a warp", WARP, "x2 = vwn_warp_sum(x2);", "x2 += vwn_from_lane(x2, lane ^ 1);"},
    {"a sum without one warp", BLOCK, "vwn_warps_sum<WARPS>(", "vwn_warps_sum<WARPS - 1>("},
    /* times 0: only a number that is none shows */
    {"dynamic shared memory that nothing wrote", BLOCK, "(t0[i] - x1) / x2;", "(t0[i] - x1) / x2 + 0 * t0[n0];"},
    {"static shared memory that nothing wrote", BLOCK, "x1 = vwn_warp_max(x1);",
     "x1 = vwn_warp_max(x1) + 0 * *(const real *)(warps + 3);"},
    {"totals in the slots of others", BLOCK, "warps + WARPS, x2);\n        __sync", "warps, x2);\n        __sync"},
};

/* ---- running ---- */

typedef struct Numbers {
    float x[ROWS * WIDTH + 2 * MARK], out[ROWS * WIDTH + 2 * MARK], want[ROWS * WIDTH];
    _Alignas(16) uint16_t a[32 * DEPTH], b[16 * DEPTH];
} Numbers;

static void make_numbers(Numbers *n, Which which)
{
    uint64_t state = 3;
    memset(n, 0xff, sizeof *n);
    for (int i = 0; i < ROWS * WIDTH; i++)
        n->x[MARK + i] = (float)(3 * harness_random(&state));
    for (int i = 0; i < 32 * DEPTH; i++)
        n->a[i] = (uint16_t)(0x3f80 + (i * 37 + i / 9) % 128 + (i % 3 ? 0 : 0x8000));
    for (int i = 0; i < 16 * DEPTH; i++)
        n->b[i] = (uint16_t)(0x3f00 + (i * 53 + i / 7) % 128 + (i % 5 ? 0 : 0x8000));
    for (int r = 0; r < ROWS && which != TILE; r++) {
        double sum = 0;
        for (int i = 0; i < WIDTH; i++)
            sum += exp(n->x[MARK + r * WIDTH + i]);
        for (int i = 0; i < WIDTH; i++)
            n->want[r * WIDTH + i] = (float)(exp(n->x[MARK + r * WIDTH + WIDTH - 1 - i]) / sum);
    }
    for (int i = 0; i < 32 * 16 && which == TILE; i++) {
        double sum = 0;
        for (int k = 0; k < DEPTH; k++)
            sum += of_bf16(n->a[i / 16 * DEPTH + k]) * of_bf16(n->b[i % 16 * DEPTH + k]);
        n->want[i] = (float)sum;
    }
}

static bool is_right(const Numbers *n, Which which)
{
    int size = which == TILE ? 32 * 16 : ROWS * WIDTH;
    const uint32_t none = 0xffffffff;
    for (int i = 0; i < size; i++) {
        float got = n->out[MARK + i], want = n->want[i];
        if (!(fabsf(got - want) <= 1e-5f * fmaxf(fabsf(want), which == TILE ? 1 : 0.001f)))
            return false;
    }
    for (int i = 0; i < MARK; i++)
        if (memcmp(&n->out[i], &none, 4) || memcmp(&n->out[MARK + size + i], &none, 4))
            return false;
    return true;
}

/* NULL when all four ways are right, else the first that shows something. */
static const char *run(const EmuKernel *k, Which which, char text[300])
{
    for (int way = 0; way < 4; way++) {
        static Numbers n;
        EmuOptions how = {.descending = way % 2, .lazy = way / 2};
        const char *order = way % 2 ? "descending" : "ascending", *copies = way / 2 ? "late" : "at once";
        make_numbers(&n, which);
        const float *x = n.x + MARK;
        float *out = n.out + MARK;
        const uint16_t *a = n.a, *b = n.b;
        int64_t width = WIDTH, rows = ROWS, depth = DEPTH, one = 1;
        void *row_arguments[] = {&x, &out, &width, &rows};
        void *tile_arguments[] = {&a, &b, &out, &depth, &one};
        const char *trouble = emu_launch(k, which == TILE ? tile_arguments : row_arguments, &how, which == TILE ? 1 : 2,
                                         which == BLOCK ? 128 : 64,
                                         which == TILE    ? 0
                                         : which == BLOCK ? 608
                                                          : 1200);
        if (!trouble && is_right(&n, which))
            continue;
        snprintf(text, 300, "%s, copies %s: %s", order, copies, trouble ? trouble : "wrong numbers");
        return text;
    }
    return NULL;
}

/* Number `at` of the kernels that are compiled: 0 to 2 unchanged, then one for each fault. */
static void make_text(Ctx *ctx, size_t at, EmuText *out)
{
    const Fault *f = at < COUNT_OF(texts) ? NULL : &faults[at - COUNT_OF(texts)];
    const char *text = texts[f ? f->which : at], *place = f ? strstr(text, f->from) : NULL;
    Buf b = buf_new(ctx->program);
    if (f && !place)
        vwn_bug(ctx, "%s: the kernel has no such text", f->name);
    if (f) {
        buf_put(&b, text, (size_t)(place - text));
        buf_puts(&b, f->to);
        text = place + strlen(f->from);
    }
    buf_puts(&b, text);
    const char *whole = b.s;
    size_t length = b.n;
    out->name = emit_name(ctx, ctx->program, &whole, &length);
    out->text = whole;
    out->length = length;
}

int main(void)
{
    char why[512], said[300];
    Harness h = {0};
    EmuText text[COUNT_OF(texts) + COUNT_OF(faults)];
    EmuKernel kernel[COUNT_OF(text)];
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    size_t length;
    const char *prelude = prelude_cuda(ctx->program, &length);
    for (size_t i = 0; i < COUNT_OF(text); i++)
        make_text(ctx, i, &text[i]);
    if (!CHECK(&h, emu_compile(prelude, length, text, COUNT_OF(text), kernel, why))) {
        printf("%s", why);
        return harness_end(&h);
    }
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        const char *shown = run(&kernel[i], (Which)i, said);
        CHECK_CASE(&h, !shown, shown ? shown : "");
    }
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        const char *shown = run(&kernel[COUNT_OF(texts) + i], faults[i].which, said);
        CHECK_CASE(&h, shown, faults[i].name);
        printf("%-42s %s\n", faults[i].name, shown ? shown : "NOT SEEN");
    }
    ctx_free(ctx);
    return harness_end(&h);
}
