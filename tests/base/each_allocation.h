/*
 * Makes each allocation of a scene fail in turn: the first and all after it, then the second …,
 * until the scene needs no more. Every failure must be TDM_E_MEMORY with a sentence; leaks and
 * crashes are for the sanitizers to see. Include it after cmocka.h.
 */
#pragma once

#include "base/memory.h"
#include "tandem/error.h"
#include "unit.h"

typedef tdm_status allocating_scene(tdm_error *err);

/* How many allocations were made to fail. */
static inline int fail_each_allocation(allocating_scene *scene)
{
    for (int n = 1;; n++) {
        tdm_error err = {0};
        tdmi_memory_fail_from(n);
        tdm_status status = scene(&err);
        tdmi_memory_fail_from(0);
        if (status == TDM_OK)
            return n - 1;
        assert_int_equal(status, TDM_E_MEMORY);
        assert_int_equal(err.code, TDM_E_MEMORY);
        assert_true(err.n_frames > 0 && tdm_error_sentence(&err, 0)[0] != '\0');
        assert_true(n < 10000);
    }
}
