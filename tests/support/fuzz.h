/* fuzz.h - what a fuzz target of tests/fuzz has, for libFuzzer and for fuzz_replay.c.
 *
 * In:  bytes.     Out: a crash where something is broken; whether the last input was a valid file.
 */
#ifndef TEST_FUZZ_H
#define TEST_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
bool fuzz_valid(void);
/* Another input in the place of one, at most `most` bytes long; most of those of valid files are valid. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);
__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most); /* libFuzzer's own */

#endif
