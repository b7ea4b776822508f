# order.sh - the folders of the sources stand in an order, and nothing includes or calls what comes later.
#
# In:  the sources.     Out: status 0 when every include of a header and every call runs to its own folder or an earlier one, every
#      function is declared in the folder that defines it, the files of compiler/print call in no circle (functions.awk), no folder has more than 25 files of C, no file more than
#      1,000 lines, and every folder is in the list.
# The one idea: the list below is the order in which data passes through the program. A header that everybody needs
# belongs further up; a decision that needs what comes later is handed down as a function (fuse.h: IsFlat).
# runtime/vwn.h, the public interface, stands before the runtime; what is behind it (api.c) comes last.
# When: quick, slow. It reads sources.
set -eu
here=$PWD

cat > order.txt << 'END'
compiler/portable
compiler/base
grammar
compiler/graph
compiler/pass
compiler/model
compiler/growth
compiler/front
compiler/file
compiler/fuse
compiler/kernel
compiler/gpu
compiler/library/texts
compiler/library
compiler/lower
compiler/print
compiler/plan
compiler/export
compiler/report
runtime/vwn.h
runtime/base
runtime/ranks
runtime/cpu
runtime/cuda
runtime/exec
runtime/token
runtime/data
runtime/checkpoint
runtime/shards
runtime/family
runtime/train
runtime/measure
runtime/use
runtime/serve
runtime/hold
runtime/draw
runtime/look
runtime/report
runtime/sweep
runtime/lsp
runtime/api.h
runtime/api.c
runtime/api_train.c
runtime/cli
runtime/cli/verbs
END

# The faults of the tree in the current folder, a line each. compiler/emitted is what other people compile: its files
# know each other and compiler/portable alone, whose files know nobody.
faults() {
    find compiler runtime grammar -name '*.[chly]' ! -path '*/editors/*' | sort > "$here/files.txt"
    xargs wc -l < "$here/files.txt" | awk '$2 != "total" && $1 > 1000 { print $2 " has " $1 " lines" }'
    sed 's|/[^/]*$||' "$here/files.txt" | sort | uniq -c | awk '$1 > 25 { print $2 " has " $1 " files of C" }'
    xargs grep -H '^ *# *include "' < "$here/files.txt" | sed 's|: *# *include "| |; s|".*||' |
        awk -v order="$here/order.txt" '
        function folder(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "" }
        function place(path) { return path in at ? at[path] : folder(path) in at ? at[folder(path)] : 0 }
        BEGIN { while ((getline line < order) > 0) at[line] = ++n }
        folder($1) == "compiler/emitted" {
            if ($2 ~ /\//) print $1 " includes " $2 ", which does not travel with it"
            next
        }
        !place($1) { print $1 " lies in no folder of the list"; next }
        folder($1) == "compiler/portable" && $2 ~ /\// { print $1 " includes " $2 ", which does not travel with it"; next }
        $2 !~ /\// { if ($2 !~ /^vwn_parser/ && system("test -f " folder($1) "/" $2)) print $1 " includes " $2 " of another folder without its name"; next }
        system("test -f " $2) { print $1 " includes " $2 ", which is not there from the root"; next }
        !place($2) { print $1 " includes " $2 ", which lies in no folder of the list"; next }
        $2 ~ /^runtime\/(cpu|cuda)\// && $1 !~ /^runtime\/(cpu|cuda|measure|use)\// && $1 != "runtime/exec/backends.c" {
            print $1 " includes " $2 ": backends are opened by their rows"
            next
        }
        place($2) > place($1) { print $1 " includes " $2 ", which comes later" }'
}

