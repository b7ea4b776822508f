# stages.sh - a graph that was printed goes on as the file would: for every example, every program
# and every stage, the next stage of the dump is byte for byte the next stage of the file.
. "$VWN_SOURCE/tests/e2e/lib.inc"

# next FROM TO: stage TO made of the dump of stage FROM is the direct dump.
next() {
    expect 0 "$VWN" ir --from "$1" --stage "$2" --batch '2 seqs' --positions "$positions"
    cmp -s out "$2" || fail "$name, $program: $2 made of the dump of $1 differs"
}

for file in "$VWN_SOURCE"/examples/*.vwn; do
    name=$(basename "$file" .vwn)
    grep -q '^model ' "$file" || continue
    programs="predict eval"
    if grep -q '^train ' "$file"; then programs="train update eval predict"; fi
    for program in $programs; do
        for stage in tensor gradient simple fuse kernel plan; do
            "$VWN" ir "$file" --stage $stage --program $program --batch '2 seqs' > $stage 2> err ||
                fail "$name, $program: no stage $stage"
        done
        positions=$(sed -n '1s/^plan B 2 T \([0-9]*\) .*/\1/p' plan)
        for stage in tensor gradient simple kernel; do
            next tensor $stage
        done
        next gradient simple
        next simple simple
        next simple fuse
        next simple plan
        grep -q ' [1-9][0-9]* kernels' plan || fail "$name, $program: no kernels"
    done
done
finish
