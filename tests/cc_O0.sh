#!/bin/sh
# cc_O0.sh - a C compiler that does not optimise, for $CC: kernels of many hundreds of KB are compiled in a seventh of the time.
#
# In:  the arguments of gcc, of which -O2 and -O3 go by; in `sh tests/run.sh whole` they stay for tests that have VWN_WHOLE_OPTIMISED=1. A
#      shared object is linked with libgcc alone: a process that opens it has the C library.
libraries=
level=-O0
[ "${VWN_WHOLE_OPTIMISED:-0}${VWN_TEST_WHOLE:-0}" != 11 ] || level=-O2
for argument in "$@"; do
    shift
    case $argument in
    -O[23]) [ "$level" = -O2 ] || argument=$level ;;
    -shared) libraries="-nostdlib -lgcc" ;;
    esac
    set -- "$@" "$argument"
done
# shellcheck disable=SC2086
exec gcc "$@" $libraries
