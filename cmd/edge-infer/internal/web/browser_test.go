package web

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// browser is a tab of a headless Chromium that notes what goes wrong in it.
type browser struct {
	t   *testing.T
	ctx context.Context

	mutex   sync.Mutex
	console []chromedp.ConsoleMessage
	asked   int // how often for console errors
}

func newBrowser(t *testing.T, width, height int) *browser {
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(testtool.Browser(t)), chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("no-proxy-server", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.WindowSize(width, height))
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		cancel()
		cancelAllocator()
	})
	require.NoError(t, chromedp.Do(ctx, chromedp.EmulateViewport(int64(width), int64(height))))
	messages := chromedp.Console(ctx)
	go func() {
		for message, err := range messages {
			if err != nil {
				return
			}
			b.mutex.Lock()
			b.console = append(b.console, message)
			b.mutex.Unlock()
		}
	}()
	return b
}

// consoleErrors returns the console's errors and warnings so far, broken rules of the content security policy among them.
func (b *browser) consoleErrors() (errors []string) {
	b.t.Helper()
	b.asked++
	last := fmt.Sprintf("that was all, %d", b.asked)
	evaluate[any](b, "console.info('"+last+"')")
	var messages []chromedp.ConsoleMessage
	require.Eventually(b.t, func() bool {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		end := slices.IndexFunc(b.console, func(m chromedp.ConsoleMessage) bool { return m.Text == last }) // a lost connection may tell more
		messages = slices.Clone(b.console[:max(end, 0)])
		return end >= 0
	}, testPatience, 10*time.Millisecond)
	for _, m := range messages {
		if m.Type == chromedp.ConsoleError || m.Type == chromedp.ConsoleWarning || m.IsException() {
			errors = append(errors, m.String()+" "+m.URL)
		}
	}
	return errors
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testPatience)
	defer cancel()
	require.NoError(b.t, chromedp.Do(ctx, actions...))
}

// wait waits until a JavaScript expression is true, on whatever page the browser is by then.
func (b *browser) wait(expression string) {
	b.t.Helper()
	var err error
	require.Eventually(b.t, func() bool {
		ctx, cancel := context.WithTimeout(b.ctx, testPatience)
		defer cancel()
		var found bool
		found, err = chromedp.Run(ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		return found
	}, testPatience, 50*time.Millisecond, "%s", expression)
	require.NoError(b.t, err)
}

func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, testPatience)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	require.NoError(b.t, err, expression)
	return value
}

// image writes a screenshot to the directory that EDGE_INFER_SCREENSHOTS names.
func (b *browser) img(name string) {
	directory := os.Getenv("EDGE_INFER_SCREENSHOTS")
	if directory == "" {
		return
	}
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	require.NoError(b.t, err)
	require.NoError(b.t, os.WriteFile(filepath.Join(directory, name+".png"), png, 0o644))
}
