# graph.sh - `vwn graph`: shapes against those of `vwn ir`, weights and FLOPs against the counts of `vwn params` and `vwn cost`,
# ends of edges, folded layers, thickness to scale; Graphviz draws it where it is installed.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

small_model '' '  embed tokens { vocab = 64 }
  for layer in 1..6 {
    attention { heads = 2, position = rope(base = 10_000) }
    ffn { hidden = if layer == 3 then 48 else 24, activation = gelu }
  }
  head lm { norm = rms_norm(eps = 1e-6), tie = tokens }' > model.vwn

# edges FILE: from to value shape width weight next, a line each; boxes FILE: id path times params flops
edges() { sed 's/.*"edges":\[//; s/\]}$//; s/},{/\n/g' "$1" | sed 's/[{}]//g; s/"from"://; s/,"to":/ /; s/,"value":/ /; s/,"shape":"/ "/; s/,"width":/ /; s/,"weight":/ /; s/,"next":/ /'; }
boxes() { sed 's/.*"boxes":\[//; s/\],"edges".*//; s/{"id":/\n/g' "$1" | sed -n 's/^\([0-9]*\),"kind":"\([a-z]*\)","path":"\([^"]*\)",*\("times":\([0-9]*\),"params":\([0-9]*\),"flops":\([0-9.e+]*\)\)*.*/\1 \2 \3 \5 \6 \7/p'; }
# every edge ends at boxes, and its value has in the graph of the compiler the shape that is told
check_edges() {
    boxes out | awk '{ print $1 }' > ids
    edges out > edges
    awk 'NR == FNR { id[$1] = 1; next } !id[$1] || !id[$2] { bad = 1 } END { exit bad || FNR < 5 }' ids edges || fail "an edge without an end"
    awk 'NR == FNR { if ($1 ~ /^%/) { line = $0; sub(/^[^:]*: [a-z]* /, "", line); sub(/ *#.*/, "", line); shape[substr($1, 2)] = line; } next }
         { split($0, part, "\""); if (shape[$3] != part[2]) { print $3 ": " part[2] ", wanted " shape[$3]; bad = 1 } } END { exit bad }' ir edges > differ ||
        fail "shapes: $(head -n 2 differ)"
}

# (the program of a training step has the values of the model under their numbers)
{
    cat model.vwn
    small_train 'length = 1 steps
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }' | sed 's/bytes()/chars()/'
} > trained.vwn
expect 0 "$VWN" ir trained.vwn --stage tensor --program train
cp out ir
expect 0 "$VWN" graph model.vwn --json
json out
check_edges
boxes out > boxes
[ "$(awk '$2 == "module" { print $3 }' boxes | tr '\n' ' ')" = \
    "embed.tokens layer[1..2].attention layer[1..2].ffn layer[3].attention layer[3].ffn layer[4..6].attention layer[4..6].ffn head.lm " ] ||
    fail "boxes: $(cat boxes)"
key() { grep -o "\"$1\":[0-9.e+]*" "$2" | head -n 1 | sed 's/.*://'; }
cp out graph.json
expect 0 "$VWN" cost model.vwn --json
[ "$(awk '{ n += $4 * $5 } END { printf "%d", n }' boxes)" = "$(key stored out)" ] || fail "weights of boxes: $(awk '{ n += $4 * $5 } END { print n }' boxes)"
[ "$(awk '{ n += $4 * $6 } END { printf "%d", n }' boxes)" = "$(key flops_per_token out)" ] || fail "FLOPs of boxes: $(awk '{ n += $4 * $6 } END { print n }' boxes)"
[ "$(grep -c 'true$' edges)" -eq 2 ] || fail "two groups of equal layers follow themselves"
has out '"dead":0,"live":'
grep -o '"ops":\[[^]]*\]' graph.json | sed 's/.*\[//; s/\]//' |
    awk -F, '{ split("", seen); for (i = 1; i <= NF; i++) if (seen[$i]++) bad = 1 } END { exit bad || NR < 5 }' || fail "an operator stands twice in a box"
