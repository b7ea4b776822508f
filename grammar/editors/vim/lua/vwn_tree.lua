-- vwn_tree.lua - colours by the tree of tree-sitter: a parser, parser/vwn.so, and queries/vwn/ are on neovim's path.
local M = {}

function M.start()
  if vim.treesitter.start then -- 0.9 and later
    vim.treesitter.start(0, "vwn")
  else
    vim.treesitter.highlighter.new(vim.treesitter.get_parser(0, "vwn"))
  end
end

return M
