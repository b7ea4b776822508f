# clang.sh - the program as clang builds it, and kernels as clang compiles them: it says of CUDA what cuda.sh
# wants, and trains. What was built stays for the next time.
# When: whole, optimised.
. "$VWN_SOURCE/tests/support/lib.inc"
for tool in clang cc cmake flex bison; do
    command -v $tool > /dev/null || { echo "skipped: there is no $tool"; exit 77; }
done

build="$PWD/../build"
expect 0 cmake -S "$VWN_SOURCE" -B "$build" -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=Debug -DVWN_WERROR=ON
expect 0 cmake --build "$build" --target vwn -j 2
[ "$failures" -eq 0 ] || finish
expect 0 env VWN="$build/vwn" CC=clang sh "$VWN_SOURCE/tests/e2e/cuda.sh"
[ "$failures" -eq 0 ] || cat out
finish
