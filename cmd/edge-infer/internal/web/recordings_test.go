package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mp4/mp4test"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
)

// addRecording stores a file of a continuous recording, which ends after a length unless that is 0.
func addRecording(t *testing.T, s *store.Store, camera string, start time.Time, length time.Duration, file []byte) (id string) {
	id = start.Format("20060102T150405") + "-" + camera
	clip := &record.Clip{
		ID: id, Camera: camera, Events: []string{}, Path: id + ".mp4", Start: start, Duration: length, Codec: "avc1.64000a",
		Bytes: int64(len(file)), State: record.Closed,
	}
	if length == 0 {
		clip.State = record.Open
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.ClipDirectory, clip.Path), file, 0o600))
	require.NoError(t, s.OpenClip(context.Background(), clip))
	return id
}

func TestRecordings(t *testing.T) {
	s := openStore(t)
	server := &Server{Events: s}
	serve(t, server, frames("cam0"))
	first := addRecording(t, s, "cam0", firstStart, time.Minute, []byte("0123456789"))
	second := addRecording(t, s, "cam0", firstStart.Add(time.Minute), 0, []byte("0"))
	get := func(path string, to any) {
		code, text, _ := ask(t, "GET", server.URL()+"api/recordings"+path, nil)
		require.Equal(t, http.StatusOK, code, text)
		require.NoError(t, json.Unmarshal([]byte(text), to))
	}
	var page struct {
		Recordings []recording
		Next       string
	}
	get("?limit=1", &page)
	require.Len(t, page.Recordings, 1)
	require.Equal(t, second, page.Recordings[0].ID)
	require.Zero(t, page.Recordings[0].End)
	get("?limit=1&cursor="+page.Next, &page)
	require.Equal(t, recording{
		ID: first, Camera: "cam0", Start: firstStart, End: firstStart.Add(time.Minute), Codec: "avc1.64000a", Bytes: 10,
		Video: "/api/recordings/" + first + "/video",
	}, page.Recordings[0])
	get("?camera=other", &page)
	require.Empty(t, page.Recordings)
	var found struct{ Spans []span }
	get("/spans?camera=cam0&after=2026-11-25T12:00:30Z", &found)
	require.Equal(t, []span{{Camera: "cam0", Start: firstStart}}, found.Spans)

	code, text, header := ask(t, "GET", server.URL()+"api/recordings/"+first+"/video", nil)
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "0123456789", text)
	require.Equal(t, "video/mp4", header.Get("Content-Type"))
	code, text, _ = ask(t, "GET", server.URL()+"api/recordings/none/video", nil)
	require.Equal(t, http.StatusNotFound, code, text)
	for path, want := range map[string]string{
		"?after=x": "after must be a time", "/spans?before=x": "before must be a time", "?cursor=x": "cursor must be",
		"?label=x": "unknown parameter", "/spans?limit=1": "unknown parameter",
	} {
		code, text, _ := ask(t, "GET", server.URL()+"api/recordings"+path, nil)
		require.Equal(t, http.StatusBadRequest, code, path)
		require.Contains(t, text, want)
	}
}

// TestTheTimelinePlaysRecordings: a press on the band plays the file that shows that time, and the next file after it. An event without a
// clip shows it too.
func TestTheTimelinePlaysRecordings(t *testing.T) {
	st := newStage(t, 160, 120, 8, "bare", "belt")
	stored := openStore(t)
	server := &Server{Events: stored}
	st.serve(t, server)
	file := mp4test.File(t, mp4test.Encode(t, "libx264", 10, time.Second))
	const length = 10 * time.Second
	for i := range 3 {
		addRecording(t, stored, "belt", firstStart.Add(time.Duration(i)*length), length, file)
	}
	e := storedEvent(10, "belt", "bolt")
	stored.Add(e)

	b := newBrowser(t, 1400, 900)
	b.do(chromedp.Navigate(server.URL() + "#events"))
	b.wait(`document.querySelectorAll(".row-of").length === 3`)
	b.click("1 h")
	evaluate[any](b, fmt.Sprintf(`window.edgeInfer.view.timeline.show(%d)`, firstStart.Add(10*time.Minute).UnixMilli()))
	b.wait(`document.querySelectorAll(".mark").length === 1 && document.querySelectorAll(".band").length === 1`)
	require.Equal(t, 1, evaluate[int](b, `document.querySelectorAll(".track")[1].querySelectorAll(".band").length`))
	b.wait(`(() => {
		const [band, track] = [".band", ".track:has(.band)"].map((name) => document.querySelector(name).getBoundingClientRect());
		return Math.abs(band.width / track.width - 30 / 3600) < 0.002;
	})()`)
	b.img("recording-timeline")
	evaluate[any](b, `document.querySelector(".tiles button").click()`)
	b.wait(`document.querySelector("dialog[open] video")?.currentTime > 8.9 && !document.querySelector("dialog .none")`)
	require.Equal(t, "Recording of bolt 10", evaluate[string](b, `document.querySelector("dialog video").ariaLabel`))
	b.click("Close")
	b.wait(`!document.querySelector("dialog").open`)
	press := func(at time.Time) {
		evaluate[any](b, fmt.Sprintf(`(() => {
			const {timeline} = window.edgeInfer.view;
			timeline.timeAt = () => %d;
			document.querySelector(".band").dispatchEvent(new MouseEvent("click", {detail: 1, bubbles: true}));
		})()`, at.UnixMilli()))
	}
	const shown = `document.querySelector("dialog[open] video")`
	id := func(i int) string {
		return fmt.Sprintf("/api/recordings/%s-belt/video", firstStart.Add(time.Duration(i)*length).Format("20060102T150405"))
	}
	press(firstStart.Add(length + 4*time.Second))
	b.wait(fmt.Sprintf(`%s?.getAttribute("src") === %q && %s.currentTime >= 4`, shown, id(1), shown))
	require.Contains(t, evaluate[string](b, `document.querySelector("dialog .bar").innerText`), "Recording\n\nbelt")
	b.img("recording")
	evaluate[any](b, shown+`.currentTime = 9.5`)
	b.wait(fmt.Sprintf(`%s?.getAttribute("src") === %q && %s.currentTime > 0.2`, shown, id(2), shown))
	evaluate[any](b, shown+`.currentTime = 9.5`)
	b.wait(shown + `.ended`)
	b.click("Close")
	b.wait(`!document.querySelector("dialog").open`)
	press(firstStart.Add(-time.Hour))
	b.wait(`document.querySelector("dialog[open] .none")?.innerText.startsWith("There is no video")`)
	require.Empty(t, b.consoleErrors())
}
