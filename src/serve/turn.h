/* Whose pictures are worked on next: a form of many must not keep everybody else waiting. */
#ifndef TANDEM_SERVE_TURN_H
#define TANDEM_SERVE_TURN_H

#include <stdint.h>

struct tdmi_turn_request {
    int n_pictures;        /* that are left of it, 1 or more */
    const int64_t *pixels; /* of each of them */
};

struct tdmi_turn_room {
    int pictures; /* 1 or more */
    int64_t pixels;
};

/* How many pictures of each of n requests, in the order they came, come into a turn: the oldest one
 * goes on with half of the room at least, everybody else with one picture as far as that goes, and
 * what is left is given out in order. One picture of the oldest always comes, however large. */
void tdmi_turn_share(const struct tdmi_turn_request *requests, int n, struct tdmi_turn_room room,
                     int *shares);

#endif
