/*
 * What was timed once, in files: a folder of them for a GPU with its driver and a version of the
 * library, a file for a problem. A file that is damaged, or of another problem, is as good as none.
 */
#ifndef TANDEM_BACKEND_CUDA_CHOICES_H
#define TANDEM_BACKEND_CUDA_CHOICES_H

#include "tandem/error.h"

/* problem: text without quotes or backslashes. *json, freed with tdmi_free, is what was written for
 * it, byte by byte. TDM_E_INPUT: there is nothing. */
tdm_status tdmi_cuda_choice_read(const char *folder, const char *problem, char **json,
                                 tdm_error *err) TDM_MUST_USE;
/* The folder is made. */
tdm_status tdmi_cuda_choice_write(const char *folder, const char *problem, const char *json,
                                  tdm_error *err) TDM_MUST_USE;

#endif
