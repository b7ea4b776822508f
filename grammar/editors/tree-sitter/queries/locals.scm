; locals.scm - which names are declared where. The name of a block is one of what is around it.
[(file) (block) (comprehension)] @local.scope
(import name: (identifier) @local.definition.namespace)
(let name: (identifier) @local.definition.var)
((block name: (identifier) @local.definition.function) (#set! definition.function.scope "parent"))
(parameter name: (identifier) @local.definition.parameter)
(param name: (identifier) @local.definition.var)
(buffer name: (identifier) @local.definition.var)
(for name: (identifier) @local.definition.var)
(iteration name: (identifier) @local.definition.var)
(identifier) @local.reference
