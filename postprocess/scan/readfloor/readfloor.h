#ifndef EDGE_INFER_READFLOOR_H
#define EDGE_INFER_READFLOOR_H

#include <stdint.h>

int64_t ei_read_floor(const float *values, int64_t count, float threshold);

#endif
