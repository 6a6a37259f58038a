// The functions of GStreamer, looked up by ei_gst_load.
#pragma once

#include "abi.h"

typedef struct ei_gst_library {
#define MEMBER(result, name, parameters) result(*name) parameters;
    EI_GST_FUNCTIONS(MEMBER)
#undef MEMBER
} ei_gst_library;

extern __attribute__((visibility("hidden"))) ei_gst_library ei_gst;
