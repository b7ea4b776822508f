/* html.h - pages: their head, tables, texts, and the style sheets and scripts that they hold.
 *
 * In:  what a page says.   Out: HTML that needs no other file and no network, and tells a browser to ask for none.
 * The one idea: whatever a user wrote goes through xml_text() or html_json(), so that no name can be anything but a name.
 */
#ifndef VWN_HTML_H
#define VWN_HTML_H

#include "chart.h"

/* Whether a page runs its own scripts, or shows pictures that lie beside it; neither more. */
typedef enum HtmlKind { HTML_SCRIPTS, HTML_PICTURES } HtmlKind;
/* Up to <body>: a comment on what wrote it, the title, page.css and further style sheets by the names of their files, then <main>. */
void html_begin(Buf *out, HtmlKind kind, const char *writer, const char *title, const char *const *sheets,
                size_t n_sheets);
/* </main>, what made the page, </html>. */
void html_end(Buf *out, const char *version);
/* A picture in a file beside the page, what it is called for those who do not see it, and how it is read. */
void html_picture(Buf *out, const char *file, const char *title, const char *caption);
/* <tag>text</tag>, the text escaped. The tag may have attributes. */
void html_element(Buf *out, const char *tag, const char *text);
/* Tables lie in a box of their own that scrolls, named for those who do not see it. Heads of columns of numbers begin with a >. */
void html_table_begin(Buf *out, const char *name, const char *const *head);
void html_number(Buf *out, const char *text);
void html_table_end(Buf *out);
/* <dt>name</dt><dd>text</dd>; nothing where the text is "". */
void html_row(Buf *out, const char *name, const char *text);
/* A script, or a style sheet, by the name of its file; with what stands beside it as a comment in front, or NULL. */
void html_script(Buf *out, const char *file, const char *licence);
void html_style(Buf *out, const char *file, const char *licence);
/* JSON as data of a page, with an id: no text in it ends the element. */
void html_json(Buf *out, const char *id, const Buf *json);

/* The files that pages hold, by their names (web.c, made by CMakeLists.txt). */
size_t web_count(void);
const char *web_path(size_t i);
const char *web_text(const char *path, size_t *n);

#endif
