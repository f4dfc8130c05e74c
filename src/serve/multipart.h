/*
 * multipart/form-data (RFC 7578): the parts of a body that is in memory as a whole. Nothing is
 * copied; names are unquoted in place.
 */
#pragma once

#include "tandem/error.h"
#include <stddef.h>

struct tdmi_form_part {
    const char *name; /* its file's, else the field's; "" */
    const char *bytes;
    size_t length_bytes;
};

/* content_type is the header, whose boundary counts. body is changed. At most room parts; one more,
 * or what is no such body, is TDM_E_INPUT. */
tdm_status tdmi_multipart_read(const char *content_type, char *body, size_t length_bytes,
                               struct tdmi_form_part *parts, int room, int *n_parts,
                               tdm_error *err) TDM_MUST_USE;
