/*
 * cgroup limits. /proc/self/cgroup names the group in each hierarchy ("0::/a/b" in version 2,
 * "4:cpu,cpuacct:/a/b" in version 1). Every level from there up to the root may set a limit, and
 * the tightest holds. In a container the path may name a folder that is not mounted; walking up
 * ends at the mount itself, which then is the container's own group.
 */
#include "base/system/cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { path_bytes = 4096 };

long tdmi_system_text(const char *root, const char *path, char *buffer, size_t buffer_bytes)
{
    char full[path_bytes];
    int needed = snprintf(full, sizeof full, "%s%s", root, path);
    if (needed < 0 || (size_t)needed >= sizeof full)
        return -1;
    int fd = open(full, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    size_t length = 0;
    ssize_t step = 0;
    while (length < buffer_bytes - 1) {
        step = read(fd, buffer + length, buffer_bytes - 1 - length);
        if (step < 0 && errno == EINTR)
            continue;
        if (step <= 0)
            break;
        length += (size_t)step;
    }
    close(fd);
    if (step < 0)
        return -1;
    while (length > 0 && strchr(" \t\n", buffer[length - 1]))
        length--;
    buffer[length] = '\0';
    return (long)length;
}

static bool read_file(const char *root, const char *folder, const char *name, char text[64])
{
    char path[path_bytes];
    const int needed = snprintf(path, sizeof path, "%s/%s", folder, name);
    return needed > 0 && (size_t)needed < sizeof path && tdmi_system_text(root, path, text, 64) > 0;
}

/* A whole number, 0 or more, at the start of a file below folder; false for "max", a missing file
 * and such. */
static bool read_number(const char *root, const char *folder, const char *name, double *number)
{
    char text[64], *end = NULL;
    if (!read_file(root, folder, name, text))
        return false;
    long long value = strtoll(text, &end, 10);
    *number = (double)value;
    return end != text && value >= 0;
}

static void tighten_cpus(struct tdmi_cgroup *limits, double quota, double period)
{
    const bool is_limit = quota > 0.0 && period > 0.0;
    if (is_limit && (limits->cpus <= 0.0 || quota / period < limits->cpus))
        limits->cpus = quota / period;
}

/* none: what *limit is when there is none. Version 1 writes that as a number near 2^63. */
static void tighten(int64_t *limit, int64_t none, double bytes)
{
    if (bytes > (double)none && bytes < 0x1p60 && (*limit == none || bytes < (double)*limit))
        *limit = (int64_t)bytes;
}

static void look_at_cpus_v1(const char *root, const char *folder, struct tdmi_cgroup *limits)
{
    double quota, period;
    if (read_number(root, folder, "cpu.cfs_quota_us", &quota) &&
        read_number(root, folder, "cpu.cfs_period_us", &period))
        tighten_cpus(limits, quota, period);
}

static void look_at_memory_v1(const char *root, const char *folder, struct tdmi_cgroup *limits)
{
    double bytes;
    if (read_number(root, folder, "memory.limit_in_bytes", &bytes))
        tighten(&limits->memory_bytes, 0, bytes);
    if (read_number(root, folder, "memory.memsw.limit_in_bytes", &bytes))
        tighten(&limits->both_bytes, 0, bytes);
}

static void look_at_v2(const char *root, const char *folder, struct tdmi_cgroup *limits)
{
    char text[64];
    long long quota = 0, period = 0;
    double bytes;
    if (read_file(root, folder, "cpu.max", text) &&
        sscanf(text, "%lld %lld", &quota, &period) == 2 && quota > 0 && period > 0)
        tighten_cpus(limits, (double)quota, (double)period);
    if (read_number(root, folder, "memory.max", &bytes))
        tighten(&limits->memory_bytes, 0, bytes);
    if (read_number(root, folder, "memory.swap.max", &bytes))
        tighten(&limits->swap_bytes, -1, bytes);
}

typedef void look(const char *root, const char *folder, struct tdmi_cgroup *limits);

/* look at mount + group, then at every folder above it down to mount. */
static void walk_up(const char *root, const char *mount, const char *group, look *look_at,
                    struct tdmi_cgroup *limits)
{
    char folder[path_bytes];
    int needed = snprintf(folder, sizeof folder, "%s%s", mount, group);
    if (needed < 0 || (size_t)needed >= sizeof folder)
        return;
    size_t stop = strlen(mount);
    for (;;) {
        look_at(root, folder, limits);
        char *slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < stop || strlen(folder) <= stop)
            return;
        *slash = '\0';
    }
}

static bool names_controller(const char *list, size_t length, const char *controller)
{
    for (const char *at = list, *next; at < list + length; at = next + 1) {
        next = at + strcspn(at, ",:"); /* a colon follows the list */
        if ((size_t)(next - at) == strlen(controller) &&
            memcmp(at, controller, strlen(controller)) == 0)
            return true;
    }
    return false;
}

/* One line "number:controllers:group". */
static void look_at_line(const char *root, const char *line, struct tdmi_cgroup *limits)
{
    const char *controllers = strchr(line, ':');
    const char *group = controllers ? strchr(controllers + 1, ':') : NULL;
    if (!group)
        return;
    controllers++;
    size_t length = (size_t)(group - controllers);
    group++;
    if (length == 0) {
        walk_up(root, "/sys/fs/cgroup", group, look_at_v2, limits);
        walk_up(root, "/sys/fs/cgroup/unified", group, look_at_v2, limits);
    }
    if (names_controller(controllers, length, "cpu"))
        walk_up(root, "/sys/fs/cgroup/cpu", group, look_at_cpus_v1, limits);
    if (names_controller(controllers, length, "memory"))
        walk_up(root, "/sys/fs/cgroup/memory", group, look_at_memory_v1, limits);
}

struct tdmi_cgroup tdmi_cgroup_limits(const char *root)
{
    struct tdmi_cgroup limits = {.swap_bytes = -1};
    char text[path_bytes];
    if (tdmi_system_text(root, "/proc/self/cgroup", text, sizeof text) < 0)
        return limits;
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = '\0';
        look_at_line(root, line, &limits);
        line = end ? end + 1 : NULL;
    }
    return limits;
}
