/* complete.c - `vwn completions`: what shells offer behind the words of a command line.
 *
 * In:  the name of a shell, or the words of a line, the last of them half written.   Out: a script for that shell, or
 * what the last word may become, one a line, with a tab and what it means.
 * The one idea: scripts only ask this program, so what is offered is what is there: verbs, flags and values come from the
 * tables of the verbs, files from the folder, names of growth steps and lets from the text of the file on the line.
 */
#include "cli.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct Asked {
    Call *call;
    const Verb *verb;
    const Flag *flag;  /* whose value is being written, or NULL */
    const char **word; /* those behind the verb */
    int n;
    const char *now;  /* the one that is being written */
    char before[256]; /* what stands before its value, "--by=": repeated with each offer */
} Asked;

static void offer(const Asked *a, const char *text, const char *what)
{
    const char *end = strpbrk(what, "\n.;");
    if (strncmp(text, a->now, strlen(a->now)) == 0)
        ui_print(&a->call->ui, "%s%s%s%.*s\n", a->before, text, *what ? "\t" : "",
                 end ? (int)(end - what) : (int)strlen(what), what);
}

/* Whether a lower-case word, as in "c|cuda"; else it stands for something: FILE, N, '8 seqs'. */
static bool is_word(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!islower((unsigned char)s[i]) && !isdigit((unsigned char)s[i]) && s[i] != '_')
            return false;
    return n > 0;
}

/* ---- files ---- */

/* What of a folder fits. */
typedef struct Wanted {
    bool any, runs, sweeps;
    const char *ending[8]; /* of files */
    int endings;
} Wanted;

static bool fits(const Wanted *w, const char *name)
{
    for (int i = 0; i < w->endings; i++)
        if (ends_with(name, w->ending[i]))
            return true;
    return false;
}

static void offer_entry(const Asked *a, const Wanted *w, char path[8192], size_t n)
{
    struct stat st;
    if (strpbrk(path, "\n\t") || stat(path, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode)) {
        if (fits(w, path))
            offer(a, path, "");
        return;
    }
    snprintf(path + n, 8192 - n, "/events.jsonl");
    bool run = w->runs && stat(path, &st) == 0;
    snprintf(path + n, 8192 - n, "/sweep.json");
    bool sweep = w->sweeps && !run && stat(path, &st) == 0;
    snprintf(path + n, 8192 - n, "%s", run ? "" : "/"); /* a run is a whole word, other folders go on */
    offer(a, path, run ? "run" : sweep ? "sweep" : "");
}

static void offer_paths(const Asked *a, const Wanted *w)
{
    const char *slash = strrchr(a->now, '/');
    int head = slash ? (int)(slash + 1 - a->now) : 0;
    char folder[4096], path[8192];
    if (head >= 4096)
        return;
    snprintf(folder, sizeof folder, "%.*s", head ? head : 1, head ? a->now : ".");
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        if ((e->d_name[0] == '.' && a->now[head] != '.') || !strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        int n = snprintf(path, sizeof path, "%.*s%s", head, a->now, e->d_name);
        if (strncmp(path, a->now, strlen(a->now)) == 0)
            offer_entry(a, w, path, (size_t)n);
    }
    if (d)
        closedir(d);
}

/* ---- names in the file on the line ---- */

/* The names behind a word at the beginning of a line: `grow wider {`, `let D = 192`. What is imported is not read. */
static void offer_names(const Asked *a, const char *key, const char *behind)
{
    Text text = {0};
    const char *path = NULL;
    for (int i = 0; i < a->n; i++)
        if (ends_with(a->word[i], ".vwn"))
            path = a->word[i];
    if (!path || read_whole_file(path, &text)) {
        text_free(&text);
        return;
    }
    size_t n = strlen(key);
    for (const char *line = text.s; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        char name[300];
        if (strncmp(line, key, n) || line[n] != ' ')
            continue;
        const char *at = line + n + strspn(line + n, " ");
        size_t length = 0;
        while (isalnum((unsigned char)at[length]) || at[length] == '_')
            length++;
        if (!length || length > 250)
            continue;
        snprintf(name, sizeof name, "%.*s%s", (int)length, at, behind);
        offer(a, name, key);
    }
    text_free(&text);
}

