# fmt.sh - `vwn fmt`: examples and library are in the canonical form; files, stdin, --check, --diff.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

expect 0 "$VWN" fmt --check "$VWN_SOURCE"/examples/*.vwn "$VWN_SOURCE"/grammar/std/*.vwn
empty out

printf 'edition=1\nlet a =   2\nlet bcd= 3  # three\n' > a.vwn
chmod 640 a.vwn
cp a.vwn before.vwn
expect 1 "$VWN" fmt --check a.vwn
has out 'a.vwn'
cmp -s a.vwn before.vwn || fail "--check wrote the file"
expect 0 "$VWN" fmt --diff a.vwn
has out '-let a =   2'
has out '+let a   = 2'
cmp -s a.vwn before.vwn || fail "--diff wrote the file"
expect 1 "$VWN" fmt --check --diff a.vwn
if command -v patch > /dev/null; then
    "$VWN" fmt --diff a.vwn > a.diff
    cp a.vwn patched.vwn
    patch -s patched.vwn a.diff || fail "patch refuses the difference"
fi
last="fmt -"
"$VWN" fmt - < a.vwn > formatted 2> err || fail "fmt -"
expect 0 "$VWN" fmt a.vwn
cmp -s a.vwn formatted || fail "fmt and fmt - differ"
[ ! -f patched.vwn ] || cmp -s a.vwn patched.vwn || fail "--diff does not lead to the form"
[ "$(ls -l a.vwn | cut -c 1-10)" = "-rw-r-----" ] || fail "the mode was lost"
expect 0 "$VWN" fmt --check a.vwn
empty out
expect 0 "$VWN" fmt --json --check a.vwn
json out
has out '"changed":false'
ln -s a.vwn link.vwn
printf 'let  x = 1\n' >> a.vwn
expect 0 "$VWN" fmt link.vwn
[ -L link.vwn ] || fail "a symbolic link was replaced"
has a.vwn 'let x'

printf 'let = 2\n' > bad.vwn
expect 1 "$VWN" fmt bad.vwn
filled err
has bad.vwn 'let = 2'
expect 1 "$VWN" fmt no-such-file.vwn
expect 0 "$VWN" fmt -q a.vwn
empty out
ls *.vwn.* > /dev/null 2>&1 && fail "a temporary file was left behind"
finish
