# format.sh - that sources in C lie as `.clang-format` says, but for the texts of kernels, which are laid out for their readers by hand.
#
# In:  the sources; clang-format 14, Debian 12's: others lay some things out differently.   Out: the files that do not.
# When: slow. It reads sources.
. "$VWN_SOURCE/tests/support/lib.inc"
format=$(command -v clang-format-14 || command -v clang-format) || exit 77
"$format" --version | grep -q 'version 14\.' || { echo "skipped: $("$format" --version)"; exit 77; }
cd "$VWN_SOURCE" || exit 1
find compiler runtime grammar tests -name '*.[ch]' -not -path 'compiler/library/texts/*' -not -path 'grammar/editors/*' > "$OLDPWD/sources"
[ "$(wc -l < "$OLDPWD/sources")" -gt 500 ] || fail "only $(wc -l < "$OLDPWD/sources") sources"
xargs -P 2 -n 100 "$format" --dry-run -Werror < "$OLDPWD/sources" > "$OLDPWD/out" 2>&1 || {
    sed -n 's/^\([^:]*\):[0-9]*:.*/\1/p' "$OLDPWD/out" | sort -u | head -n 20
    fail "these lie otherwise: $format -i FILE mends them"
}
cd "$OLDPWD" || exit 1
# a file that lies otherwise is found
cp "$VWN_SOURCE/.clang-format" .
printf 'int   f(void)\n{ return 1; }\n' > odd.c
"$format" --dry-run -Werror odd.c 2> /dev/null && fail "odd.c lies as it should"
finish
