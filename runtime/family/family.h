/* family.h - models of transformers' formats: from their files to a `.vwn`, and from a run to their files.
 *
 * In:  a folder with config.json and safetensors, or a run.   Out: the text of a `.vwn`, or such a folder.
 * The one idea: a family is a `.vwn` whose lets have the names of config.json's keys and whose `names` table has the names of the
 * tensors. A config gives the lets other values; a run is of the family when the family's own text, with values that are read off
 * the run's model, computes the same graph. So the two ways cannot differ, and what is written is what transformers computes.
 */
#ifndef VWN_FAMILY_H
#define VWN_FAMILY_H

#include "runtime/checkpoint/source.h"

typedef enum KeyKind {
    KEY_COUNT,    /* a whole number */
    KEY_REAL,     /* a number */
    KEY_FUNCTION, /* an activation */
    KEY_LAYERS,   /* how many places `at` stands for */
    KEY_FLAG,     /* true or false */
    KEY_WINDOW,   /* a whole number; 0: null */
    KEY_LET,      /* a number that no place of a model has: it is read off a let of the file */
    KEY_STD,      /* of the initialiser of the weight `at` */
    KEY_HAS,      /* true where the model has the weight `at` */
    KEY_LACKS     /* true where it has not */
} KeyKind;
/* A key of config.json, which is a let of the family's text. */
typedef struct FamilyKey {
    const char *key;
    KeyKind kind;
    const char *at, *attr; /* where a model has it: a path, and what it is called there ("" is the model) */
    const char *newer;     /* another name that config.json may have for it; NULL: none */
} FamilyKey;
/* A key that is no let. */
typedef struct FixedKey {
    const char *key;
    const char *values; /* JSON, separated by blanks, that mean nothing else than the family's text; "*": any */
    bool training;      /* another value matters to training alone: a warning */
} FixedKey;
typedef struct Family {
    const char *type, *architecture; /* "llama", "LlamaForCausalLM" */
    const FamilyKey *key;
    size_t n_key;
    const FixedKey *fixed; /* besides those of all families */
    size_t n_fixed;
    const char
        *needless; /* ends of names, separated by blanks, of tensors that hold nothing of the model; NULL: none */
    const char
        *also; /* members of config.json without which transformers would take other values: `"sliding_window": null` */
} Family;

/* ---- families.c ---- */
const Family *family_at(size_t i); /* NULL behind the last */
const Family *family_of(const char *type);
const char *family_names(Arena *a); /* "llama, qwen3" */
const FixedKey *family_fixed(const Family *f, const char *key);
const char *family_function(const char *other); /* "gelu_new" -> "gelu_tanh"; NULL: none */
const char *family_function_there(const char *own);
const char *family_number(Arena *a, double x); /* as both languages write it, with as many digits as it needs */
/* The text of the family, in which lets that have one get another right side. `value`: by key; NULL: as it is. */
const char *family_text(Arena *a, const Family *f, const char *const *value);

/* The texts, compiled in: see CMakeLists.txt. */
const char *families_text(const char *path, size_t *n);

/* ---- config.c ---- */
/* Values of the family's keys that a config.json has. Raises ST_INPUT with the key and its place where one means what the family's
 * text does not say, ST_ENVIRONMENT where the file cannot be read. */
typedef struct FamilyConfig {
    const Family *family;
    const char **value; /* by key: a right side; NULL: not given */
} FamilyConfig;
FamilyConfig family_config(Session *s, const char *path);

/* ---- match.c ---- */
/* The family of a model, its settings, and which parameter is which. */
typedef struct FamilyMatch {
    const Family *family;
    const char **value, **json; /* by key: a right side, and the same for config.json */
    const Model *model;         /* the family's own */
    size_t *param;              /* by parameter of it: that of the run's model */
} FamilyMatch;
/* Of several that compute the same the one that the model is called by, else the first; `only`: that one, NULL: any. Raises ST_INPUT with
 * the first difference to the family that is nearest. */
FamilyMatch family_match(Session *s, Unit *u, const char *only, const Hooks *hooks);

/* ---- the work behind vwn_from_hf and vwn_export ---- */
Status family_begin(vwn_context *owner, const vwn_from_options *how, const vwn_writer *out, const Hooks *hooks);
Status family_export(vwn_context *owner, const vwn_hf_options *how, const vwn_writer *out, const Hooks *hooks);

#endif
