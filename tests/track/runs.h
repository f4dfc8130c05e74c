/* A run that is open, lines in it, and what became of them. */
#pragma once

#include "track/folder.h"
#include "track/run.h"
#include "unit.h"

static inline tdmi_run *open_run(const char *path, enum tdmi_run_mode mode)
{
    tdmi_run *run = NULL;
    tdm_error err = {0};
    assert_ok(tdmi_run_open(path, mode, &run, &err), &err);
    return run;
}

static inline void put_lines(tdmi_run *run, int64_t from, int64_t to)
{
    for (int64_t step = from; step <= to; step++) {
        char line[64];
        int n = snprintf(line, sizeof line, "{\"step\":%lld}", (long long)step);
        assert_int_equal(tdmi_run_line(run, line, (size_t)n, NULL), TDM_OK);
    }
}

static inline void check_metrics(void **state, const char *expected)
{
    char path[1024];
    char *text = text_of(in_folder(state, "metrics.jsonl", path));
    assert_string_equal(text, expected);
    free(text);
}

static inline struct tdmi_lines_end up_to(int64_t step)
{
    return (struct tdmi_lines_end){.step = step};
}
