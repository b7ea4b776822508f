# emit_torch.sh - a package of `vwn emit torch` without PyTorch: what is written, that its library builds, and what that computes of
# static hyper-connections with any number of rows, forward and backward, beside sums in float64.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v cc > /dev/null || exit 77
cat > hyper.vwn << 'END'
edition = 1
import "std/transformer"
import "std/connections"

model two {
  context    = 8
  width      = 8
  mask       = causal
  init       = normal(std = 0.5)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = hyper(n = 2, dynamic = false)
  embed tokens { vocab = 16 }
  for layer in 1..2 {
    linear { out = 8 }
  }
  head lm { norm = rms_norm(eps = 1e-6) }
}
END
expect 0 "$VWN" emit torch hyper.vwn -o package --node '*' --build
has out package/two/_table.py
has out 'next: pip install package'
filled package/two/_kernels.so
for file in pyproject.toml setup.py README.md two/__init__.py two/_op.py two/csrc/kernels.c; do filled package/$file; done
# both sublayers have one text; their initial values differ
[ "$(grep -c '"name": ' package/two/_table.py)" -eq 4 ] || fail "the table has $(grep '"name": ' package/two/_table.py)"
has package/two/_table.py '"layer[2].linear.connection.A_m", (2, 1, ), ("list", (0, 1, ))'
expect 0 "$VWN" emit torch hyper.vwn -o again --node '*' -q
expect 0 diff -r package again -x _kernels.so
expect 0 "$VWN" emit torch hyper.vwn -o one --node 'layer[2].linear.connection' --name mine --json
json out
has out one/mine/_table.py
lacks one/mine/_table.py 'layer[1]'

# the whole model; its blocks by their name, of which both have one text, and by a path
expect 0 "$VWN" emit torch hyper.vwn -o all -q
has all/two/_table.py '"kind": "model"'
has all/two/_table.py '("embed.tokens.W", "embed.tokens.W", (16, 8, ), ("normal", 0'
has all/two/_table.py '"ranges": ((0, 16, False), (1, 16, True), )'
expect 0 "$VWN" emit torch hyper.vwn -o blocks --block linear -q
[ "$(grep -c '"name": ' blocks/two/_table.py)" -eq 1 ] || fail "blocks: $(grep '"name": ' blocks/two/_table.py)"
[ "$(grep -c '"kind": "block"' blocks/two/_table.py)" -eq 2 ] || fail "blocks: $(grep '"path": ' blocks/two/_table.py)"
has blocks/two/_table.py '("pre_norm.g", "layer[2].linear.pre_norm.g", (8, )'
expect 0 "$VWN" emit torch hyper.vwn -o blocks --block 'layer[2].linear' -q
lacks blocks/two/_table.py 'layer[1]'
expect 1 "$VWN" emit torch hyper.vwn -o other --block linea
has err 'applies no block `linea`; its sublayers are layer[1].linear, layer[2].linear'
expect 2 "$VWN" emit torch hyper.vwn -o other --block linear --node 'layer[1].linear'
has err '`--node` and `--block` exclude each other'
sed 's/linear *{ out = 8 }/ffn { hidden = 8, activation = gelu, dropout = 0.1 }/; s/^  init  .*/&\n  out_init = zeros/' hyper.vwn > drop.vwn
expect 1 "$VWN" emit torch drop.vwn -o other
has err 'of the model is no function of what it is given: it draws random numbers'
expect 0 "$VWN" emit torch drop.vwn -o dropless --set 'layer[*].ffn.dropout=0' -q

cat > call.c << 'END'
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
enum { N = 2, D = 8 };
static int64_t (*workspace)(unsigned, int64_t, int64_t);
static void (*call)(unsigned, int64_t, int64_t, void *const *, const unsigned char *, const int64_t *, void *, int, uint64_t);
static int bad;

