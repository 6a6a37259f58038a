package config

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// setting ties one value of Config to its key in the file, its flag and its environment variable.
type setting struct {
	key  string // path in the YAML file
	flag string
	help string
	bind func(flags *pflag.FlagSet, name, help string)
}

// variable is the setting's environment variable.
func (s setting) variable() string {
	return "EDGE_INFER_" + strings.ToUpper(strings.ReplaceAll(s.flag, "-", "_"))
}

func text(target *string) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.StringVar(target, name, *target, help) }
}

func whole(target *int) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.IntVar(target, name, *target, help) }
}

func number(target *float64) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.Float64Var(target, name, *target, help) }
}

// onOff is a truth value that also reads on and off.
type onOff bool

func (b *onOff) String() string { return strconv.FormatBool(bool(*b)) }

func (b *onOff) Type() string { return "bool" }

func (b *onOff) Set(text string) error {
	switch strings.ToLower(text) {
	case "on", "yes":
		*b = true
	case "off", "no":
		*b = false
	default:
		value, err := strconv.ParseBool(text)
		if err != nil {
			return fmt.Errorf("%q is not on or off", text)
		}
		*b = onOff(value)
	}
	return nil
}

func yes(target *bool) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) {
		flags.VarPF((*onOff)(target), name, "", help).NoOptDefVal = "on"
	}
}

func list(target *[]string) func(*pflag.FlagSet, string, string) {
	return func(flags *pflag.FlagSet, name, help string) { flags.StringSliceVar(target, name, *target, help) }
}

// settings lists every single value of c in the order of the default file. Cameras are the one exception: a list of their own.
func settings(c *Config) []setting {
	return []setting{
		{"device", "name", "device name in MQTT topics", text(&c.Device)},
		{"model.path", "model", "ONNX file or TensorRT engine; empty: the embedded demo model", text(&c.Model.Path)},
		{"model.labels", "labels", "file with one label a line, instead of the model's own", text(&c.Model.Labels)},
		{"model.layout", "layout", "how boxes lie in the output: auto, yolov5, yolov8, end2end, classify", text(&c.Model.Layout)},
		{"engine.backend", "engine", "auto, tensorrt, onnxruntime (on CUDA where it can, else on the CPU), onnxruntime=cuda or onnxruntime=cpu", text(&c.Engine.Backend)},
		{"engine.precision", "precision", "auto, fp32, fp16 or int8", text(&c.Engine.Precision)},
		{"engine.device", "device", "GPU number; several separated by commas, or all: run spreads the cameras over them", text(&c.Engine.Device)},
		{"engine.threads", "threads", "CPU threads of one inference; 0: one per core", whole(&c.Engine.Threads)},
		{"engine.batch", "batch", "pictures in one inference at most; 0: one per camera", whole(&c.Engine.Batch)},
		{"engine.library", "library", "backend's shared library, instead of searching for it", text(&c.Engine.Library)},
		{"detect.confidence", "conf", "lowest score of a detection, 0 to 1", number(&c.Detect.Confidence)},
		{"detect.iou", "iou", "boxes of one class that overlap more than this are one, 0 to 1", number(&c.Detect.IoU)},
		{"detect.max", "max-detections", "most detections in one frame", whole(&c.Detect.Max)},
		{"detect.labels", "only", "labels to report, separated by commas; empty: all", list(&c.Detect.Labels)},
		{"detect.track", "track", "follow objects from frame to frame; zones, lines and events need it", yes(&c.Detect.Track)},
		{"mqtt.url", "mqtt", "broker URL (tcp, tls, ws, wss), embedded, or off; several brokers separated by commas", text(&c.MQTT.URL)},
		{"mqtt.user", "mqtt-user", "user name at the broker", text(&c.MQTT.User)},
		{"mqtt.password_file", "mqtt-password-file", "file that holds the password at the broker, instead of $EDGE_INFER_MQTT_PASSWORD", text(&c.MQTT.PasswordFile)},
		{"mqtt.ca", "mqtt-ca", "PEM file of the authority that signed the broker's certificate", text(&c.MQTT.CA)},
		{"mqtt.certificate", "mqtt-certificate", "PEM file of the client certificate", text(&c.MQTT.Certificate)},
		{"mqtt.key", "mqtt-key", "PEM file of the client certificate's key", text(&c.MQTT.Key)},
		{"mqtt.insecure", "mqtt-insecure", "accept any broker certificate", yes(&c.MQTT.Insecure)},
		{"mqtt.listen", "mqtt-listen", "address of the embedded broker", text(&c.MQTT.Listen)},
		{"mqtt.discovery", "mqtt-discovery", "announce the device to Home Assistant", yes(&c.MQTT.Discovery)},
		{"mqtt.control", "mqtt-control", "obey remote control topics", yes(&c.MQTT.Control)},
		{"mqtt.spool", "mqtt-spool", "directory that keeps events while the broker is away; empty: the state directory", text(&c.MQTT.Spool)},
		{"snapshots.directory", "snapshots", "directory that keeps the newest best views as JPEG files; empty: none", text(&c.Snapshots.Directory)},
		{"snapshots.keep", "snapshots-keep", "how many of them", whole(&c.Snapshots.Keep)},
		{"web.listen", "web", "address of the web page, for instance 127.0.0.1:8080, or off", text(&c.Web.Listen)},
		{"web.token_file", "web-token-file", "file with the token that lets browsers in; beyond this machine it is needed, or a user", text(&c.Web.TokenFile)},
		{"web.user", "web-user", "user name that lets browsers in, instead of a token", text(&c.Web.User)},
		{"web.password_file", "web-password-file", "file with that user's password", text(&c.Web.PasswordFile)},
		{"web.certificate", "web-certificate", "PEM file of the page's certificate, for https", text(&c.Web.Certificate)},
		{"web.key", "web-key", "PEM file of its key", text(&c.Web.Key)},
		{"web.profiling", "web-profiling", "serve Go's profiles at /debug/pprof/", yes(&c.Web.Profiling)},
		{"thermal.margin", "thermal-margin", "lower the rate when a sensor is this many degrees below its limit; 0: never", number(&c.Thermal.Margin)},
		{"thermal.hysteresis", "thermal-hysteresis", "raise it again when it has cooled down by so many more", number(&c.Thermal.Hysteresis)},
		{"log", "log", "debug, info, warn or error", text(&c.Log)},
	}
}

