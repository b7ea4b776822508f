# run.sh - draws faults anywhere in compiler, runtime, grammar and tests/perf/tool, plants one at a time, and runs what could find it.
#
# In:  run.sh BUILD [SEED [N [PLACE...]]]: a build, what is drawn (mutate.c), how many, or the places themselves. A build with
#      sanitizers sees what is read behind an end, too, and has not all tests.
#      known.txt names places that are not drawn, with the reason. map.txt has the tests with which a fault of a folder
#      or a file is looked for, in this order. In the environment:
#          VWN_REACHED          what reach.sh wrote: the tests that reach the line of a fault, instead of the map's
#          VWN_MUTANT_TESTS     tests, instead of both
#          VWN_MUTANT_SECONDS   of processor time for a fault, after which no further test begins (30)
#          VWN_MUTANT_JOBS      how many faults at a time (2)
#          VWN_MUTANT_LEAST     of a hundred that must be found (80)
#          VWN_MUTANT_LEFT      1: places that known.txt names as not found yet, or late, are drawn, too
#          VWN_MUTANT_LOG       a file for lines of: place, line, what became of it, test, hundredths of a second of
#                               processor time. What is in it is not tried again; beside it, as .passed, stand the
#                               tests that each place's fault has passed
# Out: status 0 when enough are found. A test finds a fault by any end but status 0 and 77, and by taking ten times its
#      time and two seconds. What does not compile, or compiles to the same code, is drawn again.
# The one idea: what was mutated is compiled as its build compiles it and linked before the libraries, whose own copy
#      the linker then leaves out. Nothing of a source is quoted: a place is a file, a function, a kind and a number.
# When: first, slow, whole. Under the sanitizers it would find nothing that it does not find without.
set -u
build=$1
seed=${2:-1}
wanted=${3:-10}
[ $# -lt 3 ] && shift $# || shift 3
root=${VWN_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
here=$PWD
limit=${VWN_MUTANT_SECONDS:-30}
jobs=${VWN_MUTANT_JOBS:-2}
least=${VWN_MUTANT_LEAST:-80}
log=${VWN_MUTANT_LOG:-$here/log}
reached=${VWN_REACHED:-}
mutants=$root/tests/mutants
[ -f "$build/CMakeFiles/vwn.dir/link.txt" ] || {
    echo "the build in $build is not one of CMake's makefiles"
    exit 77
}

# ---- what was built, as lines ----

# Sources, objects and commands of the libraries, the program and what predicts.
commands() {
    sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$build/compile_commands.json" | sed 's/\\\(.\)/\1/g' |
        sed -n 's/^\(.*\) -o \(CMakeFiles\/vwn[a-z_]*\.dir\/[^ ]*\) -c \([^ ]*\)$/\3 \2 \1/p' |
        sed "s#^$root/##; s#^\(tests/perf/\)\([^ ]* \)#\1\2\1#"
}

# The objects whose sources read a file, which is not C itself: the compiler wrote down what it read.
readers() {
    # (of ../compiler/graph/ops.def, say, which stands between blanks)
    grep -rlF --include='*.o.d' -e "../$1 " -e "../$1
" "$build"/CMakeFiles/vwn*.dir "$build"/tests/perf/CMakeFiles/vwn*.dir | sed "s#^$build/##; s#\.d\$##"
}

# What has to be compiled again for a file: objects.
objects_of() {
    case $1 in
    compiler/library/texts/*) echo library_files ;;
    compiler/emitted/*) echo emitted ;;
    grammar/std/*) echo std ;;
    *.y) echo parser ;;
    *.l) echo scanner ;;
    *.c) awk -v file="$1" '$1 == file { print $2 }' "$here/commands" ;;
    *) readers "$1" ;;
    esac
    case $1 in compiler/portable/*) echo emitted ;; esac
}

# ---- one fault ----

# embed NAME KEY HEADER FILE...: a table of texts, as the build makes it.
embed() {
    name=$1 key=$2 header=$3
    shift 3
    files=$(printf '%s\n' "$@" | LC_ALL=C sort | tr '\n' ';')
    cmake -DJOB=texts "-DNAME=$name" "-DKEY=$key" "-DHEADER=$header" "-DFILES=${files%;}" "-DOUT=$work/generated/$name.c" \
        -P "$root/CMakeLists.txt" > embed.err 2>&1
}

# generate OBJECT: its source is written into generated/ where the build writes it, too; source and object are set.
generate() {
    case $1 in
    library_files) embed library_files "" compiler/library/library_text.h "$tree"/compiler/library/texts/*.c "$tree"/compiler/library/texts/*.cu ;;
    emitted) embed emitted "" compiler/export/export.h "$tree"/compiler/emitted/* "$tree"/compiler/portable/*.[ch] "$tree"/compiler/portable/*.def ;;
    std) embed std std/ grammar/ast.h "$tree"/grammar/std/*.vwn ;;
    parser) (cd generated && bison --defines=vwn_parser.h -o vwn_parser.c "$tree/grammar/vwn.y") 2> embed.err && set -- vwn_parser ;;
    scanner) (cd generated && flex --header-file=vwn_scanner.h -o vwn_scanner.c "$tree/grammar/vwn.l") 2> embed.err && set -- vwn_scanner ;;
    *)
        object=$1
        source=$tree/$(awk -v object="$1" '$2 == object { print $1 }' "$here/commands")
        return 0
        ;;
    esac || return 1
    # shellcheck disable=SC2034 # the command of the build reads it
    source=$work/generated/$1.c
    object=$(awk -v object="$1" '$2 ~ "/generated/" object "\\.c\\.o$" { print $2 }' "$here/commands")
}

# Compiles what the file $1 is part of, into objects/. Status 1: it does not compile; 2: to the same code.
compile() {
    rm -rf objects generated
    mkdir objects generated
    same=2
    for object in $(objects_of "$1"); do
        generate "$object" || return 1
        command=$(awk -v object="$object" '$2 == object { $1 = $2 = ""; print }' "$here/commands" |
            sed "s# -I$root # -I$tree #; s# -I$root/grammar # -I$tree/grammar #; s# -I$build/generated # -I$work/generated -I$build/generated #")
        target=objects/$(echo "$object" | tr / +)
        # What a compiler calls wrong is no fault for tests to find; -w would keep it from that.
        eval "$command" -Werror=incompatible-pointer-types -Werror=int-conversion -Werror=implicit-function-declaration \
            -o '"$target"' -c '"$source"' 2> compile.err || return 1
        cmp -s "$target" "$build/$object" || same=0
    done
    [ -n "$(ls objects)" ] || return 1
    return $same
}

# link TARGET: with the mutated objects before the libraries, as bin/TARGET.
link() {
    [ ! -f "bin/$1" ] || return 0
    for folder in "$build" "$build/tests" "$build"/tests/*; do
        [ -f "$folder/CMakeFiles/$1.dir/link.txt" ] && break
    done
    [ -f "$folder/CMakeFiles/$1.dir/link.txt" ] || return 1
    command=$(sed 's/ -o [^ ]* / /' "$folder/CMakeFiles/$1.dir/link.txt")
    head=$(echo "$command" | sed 's/ [./]*libvwn_.*//')
    rest=${command#"$head"}
    for object in objects/*; do
        name=$(basename "$object" | tr + /)
        case " $head " in
        *" $name "*)
            head=$(echo " $head " | sed "s# $name # $work/$object #")
            continue
            ;;
        esac
        case $name in
        CMakeFiles/vwn.dir/*) ;; # of the program alone
        *) rest=" $work/$object$rest" ;;
        esac
    done
    (cd "$folder" && eval "$head" "$rest" '-o "$work/bin/$1"') 2> link.err
}

# Processor time of all that this shell has waited for, in hundredths of a second, as spent. (A shell in a pipe has waited for nothing.)
count_time() {
    times > spent.txt
    spent=$(sed -n 2p spent.txt | tr 'ms' '  ' | awk '{ printf "%d\n", ($1 * 60 + $2 + $3 * 60 + $4) * 100 }')
}

# The status of a test against the mutant; $2 is the processor time that a process of it may take.
run_test() {
    room=$space
    case $1 in cuda.* | fake_cuda.* | gpu.* | e2e.* | emu.large) room=unlimited ;; esac # they map addresses that nobody touches
    # shellcheck disable=SC2046
    set -- "$2" $(awk -v name="$1" '$1 == name { $1 = $2 = $3 = ""; print }' "$here/tests")
    seconds=$1
    shift
    [ $# -gt 0 ] || return 77 # not of this build
    settings=
    while case $1 in *=*) true ;; *) false ;; esac; do
        settings="$settings $1"
        shift
    done
    case $1 in
    */test_*)
        link "$(basename "$1")" || return 99
        program=$work/bin/$(basename "$1")
        shift
        set -- "$program" "$@"
        ;;
    esac
    case $1 in */test_e2e_* | *sh) link vwn || return 99 ;; esac
    rm -rf scratch
    mkdir scratch
    # shellcheck disable=SC2086
    (cd scratch && ulimit -t "$seconds" && ulimit -v $room && ulimit -c 0 &&
        exec env $settings VWN="$work/bin/vwn" VWN_TEST_STOP=1 $cache timeout -s KILL $((seconds * 6 + 60)) "$@") > test.out 2>&1
}

# The tests of a place, those that take least first, each with its seconds: what reaches the block of a function; of a table, a
# macro, constants, and what became a part of a caller's block, what reaches the file at all; else what the map has.
tests_of() { # FILE LINE BEGIN
    printf '%s\n' "${VWN_MUTANT_TESTS:-}" | tr ' ' '\n' > tests
    [ -z "$reached" ] || grep -q . tests ||
        awk -v file="$1" -v line="$2" -v begin="$3" '
            $1 == file { all = all "," $3 }
            $1 == file && begin > 0 && $2 >= begin && $2 <= line && $2 >= at { best = $3; at = $2 }
            END { gsub(",", "\n", all); gsub(",", "\n", best); print (begin > 0 && best ? best : all) }' "$reached/blocks" | sort -u > tests
    if ! grep -q . tests; then
        awk -v file="$1" '$1 == file || index(file, $1 "/") == 1 { if (length($1) > size) { size = length($1); best = $0 } }
            END { n = split(best, words); for (i = 2; i <= n; i++) print words[i] }' "$mutants/map.txt" > tests
    fi
    if [ -n "$reached" ]; then
        awk '!named { seconds[$1] = $2; next } NF { print $1, ($1 in seconds) ? seconds[$1] : 9 }' "$reached/seconds" named=1 tests | sort -k 2n
    else
        sed 's/$/ 1/' tests
    fi > ordered
}

# judge PLACE LINE BEGIN: a line of the log.
judge() {
    file=${1%%:*}
    rm -rf bin objects
    mkdir -p bin
    rm "$tree/$file"
    "$here/mutate" write "$root" "$1" < "$here/files" > "$tree/$file"
    compile "$file"
    status=$?
    ln -sf "$root/$file" "$tree/$file"
    case $status in
    1) verdict="invalid" ;;
    2) verdict="same" ;;
    *) try "$@" ;;
    esac
    echo "$1 $2 $verdict" >> "$log"
}

