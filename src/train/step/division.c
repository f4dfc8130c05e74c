/* The number of teams is the one that ends first by a simple estimate. */
#include "train/step/division.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

int tdmi_division_first(const struct tdmi_division *division, int team)
{
    return division->n_threads * team / division->n_teams;
}

int tdmi_division_team_of(const struct tdmi_division *division, int thread)
{
    int team = 0;
    while (team + 1 < division->n_teams && tdmi_division_first(division, team + 1) <= thread)
        team++;
    return team;
}

/* Time until the last of n_groups has been computed, if one thread takes 1 for a group. Teams take
 * the next group when they are free; sizes differ by one at most. */
static double time_of(int n_groups, int n_threads, int n_teams, double loss)
{
    const int smallest = n_threads / n_teams;
    const int rounds = (n_groups + n_teams - 1) / n_teams;
    return rounds * (1.0 / smallest) * (1.0 + loss * (smallest - 1));
}

static int teams_for(int n_groups, int n_threads, int largest, double loss)
{
    int best = 1;
    for (int n = 1; n <= least(n_groups, n_threads); n++) {
        const bool fits = (n_threads + n - 1) / n <= largest;
        const bool best_fits = (n_threads + best - 1) / best <= largest;
        if (!best_fits || (fits && time_of(n_groups, n_threads, n, loss) <=
                                       time_of(n_groups, n_threads, best, loss)))
            best = n;
    }
    return best;
}

struct tdmi_division tdmi_division_of(int n_groups, int n_threads, int largest, double loss,
                                      bool has_wave)
{
    const int rest = n_groups % n_threads;
    const int whole = n_groups - rest;
    struct tdmi_division division = {.n_threads = n_threads};
    if (rest > 0) {
        division.n_teams = teams_for(rest, n_threads, largest, loss);
        division.n_alone = whole;
        division.n_last = has_wave ? least(division.n_teams, rest) : 0;
        division.n_by_teams = rest - division.n_last;
    } else if (has_wave && n_groups > 0) {
        division.n_teams = division.n_last = n_threads;
        division.n_alone = whole - n_threads;
    } else {
        division.n_alone = whole;
    }
    /* Threads beyond the largest teams have nothing to do. */
    if (division.n_teams > 0)
        division.n_threads = least(n_threads, division.n_teams * largest);
    return division;
}
