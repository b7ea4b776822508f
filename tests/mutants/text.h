/* text.h - a source as tokens, and where in it they stand. */
#ifndef VWN_TESTS_MUTANTS_TEXT_H
#define VWN_TESTS_MUTANTS_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { FORM_C, FORM_TABLE, FORM_VWN, FORM_RULES } Form; /* C, a .def, the language, flex and bison */
typedef enum { T_WORD, T_NUMBER, T_TEXT, T_SIGN } TokenKind;

typedef struct Token {
    TokenKind kind;
    size_t at, size;
    int line;
    int scope;   /* what of Text.scopes it stands in; -1: nothing that is changed */
    int parens;  /* how many round and square brackets are open since the last brace */
    size_t pair; /* the other one of a bracket; itself where there is none */
} Token;

typedef struct Scope {
    char name[64]; /* a function, a table, a macro, a row, a block */
    int line;      /* where a function begins; 0: it is none */
    bool body;     /* statements stand in it */
} Scope;

typedef struct Text {
    const char *path; /* below the root */
    Form form;
    char *s;
    size_t size;
    Token *tokens;
    size_t n, room;
    Scope *scopes;
    int n_scopes, scope_room;
} Text;

/* Reads root/path; ends the program where that is not possible. */
Text text_read(const char *root, const char *path);
void text_free(Text *t);
bool token_is(const Text *t, size_t i, const char *word); /* false behind the last one */

#endif
