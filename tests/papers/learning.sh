# learning.sh - small models of the examples learn a text by heart; PF-days of a run in `vwn cost`.
# When: slow, optimised. Long training shows the sanitizers nothing new.
. "$VWN_SOURCE/tests/support/lib.inc"

big="$VWN_SOURCE/examples/08_xformer_500m.vwn"
expect 0 "$VWN" cost "$big"
has out 'the whole run: 23844 steps of 256 x 4096 positions'
has out '25,002,246,144'
has out '1.085 PF-days'
has out '1.068 PF-days'
expect 0 "$VWN" cost "$big" --json
has out '"run_pf_days":1.085'
has out '"run_pf_days_live":1.06'
has out '"flop_dead":19712000,'
expect 0 "$VWN" cost "$VWN_SOURCE/examples/14_own_connection.vwn"
lacks out 'PF-days'
lacks out 'dead weights'

i=0
while [ $i -lt 300 ]; do
    echo "line $((i % 7)) of $((i * i % 11)) says abc $((i % 5))"
    i=$((i + 1))
done > text.txt

# learns FILE SETTINGS: 30 steps of the example bring the loss down by a fifth.
learns() {
    file=$1
    shift
    # checks and growth speak of the large model
    sed "/^ *check/d; s|^grow |/- &|" "$VWN_SOURCE/examples/$file.vwn" > "$file.vwn"
    expect 0 "$VWN" train "$file.vwn" --run "$file" --json --set V=256 \
        --set model.context=32 --set "train.data=text_file(\"text.txt\", val = 10%)" \
        --set 'train.tokenizer=bytes()' --set 'train.batch=4 seqs' --set 'train.length=30 steps' \
        --set train.precision=fp32 \
        --set 'train.optimizer.lr=constant(1e-2)' "$@"
    first=$(sed -n 's/.*"event":"step".*"loss":\([0-9.]*\).*/\1/p' out | head -n 1)
    last_loss=$(sed -n 's/.*"event":"step".*"loss":\([0-9.]*\).*/\1/p' out | tail -n 1)
    awk -v a="$first" -v b="$last_loss" 'BEGIN { exit !(a > 0 && b < 0.8 * a) }' ||
        fail "$file $*: the loss goes from $first to $last_loss"
    rm -rf "runs/$file"
}
# Of those of which nothing else is asked one of three is drawn.
one_of() { ! draw 3 || learns "$@"; }
one_of 08_xformer_500m --set d=64 --set 'width=[96, 32, 96]' --set L=3
one_of 08_xformer_500m --set d=64 --set 'width=[64, 32, 64]' --set L=3 --set last_norm=none \
    --set 'conn=carried(head = d, widths = width, norm = norm, expand = missing)'
one_of 24_xformer_moe --set d=64 --set 'width=[96, 32, 96]' --set L=3 --set experts=4 --set active=2
one_of 09_nexus_growth --set D=64 --set M=68 --set A=72 --set L=2 --set heads=1 \
    --set 'layer[*].ffn.hidden=96'
one_of 25_nexus_released --set D=64 --set M=68 --set A=72 --set L=2 --set heads=2 --set F=96
one_of 10_tokenformer_growth --set D=64 --set L=2 --set heads=2 --set slots=24 --set ffn_slots=64
one_of 19_over_encoding --set D=64 --set L=1 --set rows=100

# the losses of a chain by depth, and their weight, which falls after 21 of 30 steps
learns 20_mtp_chain --set D=64 --set L=1 --set depths=2 --set m=2 --set n=4
sed -n 's/.*"event":"step","step":\([0-9]*\),.*"loss.mtp":\([0-9.]*\),"metric.next_2":\([0-9.]*\),"metric.next_3":\([0-9.]*\),.*/\1 \2 \3 \4/p' out > mtp
awk '{ r = 2 * $2 / ($3 + $4) - ($1 <= 21 ? 0.3 : 0.1); if (r * r > 1e-10) bad = 1 }
     END { exit bad || NR != 30 }' mtp || fail "the weight of loss.mtp: $(cat mtp)"
learns 21_deepseek_mtp --set D=128 --set L=1 --set F=64

# every expert's share of the assignments, layer by layer
learns 24_xformer_moe --set d=64 --set 'width=[64, 64]' --set L=2 --set experts=4 --set active=2 \
    --set 'layer[*].moe.capacity=1.25' --set 'layer[*].moe.shared=1' --set 'layer[*].moe.scale=2' \
    --set 'layer[*].moe.router_bias=zeros'
has out '"metric.dropped":0'
for layer in 1 2; do
    sed -n 's/.*"event":"step".*"metric.layer\['$layer'\].moe.load":\[\([0-9.,e-]*\)\].*/\1/p' out > load
    awk -F, '{ r = $1 + $2 + $3 + $4 - 1; if (NF != 4 || r * r > 1e-12) bad = 1 }
             END { exit bad || NR != 30 }' load || fail "load of layer $layer: $(head -n 2 load)"
done
finish
