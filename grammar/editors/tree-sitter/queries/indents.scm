; indents.scm - where a line begins, by the names of Helix and by those of neovim.
[(body) (parameters) (arguments) (list) (comprehension) (parenthesized)] @indent @indent.begin
["}" ")" "]"] @outdent @indent.branch
