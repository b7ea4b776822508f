#!/bin/sh
# cc_O0.sh - a C compiler that does not optimise, for $CC: kernels of many hundreds of KB are compiled in a seventh of the time.
#
# In:  the arguments of gcc, of which -O2 goes by.
for argument in "$@"; do
    shift
    [ "$argument" = -O2 ] && argument=-O0
    set -- "$@" "$argument"
done
exec gcc "$@"
