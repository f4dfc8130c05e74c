/* Pages of large memory: none is written when it is allocated, all by tdmi_touch_spread. */
#include "base/memory.h"
#include "base/touch.h"
#include "unit.h"

#include <sys/mman.h>

enum { bytes = 16 << 20, page = 4096 };

static int resident_pages(char *memory)
{
    static unsigned char is_resident[bytes / page];
    int n = 0;
    assert_int_equal(mincore(memory, bytes, is_resident), 0);
    for (int i = 0; i < bytes / page; i++)
        n += is_resident[i] & 1;
    return n;
}

TEST(pages_are_written_by_whoever_uses_them_or_spread_beforehand)
{
    tdmi_pool *pool;
    tdm_error err = {0};
    assert_ok(tdmi_pool_new(3, NULL, &pool, &err), &err);
    char *memory = tdmi_alloc_large(bytes);
    assert_non_null(memory);
    if ((uintptr_t)memory % page == 0) { /* with AddressSanitizer it is ordinary memory */
        assert_int_equal(resident_pages(memory), 0);
        tdmi_touch_spread(pool, memory, page);
        assert_int_equal(resident_pages(memory), 0);
        tdmi_touch_spread(pool, memory, bytes);
        assert_int_equal(resident_pages(memory), bytes / page);
    }
    for (int i = 0; i < bytes; i++)
        if (memory[i] != 0)
            fail_msg("byte %d is %d", i, memory[i]);
    tdmi_free_large(memory);
    tdmi_pool_free(pool);
}

TEST_MAIN(NULL, NULL)
