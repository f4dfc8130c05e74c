/*
 * Iterate over the images of a data set in batches: classes, and the mean colour of each.
 *
 *     cc loader.c $(pkg-config --cflags --libs tandem) -o loader
 *     ./loader photos/
 */
#include <tandem/data.h>

#include <stdio.h>

enum { size = 32, most_classes = 100 };

static int fail(const tdm_error *err)
{
    char text[2000];
    tdm_error_format(err, text, sizeof text);
    fputs(text, stderr);
    return tdm_status_exit(err->code);
}

int main(int argc, char **argv)
{
    static double sums[most_classes][3];
    static long images[most_classes];
    tdm_error err = {0};
    tdm_loader *loader = NULL;
    const struct tdm_batch *batch;
    struct tdm_loader_options options;
    if (argc != 2)
        return fprintf(stderr, "usage: loader IMAGES\n"), 2;
    tdm_loader_options_init(&options, sizeof options);
    options.source = argv[1];
    options.size = size;
    if (tdm_loader_open(&options, &loader, &err) != TDM_OK)
        return fail(&err);
    tdm_status status = tdm_loader_next(loader, &batch, &err);
    for (; status == TDM_OK && batch; status = tdm_loader_next(loader, &batch, &err)) {
        for (int i = 0; i < batch->n; i++) {
            const int label = batch->labels[i];
            const unsigned char *pixels = batch->pixels + (size_t)i * size * size * 3;
            if (label < 0 || label >= most_classes)
                continue;
            images[label]++;
            for (int p = 0; p < size * size * 3; p++)
                sums[label][p % 3] += pixels[p] / (double)(size * size);
        }
    }
    for (int c = 0; status == TDM_OK && c < tdm_loader_classes(loader) && c < most_classes; c++)
        if (images[c] > 0)
            printf("%-24s %4ld images, mean colour %3.0f %3.0f %3.0f\n",
                   tdm_loader_class(loader, c), images[c], sums[c][0] / (double)images[c],
                   sums[c][1] / (double)images[c], sums[c][2] / (double)images[c]);
    tdm_loader_close(loader);
    return status == TDM_OK ? 0 : fail(&err);
}
