/* alone.cu - what stands before a text of CUDA that is read by itself, by an editor or a compiler.
 *
 * The prelude, and a value of each name that library_text() fills in.
 */
#include "types.cu"
#include "math.c"
#include "vectors.cu"
#include "threads.cu"
#include "tiles.cu"
#include "chunks.cu"
#include "warpgroups.cu"
#include "maps.cu"
#include "attention_tiles.cu"
#include "products.cu"

#define TEXT_NAME kernel
#define TEXT_ELEMENT bf16
#define TEXT_MAX 0
#define TEXT_AT 1
#define TEXT_NUMBERS number32 s0,
#define TEXT_CHOICES
#define TEXT_OLDEST 1
#define TEXT_CAPPED 1
#define TEXT_DROPPED 1
#define TEXT_SPLIT 0
#define TEXT_KEPT 0
#define TEXT_D 64
#define TEXT_DV 64
#define TEXT_ROWS 64
#define TEXT_COLUMNS 32
#define TEXT_AT_ONCE 32
#define TEXT_WARPS 4
#define TEXT_WIDTH 8
#define TEXT_THREADS 128
#define TEXT_SHARED 49152
#define TEXT_BOUNDS 128
#define TEXT_BLOCKS 1
#define TEXT_PARTS 2
#define TEXT_GRADIENT 0
#define TEXT_TRANSPOSED 1
#define TEXT_WIDTH_X 8
#define TEXT_WIDTH_W 8
#define TEXT_X bf16
#define TEXT_W bf16
#define TEXT_Y bf16
#define TEXT_STAGES 2
#define TEXT_MAPS 0
#define TEXT_MORE 240
#define TEXT_FEWER 24
#define TEXT_ASIDE 32
#define TEXT_DOWN 2
#define TEXT_WARPGROUPS 0
#define TEXT_SHARED 49152
