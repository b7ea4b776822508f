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
    TAKES_STEPS,
    TAKES_SEQS
} AttributeType;
typedef struct AttributeRow {
    const char *node, *name;
    struct {
        const char *values; /* for people; of TAKES_WORD the words */
        AttributeType type;
        double least, below; /* of numbers; whole ones are below the next whole number */
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
/* Names of a node's attributes, and of the nodes in it if wanted, in a list that lives in the
 * arena; `text` gets them as "data, batch". */
Name *attribute_names(Ctx *ctx, Arena *arena, const char *node, bool with_nodes, size_t *n, const char **text);

#endif
