/* The two clocks of the system, in the units that the rooms use. */
#include "base/clock.h"

#include <time.h>

int64_t tdmi_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

double tdmi_clock_seconds_since(int64_t start_ns)
{
    return (double)(tdmi_clock_ns() - start_ns) * 1e-9;
}

void tdmi_clock_utc(char text[21])
{
    struct tm parts;
    time_t now = time(NULL);
    if (!gmtime_r(&now, &parts) || strftime(text, 21, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0)
        text[0] = '\0';
}

int64_t tdmi_clock_thread_ns(void)
{
    struct timespec time = {0};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}
