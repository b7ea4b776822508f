/* schedules.h - a small model and its schedules of widths: 16 to 24 layers, each 0.2 to 2 times as wide as the head. */
#ifndef TRAIN_SCHEDULES_H
#define TRAIN_SCHEDULES_H

enum { SCHEDULE_SETS = 2, SCHEDULE_STEPS = 3 };
typedef struct Schedule {
    char layers[32], widths[512];
    const char *set[SCHEDULE_SETS]; /* of vwn_file_options */
} Schedule;

extern const char schedule_model[]; /* a file that trains for SCHEDULE_STEPS on a file `text` beside it */
void make_schedule(Schedule *p, int i);

#endif
