/* faults.c - broken kernel programs and damaged texts of them.
 *
 * In:  kernels of a small model and one written here, each with one planted fault.
 * Out: the verifier finds every one, with the dump given to on_bug first; a text that is damaged
 *      anywhere gives a diagnostic with a place, or kernels that are sound.
 * The one idea: a fault is one changed line; whatever accepts it must be able to say why.
 * When: quick, checked.
 */
#include "compiler/pass/simplify.h"
#include "support/models.h"

#include "compiler/kernel/kernel_text.h"
#include "compiler/plan/plan.h"

static int bad;

static void expect(bool ok, const char *what, const char *got)
{
    if (!ok) {
        printf("FAIL %s: %s\n", what, got);
        bad++;
    }
}

/* every kind of statement: a sum into a scalar and into an array, a batch, a guard, a value that is
 * read, a place that is overwritten, a sum over rows */
static const char sound[] = "vwn kernels 1 B=2 T=3\n"
                            "kernel \"rows: test\"  # test\n"
                            "rows B*T parts 2 of 3\n"
                            "buffer 0 read real 120 \"x\"\n"
                            "buffer 1 read write real 120 \"y\"\n"
                            "buffer 2 write part real 20 \"sum\"\n"
                            "buffer 3 read int 6 \"index\"\n"
                            "buffer 4 write int 6 \"out\"\n"
                            "scalar 0 = 0.25 \"s\"\n"
                            "seed 0 \"site\" each 20*T\n"
                            "var i2 loop 20\n"
                            "var i3 loop 5\n"
                            "var i4 value x1 below B*T\n"
                            "var i5 = [r] % T\n"
                            "var part\n"
                            "root 0 store b1 over i2\n"
                            "root 1 sum b2 over i2\n"
                            "root 2 store b4\n"
                            "begin\n"
                            "  x2 real = scalar s0\n"
                            "  array t0 real over i2\n"
                            "  parts\n"
                            "    place of partial sums b2\n"
                            "    fill partial sums b2\n"
                            "    rows\n"
                            "      x1 int = load b3[r]\n"
                            "      x3 bool = inside [i4] below B*T\n"
                            "      let i5\n"
                            "      x4 bool = inside [1 + i5] below T\n"
                            "      acc x5 real = sum over i2\n"
                            "      loop i2 simd x5\n"
                            "        x6 real = load b0[{20}*r + i2]\n"
                            "        x7 real = load b0[i2 + {20}*i4] if x3\n"
                            "        x8 real = mul x6 x7\n"
                            "        add x5 x8\n"
                            "      end\n"
                            "      x9 real = load b0[{20} + {20}*r] if x4\n"
                            "      give v0[0] of 2 x10 real = exp x5\n"
                            "      give v0[1] of 2 x11 real = exp x9\n"
                            "      run v0 of 2 x10\n"
                            "      take v0[0] x10\n"
                            "      take v0[1] x11\n"
                            "      fill t0 x12 real = sum over i3\n"
                            "      loop i3\n"
                            "        loop i2 simd\n"
                            "          x13 real = rand n0[i2 + 20*i3]\n"
                            "          add t0 x12 x13\n"
                            "        end\n"
                            "      end\n"
                            "      loop i2 simd vector\n"
                            "        prefetch b0[{20}*r + i2]\n"
                            "        x14 real = load b1[{20}*r + i2]\n"
                            "        x15 real = mul x14 x10\n"
                            "        get t0 x12\n"
                            "        x16 real = add x15 x12\n"
                            "        x17 real = mul x16 x2\n"
                            "        store 0 b1[{20}*r + i2] = x17\n"
                            "        sink 1 b2[i2] = x16\n"
                            "      end\n"
                            "      store 2 b4[r] = x1\n"
                            "    end\n"
                            "  end\n";

typedef struct Fault {
    const char *from, *to; /* the first place is changed */
    const char *why;       /* part of what is said */
} Fault;

