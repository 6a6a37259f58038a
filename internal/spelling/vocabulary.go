package spelling

import (
	"slices"
	"strings"
)

// Vocabulary maps a word that people type to this program's terms for it, the most probable first. A flag's term may have a value after a
// space. A word without terms has no equivalent here, and is no misspelling either.
type Vocabulary map[string][]string

// Suggest returns the name that a word probably stands for: the first of its terms that is among names (with the term's value), or for a
// word that is not in the vocabulary the name of a similar spelling. It returns "" if there is none. Upper case and the characters between
// the parts of a name make no difference.
func (v Vocabulary) Suggest(word string, names []string) string {
	all := v.SuggestAll(word, names)
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

// SuggestAll returns all names that a word may stand for, as Suggest does.
func (v Vocabulary) SuggestAll(word string, names []string) (found []string) {
	if !v.Has(word) {
		if near := Nearest(word, names); near != "" {
			found = append(found, near)
		}
		return found
	}
	for _, term := range v[normal(word)] {
		name, value, hasValue := strings.Cut(term, " ")
		at := slices.IndexFunc(names, func(known string) bool { return normal(known) == name })
		if at < 0 {
			continue
		}
		if hasValue {
			found = append(found, names[at]+" "+value)
		} else {
			found = append(found, names[at])
		}
	}
	return found
}

// Has reports whether the vocabulary has a word.
func (v Vocabulary) Has(word string) bool {
	_, known := v[normal(word)]
	return known
}

// Keep enters a word that stands for itself only, unless the vocabulary has it.
func (v Vocabulary) Keep(word string) {
	if !v.Has(word) {
		v[normal(word)] = []string{normal(word)}
	}
}

// normal returns a word as the vocabularies spell it: in lower case with - between its parts.
func normal(word string) string {
	return strings.NewReplacer("_", "-", " ", "-").Replace(strings.ToLower(word))
}

// add enters the words, separated by spaces, for terms.
func (v Vocabulary) add(words string, terms ...string) {
	for _, word := range strings.Fields(words) {
		v[word] = terms
	}
}

// Flags returns what people type as flags of other tools.
func Flags() Vocabulary {
	v := Vocabulary{}
	v.add("source input input-source video video-source stream rtsp uri url src cam webcam", "camera")
	v.add("onnx weight weights-file model-path model-file engine-file checkpoint ckpt net network", "model")
	v.add("fp16 half", "precision fp16")
	v.add("fp32", "precision fp32")
	v.add("int8", "precision int8")
	v.add("dtype quant", "precision")
	v.add("conf conf-thres conf-threshold threshold thresh score-threshold score-thr min-score min-confidence", "confidence")
	v.add("iou-thres iou-threshold nms nms-threshold", "iou")
	v.add("max-det topk", "max-detections")
	v.add("only class filter labels-filter", "classes")
	v.add("device cuda gpu-id cuda-device", "gpu")
	v.add("device-name client-id topic topic-prefix prefix", "name")
	v.add("img img-size input-size input-shape resolution size", "imgsz")
	v.add("names class-names label-file labelmap", "labels")
	v.add("host hostname server address", "mqtt", "listen")
	v.add("port bind", "listen")
	v.add("broker mqtt-url mqtt-host mqtt-broker", "mqtt")
	v.add("user username mqtt-username", "mqtt-user")
	v.add("password passwd mqtt-password", "mqtt-password-file")
	v.add("show view-img display gui preview imshow nosave", "web 127.0.0.1:8080")
	v.add("save save-img save-image save-vid save-video", "save")
	v.add("save-txt", "format yolo")
	v.add("save-json", "format coco")
	v.add("project exp-name", "save")
	v.add("snapshots snapshot", "events")
	v.add("tracker tracking track-objects persist", "track")
	v.add("sahi slice slice-size tile-size", "tile")
	v.add("tta", "augment")
	v.add("batch-size bs max-batch-size", "batch")
	v.add("workers num-workers num-threads cpu-threads", "threads")
	v.add("dataset", "data")
	v.add("calib calib-images calibration-images", "images")
	v.add("calib-cache", "calibration-cache")
	v.add("runtime backend execution-provider provider providers ep", "engine")
	v.add("verbose debug", "log debug")
	v.add("quiet silent", "log error")
	v.add("loglevel log-level", "log")
	v.add("cfg conf-file config-file yaml settings", "config")
	v.add("timeout max-time", "timeout", "duration")
	v.add("fps frame-rate framerate max-fps", "rate")
	v.add("out outdir output-file dest destination", "output", "out")
	v.add("predict detect track-mode mode task train val benchmark export")
	return v
}

// Keys returns what people type as keys of other tools' configuration files. A term is a key of the same mapping.
func Keys() Vocabulary {
	v := Vocabulary{}
	v.add("source input stream rtsp src", "uri", "cameras")
	v.add("url", "uri", "endpoint")
	v.add("uri", "url", "endpoint")
	v.add("path", "uri", "directory")
	v.add("address", "uri", "url", "listen", "endpoint")
	v.add("host hostname server servers", "url", "listen", "endpoint", "uri", "mqtt")
	v.add("port bind", "listen", "url")
	v.add("broker", "url", "mqtt")
	v.add("device", "uri", "gpu")
	v.add("camera cams webcam", "cameras")
	v.add("file filename onnx weights checkpoint model-path", "path", "model")
	v.add("model", "path")
	v.add("fps frame-rate framerate max-fps", "rate", "frame-rate")
	v.add("conf conf-thres threshold thresh min-score min-confidence", "confidence")
	v.add("iou-thres iou-threshold nms", "iou")
	v.add("max-det topk max", "max-detections")
	v.add("only objects filter", "classes", "labels")
	v.add("class-names names", "labels")
	v.add("img-size input-size size resolution", "imgsz")
	v.add("username", "user")
	v.add("password passwd pass", "password-file")
	v.add("token", "token-file")
	v.add("topic topic-prefix client-id", "name", "prefix")
	v.add("show display view-img gui preview", "web")
	v.add("record recording recordings", "clips")
	v.add("snapshots", "events")
	v.add("webhook", "webhooks")
	v.add("fp16 half int8 dtype", "precision")
	v.add("gpu-id cuda", "gpu")
	v.add("batch-size", "batch")
	v.add("retain retention", "days")
	v.add("tracker tracking", "track")
	v.add("loglevel log-level logging logger", "log")
	v.add("id label title", "name")
	v.add("skip skip-frames frame-skip", "interval")
	v.add("predict detect-mode mode task train val")
	return v
}

// Commands returns what people type for the commands of this program.
func Commands() Vocabulary {
	v := Vocabulary{}
	v.add("predict detect detection", "infer", "run")
	v.add("track count", "run", "infer")
	v.add("start daemon up watch stream live", "run")
	v.add("val eval evaluate", "validate")
	v.add("benchmark perf speed", "bench")
	v.add("compile trtexec", "build")
	v.add("quantise int8 calibrate", "quantize")
	v.add("convert", "build", "quantize")
	v.add("download fetch models get", "model", "pull")
	v.add("delete remove uninstall", "rm")
	v.add("check status diagnose health", "check", "doctor")
	v.add("test self-test", "selftest")
	v.add("info", "info", "inspect")
	v.add("show", "show", "inspect")
	v.add("cameras gpus gpu discover", "devices")
	v.add("server triton", "serve", "triton")
	v.add("init setup configure settings", "config")
	v.add("train finetune annotate label yolo")
	return v
}

// Classes returns words for the same class. Data sets differ in which one they use.
func Classes() Vocabulary {
	v := Vocabulary{}
	for _, same := range [...][]string{
		{"person", "people", "human", "pedestrian"},
		{"bicycle", "bike", "cycle"},
		{"motorcycle", "motorbike", "moped"},
		{"car", "automobile", "vehicle", "auto"},
		{"truck", "lorry"},
		{"airplane", "aeroplane", "plane", "aircraft"},
		{"tv", "tvmonitor", "television", "monitor"},
		{"couch", "sofa"},
		{"cell-phone", "mobile-phone", "phone", "smartphone"},
		{"license-plate", "number-plate", "plate"},
	} {
		for _, word := range same {
			v[word] = same
		}
	}
	return v
}
