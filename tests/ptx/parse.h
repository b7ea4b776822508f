/* parse.h - what the parser hands to the table of opcodes, and the table.
 *
 * In:  -     Out: operands as they stand in the text; rows.
 */
#ifndef VWN_TEST_PTX_PARSE_H
#define VWN_TEST_PTX_PARSE_H

#include "code.h"

typedef enum ArgKind { ARG_REGISTER, ARG_NUMBER, ARG_ADDRESS, ARG_LIST, ARG_NAME, ARG_SINK } ArgKind;
typedef struct Arg {
    ArgKind kind;
    uint32_t at, bytes; /* of a register or the base of an address: offset, bytes of a lane (0: a predicate) */
    bool passed;        /* an address of what is passed to a function */
    bool based;         /* an address with a register */
    uint64_t number;    /* or the shift of an address */
    uint32_t first, n;  /* of a list, in Parser.arg */
    int second;         /* behind |, or the coordinates in an address: in Parser.arg; -1: none */
    const char *name;
    uint32_t length;
} Arg;

/* What stands at each place of a row:
 *   =  a register or a number of the row's type    w  of twice its size    u, q  of 32, 64 bits
 *   p  a predicate     V  a list of =, or one      B  a list of 32 bits     X  a list of 32 bits, or q
 *   A  an address      M  an address with coordinates    i  a number        T  a label
 *   Y  a list of 32 bits, or one of 64
 *   |  = with a predicate behind it               _  a sink  */
typedef struct Row {
    const char *name, *type, *mods, *form;
    Kind kind;
    Run *run;
} Row;

typedef struct Opcode { /* one that was met: its row and modifiers */
    const char *text;
    uint32_t length, operands;
    const Row *row;
    uint64_t mods;
} Opcode;
/* NULL: there is no such row. */
const Row *ptx_row(const char *text, uint32_t length, uint32_t operands, uint64_t *mods);
uint32_t ptx_type_bytes(const char *type); /* of the last one that it names */

#endif
