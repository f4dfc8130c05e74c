/*
 * The syntax of optimizers and schedules in options: a name, and after a colon parameters that
 * differ from their defaults: "adam:beta2=0.99,epsilon=1e-7".
 */
#pragma once

#include "base/text/text.h"
#include "tandem/error.h"

enum { TDMI_PARAMETERS = 6 }; /* most that one has */

struct tdmi_parameter {
    const char *name;        /* NULL past the last of an array */
    double usual, low, high; /* accepted from low to high, both included */
    bool is_whole;
    const char *meaning;
};

/* The length of the name that text begins with. */
size_t tdmi_parameters_name_length(const char *text);
/* Sets one value for each parameter: the default, or the value given in text after the name. `what`
 * is the kind of object for messages: "optimizer". TDM_E_USAGE lists what is accepted. */
tdm_status tdmi_parameters_read(const char *what, const char *text,
                                const struct tdmi_parameter *parameters, double *values,
                                tdm_error *err) TDM_MUST_USE;
void tdmi_parameters_usual(const struct tdmi_parameter *parameters, double *values);
