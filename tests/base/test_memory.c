/* Memory, the arena and growing text: zeroed, checked for overflow, and calm when memory ends. */
#include "base/arena.h"
#include "base/memory.h"
#include "base/text/text.h"

#include <pthread.h>
#include "base/each_allocation.h"
#include "unit.h"

static bool is_zero(const void *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (((const unsigned char *)bytes)[i] != 0)
            return false;
    return true;
}

/* ---- memory ------------------------------------------------------------------------------- */

TEST(memory_comes_back_zeroed)
{
    for (size_t bytes = 1; bytes < 5000; bytes = bytes * 3 + 1) {
        /* Dirty what the allocator is likely to hand out next. */
        unsigned char *dirty = tdmi_alloc(bytes, 1);
        memset(dirty, 0xa5, bytes);
        tdmi_free(dirty);
        void *plain = tdmi_alloc(bytes, 1), *aligned = tdmi_alloc_aligned(bytes);
        assert_true(is_zero(plain, bytes) && is_zero(aligned, bytes));
        assert_int_equal((uintptr_t)aligned % 64, 0);
        memset(aligned, 0xa5, bytes);
        tdmi_free(aligned);
        tdmi_free(plain);
    }
}

/* Both kinds: part of the heap, and pages of their own. */
TEST(large_memory_comes_back_zeroed_and_on_whole_lines)
{
    static const size_t sizes[] = {
        0, 1, 5000, (4 << 20) - 1, 4 << 20, (9 << 20) + 1, (9 << 20) + (1 << 19), (6 << 20) - 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (int round = 0; round < 2; round++) { /* the second finds what the first gave back */
            unsigned char *block = tdmi_alloc_large(sizes[i]);
            assert_non_null(block);
            assert_int_equal((uintptr_t)block % 64, 0);
            assert_true(is_zero(block, sizes[i]));
            memset(block, 0xa5, sizes[i]);
            tdmi_free_large(block);
        }
    tdmi_free_large(NULL);
}

TEST(sizes_that_overflow_are_refused)
{
    static const struct {
        size_t count, item_bytes;
    } cases[] = {
        {SIZE_MAX, 2},         {2, SIZE_MAX},
        {SIZE_MAX / 2 + 2, 2}, {(size_t)1 << 33, (size_t)1 << 31},
        {SIZE_MAX, SIZE_MAX},  {(size_t)PTRDIFF_MAX + 1, 1},
    };
    tdmi_arena arena = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char *kept = tdmi_alloc(1, 8);
        assert_null(tdmi_alloc(cases[i].count, cases[i].item_bytes));
        assert_null(tdmi_realloc(kept, cases[i].count, cases[i].item_bytes));
        assert_null(tdmi_arena_alloc(&arena, cases[i].count, cases[i].item_bytes));
        kept[7] = 1; /* the old block is still there */
        tdmi_free(kept);
    }
    assert_null(tdmi_alloc_aligned(SIZE_MAX));
    assert_null(tdmi_alloc_aligned((size_t)PTRDIFF_MAX));
    assert_null(tdmi_alloc_large(SIZE_MAX));
    assert_null(tdmi_alloc_large((size_t)PTRDIFF_MAX));
    tdmi_arena_release(&arena);
}

/* An answer, under sanitizers too, whose own malloc would end the program. */
TEST(more_than_any_machine_has_is_refused)
{
    const size_t bytes = (size_t)1 << 51;
    char *kept = tdmi_alloc(1, 8);
    assert_null(tdmi_alloc(bytes / 8, 8));
    assert_null(tdmi_realloc(kept, bytes / 8, 8));
    assert_null(tdmi_alloc_aligned(bytes));
    assert_null(tdmi_alloc_large(bytes));
    tdmi_free(kept);
}

TEST(nothing_is_a_valid_block)
{
    void *blocks[] = {tdmi_alloc(0, 8), tdmi_alloc(8, 0), tdmi_alloc_aligned(0),
                      tdmi_realloc(NULL, 0, 8)};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        assert_non_null(blocks[i]);
        tdmi_free(blocks[i]);
    }
    tdmi_free(NULL);
}

TEST(failures_begin_at_the_requested_call)
{
    for (int n = 1; n <= 4; n++) {
        tdmi_memory_fail_from(n);
        for (int call = 1; call <= 6; call++) {
            void *block = call % 2 ? tdmi_alloc(1, 1) : tdmi_alloc_aligned(1);
            assert_int_equal(block == NULL, call >= n);
            tdmi_free(block);
        }
        tdmi_memory_fail_from(0);
        void *block = tdmi_realloc(NULL, 1, 1);
        assert_non_null(block);
        tdmi_free(block);
    }
}

static void *allocate_often(void *unused)
{
    for (int i = 0; i < 10000; i++)
        tdmi_free(tdmi_alloc(1, 1));
    return unused;
}

TEST(room_is_there_or_not_and_is_not_kept)
{
    const int64_t before = tdmi_memory_calls();
    for (int i = 0; i < 1000; i++) { /* 64 TiB, were they kept: of 47 bits that addresses have */
        assert_true(tdmi_memory_has_room(1000));
        assert_true(tdmi_memory_has_room((size_t)64 << 20));
    }
    assert_false(tdmi_memory_has_room((size_t)1 << 47));
    assert_int_equal(tdmi_memory_calls(), before);
    tdmi_memory_fail_from(2);
    assert_true(tdmi_memory_has_room(1000));
    tdmi_memory_fail_from(1);
    assert_false(tdmi_memory_has_room(1000));
    assert_false(tdmi_memory_has_room((size_t)64 << 20));
    tdmi_memory_fail_from(0);
}

