/* GPUs through a library that looks like the driver's, as far as it goes; and what a run's file
 * says of them. */
#include "unit.h"
#include "track/nvml.h"
#include "track/fake_nvml.h"
#include "track/folder.h"
#include "tandem/json.h"
#include "track/run.h"
#include "track/sampler.h"
#include "track/track.h"

#include <dlfcn.h>
#include <math.h>
#include <time.h>

/* Keeps the library loaded, so that what is set here is what it answers. */
static struct fake_nvml *open_fake(const char *file, void **library)
{
    *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!*library)
        fail_msg("%s", dlerror());
    struct fake_nvml *fake = dlsym(*library, "fake_nvml");
    assert_non_null(fake);
    return fake;
}

static tdmi_nvml *open_nvml(const char *file)
{
    tdmi_nvml *nvml;
    assert_int_equal(tdmi_nvml_open(file, &nvml, NULL), TDM_OK);
    return nvml;
}

static void same(double got, double wanted)
{
    if (!(fabs(got - wanted) < 1e-9))
        fail_msg("%.9g, wanted %.9g", got, wanted);
}

TEST(every_field_is_what_the_driver_says)
{
    static const char *const files[] = {FAKE_NVML, FAKE_NVML_NEW};
    for (int f = 0; f < 2; f++) {
        void *library;
        struct fake_nvml *fake = open_fake(files[f], &library);
        struct tdmi_nvml_sample sample;
        tdmi_nvml *nvml = open_nvml(files[f]);
        const double before = (double)fake->millijoules / 1000.0;
        assert_int_equal(tdmi_nvml_count(nvml), 2);
        assert_int_equal(tdmi_nvml_sample(nvml, 1, &sample, NULL), TDM_OK);
        assert_int_equal(sample.busy_percent, 97);
        assert_int_equal(sample.memory_busy_percent, 41);
        assert_true(sample.memory_used_bytes == ((int64_t)30 << 30) + 1000);
        same(sample.power_watts, 613.5);
        same(sample.energy_joules, before);
        assert_int_equal(sample.sm_mhz, 2980);
        assert_int_equal(sample.memory_mhz, 4201);
        assert_int_equal(sample.temperature_celsius, 63);
        assert_int_equal(sample.pcie_sent_kb_per_s, 1120);
        assert_int_equal(sample.pcie_received_kb_per_s, 10000);
        assert_int_equal(sample.reasons, TDMI_NVML_POWER_CAP | TDMI_NVML_HEAT);
        tdmi_nvml_close(nvml);
        assert_int_equal(fake->n_ended, 1);
        dlclose(library);
    }
}

static void expect_unsaid(const struct tdmi_nvml_sample *sample)
{
    assert_int_equal(sample->busy_percent, -1);
    assert_int_equal(sample->memory_busy_percent, -1);
    assert_int_equal(sample->memory_used_bytes, -1);
    assert_true(sample->power_watts < 0.0 && sample->energy_joules < 0.0);
    assert_int_equal(sample->sm_mhz, -1);
    assert_int_equal(sample->memory_mhz, -1);
    assert_int_equal(sample->temperature_celsius, -1);
    assert_int_equal(sample->pcie_sent_kb_per_s, -1);
    assert_int_equal(sample->pcie_received_kb_per_s, -1);
    assert_int_equal(sample->reasons, -1);
}

TEST(fields_that_fail_or_are_missing_are_left_out)
{
    void *library;
    struct fake_nvml *fake = open_fake(FAKE_NVML, &library);
    struct tdmi_nvml_sample sample;
    tdmi_nvml *nvml = open_nvml(FAKE_NVML);
    fake->fails = 3; /* not supported by this GPU */
    assert_int_equal(tdmi_nvml_sample(nvml, 0, &sample, NULL), TDM_OK);
    expect_unsaid(&sample);
    tdmi_nvml_close(nvml);
    dlclose(library);
    nvml = open_nvml(FAKE_NVML_OLD);
    assert_int_equal(tdmi_nvml_sample(nvml, 0, &sample, NULL), TDM_OK);
    expect_unsaid(&sample);
    tdmi_nvml_close(nvml);
}

