#include "opencv.h"

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/videoio.hpp>

int ei_capture_grab(void *capture) {
    try {
        return static_cast<cv::VideoCapture *>(capture)->grab() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

void ei_silence(void) {
    try {
        cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    } catch (...) {
    }
}
