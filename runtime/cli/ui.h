/* ui.h - what the program says: colour, messages, the progress line, text to stdout.
 *
 * Results go to stdout, everything else to stderr. Nothing is said by colour alone, and the
 * cursor moves only when stderr is a terminal.
 */
#ifndef VWN_CLI_UI_H
#define VWN_CLI_UI_H

#include <stdbool.h>
#include <stddef.h>

#include "runtime/vwn.h"

typedef enum ColorChoice { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER } ColorChoice;

typedef struct Ui {
    bool color_out, color_err; /* of stdout and of stderr */
    bool live;                 /* stderr is a terminal that can rewrite a line */
    bool terminal;             /* stdout is one */
    bool quiet;
    bool line_open;  /* a progress line stands on the terminal without its newline */
    bool line_waits; /* that is what ui_wait has written */
    int columns;     /* of the terminal, see ui_resize */
    int write_error; /* errno of the first failed write to stdout */
    char held[4];    /* for a terminal: the beginning of a character */
    size_t n_held;
    vwn_context *running; /* interrupted when stdout can no longer be written; may be NULL */
} Ui;

void ui_init(Ui *ui, ColorChoice color, bool quiet);

/* Characters of a line on stdout: the terminal's, else COLUMNS, else 80. */
int ui_columns(void);
int ui_rows(void);     /* of the terminal, else 24 */
bool ui_unicode(void); /* whether the locale says UTF-8 */

/* "error: ..." and "warning: ..." on stderr, with a newline. */
void ui_error(Ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ui_warning(Ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* "   Compiled nano: ..." on stderr: a word set right in 11 columns and a sentence. Not with
 * -q. */
void ui_say(Ui *ui, const char *word, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* How wide the terminal is now: it may have been resized. */
int ui_resize(Ui *ui);
/* One line that replaces the one before it on a terminal, and an ordinary line elsewhere. */
void ui_progress(Ui *ui, const char *line);
double ui_seconds(void);      /* of a monotonic clock */
void ui_progress_end(Ui *ui); /* keeps the line that stands there, if it is one of progress */
/* What takes a while, on a terminal until ui_wait_end or the next thing that is said: the line leaves nothing behind. */
void ui_wait(Ui *ui, const char *word, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void ui_wait_end(Ui *ui);

/* "[====>     ]" of `width` characters for `share` in 0..1, into out[width + 1]. */
void ui_bar(char *out, int width, double share);
/* "0:38", "1:02:03". */
void ui_duration(char out[32], double seconds);
/* In at most five characters up to 999 days: "0:38", "62:03", "4h05", "26h", "3d". */
void ui_short_duration(char out[32], double seconds);
/* "950", "12.3k", "1.90M". */
void ui_rate(char out[32], double n);

/* Writers to stdout, and to stderr. */
vwn_writer ui_stdout(Ui *ui);
vwn_writer ui_stderr(Ui *ui);
void ui_put(Ui *ui, const char *text, size_t n); /* to stdout; to a terminal as text for people (utf8_plain) */
void ui_control(Ui *ui, const char *sequence);   /* what a terminal on stdout is to act on */
void ui_print(Ui *ui, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Brings what was put to its reader now. False: stdout cannot be written any more; a run under way
 * is stopped, as after a failed ui_put. */
bool ui_flush(Ui *ui);
/* Flushes stdout. The program's exit status: `status`, or another when results could not be
 * written. */
int ui_finish(Ui *ui, int status);

/* Text in memory. */
typedef struct Text {
    char *s; /* NUL-terminated; "" or longer after text_put */
    size_t n, cap;
    bool failed; /* no memory */
} Text;
vwn_writer text_writer(Text *t);
void text_put(Text *t, const char *s, size_t n);
void text_free(Text *t);

#endif
