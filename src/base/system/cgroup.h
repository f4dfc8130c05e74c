/*
 * The limits that a container sets: cgroup version 1 and 2, this process's group and every group
 * above it that is visible.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tdmi_cgroup {
    double cpus;          /* quota in CPUs; 0 when there is none */
    int64_t memory_bytes; /* 0 when there is no limit */
    int64_t swap_bytes;   /* version 2; -1 when there is no limit: none at all is one */
    int64_t both_bytes;   /* memory and swap together, version 1; 0 when there is no limit */
};

/* root is "" for this machine; tests give a folder with its own proc/ and sys/. */
struct tdmi_cgroup tdmi_cgroup_limits(const char *root);

/* A small text file below root, cut at buffer_bytes - 1 and terminated; its length, or -1. Trailing
 * white space is cut off. */
long tdmi_system_text(const char *root, const char *path, char *buffer, size_t buffer_bytes);
