package config

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

// setting connects one value of a Config with its key in the file, its flag, its environment variable, its help and its check.
type setting struct {
	key   string // path in the YAML file
	flag  string // "" for a setting that is rarely changed: it has a key and a variable only
	bind  func(flags *pflag.FlagSet, name, help string)
	check check // nil if every value is valid
	help  string
}

// section returns the first level of the setting's key.
func (s *setting) section() string { return section(s.key) }

func section(key string) string {
	section, _, _ := strings.Cut(key, ".")
	return section
}

// uncommon lists the settings that have a flag and that the short default file leaves out.
func uncommon() []string {
	return []string{
		"model.activation", "engine.library", "engine.plugins", "detect.top", "detect.masks", "detect.map_side", "detect.depth_unit",
		"inference.tile_merge", "inference.weights", "inference.fusion", "inference.fusion_iou", "remote.shared_memory", "remote.wire",
		"mqtt.discovery_labels", "log_format",
	}
}

// isCommon reports whether the short default file contains the setting.
func (s *setting) isCommon() bool { return s.flag != "" && !slices.Contains(uncommon(), s.key) }

// settings lists every single value of c in the order of the default file. Cameras and secondary networks are lists with tables of their
// own.
func settings(c *Config) []setting {
	return slices.Concat(
		[]setting{{NameKey, "name", text(&c.Name), topic(&c.Name), "name of this device in MQTT topics"}},
		c.Model.settings(), c.Engine.settings(), c.Remote.settings(), c.Detect.settings(), inferenceSettings(&c.Inference), c.MQTT.settings(),
		c.Events.settings(), c.Clips.settings(), c.Upload.settings(), c.Verify.settings(), c.Bundle.settings(),
		c.HawkBit.settings(), c.Samples.settings(), c.Web.settings(),
		c.Motion.settings(), c.Thermal.settings(), runtimeSettings(&c.Runtime),
		[]setting{
			{"log", "log", text(&c.Log), oneOf(&c.Log, "debug", "info", "warn", "error"), "log level: debug, info, warn or error"},
			{
				"log_format", "log-format", text(&c.LogFormat), oneOf(&c.LogFormat, Auto, "text", "logfmt", "json"),
				"text, logfmt, json, or auto: text on a terminal, journal fields under systemd",
			},
		},
	)
}

func (m *Model) settings() []setting {
	return []setting{
		{
			"model.path", "model", text(&m.Path), nil,
			"ONNX file, TensorRT engine or name of a downloaded model; demo: the embedded one, as empty for demo cameras",
		},
		{"model.labels", "labels", text(&m.Labels), nil, "file of class names (lines, YAML or JSON), or coco; empty: the model's own"},
		{
			"model.layout", "layout", text(&m.Layout), m.checkLayout,
			"output layout if it cannot be recognised, such as yolov8; edge-infer model layouts lists them",
		},
		{
			"model.preprocess", "preprocess", text((*string)(&m.Preprocess)), m.checkPreprocess,
			"preprocessing if the model does not describe it: " + strings.Join(engine.Presets(), ", ") +
				", or YAML such as {preset: torchvision, shorter_side: 232}",
		},
		{
			"model.imgsz", "imgsz", text(&m.Size), m.checkSize,
			"input size of a model with open height and width: SIDE or HEIGHTxWIDTH in pixels; empty: fitted to the cameras' aspect ratio",
		},
		{
			"model.activation", "activation", text(&m.Activation), oneOf(&m.Activation, Auto, string(engine.Softmax), string(engine.Sigmoid)),
			"last activation of a classifier: softmax (one class per image), sigmoid (independent classes), or auto: from the model",
		},
	}
}

func (e *Engine) settings() []setting {
	return []setting{
		{
			"engine.backend", "engine", text(&e.Backend), e.checkBackend,
			"auto, tensorrt, onnxruntime (CUDA if available, else the CPU), onnxruntime=cuda, onnxruntime=cpu, or Triton servers: " +
				"triton=grpc://host:8001/model[,grpc://other:8001/model] (also grpcs, http, https)",
		},
		{
			"engine.precision", "precision", text(&e.Precision), oneOf(&e.Precision, "auto", "fp32", "fp16", "int8"),
			"auto, fp32, fp16 or int8",
		},
		{
			"engine.gpu", "gpu", text(&e.GPU), e.checkGPU,
			"GPU number, several separated by commas, or all; run distributes the cameras over them",
		},
		{"engine.threads", "threads", whole(&e.Threads), within(&e.Threads, 0, 1024), "CPU threads per inference; 0: one per core"},
		{
			"engine.batch", "batch", whole(&e.Batch), within(&e.Batch, 0, 256),
			"largest batch; 0: one image per camera, 1 on a CPU, 8 with tiles",
		},
		{"engine.library", "library", text(&e.Library), nil, "path of the backend's shared library; empty: search for it"},
		{
			"engine.plugins", "plugin", list(&e.Plugins), e.checkPlugins,
			"TensorRT plugins: shared objects with operators that TensorRT lacks; may be repeated",
		},
	}
}

