/* connections.c - random connections are one kernel between sublayers, and compute what they
 * say.
 *
 * In:  a seed per connection (first argument: where to start, second: how many).
 * Out: each is written as a block of the language and put into a small transformer. Between the
 *      product that ends a sublayer and the products that begin what comes behind runs exactly
 *      one kernel over rows, in the training and in the prediction program (the rotation of
 *      queries and keys stands behind such a product); results and all gradients equal the
 *      reference's, with every parameter randomised. A failing connection is printed.
 */
#include "support/drawn.h"
#include "connections.h"

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    setenv("VWN_TEST_CFLAGS", "-O0", 0); /* the texts are tested here; other tests optimise */
    Connections of = {.from = argc > 1 ? atoi(argv[1]) : 0,
                      .count =
                          argc > 2 ? atoi(argv[2]) : (int)drawn_count(&(CaseDraw){.one_in = 7, .sanitized = 8}, 50),
                      .B = 2,
                      .T = 7};
    if (argc > 3) { /* only the text */
        Ctx *ctx = ctx_new(NULL);
        printf("%s", connection_text(ctx->program, of.from, &target_cpu));
        ctx_free(ctx);
        return 0;
    }
    return connections_run(&of) != 0;
}
