/* parse_files.h - texts of files and their trees, for parse.c and tree_sitter.c. */
#ifndef FRONT_PARSE_FILES_H
#define FRONT_PARSE_FILES_H

typedef struct Case {
    const char *source, *tree; /* the items, without the list around them */
} Case;

static const Case files[] = {
    /* items */
    {"", ""},
    {"\n\n# nothing\n", ""},
    {"edition = 1", "(set (path edition) 1)"},
    {"import \"std/x\"", "(import std/x - -)"},
    {"import \"m.vwn\" as b", "(import m.vwn b -)"},
    {"import \"m.vwn\" as b (n = 1)", "(import m.vwn b (args (named n 1)))"},
    {"import \"m.vwn\" (n = 1,)", "(import m.vwn - (args (named n 1)))"},
    {"let x = 1", "(let x - 1)"},
    {"let x : [D, 2] = y", "(let x (list D 2) y)"},
    {"check a == b", "(check (op == a b) - -)"},
    {"check a \"m\"", "(check a (str 'm') -)"},
    {"check a \"m\" { code = \"E0504\", help = \"h\" }",
     "(check a (str 'm') (items (set (path code) (str 'E0504')) (set (path help) (str 'h'))))"},
    {"check a { note = \"n\" }", "(check a - (items (set (path note) (str 'n'))))"},
    {"block f() { return 1 }", "(block f (params) - - (items (return 1)))"},
    {"block f(n: int, f: block = g, s: name = sum,)(x: [.., D]) -> [.., D] { }",
     "(block f (params (par n int -) (par f block g) (par s name sum)) "
     "(params (par x (list (dots) D) -)) (list (dots) D) (items))"},
    {"param W : [a, b] = init", "(param W (list a b) init -)"},
    {"param W : [] = zeros { group = vector }", "(param W (list) zeros (items (set (path group) vector)))"},
    {"buffer t : [] = fill(1)", "(buffer t (list) (call fill (args 1)) -)"},
    {"return x", "(return x)"},
    {"for i in 1..n { a }", "(for i (range 1 n) (items (node (path a) - -)))"},
    {"if a { b } else if c { d } else { e }", "(if a (items (node (path b) - -)) (if c (items (node (path d) - -)) "
                                              "(items (node (path e) - -))))"},
    {"if a { b }", "(if a (items (node (path b) - -)) -)"},
    {"attn", "(node (path attn) - -)"},
    {"head lm { }", "(node (path head) (label lm) (items))"},
    {"head \"l m\" { }", "(node (path head) (label l m) (items))"},
    {"layer[*].ffn.up { entry = zeros }",
     "(node (path layer (at (star)) (dot ffn) (dot up)) - (items (set (path entry) zeros)))"},
    {"layer[i + 1].x = 2", "(set (path layer (at (op + i 1)) (dot x)) 2)"},
    {"\"a.{layer-1}\" = b.c", "(entry a.{layer-1} (field c b))"},
    {"/- a = 1", "(off (set (path a) 1))"},
    {"/- /- a { }", "(off (off (node (path a) - (items))))"},

    /* the newline rule */
    {"a = 1\nb = 2\n\n\nc = 3", "(set (path a) 1) (set (path b) 2) (set (path c) 3)"},
    {"a = 1, b = 2; c = 3", "(set (path a) 1) (set (path b) 2) (set (path c) 3)"},
    {"n { a = 1, b = 2 }", "(node (path n) - (items (set (path a) 1) (set (path b) 2)))"},
    {"n {\n a = 1,\n b = 2,\n}", "(node (path n) - (items (set (path a) 1) (set (path b) 2)))"},
    {"a = 1\n  + 2\n  - 3", "(set (path a) (op - (op + 1 2) 3))"},
    {"a = 1 +\n 2", "(set (path a) (op + 1 2))"},
    {"a = f(1\n, 2\n)\nb", "(set (path a) (call f (args 1 2))) (node (path b) - -)"},
    {"a = x\n .y", "(set (path a) (field y x))"},
    {"a = if c\n then 1\n else 2", "(set (path a) (cond c 1 2))"},
    {"n\n{\n a\n}\n", "(node (path n) - (items (node (path a) - -)))"},
    {"if a { b }\nelse { c }", "(if a (items (node (path b) - -)) (items (node (path c) - -)))"},
    {"import \"m\"\n as b", "(import m b -)"},
    {"a = 1 # c\nb", "(set (path a) 1) (node (path b) - -)"},
    {"a\r\nb = 2\r\n", "(node (path a) - -) (set (path b) 2)"},
    {"\xef\xbb\xbf"
     "a",
     "(node (path a) - -)"},
    {"a = [\n1,\n2\n]\n", "(set (path a) (list 1 2))"},
    {"a = b[1]\n[2]", "(set (path a) (index (index b (list 1)) (list 2)))"},
    {"return x\ny", "(return x) (node (path y) - -)"},
    {"a =\t1", "(set (path a) 1)"},

    /* slashdash and division */
    {"a = x/-2", "(set (path a) (op / x (neg 2)))"},
    {"a = f(x)/-y", "(set (path a) (op / (call f (args x)) (neg y)))"},
    {"a = f(/- x, y)", "(set (path a) (call f (args (off x) y)))"},
    {"a = f(x, /- y = 2)", "(set (path a) (call f (args x (off (named y 2)))))"},
    {"a = 1\n/- b = 2", "(set (path a) 1) (off (set (path b) 2))"},
    {"n { /- a = 1, b }", "(node (path n) - (items (off (set (path a) 1)) (node (path b) - -)))"},
    {"a = 1, /- b = 2", "(set (path a) 1) (off (set (path b) 2))"},
    {"a = (1)/-[2][1]", "(set (path a) (op / (paren 1) (neg (index (list 2) (list 1)))))"},

    /* documentation */
    {"## one\n## two\na", "(node ##one\ntwo (path a) - -)"},
    {"## far\n\na", "(node (path a) - -)"},
    {"# plain\na", "(node (path a) - -)"},
    {"n {\n  ## in\n  a = 1\n}", "(node (path n) - (items (set ##in (path a) 1)))"},
    {"## d\na, b", "(node ##d (path a) - -) (node (path b) - -)"},
    {"## d\n/- a", "(off ##d (node (path a) - -))"},
    {"block f(\n  ## size\n  n : int,\n) { }", "(block f (params (par n ##size int -)) - - (items))"},
    {"a = \"## no\"\nb", "(set (path a) (str '## no')) (node (path b) - -)"},

    /* strings */
    {"a = \"x\\\"\\\\\\n\\ty\"", "(set (path a) (str 'x\"\\\n\ty'))"},
    {"a = \"\xc3\xb6 # {x}\"", "(set (path a) (str '\xc3\xb6 # {x}'))"},
    {"a = \"\"", "(set (path a) (str ''))"},
};

#endif