static const Fault faults[] = {
    {"x8 real = mul x6 x7", "x8 real = mul x6 x9", "used before it is computed"},
    {"x8 real = mul x6 x7", "x8 real = mul x6 x5", "before its loops are done"},
    {"add x5 x8", "add x5 x6\n        add x5 x6", "no open accumulator"},
    {"loop i2 simd x5", "loop i2 simd", "does not carry"},
    {"loop i2 simd x5", "loop i3", "outside its loop"},
    {"acc x5 real = sum over i2", "acc x5 real = sum over i3", "its own loops"},
    {"b0[{20}*r + i2]", "b0[1 + {20}*r + i2]", "may leave its buffer"},
    {"b0[{20}*r + i2]", "b0[{21}*r + i2]", "may leave its buffer"},
    {"b0[{20}*r + i2]", "b0[{20}*r + i2 - 1]", "may leave its buffer"},
    {"b0[i2 + {20}*i4] if x3", "b0[i2 + {20}*i4]", "may leave its buffer"},
    {"b0[i2 + {20}*i4] if x3", "b0[i2 + {20}*i4] if x4", "may leave its buffer"},
    {"[i4] below B*T", "[1 + i4] below B*T", "may leave its buffer"},
    {"b0[{20} + {20}*r] if x4", "b0[{20} + {20}*r]", "may leave its buffer"},
    {"[1 + i5] below T", "[i5] below T", "may leave its buffer"},
    {"x9 real = load b0[{20} + {20}*r] if x4", "x9 real = load b0[{20} + {20}*r] if x5", "not a truth value"},
    {"x9 real = load", "x9 int = load", "wrong type"},
    {"x8 real = mul x6 x7", "x8 real = mul x6", "number of inputs"},
    {"x8 real = mul x6 x7", "x8 real = mul x6 x1", "wrong types"},
    {"x8 real = mul x6 x7", "x8 real = select x6 x7 x7", "truth value"},
    {"x13 real = rand n0", "x13 int = rand n0", "could be one"},
    {"let i5\n", "\n", "outside its loop"},
    {"      let i5\n", "      let i5\n      let i5\n", "twice"},
    {"run v0 of 2 x10\n", "\n", "before it has run"},
    {"give v0[1] of 2 x11 real = exp x9\n", "\n", "never computed"},
    {"give v0[1]", "give v0[0]", "in order"},
    {"x11 real = exp x9", "x11 real = log x9", "in order"},
    {"fill t0 x12 real = sum over i3\n", "acc x12 real = sum over i3\n", "not set to begin with"},
    {"fill t0 x12 real = sum over i3", "fill t0 x12 real = sum over i2", "its own loops"},
    {"      loop i3\n        loop i2 simd\n          x13 real = rand n0[i2 + 20*i3]\n          add t0 x12 x13\n"
     "        end\n      end\n",
     "      loop i2 simd\n        x13 real = rand n0[i2]\n        add t0 x12 x13\n      end\n", "its own loops"},
    {"        get t0 x12\n", "", "used before"},
    {"get t0 x12\n", "get t0 x13\n", "before it holds"},
    {"array t0 real over i2", "array t0 real over i3", "its own loops"},
    {"array t0 real", "array t0 int", "another type"},
    {"x14 real = load b1[{20}*r + i2]", "x14 real = load b1[{20}*r]", "another row or element"},
    {"        store 0 b1[{20}*r + i2] = x17\n",
     "        store 0 b1[{20}*r + i2] = x17\n        x18 real = load b1[{20}*r + i2]\n", "overwritten"},
    {"store 0 b1[{20}*r + i2]", "store 0 b1[r + 6*i2]", "another row or element"},
    {"store 2 b4[r]", "store 2 b4[0]", "in one place"},
    {"store 2 b4[r] = x1", "store 2 b 7[r]", "store 2 b 7[r]\n   |                 ^\n"},
    {"store 2 b4[r]", "store 2 b4[1 + r]", "may leave"},
    {"store 2 b4[r] = x1", "store 2 b4[r] = x9", "wrong type"},
    {"      store 2 b4[r] = x1\n", "", "never stored"},
    {"sink 1 b2[i2]", "sink 1 b2[0]", "in one place"},
    {"root 1 sum b2 over i2", "root 1 sum b2", "its own loops"},
    {"buffer 4 write int 6", "buffer 4 write int 7", "are stored"},
    {"buffer 4 write int 6", "buffer 4 int 6", "wrong way"},
    {"buffer 0 read real", "buffer 0 real", "not said to be read"},
    {"buffer 2 write part real", "buffer 2 write real", "do not exist"},
    {"parts 2 of 3", "parts 3 of 3", "partitions"},
    {"  parts\n", "  rows\n    parts\n", "outside of all others"},
    {"    fill partial sums b2\n", "", "what nobody has set"},
    {"    place of partial sums b2\n", "", "do not lie in one place"},
    {"    fill partial sums b2\n", "    fill partial sums b2\n    fill partial sums b2\n", "filled twice"},
    {"    place of partial sums b2\n    fill partial sums b2\n    rows\n",
     "    place of partial sums b2\n    rows\n    fill partial sums b2\n", "made ready before the rows"},
    {"    fill partial sums b2\n", "    fill partial sums b1\n", "do not exist"},
    {"    place of partial sums b2\n", "    place of partial sums b2\n    place of partial sums b2\n", "in one place"},
    {"      loop i3\n", "      loop i3 simd\n", "inside a loop of vectors"},
    {"= x17", "= x17 of one value", "one value for several elements"},
    {"= x17", "= x10", "one value for several elements"},
    {"prefetch b0[{20}*r + i2]", "prefetch b0[i2]", "where this row has it"},
    {"prefetch b0[{20}*r + i2]", "prefetch b0[20*i5 + i2]", "where this row has it"},
    {"prefetch b0[{20}*r + i2]", "prefetch b0[20 + {20}*r + i2]", "may leave"},
    {"prefetch b0[{20}*r + i2]", "prefetch b0[{20}*r + i3]", "outside its loop"},
    {"prefetch b0[{20}*r + i2]", "prefetch b2[r + i2]", "no row loads"},
    {"loop i2 simd x5", "loop i2 simd vector x5", "a load that is no vector"},
    {"        loop i2 simd\n", "        loop i2 simd vector\n", "an operation that has no vector"},
    {"loop i2 simd vector", "loop i2 vector", "loop's of elements"},
    {"parts 2 of 3", "parts 2 of 3 whole", "a rest of a vector"},
    {"parts 2 of 3", "parts 2 of 3 lines", "across lines"},
    {"    end\n  end\n", "    end\n", "does not end"},
    {"    end\n  end\n", "    end\n  end\n  end\n", "without its loop"},
};

