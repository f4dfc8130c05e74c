/* The geometry of product.cuh: tiles of sums, and chunks of what is summed. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tdmi_cuda_product {
    int64_t rows, columns, depth; /* of one group */
    int64_t row_tiles, column_tiles;
    int groups;
    int64_t chunk, chunks; /* of depth; more than one where sums go through a second pass */
};

/* One chunk; or, with has_chunks, as many as give a GPU enough to do, from the shape alone. */
struct tdmi_cuda_product tdmi_cuda_product_of(int64_t rows, int64_t columns, int64_t depth,
                                              int groups, int has_chunks);
/* No less deep product of that shape has more. */
int64_t tdmi_cuda_product_most_chunks(const struct tdmi_cuda_product *product);

#ifdef __cplusplus
}
#endif
