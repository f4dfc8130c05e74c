/* Facts of this machine from /proc, /sys, the cgroup files, hwloc and CPUID. */
#include "base/system/cpu.h"
#include "base/system/affinity.h"
#include "base/system/cgroup.h"
#include "base/thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

/* The value of the first line "name<spaces>: value" of a /proc file's text. */
static bool find_line(const char *text, const char *name, char *value, size_t value_bytes)
{
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0)
            continue;
        const char *at = line + length;
        at += strspn(at, " \t");
        if (*at != ':')
            continue;
        at++;
        at += strspn(at, " \t");
        snprintf(value, value_bytes, "%.*s", (int)strcspn(at, "\n"), at);
        return true;
    }
    return false;
}

static void find_model(const char *root, struct tdmi_cpu *cpu)
{
    /* x86 and many arm64 machines; some boards; POWER. */
    static const char *const names[] = {"model name", "Model", "cpu"};
    char text[16384];
    if (tdmi_system_text(root, "/proc/cpuinfo", text, sizeof text) < 0)
        return;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (find_line(text, names[i], cpu->model, sizeof cpu->model))
            return;
}

static int64_t kibibytes(const char *text, const char *name)
{
    char value[64];
    if (!find_line(text, name, value, sizeof value))
        return 0;
    long long number = strtoll(value, NULL, 10);
    return number > 0 && number < INT64_MAX / 1024 ? number * 1024 : 0;
}

static void find_memory(const char *root, struct tdmi_cpu *cpu)
{
    char text[8192];
    if (tdmi_system_text(root, "/proc/meminfo", text, sizeof text) < 0)
        return;
    cpu->memory_bytes = kibibytes(text, "MemTotal");
    cpu->memory_available_bytes = kibibytes(text, "MemAvailable");
    cpu->swap_bytes = kibibytes(text, "SwapTotal");
}

