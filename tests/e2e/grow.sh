# grow.sh - `vwn grow --plan`: exit status 6 for changes, 0 for none; wrong names and uses are told apart.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

file="$VWN_SOURCE/examples/09_nexus_growth.vwn"
expect 6 "$VWN" grow "$file" to_300m --plan
has out '~ layer[12].attention.v_proj.W_A [780, 960] -> [1088, 1228]'
has out '+ entry 209,040 = zeros'
has out '+ inner 82,544 = normal(std = 0.02)'
has out '187,936,512 numbers are old, 37,066,752 new'
[ "$(grep -c ' axis 1, read: 308 new from 780 on$' out)" -eq 36 ] || fail "new inputs are not told"
has out 'preserves: proved'
has out 'alive: 72 of 180 new blocks at once, 180 of 180 new blocks after one update'
expect 6 "$VWN" grow "$file" to_300m --plan --json
has out '"preserved":true,"factor":1,"alike":0,"blocks":180,"dead":0,"by_data":0,"alive_after":1}'
has out '"parts":[[0,780,0],[780,308,-1]]'
expect 0 "$VWN" grow "$file" to_300m --plan --set M=1088 --set A=1228
has out '0 grown, 0 new'
expect 1 "$VWN" grow "$file" to_400m --plan
has err 'it has to_300m, to_380m'
expect 2 "$VWN" grow "$file" to_300m
has err '--plan'
# behind a false check no step is planned: that the file has none is not said, of the file alone or for a run, nor of a later step
squares > text.txt
{ small_model 'let hidden = 24' '  embed tokens { vocab = 256 }
  ffn { hidden = hidden, activation = gelu }
  head lm { norm = none }'
small_train '  length = 2 steps
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }'; } > small.vwn
printf 'grow wide { when = step >= 2, let hidden = 32 }\ngrow wider { when = step >= 2, let hidden = 40 }\n' >> small.vwn
expect 6 "$VWN" grow small.vwn wider --plan
expect 0 "$VWN" train small.vwn --device reference --run r --until '1 steps' -q
sed '/^grow wide /s/let/check params < 100, let/' small.vwn > inner.vwn
echo 'check params < 100 "small"' >> small.vwn
for plan in 'small.vwn wide' 'small.vwn wider' 'inner.vwn wider' 'runs/r small.vwn wide'; do
    # shellcheck disable=SC2086
    expect 3 "$VWN" grow $plan --plan
    has err E0801
    lacks err 'no growth step'
done
finish
