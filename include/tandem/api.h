/*
 * Marks and rules of every public header.
 *
 * Structs that a program hands over begin with struct_bytes, their size when the program was
 * compiled. The library reads and writes no byte behind it, and new members are added at the end
 * and behind its padding, so a program works with newer libraries without being compiled again.
 *
 *     struct tdm_train_options options;                    // with defaults: through its _init
 *     tdm_train_options_init(&options, sizeof options);
 *     struct tdm_export_options export = {.struct_bytes = sizeof export};   // all else zero
 *     struct tdm_train_result result = {.struct_bytes = sizeof result};     // results
 *
 * Structs inside other structs, and those that the library lends, have no size: the first never
 * change, the second may grow.
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