static void expect_absent(const char *file, const char *part)
{
    tdmi_nvml *nvml;
    tdm_error err = {0};
    assert_int_equal(tdmi_nvml_open(file, &nvml, &err), TDM_E_ABSENT);
    assert_null(nvml);
    if (!strstr(tdm_error_sentence(&err, 0), part))
        fail_msg("'%s' does not say '%s'", tdm_error_sentence(&err, 0), part);
}

TEST(libraries_that_are_of_no_use_are_named)
{
    void *library;
    expect_absent("/nowhere/libnvidia-ml.so.1", "/nowhere/libnvidia-ml.so.1 is not installed");
    expect_absent(FAKE_NVML_BROKEN, "lacks the function nvmlDeviceGetCount_v2");
    struct fake_nvml *fake = open_fake(FAKE_NVML, &library);
    fake->init_code = 9;
    expect_absent(FAKE_NVML, "installed but not running (NVML returns 9)");
    fake->init_code = 12;
    expect_absent(FAKE_NVML, "does not answer (NVML returns 12)");
    fake->init_code = 0;
    fake->n_gpus = 0;
    expect_absent(FAKE_NVML, "sees no GPU");
    fake->n_gpus = 2;
    fake->handle_code = 15; /* lost */
    tdmi_nvml *nvml = open_nvml(FAKE_NVML);
    struct tdmi_nvml_sample sample;
    tdm_error err = {0};
    assert_int_equal(tdmi_nvml_sample(nvml, 1, &sample, &err), TDM_E_ABSENT);
    assert_non_null(
        strstr(tdm_error_sentence(&err, 0), "GPU 1 of 2 cannot be reached (NVML returns 15)"));
    tdmi_nvml_close(nvml);
    dlclose(library);
}

TEST(every_reason_has_its_words)
{
    for (int i = 0; i < 9; i++)
        assert_non_null(tdmi_nvml_reason_text((int64_t)1 << i));
    assert_string_equal(tdmi_nvml_reason_text(TDMI_NVML_DISPLAY), "display");
    assert_string_equal(tdmi_nvml_reason_text(TDMI_NVML_HARDWARE_POWER), "power, by hardware");
    assert_null(tdmi_nvml_reason_text(512));
    assert_null(tdmi_nvml_reason_text(3));
}

/* ---- system.jsonl ----------------------------------------------------------------------- */

