/*
 * Rows of a frozen base that stay on the GPU: whole trainings, over the shim in the place of a
 * GPU, have the bits of those whose rows are copied in every step, however late copies are made
 * and whatever becomes of the rows in between.
 */
#include "backend/cuda/shim/shim_backend.h"
#include "train/pictures.h"
#include "tandem/log.h"
#include "train/hearing.h"
#include "unit.h"

#include <fcntl.h>
#include <glob.h>
#include <unistd.h>

enum { n_classes = 4, per_class = 20, n_pictures = n_classes * per_class, n_val = 8, width = 84 };

/* ---- a GPU -------------------------------------------------------------------------------- */

static struct tdmi_backend gpu;

static struct {
    int64_t free_bytes; /* that it tells; 0: nothing */
    size_t refused[2];  /* blocks of so many bytes are not to be had */
    size_t tables[2];   /* blocks of so many bytes are tables of rows */
    int n_made, n_live; /* of those */
    int n_live_then;    /* when it was asked last how much is free */
    void *live[8];
} seen;

/* In the place of what opens libtandem_cuda.so. */
tdm_status tdmi_cuda_backend(const struct tdmi_backend **backend, tdm_error *err)
{
    (void)err;
    *backend = &gpu;
    return TDM_OK;
}

static void *alloc_on_gpu(tdmi_device *device, size_t bytes)
{
    if (bytes == seen.refused[0] || bytes == seen.refused[1])
        return NULL;
    void *memory = tdmi_backend_shim.memory.alloc(device, bytes);
    for (int i = 0; i < 8 && (bytes == seen.tables[0] || bytes == seen.tables[1]); i++) {
        if (seen.live[i])
            continue;
        seen.live[i] = memory;
        seen.n_made++;
        seen.n_live++;
        break;
    }
    return memory;
}

static void free_on_gpu(tdmi_device *device, void *memory)
{
    for (int i = 0; i < 8; i++)
        if (memory && seen.live[i] == memory) {
            seen.live[i] = NULL;
            seen.n_live--;
        }
    tdmi_backend_shim.memory.free(device, memory);
}

static bool memory_of_gpu(const tdmi_device *device, int64_t *free_bytes, int64_t *total_bytes)
{
    (void)device;
    seen.n_live_then = seen.n_live;
    *free_bytes = *total_bytes = seen.free_bytes;
    return seen.free_bytes > 0;
}

static void use_gpu(bool keeps_rows)
{
    gpu = tdmi_backend_shim;
    gpu.name = "cuda";
    gpu.memory.alloc = alloc_on_gpu;
    gpu.memory.free = free_on_gpu;
    gpu.device.memory = memory_of_gpu;
    if (!keeps_rows)
        gpu.memory.gather = NULL;
    memset(&seen, 0, sizeof seen);
    fake_runtime_guard(true);
    fake_runtime_pace(FAKE_AT_ONCE);
}

static int set_up(void **state)
{
    begin_with_base(state, n_classes, per_class);
    tdm_log_set_level(TDM_LOG_SILENT);
    return 0;
}

static int tear_down(void **state)
{
    fake_runtime_pace(FAKE_AT_ONCE);
    return end_with_tree(state);
}

static struct tdm_train_options on_gpu(const struct tree *tree, const char *run)
{
    struct tdm_train_options options = with_frozen_base(tree, run);
    options.device = "cuda";
    options.shard = 0;
    return options;
}

static void train_heard(const struct tdm_train_options *options, const char *words, bool is_wanted)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct heard heard = {""};
    must_train(options, (tdm_sink){&heard, hear}, &result);
    assert_heard(&heard, words, is_wanted);
    assert_int_equal(seen.n_live, 0);
}

/* ---- bits ---------------------------------------------------------------------------------- */

struct kind {
    const char *name, *precision, *features, *augment;
    int views, shard;
    bool balance;
};

