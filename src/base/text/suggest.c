/*
 * Nearest name by optimal string alignment: insertions, deletions, substitutions and swaps of
 * neighbours cost one each; capitals count as small letters. A name qualifies within a third of its
 * length (at least one slip), and when what was typed is its beginning.
 */

#include "base/text/suggest.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { name_max = 32 };

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static char small_letter(char c)
{
    return (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

static bool is_same(char a, char b)
{
    return small_letter(a) == small_letter(b);
}

static int edit_distance(const char *a, const char *b)
{
    int row[name_max + 1][name_max + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > name_max || m > name_max)
        return name_max;
    for (int i = 0; i <= n; i++) {
        for (int j = 0; j <= m; j++) {
            if (i == 0 || j == 0) {
                row[i][j] = i + j;
                continue;
            }
            int best = row[i - 1][j - 1] + !is_same(a[i - 1], b[j - 1]);
            best = smaller(best, smaller(row[i - 1][j], row[i][j - 1]) + 1);
            if (i > 1 && j > 1 && is_same(a[i - 1], b[j - 2]) && is_same(a[i - 2], b[j - 1]))
                best = smaller(best, row[i - 2][j - 2] + 1);
            row[i][j] = best;
        }
    }
    return row[n][m];
}

void tdmi_suggest_consider(tdmi_suggestion *suggestion, const char *known)
{
    size_t typed_length = strlen(suggestion->typed);
    int distance = edit_distance(suggestion->typed, known);
    int limit = (int)strlen(known) / 3 > 1 ? (int)strlen(known) / 3 : 1;
    if (typed_length > 0 && strncasecmp(suggestion->typed, known, typed_length) == 0)
        distance = smaller(distance, 1);
    if (distance <= limit && (!suggestion->nearest || distance < suggestion->distance)) {
        suggestion->nearest = known;
        suggestion->distance = distance;
    }
}

const char *tdmi_suggest_words(const tdmi_suggestion *suggestion, const char *prefix, char *text,
                               size_t text_bytes)
{
    text[0] = '\0';
    if (suggestion->nearest)
        snprintf(text, text_bytes, "; did you mean '%s%s'?", prefix, suggestion->nearest);
    return text;
}
