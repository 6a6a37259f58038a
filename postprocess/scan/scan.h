// The scan of a network's output map for boxes above a minimum score: the only part of decoding that reads every number.
#ifndef EDGE_INFER_SCAN_H
#define EDGE_INFER_SCAN_H

#include <stdint.h>

// A box above the minimum score: corners in pixels of the network's input, and the index of the box. scan.Candidate has the same fields.
typedef struct {
    float x1, y1, x2, y2, score;
    int32_t class_id;
    int32_t index;
} ei_candidate;

// The four numbers of a box: the centre's x and y, width and height; x1, y1, x2, y2; or raw numbers that are returned as they are.
enum ei_box_form { EI_CENTRE, EI_CORNERS, EI_RAW };

// The state of a scan. All zero starts one; a scan that filled its list continues at cursor when called again with room. impossible counts
// invalid scores, invalid counts invalid boxes.
typedef struct {
    int64_t cursor, count, impossible, invalid;
} ei_scan_state;

// The query of a scan, with the geometry of engine.BoxMap. Coordinate i of a box is element box * box_step + i * box_next of
// the boxes, the score of a class element box * score_step + class * score_next of the scores. threshold is the smallest of
// class_threshold, which holds one value a class, infinity for a class that is not wanted. With multi_label every class over its threshold
// yields a candidate; without it a box yields its best class or nothing.
typedef struct {
    int64_t boxes;
    int64_t box_step, box_next, score_step, score_next;
    float scale_x, scale_y;  // from coordinates to pixels
    int32_t classes;
    int32_t objectness;  // the number before a box's first score multiplies them
    int32_t form;        // one of ei_box_form
    int32_t logits;      // scores are any numbers, to be compared with thresholds of their kind
    int32_t multi_label;
    float threshold;
} ei_scan_query;

// ei_scan_columns reads scores that lie class after class without a gap: score_step 1, score_next boxes, no objectness. slots has room for
// `boxes` numbers and is used without multi_label, where out needs room for `boxes` candidates. Returns 1 when the list is full, 0 when
// done.
int32_t ei_scan_columns(const float *boxes, const float *scores, const ei_scan_query *query, const float *class_threshold, int32_t *slots,
                        ei_candidate *out, int64_t capacity, ei_scan_state *state);

// ei_scan_rows reads scores that lie box after box: score_next 1.
int32_t ei_scan_rows(const float *boxes, const float *scores, const ei_scan_query *query, const float *class_threshold, ei_candidate *out,
                     int64_t capacity, ei_scan_state *state);

// ei_impossible counts invalid scores, objectness included: NaN, below 0 or above 1 by more than the tolerance. A logit is invalid when it
// is NaN or infinite.
int64_t ei_impossible(const float *scores, const ei_scan_query *query);

// ei_half_to_float widens IEEE 754 binary16 numbers.
void ei_half_to_float(const uint16_t *from, float *to, int64_t count);

#endif
