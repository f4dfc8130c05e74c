/*
 * A quarantine list: images of a source that are to be left out, as audit writes it and a person
 * may edit it. One JSON object a line; "path" decides, the rest is for the reader:
 *
 *     {"path":"cat/17.jpg","verdict":"truncated","reason":"…"}
 */
#pragma once

#include "base/scope.h"
#include "tandem/prepare.h"
#include <stddef.h>

/* May a list be written there? TDM_E_USAGE where something else stands than a list that audit wrote
 * ("path" and "verdict" in every line, neither label nor part), and for the source itself. */
tdm_status tdmi_quarantine_check_target(const char *path, const char *source,
                                        tdm_error *err) TDM_MUST_USE;
/* The bad files of an audit; with is_strict the damaged ones too. */
tdm_status tdmi_quarantine_write(const char *path, const struct tdm_audit *audit, bool is_strict,
                                 tdm_error *err) TDM_MUST_USE;

typedef struct tdmi_quarantine tdmi_quarantine;
/* TDM_E_INPUT names the line that is no such object. */
tdm_status tdmi_quarantine_read(const char *path, tdmi_quarantine **quarantine,
                                tdm_error *err) TDM_MUST_USE;
void tdmi_quarantine_free(tdmi_quarantine *quarantine);
TDMI_POINTER_RELEASE(tdmi_quarantine, tdmi_quarantine_free)
bool tdmi_quarantine_has(const tdmi_quarantine *quarantine, const char *path);
