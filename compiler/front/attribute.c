/* attribute.c - see attribute.h.
 *
 * In:  a node's name.   Out: its attributes. The one idea: one table for the checker, the resolver and
 * the documentation, so that none can know a name that another does not.
 */
#include "attribute.h"

#include <math.h>
#include <stdlib.h>

static const NodeDoc nodes[] = {
#define NODE(name, where, text) {name, where, text},
#define ATTRIBUTE(...)
#include "attributes.def"
#undef NODE
#undef ATTRIBUTE
};
static const AttributeRow attributes[] = {
#define NODE(name, where, text)
#define ATTRIBUTE(node, name, takes, fallback, example, text) {node, name, {takes}, fallback, example, text},
#define OWN(values)                                           values, TAKES_OWN, 0, 0
#define BOOL                                                  "true, false", TAKES_BOOL, 0, 0
#define WORDS(words)                                          words, TAKES_WORD, 0, 0
#define NUMBER(least)                                         "a number from " #least, TAKES_NUMBER, least, INFINITY
#define SHARE                                                 "a number in [0, 1)", TAKES_NUMBER, 0, 1
#define WHOLE(least)                                          "a whole number from " #least, TAKES_WHOLE, least, 9e15
#define WHOLE_TO(least, most)                                 "a whole number from " #least " to " #most, TAKES_WHOLE, least, most + 1
#define STEPS(values)                                         values, TAKES_STEPS, 0, 0
#define SEQS(values)                                          values, TAKES_SEQS, 0, 0
#include "attributes.def"
#undef NODE
#undef ATTRIBUTE
};

size_t node_doc_count(void) { return COUNT_OF(nodes); }

const NodeDoc *node_doc_at(size_t i) { return &nodes[i]; }

const NodeDoc *node_doc_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        if (!strcmp(nodes[i].name, name))
            return &nodes[i];
    return NULL;
}

bool node_stands_in(const NodeDoc *node, const char *inside)
{
    size_t n = strlen(inside);
    for (const char *p = node->where; *p; p += *p == ' ') {
        size_t word = strcspn(p, " ");
        if (word == n && !strncmp(p, inside, n))
            return true;
        p += word;
    }
    return false;
}

size_t attribute_count(void) { return COUNT_OF(attributes); }

const AttributeRow *attribute_at(size_t i) { return &attributes[i]; }

const AttributeRow *attribute_find(const char *node, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(attributes); i++)
        if (!strcmp(attributes[i].node, node) && !strcmp(attributes[i].name, name))
            return &attributes[i];
    return NULL;
}

double attribute_number(const AttributeRow *a)
{
    char *end;
    double x = a && a->fallback ? strtod(a->fallback, &end) : NAN;
    return a && a->fallback && end != a->fallback ? x : NAN;
}

Name *attribute_names(Ctx *ctx, Arena *arena, const char *node, bool with_nodes, size_t *n, const char **text)
{
    Name *out = NEW_ARRAY(arena, Name, COUNT_OF(attributes) + COUNT_OF(nodes));
    Buf b = buf_new(arena);
    *n = 0;
    for (size_t i = 0; i < COUNT_OF(attributes); i++)
        if (!strcmp(attributes[i].node, node))
            out[(*n)++] = name_str(ctx, attributes[i].name);
    for (size_t i = 0; with_nodes && i < COUNT_OF(nodes); i++)
        if (node_stands_in(&nodes[i], node) && strcmp(nodes[i].name, "let") && strcmp(nodes[i].name, "check"))
            out[(*n)++] = name_str(ctx, nodes[i].name);
    for (size_t i = 0; i < *n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", out[i]);
    *text = b.s;
    return out;
}
