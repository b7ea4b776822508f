# passes.sh - no pass runs beside the list: what changes a kernel program or a graph has a row in compiler/plan/passes.def.
#
# In:  the headers of compiler/kernel, gpu, pass and plan, for functions that take a program to change it, or make a graph of a
#      graph; all sources, for who calls them.
# Out: status 0 when plan/pipeline.c calls each of them, and nobody else but those below does. A row without a function does not
#      link: its name stands in a table of functions.
# When: slow. It reads sources.
set -eu

# Who else may: "function file", and why.
cat > others.txt << 'END'
graph_simplify compiler/pass/join.c
graph_simplify compiler/report/report_ir.c
kernel_spill_arrays compiler/gpu/structure.c
END
# graph_simplify: what is joined is simplified again; `--stage simple` is of a graph before any plan. kernel_spill_arrays: a
# canonical form says which arrays a block has room for.

# No passes of a plan: kernel_init begins a program; graph_rewrite is how passes walk; graph_recompute and graph_new belong to the
# program of a run (compiler/model).
none='^(kernel_init|graph_rewrite|graph_recompute|graph_new|graph_read)$'

passes() {
    # shellcheck disable=SC2046 # names of headers are words
    cat $(ls compiler/graph/*.h compiler/kernel/*.h compiler/gpu/*.h compiler/pass/*.h compiler/plan/*.h) |
        sed -nE -e 's/^void (kernel_[a-z_0-9]*)\(Kernel \*.*/\1/p' \
            -e 's/^(const )?Graph \*(graph_[a-z_0-9]*|plan_round_[a-z_0-9]*|decompose)\(.*const (Graph) \*.*/\2/p' |
        grep -Ev "$none" | sort -u
}

# One line for each call in a file that is neither the pipeline nor the function's own.
faults() {
    passes > found.passes
    while IFS= read -r pass; do
        grep -q "[^a-z_]$pass(" compiler/plan/pipeline.c || echo "$pass has no row in compiler/plan/passes.def"
        # shellcheck disable=SC2046 # names of sources are words
        grep -lE "[^a-z_\"]$pass\([^)]" $(find compiler runtime -name '*.c' ! -path '*/plan/pipeline.c') | while IFS= read -r file; do
            ! grep -qE "^[A-Za-z].*[ *]$pass\(" "$file" || continue
            grep -qxF "$pass $file" "$here/others.txt" || echo "$file runs $pass beside the list"
        done
    done < found.passes
}

here=$PWD
(cd "$VWN_SOURCE" && passes) > list.txt
[ "$(wc -l < list.txt)" -ge 18 ] || { cat list.txt; echo "hardly any passes were found"; exit 1; }
tree() { # a copy of what is looked at
    rm -rf tree
    mkdir tree
    (cd "$VWN_SOURCE" && tar -cf - compiler runtime) | (cd tree && tar -xf -)
}
tree
cd tree
faults > ../found.txt
[ ! -s ../found.txt ] || { cat ../found.txt; exit 1; }

# What it looks for, planted.
expect() {
    faults > ../found.txt
    [ "$(cat ../found.txt)" = "$1" ] || { echo "wanted: $1"; cat ../found.txt; exit 1; }
}
echo 'void kernel_new_pass(Kernel *k);' >> compiler/gpu/device.h
expect "kernel_new_pass has no row in compiler/plan/passes.def"
printf 'void kernel_map_all(Kernel *k)\n{\n    kernel_new_pass(k);\n}\n' >> compiler/gpu/tile.c
printf '    kernel_new_pass(k);\n' >> compiler/plan/pipeline.c
expect "compiler/gpu/tile.c runs kernel_new_pass beside the list"
