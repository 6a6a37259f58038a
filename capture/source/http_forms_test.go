package source

import (
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// form is a way to send images over HTTP that players of video accept.
type form struct {
	kind  string                                                      // Content-Type
	start func(w http.ResponseWriter) (out io.Writer, flush func())   // nil: plain
	part  func(number int, data []byte) (before string, after string) // what surrounds an image
	admit func(w http.ResponseWriter, r *http.Request) bool           // nil: anybody
}

// compressed sends the stream in an encoding that nobody asked for.
func compressed(encoding string) func(w http.ResponseWriter) (io.Writer, func()) {
	return func(w http.ResponseWriter) (io.Writer, func()) {
		w.Header().Set("Content-Encoding", encoding)
		if encoding == "deflate" {
			out := zlib.NewWriter(w)
			return out, func() { _ = out.Flush() }
		}
		out := gzip.NewWriter(w)
		return out, func() { _ = out.Flush() }
	}
}

// session lets in who comes with the cookie, and redirects others to get it.
func session(status int) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if _, err := r.Cookie("session"); err == nil {
			return true
		}
		if r.URL.Path == "/stream" {
			http.Error(w, "no session", http.StatusForbidden)
			return false
		}
		http.SetCookie(w, &http.Cookie{Name: "session", Value: "1", Path: "/", HttpOnly: true})
		http.Redirect(w, r, "/stream", status)
		return false
	}
}

// Streams that ffmpeg plays are played: every image arrives whole and in order.
func TestFormsOfMJPEG(t *testing.T) {
	const frame = "multipart/x-mixed-replace; boundary=frame"
	measured := func(boundary string, off int) func(int, []byte) (string, string) {
		return func(_ int, data []byte) (string, string) {
			return fmt.Sprintf("%s\r\nContent-Type: image/jpeg\r\nContent-Length: %d\r\n\r\n", boundary, len(data)+off), "\r\n"
		}
	}
	unmeasured := func(boundary string) func(int, []byte) (string, string) {
		return func(int, []byte) (string, string) { return boundary + "\r\nContent-Type: image/jpeg\r\n\r\n", "\r\n" }
	}
	for name, f := range map[string]form{
		"boundaries with closing dashes":          {kind: frame, part: measured("--frame--", 0)},
		"closing dashes, no length":               {kind: frame, part: unmeasured("--frame--")},
		"closing dashes on another boundary":      {kind: frame, part: measured("--other--", 0)},
		"another boundary":                        {kind: frame, part: measured("--other", 0)},
		"another boundary, no length":             {kind: frame, part: unmeasured("--other")},
		"the boundary's dashes are announced too": {kind: "multipart/x-mixed-replace; boundary=--frame", part: measured("--frame", 0)},
		"twice the dashes":                        {kind: "multipart/x-mixed-replace; boundary=--frame", part: measured("----frame", 0)},
		"no boundary announced":                   {kind: "multipart/x-mixed-replace", part: unmeasured("--frame")},
		"a type that is not valid":                {kind: "multipart/x-mixed-replace; boundary=my frame@", part: measured("--my frame@", 0)},
		"another header first": {kind: frame, part: func(number int, data []byte) (string, string) {
			return fmt.Sprintf("--other\r\nX-Timestamp: %d\r\nContent-Length: %d\r\n\r\n", number, len(data)), "\r\n"
		}},
		"another boundary for each image": {kind: frame, part: func(number int, data []byte) (string, string) {
			return fmt.Sprintf("--part%d\r\nContent-Length: %d\r\n\r\n", number, len(data)), "\r\n"
		}},
		"a length that is 2 short":     {kind: frame, part: measured("--frame", -2)},
		"a length that is 1 short":     {kind: frame, part: measured("--frame", -1)},
		"a length that is 100 short":   {kind: frame, part: measured("--frame", -100)},
		"a length with the line break": {kind: frame, part: measured("--frame", 2)},
		"a length of 0": {kind: frame, part: func(int, []byte) (string, string) {
			return "--frame\r\nContent-Length: 0\r\n\r\n", "\r\n"
		}},
		"short and another boundary":    {kind: frame, part: measured("--other", -2)},
		"gzip":                          {kind: frame, start: compressed("gzip"), part: measured("--frame", 0)},
		"x-gzip":                        {kind: frame, start: compressed("x-gzip"), part: unmeasured("--frame")},
		"deflate":                       {kind: frame, start: compressed("deflate"), part: measured("--frame", 0)},
		"a redirect with a cookie":      {kind: frame, admit: session(http.StatusFound), part: measured("--frame", 0)},
		"a redirect 307 with a cookie":  {kind: frame, admit: session(http.StatusTemporaryRedirect), part: measured("--frame", 0)},
		"gzip, a cookie and a boundary": {kind: frame, start: compressed("gzip"), admit: session(http.StatusFound), part: measured("--o--", -2)},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if f.admit != nil && !f.admit(w, r) {
					return
				}
				f.serve(t, w, r)
			}))
			t.Cleanup(server.Close)
			u, err := capture.ParseURI(server.URL + "/video")
			require.NoError(t, err)
			s, err := openHTTP(t.Context(), u, settings{Options: capture.Options{OpenTimeout: time.Minute, ReadTimeout: time.Minute}})
			require.NoError(t, err)
			defer s.Close()
			pool := &capture.Pool{}
			defer pool.Close()
			for number := range 5 {
				got, err := s.Next(pool)
				require.NoError(t, err)
				require.Equal(t, number, readBarcode(got))
				got.Release()
			}
		})
	}
}