func (r *Remote) settings() []setting {
	return []setting{
		{
			"remote.timeout", "remote-timeout", span(&r.Timeout), r.checkTimeout,
			"longest duration of a request to Triton servers, with all its retries (30s by default where no camera waits)",
		},
		{
			"remote.fallback", "remote-fallback", text(&r.Fallback), oneOf(&r.Fallback, Drop, Local),
			"while no server answers: drop frames and count them, or run --model on this machine (local)",
		},
		{"remote.ca", "", text(&r.CA), nil, "PEM file of the authority that signed the servers' certificates"},
		{"remote.certificate", "", text(&r.Certificate), nil, "PEM file of the client certificate"},
		{"remote.key", "", text(&r.Key), nil, "PEM file of the client certificate's key"},
		{"remote.token_file", "", text(&r.TokenFile), nil, "file with the bearer token, instead of $" + tokenVariable},
		{"remote.user", "", text(&r.User), nil, "user name, instead of a token"},
		{"remote.password_file", "", text(&r.PasswordFile), nil, "file with that user's password, instead of $" + remotePasswordVariable},
		{
			"remote.shared_memory", "remote-shared-memory", sharing(&r.SharedMemory), nil,
			"share memory with a server on this machine: on, cuda or off",
		},
		{
			"remote.wire", "remote-wire", text(&r.Wire), oneOf(&r.Wire, triton.Encodings()...),
			"encoding of images on the wire: fp32, fp16, uint8 or jpeg, or auto: whatever the model accepts",
		},
		{
			"remote.memory_mb", "", whole(&r.MemoryMB), within(&r.MemoryMB, 1, 1<<14),
			"memory for the answers of Triton servers; a server whose answer does not fit fails",
		},
	}
}

func (d *Detect) settings() []setting {
	return []setting{
		{
			"detect.confidence", "confidence", number(&d.Confidence), openShare(&d.Confidence),
			"lowest score of a reported detection, between 0 and 1",
		},
		{"detect.iou", "iou", number(&d.IoU), share(&d.IoU), "NMS threshold: boxes of one class with a higher IoU are merged"},
		{
			"detect.max_detections", "max-detections", whole(&d.MaxDetections), within(&d.MaxDetections, 1, 30000),
			"most detections per image, or per tile of an image with tiles",
		},
		{"detect.top", "top", whole(&d.Top), within(&d.Top, 1, 1000), "most classes that a classifier reports per image"},
		{"detect.classes", "classes", list(&d.Classes), nil, "class names to report, separated by commas; empty: all"},
		{"detect.track", "track", yes(&d.Track), nil, "track objects; zones, lines and events need it"},
		{
			"detect.profile", "profile", text(&d.Profile), oneOf(&d.Profile, track.Profiles()...),
			"tracker profile: static camera or ptz (turns, zooms or shakes; 1 ms of a core per frame)",
		},
		{
			"detect.masks", "masks", text(&d.Masks), oneOf(&d.Masks, "polygon", "rle", "off"),
			"masks in messages and JSON: polygon, rle (COCO run lengths) or off",
		},
		{
			"detect.map_side", "map-side", whole(&d.MapSide), within(&d.MapSide, 0, 256),
			"cells along the longer side of segmentation and depth maps in messages and JSON; 0: no map",
		},
		{
			"detect.depth_unit", "depth-unit", text(&d.DepthUnit), oneOf(&d.DepthUnit, "relative", "m"),
			"unit of a depth network: relative, or m for metres",
		},
	}
}

