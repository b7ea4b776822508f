/* folder.h - whether a folder that a verb is to fill holds what is the user's. */
#ifndef VWN_FOLDER_H
#define VWN_FOLDER_H

/* 1: it holds files, and none of them is `file` with `mark` as its first bytes, which an earlier call has left; 0: it holds none, or
 * that one; -1: it cannot be opened (errno). */
int folder_is_foreign(const char *folder, const char *file, const char *mark);

#endif
