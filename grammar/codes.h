/* codes.h - the codes of messages.
 *
 * In:  a code, "E0101".   Out: its title, and the text of `vwn explain`.
 * The one idea: a code is a row of codes.def, and nothing else knows one.
 */
#ifndef VWN_CODES_H
#define VWN_CODES_H

#include <stddef.h>

const char *diag_explain(const char *code, const char **title); /* NULL when unknown */
size_t diag_code_count(void);
const char *diag_code_at(size_t i); /* in order */

#endif
