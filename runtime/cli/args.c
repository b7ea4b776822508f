/* args.c - reads the command line of one verb against its table of flags.
 *
 * In:  argv.   Out: Call.operand, Call.given, or a sentence that says what is wrong.
 * The one idea: every flag is looked up in two tables (the verb's and the common one); a word
 * that is in neither is an error with the nearest flag that is.
 */
#include "cli.h"

#include "compiler/base/list.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Flag common_flags[] = {
    {"--set", "PATH=EXPR", "give a let, an argument or an attribute another value; repeatable"},
    {"--threads", "N", "threads to use (else VWN_THREADS, else all that the process may use)"},
    {"--device", "auto|cpu|cuda|cuda:N", "where it runs (else auto: a GPU where one can be used); also reference"},
    {"--json", NULL, "print JSON"},
    {"-q", NULL, "say only results and errors"},
    {"-v", NULL, "say more"},
    {"--color", "auto|always|never", "colour (else VWN_COLOR, else on terminals)"},
    {"-C", "DIR", "change to this folder first"},
    {"--help", NULL, "print this"},
};
const int n_common_flags = sizeof common_flags / sizeof common_flags[0];

bool verb_has(const Verb *verb, const Flag *flag)
{
    static const struct {
        const char *name;
        int mask;
    } some[] = {{"--set", TAKES_SET}, {"--json", TAKES_JSON}, {"--threads", TAKES_THREADS}, {"--device", TAKES_DEVICE}};
    for (size_t i = 0; i < sizeof some / sizeof some[0]; i++)
        if (strcmp(flag->name, some[i].name) == 0)
            return verb->takes & some[i].mask;
    return true;
}

/* Damerau-Levenshtein distance (adjacent transpositions), for words of up to 63 letters. */
static int distance(const char *a, const char *b)
{
    int n = (int)strlen(a), m = (int)strlen(b), d[65][65];
    if (n > 63 || m > 63)
        return 1000;
    for (int i = 0; i <= n; i++)
        d[i][0] = i;
    for (int j = 0; j <= m; j++)
        d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            if (d[i - 1][j] + 1 < best)
                best = d[i - 1][j] + 1;
            if (d[i][j - 1] + 1 < best)
                best = d[i][j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && d[i - 2][j - 2] + 1 < best)
                best = d[i - 2][j - 2] + 1;
            d[i][j] = best;
        }
    }
    return d[n][m];
}

const char *nearest_word(const char *word, const char *const *words, int n)
{
    const char *best = NULL;
    int limit = (int)strlen(word) / 3 > 1 ? (int)strlen(word) / 3 : 1;
    for (int i = 0; i < n; i++) {
        int far = distance(word, words[i]);
        if (far <= limit) {
            limit = far - 1;
            best = words[i];
        }
    }
    return best;
}

/* The one word that begins so: --temp is --temperature. */
static const char *only_longer(const char *word, const char *const *words, int n)
{
    const char *only = NULL;
    for (int i = 0; i < n; i++) {
        if (strlen(word) < 4 || strncmp(words[i], word, strlen(word)) != 0)
            continue;
        if (only)
            return NULL;
        only = words[i];
    }
    return only;
}

static const Flag *find_flag(const Verb *verb, const char *name, size_t n)
{
    for (int i = 0; i < verb->n_flags; i++)
        if (strlen(verb->flag[i].name) == n && !memcmp(verb->flag[i].name, name, n))
            return &verb->flag[i];
    for (int i = 0; i < n_common_flags; i++)
        if (verb_has(verb, &common_flags[i]) && strlen(common_flags[i].name) == n &&
            !memcmp(common_flags[i].name, name, n))
            return &common_flags[i];
    return NULL;
}

/* What a flag of another program is: a flag that the verb has, else in *text where that is said. `known`: it is one of theirs. */
static const char *other_name(const Verb *verb, const char *word, const char *const *names, int n, bool *known,
                              const char **text)
{
    const char *ours, *said;
    *known = false;
    *text = NULL;
    for (size_t i = 0; vwn_other_name(word, i, &ours, &said); i++) {
        *known |= ours != NULL;
        if (!ours && (verb->takes & TAKES_SET) && !*text)
            *text = said;
        for (int k = 0; ours && k < n; k++)
            if (strcmp(names[k], ours) == 0)
                return names[k];
    }
    return NULL;
}

