/*
 * The prototypes below follow NVIDIA's NVML API reference; handles and return codes are opaque to
 * us. Only the essential calls are required, the rest are optional.
 */
#include "track/nvml.h"
#include "base/system/plugin.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

typedef struct nvml_device *device_handle;

struct memory_info {
    unsigned long long total, available, used;
};

struct use_rates {
    unsigned gpu, memory;
};

/* X(required, field, symbol, parameters): each becomes a function pointer, looked up by name. */
#define NVML_CALLS(X)                                                                          \
    X(1, init, "nvmlInit_v2", (void))                                                          \
    X(1, shutdown, "nvmlShutdown", (void))                                                     \
    X(1, count, "nvmlDeviceGetCount_v2", (unsigned *))                                         \
    X(1, handle, "nvmlDeviceGetHandleByIndex_v2", (unsigned, device_handle *))                 \
    X(0, driver, "nvmlSystemGetDriverVersion", (char *, unsigned))                             \
    X(0, cuda, "nvmlSystemGetCudaDriverVersion_v2", (int *))                                   \
    X(0, name, "nvmlDeviceGetName", (device_handle, char *, unsigned))                         \
    X(0, uuid, "nvmlDeviceGetUUID", (device_handle, char *, unsigned))                         \
    X(0, memory, "nvmlDeviceGetMemoryInfo", (device_handle, struct memory_info *))             \
    X(0, compute, "nvmlDeviceGetCudaComputeCapability", (device_handle, int *, int *))         \
    X(0, pcie_generation, "nvmlDeviceGetMaxPcieLinkGeneration", (device_handle, unsigned *))   \
    X(0, pcie_lanes, "nvmlDeviceGetMaxPcieLinkWidth", (device_handle, unsigned *))             \
    X(0, nvlink, "nvmlDeviceGetNvLinkState", (device_handle, unsigned, unsigned *))            \
    X(0, power_limit, "nvmlDeviceGetPowerManagementLimit", (device_handle, unsigned *))        \
    X(0, use, "nvmlDeviceGetUtilizationRates", (device_handle, struct use_rates *))            \
    X(0, power, "nvmlDeviceGetPowerUsage", (device_handle, unsigned *))                        \
    X(0, energy, "nvmlDeviceGetTotalEnergyConsumption", (device_handle, unsigned long long *)) \
    X(0, clock, "nvmlDeviceGetClockInfo", (device_handle, int, unsigned *))                    \
    X(0, temperature, "nvmlDeviceGetTemperature", (device_handle, int, unsigned *))            \
    X(0, pcie_traffic, "nvmlDeviceGetPcieThroughput", (device_handle, int, unsigned *))        \
    X(0, reasons, "nvmlDeviceGetCurrentClocksThrottleReasons",                                 \
      (device_handle, unsigned long long *))                                                   \
    X(0, newer_reasons, "nvmlDeviceGetCurrentClocksEventReasons",                              \
      (device_handle, unsigned long long *))

struct tdmi_nvml {
    void *library;
    bool is_started;
    unsigned n_devices;
    char driver_version[80];
    int cuda_version;
#define X(required, field, symbol, parameters) int(*field) parameters;
    NVML_CALLS(X)
#undef X
};

enum { nvlinks_max = 18, driver_not_loaded = 9 };
/* NVML's numbers of queries */
enum { sm_clock = 1, memory_clock = 2, chip_temperature = 0, pcie_sent = 0, pcie_received = 1 };

static tdm_status load(tdmi_nvml *nvml, const char *file, tdm_error *err)
{
    nvml->library = dlopen(file, RTLD_LAZY | RTLD_LOCAL);
    if (!nvml->library)
        return TDM_FAIL(err, TDM_E_ABSENT, "there is no NVIDIA driver (%s is not installed)", file);
#define X(required, field, symbol, parameters)                                  \
    if (!tdmi_plugin_symbol(nvml->library, symbol, &nvml->field) && (required)) \
        return TDM_FAIL(err, TDM_E_ABSENT, "%s lacks the function %s", file, symbol);
    NVML_CALLS(X)
#undef X
    return TDM_OK;
}

tdm_status tdmi_nvml_open(const char *file, tdmi_nvml **result, tdm_error *err)
{
    TDMI_AT_END(tdmi_nvml_close_at) tdmi_nvml *nvml = NULL;
    *result = NULL;
    TDMI_TRY(TDMI_NEW(nvml, 1, err));
    TDMI_TRY(load(nvml, file ? file : "libnvidia-ml.so.1", err));
    int code = nvml->init();
    nvml->is_started = code == 0;
    if (code == 0)
        code = nvml->count(&nvml->n_devices);
    if (code != 0)
        return TDM_FAIL(err, TDM_E_ABSENT,
                        code == driver_not_loaded
                            ? "the NVIDIA driver is installed but not running (NVML returns %d)"
                            : "the NVIDIA driver does not answer (NVML returns %d)",
                        code);
    if (nvml->n_devices == 0)
        return TDM_FAIL(err, TDM_E_ABSENT, "the NVIDIA driver sees no GPU");
    if (!nvml->driver || nvml->driver(nvml->driver_version, sizeof nvml->driver_version) != 0)
        nvml->driver_version[0] = '\0';
    if (!nvml->cuda || nvml->cuda(&nvml->cuda_version) != 0)
        nvml->cuda_version = 0;
    *result = tdmi_take(&nvml);
    return TDM_OK;
}

void tdmi_nvml_close(tdmi_nvml *nvml)
{
    if (!nvml)
        return;
    if (nvml->is_started)
        nvml->shutdown();
    if (nvml->library)
        dlclose(nvml->library);
    tdmi_free(nvml);
}

