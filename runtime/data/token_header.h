/* token_header.h - what a file of token ids says of itself: headers of llm.c, .npy, Megatron-LM's .idx.
 *
 * In:  a mapped file.   Out: where its first id stands, and how many bytes each takes.
 * Sources: llm.c's dev/data/data_common.py; numpy.lib.format; Megatron-LM's core/datasets/indexed_dataset.py.
 */
#ifndef VWN_TOKEN_HEADER_H
#define VWN_TOKEN_HEADER_H

#include "mapped.h"

/* Bytes before the first id. *width: as `data` has it, or 0; becomes what the file says where that was 0 and the file says it. Raises
 * ST_ENVIRONMENT with the byte and what is wrong: the file is none of this form, has another width, is cut, or goes on. */
size_t token_header(Session *s, const Mapped *file, TokenHeader form, int *width);

#endif
