#!/bin/sh
# build.sh OUT - compiles the library of a package: kernels, and what calls them.
#
# CC: the compiler (else cc). VWN_MARCH: the processor that kernels are for (else native); a library for several machines is made
# with what all of them have, such as VWN_MARCH=x86-64-v3.
set -eu
CC=${CC:-cc}
case $1 in
/*) out=$1 ;;
*) out=$PWD/$1 ;;
esac
cd "$(dirname "$0")"
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
march=-march=${VWN_MARCH:-native}

# The instructions that this means, as far as a program can ask for them.
needs=
if $CC "$march" -dM -E -x c /dev/null > "$made/macros" 2> /dev/null; then
    for word in sse4.1 sse4.2 avx avx2 fma bmi bmi2 avx512f avx512bw avx512dq avx512vl avx512vnni avx512bf16; do
        macro=__$(echo "$word" | tr 'a-z.' 'A-Z_')__
        if grep -q "^#define $macro 1" "$made/macros"; then needs="$needs HAS(\"$word\")"; fi
    done
else
    march=
fi

common="-O3 -fPIC -fvisibility=hidden"
$CC $common $march -std=gnu17 -fno-math-errno -fno-trapping-math -fopenmp-simd -w -c kernels.c -o "$made/kernels.o"
$CC $common $march -std=gnu17 -w -c compute.c -o "$made/compute.o"
for part in calls torch_call torch_numbers threads; do
    $CC $common -std=gnu17 -Wall -c $part.c -o "$made/$part.o"
done
$CC $common -std=gnu17 ${needs:+"-DNEEDS=$needs"} -c torch_cpu.c -o "$made/torch_cpu.o"
$CC -shared -o "$made/library.so" "$made"/*.o -lm -lpthread
mv "$made/library.so" "$out"