// Flags gives every setting of c its flag.
func Flags(c *Config, flags *pflag.FlagSet) {
	for _, s := range settings(c) {
		s.bind(flags, s.flag, s.help)
	}
}

// InferenceFlags gives flags to what commands need that run the model without cameras, a broker or a page.
func InferenceFlags(c *Config, flags *pflag.FlagSet) {
	for _, s := range settings(c) {
		switch group, _, _ := strings.Cut(s.key, "."); group {
		case "model", "engine", "detect", "log":
			s.bind(flags, s.flag, s.help)
		}
	}
}

// applyEnvironment sets what EDGE_INFER_* variables say.
func applyEnvironment(c *Config, lookup func(string) (string, bool)) error {
	flags := pflag.NewFlagSet("environment", pflag.ContinueOnError)
	Flags(c, flags)
	for _, s := range settings(c) {
		value, set := lookup(s.variable())
		if !set {
			continue
		}
		if err := flags.Set(s.flag, value); err != nil {
			return fmt.Errorf("environment %s=%q: %w", s.variable(), value, err)
		}
	}
	if value, set := lookup("EDGE_INFER_CAMERA"); set {
		cameras, err := ParseCameras(strings.Fields(value))
		if err != nil {
			return fmt.Errorf("environment EDGE_INFER_CAMERA: %w", err)
		}
		c.Cameras = cameras
	}
	return nil
}

// Load gives the defaults, changed by the file (none when path is empty) and the environment. Flags come after, from the caller.
func Load(path string) (*Config, error) {
	c := Default()
	if path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		if err := c.merge(path, data); err != nil {
			return nil, err
		}
	}
	if err := applyEnvironment(c, os.LookupEnv); err != nil {
		return nil, err
	}
	return c, nil
}
