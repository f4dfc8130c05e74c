/* Scores: counts, accuracy, interval and mean loss (tandem/event.h). */
#pragma once

#include "tandem/event.h"

/* Score of n images without copies. */
tdm_score tdmi_score_of(int64_t n, int64_t correct, double loss_sum);
/* Let the interval rest on these distinct images. */
void tdmi_score_count_distinct(tdm_score *score, int64_t n, int64_t correct);
/* A score of a record; zeros where it is none. Records of older versions do not count distinct
 * images: all of theirs are. */
tdm_score tdmi_score_from_json(const tdm_json_value *object);
