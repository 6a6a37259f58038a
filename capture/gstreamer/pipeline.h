// What the other files of this package use of a pipeline.
#pragma once

#include "ei_gstreamer.h"
#include "library.h"

// ei_gst_take describes the held image and passes it to the caller, who unrefs it; NULL if there is none.
GstSample *ei_gst_take(ei_gst_pipeline *pipeline, ei_gst_image *image);