// serve sends numbered images until the client goes.
func (f form) serve(t *testing.T, w http.ResponseWriter, r *http.Request) {
	var out io.Writer = w
	flush := func() {}
	w.Header().Set("Content-Type", f.kind)
	if f.start != nil {
		out, flush = f.start(w)
	}
	for number := 0; r.Context().Err() == nil; number++ {
		data := barcodeJPEG(t, number, small.width, small.height)
		before, after := f.part(number, data)
		_, err := fmt.Fprintf(out, "%s%s%s", before, data, after)
		if err != nil {
			return
		}
		flush()
		w.(http.Flusher).Flush()
	}
}

// An encoding that is not read, or that the stream does not have, is an error that names it.
func TestUnknownEncodingOfMJPEG(t *testing.T) {
	for encoding, want := range map[string]string{
		"br":   `the server sends the stream in the encoding "br" (turn compression off in the server)`,
		"gzip": "the stream is not in the encoding gzip that the server announces",
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "multipart/x-mixed-replace; boundary=frame")
			w.Header().Set("Content-Encoding", encoding)
			_, _ = io.WriteString(w, "--frame\r\n\r\nnot compressed at all")
		}))
		u, err := capture.ParseURI(server.URL)
		require.NoError(t, err)
		_, err = openHTTP(t.Context(), u, settings{Options: capture.Options{OpenTimeout: time.Minute, ReadTimeout: time.Minute}})
		require.ErrorContains(t, err, want)
		server.Close()
	}
}

// TestImagesOfMJPEGArePackets: the images of a camera are kept as they came, for clips.
func TestImagesOfMJPEGArePackets(t *testing.T) {
	server := newMJPEGServer(t, true)
	source, err := Open(t.Context(), server.uri(), capture.Options{KeepUnits: time.Minute})
	require.NoError(t, err)
	defer source.Close()
	pool := &capture.Pool{}
	defer pool.Close()
	reader := source.(capture.Packets).Ring().Reader()
	for range 5 {
		f, err := source.Next(pool)
		require.NoError(t, err)
		unit, err := reader.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, capture.MJPEG, unit.Codec)
		assert.True(t, unit.Key)
		assert.Equal(t, f.Captured, unit.Received)
		assert.Equal(t, barcodeJPEG(t, readBarcode(f), small.width, small.height), unit.Data)
		f.Release()
	}
	other, err := Open(t.Context(), server.uri(), capture.Options{})
	require.NoError(t, err)
	assert.Nil(t, other.(capture.Packets).Ring())
	require.NoError(t, other.Close())
}
