// Where in a grid an object is: most of a mask that a network gives whole is empty.
#ifndef EDGE_INFER_EXTENT_H
#define EDGE_INFER_EXTENT_H

#include <stdint.h>

// ei_extent writes to bounds the first column and row of a grid that have a number over 0, and those after the last: all 0 where none is.
// columns is scratch memory of width numbers.
void ei_extent(const float* grid, int32_t width, int32_t height, int32_t* columns, int32_t bounds[4]);

#endif