/* The library is asked on another thread: its count is looked at until it has come so far. */
static void wait_for(const _Atomic int *count, int wanted)
{
    for (int i = 0; i < 5000 && *count < wanted; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    assert_true(*count >= wanted);
}

static void expect_line(const char *line, int64_t step, int gpu, double joules)
{
    tdm_json_document *document = NULL;
    tdm_error err = {0};
    if (tdm_json_read(line, strcspn(line, "\n"), "a line", &document, &err) != TDM_OK)
        fail_msg("%s: %s", line, tdm_error_sentence(&err, 0));
    const tdm_json_value *root = tdm_json_root(document);
#define NUMBER(name) tdm_json_as_number(tdm_json_member(root, name), -7.0)
    assert_true(NUMBER("seconds") >= 0.0);
    same(NUMBER("step"), (double)step);
    same(NUMBER("card"), gpu);
    same(NUMBER("busy_percent"), 97);
    same(NUMBER("memory_busy_percent"), 41);
    same(NUMBER("memory_used_bytes"), (double)(30ull << 30) + 1000 * gpu);
    same(NUMBER("power_watts"), 612.5 + gpu);
    same(NUMBER("energy_joules"), joules);
    same(NUMBER("sm_mhz"), 1980 + 1000 * gpu);
    same(NUMBER("memory_mhz"), 3201 + 1000 * gpu);
    same(NUMBER("temperature_celsius"), 63);
    same(NUMBER("pcie_sent_kb_per_s"), 120 + 1000 * gpu);
    same(NUMBER("pcie_received_kb_per_s"), 9000 + 1000 * gpu);
#undef NUMBER
    const tdm_json_value *held = tdm_json_member(root, "clocks_held_by");
    assert_int_equal(tdm_json_count(held), 2);
    assert_string_equal(tdm_json_as_string(tdm_json_at(held, 0), ""), "power cap");
    assert_string_equal(tdm_json_as_string(tdm_json_at(held, 1), ""), "bit 9");
    tdm_json_document_free(document);
}

/* One sample at the start, and one at the end. */
TEST(a_run_records_the_state_of_its_gpus)
{
    char path[1024], file[1100];
    void *library;
    struct fake_nvml *fake = open_fake(FAKE_NVML, &library);
    tdmi_run *run;
    tdmi_track *track;
    fake->reasons = TDMI_NVML_POWER_CAP | 512;
    in_folder(state, "watched", path);
    assert_int_equal(tdmi_run_open(path, TDMI_RUN_NEW, &run, NULL), TDM_OK);
    assert_int_equal(tdmi_run_save(run, TDMI_RUN_RUNNING, NULL), TDM_OK);
    assert_int_equal(tdmi_track_new(run, (tdm_sink){0}, &track, NULL), TDM_OK);
    tdmi_track_watch_gpus(track, FAKE_NVML);
    wait_for(&fake->n_samples, 2);
    tdmi_track_event(track, &(tdm_event){.kind = TDM_EVENT_PROGRESS, .step = 70});
    tdmi_track_free(track);
    tdmi_run_close(run);
    snprintf(file, sizeof file, "%s/system.jsonl", path);
    char *text = text_of(file), *at = text;
    int n = 0;
    for (; *at; at = strchr(at, '\n') + 1, n++)
        if (n >= 2) /* of the first two, the step may be either */
            expect_line(at, 70, n - 2, 0.5);
    assert_int_equal(n, 4);
    free(text);
    assert_int_equal(fake->n_ended, 1);
    dlclose(library);
}

TEST(samples_follow_each_other)
{
    char file[1024];
    void *library;
    struct fake_nvml *fake = open_fake(FAKE_NVML, &library);
    tdmi_sampler *sampler;
    assert_int_equal(tdmi_sampler_start(*state, FAKE_NVML, 1, &sampler, NULL), TDM_OK);
    wait_for(&fake->n_samples, 20);
    tdmi_sampler_stop(sampler);
    char *text = text_of(in_folder(state, "system.jsonl", file));
    int n = 0;
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++)
        n++;
    assert_int_equal(n, fake->n_samples);
    free(text);
    dlclose(library);
}

/* Messages of the log go to stderr, which is a file meanwhile. */
TEST(a_run_continues_without_a_driver)
{
    char file[1024], folder[1024], log[1024];
    tdmi_sampler *sampler;
    const int kept = dup(STDERR_FILENO);
    assert_non_null(freopen(in_folder(state, "log", log), "wb", stderr));
    assert_int_equal(
        tdmi_sampler_start(in_folder(state, "none", folder), FAKE_NVML_BROKEN, 0, &sampler, NULL),
        TDM_OK);
    tdmi_sampler_place(sampler, 5);
    tdmi_sampler_stop(sampler);
    tdmi_sampler_stop(NULL);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    char *text = text_of(log);
    const char *said = strstr(text, "GPUs are not watched");
    assert_non_null(said);
    assert_null(strstr(said + 1, "GPUs are not watched"));
    free(text);
    assert_int_equal(access(in_folder(state, "none/system.jsonl", file), F_OK), -1);
}

TEST_MAIN(make_folder, remove_folder)
