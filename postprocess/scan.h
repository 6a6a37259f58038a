// The threshold scan over a network's output map: the one part of decoding that touches every number.
#ifndef EDGE_INFER_SCAN_H
#define EDGE_INFER_SCAN_H

#include <stdint.h>

// One box over the threshold: corners in pixels of the network's input. postprocess.candidate has the same fields.
typedef struct {
    float x1, y1, x2, y2, score;
    int32_t class_id;
} ei_candidate;

// Where a scan stands. All zero starts one; a scan that filled its list goes on from cursor when called again with room.
typedef struct {
    int64_t cursor, count, invalid;
} ei_scan_state;

// What is looked for. threshold is the smallest of class_threshold, which holds one value a class, infinity for a class that is not wanted.
// With multi_label every class over its threshold gives a candidate; without it a box gives its best class or nothing.
typedef struct {
    int64_t boxes;
    int32_t classes;
    int32_t multi_label;
    float threshold;
} ei_scan_query;

// ei_scan_columns reads [4+classes, boxes]: rows centre x, centre y, width, height, then one row of scores a class. slots has room for
// `boxes` numbers and is used without multi_label, where out needs room for `boxes` candidates. Returns 1 when the list is full, 0 when
// done.
int32_t ei_scan_columns(const float *data, const ei_scan_query *query, const float *class_threshold, int32_t *slots, ei_candidate *out,
                        int64_t capacity, ei_scan_state *state);

// ei_scan_rows reads [boxes, 5+classes]: centre x, centre y, width, height, objectness, one score a class.
int32_t ei_scan_rows(const float *data, const ei_scan_query *query, const float *class_threshold, ei_candidate *out, int64_t capacity,
                     ei_scan_state *state);

// ei_half_to_float widens IEEE 754 binary16 numbers.
void ei_half_to_float(const uint16_t *from, float *to, int64_t count);

#endif
