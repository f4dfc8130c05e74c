/* Images that enter a batch. */
#include "unit.h"
#include "serve/share.h"

static const int64_t plenty = INT64_C(1) << 60;

/* Share images of one pixel each. */
static void share(const int *rests, int n, int room, int *shares)
{
    static int64_t ones[300];
    struct tdmi_share_request requests[20];
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        ones[i] = 1;
    for (int i = 0; i < n; i++)
        requests[i] = (struct tdmi_share_request){rests[i], ones};
    tdmi_share_images(requests, n, (struct tdmi_share_room){room, plenty}, shares);
}

#define SHARES(room, n, ...)                                    \
    do {                                                        \
        const int numbers[2][n] = {__VA_ARGS__};                \
        int shares[n];                                          \
        share(numbers[0], n, room, shares);                     \
        assert_memory_equal(shares, numbers[1], sizeof shares); \
    } while (0)

TEST(who_is_alone_has_all_of_it)
{
    SHARES(16, 1, {1}, {1});
    SHARES(16, 1, {256}, {16});
    SHARES(1, 1, {256}, {1});
}

TEST(one_picture_slips_through_beside_a_form)
{
    SHARES(16, 3, {256, 1, 1}, {14, 1, 1});
    SHARES(16, 3, {1, 256, 1}, {1, 14, 1});
    SHARES(4, 6, {256, 256, 1, 1, 1, 1}, {2, 1, 1, 0, 0, 0});
}

TEST(the_oldest_form_goes_on_before_the_next)
{
    SHARES(16, 3, {256, 256, 256}, {14, 1, 1});
    SHARES(16, 3, {9, 256, 256}, {9, 6, 1});
    SHARES(16, 4, {2, 2, 2, 2}, {2, 2, 2, 2});
}

TEST(a_turn_is_never_larger_than_its_room)
{
    int rests[20], shares[20];
    for (int room = 1; room < 40; room++) {
        for (int n = 1; n <= 20; n++) {
            int sum = 0, wanted = 0;
            for (int i = 0; i < n; i++)
                wanted += rests[i] = 1 + (i * 7 + room) % 11;
            share(rests, n, room, shares);
            for (int i = 0; i < n; i++) {
                assert_in_range(shares[i], 0, rests[i]);
                sum += shares[i];
            }
            assert_int_equal(sum, wanted < room ? wanted : room); /* and never smaller */
            assert_true(shares[0] >= 1);
        }
    }
}

/* Requests of four pictures, of so many pixels each, in a turn of 16 pictures and 100 pixels. */
static void check_pixels(int n, const int64_t *pixels, const int *wanted)
{
    int64_t all[8][4];
    struct tdmi_share_request requests[8];
    int shares[8];
    for (int i = 0; i < n; i++) {
        for (int p = 0; p < 4; p++)
            all[i][p] = pixels[i];
        requests[i] = (struct tdmi_share_request){4, all[i]};
    }
    tdmi_share_images(requests, n, (struct tdmi_share_room){16, 100}, shares);
    for (int i = 0; i < n; i++)
        assert_int_equal(shares[i], wanted[i]);
}

TEST(a_turn_has_room_for_so_many_pixels)
{
    check_pixels(1, (int64_t[]){25}, (int[]){4});
    check_pixels(1, (int64_t[]){26}, (int[]){3});
    /* The oldest has half of them, unless one picture of it takes more; small ones slip through. */
    check_pixels(3, (int64_t[]){25, 25, 1}, (int[]){2, 1, 4});
    check_pixels(3, (int64_t[]){60, 30, 10}, (int[]){1, 1, 1});
    check_pixels(3, (int64_t[]){60, 50, 10}, (int[]){1, 0, 4});
    check_pixels(3, (int64_t[]){100, 1, 0}, (int[]){1, 0, 4});
}

TEST(a_picture_larger_than_a_turn_has_one_alone)
{
    check_pixels(3, (int64_t[]){101, 1, 0}, (int[]){1, 0, 0});
    check_pixels(2, (int64_t[]){1, 101}, (int[]){4, 0});
}

/* Images of one request keep their order. */
TEST(what_does_not_fit_is_not_passed_over)
{
    const int64_t pixels[] = {10, 95, 1, 1};
    const struct tdmi_share_request request = {4, pixels};
    int share_of_it;
    tdmi_share_images(&request, 1, (struct tdmi_share_room){16, 100}, &share_of_it);
    assert_int_equal(share_of_it, 1);
}

TEST_MAIN(NULL, NULL)
