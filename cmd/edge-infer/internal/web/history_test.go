package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/history"
)

// oneDay is a history with one day.
type oneDay struct{ broken bool }

func someCounts() *history.Counts {
	return &history.Counts{
		Objects: map[string]int{"bolt": 3}, Zones: map[string]*history.Zone{"yard": {Entered: 2, Visits: 1, Dwell: 7.5}},
		Lines: map[string]*history.Line{"gate": {In: 4}}, Way: history.Way{Objects: 2, Distance: 12, Time: 8},
	}
}

func (c *oneDay) Totals() map[string]*history.Counts {
	return map[string]*history.Counts{"cam0": someCounts()}
}

func (c *oneDay) Day(_ context.Context, camera, day string) (*history.Day, []string, error) {
	if c.broken {
		return nil, nil, errors.New("disk")
	}
	days := []string{"2026-11-20", "2026-11-21"}
	if day == "" {
		day = days[1]
	}
	found := &history.Day{Camera: camera, Day: day, Hours: map[int]*history.Counts{9: someCounts()}, Heat: new(history.Heat)}
	for column := range history.Columns {
		found.Heat[20*history.Columns+column] = float32(column)
	}
	return found, days, nil
}

func TestHistoryOfACamera(t *testing.T) {
	kept := &oneDay{}
	server := &Server{History: kept}
	serve(t, server, busy())
	address := server.URL() + "api/cameras/cam0/history"
	code, text, _ := ask(t, "GET", address+"?day=2026-11-20", nil)
	require.Equal(t, http.StatusOK, code)
	var found struct {
		Day   string                    `json:"day"`
		Days  []string                  `json:"days"`
		Hours map[string]history.Counts `json:"hours"`
		Heat  []float64                 `json:"heat"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &found), text)
	require.Equal(t, "2026-11-20", found.Day)
	require.Equal(t, []string{"2026-11-20", "2026-11-21"}, found.Days)
	require.Equal(t, *someCounts(), found.Hours["9"])
	require.Len(t, found.Heat, history.Columns*history.Rows)
	require.InDelta(t, 5, found.Heat[20*history.Columns+5], 1e-6)

	code, text, _ = ask(t, "GET", address+"?day=../../secret", nil)
	require.Equal(t, http.StatusBadRequest, code)
	require.Contains(t, text, "day must be a date as in 2026-11-22")
	code, _, _ = ask(t, "GET", server.URL()+"api/cameras/other/history", nil)
	require.Equal(t, http.StatusNotFound, code)
	kept.broken = true
	code, text, _ = ask(t, "GET", address, nil)
	require.Equal(t, http.StatusInternalServerError, code)
	require.NotContains(t, text, "disk")
}

func TestThePageShowsHistory(t *testing.T) {
	s := newStage(t, 640, 360, 5, "belt")
	server := &Server{History: &oneDay{}}
	s.serve(t, server)
	b := newBrowser(t, 1280, 900)
	b.do(chromedp.Navigate(server.URL() + "#history/belt"))
	b.wait(`document.querySelector("table.day")?.textContent.includes("bolt3 objects")`)
	table := evaluate[string](b, `document.querySelector("table.day").textContent`)
	require.Equal(t, "bolt3 objectsyard2 entered, stayed 7.5 s on averagegate4 in, 0 outSpeed1.50 m/s on average of 2 objects", table)
	hours := evaluate[string](b, `document.querySelector("table.hours").innerText`)
	require.Equal(t, "Hour\tbolt\tinto yard\tgate in\tgate out\n09:00\t3\t2\t4\t0", hours)
	require.Equal(t, "2026-11-21", evaluate[string](b, `document.querySelectorAll("select")[1].value`))
	b.wait(`document.querySelector("canvas").getAttribute("aria-label")?.includes("red is 1 min 3 s, all objects together")`)
	// The right end of the warm row is red, and nothing lies over the rows beside it.
	b.wait(`(() => {
		const canvas = document.querySelector("canvas");
		const context = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", {willReadFrequently: true});
		context.drawImage(canvas, 0, 0);
		const at = (row) => context.getImageData(canvas.width - 3, Math.floor((row + 0.5) * canvas.height / 36), 1, 1).data;
		return at(20)[0] > at(22)[0] + 40;
	})()`)
	b.img("history")
	require.Empty(t, b.consoleErrors())
}
