// A stand-in for a V4L2 camera, to be preloaded: what is opened at the path $EDGE_INFER_TEST_V4L2 answers as a UVC camera does. It is told
// what to do by the text of that file:
//
//   yuyv WIDTH HEIGHT    offers YUYV in that size only; the images show their number as 16 vertical bars
//   mjpg WIDTH HEIGHT    offers Motion JPEG as well, which is what $EDGE_INFER_TEST_V4L2.jpg holds at that moment
//   only WIDTH HEIGHT    offers Motion JPEG and nothing else
//   hung                 gives no image any more
//   gone                 is unplugged
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/videodev2.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFERS 4
#define CAPACITY (1 << 20)  // bytes of one buffer

static struct {
    int fd;  // of the memory that the buffers are; 0 while closed
    unsigned char *memory;
    unsigned int format, width, height;
    unsigned int queued[BUFFERS], first, count;  // buffers that the driver may fill, oldest first
    unsigned int number;                         // of the next image
} camera;

struct behaviour {
    char mode[8];
    unsigned int width, height;
};

static struct behaviour behave(void) {
    struct behaviour b = {"gone", 0, 0};
    FILE *file = fopen(getenv("EDGE_INFER_TEST_V4L2"), "r");
    if (file != NULL) {
        if (fscanf(file, "%7s %u %u", b.mode, &b.width, &b.height) < 1) {
            strcpy(b.mode, "gone");
        }
        fclose(file);
    }
    return b;
}

static int is(const struct behaviour *b, const char *mode) { return strcmp(b->mode, mode) == 0; }

static int open_camera(void) {
    struct behaviour b = behave();
    if (is(&b, "gone") || camera.fd != 0) {
        errno = is(&b, "gone") ? ENODEV : EBUSY;
        return -1;
    }
    int fd = memfd_create("camera", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, BUFFERS * CAPACITY) != 0) {
        return -1;
    }
    memset(&camera, 0, sizeof camera);
    camera.memory = mmap(NULL, BUFFERS * CAPACITY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    camera.fd = fd;
    return fd;
}

static int ours(const char *path) {
    const char *wanted = getenv("EDGE_INFER_TEST_V4L2");
    return wanted != NULL && strcmp(path, wanted) == 0;
}

#define INTERPOSE_OPEN(name)                                                                               \
    int name(const char *path, int flags, ...) {                                                           \
        int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, #name);    \
        va_list arguments;                                                                                 \
        va_start(arguments, flags);                                                                        \
        mode_t mode = flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0; \
        va_end(arguments);                                                                                 \
        return ours(path) && flags & O_RDWR ? open_camera() : real(path, flags, mode);                     \
    }

INTERPOSE_OPEN(open)
INTERPOSE_OPEN(open64)

int close(int fd) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
    if (fd != 0 && fd == camera.fd) {
        munmap(camera.memory, BUFFERS * CAPACITY);
        camera.fd = 0;
    }
    return real(fd);
}

static void draw_yuyv(unsigned char *to) {
    for (unsigned int y = 0; y < camera.height; y++) {
        for (unsigned int x = 0; x < camera.width; x++) {
            *to++ = camera.number >> (x * 16 / camera.width) & 1 ? 235 : 16;
            *to++ = 128;
        }
    }
}

static unsigned int read_jpeg(unsigned char *to) {
    char path[4096];
    snprintf(path, sizeof path, "%s.jpg", getenv("EDGE_INFER_TEST_V4L2"));
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return 0;
    }
    unsigned int size = fread(to, 1, CAPACITY, file);
    fclose(file);
    return size;
}

