package web

import (
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// subscriptions stand for the browsers of a daemon.
type subscriptions struct {
	mu      sync.Mutex
	all     map[string]Subscription
	problem error
}

func (s *subscriptions) Key() (string, error) {
	return "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4", s.problem
}

func (s *subscriptions) Subscribe(one Subscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all[one.Endpoint] = one
	return nil
}

func (s *subscriptions) Unsubscribe(endpoint string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, endpoint)
	return nil
}

func (s *subscriptions) get(endpoint string) (one Subscription, there bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, there = s.all[endpoint]
	return one, there
}

// TestABrowserIsNotified: the page subscribes with what was chosen, and ends it. A headless browser has no push service: the test stands
// for it.
func TestABrowserIsNotified(t *testing.T) {
	n := &subscriptions{all: map[string]Subscription{}}
	server := &Server{Notifications: n}
	newStage(t, 320, 240, 5, "belt", "dock").serve(t, server)
	b := newBrowser(t, 390, 800)
	b.do(chromedp.Navigate(server.URL() + "#system"))
	const button = `[...document.querySelectorAll("button")].find((b) => b.textContent.includes("this browser"))`
	b.wait(button + `?.disabled === false && document.querySelector("#notify-camera").length === 3`)
	evaluate[any](b, `void (PushManager.prototype.subscribe = async (options) => {
		window.options = options;
		return {endpoint: "https://push.example.org/1", toJSON: () => ({endpoint: "https://push.example.org/1", keys: {p256dh: "p", auth: "a"}}),
			unsubscribe: async () => { window.ended = true; }};
	}, document.querySelector("#notify-camera").value = "dock")`)
	evaluate[any](b, `void `+button+`.click()`)
	b.wait(button + `.textContent === "Stop notifying this browser"`)
	one, there := n.get("https://push.example.org/1")
	require.True(t, there)
	want := Subscription{Endpoint: "https://push.example.org/1", P256dh: "p", Auth: "a", Cameras: []string{"dock"}, Labels: []string{}}
	assert.Equal(t, want, one)
	key, err := n.Key()
	require.NoError(t, err)
	assert.Equal(t, key, evaluate[string](b, `window.options.applicationServerKey`))
	assert.True(t, evaluate[bool](b, `window.options.userVisibleOnly`))
	evaluate[any](b, `void navigator.serviceWorker.ready.then((r) => (window.worker = r.active.scriptURL))`)
	b.wait(`window.worker?.endsWith("/sw.js")`)
	evaluate[any](b, `void `+button+`.click()`)
	b.wait(`window.ended && ` + button + `.textContent === "Notify this browser"`)
	_, there = n.get("https://push.example.org/1")
	assert.False(t, there)
	assert.Empty(t, b.consoleErrors())
}

// TestWhyThereAreNoNotifications: the page says it in the place of the button.
func TestWhyThereAreNoNotifications(t *testing.T) {
	n := &subscriptions{problem: errors.New("notifications need a state directory")}
	server := &Server{Notifications: n}
	serve(t, server, frames("belt"))
	b := newBrowser(t, 1280, 800)
	b.do(chromedp.Navigate(server.URL() + "#system"))
	b.wait(`document.querySelector("#view").innerText.includes("notifications need a state directory")`)
	assert.Empty(t, b.consoleErrors())
}

func TestSubscriptionsAreChecked(t *testing.T) {
	server := &Server{}
	serve(t, server, frames("belt"))
	code, text, _ := ask(t, "GET", server.URL()+"api/notifications", nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, "there are no notifications here")
	for _, body := range []string{"{", `{"endpoint": 1}`, `{"endpoint": "https://push.example.org/"}`} {
		code, text, _ = ask(t, "POST", server.URL()+"api/notifications", strings.NewReader(body))
		require.Equal(t, http.StatusUnprocessableEntity, code, text)
	}
	code, text, header := ask(t, "GET", server.URL()+"sw.js", nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, header.Get("Content-Type"), "javascript")
	require.Contains(t, text, "notificationclick")
}
