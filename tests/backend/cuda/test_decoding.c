/*
 * Images by another decoder: the loader's batches with a GPU that decodes are those without, to
 * the byte and to the word of what is said of files that are none, where the library that stands
 * for nvJPEG has the host's transform. It decodes what it should, and nothing else; what it refuses
 * the host decodes; what the GPU lacks is reported.
 */
#include "backend/cuda/fakes/fake_nvjpeg.h"
#include "backend/cuda/shim/shim_backend.h"
#include "backend/cuda/fakes/fake_runtime.h"
#include "data/tree.h"
#include "image/pictures.h"
#include "data/loaders.h"
#include "tandem_features.h"
#include "tandem/log.h"

#include <dirent.h>
#include <dlfcn.h>

#if TDM_HAVE_JPEG

enum { side = 24 };

struct fixture {
    struct tree tree;
    tdmi_source *source;
    struct fake_nvjpeg *fake;
    tdmi_device *device;
    const struct tdmi_decoder *decoder;
    int64_t n_skipped; /* by the last loader */
};

/* ---- images -------------------------------------------------------------------------------- */

static void add(struct fixture *f, const char *name, const void *bytes, size_t length)
{
    char path[300];
    snprintf(path, sizeof path, "%c/%s", name[0] % 2 ? 'a' : 'b', name);
    tree_file(&f->tree, path, bytes, length);
}

/* JPEG of an image with edges, orientation in an EXIF segment where it is not 1. */
static void add_jpeg(struct fixture *f, const char *name, int width, int height, int quality,
                     int orientation)
{
    static const uint8_t exif[] = {0xff, 0xe1, 0, 34, 'E', 'x', 'i', 'f', 0,    0, 'I', 'I',
                                   42,   0,    8, 0,  0,   0,   1,   0,   0x12, 1, 3,   0,
                                   1,    0,    0, 0,  0,   0,   0,   0,   0,    0, 0,   0};
    TDMI_AT_END(tdmi_image_release) tdmi_image image = {0};
    TDMI_AT_END(tdmi_text_release) tdmi_text jpeg = {0}, whole = {0};
    assert_int_equal(tdmi_image_reshape(&image, width, height, NULL), TDM_OK);
    for (unsigned i = 0; i < 3u * (unsigned)(width * height); i++)
        image.pixels[i] = (uint8_t)(i * i / 7 % 251 > 120 ? 230 - i % 31 : i % 97);
    assert_int_equal(tdmi_image_encode(&image, TDMI_IMAGE_JPEG, quality, &jpeg, NULL), TDM_OK);
    uint8_t segment[sizeof exif];
    memcpy(segment, exif, sizeof exif);
    segment[28] = (uint8_t)orientation;
    tdmi_text_add(&whole, jpeg.bytes, 2);
    if (orientation != 1)
        tdmi_text_add(&whole, segment, sizeof segment);
    tdmi_text_add(&whole, jpeg.bytes + 2, jpeg.length_bytes - 2);
    add(f, name, whole.bytes, whole.length_bytes);
}

/* Every file of the fuzzers' corpus of images, whole, cut and with a byte in the middle changed.
 */
