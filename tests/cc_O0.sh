#!/bin/sh
# cc_O0.sh - a C compiler that does not optimise, for $CC: kernels of many hundreds of KB are compiled in a seventh of the time.
#
# In:  the arguments of gcc, of which -O2 and -O3 go by. A shared object is linked with libgcc alone: a process that opens it has the C library.
libraries=
for argument in "$@"; do
    shift
    case $argument in
    -O[23]) argument=-O0 ;;
    -shared) libraries="-nostdlib -lgcc" ;;
    esac
    set -- "$@" "$argument"
done
# shellcheck disable=SC2086
exec gcc "$@" $libraries
