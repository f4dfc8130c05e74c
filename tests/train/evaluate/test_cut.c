/* The images of a batch among threads: every one once, and shares that are nearly equal. */
#include "train/evaluate/cut.h"
#include "base/team.h"
#include "unit.h"

enum { MOST_IMAGES = 300, MOST_THREADS = 40 };

/* Every thread has as many images alone as any other; teams have the others. */
static void check(int n, int threads, int most, int largest)
{
    const struct tdmi_cut cut = tdmi_cut_of(n, threads, most, largest);
    const int room = tdmi_cut_most(n, threads, most);
    int times[MOST_IMAGES] = {0}, of_thread[MOST_THREADS] = {0};
    for (int i = 0; i < cut.n_pieces; i++) {
        const struct tdmi_piece piece = tdmi_cut_piece(&cut, i);
        assert_in_range(piece.n, 1, most);
        assert_true(piece.n <= room);
        for (int k = piece.first; k < piece.first + piece.n; k++)
            times[k]++;
        of_thread[i % threads] += piece.n;
    }
    for (int i = cut.division.n_alone; i < n; i++)
        times[i]++;
    for (int i = 0; i < n; i++)
        assert_int_equal(times[i], 1);
    for (int t = 0; t < threads; t++)
        assert_int_equal(of_thread[t], n / threads);
    assert_int_equal(cut.division.n_by_teams, n % threads);
    assert_true(cut.division.n_teams <= (n < threads ? n : threads));
}

TEST(every_image_is_computed_once_and_by_as_many_threads_as_there_are)
{
    static const int images[] = {0, 1, 2, 3, 7, 8, 9, 29, 30, 32, 64, 255, 256};
    static const int threads[] = {1, 2, 3, 4, 7, 16, 32, 40};
    static const int mosts[] = {1, 3, 8, 64};
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        for (size_t t = 0; t < sizeof threads / sizeof *threads; t++)
            for (size_t m = 0; m < sizeof mosts / sizeof *mosts; m++) {
                check(images[i], threads[t], mosts[m], tdmi_team_largest(threads[t]));
                check(images[i], threads[t], mosts[m], 1);
            }
}

TEST(pieces_are_as_large_as_may_be_where_all_threads_have_some)
{
    const struct tdmi_cut many = tdmi_cut_of(22, 2, 8, 2);
    assert_int_equal(many.n_pieces, 4);
    assert_int_equal(tdmi_cut_piece(&many, 0).n, 5);
    assert_int_equal(tdmi_cut_piece(&many, 1).first, 5);
    assert_int_equal(tdmi_cut_piece(&many, 2).first, 10);
    assert_int_equal(tdmi_cut_piece(&many, 3).n, 6);
    const struct tdmi_cut one_each = tdmi_cut_of(32, 32, 8, 16);
    assert_int_equal(one_each.n_pieces, 32);
    assert_int_equal(tdmi_cut_piece(&one_each, 31).first, 31);
    assert_int_equal(one_each.division.n_teams, 0);
}

TEST(fewer_images_than_threads_are_computed_by_teams)
{
    const struct tdmi_cut one = tdmi_cut_of(1, 8, 8, 8), two = tdmi_cut_of(14, 4, 8, 4);
    const struct tdmi_cut five = tdmi_cut_of(5, 6, 8, 6);
    assert_int_equal(five.division.n_teams, 5); /* not one team of six, five times */
    assert_int_equal(one.n_pieces, 0);
    assert_int_equal(one.division.n_teams, 1);
    assert_int_equal(one.division.n_threads, 8);
    assert_int_equal(two.division.n_alone, 12);
    assert_int_equal(two.division.n_teams, 2);
}

TEST_MAIN(NULL, NULL)
