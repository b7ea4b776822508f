/* event_file.c - reads a TensorBoard event file and prints what is in it, or says what is wrong with it.
 *
 * In:  the path of an event file.   Out: a line "WALL STEP TAG VALUE" for each scalar, "WALL STEP hparam NAME VALUE"
 * for each setting that the plugin for hyperparameters would read, "WALL STEP ended STATUS SECONDS" for the end that it would; exit status 1 with a sentence when a length, a
 * checksum or a field is wrong. Written from the formats' descriptions (TFRecord, event.proto, summary.proto, the
 * plugin's plugin_data.proto and api.proto, struct.proto, RFC 3720 for the checksum, by its table) and not from vwn's sources.
 * When: quick.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t table[256];
static unsigned char *data;
static size_t size;

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t r = i;
        for (int k = 0; k < 8; k++)
            r = r & 1 ? r >> 1 ^ 0x82f63b78u : r >> 1;
        table[i] = r;
    }
}

static uint32_t checksum(const unsigned char *p, size_t n)
{
    uint32_t c = ~0u;
    while (n--)
        c = table[(c ^ *p++) & 255] ^ c >> 8;
    return ~c;
}

static void wrong(const char *what, size_t at)
{
    fprintf(stderr, "%s at byte %zu\n", what, at);
    exit(1);
}

static uint64_t little(size_t at, int n)
{
    uint64_t x = 0;
    if (at + (size_t)n > size)
        wrong("the file ends within a number", at);
    for (int i = n; i-- > 0;)
        x = x << 8 | data[at + (size_t)i];
    return x;
}

static void check(size_t at, size_t n, size_t where)
{
    uint32_t c = checksum(data + at, n);
    if ((uint32_t)((c >> 15 | c << 17) + 0xa282ead8u) != (uint32_t)little(where, 4))
        wrong("the checksum is wrong", where);
}

static uint64_t varint(size_t *at, size_t end)
{
    uint64_t x = 0;
    for (int shift = 0; *at < end; shift += 7) {
        unsigned char c = data[(*at)++];
        x |= (uint64_t)(c & 127) << shift;
        if (c < 128)
            return x;
    }
    wrong("a number has no end", *at);
    return 0;
}

typedef struct Field {
    uint64_t number, value;
    size_t at, n; /* of bytes */
    int wire;
} Field;

static Field next(size_t *at, size_t end)
{
    uint64_t key = varint(at, end);
    Field f = {.number = key >> 3, .wire = (int)(key & 7)};
    if (f.wire == 0)
        f.value = varint(at, end);
    else if (f.wire == 1 || f.wire == 5) {
        f.n = f.wire == 1 ? 8 : 4;
        f.value = little(*at, (int)f.n);
        *at += f.n;
    } else if (f.wire == 2) {
        f.n = varint(at, end);
        f.at = *at;
        *at += f.n;
    } else
        wrong("no field is stored so", *at);
    if (*at > end)
        wrong("a field ends behind its message", *at);
    return f;
}

static double real_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, 8);
    return x;
}

/* One entry of SessionStartInfo.hparams: a name and a google.protobuf.Value. */
static void hparam(double wall, uint64_t step, size_t at, size_t end)
{
    Field name = {0}, value = {0}, f;
    while (at < end) {
        f = next(&at, end);
        if (f.number == 1 && f.wire == 2)
            name = f;
        else if (f.number == 2 && f.wire == 2)
            value = f;
        else
            wrong("a setting has a field that is not known", at);
    }
    at = value.at;
    f = next(&at, value.at + value.n);
    printf("%.6f %llu hparam %.*s ", wall, (unsigned long long)step, (int)name.n, (const char *)data + name.at);
    if (f.number == 2 && f.wire == 1)
        printf("%.9g\n", real_of(f.value));
    else if (f.number == 3 && f.wire == 2)
        printf("\"%.*s\"\n", (int)f.n, (const char *)data + f.at);
    else
        wrong("a setting is neither a number nor a text", at);
}

