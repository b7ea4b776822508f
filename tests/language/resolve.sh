# resolve.sh - `vwn resolve`: the text checks to the same, resolves to itself and is formatted; nothing
# is dropped. Over the examples, every file under tests that checks, and cases of its own.
# When: first, slow. It walks over what other tests make under the sanitizers.
. "$VWN_SOURCE/tests/support/lib.inc"

# facts FILE CHECK RESOLVED: what a file is to a user: its checks (as `vwn check` printed them), growth and sweeps,
# its weights, its graphs without places. The graph of `eval` is the forward half of `train`.
facts() {
    grep -v 'Checking\|Finished' "$2" |
        sed -e 's/^ *\(ok check\|FALSE check\|not checked\).*/\1/' -e 's/^ *off [^ ]* /off /' -e 's/^\( *order of tokens: at\) [^ ]*/\1/'
    if grep -q '^model ' "$3"; then
        "$VWN" params "$1" --by tensor 2> /dev/null
        programs=predict
        if grep -q '^train ' "$3"; then programs="train update"; fi
        for program in $programs; do
            "$VWN" ir "$1" --stage tensor --program $program 2> /dev/null | sed 's/  # .*//'
        done
    fi
}

# proof NAME [FLAGS]: NAME.vwn resolves to a text that has all that was promised.
proof() {
    name=$1
    shift
    status=0
    "$VWN" check "$name.vwn" "$@" > checked 2> /dev/null || status=$?
    expect $status "$VWN" resolve -q "$name.vwn" "$@"
    cp out "$name.resolved.vwn"
    expect 0 "$VWN" fmt --check "$name.resolved.vwn"
    expect $status "$VWN" resolve -q "$name.resolved.vwn"
    cmp -s out "$name.resolved.vwn" || fail "$name: resolved twice is another text"
    if [ $# -eq 0 ]; then
        facts "$name.vwn" checked "$name.resolved.vwn" > before
        "$VWN" check "$name.resolved.vwn" > checked 2> /dev/null
        facts "$name.resolved.vwn" checked "$name.resolved.vwn" > after
        cmp -s before after || fail "$name: the resolved text is another model"
    fi
}

cp "$VWN_SOURCE"/examples/*.vwn .
for file in "$VWN_SOURCE"/examples/*.vwn; do
    case $(basename "$file" .vwn) in
    12_sweep | 09_nexus_growth | 03_qwen3_0_6b | 04_hyper_x4) ;; # looked at below
    *) draw 18 || continue ;;
    esac
    proof "$(basename "$file" .vwn)"
done
has 12_sweep.resolved.vwn 'sweep bottleneck {'
has 09_nexus_growth.resolved.vwn 'grow to_380m {'
has 03_qwen3_0_6b.resolved.vwn 'names hf {'
has 04_hyper_x4.resolved.vwn 'check 1176765184 - 1176764416 == 768'

number=0
"$ERROR_CASES" --unpack cases
cp "$VWN_SOURCE"/tests/front/corpus/*.vwn cases
cd cases || exit 1
refused=$(grep -l '^error' ./*.err | grep -vxF "$(grep -lx 'error\[E0801\].*' ./*.err)" | sed 's/err$/vwn/')
for file in $(printf '%s\n' ./*.vwn | grep -vxF "$refused"); do
    file=${file#./}
    status=0
    "$VWN" check -q "$file" > /dev/null 2>&1 || status=$?
    [ $status -eq 0 ] || [ $status -eq 3 ] || continue
    number=$((number + 1))
    draw 24 || continue
    proof "${file%.vwn}"
done
[ $number -ge 10 ] || fail "only $number files of the tests check"
cd ..

cat > base.vwn << 'END'
edition = 1
import "std/transformer"
import "std/connections"
let size   = 32
let double = 2 * size
let span   = 4000 steps
let widths = [size, 48, -1]
let conn   = hyper(n = 2, dynamic = false)
let mlp    = wide(factor = 2)
block wide(factor: int)(x: [.., D]) -> [.., D] {
  let up   = linear(out = factor * D)
  let down = linear(out = D)
  return down(gelu(up(x)))
}
model small {
  context    = 16
  width      = size
  init       = normal(std = 0.02)
  out_init   = init
  pre_norm   = none
  connection = conn
  embed tokens { vocab = 11 }
  wide { factor = 2 }
  head lm { norm = none }
}
END
sed -i 's/out_init   = init/out_init   = normal(std = 0.02)/' base.vwn
cat > user.vwn << 'END'
import "base.vwn" as m
import "base.vwn" as wide_m (size = 64)
import "std/transformer"
import "std/connections"

let size = 1 # not that of m
let D    = m.double; let E = 3

model user {
  context    = 8
  width      = D
  mask       = causal
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = m.conn
  check D == 64 "the width is twice"
  embed tokens { vocab = 256 }
  attention { heads = -m.widths[3] + 1 }
  parallel {
    ffn { hidden = wide_m.widths[1], activation = gelu }
    m.wide { factor = 1 }
  }
  head lm { norm = none }
}
check wide_m.params > m.params # two models
check params == 3 "wrong"

train {
  data      = token_files("x/*.bin", dtype = u16, val = 5%)
  batch     = 4 seqs
  length    = m.span
  seed      = 1
  precision = fp32
  optimizer sgd { lr = linear(peak = 0.1, floor = 0), momentum = 0.9, weight_decay = 0 }
  eval { every = 10 steps }
}
names other { "x" = embed.tokens.W.T }
grow more {
  when = tokens >= 1B
  let D = m.double * 2
  check params > 2 * wide_m.params
}
END
"$VWN" check -q user.vwn > out 2> err
grep -q 'E0801' err || sed -i '/m.wide {/d' user.vwn # a node is one word
sed -i 's/^let size = 1 .*/&\nlet mlp = m.mlp/; s/^  parallel {/&\n    mlp/' user.vwn
proof user
for line in '# was m.double' '= 3' 'block wide(factor' 'names other {' 'log { every = 1 steps }' \
    'clip        = 0' 'micro_batch = 4 seqs' 'nesterov     = false' 'decay        = decoupled' 'batches = 10' 'check D == 64' 'warmup = 0' \
    'header = none' 'let D = 64 * 2' '# two models'; do
    has user.resolved.vwn "$line"
done
lacks user.resolved.vwn 'base.vwn'
# a library that is there under a name is not there for the blocks that are taken in
sed 's/^import "std.connections"$/& as c/' user.vwn > named.vwn
expect 3 "$VWN" check -q named.vwn
proof named
mkdir alone
cp user.resolved.vwn alone
expect 3 "$VWN" check alone/user.resolved.vwn

# overrides become part of the text; resolved again nothing of them is left to do
proof 01_nano --set D=96 --set 'layer[2].attention.heads=3' --set train.optimizer.lr='constant(1e-3)' --set train.eval.every='5 steps'
has 01_nano.resolved.vwn 'let D = 96  # --set; was 384'
has 01_nano.resolved.vwn '# --set; was 250 steps'
proof 08_xformer_500m --set width.bottleneck=0.5d

# a step of another file keeps its import, which a run cannot; a sweep is none of its business
{ sed -e 's/vocab = 65/vocab = 256/' -e 's/chars()/bytes()/' -e '/^check/d' 01_nano.vwn; echo 'import "base.vwn" as b'; echo 'sweep s { of = b'; echo ' vary { size = [32, 64] } }'; } > both.vwn
proof both
has both.resolved.vwn 'import "base.vwn" as b'
mkdir data
sed 200q "$VWN_SOURCE/grammar/README.md" > data/shakespeare.txt
expect 0 "$VWN" train both.vwn -q --run both --set D=48 --set L=1 --set 'train.batch=1 seqs' --until '1 steps'
has runs/both/resolved.vwn '/- sweep s {'
lacks runs/both/resolved.vwn 'import "base.vwn"'
sed 's/^sweep s { of = b/grow s { of = b, when = step >= 1/; s/ vary { size = .32, 64. } }/ let size = 64 }/' both.vwn > grown.vwn
expect 1 "$VWN" train grown.vwn
has err 'grown.vwn:'
has err 'move it'

# a name that cannot be kept apart is refused, not changed
cat > clash.vwn << 'END'
edition = 1
import "base.vwn" as m
block wide(factor: int)(x: [.., D]) -> [.., D] { return x }
let mine  = m.mlp
model clash {
  context    = 8
  width      = 32
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = none
  connection = m.conn
  embed tokens { vocab = 11 }
  mine
  head lm { norm = none }
}
END
sed -i 's/^import "base.vwn" as m/import "std\/transformer"\n&/' clash.vwn
expect 0 "$VWN" check clash.vwn
expect 1 "$VWN" resolve clash.vwn
has err 'another name'
finish