static void add_corpus(struct fixture *f)
{
    char folder[1000], name[300];
    in_checkout("fuzz/corpus/image", folder, sizeof folder);
    DIR *files = opendir(folder);
    assert_non_null(files);
    for (const struct dirent *entry; (entry = readdir(files)) != NULL;) {
        if (!strstr(entry->d_name, ".jpg") && !strstr(entry->d_name, ".png"))
            continue;
        struct bytes file = read_corpus(entry->d_name);
        uint8_t *bytes = file.bytes;
        add(f, entry->d_name, bytes, file.length);
        snprintf(name, sizeof name, "cut-%s", entry->d_name);
        add(f, name, bytes, file.length - file.length / 8);
        snprintf(name, sizeof name, "bent-%s", entry->d_name);
        bytes[file.length - file.length / 8] ^= 0x55;
        add(f, name, bytes, file.length);
        tdmi_free(file.bytes);
    }
    (void)closedir(files);
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    tdm_log_set_level(TDM_LOG_SILENT);
    f->tree = tree_new();
    add_corpus(f);
    for (int i = 0; i < 24; i++) {
        char name[40];
        snprintf(name, sizeof name, "%c%02d.jpg", 'm' + i % 2, i);
        add_jpeg(f, name, 1 + i * i * 7 % 131, 1 + i * 29 % 83, i % 3 ? 80 : 96, 1 + i % 8);
    }
    add_jpeg(f, "same.jpg", side, side, 90, 1);
    add_jpeg(f, "wide.jpg", 10 * side, side, 90, 1);
    add_jpeg(f, "tall.jpg", side, 30 * side, 90, 1);
    tdm_error err = {0};
    assert_ok(tdmi_source_open(f->tree.root, NULL, &f->source, &err), &err);
    void *library = dlopen(FAKE_NVJPEG, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    f->fake = dlsym(library, "fake_nvjpeg");
    tdmi_shim_nvjpeg(FAKE_NVJPEG);
    fake_runtime_guard(true);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(f->fake->alive, 0);
    tdmi_source_close(f->source);
    tree_free(&f->tree);
    free(f);
    return 0;
}

static void open_decoder(struct fixture *f)
{
    tdm_error err = {0};
    assert_int_equal(tdmi_backend_shim.device.open(0, &f->device, &err), TDM_OK);
    assert_ok(tdmi_backend_shim.pictures->open(&tdmi_backend_shim, f->device, &f->decoder, &err),
              &err);
}

static void close_decoder(struct fixture *f)
{
    tdmi_backend_shim.pictures->close(f->decoder);
    tdmi_backend_shim.device.close(f->device);
    f->decoder = NULL;
}

/* ---- batches --------------------------------------------------------------------------------- */

static struct tdmi_loader_options options_of(const struct fixture *f)
{
    return (struct tdmi_loader_options){
        .source = f->source,
        .preprocess = {.width = side, .height = side, .channels = 3, .crop_fraction = 0.875},
        .batch = 32,
        .threads = 3,
    };
}

/* Both epochs of a loader: values, labels and problems, one after the other. */
struct handed {
    tdmi_text values, words;
    int64_t n_skipped;
};

static struct handed hand_out(const struct tdmi_loader_options *options)
{
    struct handed it = {.n_skipped = 0};
    tdm_error err = {0};
    tdmi_loader *loader;
    const struct tdmi_batch *batch;
    const size_t bytes = (size_t)options->preprocess.width * (size_t)options->preprocess.height *
                         (size_t)options->preprocess.channels;
    assert_ok(tdmi_loader_open(options, &loader, &err), &err);
    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        assert_int_equal(tdmi_loader_seek(loader, epoch, 0, &err), TDM_OK);
        for (;;) {
            assert_ok(tdmi_loader_next(loader, &batch, &err), &err);
            if (!batch)
                break;
            tdmi_text_add(&it.values, batch->values, bytes * (size_t)batch->n);
            for (int i = 0; i < batch->n; i++)
                tdmi_text_printf(&it.words, "%s: %d %s\n",
                                 tdmi_source_item(options->source, batch->items[i]).path,
                                 (int)batch->labels[i], batch->problems[i]);
        }
    }
    it.n_skipped = loader_skips(loader);
    tdmi_loader_close(loader);
    return it;
}

static void release(struct handed *it)
{
    tdmi_text_release(&it->values);
    tdmi_text_release(&it->words);
}

/* Difference of a byte to the host's. */
static int compare(struct fixture *f, struct tdmi_loader_options options)
{
    struct handed wanted = hand_out(&options);
    int far = 0;
    options.decoder = f->decoder;
    struct handed got = hand_out(&options);
    assert_string_equal(tdmi_text_string(&got.words), tdmi_text_string(&wanted.words));
    assert_int_equal(got.n_skipped, wanted.n_skipped);
    f->n_skipped = wanted.n_skipped;
    assert_int_equal(got.values.length_bytes, wanted.values.length_bytes);
    for (size_t i = 0; i < got.values.length_bytes; i++) {
        const int by = abs((uint8_t)got.values.bytes[i] - (uint8_t)wanted.values.bytes[i]);
        far = by > far ? by : far;
    }
    release(&wanted);
    release(&got);
    return far;
}

TEST_WITH(batches_are_those_of_the_host, set_up, tear_down)
{
    struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    open_decoder(f);
    for (int fit = TDMI_FIT_PAD; fit <= TDMI_FIT_STRETCH; fit++)
        for (int channels = 1; channels <= 3; channels += 2) {
            options.preprocess.fit = (enum tdmi_fit)fit;
            options.preprocess.channels = channels;
            options.preprocess.filter = channels == 1 ? TDMI_FILTER_BILINEAR : TDMI_FILTER_LANCZOS;
            f->fake->by_engines = f->fake->by_kernels = f->fake->largest_batch = 0;
            assert_int_equal(compare(f, options), 0);
            assert_true(f->n_skipped > 10);
            assert_true(f->fake->by_engines > 20 && f->fake->by_kernels > 5);
            assert_in_range(f->fake->largest_batch, 2, TDMI_DECODER_FILES);
        }
    options.preprocess.crop_fraction = 1;
    options.preprocess.fit = TDMI_FIT_CROP;
    assert_int_equal(compare(f, options), 0);
    close_decoder(f);
}