try() {
    count_time
    begun=$spent
    verdict="survives none 0"
    cache=
    case $1 in runtime/base/* | runtime/cpu/* | runtime/cuda/*) cache=XDG_CACHE_HOME=$work/cache ;; esac
    rm -rf cache
    tests_of "${1%%:*}" "$2" "$3"
    while read -r test usual; do
        grep -qxF "$1 $test" "$log.passed" && continue
        [ $((spent - begun)) -lt $((limit * 100)) ] || return
        run_test "$test" "$(awk -v usual="$usual" 'BEGIN { print int(usual * 10) + 2 }')" < /dev/null
        status=$?
        count_time
        verdict="survives $test $((spent - begun))"
        case $status in
        0 | 77) echo "$1 $test" >> "$log.passed" ;;
        99) verdict="unlinked $test 0" && return ;;
        *) verdict="found $test $((spent - begun))" && return ;;
        esac
    done < ordered
}

# Every $jobs-th of the places, from the $1-th on, until its share of the wanted ones is judged.
work_on() {
    work=$here/work$1
    tree=$work/tree
    rm -rf "$work"
    mkdir -p "$tree"
    cd "$work" || exit 1
    mkdir -p "$tree/tests/perf"
    cp -rs "$root/compiler" "$root/runtime" "$root/grammar" "$tree/"
    cp -rs "$root/tests/perf/tool" "$tree/tests/perf/"
    share=$(((wanted - $1 + jobs) / jobs))
    awk -v at="$1" -v jobs="$jobs" 'NR % jobs == at % jobs' "$here/places" > places
    judged=0
    while read -r place line begin && [ $judged -lt $share ]; do
        grep -q "^$place " "$log" || judge "$place" "$line" "$begin"
        case $(grep "^$place " "$log" | tail -n 1) in *' found '* | *' survives '*) judged=$((judged + 1)) ;; esac
    done < places
    rm -rf "$work"
}

# ---- all of them ----

sources() { (cd "$root" && find compiler runtime grammar tests/perf/tool -name '*.[chly]' -o -name '*.def' -o -name '*.cu' -o -name '*.vwn') | grep -v '^grammar/editors/' | LC_ALL=C sort; }

cp "${MUTATE:-$build/tests/mutants/mutate}" mutate
commands > commands
# A sanitizer has a shadow of all addresses.
space=33554432
! grep -q -e -fsanitize commands || space=unlimited
sources > files
ctest --test-dir "$build" --show-only=json-v1 | awk -f "$mutants/tests.awk" > tests
[ -n "${VWN_MUTANT_LOG:-}" ] || rm -f "$log" "$log.passed"
touch "$log" "$log.passed"
./mutate draw "$root" "$seed" $((wanted * 2 + 50)) < files > drawn
if [ $# -gt 0 ]; then
    ./mutate draw "$root" "$seed" 9999999 < files > drawn
    wanted=$#
    printf '%s\n' "$@" | awk 'NR == FNR { want[$1] = 1; next } $1 in want' - drawn > places
else
    awk -v left="${VWN_MUTANT_LEFT:-0}" '!all { if ($1 == "=" || (left != 1 && $1 ~ /^[-+]$/)) known[$2] = 1; next } !($1 in known)' \
        all=0 "$mutants/known.txt" all=1 drawn > places
fi
job=1
while [ $job -le "$jobs" ]; do
    (work_on $job) &
    job=$((job + 1))
done
wait
awk 'NR == FNR { drawn[$1] = 1; next } $1 in drawn' places "$log" > judged
found=$(grep -c ' found ' judged)
survive=$(grep -c ' survives ' judged)
sed -n 's/^\([^ ]*\) \([0-9]*\) survives.*/no test finds it: \1 (line \2)/p' judged
grep ' unlinked ' judged && exit 1
echo "$found of $((found + survive)) faults are found; $(grep -c -E ' (invalid|same)$' judged) more do not compile or change nothing"
[ "$found" -gt 0 ] && [ $((found * 100)) -ge $((least * (found + survive))) ]
