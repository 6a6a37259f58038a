package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/triton"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

// setting ties one value of a Config to its key in the file, its flag, its environment variable, its help and what it may be.
type setting struct {
	key   string // path in the YAML file
	flag  string
	bind  func(flags *pflag.FlagSet, name, help string)
	check check // nil for any value
	help  string
}

// section is the first level of the setting's key.
func (s *setting) section() string { return section(s.key) }

func section(key string) string {
	section, _, _ := strings.Cut(key, ".")
	return section
}

// settings lists every single value of c in the order of the default file. Cameras and cascades are the exception: lists with
// tables of their own.
func settings(c *Config) []setting {
	return slices.Concat(
		[]setting{{NameKey, "device-name", text(&c.Name), topic(&c.Name), "device name in MQTT topics"}},
		c.Model.settings(), c.Engine.settings(), c.Remote.settings(), c.Detect.settings(), inferenceSettings(&c.Inference), c.MQTT.settings(),
		c.History.settings(), c.Snapshots.settings(), c.Web.settings(), c.Motion.settings(), c.Thermal.settings(), runtimeSettings(&c.Runtime),
		[]setting{
			{"log", "log", text(&c.Log), oneOf(&c.Log, "debug", "info", "warn", "error"), "debug, info, warn or error"},
			{
				"log_format", "log-format", text(&c.LogFormat), oneOf(&c.LogFormat, Auto, "text", "logfmt", "json"),
				"text, logfmt, json, or auto: by who reads",
			},
		},
	)
}

func (m *Model) settings() []setting {
	return []setting{
		{"model.path", "model", text(&m.Path), nil, "ONNX file or TensorRT engine; empty: the embedded demo model"},
		{"model.labels", "labels", text(&m.Labels), nil, "file with one label a line, instead of the model's own"},
		{
			"model.layout", "layout", text(&m.Layout), oneOf(&m.Layout, head.Layouts()...),
			"what the outputs mean, where they are not to be recognised: " + strings.Join(head.Layouts(), ", "),
		},
		{
			"model.preprocess", "preprocess", text((*string)(&m.Preprocess)), m.checkPreprocess,
			"how images get into the model, where its file does not say: " + strings.Join(engine.Presets(), ", ") +
				", or YAML as in {preset: torchvision, shorter_side: 232}",
		},
		{
			"model.imgsz", "imgsz", text(&m.Size), m.checkSize,
			"images of a model that leaves their size open: SIDE or HEIGHTxWIDTH in pixels; empty: the file's longer side in the cameras' shape",
		},
		{
			"model.activation", "activation", text(&m.Activation), oneOf(&m.Activation, Auto, string(engine.Softmax), string(engine.Sigmoid)),
			"a classifier's last function: softmax (an image is of one class), sigmoid (each class is there or not), or auto: as its file tells",
		},
	}
}

func (e *Engine) settings() []setting {
	return []setting{
		{
			"engine.backend", "engine", text(&e.Backend), e.checkBackend,
			"auto, tensorrt, onnxruntime (on CUDA where it can, else on the CPU), onnxruntime=cuda, onnxruntime=cpu, or Triton servers: " +
				"triton=grpc://host:8001/model[,grpc://other:8001/model] (also grpcs, http, https)",
		},
		{
			"engine.precision", "precision", text(&e.Precision), oneOf(&e.Precision, "auto", "fp32", "fp16", "int8"),
			"auto, fp32, fp16 or int8",
		},
		{
			"engine.device", "gpu", text(&e.GPU), e.checkGPU,
			"GPU number; several separated by commas, or all: run spreads the cameras over them",
		},
		{"engine.threads", "threads", whole(&e.Threads), within(&e.Threads, 0, 1024), "CPU threads of one inference; 0: one per core"},
		{
			"engine.batch", "batch", whole(&e.Batch), within(&e.Batch, 0, 256),
			"images in one inference at most; 0: one per camera, on a CPU one, 8 in tiles",
		},
		{"engine.library", "library", text(&e.Library), nil, "backend's shared library, instead of searching for it"},
		{
			"engine.plugins", "plugin", list(&e.Plugins), e.checkPlugins,
			"TensorRT plugins: shared objects with the operators of the model that TensorRT lacks; may be given several times",
		},
	}
}

