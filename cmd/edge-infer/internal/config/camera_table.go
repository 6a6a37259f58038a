package config

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/postprocess/track"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// cameraSettings lists every value of a camera in the order of the default file.
func cameraSettings() []ListSetting {
	all := []ListSetting{
		{Key: "name", Example: "gate", Help: "name in MQTT topics", Common: true},
		{
			Key: "uri", Example: "rtsp://192.0.2.10/stream", Common: true,
			Help: "0, /dev/video0, csi://0, rtsp://, http://, a file, a directory of images, gst:PIPELINE or demo",
		},
		{
			Key: "record", Example: "rtsp://192.0.2.10/main",
			Help: "address of a better RTSP stream of the camera for clips, which is never decoded; empty: uri",
		},
		{Key: "interval", Example: "1", Help: "run the network on every n-th frame"},
		{Key: "rate", Example: "0", Help: "most inferences per second, 0: every frame; heat and deadlines may reduce it", Common: true},
		{Key: "priority", Example: "1", Help: "weight when the network is overloaded: a camera with 2 gets twice the frames of one with 1"},
		{Key: "deadline", Example: "0s", Help: "frames older than this are dropped; 0s: never"},
		{Key: "roi.x", Example: "0", Help: "region of interest: only this part of the image is processed, as shares of the sides"},
		{Key: "roi.y", Example: "0.4"},
		{Key: "roi.width", Example: "1"},
		{Key: "roi.height", Example: "0.6"},
		{
			Key:     "model.path",
			Example: "helmets.onnx",
			Help:    "a model of this camera instead of the global one; detect.classes does not apply to it",
		},
		{Key: "model.labels", Example: "helmets.txt"},
		{Key: "model.layout", Example: Auto},
		{Key: "model.preprocess", Example: "torchvision"},
		{Key: "model.imgsz", Example: "640"},
		{Key: "model.activation", Example: Auto},
		{Key: "confidence", Example: "0.4", Help: "instead of detect.confidence", Common: true},
		{Key: "profile", Example: string(track.PTZ), Help: "instead of detect.profile: static or ptz"},
		{Key: "tile", Example: "640", Help: "instead of inference.tile; 0: whole image only"},
		{Key: "overlap", Example: "0.2", Help: "instead of inference.overlap"},
		{Key: "motion.enabled", Example: "true", Help: "motion filter of this camera, instead of the global one"},
		{Key: "motion.sensitivity", Example: "0.5", Help: "sensitivity, over 0 to 1"},
		{Key: "motion.min_rate", Example: "1", Help: "inferences per second while nothing moves"},
		{Key: "motion.roi.x", Example: "0", Help: "part of the image in which motion counts, as shares of the sides"},
		{Key: "motion.roi.y", Example: "0.4"},
		{Key: "motion.roi.width", Example: "1"},
		{Key: "motion.roi.height", Example: "0.6"},
		{Key: "stall", Example: "5s", Help: "reopen the camera after this time without a frame"},
		{Key: "max_pixels", Example: fmt.Sprint(capture.DefaultMaxPixels), Help: "largest image, width times height; larger ones are dropped"},
	}
	return slices.Concat(all, analyticsSettings(), []ListSetting{
		{Key: "clips.enabled", Example: "true", Help: "record clips of this camera, instead of clips.enabled"},
		{Key: "clips.classes", Example: "[person]", Help: "record objects of these classes; empty: all"},
		{Key: "clips.zones", Example: "[yard]", Help: "record objects in these zones; empty: anywhere"},
		{Key: "clips.continuous", Example: "false", Help: "record all video of this camera as well, in files of a minute"},
		{
			Key: "privacy.regions", Example: "[[{x: 0, y: 0}, {x: 0.3, y: 0}, {x: 0.3, y: 1}, {x: 0, y: 1}]]",
			Help: "polygons that are pixelated in all images that leave the program, as shares of the sides; clips are then Motion JPEG",
		},
		{Key: "privacy.labels", Example: "[person]", Help: "objects of these classes are pixelated in the same way"},
	})
}

