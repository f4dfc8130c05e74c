/* Both trainings are runs in a temporary folder, which is removed. */
#include "train/choice/probe.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "base/system/env.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 10, DEPTH = 16 };
#define TRAINED_PART 0.8

struct folder {
    char path[TDMI_PATH_BYTES];
};

static int remove_one(const char *path, const struct stat *facts, int kind, struct FTW *at)
{
    (void)facts, (void)kind, (void)at;
    return remove(path);
}

static void remove_folder(struct folder *folder)
{
    if (folder->path[0])
        (void)nftw(folder->path, remove_one, DEPTH, FTW_DEPTH | FTW_PHYS);
}

static tdm_status make_folder(struct folder *folder, tdm_error *err)
{
    const char *parent = tdmi_env("TMPDIR");
    snprintf(folder->path, sizeof folder->path, "%s/tandem-probe-XXXXXX", parent ? parent : "/tmp");
    if (mkdtemp(folder->path))
        return TDM_OK;
    const int reason = errno;
    folder->path[0] = '\0';
    return TDM_FAIL(err, TDM_E_SYSTEM, "cannot make a folder in %s: %s", parent ? parent : "/tmp",
                    strerror(reason));
}

static tdm_status train(struct tdm_train_options options, const struct folder *folder,
                        tdm_score *score, tdm_error *err)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    options.run = tdmi_path_join(&arena, folder->path, options.weights ? "pretrained" : "scratch");
    TDMI_CHECK_MEMORY(options.run, err);
    TDMI_TRY(tdm_train(&options, (tdm_sink){0}, &result, err));
    *score = result.val;
    return TDM_OK;
}

tdm_status tdmi_probe_run(const struct tdm_train_options *options, int64_t n_images,
                          const char *model, const char *weights, struct tdmi_probe *probe,
                          tdm_error *err)
{
    TDMI_AT_END(remove_folder) struct folder folder = {""};
    const double part =
        n_images > TDMI_PROBE_IMAGES ? (double)TDMI_PROBE_IMAGES / (double)n_images : 1.0;
    struct tdm_train_options small = tdm_train_options_default();
    tdm_score scratch = {0}, pretrained = {0};
    small.source = options->source;
    small.how = options->how;
    small.seed = options->seed;
    small.threads = options->threads;
    small.device = options->device;
    small.memory = options->memory;
    small.epochs = EPOCHS;
    small.patience = 0;
    small.augment = "none"; /* with it ten epochs would be too few */
    small.fraction = part;  /* also of a split that the source gives */
    small.train_fraction = TRAINED_PART;
    small.val_fraction = 1.0 - TRAINED_PART;
    small.is_alone = true;
    TDMI_TRY(make_folder(&folder, err));
    small.weights = weights;
    TDMI_TRY(train(small, &folder, &pretrained, err));
    small.weights = NULL;
    small.model = model;
    TDMI_TRY(train(small, &folder, &scratch, err));
    *probe = (struct tdmi_probe){
        .n = scratch.n, .scratch = scratch.correct, .pretrained = pretrained.correct};
    return TDM_OK;
}
