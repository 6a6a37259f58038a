// What OpenCV has and gocv does not pass on.
#pragma once
#ifdef __cplusplus
extern "C" {
#endif

// ei_capture_grab waits for the next frame of a cv::VideoCapture: 1 when there is one, 0 at the end and on every failure. gocv's Grab keeps
// this result to itself.
int ei_capture_grab(void *capture);

// ei_silence ends OpenCV's own messages on standard error.
void ei_silence(void);

#ifdef __cplusplus
}
#endif
