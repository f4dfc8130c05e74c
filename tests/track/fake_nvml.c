/*
 * NVML as a test wants it. FAKE_BROKEN lacks a function without which nothing works, FAKE_OLD all
 * that only some cards or drivers answer, FAKE_NEW has the newer name of what slows clocks down.
 */
#include "fake_nvml.h"

struct fake_nvml fake_nvml = {.n_cards = 2, .millijoules = 5000000, .reasons = 0x24};

typedef struct card *card;

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
    *n = fake_nvml.n_cards;
    return 0;
}
#endif

int nvmlDeviceGetHandleByIndex_v2(unsigned index, card *it);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, card *it)
{
    *it = (card)(index + 1ul);
    return fake_nvml.handle_code;
}

#ifndef FAKE_OLD

static unsigned of(card it, unsigned number)
{
    return number + (unsigned)((unsigned long)it - 1) * 1000;
}

int nvmlDeviceGetMemoryInfo(card it, unsigned long long *total_free_used);
int nvmlDeviceGetMemoryInfo(card it, unsigned long long *total_free_used)
{
    total_free_used[0] = 80ull << 30;
    total_free_used[1] = 50ull << 30;
    total_free_used[2] = (30ull << 30) + of(it, 0);
    return fake_nvml.fails;
}

int nvmlDeviceGetUtilizationRates(card it, unsigned *card_memory);
int nvmlDeviceGetUtilizationRates(card it, unsigned *card_memory)
{
    (void)it;
    fake_nvml.n_samples++;
    card_memory[0] = 97;
    card_memory[1] = 41;
    return fake_nvml.fails;
}

int nvmlDeviceGetPowerUsage(card it, unsigned *milliwatts);
int nvmlDeviceGetPowerUsage(card it, unsigned *milliwatts)
{
    *milliwatts = of(it, 612500);
    return fake_nvml.fails;
}

int nvmlDeviceGetTotalEnergyConsumption(card it, unsigned long long *millijoules);
int nvmlDeviceGetTotalEnergyConsumption(card it, unsigned long long *millijoules)
{
    (void)it;
    *millijoules = fake_nvml.millijoules;
    fake_nvml.millijoules += 250;
    return fake_nvml.fails;
}

int nvmlDeviceGetClockInfo(card it, int which, unsigned *mhz);
int nvmlDeviceGetClockInfo(card it, int which, unsigned *mhz)
{
    *mhz = of(it, which == 1 ? 1980 : which == 2 ? 3201 : 1);
    return fake_nvml.fails;
}

int nvmlDeviceGetTemperature(card it, int which, unsigned *celsius);
int nvmlDeviceGetTemperature(card it, int which, unsigned *celsius)
{
    (void)it;
    *celsius = which == 0 ? 63 : 1;
    return fake_nvml.fails;
}

int nvmlDeviceGetPcieThroughput(card it, int which, unsigned *kb);
int nvmlDeviceGetPcieThroughput(card it, int which, unsigned *kb)
{
    *kb = of(it, which == 0 ? 120 : 9000);
    return fake_nvml.fails;
}

#ifdef FAKE_NEW
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
#else
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#endif
int REASONS(card it, unsigned long long *reasons);
int REASONS(card it, unsigned long long *reasons)
{
    (void)it;
    *reasons = fake_nvml.reasons;
    return fake_nvml.fails;
}

#endif
