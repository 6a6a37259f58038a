# Every version that the build pins, in one place.
ONNXRUNTIME_VERSION := 1.31.1
# Newer ones crash inside dlopen under qemu-user 7.2, so that nothing could be checked with them.
ONNXRUNTIME_ARM64_VERSION := 1.27.0
CUDA_HEADER_VERSION := 11.8.89
OPENCV_VERSION := 4.6.0
OPENCV_DEBIAN_VERSION := 4.6.0+dfsg-12
OPENCV_SOURCE_SHA256 := 40a59ba7e5c18a43652de0a08733c9843a39bba619b1f3e26a5fac4a6f041423
CLANG_VERSION := 16
STATICCHECK_VERSION := v0.8.2
GOFUMPT_VERSION := v0.12.0
GOVULNCHECK_VERSION := latest
NFPM_VERSION := v2.43.4
GO_MINIMUM := 1.26
