/*
 * Disk read rate. A file is written, synced and read back past the page cache: with O_DIRECT where
 * the file system allows it, else after asking the kernel to drop the pages. Which of them it was
 * is part of the answer. Caches of a hypervisor or a network server cannot be seen from here.
 *
 * The file has lost its name before anything is written: even kill -9 leaves nothing behind.
 */
#include "base/clock.h"
#include "base/hash/rng.h"
#include "base/scope.h"
#include "tandem/event.h"
#include "tune/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { chunk_bytes = 4 << 20 };

/* f_type of the file systems that live in memory; see statfs(2). */
static const uint32_t tmpfs_magic = 0x01021994u, ramfs_magic = 0x858458f6u;

static void note(struct tdm_machine_rates *rates, const char *attempted, const char *folder)
{
    snprintf(rates->disk_problem, sizeof rates->disk_problem, "%s in %.120s: %s", attempted, folder,
             strerror(errno));
}

static int open_nameless(const char *folder)
{
    char path[4096];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    if (snprintf(path, sizeof path, "%s/.tandem-probe-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}

/* Incompressible bytes: some file systems would compress anything else. */
static void fill(uint32_t *words, size_t count)
{
    tdmi_rng rng = tdmi_rng_at(1, TDMI_RNG_TEST, 0, 0);
    for (size_t i = 0; i < count; i++)
        words[i] = tdmi_rng_u32(&rng);
}

/* Stops at limit bytes or when the time is over; a slow disk gets a smaller file. Returns the bytes
 * that are on the disk, -1 on failure. */
static int64_t write_file(int fd, const char *chunk, double seconds, int64_t limit)
{
    int64_t written = 0, start = tdmi_clock_ns();
    do {
        ssize_t n = pwrite(fd, chunk, chunk_bytes, written);
        if (n != chunk_bytes) {
            errno = n < 0 ? errno : ENOSPC;
            /* Half a file is enough to time when the disk is merely full. */
            return written > 0 && errno == ENOSPC ? written : -1;
        }
        if (fdatasync(fd) != 0)
            return -1;
        written += n;
    } while (written + chunk_bytes <= limit && tdmi_clock_seconds_since(start) < seconds &&
             !tdm_stop_is_requested());
    return written;
}

static bool is_in_memory(int fd)
{
    struct statfs file_system;
    return fstatfs(fd, &file_system) == 0 && ((uint32_t)file_system.f_type == tmpfs_magic ||
                                              (uint32_t)file_system.f_type == ramfs_magic);
}

static const char *keep_cache_out(int fd, int64_t bytes)
{
    bool has_dropped = posix_fadvise(fd, 0, bytes, POSIX_FADV_DONTNEED) == 0;
    if (is_in_memory(fd))
        return "a file system in memory, not a disk";
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT) == 0)
        return "O_DIRECT";
    return has_dropped ? "page cache dropped before reading" : "page cache may have helped";
}

/* Best rate of whole passes over the file; -1 on failure. */
static double read_file(int fd, char *chunk, double seconds, int64_t bytes)
{
    double best = 0;
    int64_t start = tdmi_clock_ns();
    do {
        int64_t pass = tdmi_clock_ns(), at = 0;
        while (at < bytes) {
            ssize_t n = pread(fd, chunk, chunk_bytes, at);
            if (n <= 0)
                return -1;
            at += n;
        }
        double rate = (double)bytes / tdmi_clock_seconds_since(pass);
        best = rate > best ? rate : best;
        if (posix_fadvise(fd, 0, bytes, POSIX_FADV_DONTNEED) != 0)
            break;
    } while (tdmi_clock_seconds_since(start) < seconds && !tdm_stop_is_requested());
    return best;
}

void tdmi_probe_disk(const char *folder, double seconds, int64_t bytes,
                     struct tdm_machine_rates *rates)
{
    TDMI_AT_END(tdmi_free_at) char *chunk = tdmi_alloc_aligned(chunk_bytes + 4096);
    TDMI_AT_END(tdmi_close_at) const int fd = open_nameless(folder);
    if (!chunk)
        errno = ENOMEM;
    if (!chunk || fd < 0) {
        note(rates, "no file could be made", folder);
        return;
    }
    /* O_DIRECT needs memory aligned to a page; the allocator promises a cache line. */
    char *aligned = chunk + (4096 - (uintptr_t)chunk % 4096) % 4096;
    fill((uint32_t *)(void *)aligned, chunk_bytes / sizeof(uint32_t));
    int64_t written = write_file(fd, aligned, seconds / 2, bytes);
    if (written < 0) {
        note(rates, "the file could not be written", folder);
        return;
    }
    rates->disk_bytes = written;
    rates->disk_method = keep_cache_out(fd, written);
    double rate = read_file(fd, aligned, seconds / 2, written);
    if (rate < 0)
        note(rates, "the file could not be read back", folder);
    else
        rates->disk_read_bytes_per_s = rate;
}
