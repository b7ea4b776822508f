# verbs.sh - what `vwn check` refuses every verb refuses: each verb on files that are wrong ends with the status of check and leaves
# nothing behind. Where only a `check` is false, verbs that print what the file says do so, which may tell why, and end with 3. The files are those of tests/errors, under their arguments, and random ones an edit away from a valid one; pairs of a
# file and a verb are drawn. Verbs come from the program's help: a new one fails until it stands here.
. "$VWN_SOURCE/tests/support/lib.inc"

"$ERROR_CASES" --unpack .
{ small_model '' '  embed tokens { vocab = 256 }
  ffn { hidden = 16, activation = gelu }
  head lm { norm = rms_norm(eps = 1e-6) }'; } > good.vwn

# What a verb does with the file $file, as `verb FLAGS... -- ` lines for those that read files. A sweep of a file without one gets its seeds
# from the command line, so that it would run.
cat > ways <<'EOT'
params FILE
params FILE --losses
cost FILE
ir FILE --stage ast
ir FILE --stage resolved
ir FILE --stage plan
ir FILE --stage c
emit c FILE -o left/c
emit cuda FILE -o left/cuda
grow FILE step --plan
train FILE --run left/run
train FILE --run left/run --dry-run
launch -n 1 train FILE --run left/run
sweep FILE --list
sweep FILE --run left/sweep
diff FILE good.vwn
diff good.vwn FILE
plot FILE
plot FILE train.optimizer.lr -o left/p.svg
graph FILE -o left/g.dot
bench FILE --steps 1
resolve FILE
resolve FILE --origins
EOT
# Those that read a run or a checkpoint, which no such file is; those that go on, since they read no model; what calls all others.
runs='watch eval sample serve inspect compare report export export-log'
others='new tokenize resume runs check fmt explain doc doctor lsp completions'
"$VWN" --help | sed -n 's/^  vwn \([a-z][a-z-]*\) .*/\1/p' | grep -v VERB | sort > verbs
{ cut -d ' ' -f 1 ways; echo "$runs $others" | tr ' ' '\n'; } | sort -u | cmp -s - verbs || fail "other verbs than those of this test: $(cat verbs)"

mkdir left
# refused STATUS FILE WAY [ARGUMENTS]: this verb ends with it, and writes nothing
refused() {
    wanted=$1 file=$2 way=$3 named=
    shift 3
    case $way in
    sweep*) grep -q '^sweep ' "$file" || named='--seeds 1' ;;
    esac
    # shellcheck disable=SC2046,SC2086 # a way is words
    "$VWN" $(echo "$way" | sed "s|FILE|$file|") $named "$@" > out 2> err < /dev/null
    got=$?
    last="$way, $file"
    [ $got -eq "$wanted" ] || fail "vwn $way of $file $*: exit status $got, and \`vwn check\` has $wanted"
    [ -z "$(ls left)" ] || { fail "vwn $way of $file leaves $(ls left)"; rm -rf left/*; }
}

# ---- the cases of tests/errors: their messages say what `vwn check` ends with, which errors.run has tested ----
grep -E '^(params|cost|ir|resolve|diff|emit|train|sweep|bench) ' ways > ways_false
for err in E*.err W*.err; do
    name=${err%.err} status=1
    if ! grep '^error\[E' "$err" | grep -qv '^error\[E0801\]'; then
        grep -q '^error\[E0801\]' "$err" && grep -q '^model ' "$name.vwn" || continue
        status=3
    fi
    list=ways
    [ $status -eq 1 ] || list=ways_false
    while IFS= read -r way; do
        draw 29 211 || continue
        set --
        [ ! -f "$name.args" ] || eval "set -- $(cat "$name.args")"
        refused $status "$name.vwn" "$way" "$@"
    done < $list
done
echo "$taken calls on cases of tests/errors"

# ---- random files: one edit away from valid; what check accepts is left out ----
some=6 seed=3 wrong=0
if whole; then some=500; elif sanitized; then some=1; fi
while [ $wrong -lt $some ] && [ $seed -lt 8000 ]; do
    "$MODELS" --show $seed > random.vwn
    seed=$((seed + 4))
    "$VWN" check random.vwn > out 2> err < /dev/null
    status=$?
    [ $status -eq 1 ] || continue # random files have no checks of their own
    wrong=$((wrong + 1))
    while IFS= read -r way; do
        draw 3 29 || continue
        refused $status random.vwn "$way"
    done < ways
done
[ $wrong -eq $some ] || fail "$wrong random files are wrong, not $some"

# ---- of two files the worse one decides: errors, then a check that is false ----
sed 's/^let D = 16/let D = 16\ncheck D == 17/' good.vwn > false.vwn
sed 's/hidden = 16/hiden = 16/' good.vwn > wrong.vwn
expect 0 "$VWN" diff good.vwn good.vwn
expect 3 "$VWN" diff good.vwn false.vwn
expect 3 "$VWN" diff false.vwn good.vwn
expect 3 "$VWN" diff false.vwn false.vwn
expect 1 "$VWN" diff false.vwn wrong.vwn
expect 1 "$VWN" diff wrong.vwn false.vwn
expect 1 "$VWN" diff good.vwn wrong.vwn
finish
