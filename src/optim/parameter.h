/*
 * Parser of an option's optimizer or schedule: its name, and after a colon the parameters that
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
/* values, as many as there are parameters: the usual ones, changed by what follows the name in
 * text. what is the kind of thing: "optimizer". TDM_E_USAGE says in one sentence what is accepted.
 */
tdm_status tdmi_parameters_read(const char *what, const char *text,
                                const struct tdmi_parameter *parameters, double *values,
                                tdm_error *err) TDM_MUST_USE;
void tdmi_parameters_usual(const struct tdmi_parameter *parameters, double *values);
