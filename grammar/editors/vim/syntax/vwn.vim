" vwn: names of nodes, attributes, numbers with their units, and what `/-` switches off.
if exists("b:current_syntax")
  finish
endif

syn keyword vwnControl  import as return check for in if then else
syn keyword vwnStorage  let block param buffer
syn keyword vwnOperator and or not mod
syn keyword vwnConstant true false none inf

syn match vwnNode      #^\s*\h\w*\%(\.\h\w*\|\[[^]]*\]\)*\%(\s\+\%(\h\w*\|"[^"]*"\)\)\?\s*\ze{#
      \ contains=vwnControl,vwnStorage,vwnKnownNode,vwnLabel
syn match vwnLabel     #\%(\w\s\+\)\@<=\%(\h\w*\|"[^"]*"\)\ze\s*{# contained
syn match vwnAttribute "\<\h\w*\%(\.\h\w*\)*\ze\s*==\@!" contains=vwnKnownAttribute,vwnKnownNode
syn match vwnFunction  "\<\h\w*\ze("
" Words of the language itself: nodes, attributes, and what is called without a library.
syn keyword vwnKnownNode contained edition loss metric output model embed parallel head layer train
      \ optimizer adamw sgd lion muon group eval checkpoint log grow old new fill sweep vary names variant
syn keyword vwnKnownAttribute contained allow also at average batch batches betas clip code
      \ coefficients cond connection connection_per context data decay edition entry eps every exit
      \ from frozen group help init inner keep label lanes layers layout length lr lr_scale mask micro_batch
      \ moments momentum nesterov norms note of order out_init out_norm pre_norm precision prune random
      \ recompute report rms seed seeds skip start_from steps tokenizer until update warmup
      \ weight_decay when width zip
syn match vwnPrimitive "\<\%(abs\|alive\|arange\|arithmetic\|arrays\|bernoulli\|between\|broadcast\|bytes
      \\|cast\|ceil\|chars\|clamp\|close_state\|concat\|constant\|cos\|cosine\|cross_entropy\|cumsum
      \\|dense\|draws\|drop\|ema\|embedding\|erf\|exp\|expert_matmul\|extent\|eye\|file\|fill\|first
      \\|flatten\|floor\|gather\|gelu\|gelu_tanh\|geometric\|halving\|input\|log\|logit\|logsumexp\|matrix
      \\|max\|mean\|min\|mixed\|mod_power\|near\|normal\|one_hot\|ones\|open_state\|pad\|permute
      \\|pick\|plateau\|power\|preserves\|rand\|randn\|range\|relu\|repeat\|reshape\|rest\|roll\|rotary
      \\|round\|routed\|run\|sdpa\|shift\|sigmoid\|sign\|silu\|sin\|size\|slice\|softmax\|softplus
      \\|split\|sqrt\|squeeze\|stop_gradient\|sum\|table\|tanh\|text_file\|tied\|token_files\|top_k
      \\|trunc_normal\|uniform\|unsqueeze\|weights\|where\|wsd\|zeros\)\>\%(\s*\%([.:{]\|==\@!\)\)\@!"

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
hi def link vwnKnownNode      Keyword
hi def link vwnKnownAttribute Type
hi def link vwnPrimitive      Special
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
