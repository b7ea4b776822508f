#!/bin/sh
# run.sh - installs what is missing, builds, runs the tests. `sh tests/run.sh [quick | whole] [LABEL...]`
#
# In:  a Debian 12 (root or sudo where something has to be installed); labels, which are folders of tests/, choose
#      tests, none are all of them. `quick`: the main thing of each folder, without the sanitizers. `whole`: every case of
#      lists of which else a part is drawn, every planted fault, and long stories; an hour and more.
# Out: status 0 when nothing failed; the last line is "N passed, N failed, N skipped". The build under
#      the sanitizers leaves out the tests that say `slow` (tests/CMakeLists.txt). It can be run again without harm.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/setup.sh
. tests/setup.sh

how=
labels=
for word in "$@"; do
    case $word in
    quick | whole) how=$word ;;
    *)
        [ -d "tests/$word" ] || stop "There is no folder tests/$word, and \`$word\` is neither \`quick\` nor \`whole\`."
        labels="$labels|^$word\$"
        ;;
    esac
done

install_packages flex bison cmake gcc g++ make libc6-dev libdnnl2 libpcre2-8-0 libutf8proc2 zlib1g libzstd1 libmicrohttpd12 curl bible-kjv bible-kjv-text graphviz neovim clang-format-14
build_folder build
make_text
once=OFF # most tests run in one of the builds, and so are built in one; what is asked for runs in both
[ -n "$how$labels" ] || once=ON
build_vwn build Release -DVWN_TEST_ONCE=$once
[ "$how" = quick ] || build_vwn build/sanitize Sanitize -DVWN_TEST_ONCE=$once -DVWN_TEST_CACHE="$PWD/build/scratch/cache"

passed=0
failed=0
skipped=0

# run_tests FOLDER [ctest options]: adds to the counts. One test more than there are processors: each waits at times, for a disk, a
# signal, or a kernel that hangs.
run_tests() {
    folder=$1
    shift
    say "Tests in $folder"
    result="$PWD/$folder/result.xml"
    rm -f "$result"
    ctest --test-dir "$folder" -j $((jobs + 1)) --output-on-failure --output-junit "$result" "$@" || true
    [ -f "$result" ] || {
        failed=$((failed + 1))
        return 0
    }
    all=$(sed -n 's/^[[:space:]]*tests="\([0-9]*\)".*/\1/p' "$result" | head -n 1)
    bad=$(sed -n 's/^[[:space:]]*failures="\([0-9]*\)".*/\1/p' "$result" | head -n 1)
    out=$(grep -c '<skipped' "$result" || true)
    passed=$((passed + all - bad - out))
    failed=$((failed + bad))
    skipped=$((skipped + out))
}

VWN_TEST_WHOLE=0
[ "$how" != whole ] || VWN_TEST_WHOLE=1
export VWN_TEST_WHOLE
# The leak checker misreads thread-local memory of libraries that are loaded at run time, and crashes. Stacks that are read after a
# return are looked for in `whole`: it takes a tenth of the time of all other checks. So does new memory in the place of what was
# given back, of which 256 MB are watched there and 16 elsewhere.
kept_back=$((VWN_TEST_WHOLE ? 256 : 16))
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0:detect_stack_use_after_return=$VWN_TEST_WHOLE:quarantine_size_mb=$kept_back
set --
[ -z "$labels" ] || set -- -L "${labels#|}"
case $how in
quick) run_tests build "$@" -L '^quick$' ;;
whole)
    run_tests build "$@"
    run_tests build/sanitize "$@" -LE '^slow$|^whole$'
    ;;
*)
    [ $once = ON ] && checked='|^checked$' released='|^released$' || checked='' released=''
    run_tests build "$@" -LE "^whole\$$checked"
    run_tests build/sanitize "$@" -LE "^slow\$|^whole\$$released"
    ;;
esac

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
