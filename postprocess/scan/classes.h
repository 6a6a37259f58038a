#ifndef EDGE_INFER_CLASSES_H
#define EDGE_INFER_CLASSES_H

#include <stdint.h>

// Marks a cell of no class.
#define EI_NO_CLASS 255

// Writes for each of count cells the number of the highest of its scores, of which there are planes one after the other. Returns how many
// cells have none, their first score being NaN.
int64_t ei_highest_plane(const float* scores, int32_t planes, int64_t count, uint8_t* out);

// Narrow class numbers to bytes: those that are not from 0 to before the limit, which is 255 at most, are none. They return how many are.
int64_t ei_narrow_int32(const int32_t* numbers, int64_t count, int32_t limit, uint8_t* out);
int64_t ei_narrow_int64(const int64_t* numbers, int64_t count, int64_t limit, uint8_t* out);
int64_t ei_narrow_uint8(const uint8_t* numbers, int64_t count, int32_t limit, uint8_t* out);

#endif
