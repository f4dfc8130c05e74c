/*
 * Messages for people: on standard error, or to a listener of the program. Level, colour and
 * listener are the library's only global settings besides the stop flag. Results never go through
 * here.
 */
#ifndef TANDEM_LOG_H
#define TANDEM_LOG_H

#include "tandem/api.h"
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tdm_log_level {
    TDM_LOG_SILENT,
    TDM_LOG_ERROR,
    TDM_LOG_WARNING,
    TDM_LOG_INFO,
    TDM_LOG_DEBUG
} tdm_log_level;

/* Any thread, any time. The start value is TDM_LOG_WARNING. */
TDM_API void tdm_log_set_level(tdm_log_level level);
TDM_API tdm_log_level tdm_log_level_now(void);
/* Are the first words of errors and warnings in colour? Not from the start: the library asks
 * neither for a terminal nor for the environment. */
TDM_API void tdm_log_set_color(bool has_color);

/* Takes every message of the level or a more severe one in place of standard error. Any thread of
 * the library may call it, several at a time. text is one line, without "tandem: " and line end. */
struct tdm_log_listener {
    void *self;
    void (*message)(void *self, tdm_log_level level, const char *text);
};

/* NULL: standard error again. The listener is lent until another one is set: this waits for
 * messages that are on their way to the one before, so no listener may call it. One thread at a
 * time. */
TDM_API void tdm_log_set_listener(const struct tdm_log_listener *listener);

/* One line of at most 1,000 bytes, newline included, written whole (one write call). %s is quoted
 * and cut as tandem/quote.h says. */
TDM_API void tdm_log(tdm_log_level level, const char *format, ...) TDM_PRINTF(2, 3);

#ifdef __cplusplus
}
#endif
#endif
