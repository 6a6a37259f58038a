// Package rtsp reads RTSP and RTSPS cameras: one connection per camera, whatever decodes the video.
package rtsp
