package config

import (
	"fmt"
	"strings"
)

// RenamedKey is a key of earlier configuration files and the key that replaces it. Elements of lists are written as in cameras[].
type RenamedKey struct{ Key, Now string }

// RenamedKeys lists every key that was renamed, outer keys first. Loading refuses them; config migrate rewrites them.
func RenamedKeys() []RenamedKey {
	return []RenamedKey{
		{"device", NameKey},
		{"engine.device", "engine.gpu"},
		{"detect.labels", "detect.classes"},
		{"detect.max", "detect.max_detections"},
		{"look", "inference"},
		{"look.merge", "inference.tile_merge"},
		{"history", "events"},
		{"web.picture_rate", "web.frame_rate"},
		{"motion.floor_rate", "motion.min_rate"},
		{"cameras[].motion.floor_rate", "cameras[].motion.min_rate"},
		{RenamedWebKey, "web.listen"},
	}
}

// RenamedWebKey is the one renamed key that is a section now: its value moves into the section.
const RenamedWebKey = "web"

// FormerVariables returns the present name of each environment variable that was renamed.
func FormerVariables() map[string]string {
	former := map[string]string{}
	for once, now := range map[string]string{
		"DEVICE_NAME": "NAME", "DEVICE": "GPU", "ONLY": "CLASSES", "CONF": "CONFIDENCE", "WEB_PICTURE_RATE": "WEB_FRAME_RATE",
		"MOTION_FLOOR": "MOTION_MIN_RATE", "PROCESSORS": "RUNTIME_PROCESSORS", "GC_PERCENT": "RUNTIME_GC_PERCENT",
		"MEMORY_LIMIT": "RUNTIME_MEMORY_LIMIT", "CAPTURE_CPUS": "RUNTIME_CAPTURE_CPUS", "CAPTURE_PRIORITY": "RUNTIME_CAPTURE_PRIORITY",
	} {
		former[variablePrefix+once] = variablePrefix + now
	}
	return former
}

// migrateHint returns the hint for a renamed key, and "" for any other. Indices of lists are ignored.
func migrateHint(key string) string {
	var plain strings.Builder
	for part := range strings.SplitSeq(key, "[") {
		if _, rest, indexed := strings.Cut(part, "]"); indexed {
			part = "[]" + rest
		}
		plain.WriteString(part)
	}
	for _, former := range RenamedKeys() {
		if former.Key == plain.String() {
			return fmt.Sprintf(" (it is %s now: edge-infer config migrate FILE)", former.Now)
		}
	}
	return ""
}

// FlagHint suggests what to use instead of an unknown flag: the key of a setting without a flag, or this program's name for another tool's
// flag. It returns "" if it has no suggestion.
func FlagHint(flag string) string {
	for _, s := range settings(Default()) {
		if s.flag == "" && (flag == dashed(s.key) || flag == dashed(strings.TrimPrefix(s.key, s.section()+"."))) {
			return fmt.Sprintf("set %s in the file of --config, or %s", s.key, s.variable())
		}
	}
	switch flag {
	case "source", "input-source", "video", "rtsp", "uri":
		return "did you mean --camera?"
	case "onnx", "weight", "engine-file":
		return "did you mean --model?"
	case "fp16", "half":
		return "did you mean --precision fp16?"
	case "int8":
		return "did you mean --precision int8?"
	case "save", "save-txt", "project":
		return "to save annotated images use edge-infer infer FILES --save DIR"
	case "conf", "conf-thres", "conf-threshold", "threshold", "score-threshold":
		return "did you mean --confidence?"
	case "iou-thres", "nms":
		return "did you mean --iou?"
	case "only", "class", "filter":
		return "did you mean --classes?"
	case "device", "cuda":
		return "did you mean --gpu?"
	case "device-name":
		return "did you mean --name?"
	case "img", "img-size", "size":
		return "did you mean --imgsz?"
	case "names", "class-names":
		return "did you mean --labels?"
	case "broker", "host", "mqtt-url", "mqtt-host":
		return "did you mean --mqtt?"
	case "snapshots":
		return "snapshots are stored with the events, in the directory of --events"
	case "show", "view-img", "display":
		return "did you mean --web 127.0.0.1:8080?"
	}
	return ""
}

// dashed returns the key as a flag would be written.
func dashed(key string) string { return strings.NewReplacer(".", "-", "_", "-").Replace(key) }
