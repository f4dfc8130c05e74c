/* Scores from counts, and from the JSON that tdm_score_to_json writes. */
#include "train/evaluate/score.h"
#include "base/text/json.h"
#include "tandem/metrics.h"

tdm_score tdmi_score_of(int64_t n, int64_t correct, double loss_sum)
{
    const double of = n > 0 ? (double)n : 1.0;
    tdm_score score = {
        .n = n, .correct = correct, .accuracy = (double)correct / of, .loss = loss_sum / of};
    tdmi_score_count_distinct(&score, n, correct);
    return score;
}

void tdmi_score_count_distinct(tdm_score *score, int64_t n, int64_t correct)
{
    const tdm_interval interval = tdm_wilson(correct, n);
    score->n_distinct = n;
    score->correct_distinct = correct;
    score->low = interval.low;
    score->high = interval.high;
}

static int64_t integer_of(const tdm_json_value *object, const char *key, int64_t other)
{
    return tdm_json_as_integer(tdm_json_member(object, key), other);
}

tdm_score tdmi_score_from_json(const tdm_json_value *object)
{
    const int64_t n = integer_of(object, "n", 0), correct = integer_of(object, "correct", 0);
    const int64_t n_distinct = integer_of(object, "n_distinct", n);
    const int64_t correct_distinct = integer_of(object, "correct_distinct", correct);
    if (n <= 0 || correct < 0 || correct > n || n_distinct < 0 || n_distinct > n ||
        correct_distinct < 0 || correct_distinct > n_distinct)
        return (tdm_score){0};
    tdm_score score = tdmi_score_of(n, correct, 0.0);
    tdmi_score_count_distinct(&score, n_distinct, correct_distinct);
    score.loss = tdm_json_as_number(tdm_json_member(object, "loss"), 0.0);
    return score;
}
