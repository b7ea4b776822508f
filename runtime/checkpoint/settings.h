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

#endif
