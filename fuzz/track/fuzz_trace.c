/* Any bytes as the file of --trace: refused with a sentence, or added up to numbers that a person
 * can read: the parts of a rank's time are its time. */
#include "fuzz_files.h"
#include "tandem/trace.h"

#include <math.h>

static void check(const struct tdm_trace_sums *sums)
{
    if (sums->n_ranks == 0 || sums->first_step > sums->last_step || !isfinite(sums->hidden) ||
        sums->hidden < 0.0 || sums->hidden > 1.0)
        abort();
    for (size_t r = 0; r < sums->n_ranks; r++) {
        const struct tdm_trace_rank *rank = &sums->ranks[r];
        const double parts =
            rank->computing + rank->images + rank->sums + rank->messages + rank->other;
        if (!(rank->seconds >= 0.0) || !(rank->other >= 0.0) ||
            !(fabs(parts - rank->seconds) <= 1e-6 * (1.0 + fabs(rank->computing))))
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    char folder[64], path[256];
    tdm_trace *trace = NULL;
    tdm_error err = {0};
    fuzz_folder(folder);
    fuzz_file(folder, "trace.json", bytes, length_bytes);
    snprintf(path, sizeof path, "%s/trace.json", folder);
    if (tdm_trace_read(path, 0, 0, &trace, &err) == TDM_OK)
        check(tdm_trace_sums_of(trace));
    else if (err.n_frames == 0 || trace != NULL)
        abort();
    tdm_trace_close(trace);
    fuzz_remove(folder, "trace.json");
    fuzz_remove_folder(folder);
    return 0;
}
