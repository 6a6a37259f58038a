package config

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml/parser"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/spelling"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// validate is the first mistake of a scope.
func validate(c *Config, scope Scope) error {
	if found := c.mistakes(scope); len(found) > 0 {
		return found[0]
	}
	return nil
}

func TestMistakesOfACamera(t *testing.T) {
	c := Default()
	gate := Camera{Name: "gate", URI: "rtsp://192.0.2.10/stream"}
	c.Cameras = []Camera{gate}
	require.NoError(t, validate(c, AllSections()))
	require.Equal(t, cascade.MaxVotes, mostVotes)
	for want, spoil := range map[string]func(*Camera){
		`cameras[0].tile: tiles of 7 pixels, must be an even number from 32 to 32768`: func(c *Camera) { side := 7; c.Tile = &side },
		`cameras[0].overlap: tiles that overlap by 1, must be 0 to 0.75`:              func(c *Camera) { overlap := 1.0; c.Overlap = &overlap },
		"cameras[0].analytics.ground: needs 4 points, or 2 at the ends of a known length; has 0": func(c *Camera) {
			c.Analytics.Ground = &zone.Ground{}
		},
		`cameras[0].privacy.regions: region 2: needs 3 to 64 points, has 2`: func(c *Camera) {
			c.Privacy.Regions = [][]zone.Point{{{}, {X: 1}, {Y: 1}}, {{}, {X: 1}}}
		},
		`cameras[0].privacy.regions: region 1: point 2 (640, 0) is outside the image`: func(c *Camera) {
			c.Privacy.Regions = [][]zone.Point{{{}, {X: 640}, {Y: 1}}}
		},
		`cameras[0].privacy.regions "65" must be 64 polygons or fewer`: func(c *Camera) {
			c.Privacy.Regions = slices.Repeat([][]zone.Point{{{}, {X: 1}, {Y: 1}}}, 65)
		},
		`cameras[0].privacy.labels "" must be a class of the model`:                func(c *Camera) { c.Privacy.Labels = []string{""} },
		`cameras[0].profile "fast" must be static or ptz`:                          func(c *Camera) { c.Profile = "fast" },
		`cameras[0].confidence "1" must be 0 or more and under 1`:                  func(c *Camera) { c.Confidence = 1 },
		`cameras[0].model.path "" must be an ONNX file, a TensorRT engine or demo`: func(c *Camera) { c.Model = &Model{} },
		`cameras[0].model.activation "tanh" must be auto, softmax or sigmoid`: func(c *Camera) {
			c.Model = &Model{Path: "a", Activation: "tanh"}
		},
	} {
		c.Cameras[0] = gate
		spoil(&c.Cameras[0])
		require.EqualError(t, validate(c, AllSections()), want)
	}
	gate.Model = &Model{Path: "a"}
	c.Cameras[0], c.Engine.Backend = gate, "triton=grpc://127.0.0.1:8001/parts"
	require.EqualError(t, validate(c, AllSections()), "cameras[0].model: the servers of engine.backend run one model, that of all cameras")
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
		reflect.TypeFor[Webhook](): webhookSettings(),
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
			case field.Type == reflect.TypeFor[[]Camera](), field.Type == reflect.TypeFor[[]Cascade](), field.Type == reflect.TypeFor[[]Webhook](),
				field.Tag.Get("yaml") == "-":
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
		[]byte("name: gate\nmqtt:\n  url: tcp://one:1883\ndetect:\n  confidence: 0.5\n  iou: 0.6\n"), 0o600))
	t.Setenv("EDGE_INFER_MQTT", "tcp://two:1883")
	t.Setenv("EDGE_INFER_CONFIDENCE", "0.6")
	t.Setenv("EDGE_INFER_CAMERA", "demo gate=rtsp://h/x")
	var s Sources
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Flags(flags)
	require.NoError(t, flags.Parse([]string{"--config", path, "--confidence", "0.7"}))
	c, err := s.Load()
	require.NoError(t, err)
	require.Equal(t, "gate", c.Name)
	require.Equal(t, "tcp://two:1883", c.MQTT.URL)
	require.Equal(t, 0.7, c.Detect.Confidence)
	require.Equal(t, 0.6, c.Detect.IoU)
	require.Equal(t, 300, c.Detect.MaxDetections)
	require.Equal(t, []Camera{{Name: "cam0", URI: "demo"}, {Name: "gate", URI: "rtsp://h/x"}}, c.Cameras)
}

func TestFileErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	for _, test := range []struct{ file, want string }{
		{"confidence: 0.5\n", ` line 1: unknown key "confidence" here, it is detect.confidence`},
		{"cameras: [{name: a, uri: demo, zones: []}]\n", ` line 1: unknown key "zones" here, it is cameras[].analytics.zones`},
		{"mqtt:\n  servers: x\n", ` line 2: unknown key "servers", did you mean "url"?`},
		{"model:\n  file: x\n", ` line 2: unknown key "file", did you mean "path"?`},
		{"cameras: [{name: a, uri: demo, url: x}]\n", ` line 1: unknown key "url", did you mean "uri"?`},
		{"cameras: [{name: a, uri: demo, fps: 5}]\n", ` line 1: unknown key "fps", did you mean "rate"?`},
		{"cameras: [{name: a, uri: demo, listen: x}]\n", ` line 1: unknown key "listen"`},
		{"web:\n  host: x\n", ` line 2: unknown key "host", did you mean "listen"?`},
		{"detect:\n  url: x\n", ` line 2: unknown key "url"`},
		{"model:\n  confidence: 0.4\n", ` line 2: unknown key "confidence" here, it is detect.confidence`},
		{"detect:\n  broker: x\n", ` line 2: unknown key "broker"`},
		{"source: 0\n", ` line 1: unknown key "source", did you mean "cameras"?`},
		{"detect:\n  confidense: 0.5\n", ` line 2: unknown key "confidense", did you mean "confidence"?`},
		{"zzzzzzzz: 1\n", ` line 1: unknown key "zzzzzzzz"`},
		{"detect:\n  max_detections: many\n", ` line 2: detect.max_detections "many" must be a whole number`},
		{"name: a\n\nname: b\n", ` line 3: name is set already on line 1: keep one of them`},
		{"log: debug\nname: [a\n", ` line 2: sequence end token ']' not found`},
		{
			"name: a\n---\nname: b\n",
			": has more than one YAML document: only one is read, remove the others and their ---",
		},
		{strings.Repeat("[", 200_000), ": nested too deeply"},
		{"cameras: " + strings.Repeat("{a: ", 50_000), ": nested too deeply"},
		{strings.Repeat("- ", 100_000), ": nested too deeply"},
	} {
		require.NoError(t, os.WriteFile(path, []byte(test.file), 0o600))
		_, err := (&Sources{File: path}).Load()
		require.EqualError(t, err, "config "+path+test.want, "%.20s", test.file)
	}
	_, err := (&Sources{File: filepath.Join(t.TempDir(), "none.yaml")}).Load()
	require.ErrorIs(t, err, os.ErrNotExist)
	large := "cameras:\n" + strings.Repeat("  - {name: belt, uri: demo}\n", 20_000) // 220 MB of memory
	require.NoError(t, os.WriteFile(path, []byte(large), 0o600))
	_, err = (&Sources{File: path}).Load()
	require.EqualError(t, err, "config: read "+path+": over 524288 bytes")
}

// Whatever people type for other tools, in every mapping: what is suggested is a key of that mapping, or the only key of the name.
func TestSuggestedKeysExist(t *testing.T) {
	mappings := map[string]reflect.Type{}
	var collect func(path string, of reflect.Type)
	collect = func(path string, of reflect.Type) {
		for of.Kind() == reflect.Slice || of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct {
			return
		}
		mappings[path] = of
		for i := range of.NumField() {
			if tag, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ","); tag != "" && tag != "-" {
				collect(path+"."+tag, of.Field(i).Type)
			}
		}
	}
	collect("", reflect.TypeFor[Config]())
	require.Greater(t, len(mappings), 15)
	words := append(keysOf(spelling.Keys()), keysOf(spelling.Flags())...)
	words = append(words, keysOf(spelling.Commands())...)
	suggested := 0
	for path, of := range mappings {
		own := map[string]bool{}
		for i := range of.NumField() {
			tag, _, _ := strings.Cut(of.Field(i).Tag.Get("yaml"), ",")
			own[tag] = true
		}
		for _, word := range words {
			if own[word] {
				continue
			}
			file, err := parser.ParseBytes([]byte(word+": 1\n"), 0)
			require.NoError(t, err)
			found, _, _ := checkYAML(file, of)
			require.Len(t, found, 1, "%s: %s", path, word)
			if elsewhere := found[0].Elsewhere; elsewhere != "" {
				require.True(t, strings.HasSuffix(elsewhere, "."+word), "%s: %s -> %s", path, word, elsewhere)
			}
			if near := found[0].Near; near != "" {
				suggested++
				require.True(t, own[near], "%s: %s -> %s", path, word, near)
			}
		}
	}
	require.Greater(t, suggested, 50)
}

