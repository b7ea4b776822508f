# examples.sh - every example checks, and resolves to a text that builds the same model; its graph and its kernels read back.
. "$VWN_SOURCE/tests/support/lib.inc"

for file in "$VWN_SOURCE"/examples/*.vwn; do
    draw 5 || continue
    name=$(basename "$file" .vwn)
    expect 0 "$VWN" check "$file"
    lacks out 'FALSE'
    expect 0 "$VWN" resolve "$file"
    cp out "$name.vwn"
    expect 0 "$VWN" fmt --check "$name.vwn"
    expect 0 "$VWN" resolve --json "$file"
    json out
    has out '"event":"resolved"'
    expect 0 "$VWN" resolve --origins --json "$file"
    [ ! -s out ] || json out
    if grep -q '^model ' "$file"; then
        for by in node layer group tensor; do
            expect 0 "$VWN" params "$file" --by $by
            cp out original
            expect 0 "$VWN" params "$name.vwn" --by $by
            cmp -s original out || fail "$name: the resolved file has other weights"
        done
        for flags in "" --losses "--by tensor"; do
            expect 0 "$VWN" params --json $flags "$file"
            json out
        done
        expect 0 "$VWN" ir "$file" --stage tensor
        cp out graph
        expect 0 "$VWN" ir --from graph --stage tensor
        cmp -s graph out || fail "$name: the graph does not read back"
        for stage in kernel threads; do # of a CPU, and as the threads of a device run them
            expect 0 "$VWN" ir "$file" --stage $stage
            cp out kernels
            expect 0 "$VWN" ir --from kernels --stage kernel
            cmp -s kernels out || fail "$name: its kernels do not read back: $stage"
            [ "$(grep -c '^kernel ' kernels)" -gt 2 ] || fail "$name: hardly any kernels"
        done
    else
        expect 1 "$VWN" params "$file"
        has err 'has no model'
    fi
done

# overrides reach the resolved text
nano="$VWN_SOURCE/examples/01_nano.vwn"
sed '/^check/d' "$nano" > n.vwn
set -- --set D=96 --set L=2 --set 'layer[2].attention.heads=3' --set train.seed=7 \
    --set 'layer[*].ffn.dropout=0'
expect 0 "$VWN" resolve n.vwn "$@"
cp out r.vwn
has r.vwn 'let D = 96'
has r.vwn 'seed      = 7'
expect 0 "$VWN" params n.vwn --by tensor "$@"
cp out original
expect 0 "$VWN" params r.vwn --by tensor
cmp -s original out || fail "the resolved file with overrides has other weights"
expect 0 "$VWN" resolve --origins n.vwn --set D=96
has out -- '--set'

# labels in quotes stay quoted
sed 's/^  optimizer adamw {/&\n    group "*.q_proj.W" { lr_scale = 0.5 }/' n.vwn > quoted.vwn
expect 0 "$VWN" resolve quoted.vwn
has out 'group "*.q_proj.W"'

# imports are taken in
mkdir lib
cat > lib/base.vwn << 'END'
edition = 1
import "std/transformer"
let size = 48
block wide(factor: int)(x: [.., D]) -> [.., D] {
  let up   = linear(out = factor * D)
  let down = linear(out = D)
  return down(gelu(up(x)))
}
END
sed -e 's/^import "std\/connections"/&\nimport "lib\/base.vwn" (size = 96)/' \
    -e 's/^let D = .*/let D = size/' -e 's/ffn .*{.*/wide { factor = 2 }/' n.vwn > user.vwn
expect 0 "$VWN" resolve user.vwn
cp out alone.vwn
rm -r lib/
expect 0 "$VWN" params alone.vwn
has out 'layer[*].wide'
finish
