// Package record writes clips, which are video files around events, and continuous recordings: both are copied from the cameras' access
// units without decoding or encoding.
package record