/* Whether the flag that it means is beyond doubt. */
static bool unknown_flag(const Verb *verb, const char *arg, size_t n, char why[512])
{
    const char *names[64];
    int count = 0;
    for (int i = 0; i < verb->n_flags; i++)
        names[count++] = verb->flag[i].name;
    for (int i = 0; i < n_common_flags; i++)
        if (verb_has(verb, &common_flags[i]))
            names[count++] = common_flags[i].name;
    char word[64];
    snprintf(word, sizeof word, "%.*s", n > 63 ? 63 : (int)n, arg);
    bool known;
    const char *place, *near = other_name(verb, word, names, count, &known, &place), *ours;
    char here[128];
    snprintf(here, sizeof here, "%s %s", verb->name, word);
    if (vwn_other_name(here, 0, &ours, &place))
        near = NULL;
    else if (n > 2 && word[1] != '-' && find_flag(verb, word, 2) && find_flag(verb, word, 2)->value) {
        snprintf(why, 512, "`%s`: a blank stands before the value: did you mean `%.2s %s`?", word, word, word + 2);
        return true;
    }
    if (place && !near) {
        snprintf(why, 512, "`vwn %s` has no flag `%s`: %s", verb->name, word, place);
        return true;
    }
    near = near ? near : only_longer(word, names, count);
    if (!near && strlen(word) > 2) /* a letter says nothing */
        near = nearest_word(word, names, count);
    snprintf(why, 512, "`vwn %s` has no flag `%s`%s%s%s", verb->name, word, near ? "; did you mean `" : "",
             near ? near : "", near ? "`?" : "");
    return known || (near && n > 4 && (distance(word, near) == 1 || only_longer(word, names, count)));
}

/* A value of "FILE.svg|FILE.json|-" ends in one of these: no model, text or checkpoint is written over by mistake. */
static bool ends_as_wanted(const Flag *flag, const char *value, char why[512])
{
    const char *ends[9];
    char text[64], list[200] = "";
    int n = 0;
    snprintf(text, sizeof text, "%s", flag->value);
    for (char *kind = strtok(text, "|"); kind && n < 8; kind = strtok(NULL, "|")) {
        bool named = !strncmp(kind, "FILE.", 5) || !strncmp(kind, "OUT.", 4);
        ends[n] = named ? strchr(kind, '.') : NULL;
        if (!ends[n] && (strcmp(kind, "-") || !strcmp(value, "-")))
            return true; /* anything is taken there, or this is stdout */
        n += ends[n] != NULL;
    }
    ends[n] = NULL;
    for (int i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", list_gap((size_t)i, (size_t)n, " or "),
                 ends[i]);
    snprintf(why, 512, "`%s %.200s`: the name must end in %s", flag->name, value, list);
    return file_ending(value, ends) >= 0;
}

/* One argument that starts with '-'; *at moves on when its value is the next argument. */
static bool parse_flag(Call *call, char **argv, int *at, int argc, char why[512])
{
    const char *arg = argv[*at], *value = NULL;
    size_t n = strlen(arg);
    const char *equals = arg[1] == '-' ? strchr(arg, '=') : NULL;
    if (equals)
        n = (size_t)(equals - arg);
    const Flag *flag = find_flag(call->verb, arg, n);
    if (!flag && strcmp(arg, "-h") == 0)
        flag = find_flag(call->verb, "--help", 6);
    if (!flag) {
        if (!unknown_flag(call->verb, arg, n, why))
            setting_typed_otherwise(call, argc, argv, *at, why);
        return false;
    }
    if ((!strcmp(flag->name, "--set") || !strcmp(flag->name, "--vary")) && !equals &&
        setting_typed_otherwise(call, argc, argv, *at, why))
        return false;
    if (equals)
        value = equals + 1;
    else if (flag->value && *at + 1 < argc) {
        value = argv[++*at];
        const char *sign = value[0] == '-' && value[1] ? strchr(value, '=') : NULL;
        if (value[0] == '-' && find_flag(call->verb, value, sign ? (size_t)(sign - value) : strlen(value))) {
            snprintf(why, 512, "`%s` needs %s, got the flag `%.60s`%s%s%s%.60s%s", flag->name, flag->value, value,
                     n > 2 ? "; a value that begins so is `" : "", n > 2 ? flag->name : "", n > 2 ? "=" : "",
                     n > 2 ? value : "", n > 2 ? "`" : "");
            return false;
        }
    }
    if (flag->value && !value) {
        snprintf(why, 512, "`%s` needs a value: %s %s", flag->name, flag->name, flag->value);
        return false;
    }
    if (!flag->value && value) {
        snprintf(why, 512, "`%s` takes no value", flag->name);
        return false;
    }
    if (flag->value && !ends_as_wanted(flag, value, why))
        return false;
    call->given[call->n_given].flag = flag;
    call->given[call->n_given++].value = value ? value : "";
    return true;
}

