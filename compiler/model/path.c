/* path.c - see model.h: paths of modules, and patterns of such. */
#include "model.h"

bool path_matches(const char *pattern, const char *text)
{
    while (*pattern && *text) {
        if (pattern[0] == '[' && pattern[1] == '*' && *text == '[') {
            pattern = strchr(pattern, ']');
            text = strchr(text, ']');
            if (!pattern || !text)
                return false;
            continue;
        }
        if (*pattern++ != *text++)
            return false;
    }
    return !*pattern && !*text;
}

bool path_below(const char *path, const char *module)
{
    size_t n = strlen(module);
    return !strncmp(path, module, n) && (!path[n] || path[n] == '.');
}
