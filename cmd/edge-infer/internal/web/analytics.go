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

// readAnalytics reads zones and lines as the editor sends them. The error says what the user can mend.
func readAnalytics(body io.Reader, labels []string) (zone.Config, error) {
	var c zone.Config
	decoder := json.NewDecoder(body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return zone.Config{}, fmt.Errorf("zones: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return zone.Config{}, errors.New("zones: more than one document")
	}
	return c, c.Check(labels)
}

// analyticsYAML is a camera's part of the configuration file.
func analyticsYAML(c zone.Config) (string, error) {
	point := yaml.CustomMarshaler(func(p zone.Point) ([]byte, error) {
		number := func(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
		return []byte("{x: " + number(p.X) + ", y: " + number(p.Y) + "}"), nil
	})
	text, err := yaml.MarshalWithOptions(map[string]zone.Config{"analytics": c}, yaml.OmitEmpty(), yaml.OmitZero(), yaml.IndentSequence(true), point)
	return string(text), err
}

// requested reads the camera and the analytics of a request, or answers what is wrong.
func (s *Server) requested(w http.ResponseWriter, r *http.Request) (name string, analytics zone.Config, ok bool) {
	name = r.PathValue("camera")
	labels, known := s.labels(name)
	if !known {
		writeError(w, http.StatusNotFound, fmt.Errorf("no camera %q", name))
		return "", zone.Config{}, false
	}
	analytics, err := readAnalytics(r.Body, labels)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		writeError(w, http.StatusRequestEntityTooLarge, fmt.Errorf("zones: more than %d bytes", large.Limit))
	case err != nil:
		writeError(w, http.StatusUnprocessableEntity, err)
	}
	return name, analytics, err == nil
}

// checkAnalytics answers the YAML of zones and lines that could be, or why they cannot.
func (s *Server) checkAnalytics(w http.ResponseWriter, r *http.Request) {
	_, analytics, ok := s.requested(w, r)
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

// saveAnalytics puts zones and lines in force for good.
func (s *Server) saveAnalytics(w http.ResponseWriter, r *http.Request) {
	name, analytics, ok := s.requested(w, r)
	if !ok {
		return
	}
	if s.Configure == nil {
		writeError(w, http.StatusConflict, errors.New("there is no configuration file to save to: copy the text into one and start with --config"))
		return
	}
	if err := s.Configure(r.Context(), name, analytics); err != nil {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func writeError(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, map[string]string{"error": err.Error()})
}