/* products of a row: into a tile, of a tile that a loop fills, into a sum over rows */
static const char products[] =
    "vwn kernels 1 B=2 T=3\n"
    "kernel \"rows: products\"  # test\n"
    "rows B*T parts 2 of 3\n"
    "buffer 0 read real 768 \"a\"\n"
    "buffer 1 read real 128 \"w\"\n"
    "buffer 2 read write tile real 64 \"aw\"\n"
    "buffer 3 read write tile real 64 \"square\"\n"
    "buffer 4 write part real 128 \"dw\"\n"
    "buffer 5 write real 384 \"y\"\n"
    "var i2 loop 8\n"
    "var i3 loop 8\n"
    "var i4 loop 16\n"
    "var i5 loop 64\n"
    "var part\n"
    "root 0 store b3 over i5\n"
    "root 1 store b5 over i5\n"
    "begin\n"
    "  parts\n"
    "    place of partial sums b4\n"
    "    fill partial sums b4\n"
    "    rows\n"
    "      product b2[8*i2 + i3] = b0[128*r + 16*i2 + i4] * b1[8*i4 + i3] over i2, i3, i4 by rows along "
    "i3, a along the sum, b along its own\n"
    "      loop i5 simd\n"
    "        x1 real = load b2[i5]\n"
    "        x2 real = mul x1 x1\n"
    "        store 0 b3[i5] = x2\n"
    "      end\n"
    "      product b4[8*i4 + i3] += b0[128*r + 16*i2 + i4] * b3[8*i2 + i3] over i4, i3, i2 by rows along "
    "i3, a along its own, b along its own\n"
    "      loop i5 simd\n"
    "        x3 real = load b3[i5]\n"
    "        store 1 b5[64*r + i5] = x3\n"
    "      end\n"
    "    end\n"
    "  end\n";

static const Fault product_faults[] = {
    {"b0[128*r + 16*i2 + i4]", "b0[1 + 128*r + 16*i2 + i4]", "may leave its buffer"},
    {"b1[8*i4 + i3]", "b1[9*i4 + i3]", "may leave its buffer"},
    {"b2[8*i2 + i3]", "b2[9*i2 + i3]", "may leave its buffer"},
    {"over i2, i3, i4", "over i3, i2, i4", "its own two loops"},
    {"over i2, i3, i4", "over i2, i3, i5", "its own two loops"},
    {"over i2, i3, i4", "over i2, i3", "three loops"},
    {"over i2, i3, i4", "over i2, i2, i4", "different loops"},
    {"over i2, i3, i4", "over i2, i3, i4 in two parts", "may leave its buffer"},
    {"= b0", "+= b0", "0 of the 64 elements"},
    {"      product b2[", "      loop i5\n      product b2[", "once for each row"},
    {"b2[8*i2 + i3] = b0", "b2[8*i2] = b0", "in one place"},
    {"b4[8*i4 + i3] +=", "b4[i4 + i3] +=", "in one place"},
    {"b4[8*i4 + i3] +=", "b4[8*i4 + i3] =", "in the wrong way"},
    {"    fill partial sums b4\n", "", "what nobody has set"},
    {"* b3[8*i2 + i3]", "* b5[64*r + 8*i2 + i3]", "what it cannot read"},
    {"* b1[8*i4 + i3]", "* b3[4*i4 + i3]", "tile before all of it is there"},
    {"* b1[8*i4 + i3]", "* b1[2*i4 + 4*i3]", "without neighbours"},
    {"var i3 loop 8", "var i3 loop 4", "multiples of 8"},
    {"        store 0 b3[i5] = x2\n", "        store 0 b3[i5] = x2\n        x3 real = load b3[i5]\n",
     "read before all of it"},
    {"        x1 real = load b2[i5]\n", "        x1 real = load b3[i5]\n", "read before all of it"},
    {"      product b2[8*i2 + i3] = b0[128*r + 16*i2 + i4] * b1[8*i4 + i3] over i2, i3, i4 by rows along i3, a "
     "along the sum, b along its own\n      loop i5 simd\n"
     "        x1 real = load b2[i5]\n        x2 real = mul x1 x1\n        store 0 b3[i5] = x2\n      end\n",
     "      loop i5 simd\n        x1 real = load b2[i5]\n        x2 real = mul x1 x1\n        store 0 b3[i5] = x2\n    "
     "  end\n"
     "      product b2[8*i2 + i3] = b0[128*r + 16*i2 + i4] * b1[8*i4 + i3] over i2, i3, i4 by rows along i3, a "
     "along the sum, b along its own\n",
     "read before all of it"},
    {"over i2, i3, i4", "over i2, r, i4", "different loops"},
    {"tile real 64 \"aw\"", "tile real 65 \"aw\"", "are stored"},
    {"tile real 64 \"square\"", "real 64 \"square\"", "in one place"},
    {"      loop i5 simd\n        x3", "      loop i2\n      loop i5 simd\n        x3", "own loops"},
    {"a along the sum, b along its own", "a along its own, b along its own", "do not lie next to each other"},
    {"a along the sum, b along its own", "a along the sum, b along the sum", "do not lie next to each other"},
    {"a along the sum, b along its own", "a along the sum, b strided", "to make vectors of"},
    {"by rows along i3", "by columns along i3", "to make vectors of"},
    {"by rows along i3", "by rows in i3", "along"},
    {", b along its own", "", "not"},
    {"b along its own\n", "b along its own, in wide pieces\n", "not said how it is computed"},
    {"b along its own\n", "b along its own, in pieces\n", "how a product is cut"},
};

