/* Events reach the caller and metrics.jsonl; a disk that is full costs lines, never the training.
 */
#include "unit.h"
#include "track/track.h"
#include "tandem/log.h"
#include <signal.h>
#include <sys/resource.h>
#include "track/folder.h"
#include "track/run.h"

static void count_event(void *self, const tdm_event *event)
{
    int *counts = self;
    counts[event->kind]++;
}

static tdmi_run *open_run(const char *path)
{
    tdmi_run *run = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_run_open(path, TDMI_RUN_RESUME, &run, &err), &err);
    return run;
}

TEST_WITH(every_event_reaches_the_caller_and_few_the_file, make_folder, remove_folder)
{
    char path[1024];
    int counts[6] = {0};
    tdmi_track *track = NULL;
    tdmi_run *run = open_run(*state);
    tdm_sink caller = {.self = counts, .event = count_event};
    assert_int_equal(tdmi_track_new(run, caller, &track, NULL), TDM_OK);
    tdm_sink sink = tdmi_track_as_sink(track);

    tdm_event event = {.kind = TDM_EVENT_NOTE, .text = "12 files are no pictures"};
    sink.event(sink.self, &event);
    event = (tdm_event){.kind = TDM_EVENT_PHASE_BEGIN, .text = "training epoch 1", .total = 10};
    sink.event(sink.self, &event);
    event = (tdm_event){.kind = TDM_EVENT_PROGRESS, .done = 10, .total = 10, .step = 4};
    sink.event(sink.self, &event);
    event.kind = TDM_EVENT_PHASE_END;
    sink.event(sink.self, &event);
    event = (tdm_event){.kind = TDM_EVENT_EPOCH,
                        .epoch = 1,
                        .step = 4,
                        .seconds = 1.5,
                        .learning_rate = 0.1,
                        .is_best = 1,
                        .train = {.n = 4,
                                  .correct = 2,
                                  .n_distinct = 3,
                                  .correct_distinct = 1,
                                  .accuracy = 0.5,
                                  .high = 1,
                                  .loss = 0.25}};
    sink.event(sink.self, &event);
    snprintf(path, sizeof path, "%s/best.safetensors", (const char *)*state);
    event = (tdm_event){
        .kind = TDM_EVENT_CHECKPOINT, .epoch = 1, .step = 4, .seconds = 2, .text = path};
    sink.event(sink.self, &event);

    for (int i = 0; i < 6; i++)
        assert_int_equal(counts[i], 1);
    tdmi_track_free(track);
    char *text = text_of(in_folder(state, "metrics.jsonl", path));
    assert_string_equal(
        text,
        "{\"event\":\"note\",\"epoch\":0,\"step\":0,\"seconds\":0,"
        "\"text\":\"12 files are no pictures\"}\n"
        "{\"event\":\"epoch\",\"epoch\":1,\"step\":4,\"seconds\":1.5,\"learning_rate\":0.1,"
        "\"best\":true,\"train\":{\"n\":4,\"n_distinct\":3,\"correct\":2,\"correct_distinct\":1,"
        "\"accuracy\":0.5,\"low\":0,\"high\":1,\"loss\":0.25}}\n"
        "{\"event\":\"checkpoint\",\"epoch\":1,\"step\":4,\"seconds\":2,"
        "\"path\":\"best.safetensors\"}\n");
    free(text);
    tdmi_run_close(run); /* never saved: the file goes */
}

TEST_WITH(a_caller_that_does_not_listen_is_fine, make_folder, remove_folder)
{
    tdmi_track *track = NULL;
    TDMI_AT_END(tdmi_run_close_at) tdmi_run *run = open_run(*state);
    assert_int_equal(tdmi_track_new(run, (tdm_sink){0}, &track, NULL), TDM_OK);
    tdmi_track_event(track, &(tdm_event){.kind = TDM_EVENT_NOTE, .text = "a \"quoted\"\nline"});
    tdmi_track_free(track);
}

TEST_WITH(recording_goes_on_when_a_full_disk_has_room_again, make_folder, remove_folder)
{
    char path[1024];
    int counts[6] = {0};
    struct rlimit limit;
    tdmi_track *track = NULL;
    tdmi_run *run = open_run(*state);
    tdm_sink caller = {.self = counts, .event = count_event};
    const tdm_event note = {.kind = TDM_EVENT_NOTE, .text = "x"};
    assert_int_equal(tdmi_track_new(run, caller, &track, NULL), TDM_OK);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    struct rlimit tight = {.rlim_cur = 10, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
    for (int i = 0; i < 3; i++)
        tdmi_track_event(track, &note);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    tdmi_track_event(track, &note);
    assert_int_equal(counts[TDM_EVENT_NOTE], 4);
    tdmi_track_free(track);
    char *text = text_of(in_folder(state, "metrics.jsonl", path));
    assert_string_equal(
        text, "{\"event\":\"note\",\"epoch\":0,\"step\":0,\"seconds\":0,\"text\":\"x\"}\n");
    free(text);
    tdmi_run_close(run); /* never saved: the file goes */
}

TEST_MAIN(be_silent, NULL)