for by in layer tensor; do
    expect 0 "$VWN" params model.vwn --by $by --json
    json out
    [ "$(sed 's/.*"rows"/"rows"/; s/"groups".*//' out | grep -o '"stored":[0-9]*' | awk -F: '{ n += $2 } END { print n }')" = "$(key stored out)" ] ||
        fail "the rows by $by are not the whole"
done

# one layer, and one module; what stands around it is there, too
expect 0 "$VWN" graph model.vwn --layer 3 --json
check_edges
boxes out | grep -q 'layer\[3\].attention.q_proj 1 256 512$' || fail "a projection of the layer"
boxes out | grep -q 'layer\[2\].ffn' || fail "where the layer reads from"
boxes out | grep -q 'layer\[5\]' && fail "a layer far away"
expect 0 "$VWN" graph model.vwn --layer head.lm --json
check_edges

# DOT: the same ends; thickness is width
expect 0 "$VWN" graph model.vwn
sed -n 's/.*\(n[0-9]*\) \[shape=.*/\1/p' out | sort > nodes
sed -n 's/^\(n[0-9]*\) -> \(n[0-9]*\) .*/\1 \2/p' out | tr ' ' '\n' | sort -u > ends
[ -z "$(comm -13 nodes ends)" ] || fail "an edge to nothing"
[ "$(grep -c -e ' -> ' out)" -eq "$(edges graph.json | wc -l)" ] || fail "DOT and JSON have other edges"
sed -n 's/.*label=" *\[B, T, \([0-9]*\)\]",penwidth=\([0-9.]*\).*/\1 \2/p' out | awk '{ d = $2 - (0.3 + 11.7 * ($1 < 16 ? $1 : 16) / 16); if (d < -0.01 || d > 0.01) exit 1; n++ } END { exit n < 5 }' ||
    fail "thickness is not to scale"
expect 0 "$VWN" graph model.vwn -o g.dot
cmp -s out /dev/null || fail "-o writes to stdout, too"
PATH=/nowhere expect 5 "$VWN" graph model.vwn -o g.svg
has err 'install the package graphviz'
if command -v dot > /dev/null; then
    for layer in 1 3; do
        expect 0 "$VWN" graph "$VWN_SOURCE/examples/07_vwn_x8_moe.vwn" --layer $layer -o g.svg
        grep -q '</svg>' g.svg || fail "no picture"
    done
    # the picture in the README is that of its model: the same words and the same lines, whatever lays them out
    expect 0 "$VWN" graph "$VWN_SOURCE/examples/quickstart.vwn" -o front.svg
    for svg in front.svg "$VWN_SOURCE/examples/quickstart.svg"; do
        sed -n 's/.*<text [^>]*>\(.*\)<.text>/\1/p; s/.*stroke-width="\([0-9.]*\)".*/line \1/p' "$svg" | sort > "$(basename "$svg").words"
    done
    mv front.svg.words front.words
    cmp -s front.words quickstart.svg.words || fail "vwn graph examples/quickstart.vwn -o examples/quickstart.svg: the picture in the README is an old one"
    [ "$(wc -l < front.words)" -gt 20 ] || fail "no words in the picture"
    expect 0 "$VWN" graph model.vwn -o g.svg
    [ "$(grep -c 'class="node"' g.svg)" -eq "$(wc -l < nodes)" ] || fail "the picture has other boxes"
    [ "$(grep -c 'class="cluster"' g.svg)" -eq 3 ] || fail "the picture has other clusters"
fi

expect 2 "$VWN" graph model.vwn --layer 7
has err 'has no layer `7`'
expect 2 "$VWN" graph model.vwn --layer 'layer[1].atention'
has err 'did you mean `layer[1].attention`?'
expect 2 "$VWN" graph model.vwn -o g.png
expect 2 "$VWN" graph model.vwn -o g.dot --json
expect 1 "$VWN" graph "$VWN_SOURCE/examples/04_hyper_x4.vwn"
has err 'has no model of its own'
finish
