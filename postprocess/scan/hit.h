// The search for numbers that reach a threshold, as wide as the processor's vectors are. "Not less than the threshold" lets NaN through, so
// that the caller can count it without another pass.
#ifndef EDGE_INFER_HIT_H
#define EDGE_INFER_HIT_H

#include <stdint.h>

// An ei_next_hit function returns the first index in [from, count) whose value is not less than the threshold, or count.
typedef int64_t (*ei_next_hit)(const float *values, int64_t from, int64_t count, float threshold);

ei_next_hit ei_choose_next_hit(void);

// An ei_next_row function returns the first row in [row, rows) of which one of the first count values is not less than the threshold, or
// rows. Rows begin stride numbers apart. The one of beyond takes the value after the count from each first.
typedef int64_t (*ei_next_row)(const float *values, int64_t stride, int32_t count, int64_t row, int64_t rows, float threshold);

ei_next_row ei_choose_next_row(int beyond);

#endif
