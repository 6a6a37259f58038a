package config

import (
	"fmt"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// cameraSettings lists every value of a camera in the order of the default file.
func cameraSettings() []ListSetting {
	const (
		labels    = "[person]"
		labelHelp = "labels that count; empty: all"
	)
	return []ListSetting{
		{"name", "gate", "its part of the MQTT topics"},
		{"uri", "rtsp://192.0.2.10/stream", "0, /dev/video0, csi://0, rtsp://, http://, a file, a directory of images, gst:PIPELINE or demo"},
		{"interval", "1", "runs the network on every n-th frame"},
		{"rate", "0", "most inferences a second, 0: every frame; heat and deadlines may lower it"},
		{"priority", "1", "weight when the network cannot do all: one of 2 gets twice the frames of one of 1"},
		{"deadline", "0s", "age at which a frame is worth nothing: it is left out and counts as late; 0s: never"},
		{"roi.x", "0", "part of the image that the network is given, at its full resolution, as shares of the sides"},
		{"roi.y", "0.4", ""},
		{"roi.width", "1", ""},
		{"roi.height", "0.6", ""},
		{"model.path", "helmets.onnx", "a model of its own instead of model of all cameras, with a group like that; detect.labels is not for it"},
		{"model.labels", "helmets.txt", ""},
		{"model.layout", Auto, ""},
		{"model.preprocess", "torchvision", ""},
		{"model.imgsz", "640", ""},
		{"model.activation", Auto, ""},
		{"confidence", "0.4", "instead of detect.confidence"},
		{"profile", string(track.PTZ), "instead of detect.profile: static, ptz or low-rate"},
		{"tile", "640", "instead of look.tile; 0: whole only"},
		{"overlap", "0.2", "instead of look.overlap"},
		{"motion.enabled", "true", "leaves still images out; without this group the motion settings of all cameras count"},
		{"motion.sensitivity", "0.5", "how little counts as motion, up to 1"},
		{"motion.floor_rate", "1", "inferences a second while nothing moves"},
		{"motion.roi.x", "0", "where motion counts, as shares of the sides"},
		{"motion.roi.y", "0.4", ""},
		{"motion.roi.width", "1", ""},
		{"motion.roi.height", "0.6", ""},
		{"stall", "5s", "how long it may be silent before it is opened again"},
		{"max_pixels", fmt.Sprint(capture.DefaultMaxPixels), "pixels that an image may have, width times height; larger ones are left out"},
		{"analytics.width", "0", "image in pixels that the coordinates were measured on; 0: they are shares from 0 to 1"},
		{"analytics.height", "0", ""},
		{"analytics.zones[].name", "yard", "a zone counts who is in it"},
		{"analytics.zones[].points", "[{x: 0.1, y: 0.5}, {x: 0.9, y: 0.5}, {x: 0.9, y: 1}, {x: 0.1, y: 1}]", "its corners"},
		{"analytics.zones[].labels", labels, labelHelp},
		{
			"analytics.zones[].anchor", string(zone.Bottom),
			"what stands for the object: bottom, centre or top of its box, feet (its ankles, or the lowest of its mask), " +
				"a keypoint like left_wrist, " +
				"or all of its box or mask",
		},
		{"analytics.zones[].share", "0", "how much of the box or mask must be inside where the anchor is one of them; 0: any part"},
		{"analytics.zones[].inertia", fmt.Sprint(zone.DefaultInertia), "detections in a row that must agree before somebody is in or out"},
		{"analytics.zones[].min_time", "0s", "stay before somebody has entered"},
		{"analytics.zones[].loiter", "1m", "stay after which somebody loiters; 0s: never"},
		{"analytics.lines[].name", "door", "a line counts who crosses it"},
		{"analytics.lines[].from", "{x: 0.5, y: 0}", "seen from here,"},
		{"analytics.lines[].to", "{x: 0.5, y: 1}", "looking to here, from left to right is in"},
		{"analytics.lines[].labels", labels, labelHelp},
		{"analytics.lines[].anchor", string(zone.Centre), "bottom, centre, top, feet or a keypoint"},
		{"analytics.lines[].direction", string(zone.Both), "both, in or out"},
		{"analytics.lines[].mode", string(zone.Strict), "strict: the anchor passes between the ends; loose: any part of the box does"},
		{
			"analytics.ground.points", "[{x: 0.3, y: 0.4}, {x: 0.7, y: 0.4}, {x: 0.9, y: 0.9}, {x: 0.1, y: 0.9}]",
			"corners of a rectangle on the ground, in order; or two ends of a length, seen straight from above",
		},
		{"analytics.ground.width", "4", "metres from the first corner to the second"},
		{"analytics.ground.length", "10", "metres from the second corner to the third, or between the two ends"},
		{"analytics.filter.labels", labels, "labels that are looked at; empty: all"},
		{"analytics.filter.limits.*.min_area", "0", "of a label, \"\" for all: share of the image up to 1, square pixels above; 0: any"},
		{"analytics.filter.limits.*.max_area", "0", ""},
		{"analytics.filter.limits.*.min_ratio", "0", "width over height; 0: any"},
		{"analytics.filter.limits.*.max_ratio", "0", ""},
		{"analytics.filter.limits.*.min_score", "0", "lowest score"},
		{"analytics.filter.masks", "[[{x: 0, y: 0}, {x: 0.2, y: 0}, {x: 0.2, y: 0.1}]]", "areas in which nothing is looked at"},
		{"analytics.objects.score.*", "0.5", "median score that an object of a label, \"\" for all, needs to be reported"},
		{"analytics.objects.update", "0s", "longest time between two updates of an object; 0s: only changes are reported"},
		{"analytics.objects.stationary_after", zone.DefaultStationaryAfter.String(), "how long an object stays in its place to be stationary"},
		{"analytics.objects.snapshot_every", zone.DefaultSnapshotEvery.String(), "shortest time between two better snapshots of an object"},
		{"analytics.daily_reset", "false", "sets the counts of lines and entries to 0 at midnight"},
	}
}
