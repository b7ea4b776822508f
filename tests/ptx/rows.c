/* rows.c - the interpreter itself, by small kernels in PTX.
 *
 * In:  texts of a few instructions, each with what it gives by the ISA, in every order that a seed may choose.
 * Out: `N passed, N failed`. Right ones give their numbers; each rule that is broken is a fault with its words.
 * When: quick.
 */
#include "support/harness.h"

#include "emu/rules.h"
#include "ptx.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 64, SEEDS = 9 };

/* What every kernel begins with: %rd1 is where the thread's number of the result is, %r1 its number. */
#define BEGIN                                                                                                          \
    ".version 9.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 128 .b8 given[];\n" FUNCTIONS              \
    ".visible .entry k(\n.param .u64 out,\n.param .u64 in,\n.param .u64 rows\n)\n.maxntid 64, 1, 1\n{\n"               \
    ".reg .pred %p<9>;\n.reg .b16 %rs<9>;\n.reg .f32 %f<20>;\n.reg .b32 %r<20>;\n.reg .b64 %rd<20>;\n"                 \
    ".shared .align 8 .b8 room[512];\n"                                                                                \
    "ld.param.u64 %rd2, [out];\nld.param.u64 %rd3, [in];\nmov.u32 %r1, %tid.x;\n"                                      \
    "mul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd1, %rd2, %rd4;\nadd.s64 %rd3, %rd3, %rd4;\n"                               \
    "mov.u32 %r2, room;\nshl.b32 %r3, %r1, 2;\nadd.s32 %r4, %r2, %r3;\n"
#define FUNCTIONS                                                                                                      \
    ".shared .align 4 .b8 common[256];\n"                                                                              \
    "\n.func (.param .b32 given_back) twice(\n.param .b32 taken\n)\n{\n.reg .b32 %r<3>;\n.reg .pred %p<2>;\n"          \
    "ld.param.u32 %r1, [taken];\nsetp.gt.u32 %p1, %r1, 40;\n@%p1 bra $L;\nadd.s32 %r1, %r1, %r1;\n"                    \
    "st.param.b32 [given_back+0], %r1;\nret;\n$L:\nst.param.b32 [given_back+0], %r1;\nret;\n}\n"
#define END "st.global.u32 [%rd1], %r5;\nret;\n}\n"

typedef struct Case {
    const char *name, *text;
    uint32_t (*want)(uint32_t thread); /* NULL: it is a fault */
    const char *fault;                 /* with these words */
} Case;

static uint32_t given(uint32_t i) { return 3 * i + 1; }
static uint32_t neighbour(uint32_t i) { return i ^ 33; }
static uint32_t partner(uint32_t i) { return i ^ 1; }
static uint32_t doubled(uint32_t i) { return i > 40 ? i : 2 * i; }
static uint32_t apart(uint32_t i) { return i % 2 ? 7 : 9; }
static uint32_t counted(uint32_t i) { return i * (i + 1) / 2; }
static uint32_t copied(uint32_t i) { return given(i); }
static uint32_t signs(uint32_t i) { return (uint32_t)((int32_t)(i - 20) >> 2) & 0xfffu; }
static uint32_t halves(uint32_t i) { return i << 16 | i; }
static uint32_t lanes(uint32_t i) { return i / 32 ? 0xffffffffu : 0x0000ffffu; }
/* 1 + 2^-8 and 1 + 3 2^-8 lie in the middle. */
static uint32_t rounded(uint32_t i)
{
    (void)i;
    return 0x3f803f82u;
}

