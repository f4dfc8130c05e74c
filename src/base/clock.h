/* Time: a monotonic clock for durations, the wall clock only for names and records. */
#pragma once

#include <stdint.h>

int64_t tdmi_clock_ns(void); /* monotonic */
double tdmi_clock_seconds_since(int64_t start_ns);
/* CPU time of the calling thread: what others do on the machine does not count. */
int64_t tdmi_clock_thread_ns(void);
/* "2026-11-20T12:34:56Z", 21 bytes with the terminator. */
void tdmi_clock_utc(char text[21]);
