/* resolve_expr.h - the part of resolve.c that writes expressions. */
#ifndef VWN_RESOLVE_EXPR_H
#define VWN_RESOLVE_EXPR_H

#include "compiler/front/check.h"

typedef struct Resolver {
    Ctx *ctx;
    Arena *arena;
    Eval *ev;
    File *file;      /* whose names the text uses */
    bool items;      /* defaults as items, not as comments */
    VEC(Name) stays; /* imports that stay: names given by `as` */
    VEC(Name) seen;  /* library files already imported, blocks already taken in */
    const Ast *rate; /* the learning rate being written: its call is a schedule */
    Buf taken;       /* items of other files that the text needs */
} Resolver;

/* What stands for `e`, written in file `home`, when it is a name of a file that is not imported
 * any more: its value as a literal, else its expression; NULL: `e` stays. */
const Ast *resolve_foreign(Resolver *r, const Ast *e, File *home);
/* A path that is written in another folder than the file's, as it is from there; NULL: `e` is none. */
const Ast *resolve_moved(Resolver *r, const Ast *e);
/* The arguments that a call leaves to plain defaults, as NAMED nodes; the number of them. */
size_t resolve_defaults(Resolver *r, const Ast *call, File *home, const Ast ***named);
/* `e` on one line, with both applied everywhere inside. */
const char *resolve_text(Resolver *r, const Ast *e, File *home);
/* The block that a name stands for where it is declared by `block`, not by a let. */
const BlockDef *resolve_block(File *f, Name name);
bool resolve_is_literal(const Ast *e);
/* The file that `name` stands for in `home`, by `import ... as`; NULL when none. */
File *resolve_file(File *home, Name name);

/* resolve.c: the blocks of another file become items of the text. */
void resolve_take_in(Resolver *r, File *from, bool lets);

#endif
