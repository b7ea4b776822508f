/* override.h - settings from outside: what a path leads to, and what a wrong one may have meant. */
#ifndef VWN_OVERRIDE_H
#define VWN_OVERRIDE_H

#include "check.h"

typedef VEC(Name) NameList;

/* A node whose attributes settings may change, and where they are read. */
typedef struct OverridePlace {
    Eval *ev;
    File *file;
    Name node; /* its path; "model" of the model itself */
    Env *env;
    bool known;                            /* such a node may have the attribute */
    const Prim *(*prim)(const char *name); /* calls that mean something else there, as schedules do; may be NULL */
} OverridePlace;

/* ---- override.c ---- */
void override_settle(File *f, Override *o);                        /* one form for the ways to write a path */
size_t override_attrs(Eval *ev, File *f, Name node, Name **attrs); /* the attributes that settings of the node name */
/* *expr, what is written there or NULL, becomes what all settings make of it. The last of them; NULL: there is none. */
Override *override_attribute(const OverridePlace *at, Name attr, const Ast **expr);
/* One setting: `expr` with the value at what the parts of its path from the kth on lead to; NULL: nowhere. */
const Ast *override_inside(const OverridePlace *at, const Override *o, const Ast *expr, uint32_t k);
Diag *override_error(Eval *ev, File *f, const Override *o, const char *label); /* files E0105 */
void override_let(Eval *ev, File *f, Binding *b, Override *o);
/* To what is wrong with values of settings: what they take the place of. To the first error elsewhere: `with`, what was set, or NULL. */
void override_notes(Eval *ev, const File *f, const char *with);
/* "rope(base, fraction)", and the names; NULL: not known before it is evaluated. */
const char *call_signature(Eval *ev, File *f, const Ast *call, const Prim *(*prim)(const char *), NameList *names);

/* ---- override_paths.c ---- */
void override_unknown(Eval *ev, File *f, Override *o);                       /* files E0105 with the nearest paths */
void override_meant(Eval *ev, Diag *d, const Override *o, const char *path); /* a help: the setting with this path */
/* The nearest path of a file to what somebody wrote; NULL: none is near. *inner: that of the first argument of a call there, or NULL. */
const char *override_nearest(Eval *ev, File *f, const char *path, const char **inner);
#endif