/* a guard that speaks of a number by its digits, whose index holds some of them */
static const char digits[] = "vwn kernels 1 B=2 T=3\n"
                             "kernel \"rows: digits\"  # test\n"
                             "rows B*T\n"
                             "buffer 0 read real 138 \"x\"\n"
                             "buffer 1 write real 48 \"y\"\n"
                             "var i2 loop 2\n"
                             "var i3 loop 2\n"
                             "var i4 loop 2\n"
                             "root 0 store b1 over i2, i3, i4\n"
                             "begin\n"
                             "  rows\n"
                             "    loop i2\n"
                             "      loop i3\n"
                             "        loop i4\n"
                             "          x1 bool = inside [-2 + 4*i2 + 2*i3 + i4] below 2\n"
                             "          x2 real = load b0[-23 + 23*r + 46*i2 + 23*i3] if x1\n"
                             "          store 0 b1[8*r + 4*i2 + 2*i3 + i4] = x2\n"
                             "        end\n"
                             "      end\n"
                             "    end\n"
                             "  end\n";

static const Fault digit_faults[] = {
    {"[-2 + 4*i2", "[-1 + 4*i2", "may leave its buffer"},
    {"+ i4] below 2", "+ i4] below 3", "may leave its buffer"},
    {"b0[-23 +", "b0[-24 +", "may leave its buffer"},
    {"real 138", "real 115", "may leave its buffer"},
    {" if x1", "", "may leave its buffer"},
};

/* the first 20 of the 30 elements of each row; others are stored there by somebody else */
static const char pitched[] = "vwn kernels 1 B=2 T=3\n"
                              "kernel \"rows: pitched\"  # test\n"
                              "rows B*T\n"
                              "buffer 0 read real 120 \"x\"\n"
                              "buffer 1 write partly real 180 \"y\"\n"
                              "var i2 loop 20\n"
                              "root 0 store b1 over i2\n"
                              "begin\n"
                              "  rows\n"
                              "    loop i2 simd\n"
                              "      x1 real = load b0[{20}*r + i2]\n"
                              "      store 0 b1[{30}*r + i2] = x1\n"
                              "    end\n"
                              "  end\n";

static const Fault pitch_faults[] = {
    {"write partly real", "write real", "are stored"},
    {"write partly real", "partly real", "type"},
    {"write partly real", "write partly part real", "cannot have such a buffer"},
    {"{30}*r", "{33}*r", "may leave its buffer"},
    {"{30}*r", "{19}*r", "in one place"},
    {"      store 0 b1[{30}*r + i2] = x1\n", "", "never stored"},
    {"root 0 store b1 over i2\nbegin\n  rows\n    loop i2 simd\n      x1 real = load b0[{20}*r + i2]\n",
     "root 0 store b1 over i2\nroot 1 store b1 over i2\nbegin\n  rows\n    loop i2 simd\n"
     "      x1 real = load b0[{20}*r + i2]\n      store 1 b1[{30}*r + i2] = x1\n",
     "are stored"},
};

