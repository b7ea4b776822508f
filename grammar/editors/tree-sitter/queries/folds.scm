; folds.scm - what can be shown as one line: all that stands in brackets.
[(body) (parameters) (arguments) (list) (comprehension) (parenthesized)] @fold