#define SHARED "st.shared.u32 [%r4], %r1;\n"
#define OTHER  "xor.b32 %r6, %r3, 132;\nadd.s32 %r6, %r2, %r6;\nld.shared.u32 %r5, [%r6];\n"
#define COPY   "cp.async.ca.shared.global [%r4], [%rd3], 4;\ncp.async.commit_group;\n"
static const Case cases[] = {
    {"what is given", BEGIN "ld.global.u32 %r5, [%rd3];\n" END, given, NULL},
    {"of the other warp", BEGIN SHARED "bar.sync 0;\n" OTHER END, neighbour, NULL},
    {"of the module", BEGIN "mov.u32 %r2, common;\nadd.s32 %r4, %r2, %r3;\n" SHARED "bar.sync 0;\n" OTHER END,
     neighbour, NULL},
    {"two halves", BEGIN "cvt.u16.u32 %rs1, %r1;\nmov.b32 %r5, {%rs1, %rs1};\n" END, halves, NULL},
    {"without a barrier", BEGIN SHARED OTHER END, NULL, "shared memory"},
    {"of the same warp",
     BEGIN SHARED "bar.warp.sync -1;\nxor.b32 %r6, %r3, 4;\nadd.s32 %r6, %r2, %r6;\nld.shared.u32 %r5, [%r6];\n" END,
     partner, NULL},
    {"of the same warp, not met",
     BEGIN SHARED "xor.b32 %r6, %r3, 4;\nadd.s32 %r6, %r2, %r6;\nld.shared.u32 %r5, [%r6];\n" END, NULL,
     "nothing is between"},
    {"shuffled", BEGIN "shfl.sync.bfly.b32 %r5|%p1, %r1, 1, 31, -1;\n" END, partner, NULL},
    {"shuffled by one side",
     BEGIN "and.b32 %r6, %r1, 1;\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra $A;\n"
           "shfl.sync.bfly.b32 %r5|%p2, %r1, 1, 31, -1;\n$A:\n" END,
     NULL, "threads"},
    {"a function",
     BEGIN "{\n.param .b32 p0;\nst.param.b32 [p0+0], %r1;\n.param .b32 r0;\ncall.uni (r0), \ntwice, \n(\np0\n);\n"
           "ld.param.b32 %r5, [r0+0];\n}\n" END,
     doubled, NULL},
    {"apart",
     BEGIN "and.b32 %r6, %r1, 1;\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra $A;\nmov.u32 %r5, 7;\nbra $B;\n$A:\nmov.u32 %r5, "
           "9;\n$B:\n"
           "bar.sync 0;\n" END,
     apart, NULL},
    {"rounds of its own",
     BEGIN "mov.u32 %r5, 0;\nmov.u32 %r6, 0;\n$A:\nadd.s32 %r5, %r5, %r6;\nadd.s32 %r6, %r6, 1;\n"
           "setp.le.u32 %p1, %r6, %r1;\n@%p1 bra $A;\n" END,
     counted, NULL},
    {"a ballot",
     BEGIN "setp.lt.u32 %p1, %r1, 16;\nsetp.gt.u32 %p2, %r1, 31;\nor.pred %p1, %p1, %p2;\n"
           "vote.sync.ballot.b32 %r5, %p1, -1;\n" END,
     lanes, NULL},
    {"a copy", BEGIN COPY "cp.async.wait_group 0;\nld.shared.u32 %r5, [%r4];\n" END, copied, NULL},
    {"a copy that is not waited for", BEGIN COPY "cp.async.wait_group 1;\nld.shared.u32 %r5, [%r4];\n" END, NULL,
     "under way"},
    {"a copy that another waited for", BEGIN COPY "cp.async.wait_group 0;\n" OTHER END, NULL, "shared memory"},
    {"what nobody wrote", BEGIN "ld.shared.u32 %r5, [%r4+256];\n" END, NULL, "nobody wrote"},
    {"beyond shared memory", BEGIN "st.shared.u32 [%r4+512], %r1;\n" END, NULL, "that the block has not"},
    {"beyond a tensor", BEGIN "ld.global.u32 %r5, [%rd3+4];\n" END, NULL, "that the launch has not"},
    {"only read", BEGIN "st.global.u32 [%rd3], %r1;\n" END, NULL, "only reads"},
    {"badly aligned", BEGIN "ld.global.v2.u32 {%r5, %r6}, [%rd3];\n" END, NULL, "no multiple of 8"},
    {"one thread less", BEGIN "setp.eq.u32 %p1, %r1, 5;\n@%p1 bra $A;\nbar.sync 0;\n$A:\n" END, NULL, ""},
    {"signs", BEGIN "add.s32 %r5, %r1, -20;\nshr.s32 %r5, %r5, 2;\nand.b32 %r5, %r5, 4095;\n" END, signs, NULL},
    {"to even",
     BEGIN "mov.u32 %r6, 1065385984;\nmov.b32 %f1, %r6;\nmov.u32 %r7, 1065451520;\nmov.b32 %f2, %r7;\n"
           "cvt.rn.bf16x2.f32 %r5, %f1, %f2;\n" END,
     rounded, NULL},
};