bool call_parse(Call *call, int argc, char **argv, char why[512])
{
    bool only_operands = false;
    const Verb *verb = call->verb;
    for (int i = 0; i < argc; i++) {
        if ((verb->takes & TAKES_REST) && call->n_operands)
            call->operand[call->n_operands++] = argv[i];
        else if (!only_operands && strcmp(argv[i], "--") == 0)
            only_operands = true;
        else if (argv[i][0] != '-' && setting_typed_otherwise(call, argc, argv, i, why))
            return false;
        else if (only_operands || argv[i][0] != '-' || !argv[i][1])
            call->operand[call->n_operands++] = argv[i];
        else if (!parse_flag(call, argv, &i, argc, why))
            return false;
    }
    call->json = call_flag(call, "--json") != NULL;
    call->verbose = call_flag(call, "-v") != NULL;
    if (call_flag(call, "--help"))
        return true;
    if (!(verb->takes & TAKES_REST))
        runs_by_name(call);
    if (call->n_operands < verb->least) {
        snprintf(why, 512, "`vwn %s` needs %s", verb->name, verb->operands);
        return false;
    }
    if (verb->most >= 0 && call->n_operands > verb->most) {
        snprintf(why, 512, "`vwn %s` has no use for `%s`", verb->name, call->operand[verb->most]);
        return false;
    }
    return true;
}

const char *call_flag(const Call *call, const char *name)
{
    for (int i = call->n_given; i-- > 0;)
        if (strcmp(call->given[i].flag->name, name) == 0)
            return call->given[i].value;
    return NULL;
}

const char **call_flags(const Call *call, const char *name, size_t *n)
{
    const char **values = calloc((size_t)call->n_given + 1, sizeof *values);
    *n = 0;
    for (int i = 0; values && i < call->n_given; i++)
        if (strcmp(call->given[i].flag->name, name) == 0)
            values[(*n)++] = call->given[i].value;
    return values;
}

bool call_whole(Call *call, const char *name, int64_t lo, int64_t hi, int64_t *out)
{
    const char *text = call_flag(call, name);
    if (!text)
        return true;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (end == text || *end || errno || v < lo || v > hi) {
        if (hi == INT64_MAX)
            usage_error(call, "`%s %s`: a whole number from %lld on is needed", name, text, (long long)lo);
        else
            usage_error(call, "`%s %s`: a whole number from %lld to %lld is needed", name, text, (long long)lo,
                        (long long)hi);
        return false;
    }
    *out = v;
    return true;
}

bool call_real(Call *call, const char *name, double lo, double hi, double *out)
{
    const char *text = call_flag(call, name);
    if (!text)
        return true;
    char *end;
    double v = strtod(text, &end);
    if (end == text || *end || !isfinite(v) || v < lo || v > hi) {
        usage_error(call, "`%s %s`: a number from %g to %g is needed", name, text, lo, hi);
        return false;
    }
    *out = v;
    return true;
}

bool call_quantity(Call *call, const char *name, const char *unit, int64_t *out)
{
    const char *text = call_flag(call, name);
    if (!text)
        return true;
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    bool number = isdigit((unsigned char)*text) && !errno && v > 0;
    if (number && *end == 'k') {
        number = v <= INT64_MAX / 1000;
        v *= number ? 1000 : 1;
        end++;
    }
    while (*end == ' ')
        end++;
    size_t n = strlen(unit);
    bool unit_fits = strncmp(end, unit, n) == 0 && (!end[n] || (end[n] == 's' && !end[n + 1]));
    if (!number || !unit_fits) {
        if (number && !*end)
            usage_error(call, "`%s %s`: %s of what? write `%s '%s %ss'`", name, text, text, name, text, unit);
        else
            usage_error(call, "`%s %s`: a count is needed, such as `%s '8 %ss'`", name, text, name, unit);
        return false;
    }
    *out = v;
    return true;
}

int call_choice(Call *call, const char *name, const char *const *words, int unset)
{
    const char *text = call_flag(call, name);
    if (!text)
        return unset;
    char all[256] = "", flag[96], known[96];
    size_t count = 0, n = 0;
    for (; words[count]; count++)
        if (strcmp(words[count], text) == 0)
            return (int)count;
    for (size_t i = 0; i < count && n < sizeof all; i++)
        n += (size_t)snprintf(all + n, sizeof all - n, "%s%s", list_gap(i, count, " or "), words[i]);
    snprintf(flag, sizeof flag, "%s %.60s", name, text);
    const char *ours = NULL, *said = NULL, *near = nearest_word(text, words, (int)count);
    snprintf(known, sizeof known, "; did you mean `%.60s`?", near ? near : "");
    if (vwn_other_name(flag, 0, &ours, &said))
        usage_error(call, "`%s`: %s", flag, said ? said : ours);
    else
        usage_error(call, "`%s %s`: one of %s is needed%s", name, text, all, near ? known : "");
    return -1;
}