// dequeue waits for an image as a driver in blocking mode would. OpenCV's select finds the memory readable at any time.
static int dequeue(struct v4l2_buffer *buffer) {
    usleep(10000);
    struct behaviour b = behave();
    for (; is(&b, "hung"); b = behave()) {
        usleep(10000);
    }
    if (is(&b, "gone") || camera.count == 0) {
        errno = is(&b, "gone") ? ENODEV : EAGAIN;
        return -1;
    }
    unsigned int index = camera.queued[camera.first];
    camera.first = (camera.first + 1) % BUFFERS;
    camera.count--;
    unsigned char *data = camera.memory + index * CAPACITY;
    memset(buffer, 0, sizeof *buffer);
    buffer->index = index;
    buffer->type = V4L2_BUF_TYPE_VIDEO_CAPTURE;
    buffer->memory = V4L2_MEMORY_MMAP;
    buffer->length = CAPACITY;
    buffer->m.offset = index * CAPACITY;
    if (camera.format == V4L2_PIX_FMT_MJPEG) {
        buffer->bytesused = read_jpeg(data);
    } else {
        buffer->bytesused = 2 * camera.width * camera.height;
        draw_yuyv(data);
    }
    camera.number++;
    return 0;
}

static int set_format(struct v4l2_format *format) {
    struct behaviour b = behave();
    struct v4l2_pix_format *pix = &format->fmt.pix;
    int jpeg = pix->pixelformat == V4L2_PIX_FMT_MJPEG && !is(&b, "yuyv");
    camera.format = jpeg || is(&b, "only") ? V4L2_PIX_FMT_MJPEG : V4L2_PIX_FMT_YUYV;
    camera.width = b.width;
    camera.height = b.height;
    pix->pixelformat = camera.format;
    pix->width = camera.width;
    pix->height = camera.height;
    pix->field = V4L2_FIELD_NONE;
    pix->bytesperline = camera.format == V4L2_PIX_FMT_YUYV ? 2 * camera.width : 0;
    pix->sizeimage = camera.format == V4L2_PIX_FMT_YUYV ? 2 * camera.width * camera.height : CAPACITY;
    return 0;
}

static int answer(unsigned long request, void *argument) {
    struct v4l2_buffer *buffer = argument;
    switch (request) {
        case VIDIOC_QUERYCAP: {
            struct v4l2_capability *capability = argument;
            memset(capability, 0, sizeof *capability);
            strcpy((char *)capability->driver, "stand-in");
            strcpy((char *)capability->card, "Stand-in Camera");
            capability->capabilities = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING | V4L2_CAP_DEVICE_CAPS;
            capability->device_caps = V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING;
            return 0;
        }
        case VIDIOC_S_FMT:
        case VIDIOC_TRY_FMT:
            return set_format(argument);
        case VIDIOC_G_FMT: {
            struct v4l2_format *format = argument;
            format->fmt.pix.pixelformat = camera.format;
            return set_format(format);
        }
        case VIDIOC_S_PARM:
        case VIDIOC_G_PARM: {
            struct v4l2_streamparm *parameters = argument;
            parameters->parm.capture.capability = V4L2_CAP_TIMEPERFRAME;
            parameters->parm.capture.timeperframe = (struct v4l2_fract){1, 100};
            return 0;
        }
        case VIDIOC_REQBUFS: {
            struct v4l2_requestbuffers *buffers = argument;
            buffers->count = buffers->count > BUFFERS ? BUFFERS : buffers->count;
            camera.first = camera.count = 0;
            return 0;
        }
        case VIDIOC_QUERYBUF:
            buffer->length = CAPACITY;
            buffer->m.offset = buffer->index * CAPACITY;
            return 0;
        case VIDIOC_QBUF:
            camera.queued[(camera.first + camera.count++) % BUFFERS] = buffer->index;
            return 0;
        case VIDIOC_DQBUF:
            return dequeue(buffer);
        case VIDIOC_STREAMON:
        case VIDIOC_STREAMOFF:
            return 0;
    }
    errno = EINVAL;
    return -1;
}

int ioctl(int fd, unsigned long request, ...) {
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (fd != 0 && fd == camera.fd) {
        return answer(request, argument);
    }
    int (*real)(int, unsigned long, ...) = (int (*)(int, unsigned long, ...))dlsym(RTLD_NEXT, "ioctl");
    return real(fd, request, argument);
}
