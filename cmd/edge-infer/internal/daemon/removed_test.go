package daemon

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// lastingBroker runs a mosquitto on a port that keeps what it retains in a directory.
func lastingBroker(t *testing.T, port int, dir string) (stop func()) {
	path := filepath.Join(t.TempDir(), "mosquitto.conf")
	// Started by root it would give up root and could not write to the test's directory.
	text := fmt.Sprintf("user root\nlistener %d 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location %s/\n", port, dir)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	broker := exec.Command(testtool.Program(t, "mosquitto"), "-c", path)
	require.NoError(t, broker.Start())
	stop = func() {
		if broker.ProcessState == nil {
			_ = broker.Process.Signal(syscall.SIGTERM)
			_ = broker.Wait()
		}
	}
	t.Cleanup(stop)
	require.Eventually(t, func() bool {
		return exec.Command(testtool.Program(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t", "up", "-m", "up").Run() == nil
	}, programtest.Patience, 20*time.Millisecond)
	return stop
}

// retained are the topics below the device that a new subscriber gets a value of at once. A message that is not retained comes after all of
// them, as all are QoS 0 to this subscriber, and ends it.
func retained(t *testing.T, port int) []string {
	for begun := time.Now(); ; {
		topics, err := lookRetained(t, port)
		if err == nil {
			return topics
		}
		require.Less(t, time.Since(begun), programtest.Patience, err)
	}
}

// lookRetained gives up a subscriber that gets no answer: asking once more is quicker.
func lookRetained(t *testing.T, port int) ([]string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), programtest.Patience/6)
	defer cancel()
	client := exec.CommandContext(ctx, testtool.Program(t, "mosquitto_sub"), "-p", fmt.Sprint(port), "-t", "edge-infer/gate/#", "-t", "end",
		"--retained-only", "-F", "%t")
	var output []byte
	ended := make(chan error, 1)
	go func() {
		var err error
		output, err = client.Output()
		ended <- err
	}()
	for {
		select {
		case err := <-ended:
			return strings.Fields(string(output)), err
		case <-time.After(20 * time.Millisecond):
			_ = exec.CommandContext(ctx, testtool.Program(t, "mosquitto_pub"), "-p", fmt.Sprint(port), "-t", "end", "-m", "end").Run()
		}
	}
}

// below are the topics that begin with one of the prefixes.
func below(topics []string, prefixes ...string) (found []string) {
	for _, topic := range topics {
		if slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(topic, "edge-infer/gate/"+prefix) }) {
			found = append(found, topic)
		}
	}
	return found
}

// TestWhatAReloadRemovesIsClearedOnTheBroker has reloads take zones, lines and cameras away, with the broker there and with the broker
// away.
// The reloads follow each other, so they stay in one function.
func TestWhatAReloadRemovesIsClearedOnTheBroker(t *testing.T) {
	t.Parallel()
	const (
		drive  = "{name: drive, points: [{x: 0, y: 0}, {x: 1, y: 0}, {x: 1, y: 1}, {x: 0, y: 1}]}"
		yard   = "{name: yard, points: [{x: 0, y: 0}, {x: 1, y: 0}, {x: 1, y: 1}, {x: 0, y: 1}]}"
		zones  = "zones: [" + yard + "]"
		lines  = ", lines: [{name: door, from: {x: 0.5, y: 1}, to: {x: 0.5, y: 0}}]"
		before = "zones: [" + drive + ", " + yard + "]" + lines
	)
	port, path, dir := programtest.FreePort(t), filepath.Join(t.TempDir(), "edge-infer.yaml"), t.TempDir()
	camera := func(name, analytics string) string {
		return fmt.Sprintf("  - {name: %s, uri: 'demo?width=640&height=360&fps=8', analytics: {%s}}\n", name, analytics)
	}
	put := func(cameras ...string) {
		text := fmt.Sprintf("name: gate\nmqtt: {url: 'tcp://127.0.0.1:%d'}\nweb: {listen: 'off'}\ncameras:\n", port) + strings.Join(cameras, "")
		require.NoError(t, os.WriteFile(path+".part", []byte(text), 0o600))
		require.NoError(t, os.Rename(path+".part", path))
	}
	stop := lastingBroker(t, port, dir)
	discovery := programtest.Subscribe(t, port, "homeassistant/device/edge-infer-gate/+/config")
	put(camera("a", before), camera("b", before))
	p := programtest.Start(t, "--config", path)
	go func() { // nobody reads the lines
		for range p.Lines {
			continue
		}
	}()
	changes := 0
	reload := func(cameras ...string) {
		put(cameras...)
		require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
		changes++
		require.Eventually(t, func() bool { return strings.Count(p.Stderr.String(), `msg="configuration changed"`) == changes },
			programtest.Patience, 20*time.Millisecond,
			"%s", p.Stderr)
	}
	appear := func(prefixes ...string) {
		var missing []string
		require.Eventually(t, func() bool {
			topics := retained(t, port)
			missing = slices.DeleteFunc(slices.Clone(prefixes), func(prefix string) bool { return len(below(topics, prefix)) > 0 })
			return len(missing) == 0
		}, programtest.Patience, 50*time.Millisecond, "%q", &missing)
	}
	disappear := func(prefixes ...string) {
		var left []string
		require.Eventually(t, func() bool {
			left = below(retained(t, port), prefixes...)
			return len(left) == 0
		}, programtest.Patience, 50*time.Millisecond, "%q of %q\n%s", &left, prefixes, p.Stderr)
	}
	everything := func(camera string) (all []string) {
		for _, topic := range []string{
			"count/", "zone/drive/", "zone/yard/", "line/door", "line/door/", "snapshot/", "detect/state", "threshold/state", "interval/state",
			"labels/state",
		} {
			all = append(all, camera+"/"+topic)
		}
		return all
	}
	appear(append(everything("a"), everything("b")...)...)

	reload(camera("a", zones), camera("b", before)) // without a zone and a line
	programtest.Until(t, discovery, `"zone_drive":{"platform":"binary_sensor"}`)
	disappear("a/zone/drive", "a/line/door") // the demo camera has a line of its own then
	appear(append(everything("b"), "a/count/", "a/zone/yard/", "a/snapshot/", "a/detect/state")...)

	reload(camera("c", before), camera("b", before)) // another name
	programtest.Until(t, discovery, "camera-a/config (null)")
	disappear("a/")
	appear(append(everything("b"), everything("c")...)...)

	stop()
	reload(camera("b", before))
	elsewhere := programtest.FreePort(t)
	stop = lastingBroker(t, elsewhere, dir)
	require.NotEmpty(t, below(retained(t, elsewhere), "c/"), "the broker comes back with the camera's topics")
	stop()
	lastingBroker(t, port, dir)
	disappear("a/", "c/")
	appear(everything("b")...)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-p.Done)
	require.Empty(t, below(retained(t, port), "a/", "c/"), "nor does anything come back at the end")
	require.NotEmpty(t, below(retained(t, port), "b/count/"))
	require.NotContains(t, p.Stderr.String(), "restarting")
}
