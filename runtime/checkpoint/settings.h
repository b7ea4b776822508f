/* settings.h - what a run's file says, as a list of names with their values.
 *
 * In:  the text of resolved.vwn.   Out: "D" = "64", "train.optimizer.lr" = "constant(peak = 0.1)", ...
 * The one idea: nothing is evaluated. A resolved file has every choice written out, and values that follow from others are
 * written by them, so two runs whose D differs differ in D alone.
 */
#ifndef VWN_SETTINGS_H
#define VWN_SETTINGS_H

#include "runtime/exec/session.h"

typedef struct Setting {
    Name name;
    const char *value;
} Setting;
typedef VEC(Setting) SettingList;
/* In `a`; none where the text cannot be read. */
SettingList settings_read(Session *s, Arena *a, const char *run);
/* The value, or NULL. */
const char *settings_get(const SettingList *l, Name name);
/* Names whose values differ between the lists, or that one lacks, in order; lists without settings are left out. */
typedef VEC(Name) SettingNames;
SettingNames settings_differing(Arena *a, const SettingList *const *l, size_t n);
/* The setting that holds a value which others pass on: `seed` where the file has `let seed = 1` and `train { seed = seed }`. */
Name settings_holder(const SettingList *l, Ctx *ctx, Name name);
/* Whether two files say the same but for the seed. */
bool settings_same_but_seed(const SettingList *x, const SettingList *y, Ctx *ctx);
/* Whether two files say the same but for how they train: for `train.` and for what is read there alone. */
bool settings_same_model(const SettingList *x, const SettingList *y);

#endif
