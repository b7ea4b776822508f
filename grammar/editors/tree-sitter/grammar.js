/* grammar.js - the language for tree-sitter: the rules of grammar/vwn.y with a name for each kind of node.
 *
 * In:  a text.   Out: a tree for highlighting, folding and selection, also while the text is being written.
 * The one idea: numbers, quantities and the newline that ends an item are src/scanner.c's, as only it sees what follows; all else
 * is the same grammar, so that every leaf is a token of vwn's own scanner (tests/front/tree_sitter.c compares them).
 */
const PREC = { or: 1, and: 2, not: 3, compare: 4, range: 5, add: 6, multiply: 7, negate: 8, power: 9 };

const comma_list = (item) => seq(item, repeat(seq(",", item)));

module.exports = grammar({
  name: "vwn",
  externals: ($) => [$._newline, $.number, $.quantity, $._in_error],
  extras: ($) => [/[ \t\r\n]/, $.comment],
  word: ($) => $.identifier,
  supertypes: ($) => [$._item, $._expression],

  rules: {
    file: ($) => optional($._items),
    _items: ($) =>
      choice(
        $._separators,
        seq(optional($._separators), $._item, repeat(seq($._separators, $._item)), optional($._separators)),
      ),
    _separators: ($) => repeat1(choice($._newline, ",", ";")),
    comment: () => token(seq("#", /[^\n]*/)),

    _item: ($) =>
      choice(
        $.import,
        $.let,
        $.check,
        $.block,
        $.param,
        $.buffer,
        $.return,
        $.for,
        $.if,
        $.node,
        $.assignment,
        $.entry,
        $.disabled,
      ),
    import: ($) =>
      seq("import", field("path", $.string), optional(seq("as", field("name", $.identifier))), optional($.arguments)),
    let: ($) =>
      seq("let", field("name", $.identifier), optional(seq(":", field("type", $._type))), "=", field("value", $._expression)),
    check: ($) => seq("check", field("condition", $._expression), optional(field("message", $.string)), optional($.body)),
    block: ($) =>
      seq(
        "block",
        field("name", $.identifier),
        field("parameters", $.parameters),
        optional(field("tensors", $.parameters)),
        optional(seq("->", field("result", $._type))),
        $.body,
      ),
    param: ($) => seq("param", $._weights),
    buffer: ($) => seq("buffer", $._weights),
    _weights: ($) =>
      seq(field("name", $.identifier), ":", field("shape", $._expression), "=", field("value", $._expression), optional($.body)),
    return: ($) => seq("return", $._expression),
    for: ($) => seq("for", field("name", $.identifier), "in", field("list", $._expression), $.body),
    if: ($) => seq("if", field("condition", $._expression), $.body, optional($.else)),
    else: ($) => seq("else", choice($.body, $.if)),
    node: ($) => seq(field("kind", $.path), optional(seq(optional(field("label", choice($.identifier, $.string))), $.body))),
    assignment: ($) => seq(field("path", $.path), "=", field("value", $._expression)),
    entry: ($) => seq(field("name", $.string), "=", field("value", $._expression)),
    disabled: ($) => seq("/-", $._item),
    body: ($) => seq("{", optional($._items), "}"),
    path: ($) =>
      seq($.identifier, repeat(choice(seq(".", $.identifier), seq("[", choice($._expression, $.any), "]")))),
    any: () => "*",

    parameters: ($) => seq("(", optional(seq(comma_list($.parameter), optional(","))), ")"),
    parameter: ($) =>
      seq(field("name", $.identifier), ":", field("type", $._type), optional(seq("=", field("default", $._expression)))),
    _type: ($) => choice($._expression, alias("block", $.block_type)),

    _expression: ($) =>
      choice(
        $.conditional,
        $.binary,
        $.not,
        $.negation,
        $.call,
        $.index,
        $.field,
        $.number,
        $.quantity,
        $.string,
        $.boolean,
        $.identifier,
        $.parenthesized,
        $.list,
        $.comprehension,
      ),
    conditional: ($) =>
      prec.right(seq("if", $._expression, "then", $._expression, "else", $._expression)),
    binary: ($) =>
      choice(
        ...[
          ["or", PREC.or],
          ["and", PREC.and],
          ["==", PREC.compare],
          ["!=", PREC.compare],
          ["<", PREC.compare],
          [">", PREC.compare],
          ["<=", PREC.compare],
          [">=", PREC.compare],
          ["..", PREC.range],
          ["+", PREC.add],
          ["-", PREC.add],
          ["*", PREC.multiply],
          ["/", PREC.multiply],
          ["@", PREC.multiply],
          ["mod", PREC.multiply],
        ].map(([operator, rank]) => prec.left(rank, seq($._expression, field("operator", operator), $._expression))),
        prec.right(PREC.power, seq($._expression, field("operator", "^"), $._expression)),
      ),
    not: ($) => prec(PREC.not, seq("not", $._expression)),
    negation: ($) => prec(PREC.negate, seq("-", $._expression)),
    _postfix: ($) =>
      choice($.call, $.index, $.field, $.number, $.quantity, $.string, $.boolean, $.identifier, $.parenthesized, $.list, $.comprehension),
    call: ($) => prec(PREC.power + 1, seq(field("function", $._postfix), $.arguments)),
    index: ($) => prec(PREC.power + 1, seq($._postfix, "[", comma_list($._element), "]")),
    field: ($) => prec(PREC.power + 1, seq($._postfix, ".", field("name", $.identifier))),
    parenthesized: ($) => seq("(", $._expression, ")"),
    list: ($) => seq("[", optional(seq(comma_list($._element), optional(","))), "]"),
    comprehension: ($) =>
      seq("[", $._expression, "for", comma_list($.iteration), optional(seq("if", $._expression)), "]"),
    iteration: ($) => seq(field("name", $.identifier), "in", $._expression),
    _element: ($) => choice($._expression, $.rest, $.any),
    rest: () => "..",
    arguments: ($) => seq("(", optional(seq(comma_list($._argument), optional(","))), ")"),
    _argument: ($) => choice($._expression, $.named_argument, $.disabled_argument),
    named_argument: ($) => seq(field("name", $.identifier), "=", field("value", $._expression)),
    disabled_argument: ($) => seq("/-", $._argument),

    boolean: () => choice("true", "false"),
    string: () => token(seq('"', /([^"\\\n]|\\[^\n])*/, '"')),
    identifier: () => /[A-Za-z_][A-Za-z0-9_]*/,
  },
});