// keysOf returns the words of a vocabulary.
func keysOf(v spelling.Vocabulary) []string { return slices.Sorted(maps.Keys(v)) }

// TestFileOfWindows: what editors there put before the first key belongs to no key.
func TestFileOfWindows(t *testing.T) {
	c := Default()
	lines, found, err := c.merge([]byte("\xef\xbb\xbfname: gate\r\ndetect: {max_detections: 7}\r\n"))
	require.NoError(t, err)
	require.Empty(t, found)
	require.Equal(t, "gate", c.Name)
	require.Equal(t, 7, c.Detect.MaxDetections)
	require.Equal(t, 1, lines["name"])
	require.Equal(t, 2, lines["detect.max_detections"])
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
	dir := t.TempDir()
	credential := filepath.Join(dir, "mqtt-password")
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
	environment["STATE_DIRECTORY"], environment["CREDENTIALS_DIRECTORY"] = "/var/lib/edge-infer:/var/lib/other", dir
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
	t.Setenv("EDGE_INFER_CONFIDENCE", "high")
	_, err := new(Sources).Load()
	require.EqualError(t, err, `environment EDGE_INFER_CONFIDENCE: detect.confidence "high" must be a number`)
	t.Setenv("EDGE_INFER_CONFIDENCE", "0.5")
	t.Setenv("EDGE_INFER_CAMERA", "gate= x")
	_, err = new(Sources).Load()
	require.NoError(t, err)
}

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Name = "a/b" }, `name "a/b" must be a name without + / #`},
		{func(c *Config) { c.MQTT.Frigate = "frigate/#" }, `mqtt.frigate "frigate/#" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.MQTT.Frigate = "/frigate" }, `mqtt.frigate "/frigate" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.MQTT.Frigate = "a//b" }, `mqtt.frigate "a//b" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.MQTT.Frigate = "$SYS" }, `mqtt.frigate "$SYS" must be a topic without +, #, a leading $ and empty levels`},
		{func(c *Config) { c.Name = ".." }, `name ".." must be a name, of more than dots`},
		{
			func(c *Config) {
				c.Cameras = []Camera{{Name: "a", URI: "rtsp://me:pw@host/sub", Record: "http://me:pw@host/main"}}
			},
			`cameras[0].record "http://***@host/main" must begin with rtsp:// or rtsps://`,
		},
		{
			func(c *Config) {
				c.Cameras = []Camera{{Name: "a", URI: "rtsp://me:pw@host/sub", Record: "rtsp://me:pw@host/sub"}}
			},
			`cameras[0].record "rtsp://***@host/sub" is the same as uri, which is recorded without it`,
		},
		{
			func(c *Config) {
				c.Cameras = []Camera{{Name: "a", URI: "demo", Record: "rtsp://me:pw@host/main#decoder=nvdec"}}
			},
			`cameras[0].record "rtsp://***@host/main#decoder=nvdec" must have no #decoder= and no #latency=, because it is not decoded`,
		},
		{
			func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "demo", Record: "rtsp://host/#transport=x"}} },
			`camera a: record: parse rtsp://host/#transport=x: transport "x" is none of tcp, udp and multicast`,
		},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a"}} }, `cameras[0].uri "" must be an address, a file, a device number or demo`},
		{func(c *Config) { c.Name = "a\x1bb" }, `name "a\x1bb" must be a name of characters that can be seen`},
		{
			func(c *Config) { c.Name = strings.Repeat("a", 101) },
			`name "` + strings.Repeat("a", 101) + `" must be a name of at most 100 bytes, not 101`,
		},
		{
			func(c *Config) { c.Cameras = []Camera{{Name: "..", URI: "0"}} },
			`cameras[0].name ".." must be a name, of more than dots`,
		},
		{
			func(c *Config) { c.Cameras = []Camera{{Name: "a\nb", URI: "0"}} },
			`cameras[0].name "a\nb" must be a name of characters that can be seen`,
		},
		{
			func(c *Config) { c.Cameras = []Camera{{Name: strings.Repeat("ü", 100), URI: "0"}} },
			`cameras[0].name "` + strings.Repeat("ü", 100) + `" must be a name of at most 100 bytes, not 200`,
		},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a b", URI: "0"}} }, `cameras[0].name "a b" must be a name without + / # and spaces`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0"}, {Name: "a", URI: "1"}} }, `cameras[1].name "a" is used twice`},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0", MaxPixels: -1}} }, `cameras[0].max_pixels "-1" must be 0 to 1073741824`},
		{
			func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "foo://bar"}} },
			"camera a: parse foo://bar: unknown scheme foo:// (give a device number, /dev/videoN, csi://N, rtsp://, http://, a file, a directory, gst:PIPELINE or demo)",
		},
		{func(c *Config) { c.Cameras = []Camera{{Name: "a", URI: "0", Interval: -1}} }, `cameras[0].interval "-1" must be 1 or more`},
		{
			func(c *Config) { c.Model.Layout = "v8" },
			`model.layout "v8" is no layout, did you mean yolov8 or yolov8-rows? (edge-infer model layouts lists them)`,
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
		{func(c *Config) { c.Detect.MaxDetections = 0 }, `detect.max_detections "0" must be 1 to 30000`},
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
		{func(c *Config) { c.Web.FrameRate = 0 }, `web.frame_rate "0" must be 1 to 48`},
		{func(c *Config) { c.Web.FrameRate = 49 }, `web.frame_rate "49" must be 1 to 48`},
		{func(c *Config) { c.Web.Key = "k" }, `web.certificate and web.key: one needs the other`},
		{func(c *Config) { c.Web.User = "me" }, `web.user and web.password_file: one needs the other`},
		{
			func(c *Config) { c.Verify.URL = "http://a" },
			`verify.url needs verify.secret_file, a file: echo "whsec_$(openssl rand -base64 32)"`,
		},
		{
			func(c *Config) { c.Verify.URL, c.Verify.SecretFile, c.Detect.Track = "http://a", "f", false },
			"verify.url: events need tracked objects, so detect.track must be true",
		},
		{func(c *Config) { c.Verify.URL = "hunt" }, `verify.url "***" must be an address that begins with https:// or http://`},
		{
			func(c *Config) { c.Verify.Secret = "hunt" },
			`verify.secret "***" must be whsec_ and the base64 of 24 to 64 bytes: echo "whsec_$(openssl rand -base64 32)"`,
		},
		{func(c *Config) { c.Verify.Timeout = 60e9 }, `verify.timeout "1m0s" must be 100ms to 30s`},
		{func(c *Config) { c.Verify.Otherwise = "keep" }, `verify.otherwise "keep" must be publish or drop`},
		{func(c *Config) { c.Web.PasswordFile = "f" }, `web.user and web.password_file: one needs the other`},
		{
			func(c *Config) { c.Web.User, c.Web.PasswordFile, c.Web.TokenFile = "me", "f", "t" },
			`web.user and web.token_file: only one of them can be`,
		},
		{func(c *Config) { c.Web.User, c.Web.PasswordFile = "a:b", "f" }, `web.user "a:b" must be a name without :`},
		{func(c *Config) { c.Thermal.Margin = -1 }, `thermal.margin "-1" must be 0 to 100`},
		{func(c *Config) { c.Events.MaxMB = 0 }, `events.max_mb "0" must be 16 to 16777216`},
		{func(c *Config) { c.Log = "loud" }, `log "loud" must be debug, info, warn or error`},
	} {
		c := Default()
		test.change(c)
		require.EqualError(t, validate(c, AllSections()), test.want)
	}
	require.NoError(t, validate(Default(), AllSections()))
}

