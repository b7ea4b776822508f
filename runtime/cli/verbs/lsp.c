/* lsp.c - `vwn lsp`: the language server, on stdin and stdout.
 *
 * In:  the messages of an editor.   Out: those for it; nothing else is ever written.
 */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static bool more_has_come(void *user)
{
    (void)user;
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    return poll(&in, 1, 0) > 0;
}

static void send(void *user, const char *text, size_t n)
{
    ui_put(user, text, n);
    ui_flush(user);
}

static int run(Call *call)
{
    vwn_server_options how = {.waiting = more_has_come};
    vwn_server *server = vwn_server_open(&how);
    if (!server) {
        ui_error(&call->ui, "out of memory");
        return VWN_ENVIRONMENT;
    }
    vwn_writer out = {send, &call->ui};
    char bytes[64 << 10];
    bool going_on = true;
    while (going_on && !call->ui.write_error) {
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);
        if (n > 0)
            going_on = vwn_server_take(server, bytes, (size_t)n, &out);
        else if (n == 0 || errno != EINTR)
            break;
    }
    bool well = vwn_server_counted(server).well;
    vwn_server_close(server);
    return well ? VWN_OK : VWN_INPUT;
}

static const Flag flags[] = {
    {"--stdio", NULL, "as it is without: some editors give this flag"},
};
const Verb verb_lsp = {
    .name = "lsp",
    .operands = "",
    .summary = "Answers an editor: messages, documentation, completion, definitions (Language Server Protocol)",
    .example = {{"vwn lsp", "started by an editor: see share/vwn/editors"}, {"vwn lsp --stdio", "the same"}},
    .text = "Exit status: 0 when the editor said `shutdown` before `exit`, else 1.\n",
    .flag = flags,
    .n_flags = 1,
    .least = 0,
    .most = 0,
    .run = run};
