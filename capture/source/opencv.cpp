#include "opencv.h"

#include <dlfcn.h>

#include <opencv2/core/utils/logger.hpp>
#include <opencv2/videoio.hpp>

int ei_capture_grab(void *capture) {
    try {
        return static_cast<cv::VideoCapture *>(capture)->grab() ? 1 : 0;
    } catch (...) {
        return 0;
    }
}

namespace {

// A GLogWriterFunc that has handled every message.
int drop(int, const void *, size_t, void *) { return 1; }

// GStreamer's libraries come with OpenCV, if at all, so that this needs none of their headers.
void silence_glib() {
    using set_writer = void (*)(int (*)(int, const void *, size_t, void *), void *, void (*)(void *));
    if (auto set = reinterpret_cast<set_writer>(dlsym(RTLD_DEFAULT, "g_log_set_writer_func"))) {
        set(drop, nullptr, nullptr);
    }
}

}  // namespace

void ei_silence(void) {
    silence_glib();
    try {
        cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    } catch (...) {
    }
}