/* a kernel for threads: four numbers at one time, three totals that are one step, what lanes compute of them */
static const char threads[] = "vwn kernels 1 B=2 T=3\n"
                              "kernel \"rows: threads\"  # test\n"
                              "rows B*T device\n"
                              "buffer 0 read real 384 \"x\"\n"
                              "buffer 1 write real 384 \"y\"\n"
                              "buffer 2 write real 18 \"sums\"\n"
                              "buffer 3 read int 6 \"index\"\n"
                              "scalar 0 = 0.25 \"s\"\n"
                              "var i2 loop 64\n"
                              "var i3 value x1 below B*T\n"
                              "root 0 store b1 over i2\n"
                              "root 1 store b2\n"
                              "root 2 store b2\n"
                              "root 3 store b2\n"
                              "threads 32 rows 4 width 4 slots 0 index narrow registers 14 loads 12 in vectors\n"
                              "grid 128 by 4 shared 0\n"
                              "begin\n"
                              "  rows\n"
                              "    x1 int = load b3[r]\n"
                              "    x2 bool = inside [i3] below B*T\n"
                              "    acc x3 real = sum over i2\n"
                              "    acc x4 real = sum over i2\n"
                              "    acc x5 real = sum over i2\n"
                              "    loop i2 x3 x4 x5 by threads width 4\n"
                              "      x6 real = load b0[i2 + {64}*i3] if x2 width 4\n"
                              "      x7 real = select x2 x6 0 as loaded width 4\n"
                              "      x8 real = mul x7 x7 width 4\n"
                              "      x9 real = exp x7 width 4\n"
                              "      add x3 x7 width 4 to one sum\n"
                              "      add x4 x8 width 4 to one sum\n"
                              "      add x5 x9 width 4 to one sum\n"
                              "    end\n"
                              "    total of warp x3, x4, x5 as l0\n"
                              "    lanes l1[0 to 2] = scalar s0\n"
                              "    lanes l2[0 to 2] = mul l0 l1\n"
                              "    take l2[1] x10\n"
                              "    lanes store 1, 2, 3 b2[3*r] by 1 = l2[0 to 2]\n"
                              "    loop i2 by threads width 4\n"
                              "      x11 real = load b0[i2 + {64}*i3] if x2 width 4\n"
                              "      x12 real = select x2 x11 0 as loaded width 4\n"
                              "      x13 real = mul x12 x10 width 4\n"
                              "      store 0 b1[{64}*r + i2] = x13 width 4\n"
                              "    end\n"
                              "  end\n";

static const Fault thread_faults[] = {
    {"b0[i2 + {64}*i3] if x2", "b0[2 + i2 + {61}*i3] if x2", "begins at no multiple"},
    {"x6 real = load b0[i2 + {64}*i3] if x2", "x6 real = load b0[63 - i2 + {64}*i3] if x2", "begins at no multiple"},
    {"x5 by threads width 4", "x5 by threads width 128", "a rest of what a thread takes"},
    {"x7 real = select x2 x6 0 as loaded", "x7 real = select x2 x6 1 as loaded", "not what was loaded"},
    {"x8 real = mul x7 x7", "x8 real = select x2 x6 x6 as loaded", "not what was loaded"},
    {"store 0 b1[{64}*r + i2] = x13", "store 0 b1[{64}*r + 63 - i2] = x13", "begins at no multiple"},
    {"x8 real = mul x7 x7 width 4", "x8 real = mul x7 x7 width 2", "more or fewer elements"},
    {"x8 real = mul x7 x7 width 4", "x8 real = mul x7 x7", "more or fewer elements"},
    {"x10\n", "x10 width 4\n", "more or fewer elements"},
    {"add x4 x8 width 4 to one sum", "add x4 x8 width 4", "one value, or one that is several"},
    {"x13 real = mul x12 x10 width 4", "x13 real = mul x12 x10 width 4 of one value", "one value, or one that is"},
    {"= x13 width 4", "= x13 width 4 of one value", "one value for several elements"},
    {"loads 12 in vectors", "loads 12", "more or fewer elements"},
    {"rows B*T device", "rows B*T", "not said to be a device's"},
    {"total of warp x3, x4, x5 as l0", "total of warp x3, x5 as l0", "do not have this"},
    {"total of warp x3, x4, x5 as l0", "total of warp x3, x3, x5 as l0", "taken twice"},
    {"total of warp x3, x4, x5 as l0", "total of warp x3, x4, x5 as l1", "is there already"},
    {"total of warp x3, x4, x5 as l0", "total of warp x3, x4, x5", "have this"},
    {"total of warp x3, x4, x5 as l0", "total of warp x3 as l0", "of one total"},
    {"total of warp x3, x4, x5 as l0", "total of warp x3, x4 alone, x4, x5 as l0", "taken twice"},
    {"lanes l2[0 to 2] = mul l0 l1", "lanes l2[0 to 2] = mul l0 l3", "do not have this"},
    {"lanes l2[0 to 2] = mul l0 l1", "lanes l2[0 to 5] = mul l0 l1", "do not have this"},
    {"lanes l2[0 to 2] = mul l0 l1", "lanes l1[0 to 2] = mul l0 l1", "is there already"},
    {"    lanes l1[0 to 2] = scalar s0\n", "    lanes l1[0 to 2] = load b2[0] by 1\n", "not said to be read"},
    {"take l2[1] x10", "take l2[3] x10", "has not computed"},
    {"take l2[1] x10", "take l2[1] x9", "numbered in order"},
    {"lanes store 1, 2, 3", "lanes store 1, 2", "do not have these results"},
    {"b2[3*r] by 1 =", "b2[3*r] by 2 =", "may leave its buffer"},
    {"b2[3*r] by 1 =", "b2[3*r] by 1 of 0 by 3 =", "no lane"},
    {"threads 32 rows 4", "threads 0 rows 4", "no threads"},
    {"threads 32 rows 4 width 4 slots 0 index narrow registers 14 loads 12 in vectors\ngrid 128 by 4 shared 0\n", "",
     "the end of the line"},
    {"    total of warp x3, x4, x5 as l0\n", "", "do not have this"},
};

