# scripts.sh - shellcheck, where it is installed, warns of nothing in the scripts of the tests and examples (tests/.shellcheckrc has
# what they do on purpose).
# When: whole.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v shellcheck > /dev/null || { echo "skipped: no shellcheck"; exit 77; }

find "$VWN_SOURCE/tests" "$VWN_SOURCE/examples" -name '*.sh' -o -name '*.inc' > all
cd "$VWN_SOURCE" || exit 1
n=0
while IFS= read -r file; do
    n=$((n + 1))
    case $(head -n 1 "$file") in
    '#!/bin/bash') set -- ;;
    *) set -- -s sh ;;
    esac
    shellcheck -x -S warning "$@" "$file" || failures=$((failures + 1))
done < "$OLDPWD/all"
[ $n -gt 80 ] || { echo "only $n scripts"; failures=$((failures + 1)); }
finish