TEST(calls_are_counted_over_all_threads)
{
    pthread_t threads[4];
    int64_t before = tdmi_memory_calls();
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_often, NULL), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_true(tdmi_memory_calls() - before == 40000);
}

/* ---- arena -------------------------------------------------------------------------------- */

TEST(an_arena_gives_zeroed_aligned_memory_of_any_size)
{
    static const size_t block_sizes[] = {0, 64, 1000};
    for (size_t i = 0; i < sizeof block_sizes / sizeof block_sizes[0]; i++) {
        unsigned char *items[200];
        tdmi_arena arena;
        tdmi_arena_init(&arena, block_sizes[i]);
        for (size_t n = 0; n < 200; n++) {
            items[n] = tdmi_arena_alloc(&arena, n * 7 % 301, 1);
            assert_non_null(items[n]);
            assert_int_equal((uintptr_t)items[n] % 16, 0);
            assert_true(is_zero(items[n], n * 7 % 301));
            memset(items[n], (int)n + 1, n * 7 % 301);
        }
        for (size_t n = 0; n < 200; n++) /* nobody wrote into a neighbour */
            for (size_t at = 0; at < n * 7 % 301; at++)
                assert_int_equal(items[n][at], (unsigned char)(n + 1));
        tdmi_arena_release(&arena);
        assert_null(arena.blocks);
        tdmi_arena_release(&arena);
    }
    tdmi_arena_release(NULL);
}

TEST(a_large_request_does_not_waste_the_block_in_use)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 4096);
    tdmi_arena_alloc(&arena, 1, 1);
    int64_t before = tdmi_memory_calls();
    tdmi_arena_alloc(&arena, 1000000, 1);
    for (int i = 0; i < 100; i++)
        tdmi_arena_alloc(&arena, 16, 1);
    assert_true(tdmi_memory_calls() == before + 1);
    tdmi_arena_release(&arena);
}

TEST(an_arena_keeps_text)
{
    tdmi_arena arena = {0};
    char *copy = tdmi_arena_copy(&arena, "tandem"), *empty = tdmi_arena_copy(&arena, "");
    char *made = tdmi_arena_printf(&arena, "%s-%0*d", "run", 200, 7);
    assert_string_equal(copy, "tandem");
    assert_string_equal(empty, "");
    assert_int_equal(strlen(made), 204);
    assert_memory_equal(made, "run-000", 7);
    tdmi_arena_release(&arena);
}

static tdm_status arena_scene(tdm_error *err)
{
    tdmi_arena arena;
    tdmi_arena_init(&arena, 64);
    bool is_whole = tdmi_arena_alloc(&arena, 40, 1) && tdmi_arena_alloc(&arena, 400, 1) &&
                    tdmi_arena_copy(&arena, "some text of a few words") &&
                    tdmi_arena_printf(&arena, "%64d", 1);
    tdmi_arena_release(&arena);
    return is_whole ? TDM_OK : TDM_FAIL(err, TDM_E_MEMORY, "no memory");
}

/* ---- text --------------------------------------------------------------------------------- */

TEST(text_grows_and_stays_terminated)
{
    tdmi_text text = {0};
    assert_string_equal(tdmi_text_string(&text), "");
    for (int i = 0; i < 1000; i++) {
        tdmi_text_add(&text, "ab\0", 2);
        assert_int_equal(text.bytes[text.length_bytes], '\0');
        tdmi_text_printf(&text, "%d", i % 10);
        assert_int_equal(text.bytes[text.length_bytes], '\0');
    }
    assert_int_equal(text.length_bytes, 3000);
    assert_memory_equal(text.bytes + 2997, "ab9", 4);
    tdmi_text_clear(&text);
    assert_string_equal(tdmi_text_string(&text), "");
    tdmi_text_add(&text, "\0\0", 2); /* bytes, not only characters */
    assert_int_equal(text.length_bytes, 2);
    tdmi_text_release(&text);
    assert_null(text.bytes);
    tdmi_text_release(&text);
    tdmi_text_release(NULL);
}

TEST(broken_text_stays_as_it_was_until_cleared)
{
    tdmi_text text = {0};
    char large[1000] = "";
    memset(large, 'x', sizeof large - 1);
    tdmi_text_add(&text, "kept", 4);
    tdmi_memory_fail_from(1);
    tdmi_text_printf(&text, "%s", large);
    tdmi_memory_fail_from(0);
    assert_true(text.is_broken);
    tdmi_text_add(&text, "more", 4);
    assert_string_equal(tdmi_text_string(&text), "kept");
    tdmi_text_clear(&text);
    tdmi_text_add(&text, "more", 4);
    assert_false(text.is_broken);
    assert_string_equal(tdmi_text_string(&text), "more");
    tdmi_text_add(&text, large, SIZE_MAX - 2); /* refused before a byte is read */
    assert_true(text.is_broken);
    tdmi_text_release(&text);
}

static tdm_status text_scene(tdm_error *err)
{
    tdmi_text text = {0};
    for (int i = 0; i < 200; i++)
        tdmi_text_printf(&text, "%d ", i);
    bool is_broken = text.is_broken;
    tdmi_text_release(&text);
    return is_broken ? TDM_FAIL(err, TDM_E_MEMORY, "no memory") : TDM_OK;
}

TEST(every_failed_allocation_is_survived)
{
    assert_int_equal(fail_each_allocation(arena_scene), 4);
    assert_true(fail_each_allocation(text_scene) >= 4);
}

TEST_MAIN(NULL, NULL)