# Names of types that a header declares are those of one thing: no other file has a type of that name.
twice() {
    # shellcheck disable=SC2046 # names of sources are words
    grep -HoE '^typedef (struct|enum|union) [A-Z][A-Za-z0-9_]*' $(find compiler runtime grammar -name '*.[chy]' ! -path '*/emitted/*' ! -path '*/texts/*' ! -path '*/editors/*' | sort) |
        sed -E 's/^([^:]*):typedef [a-z]* (.*)/\2 \1/' | sort -u |
        awk '{ n[$1]++; where[$1] = where[$1] " " $2; if ($2 ~ /[.]h$/) header[$1] = 1 }
             END { for (t in n) if (n[t] > 1 && header[t]) print "type " t " is declared in" where[t] }'
}

# A type of stored numbers is a row of dtype.def: no other file asks for one by its name, but for which machine multiplies which.
named() {
    # shellcheck disable=SC2046 # names of sources are words
    grep -HE 'HALF_[A-MO-Z]+[0-9]|"(bf16|fp16)"' $(find compiler runtime -name '*.[ch]' ! -path '*/library/texts/*' | sort) |
        grep -vE '^compiler/graph/target\.c|^runtime/measure/peak\.c:.*"#ifdef __AVX512BF16__|vwn_two_products_' | sed 's|/\*.*\*/||' |
        sed -nE '/HALF_[A-MO-Z]+[0-9]|"(bf16|fp16)"/s/^([^:]*): */\1 names a type: /p'
}

# A number that was chosen for a GPU is a row of tuned.def; what else is in gpu/ is the shape of a fragment or of a vector.
tuned() {
    grep -HE '^ *enum \{($|.*= *[0-9])' compiler/gpu/*.[ch] |
        grep -vE 'cut_products\.c:.*(FEW|EIGHT|FOUR|SIXTEEN) =|tile\.c:.*LEAST = 4, MOST = 12|TILE_ROOM|ROW_SUMS_MAX|PIECE ' |
        sed -E 's/^([^:]*): */\1 has a number of its own: /'
}

# $1: so many functions there are at least.
functions() {
    # shellcheck disable=SC2046 # names of sources are words
    awk -v order="$here/order.txt" -v least="$1" -v trees="compiler/print" -f "$VWN_SOURCE/tests/rooms/functions.awk" \
        $(find compiler runtime grammar -name '*.[ch]' ! -path '*/emitted/*' ! -path '*/texts/*' ! -path '*/editors/*' | sort)
}
(cd "$VWN_SOURCE" && faults && twice && named && tuned && functions 1500) > found.txt
cat found.txt
[ ! -s found.txt ] || exit 1
[ "$(wc -l < files.txt)" -gt 300 ] || { echo "hardly any files were looked at"; exit 1; }

