/* vwn.y - the whole grammar. LALR(1) without conflicts.
 *
 * In:  the tokens of lex.c.   Out: raw nodes (ast.h), the root in Parser.root.
 * The one idea: actions only build nodes; whatever a rule means is decided by who reads the
 * tree. Expressions hold no braces and items start with a word, a string or `/-`: that is why
 * `if c {` needs no parentheses and why every item is a place to recover at.
 */
%code requires {
#include "parse.h"
}
%code provides {
int grammar_lex(GRAMMAR_STYPE *value, Span *span, Parser *p);
void grammar_error(Span *span, Parser *p, const char *message);
}
%code {
/* The stacks are fixed: what does not fit is nested too deeply. So nothing is allocated. */
#define YYINITDEPTH 4096
#define YYMAXDEPTH 4096
#define YYMALLOC(size) ((void)(size), (void *)0)
#define YYFREE(p) ((void)(p))
#define YYLLOC_DEFAULT(at, rhs, n)                                                            \
    ((at) = (n) ? (Span){YYRHSLOC(rhs, 1).file, YYRHSLOC(rhs, 1).lo, YYRHSLOC(rhs, n).hi}     \
                : (Span){YYRHSLOC(rhs, 0).file, YYRHSLOC(rhs, 0).hi, YYRHSLOC(rhs, 0).hi})

#define LEAF(kind, name, at) parse_node(p, AST_##kind, name, at, at, 0, NULL)
#define MAKE(kind, at, ...) NAMED_AT(kind, NULL, at, at, __VA_ARGS__)
#define NAMED_AT(kind, name, at, name_at, ...)                                                \
    parse_node(p, AST_##kind, name, at, name_at,                                              \
               sizeof((ParseNode[]){__VA_ARGS__}) / sizeof(ParseNode), (ParseNode[]){__VA_ARGS__})
#define OPERATE(name, at, op_at, a, b) NAMED_AT(OP, name_str(p->ctx, name), at, op_at, a, b)
#define SPANNING(node, at) ((node).ast->span = (node).ast->name_span = (at), (node))
#define NONE ((ParseNode){0})
}
%define api.pure full
%define api.prefix {grammar_}
%define api.token.prefix {T_}
%define api.location.type {Span}
%define parse.error custom
%define parse.lac full
%define parse.lac.es-capacity-initial "1024"
%locations
%expect 0
%param {Parser *p}
%initial-action { @$ = (Span){p->lex.file, 0, 0}; }
%union { Name name; ParseNode node; }

%token END 0 "the end of the file"
%token START_FILE START_EXPR START_PATH
%token SEP "the end of the item"
%token IMPORT "import" AS "as" LET "let" BLOCK "block" PARAM "param" BUFFER "buffer"
%token RETURN "return" CHECK "check" FOR "for" IN "in" IF "if" THEN "then" ELSE "else"
%token AND "and" OR "or" NOT "not" MOD "mod"
%token SLASHDASH "/-" ARROW "->" DOTDOT ".." EQ "==" NE "!=" LE "<=" GE ">=" LT "<" GT ">"
%token ASSIGN "=" PLUS "+" MINUS "-" STAR "*" SLASH "/" FLOOR "//" AT "@" CARET "^" DOT "." COMMA ","
%token COLON ":" SEMICOLON ";" LPAREN "(" RPAREN ")" LBRACKET "[" RBRACKET "]"
%token LBRACE "{" RBRACE "}"
%token <name> IDENT "a name" NUMBER "a number" QUANTITY "a quantity" STRING "a string"
%token <name> BOOL "true or false"
%type <node> items item body opt_body opt_else opt_as opt_args opt_message opt_type opt_default
%type <node> opt_tensors opt_result label path subscript params params1 par type
%type <node> expr postfix primary list elems elem iters iter opt_filter args args1 arg

%precedence ELSE
%left OR
%left AND
%precedence NOT
%nonassoc EQ NE LT GT LE GE
%nonassoc DOTDOT
%left PLUS MINUS
%left STAR SLASH FLOOR AT MOD
%precedence NEGATE
%right CARET
%%
start
    : START_FILE items              { p->root = $2.ast; }
    | START_EXPR expr opt_sep       { p->root = $2.ast; }
    | START_PATH path opt_sep       { p->root = $2.ast; }
    ;
opt_sep
    : %empty
    | opt_sep SEP
    ;

/* ---- items ---- */

items
    : %empty {
        $$ = LEAF(ITEMS, NULL, @$);
        if (!p->root)
            p->root = $$.ast; /* the file's own list comes first: it survives errors */
    }
    | items SEP
    | items item SEP                { $$ = parse_item(p, $1, $2); }
    | items error SEP               { yyerrok; $$ = $1; }
    | items error "{" resume items "}" opt_else SEP
                                    { yyerrok; $$ = $1; }
    ;
resume
    : %empty                        { yyerrok; }
    ;
