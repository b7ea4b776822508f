#!/bin/sh
# Every example of grammar/README.md and README.md is a part of a file that checks: blocks between ``` lines, and what stands in a line
# and has braces. Fragments get the file that they would stand in; what is a form and no example is listed here, so that a new
# example without a file around it fails.
# When: quick.

set -u
vwn=${1:-$VWN}
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 2
failed=0
checked=0

wrong() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}
# fine WHAT FILE: checks without an error
fine() {
    checked=$((checked + 1))
    "$vwn" check -q "$2" 2>said || { cat said; wrong "$1"; }
}

# ---- the files around fragments ----
imports='edition = 1
import "std/transformer"
import "std/connections"'
# model SUBLAYERS [HEADS]: 16 wide
model() {
    set -- "$1" "${2:-}"
    cat <<EOT
model framed {
  context = 16
  width = 16
  mask = causal
  init = normal(std = 0.02)
  out_init = normal(std = 0.02)
  pre_norm = rms_norm(eps = 1e-6)
  connection = residual()
  embed tokens { vocab = 256 }
$1
  head lm { norm = rms_norm(eps = 1e-6) }
$2
}
EOT
}
adamw='optimizer adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }'
train() { # OTHER ITEMS, OPTIMIZER
    cat <<EOT
train {
  data = text_file("t.txt", val = 5%)
  tokenizer = bytes()
  batch = 4 seqs
  length = 200B tokens
  seed = 1
  precision = fp32
  $1
  $2
  eval { every = 50 steps }
}
EOT
}
layers='  attention { heads = 2 }
  ffn { hidden = hidden, activation = gelu }'

# fragment FILE: the frame is chosen by how it begins
fragment() {
    text=$(cat "$1")
    case $text in
    'edition = 1'*) cat "$1" ;;
    '## y = x W'*'block linear('*)
        printf 'edition = 1\nimport "std/transformer" as t\nimport "std/connections"\nlet rms_norm = t.rms_norm\nlet embed_tokens = t.embed_tokens\nlet head_lm = t.head_lm\n%s\n' "$text"
        model '  linear { out = 16, bias = true }' ;;
    'block residual('*)
        printf 'edition = 1\nimport "std/transformer"\nlet hidden = 8\n%s\n' "$text"
        model "$layers" ;;
    'names before {'*)
        printf '%s\nblock mlp()(x: [.., D]) -> [.., D] {\n  let wide = linear(out = D)\n  return wide(x)\n}\n' "$imports"
        model '  for stage in 1..3 { mlp { } }'
        echo "$text" ;;
    'names hf {'*)
        echo "$imports"
        model '  for layer in 1..2 { attention { heads = 2 } }'
        echo "$text" ;;
    'names there {'*)
        printf '%s\nlet tie_word_embeddings = false\n' "$imports"
        model '  for layer in 1..2 {
    attention { heads = 2 }
    moe { experts = 3, active = 1, hidden = 8, activation = silu, scores = softmax, normalize = true, balance = 0 }
  }'
        echo "$text" ;;
    'train {'*)
        cat whole1
        echo "$text" ;;
    'optimizer muon {'*)
        echo "$imports"
        echo 'let hidden = 8'
        model "$layers"
        train '' "$text" ;;
    'grow to_300m {'*)
        printf '%s\nlet M = 1024\nlet hidden = M\n' "$imports"
        model "$layers"
        train '' "$adamw"
        echo "$text" ;;
    'grow wider {'*)
        printf '%s\nlet hidden = 64\n' "$imports"
        model "$layers"
        train '' "$adamw"
        echo "$text" ;;
    'sweep bottleneck {'*)
        { printf '%s\nlet d = 640\nlet L = 8\nlet lr = 1e-3\nlet hidden = 8\nlet width = geometric(layers = L, base = d, bottleneck = 0.4d, at = 0.75L, first = 1.0d, round = 32)\n' "$imports"
          model '  for layer in 1..L { attention { heads = 2, head_dim = width[layer] / 2 } }'
          train '' 'optimizer adamw { lr = lr, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }'; } >xformer.vwn
        printf 'edition = 1\nimport "xformer.vwn" as xformer\n%s\n' "$text" ;;
    'variant "base.vwn" {'*)
        { printf '%s\nlet D = 16\nlet hidden = D\n' "$imports"
          model "  for layer in 1..2 {
$layers
  }"
          train '' "$adamw" | sed '/eval {/d'; } >base.vwn
        printf 'edition = 1\n%s\n' "$text" ;;
    'check n >= m "'*)
        printf '%s\nblock held(n: int, m: int)(x: [.., D]) -> [.., D] {\n%s\n  return x\n}\n' "$imports" "$text"
        model '  held { n = 3, m = 2 }' ;;
    *) return 1 ;;
    esac
}

