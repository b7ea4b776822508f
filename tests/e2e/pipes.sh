# pipes.sh - whatever a user names is a regular file: pipes, devices and folders in its place are refused at
# once, where opening or reading them would wait for ever and not hear a SIGTERM.
. "$VWN_SOURCE/tests/support/lib.inc"
expect 0 "$VWN" new nano
expect 0 "$VWN" train nano/model.vwn --until '1 steps'
expect 0 "$VWN" emit c nano/model.vwn -o emitted
expect 0 "$VWN" emit cuda nano/model.vwn -o emitted.cuda
mkfifo pipe
mkdir folder
text() { sed "s|text_file(\"text.txt\"|$1|" nano/model.vwn; }

for kind in pipe folder /dev/zero; do
    case $kind in /*) there=$kind ;; *) there=$PWD/$kind ;; esac
    what=$(echo "$kind" | sed 's/.*zero/device/')
    expect 1 timeout 10 "$VWN" check $kind
    has err "error[E0106]: cannot read $kind: it is a $what, not a file"
    expect 1 timeout 10 "$VWN" params $kind
    echo "import \"$there\"" | cat - nano/model.vwn > import.vwn
    expect 1 timeout 10 "$VWN" check import.vwn
    has err "cannot read $there: its name does not end in .vwn"
    expect 1 timeout 10 "$VWN" fmt $kind
    has err 'it is not a regular file'
    expect 1 timeout 10 "$VWN" ir --from $kind --stage fuse
    expect 5 timeout 10 "$VWN" bench nano/model.vwn --against $kind
    expect 5 timeout 10 "$VWN" sample runs/nano --prompts $kind
    has err 'it is not a regular file'
    expect 5 timeout 10 "$VWN" eval runs/nano --data $there
    has err "it is a $what, not a file"
    text "text_file(\"$there\"" > nano/text.vwn
    expect 5 timeout 10 "$VWN" train nano/text.vwn --run text
    has err "$there: it is a $what, not a file"
    text "token_files(\"$there\", dtype = u16" > nano/shard.vwn
    timeout 10 "$VWN" train nano/shard.vwn --run shard > out 2> err
    has err "$there: it is a $what, not a file"
    [ -d $kind ] || {
        expect 5 timeout 10 "$VWN" eval $kind
        has err "$kind: it is a $what, not a file"
        (cd emitted && make > ../log 2>&1) || fail 'make'
        expect 1 timeout 10 emitted/model eval $kind
        has err "$kind: it is a $what, not a file"
    }
    # a checkpoint, and what else lies in a run's folder
    for file in ckpt/step_00000009.safetensors events.jsonl lock origins.json; do
        [ ! -d $kind ] || [ $file != lock ] || continue
        rm -rf runs/odd
        cp -r runs/nano runs/odd
        rm -f runs/odd/$file
        ln -s "$there" runs/odd/$file
        timeout 60 "$VWN" train nano/model.vwn --run odd --resume --until '2 steps' > out 2> err
        status=$?
        case $file:$status in
        ckpt*:0) has err "it is a $what, not a file" ;; # passed over with a warning
        origins.json:0) ;;                              # replaced
        *:5) has err "runs/odd/$file could not be opened: it is a $what, not a file" ;;
        *) fail "$kind as $file: status $status" ;;
        esac
    done
    # a file that emit would write
    rm -rf into
    cp -r emitted into
    rm -f into/kernels.c
    ln -s "$there" into/kernels.c
    expect 5 timeout 10 "$VWN" emit c nano/model.vwn -o into
    has err "into/kernels.c could not be written: it is a $what, not a file"
    rm -rf into
    cp -r emitted.cuda into
    rm -f into/kernels.cu
    ln -s "$there" into/kernels.cu
    expect 5 timeout 10 "$VWN" emit cuda nano/model.vwn -o into
    has err "into/kernels.cu could not be written: it is a $what, not a file"
done

# an array in the place of a text
sed 's|text_file("text.txt", val = 5%)|arrays({ tokens = "../pipe", labels = "../pipe" })|' nano/model.vwn > nano/array.vwn
timeout 10 "$VWN" train nano/array.vwn --run array > out 2> err
[ $? -lt 124 ] || fail "an array that is a pipe: $?"

# what can be read from the standard input still can
expect 0 sh -c '"$VWN" check - < nano/model.vwn'
expect 0 sh -c '"$VWN" check /dev/stdin < nano/model.vwn'
expect 0 sh -c 'cat nano/model.vwn | "$VWN" check -'
expect 0 sh -c 'cat nano/model.vwn | "$VWN" fmt --check -'
expect 0 sh -c 'echo "1 + 1" | "$VWN" sample runs/nano --tokens 2 --prompts -'
expect 5 sh -c 'timeout 60 "$VWN" check - < /dev/zero'
has err 'it has more than 64 MiB'

# a run whose checkpoints are gone is not begun anew
rm -rf runs/odd
cp -r runs/nano runs/odd
rm runs/odd/ckpt/*
expect 5 "$VWN" train nano/model.vwn --run odd --resume
has err 'the checkpoints of `runs/odd` are gone: put them back into runs/odd/ckpt, or start anew: `vwn train FILE --run runs/odd --overwrite`'
[ -z "$(ls runs/odd/ckpt)" ] || fail 'something was trained'
sed -i '/"event":"checkpoint"/d' runs/odd/events.jsonl # one that stopped before its first checkpoint
expect 0 "$VWN" train nano/model.vwn --run odd --resume --until '1 steps'
has err 'has no checkpoint yet: starting from the beginning'
finish
