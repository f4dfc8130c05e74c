/* The audit over a folder of odd files: a verdict for each, sums that add up, nothing changed. */
#include "unit.h"
#include "tandem/prepare.h"
#include "base/each_allocation.h"
#include "data/sources.h"

static struct tdm_audit audit_of(const char *source, bool find_near, int threads)
{
    struct tdm_audit_options options = tdm_audit_options_default();
    struct tdm_audit audit = {.struct_bytes = sizeof audit};
    tdm_error err = {0};
    options.source = source;
    options.find_near = find_near;
    options.threads = threads;
    assert_ok(tdm_audit(&options, (tdm_sink){0}, &audit, &err), &err);
    return audit;
}

/* A textured picture of side x side, made brighter by `more`. */
static void textured(const struct tree *tree, const char *name, int side, uint32_t seed, int more)
{
    static uint8_t bytes[64 + 3 * 200 * 200];
    int n = snprintf((char *)bytes, 64, "P6\n%d %d\n255\n", side, side);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            uint32_t cell = (uint32_t)(x * 8 / side) * 31u + (uint32_t)(y * 8 / side) * 17u + seed;
            int value = (int)(cell * 2654435761u >> 25) + 40 + more;
            for (int c = 0; c < 3; c++)
                bytes[n++] = (uint8_t)value;
        }
    tree_file(tree, name, bytes, (size_t)n);
}

static const struct tdm_audit_file *file_called(const struct tdm_audit *audit, const char *path)
{
    for (int64_t i = 0; i < audit->images; i++)
        if (strcmp(audit->files[i].path, path) == 0)
            return &audit->files[i];
    fail_msg("no file %s in the audit", path);
    return NULL;
}

static struct tree odd_tree(void)
{
    struct tree tree = tree_new();
    textured(&tree, "cat/good.ppm", 64, 1, 0);
    textured(&tree, "cat/brighter.ppm", 64, 1, 6);
    textured(&tree, "cat/large.ppm", 128, 2, 0);
    textured(&tree, "cat/again.ppm", 128, 2, 0);
    textured(&tree, "cat/of-dogs.ppm", 96, 3, 0);
    textured(&tree, "dog/of-cats.ppm", 96, 3, 0);
    textured(&tree, "dog/named.bmp", 80, 4, 0);
    textured(&tree, "dog/small.ppm", 12, 5, 0);
    tree_text(&tree, "dog/cut.ppm", "P6\n40 40\n255\nabc");
    tree_text(&tree, "dog/words.jpg", "this is no picture");
    tree_text(&tree, "dog/empty.png", "");
    tree_text(&tree, "dog/notes.txt", "not counted as a picture");
    return tree;
}

TEST(every_file_gets_its_verdict)
{
    static const struct {
        const char *path, *verdict;
    } expected[] = {
        {"cat/good.ppm", "near duplicate"},
        {"cat/brighter.ppm", "ok"},
        {"cat/again.ppm", "ok"},
        {"cat/large.ppm", "duplicate"},
        {"cat/of-dogs.ppm", "duplicate across classes"},
        {"dog/of-cats.ppm", "duplicate across classes"},
        {"dog/named.bmp", "wrong extension"},
        {"dog/small.ppm", "tiny"},
        {"dog/cut.ppm", "truncated"},
        {"dog/words.jpg", "corrupt"},
    };
    TDMI_AT_END(tree_free) struct tree tree = odd_tree();
    for (int threads = 1; threads <= 3; threads += 2) {
        TDMI_AT_END(tdm_audit_release) struct tdm_audit audit = audit_of(tree.root, true, threads);
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
            assert_string_equal(tdm_verdict_word(file_called(&audit, expected[i].path)->verdict),
                                expected[i].verdict);
        assert_true(tdm_verdict_is_bad(file_called(&audit, "dog/empty.png")->verdict));
        assert_true(*file_called(&audit, "dog/empty.png")->reason != '\0');
        assert_int_equal(audit.images, 11);
        assert_int_equal(audit.others, 1);
        assert_int_equal(audit.bad, 3);
        assert_int_equal(audit.n_classes, 2);
        assert_int_equal(audit.classes[0].n, 5);
        assert_int_equal(audit.classes[1].bad, 3);
        assert_int_equal(audit.min_width, 12);
        assert_int_equal(audit.max_width, 128);
        int64_t sum = 0, sizes = 0;
        for (int v = 0; v < TDM_VERDICTS; v++)
            sum += audit.counts[v];
        for (int s = 0; s < TDM_AUDIT_SIZES; s++)
            sizes += audit.sizes[s];
        assert_int_equal(sum, audit.images);
        assert_true(sizes >= 8 && sizes <= 9); /* the cut one told its size */
        assert_int_equal(audit.n_pairs, 3);
    }
}

TEST(near_copies_are_found_only_with_their_option)
{
    TDMI_AT_END(tree_free) struct tree tree = odd_tree();
    TDMI_AT_END(tdm_audit_release) struct tdm_audit audit = audit_of(tree.root, false, 0);
    assert_int_equal(audit.remarks[TDM_VERDICT_NEAR_COPY], 0);
    assert_int_equal(audit.remarks[TDM_VERDICT_COPY], 1);
    assert_int_equal(audit.remarks[TDM_VERDICT_CONFLICT], 2);
    assert_int_equal(audit.n_pairs, 2);
}

TEST(copies_across_given_parts_leak)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    textured(&tree, "train/cat/a.ppm", 64, 1, 0);
    textured(&tree, "test/cat/b.ppm", 64, 1, 0);
    textured(&tree, "train/dog/c.ppm", 64, 9, 0);
    TDMI_AT_END(tdm_audit_release) struct tdm_audit audit = audit_of(tree.root, true, 0);
    assert_int_equal(audit.counts[TDM_VERDICT_LEAK], 2);
    assert_int_equal(audit.ok, 1);
}

TEST(what_cannot_be_audited_is_an_error)
{
    TDMI_AT_END(tree_free) struct tree tree = tree_new();
    struct tdm_audit_options options = tdm_audit_options_default();
    struct tdm_audit audit = {.struct_bytes = sizeof audit};
    tdm_error err = {0};
    options.source = "/nowhere/at/all";
    assert_int_equal(tdm_audit(&options, (tdm_sink){0}, &audit, &err), TDM_E_INPUT);
    options.source = tree.root;
    assert_int_equal(tdm_audit(&options, (tdm_sink){0}, &audit, &err), TDM_E_INPUT);
    assert_null(audit.files);
}

static const char *audited;

static tdm_status audit_once(tdm_error *err)
{
    TDMI_AT_END(tdm_audit_release) struct tdm_audit audit = {.struct_bytes = sizeof audit};
    struct tdm_audit_options options = tdm_audit_options_default();
    options.source = audited;
    options.threads = 1;
    return tdm_audit(&options, (tdm_sink){0}, &audit, err);
}

TEST(every_failing_allocation_is_an_ordinary_error)
{
    TDMI_AT_END(tree_free) struct tree tree = odd_tree();
    audited = tree.root;
    assert_true(fail_each_allocation(audit_once) > 0);
}

TEST_MAIN(NULL, NULL)