/* of more rows than 32 bits count */
static const char large[] = "vwn kernels 1 B=65536 T=65536\n"
                            "kernel \"rows: large\"  # test\n"
                            "rows B*T device\n"
                            "buffer 0 read real 262144 \"x\"\n"
                            "buffer 1 write real 17179869184 \"y\"\n"
                            "var i2 loop 4\n"
                            "var i3 = [r] % T\n"
                            "root 0 store b1 over i2\n"
                            "threads 32 rows 4 width 1 slots 0 index wide of rows registers 14 loads 12\n"
                            "begin\n"
                            "  rows\n"
                            "    let i3\n"
                            "    loop i2 by threads\n"
                            "      x1 real = load b0[4*i3 + i2]\n"
                            "      store 0 b1[4*r + i2] = x1\n"
                            "    end\n"
                            "  end\n";

/* a loop of vectors of 20 elements, and the rounds that whole vectors leave */
#define BODY                                                                                                           \
    "        x2 real = load b0[{20}*r + i2]\n"                                                                         \
    "        x3 real = mul x2 x2\n"                                                                                    \
    "        store 0 b1[{20}*r + i2] = x3\n"                                                                           \
    "        add x1 x3\n"                                                                                              \
    "      end\n"
static const char vectors[] = "vwn kernels 1 B=2 T=3\n"
                              "kernel \"rows: vectors\"  # test\n"
                              "rows B*T\n"
                              "buffer 0 read real 120 \"x\"\n"
                              "buffer 1 write real 120 \"y\"\n"
                              "buffer 2 write real 6 \"z\"\n"
                              "var i2 loop 20\n"
                              "root 0 store b1 over i2\n"
                              "root 1 store b2\n"
                              "begin\n"
                              "  rows\n"
                              "    acc x1 real = sum over i2\n"
                              "    vector acc x1\n"
                              "    vectors of i2\n"
                              "      loop i2 simd vector x1\n"
                              "        prefetch b0[{20}*r + i2]\n" BODY "      loop i2 rest\n" BODY "    end\n"
                              "    add vector x1\n"
                              "    store 1 b2[r] = x1\n"
                              "  end\n";

static const Fault vector_faults[] = {
    {"    vector acc x1\n", "", "no sum of their own"},
    {"    vector acc x1\n", "    vector acc x1\n    vector acc x1\n", "do not begin once"},
    {"    add vector x1\n", "", "before the lanes of its vectors"},
    {"    add vector x1\n", "    add vector x1\n    add vector x1\n", "do not begin once"},
    {"    add vector x1\n    store 1 b2[r] = x1\n", "    x4 real = load b0[r]\n    store 1 b2[r] = x4\n",
     "never added up"},
    {"      loop i2 rest\n" BODY, "", "leaves other statements"},
    {"      loop i2 rest\n", "      loop i2\n", "leaves other statements"},
    {"        add x1 x3\n      end\n    end\n", "      end\n    end\n", "leaves other statements"},
    {"        add x1 x3\n      end\n    end\n", "        add x1 x2\n      end\n    end\n", "no other body"},
    {"    end\n    add vector", "      loop i2\n      end\n    end\n    add vector", "more than a loop and its rest"},
    {"rows B*T\n", "rows B*T whole\n", "more than a loop and its rest"},
    {"    vectors of i2\n", "", "the rest of no loop"},
    {"    vectors of i2\n", "    vectors of i2\n    vectors of i2\n", "without a loop of them"},
    {"begin\n  rows\n    acc x1 real = sum over i2\n    vector acc x1\n    vectors of i2\n",
     "pointers b0 b1 b2\nbegin\n  rows\n    acc x1 real = sum over i2\n", "gives what they leave"},
};

static const Fault large_faults[] = {
    {"index wide of rows", "index narrow", "more than 32 bits"},
};

