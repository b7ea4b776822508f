/* system_library.h - libraries of the system that are opened when a file needs them.
 *
 * In:  rows of names.   Out: functions, or a sentence that says which package has them.
 */
#ifndef VWN_SYSTEM_LIBRARY_H
#define VWN_SYSTEM_LIBRARY_H

#include "compiler/base/base.h"
#include "compiler/portable/safetensors.h"

/* libpcre2-8: patterns. */
typedef struct Pcre2 {
    void *(*context_create)(void *general);
    void (*context_free)(void *context);
    int (*set_newline)(void *context, uint32_t value);
    void *(*compile)(const unsigned char *pattern, size_t n, uint32_t options, int *error, size_t *at, void *context);
    int (*jit_compile)(void *code, uint32_t options);
    void (*code_free)(void *code);
    void *(*match_data_create)(uint32_t pairs, void *general);
    void (*match_data_free)(void *data);
    size_t *(*ovector)(void *data);
    void *(*match_context_create)(void *general);
    void (*match_context_free)(void *context);
    int (*set_match_limit)(void *context, uint32_t limit);
    int (*set_depth_limit)(void *context, uint32_t limit);
    int (*match)(const void *code, const unsigned char *text, size_t n, size_t at, uint32_t options, void *data,
                 void *context);
    int (*jit_match)(const void *code, const unsigned char *text, size_t n, size_t at, uint32_t options, void *data,
                     void *context);
    int (*message)(int error, unsigned char *out, size_t room);
} Pcre2;
/* pcre2.h's numbers, which are the same in all versions of the library. */
enum {
    PCRE2_UTF = 0x00080000,
    PCRE2_NEVER_BACKSLASH_C = 0x00100000,
    PCRE2_NO_JIT = 0x00002000, /* of a match */
    PCRE2_NO_UTF_CHECK = 0x40000000,
    PCRE2_JIT_COMPLETE = 1,
    PCRE2_NEWLINE_LF = 2,
    PCRE2_NO_MATCH = -1,
    PCRE2_JIT_STACK_IS_FULL = -46
};
bool library_pcre2(Pcre2 *out, char why[WHY]);

/* libutf8proc: normal forms. */
typedef struct Utf8proc {
    long (*map)(const unsigned char *text, long n, unsigned char **out, int options); /* *out is for free() */
} Utf8proc;
enum { UTF8PROC_STABLE = 2, UTF8PROC_COMPOSE = 8 };
bool library_utf8proc(Utf8proc *out, char why[WHY]);

/* libz: texts that gzip has packed. The struct is zlib.h's z_stream, the same in all versions 1. */
typedef struct ZlibStream {
    const unsigned char *next_in;
    unsigned avail_in;
    unsigned long total_in;
    unsigned char *next_out;
    unsigned avail_out;
    unsigned long total_out;
    const char *msg;
    void *state, *zalloc, *zfree, *opaque;
    int data_type;
    unsigned long adler, reserved;
} ZlibStream;
typedef struct Zlib {
    int (*init)(ZlibStream *z, int window_bits, const char *version, int size);
    int (*inflate)(ZlibStream *z, int flush);
    int (*reset)(ZlibStream *z);
    int (*end)(ZlibStream *z);
} Zlib;
enum { ZLIB_GZIP_WINDOW = 15 + 16, ZLIB_OK = 0, ZLIB_STREAM_END = 1, ZLIB_BUF_ERROR = -5 };
#define ZLIB_VERSION_1 "1.2.11" /* its first digit is looked at */
bool library_zlib(Zlib *out, char why[WHY]);

/* libzstd: those of zstd. */
typedef struct ZstdIn {
    const void *src;
    size_t size, pos;
} ZstdIn;
typedef struct ZstdOut {
    void *dst;
    size_t size, pos;
} ZstdOut;
typedef struct Zstd {
    void *(*create)(void);
    size_t (*set)(void *stream, int parameter, int value);
    size_t (*decompress)(void *stream, ZstdOut *out, ZstdIn *in);
    unsigned (*is_error)(size_t code);
    const char *(*error_name)(size_t code);
    size_t (*free)(void *stream);
} Zstd;
enum { ZSTD_WINDOW_LOG_MAX = 100, ZSTD_WINDOW_LOG = 31 }; /* a parameter, and its greatest value */
bool library_zstd(Zstd *out, char why[WHY]);

/* libmicrohttpd: requests over HTTP. */
typedef struct Microhttpd {
    void *(*start)(unsigned flags, uint16_t port, void *accept, void *accept_user,
                   int (*access)(void *user, void *connection, const char *path, const char *method,
                                 const char *version, const char *part, size_t *n, void **kept),
                   void *access_user, ...);
    void (*stop)(void *daemon);
    const char *(*header)(void *connection, int kind, const char *name);
    const void *(*info)(void *connection, int what, ...);
    void *(*from_buffer)(size_t n, void *text, int how);
    void *(*from_callback)(uint64_t n, size_t block, long (*give)(void *user, uint64_t at, char *out, size_t most),
                           void *user, void (*end)(void *user));
    int (*add_header)(void *response, const char *name, const char *value);
    int (*queue)(void *connection, unsigned status, void *response);
    void (*destroy)(void *response);
} Microhttpd;
/* microhttpd.h's numbers, which are the same in all versions of libmicrohttpd.so.12. */
enum {
    MICROHTTPD_NO,
    MICROHTTPD_YES,
    MICROHTTPD_THREAD_PER_CONNECTION = 4,
    MICROHTTPD_INTERNAL_THREAD = 8,
    MICROHTTPD_POLL = 64,
    MICROHTTPD_OPTIONS_END = 0,
    MICROHTTPD_CONNECTION_MEMORY = 1, /* size_t */
    MICROHTTPD_CONNECTIONS = 2,       /* unsigned */
    MICROHTTPD_TIMEOUT = 3,           /* unsigned */
    MICROHTTPD_COMPLETED = 4,         /* a function, its user */
    MICROHTTPD_LISTEN_SOCKET = 12,    /* int */
    MICROHTTPD_STACK = 19,            /* size_t */
    MICROHTTPD_HEADER = 1,
    MICROHTTPD_INFO_FD = 6,
    MICROHTTPD_COPY = 2,
    MICROHTTPD_END = -1
};
#define MICROHTTPD_UNKNOWN UINT64_MAX
bool library_microhttpd(Microhttpd *out, char why[WHY]);

/* "patterns: ...", "normal forms: ...", "packed texts: ...": a line each, whether they are there. */
void library_describe(Buf *out);

#endif
