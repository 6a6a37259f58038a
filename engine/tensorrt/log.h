// Log is a bounded ring of TensorRT's messages; the oldest lines are overwritten first. Any thread may write.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace ei {

class Log {
   public:
    // setThreshold sets the highest severity number that write keeps.
    void setThreshold(int32_t severity);
    // write stores a message and truncates long ones. Messages about a rejected timing cache are downgraded to information, because
    // TensorRT builds without it and they would be misleading next to another failure.
    void write(int32_t severity, const char* message);
    // drain moves whole lines "<severity> <message>\n" into the text and returns the number of bytes. lost is the number of lines that were
    // overwritten before.
    size_t drain(char* text, size_t size, uint64_t* lost);
    // mark starts a new operation; errors() returns its error lines, joined by "; ".
    void mark();
    void errors(char* text, size_t size);
    // rangeless returns the number of tensors without an INT8 range since the last call. Their messages are stored as details.
    int rangeless();
    // timingsRefused reports whether the library has rejected a timing cache since the last call.
    bool timingsRefused();

   private:
    static constexpr int kLines = 256;
    static constexpr int kLength = 480;
    static constexpr int kErrors = 4096;
    struct Line {
        int32_t severity;
        char text[kLength];
    };

    pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
    int32_t threshold_ = 2;
    Line lines_[kLines];
    uint64_t written_ = 0, read_ = 0, lost_ = 0;
    char errors_[kErrors] = {};
    size_t errorsLength_ = 0;
    bool timingsRefused_ = false;
    int rangeless_ = 0;
};

}  // namespace ei
