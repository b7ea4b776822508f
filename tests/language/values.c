/* values.c - static values: numbers, units, lists, lazy lets, comparisons, functions.
 *
 * In:  one file with a check per rule.   Out: every check is true.
 * When: quick.
 */
#include "support.h"

static const char text[] =
    "edition = 1\n"
    "# numbers\n"
    "check 1_000 == 1k and 1M == 1e6 and 2B == 2e9 and 1T == 1e12 and 1Ki == 1024 and 1Mi == 1024 ^ 2\n"
    "check 9_007_199_254_740_994 == 2 ^ 53 + 2\n"
    "check 8% == 0.08 and 1024 / 3 * 3 == 1024\n"
    "check -2 ^ 2 == -4 and 2 ^ 3 ^ 2 == 512 and 2 * 3 + 4 == 10 and 2 + 3 * 4 == 14\n"
    "check -7 mod 3 == 2 and 7 mod -3 == -2 and 7.5 mod 2 == 1.5\n"
    "check floor(-1.5) == -2 and ceil(1.2) == 2 and round(2.6) == 3 and abs(-3) == 3\n"
    "check near(sqrt(2) ^ 2, 2, 1e-12) and near(exp(log(5)), 5, 1e-12) and near(logit(0.5), 0, 0)\n"
    "check max(3, 4) == 4 and min([3, 1, 2]) == 1 and sum([1, 2, 3]) == 6 and mean([1, 2, 3]) == 2\n"
    "check clamp(5, 0, 3) == 3 and clamp(-1.5, -1, 1) == -1 and [clamp(x / 2, 0, 1) for x in 0..3] == [0, 0.5, 1, 1]\n"
    "check where(2 > 1, 5, 6) == 5 and where(false, 5, 6) == 6 and where(0, 1, 2) == 2 and round(2.5) == 2 and "
    "round(3.5) == 4\n"
    "check 5 < inf and -inf < -1e300 and inf == inf\n"
    "check mod_power(3, 5, 7) == 5 and mod_power(2, 62, 1_000_003) == mod_power(4, 31, 1_000_003)\n"
    "# quantities keep their unit\n"
    "check 2 * 3 seqs == 6 seqs and 3 seqs + 4 seqs == 7 seqs and 6 steps / 2 == 3 steps\n"
    "check 3 seqs < 4 seqs and 1 seq == 1 seqs and 0.5M tokens == 500k tokens\n"
    "check 3 steps != 3 seqs\n"
    "# lists\n"
    "check size([]) == 0 and size(1..5) == 5 and size(5..1) == 0 and (1..3) == [1, 2, 3]\n"
    "let squares = [i * i for i in 1..5 if i mod 2 == 1]\n"
    "check squares == [1, 9, 25] and squares[2] == 9\n"
    "check [10 * i + j for i in 1..2, j in 1..2] == [11, 12, 21, 22]\n"
    "check [[if i == j then 1 else 0 for j in 1..2] for i in 1..2] == [[1, 0], [0, 1]]\n"
    "let table = [[1, 2], [3, 4]]\n"
    "check table[2, 1] == 3 and table[2][1] == 3\n"
    "check [x for x in [y for y in 1..3] if x > 1] == [2, 3]\n"
    "# lazy, in any order; the branch that is not taken and what follows a decided `and` are not evaluated\n"
    "let early = late + 1\n"
    "let late  = 41\n"
    "let never = 1 / 0\n"
    "check early == 42\n"
    "check (if true then 1 else never) == 1 and not (false and never == 1) and (true or never == 1)\n"
    "# words, functions and none compare by name\n"
    "check gelu == gelu and gelu != silu and none == none and \"a\" != \"b\"\n"
    "# width schedules\n"
    "let w = constant(layers = 3, width = 8)\n"
    "check w == [8, 8, 8]\n"
    "let x = geometric(layers = 24, base = 960, bottleneck = 0.3d, at = 0.75L,\n"
    "                  match = dense(mlp_matrices = 3, expansion = 4), round = 32)\n"
    "check size(x) == 24 and x[18] == 288 and x[1] == x[24] and x.bottleneck == 0.3d\n"
    "let y = arithmetic(layers = 4, base = 64, bottleneck = 0.5d, at = 4, first = 64, round = 1)\n"
    "check y[1] == 64 and y[4] == 32 and y[2] > y[3]\n"
    "# static functions: blocks without tensors\n"
    "block pick(a: int, b: int = a + 1) { return if a > 3 then b else a }\n"
    "check pick(a = 3) == 3 and pick(a = 4) == 5 and pick(a = 4, b = 9) == 9\n"
    "block fact(n: int) { return if n <= 1 then 1 else n * fact(n = n - 1) }\n"
    "check fact(n = 10) == 3_628_800\n"
    "# typed lets\n"
    "let heads : int = 8\n"
    "let kind  : one_of(wide, deep) = deep\n"
    "check heads == 8 and kind == deep\n";

/* A body with so many names that they are indexed: each function keeps what its names meant where it was written, and
 * the sum of what they return is known. */
static void closures(Test *t)
{
    enum { NAMES = 300 };
    static char body[1 << 16];
    size_t n =
        (size_t)snprintf(body, sizeof body, "edition = 1\nlet far = 7\nblock all() {\n  let x = 0\n  let total = 0\n");
    int64_t want = 0;
    for (int i = 1; i <= NAMES; i++) {
        /* `x` is bound again and again, `own` once; the function before sees the old `x` */
        n += (size_t)snprintf(body + n, sizeof body - n,
                              "  let own%d = %d\n  block f%d(k: int) { return k * x + own%d + far }\n  let x = x + 1\n"
                              "  let total = total + f%d(k = 3)\n",
                              i, i * i, i, (i + 1) / 2, i);
        want += 3 * (i - 1) + ((i + 1) / 2) * ((i + 1) / 2) + 7;
    }
    snprintf(body + n, sizeof body - n, "  return total\n}\ncheck all() == %lld\n", (long long)want);
    Checked c = check_text("-", body, NULL);
    expect_fine(t, "closures", &c);
    EXPECT(t, "closures", c.unit && c.unit->check.n == 1 && c.unit->check.v[0].state == CHECK_TRUE);
    ctx_free(c.ctx);
}

int main(void)
{
    Test t = {0};
    closures(&t);
    Checked c = check_text("-", text, NULL);
    expect_fine(&t, "values", &c);
    for (size_t i = 0; c.unit && i < c.unit->check.n; i++) {
        EXPECT(&t, c.unit->check.v[i].text, c.unit->check.v[i].state == CHECK_TRUE);
    }
    ctx_free(c.ctx);
    return test_end(&t);
}
