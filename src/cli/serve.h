/* predict --serve: a model that answers until somebody ends it. */
#pragma once

#include "cli/command.h"
#include "tandem/model.h"

/* Is text an address, and not the next argument? "8080", "127.0.0.1:0", "[::1]:80". */
bool tdmi_is_address(const char *text);
/* Prints where it listens, waits for a request to stop, finishes and reports what was answered. */
tdm_status tdmi_serve(struct tdmi_call *call, const struct tdm_model_options *model,
                      const struct tdm_serve_options *options, tdm_error *err) TDM_MUST_USE;
