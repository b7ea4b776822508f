/* folder.h - whether a folder that is to be filled holds what is the user's. */
#ifndef VWN_FOLDER_H
#define VWN_FOLDER_H

#include <dirent.h>
#include <stdbool.h>

/* Does it hold no file? Reads `dir` from where it is. */
bool folder_is_empty(DIR *dir);

/* 1: it holds files, and none of them is `file` with `mark` as its first bytes, which an earlier call has left; 0: it holds none, or
 * that one; -1: it cannot be opened (errno). */
int folder_is_foreign(const char *folder, const char *file, const char *mark);

#endif
