/*
 * NVML as a test wants it. FAKE_BROKEN lacks a function without which nothing works, FAKE_OLD all
 * that only some GPUs or drivers answer, FAKE_NEW has the newer name of what slows clocks down.
 */
#include "fake_nvml.h"

struct fake_nvml fake_nvml = {.n_gpus = 2, .millijoules = 5000000, .reasons = 0x24};

typedef struct gpu *gpu;

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    fake_nvml.n_started++;
    return fake_nvml.init_code;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
    fake_nvml.n_ended++;
    return 0;
}

#ifndef FAKE_BROKEN
int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetCount_v2(unsigned *n)
{
    *n = fake_nvml.n_gpus;
    return 0;
}
#endif

int nvmlDeviceGetHandleByIndex_v2(unsigned index, gpu *it);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, gpu *it)
{
    *it = (gpu)(index + 1ul);
    return fake_nvml.handle_code;
}

#ifndef FAKE_OLD

static unsigned of(gpu it, unsigned number)
{
    return number + (unsigned)((unsigned long)it - 1) * 1000;
}

int nvmlDeviceGetMemoryInfo(gpu it, unsigned long long *total_free_used);
int nvmlDeviceGetMemoryInfo(gpu it, unsigned long long *total_free_used)
{
    total_free_used[0] = 80ull << 30;
    total_free_used[1] = 50ull << 30;
    total_free_used[2] = (30ull << 30) + of(it, 0);
    return fake_nvml.fails;
}

int nvmlDeviceGetUtilizationRates(gpu it, unsigned *busy);
int nvmlDeviceGetUtilizationRates(gpu it, unsigned *busy)
{
    (void)it;
    fake_nvml.n_samples++;
    busy[0] = 97;
    busy[1] = 41;
    return fake_nvml.fails;
}

int nvmlDeviceGetPowerUsage(gpu it, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(gpu it, unsigned *milliwatts)
{
    *milliwatts = of(it, 612500);
    return fake_nvml.fails;
}

int nvmlDeviceGetTotalEnergyConsumption(gpu it, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(gpu it, unsigned long long *millijoules)
{
    (void)it;
    *millijoules = fake_nvml.millijoules;
    fake_nvml.millijoules += 250;
    return fake_nvml.fails;
}

int nvmlDeviceGetClockInfo(gpu it, int which, unsigned *mhz);
int nvmlDeviceGetClockInfo(gpu it, int which, unsigned *mhz)
{
    *mhz = of(it, which == 1 ? 1980 : which == 2 ? 3201 : 1);
    return fake_nvml.fails;
}

int nvmlDeviceGetTemperature(gpu it, int which, unsigned *celsius);
int nvmlDeviceGetTemperature(gpu it, int which, unsigned *celsius)
{
    (void)it;
    *celsius = which == 0 ? 63 : 1;
    return fake_nvml.fails;
}

int nvmlDeviceGetPcieThroughput(gpu it, int which, unsigned *kb);
int nvmlDeviceGetPcieThroughput(gpu it, int which, unsigned *kb)
{
    *kb = of(it, which == 0 ? 120 : 9000);
    return fake_nvml.fails;
}

#ifdef FAKE_NEW
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
#else
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#endif
int REASONS(gpu it, unsigned long long *reasons);
int REASONS(gpu it, unsigned long long *reasons)
{
    (void)it;
    *reasons = fake_nvml.reasons;
    return fake_nvml.fails;
}

#endif
