/* Both trainings are runs in a temporary folder, which is removed. */
#include "train/choice/probe.h"
#include "base/file/file.h"
#include "base/scope.h"
#include "base/system/env.h"
#include "train/choice/estimate.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
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

/* ---- progress ------------------------------------------------------------------------------ */

/* Images of all phases of both trainings are counted on. */
struct progress {
    tdm_sink sink;
    int64_t before, done; /* the phases that have ended; all */
};

static void send(const struct progress *it, tdm_event_kind kind)
{
    if (it->sink.event)
        it->sink.event(
            it->sink.self,
            &(tdm_event){.kind = kind, .done = it->done, .text = "choosing the network"});
}

static void count(void *self, const tdm_event *event)
{
    struct progress *it = self;
    if (event->kind == TDM_EVENT_PHASE_BEGIN)
        it->before = it->done;
    if (event->kind != TDM_EVENT_PROGRESS)
        return;
    it->done = it->before + event->done;
    send(it, TDM_EVENT_PROGRESS);
}

/* ---- the trainings ------------------------------------------------------------------------- */

double tdmi_probe_seconds(int64_t n_images, double scratch_second, double pretrained_second,
                          double decode_second)
{
    const double n = (double)(n_images < TDMI_PROBE_IMAGES ? n_images : TDMI_PROBE_IMAGES);
    const double passes = TRAINED_PART / TDMI_FORWARD_PART + 1.0 - TRAINED_PART;
    return n * (EPOCHS * passes * scratch_second + pretrained_second + 2.0 * decode_second);
}

static tdm_status train(struct tdm_train_options options, const struct folder *folder,
                        struct progress *progress, tdm_score *score, tdm_error *err)
{
    struct tdm_train_result result = {.struct_bytes = sizeof result};
    TDMI_AT_END(tdmi_arena_release) tdmi_arena arena = {0};
    options.run = tdmi_path_join(&arena, folder->path, options.weights ? "pretrained" : "scratch");
    TDMI_CHECK_MEMORY(options.run, err);
    TDMI_TRY(tdm_train(&options, (tdm_sink){progress, count}, &result, err));
    *score = result.val;
    return TDM_OK;
}

static tdm_status train_both(struct tdm_train_options options, const struct tdmi_candidates *them,
                             struct progress *progress, struct tdmi_probe *probe, tdm_error *err)
{
    TDMI_AT_END(remove_folder) struct folder folder = {""};
    tdm_score scratch = {0}, pretrained = {0};
    TDMI_TRY(make_folder(&folder, err));
    options.weights = them->weights;
    options.size = them->size_of_weights;
    TDMI_TRY(train(options, &folder, progress, &pretrained, err));
    options.weights = NULL;
    options.model = them->model;
    options.size = them->size;
    TDMI_TRY(train(options, &folder, progress, &scratch, err));
    *probe = (struct tdmi_probe){
        .n = scratch.n, .scratch = scratch.correct, .pretrained = pretrained.correct};
    return TDM_OK;
}

tdm_status tdmi_probe_run(const struct tdm_train_options *options, int64_t n_images,
                          const struct tdmi_candidates *them, tdm_sink sink,
                          struct tdmi_probe *probe, tdm_error *err)
{
    const double part =
        n_images > TDMI_PROBE_IMAGES ? (double)TDMI_PROBE_IMAGES / (double)n_images : 1.0;
    struct tdm_train_options small = tdm_train_options_default();
    struct progress progress = {.sink = sink};
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
    if (options->test_fraction > 0.0) { /* images of the test must not choose */
        small.train_fraction = options->train_fraction;
        small.val_fraction = options->val_fraction;
        small.test_fraction = options->test_fraction;
    }
    small.is_alone = true;
    send(&progress, TDM_EVENT_PHASE_BEGIN);
    const tdm_status status = train_both(small, them, &progress, probe, err);
    send(&progress, TDM_EVENT_PHASE_END);
    return status;
}
