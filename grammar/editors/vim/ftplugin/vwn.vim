" vwn: two blanks, `#` comments, `:make` checks the file.
if exists("b:did_ftplugin")
  finish
endif
let b:did_ftplugin = 1
setlocal commentstring=#\ %s comments=b:##,b:#
setlocal shiftwidth=2 softtabstop=2 expandtab textwidth=100 formatoptions-=t
setlocal suffixesadd=.vwn
if executable("vwn")
  setlocal makeprg=vwn\ check\ %:S
  setlocal equalprg=vwn\ fmt\ -
  setlocal errorformat=%Eerror[%t%n]:\ %m,%Wwarning[%t%n]:\ %m,%C\ %#-->\ %f:%l:%c,%-G%.%#
endif
let b:undo_ftplugin = "setl cms< com< sw< sts< et< tw< fo< sua< mp< ep< efm<"
" In neovim `vwn lsp` is started for the file, where it is on the path; `let g:vwn_lsp = 0` keeps it from that.
if has("nvim") && get(g:, "vwn_lsp", 1) && executable("vwn")
  lua require("vwn_lsp").start()
endif
" Where neovim finds tree-sitter's parser of the language, it colours by that.
if has("nvim") && !empty(nvim_get_runtime_file("parser/vwn.so", v:false))
  lua require("vwn_tree").start()
endif
