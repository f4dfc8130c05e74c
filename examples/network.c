/*
 * Build a small network and train it, batch by batch.
 *
 *     cc network.c $(pkg-config --cflags --libs tandem) -o network
 *     ./network photos/ 3
 */
#include <tandem/network.h>

#include <stdio.h>
#include <stdlib.h>

static tdm_status build(int size, int classes, tdm_network **network, tdm_error *err)
{
    int x = 0; /* the image */
    TDM_TRY(tdm_network_new(size, size, 3, network, err), err, "the example's network");
    for (int channels = 16; channels <= 64; channels *= 2) {
        x = tdm_network_conv(*network, x, channels, 3, 1);
        x = tdm_network_batch_norm(*network, x);
        x = tdm_network_relu(*network, x);
        x = tdm_network_max_pool(*network, x, 2, 2);
    }
    x = tdm_network_global_pool(*network, x);
    return tdm_network_finish(*network, tdm_network_dense(*network, x, classes), err);
}

static tdm_status train_epoch(tdm_trainer *trainer, tdm_loader *loader, int epoch, tdm_error *err)
{
    tdm_score score = {0};
    const struct tdm_batch *batch;
    TDM_TRY(tdm_loader_begin(loader, epoch, err), err, "epoch %d", epoch + 1);
    for (;;) {
        TDM_TRY(tdm_loader_next(loader, &batch, err), err, "epoch %d", epoch + 1);
        if (!batch)
            break;
        TDM_TRY(tdm_trainer_step(trainer, batch, &score, err), err, "epoch %d", epoch + 1);
    }
    printf("epoch %d: loss %.4f, %.1f %% right\n", epoch + 1, score.loss, 100 * score.accuracy);
    return TDM_OK;
}

int main(int argc, char **argv)
{
    tdm_error err = {0};
    tdm_loader *loader = NULL;
    tdm_network *network = NULL;
    tdm_trainer *trainer = NULL;
    struct tdm_loader_options options = tdm_loader_options_default();
    if (argc != 3)
        return fprintf(stderr, "usage: network IMAGES EPOCHS\n"), 2;
    options.source = argv[1];
    options.size = 32;
    tdm_status status = tdm_loader_open(&options, &loader, &err);
    if (status == TDM_OK)
        status = build(options.size, tdm_loader_classes(loader), &network, &err);
    if (status == TDM_OK)
        status = tdm_trainer_open(network, NULL, &trainer, &err);
    for (int epoch = 0; status == TDM_OK && epoch < atoi(argv[2]); epoch++)
        status = train_epoch(trainer, loader, epoch, &err);
    tdm_trainer_close(trainer);
    tdm_network_close(network);
    tdm_loader_close(loader);
    char text[2000];
    tdm_error_format(&err, text, sizeof text);
    fputs(text, stderr);
    return tdm_status_exit(status);
}
