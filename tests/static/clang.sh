# clang.sh - clang's static analyser over the sources: null pointers, values that are not set, memory that is lost.
#
# In:  as analyse.inc.   Out: status 0 when nothing is said that silenced.txt has not, with a reason; 77 without clang.
# When: slow, at most 7200 s. It reads sources.
. "$VWN_SOURCE/tests/support/lib.inc"
. "$VWN_SOURCE/tests/static/analyse.inc"
clang --analyze -x c -o object - < /dev/null 2> err || exit 77
with_clang() {
    file=$1
    shift
    clang -std=c17 --analyze --analyzer-output text "$@" "$file"
}
planted with_clang 'unix.Malloc'
analyse clang with_clang 192 25
finish
