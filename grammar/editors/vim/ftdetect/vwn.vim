autocmd BufNewFile,BufRead *.vwn setfiletype vwn