item
    : IMPORT STRING opt_as opt_args
        { $$ = NAMED_AT(IMPORT, $2, @$, @2, $3, $4); }
    | LET IDENT opt_type "=" expr
        { $$ = NAMED_AT(LET, $2, @$, @2, $3, $5); }
    | CHECK expr opt_message opt_body
        { $$ = MAKE(CHECK, @$, $2, $3, $4); }
    | BLOCK IDENT "(" params ")" opt_tensors opt_result body
        { $$ = NAMED_AT(BLOCK, $2, @$, @2, SPANNING($4, span_join(@3, @5)), $6, $7, $8); }
    | PARAM IDENT ":" expr "=" expr opt_body
        { $$ = NAMED_AT(PARAM, $2, @$, @2, $4, $6, $7); }
    | BUFFER IDENT ":" expr "=" expr opt_body
        { $$ = NAMED_AT(BUFFER, $2, @$, @2, $4, $6, $7); }
    | RETURN expr
        { $$ = MAKE(RETURN, @$, $2); }
    | FOR IDENT IN expr body
        { $$ = NAMED_AT(FOR, $2, @$, @2, $4, $5); }
    | IF expr body opt_else
        { $$ = MAKE(IF, @$, $2, $3, $4); }
    | path
        { $$ = MAKE(NODE, @$, $1, NONE, NONE); }
    | path label body
        { $$ = MAKE(NODE, @$, $1, $2, $3); }
    | path "=" expr
        { $$ = MAKE(SET, @$, $1, $3); }
    | STRING "=" expr
        { $$ = NAMED_AT(ENTRY, $1, @$, @1, $3); }
    | SLASHDASH item
        { $$ = MAKE(OFF, @$, $2); }
    ;
body
    : "{" items "}"                 { $$ = SPANNING($2, @$); }
    ;
opt_body
    : %empty                        { $$ = NONE; }
    | body
    ;
opt_else
    : %empty                        { $$ = NONE; }
    | ELSE body                     { $$ = $2; }
    | ELSE IF expr body opt_else
        { $$ = MAKE(IF, ((Span){@2.file, @2.lo, @$.hi}), $3, $4, $5); }
    ;
opt_as
    : %empty                        { $$ = NONE; }
    | AS IDENT                      { $$ = LEAF(ID, $2, @2); }
    ;
opt_args
    : %empty                        { $$ = NONE; }
    | "(" args ")"                  { $$ = SPANNING($2, @$); }
    ;
opt_message
    : %empty                        { $$ = NONE; }
    | STRING                        { $$ = LEAF(STR, $1, @1); }
    ;
opt_type
    : %empty                        { $$ = NONE; }
    | ":" type                      { $$ = $2; }
    ;
opt_tensors
    : %empty                        { $$ = NONE; }
    | "(" params ")"                { $$ = SPANNING($2, @$); }
    ;
opt_result
    : %empty                        { $$ = NONE; }
    | ARROW type                    { $$ = $2; }
    ;
label
    : %empty                        { $$ = NONE; }
    | IDENT                         { $$ = LEAF(LABEL, $1, @1); }
    | STRING                        { $$ = LEAF(LABEL, $1, @1); }
    ;
path
    : IDENT                         { $$ = LEAF(PATH, $1, @1); }
    | path "." IDENT {
        $$ = parse_add(p, $1, parse_node(p, AST_DOT, $3, span_join(@2, @3), @3, 0, NULL));
        $$.ast->span = @$;
    }
    | path "[" subscript "]" {
        $$ = parse_add(p, $1, MAKE(AT, span_join(@2, @4), $3));
        $$.ast->span = @$;
    }
    ;
subscript
    : expr
    | "*"                           { $$ = LEAF(STAR, NULL, @1); }
    ;

/* ---- parameters ---- */

params
    : %empty                        { $$ = LEAF(PARAMS, NULL, @$); }
    | params1
    | params1 ","
    ;
params1
    : par                           { $$ = parse_item(p, LEAF(PARAMS, NULL, @$), $1); }
    | params1 "," par               { $$ = parse_item(p, $1, $3); }
    ;
par
    : IDENT ":" type opt_default    { $$ = NAMED_AT(PAR, $1, @$, @1, $3, $4); }
    ;
type
    : expr
    | BLOCK                         { $$ = LEAF(ID, name_str(p->ctx, "block"), @1); }
    ;
opt_default
    : %empty                        { $$ = NONE; }
    | "=" expr                      { $$ = $2; }
    ;

/* ---- expressions, loosest first ---- */

