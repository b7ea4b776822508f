/* system_library.c - see system_library.h.
 *
 * The one idea: nothing of these libraries is needed to build, and nothing where no file asks for them. They stay open as long as the
 * process does, as libraries of products do.
 */
#define _GNU_SOURCE
#include "system_library.h"

#include <dlfcn.h>
#include <stdio.h>

typedef struct Symbol {
    const char *name;
    size_t at; /* of the pointer in the struct */
} Symbol;

static bool open_all(const char *file, const char *package, const Symbol *symbol, size_t n, void *out, char why[WHY])
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    for (size_t i = 0; library && i < n; i++) {
        void *p = dlsym(library, symbol[i].name);
        memcpy((char *)out + symbol[i].at, &p, sizeof p);
        if (p)
            continue;
        snprintf(why, WHY, "the library %s has no %s: install the Debian package %s", file, symbol[i].name, package);
        return false;
    }
    if (!library)
        snprintf(why, WHY, "the library %s is missing: install the Debian package %s", file, package);
    return library != NULL;
}

bool library_pcre2(Pcre2 *out, char why[WHY])
{
    static const Symbol all[] = {
        {"pcre2_compile_context_create_8", offsetof(Pcre2, context_create)},
        {"pcre2_compile_context_free_8", offsetof(Pcre2, context_free)},
        {"pcre2_set_newline_8", offsetof(Pcre2, set_newline)},
        {"pcre2_compile_8", offsetof(Pcre2, compile)},
        {"pcre2_jit_compile_8", offsetof(Pcre2, jit_compile)},
        {"pcre2_code_free_8", offsetof(Pcre2, code_free)},
        {"pcre2_match_data_create_8", offsetof(Pcre2, match_data_create)},
        {"pcre2_match_data_free_8", offsetof(Pcre2, match_data_free)},
        {"pcre2_get_ovector_pointer_8", offsetof(Pcre2, ovector)},
        {"pcre2_match_context_create_8", offsetof(Pcre2, match_context_create)},
        {"pcre2_match_context_free_8", offsetof(Pcre2, match_context_free)},
        {"pcre2_set_match_limit_8", offsetof(Pcre2, set_match_limit)},
        {"pcre2_set_depth_limit_8", offsetof(Pcre2, set_depth_limit)},
        {"pcre2_match_8", offsetof(Pcre2, match)},
        {"pcre2_jit_match_8", offsetof(Pcre2, jit_match)},
        {"pcre2_get_error_message_8", offsetof(Pcre2, message)},
    };
    return open_all("libpcre2-8.so.0", "libpcre2-8-0", all, COUNT_OF(all), out, why);
}

bool library_utf8proc(Utf8proc *out, char why[WHY])
{
    static const Symbol all[] = {{"utf8proc_map", offsetof(Utf8proc, map)}};
    char other[WHY];
    return open_all("libutf8proc.so.2", "libutf8proc2 or libutf8proc3", all, COUNT_OF(all), out, why) ||
           open_all("libutf8proc.so.3", "libutf8proc3", all, COUNT_OF(all), out, other);
}

bool library_zlib(Zlib *out, char why[WHY])
{
    static const Symbol all[] = {{"inflateInit2_", offsetof(Zlib, init)},
                                 {"inflate", offsetof(Zlib, inflate)},
                                 {"inflateReset", offsetof(Zlib, reset)},
                                 {"inflateEnd", offsetof(Zlib, end)}};
    return open_all("libz.so.1", "zlib1g", all, COUNT_OF(all), out, why);
}

bool library_zstd(Zstd *out, char why[WHY])
{
    static const Symbol all[] = {
        {"ZSTD_createDStream", offsetof(Zstd, create)},        {"ZSTD_DCtx_setParameter", offsetof(Zstd, set)},
        {"ZSTD_decompressStream", offsetof(Zstd, decompress)}, {"ZSTD_isError", offsetof(Zstd, is_error)},
        {"ZSTD_getErrorName", offsetof(Zstd, error_name)},     {"ZSTD_freeDStream", offsetof(Zstd, free)}};
    return open_all("libzstd.so.1", "libzstd1", all, COUNT_OF(all), out, why);
}

bool library_microhttpd(Microhttpd *out, char why[WHY])
{
    static const Symbol all[] = {{"MHD_start_daemon", offsetof(Microhttpd, start)},
                                 {"MHD_stop_daemon", offsetof(Microhttpd, stop)},
                                 {"MHD_lookup_connection_value", offsetof(Microhttpd, header)},
                                 {"MHD_get_connection_info", offsetof(Microhttpd, info)},
                                 {"MHD_create_response_from_buffer", offsetof(Microhttpd, from_buffer)},
                                 {"MHD_create_response_from_callback", offsetof(Microhttpd, from_callback)},
                                 {"MHD_add_response_header", offsetof(Microhttpd, add_header)},
                                 {"MHD_queue_response", offsetof(Microhttpd, queue)},
                                 {"MHD_destroy_response", offsetof(Microhttpd, destroy)}};
    return open_all("libmicrohttpd.so.12", "libmicrohttpd12", all, COUNT_OF(all), out, why);
}

void library_describe(Buf *out)
{
    char why[WHY];
    Pcre2 patterns;
    Utf8proc forms;
    Zlib gzip;
    Zstd zstd;
    Microhttpd http;
    buf_printf(out, "patterns of tokenizers: %s\n", library_pcre2(&patterns, why) ? "PCRE2" : why);
    buf_printf(out, "normal forms of tokenizers: %s\n", library_utf8proc(&forms, why) ? "utf8proc" : why);
    buf_printf(out, "texts packed by gzip: %s\n", library_zlib(&gzip, why) ? "zlib" : why);
    buf_printf(out, "texts packed by zstd: %s\n", library_zstd(&zstd, why) ? "zstd" : why);
    buf_printf(out, "requests over HTTP: %s\n", library_microhttpd(&http, why) ? "libmicrohttpd" : why);
}
