/* dump_batches SOURCE EPOCHS: the batches of the C loader as bytes, for tests/cli/python_module.py.
 */
#include "tandem/data.h"

#include <stdio.h>
#include <stdlib.h>

static size_t put(const void *values, size_t n_bytes)
{
    return fwrite(values, 1, n_bytes, stdout);
}

int main(int argc, char **argv)
{
    tdm_error err = {0};
    tdm_loader *loader = NULL;
    const struct tdm_batch *batch = NULL;
    struct tdm_loader_options options = tdm_loader_options_default();
    if (argc != 3)
        return 2;
    options.source = argv[1];
    options.size = 24;
    options.batch = 7;
    options.seed = 5;
    options.augment = "flip,crop:2";
    tdm_status status = tdm_loader_open(&options, &loader, &err);
    for (int epoch = 0; status == TDM_OK && epoch < atoi(argv[2]); epoch++) {
        status = tdm_loader_begin(loader, epoch, &err);
        while (status == TDM_OK) {
            status = tdm_loader_next(loader, &batch, &err);
            if (status != TDM_OK || !batch)
                break;
            put(batch->pixels, (size_t)batch->n * 24 * 24 * 3);
            put(batch->labels, (size_t)batch->n * sizeof *batch->labels);
            put(batch->items, (size_t)batch->n * sizeof *batch->items);
        }
    }
    if (status != TDM_OK)
        fprintf(stderr, "%s\n", tdm_error_sentence(&err, 0));
    tdm_loader_close(loader);
    return tdm_status_exit(status);
}
