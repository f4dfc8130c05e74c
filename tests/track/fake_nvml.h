/* Answers of the fake library; a test finds them there by this name. */
#pragma once

struct fake_nvml {
    int fails; /* the answer of everything optional; 0: all is well */
    int init_code, handle_code;
    unsigned n_gpus;
    unsigned long long millijoules, reasons;
    int n_started, n_ended;
    _Atomic int n_samples; /* a thread looks while the test waits for it */
};
