// What queries with a "no object" cost: the scores of a row are its softmax.
#ifndef EDGE_INFER_QUERY_H
#define EDGE_INFER_QUERY_H

#include <stdint.h>

// A row of which a class is likely enough. scan.Query has the same fields.
typedef struct {
    int32_t row;
    int32_t best;   // the likeliest class, the first of several
    float highest;  // of all logits, that of no object included
    float sum;      // of the exponents of all logits less the highest; NaN where a logit is, or the highest is infinite
} ei_query;

// ei_queries lists the rows of which the logit of one of so many classes is more than the logit of no object, which is the last of a row,
// by odds or more, or not a number. out has room for all rows. Returns how many there are.
int64_t ei_queries(const float* logits, int64_t rows, int32_t classes, float odds, ei_query* out);

#endif
