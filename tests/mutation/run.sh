# run.sh - plants faults in the sources, one at a time, and runs the tests that must find them.
#
# In:  a list of faults beside this file. A fault is a comment that says what it does to a user, and
#          compiler/plan/plan_buffer.c        the file
#          - !plain ||                   text that stands in it once, on one line (blanks at its ends do not count)
#          +                             what stands there instead
#          = kernel.ops                  a test that must not pass then: an e2e script, or a program and its arguments
#      Of a header, every C file that includes it itself is compiled again; of a text of compiler/library/texts, the table
#      that the build makes of them.
#      Every 120th fault is planted; with VWN_TEST_WHOLE=1, or when a text of them is asked for, all. The texts of the others
#      are looked for in their files.
# Out: status 0 when every fault that was planted was found. A test finds a fault by any end but status 0, and by running for
#      three minutes, which is told: on a busy machine that finds nothing. A text that does not stand in its file once, and a
#      mutant that does not compile, are failures: then the list has to follow the sources.
# The one idea: what was mutated is compiled as its build compiles it and linked before the libraries, whose
# own copy the linker then leaves out; so a fault costs seconds.
set -eu
list=$1
build=$2
only=${3:-}

fail() {
    echo "$list: $*" >&2
    failures=$((failures + 1))
}

# Replaces the one place of $was in the file $1.
replace() {
    was=$was now=$now awk '
        BEGIN { was = ENVIRON["was"]; now = ENVIRON["now"] }
        { at = index($0, was)
          if (at) {
              count++
              rest = substr($0, at + length(was))
              if (index(rest, was)) count++
              $0 = substr($0, 1, at - 1) now rest
          }
          print }
        END { exit count != 1 }' "$1"
}

# compile SOURCE OBJECT: with the command that compiles compiler/x.c, for mutant/compiler/x.c.
compile() {
    command=$(sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$build/compile_commands.json" |
        grep -- " -c .*/$1\$" | head -n 1 | sed 's/\\\(.\)/\1/g; s/ -o .*//')
    [ -n "$command" ] || return 1
    folder=$VWN_SOURCE/$(dirname "$1")
    (cd "$build" && eval "$command" '-iquote "$here/mutant"' '-iquote "$folder"' '-iquote "$VWN_SOURCE/$(dirname "$file")"' -w \
        '-o "$here/$2"' '-c "$here/mutant/$1"') 2> compile.err
}

# embed FOLDER: the texts of kernels as the build makes a table of them, with the mutated one.
embed() {
    for text in "$VWN_SOURCE/$1"/*; do
        [ -f "mutant/$1/${text##*/}" ] || cp "$text" "mutant/$1/"
    done
    mkdir -p mutant/generated
    cmake -DJOB=texts -DNAME=library_files -DHEADER=compiler/library/library_text.h \
        "-DFILES=$(printf '%s;' "mutant/$1"/*.c)$(printf '%s;' "mutant/$1"/*.cu)" \
        -DOUT="$here/mutant/generated/library_files.c" -P "$VWN_SOURCE/CMakeLists.txt"
}

# link TARGET: with the mutated objects before the libraries, as ./TARGET.
link() {
    folder=
    for target in "$build/CMakeFiles/$1.dir" "$build/tests/CMakeFiles/$1.dir" "$build"/tests/*/CMakeFiles/"$1.dir"; do
        [ ! -f "$target/link.txt" ] || folder=${target%/CMakeFiles/*} # (tests build other trees below)
    done
    [ -n "$folder" ] || return 1
    command=$(sed 's/ -o [^ ]* / /' "$folder/CMakeFiles/$1.dir/link.txt")
    objects=
    for object in *.o; do
        objects="$objects \"\$here/$object\""
    done
    head=$(echo "$command" | sed 's/ [./]*libvwn_.*//')
    (cd "$folder" && eval "$head" "$objects" "${command#"$head"}" '-o "$here/$1"') 2> link.err
}

