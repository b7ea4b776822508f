# gcc.sh - gcc's static analyser over the sources: memory and descriptors that are lost, given back twice or used afterwards.
#
# In:  as analyse.inc.   Out: status 0 when nothing is said that silenced.txt has not, with a reason; 77 without the analyser.
# Warnings of null pointers and of values that are not set are off: they do not follow what one function has made sure of for
# another. clang.sh looks for these.
# When: quick, slow, at most 7200 s. It reads sources.
. "$VWN_SOURCE/tests/support/lib.inc"
. "$VWN_SOURCE/tests/static/analyse.inc"
gcc -fanalyzer -x c -c -o object - < /dev/null 2> err || exit 77
here=$PWD
with_gcc() {
    file=$1
    shift
    gcc -std=c17 -O1 -fanalyzer -Wno-analyzer-null-dereference -Wno-analyzer-null-argument -Wno-analyzer-possible-null-dereference \
        -Wno-analyzer-possible-null-argument -Wno-analyzer-use-of-uninitialized-value "$@" -c -o "$here/object" "$file"
}
planted with_gcc 'Wanalyzer-malloc-leak'
analyse gcc with_gcc 96 1
finish