# What it looks for, planted in a tree of a few files.
rm -rf planted
mkdir -p planted/compiler/graph planted/compiler/plan planted/compiler/new planted/compiler/portable planted/grammar planted/compiler/emitted
cd planted
for file in compiler/graph/ir.h compiler/plan/plan.h compiler/portable/order.h; do echo "/* $file */" > $file; done
echo '#include "compiler/graph/ir.h"' > compiler/plan/plan.c
faults > ../found.txt
[ ! -s ../found.txt ] || { cat ../found.txt; echo "a tree in order has faults"; exit 1; }
expect() {
    faults > ../found.txt
    [ "$(cat ../found.txt)" = "$1" ] || { echo "wanted: $1"; cat ../found.txt; exit 1; }
}
echo '#include "compiler/plan/plan.h"' > compiler/graph/ir.c
expect "compiler/graph/ir.c includes compiler/plan/plan.h, which comes later"
echo '#include "plan.h"' > compiler/graph/ir.c
expect "compiler/graph/ir.c includes plan.h of another folder without its name"
rm compiler/graph/ir.c
mkdir -p runtime/cpu runtime/train
echo > runtime/cpu/cpu.h
echo '#include "runtime/cpu/cpu.h"' > runtime/train/train.c
expect "runtime/train/train.c includes runtime/cpu/cpu.h: backends are opened by their rows"
rm -r runtime
echo '#include "compiler/graph/ir.h"' > compiler/portable/order.c
expect "compiler/portable/order.c includes compiler/graph/ir.h, which does not travel with it"
rm compiler/portable/order.c
echo '#include "compiler/graph/ir.h"' > compiler/new/new.c
expect "compiler/new/new.c lies in no folder of the list"
rm compiler/new/new.c
echo 'typedef struct Walk {' > compiler/graph/ir.h
echo 'typedef enum Walk {' > compiler/plan/plan.c
[ "$(twice)" = "type Walk is declared in compiler/graph/ir.h compiler/plan/plan.c" ] || { twice; echo "a type of two meanings is not found"; exit 1; }
echo '    return h == HALF_BF16 ? "bf16" : "real";' > compiler/graph/ir.c
[ "$(named)" = 'compiler/graph/ir.c names a type: return h == HALF_BF16 ? "bf16" : "real";' ] || { named; echo "a type by its name is not found"; exit 1; }
rm compiler/graph/ir.c
mkdir -p runtime
# $1: the line that it must say, of what lies in ir.h, ir.c, plan.h and plan.c.
speaks() {
    [ "$(functions 0)" = "$1" ] || { echo "wanted: $1"; functions 0; exit 1; }
}
echo 'int add(int a, int b); /* int no(void); */' > compiler/graph/ir.h
printf 'int add(int a,\n        int b)\n{\n    return a + b;\n}\nstatic int own(void) { return add(1, 2); }\n' > compiler/graph/ir.c
printf '#define TWICE(x) \\\n    plan(x)\nint plan(int x);\nint run(int (*f)(void));\n' > compiler/plan/plan.h
printf 'int plan(int x)\n{\n    return add(x, own("compute(")); /* compute( */\n}\n%s\n' \
    'int run(int (*f)(void)) { return f() + p->later() + (x.later(0)); }' > compiler/plan/plan.c
speaks ""
echo 'int add(int a, int b);' >> compiler/plan/plan.h
speaks "compiler/plan/plan.h declares add() of compiler/graph/ir.c"
printf 'int plan(int x);\nint run(int (*f)(void));\n' > compiler/plan/plan.h
printf 'static int other(void)\n{\n    return plan(1);\n}\n' >> compiler/graph/ir.c
speaks "compiler/graph/ir.c calls plan() of compiler/plan/plan.c, which comes later"
printf 'int add(int a, int b) { return a + b; }\nint plan(int x);\n' > compiler/graph/ir.c
speaks "compiler/graph/ir.c declares plan(), which a header should"
printf 'int add(int a, int b) { return a + b; }\nint more(void) { return 0; }\n' > compiler/graph/ir.c
speaks "compiler/graph/ir.c defines more(), which no header declares"
mkdir compiler/print
printf 'int low(int x);\nint middle(int x);\nint high(int x);\n' > compiler/print/emit.h
printf 'int low(int x) { return x; }\n' > compiler/print/a.c
printf 'int middle(int x)\n{\n    return low(x);\n}\n' > compiler/print/b.c
printf 'int high(int x)\n{\n    return middle(x) + low(x);\n}\n' > compiler/print/c.c
printf 'int add(int a, int b) { return a + b; }\n' > compiler/graph/ir.c
speaks ""
printf 'int low(int x)\n{\n    return high(x);\n}\n' > compiler/print/a.c
[ "$(functions 0 | wc -l)" = 3 ] && functions 0 | grep -q "^compiler/print/a.c and compiler/print/b.c call each other" || { functions 0; echo "a circle of calls is not found"; exit 1; }
rm -r compiler/print
rm compiler/graph/ir.c
echo > compiler/graph/ir.h
echo > compiler/plan/plan.h
echo > compiler/plan/plan.c
yes '/* */' | head -n 1001 > compiler/plan/plan.c
expect "compiler/plan/plan.c has 1001 lines"
echo > compiler/plan/plan.c
i=0
while [ $i -lt 26 ]; do i=$((i + 1)); echo > compiler/plan/part$i.c; done
expect "compiler/plan has 28 files of C"
