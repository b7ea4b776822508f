# file.sh - see file.py: diagnostics, reports, training and its events; structures and enumerators against vwn.h; the wheel.
# When: quick, released. Python opens the library of a wheel before that of the sanitizers; memory is looked at by model.sh.
. "$VWN_SOURCE/tests/python/lib.inc"
"$PY" "$VWN_SOURCE/tests/python/file.py" || exit 1
if command -v cc > /dev/null; then
    unset LD_PRELOAD
    "$PY" "$VWN_SOURCE/tests/python/header.py" > header.c || exit 1
    cc -I"$VWN_SOURCE/runtime" -fsyntax-only header.c || exit 1
    # a field that is elsewhere is found
    sed '0,/offsetof(vwn_event, loss) == /s//&1 + /' header.c > other.c
    if cc -I"$VWN_SOURCE/runtime" -fsyntax-only other.c 2> /dev/null; then
        echo "FAILED: a field that is elsewhere is not found"
        exit 1
    fi
fi
[ "$VWN_BUILD_TYPE" = Sanitize ] && exit 0

# the wheel has the library, and works where nothing else is
unset PYTHONPATH
"$PY" -c '
import sys
sys.path.insert(0, sys.argv[1])
import wheel_of
print(wheel_of.build_wheel("."))' "$VWN_SOURCE/runtime/python" > wheel || exit 1
if "$PY" -m pip --version > /dev/null 2>&1; then
    "$PY" -m pip install -q --no-deps --no-index --target there "./$(cat wheel)" || exit 1
else
    "$PY" -m zipfile -e "$(cat wheel)" there || exit 1
fi
unset VWN_LIBRARY
cd there || exit 1
"$PY" -c 'import vwn; assert vwn.check("model m {\n  widht = 3\n}\n")[0].code == "E0101"' || exit 1
"$PY" -m pydoc vwn > ../pydoc || exit 1
grep -q 'logits.*B, T, vocabulary' ../pydoc