// analyticsSettings lists every value of a camera's zones, lines and filters.
func analyticsSettings() []ListSetting {
	const (
		labels    = "[person]"
		labelHelp = "labels that count; empty: all"
	)
	return []ListSetting{
		{Key: "analytics.width", Example: "0", Help: "size of the image in pixels that the coordinates refer to; 0: they are shares from 0 to 1"},
		{Key: "analytics.height", Example: "0"},
		{Key: "analytics.zones[].name", Example: "yard", Help: "a zone counts the objects in it"},
		{
			Key: "analytics.zones[].points", Example: "[{x: 0.1, y: 0.5}, {x: 0.9, y: 0.5}, {x: 0.9, y: 1}, {x: 0.1, y: 1}]",
			Help: "corners of the polygon",
		},
		{Key: "analytics.zones[].labels", Example: labels, Help: labelHelp},
		{
			Key: "analytics.zones[].anchor", Example: string(zone.Bottom),
			Help: "point that must be inside: bottom, centre or top of the box, feet (ankles, or the lowest point of the mask), " +
				"a keypoint such as left_wrist, or the whole box or mask",
		},
		{
			Key:     "analytics.zones[].share",
			Example: "0",
			Help:    "share of the box or mask that must be inside if the anchor is one of them; 0: any part",
		},
		{
			Key: "analytics.zones[].inertia", Example: fmt.Sprint(zone.DefaultInertia),
			Help: "consecutive detections that must agree before an object enters or leaves",
		},
		{Key: "analytics.zones[].min_time", Example: "0s", Help: "time inside before an object has entered"},
		{Key: "analytics.zones[].loiter", Example: "1m", Help: "time inside after which an object loiters; 0s: never"},
		{Key: "analytics.lines[].name", Example: "door", Help: "a line counts the objects that cross it"},
		{Key: "analytics.lines[].from", Example: "{x: 0.5, y: 0}", Help: "seen from this point"},
		{Key: "analytics.lines[].to", Example: "{x: 0.5, y: 1}", Help: "towards this one, left to right is in"},
		{Key: "analytics.lines[].labels", Example: labels, Help: labelHelp},
		{Key: "analytics.lines[].anchor", Example: string(zone.Centre), Help: "bottom, centre, top, feet or a keypoint"},
		{Key: "analytics.lines[].direction", Example: string(zone.Both), Help: "both, in or out"},
		{
			Key: "analytics.lines[].mode", Example: string(zone.Strict),
			Help: "strict: the anchor passes between the ends; loose: any part of the box does",
		},
		{
			Key: "analytics.ground.points", Example: "[{x: 0.3, y: 0.4}, {x: 0.7, y: 0.4}, {x: 0.9, y: 0.9}, {x: 0.1, y: 0.9}]",
			Help: "corners of a rectangle on the ground, in order; or the two ends of a known length, seen from above",
		},
		{Key: "analytics.ground.width", Example: "4", Help: "metres from the first corner to the second"},
		{Key: "analytics.ground.length", Example: "10", Help: "metres from the second corner to the third, or between the two ends"},
		{Key: "analytics.filter.labels", Example: labels, Help: "labels that are tracked; empty: all"},
		{
			Key: "analytics.filter.limits.*.min_area", Example: "0",
			Help: "of a label, \"\" for all: share of the image up to 1, square pixels above; 0: any",
		},
		{Key: "analytics.filter.limits.*.max_area", Example: "0"},
		{Key: "analytics.filter.limits.*.min_ratio", Example: "0", Help: "width over height; 0: any"},
		{Key: "analytics.filter.limits.*.max_ratio", Example: "0"},
		{Key: "analytics.filter.limits.*.min_score", Example: "0", Help: "lowest score"},
		{
			Key: "analytics.filter.masks", Example: "[[{x: 0, y: 0}, {x: 0.2, y: 0}, {x: 0.2, y: 0.1}]]",
			Help: "polygons in which detections are ignored",
		},
		{Key: "analytics.objects.score.*", Example: "0.5", Help: "median score from which an object of a label, \"\" for all, is reported"},
		{Key: "analytics.objects.update", Example: "0s", Help: "longest time between two update events of an object; 0s: only on changes"},
		{
			Key: "analytics.objects.stationary_after", Example: zone.DefaultStationaryAfter.String(),
			Help: "time without movement after which an object is stationary",
		},
		{
			Key: "analytics.objects.snapshot_every", Example: zone.DefaultSnapshotEvery.String(),
			Help: "shortest time between two better snapshots of an object",
		},
		{Key: "analytics.daily_reset", Example: "false", Help: "reset the counts of lines and entries at midnight"},
	}
}
