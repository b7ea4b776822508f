/* attribute.h - the nodes and attributes that C knows, by name (attributes.def). */
#ifndef VWN_ATTRIBUTE_H
#define VWN_ATTRIBUTE_H

#include "compiler/base/base.h"

typedef struct NodeDoc {
    const char *name, *where, *text; /* where: "file grow" */
} NodeDoc;
typedef struct AttributeRow {
    const char *node, *name, *values, *fallback, *example, *text;
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
Name *attribute_names(Ctx *ctx, Arena *arena, const char *node, bool with_nodes, size_t *n,
                      const char **text);

#endif
