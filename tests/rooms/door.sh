# door.sh - the README's first screen is true: its model is that of examples/quickstart.vwn, and the counts and the picture it
# shows are that model's. It is a page.
#
# In:  README.md, in which the first code block is the model, and the second what comes out; all pages, for the files that they name.
# Out: status 0 when it is so.
# The one idea: both models make the same graph, node by node; where they stand in their files is left out.
# When: quick, released.
set -eu
page=$VWN_SOURCE/README.md
here=$PWD

fail() {
    echo "README.md: $*"
    exit 1
}
block() { awk -v wanted="$1" '/^```$/ { inside = !inside; n += inside; next } inside && n == wanted' "$page"; }
graph() { "$VWN" ir "$1" --stage tensor --program predict | sed 's/  #.*//'; }

[ "$(wc -l < "$page")" -le 150 ] || fail "it has more than 150 lines"
block 1 > model.vwn
"$VWN" check -q --deny warnings model.vwn || fail "its model is none"
graph model.vwn > shown
graph "$VWN_SOURCE/examples/quickstart.vwn" > made
cmp -s shown made || fail "its model is not that of examples/quickstart.vwn"
"$VWN" params "$VWN_SOURCE/examples/quickstart.vwn" > counts
block 2 | sed -n '/^quickstart /p; /%  /p' > claimed
[ "$(wc -l < claimed)" -ge 6 ] || fail "it shows no counts"
while IFS= read -r line; do
    grep -qxF -e "$line" counts || fail "nobody counts \`$line\`"
done < claimed

# Whatever it names is there: files in backticks and links, and the two commands that set everything up.
cd "$VWN_SOURCE"
grep -o '`[a-zA-Z_/]\{1,\}\.\(md\|sh\|vwn\|py\|h\|svg\)`\|src="[^"]*"' README.md | sed 's/^`//; s/`$//; s/^src="//; s/"$//' | sort -u > "$here/names"
[ "$(wc -l < "$here/names")" -gt 3 ] || fail "it names nothing"
while IFS= read -r name; do
    [ -e "$name" ] || [ -n "$(find . -path ./build -prune -o -name "$name" -print -quit)" ] || fail "there is no $name"
done < "$here/names"
for command in 'sh examples/quickstart.sh' 'sh tests/run.sh'; do
    grep -q "^    $command  " README.md || fail "no line \`$command\`"
    sh -n "${command#sh }" || fail "$command is no script"
done

# So is every file of the sources that any page names, from the root, from the page's folder, or by its own name.
find . -path ./build -prune -o -type f -print | sed 's|.*/||' | sort -u > "$here/files"
find . -path ./build -prune -o -name '*.md' -print | while IFS= read -r md; do
    grep -o '`[A-Za-z0-9_/.]*[a-z0-9_]\.\(c\|h\|def\|sh\|l\|y\|inc\|md\|py\)`' "$md" | tr -d '`' | sort -u | while IFS= read -r name; do
        case $name in
        */*) for path in "$name" "compiler/$name" "runtime/$name" "$(dirname "$md")/$name"; do [ ! -e "$path" ] || continue 2; done ;;
        *) ! grep -qxF "$name" "$here/files" || continue ;;
        esac
        echo "$md names $name, which is not there"
    done
done > "$here/missing"
[ ! -s "$here/missing" ] || fail "$(cat "$here/missing")"

# Each example that trains says what its data is and where it comes from, in a comment that begins with the folder or the file of it.
for example in examples/*.vwn; do
    grep -q '^train {' "$example" || continue
    data=$(sed -n 's/^ *\(let corpus\|data\) *= [^"]*"\([^"/]*\).*/\2/p' "$example" | head -n 1)
    [ -n "$data" ] || fail "$example has no data"
    grep -q "^ *# ${data}[^:]*: .\{20\}" "$example" || fail "$example does not say what $data is"
done

# Each verb of the program is in the page.
cd "$here"
"$VWN" --help | sed -n 's/^  vwn \([a-z][a-z-]*\) .*/\1/p' | sort -u > verbs
[ "$(wc -l < verbs)" -gt 20 ] || fail "the program has hardly any verbs"
while IFS= read -r verb; do
    grep -q "\`\(vwn \)\{0,1\}$verb\b" "$page" || fail "nothing about \`vwn $verb\`"
done < verbs