_Alignas(EMU_MAP_ALIGN) static uint32_t in[THREADS];
static uint32_t out[THREADS];

/* map NULL: none */
static bool run(const PtxModule *m, uint64_t seed, uint64_t shared, const PtxMap *map, char why[PTX_WHY])
{
    const char *p[] = {(const char *)out, (const char *)in};
    const int64_t rows = 1;
    const void *argument[] = {&p[0], &p[1], &rows};
    const PtxMemory memory[] = {{(char *)out, sizeof out, true}, {(char *)in, sizeof in, false}};
    const PtxLaunch l = {.kernel = "k",
                         .blocks = 1,
                         .shared = shared,
                         .seed = seed,
                         .n_map = map ? 1 : 0,
                         .map = map,
                         .n_argument = 3,
                         .argument = argument,
                         .n_memory = 2,
                         .memory = memory};
    for (uint32_t i = 0; i < THREADS; i++)
        in[i] = given(i);
    memset(out, 0, sizeof out);
    return ptx_launch(m, &l, why);
}

static void test(Harness *h, const Case *c)
{
    char why[PTX_WHY] = "";
    PtxModule *m = ptx_module(c->text, why);
    if (!CHECK_CASE(h, m, c->name)) {
        fprintf(stderr, "    %s\n", why);
        return;
    }
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        const bool good = run(m, seed, 0, NULL, why);
        bool right = c->want ? good : !good && strstr(why, c->fault);
        for (uint32_t i = 0; c->want && i < THREADS; i++)
            right = right && out[i] == c->want(i);
        if (!CHECK_CASE(h, right, c->name))
            fprintf(stderr, "    seed %d: %s\n", (int)seed, good ? "other numbers" : why);
    }
    ptx_free(m);
}

/* What a driver refuses, whatever the kernel does. */
static void test_refused(Harness *h)
{
    char why[PTX_WHY];
    PtxModule *m = ptx_module(BEGIN END, why);
    PtxMap map = {
        .at = (const char *)in + 8, .extent = {64, 8, 1, 1}, .stride = {2, 128, 1024, 1024}, .box = {64, 8, 1, 1}};
    CHECK(h, !run(m, 0, EMU_SHARED, NULL, why) && strstr(why, "more shared memory"));
    CHECK(h, !run(m, 0, 0, &map, why) && strstr(why, "begins at no multiple of 16 bytes"));
    map.at -= 8;
    map.box[1] = 257;
    CHECK(h, !run(m, 0, 0, &map, why) && strstr(why, "a box of nothing or of more than 256"));
    map.box[1] = 8;
    CHECK(h, !run(m, 0, 0, &map, why) && strstr(why, "other arguments than the launch"));
    ptx_free(m);
}

int main(void)
{
    Harness h = {0};
    char why[PTX_WHY];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        test(&h, &cases[i]);
    test_refused(&h);
    CHECK(&h, !ptx_module(BEGIN "add.u5 %r1, %r1, 1;\n" END, why) && strstr(why, "no row for `add.u5`"));
    CHECK(&h, !ptx_module(BEGIN "bra $C;\n" END, why) && strstr(why, "no label `$C`"));
    return harness_end(&h);
}
