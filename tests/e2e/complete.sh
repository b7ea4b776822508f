# complete.sh - completions in bash, zsh and fish, as these shells ask for them, against the help texts; the manual page in
# mandoc and groff; what `cmake --install` puts where.
# When: quick, released.
. "$VWN_SOURCE/tests/support/lib.inc"
build=$(dirname "$VWN")
expect 0 cmake --install "$build" --prefix "$PWD/prefix"
export PATH="$PWD/prefix/bin:$PATH"
for file in bin/vwn include/vwn.h share/man/man1/vwn.1 share/bash-completion/completions/vwn share/zsh/site-functions/_vwn \
    share/fish/vendor_completions.d/vwn.fish share/vwn/editors/vim/syntax/vwn.vim share/vwn/editors/vscode/package.json \
    lib/libvwn_runtime.a lib/libvwn.so lib/pkgconfig/vwn.pc share/vwn/python/vwn/__init__.py; do
    [ -s prefix/$file ] || fail "nothing is installed as $file"
done

# a program of others over what is installed, which lies elsewhere by now
mv prefix moved
libs=$(sed -n "s|^Libs: ||p; s|^Cflags: ||p" moved/lib/pkgconfig/vwn.pc | sed "s|\${prefix}|moved|g")
if command -v pkg-config > /dev/null; then libs=$(PKG_CONFIG_PATH=$PWD/moved/lib/pkgconfig pkg-config --cflags --libs vwn); fi
[ "$VWN_BUILD_TYPE" != Sanitize ] || libs="$libs -fsanitize=address,undefined"
# shellcheck disable=SC2086
expect 0 cc "$VWN_SOURCE/examples/embed/counts.c" $libs -o counts
expect 0 ./counts "$VWN_SOURCE/examples/quickstart.vwn"
has out '1,955,856'
expect 0 ./counts "$VWN_SOURCE/examples/quickstart.vwn" D=96
expect 1 ./counts "$VWN_SOURCE/examples/quickstart.vwn" D=
filled err
mv moved prefix

# offers WORD...: what the last one may become, without what it means
offers() { "$VWN" completions words -- "$@" | cut -f 1 > out; last="offers $*"; }

# every verb and every flag of the help is offered, and no other
offers ''
"$VWN" --help | sed -n 's/^  vwn \([a-z][a-z-]*\) .*/\1/p' > verbs
echo help >> verbs
sort verbs | diff - out > /dev/null || { sort out | diff - verbs > /dev/null; }
sort out > offered
sort verbs | diff - offered > differ || fail "verbs: $(cat differ)"
for verb in $(grep -v '^help$' verbs); do
    offers $verb -
    sort out > offered
    "$VWN" $verb --help | sed -n '/^Flags:/,$ s/^  \(--*[A-Za-z][a-z-]*\).*/\1/p' | sort > flags
    diff flags offered > differ || fail "$verb: $(cat differ)"
done
offers params --by ''
[ "$(tr '\n' ' ' < out)" = 'node layer group tensor ' ] || fail "values of a flag"
offers params --by=la
[ "$(cat out)" = --by=layer ] || fail "a value behind ="
offers ir --stage swi
[ "$(cat out)" = swizzle ] || fail "passes are stages"
offers emit cu
[ "$(cat out)" = cuda ] || fail "words that are operands"

mkdir -p models 'runs/one run/ckpt' runs/two/ckpt
: > 'runs/one run/events.jsonl'
: > runs/two/events.jsonl
: > runs/two/ckpt/step_00000004.safetensors
cp "$VWN_SOURCE/examples/09_nexus_growth.vwn" models/grow.vwn
: > models/notes.txt
offers train mod
[ "$(cat out)" = models/ ] || fail "a folder"
offers train models/
[ "$(cat out)" = models/grow.vwn ] || fail "files of the language alone"
offers eval runs/t
[ "$(cat out)" = runs/two ] || fail "a run is a whole word"
offers eval runs/two/ckpt/
[ "$(cat out)" = runs/two/ckpt/step_00000004.safetensors ] || fail "a checkpoint"
offers -C models check ''
offers check -C models ''
[ "$(cat out)" = grow.vwn ] || fail "files of another folder"
offers grow models/grow.vwn --plan ''
for step in $(sed -n 's/^grow \([a-z_0-9]*\).*/\1/p' models/grow.vwn); do has out "$step"; done
offers check models/grow.vwn --set D
has out 'D='
offers explain E080
has out E0801
offers doc atten
has out attention
offers check -- -
lacks out --fix
offers nonsense ''
empty out
expect 2 "$VWN" completions tcsh
expect 2 "$VWN" completions

