// Log is where TensorRT's messages go: a bounded ring that the owner drains, oldest lines first out. Any thread may write.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace ei {

class Log {
   public:
    // setThreshold says which messages write keeps: those of this severity or graver.
    void setThreshold(int32_t severity);
    // write keeps a message; a long one is cut. What the library says of a timing cache that it refuses is information and no error: it
    // builds without, and such a line before the reason of another failure would only mislead.
    void write(int32_t severity, const char* message);
    // drain moves whole lines "<severity> <message>\n" into the text and returns how many bytes it used. Lines that were overwritten
    // before they were read are counted in lost.
    size_t drain(char* text, size_t size, uint64_t* lost);
    // mark starts a new operation; errors() then gives the error lines since, joined by "; ".
    void mark();
    void errors(char* text, size_t size);
    // rangeless is how many tensors the library has missed an INT8 range of since the last call. Its line for each is kept back as detail.
    int rangeless();
    // timingsRefused reports whether the library has refused a timing cache since the last call.
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
