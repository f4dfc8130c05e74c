/* Any bytes as sample pictures of four outcomes: refused, or each of one of the four and with bytes
 * that are there. */
#include "fuzz.h"
#include "train/evaluate/samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t length_bytes)
{
    const tdmi_outcomes outcomes = {.n = 4, .step = 7};
    tdmi_samples samples;
    uint8_t sum = 0;
    if (tdmi_samples_read(bytes, length_bytes, "fuzzed samples", &outcomes, &samples, NULL) !=
        TDM_OK)
        return 0;
    for (int i = 0; i < samples.n; i++) {
        const struct tdmi_sample *sample = &samples.samples[i];
        if (sample->entry < 0 || sample->entry >= outcomes.n || !sample->name)
            abort();
        for (int64_t b = 0; b < sample->jpeg_bytes; b++)
            sum = (uint8_t)(sum + sample->jpeg[b]);
    }
    tdmi_samples_release(&samples);
    (void)sum;
    return 0;
}