TEST_WITH(every_loader_option_works_with_the_gpu, set_up, tear_down)
{
    struct fixture *f = *state;
    struct tdmi_loader_options options = options_of(f);
    open_decoder(f);
    assert_int_equal(tdmi_augment_read("resized-crop,flip,rotate:10", &options.augment, NULL),
                     TDM_OK);
    options.augment_seed = 9;
    assert_int_equal(compare(f, options), 0);
    options = options_of(f);
    options.cache.kind = TDMI_CACHE_DECODED;
    f->fake->by_engines = f->fake->by_kernels = 0;
    assert_int_equal(compare(f, options), 0);
    const int once = f->fake->by_engines + f->fake->by_kernels;
    options.cache.kind = TDMI_CACHE_ENCODED;
    assert_int_equal(compare(f, options), 0);
    assert_int_equal(f->fake->by_engines + f->fake->by_kernels, 3 * once);
    options = options_of(f);
    options.memory_bytes = 30 << 20;
    assert_int_equal(compare(f, options), 0);
    /* The host decodes files that are reduced while decoding. */
    options = options_of(f);
    options.preprocess.uses_draft = true;
    assert_int_equal(compare(f, options), 0);
    for (int pace = FAKE_LATE; pace < FAKE_PACES; pace++) {
        fake_runtime_pace((enum fake_pace)pace);
        options = options_of(f);
        options.threads = 1;
        assert_int_equal(compare(f, options), 0);
    }
    fake_runtime_pace(FAKE_AT_ONCE);
    close_decoder(f);
}

static int n_decoded(struct fixture *f)
{
    const int n = f->fake->by_engines + f->fake->by_kernels;
    f->fake->by_engines = f->fake->by_kernels = 0;
    return n;
}

/* And of those that came with it, every one that is not refused is decoded as ever. */
TEST_WITH(files_that_nvjpeg_refuses_are_decoded_by_the_host, set_up, tear_down)
{
    struct fixture *f = *state;
    open_decoder(f);
    (void)n_decoded(f);
    assert_int_equal(compare(f, options_of(f)), 0);
    const int all = n_decoded(f);
    f->fake->refuses_one_of = 3;
    f->fake->failed_batches = f->fake->failed_alone = 0;
    assert_int_equal(compare(f, options_of(f)), 0);
    assert_in_range(f->fake->failed_alone, 10, all / 2);
    assert_true(f->fake->failed_batches > f->fake->failed_alone);
    assert_int_equal(n_decoded(f) + f->fake->failed_alone, all);
    f->fake->refuses_one_of = 1;
    assert_int_equal(compare(f, options_of(f)), 0);
    f->fake->refuses_one_of = 0;
    f->fake->sees_other = 1;
    (void)n_decoded(f);
    assert_int_equal(compare(f, options_of(f)), 0);
    assert_int_equal(n_decoded(f), 0);
    f->fake->sees_other = 0;
    close_decoder(f);
}

/* Another transform is seen: a sample more of luma and of blue is 1 + 1.772 more of blue, and
 * filters overshoot. Where engines are missing all goes by kernels. */
TEST_WITH(decoded_images_come_from_nvjpeg, set_up, tear_down)
{
    struct fixture *f = *state;
    f->fake->has_engines = 0;
    f->fake->off = 1;
    open_decoder(f);
    f->fake->by_engines = f->fake->by_kernels = 0;
    assert_in_range(compare(f, options_of(f)), 1, 4);
    assert_true(f->fake->by_kernels > 30 && f->fake->by_engines == 0);
    f->fake->off = 0;
    f->fake->has_engines = 1;
    close_decoder(f);
}

