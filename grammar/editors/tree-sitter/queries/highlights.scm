; highlights.scm - what editors colour, by the names that neovim, Helix and Zed have themes for.
(comment) @comment
(string) @string
[(number) (quantity)] @number
(boolean) @boolean
["import" "as" "let" "block" "param" "buffer" "return" "check"] @keyword
["for" "in" "if" "then" "else"] @conditional
["and" "or" "not" "mod"] @keyword.operator
["=" "==" "!=" "<" "<=" ">" ">=" "+" "-" "*" "/" "@" "^" ".." "->"] @operator
["," ";" ":" "."] @punctuation.delimiter
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
((identifier) @constant.builtin (#match? @constant.builtin "^(none|inf)$"))
(let name: (identifier) @variable)
(block name: (identifier) @function)
(call function: (identifier) @function.call)
(node kind: (path (identifier) @type))
(node label: (_) @label)
(assignment path: (path (identifier) @property))
(named_argument name: (identifier) @parameter)
(parameter name: (identifier) @parameter)
(field name: (identifier) @property)
[(disabled) (disabled_argument)] @comment
