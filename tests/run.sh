#!/bin/sh
# run.sh - everything: installs what is missing, builds, runs all tests. `sh tests/run.sh [LABEL...]`
#
# In:  a Debian 12 (root or sudo where something has to be installed); labels choose tests (see
#      tests/CMakeLists.txt), none are all.
# Out: status 0 when nothing failed; the last line is "N passed, N failed, N skipped". The build under
#      the sanitizers leaves out the tests labelled `slow`. It can be run again without harm.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=tests/setup.sh
. tests/setup.sh

install_packages flex bison cmake gcc g++ make libc6-dev libdnnl2 bible-kjv bible-kjv-text graphviz
build_folder build
make_text
build_vwn build Release
build_vwn build/sanitize Sanitize -DVWN_TEST_CACHE="$PWD/build/scratch/cache"

passed=0
failed=0
skipped=0

# run_tests FOLDER [ctest options]: adds to the counts.
run_tests() {
    folder=$1
    shift
    say "Tests in $folder"
    result="$PWD/$folder/result.xml"
    rm -f "$result"
    ctest --test-dir "$folder" -j "$jobs" --output-on-failure --output-junit "$result" "$@" || true
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

# The leak checker misreads thread-local memory of libraries that are loaded at run time, and crashes.
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:intercept_tls_get_addr=0
if [ $# -gt 0 ]; then
    labels=$(printf '|^%s$' "$@")
    run_tests build -L "${labels#|}"
    run_tests build/sanitize -L "${labels#|}" -LE slow
else
    run_tests build
    run_tests build/sanitize -LE slow
fi

echo
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
