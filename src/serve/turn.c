/*
 * In turn would be fair and useless: sixteen forms at once would all be late, where one after the
 * other most are in time. So the oldest always gets on, and what is small slips through beside it.
 */
#include "serve/turn.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

void tdmi_turn_share(const int *rests, int n, int room, int *shares)
{
    for (int i = 0; i < n; i++) {
        shares[i] = least(i == 0 ? least(rests[0], (room + 1) / 2) : 1, room);
        room -= shares[i];
    }
    for (int i = 0; i < n; i++) {
        const int more = least(rests[i] - shares[i], room);
        shares[i] += more;
        room -= more;
    }
}
