/* kernel_text.h - a kernel as text that several tests read, and such a text with another word in it.
 *
 * In:  a text, a part of it that is there once or more, what stands there instead the first time.
 * Out: the new text, in the context's memory; a part that is not there ends the test.
 */
#ifndef TEST_KERNEL_TEXT_H
#define TEST_KERNEL_TEXT_H

#include "compiler/base/base.h"

#include <string.h>

static inline const char *text_with(Ctx *ctx, const char *text, const char *from, const char *to)
{
    const char *at = strstr(text, from);
    if (!at)
        vwn_bug(ctx, "a text without '%s'", from);
    return arena_printf(ctx->program, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
}

/* The sum over rows of products of eight rows of a tensor with a tile. */
static const char sum_of_rows[] =
    "vwn kernels 1 B=2 T=16\n\n"
    "kernel \"rows, sums over rows\"  # pairs\n"
    "rows B*T parts 8 of 4 device\n"
    "buffer 0 read write tile real 128 \"c\"\n"
    "buffer 1 read real 4096 \"c\"\n"
    "buffer 2 read bf16 262144 \"x\"\n"
    "buffer 3 write part real 8192 \"sum\"\n"
    "buffer 4 write real 4096 \"d\"\n"
    "var i2 loop 128\n"
    "var i3 loop 512\n"
    "var i4 loop 16\n"
    "var i5 loop 8\n"
    "var part\n"
    "root 0 store b0 over i2\n"
    "root 1 store b4 over i2\n"
    "begin\n"
    "  parts\n"
    "    place of partial sums b3\n"
    "    fill partial sums b3\n"
    "    rows\n"
    "      loop i2 simd\n"
    "        x1 real = load b1[{128}*r + i2]\n"
    "        x2 real = mul x1 x1\n"
    "        store 0 b0[i2] = x2\n"
    "      end\n"
    "      product b3[16*i3 + i4] += b2[{4096}*r + {512}*i5 + i3] * b0[16*i5 + i4] over i3, i4, i5\n"
    "      loop i2 simd\n"
    "        x3 real = load b0[i2]\n"
    "        x4 real = mul x3 x3\n"
    "        store 1 b4[{128}*r + i2] = x4\n"
    "      end\n"
    "    end\n"
    "  end\n";

#endif
