// The one part of masks that costs: an object's mask is a sum of prototypes.
#ifndef EDGE_INFER_COMBINE_H
#define EDGE_INFER_COMBINE_H

#include <stdint.h>

// ei_combine writes the sum over count planes, each multiplied by its weight, for a part of width x height numbers. planes points to the
// part's first number in the first plane, rows are row numbers apart and planes plane numbers.
void ei_combine(const float* planes, int64_t plane, int64_t row, const float* weights, int32_t count, int32_t width, int32_t height,
                float* out);

#endif
