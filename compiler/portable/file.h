/* file.h - opening what a user has named. */
#ifndef VWN_FILE_H
#define VWN_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>

/* Why what has this name, or a link of this name leads to, is no regular file; NULL: it is one, or nothing is there. */
const char *file_wrong_kind(const char *path);
/* As open(2), with O_CLOEXEC; a new file gets mode 0666. Only regular files are opened: a pipe without
 * another end would wait for ever, and a device may do something. -1: errno and `why` say why not. */
int file_open(const char *path, int flags, const char **why);
/* The same as a stream of mode "r", "w" (made or emptied); NULL as above. */
FILE *file_stream(const char *path, const char *mode, const char **why);
/* Messages quote the text they are about, so a text must not be a way to read other files: why a file is
 * not read as one of the language, or NULL. What is imported is named `.vwn`, and what is named so is no
 * link to something else; any other name that a user gives is the user's affair. */
const char *file_not_vwn(const char *path, bool imported);

#endif
