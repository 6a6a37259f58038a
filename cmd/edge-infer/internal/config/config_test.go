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

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/look"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestDefaultFileSaysTheDefaults(t *testing.T) {
	file, err := DefaultFile()
	require.NoError(t, err)
	c := Default()
	c.MQTT.URL, c.Detect.Max, c.Engine.Backend = "changed", 1, "changed"
	_, err = c.merge("defaults.yaml", []byte(file))
	require.NoError(t, err)
	want := Default()
	want.Detect.Labels, want.MQTT.DiscoveryLabels = []string{}, []string{}
	want.Look.Ensemble, want.Look.Weights, want.Look.Augment = []string{}, []float64{}, []string{}
	require.Equal(t, want, c)

	uncomment := func(comment, list string) {
		text := strings.ReplaceAll("\n"+comment, "\n# ", "\n")
		text = text[strings.Index(text, "\n"+list+":"):]
		_, err = c.merge(list+".yaml", []byte(text))
		require.NoError(t, err, text)
	}
	uncomment(cascadesComment(), "cascade")
	require.Equal(t, []Cascade{{
		Name: "colour", Model: "colour.onnx", Labels: "colours.txt", Layout: "auto", On: []string{"car", "truck"}, MinSize: 16, Margin: 0.1,
		Every: cascade.DefaultEvery, Votes: cascade.DefaultVotes, Confidence: 0.5, Batch: DefaultCascadeBatch,
	}}, c.Cascade)
	require.EqualValues(t, cascade.DefaultMinSize, c.Cascade[0].MinSize)
	require.Equal(t, cascade.MostVotes, mostVotes)
	uncomment(camerasComment(), "cameras")
	require.Len(t, c.Cameras, 1)
	camera := c.Cameras[0]
	require.NoError(t, camera.Analytics.Check([]string{"person"}))
	require.Equal(t, time.Minute, camera.Analytics.Zones[0].Loiter)
	require.Equal(t, zone.DefaultInertia, camera.Analytics.Zones[0].Inertia)
	require.Equal(t, "door", camera.Analytics.Lines[0].Name)
	require.Equal(t, map[string]float32{"person": 0.5}, camera.Analytics.Objects.Score)
	require.Equal(t, zone.DefaultSnapshotEvery, camera.Analytics.Objects.SnapshotEvery)
	camera.Analytics = zone.Config{}
	gate := Camera{Name: "gate", URI: "rtsp://192.0.2.10/stream", Interval: 1, Stall: 5 * time.Second, MaxPixels: capture.DefaultMaxPixels}
	gate.Priority, gate.ROI = 1, &Area{Y: 0.4, Width: 1, Height: 0.6}
	gate.Motion = &CameraMotion{Enabled: true, Sensitivity: defaultSensitivity, FloorRate: defaultFloorRate, ROI: gate.ROI}
	side, overlap := 640, look.Default().Overlap
	gate.Tile, gate.Overlap, gate.Confidence, gate.Profile = &side, &overlap, 0.4, "ptz"
	gate.Model = &Model{Path: "helmets.onnx", Labels: "helmets.txt", Layout: Auto, Preprocess: "torchvision", Size: "640", Activation: Auto}
	require.Equal(t, gate, camera)
	require.NoError(t, c.Validate(Everything()))
	for want, spoil := range map[string]func(*Camera){
		`cameras[0].tile: tiles of 7 pixels, must be an even number from 32 to 32768`: func(c *Camera) { side := 7; c.Tile = &side },
		`cameras[0].overlap: tiles that overlap by 1, must be 0 to 0.75`:              func(c *Camera) { overlap := 1.0; c.Overlap = &overlap },
		`cameras[0].profile "fast" must be static, ptz or low-rate`:                   func(c *Camera) { c.Profile = "fast" },
		`cameras[0].confidence "1" must be 0 or more and under 1`:                     func(c *Camera) { c.Confidence = 1 },
		`cameras[0].model.path "" must be an ONNX file, a TensorRT engine or demo`:    func(c *Camera) { c.Model = &Model{} },
		`cameras[0].model.activation "tanh" must be auto, softmax or sigmoid`: func(c *Camera) {
			c.Model = &Model{Path: "a", Activation: "tanh"}
		},
	} {
		c.Cameras[0] = gate
		spoil(&c.Cameras[0])
		require.EqualError(t, c.Validate(Everything()), want)
	}
	c.Cameras[0], c.Engine.Backend = gate, "triton=grpc://127.0.0.1:8001/parts"
	require.EqualError(t, c.Validate(Everything()), "cameras[0].model: the servers of engine.backend run one model, that of all cameras")
}

