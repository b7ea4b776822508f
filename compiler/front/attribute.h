/* attribute.h - the nodes and attributes that C knows, by name (attributes.def). */
#ifndef VWN_ATTRIBUTE_H
#define VWN_ATTRIBUTE_H

#include "compiler/base/base.h"

typedef struct NodeDoc {
    const char *name, *where, *text; /* where: "file grow" */
} NodeDoc;
typedef enum AttributeType {
    TAKES_OWN,
    TAKES_BOOL,
    TAKES_WORD,
    TAKES_NUMBER,
    TAKES_WHOLE,
    TAKES_NUMBERS,
    TAKES_OF_RUN,
    TAKES_STEPS,
    TAKES_SEQS,
    TAKES_LENGTH,
    TAKES_PART_OF_RUN,
    TAKES_NAMES,
    TAKES_ONE_OF,
    TAKES_FILL
} AttributeType;
typedef struct AttributeRow {
    const char *node, *name;
    struct {
        const char *values; /* for people; of TAKES_WORD, TAKES_ONE_OF and TAKES_FILL also what is compared */
        AttributeType type;
        double least, most; /* of numbers */
        bool below;         /* all numbers are less than `most` */
        int count;          /* of TAKES_NUMBERS: how many */
    };
    const char *fallback, *example, *text;
} AttributeRow;

size_t node_doc_count(void);
const NodeDoc *node_doc_at(size_t i);
const NodeDoc *node_doc_find(const char *name);
/* Whether such a node may stand in the node `inside`, or at the top of a file. */
bool node_stands_in(const NodeDoc *node, const char *inside);

size_t attribute_count(void);
const AttributeRow *attribute_at(size_t i);
const AttributeRow *attribute_find(const char *node, const char *name); /* NULL: there is none */
double attribute_number(const AttributeRow *a); /* the number its fallback begins with; NaN without one */
/* The next of its values from *at on, which begins as NULL, and its length; NULL: there is none. "mixed(a, b)" is one. */
const char *attribute_next_value(const AttributeRow *a, const char **at, size_t *n);
bool attribute_has_word(const AttributeRow *a, const char *word); /* a value, or the name of a call */
/* Names of a node's attributes, and of the nodes in it if wanted, in a list that lives in the
 * arena; `text` gets them as "data, batch". */
Name *attribute_names(Ctx *ctx, Arena *arena, const char *node, bool with_nodes, size_t *n, const char **text);

#endif
