/*
 * How the images of a batch are divided among threads where they do not influence each other. As
 * many images as fill all threads are each computed by one thread alone, in pieces as large as is
 * handy. The images that are left, fewer than threads, are computed by teams, one image at a time:
 *
 *     images 14, threads 4     thread 0   [ 0  1  2][12]
 *                              thread 1   [ 3  4  5][12]       3 alone, then 2 teams of 2
 *                              thread 2   [ 6  7  8][13]
 *                              thread 3   [ 9 10 11][13]
 *
 * A pure function. It decides nothing about results.
 */
#pragma once

#include "train/step/division.h"

struct tdmi_cut {
    struct tdmi_division division; /* of images */
    int n_rounds, n_pieces;        /* a round is a piece for every thread */
};

/* Images [first, first + n). */
struct tdmi_piece {
    int first, n;
};

/* most: images of a piece; largest: members of a team; at most. */
struct tdmi_cut tdmi_cut_of(int n_images, int n_threads, int most, int largest);
/* Piece `index` of those that one thread computes alone; all of a round are equally large. */
struct tdmi_piece tdmi_cut_piece(const struct tdmi_cut *cut, int index);
/* Images of the largest piece of any batch of up to n_images. */
int tdmi_cut_most(int n_images, int n_threads, int most);
