package web

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// readAnalytics decodes and validates the zones and lines of a request body.
func readAnalytics(body io.Reader, names zone.Names) (zone.Config, error) {
	var c *zone.Config
	if err := decodeOne(body, &c); err != nil {
		return zone.Config{}, fmt.Errorf("zones: %w", err)
	}
	if c == nil { // null would remove every zone
		return zone.Config{}, errors.New("zones: null is no document (send {} to remove every zone)")
	}
	return *c, c.Validate(names)
}

// decodeOne decodes a single JSON document without unknown fields.
func decodeOne(body io.Reader, value any) error {
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(value); err != nil {
		return err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one document")
	}
	return nil
}

// analyticsYAML returns the analytics section of a camera as YAML.
func analyticsYAML(c zone.Config) (string, error) {
	point := yaml.CustomMarshaler(func(p zone.Point) ([]byte, error) {
		number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		return []byte("{x: " + number(p.X) + ", y: " + number(p.Y) + "}"), nil
	})
	text, err := yaml.MarshalWithOptions(map[string]zone.Config{"analytics": c}, yaml.OmitEmpty(), yaml.OmitZero(), yaml.IndentSequence(true),
		point)
	return string(text), err
}

// readRequest returns the camera and analytics of a request, or writes an error response.
func (s *Server) readRequest(w http.ResponseWriter, r *http.Request) (name string, analytics zone.Config, ok bool) {
	name = r.PathValue("camera")
	names, known := s.names(name)
	if !known {
		writeError(w, http.StatusNotFound, fmt.Errorf("no camera %q", name))
		return "", zone.Config{}, false
	}
	analytics, err := readAnalytics(r.Body, names)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("zones: more than %d bytes", large.Limit))
	case err != nil:
		writeError(w, http.StatusUnprocessableEntity, err)
	}
	return name, analytics, err == nil
}

// checkAnalytics validates zones and lines without saving them and responds with their YAML.
func (s *Server) checkAnalytics(w http.ResponseWriter, r *http.Request) {
	_, analytics, ok := s.readRequest(w, r)
	if !ok {
		return
	}
	text, err := analyticsYAML(analytics)
	if err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"yaml": text})
}

// showAnalytics responds with the saved zones and lines, and their version as ETag.
func (s *Server) showAnalytics(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("camera")
	if _, known := s.names(name); !known {
		writeError(w, http.StatusNotFound, fmt.Errorf("no camera %q", name))
		return
	}
	if s.Zones == nil {
		writeError(w, http.StatusConflict, errNoZoneFile)
		return
	}
	analytics, version, err := s.Zones.Get(name)
	if err != nil {
		writeError(w, http.StatusInternalServerError, err)
		return
	}
	w.Header().Set("ETag", strconv.Quote(version))
	writeJSON(w, http.StatusOK, analytics)
}

// saveAnalytics saves zones and lines and puts them in force. The If-Match header holds the version that was read, so that concurrent
// changes are not overwritten.
func (s *Server) saveAnalytics(w http.ResponseWriter, r *http.Request) {
	name, analytics, ok := s.readRequest(w, r)
	if !ok {
		return
	}
	if s.Zones == nil {
		writeError(w, http.StatusConflict, errNoZoneFile)
		return
	}
	version, err := ifMatchVersion(r.Header.Get("If-Match"))
	if err != nil {
		writeError(w, http.StatusPreconditionRequired, err)
		return
	}
	next, err := s.Zones.Set(name, version, analytics)
	switch {
	case errors.Is(err, ErrOutdated):
		writeError(w, http.StatusPreconditionFailed, err)
	case err != nil:
		s.writable.forget()
		writeError(w, http.StatusUnprocessableEntity, err)
	default:
		w.Header().Set("ETag", strconv.Quote(next))
		w.WriteHeader(http.StatusNoContent)
	}
}

// ifMatchVersion returns the version in an If-Match header; empty for *, which matches any.
func ifMatchVersion(header string) (string, error) {
	if header == "*" {
		return "", nil
	}
	version, err := strconv.Unquote(header)
	if err != nil || version == "" {
		return "", errors.New("If-Match must be the ETag of the zones that were read, or * to overwrite any version")
	}
	return version, nil
}

func writeError(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, map[string]string{"error": err.Error()})
}