// The default file holds every setting of a camera and of a cascade that there is, and no other.
func TestEveryListedSettingIsInTheFile(t *testing.T) {
	var all []string
	var walk func(v reflect.Type, path string)
	walk = func(v reflect.Type, path string) {
		switch {
		case v == reflect.TypeFor[zone.Point](), v.Kind() == reflect.Slice &&
			v.Elem() == reflect.TypeFor[zone.Point](), v == reflect.TypeFor[[][]zone.Point]():
			all = append(all, path)
		case v.Kind() == reflect.Slice && v.Elem().Kind() == reflect.Struct:
			walk(v.Elem(), path+"[]")
		case v.Kind() == reflect.Map:
			walk(v.Elem(), path+".*")
		case v.Kind() == reflect.Pointer:
			walk(v.Elem(), path)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				name, _, _ := strings.Cut(v.Field(i).Tag.Get("yaml"), ",")
				walk(v.Field(i).Type, strings.TrimPrefix(path+"."+name, "."))
			}
		default:
			all = append(all, path)
		}
	}
	for element, settings := range map[reflect.Type][]ListSetting{
		reflect.TypeFor[Camera](): cameraSettings(), reflect.TypeFor[Cascade](): cascadeSettings(),
	} {
		all = nil
		walk(element, "")
		var listed []string
		for _, s := range settings {
			listed = append(listed, s.Key)
		}
		require.ElementsMatch(t, all, listed)
	}
}

