/*
 * How the groups of a batch are divided among threads. As many groups as fill all threads are each
 * computed by one thread alone. What is left is computed by teams of neighbouring threads
 * (base/team.h), so that no thread is idle:
 *
 *     groups 6, threads 4      thread 0   [0][4.....]
 *                              thread 1   [1][4.....]      4 alone, then 2 teams of 2
 *                              thread 2   [2][5.....]
 *                              thread 3   [3][5.....]
 *
 * A pure function. It decides nothing about results.
 */
#pragma once

#include <stdbool.h>

struct tdmi_division {
    int n_threads;  /* at work */
    int n_alone;    /* groups that one thread computes, and that end before teams begin */
    int n_by_teams; /* groups that teams compute, in any order */
    int n_last;     /* groups of the last wave, one for each of the first teams */
    int n_teams;    /* 0: all groups are computed alone */
};

/* Loss of a team whose members compute a group of a training step. */
#define TDMI_DIVISION_LOSS 0.02

/* largest: members of a team at most. loss: the part of its speed that each member more costs a
 * team, by waiting and by shares that are not equal. has_wave: the last groups run segment by
 * segment, side by side. */
struct tdmi_division tdmi_division_of(int n_groups, int n_threads, int largest, double loss,
                                      bool has_wave);
/* Threads [first, end) are those of a team. */
int tdmi_division_first(const struct tdmi_division *division, int team);
int tdmi_division_team_of(const struct tdmi_division *division, int thread);
