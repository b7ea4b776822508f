/* safetensors.h - the file format of checkpoints: a JSON header, then the tensors' bytes.
 *
 * In:  a path, or tensors to be written.   Out: checked entries, or a sentence with file and
 * offset.
 * The one idea: a header is untrusted input. Lengths, types, shapes, offsets, overlaps and gaps
 * are checked before a single number is read, and a checksum in the metadata covers every byte.
 */
#ifndef VWN_SAFETENSORS_H
#define VWN_SAFETENSORS_H

#include "json.h"

enum { WHY = 512 }; /* room for a sentence */

typedef enum SafeType { /* in the order of the names in safetensors.c */
                        SAFE_F64,
                        SAFE_F32,
                        SAFE_F16,
                        SAFE_BF16,
                        SAFE_F8_E4M3,
                        SAFE_F8_E5M2,
                        SAFE_FLOATS, /* those before it are what weights are stored in */
                        SAFE_I64 = SAFE_FLOATS,
                        SAFE_I32,
                        SAFE_I16,
                        SAFE_I8,
                        SAFE_U64,
                        SAFE_U32,
                        SAFE_U16,
                        SAFE_U8,
                        SAFE_BOOL,
                        SAFE_NUMBERS, /* the rest is not read: of it the size is known */
                        SAFE_TYPES = SAFE_NUMBERS + 7
} SafeType;

typedef struct SafeTensor {
    const char *name;
    SafeType type;
    int rank;
    int64_t *d;
    int64_t elements;
    uint64_t begin, end; /* bytes from the start of the file */
} SafeTensor;

typedef struct SafeFile {
    int fd; /* -1 when closed */
    const char *path;
    uint64_t size;
    SafeTensor *tensor; /* in the order of their bytes */
    size_t n;
    const Json *metadata;       /* an object of strings, or NULL */
    const SafeTensor **by_name; /* private */
    uint64_t header;            /* bytes of the header, without the eight of its length */
    const char *text;           /* the header */
} SafeFile;

/* Opens and checks everything but the checksum. On failure nothing stays open and `why` names
 * the file, the offset and what is wrong. The memory must outlive the file. */
bool safe_open(Region memory, const char *path, SafeFile *f, char why[WHY]);
void safe_close(SafeFile *f);
const SafeTensor *safe_find(const SafeFile *f, const char *name); /* NULL when absent */
/* The metadata under a key, NULL where there is none. False with `why` where it holds a NUL: no text does. */
bool safe_text(const SafeFile *f, const char *key, const char **text, char why[WHY]);
const char *safe_type_name(SafeType type); /* "BF16" */
/* n numbers from `at` on, as float64 (integers too). False with `why` where the type is none of SAFE_NUMBERS. */
bool safe_read(const SafeFile *f, const SafeTensor *t, int64_t at, int64_t n, double *out, char why[WHY]);
/* Reads the whole file once. True when the checksum fits, or, unless it is `required`, when
 * there is none (files of others). */
bool safe_verify(const SafeFile *f, bool required, char why[WHY]);

/* ---- writing ---- */
typedef struct Checksum { /* 64 bits over a stream, however it is cut into pieces */
    uint64_t lane[4], length;
    unsigned char rest[32];
} Checksum;
void checksum_begin(Checksum *c);
void checksum_add(Checksum *c, const void *p, size_t n);
uint64_t checksum_end(const Checksum *c);

typedef struct SafeWriter {
    Region memory;
    JsonText header; /* filled by safe_meta and safe_declare */
    uint64_t bytes;  /* of the data declared so far */
    bool in_metadata;
    size_t checksum_at; /* 0: there is none */
    int fd, folder;     /* -1 when closed */
    const char *path, *temporary;
    Checksum sum;
    uint64_t written;
    char *block; /* what is put, until it is as much as a file takes in whole pages */
    size_t in_block, block_size;
} SafeWriter;
/* First the metadata, then the declarations, then safe_create, then the tensors' bytes in order
 * of declaration, then safe_commit. The first two only build text. A writer stays where it is. */
void safe_begin(SafeWriter *w, Region memory);
void safe_begin_plain(SafeWriter *w, Region memory); /* without a checksum, as other programs write them */
void safe_meta(SafeWriter *w, const char *key, const char *value, size_t n);
void safe_declare(SafeWriter *w, const char *name, SafeType type, uint8_t rank, const int64_t *d);
/* Writes folder/.NAME.tmp. On any failure the temporary file is removed, `why` says what
 * failed, and whatever stood at folder/NAME is untouched. */
bool safe_create(SafeWriter *w, const char *folder, const char *name, char why[WHY]);
bool safe_put(SafeWriter *w, const void *p, size_t n, char why[WHY]);
/* fsync, rename to folder/NAME, fsync of the folder. */
bool safe_commit(SafeWriter *w, char why[WHY]);
void safe_abandon(SafeWriter *w); /* closes and removes what was begun; nothing after a commit */

#endif
