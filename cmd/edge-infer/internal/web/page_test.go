package web

import (
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// drawn is what the page says it painted.
type drawn struct {
	Seq     uint64  `json:"seq"`
	Picture uint64  `json:"picture"`
	Scale   float64 `json:"scale"`
	Boxes   []struct {
		Label  string     `json:"label"`
		Class  int        `json:"class"`
		Track  uint64     `json:"track"`
		Lost   bool       `json:"lost"`
		Source [4]float64 `json:"source"`
		Canvas [4]float64 `json:"canvas"`
		Colour string     `json:"colour"`
	} `json:"boxes"`
}

func TestLook(t *testing.T) {
	s := newStage(t, 1280, 720, 12, "belt")
	server := &Server{Configure: s.configure}
	s.serve(t, server)
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL()))
	b.wait(`window.edgeInfer?.drawn.belt?.boxes.length > 2`)
	time.Sleep(5 * time.Second)
	b.picture("live")
	b.do(chromedp.Navigate(server.URL() + "#zones"))
	time.Sleep(2 * time.Second)
	b.picture("zones")
	b.do(chromedp.Navigate(server.URL() + "#events"))
	time.Sleep(2 * time.Second)
	b.picture("events")
	b.do(chromedp.Navigate(server.URL() + "#system"))
	time.Sleep(2 * time.Second)
	b.picture("system")
	require.Empty(t, b.complaints())
}
