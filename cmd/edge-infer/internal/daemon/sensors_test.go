package daemon

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// orinNano unpacks the recorded files of a Jetson Orin Nano; the returned function sets the temperature of its CPU.
func orinNano(t *testing.T) (root string, heat func(celsius float64)) {
	root = t.TempDir()
	recorded, err := os.ReadFile("../telemetry/testdata/orin-nano.txt")
	require.NoError(t, err)
	write := func(path, content string) {
		file := filepath.Join(root, path)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file+".part", []byte(content), 0o600))
		require.NoError(t, os.Rename(file+".part", file))
	}
	var sensor string
	for line := range strings.Lines(string(recorded)) {
		path, content, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		write(path, strings.NewReplacer(`\n`, "\n", `\0`, "\x00").Replace(content)+"\n")
		if content == "cpu-thermal" && strings.HasSuffix(path, "/type") {
			sensor = filepath.Join(filepath.Dir(path), "temp")
		}
	}
	require.NotEmpty(t, sensor)
	return root, func(celsius float64) { write(sensor, fmt.Sprintf("%.0f\n", 1000*celsius)) }
}

// TestAJetsonsSensorsArePublished runs the daemon on the recorded files of a Jetson and reads what it says of them in each of the ways.
func TestAJetsonsSensorsArePublished(t *testing.T) {
	t.Parallel()
	root, heat := orinNano(t)
	broker, page := programtest.FreePort(t), programtest.FreePort(t)
	p := programtest.StartWith(
		t,
		[]string{"EDGE_INFER_THERMAL_MARGIN=10"},
		"--camera",
		"belt=demo?width=160&height=120&fps=10",
		"--root",
		root,
		"--name",
		"nano",
		"--json",
		"--mqtt-listen",
		fmt.Sprintf("127.0.0.1:%d", broker),
		"--web",
		fmt.Sprintf("127.0.0.1:%d", page),
	)
	go func() { // nobody reads the frames
		for range p.Lines {
			continue
		}
	}()
	p.Logged("mqtt connected")

	type stats struct {
		Temperatures map[string]float64 `json:"temperature_c"`
		Power        map[string]float64 `json:"power_w"`
		Loads        map[string]float64 `json:"load_pct"`
		Mode         string             `json:"power_mode"`
		Throttled    []string           `json:"throttled"`
	}
	published := func(topic string) []byte {
		t.Helper()
		line, more := <-programtest.Subscribe(t, broker, topic)
		require.True(t, more)
		return []byte(strings.TrimPrefix(line, topic+" "))
	}
	var got stats
	require.NoError(t, json.Unmarshal(published("edge-infer/nano/stats"), &got))
	require.Equal(t, map[string]float64{"cpu-thermal": 52.062, "gpu-thermal": 53.468, "tj-thermal": 53.468}, rounded(got.Temperatures))
	require.Equal(t, map[string]float64{"VDD_IN": 6.35, "VDD_CPU_GPU_CV": 2.536}, rounded(got.Power))
	require.InDelta(t, 61.2, got.Loads["GPU"], 0.01)
	require.InDelta(t, 100*(1-4012344.0/7802024), got.Loads["memory"], 0.01)
	require.InDelta(t, 100*210000.0/7802024, got.Loads["memory of GPU and video"], 0.01)
	require.InDelta(t, 40, got.Loads["fan"], 0.01)
	require.Equal(t, "25W", got.Mode)
	require.Empty(t, got.Throttled)

	var discovery struct {
		Components map[string]struct {
			Topic    string `json:"state_topic"`
			Template string `json:"value_template"`
			Unit     string `json:"unit_of_measurement"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(published("homeassistant/device/edge-infer-nano/hub/config"), &discovery))
	for key, want := range map[string][2]string{
		"temperature_gpu-thermal": {`{{ value_json["temperature_c"]["gpu-thermal"] | round(0) | int }}`, "°C"},
		"power_VDD_IN":            {`{{ value_json["power_w"]["VDD_IN"] }}`, "W"},
		"load_GPU":                {`{{ value_json["load_pct"]["GPU"] }}`, "%"},
		"power_mode":              {`{{ value_json["power_mode"] }}`, ""},
		"throttled":               {`{{ 'ON' if value_json.throttled else 'OFF' }}`, ""},
	} {
		found := discovery.Components[key]
		require.Equal(t, "edge-infer/nano/stats", found.Topic, key)
		require.Equal(t, want, [2]string{found.Template, found.Unit}, key)
	}

	address := fmt.Sprintf("http://127.0.0.1:%d/", page)
	_, metrics := programtest.Get(t, programtest.Visitor(t), address+"metrics")
	for _, line := range []string{
		`edge_infer_temperature_celsius{sensor="gpu-thermal"} 53.468`, `edge_infer_power_watts{rail="VDD_IN"} 6.35`,
		`edge_infer_load_ratio{unit="GPU"} 0.612`,
		`edge_infer_clock_hertz{unit="GPU"} 6.2475e+08`,
	} {
		require.Contains(t, string(metrics), line+"\n")
	}
	_, status := programtest.Get(t, programtest.Visitor(t), address+"api/status")
	require.Contains(t, string(status), `{"kind":"temperature","name":"cpu-thermal","value":52.062,"unit":"celsius"}`)

	// The CPU comes near its limit of 99 degrees: fewer frames, until it has cooled down by the margin and the hysteresis.
	heat(95)
	p.Logged(`msg="rate changed for the machine's temperature" interval_factor=2`)
	heat(86)
	time.Sleep(6 * time.Second) // one reading at least, and nothing may come of it
	require.NotContains(t, p.Stderr.String(), "interval_factor=1")
	heat(60)
	p.Logged(`msg="rate changed for the machine's temperature" interval_factor=1`)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGTERM))
	require.NoError(t, <-p.Done)
}

// rounded takes the noise out of sums of decimal fractions.
func rounded(values map[string]float64) map[string]float64 {
	for name, v := range values {
		values[name] = float64(int(1000*v+0.5)) / 1000
	}
	return values
}