func TestEverySettingHasAFlag(t *testing.T) {
	c := Default()
	count := 0
	var walk func(v reflect.Type)
	walk = func(v reflect.Type) {
		for i := range v.NumField() {
			field := v.Field(i)
			switch {
			case field.Type == reflect.TypeFor[[]Camera](), field.Type == reflect.TypeFor[[]Cascade](), field.Tag.Get("yaml") == "-":
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
	require.NoError(t, os.WriteFile(path,
		[]byte("device: gate\nmqtt:\n  url: tcp://one:1883\ndetect:\n  confidence: 0.5\n  iou: 0.6\n"), 0o600))
	t.Setenv("EDGE_INFER_MQTT", "tcp://two:1883")
	t.Setenv("EDGE_INFER_CONF", "0.6")
	t.Setenv("EDGE_INFER_CAMERA", "demo gate=rtsp://h/x")
	var s Sources
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Flags(flags)
	require.NoError(t, flags.Parse([]string{"--config", path, "--conf", "0.7"}))
	c, err := s.Load()
	require.NoError(t, err)
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
		{"detect:\n  max: many\n", `config f.yaml line 2: detect.max "many" must be a whole number`},
		{"device: a\ndevice: b\n", `config f.yaml line 2: mapping key "device" already defined at [1:1]`},
	} {
		_, err := Default().merge("f.yaml", []byte(test.file))
		require.EqualError(t, err, test.want)
	}
	for _, text := range []string{strings.Repeat("[", 200_000), "cameras: " + strings.Repeat("{a: ", 50_000), strings.Repeat("- ", 100_000)} {
		_, err := Default().merge("f.yaml", []byte(text))
		require.EqualError(t, err, "config f.yaml: nested too deeply", "%.20s", text)
	}
	_, err := (&Sources{File: filepath.Join(t.TempDir(), "none.yaml")}).Load()
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestFileOfWindows: what editors there put before the first key belongs to no key.
func TestFileOfWindows(t *testing.T) {
	c := Default()
	lines, err := c.merge("f.yaml", []byte("\xef\xbb\xbfdevice: gate\r\ndetect: {max: 7}\r\n"))
	require.NoError(t, err)
	require.Equal(t, "gate", c.Device)
	require.Equal(t, 7, c.Detect.Max)
	require.Equal(t, 1, lines["device"])
	require.Equal(t, 2, lines["detect.max"])
}

// A file that says nothing leaves every value as it is.
func TestEmptyFile(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing yet\n", "---\n", "---\n# nothing\n...\n", "# a\n\n# b"} {
		path := filepath.Join(t.TempDir(), "edge-infer.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		nothing := func(string) (string, bool) { return "", false }
		c, err := (&Sources{File: path, Environment: nothing}).Load()
		require.NoError(t, err, "%q", text)
		require.Equal(t, Default(), c, "%q", text)
	}
}

// What systemd and the user's environment give is taken where nothing is configured, by every command.
func TestService(t *testing.T) {
	folder := t.TempDir()
	credential := filepath.Join(folder, "mqtt-password")
	environment := map[string]string{"HOME": "/home/me", "EDGE_INFER_NAME": "gate", "EDGE_INFER_MQTT_PASSWORD": "secret"}
	load := func() MQTT {
		s := Sources{Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set }}
		c, err := s.Load()
		require.NoError(t, err)
		return c.MQTT
	}
	m := load()
	require.Equal(t, "secret", m.Password)
	require.Equal(t, "/home/me/.local/state/edge-infer/gate/spool", m.Spool)
	require.Empty(t, m.PasswordFile)
	environment["XDG_STATE_HOME"] = "/state"
	for device, want := range map[string]string{ // a name does not move the spool
		"gate": "/state/edge-infer/gate/spool",
	} {
		environment["EDGE_INFER_NAME"] = device
		require.Equal(t, want, load().Spool)
	}
	environment["STATE_DIRECTORY"], environment["CREDENTIALS_DIRECTORY"] = "/var/lib/edge-infer:/var/lib/other", folder
	require.Empty(t, load().PasswordFile)
	require.NoError(t, os.WriteFile(credential, nil, 0o600))
	require.Empty(t, load().PasswordFile, "an empty credential is none")
	require.NoError(t, os.WriteFile(credential, []byte("hush\n"), 0o600))
	m = load()
	require.Equal(t, "/var/lib/edge-infer/spool", m.Spool)
	require.Equal(t, credential, m.PasswordFile)
	environment["EDGE_INFER_MQTT_SPOOL"], environment["EDGE_INFER_MQTT_PASSWORD_FILE"] = "/spool", "/file"
	m = load()
	require.Equal(t, "/spool", m.Spool)
	require.Equal(t, "/file", m.PasswordFile)
}

func TestEnvironmentErrors(t *testing.T) {
	t.Setenv("EDGE_INFER_CONF", "high")
	_, err := new(Sources).Load()
	require.ErrorContains(t, err, `environment EDGE_INFER_CONF="high": `)
	t.Setenv("EDGE_INFER_CONF", "0.5")
	t.Setenv("EDGE_INFER_CAMERA", "gate= x")
	_, err = new(Sources).Load()
	require.NoError(t, err)
}

func TestValidate(t *testing.T) {
	layouts := head.Layouts()
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Device = "a/b" }, `device "a/b" must be a name without + / #`},
		{func(c *Config) { c.MQTT.Frigate = "frigate/#" }, `mqtt.frigate "frigate/#" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.MQTT.Frigate = "/frigate" }, `mqtt.frigate "/frigate" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.MQTT.Frigate = "a//b" }, `mqtt.frigate "a//b" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.MQTT.Frigate = "$SYS" }, `mqtt.frigate "$SYS" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.Device = ".." }, `device ".." must be a name, of more than dots`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a"}} }, `cameras[0].uri "" must be an address, a file, a device number or demo`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a b", URI: "0"}} }, `cameras[0].name "a b" must be a name without + / # and spaces`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0"}, {Name: "a", URI: "1"}} }, `cameras[1].name "a" is used twice`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0", MaxPixels: -1}} }, `cameras[0].max_pixels "-1" must be 0 to 1073741824`},
		{
			func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "foo://bar"}} },
			"camera a: parse foo://bar: unknown scheme foo:// (give a device number, /dev/videoN, csi://N, rtsp://, http://, a file, a directory, gst:PIPELINE or demo)",
		},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0", Interval: -1}} }, `cameras[0].interval "-1" must be 1 or more`},
		{
			func(c *Config) { c.Model.Layout = "v8" }, `model.layout "v8" must be ` + strings.Join(layouts[:len(layouts)-1], ", ") + " or " +
				layouts[len(layouts)-1],
		},
		{
			func(c *Config) { c.Engine.Backend = "cuda" },
			`engine.backend "cuda" must be auto, tensorrt, onnxruntime, onnxruntime=cuda, onnxruntime=cpu or triton=ADDRESS`,
		},
		{func(c *Config) { c.Engine.Precision = "fp8" }, `engine.precision "fp8" must be auto, fp32, fp16 or int8`},
		{func(c *Config) { c.Engine.Threads = -1 }, `engine.threads "-1" must be 0 to 1024`},
		{func(c *Config) { c.Detect.Confidence = 0 }, `detect.confidence "0" must be over 0 and under 1`},
		{func(c *Config) { c.Detect.Confidence = 1 }, `detect.confidence "1" must be over 0 and under 1`},
		{func(c *Config) { c.Detect.IoU = 2 }, `detect.iou "2" must be over 0 and at most 1`},
		{func(c *Config) { c.Detect.Max = 0 }, `detect.max "0" must be 1 to 30000`},
		{func(c *Config) { c.MQTT.URL = "broker" }, `mqtt.url "broker" must be embedded, off, or like tcp://host:1883`},
		{func(c *Config) { c.MQTT.URL = "ftp://h:1" }, `mqtt.url: broker "ftp://h:1": unknown scheme "ftp" (use tcp, tls, ws or wss)`},
		{func(c *Config) { c.MQTT.URL = "tcp://h:1,1.2.3.4:x" }, `mqtt.url: broker "tcp://1.2.3.4:x": invalid port ":x" after host ` +
			`(write tcp://host:1883, tls://host:8883, ws://host/path or wss://host/path)`},
		{func(c *Config) { c.MQTT.Listen = "0.0.0.0:1883" }, `mqtt.listen "0.0.0.0:1883" is reached by other machines: ` +
			`set mqtt.user and mqtt.password_file, or mqtt.ca for client certificates, or listen on 127.0.0.1`},
		{func(c *Config) { c.MQTT.Listen = ":1883" }, `mqtt.listen ":1883" is reached by other machines: ` +
			`set mqtt.user and mqtt.password_file, or mqtt.ca for client certificates, or listen on 127.0.0.1`},
		{func(c *Config) { c.MQTT.URL = "tcp://u:secret@h:1" }, `mqtt.url "tcp://h:1" must not hold a password: use mqtt.password_file`},
		{func(c *Config) { c.MQTT.Listen = "1883" }, `mqtt.listen "1883" must be host:port`},
		{func(c *Config) { c.MQTT.MaxPacket = 1000 }, `mqtt.max_packet "1000" must be 0, or 1024 to 268435456`},
		{func(c *Config) { c.MQTT.Key = "k" }, `mqtt.certificate and mqtt.key: one needs the other`},
		{func(c *Config) { c.Web.Listen = "8080" }, `web.listen "8080" must be host:port or off`},
		{func(c *Config) { c.Web.PictureRate = 0 }, `web.picture_rate "0" must be 1 to 48`},
		{func(c *Config) { c.Web.PictureRate = 49 }, `web.picture_rate "49" must be 1 to 48`},
		{func(c *Config) { c.Web.Key = "k" }, `web.certificate and web.key: one needs the other`},
		{func(c *Config) { c.Web.User = "me" }, `web.user and web.password_file: one needs the other`},
		{func(c *Config) { c.Web.PasswordFile = "f" }, `web.user and web.password_file: one needs the other`},
		{
			func(c *Config) { c.Web.User, c.Web.PasswordFile, c.Web.TokenFile = "me", "f", "t" },
			`web.user and web.token_file: only one of them can be`,
		},
		{func(c *Config) { c.Web.User, c.Web.PasswordFile = "a:b", "f" }, `web.user "a:b" must be a name without :`},
		{func(c *Config) { c.Thermal.Margin = -1 }, `thermal.margin "-1" must be 0 to 100`},
		{func(c *Config) { c.Snapshots.Keep = 0 }, `snapshots.keep "0" must be 1 to 1000000`},
		{func(c *Config) { c.Log = "loud" }, `log "loud" must be debug, info, warn or error`},
	} {
		c := Default()
		test.change(c)
		require.EqualError(t, c.Validate(Everything()), test.want)
	}
	require.NoError(t, Default().Validate(Everything()))
}

