// Package nvdec decodes H.264 and H.265 with the video engines of NVIDIA GPUs (NVDEC) into the GPU's memory. It opens libnvcuvid at run
// time; discrete GPUs and Jetson Thor have it, Orin and Xavier do not.
package nvdec
