package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestDefaultFileSaysTheDefaults(t *testing.T) {
	file, err := DefaultFile()
	require.NoError(t, err)
	c := Default()
	c.MQTT.URL, c.Detect.Max, c.Engine.Backend = "changed", 1, "changed"
	require.NoError(t, c.merge("defaults.yaml", []byte(file)))
	want := Default()
	want.Detect.Labels = []string{}
	require.Equal(t, want, c)

	uncommented := strings.NewReplacer("# cameras:", "cameras:", "#   ", "  ").Replace(camerasComment)
	require.NoError(t, c.merge("cameras.yaml", []byte(uncommented)))
	require.Len(t, c.Cameras, 1)
	camera := c.Cameras[0]
	require.NoError(t, camera.Analytics.Check([]string{"person"}))
	require.Equal(t, time.Minute, camera.Analytics.Zones[0].Loiter)
	require.Equal(t, "door", camera.Analytics.Lines[0].Name)
	camera.Analytics = zone.Config{}
	require.Equal(t, Camera{Name: "gate", URI: "rtsp://192.0.2.10/stream", Interval: 1, Stall: 5 * time.Second}, camera)
	require.NoError(t, c.Validate())
}

func TestEverySettingHasAFlag(t *testing.T) {
	c := Default()
	count := 0
	var walk func(v reflect.Type)
	walk = func(v reflect.Type) {
		for i := range v.NumField() {
			field := v.Field(i)
			switch {
			case field.Type == reflect.TypeFor[[]Camera]():
			case field.Type.Kind() == reflect.Struct:
				walk(field.Type)
			default:
				count++
			}
		}
	}
	walk(reflect.TypeFor[Config]())
	require.Len(t, settings(c), count)
}

func TestOrder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(path, []byte("device: gate\nmqtt:\n  url: tcp://one:1883\ndetect:\n  confidence: 0.5\n  iou: 0.6\n"), 0o600))
	t.Setenv("EDGE_INFER_MQTT", "tcp://two:1883")
	t.Setenv("EDGE_INFER_CONF", "0.6")
	t.Setenv("EDGE_INFER_CAMERA", "demo gate=rtsp://h/x")
	c, err := Load(path)
	require.NoError(t, err)
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	Flags(c, flags)
	require.NoError(t, flags.Parse([]string{"--conf", "0.7"}))
	require.NoError(t, c.Validate())
	require.Equal(t, "gate", c.Device)
	require.Equal(t, "tcp://two:1883", c.MQTT.URL)
	require.Equal(t, 0.7, c.Detect.Confidence)
	require.Equal(t, 0.6, c.Detect.IoU)
	require.Equal(t, 300, c.Detect.Max)
	require.Equal(t, []Camera{{Name: "cam0", URI: "demo"}, {Name: "gate", URI: "rtsp://h/x"}}, c.Cameras)
}