// What a command does not use need not be right.
func TestValidateByScope(t *testing.T) {
	c := Default()
	c.MQTT.URL, c.Web.Listen, c.Cameras = "broker", "8080", []Camera{{}}
	require.NoError(t, validate(c, NetworkSections()))
	require.ErrorContains(t, validate(c, BrokerSections()), "mqtt.url")
	c = Default()
	c.Detect.MaxDetections = 0
	require.NoError(t, validate(c, BrokerSections()))
	require.ErrorContains(t, validate(c, NetworkSections()), "detect.max_detections")
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
		require.NoError(t, validate(c, AllSections()), "%+v", c.MQTT)
	}
}

func FuzzFile(f *testing.F) {
	all, err := Settings()
	require.NoError(f, err)
	for _, s := range all {
		f.Add([]byte(strings.ReplaceAll(s.Key, ".", ":\n  ") + ": " + s.Default))
	}
	for _, list := range Lists() {
		for _, s := range list.Settings {
			opened := strings.NewReplacer("[].", ": [{", ".", ": {", "*", "person").Replace(s.Key)
			f.Add([]byte(list.Key + ":\n  - {name: a}\n  - " + opened + ": " + s.Example))
		}
	}
	f.Add([]byte("cameras:\n  - {name: a, uri: demo}\n"))
	f.Add([]byte("detect: [1, 2"))
	f.Add([]byte("cameras:\n  ! 0"))
	f.Add([]byte("inference: {weights: [1, a, 2]}\ncameras: [1, {name: a, name: b}]\nlog: &l debug\nlogs: *l\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		l := &layers{Config: Default(), at: places{}}
		before := *l.Config
		_, found, err := l.merge(data)
		if err != nil {
			require.Equal(t, before, *l.Config, "what is no YAML must change nothing")
			require.NotContains(t, message(err).Error(), "\n")
		}
		for _, mismatch := range found {
			require.NotContains(t, mismatch.describe().Error(), "\n")
			l.wrong(location{}, mismatch.describe(), mismatch.Key, mismatch.intended())
		}
		l.check(AllSections())
	})
}