func (m *MQTT) settings() []setting {
	return []setting{
		{
			"mqtt.url", "mqtt", text(&m.URL), m.checkURL,
			"broker URL (tcp, tls, ws, wss), several separated by commas, embedded, or off",
		},
		{"mqtt.user", "mqtt-user", text(&m.User), nil, "user name at the broker"},
		{
			"mqtt.password_file",
			"mqtt-password-file",
			text(&m.PasswordFile),
			nil,
			"file with the broker password, instead of $" + passwordVariable,
		},
		{"mqtt.ca", "", text(&m.CA), nil, "PEM file of the authority that signed the broker's certificate"},
		{"mqtt.certificate", "", text(&m.Certificate), nil, "PEM file of the client certificate"},
		{"mqtt.key", "", text(&m.Key), nil, "PEM file of the client certificate's key"},
		{"mqtt.insecure", "", yes(&m.Insecure), nil, "accept any broker certificate"},
		{"mqtt.listen", "mqtt-listen", text(&m.Listen), m.checkListen, "address of the embedded broker"},
		{
			"mqtt.max_packet", "", whole(&m.MaxPacket), m.checkMaxPacket,
			"largest message in bytes that the broker accepts; 0: determine it",
		},
		{"mqtt.discovery", "mqtt-discovery", yes(&m.Discovery), nil, "announce the device to Home Assistant"},
		{
			"mqtt.discovery_labels", "mqtt-discovery-labels", list(&m.DiscoveryLabels), nil,
			"labels with Home Assistant entities, separated by commas, * for all; empty: detect.classes, or those counted in three minutes",
		},
		{
			"mqtt.count_interval", "", span(&m.CountInterval), spanWithin(&m.CountInterval, 0, time.Hour),
			"least time between two messages of a count, a line or a label's snapshot; the first object is published at once",
		},
		{"mqtt.control", "mqtt-control", yes(&m.Control), nil, "accept remote control topics"},
		{
			"mqtt.frigate", "", text(&m.Frigate), topicPath(&m.Frigate),
			"also publish Frigate-compatible topics under this prefix; empty disables it",
		},
		{
			"mqtt.deepstream", "", text(&m.DeepStream), topicPath(&m.DeepStream),
			"also publish DeepStream-compatible messages on this topic; empty disables it",
		},
		{
			"mqtt.deepstream_schema", "", text(&m.DeepStreamSchema), oneOf(&m.DeepStreamSchema, DeepStreamMinimal, DeepStreamFull),
			"DeepStream schema: minimal (one message per frame) or full (one per event of an object)",
		},
		{"mqtt.spool", "", text(&m.Spool), nil, "directory that keeps events while the broker is away; empty: the state directory"},
	}
}

func (e *Events) settings() []setting {
	return []setting{
		{
			"events.directory", "events", text(&e.Directory), nil,
			"directory of stored events, snapshots and counts, on a local disk; empty: the state directory; off: store nothing",
		},
		{"events.days", "", whole(&e.Days), within(&e.Days, 1, 3660), "days that events and counts are kept"},
		{
			"events.max_mb", "", whole(&e.MaxMB), within(&e.MaxMB, 16, 1<<24),
			"megabytes of events and snapshots; above that the oldest snapshots are removed",
		},
	}
}

func (w *Web) settings() []setting {
	return []setting{
		{"web.listen", "web", text(&w.Listen), w.checkListen, "address of the web page, for example 127.0.0.1:8080, or off"},
		{"web.token_file", "web-token-file", text(&w.TokenFile), nil, "file with the access token; required beyond this machine"},
		{"web.user", "web-user", text(&w.User), w.checkUser, "user name for the page, instead of a token"},
		{"web.password_file", "web-password-file", text(&w.PasswordFile), nil, "file with that user's password"},
		{"web.certificate", "", text(&w.Certificate), nil, "PEM file of the page's certificate, for https"},
		{"web.key", "", text(&w.Key), nil, "PEM file of the certificate's key"},
		{"web.frame_rate", "", whole(&w.FrameRate), within(&w.FrameRate, 1, 48), "highest frame rate of the live view, per camera"},
		{
			"web.memory_mb", "", whole(&w.MemoryMB), within(&w.MemoryMB, 1, 1<<14),
			"memory for what clients of the page request and do not read: images, events, exports; more is refused",
		},
		{"web.profiling", "", yes(&w.Profiling), nil, "serve Go profiles at /debug/pprof/"},
	}
}

func (t *Thermal) settings() []setting {
	return []setting{
		{
			"thermal.margin", "", number(&t.Margin), within(&t.Margin, 0, 100),
			"reduce the frame rate when a sensor is within this many degrees of its limit; 0: never",
		},
		{
			"thermal.hysteresis", "", number(&t.Hysteresis), within(&t.Hysteresis, 0, 100),
			"restore it after the sensor has cooled down by this many degrees more",
		},
	}
}
