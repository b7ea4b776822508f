# lsp.sh - `vwn lsp` as an editor starts it: over pipes, and by neovim, where it is installed.
. "$VWN_SOURCE/tests/support/lib.inc"

# message JSON: with its header
message() { printf 'Content-Length: %d\r\n\r\n%s' ${#1} "$1"; }

# ---- over pipes: an answer comes before the editor has said all ----
hello='{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}}'
open='{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///a.vwn","languageId":"vwn","version":1,"text":"let a = b\n"}}}'
mkfifo to from
"$VWN" lsp --stdio < to > from 2> err &
server=$!
exec 3> to 4< from
message "$hello" >&3
# answer: the body of the next message
answer() {
    read -r header <&4
    read -r blank <&4
    : "$blank"
    length=$(echo "$header" | tr -cd 0-9)
    dd bs=1 count="$length" <&4 2> dd.err
}
last="the server over pipes"
answer > out
has out '"id":1,"result":{"capabilities":{'
message "$open" >&3
answer > out
has out '"uri":"file:///a.vwn","version":1,"diagnostics":[{"range":{"start":{"line":0,"character":8},"end":{"line":0,"character":9}},"severity":1,"code":"E0102"'
message '{"jsonrpc":"2.0","id":2,"method":"shutdown"}' >&3
answer > out
has out '{"jsonrpc":"2.0","id":2,"result":null}'
message '{"jsonrpc":"2.0","method":"exit"}' >&3
wait $server
got=$?
[ $got -eq 0 ] || fail "shutdown and exit end with $got"
exec 3>&- 4<&-
empty err

last="a server whose editor is gone"
message "$hello" | "$VWN" lsp > out 2> err
got=$?
[ $got -eq 1 ] || fail "the end of stdin ends with $got"
expect 2 "$VWN" lsp file.vwn
expect 0 "$VWN" lsp --help

# ---- neovim, with the package of grammar/editors ----
command -v nvim > /dev/null || {
    echo "neovim is not installed: nobody has asked the server as a user does."
    [ $failures -gt 0 ] || exit 77
    finish
}
cat > model.vwn <<'EOT'
edition = 1
import "std/transformer"
import "other.vwn" as other
let D = 4 * other.E
let f = ffn(hidde = D, activation = gelu)
EOT
echo 'let E = 8' > other.vwn
ln -s "$VWN" vwn
last="neovim"
PATH=$PWD:$PATH HOME=$PWD XDG_STATE_HOME=$PWD/state XDG_DATA_HOME=$PWD/data timeout 200 nvim --headless -u NONE -i NONE -n \
    --cmd "set runtimepath^=$VWN_SOURCE/grammar/editors/vim" -c 'filetype plugin on' -c "luafile $VWN_SOURCE/tests/e2e/lsp.lua" > out 2>&1 < /dev/null ||
    fail "neovim ends with $?"
has out 'neovim was answered'

finish
