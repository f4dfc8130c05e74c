/* Lines of ranks for tandem run: composed and recognised in one place. */
#include "base/text/rank_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char start[] = "tandem: rank ", begins[] = " begins", ends[] = " ends with status ";

void tdmi_rank_line_write(int rank, int status)
{
    char line[80];
    const int n = status < 0 ? snprintf(line, sizeof line, "%s%d%s\n", start, rank, begins)
                             : snprintf(line, sizeof line, "%s%d%s%d\n", start, rank, ends, status);
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return; /* nobody reads: a report is no reason to fail */
}

/* A number from 0 on that text begins with; NULL: there is none. */
static const char *read_number(const char *text, int *number)
{
    char *end = NULL;
    const long value = strtol(text, &end, 10);
    *number = (int)value;
    return *text >= '0' && *text <= '9' && value < 1000000 ? end : NULL;
}

bool tdmi_rank_line_read(const char *line, struct tdmi_rank_line *report)
{
    const char *at = strstr(line, start);
    if (!at)
        return false;
    report->before_bytes = (size_t)(at - line);
    at = read_number(at + strlen(start), &report->rank);
    if (at && strcmp(at, begins) == 0) {
        report->status = -1;
        return true;
    }
    if (!at || strncmp(at, ends, strlen(ends)) != 0)
        return false;
    at = read_number(at + strlen(ends), &report->status);
    return at && *at == '\0';
}
