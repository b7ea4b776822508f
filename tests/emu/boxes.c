/* boxes.c - rules of barriers in shared memory, of copies by tensor maps and of registers of groups: each is broken once.
 *
 * In:  nothing (skipped where there is no C++ compiler).
 * Out: `N passed, N failed`. A small kernel adds up the products of boxes with themselves, as it is and with one fault each; of a fault
 *      the emulator says the sentence of its rule, in some order of threads and copies.
 * The oracle of what is right is a sum in float64.
 * When: quick.
 */
#define _GNU_SOURCE
#include "backend_emu.h"

#include "support/half.h"

#include "compiler/print/emit.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>

enum { ROWS = 64, COLUMNS = 40, BOXES = 5, HEADS = 3, THREADS = 256, SHARED = 2 * ROWS * 128 + 64 };

/* Boxes of 64 rows and 64 columns, of which 40 are there, pass through two places; of the last one 24 rows are there. */
static const char kernel_text[] =
    "KERNEL(256, 1) @NAME@(real *__restrict__ out, int64_t boxes, const __grid_constant__ vwn_map map)\n{\n"
    "    enum { BOX = 64 * 64 };\n"
    "    DYN_SMEM_LINES(memory);\n"
    "    bf16 *const box = (bf16 *)memory;\n"
    "    uint64_t *const come = (uint64_t *)(box + 2 * BOX), *const left = come + 2;\n"
    "    if (threadIdx.x == 0) {\n"
    "        for (int i = 0; i < 2; i++) {\n"
    "            vwn_mbarrier_make(come + i, 1);\n"
    "            vwn_mbarrier_make(left + i, 4);\n"
    "        }\n"
    "        vwn_proxy_fence();\n"
    "    }\n"
    "    __syncthreads();\n"
    "    vwn_turn<2> at = {0, 0};\n"
    "    if (threadIdx.x >= 128) {\n"
    "        vwn_group_gives_registers<40>();\n"
    "        if (threadIdx.x == 128)\n"
    "            for (int i = 0; i < boxes; i++, at = vwn_next(at)) {\n"
    "                vwn_mbarrier_wait(left + at.place, at.round ^ 1);\n"
    "                vwn_mbarrier_expect(come + at.place, 2 * BOX);\n"
    "                vwn_map_copy(box + at.place * BOX, map, 0, 1, 64 * i, 0, come + at.place);\n"
    "            }\n"
    "        return;\n"
    "    }\n"
    "    vwn_group_takes_registers<256>();\n"
    "    real x[8][4];\n"
    "    vwn_clear<64>(x);\n"
    "    for (int i = 0; i < boxes; i++, at = vwn_next(at)) {\n"
    "        const bf16 *const a = box + at.place * BOX;\n"
    "        vwn_mbarrier_wait(come + at.place, at.round);\n"
    "        vwn_group_mul<true, 64, 64, 64, false, false>(x, a, 0, a, 0);\n"
    "        vwn_group_wait<0>();\n"
    "        vwn_group_registers(x);\n"
    "        if (threadIdx.x % 32 == 0)\n"
    "            vwn_mbarrier_arrive(left + at.place);\n"
    "    }\n"
    "    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, column = threadIdx.x % 4 * 2;\n"
    "    for (int i = 0; i < 8; i++)\n"
    "        for (int e = 0; e < 4; e++)\n"
    "            out[(row + e / 2 * 8) * 64 + i * 8 + column + e % 2] = x[i][e];\n"
    "}\n";

