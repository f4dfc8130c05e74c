/* Rounds of pieces of equal size, and the division of what is left. */
#include "train/evaluate/cut.h"

/* One image has less work between two waits than a group (bench/results/scaling.md). */
static const double loss_of_images = 0.15;

struct tdmi_cut tdmi_cut_of(int n_images, int n_threads, int most, int largest)
{
    struct tdmi_cut cut = {
        .division = tdmi_division_of(n_images, n_threads, largest, loss_of_images, false)};
    const int each = cut.division.n_alone / n_threads;
    cut.n_rounds = (each + most - 1) / most;
    cut.n_pieces = cut.n_rounds * n_threads;
    return cut;
}

struct tdmi_piece tdmi_cut_piece(const struct tdmi_cut *cut, int index)
{
    const int n_threads = cut->n_pieces / cut->n_rounds;
    const int each = cut->division.n_alone / n_threads, round = index / n_threads;
    const int before = each * round / cut->n_rounds, end = each * (round + 1) / cut->n_rounds;
    const int n = end - before;
    return (struct tdmi_piece){n_threads * before + index % n_threads * n, n};
}

int tdmi_cut_most(int n_images, int n_threads, int most)
{
    const int each = n_images / n_threads;
    return each < 1 ? 1 : each < most ? each : most;
}