static vwn_status all_codes(vwn_context *ctx, const vwn_writer *out) { return vwn_explain(ctx, NULL, out); }

static vwn_status all_names(vwn_context *ctx, const vwn_writer *out) { return vwn_doc(ctx, NULL, out); }

/* The first word of each line of a text of the library: codes, or names that `vwn doc` knows. */
static void offer_listed(const Asked *a, vwn_status (*text_of)(vwn_context *, const vwn_writer *))
{
    Text text = {0};
    int status;
    vwn_writer out = text_writer(&text);
    if (!call_open(a->call, &status) || text_of(a->call->ctx, &out) != VWN_OK) {
        text_free(&text);
        return;
    }
    for (char *line = text.s, *next; line && *line; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = '\0';
        line += strspn(line, " ");
        size_t n = strcspn(line, " ");
        const char *what = line + n + strspn(line + n, " ");
        if (!n || (!*what && !strchr(line, '/'))) /* a heading */
            continue;
        line[n] = '\0';
        offer(a, line, *what ? what : "");
    }
    text_free(&text);
}

/* ---- flags and operands ---- */

/* Adds what a word in capitals stands for. */
static void want(Wanted *w, const char *kind, bool of_flag)
{
    static const char *const ending[][2] = {
        {"FILE", ".vwn"}, {"CKPT", ".safetensors"}, {"OUT.safetensors", ""}, {"OLD.json", ".json"}, {"PATH", ""},
        {"TEXT", ""}};
    for (size_t i = 0; i < sizeof ending / sizeof ending[0]; i++)
        if (!strcmp(kind, ending[i][0])) {
            w->ending[w->endings++] = of_flag ? "" : ending[i][1]; /* that a flag names is any file */
            w->any = true;
        }
    w->endings += of_flag && !strncmp(kind, "FILE.", 5);
    w->any |= of_flag && !strncmp(kind, "FILE.", 5);
    w->runs |= !strcmp(kind, "RUN");
    w->sweeps |= !strcmp(kind, "SWEEP");
    w->any |= w->runs || !strcmp(kind, "DIR");
}

/* "auto|cpu|cuda:N", "FILE", "PATH=EXPR": what stands for what. */
static void offer_kind(const Asked *a, const char *kinds, bool of_flag)
{
    Wanted w = {0};
    for (const char *k = kinds; *k; k += strspn(k, "|[] ")) {
        size_t n = strcspn(k, "|[] ");
        char kind[64];
        snprintf(kind, sizeof kind, "%.*s", n > 63 ? 63 : (int)n, k);
        k += n;
        if (ends_with(kind, "..."))
            kind[strlen(kind) - 3] = '\0';
        if (is_word(kind, strlen(kind)))
            offer(a, kind, "");
        if (w.endings < 7)
            want(&w, kind, of_flag);
        if (!strcmp(kind, "STEP") || (!strcmp(kind, "NAME") && of_flag && a->flag && !strcmp(a->flag->name, "--step")))
            offer_names(a, "grow", "");
        else if (!strcmp(kind, "PATH=EXPR"))
            offer_names(a, "let", "=");
        else if (!strcmp(kind, "CODE"))
            offer_listed(a, all_codes);
        else if (!strcmp(kind, "PASS"))
            offer_listed(a, vwn_passes);
        else if (!strcmp(kind, "NAME") && a->verb->run == verb_doc.run)
            offer_listed(a, all_names);
    }
    if (w.any)
        offer_paths(a, &w);
}

static const Flag *flag_at(const Verb *verb, int i)
{
    const Flag *flag = i < verb->n_flags                    ? &verb->flag[i]
                       : i - verb->n_flags < n_common_flags ? &common_flags[i - verb->n_flags]
                                                            : NULL;
    return flag;
}