# what is no example: the form of a block, the grammar, what programs print
is_form() {
    case $(head -n 1 "$1") in
    'block NAME(configuration)'* | 'file     :'* | 'quickstart  1,955,856 '* | '    '*) return 0 ;;
    esac
    return 1
}

for source in grammar/README.md README.md; do
    rm -f example*
    awk '/^```$/ { inside = !inside; n += inside; next } inside { print > sprintf("example%02d", n) }' "$root/$source"
    [ "$source" != grammar/README.md ] || cp example01 whole1
    for example in example??; do
        [ -e "$example" ] || { wrong "no example in $source"; continue; }
        is_form "$example" && continue
        if fragment "$example" >framed.vwn; then
            fine "$source, $(head -n 1 "$example")" framed.vwn
        else
            wrong "$source: no file is written around $(head -n 1 "$example")"
        fi
    done
done

# ---- in a line ----
awk '/^```/ { inside = !inside; next } !inside' "$root/grammar/README.md" | grep -o '`[^`]*{[^`]*`' | tr -d '`' | sort -u >inline
while IFS= read -r text; do
    case $text in
    # forms: what may stand somewhere is left out, or is a name for it
    *'...'* | *NAME* | *LABEL* | *'{ }'* | '{'*'}' | 'layer { sublayers }') 
        case $text in
        'parallel { attention { } ffn { } }' | 'ffn first { }' | 'ffn second { }' | 'ffn { hidden = 4 * D, ... }' | 'for depth in 1..4 {'*) ;;
        *) continue ;;
        esac ;;
    'optimizer '*'{ lr, '*) continue ;; # the attributes of each kind, which language.attributes has
    'check expr "text"'* | 'for i in list'* | 'if c {'*) continue ;;
    esac
    echo "$imports" >framed.vwn
    case $text in
    'attention { heads = 16, head_dim = width[layer] / 16 }')
        { echo 'let width = [32, 64]'; model "  for layer in 1..2 { $text }"; } >>framed.vwn ;;
    'block half('*) { echo "$text"; echo 'let hidden = half(n = 16)'; model "$layers"; } >>framed.vwn ;;
    'checkpoint {'*) { echo 'let hidden = 8'; model "$layers"; train "$text" "$adamw"; } >>framed.vwn ;;
    'ffn { connection ='*)
        { echo 'let hidden = 8'
          model "$layers
  ffn widened { activation = gelu, hidden = 8, ${text#ffn ?}" | sed 's/connection = residual()/connection = hyper(n = 4, dynamic = true)/'; } >>framed.vwn ;;
    'ffn { hidden = 4 * D, ... }') { echo 'let D = 4'; model '  ffn { hidden = 4 * D, activation = gelu }'; } >>framed.vwn ;;
    'ffn first { }' | 'ffn second { }')
        { model "  ffn first { hidden = 8, activation = gelu }
  ffn second { hidden = 8, activation = gelu }"; } >>framed.vwn ;;
    'fill {'*) { echo 'let hidden = 8'; model "$layers"; printf 'grow wider {\n  when = start\n  let hidden = 16\n  %s\n}\n' "$text"; } >>framed.vwn ;;
    'for depth in 1..4 { head mtp { predict = depth + 1, ... } }')
        echo 'let hidden = 8' >>framed.vwn
        model "$layers" "  ${text%%, ...*}, weight = 1, mix = linear(out = 16), norm = rms_norm(eps = 1e-6), layer { attention { heads = 2 } } } }" \
            >>framed.vwn ;;
    'parallel {'*) { echo 'let hidden = 8'; model "  parallel {
$layers
  }"; } >>framed.vwn ;;
    'param W : '*)
        { printf 'block held(a: dim, b: dim, init: init, s: float, d: float)(x: [.., a]) -> [.., b] {\n  %s\n  return x @ W\n}\n' "$text"
          model '  held { a = 16, b = 16, init = zeros, s = 1, d = 0 }'; } >>framed.vwn ;;
    *) wrong "grammar/README.md: no file is written around \`$text\`"; continue ;;
    esac
    fine "grammar/README.md, \`$text\`" framed.vwn
done <inline

echo "$checked files, $failed failed"
test "$failed" -eq 0 && test "$checked" -ge 20
