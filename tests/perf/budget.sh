# budget.sh - what kernels of large models should take on an H100, predicted, against tests/perf/budget.txt.
#
# In:  budget.vwn with each connection in its place; NVRTC and nvdisasm (skipped where one is missing).
# Out: a line for each module's slowest kernel of a pass; status 0 where none takes longer than its line of the list says and 5 % more, and
#      none less than three quarters: a line that is too generous is to be lowered with the change that made it so.
#      `sh tests/perf/budget.sh --bless` prints the list as it should be. Nothing of it is measured.
# The one idea: a kernel is known by the module it was made for first, without the number of its layer.
# When: slow, at most 1800 s. It compiles for three architectures.
. "$VWN_SOURCE/tests/support/lib.inc"

slack=1.05
generous=0.75
bless=${1:-}

predict() { # NAME CONNECTION WIDTH [settings and flags]
    name=$1
    sed "s|CONNECTION|$2|; s|WIDTH|$3|" "$VWN_SOURCE/tests/perf/budget.vwn" > "$name.vwn"
    shift 3
    "$PREDICT" "$name.vwn" --gpu h100 --json "$@" > out 2> err && return
    grep -qE 'nvdisasm, which is in none|CUDA compiler NVRTC' err && { echo "skipped: $(cat err)"; exit 77; }
    last="$name"
    fail "$name: no prediction"
    return 1
}

# A whole step of 32,768 tokens of a GPT of 0.41B weights, or with another connection.
step() { # NAME CONNECTION WIDTH
    predict "$@" --set D=1024 --set heads=16 --set hidden=2816 --set L=24 --set model.context=2048 \
        --set train.batch='16 seqs' --set train.micro_batch='16 seqs' || return 0
    sed -n 's/.*"event":"predicted_step",.*"products":\([0-9.e-]*\),"kernels":\([0-9.e-]*\),"launching":\([0-9.e-]*\)}.*/\1 \2 \3/p' out |
        awk -v name="$name" '{ printf "%s step %.1f\n", name, 1e6 * ($1 + $2 + $3) }' >> counted
}

count() { # NAME CONNECTION WIDTH [settings]
    predict "$@" --program train || return 0
    # MODEL PATH MICROSECONDS of the slowest kernel of each path that takes 5 and more, products of the library aside
    sed -n 's/.*"event":"predicted",.*"kernel":"\(k_[^"]*\)","path":"\([^"]*\)".*"seconds":\([0-9.e-]*\),"classes".*/\2 \3/p' out |
        sed 's/layer\[[0-9]*\]/layer/' |
        awk -v name="$name" '{ us = 1e6 * $2; if (us > most[$1]) most[$1] = us }
            END { for (path in most) if (most[path] >= 5) printf "%s %s %.1f\n", name, path, most[path] }' | sort >> counted
}

: > counted
count vwn-2-3 'ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))' 'D * 3 \/ 2'
count hyper-4 'hyper(n = 4, dynamic = true)' D
count mhc-4 'mhc(n = 4)' D
count vwn-2-3-1k 'ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))' 'D * 3 \/ 2' --set D=1024 --set heads=16 --set hidden=2816 --set L=2
count mhc-4-1k 'mhc(n = 4)' D --set D=1024 --set heads=16 --set hidden=2816 --set L=2
count vwn-4-8 'ghc(m = 4, n = 8, dynamic = true, reduce = linear(out = D))' 'D * 2'
count vwn-8-64 'ghc(m = 8, n = 64, dynamic = true, reduce = linear(out = D))' 'D * 8' --set D=1024 --set heads=16 --set hidden=2816 --set L=2
count experts residual D --set experts=64 --set hidden=1024 --set L=2
step gpt-0.41b residual D
step vwn-0.41b 'ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))' 'D * 3 \/ 2'
[ "$failures" -eq 0 ] || finish

if [ "$bless" = --bless ]; then
    sed -n '/^#/p' "$VWN_SOURCE/tests/perf/budget.txt"
    column -t counted
    exit 0
fi
awk -v slack=$slack -v generous=$generous '
    /^#/ { next }
    NR == FNR { limit[$1 " " $2] = $3; next }
    { key = $1 " " $2; seen[key] = 1
      printf "%-10s %-44s %9.1f us predicted, %s may be\n", $1, $2, $3, limit[key]
      if (!(key in limit)) { print "  no line of the list names it"; bad++ }
      else if ($3 > slack * limit[key]) { print "  slower than the list says"; bad++ }
      else if ($3 < generous * limit[key]) { print "  faster: lower its line"; bad++ } }
    END { for (key in limit) if (!(key in seen)) { print key ": the list names what is not there"; bad++ }
          exit bad > 0 }' "$VWN_SOURCE/tests/perf/budget.txt" counted > report || fail "kernels take something else than tests/perf/budget.txt says: $(cat report)"
cat report
# a list that says half of it is found out
awk '/^#/ { print; next } { print $1, $2, $3 / 2 }' "$VWN_SOURCE/tests/perf/budget.txt" > in_16bit
awk -v slack=$slack '/^#/ { next } NR == FNR { limit[$1 " " $2] = $3; next } $3 > slack * limit[$1 " " $2] { bad++ } END { exit bad > 5 }' in_16bit counted &&
    fail "half of the times are taken for enough"
finish