static const struct Rule {
    const char *what, *text, *instead;
} rules[] = {
    {NULL, "", ""}, /* as it is */
    /* registers that were named with others before, and have been written since; others that lay there; more than are kept at once */
    {NULL, "    real x[8][4];\n",
     "    real both[2][8][4];\n    real(&x)[8][4] = both[1];\n    vwn_clear<128>(*(real(*)[16][4])both);\n"
     "    vwn_group_registers(*(real(*)[16][4])both);\n    x[0][0] = 1;\n"},
    {NULL, "        vwn_group_mul<",
     "        uint32_t others[20][4] = {};\n        for (int k = 0; k < 20; k++)\n            "
     "vwn_group_registers(*(uint32_t(*)[1][4])others[k]);\n"
     "        vwn_group_mul<"},
    {"registers of a product have been written behind the last wgmma.fence",
     "        vwn_group_mul<true, 64, 64, 64, false, false>(x, a, 0, a, 0);\n",
     "        const uint32_t matrix = vwn_matrix<64, false>(a, 0);\n        vwn_group_registers(x);\n        "
     "vwn_group_fence();\n        x[7][3] += 1;\n"
     "        for (int k = 0; k < 64; k += 16)\n            vwn_group_product<true, false, false>(x, vwn_matrix_on<64, "
     "false>(matrix, k), "
     "vwn_matrix_on<64, false>(matrix, k), bf16());\n        vwn_group_commit();\n"},
    {"a barrier that nobody has made", "            vwn_mbarrier_make(left + i, 4);\n", ""},
    {"a barrier that does not lie in shared memory at a multiple of 8 bytes", "left = come + 2",
     "left = (uint64_t *)((char *)come + 20)"},
    {"a barrier that counts no threads", "vwn_mbarrier_make(come + i, 1)", "vwn_mbarrier_make(come + i, 0)"},
    {"a barrier is made twice", "vwn_mbarrier_make(come + i, 1)", "vwn_mbarrier_make(come + i / 2, 1)"},
    {"something wrote over a barrier", "        vwn_proxy_fence();\n",
     "        vwn_proxy_fence();\n        come[1] = 0;\n"},
    {"has not met the one which made it", "    __syncthreads();\n", ""},
    {"made without fence.proxy.async", "        vwn_proxy_fence();\n", ""},
    {"more threads arrive at a barrier than it counts", "                vwn_map_copy(",
     "                vwn_mbarrier_arrive(come + at.place);\n                vwn_map_copy("},
    {"a phase whose parity is neither 0 nor 1", "vwn_mbarrier_wait(come + at.place, at.round)",
     "vwn_mbarrier_wait(come + at.place, 2 * at.round)"},
    {"threads wait for a phase that never ends", "vwn_mbarrier_make(left + i, 4)", "vwn_mbarrier_make(left + i, 5)"},
    {"threads wait for a phase that never ends", "            vwn_mbarrier_arrive(left + at.place);\n",
     "            ;\n"},
    {"threads wait for a phase that never ends", "vwn_mbarrier_wait(left + at.place, at.round ^ 1)",
     "vwn_mbarrier_wait(left + at.place, at.round)"},
    {"threads wait for bytes that nobody brings", "vwn_mbarrier_expect(come + at.place, 2 * BOX)",
     "vwn_mbarrier_expect(come + at.place, 2 * BOX + 16)"},
    {"brings bytes that its barrier does not expect", "vwn_mbarrier_expect(come + at.place, 2 * BOX)",
     "vwn_mbarrier_expect(come + at.place, BOX)"},
    {"brings bytes that its barrier does not expect",
     "                vwn_mbarrier_expect(come + at.place, 2 * BOX);\n", ""},
    {"a barrier expects 2^20 bytes or more", "vwn_mbarrier_expect(come + at.place, 2 * BOX)",
     "vwn_mbarrier_expect(come + at.place, 1 << 20)"},
    {"a product reads what is not known to have come", "        vwn_mbarrier_wait(come + at.place, at.round);\n", ""},
    {"a product reads what is not known to have come", "        vwn_mbarrier_wait(come + at.place, at.round);\n",
     "        if (threadIdx.x % 32 == 0)\n            vwn_mbarrier_wait(come + at.place, at.round);\n"},
    {"whose readers have not told this thread", "                vwn_mbarrier_wait(left + at.place, at.round ^ 1);\n",
     "                vwn_mbarrier_wait(come + at.place, at.round ^ 1);\n"},
    {"a copy overwrites what a product in flight reads",
     "        vwn_group_wait<0>();\n        vwn_group_registers(x);\n        if (threadIdx.x % 32 == 0)\n            "
     "vwn_mbarrier_arrive(left + at.place);\n",
     "        if (threadIdx.x % 32 == 0)\n            vwn_mbarrier_arrive(left + at.place);\n        __syncwarp();\n   "
     "     if (i + 1 == boxes)\n            vwn_group_wait<0>();\n"},
    {"to which another one is not known to have come",
     "                vwn_mbarrier_wait(left + at.place, at.round ^ 1);\n", ""},
    {"a block ends with copies that nobody has waited for", "i < boxes; i++, at = vwn_next(at)) {\n        const",
     "i < boxes - 1; i++, at = vwn_next(at)) {\n        const"},
    {"a block ends while a barrier expects bytes that nobody brings", "        return;\n",
     "        if (threadIdx.x == 128)\n            vwn_mbarrier_expect(come + at.place, 16);\n        return;\n"},
    {"a place that is no multiple of 128 bytes, or outside of shared memory", "box + at.place * BOX, map",
     "box + at.place * BOX + 32, map"},
    {"a place that is no multiple of 128 bytes, or outside of shared memory", "box + at.place * BOX, map",
     "box + (at.place + 2) * BOX, map"},
    {"a copy by what is no tensor map", "vwn_map_copy(box + at.place * BOX, map,",
     "vwn_map_copy(box + at.place * BOX, *(const vwn_map *)memory,"},
    {"no multiple of 8", "vwn_group_gives_registers<40>", "vwn_group_gives_registers<36>"},
    {"fewer than 24 registers", "vwn_group_gives_registers<40>", "vwn_group_gives_registers<16>"},
    {"more than 256", "vwn_group_takes_registers<256>", "vwn_group_takes_registers<264>"},
    {"a group waits for registers that no other one gives", "        vwn_group_gives_registers<40>();\n", ""},
    {"a group gives registers that it has not, or takes fewer than it has", "vwn_group_takes_registers<256>",
     "vwn_group_takes_registers<128>"},
    {"different numbers of registers", "        vwn_group_gives_registers<40>();\n",
     "        if (threadIdx.x < 224)\n            vwn_group_gives_registers<40>();\n"},
    {"a collective of a warp with a thread that has ended", "        vwn_group_gives_registers<40>();\n",
     "        if (threadIdx.x % 32)\n            return;\n        vwn_group_gives_registers<40>();\n"},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static const char *plant(Ctx *ctx, const struct Rule *r)
{
    const char *at = strstr(kernel_text, r->text);
    if (!at)
        vwn_bug(ctx, "there is no place for the fault: %s", r->what);
    return arena_printf(ctx->program, "%.*s%s%s", (int)(at - kernel_text), kernel_text, r->instead,
                        at + strlen(r->text));
}

typedef struct Boxes {
    uint16_t *numbers; /* [rows][HEADS][COLUMNS] */
    LaunchMap map;
    double sum[ROWS][ROWS];
    float out[ROWS * ROWS];
} Boxes;

static void make(Ctx *ctx, Boxes *b)
{
    const int rows = (BOXES - 1) * ROWS + 24, n = rows * HEADS * COLUMNS;
    uint64_t random = 5;
    b->numbers = aligned_alloc(64, ((size_t)n * 2 + 63) / 64 * 64);
    if (!b->numbers)
        vwn_bug(ctx, "no memory");
    for (int i = 0; i < n; i++)
        b->numbers[i] = to_half(harness_random(&random), HALF_BF16);
    for (int r = 0; r < ROWS; r++)
        for (int s = 0; s < ROWS; s++)
            for (int box = 0; box < BOXES; box++)
                for (int c = 0; c < COLUMNS && box * ROWS + r < rows && box * ROWS + s < rows; c++) {
                    const uint16_t *first = b->numbers + ((size_t)box * ROWS * HEADS + 1) * COLUMNS + c;
                    b->sum[r][s] += of_half(first[(size_t)r * HEADS * COLUMNS], HALF_BF16) *
                                    of_half(first[(size_t)s * HEADS * COLUMNS], HALF_BF16);
                }
    b->map = (LaunchMap){.half = HALF_BF16,
                         .extent = {COLUMNS, HEADS, rows, 1},
                         .stride = {1, COLUMNS, HEADS * COLUMNS, (int64_t)rows * HEADS * COLUMNS},
                         .box = {64, 1, ROWS, 1}};
}

static const char *launch(Boxes *b, const EmuKernel *k, int run)
{
    emu_map map;
    void *out = b->out;
    int64_t boxes = BOXES;
    const char *wrong = emu_map_make(&map, &b->map, b->numbers);
    void *arguments[] = {&out, &boxes, &map};
    memset(b->out, 0xff, sizeof b->out);
    EmuOptions how = {.descending = run & 1, .lazy = run >> 1};
    return wrong ? wrong : emu_launch(k, arguments, &how, 2, THREADS, SHARED);
}

static void run_rule(Harness *h, Boxes *b, const struct Rule *r, const EmuKernel *k)
{
    bool said = false;
    for (int run = 0; run < 4; run++) {
        const char *wrong = launch(b, k, run);
        said = said || (wrong && r->what && strstr(wrong, r->what));
        if (r->what)
            continue;
        CHECK_CASE(h, !wrong, wrong);
        bool good = true;
        for (int i = 0; i < ROWS * ROWS; i++)
            good = good && fabs((double)b->out[i] - b->sum[i / ROWS][i % ROWS]) < 1e-4;
        CHECK_CASE(h, good, r->instead);
    }
    if (r->what && !CHECK_CASE(h, said, r->what))
        fprintf(stderr, "    the last of them: %s\n", launch(b, k, 3));
}

int main(void)
{
    Harness h = {0};
    char why[512];
    static Boxes boxes;
    static EmuKernel kernel[RULES];
    EmuText text[RULES];
    size_t length;
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    make(ctx, &boxes);
    const char *prelude = prelude_cuda(ctx->program, &length);
    for (int i = 0; i < RULES; i++) {
        text[i].text = plant(ctx, &rules[i]);
        text[i].length = strlen(text[i].text);
        text[i].name = emit_name(ctx, ctx->program, &text[i].text, &text[i].length);
    }
    if (!CHECK(&h, emu_compile(prelude, length, text, RULES, kernel, why)))
        fprintf(stderr, "    %s\n", why);
    for (int i = 0; i < RULES && kernel[i].call; i++)
        run_rule(&h, &boxes, &rules[i], &kernel[i]);
    free(boxes.numbers);
    ctx_free(ctx);
    return harness_end(&h);
}
