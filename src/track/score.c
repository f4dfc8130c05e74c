/* A score as JSON: one spelling for results, records and files. */
#include "tandem/event.h"
#include "base/banned.h"

void tdm_score_members_to_json(const tdm_score *score, tdm_json_writer *writer)
{
    tdm_json_integer(writer, "n", score->n);
    tdm_json_integer(writer, "correct", score->correct);
    tdm_json_number(writer, "accuracy", score->accuracy);
    tdm_json_number(writer, "low", score->low);
    tdm_json_number(writer, "high", score->high);
    tdm_json_number(writer, "loss", score->loss);
}

void tdm_score_to_json(const tdm_score *score, tdm_json_writer *writer, const char *key)
{
    tdm_json_object_begin(writer, key);
    tdm_score_members_to_json(score, writer);
    tdm_json_object_end(writer);
}