/* The flag of this name that takes a value; NULL: none. */
static const Flag *valued(const Verb *verb, const char *name, size_t n)
{
    const Flag *flag;
    for (int i = 0; (flag = flag_at(verb, i)); i++)
        if (flag->value && strlen(flag->name) == n && !strncmp(flag->name, name, n) &&
            (i < verb->n_flags || verb_has(verb, flag)))
            return flag;
    return NULL;
}

static void offer_flags(const Asked *a)
{
    const Flag *flag;
    for (int i = 0; (flag = flag_at(a->verb, i)); i++)
        if (i < a->verb->n_flags || verb_has(a->verb, flag))
            offer(a, flag->name, flag->help);
}

/* The part of "FILE STEP" that operand `at` is, the last one where they repeat; of "[RUN] FILE STEP" it may be any. */
static void offer_operand(const Asked *a, int at)
{
    const char *k = a->verb->operands;
    for (int i = 0; i < at && strchr(k, ' '); i++)
        k = strchr(k, ' ') + 1;
    char kinds[128];
    snprintf(kinds, sizeof kinds, "%.*s", (int)strcspn(k, " "), k);
    bool optional = strchr(a->verb->operands, '[') && strchr(a->verb->operands, ' ');
    offer_kind(a, optional ? a->verb->operands : kinds, false);
}

static void answer(Asked *a)
{
    int operands = 0;
    const Flag *flag = NULL;
    bool only_operands = false;
    for (int i = 0; i < a->n; i++) {
        if (!only_operands && !strcmp(a->word[i], "--"))
            only_operands = true;
        else if (only_operands || a->word[i][0] != '-' || !a->word[i][1])
            operands++;
        else if (!strchr(a->word[i], '=') && (flag = valued(a->verb, a->word[i], strlen(a->word[i])))) {
            if (!strcmp(flag->name, "-C") && i + 1 < a->n && chdir(a->word[i + 1]) != 0)
                return; /* there are no files in a folder that is not there */
            if (i + 1 == a->n)
                break;
            i++;
        }
        flag = NULL;
    }
    const char *equals = strchr(a->now, '=');
    a->flag = flag;
    if (flag) {
        offer_kind(a, flag->value, true);
    } else if (!only_operands && !strncmp(a->now, "--", 2) && equals && equals - a->now < 200 &&
               (flag = valued(a->verb, a->now, (size_t)(equals - a->now)))) {
        snprintf(a->before, sizeof a->before, "%.*s", (int)(equals + 1 - a->now), a->now);
        a->now = equals + 1;
        offer_kind(a, flag->value, true);
    } else if (!only_operands && a->now[0] == '-') {
        offer_flags(a);
    } else {
        offer_operand(a, operands);
    }
}

/* `word`: those behind the name of the program. */
static int run_words(Call *call, const char **word, int n)
{
    int n_verbs;
    const Verb *const *verbs = all_verbs(&n_verbs);
    Asked a = {.call = call, .now = n ? word[n - 1] : "", .before = ""};
    if (n < 2 || (n == 2 && !strcmp(word[0], "help"))) {
        for (int i = 0; i < n_verbs; i++)
            offer(&a, verbs[i]->name, verbs[i]->summary);
        if (n < 2) {
            offer(&a, "help", "examples and flags of a verb");
            if (a.now[0] == '-') {
                offer(&a, "--help", "all verbs");
                offer(&a, "--version", "version and build id");
            }
        }
        return VWN_OK;
    }
    for (int i = 0; i < n_verbs; i++)
        if (!strcmp(verbs[i]->name, word[0]))
            a.verb = verbs[i];
    a.word = word + 1;
    a.n = n - 2;
    if (a.verb)
        answer(&a);
    return VWN_OK;
}

/* ---- scripts ---- */

