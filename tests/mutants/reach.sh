# reach.sh - which tests run through which lines of the libraries, for runs of many faults: minutes, or an hour for all tests.
#
# In:  reach.sh BUILD OUT [PATTERN]: a build whose tests were built, a folder to write into, the names of tests (all but those
#      that build, measure or look at sources). VWN_REACH_JOBS, how many at a time (2); VWN_REACH_SECONDS, of processor time that a
#      process of a test may take (60): with 5, tests that take longer are left out, and 150 that stay take four minutes.
# Out: OUT/blocks, lines of a file, a line in which a block of code begins, and the tests that reach it with commas between them;
#      OUT/seconds, each test that passes and its processor time. run.sh reads both, with VWN_REACHED=OUT. What is in OUT/bits is
#      not run again.
# The one idea: the libraries are compiled once more, as one shared library that notes where it was (reach.c); programs of the
#      build are linked with it instead.
set -eu
build=$1
out=$2
pattern=${3:-.}
root=${VWN_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
mutants=$root/tests/mutants
mkdir -p "$out/bin" "$out/bits" "$out/times" "$out/said"
cd "$out"

cc -O2 -fPIC -c "$mutants/reach.c" -o reach.o
cmake -S "$root" -B reach -DCMAKE_BUILD_TYPE=Debug -DBUILD_TESTING=OFF -DCMAKE_EXE_LINKER_FLAGS="$PWD/reach.o" \
    -DCMAKE_C_FLAGS_DEBUG="-O1 -g1 -fno-inline -fPIC -fsanitize-coverage=trace-pc" > /dev/null
cmake --build reach -j 2 --target vwn > build.log
# shellcheck disable=SC2046
cc -shared -o libreach.so -Wl,-Bsymbolic $(find reach/CMakeFiles/vwn.dir -name '*.o') -Wl,--whole-archive reach/libvwn_*.a \
    -Wl,--no-whole-archive reach.o -ldl -lpthread -lm
cc -o bin/vwn -Wl,--no-as-needed "$PWD/libreach.so" "-Wl,-rpath,$PWD"
find "$build/tests" -name link.txt -path '*/test_*' | while read -r file; do
    grep -q ' -o ' "$file" || continue # a library
    name=$(basename "$(dirname "$file")" .dir)
    command=$(sed 's# -o [^ ]*##; s# [./]*libvwn_[a-z]*\.a##g' "$file")
    (cd "${file%/CMakeFiles/*}" && eval "$command -o '$out/bin/$name' '$out/libreach.so' -Wl,-rpath,'$out'") 2> "said/$name.link" || rm -f "bin/$name"
done

# One test: its line of the list. The folder of tests and this one are paths without blanks, as all of a build are.
cat > one.sh << 'END'
set -f
out=$PWD
# shellcheck disable=SC2086
set -- $1
name=$1
shift 3
[ ! -f "times/$name" ] || exit 0
settings=
while case $1 in *=*) true ;; *) false ;; esac; do
    settings="$settings $1"
    shift
done
case $1 in */test_*) set -- "$out/bin/$(basename "$1")" ;; esac
mkdir -p "scratch/$name"
cd "scratch/$name"
ulimit -t "${VWN_REACH_SECONDS:-60}"
# shellcheck disable=SC2086
env $settings VWN="$out/bin/vwn" VWN_REACH="$out/bits/$name" timeout -s KILL 240 "$@" > "$out/said/$name" 2>&1 < /dev/null
{ echo "status $?" && times; } > ended
mv ended "$out/times/$name"
rm -rf "$out/scratch/$name"
END

ctest --test-dir "$build" --show-only=json-v1 | awk -f "$mutants/tests.awk" |
    grep -vE '^(mutants|bench|nvrtc|rooms)\.|^[^ ]* [a-z0-9,]*whole' |
    awk -v pattern="$pattern" '$1 ~ pattern' > order
xargs -d '\n' -n 1 -P "${VWN_REACH_JOBS:-2}" sh one.sh < order || true

# Where blocks begin, as addresses behind which the call of reach.c ends; then their lines; then the tests of each line.
rm -rf at
mkdir at
: > seconds
for file in times/*; do
    name=${file#times/}
    if ! grep -q 'status 0$' "$file" || [ ! -s "bits/$name" ]; then continue; fi
    sed -n 3p "$file" | tr 'ms' '  ' | awk -v name="$name" '{ printf "%s %.2f\n", name, $1 * 60 + $2 + $3 * 60 + $4 }' >> seconds
    { cmp -l "bits/$name" /dev/zero 2> /dev/null || true; } | awk '{ print ($1 - 1) * 4 - 1 }' > "at/$name"
done
sort -un at/* > addresses
awk '{ printf "%x\n", $1 }' addresses | addr2line -e libreach.so | sed "s#.*/\.\./##; s#^$root/##; s#:\([0-9?]*\).*# \1#" | paste -d ' ' addresses - > lines
awk 'FNR == 1 { name = FILENAME; sub(/.*\//, "", name) }
    FILENAME == "lines" { at[$1] = $2 " " $3; next }
    ($1 in at) && at[$1] !~ /\?/ && last[at[$1]] != name {
        last[at[$1]] = name
        tests[at[$1]] = tests[at[$1]] (tests[at[$1]] == "" ? "" : ",") name
    }
    END { for (line in tests) print line, tests[line] }' lines at/* | sort > blocks
echo "$(wc -l < seconds) tests reach $(wc -l < blocks) lines"
