/*
 * The door to Arrow C++. The one C++ file behind it is left out of builds without Arrow, so only
 * files that the build leaves out with it, and the feature list, may call what stands here.
 */
#ifndef TANDEM_DATA_ARROW_BRIDGE_H
#define TANDEM_DATA_ARROW_BRIDGE_H

#ifdef __cplusplus
extern "C" {
#endif

/* "26.0.1": of the library that is loaded, not of the headers. Valid for ever. */
const char *tdmi_arrow_version(void);

#ifdef __cplusplus
}
#endif

#endif
