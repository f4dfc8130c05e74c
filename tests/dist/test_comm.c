/* The job of one process. */
#include "dist/comm.h"
#include "unit.h"

TEST(alone_every_sum_is_there_already)
{
    const struct tdmi_comm_table *self = NULL;
    tdmi_comm *comm = NULL;
    float values[3] = {1.0f, -2.5f, 1e30f};
    const float before[3] = {1.0f, -2.5f, 1e30f};
    assert_int_equal(tdmi_comm_find("self", &self, NULL), TDM_OK);
    assert_int_equal(self->open(&comm, NULL), TDM_OK);
    assert_non_null(comm);
    assert_int_equal(self->world(comm), 1);
    assert_int_equal(self->reduce(comm, values, 3, NULL), TDM_OK);
    assert_int_equal(self->finish(comm, NULL), TDM_OK);
    assert_memory_equal(values, before, sizeof before);
    self->close(comm);
}

TEST(an_unknown_transport_lists_the_known_ones)
{
    const struct tdmi_comm_table *table = NULL;
    tdm_error err = {0};
    assert_int_equal(tdmi_comm_find("pigeon", &table, &err), TDM_E_USAGE);
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "'pigeon'"));
    assert_non_null(strstr(tdm_error_sentence(&err, 0), "self"));
    assert_null(table);
}

TEST_MAIN(NULL, NULL)