static struct tdm_train_options of_kind(const struct tree *tree, const struct kind *kind,
                                        const char *run)
{
    struct tdm_train_options options = on_gpu(tree, run);
    options.precision = kind->precision;
    options.features = kind->features;
    if (kind->augment)
        options.augment = kind->augment;
    options.views = kind->views;
    options.shard = kind->shard;
    options.balance = kind->balance;
    options.epochs = 4;
    return options;
}

static void compare_kind(const struct tree *tree, const struct kind *kind)
{
    char name[60];
    snprintf(name, sizeof name, "%s-copied", kind->name);
    struct tdm_train_options options = of_kind(tree, kind, name);
    use_gpu(false);
    train_heard(&options, "stay on the GPU", false);
    for (int pace = FAKE_AT_ONCE; pace < FAKE_PACES; pace++) {
        char kept[60];
        snprintf(kept, sizeof kept, "%s-%d", kind->name, pace);
        options.run = below(tree, kept);
        use_gpu(true);
        fake_runtime_pace((enum fake_pace)pace);
        train_heard(&options, "training and validation features stay on the GPU", true);
        same_runs(tree, name, kept);
    }
}

TEST_WITH(features_kept_on_the_gpu_train_to_the_same_bits, set_up, tear_down)
{
    static const struct kind kinds[] = {
        {"f32", "f32", "f32", NULL, -1, 0, false},
        {"bf16", "bf16", "f32", NULL, -1, 0, false},
        {"f16", "f16", "f16", NULL, -1, 0, false},
        {"views", "f32", "f32", "flip,crop:2", 3, 0, false},
        {"shards", "bf16", "f16", NULL, -1, 3, false},
        {"balanced", "f32", "f32", "crop:2", 2, 5, true},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        compare_kind(*state, &kinds[k]);
}

/* Samples without a row, here and there in a batch, and a class that comes often. */
TEST_WITH(images_without_features_are_left_out, set_up, tear_down)
{
    static const struct kind kinds[] = {
        {"broken", "f32", "f32", NULL, -1, 0, false},
        {"broken-shards", "f32", "f32", "flip", 2, 4, true},
    };
    const struct tree *tree = *state;
    for (int i = 1; i < per_class; i += 3)
        for (int c = 0; c < 2; c++) {
            char name[60], path[200];
            snprintf(name, sizeof name, "pictures/%c/%03d.ppm", 'a' + c, i);
            snprintf(path, sizeof path, "%s", below(tree, name));
            assert_int_equal(truncate(path, PICTURE_BYTES / 2), 0);
        }
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        compare_kind(tree, &kinds[k]);
}

/* ---- what is copied ------------------------------------------------------------------------ */

static int64_t copied_by(const struct tdm_train_options *options)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    (void)fake_runtime_copied(); /* by others before it */
    must_train(options, (tdm_sink){0}, &result);
    const struct fake_copied copied = fake_runtime_copied();
    return copied.pinned_bytes + copied.other_bytes;
}

/* A number in place of each row, but for the one time; what validates as often. */
TEST_WITH(each_feature_row_is_copied_once, set_up, tear_down)
{
    enum { epochs = 6 };
    const struct tree *tree = *state;
    const int64_t more = (int64_t)width * (int64_t)sizeof(float) - (int64_t)sizeof(int64_t);
    struct tdm_train_options options = on_gpu(tree, "first");
    options.epochs = 1;
    use_gpu(true);
    (void)copied_by(&options); /* rows are made */
    options.epochs = epochs;
    options.run = below(tree, "kept");
    const int64_t kept = copied_by(&options);
    use_gpu(false);
    options.run = below(tree, "copied");
    const int64_t copied = copied_by(&options);
    same_runs(tree, "copied", "kept");
    const int64_t spared = (epochs - 1) * n_pictures * more, heads = epochs * 16 * 512;
    assert_true(copied - kept > spared - heads && copied - kept < spared + heads);
}

/* ---- damage, in the rows that are not there yet --------------------------------------------- */