static const char *with(Ctx *ctx, const char *text, const Fault *f)
{
    const char *at = strstr(text, f->from);
    if (!at)
        return NULL;
    return arena_printf(ctx->program, "%.*s%s%s", (int)(at - text), text, f->to, at + strlen(f->from));
}

static KernelTexts *read(Ctx *ctx, const char *text)
{
    return kernels_read(ctx, ctx->program, source_add(ctx, "test", text, strlen(text)));
}

static const char *said(Ctx *ctx)
{
    Buf b = buf_new(ctx->program);
    if (diag_count(ctx))
        diag_render(ctx, &b, diag_get(ctx, 0), false);
    return b.s;
}

typedef struct Planted {
    const char *in;
    const Fault *fault;
} Planted;

static void planted(Ctx *ctx, void *arg)
{
    const Planted *p = arg;
    const Fault *f = p->fault;
    const char *text = with(ctx, p->in, f);
    if (!text) {
        expect(!f->why, f->from, "not in the text");
        return;
    }
    KernelTexts *k = read(ctx, text);
    const char *why = said(ctx);
    expect(!k, f->to, "was accepted");
    expect(strstr(why, "E090") && strstr(why, "test:") && strstr(why, "^"), f->to, why);
    expect(strstr(why, f->why) != NULL, f->to, why);
}

/* The same from within: vwn_bug, and the dump first. */
static char heard[2][200];
static int times;
static void listen(Ctx *ctx, const char *text)
{
    (void)ctx;
    snprintf(heard[times++ & 1], sizeof heard[0], "%s", text);
}

static KernelTexts *read_again(Ctx *ctx, const char *text)
{
    KernelTexts *k = read(ctx, text);
    expect(k != NULL, "the sound kernel", said(ctx));
    if (!k)
        return NULL;
    Buf again = buf_new(ctx->program);
    kernels_begin(&again, k->B, k->T);
    kernels_put(&again, &k->kernel.v[0]);
    expect(strlen(again.s) == strlen(text) + 1, "the sound kernel prints as it was read", again.s);
    return k;
}

static void inside(Ctx *ctx, void *arg)
{
    bool others = read_again(ctx, products) && read_again(ctx, digits) && read_again(ctx, pitched);
    KernelTexts *k = others ? read_again(ctx, sound) : NULL;
    if (!k)
        return;
    Kernel kernel = *k->kernel.v[0].kernel;
    kernel_verify(&kernel);
    kernel.buffer.v[0].elements--;
    *(bool *)arg = true;
    kernel_verify(&kernel);
    *(bool *)arg = false;
}

/* Texts cannot say that a product is over anything but loops; a pass could. */
static void other_loops(Ctx *ctx, void *arg)
{
    KernelTexts *k = read_again(ctx, products);
    if (!k)
        return;
    Kernel kernel = *k->kernel.v[0].kernel;
    KProduct *x = kernel.product.v;
    *(int *)arg == 0 ? (x->m = kernel.row) : *(int *)arg == 1 ? (x->n = kernel.row) : (x->k = kernel.row);
    kernel_verify(&kernel);
    expect(false, "a product along rows", "no bug is raised");
}

static void verifier(void)
{
    for (int i = 0; i < 3; i++) {
        Ctx *other = ctx_new(NULL);
        other->on_bug = listen;
        times = 0;
        expect(!guarded(other, other_loops, &i) && strstr(heard[1], "not over three loops"), "a product along rows",
               heard[1]);
        ctx_free(other);
    }
    times = 0;
    Ctx *ctx = ctx_new(NULL);
    bool raised = false;
    ctx->on_bug = listen;
    bool fine = guarded(ctx, inside, &raised);
    expect(!fine && raised && ctx->raised == ST_BUG, "a broken kernel", "no bug is raised");
    expect(times == 2 && strncmp(heard[0], "rows B*T", 8) == 0, "the dump", heard[0]);
    expect(strstr(heard[1], "may leave") != NULL, "the bug", heard[1]);
    ctx_free(ctx);
}

/* ---- vectors ---- */

/* Of a model each loop over elements that is no loop of vectors is made one: none can be. */
static void all_vectors(Ctx *ctx, void *arg)
{
    size_t marked = 0, refused = 0, are = 0, at;
    KernelTexts *k = read(ctx, arg);
    for (size_t i = 0; k && i < k->kernel.n; i++) {
        const Kernel *of = k->kernel.v[i].kernel;
        for (size_t s = 0; of && s < of->stmt.n; s++) {
            bool was = of->stmt.v[s].vector;
            are += was;
            if (of->stmt.v[s].kind != KS_LOOP || !of->stmt.v[s].simd || was)
                continue;
            of->stmt.v[s].vector = true;
            marked++;
            refused += kernel_check(of, &at) != NULL;
            of->stmt.v[s].vector = was;
        }
        expect(!of || !kernel_check(of, &at), "a kernel of a model", "is refused");
    }
    printf("%zu loops of vectors, %zu others made such ones, %zu refused\n", are, marked, refused);
    expect(are > 2 && marked > 3 && refused == marked, "loops that have no vectors", "are accepted");
}

