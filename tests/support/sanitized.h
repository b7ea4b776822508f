/* sanitized.h - is this built with the address sanitizer? Then crashes are reported by it, and address space without
 * end is needed. */
#ifndef VWN_TESTS_SANITIZED_H
#define VWN_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

#endif
