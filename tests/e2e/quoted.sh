# quoted.sh - no message shows lines of a file that is not of the language: not through an import, not through a link,
# not as text and not as JSON. A missing file has a sentence and no line of source.
# When: quick, checked.
. "$VWN_SOURCE/tests/support/lib.inc"

secret='root:x:0:0'
printf '%s:root:/root:/bin/bash\n' "$secret" > passwd
ln -s passwd link.vwn
printf 'import "passwd"\n' > import.vwn
printf 'import "link.vwn"\n' > linked.vwn
printf 'import "sub/../passwd" as m\n' > named.vwn
mkdir sub
for file in import linked named link; do
    for how in "" "--json"; do
        expect 1 "$VWN" check $how $file.vwn
        lacks out "$secret"
        lacks err "$secret"
        lacks out 'bin/bash'
        lacks err 'bin/bash'
    done
done
expect 1 "$VWN" fmt link.vwn
lacks err "$secret"
expect 1 "$VWN" ir --from link.vwn
lacks err "$secret"
expect 1 "$VWN" check link.vwn
has err 'cannot read link.vwn: it is a link to a file whose name does not end in .vwn'

# A link to a file of the language is read as ever.
printf 'let D = x\n' > real.vwn
ln -s real.vwn alias.vwn
expect 1 "$VWN" check alias.vwn
has err 'let D = x'

expect 1 "$VWN" check nowhere.vwn
has err 'cannot read nowhere.vwn: No such file or directory'
lacks err '1 |'

# What is named as it should be is still only read when it is a file.
mkfifo pipe.vwn
printf 'import "pipe.vwn"\n' > piped.vwn
expect 1 timeout 10 "$VWN" check piped.vwn
has err 'cannot read pipe.vwn: it is a pipe, not a file'
finish
