package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// garage is a Cameras that notes what it is asked for.
type garage struct {
	mutex   sync.Mutex
	calls   []string
	added   []string
	problem error
	blocked chan struct{} // a search waits for it; nil to answer at once
}

func (g *garage) note(call string) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.calls = append(g.calls, call)
}

func (g *garage) called(call string) bool {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Contains(g.calls, call)
}

func (g *garage) Added() ([]string, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	return slices.Clone(g.added), nil
}

func (g *garage) Writable() error { return g.problem }

func (g *garage) Add(camera NewCamera) error {
	g.note(fmt.Sprintf("add %+v", camera))
	if camera.Name == "belt" {
		return errors.New(`there is a camera "belt" already`)
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.added = append(g.added, camera.Name)
	return nil
}

func (g *garage) Remove(name string) error {
	g.note("remove " + name)
	return nil
}

func (g *garage) Set(camera, setting, value string) error {
	g.note(strings.Join([]string{"set", camera, setting, value}, " "))
	if value == "2" {
		return errors.New("want a number from 0 to 1, got 2")
	}
	return nil
}

func (g *garage) Search(ctx context.Context, search Search) ([]FoundCamera, error) {
	g.note(fmt.Sprintf("search %+v", search))
	if g.blocked != nil {
		select {
		case <-g.blocked:
		case <-ctx.Done():
		}
	}
	return []FoundCamera{
		{
			Name: "x1", Title: "Maker X1", Address: "http://192.0.2.10/onvif", URI: "rtsp://192.0.2.10/sub", Record: "rtsp://192.0.2.10/main",
			Streams: "640x360 H264",
		},
		{Name: "camera", Address: "http://192.0.2.11/onvif", Reason: "it refuses the user name or password"},
	}, nil
}

func TestCamerasAreChangedOnThePage(t *testing.T) {
	s := newStage(t, 160, 120, 8, "belt", "dock")
	cameras := &garage{added: []string{"dock"}}
	server := &Server{Cameras: cameras}
	s.serve(t, server)
	b := newBrowser(t, 1280, 900)
	b.do(chromedp.Navigate(server.URL() + "#cameras"))
	row := func(camera string) string {
		return fmt.Sprintf(`document.querySelector("section[aria-label='Camera %s']")`, camera)
	}
	b.wait(row("dock") + `?.querySelector("button.danger:not([hidden])")`)
	require.True(t, evaluate[bool](b, row("belt")+`.querySelector("button.danger").hidden`), "a configured camera is not removed here")

	evaluate[any](b, `void document.querySelector("button[aria-label='Pause detection of belt']").click()`)
	b.wait(row("belt") + `.innerText.includes("Saved.")`)
	require.True(t, cameras.called("set belt detect OFF"))
	evaluate[any](b, row("belt")+`.querySelector("input[type=number]").select()`)
	b.do(chromedp.KeyEvent("2\r"))
	b.wait(row("belt") + `.innerText.includes("want a number from 0 to 1")`)
	evaluate[any](b, `void document.querySelector("button[aria-label='Reset the settings of dock']").click()`)
	b.wait(row("dock") + `.innerText.includes("As configured.")`)
	for _, setting := range []string{"detect", "threshold", "interval", "labels"} {
		require.True(t, cameras.called("set dock "+setting+" "), setting)
	}

	b.do(chromedp.SendKeys(chromedp.CSS("form[aria-label='Find cameras'] label:nth-of-type(1) input"), "viewer"))
	b.do(chromedp.SendKeys(chromedp.CSS("form[aria-label='Find cameras'] input[type=password]"), "secret\r"))
	b.wait(`document.querySelector("button[aria-label='Use Maker X1']")`)
	require.True(t, cameras.called("search {Addresses:[] User:viewer Password:secret}"))
	require.Contains(t, evaluate[string](b, `document.querySelector(".found").innerText`), "it refuses the user name or password")
	b.img("cameras")
	evaluate[any](b, `void document.querySelector("button[aria-label='Use Maker X1']").click()`)
	b.do(chromedp.KeyEvent("\r"))
	b.wait(`document.querySelector("main").innerText.includes("x1 is being opened.")`)
	require.True(t, cameras.called(
		"add {Name:x1 URI:rtsp://192.0.2.10/sub Record:rtsp://192.0.2.10/main User:viewer Password:secret}"))
	for _, message := range b.consoleErrors() {
		require.Contains(t, message, "422", "nothing but the refused threshold")
	}
}

func TestCamerasThatCannotBeChanged(t *testing.T) {
	for _, test := range []struct {
		cameras Cameras
		want    string
	}{{nil, "cannot be changed here"}, {&garage{problem: errors.New("no space left on device")}, "no space left on device"}} {
		server := &Server{Cameras: test.cameras}
		serve(t, server, frames("belt"))
		_, text, _ := ask(t, "GET", server.URL()+"api/cameras", nil)
		require.Contains(t, text, test.want)
	}
	server := &Server{Token: "view " + strings.Repeat("v", 16) + "\ncontrol " + strings.Repeat("c", 16), Cameras: &garage{}}
	serve(t, server, frames("belt"))
	as := func(secret, method, path, body string) (int, string) {
		code, text, _ := ask(t, method, server.URL()+path, strings.NewReader(body), "Authorization", "Bearer "+strings.Repeat(secret, 16))
		return code, text
	}
	_, text := as("v", "GET", "api/cameras", "")
	require.Contains(t, text, "the role view")
	for _, test := range []struct {
		method, path, body string
		code               int
		want               string
	}{
		{"POST", "api/cameras", `{"name":"belt","uri":"demo"}`, http.StatusUnprocessableEntity, "already"},
		{"POST", "api/cameras", `{"nme":"belt"}`, http.StatusUnprocessableEntity, "unknown field"},
		{"POST", "api/cameras", `{"name":"a"} {}`, http.StatusUnprocessableEntity, "more than one document"},
		{"POST", "api/cameras", `{"name":"gate","uri":"demo"}`, http.StatusNoContent, ""},
		{"DELETE", "api/cameras/gate", "", http.StatusNoContent, ""},
		{"PUT", "api/cameras/belt/settings/threshold", `{"value":"0.5"}`, http.StatusNoContent, ""},
		{"PUT", "api/cameras/none/settings/threshold", `{"value":"0.5"}`, http.StatusNotFound, "no camera"},
		{"PUT", "api/cameras/belt/settings/threshold", `{"value":0.5}`, http.StatusUnprocessableEntity, "value"},
		{"POST", "api/cameras/search", `[]`, http.StatusUnprocessableEntity, "search"},
		{"POST", "api/cameras/search", `{}`, http.StatusOK, "rtsp://192.0.2.10/sub"},
	} {
		code, text := as("c", test.method, test.path, test.body)
		require.Equal(t, test.code, code, "%s %s %s", test.path, test.body, text)
		require.Contains(t, text, test.want)
		code, _ = as("v", test.method, test.path, test.body)
		require.Equal(t, http.StatusForbidden, code, "%s with the role view", test.path)
	}
}

// TestOneSearchAtATime: each sends hundreds of datagrams and a login.
func TestOneSearchAtATime(t *testing.T) {
	cameras := &garage{blocked: make(chan struct{})}
	server := &Server{Cameras: cameras}
	serve(t, server, frames("belt"))
	first := make(chan int, 1)
	go func() {
		code, _, _ := ask(t, "POST", server.URL()+"api/cameras/search", strings.NewReader("{}"))
		first <- code
	}()
	require.Eventually(t, func() bool { return cameras.called("search {Addresses:[] User: Password:}") }, testPatience, time.Millisecond)
	code, text, _ := ask(t, "POST", server.URL()+"api/cameras/search", strings.NewReader("{}"))
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, text, "running already")
	close(cameras.blocked)
	require.Equal(t, http.StatusOK, <-first)
}