# bash, with the line cut in words as bash does: = and : are words
bash_offers() {
    bash -c 'compopt() { :; }; source prefix/share/bash-completion/completions/vwn; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _vwn; printf "%s\n" "${COMPREPLY[@]}"' bash "$@" > out 2> err
    last="bash: $*"
    empty err
}
bash_offers vwn tra
[ "$(cat out)" = train ] || fail "$(cat out)"
bash_offers vwn train models/grow.vwn --set D
has out 'D='
bash_offers vwn params --by = la
[ "$(cat out)" = layer ] || fail "$(cat out)"
bash_offers vwn params --by =
[ "$(head -n 1 out)" = node ] || fail "$(cat out)"
bash_offers vwn train --device cuda : ''
bash_offers vwn eval 'runs/o'
[ "$(cat out)" = 'runs/one\ run' ] || fail "$(cat out)"
if command -v zsh > /dev/null; then
    zsh -f -c 'compdef() { :; }; compadd() { while [[ $1 != -a ]]; do shift; done; print -l -- ${(P)2}; }; source prefix/share/zsh/site-functions/_vwn
        words=(vwn params --by=la) CURRENT=3; _vwn; words=(vwn train r) CURRENT=3; _vwn; words=(vwn eval "runs/one\ r") CURRENT=3; _vwn' > out 2> err
    last=zsh
    empty err
    grep . out > lines
    printf '%s\n' --by=layer runs/ runs/one\ run | sort > wanted
    sort lines | diff wanted - > differ || fail "$(cat differ)"
else
    echo "zsh is not installed: its script was not run."
fi
if command -v fish > /dev/null; then
    HOME=$PWD fish -c 'source prefix/share/fish/vendor_completions.d/vwn.fish; complete -C "vwn tra"; complete -C "vwn params --by la"; complete -C "vwn eval runs/tw"' > out 2> err
    last=fish
    empty err
    [ "$(cut -f 1 out | tr '\n' ' ')" = 'train layer runs/two ' ] || fail "$(cat out)"
else
    echo "fish is not installed: its script was not run."
fi

# the manual: whole, and without a warning
man=prefix/share/man/man1/vwn.1
for verb in $(grep -v '^help$' verbs); do sed 's|\\-|-|g' $man | grep -q "^\.SS $verb\$" || fail "the manual has no $verb"; done
statuses=$(sed -n '/^\.SH EXIT STATUS/,$s/^\\fB\([0-9]*\)\\fR$/\1/p' $man | tr '\n' ' ')
[ "$statuses" = '0 1 2 3 4 5 6 70 130 ' ] || fail "exit statuses of the manual: $statuses"
sed -n 's/^\\fB\(\\-.*\)/\1/p' $man | sed 's/\\fR.*//; s/\\//g' | sort -u > told
for verb in $(grep -v '^help$' verbs); do "$VWN" $verb --help | sed -n '/^Flags:/,$ s/^  \(--*[A-Za-z][a-z-]*\).*/\1/p'; done | sort -u | diff - told > differ ||
    fail "flags of the manual: $(cat differ)"
if command -v mandoc > /dev/null; then
    expect 0 mandoc -T lint -W warning $man
    empty out
fi
if command -v groff > /dev/null; then
    expect 0 groff -man -Tutf8 -ww -z $man
    empty err
fi
finish