static float *numbers(size_t n, unsigned seed)
{
    float *x = malloc((n + 1) * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((int)((i * 7919 + seed * 104729) % 2003) - 1001) / 1000;
    return x;
}

static void is(const char *what, double got, double wanted, double size)
{
    if (fabs(got - wanted) > 2e-6 * (size + fabs(wanted)) && bad++ < 5)
        printf("%s is %g, wanted %g\n", what, got, wanted);
}

static void run(unsigned f, int64_t B, int64_t T, void *const *tensor, int threads)
{
    static const unsigned char type[16]; /* all float32 */
    static const int64_t unread[16];
    void *room = malloc((size_t)workspace(f, B, T));
    call(f, B, T, tensor, type, unread, room, threads, 1000);
    free(room);
}

int main(void)
{
    static const int64_t sizes[][2] = {{1, 1}, {1, 33}, {5, 7}, {1031, 1}, {1, 1031}, {3, 2048}};
    void *lib = dlopen("./package/two/_kernels.so", RTLD_NOW);
    *(void **)&workspace = lib ? dlsym(lib, "vwn_workspace") : NULL;
    *(void **)&call = lib ? dlsym(lib, "vwn_call") : NULL;
    if (!call || !workspace || ((const char *(*)(void))dlsym(lib, "vwn_missing"))())
        return puts(lib ? "no function" : dlerror()), 1;
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++) {
        const int64_t B = sizes[k][0], T = sizes[k][1], R = B * T;
        float *H = numbers(R * N * D, 1), *y = numbers(R * D, 2), *Am = numbers(N, 3), *Bw = numbers(N, 4), *Ar = numbers(N * N, 5);
        float *gx = numbers(R * D, 6), *gs = numbers(R * N * D, 7), *x = numbers(R * D, 8), *s = numbers(R * N * D, 9);
        float *gH = numbers(R * N * D, 10), *gy = numbers(R * D, 11), *gA = numbers(N, 12), *gB = numbers(N, 13), *gR = numbers(N * N, 14);
        double sA[N] = {0}, sB[N] = {0}, sR[N * N] = {0};
        run(0, B, T, (void *[]){H, Am, x}, 2);
        run(2, B, T, (void *[]){H, y, Bw, Ar, s}, 2);
        for (int64_t r = 0; r < R; r++)
            for (int d = 0; d < D; d++) {
                double sum = 0;
                for (int i = 0; i < N; i++) {
                    sum += (double)Am[i] * H[(r * N + i) * D + d];
                    sA[i] += (double)gx[r * D + d] * H[(r * N + i) * D + d];
                    sB[i] += (double)gs[(r * N + i) * D + d] * y[r * D + d];
                    for (int j = 0; j < N; j++)
                        sR[i * N + j] += (double)gs[(r * N + j) * D + d] * H[(r * N + i) * D + d];
                }
                is("x", x[r * D + d], sum, 1);
                for (int j = 0; j < N; j++) {
                    sum = (double)Bw[j] * y[r * D + d];
                    for (int i = 0; i < N; i++)
                        sum += (double)Ar[i * N + j] * H[(r * N + i) * D + d];
                    is("the state", s[(r * N + j) * D + d], sum, 1);
                }
            }
        for (int threads = 1; threads < 4; threads++) {
            run(1, B, T, (void *[]){H, Am, gx, gH, gA}, threads);
            for (int64_t i = 0; i < R * N * D; i++)
                is("a gradient of read", gH[i], (double)Am[i / D % N] * gx[i / (N * D) * D + i % D], 1);
            run(3, B, T, (void *[]){H, y, Bw, Ar, gs, gH, gy, gB, gR}, threads);
            for (int i = 0; i < N; i++) {
                is("that of A_m", gA[i], sA[i], 3 * sqrt((double)R));
                is("that of B", gB[i], sB[i], 3 * sqrt((double)R));
            }
            for (int i = 0; i < N * N; i++)
                is("that of A_r", gR[i], sR[i], 3 * sqrt((double)R));
            for (int64_t i = 0; i < R * D; i++)
                is("that of y", gy[i], (double)Bw[0] * gs[i / D * N * D + i % D] + (double)Bw[1] * gs[i / D * N * D + D + i % D], 2);
        }
    }
    if (!bad)
        puts("as computed by hand");
    return bad != 0;
}
END
expect 0 cc -O1 -o call call.c -ldl -lm
expect 0 ./call
has out 'as computed by hand'

expect 2 "$VWN" emit torch hyper.vwn -o package --train
has err 'a package for PyTorch has no training of its own'
expect 2 "$VWN" emit torch hyper.vwn -o package --batch '2 seqs'
expect 2 "$VWN" emit c hyper.vwn -o package --node 'layer[1].linear'
has err '`--node` is for `vwn emit torch`'
expect 2 "$VWN" emit torch hyper.vwn -o other --name 2-two
has err '`2-two` is no name of a package'
expect 1 "$VWN" emit torch hyper.vwn -o other --node 'layer[7].linear'
has err 'no sublayer `layer[7].linear`'
mkdir foreign
echo mine > foreign/notes.txt
expect 2 "$VWN" emit torch hyper.vwn -o foreign
has err 'holds files that `vwn emit` has not written'
finish
