// Package capture keeps cameras running and hands out their frames. It decodes nothing itself; capture/source opens cameras, streams and
// files.
//
// An image is decoded into a buffer of the caller's choice (Pool). A frame is a lease on such a buffer (Frame). A Mailbox holds the newest
// frame of a camera. A Camera keeps a Source running: it paces files, reconnects for ever, abandons captures that hang, and reports its
// state at any time (Stats).
package capture
