// Debian's own opencv_modules.hpp names every module, so that opencv2/opencv.hpp wants headers of packages that edge-infer does not
// install. This file comes first on the include path and names the four modules that are used.
#define HAVE_OPENCV_CORE
#define HAVE_OPENCV_IMGPROC
#define HAVE_OPENCV_IMGCODECS
#define HAVE_OPENCV_VIDEOIO