int tdmi_nvml_count(const tdmi_nvml *nvml)
{
    return (int)nvml->n_devices;
}

const char *tdmi_nvml_driver(const tdmi_nvml *nvml)
{
    return nvml->driver_version;
}

int tdmi_nvml_cuda(const tdmi_nvml *nvml)
{
    return nvml->cuda_version;
}

static void describe_links(const tdmi_nvml *nvml, device_handle handle,
                           struct tdm_machine_gpu *device)
{
    unsigned number;
    if (nvml->pcie_generation && nvml->pcie_generation(handle, &number) == 0)
        device->pcie_generation = (int)number;
    if (nvml->pcie_lanes && nvml->pcie_lanes(handle, &number) == 0)
        device->pcie_lanes = (int)number;
    for (unsigned link = 0; nvml->nvlink && link < nvlinks_max; link++) {
        unsigned is_active = 0;
        if (nvml->nvlink(handle, link, &is_active) == 0 && is_active)
            device->nvlinks++;
    }
}

static tdm_status find_gpu(const tdmi_nvml *nvml, int index, device_handle *handle, tdm_error *err)
{
    const int code = nvml->handle((unsigned)index, handle);
    if (code != 0)
        return TDM_FAIL(err, TDM_E_ABSENT, "GPU %d of %u cannot be reached (NVML returns %d)",
                        index, nvml->n_devices, code);
    return TDM_OK;
}

tdm_status tdmi_nvml_describe(const tdmi_nvml *nvml, int index, struct tdm_machine_gpu *device,
                              tdm_error *err)
{
    device_handle handle;
    struct memory_info memory;
    unsigned milliwatts;
    memset(device, 0, sizeof *device);
    TDMI_TRY(find_gpu(nvml, index, &handle, err));
    if (nvml->name && nvml->name(handle, device->name, sizeof device->name) != 0)
        device->name[0] = '\0';
    if (nvml->uuid && nvml->uuid(handle, device->uuid, sizeof device->uuid) != 0)
        device->uuid[0] = '\0';
    if (nvml->memory && nvml->memory(handle, &memory) == 0) {
        device->memory_bytes = (int64_t)memory.total;
        device->memory_free_bytes = (int64_t)memory.available;
    }
    if (nvml->compute && nvml->compute(handle, &device->compute_major, &device->compute_minor) != 0)
        device->compute_major = device->compute_minor = 0;
    if (nvml->power_limit && nvml->power_limit(handle, &milliwatts) == 0)
        device->power_limit_watts = milliwatts / 1000.0;
    describe_links(nvml, handle, device);
    return TDM_OK;
}

/* ---- at this moment --------------------------------------------------------------------- */

/* -1 where the call is not there, or fails. */
static int64_t number_of(int (*call)(device_handle, unsigned *), device_handle handle)
{
    unsigned number;
    return call && call(handle, &number) == 0 ? (int64_t)number : -1;
}

static int64_t number_which(int (*call)(device_handle, int, unsigned *), device_handle handle,
                            int which)
{
    unsigned number;
    return call && call(handle, which, &number) == 0 ? (int64_t)number : -1;
}

static int64_t long_number_of(int (*call)(device_handle, unsigned long long *),
                              device_handle handle)
{
    unsigned long long number;
    return call && call(handle, &number) == 0 ? (int64_t)number : -1;
}

tdm_status tdmi_nvml_sample(const tdmi_nvml *nvml, int index, struct tdmi_nvml_sample *sample,
                            tdm_error *err)
{
    device_handle handle;
    struct memory_info memory;
    struct use_rates use;
    memset(sample, 0, sizeof *sample);
    TDMI_TRY(find_gpu(nvml, index, &handle, err));
    const bool has_use = nvml->use && nvml->use(handle, &use) == 0;
    sample->busy_percent = has_use ? (int)use.gpu : -1;
    sample->memory_busy_percent = has_use ? (int)use.memory : -1;
    const bool has_memory = nvml->memory && nvml->memory(handle, &memory) == 0;
    sample->memory_used_bytes = has_memory ? (int64_t)memory.used : -1;
    const int64_t milliwatts = number_of(nvml->power, handle);
    sample->power_watts = milliwatts < 0 ? -1.0 : (double)milliwatts / 1000.0;
    const int64_t millijoules = long_number_of(nvml->energy, handle);
    sample->energy_joules = millijoules < 0 ? -1.0 : (double)millijoules / 1000.0;
    sample->sm_mhz = (int)number_which(nvml->clock, handle, sm_clock);
    sample->memory_mhz = (int)number_which(nvml->clock, handle, memory_clock);
    sample->temperature_celsius = (int)number_which(nvml->temperature, handle, chip_temperature);
    sample->pcie_sent_kb_per_s = number_which(nvml->pcie_traffic, handle, pcie_sent);
    sample->pcie_received_kb_per_s = number_which(nvml->pcie_traffic, handle, pcie_received);
    sample->reasons = long_number_of(nvml->reasons, handle);
    if (sample->reasons < 0)
        sample->reasons = long_number_of(nvml->newer_reasons, handle);
    return TDM_OK;
}

const char *tdmi_nvml_reason_text(int64_t reason)
{
    static const char *const texts[] = {
        "idle", "clocks were set",   "power cap",          "hardware", "synced with other cards",
        "heat", "heat, by hardware", "power, by hardware", "display"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (reason == (int64_t)1 << i)
            return texts[i];
    return NULL;
}
