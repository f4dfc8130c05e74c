/*
 * Round robin would be fair and useless: sixteen large requests at once would all be late, where
 * one after the other most are in time. So the oldest request always advances, and small ones run
 * beside it.
 */
#include "serve/share.h"

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Take as many more of its images, in order, as fit. */
static void give(const struct tdmi_share_request *request, int most, struct tdmi_share_room *room,
                 int *share)
{
    most = least(least(most, request->n_pictures - *share), room->pictures);
    for (; most > 0 && request->pixels[*share] <= room->pixels; most--) {
        room->pixels -= request->pixels[(*share)++];
        room->pictures--;
    }
}

void tdmi_share_images(const struct tdmi_share_request *requests, int n,
                       struct tdmi_share_room room, int *shares)
{
    struct tdmi_share_room half = {(room.pictures + 1) / 2, room.pixels - room.pixels / 2};
    int first = 0;
    for (int i = 0; i < n; i++)
        shares[i] = 0;
    give(&requests[0], half.pictures, &half, &first);
    give(&requests[0], first > 0 ? first : 1, &room, &shares[0]);
    if (shares[0] == 0) { /* larger than the whole batch: it runs alone */
        shares[0] = 1;
        return;
    }
    for (int i = 1; i < n; i++)
        give(&requests[i], 1, &room, &shares[i]);
    for (int i = 0; i < n; i++)
        give(&requests[i], requests[i].n_pictures, &room, &shares[i]);
}
