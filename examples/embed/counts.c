/* counts.c - a program over vwn.h: checks a file, prints what is wrong with it, or how many weights it has.
 *
 *     cmake --install build --prefix DIR
 *     export PKG_CONFIG_PATH=DIR/lib/pkgconfig
 *     cc counts.c $(pkg-config --cflags --libs vwn) -o counts && ./counts model.vwn
 */
#include <stdio.h>
#include <vwn.h>

static void put(void *user, const char *text, size_t length) { fwrite(text, 1, length, user); }

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "counts FILE [PATH=EXPR...]\n");
        return VWN_USAGE;
    }
    vwn_context *ctx = vwn_open(NULL);
    if (!ctx)
        return VWN_ENVIRONMENT;
    const vwn_file_options file = {
        .path = argv[1], .set = (const char *const *)(argv + 2), .n_set = (size_t)(argc - 2), .model_only = true};
    const vwn_writer out = {put, stdout}, err = {put, stderr};
    vwn_unit *unit;
    vwn_status status = vwn_check(ctx, &file, &unit);
    vwn_diagnostics(ctx, &err, false, false, NULL);
    if (status == VWN_OK)
        status = vwn_write_report(unit, VWN_REPORT_PARAMS, &(vwn_report_options){0}, &out);
    if (status != VWN_OK && vwn_message(ctx)[0])
        fprintf(stderr, "error: %s\n", vwn_message(ctx));
    vwn_close(ctx);
    return (int)status;
}