func (r *Remote) settings() []setting {
	return []setting{
		{
			"remote.timeout", "remote-timeout", span(&r.Timeout), r.checkTimeout,
			"longest that a request to Triton servers may take, with everything that is tried for it",
		},
		{
			"remote.fallback", "remote-fallback", text(&r.Fallback), oneOf(&r.Fallback, Drop, Local),
			"while no server answers: drop frames and count them, or run --model here (local)",
		},
		{"remote.ca", "remote-ca", text(&r.CA), nil, "PEM file of the authority that signed the servers' certificates"},
		{"remote.certificate", "remote-certificate", text(&r.Certificate), nil, "PEM file of the certificate that servers ask for"},
		{"remote.key", "remote-key", text(&r.Key), nil, "PEM file of its key"},
		{
			"remote.token_file", "remote-token-file", text(&r.TokenFile), nil,
			"file with the token for the servers, instead of $" + tokenVariable,
		},
		{"remote.user", "remote-user", text(&r.User), nil, "user name at the servers, instead of a token"},
		{
			"remote.password_file", "remote-password-file", text(&r.PasswordFile), nil,
			"file with that user's password, instead of $" + remotePasswordVariable,
		},
		{"remote.shared_memory", "remote-shared-memory", sharing(&r.SharedMemory), nil, "share memory with a server here: on, cuda or off"},
		{
			"remote.wire", "remote-wire", text(&r.Wire), oneOf(&r.Wire, triton.Encodings()...),
			"what images are sent as: fp32, fp16, uint8 or jpeg, where the model or one beside it of that ending takes it; " +
				"auto: as the model takes them",
		},
	}
}

func (d *Detect) settings() []setting {
	return []setting{
		{"detect.confidence", "conf", number(&d.Confidence), openShare(&d.Confidence), "lowest score of a detection, 0 to 1"},
		{"detect.iou", "iou", number(&d.IoU), share(&d.IoU), "boxes of one class that overlap more than this are one, 0 to 1"},
		{"detect.max", "max-detections", whole(&d.MaxDetections), within(&d.MaxDetections, 1, 30000), "most detections in one frame"},
		{
			"detect.top", "top", whole(&d.Top), within(&d.Top, 1, 1000),
			"most classes that a classifier reports of an image; infer shows them whatever they score",
		},
		{"detect.labels", "only", list(&d.Classes), nil, "labels to report, separated by commas; empty: all"},
		{"detect.track", "track", yes(&d.Track), nil, "follow objects from frame to frame; zones, lines and events need it"},
		{
			"detect.profile", "profile", text(&d.Profile), oneOf(&d.Profile, track.Profiles()...),
			"what cameras do: static, ptz (they turn, zoom or shake; 1 ms of a core an image) or low-rate (below 10 images a second)",
		},
		{
			"detect.masks", "masks", text(&d.Masks), oneOf(&d.Masks, "polygon", "rle", "off"),
			"masks in messages and JSON: polygon (outlines), rle (COCO's run lengths of every pixel) or off",
		},
		{
			"detect.map_side", "map-side", whole(&d.MapSide), within(&d.MapSide, 0, 256),
			"cells of the longer side of the map in messages and JSON, of networks for semantic segmentation and depth; 0: without the map",
		},
		{
			"detect.depth_unit", "depth-unit", text(&d.DepthUnit), oneOf(&d.DepthUnit, "relative", "m"),
			"what a depth network's numbers are: relative, or m for metres",
		},
	}
}

