# folders.sh - folders with `;`, `$()`, quotes and spaces in their names: vwn checks, trains and emits there, what it
# emits builds there; the scripts that build vwn give them another name, and end with one sentence where something is
# missing.
. "$VWN_SOURCE/tests/support/lib.inc"

odd="a b;\$(touch oops)'c\"d"
mkdir "$odd" && cd "$odd" || exit 1
expect 0 "$VWN" new nano
sed -i 's/let D = 96/let D = 16/; s/let L = 2/let L = 1/; s/32 seqs/2 seqs/' nano/model.vwn
head -c 20000 nano/text.txt > text && mv text nano/text.txt
mkdir cache "$odd" # what the C compiler reads and writes has such paths, too
expect 0 env XDG_CACHE_HOME="$PWD/cache" TMPDIR="$PWD/$odd" "$VWN" train nano/model.vwn --run "$odd/run" --until '1 steps'
expect 0 "$VWN" eval "$odd/run"
if command -v make > out && command -v cc > out; then
    expect 0 "$VWN" emit c nano/model.vwn -o "$odd/folder"
    expect 0 make -s -C "$odd/folder"
    expect 0 "$odd/folder/model" eval nano/text.txt --weights "$odd/folder/weights.safetensors"
fi
[ -z "$(find .. -name oops)" ] || fail "a name was taken for a command"

# The scripts, with programs that stand in for those that they install, fetch and build with
mkdir -p tree/tests bin
cp "$VWN_SOURCE/tests/setup.sh" tree/tests/
program() { # NAME TEXT: as if it were installed
    printf '#!/bin/sh\n%s\n' "$2" > "bin/$1"
    chmod +x "bin/$1"
}
program dpkg-query 'echo unknown'
program apt-get 'exit 100'
program bible 'yes in the beginning | head -c 4404412'
program cmake 'echo "$*" >> "$LOG"; exit ${CMAKE_STATUS:-0}'
script() { # COMMANDS behind setup.sh
    env PATH="$PWD/bin:$PATH" LOG="$PWD/log" sh -c "set -eu; cd tree; . tests/setup.sh; $1"
}
expect 0 script make_text
has out 'Writing build/data/kjv.txt'
empty err
[ "$(wc -c < tree/build/data/kjv.txt)" -eq 4404412 ] || fail "no text"
expect 0 script make_text
empty out
rm tree/build/data/kjv.txt
program bible 'exit 1'
expect 5 script make_text
has err 'has failed'
program id 'echo 0'
expect 5 script 'install_packages gcc'
has err 'The packages could not be installed (no network?): install gcc'
[ "$(wc -l < err)" -eq 1 ] || fail "more than a sentence"
program id 'echo 1000'
program sudo 'exit 1'
expect 5 script 'install_packages gcc'
rm bin/sudo
if ! command -v sudo > out; then
    expect 5 script 'install_packages gcc'
    has err 'neither root nor sudo'
fi
rm bin/id
expect 0 script 'build_vwn build/x Release'
lacks log ';'
has log '-DCMAKE_BUILD_TYPE=Release'
echo 'of another time' > tree/build/x/build.log
expect 1 env CMAKE_STATUS=1 PATH="$PWD/bin:$PATH" LOG="$PWD/log" sh -c 'cd tree; . tests/setup.sh; build_vwn build/x Release'
lacks err 'of another time'
has err 'The build failed'
rm -r tree/build
: > tree/build # what cannot be written, for root, too
expect 5 script make_text
has err 'cannot be written: copy the sources'
[ "$(wc -l < err)" -eq 1 ] || fail "more than a sentence"
rm tree/build
# the other name is kept, and what somebody else has put in its place is not taken
expect 0 script 'pwd'
place=$(cat tree/build/plain_name)
has out "$place/vwn"
expect 0 script 'pwd'
has out "$place/vwn"
if [ "$(id -u)" -eq 0 ] && command -v setpriv > tool; then
    rm -r "$place"
    setpriv --reuid 2002 --regid 2002 --clear-groups sh -c 'mkdir "$1" && ln -s "$2" "$1/vwn"' sh "$place" "$PWD/tree"
    expect 0 script 'pwd'
    lacks out "$place/vwn"
    rm -r "$place"
fi
rm -r "$(cat tree/build/plain_name)"
finish
