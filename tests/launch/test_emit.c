/* Texts for engines: values in their places, words in the engine's language. */
#include "launch/emit.h"
#include "unit.h"

static const char *const words[] = {"train", "photos", "-o", "runs/first", "--resume"};
static const struct tdmi_emit_options usual = {
    .ranks = 4,
    .min_ranks = 1,
    .restarts = 9,
    .deadline = 60,
    .mpi = "pmix",
    .run = "runs/first",
    .words = words,
    .n_words = 5,
};

/* The text of the engine holds the piece. */
static void expect_piece(struct tdmi_emit_options options, const char *engine, const char *piece)
{
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    tdm_error err = {0};
    options.engine = engine;
    assert_ok(tdmi_emit(&options, &text, &err), &err);
    if (!strstr(tdmi_text_string(&text), piece))
        fail_msg("'%s' is not in:\n%s", piece, tdmi_text_string(&text));
}

TEST(values_stand_in_their_places)
{
    expect_piece(usual, "slurm", "#SBATCH --nodes=1-4\n");
    expect_piece(usual, "slurm", " train photos -o runs/first --resume || status=$?\n");
    expect_piece(usual, "slurm", "\nrun=runs/first\n");
    expect_piece(usual, "slurm", "\nmpi=pmix ");
    expect_piece(usual, "slurm", "\n#SBATCH --signal=USR2@180\n");
    expect_piece(usual, "k8s", "maxRestarts: 9\n");
    expect_piece(usual, "k8s", "image: \"tandem\"\n");
    expect_piece(usual, "k8s", "              - \"photos\"\n              - \"-o\"\n");
    expect_piece(usual, "mpijob", "-n, '4',");
    expect_piece(usual, "spark", "    \"photos\",\n    \"-o\",\n");
    expect_piece(usual, "spark", "RANKS = 4\n");
    struct tdmi_emit_options other = usual;
    other.ranks = 1;
    other.image = "registry/tandem:1";
    other.claim = "photos";
    expect_piece(other, "slurm", "#SBATCH --nodes=1-1\n");
    expect_piece(other, "k8s", "image: \"registry/tandem:1\"\n");
    expect_piece(other, "mpijob", "claimName: \"photos\"}\n");
}

TEST(no_place_is_left_empty)
{
    static const char *const engines[] = {"slurm", "k8s", "mpijob", "spark"};
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
        struct tdmi_emit_options options = usual;
        options.engine = engines[i];
        assert_int_equal(tdmi_emit(&options, &text, NULL), TDM_OK);
        const char *at = tdmi_text_string(&text);
        while ((at = strchr(at, '@')) != NULL)
            assert_false(*++at >= 'a' && *at <= 'z'); /* USR2@180, ${tandem[@]} */
    }
}

TEST(words_are_quoted)
{
    static const char *const odd[] = {"it's \"a\" \\ $(HOME)", "\n\x7f\xc2\x85\xef\xbb\xbf"};
    struct tdmi_emit_options options = usual;
    options.words = odd;
    options.n_words = 2;
    expect_piece(options, "slurm",
                 "'it'\\''s \"a\" \\ $(HOME)' $'\\012\\177\\302\\205\xef\xbb\xbf'");
    expect_piece(options, "k8s", "- \"it's \\\"a\\\" \\\\ $$(HOME)\"\n");
    expect_piece(options, "k8s", "- \"\\x0a\\x7f\\u0085\\ufeff\"\n");
    expect_piece(options, "spark", "\"it's \\\"a\\\" \\\\ $(HOME)\",\n");
}

TEST(bytes_that_are_no_text)
{
    static const char *const bytes[] = {"a\xff"};
    TDMI_AT_END(tdmi_text_release) tdmi_text text = {0};
    struct tdmi_emit_options options = usual;
    tdm_error err = {0};
    options.words = bytes;
    options.n_words = 1;
    expect_piece(options, "slurm", " $'a\\377' ");
    expect_piece(options, "spark", "\"a\\udcff\"");
    options.engine = "k8s";
    assert_int_equal(tdmi_emit(&options, &text, &err), TDM_E_USAGE);
    assert_says(&err, "is no UTF-8");
    options.engine = "cron";
    assert_int_equal(tdmi_emit(&options, &text, &err), TDM_E_USAGE);
    assert_says(&err, "no engine 'cron'");
}

TEST(names_are_labels_of_hosts)
{
    static const char *const names[][2] = {
        {"runs/first", "first"},
        {"/a/My Run_2/", "my-run-2"},
        {"42", "tandem"},
        {"..", "tandem"},
        {"x--", "x"},
        {"runs/Übung", "bung"},
        {"yes", "yes"},
        {"/", "tandem"},
        {"a123456789b123456789c123456789d12345678-9", "a123456789b123456789c123456789d12345678"},
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char piece[80];
        struct tdmi_emit_options options = usual;
        options.run = names[i][0];
        snprintf(piece, sizeof piece, "\n  name: '%s'\n", names[i][1]);
        expect_piece(options, "k8s", piece);
    }
}

TEST_MAIN(NULL, NULL)