/* ---- damage ---- */

typedef struct Damage {
    const char *text;
    uint64_t seed;
    size_t *still;
} Damage;

static void damaged(Ctx *ctx, void *arg)
{
    Damage *d = arg;
    size_t n = strlen(d->text);
    char *text = arena_copy(ctx->program, d->text, n);
    uint64_t state = d->seed;
    int changes = 1 + (int)(d->seed % 3);
    while (changes-- > 0) {
        size_t at = (size_t)((noise(&state) + 1) / 2 * (double)n);
        size_t from = (size_t)((noise(&state) + 1) / 2 * (double)n);
        size_t len = (size_t)((noise(&state) + 1) * 9);
        if (at + len < n && from + len < n)
            memmove(text + at, text + from, len + 1);
    }
    KernelTexts *k = read(ctx, text);
    if (k)
        for (size_t i = 0; i < k->kernel.n; i++) {
            Buf b = buf_new(ctx->program);
            kernels_put(&b, &k->kernel.v[i]);
            ++*d->still;
        }
    else
        expect(strchr(said(ctx), '^') != NULL, "a damaged text", said(ctx));
}

static void programs_of(Ctx *ctx, void *arg)
{
    Unit *u = load_text(ctx, model_text, variants[7].set);
    PlanOptions how = {.B = 2, .T = 7, .programs = true};
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    Plan *p = plan_build(ctx, ctx->program, graph_simplify(g, ctx->program), &how);
    Buf out = buf_new(ctx->program);
    plan_dump_programs(&out, p);
    *(char **)arg = strdup(out.s);
}

/* The same, as the threads of a device run it. */
static void threads_of(Ctx *ctx, void *arg)
{
    Unit *u = load_text(ctx, model_text, variants[7].set);
    PlanOptions how = {.B = 2, .T = 7, .programs = true, .target = &target_gpu, .half = HALF_BF16};
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    Buf out = buf_new(ctx->program);
    plan_dump_threads(&out, p);
    *(char **)arg = strdup(out.s);
}

static void damage(const char *text, int count)
{
    size_t still = 0;
    for (int i = 0; i < count; i++) {
        Damage d = {text, (uint64_t)i * 7919 + 1, &still};
        Ctx *ctx = ctx_new(NULL);
        expect(guarded(ctx, damaged, &d), "a damaged text", "raises");
        ctx_free(ctx);
    }
    printf("%d damaged texts, %zu kernels still read\n", count, still);
}

static void is_sound(Ctx *ctx, void *text) { read_again(ctx, text); }

/* As it is it is sound, and prints as it was read. */
static void check_sound(const char *text)
{
    static char own[1 << 14];
    snprintf(own, sizeof own, "%s", text);
    Ctx *ctx = ctx_new(NULL);
    expect(guarded(ctx, is_sound, own), "a sound kernel", "raises");
    ctx_free(ctx);
}

static void plant_all(const char *in, const Fault *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        Planted p = {in, &list[i]};
        Ctx *ctx = ctx_new(NULL);
        expect(guarded(ctx, planted, &p), list[i].to, "raises");
        ctx_free(ctx);
    }
}

int main(void)
{
    verifier();
    check_sound(threads);
    check_sound(large);
    plant_all(sound, faults, COUNT_OF(faults));
    plant_all(products, product_faults, COUNT_OF(product_faults));
    plant_all(digits, digit_faults, COUNT_OF(digit_faults));
    plant_all(pitched, pitch_faults, COUNT_OF(pitch_faults));
    plant_all(threads, thread_faults, COUNT_OF(thread_faults));
    plant_all(vectors, vector_faults, COUNT_OF(vector_faults));
    plant_all(large, large_faults, COUNT_OF(large_faults));
    damage(sound, 4000);
    damage(products, 2000);
    damage(threads, 2000);
    char *whole = NULL;
    Ctx *ctx = ctx_new(NULL);
    guarded(ctx, programs_of, &whole);
    expect(guarded(ctx, all_vectors, whole), "vectors of a model", "raises");
    ctx_free(ctx);
    damage(whole, 60);
    free(whole);
    ctx = ctx_new(NULL);
    expect(guarded(ctx, threads_of, &whole), "kernels for threads", "raises");
    ctx_free(ctx);
    damage(whole, 60);
    free(whole);
    printf("%zu faults, %d failures\n",
           COUNT_OF(faults) + COUNT_OF(product_faults) + COUNT_OF(digit_faults) + COUNT_OF(pitch_faults) +
               COUNT_OF(thread_faults) + COUNT_OF(vector_faults) + COUNT_OF(large_faults),
           bad);
    return bad != 0;
}
