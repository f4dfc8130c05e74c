/* The words for what audit finds: include/tandem/verdict.def. */
#include "data/audit/finding.h"

static const struct {
    const char *word, *meaning;
    bool is_bad;
} verdicts[] = {
#define X(name, word, is_bad, meaning) {word, meaning, is_bad},
#include "tandem/verdict.def"
#undef X
    {"ok", "nothing to say", false},
};

const char *tdm_verdict_word(enum tdm_verdict verdict)
{
    return verdicts[verdict].word;
}

const char *tdm_verdict_meaning(enum tdm_verdict verdict)
{
    return verdicts[verdict].meaning;
}

bool tdm_verdict_is_bad(enum tdm_verdict verdict)
{
    return verdicts[verdict].is_bad;
}

enum tdm_verdict tdmi_verdict_among(uint32_t remarks)
{
    enum tdm_verdict verdict = 0;
    while (verdict < TDM_VERDICT_OK && (remarks & tdmi_verdict_bit(verdict)) == 0)
        verdict++;
    return verdict;
}
