/*
 * What every public header needs: the export mark, warn-unused and printf checks, the version.
 */
#ifndef TANDEM_API_H
#define TANDEM_API_H

#define TDM_VERSION_MAJOR 0
#define TDM_VERSION_MINOR 1
#define TDM_VERSION_PATCH 0

#if defined(__GNUC__)
#define TDM_API __attribute__((visibility("default")))
#define TDM_MUST_USE __attribute__((warn_unused_result))
#define TDM_PRINTF(format_at, arguments_at) __attribute__((format(printf, format_at, arguments_at)))
#else
#define TDM_API
#define TDM_MUST_USE
#define TDM_PRINTF(format_at, arguments_at)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* "0.1.0": of the library that is linked, not of the header. */
TDM_API const char *tdm_version(void);

#ifdef __cplusplus
}
#endif
#endif