// What a command does not use need not be right.
func TestValidateByScope(t *testing.T) {
	c := Default()
	c.MQTT.URL, c.Web.Listen, c.Cameras = "broker", "8080", []Camera{{}}
	require.NoError(t, c.Validate(Network()))
	require.ErrorContains(t, c.Validate(Broker()), "mqtt.url")
	c = Default()
	c.Detect.Max = 0
	require.NoError(t, c.Validate(Broker()))
	require.ErrorContains(t, c.Validate(Network()), "detect.max")
}

func TestValidateTakes(t *testing.T) {
	for _, change := range []func(*Config){
		func(c *Config) { c.MQTT.URL = "127.0.0.1:1883" },
		func(c *Config) { c.MQTT.URL = "gate.local:1883, [::1]:1884" },
		func(c *Config) { c.MQTT.URL = "mqtts://edge@gate.local" },
		func(c *Config) { c.MQTT.Listen = "localhost:0" },
		func(c *Config) { c.MQTT.Listen = "[::1]:1883" },
		func(c *Config) { c.MQTT.Listen, c.MQTT.User = "0.0.0.0:1883", "edge" },
		func(c *Config) { c.MQTT.Listen, c.MQTT.CA = "0.0.0.0:1883", "ca.pem" },
	} {
		c := Default()
		change(c)
		require.NoError(t, c.Validate(Everything()), "%+v", c.MQTT)
	}
}

func FuzzFile(f *testing.F) {
	file, err := DefaultFile()
	require.NoError(f, err)
	for section := range strings.SplitSeq(file, "\n\n") { // the whole file takes milliseconds to read
		f.Add([]byte(section))
	}
	f.Add([]byte("cameras:\n  - {name: a, uri: demo}\n"))
	f.Add([]byte("detect: [1, 2"))
	f.Add([]byte("cameras:\n  ! 0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := Default()
		before := *c
		if _, err := c.merge("fuzz.yaml", data); err != nil {
			require.Equal(t, before, *c, "a refused file must change nothing")
			require.NotContains(t, err.Error(), "\n")
			return
		}
		_ = c.Validate(Everything())
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