/* More than is decoded at once comes in parts. */
TEST_WITH(large_images_are_decoded_in_groups, set_up, tear_down)
{
    struct fixture *f = *state;
    struct fixture large = *f;
    large.tree = tree_new();
    add_jpeg(&large, "a1.jpg", 1700, 1300, 96, 1);
    add_jpeg(&large, "c2.jpg", 1300, 1100, 96, 6);
    add_jpeg(&large, "b3.jpg", 1900, 1500, 96, 3);
    add_jpeg(&large, "b4.jpg", 1910, 1500, 80, 1);
    assert_int_equal(tdmi_source_open(large.tree.root, NULL, &large.source, NULL), TDM_OK);
    fake_runtime_guard(false);
    open_decoder(&large);
    f->fake->batches = 0;
    (void)n_decoded(f);
    assert_int_equal(compare(&large, options_of(&large)), 0);
    assert_int_equal(n_decoded(f), 8);
    assert_in_range(f->fake->batches, 5, 8);
    close_decoder(&large);
    tdmi_source_close(large.source);
    tree_free(&large.tree);
}

/* ---- what is missing ------------------------------------------------------------------------- */

static void is_absent(struct fixture *f, const char *words)
{
    tdm_error err = {0};
    assert_int_equal(tdmi_backend_shim.device.open(0, &f->device, &err), TDM_OK);
    assert_int_equal(
        tdmi_backend_shim.pictures->open(&tdmi_backend_shim, f->device, &f->decoder, &err),
        TDM_E_ABSENT);
    assert_null(f->decoder);
    assert_says(&err, words);
    tdmi_backend_shim.device.close(f->device);
}

TEST_WITH(a_missing_nvjpeg_is_an_error, set_up, tear_down)
{
    struct fixture *f = *state;
    f->fake->version[0] = 10;
    is_absent(f, "found version 10.4, and 11.0 or newer is needed");
    f->fake->version[0] = 12;
    f->fake->create_code = 7;
    is_absent(f, "opening nvJPEG on the GPU: it says 7");
    f->fake->create_code = 0;
    tdmi_shim_nvjpeg("/nowhere/libnvjpeg.so.13");
    is_absent(f, "/nowhere/libnvjpeg.so.13");
    tdmi_shim_nvjpeg("libm.so.6");
    is_absent(f, "it lacks the function nvjpegGetProperty");
    tdmi_shim_nvjpeg(FAKE_NVJPEG);
    open_decoder(f);
    assert_string_equal(f->decoder->name, "nvJPEG 12.4.0");
    close_decoder(f);
}

static void lacks_memory(struct fixture *f, const char *words)
{
    struct tdmi_loader_options options = options_of(f);
    const struct tdmi_batch *batch;
    tdmi_loader *loader;
    tdm_error err = {0};
    open_decoder(f);
    options.decoder = f->decoder;
    assert_int_equal(tdmi_loader_open(&options, &loader, &err), TDM_OK);
    assert_int_equal(tdmi_loader_seek(loader, 0, 0, &err), TDM_OK);
    tdm_status status;
    do
        status = tdmi_loader_next(loader, &batch, &err);
    while (status == TDM_OK && batch);
    assert_int_equal(status, TDM_E_MEMORY);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), words));
    tdmi_loader_close(loader);
    close_decoder(f);
}

/* A GPU without memory ends it, and says so: images that the host decoded instead would be
 * others than those of a run that found some. */
TEST_WITH(too_little_memory_is_an_error_of_the_batch, set_up, tear_down)
{
    struct fixture *f = *state;
    fake_runtime_limit(64);
    lacks_memory(f, "images on the GPU: no room for");
    fake_runtime_limit(0);
    f->fake->has_no_memory = 1;
    lacks_memory(f, "images on the GPU: nvJPEG finds no memory there");
    f->fake->has_no_memory = 0;
}

/* Images that real programs made and broke, where they are. */
TEST_WITH(collected_images_are_those_of_the_host, set_up, tear_down)
{
    struct fixture *f = *state;
    const char *data = getenv("TANDEM_TEST_DATA");
    char path[1000];
    tdmi_source *own = f->source;
    snprintf(path, sizeof path, "%s/images", data ? data : "");
    if (!data || tdmi_source_open(path, NULL, &f->source, NULL) != TDM_OK)
        skip();
    struct tdmi_loader_options options = options_of(f);
    options.threads = 2;
    fake_runtime_guard(false);
    open_decoder(f);
    assert_int_equal(compare(f, options), 0);
    close_decoder(f);
    tdmi_source_close(f->source);
    f->source = own;
}

TEST_MAIN(NULL, NULL)

#else

int main(void)
{
    return 0; /* without libjpeg no JPEG file is read, and nothing stands for nvJPEG */
}

#endif