func (m *MQTT) settings() []setting {
	return []setting{
		{
			"mqtt.url", "mqtt", text(&m.URL), m.checkURL,
			"broker URL (tcp, tls, ws, wss), embedded, or off; several brokers separated by commas",
		},
		{"mqtt.user", "mqtt-user", text(&m.User), nil, "user name at the broker"},
		{
			"mqtt.password_file", "mqtt-password-file", text(&m.PasswordFile), nil,
			"file that holds the password at the broker, instead of $" + passwordVariable,
		},
		{"mqtt.ca", "mqtt-ca", text(&m.CA), nil, "PEM file of the authority that signed the broker's certificate"},
		{"mqtt.certificate", "mqtt-certificate", text(&m.Certificate), nil, "PEM file of the client certificate"},
		{"mqtt.key", "mqtt-key", text(&m.Key), nil, "PEM file of the client certificate's key"},
		{"mqtt.insecure", "mqtt-insecure", yes(&m.Insecure), nil, "accept any broker certificate"},
		{"mqtt.listen", "mqtt-listen", text(&m.Listen), m.checkListen, "address of the embedded broker"},
		{
			"mqtt.max_packet", "mqtt-max-packet", whole(&m.MaxPacket), m.checkMaxPacket,
			"bytes of the largest message that the broker takes; 0: find out",
		},
		{"mqtt.discovery", "mqtt-discovery", yes(&m.Discovery), nil, "announce the device to Home Assistant"},
		{
			"mqtt.discovery_labels", "mqtt-discovery-labels", list(&m.DiscoveryLabels), nil,
			"labels with Home Assistant entities of their own, separated by commas, * for all; empty: those that matter most",
		},
		{"mqtt.control", "mqtt-control", yes(&m.Control), nil, "obey remote control topics"},
		{
			"mqtt.frigate", "mqtt-frigate", text(&m.Frigate), topicPath(&m.Frigate),
			"publish as Frigate does as well, below this first level of its topics, as frigate; empty: not",
		},
		{
			"mqtt.deepstream", "mqtt-deepstream", text(&m.DeepStream), topicPath(&m.DeepStream),
			"publish as DeepStream does as well, on this topic; empty: not",
		},
		{
			"mqtt.deepstream_schema", "mqtt-deepstream-schema", text(&m.DeepStreamSchema),
			oneOf(&m.DeepStreamSchema, DeepStreamMinimal, DeepStreamFull),
			"its messages: minimal (one for each frame) or full (one for each event of an object)",
		},
		{"mqtt.spool", "mqtt-spool", text(&m.Spool), nil, "directory that keeps events while the broker is away; empty: the state directory"},
	}
}

func (h *History) settings() []setting {
	return []setting{{
		"history.days", "history-days", whole(&h.Days), within(&h.Days, 0, 3660),
		"days of counts and heat maps that the state directory keeps; 0: none, they last as long as the run",
	}}
}

func (s *Snapshots) settings() []setting {
	return []setting{
		{"snapshots.directory", "snapshots", text(&s.Directory), nil, "directory that keeps the newest best views as JPEG files; empty: none"},
		{"snapshots.keep", "snapshots-keep", whole(&s.Keep), within(&s.Keep, 1, 1000000), "how many of them"},
	}
}

func (w *Web) settings() []setting {
	return []setting{
		{"web.listen", "web", text(&w.Listen), w.checkListen, "address of the web page, for instance 127.0.0.1:8080, or off"},
		{"web.token_file", "web-token-file", text(&w.TokenFile), nil, "file with the token that lets browsers in; needed beyond this machine"},
		{"web.user", "web-user", text(&w.User), w.checkUser, "user name that lets browsers in, instead of a token"},
		{"web.password_file", "web-password-file", text(&w.PasswordFile), nil, "file with that user's password"},
		{"web.certificate", "web-certificate", text(&w.Certificate), nil, "PEM file of the page's certificate, for https"},
		{"web.key", "web-key", text(&w.Key), nil, "PEM file of its key"},
		{"web.image_rate", "web-image-rate", whole(&w.FrameRate), within(&w.FrameRate, 1, 48), "most images a second of each camera"},
		{"web.profiling", "web-profiling", yes(&w.Profiling), nil, "serve Go's profiles at /debug/pprof/"},
	}
}

func (t *Thermal) settings() []setting {
	return []setting{
		{
			"thermal.margin", "thermal-margin", number(&t.Margin), within(&t.Margin, 0, 100),
			"lower the rate when a sensor is this many degrees below its limit; 0: never",
		},
		{
			"thermal.hysteresis", "thermal-hysteresis", number(&t.Hysteresis), within(&t.Hysteresis, 0, 100),
			"raise it again when it has cooled down by so many more",
		},
	}
}
