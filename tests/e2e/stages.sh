# stages.sh - a graph that was printed goes on as the file would: for every example and every program
# each stage made of the dump of an earlier one is byte for byte that stage of the file. Stages
# between those compared follow, since the text of one is all that the next is made of.
#
# Layers repeat, so the deep examples have few here, in which everything occurs that occurs in them;
# quickstart and nano stay as they are. Sanitizers look for faults of memory: there each example goes
# through the program that is largest, and one through all.
# When: first.
. "$VWN_SOURCE/tests/support/lib.inc"

# next FROM TO: stage TO made of the dump of stage FROM is the direct dump.
next() {
    expect 0 "$VWN" ir --from "$1" --stage "$2" --batch '2 seqs' --positions "$positions"
    cmp -s out "$2" || fail "$name, $program: $2 made of the dump of $1 differs"
}

files=0
for file in "$VWN_SOURCE"/examples/*.vwn; do
    name=$(basename "$file" .vwn)
    grep -q '^model ' "$file" || continue
    files=$((files + 1))
    [ "$name" = 01_nano ] || draw 2 4 || continue
    case $name in
    01_nano | quickstart) few= ;;
    *) few='s/^let L *= .*/let L = 3/; s/^  for layer in 1\.\.8 {/  for layer in 1..4 {/' ;;
    esac
    # without checks of the numbers of weights; a graph has no precision and no recompute of its own
    sed -e "$few" -e '/^ \{0,2\}check .*[^{]$/d' -e '/^  recompute *=/d' \
        -e 's/^  precision *=.*/  precision = fp32/' "$file" > "$name.vwn"
    programs="predict eval"
    if grep -q '^train ' "$file"; then programs="train update eval predict"; fi
    case ${VWN_BUILD_TYPE:-} in
    Sanitize) [ "$name" = 01_nano ] || programs=${programs%% *} ;;
    esac
    for program in $programs; do
        for stage in tensor gradient simple fuse kernel plan; do
            "$VWN" ir "$name.vwn" --stage $stage --program $program --batch '2 seqs' > $stage 2> err ||
                fail "$name, $program: no stage $stage"
        done
        positions=$(sed -n '1s/^plan B 2 T \([0-9]*\) .*/\1/p' plan)
        next tensor tensor
        next tensor gradient
        next gradient simple
        for stage in simple fuse kernel plan; do
            next simple $stage
        done
        grep -q ' [1-9][0-9]* kernels' plan || fail "$name, $program: no kernels"
    done
    if [ "$name" = 01_nano ]; then next tensor kernel; fi # all at once
done
[ $files -ge 11 ] || fail "only $files examples have a model"
finish
