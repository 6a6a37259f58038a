package gstreamer

// #include <stdlib.h>
//
// #include "ei_gstreamer.h"
import "C"

import (
	"regexp"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/edge-infer/edge-infer/capture"
)

// failure is why a pipeline failed, as GStreamer reports it.
type failure struct {
	domain  string // of the GError
	code    int    // in the domain
	element string // name of the element that failed; empty if the description is wrong
	message string
	debug   string // additional information for developers
	caps    string // what the appsink is offered, if it cannot take it
}

// takeFailure copies an error of the C part and frees it.
func takeFailure(e *C.ei_gst_error) failure {
	defer C.ei_gst_error_clear(e)
	return failure{
		domain: C.GoString(e.domain), code: int(e.code), element: C.GoString(e.element),
		message: C.GoString(e.message), debug: C.GoString(e.debug), caps: C.GoString(e.caps),
	}
}

// Error domains and codes of GStreamer that decide what happens next.
const (
	parseErrors        = "gst_parse_error"
	parseLink          = 3
	resourceErrors     = "gst-resource-error-quark"
	resourceNotFound   = 3
	resourceDenied     = 15
	coreErrors         = "gst-core-error-quark"
	coreMissingPlugin  = 12
	streamErrors       = "gst-stream-error-quark"
	streamTypeNotFound = 4
	streamWrongType    = 5
	streamNoCodec      = 6
)

const formatHint = "put 'videoconvert ! video/x-raw,format=NV12' (or BGR, BGRx, YUY2, GRAY8) before the appsink"

// deviceHint is for images in the memory of a Jetson's video engine.
const deviceHint = "put 'nvvidconv ! video/x-raw,format=NV12' before the appsink"

// error returns the failure as an *Error without a URI and without credentials.
func (f *failure) error(op string) *capture.Error {
	if f.caps != "" {
		return formatError(op, f.caps)
	}
	e := &capture.Error{Op: op, Kind: capture.ErrUnavailable, Message: f.text()}
	switch f.domain {
	case parseErrors:
		if f.code == parseLink {
			e.Kind, e.Hint = capture.ErrFormat, "the elements have no format in common; gst-inspect-1.0 lists what each accepts"
		}
	case resourceErrors:
		switch f.code {
		case resourceNotFound:
			e.Kind = capture.ErrNotFound
		case resourceDenied:
			e.Kind = capture.ErrDenied
		}
	case coreErrors:
		if f.code == coreMissingPlugin {
			e.Hint = "install gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad and gstreamer1.0-libav"
		}
	case streamErrors:
		if f.code == streamTypeNotFound || f.code == streamWrongType || f.code == streamNoCodec {
			e.Kind = capture.ErrFormat
		}
	}
	return e
}

// elements matches the first word of each part of a description, the name of an element.
var elements = regexp.MustCompile(`(?:^|!)\s*(\w+)`)

// broken returns the name of the first element in a description whose plugin cannot be loaded, or "". GStreamer reports that there is no
// such element, or that a link has no source.
func broken(description string) string {
	for _, names := range elements.FindAllStringSubmatch(description, -1) {
		if loadError(names[1]) != "" {
			return names[1]
		}
	}
	return ""
}

// missing is the error of an element that cannot be made: none is installed, or its plugin cannot be loaded.
func missing(element string) error {
	if reason := loadError(element); reason != "" {
		return &capture.Error{
			Op: "open", Kind: capture.ErrUnavailable, Message: element + " cannot be loaded: " + reason,
			Hint: "ldd shows which libraries its plugin needs",
		}
	}
	return unavailable(element + " is not installed")
}

// loadError returns why the plugin of an element cannot be loaded, "" if it can or if there is none.
func loadError(element string) string {
	name := C.CString(element)
	defer C.free(unsafe.Pointer(name))
	reason := C.ei_gst_load_error(name)
	defer C.free(unsafe.Pointer(reason))
	return C.GoString(reason)
}

// formatError reports an image format that no engine reads.
func formatError(op, format string) *capture.Error {
	hint := formatHint
	if strings.Contains(format, "memory:") {
		hint = deviceHint
	}
	return &capture.Error{Op: op, Kind: capture.ErrFormat, Message: "the pipeline ends in pixel format " + format, Hint: hint}
}

// unlinked matches the names of two elements that do not fit together, and number what GStreamer appends to a type: "tee0", "avdec_h264-0".
var (
	unlinked = regexp.MustCompile(`could not link (\S+) to ([^\s,]+)`)
	number   = regexp.MustCompile(`(\d-\d+|\d+)$`)
)

// withoutNumbers removes the numbers of unnamed elements, which grow through the life of the process: the same failure must have the same
// text each time, because it is logged once.
func withoutNumbers(text string) string {
	names := unlinked.FindStringSubmatch(text)
	if names == nil {
		return text
	}
	for _, name := range names[1:] {
		bare := number.ReplaceAllStringFunc(name, func(digits string) string {
			if len(digits) > 2 && digits[1] == '-' {
				return digits[:1]
			}
			return ""
		})
		text = strings.ReplaceAll(text, name, bare)
	}
	return text
}

// maxText bounds each part of a message in bytes.
const maxText = 300

// text returns "element: message: detail".
func (f *failure) text() string {
	parts := make([]string, 0, 3)
	for _, part := range []string{f.element, withoutNumbers(f.message), detail(f.debug)} {
		// Addresses are recognized only while they are complete.
		part = shorten(strings.TrimRight(oneLine(capture.Redact(part)), ". "))
		if part != "" && (len(parts) == 0 || !strings.Contains(parts[len(parts)-1], part)) {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// detail returns what GStreamer's debug text adds to the message. It begins with a line that names the source file, function and element.
func detail(debug string) string {
	_, rest, _ := strings.Cut(debug, "\n")
	return rest
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

func shorten(text string) string {
	if len(text) <= maxText {
		return text
	}
	end := maxText
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + " ..."
}
