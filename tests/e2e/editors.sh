# editors.sh - the syntax files of vim and VS Code, and tree-sitter's grammar, have the words of the language and no others: keywords, units and suffixes
# against the scanner, nodes and attributes against the checker's table, primitives against `vwn doc`. Vim, where it is
# installed, shows a file so.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"
grammar=$VWN_SOURCE/grammar
vim=$grammar/editors/vim/syntax/vwn.vim
vscode=$grammar/editors/vscode/syntaxes/vwn.tmLanguage.json
: > out
: > err
last="the lists of words"

# what there is
sed -n 's/^"\([a-z]*\)" .*/\1/p; s/^"\(true\)"|"\(false\)".*/\1\n\2/p' "$grammar/vwn.l" > keywords
printf 'none\ninf\n' >> keywords # values
sed -n '/^} units\[\] = {/,/^};/p' "$grammar/ast.c" | grep -o '{"[A-Za-z]*"' | tr -d '{"' > units
sed -n 's/^SUFFIX  *(\(.*\))$/\1/p' "$grammar/vwn.l" | tr '|' '\n' > suffixes
sed -n 's/^NODE("\([a-z_]*\)".*/\1/p' "$VWN_SOURCE/compiler/front/attributes.def" > nodes
sed -n 's/^ATTRIBUTE("[a-z_]*", *"\([a-z_]*\)".*/\1/p' "$VWN_SOURCE/compiler/front/attributes.def" > attributes
"$VWN" doc | sed '1,/^primitives/d' | sed -n 's/^  \([^ ]*\) .*/\1/p' > primitives
for list in keywords units suffixes nodes attributes primitives; do
    sort -u -o $list $list
    [ "$(wc -l < $list)" -ge 7 ] || fail "only $(wc -l < $list) $list"
done
comm -23 nodes keywords > plain_nodes

# group NAME: the words of a group of vim, with its lines that go on
group() {
    sed -e ':a' -e '/$/N; s/\n *\\\(\\\{0,1\}\)/ \1/; ta' -e 'P; D' "$vim" | grep "^syn keyword $1 " | tr ' ' '\n' | grep -vxE 'syn|keyword|contained|vwn[A-Za-z]*|' | sort -u
}
# same NAME FILE: both files have the same words
same() {
    comm -3 "$2" "$3" | sed 's/^\t/no such word: /; t; s/^/missing: /' > differ
    [ ! -s differ ] || fail "$1: $(tr '\n' ';' < differ)"
}
{ group vwnControl; group vwnStorage; group vwnOperator; group vwnConstant; } | sort -u > vim_keywords
group vwnKnownNode > vim_nodes
group vwnKnownAttribute > vim_attributes
tr -d '\n' < "$vim" | grep -o 'vwnPrimitive "[^"]*' | sed 's/ *\\\(\\|\)/\1/g; s/.*\\<\\%(//; s/\\)\\>.*//; s/\\|/\n/g' | tr -d ' ' | sort -u > vim_primitives
# `steps\?` are two words
grep '^syn match vwnQuantity' "$vim" | sed 's/.*\\s\\+\\%(//; s/\\)\\>.*//; s/\\|/\n/g' | awk '/\\\?$/ { print substr($0, 1, length($0) - 3); print substr($0, 1, length($0) - 2); next } { print }' | sort -u > vim_units
grep '^syn match vwnNumber' "$vim" | sed 's/.*\\%(\(Ki.*\)\\)\\?\\>.*/\1/; s/\\|/\n/g' | { cat; echo %; } | sort -u > vim_suffixes
grep -q 'vwnNumber .*\\>%' "$vim" || fail "vim: no per cent"
same "vim, keywords" keywords vim_keywords
same "vim, nodes" plain_nodes vim_nodes
same "vim, attributes" attributes vim_attributes
same "vim, primitives" primitives vim_primitives
same "vim, units" units vim_units
same "vim, suffixes" suffixes vim_suffixes

tr -d '\n' < "$vscode" > line
"$JSON_LINES" - < line > verdict || fail "VS Code: $(cat verdict)"
# rule NAME: the words in the alternatives of a rule
rule() {
    sed -n "/^    \"$1\": {/,/^    },/p" "$vscode" | grep '"match"' | grep -o '([A-Za-z_?|]*|[A-Za-z_?|%]*)' | tr -d '()' | tr '|' '\n' |
        awk '/\?$/ { print substr($0, 1, length($0) - 2); print substr($0, 1, length($0) - 1); next } { print }' | sort -u
}
{ rule keyword; rule constant; rule definition; } | sort -u > code_keywords
rule known-node > code_nodes
rule known-attribute > code_attributes
rule primitive > code_primitives
rule number | grep -v % > code_numbers
{ cat units; grep -v % suffixes; } | sort -u > numbers
same "VS Code, keywords" keywords code_keywords
same "VS Code, nodes" plain_nodes code_nodes
same "VS Code, attributes" attributes code_attributes
same "VS Code, primitives" primitives code_primitives
same "VS Code, units and suffixes" numbers code_numbers

# tree-sitter: front.tree_sitter compares it with the scanner; what it is made of is what was made
(cd "$grammar/editors/tree-sitter" && sha256sum -c --quiet src/made.sha256) > out 2>&1 ||
    fail "src/parser.c was not made of this grammar.js: grammar/editors/README.md says how, and what to write then: $(cat out)"
