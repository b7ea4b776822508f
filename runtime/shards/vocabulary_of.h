/* vocabulary_of.h - a tokenizer made of texts. Private to runtime/.
 *
 * In:  texts.   Out: a tokenizer.json.
 */
#ifndef VWN_VOCABULARY_OF_H
#define VWN_VOCABULARY_OF_H

#include "runtime/exec/session.h"

/* vwn_train_tokenizer(). Raises. */
Status train_tokenizer(vwn_context *owner, const vwn_vocabulary_options *how, const vwn_writer *out);

#endif
