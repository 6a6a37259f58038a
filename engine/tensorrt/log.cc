#include "log.h"

#include <cstdio>
#include <cstring>

#include "abi.h"

namespace ei {

namespace {

class Lock {
   public:
    explicit Lock(pthread_mutex_t* mutex) : mutex_(mutex) { pthread_mutex_lock(mutex_); }
    ~Lock() { pthread_mutex_unlock(mutex_); }

   private:
    pthread_mutex_t* mutex_;
};

// copyLine copies without line breaks, which separate messages in drain.
size_t copyLine(char* target, size_t size, const char* source) {
    size_t n = 0;
    for (; n + 1 < size && source[n] != 0; n++) target[n] = source[n] == '\n' || source[n] == '\r' ? ' ' : source[n];
    target[n] = 0;
    return n;
}

// isAboutTimings recognises TensorRT 8's messages about rejecting a timing cache, or the part of its graph compiler in it.
bool isAboutTimings(const char* message) {
    return strcasestr(message, "timing cache") != nullptr || strcasestr(message, "myelinCache") != nullptr;
}

}  // namespace

void Log::setThreshold(int32_t severity) {
    Lock lock(&mutex_);
    threshold_ = severity;
}

void Log::write(int32_t severity, const char* message) {
    if (message == nullptr) return;
    Lock lock(&mutex_);
    if (severity <= kError && isAboutTimings(message)) {
        timingsRefused_ = true;
        severity = kInfo;
    }
    if (severity == kWarning && strstr(message, "Missing scale and zero-point for tensor") != nullptr) {
        rangeless_++;
        severity = kVerbose;
    }
    if (severity <= kError && errorsLength_ + 3 < kErrors) {
        if (errorsLength_ > 0) errorsLength_ += copyLine(errors_ + errorsLength_, kErrors - errorsLength_, "; ");
        errorsLength_ += copyLine(errors_ + errorsLength_, kErrors - errorsLength_, message);
    }
    if (severity > threshold_) return;
    if (written_ - read_ == kLines) {
        read_++;
        lost_++;
    }
    Line& line = lines_[written_++ % kLines];
    line.severity = severity;
    copyLine(line.text, sizeof(line.text), message);
}

size_t Log::drain(char* text, size_t size, uint64_t* lost) {
    Lock lock(&mutex_);
    size_t used = 0;
    for (; read_ < written_; read_++) {
        const Line& line = lines_[read_ % kLines];
        const size_t length = strlen(line.text) + 3;
        if (used + length >= size) break;
        snprintf(text + used, size - used, "%d %s\n", static_cast<int>(line.severity) % 10, line.text);
        used += length;
    }
    *lost = lost_;
    lost_ = 0;
    return used;
}

void Log::mark() {
    Lock lock(&mutex_);
    errorsLength_ = 0;
    errors_[0] = 0;
}

int Log::rangeless() {
    Lock lock(&mutex_);
    const int count = rangeless_;
    rangeless_ = 0;
    return count;
}

bool Log::timingsRefused() {
    Lock lock(&mutex_);
    const bool refused = timingsRefused_;
    timingsRefused_ = false;
    return refused;
}

void Log::errors(char* text, size_t size) {
    Lock lock(&mutex_);
    copyLine(text, size, errors_);
}

}  // namespace ei
