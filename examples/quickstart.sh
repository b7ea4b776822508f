#!/bin/sh
# quickstart.sh - from a bare machine to a model that writes: `sh examples/quickstart.sh`
#
# In:  a Debian 12 (root or sudo where something has to be installed).
# Out: a virtual-width model of bytes, trained on the King James Bible in build/quickstart, a sample
#      after the first steps and one at the end, the loss on held-out text, and how many of the sampled
#      words are words of the text. Run again, it starts the training anew.
set -eu
export LC_ALL=C
cd "$(dirname "$0")/.."
# shellcheck source=tests/setup.sh
. tests/setup.sh

VWN= # always one that is built here
example_folder build/quickstart quickstart.vwn

say "The model (examples/quickstart.vwn)"
"$VWN" check quickstart.vwn
"$VWN" params quickstart.vwn

say "The first 200 steps"
"$VWN" train quickstart.vwn --overwrite --until '200 steps'

say "A first sample"
"$VWN" sample runs/quickstart --prompt 'And God said' --tokens 300

say "The other steps"
"$VWN" train quickstart.vwn --resume

say "Loss on text it has not seen"
"$VWN" eval runs/quickstart

say "A sample"
"$VWN" sample runs/quickstart --prompt 'And God said' --tokens 400

# words of letters only, in lower case, each once per occurrence; the last may be cut off
words() { tr '[:upper:]' '[:lower:]' | tr -cs '[:lower:]' '\n' | grep -E '^[a-z]+$'; }
words < kjv.txt | sort -u > known.txt
"$VWN" sample runs/quickstart --prompt 'And' --tokens 3000 --seed 2 | words | sed '$d' > sampled.txt
awk 'NR == FNR { known[$1]; next } { all++; if ($1 in known) hits++ }
     END { printf "\n%d of %d sampled words (%.0f %%) are words of the text\n", hits, all, 100 * hits / all }' \
    known.txt sampled.txt
echo
echo "Next: vary examples/quickstart.vwn, or start your own with build/vwn new DIR"
