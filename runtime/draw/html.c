/* html.c - see html.h. */
#include "html.h"

#include "heat.h"

static void put(Buf *out, const char *html) { buf_puts(out, html); }

/* A file of ours, or one that it has in front as a comment. */
static void put_file(Buf *out, const char *file, const char *licence)
{
    size_t n;
    const char *text;
    if (licence && (text = web_text(licence, &n))) {
        put(out, "/*\n");
        buf_put(out, text, n);
        put(out, "\n*/\n");
    }
    text = web_text(file, &n);
    if (!text)
        vwn_bug(arena_ctx(out->arena), "there is no file %s for pages", file);
    buf_put(out, text, n);
}

void html_style(Buf *out, const char *file, const char *licence)
{
    put(out, "<style>\n");
    put_file(out, file, licence);
    put(out, "</style>\n");
}

void html_script(Buf *out, const char *file, const char *licence)
{
    put(out, "<script>\n");
    put_file(out, file, licence);
    put(out, "</script>\n");
}

void html_json(Buf *out, const char *id, const Buf *json)
{
    buf_printf(out, "<script type=\"application/json\" id=\"%s\">", id);
    for (size_t i = 0; i < json->n; i++)
        if (json->s[i] == '<') /* it stands in strings alone */
            put(out, "\\u003c");
        else
            buf_putc(out, json->s[i]);
    put(out, "</script>\n");
}

void html_begin(Buf *out, HtmlKind kind, const char *writer, const char *title, const char *const *sheets,
                size_t n_sheets)
{
    static const char *const allowed[] = {
        [HTML_SCRIPTS] = "script-src 'unsafe-inline'", [HTML_PICTURES] = "img-src 'self' file:"};
    buf_printf(
        out,
        "<!doctype html>\n<!-- written by `%s` -->\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; %s\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"color-scheme\" "
        "content=\"light dark\">\n"
        "<title>",
        writer, allowed[kind]);
    xml_text(out, title);
    put(out, "</title>\n");
    html_style(out, "page.css", NULL);
    for (size_t i = 0; i < n_sheets; i++)
        html_style(out, sheets[i], NULL);
    put(out, "<style>\n");
    chart_style(out);
    heat_style(out);
    put(out, "\n</style></head><body><main>\n");
}

void html_end(Buf *out, const char *version)
{
    put(out, "<footer class=\"small\">vwn ");
    xml_text(out, version);
    put(out, "</footer></main></body></html>\n");
}

void html_picture(Buf *out, const char *file, const char *title, const char *caption)
{
    put(out, "<section><h2 class=\"drawn\">"); /* the picture has it as well: this one is read aloud */
    xml_text(out, title);
    put(out, "</h2><img src=\"");
    xml_text(out, file);
    put(out, "\" alt=\"");
    xml_text(out, title);
    put(out, "\"><p class=\"small\">");
    xml_text(out, caption);
    put(out, "</p></section>\n");
}

void html_element(Buf *out, const char *tag, const char *text)
{
    buf_printf(out, "<%s>", tag);
    xml_text(out, text);
    buf_printf(out, "</%.*s>", (int)strcspn(tag, " "), tag);
}

void html_number(Buf *out, const char *text) { html_element(out, "td class=\"n\"", text); }

void html_table_begin(Buf *out, const char *name, const char *const *head)
{
    put(out, "<div class=\"box\" tabindex=\"0\" role=\"region\" aria-label=\"");
    xml_text(out, name);
    put(out, "\"><table><thead><tr>");
    for (; *head; head++)
        html_element(out, **head == '>' ? "th scope=\"col\" class=\"n\"" : "th scope=\"col\"", *head + (**head == '>'));
    put(out, "</tr></thead><tbody>\n");
}

void html_table_end(Buf *out) { put(out, "</tbody></table></div>\n"); }

void html_row(Buf *out, const char *name, const char *text)
{
    if (!*text)
        return;
    html_element(out, "dt", name);
    html_element(out, "dd", text);
}
