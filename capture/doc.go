// Package capture keeps cameras running and hands out their frames. It decodes nothing itself: what can be opened is in capture/source.
//
// An image goes into a buffer of the caller's choice (Pool), a frame is a lease on such a buffer (Frame), the newest frame of a camera
// waits in a Mailbox, and a Camera keeps a Source running: it paces files, tries again for ever what fails, leaves captures behind that
// hang, and tells at every moment how the source is (Stats).
package capture