for word in $(cat keywords suffixes units | grep -vxE 'none|inf|%'); do
    grep -qF "\"$word\"" "$grammar/editors/tree-sitter/grammar.js" "$grammar/editors/tree-sitter/src/scanner.c" ||
        fail "tree-sitter: missing: $word"
done

# The extension of VS Code, with stand-ins for what it needs, where node is: it starts `vwn lsp`, and without its library it says so.
if command -v node > /dev/null; then
    mkdir -p node_modules/vscode node_modules/vscode-languageclient
    cp "$grammar/editors/vscode/extension.js" .
    cat > node_modules/vscode/index.js <<'EOF'
exports.window = { showInformationMessage: (text) => console.log("said: " + text) };
exports.workspace = { getConfiguration: (of) => ({ get: (name) => "/bin/" + of + "-" + name }) };
EOF
    expect 0 node -e 'require("./extension").activate()'
    has out 'said: vwn: colours only'
    cat > node_modules/vscode-languageclient/node.js <<'EOF'
exports.LanguageClient = class {
  constructor(id, name, server, client) { console.log(id, JSON.stringify(server), JSON.stringify(client.documentSelector)); }
  start() { console.log("started"); }
  stop() { console.log("stopped"); }
};
EOF
    expect 0 node -e 'const e = require("./extension"); e.activate(); e.deactivate()'
    has out 'vwn {"command":"/bin/vwn-program","args":["lsp"]} [{"language":"vwn"}]'
    has out started
    has out stopped
fi

cat > seen.vwn <<'EOF'
model small {
  width = 192
  embed tokens { vocab = 256 }
  ffn { activation = silu }
}
let mean = zeros
let batch_size = 8 seqs
EOF

# neovim colours by tree-sitter's tree once its parser is where neovim looks for it
tree=$grammar/editors/tree-sitter
if command -v nvim > /dev/null && command -v cc > /dev/null; then
    mkdir -p site/parser site/queries
    ln -s "$tree/queries" site/queries/vwn
    expect 0 cc -shared -fPIC -w -I "$tree/src" "$tree/src/parser.c" "$tree/src/scanner.c" -o site/parser/vwn.so
    cat > look.lua <<'EOF'
vim.g.vwn_lsp = 0
vim.cmd("edit seen.vwn")
local out = { vim.treesitter.highlighter.active[vim.api.nvim_get_current_buf()] and "coloured" or "not coloured" }
local root = vim.treesitter.get_parser(0, "vwn"):parse()[1]:root()
local get = vim.treesitter.get_query or vim.treesitter.query.get
for _, name in ipairs({ "highlights", "locals", "folds", "indents" }) do
  local query = get("vwn", name)
  for id, node in query:iter_captures(root, 0, 0, -1) do
    local line, from, _, to = node:range()
    local text = vim.api.nvim_buf_get_lines(0, line, line + 1, true)[1]:sub(from + 1, to)
    if text:match("^%w[%w_ ]*$") and query.captures[id] ~= "local.reference" then out[#out + 1] = text .. " " .. query.captures[id] end
  end
end
vim.fn.writefile(out, "looks")
vim.cmd("qall!")
EOF
    HOME=$PWD XDG_STATE_HOME=$PWD/state XDG_DATA_HOME=$PWD/data expect 0 timeout 60 nvim --headless -u NONE -i NONE -n \
        --cmd "set runtimepath^=$PWD/site,$grammar/editors/vim" -c 'filetype plugin on' -c 'luafile look.lua'
    cat > wanted <<'EOF'
coloured
model type
small label
width property
192 number
embed type
tokens label
vocab property
256 number
ffn type
activation property
let keyword
mean variable
let keyword
batch_size variable
8 seqs number
mean local.definition.var
batch_size local.definition.var
EOF
    diff wanted looks > out || fail "neovim shows words as others: $(tr '\n' ';' < out)"
fi

command -v vim > /dev/null && vim -es -u NONE -c 'if !has("syntax") | cquit | endif' -c 'qa!' || {
    echo "vim is not installed: nobody has looked at a file in it."
    finish
}
cat > look.vim <<EOF
set nocompatible
set runtimepath^=$grammar/editors/vim
filetype on
syntax on
edit seen.vwn
let out = []
for [line, word] in [[1, 'model'], [1, 'small'], [2, 'width'], [3, 'embed'], [3, 'tokens'], [3, 'vocab'], [4, 'ffn'], [4, 'silu'], [6, 'let'], [6, 'mean'], [6, 'zeros'], [7, 'seqs']]
  call add(out, word . ' ' . synIDattr(synID(line, match(getline(line), '\<' . word . '\>') + 1, 1), 'name'))
endfor
call writefile(out, 'looks')
qa!
EOF
expect 0 vim -es -u NONE -S look.vim
cat > wanted <<'EOF'
model vwnKnownNode
small vwnLabel
width vwnKnownAttribute
embed vwnKnownNode
tokens vwnLabel
vocab vwnAttribute
ffn vwnNode
silu vwnPrimitive
let vwnStorage
mean vwnAttribute
zeros vwnPrimitive
seqs vwnQuantity
EOF
diff wanted looks > out || fail "vim shows words as others"
finish