/* "48K", "2048K", "32M"; 0 when it is none of these. */
static int64_t cache_bytes(const char *text)
{
    char *end = NULL;
    long long number = strtoll(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return end != text && number > 0 && number < (1LL << 32) ? number << shift : 0;
}

static bool cache_fact(const char *root, int index, const char *name, char *text, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    return tdmi_system_text(root, path, text, bytes) > 0;
}

static void find_caches(const char *root, struct tdmi_cpu *cpu)
{
    char level[16], type[32], size[32];
    for (int i = 0; i < 16; i++) {
        if (!cache_fact(root, i, "level", level, sizeof level) ||
            !cache_fact(root, i, "type", type, sizeof type) ||
            !cache_fact(root, i, "size", size, sizeof size) || strcmp(type, "Instruction") == 0)
            continue;
        if (strcmp(level, "1") == 0)
            cpu->l1d_bytes = cache_bytes(size);
        else if (strcmp(level, "2") == 0)
            cpu->l2_bytes = cache_bytes(size);
        else if (strcmp(level, "3") == 0)
            cpu->l3_bytes = cache_bytes(size);
    }
}

static void set_topology(struct tdmi_cpu *cpu, const struct tdmi_topology *topology)
{
    cpu->packages = topology->packages;
    cpu->cores = topology->cores;
    cpu->threads = topology->threads;
    cpu->numa_nodes = topology->numa_nodes;
}

/* The part of the machine's memory and swap that a container may use. */
static int64_t all_memory(const struct tdmi_cpu *cpu, const struct tdmi_cgroup *limits)
{
    int64_t memory = cpu->memory_bytes, swap = cpu->swap_bytes;
    if (limits->memory_bytes > 0 && (memory == 0 || limits->memory_bytes < memory))
        memory = limits->memory_bytes;
    if (limits->swap_bytes >= 0 && limits->swap_bytes < swap)
        swap = limits->swap_bytes;
    if (limits->both_bytes > 0 && (memory == 0 || limits->both_bytes < memory + swap))
        return limits->both_bytes;
    return memory + swap;
}

/* ---- instruction sets ---------------------------------------------------------------------- */

/* CPUID, read with the operating system in mind: wide registers count only when XCR0 says that the
 * kernel saves them at a switch. Bit numbers are those of the Intel and AMD manuals. */
#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

enum { leaf_1, leaf_7, leaf_7_1, n_leaves };
enum { eax, ebx, ecx, edx, n_registers };

/* Register states in XCR0. */
enum { state_none = 0, state_avx = 0x6, state_avx512 = 0xe6, state_amx = 0x60000 };

static const struct {
    const char *name;
    int leaf, reg, bit;
    uint64_t states;
} extensions[] = {
    {"sse4.2", leaf_1, ecx, 20, state_none},
    {"avx", leaf_1, ecx, 28, state_avx},
    {"f16c", leaf_1, ecx, 29, state_avx},
    {"fma", leaf_1, ecx, 12, state_avx},
    {"avx2", leaf_7, ebx, 5, state_avx},
    {"avx_vnni", leaf_7_1, eax, 4, state_avx},
    {"avx512f", leaf_7, ebx, 16, state_avx512},
    {"avx512bw", leaf_7, ebx, 30, state_avx512},
    {"avx512dq", leaf_7, ebx, 17, state_avx512},
    {"avx512vl", leaf_7, ebx, 31, state_avx512},
    {"avx512_vnni", leaf_7, ecx, 11, state_avx512},
    {"avx512_bf16", leaf_7_1, eax, 5, state_avx512},
    {"avx512_fp16", leaf_7, edx, 23, state_avx512},
    {"amx_tile", leaf_7, edx, 24, state_amx},
    {"amx_int8", leaf_7, edx, 25, state_amx},
    {"amx_bf16", leaf_7, edx, 22, state_amx},
};

static uint64_t saved_states(unsigned leaf_1_ecx)
{
    unsigned low, high;
    if (!(leaf_1_ecx >> 27 & 1)) /* OSXSAVE: may xgetbv be used? */
        return 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (uint64_t)high << 32 | low;
}

static bool has(const char *isa, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = isa; (at = strstr(at, name)); at += length)
        if ((at == isa || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
            return true;
    return false;
}

static void find_isa(struct tdmi_cpu *cpu)
{
    unsigned words[n_leaves][n_registers] = {{0}};
    size_t length = 0;
    if (!__get_cpuid(1, &words[leaf_1][eax], &words[leaf_1][ebx], &words[leaf_1][ecx],
                     &words[leaf_1][edx]))
        return;
    if (__get_cpuid_count(7, 0, &words[leaf_7][eax], &words[leaf_7][ebx], &words[leaf_7][ecx],
                          &words[leaf_7][edx]) &&
        words[leaf_7][eax] >= 1) /* the highest sub-leaf */
        __get_cpuid_count(7, 1, &words[leaf_7_1][eax], &words[leaf_7_1][ebx], &words[leaf_7_1][ecx],
                          &words[leaf_7_1][edx]);
    uint64_t saved = saved_states(words[leaf_1][ecx]);
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        bool is_there = words[extensions[i].leaf][extensions[i].reg] >> extensions[i].bit & 1;
        if (!is_there || (saved & extensions[i].states) != extensions[i].states)
            continue;
        int added = snprintf(cpu->isa + length, sizeof cpu->isa - length, "%s%s", length ? " " : "",
                             extensions[i].name);
        if (added < 0 || length + (size_t)added >= sizeof cpu->isa)
            break;
        length += (size_t)added;
    }
    cpu->has_avx2_fma = has(cpu->isa, "avx2") && has(cpu->isa, "fma");
    cpu->has_avx512 = has(cpu->isa, "avx512f") && has(cpu->isa, "avx512bw") &&
                      has(cpu->isa, "avx512dq") && has(cpu->isa, "avx512vl");
    cpu->has_avx512_vnni = cpu->has_avx512 && has(cpu->isa, "avx512_vnni");
    cpu->has_avx512_bf16 = cpu->has_avx512 && has(cpu->isa, "avx512_bf16");
    cpu->has_amx_bf16 = has(cpu->isa, "amx_tile") && has(cpu->isa, "amx_bf16");
}

#else

static void find_isa(struct tdmi_cpu *cpu)
{
    cpu->isa[0] = '\0';
}

#endif

/* ---- all of it ----------------------------------------------------------------------------- */

void tdmi_cpu_describe_files(const char *root, struct tdmi_cpu *cpu)
{
    struct tdmi_topology topology;
    *cpu = (struct tdmi_cpu){0};
    find_model(root, cpu);
    find_memory(root, cpu);
    find_caches(root, cpu);
    if (tdmi_sys_topology(root, &topology))
        set_topology(cpu, &topology);
    struct tdmi_cgroup limits = tdmi_cgroup_limits(root);
    cpu->cgroup_cpus = limits.cpus;
    cpu->cgroup_memory_bytes = limits.memory_bytes;
    cpu->all_memory_bytes = all_memory(cpu, &limits);
}

void tdmi_cpu_describe(struct tdmi_cpu *cpu)
{
    struct tdmi_topology topology;
    struct utsname name;
    tdmi_cpu_describe_files("", cpu);
    find_isa(cpu);
    if (uname(&name) == 0)
        snprintf(cpu->architecture, sizeof cpu->architecture, "%.15s", name.machine);
    if (tdmi_affinity_topology(&topology))
        set_topology(cpu, &topology);
    cpu->usable = tdmi_cpus_usable();
}
