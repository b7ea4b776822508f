# check.sh - `vwn check`: statuses, streams, colour, JSON, several files, --deny, --fix.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"
examples="$VWN_SOURCE/examples"

cat > good.vwn << 'END'
edition = 1
let a = 2
let b = a + 1
check a + b == 5
END
sed 's/== 5/== 6/' good.vwn > false.vwn
sed 's/a + 1/a + c/' good.vwn > bad.vwn

expect 0 "$VWN" check good.vwn
has out 'Checking good.vwn'
has out 'ok check a + b == 5'
has out 'Finished 1 check, 0 warnings'
empty err
[ "$(wc -l < out)" -eq 3 ] || fail "$last: not said once"
expect 3 "$VWN" check false.vwn
has out 'FALSE check'
has err 'error[E0801]'
expect 1 "$VWN" check bad.vwn
has err 'error[E0102]'
has err 'bad.vwn:3:13'
expect 1 "$VWN" check false.vwn bad.vwn good.vwn
has out 'Checking good.vwn'
expect 3 "$VWN" check good.vwn false.vwn
expect 1 "$VWN" check no-such-file.vwn
has err 'error[E0106]'
expect 0 "$VWN" check good.vwn -q
empty out
empty err
expect 3 "$VWN" check good.vwn --set a=3
expect 1 "$VWN" check good.vwn --set aa=3
has err 'error[E0105]'
expect 0 "$VWN" check --set a=3 --set b=2 good.vwn

# what may give a position later ones is told, also where a mask decides, and nothing of what surely does not
{ small_model 'block own()(x: [B, T, D]) -> [B, T, D] {
  let map = linear(out = D)
  a = softmax(where(unsqueeze(arange(T)) >= arange(T), x @ x.T, -inf)) @ x
  return map(a)
}' '  embed tokens { vocab = 256 }
  own
  head lm { norm = rms_norm(eps = 1e-6) }'; } > mask.vwn
expect 0 "$VWN" check mask.vwn
has out '      order of tokens: at mask.vwn:'
has out '(own), `softmax` runs over all positions'
empty err
expect 0 "$VWN" check mask.vwn --json
has out '"may_read_later":"`softmax` runs over all positions"'
expect 0 "$VWN" check "$examples/01_nano.vwn" "$examples/20_mtp_chain.vwn"
lacks out 'order of tokens'
sed 's/^  mask *= .*/  mask = full/; s/^  own$/  attention { heads = 2 }/' mask.vwn > full.vwn
expect 0 "$VWN" check full.vwn
has err 'warning[W0307]'
has out 'its mask is not causal'

last="check -"
"$VWN" check - < good.vwn > out 2> err || fail "check -"
"$VWN" check - < bad.vwn > out 2> err && fail "check - of a bad file"
has err '<stdin>:3:13'
mkdir folder
cp good.vwn folder/inside.vwn
expect 0 "$VWN" check -C folder inside.vwn
# what was read beside it, a file once whatever it is imported as, the library last
printf 'edition = 1\nimport "std/transformer"\nimport "good.vwn" as g\nimport "good.vwn" as h (a = 3)\ncheck g.a + h.b == 6\n' > two.vwn
expect 0 "$VWN" check two.vwn
has out 'Checking two.vwn (+ good.vwn, std/transformer.vwn)'

for file in good.vwn false.vwn bad.vwn "$examples/08_xformer_500m.vwn"; do
    "$VWN" check --json "$file" > out 2> err
    last="check --json $file"
    json out
    empty err
    has out '"event":"checked"'
done
"$VWN" check --json bad.vwn > out
has out '"code":"E0102"'

# colour: only on terminals, unless asked for
escape=$(printf '\033')
expect 1 "$VWN" check bad.vwn
lacks err "$escape"
expect 1 "$VWN" check --color always bad.vwn
has err "$escape"
expect 1 env CLICOLOR_FORCE=1 "$VWN" check bad.vwn
has err "$escape"
expect 1 env CLICOLOR_FORCE=1 NO_COLOR=1 "$VWN" check bad.vwn
lacks err "$escape"
expect 1 env CLICOLOR_FORCE=1 "$VWN" check --color never bad.vwn
lacks err "$escape"
expect 1 env VWN_COLOR=always "$VWN" check bad.vwn
has err "$escape"
expect 1 env VWN_COLOR=always "$VWN" check --json bad.vwn
lacks out "$escape"

# the text without colour is the text with it
"$VWN" check --color always bad.vwn 2>&1 | sed "s/${escape}\[[0-9;]*m//g" > plain
"$VWN" check bad.vwn > err 2>&1
cmp -s plain err || fail "colour says more than the text"

# a warning, and what makes an error of it
cat > unused.vwn << 'END'
edition = 1
import "std/transformer"
import "std/connections"
let D = 32
let spare = 1
model m {
  context    = 8
  width      = D
  mask       = causal
  init       = normal(std = 0.02)
  out_init   = normal(std = 0.02)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = residual()
  embed tokens { vocab = 64 }
  ffn { hidden = 64, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }
}
END
expect 0 "$VWN" check unused.vwn
has err 'warning[W0101]'
has out '1 warning'
expect 1 "$VWN" check --deny unused_let unused.vwn
has err 'error[W0101]'
expect 1 "$VWN" check --deny warnings unused.vwn
expect 0 "$VWN" check --deny dead_weights unused.vwn

# a connection with its defaults, and one message for a step that shrinks and claims
{ small_model '' '  embed tokens { vocab = 256 }
  ffn { hidden = 64, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }'; } | sed 's/^  connection *= .*/  connection = carried(head = 16)/' > carried.vwn
expect 0 "$VWN" check carried.vwn
empty err
{ sed 's/hidden = 64/hidden = H/' unused.vwn && echo 'let H = 64
grow g { when = step >= 5, let H = 32, fill { entry = normal(std = 0.1) }
  check preserves(1e-5) }'; } > shrinks.vwn
expect 1 "$VWN" check shrinks.vwn
has err 'error[E0705]'
lacks err 'E0701'

# fixes: whatever is certain is applied, and the file checks as before or better
cp unused.vwn fix.vwn
expect 0 "$VWN" check --fix fix.vwn
cmp -s unused.vwn fix.vwn || fail "$last: a file without a mistake was changed"
{ small_model '' '  embed tokens { vocab_size = 256 } # kept
  ffn { hidden = 64, activation = nn.GELU(), bias = True }
  head lm { norm = None }'; } > wrong.vwn
sed 's/vocab_size/vocab/; s/nn.GELU()/gelu/; s/True/true/; s/None/none/' wrong.vwn > right.vwn
cp wrong.vwn fix.vwn && chmod 640 fix.vwn
expect 0 "$VWN" check --fix fix.vwn
cmp right.vwn fix.vwn || fail "$last: not the text that was meant"
[ "$(stat -c %a fix.vwn)" = 640 ] || fail "$last: another mode"
has err '`vocab_size` -> `vocab`'
has err '`nn.GELU()` -> `gelu`'
has err '`True` -> `true`'
[ "$(grep -c Fixed err)" -eq 4 ] || fail "$last: not each change is told once"
expect 0 "$VWN" check --fix fix.vwn
lacks err Fixed
cmp right.vwn fix.vwn || fail "$last: the second time something was changed"
cp wrong.vwn fix.vwn
expect 1 "$VWN" check fix.vwn
cmp wrong.vwn fix.vwn || fail "$last: changed without --fix"
expect 2 "$VWN" check --fix -
finish