func TestFileErrors(t *testing.T) {
	for _, test := range []struct{ file, want string }{
		{"detect:\n  confidense: 0.5\n", `config f.yaml line 2: unknown key "confidense", did you mean "confidence"?`},
		{"zzzzzzzz: 1\n", `config f.yaml line 1: unknown key "zzzzzzzz"`},
		{"detect:\n  max: many\n", `config f.yaml line 2: cannot unmarshal string into Go struct field Config.Detect of type int`},
		{"device: a\ndevice: b\n", `config f.yaml line 2: mapping key "device" already defined at [1:1]`},
	} {
		require.EqualError(t, Default().merge("f.yaml", []byte(test.file)), test.want)
	}
	_, err := Load(filepath.Join(t.TempDir(), "none.yaml"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.NoError(t, Default().merge("empty.yaml", nil))
}

func TestEnvironmentErrors(t *testing.T) {
	t.Setenv("EDGE_INFER_CONF", "high")
	_, err := Load("")
	require.ErrorContains(t, err, `environment EDGE_INFER_CONF="high": `)
	t.Setenv("EDGE_INFER_CONF", "0.5")
	t.Setenv("EDGE_INFER_CAMERA", "gate= x")
	_, err = Load("")
	require.NoError(t, err)
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Device = "a/b" }, `device "a/b" must be a name without + / #`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a"}} }, `cameras[0].uri "" must be an address, a file, a device number or demo`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a b", URI: "0"}} }, `cameras[0].name "a b" must be a name without + / # and spaces`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0"}, {Name: "a", URI: "1"}} }, `cameras[1].name "a" is used twice`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0", Interval: -1}} }, `cameras[0].interval "-1" must be 1 or more`},
		{func(c *Config) { c.Model.Layout = "v8" }, `model.layout "v8" must be auto, yolov5, yolov8, end2end or classify`},
		{func(c *Config) { c.Engine.Backend = "cuda" }, `engine.backend "cuda" must be auto, tensorrt, onnxruntime, onnxruntime=cuda or onnxruntime=cpu`},
		{func(c *Config) { c.Engine.Precision = "fp8" }, `engine.precision "fp8" must be auto, fp32, fp16 or int8`},
		{func(c *Config) { c.Engine.Threads = -1 }, `engine.threads "-1" must be 0 to 1024`},
		{func(c *Config) { c.Detect.Confidence = 0 }, `detect.confidence "0" must be over 0 and at most 1`},
		{func(c *Config) { c.Detect.IoU = 2 }, `detect.iou "2" must be over 0 and at most 1`},
		{func(c *Config) { c.Detect.Max = 0 }, `detect.max "0" must be 1 to 30000`},
		{func(c *Config) { c.MQTT.URL = "broker" }, `mqtt.url "broker" must be embedded, off, or like tcp://host:1883`},
		{func(c *Config) { c.MQTT.URL = "ftp://h:1" }, `mqtt.url "ftp" must be tcp, tls, ssl, mqtt, mqtts, ws or wss`},
		{func(c *Config) { c.MQTT.URL = "tcp://u:secret@h:1" }, `mqtt.url "tcp://u:xxxxx@h:1" must not hold a password: use mqtt.password_file`},
		{func(c *Config) { c.MQTT.Listen = "1883" }, `mqtt.listen "1883" must be host:port`},
		{func(c *Config) { c.MQTT.Key = "k" }, `mqtt.certificate and mqtt.key: one needs the other`},
		{func(c *Config) { c.Web.Listen = "8080" }, `web.listen "8080" must be host:port or off`},
		{func(c *Config) { c.Web.Key = "k" }, `web.certificate and web.key: one needs the other`},
		{func(c *Config) { c.Web.User = "me" }, `web.user and web.password_file: one needs the other`},
		{func(c *Config) { c.Web.PasswordFile = "f" }, `web.user and web.password_file: one needs the other`},
		{func(c *Config) { c.Web.User, c.Web.PasswordFile, c.Web.TokenFile = "me", "f", "t" }, `web.user and web.token_file: only one of them can be`},
		{func(c *Config) { c.Web.User, c.Web.PasswordFile = "a:b", "f" }, `web.user "a:b" must be a name without :`},
		{func(c *Config) { c.Thermal.Margin = -1 }, `thermal.margin and thermal.hysteresis must be 0 to 100 degrees`},
		{func(c *Config) { c.Snapshots.Keep = 0 }, `snapshots.keep "0" must be 1 to 1000000`},
		{func(c *Config) { c.Log = "loud" }, `log "loud" must be debug, info, warn or error`},
	} {
		c := Default()
		test.change(c)
		require.EqualError(t, c.Validate(), test.want)
	}
	require.NoError(t, Default().Validate())
}

func FuzzFile(f *testing.F) {
	file, err := DefaultFile()
	require.NoError(f, err)
	f.Add([]byte(file))
	f.Add([]byte("cameras:\n  - {name: a, uri: demo}\n"))
	f.Add([]byte("detect: [1, 2"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Default()
		before := *c
		if err := c.merge("fuzz.yaml", data); err != nil {
			require.Equal(t, before, *c, "a refused file must change nothing")
			require.NotContains(t, err.Error(), "\n")
			return
		}
		_ = c.Validate()
	})
}

func FuzzParseCameras(f *testing.F) {
	f.Add("demo")
	f.Add("gate=rtsp://host/x")
	f.Fuzz(func(t *testing.T, value string) {
		cameras, err := ParseCameras([]string{value})
		if err == nil {
			require.Len(t, cameras, 1)
		}
	})
}
