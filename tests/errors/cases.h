/* cases.h - the cases of this folder: a text, arguments, and the messages of `vwn check`.
 *
 * In:  the files *.txt, in sections that begin with `== `. `== base NAME` is a text that cases
 *      are edits of. A case:
 *          == NAME [BASE]     its file is NAME.vwn; without a base it begins empty
 *          # ...              a comment
 *          $ ARGUMENTS        further arguments of `vwn check`, as a shell reads them
 *          ~LINE              this line in place of the next one with the same first word
 *          @TEXT              go behind the next line that begins with TEXT; @: behind the last
 *          +LINE              a further line, here; \xHH in it is a byte
 *          *N LINE            N such lines
 *          -TEXT              leave out the next line that begins with TEXT
 *          -TEXT ... TEXT     leave out from this line to that one
 *          ANYTHING ELSE      what is printed, without what the text says itself (print.c)
 *      A line begins with TEXT where nothing but blanks stands before it.
 * Out: the text of each case, and its messages.
 */
#ifndef VWN_TESTS_ERRORS_CASES_H
#define VWN_TESTS_ERRORS_CASES_H

#include <stddef.h>
#include <stdio.h>

typedef struct Lines {
    char **v;
    size_t n;
} Lines;

typedef struct Case {
    char *file;        /* where it stands */
    char *name, *base; /* base is "" where there is none */
    Lines edits, wanted;
    Lines before; /* comments of the file before its first section */
    char *arguments;
} Case;

typedef struct Cases {
    Case *v;
    size_t n;
} Cases;

char *text_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
void lines_add(Lines *l, char *line);
Lines lines_read(const char *path); /* without their ends; none when it cannot be read */
Lines lines_of(const char *text);

/* Those of every file of the folder; a fault in one ends the program. */
Cases cases_read(const char *folder);
Lines case_text(const Cases *all, const Case *c);

/* What was printed about the text, in short: without excerpts. */
Lines print_shorten(const Lines *printed, const Case *c, const Lines *text);

#endif
