/* check_items.h - what may stand in a node that C knows.
 *
 * In:  its items and its name.   Out: E0101, E0108, E0110 and E0112.
 */
#ifndef VWN_CHECK_ITEMS_H
#define VWN_CHECK_ITEMS_H

#include "compiler/front/check.h"

/* Files what cannot stand in the node `what`: items of another form, unknown nodes, labels that nothing reads, second nodes. */
void items_fit(Eval *ev, const Ast *items, const char *what);
void attributes_fit(Eval *ev, const Ast *items,
                    const char *what); /* the same, and unknown attributes and second ones */

#endif
