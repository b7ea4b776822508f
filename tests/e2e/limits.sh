# limits.sh - too little address space (ulimit -v), files that may not grow (ulimit -f), crashes: one
# sentence and the right exit status for every verb and every limit.
# When: slow. The sanitizers report crashes themselves, stand in for malloc and need address space without end.
. "$VWN_SOURCE/tests/support/lib.inc"
[ "${VWN_BUILD_TYPE:-}" != Sanitize ] || exit 77 # the sanitizers need address space without end
yes 'the quick brown fox jumps over the lazy dog' | head -n 300 > text.txt
cat > tiny.vwn << END
edition = 1
import "std/transformer"
import "std/connections"

model tiny {
  context    = 16
  width      = 16
  mask       = causal
  init       = normal(std = 0.1)
  out_init   = normal(std = 0.1)
  pre_norm   = rms_norm(eps = 1e-6)
  connection = residual()
  embed tokens { vocab = 256 }
  for l in 1..2 { ffn { hidden = 32, activation = gelu } }
  head lm { norm = rms_norm(eps = 1e-6) }
}

train {
  data      = text_file("text.txt", val = 20%)
  tokenizer = bytes()
  batch     = 8 seqs
  length    = 40 steps
  seed      = 1
  precision = fp32
  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }
  eval { every = 4 steps, batches = 2 }
  checkpoint { every = 2 steps, keep = 2 }
  log { every = 1 steps }
}
END
expect 0 "$VWN" fmt tiny.vwn
expect 0 "$VWN" train tiny.vwn --until '2 steps'
cp -r runs/tiny whole

verbs='new;check tiny.vwn;fmt --check tiny.vwn;params tiny.vwn;cost tiny.vwn;ir tiny.vwn --stage plan;
emit c tiny.vwn -o emitted --force;train tiny.vwn --run other --overwrite --until 4_steps;
train tiny.vwn --run tiny --resume --until 4_steps;eval runs/tiny;sample runs/tiny --tokens 3;
bench tiny.vwn --steps 2;resolve tiny.vwn;explain E0101;doc rms_norm;doctor'

# limited OPTION VALUE: every verb under `ulimit OPTION VALUE` ends with 0, or with 5 and a sentence
limited() {
    echo "$verbs" | tr -d '\n' | tr ';' '\n' > list
    while read -r line; do
        [ "$line" = new ] && line="new made$2"
        rm -rf runs "made$2"
        mkdir runs
        cp -r whole runs/tiny
        last="ulimit $1 $2: vwn $line"
        {
            (
                ulimit "$1" "$2"
                set -f
                IFS=' '
                set -- $line
                for word; do
                    shift
                    [ "$word" = 4_steps ] && word='4 steps'
                    set -- "$@" "$word"
                done
                exec timeout 60 "$VWN" "$@"
            ) 2>&1 > /dev/null < /dev/null
            echo $? > status
        } | cat > err # a pipe: what is said is no file
        got=$(cat status)
        : > out
        case $got in
        0) ok=$((ok + 1)) ;;
        5) refused=$((refused + 1))
            [ "$(grep -c '^error' err)" -eq 1 ] || fail "not one error" ;;
        127) has err 'loading shared libraries' ;; # it never began
        *) fail "exit status $got" ;;
        esac
        [ $got -ne 5 ] || [ -z "${VWN_SHOW:-}" ] || echo "$last: $(tail -n 1 err | cut -c1-150)"
    done < list
}
ok=0 refused=0
for kib in ${VWN_LADDER:-6000 9000 13000 20000 30000 45000 70000 100000}; do limited -v $kib; done
echo "ulimit -v: $ok fine, $refused refused"
[ $refused -gt 20 ] || fail "the ladder is too high: $refused"

# kernels are compiled anew, so that the cache has no part in it
ok=0 refused=0
for blocks in ${VWN_LADDER_F:-0 1 2 4 16 64 512}; do
    export XDG_CACHE_HOME="$PWD/cache$blocks"
    limited -f $blocks
    for left in runs/*/ckpt/.*.tmp runs/*/.*.tmp; do [ ! -e "$left" ] || fail "left behind: $left"; done
done
echo "ulimit -f: $ok fine, $refused refused"
[ $refused -gt 5 ] || fail "the ladder is too high: $refused"
finish
