/* Collects the notes of a training. */
#pragma once

#include "tandem/event.h"
#include "unit.h"

struct heard {
    char text[8000];
};

static inline void hear(void *self, const tdm_event *event)
{
    struct heard *heard = self;
    size_t n = strlen(heard->text);
    if (event->kind == TDM_EVENT_NOTE)
        snprintf(heard->text + n, sizeof heard->text - n, "%s\n", event->text);
}

static inline void assert_heard(const struct heard *heard, const char *words, bool is_expected)
{
    if ((strstr(heard->text, words) != NULL) != is_expected)
        fail_msg("'%s' is %s in: %s", words, is_expected ? "not" : "", heard->text);
}
