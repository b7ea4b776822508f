/* emit_text.c - what printers of any kernel need: the name of a text.
 *
 * In:  a text with @NAME@ where its name shall stand.     Out: one text.
 * The one idea: a name is the hash of what it names, so equal texts are one kernel.
 */
#include "emit.h"

#include <inttypes.h>
#include <stdio.h>

Name emit_name(Ctx *ctx, Arena *arena, const char **text, size_t *length)
{
    Name name = name_printf(ctx, "k_%016" PRIx64, hash_bytes(*text, *length, 0));
    const char *rest = *text, *at = strstr(rest, "@NAME@");
    if (!at)
        vwn_bug(ctx, "a kernel text without a place for its name");
    Buf b = buf_new(arena);
    for (; at; at = strstr(rest, "@NAME@")) {
        buf_put(&b, rest, (size_t)(at - rest));
        buf_puts(&b, name);
        rest = at + strlen("@NAME@");
    }
    buf_puts(&b, rest);
    *text = b.s;
    *length = b.n;
    return name;
}
