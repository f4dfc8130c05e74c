/*
 * A team: a few threads that compute one thing together. All members run the same code on the same
 * arguments, and each does its own share of every loop:
 *
 *     const struct tdmi_share mine = tdmi_member_share(member, n);
 *     for (int64_t i = mine.first; i < mine.end; i++)
 *         …
 *     tdmi_member_wait(member);      now every member sees what all have written
 *
 * The stretch from one wait to the next is a region. A member NULL is a thread alone: it has all of
 * every loop and waits for nobody, so code for teams is code for one thread too. Shares depend on n
 * and the number of members only.
 */
#pragma once

#include "base/scope.h"
#include "tandem/error.h"
#include <stdint.h>

typedef struct tdmi_team tdmi_team;

/* Members of a team at most: more gain too little, since the smallest layers have too few rows. */
enum { TDMI_TEAM_MOST = 16 };

struct tdmi_member {
    tdmi_team *team;
    int index, size;
};

struct tdmi_share {
    int64_t first, end;
};

/* CPU time of regions, added up. The members of a measured team run one after the other, so that a
 * large team can be measured on few CPUs. */
struct tdmi_team_log {
    int64_t n_regions;
    double seconds;   /* of all members together */
    double predicted; /* Σ over regions: seconds of all members, times the largest share */
    double longest;   /* Σ over regions: seconds of the slowest member */
};

/* A region of a thread alone, without shares, that began at a time of its CPU clock. */
void tdmi_team_log_alone(struct tdmi_team_log *log, int64_t begin_ns);

tdm_status tdmi_team_new(tdmi_team **team, tdm_error *err) TDM_MUST_USE;
void tdmi_team_free(tdmi_team *team);
TDMI_POINTER_RELEASE(tdmi_team, tdmi_team_free)
/* Set the number of members, while none is at work. may_spin: every member has a CPU of its own.
 * log NULL: the usual, all run at once. */
void tdmi_team_form(tdmi_team *team, int size, bool may_spin, struct tdmi_team_log *log);
/* Members of the largest team among so many threads: one group may be all there is to compute. */
int tdmi_team_largest(int n_threads);
/* A member begins and ends. Every member must, and wait equally often between. */
struct tdmi_member tdmi_team_join(tdmi_team *team, int index);
void tdmi_team_leave(const struct tdmi_member *member);

/* The part of 0 to n - 1 that is the member's: equal parts in the order of the members, but for
 * one. */
struct tdmi_share tdmi_member_share(const struct tdmi_member *member, int64_t n);
/* The same where the work is small beside the rest of the region: a measured team takes note of its
 * largest share only where there is no other. */
struct tdmi_share tdmi_member_small_share(const struct tdmi_member *member, int64_t n);
/* The part of a share that lies in [at, at + n), counted from there; false: none of it does. */
static inline bool tdmi_share_within(struct tdmi_share share, int64_t at, int64_t n,
                                     struct tdmi_share *part)
{
    part->first = share.first > at ? share.first - at : 0;
    part->end = share.end - at < n ? share.end - at : n;
    return part->first < part->end;
}
/* Is it the one that does what cannot be shared? A region without shares counts as serial. */
static inline bool tdmi_member_is_first(const struct tdmi_member *member)
{
    return !member || member->index == 0;
}
static inline int tdmi_member_size(const struct tdmi_member *member)
{
    return member ? member->size : 1;
}
/* Until all members have come here. */
void tdmi_member_wait(const struct tdmi_member *member);