/* Bash takes `=` and `:` for words of their own: they are put together again, and what stands before is not repeated. */
static const char bash[] =
    "# vwn for bash: eval \"$(vwn completions bash)\", or as a file of the folder bash-completion/completions\n"
    "_vwn() {\n"
    "    local line now= glued=0 i\n"
    "    local -a words=()\n"
    "    for ((i = 1; i <= COMP_CWORD; i++)); do\n"
    "        now=${COMP_WORDS[i]}\n"
    "        if ((i > 1)) && [[ $now == [=:] || ${COMP_WORDS[i - 1]} == [=:] ]]; then\n"
    "            words[${#words[@]} - 1]+=$now\n"
    "        else\n"
    "            words+=(\"$now\")\n"
    "        fi\n"
    "    done\n"
    "    [[ $now == [=:] ]] && now=\n"
    "    glued=$((${#words[@]} ? ${#words[${#words[@]} - 1]} - ${#now} : 0))\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        line=${line%%$'\\t'*}\n"
    "        COMPREPLY+=(\"${line:glued}\")\n"
    "    done < <(\"${COMP_WORDS[0]}\" completions words -- \"${words[@]}\" 2> /dev/null)\n"
    "    if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *[/=] ]]; then compopt -o nospace; fi\n"
    "    if [[ ${#COMPREPLY[@]} -eq 1 ]]; then printf -v COMPREPLY[0] %q \"${COMPREPLY[0]}\"; fi\n"
    "}\n"
    "complete -F _vwn vwn\n";

static const char zsh[] =
    "#compdef vwn\n"
    "# vwn for zsh: as the file _vwn of a folder of $fpath, or source <(vwn completions zsh)\n"
    "_vwn() {\n"
    "    local line word\n"
    "    local -a given done open done_text open_text\n"
    "    given=(\"${(@Q)words[2,CURRENT]}\")\n"
    "    for line in ${(f)\"$(\"${words[1]}\" completions words -- \"${given[@]}\" 2> /dev/null)\"}; do\n"
    "        word=${line%%$'\\t'*}\n"
    "        if [[ $word == *[/=] ]]; then\n"
    "            open+=(\"$word\") open_text+=(\"${line/$'\\t'/  }\")\n"
    "        else\n"
    "            done+=(\"$word\") done_text+=(\"${line/$'\\t'/  }\")\n"
    "        fi\n"
    "    done\n"
    "    compadd -l -d done_text -a done\n"
    "    compadd -S '' -l -d open_text -a open\n"
    "}\n"
    "if [[ $funcstack[1] == _vwn ]]; then _vwn \"$@\"; else compdef _vwn vwn; fi\n";

static const char fish[] =
    "# vwn for fish: as the file vwn.fish of the folder completions, or vwn completions fish | source\n"
    "function __vwn_words\n"
    "    set -l given (commandline -opc) (commandline -ct)\n"
    "    $given[1] completions words -- $given[2..-1] 2> /dev/null\n"
    "end\n"
    "complete -c vwn -f -a '(__vwn_words)'\n";

static int run(Call *call)
{
    static const struct {
        const char *name, *script;
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const char *what = call->operand[0];
    if (!strcmp(what, "words"))
        return run_words(call, call->operand + 1, call->n_operands - 1);
    if (call->n_operands > 1)
        return usage_error(call, "`vwn completions %s` has no use for `%s`", what, call->operand[1]);
    if (!strcmp(what, "man")) {
        write_manual(&call->ui);
        return VWN_OK;
    }
    for (size_t i = 0; i < sizeof shells / sizeof shells[0]; i++)
        if (!strcmp(what, shells[i].name)) {
            ui_put(&call->ui, shells[i].script, strlen(shells[i].script));
            return VWN_OK;
        }
    return usage_error(call, "no completions for `%s`: one of bash, zsh, fish, man, words is needed", what);
}

const Verb verb_completions = {
    .name = "completions",
    .operands = "bash|zsh|fish|man",
    .summary = "Prints what a shell completes, or the manual page",
    .example = {{"vwn completions bash > vwn.bash", "to be read by ~/.bashrc; zsh: source <(vwn completions zsh)"},
                {"vwn completions man > vwn.1", "the manual page"}},
    .text = "The scripts ask `vwn completions words -- WORD...`, the words behind `vwn` up to the one that is being\n"
            "written: it prints what that may become, one a line, with a tab and what it means.\n",
    .takes = 0,
    .least = 1,
    .most = -1,
    .run = run};
