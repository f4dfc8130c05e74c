/* Networks that a program builds, and their training batch by batch. */
#include "tandem/network.h"
#include "unit.h"

enum { side = 8, n_images = 24, classes = 3 };

static tdm_network *small_network(void)
{
    tdm_network *network = NULL;
    assert_int_equal(tdm_network_new(side, side, 3, &network, NULL), TDM_OK);
    int x = tdm_network_conv(network, 0, 8, 3, 1);
    x = tdm_network_relu(network, tdm_network_batch_norm(network, x));
    const int y = tdm_network_conv(network, tdm_network_depthwise(network, x, 3, 1), 8, 1, 1);
    x = tdm_network_max_pool(network, tdm_network_sum(network, x, y), 2, 2);
    x = tdm_network_dropout(network, tdm_network_global_pool(network, x), 0.1);
    assert_int_equal(tdm_network_finish(network, tdm_network_dense(network, x, classes), NULL),
                     TDM_OK);
    return network;
}

/* One channel of each image is bright: that of its class. */
static struct tdm_batch batch(int n)
{
    static uint8_t pixels[n_images][side * side * 3];
    static int32_t labels[n_images];
    for (int i = 0; i < n_images; i++) {
        labels[i] = i % classes;
        for (int p = 0; p < side * side * 3; p++)
            pixels[i][p] = (uint8_t)((p % 3 == labels[i] ? 180 : 60) + (p * 7 + i * 13) % 50);
    }
    return (struct tdm_batch){.n = n, .pixels = pixels[0], .labels = labels};
}

static tdm_score train(const tdm_network *network, int threads, float *probabilities)
{
    struct tdm_trainer_options options = tdm_trainer_options_default();
    const struct tdm_batch all = batch(n_images);
    tdm_trainer *trainer = NULL;
    tdm_score before = {0}, after = {0};
    options.threads = threads;
    options.group = 5;
    assert_int_equal(tdm_trainer_open(network, &options, &trainer, NULL), TDM_OK);
    for (int step = 0; step < 60; step++) {
        if (step == 50)
            tdm_trainer_set_learning_rate(trainer, 0.002);
        assert_int_equal(tdm_trainer_step(trainer, &all, &before, NULL), TDM_OK);
    }
    assert_int_equal(tdm_trainer_evaluate(trainer, &all, probabilities, &after, NULL), TDM_OK);
    assert_int_equal(before.n, 60 * n_images);
    assert_true(after.loss < before.loss);
    tdm_trainer_close(trainer);
    return after;
}

TEST(a_network_of_ones_own_learns_the_same_at_any_number_of_threads)
{
    static float one[n_images * classes], three[n_images * classes];
    tdm_network *network = small_network();
    assert_int_equal(tdm_network_totals(network)->classes, classes);
    assert_string_equal(tdm_network_node_at(network, 1)->op, "conv");
    const tdm_score score = train(network, 1, one);
    (void)train(network, 3, three);
    assert_int_equal(score.n, n_images);
    assert_int_equal(score.correct, n_images);
    assert_memory_equal(one, three, sizeof one);
    tdm_network_close(network);
}

TEST(a_mistake_is_reported_when_the_network_is_finished)
{
    tdm_network *network = NULL;
    tdm_trainer *trainer = NULL;
    tdm_error err = {0};
    assert_int_equal(tdm_network_new(0, 8, 3, &network, &err), TDM_E_USAGE);
    assert_int_equal(tdm_network_new(8, 8, 2, &network, &err), TDM_E_USAGE);
    assert_int_equal(tdm_network_new(4, 4, 3, &network, &err), TDM_OK);
    assert_int_equal(tdm_trainer_open(network, NULL, &trainer, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "was not finished"));
    const int x = tdm_network_max_pool(network, 0, 9, 1);
    assert_int_not_equal(tdm_network_finish(network, tdm_network_dense(network, x, 2), &err),
                         TDM_OK);
    tdm_network_close(network);
}

TEST(batches_that_do_not_fit_are_refused)
{
    tdm_network *network = small_network();
    struct tdm_trainer_options options = tdm_trainer_options_default();
    tdm_trainer *trainer = NULL;
    tdm_score score = {0};
    tdm_error err = {0};
    int32_t labels[2] = {0, classes};
    struct tdm_batch two = batch(2);
    options.learning_rate = 0;
    assert_int_equal(tdm_trainer_open(network, &options, &trainer, &err), TDM_E_USAGE);
    options.learning_rate = 0.01;
    options.optimizer = "adma";
    assert_int_equal(tdm_trainer_open(network, &options, &trainer, &err), TDM_E_USAGE);
    options.optimizer = "adam";
    options.batch = 2;
    assert_int_equal(tdm_trainer_open(network, &options, &trainer, &err), TDM_OK);
    const struct tdm_batch three = batch(3);
    assert_int_equal(tdm_trainer_step(trainer, &three, &score, &err), TDM_E_USAGE);
    two.labels = labels;
    assert_int_equal(tdm_trainer_evaluate(trainer, &two, NULL, &score, &err), TDM_E_USAGE);
    labels[0] = labels[1] = -1; /* nothing to learn from */
    assert_int_equal(tdm_trainer_step(trainer, &two, &score, &err), TDM_OK);
    assert_int_equal(score.n, 0);
    tdm_trainer_close(trainer);
    tdm_network_close(network);
}

TEST_MAIN(NULL, NULL)