expr
    : IF expr THEN expr ELSE expr   { $$ = MAKE(COND, @$, $2, $4, $6); }
    | expr OR expr                  { $$ = OPERATE("or", @$, @2, $1, $3); }
    | expr AND expr                 { $$ = OPERATE("and", @$, @2, $1, $3); }
    | NOT expr                      { $$ = MAKE(NOT, @$, $2); }
    | expr "==" expr                { $$ = OPERATE("==", @$, @2, $1, $3); }
    | expr "!=" expr                { $$ = OPERATE("!=", @$, @2, $1, $3); }
    | expr "<" expr                 { $$ = OPERATE("<", @$, @2, $1, $3); }
    | expr ">" expr                 { $$ = OPERATE(">", @$, @2, $1, $3); }
    | expr "<=" expr                { $$ = OPERATE("<=", @$, @2, $1, $3); }
    | expr ">=" expr                { $$ = OPERATE(">=", @$, @2, $1, $3); }
    | expr ".." expr                { $$ = MAKE(RANGE, @$, $1, $3); }
    | expr "+" expr                 { $$ = OPERATE("+", @$, @2, $1, $3); }
    | expr "-" expr                 { $$ = OPERATE("-", @$, @2, $1, $3); }
    | expr "*" expr                 { $$ = OPERATE("*", @$, @2, $1, $3); }
    | expr "/" expr                 { $$ = OPERATE("/", @$, @2, $1, $3); }
    | expr "//" expr                { $$ = parse_floor(p, @$, @2, $1, $3); }
    | expr "@" expr                 { $$ = OPERATE("@", @$, @2, $1, $3); }
    | expr MOD expr                 { $$ = OPERATE("mod", @$, @2, $1, $3); }
    | "-" expr %prec NEGATE         { $$ = MAKE(NEG, @$, $2); }
    | expr "^" expr                 { $$ = OPERATE("^", @$, @2, $1, $3); }
    | postfix
    ;
postfix
    : primary
    | postfix "(" args ")"
        { $$ = MAKE(CALL, @$, $1, SPANNING($3, span_join(@2, @4))); }
    | postfix "[" elems "]"
        { $$ = MAKE(INDEX, @$, $1, SPANNING($3, span_join(@2, @4))); }
    | postfix "." IDENT             { $$ = NAMED_AT(FIELD, $3, @$, @3, $1); }
    ;
primary
    : NUMBER                        { $$ = LEAF(NUM, $1, @1); }
    | QUANTITY                      { $$ = LEAF(QTY, $1, @1); }
    | STRING                        { $$ = LEAF(STR, $1, @1); }
    | BOOL                          { $$ = LEAF(BOOL, $1, @1); }
    | IDENT                         { $$ = LEAF(ID, $1, @1); }
    | "(" expr ")"                  { $$ = MAKE(PAREN, @$, $2); }
    | list
    ;
list
    : "[" "]"                       { $$ = LEAF(LIST, NULL, @$); }
    | "[" elems "]"                 { $$ = SPANNING($2, @$); }
    | "[" elems "," "]"             { $$ = SPANNING($2, @$); }
    | "[" expr FOR iters opt_filter "]"
                                    { $$ = MAKE(COMP, @$, $2, $4, $5); }
    ;
elems
    : elem                          { $$ = parse_add(p, LEAF(LIST, NULL, @$), $1); }
    | elems "," elem                { $$ = parse_add(p, $1, $3); }
    ;
elem
    : expr
    | ".."                          { $$ = LEAF(DOTS, NULL, @1); }
    | "*"                           { $$ = LEAF(STAR, NULL, @1); }
    ;
iters
    : iter                          { $$ = parse_add(p, LEAF(ITERS, NULL, @$), $1); }
    | iters "," iter                { $$ = parse_add(p, $1, $3); $$.ast->span = @$; }
    ;
iter
    : IDENT IN expr                 { $$ = NAMED_AT(ITER, $1, @$, @1, $3); }
    ;
opt_filter
    : %empty                        { $$ = NONE; }
    | IF expr                       { $$ = $2; }
    ;
args
    : %empty                        { $$ = LEAF(ARGS, NULL, @$); }
    | args1
    | args1 ","
    ;
args1
    : arg                           { $$ = parse_add(p, LEAF(ARGS, NULL, @$), $1); }
    | args1 "," arg                 { $$ = parse_add(p, $1, $3); }
    ;
arg
    : expr
    | IDENT "=" expr                { $$ = NAMED_AT(NAMED, $1, @$, @1, $3); }
    | SLASHDASH arg                 { $$ = MAKE(OFF, @$, $2); }
    ;
%%
int grammar_lex(GRAMMAR_STYPE *value, Span *span, Parser *p)
{
    if (p->start) {
        int start = p->start;
        p->start = 0;
        *span = (Span){p->lex.file, 0, 0};
        return start;
    }
    p->token = lex_next(&p->lex);
    *span = p->token.span;
    value->name = p->token.text;
    return p->token.kind;
}

/* Only the exhausted stack comes here; syntax errors go to the function below. */
void grammar_error(Span *span, Parser *p, const char *message)
{
    (void)message;
    lex_limit(&p->lex, *span, "depth of the syntax tree", DEPTH_LIMIT);
}

static int yyreport_syntax_error(const yypcontext_t *context, Parser *p)
{
    p->failed = true;
    if (p->lex.muted)
        return 0;
    p->lex.muted = true;
    yysymbol_kind_t kinds[YYNTOKENS];
    const char *names[YYNTOKENS];
    int n = yypcontext_expected_tokens(context, kinds, YYNTOKENS);
    for (int i = 0; i < n; i++)
        names[i] = yysymbol_name(kinds[i]);
    parse_error(p, p->token.kind, names, n > 0 ? (size_t)n : 0);
    return 0;
}
