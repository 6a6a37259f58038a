// What boxes of distributions cost: NanoDet gives each side of a box as the logits of eight distances.
#ifndef EDGE_INFER_EXPECT_H
#define EDGE_INFER_EXPECT_H

#include <stdint.h>

// ei_expect writes for each of count rows of eight logits the mean of 0 to 7 that is weighted by their softmax. It is NaN where one of them
// is.
void ei_expect(const float* logits, int32_t count, float* out);

#endif
