/* codes.c - the list of diagnostic codes.
 *
 * In:  grammar/codes.def.   Out: whether it is sorted, complete and in form.
 * When: quick.
 */
#include "grammar/codes.h"
#include "test.h"

int main(void)
{
    Test t = {0};
    size_t n = diag_code_count();
    const char *title;
    for (size_t i = 0; i < n; i++) {
        const char *code = diag_code_at(i), *text = diag_explain(code, &title);
        int before = t.failures;
        EXPECT(&t, strlen(code) == 5 && (code[0] == 'E' || code[0] == 'W'));
        EXPECT(&t, strspn(code + 1, "0123456789") == 4);
        EXPECT(&t, i == 0 || strcmp(diag_code_at(i - 1), code) < 0);
        EXPECT(&t, text && text[0] && text[strlen(text) - 1] == '\n' && title && title[0]);
        if (t.failures > before)
            printf("  in %s\n", code);
    }
    static const char *const named[] = {"E0001", "E0002", "E0003", "E0004", "E0005", "E0006", "E0007", "E0008", "E0101",
                                        "E0102", "E0103", "E0104", "E0105", "E0201", "E0202", "E0203", "E0301", "E0302",
                                        "E0303", "E0304", "E0305", "E0306", "E0401", "E0402", "E0501", "E0502", "E0503",
                                        "E0504", "E0601", "E0602", "E0705", "E0801", "W0304"};
    for (size_t i = 0; i < COUNT_OF(named); i++)
        EXPECT(&t, diag_explain(named[i], NULL) != NULL);
    static const char *const lints[] = {
        "unused_let:",         "dead_weights:",        "no_norm:",        "vocab_not_padded:",
        "head_dim_unaligned:", "tie_with_wide_state:", "lr_never_decays:"};
    for (size_t i = 0; i < COUNT_OF(lints); i++) {
        bool found = false;
        for (size_t k = 0; k < n && !found; k++) {
            diag_explain(diag_code_at(k), &title);
            found = !strncmp(title, lints[i], strlen(lints[i]));
        }
        EXPECT(&t, found);
    }
    EXPECT(&t, diag_explain("E9999", &title) == NULL && diag_code_at(n) == NULL);
    return test_end(&t);
}
