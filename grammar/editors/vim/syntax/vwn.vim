" vwn: names of nodes, attributes, numbers with their units, and what `/-` switches off.
if exists("b:current_syntax")
  finish
endif

syn keyword vwnControl  import as return check for in if then else
syn keyword vwnStorage  let block param buffer
syn keyword vwnOperator and or not mod
syn keyword vwnConstant true false none

syn match vwnNode      #^\s*\h\w*\%(\.\h\w*\|\[[^]]*\]\)*\%(\s\+\%(\h\w*\|"[^"]*"\)\)\?\s*\ze{#
      \ contains=vwnControl,vwnStorage,vwnLabel
syn match vwnLabel     #\s\zs\%(\h\w*\|"[^"]*"\)\ze\s*{# contained
syn match vwnAttribute "\<\h\w*\%(\.\h\w*\)*\ze\s*==\@!"
syn match vwnFunction  "\<\h\w*\ze("
syn match vwnSymbol    "->\|\.\.\|==\|!=\|<=\|>=\|[-+*/^@<>=]"

syn match vwnBadNumber "\<\d[0-9_]*\h\w*"
syn match vwnNumber    "\<\d[0-9_]*\%(\.\d[0-9_]*\)\?\%([eE][-+]\?\d\+\)\?\%(Ki\|Mi\|Gi\|k\|M\|B\|T\|d\|L\)\?\>%\?"
syn match vwnQuantity  "\<\d[0-9_.]*\%([eE][-+]\?\d\+\)\?\%(Ki\|Mi\|Gi\|k\|M\|B\|T\)\?\s\+\%(steps\?\|tok\|tokens\?\|seqs\?\|images\?\|epochs\?\|h\|min\|s\|ms\|KiB\|MiB\|GiB\)\>"

syn match  vwnEscape   +\\["\\nt]+ contained
syn region vwnString   start=+"+ skip=+\\.+ end=+"+ end=+$+ oneline contains=vwnEscape
syn match  vwnComment  "#.*$" contains=@Spell
syn match  vwnDoc      "##.*$" contains=@Spell

syn region vwnBody     start="{" end="}" transparent fold
syn region vwnOffBody  start="{" end="}" contained contains=vwnOffBody,vwnString
syn region vwnOff      start="\%(^\|[{(,;]\)\@<=\s*/-" end="$\|[,;)}]\@="
      \ contains=vwnOffBody keepend extend

hi def link vwnControl   Statement
hi def link vwnStorage   Type
hi def link vwnOperator  Operator
hi def link vwnSymbol    Operator
hi def link vwnConstant  Constant
hi def link vwnNode      Structure
hi def link vwnLabel     Identifier
hi def link vwnAttribute Identifier
hi def link vwnFunction  Function
hi def link vwnNumber    Number
hi def link vwnQuantity  Number
hi def link vwnBadNumber Error
hi def link vwnString    String
hi def link vwnEscape    SpecialChar
hi def link vwnComment   Comment
hi def link vwnDoc       SpecialComment
hi def link vwnOff       Comment
hi def link vwnOffBody   Comment

let b:current_syntax = "vwn"
