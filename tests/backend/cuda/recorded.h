/* Trainings whose steps are queued as the session queues them, beside those that record nothing. */
#pragma once

#include "backend/cuda/shim/shim_backend.h"
#include "models/known_network.h"
#include "train/trainings.h"
#include "unit.h"

#include <unistd.h>

/* The shim's backend without recording. */
static inline struct tdmi_backend plain_backend(void)
{
    struct tdmi_backend plain = tdmi_backend_shim;
    plain.stream.capture_begin = NULL;
    plain.stream.capture_end = NULL;
    plain.stream.replay = NULL;
    plain.stream.recording_close = NULL;
    return plain;
}

/* A step of n images, as the session runs it for each batch. */
static inline tdm_status try_step_of(struct training *it, const struct tdmi_batch *batch, int n,
                                     const struct tdmi_mixing *mixing,
                                     struct tdmi_update_rates rates, float *tail, tdm_error *err)
{
    tdmi_step_begin(it->step, (struct tdmi_values){it->params, it->states}, batch, mixing);
    if (n > 0)
        assert_int_equal(tdmi_update_begin(it->update, (float)n, rates, NULL), TDM_OK);
    const struct tdmi_step_next next = tdmi_update_next(it->update);
    return tdmi_step_run_queued(it->step, n > 0 ? &next : NULL, tail, err);
}

static inline void step(struct training *it, const struct tdmi_batch *batch,
                        const struct tdmi_mixing *mixing, struct tdmi_update_rates rates,
                        float *tail)
{
    int n = 0;
    for (int i = 0; i < batch->n; i++)
        n += batch->labels[i] >= 0;
    assert_int_equal(try_step_of(it, batch, n, mixing, rates, tail, NULL), TDM_OK);
    fetch(it, it->sums, tdmi_step_sums(it->step), tdmi_graph_sums_values(it->of->graph));
}

/* Parameters, running statistics, and the sums that were fetched. */
static inline void same_values(const struct training *a, const struct training *b, int s)
{
    const tdmi_graph *graph = a->of->graph;
    const int64_t n = graph->param_values + graph->state_values;
    float *of_a = calloc((size_t)n, sizeof *of_a), *of_b = calloc((size_t)n, sizeof *of_b);
    fetch(a, of_a, a->params, graph->param_values);
    fetch(b, of_b, b->params, graph->param_values);
    fetch(a, of_a + graph->param_values, a->states, graph->state_values);
    fetch(b, of_b + graph->param_values, b->states, graph->state_values);
    if (memcmp(of_a, of_b, sizeof *of_a * (size_t)n) != 0)
        fail_msg("step %d: other bits of parameters or statistics", s);
    if (memcmp(a->sums, b->sums, sizeof *a->sums * (size_t)tdmi_graph_sums_values(graph)) != 0)
        fail_msg("step %d: other bits of sums", s);
    free(of_a);
    free(of_b);
}

/* Number of lines with both words that speak(self) writes to standard error. */
static inline int lines_with(const char *word, const char *other, void (*speak)(void *self),
                             void *self)
{
    char line[2000];
    int n = 0;
    FILE *log = tmpfile();
    const int kept = dup(STDERR_FILENO);
    assert_non_null(log);
    fflush(stderr);
    assert_true(kept >= 0 && dup2(fileno(log), STDERR_FILENO) >= 0);
    speak(self);
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
    rewind(log);
    while (fgets(line, sizeof line, log))
        n += strstr(line, word) && strstr(line, other);
    fclose(log);
    return n;
}
