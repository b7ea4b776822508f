/* tokenize.h - texts to shards of token ids. Private to runtime/.
 *
 * In:  texts, a tokenizer.   Out: a folder of shards with its tokens.json.
 */
#ifndef VWN_TOKENIZE_H
#define VWN_TOKENIZE_H

#include "runtime/exec/session.h"

/* vwn_tokenize(). Raises. */
Status tokenize_texts(vwn_context *owner, const vwn_tokenize_options *how, const vwn_writer *out);

#endif
