// Package capture turns anything that shows pictures into frames: V4L2 and CSI cameras, RTSP and HTTP streams, video files, directories of
// pictures, GStreamer pipelines and a drawn demo scene.
//
// OpenCV decodes straight into buffers of the caller's choice (Pool), a frame is a lease on such a buffer (Frame), the newest frame of a
// camera waits in a Mailbox, and a Camera keeps a source running: it paces files, tries again for ever what fails, leaves captures behind
// that hang, and tells at every moment how the source is (Stats).
package capture