struct trap {
    const struct tree *tree;
    const char *text; /* of the phase */
    bool has_sprung;
};

static void damage_rows(void *self, const tdm_event *event)
{
    struct trap *trap = self;
    glob_t found;
    int n_rows = 0;
    if (event->kind != TDM_EVENT_PHASE_BEGIN || trap->has_sprung ||
        strcmp(event->text, trap->text) != 0)
        return;
    trap->has_sprung = true;
    assert_int_equal(glob(below(trap->tree, "home/features/*/*.rows"), 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++) {
        const int file = open(found.gl_pathv[i], O_RDWR);
        unsigned char byte;
        assert_true(file >= 0);
        for (off_t at = 128 + 17; pread(file, &byte, 1, at) == 1; at += width * 4, n_rows++) {
            byte ^= 0x55;
            assert_int_equal(pwrite(file, &byte, 1, at), 1);
        }
        close(file);
    }
    assert_true(n_rows > 0);
    globfree(&found);
}

TEST_WITH(recomputed_features_are_the_ones_kept, set_up, tear_down)
{
    static const char *const phases[] = {"training epoch 1", "validating", "training epoch 2"};
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    for (int views = 0; views <= 2; views += 2)
        for (int i = 0; i < 3; i++) {
            char whole[40], mended[40];
            struct trap trap = {.tree = tree, .text = phases[i]};
            snprintf(whole, sizeof whole, "whole-%d-%d", views, i);
            snprintf(mended, sizeof mended, "mended-%d-%d", views, i);
            struct tdm_train_options options = on_gpu(tree, whole);
            if (views > 0)
                options.augment = "crop:2";
            options.views = views;
            use_gpu(false);
            must_train(&options, (tdm_sink){0}, &result);
            assert_int_equal(result.features.remade, 0);
            options.run = below(tree, mended);
            use_gpu(true);
            fake_runtime_pace(FAKE_LATE);
            must_train(&options, (tdm_sink){&trap, damage_rows}, &result);
            assert_true(trap.has_sprung);
            /* those that are there already are not read any more */
            assert_true((result.features.remade > 0) == (i < 2 || views > 0));
            same_runs(tree, whole, mended);
        }
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST_WITH(features_are_copied_when_memory_is_short, set_up, tear_down)
{
    const size_t train = (n_pictures - n_val) * width * sizeof(float),
                 val = n_val * width * sizeof(float);
    const struct tree *tree = *state;
    struct tdm_train_options options = on_gpu(tree, "copied");
    use_gpu(false);
    train_heard(&options, "stay on the GPU", false);

    use_gpu(true);
    seen.tables[0] = train;
    seen.tables[1] = val;
    options.run = below(tree, "kept");
    train_heard(&options, "stay on the GPU", true);
    assert_int_equal(seen.n_made, 2);
    same_runs(tree, "copied", "kept");

    /* a GPU that refuses what it is asked for, and says nothing beforehand */
    static const char *const refused[] = {
        "training features do not fit on the GPU and are copied batch by batch: they take 0.0 "
        "MiB, which the GPU refused",
        "validation features do not fit on the GPU and are copied batch by batch: they take "
        "0.0 MiB, which the GPU refused",
        "training and validation features do not fit on the GPU and are copied batch "
        "by batch: they take 0.0 MiB, which the GPU refused"};
    for (int i = 0; i < 3; i++) {
        char name[20];
        snprintf(name, sizeof name, "refused-%d", i);
        options.run = below(tree, name);
        use_gpu(true);
        seen.tables[0] = train;
        seen.tables[1] = val;
        seen.refused[0] = seen.tables[i == 1];
        seen.refused[1] = i == 2 ? seen.tables[1] : 0;
        train_heard(&options, refused[i], true);
        assert_int_equal(seen.n_made, i < 2);
        same_runs(tree, "copied", name);
    }

    /* one that says how much is left: all else fits, and rows do by some bytes or do not */
    int64_t low = 0, high = (int64_t)1 << 22;
    while (high - low > 256) {
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        tdm_error err = {0};
        char name[40];
        snprintf(name, sizeof name, "told-%lld", (long long)(low + (high - low) / 2));
        options = on_gpu(tree, name); /* paths that are asked for again stay */
        use_gpu(true);
        seen.tables[0] = train;
        seen.tables[1] = val;
        seen.free_bytes = low + (high - low) / 2;
        const tdm_status status = tdm_train(&options, (tdm_sink){0}, &result, &err);
        assert_true(status == TDM_OK || status == TDM_E_MEMORY);
        if (status == TDM_OK)
            same_runs(tree, "copied", name);
        if (seen.n_made == 2)
            high = seen.free_bytes;
        else
            low = seen.free_bytes;
    }
    /* some of it is left alone, and what makes rows has its room */
    assert_true(high > (int64_t)(train + val) * 10 / 9);
    const struct {
        const char *run, *words;
        size_t less; /* bytes */
        int n_made;
    } gpus[] = {
        {"roomy", "training and validation features stay on the GPU", 0, 2},
        {"tight",
         "validation features do not fit on the GPU and are copied batch by batch: they take "
         "0.0 MiB, and beside the training there is room for 0.0 MiB",
         val / 2, 1},
        {"tighter",
         "training features do not fit on the GPU and are copied batch by batch: they take 0.0 "
         "MiB, and beside the training there is room for 0.0 MiB",
         val + train / 2, 1},
    };
    for (int k = 0; k < 3; k++) {
        options = on_gpu(tree, gpus[k].run);
        use_gpu(true);
        seen.tables[0] = train;
        seen.tables[1] = val;
        seen.free_bytes = high - (int64_t)gpus[k].less * 10 / 9;
        train_heard(&options, gpus[k].words, true);
        assert_int_equal(seen.n_made, gpus[k].n_made);
        same_runs(tree, "copied", gpus[k].run);
    }
}

/* "name": 12 of a run's record. */
static int64_t recorded(const struct tree *tree, const char *run, const char *name)
{
    char path[60], wanted[40];
    void *bytes;
    size_t n;
    snprintf(path, sizeof path, "%s/run.json", run);
    snprintf(wanted, sizeof wanted, "\"%s\":", name);
    assert_int_equal(tdmi_file_read(below(tree, path), 1 << 20, &bytes, &n, NULL), TDM_OK);
    const char *at = strstr(bytes, wanted);
    const int64_t value = at ? strtoll(at + strlen(wanted), NULL, 10) : -1;
    tdmi_free(bytes);
    return value;
}

TEST_WITH(the_record_has_the_bytes_of_kept_features, set_up, tear_down)
{
    const int64_t row_bytes = width * (int64_t)sizeof(uint16_t);
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = on_gpu(tree, "kept");
    options.precision = "bf16";
    options.augment = "flip";
    options.views = 5; /* 3 epochs want 3 */
    use_gpu(true);
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(recorded(tree, "kept", "kept_rows_bytes"),
                     (3 * (n_pictures - n_val) + n_val) * row_bytes);
    options.run = below(tree, "copied");
    use_gpu(false);
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(recorded(tree, "copied", "kept_rows_bytes"), 0);
    options.run = below(tree, "changed");
    options.views = 0;
    use_gpu(true);
    must_train(&options, (tdm_sink){0}, &result);
    assert_int_equal(recorded(tree, "changed", "kept_rows_bytes"), 0);
}

/* A batch beyond those that rows are made of at once costs what the head takes of it. */
TEST_WITH(the_memory_of_a_backbone_does_not_grow_with_the_batch, set_up, tear_down)
{
    static const int batches[] = {48, 64, 72};
    const struct tree *tree = *state;
    int64_t planned[3];
    use_gpu(true);
    for (int i = 0; i < 3; i++) {
        struct tdm_train_result result = {.struct_bytes = sizeof result};
        char name[20];
        snprintf(name, sizeof name, "batch-%d", batches[i]);
        struct tdm_train_options options = on_gpu(tree, name);
        options.batch = batches[i];
        options.epochs = 1;
        must_train(&options, (tdm_sink){0}, &result);
        planned[i] = recorded(tree, name, "planned_bytes");
    }
    assert_true(planned[1] - planned[0] > 10 * (planned[2] - planned[1]));
}

/* As much as the largest batch takes on rows, where it would not fit on images. */
TEST_WITH(batch_auto_counts_the_memory_of_the_head, set_up, tear_down)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    struct tdm_train_options options = on_gpu(tree, "base32");
    options.batch = 32;
    use_gpu(true);
    must_train(&options, (tdm_sink){0}, &result);
    const int64_t planned = recorded(tree, "base32", "planned_bytes");
    for (int i = 0; i < 2; i++) {
        options = on_gpu(tree, i ? "by-rows" : "by-pictures");
        options.features = i ? "f32" : "none";
        options.batch = 0; /* auto */
        options.learning_rate = 0.0;
        use_gpu(true);
        seen.free_bytes = planned * 10 / 9 + 1000; /* what is reserved by then is free beside it */
        must_train(&options, (tdm_sink){0}, &result);
        assert_int_equal(result.batch == 32, i);
    }
}

/* ---- resuming, and unfreezing ---------------------------------------------------------------- */

static void stop_at_step_13(void *self, const tdm_event *event)
{
    (void)self;
    if (event->kind == TDM_EVENT_PROGRESS && event->step == 13)
        tdm_stop_request();
}

/* In the middle of the second epoch, by either way, and resumed by the other. */
TEST_WITH(a_resumed_run_has_the_same_bits, set_up, tear_down)
{
    const struct tree *tree = *state;
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    tdm_error err = {0};
    struct tdm_train_options options = on_gpu(tree, "whole");
    options.augment = "flip";
    options.views = 2;
    options.schedule = "constant";
    use_gpu(false);
    must_train(&options, (tdm_sink){0}, &result);
    for (int i = 0; i < 4; i++) {
        char name[20];
        snprintf(name, sizeof name, "cut-%d", i);
        options.run = below(tree, name);
        options.resume = false;
        use_gpu(i % 2);
        assert_int_equal(tdm_train(&options, (tdm_sink){.event = stop_at_step_13}, &result, &err),
                         TDM_E_STOPPED);
        tdm_stop_clear();
        options.resume = true;
        use_gpu(i < 2);
        must_train(&options, (tdm_sink){0}, &result);
        same_runs(tree, "whole", name);
    }
}

TEST_WITH(unfreezing_frees_the_memory_of_features, set_up, tear_down)
{
    const struct tree *tree = *state;
    struct tdm_train_options options = on_gpu(tree, "copied");
    options.unfreeze = 2;
    options.epochs = 4;
    use_gpu(false);
    train_heard(&options, "layers before the head are trained from here on", true);
    for (int pace = FAKE_AT_ONCE; pace < FAKE_PACES; pace++) {
        char name[20];
        snprintf(name, sizeof name, "kept-%d", pace);
        options.run = below(tree, name);
        use_gpu(true);
        fake_runtime_pace((enum fake_pace)pace);
        seen.tables[0] = (n_pictures - n_val) * width * sizeof(float);
        seen.tables[1] = n_val * width * sizeof(float);
        seen.n_live_then = -1;
        train_heard(&options, "stay on the GPU", true);
        assert_int_equal(seen.n_made, 2);
        assert_int_equal(seen.n_live_then, 0); /* at the unfreeze point */
        assert_int_equal(recorded(tree, name, "kept_rows_bytes"), seen.tables[0] + seen.tables[1]);
        same_runs(tree, "copied", name);
    }
}

TEST_MAIN(NULL, NULL)
