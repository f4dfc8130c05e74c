/*
 * The size that a machine gives the images of a source: by seconds that were measured, and their
 * measurement.
 */
#include "train/choice/estimate.h"
#include "train/choice/probe.h"
#include "train/choice/speed.h"
#include "train/pictures.h"

#include <math.h>

TEST(a_slow_machine_gives_many_images_a_smaller_size)
{
    static const struct {
        double network_second, decode_second;
        int64_t n_images;
        int side; /* that is chosen; 0: the network's own, 224 */
    } cases[] = {
        {0.01, 0.002, 10000, 0},   /* two minutes */
        {0.01, 0.002, 50000, 0},   /* ten */
        {0.01, 0.002, 51000, 192}, /* a little more: 7.9 minutes at 192 */
        {0.02, 0.0, 58000, 160},   /* 9.9 minutes at 160 */
        {0.05, 0.0, 36000, 128},   /* 9.8 at 128 */
        {0.5, 0.1, 100000, 128},   /* long at any size */
        {0.001, 0.1, 10000, 0},    /* decoding takes long */
        {0.0, 0.1, 100000, 0},     /* not measured */
        {5.0, 0.1, 999, 0},        /* few images */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct tdmi_speed speed = {224, cases[i].network_second, cases[i].decode_second};
        if (tdmi_speed_side(&speed, cases[i].n_images) != cases[i].side)
            fail_msg("case %zu: %d pixels", i, tdmi_speed_side(&speed, cases[i].n_images));
    }
    const struct tdmi_speed small = {96, 1.0, 0.0};
    assert_int_equal(tdmi_speed_side(&small, 1000000), 0);
    const struct tdmi_speed speed = {200, 0.02, 0.005};
    assert_true(tdmi_speed_seconds(&speed, 1000, 0) == 1000 * 0.025);
    assert_true(tdmi_speed_seconds(&speed, 1000, 100) == 1000 * (0.25 * 0.02 + 0.005));
}

TEST(small_images_are_enlarged_to_a_usual_size_only)
{
    static const struct {
        int side, own, size; /* size: 0, the network's own */
    } cases[] = {{100, 224, 160}, {160, 224, 160}, {161, 224, 192}, {192, 224, 192}, {193, 224, 0},
                 {500, 224, 0},   {193, 299, 0},   {150, 160, 0},   {90, 96, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tdmi_size_of_images(cases[i].side, cases[i].own), cases[i].size);
}

TEST(a_network_from_scratch_gets_small_images_as_they_are)
{
    static const struct {
        int side, own, size;
    } cases[] = {{32, 64, 32}, {28, 64, 32}, {8, 64, 32}, {33, 64, 40},
                 {48, 64, 48}, {57, 64, 0},  {64, 64, 0}, {500, 64, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(tdmi_size_from_scratch(cases[i].side, cases[i].own), cases[i].size);
}

/* Ten epochs of 400 images, three forward passes each, and of 100 for the validation; features of
 * 500 images; and all are decoded for both. */
TEST(a_probe_takes_as_long_as_its_passes)
{
    const double forward = 10 * (400 / TDMI_FORWARD_PART + 100);
    assert_true(fabs(tdmi_probe_seconds(60000, 0.001, 0.0, 0.0) - 0.001 * forward) < 1e-9);
    assert_true(fabs(tdmi_probe_seconds(500, 0.0, 0.01, 0.002) - 500 * 0.014) < 1e-9);
    assert_true(fabs(tdmi_probe_seconds(50, 0.001, 0.01, 0.002) - (0.0001 * forward + 50 * 0.014)) <
                1e-9);
}

TEST_WITH(the_network_of_a_weights_file_is_timed, begin_with_sixty, end_with_tree)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = small_training(tree);
    struct tdmi_train_config config = {0};
    struct tdmi_compute compute = {0};
    struct tdmi_speed speed = {.decode_second = 0.5};
    tdm_error err = {0};
    options.run = below(tree, "run");
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(tdmi_train_config_read(&options, &config, &err), TDM_OK);
    assert_int_equal(tdmi_comm_open(&(struct tdmi_launch){.world = 1}, &compute.comm, &err),
                     TDM_OK);
    assert_int_equal(tdmi_compute_open(&config, &compute, &err), TDM_OK);
    if (tdmi_speed_measure(&compute, below(tree, "run/best.safetensors"),
                           &(struct tdmi_import_request){.head = {.classes = 7}}, &speed,
                           &err) != TDM_OK)
        fail_msg("%s", tdm_error_sentence(&err, 0));
    assert_true(speed.side > 0 && speed.network_second > 0.0 && speed.network_second < 10.0);
    assert_true(speed.decode_second == 0.5);
    double lenet = 0.0, convnet = 0.0, small = 0.0;
    assert_int_equal(tdmi_speed_of_new(&compute, "lenet5", 0, 7, &lenet, &err), TDM_OK);
    assert_int_equal(tdmi_speed_of_new(&compute, "convnet7", 0, 7, &convnet, &err), TDM_OK);
    assert_true(lenet > 0.0 && lenet < convnet && convnet < 10.0); /* 0.4 and 70 million products */
    assert_int_equal(tdmi_speed_of_new(&compute, "convnet7", 16, 7, &small, &err), TDM_OK);
    assert_true(small > 0.0 && small < convnet); /* 4 million */
    tdmi_compute_close(&compute);
}

TEST_MAIN(NULL, NULL)
