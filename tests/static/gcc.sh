# gcc.sh - gcc's static analyser over the sources: memory and descriptors that are lost, given back twice or used afterwards.
#
# In:  compile_commands.json of the build, silenced.txt.   Out: status 0 when nothing is said that silenced.txt has not, with a
#      reason; in a whole run also that all of the list is still said.
# The one idea: a file is analysed with the flags that it is compiled with; of three hundred files a part is drawn. Warnings of null
# pointers and of values that are not set are off: they do not follow what one function has made sure of for another.
. "$VWN_SOURCE/tests/support/lib.inc"
gcc -fanalyzer -x c -c -o object - < /dev/null 2> err || exit 77
build=$(dirname "$VWN")

# The sources of the three libraries and the program, but for texts of kernels and what emitted folders compile.
sources() {
    (cd "$VWN_SOURCE" && find compiler runtime grammar -name '*.c' ! -path '*/texts/*' ! -path 'compiler/emitted/*' | sort)
}

# A line for each source: its name, and those flags that change what is read.
commands() {
    sed -n 's/^ *"command": "\(.*\)",$/\1/p' "$build/compile_commands.json" | tr -d '\\' | grep -E "CMakeFiles/vwn[a-z_]*\.dir" |
        awk -v root="$VWN_SOURCE/" '{
            flags = ""
            for (i = 1; i < NF; i++)
                if ($i ~ /^-(D|I|std)/) flags = flags " " $i
            if (index($NF, root) == 1) print substr($NF, length(root) + 1) flags
        }'
}

# analyse TOOL FUNCTION: FUNCTION SOURCE FLAGS... prints the warnings of a file as FILE:LINE:COLUMN: warning: TEXT [NAME].
analyse() {
    : > said
    at=0
    commands > commands
    for file in $(sources); do
        at=$((at + 1))
        whole || [ $((at % 48)) -eq 1 ] || continue
        flags=$(sed -n "s#^$file ##p" commands | head -n 1)
        [ -n "$flags" ] || fail "no command compiles $file"
        # shellcheck disable=SC2086 # words
        (cd "$VWN_SOURCE" && "$2" "$file" $flags) > found 2>&1 || fail "$1 cannot read $file: $(head -n 2 found)"
        sed -n 's/^\([^ :]*\):[0-9]*:[0-9]*: warning: \(.*\) \[\([^]]*\)\]$/\1 \3 \2/p' found >> said
    done
    sort -u said > found
    grep "^$1 " "$VWN_SOURCE/tests/static/silenced.txt" | cut -d' ' -f2- > rows
    while read -r file name text; do
        awk -v f="$file" -v n="$name" '$1 == f && $2 == n { found = 1 } END { exit !found }' rows ||
            fail "$1 says of $file: $text ($name)"
    done < found
    whole || return 0
    while read -r file name _; do
        grep -q "^$file $name " found || fail "silenced.txt: $1 no longer says $name of $file"
    done < rows
}

cat > planted.c <<'EOT'
#include <stdlib.h>
int planted(int n);
int planted(int n)
{
    int *p = malloc(sizeof *p);
    return n ? 0 : p != NULL;
}
EOT
with_gcc() {
    file=$1
    shift
    gcc -std=c17 -O1 -fanalyzer -Wno-analyzer-null-dereference -Wno-analyzer-null-argument -Wno-analyzer-possible-null-dereference \
        -Wno-analyzer-possible-null-argument -Wno-analyzer-use-of-uninitialized-value "$@" -c -o "$here/object" "$file"
}
here=$PWD
(with_gcc "$PWD/planted.c") > found 2>&1
grep -q 'Wanalyzer-malloc-leak' found || fail "a planted leak is not seen: $(cat found)"
analyse gcc with_gcc
finish
