/* Whose pictures are worked on next: a form of many must not keep everybody else waiting. */
#ifndef TANDEM_SERVE_TURN_H
#define TANDEM_SERVE_TURN_H

/* How many pictures of each of n requests, in the order they came, come into a turn of room
 * pictures: the oldest one goes on with half of it at least, everybody else with one picture as far
 * as that goes, and what is left is given out in order. Each of rests is 1 or more, room too. */
void tdmi_turn_share(const int *rests, int n, int room, int *shares);

#endif