// TestNamesOfCameras: any name may stand before an address, one that cannot be too, which is told then. What has a = elsewhere has none.
func TestNamesOfCameras(t *testing.T) {
	for value, want := range map[string]Camera{
		"gate=demo":                       {Name: "gate", URI: "demo"},
		"gate=my=video.mp4":               {Name: "gate", URI: "my=video.mp4"},
		"Tür=video.mp4":                   {Name: "Tür", URI: "video.mp4"},
		"日本=rtsp://host/a?b=c":            {Name: "日本", URI: "rtsp://host/a?b=c"},
		"..=demo?width=64":                {Name: "..", URI: "demo?width=64"},
		"front door=demo":                 {Name: "front door", URI: "demo"},
		"a/b=/dev/video0":                 {Name: "a/b", URI: "/dev/video0"},
		"a#b=0":                           {Name: "a#b", URI: "0"},
		"/data/a=b.mp4":                   {Name: "cam0", URI: "/data/a=b.mp4"},
		"my video=1.mp4":                  {Name: "cam0", URI: "my video=1.mp4"},
		"video.mp4?loop=1":                {Name: "cam0", URI: "video.mp4?loop=1"},
		"demo?width=64":                   {Name: "cam0", URI: "demo?width=64"},
		"0?fps=5":                         {Name: "cam0", URI: "0?fps=5"},
		"http://host/a?b=demo":            {Name: "cam0", URI: "http://host/a?b=demo"},
		"foo://host/a=demo":               {Name: "cam0", URI: "foo://host/a=demo"},
		"gst:videotestsrc num-buffers=10": {Name: "cam0", URI: "gst:videotestsrc num-buffers=10"},
		"=demo":                           {Name: "cam0", URI: "=demo"},
	} {
		cameras, err := ParseCameras([]string{value})
		require.NoError(t, err, value)
		require.Equal(t, []Camera{want}, cameras, value)
	}
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
