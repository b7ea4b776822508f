/* library_text.h - texts of C and CUDA that are written as files, and filled in.
 *
 * In:  a file of texts/, and the values of its names.     Out: the text of one kernel, or of a piece of a prelude.
 * The one idea: a text is a file that editors and compilers read as it is. What differs from class to class is a name
 * TEXT_...; its value is filled in here, and what depends on it stands between the preprocessor's own lines.
 *
 * The lines that this understands (all others belong to the text, #if on other names too):
 *     #if TEXT_A, #if !TEXT_A, #else, #endif     a value that is "0", or another
 *     #ifndef TEXT_NAME ... #endif               left out: what a reader of the file alone needs
 *     #include "file"                            a file of texts/, with the same values
 */
#ifndef VWN_LIBRARY_TEXT_H
#define VWN_LIBRARY_TEXT_H

#include "compiler/base/base.h"

typedef struct TextValue {
    const char *name;  /* without TEXT_ */
    const char *value; /* any text */
} TextValue;

/* A whole number as a value. */
const char *text_number(Arena *arena, int64_t number);

/* Appends the text of a file, "expert.cu". A name without a value and a file that is not there are bugs; NAME alone has one,
 * "@NAME@", in whose place emit_name() puts the kernel's name. */
void library_text(Buf *out, const char *file, const TextValue *value, size_t n);

/* The files of texts/, made by the build; NULL for one that is not there. */
size_t library_files_count(void);
const char *library_files_path(size_t i);
const char *library_files_text(const char *path, size_t *length);

#endif
