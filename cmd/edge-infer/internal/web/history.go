package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/history"
)

// History holds counts over time; *history.Recorder implements it.
type History interface {
	// Day returns the counts of a camera on a day (the newest one if day is empty), and the days available.
	Day(ctx context.Context, camera, day string) (*history.Day, []string, error)
	// Totals returns the counts of each camera since the start.
	Totals() map[string]*history.Counts
}

// serveHistory responds with the counts of a camera on the requested day.
func (s *Server) serveHistory(w http.ResponseWriter, r *http.Request) {
	name, day := r.PathValue("camera"), r.FormValue("day")
	if !s.known(name) || s.History == nil {
		writeError(w, http.StatusNotFound, fmt.Errorf("no history for camera %q", name))
		return
	}
	if _, err := time.Parse(time.DateOnly, day); day != "" && err != nil {
		writeError(w, http.StatusBadRequest, errors.New("day must be a date as in 2026-11-22"))
		return
	}
	found, days, err := s.History.Day(r.Context(), name, day)
	if err != nil {
		s.Logger.Warn("history not read for the web page", "error", err)
		writeError(w, http.StatusInternalServerError, errors.New("the history cannot be read; see the log"))
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"days": days, "day": found.Day, "hours": found.Hours, "heat": found.Heat, "columns": history.Columns, "rows": history.Rows,
	})
}

// forTotals calls read with the counts of every camera.
func forTotals(read func(camera string, c *history.Counts, emit emit)) func(*Server, *Status, emit) {
	return func(s *Server, _ *Status, emit emit) {
		if s.History == nil {
			return
		}
		for camera, counts := range s.History.Totals() {
			read(camera, counts, emit)
		}
	}
}

// historyMetrics returns the metrics of objects, zones and lines.
func historyMetrics() []daemonMetric {
	metric := func(name, help string, read func(string, *history.Counts, emit), labels ...string) daemonMetric {
		description := prometheus.NewDesc("edge_infer_"+name, help, append([]string{"camera"}, labels...), nil)
		return daemonMetric{description, prometheus.CounterValue, forTotals(read)}
	}
	ofZones := func(read func(*history.Zone) float64) func(string, *history.Counts, emit) {
		return func(camera string, c *history.Counts, emit emit) {
			for name, z := range c.Zones {
				emit(read(z), camera, name)
			}
		}
	}
	return []daemonMetric{
		metric("objects_total", "Tracked objects.", func(camera string, c *history.Counts, emit emit) {
			for label, n := range c.Objects {
				emit(float64(n), camera, label)
			}
		}, "label"),
		metric("zone_entered_total", "Objects that entered a zone.",
			ofZones(func(z *history.Zone) float64 { return float64(z.Entered) }), "zone"),
		metric("zone_visits_total", "Completed stays in a zone.",
			ofZones(func(z *history.Zone) float64 { return float64(z.Visits) }), "zone"),
		metric("zone_dwell_seconds_total", "Total time of these stays.", ofZones(func(z *history.Zone) float64 { return z.Dwell }), "zone"),
		metric("line_crossed_total", "Objects that crossed a line.", func(camera string, c *history.Counts, emit emit) {
			for name, l := range c.Lines {
				emit(float64(l.In), camera, name, "in")
				emit(float64(l.Out), camera, name, "out")
			}
		}, "line", "direction"),
		metric("objects_distance_meters_total", "Distance on the ground of ended tracks; divided by the next metric, their mean speed.",
			func(camera string, c *history.Counts, emit emit) { emit(c.Way.Distance, camera) }),
		metric("objects_distance_seconds_total", "Duration of these tracks.",
			func(camera string, c *history.Counts, emit emit) { emit(c.Way.Time, camera) }),
	}
}
