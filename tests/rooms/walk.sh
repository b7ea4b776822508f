# walk.sh - compiler/ARCHITECTURE.md walks one tiny model through every stage: are its dumps what the program prints?
#
# In:  tiny.vwn; the page, in which each dump stands in a code block behind a line `<!-- walk: NAME -->`.
# Out: status 0 when each is, byte for byte, what `dump NAME` below prints. `sh tests/rooms/walk.sh --write` writes them anew.
# The one idea: a dump is a command and a cut. What is cut are lines; of a line only the place in the library's text, which moves
# with every sentence that is added there.
# When: quick, released.
set -eu
source=${VWN_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
vwn=${VWN:-$source/build/vwn}
page=$source/compiler/ARCHITECTURE.md
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp "$source/tests/rooms/tiny.vwn" "$folder"
cd "$folder"

ir() { "$vwn" ir tiny.vwn --stage "$@"; }
# lines FROM TO: from the first line that has FROM to the next one that is TO, both in.
lines() { awk -v from="$1" -v to="$2" '!on && !done && index($0, from) { on = 1; first = NR } on { print } on && NR > first && $0 == to { on = 0; done = 1 }'; }
placeless() { sed 's|,* std/[a-z_]*\.vwn:[0-9:]*||'; }

dump() {
    case $1 in
    file) sed '/^##/d' tiny.vwn ;;
    resolved) ir resolved | lines '  linear {' '  }' ;;
    tensor) ir tensor | grep -E '^ext [0-3] |^%([1-9]|1[0-9]|2[0-7]) ' ;;
    gradient) ir gradient | grep -e 'linear.pre_norm.grad' -e '^store' ;;
    simple) ir simple | grep -E '^%(2[2-9]|3[0-9]) ' | head -n 4 ;;
    fuse) ir fuse | grep -E '^group ([0-3]|1[0-9]) ' ;;
    kernel) ir kernel | lines '"rows: mul, sum' '  end' ;;
    threads) ir threads | lines '"rows: mul, sum' '  end' | lines 'threads ' '  end' ;;
    c) ir c | lines '/* rows: mul, sum, div, add, sqrt */' '}' ;;
    cuda) ir cuda | lines '/* linear.pre_norm' ' */' && ir cuda | lines '/* rows: mul, sum, div, add, sqrt' 'no such line' | awk '{ print } /^}/ { exit }' ;;
    plan) ir plan | grep -E '^plan |^buffer ([0-8]|2[4-9]) |^launch ([0-3]|1[1-5]) |^result loss ' ;;
    emit) # the first two calls of the step
        "$vwn" emit c tiny.vwn -o folder -q > /dev/null
        kernel=$(dump c | sed -n 's/^KERNEL \(k_[0-9a-f]*\).*/\1/p')
        awk -v kernel="$kernel" '/^    { \/\*/ { text = "" } { text = text $0 "\n" }
            /^    }/ { if (n || index(text, kernel)) { printf "%s", text; if (++n == 2) exit } }' folder/plan.c
        ;;
    *) echo "walk.sh knows no dump \`$1\`" >&2 && return 1 ;;
    esac | placeless
}

# The page with each dump in place of what stands there.
rewritten() {
    while IFS= read -r line || [ -n "$line" ]; do
        if [ -n "${skip:-}" ]; then
            [ "$line" = '```' ] || continue
            skip=
        fi
        printf '%s\n' "$line"
        case $line in
        '<!-- walk: '*' -->')
            name=${line#'<!-- walk: '}
            name=${name%' -->'}
            ;;
        '```'?*)
            [ -n "${name:-}" ] || continue
            dump "$name" > "text.$name"
            [ -s "text.$name" ] || { echo "the dump \`$name\` is empty" >&2; exit 1; }
            cat "text.$name"
            name=
            skip=1
            ;;
        esac
    done < "$1"
}

rewritten "$page" > new
if [ "${1:-}" = --write ]; then
    cp new "$page"
    exit 0
fi
diff "$page" new || {
    echo "compiler/ARCHITECTURE.md is not what the program prints: sh tests/rooms/walk.sh --write"
    exit 1
}
walked=$(grep -c '^<!-- walk: ' "$page")
[ "$walked" -ge 12 ] || { echo "only $walked dumps stand in the page"; exit 1; }

# A page with a letter changed in its last dump is found.
awk '/^<!-- walk: /{ last = NR } { line[NR] = $0 } END { for (i = 1; i <= NR; i++) { if (i == last + 2) sub(/[^ ]/, "@", line[i]); print line[i] } }' "$page" > changed
rewritten changed > new
! cmp -s changed new || { echo "a changed dump was not noticed"; exit 1; }