/* HParamsPluginData, with the tag that each of its kinds has. */
static void session(double wall, uint64_t step, const char *tag, size_t at, size_t end)
{
    Field f = next(&at, end);
    bool start = f.number == 3;
    if (at != end || f.wire != 2 || (!start && f.number != 4))
        wrong("the plugin's data are neither a start nor an end", at);
    if (strcmp(tag, start ? "_hparams_/session_start_info" : "_hparams_/session_end_info"))
        wrong("the tag is another one's", at);
    uint64_t status = 0;
    double seconds = 0;
    for (size_t in = f.at, stop = f.at + f.n; in < stop;) {
        Field v = next(&in, stop);
        if (start && v.number == 1 && v.wire == 2)
            hparam(wall, step, v.at, v.at + v.n);
        else if (!start && v.number == 1 && v.wire == 0)
            status = v.value;
        else if (v.number == (start ? 5 : 2) && v.wire == 1)
            seconds = real_of(v.value);
        else
            wrong("a session has a field that is not known", in);
    }
    if (!start)
        printf("%.6f %llu ended %llu %.6f\n", wall, (unsigned long long)step, (unsigned long long)status, seconds);
}

/* SummaryMetadata. */
static void metadata(double wall, uint64_t step, const char *tag, size_t at, size_t end)
{
    Field plugin = next(&at, end);
    if (at != end || plugin.number != 1 || plugin.wire != 2)
        wrong("the metadata are of no plugin", at);
    at = plugin.at;
    end = plugin.at + plugin.n;
    Field name = next(&at, end), content = next(&at, end);
    if (name.number != 1 || name.n != 7 || memcmp(data + name.at, "hparams", 7) || content.number != 2 ||
        content.wire != 2)
        wrong("a plugin that is not known", at);
    session(wall, step, tag, content.at, content.at + content.n);
}

static void scalar(double wall, uint64_t step, size_t at, size_t end)
{
    char tag[256] = "";
    float x = 0;
    while (at < end) {
        Field f = next(&at, end);
        if (f.number == 1 && f.wire == 2 && f.n < sizeof tag) {
            memcpy(tag, data + f.at, f.n);
            tag[f.n] = '\0';
        } else if (f.number == 2 && f.wire == 5) {
            uint32_t bits = (uint32_t)f.value;
            memcpy(&x, &bits, 4);
        } else if (f.number == 9 && f.wire == 2) {
            metadata(wall, step, tag, f.at, f.at + f.n);
            return;
        } else
            wrong("a value has a field that is not known", at);
    }
    printf("%.6f %llu %s %.9g\n", wall, (unsigned long long)step, tag, (double)x);
}

static void event(size_t at, size_t end, size_t place)
{
    double wall = 0;
    uint64_t step = 0;
    while (at < end) {
        Field f = next(&at, end);
        if (f.number == 1 && f.wire == 1)
            memcpy(&wall, &f.value, 8);
        else if (f.number == 2 && f.wire == 0)
            step = f.value;
        else if (f.number == 3 && f.wire == 2) {
            if (place || f.n != 13 || memcmp(data + f.at, "brain.Event:2", 13))
                wrong("no version, or at the wrong place", at);
        } else if (f.number == 5 && f.wire == 2) {
            for (size_t in = f.at; in < f.at + f.n;) {
                Field v = next(&in, f.at + f.n);
                if (v.number != 1 || v.wire != 2)
                    wrong("a summary has a field that is not known", in);
                scalar(wall, step, v.at, v.at + v.n);
            }
        } else
            wrong("an event has a field that is not known", at);
    }
}

int main(int argc, char **argv)
{
    make_table();
    if (checksum((const unsigned char *)"123456789", 9) != 0xe3069283u) {
        fprintf(stderr, "the reader's own checksum is wrong\n");
        return 1;
    }
    if (argc < 2) /* the published check value was all that was to be tested */
        return 0;
    FILE *f = fopen(argv[1], "rb");
    if (!f)
        return 2;
    data = malloc(1 << 24);
    size = data ? fread(data, 1, 1 << 24, f) : 0;
    fclose(f);
    for (size_t at = 0; at < size;) {
        uint64_t n = little(at, 8);
        check(at, 8, at + 8);
        if (n > size || at + 16 + n > size)
            wrong("a record ends behind the file", at);
        check(at + 12, n, at + 12 + n);
        event(at + 12, at + 12 + n, at);
        at += 16 + n;
    }
    free(data);
    return 0;
}