# Runs all cases of `= test` against the mutant; its status is the test's.
run() {
    label=${1%%.*}
    base=${1#*.}
    shift
    mkdir -p scratch
    if [ -f "$VWN_SOURCE/tests/$label/$base.sh" ]; then
        link vwn || return 99
        (cd scratch && VWN="$here/vwn" VWN_TEST_WHOLE=1 timeout -s KILL 180 sh "$VWN_SOURCE/tests/$label/$base.sh") > test.out 2>&1
    else
        link "test_${label}_$base" || return 99
        (cd scratch && VWN_TEST_WHOLE=1 timeout -s KILL 180 "$here/test_${label}_$base" "$@") > test.out 2>&1
    fi
}

# One fault: file, was, now and test are set.
judge() {
    what="$file: '$was' -> '$now'"
    rm -rf mutant scratch ./*.o test_* vwn
    mkdir -p "mutant/$(dirname "$file")"
    replace "$VWN_SOURCE/$file" > "mutant/$file" || {
        fail "$what: the text does not stand there once"
        return 0
    }
    sources=$file
    case $file in *.h)
        sources=$(cd "$VWN_SOURCE" && {
            grep -l "#include \"$(basename "$file")\"" "$(dirname "$file")"/*.c
            grep -rl --include='*.c' "#include \"$file\"" compiler runtime
        } || true)
        [ -n "$sources" ] || {
            fail "$what: no C file includes the header"
            return 0
        }
        ;;
    compiler/library/texts/*)
        sources=generated/library_files.c
        embed "${file%/*}" > embed.err 2>&1 || {
            fail "$what: the texts are not embedded"
            cat embed.err >&2
            return 0
        }
        ;;
    esac
    for source in $sources; do
        mkdir -p "mutant/$(dirname "$source")"
        [ "$source" = "$file" ] || [ "$source" = generated/library_files.c ] || cp "$VWN_SOURCE/$source" "mutant/$source"
        compile "$source" "$(basename "$source" .c).o" || {
            fail "$what: $source does not compile"
            cat compile.err >&2
            return 0
        }
    done
    status=0
    # shellcheck disable=SC2086
    run $test || status=$?
    case $status in
    0) fail "$what: $test does not notice it" ;;
    77) skipped=$((skipped + 1)) ;;
    99)
        fail "$what: $test cannot be linked"
        cat link.err >&2
        ;;
    137)
        found=$((found + 1))
        echo "$what: $test does not end in three minutes"
        ;;
    *) found=$((found + 1)) ;;
    esac
    [ -z "$only" ] || sed 's/^/    /' test.out | tail -n 5
}

judge_or_look() {
    faults=$((faults + 1))
    if [ -n "$only" ] || [ "${VWN_TEST_WHOLE:-0}" = 1 ] || [ $((faults % 120)) -eq 1 ]; then
        judge
    else
        left=$((left + 1))
        replace "$VWN_SOURCE/$file" > looked || fail "$file: '$was' -> '$now': the text does not stand there once"
    fi
}

here=$PWD
failures=0
faults=0
left=0
found=0
skipped=0
[ -f "$build/CMakeFiles/vwn.dir/link.txt" ] || {
    echo "the build in $build is not one of CMake's makefiles"
    exit 77
}
while IFS= read -r line || [ -n "$line" ]; do
    case $line in
    '' | '#'*) ;;
    '- '*) was=${line#- } ;;
    '+'*)
        now=${line#+}
        now=${now# }
        ;;
    '= '*)
        test=${line#= }
        case "$file $was" in *"$only"*) judge_or_look ;; esac
        ;;
    *) file=$line ;;
    esac
done < "$list"
[ $faults -gt 0 ] || fail "no file and text of a fault has '$only' in it"
echo "$found faults found, $failures not, $skipped of tests that were skipped"
[ $left -eq 0 ] || echo "$((faults - left)) of $faults faults; VWN_TEST_WHOLE=1 plants all"
[ "$failures" -eq 0 ]
